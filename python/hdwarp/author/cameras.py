"""author.cameras: cameras from metres, radians, K matrices and poses. The inverse of stage.cameras, which reads them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from pxr import Gf, Sdf, Tf, Usd, UsdGeom, UsdRender, Vt

from hdwarp.author.products import add_product, checked_resolution, product_path_for, products_of
from hdwarp.errors import ArgumentError, NotSupported
from hdwarp.stage.cameras import FOLLOW_ATTRIBUTE, FOLLOW_HEIGHT, FOLLOW_WIDTH
from hdwarp.stage.conventions import opengl_from, rotation_from_quaternion

LENSES = ("pinhole", "orthographic")
DEFAULT_FOV = math.radians(45.0)
DEFAULT_ASPECT = 16.0 / 9.0  # of what is written for a side that follows the image, where no resolution is given
FILM_WIDTH, FILM_HEIGHT = 0.020955, 0.0152908  # USD's own apertures, in metres


def add_camera(
    stage: Usd.Stage,
    path: str,
    *,
    transform: np.ndarray | Sequence | None = None,
    lens: str = "pinhole",
    fov: float | None = None,
    focal_length: float | None = None,
    horizontal_aperture: float | None = None,
    vertical_aperture: float | None = None,
    horizontal_aperture_offset: float = 0.0,
    vertical_aperture_offset: float = 0.0,
    clipping_range: tuple[float, float] = (0.01, 1e6),
    resolution: tuple[int, int] | None = None,
    attributes: Mapping[str, object] | None = None,
) -> UsdGeom.Camera:
    """Author a camera that looks down its -Z with +Y up. Metres and radians; returns the UsdGeom.Camera.

    ``transform``: pose in the frame of the parent prim (a mount), as a (4, 4) column-vector matrix or 7 numbers, position and quaternion
    (x, y, z, w). ``fov`` is vertical and kept at any image aspect, and excludes focal_length and horizontal_aperture; with no intrinsics
    at all it is 45 degrees. An aperture side that is None or 0 follows the image's aspect (with neither given, the width is 20.955 mm and
    the height follows). ``lens="orthographic"``: the apertures are the window's size. ``resolution`` authors a RenderProduct (see
    add_product) under /Render. ``attributes``: further attributes by name, read back as ``scene.cameras.attribute(name)``.

    A side that follows the image is written to suit ``resolution`` (else 16:9), so that other programs see it right, and the camera's
    attribute "hdwarp:aspectRatioConformPolicy" and the product's aspectRatioConformPolicy say which side gives way.

    Raises ArgumentError for values that do not go together and NotSupported for other lenses.
    """
    metres_per_unit = UsdGeom.GetStageMetersPerUnit(stage)
    if lens not in LENSES:
        raise NotSupported(f"lens={lens!r} is not supported yet; supported: {', '.join(LENSES)}")
    if resolution is not None:
        resolution = checked_resolution(resolution)
    aspect = resolution[0] / resolution[1] if resolution else DEFAULT_ASPECT
    near, far = _clipping_range(clipping_range, lens)
    offsets = (
        _finite("horizontal_aperture_offset", horizontal_aperture_offset),
        _finite("vertical_aperture_offset", vertical_aperture_offset),
    )
    focal_length, width, height = _lens(lens, fov, focal_length, horizontal_aperture, vertical_aperture)
    follow = FOLLOW_WIDTH if not width else FOLLOW_HEIGHT if not height else None
    local = None if transform is None else _matrix(transform)
    prim_path = _new_prim_path(stage, path)

    for ancestor in prim_path.GetParentPath().GetPrefixes():
        if not stage.GetPrimAtPath(ancestor):
            UsdGeom.Xform.Define(stage, ancestor)
    camera = UsdGeom.Camera.Define(stage, prim_path)
    tenths = 10.0 / metres_per_unit
    if lens == "orthographic":
        camera.CreateProjectionAttr(UsdGeom.Tokens.orthographic)
    else:
        camera.CreateProjectionAttr(UsdGeom.Tokens.perspective)
        camera.CreateFocalLengthAttr(focal_length * tenths)
    camera.CreateHorizontalApertureAttr((width or height * aspect) * tenths)
    camera.CreateVerticalApertureAttr((height or width / aspect) * tenths)
    camera.CreateHorizontalApertureOffsetAttr(offsets[0] * tenths)
    camera.CreateVerticalApertureOffsetAttr(offsets[1] * tenths)
    camera.CreateClippingRangeAttr(Gf.Vec2f(near / metres_per_unit, far / metres_per_unit))
    _set_follow(camera, follow)
    if local is not None:
        local = local.copy()
        local[:3, 3] /= metres_per_unit
        _write_local(camera, local)
    for name, value in (attributes or {}).items():
        _write_attribute(camera.GetPrim(), name, value)
    if resolution is not None:
        add_product(stage, product_path_for(stage, prim_path), camera, resolution, policy=follow)
    return camera


def set_intrinsics(
    camera: UsdGeom.Camera,
    K: np.ndarray,
    width: int,
    height: int,
    *,
    focal_length: float | None = None,
    distortion: tuple[str, Sequence[float]] | None = None,
) -> None:
    """Write a calibrated K, (3, 3) OpenCV pixels of a width x height image (centres at +0.5), as focal length, apertures and offsets.

    ``focal_length`` [m] only sets the scale of the rest; None keeps the camera's. A camera that no product targets gets one of that size
    under /Render, so that the pixels K counts are known; products there are keep their resolution, to which K is conformed. Where fx and
    fy differ, the camera's products get the conform policy adjustPixelAspectRatio, without which the renderer makes the pixels square.
    """
    camera = _camera(camera)
    K = np.asarray(K, np.float64)
    width, height = checked_resolution((width, height))
    if K.shape != (3, 3) or not np.isfinite(K).all():
        raise ArgumentError(f"K must be a (3, 3) matrix of finite numbers; it is {np.array2string(K)}")
    if not np.allclose(K[2], (0.0, 0.0, 1.0)) or K[1, 0] != 0.0 or not (K[0, 0] > 0.0 and K[1, 1] > 0.0):
        raise ArgumentError(f"K must be [[fx, 0, cx], [0, fy, cy], [0, 0, 1]] with fx and fy above 0; it is {np.array2string(K)}")
    if abs(K[0, 1]) > 1e-9 * K[0, 0]:
        raise NotSupported(f"K with skew ({K[0, 1]:g}) is not supported; USD cameras have none")
    if distortion is not None:
        raise NotSupported(f"distortion=({distortion[0]!r}, ...) is not supported yet; undistort the images, or leave it out")
    stage = camera.GetPrim().GetStage()
    tenths = 10.0 / UsdGeom.GetStageMetersPerUnit(stage)
    if focal_length is None:
        focal = float(camera.GetFocalLengthAttr().Get() or 0.0)
        focal = focal if focal > 0.0 else 50.0
    else:
        focal = _positive("focal_length", focal_length) * tenths
    fx, fy, cx, cy = K[0, 0], K[1, 1], K[0, 2], K[1, 2]
    for attribute, value in (
        (camera.CreateProjectionAttr(), UsdGeom.Tokens.perspective),
        (camera.CreateFocalLengthAttr(), focal),
        (camera.CreateHorizontalApertureAttr(), width * focal / fx),
        (camera.CreateVerticalApertureAttr(), height * focal / fy),
        (camera.CreateHorizontalApertureOffsetAttr(), (0.5 * width - cx) * focal / fx),
        (camera.CreateVerticalApertureOffsetAttr(), (cy - 0.5 * height) * focal / fy),
    ):
        _write_default(attribute, value)
    _set_follow(camera, None)
    products = products_of(stage, camera.GetPath())
    if not products:
        products = [add_product(stage, product_path_for(stage, camera.GetPath()), camera, (width, height))]
    for product in products:
        if abs(fx - fy) > 1e-6 * fx:
            product.CreateAspectRatioConformPolicyAttr(UsdRender.Tokens.adjustPixelAspectRatio)
            product.CreatePixelAspectRatioAttr(fy / fx)
        elif product.GetAspectRatioConformPolicyAttr().Get() == UsdRender.Tokens.adjustPixelAspectRatio:
            product.CreateAspectRatioConformPolicyAttr(UsdRender.Tokens.expandAperture)
            product.CreatePixelAspectRatioAttr(1.0)


def set_world_pose(
    camera: UsdGeom.Camera,
    position: Sequence[float],
    orientation_wxyz: Sequence[float],
    convention: str = "ros",
    *,
    time: float | Usd.TimeCode | None = None,
) -> None:
    """Place a camera in the world: position [m], orientation as a quaternion (w, x, y, z) of the camera's axes in a convention: "ros"
    (+Z forward, -Y up), "opengl" (-Z forward, +Y up) or "world" (+X forward, +Z up).

    Written as one xformOp:transform relative to the parents, scale and all undone. ``time``: a time code to write a sample at; None writes
    the default value, relative to where the parents are at the stage's start.
    """
    camera = _camera(camera)
    w, x, y, z = _vector("orientation_wxyz", orientation_wxyz, 4)
    rotation = rotation_from_quaternion(np.array([x, y, z, w])) @ opengl_from(convention).T
    _set_world(camera, rotation, _vector("position", position, 3), time)


def look_at(
    camera: UsdGeom.Camera,
    eye: Sequence[float],
    target: Sequence[float],
    *,
    up: Sequence[float] | None = None,
    time: float | Usd.TimeCode | None = None,
) -> None:
    """Place a camera at ``eye`` looking at ``target`` [m, world], upright: the stage's up axis (or ``up``) is up in the picture.

    Looking straight down, the stage's north (Y with Z up, -Z with Y up) is at the top of the picture, as on a map; straight up, at its
    bottom.
    """
    camera = _camera(camera)
    eye, target = _vector("eye", eye, 3), _vector("target", target, 3)
    back = eye - target
    distance = np.linalg.norm(back)
    if not distance > 1e-12 * max(np.abs(eye).max(), np.abs(target).max()):
        raise ArgumentError(f"eye and target are the same point {tuple(eye.tolist())}; move one of them")
    back /= distance
    z_up = UsdGeom.GetStageUpAxis(camera.GetPrim().GetStage()) == UsdGeom.Tokens.z
    upwards = np.array([0.0, 0.0, 1.0] if z_up else [0.0, 1.0, 0.0]) if up is None else _vector("up", up, 3)
    if not np.linalg.norm(upwards) > 0.0:
        raise ArgumentError("up is (0, 0, 0); it must have a length")
    right = np.cross(upwards / np.linalg.norm(upwards), back)
    if np.linalg.norm(right) < 1e-6:  # straight up or down
        north = np.array([0.0, 1.0, 0.0] if z_up else [0.0, 0.0, -1.0])
        if abs(north @ back) > 0.999:  # `up` was the north itself
            north = np.array([1.0, 0.0, 0.0])
        right = np.cross(north if back @ upwards > 0.0 else -north, back)
    right /= np.linalg.norm(right)
    _set_world(camera, np.column_stack([right, np.cross(back, right), back]), eye, time)


def _set_world(camera: UsdGeom.Camera, rotation: np.ndarray, position: np.ndarray, time: float | Usd.TimeCode | None) -> None:
    stage = camera.GetPrim().GetStage()
    world = np.eye(4)
    world[:3, :3] = rotation
    world[:3, 3] = position / UsdGeom.GetStageMetersPerUnit(stage)
    at = _time_code(stage, time)
    if not camera.GetResetXformStack():
        parent = np.array(UsdGeom.XformCache(at).GetParentToWorldTransform(camera.GetPrim())).T
        lengths = np.linalg.norm(parent[:3, :3], axis=0)
        if not np.isfinite(parent).all() or not lengths.min() > 0.0 or abs(np.linalg.det(parent[:3, :3] / lengths)) < 1e-12:
            raise ArgumentError(f"<{camera.GetPath()}>: the transform of its parents is singular; mend it, or place the camera elsewhere")
        # Undone part by part: a far-away parent would otherwise cost digits of the rotation.
        inverse = np.linalg.inv(parent[:3, :3])
        world[:3, :3] = inverse @ world[:3, :3]
        world[:3, 3] = inverse @ (world[:3, 3] - parent[:3, 3])
    _write_local(camera, world, None if time is None else at)


def _write_local(camera: UsdGeom.Camera, local: np.ndarray, time: Usd.TimeCode | None = None) -> None:
    """One xformOp:transform in place of what was there; `!resetXformStack!` is kept."""
    reset = camera.GetResetXformStack()
    operation = camera.MakeMatrixXform()
    if not operation:
        raise ArgumentError(f"<{camera.GetPath()}>: its transform cannot be replaced in the stage's edit target; choose a stronger layer")
    if reset:
        camera.SetResetXformStack(True)
    matrix = Gf.Matrix4d(*np.asarray(local, np.float64).T.ravel().tolist())  # Gf multiplies rows
    if time is None or time.IsDefault():
        _write_default(operation.GetAttr(), matrix)
    else:
        operation.Set(matrix, time)


def _write_default(attribute: Usd.Attribute, value: object) -> None:
    """A default value that shows: time samples of the same layer would hide it."""
    if attribute.GetNumTimeSamples():
        attribute.Clear()
    attribute.Set(value)


def _lens(
    lens: str, fov: float | None, focal_length: float | None, width: float | None, height: float | None
) -> tuple[float, float, float]:
    """(focal length, aperture width, height) in metres; a side of 0 follows the image."""
    if width is not None and height is not None and width == height == 0.0:
        raise ArgumentError("horizontal_aperture and vertical_aperture are both 0; one of them may be: it then follows the image's aspect")
    width = 0.0 if width is None else _at_least_zero("horizontal_aperture", width)
    height = 0.0 if height is None else _at_least_zero("vertical_aperture", height)
    if lens == "orthographic":
        for name, value in (("fov", fov), ("focal_length", focal_length)):
            if value is not None:
                raise ArgumentError(
                    f"{name} means nothing to lens='orthographic'; give the window's size as horizontal_ or vertical_aperture"
                )
        if not (width or height):
            raise ArgumentError("lens='orthographic' needs horizontal_aperture or vertical_aperture: the window's size in metres")
        return 0.0, width, height
    if focal_length is not None:
        if fov is not None:
            raise ArgumentError("give fov or focal_length, not both")
        focal_length = _positive("focal_length", focal_length)
        return focal_length, width if width or height else FILM_WIDTH, height
    if width:
        with_what = "fov is vertical and its width follows the image" if fov is not None else "without focal_length the view is not known"
        raise ArgumentError(f"horizontal_aperture is given, but {with_what}; give focal_length and horizontal_aperture, or fov alone")
    fov = DEFAULT_FOV if fov is None else _finite("fov", fov)
    if not 0.0 < fov < math.pi:
        raise ArgumentError(f"fov is {fov:g}; it is the vertical field of view in radians, above 0 and below pi")
    height = height or FILM_HEIGHT
    return 0.5 * height / math.tan(0.5 * fov), 0.0, height


def _clipping_range(clipping_range: tuple[float, float], lens: str) -> tuple[float, float]:
    near, far = _vector("clipping_range", clipping_range, 2).tolist()
    if not near < far or (near < 0.0 and lens != "orthographic"):
        raise ArgumentError(f"clipping_range is ({near:g}, {far:g}); near must be 0 or above, and below far [m]")
    return near, far


def _set_follow(camera: UsdGeom.Camera, policy: str | None) -> None:
    prim = camera.GetPrim()
    if policy is not None:
        prim.CreateAttribute(FOLLOW_ATTRIBUTE, Sdf.ValueTypeNames.Token, True, Sdf.VariabilityUniform).Set(policy)
    elif prim.HasAttribute(FOLLOW_ATTRIBUTE):
        attribute = prim.GetAttribute(FOLLOW_ATTRIBUTE)
        attribute.Clear()
        if attribute.Get():  # authored in a weaker layer
            attribute.Block()


def _camera(camera: UsdGeom.Camera | Usd.Prim) -> UsdGeom.Camera:
    schema = camera if isinstance(camera, UsdGeom.Camera) else UsdGeom.Camera(camera) if isinstance(camera, Usd.Prim) else None
    if not schema:
        raise ArgumentError(f"camera must be a UsdGeom.Camera or its prim; it is {camera!r}")
    return schema


def _new_prim_path(stage: Usd.Stage, path: str) -> Sdf.Path:
    text = str(path)
    if not Sdf.Path.IsValidPathString(text) or not Sdf.Path(text).IsPrimPath() or not Sdf.Path(text).IsAbsolutePath():
        raise ArgumentError(f"{text!r} is not an absolute prim path; expected one like /World/Camera")
    prim = stage.GetPrimAtPath(text)
    if prim and prim.GetTypeName() and not prim.IsA(UsdGeom.Camera):
        raise ArgumentError(f"<{text}> is a {prim.GetTypeName()} already; choose another path")
    return Sdf.Path(text)


def _time_code(stage: Usd.Stage, time: float | Usd.TimeCode | None) -> Usd.TimeCode:
    if time is None:
        return Usd.TimeCode(stage.GetStartTimeCode()) if stage.HasAuthoredMetadata("startTimeCode") else Usd.TimeCode.EarliestTime()
    return time if isinstance(time, Usd.TimeCode) else Usd.TimeCode(float(time))


def _matrix(transform: np.ndarray | Sequence) -> np.ndarray:
    """(4, 4) column vectors, metres, from a matrix or from 7 numbers (position, quaternion x y z w)."""
    if isinstance(transform, Gf.Matrix4d | Gf.Matrix4f):
        raise ArgumentError("transform is a Gf.Matrix, which multiplies row vectors in scene units; give np.array(matrix).T in metres")
    try:
        values = np.asarray(transform, np.float64)
    except (TypeError, ValueError):
        values = np.zeros(0)
    if values.shape == (7,) and np.isfinite(values).all():
        matrix = np.eye(4)
        matrix[:3, :3] = rotation_from_quaternion(values[3:])
        matrix[:3, 3] = values[:3]
        return matrix
    if values.shape != (4, 4) or not np.isfinite(values).all():
        raise ArgumentError(
            f"transform must be a (4, 4) matrix or 7 numbers (position, quaternion x y z w), all finite; it is {transform!r}"
        )
    if not np.allclose(values[3], (0.0, 0.0, 0.0, 1.0)):
        raise ArgumentError("the last row of transform is not (0, 0, 0, 1): matrices here multiply column vectors (transpose it?)")
    if abs(np.linalg.det(values[:3, :3])) < 1e-12:
        raise ArgumentError("transform is singular")
    return values


def _finite(name: str, value: float) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ArgumentError(f"{name} is {value!r}; it must be a finite number")
    return number


def _positive(name: str, value: float) -> float:
    if not _finite(name, value) > 0.0:
        raise ArgumentError(f"{name} is {value!r}; it must be above 0")
    return float(value)


def _at_least_zero(name: str, value: float) -> float:
    if _finite(name, value) < 0.0:
        raise ArgumentError(f"{name} is {value!r}; it must be above 0 (or 0, to follow the image's aspect)")
    return float(value)


def _vector(name: str, value: Sequence[float], count: int) -> np.ndarray:
    try:
        vector = np.array([float(item) for item in value], np.float64)
    except (TypeError, ValueError):
        vector = np.zeros(0)
    if vector.shape != (count,) or not np.isfinite(vector).all():
        raise ArgumentError(f"{name} is {value!r}; it must be {count} finite numbers")
    return vector


def _write_attribute(prim: Usd.Prim, name: str, value: object) -> None:
    if not Sdf.Path.IsValidNamespacedIdentifier(name):
        raise ArgumentError(f"attribute name {name!r} is not valid in USD; use letters, digits, underscores and ':'")
    existing = prim.GetAttribute(name)
    type_name, usd_value = _usd_value(name, value)
    attribute = existing if existing and existing.GetTypeName() else prim.CreateAttribute(name, type_name, True)
    try:
        attribute.Set(usd_value)
    except (Tf.ErrorException, TypeError, ValueError) as error:
        raise ArgumentError(f"attribute {name!r} holds a {attribute.GetTypeName()}; {value!r} cannot be written to it") from error


def _usd_value(name: str, value: object) -> tuple[Sdf.ValueTypeName, object]:
    """The value type that keeps a Python or NumPy value, and the value as USD takes it."""
    types = Sdf.ValueTypeNames
    if isinstance(value, str):
        return types.String, value
    if isinstance(value, Sequence) and value and all(isinstance(item, str) for item in value):
        return types.StringArray, Vt.StringArray(list(value))
    try:
        array = np.asarray(value)
        if array.dtype.kind == "b" and array.ndim == 0:
            return types.Bool, bool(array)
        whole = array.dtype.kind in "iub"
        if array.dtype.kind not in "iubf" or array.ndim > 2:
            raise TypeError
    except (TypeError, ValueError):
        raise ArgumentError(f"attribute {name!r} is {value!r}; give a number, a string, or a list or array of them") from None
    if whole and array.size and (array.min() < -(2**31) or array.max() >= 2**31):
        whole = False if array.ndim else whole
        if array.ndim == 0:
            return types.Int64, int(array)
    if array.ndim == 0:
        return (types.Int, int(array)) if whole else (types.Double, float(array))
    if array.shape in ((3, 3), (4, 4)):
        kind = Gf.Matrix3d if array.shape[0] == 3 else Gf.Matrix4d
        return (types.Matrix3d if array.shape[0] == 3 else types.Matrix4d), kind(*array.astype(float).ravel().tolist())
    if array.ndim == 2:
        raise ArgumentError(
            f"attribute {name!r} has the shape {array.shape}; give a number, a vector, a (3, 3) or (4, 4) matrix, or a flat list"
        )
    if array.size in (2, 3, 4):
        vector = getattr(Gf, f"Vec{array.size}{'i' if whole else 'd'}")
        type_name = getattr(types, f"{'Int' if whole else 'Double'}{array.size}")
        return type_name, vector(*array.tolist())
    if whole:
        return types.IntArray, Vt.IntArray(array.astype(int).tolist())
    return types.DoubleArray, Vt.DoubleArray(array.astype(float).tolist())
