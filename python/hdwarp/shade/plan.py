"""shade.plan: which kernels make colour of what is seen, in order: textures, light, shadows, and the planes that are asked for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import warp as wp

from hdwarp.aovs.steps import Steps
from hdwarp.shade.colour import ColourClears, ColourPlanes, colour_kernel
from hdwarp.shade.encode import srgb_tables
from hdwarp.shade.inputs import GREY, PLANE_OF, SurfacePlanes, surface_constants
from hdwarp.shade.lighting import HEADLIGHT, SOFT_DOME, Lighting, lighting_kernel
from hdwarp.shade.look import Look
from hdwarp.shade.normal_maps import normal_map_kernel
from hdwarp.shade.shadows import Shadows, ShadowSurface
from hdwarp.shade.textures import shown_kernel
from hdwarp.stage.looks import MATERIAL_INPUTS
from hdwarp.tables.structs import InstanceColumns, MaterialColumns, MeshColumns, Visibility

LIT = ("color", "rgba8", "direct")
"""Planes that light makes."""
COLOURS = (*LIT, "albedo", "emission", "alpha", "roughness")
"""Planes that materials make."""
BASED = (*LIT, "albedo")
"""Planes that show the base colour."""
FADED = (*LIT, "alpha")
"""Planes that show the displayOpacity of what has no material."""
_READ_BY = dict.fromkeys(MATERIAL_INPUTS, LIT) | {
    "diffuseColor": BASED,
    "emissiveColor": ("color", "rgba8", "emission"),
    "opacity": (*LIT, "emission", "alpha"),
    "roughness": (*LIT, "roughness"),
}
_UNLIT = ("diffuseColor", "opacity")  # what the base colour alone shows
_MANY = 1 << 30


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """What earlier steps have found out about each pixel; planes that nobody asks for are None."""

    record: Visibility
    meshes: MeshColumns
    instances: InstanceColumns
    slot: wp.array  # of the record, by blocks
    instance: wp.array
    material_row: wp.array
    geometric: wp.array | None  # normal
    normal: wp.array | None  # of shading
    positions: wp.array | None  # from the camera, in its axes
    display_color: wp.array | None  # the primvar, None where the scene has none
    display_opacity: wp.array | None
    coordinates: wp.array | None  # planes of the sets by which textures are laid
    spreads: wp.array | None  # how these change from pixel to pixel
    values: wp.array | None  # planes of the primvars that are shown themselves
    rays: list[tuple[bool, wp.array | None]]  # (whether rays are given, their directions) of the kinds of views there are


def needs_positions(look: Look, asked: Mapping[str, wp.array]) -> bool:
    return look.lit and (look.lights is not None or look.is_traced) and any(name in asked for name in LIT)


def shown_inputs(look: Look, asked: Collection[str]) -> list[str]:
    """Inputs of materials whose textures these planes show."""
    if look.textures is None:
        return []
    lit = LIT if look.lit else ()
    return [name for name in look.textured if any(p in asked and (p not in LIT or p in lit or name in _UNLIT) for p in _READ_BY[name])]


class ColourPlan:
    """The steps from what is seen to colour. What shadow rays stand between comes after the list of steps: `finish`."""

    def __init__(
        self, steps: Steps, seen: Seen, materials: MaterialColumns, look: Look, outputs: Mapping[str, wp.array], clears: Mapping[str, tuple]
    ) -> None:
        """``outputs``: flat, by AOV; ``clears``: a value a component."""
        self._steps, self._seen, self._look = steps, seen, look
        self._asked = outputs
        self._row, self._constants = seen.material_row, surface_constants(materials, steps.scalars)
        self._surface = self._shown(materials)
        self._is_lit = look.lit and any(name in outputs for name in LIT)
        self._normal = self._turned(materials) if self._is_lit else None
        self._direct = steps.scratch(wp.vec3f) if self._is_lit else None
        self._shadows: Shadows | None = None
        self._last = self._colours(clears)
        self._visibility = self._openness = None
        if self._is_lit and look.is_traced:
            self._shadows = Shadows(steps.views, steps.view_count, steps.width, steps.height, device=steps.device)
            self._visibility = steps.scratch(wp.float32)
            self._openness = steps.scratch(wp.float32) if look.ambient_occlusion else None
            return
        if self._is_lit:
            for kernel, arguments in self._lighting(0, _MANY, None, begin=True):
                steps.add(kernel, arguments)
        steps.add(*self._last)

    @property
    def is_late(self) -> bool:
        """Whether the planes are not there before `finish`."""
        return self._shadows is not None

    def finish(self, sample: int) -> None:
        """What is left after the list of steps, for sample number ``sample`` of each pixel."""
        if self._shadows is None:
            return
        seen, look, steps = self._seen, self._look, self._steps
        planes = seen.positions, seen.geometric, self._normal
        surface = ShadowSurface(seen.record, *planes, tuple(map(steps.scalars, planes)))
        scene = look.scene()
        each = max(1, look.light_samples // look.sample_count)
        if self._openness is not None:
            self._shadows.look_around(scene, surface, range(sample * each, (sample + 1) * each), openness=self._openness)
        turns = look.lights.turns if look.lights is not None else []
        done = 0  # lights; those between two that cast shadows are added at once
        for k, turn in enumerate([*turns, None]):
            is_last = turn is None
            if not is_last and (turn.strength == 0.0 or not look.shadows):
                continue
            if k > done or (is_last and k == 0):
                self._add_light(done, k - done, None)
            done = k + 1
            if is_last:
                break
            samples = range(sample, sample + 1) if turn.sharp is not None else range(sample * each, (sample + 1) * each)
            lights = [look.lights.columns, look.lights.domes, k]
            self._shadows.look(scene, surface, *lights, samples, sharp=turn.sharp, visibility=self._visibility)
            self._add_light(k, 1, self._visibility)
        steps.launch(*self._last)

    def _add_light(self, first: int, count: int, visibility: wp.array | None) -> None:
        for kernel, arguments in self._lighting(first, count, visibility, begin=first == 0):
            self._steps.launch(kernel, arguments)

    def _shown(self, materials: MaterialColumns) -> SurfacePlanes:
        """Planes of what textures show, and the steps that fill them."""
        steps, seen, look, planes = self._steps, self._seen, self._look, SurfacePlanes()
        based = any(name in self._asked for name in BASED)
        if based and seen.display_color is not None:
            planes.base = steps.scalars(seen.display_color)
        planes.display_opacity = seen.display_opacity
        shown = shown_inputs(look, self._asked)
        for name, (member, width) in PLANE_OF.items():
            if name not in shown:
                continue
            over = name == "diffuseColor" and seen.display_color is not None  # shown where there is no texture
            plane = seen.display_color if over else steps.scratch(wp.vec3f if width == 3 else wp.float32)
            otherwise = -1.0 if over else GREY if name == "diffuseColor" else 0.0
            self._show(name, materials, plane, width, otherwise)
            setattr(planes, member, steps.scalars(plane))
        return planes

    def _turned(self, materials: MaterialColumns) -> wp.array:
        """The plane of shading normals, turned by normal maps, and the steps that fill it."""
        steps, seen, look, normal = self._steps, self._seen, self._look, self._seen.normal
        if "normal" not in shown_inputs(look, self._asked):
            return normal
        shown = steps.scratch(wp.vec3f)
        self._show("normal", materials, shown, 3, 0.0)
        meshes = seen.meshes
        corners = [steps.scalars(array) for array in (meshes.leaf_vertices, meshes.triangle_points, meshes.triangle_corners)]
        where = [*corners, steps.scalars(seen.instances.world_from_object), meshes, seen.instances, seen.slot, seen.instance]
        for which in sorted(look.textured["normal"]):
            by = [self._row, materials.texture, look.textures, which, look.coordinates[which]]
            before, normal = normal, steps.scratch(wp.vec3f)
            steps.add(normal_map_kernel(steps.lanes), [*where, *by, steps.scalars(before), steps.scalars(shown), normal])
        return normal

    def _show(self, name: str, materials: MaterialColumns, plane: wp.array, width: int, otherwise: float) -> None:
        """The step that fills ``plane`` with what textures show of an input; ``otherwise``: what it holds elsewhere, < 0: what it does."""
        steps, seen, look = self._steps, self._seen, self._look
        which = [self._row, materials.texture, MATERIAL_INPUTS.index(name), look.textures]
        where = [steps.scalars(plane) for plane in (seen.coordinates, seen.spreads, seen.values)]
        steps.add(shown_kernel(steps.lanes), [*which, *where, steps.pixel_count, otherwise, width, steps.scalars(plane)])

    def _lighting(self, first: int, count: int, visibility: wp.array | None, *, begin: bool) -> list:
        seen, look, steps = self._seen, self._look, self._steps
        lighting = Lighting()
        if look.lights is not None:
            lighting.lights, lighting.domes = look.lights.columns, look.lights.domes
            lighting.texels = steps.scalars(look.lights.domes.texels)
            lighting.sources, lighting.links = seen.instances.source, seen.instances.light_links
        lighting.first, lighting.count, lighting.fades = first, count, int(look.blended)
        lighting.camera, lighting.dome = (HEADLIGHT, SOFT_DOME) if look.camera_light else (0.0, 0.0)
        if visibility is None and self._openness is not None:  # else what is in the way is known
            lighting.openness = self._openness
        if visibility is not None:
            lighting.visibility, lighting.stride = visibility, steps.pixel_count
        normals = [steps.scalars(plane) for plane in (self._normal, seen.geometric, seen.positions)]
        made = []
        for given, directions in seen.rays:
            kernel = lighting_kernel(steps.lanes, given, look.lights is not None)
            surface = [seen.instance, self._row, self._constants, self._surface, *normals, directions]
            made.append((kernel, [*surface, lighting, int(begin), self._direct, steps.scalars(self._direct)]))
        return made

    def _colours(self, clears: Mapping[str, tuple]) -> tuple[wp.Kernel, list]:
        planes, clear = ColourPlanes(), ColourClears()
        for name in COLOURS:
            values = clears[name]
            kinds = {1: float, 3: wp.vec3f, 4: wp.vec4f}
            setattr(clear, name, wp.vec4ub(*map(int, values)) if name == "rgba8" else kinds[len(values)](*values))
            if name in self._asked:
                setattr(planes, name, self._asked[name])
        light = self._steps.scalars(self._direct)
        surface = [self._seen.instance, self._row, self._constants, self._surface, light]
        return colour_kernel(self._steps.lanes), [*surface, srgb_tables(self._steps.device), clear, planes]
