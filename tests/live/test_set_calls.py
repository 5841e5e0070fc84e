"""Calls of set_points and set_primvar: what may be given, what it costs, and whatever is edited between them."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp
from pxr import UsdGeom
from tests.live.live_edits import LiveStage
from tests.live.live_more import RichStage
from tests.live.sheets import SIZE, add_sheet, assert_same, authored, deformed, new_stage, picture
from tests.live.test_live_stage import SEQUENCES
from tests.live.test_live_stage import assert_same as assert_equal_scenes

import hdwarp
from hdwarp.errors import ArgumentError, Error
from hdwarp.stage.columns import GeometryKind
from hdwarp.tables import bvh, refit_kernels
from hdwarp.tables import written as written_tables


def test_later_calls_allocate_nothing_and_launch_little(device, monkeypatch):
    """What is launched does not grow with the mesh; addresses of all columns stay."""
    stage = new_stage()
    add_sheet(stage, "/World/cloth")
    with hdwarp.Scene(stage, device=device) as scene:
        sensor = hdwarp.SensorCamera(scene, cameras="/cam", resolution=SIZE)
        out = sensor.allocate(["normal", "color"])
        arrays = [wp.array(deformed(i), dtype=wp.vec3f, device=device) for i in range(3)]
        heat = wp.array(np.linspace(0, 1, len(deformed(0)), dtype=np.float32), device=device)
        scene.set_points("/World/cloth", arrays[0])
        scene.set_primvar("/World/cloth", "heat", heat)
        scene.set_primvar("/World/cloth", "displayColor", arrays[0])
        out |= sensor.allocate(["primvars:heat"])
        sensor.update(None, out)
        version, launches = scene.tables.layout_version, []
        with monkeypatch.context() as patch:
            patch.setattr(type(scene.device.get_allocator()), "allocate", lambda *_: pytest.fail("memory was allocated"))
            for module in (written_tables, bvh):
                original = module.launch
                patch.setattr(module, "launch", lambda kernel, *a, _o=original, **k: (launches.append(kernel.key), _o(kernel, *a, **k)))
            for array in arrays:
                scene.set_points("/World/cloth", array)
                scene.set_primvar("/World/cloth", "heat", heat)
                scene.set_primvar("/World/cloth", "displayColor", array)
                sensor.update(None, out)
        assert scene.tables.layout_version == version
        assert len(launches) == 3 * (4 + 1 + 1 + 2), launches
        assert refit_kernels.fill_leaves.key in launches


@pytest.mark.parametrize("given", ["vec3f", "rows", "numpy", "strided", "interface", "dlpack"])
def test_arrays_of_any_library(given, device):
    points = deformed(4)

    class Interface:
        def __init__(self, name: str) -> None:
            setattr(self, name, getattr(points, name))

    class Dlpack:
        __dlpack__, __dlpack_device__ = points.__dlpack__, points.__dlpack_device__

    wide = np.zeros((len(points), 4), np.float32)
    wide[:, :3] = points
    arrays = {
        "vec3f": lambda: wp.array(points, dtype=wp.vec3f, device=device),
        "rows": lambda: wp.array(points, dtype=wp.float32, device=device),
        "numpy": lambda: points,
        "strided": lambda: wide[:, :3],
        "interface": lambda: Interface("__array_interface__"),
        "dlpack": Dlpack,
    }
    if given in ("interface", "dlpack") and device != "cpu":
        pytest.skip("these are of the host")
    stage = new_stage()
    add_sheet(stage, "/World/cloth")
    with hdwarp.Scene(stage, device=device) as scene:
        scene.set_points("/World/cloth", arrays[given]())
        assert_same(picture(scene), picture(authored(stage, "/World/cloth", points)))


def test_progressive_pictures_start_over(device):
    stage = new_stage()
    add_sheet(stage, "/World/cloth")
    with hdwarp.Scene(stage, device=device) as scene:
        scene.set_points("/World/cloth", deformed(0))
        task = scene.delegate.create_render_pass(samples=4)
        views = scene.delegate.create_views("/cam", SIZE)
        out = {"color": wp.zeros((1, SIZE[1], SIZE[0]), dtype=wp.vec4f, device=device)}
        for _ in range(4):
            task.execute(views, out, progressive=True)
        assert task.is_converged
        scene.set_points("/World/cloth", deformed(1))
        assert not task.is_converged


def test_bad_calls_name_what_was_given_and_what_would_do(device):
    stage = new_stage()
    add_sheet(stage, "/World/cloth")
    UsdGeom.Sphere.Define(stage, "/World/ball")
    points = deformed(0)
    scene = hdwarp.Scene(stage, device=device)
    before = picture(scene)
    for error, call in {
        r"shape \(168, 3\); expected \(169, 3\)": lambda: scene.set_points("/World/cloth", points[:-1]),
        r"shape \(169, 2\); expected \(169, 3\)": lambda: scene.set_points("/World/cloth", points[:, :2]),
        r"float16 of shape \(169, 3\); expected float32": lambda: scene.set_points("/World/cloth", points.astype(np.float16)),
        "given as list; expected": lambda: scene.set_points("/World/cloth", points.tolist()),
        "nothing is drawn at </World>; below it are </World/ball>, </World/cloth>": lambda: scene.set_points("/World", points),
        "</World/ball> is no mesh but a sphere": lambda: scene.set_points("/World/ball", points),
        "nothing is drawn at </no>; the scene draws": lambda: scene.set_points("/no", None),
        r"168 values; expected 169 \(vertex\) or 288 \(uniform\)": lambda: scene.set_primvar("/World/cloth", "heat", points[:-1, :1]),
        "5 components; expected 1 to 4": lambda: scene.set_primvar("/World/cloth", "heat", np.zeros((169, 5), np.float32)),
        r"169 values; expected 288 \(uniform\)": lambda: scene.set_primvar("/World/cloth", "h", points, interpolation="uniform"),
        "interpolation='face'": lambda: scene.set_primvar("/World/cloth", "heat", points, interpolation="face"),
        r"169 values; expected 1 \(constant\)": lambda: scene.set_primvar("/World/ball", "heat", points),
        "name='': expected": lambda: scene.set_primvar("/World/cloth", "", points),
    }.items():  # fmt: skip
        with pytest.raises(ArgumentError, match=error):
            call()
    assert_same(picture(scene), before)
    assert len(scene.index.meshes) == 1
    scene.close()
    for call in (lambda: scene.set_points("/World/cloth", points), lambda: scene.set_primvar("/World/cloth", "heat", points)):
        with pytest.raises(Error, match="the scene is closed"):
            call()


@pytest.mark.parametrize("kind", [LiveStage, RichStage])
@pytest.mark.parametrize("seed", range(max(SEQUENCES // 3, 1)))
def test_edits_between_calls(seed, kind, device):
    """Whatever is edited: the bits of a scene opened afresh that gets the values which are still set."""
    live, history = kind(500 + seed), []
    given: dict[tuple[str, str | None], np.ndarray] = {}

    def give(scene: hdwarp.Scene, path: str, name: str | None) -> None:
        if name is None:
            scene.set_points(path, given[path, name])
        else:
            scene.set_primvar(path, name, given[path, name])

    with hdwarp.Scene(live.stage, device=device, time=live.time) as scene:
        for _ in range(5):
            rows = {path: scene.index.mesh_row(path) for path in scene.index.prim_paths}
            found = {path: scene.index.meshes[row] for path, row in rows.items() if row >= 0}
            meshes = [
                path for path, mesh in found.items() if mesh.form in (GeometryKind.MESH, GeometryKind.POINTS)
            ]  # none of curves can be
            for path in live.rng.choice(meshes, min(3, len(meshes)), replace=False).tolist() if meshes else ():
                name, mesh = [None, "heat", "displayColor"][live.rng.integers(3)], found[path]
                count = mesh.face_count if name and mesh.form is GeometryKind.POINTS else len(mesh.points)
                width = 1 if name == "heat" else 3
                given[path, name] = live.rng.normal(size=(1 if live.chance(0.3) and name else count, width)).astype(np.float32)
                give(scene, path, name)
                history.append(f"set {name or 'points'} of {path}")
            history += [live.edit() for _ in range(live.rng.integers(1, 4))]
            scene.sync(live.time)
            written = scene.index.written
            with hdwarp.Scene(live.stage, device=device, time=live.time) as fresh:
                for path, name in given:
                    if path in written.paths_of_points if name is None else written.primvar(path, name):
                        give(fresh, path, name)
                assert_equal_scenes(scene, fresh, history)
            if given and live.chance(0.3):
                path, name = list(given)[live.rng.integers(len(given))]
                if written.keys(path):
                    scene.set_points(path, None) if name is None else scene.set_primvar(path, name, None)
                    history.append(f"gave back {name or 'points'} of {path}")
