"""views.given_rays: rays that are data: bundles of one shape on the device, taken over from what a user gives."""

from __future__ import annotations

import warp as wp

from hdwarp.launch import launch
from hdwarp.tables.structs import RayColumns


@wp.func
def is_finite(v: wp.vec3f) -> wp.bool:
    return wp.isfinite(v[0]) and wp.isfinite(v[1]) and wp.isfinite(v[2])


@wp.func
def unit_direction(v: wp.vec3f) -> wp.vec3f:
    """In double: squares neither overflow nor vanish. Zero stays zero."""
    x, y, z = wp.float64(v[0]), wp.float64(v[1]), wp.float64(v[2])
    length = wp.sqrt(x * x + y * y + z * z)
    scale = wp.where(length > wp.float64(0.0), wp.float64(1.0) / length, wp.float64(0.0))
    return wp.vec3f(wp.float32(x * scale), wp.float32(y * scale), wp.float32(z * scale))


@wp.kernel(enable_backward=False, module="unique")
def _take_rays(
    first: wp.int32,
    step: wp.int32,
    count: wp.int32,
    given: wp.array[wp.vec3f],
    pixels: wp.int32,
    samples: wp.int32,
    first_bundle: wp.int32,
    origins: wp.array[wp.vec3f],
    directions: wp.array[wp.vec3f],
    scattered: wp.array[wp.int32],
):
    """A ray a job, in the order of ``given``: (bundle, pixel, sample, origin and direction). Ours have sample before pixel."""
    job = first + wp.tid() * step
    if job >= count:
        return
    sample = job % samples
    pixel = (job // samples) % pixels
    bundle = first_bundle + job // (samples * pixels)
    origin, direction = wp.vec3f(given[2 * job]), unit_direction(given[2 * job + 1])
    if not (is_finite(origin) and is_finite(given[2 * job + 1])) or direction == wp.vec3f():
        origin = wp.vec3f()
        direction = wp.vec3f()
    ray = (bundle * samples + sample) * pixels + pixel
    origins[ray] = origin
    directions[ray] = direction
    if origin[0] != 0.0 or origin[1] != 0.0 or origin[2] != 0.0:
        scattered[bundle] = 1  # any thread writes the same


class GivenRays:
    """``bundle_count`` bundles of (height, width) pixels with ``samples`` rays each, in the frame of a sensor. All start as no rays.

    ``origins``, ``directions``: (bundle, sample, pixel) vec3f, flat. ``scattered``: (bundle_count,) int32, 1: not all of a bundle's rays
    start at the sensor. They stay where they are.
    """

    def __init__(self, height: int, width: int, samples: int, bundle_count: int, device: wp.Device) -> None:
        self.shape, self.samples, self.bundle_count, self.device = (height, width), samples, bundle_count, device
        self.pixel_count = height * width
        self.bundle_size = samples * self.pixel_count
        size = max(bundle_count * self.bundle_size, 1)
        self.origins = wp.zeros(size, dtype=wp.vec3f, device=device)
        self.directions = wp.zeros(size, dtype=wp.vec3f, device=device)
        self.scattered = wp.zeros(max(bundle_count, 1), dtype=wp.int32, device=device)

    @property
    def columns(self) -> RayColumns:
        columns = RayColumns()
        columns.origins, columns.directions = self.origins, self.directions
        return columns

    def take(self, rays: wp.array, first_bundle: int, bundle_count: int) -> None:
        """Copy ``bundle_count`` bundles from contiguous vec3f (bundle, row, column, sample, 2): directions become unit, what is not finite
        no ray. Device work only."""
        flat = wp.array(ptr=rays.ptr, dtype=wp.vec3f, shape=(rays.size,), device=self.device, capacity=rays.capacity)
        self.scattered[first_bundle : first_bundle + bundle_count].zero_()
        inputs = [flat, self.pixel_count, self.samples, first_bundle]
        outputs = [self.origins, self.directions, self.scattered]
        launch(_take_rays, bundle_count * self.bundle_size, inputs, outputs, device=self.device, grain=4096)

    def copy_bundles(self, source: GivenRays, bundles: list[tuple[int, int, int]]) -> None:
        """Take over bundles of ``source``, of the same shape: (first there, first here, how many) each."""
        for there, here, count in bundles:
            size = self.bundle_size
            for ours, theirs in ((self.origins, source.origins), (self.directions, source.directions)):
                wp.copy(ours, theirs, dest_offset=here * size, src_offset=there * size, count=count * size)
            wp.copy(self.scattered, source.scattered, dest_offset=here, src_offset=there, count=count)
