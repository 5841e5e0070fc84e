"""stage.materials: a Material prim -> its record: which of its surfaces counts, and what cannot be drawn of it."""

from __future__ import annotations

from collections.abc import Callable

from pxr import Usd, UsdShade

from hdwarp.errors import Diagnostics
from hdwarp.stage.images import Images
from hdwarp.stage.looks import Material
from hdwarp.stage.networks import Network
from hdwarp.stage.omnipbr import is_omnipbr, read_omnipbr
from hdwarp.stage.open import UNREADABLE, plain_text
from hdwarp.stage.surfaces import MODELS, read_model, read_preview

_Reader = Callable[[Network, Usd.Prim, Material], None]
_READERS: dict[str, _Reader] = dict.fromkeys(MODELS, read_model) | dict.fromkeys(
    ("UsdPreviewSurface", "ND_UsdPreviewSurface_surfaceshader"), read_preview
)
_CONTEXTS = ("", "mtlx", "mdl")  # in this order; then others


def read_material(material: UsdShade.Material, path: str, time: Usd.TimeCode, images: Images, diagnostics: Diagnostics) -> Material:
    """The constants and textures of the material's surface; the default grey, with a note, where no surface is one that is known."""
    try:
        return _read(material, path, Network(path, time, images, diagnostics))
    except UNREADABLE as error:
        diagnostics.error(path, "unreadable", f"{plain_text(error)}; drawn with the default grey")
        return Material(path)


def _read(material: UsdShade.Material, path: str, network: Network) -> Material:
    result, diagnostics = Material(path), network.diagnostics
    shader = surface_shader(material)
    if shader is None:
        outputs = [output.GetFullName() for output in material.GetSurfaceOutputs() if output.HasConnectedSource()]
        said = f"its surface ({', '.join(outputs)}) leads to no shader" if outputs else "it has no connected surface output"
        diagnostics.note(path, "material", f"{said}; drawn with the default grey")
        return result
    reader = _reader_of(shader)
    if reader is None:
        identifier, asset = shader.GetShaderId() or "", shader.GetSourceAsset("mdl")
        told = f"shader '{identifier}'" if identifier else f"mdl module @{asset.path}@" if asset else "a shader without info:id"
        known = "UsdPreviewSurface, standard_surface, open_pbr_surface, gltf_pbr and OmniPBR are"
        diagnostics.note(path, "material", f"{told} is not supported ({known}); drawn with the default grey")
        return result
    reader(network, shader.GetPrim(), result)
    _note_displacement(material, network)
    if result.is_cut_away:
        less = f"opacity {result.opacity:g} is less than opacityThreshold {result.opacity_threshold:g}"
        diagnostics.note(path, "opacity", f"{less}: surfaces with this material are cut away")
    return result


def _note_displacement(material: UsdShade.Material, network: Network) -> None:
    for name in material.GetPrim().GetAuthoredPropertyNames():
        if name.endswith("displacement") and name.startswith("outputs:"):
            shader = material.ComputeDisplacementSource(name[8:].rpartition(":")[0])[0]
            if shader and shader.GetShaderId() not in _READERS:
                message = f"{name} leads to <{shader.GetPath()}>: displacement is not supported; surfaces are drawn where they are"
                network.diagnostics.note(network.path, "displacement", message)


def surface_shader(material: UsdShade.Material) -> UsdShade.Shader | None:
    """The universal surface, or MaterialX's, or mdl's, or another render context's: the first that can be read, else the first at all."""
    contexts = list(_CONTEXTS)
    for name in material.GetPrim().GetAuthoredPropertyNames():
        if name.startswith("outputs:") and name.endswith(":surface"):
            context = name[8:-8]
            if context not in contexts:
                contexts.append(context)
    first = None
    for context in contexts:
        shader = material.ComputeSurfaceSource(context)[0]
        if not shader:
            continue
        if _reader_of(shader) is not None:
            return shader
        first = first or shader
    return first


def _reader_of(shader: UsdShade.Shader) -> _Reader | None:
    """How a surface is read; None: it cannot be."""
    identifier = shader.GetShaderId()
    if identifier:
        return _READERS.get(identifier)
    return read_omnipbr if is_omnipbr(shader) else None
