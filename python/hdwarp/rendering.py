"""rendering: `hdwarp.render`: a stage, a camera, one Frame. The same RenderDelegate and RenderPass as everything else."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import warp as wp

from hdwarp.aovs.registry import aov_spec, primvar_name
from hdwarp.batch.shots import Shot, ShotVar, note_camera, plan_shot
from hdwarp.delegate.render_index import authored_ids
from hdwarp.delegate.render_settings import RenderSettings
from hdwarp.errors import ArgumentError, Diagnostics, Error, NotSupported, StageError, Told
from hdwarp.frame import Frame
from hdwarp.scene import DEFAULT_CAMERA, Scene, check_purposes
from hdwarp.stage.open import frame_before, open_stage, resolve_time
from hdwarp.tables.lights import MOST_SHADOWS
from hdwarp.tables.scene_tables import SceneTables
from hdwarp.views import orthographic, pinhole
from hdwarp.views.conform import shown_pixel_aspect

if TYPE_CHECKING:
    from pxr import Usd


def render(
    stage_or_path: Usd.Stage | str | Path | Scene,
    camera: str | None = None,
    *,
    time: float | Usd.TimeCode | None = None,
    resolution: tuple[int, int] | None = None,
    aovs: Sequence[str] | None = None,
    samples: int = 1,
    complexity: str = "low",
    purposes: Sequence[str] | None = None,
    settings: str | RenderSettings | None = None,
    device: str | None = None,
    truth: bool = False,
    strict: bool = False,
    clear: Mapping[str, object] | None = None,
    previous: float | Usd.TimeCode | None = None,
) -> Frame:
    """Render one camera of a stage, or of an open `Scene` as its last `sync` left it (time, purposes and device are then the scene's;
    RenderProducts and settings are looked up on the stage, which must not be edited meanwhile).

    ``camera``: path of a Camera or a RenderProduct; None: the settings' first product, else the first camera in
    path order, else a framed default view.
    ``time``: a time code; None: startTimeCode if authored, else the earliest. ``aovs``: planes by name; None: the product's vars, else
    ("color",). ``samples``: samples a pixel for colour, a square number; the other planes use the pixel's centre. ``purposes``: drawn
    purposes; None: the settings' includedPurposes. ``settings``: path of a RenderSettings prim, or RenderSettings(...).
    ``clear``: AOV name -> value of pixels that see nothing. ``previous``: time code of the frame that `motion` is measured against; None:
    one frame before ``time`` (nothing moves where that is no number); other planes do not depend on it.

    Raises StageError for what is no stage, camera or product (with ``strict`` for the first broken prim), ArgumentError for bad options,
    NotSupported for what later versions do.
    """
    if truth:
        raise NotSupported("render(truth=True): ground-truth objects and labels are not supported yet")
    if settings is not None and not isinstance(settings, str | RenderSettings):
        raise ArgumentError(f"settings={settings!r}: expected the path of a RenderSettings prim, or hdwarp.RenderSettings(...)")
    diagnostics = Diagnostics()
    if isinstance(stage_or_path, Scene):
        return _render_open(
            stage_or_path,
            {
                "time": time,
                "purposes": purposes,
                "device": device,
                "previous": previous,
                "complexity": None if complexity == "low" else complexity,
            },
            camera=camera,
            resolution=resolution,
            aovs=aovs,
            samples=samples,
            settings=settings,
            strict=strict,
            clear=clear,
        )
    stage = open_stage(stage_or_path, diagnostics=diagnostics)
    settings_path = settings if isinstance(settings, str) else None
    shot = plan_shot(
        stage,
        camera,
        resolution=resolution,
        aovs=aovs,
        purposes=check_purposes(purposes) if purposes is not None else None,
        settings=settings_path,
        diagnostics=diagnostics,
        time=(now := resolve_time(stage, time)),
    )
    if strict:
        diagnostics.raise_errors()
    read = {"purposes": shot.purposes, "material_purposes": shot.material_purposes, "complexity": complexity}
    then = now
    if "motion" in shot.aovs:
        then = frame_before(stage, now) if previous is None else resolve_time(stage, previous)
    scene = Scene(stage, device=device, time=then, strict=strict, **read)
    if then != now:
        keep_as_previous(scene, shot)
        scene.sync(now)
    how = settings if isinstance(settings, RenderSettings) else None
    return render_shot(scene, shot, samples=samples, settings=how, clear=clear, diagnostics=diagnostics, strict=strict)


def _render_open(
    scene: Scene,
    of_the_scene: Mapping[str, object],
    *,
    camera: str | None,
    resolution: tuple[int, int] | None,
    aovs: Sequence[str] | None,
    samples: int,
    settings: str | RenderSettings | None,
    strict: bool,
    clear: Mapping[str, object] | None,
) -> Frame:
    """`render` of an open scene; ``of_the_scene``: options that it was made with, or is synced to."""
    scene.check_open()
    for name, value in of_the_scene.items():
        if value is not None:
            raise ArgumentError(f"{name}={value!r} goes with a stage: an open scene has its own (Scene({name}=), or Scene.sync for times)")
    diagnostics = Diagnostics()
    copy = camera if camera in scene.cameras.label else None  # of a camera, in another world: not on the stage
    record = None if copy is None else scene.cameras.record_of(scene.cameras.label.index(copy))
    try:
        shot = plan_shot(
            scene.stage,
            camera if record is None else record.source or record.path,
            resolution=resolution,
            aovs=aovs,
            purposes=scene.purposes,
            settings=settings if isinstance(settings, str) else None,
            diagnostics=diagnostics,
            time=scene.time_code,
            known=sorted(item.path for item in scene.index.cameras.values() if item.path != DEFAULT_CAMERA),
        )
    except RuntimeError as error:  # USD's, for prims that another thread has removed in the middle of a walk
        if isinstance(error, Error) or "expired" not in str(error):
            raise
        message = "the stage was edited while its RenderProducts were looked up; try again, or edit between renders"
        raise Error(f"{message}. Sensors and RenderPass look at no stage") from None
    if copy is not None:
        shot = replace(shot, camera=copy)
    if strict:
        diagnostics.raise_errors()
        scene.diagnostics.raise_errors()
    how = settings if isinstance(settings, RenderSettings) else None
    return render_shot(scene, shot, samples=samples, settings=how, clear=clear, diagnostics=diagnostics, strict=strict)


def render_shot(
    scene: Scene,
    shot: Shot,
    *,
    samples: int = 1,
    settings: RenderSettings | Mapping[str, object] | None = None,
    clear: Mapping[str, object] | None = None,
    diagnostics: Diagnostics | None = None,
    leave_out: bool = False,
    strict: bool = False,
) -> Frame:
    """One shot of an open scene. ``settings``: None: its delegate's, and over them the ``hdwarp:`` attributes of its RenderSettings prim; a
    mapping: some of them by name, over both. ``diagnostics``: what planning found; the scene's own are added.
    ``leave_out``: primvars asked for by name that no prim has are told and left out, as those of RenderVars are, unless nothing is left.
    ``strict``: raise StageError for the first diagnostic of severity error."""
    if clear is not None and not isinstance(clear, Mapping):
        raise ArgumentError(f"clear={clear!r}: expected a dictionary of AOV name -> value")
    diagnostics = diagnostics if diagnostics is not None else Diagnostics()
    settings = _settings_of(scene, shot, settings, diagnostics)
    scene.check_open()
    if settings.shadows and settings.integrator != "unlit" and len(turns := scene.lights.turns()) > MOST_SHADOWS:
        message = f"a world has {len(turns)} lights; the {MOST_SHADOWS} strongest cast shadows, the others light through everything"
        diagnostics.note("/", "many-lights", message)
    frame, shot, row = _frame_without_planes(scene, shot, dict(clear or {}), diagnostics, leave_out)
    if strict:
        diagnostics.raise_errors()
    delegate, image = scene.delegate, shot.image
    descriptors = {name: delegate.default_aov_descriptor(name) for name in shot.aovs}
    try:
        scene.tables.unpose()  # what sensors have posed
        world = scene.worlds.seen_from(int(scene.cameras.world[row]))
        views = delegate.create_views(row, image, worlds=[world], scene_unit=1.0 / frame.metres_per_unit)
        record = scene.cameras.record_of(row)
        source = record.source or record.path  # of a copy in another world: the camera that it copies
        if scene.lods.differ_for(source):
            flags = scene.lods.flags_of(scene.index, scene.tables.instances.flags_of(scene.index), source)
            views.flags = wp.array(flags, dtype=wp.int32, device=scene.device)
        buffers = {name: delegate.create_render_buffer(name, image.width, image.height) for name in shot.aovs}
        delegate.create_render_pass(samples=samples, settings=settings).execute(views, buffers, clear=clear)
        # The frame takes the memory over on the CPU: nobody else knows these buffers.
        frame.arrays.update({name: buffer.array.numpy()[0] for name, buffer in buffers.items()})
        if shot.color_space != frame.color_space:
            frame.turn_to(shot.color_space)
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "allocate" not in str(error):
            raise
        size = sum(wp.types.type_size_in_bytes(descriptor.dtype) for descriptor in descriptors.values()) * image.width * image.height
        message = f"{len(descriptors)} planes of {image.width}x{image.height} need {size:,} bytes and there is not enough memory"
        raise Error(f"{message}; lower the resolution, or render fewer planes at a time") from None
    return frame


def _settings_of(scene: Scene, shot: Shot, given: RenderSettings | Mapping[str, object] | None, diagnostics: Diagnostics) -> RenderSettings:
    """What a picture is made with: nothing is left open."""
    if isinstance(given, RenderSettings):
        return given.decided("preview")
    settings = scene.delegate.settings
    try:
        settings = RenderSettings.of_attributes(shot.render_settings, settings)
    except ArgumentError as error:
        diagnostics.error(shot.settings_path or shot.product, "render-settings", f"{error}; the prim's hdwarp: attributes are not used")
    return replace(settings, **(given or {})).decided("preview")


def keep_as_previous(scene: Scene, shot: Shot) -> None:
    """Have the scene remember, for `motion` of ``shot`` in the frame that the next sync begins, what a picture would show now."""
    scene.keep_previous()
    if not shot.camera:
        scene.frame_default_camera(_shown_aspect(shot))


def describe_shot(scene: Scene, shot: Shot) -> Frame:
    """The frame `render_shot` would give, without its planes: camera, K, pose, id tables. Nothing is traced."""
    return _frame_without_planes(scene, shot, {}, Diagnostics(), True)[0]


def _frame_without_planes(
    scene: Scene, shot: Shot, clear: dict[str, object], diagnostics: Diagnostics, leave_out: bool
) -> tuple[Frame, Shot, int]:
    """(frame with empty ``arrays``, the shot less what cannot be rendered, the camera's row)."""
    scene.check_open()
    image = shot.image
    label = shot.camera or scene.frame_default_camera(_shown_aspect(shot))
    diagnostics.extend(scene.diagnostics)
    if label not in scene.cameras.label and not shot.named:  # nobody asked for this one: another will do, or a framed view
        diagnostics.warning(label, "default-camera", "the first camera cannot be rendered; using the next, or a framed default view")
        usable = [path for path in scene.cameras.label if path != DEFAULT_CAMERA]
        label = usable[0] if usable else scene.frame_default_camera(_shown_aspect(shot))
    if label not in scene.cameras.label:
        reasons = [item.message for item in scene.diagnostics if item.path == label and item.severity == "error"]
        raise StageError(
            label, reasons[0] if reasons else "the camera cannot be rendered: the scene has none there (sync() follows edits of the stage)"
        )
    row = scene.cameras.label.index(label)
    tables = scene.tables
    record = tables.cameras.as_written(row)
    own_world, worlds = int(tables.cameras.world[row]), scene.index.worlds
    world = scene.worlds.seen_from(own_world)
    if worlds.groups and own_world >= 0:
        record = replace(record, world_from_camera=scene.worlds.placed(record.world_from_camera, own_world))
    if scene.index.instance_count == 0:
        diagnostics.warning("/", "nothing-drawn", "no prim of the stage is drawn; the picture is empty")
    note_camera(record, diagnostics)
    shot = _without_missing_primvars(shot, tables, diagnostics, leave_out)
    for name in clear:
        if name not in shot.aovs:
            raise ArgumentError(f"clear names {name!r}, which is not rendered; planes: {', '.join(shot.aovs)}")
    twin = orthographic if record.projection == "orthographic" else pinhole
    frame = Frame(
        arrays={},
        vars=[(var.name, var.aov, var.data_type) for var in shot.vars],
        camera="" if label == DEFAULT_CAMERA else label,
        product=shot.product,
        stage=scene.identifier,
        time=scene.time,
        clipping_range=record.clipping_range,
        K=twin.intrinsics(record, image),
        lens="orthographic" if record.projection == "orthographic" else "pinhole",
        distortion=None,
        world_from_camera=record.world_from_camera.copy(),
        origin=tables.worlds.origin[world].copy(),
        axes=record.axes.copy(),
        ray_coefficients=twin.ray_coefficients(record, image).of_window(image),
        data_window=(image.x0, image.y0, image.width, image.height),
        image_size=(image.image_width, image.image_height),
        pixel_aspect_ratio=shown_pixel_aspect(record.aperture, image),
        metres_per_unit=scene.metres_per_unit,
        clear={name: clear.get(name, aov_spec(name).clear) for name in shot.aovs},
        prim_paths=[worlds.label(path, world) for path in scene.index.prim_paths],
        material_paths=list(scene.index.material_paths),
        body_paths=[worlds.label(path, world) for path in scene.index.body_paths],
        diagnostics=Told(diagnostics),
        conversions={var.name: var.conversion for var in shot.vars if var.conversion.channels is not None},
        decode_instance=functools.partial(authored_ids, scene.index.instancers()),
    )
    return frame, shot, row


def _shown_aspect(shot: Shot) -> float:
    return shot.image.image_width * shot.image.pixel_aspect_ratio / shot.image.image_height


def _without_missing_primvars(shot: Shot, tables: SceneTables, diagnostics: Diagnostics, leave_out: bool) -> Shot:
    """The shot less those vars of its product that ask for a primvar no prim has. Planes asked for by name go with ``leave_out``, if any
    other is left; else they stay, and raise."""
    asked = [(var, name) for var in shot.vars if (var.path or leave_out) and (name := primvar_name(var.aov)) is not None]
    known = tables.primvar_names() if asked else ()
    missing = {var: name for var, name in asked if name not in known}
    kept = tuple(var for var in shot.vars if var not in missing)
    if not kept and not shot.vars[0].path:
        return shot
    for var, name in missing.items():
        what = "var" if var.path else "plane"
        message = f"no prim has a primvar {name!r} (there are {', '.join(known) or 'none'}); the {what} is left out"
        diagnostics.error(var.path or shot.camera or "/", "render-var", message)
    return replace(shot, vars=kept or (ShotVar("color", "color"),))
