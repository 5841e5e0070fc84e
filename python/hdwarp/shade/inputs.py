"""shade.inputs: the inputs of the surfaces that pixels see, as kernels take them: a number a material, or a plane where textures say it."""

from __future__ import annotations

import warp as wp

from hdwarp.stage.looks import MATERIAL_INPUTS
from hdwarp.tables.structs import MaterialColumns

GREY = 0.5  # base colour of surfaces with neither material nor displayColor, as in hdEmbree


def _bit(name: str) -> int:
    """Bit of `MaterialColumns.textured` that says an input comes from a texture."""
    return 1 << MATERIAL_INPUTS.index(name)


DIFFUSE = wp.constant(_bit("diffuseColor"))
EMISSIVE = wp.constant(_bit("emissiveColor"))
SPECULAR = wp.constant(_bit("specularColor"))
METALLIC = wp.constant(_bit("metallic"))
ROUGHNESS = wp.constant(_bit("roughness"))
CLEARCOAT = wp.constant(_bit("clearcoat"))
CLEARCOAT_ROUGHNESS = wp.constant(_bit("clearcoatRoughness"))
OPACITY = wp.constant(_bit("opacity"))
IOR = wp.constant(_bit("ior"))
OCCLUSION = wp.constant(_bit("occlusion"))


@wp.struct
class SurfaceConstants:
    """Columns of MaterialColumns, flat: loads of single numbers are what becomes SIMD gathers."""

    uses_display_color: wp.array[wp.int32]
    textured: wp.array[wp.int32]
    diffuse_color: wp.array[wp.float32]  # three a material
    emissive_color: wp.array[wp.float32]
    specular_color: wp.array[wp.float32]
    use_specular_workflow: wp.array[wp.int32]
    metallic: wp.array[wp.float32]
    roughness: wp.array[wp.float32]
    clearcoat: wp.array[wp.float32]
    clearcoat_roughness: wp.array[wp.float32]
    ior: wp.array[wp.float32]
    occlusion: wp.array[wp.float32]
    opacity: wp.array[wp.float32]
    opacity_mode: wp.array[wp.int32]
    opacity_threshold: wp.array[wp.float32]


@wp.struct
class SurfacePlanes:
    """What textures show of what each pixel sees, flat; of use where the pixel's material has a texture there. Null: no material has."""

    base: wp.array[wp.float32]  # three a pixel; where `uses_display_color`, also the displayColor primvar
    emissive: wp.array[wp.float32]
    specular: wp.array[wp.float32]
    metallic: wp.array[wp.float32]
    roughness: wp.array[wp.float32]
    clearcoat: wp.array[wp.float32]
    clearcoat_roughness: wp.array[wp.float32]
    ior: wp.array[wp.float32]
    occlusion: wp.array[wp.float32]
    opacity: wp.array[wp.float32]
    display_opacity: wp.array[wp.float32]  # the displayOpacity primvar, where there is no material


PLANE_OF = {
    "diffuseColor": ("base", 3),
    "emissiveColor": ("emissive", 3),
    "specularColor": ("specular", 3),
    "metallic": ("metallic", 1),
    "roughness": ("roughness", 1),
    "clearcoat": ("clearcoat", 1),
    "clearcoatRoughness": ("clearcoat_roughness", 1),
    "ior": ("ior", 1),
    "occlusion": ("occlusion", 1),
    "opacity": ("opacity", 1),
}
"""Input -> (field of `SurfacePlanes`, numbers a pixel)."""


def surface_constants(materials: MaterialColumns, flat) -> SurfaceConstants:
    """``flat``: gives an array of vectors as its numbers, the memory shared."""
    constants = SurfaceConstants()
    for name in SurfaceConstants.vars:
        array = getattr(materials, name)
        setattr(constants, name, flat(array) if array.dtype is wp.vec3f else array)
    return constants
