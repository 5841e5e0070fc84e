"""delegate.render_pass: Hydra's render pass: views in, AOV buffers out. One trace a sample, every plane from the same record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import warp as wp

from hdwarp.aovs.registry import aov_spec, primvar_name
from hdwarp.aovs.resolve import ColourSamples, ResolvePlan, primvars_needed
from hdwarp.delegate.render_settings import RenderSettings
from hdwarp.delegate.sampling import sample_grid
from hdwarp.errors import ArgumentError
from hdwarp.launch import Pipeline, cut
from hdwarp.shade.cutout import MAX_LAYERS, mark_cutouts
from hdwarp.tables.scene_tables import SceneTables
from hdwarp.tables.structs import Peel, Visibility
from hdwarp.trace import SceneKinds, trace, trace_step
from hdwarp.views.rows import ViewTable

_WIDTHS = {"normals": 3, "displayColor": 3}  # primvars that shading reads; all others are as wide as authored
_LEAST_TILES = 16  # worth a stretch of a pipeline
_AVERAGED = ("color", "rgba8")  # planes that average samples; all others are those of the pixel's centre


@dataclass(frozen=True, slots=True)
class _Planes:
    plan: ResolvePlan
    traced: Pipeline | None  # the plan and the trace before it in one; None where cut-outs make the trace a loop


class RenderPass:
    """Renders the views of a `ViewTable` into buffers. Made for one set of planes; `execute` allocates nothing after its first call
    with the same buffers."""

    def __init__(
        self,
        tables: SceneTables,
        views: ViewTable,
        aovs: Sequence[str],
        *,
        samples: int = 1,
        settings: RenderSettings | None = None,
    ) -> None:
        """``aovs``: planes to fill. ``samples``: a square number. Raises ArgumentError, NotSupported for what cannot be rendered."""
        self.tables, self.views = tables, views
        self.aovs = tuple(aovs)
        self.settings = settings if settings is not None else RenderSettings()
        self._grid = sample_grid(samples)
        for name in self.aovs:
            aov_spec(name)
        size, device = max(views.record_size, 1), tables.device
        self._record = Visibility()
        self._record.slot = wp.empty(size, dtype=wp.int32, device=device)
        self._record.instance = wp.empty(size, dtype=wp.int32, device=device)
        self._record.key = wp.empty(size, dtype=wp.float32, device=device)
        self._peel: Peel | None = None
        if tables.has_cutouts:
            self._peel = Peel()
            self._peel.pixels = wp.zeros(size, dtype=wp.int32, device=device)
            self._peel.tiles = wp.zeros(max(views.tile_count, 1), dtype=wp.int32, device=device)
        self._version = tables.version
        self._kinds = SceneKinds(mesh=tables.has_meshes, shapes=tables.has_shapes)
        self._affine = any(tables.cameras.records[view.camera].projection == "orthographic" for view in views.views)
        self._bound: tuple | None = None  # buffers and clear values the plans were made for

    @property
    def is_stale(self) -> bool:
        """True when the tables have changed since the pass was made: make a new one."""
        return self.tables.version != self._version

    def execute(
        self,
        body_q: wp.array,
        aov_bindings: Mapping[str, wp.array],
        *,
        clear: Mapping[str, object] | None = None,
        clip: wp.array | None = None,
        camera_transforms: wp.array | None = None,
        view_mask: wp.array | None = None,
        world_mask: wp.array | None = None,
    ) -> None:
        """Fill ``aov_bindings`` (AOV name -> contiguous (view, H, W) array). ``body_q``: poses that carry cameras; instances are posed
        by `SceneTables.pose` before. ``clip``: (1,) vec2f near and far [m] for all views."""
        if self.views.count == 0:
            return
        self._bind(aov_bindings, dict(clear or {}))

        def look(planes: _Planes, shift: tuple[float, float]) -> None:
            self.views.update(
                self.tables.cameras.columns,
                self.tables.world_columns,
                body_q,
                camera_transforms=camera_transforms,
                view_mask=view_mask,
                world_mask=world_mask,
                clip=clip,
                shift=shift,
            )
            if planes.traced is not None:
                planes.traced.run()
            else:
                self._trace()
                planes.plan.update()

        centre = (0.0, 0.0)
        if self._truth is not None:
            look(self._truth, centre)
        for i, shift in enumerate(self._grid if self._colour is not None else ()):
            if shift == centre and self._truth is not None:
                self._colour.plan.update()  # the record is still that of the pixels' centres
            else:
                look(self._colour, shift)
            self._samples.add(first=i == 0)
        if self._samples is not None:
            self._samples.finish(len(self._grid))

    def _trace(self) -> None:
        """What every pixel sees: the first surface that is not cut away there."""
        self._trace_layer(None)
        if self._peel is None:
            return
        tables, device = self.tables, self.tables.device
        columns = tables.meshes.columns, tables.instances.columns(), tables.materials.columns
        for layer in range(MAX_LAYERS):
            views = self.views.rows, self.views.count, self.views.tile_count
            mark_cutouts(*views, *columns, self._record, self._peel, layer=layer, device=device)
            if device.is_cpu and not self._peel.tiles.numpy().any():
                break  # elsewhere looking would mean waiting; layers without marks are quick
            self._trace_layer(self._peel)

    def _trace_layer(self, peel: Peel | None) -> None:
        trace(tile_count_total=self.views.tile_count, peel=peel, **self._scene())

    def _scene(self) -> dict[str, object]:
        """What the tracer takes."""
        return {
            "views": self.views.rows,
            "view_count": self.views.count,
            "meshes": self.tables.meshes.columns,
            "instances": self.tables.instances.columns(cull=self.settings.cull),
            "top": self.tables.top_level,
            "visibility": self._record,
            "kinds": self._kinds,
            "affine": self._affine,
            "planes": self.views.planes,
            "device": self.tables.device,
        }

    def _bind(self, bindings: Mapping[str, wp.array], clear: dict[str, object]) -> None:
        """Plans for these buffers; kept until other buffers or clear values come."""
        key = (tuple((name, array.ptr) for name, array in bindings.items()), repr(sorted(clear.items())))
        if key == self._bound:
            return
        missing = [name for name in self.aovs if name not in bindings]
        if missing:
            raise ArgumentError(f"no buffer is bound for {', '.join(missing)}")
        self._truth = self._colour = self._samples = None
        averaged = {name: bindings[name] for name in self.aovs if name in _AVERAGED} if len(self._grid) > 1 else {}
        direct = {name: bindings[name] for name in self.aovs if name not in averaged}
        if direct:
            self._truth = self._plan(direct, clear)
        if averaged:
            self._samples = ColourSamples(
                self.views.rows,
                self.views.count,
                self.views.width,
                self.views.height,
                averaged,
                clear={name: value for name, value in clear.items() if name in averaged},
                device=self.tables.device,
            )
            colour_clear = {"color": clear["color"]} if "color" in clear else {}
            self._colour = self._plan({"color": self._samples.sample}, colour_clear)
        self._bound = key

    def _plan(self, outputs: dict[str, wp.array], clear: dict[str, object]) -> _Planes:
        tables = self.tables
        primvars = {name: tables.primvar(name, _WIDTHS.get(name)) for name in primvars_needed(tuple(outputs))}
        plan = ResolvePlan(
            self.views.rows,
            self.views.count,
            self.views.width,
            self.views.height,
            tables.meshes.columns,
            tables.instances.columns(),
            tables.materials.columns,
            primvars,
            self._record,
            outputs,
            clear={name: value for name, value in clear.items() if name in outputs},
            device=tables.device,
        )
        return _Planes(plan, None if self._peel is not None else self._pipeline(plan))

    def _pipeline(self, plan: ResolvePlan) -> Pipeline:
        """Trace and resolve over rows of tiles: pixels are resolved right after they were traced."""
        step, jobs_per_tile = trace_step(**self._scene())
        bands, stretches = self.views.bands, []
        least = -(-_LEAST_TILES * (len(bands) - 1) // max(self.views.tile_count, 1))
        for first, last in cut(len(bands) - 1, least, self.tables.device):
            tiles, lines = zip(bands[first], bands[last], strict=True)
            of_lines = (lines[0] * plan.jobs_per_line, lines[1] * plan.jobs_per_line)
            stretches.append([(tiles[0] * jobs_per_tile, tiles[1] * jobs_per_tile), *[of_lines] * len(plan.steps)])
        return Pipeline([step, *plan.steps], stretches, device=self.tables.device)


def array_type(tables: SceneTables, aov: str) -> type:
    """Warp type of one pixel of an AOV; a primvar's width is the scene's. Raises ArgumentError for a primvar that no prim has."""
    name = primvar_name(aov)
    if name is None:
        return aov_spec(aov).dtype
    known = tables.primvar_names()
    if name not in known:
        have = ", ".join(known) or "none"
        raise ArgumentError(f"no drawn prim has a primvar {name!r} of one to four numbers; such primvars of the scene: {have}")
    return aov_spec(aov, components=tables.primvar(name, _WIDTHS.get(name)).width).dtype
