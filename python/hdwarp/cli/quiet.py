"""cli.quiet: Warp started without its banner and without a word on a missing GPU, which is nothing to warn of here."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator


def start_quietly() -> None:
    import warp as wp

    wp.config.quiet = True
    wp.config.log_level = wp.LOG_ERROR
    with _stderr_without("NVIDIA CUDA driver"):
        wp.init()


@contextlib.contextmanager
def _stderr_without(words: str) -> Iterator[None]:
    """Hold back what native code writes to stderr, and let through the lines that do not hold ``words``."""
    sys.stderr.flush()
    try:
        original = os.dup(2)
    except OSError:  # no stderr at all
        yield
        return
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(original, 2)
            os.close(original)
            held.seek(0)
            for line in held.read().decode(errors="replace").splitlines():
                if words not in line:
                    print(line, file=sys.stderr)
