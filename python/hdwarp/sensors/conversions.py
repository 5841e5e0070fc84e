"""sensors.conversions: data types of the sensors made of AOV planes, on the device: which plane is rendered for each, and what its pixels
become."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace

import warp as wp

from hdwarp.aovs.buffers import flat_scalars
from hdwarp.aovs.pixel_runs import block_count, jobs_per_row, lane_count, lane_options, load_columns, pixel_run, store_pairs
from hdwarp.aovs.registry import AovSpec, aov_spec
from hdwarp.launch import launch
from hdwarp.sensors.data_types import DATA_TYPES
from hdwarp.tables.structs import ViewRow
from hdwarp.views.rows import ViewTable

_MARK = wp.constant(-3.4028234663852886e38)  # of pixels that see nothing, until `convert` is done: the lowest float32, which no motion is


@functools.cache
def data_type_kernel(lanes: int) -> wp.Kernel:
    """Pairs (all that data types differ in so far) of an AOV as a data type has them, for runs of ``lanes`` pixels. ``source`` and ``out``
    may be the same memory."""
    LANES, BLOCKS = lanes, block_count(lanes)
    floats = wp.types.vector(length=lanes, dtype=wp.float32)
    load_pairs = load_columns(lanes, 2)

    @wp.kernel(enable_backward=False, module="unique", module_options=lane_options(lanes))
    def data_type(
        first: wp.int32,
        step: wp.int32,
        count: wp.int32,
        views: wp.array[ViewRow],
        jobs: wp.int32,
        rows: wp.int32,
        sign: wp.float32,
        clear: wp.vec2f,
        source: wp.array[wp.float32],
        out: wp.array[wp.vec2f],
    ):
        job = first + wp.tid() * step
        if job >= count:
            return
        run = pixel_run(views, job, LANES, BLOCKS, jobs, rows)  # nothing in views that are off
        x, y = floats(), floats()
        for block in range(run.blocks):
            pixel = run.output + block * LANES
            low = wp.max(run.left - run.x - block * LANES, 0)
            high = wp.min(run.right - run.x - block * LANES, LANES)
            pairs = load_pairs(source, low, high, pixel)
            for lane in range(LANES):
                u, v = pairs[0, lane], pairs[1, lane]
                seen = u != _MARK or v != _MARK
                x[lane] = wp.where(seen, wp.where(sign < 0.0, 0.0 - u, u), clear[0])  # no -0
                y[lane] = wp.where(seen, wp.where(sign < 0.0, 0.0 - v, v), clear[1])
            store_pairs(x, y, low, high, pixel, out)

    return data_type


@dataclass(frozen=True, slots=True)
class Step:
    """One plane to make of another, or to finish where it is."""

    source: wp.array
    out: wp.array
    sign: float
    clear: tuple[float, ...]


def plane_of(name: str) -> str:
    """The AOV behind a data type; other names are AOVs."""
    row = DATA_TYPES.get(name) if isinstance(name, str) else None
    return name if row is None else row.aov


def render_bindings(
    out: Mapping[str, wp.array], clear: Mapping[str, object]
) -> tuple[Mapping[str, wp.array], Mapping[str, object], list[Step]]:
    """(AOV name -> array to render into, clear values for that, steps for `convert` afterwards) of arrays by AOV or data type.

    An AOV is rendered once, into the array of one of those that ask for it: there is no other memory. Pixels that see nothing are marked
    in it, as each has a clear value of its own. Raises ArgumentError for clear values of the wrong kind.
    """
    if DATA_TYPES.keys().isdisjoint(out):
        return out, clear, []
    bindings = {name: array for name, array in out.items() if name not in DATA_TYPES}
    values = {name: value for name, value in clear.items() if name not in DATA_TYPES}
    steps: list[Step] = []
    for aov in dict.fromkeys(DATA_TYPES[name].aov for name in out if name in DATA_TYPES):
        names = [name for name in out if plane_of(name) == aov]
        rendered = aov if aov in out else names[0]
        names.sort(key=lambda name: name == rendered)  # what the others are made of is finished last
        for name in names:
            sign = DATA_TYPES[name].sign if name in DATA_TYPES else 1.0
            steps.append(Step(out[rendered], out[name], sign, _spec(name).clear_values(clear.get(name))))
        bindings[aov], values[aov] = out[rendered], _MARK
    return bindings, values, steps


def convert(views: ViewTable, steps: list[Step], device: wp.Device) -> None:
    """Carry out the steps for pixels of the views that are on, as the view rows on the device say: those that were just rendered."""
    lanes = lane_count(device)
    jobs = jobs_per_row(views.width, lanes)
    for step in steps:
        source, out = flat_scalars(step.source.flatten()), step.out.flatten()
        arguments = [views.rows, jobs, views.height, step.sign, wp.vec2f(*step.clear), source, out]
        launch(data_type_kernel(lanes), views.count * views.height * jobs, arguments, device=device)


@functools.cache
def _spec(name: str) -> AovSpec:
    """The registry's row of the AOV behind a data type, under the name of the latter."""
    return replace(aov_spec(plane_of(name)), name=name)
