"""Edits of curves and points: a reader that follows them holds what a fresh one reads."""

from __future__ import annotations

import pytest
from pxr import Gf, Sdf, Usd, UsdGeom
from tests.live.test_live_reader import differing, said
from tests.stage.conftest import stage_from

from hdwarp.stage.changes import ChangeListener, StageEdits
from hdwarp.stage.columns import GeometryKind, GprimKey
from hdwarp.stage.open import resolve_time
from hdwarp.stage.reader import StageReader

STAGE = """
def Xform "all" {
    def BasisCurves "basis" {
        uniform token basis = "bspline"
        point3f[] points = [(0, 0, 0), (1, 1, 0), (2, 0, 0), (3, 1, 0), (4, 0, 0), (5, 1, 1), (6, 0, 0)]
        int[] curveVertexCounts = [7]
        float[] widths = [0.1] (interpolation = "constant")
        float[] primvars:heat = [0, 1, 2, 3, 4, 5, 6] (interpolation = "vertex")
    }
    def NurbsCurves "nurbs" {
        point3f[] points = [(0, 0, 0), (1, 1, 0), (2, 0, 0), (3, 0, 1)]
        int[] curveVertexCounts = [4]
        int[] order = [3]
        double[] knots = [0, 0, 0, 1, 2, 2, 2]
        float[] widths = [0.1] (interpolation = "constant")
    }
    def HermiteCurves "hermite" {
        point3f[] points = [(0, 0, 0), (1, 1, 0)]
        vector3f[] tangents = [(1, 0, 0), (1, 0, 0)]
        int[] curveVertexCounts = [2]
        float[] widths = [0.1] (interpolation = "constant")
    }
    def Points "dots" {
        point3f[] points = [(0, 0, 0), (1, 1, 0)]
        float[] widths = [0.1, 0.2]
        int64[] ids = [4, 5]
    }
}
def Xform "copy" ( instanceable = true; references = </all> ) { }
def PointInstancer "many" { rel prototypes = </all/dots>; int[] protoIndices = [0, 0]; point3f[] positions = [(0, 0, 0), (9, 0, 0)] }
"""
EDITS = [
    ("basis", "points", [(k, k * k * 0.1, 0) for k in range(7)]),
    ("basis", "widths", [0.3]),
    ("basis", "curveVertexCounts", [3, 4]),
    ("basis", "curveVertexCounts", []),
    ("basis", "type", "linear"),
    ("basis", "basis", "catmullRom"),
    ("basis", "wrap", "periodic"),
    ("basis", "wrap", "pinned"),
    ("basis", "normals", [(0, 0, 1)] * 7),
    ("basis", "primvars:heat", [6, 5, 4, 3, 2, 1, 0]),
    ("basis", "visibility", "invisible"),
    ("basis", "purpose", "guide"),
    ("nurbs", "order", [4]),
    ("nurbs", "knots", [0, 0, 0, 1.5, 2, 2, 2]),
    ("nurbs", "ranges", [(0.5, 1.5)]),
    ("nurbs", "pointWeights", [1, 2, 1, 1]),
    ("nurbs", "points", [(0, 0, 0), (1, 2, 0), (2, 0, 0), (3, 0, 1)]),
    ("hermite", "tangents", [(1, 3, 0), (1, 0, 0)]),
    ("hermite", "tangents", []),
    ("dots", "points", [(5, 5, 5), (1, 1, 0)]),
    ("dots", "points", [(5, 5, 5)]),
    ("dots", "widths", [0.5, 0.5]),
    ("dots", "ids", [9, 8]),
]


def following(stage: Usd.Stage) -> tuple[ChangeListener, StageReader]:
    listener, reader = ChangeListener(stage), StageReader(stage)
    reader.update(StageEdits(), resolve_time(stage, 0.0))
    return listener, reader


def assert_follows(listener: ChangeListener, reader: StageReader, time: float = 0.0) -> set[GprimKey]:
    """Also the keys of what is new."""
    code = resolve_time(reader.stage, time)
    changes, _ = reader.update(listener.take(), code)
    fresh = StageReader(reader.stage)
    fresh.update(StageEdits(), code)
    assert differing(reader, fresh) == {}
    assert said(reader) == said(fresh)
    return set() if changes is None else set(changes.gprims)


@pytest.mark.parametrize(("name", "attribute", "value"), EDITS)
def test_every_attribute(name, attribute, value):
    """The prim itself, its instance and the instances of the instancer are as a fresh reader has them; undone, as they were."""
    stage = stage_from(STAGE)
    listener, reader = following(stage)
    path = f"/all/{name}.{attribute}"
    before = stage.GetRootLayer().GetAttributeAtPath(path)
    was = None if before is None else before.default
    prim = stage.GetPrimAtPath(f"/all/{name}")
    prim.GetAttribute(attribute).Set(value)
    touched = assert_follows(listener, reader)
    assert {(f"/all/{name}", (), 0), (f"/copy/{name}", (), 0)} <= touched
    assert (("/all/dots", ("/many",), 0) in touched) == (name == "dots")
    if was is None:
        prim.RemoveProperty(attribute)
    else:
        prim.GetAttribute(attribute).Set(was)
    assert (f"/all/{name}", (), 0) in assert_follows(listener, reader)


def test_what_only_moves_is_not_read_again():
    stage = stage_from(STAGE)
    listener, reader = following(stage)
    before = {key: gprim.mesh for key, gprim in reader.gprims.items()}
    UsdGeom.Xformable(stage.GetPrimAtPath("/all")).AddTranslateOp().Set((1, 2, 3))
    assert_follows(listener, reader)
    assert all(reader.gprims[key].mesh is mesh for key, mesh in before.items() if key[0].startswith("/all"))


def test_widths_and_normals_from_above():
    stage = stage_from(STAGE)
    listener, reader = following(stage)
    above = stage.GetPrimAtPath("/all")
    above.CreateAttribute("primvars:widths", Sdf.ValueTypeNames.Float).Set(0.6)
    assert ("/all/basis", (), 0) in assert_follows(listener, reader)
    above.CreateAttribute("primvars:normals", Sdf.ValueTypeNames.Normal3f).Set(Gf.Vec3f(0, 0, 1))
    assert_follows(listener, reader)
    kinds = {gprim.path: gprim.kind for gprim in reader.gprims.values()}
    assert kinds["/all/basis"] is GeometryKind.RIBBONS
    assert kinds["/all/dots"] is GeometryKind.POINTS
    for name in ("primvars:widths", "primvars:normals"):
        above.RemoveProperty(name)
        assert_follows(listener, reader)


def test_values_that_change_with_time():
    stage = stage_from(STAGE)
    points, widths = (stage.GetPrimAtPath("/all/basis").GetAttribute(name) for name in ("points", "widths"))
    for time in (0.0, 10.0):
        points.Set([(k, k * time * 0.1, 0) for k in range(7)], time)
        widths.Set([0.1 + 0.01 * time], time)
    stage.GetPrimAtPath("/all/dots").GetAttribute("points").Set([(0, 0, 0)] * 2, 3.0)
    listener, reader = following(stage)
    for time in (5.0, 10.0, 3.0, 0.0):
        assert_follows(listener, reader, time)
    stage.GetPrimAtPath("/all/basis").SetTypeName("NurbsCurves")
    assert_follows(listener, reader, 1.0)
