"""A stage with everything a live scene follows, and seeded random edits of it. No Warp, no hdWarp: USD alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics, UsdShade
from tests.live.live_text import ASSET, ROOT, SUBLAYER, lines


class LiveStage:
    """``stage`` and its layers; `edit` changes it at random, told by its name."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.asset, self.sublayer, self.root = (Sdf.Layer.CreateAnonymous(f"{name}.usda") for name in ("asset", "sublayer", "root"))
        self.asset.ImportFromString(lines(ASSET))
        self.sublayer.ImportFromString(lines(SUBLAYER))
        text = ROOT.replace("@SUBLAYER@", f"@{self.sublayer.identifier}@").replace("@ASSET@", f"@{self.asset.identifier}@")
        self.root.ImportFromString(lines(text))
        self.stage = Usd.Stage.Open(self.root)
        self.time = 1.0
        self._made = 0
        self.edits: list[Callable[[], None]] = [getattr(self, name) for name in sorted(dir(self)) if name.startswith("do_")]

    def edit(self) -> str:
        """One edit; its name. USD refuses some of them, which changes nothing."""
        chosen = self.edits[self.rng.integers(len(self.edits))]
        try:
            chosen()
        except Exception as error:  # a prim of another type than the edit wants, an edit target that cannot
            return f"{chosen.__name__} refused ({type(error).__name__})"
        return chosen.__name__

    # -- choosing -----------------------------------------------------------------------------------------------------------------

    def pick(self, kind: type | None = None) -> Usd.Prim:
        """Any prim that may be edited; of a schema if given."""
        prims = [
            prim
            for prim in Usd.PrimRange(self.stage.GetPseudoRoot(), Usd.PrimAllPrimsPredicate)
            if not prim.IsPseudoRoot() and prim.GetName() != "cam" and (kind is None or prim.IsA(kind))
        ]
        return prims[self.rng.integers(len(prims))]

    def vector(self, scale: float = 3.0) -> Gf.Vec3d:
        return Gf.Vec3d(*(float(x) for x in self.rng.uniform(-scale, scale, 3)))

    def name(self) -> str:
        self._made += 1
        return f"{'abcxyz'[self.rng.integers(6)]}{self._made}"

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def material(self) -> UsdShade.Material:
        return UsdShade.Material(self.pick(UsdShade.Material))

    # -- placing ------------------------------------------------------------------------------------------------------------------

    def do_move(self) -> None:
        UsdGeom.XformCommonAPI(self.pick(UsdGeom.Xformable)).SetTranslate(self.vector())

    def do_move_more(self) -> None:
        api = UsdGeom.XformCommonAPI(self.pick(UsdGeom.Xformable))
        api.SetRotate(Gf.Vec3f(self.vector(90.0)))
        if self.chance(0.5):
            api.SetScale(Gf.Vec3f(*(float(x) for x in self.rng.uniform(0.0 if self.chance(0.1) else 0.4, 1.6, 3))))

    def do_animate(self) -> None:
        attribute = UsdGeom.XformCommonAPI(self.pick(UsdGeom.Xformable))
        for time in (1.0, 6.0):
            attribute.SetTranslate(self.vector(), time)

    def do_matrix(self) -> None:
        xformable = UsdGeom.Xformable(self.pick(UsdGeom.Xformable))
        xformable.ClearXformOpOrder()
        matrix = Gf.Matrix4d(1.0).SetTranslate(self.vector())
        if self.chance(0.1):
            matrix[0][0] = float("nan")
        xformable.MakeMatrixXform().Set(matrix)

    def do_reset_stack(self) -> None:
        xformable = UsdGeom.Xformable(self.pick(UsdGeom.Xformable))
        xformable.SetResetXformStack(not xformable.GetResetXformStack())

    def do_time(self) -> None:
        self.time = float(self.rng.choice([1.0, 2.5, 6.0, 10.0, 12.0]))

    # -- the hierarchy ------------------------------------------------------------------------------------------------------------

    def do_add(self) -> None:
        parent = self.pick() if self.chance(0.7) else self.stage.GetPrimAtPath("/World")
        path = parent.GetPath().AppendChild(self.name())
        kinds = (UsdGeom.Sphere, UsdGeom.Cube, UsdGeom.Cone, UsdGeom.Plane, UsdGeom.Xform, UsdGeom.Camera, UsdGeom.Scope)
        prim = kinds[self.rng.integers(len(kinds))].Define(self.stage, path).GetPrim()
        if prim.IsA(UsdGeom.Xformable):
            UsdGeom.XformCommonAPI(prim).SetTranslate(self.vector())

    def do_add_mesh(self) -> None:
        mesh = UsdGeom.Mesh.Define(self.stage, self.pick().GetPath().AppendChild(self.name()))
        mesh.CreatePointsAttr([(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, float(self.rng.uniform()))])
        mesh.CreateFaceVertexCountsAttr([4])
        mesh.CreateFaceVertexIndicesAttr([0, 1, 2, 3])

    def do_add_instance(self) -> None:
        prim = UsdGeom.Xform.Define(self.stage, f"/World/{self.name()}").GetPrim()
        prim.GetReferences().AddReference(self.asset.identifier)
        prim.SetInstanceable(self.chance(0.7))
        UsdGeom.XformCommonAPI(prim).SetTranslate(self.vector())

    def do_reference(self) -> None:
        """Something of the stage itself, instances and instancers among it."""
        prim = UsdGeom.Xform.Define(self.stage, f"/World/{self.name()}").GetPrim()
        source = ["/Protos", "/World/group", "/World/scatter", "/World/ball", "/Looks"][self.rng.integers(5)]
        prim.GetReferences().AddInternalReference(source)
        prim.SetInstanceable(self.chance(0.5))
        UsdGeom.XformCommonAPI(prim).SetTranslate(self.vector())

    def do_delete(self) -> None:
        self.stage.RemovePrim(self.pick().GetPath())

    def do_rename(self) -> None:
        editor = Usd.NamespaceEditor(self.stage)
        editor.RenamePrim(self.pick(), self.name())
        editor.ApplyEdits()

    def do_reparent(self) -> None:
        editor = Usd.NamespaceEditor(self.stage)
        editor.ReparentPrim(self.pick(), self.pick())
        editor.ApplyEdits()

    def do_active(self) -> None:
        prim = self.pick()
        prim.SetActive(not prim.IsActive())

    def do_instanceable(self) -> None:
        prims = [prim for prim in self.stage.GetPrimAtPath("/World").GetAllChildren() if prim.HasAuthoredReferences()]
        prim = prims[self.rng.integers(len(prims))]
        prim.SetInstanceable(not prim.IsInstanceable())

    def do_variant(self) -> None:
        prim = self.stage.GetPrimAtPath(["/World/one", "/World/two", "/World/loaded"][self.rng.integers(3)])
        prim.GetVariantSet("look").SetVariantSelection("ab"[self.rng.integers(2)])

    def do_payload(self) -> None:
        loaded = self.stage.GetLoadSet()
        self.stage.Unload("/World/loaded") if "/World/loaded" in loaded else self.stage.Load("/World/loaded")

    def do_mute(self) -> None:
        identifier = self.sublayer.identifier
        muted = self.stage.IsLayerMuted(identifier)
        self.stage.UnmuteLayer(identifier) if muted else self.stage.MuteLayer(identifier)

    def do_sublayers(self) -> None:
        paths = list(self.root.subLayerPaths)
        self.root.subLayerPaths = [] if paths else [self.sublayer.identifier]

    def do_edit_target(self) -> None:
        session = self.stage.GetSessionLayer()
        self.stage.SetEditTarget(session if self.chance(0.5) else self.root)

    def do_clear_session(self) -> None:
        self.stage.GetSessionLayer().Clear()

    def do_edit_asset(self) -> None:
        """In the layer that others refer to."""
        with Sdf.ChangeBlock():
            if self.chance(0.5):
                spec = Sdf.CreatePrimInLayer(self.asset, "/Asset/top/knob")
                Sdf.AttributeSpec(spec, "radius", Sdf.ValueTypeNames.Double) if "radius" not in spec.attributes else None
                spec.attributes["radius"].default = float(self.rng.uniform(0.2, 0.8))
            else:
                spec = Sdf.CreatePrimInLayer(self.asset, f"/Asset/{self.name()}")
                spec.specifier, spec.typeName = Sdf.SpecifierDef, "Cube"

    def do_specifier(self) -> None:
        spec = self.root.GetPrimAtPath(self.pick().GetPath())
        spec.specifier = [Sdf.SpecifierDef, Sdf.SpecifierOver, Sdf.SpecifierClass][self.rng.choice([0, 0, 1, 2])]

    def do_type(self) -> None:
        self.pick().SetTypeName(["Sphere", "Cube", "Xform", "Scope", "Mesh", "Unheard", "PointInstancer"][self.rng.integers(7)])

    def do_block(self) -> None:
        with Sdf.ChangeBlock():
            for attribute in self.pick().GetAttributes():
                if self.chance(0.2):
                    attribute.Block()

    def do_metrics(self) -> None:
        UsdGeom.SetStageMetersPerUnit(self.stage, [1.0, 0.5][self.rng.integers(2)])

    def do_harmless(self) -> None:
        prim = self.pick()
        prim.SetCustomDataByKey("note", float(self.rng.uniform()))
        Usd.ModelAPI(prim).SetKind("component")

    # -- what is inherited ----------------------------------------------------------------------------------------------------------

    def do_visibility(self) -> None:
        imageable = UsdGeom.Imageable(self.pick(UsdGeom.Imageable))
        imageable.MakeInvisible() if self.chance(0.4) else imageable.GetVisibilityAttr().Set("inherited")

    def do_purpose(self) -> None:
        UsdGeom.Imageable(self.pick(UsdGeom.Imageable)).CreatePurposeAttr(["default", "render", "proxy", "guide"][self.rng.integers(4)])

    def do_color(self) -> None:
        prim = self.pick(UsdGeom.Imageable)
        primvar = UsdGeom.PrimvarsAPI(prim).CreatePrimvar("displayColor", Sdf.ValueTypeNames.Color3fArray, "constant")
        primvar.Set([Gf.Vec3f(*(float(x) for x in self.rng.uniform(0, 1, 3)))])
        if self.chance(0.2):
            prim.RemoveProperty("primvars:displayColor")

    def do_primvar(self) -> None:
        prim = self.pick(UsdGeom.Mesh)
        primvar = UsdGeom.PrimvarsAPI(prim).CreatePrimvar(
            "heat", Sdf.ValueTypeNames.FloatArray, ["vertex", "uniform"][self.rng.integers(2)]
        )
        primvar.Set([float(x) for x in self.rng.uniform(0, 1, len(UsdGeom.Mesh(prim).GetPointsAttr().Get(1.0) or ()))])

    def do_normals(self) -> None:
        prim = self.pick(UsdGeom.Imageable)
        primvar = UsdGeom.PrimvarsAPI(prim).CreatePrimvar("normals", Sdf.ValueTypeNames.Normal3fArray, "constant")
        primvar.Set([Gf.Vec3f(self.vector().GetNormalized())])

    def do_body(self) -> None:
        prim = self.pick(UsdGeom.Xformable)
        if prim.HasAPI(UsdPhysics.RigidBodyAPI):
            prim.RemoveAPI(UsdPhysics.RigidBodyAPI)
        else:
            UsdPhysics.RigidBodyAPI.Apply(prim)

    def do_body_enabled(self) -> None:
        prim = self.pick(UsdGeom.Xformable)
        UsdPhysics.RigidBodyAPI.Apply(prim).CreateRigidBodyEnabledAttr(self.chance(0.5))

    # -- materials ------------------------------------------------------------------------------------------------------------------

    def do_bind(self) -> None:
        strength = [UsdShade.Tokens.weakerThanDescendants, UsdShade.Tokens.strongerThanDescendants][self.rng.integers(2)]
        UsdShade.MaterialBindingAPI.Apply(self.pick(UsdGeom.Imageable)).Bind(self.material(), strength)

    def do_unbind(self) -> None:
        UsdShade.MaterialBindingAPI(self.pick(UsdGeom.Imageable)).UnbindAllBindings()

    def do_bind_collection(self) -> None:
        prim = self.pick(UsdGeom.Xformable)
        collection = Usd.CollectionAPI.Apply(prim, "some")
        collection.IncludePath(self.pick(UsdGeom.Imageable).GetPath())
        UsdShade.MaterialBindingAPI.Apply(prim).Bind(collection, self.material(), "some")

    def do_collection(self) -> None:
        found = [c for prim in self.stage.Traverse() for c in Usd.CollectionAPI.GetAll(prim)]
        collection = found[self.rng.integers(len(found))]
        collection.IncludePath(self.pick(UsdGeom.Imageable).GetPath()) if self.chance(0.7) else collection.ResetCollection()

    def do_material(self) -> None:
        shader = UsdShade.Shader(self.pick(UsdShade.Shader))
        shader.CreateInput("diffuseColor", Sdf.ValueTypeNames.Color3f).Set(Gf.Vec3f(*(float(x) for x in self.rng.uniform(0, 1, 3))))
        if self.chance(0.3):
            shader.CreateInput("opacity", Sdf.ValueTypeNames.Float).Set(float(self.rng.uniform(0, 0.4)))
            shader.CreateInput("opacityThreshold", Sdf.ValueTypeNames.Float).Set(0.2)

    def do_add_material(self) -> None:
        material = UsdShade.Material.Define(self.stage, f"/Looks/{self.name()}")
        shader = UsdShade.Shader.Define(self.stage, material.GetPath().AppendChild("shader"))
        shader.CreateIdAttr("UsdPreviewSurface")
        shader.CreateInput("diffuseColor", Sdf.ValueTypeNames.Color3f).Set(Gf.Vec3f(*(float(x) for x in self.rng.uniform(0, 1, 3))))
        material.CreateSurfaceOutput().ConnectToSource(shader.ConnectableAPI(), "surface")

    # -- geometry -------------------------------------------------------------------------------------------------------------------

    def do_points(self) -> None:
        attribute = UsdGeom.Mesh(self.pick(UsdGeom.Mesh)).GetPointsAttr()
        points = np.array(attribute.Get(self.time))
        points += self.rng.normal(0, 0.2, points.shape)
        if self.chance(0.1):
            points[0] = np.nan
        attribute.Set([Gf.Vec3f(*map(float, point)) for point in points])
        if self.chance(0.3):
            attribute.Set([Gf.Vec3f(*map(float, point)) for point in points], self.time)

    def do_far(self) -> None:
        attribute = UsdGeom.Mesh(self.pick(UsdGeom.Mesh)).GetPointsAttr()
        shift = 40.0 if self.chance(0.7) else 1e5
        attribute.Set([point + Gf.Vec3f(shift, 0, 0) for point in attribute.Get(self.time)])

    def do_topology(self) -> None:
        mesh = UsdGeom.Mesh(self.pick(UsdGeom.Mesh))
        indices = list(mesh.GetFaceVertexIndicesAttr().Get())
        self.rng.shuffle(indices)
        mesh.GetFaceVertexIndicesAttr().Set([int(i) for i in indices])
        if self.chance(0.3):
            mesh.GetFaceVertexCountsAttr().Set([3, 3] if self.chance(0.5) else [4])

    def do_mesh_options(self) -> None:
        mesh = UsdGeom.Mesh(self.pick(UsdGeom.Mesh))
        mesh.CreateSubdivisionSchemeAttr(["none", "catmullClark", "bilinear"][self.rng.integers(3)])
        mesh.CreateOrientationAttr(["leftHanded", "rightHanded"][self.rng.integers(2)])
        mesh.CreateDoubleSidedAttr(self.chance(0.5))
        if self.chance(0.3):
            mesh.CreateHoleIndicesAttr([0])

    def do_subset(self) -> None:
        mesh = UsdGeom.Mesh(self.pick(UsdGeom.Mesh))
        subset = UsdGeom.Subset.Define(self.stage, mesh.GetPath().AppendChild(self.name()))
        subset.CreateElementTypeAttr("face")
        subset.CreateFamilyNameAttr("materialBind")
        subset.CreateIndicesAttr([int(self.rng.integers(3))])
        if self.chance(0.7):
            UsdShade.MaterialBindingAPI.Apply(subset.GetPrim()).Bind(self.material())

    def do_edit_subset(self) -> None:
        UsdGeom.Subset(self.pick(UsdGeom.Subset)).GetIndicesAttr().Set([int(i) for i in self.rng.integers(0, 3, 2)])

    def do_size(self) -> None:
        prim = self.pick(UsdGeom.Gprim)
        for name in ("radius", "height", "size", "width"):
            if prim.HasAttribute(name):
                prim.GetAttribute(name).Set(float(self.rng.uniform(0.2, 1.5)))

    def do_wrong_type(self) -> None:
        prim = self.pick(UsdGeom.Gprim)
        name = ["points", "radius", "faceVertexCounts", "visibility", "purpose"][self.rng.integers(5)]
        prim.RemoveProperty(name)
        spec = self.stage.GetEditTarget().GetLayer().GetPrimAtPath(prim.GetPath())
        Sdf.AttributeSpec(spec, name, Sdf.ValueTypeNames.String).default = "wrong"

    def do_camera(self) -> None:
        camera = UsdGeom.Camera(self.pick(UsdGeom.Camera))
        camera.CreateFocalLengthAttr(float(self.rng.uniform(-1 if self.chance(0.1) else 15, 60)))

    # -- instancers -----------------------------------------------------------------------------------------------------------------

    def do_instancer(self) -> None:
        instancer = UsdGeom.PointInstancer(self.pick(UsdGeom.PointInstancer))
        count = int(self.rng.integers(0, 6))
        instancer.CreateProtoIndicesAttr([int(i) for i in self.rng.integers(0, 3, count)])
        positions = [Gf.Vec3f(self.vector(5.0)) for _ in range(count)]
        instancer.CreatePositionsAttr(positions)
        if self.chance(0.5):
            instancer.GetPositionsAttr().Clear()
            instancer.GetPositionsAttr().Set(positions)
        if self.chance(0.5):
            instancer.CreateScalesAttr([Gf.Vec3f(float(self.rng.uniform(0.5, 1.5))) for _ in range(count)])

    def do_hide_ids(self) -> None:
        instancer = UsdGeom.PointInstancer(self.pick(UsdGeom.PointInstancer))
        if self.chance(0.5):
            instancer.CreateInvisibleIdsAttr([int(self.rng.integers(4))])
        else:
            instancer.DeactivateIds([int(self.rng.integers(4))])

    def do_ids(self) -> None:
        instancer = UsdGeom.PointInstancer(self.pick(UsdGeom.PointInstancer))
        count = len(instancer.GetProtoIndicesAttr().Get(self.time) or ())
        instancer.CreateIdsAttr([int(i) for i in self.rng.integers(0, 100, count)])

    def do_prototypes(self) -> None:
        instancer = UsdGeom.PointInstancer(self.pick(UsdGeom.PointInstancer))
        instancer.GetPrototypesRel().SetTargets([self.pick(UsdGeom.Imageable).GetPath() for _ in range(self.rng.integers(1, 4))])
