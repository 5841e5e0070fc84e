"""shade.lighting: what surfaces reflect of the lights of their world, or of a light at the camera. Planes -> the `direct` plane."""

from __future__ import annotations

import functools

import warp as wp

from hdwarp.aovs.pixel_runs import block_count, lane_options, load_columns, pixel_run, store_triples, world_ray
from hdwarp.shade.ambient import reflected_around
from hdwarp.shade.area_lights import light_form
from hdwarp.shade.inputs import (
    CLEARCOAT,
    CLEARCOAT_ROUGHNESS,
    GREY,
    IOR,
    METALLIC,
    OCCLUSION,
    ROUGHNESS,
    SPECULAR,
    SurfaceConstants,
    SurfacePlanes,
)
from hdwarp.shade.light_samples import shaping
from hdwarp.shade.shape_lights import Surface, reflected_shape, reflected_sky
from hdwarp.shade.surface import diffuse_part, reflected, specular_at_edge, specular_at_zero
from hdwarp.tables.structs import DISTANT_LIGHT, DOME_LIGHT, MESH_LIGHT, POINT_LIGHT, DomeTables, LightColumns, ViewRow

HEADLIGHT = 0.65  # radiance that white paper facing the camera has by the camera's light ...
SOFT_DOME = 0.35  # ... and any white paper by the dome that goes with it; where nothing else lights a stage
_SMALL = wp.constant(0.02)  # sine of half the angle of a distant light that counts as a point
_LEAST = 1.0e-4  # cosine towards the viewer: what is seen faces him


@wp.struct
class Lighting:
    """The lights of a scene, and which of them a launch adds."""

    lights: LightColumns
    domes: DomeTables
    first: wp.int32  # of the lights of a view's world, globals first: from this one on ...
    count: wp.int32  # ... as many in all
    camera: wp.float32  # HEADLIGHT where a world has no lights, 0: none
    dome: wp.float32  # SOFT_DOME
    visibility: wp.array[wp.float32]  # how much of each of these lights a pixel sees: a plane a light; null: all of it
    stride: wp.int32  # pixels of a plane
    sources: wp.array[wp.int32]  # InstanceColumns.source and .light_links; null where every light lights everything
    links: wp.array[wp.int32]


@wp.func
def light_count_of(lights: LightColumns, world: wp.int32) -> wp.int32:
    """How many lights a world has, those of all worlds among them."""
    if not lights.start:
        return 0
    return lights.start[1] + lights.start[world + 2] - lights.start[world + 1]


@wp.func
def light_row(lights: LightColumns, world: wp.int32, k: wp.int32) -> wp.int32:
    """Row of light ``k`` of a world: globals come first."""
    shared = lights.start[1]
    return wp.where(k < shared, k, lights.start[world + 1] + k - shared)


@wp.func
def light_place(lights: LightColumns, row: wp.int32, shared: wp.bool, view: ViewRow) -> wp.vec3f:
    """Where a light is, from the camera, along the axes of the view's world."""
    place = lights.translation[row] - view.eye
    if shared:
        place -= view.global_offset
    return wp.vec3f(wp.float32(place[0]), wp.float32(place[1]), wp.float32(place[2]))


@functools.cache
def lighting_kernel(lanes: int, given: bool, lit: bool) -> wp.Kernel:
    """Add light to `direct`. ``given``: of views whose rays are given, else of those with lenses. ``lit``: of the lights of a view's world,
    else of the camera's alone, which shines where a world has no lights."""
    LANES, BLOCKS, GIVEN, LIT = lanes, block_count(lanes), given, lit
    load_triples, load_scalars = load_columns(lanes, 3), load_columns(lanes, 1)
    floats = wp.types.vector(length=lanes, dtype=wp.float32)
    ints = wp.types.vector(length=lanes, dtype=wp.int32)

    @wp.kernel(enable_backward=False, module="unique", module_options=lane_options(lanes))
    def lighting(
        first: wp.int32,
        step: wp.int32,
        count: wp.int32,
        views: wp.array[ViewRow],
        jobs: wp.int32,
        rows: wp.int32,
        seen_instances: wp.array[ints],  # of the visibility record, a block an item
        material_row: wp.array[wp.int32],
        constants: SurfaceConstants,
        planes: SurfacePlanes,
        normals: wp.array[wp.float32],  # flat, three a pixel: of shading
        geometric: wp.array[wp.float32],
        positions: wp.array[wp.float32],  # from the camera, in its axes [m]; null where no light asks
        directions: wp.array[wp.float32],  # RayColumns.directions; null without
        lighting: Lighting,
        begin: wp.int32,  # 1: forget what the plane holds
        direct: wp.array[wp.vec3f],
        direct_flat: wp.array[wp.float32],
    ):
        job = first + wp.tid() * step
        if job >= count:
            return
        run = pixel_run(views, job, LANES, BLOCKS, jobs, rows)
        if run.blocks == 0:
            return
        if GIVEN:
            if views[run.view].rays == 0:
                return
        else:
            if views[run.view].rays != 0:
                return
        view = views[run.view]
        ray = world_ray(view, run.y)
        lights = wp.int32(0)
        if LIT:
            lights = light_count_of(lighting.lights, view.world)
        hit, material, row, textured, workflow = ints(), ints(), ints(), ints(), ints()
        dx, dy, dz = floats(), floats(), floats()  # towards the viewer
        nx, ny, nz = floats(), floats(), floats()
        n_v = floats()
        kr, kg, kb = floats(), floats(), floats()  # reflected diffusely
        zr, zg, zb = floats(), floats(), floats()  # and like a mirror, looked at squarely
        er, eg, eb = floats(), floats(), floats()  # ... and from the side
        metal, rough, coat, coat_rough, ior, open_ = floats(), floats(), floats(), floats(), floats(), floats()
        red, green, blue = floats(), floats(), floats()
        sr, sg, sb = floats(), floats(), floats()
        px, py, pz = floats(), floats(), floats()
        lx, ly, lz = floats(), floats(), floats()  # towards the light
        wr, wg, wb = floats(), floats(), floats()  # its irradiance, on what faces it
        for block in range(run.blocks):
            found = seen_instances[run.record // LANES + block]
            pixel = run.output + block * LANES
            low = wp.max(run.left - run.x - block * LANES, 0)
            high = wp.min(run.right - run.x - block * LANES, LANES)
            hits = wp.int32(0)
            for lane in range(LANES):
                hit[lane] = wp.where(found[lane] >= 0 and lane >= low and lane < high, 1, 0)
                hits = hits | hit[lane]
                sr[lane] = 0.0
                sg[lane] = 0.0
                sb[lane] = 0.0
            if hits == 0:
                if begin != 0:
                    store_triples(sr, sg, sb, low, high, pixel, direct)
                continue
            # -- the surface
            for lane in range(LANES):
                material[lane] = wp.max(material_row[pixel + wp.clamp(lane, low, high - 1)], -1)
                row[lane] = wp.max(found[lane], 0)
                red[lane] = GREY
                green[lane] = GREY
                blue[lane] = GREY
            if planes.base:
                base = load_triples(planes.base, low, high, pixel)
                for lane in range(LANES):
                    red[lane] = base[0, lane]
                    green[lane] = base[1, lane]
                    blue[lane] = base[2, lane]
            for lane in range(LANES):
                m = wp.max(material[lane], 0)
                own = material[lane] >= 0 and constants.uses_display_color[m] == 0
                red[lane] = wp.where(own, constants.diffuse_color[3 * m], red[lane])
                green[lane] = wp.where(own, constants.diffuse_color[3 * m + 1], green[lane])
                blue[lane] = wp.where(own, constants.diffuse_color[3 * m + 2], blue[lane])
            towards = load_triples(normals, low, high, pixel)
            side = load_triples(geometric, low, high, pixel)
            if GIVEN:
                ways = load_triples(directions, low, high, view.first_ray + run.y * view.width + run.x + block * LANES)
                right, up, back = view.direction_dx, view.direction_dy, view.direction
            for lane in range(LANES):
                if GIVEN:
                    wx, wy, wz = wp.float64(ways[0, lane]), wp.float64(ways[1, lane]), wp.float64(ways[2, lane])
                    x = wp.float32(right[0] * wx + up[0] * wy + back[0] * wz)
                    y = wp.float32(right[1] * wx + up[1] * wy + back[1] * wz)
                    z = wp.float32(right[2] * wx + up[2] * wy + back[2] * wz)
                else:
                    s = wp.float64(run.x + block * LANES + lane)
                    x = wp.float32(ray.direction[0] + ray.direction_dx[0] * s)
                    y = wp.float32(ray.direction[1] + ray.direction_dx[1] * s)
                    z = wp.float32(ray.direction[2] + ray.direction_dx[2] * s)
                unit = -1.0 / wp.sqrt(x * x + y * y + z * z)
                dx[lane] = x * unit
                dy[lane] = y * unit
                dz[lane] = z * unit
                # Both sides are lit: normals are turned with the side that is seen.
                faces = side[0, lane] * dx[lane] + side[1, lane] * dy[lane] + side[2, lane] * dz[lane]
                sign = wp.where(faces < 0.0, -1.0, 1.0)
                nx[lane] = sign * towards[0, lane]
                ny[lane] = sign * towards[1, lane]
                nz[lane] = sign * towards[2, lane]
                n_v[lane] = wp.max(nx[lane] * dx[lane] + ny[lane] * dy[lane] + nz[lane] * dz[lane], _LEAST)
            for lane in range(LANES):
                m = wp.max(material[lane], 0)
                known = material[lane] >= 0
                textured[lane] = wp.where(known, constants.textured[m], 0)
                workflow[lane] = wp.where(known, constants.use_specular_workflow[m], 0)
                zr[lane] = wp.where(known, constants.specular_color[3 * m], 0.0)
                zg[lane] = wp.where(known, constants.specular_color[3 * m + 1], 0.0)
                zb[lane] = wp.where(known, constants.specular_color[3 * m + 2], 0.0)
                metal[lane] = wp.where(known, constants.metallic[m], 0.0)
                rough[lane] = wp.where(known, constants.roughness[m], 0.5)
                coat[lane] = wp.where(known, constants.clearcoat[m], 0.0)
                coat_rough[lane] = wp.where(known, constants.clearcoat_roughness[m], 0.01)
                ior[lane] = wp.where(known, constants.ior[m], 1.5)
                open_[lane] = wp.where(known, constants.occlusion[m], 1.0)
            if planes.specular:
                shown = load_triples(planes.specular, low, high, pixel)
                for lane in range(LANES):
                    own = (textured[lane] & SPECULAR) != 0
                    zr[lane] = wp.where(own, shown[0, lane], zr[lane])
                    zg[lane] = wp.where(own, shown[1, lane], zg[lane])
                    zb[lane] = wp.where(own, shown[2, lane], zb[lane])
            if planes.metallic:
                of_metallic = load_scalars(planes.metallic, low, high, pixel)
                for lane in range(LANES):
                    metal[lane] = wp.where((textured[lane] & METALLIC) != 0, of_metallic[0, lane], metal[lane])
            if planes.roughness:
                of_roughness = load_scalars(planes.roughness, low, high, pixel)
                for lane in range(LANES):
                    rough[lane] = wp.where((textured[lane] & ROUGHNESS) != 0, of_roughness[0, lane], rough[lane])
            if planes.clearcoat:
                of_clearcoat = load_scalars(planes.clearcoat, low, high, pixel)
                for lane in range(LANES):
                    coat[lane] = wp.where((textured[lane] & CLEARCOAT) != 0, of_clearcoat[0, lane], coat[lane])
            if planes.clearcoat_roughness:
                of_coat = load_scalars(planes.clearcoat_roughness, low, high, pixel)
                for lane in range(LANES):
                    coat_rough[lane] = wp.where((textured[lane] & CLEARCOAT_ROUGHNESS) != 0, of_coat[0, lane], coat_rough[lane])
            if planes.ior:
                of_ior = load_scalars(planes.ior, low, high, pixel)
                for lane in range(LANES):
                    ior[lane] = wp.where((textured[lane] & IOR) != 0, of_ior[0, lane], ior[lane])
            if planes.occlusion:
                of_occlusion = load_scalars(planes.occlusion, low, high, pixel)
                for lane in range(LANES):
                    open_[lane] = wp.where((textured[lane] & OCCLUSION) != 0, of_occlusion[0, lane], open_[lane])
            for lane in range(LANES):
                base_color = wp.vec3f(red[lane], green[lane], blue[lane])
                mirror = wp.vec3f(zr[lane], zg[lane], zb[lane])
                diffuse = diffuse_part(base_color, metal[lane], workflow[lane])
                zero = specular_at_zero(base_color, metal[lane], mirror, workflow[lane], ior[lane])
                edge = specular_at_edge(base_color, metal[lane], mirror, workflow[lane], ior[lane])
                kr[lane] = diffuse[0]
                kg[lane] = diffuse[1]
                kb[lane] = diffuse[2]
                zr[lane] = zero[0]
                zg[lane] = zero[1]
                zb[lane] = zero[2]
                er[lane] = edge[0]
                eg[lane] = edge[1]
                eb[lane] = edge[2]
            # -- light
            if lights == 0 and lighting.first == 0:
                for lane in range(LANES):
                    diffuse = wp.vec3f(kr[lane], kg[lane], kb[lane])
                    zero = wp.vec3f(zr[lane], zg[lane], zb[lane])
                    edge = wp.vec3f(er[lane], eg[lane], eb[lane])
                    power = wp.pi * lighting.camera
                    cosine = n_v[lane]
                    seen = reflected(
                        diffuse, zero, edge, rough[lane], coat[lane], coat_rough[lane], cosine, cosine, cosine, 1.0, power, power
                    )
                    dome = lighting.dome * reflected_around(diffuse, zero, edge, rough[lane], coat[lane], coat_rough[lane], cosine)
                    sr[lane] = seen[0] + open_[lane] * dome[0]
                    sg[lane] = seen[1] + open_[lane] * dome[1]
                    sb[lane] = seen[2] + open_[lane] * dome[2]
            if LIT:
                if lights > 0:
                    place = load_triples(positions, low, high, pixel)
                    for lane in range(LANES):
                        a, b, c = place[0, lane], place[1, lane], place[2, lane]
                        px[lane] = view.right[0] * a + view.up[0] * b + view.back[0] * c
                        py[lane] = view.right[1] * a + view.up[1] * b + view.back[1] * c
                        pz[lane] = view.right[2] * a + view.up[2] * b + view.back[2] * c
                for k in range(lighting.first, wp.min(lighting.first + lighting.count, lights)):
                    which = light_row(lighting.lights, view.world, k)
                    kind = lighting.lights.kind[which]
                    if kind < 0 or kind == MESH_LIGHT:
                        continue
                    linear = lighting.lights.linear[which]
                    radiance = lighting.lights.radiance[which]
                    of_diffuse, of_specular = lighting.lights.diffuse[which], lighting.lights.specular[which]
                    at = light_place(lighting.lights, which, k < lighting.lights.start[1], view)
                    size = lighting.lights.size[which]
                    axis = wp.normalize(wp.vec3f(linear[0, 2], linear[1, 2], linear[2, 2]))  # against the way it shines
                    cone = lighting.lights.cone[which]
                    for lane in range(LANES):
                        wr[lane] = radiance[0]
                        wg[lane] = radiance[1]
                        wb[lane] = radiance[2]
                    if lighting.visibility:
                        shade = lighting.lights.shadow_color[which]
                        free = load_scalars(lighting.visibility, low, high, (k - lighting.first) * lighting.stride + pixel)
                        for lane in range(LANES):
                            v = free[0, lane]
                            wr[lane] = wr[lane] * (v + (1.0 - v) * shade[0])
                            wg[lane] = wg[lane] * (v + (1.0 - v) * shade[1])
                            wb[lane] = wb[lane] * (v + (1.0 - v) * shade[2])
                    link = lighting.lights.link[which]
                    if link != 0:
                        for lane in range(LANES):
                            linked = wp.where((lighting.links[lighting.sources[row[lane]]] & link) != 0, 1.0, 0.0)
                            wr[lane] = wr[lane] * linked
                            wg[lane] = wg[lane] * linked
                            wb[lane] = wb[lane] * linked
                    if cone[3] != 0.0 and kind != DOME_LIGHT:
                        tint = lighting.lights.focus_tint[which]
                        for lane in range(LANES):
                            x, y, z = at[0] - px[lane], at[1] - py[lane], at[2] - pz[lane]
                            unit = 1.0 / wp.sqrt(wp.max(x * x + y * y + z * z, 1.0e-30))
                            cosine = wp.where(kind == DISTANT_LIGHT, 1.0, (x * axis[0] + y * axis[1] + z * axis[2]) * unit)
                            spot = shaping(cosine, cone, tint)
                            wr[lane] = wr[lane] * spot[0]
                            wg[lane] = wg[lane] * spot[1]
                            wb[lane] = wb[lane] * spot[2]
                    if kind == DISTANT_LIGHT and size[1] < _SMALL:
                        for lane in range(LANES):
                            lx[lane] = axis[0]
                            ly[lane] = axis[1]
                            lz[lane] = axis[2]
                            wr[lane] = wr[lane] * size[2]
                            wg[lane] = wg[lane] * size[2]
                            wb[lane] = wb[lane] * size[2]
                    elif kind == POINT_LIGHT:
                        for lane in range(LANES):
                            x, y, z = at[0] - px[lane], at[1] - py[lane], at[2] - pz[lane]
                            squared = wp.max(x * x + y * y + z * z, 1.0e-12)
                            unit = 1.0 / wp.sqrt(squared)
                            lx[lane] = x * unit
                            ly[lane] = y * unit
                            lz[lane] = z * unit
                            wr[lane] = wr[lane] / squared
                            wg[lane] = wg[lane] / squared
                            wb[lane] = wb[lane] / squared
                    else:
                        form = light_form(kind, size, linear)
                        picture, sky = lighting.lights.texture[which], lighting.lights.dome[which]
                        for lane in range(LANES):
                            if hit[lane] != 0:
                                surface = Surface()
                                surface.normal = wp.vec3f(nx[lane], ny[lane], nz[lane])
                                surface.viewer = wp.vec3f(dx[lane], dy[lane], dz[lane])
                                surface.n_v = n_v[lane]
                                surface.diffuse = wp.vec3f(kr[lane], kg[lane], kb[lane])
                                surface.f0 = wp.vec3f(zr[lane], zg[lane], zb[lane])
                                surface.f90 = wp.vec3f(er[lane], eg[lane], eb[lane])
                                surface.roughness = rough[lane]
                                surface.coat = coat[lane]
                                surface.coat_roughness = coat_rough[lane]
                                added = wp.vec3f()
                                if kind == DOME_LIGHT:
                                    added = reflected_sky(lighting.domes, sky, linear, surface, of_diffuse, of_specular) * open_[lane]
                                else:
                                    to_light = at - wp.vec3f(px[lane], py[lane], pz[lane])
                                    added = reflected_shape(form, lighting.domes, picture, to_light, surface, of_diffuse, of_specular)
                                sr[lane] += added[0] * wr[lane]
                                sg[lane] += added[1] * wg[lane]
                                sb[lane] += added[2] * wb[lane]
                        continue
                    for lane in range(LANES):
                        hx, hy, hz = lx[lane] + dx[lane], ly[lane] + dy[lane], lz[lane] + dz[lane]
                        unit = 1.0 / wp.sqrt(wp.max(hx * hx + hy * hy + hz * hz, 1.0e-12))
                        n_l = nx[lane] * lx[lane] + ny[lane] * ly[lane] + nz[lane] * lz[lane]
                        n_h = (nx[lane] * hx + ny[lane] * hy + nz[lane] * hz) * unit
                        v_h = (dx[lane] * hx + dy[lane] * hy + dz[lane] * hz) * unit
                        seen = reflected(
                            wp.vec3f(kr[lane], kg[lane], kb[lane]),
                            wp.vec3f(zr[lane], zg[lane], zb[lane]),
                            wp.vec3f(er[lane], eg[lane], eb[lane]),
                            rough[lane],
                            coat[lane],
                            coat_rough[lane],
                            n_l,
                            n_v[lane],
                            n_h,
                            v_h,
                            of_diffuse,
                            of_specular,
                        )
                        sr[lane] += seen[0] * wr[lane]
                        sg[lane] += seen[1] * wg[lane]
                        sb[lane] += seen[2] * wb[lane]
            if begin == 0:
                before = load_triples(direct_flat, low, high, pixel)
                for lane in range(LANES):
                    sr[lane] += before[0, lane]
                    sg[lane] += before[1, lane]
                    sb[lane] += before[2, lane]
            store_triples(sr, sg, sb, low, high, pixel, direct)

    return lighting
