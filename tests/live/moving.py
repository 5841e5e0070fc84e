"""Small stages of many prims that stand still and one that something moves of, and what USD says of it. No Warp, no hdWarp."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pxr import Gf, Sdf, Usd, UsdGeom, UsdLux, UsdShade, UsdSkel

SQUARE = [(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)]
TIMES = (1.0, 5.0, 9.0)  # what is animated has samples here


def new_stage(still: int = 0) -> Usd.Stage:
    """A camera at z=14 that looks down -Z at ``still`` cubes, and half as many meshes, no two alike. They come first in path order."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    stage.SetStartTimeCode(1.0)
    UsdGeom.Xform.Define(stage, "/World")
    camera = UsdGeom.Camera.Define(stage, "/cam")
    camera.CreateFocalLengthAttr(30.0)
    camera.CreateClippingRangeAttr((0.1, 1000.0))
    camera.AddTranslateOp().Set((0, 0, 14))
    for i in range(still):
        cube = UsdGeom.Cube.Define(stage, f"/World/calm{i}")
        cube.AddTranslateOp().Set((0.1 * i - 5.0, -4.0, -2.0))
        if i % 2:
            mesh = add_mesh(stage, f"/World/calm{i}_mesh", [(x, y, 0.01 * i) for x, y, _ in SQUARE])
            mesh.AddTranslateOp().Set((0.1 * i - 5.0, 4.0, -2.0))
    return stage


def add_mesh(stage: Usd.Stage, path: str, points: Sequence = SQUARE, counts: Sequence = (3, 3), indices: Sequence = (0, 1, 2, 0, 2, 3)):
    mesh = UsdGeom.Mesh.Define(stage, path)
    mesh.CreatePointsAttr(list(points))
    mesh.CreateFaceVertexCountsAttr(list(counts))
    mesh.CreateFaceVertexIndicesAttr(list(indices))
    mesh.CreateSubdivisionSchemeAttr("none")
    return mesh


def sample(attribute: Usd.Attribute, *values: object) -> None:
    """Samples at TIMES."""
    for time, value in zip(TIMES, values, strict=False):
        attribute.Set(value, time)


def transform(stage: Usd.Stage) -> None:
    xform = UsdGeom.Xform.Define(stage, "/World/mover")
    sample(xform.AddTranslateOp().GetAttr(), (0, 0, 0), (2, 0, 0), (2, 3, 1))
    UsdGeom.Cube.Define(stage, "/World/mover/cube")


def rotation(stage: Usd.Stage) -> None:
    xform = UsdGeom.Cube.Define(stage, "/World/mover")
    sample(xform.AddOrientOp().GetAttr(), Gf.Quatf(1), Gf.Quatf(0.5, 0.5, 0.5, 0.5), Gf.Quatf(0, 1, 0, 0))


def points(stage: Usd.Stage) -> None:
    moved = [[(x + k, y, z + k * x) for x, y, z in SQUARE] for k in range(3)]
    sample(add_mesh(stage, "/World/mover").GetPointsAttr(), *moved)


def smooth_points(stage: Usd.Stage) -> None:
    points(stage)
    UsdGeom.Mesh.Get(stage, "/World/mover").CreateSubdivisionSchemeAttr("catmullClark")


def topology(stage: Usd.Stage) -> None:
    mesh = add_mesh(stage, "/World/mover")
    sample(mesh.GetFaceVertexCountsAttr(), [3, 3], [3], [3, 3])
    sample(mesh.GetFaceVertexIndicesAttr(), [0, 1, 2, 0, 2, 3], [1, 2, 3], [0, 1, 3, 1, 2, 3])


def visibility(stage: Usd.Stage) -> None:
    sample(UsdGeom.Cube.Define(stage, "/World/mover").GetVisibilityAttr(), "inherited", "invisible", "inherited")


def camera(stage: Usd.Stage) -> None:
    sample(UsdGeom.Camera.Get(stage, "/cam").GetFocalLengthAttr(), 30.0, 60.0, 20.0)


def light(stage: Usd.Stage) -> None:
    sphere = UsdLux.SphereLight.Define(stage, "/World/mover")
    sample(sphere.CreateIntensityAttr(), 1.0, 2.0, 3.0)
    sample(sphere.AddTranslateOp().GetAttr(), (0, 0, 0), (2, 0, 0), (2, 3, 1))


def material(stage: Usd.Stage) -> None:
    paint = UsdShade.Material.Define(stage, "/World/Looks/paint")
    shader = UsdShade.Shader.Define(stage, "/World/Looks/paint/shader")
    shader.CreateIdAttr("UsdPreviewSurface")
    paint.CreateSurfaceOutput().ConnectToSource(shader.ConnectableAPI(), "surface")
    color = shader.CreateInput("diffuseColor", Sdf.ValueTypeNames.Color3f)
    sample(color.GetAttr(), (1, 0, 0), (0, 1, 0), (0, 0, 1))
    cube = UsdGeom.Cube.Define(stage, "/World/mover")
    UsdShade.MaterialBindingAPI.Apply(cube.GetPrim()).Bind(paint)


def constant_primvar(stage: Usd.Stage) -> None:
    cube = UsdGeom.Cube.Define(stage, "/World/mover")
    sample(cube.CreateDisplayColorAttr(), [(1, 0, 0)], [(0, 1, 0)], [(0, 0, 1)])


def vertex_primvar(stage: Usd.Stage) -> None:
    primvar = UsdGeom.PrimvarsAPI(add_mesh(stage, "/World/mover")).CreatePrimvar("heat", Sdf.ValueTypeNames.FloatArray, "vertex")
    sample(primvar.GetAttr(), [0, 1, 2, 3], [3, 2, 1, 0], [5, 5, 5, 7])


def normals(stage: Usd.Stage) -> None:
    mesh = add_mesh(stage, "/World/mover")
    sample(mesh.CreateNormalsAttr(), [(0, 0, 1)] * 4, [(1, 0, 0)] * 4, [(0, 1, 0)] * 4)


def new_instancer(stage: Usd.Stage) -> UsdGeom.PointInstancer:
    instancer = UsdGeom.PointInstancer.Define(stage, "/World/mover")
    UsdGeom.Cube.Define(stage, "/World/mover/protos/cube").CreateSizeAttr(0.8)
    UsdGeom.Sphere.Define(stage, "/World/mover/protos/ball").CreateRadiusAttr(0.5)
    instancer.CreatePrototypesRel().SetTargets(["/World/mover/protos/cube", "/World/mover/protos/ball"])
    instancer.CreateProtoIndicesAttr([0, 1, 0, 1])
    instancer.CreatePositionsAttr([(2.0 * i - 3.0, 0, 0) for i in range(4)])
    return instancer


def instances(stage: Usd.Stage) -> None:
    instancer = new_instancer(stage)
    sample(instancer.GetPositionsAttr(), *([(2.0 * i - 3.0, k, 0) for i in range(4)] for k in range(3)))
    sample(instancer.CreateOrientationsAttr(), [Gf.Quath(1)] * 4, [Gf.Quath(0.5, 0.5, 0.5, 0.5)] * 4, [Gf.Quath(0, 1, 0, 0)] * 4)
    sample(instancer.CreateScalesAttr(), [(1, 1, 1)] * 4, [(0.5, 1, 1)] * 4, [(1, 2, 1)] * 4)


def instance_rates(stage: Usd.Stage) -> None:
    """Velocities from one sample on: nothing of it has a second sample."""
    instancer = new_instancer(stage)
    instancer.GetPositionsAttr().Set([(2.0 * i - 3.0, 0, 0) for i in range(4)], 1.0)
    instancer.CreateOrientationsAttr().Set([Gf.Quath(1)] * 4, 1.0)
    instancer.CreateVelocitiesAttr().Set([(0, float(i), 0) for i in range(4)], 1.0)
    instancer.CreateAccelerationsAttr().Set([(0, -4.0, 0)] * 4, 1.0)
    instancer.CreateAngularVelocitiesAttr().Set([(0, 0, 90.0 * i) for i in range(4)], 1.0)


def instance_ids(stage: Usd.Stage) -> None:
    instancer = new_instancer(stage)
    sample(instancer.CreateIdsAttr(), [10, 11, 12, 13], [13, 12, 11, 10], [10, 11, 12, 13])
    sample(instancer.CreateInvisibleIdsAttr(), [10], [11, 12], [])


def instance_kinds(stage: Usd.Stage) -> None:
    instancer = new_instancer(stage)
    sample(instancer.GetProtoIndicesAttr(), [0, 1, 0, 1], [1, 1, 1, 1, 0], [0])
    sample(instancer.GetPositionsAttr(), *([(2.0 * i - 3.0, 0, 0) for i in range(count)] for count in (4, 5, 1)))


def rig(stage: Usd.Stage) -> UsdGeom.Mesh:
    """A sheet of six points on two joints, the upper one animated, bound as in fact 25: it turns about (0, 1, 0)."""
    root = UsdSkel.Root.Define(stage, "/World/rig")
    skeleton = UsdSkel.Skeleton.Define(stage, "/World/rig/skeleton")
    joints = ["a", "a/b"]
    above = [Gf.Matrix4d(1.0), Gf.Matrix4d(1.0).SetTranslate((0, 1, 0))]
    skeleton.CreateJointsAttr(joints)
    skeleton.CreateBindTransformsAttr(above)
    skeleton.CreateRestTransformsAttr(above)
    animation = UsdSkel.Animation.Define(stage, "/World/rig/animation")
    animation.CreateJointsAttr(joints)
    animation.CreateTranslationsAttr([(0, 0, 0), (0, 1, 0)])
    animation.CreateRotationsAttr([Gf.Quatf(1)] * 2)
    animation.CreateScalesAttr([Gf.Vec3h(1)] * 2)
    for prim in (root, skeleton):
        UsdSkel.BindingAPI.Apply(prim.GetPrim())
    UsdSkel.BindingAPI(skeleton).CreateAnimationSourceRel().SetTargets([animation.GetPath()])
    mesh = add_mesh(
        stage,
        "/World/rig/sheet",
        [(-1, 0, 0), (1, 0, 0), (1, 1, 0), (-1, 1, 0), (0, 2, 0), (0, 3, 0.5)],
        [3, 3, 3, 3],
        [0, 1, 2, 0, 2, 3, 3, 2, 4, 2, 5, 4],
    )
    binding = UsdSkel.BindingAPI.Apply(mesh.GetPrim())
    binding.CreateSkeletonRel().SetTargets([skeleton.GetPath()])
    binding.CreateJointIndicesPrimvar(False, 1).Set([0, 0, 0, 0, 1, 1])
    binding.CreateJointWeightsPrimvar(False, 1).Set([1.0] * 6)
    return mesh


def joints(stage: Usd.Stage) -> None:
    rig(stage)
    rotations = UsdSkel.Animation.Get(stage, "/World/rig/animation").GetRotationsAttr()
    turns = [Gf.Quatf(Gf.Rotation((0, 0, 1), degrees).GetQuat()) for degrees in (0.0, 90.0, -60.0)]
    sample(rotations, *([Gf.Quatf(1), turn] for turn in turns))


def blend_shapes(stage: Usd.Stage) -> None:
    mesh = rig(stage)
    shape = UsdSkel.BlendShape.Define(stage, "/World/rig/sheet/up")
    shape.CreateOffsetsAttr([(0, 0, 2.0)])
    shape.CreatePointIndicesAttr([5])
    binding = UsdSkel.BindingAPI(mesh)
    binding.CreateBlendShapesAttr(["up"])
    binding.CreateBlendShapeTargetsRel().SetTargets([shape.GetPath()])
    animation = UsdSkel.Animation.Get(stage, "/World/rig/animation")
    animation.CreateBlendShapesAttr(["up"])
    sample(animation.CreateBlendShapeWeightsAttr(), [0.0], [1.0], [0.25])


MOVERS: tuple[Callable[[Usd.Stage], None], ...] = (
    *(transform, rotation, points, smooth_points, topology, visibility, camera, light, material, constant_primvar, vertex_primvar, normals),
    *(instances, instance_rates, instance_ids, instance_kinds, joints, blend_shapes),
)
