"""The test that matters most of a live scene: after any edits, the same bits as a scene opened afresh from the same stage."""

from __future__ import annotations

import os

import numpy as np
import pytest
from pxr import Usd
from tests.live.live_edits import LiveStage
from tests.live.live_more import RichStage

from hdwarp.batch.shots import plan_shot
from hdwarp.delegate.render_settings import RenderSettings
from hdwarp.errors import Diagnostics
from hdwarp.rendering import render_shot
from hdwarp.scene import Scene, SyncCounts

AOVS = ("color", "albedo", "distance_to_image_plane", "normal", "Ngeom", "position", "primId", "instanceId", "elementId", "triangleId")
AOVS = (*AOVS, "barycentric", "materialId", "bodyId")
SEQUENCES = int(os.environ.get("HDWARP_LIVE_SEQUENCES", "30"))  # more of them by night


def picture(scene: Scene, cull: bool = False):
    names = scene.tables.primvar_names()
    aovs = [*AOVS, *(f"primvars:{name}" for name in ("displayColor", "heat") if name in names)]
    shot = plan_shot(scene.stage, "/cam", resolution=(64, 48), aovs=aovs, diagnostics=Diagnostics())
    return render_shot(scene, shot, settings=RenderSettings(cull=cull))


LIGHT_COLUMNS = (
    *("kind", "linear", "translation", "radiance", "size", "diffuse", "specular", "cone", "focus_tint"),
    *("shadow", "shadow_color", "shadow_reach", "texture", "link", "shadow_link", "dome"),
)


def light_links(scene: Scene) -> list[int]:
    """By primId: sets of linked prims that each is in."""
    links = scene.tables.instances.columns().light_links.numpy()
    return [int(links[scene.index.gprim_rows[key]]) for key in scene.index.gprim_order]


def assert_same(synced: Scene, fresh: Scene, history: list[str], cull: bool = False) -> None:
    """All that is given out: planes, paths, cameras, bodies, what is told."""
    told = f"after {history}"
    assert synced.index.prim_paths == fresh.index.prim_paths, told
    assert synced.index.material_paths == fresh.index.material_paths, told
    assert synced.bodies.label == fresh.bodies.label, told
    assert np.array_equal(synced.bodies.pose, fresh.bodies.pose), told
    assert synced.cameras.label == fresh.cameras.label, told
    assert synced.reader.prim_counts == fresh.reader.prim_counts, told
    assert [differing(*pair) for pair in zip(synced.cameras.cameras, fresh.cameras.cameras, strict=True)] == [[]] * len(fresh.cameras), told
    assert synced.lights.label == fresh.lights.label, told
    for name in LIGHT_COLUMNS:
        ours, theirs = getattr(synced.lights, name).numpy(), getattr(fresh.lights, name).numpy()
        assert np.array_equal(ours[: len(fresh.lights)], theirs[: len(fresh.lights)]), f"{name} of lights {told}"
    assert light_links(synced) == light_links(fresh), told
    for name in ("bodies", "lights"):
        ours, theirs = getattr(synced.reader, name), getattr(fresh.reader, name)
        assert {path: differing(ours[path], theirs[path]) for path in ours} == {path: [] for path in theirs}, told
    marks = [{key: (g.visual, g.collision, g.body) for key, g in scene.reader.gprims.items()} for scene in (synced, fresh)]
    assert marks[0] == marks[1], told
    assert synced.sites.label == fresh.sites.label, told
    assert np.array_equal(synced.sites.transform, fresh.sites.transform), told
    assert np.array_equal(synced.sites.body, fresh.sites.body), told
    assert np.array_equal(synced.worlds.origin, fresh.worlds.origin), told
    assert synced.metres_per_unit == fresh.metres_per_unit, told
    ours, theirs = picture(synced, cull), picture(fresh, cull)
    assert list(ours.aovs) == list(theirs.aovs), told
    for name in ours.aovs:
        assert np.array_equal(ours[name], theirs[name], equal_nan=True), f"{name} {told}"
    for id in np.unique(ours["primId"])[1:4]:
        row, column = (int(i[0]) for i in np.nonzero(ours["primId"] == id))
        assert ours.instance_ids(row, column) == theirs.instance_ids(row, column), told
    assert said(synced) == said(fresh), told


def differing(a: object, b: object) -> list[str]:
    """Fields of two records that are not the same."""
    return [name for name in a.__dataclass_fields__ if not alike(getattr(a, name), getattr(b, name))]


def alike(a: object, b: object) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(alike(a[key], b[key]) for key in a)
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    return a == b or repr(a) == repr(b)  # what holds a NaN equals nothing


def check(scene: Scene, time: float | Usd.TimeCode, *history: object) -> SyncCounts:
    """Bring a scene to ``time`` and compare it with one that is opened there."""
    done = scene.sync(time)
    with Scene(scene.stage, device=scene.device, time=time, purposes=scene.purposes) as fresh:
        assert_same(scene, fresh, [*history, time])
    return done


def said(scene: Scene) -> list[str]:
    """What is told of the stage, but for what Usd itself prints, which it does when it looks, and for bindings that end at what is no
    Material but would not count if they did: nobody looks at those again."""
    return sorted(str(item) for item in scene.diagnostics if item.code not in ("usd", "material-missing"))


def follow(live: LiveStage, steps: int, device: str, *history: str) -> None:
    """Edit, sync and compare, ``steps`` times."""
    history, cull = list(history), live.chance(0.3)
    with Scene(live.stage, device=device, time=live.time) as synced:
        for _ in range(steps):
            history += [live.edit() for _ in range(live.rng.integers(1, 4))]
            synced.sync(live.time)
            with Scene(live.stage, device=device, time=live.time) as fresh:
                assert_same(synced, fresh, history, cull)
            done = synced.sync()
            assert not any(getattr(done, name) for name in done.__dataclass_fields__), f"a sync after a sync did {done} after {history}"


@pytest.mark.parametrize("kind", [LiveStage, RichStage])
@pytest.mark.parametrize("seed", range(SEQUENCES))
def test_edited_and_opened_afresh_are_the_same(seed, kind, device):
    follow(kind(seed), 6 if kind is LiveStage else 4, device, f"{kind.__name__} {seed}")


@pytest.mark.slow
@pytest.mark.parametrize("kind", [LiveStage, RichStage])
@pytest.mark.parametrize("seed", range(1000, 1000 + 5 * SEQUENCES))
def test_long_histories(seed, kind, device):
    follow(kind(seed), 25, device, f"{kind.__name__} {seed}")
