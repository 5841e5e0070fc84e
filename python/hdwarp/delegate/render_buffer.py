"""delegate.render_buffer: Hydra's render buffer: the pixels of one plane on the device, mapped to NumPy to be read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import warp as wp

from hdwarp.delegate.aov import HD_FORMATS, format_of
from hdwarp.errors import ArgumentError, Error, NotSupported
from hdwarp.views.conform import MAX_PIXELS, MAX_SIDE


class RenderBuffer:
    """Hydra's HdRenderBuffer. ``depth`` images of one size, one a view, in one device array that stays where it is until `allocate`
    is called with another description. Row 0 is the top of the image (Hydra's buffers have it at the bottom).

    `RenderDelegate.create_render_buffer` makes one that fits an AOV.
    """

    def __init__(self, device: wp.Device | str, *, name: str = "render buffer") -> None:
        """``name``: what errors call it. Nothing is allocated before `allocate`."""
        self.device = wp.get_device(device)
        self.name = name
        self._array: wp.array | None = None
        self._format, self._multi_sampled = "", False
        self._map_count = 0
        self._converged = False

    def __repr__(self) -> str:
        if self._array is None:
            return f"<RenderBuffer {self.name}, not allocated>"
        return f"<RenderBuffer {self.name}: {self.depth} x {self.width}x{self.height} {self._format} on {self.device}>"

    # -- description ------------------------------------------------------------------------------------------------------

    @property
    def width(self) -> int:
        """Pixels; 0 before `allocate`."""
        return 0 if self._array is None else self._array.shape[2]

    @property
    def height(self) -> int:
        return 0 if self._array is None else self._array.shape[1]

    @property
    def depth(self) -> int:
        """Images: views of a pass that renders several at once."""
        return 0 if self._array is None else self._array.shape[0]

    @property
    def format(self) -> str:
        """HdFormat's name; "" before `allocate`."""
        return self._format

    @property
    def dtype(self) -> type:
        """Warp type of one pixel."""
        return self.array.dtype

    @property
    def is_multi_sampled(self) -> bool:
        """Averages the samples of a pixel; else it holds what the ray through the pixel's centre sees."""
        return self._multi_sampled

    @property
    def array(self) -> wp.array:
        """(depth, height, width) of `dtype` on the device. Raises Error before `allocate`."""
        if self._array is None:
            raise Error(f"{self.name} is not allocated; call allocate(width, height, format)")
        return self._array

    def allocate(self, width: int, height: int, format: str | type, *, multi_sampled: bool = False, depth: int = 1) -> None:
        """Memory for ``depth`` images, all zeros. ``format``: an HdFormat name ("Float32Vec4") or a Warp pixel type.

        Where nothing differs from what is there, address and pixels stay. Raises ArgumentError for sizes that are no whole numbers above
        0 or too large, NotSupported for a format that no plane has, Error while the buffer is mapped or where memory runs out.
        """
        for what, value, most in (("width", width, MAX_SIDE), ("height", height, MAX_SIDE), ("depth", depth, MAX_PIXELS)):
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value <= most:
                raise ArgumentError(f"{self.name}: {what}={value!r}; expected a whole number from 1 to {most}")
        if isinstance(format, str) and format not in HD_FORMATS:
            raise NotSupported(f"{self.name}: format {format!r}; planes have {', '.join(HD_FORMATS)}")
        format = format if isinstance(format, str) else format_of(format)
        shape, dtype = (int(depth), int(height), int(width)), HD_FORMATS[format]
        if self._array is not None and self._array.shape == shape and (self._format, self._multi_sampled) == (format, bool(multi_sampled)):
            return
        self._refuse_if_mapped("allocate")
        self._array = None  # the old memory may be what the new needs
        try:
            self._array = wp.zeros(shape, dtype=dtype, device=self.device)
        except (MemoryError, RuntimeError) as error:
            size = wp.types.type_size_in_bytes(dtype) * shape[0] * shape[1] * shape[2]
            message = f"{self.name}: {depth} x {width}x{height} {format} need {size:,} bytes and there is not enough memory"
            raise Error(f"{message}; lower the resolution, or render fewer planes at a time") from error
        self._format, self._multi_sampled, self._converged = format, bool(multi_sampled), False

    def resize(self, width: int, height: int, *, depth: int | None = None) -> None:
        """`allocate` with the format as it is. Raises Error before the first `allocate`."""
        depth = self.array.shape[0] if depth is None else depth
        self.allocate(width, height, self._format, multi_sampled=self._multi_sampled, depth=depth)

    def deallocate(self) -> None:
        """Let go of the memory. Raises Error while mapped."""
        self._refuse_if_mapped("deallocate")
        self._array, self._format, self._multi_sampled, self._converged = None, "", False, False

    # -- reading ----------------------------------------------------------------------------------------------------------

    def map(self) -> np.ndarray:
        """The pixels, read-only: (H, W) or (H, W, C), with the views in front where there are several. The memory itself on the CPU,
        a copy from CUDA (which waits for the device). Nothing may render into the buffer until as many `unmap`. Raises Error before
        `allocate`."""
        pixels = self.array.numpy()
        pixels = (pixels[0] if self.depth == 1 else pixels).view()
        pixels.flags.writeable = False
        self._map_count += 1
        return pixels

    def unmap(self) -> None:
        """The end of one `map`. Raises Error where the buffer is not mapped."""
        if self._map_count == 0:
            raise Error(f"{self.name} is not mapped; unmap() goes with a map() before it")
        self._map_count -= 1

    @property
    def is_mapped(self) -> bool:
        return self._map_count > 0

    @contextmanager
    def mapped(self) -> Iterator[np.ndarray]:
        """`map` for the length of a ``with`` block."""
        pixels = self.map()
        try:
            yield pixels
        finally:
            self.unmap()

    def resolve(self) -> None:
        """Nothing to do: a render pass leaves the mean of its samples after every call."""

    @property
    def is_converged(self) -> bool:
        """Whether more calls of the pass that renders into it, with nothing changed, would change nothing."""
        return self._converged

    def set_converged(self, converged: bool) -> None:
        """For render passes."""
        self._converged = converged

    def _refuse_if_mapped(self, what: str) -> None:
        if self._map_count:
            raise Error(f"{self.name} is mapped; unmap() it before {what}()")
