"""Colour without lights: a light at the camera and a soft dome, on what UsdPreviewSurface reflects; unlit, the base colour."""

from __future__ import annotations

import numpy as np
import pytest

from hdwarp.shade.encode import srgb_bytes

MESH, SPHERE, CUBE = 0, 1, 2
PLANES = ["color", "rgba8", "albedo", "normal", "Ngeom"]


def check(twin, image, hit, view, base, emissive=(0, 0, 0)):
    """color = exposure (light of the camera reflected + emissive), alpha 1, on every pixel seen; bytes are its encoding; albedo is the
    base. Float32 normals are good to 1e-6, and near the horizon what is reflected changes 5 times as fast as the cosine."""
    seen = hit.seen
    toward = hit.direction[seen] / np.linalg.norm(hit.direction[seen], axis=-1, keepdims=True)
    facing, facet = (np.abs(np.einsum("ij,ij->i", toward, image[name][seen].astype(float))) for name in ("normal", "Ngeom"))
    facing = np.maximum(facing, 0.5 * facet)  # however smooth normals turn away
    base, emissive = (np.broadcast_to(c, (*hit.t.shape, 3))[seen] for c in (base, emissive))
    colour = view.exposure * (twin.camera_light(base, facing) + emissive)
    np.testing.assert_allclose(image["color"][seen][:, :3], colour, rtol=3e-5, atol=1e-5)
    assert np.all(image["color"][seen][:, 3] == 1)
    np.testing.assert_allclose(image["albedo"][seen][:, :3], base, rtol=1e-6, atol=2e-7)
    assert np.all(image["albedo"][seen][:, 3] == 1)
    np.testing.assert_array_equal(image["rgba8"][seen][:, :3], srgb_bytes(image["color"][seen][:, :3]))
    assert np.all(image["rgba8"][seen][:, 3] == 255)
    for name in PLANES:
        assert np.all(image[name][~seen] == 0), name


def views(tools):
    place = np.array([0, 0, 5.0])
    return [
        tools.View(40, 30, place, half_width=0.6),
        tools.View(40, 30, place, half_width=3.0, orthographic=True, exposure=2.5, near=0.0, far=20.0),
    ]


def test_grey_by_default(tools, surface_twin, device):
    """Neither material nor displayColor: 0.5, as hdEmbree. In the middle of a sphere facing us F0 = 0.04 and alpha = 0.25 are seen square
    on: 0.65 (0.96 * 0.5 + 0.04 / (4 * 0.25^2)) and of the dome 0.35 (0.48 * 20 / 21 + what facets mirror)."""
    scene = tools.Scene()
    scene.add(SPHERE, np.eye(3) * 1.5)
    scene.add(CUBE, np.eye(3) * 0.5 @ tools.rotation((1, 1, 0), 0.6), (2, 1, 0))
    setup = tools.Setup(scene, views(tools), device)
    for image, hit, view in zip(setup.resolve(PLANES), setup.hits, setup.views, strict=True):
        check(surface_twin, image, hit, view, 0.5)
    one = tools.Setup(scene, [tools.View(1, 1, np.array([0, 0, 5.0]))], device).resolve(PLANES)[0]
    paper = 0.65 * (0.48 + 0.16) + 0.35 * (0.48 * 20 / 21 + 0.04)  # were all of the dome mirrored square on
    np.testing.assert_allclose(one["color"][0, 0], (paper, paper, paper, 1), rtol=0.01)
    np.testing.assert_array_equal(one["albedo"][0, 0], (0.5, 0.5, 0.5, 1))


@pytest.mark.parametrize("with_display", [False, True])
def test_materials_and_display_colour(tools, surface_twin, device, with_display):
    """A material's diffuse wins over displayColor unless it says otherwise; no material: displayColor; none of both: grey."""
    scene = tools.Scene()
    scene.materials = [
        {"diffuse_color": (0.8, 0.1, 0.2), "emissive_color": (0.0, 0.3, 2.0)},
        {"diffuse_color": (0.1, 0.1, 0.1), "uses_display_color": 1},
    ]
    for i, material in enumerate((0, 1, -1, -1)):
        scene.add(SPHERE, np.eye(3) * 0.5, (1.2 * i - 1.8, 0, 0), material=material)
    setup = tools.Setup(scene, views(tools), device)
    colours = {0: (0.9, 0.9, 0.0), 1: (0.2, 0.4, 0.6), 2: (0.7, 0.5, 0.3)}
    primvars = {"displayColor": scene.primvar(device, 3, instance=colours)} if with_display else {}
    bases = np.array([(0.8, 0.1, 0.2), (0.2, 0.4, 0.6), (0.7, 0.5, 0.3), (0.5, 0.5, 0.5), (0, 0, 0)])
    if not with_display:
        bases[1:3] = 0.5
    glow = np.array([(0, 0.3, 2.0), (0, 0, 0), (0, 0, 0), (0, 0, 0), (0, 0, 0)])
    for image, hit, view in zip(setup.resolve(PLANES, primvars=primvars), setup.hits, setup.views, strict=True):
        assert set(np.unique(hit.instance)) == {-1, 0, 1, 2, 3}
        check(surface_twin, image, hit, view, bases[hit.instance], glow[hit.instance])


def test_display_colour_over_a_mesh(tools, surface_twin, device):
    """Per-corner colours are interpolated before they are lit; smooth normals light them."""
    scene = tools.Scene()
    mesh = scene.add_mesh([[-2, -2, 0], [2, -2, 0], [0, 2, 0]], [[0, 1, 2]])
    scene.add(MESH, mesh=mesh)
    setup = tools.Setup(scene, views(tools), device)
    primvars = {
        "displayColor": scene.primvar(device, 3, mesh={0: ("faceVarying", np.eye(3), None)}),
        "normals": scene.primvar(device, 3, mesh={0: ("vertex", [(0, 0, 1), (1, 0, 1), (0, 1, 1)], None)}),
    }
    for image, hit, view in zip(setup.resolve(PLANES, primvars=primvars), setup.hits, setup.views, strict=True):
        check(surface_twin, image, hit, view, np.where(hit.seen[..., None], hit.weights, 0))
        assert len(np.unique(image["normal"][hit.seen].round(3), axis=0)) > 10


def test_albedo_needs_no_light(tools, device):
    scene = tools.Scene()
    scene.materials = [{"diffuse_color": (0.3, 0.6, 0.9)}]
    scene.add(SPHERE, material=0)
    setup = tools.Setup(scene, views(tools), device)
    for alone, lit in zip(setup.resolve(["albedo"]), setup.resolve(PLANES), strict=True):
        np.testing.assert_array_equal(alone["albedo"], lit["albedo"])
