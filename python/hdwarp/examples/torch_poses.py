"""examples.torch_poses: poses from a torch tensor, images back as torch tensors, nothing copied.

    python -m hdwarp.examples.torch_poses [--worlds 9] [--out DIR]

A tensor (worlds, bodies, 7) of positions [m] and quaternions (x, y, z, w) is what many a simulation has. Two ways, both without a copy: a
`State` over the tensor's own memory, or a tensor over the memory of ``scene.state().body_q``. The images are handed to torch the
same way. Without the package torch this says so, and that is all.
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


def state_over(tensor) -> State:
    """A state whose poses are the memory of ``tensor`` (worlds, bodies, 7), contiguous: write the tensor, and the bodies have moved."""
    return State(wp.from_torch(tensor.view(-1, 7), dtype=wp.transformf))


def tensor_over(state: State, worlds: int):
    """(worlds, bodies, 7): the memory of ``state.body_q``."""
    return wp.to_torch(state.body_q).view(worlds, -1, 7)


def turn_about_z(poses, centre: tuple[float, float], angles):
    """(worlds, bodies, 7) all bodies of each world turned about a vertical line, in torch: a robot that turns at its base."""
    import torch

    cos, sin = torch.cos(angles)[:, None], torch.sin(angles)[:, None]
    dx, dy = poses[..., 0] - centre[0], poses[..., 1] - centre[1]
    x, y, z, w = poses[..., 3:].unbind(-1)
    c, s = torch.cos(angles / 2)[:, None], torch.sin(angles / 2)[:, None]
    place = (centre[0] + cos * dx - sin * dy, centre[1] + sin * dx + cos * dy, poses[..., 2])
    return torch.stack((*place, c * x - s * y, c * y + s * x, c * z + s * w, c * w - s * z), dim=-1)


def run(scene: hdwarp.Scene, folder: Path | None) -> None:
    import torch

    worlds = scene.worlds.count
    camera = hdwarp.SensorCamera(scene, cameras="/World/overview", resolution=(240, 180), samples=4)
    out = camera.allocate(["color", "rgba8", "distance_to_image_plane"])
    images = {name: wp.to_torch(array) for name, array in out.items()}
    assert all(images[name].data_ptr() == array.ptr for name, array in out.items())
    assert images["color"].shape == (worlds, 180, 240, 4)
    assert images["distance_to_image_plane"].shape == (worlds, 180, 240)

    # A tensor over hdWarp's memory.
    state = scene.state()
    rows = tensor_over(state, worlds)
    assert rows.data_ptr() == state.body_q.ptr
    assert rows.shape == (worlds, len(LINKS), 7)
    angles = torch.linspace(-1.2, 1.2, worlds, device=rows.device)
    rows.copy_(turn_about_z(rows, (-0.35, 0.0), angles))
    camera.update(state, out)
    first = images["color"].clone()
    assert len({image.cpu().numpy().tobytes() for image in images["rgba8"]}) == worlds

    # A state over torch's memory: the same poses, and so the same images, to the bit.
    mine = rows.clone()
    theirs = state_over(mine)
    assert theirs.body_q.ptr == mine.data_ptr()
    camera.update(theirs, out)
    assert torch.equal(images["color"], first)

    # Torch writes the tensor; images that torch already holds are the new ones after the next update.
    mine.copy_(mine.flip(0))
    camera.update(theirs, out)
    assert torch.equal(images["color"], first.flip(0))
    assert torch.isfinite(images["distance_to_image_plane"]).any()
    if folder is not None:
        print("wrote", save_picture(folder, "torch_poses.png", camera.tiled(out)["rgba8"]))


def main(arguments: list[str] | None = None) -> int:
    parser = arguments_of("torch_poses", __doc__)
    parser.add_argument("--worlds", type=int, default=9, help="how many robots (default 9)")
    parser.add_argument("--stage", type=Path, help="path of robot_cell.usda")
    options = parser.parse_args(arguments)
    try:
        import torch  # noqa: F401
    except ImportError as error:
        print(f"skipped: torch cannot be imported ({error}); pip install torch")
        return 0
    stage = robot_cell(parser, options.stage)
    with hdwarp.Scene(stage, device=options.device, worlds=[hdwarp.replicate(PROTOTYPE, count=options.worlds)]) as scene:
        assert np.array_equal(np.diff(scene.bodies.world_start), [0] + [len(LINKS)] * options.worlds)
        run(scene, options.out)
    print(f"ok: {options.worlds} worlds posed by torch, their images in torch, no copies")
    return 0


if __name__ == "__main__":
    sys.exit(main())
