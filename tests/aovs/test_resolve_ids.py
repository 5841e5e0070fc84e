"""Every id plane says what the caster saw."""

from __future__ import annotations

import numpy as np
import pytest

MESH, SPHERE, CUBE = 0, 1, 2
IDS = ["primId", "instanceId", "elementId", "triangleId", "materialId", "bodyId", "instanceRow", "worldId"]


@pytest.fixture(scope="module")
def scene(tools):
    """Two quads a mesh, three instances of two meshes (one with subsets), a sphere and a cube, side by side."""
    scene = tools.Scene()
    corner = np.array([[-1, -1, 0], [0, -1, 0], [1, -1, 0], [-1, 1, 0], [0, 1, 0], [1, 1, 0]], float)
    triangles = [[0, 1, 4], [0, 4, 3], [1, 2, 5], [1, 5, 4]]
    plain = scene.add_mesh(corner, triangles, face=[3, 3, 7, 7])
    parts = scene.add_mesh(corner, triangles, face=[0, 0, 2, 2], face_subset=np.array([1, 0, -1], np.int32))
    scene.materials = [{"material_id": number} for number in (40, 41, 42)]
    at = iter(range(5))

    def add(kind, **options):
        scene.add(kind, np.eye(3) * 0.9, (2.2 * next(at) - 4.4, 0, -10), **options)

    add(MESH, mesh=plain, material=2, prim_id=11, instance_id=3, body=1)
    add(MESH, mesh=parts, material=0, subset_materials=(2, 1), prim_id=12, world=5)
    add(MESH, mesh=parts, material=-1, subset_materials=(-1, -1), prim_id=13, instance_id=9)
    add(SPHERE, material=1, prim_id=14, body=0)
    add(CUBE, prim_id=15)
    return scene


def expected(scene, hit, name):
    columns = {"primId": "prim_id", "instanceId": "instance_id", "bodyId": "body", "worldId": "world"}
    image = np.full(hit.instance.shape, -1)
    for number, instance in enumerate(scene.instances):
        at = hit.instance == number
        mesh = scene.meshes[instance.mesh] if instance.mesh >= 0 else None
        triangle = hit.triangle[at]
        face = mesh.face[triangle] if mesh else np.zeros(at.sum(), int)
        if name in columns:
            image[at] = instance.ids.get(columns[name], -1 if name == "bodyId" else 0)
        elif name == "instanceRow":
            image[at] = number
        elif name == "triangleId":
            image[at] = triangle
        elif name == "elementId":
            image[at] = face
        else:
            rows = np.full(at.sum(), instance.material)
            if mesh and mesh.face_subset is not None:
                subset = mesh.face_subset[face]
                bound = np.array([*instance.subset_materials, -1])[subset]
                rows = np.where(bound >= 0, bound, rows)
            image[at] = np.where(rows >= 0, 40 + rows, -1)
    return image


@pytest.mark.parametrize("width", [160, 41])
def test_ids(tools, device, scene, width):
    """Faces by their authored number, subsets win over the instance's material and fall back to it, shapes are element 0, triangle -1."""
    setup = tools.Setup(scene, [tools.View(width, 24, np.zeros(3), half_width=0.6)], device)
    (image,) = setup.resolve(IDS)
    hit = setup.hits[0]
    assert set(np.unique(hit.instance)) == {-1, 0, 1, 2, 3, 4}
    for name in IDS:
        np.testing.assert_array_equal(image[name], expected(scene, hit, name), err_msg=name)
    assert set(np.unique(image["materialId"])) == {-1, 40, 41, 42}


def test_ids_can_be_cleared_otherwise(tools, device, scene):
    setup = tools.Setup(scene, [tools.View(50, 24, np.zeros(3), half_width=0.9)], device)
    (image,) = setup.resolve(IDS, clear={name: -9 - i for i, name in enumerate(IDS)})
    miss = ~setup.hits[0].seen
    for i, name in enumerate(IDS):
        assert np.all(image[name][miss] == -9 - i), name
        np.testing.assert_array_equal(image[name][~miss], expected(scene, setup.hits[0], name)[~miss])


def test_only_shapes(tools, device):
    """A scene without any mesh has tables of one dummy item, which nobody may read into the picture."""
    scene = tools.Scene()
    scene.add(SPHERE, np.eye(3), (0, 0, -5), prim_id=2)
    setup = tools.Setup(scene, [tools.View(9, 9, np.zeros(3))], device)
    (image,) = setup.resolve([*IDS, "Ngeom"])
    for name in IDS[:4]:
        np.testing.assert_array_equal(image[name], expected(scene, setup.hits[0], name), err_msg=name)
