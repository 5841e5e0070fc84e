"""shade.sheer: what of the light along shadow rays comes through surfaces that are cut away or blended: from surface to surface."""

from __future__ import annotations

import functools

import warp as wp

from hdwarp.launch import launch
from hdwarp.shade.cutout import material_of
from hdwarp.shade.look import TracedScene
from hdwarp.shade.textures import as_shown, look_up
from hdwarp.tables.structs import (
    FACE_VARYING,
    INPUT_COUNT,
    MESH,
    NONE,
    OPACITY_INPUT,
    PRIMVAR,
    UNIFORM,
    VERTEX,
    InstanceColumns,
    MaterialColumns,
    MeshColumns,
    PrimvarColumns,
    TextureColumns,
)
from hdwarp.trace.bundles import RayBundle, RayBundles, RayHits, bundle_of_ray
from hdwarp.trace.free import occluded
from hdwarp.trace.rays import widen
from hdwarp.trace.single import trace_rays

MAX_SURFACES = 8
"""Surfaces that a shadow ray goes through. Behind as many, the next one stops it, whatever its opacity."""
_ADVANCE = 3.0e-5  # of the distance: where a ray goes on behind a surface
_LEAST = 1.0e-3  # of the light, less is none
_RAYS = 32  # a job


@wp.struct
class SheerRays:
    """What becomes of rays; arrays by ray."""

    through: wp.array[wp.float32]  # what of the light has come through so far; 0: no ray, and what hits hold there is of no meaning
    opacity: wp.array[wp.float32]  # of what is hit
    directions: wp.array[wp.vec3f]  # as `ShadowRays`; 0 from where nothing can come to its limits
    limits: wp.array[wp.vec2f]
    slot: wp.array[wp.int32]  # what was hit last
    instance: wp.array[wp.int32]
    alive: wp.array[wp.int32]  # by job: some of its rays go on


@wp.func
def weights_of(meshes: MeshColumns, slot: wp.int32, p: wp.vec3d) -> wp.vec2f:
    """Weights of the first two corners of a triangle at ``p``, in the mesh's own space."""
    leaf, lane = slot // 16, slot % 16
    a, b, c = wp.vec3d(), wp.vec3d(), wp.vec3d()
    for axis in range(3):
        a[axis] = wp.float64(meshes.leaf_vertices[9 * leaf + axis][lane])
        b[axis] = wp.float64(meshes.leaf_vertices[9 * leaf + 3 + axis][lane])
        c[axis] = wp.float64(meshes.leaf_vertices[9 * leaf + 6 + axis][lane])
    normal = wp.cross(b - a, c - a)
    size = wp.dot(normal, normal)
    if not (size > wp.float64(0.0)):
        return wp.vec2f(1.0, 0.0)
    return wp.vec2f(wp.float32(wp.dot(wp.cross(b - p, c - p), normal) / size), wp.float32(wp.dot(wp.cross(c - p, a - p), normal) / size))


@wp.func
def primvar_at(
    meshes: MeshColumns, instances: InstanceColumns, primvar: PrimvarColumns, row: wp.int32, slot: wp.int32, weights: wp.vec2f
) -> wp.vec4f:
    """A primvar at a hit as `aovs.interpolation` has it, 0 beyond its width; NaN where there is none. Along curves it does not vary."""
    source = instances.source[row]
    mesh = instances.geometry[source]
    kind = wp.int32(NONE)
    if mesh >= 0:
        kind = primvar.mesh_interpolation[mesh]
    value = wp.vec4f()
    if kind == NONE:
        base = primvar.instance_values[source]
        if base < 0:
            return wp.vec4f(wp.float32(wp.NAN))
        for i in range(primvar.width):
            value[i] = primvar.values[base * primvar.width + i]
        return value
    triangle = meshes.triangle_start[mesh] + meshes.slot_triangle[slot]
    face = meshes.triangle_face[triangle]
    numbers = wp.vec3i(face, face, face)
    if kind == VERTEX:
        numbers = meshes.triangle_points[triangle]
    elif kind == FACE_VARYING:
        numbers = meshes.triangle_corners[triangle]
    elif kind != UNIFORM:
        numbers = wp.vec3i(4 * face, 4 * face, 4 * face)
    for corner in range(3):
        weight = wp.where(corner == 0, weights[0], wp.where(corner == 1, weights[1], 1.0 - weights[0] - weights[1]))
        number = numbers[corner]
        if primvar.mesh_indices[mesh] >= 0:
            number = primvar.indices[primvar.mesh_indices[mesh] + number]
        for i in range(primvar.width):
            value[i] += weight * primvar.values[(primvar.mesh_values[mesh] + number) * primvar.width + i]
    return value


@wp.func
def primvar_of_ray(
    bundles: wp.array[RayBundle],
    bundle_count: wp.int32,
    ray: wp.int32,
    origins: wp.array[wp.vec3f],
    direction: wp.vec3f,
    meshes: MeshColumns,
    instances: InstanceColumns,
    primvar: PrimvarColumns,
    hits: RayHits,
) -> wp.vec4f:
    """The same where a ray hits."""
    row, slot = hits.instance[ray], hits.slot[ray]
    weights = wp.vec2f(1.0, 0.0)
    if instances.kind[instances.source[row]] == MESH:
        which = bundle_of_ray(bundles, bundle_count, ray)
        shift = bundles[which].origin - instances.translation[row]
        if origins.shape[0] > 0:
            shift += widen(origins[ray])
        if instances.world[row] < 0:
            shift += bundles[which].global_offset
        shift += widen(direction) * wp.float64(hits.t[ray])
        weights = weights_of(meshes, slot, wp.inverse(wp.mat33d(instances.world_from_object[row])) * shift)
    return primvar_at(meshes, instances, primvar, row, slot, weights)


@wp.kernel(enable_backward=False, module="unique")
def _begin(first: wp.int32, step: wp.int32, count: wp.int32, out: SheerRays):
    job = first + wp.tid() * step
    if job >= count:
        return
    for ray in range(job * _RAYS, wp.min(job * _RAYS + _RAYS, out.through.shape[0])):
        d = out.directions[ray]
        out.through[ray] = wp.where(d[0] != 0.0 or d[1] != 0.0 or d[2] != 0.0, 1.0, 0.0)
        out.instance[ray] = -1


@wp.kernel(enable_backward=False, module="unique")
def _constant_opacities(
    first: wp.int32,
    step: wp.int32,
    count: wp.int32,
    meshes: MeshColumns,
    instances: InstanceColumns,
    materials: MaterialColumns,
    textured: wp.int32,
    hits: RayHits,
    out: SheerRays,
):
    """Of what rays hit; 1 without material."""
    job = first + wp.tid() * step
    if job >= count:
        return
    for ray in range(job * _RAYS, wp.min(job * _RAYS + _RAYS, out.through.shape[0])):
        opacity = wp.float32(1.0)
        row = hits.instance[ray]
        if row >= 0 and out.through[ray] > 0.0:
            material = material_of(meshes, instances, row, hits.slot[ray])
            if material >= 0:
                opacity = materials.opacity[material]
                if textured != 0 and materials.texture[INPUT_COUNT * material + OPACITY_INPUT] >= 0:
                    opacity = 1.0
        out.opacity[ray] = opacity


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 0})
def _textured_opacities(
    first: wp.int32,
    step: wp.int32,
    count: wp.int32,
    bundles: wp.array[RayBundle],
    bundle_count: wp.int32,
    origins: wp.array[wp.vec3f],
    meshes: MeshColumns,
    instances: InstanceColumns,
    materials: MaterialColumns,
    textures: TextureColumns,
    which: wp.int32,  # the set of coordinates, or of values
    shown: wp.int32,  # 1: values, that are shown themselves
    primvar: PrimvarColumns,  # that set
    hits: RayHits,
    out: SheerRays,
):
    """Those of textures that are laid by one set."""
    job = first + wp.tid() * step
    if job >= count:
        return
    for ray in range(job * _RAYS, wp.min(job * _RAYS + _RAYS, out.through.shape[0])):
        row = hits.instance[ray]
        if row >= 0 and out.through[ray] > 0.0:
            material = material_of(meshes, instances, row, hits.slot[ray])
            texture = wp.int32(-1)
            if material >= 0:
                texture = materials.texture[INPUT_COUNT * material + OPACITY_INPUT]
            if texture >= 0 and textures.st[texture] == which and (textures.storage[texture] == PRIMVAR) == (shown != 0):
                value = primvar_of_ray(bundles, bundle_count, ray, origins, out.directions[ray], meshes, instances, primvar, hits)
                if shown == 0:
                    out.opacity[ray] = look_up(textures, texture, wp.vec2f(value[0], value[1]))[0]
                else:
                    by = wp.cw_mul(value, textures.scale[texture]) + textures.bias[texture]
                    if value[0] != value[0]:
                        by = textures.fallback[texture]
                    out.opacity[ray] = as_shown(textures, texture, by)[0]


@wp.kernel(enable_backward=False, module="unique")
def _display_opacities(
    first: wp.int32,
    step: wp.int32,
    count: wp.int32,
    bundles: wp.array[RayBundle],
    bundle_count: wp.int32,
    origins: wp.array[wp.vec3f],
    meshes: MeshColumns,
    instances: InstanceColumns,
    primvar: PrimvarColumns,
    hits: RayHits,
    out: SheerRays,
):
    """Those of what has no material."""
    job = first + wp.tid() * step
    if job >= count:
        return
    for ray in range(job * _RAYS, wp.min(job * _RAYS + _RAYS, out.through.shape[0])):
        row = hits.instance[ray]
        if row >= 0 and out.through[ray] > 0.0:
            if material_of(meshes, instances, row, hits.slot[ray]) < 0:
                value = primvar_of_ray(bundles, bundle_count, ray, origins, out.directions[ray], meshes, instances, primvar, hits)
                if value[0] == value[0]:
                    out.opacity[ray] = value[0]


@wp.kernel(enable_backward=False, module="unique")
def _go_on(
    first: wp.int32,
    step: wp.int32,
    count: wp.int32,
    meshes: MeshColumns,
    instances: InstanceColumns,
    materials: MaterialColumns,
    hits: RayHits,
    out: SheerRays,
):
    """Take what surfaces keep from the rays, and let them begin anew behind."""
    job = first + wp.tid() * step
    if job >= count:
        return
    alive = wp.int32(0)
    for ray in range(job * _RAYS, wp.min(job * _RAYS + _RAYS, out.through.shape[0])):
        row, slot = hits.instance[ray], hits.slot[ray]
        passed = out.through[ray]
        if row >= 0 and passed > 0.0:
            opacity = wp.clamp(out.opacity[ray], 0.0, 1.0)
            material = material_of(meshes, instances, row, slot)
            if material >= 0:
                threshold = materials.opacity_threshold[material]
                if threshold > 0.0:
                    opacity = wp.where(opacity < threshold, 0.0, 1.0)
            if row != out.instance[ray] or slot != out.slot[ray]:  # else rounding has found the same triangle again
                passed = passed * (1.0 - opacity)
            if passed < _LEAST:
                passed = 0.0
            out.through[ray] = passed
            out.instance[ray] = row
            out.slot[ray] = slot
            out.limits[ray] = wp.vec2f(hits.t[ray] * (1.0 + _ADVANCE), out.limits[ray][1])
        if row < 0 or passed == 0.0:
            out.directions[ray] = wp.vec3f()
        else:
            alive = 1
    out.alive[job] = alive


@wp.kernel(enable_backward=False, module="unique")
def _stop(first: wp.int32, step: wp.int32, count: wp.int32, blocked: wp.array[wp.bool], out: SheerRays):
    job = first + wp.tid() * step
    if job >= count:
        return
    for ray in range(job * _RAYS, wp.min(job * _RAYS + _RAYS, out.through.shape[0])):
        d = out.directions[ray]
        if blocked[ray] and (d[0] != 0.0 or d[1] != 0.0 or d[2] != 0.0):
            out.through[ray] = 0.0


class SheerTracer:
    """Follows shadow rays through surfaces, with the memory for that."""

    def __init__(self, bundles: RayBundles, device: wp.Device) -> None:
        size = max(bundles.ray_count, 1)
        self.device, self._bundles, self._jobs = device, bundles, -(-size // _RAYS)
        self._hits, self._rays = bundles.hits(), SheerRays()
        for name, dtype in (("through", wp.float32), ("opacity", wp.float32), ("slot", wp.int32), ("instance", wp.int32)):
            setattr(self._rays, name, wp.zeros(size, dtype=dtype, device=device))
        self._rays.alive = wp.zeros(self._jobs, dtype=wp.int32, device=device)

    def look(self, scene: TracedScene, origins: wp.array | None, directions: wp.array, limits: wp.array, blocked: wp.array) -> wp.array:
        """(rays,) float32: what of the light comes through, 0 where there is no ray. ``origins``, ``directions``, ``limits``: as for
        `trace_rays`; the last two are written to. ``blocked``: (rays,) bool, memory. Device work only; on the CPU it ends with the last ray
        that goes on."""
        device, hits, rays, sheer = self.device, self._hits, self._rays, scene.sheer
        rays.directions, rays.limits = directions, limits
        traced = [self._bundles, origins, directions, scene.meshes, scene.instances, scene.top]
        surfaces = [scene.meshes, scene.instances]
        where = [self._bundles.rows, self._bundles.count, origins, *surfaces]
        run = functools.partial(launch, device=device)
        run(_begin, self._jobs, [rays])
        for _ in range(MAX_SURFACES):
            trace_rays(*traced, hits, kinds=scene.kinds, limits=limits, device=device)
            run(_constant_opacities, self._jobs, [*surfaces, sheer.materials, int(sheer.textures is not None), hits, rays])
            if sheer.textures is not None:
                for shown, sets in enumerate((sheer.coordinates, sheer.values)):
                    for k, primvar in enumerate(sets):
                        laid = [sheer.materials, sheer.textures, k, shown, primvar]
                        run(_textured_opacities, self._jobs, [*where, *laid, hits, rays])
            if sheer.display_opacity is not None:
                run(_display_opacities, self._jobs, [*where, sheer.display_opacity, hits, rays])
            run(_go_on, self._jobs, [*surfaces, sheer.materials, hits, rays])
            if device.is_cpu and not rays.alive.numpy().any():
                return rays.through  # elsewhere looking would mean waiting; rays without direction are quick
        occluded(*traced, kinds=scene.kinds, limits=limits, out=blocked, device=device)
        run(_stop, self._jobs, [blocked, rays])
        return rays.through
