"""delegate.render_delegate: Hydra's render delegate: what can be drawn and how, and the maker of index, passes, buffers and views."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

import warp as wp

from hdwarp.aovs.registry import AOVS
from hdwarp.delegate.aov import HD_FORMATS, AovDescriptor, descriptor_of, plane_spec
from hdwarp.delegate.render_buffer import RenderBuffer
from hdwarp.delegate.render_index import RenderIndex
from hdwarp.delegate.render_param import RenderParam
from hdwarp.delegate.render_pass import RenderPass
from hdwarp.delegate.render_settings import DESCRIPTORS, RenderSettings, SettingDescriptor
from hdwarp.delegate.worlds import Worlds
from hdwarp.errors import ArgumentError, Error
from hdwarp.launch import find_device
from hdwarp.stage.spec import ImageSpec
from hdwarp.tables.scene_tables import SceneTables, TableCounts
from hdwarp.tables.selecting import views_of
from hdwarp.tables.structs import NOT_VISUAL
from hdwarp.tables.textures import TEXTURE_BUDGET
from hdwarp.views.conform import image_spec
from hdwarp.views.rows import View, ViewTable


class RenderDelegate:
    """Hydra's HdRenderDelegate. It owns the device tables of one render index; prims are rows of the index, not objects.

        delegate = RenderDelegate("cpu")
        index = delegate.create_render_index()
        index.sync(columns)                   # a `StageColumns`; `Scene` reads it from a stage
        delegate.commit_resources(index)
        views = delegate.create_views("/camera", (640, 480))
        color = delegate.create_render_buffer("color", 640, 480)
        delegate.create_render_pass(samples=16).execute(views, {"color": color})
        with color.mapped() as pixels: ...

    ``device``: of all that it makes. ``tables``: the `SceneTables`. ``render_param``: shared with its passes.
    """

    supported_rprim_types = (
        *("mesh", "sphere", "cube", "cylinder", "cylinder_1", "cone", "capsule", "capsule_1", "plane"),
        *("tetMesh", "nurbsPatch", "basisCurves", "nurbsCurves", "points"),
        "hermiteCurves",  # no token of Hydra's, whose UsdImaging has no adapter for HermiteCurves; they are drawn here
    )
    supported_sprim_types = ("camera", "material", "distantLight", "sphereLight", "diskLight", "rectLight", "cylinderLight", "domeLight")
    supported_bprim_types = ("renderBuffer", "renderSettings")

    def __init__(
        self, device: wp.Device | str | None = None, *, settings: RenderSettings | None = None, texture_budget: int = TEXTURE_BUDGET
    ) -> None:
        """``device``: None: the first CUDA device, else the CPU. ``texture_budget``: bytes that images of materials may take, their levels
        included: where they would take more, the largest are held at half their size, and again, which is told.

        Raises ArgumentError for a device that does not exist, and a budget that is no number of bytes.
        """
        self.device = find_device(device)
        if isinstance(texture_budget, bool) or not isinstance(texture_budget, int) or texture_budget < 0:
            raise ArgumentError(f"texture_budget={texture_budget!r}: expected a number of bytes, 0 or more")
        self.tables = SceneTables(self.device, texture_budget=texture_budget)
        self.render_param = RenderParam(self.tables, settings)
        self._index: RenderIndex | None = None

    # -- what to draw -----------------------------------------------------------------------------------------------------

    def create_render_index(self, worlds: Worlds | None = None) -> RenderIndex:
        """The index this delegate draws. ``worlds``: which worlds there are; None: one. Raises Error at the second call: the device tables
        hold one index."""
        if self._index is not None:
            raise Error("this delegate has a render index already; make a RenderDelegate for each index")
        self._index = RenderIndex(worlds)
        return self._index

    def commit_resources(self, index: RenderIndex) -> TableCounts:
        """Bring the device in step with the index, doing only what its dirty bits ask for; the index is clean afterwards.

        Returns what was done. Raises ArgumentError for an index of another delegate.
        """
        if index is not self._index:
            raise ArgumentError("the index is not this delegate's; use the one create_render_index() gave")
        return self.tables.sync(index)

    def create_views(
        self,
        cameras: str | int | Sequence,
        image: ImageSpec | tuple[int, int],
        *,
        worlds: Sequence[int] | None = None,
        scene_unit: float = 1.0,
        radial: bool = False,
        hides: int | Sequence[int] = int(NOT_VISUAL),
    ) -> ViewTable:
        """Views of cameras, in the role of Hydra's render pass state: camera and framing. In order of the camera rows, one size for all.

        ``cameras``: patterns over paths, row numbers, or a list of these. ``image``: (width, height), or an ImageSpec with data window and
        conform policy. ``worlds``: those to see, None: all; a camera of a world gives one view, a global one a view of each.
        ``scene_unit``: scene units per metre, for `cameraDepth`. ``radial``: clip ranges count along the ray. ``hides``: flags of instances
        that are not there, for all views or a number each.
        Once cameras have come or gone, passes refuse the views. Raises ArgumentError for cameras that are not there and wrong sizes.
        """
        image = image if isinstance(image, ImageSpec) else image_spec(image)
        table = self.tables.cameras
        pairs = views_of(table.select(cameras), table.world, worlds, self.tables.worlds.count)
        views = [View(row, world, image) for row, world in pairs]
        return ViewTable(views, scene_unit=scene_unit, radial=radial, device=self.device, cameras=table, hides=hides)

    # -- planes -----------------------------------------------------------------------------------------------------------

    @property
    def aov_names(self) -> tuple[str, ...]:
        """Planes that can be rendered; ``primvars:NAME`` beside them."""
        return tuple(name for name, spec in AOVS.items() if not spec.later)

    def default_aov_descriptor(self, name: str) -> AovDescriptor:
        """How a plane is stored. A primvar is as wide as the committed scene has it.

        Raises ArgumentError for a name that is no plane (Hydra gives an invalid descriptor), NotSupported for one of later versions.
        """
        return descriptor_of(plane_spec(self.tables, name))

    def create_render_buffer(
        self,
        aov: str,
        width: int,
        height: int,
        *,
        view_count: int = 1,
        format: str | None = None,
        multi_sampled: bool | None = None,
    ) -> RenderBuffer:
        """A buffer for ``view_count`` images of an AOV, allocated as its descriptor says. ``multi_sampled=False``: not averaged.

        Raises as `default_aov_descriptor` and `RenderBuffer.allocate`; ArgumentError for a format of another type than the AOV's.
        """
        descriptor = self.default_aov_descriptor(aov)
        if format is not None and HD_FORMATS.get(format) is not descriptor.dtype:
            raise ArgumentError(f"{aov} has format {descriptor.format}, not {format!r}; convert what map() gives")
        buffer = RenderBuffer(self.device, name=aov)
        averaged = descriptor.multi_sampled if multi_sampled is None else multi_sampled
        buffer.allocate(width, height, descriptor.format, multi_sampled=averaged, depth=view_count)
        return buffer

    def create_render_pass(self, *, samples: int = 1, settings: RenderSettings | None = None) -> RenderPass:
        """A pass over all that the index draws. ``samples``: a pixel, of planes that average. ``settings``: in place of the delegate's."""
        return RenderPass(self.render_param, samples=samples, settings=settings)

    # -- settings ---------------------------------------------------------------------------------------------------------

    @property
    def render_setting_descriptors(self) -> tuple[SettingDescriptor, ...]:
        return DESCRIPTORS

    @property
    def settings(self) -> RenderSettings:
        """Of all passes that have none of their own."""
        return self.render_param.settings

    @settings.setter
    def settings(self, settings: RenderSettings) -> None:
        if not isinstance(settings, RenderSettings):
            raise ArgumentError(f"settings={settings!r}: expected hdwarp.RenderSettings(...)")
        self.render_param.set_settings(settings)

    def get_render_setting(self, key: str) -> object:
        """Value of a setting. Raises ArgumentError for a key that no descriptor has."""
        self._check_key(key)
        return getattr(self.render_param.settings, key)

    def set_render_setting(self, key: str, value: object) -> None:
        """Raises ArgumentError for a key that no descriptor has or a value that is none, NotSupported for what later versions do."""
        self._check_key(key)
        self.render_param.set_settings(replace(self.render_param.settings, **{key: value}))

    @property
    def render_settings_version(self) -> int:
        """Counts changes; setting what is set already is none."""
        return self.render_param.settings_version

    @staticmethod
    def _check_key(key: str) -> None:
        known = [field.name for field in fields(RenderSettings)]
        if key not in known:
            raise ArgumentError(f"no render setting is named {key!r}; there are {', '.join(known)}")

    # -- progressive passes -----------------------------------------------------------------------------------------------

    def render_stats(self) -> dict[str, object]:
        """What is drawn, and how far the last picture has come: names as in Hydra's GetRenderStats where it has them."""
        param, index = self.render_param, self._index
        done, wanted = param.completed_samples, param.sample_count
        return {
            "device": str(self.device),
            "numCompletedSamples": done,
            "percentDone": 100.0 * done / wanted if wanted else 0.0,
            "primCount": len(index.prim_paths) if index is not None else 0,
            "instanceCount": index.instance_count if index is not None else 0,
            "meshCount": len(index.meshes) if index is not None else 0,
            "cameraCount": len(self.tables.cameras),
            "sceneVersion": param.scene_version,
            "settingsVersion": param.settings_version,
            "camerasVersion": param.cameras_version,
        }

    is_pause_supported = True
    is_stop_supported = True

    def pause(self) -> None:
        """Progressive passes add no samples until `resume`; buffers keep what they hold. Whole pictures are not held up."""
        self.render_param.is_paused = True

    def resume(self) -> None:
        """Progressive passes go on where they were, or start over where something has changed."""
        self.render_param.is_paused = False

    def stop(self) -> None:
        """As `pause`, until `restart`."""
        self.render_param.is_stopped = True

    def restart(self) -> None:
        """All progressive pictures start over at the next call, also after `stop`."""
        self.render_param.is_stopped = False
        self.render_param.restart_count += 1

    @property
    def is_paused(self) -> bool:
        return self.render_param.is_paused

    @property
    def is_stopped(self) -> bool:
        return self.render_param.is_stopped
