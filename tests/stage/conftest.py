"""Small stages from text, read into columns."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pxr import Sdf, Usd

import hdwarp  # noqa: F401  (registers the schemas before the first stage opens)
from hdwarp.stage.columns import Gprim, StageColumns
from hdwarp.stage.open import open_stage, resolve_time
from hdwarp.stage.reader import read_stage


def lines(text: str) -> str:
    """Usda wants every statement on a line of its own; tests like short ones."""
    return text.replace("{ ", "{\n").replace(" }", "\n}").replace("; ", "\n")


def stage_from(text: str) -> Usd.Stage:
    """A stage from the body of a usda file; metersPerUnit 1 unless the text has a header of its own."""
    if not text.lstrip().startswith("#usda"):
        text = "#usda 1.0\n(\n    metersPerUnit = 1\n)\n" + text
    text = lines(text)
    layer = Sdf.Layer.CreateAnonymous(".usda")
    assert layer.ImportFromString(text)
    return open_stage(Usd.Stage.Open(layer))


class Reading:
    """Columns with look-ups by path, and the stage kept alive."""

    def __init__(self, stage: Usd.Stage, columns: StageColumns) -> None:
        self.stage, self.columns = stage, columns

    def __getattr__(self, name: str):
        return getattr(self.columns, name)

    @property
    def paths(self) -> list[str]:
        return [gprim.path for gprim in self.columns.gprims]

    def gprim(self, path: str) -> Gprim:
        return next(gprim for gprim in self.columns.gprims if gprim.path == path)

    def mesh(self, path: str):
        return self.gprim(path).mesh

    def material(self, path: str):
        name = self.gprim(path).material
        return next((material for material in self.columns.materials if material.path == name), None)

    def codes(self, path: str | None = None) -> list[str]:
        return [item.code for item in self.columns.diagnostics if path is None or item.path == path]

    def message(self, code: str) -> str:
        return next(item.message for item in self.columns.diagnostics if item.code == code)


@pytest.fixture
def write_usda(tmp_path) -> Callable[[str, str], object]:
    def write(name: str, text: str):
        path = tmp_path / name
        path.write_text(lines("#usda 1.0\n" + text))
        return path

    return write


@pytest.fixture
def stage_of() -> Callable[[str], Usd.Stage]:
    return stage_from


@pytest.fixture
def read() -> Callable[..., Reading]:
    def read_text(text: str | Usd.Stage, *, time=None, **options) -> Reading:
        stage = stage_from(text) if isinstance(text, str) else text
        return Reading(stage, read_stage(stage, resolve_time(stage, time), **options))

    return read_text
