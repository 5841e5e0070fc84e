"""stage.cameras: UsdGeom.Camera prims -> Camera records. Here lens values become metres and transforms pose and axes, nowhere else."""

from __future__ import annotations

import math

import numpy as np
from pxr import Gf, Sdf, Usd, UsdGeom

from hdwarp.errors import Diagnostics
from hdwarp.stage.columns import MAX_CLIPPING_PLANES, Camera
from hdwarp.stage.expansion import MOST_PRIMS, Sizes
from hdwarp.stage.facts import Category, categorise
from hdwarp.stage.transforms import LARGEST

# A camera with this attribute keeps one side of its aperture and lets the other follow the image, whatever the product's policy says:
# UsdGeom.Camera has no word for "a vertical field of view, kept at any aspect". Its values are two of UsdRender's own policies.
FOLLOW_ATTRIBUTE = "hdwarp:aspectRatioConformPolicy"
FOLLOW_WIDTH = "adjustApertureWidth"
FOLLOW_HEIGHT = "adjustApertureHeight"

_SNAP = 1e-9  # axes this near to the identity are the identity
_NOTABLE = 1e-6  # what differs by less is rounding of a rotation written in float32, not worth a diagnostic
_NOWHERE = 1e30  # metres: nothing is drawn beyond a fraction of it, and float32 holds it
_BRIGHTEST = 1e30  # exposure scale
_SINGULAR = 1e-12  # volume of the unit axes below which a transform has no inverse worth having


_CLOSED = (Category.POINT_INSTANCER, Category.SHADING, Category.SUBSET)  # the walk takes no cameras below these


def camera_paths(stage: Usd.Stage) -> list[str]:
    """Paths of the cameras that `read_stage` reads, in path order, those inside native instances included; those that only a point
    instancer places are not among them: they have no place of their own."""
    categories: dict[str, Category] = {}  # by prim type: dearer than a lookup
    paths, sizes = [], Sizes()
    has_instances = bool(stage.GetPrototypes())
    prims = iter(Usd.PrimRange.Stage(stage, Usd.TraverseInstanceProxies()))
    for prim in prims:
        name = prim.GetTypeName()
        category = categories.get(name)
        if category is None:
            category = categories[name] = categorise(prim, name)[0]
        if category in _CLOSED or (has_instances and prim.IsInstance() and sizes.below_instance(prim.GetPrototype()) > MOST_PRIMS):
            prims.PruneChildren()
        elif category is Category.CAMERA:
            paths.append(str(prim.GetPath()))
    return sorted(paths)


def camera_obstacle(prim: Usd.Prim) -> str:
    """Why a Camera prim is not among `camera_paths`: what it is inside of; "" for those that are."""
    above = prim.GetParent()
    while above and not above.IsPseudoRoot():
        if categorise(above, above.GetTypeName())[0] in _CLOSED:
            return f"inside the {above.GetTypeName()} <{above.GetPath()}>"
        above = above.GetParent()
    return ""


def read_camera(
    prim: Usd.Prim, time: Usd.TimeCode, world_from_object: np.ndarray, metres_per_unit: float, diagnostics: Diagnostics
) -> Camera | None:
    """The camera at a time, or None when it cannot make a picture; a diagnostic then names the reason and the cure.

    ``world_from_object`` is the prim's full transform in scene units, scale included: (4, 4) float64, column vectors.
    The record's pose is rigid; what else the transform does to directions is in its ``axes`` (see `split_transform`).
    """
    camera, path = UsdGeom.Camera(prim), prim.GetPath()
    usable = True

    def refuse(code: str, message: str) -> None:
        nonlocal usable
        usable = False
        diagnostics.error(path, code, f"{message}; the camera cannot be rendered")

    def number(attribute: Usd.Attribute) -> float:
        value = float(attribute.Get(time))
        if not math.isfinite(value):
            refuse("camera-not-finite", f"{attribute.GetName()} is {value}; author a finite number")
            return 0.0
        return value

    lens_unit = 0.1 * metres_per_unit  # focal length and apertures are tenths of a scene unit
    projection = _projection(camera, time, path, diagnostics)
    orthographic = projection == "orthographic"

    focal_length = number(camera.GetFocalLengthAttr())
    if focal_length <= 0.0 and not orthographic and usable:
        refuse("camera-focal-length", f"focalLength is {focal_length:g}; author a value above 0")

    aperture = (number(camera.GetHorizontalApertureAttr()), number(camera.GetVerticalApertureAttr()))
    if min(aperture) < 0.0 or max(aperture) == 0.0:
        refuse(
            "camera-aperture",
            f"horizontalAperture and verticalAperture are {aperture[0]:g} and {aperture[1]:g}; author values above 0 (one of them may be 0:"
            " it then follows the image's aspect)",
        )
    follow = _follow(prim)
    if follow == FOLLOW_WIDTH and aperture[1] > 0.0:
        aperture = (0.0, aperture[1])
    elif follow == FOLLOW_HEIGHT and aperture[0] > 0.0:
        aperture = (aperture[0], 0.0)

    near, far = (float(value) for value in camera.GetClippingRangeAttr().Get(time))
    if not (math.isfinite(near) and math.isfinite(far) and near < far):
        refuse("camera-clipping-range", f"clippingRange is ({near:g}, {far:g}); author finite numbers, the near one below the far one")
    elif near < 0.0 and not orthographic:
        refuse("camera-clipping-range", f"clippingRange is ({near:g}, {far:g}) and begins behind the camera; author 0 or more")

    shutter = (number(camera.GetShutterOpenAttr()), number(camera.GetShutterCloseAttr()))
    if shutter[1] < shutter[0]:
        # UsdGeom calls this "no exposure"; without motion sampling the instant at shutter:open is still a picture worth having.
        diagnostics.note(
            path,
            "camera-shutter",
            f"shutter:close {shutter[1]:g} is before shutter:open {shutter[0]:g}; rendered as if the shutter had no length",
        )

    offset = (number(camera.GetHorizontalApertureOffsetAttr()), number(camera.GetVerticalApertureOffsetAttr()))
    f_stop, focus_distance = number(camera.GetFStopAttr()), number(camera.GetFocusDistanceAttr())
    pose = _pose(np.asarray(world_from_object, np.float64), orthographic, metres_per_unit, path, diagnostics, refuse)
    planes = _clipping_planes(camera, time, path, diagnostics)
    exposure = _exposure_scale(camera, time, path, diagnostics)
    if not usable or pose is None:
        return None
    world_from_camera, axes, rigid_from_camera = pose
    world_from_camera[:3, 3] *= metres_per_unit
    if len(planes):  # from the camera's own, perhaps scaled, space to that of its rigid pose
        planes = np.column_stack([planes[:, :3] @ np.linalg.inv(rigid_from_camera), planes[:, 3] * metres_per_unit])

    return Camera(
        path=str(path),
        world_from_camera=world_from_camera,
        axes=axes,
        projection=projection,
        focal_length=focal_length * lens_unit,
        aperture=(aperture[0] * lens_unit, aperture[1] * lens_unit),
        aperture_offset=(offset[0] * lens_unit, offset[1] * lens_unit),
        clipping_range=(max(near * metres_per_unit, -_NOWHERE), min(far * metres_per_unit, _NOWHERE)),
        clipping_planes=planes,
        exposure_scale=exposure,
        f_stop=f_stop,
        focus_distance=focus_distance * metres_per_unit,
        shutter=shutter,
        attributes=read_user_attributes(prim, time),
    )


def split_transform(matrix: np.ndarray, orthographic: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """An invertible 3x3 ``world_from_camera`` as (rotation, axes, full): ``matrix = rotation @ full``, the rotation proper.

    The camera sees what Hydra's camera sees: its rays run along ``matrix @ (x, y, -1)``. The rotation's third column is the normal of the
    camera's image planes and its second the camera's up, so that depth, the distance along the rotation's -Z, is the same on a whole plane
    parallel to the image plane. ``axes`` is ``full`` with its third column scaled to end in 1, which makes that depth a true world
    distance; in perspective the first two columns are scaled alike, as only directions count, and a uniform scale leaves the identity. In
    orthographic views they keep the scale: they tell how far apart the rays are.
    """
    back = np.cross(matrix[:, 0], matrix[:, 1]) * np.sign(np.linalg.det(matrix))  # on the side of the third column: mirrors keep their view
    back /= np.linalg.norm(back)
    up = matrix[:, 1] / np.linalg.norm(matrix[:, 1])
    rotation = np.column_stack([np.cross(up, back), up, back])
    full = rotation.T @ matrix
    full[2, :2] = full[0, 1] = 0.0  # by construction; rounding is not to tilt the planes of equal depth
    axes = full / full[2, 2]
    if orthographic:
        axes[:, :2] = full[:, :2]
    if np.abs(axes - np.eye(3)).max() <= _SNAP:
        axes = np.eye(3)
    return rotation, axes, full


def read_user_attributes(prim: Usd.Prim, time: Usd.TimeCode) -> dict[str, object]:
    """What is authored on a prim besides its built-in schema and its transform, as plain values: numbers, strings, NumPy arrays."""
    built_in = _schema_attributes(prim.GetTypeName())
    found: dict[str, object] = {}
    for attribute in prim.GetAuthoredAttributes():
        name = attribute.GetName()
        if name in built_in or name == FOLLOW_ATTRIBUTE or name.startswith("xformOp"):
            continue
        value = attribute.Get(time)
        if value is not None:
            found[name] = plain_value(value)
    return found


def plain_value(value: object) -> object:
    """A value read from USD without pxr types: vectors, matrices and arrays become NumPy arrays (matrices stay as authored, row vectors),
    asset paths and tokens strings, what has no such form its text."""
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Sdf.AssetPath):
        return value.resolvedPath or value.path
    if isinstance(value, Gf.Quatf | Gf.Quatd | Gf.Quath):  # Warp's order
        return np.array([*value.GetImaginary(), value.GetReal()], np.float64)
    if isinstance(value, dict):
        return {key: plain_value(item) for key, item in value.items()}
    try:
        array = np.array(value)
    except (TypeError, ValueError):
        return str(value)
    if array.dtype == object or array.dtype.kind in "US":
        try:
            return [plain_value(item) if item is not value else str(item) for item in value]
        except TypeError:
            return str(value)
    return array


def _schema_attributes(type_name: str) -> frozenset[str]:
    if type_name not in _SCHEMA_ATTRIBUTES:
        definition = Usd.SchemaRegistry().FindConcretePrimDefinition(type_name)
        _SCHEMA_ATTRIBUTES[type_name] = frozenset(definition.GetPropertyNames()) if definition else frozenset()
    return _SCHEMA_ATTRIBUTES[type_name]


_SCHEMA_ATTRIBUTES: dict[str, frozenset[str]] = {}  # by prim type; schemas do not change in a process


def _projection(camera: UsdGeom.Camera, time: Usd.TimeCode, path: Sdf.Path, diagnostics: Diagnostics) -> str:
    projection = str(camera.GetProjectionAttr().Get(time))
    if projection not in (UsdGeom.Tokens.perspective, UsdGeom.Tokens.orthographic):
        diagnostics.warning(path, "camera-projection", f"projection is '{projection}', not perspective or orthographic; using perspective")
        return "perspective"
    return projection


def _follow(prim: Usd.Prim) -> str:
    attribute = prim.GetAttribute(FOLLOW_ATTRIBUTE)
    return str(attribute.Get() or "") if attribute else ""


def _pose(matrix: np.ndarray, orthographic: bool, metres_per_unit: float, path: Sdf.Path, diagnostics: Diagnostics, refuse) -> tuple | None:
    """(rigid pose, axes, 3x3 rigid_from_camera) with the position still in scene units."""
    linear = matrix[:3, :3]
    if not np.isfinite(matrix[:3]).all():
        refuse("camera-transform", "its transform is not finite; mend the xformOps of the camera or of a prim above it")
        return None
    lengths = np.linalg.norm(linear, axis=0)
    if lengths.min() < 1e-100 or abs(np.linalg.det(linear / lengths)) < _SINGULAR:
        refuse("camera-transform", "its transform is singular (a scale of 0?); mend the xformOps of the camera or of a prim above it")
        return None
    if np.abs(matrix[:3, 3]).max() * metres_per_unit > LARGEST:
        refuse("camera-transform", f"it is farther than {LARGEST:g} m from the origin; mend its xformOps or the stage's metersPerUnit")
        return None
    rotation, axes, full = split_transform(linear, orthographic)
    world_from_camera = np.eye(4)
    world_from_camera[:3, :3] = rotation
    world_from_camera[:3, 3] = matrix[:3, 3]
    if np.abs(full - np.eye(3)).max() > _NOTABLE:
        diagnostics.note(path, "camera-scale", _describe_scale(full))
    return world_from_camera, axes, full


def _describe_scale(full: np.ndarray) -> str:
    diagonal = np.diag(full)
    if np.abs(full - np.diag(diagonal)).max() > _NOTABLE:
        what = "shears space"
    elif np.ptp(np.abs(diagonal)) <= _NOTABLE * diagonal[2]:
        what = f"scales space by {diagonal[2]:g}"
    else:
        what = f"scales space by ({', '.join(f'{abs(value):g}' for value in diagonal)})"
    if diagonal[0] < 0.0:
        what += " and mirrors it"
    return (
        f"its transform {what}: directions follow it, while depth, clippingRange and focusDistance are taken as true world distances"
        " (remove the scale from the camera and the prims above it if that is not meant)"
    )


def _clipping_planes(camera: UsdGeom.Camera, time: Usd.TimeCode, path: Sdf.Path, diagnostics: Diagnostics) -> np.ndarray:
    planes = np.array(camera.GetClippingPlanesAttr().Get(time) or [], np.float64).reshape(-1, 4)
    good = np.isfinite(planes).all(axis=1)
    if not good.all():
        diagnostics.warning(path, "camera-clipping-planes", f"{int((~good).sum())} of {len(planes)} clippingPlanes are not finite; ignored")
    planes = planes[good]
    if len(planes) > MAX_CLIPPING_PLANES:
        message = f"it has {len(planes)} clippingPlanes; the first {MAX_CLIPPING_PLANES} cut, the others are ignored"
        diagnostics.warning(path, "camera-clipping-planes", message)
    return planes[:MAX_CLIPPING_PLANES]


def _exposure_scale(camera: UsdGeom.Camera, time: Usd.TimeCode, path: Sdf.Path, diagnostics: Diagnostics) -> float:
    try:
        if hasattr(camera, "ComputeLinearExposureScale"):
            scale = float(camera.ComputeLinearExposureScale(time))
        else:  # usd-core before 25.08 knows `exposure` alone
            scale = 2.0 ** float(camera.GetExposureAttr().Get(time))
    except OverflowError:
        scale = math.inf
    if not 0.0 <= scale <= _BRIGHTEST:
        message = f"its exposure attributes give a scale of {scale:g}; using 1 (is exposure:fStop 0, or exposure too large?)"
        diagnostics.warning(path, "camera-exposure", message)
        return 1.0
    return scale
