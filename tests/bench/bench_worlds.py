"""Many worlds at once, against the peers in the same process: python tests/bench/bench_worlds.py [--worlds 256]

Prints medians of interleaved runs and their ratios:
- depth, and colour + depth + ids, of a robot of ten shapes in N worlds, 64x64 each: hdWarp's SensorCamera against Newton's SensorCamera and
  mujoco_warp's renderer on their default one thread (bench extras `newton`, `mujoco-warp`; left out where they are not installed);
- per-world focal lengths against shared ones; the cost of a view for 64 to 4,096 views; bytes on the device a world;
- posing 4,096 worlds x 20 bodies against a bare wp.Bvh refit of as many boxes; replicating against NumPy's tiling of the same columns.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import time
from collections.abc import Callable

import numpy as np
import warp as wp
from pxr import Gf, Usd, UsdGeom, UsdPhysics

import hdwarp

SIZE = 64
SOURCES = ("kind", "flags", "geometry", "shape", "rank", "body", "prim_id", "instance_id", "material", "subset_start")
CAMERA_COLUMNS = ("transform", "axes", "body", "lens", "focal_length", "aperture", "aperture_offset", "clipping_range", "exposure")
ROUNDS = 9
ROBOT_MJCF = """
<mujoco model="bench_robot">
  <visual><map znear="0.001" zfar="100"/></visual>
  <statistic extent="1" center="0 0 0.5"/>
  <worldbody>
    <light type="directional" dir="-0.577 0.577 -0.577" pos="0 0 4"/>
    <camera name="cam" pos="2.2 -2.2 1.6" xyaxes="0.70710678 0.70710678 0 -0.28 0.28 0.918" fovy="45"/>
    <geom type="plane" size="0 0 0.1"/>
    <geom type="box" size="0.3 0.3 0.1" pos="0 0 0.1"/>
    <body pos="0 0 0.2">
      <geom type="cylinder" size="0.15 0.1" pos="0 0 0.1"/>
      <body pos="0 0 0.2"><joint type="hinge" axis="0 0 1"/>
        <geom type="capsule" fromto="0 0 0 0.3 0 0.4" size="0.06"/>
        <body pos="0.3 0 0.4"><joint type="hinge" axis="0 1 0"/>
          <geom type="sphere" size="0.09"/>
          <geom type="capsule" fromto="0 0 0 0.35 0 0.1" size="0.05"/>
          <body pos="0.35 0 0.1"><joint type="hinge" axis="0 1 0"/>
            <geom type="ellipsoid" size="0.08 0.06 0.05"/>
            <geom type="box" size="0.05 0.01 0.015" pos="0.1 0.04 0"/>
            <geom type="box" size="0.05 0.01 0.015" pos="0.1 -0.04 0"/>
          </body>
        </body>
      </body>
    </body>
    <geom type="capsule" fromto="-0.6 0.5 0.1 -0.6 0.5 0.8" size="0.08"/>
  </worldbody>
</mujoco>
"""


def robot_stage() -> Usd.Stage:
    """The robot of `ROBOT_MJCF` at rest, its bodies as rigid bodies, its camera fixed in the environment."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageUpAxis(stage, "Z")
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    root = "/World/envs/env_0"
    stage.DefinePrim(root, "Xform")

    def place(prim: UsdGeom.Xformable, at=(0, 0, 0), scale=None, turn: Gf.Rotation | None = None) -> None:
        prim.AddTranslateOp().Set(Gf.Vec3d(*at))
        if turn is not None:
            prim.AddOrientOp(UsdGeom.XformOp.PrecisionDouble).Set(turn.GetQuat())
        if scale is not None:
            prim.AddScaleOp().Set(Gf.Vec3f(*scale))

    def body(path: str, at) -> str:
        xform = UsdGeom.Xform.Define(stage, path)
        place(xform, at)
        UsdPhysics.RigidBodyAPI.Apply(xform.GetPrim())
        return path

    def box(path: str, half, at) -> None:
        cube = UsdGeom.Cube.Define(stage, path)
        place(cube, at, half)

    def capsule(path: str, start, end, radius: float) -> None:
        start, end = Gf.Vec3d(*start), Gf.Vec3d(*end)
        prim = UsdGeom.Capsule.Define(stage, path)
        prim.CreateRadiusAttr(radius)
        prim.CreateHeightAttr((end - start).GetLength())
        prim.CreateAxisAttr("Z")
        place(prim, (start + end) / 2, turn=Gf.Rotation(Gf.Vec3d(0, 0, 1), (end - start).GetNormalized()))

    def ball(path: str, radii, at=(0, 0, 0)) -> None:
        sphere = UsdGeom.Sphere.Define(stage, path)
        sphere.CreateRadiusAttr(1.0)
        place(sphere, at, radii)

    floor = UsdGeom.Plane.Define(stage, f"{root}/floor")
    floor.CreateAxisAttr("Z")
    floor.CreateWidthAttr(200.0)
    floor.CreateLengthAttr(200.0)
    box(f"{root}/pedestal", (0.3, 0.3, 0.1), (0, 0, 0.1))
    base = body(f"{root}/base", (0, 0, 0.2))
    turret = UsdGeom.Cylinder.Define(stage, f"{base}/turret")
    turret.CreateRadiusAttr(0.15)
    turret.CreateHeightAttr(0.2)
    place(turret, (0, 0, 0.1))
    upper = body(f"{base}/link1", (0, 0, 0.2))
    capsule(f"{upper}/upper", (0, 0, 0), (0.3, 0, 0.4), 0.06)
    fore = body(f"{upper}/link2", (0.3, 0, 0.4))
    ball(f"{fore}/elbow", (0.09, 0.09, 0.09))
    capsule(f"{fore}/fore", (0, 0, 0), (0.35, 0, 0.1), 0.05)
    hand = body(f"{fore}/hand", (0.35, 0, 0.1))
    ball(f"{hand}/palm", (0.08, 0.06, 0.05))
    box(f"{hand}/finger_l", (0.05, 0.01, 0.015), (0.1, 0.04, 0))
    box(f"{hand}/finger_r", (0.05, 0.01, 0.015), (0.1, -0.04, 0))
    capsule(f"{root}/post", (-0.6, 0.5, 0.1), (-0.6, 0.5, 0.8), 0.08)
    camera = hdwarp.author.add_camera(stage, f"{root}/cam", fov=float(np.radians(45.0)), clipping_range=(0.001, 100.0))
    x, y = np.array([0.70710678, 0.70710678, 0.0]), np.array([-0.28, 0.28, 0.918])
    x, y = x / np.linalg.norm(x), y - x * (x @ y) / (x @ x)
    y /= np.linalg.norm(y)
    rows = np.eye(4)
    rows[0, :3], rows[1, :3], rows[2, :3], rows[3, :3] = x, y, np.cross(x, y), (2.2, -2.2, 1.6)
    camera.ClearXformOpOrder()
    camera.AddTransformOp().Set(Gf.Matrix4d(*rows.ravel().tolist()))
    return stage


def many_bodies(count: int, mesh_faces: int = 0) -> Usd.Stage:
    """A prototype of ``count`` bodies with a shape each."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageUpAxis(stage, "Z")
    for i in range(count):
        xform = UsdGeom.Xform.Define(stage, f"/World/env_0/body_{i:02d}")
        xform.AddTranslateOp().Set(Gf.Vec3d(i % 5, i // 5, 0.5))
        UsdPhysics.RigidBodyAPI.Apply(xform.GetPrim())
        if mesh_faces:
            mesh = UsdGeom.Mesh.Define(stage, f"/World/env_0/body_{i:02d}/mesh")
            rng = np.random.default_rng(i)
            mesh.CreatePointsAttr(rng.uniform(-0.4, 0.4, (3 * mesh_faces, 3)).astype(np.float32))
            mesh.CreateFaceVertexCountsAttr(np.full(mesh_faces, 3, np.int32))
            mesh.CreateFaceVertexIndicesAttr(np.arange(3 * mesh_faces, dtype=np.int32))
        else:
            UsdGeom.Cube.Define(stage, f"/World/env_0/body_{i:02d}/cube").CreateSizeAttr(0.4)
    UsdGeom.Camera.Define(stage, "/World/env_0/cam").AddTranslateOp().Set(Gf.Vec3d(2, 2, 8))
    return stage


def replicated(stage: Usd.Stage, root: str, worlds: int) -> hdwarp.Scene:
    return hdwarp.Scene(stage, worlds=[hdwarp.replicate(root, count=worlds)], device="cpu")


def medians(calls: dict[str, Callable[[], object]], rounds: int = ROUNDS) -> dict[str, float]:
    """Median seconds of each call, taken in turns."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def ours(worlds: int) -> dict[str, Callable[[], object]]:
    scene = replicated(robot_stage(), "/World/envs/env_0", worlds)
    sensor = hdwarp.SensorCamera(scene, cameras="*/cam", resolution=(SIZE, SIZE))
    state = scene.state()
    depth, more = sensor.allocate(["distance_to_image_plane"]), sensor.allocate(["color", "distance_to_image_plane", "primId"])
    print(
        f"hit {np.isfinite(depth_of(sensor, state, depth)).mean():.4f}, mean depth {depth_of(sensor, state, depth)[0].min():.5f} at least"
    )
    return {
        "hdwarp depth": lambda: sensor.update(state, depth, pose=False),
        "hdwarp depth + pose": lambda: sensor.update(state, depth),
        "hdwarp color depth ids": lambda: sensor.update(state, more, pose=False),
    }


def depth_of(sensor: hdwarp.SensorCamera, state: object, out: dict) -> np.ndarray:
    sensor.update(state, out)
    return out["distance_to_image_plane"].numpy()


def newton_calls(worlds: int) -> dict[str, Callable[[], object]]:
    import mujoco
    import newton
    from newton.sensors import SensorCamera

    model_mj = mujoco.MjModel.from_xml_string(ROBOT_MJCF)
    data = mujoco.MjData(model_mj)
    mujoco.mj_forward(model_mj, data)
    quat = np.zeros(4)
    mujoco.mju_mat2Quat(quat, data.cam_xmat[0])
    pose = wp.transform(wp.vec3(*data.cam_xpos[0]), wp.quat(quat[1], quat[2], quat[3], quat[0]))
    with wp.ScopedDevice("cpu"):
        prototype, builder = newton.ModelBuilder(), newton.ModelBuilder()
        prototype.add_mjcf(ROBOT_MJCF)
        builder.replicate(prototype, worlds)
        model = builder.finalize(device="cpu")
        state = model.state()
        newton.eval_fk(model, model.joint_q, model.joint_qd, state)
        model.bvh_refit_shapes(state)
        sensor = SensorCamera(model)
        sensor.create_default_light()
        rays = SensorCamera.compute_camera_rays_pinhole(SIZE, SIZE, camera_fov=float(np.radians(45.0)), device="cpu")
        poses = wp.array([pose] * worlds, dtype=wp.transformf, device="cpu")
        depth = sensor.allocate_image_depth_forward(worlds, SIZE, SIZE)
        color, index = sensor.allocate_image_color(worlds, SIZE, SIZE), sensor.allocate_image_shape_index(worlds, SIZE, SIZE)
    return {
        "newton depth": lambda: sensor.update(state, poses, rays, forward_depth_image=depth),
        "newton color depth ids": lambda: sensor.update(
            state, poses, rays, color_image=color, forward_depth_image=depth, shape_index_image=index
        ),
    }


def mujoco_warp_calls(worlds: int) -> dict[str, Callable[[], object]]:
    import mujoco
    import mujoco_warp as mjw

    with wp.ScopedDevice("cpu"):
        model_mj = mujoco.MjModel.from_xml_string(ROBOT_MJCF)
        data_mj = mujoco.MjData(model_mj)
        mujoco.mj_forward(model_mj, data_mj)
        model, data = mjw.put_model(model_mj), mjw.put_data(model_mj, data_mj, nworld=worlds)
        how = {"nworld": worlds, "cam_res": (SIZE, SIZE), "use_textures": False}
        depth = mjw.create_render_context(model_mj, render_rgb=False, render_depth=True, render_seg=False, **how)
        more = mjw.create_render_context(model_mj, render_rgb=True, render_depth=True, render_seg=True, **how)
    return {
        "mujoco_warp depth": lambda: mjw.render(model, data, depth),
        "mujoco_warp color depth ids": lambda: mjw.render(model, data, more),
    }


def against_peers(worlds: int) -> None:
    calls = ours(worlds)
    peers = []
    for name, make in (("newton", newton_calls), ("mujoco_warp", mujoco_warp_calls)):
        try:
            calls |= make(worlds)
            peers.append(name)
        except ImportError as error:
            print(f"{name} is not installed ({error}); left out")
    found = medians(calls)
    for name, seconds in found.items():
        print(f"{name:32s} {1e3 * seconds:9.2f} ms  {worlds * SIZE * SIZE / seconds / 1e6:8.2f} Mpixels/s")
    for peer in peers:
        print(f"depth: {found[f'{peer} depth'] / found['hdwarp depth']:.1f}x {peer} (at least 5)")
        print(f"color depth ids: {found[f'{peer} color depth ids'] / found['hdwarp color depth ids']:.1f}x {peer} (at least 4)")


def intrinsics(worlds: int) -> None:
    scene = replicated(robot_stage(), "/World/envs/env_0", worlds)
    sensor = hdwarp.SensorCamera(scene, cameras="*/cam", resolution=(SIZE, SIZE))
    state, out = scene.state(), sensor.allocate(["distance_to_image_plane"])
    shared = scene.cameras.focal_length.numpy().copy()
    # As many rays see something on average: lengths around the shared one.
    own = (shared * np.random.default_rng(0).uniform(0.9, 1.1, len(shared))).astype(np.float32)

    def update(lengths: np.ndarray) -> None:
        scene.cameras.focal_length.assign(lengths)
        sensor.update(state, out, pose=False)

    found = medians({"shared": lambda: update(shared), "own": lambda: update(own)}, 15)
    print(f"focal lengths of each world against one for all: {found['own'] / found['shared']:.3f}x (1 within noise)")


def flat_cost() -> None:
    stage, calls = robot_stage(), {}
    for worlds in (64, 256, 1024, 4096):
        scene = replicated(stage, "/World/envs/env_0", worlds)
        sensor = hdwarp.SensorCamera(scene, cameras="*/cam", resolution=(SIZE, SIZE))
        state, out = scene.state(), sensor.allocate(["distance_to_image_plane"])
        calls[worlds] = lambda sensor=sensor, state=state, out=out: sensor.update(state, out)
    for worlds, seconds in medians(calls, 5).items():
        print(f"{worlds:5d} views: {1e6 * seconds / worlds:.2f} us a view, posing included")


def device_memory(scene: hdwarp.Scene) -> int:
    """Bytes on the device of everything that grows with worlds, the state and a sensor's view table among them."""
    sensor = hdwarp.SensorCamera(scene, cameras="*", resolution=(SIZE, SIZE))
    state, views, cameras = scene.state(), sensor.views, scene.cameras
    arrays = [state.body_q, state.body_qd, views.specs, views.rows, views.planes, sensor.view_camera, sensor.view_world]
    arrays += [array.array for array in cameras._arrays.values()]
    worlds = scene.tables.world_columns
    arrays += [worlds.root, worlds.global_offset]
    return scene.tables.device_bytes + sum(array.capacity for array in arrays)


def memory() -> None:
    for bodies, prims in ((9, "20 prims: 9 bodies, 9 shapes"), (20, "42 prims: 20 bodies, 20 shapes")):
        stage = many_bodies(bodies)
        few, many = (device_memory(replicated(stage, "/World/env_0", worlds)) for worlds in (1024, 4096))
        print(f"a world of {prims}, a camera and its view: {(many - few) / 3072:.0f} bytes on the device (20 prims: at most 4,096)")


def posing(worlds: int = 4096, bodies: int = 20) -> None:
    for faces in (0, 1000):
        scene = replicated(many_bodies(bodies, faces), "/World/env_0", worlds)
        state, tables = scene.state(), scene.tables
        rng = np.random.default_rng(0)
        lower = rng.uniform(0, 5, (worlds * bodies, 3)).astype(np.float32)
        boxes = wp.array(lower, dtype=wp.vec3f, device="cpu"), wp.array(lower + 0.4, dtype=wp.vec3f, device="cpu")
        bare = wp.Bvh(*boxes)
        found = medians({"pose": functools.partial(tables.pose, state.body_q), "refit": bare.refit}, 15)
        print(
            f"posing {worlds} worlds x {bodies} bodies ({faces or 'no'} faces each): {1e3 * found['pose']:.2f} ms,"
            f" {found['pose'] / found['refit']:.2f}x a wp.Bvh refit of as many boxes (at most 2)"
        )


def replicating(worlds: int = 4096) -> None:
    """The same columns: what one world has on the device, in its rows, trees and bodies, tiled as often."""
    stage = robot_stage()
    one = replicated(stage, "/World/envs/env_0", 1)
    rows, tables = one.index.instance_count, one.tables
    columns, trees = one.instances.columns(), tables._world_trees
    arrays = [getattr(columns, name) for name in ("world_from_object", "translation", "world", "source", *SOURCES)]
    held = [array.numpy()[:rows] for array in (*arrays, *one.instances.bounds)]
    held += [tables._nodes.boxes.array.numpy()[: 6 * trees.size], tables._nodes.children.array.numpy()[: trees.size]]
    held += [array.numpy() for array in trees.device_arrays()]
    held += [getattr(one.instances.posed, name).numpy() for name in ("row", "item")]
    held += [getattr(one.cameras, name).numpy()[:1] for name in CAMERA_COLUMNS]
    held += [one.bodies.pose, one.bodies.world, one.bodies.body_id]

    def tile() -> list[np.ndarray]:
        return [np.tile(array, (worlds, *[1] * (array.ndim - 1))) for array in held]

    def replicate() -> hdwarp.Scene:
        scene = replicated(stage, "/World/envs/env_0", worlds)
        scene.cameras.hold()
        return scene

    def alone() -> None:
        replicated(stage, "/World/envs/env_0", 1).cameras.hold()

    found = medians({"tile": tile, "one": alone, "all": replicate}, 9)
    ratio = (found["all"] - found["one"]) / found["tile"]
    print(f"replicating {worlds} worlds: {1e3 * (found['all'] - found['one']):.1f} ms, {ratio:.2f}x NumPy's tiling (at most 5)")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--worlds", type=int, default=256)
    parser.add_argument("--only", default="")
    chosen = parser.parse_args()
    wp.config.quiet = True
    parts = {
        "peers": lambda: against_peers(chosen.worlds),
        "intrinsics": lambda: intrinsics(chosen.worlds),
        "flat": flat_cost,
        "memory": memory,
        "posing": posing,
        "replicating": replicating,
    }
    for name, part in parts.items():
        if not chosen.only or name in chosen.only.split(","):
            part()


if __name__ == "__main__":
    main()
