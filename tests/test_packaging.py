"""The wheel: what is in it, and that it works from where pip puts it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built from a copy, so that the tree stays clean."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"):
        shutil.copy(REPOSITORY / name, source)
    for name in ("python", "plugin", "schemas"):
        shutil.copytree(REPOSITORY / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    run = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "--wheel-dir", str(folder), str(source)],
        capture_output=True,
        text=True,
    )
    if run.returncode and "hatchling" in run.stderr and "No matching distribution" in run.stderr:
        pytest.skip("hatchling cannot be fetched here")
    assert run.returncode == 0, run.stderr
    (path,) = folder.glob("hdwarp-*.whl")
    return path


def test_wheel_holds_package_plugin_and_schemas(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = archive.read(next(name for name in names if name.endswith("METADATA"))).decode()
        entry_points = archive.read(next(name for name in names if name.endswith("entry_points.txt"))).decode()
    package = {path.relative_to(REPOSITORY / "python").as_posix() for path in (REPOSITORY / "python").rglob("*.py")}
    assert package <= names
    assert {
        "hdwarp/py.typed",
        "hdwarp/_usd/plugin/plugInfo.json",
        "hdwarp/_usd/plugin/renderer/plugInfo.json",
        "hdwarp/_usd/plugin/usdview/plugInfo.json",
        "hdwarp/_usd/schemas/plugInfo.json",
        "hdwarp/_usd/schemas/generatedSchema.usda",
        "hdwarp_usdview.py",
    } <= names
    assert not [name for name in names if "__pycache__" in name or name.startswith(("tests/", "sample_stages/"))]
    assert "hdwarp = hdwarp.cli:main" in entry_points
    assert "License-Expression: Apache-2.0" in metadata
    assert "Requires-Dist: usd-core>=" in metadata


def test_installed_wheel_finds_its_plugin_and_schemas(wheel, tmp_path):
    """Unpacked into a folder of its own, as pip would: away from the source tree."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PXR_PLUGINPATH_NAME")}
    environment["PYTHONPATH"] = str(tmp_path)
    program = (
        "import hdwarp\nfrom pxr import Usd, UsdGeom\n"
        "stage = Usd.Stage.CreateInMemory()\nUsdGeom.Camera.Define(stage, '/C').GetPrim().ApplyAPI('HdWarpCameraAPI')\n"
        "print(hdwarp.plugin_path())"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert (run.returncode, run.stderr) == (0, "")
    assert Path(run.stdout.strip()) == tmp_path / "hdwarp" / "_usd" / "plugin"
