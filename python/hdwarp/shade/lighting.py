"""shade.lighting: what surfaces reflect of the lights of their world, or of a light at the camera. Planes -> the `direct` plane."""

import functools

import warp as wp

from hdwarp.aovs.pixel_runs import block_count, lane_options, load_columns, pixel_run, store_triples, world_ray
from hdwarp.shade.area_lights import light_form
from hdwarp.shade.inputs import SurfaceConstants, SurfacePlanes
from hdwarp.shade.light_lanes import reflect_point, reflect_shape, see_light
from hdwarp.shade.light_samples import shaping
from hdwarp.shade.sky_lanes import reflect_camera, reflect_sky
from hdwarp.shade.surface_lanes import COAT, OPEN, load_surface, place_surface
from hdwarp.tables.structs import DISTANT_LIGHT, DOME_LIGHT, MESH_LIGHT, POINT_LIGHT, DomeTables, LightColumns, ViewRow

HEADLIGHT = 0.65  # radiance that white paper facing the camera has by the camera's light ...
SOFT_DOME = 0.35  # ... and any white paper by the dome that goes with it; where nothing else lights a stage
_SMALL = wp.constant(0.02)  # sine of half the angle of a distant light that counts as a point
_MANY = wp.constant(1 << 30)


@wp.struct
class Lighting:
    """The lights of a scene, and which of them a launch adds."""

    lights: LightColumns
    domes: DomeTables
    first: wp.int32  # of the lights of a view's world, globals first: from this one on ...
    count: wp.int32  # ... as many in all
    fades: wp.int32  # 1: some surfaces are blended
    camera: wp.float32  # HEADLIGHT where a world has no lights, 0: none
    dome: wp.float32  # SOFT_DOME
    texels: wp.array[wp.float32]  # those of `domes`, three a texel
    visibility: wp.array[wp.float32]  # how much of each of these lights a pixel sees: a plane a light; null: all of it
    stride: wp.int32  # pixels of a plane
    openness: wp.array[wp.float32]  # by pixel: how much of its surroundings is free; null: not asked
    sources: wp.array[wp.int32]  # InstanceColumns.source and .light_links; null where every light lights everything
    links: wp.array[wp.int32]


@wp.func
def light_count_of(lights: LightColumns, world: wp.int32) -> wp.int32:
    """How many lights a world has, those of all worlds among them; 0 where all are of a kind that lights nothing here."""
    if not lights.start:
        return 0
    shared = wp.int32(lights.start[1])
    count = wp.int32(shared)
    if world >= 0 and world + 2 < lights.start.shape[0]:  # views may be of no world at all
        count += lights.start[world + 2] - lights.start[world + 1]
    lit = wp.int32(0)
    for k in range(count):
        row = wp.int32(k)
        if k >= shared:
            row = lights.start[world + 1] + k - shared
        if lights.kind[row] != MESH_LIGHT:
            lit = count
            break
    return lit


@wp.func
def light_row(lights: LightColumns, world: wp.int32, k: wp.int32) -> wp.int32:
    """Row of light ``k`` of a world: globals come first."""
    shared = lights.start[1]
    if k < shared:
        return k
    return lights.start[world + 1] + k - shared


@wp.func
def light_place(lights: LightColumns, row: wp.int32, shared: wp.bool, view: ViewRow) -> wp.vec3f:
    """Where a light is, from the camera, along the axes of the view's world."""
    place = lights.translation[row] - view.eye
    if shared:
        place -= view.global_offset
    return wp.vec3f(wp.float32(place[0]), wp.float32(place[1]), wp.float32(place[2]))


@functools.cache
def weigh_light(lanes: int) -> wp.Function:
    """A function: what of a light's radiance gets to each pixel: what shadows, links and its cone leave of it."""
    LANES, load_scalars = lanes, load_columns(lanes, 1)
    triples = wp.types.matrix(shape=(3, lanes), dtype=wp.float32)
    ints = wp.types.vector(length=lanes, dtype=wp.int32)

    @wp.func
    def weigh(
        lighting: Lighting,
        which: wp.int32,
        plane: wp.int32,
        at: wp.vec3f,
        axis: wp.vec3f,
        row: ints,
        place: triples,
        low: wp.int32,
        high: wp.int32,
        pixel: wp.int32,
    ):
        """Light ``which``, whose visibility is plane number ``plane``; ``row``: instances seen."""
        radiance = lighting.lights.radiance[which]
        light = triples()
        for lane in range(LANES):
            light[0, lane] = radiance[0]
            light[1, lane] = radiance[1]
            light[2, lane] = radiance[2]
        if lighting.visibility:
            shade = lighting.lights.shadow_color[which]
            free = load_scalars(lighting.visibility, low, high, plane * lighting.stride + pixel)
            for lane in range(LANES):
                v = free[0, lane]
                light[0, lane] = light[0, lane] * (v + (1.0 - v) * shade[0])
                light[1, lane] = light[1, lane] * (v + (1.0 - v) * shade[1])
                light[2, lane] = light[2, lane] * (v + (1.0 - v) * shade[2])
        link = lighting.lights.link[which]
        if link != 0:
            for lane in range(LANES):
                linked = wp.where((lighting.links[lighting.sources[row[lane]]] & link) != 0, 1.0, 0.0)
                light[0, lane] = light[0, lane] * linked
                light[1, lane] = light[1, lane] * linked
                light[2, lane] = light[2, lane] * linked
        kind, cone = lighting.lights.kind[which], lighting.lights.cone[which]
        if cone[3] != 0.0 and kind != DOME_LIGHT:
            tint = lighting.lights.focus_tint[which]
            for lane in range(LANES):
                x, y, z = at[0] - place[0, lane], at[1] - place[1, lane], at[2] - place[2, lane]
                unit = 1.0 / wp.sqrt(wp.max(x * x + y * y + z * z, 1.0e-30))
                cosine = wp.where(kind == DISTANT_LIGHT, 1.0, (x * axis[0] + y * axis[1] + z * axis[2]) * unit)
                spot = shaping(cosine, cone, tint)
                light[0, lane] = light[0, lane] * spot[0]
                light[1, lane] = light[1, lane] * spot[1]
                light[2, lane] = light[2, lane] * spot[2]
        return light

    return weigh


@functools.cache
def lighting_kernel(lanes: int, given: bool, lit: bool) -> wp.Kernel:
    """Add light to `direct`. ``given``: of views whose rays are given, else of those with lenses. ``lit``: of the lights of a view's world,
    else of the camera's alone, which shines where a world has no lights."""
    LANES, BLOCKS, GIVEN, LIT = lanes, block_count(lanes), given, lit
    load_triples, load_rows = load_columns(lanes, 3), load_columns(lanes, 1, wp.int32)
    load, place = load_surface(lanes), place_surface(lanes, given)
    weigh, see, reflect = weigh_light(lanes), see_light(lanes), reflect_shape(lanes)
    reflect_sharp, reflect_dome, reflect_own = reflect_point(lanes), reflect_sky(lanes), reflect_camera(lanes)
    load_scalars = load_columns(lanes, 1)
    triples = wp.types.matrix(shape=(3, lanes), dtype=wp.float32)
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
        hit, material, row = ints(), ints(), ints()
        sr, sg, sb = floats(), floats(), floats()
        points = triples()
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
            rows_of = load_rows(material_row, low, high, pixel)
            least, most = wp.int32(_MANY), wp.int32(-1)
            for lane in range(LANES):
                material[lane] = wp.where(hit[lane] != 0, wp.max(rows_of[0, lane], -1), -1)
                row[lane] = wp.max(found[lane], 0)
                least = wp.min(least, wp.where(hit[lane] != 0, material[lane], _MANY))
                most = wp.max(most, material[lane])
            same = wp.where(least == most, most, -1)
            surface = load(material, same, constants, planes, lighting.fades, low, high, pixel)
            if lighting.openness:
                free_around = load_scalars(lighting.openness, low, high, pixel)
                for lane in range(LANES):
                    surface[OPEN, lane] = surface[OPEN, lane] * free_around[0, lane]
            way = view.first_ray + run.y * view.width + run.x + block * LANES
            surface = place(surface, view, ray, run.x + block * LANES, way, normals, geometric, directions, low, high, pixel)
            coated = wp.int32(0)
            for lane in range(LANES):
                coated = coated | wp.where(surface[COAT, lane] > 0.0, 1, 0)
            if lights == 0 and lighting.first == 0:
                own = reflect_own(surface, coated, wp.pi * lighting.camera, lighting.dome)
                for lane in range(LANES):
                    sr[lane] = own[0, lane]
                    sg[lane] = own[1, lane]
                    sb[lane] = own[2, lane]
            if LIT:
                if lights > 0:
                    middle = load_triples(positions, low, high, pixel)
                    for lane in range(LANES):
                        a, b, c = middle[0, lane], middle[1, lane], middle[2, lane]
                        points[0, lane] = view.right[0] * a + view.up[0] * b + view.back[0] * c
                        points[1, lane] = view.right[1] * a + view.up[1] * b + view.back[1] * c
                        points[2, lane] = view.right[2] * a + view.up[2] * b + view.back[2] * c
                for k in range(lighting.first, wp.min(lighting.first + lighting.count, lights)):
                    which = light_row(lighting.lights, view.world, k)
                    kind = lighting.lights.kind[which]
                    if kind < 0 or kind == MESH_LIGHT:
                        continue
                    linear = lighting.lights.linear[which]
                    of_diffuse, of_specular = lighting.lights.diffuse[which], lighting.lights.specular[which]
                    at = light_place(lighting.lights, which, k < lighting.lights.start[1], view)
                    size = lighting.lights.size[which]
                    axis = wp.normalize(wp.vec3f(linear[0, 2], linear[1, 2], linear[2, 2]))  # against the way it shines
                    weight = weigh(lighting, which, k - lighting.first, at, axis, row, points, low, high, pixel)
                    if kind == DOME_LIGHT:
                        light = reflect_dome(
                            surface, coated, lighting.domes, lighting.texels, lighting.lights.dome[which], linear, of_diffuse, of_specular
                        )
                    elif kind == POINT_LIGHT or (kind == DISTANT_LIGHT and size[1] < _SMALL):
                        ways, bright = triples(), floats()
                        for lane in range(LANES):
                            ways[0, lane] = axis[0]
                            ways[1, lane] = axis[1]
                            ways[2, lane] = axis[2]
                            bright[lane] = size[2]
                        if kind == POINT_LIGHT:
                            for lane in range(LANES):
                                x, y, z = at[0] - points[0, lane], at[1] - points[1, lane], at[2] - points[2, lane]
                                squared = wp.max(x * x + y * y + z * z, 1.0e-12)
                                unit = 1.0 / wp.sqrt(squared)
                                ways[0, lane] = x * unit
                                ways[1, lane] = y * unit
                                ways[2, lane] = z * unit
                                bright[lane] = 1.0 / squared
                        for lane in range(LANES):
                            weight[0, lane] = weight[0, lane] * bright[lane]
                            weight[1, lane] = weight[1, lane] * bright[lane]
                            weight[2, lane] = weight[2, lane] * bright[lane]
                        light = reflect_sharp(surface, coated, ways, of_diffuse, of_specular)
                    else:
                        form, picture = light_form(kind, size, linear), lighting.lights.texture[which]
                        seen = see(form, at, points, surface)
                        light = reflect(surface, seen, form, at, points, lighting.domes, picture, of_diffuse, of_specular)
                    for lane in range(LANES):
                        sr[lane] += light[0, lane] * weight[0, lane]
                        sg[lane] += light[1, lane] * weight[1, lane]
                        sb[lane] += light[2, lane] * weight[2, lane]
            if begin == 0:
                before = load_triples(direct_flat, low, high, pixel)
                for lane in range(LANES):
                    sr[lane] += before[0, lane]
                    sg[lane] += before[1, lane]
                    sb[lane] += before[2, lane]
            store_triples(sr, sg, sb, low, high, pixel, direct)

    return lighting
