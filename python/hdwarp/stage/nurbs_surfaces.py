"""stage.nurbs_surfaces: tensor-product rational B-splines -> points, normals and parameters on a grid fine enough. NumPy only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

MOST_CELLS = 512  # of a grid, each way
TOLERANCE = 1e-3  # of the surface's size
# Between points of a grid the surface is a parabola to first order: its largest distance from a triangle is then at most 4/3 of the
# largest at the middles of the triangle's sides, which are what is measured.
_SHARE = 0.7
_FLAT = 1e-10  # relative length of a normal below which it has no direction


@dataclass(frozen=True, slots=True, eq=False)
class Direction:
    """One parameter of a patch. ``knots`` (count + order,) rise; the surface is defined over ``low`` to ``high``."""

    knots: np.ndarray
    order: int
    low: float
    high: float

    @property
    def count(self) -> int:
        """Control points."""
        return len(self.knots) - self.order

    @property
    def segment_count(self) -> int:
        """Knot intervals that the surface can have, those without length among them."""
        return self.count - self.order + 1


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Where one parameter is sampled. Where the surface has a crease, two samples stand for its two sides, with no cell between."""

    at: np.ndarray  # (n,) float64
    span: np.ndarray  # (n,) number of the knot at which the interval begins whose polynomial counts
    starts: np.ndarray  # (cells,) sample at which each cell begins; it ends at the next one
    cell_segment: np.ndarray  # (cells,) 0..segment_count - 1

    def sides(self) -> np.ndarray:
        """Samples that are the second side of a crease, and the last one: each may be in one place with that before it, or the first."""
        inner = np.setdiff1d(np.arange(1, len(self.at)), self.starts + 1)
        return np.append(inner, len(self.at) - 1)


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """A patch sampled at u x v; arrays are (v, u, ...)."""

    u: Samples
    v: Samples
    points: np.ndarray  # (V, U, 3) float64
    normals: np.ndarray  # (V, U, 3) along dP/du x dP/dv, length 1 or, where there is no direction, 0
    error: float  # largest distance from the surface measured between the points
    size: float  # diagonal of the box around the points


def basis(direction: Direction, at: np.ndarray, span: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values and first derivatives, (n, order) each, of the functions that are not zero in each ``span``: those of the control points
    span - order + 1 to span. Cox and de Boor's recursion; parameters outside the span follow its polynomial."""
    knots, degree = direction.knots, direction.order - 1
    values, lower = np.ones((len(at), 1)), None
    for k in range(1, degree + 1):
        lower, values = values, np.zeros((len(at), k + 1))
        for j in range(k):
            left, right = knots[span + 1 + j - k], knots[span + 1 + j]
            share = lower[:, j] / (right - left)
            values[:, j] += (right - at) * share
            values[:, j + 1] += (at - left) * share
    slopes = np.zeros_like(values)
    if degree:
        for j in range(degree):
            share = degree * lower[:, j] / (knots[span + 1 + j] - knots[span + 1 + j - degree])
            slopes[:, j] -= share
            slopes[:, j + 1] += share
    return values, slopes


def intervals(direction: Direction) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(span, begin, end, crease) of the knot intervals that have a length between low and high; ``crease``: whether the surface may have
    an edge or a tear where the interval begins."""
    knots, order = direction.knots, direction.order
    span = np.arange(order - 1, direction.count)
    begin, end = np.maximum(knots[span], direction.low), np.minimum(knots[span + 1], direction.high)
    used = end > begin
    span, begin, end = span[used], begin[used], end[used]
    repeats = np.searchsorted(knots, begin, "right") - np.searchsorted(knots, begin, "left")
    crease = repeats >= order - 1
    crease[:1] = False
    return span, begin, end, crease


def sample(direction: Direction, cells: np.ndarray) -> Samples:
    """``cells``: into how many equal parts each of `intervals` is divided."""
    span, begin, end, crease = intervals(direction)
    at, spans, starts, segments, count = [], [], [], [], 0
    for k, number in enumerate(cells.tolist()):
        steps = begin[k] + (end[k] - begin[k]) * (np.arange(number + 1) / number)
        steps[-1] = end[k]
        shared = k > 0 and not crease[k]  # the sample is there already
        first = count - 1 if shared else count
        at.append(steps[shared:])
        spans.append(np.full(number + 1 - shared, span[k]))
        starts.append(first + np.arange(number))
        segments.append(np.full(number, span[k] - direction.order + 1))
        count = first + number + 1
    return Samples(*(np.concatenate(parts) for parts in (at, spans, starts, segments)))


def coarse(direction: Direction, most: int) -> Samples:
    """Where there are more intervals than cells: ``most`` equal cells across all of them."""
    span, begin, end, _ = intervals(direction)
    at = np.linspace(begin[0], end[-1], most + 1)
    inside = np.clip(np.searchsorted(end, at, "left"), 0, len(span) - 1)
    starts = np.arange(most)
    return Samples(at, span[inside], starts, span[inside[:-1]] - direction.order + 1)


class Surface:
    """A patch: two directions and (V, U, k + 1) homogeneous control values, the weight last and multiplied into the others."""

    def __init__(self, u: Direction, v: Direction, control: np.ndarray) -> None:
        self.u, self.v, self.control = u, v, control

    def sums(self, at_u, span_u, at_v, span_v, slopes: tuple[tuple[bool, bool], ...]) -> list[np.ndarray]:
        """Homogeneous (V, U, k + 1) values at all u x v, for each of ``slopes`` the derivative by (u, v) where it says so."""
        u, v = basis(self.u, at_u, span_u), basis(self.v, at_v, span_v)
        done: dict[bool, np.ndarray] = {}
        u_first = self.control.shape[1] >= self.control.shape[0]  # the longer way first keeps what is between small
        control = self.control if u_first else self.control.swapaxes(0, 1)
        first, second = ((u, span_u, self.u), (v, span_v, self.v)) if u_first else ((v, span_v, self.v), (u, span_u, self.u))
        found = []
        for by_u, by_v in slopes:
            inner, outer = (by_u, by_v) if u_first else (by_v, by_u)
            if inner not in done:
                done[inner] = _contract(control, first[0][inner], first[1] - first[2].order + 1).swapaxes(0, 1)
            both = _contract(done[inner], second[0][outer], second[1] - second[2].order + 1)
            found.append(both.swapaxes(0, 1) if u_first else both)
        return found

    def values(self, at_u, span_u, at_v, span_v) -> np.ndarray:
        """(V, U, k) float64."""
        (sums,) = self.sums(at_u, span_u, at_v, span_v, ((False, False),))
        return sums[..., :-1] / sums[..., -1:]


def _contract(control: np.ndarray, weights: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Sums along the second axis of ``control`` (A, B, k): ``weights`` (n, order) from ``first`` (n,) on. (A, n, k)."""
    total = weights[:, 0, None] * control[:, first]
    for j in range(1, weights.shape[1]):
        total += weights[:, j, None] * control[:, first + j]
    return total


def tessellate(surface: Surface) -> Grid:
    """The surface on a grid whose triangles, whichever way its cells are cut, are within `TOLERANCE` of the surface's size (the diagonal
    of its box), as far as `MOST_CELLS` each way reach: ``error`` says how near they are."""
    directions = surface.u, surface.v
    cells = []
    for direction in directions:  # of a polynomial that turns back and forth a middle alone can lie on the line between its ends
        cells.append(np.full(len(intervals(direction)[0]), min(direction.order - 1, 8)))
    frozen = [False, False]
    while True:
        samples, frozen = _samples(directions, cells, frozen)
        points, errors, split, size = _measure(surface, *samples)
        limit = _SHARE * TOLERANCE * size
        grown = [_refined(s, d, c, e, limit) for s, d, c, e in zip(samples, directions, cells, errors, strict=True)]
        if split > limit and all(e.max() <= limit for e in errors):  # twisted, along straight lines
            grown = [2 * c for c in cells]
        grown = [old if stop or new.sum() > MOST_CELLS else new for new, old, stop in zip(grown, cells, frozen, strict=True)]
        if all(np.array_equal(new, old) for new, old in zip(grown, cells, strict=True)):
            error = max(split, *(float(e.max(initial=0.0)) for e in errors))
            return Grid(*samples, _welded(points, *samples), _normals(surface, *samples), error, size)
        cells = grown


def _samples(directions, cells, frozen) -> tuple[list[Samples], list[bool]]:
    found, stop = [], []
    for direction, number, was in zip(directions, cells, frozen, strict=True):
        many = number.sum() > MOST_CELLS
        if many and (number > 1).any() and len(number) <= MOST_CELLS:  # the first division is too fine already
            number[:] = 1
            many = False
        found.append(coarse(direction, MOST_CELLS) if many else sample(direction, number))
        stop.append(was or many)
    return found, stop


def _welded(points: np.ndarray, u: Samples, v: Samples) -> np.ndarray:
    """Points that differ by rounding alone made the same: the sides of creases, and where the surface closes."""
    least = 1e-12 * float(np.abs(points).max())
    for samples, axis in ((u, 1), (v, 0)):
        view = np.moveaxis(points, axis, 0)
        for k in samples.sides().tolist():
            twin = 0 if k == len(samples.at) - 1 else k - 1
            near = (np.abs(view[k] - view[twin]) <= least).all(axis=-1, keepdims=True)
            view[k] = np.where(near, view[twin], view[k])
    return points


def _measure(surface: Surface, u: Samples, v: Samples):
    """(points (V, U, 3), largest distances from the surface at the middle of the sides of cells (by cell in u, in v), the largest at the
    middle of their diagonals, size)."""
    middle_u, middle_v = 0.5 * (u.at[u.starts] + u.at[u.starts + 1]), 0.5 * (v.at[v.starts] + v.at[v.starts + 1])
    span_u, span_v = u.span[u.starts + 1], v.span[v.starts + 1]
    points = surface.values(u.at, u.span, v.at, v.span)
    flat = points.reshape(-1, 3)
    size = float(np.linalg.norm(flat.max(axis=0) - flat.min(axis=0)))
    a, b = points[:, u.starts], points[:, u.starts + 1]
    along_u = _distance(surface.values(middle_u, span_u, v.at, v.span), a, b).max(axis=0)
    c, d = points[v.starts], points[v.starts + 1]
    along_v = _distance(surface.values(u.at, u.span, middle_v, span_v), c, d).max(axis=1)
    centre = surface.values(middle_u, span_u, middle_v, span_v)
    low, high = a[v.starts], b[v.starts + 1]
    other_low, other_high = b[v.starts], a[v.starts + 1]
    split = np.maximum(_distance(centre, low, high), _distance(centre, other_low, other_high)).max()
    return points, (along_u, along_v), float(split), size


def _distance(p: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """From ``p`` to the segments from ``a`` to ``b``, (..., 3)."""
    edge, arm = b - a, p - a
    square = np.einsum("...i,...i->...", edge, edge)
    share = np.einsum("...i,...i->...", arm, edge) / np.where(square > 0.0, square, 1.0)
    return np.linalg.norm(arm - np.clip(share, 0.0, 1.0)[..., None] * edge, axis=-1)


def _refined(samples: Samples, direction: Direction, cells: np.ndarray, errors: np.ndarray, limit: float) -> np.ndarray:
    """More cells where one is too far off: errors fall with the square of the number."""
    if len(errors) != cells.sum():
        return cells  # coarse
    worst = np.maximum.reduceat(errors, np.cumsum(cells) - cells)
    wanted = np.ceil(cells * np.sqrt(np.clip(worst / limit, 1.0, 64.0))).astype(np.int64) if limit > 0.0 else cells
    if wanted.sum() <= MOST_CELLS:
        return wanted
    room = np.where(worst > limit, np.maximum(cells, (wanted * (MOST_CELLS / wanted.sum())).astype(np.int64)), cells)
    return room if room.sum() <= MOST_CELLS else cells


def _normals(surface: Surface, u: Samples, v: Samples) -> np.ndarray:
    """(V, U, 3) from the derivatives. At poles, where one of them is zero, from how it grows beside the pole."""
    slopes = (False, False), (True, False), (False, True), (True, True)
    s, su, sv, suv = surface.sums(u.at, u.span, v.at, v.span, slopes)
    w = s[..., -1:]
    p = s[..., :3] / w
    by_u = (su[..., :3] - p * su[..., -1:]) / w
    by_v = (sv[..., :3] - p * sv[..., -1:]) / w
    mixed = (suv[..., :3] - by_u * sv[..., -1:] - by_v * su[..., -1:] - p * suv[..., -1:]) / w
    width_u, width_v = surface.u.high - surface.u.low, surface.v.high - surface.v.low
    by_u, by_v, mixed = by_u * width_u, by_v * width_v, mixed * (width_u * width_v)
    reach = max(float(np.abs(by_u).max()), float(np.abs(by_v).max())) or 1.0
    normals = np.cross(by_u, by_v) / reach**2
    lost = np.linalg.norm(normals, axis=-1) <= _FLAT
    if lost.any():
        inward_u = np.where(u.at * 2.0 > surface.u.low + surface.u.high, -1.0, 1.0)[None, :, None]
        inward_v = np.where(v.at * 2.0 > surface.v.low + surface.v.high, -1.0, 1.0)[:, None, None]
        no_u = np.linalg.norm(by_u, axis=-1, keepdims=True) <= np.linalg.norm(by_v, axis=-1, keepdims=True)
        beside = np.where(no_u, np.cross(mixed * inward_v, by_v), np.cross(by_u, mixed * inward_u)) / reach**2
        normals = np.where(lost[..., None], beside, normals)
    length = np.linalg.norm(normals, axis=-1, keepdims=True)
    return np.where(length > _FLAT, normals / np.where(length > _FLAT, length, 1.0), 0.0)


def with_values(surface: Surface, values: np.ndarray) -> Surface:
    """The same patch with other control values (V, U, k): primvars that are "vertex" go as the points do."""
    weights = surface.control[..., -1:]
    return Surface(surface.u, surface.v, np.concatenate((values * weights, weights), axis=-1))


def at_segments(direction: Direction, samples: Samples) -> tuple[np.ndarray, np.ndarray]:
    """(segment, share (n,) of the way through it) of each sample, which is what "varying" values are linear in."""
    knots = direction.knots
    share = (samples.at - knots[samples.span]) / (knots[samples.span + 1] - knots[samples.span])
    return samples.span - direction.order + 1, np.clip(share, 0.0, 1.0)
