"""delegate.render_pass: Hydra's render pass: views in, AOV buffers out. One trace a sample, every plane from the same record."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace

import numpy as np
import warp as wp

from hdwarp.aovs.user_aovs import function_of
from hdwarp.delegate.aov import AovBindings, Target, bound_targets
from hdwarp.delegate.progress import Interests, edits, moved_rows, what_is_drawn, what_is_seen
from hdwarp.delegate.render_param import RenderParam
from hdwarp.delegate.render_plan import RenderPlan, ViewRecord
from hdwarp.delegate.render_settings import RenderSettings
from hdwarp.delegate.sampling import sample_grid
from hdwarp.errors import ArgumentError, Error, NotSupported
from hdwarp.tables.scene_tables import SceneTables
from hdwarp.views.rows import ViewTable

MOST_PLANS = 4  # kept at a time: enough for buffers in turns; more would only hold memory
_CENTRE = (0.0, 0.0)
_NOTHING = Interests(np.zeros(0, np.int64))


class RenderPass:
    """Renders any views into any buffers: `execute`. It keeps what it made for the last few (views, buffers, clear values), so that calls
    with the same ones allocate nothing, wait for nothing and can be captured in a CUDA graph (progressive calls do wait).

    `RenderDelegate.create_render_pass` makes one.
    """

    def __init__(self, param: RenderParam, *, samples: int = 1, settings: RenderSettings | None = None) -> None:
        """``samples``: samples a pixel of planes that average, a square number. ``settings``: None: those of the delegate, as they are at
        each call. Raises ArgumentError for a number of samples that is no square."""
        if settings is not None and not isinstance(settings, RenderSettings):
            raise ArgumentError(f"settings={settings!r}: expected hdwarp.RenderSettings(...)")
        self.param = param
        self._settings = settings
        self._grid = sample_grid(samples)
        self._plans: OrderedDict[Hashable, RenderPlan] = OrderedDict()  # the last used last
        self._layout_version = -1
        self._moved: tuple[int, np.ndarray] = (-1, np.zeros(0, np.int64))  # (picture version, rows that bodies carry)
        self._stage_poses: tuple[int, wp.array | None] = (-1, None)
        self._converged = False
        self._interests = _NOTHING  # of the picture made last
        self._made_with: tuple | None = None

    @property
    def samples(self) -> int:
        """Samples a pixel of planes that average."""
        return len(self._grid)

    @property
    def settings(self) -> RenderSettings:
        """The pass's own settings, or the delegate's. What they leave open is as sensors have it: `fast`."""
        return self.param.settings if self._settings is None else self._settings

    @property
    def is_converged(self) -> bool:
        """Whether the last `execute` left a finished picture, and what is drawn, the cameras rendered, settings and restarts are still
        those that it was made with. What kernels wrote meanwhile, or other arguments would change, only `execute` sees; and only it sees
        that a camera was edited and looks the same, or that bodies are put back to where they were posed."""
        return self._converged and self._made_with == self._circumstances(self._interests)

    def _circumstances(self, interests: Interests) -> tuple:
        return edits(self.param.tables, interests), self.param.restart_count, self.settings

    def restart(self) -> None:
        """Progressive pictures begin anew at the next call: for changes that `execute` cannot see."""
        self._converged = False
        for plan in self._plans.values():
            plan.progress.restart()

    def execute(
        self,
        views: ViewTable,
        aov_bindings: AovBindings,
        *,
        body_q: wp.array | None = None,
        clear: Mapping[str, object] | None = None,
        clip: wp.array | None = None,
        camera_transforms: wp.array | None = None,
        view_mask: wp.array | None = None,
        world_mask: wp.array | None = None,
        world_indices: wp.array | None = None,
        previous_body_q: wp.array | None = None,
        previous_camera_transforms: wp.array | None = None,
        progressive: bool = False,
    ) -> None:
        """Fill the bound buffers.

        ``aov_bindings``: AOV name -> RenderBuffer or contiguous wp.array (view, H, W) of the AOV's pixel type; or a list of AovBinding.
        ``body_q``: (bodies,) transformf, poses of the bodies that carry cameras; None: as on the stage (what bodies draw is posed by
        `SceneTables.pose` before). ``clear``: AOV name -> value of pixels that see nothing. ``clip``: (1,) vec2f near and far [m] for all
        views. ``camera_transforms``: (view,) transformf, poses in the world's frame for this call. ``view_mask`` (view,) and
        ``world_mask`` (world,) bool: views that are off keep their pixels. ``world_indices`` (view,) int32: worlds that are seen in this
        call, by poses that stay the same; one that does not exist is empty.

        For `motion`: ``previous_body_q`` (bodies,) transformf, where bodies and what they carry were in the frame before; None: where
        they are, or with no ``body_q`` either, where the stage had them. ``previous_camera_transforms`` (view,) transformf, where the
        views were; None: ``camera_transforms`` where given, else where the stage or their bodies had them. What is not named here was as
        the scene before the last sync had it (`SceneTables.keep_previous`, which the first call with `motion` turns on).

        ``progressive``: add one sample a pixel, for `is_converged` to tell whether that was the last; planes that do not average are done
        at the first call. After k calls averaging planes hold the mean of k samples, after the last the same bits as without
        ``progressive``; further calls do nothing. It starts over when what is drawn (instances, meshes, primvars, materials bound to them),
        the settings, the views (poses, lenses, clip ranges, masks) or the poses of bodies that carry anything drawn have changed, with
        other buffers or clear values, and after `restart`. It goes on when other cameras, materials that nothing drawn is bound to, sites
        and other bodies change; materials and sites may come and go. It starts over without need when what changes is out of sight, an
        input of a bound material that shading does not read, an id or a primvar that no plane shows (materialId excepted), when views that
        masks turn off change, and when bodies that come or go give others, which carry something, another row. What others write into
        the buffers meanwhile, and what is given as previous, is not seen.

        Raises ArgumentError for arrays of another shape, type or device, Error for buffers without memory and for views made before
        cameras came or went, NotSupported for planes that later versions have.
        """
        self._converged = False  # until this call is through
        if not isinstance(views, ViewTable):
            raise ArgumentError(f"views is a {type(views).__name__}; expected what RenderDelegate.create_views gives")
        targets, values = bound_targets(aov_bindings, clear)
        if views.count == 0 or not targets:
            self._converged, self._interests, self._made_with = True, _NOTHING, self._circumstances(_NOTHING)
            return
        if views.lens_cameras is not None and views.lens_cameras is not self.param.tables.cameras:
            raise ArgumentError("these views are of another delegate's cameras; make views of this one's with create_views")
        if not views.is_current:
            raise Error("cameras were added to the scene or removed since these views were made; make them anew")
        check_inputs(
            self.param.tables,
            views,
            body_q=body_q,
            camera_transforms=camera_transforms,
            view_mask=view_mask,
            world_mask=world_mask,
            world_indices=world_indices,
            previous_body_q=previous_body_q,
            previous_camera_transforms=previous_camera_transforms,
        )
        check_planes(views, targets)
        plan = self._plan(views, targets, values)
        if plan.needs_previous and not (progressive and (self.param.is_paused or self.param.is_stopped)):
            then = camera_transforms if previous_camera_transforms is None else previous_camera_transforms
            self._place_previous(views, body_q, previous_body_q, then)
        body_q = self._poses_of_stage() if body_q is None else body_q

        cameras = self.param.tables.cameras if views.cameras is None else views.cameras

        def place(shift: tuple[float, float], sample: int = 0) -> None:
            views.update(
                cameras.columns,
                self.param.tables.world_columns,
                body_q,
                camera_transforms=camera_transforms,
                view_mask=view_mask,
                world_mask=world_mask,
                world_indices=world_indices,
                clip=clip,
                shift=shift,
                sample=sample,
                cull=self.settings.cull,
            )

        if progressive and (self.param.is_paused or self.param.is_stopped):
            self._interests, self._made_with = plan.interests, plan.made_with
            self._converged = plan.progress.count == plan.sample_count and plan.made_with == self._circumstances(plan.interests)
            return
        for other in self._plans.values():
            if other is plan and progressive:
                continue
            if other.addresses & plan.addresses:  # what it has begun is about to be written over
                other.progress.restart()
        done = self._add_sample(plan, place) if progressive else self._render(plan, place, 0, plan.sample_count)
        plan.made_with = self._circumstances(plan.interests)
        self._converged, self._interests, self._made_with = done == plan.sample_count, plan.interests, plan.made_with
        self.param.completed_samples, self.param.sample_count = done, plan.sample_count
        for target in targets.values():
            if target.buffer is not None:
                target.buffer.set_converged(self._converged or not target.averaged)

    def _place_previous(
        self, views: ViewTable, body_q: wp.array | None, previous_body_q: wp.array | None, camera_transforms: wp.array | None
    ) -> None:
        """Bodies and views as they were in the frame before."""
        tables = self.param.tables
        follow_bodies = body_q is not None or previous_body_q is not None
        if previous_body_q is not None and body_q is None:
            body_q = self._poses_of_stage()
        tables.pose_previous(body_q, previous_body_q)
        tables.previous.choose_cameras(tables.cameras, follow_bodies=follow_bodies)
        poses = previous_body_q if previous_body_q is not None else body_q if body_q is not None else self._poses_of_stage()
        views.update_previous(tables.previous.cameras, tables.world_columns, poses, camera_transforms=camera_transforms)

    def _render(self, plan: RenderPlan, place: Callable[..., None], begin: int, end: int) -> int:
        """Samples ``begin`` to ``end`` - 1 of a picture; with the first one the planes that do not average. Returns ``end``."""
        if begin == 0 and plan.truth is not None:
            place(_CENTRE)
            plan.truth.look()
        if plan.samples is not None:
            for i in range(begin, end):
                if i == 0 and self._grid[0] == _CENTRE and plan.truth is not None:
                    plan.colour.update(i)  # the record is still that of the pixels' centres
                else:
                    place(self._grid[i], i)
                    plan.colour.look(i)
                plan.samples.add(first=i == 0)
            plan.samples.finish(end)
        return end

    def _add_sample(self, plan: RenderPlan, place: Callable[..., None]) -> int:
        """One more sample of the picture that the plan has begun, or the first of a new one. Returns how many it has."""
        place(_CENTRE)
        param, progress = self.param, plan.progress
        picture = (
            what_is_drawn(param.tables, plan.interests),
            param.restart_count,
            self.settings,
            what_is_seen(plan.record.views, param.tables, self._moved_rows(), plan.interests.lights),
        )
        progress.follow(picture)
        count = progress.count
        if count < plan.sample_count:
            count = self._render(plan, place, count, count + 1)
        progress.done(picture, count)
        return count

    def _plan(self, views: ViewTable, targets: dict[str, Target], clear: dict[str, object]) -> RenderPlan:
        """The plan for these views, buffers and clear values: one that is kept, or a new one."""
        param = self.param
        if param.layout_version != self._layout_version:
            self._forget_tables()
            self._layout_version = param.layout_version
        buffers = tuple((name, t.array.ptr, t.array.shape, t.array.dtype, t.averaged) for name, t in targets.items())
        functions = tuple(function.key() for name in targets if (function := function_of(name)) is not None)
        settings = self.settings.decided("fast")
        look = replace(settings, cull=False)  # that is a column of views
        # As text: NaN equals itself there.
        values = tuple((name, repr(np.asarray(value).tolist())) for name, value in sorted(clear.items()))
        key = (id(views), buffers, functions, look, values)
        plan = self._plans.pop(key, None)
        if plan is None:
            self._check_targets(views, targets)
            record = next((kept.record for kept in self._plans.values() if kept.record.views is views), None)
            record = ViewRecord(views, param.tables) if record is None else record
            record.refresh(param.scene_version)
            plan = RenderPlan(record, targets, clear, len(self._grid), settings)
            while len(self._plans) >= MOST_PLANS:
                self._plans.popitem(last=False)
        plan.follow_tables()
        self._plans[key] = plan
        plan.record.refresh(param.scene_version)
        return plan

    def _forget_tables(self) -> None:
        """No plan holds arrays that the tables have replaced, and none stays whose views are refused from now on."""
        for key, plan in list(self._plans.items()):
            if plan.record.views.is_current:
                plan.forget_tables()
            else:
                del self._plans[key]

    def _check_targets(self, views: ViewTable, targets: dict[str, Target]) -> None:
        """Every buffer has the pixels of all views: kernels write without looking."""
        shape = (views.count, views.height, views.width)
        for name, target in targets.items():
            array = target.array
            if array.device != self.param.device:
                raise ArgumentError(f"{name} is bound to an array on {array.device}; the scene is on {self.param.device}")
            if not array.is_contiguous:
                raise ArgumentError(f"{name} is bound to an array that is not contiguous")
            if array.shape != shape and not (views.count == 1 and array.shape == shape[1:]):
                raise ArgumentError(f"{name} is bound to an array of shape {array.shape}; the views need {shape} (view, H, W)")

    def _moved_rows(self) -> np.ndarray:
        version = self.param.tables.picture_version
        if self._moved[0] != version:
            self._moved = (version, moved_rows(self.param.tables))
        return self._moved[1]

    def _poses_of_stage(self) -> wp.array:
        """(bodies,) transformf as on the stage, made once a change of the scene."""
        if self._stage_poses[0] != self.param.scene_version:
            pose, device = self.param.tables.bodies.pose, self.param.device
            poses = wp.array(pose, dtype=wp.transformf, device=device) if len(pose) else wp.zeros(0, wp.transformf, device=device)
            self._stage_poses = (self.param.scene_version, poses)
        return self._stage_poses[1]


def check_planes(views: ViewTable, names: Iterable[str]) -> None:
    """Raise for planes that views with given rays cannot have: ArgumentError for `depth`, NotSupported for `motion`."""
    if views.rays is None:
        return
    for name in names:
        check_plane_of_rays(name)


def check_plane_of_rays(name: str) -> None:
    """Raise for a plane that rays given one by one do not have."""
    if name == "depth":
        raise ArgumentError(
            "depth is clip-space depth, which only lenses with planar clip ranges have, not rays of one's own: use distance_to_camera,"
            " distance_to_image_plane or cameraDepth"
        )
    if name == "motion":
        raise NotSupported("motion is not supported yet for rays of one's own: where a point was in the image before is not known")


def check_inputs(
    tables: SceneTables,
    views: ViewTable,
    *,
    body_q: wp.array | None = None,
    camera_transforms: wp.array | None = None,
    view_mask: wp.array | None = None,
    world_mask: wp.array | None = None,
    world_indices: wp.array | None = None,
    previous_body_q: wp.array | None = None,
    previous_camera_transforms: wp.array | None = None,
) -> None:
    """Raise ArgumentError for arrays that kernels would read beyond their end, or take for something else."""
    for name, array, count, dtype in (
        ("body_q", body_q, len(tables.bodies), wp.transformf),
        ("camera_transforms", camera_transforms, views.count, wp.transformf),
        ("view_mask", view_mask, views.count, wp.bool),
        ("world_mask", world_mask, tables.worlds.count, wp.bool),
        ("world_indices", world_indices, views.count, wp.int32),
        ("previous_body_q", previous_body_q, len(tables.bodies), wp.transformf),
        ("previous_camera_transforms", previous_camera_transforms, views.count, wp.transformf),
    ):
        if array is None:
            continue
        if not isinstance(array, wp.array) or array.shape != (count,) or array.dtype is not dtype or array.device != tables.device:
            given = f"{array.dtype.__name__} {array.shape} on {array.device}" if isinstance(array, wp.array) else type(array).__name__
            raise ArgumentError(f"{name}: {given}; expected wp.array[{dtype.__name__}] of shape ({count},) on {tables.device}")
