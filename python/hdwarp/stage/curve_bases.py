"""stage.curve_bases: vertex counts, basis and wrap -> segments, and values at vertices -> cubics in Bernstein's basis. NumPy only."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

TYPES, BASES, WRAPS = ("linear", "cubic"), ("bezier", "bspline", "catmullRom"), ("nonperiodic", "periodic", "pinned")

# Bernstein's coefficients from the vertices of a segment.
_FROM = {
    "linear": np.array(((1.0, 0.0), (2.0 / 3.0, 1.0 / 3.0), (1.0 / 3.0, 2.0 / 3.0), (0.0, 1.0))),
    "bezier": np.eye(4),
    "bspline": np.array(((1.0, 4.0, 1.0, 0.0), (0.0, 4.0, 2.0, 0.0), (0.0, 2.0, 4.0, 0.0), (0.0, 1.0, 4.0, 1.0))) / 6.0,
    "catmullRom": np.array(((0.0, 6.0, 0.0, 0.0), (-1.0, 6.0, 1.0, 0.0), (0.0, 1.0, 6.0, -1.0), (0.0, 0.0, 6.0, 0.0))) / 6.0,
}


@dataclass(slots=True, eq=False)
class Pieces:
    """Cubics, each a part of a segment: from number / 2^level to (number + 1) / 2^level of it. All arrays have a row a piece."""

    control: np.ndarray  # (n, 4, k) float64
    segment: np.ndarray  # (n,) int64
    level: np.ndarray  # (n,) int64
    number: np.ndarray  # (n,) int64

    def __len__(self) -> int:
        return len(self.segment)

    def take(self, which: np.ndarray | slice) -> Pieces:
        return Pieces(self.control[which], self.segment[which], self.level[which], self.number[which])

    @property
    def start(self) -> np.ndarray:
        """(n,) float64: where in its segment a piece starts."""
        return self.number * 0.5**self.level

    @property
    def end(self) -> np.ndarray:
        return (self.number + 1) * 0.5**self.level


def joined(parts: list[Pieces]) -> Pieces:
    return Pieces(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("control", "segment", "level", "number")))


@dataclass(slots=True, eq=False)
class Segments:
    """All segments of the curves of one prim. Curves that are skipped have theirs too, so that the numbers of the others stay."""

    counts: np.ndarray  # (C,) int64: vertices of each curve
    per_curve: np.ndarray  # (C,) int64: segments of each curve
    varying_per_curve: np.ndarray  # (C,) int64: "varying" values of each curve
    closed: np.ndarray  # (C,) bool
    good: np.ndarray  # (C,) bool: False: the curve is skipped; one for which there are no points has no segments either
    vertex_count: int  # vertices there are
    index: np.ndarray  # (S, m) int64: vertices of each segment; those from vertex_count on are `phantoms`
    matrix: np.ndarray  # (4, m): Bernstein's coefficients from them
    phantoms: np.ndarray | None = None  # (n, 2) int64: a vertex that is 2 a - b, beyond the end of a pinned curve

    @property
    def count(self) -> int:
        return len(self.index)

    @property
    def is_linear(self) -> bool:
        """Whether values at vertices are "varying" ones."""
        return self.matrix.shape[1] == 2

    @property
    def varying_count(self) -> int:
        return int(self.varying_per_curve.sum())

    @property
    def curve(self) -> np.ndarray:
        """(S,) int64: the curve that each segment is of."""
        return np.repeat(np.arange(len(self.counts)), self.per_curve)

    @property
    def place(self) -> np.ndarray:
        """(S,) int64: the number of each segment within its curve."""
        return np.arange(self.count) - np.repeat(np.cumsum(self.per_curve) - self.per_curve, self.per_curve)

    def ends(self) -> np.ndarray:
        """(S, 2) int64: the "varying" values at the start and the end of each segment."""
        curve, place = self.curve, self.place
        first = (np.cumsum(self.varying_per_curve) - self.varying_per_curve)[curve]
        return first[:, None] + np.stack((place, (place + 1) % np.maximum(self.varying_per_curve, 1)[curve]), axis=1)

    def sound(self, good_vertex: np.ndarray) -> np.ndarray:
        """(S,) bool: which segments can be drawn, ``good_vertex`` (V,) bool saying which vertices may be used."""
        if good_vertex.all():
            return self.good[self.curve]
        good_vertex = self.fitted(good_vertex)
        if self.phantoms is not None:
            good_vertex = np.concatenate((good_vertex, good_vertex[self.phantoms].all(axis=1)))
        return good_vertex[self.index].all(axis=1) & self.good[self.curve]

    def fitted(self, values: np.ndarray) -> np.ndarray:
        """``values`` by vertex, as many as there are vertices: what is too much or missing is of curves that are skipped."""
        if len(values) < self.vertex_count:
            rest = np.zeros((self.vertex_count - len(values), *values.shape[1:]), values.dtype)
            return np.concatenate((values, rest))
        return values[: self.vertex_count]

    def bezier(self, values: np.ndarray, which: np.ndarray | None = None) -> np.ndarray:
        """(S, 4, k) float64 of values (V, k) at vertices; of the segments ``which`` only."""
        values = self.fitted(np.asarray(values, np.float64))
        if self.phantoms is not None:
            a, b = values[self.phantoms[:, 0]], values[self.phantoms[:, 1]]
            values = np.concatenate((values, 2.0 * a - b))
        return combine(values, self.index if which is None else self.index[which], self.matrix)

    def pieces(self, values: np.ndarray, which: np.ndarray) -> Pieces:
        """The cubics that the segments ``which`` (n,) are made of, rising."""
        none = np.zeros(len(which), np.int64)
        return Pieces(self.bezier(values, which), which, none, none)


def combine(values: np.ndarray, index: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """(S, 4, k): the coefficients that ``matrix`` (4, m) makes of ``values[index]``, always added up in the same order."""
    found = np.zeros((len(index), 4, values.shape[1]))
    for j in range(matrix.shape[1]):
        column = values[index[:, j]]
        for i in range(4):
            if matrix[i, j] != 0.0:
                found[:, i] += matrix[i, j] * column
    return found


def basis_segments(counts: np.ndarray, type_: str, basis: str, wrap: str, vertex_count: int) -> Segments:
    """Of BasisCurves. ``counts`` (C,): curveVertexCounts, whatever they are; curves whose count no such curve can have, or that go beyond
    the ``vertex_count`` vertices there are, are not `good`.

    Phantom vertices of pinned curves are UsdGeom's: 2 P0 - P1 before the first, so that the curve starts at P0.
    """
    counts, kept, beyond = kept_counts(counts, vertex_count)
    kind = "linear" if type_ == "linear" else basis
    wrap = "nonperiodic" if wrap == "pinned" and kind in ("linear", "bezier") else wrap  # they end at their vertices anyway
    closed = np.full(len(counts), wrap == "periodic")
    good, per_curve = _segment_counts(counts, kind, wrap)
    good &= ~beyond
    per_curve[beyond] = 0
    start = np.cumsum(kept) - kept
    varying = kept if kind == "linear" else per_curve + (per_curve > 0) * (wrap != "periodic")
    step, width = (3 if kind == "bezier" else 1), (2 if kind == "linear" else 4)
    found = Segments(kept, per_curve, varying, closed, good, vertex_count, np.zeros((int(per_curve.sum()), 1), np.int64), _FROM[kind])
    curve = found.curve
    local = found.place[:, None] * step + np.arange(width)
    length, first = np.maximum(kept, 1)[curve, None], start[curve, None]
    if wrap == "periodic":
        index = first + local % length
    elif wrap == "pinned":
        local -= 1
        ends = start + np.maximum(kept, 2) - 1
        phantoms = np.concatenate((np.stack((start, start + 1), axis=1), np.stack((ends, ends - 1), axis=1)))
        found.phantoms = np.clip(phantoms, 0, max(vertex_count - 1, 0))
        before, after = vertex_count + curve[:, None], vertex_count + len(counts) + curve[:, None]
        index = np.where(local < 0, before, np.where(local >= length, after, first + local))
    else:
        index = first + local
    if not good.all():
        index[~good[curve]] = 0
    found.index = index
    return found


def kept_counts(counts: np.ndarray, vertex_count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(counts (C,) int64, what of them there are points for, which go beyond those). After one that does there are none."""
    counts = np.asarray(counts, np.int64)
    kept = np.maximum(counts, 0)
    beyond = np.cumsum(kept) > vertex_count
    return counts, np.where(beyond, 0, kept), beyond


def _segment_counts(counts: np.ndarray, kind: str, wrap: str) -> tuple[np.ndarray, np.ndarray]:
    """(counts that are valid, segments (C,)), as UsdGeom.BasisCurves has them."""
    if wrap == "periodic":
        step = 3 if kind == "bezier" else 1
        return (counts >= 3) & (counts % step == 0), np.maximum(counts // step, 0)
    if kind == "bezier":
        return (counts >= 4) & ((counts - 4) % 3 == 0), np.maximum((counts - 4) // 3 + 1, 0)
    fewer = 3 if kind != "linear" and wrap != "pinned" else 1
    return counts > fewer, np.maximum(counts - fewer, 0)


def count_rule(type_: str, basis: str, wrap: str) -> str:
    """What the vertex count of such a curve has to be, in words."""
    if type_ == "linear":
        return "3 or more" if wrap == "periodic" else "2 or more"
    if basis == "bezier":
        return "a multiple of 3" if wrap == "periodic" else "4, 7, 10, ..."
    return {"periodic": "3 or more", "pinned": "2 or more"}.get(wrap, "4 or more")


@dataclass(slots=True, eq=False)
class HermiteSegments(Segments):
    """From vertex to vertex of open curves. What has no tangents of its own, as widths and primvars have none, goes evenly."""

    tangents: np.ndarray | None = None  # (V, 3)

    def sound(self, good_vertex: np.ndarray) -> np.ndarray:
        return Segments.sound(self, self.fitted(good_vertex) & (np.abs(self.tangents) < np.inf).all(axis=1))

    def pieces(self, values: np.ndarray, which: np.ndarray) -> Pieces:
        """The first three of ``values`` are places."""
        found = Segments.pieces(self, values, which)
        slope = self.tangents[self.index[which]].astype(np.float64) / 3.0
        found.control[:, 1, :3] = found.control[:, 0, :3] + slope[:, 0]
        found.control[:, 2, :3] = found.control[:, 3, :3] - slope[:, 1]
        return found


def hermite_segments(counts: np.ndarray, tangents: np.ndarray) -> HermiteSegments:
    """Of HermiteCurves. ``tangents`` (V, 3): a vector a vertex, three times as long as the way to the next Bezier point."""
    linear = basis_segments(counts, "linear", "bezier", "nonperiodic", len(tangents))
    return HermiteSegments(*(getattr(linear, field.name) for field in fields(Segments)), tangents=tangents)


def linear_bezier(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """(n, 4, k) of what goes evenly from ``start`` to ``end`` (n, k)."""
    share = np.arange(4)[None, :, None] / 3.0
    return start[:, None] * (1.0 - share) + end[:, None] * share
