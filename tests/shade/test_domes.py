"""Domes: constant ones by hand, pictures against quadrature in float64, directions drawn against their density, orientation."""

from __future__ import annotations

import math

import numpy as np
import pytest
import warp as wp

from hdwarp.shade.domes import dome_irradiance, dome_pdf, dome_radiance, dome_reflection, dome_sample, dome_towards, light_picture
from hdwarp.stage.looks import Image, Light, LightKind, Texture
from hdwarp.tables.dome_maths import as_latlong, resized
from hdwarp.tables.domes import DomeTable
from hdwarp.tables.structs import DomeTables


@wp.kernel
def _look(
    domes: DomeTables,
    directions: wp.array[wp.vec3f],
    roughness: wp.float32,
    radiance: wp.array[wp.vec3f],
    irradiance: wp.array[wp.vec3f],
    reflection: wp.array[wp.vec3f],
    pdf: wp.array[wp.float32],
):
    i = wp.tid()
    radiance[i] = dome_radiance(domes, 0, directions[i])
    irradiance[i] = dome_irradiance(domes, 0, directions[i])
    reflection[i] = dome_reflection(domes, 0, directions[i], roughness)
    pdf[i] = dome_pdf(domes, 0, directions[i])


@wp.kernel
def _sample(domes: DomeTables, uv: wp.array[wp.vec2f], out: wp.array[wp.vec4f]):
    i = wp.tid()
    out[i] = dome_sample(domes, 0, uv[i][0], uv[i][1])


@wp.kernel
def _towards(
    domes: DomeTables, linear: wp.mat33f, normal: wp.vec3f, uv: wp.array[wp.vec2f], ways: wp.array[wp.vec3f], bright: wp.array[float]
):
    i = wp.tid()
    way, found = dome_towards(domes, 0, linear, normal, uv[i][0], uv[i][1])
    ways[i] = way
    bright[i] = found


@wp.kernel
def _show(domes: DomeTables, picture: wp.int32, st: wp.array[wp.vec3f], out: wp.array[wp.vec3f]):
    i = wp.tid()
    out[i] = light_picture(domes, picture, st[i][0], st[i][1], st[i][2])


def texture(pixels: np.ndarray, srgb: bool = False, **extra) -> Texture:
    pixels = np.asarray(pixels)
    alpha = np.full((*pixels.shape[:2], 1), 255 if pixels.dtype == np.uint8 else 1, pixels.dtype)
    return Texture(Image(np.concatenate([pixels, alpha], axis=2), srgb), st="", **extra)


def table(device, pixels: np.ndarray | None = None, projection: str = "latlong", srgb: bool = False) -> DomeTable:
    domes = DomeTable(wp.get_device(device))
    shown = None if pixels is None else texture(pixels, srgb)
    domes.sync([Light("/d", np.eye(4), kind=LightKind.DOME, texture=shown, projection=projection)])
    return domes


def look(domes: DomeTable, directions: np.ndarray, device, roughness: float = 0.0) -> dict[str, np.ndarray]:
    directions = wp.array(np.asarray(directions, np.float32), dtype=wp.vec3f, device=device)
    out = {name: wp.zeros(len(directions), dtype=wp.vec3f, device=device) for name in ("radiance", "irradiance", "reflection")}
    out["pdf"] = wp.zeros(len(directions), dtype=wp.float32, device=device)
    wp.launch(_look, len(directions), [domes.columns, directions, roughness, *out.values()], device=device)
    return {name: array.numpy().astype(np.float64) for name, array in out.items()}


def sample(domes: DomeTable, uv: np.ndarray, device) -> np.ndarray:
    out = wp.zeros(len(uv), dtype=wp.vec4f, device=device)
    wp.launch(_sample, len(uv), [domes.columns, wp.array(np.asarray(uv, np.float32), dtype=wp.vec2f, device=device), out], device=device)
    return out.numpy().astype(np.float64)


def random_directions(count: int, seed: int = 1) -> np.ndarray:
    d = np.random.default_rng(seed).normal(size=(count, 3))
    return d / np.linalg.norm(d, axis=1, keepdims=True)


def sphere(height: int = 256) -> tuple[np.ndarray, np.ndarray]:
    """(directions (n, 3), weights (n,)) of a quadrature over the sphere: Gauss's in y, even steps around it."""
    y, weight = np.polynomial.legendre.leggauss(height)
    turn = (np.arange(2 * height) + 0.5) * (math.pi / height)
    y, turn = np.meshgrid(y, turn, indexing="ij")
    across = np.sqrt(1 - y * y)
    d = np.stack([np.sin(turn) * across, y, np.cos(turn) * across], axis=-1).reshape(-1, 3)
    return d, np.repeat(weight * math.pi / height, 2 * height)


def picture(function, width: int = 256) -> np.ndarray:
    """A latlong picture of a function of direction: its middle is +z, a quarter to the left +x, the top +y."""
    height = width // 2
    lat = math.pi / 2 - (np.arange(height) + 0.5) * math.pi / height
    lon = math.pi - (np.arange(width) + 0.5) * 2 * math.pi / width
    lat, lon = np.meshgrid(lat, lon, indexing="ij")
    d = np.stack([np.sin(lon) * np.cos(lat), np.sin(lat), np.cos(lon) * np.cos(lat)], axis=-1)
    return function(d).astype(np.float32)


SPOTS = {"+z": (0, 0, 1), "+x": (1, 0, 0), "-x": (-1, 0, 0), "+y": (0, 1, 0), "-y": (0, -1, 0)}


def test_a_constant_dome(device):
    found = look(table(device), random_directions(100), device, 0.4)
    assert found["radiance"] == pytest.approx(np.ones((100, 3)), rel=1e-6)
    assert found["irradiance"] == pytest.approx(np.full((100, 3), math.pi), rel=1e-4)
    assert found["reflection"] == pytest.approx(np.ones((100, 3)), rel=1e-5)
    assert found["pdf"] == pytest.approx(np.full(100, 1 / (4 * math.pi)), rel=1e-5)


@pytest.mark.parametrize(("name", "column", "row"), [("+z", 32, 16), ("+x", 16, 16), ("-x", 48, 16), ("+y", 0, 0), ("-y", 0, 31)])
def test_orientation_of_latlong(name, column, row, device):
    """A spot of 4 x 4 of 64 x 32 texels about where the direction is; whole rows at the poles."""
    pixels = np.zeros((32, 64, 3), np.float32)
    if name in ("+y", "-y"):
        pixels[row] = 1
    else:
        pixels[row - 2 : row + 2, column - 2 : column + 2] = 1
    found = look(table(device, pixels), np.array(list(SPOTS.values()), np.float64), device)["radiance"][:, 0]
    assert found.tolist() == [float(other == name) for other in SPOTS]


@pytest.mark.parametrize("projection", ["angular", "mirroredBall"])
def test_orientation_of_balls(projection, device):
    """The middle is +z, the left half is at +x, the upper half at +y. A quarter turn away is half way out on an angular map and at sin 45
    degrees on a mirrored ball."""
    half = 0.5 if projection == "angular" else math.sin(math.pi / 4)
    at = {"+z": (0, 0), "+x": (-half, 0), "-x": (half, 0), "+y": (0, half), "-y": (0, -half)}
    y, x = np.meshgrid(1 - (np.arange(128) + 0.5) / 64, (np.arange(128) + 0.5) / 64 - 1, indexing="ij")
    for name, (u, v) in at.items():
        pixels = np.repeat((np.hypot(x - u, y - v) < 0.1).astype(np.float32)[..., None], 3, axis=2)
        found = look(table(device, pixels, projection), np.array(list(SPOTS.values()), np.float64), device)["radiance"][:, 0]
        assert found == pytest.approx([float(other == name) for other in SPOTS], abs=1e-4), name


def test_irradiance_of_smooth_light_is_exact(device):
    """Light of order two or less: irradiance by quadrature of the very function."""

    def light(d: np.ndarray) -> np.ndarray:
        x, y, z = d[..., 0], d[..., 1], d[..., 2]
        return np.stack([2 + x, 2 + y * z - 0.5 * z, 3 + z * z - x * x + x * y], axis=-1)

    d, weight = sphere(128)
    normals = random_directions(20)
    expected = np.einsum("nd,d,dc->nc", np.maximum(normals @ d.T, 0), weight, light(d))
    assert look(table(device, picture(light)), normals, device)["irradiance"] == pytest.approx(expected, rel=1e-3)


def test_irradiance_of_a_picture_is_near_its_quadrature(device):
    """Two lamps over a dim sky, one of them as small as a window: of any detail, on floors (the poles) too."""

    def light(d: np.ndarray) -> np.ndarray:
        lobe = np.exp(60 * (d @ np.array([0.6, 0.8, 0]) - 1)) + np.exp(3 * (d @ np.array([0, -0.6, 0.8]) - 1))
        return lobe[..., None] * np.array([1.0, 0.5, 2.0]) + 0.2

    d, weight = sphere(128)
    normals = np.concatenate([random_directions(50), [[0, 1, 0], [0, -1, 0]]])
    expected = np.einsum("nd,d,dc->nc", np.maximum(normals @ d.T, 0), weight, light(d))
    assert look(table(device, picture(light)), normals, device)["irradiance"] == pytest.approx(expected, rel=3e-3)


def lamps(d: np.ndarray) -> np.ndarray:
    return (20.0 * (d @ np.array([0.6, 0.48, 0.64]) > 0.97) + (d[..., 1] > 0.2))[..., None] * np.array([1.0, 0.9, 0.5])


def test_density_of_directions_integrates_to_one_and_is_that_of_samples(device):
    domes = table(device, picture(lamps))
    d, weight = sphere(512)
    assert (look(domes, d, device)["pdf"] * weight).sum() == pytest.approx(1, rel=2e-3)
    uv = (np.stack(np.meshgrid(np.arange(256), np.arange(256)), axis=-1).reshape(-1, 2) + 0.5) / 256
    found = sample(domes, uv, device)
    assert np.linalg.norm(found[:, :3], axis=1) == pytest.approx(np.ones(len(uv)), rel=1e-5)
    assert (found[:, 3] > 0).all()
    at = look(domes, found[:, :3], device)
    same = np.isclose(at["pdf"], found[:, 3], rtol=1e-4)
    assert same.mean() > 0.99  # float32 puts a few on the other side of an edge
    # What samples estimate: the whole, by quadrature. Radiance over density hardly varies.
    expected = (lamps(d) * weight[:, None]).sum(axis=0)
    assert (at["radiance"] / found[:, 3:]).mean(axis=0) == pytest.approx(expected, rel=0.02)


def towards(domes: DomeTable, turned: np.ndarray, normal: np.ndarray, device) -> tuple[np.ndarray, np.ndarray]:
    uv = (np.stack(np.meshgrid(np.arange(256), np.arange(256)), axis=-1).reshape(-1, 2) + 0.5) / 256
    uv = wp.array(uv.astype(np.float32), dtype=wp.vec2f, device=device)
    ways, bright = wp.zeros(len(uv), dtype=wp.vec3f, device=device), wp.zeros(len(uv), dtype=wp.float32, device=device)
    linear = wp.mat33f(*turned.reshape(-1).tolist())
    wp.launch(_towards, len(uv), [domes.columns, linear, wp.vec3f(*normal.tolist()), uv, ways, bright], device=device)
    return ways.numpy().astype(np.float64), bright.numpy().astype(np.float64)


def test_directions_of_shadow_rays_bring_what_a_surface_gets(device):
    """The mean of luminance over density times the cosine is irradiance, by quadrature, for normals of all kinds in turned domes."""
    turned = np.array([[0.0, 0.8, 0.6], [1.0, 0.0, 0.0], [0.0, 0.6, -0.8]])  # dome to world
    d, weight = sphere(128)
    luminance = lamps(d) @ np.array([0.2126, 0.7152, 0.0722])
    domes = table(device, picture(lamps))
    for normal in random_directions(5):
        ways, bright = towards(domes, turned, normal, device)
        expected = (np.maximum((d @ turned.T) @ normal, 0.0) * luminance * weight).sum()
        assert (bright * np.maximum(ways @ normal, 0.0)).mean() == pytest.approx(expected, rel=0.02)


def test_shadow_rays_to_a_plain_dome_count_alike(device):
    """All go where light is received, in proportion to how much: each brings pi."""
    normal = random_directions(1)[0]
    ways, bright = towards(table(device), np.eye(3), normal, device)
    cosine = ways @ normal
    assert cosine.min() >= -1e-5
    seen = cosine > 1e-3
    assert (bright * cosine)[seen] == pytest.approx(np.full(seen.sum(), math.pi), rel=1e-3)


def test_black_domes_have_directions(device):
    domes = table(device, np.zeros((4, 8, 3), np.float32))
    found = sample(domes, np.random.default_rng(1).random((100, 2)), device)
    assert found[:, 3] == pytest.approx(np.full(100, 1 / (4 * math.pi)), rel=1e-5)
    assert look(domes, found[:, :3], device)["irradiance"].max() == 0


def test_the_ends_of_the_unit_square_give_directions(device):
    found = sample(table(device, picture(lamps)), np.array([[0, 0], [0.99999994, 0.99999994], [0, 0.99999994]]), device)
    assert np.isfinite(found).all() and (found[:, 3] > 0).all()


@pytest.mark.parametrize("roughness", [0.25, 0.5, 1.0])
def test_reflections_are_averages_of_ggx(roughness, device):
    """At the levels that are kept: quadrature of radiance by D(h) n.l, read at middles of their texels."""

    def light(d: np.ndarray) -> np.ndarray:
        return np.exp(6 * (d @ np.array([0.6, 0.48, 0.64]) - 1))[..., None] * np.array([1.0, 2.0, 3.0]) + 0.1

    d, weight = sphere(192)
    width = {0.25: 64, 0.5: 32, 1.0: 16}[roughness]
    lat, lon = math.pi / 2 - 5.5 * math.pi / (width // 2), math.pi - (np.array([1, width // 4, width - 2]) + 0.5) * 2 * math.pi / width
    normals = np.stack([np.sin(lon) * math.cos(lat), np.full(3, math.sin(lat)), np.cos(lon) * math.cos(lat)], axis=-1)
    cosine = normals @ d.T
    half2 = (1 + cosine) / 2
    by = np.maximum(cosine, 0) / (half2 * (roughness**4 - 1) + 1) ** 2 * weight
    expected = (by @ light(d)) / by.sum(axis=1, keepdims=True)
    found = look(table(device, picture(light)), normals, device, roughness)["reflection"]
    assert found == pytest.approx(expected, rel=0.02)
    mirror = look(table(device, picture(light)), normals, device, 0.0)["reflection"]
    assert mirror == pytest.approx(light(normals), rel=5e-3)


def test_colours_are_linear(device):
    codes = np.full((2, 4, 3), 188, np.uint8)
    assert look(table(device, codes, srgb=True), [[0, 0, 1]], device)["radiance"][0, 0] == pytest.approx(0.5029, abs=1e-3)
    assert look(table(device, codes), [[0, 0, 1]], device)["radiance"][0, 0] == pytest.approx(188 / 255)
    odd = np.full((2, 4, 3), np.inf, np.float16)
    found = look(table(device, odd), [[0, 0, 1]], device)
    assert all(np.isfinite(values).all() for values in found.values())


def test_resizing_keeps_averages():
    image = np.random.default_rng(1).random((37, 53, 3))
    for width, height in ((53, 37), (20, 9), (1, 1), (100, 80)):
        assert resized(image, width, height).mean(axis=(0, 1)) == pytest.approx(image.mean(axis=(0, 1)))
    assert resized(np.arange(8.0).reshape(1, 8), 4, 1).tolist() == [[0.5, 2.5, 4.5, 6.5]]
    assert as_latlong(np.ones((3000, 5000, 3), np.float32), "latlong").shape == (512, 1024, 3)


def test_pictures_of_rect_lights(device):
    """(0, 0) is the lower left corner of the image; each level has half the size of the one before."""
    pixels = np.zeros((4, 8, 3), np.float32)
    pixels[3, 0], pixels[0, 7] = (1, 0, 0), (0, 1, 0)
    domes, light = DomeTable(wp.get_device(device)), Light("/r", np.eye(4), kind=LightKind.RECT, texture=texture(pixels))
    domes.sync([Light("/d", np.eye(4), kind=LightKind.DOME), light])
    at = np.array([(1 / 16, 1 / 8, 0), (15 / 16, 7 / 8, 0), (0, 0, 0), (0.5, 0.5, 3), (0.5, 0.5, 99), (1 / 8, 1 / 4, 1)])
    out = wp.zeros(len(at), dtype=wp.vec3f, device=device)
    wp.launch(_show, len(at), [domes.columns, domes.picture(light), wp.array(at, dtype=wp.vec3f, device=device), out], device=device)
    mean = 1 / 32
    expected = [(1, 0, 0), (0, 1, 0), (1, 0, 0), (mean, mean, 0), (mean, mean, 0), (0.25, 0, 0)]
    assert out.numpy() == pytest.approx(np.array(expected), abs=1e-6)


def test_equal_images_are_looked_at_once(device):
    domes, shown = DomeTable(wp.get_device(device)), texture(picture(lamps, 64))
    lights = [Light(f"/d{i}", np.eye(4), kind=LightKind.DOME, texture=shown, radiance=(i, i, i)) for i in range(3)]
    assert domes.sync(lights) and not domes.sync(lights[:2])
    assert (len(domes), [domes.dome(light) for light in lights]) == (1, [0, 0, 0])
