"""The shapes of USD in closed form, float64: every point where a line crosses their surface. Shares no code with hdwarp.

A shape is a list of surfaces about its z axis, in authored units; `AXES` turns it to its `axis`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

# Columns: where x, y and z of a shape about z go. Round shapes: Hydra's bases; planes: s to the right, t up where the front is seen.
AXES = {"X": np.eye(3)[[2, 0, 1]], "Y": np.eye(3)[[1, 2, 0]], "Z": np.eye(3)}
PLANE_AXES = {
    "X": np.array([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]]),
    "Y": np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]]),
    "Z": np.eye(3),
}


@dataclass
class Crossing:
    """Where lines cross one surface. ``margin``: how far inside the surface's own edges, in its own size; negative: beside it."""

    t: np.ndarray
    margin: np.ndarray
    normal: np.ndarray  # (..., 3) outward, not unit
    point: np.ndarray


@dataclass(frozen=True)
class Disc:
    z: float
    radius: float
    up: float

    def cross(self, o, d) -> Iterator[Crossing]:
        t = (self.z - o[..., 2]) / d[..., 2]
        p = o + d * t[..., None]
        margin = 1 - np.hypot(p[..., 0], p[..., 1]) / self.radius if self.radius > 0 else np.full(t.shape, -1.0)
        yield Crossing(t, margin, np.broadcast_to([0.0, 0.0, self.up], d.shape), p)


@dataclass(frozen=True)
class Side:
    """A cone's side from (z0, r0) up to (z1, r1)."""

    z0: float
    r0: float
    z1: float
    r1: float

    def cross(self, o, d) -> Iterator[Crossing]:
        k = (self.r1 - self.r0) / (self.z1 - self.z0)
        r = self.r0 + k * (o[..., 2] - self.z0)
        a = d[..., 0] ** 2 + d[..., 1] ** 2 - (k * d[..., 2]) ** 2
        b = o[..., 0] * d[..., 0] + o[..., 1] * d[..., 1] - k * r * d[..., 2]
        c = o[..., 0] ** 2 + o[..., 1] ** 2 - r**2
        for t, grazing in _roots(a, b, c, d, max(self.r0, self.r1)):
            p = o + d * t[..., None]
            half = (self.z1 - self.z0) / 2
            between = 1 - np.abs(p[..., 2] - (self.z0 + self.z1) / 2) / half
            normal = np.stack([p[..., 0], p[..., 1], -k * (self.r0 + k * (p[..., 2] - self.z0))], -1)
            yield Crossing(t, np.minimum(between, grazing), normal, p)


@dataclass(frozen=True)
class Ball:
    """The part of a sphere about (0, 0, z) that is below ``top`` and above ``bottom``."""

    z: float
    radius: float
    bottom: float = -np.inf
    top: float = np.inf

    def cross(self, o, d) -> Iterator[Crossing]:
        q = o - [0, 0, self.z]
        for t, grazing in _roots((d * d).sum(-1), (q * d).sum(-1), (q * q).sum(-1) - self.radius**2, d, self.radius):
            p = o + d * t[..., None]
            inside = np.minimum(p[..., 2] - self.bottom, self.top - p[..., 2]) / max(self.radius, 1e-300)
            yield Crossing(t, np.minimum(inside, grazing), q + d * t[..., None], p)


@dataclass(frozen=True)
class Rectangle:
    """Half sizes; normal along axis ``axis`` at ``at``."""

    half: tuple[float, float]
    axis: int = 2
    at: float = 0.0
    up: float = 1.0

    def cross(self, o, d) -> Iterator[Crossing]:
        t = (self.at - o[..., self.axis]) / d[..., self.axis]
        p = o + d * t[..., None]
        u, v = (self.axis + 1) % 3, (self.axis + 2) % 3
        margin = np.minimum(1 - np.abs(p[..., u]) / self.half[0], 1 - np.abs(p[..., v]) / self.half[1])
        yield Crossing(t, margin, np.broadcast_to(np.eye(3)[self.axis] * self.up, d.shape), p)


def _roots(a, b, c, d, size):
    """Both roots of a t^2 + 2 b t + c, and how far the line is from touching only: half the chord over the size."""
    square = b * b - a * c
    root = np.sqrt(np.maximum(square, 0))
    q = -(b + np.where(b < 0, -root, root))
    one, other = q / a, c / q
    chord = np.abs(one - other) * np.linalg.norm(d, axis=-1) / 2 / max(size, 1e-300)
    grazing = np.where(square >= 0, chord, -1.0)
    yield one, grazing
    yield other, grazing


def surfaces(type_name: str, **sizes: float) -> list:
    """The surfaces of a prim type about z, with USD's fallbacks."""
    size = {"radius": 0.5 if type_name == "Capsule" else 1.0, "height": 1.0 if type_name.startswith("Capsule") else 2.0}
    size |= {"radiusTop": 0.5, "radiusBottom": 0.5} if type_name == "Capsule_1" else {"radiusTop": 1.0, "radiusBottom": 1.0}
    size |= {"size": 2.0, "width": 2.0, "length": 2.0} | sizes
    half = size["height"] / 2
    low, high = size["radiusBottom"], size["radiusTop"]
    if type_name in ("Cylinder", "Cone", "Capsule"):
        low, high = size["radius"], 0.0 if type_name == "Cone" else size["radius"]
    if type_name == "Sphere":
        return [Ball(0.0, size["radius"])]
    if type_name == "Cube":
        edge = size["size"] / 2
        return [Rectangle((edge, edge), axis, side * edge, side) for axis in range(3) for side in (-1.0, 1.0)]
    if type_name == "Plane":
        return [Rectangle((size["width"] / 2, size["length"] / 2))]
    if type_name in ("Cylinder", "Cylinder_1", "Cone"):
        return [Disc(-half, low, -1.0), Disc(half, high, 1.0), Side(-half, low, half, high)]
    if half == 0:
        return [Ball(0.0, low)]
    k = (high - low) / size["height"]  # the balls touch the side smoothly
    slant = np.hypot(1.0, k)
    return [
        Side(-half, low, half, high),
        Ball(k * low - half, low * slant, top=-half),
        Ball(k * high + half, high * slant, bottom=half),
    ]


def crossings(parts: list, o, d) -> Iterator[Crossing]:
    with np.errstate(all="ignore"):
        for part in parts:
            yield from part.cross(o, d)


@dataclass
class First:
    """The nearest crossing of each line within a range: NaN where there is none."""

    t: np.ndarray
    normal: np.ndarray
    point: np.ndarray  # in the shape's own space
    entering: np.ndarray
    unsure: np.ndarray  # near an edge or a tangent: rounding decides what is seen
    grazing: np.ndarray  # |cosine| between line and normal


def first(parts: list, linear, translation, origin, direction, *, near=0.0, far=np.inf, slack=3e-4) -> First:
    """What lines in the world see of a shape; ``linear``, ``translation``: world from the shape's space."""
    inverse = np.linalg.inv(linear)
    o, d = (origin - translation) @ inverse.T, direction @ inverse.T
    t = np.full(o.shape[:-1], np.inf)
    normal, point = np.zeros(o.shape), np.zeros(o.shape)
    unsure = np.zeros(t.shape, bool)
    found = list(crossings(parts, o, d))
    for crossing in found:
        with np.errstate(all="ignore"):
            closer = (crossing.margin >= 0) & (crossing.t >= near) & (crossing.t <= far) & (crossing.t < t)
        t = np.where(closer, crossing.t, t)
        normal, point = np.where(closer[..., None], crossing.normal, normal), np.where(closer[..., None], crossing.point, point)
    for crossing in found:
        with np.errstate(all="ignore"):
            unsure |= (np.abs(crossing.margin) < slack) & (crossing.t > near) & (crossing.t < far) & (crossing.t < t * 1.001 + 1e-3)
            unsure |= (crossing.margin > -slack) & (np.abs(crossing.t - near) < 2e-5 * abs(near))
    facing = (normal * d).sum(-1)
    world = normal @ inverse
    with np.errstate(all="ignore"):
        world /= np.linalg.norm(world, axis=-1, keepdims=True)
        grazing = np.abs((world * direction).sum(-1)) / np.linalg.norm(direction, axis=-1)
    return First(np.where(np.isinf(t), np.nan, t), world, point, facing < 0, unsure, grazing)
