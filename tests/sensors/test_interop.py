"""Poses in and images out, without a copy: NumPy views, DLPack, torch where it is installed."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp
from tests.sensors.world_stages import add_environment, add_ground, empty_stage, random_poses, state_of

import hdwarp
from hdwarp.state import State

ENV = "/World/envs/env_0"
WORLDS = 3
PLANES = ["color", "rgba8", "distance_to_image_plane", "normal", "barycentric", "primId"]
CHANNELS = {"color": 4, "rgba8": 4, "normal": 3, "barycentric": 2}


@pytest.fixture(scope="module")
def scene(request):
    stage = empty_stage()
    add_ground(stage)
    add_environment(stage, ENV)
    with hdwarp.Scene(stage, device="cpu", worlds=[hdwarp.replicate(ENV, count=WORLDS)]) as scene:
        yield scene


@pytest.fixture
def camera(scene):
    return hdwarp.SensorCamera(scene, cameras="*/wrist", resolution=(32, 24))


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def images(camera, state) -> dict[str, np.ndarray]:
    out = camera.allocate(PLANES)
    camera.update(state, out)
    return {name: array.numpy().copy() for name, array in out.items()}


def same(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> bool:
    return all(np.array_equal(a[name], b[name]) for name in PLANES)


def shape_of(name: str) -> tuple[int, ...]:
    return (WORLDS, 24, 32, *([CHANNELS[name]] if name in CHANNELS else []))


@pytest.mark.parametrize("name", PLANES)
@pytest.mark.parametrize("view", [lambda array: array.numpy(), np.from_dlpack], ids=["numpy", "dlpack"])
def test_numpy_sees_the_pixels_where_they_are(scene, camera, name, view):
    """The view is made once, before anything is rendered, and shows each picture after its update."""
    out = camera.allocate([name])
    pixels = view(out[name])
    assert pixels.ctypes.data == out[name].ptr
    assert pixels.shape == shape_of(name)
    for seed in range(2):
        state = state_of(scene, random_poses(scene, seed))
        camera.update(state, out)
        assert np.array_equal(pixels, images(camera, state)[name])


@pytest.mark.parametrize("name", PLANES)
def test_update_renders_into_arrays_of_others(scene, camera, name):
    """Memory that NumPy has made, handed over as an array and by DLPack."""
    state = state_of(scene, random_poses(scene, 5))
    expected, dtype = images(camera, state)[name], camera.allocate([name])[name].dtype
    for hand_over in (
        lambda memory: wp.array(memory, dtype=dtype, device="cpu", copy=False),
        lambda memory: wp.from_dlpack(memory, dtype=dtype),
    ):
        memory = np.zeros(expected.shape, expected.dtype)
        array = hand_over(memory)
        assert array.ptr == memory.ctypes.data
        camera.update(state, {name: array})
        assert np.array_equal(memory, expected)


def test_poses_written_through_numpy_and_dlpack(scene, camera):
    poses = random_poses(scene, 1)
    expected = images(camera, state_of(scene, poses))
    state = scene.state()
    rows, seen = state.body_q.numpy(), np.from_dlpack(state.body_q)  # NumPy lets nobody write what it has by DLPack
    assert rows.ctypes.data == seen.ctypes.data == state.body_q.ptr
    assert rows.shape == seen.shape == (len(scene.bodies), 7)
    rows[:] = poses
    assert np.array_equal(seen, poses)
    assert same(images(camera, state), expected)
    state = scene.state()
    flat = wp.from_dlpack(state.body_q, dtype=wp.float32)
    assert flat.ptr == state.body_q.ptr
    flat.assign(poses)
    assert same(images(camera, state), expected)


@pytest.mark.parametrize(
    "hand_over",
    [
        lambda rows: wp.array(rows, dtype=wp.transformf, device="cpu", copy=False),
        lambda rows: wp.from_numpy(rows, dtype=wp.transformf, device="cpu"),
        lambda rows: wp.from_dlpack(rows, dtype=wp.transformf),
    ],
    ids=["array", "from_numpy", "from_dlpack"],
)
def test_a_state_over_arrays_of_others(scene, camera, hand_over):
    """``State`` takes any wp.array[transformf]; where the memory is shared, writing it moves the bodies."""
    rows = random_poses(scene, 2)
    state = State(hand_over(rows))
    assert same(images(camera, state), images(camera, state_of(scene, rows.copy())))
    if state.body_q.ptr == rows.ctypes.data:
        rows[:] = random_poses(scene, 3)
        assert same(images(camera, state), images(camera, state_of(scene, rows.copy())))


def test_a_state_over_the_wrong_rows_is_refused(scene, camera):
    rows = random_poses(scene, 2)
    out = camera.allocate(["primId"])
    for wrong in (rows[:-1].copy(), np.concatenate([rows, rows])):
        with pytest.raises(hdwarp.ArgumentError, match="body_q"):
            camera.update(State(wp.from_dlpack(wrong, dtype=wp.transformf)), out)
    with pytest.raises(hdwarp.ArgumentError, match="body_q"):
        camera.update(State(wp.from_dlpack(rows)), out)  # (bodies, 7) float32: no poses
    with pytest.raises(hdwarp.ArgumentError):
        camera.update(State(rows), out)


def test_strided_poses(scene, camera):
    """Every second row of a larger array: rendered as its copy is, or refused; never read as if it were dense."""
    rows = np.repeat(random_poses(scene, 4), 2, axis=0)
    strided = wp.array(rows, dtype=wp.transformf, device="cpu", copy=False)[::2]
    assert not strided.is_contiguous
    expected = images(camera, state_of(scene, rows[::2].copy()))
    try:
        found = images(camera, State(strided))
    except hdwarp.ArgumentError:
        return
    assert same(found, expected)


def test_camera_columns_are_written_through_numpy(scene, camera):
    state = scene.state()
    before = images(camera, state)
    column = scene.cameras.focal_length.numpy()
    assert column.ctypes.data == scene.cameras.focal_length.ptr
    kept, row = column.copy(), int(camera.view_camera.numpy()[1])
    column[row] *= 1.3
    after = images(camera, state)
    column[:] = kept
    assert [not np.array_equal(before["primId"][view], after["primId"][view]) for view in range(WORLDS)] == [False, True, False]
    assert same(images(camera, state), before)


def test_torch_sees_the_pixels_where_they_are(scene, camera, torch):
    out = camera.allocate(PLANES)
    for name, array in out.items():
        for tensor in (wp.to_torch(array), torch.from_dlpack(array)):
            assert tensor.data_ptr() == array.ptr
            assert tuple(tensor.shape) == shape_of(name)
    tensors = {name: wp.to_torch(array) for name, array in out.items()}
    state = state_of(scene, random_poses(scene, 6))
    camera.update(state, out)
    assert same({name: tensor.numpy() for name, tensor in tensors.items()}, images(camera, state))


def test_poses_from_torch(scene, camera, torch):
    """(worlds, bodies, 7), as a state over the tensor, and through a tensor over a state."""
    poses = random_poses(scene, 7)
    expected = images(camera, state_of(scene, poses))
    tensor = torch.from_numpy(poses).clone().view(WORLDS, -1, 7)
    for theirs in (wp.from_torch(tensor.view(-1, 7), dtype=wp.transformf), wp.from_dlpack(tensor.view(-1, 7), dtype=wp.transformf)):
        assert theirs.ptr == tensor.data_ptr()
        assert same(images(camera, State(theirs)), expected)
    state = scene.state()
    rows = wp.to_torch(state.body_q)
    assert rows.data_ptr() == state.body_q.ptr
    rows.copy_(tensor.view(-1, 7))
    assert same(images(camera, state), expected)
