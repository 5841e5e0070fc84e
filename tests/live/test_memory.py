"""A session that goes on for hours holds what the stage holds, and no more."""

from __future__ import annotations

import gc
import resource
from pathlib import Path

import pytest
from pxr import UsdGeom, UsdShade
from tests.live import moving
from tests.live.test_live_stage import check

from hdwarp.scene import Scene

MEBIBYTE = 1 << 20


def resident() -> int:
    """Bytes of memory this process holds."""
    status = Path("/proc/self/statm")
    if status.exists():
        return int(status.read_text().split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def held(scene: Scene) -> dict[str, int]:
    """Sizes of everything that rows, arrays and records are kept in."""
    index, tables, reader = scene.index, scene.tables, scene.reader
    rows = ("mesh_rows", "gprim_rows", "subset_rows", "material_rows", "camera_rows", "site_rows")
    sizes = {name: getattr(index, name).allocator.size for name in rows}
    sizes |= {f"{name} keys": len(getattr(index, name)) for name in rows}
    sizes |= {"host": index.instances.capacity, "subsets": index.subsets.capacity, "users": len(index.mesh_rows._users)}
    for name in ("meshes", "instances", "materials", "cameras"):
        arrays = getattr(getattr(tables, name), "_arrays", {})
        sizes |= {f"{name}.{column}": growing.array.shape[0] for column, growing in arrays.items()}
    sizes |= {"nodes": tables._nodes.boxes.array.shape[0], "batches": len(tables.meshes._batches)}
    for name in ("gprims", "materials", "cameras", "bodies", "_records", "_geometry", "_bindings", "_bound", "_contents", "_sources"):
        sizes[name] = len(getattr(reader, name))
    sizes |= {"told": len(reader._material_told), "uses": len(reader._material_uses), "stage told": len(list(reader._stage_told))}
    sizes |= {"prototypes": len(reader._prototypes), "varying": len(reader._varying._names or ()), "types": len(reader._type_counts)}
    return sizes


def churn(stage, scene: Scene, i: int) -> None:
    """Something comes, something changes, something goes: after a round of 12 cycles the stage holds what it held."""
    kind = i % 12
    path = f"/World/x{i // 12 % 5}"
    if kind == 0:
        mesh = moving.add_mesh(stage, path, [(x, y, 0.001 * i) for x, y, _ in moving.SQUARE])
        mesh.AddTranslateOp().Set((0, 0, 0.01 * (i % 100)))
        UsdShade.MaterialBindingAPI.Apply(mesh.GetPrim()).Bind(UsdShade.Material.Get(stage, "/World/Looks/paint"))
    elif kind == 1:
        UsdGeom.Mesh.Get(stage, path).GetPointsAttr().Set([(x, y, 0.1 + 0.001 * i) for x, y, _ in moving.SQUARE])
    elif kind == 2:
        UsdGeom.Mesh.Get(stage, path).GetFaceVertexCountsAttr().Set([4])
        UsdGeom.Mesh.Get(stage, path).GetFaceVertexIndicesAttr().Set([0, 1, 2, 3])
    elif kind == 3:
        UsdGeom.Mesh.Get(stage, path).GetPointsAttr().Set([(x, y, 0.2 + 0.001 * i) for x, y, _ in moving.SQUARE], 3.0)
    elif kind == 4:
        stage.RemovePrim(path)
    elif kind == 5:
        instancer = moving.new_instancer(stage)
        count = 3 + i % 5
        instancer.GetProtoIndicesAttr().Set([0] * count)
        instancer.GetPositionsAttr().Set([(k, 0, 0.001 * i) for k in range(count)])
    elif kind == 6:
        UsdGeom.PointInstancer.Get(stage, "/World/mover").GetPositionsAttr().Set([(k, 1, 0) for k in range(3 + (i - 1) % 5)])
    elif kind == 7:
        stage.RemovePrim("/World/mover")
    elif kind == 8:
        for name in ("i1", "i2"):
            prim = stage.DefinePrim(f"/World/{name}", "Xform")
            prim.GetReferences().AddInternalReference("/World/rig")
            prim.SetInstanceable(True)
    elif kind == 9:
        UsdGeom.Camera.Define(stage, "/World/i3")
        UsdShade.Material.Define(stage, "/World/Looks/more")
        UsdShade.MaterialBindingAPI.Apply(stage.GetPrimAtPath("/World/calm0")).Bind(UsdShade.Material.Get(stage, "/World/Looks/more"))
    elif kind == 10:
        UsdShade.MaterialBindingAPI(stage.GetPrimAtPath("/World/calm0")).UnbindAllBindings()
        for name in ("i1", "i2", "i3", "Looks/more"):
            stage.RemovePrim(f"/World/{name}")
    scene.sync(1.0 + i % 3)


def cycles(device: str, warm: int, count: int) -> int:
    """Bytes by which the process has grown over ``count`` cycles after ``warm`` ones; everything else has to hold steady."""
    stage = moving.new_stage(20)
    moving.material(stage)
    stage.RemovePrim("/World/mover")
    moving.joints(stage)
    with Scene(stage, device=device, time=1) as scene:
        for i in range(warm):
            churn(stage, scene, i)
        gc.collect()
        sizes, memory = held(scene), resident()
        for i in range(warm, warm + count):
            churn(stage, scene, i)
        gc.collect()
        grown = resident() - memory
        assert held(scene) == sizes
        check(scene, 2)
    return grown


def test_hundreds_of_edits_hold_steady(device):
    assert cycles(device, 240, 300) < 8 * MEBIBYTE


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_ten_thousand_edits_hold_steady(device):
    assert cycles(device, 1200, 9600) < 8 * MEBIBYTE


def opened_and_closed(device: str, warm: int, count: int) -> tuple[int, int]:
    """(bytes, Python objects) that ``count`` scenes leave behind after ``warm`` ones."""
    stage = moving.new_stage(20)
    for mover in (moving.joints, moving.instances):
        mover(stage)

    def once(close: bool) -> None:
        scene = Scene(stage, device=device, time=1)
        UsdGeom.XformCommonAPI(stage.GetPrimAtPath("/World/calm1")).SetTranslate((0, 0, 1))
        scene.sync(5)
        if close:
            scene.close()

    for _ in range(warm):
        once(True)
    gc.collect()
    memory, objects = resident(), len(gc.get_objects())
    for i in range(count):
        once(i % 2 == 0)
    gc.collect()
    return resident() - memory, len(gc.get_objects()) - objects


def test_scenes_that_were_opened_leave_nothing_behind(device):
    memory, objects = opened_and_closed(device, 20, 50)
    assert objects < 200
    assert memory < 8 * MEBIBYTE


@pytest.mark.slow
def test_two_hundred_scenes_leave_nothing_behind(device):
    memory, objects = opened_and_closed(device, 20, 200)
    assert objects < 200
    assert memory < 8 * MEBIBYTE
