"""stage.checks.materials: do materials have a surface, and do bindings lead to materials?"""

from __future__ import annotations

from collections.abc import Iterator

from pxr import Tf, Usd, UsdShade

from hdwarp.stage.checks.findings import WARNING, Check, Finding, Rule
from hdwarp.stage.checks.subject import BINDING, Subject
from hdwarp.stage.materials import surface_shader

NO_SURFACE = Rule("material-without-surface", WARNING, "a Material whose surface output, of any render context, leads to no shader")
MISSING = Rule("material-missing", WARNING, "a binding names what is no Material, or is not there")
NO_API = Rule("material-binding-api", WARNING, "a material binding without MaterialBindingAPI")


def without_surface(subject: Subject) -> Iterator[Finding]:
    for prim in subject.prims.materials:
        material = UsdShade.Material(prim)
        if surface_shader(material) is not None:
            continue
        outputs = material.GetOutputs()
        if any(output.GetBaseName().endswith("volume") and output.HasConnectedSource() for output in outputs):
            continue
        if not outputs and any(name.endswith("MaterialAPI") for name in prim.GetAppliedSchemas()):
            continue  # of a physics engine: no look is meant
        shader = next((child for child in prim.GetAllChildren() if child.IsA(UsdShade.Shader)), None)
        target = f"{(shader or prim).GetPath()}{'' if shader else '/Surface'}.outputs:surface"
        said = "outputs:surface leads to no shader" if outputs else "it has no outputs"
        yield NO_SURFACE.broken(
            prim.GetPath(), f"{said}: what is bound to it is drawn in the default grey", f"author outputs:surface.connect = <{target}>"
        )


def missing(subject: Subject) -> Iterator[Finding]:
    known = {item.path for item in subject.told if item.code in ("material-missing", "material-binding")}  # told with what is drawn instead
    for prim, names in subject.prims.bound:
        path = str(prim.GetPath())
        for name in names if path not in known else ():
            if name.startswith(f"{BINDING}:collection") or prim.GetAttribute(name):
                continue  # usd-core's validators look at these
            for target in _forwarded(prim, name):
                there = subject.stage.GetPrimAtPath(target)
                if not UsdShade.Material(there):
                    what = f"is a {there.GetTypeName() or 'typeless prim'}, no Material" if there else "is not there"
                    yield MISSING.broken(path, f"{name} names <{target}>, which {what}", f"author rel {name} = <path of a Material>")


def _forwarded(prim: Usd.Prim, name: str) -> list:
    try:
        return list(prim.GetRelationship(name).GetForwardedTargets())
    except Tf.ErrorException:
        return []  # in a circle: told where bindings are computed


def without_api(subject: Subject) -> Iterator[Finding]:
    for prim, names in subject.prims.bound:
        if "MaterialBindingAPI" not in prim.GetAppliedSchemas() and any(subject.targets(prim, name) for name in names):
            yield NO_API.broken(
                prim.GetPath(),
                "it has a material binding and no MaterialBindingAPI: USD warns of it, and may ignore the binding in versions to come",
                'author prepend apiSchemas = ["MaterialBindingAPI"]',
            )


CHECKS = (Check(without_surface, (NO_SURFACE,)), Check(missing, (MISSING,)), Check(without_api, (NO_API,)))
