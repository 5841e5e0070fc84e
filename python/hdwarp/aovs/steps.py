"""aovs.steps: the kernels that a plan runs over all pixels of its views, one after another, and the memory between them."""

from __future__ import annotations

import functools

import warp as wp

from hdwarp.aovs.buffers import flat_scalars, flat_vectors
from hdwarp.aovs.pixel_runs import jobs_per_row, lane_count
from hdwarp.launch import GRAIN, Pipeline, Step, cut, launch


class Steps:
    """A list of kernels that share how pixels are dealt out: their first arguments say which are a job's. Run as a whole, or stretch by
    stretch by whoever puts them into a `Pipeline` of his own."""

    def __init__(self, views: wp.array, view_count: int, width: int, height: int, *, device: wp.Device) -> None:
        """``views``: wp.array[ViewRow]; ``width``, ``height``: the largest of them."""
        self.device = device
        self.views, self.view_count, self.width, self.height = views, view_count, width, height
        self.lanes = lane_count(device)
        self.jobs_per_line = jobs_per_row(width, self.lanes)
        self.job_count = view_count * height * self.jobs_per_line  # those of the image rows of all views, one after another
        self.pixel_count = 0  # of the planes
        self.kernels: list[Step] = []
        self._keep: list[wp.array] = []  # scratch and aliases
        self._scalars: dict[int, tuple[wp.array, wp.array]] = {}  # by id of an array that is kept

    def scratch(self, dtype: type, planes: int = 1) -> wp.array:
        """Memory for what one kernel leaves to another: planes of pixels."""
        array = wp.empty(max(planes * self.pixel_count, 1), dtype=dtype, device=self.device)
        self._keep.append(array)
        return array

    def scalars(self, array: wp.array | None) -> wp.array | None:
        """An array of vectors as its numbers, the memory shared."""
        if array is None:
            return None
        if id(array) not in self._scalars:
            self._scalars[id(array)] = array, flat_scalars(array)
        return self._scalars[id(array)][1]

    def blocks(self, array: wp.array) -> wp.array:
        """A plane of the visibility record as vectors of a block's lanes, the memory shared: one load brings a block."""
        self._keep.append(flat_vectors(array, self.lanes))
        return self._keep[-1]

    def add(self, kernel: wp.Kernel, arguments: list) -> None:
        self.kernels.append((kernel, [self.views, self.jobs_per_line, self.height, *arguments]))

    def launch(self, kernel: wp.Kernel, arguments: list) -> None:
        """Run a kernel that is none of the list, at once."""
        launch(kernel, self.job_count, [self.views, self.jobs_per_line, self.height, *arguments], device=self.device)

    def run(self) -> None:
        """Run the list; on the CPU it is done on return. Nothing can be added after the first time."""
        self._pipeline.run()

    @functools.cached_property
    def _pipeline(self) -> Pipeline:
        stretches = cut(self.job_count, GRAIN, self.device)
        return Pipeline(self.kernels, [[stretch] * len(self.kernels) for stretch in stretches], device=self.device)
