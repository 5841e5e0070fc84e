"""stage.links: what a light illuminates, or has shadows of, as rules about paths: how a collection answers, without its prims. NumPy only,
no pxr."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hdwarp.stage.columns import Gprim
from hdwarp.stage.looks import Light, LinkRules

MOST_SETS = 31  # of linked prims that a scene tells apart: bits of an int32


def is_linked(rules: Mapping[str, str], path: str) -> bool:
    """Whether the prim at ``path`` is in. ``rules``: path -> "expandPrims", "explicitOnly" or "exclude"; the nearest at or above counts."""
    at = path
    while at not in rules:
        if at in ("", "/"):
            return False
        at = at.rpartition("/")[0] or "/"
    return rules[at] not in ("exclude", "explicitOnly") or (rules[at] == "explicitOnly" and at == path)


def is_gprim_linked(rules: Mapping[str, str], gprim: Gprim) -> bool:
    """What a point instancer draws is where the instancer is, unless its prototype is below that: then it may be named itself."""
    path, instancer = gprim.path, gprim.instancer
    while instancer is not None:
        if not path.startswith(f"{instancer.path}/"):
            path = instancer.path
        instancer = instancer.outer
    return is_linked(rules, path)


def link_sets(lights: Iterable[Light]) -> dict[LinkRules, int]:
    """The sets that lights are linked to, numbered, in the order of the lights' paths: those beyond `MOST_SETS` are left out, and count as
    everything."""
    found: dict[LinkRules, int] = {}
    for light in sorted(lights, key=lambda light: light.path):
        for rules in (light.light_link, light.shadow_link):
            if rules is not None and rules not in found and len(found) < MOST_SETS:
                found[rules] = len(found)
    return found


def left_out(lights: Iterable[Light]) -> list[str]:
    """Paths of the lights with a set that `link_sets` has left out."""
    lights = list(lights)
    known = link_sets(lights)
    return sorted(
        light.path for light in lights if any(rules is not None and rules not in known for rules in (light.light_link, light.shadow_link))
    )
