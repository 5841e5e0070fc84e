"""Primvars and shading normals at the hit, by hand from the caster's weights."""

from __future__ import annotations

import numpy as np
import pytest

MESH, SPHERE = 0, 1


@pytest.fixture(scope="module")
def scene(tools):
    """Two meshes of random triangles, two instances of the first, and a sphere."""
    rng = np.random.default_rng(5)
    scene = tools.Scene()
    for count in (12, 20):
        triangles = np.array([rng.choice(15, 3, replace=False) for _ in range(count)])
        corners = rng.permutation(3 * count).reshape(-1, 3)
        scene.add_mesh(rng.normal(size=(15, 3)), triangles, face=rng.integers(0, 8, count), corners=corners)
    scene.add(MESH, rng.normal(size=(3, 3)), (0, 1, 0), mesh=0)
    scene.add(MESH, rng.normal(size=(3, 3)), (1, 0, 0), mesh=1)
    scene.add(MESH, rng.normal(size=(3, 3)), (-1, -1, 0), mesh=1)
    scene.add(SPHERE, np.eye(3) * 0.8, (-1.5, 1.5, 0))
    return scene


@pytest.fixture(scope="module")
def views(tools):
    return [tools.View(45, 30, np.array([0, 0, 6.0]), half_width=0.6), tools.View(7, 30, np.array([0, 0, 6.0]), half_width=0.2)]


def at_hits(scene, hit, width, mesh, instance, missing):
    """The caster's idea of a primvar: (H, W, width) float64."""
    image = np.zeros((*hit.t.shape, width))
    for number, row in enumerate(scene.instances):
        at = hit.instance == number
        if row.mesh in mesh:
            kind, values, indices = mesh[row.mesh]
            geometry = scene.meshes[row.mesh]
            triangle = hit.triangle[at]
            items = {
                "uniform": np.repeat(geometry.face[:, None], 3, axis=1),
                "vertex": geometry.triangles,
                "faceVarying": geometry.corners,
            }[kind][triangle]
            if indices is not None:
                items = np.asarray(indices)[items]
            image[at] = np.einsum("nk,nkc->nc", hit.weights[at], np.asarray(values).reshape(-1, width)[items])
        else:
            image[at] = instance.get(number, missing)
    return image


@pytest.mark.parametrize("width", [1, 2, 3, 4])
@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("kind", ["uniform", "vertex", "faceVarying"])
def test_any_interpolation(tools, device, scene, views, kind, indexed, width):
    """Mesh 0 of one kind, mesh 1 of another: both in one picture; the sphere has a constant, or nothing and then zeros."""
    rng = np.random.default_rng(width)
    other = {"uniform": "vertex", "vertex": "faceVarying", "faceVarying": "uniform"}[kind]
    sizes = {"uniform": 8, "vertex": 15, "faceVarying": 60}
    mesh = {}
    for number, name in ((0, kind), (1, other)):
        values = rng.normal(size=(sizes[name], width)).astype(np.float32)
        indices = rng.integers(0, len(values), sizes[name]) if indexed and number == 0 else None
        mesh[number] = (name, values, indices)
    instance = {3: rng.normal(size=width).astype(np.float32)} if indexed else {}
    columns = scene.primvar(device, width, mesh=mesh, instance=instance)
    setup = tools.Setup(scene, views, device)
    images = setup.resolve(["primvars:v", "primId"], primvars={"v": columns})
    for image, hit in zip(images, setup.hits, strict=True):
        wanted = at_hits(scene, hit, width, mesh, instance, 0.0)
        np.testing.assert_allclose(image["primvars:v"].reshape(wanted.shape), wanted, atol=3e-6)


def test_constants_of_instances(tools, device, scene, views):
    """Per-instance values where the mesh has none; a mesh's own win."""
    mesh = {0: ("vertex", np.full((15, 3), 7.0), None)}
    instance = {0: (1, 1, 1), 1: (2, 3, 4), 2: (5, 6, 7)}
    columns = scene.primvar(device, 3, mesh=mesh, instance=instance)
    setup = tools.Setup(scene, views, device)
    (image, _) = setup.resolve(["primvars:v"], primvars={"v": columns}, clear={"primvars:v": (9, 8, 7)})
    instance_seen = setup.hits[0].instance
    for number, value in {0: (7, 7, 7), 1: (2, 3, 4), 2: (5, 6, 7), 3: (0, 0, 0), -1: (9, 8, 7)}.items():
        np.testing.assert_allclose(
            image["primvars:v"][instance_seen == number], np.broadcast_to(value, ((instance_seen == number).sum(), 3)), rtol=1e-6
        )


def test_shading_normals(tools, device, scene, views):
    """Interpolated in object space, turned by the inverse transpose, unit length; geometric where there are none or they vanish."""
    rng = np.random.default_rng(1)
    values = rng.normal(size=(15, 3)).astype(np.float32) * 3
    mesh = {1: ("vertex", values, None)}
    columns = scene.primvar(device, 3, mesh=mesh)
    setup = tools.Setup(scene, views, device)
    images = setup.resolve(["normal", "Neye", "Ngeom"], primvars={"normals": columns})
    for image, hit, view in zip(images, setup.hits, views, strict=True):
        wanted = hit.normal.copy()
        own = at_hits(scene, hit, 3, mesh, {}, 0.0)
        for number in (1, 2):
            at = hit.instance == number
            turned = own[at] @ np.linalg.inv(scene.instances[number].linear)
            wanted[at] = turned / np.linalg.norm(turned, axis=-1, keepdims=True)
        wanted[~hit.seen] = 0
        close = np.linalg.norm(own, axis=-1) > 0.3  # a short mean of long normals has few digits
        close |= ~np.isin(hit.instance, (1, 2))
        np.testing.assert_allclose(image["normal"][close], wanted[close], atol=2e-5)
        np.testing.assert_allclose(image["Neye"], image["normal"] @ view.turn, atol=1e-6)
        assert np.abs(np.linalg.norm(image["normal"][hit.seen], axis=-1) - 1).max() < 1e-6
        np.testing.assert_allclose(image["Ngeom"][hit.seen], hit.normal[hit.seen], atol=1e-5)


def test_normals_without_direction_fall_back(tools, device, scene, views):
    columns = scene.primvar(device, 3, mesh={0: ("uniform", np.zeros((8, 3)), None), 1: ("vertex", np.full((15, 3), np.nan), None)})
    images = tools.Setup(scene, views, device).resolve(["normal", "Ngeom"], primvars={"normals": columns})
    for image in images:
        np.testing.assert_array_equal(image["normal"], image["Ngeom"])
