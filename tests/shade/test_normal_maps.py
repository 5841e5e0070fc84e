"""Normal maps against closed forms: a flat square with one tilted texel, however its coordinates and its place are turned."""

from __future__ import annotations

import numpy as np
import PIL.Image
import pytest
from pxr import Gf, Sdf, UsdGeom, UsdShade

TILT = np.array([0.6, 0.0, 0.8])  # 0.6 towards growing s
RAISE = np.array([0.0, 0.6, 0.8])


def write_texel(path, direction: np.ndarray) -> np.ndarray:
    """A file of one colour; the direction that it stands for, rounded to bytes."""
    pixel = np.round((np.asarray(direction) + 1.0) / 2.0 * 255).astype(np.uint8)
    PIL.Image.fromarray(np.tile(pixel, (2, 2, 1))).save(path)
    return pixel / 255.0 * 2.0 - 1.0


def mapped(surfaces, file, stage=None):
    """A white square under a normal map, scaled and biased as 8-bit maps have to be."""
    stage = surfaces.square(0.0, 1.0) if stage is None else stage
    surfaces.constant(stage, "diffuseColor", "color3f", (1, 1, 1))
    space = {"sourceColorSpace": "raw", "scale": (2.0, 2.0, 2.0, 1.0), "bias": (-1.0, -1.0, -1.0, 0.0)}
    path = surfaces.texture(stage, file, surfaces.reader(stage), "/m/n", wrapS="repeat", wrapT="repeat", **space)
    surfaces.connect(stage, "normal", "normal3f", f"{path}.outputs:rgb")
    return stage


def middle(surfaces, stage, device, aovs=("color", "normal", "Neye")) -> dict[str, np.ndarray]:
    frame = surfaces.look(stage, device, aovs)
    return {name: frame[name][surfaces.SIZE // 2, surfaces.SIZE // 2 - 7] for name in aovs}


def set_st(stage, values) -> None:
    UsdGeom.PrimvarsAPI(stage.GetPrimAtPath("/q")).GetPrimvar("st").Set(values)


SQUARE = np.array([(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)])


@pytest.fixture
def lit(surface_twin):
    """The camera's light on white, by a normal that `abs` turns to the viewer, and the way to him: whom it faces at least by half of what
    the square does, which no test here turns by more than 40 degrees."""

    def of(turned: np.ndarray, toward: np.ndarray) -> float:
        cosine = abs(np.dot(turned / np.linalg.norm(turned), toward))
        return float(surface_twin.camera_light(1.0, max(cosine, 0.5 * np.cos(np.radians(40.0))))[0])

    return of


@pytest.mark.parametrize("direction", [(0.0, 0.0, 1.0), TILT, RAISE, (-0.36, 0.48, 0.8)])
def test_the_shading_is_that_of_the_turned_normal_and_the_normal_plane_is_not(surfaces, tmp_path, device, lit, direction):
    """Straight from in front all tilts of one size look alike; the normals given out stay the surface's."""
    shown = write_texel(tmp_path / "n.png", direction)
    found = middle(surfaces, mapped(surfaces, tmp_path / "n.png"), device)
    assert found["color"][:3] == pytest.approx([lit(shown, np.array([0, 0, 1]))] * 3, abs=1e-5)
    assert found["normal"].tolist() == [0, 0, 1] and found["Neye"].tolist() == [0, 0, 1]


def tilted_square(surfaces, tmp_path, direction, degrees: float = 40.0):
    """The square turned about y, so that its x runs away from the camera: which way a normal tilts now shows."""
    shown = write_texel(tmp_path / "n.png", direction)
    stage = mapped(surfaces, tmp_path / "n.png")
    UsdGeom.XformCommonAPI(stage.GetPrimAtPath("/q")).SetRotate((0, degrees, 0))
    angle = np.radians(degrees)
    x, z = np.array([np.cos(angle), 0, -np.sin(angle)]), np.array([np.sin(angle), 0, np.cos(angle)])
    return stage, shown, x, np.array([0.0, 1.0, 0.0]), z


@pytest.mark.parametrize("turn", [0, 1, 2, 3])
@pytest.mark.parametrize("mirrored", [False, True])
def test_turned_and_mirrored_coordinates(surfaces, tmp_path, device, lit, turn, mirrored):
    """Coordinates turned by quarters, and mirrored: s grows along another axis of the square, t square to it or against that."""
    stage, shown, x, y, z = tilted_square(surfaces, tmp_path, (0.48, 0.36, 0.8))
    corners = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])
    quarter = np.linalg.matrix_power(np.array([[0, -1], [1, 0]]), turn) @ (np.diag([-1, 1]) if mirrored else np.eye(2, dtype=int))
    set_st(stage, [tuple(map(float, quarter @ corner)) for corner in corners])  # st = quarter . xy, so that rows say where s and t grow
    tangent, other = quarter[0][0] * x + quarter[0][1] * y, quarter[1][0] * x + quarter[1][1] * y
    expected = lit(shown[0] * tangent + shown[1] * other + shown[2] * z, np.array([0, 0, 1]))
    assert middle(surfaces, stage, device)["color"][0] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("scale", [(2, 1, 1), (1, 3, 1), (-1, 1, 1), (0.1, 0.2, 1), (-2, 1, -1)])
def test_scaled_and_mirrored_instances(surfaces, tmp_path, device, lit, scale):
    """Tangents follow the scale, the normal that of the surface (which a mirror does not turn inside out). Seen from 40 degrees."""
    stage, shown, x, y, z = tilted_square(surfaces, tmp_path, (0.48, 0.36, 0.8))
    UsdGeom.XformCommonAPI(stage.GetPrimAtPath("/q")).SetScale(Gf.Vec3f(*scale))
    frame = surfaces.look(stage, device, ("color", "normal", "primId"))
    row, column = np.argwhere(frame["primId"] >= 0)[len(np.argwhere(frame["primId"] >= 0)) // 2]
    normal = frame["normal"][row, column].astype(float)
    assert abs(normal @ z) == pytest.approx(1.0, abs=1e-5)
    signs = np.sign(scale)
    expected = lit(shown[0] * signs[0] * x + shown[1] * signs[1] * y + shown[2] * normal, np.array([0, 0, 1]))
    assert frame["color"][row, column, 0] == pytest.approx(expected, abs=1e-5)


def test_sheared_coordinates_keep_the_tangent_along_s(surfaces, tmp_path, device, lit):
    """t growing along (1, 1) does not turn x away from where s grows; y is square to it."""
    stage, shown, x, y, z = tilted_square(surfaces, tmp_path, (0.48, 0.36, 0.8))
    set_st(stage, [(u - v, v) for u, v in SQUARE.tolist()])  # s grows along x at equal t; at equal s, t grows along (1, 1)
    expected = lit(shown[0] * x + shown[1] * y + shown[2] * z, np.array([0, 0, 1]))
    assert middle(surfaces, stage, device)["color"][0] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("st", [[(0.5, 0.5)] * 4, [(0, 0), (1, 0), (1, 0), (0, 0)], None])
def test_coordinates_that_span_nothing_leave_the_normal(surfaces, tmp_path, device, lit, st):
    """A point, a line, and none at all."""
    write_texel(tmp_path / "n.png", TILT)
    stage = mapped(surfaces, tmp_path / "n.png")
    if st is None:
        stage.GetPrimAtPath("/q").RemoveProperty("primvars:st")
    else:
        set_st(stage, st)
    assert middle(surfaces, stage, device)["color"][0] == pytest.approx(lit(np.array([0, 0, 1]), np.array([0, 0, 1])), rel=1e-5)


def test_a_transform_of_the_coordinates_turns_the_map_with_its_image(surfaces, tmp_path, device, lit):
    """UsdTransform2d by 90 degrees: (s, t) -> (-t, s). The image's s then grows where -t does: along -y."""
    stage, shown, x, y, z = tilted_square(surfaces, tmp_path, (0.48, 0.36, 0.8))
    surfaces.connect(stage, "st", "float2", surfaces.transform(stage, surfaces.reader(stage), rotation=90.0), "/m/n")
    expected = lit(shown[0] * -y + shown[1] * x + shown[2] * z, np.array([0, 0, 1]))
    assert middle(surfaces, stage, device)["color"][0] == pytest.approx(expected, abs=1e-5)


def test_two_maps_laid_by_different_primvars_and_indexed_corners(surfaces, tmp_path, device, lit):
    """Each material's map goes by its own coordinates; face-varying ones with indices as well as those by point."""
    stage, shown, x, y, z = tilted_square(surfaces, tmp_path, (0.48, 0.36, 0.8))
    mesh = stage.GetPrimAtPath("/q")
    uv = UsdGeom.PrimvarsAPI(mesh).CreatePrimvar("uv", Sdf.ValueTypeNames.TexCoord2fArray, "faceVarying")
    uv.Set([(1, 0), (0, 0), (0, 1), (1, 1)])  # mirrored: s grows along -x
    uv.SetIndices([0, 1, 2, 3])
    layer = stage.GetRootLayer()
    for path in ("/q", "/m"):
        assert Sdf.CopySpec(layer, path, layer, f"{path}2")
    UsdShade.Shader.Get(stage, "/m2/r").GetInput("varname").Set("uv")
    UsdShade.MaterialBindingAPI(stage.GetPrimAtPath("/q2")).Bind(UsdShade.Material.Get(stage, "/m2"))
    for path, side in (("/q", -0.5), ("/q2", 0.5)):
        UsdGeom.XformCommonAPI(stage.GetPrimAtPath(path)).SetScale((0.4, 0.4, 0.4))
        UsdGeom.XformCommonAPI(stage.GetPrimAtPath(path)).SetTranslate((side, 0, 0))
    frame, view = surfaces.look(stage, device, ("color", "primId")), np.array([0, 0, 1])
    for path, sign in (("/q", 1.0), ("/q2", -1.0)):
        seen = frame["color"][frame["primId"] == frame.prim_paths.index(path)]
        expected = lit(sign * shown[0] * x + shown[1] * y + shown[2] * z, view)
        assert len(seen) > 100 and np.abs(seen[:, :3] - expected).max() < 1e-5
