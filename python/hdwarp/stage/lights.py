"""stage.lights: UsdLux prims, and gprims with MeshLightAPI -> Light records. Here intensities become radiances and sizes metres."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from pxr import Gf, Tf, Usd, UsdLux

from hdwarp.errors import Diagnostics
from hdwarp.stage import light_sizes, transforms
from hdwarp.stage.columns import GeometryKind, Gprim
from hdwarp.stage.images import Images
from hdwarp.stage.light_values import LightValues
from hdwarp.stage.looks import DOME_PROJECTIONS, Light, LightKind
from hdwarp.stage.open import plain_text

if TYPE_CHECKING:
    from hdwarp.stage.walk import Walk

_BRIGHTEST = 1e30  # of a radiance: float32 holds it, and its product with any size
_SNAP = 1e-9  # axes this near to the identity are the identity
_WHITE = (1.0, 1.0, 1.0)
_BLACK = (0.0, 0.0, 0.0)
_COLDEST, _HOTTEST = 1000.0, 10000.0  # kelvin: what UsdLux's table goes to
_KINDS = (
    (UsdLux.DistantLight, LightKind.DISTANT),
    (UsdLux.SphereLight, LightKind.SPHERE),
    (UsdLux.DiskLight, LightKind.DISK),
    (UsdLux.RectLight, LightKind.RECT),
    (UsdLux.CylinderLight, LightKind.CYLINDER),
    (UsdLux.DomeLight, LightKind.DOME),
    (UsdLux.DomeLight_1, LightKind.DOME),
)
# Dome space (pole +Y, middle of the picture +Z) in the space of a prim whose poleAxis is Z: pole +Z, middle -Y, +X where it was.
_POLE_Z = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])


@dataclass(frozen=True, slots=True)
class FoundLight:
    """A light as the walk found it."""

    matrix: Gf.Matrix4d
    body: str  # as of those that follow
    visible: bool


@dataclass(slots=True)
class Surroundings:
    """What reading a light goes by besides its own prim."""

    time: Usd.TimeCode
    metres_per_unit: float
    up_axis: str
    images: Images
    gprims: Mapping[str, Gprim]  # by path: of lights that are drawn


def gather_lights(
    walk: Walk, metres_per_unit: float, up_axis: str, bodies: Container[str], gprims: Mapping[str, Gprim]
) -> dict[str, Light]:
    """The lights that a walk found; a light that cannot be read or placed is left out, with a diagnostic."""
    if not walk.lights:
        return {}
    around = Surroundings(walk.reader.time, metres_per_unit, up_axis, walk.images, gprims)
    paths, lights = sorted(walk.lights), {}
    world = transforms.columns_from_gf([walk.lights[path].matrix for path in paths])
    finite, invertible = transforms.usable(world)
    with np.errstate(all="ignore"):  # of those that are left out
        poses = transforms.rigid(world)
    near = np.abs(world[:, :3, 3]).max(axis=1) * metres_per_unit <= transforms.LARGEST
    for k, path in enumerate(paths):
        walk.diagnostics.owner = path
        if not (invertible[k] and near[k]):
            far = f"puts it beyond {transforms.LARGEST:g} m" if finite[k] else "is not finite"
            said = "is singular (a scale of 0?)" if finite[k] and near[k] else far
            walk.diagnostics.error(path, "singular-transform", f"the transform of the light {said}; it is no light. Mend the xformOps")
            continue
        prim = walk.reader.stage.GetPrimAtPath(path)
        try:
            found, depends = read_light(prim, path, world[k], poses[k], around, walk.diagnostics)
        except (TypeError, ValueError, Tf.ErrorException, OverflowError) as error:
            message = f"it cannot be read ({plain_text(error)}); it is off. Mend what this names"
            walk.diagnostics.error(path, "unreadable", message)
            continue
        body = walk.lights[path].body
        found.body = body if body in bodies else ""
        found.visible &= walk.lights[path].visible
        walk.sources += [(source, path) for source in depends]
        lights[path] = found
    return lights


def read_light(
    prim: Usd.Prim, path: str, world: np.ndarray, pose: np.ndarray, around: Surroundings, diagnostics: Diagnostics
) -> tuple[Light, list[str]]:
    """(the light, paths of other prims that say what it is linked to). ``world`` (4, 4): of the prim, in scene units, invertible;
    ``pose``: the same, rigid, for the light to keep."""
    values = LightValues(prim, path, around.time, diagnostics)
    axes = pose[:3, :3].T @ world[:3, :3]
    pose[:3, 3] *= around.metres_per_unit
    if np.abs(axes - np.eye(3)).max() <= _SNAP:
        axes = np.eye(3)
    light = Light(path, pose, axes=axes, kind=_kind(prim))
    if light.kind is LightKind.MESH and not prim.HasAPI(UsdLux.MeshLightAPI):
        light.visible = False
        kind = prim.GetTypeName() or "LightAPI on a prim without type"
        message = f"lights of this kind ({kind}) are not supported; it is off. Use one of UsdLux's other lights"
        diagnostics.warning(path, "light-type", message)
        return light, []
    _read_radiance(light, values, *_read_shape(light, values, around))
    _read_shaping(light, values)
    _read_shadow(light, values, around.metres_per_unit)
    light.light_link, depends = values.links("lightLink")
    light.shadow_link, more = values.links("shadowLink")
    if light.shadow_link is not None:
        message = "shadow links are not supported; all that is drawn casts its shadows. Remove the collection shadowLink"
        diagnostics.warning(path, "light-link", message)
    filters = prim.GetRelationship("light:filters")
    if filters and (targets := filters.GetTargets()):
        diagnostics.warning(path, "light-filter", f"light filters are not supported; <{targets[0]}> does nothing. Remove light:filters")
    return light, [*depends, *more]


def _kind(prim: Usd.Prim) -> LightKind:
    """MESH for all that is none of the lights with a shape of their own."""
    return next((kind for schema, kind in _KINDS if prim.IsA(schema)), LightKind.MESH)


# -- shape -----------------------------------------------------------------------------------------------------------------


def _read_shape(light: Light, values: LightValues, around: Surroundings) -> tuple[float, float]:
    """Fill in the size, and what of the shape depends on it: (UsdLux's sizeFactor in scene units, what the radiance is multiplied by to
    be that of `Light.radiance`). A light without area is told, and off."""
    unit, axes, kind = around.metres_per_unit, light.axes, light.kind
    scale = 1.0
    if kind is LightKind.DISTANT:
        half = min(math.radians(values.number("inputs:angle", 0.53, least=0.0)) / 2, math.pi)
        light.size = math.cos(half), 0.0
        light.axes = _directions(axes)
        return light_sizes.distant_size(math.degrees(2 * half)), scale
    if kind is LightKind.DOME:
        _read_dome(light, values, around)
        return 1.0, scale
    if kind is LightKind.MESH:
        return _mesh_factor(light, values, around), scale
    if kind is LightKind.SPHERE:
        radius = values.number("inputs:radius", 0.5, least=0.0)
        light.size = radius * unit, 0.0
        if values.flag("treatAsPoint", False):  # the mean area that it shows is a quarter of all its area
            light.kind, shown = LightKind.POINT, light_sizes.sphere_area(axes, 1.0) / 4.0
            return _of_ideal(light, values, 4.0 * shown * radius**2, shown * radius**2 * unit**2, unit**2 / 4.0)
        area = light_sizes.sphere_area(axes, radius)
    elif kind is LightKind.DISK:
        radius = values.number("inputs:radius", 0.5, least=0.0)
        light.size, area = (radius * unit, 0.0), light_sizes.flat_area(axes, math.pi * radius**2)
    elif kind is LightKind.RECT:
        width, height = (values.number(f"inputs:{name}", 1.0, least=0.0) for name in ("width", "height"))
        light.size, area = (width * unit, height * unit), light_sizes.flat_area(axes, width * height)
        light.texture = values.texture(around.images)
    else:
        length, radius = values.number("inputs:length", 1.0, least=0.0), values.number("inputs:radius", 0.5, least=0.0)
        light.size, girth = (length * unit, radius * unit), light_sizes.girth(axes)
        area = girth * radius * length
        if values.flag("treatAsLine", False):  # the mean width that it shows is its girth over pi
            light.kind, longer = LightKind.LINE, float(np.linalg.norm(axes[:, 0]))
            shown = girth * radius / (math.pi * longer) * unit
            whole = math.pi * longer * length
            return _of_ideal(light, values, area, shown, unit / whole if whole else 0.0)
    if not _has_area(light, values, area):
        return 1.0, scale
    return area, scale


def _has_area(light: Light, values: LightValues, area: float) -> bool:
    if math.isfinite(area) and area > 0.0:
        return True
    light.visible = False
    said = "it has no area" if area == 0.0 else "its area is not finite"
    values.diagnostics.warning(light.path, "light-size", f"{said}; it is off. Author a radius, width, height or length above 0")
    return False


def _of_ideal(light: Light, values: LightValues, area: float, shown: float, normalized: float) -> tuple[float, float]:
    """Of a light that counts as a point or a line: it sends out ``shown`` [m or m2] times its radiance, ``normalized`` times its intensity
    where it is divided by ``area``, whatever that is."""
    if values.flag("inputs:normalize", False):
        return (1.0, normalized) if normalized > 0.0 or _has_area(light, values, 0.0) else (1.0, 1.0)
    return area, shown if _has_area(light, values, area) else 1.0


def _directions(axes: np.ndarray) -> np.ndarray:
    """Of what is so far away that lengths do not count."""
    axes = axes / np.linalg.norm(axes, axis=0)
    return np.eye(3) if np.abs(axes - np.eye(3)).max() <= _SNAP else axes


def _read_dome(light: Light, values: LightValues, around: Surroundings) -> None:
    mirror = np.diag([1.0, 1.0, math.copysign(1.0, np.linalg.det(light.axes))])
    pole = "Y"
    if values.prim.IsA(UsdLux.DomeLight_1):
        pole = values.token("poleAxis", "scene", ("scene", "Y", "Z"))
        pole = around.up_axis if pole == "scene" else pole
    turn = _POLE_Z if pole == "Z" else np.eye(3)
    light.world_from_light[:3, :3] = light.world_from_light[:3, :3] @ turn
    light.axes = turn.T @ mirror @ turn
    known = ("automatic", *DOME_PROJECTIONS, "cubeMapVerticalCross")
    projection = values.token("inputs:texture:format", "automatic", known)
    light.texture = values.texture(around.images)
    if projection == "cubeMapVerticalCross" and light.texture is not None:
        light.texture = None
        message = "textures in the format cubeMapVerticalCross are not supported; it shines with its colour alone. Make it latlong"
        values.diagnostics.warning(light.path, "light-texture", message)
    light.projection = projection if projection in DOME_PROJECTIONS else "latlong"


def _mesh_factor(light: Light, values: LightValues, around: Surroundings) -> float:
    """World-space area in scene units; 1 where it is not known."""
    light.mesh = light.path
    gprim = around.gprims.get(light.path)
    if gprim is None or gprim.kind not in (GeometryKind.MESH, GeometryKind.SPHERE) or not gprim.visual:
        light.visible = False
        if gprim is not None and gprim.visual:
            message = "lights that are no meshes or spheres are not supported; it is drawn, and lights nothing. Use a mesh"
            values.diagnostics.warning(light.path, "light-type", message)
        return 1.0
    if gprim.kind is GeometryKind.SPHERE:
        area = light_sizes.sphere_area(gprim.transforms[0][:3, :3], 1.0)
    else:
        area = light_sizes.mesh_area(gprim.mesh.points, gprim.mesh.triangle_points, gprim.transforms[0])
    message = "mesh lights are not supported; it is drawn, and lights nothing. Put a RectLight or SphereLight in its place"
    values.diagnostics.warning(light.path, "light-type", message)
    return area / around.metres_per_unit**2 if _has_area(light, values, area) else 1.0


# -- what it sends out -----------------------------------------------------------------------------------------------------


def _read_radiance(light: Light, values: LightValues, area: float, scale: float) -> None:
    intensity = values.number("inputs:intensity", 50000.0 if light.kind is LightKind.DISTANT else 1.0, least=0.0)
    exposure = values.number("inputs:exposure", 0.0)
    color = np.array(values.color("inputs:color", _WHITE))
    if values.flag("inputs:enableColorTemperature", False):
        kelvin = values.number("inputs:colorTemperature", 6500.0)
        if not _COLDEST <= kelvin <= _HOTTEST:
            message = f"inputs:colorTemperature is {kelvin:g}; read as the nearest of {_COLDEST:g} to {_HOTTEST:g} kelvin"
            values.diagnostics.warning(light.path, "light-value", message)
        color = color * np.array(UsdLux.BlackbodyTemperatureAsRgb(min(max(kelvin, _COLDEST), _HOTTEST)), np.float64)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        radiance = color * intensity * np.exp2(exposure) * scale
        if values.flag("inputs:normalize", False):
            radiance = radiance / area
        radiance = np.where(color > 0.0, radiance, 0.0) if intensity > 0.0 else np.zeros(3)
    if not (radiance <= _BRIGHTEST).all():
        message = f"it has a radiance of {radiance.max():g}; cut to {_BRIGHTEST:g}. Lower inputs:intensity or inputs:exposure"
        values.diagnostics.warning(light.path, "light-value", message)
        radiance = np.where(radiance <= _BRIGHTEST, radiance, _BRIGHTEST)
    light.radiance = tuple(radiance.tolist())
    light.diffuse = values.number("inputs:diffuse", 1.0, least=0.0)
    light.specular = values.number("inputs:specular", 1.0, least=0.0)


def _read_shaping(light: Light, values: LightValues) -> None:
    """What ShapingAPI says. Without it, or a cone angle, a light is not cut off; with it a cone of 90 degrees is."""
    if values.has("inputs:shaping:cone:angle"):
        light.cone_angle = min(math.radians(values.number("inputs:shaping:cone:angle", 90.0, least=0.0)), math.pi)
    light.cone_softness = min(values.number("inputs:shaping:cone:softness", 0.0, least=0.0), 1.0)
    light.focus = values.number("inputs:shaping:focus", 0.0, least=0.0)
    light.focus_tint = values.color("inputs:shaping:focusTint", _BLACK)
    profile = values.prim.GetAttribute("inputs:shaping:ies:file")
    if profile and getattr(profile.Get(values.time), "path", ""):
        message = "IES profiles are not supported; it shines without. Remove inputs:shaping:ies:file"
        values.diagnostics.warning(light.path, "light-ies", message)


def _read_shadow(light: Light, values: LightValues, unit: float) -> None:
    light.shadow = values.flag("inputs:shadow:enable", True)
    light.shadow_color = values.color("inputs:shadow:color", _BLACK)
    distance, falloff = values.number("inputs:shadow:distance", -1.0), values.number("inputs:shadow:falloff", -1.0)
    light.shadow_distance = distance * unit if distance >= 0.0 else -1.0
    light.shadow_falloff = falloff * unit if falloff >= 0.0 else -1.0
    if light.shadow and distance >= 0.0 and falloff > 0.0:
        message = "inputs:shadow:falloff is not supported; shadows end where inputs:shadow:distance says. Remove it"
        values.diagnostics.warning(light.path, "light-value", message)
    light.shadow_falloff_gamma = values.number("inputs:shadow:falloffGamma", 1.0, least=0.0)
