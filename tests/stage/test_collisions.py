"""Colliders told from what is drawn: by `UsdPhysics.CollisionAPI`, purpose and visibility."""

from __future__ import annotations

import pytest
from pxr import Usd

from hdwarp.stage.changes import ChangeListener, StageEdits
from hdwarp.stage.open import open_stage, resolve_time
from hdwarp.stage.reader import StageReader, read_stage

COLLIDES = '(prepend apiSchemas = ["PhysicsCollisionAPI"])'
GUIDE = 'uniform token purpose = "guide"'
HIDDEN = 'token visibility = "invisible"'


def kinds(found) -> dict[str, tuple[bool, bool]]:
    """Path -> (visual, collision)."""
    return {gprim.path: (gprim.visual, gprim.collision) for gprim in found.gprims}


LINK = f"""def Xform "link" (prepend apiSchemas = ["PhysicsRigidBodyAPI"]) {{
    def "visuals" {{ def Cube "shell" {{}} }}
    def "collisions" {{
        def Cube "guide" {COLLIDES} {{ {GUIDE} }}
        def Cube "hidden" {COLLIDES} {{ {HIDDEN} }}
    }}
    def Cube "both" {COLLIDES} {{}}
    def Cube "marker" {{ {GUIDE} }}
    def Cube "ghost" {{ {HIDDEN} }}
}}
"""


def test_drawn_colliders_are_marked(read):
    assert kinds(read(LINK)) == {"/link/both": (True, True), "/link/visuals/shell": (True, False)}


def test_colliders_that_are_not_drawn_are_read_when_asked_for(read):
    """Guides and invisible prims that collide with nothing stay out."""
    found = read(LINK, collisions=True)
    hidden = {"/link/collisions/guide": (False, True), "/link/collisions/hidden": (False, True)}
    assert kinds(found) == {**kinds(read(LINK)), **hidden}
    assert {gprim.body for gprim in found.gprims} == {"/link"}


def test_purposes_that_are_drawn_make_a_collider_visual(read):
    found = read(LINK, collisions=True, purposes=["default", "guide"])
    assert kinds(found)["/link/collisions/guide"] == (True, True)
    assert kinds(found)["/link/marker"] == (True, False)


@pytest.mark.parametrize("collisions", [False, True])
@pytest.mark.parametrize(
    ("outer", "inner", "collides"),
    [
        (COLLIDES, "", True),
        ("", COLLIDES, True),
        ("", "", False),
        ('(prepend apiSchemas = ["PhysicsMeshCollisionAPI"])', "", False),
        ("", '(prepend apiSchemas = ["PhysicsMeshCollisionAPI"])', False),
    ],
)
def test_the_nearest_collision_api_counts(read, outer, inner, collides, collisions):
    text = f'def Xform "x" {outer} {{ def Scope "s" {{ def Cube "c" {inner} {{}} }} }}'
    assert kinds(read(text, collisions=collisions)) == {"/x/s/c": (True, collides)}


@pytest.mark.parametrize(("outer", "inner", "collides"), [(0, None, False), (1, None, True), (1, 0, False), (0, 1, True)])
def test_disabled_colliders_are_none(read, outer, inner, collides):
    own = COLLIDES if inner is not None else ""
    switch = "" if inner is None else f"bool physics:collisionEnabled = {inner}\n"
    text = f"""def Xform "x" {COLLIDES} {{
        bool physics:collisionEnabled = {outer}
        def Cube "c" {own} {{ {switch} {GUIDE} }}
    }}"""
    assert kinds(read(text, collisions=True)) == ({"/x/c": (False, True)} if collides else {})


def test_colliders_inside_native_instances(read):
    library = f'class Xform "lib" {{ {LINK} }}\n'
    instance = 'def Xform "{}" (instanceable = true\nprepend references = </lib>) {{}}\n'
    found = read(library + instance.format("a") + instance.format("b"), collisions=True)
    assert {path for path, kind in kinds(found).items() if kind == (False, True)} == {
        f"/{name}/link/collisions/{inside}" for name in "ab" for inside in ("guide", "hidden")
    }


@pytest.mark.parametrize("above", [HIDDEN, GUIDE])
def test_colliders_of_an_instancer_that_is_not_drawn(read, above):
    text = f"""def PointInstancer "i" {{
        {above}
        rel prototypes = [</i/p>]
        int[] protoIndices = [0, 0]
        point3f[] positions = [(1, 0, 0), (2, 0, 0)]
        def Xform "p" {{ {LINK} }}
    }}"""
    assert kinds(read(text)) == {}
    found = read(text, collisions=True)
    assert kinds(found) == dict.fromkeys(("/i/p/link/both", "/i/p/link/collisions/guide", "/i/p/link/collisions/hidden"), (False, True))
    assert all(len(gprim.transforms) == 2 for gprim in found.gprims)


def test_a_prototype_drawn_and_hidden_by_one_instancer_is_two(read):
    """Visibility between the instancer and a prototype does not count, that inside a prototype does."""
    text = f"""def PointInstancer "i" {{
        rel prototypes = [</i/p>, </i/p/h/c>]
        int[] protoIndices = [0, 1]
        point3f[] positions = [(1, 0, 0), (2, 0, 0)]
        def Xform "p" {{ def Xform "h" {{ {HIDDEN}
            def Cube "c" {COLLIDES} {{}} }} }}
    }}"""
    found = read(text, collisions=True)
    placed = [(gprim.path, gprim.visual, gprim.transforms[:, 0, 3].tolist()) for gprim in found.gprims]
    assert sorted(placed) == [("/i/p/h/c", False, [1]), ("/i/p/h/c", True, [2])]


def test_hidden_colliders_are_not_counted_as_drawn_cages(read):
    text = f"""def Mesh "m" {COLLIDES} {{ {GUIDE}
        int[] faceVertexCounts = [3]
        int[] faceVertexIndices = [0, 1, 2]
        point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 1, 0)]
    }}"""
    found = read(text, collisions=True)
    assert kinds(found) == {"/m": (False, True)}
    assert found.codes() == []


# -- live -----------------------------------------------------------------------------------------------------------------------------


def test_a_reader_can_begin_to_read_colliders(stage_of):
    stage = stage_of(LINK)
    reader, time = StageReader(stage), resolve_time(stage, None)
    assert not reader.collisions
    reader.update(StageEdits(), time)
    assert len(reader.gprims) == 2
    reader.collisions = True
    changes, _ = reader.update(StageEdits(), time)
    assert changes.complete
    assert len(reader.gprims) == len(changes.gprims) == 4
    reader.collisions = True  # no news
    assert reader.update(StageEdits(), time) == (None, 0)
    reader.collisions = False
    reader.update(StageEdits(), time)
    assert len(reader.gprims) == 2


def test_edits_of_colliders_are_followed(stage_of):
    stage = stage_of(LINK)
    listener, reader, time = ChangeListener(stage), StageReader(stage, collisions=True), resolve_time(stage, None)
    reader.update(StageEdits(), time)

    def after(edit) -> dict[str, tuple[bool, bool]]:
        edit()
        reader.update(listener.take(), time)
        return kinds(reader.columns())

    prim = stage.GetPrimAtPath
    assert after(lambda: prim("/link/both").GetAttribute("physics:collisionEnabled").Set(False))["/link/both"] == (True, False)
    assert after(lambda: prim("/link/both").GetAttribute("physics:collisionEnabled").Clear())["/link/both"] == (True, True)
    assert after(lambda: prim("/link/both").GetAttribute("visibility").Set("invisible"))["/link/both"] == (False, True)
    assert "/link/both" not in after(lambda: prim("/link/both").RemoveAppliedSchema("PhysicsCollisionAPI"))
    found = after(lambda: prim("/link").AddAppliedSchema("PhysicsCollisionAPI"))
    assert set(found.values()) == {(True, True), (False, True)}
    assert len(found) == 6


def test_colliders_in_published_robots(shared):
    """Newton's ant: every drawn shape has a guide of the same kind for contacts. Its cube and cylinder are drawn as they collide, and the
    cylinder's body has a CollisionAPI of its own."""
    assets = shared / "assets" / "newton" / "newton"
    ant = open_stage(str(assets / "examples" / "assets" / "ant.usda"))
    plain, both = (read_stage(ant, resolve_time(ant, None), collisions=asked) for asked in (False, True))
    robot = {path: kind for path, kind in kinds(both).items() if path.startswith("/ant/")}
    assert {path for path, kind in robot.items() if kind == (False, True)} == {
        p.replace("visuals", "collisions") for p in robot if "visuals" in p
    }
    assert list(robot.values()).count((False, True)) == 13
    assert {path: kind for path, kind in kinds(both).items() if kind[0]} == kinds(plain)
    assert {item.articulation for item in both.bodies} == {"/ant"}
    pair = open_stage(str(assets / "tests" / "assets" / "cube_cylinder.usda"))
    found = read_stage(pair, Usd.TimeCode.EarliestTime(), collisions=True)
    assert set(kinds(found).values()) == {(True, True)}
