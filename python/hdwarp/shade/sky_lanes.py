"""shade.sky_lanes: what the surfaces of a block of pixels reflect of domes, and of the soft dome of the camera's light."""

import functools

import warp as wp

from hdwarp.shade.ambient import bare_around, coat_around, even, mirrored
from hdwarp.shade.domes import dome_irradiance
from hdwarp.shade.lane_math import angle, arc_cosine, unit3
from hdwarp.shade.surface import bare_reflected, coat_passes, coat_reflected, ggx_alpha, schlick
from hdwarp.shade.surface_lanes import (
    COAT,
    COAT_ROUGH,
    DX,
    DY,
    DZ,
    EB,
    EG,
    ER,
    KB,
    KG,
    KR,
    N_V,
    NX,
    NY,
    NZ,
    OPEN,
    ROUGH,
    ZB,
    ZG,
    ZR,
    surface_type,
)
from hdwarp.tables.structs import GLOSSY_LEVELS, DomeTables


@wp.func
def turned(linear: wp.mat33f, x: wp.float32, y: wp.float32, z: wp.float32) -> wp.vec3f:
    """A world direction in the space of which ``linear`` is the turn, unit."""
    a = linear[0, 0] * x + linear[1, 0] * y + linear[2, 0] * z
    b = linear[0, 1] * x + linear[1, 1] * y + linear[2, 1] * z
    c = linear[0, 2] * x + linear[1, 2] * y + linear[2, 2] * z
    return unit3(wp.vec3f(a, b, c))


@wp.func
def texel_mix(
    texels: wp.array[wp.float32], above: wp.int32, below: wp.int32, left: wp.int32, right: wp.int32, fx: wp.float32, fy: wp.float32
) -> wp.float32:
    """Between four texels: ``above`` and ``below`` are where rows start, ``left`` and ``right`` how far on the columns are."""
    top = texels[above + left] * (1.0 - fx) + texels[above + right] * fx
    bottom = texels[below + left] * (1.0 - fx) + texels[below + right] * fx
    return top * (1.0 - fy) + bottom * fy


@functools.cache
def reflect_camera(lanes: int) -> wp.Function:
    """A function: radiance towards the viewer of a light at the camera of so much irradiance, and of a radiance from everywhere."""
    LANES, Surface = lanes, surface_type(lanes)
    triples = wp.types.matrix(shape=(3, lanes), dtype=wp.float32)

    @wp.func
    def reflect(surface: Surface, coated: wp.int32, power: wp.float32, everywhere: wp.float32):
        """``coated``: 1 where any of the surfaces has clearcoat."""
        light = triples()
        for lane in range(LANES):
            diffuse = wp.vec3f(surface[KR, lane], surface[KG, lane], surface[KB, lane])
            zero = wp.vec3f(surface[ZR, lane], surface[ZG, lane], surface[ZB, lane])
            edge = wp.vec3f(surface[ER, lane], surface[EG, lane], surface[EB, lane])
            rough, n_v = surface[ROUGH, lane], surface[N_V, lane]
            seen = bare_reflected(diffuse, zero, edge, rough, n_v, n_v, n_v, 1.0, power, power)
            dome = bare_around(diffuse, zero, edge, rough, n_v)
            share = everywhere * surface[OPEN, lane]
            light[0, lane] = seen[0] + dome[0] * share
            light[1, lane] = seen[1] + dome[1] * share
            light[2, lane] = seen[2] + dome[2] * share
        if coated != 0:
            for lane in range(LANES):
                diffuse = wp.vec3f(surface[KR, lane], surface[KG, lane], surface[KB, lane])
                zero = wp.vec3f(surface[ZR, lane], surface[ZG, lane], surface[ZB, lane])
                edge = wp.vec3f(surface[ER, lane], surface[EG, lane], surface[EB, lane])
                coat, rough, n_v = surface[COAT, lane], surface[COAT_ROUGH, lane], surface[N_V, lane]
                dome = bare_around(diffuse, zero, edge, surface[ROUGH, lane], n_v)
                share = everywhere * surface[OPEN, lane]
                under, all_under = coat_passes(coat, n_v, n_v), coat_passes(coat, 1.0, n_v)
                over = coat_reflected(coat, rough, n_v, n_v, n_v, 1.0) * power + coat_around(coat, rough, n_v) * share
                light[0, lane] = light[0, lane] * under + dome[0] * share * (all_under - under) + over
                light[1, lane] = light[1, lane] * under + dome[1] * share * (all_under - under) + over
                light[2, lane] = light[2, lane] * under + dome[2] * share * (all_under - under) + over
        return light

    return reflect


@functools.cache
def _mirror_sky(lanes: int) -> wp.Function:
    """A function: what mirrors of a roughness show of a dome, towards (x, y, z) in its space: `domes.dome_reflection`."""
    LANES = lanes
    triples, floats = wp.types.matrix(shape=(3, lanes), dtype=wp.float32), wp.types.vector(length=lanes, dtype=wp.float32)
    ints = wp.types.vector(length=lanes, dtype=wp.int32)

    @wp.func
    def mirror(domes: DomeTables, texels: wp.array[wp.float32], dome: wp.int32, ways: triples, roughness: floats):
        light = triples()
        s, t, part, sharper = floats(), floats(), floats(), ints()
        least, most = wp.int32(GLOSSY_LEVELS), wp.int32(0)
        for lane in range(LANES):
            lon = angle(wp.abs(ways[0, lane]), ways[2, lane])
            s[lane] = 0.5 - 0.5 / wp.PI * wp.where(ways[0, lane] < 0.0, -lon, lon)
            t[lane] = arc_cosine(ways[1, lane]) / wp.PI
            level = wp.clamp(roughness[lane], 0.0, 1.0) * float(GLOSSY_LEVELS)
            sharper[lane] = wp.min(int(level), GLOSSY_LEVELS - 1)
            part[lane] = level - float(sharper[lane])
            least = wp.min(least, sharper[lane])
            most = wp.max(most, sharper[lane] + 1)
        for which in range(least, most + 1):  # a blurred picture at a time: one or two where roughness hardly differs
            picture = domes.image[dome] + which
            size, start = domes.picture_size[picture], 3 * domes.picture_start[picture]
            width, height = float(size[0]), float(size[1])
            for lane in range(LANES):
                u = wp.clamp(s[lane], 0.0, 1.0) * width + 0.5  # one more than where it is, so that cutting off is rounding down
                v = wp.clamp(t[lane], 0.0, 1.0) * height + 0.5
                i, j = int(u), int(v)
                fx, fy = u - float(i), v - float(j)
                left = 3 * wp.where(i == 0, size[0] - 1, wp.where(i > size[0], 0, i - 1))  # columns go round, rows end at the edges
                right = 3 * wp.where(i >= size[0], wp.min(i - size[0], size[0] - 1), i)
                above = start + 3 * size[0] * wp.max(j - 1, 0)
                below = start + 3 * size[0] * wp.min(j, size[1] - 1)
                here = wp.where(which == sharper[lane], 1.0 - part[lane], wp.where(which == sharper[lane] + 1, part[lane], 0.0))
                light[0, lane] += here * texel_mix(texels, above, below, left, right, fx, fy)
                light[1, lane] += here * texel_mix(texels, above + 1, below + 1, left, right, fx, fy)
                light[2, lane] += here * texel_mix(texels, above + 2, below + 2, left, right, fx, fy)
        return light

    return mirror


@functools.cache
def reflect_sky(lanes: int) -> wp.Function:
    """A function: radiance towards the viewer of a dome of radiance 1, of which ``linear`` is the turn, where nothing hides any of it but
    what the surface's own occlusion says. ``texels``: those of the domes as numbers, three a texel."""
    LANES, Surface, mirror = lanes, surface_type(lanes), _mirror_sky(lanes)
    triples, floats = wp.types.matrix(shape=(3, lanes), dtype=wp.float32), wp.types.vector(length=lanes, dtype=wp.float32)

    @wp.func
    def reflect(
        surface: Surface,
        coated: wp.int32,
        domes: DomeTables,
        texels: wp.array[wp.float32],
        dome: wp.int32,
        linear: wp.mat33f,
        of_diffuse: wp.float32,
        of_specular: wp.float32,
    ):
        light = triples()
        sky, ways, roughness = triples(), triples(), floats()
        for lane in range(LANES):
            nx, ny, nz = surface[NX, lane], surface[NY, lane], surface[NZ, lane]
            around = dome_irradiance(domes, dome, turned(linear, nx, ny, nz))
            sky[0, lane] = around[0]
            sky[1, lane] = around[1]
            sky[2, lane] = around[2]
            twice = 2.0 * (nx * surface[DX, lane] + ny * surface[DY, lane] + nz * surface[DZ, lane])
            way = turned(linear, nx * twice - surface[DX, lane], ny * twice - surface[DY, lane], nz * twice - surface[DZ, lane])
            ways[0, lane] = way[0]
            ways[1, lane] = way[1]
            ways[2, lane] = way[2]
            roughness[lane] = surface[ROUGH, lane]
        shown = mirror(domes, texels, dome, ways, roughness)
        for lane in range(LANES):
            n_v = surface[N_V, lane]
            s = schlick(n_v)
            under = coat_passes(surface[COAT, lane], 1.0, n_v)
            lit = under * of_diffuse / wp.PI
            share = mirrored(ggx_alpha(surface[ROUGH, lane]), n_v)
            a, b = share[0] * under * of_specular, share[1] * under * of_specular
            open = surface[OPEN, lane]
            light[0, lane] = open * (
                even(surface[KR, lane], surface[ZR, lane], surface[ER, lane], s) * sky[0, lane] * lit
                + (surface[ZR, lane] * a + surface[ER, lane] * b) * shown[0, lane]
            )
            light[1, lane] = open * (
                even(surface[KG, lane], surface[ZG, lane], surface[EG, lane], s) * sky[1, lane] * lit
                + (surface[ZG, lane] * a + surface[EG, lane] * b) * shown[1, lane]
            )
            light[2, lane] = open * (
                even(surface[KB, lane], surface[ZB, lane], surface[EB, lane], s) * sky[2, lane] * lit
                + (surface[ZB, lane] * a + surface[EB, lane] * b) * shown[2, lane]
            )
        if coated != 0:
            for lane in range(LANES):
                roughness[lane] = surface[COAT_ROUGH, lane]
            shown = mirror(domes, texels, dome, ways, roughness)
            for lane in range(LANES):
                coat = coat_around(surface[COAT, lane], surface[COAT_ROUGH, lane], surface[N_V, lane]) * of_specular * surface[OPEN, lane]
                light[0, lane] += shown[0, lane] * coat
                light[1, lane] += shown[1, lane] * coat
                light[2, lane] += shown[2, lane] * coat
        return light

    return reflect
