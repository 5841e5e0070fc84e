"""Real stages no one here wrote: each renders what is supported, names the rest, and never fails."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from pxr import Usd

import hdwarp

# Stages whose first time holds nothing that is drawn: no points, by design.
NOTHING_YET = {"result_int_1.usda", "testUsdImagingGLEmptyMesh/test.usda"}
CLEAR = {"usdwg/test_assets/RoughnessTest/RoughnessTest.usdz"}  # its materials blend, by a texture that is 0 in places


@pytest.fixture(scope="module")
def tools():
    """The module asset_sweep."""
    name = "hdwarp_test_asset_sweep"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name("asset_sweep.py"))
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]


def check(tools, look) -> None:
    """All that pxr says is there is drawn or named, nothing else is drawn, and all pixels are numbers."""
    assert not tools.silently_missing(look), (look.name, look.time, look.purposes)
    assert look.drawn <= look.expected, (look.name, look.time, look.purposes)
    for frame in look.frames.values():
        assert np.isfinite(frame["color"]).all()
        opacity, hit = frame["color"][..., 3], frame["primId"] >= 0
        assert (opacity[~hit] == 0).all()
        assert (opacity[hit] > 0).all() or look.name in CLEAR


def test_every_stage_renders_without_an_empty_picture(shared, tools, subtests):
    names = tools.stage_names(shared / "assets")
    assert len(names) > 40
    for name in names:
        with subtests.test(name):
            frame = hdwarp.render(shared / "assets" / name, resolution=(480, 270), aovs=["color", "primId"], device="cpu")
            assert np.isfinite(frame["color"]).all()
            if not any(name.endswith(empty) for empty in NOTHING_YET):
                assert (frame["primId"] >= 0).mean() > 0.005
            drawn = (frame["primId"] >= 0).any()
            assert drawn or any(item.code in ("empty-points", "empty-mesh") for item in frame.diagnostics) or "EmptyMesh" in name


@pytest.mark.slow
def test_the_sweep(shared, tools, subtests):
    """Every stage, from all cameras, at three times, for four sets of purposes; what no camera sees at the first time is seen alone."""
    assets, pictures, gprims = shared / "assets", 0, 0
    for name in tools.stage_names(assets):
        with subtests.test(name):
            first = None
            for look in tools.sweep(assets, [name]):
                check(tools, look)
                pictures, gprims = pictures + len(look.frames), gprims + len(look.drawn)
                if look.purposes == tools.PURPOSES[-1]:
                    first = first or look
            seen = {frame.prim_paths[k] for frame in first.frames.values() for k in np.unique(frame["primId"]) if k >= 0}
            stage = Usd.Stage.Open(str(assets / name))
            instancers = {path for path in first.drawn if stage.GetPrimAtPath(path).IsA("PointInstancer")}
            for path in sorted(first.drawn - seen - instancers)[:20]:
                assert tools.seen_alone(stage, first, path), path
    assert pictures > 290 and gprims > 1000


def test_our_own_stages_are_swept_too(sample_stages, tools):
    names = sorted(path.name for path in sample_stages.glob("*.usda"))
    assert len(names) > 5
    for look in tools.sweep(sample_stages, names, size=(64, 36), purposes=[("default", "render")]):
        check(tools, look)


STAGE = """#usda 1.0
def Xform "w" (kind = "assembly") {
    def Sphere "a" {}
    def Sphere "hidden" { token visibility = "invisible" }
    def Sphere "guide" { uniform token purpose = "guide" }
    def Mesh "broken" { int[] faceVertexCounts = [3]
        int[] faceVertexIndices = [0, 1, 2] }
    def Xform "model" (kind = "component"
        prepend apiSchemas = ["GeomModelAPI"]) {
        uniform token model:drawMode = "bounds"
        def Sphere "s" {}
    }
    def PointInstancer "many" {
        rel prototypes = </w/many/p>
        int[] protoIndices = [0]
        point3f[] positions = [(0, 0, 0)]
        def Sphere "p" {}
    }
}
"""


def test_the_sweep_knows_what_to_expect(tmp_path, tools):
    """By hand: what is hidden, of another purpose or below what stands for it is not expected; what lacks is found, unless it is named."""
    (tmp_path / "a.usda").write_text(STAGE.replace("{ ", "{\n").replace(" }", "\n}"))
    (look,) = tools.sweep(tmp_path, ["a.usda"], purposes=[("default",)])
    assert look.expected == {"/w/a", "/w/broken", "/w/model", "/w/many"}
    assert look.drawn == look.expected - {"/w/broken"}
    assert not tools.silently_missing(look)
    look.drawn.discard("/w/a")
    assert tools.silently_missing(look) == {"/w/a"}
