"""The budget of textures from those who set it to what frames say: Scene, RenderDelegate, the command line."""

from __future__ import annotations

import json

import numpy as np
import PIL.Image
import pytest
from pxr import Sdf, Usd, UsdGeom, UsdShade

import hdwarp
from hdwarp.cli import main
from hdwarp.errors import ArgumentError
from hdwarp.tables.textures import TEXTURE_BUDGET


@pytest.fixture
def path(tmp_path):
    """A cube with a texture of 1024 x 1024 texels, which takes 5.3 MiB with its levels."""
    PIL.Image.fromarray(np.random.default_rng(0).integers(0, 256, (1024, 1024, 3)).astype(np.uint8)).save(tmp_path / "large.png")
    stage = Usd.Stage.CreateNew(str(tmp_path / "a.usda"))
    cube = UsdGeom.Cube.Define(stage, "/cube")
    cube.AddTranslateOp().Set((0, 0, -8))
    UsdGeom.Camera.Define(stage, "/camera")
    paint = UsdShade.Material.Define(stage, "/paint")
    surface, image = UsdShade.Shader.Define(stage, "/paint/s"), UsdShade.Shader.Define(stage, "/paint/t")
    surface.CreateIdAttr("UsdPreviewSurface")
    image.CreateIdAttr("UsdUVTexture")
    image.CreateInput("file", Sdf.ValueTypeNames.Asset).Set("large.png")
    surface.CreateInput("diffuseColor", Sdf.ValueTypeNames.Color3f).ConnectToSource(image.ConnectableAPI(), "rgb")
    paint.CreateSurfaceOutput().ConnectToSource(surface.ConnectableAPI(), "surface")
    UsdShade.MaterialBindingAPI.Apply(cube.GetPrim()).Bind(paint)
    stage.Save()
    return str(tmp_path / "a.usda")


def held(scene: hdwarp.Scene) -> list[tuple[int, int]]:
    columns = scene.tables.textures.columns
    return [(int(columns.width.numpy()[0]), int(columns.height.numpy()[0]))]


@pytest.mark.parametrize(("budget", "size"), [(TEXTURE_BUDGET, 1024), (6 << 20, 1024), (2 << 20, 512), (100_000, 128), (0, 1)])
def test_a_scene_halves_what_is_too_large_and_frames_say_so(path, device, budget, size):
    scene = hdwarp.Scene(path, device=device, texture_budget=budget)
    assert held(scene) == [(size, size)]
    frame = hdwarp.render(scene, "/camera", resolution=(8, 6))
    told = [item for item in frame.diagnostics if item.code == "texture-size"]
    assert bool(told) == (size < 1024)
    if told:
        assert told[0].path.endswith("large.png") and f"held with {size} x {size}" in told[0].message
    assert np.isfinite(frame["color"]).all()


def test_the_default(path, device):
    assert (
        hdwarp.Scene(path, device=device).tables.textures.budget == hdwarp.RenderDelegate(device).tables.textures.budget == TEXTURE_BUDGET
    )
    assert hdwarp.RenderDelegate(device, texture_budget=5).tables.textures.budget == 5


@pytest.mark.parametrize("budget", [-1, 1.5, True, "2 GiB", None])
def test_what_is_no_number_of_bytes_is_refused(path, budget):
    for make in (
        lambda: hdwarp.Scene(path, device="cpu", texture_budget=budget),
        lambda: hdwarp.RenderDelegate("cpu", texture_budget=budget),
    ):
        with pytest.raises(ArgumentError, match="texture_budget"):
            make()


def test_on_the_command_line(path, tmp_path, capsys):
    """In MiB."""
    options = ["--resolution", "8x6", "--device", "cpu", "--json"]
    for budget, said in (("2", True), ("6", False)):
        assert main(["render", path, str(tmp_path / f"{budget}.png"), "--texture-budget", budget, *options]) == 0
        found = [item for item in json.loads(capsys.readouterr().out)["diagnostics"] if item["code"] == "texture-size"]
        assert bool(found) == said
    assert main(["render", path, str(tmp_path / "a.png"), "--texture-budget", "-1", *options]) == 2
