"""What a pixel covers of a texture is averaged: a checkerboard to the horizon against its own supersampled picture, and level by level."""

from __future__ import annotations

import numpy as np
import PIL.Image
import pytest
import warp as wp
from pxr import Gf, UsdGeom, Vt

import hdwarp
from hdwarp.aovs.footprints import footprints_kernel
from hdwarp.stage.looks import Image, Texture
from hdwarp.tables.texels import halve

WIDTH, HEIGHT = 96, 64
SIZE = 256  # texels of the image, 8 x 8 squares of 32


def checkerboard(tmp_path):
    x, y = np.meshgrid(np.arange(SIZE), np.arange(SIZE))
    pixels = (((x // 32 + y // 32) % 2) * 255).astype(np.uint8)
    PIL.Image.fromarray(np.dstack([pixels] * 3)).save(tmp_path / "a.png")
    return tmp_path / "a.png"


def plane(surfaces, file, repeats: float):
    """A ground plane 4000 m wide, an image every ``4000 / repeats`` m, seen from 1.5 m above it, the horizon in the upper half."""
    stage = surfaces.square()
    mesh = UsdGeom.Mesh.Get(stage, "/q")
    mesh.GetPointsAttr().Set([(-2000, 0, 2000), (2000, 0, 2000), (2000, 0, -2000), (-2000, 0, -2000)])
    UsdGeom.PrimvarsAPI(mesh).GetPrimvar("st").Set(Vt.Vec2fArray([(0, 0), (repeats, 0), (repeats, repeats), (0, repeats)]))
    surfaces.diffuse(stage, file)
    camera = hdwarp.author.add_camera(stage, "/eye", fov=np.radians(40.0), clipping_range=(0.01, 1e5))
    UsdGeom.Xformable(camera).AddTransformOp().Set(Gf.Matrix4d().SetRotate(Gf.Rotation((1, 0, 0), -8.0)).SetTranslateOnly((0.3, 1.5, 0.2)))
    return stage


def supersampled(frame, repeats: float, count: int = 24) -> np.ndarray:
    """(H, W) float64: the mean of count x count points of each pixel, of the board as a formula; NaN above the horizon."""
    x, y = np.meshgrid((np.arange(WIDTH * count) + 0.5) / count, (np.arange(HEIGHT * count) + 0.5) / count)
    K, pose = frame.K, frame.world_from_camera
    rays = np.stack([(x - K[0, 2]) / K[0, 0], -(y - K[1, 2]) / K[1, 1], -np.ones_like(x)], axis=-1) @ pose[:3, :3].T
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.where(rays[..., 1] < 0, -pose[1, 3] / rays[..., 1], np.nan)
    place = pose[:3, 3] + rays * distance[..., None]
    place[np.abs(place[..., [0, 2]]).max(axis=-1) > 2000] = np.nan
    s, t = (place[..., 0] + 2000) / 4000 * repeats, (2000 - place[..., 2]) / 4000 * repeats
    board = (np.floor(8 * s) + 7 - np.floor(8 * t)) % 2
    return board.reshape(HEIGHT, count, WIDTH, count).mean(axis=(1, 3))


def rays_of(K: np.ndarray) -> np.ndarray:
    """(H, W, 1, 2, 3): the pinhole's rays, given one by one."""
    x, y = np.meshgrid(np.arange(WIDTH) + 0.5, np.arange(HEIGHT) + 0.5)
    ways = np.stack([(x - K[0, 2]) / K[0, 0], -(y - K[1, 2]) / K[1, 1], -np.ones_like(x)], axis=-1)
    return np.stack([np.zeros_like(ways), ways], axis=-2)[:, :, None].astype(np.float32)


@pytest.mark.parametrize("given", [False, True])
def test_a_checkerboard_to_the_horizon_does_not_alias(surfaces, tmp_path, device, given):
    """Each pixel is the mean of what it covers, far away 0.5, but for what a filter does at the borders of squares. Rays that are given
    one by one show the same."""
    repeats = 1000.0
    stage = plane(surfaces, checkerboard(tmp_path), repeats)
    frame = hdwarp.render(stage, "/eye", resolution=(WIDTH, HEIGHT), aovs=("albedo", "primId"), device=device)
    wanted, found = supersampled(frame, repeats), frame["albedo"][..., 0].astype(np.float64)
    if given:
        with hdwarp.Scene(stage, device=device) as scene:
            camera = hdwarp.SensorCamera(scene, cameras="/eye", resolution=(WIDTH, HEIGHT))
            camera.set_camera_rays(rays_of(frame.K))
            out = camera.allocate(["albedo"])
            camera.update(scene.state(), out)
            found = out["albedo"].numpy()[0, ..., 0].astype(np.float64)
    rows = np.flatnonzero(np.isfinite(wanted).all(axis=1))
    assert len(rows) > 25
    assert np.abs(found[rows[:3]] - 0.5).max() < 0.02
    error = found[rows] - wanted[rows]
    assert np.sqrt(np.mean(error**2, axis=1)).max() < 0.06  # one sample a pixel is off by 0.5 in the upper rows
    assert np.sqrt(np.mean(error**2)) < 0.03
    assert np.abs(error).max() < 0.2
    assert found[rows[-1]].max() > 0.95
    assert found[rows[-1]].min() < 0.05  # it is still a checkerboard in front


def test_the_mean_of_an_image_at_every_distance(surfaces, tmp_path, device):
    """Bytes of noise, square on: as many texels a pixel as one likes, the spread falls as that of a mean of so many does."""
    noise = np.random.default_rng(0).integers(0, 256, (SIZE, SIZE)).astype(np.uint8)
    PIL.Image.fromarray(np.dstack([noise] * 3)).save(tmp_path / "a.png")
    light = surfaces.linear(np.dstack([noise] * 4) / 255.0)[..., 0]
    # 3 images over 96 pixels: 8 texels a pixel each way, then 64 and 1600
    for repeats, texels in ((1.0, 8), (8.0, 64), (200.0, 1600)):
        stage = surfaces.square()
        primvar = UsdGeom.PrimvarsAPI(stage.GetPrimAtPath("/q")).GetPrimvar("st")
        primvar.Set(Vt.Vec2fArray([Gf.Vec2f(*st) * repeats for st in primvar.Get()]))
        surfaces.diffuse(stage, tmp_path / "a.png")
        found = surfaces.shown(stage, device)[:, 0]
        assert found.mean() == pytest.approx(light.mean(), abs=0.01)
        assert np.std(found) < 1.5 * np.std(light) / min(texels, SIZE) + 0.002


def test_what_is_magnified_is_the_image_itself(surfaces, twin, tmp_path, device):
    """A texel and a half a pixel would be filtered; at 7 / 8 of one each pixel is the plain bilinear look-up."""
    file, pixels = surfaces.image(tmp_path, size=28)
    stage = surfaces.square()
    surfaces.diffuse(stage, file)
    expected = twin.look_up(Texture(Image(surfaces.linear(pixels / 255), False), "st", "repeat", "repeat"), surfaces.pixels_st())
    assert surfaces.shown(stage, device) == pytest.approx(expected[:, :3], abs=1e-4)


@pytest.mark.parametrize("given", [False, True])
def test_footprints_compile_to_ptx(tmp_path, given):
    (path,) = wp.compile_aot_module(footprints_kernel(1, given).module, arch=80, module_dir=tmp_path, use_ptx=True)
    assert "footprints" in path.read_text()


def test_levels_compile_to_ptx(tmp_path):
    (path,) = wp.compile_aot_module(halve.module, arch=80, module_dir=tmp_path, use_ptx=True)
    assert "halve" in path.read_text()
