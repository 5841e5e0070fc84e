"""sensors.rays: rays of one's own: what a user gives, checked, and which of a sensor's cameras or sites it is for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import warp as wp

from hdwarp.errors import ArgumentError
from hdwarp.views.given_rays import GivenRays

_MOST_BYTES = 4 << 30


@dataclass(frozen=True, slots=True)
class RayData:
    """Rays as given, on the device: ``array`` is contiguous vec3f (bundle, row, column, sample, 2)."""

    array: wp.array
    shape: tuple[int, int]  # (H, W)
    bundles: int | None  # None: one for all


def check_rays(
    name: str, rays: object, *, samples: int, shape: tuple[int, int] | None, counts: dict[int, str], device: wp.Device
) -> RayData:
    """Rays as a user gives them. ``shape``: (H, W) of the images, None: that of the rays; ``counts``: numbers of bundles that fit, and what
    they are of.

    A wp.array[vec3f] is (H, W, S, 2), or for N bundles (N * H, W, S, 2): Warp's arrays have four dimensions at most. All else is taken for
    NumPy's, (H, W, S, 2, 3) or (N, H, W, S, 2, 3). Raises ArgumentError for other shapes, types and devices, and for numbers on the host
    that are not finite.
    """
    size = "(H, W, S, 2)" if shape is None else f"({shape[0]}, {shape[1]}, {samples}, 2)"
    expected = f"expected {size}, or (N, {size[1:]} for N = " + " or ".join(f"{count} ({what})" for count, what in counts.items())
    if isinstance(rays, wp.array):
        given = f"wp.array[{getattr(rays.dtype, '__name__', rays.dtype)}] {rays.shape} on {rays.device}"
        if rays.dtype is not wp.vec3f or rays.device != device or not rays.is_contiguous:
            raise ArgumentError(f"{name}: {given}; expected a contiguous wp.array[vec3f] on {device}")
        if rays.ndim != 4 or rays.shape[3] != 2:
            raise ArgumentError(f"{name}: {given}; {expected}; N bundles as (N * H, W, S, 2), since Warp has four dimensions at most")
        height, width, count, _ = rays.shape
        bundles = None
        if shape is not None and height != shape[0]:
            bundles = height // shape[0] if height % shape[0] == 0 else -1
            height = shape[0]
    else:
        array = np.asarray(rays)
        given = f"{array.dtype} {array.shape}"
        if array.dtype.kind not in "fiu":
            raise ArgumentError(f"{name}: {type(rays).__name__} of {array.dtype}; expected rays as numbers")
        if array.ndim not in (5, 6) or array.shape[-2:] != (2, 3):
            raise ArgumentError(f"{name}: {given}; {expected}, three numbers each")
        bundles = array.shape[0] if array.ndim == 6 else None
        height, width, count = array.shape[-5:-2]
    if count != samples:
        raise ArgumentError(f"{name}: {given} has {count} rays a pixel; the sensor has samples={samples}")
    if min(height, width) == 0 or (shape is not None and (height, width) != shape) or not (bundles is None or bundles in counts):
        raise ArgumentError(f"{name}: {given}; {expected}" + (", three numbers each" if not isinstance(rays, wp.array) else ""))
    total = (bundles or 1) * height * width * samples * 24
    if total > _MOST_BYTES:
        raise ArgumentError(f"{name}: {given} needs {total:,} bytes; the most is {_MOST_BYTES:,}")
    if not isinstance(rays, wp.array):
        rays = _on_device(name, array, device)
    return RayData(rays, (height, width), bundles)


def _on_device(name: str, array: np.ndarray, device: wp.Device) -> wp.array:
    """Rays from the host. Lengths of directions are left to the device, but for those that float32 cannot hold."""
    finite = np.isfinite(array).all(axis=(-2, -1))
    if not finite.all():
        where = tuple(int(i) for i in np.argwhere(~finite)[0])
        raise ArgumentError(f"{name}: {(~finite).sum()} rays are not finite, the first at {where}; a zero direction means no ray")
    with np.errstate(over="ignore", under="ignore"):
        rays = np.array(array, np.float32, order="C")
    largest = np.abs(array[..., 1, :]).max(axis=-1)
    odd = (largest > 1e37) | ((largest < 1e-37) & (largest > 0.0))
    if odd.any():
        rays[..., 1, :][odd] = array[..., 1, :][odd] / largest[odd][:, None]
    if not np.isfinite(rays[..., 0, :]).all():
        raise ArgumentError(f"{name}: an origin is too far away for float32")
    return wp.array(rays.reshape(-1, 3), dtype=wp.vec3f, device=device, copy=False)


@dataclass(slots=True)
class _Group:
    """What one call of `set_camera_rays` gave: to each of ``labels`` its bundle, or with ``shared`` to all the first."""

    labels: list[str]  # in the order of the bundles; "" where a later call has given others
    match: Callable[[Sequence[str]], list[str]]  # those of other labels that a shared bundle is for as well
    shared: bool
    first: int = 0
    count: int = 1

    def leave(self, taken: set[str]) -> None:
        """Labels that a later call is for."""
        if self.shared:
            self.labels = [label for label in self.labels if label not in taken]
        else:
            self.labels = ["" if label in taken else label for label in self.labels]


class RayGroups:
    """The rays that a sensor's cameras or sites have been given. ``rays``: all bundles; None: none has any."""

    def __init__(self, samples: int, device: wp.Device) -> None:
        self._samples, self._device = samples, device
        self.rays: GivenRays | None = None
        self._groups: list[_Group] = []  # no label is in two

    def set(self, data: RayData, labels: list[str], match: Callable[[Sequence[str]], list[str]]) -> bool:
        """Take rays over for cameras or sites: where they had rays of this shape, in place and without allocating. Whether `rays` and the
        bundles are others now."""
        given = _Group(labels, match, data.bundles is None, count=data.bundles or 1)
        same_shape = self.rays is not None and self.rays.shape == data.shape
        if same_shape:
            for group in self._groups:
                if group.labels == given.labels and group.shared == given.shared:
                    self.rays.take(data.array, group.first, group.count)
                    return False
        kept = self._groups if same_shape else []
        for group in kept:
            group.leave(set(labels))
        kept = [group for group in kept if any(group.labels)]
        moves = []
        for group in kept:
            moves.append((group.first, given.first, group.count))
            group.first = given.first
            given.first += group.count
        rays = GivenRays(*data.shape, self._samples, given.first + given.count, self._device)
        if kept:
            rays.copy_bundles(self.rays, moves)
        self.rays, self._groups = rays, [*kept, given]
        rays.take(data.array, given.first, given.count)
        return True

    def follow(self, labels: Sequence[str]) -> None:
        """The sensor has other cameras or sites now: those that came have the shared rays whose pattern they match, the latest of them."""
        taken: set[str] = set()
        for group in reversed(self._groups):
            if group.shared:
                group.labels = group.match(labels)
                group.leave(taken)
            taken.update(group.labels)

    def bundles(self, labels: Sequence[str]) -> list[int]:
        """Bundle of each label, -1 none."""
        found: dict[str, int] = {}
        for group in self._groups:
            found.update((label, group.first + (0 if group.shared else i)) for i, label in enumerate(group.labels) if label)
        return [found.get(label, -1) for label in labels]


__all__ = ["RayData", "RayGroups", "check_rays"]
