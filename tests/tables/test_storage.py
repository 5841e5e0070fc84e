"""Arrays that grow: what is written stays, and nothing that was never written is read."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

import hdwarp
from hdwarp.tables.storage import GrowingArray


def test_growing_keeps_items_and_fills_the_rest(device):
    array = GrowingArray(wp.vec3f, wp.get_device(device), fill=-1)
    array.write(0, np.arange(6.0).reshape(2, 3))
    array.write_rows(np.array([3, 5, 6]), np.full((3, 3), 9.0))
    held = array.array.numpy()
    assert held[:2].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert held[2].tolist() == held[4].tolist() == [-1, -1, -1]
    assert (held[[3, 5, 6]] == 9).all() and array.size == 7


@pytest.mark.parametrize("name", ["workcell.usda", "materials.usda", "instances.usda", "mesh_faces.usda", "shapes.usda"])
def test_nothing_unwritten_is_read(name, sample_stages, monkeypatch):
    """With NaN and absurd numbers in all memory that is handed out unfilled, every plane is the same."""
    aovs = ["color", "normal", "position", "primId", "materialId", "barycentric"]
    plain = hdwarp.render(sample_stages / name, resolution=(160, 90), aovs=aovs, device="cpu")
    allocate = GrowingArray._allocate

    def poisoned(self, capacity):
        array = allocate(self, capacity)
        if self.fill is None:
            array.numpy()[:] = np.nan if array.numpy().dtype.kind == "f" else 123_456_789
        return array

    monkeypatch.setattr(GrowingArray, "_allocate", poisoned)
    poisoned_frame = hdwarp.render(sample_stages / name, resolution=(160, 90), aovs=aovs, device="cpu")
    for aov in aovs:
        assert np.array_equal(plain[aov], poisoned_frame[aov]), aov
