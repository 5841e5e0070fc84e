"""garbage: no looking for garbage while very many objects are made that all live on: looking through them costs as much as making them."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collecting() -> Iterator[None]:
    """Python's cyclic collector waits until the end; reference counts go on."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
