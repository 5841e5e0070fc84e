"""stage.render_spec: UsdRender settings, products and vars -> plain records, with what products inherit already resolved."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

from pxr import Sdf, Usd, UsdGeom, UsdRender, UsdShade

from hdwarp.errors import Diagnostics, StageError
from hdwarp.stage.cameras import camera_obstacle, plain_value
from hdwarp.stage.open import UNREADABLE
from hdwarp.stage.render_values import RenderValues
from hdwarp.stage.spec import RenderProductSpec, RenderSettingsSpec, RenderVarSpec

# UsdRender's policies; views.conform carries them out.
POLICIES = ("expandAperture", "cropAperture", "adjustApertureWidth", "adjustApertureHeight", "adjustPixelAspectRatio")
MAX_SIDE = 65536  # pixels, as there
MAX_PIXELS = 1 << 30

_ANY_TIME = Usd.TimeCode.Default()  # what UsdRender holds is uniform, productName apart

# The schema's fallbacks
_RESOLUTION = (2048, 1080)
_INCLUDED_PURPOSES = ("default", "render")
_MATERIAL_PURPOSES = ("full", "")


class RenderPrims(NamedTuple):
    """The stage's render prims in path order: one traversal, to be shared between the calls below through ``found``."""

    settings: tuple[Usd.Prim, ...]
    products: tuple[Usd.Prim, ...]


def find_render_prims(stage: Usd.Stage) -> RenderPrims:
    """All RenderSettings and RenderProduct prims, wherever they are."""
    kinds: dict[str, int] = {}  # by prim type: IsA is dearer than a lookup, and stages are large
    found: tuple[list[Usd.Prim], ...] = ([], [], [])
    for prim in stage.Traverse():
        try:
            name = prim.GetTypeName()
        except UnicodeDecodeError:  # of a damaged file
            continue
        kind = kinds.get(name)
        if kind is None:
            kind = kinds[name] = 0 if prim.IsA(UsdRender.Settings) else 1 if prim.IsA(UsdRender.Product) else 2
        if kind < 2:
            found[kind].append(prim)
    settings, products, _ = (tuple(sorted(prims, key=lambda prim: str(prim.GetPath()))) for prims in found)
    return RenderPrims(settings, products)


def read_render_settings(
    stage: Usd.Stage,
    *,
    path: str | None = None,
    product: str | None = None,
    time: Usd.TimeCode = _ANY_TIME,
    diagnostics: Diagnostics | None = None,
    found: RenderPrims | None = None,
) -> RenderSettingsSpec:
    """The settings that apply, and their products in relationship order; with ``product`` (a RenderProduct's path) that one alone.

    Without ``path`` they are the stage's renderSettingsPrimPath, else the only RenderSettings prim whose products include ``product`` (the
    only one of the stage when no product is asked for), else the schema's fallbacks (path ""), with a diagnostic where several would do.
    Settings that list no products but name a camera have one made-up product with path "".

    A settings prim that cannot be read, and a product asked for that cannot, raise StageError. Of the settings' own products, a broken
    one is left out and reported when ``diagnostics`` are given, else raised. A product without camera is kept with camera "".
    """
    found = found or find_render_prims(stage)
    chosen = _settings_prim(stage, path, product, found, diagnostics)
    base = _read_base(chosen, diagnostics) if chosen else None
    products: list[RenderProductSpec] = []
    if product is not None:
        prim = _product_prim(stage, product)
        products.append(_read_product(prim, _inherited(prim, chosen, path is not None, found, diagnostics), time, diagnostics))
    elif chosen:
        values = RenderValues(chosen, diagnostics)
        for target in values.targets("products"):
            try:
                products.append(_read_product(_product_prim(stage, target), base, time, diagnostics))
            except StageError as error:
                if diagnostics is None:
                    raise
                diagnostics.error(error.path, "render-product", f"{error.reason}; the product is not rendered")
        if not products and base.camera and not values.has_targets("products"):
            _check_camera(stage, base.camera, chosen.GetPath())
            _check_image(base, chosen.GetPath())
            products.append(base)
    return _settings_spec(chosen, tuple(products), diagnostics)


def list_products(stage: Usd.Stage, *, found: RenderPrims | None = None, diagnostics: Diagnostics | None = None) -> list[str]:
    """Paths of all products: the stage's own settings first, then the others in path order, each in relationship order; then, in path
    order, products that no settings name."""
    found = found or find_render_prims(stage)
    own = _stage_settings_path(stage)
    known = {str(prim.GetPath()) for prim in found.products}
    paths: dict[str, None] = {}
    for settings in sorted(found.settings, key=lambda prim: str(prim.GetPath()) != own):
        paths.update(dict.fromkeys(path for path in RenderValues(settings, diagnostics).targets("products") if path in known))
    paths.update(dict.fromkeys(str(prim.GetPath()) for prim in found.products))
    return list(paths)


def read_product(
    stage: Usd.Stage,
    path: str,
    *,
    time: Usd.TimeCode = _ANY_TIME,
    diagnostics: Diagnostics | None = None,
    found: RenderPrims | None = None,
) -> RenderProductSpec:
    """One product with what it inherits. Raises StageError with path and cure."""
    return read_render_settings(stage, product=path, time=time, diagnostics=diagnostics, found=found).products[0]


def product_for_camera(
    stage: Usd.Stage, camera_path: str, *, diagnostics: Diagnostics | None = None, found: RenderPrims | None = None
) -> RenderProductSpec | None:
    """The first product in path order that targets the camera, itself or through settings that name it; None if there is none. Products
    that cannot be read are passed over, with a diagnostic."""
    found = found or find_render_prims(stage)
    for prim in found.products:
        # As the product is read by itself; if that gives it no camera of its own, as any settings that list it would have it.
        bases = [_inherited(prim, _settings_prim(stage, None, str(prim.GetPath()), found, None), False, found, None)]
        bases += [_read_base(settings, None) for settings in found.settings if _lists(settings, prim)]
        for base in bases:
            camera = RenderValues(prim).targets("camera")[:1] or ([base.camera] if base else [])
            if camera != [camera_path]:
                continue
            try:
                return _read_product(prim, base, _ANY_TIME, diagnostics)
            except StageError as error:
                if diagnostics is not None:
                    diagnostics.error(error.path, "render-product", f"{error.reason}; the product is not used for <{camera_path}>")
                break
    return None


def made_up_product(camera: str = "", resolution: tuple[int, int] = (1280, 720)) -> RenderProductSpec:
    """The product of a camera that none is authored for: the schema's fallbacks, and a resolution."""
    return RenderProductSpec(
        path="",
        name="",
        product_type="raster",
        camera=camera,
        resolution=resolution,
        pixel_aspect_ratio=1.0,
        aspect_ratio_conform_policy="expandAperture",
        data_window_ndc=(0.0, 0.0, 1.0, 1.0),
        disable_motion_blur=False,
        disable_depth_of_field=False,
        render_vars=(),
    )


def read_namespaced_settings(prim: Usd.Prim) -> dict[str, object]:
    """Authored attributes with a namespace ("outputs:" is none), as plain values; of a connected output the paths of the prims it is
    connected to, as a tuple, rather than its value: UsdRender's rule."""
    settings: dict[str, object] = {}
    try:
        attributes = prim.GetAuthoredAttributes()
    except UNREADABLE:  # a property without a name, in a damaged file
        return settings
    for attribute in attributes:
        name = attribute.GetName()
        output = UsdShade.Output(attribute) if UsdShade.Output.IsOutput(attribute) else None
        if ":" not in (output.GetBaseName() if output else name):
            continue
        sources = UsdShade.Utils.GetValueProducingAttributes(output) if output else []
        if sources:
            settings[name] = tuple(str(source.GetPrim().GetPath()) for source in sources)
        elif (value := attribute.Get(_ANY_TIME)) is not None:
            settings[name] = plain_value(value)
    return settings


def _stage_settings_path(stage: Usd.Stage) -> str:
    return str(stage.GetMetadata("renderSettingsPrimPath") or "")


def _settings_prim(
    stage: Usd.Stage, path: str | None, product: str | None, found: RenderPrims, diagnostics: Diagnostics | None
) -> Usd.Prim | None:
    if path is not None:
        prim = stage.GetPrimAtPath(path) if Sdf.Path.IsValidPathString(path) else None
        if not prim or not prim.IsA(UsdRender.Settings):
            known = ", ".join(str(settings.GetPath()) for settings in found.settings) or "none"
            what = f"a {prim.GetTypeName() or 'typeless prim'}" if prim else "no prim"
            raise StageError(path, f"expected RenderSettings, found {what}; the stage's RenderSettings: {known}")
        return prim
    own = _stage_settings_path(stage)
    if own:
        prim = stage.GetPrimAtPath(own) if Sdf.Path.IsValidPathString(own) else None
        if prim and prim.IsA(UsdRender.Settings):
            return prim
        if diagnostics is not None:
            diagnostics.error(own, "render-settings", "renderSettingsPrimPath names no RenderSettings prim; mend the stage's metadata")
    if product is None:
        several = list(found.settings)
        question = "the stage"
    else:
        prim = stage.GetPrimAtPath(product) if Sdf.Path.IsValidPathString(product) else None
        several = [settings for settings in found.settings if prim and _lists(settings, prim)]
        question = "this product"
    if len(several) == 1:
        return several[0]
    if several and diagnostics is not None:
        names = ", ".join(str(settings.GetPath()) for settings in several)
        diagnostics.note(
            product or "/",
            "several-render-settings",
            f"{len(several)} RenderSettings could apply to {question} ({names}); using the schema's fallbacks. Choose one with settings=,"
            " --renderSettingsPrimPath or the stage's renderSettingsPrimPath",
        )
    return None


def _settings_spec(
    settings: Usd.Prim | None, products: tuple[RenderProductSpec, ...], diagnostics: Diagnostics | None
) -> RenderSettingsSpec:
    if settings is None:
        return RenderSettingsSpec("", products, _INCLUDED_PURPOSES, _MATERIAL_PURPOSES, "")
    values = RenderValues(settings, diagnostics)
    return RenderSettingsSpec(
        path=str(settings.GetPath()),
        products=products,
        included_purposes=values.texts("includedPurposes", _INCLUDED_PURPOSES),
        material_binding_purposes=values.texts("materialBindingPurposes", _MATERIAL_PURPOSES),
        rendering_color_space=values.text("renderingColorSpace"),
        settings=read_namespaced_settings(settings),
    )


def _lists(settings: Usd.Prim, product: Usd.Prim) -> bool:
    return str(product.GetPath()) in RenderValues(settings).targets("products")


def _inherited(
    product: Usd.Prim, chosen: Usd.Prim | None, by_name: bool, found: RenderPrims, diagnostics: Diagnostics | None
) -> RenderProductSpec | None:
    """What a product starts from: the settings that apply, unless they do not list it, were not asked for by name, and one other does."""
    if chosen and not by_name and not _lists(chosen, product):
        holders = [settings for settings in found.settings if _lists(settings, product)]
        if len(holders) == 1:
            chosen = holders[0]
    return _read_base(chosen, diagnostics) if chosen else None


def _product_prim(stage: Usd.Stage, path: str) -> Usd.Prim:
    prim = stage.GetPrimAtPath(path) if Sdf.Path.IsValidPathString(path) else None
    if not prim:
        raise StageError(path, "no RenderProduct is there; mend the path, or the products relationship that targets it")
    if not prim.IsA(UsdRender.Product):
        raise StageError(path, f"expected a RenderProduct, found type '{prim.GetTypeName()}'")
    return prim


def _read_base(settings: Usd.Prim, diagnostics: Diagnostics | None) -> RenderProductSpec:
    """The settings' own values, fallbacks included, as the product that all its products start from."""
    return _with_values(made_up_product(resolution=_RESOLUTION), RenderValues(settings, diagnostics))


def _with_values(spec: RenderProductSpec, values: RenderValues) -> RenderProductSpec:
    """``spec`` with what a settings or product prim has authored, if it is of the schema's type."""
    camera = values.targets("camera")
    # instantaneousShutter (deprecated) closes the shutter as it opens; upstream's reader means it to switch motion blur off, and so do we.
    blurless = [name for name in ("disableMotionBlur", "instantaneousShutter") if values.is_authored(name)]
    inherited = spec.disable_motion_blur
    flags = [values.flag(name, inherited) for name in blurless]
    policy = values.text("aspectRatioConformPolicy", spec.aspect_ratio_conform_policy)
    if policy not in POLICIES:
        if values.diagnostics is not None:
            message = f"aspectRatioConformPolicy is '{policy}'; known: {', '.join(POLICIES)}. Using expandAperture"
            values.diagnostics.warning(values.prim.GetPath(), "conform-policy", message)
        policy = "expandAperture"
    return replace(
        spec,
        camera=camera[0] if camera else spec.camera,
        resolution=values.integers("resolution", tuple(spec.resolution)),
        pixel_aspect_ratio=values.number("pixelAspectRatio", spec.pixel_aspect_ratio),
        aspect_ratio_conform_policy=policy,
        data_window_ndc=values.numbers("dataWindowNDC", spec.data_window_ndc),
        disable_motion_blur=any(flags) if flags else inherited,
        disable_depth_of_field=values.flag("disableDepthOfField", spec.disable_depth_of_field),
    )


def _read_product(prim: Usd.Prim, base: RenderProductSpec | None, time: Usd.TimeCode, diagnostics: Diagnostics | None) -> RenderProductSpec:
    path, stage = prim.GetPath(), prim.GetStage()
    notes = diagnostics if diagnostics is not None else Diagnostics()
    values = RenderValues(prim, notes)
    spec = _with_values(base or made_up_product(resolution=_RESOLUTION), values)
    if spec.camera:
        _check_camera(stage, spec.camera, path)
    else:
        notes.error(
            path, "product-without-camera", "neither the product nor its RenderSettings target a camera; author its camera relationship"
        )
    _check_image(spec, path)
    product_type = values.text("productType", "raster")
    if product_type != UsdRender.Tokens.raster:
        notes.warning(path, "product-type", f"productType '{product_type}' is not supported; drawn as raster")
    return replace(
        spec,
        path=str(path),
        name=values.text("productName", time=time),
        product_type=product_type,
        render_vars=_read_vars(values, notes),
        settings=read_namespaced_settings(prim),
    )


def _read_vars(product: RenderValues, notes: Diagnostics) -> tuple[RenderVarSpec, ...]:
    path, stage = product.prim.GetPath(), product.prim.GetStage()
    specs: list[RenderVarSpec] = []
    targets = product.targets("orderedVars")
    for target in dict.fromkeys(targets):
        prim = stage.GetPrimAtPath(target)
        if not prim or not prim.IsA(UsdRender.Var):
            what = f"is a {prim.GetTypeName() or 'typeless prim'}, not a RenderVar" if prim else "does not exist"
            notes.error(path, "render-var", f"orderedVars targets <{target}>, which {what}; mend the relationship. The var is left out")
            continue
        var = RenderValues(prim, notes)
        if any(spec.name == prim.GetName() for spec in specs):
            notes.warning(path, "render-var-name", f"several vars are called '{prim.GetName()}'; <{target}> is left out, rename its prim")
            continue
        specs.append(
            RenderVarSpec(
                path=target,
                name=prim.GetName(),
                data_type=var.text("dataType"),
                source_name=var.text("sourceName"),
                source_type=var.text("sourceType", "raw"),
                settings=read_namespaced_settings(prim),
            )
        )
    if not targets:
        notes.note(path, "no-render-vars", "orderedVars is empty; rendering color")
    return tuple(specs)


def _check_camera(stage: Usd.Stage, camera: str, path: Sdf.Path) -> None:
    prim = stage.GetPrimAtPath(camera)
    if not prim:
        raise StageError(path, f"its camera <{camera}> does not exist (or is inactive); target an existing Camera")
    if not prim.IsA(UsdGeom.Camera):
        raise StageError(path, f"its camera <{camera}> is a {prim.GetTypeName() or 'typeless prim'}; target a Camera")
    obstacle = camera_obstacle(prim)
    if obstacle:
        raise StageError(path, f"its camera <{camera}> is {obstacle}; target a Camera outside of it")


def _check_image(spec: RenderProductSpec, path: Sdf.Path) -> None:
    """What can be told without a camera; views.conform checks that the data window holds a pixel."""
    width, height = spec.resolution
    if not (1 <= width <= MAX_SIDE and 1 <= height <= MAX_SIDE):
        raise StageError(path, f"resolution is {width} x {height}; author sides from 1 to {MAX_SIDE}")
    if width * height > MAX_PIXELS:
        raise StageError(path, f"resolution is {width} x {height}; author at most {MAX_PIXELS} pixels in all")
    if not (math.isfinite(spec.pixel_aspect_ratio) and spec.pixel_aspect_ratio > 0.0):
        raise StageError(path, f"pixelAspectRatio is {spec.pixel_aspect_ratio:g}; author a finite value above 0")
    window = spec.data_window_ndc
    text = ", ".join(f"{edge:g}" for edge in window)
    if not all(math.isfinite(edge) for edge in window) or window[0] >= window[2] or window[1] >= window[3]:
        raise StageError(path, f"dataWindowNDC is ({text}); author finite numbers, x min < x max and y min < y max")
