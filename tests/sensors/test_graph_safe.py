"""`update()` is device work alone: so many launches and no allocation, whatever the number of views; unused cameras cost nothing."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp
from pxr import UsdGeom
from tests.sensors.world_stages import add_environment, add_ground, add_overview, empty_stage, random_poses, state_of

import hdwarp
from hdwarp import launch as launching

ENV = "/World/envs/env_0"
PLANES = ["color", "distance_to_image_plane", "primId", "normal", "barycentric"]


class Counter:
    """Launches and device allocations while it is on; on the CPU a launch that threads share counts once."""

    def __init__(self, monkeypatch, device: wp.Device) -> None:
        self.launches = self.allocations = 0
        self._patch, self._device = monkeypatch, device

    def __enter__(self) -> Counter:
        self._context = self._patch.context()
        patch = self._context.__enter__()
        allocator = type(self._device.get_allocator())
        allocate, launch, run = allocator.allocate, wp.launch, launching.Pipeline.run

        def count_allocation(*arguments, **options):
            self.allocations += 1
            return allocate(*arguments, **options)

        def count_launch(*arguments, **options):
            self.launches += 1
            return launch(*arguments, **options)

        def count_run(pipeline):
            self.launches += 1
            return run(pipeline)

        patch.setattr(allocator, "allocate", count_allocation)
        patch.setattr(wp, "launch", count_launch)
        patch.setattr(launching.Pipeline, "run", count_run)
        return self

    def __exit__(self, *error) -> None:
        self._context.__exit__(*error)


def environment():
    stage = empty_stage()
    add_ground(stage)
    add_overview(stage)
    add_environment(stage, ENV)
    return stage


@pytest.mark.parametrize("masked", [False, True])
def test_launches_and_allocations_do_not_grow_with_views(device, monkeypatch, masked):
    """One world and 4,096, a wrist camera each, posed, with masks and poses written in between: the same launches, no allocation."""
    counts = {}
    for worlds in (1, 4096):
        with hdwarp.Scene(environment(), device=device, worlds=[hdwarp.replicate(ENV, count=worlds)]) as scene:
            sensor = hdwarp.SensorCamera(scene, cameras="*/wrist", resolution=(8, 8))
            assert sensor.view_count == worlds
            out, state = sensor.allocate(PLANES), state_of(scene, random_poses(scene, 0))
            masks = {}
            if masked:
                masks["view_mask"] = wp.array(np.arange(worlds) % 2 == 0, dtype=wp.bool, device=scene.device)
                masks["world_mask"] = wp.array(np.arange(worlds) % 3 == 0, dtype=wp.bool, device=scene.device)
            sensor.update(state, out, **masks)
            with Counter(monkeypatch, scene.device) as counter:
                for _ in range(3):
                    sensor.update(state, out, **masks)
                sensor.compute_view_transforms(state, out=wp.empty(worlds, dtype=wp.transformf, device=scene.device))
            counts[worlds] = counter.launches, counter.allocations - 1  # the one array made here
    (few, none), (many, nothing) = counts[1], counts[4096]
    assert none == nothing == 0
    assert few == many > 0


def test_addresses_stay_where_they_are(device):
    """What a captured graph would write to: outputs, view rows, columns of cameras and instances."""
    with hdwarp.Scene(environment(), device=device, worlds=[hdwarp.replicate(ENV, count=8)]) as scene:
        sensor = hdwarp.SensorCamera(scene, cameras="*", resolution=(8, 8))
        out, state = sensor.allocate(PLANES), scene.state()

        def addresses() -> list[int]:
            columns = scene.instances.columns()
            arrays = [*out.values(), sensor.views.rows, scene.cameras.transform, columns.world_from_object, columns.translation]
            return [array.ptr for array in arrays]

        sensor.update(state, out)
        before = addresses()
        for seed in range(3):
            sensor.update(state_of(scene, random_poses(scene, seed)), out)
        assert addresses() == before


def test_ten_thousand_unused_cameras_cost_nothing(device, monkeypatch):
    """Not a launch, an allocation or a byte more than without them (R12)."""
    found = []
    for cameras in (0, 10_000):
        stage = environment()
        for i in range(cameras):
            UsdGeom.Camera.Define(stage, f"/World/unused/camera_{i}")
        with Counter(monkeypatch, wp.get_device(device)) as opening, hdwarp.Scene(stage, device=device) as scene:
            arrays = [growing.array.capacity for growing in scene.cameras._arrays.values()]
            found.append((opening.launches, opening.allocations, scene.tables.device_bytes, sum(arrays)))
    assert found[0] == found[1]
    for cameras in (0, 10_000):
        stage = environment()
        for i in range(cameras):
            UsdGeom.Camera.Define(stage, f"/World/unused/camera_{i}")
        with hdwarp.Scene(stage, device=device) as scene:
            sensor = hdwarp.SensorCamera(scene, cameras="*/wrist", resolution=(8, 8))
            out, state = sensor.allocate(PLANES), scene.state()
            sensor.update(state, out)
            with Counter(monkeypatch, scene.device) as counter:
                sensor.update(state, out)
            found.append((counter.launches, counter.allocations, sensor.views.count, sensor.views.rows.capacity))
    assert found[2] == found[3]


@wp.kernel(enable_backward=False)
def randomise(seed: wp.int32, nominal: wp.float32, focal: wp.array[wp.float32], body_q: wp.array[wp.transformf]):
    c = wp.tid()
    rng = wp.rand_init(seed, c)
    if c < focal.shape[0]:
        focal[c] = nominal * (1.0 + 0.2 * (wp.randf(rng) - 0.5))
    if c < body_q.shape[0]:
        p = wp.transform_get_translation(body_q[c])
        body_q[c] = wp.transformf(p + wp.vec3f(0.0, 0.0, 0.05 * wp.randf(rng)), wp.transform_get_rotation(body_q[c]))


def test_a_randomisation_kernel_before_the_render(device):
    """Focal lengths and poses written by a kernel: each world renders with its own. On CUDA the two are captured in a graph."""
    with hdwarp.Scene(environment(), device=device, worlds=[hdwarp.replicate(ENV, count=6)]) as scene:
        sensor = hdwarp.SensorCamera(scene, cameras="*/wrist", resolution=(32, 24))
        out, state = sensor.allocate(["distance_to_image_plane", "primId"]), scene.state()

        def step(seed: int) -> None:
            inputs = [seed, 1.8, scene.cameras.focal_length, state.body_q]
            wp.launch(randomise, dim=32, inputs=inputs, device=scene.device)
            sensor.update(state, out)

        step(1)
        assert len(np.unique(out["primId"].numpy().reshape(6, -1), axis=0)) == 6
        expected = {name: array.numpy().copy() for name, array in out.items()}
        if scene.device.is_cuda:
            state = scene.state()
            with wp.ScopedCapture(scene.device) as capture:
                step(1)
            wp.capture_launch(capture.graph)
        else:
            state.body_q.assign(scene.state().body_q)
            step(1)
        assert all(np.array_equal(out[name].numpy(), expected[name]) for name in out)
