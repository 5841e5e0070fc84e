"""delegate.mesh_rows: a row for every different mesh, whoever draws it. NumPy only."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hdwarp.delegate.change_tracker import ChangeTracker, DirtyBits
from hdwarp.delegate.mesh_content import mesh_sketch, same_bits, same_mesh, same_primvars, same_topology
from hdwarp.delegate.rows import RowAllocator
from hdwarp.stage.columns import Gprim, GprimKey, MeshGeometry


class MeshRows:
    """Meshes are known by their content: what equals a mesh that has a row is taken for that very object from then on."""

    def __init__(self, tracker: ChangeTracker) -> None:
        self.meshes: dict[int, MeshGeometry] = {}  # by row
        self._tracker, self.allocator = tracker, RowAllocator()
        self.renumberings = 0  # counts calls of `renumber`
        self._rows: dict[MeshGeometry, int] = {}
        self._users: dict[int, int] = {}  # gprims by row
        self._alike: dict[tuple, list[MeshGeometry]] = {}  # by sketch

    def __len__(self) -> int:
        return len(self.meshes)

    def row(self, mesh: MeshGeometry | None) -> int:
        """-1 for no mesh."""
        return -1 if mesh is None else self._rows[mesh]

    def apply(self, gprims: Mapping[GprimKey, Gprim | None], before: Mapping[GprimKey, Gprim]) -> tuple[int, int, int]:
        """Follow gprims that replace those of ``before``, None: that are gone; (meshes inserted, removed, moved).

        A row whose users all go on to the same new mesh with the same triangles keeps its number, and its tree.
        """
        leaving: dict[int, list[MeshGeometry | None]] = {}  # row -> for each gprim that leaves it the mesh it goes to
        arriving: dict[MeshGeometry, int] = {}  # and how many gprims it gets
        known: dict[MeshGeometry, MeshGeometry] = {}
        for key, gprim in gprims.items():
            old = before.get(key)
            mesh, was = None if gprim is None else gprim.mesh, None if old is None else old.mesh
            if mesh is was:
                continue
            if mesh is not None:
                if mesh not in self._rows:
                    if mesh not in known:
                        known[mesh] = self._first_like(mesh)
                    mesh = gprim.mesh = known[mesh]
                if mesh is was:
                    continue
                arriving[mesh] = arriving.get(mesh, 0) + 1
            if was is not None:
                leaving.setdefault(self._rows[was], []).append(mesh)
        for row, targets in leaving.items():
            self._users[row] -= len(targets)
        moved = sum([self._moves_on(row, targets) for row, targets in leaving.items() if self.meshes[row] not in arriving])
        inserted = []
        for mesh, users in arriving.items():
            row = self._rows.get(mesh)
            if row is None:
                row = self._rows[mesh] = self.allocator.allocate(1)
                self.meshes[row] = mesh
                self._users[row] = 0
                inserted.append(row)
            self._users[row] += users
        self._tracker.mark("meshes", np.array(inserted, np.int64), DirtyBits.ALL)
        removed = [row for row in leaving if not self._users[row]]
        for row in removed:
            del self._users[row]
            self._forget(self.meshes.pop(row))
            self.allocator.release(row, 1)
        self._tracker.mark("meshes", np.array(removed, np.int64), DirtyBits.VISIBILITY)
        return len(inserted), len(removed), moved

    def renumber(self) -> np.ndarray:
        """Give all meshes other rows, without gaps, all dirty; the new row by old one, -1 of those that were free and, the last, of no
        mesh."""
        old = sorted(self.meshes)
        moved = np.full(self.allocator.peak + 1, -1, np.int32)
        moved[old] = np.arange(len(old))
        meshes, self._users = [self.meshes[row] for row in old], {new: self._users[row] for new, row in enumerate(old)}
        self.meshes.clear()  # the index has it too
        self.meshes.update(enumerate(meshes))
        self._rows = {mesh: row for row, mesh in enumerate(meshes)}
        self.allocator = RowAllocator(len(old))
        self._tracker.forget_rows("meshes")
        self._tracker.mark("meshes", np.arange(len(old)), DirtyBits.ALL)
        self.renumberings += 1
        return moved

    def _first_like(self, mesh: MeshGeometry) -> MeshGeometry:
        alike = self._alike.setdefault(mesh_sketch(mesh), [])
        for known in alike:
            if same_mesh(known, mesh):
                return known
        alike.append(mesh)
        return mesh

    def _moves_on(self, row: int, targets: list[MeshGeometry | None]) -> bool:
        """Whether the row moves on with those who have left it. Nobody comes to its mesh."""
        target, before = targets[0], self.meshes[row]
        if self._users[row] or target is None or target in self._rows or any(mesh is not target for mesh in targets):
            return False
        if not same_topology(before, target):
            return False
        self._forget(before)
        self._rows[target], self.meshes[row] = row, target
        self._tracker.mark("meshes", np.array([row]), _differences(before, target))
        return True

    def _forget(self, mesh: MeshGeometry) -> None:
        del self._rows[mesh]
        sketch = mesh_sketch(mesh)
        self._alike[sketch].remove(mesh)
        if not self._alike[sketch]:
            del self._alike[sketch]


def _differences(before: MeshGeometry, after: MeshGeometry) -> DirtyBits:
    """What differs between two meshes of the same triangles."""
    same = before.is_moved == after.is_moved and same_bits(before.points, after.points) and same_bits(before.radii, after.radii)
    bits = DirtyBits.CLEAN if same else DirtyBits.POINTS
    return bits if bits and same_primvars(before, after) else bits | DirtyBits.PRIMVAR  # equal in both: the normals differ
