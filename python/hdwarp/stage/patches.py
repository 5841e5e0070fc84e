"""stage.patches: NurbsPatch prims -> RawMesh of their tessellation, with the normals and primvars of the surface itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np
from pxr import Usd

from hdwarp.errors import Diagnostics
from hdwarp.stage import primvars
from hdwarp.stage.columns import Primvar
from hdwarp.stage.meshes import NO_SUBSETS, RawMesh, is_left_handed, read_points
from hdwarp.stage.nurbs_surfaces import MOST_CELLS, TOLERANCE, Direction, Grid, Surface, at_segments, tessellate, with_values
from hdwarp.stage.subsets import Subsets
from hdwarp.stage.transforms import LARGEST

_FORMS = ("open", "closed", "periodic")
_SKIPPED = "the patch is skipped"


def read_patch(
    prim: Usd.Prim,
    names: Collection[str],
    varying: Sequence[tuple[str, str]],
    subset_prims: Sequence[Usd.Prim],
    inherited_normals: np.ndarray | None,
    time: Usd.TimeCode,
    path: str,
    diagnostics: Diagnostics,
    *,
    deform: Callable[[RawMesh], None],
) -> tuple[RawMesh, Subsets] | None:
    """The surface of a NurbsPatch; as `meshes.read_mesh`, which see for the arguments. ``deform``: moves the control points of a skin.

    Its triangles are within 1e-3 of the surface's size (`TOLERANCE`), as far as 512 x 512 cells reach; a note says where they do
    not. Control points are as in RenderMan and Hydra: u runs fastest, and dP/du x dP/dv is the front of a right-handed patch. Faces are the
    uv segments of USD: knot intervals, u fastest, those without length counted too. Of primvars, "vertex" is interpolated as the points
    are, "varying" (one value a corner of the segments) linearly, "uniform" is by segment; ``st`` is the parameters, 0 to 1 over the range,
    where none is authored. Normals are the surface's, whatever is authored. Forms change nothing: points and knots already say it all.
    """
    points = read_points(prim, names, time)
    if points is None or isinstance(points, str) or not len(points):
        _report_points(points, path, diagnostics)
        return None
    read = _Source(prim, names, time, path, diagnostics)
    u, v = read.direction("u"), read.direction("v")
    if u is None or v is None:
        return None
    if len(points) != u.count * v.count:
        message = f"there are {len(points)} points where uVertexCount x vVertexCount are {u.count} x {v.count}; {_SKIPPED}"
        diagnostics.error(path, "nurbs-points", f"{message}. Author counts that agree")
        return None
    weights = read.weights(len(points))
    if weights is None:
        return None
    _report_left_out(prim, names, subset_prims, path, diagnostics)
    cage = RawMesh(points, np.zeros(0, np.int32), np.zeros(0, np.int32), None, False, "none", None, {}, None, [])
    deform(cage)
    points = cage.points
    if not (np.abs(points) <= LARGEST).all():
        bad = int((~(np.abs(points) <= LARGEST)).any(axis=1).sum())
        message = f"{bad} of {len(points)} points are NaN, infinite or beyond {LARGEST:g}; {_SKIPPED}. Mend the values"
        diagnostics.error(path, "points-not-finite", message)
        return None
    _check_forms(read, u, v, points, path, diagnostics)
    control = np.concatenate((points * weights[:, None], weights[:, None]), axis=1).reshape(v.count, u.count, 4)
    surface = Surface(u, v, control)
    grid = tessellate(surface)
    if grid.error > TOLERANCE * grid.size:
        message = f"at {MOST_CELLS} x {MOST_CELLS} cells it is drawn within {grid.error / grid.size:.2g} of its size"
        diagnostics.note(path, "nurbs-resolution", f"{message}. Split the patch up for more")
    left_handed = is_left_handed(prim, names, time)
    raw = _mesh(u, v, grid, left_handed)
    raw.primvars = _primvars(prim, varying, surface, grid, time, path, diagnostics)
    if "primvars:st" not in names:
        su, sv = ((s.at - d.low) / (d.high - d.low) for s, d in ((grid.u, u), (grid.v, v)))
        st = np.stack(np.broadcast_arrays(su[None, :], sv[:, None]), axis=-1)
        raw.primvars["st"] = Primvar("vertex", st.reshape(-1, 2).astype(np.float32))
    return raw, NO_SUBSETS


class _Source:
    """The attributes of one prim, and where to complain."""

    def __init__(self, prim: Usd.Prim, names: Collection[str], time: Usd.TimeCode, path: str, diagnostics: Diagnostics) -> None:
        self.prim, self.names, self.time, self.path, self.diagnostics = prim, names, time, path, diagnostics

    def value(self, name: str) -> object:
        return self.prim.GetAttribute(name).Get(self.time) if name in self.names else None

    def error(self, code: str, message: str, cure: str) -> None:
        self.diagnostics.error(self.path, code, f"{message}; {_SKIPPED}. {cure}")

    def numbers(self, name: str) -> np.ndarray | None:
        """(n,) float64; None, with a diagnostic, for what is none."""
        value = self.value(name)
        array = np.asarray(value if value is not None else ())
        if array.ndim != 1 or (array.size and array.dtype.kind not in "fiu"):
            self.error("wrong-type", f"{name} holds {type(value).__name__}", "Author double[]")
            return None
        return array.astype(np.float64)

    def direction(self, axis: str) -> Direction | None:
        """The knots of one direction, sound; None with a diagnostic."""
        count, order = self.value(f"{axis}VertexCount"), self.value(f"{axis}Order")
        for name, value, least in ((f"{axis}Order", order, 2), (f"{axis}VertexCount", count, order)):
            if not isinstance(value, int):
                said = "is not authored" if value is None else f"holds {type(value).__name__}"
                self.error("nurbs-order", f"{name} {said}", f"Author an int, {least if isinstance(least, int) else 2} or more")
                return None
            if value < least:
                self.error("nurbs-order", f"{name} is {value}", f"Author {least} or more")
                return None
        knots = self.numbers(f"{axis}Knots")
        if knots is None:
            return None
        if len(knots) != count + order:
            message = f"{axis}Knots has {len(knots)} values where {axis}VertexCount + {axis}Order are {count + order}"
            self.error("nurbs-knots", message, "Author as many; USD wants the outermost knots too, which some programs leave out")
            return None
        if not np.isfinite(knots).all() or (np.diff(knots) < 0.0).any():
            self.error("nurbs-knots", f"{axis}Knots fall, or are not finite", "Author values that rise")
            return None
        low, high = knots[order - 1], knots[count]
        if not low < high:
            self.error("nurbs-knots", f"{axis}Knots leave no range: both ends are {low:g}", "Author values that rise")
            return None
        return Direction(knots, order, *self.limits(axis, float(low), float(high)))

    def limits(self, axis: str, low: float, high: float) -> tuple[float, float]:
        """The authored range as far as the knots reach."""
        value = self.value(f"{axis}Range")
        if value is None:
            return low, high
        wanted = np.asarray(value)
        said = f"{axis}Range is {value}"
        if wanted.shape != (2,) or wanted.dtype.kind not in "fiu":
            said = f"{axis}Range holds {type(value).__name__}"
        elif max(wanted[0], low) < min(wanted[1], high):
            found = max(float(wanted[0]), low), min(float(wanted[1]), high)
            slack = 1e-9 * (high - low)
            if wanted[0] >= low - slack and wanted[1] <= high + slack:
                return found
            said += f", beyond the knots' {low:g} to {high:g}"
            low, high = found
        self.diagnostics.warning(self.path, "nurbs-range", f"{said}; drawn from {low:g} to {high:g}. Author a range inside the knots'")
        return low, high

    def weights(self, count: int) -> np.ndarray | None:
        weights = self.numbers("pointWeights")
        if weights is None or not len(weights):
            return None if weights is None else np.ones(count)
        if len(weights) != count:
            self.error("nurbs-weights", f"pointWeights has {len(weights)} values for {count} points", "Author one a point, or none")
            return None
        if not (np.isfinite(weights) & (weights > 0.0)).all():
            bad = weights[~(np.isfinite(weights) & (weights > 0.0))][0]
            self.error("nurbs-weights", f"pointWeights holds {bad:g}", "Author finite values above 0")
            return None
        return weights / weights.max()


def _report_points(points: object, path: str, diagnostics: Diagnostics) -> None:
    if isinstance(points, str):
        diagnostics.error(path, "wrong-type", f"{points}; {_SKIPPED}. Author point3f[]")
    else:
        diagnostics.note(path, "empty-mesh", "the patch has no points at this time; nothing is drawn for it")


def _report_left_out(prim: Usd.Prim, names: Collection[str], subset_prims, path: str, diagnostics: Diagnostics) -> None:
    if any(name.startswith("trimCurve:") and prim.GetAttribute(name).HasAuthoredValue() for name in names):
        message = "trim curves are not supported yet; the patch is drawn untrimmed"
        diagnostics.warning(path, "trim-curves", message)
    if subset_prims:
        diagnostics.warning(path, "subset-type", "subsets of a NurbsPatch are not supported; it has its own material throughout")
    if "normals" in names or "primvars:normals" in names:
        diagnostics.note(path, "nurbs-normals", "authored normals are ignored; those of the surface are used")


def _check_forms(read: _Source, u: Direction, v: Direction, points: np.ndarray, path: str, diagnostics: Diagnostics) -> None:
    """A form that the points do not keep is told: nothing is closed that is not authored closed."""
    rows = points.reshape(v.count, u.count, 3)
    for axis, direction, net in (("u", u, rows.swapaxes(0, 1)), ("v", v, rows)):
        form = read.value(f"{axis}Form")
        if form is None:
            continue
        if form not in _FORMS:
            diagnostics.warning(path, "nurbs-form", f"{axis}Form is {form!r}; read as open. Author one of {', '.join(_FORMS)}")
            continue
        overlap = {"open": 0, "closed": 1, "periodic": direction.order - 1}[form]
        size = float(np.abs(points - points[0]).max())
        if overlap and np.abs(net[:overlap] - net[len(net) - overlap :]).max() > 1e-5 * size:
            ends = "first and last points" if overlap == 1 else f"first and last {overlap} points"
            message = f"{axis}Form is {form}, and its {ends} are not the same; drawn as its points and knots say. Repeat them"
            diagnostics.note(path, "nurbs-form", message)


def _mesh(u: Direction, v: Direction, grid: Grid, left_handed: bool) -> RawMesh:
    """The cells of the grid as quads, in the order of the segments they are in."""
    corner = (grid.v.starts[:, None] * len(grid.u.at) + grid.u.starts).reshape(-1)
    segment = (grid.v.cell_segment[:, None] * u.segment_count + grid.u.cell_segment).reshape(-1)
    order = np.argsort(segment, kind="stable")
    corner, segment, across = corner[order], segment[order], len(grid.u.at)
    quads = np.stack((corner, corner + 1, corner + across + 1, corner + across), axis=1).astype(np.int32)
    normals = (-grid.normals if left_handed else grid.normals).reshape(-1, 3).astype(np.float32)
    counts = np.full(len(quads), 4, np.int32)
    points = grid.points.reshape(-1, 3).astype(np.float32)
    raw = RawMesh(points, counts, quads.reshape(-1), None, left_handed, "none", Primvar("vertex", normals), {}, None, [])
    raw.element, raw.element_count = segment.astype(np.int32), u.segment_count * v.segment_count
    return raw


def _primvars(prim: Usd.Prim, varying, surface: Surface, grid: Grid, time, path: str, diagnostics: Diagnostics):
    u, v = surface.u, surface.v
    corners = u.segment_count + 1, v.segment_count + 1
    expected = {"uniform": u.segment_count * v.segment_count, "vertex": u.count * v.count, "varying": corners[0] * corners[1]}
    kept: dict[str, Primvar] = {}
    for name, interpolated in varying:
        if name == "primvars:normals":
            continue
        if interpolated == "varying" and primvars.item_count(prim, name, time) == expected["vertex"] != expected["varying"]:
            message = f"{name} is varying and has a value a point, not a segment's corner ({expected['varying']}); read as vertex"
            diagnostics.note(path, "primvar-count", message)
            expected_here, interpolated = {"vertex": expected["vertex"], "varying": expected["vertex"]}, "vertex"
        else:
            expected_here = expected
        found = primvars.read_values(prim, name, time, expected_here, interpolated, path, diagnostics)
        if found is None:
            continue
        values, indices = found
        short = name[len(primvars.PREFIX) :]
        if interpolated == "uniform":
            kept[short] = Primvar("uniform", values, indices)
            continue
        flat = (values if indices is None else values[indices]).astype(np.float64)
        if interpolated == "vertex":
            net = with_values(surface, flat.reshape(v.count, u.count, -1))
            flat = net.values(grid.u.at, grid.u.span, grid.v.at, grid.v.span)
        else:
            flat = _linear(flat.reshape(corners[1], corners[0], -1), surface, grid)
        kept[short] = Primvar("vertex", flat.reshape(-1, flat.shape[-1]).astype(np.float32))
    return kept


def _linear(values: np.ndarray, surface: Surface, grid: Grid) -> np.ndarray:
    """(V, U, k) of values at the corners of segments, linear in each direction within a segment."""
    (u, s), (v, t) = at_segments(surface.u, grid.u), at_segments(surface.v, grid.v)
    rows = values[v] * (1.0 - t)[:, None, None] + values[v + 1] * t[:, None, None]
    return rows[:, u] * (1.0 - s)[:, None] + rows[:, u + 1] * s[:, None]
