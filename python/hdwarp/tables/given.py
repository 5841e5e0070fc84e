"""tables.given: arrays that callers hand in, of whatever library, as rows of float32 that kernels read. Copied only where Warp must."""

from __future__ import annotations

import numpy as np
import warp as wp

from hdwarp.errors import ArgumentError


def float_rows(value: object, what: str, device: wp.Device) -> wp.array:
    """wp.array2d[float32] (n, k) that shares memory with ``value``: a wp.array or any array with ``__cuda_array_interface__``,
    ``__array_interface__`` or ``__dlpack__``; (n, k) or (n,) numbers, or (n,) vectors of Warp. It is on ``device``, or on the host where
    ``value`` is NumPy's. Raises ArgumentError for what is none of these, other types than float32, and arrays of another device."""
    array, is_numpy = _wrapped(value, what), isinstance(value, np.ndarray)
    if array.device != device and not (is_numpy and array.device.is_cpu):
        raise ArgumentError(f"{what} are on {array.device}; the scene is on {device}: hand over an array there, or a NumPy array")
    scalar, inner = getattr(array.dtype, "_wp_scalar_type_", array.dtype), tuple(getattr(array.dtype, "_shape_", ()))
    if scalar is not wp.float32 or len(inner) > 1 or array.ndim + len(inner) not in (1, 2):
        name = value.dtype if is_numpy else array.dtype.__name__
        raise ArgumentError(f"{what} are {name} of shape {array.shape}; expected float32, (n, k) or (n,), or (n,) vectors of float32")
    count, width = array.shape[0], inner[0] if inner else array.shape[1] if array.ndim == 2 else 1
    strides = (array.strides[0], 4 if inner or array.ndim == 1 else array.strides[1])
    if not count:
        return wp.zeros((0, width), dtype=wp.float32, device=array.device)
    rows = wp.array(ptr=array.ptr, dtype=wp.float32, shape=(count, width), strides=strides, device=array.device)
    rows._hdwarp_source = (array, value)  # keeps the memory
    return rows


def _wrapped(value: object, what: str) -> wp.array:
    try:
        if isinstance(value, wp.array):
            return value
        if isinstance(value, np.ndarray):
            value = value.astype(np.float32) if value.dtype == np.float64 else value  # NumPy's own: copied
            return wp.array(value if value.flags.writeable else value.copy(), dtype=_warp_type(value), device="cpu", copy=False)
        if hasattr(value, "__dlpack__"):
            return wp.from_dlpack(value)
        if hasattr(value, "__cuda_array_interface__"):
            return wp.array(value, copy=False)
        if hasattr(value, "__array_interface__"):
            return _wrapped(np.asarray(value), what)
    except ArgumentError:
        raise
    except Exception as error:
        raise ArgumentError(f"{what}: the {type(value).__name__} cannot be used as an array: {error}") from None
    raise ArgumentError(f"{what} are given as {type(value).__name__}; expected a wp.array, NumPy array or torch tensor of float32")


def _warp_type(value: np.ndarray) -> type:
    known = wp.dtype_from_numpy(value.dtype) if value.dtype.kind in "fiub" else None
    if known is None:
        raise ArgumentError(f"a NumPy array of {value.dtype}; expected float32")
    return known
