"""tables.scene_tables: all device tables of one scene, kept in step with the render index; posing and top-level trees. Knows no USD."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from hdwarp.delegate.change_tracker import ChangeTracker, DirtyBits
from hdwarp.delegate.previous_rows import PreviousRows
from hdwarp.delegate.render_index import RenderIndex
from hdwarp.delegate.rows import joined_rows
from hdwarp.stage.columns import GeometryKind
from hdwarp.tables.blending import Blending
from hdwarp.tables.bodies import BodyTable
from hdwarp.tables.cameras import CameraTable
from hdwarp.tables.cutouts import Cutouts
from hdwarp.tables.instances import InstanceTable
from hdwarp.tables.lights import LightTable
from hdwarp.tables.materials import MaterialTable
from hdwarp.tables.meshes import MeshTable
from hdwarp.tables.previous import PreviousPoses
from hdwarp.tables.primvars import BuiltPrimvar, build_primvar, primvar_names
from hdwarp.tables.storage import GrowingArray
from hdwarp.tables.structs import PrimvarColumns, TopLevel, WorldColumns
from hdwarp.tables.textures import TEXTURE_BUDGET, TextureTable
from hdwarp.tables.top_level import TopLevelTree, TopNodes, TreeCounts
from hdwarp.tables.world_trees import WorldTrees
from hdwarp.tables.worlds import WorldTable
from hdwarp.tables.written import WrittenValues

_NO_ROWS = np.zeros(0, np.int64)
_NEAR_ORIGIN = 8192.0  # metres: within this the world's frame is the stage's own


@dataclass(frozen=True, slots=True)
class TableCounts:
    """What one `SceneTables.sync` did."""

    rows_uploaded: int = 0  # of instances, those of which nothing but ids is new included
    blas_built: int = 0
    blas_refitted: int = 0
    tlas_built: int = 0
    tlas_refitted: int = 0  # rows whose boxes were written anew, from leaf to root


class SceneTables:
    """Device columns and trees. ``version`` counts syncs that changed anything, ``layout_version`` those after which structs of columns,
    and plans made of them, have to be made anew.

    For pictures of cameras, whose own changes `CameraTable.row_versions` tells: ``picture_version`` counts syncs that changed anything of
    what is drawn (instances, meshes, primvars, materials bound to them), ``material_ids_version`` those that gave bound materials other
    ids, ``previous_version`` those after which other instances were elsewhere a frame ago (cameras: `PreviousPoses.camera_versions`),
    ``unposed_version`` those that put back what `pose` had moved.
    """

    def __init__(self, device: wp.Device | str, *, texture_budget: int = TEXTURE_BUDGET) -> None:
        """``texture_budget``: bytes that images may take; see `TextureTable`."""
        self.device = wp.get_device(device)
        self.meshes = MeshTable(self.device)
        self.instances = InstanceTable(self.device)
        self.materials, self.textures = MaterialTable(self.device), TextureTable(self.device, budget=texture_budget)
        self.cameras, self.lights = CameraTable(self.device), LightTable(self.device)
        self.bodies, self.worlds = BodyTable(self.device), WorldTable()
        self.version = self.layout_version = 0
        self.picture_version = self.material_ids_version = self.previous_version = self.unposed_version = 0
        self.is_posed = False  # `pose` has moved bodies since the last upload
        self.previous: PreviousPoses | None = None  # where things were a frame ago: `keep_previous`
        self._nodes = TopNodes(self.device)
        self._primvars: dict[tuple[str, int | None], BuiltPrimvar] = {}
        self._primvars_dropped = 0
        self.written = WrittenValues(self)  # points and primvars that a caller sets
        self._forget_instances()
        self._renumberings = 0, 0  # of the index and of its meshes, followed so far
        self._restarts, self._starts_over = 0, False
        self._index: RenderIndex | None = None
        self._layout: object = None
        self.world_columns = WorldColumns()
        self._world_root, self._global_root = GrowingArray(wp.int32, self.device, fill=-1), GrowingArray(wp.int32, self.device, fill=-1)
        self._global_offset = GrowingArray(wp.vec3d, self.device)

    def _forget_instances(self) -> None:
        """What is kept by row of the index, beside `instances`."""
        self._tree, self._world_trees = TopLevelTree(self._nodes), WorldTrees(self._nodes)
        self._cutouts, self._blending = Cutouts(), Blending()
        self._places = _Places()
        self._live = np.zeros(0, bool)  # by row: draws something
        self._kinds = np.zeros(0, np.int32)  # by row, as counted
        self._kind_counts = np.zeros(int(max(GeometryKind)) + 2, np.int64)  # the last for unused rows
        self._roots: tuple | None = None

    @property
    def index(self) -> RenderIndex | None:
        """What `sync` has followed last."""
        return self._index

    @property
    def has_meshes(self) -> bool:
        """Polygon meshes, or what is drawn as such."""
        return bool(self._kind_counts[int(GeometryKind.MESH)])

    @property
    def has_shapes(self) -> bool:
        return any(self._kind_counts[kind] for kind in GeometryKind if kind.is_shape)

    @property
    def has_swept(self) -> bool:
        """Points or curves."""
        return any(self._kind_counts[kind] for kind in GeometryKind if kind.is_swept)

    @property
    def has_cutouts(self) -> bool:
        """Faces of some meshes are cut away, others of the same meshes are not."""
        return self._cutouts.are_partial

    @property
    def has_holes(self) -> bool:
        """Textures say where faces are cut away."""
        return self.has_cutouts and self._cutouts.are_textured

    @property
    def has_blending(self) -> bool:
        """What is behind some surfaces shines through them."""
        return self._blending.by_material or self.has_display_opacity

    @property
    def has_display_opacity(self) -> bool:
        """Some of these surfaces have no material, but a displayOpacity."""
        return self._blending.by_primvar

    @property
    def top_level(self) -> TopLevel:
        """The trees over instances; a scene that draws nothing has none, and its worlds' roots are -1."""
        return self._nodes.columns

    @property
    def device_bytes(self) -> int:
        """Device memory of meshes, instances, their trees, textures and lights, room for growth included."""
        tables = (self.meshes, self.instances, self.textures, self.lights, self._tree, self._world_trees)
        nodes = self._nodes.boxes.array.capacity + self._nodes.children.array.capacity
        return nodes + sum(array.capacity for table in tables for array in table.device_arrays())

    def sync(self, index: RenderIndex) -> TableCounts:
        """Bring the device in step with the index: the rows that are dirty, and what depends on them."""
        self._index = index
        tracker = index.tracker
        renumberings = index.renumberings, index.mesh_rows.renumberings
        in_step = np.array_equal(index.worlds.poses, self.worlds.poses)
        if tracker.is_clean() and renumberings == self._renumberings and not self._starts_over and in_step:
            self._sync_previous(_NO_ROWS)
            return TableCounts()
        self.unposed_version += self.is_posed and self.instances.posed is not None
        if renumberings[1] != self._renumberings[1]:
            self.meshes.restart()
        if renumberings != self._renumberings:
            self._restart()
        self._renumberings = renumberings
        copies_moved = self.instances.sync_rows(index)
        if self.instances.is_sparse:
            self._restart()
            copies_moved = self.instances.sync_rows(index)
        mesh_counts, mesh_rows = self.meshes.sync(index)
        dirty = tracker.dirty_rows("instances", ~DirtyBits.IDS)
        renumbered = tracker.clean_but_for("instances", DirtyBits.IDS)
        subset_rows, material_rows = tracker.dirty_rows("subsets"), tracker.dirty_rows("materials")
        if self._starts_over:
            dirty, renumbered = np.flatnonzero(index.instances["kind"] >= 0), _NO_ROWS
            subset_rows = np.arange(index.subset_rows.allocator.size)
            mesh_rows, material_rows = (np.array(sorted(items), np.int64) for items in (index.meshes, index.materials))
        if len(mesh_rows):
            self.instances.write_mesh_bounds(self.meshes, mesh_rows)
            used = np.zeros(self.meshes.size + 1, bool)  # the last for no mesh
            used[mesh_rows] = True
            is_dirty = used[index.instances["mesh"]]
            is_dirty[dirty] = True
            dirty = np.flatnonzero(is_dirty)
        self.written.sync(mesh_rows)
        hidden_rows = self._cutouts.sync(index, dirty)
        self._blending.sync(index, dirty)
        moved_worlds = self.worlds.sync(
            index.worlds, self._places.sync(index, self.meshes, dirty), 0 if index.previous is None else index.previous.frame
        )
        bodies_dirty = len(moved_worlds) > 0 or len(tracker.dirty_rows("bodies")) > 0
        rows = joined_rows(dirty, hidden_rows)
        if copies_moved:  # they have other rows now
            rows = joined_rows(rows, *self.instances.rows.members.values())
        if len(moved_worlds):
            rows = joined_rows(rows, np.flatnonzero(np.isin(index.instances["world"], moved_worlds)))
        if self.is_posed or bodies_dirty:
            rows = joined_rows(rows, np.flatnonzero(index.instances["body"] >= 0))
        posed, self.is_posed = self.is_posed, False
        # Rows that are written for their body's sake alone are not new: where they are, `pose` says.
        is_new = self._starts_over or any(len(found) for found in (dirty, hidden_rows, renumbered, moved_worlds))
        self._count_picture(index, is_new)
        if bodies_dirty:
            self.bodies.sync(index, self.worlds)
        self.instances.sync(index, self.meshes, self.worlds, rows, self._cutouts.hidden)
        self.instances.write_ids(index, renumbered)
        self.instances.write_subsets(index, subset_rows)
        if bodies_dirty or self.instances.are_carried(index, rows):
            self.instances.sync_bodies(index, self.meshes, self.worlds, self.bodies)
        if len(material_rows) and self.textures.sync(index.materials):
            material_rows = np.array(sorted(index.materials), np.int64)
        self.materials.sync(index.materials, index.material_id, material_rows, self.textures)
        if bodies_dirty or len(tracker.dirty_rows("cameras")):
            self.cameras.sync(list(index.cameras.values()), self.worlds, self.bodies)
        rows_moved = self.lights.shine_from_gprims and (copies_moved or len(dirty) > 0)
        if bodies_dirty or rows_moved or (posed and self.lights.are_carried) or len(tracker.dirty_rows("lights")):
            self.lights.sync(index, self.worlds, self.bodies, self.instances)
        if len(tracker.dirty_rows("instances", DirtyBits.VISIBILITY)):
            self.instances.sync_attributes()
        self._count_kinds(index, dirty)
        tree_counts = self._sync_trees(index, rows)
        self._drop_primvars(tracker)
        for table in tracker.TABLES:
            tracker.clear(table)
        self._sync_previous(None if self._starts_over else rows)
        self._starts_over = False
        self.version += 1
        drawn = self.has_meshes, self.has_shapes, self.has_swept
        kinds = (
            *drawn,
            self.has_cutouts,
            self.has_holes,
            self.has_blending,
            self.has_display_opacity,
            tuple(self.textures.inputs.items()),
            tuple(self.textures.sets),
            tuple(self.textures.values),
        )
        layout = self._addresses(), self._primvars_dropped, kinds, self.cameras.version, self._restarts
        if layout != self._layout:
            self._layout = layout
            self.layout_version += 1
        uploaded = self.instances.rows.count(rows) + len(renumbered)
        return TableCounts(uploaded, mesh_counts.built, mesh_counts.refitted, tree_counts.built, tree_counts.refitted)

    def _restart(self) -> None:
        """Most of what was drawn is gone: let go of the memory of all that is kept by row of instances, subsets and materials. What is left
        is uploaded again by the `sync` that begins now (or, should it fail, by the next): the cost goes with it, not with what is gone."""
        self.instances.restart()
        self.materials.restart()
        self._nodes.restart()
        self._forget_instances()
        self.written.restart()
        self._primvars_dropped += bool(self._primvars)
        self._primvars.clear()
        if self.previous is not None:
            self.previous.restart()
            self.previous_version += 1
        self._restarts += 1
        self._starts_over = True

    def _count_picture(self, index: RenderIndex, changed: bool) -> None:
        """``changed``: whether any instance did. Materials are looked up only where one is dirty: that takes a look at all instances."""
        values, ids = (index.tracker.dirty_rows("materials", bits) for bits in (~DirtyBits.IDS, DirtyBits.IDS))
        self.picture_version += changed or (len(values) > 0 and bool(index.are_bound(values).any()))
        self.material_ids_version += len(ids) > 0 and bool(index.are_bound(ids).any())

    def _addresses(self) -> list[int]:
        tables = [self.meshes, self.instances, self.materials, self.textures, self.cameras, self.lights, self._nodes]
        if self.previous is not None:
            tables.append(self.previous)
        return [address for table in tables for address in table.addresses()]

    def _count_kinds(self, index: RenderIndex, rows: np.ndarray) -> None:
        kinds, size = index.instances["kind"], index.instances.capacity
        if size > len(self._kinds):
            self._kinds = np.concatenate([self._kinds, np.full(size - len(self._kinds), -1, np.int32)])
        count = len(self._kind_counts)
        self._kind_counts += np.bincount(kinds[rows] % count, minlength=count) - np.bincount(self._kinds[rows] % count, minlength=count)
        self._kinds[rows] = kinds[rows]

    def _sync_trees(self, index: RenderIndex, rows: np.ndarray) -> TreeCounts:
        """Follow ``rows`` (ascending) of the index, which have been uploaded."""
        if len(rows) == 0 and self._roots is not None:
            return TreeCounts()
        if 2 * self.instances.rows.count(rows) > self.instances.size:
            self.instances.reset_bounds(self.worlds)
        else:
            self.instances.update_bounds(self.instances.rows.of(rows)[0])
        if index.instances.capacity > len(self._live):
            self._live = np.concatenate([self._live, np.zeros(index.instances.capacity - len(self._live), bool)])
        live = (index.instances["kind"][rows] >= 0) & ~self._cutouts.hidden[rows]
        self._live[rows] = live & ~np.isin(index.instances["mesh"][rows], self.meshes.empty_rows())  # without triangles: draws nothing
        rank, bounds, counts = index.instances["rank"], self.instances.bounds, TreeCounts()
        drawn, rest = self._live, rows
        if index.worlds.groups:
            world = index.instances["world"]
            in_world = world[rows] >= 0
            if in_world.any() or self.instances.rows.has_copies or self._world_trees.hold_any(rows):
                names, copies, turned = index.worlds, self.instances.rows, self.worlds.is_turned
                counts = self._world_trees.update(names, copies, world, self._live, rank, *bounds, turned=turned)
            self._tree.move_to(self._world_trees.size)
            self._tree.leave(rows[in_world])
            drawn, rest = self._live & (world < 0), rows[~in_world]
        of_rest = self._tree.update(rest, drawn, rank, *bounds)
        self._write_roots(index)
        return TreeCounts(counts.built + of_rest.built, counts.refitted + of_rest.refitted)

    def _write_roots(self, index: RenderIndex) -> None:
        """Where the trees of each world begin, and how far its frame is from that of what is global."""
        root, offset = self._tree.root, self.worlds.global_offset
        world_root = self._world_trees.root if index.worlds.groups else np.array([root], np.int32)
        global_root = root if index.worlds.groups else -1
        roots = (world_root.tobytes(), global_root, offset.tobytes())
        if roots == self._roots:
            return
        self._roots = roots
        if len(world_root) < self.worlds.count:
            world_root = np.full(self.worlds.count, -1, np.int32)
        self._world_root.write(0, world_root)
        self._global_root.write(0, np.array([global_root]))
        self._global_offset.write(0, offset)
        self.world_columns.root, self.world_columns.global_root = self._world_root.array, self._global_root.array
        self.world_columns.global_offset, self.world_columns.count = self._global_offset.array, self.worlds.count

    def _drop_primvars(self, tracker: ChangeTracker) -> None:
        """Forget the columns that are of another scene now; they are made anew when somebody asks."""
        new = DirtyBits.PRIMVAR | DirtyBits.TOPOLOGY | DirtyBits.VISIBILITY
        if len(tracker.dirty_rows("instances", new)) or len(tracker.dirty_rows("meshes", new)):
            self._primvars_dropped += bool(self._primvars)
            self._primvars.clear()
        elif len(tracker.dirty_rows("meshes")):
            for key in [key for key in self._primvars if key[0] == "normals"]:
                self._primvars_dropped += 1
                del self._primvars[key]

    def pose(self, body_q: wp.array) -> None:
        """Move everything bodies carry to ``body_q`` and refit: device work only, nothing allocated."""
        self.is_posed = True
        self.instances.pose(body_q)
        self.lights.pose(body_q)
        self.refit_trees()

    def refit_trees(self) -> None:
        """Follow the bounds of instances: device work only."""
        self._tree.refit(*self.instances.bounds)
        self._world_trees.refit(*self.instances.bounds)

    def unpose(self) -> None:
        """Put everything back to where the stage has it, exactly: float64 places, no way through ``body_q``."""
        if not self.is_posed:
            return
        self.is_posed = False
        rows = np.flatnonzero(self._index.instances["body"] >= 0)
        self.instances.place(self._index, self.meshes, self.worlds, rows)
        self.lights.unpose()
        self.instances.reset_bounds(self.worlds)
        self.refit_trees()

    # -- the frame before -------------------------------------------------------------------------------------------------

    def keep_previous(self) -> PreviousPoses:
        """From now on remember where things were before a frame changed them: `previous`, which until then takes no memory. What was before
        the first call is not known; it counts as now. A frame begins with `RenderIndex.previous`.advance()."""
        if self.previous is None:
            self.previous = PreviousPoses(self.device)
            if self._index is not None:
                self._sync_previous(None)
        return self.previous

    def _sync_previous(self, rows: np.ndarray | None) -> None:
        if self.previous is None:
            return
        if self._index.previous is None:
            self._index.previous, rows = PreviousRows(), None
        if self.previous.sync(self._index, self.meshes, self.cameras, self.worlds, self.instances, rows):
            self.previous_version += 1
        self.written.sync_previous()

    def pose_previous(self, body_q: wp.array | None, previous_body_q: wp.array | None) -> None:
        """Where bodies were: at ``previous_body_q``; None: where they are, by ``body_q``; that None too: where the stage had them.
        ``body_q``: as for `pose`, or the stage's poses. Device work only, unless both are None."""
        if previous_body_q is None and body_q is None:
            self.previous.unpose(self._index, self.meshes, self.worlds, self.instances)
        else:
            self.previous.pose(self.instances, body_q, body_q if previous_body_q is None else previous_body_q)

    def primvar(self, name: str, width: int | None = None) -> PrimvarColumns:
        """Device columns of a primvar, made at first use and kept until the scene changes."""
        return self._built(name, width).columns

    def is_bare(self, name: str, width: int | None = None) -> bool:
        """Whether nothing has such a primvar: until `layout_version` changes."""
        return self._built(name, width).is_bare

    def _built(self, name: str, width: int | None) -> BuiltPrimvar:
        key = (name, width)
        if key not in self._primvars:
            self._primvars[key] = build_primvar(self._index, name, self.device, width=width)
            self.written.fill(name, self._primvars[key])
        return self._primvars[key]

    def built_primvars(self, name: str) -> list[BuiltPrimvar]:
        """Columns of a primvar that have been asked for, each of another width."""
        return [built for (other, _), built in self._primvars.items() if other == name]

    def primvar_names(self) -> list[str]:
        return primvar_names(self._index) if self._index is not None else []


class _Places:
    """Where the world's frame lies: at the stage's origin, or near the middle of what is drawn where something is far from it."""

    def __init__(self) -> None:
        self._is_far = np.zeros(0, bool)  # by instance row
        self._far_count = 0

    def sync(self, index: RenderIndex, meshes: MeshTable, rows: np.ndarray) -> np.ndarray:
        """(3,) float64: zero for scenes near the stage's origin, else a whole number of metres. ``rows``: those that may have moved."""
        size = index.instances.capacity
        if size > len(self._is_far):
            self._is_far = np.concatenate([self._is_far, np.zeros(size - len(self._is_far), bool)])
        rest = index.worlds.of_rest  # worlds have their own origins
        far = (np.abs(_places(index, meshes, rows)) >= _NEAR_ORIGIN).any(axis=1) & (index.instances["kind"][rows] >= 0)
        far &= _is_seen(index, rest)[rows]
        self._far_count += int(far.sum()) - int(self._is_far[rows].sum())
        self._is_far[rows] = far
        if not self._far_count:
            return np.zeros(3)
        return np.round(np.median(_places(index, meshes, np.flatnonzero(_is_seen(index, rest))), axis=0))


def _is_seen(index: RenderIndex, world: int) -> np.ndarray:
    """(rows,) bool: what is drawn in ``world``. Colliders that are read along do not say where its frame lies."""
    host = index.instances
    return (host["kind"] >= 0) & (host["world"] == world) & (host["visual"] != 0)


def _places(index: RenderIndex, meshes: MeshTable, rows: np.ndarray) -> np.ndarray:
    """(n, 3) float64 [m]: where instances are, their mesh's own centre included."""
    transform, mesh = index.instances["transform"][rows], index.instances["mesh"][rows]
    places = transform[:, :, 3]
    if meshes.is_moved:
        centre = np.where(mesh[:, None] >= 0, meshes.centre[mesh], 0.0)
        places = places + np.einsum("nij,nj->ni", transform[:, :, :3], centre)
    return places
