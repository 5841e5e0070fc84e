"""delegate.render_plan: what a render pass keeps for one list of views, and for one set of buffers: records and resolve plans."""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import warp as wp

from hdwarp.aovs.registry import PRIMVAR_PREFIX
from hdwarp.aovs.resolve import ColourSamples, ResolvePlan, primvars_needed
from hdwarp.aovs.user_aovs import planes_behind
from hdwarp.delegate.aov import PRIMVAR_WIDTHS, Target
from hdwarp.delegate.layers import LAYERED, Layers
from hdwarp.delegate.progress import Interests, Progress
from hdwarp.delegate.render_settings import RenderSettings
from hdwarp.launch import Pipeline, cut
from hdwarp.shade.cutout import MAX_LAYERS, mark_cutouts
from hdwarp.shade.look import Lights, Look, Sheer, TracedScene
from hdwarp.shade.plan import LIT
from hdwarp.tables.scene_tables import SceneTables
from hdwarp.tables.structs import Peel, PrimvarColumns, Visibility
from hdwarp.trace import EVERYTHING, SceneKinds, trace, trace_step
from hdwarp.views.rows import ViewTable

if TYPE_CHECKING:
    from hdwarp.trace.view_rays import ViewRayTracer

_LEAST_TILES = 16  # worth a stretch of a pipeline


class ViewRecord:
    """The visibility record of a list of views, and how to fill it. All plans of the same views share one."""

    def __init__(self, views: ViewTable, tables: SceneTables) -> None:
        self.views, self.tables = views, tables
        size, device = max(views.record_size, 1), tables.device
        self.visibility = Visibility()
        self.visibility.slot = wp.empty(size, dtype=wp.int32, device=device)
        self.visibility.instance = wp.empty(size, dtype=wp.int32, device=device)
        self.visibility.key = wp.empty(size, dtype=wp.float32, device=device)
        self._peel: Peel | None = None
        self._behind: ViewRecord | None = None
        self._holes: Coordinates | None = None
        self._version = -1
        self.rays = views.rays
        self._ray_tracer: ViewRayTracer | None = None
        if self.rays is not None:
            from hdwarp.trace.view_rays import ViewRayTracer  # declaring its kernels takes time at every start

            self._ray_tracer = ViewRayTracer(views.count, views.height, views.width, views.tile_count, device)
            for array, nothing in ((self.visibility.slot, -1), (self.visibility.instance, -1), (self.visibility.key, 0.0)):
                array.fill_(nothing)  # packets write no pixel beyond the images

    def refresh(self, scene_version: int) -> None:
        """Look anew at which kinds of things the scene has, if it has changed. Allocates at most once, for the first cut-outs."""
        if scene_version == self._version:
            return
        tables, views = self.tables, self.views
        self._kinds = SceneKinds(mesh=tables.has_meshes, shapes=tables.has_shapes)
        if tables.has_swept:
            self._kinds = EVERYTHING  # rare, and long to compile: one kernel for all such scenes
        self._affine, cameras = False, views.cameras is None or views.lens_cameras
        if cameras:
            records = np.unique(tables.cameras.record[views.camera_rows])
            self._affine = any(tables.cameras.cameras[record].projection == "orthographic" for record in records)
        if tables.has_cutouts and self._peel is None:
            self._peel = self.marks()
        if not tables.has_holes:
            self._holes = None
        elif self._holes is None or self._holes.layout != tables.layout_version:
            self._holes = Coordinates(self)
        self._version = scene_version
        if self._behind is not None:
            self._behind.refresh(scene_version)

    def forget_tables(self) -> None:
        """Let go of the tables' arrays until `refresh`."""
        self._holes, self._version = None, -1
        if self._behind is not None:
            self._behind.forget_tables()

    @property
    def behind(self) -> ViewRecord:
        """Another record of the same views, for what is behind blended surfaces."""
        if self._behind is None:
            self._behind = ViewRecord(self.views, self.tables)
            if self._version >= 0:
                self._behind.refresh(self._version)
        return self._behind

    def trace(self) -> None:
        """What every pixel sees, by the view rows as they are: the first surface that is not cut away there."""
        self._trace_layer(None)
        self._look_through(0)

    def marks(self) -> Peel:
        """New marks of pixels to look behind, none of them set."""
        marks, device = Peel(), self.tables.device
        marks.pixels = wp.zeros(max(self.views.record_size, 1), dtype=wp.int32, device=device)
        marks.tiles = wp.zeros(max(self.views.tile_count, 1), dtype=wp.int32, device=device)
        return marks

    def trace_behind(self, marks: Peel) -> None:
        """What the marked pixels see behind what they see; in their tiles, all others have to see nothing that is cut away."""
        self._trace_layer(marks)
        if self.tables.has_cutouts:
            wp.copy(self._peel.tiles, marks.tiles)
        self._look_through(1)

    def _look_through(self, first: int) -> None:
        """Trace on behind what is cut away. ``first``: 0, or 1: only in the tiles that are marked."""
        if not self.tables.has_cutouts:
            return
        tables, device = self.tables, self.tables.device
        columns = tables.meshes.columns, tables.instances.columns(), tables.materials.columns
        for layer in range(first, first + MAX_LAYERS):
            views = self.views.rows, self.views.count, self.views.tile_count
            where = {}
            if self._holes is not None:
                where = {"textures": tables.textures.columns, **self._holes.planes, "pixel_count": self._holes.pixel_count}
                self._holes.update()
            mark_cutouts(*views, *columns, self.visibility, self._peel, layer=layer, device=device, **where)
            if device.is_cpu and not self._peel.tiles.numpy().any():
                break  # elsewhere looking would mean waiting; layers without marks are quick
            self._trace_layer(self._peel)

    def _trace_layer(self, peel: Peel | None) -> None:
        scene = self._scene()
        if self.views.has_lenses:
            trace(tile_count_total=self.views.tile_count, peel=peel, **scene)
        if self._ray_tracer is not None:
            shared = {name: scene[name] for name in ("meshes", "instances", "top", "visibility", "kinds", "planes")}
            # What is looked behind is told by its key, to the bit: all layers have to come from one kernel.
            singly = self.tables.has_cutouts or self.tables.has_blending
            self._ray_tracer.trace(self.views.rows, self.rays.columns, peel=peel, singly=singly, **shared)

    def _scene(self) -> dict[str, object]:
        """What the tracer takes."""
        return {
            "views": self.views.rows,
            "view_count": self.views.count,
            "meshes": self.tables.meshes.columns,
            "instances": self.tables.instances.columns(flags=self.views.flags),
            "top": self.tables.top_level,
            "visibility": self.visibility,
            "kinds": self._kinds,
            "affine": self._affine,
            "planes": self.views.planes,
            "device": self.tables.device,
        }

    def traced_scene(self, textured: bool) -> TracedScene:
        """For shadow rays; see `refresh`. ``textured``: textures blend, else their means do, unless some cut, which they do in any case."""
        tables, sheer = self.tables, None
        if tables.has_cutouts or tables.has_blending:
            shown = tables.textures.columns if textured or tables.has_holes else tables.textures.mean_columns
            textured = "opacity" in tables.textures.inputs
            sheer = Sheer(
                materials=tables.materials.columns,
                textures=shown if textured else None,
                coordinates=[tables.primvar(name, 2) for name in tables.textures.sets] if textured else [],
                values=[tables.primvar(name, 4) for name in tables.textures.values] if textured else [],
                display_opacity=tables.primvar("displayOpacity", 1) if tables.has_display_opacity else None,
            )
        scene = tables.meshes.columns, tables.instances.columns(flags=self.views.flags), tables.top_level
        return TracedScene(*scene, self._kinds, sheer)

    @property
    def pipeline_key(self) -> Hashable:
        """What a `pipeline` is good for."""
        flags = self.views.flags
        return self._kinds, self._affine, self.views.planes.ptr, None if flags is None else flags.ptr

    def pipeline(self, plan: ResolvePlan) -> Pipeline:
        """Trace and resolve over rows of tiles: pixels are resolved right after they were traced. For scenes without cut-outs."""
        step, jobs_per_tile = trace_step(**self._scene())
        bands, stretches = self.views.bands, []
        least = -(-_LEAST_TILES * (len(bands) - 1) // max(self.views.tile_count, 1))
        for first, last in cut(len(bands) - 1, least, self.tables.device):
            tiles, lines = zip(bands[first], bands[last], strict=True)
            of_lines = (lines[0] * plan.steps.jobs_per_line, lines[1] * plan.steps.jobs_per_line)
            stretches.append([(tiles[0] * jobs_per_tile, tiles[1] * jobs_per_tile), *[of_lines] * len(plan.steps.kernels)])
        return Pipeline([step, *plan.steps.kernels], stretches, device=self.tables.device)


class Coordinates:
    """Where on the textures of its surfaces what a record holds is seen, and the primvars that are shown themselves."""

    def __init__(self, record: ViewRecord) -> None:
        views, tables = record.views, record.tables
        self.layout = tables.layout_version
        self.pixel_count = views.count * views.height * views.width
        self.planes: dict[str, wp.array] = {}
        self._plans = []
        kinds = ("st", tables.textures.sets, wp.vec2f, 2), ("values", tables.textures.values, wp.vec4f, 4)
        for kind, sets, dtype, width in kinds:
            whole = self.planes[kind] = wp.zeros(len(sets) * self.pixel_count, dtype=dtype, device=tables.device)
            outputs = {f"primvars:{name}": whole[k * self.pixel_count : (k + 1) * self.pixel_count] for k, name in enumerate(sets)}
            columns = {name: tables.primvar(name, width) for name in sets}
            if sets:
                self._plans.append(_resolve_plan(record, outputs, columns, missing=math.nan))

    def update(self) -> None:
        for plan in self._plans:
            plan.update()


def _resolve_plan(
    record: ViewRecord, outputs: dict[str, wp.array], primvars: Mapping[str, PrimvarColumns], **options: object
) -> ResolvePlan:
    tables, views = record.tables, record.views
    return ResolvePlan(
        views.rows,
        views.count,
        views.width,
        views.height,
        tables.meshes.columns,
        tables.instances.columns(),
        tables.materials.columns,
        primvars,
        record.visibility,
        outputs,
        rays=None if views.rays is None else views.rays.columns,
        lenses=views.has_lenses,
        swept=tables.has_swept,
        device=tables.device,
        **options,
    )


class Planes:
    """Planes filled together from one record: those of ``plan``, and those of ``layers``; None: there are none."""

    def __init__(self, record: ViewRecord, plan: ResolvePlan | None, layers: Layers | None) -> None:
        self._record, self._plan, self._layers = record, plan, layers
        self._pipelines: dict[Hashable, Pipeline] = {}

    def look(self, sample: int = 0) -> None:
        """Trace the views as they are placed now, and resolve: sample number ``sample`` of each pixel."""
        record = self._record
        # The trace is a loop, or goes by other jobs, or nothing can follow it at once.
        if record.tables.has_cutouts or record.rays is not None or self._plan is None:
            record.trace()
            self.update(sample)
            return
        key = record.pipeline_key
        if key not in self._pipelines:
            self._pipelines[key] = record.pipeline(self._plan)
        self._pipelines[key].run()
        self._plan.finish(sample)
        if self._layers is not None:
            self._layers.update(sample)

    def update(self, sample: int = 0) -> None:
        """Resolve what was traced last."""
        if self._plan is not None:
            self._plan.update(sample)
        if self._layers is not None:
            self._layers.update(sample)


class RenderPlan:
    """The resolve plans for one record and one set of buffers.

    ``truth`` fills the planes of the pixel's centre; where there are planes that average, ``colour`` resolves one sample and ``samples``
    sums it up; each is None where no plane needs it. When the tables' arrays have moved, the first two are made anew (`forget_tables`,
    `follow_tables`); what is summed up so far stays.
    """

    def __init__(
        self,
        record: ViewRecord,
        targets: Mapping[str, Target],
        clear: Mapping[str, object],
        sample_count: int,
        settings: RenderSettings,
    ) -> None:
        """``settings``: with nothing left open."""
        self.record, self.settings = record, settings
        self.addresses = frozenset(target.array.ptr for target in targets.values())
        self.progress = Progress()
        averaged = {name: target.array for name, target in targets.items() if target.averaged and sample_count > 1}
        direct = {name: target.array for name, target in targets.items() if name not in averaged}
        self.needs_previous = "motion" in direct
        rows = record.views.camera_rows if record.views.cameras is None or record.views.lens_cameras else np.zeros(0, np.int64)
        is_lit = settings.integrator != "unlit" and any(name in targets for name in LIT)
        self.interests = Interests(np.unique(rows), "materialId" in planes_behind(direct), self.needs_previous, is_lit)
        self.made_with: tuple | None = None  # what the pass compares to tell whether the picture is still that of the scene
        self.sample_count = sample_count if averaged else 1
        self._direct, self._clear = direct, dict(clear)
        self.samples = None
        if averaged:
            views = record.views
            self.samples = ColourSamples(
                views.rows,
                views.count,
                views.width,
                views.height,
                averaged,
                clear={name: value for name, value in clear.items() if name in averaged},
                device=record.tables.device,
            )
        self._colour_clear = {"color": clear["color"]} if "color" in clear and "color" in averaged else {}
        self.forget_tables()
        self.follow_tables()

    def forget_tables(self) -> None:
        """Let go of the tables' arrays; the plan is of no use until `follow_tables`."""
        self.record.forget_tables()
        self.truth: Planes | None = None
        self.colour: Planes | None = None
        self._is_current = False

    def follow_tables(self) -> None:
        """Make what `forget_tables` let go of."""
        lights = self.record.tables.lights.turns()  # steps are as many as lights cast shadows
        if self._is_current and lights == self._lights:
            return
        self._lights = lights
        self.truth = self._plan(self._direct, self._clear) if self._direct else None
        self.colour = (
            self._plan({"color": self.samples.sample}, self._colour_clear, self.sample_count) if self.samples is not None else None
        )
        self._is_current = True

    def _plan(self, outputs: dict[str, wp.array], clear: Mapping[str, object], sample_count: int = 1) -> Planes:
        tables, views = self.record.tables, self.record.views
        options = {}
        if "motion" in outputs:
            options = {"previous_views": views.keep_previous(), "previous": tables.keep_previous().columns}
        options["look"] = self._look(sample_count)
        layered = {name: outputs[name] for name in LAYERED if name in outputs} if tables.has_blending else {}
        layers = None
        if layered:
            layers = Layers(self.record, layered, clear, lambda record, planes: self._resolve(record, planes, look=options["look"]))
        outputs = {name: array for name, array in outputs.items() if name not in layered}
        chosen = {name: value for name, value in clear.items() if name in outputs}
        return Planes(self.record, self._resolve(self.record, outputs, clear=chosen, **options) if outputs else None, layers)

    def _resolve(self, record: ViewRecord, outputs: dict[str, wp.array], **options: object) -> ResolvePlan:
        tables = record.tables
        names = primvars_needed(tuple(outputs), display_opacity=tables.has_display_opacity)
        needed = [(name, PRIMVAR_WIDTHS.get(name)) for name in names]
        # What shading reads where there is any costs nothing where there is none.
        given = [item for item in needed if f"{PRIMVAR_PREFIX}{item[0]}" in outputs or not tables.is_bare(*item)]
        primvars = {name: tables.primvar(name, width) for name, width in given}
        return _resolve_plan(record, outputs, primvars, **options)

    def _look(self, sample_count: int) -> Look:
        tables, settings = self.record.tables, self.settings
        lights = None
        if len(tables.lights):
            lights = Lights(tables.lights.columns, tables.lights.domes.columns, self._lights)
        options = {}
        if tables.textures:
            options = {
                "textures": tables.textures.columns if settings.textures else tables.textures.mean_columns,
                "coordinates": [tables.primvar(name, 2) for name in tables.textures.sets],
                "values": [tables.primvar(name, 4) for name in tables.textures.values],
                "textured": tables.textures.inputs,
            }
        return Look(
            lit=settings.integrator != "unlit",
            camera_light=settings.headlight,
            ambient_occlusion=settings.ambient_occlusion,
            light_samples=settings.light_samples,
            sample_count=sample_count,
            blended=tables.has_blending,
            lights=lights,
            shadows=settings.shadows,
            scene=functools.partial(self.record.traced_scene, settings.textures),
            **options,
        )
