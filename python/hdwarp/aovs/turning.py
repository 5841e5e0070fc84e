"""aovs.turning: normals of objects -> normals of the world, for lanes that see one instance or several. The same sums in both."""

from __future__ import annotations

import functools

import warp as wp


@wp.func
def normal_matrix(m: wp.mat33f) -> wp.mat33f:
    """What turns normals as ``m`` turns points, but for their length: the cofactors, which keep a mirrored outside outside."""
    a, b, c = wp.vec3f(m[0, 0], m[1, 0], m[2, 0]), wp.vec3f(m[0, 1], m[1, 1], m[2, 1]), wp.vec3f(m[0, 2], m[1, 2], m[2, 2])
    x = wp.vec3f(b[1] * c[2] - b[2] * c[1], b[2] * c[0] - b[0] * c[2], b[0] * c[1] - b[1] * c[0])
    y = wp.vec3f(c[1] * a[2] - c[2] * a[1], c[2] * a[0] - c[0] * a[2], c[0] * a[1] - c[1] * a[0])
    z = wp.vec3f(a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])
    volume = wp.float64(a[0]) * wp.float64(x[0]) + wp.float64(a[1]) * wp.float64(x[1]) + wp.float64(a[2]) * wp.float64(x[2])
    sign = wp.where(volume < wp.float64(0.0), -1.0, 1.0)
    return wp.matrix_from_cols(x * sign, y * sign, z * sign)


@functools.cache
def turn_normals(lanes: int) -> wp.Function:
    """For vectors of ``lanes`` lanes."""
    LANES = lanes
    floats = wp.types.vector(length=lanes, dtype=wp.float32)
    ints = wp.types.vector(length=lanes, dtype=wp.int32)
    columns = wp.types.matrix(shape=(3, lanes), dtype=wp.float32)

    @wp.func
    def turn(
        linear: wp.array[wp.float32],  # InstanceColumns.world_from_object, flat
        row: ints,
        lowest: wp.int32,
        highest: wp.int32,
        nx: floats,
        ny: floats,
        nz: floats,
    ) -> columns:
        """(3, lanes): the normals of the instances ``row``, the largest part 1. ``lowest``, ``highest``: of the rows that are not -1."""
        out = columns()
        x, y, z = floats(), floats(), floats()
        if lowest == highest:
            k = 9 * highest
            top = wp.vec3f(linear[k], linear[k + 1], linear[k + 2])
            middle = wp.vec3f(linear[k + 3], linear[k + 4], linear[k + 5])
            bottom = wp.vec3f(linear[k + 6], linear[k + 7], linear[k + 8])
            m = normal_matrix(wp.matrix_from_rows(top, middle, bottom))
            for lane in range(LANES):
                x[lane] = m[0, 0] * nx[lane] + m[0, 1] * ny[lane] + m[0, 2] * nz[lane]
                y[lane] = m[1, 0] * nx[lane] + m[1, 1] * ny[lane] + m[1, 2] * nz[lane]
                z[lane] = m[2, 0] * nx[lane] + m[2, 1] * ny[lane] + m[2, 2] * nz[lane]
        else:  # `normal_matrix`, lane by lane
            at = ints()
            for lane in range(LANES):
                at[lane] = 9 * wp.max(row[lane], 0)
            for lane in range(LANES):
                k = at[lane]
                a0, b0, c0 = linear[k], linear[k + 1], linear[k + 2]
                a1, b1, c1 = linear[k + 3], linear[k + 4], linear[k + 5]
                a2, b2, c2 = linear[k + 6], linear[k + 7], linear[k + 8]
                x0, x1, x2 = b1 * c2 - b2 * c1, b2 * c0 - b0 * c2, b0 * c1 - b1 * c0
                y0, y1, y2 = c1 * a2 - c2 * a1, c2 * a0 - c0 * a2, c0 * a1 - c1 * a0
                z0, z1, z2 = a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0
                volume = wp.float64(a0) * wp.float64(x0) + wp.float64(a1) * wp.float64(x1) + wp.float64(a2) * wp.float64(x2)
                sign = wp.where(volume < wp.float64(0.0), -1.0, 1.0)
                x[lane] = x0 * sign * nx[lane] + y0 * sign * ny[lane] + z0 * sign * nz[lane]
                y[lane] = x1 * sign * nx[lane] + y1 * sign * ny[lane] + z1 * sign * nz[lane]
                z[lane] = x2 * sign * nx[lane] + y2 * sign * ny[lane] + z2 * sign * nz[lane]
        for lane in range(LANES):  # squares of the very large and the very small would be no numbers
            reach = wp.max(wp.max(wp.abs(x[lane]), wp.abs(y[lane])), wp.abs(z[lane]))
            unit = 1.0 / reach
            out[0, lane] = x[lane] * unit
            out[1, lane] = y[lane] * unit
            out[2, lane] = z[lane] * unit
        return out

    return turn
