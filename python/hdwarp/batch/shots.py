"""batch.shots: which images a stage asks for: a shot is a camera, the pixels of its image, and the planes to fill. No Warp."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pxr import Sdf, Usd, UsdGeom, UsdRender

from hdwarp.aovs.registry import Conversion, resolve_var
from hdwarp.errors import ArgumentError, Diagnostics, StageError
from hdwarp.stage.render_spec import (
    RenderPrims,
    find_render_prims,
    list_products,
    made_up_product,
    product_for_camera,
    read_render_settings,
)
from hdwarp.stage.spec import ImageSpec, RenderProductSpec, RenderSettingsSpec
from hdwarp.views.conform import image_spec

DEFAULT_RESOLUTION = (1280, 720)


@dataclass(frozen=True, slots=True)
class ShotVar:
    """One output of a shot: its name, the AOV that fills it and what is done to its channels, the USD dataType it was asked for
    ("" if unauthored), and the RenderVar's path ("" for a plane asked for by name)."""

    name: str
    aov: str
    conversion: Conversion = Conversion()
    data_type: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class Shot:
    """One image to make of a stage."""

    camera: str  # prim path; "" for the framed default view
    image: ImageSpec
    vars: tuple[ShotVar, ...]
    purposes: tuple[str, ...]
    product: str = ""  # prim path
    product_name: str = ""
    settings_path: str = ""
    product_settings: dict[str, object] = field(default_factory=dict, hash=False, compare=False)

    @property
    def aovs(self) -> tuple[str, ...]:
        """AOVs to render, each once, in output order."""
        return tuple(dict.fromkeys(var.aov for var in self.vars))


def plan_shot(
    stage: Usd.Stage,
    camera: str | None = None,
    *,
    resolution: tuple[int, int] | None = None,
    aovs: Sequence[str] | None = None,
    purposes: Sequence[str] | None = None,
    settings: str | None = None,
    diagnostics: Diagnostics,
    time: Usd.TimeCode | None = None,
    found: RenderPrims | None = None,
) -> Shot:
    """The shot of a camera or product. ``camera``: path of a Camera or RenderProduct; None: the settings' first product, else the
    stage's first camera in path order, else a framed default view. ``settings``: path of a RenderSettings prim.

    Raises StageError for a path that is neither camera nor product, ArgumentError for an unknown AOV or an impossible resolution.
    """
    found = found or find_render_prims(stage)
    code = time if time is not None else Usd.TimeCode.Default()
    if camera is None:
        product, spec = _default_product(stage, settings, code, diagnostics, found)
    else:
        product, spec = _product_of(stage, str(camera), settings, code, diagnostics, found)
    if product.camera == "" and product.path:
        raise StageError(product.path, "neither the product nor its RenderSettings target a camera; author its camera relationship")
    if resolution is not None:
        product = replace(product, resolution=tuple(resolution))
    elif not product.path and not product.settings.get("resolution") and product.camera:
        width, height = product.resolution
        diagnostics.note(product.camera, "default-resolution", f"no RenderProduct targets this camera; using {width}x{height} (--resolution)")
    try:
        image = image_spec(
            product.resolution, product.pixel_aspect_ratio, product.aspect_ratio_conform_policy, product.data_window_ndc
        )
    except ArgumentError as error:
        if resolution is None and product.path:
            raise StageError(product.path, str(error)) from None
        raise
    return Shot(
        camera=product.camera,
        image=image,
        vars=_shot_vars(product, aovs, diagnostics),
        purposes=tuple(purposes) if purposes is not None else spec.included_purposes,
        product=product.path,
        product_name=product.name,
        settings_path=spec.path,
        product_settings=product.settings,
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
    """The shots of the cameras and products named, else of all products of the stage, else of its first camera, else the default view.

    A product that cannot be rendered is left out with an error diagnostic unless it was named. ``options`` as for `plan_shot`.
    """
    found = found or find_render_prims(stage)
    named = [*cameras, *products]
    if named:
        return [plan_shot(stage, path, diagnostics=diagnostics, found=found, **options) for path in dict.fromkeys(named)]
    shots = []
    paths = _settings_products(stage, options.get("settings"), found)
    for path in paths:
        try:
            shots.append(plan_shot(stage, path, diagnostics=diagnostics, found=found, **options))
        except StageError as error:
            diagnostics.error(error.path, "render-product", f"{error.reason}; the product is not rendered")
    if paths:
        return shots
    return [plan_shot(stage, None, diagnostics=diagnostics, found=found, **options)]


def _settings_products(stage: Usd.Stage, settings: object, found: RenderPrims) -> list[str]:
    """Products of the settings asked for, else all of the stage."""
    if settings is None:
        return list_products(stage, found=found)
    prim = stage.GetPrimAtPath(str(settings)) if Sdf.Path.IsValidPathString(str(settings)) else None
    if not prim or not prim.IsA(UsdRender.Settings):
        raise StageError(settings, "no RenderSettings prim is there; mend the path")
    return [str(path) for path in UsdRender.Settings(prim).GetProductsRel().GetForwardedTargets()]


def _default_product(
    stage: Usd.Stage, settings: str | None, time: Usd.TimeCode, diagnostics: Diagnostics, found: RenderPrims
) -> tuple[RenderProductSpec, RenderSettingsSpec]:
    spec = read_render_settings(stage, path=settings, time=time, diagnostics=diagnostics, found=found)
    for product in spec.products:
        if product.camera:
            return product, spec
    for path in list_products(stage, found=found):
        try:
            spec = read_render_settings(stage, path=settings, product=path, time=time, diagnostics=diagnostics, found=found)
        except StageError as error:
            diagnostics.error(error.path, "render-product", f"{error.reason}; the product is not rendered")
            continue
        if spec.products[0].camera:
            return spec.products[0], spec
    for prim in stage.Traverse(Usd.TraverseInstanceProxies()):
        if prim.IsA(UsdGeom.Camera):
            return made_up_product(str(prim.GetPath()), DEFAULT_RESOLUTION), spec
    diagnostics.note("/", "default-camera", "the stage has no camera; rendering a framed default view (author a Camera, or name one)")
    return made_up_product("", DEFAULT_RESOLUTION), spec


def _product_of(
    stage: Usd.Stage, path: str, settings: str | None, time: Usd.TimeCode, diagnostics: Diagnostics, found: RenderPrims
) -> tuple[RenderProductSpec, RenderSettingsSpec]:
    """Product and settings for the path of a camera or a product."""
    prim = stage.GetPrimAtPath(path) if Sdf.Path.IsValidPathString(path) and path.startswith("/") else None
    if not prim:
        cameras = [str(p.GetPath()) for p in stage.Traverse(Usd.TraverseInstanceProxies()) if p.IsA(UsdGeom.Camera)]
        by_name = [camera for camera in cameras if camera.rsplit("/", 1)[-1] == path]
        if len(by_name) == 1:  # usdrecord's habit: the camera's name alone
            return _product_of(stage, by_name[0], settings, time, diagnostics, found)
        raise StageError(path, f"no prim is there; cameras of the stage: {', '.join(cameras[:10]) or 'none'}")
    if prim.IsA(UsdRender.Product):
        spec = read_render_settings(stage, path=settings, product=path, time=time, diagnostics=diagnostics, found=found)
        return spec.products[0], spec
    if not prim.IsA(UsdGeom.Camera):
        raise StageError(path, f"expected a Camera or RenderProduct, found type '{prim.GetTypeName() or 'none'}'")
    product = product_for_camera(stage, path, diagnostics=diagnostics, found=found)
    if product is None:
        return made_up_product(path, DEFAULT_RESOLUTION), read_render_settings(
            stage, path=settings, time=time, diagnostics=Diagnostics(), found=found
        )
    spec = read_render_settings(stage, path=settings, product=product.path, time=time, diagnostics=diagnostics, found=found)
    return replace(product, camera=path), spec


def _shot_vars(product: RenderProductSpec, aovs: Sequence[str] | None, diagnostics: Diagnostics) -> tuple[ShotVar, ...]:
    """The planes asked for by name, else the product's vars, else color."""
    if aovs is not None:
        if isinstance(aovs, str):
            aovs = [aovs]
        if not aovs:
            raise ArgumentError("aovs is empty; name at least one plane, or leave it out for the product's vars")
        return tuple(ShotVar(name, *resolve_var(name)) for name in dict.fromkeys(aovs))
    found = []
    for var in product.render_vars:
        try:
            aov, conversion = resolve_var(var.source_name, var.source_type, var.data_type or None, var.name, var.settings)
        except ArgumentError as error:
            diagnostics.error(var.path, "render-var", f"{error}; the var is left out")
            continue
        except NotImplementedError as error:
            diagnostics.warning(var.path, "render-var", f"{error}; the var is left out")
            continue
        found.append(ShotVar(var.name, aov, conversion, var.data_type, var.path))
    return tuple(found) or (ShotVar("color", "color"),)
