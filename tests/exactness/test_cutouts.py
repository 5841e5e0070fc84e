"""Cut-out opacity: surfaces whose constant opacity is below opacityThreshold are not there: whole prims, and faces of GeomSubsets."""

from __future__ import annotations

import numpy as np
import pytest
from pxr import UsdGeom, UsdShade

import hdwarp
from hdwarp.shade.cutout import MAX_LAYERS

PLANE = "distance_to_image_plane"
BIG = np.array([[[-99, -99, 0], [99, -99, 0], [0, 160, 0]]], float)


def stack(brute, depths, **material):
    """Walls at ``depths`` before a camera at the origin, all but the last of the material."""
    stage = brute.new_stage()
    brute.add_camera(stage, brute.Eye(np.eye(3), np.zeros(3)))
    made = brute.add_material(stage, "/material", **material)
    for i, depth in enumerate(depths):
        mesh = brute.add_mesh(stage, f"/wall{i}", BIG, np.eye(3), (0, 0, -depth))
        if i + 1 < len(depths):
            brute.bind(mesh.GetPrim(), made)
    return stage


def see(brute, stage, aovs=(PLANE, "primId"), **options):
    return brute.look(stage, brute.Eye(np.eye(3), np.zeros(3)), aovs=aovs, **options)


@pytest.mark.parametrize(
    ("opacity", "threshold", "depth"), [(0.2, 0.5, 3.0), (0.5, 0.5, 1.0), (0.2, 0.0, 1.0), (1.0, 0.9, 1.0), (0.0, 1.0, 3.0)]
)
def test_whole_prims(brute, opacity, threshold, depth):
    """Cut where opacity < threshold and the threshold is above 0; else drawn."""
    frame = see(brute, stack(brute, (1, 2, 3), opacity=opacity, opacityThreshold=threshold))
    np.testing.assert_allclose(frame[PLANE], depth, rtol=1e-6)
    assert any("cut away" in item.message for item in frame.diagnostics) == (depth == 3.0)


def subset(stage, mesh, name, faces, material):
    made = UsdGeom.Subset.CreateGeomSubset(UsdGeom.Imageable(mesh), name, "face", faces, "materialBind")
    UsdShade.MaterialBindingAPI.Apply(made.GetPrim()).Bind(material)


def sandwich(brute, layers: int, cut: str = "even"):
    """One mesh of ``layers`` walls at depths 1, 2, ..., every second of which (or all but the last) is cut away; and a wall behind it."""
    stage = brute.new_stage()
    brute.add_camera(stage, brute.Eye(np.eye(3), np.zeros(3)))
    walls = np.concatenate([BIG - [0, 0, 1.0 + i] for i in range(layers)])
    mesh = brute.add_mesh(stage, "/sandwich", walls)
    faces = list(range(0, layers, 2)) if cut == "even" else list(range(layers - 1))
    subset(stage, mesh, "holes", faces, brute.add_material(stage, "/holes", opacity=0.1, opacityThreshold=0.5))
    brute.add_mesh(stage, "/behind", BIG * 3, np.eye(3), (0, 0, -100.0))
    return stage


def test_faces_of_a_subset(brute):
    """The wall at 1 m is a hole in the mesh; the one at 2 m is not, and is what every plane is about."""
    aovs = (PLANE, "primId", "elementId", "materialId", "Ngeom", "position", "color", "rgba8", "triangleId", "barycentric")
    frame = see(brute, sandwich(brute, 3), aovs)
    np.testing.assert_allclose(frame[PLANE], 2.0, rtol=1e-6)
    assert (frame["elementId"] == 1).all()
    assert (frame["materialId"] == -1).all()
    assert (frame["color"][..., 3] == 1.0).all()
    np.testing.assert_allclose(frame["position"][..., 2], -2.0, rtol=1e-6)
    averaged = see(brute, sandwich(brute, 3), ("color",), samples=4)["color"]
    np.testing.assert_allclose(averaged, frame["color"], atol=0.02)


def test_as_many_layers_as_there_may_be(brute):
    """Up to MAX_LAYERS cut faces one behind the other are looked through; behind as many the next surface is drawn."""
    frame = see(brute, sandwich(brute, MAX_LAYERS + 1, cut="all but the last"))
    np.testing.assert_allclose(frame[PLANE], MAX_LAYERS + 1.0, rtol=1e-6)
    frame = see(brute, sandwich(brute, MAX_LAYERS + 3, cut="all but the last"))
    np.testing.assert_allclose(frame[PLANE], MAX_LAYERS + 1.0, rtol=1e-6)


def test_a_mesh_that_is_all_holes_and_one_whose_own_material_is_cut(brute):
    """Own material cut, one face not: the face is drawn. All cut: the mesh is not there at all."""
    stage = sandwich(brute, 3)
    mesh = UsdGeom.Mesh.Get(stage, "/sandwich")
    holes = UsdShade.Material.Get(stage, "/holes")
    brute.bind(mesh.GetPrim(), holes)
    frame = see(brute, stage)
    np.testing.assert_allclose(frame[PLANE], 100.0, rtol=1e-6)
    subset(stage, mesh, "solid", [1], brute.add_material(stage, "/solid", opacity=1.0))
    np.testing.assert_allclose(see(brute, stage)[PLANE], 2.0, rtol=1e-6)


def test_against_brute_force(brute):
    """Triangle soup with a random third of the faces cut: the picture of the other two thirds, triangle numbers and all."""
    rng = np.random.default_rng(9)
    for orthographic in (False, True):
        eye = brute.around(rng, orthographic=orthographic, **({"focal": 16.0} if orthographic else {}))
        triangles = brute.soup(rng, 90)
        cut = rng.random(90) < 0.33
        stage = brute.new_stage()
        brute.add_camera(stage, eye)
        mesh = brute.add_mesh(stage, "/soup", triangles)
        holes = brute.add_material(stage, "/holes", opacity=0.1, opacityThreshold=0.5)
        subset(stage, mesh, "holes", np.flatnonzero(cut).tolist(), holes)
        expected = brute.first(eye, triangles, lambda points, i, _, cut=cut: np.full(points.shape[:2], -1.0 if cut[i] else 1.0))
        brute.compare(brute.look(stage, eye), expected, share=0.15)


def test_opacity_that_changes_is_followed(brute):
    """Edited on the stage and synced: whole prims appear and vanish, and so do faces."""
    stage = sandwich(brute, 3)
    scene = hdwarp.Scene(stage, device="cpu")
    sensor = hdwarp.SensorCamera(scene, cameras="/camera", resolution=(64, 48))
    out = sensor.allocate([PLANE])
    opacity = stage.GetPrimAtPath("/holes/surface").GetAttribute("inputs:opacity")
    for value, depth in ((0.1, 2.0), (0.9, 1.0), (0.1, 2.0)):
        opacity.Set(value)
        scene.sync()
        sensor.update(None, out)
        np.testing.assert_allclose(out[PLANE].numpy(), depth, rtol=1e-6)
