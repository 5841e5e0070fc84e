"""stage.materials: which Material is bound where, and the constants and textures of its UsdPreviewSurface."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from pxr import Sdf, Tf, Usd, UsdShade

from hdwarp.errors import Diagnostics
from hdwarp.stage.columns import Material, Texture
from hdwarp.stage.images import Images
from hdwarp.stage.networks import CHANNELS, Network, fit, leads_nowhere, produced
from hdwarp.stage.open import UNREADABLE, plain_text

_PREVIEW = ("UsdPreviewSurface", "ND_UsdPreviewSurface_surfaceshader")
# USD input: column, components
_INPUTS = {
    "diffuseColor": ("diffuse_color", 3),
    "emissiveColor": ("emissive_color", 3),
    "specularColor": ("specular_color", 3),
    "opacity": ("opacity", 1),
    "opacityThreshold": ("opacity_threshold", 1),
    "metallic": ("metallic", 1),
    "roughness": ("roughness", 1),
    "ior": ("ior", 1),
    "useSpecularWorkflow": ("use_specular_workflow", 1),
}
_TEXTURES = {"diffuseColor": "diffuse_texture", "emissiveColor": "emissive_texture", "opacity": "opacity_texture"}
DISPLAY_COLOR = object()  # the displayColor primvar drives an input
TOLD = object()  # a texture does that cannot be shown, and what is wrong has been told


def bound_materials(stage: Usd.Stage, paths: Sequence[str], purposes: Sequence[str], diagnostics: Diagnostics) -> list[str]:
    """Path of the material of each prim path, "" for none. ``purposes`` in order of preference, "" = all-purpose."""
    prims = [stage.GetPrimAtPath(path) for path in paths]
    bound = [""] * len(paths)
    inherited: set[int] = set()  # bound by what is above, or by a collection there
    fallbacks: dict[int, str] | None = None  # what a purpose without binding fell back to: USD has asked for all-purpose by itself
    for purpose in purposes:
        todo = [k for k in range(len(paths)) if not bound[k]]
        if not todo:
            break
        if not purpose and fallbacks is not None:
            for k in todo:
                bound[k] = fallbacks.get(k, "")
            continue
        fallbacks = {}
        for k, material, relationship in _compute(prims, todo, paths, purpose, diagnostics):
            if not material:
                continue
            if relationship.GetPrim() != prims[k]:
                inherited.add(k)
            name = str(material.GetPath())
            if purpose and _purpose_of(relationship.GetName()) != purpose:
                fallbacks[k] = name
            else:
                bound[k] = name
    for k, path in enumerate(paths):
        if not bound[k] or k in inherited:
            _report_broken(prims[k], path, purposes, bound[k], diagnostics)
    return bound


def binding_targets(stage: Usd.Stage, askers: Iterable[str]) -> set[str] | None:
    """What the bindings of prims, and of what is above them, name: materials that are there or not; None: it cannot be told, for a
    binding is forwarded."""
    prims = {prefix for asker in askers for prefix in Sdf.Path(asker).GetPrefixes()}
    found: set[str] = set()
    for prim in map(stage.GetPrimAtPath, prims):
        for name in prim.GetAuthoredPropertyNames() if prim else ():
            if name.startswith("material:binding"):
                for target in prim.GetRelationship(name).GetTargets():
                    if target.IsPropertyPath() and not target.name.startswith("collection:"):
                        return None
                    found.add(str(target.GetPrimPath()))
    return found


def _compute(prims: list[Usd.Prim], todo: list[int], paths: Sequence[str], purpose: str, diagnostics: Diagnostics) -> list[tuple]:
    """(number, material, winning relationship) of the prims ``todo``: all at once, or one by one where one of them makes USD raise."""
    try:
        return list(zip(todo, *UsdShade.MaterialBindingAPI.ComputeBoundMaterials([prims[k] for k in todo], purpose), strict=True))
    except Tf.ErrorException as error:
        if len(todo) == 1:
            diagnostics.error(paths[todo[0]], "material-binding", f"{plain_text(error)}; its binding is ignored. Mend the relationship")
            return []
        return [row for k in todo for row in _compute(prims, [k], paths, purpose, diagnostics)]


def _purpose_of(binding: str) -> str:
    """Of "material:binding[:purpose]" or "material:binding:collection[:purpose]:name"; "" is all-purpose."""
    parts = binding.split(":")[2:]
    if parts[:1] == ["collection"]:
        return parts[1] if len(parts) > 2 else ""
    return parts[0] if parts else ""


def _report_broken(prim: Usd.Prim, path: str, purposes: Sequence[str], used: str, diagnostics: Diagnostics) -> None:
    """Direct bindings of this prim that lead to no material, or to several, of which USD takes none."""
    effect = f"drawn with <{used}>, bound above" if used else "drawn with the default grey"
    for purpose in purposes:
        name = f"material:binding:{purpose}" if purpose else "material:binding"
        relationship = prim.GetRelationship(name)
        try:
            authored = relationship.GetTargets() if relationship else []
            targets = relationship.GetForwardedTargets() if authored else []
        except Tf.ErrorException:
            continue  # told where bindings are computed
        missing = [target for target in targets if not UsdShade.Material(prim.GetStage().GetPrimAtPath(target))]
        if missing:
            diagnostics.warning(path, "material-missing", f"{name} names <{missing[0]}>, which is no Material; {effect}. Bind a Material")
        elif authored and len(targets) != 1:
            said = f"names {len(targets)} materials, of which USD takes none" if targets else f"leads from <{authored[0]}> to no prim"
            diagnostics.warning(path, "material-binding", f"{name} {said}; {effect}. Bind one Material")


def read_material(material: UsdShade.Material, path: str, time: Usd.TimeCode, images: Images, diagnostics: Diagnostics) -> Material:
    """The constants and textures of the material's surface; the default grey, with a note, where it is no UsdPreviewSurface."""
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
    identifier = shader.GetShaderId() or ""
    if identifier not in _PREVIEW:
        told = f"shader '{identifier}'" if identifier else "a shader without info:id"
        diagnostics.note(path, "material", f"{told} is not supported (UsdPreviewSurface is); drawn with the default grey")
        return result
    textured = []
    for shader_input in shader.GetInputs():
        name = shader_input.GetBaseName()
        if name not in _INPUTS:
            continue
        column, width = _INPUTS[name]
        value, texture = _input_value(shader_input, name, network)
        if isinstance(texture, Texture):
            if name == "opacity" and texture.channel < 0:
                texture = replace(texture, channel=0)
            setattr(result, _TEXTURES[name], texture)
            continue
        if not texture and leads_nowhere(shader_input):
            there = ", ".join(f"<{source}>" for source in shader_input.GetAttr().GetConnections())
            using = "its own value" if value is not None else "the fallback"
            message = f"inputs:{name} is connected to {there}, which gives no value; {using} is used. Mend the connection"
            diagnostics.warning(path, "material-connection", message)
        if texture:
            if texture is not TOLD:
                textured.append(name)
                if name == "opacity":
                    continue  # drawn opaque: one value of a node that is not read says nothing about where it cuts
        if value is DISPLAY_COLOR:
            result.diffuse_color = None
            continue
        fitted = fit(value, width)
        if fitted is not None:
            setattr(result, column, bool(fitted) if column == "use_specular_workflow" else fitted)
        elif value is not None:
            diagnostics.warning(path, "material-input", f"inputs:{name} holds {value!r}, not {width} finite numbers; its fallback is used")
    if textured:
        several = "come" if len(textured) > 1 else "comes"
        diagnostics.warning(
            path,
            "texture",
            f"{', '.join(sorted(textured))} {several} from textures or other nodes, which are not supported yet; fallback values are used",
        )
    if result.is_cut_away:
        less = f"opacity {result.opacity:g} is less than opacityThreshold {result.opacity_threshold:g}"
        diagnostics.note(path, "opacity", f"{less}: surfaces with this material are cut away")
    elif result.opacity_texture is not None and result.opacity_threshold <= 0.0:
        diagnostics.note(path, "opacity", "opacity comes from a texture, and opacityThreshold is 0; the material is drawn opaque")
    elif result.opacity_texture is None and result.opacity < 1.0 and result.opacity_threshold <= 0.0:
        diagnostics.note(path, "opacity", f"opacity is {result.opacity:g}; the material is drawn opaque")
    return result


def surface_shader(material: UsdShade.Material) -> UsdShade.Shader | None:
    """The universal surface if there is one, else the first render context's with a UsdPreviewSurface, else the first at all."""
    contexts = [""]
    for output in material.GetSurfaceOutputs():
        context = output.GetBaseName().rpartition(":")[0]  # "surface", "ri:surface"
        if context and context not in contexts:
            contexts.append(context)
    first = None
    for context in contexts:
        shader = material.ComputeSurfaceSource(context)[0]
        if not shader:
            continue
        if shader.GetShaderId() in _PREVIEW:
            return shader
        first = first or shader
    return first


def _input_value(shader_input: UsdShade.Input, name: str, network: Network) -> tuple[object, object]:
    """(value, what else drives it: a Texture; a node that is not read: True or TOLD; nothing: False). The value is DISPLAY_COLOR where that
    primvar does."""
    time, unread = network.time, True
    own = shader_input.GetAttr().Get(time)
    for attribute in shader_input.GetValueProducingAttributes():
        if UsdShade.Input.IsInput(attribute):
            return attribute.Get(time), False
        node = UsdShade.Shader(attribute.GetPrim())
        identifier = (node.GetShaderId() if node else None) or ""
        if name == "diffuseColor" and identifier.startswith("UsdPrimvarReader") and produced(node, "varname", time) == "displayColor":
            return DISPLAY_COLOR, False
        if identifier == "UsdUVTexture" and name in _TEXTURES:
            texture = network.texture(attribute, name)
            if texture is not None:
                return None, texture
            unread = TOLD
        fallback = produced(node, "fallback", time) if node else None
        if fallback is not None:
            channel = CHANNELS.get(attribute.GetName().rpartition(":")[2])
            array = np.atleast_1d(np.asarray(fallback))
            if channel is not None and array.ndim == 1 and channel < len(array):
                return [float(array[channel])] * _INPUTS[name][1], unread
            return fallback, unread
        return own, unread
    return own, False
