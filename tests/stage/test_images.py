"""Images of every kind that is read, by asset path, inside packages too; what is broken is told with a cure."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import OpenEXR
import PIL.Image
import PIL.TiffImagePlugin
import pytest
from pxr import Sdf

from hdwarp.stage.images import ImageError, Images

RGB = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3) * 10
MATRIX = np.array([[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12], [13, 14, 15, 17]], np.float32)


def read(path, images=None):
    return (images or Images()).read(Sdf.AssetPath(str(path), str(path)))


def test_eight_bits_with_colour_are_srgb(tmp_path):
    PIL.Image.fromarray(RGB).save(tmp_path / "a.png")
    image = read(tmp_path / "a.png").image
    assert image.srgb and image.is_opaque
    assert (image.pixels[..., :3] == RGB).all() and (image.pixels[..., 3] == 255).all()


def test_alpha_palettes_and_grey(tmp_path):
    alpha = np.dstack([RGB, np.array([[0, 1, 2], [3, 4, 255]], np.uint8)])
    PIL.Image.fromarray(alpha).save(tmp_path / "a.png")
    image = read(tmp_path / "a.png").image
    assert (image.pixels == alpha).all() and not image.is_opaque
    PIL.Image.fromarray(RGB[..., 0]).save(tmp_path / "grey.png")
    image = read(tmp_path / "grey.png").image
    assert not image.srgb
    assert (image.pixels[..., :3] == RGB[..., :1]).all() and image.is_opaque
    PIL.Image.fromarray(RGB).convert("P").save(tmp_path / "p.png")
    assert read(tmp_path / "p.png").image.srgb
    PIL.Image.fromarray(RGB[..., 0] > 60).save(tmp_path / "bits.png")
    assert (read(tmp_path / "bits.png").image.pixels[..., 0] == np.where(RGB[..., 0] > 60, 255, 0)).all()


def test_sixteen_bits_of_grey_are_linear_floats(tmp_path):
    grey = np.array([[0, 65535], [13107, 39321]], np.uint16)
    PIL.Image.fromarray(grey).save(tmp_path / "a.png")
    image = read(tmp_path / "a.png").image
    assert image.pixels.dtype == np.float32 and not image.srgb
    assert image.pixels[..., 1] == pytest.approx(np.array([[0, 1], [0.2, 0.6]]), abs=1e-6)


def exr(path, channels, **header):
    OpenEXR.File({"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage, **header}, channels).write(str(path))


def test_exr_keeps_its_floats_and_tells_where_it_was_looked_from(tmp_path):
    plane = np.array([[0.5, 100.0, -1.0]], np.float32)
    exr(tmp_path / "a.exr", {"R": plane, "G": plane * 2, "B": plane * 3, "A": plane * 0}, worldtoscreen=MATRIX)
    file = read(tmp_path / "a.exr")
    assert file.image.pixels.dtype == np.float32 and not file.image.srgb
    assert (file.image.pixels == np.stack([plane, plane * 2, plane * 3, plane * 0], axis=-1)).all()
    assert (file.screen_from_world == MATRIX.T).all()
    exr(tmp_path / "b.exr", {"Y": plane.astype(np.float16)}, worldToNDC=MATRIX)
    file = read(tmp_path / "b.exr")
    assert file.image.pixels.dtype == np.float16 and file.image.is_opaque
    assert (file.image.pixels[..., 2] == plane).all()
    assert (file.screen_from_world == MATRIX.T).all()
    exr(tmp_path / "c.exr", {"Y": plane})
    assert read(tmp_path / "c.exr").screen_from_world is None


def test_numbers_that_are_not_finite_become_finite(tmp_path):
    exr(tmp_path / "a.exr", {"Y": np.array([[np.nan, np.inf, -np.inf]], np.float32)})
    assert read(tmp_path / "a.exr").image.pixels[0, :, 0].tolist() == [0.0, np.finfo(np.float32).max, -np.finfo(np.float32).max]


def test_a_tiff_tells_where_it_was_looked_from(tmp_path):
    PIL.Image.fromarray(RGB).save(tmp_path / "a.tif", tiffinfo={33305: tuple(MATRIX.ravel().tolist())})
    assert (read(tmp_path / "a.tif").screen_from_world == MATRIX.T).all()


def test_inside_packages(tmp_path):
    data = io.BytesIO()
    PIL.Image.fromarray(RGB).save(data, "PNG")
    with zipfile.ZipFile(tmp_path / "a.usdz", "w", zipfile.ZIP_STORED) as package:
        package.writestr("root.usda", "#usda 1.0\n")
        package.writestr("in/a.png", data.getvalue())
    image = read(f"{tmp_path / 'a.usdz'}[in/a.png]").image
    assert (image.pixels[..., :3] == RGB).all()


def test_equal_files_are_one_image_and_changed_ones_another(tmp_path):
    images = Images()
    PIL.Image.fromarray(RGB).save(tmp_path / "a.png")
    PIL.Image.fromarray(RGB).save(tmp_path / "b.png")
    first = read(tmp_path / "a.png", images).image
    assert read(tmp_path / "b.png", images).image is first
    PIL.Image.fromarray(255 - RGB).save(tmp_path / "a.png")
    import os

    os.utime(tmp_path / "a.png", (1, 1))  # another time than before, however fast this is
    changed = read(tmp_path / "a.png", images).image
    assert changed is not first and (changed.pixels[..., :3] == 255 - RGB).all()
    images.keep({changed})
    assert read(tmp_path / "b.png", images).image is not first


def bombed() -> bytes:
    """A PNG that says it is 50000 x 50000."""
    data = io.BytesIO()
    PIL.Image.fromarray(RGB).save(data, "PNG")
    return data.getvalue()[:16] + (50000).to_bytes(4, "big") * 2 + data.getvalue()[24:]


def truncated() -> bytes:
    data = io.BytesIO()
    PIL.Image.fromarray(np.random.default_rng(0).integers(0, 255, (64, 64, 3)).astype(np.uint8)).save(data, "PNG")
    return data.getvalue()[:3000]


@pytest.mark.parametrize("content", [b"", b"no image", b"\x89PNG\r\n\x1a\n", b"\x76\x2f\x31\x01\x02\x00\x00\x00", truncated(), bombed()])
def test_what_is_broken_is_told(tmp_path, content):
    (tmp_path / "a.png").write_bytes(content)
    with pytest.raises(ImageError, match=r"@.*a\.png@"):
        read(tmp_path / "a.png")


def test_what_is_missing_is_told(tmp_path):
    with pytest.raises(ImageError, match="was not found"):
        Images().read(Sdf.AssetPath("a.png", ""))
    with pytest.raises(ImageError, match="cannot be opened"):
        read(tmp_path / "none.png")


def test_wrap_modes_of_a_tiff(tmp_path):
    """Pixar's tag, as OpenImageIO writes it; what it cannot mean is as if it were not there."""
    for text, expected in (("periodic,clamp", ("repeat", "clamp")), ("mirror", ("mirror", "mirror")), ("wild,clamp", None)):
        tags = PIL.TiffImagePlugin.ImageFileDirectory_v2()
        tags[33303] = text
        tags.tagtype[33303] = 2
        PIL.Image.new("RGB", (2, 2)).save(tmp_path / "a.tif", tiffinfo=tags)
        assert Images().read(Sdf.AssetPath("a.tif", str(tmp_path / "a.tif"))).wraps == expected
