"""The examples run as a user would run them, and their self-checks hold."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from PIL import Image

FOLDER = Path(__file__).resolve().parents[1] / "python" / "hdwarp" / "examples"
PICTURES = {
    "many_worlds": ["many_worlds_wrist.png", "many_worlds_overview.png"],
    "mounted_camera": ["mounted_camera.png"],
    "newton_poses": ["newton_poses.png"],
    "thermal_camera": ["thermal_camera.png"],
    "torch_poses": ["torch_poses.png"],
}
STAGE = ["--stage", str(FOLDER.parents[2] / "sample_stages" / "robot_cell.usda")]  # which is not in the wheel
SMALL = {
    "many_worlds": ["--worlds", "24", "--steps", "2", *STAGE],
    "newton_poses": STAGE,
    "thermal_camera": ["--cycles", "3"],
    "torch_poses": STAGE,
}


def test_no_example_is_left_out():
    found = {path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("_")}
    assert found == {"author_and_render", "live_stage", *PICTURES}


@pytest.mark.parametrize("name", ["author_and_render", "live_stage"])
def test_example(name, tmp_path, capsys):
    assert importlib.import_module(f"hdwarp.examples.{name}").main([str(tmp_path / "out.exr")]) == 0
    assert (tmp_path / "out.exr").stat().st_size > 1000
    assert capsys.readouterr().out


@pytest.mark.parametrize("name", PICTURES)
def test_example_with_pictures(name, device, tmp_path, capsys):
    out = tmp_path / "pictures"
    assert importlib.import_module(f"hdwarp.examples.{name}").main([*SMALL.get(name, []), "--device", device, "--out", str(out)]) == 0
    said = capsys.readouterr().out.splitlines()
    if said[0].startswith("skipped: "):
        assert len(said) == 1 and name in ("newton_poses", "torch_poses")  # the others need nothing that may be missing
        pytest.skip(said[0])
    assert said[-1].startswith("ok: ")
    assert sorted(path.name for path in out.iterdir()) == sorted(PICTURES[name])
    for path in out.iterdir():
        with Image.open(path) as picture:
            assert all(low < high for low, high in picture.convert("RGB").getextrema()), path.name


@pytest.mark.parametrize("name", PICTURES)
def test_without_out_nothing_is_written(name, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = {"thermal_camera": ["--cycles", "1"]}.get(name, SMALL.get(name, []))
    assert importlib.import_module(f"hdwarp.examples.{name}").main([*arguments, "--device", "cpu"]) == 0
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr().out.splitlines()[-1].startswith(("ok: ", "skipped: "))


@pytest.mark.slow
def test_a_thousand_worlds(device, capsys):
    assert importlib.import_module("hdwarp.examples.many_worlds").main(["--device", device, *STAGE]) == 0
    assert "ok: 1024 worlds" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["many_worlds", "newton_poses", "torch_poses"])
def test_a_stage_that_is_not_there_is_told(name, tmp_path, capsys):
    """As where hdWarp was installed from a wheel, which has no sample stages."""
    if name != "many_worlds":
        pytest.importorskip(name.removesuffix("_poses"))
    if name == "newton_poses":
        pytest.importorskip("newton_usd_schemas")
    with pytest.raises(SystemExit, match="2"):
        importlib.import_module(f"hdwarp.examples.{name}").main(["--stage", str(tmp_path / "gone.usda")])
    assert "--stage" in capsys.readouterr().err
