"""The results layer opens over its stage, says what was rendered and changes nothing else."""

from __future__ import annotations

import os

import numpy as np
import pytest
from pxr import Gf, Sdf, Usd, UsdGeom, UsdRender

from hdwarp.errors import ArgumentError, OutputError
from hdwarp.writeback.layer import frame_to_layer, record, write_results

STAGE = """#usda 1.0
(
    defaultPrim = "World"
    metersPerUnit = 0.01
    upAxis = "Z"
    startTimeCode = 101
    endTimeCode = 110
    timeCodesPerSecond = 30
    framesPerSecond = 30
    renderSettingsPrimPath = "/Render/settings"
)
def Xform "World"
{
    def Camera "cam" {}
    def Camera "other" {}
    def Xform "rig"
    {
        def Camera "cam" {}
    }
}
def Scope "Render"
{
    def RenderSettings "settings"
    {
        rel products = </Render/beauty>
    }
    def RenderProduct "beauty"
    {
        rel camera = </World/cam>
        int2 resolution = (5, 3)
    }
}
"""


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "shots" / "shot.usda"
    path.parent.mkdir()
    path.write_text(STAGE)
    return path


_open = []  # a prim does not keep its stage alive


def opened(path) -> Usd.Stage:
    stage = Usd.Stage.Open(str(path))
    assert not stage.GetCompositionErrors()
    _open[:] = [*_open[-1:], stage]
    return stage


def test_it_opens_over_the_source(tmp_path, fakes, source):
    frame = fakes.make_frame(stage=str(source))
    target = tmp_path / "out" / "results.usda"
    assert frame_to_layer(frame, target, outputs=tmp_path / "out" / "beauty.exr") == target
    stage = opened(target)
    assert list(stage.GetRootLayer().subLayerPaths) == ["../shots/shot.usda"]
    assert stage.GetPrimAtPath("/World/cam").IsA(UsdGeom.Camera)
    product = UsdRender.Product.Get(stage, "/Render/beauty")
    assert product.GetResolutionAttr().Get() == Gf.Vec2i(5, 3)
    prim = product.GetPrim()
    np.testing.assert_array_equal(np.reshape(prim.GetAttribute("hdwarp:K").Get(), (3, 3)), frame.K)
    # Row vectors: a point of the camera times the matrix is where the column matrix of the frame puts it.
    matrix = prim.GetAttribute("hdwarp:worldFromCamera").Get()
    point = frame.world_from_camera @ [1.0, 2.0, 3.0, 1.0]
    np.testing.assert_allclose(matrix.Transform(Gf.Vec3d(1, 2, 3)), point[:3])
    assert prim.GetAttribute("hdwarp:clippingRange").Get() == Gf.Vec2f(0.1, 100.0)
    assert list(prim.GetAttribute("hdwarp:primPaths").Get()) == frame.prim_paths
    assert list(prim.GetAttribute("hdwarp:times").Get()) == [101.0]
    assert prim.GetRelationship("hdwarp:camera").GetTargets() == [Sdf.Path("/World/cam")]
    files = prim.GetAttribute("hdwarp:files:color").Get()
    assert files.path == "./beauty.exr"
    assert prim.GetAttribute("hdwarp:lens").Get() == "pinhole"
    assert not prim.GetAttribute("hdwarp:axes")


def test_stage_metadata_is_the_sources(tmp_path, fakes, source):
    """USD reads units, axis and times from the root layer alone."""
    frame_to_layer(fakes.make_frame(stage=str(source)), tmp_path / "r.usda")
    stage = opened(tmp_path / "r.usda")
    assert UsdGeom.GetStageMetersPerUnit(stage) == 0.01
    assert UsdGeom.GetStageUpAxis(stage) == "Z"
    assert (stage.GetStartTimeCode(), stage.GetEndTimeCode(), stage.GetTimeCodesPerSecond()) == (101.0, 110.0, 30.0)
    assert stage.GetDefaultPrim().GetPath() == "/World"
    assert stage.GetMetadata("renderSettingsPrimPath") == "/Render/settings"


def test_nothing_of_the_source_changes(tmp_path, fakes, source):
    before = {str(prim.GetPath()): prim.GetTypeName() for prim in opened(source).TraverseAll()}
    frame_to_layer(fakes.make_frame(stage=str(source)), tmp_path / "r.usda")
    after = opened(tmp_path / "r.usda")
    assert {str(prim.GetPath()): prim.GetTypeName() for prim in after.TraverseAll()} == before
    assert source.read_text() == STAGE


def test_without_a_product_it_defines_one(tmp_path, fakes, source):
    frames = [fakes.make_frame(stage=str(source), product="", camera=camera) for camera in ("/World/cam", "/World/rig/cam", "")]
    write_results(frames, ["a.exr", "b.exr", "c.exr"], tmp_path / "r.usda")
    stage = opened(tmp_path / "r.usda")
    assert stage.GetPrimAtPath("/Render").GetTypeName() == "Scope"
    home = stage.GetPrimAtPath("/Render/hdWarp")
    assert [child.GetName() for child in home.GetChildren()] == ["World_cam", "rig_cam", "frame"]
    product = UsdRender.Product(home.GetChild("rig_cam"))
    assert product
    assert product.GetCameraRel().GetTargets() == [Sdf.Path("/World/rig/cam")]
    assert product.GetResolutionAttr().Get() == Gf.Vec2i(5, 3)
    assert not UsdRender.Product(home.GetChild("frame")).GetCameraRel().HasAuthoredTargets()


def test_frames_are_time_samples(tmp_path, fakes, source):
    frames = []
    for number in (101.0, 102.0, 103.5):
        pose = np.eye(4)
        pose[0, 3] = number
        frames.append(fakes.make_frame(stage=str(source), time=number, world_from_camera=pose, prim_paths=["/World/a"]))
    frames[2].K = None
    files = [{"color": f"out/c.{index}.png", "primvars:st": f"out/st.{index}.png"} for index in range(3)]
    write_results([record(frame, files) for frame, files in zip(frames, files, strict=True)], None, tmp_path / "r.usda")
    prim = opened(tmp_path / "r.usda").GetPrimAtPath("/Render/beauty")
    pose = prim.GetAttribute("hdwarp:worldFromCamera")
    assert pose.GetTimeSamples() == [101.0, 102.0, 103.5]
    assert pose.Get(102.0).ExtractTranslation() == Gf.Vec3d(102, 0, 0)
    K = prim.GetAttribute("hdwarp:K")
    assert len(K.Get(101.0)) == 9
    assert K.Get(103.5) is None
    paths = prim.GetAttribute("hdwarp:primPaths")
    assert paths.GetTimeSamples() == []  # a table that stays is written once
    assert list(paths.Get(102.0)) == ["/World/a"]
    clipping = prim.GetAttribute("hdwarp:clippingRange")
    assert clipping.GetTimeSamples() == [101.0, 102.0, 103.5]
    assert clipping.Get() == Gf.Vec2f(0.1, 100.0)
    assert prim.GetAttribute("hdwarp:files:color").Get(102.0).path == os.path.relpath("out/c.1.png", tmp_path)
    assert prim.GetAttribute("hdwarp:files:primvars:st").Get(103.5)
    assert list(prim.GetAttribute("hdwarp:times").Get()) == [101.0, 102.0, 103.5]


def test_a_frame_rendered_again_replaces_the_earlier(tmp_path, fakes, source):
    frames = [fakes.make_frame(stage=str(source)), fakes.make_frame(stage=str(source), prim_paths=["/only"])]
    write_results(frames, ["a.exr", "b.exr"], tmp_path / "r.usda")
    prim = opened(tmp_path / "r.usda").GetPrimAtPath("/Render/beauty")
    assert list(prim.GetAttribute("hdwarp:primPaths").Get()) == ["/only"]


def test_outputs_as_a_file_a_list_or_a_dict(fakes):
    frame = fakes.make_frame(vars=[("a", "color", ""), ("b", "normal", "")])
    assert record(frame, "x.exr").files == {"a": os.path.abspath("x.exr"), "b": os.path.abspath("x.exr")}
    assert record(frame, ["x.exr"]).files == record(frame, "x.exr").files
    assert record(frame, ["x.png", "y.png"]).files == {"a": os.path.abspath("x.png"), "b": os.path.abspath("y.png")}
    assert record(frame, {"b": "y.png"}).files == {"b": os.path.abspath("y.png")}
    assert record(frame).files == {}
    with pytest.raises(ArgumentError, match="3 files for the 2 vars a, b"):
        record(frame, ["x", "y", "z"])


def test_a_stage_in_memory_is_not_named(tmp_path, fakes):
    stage = Usd.Stage.CreateInMemory("memory.usda")
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    frame_to_layer(fakes.make_frame(stage=stage.GetRootLayer().identifier), tmp_path / "r.usda")
    found = opened(tmp_path / "r.usda")
    assert not found.GetRootLayer().subLayerPaths
    assert UsdGeom.GetStageMetersPerUnit(found) == 1.0


@pytest.mark.parametrize("suffix", [".usda", ".usdc", ".usd"])
def test_the_other_suffixes(tmp_path, fakes, source, suffix):
    frame_to_layer(fakes.make_frame(stage=str(source)), tmp_path / f"r{suffix}")
    prim = opened(tmp_path / f"r{suffix}").GetPrimAtPath("/Render/beauty")
    assert list(prim.GetAttribute("hdwarp:primPaths").Get()) == ["/World/a", "/World/b", "/World/ä"]


def test_an_open_layer_is_reloaded(tmp_path, fakes, source):
    target = tmp_path / "r.usda"
    frame_to_layer(fakes.make_frame(stage=str(source)), target)
    stage = opened(target)
    frame_to_layer(fakes.make_frame(stage=str(source), prim_paths=["/new"]), target)
    assert list(stage.GetPrimAtPath("/Render/beauty").GetAttribute("hdwarp:primPaths").Get()) == ["/new"]


def test_refusals(tmp_path, fakes, source):
    frame = fakes.make_frame(stage=str(source))
    with pytest.raises(ArgumentError, match="stage itself"):
        frame_to_layer(frame, source)
    with pytest.raises(ArgumentError, match=r"\.usda"):
        frame_to_layer(frame, tmp_path / "r.json")
    with pytest.raises(ArgumentError, match="2 stages"):
        write_results([frame, fakes.make_frame(stage="other.usda")], None, tmp_path / "r.usda")
    with pytest.raises(ArgumentError, match="no frame"):
        write_results([], None, tmp_path / "r.usda")
    (tmp_path / "r.usda").write_text("older")
    with pytest.raises(OutputError, match="--overwrite"):
        frame_to_layer(frame, tmp_path / "r.usda", overwrite=False)
    assert (tmp_path / "r.usda").read_text() == "older"


def test_usds_own_validators_find_nothing(tmp_path, fakes, source):
    validation = pytest.importorskip("pxr.UsdValidation")
    frames = [fakes.make_frame(stage=str(source)), fakes.make_frame(stage=str(source), product="", camera="/World/other")]
    write_results(frames, [None, None], tmp_path / "r.usda")
    context = validation.ValidationContext(validation.ValidationRegistry().GetOrLoadAllValidators())
    found = {(error.GetName(), str(site)) for error in context.Validate(opened(tmp_path / "r.usda")) for site in error.GetSites()}
    before = {error.GetName() for error in context.Validate(opened(source))}
    assert {name for name, _ in found} <= before
