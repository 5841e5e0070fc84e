"""batch.jobs: stages x shots x frames -> files. One scene a stage and set of purposes, kept over all its shots and frames."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hdwarp.batch.overlap import Reader, Writers, Writing
from hdwarp.batch.shots import Shot, ShotVar
from hdwarp.delegate.render_settings import RenderSettings
from hdwarp.errors import Diagnostic, Diagnostics, Error
from hdwarp.rendering import describe_shot, keep_as_previous, render_shot
from hdwarp.scene import Scene
from hdwarp.stage.open import frame_before, resolve_time
from hdwarp.writeback import EIGHT_BIT, write_file
from hdwarp.writeback.atomic import check_target, exists_complete
from hdwarp.writeback.layer import record
from hdwarp.writeback.names import Output, format_of, holds_one_aov, plan, template_of

if TYPE_CHECKING:
    from pxr import Usd

    from hdwarp.frame import Frame
    from hdwarp.writeback.display import Display
    from hdwarp.writeback.layer import FrameRecord


@dataclass(slots=True)
class Job:
    """One shot at one time, and the files it fills: (path, the one var it holds or None for all)."""

    stage: Usd.Stage
    shot: Shot
    time: Usd.TimeCode
    identifier: str  # of the stage's root layer: known without asking the stage, which another thread may be reading
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
    aovs: tuple[str, ...] = ()  # that were made; () where nothing was rendered
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
                job = Job(stage, shot, code, identifier, frame_number=number, previous=previous)
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
    settings: RenderSettings | Mapping[str, object] | None = None,
    strict: bool = False,
    overwrite: bool = False,
    resume: bool = False,
    mask: Sequence[str] | None = None,
    draw_modes: bool = True,
    planned: dict[int, Diagnostics] | None = None,
    records: bool = False,
    compression: Mapping[str, str | int] | None = None,
    display: Display | str | None = None,
    texture_budget: int | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[JobResult]:
    """Run the jobs in order, yielding each result as it is there, in that order. A job that fails is reported and the rest goes on.

    While a frame is traced, the next time is read and earlier frames are encoded and written (see `overlap`); what is yielded and what is
    in the files is as if one came after the other.

    ``mask``: draw only these prims and what is below them. ``draw_modes``: see `Scene`. ``planned``: diagnostics of
    planning by id(stage). ``overwrite`` replaces files;
    ``resume`` keeps those that are complete, whatever made them. ``records``: also describe the jobs whose files are all kept.
    ``compression``: format ("exr", "png", "npz") -> compression as `write_file` takes it. ``display``: the same of those with 8 bits.
    ``texture_budget``: in bytes, as `Scene` takes it.
    ``stop``: asked between pictures; when it says so, what is rendered is written and KeyboardInterrupt is raised. One that comes while
    ``stop`` says so, or from waiting, gives up the files that are not begun.
    """
    if mask is not None:
        mask = [*mask, *{job.shot.camera for job in jobs if job.shot.camera}]  # cameras are not drawn, but have to be there
    read = {"device": device, "complexity": complexity, "strict": strict, "mask": mask, "draw_modes": draw_modes}
    read |= {} if texture_budget is None else {"texture_budget": texture_budget}

    def write(frame: Frame, path: Path, name: str | None) -> None:
        kind = format_of(path)
        how = {"compression": (compression or {}).get(kind), "display": display if kind in EIGHT_BIT else None}
        write_file(frame, path, name, overwrite=overwrite or resume, **how)

    with contextlib.closing(Writers(write)) as writers, contextlib.closing(_Scenes(jobs, read)) as scenes:
        results = _InOrder(writers)
        try:
            for number, job in enumerate(jobs):
                if stop():
                    break
                yield from results.until_not_full()
                missing = [(path, var) for path, var in job.files if not (resume and exists_complete(path))]
                kept = [path for path, _ in job.files if path not in {path for path, _ in missing}]
                if not missing and not records:
                    results.add(JobResult(job, [], kept))
                    continue
                diagnostics = Diagnostics()
                diagnostics.extend(list((planned or {}).get(id(job.stage), [])))
                try:
                    for path, _ in missing:
                        check_target(path, overwrite=overwrite or resume)
                    scene = scenes.at(number)
                    if missing:
                        scenes.read_ahead(number)
                        how = {"samples": samples, "settings": settings, "diagnostics": diagnostics, "strict": strict}
                        frame = render_shot(scene, job.shot, leave_out=True, **how)
                    else:
                        frame = describe_shot(scene, job.shot)
                    made = _files_made(job, frame, missing, kept)
                except Error as error:
                    results.add(JobResult(job, [], kept, str(error), tuple(diagnostics)))
                    continue
                aovs = tuple(dict.fromkeys(aov for _, aov, _ in frame.vars))
                told = record(frame, files_of_vars(job, frame)) if records else None
                result = JobResult(job, [], kept, None, frame.diagnostics, aovs, told)
                results.add(result, frame, made)
                del frame  # its files hold it from here on
            else:
                yield from results.rest()
                return
        except GeneratorExit:
            raise
        except BaseException as error:  # what is rendered is written all the same
            if isinstance(error, KeyboardInterrupt) and stop():
                writers.cancel()
            yield from results.rest()
            raise
        yield from results.rest()
        raise KeyboardInterrupt


def _files_made(
    job: Job, frame: Frame, files: Sequence[tuple[Path, ShotVar | None]], kept: Sequence[Path]
) -> list[tuple[Path, str | None]]:
    """(path, the one var it holds or None for all) of those of ``files`` that the frame has something for: planes may be left out."""
    made = {name for name, _, _ in frame.vars}
    found = [(path, var.name if var else None) for path, var in files if var is None or var.name in made]
    if files and not found and not kept:
        names = ", ".join(var.name for _, var in files if var is not None)
        raise Error(f"{describe(job)}: there is nothing to write, {names} cannot be made")
    return found


class _InOrder:
    """Results in the order of the jobs, while their files are written in whatever order the threads get done."""

    def __init__(self, writers: Writers) -> None:
        self._writers = writers
        self._queue: deque[tuple[JobResult, Writing | None]] = deque()

    def add(self, result: JobResult, frame: Frame | None = None, files: Sequence[tuple[Path, str | None]] = ()) -> None:
        self._queue.append((result, self._writers.submit(frame, files) if files else None))

    def until_not_full(self) -> Iterator[JobResult]:
        """Those that are done, and as many more as it takes to have room for another frame."""
        while self._queue:
            writing = self._queue[0][1]
            if writing is not None and not writing.done and not self._writers.is_full([item for _, item in self._queue if item]):
                return
            yield from self._next()

    def rest(self) -> Iterator[JobResult]:
        """All that are left. Interrupted, it leaves out the files that are not begun."""
        try:
            while self._queue:
                yield from self._next()
        except KeyboardInterrupt:
            self._writers.cancel()
            while self._queue:
                yield from self._next()
            raise

    def _next(self) -> Iterator[JobResult]:
        result, writing = self._queue[0]
        if writing is not None:
            try:
                result.written, result.error = writing.finish()
            except Exception:
                self._queue.popleft()
                raise
            if result.error is not None:
                result.record = None
            elif len(result.written) < len(writing.paths):  # given up: neither done nor failed
                self._queue.popleft()
                return
        self._queue.popleft()
        yield result


class _Scenes:
    """One scene a stage and set of purposes, brought to the time of each job in turn, by way of the frame before where `motion` is asked
    for. Its reader has a stage to itself: it is started for the next time that will be wanted, and waited for before anything else is
    read."""

    def __init__(self, jobs: Sequence[Job], read: Mapping[str, object]) -> None:
        self._jobs, self._read = jobs, read
        self._scenes: dict[tuple, Scene] = {}
        self._moving = {self._key(job) for job in jobs if "motion" in job.shot.aovs}
        self._reader = Reader()

    @staticmethod
    def _key(job: Job) -> tuple:
        return id(job.stage), job.shot.purposes, job.shot.material_purposes

    def _times(self, job: Job, scene: Scene | None) -> list[Usd.TimeCode]:
        """Where the scene still has to go for a job, one after another."""
        if self._key(job) not in self._moving or job.previous is None:
            return [] if scene is not None and scene.time_code == job.time else [job.time]
        if scene is not None and (scene.previous_time_code, scene.time_code) == (job.previous, job.time):
            return []
        return [job.time] if scene is not None and scene.time_code == job.previous else [job.previous, job.time]

    def at(self, number: int) -> Scene:
        """The scene of a job, at its time."""
        job = self._jobs[number]
        scene = self._scenes.get(self._key(job))
        times = self._times(job, scene)
        if scene is None:
            first = times.pop(0)
            self._reader.take(None, first)
            shot = job.shot
            scene = Scene(job.stage, time=first, purposes=shot.purposes, material_purposes=shot.material_purposes, **self._read)
            self._scenes[self._key(job)] = scene
        for time in times:
            if time == times[-1] and self._key(job) in self._moving:
                keep_as_previous(scene, job.shot)
            pending = self._reader.take(scene, time)
            scene.apply(pending) if pending is not None else scene.sync(time)
        return scene

    def read_ahead(self, number: int) -> None:
        """Begin to read what the first job after this one that needs reading will ask for, if its scene is open."""
        for index in range(number + 1, len(self._jobs)):
            job = self._jobs[index]
            scene = self._scenes.get(self._key(job))
            if scene is None:
                return
            times = self._times(job, scene)
            if times:
                self._reader.start(scene, times[0])
                return

    def close(self) -> None:
        self._reader.close()


def describe(job: Job) -> str:
    """What a job is called in messages."""
    name = job.shot.product or job.shot.camera or os.path.basename(job.identifier)
    return name if job.frame_number is None else f"{name} frame {job.frame_number:.10g}"


def files_of_vars(job: Job, frame: Frame) -> dict[str, Path]:
    """The file that holds each var of a job's frame."""
    made = [name for name, _, _ in frame.vars]
    return {name: path for path, var in job.files for name in made if var is None or var.name == name}
