"""sensors.camera: a stage's cameras rendered together, one launch for all views, into arrays that stay on the device."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence
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
from hdwarp.sensors.exclusion import Exclusion
from hdwarp.sensors.placing import axes_of, mount_cameras, pose_array
from hdwarp.sensors.tiles import grid_of, lay_tiles
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

    A camera of a world gives one view, a global one a view of every world, from where it stands on the stage. Views are in the order of
    (camera row, world). ``view_count``, ``width``, ``height``; ``view_camera`` (row of `Scene.cameras`) and ``view_world`` are
    wp.array[int32] (view_count,).
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

        ``worlds``: numbers of the worlds to see; None: all. ``exclude``: bodies and prims that the views do not see: patterns over paths,
        or camera pattern -> patterns; a body stands for all it carries, the paths of a prototype for those of its copies. ``geometry``:
        "visual", "collision" (colliders, drawn or not) or "all"; for the latter two the scene reads colliders as well, once.
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
            "ray_mode": None if ray_mode == RayMode.ANALYTIC else ray_mode,
        }
        for name, value in unsupported.items():
            if value is not None:
                raise NotSupported(f"SensorCamera({name}={value!r}) is not supported yet")
        if cameras is None:
            raise NotSupported("SensorCamera without cameras= (an unbound sensor) is not supported yet; name the cameras, '*' for all")
        scene.check_open()
        self._worlds = check_worlds(worlds, scene.worlds.count)
        if clip not in (None, "planar", "radial"):
            raise ArgumentError(f"clip={clip!r}: expected 'planar' or 'radial'")
        self.scene = scene
        self._pass = scene.delegate.create_render_pass(samples=samples, settings=settings)
        self._selection, self._resolution, self._radial = cameras, resolution, clip == "radial"
        self._clear = dict(clear or {})
        self._clip = clip_array(clipping_range, scene.device)
        self._exclusion = Exclusion(scene, exclude, geometry)
        if geometry != "visual":
            scene.read_collisions()
        self.rebind()

    def rebind(self) -> None:
        """Select the cameras anew, after `Scene.sync` added or removed some."""
        scene = self.scene
        if scene.stage is None:
            raise Error("the scene is closed; open a new Scene, and a sensor on it")
        rows = self._select()
        self._exclusion.follow(strict=True)
        self._cameras = [scene.cameras.label[row] for row in rows]
        self._spec = self._image(scene.cameras.record_of(rows[0]).path)
        self._see(rows)

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
        scene, table = self.scene, self.scene.cameras
        seen = range(scene.worlds.count) if self._worlds is None else self._worlds
        views = [(row, world) for row in rows for world in seen if table.world[row] in (-1, world)]
        if not views:
            raise ArgumentError(f"none of the cameras selected is in the worlds {list(seen)[:10]}")
        self.views = scene.delegate.create_views(
            rows,
            self._spec,
            worlds=self._worlds,
            scene_unit=1.0 / scene.metres_per_unit,
            radial=self._radial,
            hides=self._exclusion.hides(table.label[row] for row, _ in views),
        )
        self.views.flags = self._exclusion.flags
        self.view_camera = wp.array([row for row, _ in views], dtype=wp.int32, device=scene.device)
        self.view_world = wp.array([world for _, world in views], dtype=wp.int32, device=scene.device)

    def _follow(self) -> None:
        """Keep up with a scene that has changed. Raises Error where it is closed, or the selected cameras are others now."""
        if self.scene.stage is None:
            raise Error("the scene is closed; open a new Scene, and a sensor on it")
        if self.scene.cameras.version != self.views.cameras_version:
            self._follow_cameras()
        self._exclusion.follow()
        self.views.flags = self._exclusion.flags

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
        views that are off keep their pixels. For this call: ``camera_transforms`` (view_count,) transformf: poses in the frames of the
        views' worlds; ``world_indices`` (view_count,) int32: worlds that are seen in place of the views' own. A body whose pose is no
        number is not there.

        ``previous``: the state that `motion` and `motion_vectors` are measured against: where bodies, and the cameras they carry, were.
        None: where they are in ``state``; without ``state`` where the stage had them before the last `Scene.sync`, as everything that no
        body carries. Cameras given by ``camera_transforms`` were at ``previous_camera_transforms``, or have not moved.
        Raises Error when the scene's cameras have changed since the sensor was bound, ArgumentError for arrays of another shape or type.
        """
        if camera_rays is not None:
            raise NotSupported("SensorCamera.update(camera_rays=) is not supported yet")
        for name, given in (("state", state), ("previous", previous)):
            if given is not None:
                check_state(name, given, self.scene)
        if not isinstance(out, Mapping):
            raise ArgumentError(f"out is a {type(out).__name__}; expected a dictionary of arrays as allocate() gives it")
        if clear is not None and not isinstance(clear, Mapping):
            raise ArgumentError(f"clear is a {type(clear).__name__}; give name of an output -> value")
        clear = {**self._clear, **(clear or {})}
        unknown = [name for name in clear if name not in out]
        if unknown:
            raise ArgumentError(f"clear names {', '.join(unknown)}, which are not among the outputs: {', '.join(out)}")
        scene = self.scene
        self._follow()
        self._check(out)
        planes, values, steps = render_bindings(out, clear)
        masks = {"view_mask": view_mask, "world_mask": world_mask, "world_indices": world_indices}
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
        self._follow()
        state = state if state is not None else scene.state()
        check_state("state", state, scene)
        check_inputs(scene.tables, self.views, body_q=state.body_q, camera_transforms=out)
        out = wp.empty(self.view_count, dtype=wp.transformf, device=scene.device) if out is None else out
        self.views.compute_transforms(scene.cameras.columns, scene.tables.world_columns, state.body_q, camera_transforms=None, out=out)
        return out

    def set_world_poses(
        self,
        positions: object,
        orientations_wxyz: object = None,
        *,
        state: State | None = None,
        views: Sequence[int] | None = None,
        convention: str = "ros",
    ) -> None:
        """Put cameras at poses in the frames of their views' worlds, as `compute_view_transforms` reports them: of a camera that a body
        carries, the mount is written with which it stands there in ``state`` (None: as on the stage). It holds from the next `update` on.

        ``positions`` (n, 3) [m] and ``orientations_wxyz`` (n, 4), or in their place one wp.array[transformf] (n,) on the device, of
        ``views`` (numbers, None: all). ``convention``: axes of the orientations: "opengl", "ros" or "world".
        Raises ArgumentError for other shapes, views that are not there, and views of one global camera of which several are given.
        """
        scene = self.scene
        self._follow()
        chosen = list(range(self.view_count)) if views is None else [int(view) for view in views]
        wrong = [view for view in chosen if not 0 <= view < self.view_count]
        if wrong:
            raise ArgumentError(f"views: {wrong[:5]} do not exist; the sensor has {self.view_count}, from 0 on")
        cameras = [self.views.views[view].camera for view in chosen]
        if len(set(cameras)) < len(cameras):
            raise ArgumentError("several of the views are of one camera, which stands in one place: give one view of each (views=)")
        state = state if state is not None else scene.state()
        check_state("state", state, scene)
        check_inputs(scene.tables, self.views, body_q=state.body_q)
        if isinstance(positions, wp.array) and positions.dtype is wp.transformf and orientations_wxyz is None:
            poses = positions
            if poses.shape != (len(chosen),) or poses.device != scene.device:
                raise ArgumentError(f"positions: transformf {poses.shape} on {poses.device}; expected ({len(chosen)},) on {scene.device}")
        else:
            poses = pose_array(positions, orientations_wxyz, len(chosen), scene.device)
        numbers = wp.array(chosen, dtype=wp.int32, device=scene.device)
        inputs = [numbers, poses, axes_of(convention), self.views.specs, scene.tables.world_columns, state.body_q, scene.cameras.columns]
        wp.launch(mount_cameras, dim=len(chosen), inputs=inputs, device=scene.device)

    def tiled(self, out: Mapping[str, wp.array], *, columns: int | None = None, into: Mapping[str, wp.array] | None = None) -> dict:
        """The images of all views side by side: name -> wp.array (rows * H, columns * W) of the same pixels, views row by row of tiles.

        ``columns``: tiles a row, None: nearly square. ``into``: what an earlier call gave, to be filled again: nothing is allocated.
        """
        rows, columns = grid_of(self.view_count, columns)
        shape = (rows * self.height, columns * self.width)
        tiles = dict(into or {})
        self._check(out)
        for name, array in out.items():
            if name not in tiles:
                tiles[name] = wp.zeros(shape, dtype=array.dtype, device=array.device)
            if tiles[name].shape != shape or tiles[name].dtype is not array.dtype or tiles[name].device != array.device:
                raise ArgumentError(f"into[{name!r}] is {tiles[name].shape}; expected {shape} of the same pixels on {array.device}")
            lay_tiles(array, tiles[name], columns)
        return tiles

    def set_camera_rays(self, rays: object, cameras: object = None) -> None:
        raise NotSupported("SensorCamera.set_camera_rays: custom rays are not supported yet")

    def sync_camera_rays(self) -> None:
        """Nothing to do: ANALYTIC rays follow the camera columns at every update."""


def check_state(name: str, state: object, scene: Scene) -> None:
    """Raise ArgumentError for what is no State, or one without poses, or of another scene, or from before bodies came or went."""
    if not isinstance(state, State) or state.body_q is None:
        what = "State without body_q" if isinstance(state, State) else type(state).__name__
        raise ArgumentError(f"{name} is a {what}; expected what scene.state() or its copy() gives, or None for the stage's poses")
    if state.bodies is not None and state.bodies is not scene.bodies:
        raise ArgumentError(f"{name} is of another scene; take one from this one's state()")
    if state.bodies is not None and state.bodies_version != scene.bodies.version:
        raise ArgumentError(
            f"{name} is from before bodies came, went or were renamed: its rows are of other bodies now; take a new state()"
        )


def check_worlds(worlds: object, count: int) -> list[int] | None:
    """Numbers of worlds, ascending, each once. Raises ArgumentError for what is none."""
    if worlds is None:
        return None
    given = worlds.tolist() if hasattr(worlds, "tolist") else worlds
    if not isinstance(given, Iterable) or isinstance(given, str):
        raise ArgumentError(f"worlds={worlds!r}: expected numbers of worlds")
    numbers = list(given)
    if not numbers or not all(isinstance(number, int) and not isinstance(number, bool) and 0 <= number < count for number in numbers):
        there = "one world, number 0" if count == 1 else f"worlds 0 to {count - 1}"
        raise ArgumentError(f"worlds={numbers!r}: the scene has {there}")
    return sorted(set(numbers))


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
