"""stage.bindings: which Material is bound to which prim, and what is wrong with bindings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pxr import Sdf, Tf, Usd, UsdShade

from hdwarp.errors import Diagnostics
from hdwarp.stage.open import plain_text


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
