"""stage.checks.labels: semantic labels (UsdSemantics) as a dataset would use them: there, spelled alike, on geometry, on all of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from pxr import Usd

from hdwarp.stage.checks.findings import NOTE, WARNING, Check, Finding, Rule
from hdwarp.stage.checks.subject import LABELS, Subject

EMPTY = Rule("label-empty", WARNING, "a SemanticsLabelsAPI without labels, or with an empty label")
NOT_APPLIED = Rule("label-not-applied", WARNING, "labels without SemanticsLabelsAPI, which no one reads")
NO_GEOMETRY = Rule("label-without-geometry", WARNING, "a label on a prim that is no geometry and has none below")
SPELLING = Rule("label-spelling", WARNING, "labels of one taxonomy that differ in case, spaces, hyphens or underscores alone")
UNLABELLED = Rule("label-missing", NOTE, "geometry without label where other geometry has one")


def values_of(prim: Usd.Prim, taxonomy: str) -> list[str] | None:
    """All labels that a taxonomy has on a prim at its samples or by default; None: no array of tokens is there."""
    attribute = prim.GetAttribute(LABELS + taxonomy)
    if not attribute or not attribute.HasAuthoredValue():
        return None
    arrays = [attribute.Get(time) for time in attribute.GetTimeSamples()] or [attribute.Get()]
    if not all(type(array).__name__ in ("TokenArray", "StringArray") for array in arrays):
        return None
    return [str(label) for array in arrays for label in array]


def empty(subject: Subject) -> Iterator[Finding]:
    for prim, applied, _ in subject.prims.labelled:
        for taxonomy in applied:
            labels = values_of(prim, taxonomy)
            if not labels:
                yield EMPTY.broken(
                    prim.GetPath(),
                    f"SemanticsLabelsAPI:{taxonomy} is applied and holds no labels",
                    f'author token[] {LABELS}{taxonomy} = ["{prim.GetName()}"], or remove the schema',
                )
            elif any(not label.strip() for label in labels):
                yield EMPTY.broken(
                    prim.GetPath(), f"{LABELS}{taxonomy} holds an empty label", f'author a word in its place, such as "{prim.GetName()}"'
                )


def not_applied(subject: Subject) -> Iterator[Finding]:
    for prim, applied, authored in subject.prims.labelled:
        for taxonomy in authored:
            if taxonomy not in applied:
                yield NOT_APPLIED.broken(
                    prim.GetPath(),
                    f"{LABELS}{taxonomy} is authored without its schema, and is read by no one",
                    f'author prepend apiSchemas = ["SemanticsLabelsAPI:{taxonomy}"]',
                )


def without_geometry(subject: Subject) -> Iterator[Finding]:
    if subject.prims.has_unknown_types:
        return  # which may be geometry to others
    holders = set(subject.prims.geometry)
    for path in subject.prims.geometry:
        holders.update(_above(path))
    for prim, applied, _ in subject.prims.labelled:
        path = str(prim.GetPath())
        if applied and path not in holders and not prim.IsInstance():
            yield NO_GEOMETRY.broken(
                path,
                f"it is labelled ({', '.join(applied)}), and neither it nor anything below it is geometry",
                "label the prim that holds the geometry",
            )


def spelling(subject: Subject) -> Iterator[Finding]:
    used: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    paths: dict[tuple[str, str], list[str]] = defaultdict(list)
    for prim, applied, _ in subject.prims.labelled:
        for taxonomy in applied:
            for label in set(values_of(prim, taxonomy) or ()):
                used[taxonomy]["".join(c for c in label.casefold() if c not in " _-")][label] += 1
                paths[taxonomy, label].append(str(prim.GetPath()))
    for taxonomy, words in sorted(used.items()):
        for variants in words.values():
            usual = min(variants, key=lambda label: (-variants[label], label))
            for label in sorted(set(variants) - {usual}):
                yield SPELLING.broken(
                    paths[taxonomy, label],
                    f"the {taxonomy} label '{label}' is spelled '{usual}' elsewhere (prims: {variants[usual]})",
                    f"author '{usual}'",
                )


def unlabelled(subject: Subject) -> Iterator[Finding]:
    labelled = {str(prim.GetPath()) for prim, applied, _ in subject.prims.labelled if any(values_of(prim, name) for name in applied)}
    bare = [path for path in subject.prims.geometry if path not in labelled and labelled.isdisjoint(_above(path))] if labelled else []
    if bare and len(bare) < len(subject.prims.geometry):
        said = f"{len(bare)} of {len(subject.prims.geometry)} geometry prims {'has' if len(bare) == 1 else 'have'} no label"
        yield UNLABELLED.broken(bare, said, "apply SemanticsLabelsAPI to them or to what is above them, if that is not meant")


def _above(path: str) -> Iterable[str]:
    while path := path.rpartition("/")[0]:
        yield path


CHECKS = (
    Check(empty, (EMPTY,)),
    Check(not_applied, (NOT_APPLIED,)),
    Check(without_geometry, (NO_GEOMETRY,)),
    Check(spelling, (SPELLING,)),
    Check(unlabelled, (UNLABELLED,)),
)
