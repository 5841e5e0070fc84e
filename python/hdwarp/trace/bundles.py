"""trace.bundles: rays that belong to no image: bundles of rays (one sensor in one world) and what they hit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

PACKET_SIZE = 64


@wp.struct
class RayBundle:
    """Rays of one sensor in one world: a grid of ``rows`` x ``columns`` rays, row by row; bundles may share them.

    Ray i: from origin + turn * origins[i] (origin alone where no origins are given) along turn * directions[i], i counted from
    ``first_ray``. A direction need not be of unit length (t is the distance in metres all the same); a direction that is zero or not
    finite means no ray. Neighbours in the grid should be neighbours in space: packets are tiles of it.
    """

    origin: wp.vec3d  # in the frame of the bundle's world [m]
    turn: wp.mat33d  # world_from_sensor, a rotation
    root: wp.int32  # node of the world's TopLevel tree, -1 none
    global_root: wp.int32  # node of the global tree (its frame is moved by global_offset), -1 none
    global_offset: wp.vec3d  # origin of the bundle's world in the global frame [m]
    near: wp.float32  # [m] along the ray, both ends included; `limits`, where given, replace them ray by ray
    far: wp.float32
    first_ray: wp.int32  # of origins, directions and limits
    columns: wp.int32
    rows: wp.int32
    tile_height: wp.int32  # rows of a packet: 8, 4, 2 or 1
    first_packet: wp.int32  # packets of the bundles before this one
    output: wp.int32  # first ray of the bundle in the results; also: rays of the bundles before this one
    pitch: wp.int32  # of the rows of a packet's results; `columns` where results lie side by side
    masked: wp.int32  # 1: not traced, its results keep what they hold
    hides: wp.int32  # as in ViewRow
    culls: wp.int32
    way: wp.vec3f  # of parallel rays, unit: `directions` then only say where there is a ray


@wp.struct
class RayHits:
    """What each ray hits: identifiers as in the visibility record."""

    slot: wp.array[wp.int32]  # of a triangle, ball or piece (MeshColumns); on shapes 0 where the ray enters, 1 where it leaves; -1 miss
    instance: wp.array[wp.int32]  # instance row, -1 miss
    t: wp.array[wp.float32]  # distance from the ray's origin [m], +inf miss; good to about 1e-6, 1e-5 where the ray grazes
    key: wp.array[wp.float32]  # 1 / t as a visibility record has it; null where nobody asks (packets alone fill it, and may leave out t)


@dataclass(eq=False)
class RayBundles:
    """Bundles on the device, and how many packets and rays they are."""

    rows: wp.array  # (count,) RayBundle
    count: int
    packet_count: int
    ray_count: int

    def hits(self) -> RayHits:
        """New arrays for the results of all rays."""
        hits, device = RayHits(), self.rows.device
        hits.slot = wp.full(self.ray_count, -1, dtype=wp.int32, device=device)
        hits.instance = wp.full(self.ray_count, -1, dtype=wp.int32, device=device)
        hits.t = wp.full(self.ray_count, wp.inf, dtype=wp.float32, device=device)
        return hits


def ray_bundles(
    origins: np.ndarray,
    shape: tuple[int, int],
    *,
    root: int | np.ndarray,
    turns: np.ndarray | None = None,
    first_ray: int | np.ndarray = 0,
    near: float | np.ndarray = 0.0,
    far: float | np.ndarray = np.inf,
    global_root: int | np.ndarray = -1,
    global_offset: np.ndarray | tuple[float, float, float] = (0.0, 0.0, 0.0),
    masked: int | np.ndarray = 0,
    hides: int | np.ndarray = 0,
    culls: int | np.ndarray = 0,
    way: np.ndarray | None = None,
    device: wp.Device | str,
) -> RayBundles:
    """Bundles at ``origins`` (B, 3) float64, each a grid of ``shape`` = (rows, columns) rays; results come one bundle after the other.

    ``turns``: (B, 3, 3) world_from_sensor, identity by default. What is given once holds for all bundles. A list of N rays without a
    grid is the shape (1, N).
    """
    origins = np.asarray(origins, np.float64).reshape(-1, 3)
    count, (rows, columns) = len(origins), shape
    tile_height, packets = packets_of(shape)
    values = {
        "origin": origins,
        "turn": np.broadcast_to(np.eye(3), (count, 3, 3)) if turns is None else np.asarray(turns, np.float64),
        "root": root,
        "global_root": global_root,
        "global_offset": np.broadcast_to(np.asarray(global_offset, np.float64), (count, 3)),
        "near": near,
        "far": far,
        "first_ray": first_ray,
        "columns": columns,
        "rows": rows,
        "tile_height": tile_height,
        "first_packet": np.arange(count) * packets,
        "output": np.arange(count) * rows * columns,
        "pitch": columns,
        "masked": masked,
        "hides": hides,
        "culls": culls,
        "way": np.zeros(3) if way is None else way,
    }
    table = np.zeros(max(count, 1), dtype=RayBundle.numpy_dtype())
    for name, value in values.items():
        table[name][:count] = value
    return RayBundles(wp.array(table, dtype=RayBundle, device=device), count, count * packets, count * rows * columns)


def packets_of(shape: tuple[int, int]) -> tuple[int, int]:
    """(rows of a packet, packets) of a grid of (rows, columns) rays."""
    rows, columns = shape
    tile_height = next(h for h in (8, 4, 2, 1) if h <= max(rows, 1))
    return tile_height, -(-rows // tile_height) * -(-columns // (PACKET_SIZE // tile_height))


@wp.func
def bundle_of_packet(bundles: wp.array[RayBundle], count: wp.int32, packet: wp.int32) -> wp.int32:
    """The bundle that a packet belongs to: the last that begins at or before it."""
    low = wp.int32(0)
    high = wp.int32(count)
    while high - low > 1:
        middle = (low + high) // 2
        if bundles[middle].first_packet <= packet:
            low = middle
        else:
            high = middle
    return low


@wp.func
def bundle_of_ray(bundles: wp.array[RayBundle], count: wp.int32, ray: wp.int32) -> wp.int32:
    """The bundle that a result belongs to."""
    low = wp.int32(0)
    high = wp.int32(count)
    while high - low > 1:
        middle = (low + high) // 2
        if bundles[middle].output <= ray:
            low = middle
        else:
            high = middle
    return low


@wp.func
def is_ray(d: wp.vec3f) -> wp.bool:
    """Whether a direction, given or turned into an object's space, is one: finite and not zero."""
    finite = wp.abs(d[0]) < 1.0e37 and wp.abs(d[1]) < 1.0e37 and wp.abs(d[2]) < 1.0e37
    return finite and (d[0] != 0.0 or d[1] != 0.0 or d[2] != 0.0)


@wp.func
def near_unit(d: wp.vec3f) -> wp.vec3f:
    """A direction of about unit length. One within 0.5 % of it is left alone: the ray traced is, to the last bit, the ray given."""
    x, y, z = wp.abs(d[0]), wp.abs(d[1]), wp.abs(d[2])
    size = wp.where(y > x, y, x)
    size = wp.where(z > size, z, size)
    inverse = 1.0 / wp.where(size > 1.0e-37, size, 1.0e-37)  # squares neither overflow nor vanish
    x, y, z = d[0] * inverse, d[1] * inverse, d[2] * inverse
    length = wp.sqrt(x * x + y * y + z * z)
    is_unit = wp.abs(length * size - 1.0) < 0.005
    scale = wp.where(is_unit, 1.0, 1.0 / length)
    inverse = wp.where(is_unit, 1.0, inverse)
    return wp.vec3f(d[0] * inverse * scale, d[1] * inverse * scale, d[2] * inverse * scale)


@wp.func
def turn_direction(turn: wp.mat33d, d: wp.vec3f) -> wp.vec3f:
    """In double, so that a turned direction is as good as a float32 direction can be."""
    x, y, z = wp.float64(d[0]), wp.float64(d[1]), wp.float64(d[2])
    return wp.vec3f(
        wp.float32(turn[0, 0] * x + turn[0, 1] * y + turn[0, 2] * z),
        wp.float32(turn[1, 0] * x + turn[1, 1] * y + turn[1, 2] * z),
        wp.float32(turn[2, 0] * x + turn[2, 1] * y + turn[2, 2] * z),
    )


@wp.func
def limit_keys(near: wp.float32, far: wp.float32, length: wp.float32):
    """Keys (1/t, t in units of the direction's ``length``) of a near and far distance; both ends belong to the range, with a little slack.

    Nothing is nearer than 0; a range that ends there is empty.
    """
    near_key = wp.where(near > 0.0, length / near, wp.inf)
    far_key = wp.where(far > 0.0, length / far, wp.inf)  # length / inf = 0
    far_key = wp.where(far == far, far_key, wp.inf)  # no number: no range
    return near_key * 1.000001, wp.max(far_key * 0.999999, 1.0e-37)
