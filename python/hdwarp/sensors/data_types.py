"""sensors.data_types: what robot simulators call their pictures: the AOV behind a name, and how its numbers differ. NumPy only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hdwarp.errors import ArgumentError


@dataclass(frozen=True, slots=True)
class DataType:
    """A sensor class's name for a plane: ``values`` makes its numbers of the AOV's."""

    name: str
    aov: str
    sign: float = 1.0  # what the AOV's values are multiplied by
    meaning: str = ""

    def values(self, pixels: np.ndarray) -> np.ndarray:
        """The data type's numbers for (..., H, W[, C]) pixels of the AOV."""
        return 0.0 - pixels if self.sign < 0.0 else pixels  # no -0


DATA_TYPES: dict[str, DataType] = {
    row.name: row
    for row in (
        # Isaac Lab's documents: a point that moved left has x > 0, one that moved up y > 0. `motion` counts right and down.
        DataType("motion_vectors", "motion", -1.0, "how far the surface point of a pixel has moved, pixels: x left, y up"),
    )
}


def data_type(name: str) -> DataType:
    """The row of a data type. Raises ArgumentError that names those there are."""
    if name not in DATA_TYPES:
        raise ArgumentError(f"no data type is named {name!r}; there are {', '.join(DATA_TYPES)}")
    return DATA_TYPES[name]
