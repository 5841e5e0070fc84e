"""`found`: what `hdwarp check` finds in a stage that is written here; `HEADER` says what a stage ought to say of itself."""

from __future__ import annotations

import pytest

from hdwarp.cli.check_run import report_on
from hdwarp.stage.checks.findings import Finding
from hdwarp.stage.checks.run import Choice

HEADER = '#usda 1.0\n(\n    defaultPrim = "World"\n    metersPerUnit = {unit}\n    upAxis = "Y"\n)\n'


@pytest.fixture
def found(tmp_path):
    """Call with usda text: prims below /World, or a whole layer that begins with #usda; its file is ``found.path`` then. Keyword
    arguments are those of Choice."""

    def check(text: str, *, unit: float = 1.0, **choice: tuple[str, ...]) -> list[Finding]:
        path = check.path = tmp_path / f"stage_{len(list(tmp_path.iterdir()))}.usda"  # a layer that is open would be found by its name
        whole = text if text.startswith("#usda") else HEADER.format(unit=unit) + f'def Xform "World"\n{{\n{text}\n}}\n'
        path.write_text(whole, encoding="utf8")
        return list(report_on(str(path), Choice(**choice)).findings)

    return check
