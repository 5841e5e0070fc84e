"""stage.nurbs_curve_attributes: order, knots, ranges and weights of NurbsCurves -> segments; curves with bad ones are named and skipped."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from pxr import Usd

from hdwarp.errors import Diagnostics
from hdwarp.stage.curve_bases import kept_counts
from hdwarp.stage.nurbs_curves import NurbsSegments, nurbs_segments

_SKIPPED = "the curves are skipped"
_HIGHEST = 64  # order; what is higher is a mistake, and no curve


def read_nurbs_segments(
    prim: Usd.Prim, names: Collection[str], counts: np.ndarray, vertex_count: int, time: Usd.TimeCode, path: str, diagnostics: Diagnostics
) -> NurbsSegments | None:
    """``counts`` (C,): curveVertexCounts. None where a diagnostic says why there are no curves at all; those that are skipped for their
    counts alone are the caller's to tell."""
    found = {}
    for name, width in (("order", 0), ("knots", 0), ("ranges", 2), ("pointWeights", 0)):
        value = _numbers(prim, name, names, time, width)
        if isinstance(value, str):
            diagnostics.error(path, "wrong-type", f"{value}; {_SKIPPED}. Author the types of the schema")
            return None
        found[name] = value
    order, knots = found["order"], found["knots"]
    if order is None or len(order) != len(counts):
        number = 0 if order is None else len(order)
        diagnostics.error(path, "nurbs-order", f"order has {number} values for {len(counts)} curves; {_SKIPPED}. Author one a curve")
        return None
    order = order.astype(np.int64)
    _, kept, beyond = kept_counts(counts, vertex_count)
    good = ~beyond

    def skip(bad: np.ndarray, code: str, said, cure: str) -> None:
        """Leave out the curves ``bad``; ``said``: gives words about one of them."""
        nonlocal good
        bad = bad & good
        if bad.any():
            first = int(np.flatnonzero(bad)[0])
            message = f"{int(bad.sum())} of {len(counts)} curves are skipped: {said(first)}. {cure}"
            diagnostics.error(path, code, message)
            good = good & ~bad

    skip((order < 2) | (order > _HIGHEST), "nurbs-order", lambda c: f"curve {c} has order {order[c]}", f"Author 2 to {_HIGHEST}")
    skip(kept < order, "curve-counts", lambda c: f"curve {c} has {kept[c]} vertices and order {order[c]}", "Author order or more of them")
    lengths = np.maximum(counts, 0) + np.clip(order, 0, _HIGHEST)
    start = np.cumsum(lengths) - lengths
    known = 0 if knots is None else len(knots)
    if known != int(lengths.sum()):
        message = f"knots has {known} values where {int(lengths.sum())} are expected, vertices + order of each curve"
        diagnostics.error(path, "nurbs-knots", f"{message}; what they do not reach is skipped. USD wants the outermost knots too")
    knots = np.zeros(0) if knots is None else knots
    good &= start + lengths <= known
    curve = np.repeat(np.arange(len(counts)), np.where(good, lengths, 0))
    number = start[curve] + np.arange(len(curve)) - np.searchsorted(curve, curve)
    own = knots[number]
    falls = ~np.isfinite(own) | (np.diff(own, prepend=0.0) < 0.0) & (np.diff(curve, prepend=-1) == 0)
    wrong = np.bincount(curve[falls], minlength=len(counts)) > 0
    skip(wrong, "nurbs-knots", lambda c: f"the knots of curve {c} fall, or are not finite", "Author values that rise")
    low, high = (np.where(good, knots[np.where(good, start + at, 0)] if known else 0.0, 0.0) for at in (order - 1, kept))
    skip(~(low < high), "nurbs-knots", lambda c: f"the knots of curve {c} leave no range", "Author values that rise")
    ranges = _ranges(found["ranges"], low, high, good, path, diagnostics)
    weights = found["pointWeights"]
    if weights is not None and len(weights):
        if len(weights) != vertex_count:
            message = f"pointWeights has {len(weights)} values for {vertex_count} points; {_SKIPPED}. Author one a point, or none"
            diagnostics.error(path, "nurbs-weights", message)
            return None
        bad = ~(np.isfinite(weights) & (weights > 0.0))
        first = np.cumsum(kept) - kept
        running = np.concatenate(([0], np.cumsum(bad)))
        hurt = running[first + kept] > running[first]
        skip(hurt, "nurbs-weights", lambda c: f"curve {c} has pointWeights that are not above 0 and finite", "Author such ones")
        weights = np.where(bad, 1.0, weights)
    else:
        weights = None
    return nurbs_segments(counts, order, knots, start, ranges, good, weights, vertex_count)


def _ranges(
    authored: np.ndarray | None, low: np.ndarray, high: np.ndarray, good: np.ndarray, path: str, diagnostics: Diagnostics
) -> np.ndarray:
    """(C, 2): where each curve is drawn: its range as far as the knots reach."""
    found = np.stack((low, high), axis=1)
    if authored is None or not len(authored):
        return found
    if len(authored) != len(low):
        message = f"ranges has {len(authored)} values for {len(low)} curves; drawn as far as the knots reach. Author one a curve"
        diagnostics.warning(path, "nurbs-range", message)
        return found
    wanted = np.stack((np.maximum(authored[:, 0], low), np.minimum(authored[:, 1], high)), axis=1)
    usable = wanted[:, 0] < wanted[:, 1]
    slack = 1e-9 * (high - low)
    odd = good & (~usable | (authored[:, 0] < low - slack) | (authored[:, 1] > high + slack))
    if odd.any():
        c = int(np.flatnonzero(odd)[0])
        said = f"ranges of {int(odd.sum())} curves are not inside their knots: curve {c} has {authored[c, 0]:g} to {authored[c, 1]:g}"
        message = f"{said}, drawn from {low[c]:g} to {high[c]:g} where they do not meet. Author ranges inside the knots'"
        diagnostics.warning(path, "nurbs-range", message)
    return np.where(usable[:, None], wanted, found)


def _numbers(prim: Usd.Prim, name: str, names: Collection[str], time: Usd.TimeCode, width: int) -> np.ndarray | str | None:
    """(n,) float64, or (n, width); None: no value; str: what is wrong with it."""
    value = prim.GetAttribute(name).Get(time) if name in names else None
    if value is None:
        return None
    array = np.asarray(value)
    if not array.size:
        return np.zeros((0, width) if width else 0)
    if array.ndim != (2 if width else 1) or array.dtype.kind not in "fiu" or (width and array.shape[1] != width):
        return f"{name} holds {type(value).__name__}"
    return array.astype(np.float64)
