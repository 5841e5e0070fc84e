"""views.rows: camera rows x worlds -> one view row per image, computed on the device. Reads tables, knows no USD."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import warp as wp

from hdwarp.stage.spec import ImageSpec
from hdwarp.tables.cameras import LENSES, CameraColumns, CameraTable
from hdwarp.tables.mounts import MountTable
from hdwarp.tables.structs import (
    GIVEN,
    NOT_VISUAL,
    ONE_SIDED,
    SCATTERED,
    SINGLE_SIDED,
    TILE_HEIGHT,
    TILE_WIDTH,
    ClipPlane,
    ViewRow,
    WorldColumns,
)
from hdwarp.views.conform import CONFORM_POLICIES
from hdwarp.views.given_rays import GivenRays
from hdwarp.views.lens_funcs import LensRays, conform_aperture, orthographic_rays, pinhole_rays, place_rays, sensor_axes

ORTHOGRAPHIC = wp.constant(LENSES.index("orthographic"))
AS_USUAL, ALONG_RAY, PLANAR = wp.constant(0), wp.constant(1), wp.constant(2)  # planar for the lenses there are, along given rays
_CLIP_MODES = {None: 0, True: 1, False: 2}


@wp.struct
class ViewSpec:
    """What is known of a view before it is posed: which camera, in which world, on which pixels."""

    camera: wp.int32
    world: wp.int32
    image_width: wp.int32
    image_height: wp.int32
    pixel_aspect_ratio: wp.float32
    policy: wp.int32  # index into views.conform.CONFORM_POLICIES
    x0: wp.int32
    y0: wp.int32
    width: wp.int32
    height: wp.int32
    first_tile: wp.int32
    record: wp.int32
    output: wp.int32
    radial: wp.int32  # clip ranges: AS_USUAL, ALONG_RAY, PLANAR
    scene_unit: wp.float32
    hides: wp.int32  # see ViewRow
    from_global: wp.int32  # 1: the camera's own frame is the global one


@wp.func
def floor_div(a: wp.int32, b: wp.int32) -> wp.int32:
    """a / b rounded down, also for negative a (overscan)."""
    q = a // b
    if q * b > a:
        q -= 1
    return q


@wp.func
def widen(v: wp.vec2f) -> wp.vec2d:
    return wp.vec2d(wp.float64(v[0]), wp.float64(v[1]))


@wp.func
def narrow(v: wp.vec3d) -> wp.vec3f:
    return wp.vec3f(wp.float32(v[0]), wp.float32(v[1]), wp.float32(v[2]))


@wp.func
def rotation_of(pose: wp.transformd) -> wp.mat33d:
    return wp.quat_to_matrix(wp.normalize(wp.transform_get_rotation(pose)))


@wp.func
def widen_transform(pose: wp.transformf) -> wp.transformd:
    p, q = wp.transform_get_translation(pose), wp.transform_get_rotation(pose)
    return wp.transformd(
        wp.vec3d(wp.float64(p[0]), wp.float64(p[1]), wp.float64(p[2])),
        wp.normalize(wp.quatd(wp.float64(q[0]), wp.float64(q[1]), wp.float64(q[2]), wp.float64(q[3]))),
    )


@wp.func
def camera_pose(
    cameras: CameraColumns,
    worlds: WorldColumns,
    spec: ViewSpec,
    world: wp.int32,
    view: wp.int32,
    body_q: wp.array[wp.transformf],
    overrides: wp.array[wp.transformf],
) -> wp.transformd:
    """Pose of a view in its world: given for this call, or carried by the camera's body, or fixed in the world or on the stage."""
    pose = cameras.transform[spec.camera]
    body = cameras.body[spec.camera]
    if overrides.shape[0] > 0:
        pose = widen_transform(overrides[view])
    else:
        if body >= 0:
            pose = wp.transform_multiply(widen_transform(body_q[body]), pose)
        if spec.from_global != 0 and world >= 0 and world < worlds.count:
            pose = wp.transformd(wp.transform_get_translation(pose) - worlds.global_offset[world], wp.transform_get_rotation(pose))
    return pose


@wp.func
def clip_plane(plane: wp.vec4f, turn: wp.mat33d, row: ViewRow) -> ClipPlane:
    """A plane of the camera's space along the rays of a view, in double: far from the origin it must not matter where the eye is."""
    normal = turn * wp.vec3d(wp.float64(plane[0]), wp.float64(plane[1]), wp.float64(plane[2]))
    out = ClipPlane()
    distance = wp.float64(plane[3]) + wp.dot(normal, row.origin - row.eye)
    out.offset = wp.vec3d(distance, wp.dot(normal, row.origin_dx), wp.dot(normal, row.origin_dy))
    out.rate = wp.vec3d(wp.dot(normal, row.direction), wp.dot(normal, row.direction_dx), wp.dot(normal, row.direction_dy))
    return out


@wp.kernel(enable_backward=False)
def _view_transforms(
    cameras: CameraColumns,
    worlds: WorldColumns,
    specs: wp.array[ViewSpec],
    body_q: wp.array[wp.transformf],
    overrides: wp.array[wp.transformf],
    out: wp.array[wp.transformf],
):
    view = wp.tid()
    pose = camera_pose(cameras, worlds, specs[view], specs[view].world, view, body_q, overrides)
    p, q = wp.transform_get_translation(pose), wp.transform_get_rotation(pose)
    out[view] = wp.transformf(narrow(p), wp.quatf(wp.float32(q[0]), wp.float32(q[1]), wp.float32(q[2]), wp.float32(q[3])))


@wp.kernel(enable_backward=False)
def _view_rows(
    cameras: CameraColumns,
    worlds: WorldColumns,
    specs: wp.array[ViewSpec],
    body_q: wp.array[wp.transformf],
    overrides: wp.array[wp.transformf],
    view_mask: wp.array[wp.bool],
    world_mask: wp.array[wp.bool],
    world_indices: wp.array[wp.int32],
    clip: wp.array[wp.vec2f],
    shift: wp.vec2d,
    culls: wp.int32,
    ray_bundles: wp.array[wp.int32],
    scattered: wp.array[wp.int32],
    bundle_size: wp.int32,
    sample_start: wp.int32,
    out: wp.array[ViewRow],
    out_planes: wp.array[ClipPlane],
):
    """Coefficients of every view. ``shift``: offset of the sample from the pixel's centre, in pixels; ``clip``: (1,) override or empty;
    ``culls``: see ViewRow. ``ray_bundles``: (views,) bundle of given rays of each view, -1 none, or empty; ``bundle_size``: rays a bundle
    has, of which those of this sample begin at ``sample_start``."""
    view = wp.tid()
    spec = specs[view]
    c = spec.camera
    world = spec.world
    if world_indices.shape[0] > 0:
        world = world_indices[view]
    pose = camera_pose(cameras, worlds, spec, world, view, body_q, overrides)
    turn = rotation_of(pose)
    axes = wp.mat33d()
    for i in range(3):
        for j in range(3):
            axes[i, j] = wp.float64(cameras.axes[c][i, j])
    size = wp.vec2d(wp.float64(spec.image_width), wp.float64(spec.image_height))
    aspect = wp.float64(spec.pixel_aspect_ratio) * size[0] / size[1]
    bundle = wp.int32(-1)
    if ray_bundles.shape[0] > 0:
        bundle = ray_bundles[view]
    row = ViewRow()
    row.orthographic = 0
    rays = LensRays()
    if bundle >= 0:
        row.rays = wp.where(scattered[bundle] != 0, SCATTERED, GIVEN)
        row.first_ray = bundle * bundle_size + sample_start
        rays = sensor_axes()
        shift = wp.vec2d()
    else:
        aperture = conform_aperture(widen(cameras.aperture[c]), spec.policy, aspect)
        offset = widen(cameras.aperture_offset[c])
        rays = pinhole_rays(wp.float64(cameras.focal_length[c]), aperture, offset, size)
        if cameras.lens[c] == ORTHOGRAPHIC:
            row.orthographic = 1
            rays = orthographic_rays(aperture, offset, size)
    rays = place_rays(rays, wp.transform_get_translation(pose), turn, axes)
    row.eye = wp.transform_get_translation(pose)
    row.origin = rays.origin + rays.origin_dx * shift[0] + rays.origin_dy * shift[1]
    row.origin_dx = rays.origin_dx
    row.origin_dy = rays.origin_dy
    row.direction = rays.direction + rays.direction_dx * shift[0] + rays.direction_dy * shift[1]
    row.direction_dx = rays.direction_dx
    row.direction_dy = rays.direction_dy
    row.forward = wp.vec3f(-wp.float32(turn[0, 2]), -wp.float32(turn[1, 2]), -wp.float32(turn[2, 2]))
    row.right = wp.vec3f(wp.float32(turn[0, 0]), wp.float32(turn[1, 0]), wp.float32(turn[2, 0]))
    row.up = wp.vec3f(wp.float32(turn[0, 1]), wp.float32(turn[1, 1]), wp.float32(turn[2, 1]))
    row.back = wp.vec3f(wp.float32(turn[0, 2]), wp.float32(turn[1, 2]), wp.float32(turn[2, 2]))
    if bundle >= 0:
        row.origin_dx = wp.vec3d(-turn[0, 2], -turn[1, 2], -turn[2, 2])
    clipping = cameras.clipping_range[c]
    if clip.shape[0] > 0:
        clipping = clip[0]
    row.near = clipping[0]
    row.far = clipping[1]
    row.radial = 0
    if spec.radial == ALONG_RAY or (bundle >= 0 and spec.radial == AS_USUAL):
        row.radial = 1
    row.plane_count = wp.clamp(cameras.clipping_plane_count[c], 0, cameras.plane_width)
    row.first_plane = cameras.plane_width * view
    for i in range(row.plane_count):
        out_planes[row.first_plane + i] = clip_plane(cameras.clipping_planes[cameras.plane_width * c + i], turn, row)
    if bundle >= 0 and (row.radial == 0 or row.plane_count > 0):
        row.rays = SCATTERED  # the ranges of its rays differ
    row.exposure = cameras.exposure[c]
    row.scene_unit = spec.scene_unit
    row.world = world
    row.root = -1
    row.global_root = -1
    if world >= 0 and world < worlds.count:
        row.root = worlds.root[world]
        row.global_root = worlds.global_root[0]
        row.global_offset = worlds.global_offset[world]
    row.x0 = spec.x0
    row.y0 = spec.y0
    row.width = spec.width
    row.height = spec.height
    row.tile_x0 = floor_div(spec.x0, TILE_WIDTH)
    row.tile_y0 = floor_div(spec.y0, TILE_HEIGHT)
    row.tiles_x = floor_div(spec.x0 + spec.width - 1, TILE_WIDTH) - row.tile_x0 + 1
    row.tiles_y = floor_div(spec.y0 + spec.height - 1, TILE_HEIGHT) - row.tile_y0 + 1
    row.first_tile = spec.first_tile
    row.record = spec.record
    row.output = spec.output
    row.hides = spec.hides
    row.culls = culls
    masked = wp.int32(0)
    if view_mask.shape[0] > 0:
        if not view_mask[view]:
            masked = 1
    row.masked = masked
    if world_mask.shape[0] > 0:
        row.masked = 1
        if world >= 0 and world < world_mask.shape[0]:
            row.masked = wp.where(world_mask[world], masked, 1)
    out[view] = row


@dataclass(frozen=True, slots=True)
class View:
    """One image to make: a camera row, in a world, on the pixels of ``image``."""

    camera: int
    world: int
    image: ImageSpec


class ViewTable:
    """The views of one sensor or render: their specs, device rows and places in the visibility record and the outputs."""

    def __init__(
        self,
        views: Sequence[View],
        *,
        scene_unit: float,
        radial: bool | None,
        device: wp.Device,
        cameras: CameraTable | MountTable | None = None,
        hides: int | Sequence[int] = int(NOT_VISUAL),
        rays: GivenRays | None = None,
        ray_bundles: Sequence[int] = (),
    ) -> None:
        """``scene_unit``: scene units per metre. All views have data windows of one size. ``radial``: clip ranges count along the ray;
        None: those of given rays do. ``cameras``: the table whose rows the views name; None: rows of anything. ``hides``: flags of
        instances that are not there, for all views or a number each. ``rays``, ``ray_bundles``: rays in place of lenses, and the bundle of
        each view, -1: its camera's lens; their shape is that of the images, which begin at pixel (0, 0).
        """
        self.views = list(views)
        self.cameras = cameras
        self.cameras_version = None if cameras is None else cameras.version
        self.device = device
        self.count = len(self.views)
        self.camera_rows = np.array([view.camera for view in self.views], np.int64)
        self.width = self.views[0].image.width if self.views else 0
        self.height = self.views[0].image.height if self.views else 0
        specs = np.zeros(max(self.count, 1), dtype=ViewSpec.numpy_dtype())
        tiles = record = 0
        self.bands: list[tuple[int, int]] = []
        """Where each row of tiles of each view begins: (tiles, rows of output pixels) of all views before it; in the end those of all."""
        images: dict[int, tuple] = {}  # by identity: what all views of one image have in common
        for i, view in enumerate(self.views):
            if id(view.image) not in images:
                images[id(view.image)] = _of_image(view.image)
            shared, columns, above = images[id(view.image)]
            specs[i] = (
                view.camera,
                view.world,
                *shared,
                tiles,
                record,
                i * self.width * self.height,
                _CLIP_MODES[radial],
                scene_unit,
                0,
                0,
            )
            for row, lines in enumerate(above):
                self.bands.append((tiles + row * columns, i * self.height + lines))
            tiles += columns * len(above)
            record += columns * len(above) * TILE_WIDTH * TILE_HEIGHT
        specs["hides"][: self.count] = hides
        if cameras is not None:
            specs["from_global"][: self.count] = cameras.world[self.camera_rows] < 0
        self.bands.append((tiles, self.count * self.height))
        self.tile_count, self.record_size = tiles, record
        self.specs = wp.array(specs, dtype=ViewSpec, device=device)
        self.rows = wp.zeros(max(self.count, 1), dtype=ViewRow, device=device)
        plane_width = 0 if cameras is None else cameras.plane_width
        self.planes = wp.zeros(max(self.count * plane_width, 1), dtype=ClipPlane, device=device)
        self.flags: wp.array | None = None  # of instances: a sensor's own in place of the table's
        self.previous_rows: wp.array | None = None  # the views as they were a frame ago, where `keep_previous` asked for them
        self._no_transforms = wp.zeros(0, dtype=wp.transformf, device=device)
        self._no_mask = wp.zeros(0, dtype=wp.bool, device=device)
        self._no_worlds = wp.zeros(0, dtype=wp.int32, device=device)
        self._no_clip = wp.zeros(0, dtype=wp.vec2f, device=device)
        self.rays = rays
        self.has_lenses = rays is None or -1 in ray_bundles  # whether any view is not of given rays
        self._ray_bundles = self._no_worlds if rays is None else wp.array(ray_bundles, dtype=wp.int32, device=device)

    @property
    def is_current(self) -> bool:
        """Whether the cameras are still those that the views were made of."""
        return self.cameras is None or self.cameras_version == self.cameras.version

    @property
    def lens_cameras(self) -> CameraTable | None:
        """The table of cameras whose rows the views name; None: of frames without lenses, or of anything."""
        return self.cameras if isinstance(self.cameras, CameraTable) else None

    def update(
        self,
        cameras: CameraColumns,
        worlds: WorldColumns,
        body_q: wp.array,
        *,
        camera_transforms: wp.array | None = None,
        view_mask: wp.array | None = None,
        world_mask: wp.array | None = None,
        world_indices: wp.array | None = None,
        clip: wp.array | None = None,
        shift: tuple[float, float] = (0.0, 0.0),
        sample: int = 0,
        cull: bool = False,
    ) -> None:
        """Compute the view rows on the device from the columns as they are now. ``body_q``: (bodies,) transformf. ``shift``: of the rays of
        lenses from the pixels' centres; ``sample``: which of the given rays."""
        masks = [self._no_mask if mask is None else mask for mask in (view_mask, world_mask)]
        masks.append(self._no_worlds if world_indices is None else world_indices)
        clip = self._no_clip if clip is None else clip
        how = [*masks, clip, wp.vec2d(*shift), int(ONE_SIDED | SINGLE_SIDED if cull else ONE_SIDED)]
        self._launch(cameras, worlds, body_q, camera_transforms, how, self.rows, sample)

    def keep_previous(self) -> wp.array:
        """`previous_rows`, made at the first call."""
        if self.previous_rows is None:
            self.previous_rows = wp.zeros(max(self.count, 1), dtype=ViewRow, device=self.device)
        return self.previous_rows

    def update_previous(
        self, cameras: CameraColumns, worlds: WorldColumns, body_q: wp.array, *, camera_transforms: wp.array | None = None
    ) -> None:
        """`previous_rows` from columns of the frame before: rays of the pixels' centres; clip ranges and masks mean nothing there."""
        plain = [self._no_mask, self._no_mask, self._no_worlds, self._no_clip, wp.vec2d(), 0]
        self._launch(cameras, worlds, body_q, camera_transforms, plain, self.previous_rows)

    def _launch(
        self,
        cameras: CameraColumns,
        worlds: WorldColumns,
        body_q: wp.array,
        overrides: wp.array | None,
        how: list[object],
        rows: wp.array,
        sample: int = 0,
    ) -> None:
        if self.count == 0:
            return
        if self.count * cameras.plane_width > len(self.planes):
            self.planes = wp.zeros(self.count * cameras.plane_width, dtype=ClipPlane, device=self.device)
        inputs = [cameras, worlds, self.specs, body_q, self._no_transforms if overrides is None else overrides, *how]
        inputs += [self._ray_bundles, self._no_worlds, 0, 0]
        if self.rays is not None:
            inputs[-3:] = [self.rays.scattered, self.rays.bundle_size, sample * self.rays.pixel_count]
        wp.launch(_view_rows, dim=self.count, inputs=inputs, outputs=[rows, self.planes], device=self.device)

    def compute_transforms(
        self, cameras: CameraColumns, worlds: WorldColumns, body_q: wp.array, *, camera_transforms: wp.array | None, out: wp.array
    ) -> None:
        """(count,) transformf: pose of each view in its world's frame."""
        overrides = self._no_transforms if camera_transforms is None else camera_transforms
        if self.count:
            inputs = [cameras, worlds, self.specs, body_q, overrides]
            wp.launch(_view_transforms, dim=self.count, inputs=inputs, outputs=[out], device=self.device)


def _of_image(image: ImageSpec) -> tuple[tuple, int, list[int]]:
    """(fields of the view's spec from `image_width` to `height`, tiles a row, output lines above each row of tiles)."""
    columns, rows = _tiles(image.x0, image.width, TILE_WIDTH), _tiles(image.y0, image.height, TILE_HEIGHT)
    policy = CONFORM_POLICIES.index(image.aspect_ratio_conform_policy)
    shared = image.image_width, image.image_height, image.pixel_aspect_ratio, policy, image.x0, image.y0, image.width, image.height
    above = image.y0 - image.y0 // TILE_HEIGHT * TILE_HEIGHT  # lines of the first tiles that are not in the image
    return shared, columns, [max(row * TILE_HEIGHT - above, 0) for row in range(rows)]


def _tiles(start: int, size: int, tile: int) -> int:
    return (start + size - 1) // tile - start // tile + 1
