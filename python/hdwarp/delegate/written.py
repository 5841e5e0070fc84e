"""delegate.written: which prims have points or primvars that a caller sets in place of the stage's. NumPy only.

The render index holds stand-ins for such prims: records with a mesh of their own, and zeros of the right shape where the caller's values
go. The values themselves are device data (`tables.written`).
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from hdwarp.delegate.mesh_content import same_bits, same_primvar, same_topology
from hdwarp.errors import ArgumentError, NotSupported
from hdwarp.stage.columns import GeometryKind, Gprim, GprimKey, MeshGeometry, Primvar, StageChanges

if TYPE_CHECKING:
    from hdwarp.delegate.render_index import RenderIndex

INTERPOLATIONS = ("vertex", "uniform", "faceVarying", "constant")
"""In the order in which they are tried for a number of values that fits several."""

_CURE = "Author them on the stage and call scene.sync()"


@dataclass(frozen=True, slots=True)
class WrittenPrimvar:
    interpolation: str
    shape: tuple[int, int]  # values, components

    @property
    def varies(self) -> bool:
        return self.interpolation != "constant"


@dataclass(slots=True, eq=False)
class _Written:
    """What is set on one prim."""

    gprims: dict[GprimKey, Gprim]  # as the stage has them
    points: bool = False
    primvars: dict[str, WrittenPrimvar] = field(default_factory=dict)
    stand_ins: dict[int, tuple[MeshGeometry, MeshGeometry]] = field(default_factory=dict)  # by id: (the stage's mesh, what stands for it)

    @property
    def is_empty(self) -> bool:
        return not self.gprims or not (self.points or self.primvars)


class WrittenGprims:
    """What is set stays until the stage has something else in its place: other points or primvar values of that very prim, another
    topology, no such prim. The stage's values are compared, not its edits."""

    def __init__(self, index: RenderIndex) -> None:
        self._index = index
        self._written: dict[str, _Written] = {}

    @property
    def paths_of_points(self) -> list[str]:
        """Prims whose points are set."""
        return [path for path, written in self._written.items() if written.points]

    def keys(self, path: str) -> list[GprimKey]:
        """The gprims at a path: several where more than one point instancer draws it."""
        keys = self._index.gprim_order
        first = last = bisect_left(keys, (path,))
        while last < len(keys) and keys[last][0] == path:
            last += 1
        return keys[first:last]

    def mesh_rows(self, path: str) -> list[int]:
        """Mesh rows of a prim, each once."""
        meshes = [self._index.gprims[key].mesh for key in self.keys(path)]
        return list(dict.fromkeys(self._index.mesh_rows.row(mesh) for mesh in meshes if mesh is not None))

    def mesh(self, path: str) -> MeshGeometry:
        """What is drawn at a path at which points may be set, as the stage has it. Raises ArgumentError for a shape, and where nothing
        is drawn."""
        gprim = next(iter(self._stage_gprims(path).values()))
        if gprim.mesh is None:
            raise ArgumentError(f"<{path}> is no mesh but a {gprim.kind.name.lower()}; points can be set of meshes and points")
        return gprim.mesh

    def primvar(self, path: str, name: str) -> WrittenPrimvar | None:
        """How a primvar of a prim is set, None: the stage's counts."""
        written = self._written.get(path)
        return None if written is None else written.primvars.get(name)

    # -- setting ----------------------------------------------------------------------------------------------------------

    def take_points(self, path: str, shape: tuple[int, int]) -> bool:
        """From now on the caller sets the points of a prim, ``shape`` of them: as many as are authored, drawn or not. Whether the index has
        changed for it: at the first call. Raises ArgumentError for a path at which neither a mesh nor points are drawn and for another
        number of points, NotSupported for curves."""
        mesh = self.mesh(path)
        if mesh.form.is_curve:
            raise NotSupported(f"points of <{path}>: points of curves cannot be set on the device, their pieces depend on them. {_CURE}")
        count = authored_point_count(mesh)
        if shape != (count, 3):
            drawn = f", all that are authored; {len(mesh.points)} of them are drawn" if len(mesh.points) < count else ""
            raise ArgumentError(f"points of <{path}> have shape {shape}; expected ({count}, 3){drawn}")
        written = self._written.get(path)
        if written is not None and written.points:
            return False
        written = self._begin(path)
        written.points = True
        self._stand_in(written)
        return True

    def take_primvar(self, path: str, name: str, shape: tuple[int, int], interpolation: str | None) -> bool:
        """The same for a primvar, ``shape`` (values, components). ``interpolation``: None: the first of `INTERPOLATIONS` that so many
        values fit. Raises ArgumentError for a path at which nothing is drawn and a number of values that does not fit, NotSupported for
        what curves and points are built with, and for more than one value of curves."""
        gprim = next(iter(self._stage_gprims(path).values()))
        _check_name(path, name, gprim)
        if interpolation is not None and interpolation not in (*INTERPOLATIONS, "varying"):
            raise ArgumentError(f"interpolation={interpolation!r}: expected one of {', '.join(INTERPOLATIONS)}")
        sizes = _value_counts(gprim)
        if gprim.kind.is_curve and (shape[0] != 1 or interpolation not in (None, "constant")):
            given = f"{shape[0]} values" if interpolation is None else f"interpolation {interpolation!r}"
            raise NotSupported(f"primvar {name!r} of <{path}> has {given}; of curves one constant value can be set on the device. {_CURE}")
        if interpolation == "varying":
            interpolation = "vertex"
        if interpolation == "vertex" and gprim.kind == GeometryKind.POINTS:
            interpolation = "uniform"  # a value a point, whichever it is called
        wanted = list(sizes) if interpolation is None else [interpolation]
        fitting = [kind for kind in wanted if sizes.get(kind) == shape[0]]
        if not fitting:
            expected = " or ".join(f"{sizes[kind]} ({kind})" for kind in wanted if kind in sizes) or "1 (constant; it is no mesh)"
            raise ArgumentError(f"primvar {name!r} of <{path}> has {shape[0]} values; expected {expected}")
        if not 1 <= shape[1] <= 4:
            raise ArgumentError(f"primvar {name!r} of <{path}> has {shape[1]} components; expected 1 to 4")
        if name == "normals" and shape[1] != 3:
            raise ArgumentError(f"normals of <{path}> have {shape[1]} components; expected 3")
        found = WrittenPrimvar(fitting[0], shape)
        if self.primvar(path, name) == found:
            return False
        written = self._begin(path)
        written.primvars[name] = found
        self._stand_in(written)
        return True

    def give_back_points(self, path: str) -> bool:
        """Give a prim the stage's points again; whether the index has changed. Raises ArgumentError for a path at which neither a mesh,
        points nor curves are drawn."""
        self.mesh(path)
        written = self._written.get(path)
        if written is None or not written.points:
            return False
        written.points = False
        self._stand_in(written)
        return True

    def give_back_primvar(self, path: str, name: str) -> bool:
        """The same for a primvar. Raises ArgumentError for a path at which nothing is drawn."""
        self._stage_gprims(path)
        if self.primvar(path, name) is None:
            return False
        written = self._written[path]
        del written.primvars[name]
        self._stand_in(written)
        return True

    # -- following the stage ----------------------------------------------------------------------------------------------

    def follow(self, changes: StageChanges) -> None:
        """Put stand-ins into ``changes``, which come from the stage, and let go of what they have other values for."""
        if not self._written:
            return
        touched: dict[str, list[GprimKey]] = {}
        for key in changes.gprims:
            if key[0] in self._written:
                touched.setdefault(key[0], []).append(key)
        if changes.complete:
            for path, written in self._written.items():
                keys = touched.setdefault(path, [])
                keys += [key for key in written.gprims if key not in changes.gprims]
        for path, keys in touched.items():
            written = self._written[path]
            for key in keys:
                before, now = written.gprims.pop(key, None), changes.gprims.get(key)
                if now is not None:
                    written.gprims[key] = now
                    _let_go(written, now if before is None else before, now)
            changes.gprims.update(self._substitutes(path, written))
            if written.is_empty:
                del self._written[path]

    # -- inside -----------------------------------------------------------------------------------------------------------

    def _stage_gprims(self, path: str) -> dict[GprimKey, Gprim]:
        if path in self._written:
            return self._written[path].gprims
        keys = self.keys(path)
        if not keys:
            raise ArgumentError(self._nothing_at(path))
        return {key: self._index.gprims[key] for key in keys}

    def _nothing_at(self, path: str) -> str:
        index = self._index
        for group in index.worlds.groups:
            for world in range(group.first, group.first + group.count) if group.placements is not None else ():
                root = group.root_label(world)
                own = group.root + path[len(root) :]
                if (path == root or path.startswith(f"{root}/")) and self.keys(own):
                    return f"<{path}> is the copy of <{own}> in world {world}: all worlds share its geometry; name <{own}>, and all change"
        below = [other for other in index.prim_paths if other.startswith(f"{path}/")]
        paths = below or index.prim_paths
        named = ", ".join(f"<{other}>" for other in paths[:5]) + (", ..." if len(paths) > 5 else "")
        return f"nothing is drawn at <{path}>; {'below it are' if below else 'the scene draws'} {named or 'nothing'}"

    def _begin(self, path: str) -> _Written:
        if path not in self._written:
            self._written[path] = _Written(self._stage_gprims(path))
        return self._written[path]

    def _stand_in(self, written: _Written) -> None:
        """Bring what is set, or no longer set, into the index."""
        path = next(iter(written.gprims))[0]
        written.stand_ins.clear()
        self._index.apply_as_is(StageChanges(gprims=self._substitutes(path, written)))
        if written.is_empty:
            del self._written[path]

    def _substitutes(self, path: str, written: _Written) -> dict[GprimKey, Gprim]:
        if written.is_empty:
            return dict(written.gprims)
        found = {}
        stand_ins = {}
        for key, gprim in written.gprims.items():
            mesh = gprim.mesh
            if mesh is not None:
                if id(mesh) not in stand_ins:
                    kept = written.stand_ins.get(id(mesh))
                    stand_ins[id(mesh)] = kept if kept is not None and kept[0] is mesh else (mesh, _stand_in_for(mesh, path, written))
                mesh = stand_ins[id(mesh)][1]
            constants = {name: value for name, value in gprim.constants.items() if name not in written.primvars}
            for name, primvar in written.primvars.items():
                if not primvar.varies and name != "normals":
                    constants[name] = np.zeros(primvar.shape[1], np.float32)
            own = {name: value for name, value in gprim.instance_primvars.items() if name not in written.primvars}
            found[key] = replace(gprim, mesh=mesh, constants=constants, instance_primvars=own)
        written.stand_ins = stand_ins
        return found


def _stand_in_for(mesh: MeshGeometry, path: str, written: _Written) -> MeshGeometry:
    """A mesh that no other prim has, with room for the values that are set; the mesh itself where none of them are its own."""
    primvars, normals = {name: primvar for name, primvar in mesh.primvars.items() if name not in written.primvars}, mesh.normals
    for name, primvar in written.primvars.items():
        values = np.broadcast_to(np.float32(0.0), primvar.shape)  # takes no memory
        if name == "normals":
            once = None if primvar.varies else np.zeros(mesh.face_count, np.int32)
            normals = Primvar(primvar.interpolation if primvar.varies else "uniform", values, once)
        elif primvar.varies:
            primvars[name] = Primvar(primvar.interpolation, values)
    if not written.points and normals is mesh.normals and primvars.keys() == mesh.primvars.keys() and not _any_varies(written):
        return mesh
    return replace(mesh, normals=normals, primvars=primvars, owner=path, is_moved=written.points)


def authored_point_count(mesh: MeshGeometry) -> int:
    """How many points the prim of a mesh or of points has on the stage: the balls are those of them that can be drawn."""
    return mesh.face_count if mesh.form == GeometryKind.POINTS else len(mesh.points)


def drawn_numbers(mesh: MeshGeometry) -> np.ndarray | None:
    """(P,) int32: which of the authored points `points` are; None: all of them, in order."""
    return mesh.triangle_face if authored_point_count(mesh) != len(mesh.points) else None


def _value_counts(gprim: Gprim) -> dict[str, int]:
    """How many values a primvar of each interpolation has that can be set of a prim."""
    mesh = gprim.mesh
    if gprim.kind == GeometryKind.MESH:
        return {"vertex": len(mesh.points), "uniform": mesh.face_count, "faceVarying": mesh.corner_count, "constant": 1}
    if gprim.kind == GeometryKind.POINTS:
        return {"uniform": mesh.face_count, "constant": 1}
    return {"constant": 1}


def _check_name(path: str, name: str, gprim: Gprim) -> None:
    """Refuse primvars that a prim is not merely shaded with."""
    if gprim.kind.is_swept and name == "widths":
        raise NotSupported(f"widths of <{path}> cannot be set on the device: what is drawn is built with them. {_CURE}")
    if name != "normals" or gprim.kind == GeometryKind.MESH:
        return
    if gprim.kind.is_curve:
        raise NotSupported(f"normals of <{path}> cannot be set on the device: curves with normals are ribbons, built with them. {_CURE}")
    raise ArgumentError(f"<{path}> is no mesh but {gprim.kind.name.lower()}: it has normals of its own; they can be set of meshes")


def _any_varies(written: _Written) -> bool:
    return any(primvar.varies for primvar in written.primvars.values())


def _let_go(written: _Written, before: Gprim, now: Gprim) -> None:
    """Forget what the stage has other values for now."""
    a, b, primvars = before.mesh, now.mesh, written.primvars
    if a is not b and (a is None or b is None or not same_topology(a, b)):
        written.points = False
        written.primvars = {name: primvar for name, primvar in written.primvars.items() if not primvar.varies and name != "normals"}
    elif a is not b and not same_bits(a.points, b.points):
        written.points = False
    written.primvars = {name: primvar for name, primvar in written.primvars.items() if _has_same(before, now, name)}
    if a is not b or len(primvars) != len(written.primvars):
        written.stand_ins.clear()


def _has_same(before: Gprim, now: Gprim, name: str) -> bool:
    """Whether two records have the same values of a primvar."""
    for a, b in ((before.constants, now.constants), (before.instance_primvars, now.instance_primvars)):
        if not same_bits(a.get(name), b.get(name)):
            return False
    if before.mesh is now.mesh or before.mesh is None or now.mesh is None:
        return True
    if name == "normals":
        return same_primvar(before.mesh.normals, now.mesh.normals)
    return same_primvar(before.mesh.primvars.get(name), now.mesh.primvars.get(name))
