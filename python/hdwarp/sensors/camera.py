"""sensors.camera: a stage's cameras or sites rendered together, one launch for all views, into arrays that stay on the device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum

import numpy as np
import warp as wp

from hdwarp.aovs.registry import primvar_name
from hdwarp.delegate.aov import array_type
from hdwarp.delegate.render_pass import check_inputs, check_plane_of_rays, check_planes
from hdwarp.delegate.render_settings import RenderSettings
from hdwarp.errors import ArgumentError, Error, NotSupported
from hdwarp.scene import Scene
from hdwarp.sensors.checks import check_clear, check_scene, check_state, check_worlds, clip_array
from hdwarp.sensors.conversions import convert, plane_of, render_bindings
from hdwarp.sensors.data_types import DATA_TYPES
from hdwarp.sensors.exclusion import Exclusion
from hdwarp.sensors.frames import CameraFrames, Selection, SiteFrames, UnboundFrames
from hdwarp.sensors.placing import axes_of, mount_cameras, pose_array
from hdwarp.sensors.tiles import grid_of, lay_tiles
from hdwarp.sensors.viewing import SensorViews
from hdwarp.state import State
from hdwarp.views.rows import ViewTable

_LARGEST_IMAGES = 4 << 30  # bytes; larger needs smaller images or fewer views


class RayMode(IntEnum):
    """Where rays of built-in lenses come from."""

    PRECOMPUTED = 0  # cached by the sensor
    ANALYTIC = 1  # from the camera columns, at every update


class SensorCamera:
    """Views of some of a scene's cameras or sites, all of one size, rendered by `update` from the state of the bodies.

    A camera or site of a world gives one view, a global one a view of every world, from where it stands on the stage. Views are in the
    order of (row, world). ``view_count``, ``width``, ``height``; ``view_camera`` (row of `Scene.cameras` or `Scene.sites`) and
    ``view_world`` are wp.array[int32] (view_count,). Cameras look through their lenses, or along rays of one's own, as sites always do:
    `set_camera_rays`. Without cameras and sites each `update` takes poses, rays and worlds (an unbound sensor, whose ``view_camera`` and
    ``view_world`` mean nothing).
    """

    def __init__(
        self,
        scene: Scene,
        *,
        cameras: Selection = None,
        sites: Selection = None,
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
        """``cameras`` or ``sites``: fnmatch pattern over the whole label ('*' crosses '/'), list, compiled expression or row numbers.

        ``worlds``: numbers of the worlds to see; None: all. ``exclude``: bodies and prims that the views do not see: patterns over paths,
        or camera pattern -> patterns; a body stands for all it carries, the paths of a prototype for those of its copies. ``geometry``:
        "visual", "collision" (colliders, drawn or not) or "all"; for the latter two the scene reads colliders as well, once.
        ``resolution``: (width, height); None: of cameras that of the first product that targets the first of them, else 1280x720 with a
        diagnostic; of sites and unbound sensors the shape of the first rays given.
        ``samples``: samples a pixel for colour, a square number. ``clipping_range`` [m] replaces the cameras' own, and of sites and unbound
        sensors (0, inf); it counts along the optical axis for the lenses there are, along the ray for rays of one's own, unless ``clip``
        says "planar" or "radial" (along the ray). ``settings``: RenderSettings; None: those of ``scene.delegate``. ``clear``: AOV or data
        type -> value of pixels that see nothing.

        Raises ArgumentError for patterns that match nothing and bad values, NotSupported for what later versions do.
        """
        unsupported = {
            "ray_function": ray_function,
            "ray_params": ray_params,
            "ray_mode": None if ray_mode == RayMode.ANALYTIC else ray_mode,
        }
        for name, value in unsupported.items():
            if value is not None:
                raise NotSupported(f"SensorCamera({name}={value!r}) is not supported yet")
        if cameras is not None and sites is not None:
            raise ArgumentError("a sensor looks from cameras= or from sites=, not from both: make a sensor of each")
        check_scene(scene)
        worlds_seen = check_worlds(worlds, scene.worlds.count)
        if clip not in (None, "planar", "radial"):
            raise ArgumentError(f"clip={clip!r}: expected 'planar' or 'radial'")
        self.scene = scene
        self._pass = scene.delegate.create_render_pass(samples=samples, settings=settings)
        frames = UnboundFrames(scene)
        if cameras is not None:
            frames = CameraFrames(scene, cameras)
        elif sites is not None:
            frames = SiteFrames(scene, sites)
        elif worlds is not None:
            raise ArgumentError("worlds= is of sensors with cameras= or sites=; an unbound one takes world_indices at every update")
        check_clear(clear)
        self._clear = dict(clear or {})
        self._clip = clip_array(clipping_range, scene.device)
        self._views = SensorViews(
            scene,
            frames,
            Exclusion(scene, exclude, geometry),
            worlds=worlds_seen,
            resolution=resolution,
            radial={None: None, "planar": False, "radial": True}[clip],
            samples=self._pass.samples,
        )
        if geometry != "visual":
            scene.read_collisions()
        self.rebind()

    def rebind(self) -> None:
        """Select the cameras or sites anew, after `Scene.sync` added or removed some. Rays go with their labels, and those shared by a
        pattern to all that match it now. An unbound sensor forgets how many views it has."""
        self._views.rebind()

    @property
    def views(self) -> ViewTable:
        """Rows of the views; others after `rebind`, and with other rays."""
        return self._views.table

    @property
    def view_camera(self) -> wp.array:
        return self._views.camera

    @property
    def view_world(self) -> wp.array:
        return self._views.world

    @property
    def settings(self) -> RenderSettings:
        return self._pass.settings

    @property
    def view_count(self) -> int:
        """Raises Error where an unbound sensor's is not known yet."""
        return self._views.count

    @property
    def width(self) -> int:
        return self._views.image.width

    @property
    def height(self) -> int:
        return self._views.image.height

    def allocate(self, aovs: Sequence[str], view_count: int | None = None) -> dict[str, wp.array]:
        """Arrays (view, H, W) for `update` to fill, by the names of AOVs and of `sensors.data_types` (`motion_vectors`): scalars,
        vec2f/vec3f/vec4f or vec4ub. ``view_count``: of an unbound sensor, whose views are not counted before the first update.

        Raises Error where the number or the size of the images is not known yet.
        """
        if isinstance(aovs, str):
            aovs = [aovs]
        if not isinstance(aovs, (list, tuple, set, dict)) or not all(isinstance(name, str) for name in aovs):
            raise ArgumentError(f"aovs={aovs!r}: expected a list of names of AOVs or data types")
        known = len(self._views.pairs)
        if view_count is not None and (not isinstance(view_count, int) or view_count < 1 or (known and view_count != known)):
            raise ArgumentError(f"view_count={view_count!r}: expected {known or 'a number of views'}")
        shape = (self.view_count if view_count is None else view_count, self.height, self.width)
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
        views' worlds; ``world_indices`` (view_count,) int32: worlds that are seen in place of the views' own; ``camera_rays``: rays in
        place of lenses and of those set, for all views, or a bundle for each view, or for each camera or site; forms as in
        `set_camera_rays`. An unbound sensor takes all three, and has as many views as the first call gives poses. A body whose pose is no
        number is not there.

        ``previous``: the state that `motion` and `motion_vectors` are measured against: where bodies, and the cameras they carry, were.
        None: where they are in ``state``; without ``state`` where the stage had them before the last `Scene.sync`, as everything that no
        body carries. Cameras given by ``camera_transforms`` were at ``previous_camera_transforms``, or have not moved.
        Raises Error when the scene's cameras have changed since the sensor was bound, and where sites have no rays, ArgumentError for
        arrays of another shape or type.
        """
        for name, given in (("state", state), ("previous", previous)):
            if given is not None:
                check_state(name, given, self.scene)
        if not isinstance(out, Mapping):
            raise ArgumentError(f"out is a {type(out).__name__}; expected a dictionary of arrays as allocate() gives it")
        check_clear(clear)
        clear = {**self._clear, **(clear or {})}
        unknown = [name for name in clear if name not in out]
        if unknown:
            raise ArgumentError(f"clear names {', '.join(unknown)}, which are not among the outputs: {', '.join(out)}")
        scene = self.scene
        self._views.follow()
        if self._views.is_unbound:
            given = {"camera_transforms": camera_transforms, "camera_rays": camera_rays, "world_indices": world_indices}
            self._views.count_views(given)
        views = self.views if camera_rays is None else self._views.with_rays(camera_rays)
        if camera_rays is None and self._views.lacking:
            raise Error(
                f"{', '.join(self._views.lacking[:3])}: a site has no lens, and no rays were given: set_camera_rays(rays), or"
                " update(camera_rays=) for one call"
            )
        self._check(out, views)
        planes, values, steps = render_bindings(out, clear)
        masks = {"view_mask": view_mask, "world_mask": world_mask, "world_indices": world_indices}
        body_q = None if state is None else state.body_q
        then = {
            "previous_body_q": None if previous is None else previous.body_q,
            "previous_camera_transforms": previous_camera_transforms,
        }
        check_inputs(scene.tables, views, body_q=body_q, camera_transforms=camera_transforms, **masks, **then)
        if state is None:
            scene.tables.unpose()
        elif pose:
            scene.tables.pose(state.body_q)
        self._pass.execute(
            views,
            planes,
            body_q=body_q,
            clear=values,
            clip=self._clip,
            camera_transforms=camera_transforms,
            **masks,
            **then,
        )
        convert(views, steps, scene.device)

    def _check(self, out: Mapping[str, wp.array], views: ViewTable) -> None:
        check_planes(views, [plane_of(name) for name in out])
        shape = (views.count, self.height, self.width)
        for name, array in out.items():
            dtype = self._pixel_type(name)
            if not isinstance(array, wp.array) or array.shape != shape or array.dtype is not dtype or array.device != self.scene.device:
                given = f"{array.dtype.__name__} {array.shape} on {array.device}" if isinstance(array, wp.array) else type(array).__name__
                raise ArgumentError(
                    f"out[{name!r}] is {given}; expected wp.array[{dtype.__name__}] {shape} on {self.scene.device} (see allocate())"
                )
            if not array.is_contiguous:
                raise ArgumentError(f"out[{name!r}] is not contiguous")
        if len({array.ptr for array in out.values()}) < len(out):
            raise ArgumentError("one array is given for several planes: each takes one of its own")

    def _pixel_type(self, name: str) -> type:
        """Warp type of one pixel of an AOV or data type. Raises ArgumentError that names those there are."""
        if not self._views.frames.has_lenses:
            check_plane_of_rays(plane_of(name))
        try:
            return array_type(self.scene.tables, plane_of(name))
        except ArgumentError as error:
            if isinstance(name, str) and primvar_name(name):
                raise
            raise ArgumentError(f"{error}; data types: {', '.join(DATA_TYPES)}") from None

    def compute_view_transforms(self, state: State | None = None, out: wp.array | None = None) -> wp.array:
        """(view_count,) transformf: pose of each view in its world's frame: USD camera axes, or those of the site. Raises Error where
        every call places the views."""
        scene = self.scene
        self._views.follow()
        if self._views.is_unbound:
            raise Error("the views of an unbound sensor stand where update(camera_transforms=) puts them")
        state = state if state is not None else scene.state()
        check_state("state", state, scene)
        check_inputs(scene.tables, self.views, body_q=state.body_q, camera_transforms=out)
        out = wp.empty(self.view_count, dtype=wp.transformf, device=scene.device) if out is None else out
        columns = self._views.frames.table.columns
        self.views.compute_transforms(columns, scene.tables.world_columns, state.body_q, camera_transforms=None, out=out)
        return out

    def set_world_poses(
        self,
        positions: object,
        orientations_wxyz: object = None,
        *,
        state: State | None = None,
        views: Sequence[int] | None = None,
        convention: str = "opengl",
    ) -> None:
        """Put cameras at poses in the frames of their views' worlds, as `compute_view_transforms` reports them: of a camera that a body
        carries, the mount is written with which it stands there in ``state`` (None: as on the stage). It holds from the next `update` on.

        ``positions`` (n, 3) [m] and ``orientations_wxyz`` (n, 4), or in their place one wp.array[transformf] (n,) on the device, of
        ``views`` (numbers, None: all). ``convention``: axes of the orientations: "opengl" (looks down -Z, +Y up, as
        `compute_view_transforms` reports), "ros" or "world".
        Raises ArgumentError for other shapes, views that are not there, and views of one global camera of which several are given.
        """
        scene = self.scene
        if not self._views.frames.has_lenses:
            raise NotSupported("set_world_poses is of cameras; move sites on the stage, or give update(camera_transforms=)")
        self._views.follow()
        chosen = list(range(self.view_count)) if views is None else list(views)
        wrong = [view for view in chosen if not isinstance(view, int | np.integer) or not 0 <= view < self.view_count]
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
        unknown = [name for name in tiles if name not in out]
        if unknown:
            raise ArgumentError(f"into names {', '.join(unknown)}, which are not among the images: {', '.join(out)}")
        self._check(out, self.views)
        for name, array in out.items():
            if name not in tiles:
                tiles[name] = wp.zeros(shape, dtype=array.dtype, device=array.device)
            there = tiles[name]
            fits = isinstance(there, wp.array) and (there.shape, there.dtype, there.device) == (shape, array.dtype, array.device)
            if not fits or not there.is_contiguous:
                raise ArgumentError(f"into[{name!r}] is no contiguous wp.array {shape} of the same pixels on {array.device}")
            lay_tiles(array, tiles[name], columns)
        return tiles

    def set_camera_rays(self, rays: object, cameras: Selection = None) -> None:
        """Look along ``rays`` in place of a lens, from the next `update` on.

        ``rays``: (H, W, S, 2) vec3f shared by all that ``cameras`` names (None: all), or (N, H, W, S, 2), a bundle for each of these in the
        order of their rows. As NumPy arrays (H, W, S, 2, 3) or (N, H, W, S, 2, 3); as wp.arrays, which have four dimensions at most,
        (H, W, S, 2) or (N * H, W, S, 2). [..., 0] is a ray's origin [m], [..., 1] its direction, in the frame of the sensor: a camera looks
        down -Z, +Y up; that of a site is as it stands. Directions become unit; a zero one means no ray: clear values in every plane. S is
        ``samples``: the first ray of a pixel is that of all planes but colour, which is the mean of all. ``cameras``: pattern, compiled
        expression, numbers or a list of these, over the labels of the sensor's own cameras or sites.

        A second call for the same with the same shapes copies in place on the device: nothing is allocated, addresses stay, and it can be
        part of a CUDA graph. Raises ArgumentError for other shapes, types and devices, and for rays in host memory that are not finite; on
        the device these are no rays.
        """
        self._views.set_rays(rays, cameras)

    def sync_camera_rays(self) -> None:
        """Nothing to do: ANALYTIC rays follow the camera columns at every update."""


__all__ = ["RayMode", "SensorCamera"]
