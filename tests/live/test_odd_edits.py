"""Edits that Usd makes in ways of its own: layers reloaded, muted and gone, arcs that bring payloads, masks, undone edits."""

from __future__ import annotations

from pathlib import Path

import pytest
from pxr import Sdf, Usd, UsdGeom, UsdShade, UsdUtils
from tests.live import moving
from tests.live.test_live_stage import check
from tests.live.test_time_values import world_from

from hdwarp.errors import StageError
from hdwarp.scene import Scene, SyncCounts

HEADER = "#usda 1.0\n"
NOTHING = SyncCounts()


def ball(name: str, radius: float, more: str = "") -> str:
    return f'def Xform "{name}"\n{{\n    def Sphere "ball"\n    {{\n        double radius = {radius}\n{more}\n    }}\n}}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "asset.usda").write_text(HEADER + ball("asset", 1.0))
    (tmp_path / "sub.usda").write_text(HEADER + ball("sub", 0.5))
    return tmp_path


@pytest.fixture
def stage(folder: Path) -> Usd.Stage:
    """Two references (one of them an instance), a payload and a sublayer, all files."""
    moving.new_stage(3).Export(str(folder / "root.usda"), addSourceFileComment=False)
    stage = Usd.Stage.Open(str(folder / "root.usda"))
    stage.GetRootLayer().subLayerPaths.append("./sub.usda")
    for i, name in enumerate(("one", "two")):
        prim = stage.DefinePrim(f"/World/{name}", "Xform")
        prim.GetReferences().AddReference("./asset.usda", "/asset")
        prim.SetInstanceable(name == "two")
        UsdGeom.XformCommonAPI(prim).SetTranslate((3.0 * i, 0, 0))
    prim = stage.DefinePrim("/World/three", "Xform")
    prim.GetPayloads().AddPayload("./asset.usda", "/asset")
    UsdGeom.XformCommonAPI(prim).SetTranslate((-3, 0, 0))
    stage.GetRootLayer().Save()
    return stage


def radius(scene: Scene, path: str) -> float:
    found = world_from(scene, path)
    return float(found[0, 0, 0]) if len(found) else 0.0


def test_a_layer_reloaded(stage, folder, device):
    with Scene(stage, device=device, time=1) as scene:
        for text, expected in ((ball("asset", 2.0), 2.0), (ball("asset", 0.5) + ball("more", 1.0), 0.5), (ball("other", 1.0), 0.0)):
            (folder / "asset.usda").write_text(HEADER + text)
            Sdf.Layer.Find(str(folder / "asset.usda")).Reload(force=True)
            check(scene, 1)
            assert [radius(scene, f"/World/{name}/ball") for name in ("one", "two", "three")] == [expected] * 3
        (folder / "asset.usda").write_text(HEADER + ball("asset", 3.0))
        stage.Reload()
        check(scene, 1)
        assert radius(scene, "/World/two/ball") == 3.0
        assert not [item for item in scene.diagnostics if item.code == "composition"]  # told while </asset> was not there


def test_a_sublayer_gone(stage, folder, device):
    """It goes from the disk, the stage is reloaded; it is written again, and reloaded."""
    with Scene(stage, device=device, time=1) as scene:
        assert radius(scene, "/sub/ball") == 0.5
        (folder / "sub.usda").unlink()
        stage.Reload()
        check(scene, 1)
        (folder / "sub.usda").write_text(HEADER + ball("sub", 0.75))
        stage.Reload()
        check(scene, 1)
        assert radius(scene, "/sub/ball") == 0.75


def told_of_layers(scene: Scene) -> list[tuple[str, str]]:
    """(severity and path, message) of what is told of arcs, file names without folders."""
    folder = f"{Path(scene.stage.GetRootLayer().realPath).parent}/"
    return [
        (f"{item.severity} {item.path.replace(folder, '')}", item.message.replace(folder, ""))
        for item in scene.diagnostics
        if item.code == "composition"
    ]


ASKERS = {"sub.usda": "root.usda", "asset.usda": "root.usda", "deep.usda": "sub.usda", "part.usda": "asset.usda", "box.usdz": "root.usda"}


@pytest.mark.parametrize("by", ["stage", "layer"])
@pytest.mark.parametrize(("file", "asker"), ASKERS.items())
def test_files_that_go_are_told_until_they_are_back(file, asker, by, stage, folder, device):
    """A sublayer, what references and a payload bring, a sublayer's sublayer, a reference in a reference, a package. Usd draws on."""
    deep, part, box = (folder / name for name in ("deep.usda", "part.usda", "box.usda"))
    deep.write_text(HEADER + ball("deep", 0.2))
    (folder / "sub.usda").write_text("#usda 1.0\n(subLayers = [@deep.usda@])\n" + ball("sub", 0.5))
    part.write_text(HEADER + ball("part", 0.3))
    inner = 'def Xform "more" (references = @./part.usda@</part>) {}'
    (folder / "asset.usda").write_text(HEADER + ball("asset", 1.0).rstrip("}\n") + "}\n" + inner + "\n}\n")
    box.write_text(HEADER + ball("box", 0.4))
    assert UsdUtils.CreateNewUsdzPackage(str(box), str(folder / "box.usdz"))
    stage.DefinePrim("/World/box", "Xform").GetReferences().AddReference("./box.usdz", "/box")
    stage.GetRootLayer().Save()
    stage.Reload()

    def reload() -> None:
        stage.Reload() if by == "stage" else Sdf.Layer.Find(str(folder / file)).Reload(force=True)

    paths = ("/sub/ball", "/deep/ball", "/World/two/ball", "/World/two/more/ball", "/World/box/ball")
    with Scene(stage, device=device, time=1) as scene:
        seen = [radius(scene, path) for path in paths]
        assert all(seen) and not told_of_layers(scene)
        (folder / file).rename(folder / "elsewhere")
        reload()
        done = check(scene, 1)
        assert done == NOTHING
        ((path, message),) = told_of_layers(scene)
        assert path == f"error {asker}" and f"The file of @{file}@" in message and f"of @{asker}@, is gone" in message
        assert [radius(scene, path) for path in paths] == seen
        check(scene, 2)  # at another time, and after an edit
        UsdGeom.Sphere.Define(stage, "/World/new")
        check(scene, 2)
        assert told_of_layers(scene) == [(path, message)]
        (folder / "elsewhere").rename(folder / file)
        reload()
        check(scene, 2)
        assert not told_of_layers(scene) and [radius(scene, path) for path in paths] == seen
        assert scene.sync() == NOTHING


def test_a_file_that_goes_and_the_arc_after_it(stage, folder, device):
    """Nobody asks for the file any more: nothing is told. It is asked for again: now Usd tells, as it cannot open it."""
    with Scene(stage, device=device, time=1) as scene:
        (folder / "sub.usda").unlink()
        stage.Reload()
        check(scene, 1)
        assert len(told_of_layers(scene)) == 1
        stage.GetRootLayer().subLayerPaths.clear()
        check(scene, 1)
        assert not told_of_layers(scene) and radius(scene, "/sub/ball") == 0.0
        stage.GetRootLayer().subLayerPaths.append("./sub.usda")
        check(scene, 1)
        ((_, message),) = told_of_layers(scene)
        assert "Could not load sublayer @sub.usda@" in message


def test_lost_files_of_several_askers_and_strict_scenes(stage, folder, device):
    (folder / "other.usda").write_text(HEADER + 'def Xform "other" (references = @./asset.usda@</asset>) {}\n')
    stage.DefinePrim("/World/more", "Xform").GetReferences().AddReference("./other.usda", "/other")
    stage.GetRootLayer().Save()
    with Scene(stage, device=device, time=1, strict=True) as scene:
        (folder / "asset.usda").rename(folder / "elsewhere")
        stage.Reload()
        for _ in range(2):
            with pytest.raises(StageError, match=r"other\.usda@ \(and of 1 other layer\), is gone"):
                scene.sync()
        assert radius(scene, "/World/more/ball") == 1.0
        (folder / "elsewhere").rename(folder / "asset.usda")
        check(scene, 1)
        assert not told_of_layers(scene)


def test_files_that_nobody_has_lost(folder, device):
    """A root layer nobody asks for, layers in memory, a layer that was never saved."""
    stage = Usd.Stage.CreateNew(str(folder / "unsaved.usda"))
    new = Sdf.Layer.New(Sdf.FileFormat.FindByExtension("usda"), str(folder / "new.usda"))
    new.ImportFromString(HEADER + ball("new", 0.5))
    anonymous = Sdf.Layer.CreateAnonymous()
    anonymous.ImportFromString(HEADER + ball("memory", 0.25))
    stage.GetRootLayer().subLayerPaths[:] = ["./new.usda", anonymous.identifier]
    UsdGeom.Camera.Define(stage, "/cam")
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    with Scene(stage, device=device, time=1) as scene:
        assert (radius(scene, "/new/ball"), radius(scene, "/memory/ball")) == (0.5, 0.25)
        (folder / "unsaved.usda").unlink()
        check(scene, 1)
        assert not told_of_layers(scene)


def test_a_file_that_is_not_there_yet(stage, folder, device):
    """The reference is broken when the scene is opened, and mended later: what was told then is told no more."""
    prim = stage.DefinePrim("/World/late", "Xform")
    prim.GetReferences().AddReference("./late.usda", "/late")
    stage.GetRootLayer().Save()
    with Scene(stage, device=device, time=1) as scene:
        assert [item.path for item in scene.diagnostics if item.code == "composition"]
        (folder / "late.usda").write_text(HEADER + ball("late", 1.25))
        stage.Reload()
        check(scene, 1)
        assert radius(scene, "/World/late/ball") == 1.25
        assert not [item for item in scene.diagnostics if item.code == "composition"]


def test_muting(stage, device):
    sub = stage.GetRootLayer().ComputeAbsolutePath("./sub.usda")
    asset = stage.GetRootLayer().ComputeAbsolutePath("./asset.usda")
    with Scene(stage, device=device, time=1) as scene:
        for mute, unmute, seen in (([sub], [], (0, 1)), ([asset], [sub], (1, 0)), ([], [asset], (1, 1)), ([sub, asset], [], (0, 0))):
            stage.MuteAndUnmuteLayers(mute, unmute)
            check(scene, 1)
            assert (bool(radius(scene, "/sub/ball")), bool(radius(scene, "/World/two/ball"))) == seen


def test_variants_that_bring_payloads(stage, folder, device):
    (folder / "big.usda").write_text(HEADER + ball("asset", 2.5))
    prim = stage.DefinePrim("/World/model", "Xform")
    variants = prim.GetVariantSets().AddVariantSet("size")
    for name in ("small", "big", "none"):
        variants.AddVariant(name)
        variants.SetVariantSelection(name)
        with variants.GetVariantEditContext():
            if name != "none":
                prim.GetPayloads().AddPayload("./big.usda" if name == "big" else "./asset.usda", "/asset")
    with Scene(stage, device=device, time=1) as scene:
        for selected, expected in (("small", 1.0), ("big", 2.5), ("none", 0.0), ("big", 2.5)):
            variants.SetVariantSelection(selected)
            check(scene, 1)
            assert radius(scene, "/World/model/ball") == expected
        stage.Unload("/World/model")
        check(scene, 1)
        assert radius(scene, "/World/model/ball") == 0.0
        variants.SetVariantSelection("small")
        stage.Load("/World/model")
        check(scene, 1)
        assert radius(scene, "/World/model/ball") == 1.0


def test_load_rules(stage, device):
    with Scene(stage, device=device, time=1) as scene:
        for rules, expected in ((Usd.StageLoadRules.LoadNone(), 0.0), (Usd.StageLoadRules.LoadAll(), 1.0)):
            stage.SetLoadRules(rules)
            check(scene, 1)
            assert radius(scene, "/World/three/ball") == expected
        rules = Usd.StageLoadRules()
        rules.AddRule("/World/three", Usd.StageLoadRules.NoneRule)
        stage.SetLoadRules(rules)
        check(scene, 1)
        assert [item.path for item in scene.diagnostics if item.code == "unloaded"] == ["/World/three"]


def test_population_mask(stage, device):
    with Scene(stage, device=device, time=1) as scene:
        for paths, seen in ((["/World/two", "/cam"], [False, True]), (["/World/one", "/cam"], [True, False]), (["/"], [True, True])):
            stage.SetPopulationMask(Usd.StagePopulationMask(paths))
            check(scene, 1, paths)
            assert [bool(radius(scene, f"/World/{name}/ball")) for name in ("one", "two")] == seen


def test_relocates(stage, device):
    """A prim from below a reference is shown elsewhere, under another name."""
    with Scene(stage, device=device, time=1) as scene:
        for target in ("/World/one/renamed", "/World/renamed", ""):
            stage.GetRootLayer().relocates = [(Sdf.Path("/World/one/ball"), Sdf.Path(target))]
            check(scene, 1, target)
            assert bool(target) == bool(target and radius(scene, target))
            assert radius(scene, "/World/one/ball") == 0.0
        stage.GetRootLayer().ClearRelocates()
        check(scene, 1)
        assert radius(scene, "/World/one/ball") == 1.0


def test_nested_instances_toggled(stage, device):
    """An instance that holds an instance; either is made one, and none, in turn."""
    inner = stage.DefinePrim("/Parts/outer/inner", "Xform")
    inner.GetReferences().AddReference("./asset.usda", "/asset")
    stage.GetPrimAtPath("/Parts").SetSpecifier(Sdf.SpecifierClass)
    users = [stage.DefinePrim(f"/World/user{i}", "Xform") for i in range(2)]
    for i, user in enumerate(users):
        user.GetReferences().AddInternalReference("/Parts/outer")
        UsdGeom.XformCommonAPI(user).SetTranslate((0, 2.0 + 2 * i, 0))
    with Scene(stage, device=device, time=1) as scene:
        for outer_is, inner_is in ((True, False), (True, True), (False, True), (False, False), (True, True)):
            for prim, value in ((users[0], outer_is), (users[1], True), (inner, inner_is)):
                prim.SetInstanceable(value)
            check(scene, 1, outer_is, inner_is)
            assert all(radius(scene, f"/World/user{i}/inner/ball") == 1.0 for i in range(2))


def test_undone_by_clearing_the_session_layer(stage, device):
    with Scene(stage, device=device, time=1) as scene:
        before = {path: radius(scene, path) for path in scene.index.prim_paths}
        stage.SetEditTarget(stage.GetSessionLayer())
        for _ in range(2):
            UsdGeom.Sphere(stage.GetPrimAtPath("/World/one/ball")).GetRadiusAttr().Set(0.1)
            stage.GetPrimAtPath("/World/two").SetActive(False)
            UsdGeom.Cube.Define(stage, "/World/new")
            check(scene, 1)
            stage.GetSessionLayer().Clear()
            check(scene, 1)
            assert {path: radius(scene, path) for path in scene.index.prim_paths} == before


def test_a_change_block(stage, device):
    """Many edits of Sdf in one notice."""
    layer = stage.GetRootLayer()
    with Scene(stage, device=device, time=1) as scene:
        with Sdf.ChangeBlock():
            Sdf.CreatePrimInLayer(layer, "/World/row").specifier = Sdf.SpecifierDef
            for i in range(40):
                spec = Sdf.CreatePrimInLayer(layer, f"/World/row/ball{i}")
                spec.specifier, spec.typeName = Sdf.SpecifierDef, "Sphere"
                Sdf.AttributeSpec(spec, "radius", Sdf.ValueTypeNames.Double).default = 0.1
            del layer.GetPrimAtPath("/World").nameChildren["one"]
            layer.subLayerPaths.clear()
        done = check(scene, 1)
        assert (done.instances_inserted, done.instances_removed) == (40, 2)


def test_an_edit_taken_back(stage, device):
    """Before anybody looks: it comes to nothing."""
    with Scene(stage, device=device, time=1) as scene:
        prim = UsdGeom.Sphere.Define(stage, "/World/brief").GetPrim()
        stage.RemovePrim(prim.GetPath())
        attribute = stage.GetAttributeAtPath("/World/two.xformOp:translate")
        old = attribute.Get()
        attribute.Set((9, 9, 9))
        attribute.Set(old)
        stage.GetPrimAtPath("/World/one").SetActive(False)
        stage.GetPrimAtPath("/World/one").SetActive(True)
        stage.GetPrimAtPath("/World/two").SetInstanceable(False)
        stage.GetPrimAtPath("/World/two").SetInstanceable(True)
        done = check(scene, 1)
        kept = ("instances_inserted", "instances_removed", "instances_changed", "rows_uploaded", "blas_built", "meshes_inserted")
        assert not any(getattr(done, name) for name in kept), done
        assert scene.sync() == NOTHING


def test_another_type_at_the_same_path(stage, device):
    path = "/World/shifter"
    with Scene(stage, device=device, time=1) as scene:
        for kind in ("Sphere", "Cube", "Mesh", "Camera", "PointInstancer", "Material", "SphereLight", "Cube", "", "Sphere"):
            if kind == "Mesh":
                stage.RemovePrim(path)
                moving.add_mesh(stage, path)
            elif kind == "PointInstancer":
                stage.RemovePrim(path)
                instancer = UsdGeom.PointInstancer.Define(stage, path)
                instancer.CreatePrototypesRel().SetTargets(["/World/calm0"])
                instancer.CreateProtoIndicesAttr([0, 0])
                instancer.CreatePositionsAttr([(0, 2, 0), (0, 3, 0)])
            else:
                stage.DefinePrim(path).SetTypeName(kind)
            check(scene, 1, kind)


def test_a_material_goes_and_something_has_none(stage, device):
    """What was bound to it has none from then on, whether or not others had none before."""
    moving.material(stage)
    UsdShade.MaterialBindingAPI.Apply(stage.GetPrimAtPath("/World/one")).Bind(UsdShade.Material.Get(stage, "/World/Looks/paint"))
    UsdShade.MaterialBindingAPI.Apply(stage.GetPrimAtPath("/World/calm0"))
    stage.GetPrimAtPath("/World/calm0").CreateRelationship("material:binding").SetTargets(["/nowhere"])
    with Scene(stage, device=device, time=1) as scene:
        assert scene.index.material_paths == ["/World/Looks/paint"]
        stage.RemovePrim("/World/Looks")
        check(scene, 1)
        assert scene.index.material_paths == []


def test_a_shader_outside_of_its_material(stage, device):
    """It goes and comes with what is above it, renamed or inactive, though no material is there."""
    moving.material(stage)
    colors = {"/Nodes/inner/shader": (0.5, 0.25, 0.125), "": (0.18, 0.18, 0.18)}
    shader = UsdShade.Shader.Define(stage, "/Nodes/inner/shader")
    shader.CreateIdAttr("UsdPreviewSurface")
    shader.CreateInput("diffuseColor", Sdf.ValueTypeNames.Color3f).Set(colors["/Nodes/inner/shader"])
    material = UsdShade.Material.Get(stage, "/World/Looks/paint")
    material.GetSurfaceOutput().ConnectToSource(shader.ConnectableAPI(), "surface")
    stage.RemovePrim("/World/Looks/paint/shader")
    with Scene(stage, device=device, time=1) as scene:

        def color() -> tuple[float, ...]:
            check(scene, 1)
            return scene.index.materials[scene.index.material_rows["/World/Looks/paint"]].diffuse_color

        assert color() == colors["/Nodes/inner/shader"]
        for active in (False, True, False, True):
            stage.GetPrimAtPath("/Nodes").SetActive(active)
            assert color() == colors["/Nodes/inner/shader" if active else ""]
        stage.GetPrimAtPath("/Nodes/inner").SetActive(False)
        assert color() == colors[""]
        stage.RemovePrim("/Nodes/inner")
        assert color() == colors[""]


def test_what_is_told_of_instances(stage, device):
    """Of a prim that all of them have once, at the first that is there."""
    broken = stage.DefinePrim("/Parts/piece", "Xform")
    moving.add_mesh(stage, "/Parts/piece/sheet", indices=(0, 1, 99, 0, 2, 3))
    UsdGeom.Sphere.Define(stage, "/Parts/piece/ball").GetPrim().CreateAttribute("purpose", Sdf.ValueTypeNames.Token).Set("odd")
    stage.GetPrimAtPath("/Parts").SetSpecifier(Sdf.SpecifierClass)
    for name in ("a", "b", "c"):
        prim = stage.DefinePrim(f"/World/{name}", "Xform")
        prim.GetReferences().AddInternalReference(broken.GetPath())
        prim.SetInstanceable(True)

    def places() -> set[str]:
        return {item.path for item in scene.diagnostics if item.code in ("index-range", "purpose")}

    with Scene(stage, device=device, time=1) as scene:
        assert places() == {"/World/a/sheet", "/World/a/ball"}
        UsdGeom.XformCommonAPI(stage.GetPrimAtPath("/World/c")).SetTranslate((0, 1, 0))  # read again, alone
        check(scene, 1)
        assert places() == {"/World/a/sheet", "/World/a/ball"}
        stage.RemovePrim("/World/a")
        check(scene, 1)
        assert places() == {"/World/b/sheet", "/World/b/ball"}


def test_skinned_instances_with_normals_of_their_own(stage, device):
    """Instances in one pose are one mesh, but for normals that one of them inherits."""
    moving.rig(stage)
    for k in range(2):
        prim = stage.DefinePrim(f"/World/rig{k}")
        prim.GetReferences().AddInternalReference("/World/rig")
        prim.SetInstanceable(True)
    normals = UsdGeom.PrimvarsAPI(stage.GetPrimAtPath("/World/rig1")).CreatePrimvar("normals", Sdf.ValueTypeNames.Normal3fArray)

    def normals_of(path: str) -> object:
        return next(gprim.mesh.normals for key, gprim in scene.index.gprims.items() if key[0] == path)

    with Scene(stage, device=device, time=1) as scene:
        for value in ([(0, 0, 1)], [(1, 0, 0)]):
            normals.Set(value)
            check(scene, 1)
            assert normals_of("/World/rig0/sheet") is None
            assert [item.path for item in scene.diagnostics if item.code == "skinned-normals"] == ["/World/rig1/sheet"]


def test_prototypes_that_lead_through_another_relationship(device):
    """PointInstancer.prototypes may name a relationship; what that names is followed too."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.Sphere.Define(stage, "/P/ball")
    UsdGeom.Cube.Define(stage, "/P/box")
    stage.GetPrimAtPath("/P").SetSpecifier(Sdf.SpecifierOver)
    forward = stage.OverridePrim("/F").CreateRelationship("fwd")
    forward.SetTargets(["/P/ball"])
    instancer = UsdGeom.PointInstancer.Define(stage, "/pi")
    instancer.CreatePrototypesRel().SetTargets(["/F.fwd"])
    instancer.CreateProtoIndicesAttr([0])
    instancer.CreatePositionsAttr([(0, 0, 0)])
    with Scene(stage, device=device) as scene:
        for targets in (["/P/box"], [], ["/P/ball"]):
            forward.SetTargets(targets)
            scene.sync()
            assert scene.index.prim_paths == targets
        stage.RemovePrim("/F")
        scene.sync()
        assert scene.index.prim_paths == []


def test_a_material_that_nothing_names_is_not_worth_a_look_at_the_stage(device):
    stage = Usd.Stage.CreateInMemory()
    for i in range(50):
        UsdGeom.Sphere.Define(stage, f"/W/s{i}")
    UsdShade.MaterialBindingAPI.Apply(stage.GetPrimAtPath("/W/s3")).Bind(UsdShade.Material.Define(stage, "/Looks/red"))
    with Scene(stage, device=device) as scene:
        UsdShade.Material.Define(stage, "/Looks/idle")
        assert scene.sync().prims_read <= 2
        UsdShade.MaterialBindingAPI.Apply(stage.GetPrimAtPath("/W/s4")).GetDirectBindingRel().SetTargets(["/Looks/late"])
        scene.sync()
        assert scene.index.material_paths == ["/Looks/red"]
        UsdShade.Material.Define(stage, "/Looks/late")  # somebody waits for this one
        scene.sync()
        assert scene.index.material_paths == ["/Looks/late", "/Looks/red"]


def test_constant_primvars_and_custom_data_leave_arrays_alone(device, monkeypatch):
    from hdwarp.stage import take

    stage = Usd.Stage.CreateInMemory()
    mesh = UsdGeom.Mesh.Define(stage, "/m")
    mesh.CreatePointsAttr([(0, 0, 0), (1, 0, 0), (1, 1, 0)])
    mesh.CreateFaceVertexCountsAttr([3])
    mesh.CreateFaceVertexIndicesAttr([0, 1, 2])
    color = UsdGeom.PrimvarsAPI(mesh).CreatePrimvar("displayColor", Sdf.ValueTypeNames.Color3fArray, "constant")
    color.Set([(1, 0, 0)])
    with Scene(stage, device=device) as scene:
        reads = []
        real = take.read_mesh
        monkeypatch.setattr(take, "read_mesh", lambda *args: reads.append(args) or real(*args))

        def constants() -> dict:
            scene.sync()
            (gprim,) = scene.index.gprims.values()
            return {name: value.tolist() for name, value in gprim.constants.items()}

        color.Set([(0, 1, 0)])
        assert constants() == {"displayColor": [0, 1, 0]}
        mesh.GetPrim().CreateAttribute("userProperties:note", Sdf.ValueTypeNames.Float).Set(1.0)
        mesh.CreateDoubleSidedAttr(True)
        assert constants() and not reads
        color.SetInterpolation("vertex")
        color.Set([(0, 0, 1)] * 3)
        assert constants() == {} and len(reads) == 1
        color.SetInterpolation("constant")
        color.Set([(0, 0, 1)])
        assert constants() == {"displayColor": [0, 0, 1]} and len(reads) == 2
        assert not scene.index.gprims[("/m", (), 0)].mesh.primvars
