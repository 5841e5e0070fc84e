"""Linear colour as 8 bits: sRGB, disabled, and through OpenColorIO, against closed forms and OpenColorIO itself."""

from __future__ import annotations

import io

import numpy as np
import OpenImageIO as oiio
import pytest
from PIL import Image

import hdwarp
from hdwarp.errors import ArgumentError
from hdwarp.writeback import write, write_file
from hdwarp.writeback.display import _AP0_FROM_REC709, Display, display_of
from hdwarp.writeback.pictures import encode_colour, picture
from hdwarp.writeback.png import encode_jpeg, encode_png

CONFIG = """ocio_profile_version: 2
search_path: ""
roles: {{default: raw, {roles}}}
displays:
  Screen:
    - !<View> {{name: Twice, colorspace: twice}}
    - !<View> {{name: Plain, colorspace: lin}}
  Wall:
    - !<View> {{name: Plain, colorspace: lin}}
colorspaces:
  - !<ColorSpace>
    name: raw
    isdata: true
  - !<ColorSpace>
    name: lin
  - !<ColorSpace>
    name: twice
    from_scene_reference: !<MatrixTransform> {{matrix: [2,0,0,0, 0,2,0,0, 0,0,2,0, 0,0,0,1]}}
"""
COLOUR = np.array([[[0.1, 0.2, 0.05, 0.5], [0.25, 0.0, 1.5, 1.0], [0.0, 0.0, 0.0, 0.0], [0.3, 0.1, 0.2, 0.0]]], np.float32)


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "tiny.ocio"
    path.write_text(CONFIG.format(roles="scene_linear: lin"))
    return str(path)


@pytest.fixture
def frame(fakes):
    return fakes.make_frame({"color": COLOUR})


def test_srgb_is_the_default(frame):
    image, reading = Display().encode(COLOUR)
    assert reading == "sRGB"
    np.testing.assert_array_equal(image, encode_colour(COLOUR))
    np.testing.assert_array_equal(picture(frame, "color")[0], image)


def test_disabled_is_linear_and_unpremultiplied():
    """0.1 at half coverage is 0.2: 51 of 255. What covers nothing has no straight form and stays."""
    image, reading = Display("disabled").encode(COLOUR)
    assert reading == "linear"
    assert image[0].tolist() == [[51, 102, 26, 128], [64, 0, 255, 255], [0, 0, 0, 0], [77, 26, 51, 0]]
    over_black, _ = Display("disabled").encode(COLOUR, opaque=True)
    assert over_black[0].tolist() == [[26, 51, 13], [64, 0, 255], [0, 0, 0], [77, 26, 51]]


def test_the_file_says_what_its_codes_are(frame):
    """PNG's own chunks: gAMA 1 for linear codes, sRGB for those; a view of OpenColorIO by name alone."""
    linear = encode_png(frame, "color", display=Display("disabled"))
    assert Image.open(io.BytesIO(linear)).info["gamma"] == 1.0 and b"sRGB\0" not in linear
    assert Image.open(io.BytesIO(encode_png(frame, "color"))).info["srgb"] == 0
    shown = Image.open(io.BytesIO(encode_png(frame, "color", display=Display("openColorIO", "ocio://default"))))
    assert "gamma" not in shown.info and "srgb" not in shown.info
    assert shown.text["Reading"] == ("OpenColorIO: view 'ACES 2.0 - SDR 100 nits (Rec.709)' of display 'sRGB - Display' in ocio://default")


def test_a_view_of_a_config(config, fakes):
    """A view that doubles: of 0.1 half covered, 0.2, it makes 0.4, which is 102; over black 0.1 becomes 0.2, which is 51."""
    image, reading = Display("openColorIO", config).encode(COLOUR)  # the first display and view are the defaults
    assert reading == f"OpenColorIO: view 'Twice' of display 'Screen' in {config}"
    assert image[0].tolist() == [[102, 204, 51, 128], [128, 0, 255, 255], [0, 0, 0, 0], [153, 51, 102, 0]]
    jpeg = encode_jpeg(
        fakes.make_frame({"color": np.broadcast_to(COLOUR[:, :1], (16, 16, 4))}), "color", display=Display("openColorIO", config)
    )
    assert np.abs(np.asarray(Image.open(io.BytesIO(jpeg))).astype(int)[8, 8] - [51, 102, 26]).max() <= 2
    plain, _ = Display("openColorIO", config, display="Wall").encode(COLOUR)
    np.testing.assert_array_equal(plain, Display("disabled").encode(COLOUR)[0])


def test_the_built_in_configs_view_without_tone_mapping_is_the_curve_of_srgb():
    ramp = np.linspace(0.0, 1.2, 300, dtype=np.float32).reshape(10, 10, 3)
    shown, _ = Display("openColorIO", "ocio://default", view="Un-tone-mapped").encode(ramp)
    assert np.abs(shown.astype(int) - encode_colour(ramp)).max() <= 1
    mapped, _ = Display("openColorIO", "ocio://default").encode(ramp)
    assert np.abs(mapped.astype(int) - encode_colour(ramp)).max() > 10


def test_a_config_that_knows_aces_alone_gets_aces(tmp_path):
    """A space called ACES2065-1 by its role: linear Rec.709 is turned into it first, by the matrix that OpenColorIO has, too."""
    source = oiio.ImageBuf(np.eye(3, dtype=np.float32)[None])
    ap0 = oiio.ImageBufAlgo.colorconvert(source, "lin_rec709", "ACES2065-1", colorconfig="ocio://default").get_pixels(oiio.FLOAT)[0].T
    assert np.abs(ap0 - _AP0_FROM_REC709).max() < 1e-6
    path = tmp_path / "aces.ocio"
    path.write_text(CONFIG.format(roles="aces_interchange: lin, scene_linear: twice"))
    pixel = np.array([[[0.5, 0.25, 0.125]]], np.float32)
    shown, _ = Display("openColorIO", str(path), view="Plain").encode(pixel)
    assert np.abs(shown[0, 0] - ap0 @ pixel[0, 0] * 255.0).max() <= 0.51


def test_what_is_not_finite_is_shown(config):
    pixels = np.array([[[np.nan, np.inf, -np.inf], [-1.0, 0.5, 1e30]]], np.float32)
    assert Display("openColorIO", config).encode(pixels)[0][0].tolist() == [[0, 255, 0], [0, 255, 255]]
    assert Display("disabled").encode(pixels)[0][0].tolist() == [[0, 255, 0], [0, 128, 255]]
    assert Display("openColorIO", config).encode(np.zeros((0, 4, 4), np.float32))[0].shape == (0, 4, 4)


def test_the_environments_config(config, monkeypatch):
    monkeypatch.setenv("OCIO", config)
    assert "tiny.ocio" in display_of("openColorIO").encode(COLOUR)[1]
    monkeypatch.delenv("OCIO")
    with pytest.raises(ArgumentError, match=r"no OpenColorIO config: .*ocio://default.*\$OCIO"):
        display_of("openColorIO").check()


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ({"config": "/no/such.ocio"}, "non-existent"),
        ({"display": "Phone"}, "there are 'Screen', 'Wall'"),
        ({"view": "Thrice"}, "there are 'Twice', 'Plain'"),
        ({"display": "Wall", "view": "Twice"}, "there are 'Plain'"),
    ],
)
def test_what_is_not_there_is_met_with_what_is(names, words, config):
    with pytest.raises(ArgumentError, match=words):
        Display("openColorIO", **{"config": config, **names}).check()


def test_configs_that_cannot_be_read_are_told(tmp_path):
    (tmp_path / "broken.ocio").write_text("ocio_profile_version: 2\nnonsense: [")
    with pytest.raises(ArgumentError, match=r"broken.ocio.*yaml"):
        Display("openColorIO", str(tmp_path / "broken.ocio")).check()
    (tmp_path / "bare.ocio").write_text(CONFIG.format(roles="matte_paint: twice"))
    with pytest.raises(ArgumentError, match="lin_rec709_scene"):
        Display("openColorIO", str(tmp_path / "bare.ocio")).check()


@pytest.mark.parametrize("given", ["gamma", 2.2, ("sRGB",)])
def test_what_is_no_display_is_refused(given):
    with pytest.raises(ArgumentError, match="sRGB, disabled, openColorIO"):
        display_of(given)


def test_names_go_with_opencolorio():
    for names in ({"view": "Raw"}, {"config": "a.ocio"}, {"display": 3}):
        with pytest.raises(ArgumentError, match=next(iter(names))):
            Display("disabled", **names)


def test_files_take_a_display(tmp_path, config, frame):
    """`Frame.save` hands it on; EXR and NPZ hold linear colour, and say so."""
    write(frame, tmp_path / "a.png", display=hdwarp.Display("openColorIO", config))
    assert np.asarray(Image.open(tmp_path / "a.png"))[0, 0].tolist() == [102, 204, 51, 128]
    write_file(frame, tmp_path / "b.png", display="disabled")
    assert np.asarray(Image.open(tmp_path / "b.png"))[0, 0].tolist() == [51, 102, 26, 128]
    for name in ("a.exr", "a.npz"):
        with pytest.raises(ArgumentError, match="linear"):
            write(frame, tmp_path / name, display="disabled")
        assert not (tmp_path / name).exists()


def test_encoded_colour_and_planes_of_numbers_are_what_they_were(config, fakes):
    """rgba8 is sRGB in itself; ids and distances are no colour."""
    arrays = {"rgba8": np.array([[[188, 0, 255, 128]]], np.uint8), "primId": np.array([[3]], np.int32)}
    for name in arrays:
        ours, plain = (
            picture(fakes.make_frame(arrays), name, display=Display("openColorIO", config)),
            picture(fakes.make_frame(arrays), name),
        )
        np.testing.assert_array_equal(ours[0], plain[0])
        assert ours[1] == plain[1]
