"""The command line as a user meets it: files, exit codes, one line an error, nothing half written."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hdwarp.cli import main

STAGE = """#usda 1.0
(
    metersPerUnit = 1
    upAxis = "Y"
)
def Camera "camera"
{
    float focalLength = 50
    float horizontalAperture = 64
    float verticalAperture = 48
    float2 clippingRange = (0.1, 100)
}
def Sphere "ball"
{
    double3 xformOp:translate = (0, 0, -5)
    uniform token[] xformOpOrder = ["xformOp:translate"]
}
"""
PRODUCTS = """
def Scope "Render"
{
    def RenderSettings "settings"
    {
        rel products = [</Render/first>, </Render/second>]
        rel camera = </camera>
        uniform int2 resolution = (32, 24)
    }
    def RenderProduct "first"
    {
        rel orderedVars = [</Render/depth>, </Render/colour>]
    }
    def RenderProduct "second"
    {
        uniform int2 resolution = (16, 12)
        rel orderedVars = </Render/colour>
    }
    def RenderVar "depth"
    {
        uniform token dataType = "float"
        uniform string sourceName = "distance_to_image_plane"
    }
    def RenderVar "colour"
    {
        uniform string sourceName = "color"
    }
}
"""


@pytest.fixture
def stage(tmp_path):
    path = tmp_path / "shot.usda"
    path.write_text(STAGE)
    return path


@pytest.fixture
def products(tmp_path):
    path = tmp_path / "products.usda"
    path.write_text(STAGE + PRODUCTS)
    return path


def run(*arguments, code: int = 0) -> None:
    assert main([str(argument) for argument in arguments]) == code


def test_a_camera_to_npz(stage, tmp_path):
    out = tmp_path / "new" / "shot.npz"
    planes = [word for name in ("color", "distance_to_image_plane", "primId") for word in ("--aov", name)]
    run("render", stage, "--camera", "/camera", "--resolution", "64x48", *planes, "-o", out, "--device", "cpu")
    with np.load(out) as planes:
        assert planes["color"].shape == (48, 64, 4)
        assert planes["distance_to_image_plane"][24, 32] == pytest.approx(4.0, abs=5e-3)
        assert planes["K"][0, 0] == pytest.approx(50.0)
        assert planes["prim_paths"].tolist() == ["/ball"]


def test_every_product_to_its_own_exr(products, tmp_path):
    run("render", products, "-o", tmp_path / "{product}.exr", "--device", "cpu")
    assert sorted(path.name for path in tmp_path.glob("*.exr")) == ["first.exr", "second.exr"]


def test_positional_output_as_usdrecord_takes_it(stage, tmp_path):
    run("render", stage, tmp_path / "a.png", "--imageWidth", "64", "--device", "cpu")
    from PIL import Image

    with Image.open(tmp_path / "a.png") as picture:
        assert picture.size == (64, 48)


def test_a_stage_without_camera_is_framed(tmp_path):
    path = tmp_path / "bare.usda"
    path.write_text(STAGE.replace('def Camera "camera"', 'over "camera"'))
    run("render", path, "-o", tmp_path / "bare.npz", "--resolution", "64x48", "--aov", "primId", "--device", "cpu")
    with np.load(tmp_path / "bare.npz") as planes:
        assert (planes["primId"] == 0).sum() > 300


def test_files_are_not_overwritten_silently(stage, tmp_path, capsys):
    out = tmp_path / "a.npz"
    run("render", stage, "-o", out, "--resolution", "8x8", "--device", "cpu")
    before = out.read_bytes()
    run("render", stage, "-o", out, "--resolution", "4x4", "--device", "cpu", code=1)
    assert "--overwrite" in capsys.readouterr().err
    assert out.read_bytes() == before
    run("render", stage, "-o", out, "--resolution", "4x4", "--device", "cpu", "--resume")
    assert out.read_bytes() == before
    run("render", stage, "-o", out, "--resolution", "4x4", "--device", "cpu", "--overwrite")
    assert out.read_bytes() != before


def test_several_outputs_into_one_picture_are_refused_with_a_template_that_works(products, tmp_path, capsys):
    run("render", products, "-o", tmp_path / "one.png", "--device", "cpu", code=2)
    assert "{aov}" in capsys.readouterr().err
    assert not list(tmp_path.glob("*.png"))


def test_one_broken_product_does_not_stop_the_others(products, tmp_path, capsys):
    products.write_text(products.read_text().replace("resolution = (16, 12)", "resolution = (0, 12)"))
    run("render", products, "-o", tmp_path / "{product}.exr", "--device", "cpu", code=3)
    assert (tmp_path / "first.exr").exists() and not (tmp_path / "second.exr").exists()
    assert "/Render/second" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["render", "missing.usda", "-o", "{tmp}/a.png"], 1, "missing.usda"),
        (["render", "{stage}", "--camera", "/ball", "-o", "{tmp}/a.png"], 1, "expected a Camera"),
        (["render", "{stage}", "--camera", "/nothing", "-o", "{tmp}/a.png"], 1, "/camera"),
        (["render", "{stage}", "--product", "/camera", "-o", "{tmp}/a.png"], 1, "expected a RenderProduct"),
        (["render", "{stage}", "--aov", "colour", "-o", "{tmp}/a.png"], 2, "color"),
        (["render", "{stage}", "--aov", "semantic_segmentation", "-o", "{tmp}/a.png"], 1, "labels"),
        (["render", "{stage}", "--resolution", "0x5", "-o", "{tmp}/a.png"], 2, "(0, 5)"),
        (["render", "{stage}", "--resolution", "1000000x1000000", "-o", "{tmp}/a.png"], 2, "1000000"),
        (["render", "{stage}", "--samples", "8", "-o", "{tmp}/a.png"], 2, "use 4 or 9"),
        (["render", "{stage}", "--device", "cuda:7", "-o", "{tmp}/a.png"], 2, "cuda:7"),
        (["render", "{stage}", "--complexity", "high", "-o", "{tmp}/a.png"], 1, "complexity"),
        (["render", "{stage}", "--jobs", "4", "-o", "{tmp}/a.png"], 1, "--jobs 4"),
        (["render", "{stage}", "--color-correction", "gamma", "-o", "{tmp}/a.png"], 2, "sRGB, disabled, openColorIO"),
        (["render", "{stage}", "--ocio-view", "Raw", "-o", "{tmp}/a.png"], 2, "--ocio-view goes with"),
        (["render", "{stage}", "-color", "openColorIO", "--ocio-config", "no.ocio", "-o", "{tmp}/a.png"], 2, "no.ocio"),
        (["render", "{stage}", "-color", "openColorIO", "--ocio-config", "ocio://default", "-o", "{tmp}/a.exr"], 2, ".exr and .npz hold"),
        (["render", "{stage}", "-o", "{tmp}/a.bmp"], 2, ".bmp"),
        (["render", "{stage}", "-o", "{stage}/a.png"], 1, "a.png"),
        (["render", "{stage}", "--frames", "1:", "-o", "{tmp}/a.png"], 2, "--frames"),
        (["render", "{stage}", "--no-such-flag"], 2, "no-such-flag"),
        (["view", "{stage}"], 1, "not supported yet"),
        (["import", "robot.xml", "-o", "robot.usda"], 1, "not supported yet"),
    ],
)
def test_errors_are_one_line_with_reason_and_cure(arguments, code, words, stage, tmp_path, capsys):
    arguments = [argument.format(stage=stage, tmp=tmp_path, aov="{aov}") for argument in arguments]
    if arguments[0] == "render":
        arguments += ["--device", "cpu"] if "--device" not in arguments else []
    run(*arguments, code=code)
    said = capsys.readouterr()
    assert words in said.err and "Traceback" not in said.err
    assert said.out == ""
    assert not list(tmp_path.glob("*.png")) and not list(tmp_path.glob(".hdwarp*"))


def test_models_are_drawn_whole_without_draw_modes(tmp_path):
    """usdrecord's --disableDrawMode: the ball in place of the box that its model stands in for it."""
    (tmp_path / "a.usda").write_text("""#usda 1.0
        def Xform "m" (
            kind = "component"
            prepend apiSchemas = ["GeomModelAPI"]
        )
        {
            uniform token model:drawMode = "cards"
            uniform bool model:applyDrawMode = 1
            def Sphere "ball" {}
        }
    """)
    for flags, path in (([], "/m"), (["--disableDrawMode"], "/m/ball"), (["--disable-draw-mode"], "/m/ball")):
        out = tmp_path / f"{len(list(tmp_path.iterdir()))}.npz"
        run("render", tmp_path / "a.usda", *flags, "--aov", "primId", "--image-width", "16", "-o", out)
        assert np.load(out)["prim_paths"].tolist() == [path]


def test_usdrecords_spellings(products, tmp_path):
    short = ["-cam", "/camera", "-c", "low", "-r", "hdWarp", "-w", "32", "-d", "-color", "sRGB"]
    long = ["--disableGpu", "--renderSettingsPrimPath", "/Render/settings", "--disableDrawMode", "--purposes", "default,render"]
    run("render", products, *short, *long, tmp_path / "a.{aov}.png")
    assert sorted(path.name for path in tmp_path.glob("*.png")) == ["a.color.png"]  # a camera's name does not mean its products' vars


def test_colour_correction_of_8_bits(stage, tmp_path):
    """The same linear colour, by sRGB's curve, without one, and through a view that has the curve alone."""
    from PIL import Image

    how = {
        "srgb": [],
        "off": ["--colorCorrectionMode", "disabled"],
        "ocio": ["-color", "openColorIO", "--ocio-config", "ocio://default", "--ocio-view", "Un-tone-mapped"],
    }
    for name, options in how.items():
        run("render", stage, "--resolution", "32x24", "--device", "cpu", *options, tmp_path / f"{name}.png")
    run("render", stage, "--resolution", "32x24", "--device", "cpu", "-color", "disabled", tmp_path / "linear.npz")
    srgb, off, ocio = (np.asarray(Image.open(tmp_path / f"{name}.png")).astype(int) for name in how)
    linear = np.load(tmp_path / "linear.npz")["color"]
    assert linear[12, 16, 0] > 0.2
    np.testing.assert_array_equal(off, np.floor(np.clip(linear, 0.0, 1.0) * 255.0 + 0.5))
    assert np.abs(srgb - ocio).max() <= 1 < np.abs(srgb - off).max()


def test_a_mask_limits_what_is_drawn(stage, tmp_path):
    stage.write_text(stage.read_text() + 'def Sphere "other"\n{\n}\n')
    for mask, count in (("/ball", 1), ("/ball,/other", 2)):
        run(
            "render",
            stage,
            "--camera",
            "/camera",
            "--mask",
            mask,
            "-o",
            tmp_path / f"{count}.npz",
            "--resolution",
            "8x8",
            "--device",
            "cpu",
        )
        with np.load(tmp_path / f"{count}.npz") as planes:
            assert len(planes["prim_paths"]) == count


def test_an_interrupted_run_keeps_what_is_whole_and_can_resume(products, tmp_path, monkeypatch, capsys):
    from hdwarp.batch import jobs

    original, calls = jobs.render_shot, []

    def interrupt(*arguments, **options):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(*arguments, **options)

    monkeypatch.setattr(jobs, "render_shot", interrupt)
    run("render", products, "-o", tmp_path / "{product}.npz", "--device", "cpu", code=3)
    assert "--resume" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".usda"] == ["first.npz"]
    before = (tmp_path / "first.npz").stat().st_mtime_ns
    run("render", products, "-o", tmp_path / "{product}.npz", "--device", "cpu", "--resume")
    assert (tmp_path / "second.npz").exists() and (tmp_path / "first.npz").stat().st_mtime_ns == before


def test_json_on_stdout_and_nothing_else(products, tmp_path, capsys):
    run("render", products, "-o", tmp_path / "{product}.exr", "--device", "cpu", "--json")
    report = json.loads(capsys.readouterr().out)
    assert [output["product"] for output in report["outputs"]] == ["/Render/first", "/Render/second"]
    assert report["failed"] == []


def test_a_results_layer_opens_over_the_source(products, tmp_path):
    from pxr import Usd

    run("render", products, "-o", tmp_path / "{product}.exr", "--results", tmp_path / "results.usda", "--device", "cpu")
    stage = Usd.Stage.Open(str(tmp_path / "results.usda"))
    assert stage.GetPrimAtPath("/ball") and stage.GetPrimAtPath("/Render/first")
    assert not stage.GetCompositionErrors()


def test_a_results_layer_holds_what_resume_kept(products, tmp_path):
    from pxr import Usd

    arguments = ["render", products, "-o", tmp_path / "{product}.exr", "--device", "cpu"]
    run(*arguments)
    (tmp_path / "second.exr").unlink()
    run(*arguments, "--resume", "--results", tmp_path / "results.usda")
    stage = Usd.Stage.Open(str(tmp_path / "results.usda"))
    for product in ("/Render/first", "/Render/second"):
        assert stage.GetPrimAtPath(product).GetAttribute("hdwarp:K").Get()
    run(*arguments, "--resume", "--results", tmp_path / "results.txt", code=2)


def test_a_results_layer_never_replaces_a_layer_of_the_stage(products, tmp_path, capsys):
    (tmp_path / "sub.usda").write_text(products.read_text())
    top = tmp_path / "top.usda"
    top.write_text("#usda 1.0\n(\n    subLayers = [@sub.usda@]\n)\n")
    before = (tmp_path / "sub.usda").read_bytes()
    for target in ("sub.usda", "top.usda"):
        run("render", top, "-o", tmp_path / "{product}.npz", "--results", tmp_path / target, "--overwrite", "--device", "cpu", code=2)
    assert (tmp_path / "sub.usda").read_bytes() == before and not list(tmp_path.glob("*.npz"))
    assert "a layer of the stage itself" in capsys.readouterr().err


def test_a_first_camera_that_is_broken_gives_way_to_the_next(stage, tmp_path):
    stage.write_text(
        stage.read_text().replace('def Camera "camera"', 'def Camera "broken"\n{\n    float focalLength = 0\n}\ndef Camera "camera"')
    )
    run("render", stage, "-o", tmp_path / "a.npz", "--resolution", "8x6", "--device", "cpu")
    with np.load(tmp_path / "a.npz") as planes:
        assert str(planes["camera"]) == "/camera"
    run("render", stage, "--camera", "/broken", "-o", tmp_path / "b.npz", "--device", "cpu", code=1)


def test_json_also_when_nothing_could_be_done(stage, tmp_path, capsys):
    for arguments in (["render", "nope.usda"], ["render", stage, "-o", "a.bmp"], ["render", stage, "--camera", "/nope"]):
        assert main([*map(str, arguments), "--json", "--device", "cpu"]) in (1, 2)
        report = json.loads(capsys.readouterr().out)
        assert report["outputs"] == [] and len(report["failed"]) == 1


def test_a_plane_that_could_not_be_made_shows_in_the_exit_code(products, tmp_path, capsys):
    products.write_text(products.read_text().replace('sourceName = "color"', 'sourceName = "nonsense"'))
    run("render", products, "--product", "/Render/first", "-o", tmp_path / "a.npz", "--device", "cpu", code=3)
    assert "/Render/colour" in capsys.readouterr().err


def test_an_unknown_purpose_on_the_settings_is_named_and_ignored(products, tmp_path, capsys):
    products.write_text(
        products.read_text().replace(
            "rel camera = </camera>", 'rel camera = </camera>\nuniform token[] includedPurposes = ["default", "foo"]'
        )
    )
    run("render", products, "-o", tmp_path / "{product}.npz", "--device", "cpu")
    said = capsys.readouterr().err
    assert "/Render/settings" in said and "'foo'" in said


def test_image_width_keeps_the_products_window(products, tmp_path):
    products.write_text(
        products.read_text().replace("resolution = (16, 12)", "resolution = (16, 12)\nuniform float4 dataWindowNDC = (0, 0, 0.5, 1)")
    )
    run("render", products, "--product", "/Render/second", "-w", "64", "-o", tmp_path / "a.npz", "--device", "cpu")
    with np.load(tmp_path / "a.npz") as planes:
        assert planes["color"].shape == (48, 32, 4)


def test_inspect_prints_cameras_products_and_counts(products, capsys):
    run("inspect", products, "--json")
    summary = json.loads(capsys.readouterr().out)
    assert summary["cameras"][0]["path"] == "/camera"
    assert summary["renders"][0]["K"][0][0] == pytest.approx(25.0)
    assert summary["drawn"]["prims"] == 1
    run("inspect", products)
    assert "/Render/first" in capsys.readouterr().out


def test_check_fails_on_errors_only(stage, tmp_path, capsys):
    run("check", stage)
    broken = tmp_path / "broken.usda"
    broken.write_text(STAGE + 'def Mesh "bad" { int[] faceVertexCounts = [3]\n int[] faceVertexIndices = [0, 1, 9]\n'
                      "point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 1, 0)] }\n")  # fmt: skip
    run("check", broken, code=1)
    assert "/bad" in capsys.readouterr().err


def test_frames_of_an_animated_stage(stage, tmp_path):
    text = stage.read_text().replace(
        "double3 xformOp:translate = (0, 0, -5)", "double3 xformOp:translate.timeSamples = { 1: (0, 0, -5), 3: (0, 0, -7) }"
    )
    stage.write_text(text)
    options = ["--aov", "distance_to_image_plane", "--resolution", "9x9", "--device", "cpu"]
    run("render", stage, "--frames", "1:3", *options, "-o", tmp_path / "f.####.npz")
    depths = []
    for frame in (1, 2, 3):
        with np.load(tmp_path / f"f.{frame:04d}.npz") as planes:
            depths.append(float(planes["distance_to_image_plane"][4, 4]))
    assert depths == pytest.approx([4, 5, 6], abs=1e-5)


@pytest.fixture
def with_missing_primvar(products):
    """/Render/colour asks for a primvar that no prim has."""
    var = 'uniform string sourceName = "nope"\n        uniform token sourceType = "primvar"'
    products.write_text(products.read_text().replace('uniform string sourceName = "color"', var))
    return products


NAMED = ["--camera", "/camera", "--aov", "distance_to_image_plane", "--aov", "primvars:nope"]


@pytest.mark.parametrize("asked", [["--product", "/Render/first"], NAMED], ids=["vars", "names"])
@pytest.mark.parametrize("out", ["a.exr", "a.npz", "a.{aov}.png"])
def test_a_primvar_that_no_prim_has_costs_its_plane_alone(with_missing_primvar, asked, out, tmp_path, capsys):
    """Asked for by a RenderVar or by name, in one file or one a plane: the rest is written, and the exit code is 3."""
    target, results = tmp_path / "out" / out, tmp_path / "results.usda"
    run("render", with_missing_primvar, *asked, "-o", target, "--results", results, "--device", "cpu", "--json", code=3)
    told = capsys.readouterr()
    (output,) = json.loads(told.out)["outputs"]
    assert output["aovs"] == ["distance_to_image_plane"] and output["error"] is None
    assert output["written"] == [str(path) for path in (tmp_path / "out").iterdir()] and len(output["written"]) == 1
    (item,) = [item for item in json.loads(told.out)["diagnostics"] if item["code"] == "render-var"]
    assert item["path"] == ("/camera" if asked is NAMED else "/Render/colour") and "'nope'" in item["message"]
    assert "nope" not in results.read_text()
    run("render", with_missing_primvar, *asked, "-o", target, "--resume", "--device", "cpu", code=3 if "{aov}" in out else 0)


@pytest.mark.parametrize("asked", [["--product", "/Render/first"], NAMED], ids=["vars", "names"])
def test_strict_fails_for_a_primvar_that_no_prim_has(with_missing_primvar, asked, tmp_path, capsys):
    run("render", with_missing_primvar, *asked, "-o", tmp_path / "a.exr", "--strict", "--device", "cpu", code=1)
    assert "no prim has a primvar 'nope'" in capsys.readouterr().err
    assert not (tmp_path / "a.exr").exists()


@pytest.mark.parametrize(
    "asked", [["--product", "/Render/second"], ["--camera", "/camera", "--aov", "primvars:nope"]], ids=["vars", "names"]
)
def test_a_picture_of_nothing_but_a_missing_primvar_fails(with_missing_primvar, asked, tmp_path, capsys):
    run("render", with_missing_primvar, *asked, "-o", tmp_path / "a.png", "--device", "cpu", code=1)
    err = capsys.readouterr().err
    assert "nope" in err and "defect" not in err and not (tmp_path / "a.png").exists()
