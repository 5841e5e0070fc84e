"""batch.jobs: stages x shots x frames -> files. One scene a stage and set of purposes, kept over all its shots and frames."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hdwarp.batch.shots import Shot, ShotVar
from hdwarp.delegate.render_settings import RenderSettings
from hdwarp.errors import Diagnostic, Diagnostics, Error
from hdwarp.rendering import advance, describe_shot, render_shot
from hdwarp.scene import Scene
from hdwarp.stage.open import frame_before, resolve_time
from hdwarp.writeback import write_file
from hdwarp.writeback.atomic import check_target, exists_complete
from hdwarp.writeback.layer import record
from hdwarp.writeback.names import Output, holds_one_aov, plan, template_of

if TYPE_CHECKING:
    from pxr import Usd

    from hdwarp.writeback.layer import FrameRecord


@dataclass(slots=True)
class Job:
    """One shot at one time, and the files it fills: (path, the one var it holds or None for all)."""

    stage: Usd.Stage
    shot: Shot
    time: Usd.TimeCode
    files: list[tuple[Path, ShotVar | None]] = field(default_factory=list)
    frame_number: float | None = None  # None outside frame ranges
    previous: Usd.TimeCode | None = None  # the frame that `motion` is measured against; None: nothing moves


@dataclass(slots=True)
class JobResult:
    job: Job
    written: list[Path]
    kept: list[Path]  # complete from an earlier run
    error: str | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    record: FrameRecord | None = None  # of the frame, without its planes, where records were asked for


def plan_jobs(
    stages: Sequence[tuple[Usd.Stage, Sequence[Shot]]], out: str | None, frames: Sequence[float] | None, time: object
) -> list[Job]:
    """All jobs of a run with their file names, checked to be different. Raises ArgumentError with a template that would work.

    A frame's previous one is the one before it in ``frames``, the first one's as far before it as it is before the second; of a single
    frame or time it is one frame before.
    """
    jobs, outputs, owners = [], [], []
    for stage, shots in stages:
        identifier = stage.GetRootLayer().identifier
        for place, number in enumerate(frames if frames is not None else [None]):
            code = resolve_time(stage, time if number is None else number)
            if number is None or len(frames) == 1:
                previous = frame_before(stage, code)
            else:
                previous = resolve_time(stage, frames[place - 1] if place else 2.0 * frames[0] - frames[1])
            for shot in shots:
                job = Job(stage, shot, code, frame_number=number, previous=previous)
                jobs.append(job)
                # A productName may hold a frame number of its own; without a range it is that of the one time rendered.
                file_number = number if number is not None or code.IsDefault() or code.IsEarliestTime() else code.GetValue()
                whole = Output(identifier, shot.product, shot.camera, "", file_number, shot.product_name)
                one_each = holds_one_aov(template_of(out, whole))
                for var in shot.vars if one_each else [None]:
                    outputs.append(Output(identifier, shot.product, shot.camera, var.name if var else "", file_number, shot.product_name))
                    owners.append((job, var))
    for path, (job, var) in zip(plan(out, outputs), owners, strict=True):
        job.files.append((Path(path), var))
    return jobs


def run_jobs(
    jobs: Sequence[Job],
    *,
    device: str | None = None,
    samples: int = 1,
    complexity: str = "low",
    settings: RenderSettings | None = None,
    strict: bool = False,
    overwrite: bool = False,
    resume: bool = False,
    mask: Sequence[str] | None = None,
    planned: dict[int, Diagnostics] | None = None,
    records: bool = False,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[JobResult]:
    """Run the jobs in order, yielding each result as it is there. A job that fails is reported and the rest goes on.

    ``mask``: draw only these prims and what is below them. ``planned``: diagnostics of planning by id(stage). ``overwrite`` replaces
    files; ``resume`` keeps those that are complete, whatever made them. ``records``: also describe the jobs whose files are all kept.
    ``stop``: asked between pictures and files; KeyboardInterrupt is raised when it says so.
    """
    if mask is not None:
        mask = [*mask, *{job.shot.camera for job in jobs if job.shot.camera}]  # cameras are not drawn, but have to be there
    scenes: dict[tuple, Scene] = {}

    def key_of(job: Job) -> tuple:
        return id(job.stage), job.shot.purposes, job.shot.material_purposes

    moving = {key_of(job) for job in jobs if "motion" in job.shot.aovs}  # scenes that go through every frame from the one before it

    def scene_of(job: Job) -> Scene:
        shot, key = job.shot, key_of(job)
        before = job.previous if key in moving and job.previous is not None else job.time
        if key not in scenes:
            read = {"purposes": shot.purposes, "material_purposes": shot.material_purposes, "complexity": complexity, "mask": mask}
            scenes[key] = Scene(job.stage, device=device, time=before, strict=strict, **read)
        scene = scenes[key]
        is_there = scene.time_code == job.time and (key not in moving or scene.previous_time_code == before)
        if is_there:
            return scene
        if key in moving:
            if scene.time_code != before:
                scene.sync(before)
            advance(scene, shot, job.time)
        else:
            scene.sync(job.time)
        return scene

    def check_stop() -> None:
        if stop():
            raise KeyboardInterrupt

    for job in jobs:
        check_stop()
        missing = [(path, var) for path, var in job.files if not (resume and exists_complete(path))]
        kept = [path for path, _ in job.files if path not in {path for path, _ in missing}]
        if not missing and not records:
            yield JobResult(job, [], kept)
            continue
        diagnostics = Diagnostics()
        diagnostics.extend(list((planned or {}).get(id(job.stage), [])))
        try:
            for path, _ in missing:
                check_target(path, overwrite=overwrite or resume)
            if missing:
                frame = render_shot(scene_of(job), job.shot, samples=samples, settings=settings, diagnostics=diagnostics)
            else:
                frame = describe_shot(scene_of(job), job.shot)
            for path, var in missing:
                check_stop()
                write_file(frame, path, var.name if var else None, overwrite=overwrite or resume)
        except Error as error:
            yield JobResult(job, [], kept, str(error), tuple(diagnostics))
            continue
        written = [path for path, _ in missing]
        yield JobResult(job, written, kept, None, frame.diagnostics, record(frame, files_of_vars(job)) if records else None)


def describe(job: Job) -> str:
    """What a job is called in messages."""
    name = job.shot.product or job.shot.camera or os.path.basename(job.stage.GetRootLayer().identifier)
    return name if job.frame_number is None else f"{name} frame {job.frame_number:g}"


def files_of_vars(job: Job) -> dict[str, Path]:
    """The file that holds each var of a job's shot."""
    return {item.name: path for path, var in job.files for item in ([var] if var is not None else job.shot.vars)}
