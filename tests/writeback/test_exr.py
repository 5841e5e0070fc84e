"""OpenEXR files, read back with OpenEXR itself."""

from __future__ import annotations

import json
import math
import os
import threading

import numpy as np
import OpenEXR
import pytest

from hdwarp.errors import ArgumentError
from hdwarp.writeback import write_file
from hdwarp.writeback.exr import encode, write_exr


def read(path) -> dict[str, tuple[dict, dict[str, np.ndarray]]]:
    """Part name -> (header, channel -> pixels)."""
    with OpenEXR.File(str(path), separate_channels=True) as file:
        return {part.name(): (dict(part.header), {name: channel.pixels for name, channel in part.channels.items()}) for part in file.parts}


@pytest.fixture
def written(tmp_path, frame):
    write_exr(frame, tmp_path / "a.exr")
    return read(tmp_path / "a.exr")


def test_a_part_for_each_aov_in_order(written):
    assert list(written) == ["color", "distance_to_image_plane", "normal", "primId", "position", "barycentric"]
    assert {name: set(channels) for name, (_, channels) in written.items()} == {
        "color": {"R", "G", "B", "A"},
        "distance_to_image_plane": {"Z"},
        "normal": {"X", "Y", "Z"},
        "primId": {"id"},
        "position": {"X", "Y", "Z"},
        "barycentric": {"U", "V"},
    }


def test_floats_and_ids_come_back_bit_for_bit(written, frame):
    distance = written["distance_to_image_plane"][1]["Z"]
    assert distance.dtype == np.float32
    np.testing.assert_array_equal(distance, frame["distance_to_image_plane"])
    assert np.isposinf(distance[0]).all()
    for name, letters in (("normal", "XYZ"), ("position", "XYZ"), ("barycentric", "UV")):
        channels = written[name][1]
        np.testing.assert_array_equal(np.stack([channels[letter] for letter in letters], axis=-1), frame[name])
    ids = written["primId"][1]["id"]
    assert ids.dtype == np.uint32
    assert (ids[0] == 4294967295).all()
    np.testing.assert_array_equal(ids.view(np.int32), frame["primId"])


def test_unauthored_colour_is_half_rounded_to_nearest(written, frame):
    channels = written["color"][1]
    for index, letter in enumerate("RGBA"):
        assert channels[letter].dtype == np.float16
        np.testing.assert_array_equal(channels[letter], frame["color"][..., index].astype(np.float16))
    assert channels["R"].dtype.itemsize == 2


@pytest.mark.parametrize(
    ("data_type", "dtype"),
    [
        ("", "f2"),
        ("half4", "f2"),
        ("color3h", "f2"),
        ("color4h", "f2"),
        ("color3f", "f4"),
        ("color4f", "f4"),
        ("float4", "f4"),
        ("float", "f4"),
    ],
)
def test_the_vars_type_chooses_the_precision_and_alpha_is_kept(tmp_path, fakes, data_type, dtype):
    frame = fakes.make_frame(vars=[("beauty", "color", data_type)])
    write_exr(frame, tmp_path / "a.exr")
    header, channels = read(tmp_path / "a.exr")["beauty"]
    assert set(channels) == set("RGBA")
    assert channels["A"].dtype == np.dtype(dtype)
    assert header["hdwarp/aov"] == "color"
    assert header.get("hdwarp/data_type", "") == data_type
    if dtype == "f4":
        np.testing.assert_array_equal(channels["G"], frame["color"][..., 1])


def test_float_is_the_rule_for_what_is_not_colour(tmp_path, fakes):
    frame = fakes.make_frame(
        vars=[("N", "normal", ""), ("Nh", "normal", "normal3h"), ("id", "primId", "float"), ("d", "distance_to_image_plane", "half")]
    )
    write_exr(frame, tmp_path / "a.exr")
    parts = read(tmp_path / "a.exr")
    assert {name: next(iter(channels.values())).dtype.str[1:] for name, (_, channels) in parts.items()} == {
        "N": "f4",
        "Nh": "f2",
        "id": "u4",
        "d": "f2",
    }


def test_what_is_finite_stays_finite_in_half(tmp_path, fakes):
    values = np.array([[1e6, -1e6, math.inf, 65504.0]], np.float32)
    frame = fakes.make_frame({"color": np.repeat(values[..., None], 4, axis=-1)})
    write_exr(frame, tmp_path / "a.exr")
    assert read(tmp_path / "a.exr")["color"][1]["R"].tolist() == [[65504.0, -65504.0, math.inf, 65504.0]]


def test_rgba8_is_decoded_to_linear_premultiplied(tmp_path, fakes):
    """188 of 255 is 0.5 in linear light (0.5029), times 128/255 of coverage."""
    frame = fakes.make_frame({"rgba8": np.array([[[188, 255, 0, 128]]], np.uint8)})
    write_exr(frame, tmp_path / "a.exr")
    channels = read(tmp_path / "a.exr")["rgba8"][1]
    assert channels["R"][0, 0] == pytest.approx(0.5029 * 128 / 255, rel=1e-3)
    assert channels["G"][0, 0] == pytest.approx(128 / 255, rel=1e-3)
    assert channels["B"][0, 0] == 0
    assert channels["R"].dtype == np.float16


@pytest.mark.parametrize(
    ("name", "array", "channels"),
    [
        ("primvars:st", np.zeros((2, 3, 2), np.float32), {"U", "V"}),
        ("primvars:displayColor", np.zeros((2, 3, 3), np.float32), {"R", "G", "B"}),
        ("primvars:velocity", np.zeros((2, 3, 3), np.float32), {"X", "Y", "Z"}),
        ("primvars:rest", np.zeros((2, 3, 4), np.float32), {"R", "G", "B", "A"}),
        ("primvars:weight", np.zeros((2, 3), np.float32), {"Y"}),
        ("primvars:weight", np.zeros((2, 3, 1), np.float32), {"Y"}),
        ("depth", np.zeros((2, 3), np.float32), {"Z"}),
        ("mask", np.zeros((2, 3), np.bool_), {"id"}),
        ("wide", np.full((2, 3), -2, np.int64), {"id"}),
        ("double", np.zeros((2, 3), np.float64), {"Y"}),
    ],
)
def test_other_shapes_and_types(tmp_path, fakes, name, array, channels):
    write_exr(fakes.make_frame({name: array}), tmp_path / "a.exr")
    found = read(tmp_path / "a.exr")[name][1]
    assert set(found) == channels
    if name == "wide":
        assert (found["id"] == 4294967294).all()


def test_strided_planes_are_written_as_they_are(tmp_path, fakes):
    """The OpenEXR module takes a strided plane for a dense one; what is written here is a copy."""
    whole = np.random.default_rng(3).random((8, 10)).astype(np.float32)
    frame = fakes.make_frame({"distance_to_camera": whole[::2, ::2], "cameraDepth": np.asfortranarray(whole[:4, :5])})
    write_exr(frame, tmp_path / "a.exr")
    parts = read(tmp_path / "a.exr")
    np.testing.assert_array_equal(parts["distance_to_camera"][1]["Z"], whole[::2, ::2])
    np.testing.assert_array_equal(parts["cameraDepth"][1]["Z"], whole[:4, :5])


@pytest.mark.parametrize("window", [(0, 0, 5, 3), (-2, -1, 5, 3), (7, 4, 5, 3)])
def test_windows(tmp_path, fakes, window):
    """OpenEXR's windows name the first and the last pixel; overscan starts at negative numbers, a crop inside."""
    frame = fakes.make_frame(data_window=window, image_size=(16, 9), pixel_aspect_ratio=2.0)
    write_exr(frame, tmp_path / "a.exr")
    for header, _ in read(tmp_path / "a.exr").values():
        x0, y0, width, height = window
        assert [corner.tolist() for corner in header["dataWindow"]] == [[x0, y0], [x0 + width - 1, y0 + height - 1]]
        assert [corner.tolist() for corner in header["displayWindow"]] == [[0, 0], [15, 8]]
        assert header["pixelAspectRatio"] == 2.0


def test_header(written, frame):
    for name, (header, _) in written.items():
        assert header["hdwarp/camera"] == "/World/cam"
        assert header["hdwarp/product"] == "/Render/beauty"
        assert header["hdwarp/stage"] == "shot.usda"
        assert header["hdwarp/time"] == 101.0
        assert header["hdwarp/aov"] == name
        assert header["software"].startswith("hdWarp ")
        assert "row vectors" in header["hdwarp/conventions"]
        np.testing.assert_array_equal(header["hdwarp/K"], frame.K)
        np.testing.assert_array_equal(header["hdwarp/world_from_camera"], frame.world_from_camera)
        np.testing.assert_array_equal(header["hdwarp/origin"], frame.origin)
        np.testing.assert_array_equal(header["hdwarp/clipping_range"], [0.1, 100.0])
        assert header["hdwarp/metres_per_unit"] == pytest.approx(0.01)
        assert len(max(header, key=len)) <= 31, "longer names need a newer kind of file"
    assert written["distance_to_image_plane"][0]["hdwarp/clear"] == "inf"
    assert written["primId"][0]["hdwarp/clear"] == "-1"
    assert written["color"][0]["hdwarp/clear"] == "0"
    assert written["distance_to_image_plane"][0]["hdwarp/unit"] == "m"
    assert "optical axis" in written["distance_to_image_plane"][0]["hdwarp/meaning"]
    assert "two's complement" in written["primId"][0]["hdwarp/encoding"]


def test_id_tables_go_with_the_ids(written):
    assert json.loads(written["primId"][0]["hdwarp/prim_paths"]) == ["/World/a", "/World/b", "/World/ä"]
    assert all("hdwarp/prim_paths" not in header for name, (header, _) in written.items() if name != "primId")


def test_colour_spaces_are_stated(written, fakes, tmp_path):
    """Colour parts and data parts say which they are; OpenEXR finds nothing to complain about."""
    assert written["color"][0]["colorInteropID"] == "lin_rec709_scene"
    assert written["normal"][0]["colorInteropID"] == "data"
    first = written["color"][0]
    assert all(OpenEXR.checkColorMetadata(header, first) == 0 for name, (header, _) in written.items() if name != "color")
    arrays = fakes.planes()
    write_exr(fakes.make_frame({name: arrays[name] for name in ("normal", "color")}), tmp_path / "b.exr")
    parts = read(tmp_path / "b.exr")
    assert OpenEXR.checkColorMetadata(parts["color"][0], parts["normal"][0]) == 0


def test_matrices_project_a_world_point_where_K_does(tmp_path, fakes):
    """A point through worldToNDC (row vectors) against K and the pose, with overscan and an off-centre K."""
    K = np.array([[50.0, 0.0, 3.5], [0.0, 40.0, 1.0], [0.0, 0.0, 1.0]])
    frame = fakes.make_frame(data_window=(-2, -1, 5, 3), image_size=(8, 6), K=K)
    write_exr(frame, tmp_path / "a.exr")
    header = read(tmp_path / "a.exr")["color"][0]
    in_camera = np.array([0.3, -0.2, -4.0, 1.0])  # right, down, ahead
    world = frame.world_from_camera @ in_camera
    np.testing.assert_allclose(world @ header["worldToCamera"], in_camera, atol=1e-5)
    clip = world @ header["worldToNDC"]
    ndc = clip[:3] / clip[3]
    pixel = np.array([50.0 * 0.3 / 4.0 + 3.5 - 2, 40.0 * 0.2 / 4.0 + 1.0 - 1])  # of the display window
    np.testing.assert_allclose((ndc[:2] * [1, -1] + 1) / 2 * [8, 6], pixel, atol=1e-4)
    for distance, depth in ((0.1, -1.0), (100.0, 1.0)):
        clip = frame.world_from_camera @ [0, 0, -distance, 1] @ header["worldToNDC"]
        assert clip[2] / clip[3] == pytest.approx(depth, abs=1e-3)
    # The screen window at distance 1: its middle lies half the image from the principal point; x counts to the left.
    assert header["screenWindowWidth"] == pytest.approx(8 / 50)
    np.testing.assert_allclose(header["screenWindowCenter"], [(1.5 - 4) / 50, (0 - 3) / 40], atol=1e-6)


def test_what_does_not_apply_is_absent(tmp_path, fakes):
    frame = fakes.make_frame(K=None, time=None, product="", lens="orthographic")
    write_exr(frame, tmp_path / "a.exr")
    header = read(tmp_path / "a.exr")["color"][0]
    assert not {"hdwarp/K", "hdwarp/time", "hdwarp/product", "hdwarp/distortion", "hdwarp/axes", "worldToNDC"} & set(header)
    mirrored = fakes.make_frame(axes=np.diag([-1.0, 1.0, 1.0]), distortion=("opencvPinhole", (0.1, 0.2)))
    write_exr(mirrored, tmp_path / "b.exr")
    header = read(tmp_path / "b.exr")["color"][0]
    np.testing.assert_array_equal(header["hdwarp/axes"], np.diag([-1.0, 1.0, 1.0]))
    assert json.loads(header["hdwarp/distortion"]) == ["opencvPinhole", [0.1, 0.2]]


@pytest.mark.parametrize(
    "compression", ["none", "rle", "zips", "zip", "piz", "htj2k256", "htj2k32", "zstd", "pxr24", "b44", "b44a", "dwaa", "dwab"]
)
def test_data_survives_every_compression(tmp_path, fakes, compression):
    """Lossy ones are for colour alone."""
    frame = fakes.make_frame(fakes.planes(40, 70))
    write_file(frame, tmp_path / "a.exr", compression=compression)
    parts = read(tmp_path / "a.exr")
    assert parts["color"][0]["compression"].name.startswith("NO" if compression == "none" else compression.upper())
    np.testing.assert_array_equal(parts["primId"][1]["id"].view(np.int32), frame["primId"])
    np.testing.assert_array_equal(parts["normal"][1]["Y"], frame["normal"][..., 1])
    np.testing.assert_array_equal(parts["distance_to_image_plane"][1]["Z"], frame["distance_to_image_plane"])


def test_unknown_compression_is_named(frame):
    with pytest.raises(ArgumentError, match="'lzma'.*zip"):
        encode(frame, compression="lzma")


def test_equal_frames_give_equal_bytes(fakes):
    planes = fakes.planes(200, 300)
    first = bytes(encode(fakes.make_frame(planes)))
    assert all(bytes(encode(fakes.make_frame(planes))) == first for _ in range(3))


def test_several_threads_may_write_and_no_pool_is_left(fakes):
    frame = fakes.make_frame(fakes.planes(100, 100))
    before, results = OpenEXR.global_thread_count(), []
    threads = [threading.Thread(target=lambda: results.append(bytes(encode(frame)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert len(set(results)) == 1
    assert OpenEXR.global_thread_count() == before


def test_one_var_makes_a_plain_file_that_every_reader_knows(tmp_path, fakes):
    frame = fakes.make_frame({"color": fakes.planes()["color"]})
    write_exr(frame, tmp_path / "a.exr")
    assert (tmp_path / "a.exr").read_bytes()[5] & 0x10 == 0  # not multi-part
    assert OpenEXR.File(str(tmp_path / "a.exr")).channels()["RGBA"].pixels.shape == (3, 5, 4)


def test_vars_of_one_name_become_two_parts(tmp_path, fakes):
    frame = fakes.make_frame(vars=[("a", "color", ""), ("a", "normal", "")])
    write_exr(frame, tmp_path / "a.exr")
    assert list(read(tmp_path / "a.exr")) == ["a", "a_2"]


def test_a_failing_encoder_leaves_no_folder(tmp_path, fakes, monkeypatch):
    frame = fakes.make_frame()

    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("OpenEXR.File", stopped)
    with pytest.raises(KeyboardInterrupt):
        write_exr(frame, tmp_path / "new" / "a.exr")
    assert os.listdir(tmp_path) == []
