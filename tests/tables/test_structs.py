"""Kinds of geometry on the device: the predicates of `GeometryKind`, and leaves that hold what they are said to."""

from __future__ import annotations

import numpy as np
import warp as wp

from hdwarp.stage.columns import GeometryKind
from hdwarp.tables import bvh
from hdwarp.tables.structs import is_shape, is_swept, swept_point_count

NUMBERS = 9 * 16  # of a leaf: nine vec16f
FORMS = (GeometryKind.MESH, GeometryKind.POINTS, GeometryKind.TUBES, GeometryKind.RIBBONS)


@wp.kernel(enable_backward=False)
def _ask(kinds: wp.array[wp.int32], out: wp.array2d[wp.int32]):
    i = wp.tid()
    out[i, 0] = wp.where(is_shape(kinds[i]), 1, 0)
    out[i, 1] = wp.where(is_swept(kinds[i]), 1, 0)
    out[i, 2] = swept_point_count(kinds[i])


def test_kinds_are_told_apart_on_both_sides(device):
    """By name: shapes have no geometry of their own, -1 is nothing."""
    shapes = {"SPHERE", "CUBE", "CONE", "CAPSULE", "PLANE"}
    kinds = [-1, *GeometryKind]
    found = wp.zeros((len(kinds), 3), dtype=wp.int32, device=device)
    wp.launch(_ask, dim=len(kinds), inputs=[wp.array(kinds, dtype=wp.int32, device=device)], outputs=[found], device=device)
    found = found.numpy()
    assert found[0, :2].tolist() == [0, 0]
    for kind, (shape, swept, count) in zip(GeometryKind, found[1:].tolist(), strict=True):
        assert kind.is_shape == bool(shape) == (kind.name in shapes)
        assert kind.is_swept == bool(swept) == (kind.name in {"POINTS", "TUBES", "RIBBONS"})
        assert kind.is_curve == (kind.name in {"TUBES", "RIBBONS"})
        assert kind.has_geometry == (kind in FORMS)
        if kind.is_swept:
            assert kind.point_count == count


def test_leaves_hold_what_lies_side_by_side_in_them():
    """Numbers a point (a radius too, of round ones), and the piece of curves: of all lanes as many as nine vec16f hold."""
    assert list(bvh.LANES) == list(FORMS)
    for form, lanes in bvh.LANES.items():
        numbers = form.point_count * (4 if form in (GeometryKind.POINTS, GeometryKind.TUBES) else 3) + form.is_curve
        assert lanes <= bvh.LEAF_SIZE and lanes * numbers <= NUMBERS
        assert np.log2(lanes) % 1 == 0
