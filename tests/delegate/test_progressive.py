"""Progressive pictures: a sample a call; the truth from pictures of higher resolution, whose pixels' centres are the samples."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

import hdwarp
from hdwarp.errors import ArgumentError

SIZE = (40, 30)


def single_samples(world, side: int, **how) -> np.ndarray:
    """(side * side, H, W, 4): the samples of a picture, taken from one of ``side`` times its width and height, row by row of the grid."""
    width, height = SIZE
    color = world.render("color", size=(side * width, side * height), **how)["color"]
    return color.reshape(height, side, width, side, 4).transpose(1, 3, 0, 2, 4).reshape(side * side, height, width, 4)


def in_order(samples: np.ndarray) -> np.ndarray:
    """Grids with a middle list it first."""
    middle = len(samples) // 2
    return samples if len(samples) % 2 == 0 else np.concatenate([samples[middle : middle + 1], np.delete(samples, middle, axis=0)])


def srgb(linear: np.ndarray) -> np.ndarray:
    curve = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * np.maximum(linear, 1e-9) ** (1 / 2.4) - 0.055)
    return np.clip(curve, 0.0, 1.0) * 255.0


@pytest.mark.parametrize("samples", [1, 4, 9])
def test_after_k_calls_the_mean_of_k_samples(world, samples):
    views, buffers = world.delegate.create_views(0, SIZE), world.buffers("color", "rgba8", "primId", "depth")
    render_pass = world.delegate.create_render_pass(samples=samples)
    expected = in_order(single_samples(world, round(samples**0.5)))
    assert 0.0 < expected.mean(axis=0)[..., 3].mean() < 1.0, "the picture has edges"
    truth = world.render("primId", "depth")
    for k in range(1, samples + 1):
        assert not render_pass.is_converged and not buffers["color"].is_converged
        render_pass.execute(views, buffers, progressive=True)
        mean = expected[:k].mean(axis=0)
        color = buffers["color"].array.numpy()[0]
        np.testing.assert_allclose(color, mean, rtol=0, atol=2e-6)
        alpha = mean[..., 3:]
        straight = np.divide(mean[..., :3], alpha, out=np.zeros_like(mean[..., :3]), where=alpha > 0)
        rgba8 = buffers["rgba8"].array.numpy()[0].astype(float)
        assert np.abs(rgba8[..., :3] - srgb(straight)).max() < 0.51 and np.abs(rgba8[..., 3:] - 255.0 * alpha).max() < 0.51
        for name, pixels in truth.items():  # done at the first call
            assert np.array_equal(buffers[name].array.numpy()[0], pixels) and buffers[name].is_converged
        assert world.delegate.render_stats()["percentDone"] == pytest.approx(100.0 * k / samples)
    assert render_pass.is_converged and buffers["color"].is_converged
    whole = world.render("color", "rgba8", samples=samples)
    for _ in range(2):  # further calls change nothing
        for name, pixels in whole.items():
            assert np.array_equal(buffers[name].array.numpy()[0], pixels), name
        render_pass.execute(views, buffers, progressive=True)
        assert render_pass.is_converged


def test_a_clear_colour_is_averaged_as_any_other(world):
    clear = {"color": (0.5, 0.25, 0.0, 1.0)}
    views, buffers = world.delegate.create_views(0, SIZE), world.buffers("color")
    render_pass = world.delegate.create_render_pass(samples=4)
    expected = single_samples(world, 2, clear=clear)
    for k in range(1, 4):
        render_pass.execute(views, buffers, progressive=True, clear=clear)
        np.testing.assert_allclose(buffers["color"].array.numpy()[0], expected[:k].mean(axis=0), rtol=0, atol=2e-6)


def test_planes_that_do_not_average_are_done_at_once(world):
    views, buffers = world.delegate.create_views(0, SIZE), world.buffers("primId", "depth", "albedo")
    render_pass = world.delegate.create_render_pass(samples=16)
    render_pass.execute(views, buffers, progressive=True)
    assert render_pass.is_converged
    before = world.delegate.render_stats()
    buffers["primId"].array.fill_(99)
    render_pass.execute(views, buffers, progressive=True)
    assert (buffers["primId"].array.numpy() == 99).all(), "a picture that is done costs nothing"
    assert world.delegate.render_stats() == before


class Viewer:
    """A progressive picture of nine samples of the two cameras of a world, under way; what tests change are its attributes."""

    def __init__(self, world, camera) -> None:
        self.world, self.make_camera = world, camera
        self.cameras = [camera(), camera("/side", (1.0, 0.0, 0.0))]
        self.content: dict[str, object] = {}
        self.commit()
        self.size = SIZE
        self.views = world.delegate.create_views("*", SIZE)
        self.buffers = world.buffers("color", "primId", view_count=2)
        self.render_pass = world.delegate.create_render_pass(samples=9)
        self.how: dict[str, object] = {}

    def commit(self, **content) -> None:
        self.content.update(content)
        self.world.commit(**({"cameras": self.cameras} | self.content))

    def array(self, values, dtype) -> wp.array:
        return wp.array(values, dtype=dtype, device=self.world.device)

    def step(self) -> int:
        """One more call; how many samples the picture then has."""
        self.render_pass.execute(self.views, self.buffers, progressive=True, **self.how)
        return self.world.delegate.render_stats()["numCompletedSamples"]

    def write(self, column: str, values) -> None:
        """What a kernel may write into a column of the cameras."""
        array = getattr(self.world.delegate.tables.cameras, column)
        array.assign(np.asarray(values, array.numpy().dtype))

    def pose(self, z: float) -> None:
        self.world.delegate.tables.pose(self.array([[0.0, 0.0, z, 0.0, 0.0, 0.0, 1.0]], wp.transformf))

    def transforms(self, x: float) -> wp.array:
        return self.array([[x, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]] * 2, wp.transformf)

    def pair(self, **how) -> None:
        self.how.update(how)


@pytest.fixture
def viewer(world, camera) -> Viewer:
    return Viewer(world, camera)


def _resize(viewer: Viewer) -> None:
    viewer.views = viewer.world.delegate.create_views("*", (32, 24))
    for buffer in viewer.buffers.values():
        buffer.resize(32, 24)


def _one_camera(viewer: Viewer) -> None:
    viewer.views = viewer.world.delegate.create_views("/side", SIZE)
    viewer.buffers = viewer.world.buffers("color", "primId")


CHANGES = {
    "a prim moved": lambda v: v.commit(ball=(0.0, 0.5, -3.0)),
    "a material": lambda v: v.commit(colour=(0.0, 0.0, 1.0)),
    "a setting": lambda v: v.world.delegate.set_render_setting("cull", True),
    "a camera's pose on the stage": lambda v: v.commit(cameras=[v.cameras[0], v.make_camera("/side", (1.0, 0.1, 0.0))]),
    "a camera's pose by a kernel": lambda v: v.write("transform", [[0, 0, 0, 0, 0, 0, 1], [1, 0, 0.5, 0, 0, 0, 1]]),
    "a lens by a kernel": lambda v: v.write("focal_length", [0.05, 0.06]),
    "an exposure by a kernel": lambda v: v.write("exposure", [1.0, 2.0]),
    "camera_transforms": lambda v: v.pair(camera_transforms=v.transforms(0.25)),
    "a clip range": lambda v: v.pair(clip=v.array([[2.2, 9.0]], wp.vec2f)),
    "a view mask": lambda v: v.pair(view_mask=v.array([True, False], wp.bool)),
    "a world mask": lambda v: v.pair(world_mask=v.array([False], wp.bool)),
    "a body": lambda v: v.pose(-4.0),
    "a clear value": lambda v: v.pair(clear={"color": (1.0, 0.0, 0.0, 1.0)}),
    "other buffers": lambda v: setattr(v, "buffers", v.world.buffers("color", "primId", view_count=2)),
    "one more plane": lambda v: v.buffers.update(v.world.buffers("depth", view_count=2)),
    "another size": _resize,
    "other views": _one_camera,
    "restart of the pass": lambda v: v.render_pass.restart(),
    "restart of the delegate": lambda v: v.world.delegate.restart(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_matters_starts_it_over(viewer, change):
    """Once, and the finished picture has the bits of one made from nothing."""
    assert [viewer.step() for _ in range(3)] == [1, 2, 3]
    CHANGES[change](viewer)
    assert [viewer.step() for _ in range(9)] == list(range(1, 10))
    assert viewer.render_pass.is_converged
    fresh = {name: hdwarp.RenderBuffer(viewer.world.device) for name in viewer.buffers}
    for name, buffer in fresh.items():
        like = viewer.buffers[name]
        buffer.allocate(like.width, like.height, like.format, multi_sampled=like.is_multi_sampled, depth=like.depth)
        if "mask" in change:
            wp.copy(buffer.array, like.array)  # views that are off keep their pixels
    viewer.world.delegate.create_render_pass(samples=9).execute(viewer.views, fresh, **viewer.how)
    for name, buffer in fresh.items():
        assert np.array_equal(buffer.array.numpy(), viewer.buffers[name].array.numpy()), name


@pytest.mark.parametrize("change", CHANGES)
def test_what_matters_starts_a_finished_picture_over(viewer, change):
    for _ in range(11):
        viewer.step()
    CHANGES[change](viewer)
    assert viewer.step() == 1
    assert not viewer.render_pass.is_converged


SAME = {
    "nothing": lambda v: None,
    "a commit of the same": lambda v: v.commit(),
    "the same setting": lambda v: v.world.delegate.set_render_setting("cull", False),
    "a column written anew": lambda v: v.write("focal_length", [0.05, 0.05]),
    "a pose as it was": lambda v: v.pose(-3.0),
    "other arrays that say the same": lambda v: v.pair(
        camera_transforms=v.transforms(0.0),
        view_mask=v.array([True, True], wp.bool),
        world_mask=v.array([True], wp.bool),
        clip=v.array([[0.5, 50.0]], wp.vec2f),
        clear={"color": np.zeros(4)},
    ),
    "another picture in other buffers": lambda v: v.render_pass.execute(
        v.views, v.world.buffers("color", view_count=2), progressive=True, **v.how
    ),
    "mapping": lambda v: (v.buffers["color"].map(), v.buffers["color"].unmap()),
    "a pause": lambda v: (v.world.delegate.pause(), v.step(), v.world.delegate.resume()),
}


@pytest.mark.parametrize("change", SAME)
def test_what_does_not_matter_does_not_start_it_over(viewer, change):
    viewer.pose(-3.0)
    if "arrays" in change:
        SAME[change](viewer)
    assert [viewer.step() for _ in range(3)] == [1, 2, 3]
    SAME[change](viewer)
    assert [viewer.step() for _ in range(4)] == [4, 5, 6, 7]


def test_a_whole_picture_in_between_starts_it_over(viewer):
    """It has written over what was begun, also where its clear value was another."""
    for clear in (None, {"color": 1.0}):
        viewer.render_pass.restart()
        viewer.step()
        assert viewer.step() == 2
        viewer.render_pass.execute(viewer.views, viewer.buffers, clear=clear)
        assert viewer.render_pass.is_converged
        assert viewer.step() == 1


def test_a_call_that_fails_spoils_nothing(viewer, monkeypatch):
    """Broken off in the middle of a sample: the picture starts over, and no sample counts twice."""
    viewer.step()
    plan = next(iter(viewer.render_pass._plans.values()))
    monkeypatch.setattr(plan.samples, "finish", lambda count: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        viewer.step()
    monkeypatch.undo()
    assert viewer.step() == 1
    with pytest.raises(ArgumentError):
        viewer.render_pass.execute(viewer.views, {"color": 3}, progressive=True)
    assert viewer.step() == 2


def test_paused_and_stopped_passes_keep_what_they_have(viewer):
    delegate = viewer.world.delegate
    viewer.step()
    viewer.step()
    before = viewer.buffers["color"].array.numpy().copy()
    delegate.pause()
    viewer.commit(ball=(0.0, 0.5, -3.0))
    viewer.step()
    assert delegate.is_paused and np.array_equal(viewer.buffers["color"].array.numpy(), before)
    delegate.resume()
    assert viewer.step() == 1, "the scene changed meanwhile"
    delegate.stop()
    assert delegate.is_stopped and viewer.step() == 1
    viewer.render_pass.execute(viewer.views, viewer.buffers)  # whole pictures are not held up
    assert viewer.render_pass.is_converged
    delegate.restart()
    assert not delegate.is_stopped and viewer.step() == 1
