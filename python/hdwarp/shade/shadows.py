"""shade.shadows: how much of a light each pixel sees: rays from what is seen towards the light -> a plane of visibility, 0 to 1.

A light that is no point is looked at in several directions, which differ from pixel to pixel and depend on nothing but the pixel, the light
and the number of the sample: the same picture every time. What counts of each is what it would bring to a surface that scatters evenly, so
that a light of which all is seen is as bright, to the last digit, as without shadows (a ratio estimator: Heitz, Hill and McGuire 2018).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import warp as wp

from hdwarp.aovs.pixel_runs import lane_count, lane_options, load_columns, store_pairs, store_scalars, store_triples
from hdwarp.launch import launch
from hdwarp.shade.area_lights import LightForm, light_form
from hdwarp.shade.domes import direction_from, dome_towards
from hdwarp.shade.light_samples import sample_light
from hdwarp.shade.lighting import light_count_of, light_place, light_row
from hdwarp.shade.look import TracedScene
from hdwarp.stage.looks import LightKind
from hdwarp.tables.structs import DOME_LIGHT, MESH_LIGHT, DomeTables, LightColumns, ViewRow, Visibility
from hdwarp.trace.bundles import RayBundle, RayBundles, packets_of
from hdwarp.trace.free import occluded

if TYPE_CHECKING:
    from hdwarp.shade.sheer import SheerTracer

_OFFSET = wp.constant(3.0e-5)  # of the distance to the camera: how far above a surface rays start, and before a light they end
_SHORT = wp.constant(3.0e-6)  # of its length: how far above a surface a ray from a light ends: what float32 and the tracer are good for
_REACH = wp.constant(0.5)  # of the distance to the camera: how far away what darkens a surface's surroundings may be
_NO_LIGHT = wp.constant(-1)
_PIXELS = 32  # a job
# How rays go in packets, much faster on the CPU: all from a light that is a point, or all the way to a distant one; 0: one by one.
_FROM_LIGHT, _TO_SKY = wp.constant(1), wp.constant(2)
_PACKED = {LightKind.POINT: 1, LightKind.DISTANT: 2, None: 0}


@wp.struct
class ShadowRays:
    """A ray a pixel, numbered as outputs are."""

    origins: wp.array[wp.vec3f]  # from the bundle's origin, which is the camera; nothing where rays come from a point light
    directions: wp.array[wp.vec3f]  # unit; 0: no ray
    limits: wp.array[wp.vec2f]  # [m]
    weight: wp.array[wp.float32]  # how much it counts


@wp.func
def shuffled(x: wp.uint32) -> wp.uint32:
    """A number that tells nothing of the one it is made from (lowbias32 of Chris Wellons)."""
    x = (x ^ (x >> wp.uint32(16))) * wp.uint32(0x7FEB352D)
    x = (x ^ (x >> wp.uint32(15))) * wp.uint32(0x846CA68B)
    return x ^ (x >> wp.uint32(16))


@wp.func
def sample_point(x: wp.int32, y: wp.int32, light: wp.int32, sample: wp.int32) -> wp.vec2f:
    """Point number ``sample`` on the unit square of a pixel and light: R2 of Martin Roberts from where the pixel says."""
    seed = shuffled(wp.uint32(x) ^ shuffled(wp.uint32(y) ^ shuffled(wp.uint32(light))))
    turn = shuffled(seed + wp.uint32(1))
    # Steps in whole numbers: 2^32 / g and 2^32 / g^2, g = 1.3247...
    u = seed + wp.uint32(sample) * wp.uint32(3242174889)
    v = turn + wp.uint32(sample) * wp.uint32(2447445414)
    return wp.vec2f(wp.float32(u >> wp.uint32(8)) / 16777216.0, wp.float32(v >> wp.uint32(8)) / 16777216.0)


@wp.kernel(enable_backward=False, module="unique")
def _bundles_of_lights(
    views: wp.array[ViewRow],
    packets: wp.int32,
    tile_height: wp.int32,
    lights: LightColumns,
    k: wp.int32,
    packed: wp.int32,
    out: wp.array[RayBundle],
):
    """A bundle a view, about the camera or, ``packed`` (see `_FROM_LIGHT`), about light ``k``; of rays to no light where ``k`` is
    negative."""
    i = wp.tid()
    view = views[i]
    bundle = RayBundle()
    bundle.turn = wp.identity(n=3, dtype=wp.float64)
    bundle.root = view.root
    bundle.global_root = view.global_root
    bundle.global_offset = view.global_offset
    bundle.origin = view.eye
    bundle.far = wp.inf
    bundle.columns = view.width
    bundle.rows = view.height
    bundle.tile_height = tile_height
    bundle.first_packet = i * packets
    bundle.first_ray = view.output
    bundle.output = view.output
    bundle.pitch = view.width
    bundle.masked = view.masked
    bundle.hides = view.hides
    if k < 0:
        if not wp.isfinite(view.eye):
            bundle.masked = 1
    elif k < light_count_of(lights, view.world) and wp.isfinite(view.eye):
        row = light_row(lights, view.world, k)
        if packed == _TO_SKY:
            linear = lights.linear[row]
            bundle.way = wp.normalize(wp.vec3f(linear[0, 2], linear[1, 2], linear[2, 2]))
        if packed == _FROM_LIGHT:
            bundle.origin = lights.translation[row]
            if k < lights.start[1]:
                bundle.origin -= view.global_offset
        if lights.kind[row] < 0 or lights.shadow[row] == 0:
            bundle.masked = 1
    else:
        bundle.masked = 1
    out[i] = bundle


@wp.kernel(enable_backward=False, module="unique")
def _rays_to_lights(
    first: wp.int32,
    step: wp.int32,
    count: wp.int32,
    views: wp.array[ViewRow],
    width: wp.int32,
    height: wp.int32,
    record: Visibility,
    positions: wp.array[wp.vec3f],
    geometric: wp.array[wp.vec3f],
    normals: wp.array[wp.vec3f],
    lights: LightColumns,
    domes: DomeTables,
    k: wp.int32,
    sample: wp.int32,
    out: ShadowRays,
):
    """Rays towards light ``k`` of each view's world."""
    job = first + wp.tid() * step
    if job >= count:
        return
    which = job // height
    y = job - which * height
    view = views[which]
    if view.masked != 0 or y >= view.height:
        return
    lit = k < light_count_of(lights, view.world)
    row = wp.int32(0)
    kind = wp.int32(-1)
    at = wp.vec3f()
    linear = wp.mat33f()
    form = LightForm()
    if lit:
        row = light_row(lights, view.world, k)
        kind = wp.where(lights.shadow[row] == 0 or lights.kind[row] == MESH_LIGHT, -1, lights.kind[row])
        at = light_place(lights, row, k < lights.start[1], view)
        linear = lights.linear[row]
        form = light_form(kind, lights.size[row], linear)
    top = view.y0 - 8 * view.tile_y0 + y
    start = view.record + top * 16 * view.tiles_x + view.x0 - 16 * view.tile_x0
    for x in range(view.width):
        pixel = view.output + y * view.width + x
        direction = wp.vec3f()
        weight = wp.float32(0.0)
        if kind >= 0 and record.instance[start + x] >= 0:
            p = positions[pixel]
            here = view.right * p[0] + view.up * p[1] + view.back * p[2]
            side = geometric[pixel]
            normal = normals[pixel]
            along = here
            if view.orthographic != 0:
                along = view.forward
            if wp.dot(side, along) > 0.0:  # both sides are lit
                side = -side
                normal = -normal
            reach = _OFFSET * wp.length(here)
            here = here + side * reach
            uv = sample_point(view.x0 + x, view.y0 + y, k, sample)
            towards, distance, bright = sample_light(form, at - here, uv[0], uv[1])
            if kind == DOME_LIGHT:
                towards, bright = dome_towards(domes, lights.dome[row], linear, normal, uv[0], uv[1])
                distance = wp.inf
            weight = bright * wp.max(wp.dot(normal, towards), 0.0)
            if weight > 0.0 and wp.dot(side, towards) > 0.0:
                direction = towards
                far = distance * (1.0 - _OFFSET)
                far = wp.min(far, lights.shadow_reach[row][0])
                out.origins[pixel] = here
                out.limits[pixel] = wp.vec2f(0.0, far)
        out.directions[pixel] = direction
        out.weight[pixel] = weight


@functools.cache
def sharp_rays_kernel(lanes: int, distant: bool) -> wp.Kernel:
    """`_rays_to_lights` of a POINT, or a DISTANT light without angle: a job is an image row on the CPU, a pixel on CUDA."""
    LANES, DISTANT, WHOLE_ROWS = lanes, distant, lanes > 1
    load_triples, load_rows = load_columns(lanes, 3), load_columns(lanes, 1, wp.int32)
    floats = wp.types.vector(length=lanes, dtype=wp.float32)

    @wp.kernel(enable_backward=False, module="unique", module_options=lane_options(lanes))
    def rays_to_sharp_light(
        first: wp.int32,
        step: wp.int32,
        count: wp.int32,
        views: wp.array[ViewRow],
        width: wp.int32,
        height: wp.int32,
        instance: wp.array[wp.int32],  # of the visibility record
        positions: wp.array[wp.float32],  # flat, as the normals
        geometric: wp.array[wp.float32],
        normals: wp.array[wp.float32],
        lights: LightColumns,
        k: wp.int32,
        out: ShadowRays,
    ):
        job = first + wp.tid() * step
        if job >= count:
            return
        line = job
        begin, end = wp.int32(0), width
        if not WHOLE_ROWS:
            line = job // width
            begin = job - line * width
            end = begin + 1
        which = line // height
        y = line - which * height
        view = views[which]
        end = wp.min(end, view.width)
        if view.masked != 0 or y >= view.height:
            return
        bright = wp.float32(0.0)
        reach = wp.float32(0.0)
        at, axis = wp.vec3f(), wp.vec3f()
        if k < light_count_of(lights, view.world):
            row = light_row(lights, view.world, k)
            bright = wp.where(lights.shadow[row] != 0 and lights.kind[row] >= 0, 1.0, 0.0)
            at = light_place(lights, row, k < lights.start[1], view)
            linear = lights.linear[row]
            axis = wp.normalize(wp.vec3f(linear[0, 2], linear[1, 2], linear[2, 2]))
            reach = lights.shadow_reach[row][0]
        start = view.record + (view.y0 - 8 * view.tile_y0 + y) * 16 * view.tiles_x + view.x0 - 16 * view.tile_x0
        ox, oy, oz = floats(), floats(), floats()
        wx, wy, wz = floats(), floats(), floats()
        near, far, weight = floats(), floats(), floats()
        for block in range((end - begin + LANES - 1) // LANES):
            x0 = begin + block * LANES
            pixel = view.output + y * view.width + x0
            high = wp.min(end - x0, LANES)
            seen = load_rows(instance, 0, high, start + x0)
            p = load_triples(positions, 0, high, pixel)
            side = load_triples(geometric, 0, high, pixel)
            normal = load_triples(normals, 0, high, pixel)
            for lane in range(LANES):
                x = view.right[0] * p[0, lane] + view.up[0] * p[1, lane] + view.back[0] * p[2, lane]
                y_ = view.right[1] * p[0, lane] + view.up[1] * p[1, lane] + view.back[1] * p[2, lane]
                z = view.right[2] * p[0, lane] + view.up[2] * p[1, lane] + view.back[2] * p[2, lane]
                flat = view.orthographic != 0
                ax = wp.where(flat, view.forward[0], x)
                ay = wp.where(flat, view.forward[1], y_)
                az = wp.where(flat, view.forward[2], z)
                # Both sides are lit.
                sign = wp.where(side[0, lane] * ax + side[1, lane] * ay + side[2, lane] * az > 0.0, -1.0, 1.0)
                up = _OFFSET * wp.sqrt(x * x + y_ * y_ + z * z)
                if not DISTANT:
                    tx, ty, tz = at[0] - x, at[1] - y_, at[2] - z
                    up = up + _SHORT * wp.sqrt(tx * tx + ty * ty + tz * tz)
                up = up * sign
                x, y_, z = x + side[0, lane] * up, y_ + side[1, lane] * up, z + side[2, lane] * up
                tx, ty, tz = axis[0], axis[1], axis[2]
                distance, shines = wp.inf, bright
                if not DISTANT:
                    tx, ty, tz = at[0] - x, at[1] - y_, at[2] - z
                    square = wp.max(tx * tx + ty * ty + tz * tz, 1.0e-30)
                    distance = wp.sqrt(square)
                    tx, ty, tz = tx / distance, ty / distance, tz / distance
                    shines = bright / square
                shines = shines * wp.max(sign * (normal[0, lane] * tx + normal[1, lane] * ty + normal[2, lane] * tz), 0.0)
                shines = wp.where(seen[0, lane] >= 0, shines, 0.0)
                over = sign * (side[0, lane] * tx + side[1, lane] * ty + side[2, lane] * tz)
                there = wp.where(shines > 0.0 and over > 0.0, 1.0, 0.0)
                last = wp.min(distance * (1.0 - _OFFSET), reach)
                # Packed rays of a point come from it.
                turn = wp.where(DISTANT, there, -there)
                wx[lane] = wp.where(there != 0.0, tx * turn, 0.0)
                wy[lane] = wp.where(there != 0.0, ty * turn, 0.0)
                wz[lane] = wp.where(there != 0.0, tz * turn, 0.0)
                near[lane] = wp.where(DISTANT, 0.0, distance - last)
                far[lane] = wp.where(DISTANT, last, distance * (1.0 - _SHORT))
                ox[lane] = x
                oy[lane] = y_
                oz[lane] = z
                weight[lane] = shines
            store_triples(wx, wy, wz, 0, high, pixel, out.directions)
            store_pairs(near, far, 0, high, pixel, out.limits)
            store_scalars(weight, 0, high, pixel, out.weight)
            if DISTANT:
                store_triples(ox, oy, oz, 0, high, pixel, out.origins)

    return rays_to_sharp_light


@wp.kernel(enable_backward=False, module="unique")
def _rays_around(
    first: wp.int32,
    step: wp.int32,
    count: wp.int32,
    views: wp.array[ViewRow],
    width: wp.int32,
    height: wp.int32,
    record: Visibility,
    positions: wp.array[wp.vec3f],
    geometric: wp.array[wp.vec3f],
    normals: wp.array[wp.vec3f],
    sample: wp.int32,
    out: ShadowRays,
):
    """Short rays to all sides of a surface, as many as the cosine says."""
    job = first + wp.tid() * step
    if job >= count:
        return
    which = job // height
    y = job - which * height
    view = views[which]
    if view.masked != 0 or y >= view.height:
        return
    top = view.y0 - 8 * view.tile_y0 + y
    start = view.record + top * 16 * view.tiles_x + view.x0 - 16 * view.tile_x0
    for x in range(view.width):
        pixel = view.output + y * view.width + x
        direction = wp.vec3f()
        weight = wp.float32(0.0)
        if record.instance[start + x] >= 0:
            p = positions[pixel]
            here = view.right * p[0] + view.up * p[1] + view.back * p[2]
            side = geometric[pixel]
            normal = normals[pixel]
            along = here
            if view.orthographic != 0:
                along = view.forward
            if wp.dot(side, along) > 0.0:
                side = -side
                normal = -normal
            far = wp.length(here)
            uv = sample_point(view.x0 + x, view.y0 + y, _NO_LIGHT, sample)
            towards = wp.normalize(normal + direction_from(2.0 * wp.pi * uv[1], 1.0 - 2.0 * uv[0]))
            if wp.dot(side, towards) > 0.0:  # others are of a normal that is not the surface's: they do not count
                direction = towards
                weight = 1.0
                out.origins[pixel] = here + side * (_OFFSET * far)
                out.limits[pixel] = wp.vec2f(0.0, _REACH * far)
        out.directions[pixel] = direction
        out.weight[pixel] = weight


@wp.kernel(enable_backward=False, module="unique")
def _gather(
    first: wp.int32,
    step: wp.int32,
    count: wp.int32,
    rays: ShadowRays,
    blocked: wp.array[wp.bool],
    through: wp.array[wp.float32],  # in place of `blocked`: what of the light comes through; null without
    begin: wp.int32,
    end: wp.int32,
    total: wp.array[wp.float32],
    seen: wp.array[wp.float32],
):
    """Add one ray a pixel to what is seen and to all there was to see; at the ``end`` what is seen of it."""
    job = first + wp.tid() * step
    if job >= count:
        return
    for pixel in range(job * _PIXELS, wp.min(job * _PIXELS + _PIXELS, total.shape[0])):
        weight = rays.weight[pixel]
        direction = rays.directions[pixel]
        free = direction[0] != 0.0 or direction[1] != 0.0 or direction[2] != 0.0
        passed = wp.where(free and not blocked[pixel], weight, 0.0)
        if through:
            passed = weight * through[pixel]
        if begin == 0:
            weight += total[pixel]
            passed += seen[pixel]
        total[pixel] = weight
        seen[pixel] = passed
        if end != 0:
            seen[pixel] = wp.where(weight > 0.0, passed / weight, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class ShadowSurface:
    """What pixels see, numbered as outputs are: from the camera in its axes [m], the geometric normal, and that of shading."""

    record: Visibility
    positions: wp.array
    geometric: wp.array
    normals: wp.array
    numbers: tuple[wp.array, wp.array, wp.array]  # these three as their numbers, the memory shared


class Shadows:
    """The shadow rays of a list of views, and the memory for them: made once, then traced light by light."""

    def __init__(self, views: wp.array, view_count: int, width: int, height: int, *, device: wp.Device) -> None:
        """All views are ``height`` x ``width`` pixels."""
        self.device = device
        self._views, self._view_count, self._width, self._height = views, view_count, width, height
        self._tile_height, self._packets = packets_of((height, width))
        rows = wp.array(np.zeros(max(view_count, 1), RayBundle.numpy_dtype()), dtype=RayBundle, device=device)
        size = view_count * width * height
        self._bundles = RayBundles(rows, view_count, view_count * self._packets, size)
        self._rays = ShadowRays()
        for name, dtype in (("origins", wp.vec3f), ("directions", wp.vec3f), ("limits", wp.vec2f), ("weight", wp.float32)):
            setattr(self._rays, name, wp.zeros(max(size, 1), dtype=dtype, device=device))
        self._sheer: SheerTracer | None = None  # made when somebody needs it
        self._blocked = wp.zeros(max(size, 1), dtype=wp.bool, device=device)
        self._total = wp.zeros(max(size, 1), dtype=wp.float32, device=device)

    def _sheer_tracer(self) -> SheerTracer:
        if self._sheer is None:
            from hdwarp.shade.sheer import SheerTracer  # declaring its kernels takes time at every start

            self._sheer = SheerTracer(self._bundles, self.device)
        return self._sheer

    def look(
        self,
        scene: TracedScene,
        surface: ShadowSurface,
        lights: LightColumns,
        domes: DomeTables,
        k: int,
        samples: range,
        *,
        sharp: LightKind | None,
        visibility: wp.array,
    ) -> None:
        """Fill ``visibility`` (pixels,) with how much is seen of light ``k`` of each view's world, by samples number ``samples``.
        ``sharp``: it is a POINT or a DISTANT light without angle in all worlds: rays go in packets. Device work only."""
        device, packed = self.device, _PACKED[sharp]
        inputs = [self._views, self._packets, self._tile_height, lights, k, packed]
        wp.launch(_bundles_of_lights, dim=self._view_count, inputs=inputs, outputs=[self._bundles.rows], device=device)
        origins = None if packed == 1 else self._rays.origins
        for sample in samples:
            self._aim(surface, lights, domes, k, sample, packed)
            self._trace(scene, origins, visibility, [int(sample == samples[0]), int(sample == samples[-1])], parallel=packed == 2)

    def _aim(self, surface: ShadowSurface, lights: LightColumns, domes: DomeTables, k: int, sample: int, packed: int) -> None:
        """The rays of one sample of each pixel."""
        views, lines = [self._views, self._width, self._height], self._view_count * self._height
        if packed:
            lanes = lane_count(self.device)
            inputs = [*views, surface.record.instance, *surface.numbers, lights, k]
            jobs = lines if lanes > 1 else lines * self._width
            launch(sharp_rays_kernel(lanes, packed == _PACKED[LightKind.DISTANT]), jobs, inputs, [self._rays], device=self.device)
            return
        planes = [surface.positions, surface.geometric, surface.normals]
        launch(_rays_to_lights, lines, [*views, surface.record, *planes, lights, domes, k, sample], [self._rays], device=self.device)

    def look_around(self, scene: TracedScene, surface: ShadowSurface, samples: range, *, openness: wp.array) -> None:
        """Fill ``openness`` (pixels,) with how much of the surroundings is free, weighted by the cosine, by samples number ``samples``;
        only what is nearer than half the distance to the camera counts. Device work only."""
        device, views = self.device, [self._views, self._width, self._height]
        inputs = [self._views, self._packets, self._tile_height, LightColumns(), _NO_LIGHT, 0]
        wp.launch(_bundles_of_lights, dim=self._view_count, inputs=inputs, outputs=[self._bundles.rows], device=device)
        seen = [surface.record, surface.positions, surface.geometric, surface.normals]
        for sample in samples:
            launch(_rays_around, self._view_count * self._height, [*views, *seen, sample], [self._rays], device=device)
            ends = [int(sample == samples[0]), int(sample == samples[-1])]
            self._trace(scene, self._rays.origins, openness, ends)

    def _trace(
        self, scene: TracedScene, origins: wp.array | None, visibility: wp.array, ends: list[int], *, parallel: bool = False
    ) -> None:
        """Trace the rays as they are, and add what they see; ``ends``: whether they are the first, and the last."""
        device, through = self.device, None
        if scene.sheer is not None:
            through = self._sheer_tracer().look(scene, origins, self._rays.directions, self._rays.limits, self._blocked)
        else:
            traced = [self._bundles, origins, self._rays.directions, scene.meshes, scene.instances, scene.top]
            occluded(*traced, kinds=scene.kinds, limits=self._rays.limits, parallel=parallel, out=self._blocked, device=device)
        jobs = -(-self._total.shape[0] // _PIXELS)
        launch(_gather, jobs, [self._rays, self._blocked, through, *ends], [self._total, visibility], device=device)
