"""shade.surface_lanes: the surfaces that a block of pixels sees, a row of lanes a quantity: planes and constants -> a matrix."""

import functools

import warp as wp

from hdwarp.aovs.pixel_runs import Ray, load_columns
from hdwarp.shade.inputs import (
    CLEARCOAT,
    CLEARCOAT_ROUGHNESS,
    GREY,
    IOR,
    METALLIC,
    OCCLUSION,
    OPACITY,
    ROUGHNESS,
    SPECULAR,
    SurfaceConstants,
    SurfacePlanes,
)
from hdwarp.shade.surface import diffuse_part, specular_at_edge, specular_at_zero
from hdwarp.tables.structs import TRANSPARENT, ViewRow

_LEAST = 1.0e-4  # cosine towards the viewer: what is seen faces him ...
_FACING = wp.constant(0.5)  # ... by this part of what its facet does, however smooth normals turn away: no rims of Fresnel on flat faces
# Rows of the matrix that says what a block of pixels sees, a column a lane.
KR, KG, KB = wp.constant(0), wp.constant(1), wp.constant(2)  # reflected diffusely
ZR, ZG, ZB = wp.constant(3), wp.constant(4), wp.constant(5)  # and like a mirror, looked at squarely
ER, EG, EB = wp.constant(6), wp.constant(7), wp.constant(8)  # ... and from the side
ROUGH, COAT, COAT_ROUGH, OPEN = wp.constant(9), wp.constant(10), wp.constant(11), wp.constant(12)
DX, DY, DZ = wp.constant(13), wp.constant(14), wp.constant(15)  # towards the viewer
NX, NY, NZ = wp.constant(16), wp.constant(17), wp.constant(18)  # the normal on his side
N_V = wp.constant(19)  # the cosine between them
_ROWS = 20

# A column of constants by lanes: of one material where all lanes have the ``same``, as most blocks do, else a SIMD gather. Native: Warp
# indexes with 64 bits, which gathers half as much at once.
_CONSTANT = """
    wp::vec_t<LANES, SCALAR> found;
    if (same >= 0) {
        const SCALAR value = column.data[STRIDE * same + OFFSET];
        for (int i = 0; i < LANES; ++i)
            found.c[i] = value;
    } else
        for (int i = 0; i < LANES; ++i) {
            const int m = material.c[i];
            const SCALAR value = column.data[STRIDE * (m < 0 ? 0 : m) + OFFSET];
            found.c[i] = m < 0 ? otherwise : value;
        }
    return found;
"""


@functools.cache
def load_constant(lanes: int, stride: int = 1, offset: int = 0, scalar: type = wp.float32) -> wp.Function:
    """A function that reads number ``offset`` of ``stride`` a material: ``otherwise`` where there is none. ``same``: that of all lanes, or
    -1."""
    values, ints = wp.types.vector(length=lanes, dtype=scalar), wp.types.vector(length=lanes, dtype=wp.int32)
    code = _CONSTANT.replace("LANES", str(lanes)).replace("STRIDE", str(stride)).replace("OFFSET", str(offset))

    @wp.func_native(code.replace("SCALAR", "float" if scalar is wp.float32 else "int"))
    def load(column: wp.array[scalar], material: ints, same: wp.int32, otherwise: scalar) -> values: ...

    return load


def surface_type(lanes: int) -> type:
    """The matrix of blocks of so many lanes: columns that a loop over lanes can index, unlike those of a struct, which it would copy."""
    return wp.types.matrix(shape=(_ROWS, lanes), dtype=wp.float32)


@functools.cache
def load_surface(lanes: int) -> wp.Function:
    """A function that says what surfaces reflect: its rows that do not depend on places."""
    LANES, Surface = lanes, surface_type(lanes)
    floats, ints = wp.types.vector(length=lanes, dtype=wp.float32), wp.types.vector(length=lanes, dtype=wp.int32)
    load_triples, load_scalars = load_columns(lanes, 3), load_columns(lanes, 1)
    number, flag = load_constant(lanes), load_constant(lanes, 1, 0, wp.int32)
    first, second, third = (load_constant(lanes, 3, k) for k in range(3))

    @wp.func
    def shown(values: floats, textured: ints, bit: wp.int32, plane: wp.array[wp.float32], low: wp.int32, high: wp.int32, pixel: wp.int32):
        """``values``, and what textures show where there are any."""
        result = values
        if plane:
            texels = load_scalars(plane, low, high, pixel)
            for lane in range(LANES):
                result[lane] = wp.where((textured[lane] & bit) != 0, texels[0, lane], values[lane])
        return result

    @wp.func
    def load(
        material: ints,
        same: wp.int32,
        constants: SurfaceConstants,
        planes: SurfacePlanes,
        fades: wp.int32,
        low: wp.int32,
        high: wp.int32,
        pixel: wp.int32,
    ):
        """``fades``: 0: no surface is blended."""
        surface = Surface()
        red, green, blue = floats(GREY), floats(GREY), floats(GREY)
        if planes.base:
            base = load_triples(planes.base, low, high, pixel)
            for lane in range(LANES):
                red[lane] = base[0, lane]
                green[lane] = base[1, lane]
                blue[lane] = base[2, lane]
        shows = flag(constants.uses_display_color, material, same, 1)
        own_r = first(constants.diffuse_color, material, same, 0.0)
        own_g = second(constants.diffuse_color, material, same, 0.0)
        own_b = third(constants.diffuse_color, material, same, 0.0)
        textured = flag(constants.textured, material, same, 0)
        workflow = flag(constants.use_specular_workflow, material, same, 0)
        mirror_r = first(constants.specular_color, material, same, 0.0)
        mirror_g = second(constants.specular_color, material, same, 0.0)
        mirror_b = third(constants.specular_color, material, same, 0.0)
        metal = number(constants.metallic, material, same, 0.0)
        ior = number(constants.ior, material, same, 1.5)
        rough = number(constants.roughness, material, same, 0.5)
        coat = number(constants.clearcoat, material, same, 0.0)
        coat_rough = number(constants.clearcoat_roughness, material, same, 0.01)
        open_ = number(constants.occlusion, material, same, 1.0)
        if planes.specular:
            texels = load_triples(planes.specular, low, high, pixel)
            for lane in range(LANES):
                own = (textured[lane] & SPECULAR) != 0
                mirror_r[lane] = wp.where(own, texels[0, lane], mirror_r[lane])
                mirror_g[lane] = wp.where(own, texels[1, lane], mirror_g[lane])
                mirror_b[lane] = wp.where(own, texels[2, lane], mirror_b[lane])
        metal = shown(metal, textured, METALLIC, planes.metallic, low, high, pixel)
        ior = shown(ior, textured, IOR, planes.ior, low, high, pixel)
        rough = shown(rough, textured, ROUGHNESS, planes.roughness, low, high, pixel)
        coat = shown(coat, textured, CLEARCOAT, planes.clearcoat, low, high, pixel)
        coat_rough = shown(coat_rough, textured, CLEARCOAT_ROUGHNESS, planes.clearcoat_roughness, low, high, pixel)
        open_ = shown(open_, textured, OCCLUSION, planes.occlusion, low, high, pixel)
        for lane in range(LANES):
            shows_own = shows[lane] == 0
            r = wp.where(shows_own, own_r[lane], red[lane])
            g = wp.where(shows_own, own_g[lane], green[lane])
            b = wp.where(shows_own, own_b[lane], blue[lane])
            base_color, mirror = wp.vec3f(r, g, b), wp.vec3f(mirror_r[lane], mirror_g[lane], mirror_b[lane])
            diffuse = diffuse_part(base_color, metal[lane], workflow[lane])
            zero = specular_at_zero(base_color, metal[lane], mirror, workflow[lane], ior[lane])
            edge = specular_at_edge(base_color, metal[lane], mirror, workflow[lane], ior[lane])
            surface[KR, lane] = diffuse[0]
            surface[KG, lane] = diffuse[1]
            surface[KB, lane] = diffuse[2]
            surface[ZR, lane] = zero[0]
            surface[ZG, lane] = zero[1]
            surface[ZB, lane] = zero[2]
            surface[ER, lane] = edge[0]
            surface[EG, lane] = edge[1]
            surface[EB, lane] = edge[2]
            surface[ROUGH, lane] = rough[lane]
            surface[COAT, lane] = coat[lane]
            surface[COAT_ROUGH, lane] = coat_rough[lane]
            surface[OPEN, lane] = open_[lane]
        if fades != 0:  # opacity takes from what is scattered below the surface; of all else `shade.colour` takes
            opaque = number(constants.opacity, material, same, 1.0)
            opaque = shown(opaque, textured, OPACITY, planes.opacity, low, high, pixel)
            threshold = number(constants.opacity_threshold, material, same, 1.0)
            mode = flag(constants.opacity_mode, material, same, 0)
            for lane in range(LANES):
                blended = threshold[lane] <= 0.0 and mode[lane] == TRANSPARENT
                part = wp.where(blended, wp.clamp(opaque[lane], 0.0, 1.0), 1.0)
                surface[KR, lane] = surface[KR, lane] * part
                surface[KG, lane] = surface[KG, lane] * part
                surface[KB, lane] = surface[KB, lane] * part
        return surface

    return load


@functools.cache
def place_surface(lanes: int, given: bool) -> wp.Function:
    """A function that turns surfaces to the viewer: the other rows. ``given``: to where given rays come from."""
    LANES, GIVEN, Surface = lanes, given, surface_type(lanes)
    load_triples = load_columns(lanes, 3)

    @wp.func
    def place(
        known: Surface,
        view: ViewRow,
        ray: Ray,
        x0: wp.int32,
        way: wp.int32,
        normals: wp.array[wp.float32],
        geometric: wp.array[wp.float32],
        directions: wp.array[wp.float32],
        low: wp.int32,
        high: wp.int32,
        pixel: wp.int32,
    ):
        """``x0``: pixel of lane 0 in its image row, of which ``ray`` is; ``way``: its given ray."""
        surface = known
        towards = load_triples(normals, low, high, pixel)
        side = load_triples(geometric, low, high, pixel)
        if GIVEN:
            ways = load_triples(directions, low, high, way)
            right, up, back = view.direction_dx, view.direction_dy, view.direction
        for lane in range(LANES):
            if GIVEN:
                wx, wy, wz = wp.float64(ways[0, lane]), wp.float64(ways[1, lane]), wp.float64(ways[2, lane])
                x = wp.float32(right[0] * wx + up[0] * wy + back[0] * wz)
                y = wp.float32(right[1] * wx + up[1] * wy + back[1] * wz)
                z = wp.float32(right[2] * wx + up[2] * wy + back[2] * wz)
            else:
                s = wp.float64(x0 + lane)
                x = wp.float32(ray.direction[0] + ray.direction_dx[0] * s)
                y = wp.float32(ray.direction[1] + ray.direction_dx[1] * s)
                z = wp.float32(ray.direction[2] + ray.direction_dx[2] * s)
            unit = -1.0 / wp.sqrt(x * x + y * y + z * z)
            dx, dy, dz = x * unit, y * unit, z * unit
            # Both sides are lit: normals are turned with the side that is seen.
            faces = side[0, lane] * dx + side[1, lane] * dy + side[2, lane] * dz
            sign = wp.where(faces < 0.0, -1.0, 1.0)
            nx, ny, nz = sign * towards[0, lane], sign * towards[1, lane], sign * towards[2, lane]
            surface[DX, lane] = dx
            surface[DY, lane] = dy
            surface[DZ, lane] = dz
            surface[NX, lane] = nx
            surface[NY, lane] = ny
            surface[NZ, lane] = nz
            surface[N_V, lane] = wp.max(nx * dx + ny * dy + nz * dz, wp.max(_FACING * wp.abs(faces), _LEAST))
        return surface

    return place
