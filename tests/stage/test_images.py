"""Images of every kind that is read, by asset path, inside packages too; what is broken is told with a cure."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
import zipfile
import zlib

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


@pytest.mark.parametrize(("width", "height"), [(50000, 50000), (2**28 + 1, 1)])
def test_absurd_sizes_are_refused_before_decoding(tmp_path, width, height):
    """The file holds none of the pixels that it promises: who decoded first would say that."""
    exr(tmp_path / "a.exr", {"Y": np.zeros((1, 1), np.float32)})
    data = (tmp_path / "a.exr").read_bytes()
    for name in (b"dataWindow", b"displayWindow"):
        at = data.index(name) + len(name + b"\0box2i\0\x10\0\0\0")
        data = data[:at] + struct.pack("<4i", 0, 0, width - 1, height - 1) + data[at + 16 :]
    (tmp_path / "a.exr").write_bytes(data)
    with pytest.raises(ImageError, match=r"@.*a\.exr@ .*(claims a 9536 MB image|exceeds .limits:resolution)"):
        read(tmp_path / "a.exr")


def test_more_texels_than_the_table_counts_are_refused(tmp_path):
    """A Radiance file is not looked through by its reader: the size alone is wrong."""
    (tmp_path / "a.hdr").write_bytes(b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 20000 +X 20000\n" + bytes(10_000_000))
    with pytest.raises(ImageError, match=r"@.*a\.hdr@ has 20000 x 20000 pixels, more than 268,435,456 in all"):
        read(tmp_path / "a.hdr")


def test_what_is_missing_is_told(tmp_path):
    with pytest.raises(ImageError, match="was not found"):
        Images().read(Sdf.AssetPath("a.png", ""))
    with pytest.raises(ImageError, match="cannot be opened"):
        read(tmp_path / "none.png")


def png16(path, values: np.ndarray) -> None:
    """A PNG of 16 bits a channel, (H, W, 1 to 4) uint16, by hand: Pillow writes grey ones only."""
    height, width, channels = values.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 16, {1: 0, 2: 4, 3: 2, 4: 6}[channels], 0, 0, 0)
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_sixteen_bits_stay_sixteen(tmp_path, channels):
    """Neighbouring values stay apart; alpha is 1 where there is none, and colours are not multiplied by it."""
    values = np.random.default_rng(channels).integers(0, 65536, (3, 5, channels)).astype(np.uint16)
    values[0, 0], values[0, 1] = 1000, 1001
    png16(tmp_path / "a.png", values)
    image = read(tmp_path / "a.png").image
    assert image.pixels.dtype == np.float32 and not image.srgb
    colour = values[..., :3] if channels > 2 else np.repeat(values[..., :1], 3, axis=-1)
    assert image.pixels[..., :3] * 65535.0 == pytest.approx(colour.astype(float), abs=0.02)
    assert image.pixels[..., 3] * 65535.0 == pytest.approx(values[..., -1].astype(float) if channels in (2, 4) else 65535.0, abs=0.02)


@pytest.mark.parametrize("suffix", ["tga", "tif", "webp", "bmp"])
def test_other_formats(tmp_path, suffix):
    """Colours beside low alphas are as they were written."""
    pixels = np.dstack([RGB, np.array([[0, 1, 2], [3, 4, 255]], np.uint8)])
    pixels = pixels[..., :3] if suffix == "bmp" else pixels
    PIL.Image.fromarray(pixels).save(tmp_path / f"a.{suffix}", **({"lossless": True, "exact": True} if suffix == "webp" else {}))
    image = read(tmp_path / f"a.{suffix}").image
    assert image.srgb and (image.pixels[..., : pixels.shape[2]] == pixels).all()


def test_jpeg_and_radiance(tmp_path):
    PIL.Image.fromarray(np.full((8, 8, 3), (200, 100, 50), np.uint8)).save(tmp_path / "a.jpg", quality=95)
    image = read(tmp_path / "a.jpg").image
    assert image.srgb and np.abs(image.pixels[..., :3].astype(int) - (200, 100, 50)).max() <= 3
    # Two texels of shared exponent 2^(130 - 136): 128 * 2^-6 = 2, and 64, 32 of it.
    (tmp_path / "a.hdr").write_bytes(b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 1 +X 2\n" + bytes([128, 64, 32, 130] * 2))
    image = read(tmp_path / "a.hdr").image
    assert image.pixels.dtype == np.float32 and not image.srgb
    assert image.pixels[0, :, :3] == pytest.approx(np.array([[2.0, 1.0, 0.5]] * 2), rel=0.01)


def test_the_content_counts_not_the_name(tmp_path):
    PIL.Image.fromarray(RGB).save(tmp_path / "a.png")
    for name in ("b.jpg", "b", "b?c=1.png", "ü #.exr"):
        (tmp_path / name).write_bytes((tmp_path / "a.png").read_bytes())
        assert (read(tmp_path / name).image.pixels[..., :3] == RGB).all(), name


def test_an_exr_of_layers(tmp_path):
    """R, G, B and A among other channels, of different types; without them the first."""
    planes = {
        name: np.full((2, 3), k, np.float32 if name == "Z" else np.float16) for k, name in enumerate(("A", "B", "G", "N.x", "R", "Z"))
    }
    exr(tmp_path / "a.exr", planes)
    assert read(tmp_path / "a.exr").image.pixels[0, 0].tolist() == [4.0, 2.0, 1.0, 0.0]
    exr(tmp_path / "b.exr", {"N.x": planes["N.x"]})
    assert read(tmp_path / "b.exr").image.pixels[0, 0].tolist() == [3.0, 3.0, 3.0, 1.0]


def test_images_load_late():
    """Importing hdwarp, and opening a stage without textures, loads no decoder."""
    code = "import hdwarp, sys; from pxr import Usd; hdwarp.Scene(Usd.Stage.CreateInMemory(), device='cpu')"
    code += "; print('OpenImageIO' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()[-1] == "False"


def test_wrap_modes_of_a_tiff(tmp_path):
    """Pixar's tag, as OpenImageIO writes it; what it cannot mean is as if it were not there."""
    for text, expected in (("periodic,clamp", ("repeat", "clamp")), ("mirror", ("mirror", "mirror")), ("wild,clamp", None)):
        tags = PIL.TiffImagePlugin.ImageFileDirectory_v2()
        tags[33303] = text
        tags.tagtype[33303] = 2
        PIL.Image.new("RGB", (2, 2)).save(tmp_path / "a.tif", tiffinfo=tags)
        assert Images().read(Sdf.AssetPath("a.tif", str(tmp_path / "a.tif"))).wraps == expected
