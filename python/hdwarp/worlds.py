"""worlds: what a scene's worlds are to be, as a script says it. Plain records, checked as far as that goes without a stage."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from hdwarp.errors import ArgumentError
from hdwarp.stage.conventions import rotations_from_axes, rotations_from_unit_quaternions

MAX_WORLDS = 2**31 - 1  # their numbers are int32 in tables and images
FARTHEST = 1e18  # metres: what float32 tables can draw
_RIGID = 1e-4  # how far a matrix may be from a rotation: float32 products of many are well within
_GLOB = re.compile(r"[*?\[\]]")


@dataclass(frozen=True, slots=True, eq=False)
class Replicate:
    """Worlds copied from one prim; made by `replicate`."""

    path: str
    count: int
    spacing: tuple[float, float] | None  # metres, along the first and second horizontal axis
    xforms: np.ndarray | None  # (count, 3) positions or (count, 4, 4) rigid; float64, metres
    label: str  # with one "{}"


@dataclass(frozen=True, slots=True)
class AuthoredWorlds:
    """Worlds that are prims of the stage; made by `authored_worlds`."""

    patterns: tuple[str, ...]


def replicate(
    path: str,
    count: int,
    *,
    spacing: float | Sequence[float] | None = None,
    xforms: object = None,
    label: str | None = None,
) -> Replicate:
    """``count`` worlds from one prototype prim, which is the first of them. The stage is not touched.

    ``spacing`` [m], a number or a pair, lays the copies' root prims on a grid in the stage's ground plane, centred at its origin: copy i at
    row i // side along the first horizontal axis (x) and column i % side along the second (y; z where Y is up), side = ceil(sqrt(count)).
    Heights and orientations stay the prototype's. ``xforms`` places the root prims freely, in the stage's world frame: (count, 3)
    positions [m] (orientation as the prototype's), (count, 7) positions and quaternions (x, y, z, w), (count, 4, 4) rigid column-vector
    matrices, or a sequence of wp.transform. With neither, all stand where the prototype does.

    ``label``: path by which a copy's root prim is known, "{}" being the number of its world; None: the prototype's path with its trailing
    number replaced, or with "_{}" added. Raises ArgumentError for what cannot be meant.
    """
    path = _prim_path(path)
    count = _count(count)
    if spacing is not None and xforms is not None:
        raise ArgumentError("replicate takes spacing= (a grid) or xforms= (places of your own), not both")
    return Replicate(
        path,
        count,
        None if spacing is None else _spacing(spacing),
        None if xforms is None else _xforms(xforms, count),
        default_label(path) if label is None else _label(label, path),
    )


def authored_worlds(pattern: str | Iterable[str]) -> AuthoredWorlds:
    """Worlds that are authored as prims, in natural order (env_2 before env_10): a path, a pattern, or a list of both.

    Patterns are those of fnmatch, matched name by name: '*' does not cross '/'. Raises ArgumentError for what is no pattern.
    """
    if isinstance(pattern, re.Pattern):
        raise ArgumentError(f"authored_worlds takes patterns such as '/World/envs/env_*', no regular expression; got {pattern.pattern!r}")
    if isinstance(pattern, str) or not isinstance(pattern, Iterable):
        patterns = [pattern]
    else:
        patterns = list(pattern)
        if not patterns:
            raise ArgumentError("authored_worlds got an empty list; name a prim, or give a pattern such as '/World/envs/env_*'")
    return AuthoredWorlds(tuple(_pattern(item) for item in patterns))


def is_glob(text: str) -> bool:
    """Whether fnmatch would take ``text`` for more than itself."""
    return _GLOB.search(text) is not None


def default_label(path: str) -> str:
    """Label of the copies of ``path``: its trailing number replaced by "{}", or "_{}" added."""
    stem = re.sub(r"[0-9]+$", "", path)
    return f"{stem}{{}}" if stem != path else f"{path}_{{}}"


def _text(value: object) -> str:
    """A path given as text, or as what pxr calls a prim or a path."""
    found = value.GetPath() if hasattr(value, "GetPath") else value
    return str(found) if isinstance(found, str) or hasattr(found, "pathString") else ""


def _is_prim_path(text: str) -> bool:
    return text.startswith("/") and all(name.isidentifier() for name in text[1:].split("/"))


def _prim_path(path: object) -> str:
    text = _text(path)
    if _is_prim_path(text):
        return text
    if is_glob(text):
        hint = f"for worlds that are prims already use hdwarp.authored_worlds({text!r})"
        raise ArgumentError(f"replicate copies one prim and takes no pattern, got {text!r}; name the prototype, or {hint}")
    if "{}" in text:
        raise ArgumentError(f"replicate takes the prototype's path, got {text!r}; the copies' paths go to label=")
    raise ArgumentError(f"replicate: {text or path!r} is no absolute prim path such as '/World/envs/env_0'")


def _count(count: object) -> int:
    try:
        if isinstance(count, bool | np.bool_):
            raise TypeError
        number = operator.index(count)
    except TypeError:
        raise ArgumentError(f"count is {count!r}; it must be a whole number, 1 or more") from None
    if not 1 <= number <= MAX_WORLDS:
        raise ArgumentError(f"count is {number}; it must be from 1 to {MAX_WORLDS}")
    return number


def _spacing(spacing: object) -> tuple[float, float]:
    values = _numbers(spacing)
    if values is not None and values.shape == ():
        values = np.stack([values, values])
    if values is None or values.shape != (2,) or not np.isfinite(values).all():
        raise ArgumentError(f"spacing is {spacing!r}; it must be one or two finite numbers [m]")
    if values.min() < 0.0 or values.max() > FARTHEST:
        raise ArgumentError(f"spacing is {spacing!r}; it must be from 0 to {FARTHEST:g} m")
    return float(values[0]), float(values[1])


def _numbers(values: object) -> np.ndarray | None:
    """As float64; None where that cannot be. Arrays of Warp and torch included."""
    try:
        array = np.asarray(values.numpy() if hasattr(values, "numpy") else values)
        return array.astype(np.float64) if array.dtype.kind in "iuf" else None
    except (TypeError, ValueError, RuntimeError):
        return None


_FORMS = "positions (count, 3), poses (count, 7) with quaternions x y z w, matrices (count, 4, 4), or a sequence of wp.transform"


def _xforms(xforms: object, count: int) -> np.ndarray:
    """(count, 3) positions or (count, 4, 4) matrices."""
    if isinstance(xforms, list | tuple) and any(type(item).__name__ in ("Matrix4d", "Matrix4f") for item in xforms):
        raise ArgumentError("xforms holds Gf matrices, which multiply row vectors in scene units; give np.array(matrix).T in metres")
    values = _numbers(xforms)
    if values is None:
        raise ArgumentError(f"xforms is a {type(xforms).__name__} that cannot be read as numbers; expected {_FORMS}")
    if values.shape not in ((count, 3), (count, 7), (count, 4, 4)):
        raise ArgumentError(f"xforms has the shape {values.shape} for count={count}; expected {_FORMS}")
    flat = values.reshape(count, -1)
    _refuse(~np.isfinite(flat).all(axis=1), flat, "is not finite")
    place = values[:, :3, 3] if values.ndim == 3 else values[:, :3]
    _refuse(np.abs(place).max(axis=1) > FARTHEST, place, f"lies beyond {FARTHEST:g} m")
    if values.shape[1:] == (3,):
        return _frozen(values)
    matrices = np.tile(np.eye(4), (count, 1, 1))
    matrices[:, :3, 3] = place
    if values.ndim == 2:
        lengths = np.linalg.norm(values[:, 3:], axis=1)
        _refuse(~((lengths > 1e-9) & np.isfinite(lengths)), values[:, 3:], "has a quaternion without a length")
        matrices[:, :3, :3] = rotations_from_unit_quaternions(values[:, 3:] / lengths[:, None])
    else:
        _refuse((values[:, 3] != (0.0, 0.0, 0.0, 1.0)).any(axis=1), values[:, 3], "has a last row other than (0, 0, 0, 1) (transpose it?)")
        rotations = values[:, :3, :3]
        with np.errstate(over="ignore", invalid="ignore"):  # huge numbers are no rotation either
            off = np.abs(rotations.transpose(0, 2, 1) @ rotations - np.eye(3)).max(axis=(1, 2))
        mirrored = np.einsum("ni,ni->n", np.cross(rotations[:, :, 0], rotations[:, :, 1]), rotations[:, :, 2]) < 0.0
        _refuse(~(off < _RIGID) | mirrored, rotations.reshape(count, 9), "is not rigid: its 3x3 is no rotation")
        matrices[:, :3, :3] = rotations_from_axes(rotations[:, :, 0], rotations[:, :, 1])  # float32 rounding taken out
    return _frozen(matrices)


def _refuse(bad: np.ndarray, values: np.ndarray, why: str) -> None:
    if bad.any():
        first = int(np.argmax(bad))
        said = ", ".join(f"{number:g}" for number in values[first])
        more = f" (and {int(bad.sum()) - 1} more)" if bad.sum() > 1 else ""
        raise ArgumentError(f"xforms[{first}] {why}: ({said}){more}")


def _frozen(values: np.ndarray) -> np.ndarray:
    values.flags.writeable = False  # a spec may serve several scenes
    return values


def _label(label: object, path: str) -> str:
    if not isinstance(label, str) or label.count("{}") != 1:
        raise ArgumentError(f"label is {label!r}; it must hold one '{{}}' for the world's number, such as {default_label(path)!r}")
    if not _is_prim_path(label.replace("{}", "0")):
        raise ArgumentError(f"label is {label!r}, which makes no absolute prim paths; give one such as {default_label(path)!r}")
    if label.startswith(f"{path}/"):
        raise ArgumentError(f"label is {label!r}, inside the prototype <{path}>: a copy cannot be part of what it copies")
    return label


def _pattern(pattern: object) -> str:
    if isinstance(pattern, re.Pattern):
        raise ArgumentError(f"authored_worlds takes patterns such as '/World/envs/env_*', no regular expression; got {pattern.pattern!r}")
    text = _text(pattern)
    if "{}" in text:
        raise ArgumentError(
            f"authored_worlds: {text!r} is a label of hdwarp.replicate; a pattern has '*' for the number: {text.replace('{}', '*')!r}"
        )
    if text in ("", "/") or text != "/" + "/".join(name for name in text.split("/") if name):
        hint = " (a regular expression? patterns are those of fnmatch)" if text.startswith("^") else ""
        raise ArgumentError(f"authored_worlds: {text or pattern!r} is no absolute path or pattern such as '/World/envs/env_*'{hint}")
    return text
