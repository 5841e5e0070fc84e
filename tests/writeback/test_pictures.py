"""AOVs as pictures, PNG and JPEG."""

from __future__ import annotations

import io
import json
import math

import numpy as np
import pytest
from PIL import Image

from hdwarp.errors import ArgumentError
from hdwarp.writeback import write, write_file
from hdwarp.writeback.pictures import (
    encode_colour,
    id_colours,
    over_black,
    picture,
    srgb_decode,
    srgb_encode,
    to_8_bits,
    turbo,
    turbo_table,
)
from hdwarp.writeback.png import encode_jpeg, encode_png


@pytest.mark.parametrize(
    ("linear", "code"),
    [(0.0, 0), (0.18, 118), (0.5, 188), (1.0, 255), (2.0, 255), (-1.0, 0), (0.0031308, 10), (math.inf, 255), (math.nan, 0)],
)
def test_srgb(linear, code):
    assert to_8_bits(srgb_encode(np.float32(linear))) == code


def test_srgb_codes_survive_a_round_trip():
    codes = np.arange(256, dtype=np.uint8)
    np.testing.assert_array_equal(to_8_bits(srgb_encode(srgb_decode(codes))), codes)
    assert srgb_decode(codes)[188] == pytest.approx(0.5029, abs=1e-4)


def test_colour_is_unpremultiplied():
    """Half covered by linear 0.5: the file says 188 with alpha 128, not 137."""
    pixel = np.array([[[0.25, 0.0, 0.5, 0.5]]], np.float32)
    assert encode_colour(pixel)[0, 0].tolist() == [188, 0, 255, 128]
    glow = np.array([[[0.5, 0.0, 0.0, 0.0]]], np.float32)
    assert encode_colour(glow)[0, 0].tolist() == [188, 0, 0, 0]
    assert encode_colour(np.full((1, 1, 3), 0.5, np.float32))[0, 0].tolist() == [188, 188, 188]


def test_over_black_is_the_premultiplied_colour():
    """0.5029 and 1 in linear light, half covered: 0.2524 and 0.502."""
    assert over_black(np.array([[[188, 255, 0, 128]]], np.uint8))[0, 0].tolist() == [138, 188, 0]
    assert over_black(np.array([[[188, 255, 7, 255]]], np.uint8))[0, 0].tolist() == [188, 255, 7]


def test_turbo_runs_from_blue_to_red():
    """Against entries of the published lookup table; the polynomial strays most at the dark ends."""
    table = turbo_table().astype(int)
    for index, colour in {0: (48, 18, 59), 64: (41, 187, 236), 128: (164, 252, 60), 192: (251, 128, 34), 255: (122, 4, 3)}.items():
        assert np.abs(table[index] - colour).max() <= (32 if index in (0, 255) else 20), (index, table[index])
    assert turbo(np.array([0.0, 1.0, math.nan])).tolist() == [table[0].tolist(), table[255].tolist(), table[0].tolist()]


def test_ids_have_stable_distinct_colours():
    ids = np.arange(-1, 1000)
    colours = id_colours(ids)
    assert colours[0].tolist() == [0, 0, 0]
    assert len({tuple(colour) for colour in colours.tolist()}) == len(ids)
    assert colours[1:].max(axis=1).min() >= 165  # never dark
    np.testing.assert_array_equal(id_colours(np.array([[7, 2_000_000_000, -1]]))[0, :1], colours[8:9])  # alone or beside far ids
    assert np.abs(np.diff(colours[1:50].astype(int), axis=0)).max(axis=1).min() > 60  # neighbours differ clearly
    assert id_colours(np.array([0, 1]), background=0)[0].tolist() == [0, 0, 0]
    assert id_colours(np.empty((0, 3), np.int32)).shape == (0, 3, 3)


def test_distances_are_red_near_blue_far_black_nowhere(fakes):
    """1, 2 and 4 m: inverse depth puts 2 m a third of the way from far to near."""
    distance = np.array([[1.0, 2.0, 4.0, math.inf]], np.float32)
    frame = fakes.make_frame({"distance_to_camera": distance}, clear={"distance_to_camera": math.inf})
    image, reading = picture(frame, "distance_to_camera")
    assert image[0].tolist() == [turbo_table()[255].tolist(), turbo_table()[85].tolist(), turbo_table()[0].tolist(), [0, 0, 0]]
    assert reading == "Turbo over inverse distance, red 1 m to blue 4 m, black for no hit"


def test_distances_at_their_limits(fakes):
    for values, words in (([[math.inf, math.inf]], "nothing hit"), ([[2.0, 2.0]], "red 2"), ([[-1.0, 3.0]], "over distance, red -1")):
        frame = fakes.make_frame({"cameraDepth": np.array(values, np.float32)}, clear={"cameraDepth": math.inf})
        image, reading = picture(frame, "cameraDepth")
        assert words in reading
        assert image.shape == (1, 2, 3)


def test_clip_depth_takes_the_clear_value_for_no_hit(fakes):
    frame = fakes.make_frame({"depth": np.array([[0.2, 0.8, 1.0]], np.float32)}, clear={"depth": 1})
    assert picture(frame, "depth")[0][0].tolist() == [turbo_table()[255].tolist(), turbo_table()[0].tolist(), [0, 0, 0]]


def test_normals_barycentric_and_positions(fakes):
    frame = fakes.make_frame(
        {
            "normal": np.array([[[0, 0, 1], [-1, 0, 0], [0, 0, 0]]], np.float32),
            "barycentric": np.array([[[1, 0], [0, 0], [0, 0]]], np.float32),
            "position": np.array([[[-2, 5, 0], [2, 5, 8], [math.inf] * 3]], np.float32),
            "primId": np.array([[0, 0, -1]], np.int32),
        }
    )
    assert picture(frame, "normal")[0][0].tolist() == [[128, 128, 255], [0, 128, 128], [0, 0, 0]]
    assert picture(frame, "barycentric")[0][0].tolist() == [[255, 0, 0], [0, 0, 255], [0, 0, 0]]
    image, reading = picture(frame, "position")
    assert image[0].tolist() == [[0, 0, 0], [255, 0, 255], [0, 0, 0]]
    assert "R -2 to 2 m" in reading


@pytest.mark.parametrize(
    ("name", "shape"), [("primvars:st", (2, 3, 2)), ("primvars:weight", (2, 3)), ("primvars:rest", (2, 3, 4)), ("motion", (2, 3, 2))]
)
def test_other_planes_have_some_picture(fakes, name, shape):
    values = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    image, reading = picture(fakes.make_frame({name: values}), name)
    assert image.shape == (2, 3, 3)
    assert image.dtype == np.uint8
    assert reading
    assert image.std() > 0


def test_png_text_and_pixels(fakes):
    """Linear 0.5 is 188 and 0.18 is 118 in the file."""
    color = np.array([[[0.5, 0.18, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0]]], np.float32)
    frame = fakes.make_frame({"color": color}, vars=[("beauty", "color", "color3f")])
    image = Image.open(io.BytesIO(encode_png(frame, "beauty")))
    assert image.mode == "RGBA"
    assert np.asarray(image).tolist() == [[[188, 118, 255, 255], [0, 0, 0, 0]]]
    text = image.text
    assert text["Software"].startswith("hdWarp ")
    assert (text["Camera"], text["AOV"], text["Variable"], text["Time"], text["Reading"]) == (
        "/World/cam",
        "color",
        "beauty",
        "101",
        "sRGB",
    )
    assert json.loads(text["K"]) == frame.K.tolist()
    assert b"sRGB" in encode_png(frame, "beauty")[:64]


def test_png_of_ids_is_opaque_and_lossless(fakes):
    frame = fakes.make_frame({"primId": np.array([[-1, 0, 5]], np.int32)})
    image = Image.open(io.BytesIO(encode_png(frame, "primId")))
    assert image.mode == "RGB"
    np.testing.assert_array_equal(np.asarray(image), id_colours(frame["primId"]))
    assert "one colour an id" in image.text["Reading"]


def test_rgba8_is_written_as_it_is(fakes):
    pixels = np.random.default_rng(0).integers(0, 256, (4, 5, 4)).astype(np.uint8)
    frame = fakes.make_frame({"rgba8": pixels})
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(encode_png(frame, "rgba8")))), pixels)


def test_jpeg_lies_over_black(fakes):
    color = np.zeros((16, 16, 4), np.float32)
    color[:] = 0.25, 0.25, 0.25, 0.5
    image = Image.open(io.BytesIO(encode_jpeg(fakes.make_frame({"color": color}), "color")))
    assert image.mode == "RGB"
    assert np.abs(np.asarray(image).astype(int) - 137).max() <= 2
    assert "Camera: /World/cam" in image.info["comment"].decode()


def test_equal_frames_give_equal_bytes(fakes):
    assert encode_png(fakes.make_frame(), "color") == encode_png(fakes.make_frame(), "color")


def test_one_picture_a_file(tmp_path, frame):
    with pytest.raises(ArgumentError, match=r"would hold both AOV .*use a template such as .*a\.\{aov\}\.png"):
        write(frame, tmp_path / "a.png")
    with pytest.raises(ArgumentError, match="holds one AOV; name one of color, distance_to_image_plane"):
        write_file(frame, tmp_path / "a.png")
    assert list(tmp_path.iterdir()) == []
    assert write_file(frame, tmp_path / "a.png", "normal") == tmp_path / "a.png"
    files = write(frame, tmp_path / "{product}.{aov}.####.png")
    assert [path.name for path in files] == [f"beauty.{name}.0101.png" for name in frame.arrays]
    assert all(Image.open(path).size == (5, 3) for path in files)
    with pytest.raises(ArgumentError, match="holds all AOVs"):
        write_file(frame, tmp_path / "a.exr", "normal")
    with pytest.raises(ArgumentError, match="compression"):
        write_file(frame, tmp_path / "a.png", "normal", compression="zip")
