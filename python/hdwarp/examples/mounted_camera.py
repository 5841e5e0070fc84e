"""examples.mounted_camera: a camera on a mast on a cart: found by its path, carried by the body, sized by its product.

    python -m hdwarp.examples.mounted_camera [--out DIR]

/World/cart is a rigid body; /World/cart/mast is a plain Xform, and so part of the camera's mount. The stage is in centimetres. Three boards
stand on a floor before the camera: one nearer than its clip range, one within, one beyond. The cart is driven about by writing
``state.body_q``, and the camera's pose is compared with what `Gf` makes of the same matrices.
"""

from __future__ import annotations

import sys

import numpy as np
import warp as wp
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics, UsdRender

import hdwarp
from hdwarp import State
from hdwarp.examples._shared import arguments_of, save_picture, side_by_side

CAMERA = "/World/cart/mast/camera"
SIZE = (200, 120)
CLIP = (0.5, 3.0)  # metres
NEAR_BOARD, BOARD, FAR_BOARD = 0.35, 2.0, 4.5  # metres before the camera while the cart is at rest


def make_stage() -> Usd.Stage:
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 0.01)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    stage.SetDefaultPrim(UsdGeom.Xform.Define(stage, "/World").GetPrim())
    cart = UsdGeom.Xform.Define(stage, "/World/cart")
    cart.AddTranslateOp().Set(Gf.Vec3d(30, -20, 15))
    cart.AddRotateZOp().Set(25.0)
    UsdPhysics.RigidBodyAPI.Apply(cart.GetPrim())
    mast = UsdGeom.Xform.Define(stage, "/World/cart/mast")
    mast.AddTranslateOp().Set(Gf.Vec3d(10, 0, 45))
    mast.AddRotateXYZOp().Set(Gf.Vec3f(0, 0, -10))
    # The camera looks along the mast's +X: from straight down up to the horizon, then a quarter turn to the right.
    camera = hdwarp.author.add_camera(stage, CAMERA, fov=0.9, clipping_range=CLIP, resolution=SIZE)
    UsdGeom.Xformable(camera).ClearXformOpOrder()
    UsdGeom.Xformable(camera).AddRotateXYZOp(opSuffix="look").Set(Gf.Vec3f(90, 0, -90))
    add_floor(stage)
    for name, distance, width, height, colour in (
        ("near_board", NEAR_BOARD, 14, 14, (0.8, 0.1, 0.1)),
        ("board", BOARD, 90, 70, (0.1, 0.6, 0.2)),
        ("far_board", FAR_BOARD, 240, 118, (0.1, 0.2, 0.8)),
    ):
        add_board(stage, f"/World/{name}", distance, width, height, colour)
    return stage


def add_floor(stage: Usd.Stage, tile: float = 50.0, count: int = 24) -> None:
    """A chequered square about the origin at height 0, a face a tile."""
    floor, n = UsdGeom.Mesh.Define(stage, "/World/floor"), count + 1
    x, y = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    points = (np.stack([x, y, np.full((n, n), count / 2)], axis=-1).reshape(-1, 3) - count / 2) * tile
    corner = (x * n + y)[:-1, :-1].reshape(-1, 1)
    floor.CreatePointsAttr(points.astype(np.float32))
    floor.CreateFaceVertexCountsAttr(np.full(count * count, 4))
    floor.CreateFaceVertexIndicesAttr((corner + (0, n, n + 1, 1)).reshape(-1))
    floor.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
    colours = np.where(((x + y) % 2)[:-1, :-1].reshape(-1, 1), 0.62, 0.4).repeat(3, axis=1)
    UsdGeom.PrimvarsAPI(floor).CreatePrimvar("displayColor", Sdf.ValueTypeNames.Color3fArray, UsdGeom.Tokens.uniform).Set(
        colours.astype(np.float32)
    )


def add_board(stage: Usd.Stage, path: str, distance: float, width: float, height: float, colour: tuple[float, float, float]) -> None:
    """Square to the camera's axis, ``distance`` [m] before it; ``width`` and ``height`` in the stage's unit."""
    to_world = UsdGeom.XformCache().GetLocalToWorldTransform(stage.GetPrimAtPath(CAMERA))
    board = UsdGeom.Plane.Define(stage, path)
    board.CreateWidthAttr(width)
    board.CreateLengthAttr(height)
    board.CreateDisplayColorAttr([colour])
    board.AddTransformOp().Set(Gf.Matrix4d().SetTranslate(Gf.Vec3d(0, 0, -distance * 100)) * to_world)


def driven(pose: list[float]) -> Gf.Matrix4d:
    """Where the cart is by a row of ``body_q``, as Gf has it: row vectors, scene units. The stage has one world, whose frame is added."""
    x, y, z, *quaternion = pose
    matrix = Gf.Matrix4d().SetRotate(Gf.Quatd(quaternion[3], *quaternion[:3]))
    return matrix.SetTranslateOnly(Gf.Vec3d(x, y, z) * 100)


def check_pose(scene: hdwarp.Scene, sensor: hdwarp.SensorCamera, state: State) -> None:
    """world <- camera = world <- cart (written) <- mast <- camera (authored)."""
    stage, xforms = scene.stage, UsdGeom.XformCache()
    to_world = [xforms.GetLocalToWorldTransform(stage.GetPrimAtPath(path)) for path in (CAMERA, "/World/cart")]
    expected = to_world[0] * to_world[1].GetInverse() * driven(state.body_q.numpy()[0].tolist())
    pose = sensor.compute_view_transforms(state).numpy()[0]
    place = np.array(expected.ExtractTranslation()) * 0.01
    assert np.allclose(pose[:3], place, atol=2e-6), (pose, place)
    turn = expected.ExtractRotationQuat()
    turn = np.array([*turn.GetImaginary(), turn.GetReal()])
    assert abs(abs(float(pose[3:] @ turn)) - 1.0) < 1e-6, (pose, turn)


def check_picture(scene: hdwarp.Scene, out: dict[str, wp.array], seen: set[str], distance: float | None) -> None:
    """Which boards there are, how far the one straight ahead is, and that nothing lies outside the clip range."""
    prims, depth = out["primId"].numpy()[0], out["distance_to_image_plane"].numpy()[0]
    names = {scene.prim_path(number).rpartition("/")[2] for number in np.unique(prims[prims >= 0]).tolist()}
    assert names == seen | {"floor"}, (names, seen)
    hit = depth[prims >= 0]
    assert ((hit >= CLIP[0]) & (hit <= CLIP[1])).all(), (hit.min(), hit.max())
    assert np.isinf(depth[prims < 0]).all()
    if distance is not None:
        assert abs(depth[SIZE[1] // 2, SIZE[0] // 2] - distance) < 1e-4, depth[SIZE[1] // 2, SIZE[0] // 2]


def drive(state: State, metres: float, turn: float = 0.0) -> State:
    """The cart ``metres`` further along the way the camera looks, and turned to the left by ``turn`` [rad]: a copy of ``state``."""
    moved = state.copy()
    x, y, z, *quaternion = moved.body_q.numpy()[0].tolist()
    heading = np.radians(25.0 - 10.0)
    pose = wp.transform(
        (x + metres * np.cos(heading), y + metres * np.sin(heading), z),
        wp.quat_from_axis_angle(wp.vec3(0.0, 0.0, 1.0), turn) * wp.quat(*quaternion),
    )
    moved.body_q.assign([pose])
    return moved


def main(arguments: list[str] | None = None) -> int:
    options = arguments_of("mounted_camera", __doc__).parse_args(arguments)
    stage = make_stage()
    product = next(UsdRender.Product(prim) for prim in stage.Traverse() if prim.IsA(UsdRender.Product))
    with hdwarp.Scene(stage, device=options.device) as scene:
        sensor = hdwarp.SensorCamera(scene, cameras=CAMERA, samples=4, clear={"rgba8": (205, 212, 220, 255)})
        assert (sensor.width, sensor.height) == tuple(product.GetResolutionAttr().Get()) == SIZE
        assert scene.bodies.label == ["/World/cart"]
        assert scene.cameras.body.numpy().tolist() == [0]  # the mast is no body
        assert np.allclose(scene.cameras.clipping_range.numpy()[0], CLIP)
        assert np.array_equal(scene.worlds.origin[0], (0.0, 0.0, 0.0))  # body_q is in the stage's frame, in metres
        out = sensor.allocate(["rgba8", "distance_to_image_plane", "primId"])
        rest, pictures = scene.state(), []
        for metres, turn, seen, distance in (
            (0.0, 0.0, {"board"}, BOARD),  # the near board is before the near plane, the far one beyond the far plane
            (-0.5, 0.0, {"near_board", "board"}, NEAR_BOARD + 0.5),
            (1.7, 0.0, {"far_board"}, FAR_BOARD - 1.7),  # 0.3 m before the middle board: too near
            (0.0, 0.3, {"board"}, None),
            (-1.2, 0.0, {"near_board"}, NEAR_BOARD + 1.2),  # 3.2 m from the middle board: too far
        ):
            state = drive(rest, metres, turn)
            sensor.update(state, out)
            check_pose(scene, sensor, state)
            check_picture(scene, out, seen, distance)
            pictures.append(out["rgba8"].numpy()[0].copy())
        if options.out is not None:
            print("wrote", save_picture(options.out, "mounted_camera.png", side_by_side(pictures)))
    print(f"ok: {CAMERA} is {SIZE[0]}x{SIZE[1]}, follows its body through the mast, and sees from {CLIP[0]} m to {CLIP[1]} m")
    return 0


if __name__ == "__main__":
    sys.exit(main())
