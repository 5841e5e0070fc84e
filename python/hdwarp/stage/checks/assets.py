"""stage.checks.assets: files that inputs and cards name and that are not there. Layers are composition's to tell."""

from __future__ import annotations

from collections.abc import Iterator

from pxr import Sdf, Usd, UsdShade

from hdwarp.stage.checks.findings import WARNING, Check, Finding, Rule
from hdwarp.stage.checks.subject import Subject

UNRESOLVED = Rule("asset-unresolved", WARNING, "a texture or other file that an input names is not found")

_TYPES = (Sdf.ValueTypeNames.Asset, Sdf.ValueTypeNames.AssetArray)


def unresolved(subject: Subject) -> Iterator[Finding]:
    """Without the pictures of cards and of materials that are drawn: those are told with what is drawn instead."""
    drawn = [item for item in subject.told if item.code == "texture"]
    told = {f"{item.path}.{item.message.partition(': ')[0]}" for item in drawn}
    for prim, names in subject.prims.assets:
        for name in names:
            attribute = prim.GetAttribute(name)
            if attribute and attribute.GetTypeName() in _TYPES and str(attribute.GetPath()) not in told:
                value = attribute.Get(subject.time)
                for asset in [value] if isinstance(value, Sdf.AssetPath) else value or ():
                    if asset.path and not asset.resolvedPath and not _tiles(attribute, asset.path):
                        if any(f"@{asset.path}@" in item.message and prim.GetPath().HasPrefix(item.path) for item in drawn):
                            continue
                        yield UNRESOLVED.broken(
                            attribute.GetPath(),
                            f"the file @{asset.path}@ is not found",
                            f"put it where {_layer(attribute)} looks for it, or mend the path",
                        )


def _tiles(attribute: Usd.Attribute, path: str) -> bool:
    """Whether a path with <UDIM> names tiles that are there."""
    if not UsdShade.UdimUtils.IsUdimIdentifier(path):
        return False
    return any(bool(UsdShade.UdimUtils.ResolveUdimPath(path, spec.layer)) for spec in attribute.GetPropertyStack())


def _layer(attribute: Usd.Attribute) -> str:
    stack = attribute.GetPropertyStack()
    return f"@{stack[0].layer.identifier}@" if stack else "its layer"


CHECKS = (Check(unresolved, (UNRESOLVED,)),)
