"""shade.domes: light from domes: what is seen in a direction, what a surface gets, directions to sample, blurred reflections.

Directions and normals are unit and in the dome's own space; all results are for a radiance of 1: see `DomeTables`.
"""

from __future__ import annotations

import math

import warp as wp

from hdwarp.tables.structs import GLOSSY_LEVELS, DomeTables

_PI = wp.constant(math.pi)
_INVERSE_PI = wp.constant(1.0 / math.pi)


@wp.func
def latlong_from(direction: wp.vec3f) -> wp.vec2f:
    """(s, t) on [0, 1] of a latlong picture, from its upper left corner."""
    lon = wp.atan2(direction[0], direction[2])
    lat = wp.asin(wp.clamp(direction[1], -1.0, 1.0))
    return wp.vec2f(0.5 - 0.5 * lon * _INVERSE_PI, 0.5 - lat * _INVERSE_PI)


@wp.func
def direction_from(lon: wp.float32, sine: wp.float32) -> wp.vec3f:
    """``sine`` of the latitude."""
    across = wp.sqrt(wp.max(1.0 - sine * sine, 0.0))
    return wp.vec3f(wp.sin(lon) * across, sine, wp.cos(lon) * across)


@wp.func
def picture_texel(domes: DomeTables, picture: wp.int32, column: wp.int32, row: wp.int32) -> wp.vec3f:
    """Columns go round, rows end at the edges."""
    size = domes.picture_size[picture]
    x = column % size[0]
    if x < 0:
        x += size[0]
    y = wp.clamp(row, 0, size[1] - 1)
    return domes.texels[domes.picture_start[picture] + y * size[0] + x]


@wp.func
def picture_at(domes: DomeTables, picture: wp.int32, x: wp.float32, y: wp.float32) -> wp.vec3f:
    """A picture between the middles of its texels, which are whole numbers."""
    i = int(wp.floor(x))
    j = int(wp.floor(y))
    fx = x - float(i)
    fy = y - float(j)
    above = picture_texel(domes, picture, i, j) * (1.0 - fx) + picture_texel(domes, picture, i + 1, j) * fx
    below = picture_texel(domes, picture, i, j + 1) * (1.0 - fx) + picture_texel(domes, picture, i + 1, j + 1) * fx
    return above * (1.0 - fy) + below * fy


@wp.func
def latlong_at(domes: DomeTables, picture: wp.int32, direction: wp.vec3f) -> wp.vec3f:
    """A latlong picture in a direction."""
    size = domes.picture_size[picture]
    st = latlong_from(direction)
    return picture_at(domes, picture, st[0] * float(size[0]) - 0.5, st[1] * float(size[1]) - 0.5)


@wp.func
def dome_radiance(domes: DomeTables, dome: wp.int32, direction: wp.vec3f) -> wp.vec3f:
    """What comes from ``direction``."""
    return latlong_at(domes, domes.image[dome], direction)


@wp.func
def dome_irradiance(domes: DomeTables, dome: wp.int32, normal: wp.vec3f) -> wp.vec3f:
    """What a surface gets that nothing shadows; pi for a dome of 1."""
    picture = domes.image[dome] + GLOSSY_LEVELS + 1
    size = domes.picture_size[picture]
    st = latlong_from(normal)
    return picture_at(domes, picture, st[0] * float(size[0]) - 0.5, st[1] * float(size[1] - 1))


@wp.func
def dome_reflection(domes: DomeTables, dome: wp.int32, direction: wp.vec3f, roughness: wp.float32) -> wp.vec3f:
    """What a mirror of GGX ``roughness`` (0 to 1, its square being alpha) shows towards ``direction``."""
    level = wp.clamp(roughness, 0.0, 1.0) * float(GLOSSY_LEVELS)
    sharper = wp.min(int(level), GLOSSY_LEVELS - 1)
    part = level - float(sharper)
    picture = domes.image[dome] + sharper
    return latlong_at(domes, picture, direction) * (1.0 - part) + latlong_at(domes, picture + 1, direction) * part


@wp.func
def find_step(numbers: wp.array[wp.float32], first: wp.int32, count: wp.int32, value: wp.float32) -> wp.int32:
    """Which of the ``count`` steps between count + 1 ascending numbers holds ``value`` in [0, 1): one that is not empty."""
    low = wp.int32(0)
    high = count - 1
    while low < high:
        middle = (low + high) // 2
        if numbers[first + middle + 1] > value:
            high = middle
        else:
            low = middle + 1
    return low


@wp.func
def dome_pdf(domes: DomeTables, dome: wp.int32, direction: wp.vec3f) -> wp.float32:
    """Density by solid angle with which `dome_sample` gives ``direction``."""
    cells = domes.cells[dome]
    st = latlong_from(direction)
    column = wp.clamp(int(st[0] * float(cells[0])), 0, cells[0] - 1)
    row = wp.clamp(int(st[1] * float(cells[1])), 0, cells[1] - 1)
    first = cells[2] + cells[1] + 1 + cells[1] * (cells[0] + 1)
    return domes.chances[first + row * cells[0] + column]


@wp.func
def dome_sample(domes: DomeTables, dome: wp.int32, u: wp.float32, v: wp.float32) -> wp.vec4f:
    """(direction, its density by solid angle): by luminance. ``u``, ``v``: uniform on [0, 1)."""
    cells = domes.cells[dome]
    rows = cells[2]
    row = find_step(domes.chances, rows, cells[1], v)
    low = domes.chances[rows + row]
    y = wp.clamp((v - low) / wp.max(domes.chances[rows + row + 1] - low, 1.0e-30), 0.0, 1.0)
    inside = rows + cells[1] + 1 + row * (cells[0] + 1)
    column = find_step(domes.chances, inside, cells[0], u)
    low = domes.chances[inside + column]
    x = wp.clamp((u - low) / wp.max(domes.chances[inside + column + 1] - low, 1.0e-30), 0.0, 1.0)
    lon = _PI * (1.0 - 2.0 * (float(column) + x) / float(cells[0]))
    top = wp.cos(_PI * float(row) / float(cells[1]))
    bottom = wp.cos(_PI * float(row + 1) / float(cells[1]))
    direction = direction_from(lon, top + (bottom - top) * y)
    first = rows + cells[1] + 1 + cells[1] * (cells[0] + 1)
    return wp.vec4f(direction[0], direction[1], direction[2], domes.chances[first + row * cells[0] + column])


@wp.func
def light_picture(domes: DomeTables, picture: wp.int32, s: wp.float32, t: wp.float32, level: wp.float32) -> wp.vec3f:
    """What a rect light shows at (``s``, ``t``) of its image, (0, 0) the lower left corner; ``level``: 0 the largest picture, one more for
    each halving. Beyond its edges it goes on as they are."""
    size = domes.picture_size[picture]
    last = wp.int32(0)
    longest = wp.max(size[0], size[1])
    while longest > 1:
        longest = longest // 2
        last += 1
    at = wp.clamp(level, 0.0, float(last))
    sharper = wp.min(int(at), wp.max(last - 1, 0))
    found = _flat_at(domes, picture + sharper, s, t)
    if last > 0:
        part = at - float(sharper)
        found = found * (1.0 - part) + _flat_at(domes, picture + sharper + 1, s, t) * part
    return found


@wp.func
def _flat_at(domes: DomeTables, picture: wp.int32, s: wp.float32, t: wp.float32) -> wp.vec3f:
    size = domes.picture_size[picture]
    x = wp.clamp(s * float(size[0]) - 0.5, 0.0, float(size[0]) - 1.0)
    y = wp.clamp((1.0 - t) * float(size[1]) - 0.5, 0.0, float(size[1]) - 1.0)
    i = int(x)
    j = int(y)
    fx = x - float(i)
    fy = y - float(j)
    right = wp.min(i + 1, size[0] - 1)
    above = picture_texel(domes, picture, i, j) * (1.0 - fx) + picture_texel(domes, picture, right, j) * fx
    below = picture_texel(domes, picture, i, j + 1) * (1.0 - fx) + picture_texel(domes, picture, right, j + 1) * fx
    return above * (1.0 - fy) + below * fy


@wp.func
def dome_towards(
    domes: DomeTables, dome: wp.int32, linear: wp.mat33f, normal: wp.vec3f, u: wp.float32, v: wp.float32
) -> tuple[wp.vec3f, wp.float32]:
    """(a direction in the world, luminance from there over its density): half of them by luminance, half by the cosine to ``normal``, all
    where the dome has no picture. ``linear``: the dome's turn."""
    cells = domes.cells[dome]
    share = wp.where(cells[0] * cells[1] == 1, 1.0, 0.5)
    local = wp.vec3f()
    if u < share:
        towards = normal + direction_from(2.0 * _PI * v, 1.0 - 2.0 * (u / share))  # cosine-weighted, but for its length
        local = wp.transpose(linear) * wp.normalize(towards)
    else:
        found = dome_sample(domes, dome, (u - share) / (1.0 - share), v)
        local = wp.vec3f(found[0], found[1], found[2])
    way = wp.normalize(linear * local)
    density = share * wp.max(wp.dot(normal, way), 0.0) * _INVERSE_PI + (1.0 - share) * dome_pdf(domes, dome, local)
    color = dome_radiance(domes, dome, local)
    return way, (0.2126 * color[0] + 0.7152 * color[1] + 0.0722 * color[2]) / wp.max(density, 1.0e-20)
