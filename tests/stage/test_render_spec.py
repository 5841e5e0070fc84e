"""UsdRender settings, products and vars: what is inherited, which settings apply, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from pxr import Gf, Sdf, Usd, UsdGeom, UsdRender, UsdShade

from hdwarp.errors import Diagnostics, Severity, StageError
from hdwarp.stage.cameras import read_camera
from hdwarp.stage.render_spec import (
    find_render_prims,
    list_products,
    made_up_product,
    product_for_camera,
    read_product,
    read_render_settings,
)
from hdwarp.views import pinhole
from hdwarp.views.conform import image_spec


@pytest.fixture
def stage():
    """Two cameras, a settings prim with a camera of its own."""
    stage = Usd.Stage.CreateInMemory()
    for name in "AB":
        UsdGeom.Camera.Define(stage, f"/Cam{name}")
    settings = new_settings(stage, "/Render/Settings", camera="/CamA")
    settings.CreateResolutionAttr(Gf.Vec2i(640, 480))
    return stage


def new_settings(stage, path, camera=None, products=()):
    settings = UsdRender.Settings.Define(stage, path)
    if camera:
        settings.CreateCameraRel().SetTargets([camera])
    if products:
        settings.CreateProductsRel().SetTargets(list(products))
    return settings


def new_product(stage, path, camera=None, settings=None):
    product = UsdRender.Product.Define(stage, path)
    if camera:
        product.CreateCameraRel().SetTargets([camera])
    if settings:
        UsdRender.Settings.Get(stage, settings).CreateProductsRel().AddTarget(path)
    return product


def new_var(stage, path, **values):
    var = UsdRender.Var.Define(stage, path)
    for name, value in values.items():
        var.GetPrim().GetAttribute(name).Set(value)
    return var


def codes(diagnostics):
    return [(item.path, item.code, item.severity) for item in diagnostics]


# --- inheritance


def test_products_override_with_authored_values_only(stage):
    settings = UsdRender.Settings.Get(stage, "/Render/Settings")
    settings.CreatePixelAspectRatioAttr(2.0)
    settings.CreateAspectRatioConformPolicyAttr("cropAperture")
    settings.CreateDataWindowNDCAttr(Gf.Vec4f(0.25, 0.0, 0.75, 1.0))
    settings.CreateDisableDepthOfFieldAttr(True)
    new_product(stage, "/Render/Plain", settings="/Render/Settings")
    own = new_product(stage, "/Render/Own", "/CamB", settings="/Render/Settings")
    own.CreateResolutionAttr(Gf.Vec2i(2048, 1080))  # an authored value, though equal to the schema's fallback
    own.CreatePixelAspectRatioAttr(1.0)
    plain, own = read_render_settings(stage).products
    assert (plain.camera, plain.resolution, plain.pixel_aspect_ratio) == ("/CamA", (640, 480), 2.0)
    assert (plain.aspect_ratio_conform_policy, plain.data_window_ndc) == ("cropAperture", (0.25, 0.0, 0.75, 1.0))
    assert plain.disable_depth_of_field
    assert (own.camera, own.resolution, own.pixel_aspect_ratio) == ("/CamB", (2048, 1080), 1.0)
    assert own.aspect_ratio_conform_policy == "cropAperture"


def test_a_product_of_its_own_has_the_schemas_fallbacks(stage):
    new_product(stage, "/Alone", "/CamB")
    product = read_product(stage, "/Alone")
    assert product.resolution == (2048, 1080)
    assert product.aspect_ratio_conform_policy == "expandAperture"
    assert product.data_window_ndc == (0.0, 0.0, 1.0, 1.0)
    assert (product.product_type, product.name, product.render_vars) == ("raster", "", ())
    spec = read_render_settings(stage, product="/Alone")
    assert (spec.path, spec.included_purposes, spec.material_binding_purposes) == ("", ("default", "render"), ("full", ""))


@pytest.mark.parametrize("holder", ["settings", "product"])
@pytest.mark.parametrize("attribute", ["disableMotionBlur", "instantaneousShutter"])
def test_both_ways_to_switch_motion_blur_off(stage, holder, attribute):
    """Upstream reads disableMotionBlur twice and so loses instantaneousShutter; here it counts."""
    product = new_product(stage, "/P", settings="/Render/Settings")
    prim = product.GetPrim() if holder == "product" else stage.GetPrimAtPath("/Render/Settings")
    prim.GetAttribute(attribute).Set(True)
    assert read_product(stage, "/P").disable_motion_blur
    product.CreateDisableMotionBlurAttr(False)  # the product's own word wins over the settings'
    assert read_product(stage, "/P").disable_motion_blur == (holder == "product" and attribute == "instantaneousShutter")


def test_relationships_are_forwarded(stage):
    """A camera and vars by way of other relationships."""
    holder = stage.DefinePrim("/Shot")
    holder.CreateRelationship("hero").SetTargets(["/CamB"])
    new_product(stage, "/P", "/Shot.hero")
    assert read_product(stage, "/P").camera == "/CamB"


def test_vars_keep_their_order_and_come_once(stage):
    for name, source in (("beauty", "color"), ("z", "cameraDepth"), ("ids", "primId")):
        new_var(stage, f"/Render/Vars/{name}", sourceName=source)
    new_var(stage, "/Render/Vars/z", dataType="float", sourceName="cameraDepth")
    product = new_product(stage, "/P", "/CamA")
    product.CreateOrderedVarsRel().SetTargets([f"/Render/Vars/{name}" for name in ("z", "beauty", "ids")])
    found = read_product(stage, "/P").render_vars
    assert [var.name for var in found] == ["z", "beauty", "ids"]
    assert (found[0].data_type, found[0].source_name, found[0].source_type) == ("float", "cameraDepth", "raw")
    assert (found[1].data_type, found[1].path) == ("", "/Render/Vars/beauty")


def test_namespaced_settings(stage):
    new_product(stage, "/P", "/CamA", settings="/Render/Settings")
    prim = stage.GetPrimAtPath("/P")
    prim.CreateAttribute("driver:parameters:OpenEXR:compression", Sdf.ValueTypeNames.String).Set("zip")
    prim.CreateAttribute("outputs:plain", Sdf.ValueTypeNames.Token).Set("not namespaced")
    integrator = UsdShade.Shader.Define(stage, "/Render/Integrator")
    integrator.CreateOutput("result", Sdf.ValueTypeNames.Token)
    settings = stage.GetPrimAtPath("/Render/Settings")
    settings.CreateAttribute("hdwarp:samples", Sdf.ValueTypeNames.Int).Set(4)
    output = UsdShade.Output(settings.CreateAttribute("outputs:ri:integrator", Sdf.ValueTypeNames.Token))
    output.GetAttr().Set("a value that the connection beats")
    output.ConnectToSource(integrator.ConnectableAPI(), "result")
    spec = read_render_settings(stage)
    assert spec.settings == {"hdwarp:samples": 4, "outputs:ri:integrator": ("/Render/Integrator",)}
    assert spec.products[0].settings == {"driver:parameters:OpenEXR:compression": "zip"}  # the settings' own are not passed on


def test_product_name_is_read_at_the_time(stage):
    product = new_product(stage, "/P", "/CamA")
    product.CreateProductNameAttr().Set("first.exr", 1.0)
    product.GetProductNameAttr().Set("second.exr", 2.0)
    assert read_product(stage, "/P", time=Usd.TimeCode(2.0)).name == "second.exr"
    assert read_product(stage, "/P").name == ""


# --- which settings apply


def test_the_stages_own_settings_come_first(stage):
    new_settings(stage, "/Render/Other")
    assert read_render_settings(stage).path == ""
    stage.SetMetadata("renderSettingsPrimPath", "/Render/Other")
    assert read_render_settings(stage).path == "/Render/Other"


def test_the_only_settings_need_no_naming(stage):
    assert read_render_settings(stage).path == "/Render/Settings"


def test_a_product_chooses_the_only_settings_that_list_it(stage):
    other = new_settings(stage, "/Render/Other", camera="/CamB")
    other.CreateIncludedPurposesAttr(["default", "proxy"])
    new_product(stage, "/P", settings="/Render/Other")
    spec = read_render_settings(stage, product="/P")
    assert (spec.path, spec.included_purposes, spec.products[0].camera) == ("/Render/Other", ("default", "proxy"), "/CamB")


def test_a_product_listed_elsewhere_inherits_from_there(stage):
    """How to render is the stage's settings' to say; what the product starts from is its own settings'."""
    stage.SetMetadata("renderSettingsPrimPath", "/Render/Settings")
    new_settings(stage, "/Render/Other", camera="/CamB")
    new_product(stage, "/P", settings="/Render/Other")
    spec = read_render_settings(stage, product="/P")
    assert (spec.path, spec.products[0].camera) == ("/Render/Settings", "/CamB")


def test_several_settings_that_could_apply_are_named(stage):
    new_settings(stage, "/Render/Other", camera="/CamB")
    new_product(stage, "/P", "/CamB", settings="/Render/Other")
    UsdRender.Settings.Get(stage, "/Render/Settings").CreateProductsRel().AddTarget("/P")
    diagnostics = Diagnostics()
    spec = read_render_settings(stage, product="/P", diagnostics=diagnostics)
    assert (spec.path, spec.products[0].resolution) == ("", (2048, 1080))
    message = next(item.message for item in diagnostics if item.code == "several-render-settings")
    assert "/Render/Other" in message
    assert "/Render/Settings" in message
    spec = read_render_settings(stage, path="/Render/Settings", product="/P")
    assert (spec.path, spec.products[0].resolution) == ("/Render/Settings", (640, 480))


def test_settings_without_products_make_one_image(stage):
    (product,) = read_render_settings(stage).products
    assert (product.path, product.camera, product.resolution) == ("", "/CamA", (640, 480))


def test_order_of_products(stage):
    """The stage's settings' products, other settings' products, each in relationship order; then the rest by path."""
    for name in "abcde":
        new_product(stage, f"/Products/{name}", "/CamA")
    new_settings(stage, "/Render/First", products=["/Products/e", "/Products/b"])
    UsdRender.Settings.Get(stage, "/Render/Settings").CreateProductsRel().SetTargets(["/Products/d", "/Products/b"])
    assert list_products(stage) == [f"/Products/{name}" for name in "ebdac"]
    stage.SetMetadata("renderSettingsPrimPath", "/Render/Settings")
    assert list_products(stage) == [f"/Products/{name}" for name in "dbeac"]
    assert [product.path for product in read_render_settings(stage).products] == ["/Products/d", "/Products/b"]


# --- products for a camera


def test_the_first_product_that_targets_the_camera(stage):
    new_product(stage, "/Z", "/CamB").CreateResolutionAttr(Gf.Vec2i(10, 10))
    new_product(stage, "/M", "/CamB").CreateResolutionAttr(Gf.Vec2i(20, 10))
    new_product(stage, "/A", "/CamA")
    assert product_for_camera(stage, "/CamB").path == "/M"
    assert product_for_camera(stage, "/Nobody") is None


def test_a_product_that_targets_the_camera_through_its_settings(stage):
    new_product(stage, "/P", settings="/Render/Settings")
    assert product_for_camera(stage, "/CamA").resolution == (640, 480)
    # Also where several settings list it and one of them has the camera.
    new_settings(stage, "/Render/Other", camera="/CamB", products=["/P"]).CreateResolutionAttr(Gf.Vec2i(30, 20))
    assert product_for_camera(stage, "/CamB").resolution == (30, 20)
    assert product_for_camera(stage, "/CamB").camera == "/CamB"


def test_a_products_own_camera_hides_the_settings(stage):
    new_product(stage, "/P", "/CamB", settings="/Render/Settings")
    assert product_for_camera(stage, "/CamA") is None


def test_broken_products_are_passed_over(stage):
    new_product(stage, "/A", "/CamB").CreateResolutionAttr(Gf.Vec2i(0, 10))
    new_product(stage, "/B", "/CamB")
    diagnostics = Diagnostics()
    assert product_for_camera(stage, "/CamB", diagnostics=diagnostics).path == "/B"
    assert ("/A", "render-product", Severity.ERROR) in codes(diagnostics)


# --- what is refused


def breakage(name, product):
    if name == "resolution 0":
        product.CreateResolutionAttr(Gf.Vec2i(0, 480))
    elif name == "resolution negative":
        product.CreateResolutionAttr(Gf.Vec2i(640, -1))
    elif name == "resolution huge":
        product.CreateResolutionAttr(Gf.Vec2i(1_000_000, 480))
    elif name == "too many pixels":
        product.CreateResolutionAttr(Gf.Vec2i(65536, 65536))
    elif name == "pixel aspect":
        product.CreatePixelAspectRatioAttr(0.0)
    elif name == "window":
        product.CreateDataWindowNDCAttr(Gf.Vec4f(0.5, 0.0, 0.5, 1.0))
    elif name == "no such camera":
        product.CreateCameraRel().SetTargets(["/Nobody"])
    elif name == "not a camera":
        product.CreateCameraRel().SetTargets(["/Render"])


BREAKAGES = {
    "resolution 0": "0 x 480",
    "resolution negative": "640 x -1",
    "resolution huge": "65536",
    "too many pixels": "pixels",
    "pixel aspect": "pixelAspectRatio",
    "window": "dataWindowNDC",
    "no such camera": "</Nobody> does not exist",
    "not a camera": "target a Camera",
}


@pytest.mark.parametrize("name", BREAKAGES)
def test_broken_products(stage, name):
    breakage(name, new_product(stage, "/Bad", settings="/Render/Settings"))
    new_product(stage, "/Good", settings="/Render/Settings")
    with pytest.raises(StageError, match=BREAKAGES[name]) as caught:
        read_product(stage, "/Bad")
    assert caught.value.path == "/Bad"
    with pytest.raises(StageError):
        read_render_settings(stage)
    diagnostics = Diagnostics()
    assert [product.path for product in read_render_settings(stage, diagnostics=diagnostics).products] == ["/Good"]
    assert ("/Bad", "render-product", Severity.ERROR) in codes(diagnostics)


def test_a_product_without_camera_is_kept_and_said():
    stage = Usd.Stage.CreateInMemory()
    new_product(stage, "/P")
    diagnostics = Diagnostics()
    assert read_product(stage, "/P", diagnostics=diagnostics).camera == ""
    assert ("/P", "product-without-camera", Severity.ERROR) in codes(diagnostics)


def test_paths_that_are_not_what_they_should_be(stage):
    with pytest.raises(StageError, match="the stage's RenderSettings: /Render/Settings"):
        read_render_settings(stage, path="/CamA")
    with pytest.raises(StageError, match="no prim"):
        read_render_settings(stage, path="not a path")
    with pytest.raises(StageError, match="expected a RenderProduct, found type 'Camera'"):
        read_render_settings(stage, product="/CamA")
    with pytest.raises(StageError, match="no RenderProduct is there"):
        read_product(stage, "/Nowhere")
    UsdRender.Settings.Get(stage, "/Render/Settings").CreateProductsRel().SetTargets(["/Nowhere"])
    diagnostics = Diagnostics()
    assert read_render_settings(stage, diagnostics=diagnostics).products == ()
    assert ("/Nowhere", "render-product", Severity.ERROR) in codes(diagnostics)


def test_a_broken_renderSettingsPrimPath_is_said(stage):
    stage.SetMetadata("renderSettingsPrimPath", "/Nowhere")
    diagnostics = Diagnostics()
    assert read_render_settings(stage, diagnostics=diagnostics).path == "/Render/Settings"
    assert codes(diagnostics) == [("/Nowhere", "render-settings", Severity.ERROR)]


def test_what_is_said_and_still_rendered(stage):
    product = new_product(stage, "/P", "/CamA")
    product.CreateProductTypeAttr("deepRaster")
    product.CreateAspectRatioConformPolicyAttr("stretch")
    new_var(stage, "/Vars/a")
    new_var(stage, "/Other/a")
    product.CreateOrderedVarsRel().SetTargets(["/Vars/a", "/CamA", "/Nowhere", "/Other/a"])
    diagnostics = Diagnostics()
    spec = read_product(stage, "/P", diagnostics=diagnostics)
    assert spec.aspect_ratio_conform_policy == "expandAperture"
    assert [var.path for var in spec.render_vars] == ["/Vars/a"]
    assert [code for _, code, _ in codes(diagnostics)] == ["conform-policy", "product-type", "render-var", "render-var", "render-var-name"]


def test_no_vars_is_a_note(stage):
    new_product(stage, "/P", "/CamA")
    diagnostics = Diagnostics()
    read_product(stage, "/P", diagnostics=diagnostics)
    assert codes(diagnostics) == [("/P", "no-render-vars", Severity.NOTE)]


def test_the_made_up_product():
    product = made_up_product("/Cam")
    assert (product.path, product.camera, product.resolution) == ("", "/Cam", (1280, 720))


# --- stages with known answers


def camera_of(stage, product):
    prim = stage.GetPrimAtPath(product.camera)
    matrix = np.array(UsdGeom.XformCache().GetLocalToWorldTransform(prim)).T
    return read_camera(prim, Usd.TimeCode.Default(), matrix, UsdGeom.GetStageMetersPerUnit(stage), Diagnostics())


@pytest.mark.parametrize(
    ("case", "product", "K"),
    [
        ("01_aperture_offset", "/Render/Product", (80.0, 80.0, 20.0, 15.0)),
        ("02_expand_aperture", "/Render/Product", (732.99928, 732.99928, 320.0, 240.0)),
        ("03_camera_units", "/Render/ProductMm", (73.299928, 73.299928, 32.0, 32.0)),
        ("03_camera_units", "/Render/ProductHuge", (73.299928, 73.299928, 32.0, 32.0)),
        ("04_forward_depth", "/Render/Product", (2.0, 2.0, 2.0, 2.0)),
        ("06_zup_camera", "/Render/Product", (5.0, 5.0, 5.0, 5.0)),
    ],
)
def test_intrinsics_of_the_cases(shared, case, product, K):
    stage = Usd.Stage.Open(str(shared / "cases" / f"{case}.usda"))
    spec = read_product(stage, product)
    image = image_spec(spec.resolution, spec.pixel_aspect_ratio, spec.aspect_ratio_conform_policy, spec.data_window_ndc)
    found = pinhole.intrinsics(camera_of(stage, spec), image)
    assert (found[0, 0], found[1, 1], found[0, 2], found[1, 2]) == pytest.approx(K, rel=1e-7)


def test_focal_lengths_of_case_03(shared):
    stage = Usd.Stage.Open(str(shared / "cases" / "03_camera_units.usda"))
    found = {path: camera_of(stage, read_product(stage, path)).focal_length for path in list_products(stage)}
    assert found == {"/Render/ProductMm": pytest.approx(0.024, rel=1e-6), "/Render/ProductHuge": pytest.approx(2.4, rel=1e-6)}


def test_pixels_of_case_06(shared):
    """East is in pixel (6, 4), North in (5, 2), 5 away."""
    stage = Usd.Stage.Open(str(shared / "cases" / "06_zup_camera.usda"))
    pixels, depth = pinhole.project(
        camera_of(stage, read_product(stage, "/Render/Product")), image_spec((10, 10)), [(1.5, 0.5, 0.0), (0.5, 2.5, 0.0)]
    )
    np.testing.assert_allclose(pixels, [(6.5, 4.5), (5.5, 2.5)], atol=1e-6)
    np.testing.assert_allclose(depth, 5.0)


def test_settings_of_case_10(shared):
    stage = Usd.Stage.Open(str(shared / "cases" / "10_purpose.usda"))
    diagnostics = Diagnostics()
    spec = read_render_settings(stage, product="/Render/Product", diagnostics=diagnostics)
    assert (spec.path, spec.included_purposes) == ("", ("default", "render"))
    assert "several-render-settings" in [item.code for item in diagnostics]
    found = {
        name: read_render_settings(stage, path=f"/Render/{name}", product="/Render/Product").included_purposes
        for name in ("Fallback", "DefaultOnly", "WithProxy", "Everything")
    }
    assert found == {
        "Fallback": ("default", "render"),
        "DefaultOnly": ("default",),
        "WithProxy": ("default", "proxy"),
        "Everything": ("default", "render", "proxy", "guide"),
    }


def test_one_traversal_serves_all_calls(stage):
    new_product(stage, "/P", settings="/Render/Settings")
    found = find_render_prims(stage)
    assert [str(prim.GetPath()) for prim in found.products] == ["/P"]
    assert list_products(stage, found=found) == ["/P"]
    assert product_for_camera(stage, "/CamA", found=found).path == "/P"
