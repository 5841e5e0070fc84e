"""RenderSettings(textures=False): every texture is one colour, its mean in linear light, wherever it is looked up."""

from __future__ import annotations

import numpy as np
import pytest

import hdwarp

WITHOUT = hdwarp.RenderSettings(textures=False)


def means(surfaces, pixels: np.ndarray) -> np.ndarray:
    return surfaces.linear(pixels / 255).reshape(-1, pixels.shape[-1]).mean(axis=0)


def is_one_colour(shown: np.ndarray, colour: np.ndarray) -> bool:
    """Bytes of the levels are rounded: within two of 255 of the encoded colour."""
    assert np.ptp(shown.reshape(-1, 3), axis=0).max() < 1e-6
    return shown.reshape(-1, 3)[0] == pytest.approx(np.asarray(colour)[:3], abs=0.015)


@pytest.mark.parametrize("wrap", ["repeat", "black", "clamp", "mirror"])
@pytest.mark.parametrize("size", [4, 5])
def test_the_mean_in_the_place_of_the_texture(surfaces, tmp_path, device, wrap, size):
    """From one texel a pixel to places outside of the image, where "black" would show none of it."""
    file, pixels = surfaces.image(tmp_path, size=size, mode="RGB")
    stage = surfaces.square()
    surfaces.diffuse(stage, file, wrapS=wrap, wrapT=wrap)
    plain, flat = (surfaces.look(stage, device, ("albedo",), settings=settings)["albedo"] for settings in (None, WITHOUT))
    assert is_one_colour(flat[..., :3], means(surfaces, pixels))
    assert np.ptp(plain[..., 0]) > 0.3


def test_scale_bias_and_channel_count_for_the_mean(surfaces, tmp_path, device):
    file, pixels = surfaces.image(tmp_path)
    stage = surfaces.square()
    surfaces.diffuse(stage, file, "g", scale=(1.0, 0.5, 1.0, 1.0), bias=(0.0, 0.25, 0.0, 0.0))
    flat = surfaces.look(stage, device, ("albedo",), settings=WITHOUT)["albedo"]
    assert is_one_colour(flat[..., :3], np.repeat(0.5 * means(surfaces, pixels)[1] + 0.25, 3))


def test_each_tile_of_udim_has_its_own(surfaces, tmp_path, device):
    """st runs from -1 to 2: tile 1001 from pixel 32 to 64, 1002 right of it, and the fallback left of it."""
    of_tile = {number: surfaces.image(tmp_path, f"t.{number}.png", number, mode="RGB")[1] for number in (1001, 1002)}
    stage = surfaces.square()
    surfaces.diffuse(stage, tmp_path / "t.<UDIM>.png", fallback=(0.125, 0.25, 0.5, 1.0))
    flat = surfaces.look(stage, device, ("albedo",), settings=WITHOUT)["albedo"][34:62, :, :3]
    assert is_one_colour(flat[:, 34:62], means(surfaces, of_tile[1001]))
    assert is_one_colour(flat[:, 66:], means(surfaces, of_tile[1002]))
    assert is_one_colour(flat[:, :30], (0.125, 0.25, 0.5))


def test_settings_change_what_an_open_scene_shows(surfaces, tmp_path, device):
    """Also after other images have come, and with the light on."""
    file, pixels = surfaces.image(tmp_path, mode="RGB")
    stage = surfaces.square()
    path = surfaces.diffuse(stage, file)
    scene = hdwarp.Scene(stage, device=device)

    def looks(settings=None) -> dict:
        return surfaces.look(scene, device, ("albedo", "color"), settings=settings)

    first = looks()
    assert is_one_colour(looks(WITHOUT)["albedo"][..., :3], means(surfaces, pixels))
    assert np.ptp(looks(WITHOUT)["color"][..., :3].reshape(-1, 3), axis=0).max() < 1e-5 < np.ptp(first["color"][..., 0])
    np.testing.assert_array_equal(looks()["albedo"], first["albedo"])
    other, pixels = surfaces.image(tmp_path, "b.png", 9, mode="RGB", size=32)
    surfaces.constant(stage, "file", "asset", str(other), path)
    scene.sync()
    assert is_one_colour(looks(WITHOUT)["albedo"][..., :3], means(surfaces, pixels))
    np.testing.assert_array_equal(looks()["albedo"], surfaces.look(stage, device, ("albedo",))["albedo"])


def test_what_blends_does_so_by_its_mean(surfaces, tmp_path, device):
    """Opacity from a texture: every pixel is covered by the mean of its alpha."""
    file, pixels = surfaces.image(tmp_path)
    stage = surfaces.square()
    path = surfaces.diffuse(stage, file)
    surfaces.connect(stage, "opacity", "float", f"{path}.outputs:a")
    plain, flat = (surfaces.look(stage, device, ("color",), settings=settings)["color"][..., 3] for settings in (None, WITHOUT))
    assert np.ptp(flat) < 1e-6 and flat[0, 0] == pytest.approx(pixels[..., 3].mean() / 255, abs=0.01)
    assert np.ptp(plain) > 0.3
