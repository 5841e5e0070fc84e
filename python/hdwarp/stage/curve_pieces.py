"""stage.curve_pieces: cubics -> pieces short enough to be traced: halved until they turn little, with their caps and joints. NumPy only."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hdwarp.stage.columns import BALL, CAPPED_END, CAPPED_START, STRAIGHT
from hdwarp.stage.curve_bases import Pieces, joined, linear_bezier

DEEPEST = 8  # how often a segment is halved at most
TURN = math.radians(20.0)  # of a piece at most
_UNEVEN = 2.0  # largest ratio of the lengths of the parts of a piece's control polygon
_BEND = 0.1  # largest second difference of the radii, of the mean part of the control polygon
_JOINT = math.radians(0.5)  # a smaller angle between pieces shows no gap
_STRAIGHT = 1e-6  # of the chord
_CHUNK = 1 << 13  # pieces looked at together, or as many as one run has


@dataclass(slots=True, eq=False)
class Cut:
    """Pieces in the order of their segments, ready for tables."""

    pieces: Pieces  # control (n, 4, k): x, y, z and whatever came with them; of straight ones evenly spaced
    straight: np.ndarray  # (n,) bool
    run: np.ndarray  # (n,) int64: pieces that follow one another without a gap have the same
    closed: np.ndarray  # (n,) bool: the run is a ring

    def first(self) -> np.ndarray:
        """(n,) bool: pieces with which a run begins."""
        return np.diff(self.run, prepend=-1) != 0

    def last(self) -> np.ndarray:
        return np.diff(self.run, append=-1) != 0

    def before(self) -> np.ndarray:
        """(n,) int64: the piece that each one follows, around rings too; -1: none."""
        number = np.arange(len(self.run)) - 1
        first, last = np.flatnonzero(self.first()), np.flatnonzero(self.last())
        number[first] = np.where(self.closed[first], last, -1)
        return number


def cut(pieces: Pieces, run: np.ndarray, closed: np.ndarray, *, turn: float, radius: int | None, across: slice | None = None) -> Cut:
    """Halve ``pieces`` (control x, y, z first), all at once level by level, until each turns by ``turn`` at most and is even.

    ``run``, ``closed``: by segment: which run it is of, and whether that is a ring. ``radius``: component whose second differences must be
    small; ``across``: three components that are a vector which may turn no more than the piece. What is uneven even at the last level, as
    cusps are, becomes straight; what has no length is dropped.
    """
    found, fits = refined(pieces, lambda control: _fits(control, turn, radius, across))
    hopeless = ~fits
    # A piece whose ends meet at the last level is a point or a loop of no size.
    long = _longest(found.control[:, :, :3] - found.control[:, :1, :3]) > 0.0
    long &= ~hopeless | (np.abs(found.control[:, 3, :3] - found.control[:, 0, :3]) > 0.0).any(axis=1)
    if not long.all():
        found, hopeless = found.take(long), hopeless[long]
    straight = hopeless | is_straight(found.control, radius)
    even = linear_bezier(found.control[straight, 0], found.control[straight, 3])
    found.control[hopeless] = even[hopeless[straight]]
    found.control[straight, :, :3] = even[:, :, :3]
    if radius is not None:
        found.control[straight, :, radius] = even[:, :, radius]
    return Cut(found, straight, run[found.segment], closed[found.segment])


def refined(pieces: Pieces, fits: Callable[[np.ndarray], np.ndarray]) -> tuple[Pieces, np.ndarray]:
    """``pieces`` halved, level by level, until they fit or are at the last level, in the order of their segments; (n,) bool whether they
    fit. ``fits``: (n,) bool of (n, 4, k)."""
    done, good = [pieces.take(slice(0, 0))], [np.zeros(0, bool)]
    while len(pieces):
        found = fits(pieces.control)
        stop = found | (pieces.level >= DEEPEST)
        done.append(pieces.take(stop))
        good.append(found[stop])
        pieces = halved(pieces.take(~stop))
    both = joined(done)
    order = np.lexsort((both.start, both.segment))
    return both.take(order), np.concatenate(good)[order]


def chunks(pieces: Pieces, run: np.ndarray) -> list[Pieces]:
    """``pieces`` in parts that can be looked at one by one, as no run is in two: what is made of them stays in the processor's caches."""
    if not len(pieces):
        return []
    starts = np.flatnonzero(np.diff(run[pieces.segment], prepend=-1))
    at = np.unique(starts[np.searchsorted(starts, np.arange(0, len(pieces), _CHUNK), side="right") - 1])
    return [pieces.take(slice(first, last)) for first, last in zip(at.tolist(), [*at[1:].tolist(), len(pieces)], strict=True)]


def halved(pieces: Pieces) -> Pieces:
    """Both halves of each, by de Casteljau."""
    a, b, c, d = (pieces.control[:, i] for i in range(4))
    ab, bc, cd = 0.5 * (a + b), 0.5 * (b + c), 0.5 * (c + d)
    abc, bcd = 0.5 * (ab + bc), 0.5 * (bc + cd)
    middle = 0.5 * (abc + bcd)
    control = np.concatenate((np.stack((a, ab, abc, middle), axis=1), np.stack((middle, bcd, cd, d), axis=1)))
    number = np.concatenate((2 * pieces.number, 2 * pieces.number + 1))
    return Pieces(control, np.tile(pieces.segment, 2), np.tile(pieces.level + 1, 2), number)


def _fits(control: np.ndarray, turn: float, radius: int | None, across: slice | None) -> np.ndarray:
    """(n,) bool: pieces that need no halving; those of no length do not."""
    edge = np.diff(control[:, :, :3], axis=1)
    size = np.maximum(_longest(edge), 1e-300)
    edge /= size[:, None, None]  # squares neither overflow nor vanish
    length = np.sqrt(np.einsum("nij,nij->ni", edge, edge))
    least, most, cosine = _over(np.minimum, length), _over(np.maximum, length), math.cos(turn)
    good = (most <= _UNEVEN * least) & (least > 0.0)
    for i, j in ((0, 1), (1, 2), (0, 2)):
        good &= np.einsum("nj,nj->n", edge[:, i], edge[:, j]) >= cosine * length[:, i] * length[:, j] * (1.0 - 1e-12)
    if radius is not None:
        r = control[:, :, radius]
        bend = _over(np.maximum, np.abs(r[:, 2:] - 2.0 * r[:, 1:3] + r[:, :2]))
        good &= bend * 3.0 <= _BEND * size * (length[:, 0] + length[:, 1] + length[:, 2])
    if across is not None:
        good &= _turns_little(control[:, :, across], cosine)
    return good | (most == 0.0)


def _turns_little(vector: np.ndarray, cosine: float) -> np.ndarray:
    """(n,) bool: which of (n, 4, 3) cubics of vectors stay within an angle of their first one. Those with none do."""
    size = np.sqrt(np.einsum("nij,nij->ni", vector, vector))
    dot = np.einsum("nij,nj->ni", vector[:, 1:], vector[:, 0])
    return ((dot >= cosine * size[:, 1:] * size[:, :1] * (1.0 - 1e-12)) | (size[:, 1:] * size[:, :1] == 0.0)).all(axis=1)


def _longest(vectors: np.ndarray) -> np.ndarray:
    """(n,) largest component of (n, m, 3), whatever its sign."""
    flat = np.abs(vectors).reshape(len(vectors), vectors.shape[1] * vectors.shape[2])
    return _over(np.maximum, flat)


def _over(extreme: np.ufunc, values: np.ndarray) -> np.ndarray:
    """``extreme`` of each row of (n, m): a column at a time, as short axes are slow to reduce."""
    found = values[:, 0].copy()
    for j in range(1, values.shape[1]):
        extreme(found, values[:, j], out=found)
    return found


def is_straight(control: np.ndarray, radius: int | None) -> np.ndarray:
    """(n,) bool: control points within 1e-6 of evenly spaced, and so the radii."""
    even = linear_bezier(control[:, 0], control[:, 3])
    chord = _longest((control[:, 3, :3] - control[:, 0, :3])[:, None])
    found = _longest(control[:, :, :3] - even[:, :, :3]) <= _STRAIGHT * chord
    if radius is not None:
        largest = np.maximum(_over(np.maximum, control[:, :, radius]), chord)
        found &= _over(np.maximum, np.abs(control[:, :, radius] - even[:, :, radius])) <= _STRAIGHT * largest
    return found


def tangents(control: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Unit directions (n, 3) at the start and the end of (n, 4, >= 3) cubics that have a length."""
    points = control[:, :, :3]
    start, end = _first_of(points[:, 1:] - points[:, :1]), _first_of(points[:, 3:] - points[:, 2::-1])
    return start, end


def _first_of(arms: np.ndarray) -> np.ndarray:
    """The first of (n, 3, 3) vectors that has a length, made 1."""
    size = np.stack([_over(np.maximum, np.abs(arms[:, i])) for i in range(3)], axis=1)
    there = size > 1e-12 * _over(np.maximum, size)[:, None]
    rows = np.arange(len(arms))
    which = there.argmax(axis=1)
    vector = arms[rows, which] / np.maximum(size[rows, which], 1e-300)[:, None]
    return vector / np.maximum(np.sqrt(np.einsum("ni,ni->n", vector, vector)), 1e-300)[:, None]


def codes(pieces: Pieces, flags: np.ndarray) -> np.ndarray:
    """(n,) int32 of `MeshGeometry.pieces`."""
    return (16 * ((1 << pieces.level) + pieces.number) + flags).astype(np.int32)


def caps(done: Cut) -> np.ndarray:
    """(n,) int64 flags: ends of runs that are no rings, and what is straight."""
    open_ = ~done.closed
    return CAPPED_START * (done.first() & open_) + CAPPED_END * (done.last() & open_) + STRAIGHT * done.straight


def joints(done: Cut) -> np.ndarray:
    """(m,) int64: pieces at whose start there is an angle to what they follow, which a ball fills."""
    if not len(done.run):
        return np.zeros(0, np.int64)
    start, end = tangents(done.pieces.control)
    before = done.before()
    bent = np.flatnonzero(before >= 0)
    cosine = np.einsum("ni,ni->n", start[bent], end[before[bent]])
    return bent[cosine < math.cos(_JOINT)]


def with_balls(done: Cut, at: np.ndarray) -> tuple[Pieces, np.ndarray]:
    """The pieces, and before each of ``at`` a ball at its start; codes (n,)."""
    pieces = done.pieces
    balls = pieces.take(at)
    balls.control = np.repeat(balls.control[:, :1], 4, axis=1)
    both = joined([pieces, balls])
    flags = np.concatenate((caps(done), np.full(len(at), BALL)))
    order = np.argsort(np.concatenate((2 * np.arange(len(pieces)) + 1, 2 * at)), kind="stable")
    both = both.take(order)
    return both, codes(both, flags[order])
