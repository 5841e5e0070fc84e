"""A reader that follows a stage holds, record by record, what a fresh one reads: colliders that no scene shows among them."""

from __future__ import annotations

import os
from dataclasses import is_dataclass

import numpy as np
import pytest
from pxr import Sdf, UsdGeom, UsdPhysics
from tests.live.live_more import RichStage

from hdwarp.stage.changes import ChangeListener, StageEdits
from hdwarp.stage.columns import GeometryKind
from hdwarp.stage.open import resolve_time
from hdwarp.stage.reader import StageReader

SEQUENCES = int(os.environ.get("HDWARP_LIVE_SEQUENCES", "40"))  # more of them by night
TABLES = ("gprims", "materials", "bodies", "cameras", "sites", "lights")


def alike(a: object, b: object) -> bool:
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if is_dataclass(a):
        return type(a) is type(b) and all(alike(getattr(a, name), getattr(b, name)) for name in a.__dataclass_fields__)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(alike(a[key], b[key]) for key in a)
    return a == b


def differing(a: StageReader, b: StageReader) -> dict[str, list]:
    """Keys, by table, of what is not the same in both."""
    found = {name: differing_keys(getattr(a, name), getattr(b, name)) for name in TABLES}
    return {name: keys for name, keys in found.items() if keys}


def differing_keys(a: dict, b: dict) -> list:
    return sorted(key for key in a.keys() | b.keys() if key not in a or key not in b or not alike(a[key], b[key]))


class Colliders(RichStage):
    """A RichStage with colliders all over it, where half of the edits are about what a collider is and whether it is drawn."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        for path in ("/World/ball", "/World/group", "/World/scatter/inner", "/Protos/gem/s", "/outer", "/Heirs", "/_inherited"):
            UsdPhysics.CollisionAPI.Apply(self.stage.GetPrimAtPath(path))
        for layer, path in ((self.asset, "/Asset/body"), (self.asset, "/Asset/top"), (self.nested, "/Nested/field/protos")):
            layer.GetPrimAtPath(path).SetInfo("apiSchemas", Sdf.TokenListOp.Create(prependedItems=["PhysicsCollisionAPI"]))
        for path, name, value in (("/World/group", "purpose", "guide"), ("/outer", "visibility", "invisible")):
            self.stage.GetPrimAtPath(path).GetAttribute(name).Set(value)
        some = [self.do_collider, self.do_collision_enabled, self.do_visibility, self.do_purpose, self.do_blink, self.do_reveal]
        self.edits += some * (len(self.edits) // len(some))

    def do_reveal(self) -> None:
        prim = self.pick(UsdGeom.Imageable)
        for name in ("visibility", "purpose"):
            prim.RemoveProperty(name)


def test_the_stage_has_hidden_colliders_of_every_sort():
    live = Colliders(0)
    reader = StageReader(live.stage, collisions=True)
    reader.update(StageEdits(), resolve_time(live.stage, 1.0))
    hidden = [gprim for gprim in reader.gprims.values() if not gprim.visual]
    assert {gprim.kind for gprim in hidden} >= {GeometryKind.MESH, GeometryKind.SPHERE, GeometryKind.CAPSULE}
    assert {gprim.instancer.path for gprim in hidden if gprim.instancer} >= {"/outer", "/outer/protos/inner"}
    assert any(gprim.collision and gprim.visual for gprim in reader.gprims.values())


@pytest.mark.parametrize("seed", range(SEQUENCES))
def test_a_reader_of_colliders_follows_edits(seed):
    """What it says is new is all that is new; half-way it is asked for colliders, or no more."""
    live = Colliders(seed)
    listener, reader = ChangeListener(live.stage), StageReader(live.stage, collisions=seed % 2 == 0)
    history, known = [f"seed {seed}"], {name: {} for name in TABLES}
    for step in range(10):
        history += [live.edit() for _ in range(live.rng.integers(1, 4))]
        if step == 5:
            reader.collisions = not reader.collisions
        time = resolve_time(live.stage, live.time)
        changes, _ = reader.update(listener.take(), time)
        fresh = StageReader(live.stage, collisions=reader.collisions)
        fresh.update(StageEdits(), time)
        assert differing(reader, fresh) == {}, f"after {history}"
        assert reader.prim_counts == fresh.prim_counts, f"after {history}"
        assert said(reader) == said(fresh), f"after {history}"
        for name in TABLES if changes is not None else ():
            if changes.complete:
                known[name] = {}
            known[name].update(getattr(changes, name))
            known[name] = {key: item for key, item in known[name].items() if item is not None}
            assert differing_keys(known[name], getattr(fresh, name)) == [], f"{name} after {history}"
        drawn = StageReader(live.stage)
        drawn.update(StageEdits(), time)
        visual = {key: gprim for key, gprim in reader.gprims.items() if gprim.visual}
        assert sorted(gprim.path for gprim in visual.values()) == sorted(gprim.path for gprim in drawn.gprims.values()), f"after {history}"
        assert all(gprim.collision for gprim in reader.gprims.values() if not gprim.visual)


def said(reader: StageReader) -> list[str]:
    """As in test_live_stage: not what Usd prints, and not bindings that end at no Material."""
    return sorted(str(item) for item in reader.diagnostics() if item.code not in ("usd", "material-missing"))
