"""sensors.checks: what sensors are given: states, worlds, clip ranges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import warp as wp

from hdwarp.errors import ArgumentError
from hdwarp.scene import Scene
from hdwarp.state import State


def check_scene(scene: object) -> None:
    """Raise ArgumentError for what is no Scene, Error for a closed one."""
    if not isinstance(scene, Scene):
        raise ArgumentError(f"a sensor is of an open scene, not of a {type(scene).__name__}: hdwarp.SensorCamera(hdwarp.Scene(stage), ...)")
    scene.check_open()


def check_state(name: str, state: object, scene: Scene) -> None:
    """Raise ArgumentError for what is no State, or one without poses, or of another scene, or from before bodies came or went."""
    if not isinstance(state, State) or state.body_q is None:
        what = "State without body_q" if isinstance(state, State) else type(state).__name__
        raise ArgumentError(f"{name} is a {what}; expected what scene.state() or its copy() gives, or None for the stage's poses")
    if state.bodies is not None and state.bodies is not scene.bodies:
        raise ArgumentError(f"{name} is of another scene; take one from this one's state()")
    if state.bodies is not None and state.bodies_version != scene.bodies.version:
        raise ArgumentError(
            f"{name} is from before bodies came, went or were renamed, or the frame of a scene far from its origin moved: its rows mean"
            " something else now; take a new state()"
        )


def check_clear(clear: object) -> None:
    """Raise ArgumentError for what is no dictionary."""
    if clear is not None and not isinstance(clear, Mapping):
        raise ArgumentError(f"clear is a {type(clear).__name__}; give name of an output -> value")


def check_worlds(worlds: object, count: int) -> list[int] | None:
    """Numbers of worlds, ascending, each once. Raises ArgumentError for what is none."""
    if worlds is None:
        return None
    given = worlds.numpy() if isinstance(worlds, wp.array) else worlds
    if not isinstance(given, Iterable) or isinstance(given, str):
        raise ArgumentError(f"worlds={worlds!r}: expected numbers of worlds")
    numbers = [number.item() if isinstance(number, np.integer) else number for number in given]
    if not numbers or not all(isinstance(number, int) and not isinstance(number, bool) and 0 <= number < count for number in numbers):
        there = "one world, number 0" if count == 1 else f"worlds 0 to {count - 1}"
        raise ArgumentError(f"worlds={numbers!r}: the scene has {there}")
    return sorted(set(numbers))


def clip_array(clipping_range: tuple[float, float] | None, device: wp.Device) -> wp.array | None:
    """(1,) vec2f with a clip range for all views, None without. Raises ArgumentError unless 0 <= near < far."""
    if clipping_range is None:
        return None
    try:
        near, far = (float(value) for value in clipping_range)
    except (TypeError, ValueError):
        raise ArgumentError(f"clipping_range={clipping_range!r}: expected (near, far) in metres") from None
    if not 0.0 <= near < far:
        raise ArgumentError(f"clipping_range=({near:g}, {far:g}): expected 0 <= near < far, in metres")
    return wp.array([(near, far)], dtype=wp.vec2f, device=device)
