"""aovs.geometry_planes: the planes that the geometry kernel fills: how depths are stored, and what pixels hold that see nothing."""

from __future__ import annotations

import functools
from typing import Any

import warp as wp

from hdwarp.aovs.hits import planar_scale
from hdwarp.aovs.pixel_runs import store_pairs, store_scalars, store_triples
from hdwarp.tables.structs import ViewRow


@wp.struct
class GeometryPlanes:
    """Output arrays, flat over pixels; null where nobody asks."""

    distance_to_image_plane: wp.array[wp.float32]
    camera_depth: wp.array[wp.float32]
    distance_to_camera: wp.array[wp.float32]
    depth: wp.array[wp.float32]
    position: wp.array[wp.vec3f]
    position_eye: wp.array[wp.vec3f]
    normal: wp.array[wp.vec3f]  # geometric, world
    barycentric: wp.array[wp.vec2f]
    ray_distance: wp.array[wp.float64]  # t along the view's rays, for kernels that follow; anything where nothing is seen


@wp.struct
class GeometryClears:
    """What a pixel that sees nothing holds."""

    distance_to_image_plane: wp.float32
    camera_depth: wp.float32
    distance_to_camera: wp.float32
    depth: wp.float32
    position: wp.vec3f
    position_eye: wp.vec3f
    normal: wp.vec3f
    barycentric: wp.vec2f


@functools.cache
def clear_block(lanes: int) -> wp.Function:
    """Stores the clear values of a block of ``lanes`` pixels in which nothing is seen."""
    floats = wp.types.vector(length=lanes, dtype=wp.float32)

    @wp.func
    def store_clears(clear: GeometryClears, low: wp.int32, high: wp.int32, pixel: wp.int32, out: GeometryPlanes):
        if out.distance_to_image_plane:
            store_scalars(floats(clear.distance_to_image_plane), low, high, pixel, out.distance_to_image_plane)
        if out.camera_depth:
            store_scalars(floats(clear.camera_depth), low, high, pixel, out.camera_depth)
        if out.distance_to_camera:
            store_scalars(floats(clear.distance_to_camera), low, high, pixel, out.distance_to_camera)
        if out.depth:
            store_scalars(floats(clear.depth), low, high, pixel, out.depth)
        if out.position:
            x, y, z = floats(clear.position[0]), floats(clear.position[1]), floats(clear.position[2])
            store_triples(x, y, z, low, high, pixel, out.position)
        if out.position_eye:
            x, y, z = floats(clear.position_eye[0]), floats(clear.position_eye[1]), floats(clear.position_eye[2])
            store_triples(x, y, z, low, high, pixel, out.position_eye)
        if out.normal:
            x, y, z = floats(clear.normal[0]), floats(clear.normal[1]), floats(clear.normal[2])
            store_triples(x, y, z, low, high, pixel, out.normal)
        if out.barycentric:
            store_pairs(floats(clear.barycentric[0]), floats(clear.barycentric[1]), low, high, pixel, out.barycentric)

    return store_clears


@functools.cache
def depth_block(lanes: int) -> wp.Function:
    """Stores the planes that hang on the distance along the optical axis, of a block of ``lanes`` pixels."""
    LANES = lanes
    floats = wp.types.vector(length=lanes, dtype=wp.float32)

    @wp.func
    def store_depths(
        planar: Any,  # distance of each lane, float64
        row: Any,  # of its instance, int32, below 0: nothing is seen
        view: ViewRow,
        clear: GeometryClears,
        low: wp.int32,
        high: wp.int32,
        pixel: wp.int32,
        out: GeometryPlanes,
    ):
        x = floats()
        if out.distance_to_image_plane:
            for lane in range(LANES):
                x[lane] = wp.where(row[lane] >= 0, wp.float32(planar[lane]), clear.distance_to_image_plane)
            store_scalars(x, low, high, pixel, out.distance_to_image_plane)
        if out.camera_depth:
            for lane in range(LANES):
                x[lane] = wp.where(row[lane] >= 0, wp.float32(planar[lane] * wp.float64(view.scene_unit)), clear.camera_depth)
            store_scalars(x, low, high, pixel, out.camera_depth)
        if out.depth:
            near, far = wp.float64(view.near), wp.float64(view.far)
            scale = planar_scale(near, far)
            if view.orthographic != 0:
                scale = wp.float64(1.0) / (far - near)
            for lane in range(LANES):
                below = planar[lane] - near
                ratio = wp.where(view.orthographic != 0, below, below / planar[lane]) * scale
                x[lane] = wp.where(row[lane] >= 0, wp.clamp(wp.float32(ratio), 0.0, 1.0), clear.depth)
            store_scalars(x, low, high, pixel, out.depth)

    return store_depths
