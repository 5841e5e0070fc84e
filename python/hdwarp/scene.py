"""scene: an open stage with its render index and device tables; what sensors and renders stand on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import warp as wp

from hdwarp.author.worlds import author_worlds
from hdwarp.delegate.render_delegate import RenderDelegate
from hdwarp.delegate.worlds import Worlds
from hdwarp.errors import ArgumentError, Diagnostic, Diagnostics, Error, OutOfMemory, raise_errors
from hdwarp.garbage import no_collecting
from hdwarp.launch import find_device
from hdwarp.stage.attributes import AttributeSource
from hdwarp.stage.changes import ChangeListener, StageEdits
from hdwarp.stage.columns import Camera, Gprim, StageChanges, StageColumns, WorldGroup
from hdwarp.stage.lod import Choices, choose
from hdwarp.stage.open import open_stage, resolve_time
from hdwarp.stage.reader import StageReader
from hdwarp.stage.render_spec import find_render_prims, product_for_camera
from hdwarp.stage.spec import PURPOSES
from hdwarp.stage.worlds import resolve_worlds, root_poses, spread_cameras, told_of_worlds
from hdwarp.state import State
from hdwarp.tables.attributes import AttributeColumns, Found, PrimRows
from hdwarp.tables.frames import FrameTable
from hdwarp.tables.given import float_rows
from hdwarp.tables.lights import LightTable
from hdwarp.tables.lods import Lods
from hdwarp.tables.textures import TEXTURE_BUDGET

if TYPE_CHECKING:
    from pxr import Usd

DEFAULT_CAMERA = "<default camera>"  # label of the framed view of a stage without cameras: no prim path looks like it
DEFAULT_PURPOSES = ("default", "render")


@dataclass(frozen=True, slots=True)
class SyncCounts:
    """What a `Scene.sync` did, in prims, rows and trees. All zero: nothing had changed."""

    prims_read: int = 0
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
    rows_uploaded: int = 0  # of instances, those of which nothing but ids is new included
    blas_built: int = 0
    blas_refitted: int = 0
    tlas_built: int = 0
    tlas_refitted: int = 0  # rows whose boxes were written anew, from leaf to root


@dataclass(frozen=True, slots=True)
class StageFacts:
    """What is said of a stage as a whole."""

    metres_per_unit: float
    up_axis: str
    time_codes_per_second: float
    light_paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pending:
    """What `Scene.read` found, for `Scene.apply`."""

    changes: StageChanges | None  # None: nothing had to be read
    prims_read: int
    time_code: Usd.TimeCode
    time: float | None
    facts: StageFacts
    told: tuple[Diagnostic, ...] | None
    root_poses: np.ndarray | None = None  # (groups of worlds, 4, 4): see `Worlds.poses`
    attributes: dict[tuple[str, str], Found | None] = field(default_factory=dict)  # by table and name: of the columns there were
    lods: Choices | None = None  # None: as before


class Scene:
    """A stage, read and on the device. `sync` follows edits and time; `state` gives the bodies' poses to move."""

    def __init__(
        self,
        stage_or_path: Usd.Stage | str | Path,
        *,
        device: str | wp.Device | None = None,
        time: float | Usd.TimeCode | None = None,
        worlds: object = None,
        purposes: Sequence[str] | None = None,
        complexity: str = "low",
        strict: bool = False,
        mask: Sequence[str] | None = None,
        draw_modes: bool = True,
        material_purposes: Sequence[str] = ("full", ""),
        texture_budget: int = TEXTURE_BUDGET,
    ) -> None:
        """``purposes``: which purposes are drawn, default and render unless given. ``mask``: paths to restrict the stage to.
        ``draw_modes``: False: models are drawn whole, whatever their ``model:drawMode``.
        ``material_purposes``: purposes of material bindings, in order of preference; "" is the all-purpose one.
        ``texture_budget``: bytes that images of materials may take, as `RenderDelegate` has it.

        Raises StageError for what is no stage (and, with ``strict``, for the first error found on it), ArgumentError for bad options,
        """
        if mask is not None and not isinstance(mask, (list, tuple)):
            raise ArgumentError(f"mask={mask!r}: expected a list of prim paths")
        self.device = find_device(device)
        self.diagnostics = Diagnostics()
        opening = Diagnostics()
        self.stage: Usd.Stage | None = open_stage(stage_or_path, mask=mask, diagnostics=opening)
        self._opening = [item for item in opening if item.code != "composition"]  # those are mended on the stage; the reader tells them
        self.identifier: str = self.stage.GetRootLayer().identifier
        self.complexity, self.strict, self._texture_budget = complexity, strict, texture_budget
        self.purposes = check_purposes(purposes)
        code = resolve_time(self.stage, time)
        self._worlds = Worlds(() if worlds is None else resolve_worlds(worlds, self.stage, code))
        self._spread: dict[str, Camera] = {}  # cameras that are authored in one world and there in others
        self._attributes = AttributeSource(self.stage)
        self.lods = Lods()
        self._told: tuple[Diagnostic, ...] = ()  # of what was read, but for attributes
        self._make_delegate()
        self._reader: StageReader | None = StageReader(
            self.stage,
            purposes=self.purposes,
            complexity=complexity,
            material_purposes=names_of(material_purposes, "material_purposes"),
            mask=mask,
            draw_modes=draw_modes,
        )
        self._listener = ChangeListener(self.stage)
        self.time: float | None = None  # time code read at; None for the default time, or the earliest where no start is authored
        self.time_code: Usd.TimeCode | None = None  # as asked for, the earliest time included
        self.previous_time_code: Usd.TimeCode | None = None  # what `time_code` was before the last `sync`
        self._pending: Pending | None = None  # read and not applied yet
        self._facts = StageFacts(1.0, "Y", 24.0, ())
        self.sync(time)

    # -- tables -----------------------------------------------------------------------------------------------------------

    @property
    def cameras(self):
        self.check_open()
        return self.tables.cameras

    @property
    def bodies(self):
        self.check_open()
        return self.tables.bodies

    @property
    def instances(self):
        self.check_open()
        return self.tables.instances

    @property
    def meshes(self):
        self.check_open()
        return self.tables.meshes

    @property
    def worlds(self):
        self.check_open()
        return self.tables.worlds

    @property
    def lights(self) -> LightTable:
        self.check_open()
        return self.tables.lights

    @property
    def sites(self) -> FrameTable:
        self.check_open()
        sites = sorted(self.index.sites.values(), key=lambda site: site.path)
        return FrameTable([(site.path, site.world_from_site, site.body) for site in sites], self.tables, self._site_attribute)

    def _site_attribute(self, name: str) -> wp.array:
        return self._site_attributes.get(name, self._site_rows)

    def _site_rows(self) -> PrimRows:
        paths = sorted(self.index.site_rows)
        return PrimRows(paths, paths, *self.index.worlds.spread(paths))

    @property
    def reader(self) -> StageReader:
        """What was read of the stage."""
        self.check_open()
        return self._reader

    def check_open(self) -> None:
        """Raise Error after `close`."""
        if self._reader is None:
            raise Error("the scene is closed; open a new Scene")

    @property
    def metres_per_unit(self) -> float:
        """metersPerUnit of the stage."""
        self.check_open()
        return self._facts.metres_per_unit

    def __repr__(self) -> str:
        if self.stage is None:
            return "<Scene, closed>"
        drawn = f"{len(self.index.prim_paths)} prims, {len(self.cameras)} cameras, {len(self.bodies)} bodies"
        return f"<Scene of {self.stage.GetRootLayer().identifier}: {drawn}, on {self.device}>"

    def prim_path(self, prim_id: int, world_id: int = 0) -> str | None:
        """Path of the prim a primId names; None for -1. ``world_id``: the world it was seen in, -1 for global geometry: of copies, the
        path they would have."""
        self.check_open()
        if not -1 <= int(world_id) < self.worlds.count:
            there = "one world, number 0" if self.worlds.count == 1 else f"{self.worlds.count} worlds"
            raise ArgumentError(f"world {world_id} does not exist: the scene has {there}")
        path = self.index.prim_path(int(prim_id))
        return None if path is None else self.index.worlds.label(path, int(world_id))

    # -- following the stage ----------------------------------------------------------------------------------------------

    def sync(self, time: float | Usd.TimeCode | None = None, *, advance: bool = True) -> SyncCounts:
        """Apply the stage as it is now, at ``time`` (None: the time it is at). Only what edits and time have changed since the last call
        is read and uploaded; returns what was done. Edits may come from any thread, also while sensors and passes render: they wait for
        this call (`hdwarp.render` of a scene looks up RenderProducts on the stage).

        Usd tells nobody, and so this follows nothing, of edits inside the layers of value clips, be it by reloading them (values are read
        anew where time moves, or where the prim itself is edited), of files that change on disk before their layers are reloaded, and of
        what a material binding leads to that is no Material. `close` the scene and open another to have all read again. Where the file of
        a sublayer, reference or payload is gone, ``diagnostics`` has an error until it is back; what was read of it stays.

        Each call is a frame: `motion` is measured against the scene as the call before left it, see `keep_previous`. ``advance=False``:
        the call is part of the last frame, and what that is measured against stays.

        Raises Error when the scene is closed or its stage has expired, StageError with ``strict`` for an error found on the stage.
        Whatever reading raises, the scene stays as it was; after any failure the next call reads the whole stage.
        """
        try:
            with no_collecting():  # over both halves: between them there is nothing to find
                return self.apply(self.read(time), advance=advance)
        except (MemoryError, RuntimeError) as error:
            if isinstance(error, Error) or (isinstance(error, RuntimeError) and "allocate" not in str(error)):
                raise
            message = f"<{self.identifier}>: what the stage shows does not fit into memory ({error})"
            raise OutOfMemory(f"{message}; open a part of it (mask=), fewer purposes, or fewer worlds") from None

    def read(self, time: float | Usd.TimeCode | None = None) -> Pending:
        """The half of `sync` that reads the stage. It touches no index and no table, so it may run on another thread while this scene is
        rendered, as long as nothing else reads or edits the stage. What is read and not applied before the next call is read again."""
        reader = self.reader  # raises when closed
        if not self.stage or not self.stage.GetPseudoRoot():
            raise Error("the scene's Usd.Stage has expired; keep a reference to it, or open a new Scene")
        if self._pending is not None:
            reader.forget()
        code = self.time_code if time is None and self.time_code is not None else resolve_time(self.stage, time)
        try:
            edits, is_anew = self._listener.take(), reader.time is None or reader.time != code
            changes, visited = reader.update(edits, code)
            facts = StageFacts(reader.metres_per_unit, reader.up_axis, self.stage.GetTimeCodesPerSecond(), tuple(reader.light_paths))
            poses, of_worlds = None, ()
            if changes is not None and self._worlds.groups:
                poses = root_poses(self.stage, [group.root for group in self._worlds.groups], code)
                of_worlds = told_of_worlds(self.stage, self._worlds.groups, reader.bodies)
                self._spread_cameras(changes, poses)
            told = (*self._opening, *reader.diagnostics(), *of_worlds) if changes is not None else None
            attributes = self._read_attributes(changes, edits, code, is_anew)
            lods = choose(self.stage, reader.lods.values(), reader.cameras, code) if edits or is_anew or changes is not None else None
            self._pending = Pending(changes, visited, code, reader.time_code, facts, told, poses, attributes, lods)
            return self._pending
        except BaseException:  # an interrupt as well: nobody has what it read
            self._pending = None
            reader.forget()
            raise

    def _attribute_columns(self) -> dict[str, AttributeColumns]:
        """Columns that somebody has asked for and that are to be read, by table; what cameras have, their records say."""
        tables = {name: getattr(self.tables, name).attributes for name in ("bodies", "instances", "lights")} | {
            "sites": self._site_attributes
        }
        return {kind: columns for kind, columns in tables.items() if columns}

    def _read_attributes(
        self, changes: StageChanges | None, edits: StageEdits, code: Usd.TimeCode, is_anew: bool
    ) -> dict[tuple[str, str], Found | None]:
        """What is new of user attributes: where time or an edit may have changed them, and of prims that have come.
        ``is_anew``: the time is another, or nothing was known."""
        reader, found = self._reader, {}
        for kind, columns in self._attribute_columns().items():
            if changes is None and not edits and not is_anew:
                found |= {(kind, name): None for name in columns.names}
                continue
            paths = [key[0] for key in reader.gprims] if kind == "instances" else list(getattr(reader, kind))
            new = columns.read_again(paths, code, lambda name: None if is_anew else self._attributes.edited(edits, name))
            found |= {(kind, name): item for name, item in new.items()}
        return found

    def _apply_attributes(self, pending: Pending) -> bool:
        """Bring what was read of user attributes to the rows, which are those of now; whether there was anything."""
        self._attributes.time, is_new = pending.time_code, False
        for kind, columns in self._attribute_columns().items():
            if kind == "sites" and pending.changes is not None:
                columns.follow(self._site_rows())
            for name in columns.names:
                # One that somebody asked for after `read` has the values of the time before: that one is read here.
                item = pending.attributes[kind, name] if (kind, name) in pending.attributes else columns.read_all(name, pending.time_code)
                if item is not None:
                    columns.write(name, item)
                    is_new = True
        return is_new

    def _tell(self) -> None:
        """Make `diagnostics` those of now."""
        self.diagnostics.clear()
        self.diagnostics.extend(self._told)
        for columns in (self.tables.textures, self.tables.cameras.attributes, *self._attribute_columns().values()):
            self.diagnostics.extend(columns.diagnostics())

    def _spread_cameras(self, changes: StageChanges, poses: np.ndarray) -> None:
        """Add the cameras that are authored in one world and are in others as well to ``changes``."""
        reader = self._reader
        more = {item.path: item for item in spread_cameras(list(reader.cameras.values()), reader.bodies, self._worlds.groups, poses)}
        changes.cameras.update(dict.fromkeys(self._spread.keys() - more.keys() - changes.cameras.keys()))
        changes.cameras.update(more)
        self._spread = more

    def apply(self, pending: Pending, *, advance: bool = True) -> SyncCounts:
        """The half of `sync` that brings what was read last into the tables. Reads no stage; not while the scene is rendered."""
        reader = self.reader
        if pending is None or pending is not self._pending:
            raise Error("only what Scene.read gave last can be applied, once; call read() again")
        self._pending = None
        try:
            if self.strict and pending.told is not None:
                raise_errors(pending.told)
            with no_collecting():
                return self._apply(pending, advance)
        except BaseException:
            reader.forget()
            raise

    def _apply(self, pending: Pending, advance: bool) -> SyncCounts:
        changes, counts = pending.changes, SyncCounts()
        if advance and self.index.previous is not None:
            self.index.previous.advance()
        if changes is not None:
            if changes.complete and DEFAULT_CAMERA in self.index.camera_rows:
                changes.cameras[DEFAULT_CAMERA] = self.index.cameras[self.index.camera_rows[DEFAULT_CAMERA]]
            if pending.root_poses is not None:
                self.index.worlds.move_roots(pending.root_poses)
            found = self.index.apply(changes)
            counts = SyncCounts(prims_read=pending.prims_read, **asdict(found), **asdict(self.delegate.commit_resources(self.index)))
            self._told = pending.told
        else:
            self.delegate.commit_resources(self.index)  # nothing to do, unless the frame before differed: now nothing does
        if advance:
            self.previous_time_code = self.time_code
        if pending.lods is not None:
            self.lods.take(pending.lods)
        self.time, self.time_code, self._facts = pending.time, pending.time_code, pending.facts
        if self._apply_attributes(pending) or changes is not None:
            self._tell()
        return counts

    def read_collisions(self) -> None:
        """Read colliders as well, drawn or not, for sensors that see them. What visual sensors see stays the same, but for the numbers of
        primId, which count all that is read."""
        if not self.reader.collisions:
            self.reader.collisions = True
            self.sync(advance=False)

    def keep_previous(self) -> None:
        """From now on each `sync` remembers what it changes, for `motion`: places, points of deforming meshes, cameras and their lenses.
        Done by itself where a sensor allocates `motion`, or something renders it; call it earlier for motion from the next `sync` on.

        After a `sync` that changes nothing, nothing has moved. What was not there before has no previous place: it moves with the
        camera alone, as does what changed its kind of geometry; a mesh whose triangles changed moves with its transform. Instances of
        point instancers are the same if their authored ids are.
        """
        self.tables.keep_previous()

    def frame_default_camera(self, image_aspect: float) -> str:
        """Add (or reframe) a camera that sees everything drawn, for an image of ``image_aspect``; its label."""
        from hdwarp.stage.framing import default_camera

        self.check_open()
        gprims = [self.index.gprims[key] for key in self.index.gprim_order]
        if self._worlds.groups:  # as world 0 shows it
            gprims = [self._in_world(gprim, 0) for gprim in gprims if self._worlds.world_of_gprim(gprim) in (-1, 0)]
        drawn = StageColumns(self._facts.metres_per_unit, self._facts.up_axis, self.time, self._facts.time_codes_per_second, gprims)
        camera = default_camera(drawn, image_aspect)
        self.index.insert(replace(camera, path=DEFAULT_CAMERA))
        self.delegate.commit_resources(self.index)
        return DEFAULT_CAMERA

    def _in_world(self, gprim: Gprim, world: int) -> Gprim:
        """A gprim where the world has it on the stage."""
        if self._worlds.world_of_gprim(gprim) != world:
            return gprim
        return replace(gprim, transforms=np.stack([self.worlds.placed(transform, world) for transform in gprim.transforms]))

    def state(self) -> State:
        """The bodies at the stage's pose. Arrays of its own: write them, and hand the state to a sensor's ``update``."""
        self.check_open()
        pose = self.tables.bodies.pose
        body_q = wp.array(pose, dtype=wp.transformf, device=self.device) if len(pose) else wp.zeros(0, wp.transformf, device=self.device)
        body_qd = wp.zeros(len(pose), dtype=wp.spatial_vectorf, device=self.device)
        return State(body_q, body_qd, self._seconds(), self.tables.bodies, self.tables.bodies.version)

    def body_path(self, body_id: int, world_id: int = 0) -> str | None:
        """Path of the body that a `bodyId` names, in the world it was seen in (of copies, the path it would have); None for -1."""
        self.check_open()
        if not -1 <= int(body_id) < len(self.index.body_paths):
            raise ArgumentError(f"bodyId {body_id} is out of range: the stage has {len(self.index.body_paths)} bodies")
        return None if body_id < 0 else self.index.worlds.label(self.index.body_paths[int(body_id)], int(world_id))

    def _seconds(self) -> float:
        rate = self._facts.time_codes_per_second
        return 0.0 if self.time is None or not rate else self.time / rate

    # -- values from a simulation -----------------------------------------------------------------------------------------

    def set_points(self, path: str, array: object) -> None:
        """Move the points of the mesh or Points prim at ``path``; None: back to where the stage has them. All pictures from now on show it.

        ``array``: wp.array[vec3f] (P,), or (P, 3) float32 of Warp, NumPy or any library with an array interface or DLPack, on the scene's
        device (NumPy's may be on the host); object space, authored units, all points in authored order (of a NurbsPatch: of its triangles).
        It is copied. After the first call for a prim this is device work only: nothing is allocated, nobody waits, addresses stay (a `sync`
        that changed something may have the next call look up rows anew). The first call is like a `sync`: what an `update` had posed is
        back on the stage's poses until the next.

        Faces, triangles and their numbers stay as they are: polygons are cut as the authored points had it. Computed smooth normals
        follow, authored ones stay. Triangles and balls with points that are NaN, infinite or beyond 1e18 are not drawn; nor are points of
        a Points prim that have no ball on the stage (a place that is not finite, no width above 0), whose rows are not read. Precision is
        that of float32 about the middle of the authored mesh. Only this prim changes, where other prims have equal geometry; but all that
        is drawn of it does: its point instances, and its copies in all worlds. An instance of a native (``instanceable``) prototype is a
        prim.

        The points stay until the stage has other points or another topology for this prim, at another time for instance, or it is gone.
        `motion` is measured against the points before the first call since the last `sync`, see `keep_previous`; where the stage takes
        them back, against the stage's. `frame_default_camera` frames what the stage has.

        Raises Error when the scene is closed, ArgumentError for a path at which neither a mesh nor points are drawn or that of a copy in
        another world, and for arrays of another size, type or device, NotSupported for curves: their pieces depend on their points.
        """
        self.check_open()
        path, written = str(path), self.index.written
        if array is None:
            changed, rows = written.give_back_points(path), None
        else:
            rows = float_rows(array, f"points of <{path}>", self.device)
            changed = written.take_points(path, tuple(rows.shape))
        if changed:
            self.delegate.commit_resources(self.index)
        if rows is not None:
            self.tables.written.set_points(path, rows)

    def set_primvar(self, path: str, name: str, array: object, *, interpolation: str | None = None) -> None:
        """Set the values of a primvar of the prim at ``path``, a new one or one that it has; None: back to what the stage has.

        ``array``: (n, k) or (n,) float32, or wp.array of float32 vectors, 1 to 4 components; else as for `set_points`. n says what a value
        is of: of a point (vertex), a face (uniform), a face corner (faceVarying) or, one value, of all the prim (constant), the first of
        these that fits; ``interpolation`` says it where several do. Points take a value a point, drawn or not, or one; curves and
        shapes one. ``"normals"`` are a mesh's shading normals, `displayColor` the colour where no material has another; the AOV
        ``primvars:NAME`` shows any.

        After the first call with the same shape this is device work only, as with `set_points`, and the same prims change. The values stay
        until the stage has another value for this primvar of this prim, or another topology. Raises as `set_points`;
        NotSupported for what points and curves are built with, ``"widths"`` and the normals of curves, and for several values of curves.
        """
        self.check_open()
        if not isinstance(name, str) or not name.removeprefix("primvars:"):
            raise ArgumentError(f"name={name!r}: expected the name of a primvar")
        path, name, written = str(path), name.removeprefix("primvars:"), self.index.written
        if array is None:
            changed, rows = written.give_back_primvar(path, name), None
        else:
            rows = float_rows(array, f"values of primvar {name!r} of <{path}>", self.device)
            changed = written.take_primvar(path, name, tuple(rows.shape), interpolation)
        if changed:
            self.delegate.commit_resources(self.index)
        if rows is not None:
            self.tables.written.set_primvar(path, name, rows)

    def close(self) -> None:
        """Let go of the stage and all device memory. Closing twice is harmless."""
        self._listener.stop()
        self._attributes.close()
        self.stage = self._reader = None
        self._make_delegate()

    def _author_copies(self, stage: Usd.Stage, groups: list[WorldGroup]) -> None:
        self.check_open()
        author_worlds(stage, groups, time=self.time_code)

    def _product_sizes(self, cameras: Sequence[Camera]) -> list[tuple[int, int]]:
        self.check_open()
        found = find_render_prims(self.stage)
        products = [product_for_camera(self.stage, camera.source or camera.path, found=found) for camera in cameras]
        return [(0, 0) if product is None else tuple(product.resolution) for product in products]

    def _make_delegate(self) -> None:
        """``delegate``: all renders of the scene go through it; its ``index`` and device ``tables``, empty so far."""
        self.delegate = RenderDelegate(self.device, texture_budget=self._texture_budget)
        self.index, self.tables = self.delegate.create_render_index(self._worlds), self.delegate.tables
        self.tables.worlds.author_copies = self._author_copies
        self.tables.cameras.product_sizes = self._product_sizes
        self._site_attributes = AttributeColumns(self.device)
        tables = (self.tables.cameras, self.tables.bodies, self.tables.instances, self.tables.lights)
        for columns in (self._site_attributes, *(table.attributes for table in tables)):
            columns.source = self._attributes

    def __enter__(self) -> Scene:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def names_of(value: object, option: str) -> list[str]:
    """A list of names, or one text with commas between them. Raises ArgumentError for what is neither."""
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ArgumentError(f"{option}={value!r}: expected a list of names")
    return list(names)


def check_purposes(purposes: Sequence[str] | None) -> tuple[str, ...]:
    """Purposes to draw; "default" is always among them, as in usdrecord."""
    if purposes is None:
        return DEFAULT_PURPOSES
    purposes = names_of(purposes, "purposes")
    unknown = [purpose for purpose in purposes if purpose not in PURPOSES]
    if unknown:
        raise ArgumentError(f"unknown purpose {unknown[0]!r}; purposes: {', '.join(PURPOSES)}")
    return tuple(dict.fromkeys(("default", *purposes)))
