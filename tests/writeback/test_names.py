"""From template to file names."""

from __future__ import annotations

import pytest

from hdwarp.errors import ArgumentError
from hdwarp.writeback.names import (
    Output,
    expand,
    format_of,
    has_frame,
    holds_one_aov,
    plan,
    short_names,
    stage_name,
    template_of,
    with_aovs,
)


@pytest.mark.parametrize(
    ("template", "frame", "expected"),
    [
        ("{product}.exr", None, "beauty.exr"),
        ("out/{stage}/{camera}.{aov}.png", None, "out/shot/cam_left.primvars_st.png"),
        ("a.####.exr", 7, "a.0007.exr"),
        ("a.####.exr", 12345, "a.12345.exr"),
        ("a.####.exr", -7, "a.-007.exr"),
        ("a.####.exr", -0.0, "a.0000.exr"),
        ("a.#.exr", 12, "a.12.exr"),
        ("a.###.###.exr", 1.5, "a.001.500.exr"),
        ("a.###.###.exr", -1.25, "a.-01.250.exr"),
        ("a.####.##.exr", 101.3333, "a.0101.33.exr"),
        ("a.####.exr", 1.5, "a.0001.5.exr"),
        ("a.####.exr", -0.25, "a.-000.25.exr"),
        ("a.####.exr", 1 / 3, "a.0000.333.exr"),
        ("a.####.exr", 0.1 + 0.2, "a.0000.3.exr"),
        ("####/a.####.exr", 3, "0003/a.0003.exr"),
        ("a.{frame}.exr", 101.0, "a.101.exr"),
        ("a.{frame}.exr", 1.5, "a.1.5.exr"),
        ("a.{frame:05d}.exr", 42, "a.00042.exr"),
        ("{{x}}.exr", None, "{x}.exr"),
    ],
)
def test_expand(template, frame, expected):
    """Padding as usdrecord does it: the width counts sign, point and decimals."""
    path = expand(template, stage="/shots/shot.usda", product="/Render/beauty", camera="/World/cam_left", aov="primvars:st", frame=frame)
    assert path == expected


@pytest.mark.parametrize(
    ("template", "frame", "words"),
    [
        ("{shot}.exr", None, r"\{shot\} is unknown; there are \{stage\} \{product\} \{camera\} \{aov\} \{frame\} and ####"),
        ("{product.x}.exr", None, "unknown"),
        ("{product!r}.exr", None, "unknown"),
        ("{}.exr", None, "unknown"),
        ("{product.exr", None, "brace"),
        ("a.####.exr", None, "--frames"),
        ("a.{frame}.exr", None, "--frames"),
        ("a.{frame:04d}.exr", 1.5, "####"),
        ("{aov}.exr", None, "leave it out"),
    ],
)
def test_expand_refuses(template, frame, words):
    with pytest.raises(ArgumentError, match=words):
        expand(template, stage="s.usda", product="/Render/p", frame=frame)


@pytest.mark.parametrize(
    ("identifier", "name"),
    [
        ("/a/b/shot.usda", "shot"),
        ("shot.v2.usdc", "shot.v2"),
        ("C:\\shots\\shot.usd", "shot"),
        ("anon:0x55d0c0ffee:tmp.usda", "tmp"),
        ("anon:0x55d0c0ffee", "stage"),
        ("/a/box.usdz[inner/root.usda]", "box"),
        ("/a/my shot.usda:SDF_FORMAT_ARGS:x=y", "my_shot"),
        ("", "stage"),
        ("..usda", "_usda"),
    ],
)
def test_stage_name(identifier, name):
    assert stage_name(identifier) == name


def test_short_names_use_as_much_of_the_path_as_it_takes():
    paths = ["/World/left/cam", "/World/right/cam", "/World/top", "/A/x/cam"]
    assert short_names(paths) == {
        "/World/left/cam": "left_cam",
        "/World/right/cam": "right_cam",
        "/World/top": "top",
        "/A/x/cam": "x_cam",
    }
    assert short_names(["/A/B/cam", "/C/B/cam"]) == {"/A/B/cam": "A_B_cam", "/C/B/cam": "C_B_cam"}
    assert short_names(["/cam", "/A/cam"]) == {"/cam": "cam", "/A/cam": "A_cam"}
    assert sorted(set(short_names(["/A/cam", "/B/cam", "/A_cam"]).values())) == ["A_cam", "B_cam"]  # plan sees to the rest
    assert short_names(["/Wörld/cäm"]) == {"/Wörld/cäm": "cäm"}


def test_formats():
    assert [format_of(name) for name in ("a.exr", "a.PNG", "b.jpg", "b.jpeg", "c.npz")] == ["exr", "png", "jpeg", "jpeg", "npz"]
    assert holds_one_aov("a.png")
    assert not holds_one_aov("a.exr")
    with pytest.raises(ArgumentError, match=r"\.tif.*\.exr, \.png"):
        format_of("a.tif")
    with pytest.raises(ArgumentError, match="no suffix"):
        format_of("out")


def test_default_template(tmp_path):
    """productName where it is an image's, else the product's name; a folder is filled with those."""
    named, plain = Output(product="/Render/p", product_name="renders/beauty.exr"), Output(product="/Render/p", product_name="beauty")
    assert template_of(None, named) == "renders/beauty.exr"
    assert template_of(None, plain) == "{product}.exr"
    assert template_of("out/", named) == "out/{product}.exr"
    assert plan(tmp_path, [plain]) == [str(tmp_path / "p.exr")]
    assert plan("out/", [plain]) == ["out/p.exr"]
    assert plan(None, [Output(product_name="{odd}.exr")]) == ["{odd}.exr"]
    assert plan(None, [Output(stage="/a/shot.usda", camera="/World/cam")]) == ["cam.exr"]
    assert plan(None, [Output(stage="/a/shot.usda")]) == ["shot.exr"]


def test_signs_in_an_existing_folder_are_its_own(tmp_path):
    folder = tmp_path / "c#" / "{x}"
    folder.mkdir(parents=True)
    assert plan(folder / "a.exr", [Output(product="/p")]) == [str(folder / "a.exr")]
    assert plan(folder, [Output(product="/p")]) == [str(folder / "p.exr")]
    assert expand(str(folder / "{product}.##.exr"), product="/p", frame=3) == str(folder / "p.03.exr")
    assert not has_frame(str(folder / "a.exr"))


BEAUTY = Output(stage="s.usda", product="/Render/beauty", camera="/World/cam")
DEPTH = Output(stage="s.usda", product="/Render/depth", camera="/World/cam")


@pytest.mark.parametrize(
    ("out", "outputs", "suggestion"),
    [
        ("a.png", with_aovs(BEAUTY, ["color", "primId"]), "a.{aov}.png"),
        ("a.exr", [BEAUTY, DEPTH], "a.{product}.exr"),
        ("a.exr", [Output(camera="/World/l"), Output(camera="/World/r")], "a.{camera}.exr"),
        ("{product}.exr", [Output("a/s.usda", "/p"), Output("b/s.usda", "/p")], "{product}.{stage}.exr"),
        ("a.exr", [Output(frame=1.0), Output(frame=2.0)], "a.####.exr"),
        ("a.exr", [Output(frame=1.0), Output(frame=1.5)], "a.####.###.exr"),
        ("a.png", [*with_aovs(BEAUTY, ["color", "primId"]), *with_aovs(DEPTH, ["color", "primId"])], "a.{product}.{aov}.png"),
    ],
)
def test_collisions_are_refused_with_a_template_that_works(out, outputs, suggestion):
    with pytest.raises(ArgumentError, match="would hold both") as caught:
        plan(out, outputs)
    assert f"'{suggestion}'" in str(caught.value)
    assert len(set(plan(suggestion, outputs))) == len(outputs)


def test_the_refusal_names_what_collides():
    with pytest.raises(ArgumentError, match="'a.png' would hold both AOV color and AOV primId"):
        plan("a.png", with_aovs(BEAUTY, ["color", "primId"]))
    with pytest.raises(ArgumentError, match="twice"):
        plan("{product}.exr", [BEAUTY, BEAUTY])
    with pytest.raises(ArgumentError, match="would hold both"):
        plan("x/../a.{aov}.png", [*with_aovs(BEAUTY, ["color"]), *with_aovs(DEPTH, ["color"])])


def test_names_that_are_ours_to_choose_are_completed():
    frames = [Output("s.usda", "/Render/beauty", frame=float(number)) for number in (101, 102)]
    assert plan(None, frames) == ["beauty.0101.exr", "beauty.0102.exr"]
    assert plan("out/", frames) == ["out/beauty.0101.exr", "out/beauty.0102.exr"]
    named = [Output("s.usda", "/Render/beauty", frame=number, product_name="r/b.exr") for number in (1.0, 1.5)]
    assert plan(None, named) == ["r/b.0001.000.exr", "r/b.0001.500.exr"]
    assert plan(None, [Output("a/s.usda", "/p"), Output("b/s.usda", "/p")]) == ["p.a_s.exr", "p.b_s.exr"]
    assert plan(None, [Output("s.usda", "/A/p"), Output("s.usda", "/B/p")]) == ["A_p.exr", "B_p.exr"]
    same = [Output("s.usda", "/A/p", product_name="x.exr"), Output("s.usda", "/A/q", product_name="x.exr")]
    assert plan(None, same) == ["x.p.exr", "x.q.exr"]
