"""When progressive pictures of an index that is edited by hand start over: exactly when a pixel can change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import warp as wp

import hdwarp
from hdwarp.delegate.previous_rows import PreviousRows
from hdwarp.delegate.render_delegate import RenderDelegate
from hdwarp.stage.columns import Body, GeometryKind, Gprim, MeshGeometry, Primvar, Site
from hdwarp.stage.looks import Material

SIZE = (40, 30)
SAMPLES = 4


def at(*place: float) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, 3] = place
    return pose


def quads(lift: float = 0.0, **extra) -> MeshGeometry:
    """Two squares side by side, the right one a subset of its own."""
    points = np.array([(-2, -1, 0), (0, -1, 0), (2, -1, 0), (-2, 1, 0), (0, 1, lift), (2, 1, 0)], np.float32)
    corners = np.array([(0, 1, 2), (0, 2, 3), (4, 5, 6), (4, 6, 7)], np.int32)
    of_corner = np.array([0, 1, 4, 3, 1, 2, 5, 4], np.int32)
    subset = np.array([-1, 0], np.int16)
    return MeshGeometry(points, corners, of_corner[corners], np.array([0, 0, 1, 1], np.int32), 2, 8, face_subset=subset, **extra)


def colours(*rgb: float) -> Primvar:
    return Primvar("uniform", np.array([rgb, (0.5, 0.5, 0.5)], np.float32))


def posed(path: str, *place: float) -> Body:
    return Body(path, at(*place))


class Picture:
    """A progressive picture, and the records it is of: `put` and `drop` edit them, `fresh` makes the same from nothing."""

    def __init__(self, device: str, camera, *more_planes: str, cameras: str = "/camera") -> None:
        self.cameras, self.planes = cameras, ("color", "rgba8", "primId", "depth", "normal", *more_planes)
        self.delegate = RenderDelegate(device)
        self.index = self.delegate.create_render_index()
        self.records: dict[str, object] = {}
        self.put(
            Gprim("/ball", GeometryKind.SPHERE, None, at(0.0, 0.0, -3.0)[None], material="/red", body="/body"),
            Gprim("/cube", GeometryKind.CUBE, None, at(3.0, 0.0, -6.0)[None], double_sided=True),
            Gprim("/sheet", GeometryKind.MESH, quads(), at(0.0, 1.5, -5.0)[None], material="/plain", subset_materials=("/part",)),
            Gprim("/dyed", GeometryKind.MESH, quads(primvars={"displayColor": colours(0.9, 0.1, 0.1)}), at(-1.0, -2.0, -5.0)[None]),
            Gprim("/bare", GeometryKind.SPHERE, None, at(-3.0, 0.0, -5.0)[None], constants={"displayColor": np.float32([0, 1, 0])}),
            Material("/red", diffuse_color=(0.8, 0.1, 0.1)),
            Material("/part", diffuse_color=(0.1, 0.1, 0.8)),
            Material("/plain", diffuse_color=(0.7, 0.7, 0.7)),
            Material("/idle", diffuse_color=(0.0, 1.0, 0.0)),
            posed("/body", 0.0, 0.0, -3.0),
            posed("/cart", 0.0, 0.0, 0.0),
            posed("/idle_body", 5.0, 0.0, 0.0),
            posed("/rider", 0.0, 0.0, 0.0),
            camera(),
            camera("/other", (0.5, 0.0, 0.0)),
            camera("/passenger", (0.0, 0.0, 0.2), body="/cart"),
            camera("/ridden", (0.0, 0.0, 0.1), body="/rider"),
            Site("/site", np.eye(4)),
        )
        self.how: dict[str, object] = {}
        self.views, self.buffers = self.make_views(self.delegate), self.make_buffers(self.delegate)
        self.render_pass = self.delegate.create_render_pass(samples=SAMPLES)

    def make_views(self, delegate: RenderDelegate):
        return delegate.create_views(self.cameras, SIZE)

    def make_buffers(self, delegate: RenderDelegate) -> dict[str, hdwarp.RenderBuffer]:
        return {name: delegate.create_render_buffer(name, *SIZE) for name in self.planes}

    def put(self, *records: object) -> None:
        self.records.update({record.path: record for record in records})
        self.index.insert(*records)
        self.delegate.commit_resources(self.index)

    def drop(self, *paths: str) -> None:
        for path in paths:
            del self.records[path]
            self.index.remove(path)
        self.delegate.commit_resources(self.index)

    def change(self, path: str, **fields) -> None:
        self.put(replace(self.records[path], **fields))

    def step(self) -> int:
        """One more call; how many samples the picture then has."""
        self.render_pass.execute(self.views, self.buffers, progressive=True, **self.how)
        return self.delegate.render_stats()["numCompletedSamples"]

    def finish(self) -> list[int]:
        """Samples after each call, up to the one that finds nothing to do."""
        counts = [self.step()]
        while not self.render_pass.is_converged:
            counts.append(self.step())
        return counts

    def pixels(self) -> dict[str, np.ndarray]:
        return {name: buffer.array.numpy().copy() for name, buffer in self.buffers.items()}

    def whole(self, delegate: RenderDelegate | None = None) -> dict[str, np.ndarray]:
        """The picture in one go, by another pass into other buffers."""
        delegate = self.delegate if delegate is None else delegate
        buffers = self.make_buffers(delegate)
        delegate.create_render_pass(samples=SAMPLES).execute(self.make_views(delegate), buffers, **self.how)
        return {name: buffer.array.numpy().copy() for name, buffer in buffers.items()}

    def fresh(self) -> dict[str, np.ndarray]:
        """The picture of a delegate that never knew anything else."""
        delegate = RenderDelegate(self.delegate.device, settings=self.delegate.settings)
        index = delegate.create_render_index()
        index.insert(*self.records.values())
        delegate.commit_resources(index)
        return self.whole(delegate)


def assert_same(ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray]) -> None:
    assert ours.keys() == theirs.keys()
    for name, plane in ours.items():
        assert np.array_equal(plane, theirs[name], equal_nan=True), name


def _many_materials(p: Picture) -> None:
    """So many that the columns of bound ones move elsewhere too."""
    layout = p.delegate.render_param.layout_version
    p.put(*(Material(f"/more{i}", opacity=0.5) for i in range(40)))
    assert p.delegate.render_param.layout_version > layout


def _tree_built_anew(p: Picture) -> None:
    """What bodies carry is written at each move of any body, which wears the tree out."""
    root = p.delegate.tables.world_columns.root.numpy()[0]
    for i in range(300):
        p.put(posed("/idle_body", float(i % 7), 0.0, 0.0))
    assert p.delegate.tables.world_columns.root.numpy()[0] != root


IRRELEVANT = {
    "another camera moves": lambda p: p.change("/other", world_from_camera=at(0.0, 3.0, 0.0)),
    "another camera's lens": lambda p: p.change("/other", focal_length=0.1, exposure_scale=3.0),
    "another camera turns orthographic": lambda p: p.change("/other", projection="orthographic"),
    "another camera's clipping planes": lambda p: p.change("/other", clipping_planes=np.array([[0.0, 0.0, 1.0, 0.5]])),
    "another camera's body": lambda p: p.put(posed("/cart", 1.0, 2.0, 3.0)),
    "another camera leaves its body": lambda p: p.change("/passenger", body=""),
    "what no picture reads of the camera": lambda p: p.change("/camera", f_stop=4.0, attributes={"note": 1}),
    "an unbound material": lambda p: p.change("/idle", diffuse_color=(1.0, 0.0, 1.0)),
    "an unbound material cuts": lambda p: p.change("/idle", opacity=0.1, opacity_threshold=0.5),
    "an unbound material comes": lambda p: p.put(Material("/a_first")),
    "an unbound material goes": lambda p: p.drop("/idle"),
    "many unbound materials come": _many_materials,
    "a site comes": lambda p: p.put(Site("/another", at(1.0, 0.0, 0.0))),
    "a site goes": lambda p: p.drop("/site"),
    "a site moves": lambda p: p.put(Site("/site", at(0.0, 1.0, 0.0))),
    "an idle body moves": lambda p: p.put(posed("/idle_body", 1.0, 1.0, 1.0)),
    "an idle body moves often": _tree_built_anew,
    "an idle body goes": lambda p: p.drop("/rider"),  # the last of them
    "the same once more": lambda p: p.put(*p.records.values()),
}


def relevant_gprims() -> dict:
    red = {"displayColor": np.float32([1, 0, 0])}
    return {
        "a prim moves": lambda p: p.change("/cube", transforms=at(2.0, 0.0, -6.0)[None]),
        "a prim that a body carries moves": lambda p: p.change("/ball", transforms=at(0.5, 0.0, -3.0)[None]),
        "a prim comes": lambda p: p.put(Gprim("/aaa", GeometryKind.SPHERE, None, at(1.0, 1.0, -4.0)[None])),
        "a prim goes": lambda p: p.drop("/cube"),
        "another shape": lambda p: p.change("/cube", kind=GeometryKind.SPHERE),
        "more instances": lambda p: p.change("/cube", transforms=np.stack([at(3.0, 0.0, -6.0), at(1.0, -1.0, -4.0)])),
        "single-sided": lambda p: p.change("/cube", double_sided=False),
        "points": lambda p: p.change("/sheet", mesh=quads(0.7)),
        "topology": lambda p: p.change("/sheet", mesh=replace(quads(), face_subset=np.array([0, -1], np.int16))),
        "a primvar of a mesh": lambda p: p.change("/dyed", mesh=quads(primvars={"displayColor": colours(0.0, 0.0, 1.0)})),
        "a primvar of a prim": lambda p: p.change("/bare", constants=red),
        "normals": lambda p: p.change("/sheet", mesh=quads(normals=Primvar("vertex", np.tile(np.float32([0.6, 0.0, 0.8]), (6, 1))))),
        "far away": lambda p: p.put(Gprim("/far", GeometryKind.SPHERE, None, at(0.0, 0.0, -9000.0)[None])),
    }


RELEVANT = {
    **relevant_gprims(),
    "a bound material": lambda p: p.change("/red", diffuse_color=(0.0, 0.0, 1.0)),
    "a material of a subset": lambda p: p.change("/part", emissive_color=(0.0, 0.5, 0.0)),
    "a bound material cuts": lambda p: p.change("/red", opacity=0.1, opacity_threshold=0.5),
    "a material of a subset cuts": lambda p: p.change("/part", opacity=0.1, opacity_threshold=0.5),
    "a bound material goes": lambda p: p.drop("/red"),
    "a binding": lambda p: p.change("/cube", material="/idle"),
    "a binding of a subset": lambda p: p.change("/sheet", subset_materials=("/idle",)),
    "the camera moves": lambda p: p.change("/camera", world_from_camera=at(0.0, 0.2, 0.0)),
    "the camera's lens": lambda p: p.change("/camera", focal_length=0.06),
    "the camera's aperture": lambda p: p.change("/camera", aperture_offset=(0.01, 0.0)),
    "the camera's exposure": lambda p: p.change("/camera", exposure_scale=2.0),
    "the camera's clipping range": lambda p: p.change("/camera", clipping_range=(3.0, 100.0)),
    "the camera's clipping planes": lambda p: p.change("/camera", clipping_planes=np.array([[0.0, 0.0, 1.0, 3.0]])),
    "the camera turns orthographic": lambda p: p.change("/camera", projection="orthographic", aperture=(8.0, 6.0)),
    "the camera gets a body": lambda p: p.change("/camera", body="/idle_body", world_from_camera=at(0.1, 0.0, 0.0)),
    "a setting": lambda p: p.delegate.set_render_setting("cull", True),
    "restart": lambda p: p.delegate.restart(),
}


@pytest.mark.parametrize("change", IRRELEVANT)
def test_goes_on_where_nothing_of_it_changes(device, camera, change):
    """With the bits of a picture that nobody disturbed, and of one made in one go."""
    undisturbed = Picture(device, camera, "bodyId")
    assert undisturbed.finish() == [1, 2, 3, 4]
    p = Picture(device, camera, "bodyId")
    for picture in (undisturbed, p) if "often" in change else ():
        picture.put(Gprim("/late", GeometryKind.CUBE, None, at(0.0, -1.0, -8.0)[None]))  # its tree is a young one
    if "often" in change:
        assert undisturbed.finish() == [1, 2, 3, 4]
    assert [p.step(), p.step()] == [1, 2]
    IRRELEVANT[change](p)
    assert p.finish() == [3, 4]
    for result in (undisturbed.pixels(), p.whole(), p.fresh()):
        assert_same(p.pixels(), result)


@pytest.mark.parametrize("change", IRRELEVANT)
def test_stays_finished_where_nothing_of_it_changes(device, camera, change):
    p = Picture(device, camera)
    if "often" in change:
        p.put(Gprim("/late", GeometryKind.CUBE, None, at(0.0, -1.0, -8.0)[None]))
    p.finish()
    before = p.pixels()
    IRRELEVANT[change](p)
    assert p.render_pass.is_converged
    p.buffers["primId"].array.fill_(99)
    assert p.step() == SAMPLES and p.render_pass.is_converged
    assert (p.buffers["primId"].array.numpy() == 99).all(), "nothing was done"
    assert_same(p.whole(), before)


@pytest.mark.parametrize("change", RELEVANT)
def test_starts_over_where_something_of_it_changes(device, camera, change):
    """Once, and with the bits of the changed scene made from nothing."""
    p = Picture(device, camera)
    assert [p.step(), p.step()] == [1, 2]
    RELEVANT[change](p)
    assert p.finish() == [1, 2, 3, 4]
    for result in (p.whole(), p.fresh()):
        assert_same(p.pixels(), result)


@pytest.mark.parametrize("change", RELEVANT)
def test_is_not_finished_any_more_where_something_of_it_changes(device, camera, change):
    p = Picture(device, camera)
    p.finish()
    RELEVANT[change](p)
    assert not p.render_pass.is_converged
    assert p.finish() == [1, 2, 3, 4]
    assert_same(p.pixels(), p.fresh())


def test_a_body_that_carries_the_camera_starts_it_over(device, camera):
    p = Picture(device, camera, cameras="/ridden")
    p.finish()
    p.put(posed("/rider", 0.5, 0.0, 0.0), camera("/ridden", (0.5, 0.0, 0.1), body="/rider"))  # it sits in its body as before
    assert not p.render_pass.is_converged
    assert p.finish() == [1, 2, 3, 4]
    assert_same(p.pixels(), p.fresh())
    p.how["body_q"] = wp.array(np.tile(np.float32([0.5, 0, 0, 0, 0, 0, 1]), (4, 1)), dtype=wp.transformf, device=p.delegate.device)
    assert p.finish() == [SAMPLES], "that is where it is on the stage"
    p.put(posed("/rider", 0.7, 0.0, 0.0))  # under the camera, which sits otherwise in it now
    assert not p.render_pass.is_converged
    assert p.finish() == [1, 2, 3, 4]
    assert_same(p.pixels(), p.whole())


def test_clipping_planes_are_told_by_camera(device, camera):
    """There are several rows of them a camera: moving one of a camera's planes changes that camera, and no other."""
    p = Picture(device, camera, cameras="/ridden")
    plane = np.array([[0.0, 0.0, 1.0, 3.0]])
    p.change("/other", clipping_planes=plane)
    p.change("/ridden", clipping_planes=plane)
    p.finish()
    p.change("/other", clipping_planes=1.1 * plane)
    assert p.render_pass.is_converged
    p.change("/ridden", clipping_planes=plane + [0.0, 0.0, 0.0, 0.2])
    assert not p.render_pass.is_converged and p.finish() == [1, 2, 3, 4]
    assert_same(p.pixels(), p.fresh())


def test_ids_of_materials_matter_where_they_are_shown(device, camera):
    for planes, expected in (((), [3, 4]), (("materialId",), [1, 2, 3, 4])):
        p = Picture(device, camera, *planes)
        p.step()
        p.step()
        p.put(Material("/zzz"))  # the last: all keep their ids
        assert p.delegate.tables.materials.columns.material_id.numpy()[p.index.material_rows["/zzz"]] == 4
        p.put(Material("/a_first"))
        assert p.finish() == expected
        p.change("/a_first", opacity=0.5)
        p.put(Material("/zzzz"))
        assert p.render_pass.is_converged
        p.drop("/a_first")
        assert p.render_pass.is_converged == (not planes)
        p.finish()
        assert_same(p.pixels(), p.fresh())


def test_a_row_of_a_material_that_another_one_takes(device, camera):
    """What is bound is told by rows: one that is used again is another material."""
    p = Picture(device, camera)
    p.finish()
    row = p.index.material_rows["/red"]
    p.drop("/red")
    p.put(Material("/blue", diffuse_color=(0.0, 0.0, 1.0)))
    assert p.index.material_rows["/blue"] == row
    p.finish()
    p.change("/blue", diffuse_color=(0.0, 1.0, 0.0))
    assert p.render_pass.is_converged, "nothing is bound to it"
    p.change("/ball", material="/blue")
    assert not p.render_pass.is_converged
    p.finish()
    assert_same(p.pixels(), p.fresh())


def test_bodies_that_are_posed_where_they_were(device, camera):
    """Any commit puts them back to their places on the stage: that is told at once, but the picture goes on where they are posed again."""
    p = Picture(device, camera)
    poses = np.tile(np.float32([0.3, 0.1, -3.5, 0.0, 0.0, 0.0, 1.0]), (4, 1))
    body_q = wp.array(poses, dtype=wp.transformf, device=p.delegate.device)
    p.delegate.tables.pose(body_q)
    assert [p.step(), p.step()] == [1, 2]
    p.change("/other", focal_length=0.1)
    p.delegate.tables.pose(body_q)
    assert p.finish() == [3, 4]
    p.put(posed("/idle_body", 0.0, 0.0, 7.0))
    assert not p.render_pass.is_converged
    p.delegate.tables.pose(body_q)
    assert p.step() == SAMPLES and p.render_pass.is_converged
    posed_pixels = p.pixels()
    assert_same(p.whole(), posed_pixels)
    p.put(Site("/site", at(1.0, 1.0, 1.0)))
    assert p.finish() == [1, 2, 3, 4]
    assert_same(p.pixels(), p.fresh())
    assert not np.array_equal(p.pixels()["color"], posed_pixels["color"])


def test_motion_follows_the_rendered_camera_alone(device, camera):
    p = Picture(device, camera, "motion")
    p.delegate.tables.keep_previous()
    p.index.previous = PreviousRows()

    def frame(*records: object) -> None:
        p.index.previous.advance()
        p.put(*records) if records else p.delegate.commit_resources(p.index)

    frame()
    assert [p.step(), p.step()] == [1, 2]
    frame(camera("/other", (0.0, 1.0, 0.0)))
    assert p.step() == 3
    frame()  # it rests again
    assert p.step() == 4 and p.render_pass.is_converged
    frame(Material("/idle"), Site("/site", at(0.0, 0.0, 1.0)))
    assert p.render_pass.is_converged
    frame(camera("/camera", (0.1, 0.0, 0.0)))
    assert not p.render_pass.is_converged and p.finish() == [1, 2, 3, 4]
    moving = p.pixels()["motion"]
    frame()
    assert not p.render_pass.is_converged, "it moves no more"
    assert p.finish() == [1, 2, 3, 4]
    assert (p.pixels()["motion"][moving != 0.0] == 0.0).all() and (moving != 0.0).any()
    frame(replace(p.records["/cube"], transforms=at(2.0, 0.0, -6.0)[None]))
    assert p.finish() == [1, 2, 3, 4]
    frame()
    assert not p.render_pass.is_converged and p.finish() == [1, 2, 3, 4]
    assert_same(p.pixels(), p.whole())


def test_cameras_that_come_or_go_still_refuse_the_views(device, camera):
    p = Picture(device, camera)
    p.finish()
    p.put(camera("/aaa"))
    assert not p.render_pass.is_converged
    with pytest.raises(hdwarp.Error, match="make them anew"):
        p.step()
    p.views = p.make_views(p.delegate)
    assert p.finish() == [1, 2, 3, 4]
    assert_same(p.pixels(), p.fresh())


def test_two_pictures_in_turns_over_a_change_of_layout(device, camera):
    """Both keep what they have, and what a paused pass tells of one is not taken from the other."""
    p = Picture(device, camera)
    mine, other = p.buffers, p.make_buffers(p.delegate)
    assert p.finish() == [1, 2, 3, 4]
    p.buffers = other
    assert p.step() == 1
    _many_materials(p)
    assert p.step() == 2
    p.buffers = mine
    assert p.step() == SAMPLES and p.render_pass.is_converged
    p.change("/red", diffuse_color=(0.0, 1.0, 0.0))
    p.buffers = other
    assert p.finish() == [1, 2, 3, 4]
    p.delegate.pause()
    p.step()
    assert p.render_pass.is_converged
    p.buffers = mine
    p.step()
    assert not p.render_pass.is_converged, "it is of the scene before"
    p.delegate.resume()
    assert p.finish() == [1, 2, 3, 4]
    assert_same(p.pixels(), p.fresh())
