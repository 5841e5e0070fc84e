"""Real stages no one here wrote: each renders what is supported, names the rest, and never fails."""

from __future__ import annotations

import numpy as np

import hdwarp

# Stages whose first time holds nothing that is drawn yet: other types only, or empty by design.
NOTHING_YET = {"basicCurves.usda", "points.usda", "result_int_1.usda", "root.usda", "testUsdImagingGLEmptyMesh/test.usda"}


def stages(shared) -> list[str]:
    rows = (line.split("|")[1].strip() for line in (shared / "assets" / "MANIFEST.md").read_text().splitlines() if line.startswith("| "))
    return [row for row in rows if row.rsplit(".", 1)[-1] in ("usd", "usda", "usdc", "usdz")]


def test_every_stage_renders_without_an_empty_picture(shared, subtests):
    names = stages(shared)
    assert len(names) > 40
    for name in names:
        with subtests.test(name):
            frame = hdwarp.render(shared / "assets" / name, resolution=(480, 270), aovs=["color", "primId"], device="cpu")
            assert np.isfinite(frame["color"]).all()
            if not any(name.endswith(empty) for empty in NOTHING_YET):
                assert (frame["primId"] >= 0).mean() > 0.005
            drawn = (frame["primId"] >= 0).any()
            assert drawn or any(item.code in ("unsupported-type", "empty-mesh") for item in frame.diagnostics) or "EmptyMesh" in name
