"""author.products: render products, their vars and the settings that list them."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from pxr import Gf, Sdf, Tf, Usd, UsdGeom, UsdRender

from hdwarp.errors import ArgumentError
from hdwarp.stage.render_spec import MAX_SIDE, POLICIES

SETTINGS_PATH = "/Render/Settings"  # where settings are made when the stage has none
VARS_PATH = "/Render/Vars"

# dataType of a RenderVar by AOV: what its pixels hold, as a USD value type. rgba8 has no such type of its own.
DATA_TYPES = {
    "color": "color4f",
    "rgba8": "color4f",
    "albedo": "color4f",
    "depth": "float",
    "cameraDepth": "float",
    "distance_to_image_plane": "float",
    "distance_to_camera": "float",
    "normal": "normal3f",
    "Neye": "normal3f",
    "Ngeom": "normal3f",
    "position": "point3f",
    "Peye": "point3f",
    "primId": "int",
    "instanceId": "int",
    "elementId": "int",
    "triangleId": "int",
    "barycentric": "float2",
    "materialId": "int",
    "bodyId": "int",
    "instanceRow": "int",
    "worldId": "int",
    "semantic_segmentation": "int",
    "instance_segmentation": "int",
    "instance_id_segmentation": "int",
    "motion": "float2",
}
_PRIMVARS = "primvars:"


def add_product(
    stage: Usd.Stage,
    path: str,
    camera: UsdGeom.Camera | Usd.Prim | Sdf.Path | str,
    resolution: tuple[int, int],
    aovs: Sequence[str] | Mapping[str, str] = ("color",),
    *,
    name: str | None = None,
    policy: str | None = None,
    data_window: tuple[float, float, float, float] | None = None,
    pixel_aspect_ratio: float | None = None,
) -> UsdRender.Product:
    """Author a RenderProduct: a camera, a resolution in pixels (width, height), and a RenderVar an AOV under /Render/Vars.

    ``aovs``: names of AOVs ("primvars:st" for a primvar), or a mapping from var names to them. ``name``: productName (a file name);
    ``policy``: aspectRatioConformPolicy; ``data_window``: dataWindowNDC. The product joins the stage's render settings; a stage without
    gets /Render/Settings, named by renderSettingsPrimPath. Raises ArgumentError for what cannot be authored.
    """
    path = _prim_path(path)
    resolution = checked_resolution(resolution)
    camera_path = _camera_path(stage, camera)
    sources = dict(aovs) if isinstance(aovs, Mapping) else {_var_name(aov): aov for aov in ([aovs] if isinstance(aovs, str) else aovs)}
    for var, aov in sources.items():
        _check_aov(aov)
        if not Tf.IsValidIdentifier(var):
            raise ArgumentError(f"{var!r} cannot be the name of a RenderVar; use letters, digits and underscores")
    if policy is not None and policy not in POLICIES:
        raise ArgumentError(f"policy is {policy!r}; known: {', '.join(POLICIES)}")

    _define_scopes(stage, path.GetParentPath())
    product = UsdRender.Product.Define(stage, path)
    product.CreateCameraRel().SetTargets([camera_path])
    product.CreateResolutionAttr(Gf.Vec2i(*resolution))
    product.CreateOrderedVarsRel().SetTargets([_define_var(stage, var, aov) for var, aov in sources.items()])
    if name is not None:
        product.CreateProductNameAttr(name)
    if policy is not None:
        product.CreateAspectRatioConformPolicyAttr(policy)
    if data_window is not None:
        product.CreateDataWindowNDCAttr(Gf.Vec4f(*data_window))
    if pixel_aspect_ratio is not None:
        product.CreatePixelAspectRatioAttr(float(pixel_aspect_ratio))
    _join_settings(stage, path)
    return product


def products_of(stage: Usd.Stage, camera_path: Sdf.Path) -> list[UsdRender.Product]:
    """The products that target a camera themselves, in path order."""
    products = [UsdRender.Product(prim) for prim in stage.Traverse() if prim.IsA(UsdRender.Product)]
    return sorted(
        (product for product in products if camera_path in product.GetCameraRel().GetForwardedTargets()[:1]),
        key=lambda product: str(product.GetPath()),
    )


def product_path_for(stage: Usd.Stage, camera_path: Sdf.Path) -> str:
    """A free path under /Render with the camera's name, or its whole path where cameras share a name."""
    for name in (camera_path.name, str(camera_path).strip("/").replace("/", "_")):
        if not stage.GetPrimAtPath(f"/Render/{name}"):
            return f"/Render/{name}"
    number = 1
    while stage.GetPrimAtPath(f"/Render/{name}_{number}"):
        number += 1
    return f"/Render/{name}_{number}"


def checked_resolution(resolution: tuple[int, int]) -> tuple[int, int]:
    try:
        width, height = (int(side) for side in resolution)
        whole = (width, height) == tuple(resolution)
    except (TypeError, ValueError, OverflowError):
        whole = False
    if not whole or not (1 <= width <= MAX_SIDE and 1 <= height <= MAX_SIDE):
        raise ArgumentError(f"resolution is {resolution!r}; it must be (width, height), whole pixels from 1 to {MAX_SIDE}")
    return width, height


def _prim_path(path: str) -> Sdf.Path:
    text = str(path)
    if not Sdf.Path.IsValidPathString(text) or not Sdf.Path(text).IsPrimPath() or not Sdf.Path(text).IsAbsolutePath():
        raise ArgumentError(f"{text!r} is not a prim path; expected one like /Render/Product")
    return Sdf.Path(text)


def _camera_path(stage: Usd.Stage, camera: UsdGeom.Camera | Usd.Prim | Sdf.Path | str) -> Sdf.Path:
    path = camera.GetPath() if hasattr(camera, "GetPath") else _prim_path(camera)
    prim = stage.GetPrimAtPath(path)
    if not prim or not prim.IsA(UsdGeom.Camera):
        raise ArgumentError(f"<{path}> is no Camera of the stage; add it first (add_camera), or mend the path")
    return path


def _var_name(aov: str) -> str:
    return Tf.MakeValidIdentifier(str(aov))


def _check_aov(aov: str) -> None:
    if aov in DATA_TYPES or (aov.startswith(_PRIMVARS) and len(aov) > len(_PRIMVARS)):
        return
    near = difflib.get_close_matches(aov, DATA_TYPES, 1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise ArgumentError(f"no AOV is called {aov!r}; {hint}known: {', '.join(DATA_TYPES)}, primvars:NAME")


def _define_scopes(stage: Usd.Stage, path: Sdf.Path) -> None:
    """Scopes where nothing is yet: /Render is one by convention."""
    for prefix in path.GetPrefixes():
        prim = stage.GetPrimAtPath(prefix)
        if not prim or not prim.IsDefined():
            UsdGeom.Scope.Define(stage, prefix)


def _define_var(stage: Usd.Stage, name: str, aov: str) -> Sdf.Path:
    """The RenderVar of that name under /Render/Vars: shared by products that want the same, numbered where they do not."""
    primvar = aov.startswith(_PRIMVARS)
    wanted = (DATA_TYPES.get(aov, "float3"), aov.removeprefix(_PRIMVARS), "primvar" if primvar else "raw")
    path = Sdf.Path(VARS_PATH).AppendChild(name)
    number = 0
    while stage.GetPrimAtPath(path):
        var = UsdRender.Var(stage.GetPrimAtPath(path))
        if var and (var.GetDataTypeAttr().Get(), var.GetSourceNameAttr().Get(), var.GetSourceTypeAttr().Get()) == wanted:
            return path
        # The var's name is the name of the output, so that it moves to another scope rather than changing.
        number += 1
        path = Sdf.Path(f"{VARS_PATH}_{number}").AppendChild(name)
    _define_scopes(stage, path.GetParentPath())
    var = UsdRender.Var.Define(stage, path)
    var.CreateDataTypeAttr(wanted[0])
    var.CreateSourceNameAttr(wanted[1])
    var.CreateSourceTypeAttr(wanted[2])
    return path


def _join_settings(stage: Usd.Stage, product: Sdf.Path) -> None:
    """List the product in the stage's settings, else in its only settings; a stage without any gets some, and says which they are."""
    own = stage.GetMetadata("renderSettingsPrimPath")
    settings = stage.GetPrimAtPath(own) if own and Sdf.Path.IsValidPathString(own) else None
    if not settings or not settings.IsA(UsdRender.Settings):
        found = [prim for prim in stage.Traverse() if prim.IsA(UsdRender.Settings)]
        if len(found) > 1:
            return  # which of them the product belongs to is the author's to say
        if found:
            settings = found[0]
        else:
            _define_scopes(stage, Sdf.Path(SETTINGS_PATH).GetParentPath())
            settings = UsdRender.Settings.Define(stage, SETTINGS_PATH).GetPrim()
        with Usd.EditContext(stage, stage.GetRootLayer()):  # this metadata counts in the root layer only
            stage.SetMetadata("renderSettingsPrimPath", str(settings.GetPath()))
    relationship = UsdRender.Settings(settings).CreateProductsRel()
    if product not in relationship.GetForwardedTargets():
        relationship.AddTarget(product)
