"""Curves and points from a stage to AOVs: closed forms of distance, normal, barycentric, primvars, ids, motion; edits and set points."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp
from pxr import Gf, Sdf, Usd, UsdGeom

import hdwarp
from hdwarp.errors import ArgumentError


@pytest.fixture
def stage():
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    camera = UsdGeom.Camera.Define(stage, "/Camera")
    camera.AddTranslateOp().Set((0.3, 0.4, 8.0))
    camera.CreateFocalLengthAttr(0.35)
    camera.CreateHorizontalApertureAttr(0.2)
    camera.CreateVerticalApertureAttr(0.15)
    return stage


def curves(stage, points, kind="linear", basis="bezier", wrap="nonperiodic", width=0.5, path="/Curves", counts=None):
    prim = UsdGeom.BasisCurves.Define(stage, path)
    prim.CreateTypeAttr(kind)
    prim.CreateBasisAttr(basis)
    prim.CreateWrapAttr(wrap)
    prim.CreatePointsAttr([tuple(map(float, p)) for p in points])
    prim.CreateCurveVertexCountsAttr(counts or [len(points)])
    prim.CreateWidthsAttr([width])
    prim.SetWidthsInterpolation("constant")
    return prim


def points(stage, centres, widths, path="/Points"):
    prim = UsdGeom.Points.Define(stage, path)
    prim.CreatePointsAttr([tuple(map(float, p)) for p in centres])
    prim.CreateWidthsAttr([float(w) for w in widths])
    return prim


AOVS = ["color", "primId", "elementId", "triangleId", "barycentric", "normal", "Ngeom", "distance_to_image_plane"]


def render(stage, *more, **options):
    return hdwarp.render(stage, "/Camera", resolution=(160, 120), aovs=[*AOVS, *more], device="cpu", **options)


def test_a_straight_curve_is_the_cylinder_prim(stage):
    """Distances and normals of the Cylinder of the same size, drawn alone."""
    curves(stage, [(0, -1, 0), (0, 1, 0)], width=1.0)
    mine = render(stage)
    stage.RemovePrim("/Curves")
    cylinder = UsdGeom.Cylinder.Define(stage, "/Cylinder")
    cylinder.CreateAxisAttr("Y")
    cylinder.CreateRadiusAttr(0.5)
    cylinder.CreateHeightAttr(2.0)
    theirs = render(stage)
    assert (mine["primId"] == 0).sum() > 1000
    different = mine["primId"] != theirs["primId"]
    assert different.sum() <= 2
    hit = (mine["primId"] == 0) & ~different
    np.testing.assert_allclose(mine["distance_to_image_plane"][hit], theirs["distance_to_image_plane"][hit], rtol=2e-6)
    assert (mine["normal"] * theirs["normal"]).sum(-1)[hit].min() > 0.9999
    assert (mine["triangleId"] == -1).all()


def test_hits_lie_on_the_tube_at_any_zoom(stage):
    """A quarter of a circle, radius 1, tube 0.05: on the swept cubic to 1e-4 of the radius, far off and a hundred times nearer."""
    k = 0.5522847498
    curves(stage, [(1, 0, 0), (1, k, 0), (k, 1, 0), (0, 1, 0)], "cubic", width=0.1)
    p = np.array([(1, 0, 0), (1, k, 0), (k, 1, 0), (0, 1, 0)], float)
    u = np.linspace(0, 1, 4001)[:, None]
    middle = (1 - u) ** 3 * p[0] + 3 * (1 - u) ** 2 * u * p[1] + 3 * (1 - u) * u**2 * p[2] + u**3 * p[3]
    camera = UsdGeom.Camera(stage.GetPrimAtPath("/Camera"))
    move = camera.GetOrderedXformOps()[0]
    for place, focal in (((0.7, 0.7, 8.0), 0.35), ((0.7071, 0.7071, 1.5), 4.0)):
        move.Set(place)
        camera.GetFocalLengthAttr().Set(focal)
        frame = render(stage)
        hit = frame["primId"] == 0
        assert hit.sum() > 50
        q = frame.points()[hit]
        along = np.linspace(-1, 1, 21)
        off = []
        for at in q:
            nearest = np.abs(np.linalg.norm(middle - at, axis=1)).argmin()
            low, high = max(nearest - 1, 0), min(nearest + 1, len(u) - 1)
            fine = u[nearest, 0] + along * (u[high, 0] - u[low, 0]) / 2
            fine = np.clip(fine, 0, 1)[:, None]
            c = (1 - fine) ** 3 * p[0] + 3 * (1 - fine) ** 2 * fine * p[1] + 3 * (1 - fine) * fine**2 * p[2] + fine**3 * p[3]
            off.append(abs(np.linalg.norm(c - at, axis=1).min() - 0.05))
        side = np.minimum(np.abs(q[:, 0]), np.abs(q[:, 1])) > 1e-5  # not on the discs at the ends
        assert np.array(off)[side].max() < 1e-4 * 0.05


def test_barycentric_is_how_far_along_and_element_the_segment(stage):
    curves(stage, [(-2, 0, 0), (-1, 0, 0), (1, 0, 0)])
    frame = render(stage)
    hit, x = frame["primId"] == 0, frame.points()[..., 0]
    assert set(frame["elementId"][hit]) == {0, 1}
    expected = np.where(x < -1, x + 2, (x + 1) / 2)
    clear = hit & (np.abs(x + 1) > 1e-3)
    np.testing.assert_array_equal(frame["elementId"][clear], (x > -1)[clear])
    np.testing.assert_allclose(frame["barycentric"][clear][:, 0], expected[clear], atol=1e-5)
    assert (frame["barycentric"][hit][:, 1] == 0).all()


@pytest.mark.parametrize("interpolation", ["varying", "vertex"])
@pytest.mark.parametrize("kind", ["linear", "cubic"])
def test_primvars_go_along(stage, kind, interpolation):
    """On a cubic of evenly spaced control points the vertex basis gives back x, and varying is linear: both are known at every hit."""
    line = [(x, 0, 0) for x in np.linspace(-1.5, 1.5, 4)] if kind == "cubic" else [(-1.5, 0, 0), (1.5, 0, 0)]
    prim = curves(stage, line, kind)
    values = [p[0] for p in line] if interpolation == "vertex" or kind == "linear" else [-1.5, 1.5]
    UsdGeom.PrimvarsAPI(prim).CreatePrimvar("heat", Sdf.ValueTypeNames.FloatArray, interpolation).Set(values)
    frame = render(stage, "primvars:heat")
    hit = frame["primId"] == 0
    np.testing.assert_allclose(frame["primvars:heat"][hit].ravel(), frame.points()[hit][:, 0], atol=2e-6)


def test_a_bspline_primvar_follows_its_basis(stage):
    """The middle segment of a uniform B-spline: values by the basis matrix."""
    line = [(x, 0.2 * x * x, 0) for x in (-3.0, -1.0, 1.0, 3.0)]
    prim = curves(stage, line, "cubic", "bspline")
    values = np.array([1.0, -2.0, 5.0, 3.0])
    UsdGeom.PrimvarsAPI(prim).CreatePrimvar("heat", Sdf.ValueTypeNames.FloatArray, "vertex").Set(values.tolist())
    frame = render(stage, "primvars:heat")
    hit = frame["primId"] == 0
    u = frame["barycentric"][hit][:, 0].astype(float)
    weights = np.stack([(1 - u) ** 3, 3 * u**3 - 6 * u**2 + 4, -3 * u**3 + 3 * u**2 + 3 * u + 1, u**3], -1) / 6
    np.testing.assert_allclose(frame["primvars:heat"][hit].ravel(), weights @ values, atol=2e-5)


def test_uniform_primvars_are_per_curve(stage):
    prim = curves(stage, [(-1, 1, 0), (0, 1, 0), (1, 1, 0), (-1, -1, 0), (1, -1, 0)], counts=[3, 2])
    UsdGeom.PrimvarsAPI(prim).CreatePrimvar("tag", Sdf.ValueTypeNames.FloatArray, "uniform").Set([3.0, 7.0])
    frame = render(stage, "primvars:tag")
    hit = frame["primId"] == 0
    np.testing.assert_array_equal(frame["primvars:tag"][hit].ravel(), np.where(frame.points()[hit][:, 1] > 0, 3.0, 7.0))
    assert set(frame["elementId"][hit]) == {0, 1, 2}


def test_points_have_ids_and_colours(stage):
    prim = points(stage, [(-1, 0, 0), (1, 0, 0), (0, 1, 0)], [0.5, 1.0, 0.25])
    prim.CreateIdsAttr([70, 50, 60])
    UsdGeom.PrimvarsAPI(prim).CreatePrimvar("displayColor", Sdf.ValueTypeNames.Color3fArray, "vertex").Set(
        [(1, 0, 0), (0, 1, 0), (0, 0, 1)]
    )
    frame = render(stage, "albedo")
    hit = frame["primId"] == 0
    centre = np.array([(-1, 0, 0), (1, 0, 0), (0, 1, 0)])[frame["elementId"][hit]]
    radius = np.array([0.25, 0.5, 0.125])[frame["elementId"][hit]]
    out = frame.points()[hit] - centre
    np.testing.assert_allclose(np.linalg.norm(out, axis=1), radius, rtol=3e-6)
    np.testing.assert_allclose(frame["normal"][hit], out / radius[:, None], atol=1e-5)
    np.testing.assert_allclose(frame["albedo"][hit][:, :3], np.eye(3)[frame["elementId"][hit]])
    with hdwarp.Scene(stage, device="cpu") as scene:
        assert scene.meshes.point_ids("/Points").tolist() == [70, 50, 60]
        with pytest.raises(hdwarp.Error, match="not a mesh"):
            scene.meshes.triangle_points("/Points")


def test_a_ribbon_shows_its_normals(stage):
    """Flat where a tube would be round: one distance over its width, its normal as authored."""
    prim = curves(stage, [(0, -1, 0), (0, 1, 0)], width=1.0)
    prim.CreateNormalsAttr([(0, 0, 1), (0, 0, 1)])
    prim.SetNormalsInterpolation("varying")
    frame = render(stage)
    hit = frame["primId"] == 0
    assert hit.sum() > 1000
    q = frame.points()[hit]
    assert np.abs(q[:, 2]).max() < 1e-6 and q[:, 0].min() > -0.5001 and q[:, 0].max() < 0.5001
    np.testing.assert_allclose(frame["Ngeom"][hit], np.broadcast_to([0, 0, 1], q.shape), atol=1e-6)
    np.testing.assert_allclose(frame["normal"][hit], np.broadcast_to([0, 0, 1], q.shape), atol=1e-6)
    np.testing.assert_allclose(frame["barycentric"][hit][:, 0], (q[:, 1] + 1) / 2, atol=1e-6)


@pytest.mark.parametrize("what", ["points", "tube", "ribbon"])
def test_motion_of_what_deforms(stage, what):
    """Everything goes 0.25 to the right from one frame to the next: as many pixels as a cube beside it that does the same."""
    if what == "points":
        attribute = points(stage, [(0, 0, 0), (0, 0.6, 0)], [1.0, 0.5]).GetPointsAttr()
    else:
        prim = curves(stage, [(0, -1, 0), (0, 0, 0), (0, 0.5, 0), (0, 1, 0)], "cubic", width=0.8)
        if what == "ribbon":
            prim.CreateNormalsAttr([(0, 0, 1)] * 2)
            prim.SetNormalsInterpolation("varying")
        attribute = prim.GetPointsAttr()
    rest = np.array(attribute.Get())
    for time in (1.0, 2.0):
        attribute.Set([Gf.Vec3f(*map(float, p)) for p in rest + [0.25 * time, 0, 0]], time)
    stage.SetStartTimeCode(1)
    with hdwarp.Scene(stage, device="cpu", time=1.0) as scene:
        camera = hdwarp.SensorCamera(scene, cameras="/Camera", resolution=(160, 120))
        out = camera.allocate(["motion", "distance_to_image_plane", "primId"])
        camera.update(scene.state(), out)
        scene.sync(2.0)
        camera.update(scene.state(), out)
        hit = out["primId"].numpy()[0] == 0
        depth, motion = out["distance_to_image_plane"].numpy()[0][hit], out["motion"].numpy()[0][hit]
    focal = 160 * 0.35 / 0.2
    np.testing.assert_allclose(motion[:, 0], 0.25 * focal / depth, rtol=2e-4)
    np.testing.assert_allclose(motion[:, 1], 0.0, atol=2e-3)


def test_widths_over_time_are_followed(stage):
    """Refitted, the scene gives the bits of one opened at that time."""
    prim = points(stage, [(0, 0, 0), (1, 0, 0)], [1.0, 0.5])
    prim.GetWidthsAttr().Set([1.0, 0.5], 1.0)
    prim.GetWidthsAttr().Set([0.2, 2.0], 2.0)
    with hdwarp.Scene(stage, device="cpu", time=1.0) as scene:
        for time in (2.0, 1.0, 1.5):
            scene.sync(time)
            live, fresh = hdwarp.render(scene, "/Camera", resolution=(80, 60), aovs=AOVS), render_at(stage, time)
            for name in AOVS:
                assert live[name].tobytes() == fresh[name].tobytes()


def render_at(stage, time):
    return hdwarp.render(stage, "/Camera", resolution=(80, 60), aovs=AOVS, time=time, device="cpu")


def test_points_a_kernel_sets_move_the_balls(stage):
    points(stage, [(-1, 0, 0), (1, 0, 0)], [0.5, 0.5])
    with hdwarp.Scene(stage, device="cpu") as scene:
        scene.set_points("/Points", wp.array([[0, 0.5, 0], [0, -0.5, 1]], dtype=wp.float32, device="cpu"))
        frame = hdwarp.render(scene, "/Camera", resolution=(160, 120), aovs=AOVS)
        hit = frame["primId"] == 0
        centre = np.array([(0, 0.5, 0), (0, -0.5, 1)])[frame["elementId"][hit]]
        np.testing.assert_allclose(np.linalg.norm(frame.points()[hit] - centre, axis=1), 0.25, rtol=1e-5)
        assert set(frame["elementId"][hit]) == {0, 1}


def test_all_authored_points_are_set_drawn_or_not(stage):
    """A row an authored point, as of primvars: the pictures of a stage with these places. Point 1 has no width, point 3 no place."""
    authored = np.float32([(-1, 0, 0), (0, 0, 0), (1, 0, 0), (np.nan, 0, 0), (0, 1, 0)])
    prim = points(stage, authored.tolist(), [0.5, 0.0, 0.25, 0.5, 1.0])
    shifted = authored + np.float32([(0.2, 0, 0.1), (0.1, 0, 0), (0, -0.5, 0.3), (0, 0, 0), (0.3, 0, 0)])
    again = shifted + np.float32([0, 0.1, 0.2])
    tags = np.arange(5, dtype=np.float32)
    aovs = (*AOVS, "primvars:tag")
    with hdwarp.Scene(stage, device="cpu") as scene:
        scene.set_primvar("/Points", "tag", tags)
        scene.set_points("/Points", wp.array(shifted, dtype=wp.vec3f, device="cpu"))
        first = hdwarp.render(scene, "/Camera", resolution=(160, 120), aovs=aovs)
        scene.set_points("/Points", again)
        second = hdwarp.render(scene, "/Camera", resolution=(160, 120), aovs=aovs)
        for given in (shifted[:3], np.zeros((6, 3), np.float32)):
            with pytest.raises(ArgumentError, match=rf"shape \({len(given)}, 3\); expected \(5, 3\), all .* authored; 3 of them are drawn"):
                scene.set_points("/Points", given)
        scene.set_points("/Points", None)
        prim.GetWidthsAttr().Set([0.5, 0.7, 0.0, 0.5, 1.0])  # as many balls, of other points
        scene.sync()
        scene.set_points("/Points", shifted)
        third = hdwarp.render(scene, "/Camera", resolution=(160, 120), aovs=AOVS)
    for frame, places, drawn in ((first, shifted, {0, 2, 4}), (second, again, {0, 2, 4}), (third, shifted, {0, 1, 4})):
        hit = frame["primId"] == 0
        element = frame["elementId"][hit]
        assert set(element) == drawn
        radius = np.float32([0.25, 0.35, 0.125, 0.25, 0.5])[element]
        np.testing.assert_allclose(np.linalg.norm(frame.points()[hit] - places[element], axis=1), radius, rtol=1e-5)
    np.testing.assert_array_equal(first["primvars:tag"][first["primId"] == 0].ravel(), first["elementId"][first["primId"] == 0])


def test_what_is_built_with_is_set_on_the_stage(stage):
    """Points and normals of curves, widths of both, several values of curves: refused with the cure; nothing is changed."""
    curves(stage, [(-1, 0, 0), (1, 0, 0)])
    points(stage, [(0, 1, 0), (1, 1, 0)], [0.5, 0.5])
    ball = UsdGeom.Sphere.Define(stage, "/Ball")
    ball.CreateRadiusAttr(0.2)
    one, two = np.ones((1, 3), np.float32), np.ones((2, 3), np.float32)
    with hdwarp.Scene(stage, device="cpu") as scene:
        before = hdwarp.render(scene, "/Camera", resolution=(80, 60), aovs=AOVS)
        for call, said in (
            (lambda: scene.set_points("/Curves", two), "points of curves"),
            (lambda: scene.set_primvar("/Curves", "widths", one[:, 0]), "widths of </Curves>"),
            (lambda: scene.set_primvar("/Points", "widths", two[:, 0]), "widths of </Points>"),
            (lambda: scene.set_primvar("/Points", "primvars:widths", one[:, 0]), "widths of </Points>"),
            (lambda: scene.set_primvar("/Curves", "normals", one), "normals of </Curves>"),
            (lambda: scene.set_primvar("/Curves", "displayColor", two), "has 2 values; of curves one constant"),
            (lambda: scene.set_primvar("/Curves", "heat", one, interpolation="uniform"), "has interpolation 'uniform'; of curves"),
        ):
            with pytest.raises(hdwarp.NotSupported, match=rf"{said}.* stage and call scene\.sync\(\)"):
                call()
        for path in ("/Points", "/Ball"):
            with pytest.raises(ArgumentError, match=rf"<{path}> is no mesh .* normals of its own"):
                scene.set_primvar(path, "normals", one)
        after = hdwarp.render(scene, "/Camera", resolution=(80, 60), aovs=AOVS)
        for name in AOVS:
            assert before[name].tobytes() == after[name].tobytes(), name
        scene.set_primvar("/Curves", "displayColor", np.float32([(1, 0, 0)]))
        frame = hdwarp.render(scene, "/Camera", resolution=(80, 60), aovs=("albedo", "primId"))
        hit = frame["primId"] == frame.prim_paths.index("/Curves")
        assert hit.any() and (frame["albedo"][hit] == (1, 0, 0, 1)).all()


def test_a_million_points(stage):
    """Read, built and drawn; every hit is on its ball."""
    rng = np.random.default_rng(0)
    centres = rng.uniform(-1, 1, (1_000_000, 3)).astype(np.float32)
    prim = UsdGeom.Points.Define(stage, "/Points")
    from pxr import Vt

    prim.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(centres))
    prim.CreateWidthsAttr(Vt.FloatArray([0.01]))
    prim.SetWidthsInterpolation("constant")
    frame = render(stage)
    hit = frame["primId"] == 0
    assert hit.mean() > 0.15
    off = np.linalg.norm(frame.points()[hit] - centres[frame["elementId"][hit]], axis=1) - 0.005
    assert np.abs(off).max() < 2e-6


def test_orthographic_far_away_and_scaled(stage):
    """A tube a thousand kilometres off its camera's origin, under a stretched transform: the ellipse's closed form."""
    prim = curves(stage, [(0, -1, 0), (0, 1, 0)], width=1.0)
    prim.AddTranslateOp().Set((1.0e6, 0, 0))
    prim.AddScaleOp().Set((2, 1, 1))
    camera = UsdGeom.Camera(stage.GetPrimAtPath("/Camera"))
    camera.GetOrderedXformOps()[0].Set((1.0e6, 0.0, 8.0))
    camera.CreateProjectionAttr("orthographic")
    camera.GetHorizontalApertureAttr().Set(40.0)
    camera.GetVerticalApertureAttr().Set(30.0)
    frame = render(stage)
    hit = frame["primId"] == 0
    assert hit.sum() > 1000
    x = (np.arange(160) + 0.5 - 80) * 4.0 / 160
    expected = 8.0 - np.sqrt(np.maximum(0.25 - (x / 2) ** 2, 0))
    depth = frame["distance_to_image_plane"]
    np.testing.assert_allclose(depth[60][hit[60]], expected[hit[60]], atol=2e-5)
