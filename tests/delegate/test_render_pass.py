"""One pass for any views and buffers: plans are kept, nothing is allocated twice, wrong bindings are named."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

import hdwarp
from hdwarp.delegate.render_pass import MOST_PLANS
from hdwarp.errors import ArgumentError, Error, NotSupported

AOVS = ("color", "rgba8", "distance_to_image_plane", "normal", "primId")


@pytest.fixture
def allocations(monkeypatch):
    """Names of the pixel types of the arrays made since it was last cleared (those that only look at other memory left out)."""
    made: list[str] = []
    original = wp.array.__init__

    def init(self, *args, **kwargs):
        original(self, *args, **kwargs)
        if kwargs.get("ptr") is None and self.size:
            made.append(getattr(self.dtype, "__name__", str(self.dtype)))

    monkeypatch.setattr(wp.array, "__init__", init)
    return made


@pytest.mark.parametrize("samples", [1, 4])
def test_the_same_views_and_buffers_allocate_nothing(world, allocations, samples):
    views = world.delegate.create_views("/camera", (40, 30))
    sets = [world.buffers(*AOVS) for _ in range(2)]  # buffers in turns
    render_pass = world.delegate.create_render_pass(samples=samples)
    for buffers in sets:
        render_pass.execute(views, buffers)
    assert allocations
    allocations.clear()
    addresses = [[buffer.array.ptr for buffer in buffers.values()] for buffers in sets]
    for _ in range(3):
        for buffers in sets:
            render_pass.execute(views, buffers)
    assert allocations == []
    assert [[buffer.array.ptr for buffer in buffers.values()] for buffers in sets] == addresses


def test_a_sensors_update_allocates_nothing(sample_stages, device, allocations):
    scene = hdwarp.Scene(str(sample_stages / "workcell.usda"), device=device)
    sensor = hdwarp.SensorCamera(scene, cameras="*", resolution=(32, 24), samples=4)
    state, out = scene.state(), sensor.allocate(AOVS)
    for given in (state, None):
        sensor.update(given, out)
        allocations.clear()
        sensor.update(given, out)
        assert allocations == []
        scene.delegate.set_render_setting("cull", True)  # sensors without settings of their own follow; settings are no reason to allocate
        assert sensor.settings.cull
        sensor.update(given, out)
        assert allocations == []


def test_a_clear_value_of_nan_is_the_same_each_time(world, allocations):
    views, buffers = world.delegate.create_views("/camera", (8, 6)), world.buffers("depth", size=(8, 6))
    render_pass = world.delegate.create_render_pass()
    render_pass.execute(views, buffers, clear={"depth": float("nan")})
    allocations.clear()
    render_pass.execute(views, buffers, clear={"depth": float("nan")})
    assert allocations == []
    assert np.isnan(buffers["depth"].array.numpy()[0, 0, 0])


def test_one_pass_serves_views_and_buffers_of_all_sizes(world):
    """More of them than it keeps plans for, twice over: each picture has the bits of a pass of its own."""
    render_pass = world.delegate.create_render_pass(samples=4)
    sizes = [(16 + 3 * i, 12 + 2 * i) for i in range(MOST_PLANS + 2)]
    work = [(size, world.delegate.create_views("/camera", size), world.buffers(*AOVS, size=size)) for size in sizes]
    for _ in range(2):
        for _, views, buffers in work:
            render_pass.execute(views, buffers)
    for size, _, buffers in work:
        for name, pixels in world.render(*AOVS, size=size, samples=4).items():
            assert np.array_equal(buffers[name].array.numpy()[0], pixels), (size, name)


def test_bindings_as_dictionary_list_or_plain_arrays_are_one(world):
    views = world.delegate.create_views("/camera", (40, 30))
    buffers = world.buffers("color", "primId")
    arrays = {
        "color": wp.zeros((1, 30, 40), dtype=wp.vec4f, device=world.device),
        "primId": wp.zeros((30, 40), dtype=wp.int32, device=world.device),
    }
    bound = [hdwarp.AovBinding(name, buffer, clear_value=7) for name, buffer in world.buffers("color", "primId").items()]
    render_pass = world.delegate.create_render_pass(samples=4)
    render_pass.execute(views, buffers, clear={"color": 7, "primId": 7})
    render_pass.execute(views, arrays, clear={"color": 7, "primId": 7})
    render_pass.execute(views, bound)
    for binding in bound:
        expected = buffers[binding.aov_name].array.numpy()
        assert np.array_equal(binding.render_buffer.array.numpy(), expected)
        assert np.array_equal(arrays[binding.aov_name].numpy().reshape(expected.shape), expected)
    assert buffers["primId"].array.numpy()[0, 0, 0] == 7
    render_pass.execute(views, bound, clear={"primId": -3})  # goes before the binding's own
    assert bound[1].render_buffer.array.numpy()[0, 0, 0] == -3


def test_a_buffer_that_is_not_multi_sampled_holds_the_pixels_centre(world):
    views = world.delegate.create_views("/camera", (40, 30))
    centre = {"color": world.delegate.create_render_buffer("color", 40, 30, multi_sampled=False)}
    world.delegate.create_render_pass(samples=16).execute(views, centre)
    assert np.array_equal(centre["color"].array.numpy()[0], world.render("color", samples=1)["color"])
    assert not np.array_equal(centre["color"].array.numpy()[0], world.render("color", samples=16)["color"])


def test_the_scene_may_change_between_calls(world):
    """The ball 1 m farther: 3 m instead of 2; then a tall one, a scene without anything else."""
    views, buffers = world.delegate.create_views("/camera", (41, 31)), world.buffers("distance_to_image_plane", size=(41, 31))
    render_pass = world.delegate.create_render_pass()
    for distance in (3.0, 4.0, 12.0):
        world.commit(ball=(0.0, 0.0, -distance))
        render_pass.execute(views, buffers)
        assert buffers["distance_to_image_plane"].array.numpy()[0, 15, 20] == pytest.approx(distance - 1.0)


def test_bodies_carry_cameras_by_the_given_poses(world, camera):
    world.commit(cameras=[camera(place=(0.0, 0.0, -1.0), body="/ball")])  # 2 m behind the ball, which is 3 m ahead
    views, buffers = world.delegate.create_views("/camera", (41, 31)), world.buffers("distance_to_image_plane", size=(41, 31))
    render_pass = world.delegate.create_render_pass()
    render_pass.execute(views, buffers)  # as on the stage
    assert buffers["distance_to_image_plane"].array.numpy()[0, 15, 20] == pytest.approx(1.0)
    body_q = wp.array([[0.0, 0.0, -2.5, 0.0, 0.0, 0.0, 1.0]], dtype=wp.transformf, device=world.device)
    render_pass.execute(views, buffers, body_q=body_q)  # the camera's body moves half a metre back, what is drawn is not posed
    assert buffers["distance_to_image_plane"].array.numpy()[0, 15, 20] == pytest.approx(1.5)


def test_nothing_bound_is_nothing_to_do(world):
    render_pass = world.delegate.create_render_pass()
    render_pass.execute(world.delegate.create_views("/camera", (8, 6)), {})
    assert render_pass.is_converged


def test_wrong_bindings_are_named(world):
    execute, delegate = world.delegate.create_render_pass().execute, world.delegate
    views, fits = delegate.create_views("/camera", (8, 6)), world.buffers("primId", size=(8, 6))
    with pytest.raises(ArgumentError, match=r"primId.*\(1, 30, 40\).*\(1, 6, 8\)"):
        execute(views, world.buffers("primId"))
    with pytest.raises(ArgumentError, match=r"primId.*int32.*float32"):
        execute(views, {"primId": wp.zeros((1, 6, 8), dtype=wp.float32, device=world.device)})
    with pytest.raises(ArgumentError, match="not contiguous"):
        execute(views, {"primId": wp.zeros((1, 6, 16), dtype=wp.int32, device=world.device)[:, :, ::2]})
    with pytest.raises(ArgumentError, match="primId is bound to a ndarray"):
        execute(views, {"primId": np.zeros((6, 8), np.int32)})
    with pytest.raises(ArgumentError, match="did you mean primId"):
        execute(views, {"primID": fits["primId"]})
    with pytest.raises(Error, match="not allocated"):
        execute(views, {"primId": hdwarp.RenderBuffer(world.device)})
    with pytest.raises(ArgumentError, match="clear names color.*primId"):
        execute(views, fits, clear={"color": 0})
    with pytest.raises(ArgumentError, match="bound twice"):
        execute(views, [hdwarp.AovBinding("primId", fits["primId"])] * 2)
    with pytest.raises(ArgumentError, match="list of AovBinding"):
        execute(views, [fits["primId"]])
    with pytest.raises(NotSupported, match="aov_settings.*'filter'"):
        hdwarp.AovBinding("color", fits["primId"], aov_settings={"filter": "box"})
    averaged = hdwarp.RenderBuffer(world.device)
    averaged.allocate(8, 6, "Int32", multi_sampled=True)
    with pytest.raises(ArgumentError, match="never averaged"):
        execute(views, {"primId": averaged})
    with fits["primId"].mapped(), pytest.raises(ArgumentError, match=r"mapped; unmap\(\)"):
        execute(views, fits)
    execute(views, fits)


@pytest.mark.parametrize("name", ["body_q", "camera_transforms", "view_mask", "world_mask"])
def test_wrong_inputs_are_named(world, name):
    views, fits = world.delegate.create_views("/camera", (8, 6)), world.buffers("primId", size=(8, 6))
    dtype = wp.bool if name.endswith("mask") else wp.transformf
    for wrong in (wp.zeros(5, dtype=dtype, device=world.device), wp.zeros(1, dtype=wp.int32, device=world.device), [1]):
        with pytest.raises(ArgumentError, match=rf"^{name}: .*\(1,\)"):
            world.delegate.create_render_pass().execute(views, fits, **{name: wrong})


def test_wrong_options_are_named(world):
    with pytest.raises(ArgumentError, match="use 4 or 9"):
        world.delegate.create_render_pass(samples=8)
    with pytest.raises(ArgumentError, match="RenderSettings"):
        world.delegate.create_render_pass(settings={"cull": True})
