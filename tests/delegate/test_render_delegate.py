"""The render delegate by hand, without a stage: index, commit, pass, buffer; descriptors and settings; versions."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import warp as wp
from typer.main import get_command
from typer.testing import CliRunner

import hdwarp
from hdwarp.aovs.registry import AOVS
from hdwarp.cli.app import app
from hdwarp.delegate.render_settings import DESCRIPTORS, settings_table
from hdwarp.errors import ArgumentError, Error, NotSupported

REPOSITORY = Path(__file__).resolve().parents[2]


def test_index_delegate_pass_and_buffer_by_hand(world):
    """A unit ball 3 m ahead of a camera whose picture is as wide at distance d as 2 d: the middle sees it at 2 m, the corner nothing."""
    buffers = world.buffers("distance_to_image_plane", "primId", size=(41, 31))
    render_pass = world.delegate.create_render_pass()
    assert not render_pass.is_converged
    render_pass.execute(world.delegate.create_views("/camera", (41, 31)), buffers)
    assert render_pass.is_converged and buffers["primId"].is_converged
    with buffers["distance_to_image_plane"].mapped() as depth, buffers["primId"].mapped() as prim_id:
        assert depth.shape == (31, 41)
        assert depth[15, 20] == pytest.approx(2.0) and depth[0, 0] == np.inf
        assert world.index.prim_path(prim_id[15, 20]) == "/ball"
        assert prim_id[0, 0] == -1


def test_the_core_needs_no_usd(world):
    """A scene's picture and that of its columns committed by hand have the same bits: there is one path."""
    scene = hdwarp.Scene(str(REPOSITORY / "sample_stages" / "hello_camera.usda"), device=world.device)
    label = scene.cameras.label[0]
    frame = hdwarp.render(scene.stage, label, resolution=(64, 48), aovs=("color", "primId", "cameraDepth"), device=str(world.device))
    delegate = hdwarp.RenderDelegate(world.device)
    index = delegate.create_render_index()
    index.sync(scene.reader.columns())
    delegate.commit_resources(index)
    image = hdwarp.SensorCamera(scene, cameras=label, resolution=(64, 48)).views.views[0].image
    views = delegate.create_views(label, image, scene_unit=1.0 / scene.metres_per_unit)
    buffers = {name: delegate.create_render_buffer(name, 64, 48) for name in frame.aovs}
    delegate.create_render_pass().execute(views, buffers)
    for name, buffer in buffers.items():
        with buffer.mapped() as pixels:
            assert np.array_equal(pixels, frame[name]), name


def test_commit_does_what_is_dirty_and_only_for_its_own_index(world, device):
    assert world.delegate.commit_resources(world.index).rows_uploaded == 0
    with pytest.raises(Error, match="RenderDelegate for each index"):
        world.delegate.create_render_index()
    with pytest.raises(ArgumentError, match="not this delegate's"):
        hdwarp.RenderDelegate(device).commit_resources(world.index)


def test_versions_count_what_has_changed(world, camera):
    param = world.delegate.render_param
    before = param.versions
    world.commit()
    assert param.versions == before
    world.commit(colour=(0.0, 1.0, 0.0))
    assert param.versions == (before.scene + 1, before.settings, before.cameras)
    world.commit(cameras=[camera(), camera("/other")])
    assert param.versions == (before.scene + 2, before.settings, before.cameras + 1)
    world.delegate.set_render_setting("cull", False)  # what it is
    assert param.versions.settings == before.settings
    world.delegate.set_render_setting("cull", True)
    assert param.versions == (before.scene + 2, before.settings + 1, before.cameras + 1)
    assert world.delegate.render_settings_version == before.settings + 1


def test_settings_are_read_and_written_by_key(world):
    delegate = world.delegate
    assert {item.key: delegate.get_render_setting(item.key) for item in delegate.render_setting_descriptors} == {
        item.key: item.default for item in DESCRIPTORS
    }
    delegate.settings = hdwarp.RenderSettings(cull=True)
    assert delegate.get_render_setting("cull") is True
    with pytest.raises(ArgumentError, match=r"'fog'.*integrator, headlight"):
        delegate.set_render_setting("fog", 1)
    with pytest.raises(ArgumentError, match="cull=3"):
        delegate.set_render_setting("cull", 3)
    with pytest.raises(ArgumentError, match=r"integrator='path'.*fast, preview, unlit"):
        delegate.set_render_setting("integrator", "path")
    with pytest.raises(ArgumentError, match="light_samples=0"):
        delegate.set_render_setting("light_samples", 0)
    with pytest.raises(ArgumentError, match="RenderSettings"):
        delegate.settings = {"cull": True}
    assert delegate.settings == hdwarp.RenderSettings(cull=True)


def test_a_pass_follows_the_delegates_settings_unless_it_has_its_own(world):
    """From the middle of the ball, its back is seen until the delegate culls."""
    views = world.delegate.create_views("/camera", (9, 9))
    transforms = wp.array([[0.0, 0.0, -3.0, 0.0, 0.0, 0.0, 1.0]], dtype=wp.transformf, device=world.device)
    ids = world.buffers("primId", size=(9, 9))
    follows = world.delegate.create_render_pass()
    own = world.delegate.create_render_pass(settings=hdwarp.RenderSettings(cull=False))
    for culls in (False, True):
        world.delegate.set_render_setting("cull", culls)
        follows.execute(views, ids, camera_transforms=transforms)
        assert (ids["primId"].array.numpy()[0, 4, 4] == -1) == culls
        own.execute(views, ids, camera_transforms=transforms)
        assert ids["primId"].array.numpy()[0, 4, 4] == 0


def test_descriptors_are_those_of_the_registry(world):
    """Formats as hdEmbree has them, ids cleared to -1, and every plane that can be rendered."""
    delegate = world.delegate
    color = delegate.default_aov_descriptor("color")
    assert (color.format, color.multi_sampled, color.clear_value) == ("Float32Vec4", True, (0.0, 0.0, 0.0, 0.0))
    ids = delegate.default_aov_descriptor("primId")
    assert (ids.format, ids.multi_sampled, ids.clear_value) == ("Int32", False, -1)
    assert delegate.default_aov_descriptor("depth").clear_value == 1.0
    assert delegate.default_aov_descriptor("rgba8").format == "UNorm8Vec4"
    assert delegate.aov_names == tuple(name for name, spec in AOVS.items() if not spec.later)
    for name in delegate.aov_names:
        assert delegate.default_aov_descriptor(name).dtype is AOVS[name].dtype
    with pytest.raises(ArgumentError, match="did you mean"):
        delegate.default_aov_descriptor("colour")
    with pytest.raises(NotSupported, match="labels"):
        delegate.default_aov_descriptor("semantic_segmentation")
    with pytest.raises(ArgumentError, match="primvar 'st'"):
        delegate.default_aov_descriptor("primvars:st")
    with pytest.raises(ArgumentError, match="primvar 'st'"):
        hdwarp.RenderDelegate(world.device).default_aov_descriptor("primvars:st")


def test_views_refuse_cameras_that_came_or_went(world, camera):
    views = world.delegate.create_views("/camera", (8, 8))
    world.commit(cameras=[camera("/another"), camera()])
    with pytest.raises(Error, match="make them anew"):
        world.delegate.create_render_pass().execute(views, world.buffers("primId", size=(8, 8)))
    with pytest.raises(ArgumentError, match=r"/nothing.*/another, /camera"):
        world.delegate.create_views("/nothing", (8, 8))
    with pytest.raises(ArgumentError, match="resolution"):
        world.delegate.create_views("/camera", (0, 8))


def test_stats_tell_what_is_drawn(world):
    stats = world.delegate.render_stats()
    assert (stats["primCount"], stats["instanceCount"], stats["meshCount"], stats["cameraCount"]) == (2, 2, 0, 1)
    assert stats["numCompletedSamples"] == 0 and stats["percentDone"] == 0.0
    world.render("color", samples=4)
    stats = world.delegate.render_stats()
    assert stats["numCompletedSamples"] == 4 and stats["percentDone"] == 100.0


def test_unknown_devices_are_named():
    with pytest.raises(ArgumentError, match="toaster"):
        hdwarp.RenderDelegate("toaster")


# --------------------------------------------------------------------------------------------- one source for what people read


def test_the_command_lines_help_is_the_descriptors():
    option = next(item for item in get_command(app).commands["render"].params if item.name == "cull")
    assert option.help.lower().rstrip(".") == next(item.help for item in DESCRIPTORS if item.key == "cull").lower()
    assert "--cull" in CliRunner().invoke(app, ["render", "--help"], env={"COLUMNS": "200"}).output


def test_the_readmes_table_is_the_descriptors():
    assert "\n".join(settings_table()) in (REPOSITORY / "README.md").read_text(encoding="utf8")


def test_the_readmes_example_for_hydra_engineers_works(monkeypatch):
    text = (REPOSITORY / "README.md").read_text(encoding="utf8")
    (code,) = re.findall(r"```python\n(.*?)```", text[text.index("## As a Hydra engineer") :], re.DOTALL)
    monkeypatch.chdir(REPOSITORY)
    names: dict[str, object] = {}
    exec(code, names)
    assert names["percent"] == 100.0
    assert names["pixels"].shape == (240, 320, 4)
    assert names["delegate"].default_aov_descriptor("primId").clear_value == -1
