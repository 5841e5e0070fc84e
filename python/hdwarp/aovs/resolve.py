"""aovs.resolve: one visibility record -> every AOV asked for. Made once with its scratch memory, then run as often as one likes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import warp as wp

from hdwarp.aovs.buffers import flat_pixels
from hdwarp.aovs.footprints import footprints_kernel
from hdwarp.aovs.geometry_planes import GeometryClears, GeometryPlanes
from hdwarp.aovs.ids import IdClears, IdPlanes, ids_kernel
from hdwarp.aovs.interpolation import normals_kernel, primvar_kernel
from hdwarp.aovs.motion import motion_kernel
from hdwarp.aovs.pixel_runs import jobs_per_row, lane_count
from hdwarp.aovs.registry import AOVS, aov_spec, primvar_name
from hdwarp.aovs.resolve_kernels import geometry_kernel
from hdwarp.aovs.steps import Steps
from hdwarp.aovs.user_aovs import function_of, planes_behind, user_aov_step
from hdwarp.errors import ArgumentError
from hdwarp.launch import Step, launch
from hdwarp.shade.colour import samples_kernel
from hdwarp.shade.encode import srgb_tables
from hdwarp.shade.inputs import GREY
from hdwarp.shade.look import Look
from hdwarp.shade.plan import BASED, COLOURS, FADED, LIT, ColourPlan, Seen, needs_positions, shown_inputs
from hdwarp.tables.structs import (
    InstanceColumns,
    MaterialColumns,
    MeshColumns,
    PreviousColumns,
    PrimvarColumns,
    RayColumns,
    Visibility,
)

# AOV -> field of the planes that the geometry and id kernels fill.
_GEOMETRY = {
    "distance_to_image_plane": "distance_to_image_plane",
    "cameraDepth": "camera_depth",
    "distance_to_camera": "distance_to_camera",
    "depth": "depth",
    "position": "position",
    "Peye": "position_eye",
    "Ngeom": "normal",
    "barycentric": "barycentric",
}
_IDS = {
    "primId": "prim_id",
    "instanceId": "instance_id",
    "elementId": "element_id",
    "triangleId": "triangle_id",
    "materialId": "material_id",
    "bodyId": "body_id",
    "instanceRow": "instance_row",
    "worldId": "world_id",
}


def primvars_needed(names: list[str] | tuple[str, ...], *, display_opacity: bool = False) -> list[str]:
    """Primvar names whose columns `ResolvePlan` can use for these AOVs: `normals` and `displayColor` where shading reads them, and
    `displayOpacity` where something is blended by it."""
    names = planes_behind(names)
    needed = dict.fromkeys(primvar_name(name) for name in names if primvar_name(name))
    if any(name in ("normal", "Neye", *LIT) for name in names):
        needed["normals"] = None
    if any(name in BASED for name in names):
        needed["displayColor"] = None
    if display_opacity and any(name in FADED for name in names):
        needed["displayOpacity"] = None
    return list(needed)


class ResolvePlan:
    """What one resolve launches, with its structs and scratch memory. `update` allocates and copies nothing after its first call, and
    does not wait.

    The arrays behind all arguments may change between updates, their addresses may not: make a new plan when a table has grown.
    """

    def __init__(
        self,
        views: wp.array,
        view_count: int,
        width: int,
        height: int,
        meshes: MeshColumns,
        instances: InstanceColumns,
        materials: MaterialColumns,
        primvars: Mapping[str, PrimvarColumns],
        visibility: Visibility,
        outputs: Mapping[str, wp.array],
        *,
        clear: Mapping[str, object] | None = None,
        previous_views: wp.array | None = None,
        previous: PreviousColumns | None = None,
        rays: RayColumns | None = None,
        lenses: bool = True,
        swept: bool = False,
        look: Look | None = None,
        missing: float = 0.0,
        device: wp.Device | str,
    ) -> None:
        """``views``: wp.array[ViewRow]; ``width``, ``height``: the largest of them. ``primvars``: columns by name without prefix;
        ``"normals"`` are the shading normals of meshes (3 wide), ``"displayColor"`` the base colour where no material gives one (3 wide),
        ``"displayOpacity"`` how opaque that is (1 wide).
        ``outputs``: an array an AOV, of its pixel type and any shape, filled from `ViewRow.output` on. ``clear``: values by AOV name.
        ``previous_views``, ``previous``: views and places in the frame before, for `motion`; None: as now. ``rays``: those of views whose
        rays are given; ``lenses``: whether there are views of other rays. `depth` and `motion` are of these alone. ``swept``: there are
        points or curves. ``look``: how colour is made;
        None: without textures and lights. ``missing``: what planes of primvars hold where a surface has none of that name.
        Every device array must have at least one item, as `tables.storage` sees to.
        """
        self.device = wp.get_device(device)
        self.outputs = dict(outputs)
        self.steps = Steps(views, view_count, width, height, device=self.device)
        self._previous = [views if previous_views is None else previous_views, PreviousColumns() if previous is None else previous]
        self._rays, self._lenses, self._swept = rays, lenses, swept
        self._look, self._missing = look or Look(), missing
        self._clear = dict(clear or {})
        unknown = [name for name in self._clear if name not in self.outputs]
        if unknown:
            raise ArgumentError(f"clear values for {', '.join(unknown)}, which are not among the outputs: {', '.join(self.outputs)}")
        self._flat = self._checked(primvars)
        self.steps.pixel_count = max((array.shape[0] for array in self._flat.values()), default=0)
        for name in planes_behind(self._flat):  # what registered functions read, and nobody has asked for
            if name not in self._flat:
                self._flat[name] = self.steps.scratch(aov_spec(name).dtype)
        self._colour: ColourPlan | None = None
        self._late: list[Step] = []
        self._plan(meshes, instances, materials, primvars, visibility)
        self._add_functions(visibility)

    def update(self, sample: int = 0) -> None:
        """Fill the outputs from the visibility record. Pixels of masked views keep what they hold. ``sample``: number of the sample of
        each pixel that the record is of."""
        self.steps.run()
        self.finish(sample)

    def finish(self, sample: int = 0) -> None:
        """What `update` does after ``steps``, where these were run by a pipeline of their own."""
        if self._colour is not None:
            self._colour.finish(sample)
        for kernel, arguments in self._late:
            self.steps.launch(kernel, arguments)

    def _checked(self, primvars: Mapping[str, PrimvarColumns]) -> dict[str, wp.array]:
        flat = {}
        for name, array in self.outputs.items():
            primvar = primvar_name(name)
            if primvar is None:
                flat[name] = flat_pixels(aov_spec(name), array, self.device)
                continue
            if primvar not in primvars:
                known = ", ".join(f"primvars:{known}" for known in primvars) or "none"
                raise ArgumentError(f"no columns for AOV '{name}'; given were {known}")
            flat[name] = flat_pixels(aov_spec(name, components=primvars[primvar].width), array, self.device)
        for name, width in (("normals", 3), ("displayColor", 3), ("displayOpacity", 1)):
            if name in primvars and primvars[name].width != width:
                raise ArgumentError(f"primvar '{name}' has {primvars[name].width} components; build its columns {width} wide")
        if len({array.shape[0] for array in flat.values()}) > 1:
            raise ArgumentError(f"outputs differ in pixel count: { {name: array.shape[0] for name, array in flat.items()} }")
        return flat

    def _clear_of(self, name: str) -> tuple[float, ...]:
        width = getattr(self._flat[name].dtype, "_length_", 1) if name in self._flat and name not in AOVS else None
        return aov_spec(name, components=width).clear_values(self._clear.get(name))

    def _plan(
        self,
        meshes: MeshColumns,
        instances: InstanceColumns,
        materials: MaterialColumns,
        primvars: Mapping[str, PrimvarColumns],
        visibility: Visibility,
    ) -> None:
        asked, look, steps = self._flat, self._look, self.steps
        coloured = any(name in asked for name in COLOURS)
        lit = look.lit and any(name in asked for name in LIT)
        shaded = lit or "normal" in asked or "Neye" in asked
        display = primvars.get("displayColor") if any(name in asked for name in BASED) else None
        opacity = primvars.get("displayOpacity") if look.blended and any(name in asked for name in FADED) else None
        smooth = primvars.get("normals") if shaded else None
        textured = bool(shown_inputs(look, asked))
        interpolated = [name for name in asked if primvar_name(name)]
        slots, seen, keys = (steps.blocks(array) for array in (visibility.slot, visibility.instance, visibility.key))

        geometry = GeometryPlanes()
        for name, member in _GEOMETRY.items():
            if name in asked:
                setattr(geometry, member, asked[name])
        if shaded and "Ngeom" not in asked:
            geometry.normal = steps.scratch(wp.vec3f)
        if needs_positions(look, asked) and "Peye" not in asked:
            geometry.position_eye = steps.scratch(wp.vec3f)
        if "motion" in asked or textured:
            geometry.ray_distance = steps.scratch(wp.float64)
        if (display is not None or opacity is not None or smooth is not None or interpolated or textured) and "barycentric" not in asked:
            geometry.barycentric = steps.scratch(wp.vec2f)
        if (
            shaded
            or interpolated
            or display is not None
            or opacity is not None
            or textured
            or "motion" in asked
            or any(name in asked for name in _GEOMETRY)
        ):
            self._geometry(meshes, instances, [slots, seen, keys], geometry)
        if "motion" in asked:
            then, clear = self._previous, wp.vec2f(*self._clear_of("motion"))
            corners = [steps.scalars(array) for array in (meshes.leaf_vertices, meshes.triangle_points, then[1].points)]
            tables = [then[0], *corners, meshes, instances, then[1]]
            steps.add(motion_kernel(steps.lanes, self._swept), [*tables, slots, seen, geometry.ray_distance, clear, asked["motion"]])

        ids = IdPlanes()
        for name, member in _IDS.items():
            if name in asked:
                setattr(ids, member, asked[name])
        if coloured:
            ids.material_row = steps.scratch(wp.int32)
        if coloured or any(name in asked for name in _IDS):
            clears = IdClears()
            for name, member in _IDS.items():
                setattr(clears, member, int(self._clear_of(name)[0]))
            steps.add(ids_kernel(steps.lanes), [meshes, instances, materials, slots, seen, clears, ids])

        def interpolate(
            columns: PrimvarColumns,
            out: wp.array,
            missing: float,
            clear: tuple[float, ...],
            spread: Sequence[wp.array | None] = (None, None),
        ) -> None:
            padded = wp.vec4f(*clear, *[0.0] * (4 - len(clear)))
            points, corners = steps.scalars(meshes.triangle_points), steps.scalars(meshes.triangle_corners)
            surface = [meshes, points, corners, instances, slots, seen, steps.scalars(geometry.barycentric)]
            steps.add(primvar_kernel(steps.lanes), [*surface, columns, missing, padded, steps.scalars(out), *spread])

        def interpolate_sets(sets: Sequence[PrimvarColumns], dtype: type, changes: wp.array | None = None) -> list[wp.array | None]:
            """Planes of them, and with the ``changes`` of weights from pixel to pixel planes of their own changes."""
            count, width = steps.pixel_count, dtype._length_
            planes, spreads = steps.scratch(dtype, len(sets)), None if changes is None else steps.scratch(wp.vec4f, len(sets))
            for k, columns in enumerate(sets):
                of_set = slice(k * count, (k + 1) * count)
                spread = (None, None) if changes is None else (steps.scalars(changes), spreads[of_set])
                interpolate(columns, planes[of_set], math.nan, (0.0,) * width, spread)
            return [planes, spreads]

        for name in interpolated:
            interpolate(primvars[primvar_name(name)], asked[name], self._missing, self._clear_of(name))
        normal = asked.get("normal")
        if shaded:
            smooth_plane = None
            if smooth is not None:
                smooth_plane = steps.scratch(wp.vec3f)
                interpolate(smooth, smooth_plane, 0.0, (0.0, 0.0, 0.0))
            if normal is None and lit:
                normal = steps.scratch(wp.vec3f)
            clears = [wp.vec3f(*self._clear_of("normal")), wp.vec3f(*self._clear_of("Neye"))]
            planes = [steps.scalars(geometry.normal), steps.scalars(smooth_plane)]
            turns = steps.scalars(instances.world_from_object)
            steps.add(normals_kernel(steps.lanes), [turns, seen, *planes, *clears, normal, asked.get("Neye")])
        if not coloured:
            return
        display_plane = None
        if display is not None:
            display_plane = steps.scratch(wp.vec3f)
            interpolate(display, display_plane, GREY, (0.0, 0.0, 0.0))
        coordinates = spreads = values = None
        if textured:
            changes = steps.scratch(wp.vec4f)
            surface = [steps.scalars(meshes.leaf_vertices), steps.scalars(instances.world_from_object), instances, slots, seen]
            for given, rays in self._ray_kinds():
                steps.add(footprints_kernel(steps.lanes, given), [*surface, *rays, geometry.ray_distance, changes])
            coordinates, spreads = interpolate_sets(look.coordinates, wp.vec2f, changes)
            values, _ = interpolate_sets(look.values, wp.vec4f)
        opacity_plane = None
        if opacity is not None:
            opacity_plane = steps.scratch(wp.float32)
            interpolate(opacity, opacity_plane, 1.0, (0.0,))
        found = Seen(
            record=visibility,
            meshes=meshes,
            instances=instances,
            slot=slots,
            instance=seen,
            material_row=ids.material_row,
            geometric=geometry.normal if lit else None,
            normal=normal if lit else None,
            positions=geometry.position_eye if needs_positions(look, asked) else None,
            display_color=display_plane,
            display_opacity=opacity_plane,
            coordinates=coordinates,
            spreads=spreads,
            values=values,
            rays=[(given, rays[1]) for given, rays in self._ray_kinds()],
        )
        clears = {name: self._clear_of(name) for name in COLOURS}
        self._colour = ColourPlan(steps, found, materials, look, {name: asked[name] for name in COLOURS if name in asked}, clears)

    def _geometry(self, meshes: MeshColumns, instances: InstanceColumns, record: list[wp.array], planes: GeometryPlanes) -> None:
        vertices = self.steps.scalars(meshes.leaf_vertices)
        clears = GeometryClears()
        for name, member in _GEOMETRY.items():
            values = self._clear_of(name)
            make = {1: float, 2: wp.vec2f, 3: wp.vec3f}[len(values)]
            setattr(clears, member, make(*values))
        linear, shapes = self.steps.scalars(instances.world_from_object), self.steps.scalars(instances.shape)
        for given, rays in self._ray_kinds():
            self.steps.add(
                geometry_kernel(self.steps.lanes, given, self._swept), [vertices, linear, shapes, instances, *record, *rays, clears, planes]
            )

    def _add_functions(self, visibility: Visibility) -> None:
        """The steps of registered functions: behind all that they read."""
        is_late = self._colour is not None and self._colour.is_late
        directions = None if self._rays is None else self._rays.directions
        for name in self.outputs:
            function = function_of(name)
            if function is None:
                continue
            step = user_aov_step(name, function, self._flat, visibility.instance, directions, self._clear_of(name), self.steps.lanes)
            if is_late and not {"base_color", "roughness"}.isdisjoint(function.planes):
                self._late.append(step)
            else:
                self.steps.add(*step)

    def _ray_kinds(self) -> list[tuple[bool, list[wp.array | None]]]:
        """(whether rays are given, these rays) for each kind of view there is."""
        kinds: list[tuple[bool, list[wp.array | None]]] = [(False, [None, None])] if self._lenses else []
        if self._rays is not None:
            kinds.append((True, [self.steps.scalars(self._rays.origins), self.steps.scalars(self._rays.directions)]))
        return kinds


def resolve(
    views: wp.array,
    view_count: int,
    width: int,
    height: int,
    meshes: MeshColumns,
    instances: InstanceColumns,
    materials: MaterialColumns,
    primvars: Mapping[str, PrimvarColumns],
    visibility: Visibility,
    outputs: Mapping[str, wp.array],
    *,
    clear: Mapping[str, object] | None = None,
    swept: bool = False,
    device: wp.Device | str,
) -> ResolvePlan:
    """`ResolvePlan` made and run once; the plan, to run it again."""
    scene = [meshes, instances, materials, primvars, visibility, outputs]
    plan = ResolvePlan(views, view_count, width, height, *scene, clear=clear, swept=swept, device=device)
    plan.update()
    return plan


class ColourSamples:
    """Sums the colour of several samples a pixel and gives their mean: resolve each sample's `color` into ``sample``, then `add` it."""

    def __init__(
        self,
        views: wp.array,
        view_count: int,
        width: int,
        height: int,
        outputs: Mapping[str, wp.array],
        *,
        clear: Mapping[str, object] | None = None,
        device: wp.Device | str,
    ) -> None:
        """``outputs``: those of `color` and `rgba8` that are wanted, as for `ResolvePlan`."""
        self.device = wp.get_device(device)
        flat = {name: flat_pixels(aov_spec(name), outputs[name], self.device) for name in ("color", "rgba8") if name in outputs}
        if not flat:
            raise ArgumentError("colour samples need an output for color or rgba8")
        size = max(array.shape[0] for array in flat.values())
        lanes = lane_count(self.device)
        jobs = jobs_per_row(width, lanes)
        self._kernel, self._job_count = samples_kernel(lanes), view_count * height * jobs
        self._where = [views, jobs, height]
        self._color, self._rgba8 = flat.get("color"), flat.get("rgba8")
        self._srgb = srgb_tables(self.device)
        self._clear = wp.vec4ub(*map(int, aov_spec("rgba8").clear_values((clear or {}).get("rgba8"))))
        self.sample = wp.zeros(max(size, 1), dtype=wp.vec4f, device=self.device)
        self._total = wp.zeros(max(size, 1), dtype=wp.vec4f, device=self.device)

    def add(self, *, first: bool) -> None:
        """Add ``sample`` to the sum; ``first`` starts a new one."""
        arguments = [*self._where, 0.0 if first else 1.0, self.sample, self._total, 0.0, self._srgb, self._clear, None, None]
        launch(self._kernel, self._job_count, arguments, device=self.device)

    def finish(self, samples: int) -> None:
        """Write the mean of ``samples`` to the outputs; `rgba8` is encoded from the mean."""
        arguments = [*self._where, 1.0, None, self._total, 1.0 / samples, self._srgb, self._clear, self._color, self._rgba8]
        launch(self._kernel, self._job_count, arguments, device=self.device)
