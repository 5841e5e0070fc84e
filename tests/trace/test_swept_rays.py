"""Points and curves by all ways of tracing: the same bits on any number of threads and in any window, the same hits by packets of a tile,
of a bundle, and ray by ray."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
import warp as wp

from hdwarp.stage.columns import BALL
from hdwarp.tables import structs
from hdwarp.trace import occluded, ray_bundles, trace_free, trace_rays

_spec = importlib.util.spec_from_file_location("swept_scene", Path(__file__).with_name("swept_scene.py"))
swept_scene = sys.modules["swept_scene"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(swept_scene)
tools, SweptScene = swept_scene.tools, swept_scene.SweptScene
CAMERAS, camera_at, ring = swept_scene.CAMERAS, swept_scene.camera_at, swept_scene.ring
random_tubes, traced = swept_scene.random_tubes, swept_scene.traced


def everything():
    """Pieces of all kinds, balls at joints among them, in instances that are stretched and mirrored."""
    points, radii = random_tubes(7, 40)
    swept = swept_scene.tubes(points, radii)
    swept.pieces[::5] = 16 + BALL
    rng = np.random.default_rng(2)
    places = [tools.Instance(tools.random_affine(rng, mirrored=k % 2 == 0), rng.uniform(-0.5, 0.5, 3)) for k in range(4)]
    return swept, places


@pytest.mark.parametrize("kind", CAMERAS)
def test_bits_depend_neither_on_threads_nor_on_windows(kind):
    scene, camera = SweptScene(*everything()), camera_at(kind, 150, 101)
    whole = scene.trace(camera, thread_count=1)[0]
    assert whole.hit.mean() > 0.05
    assert whole.bits() == scene.trace(camera, thread_count=3)[0].bits()
    x0, y0, width, height = 21, 10, 67, 50
    part = scene.trace(camera.with_(window=(x0, y0, width, height)))[0]
    for name in ("triangle", "instance", "t"):
        assert getattr(part, name).tobytes() == getattr(whole, name)[y0 : y0 + height, x0 : x0 + width].tobytes()


@pytest.mark.parametrize("kind", CAMERAS)
def test_a_thread_a_pixel_draws_the_same(kind, monkeypatch):
    """The kernel for CUDA, here on the CPU: the same ids but for rays that graze."""
    scene, camera = SweptScene(*everything()), camera_at(kind, 150, 101)
    packets, pixels = (traced(scene, camera, way, monkeypatch) for way in ("packets", "rays"))
    same = (packets.triangle == pixels.triangle) & (packets.instance == pixels.instance)
    assert (~same).sum() <= 5
    both = same & packets.hit
    assert (np.abs(packets.t - pixels.t)[both] > 1e-4 * packets.t[both]).sum() <= 3


def even(ends):
    """(n, 4) radii of pieces from those at their ends, (n, 2)."""
    return ends[:, :1] + (ends[:, 1:] - ends[:, :1]) * np.array([0, 1, 2, 3]) / 3


def hard(name):
    """(pieces, cameras) where the steps towards a tube have far to go, or little to go by."""
    points, rng = random_tubes(4, 40)[0], np.random.default_rng(4)
    lengths = np.linalg.norm(points[:, 3] - points[:, 0], axis=-1)[:, None]
    rod = np.array([[[0, 0, -1], [0.02, 0, -1 / 3], [0.02, 0, 1 / 3], [0, 0, 1]]])
    if name == "as thick as bent":
        return ring(small=0.99), [camera_at(kind, 96, 72, eye=5.0) for kind in CAMERAS]
    if name == "within a ring":
        turn = tools.look_at((1.0, 0, 0), (np.cos(1), np.sin(1), 0.1))
        return ring(small=0.9), [tools.perspective(160, 120, eye=(1.0, 0, 0.05), turn=turn, focal=0.5)]
    if name == "thick":  # up to twice as wide as long
        ends = lengths * 10 ** rng.uniform(-0.5, 0.3, (40, 1)) * rng.uniform(0.8, 1.2, (40, 2))
        return swept_scene.tubes(points, even(ends)), [camera_at(kind, 160, 120, eye=4.0) for kind in CAMERAS]
    if name == "within thick":
        ends = lengths * 10 ** rng.uniform(-1.0, -0.3, (40, 1)) * rng.uniform(0.6, 1.4, (40, 2))
        turns = [tools.rotation(axis, 1.0) for axis in ((1, 0, 0), (0, 1, 0), (1, 2, 3))]
        options = {"eye": (0.1, 0.05, 0.2), "focal": 0.4, "near": 1e-3}
        return swept_scene.tubes(points, even(ends)), [tools.perspective(160, 120, turn=turn, **options) for turn in turns]
    turns = [tools.rotation((1, 2, 0), angle) for angle in (0.0, 0.002, 0.01, 0.05)]
    along = [tools.orthographic(160, 120, eye=(0, 0, 3.0), turn=turn, size=1.2) for turn in turns]
    beside = [tools.perspective(160, 120, eye=(0.5 + off, 0, 3.0), focal=2.0) for off in (-1e-3, 0.0, 1e-3)]
    return swept_scene.tubes(rod, np.full((1, 4), 0.5)), along + beside


@pytest.mark.parametrize("name", ["as thick as bent", "within a ring", "thick", "within thick", "grazing"])
def test_a_ray_settles_where_a_packet_does(name, monkeypatch):
    """One rule says when a tube is met, for 16 rays together as for one: ids and distances are the same but for rays that pass a rim.
    While rays went on until all of their packet had settled, hundreds of the thick ones' distances differed."""
    swept, cameras = hard(name)
    scene, count, hits, ids, far = SweptScene(swept), 0, 0, 0, 0
    for camera in cameras:
        packets, rays = (traced(scene, camera, way, monkeypatch) for way in ("packets", "rays"))
        both = packets.hit & rays.hit & (packets.triangle == rays.triangle)
        count, hits = count + packets.hit.size, hits + packets.hit.sum()
        ids += (packets.triangle != rays.triangle).sum()
        far += (np.abs(packets.t - rays.t)[both] > 2e-5 * rays.t[both]).sum()
    assert hits > 1000
    assert ids <= 2e-4 * count
    assert far <= 1e-4 * hits


@pytest.mark.parametrize("way", ["free", "single"])
def test_rays_of_no_image_see_the_same(way, device):
    scene, camera = SweptScene(*everything(), device=device), camera_at("perspective", 150, 101)
    image = scene.trace(camera)[0]
    top = structs.TopLevel()
    top.nodes, top.children = scene.top.nodes, scene.top.children
    directions = camera.rays()[1]
    length = np.linalg.norm(directions, axis=-1)
    bundles = ray_bundles(camera.origin, directions.shape[:2], root=int(scene.top.root[0]), near=1e-3, device=device)
    rays = wp.array((directions / length[..., None]).reshape(-1, 3).astype(np.float32), dtype=wp.vec3f, device=device)
    tables, options = (scene.columns, scene.rows, top), {"kinds": swept_scene.SWEPT, "device": device}
    hits = bundles.hits()
    if way == "free":
        trace_free(bundles, rays, *tables, hits, **options)
    else:
        trace_rays(bundles, None, rays, *tables, hits, **options)
    slot, t = hits.slot.numpy().reshape(length.shape), hits.t.numpy().reshape(length.shape)
    item = scene.columns.slot_triangle.numpy()[np.maximum(slot, 0)]
    different = (np.where(slot >= 0, item, -1) != np.where(image.hit, image.triangle, -1)) | (
        hits.instance.numpy().reshape(length.shape) != image.instance
    )
    assert different.sum() <= 6
    both = image.hit & ~different
    assert (np.abs(t - image.t * length)[both] > 1e-4 * t[both]).sum() <= 4
    blocked = occluded(bundles, None, rays, *tables, **options).numpy().reshape(length.shape)
    assert (blocked != image.hit).sum() <= 6
