"""Every AOV of a whole render, bit for bit: threads, other views, data windows, refit or rebuild, synced or fresh, run to run."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest
import warp as wp
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics, UsdShade

import hdwarp
from hdwarp.aovs.registry import AOVS

ALL = [*(name for name, spec in AOVS.items() if not spec.later), "primvars:displayColor"]
FRESH = [name for name in ALL if name != "instanceRow"]  # a row is where a scene's history has put it
WIDTH, HEIGHT = 150, 101


def random_stage(brute, seed: int) -> Usd.Stage:
    """A bit of everything: soups, closed meshes with subsets and holes in them, shapes, an instancer, bodies, mirrors, shear, coincident
    copies; a perspective and an orthographic camera with clip planes."""
    rng = np.random.default_rng(seed)
    stage = brute.new_stage()
    holes = brute.add_material(stage, "/holes", opacity=0.1, opacityThreshold=0.5)
    red = brute.add_material(stage, "/red", diffuseColor=Gf.Vec3f(0.8, 0.1, 0.1))
    for i in range(4):
        linear = brute.rotation(rng) @ np.diag([-1.0 if i % 2 else 1.0, *rng.uniform(0.5, 1.2, 2)]) @ brute.rotation(rng)
        points, faces = brute.ball(6 + i)
        body = UsdGeom.Xform.Define(stage, f"/body{i}")
        UsdPhysics.RigidBodyAPI.Apply(body.GetPrim())
        body.AddTranslateOp(UsdGeom.XformOp.PrecisionDouble).Set(Gf.Vec3d(*np.round(rng.uniform(-1, 1, 3) * 64) / 64))
        mesh = brute.add_mesh(stage, f"/body{i}/ball", points.astype(np.float32), linear * 0.5, faces=faces, double_sided=i % 2 == 0)
        count = len(faces)
        subset = UsdGeom.Subset.CreateGeomSubset(mesh, "part", "face", rng.permutation(count)[: count // 3].tolist(), "materialBind")
        UsdShade.MaterialBindingAPI.Apply(subset.GetPrim()).Bind(holes if i < 2 else red)
        colours = UsdGeom.PrimvarsAPI(mesh).CreatePrimvar("displayColor", Sdf.ValueTypeNames.Color3fArray, "vertex")
        colours.Set([Gf.Vec3f(*map(float, rng.random(3))) for _ in points])
    for path in ("/soup", "/the_same_soup"):
        brute.add_mesh(stage, path, brute.soup(np.random.default_rng(seed), 60, 0.2), brute.rotation(np.random.default_rng(seed)))
    for i, kind in enumerate((UsdGeom.Sphere, UsdGeom.Cube)):
        brute.place(kind.Define(stage, f"/shape{i}"), np.diag(rng.uniform(0.2, 0.5, 3)) @ brute.rotation(rng), rng.uniform(-1, 1, 3))
    instancer = UsdGeom.PointInstancer.Define(stage, "/many")
    brute.add_mesh(stage, "/many/prototype", *(brute.ball(5)[0].astype(np.float32),), np.eye(3) * 0.1, faces=brute.ball(5)[1])
    instancer.CreatePrototypesRel().SetTargets(["/many/prototype"])
    instancer.CreateProtoIndicesAttr([0] * 20)
    instancer.CreatePositionsAttr([Gf.Vec3f(*map(float, rng.uniform(-1.5, 1.5, 3))) for _ in range(20)])
    for path, orthographic in (("/perspective", False), ("/orthographic", True)):
        eye = brute.around(rng, width=WIDTH, height=HEIGHT, focal=30.0 if orthographic else 110.0, orthographic=orthographic)
        plane = (*rng.normal(size=2), -1.5, -4.5)
        brute.add_camera(stage, eye, path, planes=[plane])
    return stage


def bits(arrays, names=ALL) -> str:
    digest = hashlib.sha256()
    for name in names:
        digest.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()


def render(stage, camera, **options):
    return hdwarp.render(stage, camera, **{"aovs": ALL, "resolution": (WIDTH, HEIGHT), "device": "cpu"} | options)


def differing(a, b, names=ALL) -> list[str]:
    return [name for name in names if np.ascontiguousarray(a[name]).tobytes() != np.ascontiguousarray(b[name]).tobytes()]


@contextmanager
def threads(count: int):
    before = os.environ.get("HDWARP_THREADS")
    os.environ["HDWARP_THREADS"] = str(count)
    try:
        yield
    finally:
        if before is None:
            del os.environ["HDWARP_THREADS"]
        else:
            os.environ["HDWARP_THREADS"] = before


CAMERAS = ["/perspective", "/orthographic"]


@pytest.mark.parametrize("camera", CAMERAS)
@pytest.mark.parametrize("seed", range(3))
def test_threads_and_repetition(brute, seed, camera):
    stage = random_stage(brute, seed)
    frames = []
    for count in (1, 2, 7, 2):
        with threads(count):
            frames.append(render(stage, camera))
    hit = frames[0]["primId"] >= 0
    assert 0.1 < hit.mean() < 1.0
    assert len(np.unique(frames[0]["primId"])) > 5
    for other in frames[1:]:
        assert differing(frames[0], other) == []


@pytest.mark.parametrize("camera", CAMERAS)
@pytest.mark.parametrize("seed", range(3))
def test_data_windows(brute, seed, camera):
    """Random windows of a product, overscan too, hold the bits of the same pixels of the whole image (of the largest window)."""
    rng = np.random.default_rng(100 + seed)
    stage = random_stage(brute, seed)
    product = stage.DefinePrim("/product", "RenderProduct")
    product.CreateRelationship("camera").SetTargets([camera])
    product.CreateAttribute("resolution", Sdf.ValueTypeNames.Int2).Set(Gf.Vec2i(WIDTH, HEIGHT))
    window = product.CreateAttribute("dataWindowNDC", Sdf.ValueTypeNames.Float4)

    def view(x0, y0, x1, y1):
        """Pixels x0..x1 - 1, y0..y1 - 1 of the full image; y counts from the top, dataWindowNDC from the bottom."""
        window.Set(Gf.Vec4f(x0 / WIDTH, 1 - y1 / HEIGHT, x1 / WIDTH, 1 - y0 / HEIGHT))
        frame = hdwarp.render(stage, "/product", aovs=ALL, device="cpu")
        assert (frame.width, frame.height) == (x1 - x0, y1 - y0)
        return frame

    whole = view(-40, -30, WIDTH + 40, HEIGHT + 30)
    for _ in range(6):
        x0, x1 = sorted(rng.choice(np.arange(-40, WIDTH + 40), 2, replace=False).tolist())
        y0, y1 = sorted(rng.choice(np.arange(-30, HEIGHT + 30), 2, replace=False).tolist())
        part = view(x0, y0, x1, y1)
        cut = {name: whole[name][y0 + 30 : y1 + 30, x0 + 40 : x1 + 40] for name in ALL}
        assert differing(part, cut) == []


@pytest.mark.parametrize("seed", range(3))
def test_one_view_alone_or_among_others(brute, seed):
    """A sensor with both cameras, with one of them, and `render`; a masked view keeps what it holds."""
    stage = random_stage(brute, seed)
    scene = hdwarp.Scene(stage, device="cpu")
    both = hdwarp.SensorCamera(scene, cameras="*", resolution=(WIDTH, HEIGHT))
    out = both.allocate(ALL)
    both.update(None, out)
    together = {name: array.numpy().copy() for name, array in out.items()}
    order = [scene.cameras.label[i] for i in both.view_camera.numpy()]
    for view, camera in enumerate(order):
        alone = hdwarp.SensorCamera(scene, cameras=camera, resolution=(WIDTH, HEIGHT))
        single = alone.allocate(ALL)
        alone.update(None, single)
        mine = {name: array[view] for name, array in together.items()}
        assert differing({name: array.numpy()[0] for name, array in single.items()}, mine) == []
        assert differing(render(stage, camera), mine) == []
    for array in out.values():
        array.zero_()
    both.update(None, out, view_mask=wp.array([True, False], dtype=wp.bool, device="cpu"))
    assert differing({name: array.numpy()[0] for name, array in out.items()}, {name: array[0] for name, array in together.items()}) == []
    assert all(not array.numpy()[1].any() for array in out.values())


@pytest.mark.parametrize("seed", range(3))
def test_refitted_and_freshly_opened(brute, seed):
    """Bodies moved by whole 64ths on the device, and the same moves authored on the stage; then back again."""
    rng = np.random.default_rng(200 + seed)
    stage = random_stage(brute, seed)
    scene = hdwarp.Scene(stage, device="cpu")
    sensor = hdwarp.SensorCamera(scene, cameras="*", resolution=(WIDTH, HEIGHT))
    out = sensor.allocate(ALL)
    sensor.update(None, out)
    before = {name: array.numpy().copy() for name, array in out.items()}
    state, authored = scene.state(), scene.state()
    moves = np.round(rng.uniform(-1, 1, (len(scene.bodies), 3)) * 64) / 64
    poses = state.body_q.numpy()
    poses[:, :3] += moves
    state.body_q.assign(poses)
    sensor.update(state, out)
    moved = {name: array.numpy().copy() for name, array in out.items()}
    sensor.update(authored, out)
    assert differing({name: array.numpy() for name, array in out.items()}, before) == []
    for label, move in zip(scene.bodies.label, moves, strict=True):
        attribute = stage.GetPrimAtPath(label).GetAttribute("xformOp:translate")
        attribute.Set(attribute.Get() + Gf.Vec3d(*move))
    for view, camera in enumerate(["/orthographic", "/perspective"]):
        fresh = render(stage, camera)
        assert differing(fresh, {name: array[view] for name, array in moved.items()}, FRESH) == []
        assert differing(fresh, {name: array[view] for name, array in before.items()}, FRESH) != []


@pytest.mark.parametrize("seed", range(3))
def test_synced_and_freshly_opened(brute, seed):
    """Prims removed, added, moved, reshaped, rebound, one after another: a scene that followed gives what a new one gives."""
    rng = np.random.default_rng(300 + seed)
    stage = random_stage(brute, seed)
    scene = hdwarp.Scene(stage, device="cpu")
    sensor = hdwarp.SensorCamera(scene, cameras="/perspective", resolution=(WIDTH, HEIGHT))
    out = sensor.allocate(ALL)

    def reshape():
        points = UsdGeom.Mesh.Get(stage, "/body0/ball").GetPointsAttr()
        points.Set([p * float(s) for p, s in zip(points.Get(), rng.uniform(0.8, 1.2, len(points.Get())), strict=True)])

    edits = [
        lambda: stage.RemovePrim("/soup"),
        lambda: brute.add_mesh(stage, "/a_new_soup", brute.soup(rng, 30)),
        reshape,
        lambda: stage.GetPrimAtPath("/holes/surface").GetAttribute("inputs:opacity").Set(0.9),
        lambda: UsdGeom.Imageable.Get(stage, "/shape0").MakeInvisible(),
        lambda: stage.GetPrimAtPath("/body1").GetAttribute("xformOp:translate").Set(Gf.Vec3d(0.25, 0.5, 0)),
    ]
    for number in rng.permutation(len(edits)):
        edits[number]()
        scene.sync()
        scene.sync()  # a frame in which nothing changes: motion comes to rest, as in a scene that has no frame before
        sensor.update(None, out)
        followed = {name: array.numpy()[0] for name, array in out.items()}
        assert differing(followed, render(stage, "/perspective"), FRESH) == [], number


def test_run_to_run(brute, tmp_path):
    """Two more processes, with other thread counts, give the bits of this one."""
    path = tmp_path / "stage.usda"
    stage = random_stage(brute, 5)
    stage.GetRootLayer().Export(str(path))
    script = (
        "import hashlib, sys, numpy as np, hdwarp\n"
        "frame = hdwarp.render(sys.argv[1], '/perspective', aovs=sys.argv[2].split(), resolution=(150, 101), device='cpu')\n"
        "digest = hashlib.sha256()\n"
        "for name in sys.argv[2].split():\n"
        "    digest.update(name.encode() + np.ascontiguousarray(frame[name]).tobytes())\n"
        "print('bits', digest.hexdigest())\n"
    )
    expected = bits(render(path, "/perspective"))
    for count in ("1", "3"):
        command = [sys.executable, "-c", script, str(path), " ".join(ALL)]
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"HDWARP_THREADS": count}, check=True, timeout=250)
        assert f"bits {expected}" in done.stdout
