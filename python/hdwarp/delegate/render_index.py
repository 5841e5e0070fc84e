"""delegate.render_index: Hydra's render index as rows: what is drawn, under which row, with which ids. NumPy only; no USD, no Warp."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from hdwarp.delegate.change_tracker import ChangeTracker, DirtyBits
from hdwarp.delegate.checks import check_record
from hdwarp.delegate.gprim_order import GprimOrder
from hdwarp.delegate.mesh_rows import MeshRows
from hdwarp.delegate.previous_rows import PreviousRows
from hdwarp.delegate.rows import HostColumns, RowMap
from hdwarp.delegate.worlds import Worlds
from hdwarp.delegate.written import WrittenGprims
from hdwarp.errors import ArgumentError
from hdwarp.stage.columns import Body, Camera, Gprim, GprimKey, Instancer, Site, StageChanges, StageColumns, gprim_keys, is_seen_by
from hdwarp.stage.links import is_gprim_linked, link_sets
from hdwarp.stage.looks import Light, LinkRules, Material

_RECORDS = (Gprim, Material, Body, Camera, Site, Light)


_BY_PATH = ("materials", "bodies", "cameras", "sites", "lights")


@dataclass(frozen=True, slots=True)
class IndexCounts:
    """What one change of the index came to, in rows."""

    meshes_inserted: int = 0
    meshes_removed: int = 0
    meshes_moved: int = 0  # new points, same triangles
    instances_inserted: int = 0
    instances_removed: int = 0
    instances_changed: int = 0
    materials_changed: int = 0
    bodies_changed: int = 0
    cameras_changed: int = 0
    lights_changed: int = 0


class RenderIndex:
    """Rows of everything drawn. A row keeps its number while its prim lives and `renumberings` stays; what is given out (primId,
    materialId, bodyId, the rank that settles ties) are ranks in sorted path order, so that they depend on what the stage holds and not on
    its history. Bodies are few and looked up by rank: their row is their rank."""

    def __init__(self, worlds: Worlds | None = None) -> None:
        """``worlds``: which worlds there are; None: one."""
        self.worlds = Worlds() if worlds is None else worlds
        self.tracker = ChangeTracker()
        self.previous: PreviousRows | None = None  # what a frame has changed, where somebody wants to know (`SceneTables.keep_previous`)
        self.mesh_rows = MeshRows(self.tracker)
        self.gprim_rows, self.subset_rows = RowMap(), RowMap()
        self.material_rows, self.camera_rows, self.site_rows, self.light_rows = RowMap(), RowMap(), RowMap(), RowMap()
        self.meshes = self.mesh_rows.meshes  # by row
        self.gprims: dict[GprimKey, Gprim] = {}
        self.materials: dict[int, Material] = {}
        self.bodies: dict[str, Body] = {}
        self.cameras: dict[int, Camera] = {}
        self.sites: dict[int, Site] = {}
        self.lights: dict[int, Light] = {}
        self.link_sets: dict[LinkRules, int] = {}  # bit of the instance column `light_links`, by what lights are linked to
        self.instances = HostColumns(
            transform=(np.float64, (3, 4), 0.0),  # world_from_object, metres
            kind=(np.int32, (), -1),  # -1: unused row
            mesh=(np.int32, (), -1),
            shape=(np.float32, (4,), 0.0),
            material=(np.int32, (), -1),
            subset_start=(np.int32, (), 0),
            subset_count=(np.int32, (), 0),
            body=(np.int32, (), -1),
            world=(np.int32, (), 0),
            single_sided=(np.int32, (), 0),  # 2: whatever the settings
            visual=(np.int32, (), 1),
            other_lod=(np.int32, (), 0),  # 1: in an item of a UsdLod root that is not the default
            collision=(np.int32, (), 0),
            instance_id=(np.int32, (), 0),
            prim_id=(np.int32, (), -1),
            rank=(np.int32, (), -1),
            light_links=(np.int32, (), 0),
        )
        self.subsets = HostColumns(material=(np.int32, (), -1))
        self.material_id = np.zeros(0, np.int32)  # by material row
        self.material_paths: list[str] = []
        self.body_paths: list[str] = []
        self.instance_count = 0
        self.written = WrittenGprims(self)  # points and primvars that a caller sets in place of the stage's
        self.renumberings = 0  # counts how often instances, subsets and materials were given other rows; meshes: `MeshRows.renumberings`
        self._order = GprimOrder()
        self._body_row: dict[str, int] = {}
        self._instancers: dict[int, Instancer] | None = None  # made when somebody asks

    # -- looking up -------------------------------------------------------------------------------------------------------

    @property
    def gprim_order(self) -> list[GprimKey]:
        """primId -> key, sorted."""
        return self._order.keys

    @property
    def prim_paths(self) -> list[str]:
        """primId -> authored path."""
        return self._order.paths

    def prim_path(self, prim_id: int, instance_id: int | None = None) -> str | None:
        """Authored path of what ``primId`` names; None for -1 (a miss). ``instance_id``: instances of a prim share its path; one that the
        prim does not have is refused. Raises ArgumentError for ids that are not there."""
        if prim_id < 0:
            return None
        if prim_id >= len(self.prim_paths):
            raise ArgumentError(f"primId {prim_id} is out of range: the scene has {len(self.prim_paths)} prims")
        if instance_id is not None:
            self.instance_ids(prim_id, instance_id)
        return self.prim_paths[prim_id]

    def instance_ids(self, prim_id: int, instance_id: int) -> tuple[int, ...]:
        """Authored ids of an instance, outermost instancer first; empty for what no point instancer draws. Raises ArgumentError for ids
        that are not there."""
        return authored_ids(self.instancers(), self.prim_path(prim_id) and prim_id, instance_id)

    def instancers(self) -> Mapping[int, Instancer]:
        """primId -> the point instancer that draws it, of those that one draws. Never written to: whoever keeps it keeps what is now."""
        if self._instancers is None:
            gprims, keys = self.gprims, self.gprim_order
            self._instancers = {i: gprims[key].instancer for i, key in enumerate(keys) if key[1]}
        return self._instancers

    def mesh_row(self, prim: str | int) -> int:
        """Mesh row of a prim by path or primId: of a mesh, points or curves; -1 for a shape and for what the scene does not draw."""
        keys = self.gprim_order
        prim = prim if isinstance(prim, int | np.integer) else str(prim)  # paths may be Sdf's
        prim_id = bisect_left(keys, (prim,)) if isinstance(prim, str) else prim
        if not 0 <= prim_id < len(keys) or (isinstance(prim, str) and keys[prim_id][0] != prim):
            return -1
        return int(self.instances["mesh"][self.gprim_rows[keys[prim_id]]])

    def body_row(self, path: str) -> int:
        """Row of a body, -1 for none."""
        return self._body_row.get(path, -1)

    def are_bound(self, materials: np.ndarray) -> np.ndarray:
        """(n,) bool: which of these material rows something drawn is bound to, as a whole or in part."""
        host = self.instances
        parts = np.flatnonzero((host["subset_count"] > 0) & (host["kind"] >= 0))
        starts, first = np.unique(host["subset_start"][parts], return_index=True)
        runs = zip(starts.tolist(), host["subset_count"][parts[first]].tolist(), strict=True)
        bound = [host["material"], *(self.subsets["material"][start : start + count] for start, count in runs)]
        return np.isin(materials, np.concatenate(bound))

    # -- Hydra's one by one -----------------------------------------------------------------------------------------------

    def insert(self, *items: Gprim | Material | Body | Camera | Site | Light) -> IndexCounts:
        """Insert prims, or replace those of the same path (gprims: of the same key; one without instances is as good as removed).

        Records are not to be written to afterwards: insert another one. Raises ArgumentError, and changes nothing, for what is no record
        or has numbers that lead nowhere.
        """
        for item in items:
            check_record(item, _RECORDS)
        gprims = [item for item in items if isinstance(item, Gprim)]
        changes = StageChanges(gprims=dict(gprim_keys(gprims)))
        empty = {gprim.path for gprim in gprims if not len(gprim.transforms)}
        changes.gprims.update(dict.fromkeys(key for key in self.gprims if key[0] in empty) if empty else {})
        tables = {Material: changes.materials, Body: changes.bodies, Camera: changes.cameras, Site: changes.sites, Light: changes.lights}
        for item in items:
            if not isinstance(item, Gprim):
                tables[type(item)][item.path] = item
        self._add_users(changes)
        return self.apply(changes)

    def remove(self, path: str) -> IndexCounts:
        """Remove whatever has this very path. Raises ArgumentError where nothing has."""
        changes = StageChanges(gprims=dict.fromkeys(key for key in self.gprim_order if key[0] == path))
        if path in self.bodies:
            changes.bodies[path] = None
        for table in ("material", "camera", "site", "light"):
            if path in getattr(self, f"{table}_rows"):
                getattr(changes, f"{table}s")[path] = None
        if not changes:
            raise ArgumentError(f"nothing to remove: <{path}> is not in the render index")
        self._add_users(changes)
        return self.apply(changes)

    def _add_users(self, changes: StageChanges) -> None:
        """Gprims and cameras that name a material or a body which comes or goes are looked at again."""
        names = {path for path, item in changes.materials.items() if (item is None) == (path in self.material_rows)}
        names |= {path for path, item in changes.bodies.items() if (item is None) == (path in self.bodies)}
        if not names:
            return
        for key, gprim in self.gprims.items():
            if not names.isdisjoint((gprim.material, gprim.body, *gprim.subset_materials)):
                changes.gprims.setdefault(key, gprim)

    # -- many changes at once ---------------------------------------------------------------------------------------------

    def sync(self, columns: StageColumns) -> IndexCounts:
        """Make the rows those of ``columns``: what they do not hold is removed. Raises as `insert`."""
        for item in (*columns.gprims, *columns.materials, *columns.bodies, *columns.cameras, *columns.sites, *columns.lights):
            check_record(item, _RECORDS)
        named = {name: {item.path: item for item in getattr(columns, name)} for name in _BY_PATH}
        return self.apply(StageChanges(complete=True, gprims=dict(gprim_keys(columns.gprims)), **named))

    def apply(self, changes: StageChanges) -> IndexCounts:
        """Insert what is new, remove what is gone, and mark what differs as dirty. What a caller has set stays: see `written`."""
        self.written.follow(changes)
        return self.apply_as_is(changes)

    def apply_as_is(self, changes: StageChanges) -> IndexCounts:
        """`apply` of records that are to be in the index as they are."""
        if self.previous is not None:
            self.previous.note(self, changes)
        complete = changes.complete
        materials_changed = self._apply_rows("materials", self.material_rows, self.materials, changes.materials, complete)
        bodies_changed, rows_moved = self._apply_bodies(changes.bodies, complete)
        cameras_changed = self._apply_rows("cameras", self.camera_rows, self.cameras, changes.cameras, complete)
        self._apply_rows("sites", self.site_rows, self.sites, changes.sites, complete)
        lights_changed = self._apply_rows("lights", self.light_rows, self.lights, changes.lights, complete)
        if materials_changed and sorted(self.material_rows) != self.material_paths:
            self._rank_materials()
        if rows_moved is not None:
            self._renumber_bodies(rows_moved)
        gprims = dict(changes.gprims)
        if complete:
            gprims |= dict.fromkeys(self.gprims.keys() - gprims.keys())
        meshes = self.mesh_rows.apply(gprims, self.gprims)
        sets = link_sets(self.lights.values()) if lights_changed else self.link_sets
        if sets != self.link_sets:
            self.link_sets = sets
            self._link(self.gprims)
        inserted, removed, changed = self._apply_gprims(gprims)
        if any(rows.allocator.is_sparse for rows in (self.gprim_rows, self.subset_rows, self.mesh_rows)):
            self._renumber()
        return IndexCounts(*meshes, inserted, removed, changed, materials_changed, bodies_changed, cameras_changed, lights_changed)

    def _apply_rows(self, table: str, rows: RowMap, items: dict, changes: Mapping[str, object], complete: bool) -> int:
        """Rows keyed by path whose items are small records; dirty where the record differs."""
        gone = [path for path, item in changes.items() if item is None and path in rows]
        if complete:
            gone += [path for path in rows if path not in changes]
        for path in gone:
            row = rows.remove(path)[0]
            del items[row]
            self.tracker.mark(table, np.array([row]), DirtyBits.VISIBILITY)
        changed = len(gone)
        for path, item in changes.items():
            if item is None:
                continue
            known = path in rows
            row = rows.insert(path)
            if not known or not _same_record(items[row], item):
                self.tracker.mark(table, np.array([row]), _record_bits(items[row], item) if known else DirtyBits.ALL)
                changed += 1
            items[row] = item
        return changed

    def _rank_materials(self) -> None:
        self.material_paths = sorted(self.material_rows)
        before, self.material_id = self.material_id, np.full(self.material_rows.allocator.size, -1, np.int32)
        rows = np.array([self.material_rows[path] for path in self.material_paths], np.int64)
        self.material_id[rows] = np.arange(len(rows))
        is_new = np.ones(len(self.material_id), bool)
        known = rows[rows < len(before)]
        is_new[known] = self.material_id[known] != before[known]
        self.tracker.mark("materials", rows[is_new[rows]], DirtyBits.IDS)

    def _apply_bodies(self, changes: Mapping[str, Body | None], complete: bool) -> tuple[int, np.ndarray | None]:
        """(bodies that differ, new row by old row where rows moved, -1 for those gone)."""
        gone = [path for path, body in changes.items() if body is None and path in self.bodies]
        if complete:
            gone += [path for path in self.bodies if path not in changes]
        for path in gone:
            del self.bodies[path]
        live = {path: body for path, body in changes.items() if body is not None}
        changed = [path for path, body in live.items() if path not in self.bodies or not _same_record(self.bodies[path], body)]
        self.bodies.update(live)
        moved = None
        if gone or len(self.bodies) != len(self.body_paths):
            before, self.body_paths = self.body_paths, sorted(self.bodies)
            self._body_row = {path: row for row, path in enumerate(self.body_paths)}
            moved = np.array([self._body_row.get(path, -1) for path in before] + [-1], np.int32)
            self.tracker.mark("bodies", np.arange(max(len(before), len(self.body_paths))), DirtyBits.ALL)
        else:
            self.tracker.mark("bodies", np.array([self._body_row[path] for path in changed], np.int64), DirtyBits.TRANSFORM)
        return len(changed) + len(gone), moved

    def _renumber_bodies(self, moved: np.ndarray) -> None:
        column = self.instances["body"]
        renumbered = moved[column]
        self.tracker.mark("instances", np.flatnonzero(renumbered != column), DirtyBits.IDS | DirtyBits.TRANSFORM)
        column[:] = renumbered

    # -- gprims -----------------------------------------------------------------------------------------------------------

    def _apply_gprims(self, gprims: dict[GprimKey, Gprim | None]) -> tuple[int, int, int]:
        removed = 0
        if gprims:
            self._instancers = None
        gone = [key for key, gprim in gprims.items() if gprim is None and key in self.gprims]
        for key in gone:
            removed += self._drop(key)
        new, moved = [], []
        live = {key: gprim for key, gprim in gprims.items() if gprim is not None}
        counts = [len(gprim.transforms) for gprim in live.values()]
        for key, count in zip(live, counts, strict=True):  # runs whose length changed move: their old rows go
            if key not in self.gprims:
                new.append(key)
            elif self.gprim_rows.run(key)[1] != count:
                self._drop_rows(*self.gprim_rows.run(key))
                removed += self.gprim_rows.run(key)[1]
                moved.append(key)
        starts = [self.gprim_rows.insert(key, count) for key, count in zip(live, counts, strict=True)]
        revalued = np.array([_has_other_values(self.gprims.get(key), gprim) for key, gprim in live.items()], bool)
        self.gprims.update(live)
        first = self._order.update(gone, new, moved, self.gprim_rows)
        self.instances.reserve(self.gprim_rows.allocator.size)
        inserted, changed = self._write_instances(live, np.array(starts), np.array(counts), revalued) if live else (0, 0)
        if gone or new or moved:
            self._rank_instances(first)
        return inserted, removed, changed

    def _drop(self, key: GprimKey) -> int:
        del self.gprims[key]
        start, count = self.gprim_rows.remove(key)
        self._drop_rows(start, count)
        if key in self.subset_rows:
            self.subset_rows.remove(key)
        return count

    def _drop_rows(self, start: int, count: int) -> None:
        self.instances.clear_rows(start, count)
        self.tracker.mark("instances", np.arange(start, start + count), DirtyBits.VISIBILITY)

    def _rank_instances(self, first: int) -> None:
        """What is given out for every row: primId and rank in path order, from the gprim at place ``first`` on."""
        rows, prim_id, rank = self._order.ranks(first)
        self.instance_count = int(self._order.count.sum())
        for name, values in (("prim_id", prim_id), ("rank", rank)):
            column = self.instances[name]
            self.tracker.mark("instances", rows[column[rows] != values], DirtyBits.IDS)
            column[rows] = values

    def _write_instances(
        self, gprims: Mapping[GprimKey, Gprim], starts: np.ndarray, counts: np.ndarray, revalued: np.ndarray
    ) -> tuple[int, int]:
        """The instance columns of ``gprims`` but for the ranks, at once, compared with what the rows hold: (rows inserted, changed).
        ``starts``, ``counts``: (gprims,) their runs; ``revalued`` (gprims,) bool: which have other constant primvars than before."""
        ends, total = np.cumsum(counts), int(counts.sum())
        rows = np.repeat(starts - (ends - counts), counts) + np.arange(total)
        records = list(gprims.values())

        def spread(values: list) -> np.ndarray:
            return np.repeat(np.array(values, np.int32), counts)

        subset_start, subset_rows = self._write_subsets(gprims)
        shape, instance_id = np.zeros((len(records), 4), np.float32), np.zeros(total, np.int32)
        for i, gprim in enumerate(records):
            if gprim.mesh is None:
                shape[i] = gprim.shape
            if gprim.instance_ids is not None:
                instance_id[ends[i] - counts[i] : ends[i]] = gprim.instance_ids
        transforms = np.concatenate([g.transforms for g in records]) if len(records) > 1 else records[0].transforms
        new = {
            "transform": (transforms[:, :3, :], DirtyBits.TRANSFORM),
            "kind": (spread([g.kind for g in records]), DirtyBits.ALL),
            "mesh": (spread([self.mesh_rows.row(g.mesh) for g in records]), DirtyBits.TOPOLOGY | DirtyBits.TRANSFORM),
            "shape": (np.repeat(shape, counts, axis=0), DirtyBits.TOPOLOGY | DirtyBits.TRANSFORM),
            "material": (spread([self.material_rows.get(g.material, -1) for g in records]), DirtyBits.MATERIAL),
            "subset_start": (spread(subset_start), DirtyBits.MATERIAL),
            "subset_count": (spread([len(g.subset_materials) for g in records]), DirtyBits.MATERIAL),
            "body": (spread([self._body_row.get(g.body, -1) for g in records]), DirtyBits.TRANSFORM | DirtyBits.IDS),
            "world": (self._worlds_of(records, counts), DirtyBits.ALL),
            "visual": (spread([g.visual for g in records]), DirtyBits.PARAMS),
            "other_lod": (spread([not is_seen_by(g, {}) for g in records]), DirtyBits.PARAMS),
            "collision": (spread([g.collision for g in records]), DirtyBits.PARAMS),
            "single_sided": (spread([2 if g.one_sided else not g.double_sided for g in records]), DirtyBits.PARAMS),
            "instance_id": (instance_id, DirtyBits.IDS | DirtyBits.INSTANCER),
            "light_links": (spread(self._links_of(records)), DirtyBits.PARAMS),
        }
        at = slice(rows[0], rows[-1] + 1) if (np.diff(rows) == 1).all() else rows
        fresh = self.instances["kind"][at] < 0
        touched = np.repeat(revalued, counts)
        self.tracker.mark("instances", rows[touched], DirtyBits.PRIMVAR)
        touched |= np.repeat(subset_rows, counts)
        self.tracker.mark("instances", rows[touched], DirtyBits.MATERIAL)
        for name, (values, bits) in new.items():
            column = self.instances[name]
            differs = column[at] != values
            if differs.any():
                differs = differs.reshape(total, -1).any(axis=1)
                self.tracker.mark("instances", rows[differs], bits)
                touched |= differs
                column[at] = values
        self.tracker.mark("instances", rows[fresh], DirtyBits.ALL)
        return int(fresh.sum()), int((touched & ~fresh).sum())

    def _links_of(self, gprims: Iterable[Gprim]) -> list[int]:
        """Bits of the sets of linked prims that each is in."""
        sets = [(dict(rules), 1 << bit) for rules, bit in self.link_sets.items()]
        if not sets:
            return [0 for _ in gprims]
        return [sum(bit for rules, bit in sets if is_gprim_linked(rules, gprim)) for gprim in gprims]

    def _link(self, gprims: Mapping[GprimKey, Gprim]) -> None:
        """Follow `link_sets` in the rows of all gprims."""
        column = self.instances["light_links"]
        for key, bits in zip(gprims, self._links_of(gprims.values()), strict=True):
            start, count = self.gprim_rows.run(key)
            if column[start] != bits:
                column[start : start + count] = bits
                self.tracker.mark("instances", np.arange(start, start + count), DirtyBits.PARAMS)

    def _renumber(self) -> None:
        """Most of what was drawn is gone: give what is left rows without gaps, all dirty, and let go of the memory of the others. Materials
        are numbered anew along with the rest, never for their own sake: pictures do not change when unbound ones go."""
        host, subsets = self.instances, self.subsets
        subset_moved, material_moved = (_row_map(rows.allocator.peak) for rows in (self.subset_rows, self.material_rows))
        old_subsets = self.subset_rows.renumber(key for key in self.gprim_order if key in self.subset_rows)
        old_materials = self.material_rows.renumber(self.material_paths)
        subset_moved[old_subsets] = np.arange(len(old_subsets))
        material_moved[old_materials] = np.arange(len(old_materials))
        host.keep(self.gprim_rows.renumber(self.gprim_order))
        self._order.pack()
        subsets.keep(old_subsets)
        host["subset_start"][:] = np.where(host["subset_count"] > 0, subset_moved[host["subset_start"]], 0)
        for column in (host["material"], subsets["material"]):
            column[:] = material_moved[column]
        if self.mesh_rows.allocator.is_sparse:
            host["mesh"][:] = self.mesh_rows.renumber()[host["mesh"]]
        self.materials = {new: self.materials[old] for new, old in enumerate(old_materials.tolist())}
        self.material_id = np.arange(len(old_materials), dtype=np.int32)
        self.gprims = dict(self.gprims)  # a dictionary itself does not shrink
        for table, rows in (("instances", self.gprim_rows), ("subsets", self.subset_rows), ("materials", self.material_rows)):
            self.tracker.forget_rows(table)
            self.tracker.mark(table, np.arange(rows.allocator.size), DirtyBits.ALL)
        self.renumberings += 1

    def _worlds_of(self, records: list[Gprim], counts: np.ndarray) -> np.ndarray:
        if not self.worlds.groups:
            return np.zeros(int(counts.sum()), np.int32)
        return np.repeat(np.array([self.worlds.world_of_gprim(gprim) for gprim in records], np.int32), counts)

    def _write_subsets(self, gprims: Mapping[GprimKey, Gprim]) -> tuple[list[int], np.ndarray]:
        """(where each gprim's slots start, which of them have other materials than before)."""
        starts, differs = [0] * len(gprims), np.zeros(len(gprims), bool)
        for i, (key, gprim) in enumerate(gprims.items()):
            if not gprim.subset_materials:
                if key in self.subset_rows:
                    self.subset_rows.remove(key)
                    differs[i] = True
                continue
            count = len(gprim.subset_materials)
            starts[i] = start = self.subset_rows.insert(key, count)
            self.subsets.reserve(self.subset_rows.allocator.size)
            materials = np.array([self.material_rows.get(m, -1) for m in gprim.subset_materials], np.int32)
            column = self.subsets["material"][start : start + count]
            differs[i] = not np.array_equal(column, materials)
            column[:] = materials
            self.tracker.mark("subsets", np.arange(start, start + count), DirtyBits.MATERIAL)
        return starts, differs


def _row_map(size: int) -> np.ndarray:
    """(size + 1,) int32, to be filled with new rows by old; -1 for rows that are gone and, the last, for none."""
    return np.full(size + 1, -1, np.int32)


def authored_ids(instancers: Mapping[int, Instancer], prim_id: int | None, instance_id: int) -> tuple[int, ...]:
    """See `RenderIndex.instance_ids`; ``instancers`` as `RenderIndex.instancers` gives them."""
    instancer, ids = instancers.get(prim_id) if prim_id is not None else None, []
    rest = instance_id
    while instancer is not None:
        rest, index = divmod(rest, max(len(instancer.ids), 1)) if instancer.outer is not None else (0, rest)
        if not 0 <= index < len(instancer.ids):
            raise ArgumentError(f"instanceId {instance_id} is out of range: <{instancer.path}> has {len(instancer.ids)} instances")
        ids.append(int(instancer.ids[index]))
        instancer = instancer.outer
    return tuple(reversed(ids))


def _has_other_values(before: Gprim | None, after: Gprim) -> bool:
    if before is None or (not before.constants and not after.constants and not before.instance_primvars and not after.instance_primvars):
        return False
    return not (_same_value(before.constants, after.constants) and _same_value(before.instance_primvars, after.instance_primvars))


def _record_bits(a: object, b: object) -> DirtyBits:
    """What differs between two records of one dataclass: where it stands, or what it is."""
    names = {name for name in a.__dataclass_fields__ if not _same_value(getattr(a, name), getattr(b, name))}
    placing = {name for name in names if name.startswith("world_from_") or name == "axes"}
    return (DirtyBits.TRANSFORM if placing else DirtyBits.CLEAN) | (DirtyBits.PARAMS if names - placing else DirtyBits.CLEAN)


def _same_record(a: object, b: object) -> bool:
    """Field by field equality of two records of one dataclass, arrays included."""
    return all(_same_value(getattr(a, name), getattr(b, name)) for name in a.__dataclass_fields__)


def _same_value(a: object, b: object) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same_value(a[key], b[key]) for key in a)
    try:
        return bool(a == b)
    except (TypeError, ValueError):
        return False
