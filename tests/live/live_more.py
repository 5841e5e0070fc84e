"""A richer stage to edit: rigs, instancers in instances and the reverse, clips, lights, sites, classes. USD alone."""

from __future__ import annotations

import numpy as np
from pxr import Gf, Sdf, Ts, Usd, UsdGeom, UsdLod, UsdLux, UsdPhysics, UsdShade, UsdSkel
from tests.live import moving
from tests.live.live_edits import LiveStage
from tests.live.live_text import MORE, MORE_CLIPS, NESTED, lines


class RichStage(LiveStage):
    """All that a LiveStage has, and more."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.nested, self.more = (Sdf.Layer.CreateAnonymous(f"{name}.usda") for name in ("nested", "more"))
        self.nested.ImportFromString(lines(NESTED.replace("@ASSET@", f"@{self.asset.identifier}@")))
        self.clips = []
        for k, text in enumerate(MORE_CLIPS):
            self.clips.append(Sdf.Layer.CreateAnonymous(f"clip{k}.usda"))
            self.clips[-1].ImportFromString(lines(text))
        text = MORE.replace("@NESTED@", f"@{self.nested.identifier}@").replace("@ASSET@", f"@{self.asset.identifier}@")
        for k, clip in enumerate(self.clips):
            text = text.replace(f"@CLIP{k}@", f"@{clip.identifier}@")
        self.more.ImportFromString(lines(text))
        self.root.subLayerPaths.append(self.more.identifier)
        moving.joints(self.stage)
        moving.blend_shapes(self.stage)
        for k in range(2):
            prim = self.stage.DefinePrim(f"/World/rig{k}")
            prim.GetReferences().AddInternalReference("/World/rig")
            prim.SetInstanceable(True)
            UsdGeom.XformCommonAPI(prim).SetTranslate((2.0 - 4 * k, -3, 1))

    def do_sublayers(self) -> None:
        paths = list(self.root.subLayerPaths)
        self.root.subLayerPaths = [self.more.identifier] if len(paths) > 1 else [self.sublayer.identifier, self.more.identifier]

    # -- rigs -----------------------------------------------------------------------------------------------------------------------

    def animation(self) -> UsdSkel.Animation:
        return UsdSkel.Animation(self.pick(UsdSkel.Animation))

    def turn(self) -> Gf.Quatf:
        return Gf.Quatf(Gf.Rotation(self.vector().GetNormalized(), float(self.rng.uniform(0, 180))).GetQuat())

    def maybe_timed(self, attribute: Usd.Attribute, value: object) -> None:
        """At the default time, or at one of a few."""
        attribute.Set(value, Usd.TimeCode.Default() if self.chance(0.5) else float(self.rng.choice([1.0, 5.0, 6.0])))

    def do_pose(self) -> None:
        self.maybe_timed(self.animation().GetRotationsAttr(), [self.turn() for _ in range(2 if self.chance(0.9) else 1)])

    def do_weights(self) -> None:
        self.maybe_timed(self.animation().GetBlendShapeWeightsAttr(), [float(self.rng.uniform(-1, 2))])

    def do_shape(self) -> None:
        prim = self.stage.GetPrimAtPath("/World/rig/sheet/up")
        if prim and self.chance(0.4):
            prim.SetActive(not prim.IsActive())
        shape = UsdSkel.BlendShape(prim)
        if not shape or not prim.IsActive():
            return
        shape.GetOffsetsAttr().Set([Gf.Vec3f(self.vector(1.0))])
        shape.GetPointIndicesAttr().Set([int(self.rng.integers(8))])

    def do_influences(self) -> None:
        prims = [prim for prim in self.stage.Traverse() if prim.HasAttribute("primvars:skel:jointWeights")]
        binding = UsdSkel.BindingAPI(prims[self.rng.integers(len(prims))])
        binding.GetJointIndicesAttr().Set([int(i) for i in self.rng.integers(0, 2 if self.chance(0.8) else 4, 6)])
        if self.chance(0.3):
            binding.CreateGeomBindTransformAttr(Gf.Matrix4d(1.0).SetTranslate(self.vector(1.0)))
        if self.chance(0.3):
            binding.CreateSkinningMethodAttr(["classicLinear", "dualQuaternion"][self.rng.integers(2)])

    def do_skeleton(self) -> None:
        skeleton = UsdSkel.Skeleton(self.pick(UsdSkel.Skeleton))
        transforms = [Gf.Matrix4d(1.0).SetTranslate(self.vector(1.0)) for _ in range(2)]
        (skeleton.GetBindTransformsAttr() if self.chance(0.5) else skeleton.GetRestTransformsAttr()).Set(transforms)

    def do_animation_source(self) -> None:
        binding = UsdSkel.BindingAPI.Apply(self.pick(UsdGeom.Imageable))
        targets = ["/World/rig/animation", "/World/rig0/animation", "/nowhere"]
        binding.CreateAnimationSourceRel().SetTargets([targets[self.rng.integers(3)]] if self.chance(0.8) else [])

    def do_skeleton_binding(self) -> None:
        binding = UsdSkel.BindingAPI.Apply(self.pick(UsdGeom.Imageable))
        if self.chance(0.7):
            binding.CreateSkeletonRel().SetTargets([self.pick(UsdSkel.Skeleton).GetPath()])
        else:
            binding.GetPrim().RemoveProperty("skel:skeleton")

    def do_another_rig(self) -> None:
        prim = self.stage.DefinePrim(f"/World/{self.name()}")
        prim.GetReferences().AddInternalReference("/World/rig")
        prim.SetInstanceable(self.chance(0.7))
        UsdGeom.XformCommonAPI(prim).SetTranslate(self.vector())

    # -- instancers -----------------------------------------------------------------------------------------------------------------

    def instancer(self) -> tuple[UsdGeom.PointInstancer, int]:
        instancer = UsdGeom.PointInstancer(self.pick(UsdGeom.PointInstancer))
        return instancer, len(instancer.GetProtoIndicesAttr().Get(self.time) or ())

    def do_instance_color(self) -> None:
        instancer, count = self.instancer()
        kind = ["vertex", "varying", "uniform", "constant"][self.rng.integers(4)]
        primvar = UsdGeom.PrimvarsAPI(instancer).CreatePrimvar("displayColor", Sdf.ValueTypeNames.Color3fArray, kind)
        colors = [Gf.Vec3f(*(float(x) for x in self.rng.uniform(0, 1, 3))) for _ in range(1 if kind == "constant" else count)]
        self.maybe_timed(primvar.GetAttr(), colors)
        if self.chance(0.3):
            primvar.SetIndices([int(i) for i in self.rng.integers(0, max(len(colors), 1), len(colors))])

    def do_orientations(self) -> None:
        instancer, count = self.instancer()
        self.maybe_timed(instancer.CreateOrientationsAttr(), [Gf.Quath(self.turn()) for _ in range(count)])

    def do_rates(self) -> None:
        instancer, count = self.instancer()
        positions = [Gf.Vec3f(self.vector(5.0)) for _ in range(count)]
        instancer.CreatePositionsAttr().Set(positions, 1.0)
        rates = (instancer.CreateVelocitiesAttr(), instancer.CreateAngularVelocitiesAttr(), instancer.CreateAccelerationsAttr())
        attribute = rates[self.rng.integers(3)]
        attribute.Set([Gf.Vec3f(self.vector(20.0)) for _ in range(count)], 1.0)
        if self.chance(0.2):
            attribute.Block()

    def do_hide_ids_in_time(self) -> None:
        instancer, count = self.instancer()
        self.maybe_timed(instancer.CreateInvisibleIdsAttr(), [int(i) for i in self.rng.integers(0, max(count, 1), 2)])

    # -- clips, layers, time ----------------------------------------------------------------------------------------------------------

    def do_clips(self) -> None:
        spec = self.more.GetPrimAtPath("/Clipped/model")
        clips = dict(spec.GetInfo("clips") or {"default": {"primPath": "/model", "times": [], "active": []}})
        orders = ([0, 1], [1, 0], [1, 1])[self.rng.integers(3)]
        assets = Sdf.AssetPathArray([Sdf.AssetPath(self.clips[k].identifier) for k in orders])
        clips["default"] = {**dict(clips["default"]), "assetPaths": assets}
        spec.SetInfo("clips", clips)

    def do_interpolation(self) -> None:
        self.stage.SetInterpolationType([Usd.InterpolationTypeHeld, Usd.InterpolationTypeLinear][self.rng.integers(2)])

    def do_offset(self) -> None:
        self.root.subLayerOffsets[0] = Sdf.LayerOffset(float(self.rng.integers(-3, 4)), float(self.rng.choice([0.5, 1.0, 2.0])))

    def do_rate(self) -> None:
        self.stage.SetTimeCodesPerSecond(float(self.rng.choice([12.0, 24.0, 48.0])))

    def do_spline(self) -> None:
        spline = Ts.Spline()
        for time in (1.0, 6.0):
            knot = Ts.Knot()
            knot.SetTime(time)
            knot.SetValue(float(self.rng.uniform(0.3, 1.2)))
            knot.SetNextInterpolation(Ts.InterpLinear)
            spline.SetKnot(knot)
        UsdGeom.Sphere(self.pick(UsdGeom.Sphere)).GetRadiusAttr().SetSpline(spline)

    def do_blink(self) -> None:
        attribute = UsdGeom.Imageable(self.pick(UsdGeom.Imageable)).GetVisibilityAttr()
        for time, value in ((1.0, "inherited"), (6.0, "invisible"), (9.0, "inherited")):
            attribute.Set(value, time)

    def do_moving_points(self) -> None:
        attribute = UsdGeom.Mesh(self.pick(UsdGeom.Mesh)).GetPointsAttr()
        points = np.array(attribute.Get(self.time))
        for time in (1.0, 6.0):
            moved = points + self.rng.normal(0, 0.2, points.shape)
            attribute.Set([Gf.Vec3f(*map(float, point)) for point in moved], time)

    def do_moving_material(self) -> None:
        shader_input = UsdShade.Shader(self.pick(UsdShade.Shader)).CreateInput("diffuseColor", Sdf.ValueTypeNames.Color3f)
        for time in (1.0, 6.0):
            shader_input.Set(Gf.Vec3f(*(float(x) for x in self.rng.uniform(0, 1, 3))), time)

    def do_mask(self) -> None:
        mask = Usd.StagePopulationMask(["/"])
        if self.chance(0.3):
            mask = Usd.StagePopulationMask(["/cam", "/Looks", self.pick().GetPath(), self.pick().GetPath()])
        self.stage.SetPopulationMask(mask)

    def do_load_rules(self) -> None:
        self.stage.SetLoadRules(Usd.StageLoadRules.LoadAll() if self.chance(0.6) else Usd.StageLoadRules.LoadNone())

    def do_relocate(self) -> None:
        self.root.relocates = []
        if self.chance(0.7):
            target = self.chance(0.7) and Sdf.Path(f"/World/loaded/{self.name()}")
            self.root.relocates = [(Sdf.Path("/World/loaded/top/knob"), target or Sdf.Path())]

    def do_edit_nested(self) -> None:
        """In a layer two arcs away."""
        with Sdf.ChangeBlock():
            names = ["/Nested/field", "/Nested/field/protos/bit", "/Nested/child"]
            spec = Sdf.CreatePrimInLayer(self.nested, names[self.rng.integers(3)])
            if self.chance(0.5):
                spec.SetInfo("active", self.chance(0.5))
            else:
                name = "visibility"
                found = spec.attributes.get(name) or Sdf.AttributeSpec(spec, name, Sdf.ValueTypeNames.Token)
                found.default = ["inherited", "invisible"][self.rng.integers(2)]

    # -- classes --------------------------------------------------------------------------------------------------------------------

    def do_class(self) -> None:
        """Of what inherits and specializes, all at once."""
        path = ["/_inherited", "/_special"][self.rng.integers(2)]
        if self.chance(0.6):
            prim = self.stage.GetPrimAtPath(path)
            primvar = UsdGeom.PrimvarsAPI(prim).CreatePrimvar("displayColor", Sdf.ValueTypeNames.Color3fArray, "constant")
            primvar.Set([Gf.Vec3f(*(float(x) for x in self.rng.uniform(0, 1, 3)))])
        else:
            UsdGeom.Cube.Define(self.stage, f"{path}/{self.name()}").CreateSizeAttr(float(self.rng.uniform(0.2, 0.7)))

    def do_inherit(self) -> None:
        inherits = self.pick(UsdGeom.Xformable).GetInherits()
        inherits.AddInherit("/_inherited") if self.chance(0.6) else inherits.ClearInherits()

    def do_specialize(self) -> None:
        specializes = self.pick(UsdGeom.Xformable).GetSpecializes()
        specializes.AddSpecialize("/_special") if self.chance(0.6) else specializes.ClearSpecializes()

    # -- lights, sites, cameras, surfaces -------------------------------------------------------------------------------------------

    def do_light(self) -> None:
        kinds = (UsdLux.SphereLight, UsdLux.DistantLight, UsdLux.DomeLight, UsdLux.RectLight)
        light = kinds[self.rng.integers(4)].Define(self.stage, self.pick().GetPath().AppendChild(self.name()))
        light.CreateIntensityAttr(float(self.rng.uniform(0, 10)))

    def light(self) -> Usd.Prim:
        """A light, or a mesh that may be one."""
        kinds = (UsdLux.BoundableLightBase, UsdLux.NonboundableLightBase, UsdGeom.Mesh)
        return self.pick(kinds[self.rng.integers(3)])

    def do_edit_light(self) -> None:
        prim, numbers = self.light(), ("intensity", "exposure", "radius", "width", "angle", "diffuse", "shaping:cone:angle")
        attribute = prim.CreateAttribute(f"inputs:{numbers[self.rng.integers(7)]}", Sdf.ValueTypeNames.Float)
        attribute.Set(float(self.rng.uniform(-1 if self.chance(0.2) else 0, 5)))
        if self.chance(0.3):
            attribute.Set(float(self.rng.uniform(0, 5)), 6.0)
        if self.chance(0.3):
            prim.CreateAttribute("inputs:normalize", Sdf.ValueTypeNames.Bool).Set(self.chance(0.5))

    def do_color_light(self) -> None:
        attribute = self.light().CreateAttribute("inputs:color", Sdf.ValueTypeNames.Color3f)
        attribute.Set(Gf.Vec3f(*(float(x) for x in self.rng.uniform(0, 1, 3))))
        if self.chance(0.3):
            attribute.SetColorSpace(["lin_ap1_scene", "lin_rec709_scene", "octarine"][self.rng.integers(3)])
        if self.chance(0.3):
            Usd.ColorSpaceAPI.Apply(self.pick()).CreateColorSpaceNameAttr(["lin_ap1_scene", "lin_rec709_scene"][self.rng.integers(2)])

    def do_link_light(self) -> None:
        prim, name = self.light(), ("lightLink", "shadowLink")[self.rng.integers(2)]
        collection = Usd.CollectionAPI(prim, name)
        if self.chance(0.2):
            collection.ResetCollection()
            return
        collection.CreateIncludeRootAttr(self.chance(0.5))
        collection.ExcludePath(self.pick().GetPath()) if self.chance(0.4) else collection.IncludePath(self.pick().GetPath())
        found = [c for other in self.stage.Traverse() for c in Usd.CollectionAPI.GetAll(other)]
        if self.chance(0.3):
            collection.IncludePath(found[self.rng.integers(len(found))].GetCollectionPath())

    def do_mesh_light(self) -> None:
        mesh = self.pick(UsdGeom.Mesh)
        mesh.RemoveAPI(UsdLux.MeshLightAPI) if mesh.HasAPI(UsdLux.MeshLightAPI) else UsdLux.MeshLightAPI.Apply(mesh)

    def do_site(self) -> None:
        prim = self.pick(UsdGeom.Xformable)
        schema = ("HdWarpSiteAPI", "NewtonSiteAPI", "MjcSiteAPI")[self.rng.integers(3)]  # the last two are not known to this process
        has = schema in prim.GetPrimTypeInfo().GetAppliedAPISchemas()
        prim.RemoveAppliedSchema(schema) if has else prim.AddAppliedSchema(schema)

    # -- other geometry, draw modes, LODs -------------------------------------------------------------------------------------------

    def do_tets(self) -> None:
        tets = UsdGeom.TetMesh(self.pick(UsdGeom.TetMesh))
        choice = self.rng.integers(4)
        if choice == 0:
            self.maybe_timed(tets.GetTetVertexIndicesAttr(), [Gf.Vec4i(*(int(i) for i in self.rng.integers(0, 6, 4))) for _ in range(2)])
        elif choice == 1:
            faces = [Gf.Vec3i(*(int(i) for i in self.rng.integers(0, 5, 3))) for _ in range(self.rng.integers(0, 4))]
            self.maybe_timed(tets.CreateSurfaceFaceVertexIndicesAttr(), faces)
        elif choice == 2:
            points = [Gf.Vec3f(self.vector()) for _ in range(5)]
            self.maybe_timed(tets.GetPointsAttr(), points)
        else:
            tets.CreateOrientationAttr(["leftHanded", "rightHanded"][self.rng.integers(2)])

    def do_patch(self) -> None:
        patch = UsdGeom.NurbsPatch(self.pick(UsdGeom.NurbsPatch))
        choice = self.rng.integers(6)
        if choice == 0:
            self.maybe_timed(patch.GetPointsAttr(), [Gf.Vec3f(self.vector()) for _ in range(6)])
        elif choice == 1:
            self.maybe_timed(patch.CreatePointWeightsAttr(), [float(x) for x in self.rng.uniform(0.2, 2, 6)])
        elif choice == 2:
            patch.GetUOrderAttr().Set(int(self.rng.integers(2, 4)))
            patch.GetUKnotsAttr().Set([0.0, 0.0, 0.5, 1.0, 1.0] if self.chance(0.5) else [0.0, 0.0, 0.0, 1.0, 1.0, 1.0])
        elif choice == 3:
            self.maybe_timed(patch.CreateURangeAttr(), Gf.Vec2d(0.0, float(self.rng.uniform(0.2, 1.2))))
        elif choice == 4:
            kind = ["constant", "vertex", "varying", "uniform"][self.rng.integers(4)]
            primvar = UsdGeom.PrimvarsAPI(patch).CreatePrimvar("st", Sdf.ValueTypeNames.TexCoord2fArray, kind)
            primvar.Set([Gf.Vec2f(float(i), 1.0) for i in range({"constant": 1, "vertex": 6, "varying": 4, "uniform": 1}[kind])])
            if self.chance(0.4):
                patch.GetPrim().RemoveProperty("primvars:st")
        else:
            patch.CreateOrientationAttr(["leftHanded", "rightHanded"][self.rng.integers(2)])

    def do_strands(self) -> None:
        curves = UsdGeom.BasisCurves(self.pick(UsdGeom.BasisCurves))
        choice = self.rng.integers(7)
        if choice == 0:
            self.maybe_timed(curves.GetPointsAttr(), [Gf.Vec3f(self.vector()) for _ in range(9)])
        elif choice == 1:
            curves.CreateTypeAttr(["cubic", "linear"][self.rng.integers(2)])
            curves.CreateBasisAttr(["bezier", "bspline", "catmullRom"][self.rng.integers(3)])
        elif choice == 2:
            curves.CreateWrapAttr(["nonperiodic", "periodic", "pinned"][self.rng.integers(3)])
        elif choice == 3:
            self.maybe_timed(curves.GetCurveVertexCountsAttr(), [[4, 5], [9], [3, 6], [4, 4]][self.rng.integers(4)])
        elif choice == 4:
            count = (1, 2, 9)[self.rng.integers(3)]
            self.maybe_timed(curves.GetWidthsAttr(), [float(x) for x in self.rng.uniform(0, 0.5, count)])
            curves.SetWidthsInterpolation({1: "constant", 2: "uniform", 9: "vertex"}[count])
        elif choice == 5:
            self.maybe_timed(curves.CreateNormalsAttr(), [Gf.Vec3f(self.vector()) for _ in range(9)])
            curves.SetNormalsInterpolation("vertex")
            if self.chance(0.5):
                curves.GetPrim().RemoveProperty("normals")
        else:
            kind = ["constant", "vertex", "varying", "uniform"][self.rng.integers(4)]
            primvar = UsdGeom.PrimvarsAPI(curves).CreatePrimvar("heat", Sdf.ValueTypeNames.FloatArray, kind)
            primvar.Set([float(x) for x in self.rng.uniform(0, 1, {"constant": 1, "vertex": 9, "varying": 4, "uniform": 2}[kind])])

    def do_dots(self) -> None:
        points = UsdGeom.Points(self.pick(UsdGeom.Points))
        choice = self.rng.integers(4)
        if choice == 0:
            self.maybe_timed(points.GetPointsAttr(), [Gf.Vec3f(self.vector()) for _ in range(self.rng.integers(2, 5))])
        elif choice == 1:
            self.maybe_timed(points.GetWidthsAttr(), [float(x) for x in self.rng.uniform(-0.2, 1, 3)])
        elif choice == 2:
            self.maybe_timed(points.GetIdsAttr(), [int(x) for x in self.rng.integers(0, 99, 3)])
        else:
            UsdGeom.PrimvarsAPI(points).CreatePrimvar("heat", Sdf.ValueTypeNames.FloatArray, "varying").Set(
                [1.0, 2.0, float(self.rng.uniform())]
            )

    def do_draw_mode(self) -> None:
        models = [prim for prim in self.stage.Traverse() if prim.IsModel()]
        prim = models[self.rng.integers(len(models))] if self.chance(0.8) else self.pick(UsdGeom.Xformable)
        api = UsdGeom.ModelAPI.Apply(prim)
        choice = self.rng.integers(5)
        if choice < 2:
            api.CreateModelDrawModeAttr(["origin", "bounds", "cards", "default", "inherited"][self.rng.integers(5)])
        elif choice == 2:
            api.CreateModelApplyDrawModeAttr(self.chance(0.7))
        elif choice == 3:
            api.CreateModelCardGeometryAttr(["cross", "box", "fromTexture"][self.rng.integers(3)])
            api.CreateModelDrawModeColorAttr(Gf.Vec3f(*(float(x) for x in self.rng.uniform(0, 1, 3))))
        else:
            self.maybe_timed(prim.CreateAttribute("extentsHint", Sdf.ValueTypeNames.Float3Array), [Gf.Vec3f(-1), Gf.Vec3f(1, 2, 1)])
            if self.chance(0.4):
                prim.RemoveProperty("extentsHint")

    def do_kind(self) -> None:
        Usd.ModelAPI(self.pick(UsdGeom.Xformable)).SetKind(["component", "group", "assembly", "subcomponent", ""][self.rng.integers(5)])

    def do_lod(self) -> None:
        prim = self.pick(UsdGeom.Xformable) if self.chance(0.3) else self.stage.GetPrimAtPath("/Lods")
        choice = self.rng.integers(4)
        if choice == 0:
            self.toggle(UsdLod.RootAPI, prim)
        elif choice == 1:
            self.maybe_timed(UsdLod.RootAPI(prim).CreateLodDefaultIndexAttr(), int(self.rng.integers(0, 4)))
        elif choice == 2:
            api = UsdLod.OverrideAPI.Apply(prim)
            self.maybe_timed(api.CreateLodOverrideModeAttr(), ["inherited", "indexedLOD", "noLOD", "allLOD"][self.rng.integers(4)])
            api.CreateLodOverrideIndexAttr(float(self.rng.integers(3)))
        else:
            prim.SetChildrenReorder([child.GetName() for child in prim.GetChildren()][::-1])

    # -- physics --------------------------------------------------------------------------------------------------------------------

    def toggle(self, schema: type, prim: Usd.Prim) -> None:
        prim.RemoveAPI(schema) if prim.HasAPI(schema) else schema.Apply(prim)

    def do_collider(self) -> None:
        """On a gprim, or on something above some; half of those that are made are hidden."""
        prim = self.pick(UsdGeom.Xformable)
        self.toggle(UsdPhysics.CollisionAPI, prim)
        if self.chance(0.3):
            UsdGeom.Imageable(prim).CreatePurposeAttr("guide")
        elif self.chance(0.3):
            UsdGeom.Imageable(prim).MakeInvisible()

    def do_collision_enabled(self) -> None:
        prims = [prim for prim in self.stage.Traverse() if prim.HasAPI(UsdPhysics.CollisionAPI)]
        prim = prims[self.rng.integers(len(prims))]
        self.maybe_timed(UsdPhysics.CollisionAPI(prim).CreateCollisionEnabledAttr(), self.chance(0.5))

    def do_mesh_collider(self) -> None:
        self.toggle(UsdPhysics.MeshCollisionAPI, self.pick(UsdGeom.Mesh))

    def do_articulation(self) -> None:
        self.toggle(UsdPhysics.ArticulationRootAPI, self.pick(UsdGeom.Xformable))

    def do_cam(self) -> None:
        """The camera that looks."""
        camera = UsdGeom.Camera.Get(self.stage, "/cam")
        choice = self.rng.integers(5)
        if choice == 0:
            camera.CreateProjectionAttr(["perspective", "orthographic"][self.rng.integers(2)])
            camera.CreateHorizontalApertureAttr(100.0)
            camera.CreateVerticalApertureAttr(75.0)
        elif choice == 1:
            self.maybe_timed(camera.CreateFocalLengthAttr(), float(self.rng.uniform(80, 150)))
        elif choice == 2:
            self.maybe_timed(camera.CreateHorizontalApertureOffsetAttr(), float(self.rng.uniform(-5, 5)))
        elif choice == 3:
            planes = [Gf.Vec4f(*(float(x) for x in self.rng.uniform(-1, 1, 3)), 5.0) for _ in range(self.rng.integers(0, 3))]
            camera.CreateClippingPlanesAttr(planes)
        else:
            self.maybe_timed(camera.GetPrim().GetAttribute("xformOp:translate"), Gf.Vec3d(0, 0, float(self.rng.uniform(10, 16))))

    def do_other_camera(self) -> None:
        camera = UsdGeom.Camera(self.pick(UsdGeom.Camera))
        camera.CreateProjectionAttr(["perspective", "orthographic", "fish"][self.rng.integers(3)])
        camera.CreateClippingRangeAttr(Gf.Vec2f(*(float(x) for x in self.rng.uniform(0.1, 100, 2))))

    def do_normals_of(self) -> None:
        """Normals of every interpolation, as attribute or primvar, with indices or without."""
        mesh = UsdGeom.Mesh(self.pick(UsdGeom.Mesh))
        mesh.CreateSubdivisionSchemeAttr("none")
        counts = {
            "vertex": len(mesh.GetPointsAttr().Get(self.time)),
            "faceVarying": len(mesh.GetFaceVertexIndicesAttr().Get(self.time)),
            "uniform": len(mesh.GetFaceVertexCountsAttr().Get(self.time)),
        }
        kind = list(counts)[self.rng.integers(3)]
        values = [Gf.Vec3f(self.vector().GetNormalized()) for _ in range(counts[kind])]
        if self.chance(0.5):
            mesh.CreateNormalsAttr(values)
            mesh.SetNormalsInterpolation(kind)
        else:
            primvar = UsdGeom.PrimvarsAPI(mesh).CreatePrimvar("normals", Sdf.ValueTypeNames.Normal3fArray, kind)
            primvar.Set(values)
            if self.chance(0.5):
                primvar.SetIndices([int(i) for i in self.rng.integers(0, len(values), len(values))])

    def do_corners(self) -> None:
        mesh = UsdGeom.Mesh(self.pick(UsdGeom.Mesh))
        count = len(mesh.GetFaceVertexIndicesAttr().Get(self.time))
        primvar = UsdGeom.PrimvarsAPI(mesh).CreatePrimvar("heat", Sdf.ValueTypeNames.FloatArray, "faceVarying")
        self.maybe_timed(primvar.GetAttr(), [float(x) for x in self.rng.uniform(0, 1, 4)])
        primvar.SetIndices([int(i) for i in self.rng.integers(0, 4, count)])

    def do_sides(self) -> None:
        UsdGeom.Gprim(self.pick(UsdGeom.Gprim)).CreateDoubleSidedAttr(self.chance(0.5))

    def do_all_inactive(self) -> None:
        """Something high up, with all that is below."""
        prim = self.pick()
        while prim.GetParent() and not prim.GetParent().IsPseudoRoot():
            prim = prim.GetParent()
        prim.SetActive(not prim.IsActive())
