"""NumPy archives."""

from __future__ import annotations

import numpy as np
import pytest

from hdwarp.writeback import write, write_file
from hdwarp.writeback.npz import read_npz, write_npz


@pytest.mark.parametrize("compression", [None, "none", "zip"])
def test_everything_comes_back_without_pickles(tmp_path, frame, compression):
    write_file(frame, tmp_path / "a.npz", compression=compression)
    with np.load(tmp_path / "a.npz", allow_pickle=False) as archive:
        found = {name: archive[name] for name in archive.files}
    for name, array in frame.arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype
    np.testing.assert_array_equal(found["K"], frame.K)
    np.testing.assert_array_equal(found["world_from_camera"], frame.world_from_camera)
    np.testing.assert_array_equal(found["origin"], frame.origin)
    np.testing.assert_array_equal(found["axes"], np.eye(3))
    assert found["clipping_range"].tolist() == [0.1, 100.0]
    assert found["prim_paths"].tolist() == frame.prim_paths
    assert found["material_paths"].tolist() == ["/World/Looks/red"]
    assert found["body_paths"].tolist() == []
    assert (str(found["camera"]), str(found["product"]), str(found["lens"])) == ("/World/cam", "/Render/beauty", "pinhole")
    assert float(found["time"]) == 101.0
    assert found["data_window"].tolist() == [0, 0, 5, 3]
    assert ["distance_to_image_plane", "m"] in found["units"].tolist()


def test_what_there_is_not_has_no_key(tmp_path, fakes):
    write_npz(fakes.make_frame(K=None, time=None, prim_paths=[]), tmp_path / "a.npz")
    found = read_npz(tmp_path / "a.npz")
    assert not {"K", "time", "distortion_model", "distortion_coefficients"} & set(found)
    assert found["prim_paths"].shape == (0,)
    write_npz(fakes.make_frame(distortion=("opencvPinhole", (0.1, -0.2))), tmp_path / "b.npz")
    found = read_npz(tmp_path / "b.npz")
    assert str(found["distortion_model"]) == "opencvPinhole"
    assert found["distortion_coefficients"].tolist() == [0.1, -0.2]


def test_vars_are_stored_once_and_found_by_both_names(tmp_path, fakes):
    frame = fakes.make_frame(vars=[("beauty", "color", "color3f"), ("normal", "normal", "")])
    write_npz(frame, tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as archive:
        assert "beauty" not in archive.files
        assert archive["vars"].tolist() == [["beauty", "color"], ["normal", "normal"]]
    found = read_npz(tmp_path / "a.npz")
    np.testing.assert_array_equal(found["beauty"], frame["color"])
    assert found["beauty"] is found["color"]


def test_names_with_colons(tmp_path, fakes):
    st = np.random.default_rng(0).random((2, 3, 2)).astype(np.float32)
    write_npz(fakes.make_frame({"primvars:st": st}), tmp_path / "a.npz")
    np.testing.assert_array_equal(np.load(tmp_path / "a.npz")["primvars:st"], st)


def test_equal_frames_give_equal_bytes(tmp_path, fakes):
    for name in "ab":
        write_npz(fakes.make_frame(), tmp_path / f"{name}.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_templates_work_here_too(tmp_path, frame):
    assert [path.name for path in write(frame, tmp_path / "{stage}.{camera}.npz")] == ["shot.cam.npz"]
