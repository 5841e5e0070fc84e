"""Random and built stages that want to break the reader: what is healthy beside them keeps its pixels. A failure prints the layer."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, note, seed, settings
from hypothesis import strategies as st
from tests.hostile import files, structures
from tests.hostile.healthy import HEADER, HEALTHY, place
from tests.hostile.pool import Failure, Pool
from tests.hostile.prims import hostile_part

NIGHT = int(os.environ.get("HDWARP_HOSTILE_EXAMPLES", "2000"))
OPTIONS = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck), "print_blob": False}
SLOW = {name for name in structures.PARTS if "doubling" in name} | {"instancers_in_prototypes"}


def part(pool: Pool, text: str, how: int) -> None:
    """A hostile layer; ``how`` says what is done beside opening it: every second one comes into an open scene and goes, or time moves."""
    layer = place(text)
    note(layer)
    moves = "timeSamples" in text and how % 2
    pool.part(layer, sync=not how % 2, times=(1.5,) if moves else ())


@settings(max_examples=60, derandomize=True, **OPTIONS)
@given(hostile_part(), st.integers(0, 3))
def test_random_parts(pool, text, how):
    part(pool, text, how)


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("start", range(10))
def test_many_random_parts(pool, start):
    @seed(start)
    @settings(max_examples=NIGHT // 10, **OPTIONS)
    @given(hostile_part(), st.integers(0, 3))
    def run(text: str, how: int) -> None:
        part(pool, text, how)

    run()


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in structures.PARTS])
def test_built_parts(pool, name):
    pool.part(place(structures.PARTS[name]()), limit=250.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", structures.LARGE)
def test_large_parts(pool, name):
    pool.part(place(structures.LARGE[name]()), limit=200.0)


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> dict[str, bytes]:
    """The healthy stage as a file of each kind."""
    from pxr import Sdf

    folder, layer = tmp_path_factory.mktemp("sound"), Sdf.Layer.CreateAnonymous("sound.usda")
    layer.ImportFromString(HEADER + HEALTHY)
    made = {}
    for suffix in (".usda", ".usdc"):
        layer.Export(str(folder / f"sound{suffix}"))
        made[suffix] = (folder / f"sound{suffix}").read_bytes()
    return {**made, ".usdz": files.package({"sound.usdc": made[".usdc"]})}


KINDS = st.sampled_from((".usda", ".usdc", ".usdz"))


@settings(max_examples=30, derandomize=True, **OPTIONS)
@given(KINDS, st.data())
def test_damaged_files(pool, sound, suffix, data):
    pool.file(data.draw(files.damaged(sound[suffix])), suffix)


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("start", range(10))
def test_many_damaged_files(pool, sound, start):
    """usd-core itself dies of about one damaged usdc in three thousand, which nobody can mend from Python."""

    @seed(start)
    @settings(max_examples=NIGHT // 10, **OPTIONS)
    @given(KINDS, st.data())
    def run(suffix: str, data: st.DataObject) -> None:
        asked.append(suffix)
        try:
            pool.file(data.draw(files.damaged(sound[suffix])), suffix, limit=200.0)
        except Failure as failure:
            if not failure.is_of_usd:
                raise
            died.append(suffix)

    asked, died = [], []
    run()
    assert len(died) <= 1 + len(asked) // 100, f"usd-core died of {len(died)} of {len(asked)} damaged files"


def test_a_sound_file_is_drawn(pool, sound):
    """Else the tests above would pass whatever happened."""
    for suffix, data in sound.items():
        assert "refused" not in pool.file(data, suffix)


@pytest.mark.parametrize(
    ("package", "told"),
    [
        (lambda: files.bomb(1 << 28), "its entry 'bomb.usda' is compressed"),
        (lambda: files.lying(2**32 - 2, b"#usda 1.0\n"), "claims 4,294,967,294 bytes"),
        (lambda: b"PK\x05\x06 no zip", "is no usdz package"),
        (lambda: files.package({"a.usda": b"#usda 1.0\n"}, compression=8), "its entry 'a.usda' is compressed"),
    ],
    ids=["bomb", "claim", "no zip", "compressed"],
)
def test_packages_are_looked_at_before_they_are_opened(pool, package, told):
    assert told in pool.file(package(), ".usdz")["refused"]


def test_the_oracle_sees_what_is_wrong(pool):
    """Changed pixels of what is healthy, a hang and a dead process are failures."""
    moved = 'over "World"\n{\n    double3 xformOp:translate = (0.1, 0, 0)\n    uniform token[] xformOpOrder = ["xformOp:translate"]\n}\n'
    with pytest.raises(Failure, match="Wrong"):
        pool.part("#usda 1.0\n" + moved)
    with pytest.raises(Failure, match="hang"):
        pool.part(place(structures.siblings(20_000)), limit=0.01)
    pool.part(place('def Sphere "ball" {}'))  # and the next has a worker of its own
    pool.worker.kill()
    with pytest.raises(Failure, match="crash"):
        pool.part(place('def Sphere "ball" {}'))
