"""Cards in pictures: each side shows its own image, upright from outside, cut out where it is transparent, whatever way one looks."""

from __future__ import annotations

import numpy as np
import OpenEXR
import PIL.Image
import pytest
from pxr import Gf, Sdf, Usd, UsdGeom

import hdwarp
from hdwarp.stage.looks import Image, Texture

WIDTH, HEIGHT = 24, 16
# Side: where one looks from, what is up then. The model fills x, y, z = (-1.5..1.5, -1.5..1.5, -1..1).
VIEWS = {
    "XPos": ((1, 0, 0), (0, 0, 1)),
    "XNeg": ((-1, 0, 0), (0, 0, 1)),
    "YPos": ((0, 1, 0), (0, 0, 1)),
    "YNeg": ((0, -1, 0), (0, 0, 1)),
    "ZPos": ((0, 0, 1), (0, 1, 0)),
    "ZNeg": ((0, 0, -1), (0, -1, 0)),
}


def picture(seed: int, alpha: bool = True) -> np.ndarray:
    """(5, 7, 4) uint8; alpha where asked for is 0 or 255, at random."""
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 256, (5, 7, 4)).astype(np.uint8)
    pixels[..., 3] = np.where(rng.random((5, 7)) < 0.7, 0, 255) if alpha else 255
    return pixels


def model(pictures: dict[str, object], geometry: str = "box") -> Usd.Stage:
    """A model with cards; orthographic cameras /XPos ... that look at the six sides of its box and see just them."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    prim = UsdGeom.Xform.Define(stage, "/m").GetPrim()
    Usd.ModelAPI(prim).SetKind("component")
    api = UsdGeom.ModelAPI.Apply(prim)
    api.CreateModelDrawModeAttr("cards")
    api.CreateModelCardGeometryAttr(geometry)
    api.CreateModelDrawModeColorAttr(Gf.Vec3f(0.25, 0.5, 0.75))
    api.SetExtentsHint([(-1.5, -1.5, -1), (1.5, 1.5, 1)])
    for side, path in pictures.items():
        prim.CreateAttribute(f"model:cardTexture{side}", Sdf.ValueTypeNames.Asset).Set(Sdf.AssetPath(str(path)))
    for side, (back, up) in VIEWS.items():
        camera = UsdGeom.Camera.Define(stage, f"/{side}")
        camera.CreateProjectionAttr("orthographic")
        camera.CreateHorizontalApertureAttr(30.0)
        camera.CreateVerticalApertureAttr(20.0 if side[0] != "Z" else 30.0)
        matrix = np.eye(4)
        matrix[:3, 0], matrix[:3, 1], matrix[:3, 2] = np.cross(up, back), up, back
        matrix[:3, 3] = np.array(back) * 10.0
        camera.AddTransformOp().Set(Gf.Matrix4d(*matrix.T.ravel().tolist()))
    return stage


def look(stage, side: str, **options):
    size = (WIDTH, HEIGHT if side[0] != "Z" else WIDTH)
    return hdwarp.render(stage, f"/{side}", resolution=size, aovs=["albedo", "color", "rgba8", "primId", "materialId"], **options)


def expected(twin, pixels: np.ndarray, shape: tuple[int, int], mirrored: bool = False) -> np.ndarray:
    """(H, W, 4): the image, upright, filling the picture."""
    height, width = shape
    s, t = np.meshgrid((np.arange(width) + 0.5) / width, 1 - (np.arange(height) + 0.5) / height)
    st = np.stack([1 - s if mirrored else s, t], axis=-1).reshape(-1, 2)
    return twin.look_up(Texture(Image(pixels, True), "st"), st).reshape(height, width, 4)


@pytest.fixture
def six(tmp_path) -> dict:
    """Side -> file, each with an image of its own."""
    for k, side in enumerate(VIEWS):
        PIL.Image.fromarray(picture(k)).save(tmp_path / f"{side}.png")
    return {side: tmp_path / f"{side}.png" for side in VIEWS}


@pytest.mark.parametrize("side", VIEWS)
@pytest.mark.parametrize("geometry", ["box", "cross"])
def test_each_side_shows_its_image_upright(twin, surface_twin, six, side, geometry, device):
    """Seen square on, a pixel is the image at the same share of width and height, and nothing is there where alpha is below 0.1. The back
    of the card at the other end is not drawn."""
    frame = look(model(six, geometry), side, device=device)
    wanted = expected(twin, picture(list(VIEWS).index(side)), frame["primId"].shape)
    seen = wanted[..., 3] >= 0.1
    sure = np.abs(wanted[..., 3] - 0.1) > 1e-4
    assert ((frame["primId"] >= 0) == seen)[sure].all()
    assert 0.2 < seen.mean() < 0.95
    both = seen & sure
    assert frame["albedo"][both] == pytest.approx(np.c_[wanted[both][:, :3], np.ones(both.sum())], abs=1e-4)
    lit = surface_twin.camera_light(frame["albedo"][both][:, :3], np.ones(both.sum()))  # from where one looks
    assert frame["color"][both] == pytest.approx(np.c_[lit, np.ones(both.sum())], abs=1e-5)
    assert (frame["rgba8"][~seen & sure] == 0).all()
    assert {frame.material_paths[k] for k in np.unique(frame["materialId"][both])} == {f"/m.model:cardTexture{side}"}


@pytest.mark.parametrize(("authored", "other"), [("XPos", "XNeg"), ("XNeg", "XPos"), ("YNeg", "YPos"), ("ZPos", "ZNeg"), ("ZNeg", "ZPos")])
def test_the_other_side_of_an_axis_shows_the_same_image_from_behind(twin, six, authored, other, device):
    """Mirrored left to right; along z, where the other side is looked at with the other side up, top to bottom."""
    stage = model({authored: six[authored]})
    pixels = picture(list(VIEWS).index(authored))
    for side in (authored, other):
        frame = look(stage, side, device=device)
        shown = pixels if side == authored or side[0] != "Z" else pixels[::-1]
        wanted = expected(twin, shown, frame["primId"].shape, mirrored=side == other and side[0] != "Z")
        sure = np.abs(wanted[..., 3] - 0.1) > 1e-4
        assert ((frame["primId"] >= 0) == (wanted[..., 3] >= 0.1))[sure].all()
        seen = sure & (frame["primId"] >= 0)
        assert frame["albedo"][seen][:, :3] == pytest.approx(wanted[seen][:, :3], abs=1e-4)
    across = "YPos" if authored[0] == "X" else "XPos"
    assert (look(stage, across, device=device)["primId"] < 0).all()  # no cards along that axis


def test_through_its_holes_a_card_shows_what_is_behind(twin, six, device):
    stage = model({"XPos": six["XPos"]})
    wall = UsdGeom.Cube.Define(stage, "/wall")
    UsdGeom.XformCommonAPI(wall).SetTranslate((-20, 0, 0))
    wall.CreateSizeAttr(20)
    wall.CreateDisplayColorAttr([(1, 0, 1)])
    frame = look(stage, "XPos", device=device)
    wanted = expected(twin, picture(0), frame["primId"].shape)
    sure = np.abs(wanted[..., 3] - 0.1) > 1e-4
    holes = (wanted[..., 3] < 0.1) & sure
    assert holes.any()
    assert {frame.prim_path(row, column) for row, column in np.argwhere(holes)} == {"/wall"}
    assert frame["albedo"][holes] == pytest.approx(np.tile([1, 0, 1, 1], (holes.sum(), 1)))


def test_opaque_and_missing_images(six, tmp_path, device):
    """Without a colour that stands in, and without alpha nothing is cut out; a file that is not there leaves the draw mode's colour."""
    PIL.Image.fromarray(picture(1, alpha=False)).save(tmp_path / "whole.png")
    assert (look(model({"XPos": tmp_path / "whole.png"}), "XPos", device=device)["primId"] >= 0).all()
    frame = look(model({"XPos": tmp_path / "none.png", "XNeg": six["XNeg"]}), "XPos", device=device)
    assert frame["albedo"].reshape(-1, 4) == pytest.approx(np.tile([0.25, 0.5, 0.75, 1], (WIDTH * HEIGHT, 1)), abs=1e-6)
    (told,) = [item for item in frame.diagnostics if item.code == "texture"]
    assert told.path == "/m" and "none.png" in told.message and "model:cardTextureXPos" in told.message


def test_a_card_lies_where_its_image_was_looked_at_from(twin, tmp_path, device):
    """worldtoscreen takes (x, y, z) to (y / 2, -z / 2, x): the card is a square of 4 at x = 0 that the image fills, and that faces +x."""
    screen_from_world = np.array([[0, 0.5, 0, 0], [0, 0, -0.5, 0], [1, 0, 0, 0], [0, 0, 0, 1]])
    rng = np.random.default_rng(0)
    colours = rng.random((3, 8, 8)).astype(np.float32)
    rows = np.ascontiguousarray(screen_from_world.T, np.float32)  # files hold matrices for row vectors
    header = {"type": OpenEXR.scanlineimage, "compression": OpenEXR.ZIP_COMPRESSION, "worldtoscreen": rows}
    OpenEXR.File(header, dict(zip("RGB", colours.copy(), strict=True))).write(str(tmp_path / "a.exr"))
    stage = model({"ZNeg": tmp_path / "a.exr"}, "fromTexture")
    frame = look(stage, "XPos", device=device)
    assert (frame["primId"] >= 0).all()
    image = Image(np.stack([*colours, np.ones((8, 8))], axis=-1).astype(np.float32), False)
    y = ((np.arange(WIDTH) + 0.5) / WIDTH - 0.5) * 3.0
    z = (0.5 - (np.arange(HEIGHT) + 0.5) / HEIGHT) * 2.0
    y, z = np.meshgrid(y, z)
    st = np.stack([0.5 + y / 4, 0.5 + z / 4], axis=-1).reshape(-1, 2)  # upright: the screen's y grows downwards here
    assert frame["albedo"].reshape(-1, 4) == pytest.approx(twin.look_up(Texture(image, "st"), st), abs=1e-5)
    assert (look(stage, "XNeg", device=device)["primId"] < 0).all()


def test_sensors_samples_and_rays_of_ones_own_see_the_same_holes(twin, six, device):
    stage = model(six)
    frame = look(stage, "YPos", device=device)
    scene = hdwarp.Scene(stage, device=device)
    sensor = hdwarp.SensorCamera(scene, cameras="/YPos", resolution=(WIDTH, HEIGHT))
    out = sensor.allocate(["albedo", "primId"])
    sensor.update(None, out)
    assert (out["primId"].numpy()[0] == frame["primId"]).all()
    assert (out["albedo"].numpy()[0] == frame["albedo"]).all()
    rays = np.zeros((HEIGHT, WIDTH, 1, 2, 3))
    rays[..., 0, 0, 0] = ((np.arange(WIDTH) + 0.5) / WIDTH - 0.5) * 3.0
    rays[..., 0, 0, 1] = ((0.5 - (np.arange(HEIGHT) + 0.5) / HEIGHT) * 2.0)[:, None]
    rays[..., 1, 2] = -1.0
    sensor.set_camera_rays(rays)
    sensor.update(None, out)
    assert (out["primId"].numpy()[0] == frame["primId"]).mean() > 0.99  # rounding at the edges of holes
    same = (out["primId"].numpy()[0] >= 0) & (frame["primId"] >= 0)
    assert out["albedo"].numpy()[0][same] == pytest.approx(frame["albedo"][same], abs=1e-4)
    mean = look(stage, "YPos", device=device, samples=16)["color"]
    assert np.unique(mean[..., 3]).size > 2  # edges of holes are smooth
    assert np.abs(mean[..., 3].mean() - (frame["primId"] >= 0).mean()) < 0.05


def test_edits_are_followed(six, tmp_path, device):
    """Other images, none, another mode, and back: the pictures are those of a fresh reading."""
    stage = model(six)
    prim = stage.GetPrimAtPath("/m")
    scene = hdwarp.Scene(stage, device=device)
    texture = prim.GetAttribute("model:cardTextureXPos")
    PIL.Image.fromarray(picture(9, alpha=False)).save(tmp_path / "other.png")
    before = look(scene, "XPos")["albedo"]
    for edit in (
        lambda: texture.Set(Sdf.AssetPath(str(tmp_path / "other.png"))),
        lambda: texture.Set(Sdf.AssetPath("gone.png")),
        lambda: prim.GetAttribute("model:drawMode").Set("bounds"),
        lambda: prim.GetAttribute("model:drawMode").Set("cards"),
        lambda: texture.Set(Sdf.AssetPath(str(six["XPos"]))),
    ):
        edit()
        scene.sync()
        for side in ("XPos", "ZNeg"):
            ours, fresh = look(scene, side), look(stage, side, device=device)
            for name in ("albedo", "color", "rgba8", "primId", "materialId"):
                assert (ours[name] == fresh[name]).all()
            assert ours.material_paths == fresh.material_paths
    assert (look(scene, "XPos")["albedo"] == before).all()
