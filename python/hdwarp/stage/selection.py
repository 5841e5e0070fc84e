"""stage.selection: which product and settings a name, or no name, stands for. Reads UsdRender and cameras, no geometry."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from pxr import Sdf, Usd, UsdGeom, UsdRender

from hdwarp.errors import Diagnostics, StageError
from hdwarp.stage.cameras import camera_obstacle, camera_paths
from hdwarp.stage.render_spec import RenderPrims, list_products, made_up_product, product_for_camera, read_render_settings
from hdwarp.stage.render_values import RenderValues
from hdwarp.stage.spec import RenderProductSpec, RenderSettingsSpec

DEFAULT_RESOLUTION = (1280, 720)  # of cameras that no product targets


def camera_aspect(stage: Usd.Stage, path: str) -> float:
    """Width over height of a camera's aperture; 16 / 9 where it has none, or there is no camera (path "")."""
    camera = UsdGeom.Camera(stage.GetPrimAtPath(path)) if path else None
    apertures = (camera.GetHorizontalApertureAttr().Get(), camera.GetVerticalApertureAttr().Get()) if camera else ()
    if not apertures or not all(isinstance(value, int | float) and 0.0 < value < math.inf for value in apertures):
        return 16.0 / 9.0
    return apertures[0] / apertures[1]


def check_product(stage: Usd.Stage, path: str) -> None:
    """Raise StageError unless a RenderProduct is at ``path``."""
    prim = stage.GetPrimAtPath(path) if Sdf.Path.IsValidPathString(path) else None
    if not prim or not prim.IsA(UsdRender.Product):
        found = f"found type '{prim.GetTypeName() or 'none'}'" if prim else "no prim is there"
        products = ", ".join(list_products(stage)[:10]) or "none"
        raise StageError(path, f"expected a RenderProduct, {found}; products of the stage: {products}")


def settings_products(stage: Usd.Stage, settings: object, found: RenderPrims, diagnostics: Diagnostics | None = None) -> list[str]:
    """Paths of the products of the settings asked for, else of all of the stage. Raises StageError for what is no RenderSettings."""
    if settings is None:
        return list_products(stage, found=found, diagnostics=diagnostics)
    prim = stage.GetPrimAtPath(str(settings)) if Sdf.Path.IsValidPathString(str(settings)) else None
    if not prim or not prim.IsA(UsdRender.Settings):
        raise StageError(settings, "no RenderSettings prim is there; mend the path")
    return RenderValues(prim, diagnostics).targets("products")


def default_product(
    stage: Usd.Stage,
    settings: str | None,
    time: Usd.TimeCode,
    diagnostics: Diagnostics,
    found: RenderPrims,
    known: Sequence[str] | None = None,
) -> tuple[RenderProductSpec, RenderSettingsSpec]:
    """What to render when nothing is named: the settings' first product, else any product, else the first camera in path order, else
    (camera "") a framed default view. ``known``: the cameras there are, where that is not for the stage to say."""
    spec = read_render_settings(stage, path=settings, time=time, diagnostics=diagnostics, found=found)
    for product in spec.products:
        if product.camera:
            return product, spec
    for path in list_products(stage, found=found, diagnostics=diagnostics):
        try:
            spec = read_render_settings(stage, path=settings, product=path, time=time, diagnostics=diagnostics, found=found)
        except StageError as error:
            diagnostics.error(error.path, "render-product", f"{error.reason}; the product is not rendered")
            continue
        if spec.products[0].camera:
            return spec.products[0], spec
    cameras = camera_paths(stage) if known is None else known
    if cameras:
        return made_up_product(cameras[0], DEFAULT_RESOLUTION), spec
    diagnostics.note("/", "default-camera", "the stage has no camera; rendering a framed default view (author a Camera, or name one)")
    return made_up_product("", DEFAULT_RESOLUTION), spec


def product_of(
    stage: Usd.Stage,
    path: str,
    settings: str | None,
    time: Usd.TimeCode,
    diagnostics: Diagnostics,
    found: RenderPrims,
    known: Sequence[str] | None = None,
) -> tuple[RenderProductSpec, RenderSettingsSpec]:
    """Product and settings for the path of a camera or a product. A camera gets a made-up product (path ""). ``known``: see
    `default_product`."""
    if known is not None and path in known:
        return _product_of_camera(stage, path, settings, time, diagnostics, found)
    prim = stage.GetPrimAtPath(path) if Sdf.Path.IsValidPathString(path) and path.startswith("/") else None
    if not prim:
        cameras = camera_paths(stage)
        by_name = [camera for camera in cameras if camera.rsplit("/", 1)[-1] == path]
        if len(by_name) == 1:  # usdrecord's habit: the camera's name alone
            return product_of(stage, by_name[0], settings, time, diagnostics, found)
        there = ", ".join([*list_products(stage, found=found), *cameras][:10]) or "none"
        masked = " (the stage is masked)" if not stage.GetPopulationMask().IncludesSubtree("/") else ""
        raise StageError(path, f"no prim is there{masked}; products and cameras of the stage: {there}")
    if prim.IsA(UsdRender.Product):
        spec = read_render_settings(stage, path=settings, product=path, time=time, diagnostics=diagnostics, found=found)
        return spec.products[0], spec
    if not prim.IsA(UsdGeom.Camera):
        raise StageError(path, f"expected a Camera or RenderProduct, found type '{prim.GetTypeName() or 'none'}'")
    obstacle = camera_obstacle(prim)
    if obstacle:
        raise StageError(path, f"the camera is {obstacle}, and is not read; author a camera outside of it")
    return _product_of_camera(stage, path, settings, time, diagnostics, found)


def _product_of_camera(
    stage: Usd.Stage, path: str, settings: str | None, time: Usd.TimeCode, diagnostics: Diagnostics, found: RenderPrims
) -> tuple[RenderProductSpec, RenderSettingsSpec]:
    product = product_for_camera(stage, path, diagnostics=diagnostics, found=found)
    if product is None:
        spec = read_render_settings(stage, path=settings, time=time, diagnostics=Diagnostics(), found=found)
        return made_up_product(path, DEFAULT_RESOLUTION), spec
    spec = read_render_settings(stage, path=settings, product=product.path, time=time, diagnostics=diagnostics, found=found)
    # Size, pixel aspect and conform policy are the product's; its window and its vars are not meant by a camera's name.
    made_up = made_up_product(path, tuple(product.resolution))
    policy = product.aspect_ratio_conform_policy
    return replace(made_up, pixel_aspect_ratio=product.pixel_aspect_ratio, aspect_ratio_conform_policy=policy), spec
