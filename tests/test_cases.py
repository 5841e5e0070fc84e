"""Twelve small stages with answers derived by hand and confirmed with pxr and a separate NumPy caster (cases/CASES.md)."""

from __future__ import annotations

import numpy as np
import pytest

import hdwarp

PLANE = "distance_to_image_plane"


@pytest.fixture(scope="module")
def case(shared):
    def render(name: str, camera: str | None = "/Render/Product", aovs=(PLANE, "primId"), **options):
        return hdwarp.render(shared / "cases" / name, camera, aovs=list(aovs), device="cpu", **options)

    return render


def block(shape, rows: slice, columns: slice) -> np.ndarray:
    mask = np.zeros(shape, bool)
    mask[rows, columns] = True
    return mask


def k_of(frame) -> tuple[float, ...]:
    return frame.K[0, 0], frame.K[1, 1], frame.K[0, 2], frame.K[1, 2]


def test_01_aperture_offset(case):
    frame = case("01_aperture_offset.usda")
    assert k_of(frame) == pytest.approx((80, 80, 20, 15), abs=1e-4)
    hit = frame["primId"] >= 0
    assert np.array_equal(hit, block((60, 80), slice(11, 19), slice(16, 24)))
    np.testing.assert_allclose(frame[PLANE][hit], 2.0, atol=1e-4)


def test_02_expand_aperture(case):
    frame = case("02_expand_aperture.usda")
    assert k_of(frame)[:2] == pytest.approx((732.99928, 732.99928), rel=1e-6)
    hit = frame["primId"] >= 0
    assert np.array_equal(hit, block((480, 640), slice(148, 332), slice(228, 412)))
    assert hit.sum() == 33856
    np.testing.assert_allclose(frame[PLANE][hit], 4.0, atol=1e-4)


@pytest.mark.parametrize(("product", "focal"), [("ProductMm", 0.024), ("ProductHuge", 2.4)])
def test_03_camera_units(case, product, focal):
    frame = case("03_camera_units.usda", f"/Render/{product}")
    hit = frame["primId"] >= 0
    assert np.array_equal(hit, block((64, 64), slice(20, 44), slice(20, 44)))
    np.testing.assert_allclose(frame[PLANE][hit], 3.0, atol=1e-4)
    assert np.degrees(2 * np.arctan(64 / (2 * frame.K[0, 0]))) == pytest.approx(47.16855, abs=1e-4)
    with hdwarp.Scene(frame.stage, device="cpu") as scene:
        row = scene.cameras.label.index(frame.camera)
        assert scene.cameras.focal_length.numpy()[row] == pytest.approx(focal, rel=1e-6)


def test_04_forward_depth(case):
    frame = case("04_forward_depth.usda", aovs=(PLANE, "distance_to_camera", "position"))
    np.testing.assert_allclose(frame[PLANE], 2.0, atol=1e-4)
    distance = frame["distance_to_camera"]
    assert (distance[0, 0], distance[0, 1], distance[1, 1]) == pytest.approx((2.9154759, 2.5495098, 2.1213203), abs=1e-4)
    np.testing.assert_allclose(frame.points()[0, 0], (-1.5, 1.5, -2), atol=1e-4)
    np.testing.assert_allclose(frame["position"][0, 0] + frame.origin, (-1.5, 1.5, -2), atol=1e-4)


def test_05_clip_range(case):
    frame = case("05_clip_range.usda")
    np.testing.assert_allclose(frame[PLANE], np.tile([5, 1.5, 9.5, np.inf], (4, 1)), atol=1e-4)
    assert frame.clipping_range == pytest.approx((1, 10))


def test_06_zup_camera(case):
    frame = case("06_zup_camera.usda", aovs=(PLANE, "primId"))
    rows, columns = np.nonzero(frame["primId"] >= 0)
    assert sorted(zip(columns.tolist(), rows.tolist(), strict=True)) == [(5, 2), (6, 4)]
    assert frame.prim_path(4, 6).endswith("East") and frame.prim_path(2, 5).endswith("North")
    assert (frame[PLANE][4, 6], frame[PLANE][2, 5]) == pytest.approx((5, 5), abs=1e-4)


def test_07_reset_xform_stack(case):
    frame = case("07_reset_xform_stack.usda")
    assert frame[PLANE][2, 2] == pytest.approx(9.0, abs=1e-5)
    np.testing.assert_allclose(frame.world_from_camera, np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 10], [0, 0, 0, 1]]), atol=1e-12)


def test_08_left_handed(case):
    frame = case("08_left_handed.usda", aovs=(PLANE, "normal", "Ngeom"))
    np.testing.assert_allclose(frame[PLANE], 4.0, atol=1e-4)
    for name in ("normal", "Ngeom"):
        np.testing.assert_allclose(frame[name][:, :2], np.broadcast_to((0, 0, 1), (2, 2, 3)), atol=1e-4)
        np.testing.assert_allclose(frame[name][:, 2:], np.broadcast_to((0, 0, -1), (2, 2, 3)), atol=1e-4)


def test_09_invisible_ids(case):
    frame = case("09_invisible_ids.usda", aovs=(PLANE, "primId", "instanceId"))
    np.testing.assert_allclose(frame[PLANE][0], [4.55, np.inf, 4.55, np.inf, 4.55, np.inf, np.inf, np.inf], atol=1e-4)
    assert frame["instanceId"][0].tolist() == [0, -1, 1, -1, 2, -1, -1, -1]
    assert [frame.instance_ids(0, column) for column in (0, 2, 4, 1)] == [(10,), (0,), (7,), ()]
    assert frame.K is None


@pytest.mark.parametrize(("settings", "depth"), [("Fallback", 3), ("DefaultOnly", 4), ("WithProxy", 2), ("Everything", 1)])
def test_10_purpose_by_settings(case, settings, depth):
    frame = case("10_purpose.usda", None, settings=f"/Render/{settings}")
    np.testing.assert_allclose(frame[PLANE], depth, atol=1e-4)


def test_10_purpose_by_product_alone(case):
    """Several settings name the product, none is the stage's: the schema's fallbacks hold, and a diagnostic says so."""
    frame = case("10_purpose.usda")
    np.testing.assert_allclose(frame[PLANE], 3.0, atol=1e-4)
    assert any("/Render" in item.path or "settings" in item.message.lower() for item in frame.diagnostics)


def test_11_nan_point(case):
    frame = case("11_nan_point.usda", aovs=(PLANE, "primId", "barycentric", "normal", "Ngeom", "position", "color"))
    np.testing.assert_allclose(frame[PLANE], 4.0, atol=1e-4)
    for name, plane in frame.aovs.items():
        assert np.isfinite(plane).all(), name
    assert {frame.prim_path(row, column) for row in range(4) for column in range(4)} == {"/World/Wall"}
    blamed = {item.path for item in frame.diagnostics}
    assert {"/World/BrokenBehindCamera", "/World/InfinitePoint"} <= blamed


def test_12_geomsubset_uncovered(case):
    frame = case("12_geomsubset_uncovered.usda", aovs=(PLANE, "elementId", "materialId"))
    assert frame["elementId"].tolist() == [[2, 3], [0, 1]]
    names = [[frame.material_paths[i].rsplit("/", 1)[-1] for i in row] for row in frame["materialId"]]
    assert names == [["Green", "Blue"], ["Red", "Green"]]
    np.testing.assert_allclose(frame[PLANE], 2.0, atol=1e-4)
