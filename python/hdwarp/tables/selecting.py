"""tables.selecting: rows by what they are called, and the views that they give."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Sequence

import numpy as np

from hdwarp.errors import ArgumentError


def select_labels(labels: Sequence[str], selection: str | re.Pattern | int | Sequence | None, kind: str, option: str) -> list[int]:
    """Numbers of the labels that match: an fnmatch pattern over the whole label ('*' crosses '/'), a compiled expression, a number, or a
    list of these; None: all. What is made up ("<default camera>") goes by its own name alone. Raises ArgumentError naming what was given
    and what exists when a pattern matches nothing."""
    known = ", ".join(labels[:20]) or "none"
    if selection is None:
        return list(range(len(labels)))
    if isinstance(selection, (str, re.Pattern, int, np.integer)):
        selection = [selection]
    if isinstance(selection, np.ndarray) and selection.ndim == 1 and selection.dtype.kind in "iu":
        selection = selection.tolist()
    if not isinstance(selection, Sequence) or not all(
        isinstance(item, (str, re.Pattern, int, np.integer)) and not isinstance(item, bool) for item in selection
    ):
        raise ArgumentError(f"{option}={selection!r}: expected a pattern, a compiled expression, a row number or a list of these")
    if len(selection) == 0:
        raise ArgumentError(f"{option} is empty; there are: {known}")
    rows: set[int] = set()
    for item in selection:
        if isinstance(item, str):
            matches = re.compile(fnmatch.translate(item)).match
            found = [row for row, label in enumerate(labels) if matches(label) and (label[:1] != "<" or label == item)]
        elif isinstance(item, re.Pattern):
            found = [row for row, label in enumerate(labels) if item.fullmatch(label)]
        else:
            found = [int(item)] if 0 <= item < len(labels) else []
        if not found:
            raise ArgumentError(f"no {kind} matches {item!r}{_hint(labels, item)}; there are: {known}")
        rows.update(found)
    return sorted(rows)


def _hint(labels: Sequence[str], item: str | re.Pattern | int) -> str:
    """What somebody may have meant whose ``item`` matches nothing, "" where that is anybody's guess."""
    if isinstance(item, re.Pattern):
        if isinstance(item.pattern, str) and any(item.search(label) for label in labels):
            return ", which has to match whole paths: begin it with '.*'"
        if isinstance(item.pattern, str) and fnmatch.filter(labels, item.pattern.replace("\\", "")):
            return f": give the pattern {item.pattern!r} as it is, not compiled"
        return ""
    if not isinstance(item, str):
        return ""
    if "{}" in item:
        return ": '{}' is no wildcard, '*' is"
    if fnmatch.filter(labels, f"*/{item}"):
        return f", which has to match whole paths: '*/{item}' does"
    try:
        if any(re.search(item, label) for label in labels):
            return f": it reads like a regular expression, which is given as re.compile({item!r})"
    except re.error:
        pass
    return ""


def views_of(rows: Sequence[int], world: np.ndarray, worlds: Iterable[int] | None, count: int) -> list[tuple[int, int]]:
    """(row, world) of the views of ``rows``: one of what is in a world, one a world of what is global. ``world``: of each row, -1 global;
    ``worlds``: those to see, None: all ``count`` of them."""
    seen = range(count) if worlds is None else sorted(set(worlds))
    there = seen if worlds is None else set(seen)
    views: list[tuple[int, int]] = []
    for row, own in zip(rows, world[list(rows)].tolist(), strict=True):
        if own < 0:
            views += [(row, number) for number in seen]
        elif own in there:
            views.append((row, own))
    return views
