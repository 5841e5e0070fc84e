"""`hdwarp render --frames`: names of sub-frames, signals, progress, compressions."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from hdwarp.cli import console, main
from hdwarp.cli.progress import duration
from hdwarp.writeback.atomic import exists_complete

STAGE = """#usda 1.0
(
    metersPerUnit = 1
    startTimeCode = 1
    timeCodesPerSecond = 12
)
def Camera "camera"
{
    float focalLength = 50
    float horizontalAperture = 64
    float verticalAperture = 48
}
def Sphere "ball"
{
    double3 xformOp:translate.timeSamples = { 1: (-1, 0, -5), 9: (1, 0.5, -9) }
    uniform token[] xformOpOrder = ["xformOp:translate"]
}
"""
SMALL = ["--resolution", "16x12", "--device", "cpu"]


@pytest.fixture
def stage(tmp_path):
    path = tmp_path / "ball.usda"
    path.write_text(STAGE)
    return path


def run(*arguments, code: int = 0) -> None:
    assert main([str(argument) for argument in arguments]) == code


def names(folder, suffix: str) -> list[str]:
    return sorted(path.name for path in folder.glob(f"*{suffix}"))


def test_sub_frames_get_names_of_their_own_that_sort_as_they_do(stage, tmp_path, capsys):
    run("render", stage, "--frames", "1:2x0.25", "-o", tmp_path / "a.####.exr", *SMALL, "--json")
    outputs = json.loads(capsys.readouterr().out)["outputs"]
    assert [output["frame"] for output in outputs] == [1, 1.25, 1.5, 1.75, 2]
    written = [os.path.basename(output["written"][0]) for output in outputs]
    assert written == ["a.0001.00.exr", "a.0001.25.exr", "a.0001.50.exr", "a.0001.75.exr", "a.0002.00.exr"]
    assert names(tmp_path, ".exr") == written
    run("render", stage, "--frames", "9:11", "-o", tmp_path / "b.####.exr", *SMALL)
    assert names(tmp_path, ".exr")[5:] == ["b.0009.exr", "b.0010.exr", "b.0011.exr"]


def test_a_frame_that_fails_in_the_middle_leaves_the_others_and_the_order(stage, tmp_path, capsys):
    (tmp_path / "a.0003.npz").mkdir()
    run("render", stage, "--frames", "1:5", "-o", tmp_path / "a.####.npz", *SMALL, code=3)
    said = [line for line in capsys.readouterr().err.splitlines() if "frame" in line]
    assert [line.split("frame ")[1][0] for line in said] == ["1", "2", "3", "4", "5"]
    assert "error" in said[2] and "folder" in said[2]
    run("render", stage, "--frames", "1:5", "-o", tmp_path / "a.####.npz", *SMALL, "--resume", "--json", code=3)
    report = json.loads(capsys.readouterr().out)
    assert [output["frame"] for output in report["outputs"]] == [1, 2, 3, 4, 5]
    assert [len(output["kept"]) for output in report["outputs"]] == [1, 1, 0, 1, 1]
    assert len(report["failed"]) == 1 and "frame 3" in report["failed"][0]


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_whole_files_and_resume_continues(number, stage, tmp_path):
    out = ["-o", str(tmp_path / "a.####.exr"), "--results", str(tmp_path / "results.usda"), *SMALL]
    command = [sys.executable, "-c", "import sys; from hdwarp.cli import main; sys.exit(main())", "render", str(stage)]
    process = subprocess.Popen([*command, "--frames", "1:9000", *out], stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 120
    while len(names(tmp_path, ".exr")) < 5 and process.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(number)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 3 and "--resume" in said, said
    written = names(tmp_path, ".exr")
    assert 5 <= len(written) < 9000 and all(exists_complete(tmp_path / name) for name in written)
    assert written == [f"a.{number:04d}.exr" for number in range(1, len(written) + 1)]
    assert not list(tmp_path.glob(".hdwarp*"))
    from pxr import Usd

    layer = Usd.Stage.Open(str(tmp_path / "results.usda"))
    assert len(layer.GetPrimAtPath("/Render/hdWarp/camera").GetAttribute("hdwarp:times").Get()) == len(written)
    before = (tmp_path / written[0]).stat().st_mtime_ns
    run("render", stage, "--frames", f"1:{len(written) + 2}", *out, "--resume")
    assert len(names(tmp_path, ".exr")) == len(written) + 2 and (tmp_path / written[0]).stat().st_mtime_ns == before


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_one_line_that_moves(stage, tmp_path, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    (tmp_path / "a.0002.npz").mkdir()
    run("render", stage, "--frames", "1:4", "-o", tmp_path / "a.####.npz", *SMALL, code=3)
    text = terminal.getvalue()
    lines = [line.replace("\x1b[K", "").split("\r")[-1] for line in text.rstrip().split("\n")]
    assert "[4/4]" in text and not any("[1/4]" in line for line in lines)  # it moved on
    assert lines[0].startswith("hdwarp: error: /camera frame 2: ")  # an error stays
    assert lines[-1].startswith("hdwarp: 3 files written, 1 of 4 pictures failed in ")


def test_elsewhere_a_line_a_picture(stage, tmp_path, capsys):
    run("render", stage, "--frames", "1:3", "-o", tmp_path / "a.####.npz", *SMALL)
    said = capsys.readouterr().err
    assert [line.split("]")[0] for line in said.splitlines() if "wrote" in line] == [f"hdwarp: [{i}/3" for i in (1, 2, 3)]
    assert "\r" not in said and not console.is_terminal()


def test_durations():
    assert [duration(seconds) for seconds in (0.44, 12.4, 59.6, 200, 3900)] == ["0.4 s", "12 s", "1 min 0 s", "3 min 20 s", "1 h 5 min"]


def test_compressions(stage, tmp_path):
    import OpenEXR

    for name in ("none", "zips", "dwaa"):
        run("render", stage, "-o", tmp_path / f"{name}.exr", "--exr-compression", name, *SMALL)
        header = OpenEXR.File(str(tmp_path / f"{name}.exr"), header_only=True).header()
        assert header["compression"].name == f"{'NO' if name == 'none' else name.upper()}_COMPRESSION"
    sizes = []
    for level in (0, 9):
        run("render", stage, "-o", tmp_path / f"{level}.png", "--png-compression", level, *SMALL)
        sizes.append((tmp_path / f"{level}.png").stat().st_size)
    assert sizes[0] > sizes[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--exr-compression", "lzma"], "zips"),
        (["--exr-compression", "zip"], "no .exr file is written"),
        (["--png-compression", "10"], "0 (none, fast) to 9"),
        (["--png-compression", "fast"], "--png-compression"),
    ],
)
def test_compressions_that_cannot_be_are_refused(arguments, words, stage, tmp_path, capsys):
    run("render", stage, "-o", tmp_path / "a.png", *arguments, *SMALL, code=2)
    said = capsys.readouterr().err
    assert words in said and "Traceback" not in said and not list(tmp_path.glob("*.png"))
