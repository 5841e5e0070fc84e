"""cli.quiet: Warp started without its banner, so that stdout holds nothing but our results."""

from __future__ import annotations


def start_quietly() -> None:
    import warp as wp

    wp.config.quiet = True
    wp.config.log_level = getattr(wp, "LOG_ERROR", getattr(wp.config, "log_level", None))
    wp.init()
