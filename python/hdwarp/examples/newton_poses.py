"""examples.newton_poses: robots that Newton moves, seen by hdWarp's cameras.

    python -m hdwarp.examples.newton_poses [--worlds 16] [--out DIR]

Newton imports the robot of sample_stages/robot_cell.usda and replicates it; hdWarp does the same with the same stage. Both keep the poses
of bodies in a ``wp.array[wp.transformf]`` named ``State.body_q``, world by world, but order a world's bodies differently: `PoseFeed` knows
by their labels which row is which, and copies on the device. Without the package newton this says so, and that is all.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import warp as wp

import hdwarp
from hdwarp import State
from hdwarp.examples._shared import LINKS, arguments_of, robot_cell, save_picture

PROTOTYPE = "/World/envs/env_0"


# The whole of the feed: 25 lines, and one call a step.
@wp.kernel(enable_backward=False)
def take_poses(rows: wp.array[wp.int32], newton_q: wp.array[wp.transformf], body_q: wp.array[wp.transformf]):
    body = wp.tid()
    if rows[body] >= 0:
        body_q[rows[body]] = newton_q[body]


class PoseFeed:
    """Newton's poses into hdWarp's state. Newton's copies all have the labels of their prototype; hdWarp's are numbered as their world."""

    def __init__(self, model, scene: hdwarp.Scene) -> None:
        in_first_world = {label: row - scene.bodies.world_start[1] for row, label in enumerate(scene.bodies.label)}
        rows = [
            scene.bodies.world_start[world + 1] + in_first_world[label] if label in in_first_world else -1
            for label, world in zip(model.body_label, model.body_world.numpy(), strict=True)
        ]
        self.rows = wp.array(rows, dtype=wp.int32, device=scene.device)

    def __call__(self, newton_state, state: State) -> None:
        inputs = [self.rows, newton_state.body_q]
        wp.launch(take_poses, dim=len(self.rows), inputs=inputs, outputs=[state.body_q], device=state.body_q.device)


def make_model(stage: str, worlds: int, device: wp.Device):
    import newton

    prototype, builder = newton.ModelBuilder(), newton.ModelBuilder()
    prototype.add_usd(stage, root_path=PROTOTYPE)
    builder.replicate(prototype, worlds)
    return builder.finalize(device=device)


def swing(model, step: int):
    """Newton's state with random joint angles: its own forward kinematics says where the links are."""
    import newton

    state = model.state()
    angles = np.random.default_rng(step).uniform(-0.4, 0.4, model.joint_q.shape).astype(np.float32)
    newton.eval_fk(model, wp.array(angles, dtype=wp.float32, device=model.device), model.joint_qd, state)
    return state


def check(model, newton_state, scene: hdwarp.Scene, state: State) -> None:
    """Every link of every robot is where Newton has it, found by names alone."""
    theirs = {
        (label.rpartition("/")[2], int(world)): pose
        for label, world, pose in zip(model.body_label, model.body_world.numpy(), newton_state.body_q.numpy(), strict=True)
    }
    ours = state.body_q.numpy()
    for row, (label, world) in enumerate(zip(scene.bodies.label, scene.bodies.world, strict=True)):
        assert np.array_equal(ours[row], theirs[label.rpartition("/")[2], int(world)]), label
    assert len(theirs) == len(ours) == len(LINKS) * scene.worlds.count


def main(arguments: list[str] | None = None) -> int:
    parser = arguments_of("newton_poses", __doc__)
    parser.add_argument("--worlds", type=int, default=16, help="how many robots (default 16)")
    parser.add_argument("--stage", type=Path, help="path of robot_cell.usda")
    options = parser.parse_args(arguments)
    try:
        import newton  # noqa: F401
        import newton_usd_schemas  # noqa: F401
    except ImportError as error:
        print(f"skipped: {error.name} is not installed; pip install 'newton[importers]'")
        return 0
    stage = robot_cell(parser, options.stage)
    with hdwarp.Scene(stage, device=options.device, worlds=[hdwarp.replicate(PROTOTYPE, count=options.worlds)]) as scene:
        model = make_model(stage, options.worlds, scene.device)
        feed, state = PoseFeed(model, scene), scene.state()
        feed(model.state(), state)
        # At rest the two readers of one stage agree, but for rounding: q and -q are the same turn.
        rest, read = state.body_q.numpy(), scene.bodies.pose
        assert np.allclose(rest[:, :3], read[:, :3], atol=1e-5)
        assert np.allclose(np.abs((rest[:, 3:] * read[:, 3:]).sum(axis=1)), 1.0, atol=1e-5)
        camera = hdwarp.SensorCamera(scene, cameras="/World/overview", resolution=(160, 120), samples=4)
        out = camera.allocate(["rgba8"])
        for step in range(3):
            newton_state = swing(model, step)
            feed(newton_state, state)
            check(model, newton_state, scene, state)
            camera.update(state, out)
        assert len({picture.tobytes() for picture in out["rgba8"].numpy()}) == options.worlds  # all stand in another way
        if options.out is not None:
            print("wrote", save_picture(options.out, "newton_poses.png", camera.tiled(out)["rgba8"]))
    print(f"ok: {options.worlds} robots of {len(LINKS)} links stand where Newton has them")
    return 0


if __name__ == "__main__":
    sys.exit(main())
