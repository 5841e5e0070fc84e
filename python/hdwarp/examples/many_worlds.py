"""examples.many_worlds: a thousand robots, each in a world of its own, their wrist cameras rendered in one launch.

    python -m hdwarp.examples.many_worlds [--worlds 1024] [--steps 4] [--out DIR]

sample_stages/robot_cell.usda has one robot; `hdwarp.replicate` makes a world of it as often as asked, and the stage is not touched. Each
step a kernel draws joint angles and writes where the links of all robots are into ``state.body_q``, and another draws the focal length of
every wrist camera. The overview camera belongs to no world and so has a view of each: every step renders the half of them whose turn it
is, by ``view_mask``, and the others keep their picture.
"""

from __future__ import annotations

import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import warp as wp

import hdwarp
from hdwarp import State
from hdwarp.examples._shared import LINKS, arguments_of, robot_cell, save_picture

PROTOTYPE = "/World/envs/env_0"
WRIST = "*/wrist_camera"
SWINGS = (0.0, 0.7, 0.25, 0.3, 0.45)  # radians to either side, by link; the base stands still
ZOOM = 0.35  # focal lengths vary by so much of the authored one
OVERVIEW_SIZE = (160, 120)  # a quarter of the product's: there are as many as worlds


@wp.kernel(enable_backward=False)
def pose_robots(
    step: wp.int32,
    seeds: wp.array[wp.int32],
    rows: wp.array2d[wp.int32],
    hinges: wp.array[wp.transformf],
    swings: wp.array[wp.float32],
    body_q: wp.array[wp.transformf],
):
    """A robot a thread: random joint angles, then the pose of each link from that of the link before. ``rows`` (worlds, links); a link's
    hinge is its frame at rest in the frame of the link before; it turns about Z in the shoulder and about Y behind it."""
    world = wp.tid()
    rng = wp.rand_init(step, seeds[world])
    pose = wp.transform_identity(dtype=wp.float32)
    for link in range(rows.shape[1]):
        axis = wp.vec3f(0.0, 1.0, 0.0)
        if link < 2:
            axis = wp.vec3f(0.0, 0.0, 1.0)
        angle = swings[link] * (2.0 * wp.randf(rng) - 1.0)
        turn = wp.transformf(wp.vec3f(0.0), wp.quat_from_axis_angle(axis, angle))
        pose = wp.transform_multiply(wp.transform_multiply(pose, hinges[link]), turn)
        body_q[rows[world, link]] = pose


@wp.kernel(enable_backward=False)
def draw_lenses(
    step: wp.int32,
    seeds: wp.array[wp.int32],
    rows: wp.array[wp.int32],
    worlds: wp.array[wp.int32],
    chosen: wp.array[wp.bool],
    nominal: wp.float32,
    focal_length: wp.array[wp.float32],
):
    """A random focal length [m] for each of the camera ``rows`` whose world is ``chosen``."""
    i = wp.tid()
    if chosen[worlds[i]]:
        rng = wp.rand_init(step + 7919, seeds[worlds[i]])
        focal_length[rows[i]] = nominal * (1.0 + ZOOM * (2.0 * wp.randf(rng) - 1.0))


class Robots:
    """The links of all robots: their rows in ``state.body_q``, and how they hang together."""

    def __init__(self, scene: hdwarp.Scene) -> None:
        names = [label.rpartition("/")[2] for label in scene.bodies.label]
        row_of = {key: row for row, key in enumerate(zip(names, scene.bodies.world.tolist(), strict=True))}
        rows = np.array([[row_of[link, world] for link in LINKS] for world in range(scene.worlds.count)], np.int32)
        rest = [wp.transform(*pose) for pose in scene.bodies.pose[rows[0]].tolist()]
        hinges = [rest[0]] + [wp.transform_inverse(before) * link for before, link in pairwise(rest)]
        self.rows = wp.array(rows, dtype=wp.int32, device=scene.device)
        self.hinges = wp.array(hinges, dtype=wp.transformf, device=scene.device)
        self.swings = wp.array(SWINGS, dtype=wp.float32, device=scene.device)

    def pose(self, step: int, seeds: wp.array, state: State) -> None:
        inputs = [step, seeds, self.rows, self.hinges, self.swings]
        wp.launch(pose_robots, dim=self.rows.shape[0], inputs=inputs, outputs=[state.body_q], device=state.body_q.device)


def parity(count: int, of: int, device: wp.Device) -> wp.array:
    """(count,) bool: every second one."""
    return wp.array(np.arange(count) % 2 == of, dtype=wp.bool, device=device)


def run(scene: hdwarp.Scene, steps: int, out_folder: Path | None = None) -> None:
    device, count = scene.device, scene.worlds.count
    wrist = hdwarp.SensorCamera(scene, cameras=WRIST)
    overview = hdwarp.SensorCamera(scene, cameras="/World/overview", resolution=OVERVIEW_SIZE)
    assert (wrist.view_count, overview.view_count) == (count, count)  # a camera a world, and a global one that sees every world
    assert (wrist.width, wrist.height) == (128, 128)  # the product's
    wrist_out = wrist.allocate(["rgba8", "distance_to_image_plane"])
    overview_out = overview.allocate(["rgba8"])
    robots, state = Robots(scene), scene.state()
    seeds = np.arange(count, dtype=np.int32)
    seeds[-1] = seeds[0]  # the last robot does as the first does
    seeds = wp.array(seeds, dtype=wp.int32, device=device)
    everybody = wp.ones(count, dtype=wp.bool, device=device)
    halves = [parity(count, half, device) for half in range(2)]
    nominal = scene.cameras.record_of(int(wrist.view_camera.numpy()[0])).focal_length

    def draw(number: int, chosen: wp.array) -> None:
        inputs = [number, seeds, wrist.view_camera, wrist.view_world, chosen, nominal]
        wp.launch(draw_lenses, dim=count, inputs=inputs, outputs=[scene.cameras.focal_length], device=device)

    seconds = np.zeros((steps, 2))
    for step in range(steps):
        robots.pose(step, seeds, state)
        draw(step, everybody)
        kept = overview_out["rgba8"].numpy().copy()
        wp.synchronize_device(device)
        start = time.perf_counter()
        wrist.update(state, wrist_out)
        wp.synchronize_device(device)
        seconds[step, 0] = time.perf_counter() - start
        overview.update(state, overview_out, view_mask=halves[step % 2], pose=False)  # posed by the update before
        wp.synchronize_device(device)
        seconds[step, 1] = time.perf_counter() - start - seconds[step, 0]
        check_halves(kept, overview_out["rgba8"].numpy(), step)
        check_worlds(wrist_out)
    check_lenses(wrist, wrist_out, state, lambda chosen: draw(steps, chosen), halves)

    later = seconds[1:] if steps > 1 else seconds  # the first step may compile
    took_wrist, took_overview = later.mean(axis=0)
    for name, sensor, views, took in (("wrist", wrist, count, took_wrist), ("overview", overview, count // 2, took_overview)):
        print(f"{name}: {views} views of {sensor.width}x{sensor.height} in {took * 1e3:.1f} ms, {views / took:,.0f} views/s on {device}")
    if out_folder is not None:
        write_pictures(scene, state, out_folder)


def check_halves(before: np.ndarray, after: np.ndarray, step: int) -> None:
    """Views whose turn it is not keep every byte; after the first time around those whose turn it is show other robots' poses."""
    masked = np.arange(len(after)) % 2 != step % 2
    assert np.array_equal(after[masked], before[masked])
    assert (after[~masked] != before[~masked]).any(axis=(1, 2, 3)).all()


def check_worlds(out: dict[str, wp.array]) -> None:
    """The last world, where robot and lens are as in the first, has the same picture, bit for bit; all others have one of their own."""
    for name, array in out.items():
        pictures = array.numpy()
        assert np.array_equal(pictures[0], pictures[-1]), name
        assert len({picture.tobytes() for picture in pictures}) == len(pictures) - 1, name


def check_lenses(wrist: hdwarp.SensorCamera, out: dict[str, wp.array], state: State, draw, halves: list[wp.array]) -> None:
    """Other focal lengths for the cameras of even worlds change the pictures of these worlds, and not a byte of the others."""
    before = out["rgba8"].numpy().copy()
    draw(halves[0])
    wrist.update(state, out)
    changed = (out["rgba8"].numpy() != before).any(axis=(1, 2, 3))
    assert np.array_equal(changed, np.arange(len(changed)) % 2 == 0)


def write_pictures(scene: hdwarp.Scene, state: State, folder: Path) -> None:
    """Sixteen wrist views as one sheet, and four overviews."""
    for name, cameras, worlds, columns, size in (("wrist", WRIST, 16, 4, None), ("overview", "/World/overview", 4, 2, (320, 240))):
        shown = range(min(worlds, scene.worlds.count))
        camera = hdwarp.SensorCamera(scene, cameras=cameras, worlds=shown, resolution=size, samples=9)
        out = camera.allocate(["rgba8"])
        camera.update(state, out)
        print("wrote", save_picture(folder, f"many_worlds_{name}.png", camera.tiled(out, columns=columns)["rgba8"]))


def main(arguments: list[str] | None = None) -> int:
    parser = arguments_of("many_worlds", __doc__)
    parser.add_argument("--worlds", type=int, default=1024, help="how many robots (default 1024)")
    parser.add_argument("--steps", type=int, default=4, help="how often they move (default 4)")
    parser.add_argument("--stage", type=Path, help="path of robot_cell.usda")
    options = parser.parse_args(arguments)
    if options.worlds < 4 or options.steps < 1:
        parser.error("--worlds must be 4 or more, --steps 1 or more")
    stage = robot_cell(parser, options.stage)
    with hdwarp.Scene(stage, device=options.device, worlds=[hdwarp.replicate(PROTOTYPE, count=options.worlds)]) as scene:
        run(scene, options.steps, options.out)
    print(f"ok: {options.worlds} worlds of one robot; halves, lenses and worlds are as they should be")
    return 0


if __name__ == "__main__":
    sys.exit(main())
