"""trace.free: packets of rays from one point in any directions (lidar, wide lenses, point lights): bundles and tables -> what each ray hits."""

from __future__ import annotations

import functools

import warp as wp

from hdwarp.launch import LANE_OPTIONS
from hdwarp.tables.structs import MESH, InstanceColumns, MeshColumns, TopLevel, vec16f
from hdwarp.trace.bundles import RayBundle, RayBundles, RayHits, bundle_of_packet, is_ray, limit_keys, near_unit, turn_direction
from hdwarp.trace.free_triangles import PACKET_BLOCKS, lowest_key, trace_mesh_free, trace_shape_free
from hdwarp.trace.instances import NO_CHILD, ObjectFrame
from hdwarp.trace.nodes import STACK, push_children
from hdwarp.trace.jobs import SceneKinds
from hdwarp.trace.pixels import DEPTH_SLACK, NO_RANK, depth_of, vec16i
from hdwarp.trace.rays import LAST_X, LAST_Y, Frustum, TileRays, frustum_of, object_rays, place_exactly, screen_of, widen
from hdwarp.trace.shapes import MISS
from hdwarp.trace.single import launch_rays, trace_rays

WIDEST = wp.constant(0.5)  # cosine of the widest angle between a packet's axis and its rays; what is beyond takes another turn
NARROWEST = wp.constant(1.0e-4)  # half extent of the narrowest tile that is told apart from a single ray
INSET = wp.constant(0.05)  # of the tile, at its rim: what rounding may do to the place of a ray

RUN_LENGTH = 4  # packets a job takes, so that the memory it works in is set up once
_NO_RAY, _WAITING, _ACTIVE, _DONE = wp.constant(0), wp.constant(1), wp.constant(2), wp.constant(3)


@wp.struct
class Axes:
    """Axis of a packet and two directions across it; ``members``: rays within the widest angle, of ``waiting``."""

    axis: wp.vec3f
    across: wp.vec3f
    down: wp.vec3f
    members: wp.int32
    waiting: wp.int32


@wp.struct
class Patch:
    """Where the rays of a packet are in their grid: four blocks of ``width`` x ``height`` = 16 rays, ``blocks_x`` side by side."""

    row: wp.int32
    column: wp.int32
    width: wp.int32
    height: wp.int32
    blocks_x: wp.int32
    shift: wp.int32  # width = 1 << shift


@wp.func
def patch_of(bundle: RayBundle, tile: wp.int32) -> Patch:
    patch = Patch()
    tile_width = PACKET_BLOCKS * 16 // bundle.tile_height
    tiles_x = (bundle.columns + tile_width - 1) // tile_width
    patch.row = (tile // tiles_x) * bundle.tile_height
    patch.column = (tile % tiles_x) * tile_width
    patch.height = wp.min(bundle.tile_height, 4)
    patch.width = 16 // patch.height
    patch.blocks_x = tile_width // patch.width
    patch.shift = wp.where(patch.height == 4, 2, wp.where(patch.height == 2, 3, 4))
    return patch


@wp.func
def load_directions(
    bundle: RayBundle,
    patch: Patch,
    directions: wp.array[wp.vec3f],
    dx: wp.array[vec16f],
    dy: wp.array[vec16f],
    dz: wp.array[vec16f],
    state: wp.array[vec16i],
):
    """World directions of a packet, about unit long."""
    for block in range(PACKET_BLOCKS):
        row = patch.row + (block // patch.blocks_x) * patch.height
        column = patch.column + (block % patch.blocks_x) * patch.width
        x = vec16f()
        y = vec16f()
        z = vec16f()
        waits = vec16i()
        for p in range(16):
            r, c = row + (p >> patch.shift), column + (p & (patch.width - 1))
            r, c = wp.where(r < bundle.rows, r, bundle.rows - 1), wp.where(c < bundle.columns, c, bundle.columns - 1)
            d = directions[bundle.first_ray + r * bundle.columns + c]
            x[p] = d[0]
            y[p] = d[1]
            z[p] = d[2]
        for p in range(16):
            r, c = row + (p >> patch.shift), column + (p & (patch.width - 1))
            counts = r < bundle.rows and c < bundle.columns and is_ray(wp.vec3f(x[p], y[p], z[p]))
            waits[p] = wp.where(counts, _WAITING, _NO_RAY)
            d = near_unit(turn_direction(bundle.turn, wp.vec3f(x[p], y[p], z[p])))
            x[p] = wp.where(counts, d[0], 0.0)
            y[p] = wp.where(counts, d[1], 0.0)
            z[p] = wp.where(counts, d[2], 0.0)
        dx[block] = x
        dy[block] = y
        dz[block] = z
        state[block] = waits


@wp.func
def lane_sum(v: vec16f) -> wp.float32:
    for p in range(8):
        v[p] = v[p] + v[p + 8]
    for p in range(4):
        v[p] = v[p] + v[p + 4]
    return (v[0] + v[1]) + (v[2] + v[3])


@wp.func
def cosine_floor(
    axis: wp.vec3f, dx: wp.array[vec16f], dy: wp.array[vec16f], dz: wp.array[vec16f], state: wp.array[vec16i]
) -> wp.float32:
    """The smallest cosine between an axis and the waiting rays."""
    low = vec16f(2.0)
    for block in range(PACKET_BLOCKS):
        x = dx[block]
        y = dy[block]
        z = dz[block]
        waits = state[block]
        for p in range(16):
            cosine = axis[0] * x[p] + axis[1] * y[p] + axis[2] * z[p]
            low[p] = wp.where(waits[p] == _WAITING and cosine < low[p], cosine, low[p])
    lowest = low[0]
    for p in range(1, 16):
        lowest = wp.where(low[p] < lowest, low[p], lowest)
    return lowest


@wp.func
def choose_axes(dx: wp.array[vec16f], dy: wp.array[vec16f], dz: wp.array[vec16f], state: wp.array[vec16i]) -> Axes:
    """An axis with as many waiting rays about it as may be, all if they allow it; those within the widest angle become active."""
    axes = Axes()
    sum_x, sum_y, sum_z = vec16f(), vec16f(), vec16f()
    waiting = vec16i()
    for block in range(PACKET_BLOCKS):
        x = dx[block]
        y = dy[block]
        z = dz[block]
        waits = state[block]
        for p in range(16):
            counts = waits[p] == _WAITING
            sum_x[p] = sum_x[p] + wp.where(counts, x[p], 0.0)
            sum_y[p] = sum_y[p] + wp.where(counts, y[p], 0.0)
            sum_z[p] = sum_z[p] + wp.where(counts, z[p], 0.0)
            waiting[p] = waiting[p] + wp.where(counts, 1, 0)
    for p in range(16):
        axes.waiting += waiting[p]
    if axes.waiting == 0:
        return axes
    axes.axis = wp.normalize(wp.vec3f(lane_sum(sum_x), lane_sum(sum_y), lane_sum(sum_z)))
    if not cosine_floor(axes.axis, dx, dy, dz, state) >= WIDEST:
        for ray in range(16 * PACKET_BLOCKS):
            block, p = PACKET_BLOCKS - 1 - ray // 16, 15 - ray % 16
            if state[block][p] == _WAITING:
                axes.axis = wp.normalize(wp.vec3f(dx[block][p], dy[block][p], dz[block][p]))
    drift_x, drift_y, drift_z = vec16f(), vec16f(), vec16f()  # how directions change along the rows: a grid is covered best along them
    members = vec16i()
    for block in range(PACKET_BLOCKS):
        x = dx[block]
        y = dy[block]
        z = dz[block]
        waits = state[block]
        for p in range(16):
            cosine = axes.axis[0] * x[p] + axes.axis[1] * y[p] + axes.axis[2] * z[p]
            member = waits[p] == _WAITING and cosine >= 0.99 * WIDEST
            weight = wp.where(member, float(p & 3) - 1.5, 0.0)
            drift_x[p] = drift_x[p] + weight * x[p]
            drift_y[p] = drift_y[p] + weight * y[p]
            drift_z[p] = drift_z[p] + weight * z[p]
            members[p] = members[p] + wp.where(member, 1, 0)
            waits[p] = wp.where(member, _ACTIVE, waits[p])
        state[block] = waits
    for p in range(16):
        axes.members += members[p]
    drift = wp.vec3f(lane_sum(drift_x), lane_sum(drift_y), lane_sum(drift_z))
    side = drift - axes.axis * wp.dot(axes.axis, drift)
    if wp.length(side) < 1.0e-5 * wp.length(drift) or wp.length(side) < 1.0e-7:
        side = wp.vec3f(0.0, 0.0, 1.0)
        if wp.abs(axes.axis[2]) > 0.7:
            side = wp.vec3f(1.0, 0.0, 0.0)
        side = side - axes.axis * wp.dot(axes.axis, side)
    axes.across = wp.normalize(side)
    axes.down = wp.cross(axes.axis, axes.across)
    return axes


@wp.func
def tile_of(axes: Axes, dx: wp.array[vec16f], dy: wp.array[vec16f], dz: wp.array[vec16f], state: wp.array[vec16i]) -> TileRays:
    """The tile that holds the active rays."""
    low_x, high_x, low_y, high_y = vec16f(1.0e30), vec16f(-1.0e30), vec16f(1.0e30), vec16f(-1.0e30)
    for block in range(PACKET_BLOCKS):
        x = dx[block]
        y = dy[block]
        z = dz[block]
        active = state[block]
        for p in range(16):
            w = 1.0 / (axes.axis[0] * x[p] + axes.axis[1] * y[p] + axes.axis[2] * z[p])
            u = (axes.across[0] * x[p] + axes.across[1] * y[p] + axes.across[2] * z[p]) * w
            v = (axes.down[0] * x[p] + axes.down[1] * y[p] + axes.down[2] * z[p]) * w
            counts = active[p] == _ACTIVE
            low_x[p] = wp.where(counts and u < low_x[p], u, low_x[p])
            high_x[p] = wp.where(counts and u > high_x[p], u, high_x[p])
            low_y[p] = wp.where(counts and v < low_y[p], v, low_y[p])
            high_y[p] = wp.where(counts and v > high_y[p], v, high_y[p])
    x0, x1, y0, y1 = low_x[0], high_x[0], low_y[0], high_y[0]
    for p in range(1, 16):
        x0 = wp.where(low_x[p] < x0, low_x[p], x0)
        x1 = wp.where(high_x[p] > x1, high_x[p], x1)
        y0 = wp.where(low_y[p] < y0, low_y[p], y0)
        y1 = wp.where(high_y[p] > y1, high_y[p], y1)
    width = wp.max(x1 - x0, 2.0 * NARROWEST) / (LAST_X - 2.0 * INSET)
    height = wp.max(y1 - y0, 2.0 * NARROWEST) / (LAST_Y - 2.0 * INSET)
    rays = TileRays()
    rays.direction_dx = axes.across * width
    rays.direction_dy = axes.down * height
    left, top = 0.5 * (x0 + x1) - 0.5 * LAST_X * width, 0.5 * (y0 + y1) - 0.5 * LAST_Y * height
    rays.direction = axes.axis + axes.across * left + axes.down * top
    return rays


@wp.func
def settle_places(
    rays: TileRays,
    dx: wp.array[vec16f],
    dy: wp.array[vec16f],
    dz: wp.array[vec16f],
    state: wp.array[vec16i],
    xs: wp.array[vec16f],
    ys: wp.array[vec16f],
    stretches: wp.array[vec16f],
    bounds: wp.array[wp.vec4f],
):
    """Where in the tile each active ray is, solved in double: the direction at (x, y) is the ray's own times ``stretches``. Bounds a block;
    those of a block without active rays overlap nothing."""
    a, b, c = widen(rays.direction_dx), widen(rays.direction_dy), widen(rays.direction)
    to_x, to_y, to_w = wp.cross(b, c), wp.cross(c, a), wp.cross(a, b)
    volume = wp.dot(to_w, c)
    for block in range(PACKET_BLOCKS):
        x = dx[block]
        y = dy[block]
        z = dz[block]
        active = state[block]
        place_x = vec16f()
        place_y = vec16f()
        stretch = vec16f()
        for p in range(16):
            dx64, dy64, dz64 = wp.float64(x[p]), wp.float64(y[p]), wp.float64(z[p])
            r = wp.float64(1.0) / (to_w[0] * dx64 + to_w[1] * dy64 + to_w[2] * dz64)
            place_x[p] = wp.float32((to_x[0] * dx64 + to_x[1] * dy64 + to_x[2] * dz64) * r)
            place_y[p] = wp.float32((to_y[0] * dx64 + to_y[1] * dy64 + to_y[2] * dz64) * r)
            stretch[p] = wp.float32(volume * r)
        x0, x1, y0, y1 = wp.float32(1.0e30), wp.float32(-1.0e30), wp.float32(1.0e30), wp.float32(-1.0e30)
        for p in range(16):
            counts = active[p] == _ACTIVE
            place_x[p] = wp.where(counts, place_x[p], 0.0)
            place_y[p] = wp.where(counts, place_y[p], 0.0)
            stretch[p] = wp.where(counts, stretch[p], 1.0)
            x0 = wp.where(counts and place_x[p] < x0, place_x[p], x0)
            x1 = wp.where(counts and place_x[p] > x1, place_x[p], x1)
            y0 = wp.where(counts and place_y[p] < y0, place_y[p], y0)
            y1 = wp.where(counts and place_y[p] > y1, place_y[p], y1)
        xs[block] = place_x
        ys[block] = place_y
        stretches[block] = stretch
        bounds[block] = wp.vec4f(x0, x1, y0, y1)


@wp.func
def start_rays(
    bundle: RayBundle,
    patch: Patch,
    limits: wp.array[wp.vec2f],
    dx: wp.array[vec16f],
    dy: wp.array[vec16f],
    dz: wp.array[vec16f],
    state: wp.array[vec16i],
    stretches: wp.array[vec16f],
    near_keys: wp.array[vec16f],
    keys: wp.array[vec16f],
    slots: wp.array[vec16i],
    owners: wp.array[vec16i],
    ranks: wp.array[vec16i],
):
    """Nothing hit yet: the keys are those of the far ends. ``stretches`` becomes the distance at t = 1; what is not active can hit nothing."""
    for block in range(PACKET_BLOCKS):
        row = patch.row + (block // patch.blocks_x) * patch.height
        column = patch.column + (block % patch.blocks_x) * patch.width
        nears = vec16f(bundle.near)
        fars = vec16f(bundle.far)
        if limits.shape[0] > 0:
            for p in range(16):
                r, c = row + (p >> patch.shift), column + (p & (patch.width - 1))
                r, c = wp.where(r < bundle.rows, r, bundle.rows - 1), wp.where(c < bundle.columns, c, bundle.columns - 1)
                limit = limits[bundle.first_ray + r * bundle.columns + c]
                nears[p] = limit[0]
                fars[p] = limit[1]
        x = dx[block]
        y = dy[block]
        z = dz[block]
        active = state[block]
        stretch = stretches[block]
        for p in range(16):
            length = stretch[p] * wp.sqrt(x[p] * x[p] + y[p] * y[p] + z[p] * z[p])
            near_key, far_key = limit_keys(nears[p], fars[p], length)
            counts = active[p] == _ACTIVE
            stretch[p] = length
            nears[p] = wp.where(counts, near_key, 0.0)
            fars[p] = wp.where(counts, far_key, wp.inf)
        stretches[block] = stretch
        near_keys[block] = nears
        keys[block] = fars
        slots[block] = vec16i(-1)
        owners[block] = vec16i(-1)
        ranks[block] = vec16i(NO_RANK)


@wp.func
def highest_key(keys: wp.array[vec16f]) -> wp.float32:
    high = keys[0]
    for block in range(1, PACKET_BLOCKS):
        other = keys[block]
        for p in range(16):
            high[p] = wp.where(other[p] > high[p], other[p], high[p])
    highest = high[0]
    for p in range(1, 16):
        highest = wp.where(high[p] > highest, high[p], highest)
    return highest


@wp.func
def store_hits(
    bundle: RayBundle,
    patch: Patch,
    more: wp.bool,
    state: wp.array[vec16i],
    stretches: wp.array[vec16f],
    keys: wp.array[vec16f],
    slots: wp.array[vec16i],
    owners: wp.array[vec16i],
    hits: RayHits,
):
    """What this turn found; the last turn also stores what was no ray."""
    no_ray = wp.where(more, _ACTIVE, _NO_RAY)
    for block in range(PACKET_BLOCKS):
        row = patch.row + (block // patch.blocks_x) * patch.height
        column = patch.column + (block % patch.blocks_x) * patch.width
        slot = slots[block]
        owner = owners[block]
        key = keys[block]
        stretch = stretches[block]
        result = state[block]
        t = vec16f()
        for p in range(16):
            t[p] = wp.where(slot[p] >= 0, stretch[p] / key[p], wp.inf)
        for p in range(16):
            r, c = row + (p >> patch.shift), column + (p & (patch.width - 1))
            if (result[p] == _ACTIVE or result[p] == no_ray) and r < bundle.rows and c < bundle.columns:
                output = bundle.output + r * bundle.columns + c
                hits.slot[output] = slot[p]
                hits.instance[output] = owner[p]
                hits.t[output] = t[p]


@wp.func
def store_blocked(
    bundle: RayBundle, patch: Patch, more: wp.bool, state: wp.array[vec16i], slots: wp.array[vec16i], blocked: wp.array[wp.bool]
):
    no_ray = wp.where(more, _ACTIVE, _NO_RAY)
    for block in range(PACKET_BLOCKS):
        row = patch.row + (block // patch.blocks_x) * patch.height
        column = patch.column + (block % patch.blocks_x) * patch.width
        slot = slots[block]
        result = state[block]
        for p in range(16):
            r, c = row + (p >> patch.shift), column + (p & (patch.width - 1))
            if (result[p] == _ACTIVE or result[p] == no_ray) and r < bundle.rows and c < bundle.columns:
                blocked[bundle.output + r * bundle.columns + c] = slot[p] >= 0


@functools.cache
def free_kernel(kinds: SceneKinds, any_hit: bool) -> wp.Kernel:
    """The kernel for scenes of these kinds."""
    HAS_MESH, HAS_SHAPES, ANY_HIT, RUN = kinds.mesh, kinds.shapes, any_hit, RUN_LENGTH

    @wp.kernel(enable_backward=False, module="unique", module_options=LANE_OPTIONS)
    def trace_packets(
        first: wp.int32,
        step: wp.int32,
        count: wp.int32,
        bundles: wp.array[RayBundle],
        bundle_count: wp.int32,
        packet_count: wp.int32,
        directions: wp.array[wp.vec3f],
        limits: wp.array[wp.vec2f],
        meshes: MeshColumns,
        instances: InstanceColumns,
        top: TopLevel,
        blocked: wp.array[wp.bool],
        hits: RayHits,
    ):
        job = first + wp.tid() * step
        if job >= count:
            return
        dx = wp.zeros(shape=(4,), dtype=vec16f)
        dy = wp.zeros(shape=(4,), dtype=vec16f)
        dz = wp.zeros(shape=(4,), dtype=vec16f)
        state = wp.zeros(shape=(4,), dtype=vec16i)
        xs = wp.zeros(shape=(4,), dtype=vec16f)
        ys = wp.zeros(shape=(4,), dtype=vec16f)
        stretches = wp.zeros(shape=(4,), dtype=vec16f)
        bounds = wp.zeros(shape=(4,), dtype=wp.vec4f)
        near_keys = wp.zeros(shape=(4,), dtype=vec16f)
        keys = wp.zeros(shape=(4,), dtype=vec16f)
        slots = wp.zeros(shape=(4,), dtype=vec16i)
        owners = wp.zeros(shape=(4,), dtype=vec16i)
        ranks = wp.zeros(shape=(4,), dtype=vec16i)
        mine = wp.zeros(shape=(4,), dtype=vec16i)
        stack = wp.zeros(shape=(STACK,), dtype=wp.int32)
        stack_depth = wp.zeros(shape=(STACK,), dtype=wp.float32)
        for packet in range(job * RUN, wp.min(job * RUN + RUN, packet_count)):
            bundle = bundles[bundle_of_packet(bundles, bundle_count, packet)]
            patch = patch_of(bundle, packet - bundle.first_packet)
            load_directions(bundle, patch, directions, dx, dy, dz, state)

            more = wp.bool(bundle.masked == 0)
            while more:  # once, unless the rays are spread over more than one tile can hold
                axes = choose_axes(dx, dy, dz, state)
                more = axes.members < axes.waiting
                rays = TileRays()
                if axes.members > 0:
                    rays = tile_of(axes, dx, dy, dz, state)
                    settle_places(rays, dx, dy, dz, state, xs, ys, stretches, bounds)
                start_rays(bundle, patch, limits, dx, dy, dz, state, stretches, near_keys, keys, slots, owners, ranks)
                near_top = highest_key(near_keys)
                near = (1.0 - DEPTH_SLACK) / near_top  # +inf where there is no ray: nothing is visited
                key_floor = lowest_key(keys)
                far = depth_of(key_floor, False)

                for which in range(2):  # the tree of the bundle's own world, then the global one
                    origin = bundle.origin
                    root = bundle.root
                    if which == 1:
                        origin = origin + bundle.global_offset
                        root = bundle.global_root
                    size = wp.int32(0)
                    frustum = Frustum()
                    if root >= 0 and axes.members > 0 and key_floor < wp.inf:
                        frustum = place_exactly(frustum_of(screen_of(rays, 0.0, False, False)), origin)
                        stack[0] = root
                        stack_depth[0] = -MISS
                        size = 1
                    while size > 0:
                        size -= 1
                        node = stack[size]
                        if stack_depth[size] <= far:
                            if node >= 0:
                                size = push_children(top.nodes, top.children, node, frustum, near, far, stack, stack_depth, size)
                            elif node != NO_CHILD:
                                instance = -1 - node
                                frame = ObjectFrame()
                                frame.row = instance
                                frame.rank = instances.rank[instance]
                                frame.single_sided = instances.cull[instance] != 0
                                offset = origin - instances.translation[instance]
                                frame.rays = object_rays(rays, axes.axis, offset, instances.object_from_world[instance], False, False)
                                kind = instances.kind[instance]
                                if HAS_MESH:
                                    if kind == MESH:
                                        key_floor = trace_mesh_free(
                                            meshes,
                                            instances.geometry[instance],
                                            frame,
                                            near,
                                            ANY_HIT,
                                            stack,
                                            stack_depth,
                                            size,
                                            bounds,
                                            xs,
                                            ys,
                                            near_keys,
                                            keys,
                                            slots,
                                            owners,
                                            ranks,
                                            mine,
                                            key_floor,
                                        )
                                if HAS_SHAPES:
                                    if kind > MESH:
                                        key_floor = trace_shape_free(
                                            kind, instances.shape, frame, ANY_HIT, xs, ys, near_keys, keys, slots, owners, ranks
                                        )
                                far = depth_of(key_floor, False)
                                if ANY_HIT and key_floor == wp.inf:
                                    size = 0

                if hits.slot.shape[0] > 0:
                    store_hits(bundle, patch, more, state, stretches, keys, slots, owners, hits)
                if blocked.shape[0] > 0:
                    store_blocked(bundle, patch, more, state, slots, blocked)
                if more:
                    for block in range(PACKET_BLOCKS):
                        for p in range(16):
                            if state[block][p] == _ACTIVE:
                                state[block][p] = _DONE

    return trace_packets


def trace_free(
    bundles: RayBundles,
    directions: wp.array,
    meshes: MeshColumns,
    instances: InstanceColumns,
    top: TopLevel,
    hits: RayHits | None = None,
    *,
    kinds: SceneKinds,
    limits: wp.array | None = None,
    any_hit: bool = False,
    blocked: wp.array | None = None,
    device: wp.Device | str,
) -> RayHits | None:
    """What rays from one point a bundle hit, in packets of 64 neighbours of its grid. On CUDA one thread a ray.

    The same as `trace_rays` without origins, several times faster where neighbours have similar directions; a packet whose rays are
    spread over more than 60 degrees about their mean is taken in parts. Parameters and results: see `trace_rays`; with ``any_hit`` the
    hit is some hit within the ray's range, and its t is 0.
    """
    device = wp.get_device(device)
    if device.is_cuda:
        arguments = {"kinds": kinds, "limits": limits, "any_hit": any_hit, "blocked": blocked, "device": device}
        return trace_rays(bundles, None, directions, meshes, instances, top, hits, **arguments)
    rays = [directions, limits]
    kernel, count = free_kernel(kinds, any_hit), bundles.packet_count
    return launch_rays(kernel, count, RUN_LENGTH, bundles, rays, meshes, instances, top, hits, blocked, device)


def occluded(
    bundles: RayBundles,
    origins: wp.array | None,
    directions: wp.array,
    meshes: MeshColumns,
    instances: InstanceColumns,
    top: TopLevel,
    *,
    kinds: SceneKinds,
    limits: wp.array | None = None,
    out: wp.array | None = None,
    device: wp.Device | str,
) -> wp.array:
    """(rays of all bundles,) bool: whether anything lies on a ray within its range. For shadows: with the light at a bundle's origin and
    directions from there to the points, rays go in packets; with ``origins`` given, one by one. ``limits``: see `trace_rays`; the far
    limit is the distance to the other end less what self-shadowing asks for."""
    device = wp.get_device(device)
    out = wp.zeros(bundles.ray_count, dtype=wp.bool, device=device) if out is None else out
    options = {"kinds": kinds, "limits": limits, "any_hit": True, "blocked": out, "device": device}
    if origins is None:
        trace_free(bundles, directions, meshes, instances, top, **options)
    else:
        trace_rays(bundles, origins, directions, meshes, instances, top, **options)
    return out
