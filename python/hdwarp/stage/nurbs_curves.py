"""stage.nurbs_curves: NURBS curves, many at once -> segments and cubics: exact where they are cubics, else fitted. NumPy only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hdwarp.stage.curve_bases import Pieces, Segments, joined, kept_counts
from hdwarp.stage.curve_pieces import DEEPEST

TOLERANCE = 1e-6  # of the size of a segment's control polygon
_TOLERANCE_OF_REST = 1e-4  # of the largest value, of what is no place
_CHECKED = np.array((0.25, 0.5, 0.75))


@dataclass(slots=True, eq=False)
class NurbsSegments(Segments):
    """A segment is a knot interval that has a length, as far as it is inside the curve's range."""

    degree: np.ndarray | None = None  # (S,) int64
    knot: np.ndarray | None = None  # (S,) int64: the knot, of all, at which the interval begins
    begin: np.ndarray | None = None  # (S,) float64: parameters between which it is drawn
    end: np.ndarray | None = None
    knots: np.ndarray | None = None  # (K,) float64, of all curves
    weights: np.ndarray | None = None  # (V,) float64; None: all are 1
    rational: np.ndarray | None = None  # (S,) bool: the weights of its curve differ

    def sound(self, good_vertex: np.ndarray) -> np.ndarray:
        bad = np.concatenate(([0], np.cumsum(~self.fitted(good_vertex))))
        first = self.index[:, 0]
        return (bad[first + self.degree + 1] == bad[first]) & self.good[self.curve]

    def bezier(self, values: np.ndarray, which: np.ndarray | None = None) -> np.ndarray:
        """As `Segments.bezier`; what is no cubic has the values and slopes of the curve at both ends."""
        which = np.arange(self.count) if which is None else which
        values = self.fitted(np.asarray(values, np.float64))
        found = np.zeros((len(which), 4, values.shape[1]))
        for rows, degree, rational in self._groups(which):
            control = self._bernstein(values, which[rows], degree, rational)
            found[rows] = elevated(control) if degree <= 3 and not rational else _hermite(control, rational)
        return found

    def pieces(self, values: np.ndarray, which: np.ndarray) -> Pieces:
        values = self.fitted(np.asarray(values, np.float64))
        found = [super(NurbsSegments, self).pieces(values, which[:0])]
        for rows, degree, rational in self._groups(which):
            segment = which[rows]
            none = np.zeros(len(segment), np.int64)
            exact = Pieces(self._bernstein(values, segment, degree, rational), segment, none, none)
            if degree <= 3 and not rational:
                exact.control = elevated(exact.control)
                found.append(exact)
            else:
                found += _fitted(exact, rational)
        both = joined(found)
        return both.take(np.lexsort((both.start, both.segment)))

    def _groups(self, which: np.ndarray):
        """(rows of ``which``, degree, whether rational) of segments that are alike."""
        for degree in np.unique(self.degree[which]):
            for rational in (False, True):
                rows = np.flatnonzero((self.degree[which] == degree) & (self.rational[which] == rational))
                if len(rows):
                    yield rows, int(degree), rational

    def _bernstein(self, values: np.ndarray, segment: np.ndarray, degree: int, rational: bool) -> np.ndarray:
        """(n, degree + 1, k) Bernstein coefficients on the segments, by the polar form (de Boor's recursion with an end of the segment at
        each level). Of rational ones homogeneous: the weight comes last, and is in the others."""
        if rational:
            values = np.concatenate((values * self.weights[:, None], self.weights[:, None]), axis=1)
        first, knot = self.index[segment, 0], self.knot[segment]
        local = values[first[:, None] + np.arange(degree + 1)]
        found = np.empty_like(local)
        begin, end = self.begin[segment], self.end[segment]
        for j in range(degree + 1):
            d = local.copy()
            for r in range(1, degree + 1):
                at = end if r <= j else begin
                for i in range(degree, r - 1, -1):
                    low, high = self.knots[knot - degree + i], self.knots[knot + i + 1 - r]
                    share = ((at - low) / (high - low))[:, None]
                    d[:, i] = (1.0 - share) * d[:, i - 1] + share * d[:, i]
            found[:, j] = d[:, degree]
        return found


def nurbs_segments(
    counts: np.ndarray,
    order: np.ndarray,
    knots: np.ndarray,
    knot_start: np.ndarray,
    ranges: np.ndarray,
    good: np.ndarray,
    weights: np.ndarray | None,
    vertex_count: int,
) -> NurbsSegments:
    """``counts``, ``order`` and ``knot_start`` (C,), where each curve's begin among all ``knots``, ``ranges`` (C, 2), ``weights`` (V,).
    Curves that are not ``good`` have no segments, and whatever else is said of them counts for nothing."""
    counts, kept, _ = kept_counts(counts, vertex_count)
    order = np.where(good, order, 2)
    vertex_start = np.cumsum(kept) - kept
    spans = np.where(good, kept - order + 1, 0)
    curve = np.repeat(np.arange(len(counts)), spans)
    place = np.arange(len(curve)) - np.repeat(np.cumsum(spans) - spans, spans)
    knot = knot_start[curve] + place + order[curve] - 1
    begin = np.maximum(knots[knot], ranges[curve, 0]) if len(curve) else np.zeros(0)
    end = np.minimum(knots[knot + 1], ranges[curve, 1]) if len(curve) else np.zeros(0)
    used = end > begin
    curve, place, knot = curve[used], place[used], knot[used]
    per_curve = np.bincount(curve, minlength=len(counts))
    rational = np.zeros(len(counts), bool)
    if weights is not None:
        for c in np.flatnonzero(good):
            own = weights[vertex_start[c] : vertex_start[c] + kept[c]]
            rational[c] = own.max() > own.min()
    return NurbsSegments(
        kept,
        per_curve,
        per_curve + (per_curve > 0),
        np.zeros(len(counts), bool),
        good,
        vertex_count,
        (vertex_start[curve] + place)[:, None],
        np.eye(4),
        degree=order[curve] - 1,
        knot=knot,
        begin=begin[used],
        end=end[used],
        knots=knots,
        weights=weights,
        rational=rational[curve],
    )


def elevated(control: np.ndarray) -> np.ndarray:
    """The same polynomials (n, degree + 1, k), degree up to 3, as cubics."""
    while control.shape[1] < 4:
        n = control.shape[1]  # the new degree
        share = (np.arange(1, n) / n)[None, :, None]
        inner = share * control[:, :-1] + (1.0 - share) * control[:, 1:]
        control = np.concatenate((control[:, :1], inner, control[:, -1:]), axis=1)
    return control


def _fitted(exact: Pieces, rational: bool) -> list[Pieces]:
    """Cubics near enough to ``exact``, halved until they are."""
    done: list[Pieces] = []
    limit = _limits(exact.control, rational)
    while len(exact):
        cubic = _hermite(exact.control, rational)
        off = np.abs(_values(exact.control, _CHECKED, rational) - _values(cubic, _CHECKED, False)).max(axis=1)
        near = (off <= limit).all(axis=1) | (exact.level >= DEEPEST)
        done.append(Pieces(cubic[near], exact.segment[near], exact.level[near], exact.number[near]))
        far = exact.take(~near)
        first, second = _split(far.control)
        number = np.concatenate((2 * far.number, 2 * far.number + 1))
        exact = Pieces(np.concatenate((first, second)), np.tile(far.segment, 2), np.tile(far.level + 1, 2), number)
        limit = np.tile(limit[~near], (2, 1))
    return done


def _limits(control: np.ndarray, rational: bool) -> np.ndarray:
    """(n, k): how far off each component may be."""
    plain = control[:, :, :-1] / control[:, :, -1:] if rational else control
    limit = _TOLERANCE_OF_REST * np.abs(plain).max(axis=1)
    size = np.linalg.norm(np.ptp(plain[:, :, :3], axis=1), axis=1)
    limit[:, :4] = TOLERANCE * size[:, None]
    return limit


def _hermite(control: np.ndarray, rational: bool) -> np.ndarray:
    """(n, 4, k): cubics with the values and slopes of (n, degree + 1, k) at both ends."""
    degree = control.shape[1] - 1
    ends = []
    for first, second, sign in ((0, 1, 1.0), (-1, -2, -1.0)):
        value, slope = control[:, first], sign * degree * (control[:, second] - control[:, first])
        if rational:
            weight = value[:, -1:]
            value, slope = value[:, :-1] / weight, slope[:, :-1] / weight - value[:, :-1] * slope[:, -1:] / weight**2
        ends.append((value, slope))
    (a, by_a), (b, by_b) = ends
    return np.stack((a, a + by_a / 3.0, b - by_b / 3.0, b), axis=1)


def _values(control: np.ndarray, at: np.ndarray, rational: bool) -> np.ndarray:
    """(n, m, k) at parameters ``at`` (m,)."""
    d = np.repeat(control[:, None], len(at), axis=1)
    share = at[None, :, None, None]
    while d.shape[2] > 1:
        d = (1.0 - share) * d[:, :, :-1] + share * d[:, :, 1:]
    found = d[:, :, 0]
    return found[..., :-1] / found[..., -1:] if rational else found


def _split(control: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both halves of (n, degree + 1, k) Bernstein polynomials."""
    first, last, d = [control[:, 0]], [control[:, -1]], control
    while d.shape[1] > 1:
        d = 0.5 * (d[:, :-1] + d[:, 1:])
        first.append(d[:, 0])
        last.append(d[:, -1])
    return np.stack(first, axis=1), np.stack(last[::-1], axis=1)
