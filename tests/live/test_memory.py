"""A session that goes on for hours holds what the stage holds, and no more."""

from __future__ import annotations

import gc
import resource
from pathlib import Path

import numpy as np
import pytest
from pxr import Sdf, Usd, UsdGeom, UsdShade, Vt
from tests.live import moving
from tests.live.test_live_stage import check
from tests.live.test_shrinking import limits

from hdwarp.delegate.render_index import RenderIndex
from hdwarp.scene import Scene
from hdwarp.stage.columns import GeometryKind, Gprim, StageChanges, gprim_keys
from hdwarp.tables.scene_tables import SceneTables

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
    for name in ("gprims", "materials", "cameras", "bodies", "_geometry"):
        sizes[name] = len(getattr(reader, name))
    sizes |= reader._records.sizes() | reader._materials.sizes() | {"stage told": len(list(reader._stage_told))}
    sizes |= {"prototypes": len(reader._prototypes), "varying": len(reader._varying._names or ())}
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


def host_bytes(scene: Scene) -> int:
    """Bytes of the NumPy columns by row."""
    index, tables = scene.index, scene.tables
    columns = [*index.instances._data.values(), *index.subsets._data.values(), *index.tracker._bits.values(), tables._live, tables._kinds]
    columns += [tables._cutouts.hidden, tables._cutouts._partly, tables._places._is_far, tables._tree._main_item]
    columns += [tables.instances._is_posed, tables.instances.rows._member, tables.meshes.centre, tables.meshes.lower, tables.meshes._held]
    return sum(column.nbytes for column in columns)


def previous_bytes(scene: Scene) -> int:
    previous = scene.tables.previous
    return sum(growing.array.capacity for growing in (previous._world_from_object, previous._translation, previous._point_start))


def material_bytes(scene: Scene) -> int:
    return sum(growing.array.capacity for growing in scene.tables.materials._arrays.values())


def fill(stage: Usd.Stage, count: int, parts: int, rng: np.random.Generator) -> None:
    """``count`` cubes, those that are in no other instancer, from point instancers."""
    for part in range(parts):
        path = f"/World/part{part}"
        if stage.GetPrimAtPath(path):
            continue
        instancer = UsdGeom.PointInstancer.Define(stage, path)
        UsdGeom.Cube.Define(stage, f"{path}/cube").CreateSizeAttr(0.05)
        instancer.CreatePrototypesRel().SetTargets([f"{path}/cube"])
        instancer.CreateProtoIndicesAttr(Vt.IntArray(count // parts, 0))
        instancer.CreatePositionsAttr(Vt.Vec3fArray.FromNumpy(rng.uniform(-4, 4, (count // parts, 3)).astype(np.float32)))


def test_instances_that_are_gone_give_their_memory_back(device):
    """99,000 of 100,000 go in random order; then there are as many again, twice."""
    count, parts, left = 100_000, 1000, 10
    rng, stage = np.random.default_rng(0), moving.new_stage(4)
    fill(stage, count, parts, rng)
    with Scene(stage, device=device, time=1) as scene:
        scene.keep_previous()
        for _ in range(2):
            sizes = [(scene.tables.device_bytes, host_bytes(scene), previous_bytes(scene))]
            with Sdf.ChangeBlock():
                for part in rng.permutation(parts)[left:]:
                    del stage.GetRootLayer().GetPrimAtPath("/World").nameChildren[f"part{part}"]
            done = check(scene, 1)
            sizes.append((scene.tables.device_bytes, host_bytes(scene), previous_bytes(scene)))
            assert done.instances_removed == count - left * (count // parts)
            assert done.rows_uploaded == scene.index.instance_count == left * (count // parts) + 6
            assert all(after < before / 40 for before, after in zip(*sizes, strict=True)), sizes
            fill(stage, count, parts, rng)
            check(scene, 1)


def test_meshes_and_their_subsets_give_their_memory_back(device):
    """1,170 of 1,200 prims go, every one with a mesh, a material and a face set of its own."""
    count, left = 1200, 30
    rng, stage = np.random.default_rng(0), moving.new_stage(4)
    layer = stage.GetRootLayer()
    with Sdf.ChangeBlock():
        for i in range(count):
            prim = Sdf.CreatePrimInLayer(layer, f"/World/m{i}")
            prim.specifier, prim.typeName = Sdf.SpecifierDef, "Mesh"
            points = [(x / 9 + i % 40 / 5 - 4, y / 9 + i // 40 / 5 - 4, 1e-4 * i) for x, y, _ in moving.SQUARE]
            for name, kind, value in (
                ("points", Sdf.ValueTypeNames.Point3fArray, points),
                ("faceVertexCounts", Sdf.ValueTypeNames.IntArray, [3, 3]),
                ("faceVertexIndices", Sdf.ValueTypeNames.IntArray, [0, 1, 2, 0, 2, 3]),
            ):
                Sdf.AttributeSpec(prim, name, kind).default = value
            for path, material in ((f"/World/m{i}", f"/World/Looks/a{i}"), (f"/World/m{i}/part", f"/World/Looks/b{i % 50}")):
                Sdf.CreatePrimInLayer(layer, material).specifier = Sdf.SpecifierDef
                layer.GetPrimAtPath(material).typeName = "Material"
                bound = Sdf.CreatePrimInLayer(layer, path)
                bound.specifier = Sdf.SpecifierDef
                bound.SetInfo("apiSchemas", Sdf.TokenListOp.CreateExplicit(["MaterialBindingAPI"]))
                Sdf.RelationshipSpec(bound, "material:binding").targetPathList.explicitItems = [material]
            part = layer.GetPrimAtPath(f"/World/m{i}/part")
            part.typeName = "GeomSubset"
            Sdf.AttributeSpec(part, "familyName", Sdf.ValueTypeNames.Token).default = "materialBind"
            Sdf.AttributeSpec(part, "indices", Sdf.ValueTypeNames.IntArray).default = [1]
    with limits(400, 4), Scene(stage, device=device, time=1) as scene:
        assert min(map(len, (scene.index.subset_rows, scene.index.material_rows, scene.index.meshes))) >= count
        before = scene.tables.device_bytes, host_bytes(scene), material_bytes(scene)
        with Sdf.ChangeBlock():
            for i in rng.permutation(count)[left:]:
                layer.GetPrimAtPath(f"/World/m{i}").active = layer.GetPrimAtPath(f"/World/Looks/a{i}").active = False
        check(scene, 1)
        after = scene.tables.device_bytes, host_bytes(scene), material_bytes(scene)
        assert all(now < then / 25 for now, then in zip(after, before, strict=True)), (before, after)
        with Sdf.ChangeBlock():
            for i in rng.permutation(count)[:600]:
                layer.GetPrimAtPath(f"/World/m{i}").active = layer.GetPrimAtPath(f"/World/Looks/a{i}").active = True
        check(scene, 1)


def test_around_any_size_rows_come_and_go_without_work(device):
    """After a renumbering it takes four times as many rows, or a quarter, to do anything again."""
    index, tables = RenderIndex(), SceneTables(device)
    balls = gprim_keys([Gprim(f"/p{i}", GeometryKind.SPHERE, None, np.eye(4)[None]) for i in range(2000)])
    steps = []
    with limits(400, 4):
        for count in (2000, 600, 499, 501, 499, 900, 499, 501, 500, 126, 124, 126, 124):
            index.apply(StageChanges(gprims={key: ball if i < count else None for i, (key, ball) in enumerate(balls.items())}))
            tables.sync(index)
            steps.append(index.renumberings)
            assert index.instance_count == count
    assert steps == [0, 0] + [1] * 7 + [2] * 4
    assert index.instances.capacity == 128


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
