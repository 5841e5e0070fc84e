"""sensors.camera: a stage's cameras rendered together, one launch for all views, into arrays that stay on the device."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence
from enum import IntEnum

import warp as wp

from hdwarp.aovs.registry import primvar_name
from hdwarp.delegate.aov import array_type
from hdwarp.delegate.render_pass import check_inputs
from hdwarp.delegate.render_settings import RenderSettings
from hdwarp.errors import ArgumentError, Error, NotSupported
from hdwarp.scene import Scene
from hdwarp.sensors.conversions import convert, plane_of, render_bindings
from hdwarp.sensors.data_types import DATA_TYPES
from hdwarp.stage.render_spec import find_render_prims, made_up_product, product_for_camera
from hdwarp.state import State
from hdwarp.views.conform import image_spec

_LARGEST_IMAGES = 4 << 30  # bytes; larger needs smaller images or fewer views


class RayMode(IntEnum):
    """Where rays of built-in lenses come from."""

    PRECOMPUTED = 0  # cached by the sensor
    ANALYTIC = 1  # from the camera columns, at every update


class SensorCamera:
    """Views of some of a scene's cameras, all of one size, rendered by `update` from the state of the bodies.

    ``view_count``, ``width``, ``height``; ``view_camera`` and ``view_world`` are wp.array[int32] (view_count,).
    """

    def __init__(
        self,
        scene: Scene,
        *,
        cameras: str | re.Pattern | Sequence | None = None,
        sites: object = None,
        resolution: tuple[int, int] | None = None,
        samples: int = 1,
        ray_mode: RayMode = RayMode.ANALYTIC,
        ray_function: object = None,
        ray_params: object = None,
        clipping_range: tuple[float, float] | None = None,
        clip: str | None = None,
        worlds: Sequence[int] | None = None,
        exclude: object = None,
        geometry: str = "visual",
        settings: RenderSettings | None = None,
        clear: Mapping[str, object] | None = None,
    ) -> None:
        """``cameras``: fnmatch pattern over the whole label ('*' crosses '/'), list, compiled expression or row numbers.

        ``resolution``: (width, height); None: that of the first product that targets the first camera, else 1280x720 with a diagnostic.
        ``samples``: samples a pixel for colour, a square number. ``clipping_range`` [m] replaces the cameras' own; ``clip``: "planar" or
        "radial". ``settings``: RenderSettings; None: those of ``scene.delegate``. ``clear``: AOV or data type -> value of pixels that
        see nothing.

        Raises ArgumentError for patterns that match nothing and bad values, NotSupported for what later versions do.
        """
        unsupported = {
            "sites": sites,
            "ray_function": ray_function,
            "ray_params": ray_params,
            "exclude": exclude,
            "geometry": None if geometry == "visual" else geometry,
            "ray_mode": None if ray_mode == RayMode.ANALYTIC else ray_mode,
        }
        for name, value in unsupported.items():
            if value is not None:
                raise NotSupported(f"SensorCamera({name}={value!r}) is not supported yet")
        if cameras is None:
            raise NotSupported("SensorCamera without cameras= (an unbound sensor) is not supported yet; name the cameras, '*' for all")
        if worlds is not None and list(worlds) != [0]:
            raise ArgumentError(f"worlds={list(worlds)}: the scene has one world, number 0")
        if clip not in (None, "planar", "radial"):
            raise ArgumentError(f"clip={clip!r}: expected 'planar' or 'radial'")
        self.scene = scene
        self._pass = scene.delegate.create_render_pass(samples=samples, settings=settings)
        self._selection, self._resolution, self._radial = cameras, resolution, clip == "radial"
        self._clear = dict(clear or {})
        self._clip = clip_array(clipping_range, scene.device)
        self.rebind()

    def rebind(self) -> None:
        """Select the cameras anew, after `Scene.sync` added or removed some."""
        scene = self.scene
        if scene.stage is None:
            raise Error("the scene is closed; open a new Scene, and a sensor on it")
        rows = self._select()
        self._cameras = [scene.cameras.label[row] for row in rows]
        self._spec = self._image(self._cameras[0])
        self._see(rows)
        self.view_world = wp.zeros(len(rows), dtype=wp.int32, device=scene.device)

    def _select(self) -> list[int]:
        """Rows of the cameras selected. Raises ArgumentError; of a camera that cannot be rendered it says why."""
        scene = self.scene
        try:
            return scene.cameras.select(self._selection)
        except ArgumentError as error:
            names = [name for name in ([self._selection] if isinstance(self._selection, str) else self._selection) if isinstance(name, str)]
            for item in scene.diagnostics:
                if item.severity == "error" and any(fnmatch.fnmatchcase(item.path, name) for name in names):
                    raise ArgumentError(f"{error}; <{item.path}>: {item.message}") from None
            raise

    def _see(self, rows: Sequence[int]) -> None:
        scene = self.scene
        self.views = scene.delegate.create_views(rows, self._spec, scene_unit=1.0 / scene.metres_per_unit, radial=self._radial)
        self.view_camera = wp.array(rows, dtype=wp.int32, device=scene.device)

    def _follow_cameras(self) -> None:
        """Other cameras may come and go; the selected ones are found in their new rows. Raises Error where these are others now."""
        label = self.scene.cameras.label
        try:
            found = [label[row] for row in self._select()]
        except ArgumentError:
            found = []
        if found != self._cameras:
            gone = [path for path in self._cameras if path not in found]
            what = f"{', '.join(gone[:3])} went" if gone else f"{', '.join([path for path in found if path not in self._cameras][:3])} came"
            raise Error(f"the sensor's cameras are others now ({what}); cameras were added to the scene or removed: call rebind()")
        self._see([label.index(path) for path in found])

    def _image(self, camera: str):
        """Pixels of the images: conform policy and pixel aspect of the product that targets the first camera."""
        diagnostics = self.scene.diagnostics
        product = product_for_camera(self.scene.stage, camera, diagnostics=diagnostics, found=find_render_prims(self.scene.stage))
        if product is None:
            product = made_up_product(camera)
            if self._resolution is None:
                width, height = product.resolution
                message = f"no RenderProduct targets this camera; using {width}x{height} (resolution=)"
                diagnostics.note(camera, "default-resolution", message)
        size = self._resolution if self._resolution is not None else product.resolution
        return image_spec(size, product.pixel_aspect_ratio, product.aspect_ratio_conform_policy)

    @property
    def settings(self) -> RenderSettings:
        return self._pass.settings

    @property
    def view_count(self) -> int:
        return self.views.count

    @property
    def width(self) -> int:
        return self.views.width

    @property
    def height(self) -> int:
        return self.views.height

    def allocate(self, aovs: Sequence[str]) -> dict[str, wp.array]:
        """Arrays (view, H, W) for `update` to fill, by the names of AOVs and of `sensors.data_types` (`motion_vectors`): scalars,
        vec2f/vec3f/vec4f or vec4ub."""
        if isinstance(aovs, str):
            aovs = [aovs]
        if not isinstance(aovs, (list, tuple, set, dict)) or not all(isinstance(name, str) for name in aovs):
            raise ArgumentError(f"aovs={aovs!r}: expected a list of names of AOVs or data types")
        shape = (self.view_count, self.height, self.width)
        types = {name: self._pixel_type(name) for name in aovs}
        if any(plane_of(name) == "motion" for name in types):
            self.scene.keep_previous()
        total = sum(wp.types.type_size_in_bytes(dtype) for dtype in types.values()) * shape[0] * shape[1] * shape[2]
        if total > _LARGEST_IMAGES:
            raise ArgumentError(
                f"{len(types)} planes of {shape[0]} views of {self.width}x{self.height} need {total:,} bytes; the most is"
                f" {_LARGEST_IMAGES:,}: lower the resolution, or render fewer views or planes"
            )
        return {name: wp.zeros(shape, dtype=dtype, device=self.scene.device) for name, dtype in types.items()}

    def update(
        self,
        state: State | None,
        out: Mapping[str, wp.array],
        *,
        previous: State | None = None,
        view_mask: wp.array | None = None,
        world_mask: wp.array | None = None,
        world_indices: wp.array | None = None,
        camera_transforms: wp.array | None = None,
        camera_rays: wp.array | None = None,
        previous_camera_transforms: wp.array | None = None,
        clear: Mapping[str, object] | None = None,
        pose: bool = True,
    ) -> None:
        """Fill ``out`` (as `allocate` gives it) for the bodies as in ``state``; None: as on the stage.

        ``pose=False``: the scene is posed already. ``view_mask`` (view_count,) bool and ``world_mask`` (world_count,) bool on the device:
        views that are off keep their pixels. ``camera_transforms`` (view_count,) transformf: poses in the world's frame for this call.

        ``previous``: the state that `motion` and `motion_vectors` are measured against: where bodies, and the cameras they carry, were.
        None: where they are in ``state``; without ``state`` where the stage had them before the last `Scene.sync`, as everything that no
        body carries. Cameras given by ``camera_transforms`` were at ``previous_camera_transforms``, or have not moved.
        Raises Error when the scene's cameras have changed since the sensor was bound, ArgumentError for arrays of another shape or type.
        """
        for name, value in {"world_indices": world_indices, "camera_rays": camera_rays}.items():
            if value is not None:
                raise NotSupported(f"SensorCamera.update({name}=) is not supported yet")
        for name, given in (("state", state), ("previous", previous)):
            if given is not None:
                check_state(name, given)
        if not isinstance(out, Mapping):
            raise ArgumentError(f"out is a {type(out).__name__}; expected a dictionary of arrays as allocate() gives it")
        if clear is not None and not isinstance(clear, Mapping):
            raise ArgumentError(f"clear is a {type(clear).__name__}; give name of an output -> value")
        clear = {**self._clear, **(clear or {})}
        unknown = [name for name in clear if name not in out]
        if unknown:
            raise ArgumentError(f"clear names {', '.join(unknown)}, which are not among the outputs: {', '.join(out)}")
        scene = self.scene
        if scene.stage is None:
            raise Error("the scene is closed; open a new Scene, and a sensor on it")
        if scene.cameras.version != self.views.cameras_version:
            self._follow_cameras()
        self._check(out)
        planes, values, steps = render_bindings(out, clear)
        masks = {"view_mask": view_mask, "world_mask": world_mask}
        body_q = None if state is None else state.body_q
        then = {
            "previous_body_q": None if previous is None else previous.body_q,
            "previous_camera_transforms": previous_camera_transforms,
        }
        check_inputs(scene.tables, self.views, body_q=body_q, camera_transforms=camera_transforms, **masks, **then)
        if state is None:
            scene.tables.unpose()
        elif pose:
            scene.tables.pose(state.body_q)
        self._pass.execute(
            self.views,
            planes,
            body_q=body_q,
            clear=values,
            clip=self._clip,
            camera_transforms=camera_transforms,
            **masks,
            **then,
        )
        convert(self.views, steps, scene.device)

    def _check(self, out: Mapping[str, wp.array]) -> None:
        shape = (self.view_count, self.height, self.width)
        for name, array in out.items():
            dtype = self._pixel_type(name)
            if not isinstance(array, wp.array) or array.shape != shape or array.dtype is not dtype or array.device != self.scene.device:
                given = f"{array.dtype.__name__} {array.shape} on {array.device}" if isinstance(array, wp.array) else type(array).__name__
                raise ArgumentError(
                    f"out[{name!r}] is {given}; expected wp.array[{dtype.__name__}] {shape} on {self.scene.device} (see allocate())"
                )
            if not array.is_contiguous:
                raise ArgumentError(f"out[{name!r}] is not contiguous")

    def _pixel_type(self, name: str) -> type:
        """Warp type of one pixel of an AOV or data type. Raises ArgumentError that names those there are."""
        try:
            return array_type(self.scene.tables, plane_of(name))
        except ArgumentError as error:
            if isinstance(name, str) and primvar_name(name):
                raise
            raise ArgumentError(f"{error}; data types: {', '.join(DATA_TYPES)}") from None

    def compute_view_transforms(self, state: State | None = None, out: wp.array | None = None) -> wp.array:
        """(view_count,) transformf: pose of each view in its world's frame, USD camera axes."""
        scene = self.scene
        scene.check_open()
        if scene.cameras.version != self.views.cameras_version:
            self._follow_cameras()
        state = state if state is not None else scene.state()
        check_state("state", state)
        check_inputs(scene.tables, self.views, body_q=state.body_q, camera_transforms=out)
        out = wp.empty(self.view_count, dtype=wp.transformf, device=scene.device) if out is None else out
        self.views.compute_transforms(self.scene.cameras.columns, state.body_q, camera_transforms=None, out=out)
        return out

    def set_camera_rays(self, rays: object, cameras: object = None) -> None:
        raise NotSupported("SensorCamera.set_camera_rays: custom rays are not supported yet")

    def sync_camera_rays(self) -> None:
        """Nothing to do: ANALYTIC rays follow the camera columns at every update."""


def check_state(name: str, state: object) -> None:
    """Raise ArgumentError for what is no State, or one without poses."""
    if not isinstance(state, State) or state.body_q is None:
        what = "State without body_q" if isinstance(state, State) else type(state).__name__
        raise ArgumentError(f"{name} is a {what}; expected what scene.state() or its copy() gives, or None for the stage's poses")


def clip_array(clipping_range: tuple[float, float] | None, device: wp.Device) -> wp.array | None:
    """(1,) vec2f with a clip range for all views, None without. Raises ArgumentError unless 0 <= near < far."""
    if clipping_range is None:
        return None
    try:
        near, far = (float(value) for value in clipping_range)
    except (TypeError, ValueError):
        raise ArgumentError(f"clipping_range={clipping_range!r}: expected (near, far) in metres") from None
    if not 0.0 <= near < far:
        raise ArgumentError(f"clipping_range=({near:g}, {far:g}): expected 0 <= near < far, in metres")
    return wp.array([(near, far)], dtype=wp.vec2f, device=device)


__all__ = ["RayMode", "SensorCamera"]
