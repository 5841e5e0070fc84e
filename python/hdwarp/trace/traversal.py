"""trace.traversal: one ray through the trees, eight boxes at a time: of instances, then of the triangles, points or pieces of one.
Warp functions only."""

from __future__ import annotations

import warp as wp

from hdwarp.tables.bvh import EMPTY_CHILD
from hdwarp.tables.structs import MESH, InstanceColumns, MeshColumns, TopLevel, inverse_of, is_shape, is_swept, vec8f, vec8i
from hdwarp.trace.found import Found, ObjectRay, Variant, WorldRay, take
from hdwarp.trace.instances import prefetch_leaf, prefetch_node
from hdwarp.trace.layers import is_seen_already
from hdwarp.trace.nodes import NO_HIT, STACK
from hdwarp.trace.pixels import depth_of, key_of
from hdwarp.trace.ray_leaves import trace_leaf_lanes, trace_leaf_singly, trace_leaf_swept
from hdwarp.trace.rays import largest, narrow, times, times_exactly, widen
from hdwarp.trace.shapes import shape_interval
from hdwarp.trace.triangles import greatest, smallest

NO_CHILD = wp.constant(EMPTY_CHILD)
BOX_MARGIN = wp.constant(2.0e-6)  # of the distance: by how much an edge function may let a ray pass beside a triangle, and its box


@wp.struct
class Slabs:
    """A ray as boxes see it: t = (coordinate - origin) * inverse where it enters and leaves; rows of a node that hold these sides."""

    inverse: wp.vec3f
    entry_origin: wp.vec3f
    exit_origin: wp.vec3f
    entry_row: wp.vec3i
    exit_row: wp.vec3i


@wp.func
def tree_reach(nodes: wp.array[vec8f], root: wp.int32) -> wp.float32:
    """The largest coordinate of a tree's boxes."""
    reach = vec8f()
    for axis in range(6):
        row = nodes[6 * root + axis]
        for c in range(8):
            v = wp.abs(row[c])
            old = reach[c]
            reach[c] = wp.where(v > old and v < 1.0e30, v, old)
    for c in range(4):
        reach[c] = wp.where(reach[c + 4] > reach[c], reach[c + 4], reach[c])
    return wp.max(wp.max(reach[0], reach[1]), wp.max(reach[2], reach[3]))


@wp.func
def reciprocal(d: wp.float32) -> wp.float32:
    """1 / d, large and finite where the ray runs along the side."""
    return 1.0 / wp.where(wp.abs(d) < 1.0e-30, wp.where(d < 0.0, -1.0e-30, 1.0e-30), d)


@wp.func
def slabs_of(origin: wp.vec3f, direction: wp.vec3f, reach: wp.float32) -> Slabs:
    """Boxes count as wider by a margin: the direction's rounding, and the edge functions', at the farthest point of the tree."""
    margin = BOX_MARGIN * (largest(origin) + reach)
    slabs = Slabs()
    slabs.inverse = wp.vec3f(reciprocal(direction[0]), reciprocal(direction[1]), reciprocal(direction[2]))
    m = wp.vec3f(
        wp.where(slabs.inverse[0] < 0.0, -margin, margin),
        wp.where(slabs.inverse[1] < 0.0, -margin, margin),
        wp.where(slabs.inverse[2] < 0.0, -margin, margin),
    )
    slabs.entry_origin = origin + m
    slabs.exit_origin = origin - m
    slabs.entry_row = wp.vec3i(
        wp.where(slabs.inverse[0] < 0.0, 3, 0), wp.where(slabs.inverse[1] < 0.0, 4, 1), wp.where(slabs.inverse[2] < 0.0, 5, 2)
    )
    slabs.exit_row = wp.vec3i(3 - slabs.entry_row[0], 5 - slabs.entry_row[1], 7 - slabs.entry_row[2])
    return slabs


@wp.func
def push_hit_children(
    nodes: wp.array[vec8f],
    children: wp.array[vec8i],
    node: wp.int32,
    slabs: Slabs,
    near: wp.float32,
    far: wp.float32,
    stack: wp.array[wp.int32],
    stack_depth: wp.array[wp.float32],
    size: wp.int32,
) -> wp.int32:
    """Push the children of a node that the ray meets between ``near`` and ``far``, the nearest on top; the new size of the stack."""
    base = 6 * node
    entry_x = nodes[base + slabs.entry_row[0]]
    entry_y = nodes[base + slabs.entry_row[1]]
    entry_z = nodes[base + slabs.entry_row[2]]
    exit_x = nodes[base + slabs.exit_row[0]]
    exit_y = nodes[base + slabs.exit_row[1]]
    exit_z = nodes[base + slabs.exit_row[2]]
    depths = vec8f()
    for c in range(8):
        entry = greatest(
            (entry_x[c] - slabs.entry_origin[0]) * slabs.inverse[0],
            (entry_y[c] - slabs.entry_origin[1]) * slabs.inverse[1],
            (entry_z[c] - slabs.entry_origin[2]) * slabs.inverse[2],
        )
        exit = smallest(
            (exit_x[c] - slabs.exit_origin[0]) * slabs.inverse[0],
            (exit_y[c] - slabs.exit_origin[1]) * slabs.inverse[1],
            (exit_z[c] - slabs.exit_origin[2]) * slabs.inverse[2],
        )
        entry = wp.where(entry > near, entry, near)
        exit = wp.where(exit < far, exit, far)
        depths[c] = wp.where(entry <= exit, entry, NO_HIT)
    kids = children[node]
    floor = wp.int32(size)
    for c in range(8):
        depth = depths[c]
        if depth < NO_HIT and size < STACK:
            at = wp.int32(size)
            while at > floor and stack_depth[wp.max(at - 1, 0)] < depth:
                stack_depth[at] = stack_depth[at - 1]
                stack[at] = stack[at - 1]
                at -= 1
            stack[at] = kids[c]
            stack_depth[at] = depth
            size += 1
    return size


@wp.func
def trace_mesh_ray(
    kind: wp.int32,
    meshes: MeshColumns,
    mesh: wp.int32,
    ray: ObjectRay,
    near: wp.float32,
    variant: Variant,
    stack: wp.array[wp.int32],
    stack_depth: wp.array[wp.float32],
    floor: wp.int32,
    found: Found,
) -> Found:
    """The triangles, points or pieces of one instance, by its mesh's tree. The stack is free from ``floor`` on."""
    root = meshes.root[mesh]
    if root < 0:
        return found
    slabs = slabs_of(ray.origin, ray.direction, tree_reach(meshes.nodes, root))
    near -= ray.shift
    far = depth_of(found.key, ray.orthographic) - ray.shift
    stack[floor] = root
    stack_depth[floor] = -NO_HIT
    size = floor + 1
    while size > floor:
        size -= 1
        node = stack[size]
        if stack_depth[size] <= far:
            if variant.lanes:
                following = stack[wp.max(size - 1, 0)]
                if following < 0:
                    prefetch_leaf(meshes.leaf_vertices, -1 - following)
                else:
                    prefetch_node(meshes.nodes, following)
            if node >= 0:
                size = push_hit_children(meshes.nodes, meshes.children, node, slabs, near, far, stack, stack_depth, size)
            elif node != NO_CHILD:
                if variant.swept and kind != MESH:
                    found = trace_leaf_swept(kind, meshes, -1 - node, ray, found, variant)
                elif variant.lanes:
                    found = trace_leaf_lanes(meshes, -1 - node, ray, found, variant)
                else:
                    found = trace_leaf_singly(meshes, -1 - node, ray, found, variant)
                far = depth_of(found.key, ray.orthographic) - ray.shift
                if variant.any_hit and found.slot >= 0:
                    size = floor
    return found


@wp.func
def trace_shape_ray(
    kind: wp.int32, instances: InstanceColumns, world: WorldRay, offset: wp.vec3d, ray: ObjectRay, variant: Variant, found: Found
) -> Found:
    """An analytic shape: its front is where the ray enters; the exit is seen where the entry is cut off, if its back is drawn. In double;
    ``offset``: the ray's origin less the shape's place in the world; of ``ray`` only what is no number."""
    shift = wp.float64(0.0)
    if variant.orthographic and ray.orthographic:
        shift = -wp.dot(widen(world.forward), offset)
        offset = offset + world.exact_direction * shift
    object_from_world = wp.inverse(wp.mat33d(instances.world_from_object[ray.row]))
    origin, direction = times_exactly(object_from_world, offset), times_exactly(object_from_world, world.exact_direction)
    interval = shape_interval(kind, instances.shape, ray.source, origin, direction)
    entry, exit = wp.float32(interval[0] + shift), wp.float32(interval[1] + shift)
    entry_key, exit_key = key_of(entry, ray.orthographic), key_of(exit, ray.orthographic)
    entry_counts = entry_key <= found.near_key and (ray.orthographic or entry > 0.0)
    exit_counts = exit_key <= found.near_key and (ray.orthographic or exit > 0.0) and not ray.single_sided
    if variant.peel:
        seen = is_seen_already(entry_key, found.near_key, ray.rank, 0, found.behind_rank, found.behind_triangle)
        entry_counts = entry_counts and not seen
        seen = is_seen_already(exit_key, found.near_key, ray.rank, 0, found.behind_rank, found.behind_triangle)
        exit_counts = exit_counts and not seen
    key = wp.where(entry_counts, entry_key, exit_key)
    hit = interval[0] <= interval[1] and (entry_counts or exit_counts)
    if hit and (key > found.key or (key == found.key and ray.rank < found.rank)):
        found = take(found, key, wp.where(entry_counts, 0, 1), ray)
    return found


@wp.func
def object_ray(instances: InstanceColumns, row: wp.int32, ray: WorldRay, origin: wp.vec3d, variant: Variant) -> ObjectRay:
    """A ray, from ``origin`` in the frame of the instance's world, in the space of the instance."""
    inside = ObjectRay()
    inside.row = row
    inside.source = instances.source[row]
    inside.rank = instances.rank[inside.source]
    inside.single_sided = (instances.flags[inside.source] & ray.culls) != 0
    inside.orthographic = ray.orthographic
    offset = origin - instances.translation[row]
    if variant.orthographic and ray.orthographic:
        slide = -wp.dot(widen(ray.forward), offset)
        offset = offset + widen(ray.direction) * slide
        inside.shift = wp.float32(slide)
    object_from_world = inverse_of(instances.world_from_object[row])
    inside.origin = times(object_from_world, narrow(offset))
    inside.direction = times(object_from_world, ray.direction)
    return inside


@wp.func
def trace_tree_ray(
    meshes: MeshColumns,
    instances: InstanceColumns,
    top: TopLevel,
    root: wp.int32,
    ray: WorldRay,
    origin: wp.vec3d,
    near: wp.float32,
    variant: Variant,
    stack: wp.array[wp.int32],
    stack_depth: wp.array[wp.float32],
    found: Found,
) -> Found:
    """All instances of one top-level tree. ``near``: t before which nothing counts."""
    if root < 0 or (variant.any_hit and found.slot >= 0):
        return found
    slabs = slabs_of(narrow(origin), ray.direction, tree_reach(top.nodes, root))
    far = depth_of(found.key, ray.orthographic)
    stack[0] = root
    stack_depth[0] = -NO_HIT
    size = wp.int32(1)
    while size > 0:
        size -= 1
        node = stack[size]
        if stack_depth[size] <= far:
            if node >= 0:
                size = push_hit_children(top.nodes, top.children, node, slabs, near, far, stack, stack_depth, size)
            elif node != NO_CHILD:
                row = -1 - node
                inside = object_ray(instances, row, ray, origin, variant)
                source = inside.source
                kind = wp.where((instances.flags[source] & ray.hides) == 0, instances.kind[source], -1)
                if variant.mesh or variant.swept:
                    if kind == MESH or is_swept(kind):
                        mesh = instances.geometry[source]
                        found = trace_mesh_ray(kind, meshes, mesh, inside, near, variant, stack, stack_depth, size, found)
                if variant.shapes:
                    if is_shape(kind):
                        found = trace_shape_ray(kind, instances, ray, origin - instances.translation[row], inside, variant, found)
                far = depth_of(found.key, ray.orthographic)
                if variant.any_hit and found.slot >= 0:
                    size = 0
    return found


@wp.func
def trace_world_ray(
    meshes: MeshColumns,
    instances: InstanceColumns,
    top: TopLevel,
    root: wp.int32,
    global_root: wp.int32,
    global_offset: wp.vec3d,
    ray: WorldRay,
    near: wp.float32,
    variant: Variant,
    stack: wp.array[wp.int32],
    stack_depth: wp.array[wp.float32],
    found: Found,
) -> Found:
    """A ray through the tree of its own world, then the global one."""
    for which in range(2):
        tree = wp.where(which == 0, root, global_root)
        origin = wp.where(which == 0, ray.origin, ray.origin + global_offset)
        found = trace_tree_ray(meshes, instances, top, tree, ray, origin, near, variant, stack, stack_depth, found)
    return found
