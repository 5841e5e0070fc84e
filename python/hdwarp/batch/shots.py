"""batch.shots: which images a stage asks for: a shot is a camera, the pixels of its image, and the planes to fill. No Warp."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hdwarp.aovs.registry import Conversion, resolve_var, unusable_parameters
from hdwarp.errors import ArgumentError, Diagnostics, NotSupported, Severity, StageError
from hdwarp.frame import IN_COLOR_SPACE
from hdwarp.stage.colour_spaces import rendering_space
from hdwarp.stage.open import default_time, metres_per_unit
from hdwarp.stage.render_spec import RenderPrims, find_render_prims
from hdwarp.stage.selection import DEFAULT_RESOLUTION, camera_aspect, check_product, default_product, product_of, settings_products
from hdwarp.stage.spec import PURPOSES, REC709, ImageSpec, LinearSpace, RenderProductSpec, RenderSettingsSpec
from hdwarp.views.conform import image_spec

if TYPE_CHECKING:
    from pxr import Usd

    from hdwarp.stage.columns import Camera


_AS_IT_IS = Conversion()


@dataclass(frozen=True, slots=True)
class ShotVar:
    """One output of a shot: its name, the AOV that fills it and what is done to its channels, the USD dataType it was asked for
    ("" if unauthored), and the RenderVar's path ("" for a plane asked for by name)."""

    name: str
    aov: str
    conversion: Conversion = _AS_IT_IS
    data_type: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class Shot:
    """One image to make of a stage."""

    camera: str  # prim path; "" for the framed default view
    image: ImageSpec
    vars: tuple[ShotVar, ...]
    purposes: tuple[str, ...]
    material_purposes: tuple[str, ...] = ("full", "")  # UsdRender's materialBindingPurposes, in order
    named: bool = True  # the camera was asked for by name, or by its product
    product: str = ""  # prim path
    product_name: str = ""
    settings_path: str = ""
    color_space: LinearSpace = REC709  # of the planes of colour
    product_settings: dict[str, object] = field(default_factory=dict, hash=False, compare=False)
    render_settings: dict[str, object] = field(default_factory=dict, hash=False, compare=False)  # namespaced attributes, the product's win

    @property
    def aovs(self) -> tuple[str, ...]:
        """AOVs to render, each once, in output order."""
        return tuple(dict.fromkeys(var.aov for var in self.vars))


def plan_shot(
    stage: Usd.Stage,
    camera: str | None = None,
    *,
    resolution: tuple[int, int] | None = None,
    image_width: int | None = None,
    aovs: Sequence[str] | None = None,
    purposes: Sequence[str] | None = None,
    settings: str | None = None,
    diagnostics: Diagnostics,
    time: Usd.TimeCode | None = None,
    found: RenderPrims | None = None,
    known: Sequence[str] | None = None,
) -> Shot:
    """The shot of a camera or product. ``camera``: path of a Camera or RenderProduct; None: the settings' first product, else the
    stage's first camera in path order, else a framed default view. ``settings``: path of a RenderSettings prim. ``image_width``:
    usdrecord's way to give the size, the height being the width over the camera's aspect, rounded down. ``known``: paths of the cameras
    of an open scene, which may have been read before the stage's last edits.

    Raises StageError for a path that is neither camera nor product, ArgumentError for an unknown AOV or an impossible resolution.
    """
    found = found or find_render_prims(stage)
    code = time if time is not None else default_time()
    if camera is None:
        product, spec = default_product(stage, settings, code, diagnostics, found, known)
    else:
        product, spec = product_of(stage, str(camera), settings, code, diagnostics, found, known)
    if product.camera == "" and product.path:
        raise StageError(product.path, "neither the product nor its RenderSettings target a camera; author its camera relationship")
    if image_width is not None:
        resolution = (image_width, max(1, int(image_width / camera_aspect(stage, product.camera))))
    if resolution is not None:
        product = replace(product, resolution=_checked(resolution))
    elif product.resolution is DEFAULT_RESOLUTION and product.camera:  # ours, not the stage's
        width, height = product.resolution
        message = f"no RenderProduct targets this camera; using {width}x{height} (--resolution)"
        diagnostics.note(product.camera, "default-resolution", message)
    try:
        image = image_spec(product.resolution, product.pixel_aspect_ratio, product.aspect_ratio_conform_policy, product.data_window_ndc)
    except ArgumentError as error:
        if resolution is None and product.path:
            raise StageError(product.path, str(error)) from None
        raise
    return Shot(
        camera=product.camera,
        image=image,
        vars=_shot_vars(product, aovs, metres_per_unit(stage), diagnostics),
        purposes=tuple(purposes) if purposes is not None else _known_purposes(spec, diagnostics),
        material_purposes=spec.material_binding_purposes,
        named=bool(camera is not None or product.path),
        product=product.path,
        product_name=product.name,
        settings_path=spec.path,
        color_space=_color_space(spec, diagnostics),
        product_settings=product.settings,
        render_settings={**spec.settings, **product.settings},
    )


def plan_shots(
    stage: Usd.Stage,
    *,
    cameras: Sequence[str] = (),
    products: Sequence[str] = (),
    diagnostics: Diagnostics,
    found: RenderPrims | None = None,
    **options: object,
) -> list[Shot]:
    """The shots of the cameras and products named, else of all products of the stage, else of its first camera in path order, else the
    default view.

    A product that cannot be rendered is left out with an error diagnostic unless it was named. ``options`` as for `plan_shot`.
    """
    found = found or find_render_prims(stage)
    for path in products:
        check_product(stage, path)
    named = [*cameras, *products]
    if named:
        return [plan_shot(stage, path, diagnostics=diagnostics, found=found, **options) for path in dict.fromkeys(named)]
    shots = []
    paths = settings_products(stage, options.get("settings"), found, diagnostics)
    for path in paths:
        try:
            shots.append(plan_shot(stage, path, diagnostics=diagnostics, found=found, **options))
        except StageError as error:
            if not any(item.path == error.path and item.severity is Severity.ERROR for item in diagnostics):
                diagnostics.error(error.path, "render-product", f"{error.reason}; the product is not rendered")
    if paths:
        return shots
    return [plan_shot(stage, None, diagnostics=diagnostics, found=found, **options)]


def _checked(resolution: object) -> tuple[int, int]:
    try:
        width, height = resolution
    except (TypeError, ValueError):
        raise ArgumentError(f"resolution is {resolution!r}; give (width, height) in pixels") from None
    return width, height


def _known_purposes(spec: RenderSettingsSpec, diagnostics: Diagnostics) -> tuple[str, ...]:
    """The settings' includedPurposes, less what is no purpose."""
    for purpose in spec.included_purposes:
        if purpose not in PURPOSES:
            message = f"includedPurposes holds '{purpose}', which is ignored; purposes: {', '.join(PURPOSES)}"
            diagnostics.warning(spec.path or "/", "purpose", message)
    return tuple(purpose for purpose in spec.included_purposes if purpose in PURPOSES)


def _color_space(spec: RenderSettingsSpec, diagnostics: Diagnostics) -> LinearSpace:
    space, wrong = rendering_space(spec.rendering_color_space)
    if wrong:
        diagnostics.warning(spec.path, "color-space", f"{wrong}; pictures are in linear Rec.709")
    elif space is not REC709:
        message = f"renderingColorSpace is {space}: colours are computed in linear Rec.709, and {', '.join(IN_COLOR_SPACE)} turned to it"
        diagnostics.note(spec.path, "color-space", message)
    return space


def note_camera(camera: Camera, diagnostics: Diagnostics) -> None:
    """What a camera asks for and this version leaves out."""
    if camera.f_stop > 0.0 and camera.focus_distance > 0.0:
        diagnostics.note(camera.path, "depth-of-field", "depth of field (fStop, focusDistance) is not supported yet; everything is sharp")
    if camera.shutter[1] > camera.shutter[0]:
        message = "motion blur (shutter:open, shutter:close) is not supported yet; rendered at one instant"
        diagnostics.note(camera.path, "motion-blur", message)


def _shot_vars(product: RenderProductSpec, aovs: Sequence[str] | None, unit: float, diagnostics: Diagnostics) -> tuple[ShotVar, ...]:
    """The planes asked for by name, else the product's vars, else color."""
    if aovs is not None:
        if isinstance(aovs, str):
            aovs = [aovs]
        if not aovs:
            raise ArgumentError("aovs is empty; name at least one plane, or leave it out for the product's vars")
        return tuple(ShotVar(name, *resolve_var(name)) for name in dict.fromkeys(aovs))
    found = []
    for var in product.render_vars:
        for name in unusable_parameters(var.settings):
            diagnostics.warning(var.path, "wrong-type", f"{name} holds no text; it is ignored. Author a token or a string")
        try:
            aov, conversion = resolve_var(var.source_name, var.source_type, var.data_type or None, var.name, var.settings)
        except ArgumentError as error:
            diagnostics.error(var.path, "render-var", f"{error}; the var is left out")
            continue
        except NotSupported as error:
            diagnostics.warning(var.path, "render-var", f"{error}; the var is left out")
            continue
        if aov == "position" and unit != 1.0:
            message = f"'{var.source_name}' is rendered as position, in metres; the stage's unit is {unit:g} m"
            diagnostics.note(var.path, "position-in-metres", message)
        found.append(ShotVar(var.name, aov, conversion, var.data_type, var.path))
    return tuple(found) or (ShotVar("color", "color"),)
