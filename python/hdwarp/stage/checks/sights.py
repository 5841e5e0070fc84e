"""stage.checks.sights: does a camera see anything? Boxes of what is drawn against its clipping range and window; no pixel is traced."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from hdwarp.stage.checks.boxes import boxes_of
from hdwarp.stage.checks.findings import WARNING, Check, Finding, Rule
from hdwarp.stage.checks.lenses import mended_slopes, number
from hdwarp.stage.checks.subject import Subject
from hdwarp.stage.columns import Camera

CLIP_HIDES_ALL = Rule("camera-clip-hides-all", WARNING, "everything before the lens is nearer or farther than the clipping range")
SEES_NOTHING = Rule(
    "camera-sees-nothing", WARNING, "everything is behind the camera or beside its window, at three times of the stage's range"
)
FAR_AWAY = Rule("camera-far-away", WARNING, "everything together is smaller than a few pixels")
INSIDE = Rule("camera-inside", WARNING, "the camera is inside a closed thing that is small beside the scene")

_FEW = 1.0 / 500.0  # of the picture: two pixels of 1080
_SMALL = 0.5  # of the scene: what is larger is a room or a sky
_SPARE = 2.0  # times the window: conform policies and data windows show more than the apertures


class _Sight(NamedTuple):
    """What of the boxes lies before a camera: depths [m] of those before its window, (n, 2) nearest and farthest."""

    depths: np.ndarray
    is_seen: bool  # something is within the clipping range too


def _look(camera: Camera, corners: np.ndarray) -> _Sight:
    camera_from_world = np.linalg.inv(camera.world_from_camera)
    points = corners @ camera_from_world[:3, :3].T + camera_from_world[:3, 3]  # (n, 8, 3)
    depth = -points[..., 2]
    beside = np.zeros(len(points), bool)
    if np.array_equal(camera.axes, np.eye(3)):  # else directions are turned; depths stay
        for axis in (0, 1):
            reach = _SPARE * (0.5 * max(camera.aperture) + abs(camera.aperture_offset[axis]))
            limit = reach if camera.projection == "orthographic" else reach / camera.focal_length * depth
            beside |= (points[..., axis] > limit).all(axis=1) | (-points[..., axis] > limit).all(axis=1)
    behind = (depth <= 0.0).all(axis=1) & (camera.projection == "perspective")
    depths = np.column_stack([depth.min(axis=1), depth.max(axis=1)])[~(beside | behind)]
    near, far = camera.clipping_range
    return _Sight(depths, bool(((depths[:, 1] >= near) & (depths[:, 0] <= far)).any()))


def _blind(subject: Subject) -> dict[str, _Sight]:
    """Cameras that have nothing to show, at no time that is looked at."""
    if not subject.draws_everything or not subject.boxes.complete or not len(subject.boxes.corners):
        return {}
    found = {path: sight for path, camera in subject.cameras.items() if not (sight := _look(camera, subject.boxes.corners)).is_seen}
    for columns in subject.at_other_times() if found else ():
        boxes = boxes_of(columns)
        if not boxes.complete:
            return {}
        for camera in columns.cameras:
            if camera.path in found and _look(camera, boxes.corners).is_seen:
                del found[camera.path]
    return found


def sees_something(subject: Subject) -> Iterator[Finding]:
    for path, sight in _blind(subject).items():
        camera = subject.cameras[path]
        near, far = (limit / subject.unit for limit in camera.clipping_range)
        if not len(sight.depths):
            lower, upper = subject.boxes.bounds
            centre = ", ".join(number(x) for x in 0.5 * (lower + upper) / subject.unit)
            yield SEES_NOTHING.broken(
                path, "everything is behind it or beside its window", f"turn or move it towards ({centre}), the middle of the scene"
            )
            continue
        nearest, farthest = (float(x) / subject.unit for x in (sight.depths[:, 0].min(), sight.depths[:, 1].max()))
        nearest = max(nearest, 1e-3 * farthest) if camera.projection == "perspective" else nearest
        reach = (0.5 * nearest, 2.0 * farthest) if nearest > 0.0 else (nearest - 1.0, farthest + 1.0)
        yield CLIP_HIDES_ALL.broken(
            path,
            f"clippingRange ({number(near)}, {number(far)}) hides everything: what is before the lens lies from {number(nearest)} to"
            f" {number(farthest)} scene units away",
            f"author clippingRange = ({number(min(near, reach[0]))}, {number(max(far, reach[1]))})",
        )


def is_near_enough(subject: Subject) -> Iterator[Finding]:
    bounds = subject.boxes.bounds
    if bounds is None or not subject.draws_everything or not subject.boxes.complete:
        return
    centre, radius = 0.5 * (bounds[0] + bounds[1]), 0.5 * subject.boxes.size
    mended = mended_slopes(subject)
    for camera in subject.columns.cameras:
        distance = float(np.linalg.norm(camera.world_from_camera[:3, 3] - centre))
        if camera.projection == "orthographic":
            half = 0.5 * max(camera.aperture) * float(np.linalg.norm(camera.axes[:, 0]))
        else:
            half = 0.5 * max(camera.aperture) / camera.focal_length * distance
        if radius > 0.0 and radius < distance and radius < _FEW * half:
            share = f"everything together fills {100.0 * radius / half:.2g} % of its picture"
            if camera.projection == "orthographic":
                wanted = number(4.0 * radius / (0.1 * subject.unit))
                yield FAR_AWAY.broken(camera.path, share, f"author horizontalAperture and verticalAperture about {wanted}")
                continue
            slope = mended.get(camera.path)
            wanted = 2.0 * radius / (half / distance if slope is None else slope)
            cure = f"move it to about {number(wanted / subject.unit)} scene units from the scene, or mend the units of its xformOps"
            if slope is not None:
                is_enough = radius >= _FEW * slope * distance
                cure = "mend its lens as camera-lens-mixed says" + ("" if is_enough else f", and {cure}")
            yield FAR_AWAY.broken(camera.path, f"{share}, {number(distance / subject.unit)} scene units away", cure)


def is_outside(subject: Subject) -> Iterator[Finding]:
    for camera in subject.columns.cameras:
        if camera.projection == "orthographic":
            continue
        for gprim, size, reach in subject.boxes.around(camera.world_from_camera[:3, 3]):
            if gprim.visual and size < _SMALL * subject.boxes.size and camera.clipping_range[0] < reach:
                near, far = reach / subject.unit, max(camera.clipping_range[1], 2.0 * reach) / subject.unit
                yield INSIDE.broken(
                    camera.path,
                    f"it is inside <{gprim.path}>, whose inner side fills its picture",
                    f"move it out, or author clippingRange = ({number(1.001 * near)}, {number(far)}), which begins beyond",
                )


CHECKS = (
    Check(sees_something, (CLIP_HIDES_ALL, SEES_NOTHING)),
    Check(is_near_enough, (FAR_AWAY,)),
    Check(is_outside, (INSIDE,)),
)
