"""aovs.buffers: arrays that AOVs are resolved into: made, checked, and seen as flat pixels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import warp as wp

from hdwarp.aovs.registry import AovSpec, aov_spec
from hdwarp.errors import ArgumentError


def allocate(
    names: Iterable[str],
    view_count: int,
    height: int,
    width: int,
    *,
    device: wp.Device | str,
    components: Mapping[str, int] | None = None,
) -> dict[str, wp.array]:
    """One array an AOV, ``(view, H, W)`` of its pixel type. ``components``: widths of the ``primvars:NAME`` among them."""
    arrays = {}
    for name in names:
        spec = aov_spec(name, components=(components or {}).get(name, 3) if name.startswith("primvars:") else None)
        arrays[name] = wp.zeros((view_count, height, width), dtype=spec.dtype, device=device)
    return arrays


def flat_pixels(spec: AovSpec, array: wp.array, device: wp.Device) -> wp.array:
    """``array`` as one dimension of pixels, checked for type, device and layout; the memory is shared."""
    if not isinstance(array, wp.array):
        raise ArgumentError(f"{spec.name}: a {type(array).__name__} given as output; give a wp.array of {_name(spec.dtype)}")
    if array.dtype is not spec.dtype:
        if wp.types.types_equal(array.dtype, spec.scalar) and spec.components > 1 and array.shape[-1] == spec.components:
            return _alias(array, spec.dtype, array.size // spec.components)
        if not wp.types.types_equal(array.dtype, spec.dtype):
            raise ArgumentError(f"{spec.name}: its output is a wp.array of {_name(spec.dtype)}, not of {_name(array.dtype)}")
    if array.device != device:
        raise ArgumentError(f"{spec.name}: its output is on {array.device}, the render on {device}")
    if not array.is_contiguous:
        raise ArgumentError(f"{spec.name}: its output must be contiguous")
    return array.flatten() if array.ndim > 1 else array


def flat_scalars(array: wp.array) -> wp.array:
    """A one-dimensional array of vectors or matrices seen as its numbers; the memory is shared."""
    size = wp.types.type_size(array.dtype)
    return array if size == 1 else _alias(array, array.dtype._wp_scalar_type_, array.size * size)


def flat_vectors(array: wp.array, length: int) -> wp.array:
    """A one-dimensional array of numbers seen as vectors of ``length``; what is over at its end is left out; the memory is shared."""
    return _alias(array, wp.types.vector(length=length, dtype=array.dtype), array.size // length)


def _alias(array: wp.array, dtype: type, size: int) -> wp.array:
    if not array.is_contiguous:
        raise ArgumentError("the array must be contiguous")
    alias = wp.array(ptr=array.ptr, dtype=dtype, shape=(size,), device=array.device, capacity=array.capacity)
    alias._owner = array  # keeps the memory alive
    return alias


def _name(dtype: type) -> str:
    return getattr(dtype, "__name__", str(dtype))
