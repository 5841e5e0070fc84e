"""Frames that overlap: what comes out is as if one came after the other, whatever is slow, fails or is interrupted on the way."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

import hdwarp
from hdwarp.batch import jobs as jobs_module
from hdwarp.batch.jobs import run_jobs
from hdwarp.batch.overlap import MOST_BYTES, Writers, Writing
from hdwarp.errors import OutputError
from hdwarp.writeback import write_file
from hdwarp.writeback.atomic import exists_complete

FRAMES = range(1, 10)


def writer_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(("hdwarp-write", "hdwarp-read"))]


def numbers(results) -> list[float]:
    return [result.job.frame_number for result in results]


@pytest.fixture
def many_writers(monkeypatch):
    """Four threads, however many cores there are."""
    original = Writers.__init__
    monkeypatch.setattr(Writers, "__init__", lambda self, write, threads=4: original(self, write, threads=threads))


@pytest.mark.parametrize("out", ["a.####.exr", "a.####.npz", "a.{aov}.####.png"])
def test_the_same_bits_as_one_after_the_other(out, jobs_of, ball, tmp_path, many_writers):
    jobs = jobs_of(out, FRAMES)
    results = list(run_jobs(jobs, device="cpu"))
    assert numbers(results) == list(FRAMES) and not any(result.error for result in results)
    alone = tmp_path / f"alone{jobs[0].files[0][0].suffix}"
    seen = set()
    for job in jobs:
        frame = hdwarp.render(str(ball), "/camera", time=job.time, resolution=(24, 18), aovs=job.shot.aovs, device="cpu")
        for path, var in job.files:
            write_file(frame, alone, var.name if var else None)
            assert path.read_bytes() == alone.read_bytes()
            seen.add(path.read_bytes())
    assert len(seen) >= len(jobs)  # the ball does move


def test_results_keep_the_order_of_the_jobs(jobs_of, monkeypatch, many_writers):
    """The first file is the slowest: the others are written long before it."""
    finished = []

    def slow_first(frame, path, *rest, **options):
        time.sleep(0.3 if frame.time == 1.0 else 0.0)
        finished.append(frame.time)
        return write_file(frame, path, *rest, **options)

    monkeypatch.setattr(jobs_module, "write_file", slow_first)
    results = list(run_jobs(jobs_of("a.####.npz", FRAMES), device="cpu"))
    assert finished[0] != 1.0
    assert numbers(results) == list(FRAMES)


def test_a_frame_that_fails_is_told_and_the_rest_goes_on(jobs_of, tmp_path, monkeypatch, many_writers):
    """Frame 3 before it is rendered, for its file exists; frame 6 on the thread that writes it."""

    def failing(frame, path, *rest, **options):
        if frame.time == 6.0:
            raise OutputError("the disk is full")
        return write_file(frame, path, *rest, **options)

    monkeypatch.setattr(jobs_module, "write_file", failing)
    (tmp_path / "a.0003.npz").write_bytes(b"mine")
    results = list(run_jobs(jobs_of("a.####.npz", FRAMES), device="cpu", records=True))
    assert numbers(results) == list(FRAMES)
    errors = {result.job.frame_number: result.error for result in results if result.error}
    assert set(errors) == {3.0, 6.0} and "--overwrite" in errors[3.0] and errors[6.0] == "the disk is full"
    assert (tmp_path / "a.0003.npz").read_bytes() == b"mine" and not (tmp_path / "a.0006.npz").exists()
    assert [result.record is None for result in results] == [number in errors for number in numbers(results)]
    assert sum(len(result.written) for result in results) == 7


def test_a_defect_on_a_thread_is_raised_after_what_came_before(jobs_of, monkeypatch, many_writers):
    def broken(frame, path, *rest, **options):
        if frame.time == 4.0:
            raise ZeroDivisionError("a defect")
        return write_file(frame, path, *rest, **options)

    monkeypatch.setattr(jobs_module, "write_file", broken)
    results = []
    with pytest.raises(ZeroDivisionError, match="a defect"):
        results.extend(run_jobs(jobs_of("a.####.npz", FRAMES), device="cpu"))
    assert numbers(results)[:3] == [1, 2, 3] and 4 not in numbers(results)
    assert not writer_threads()


def test_what_reading_ahead_raises_belongs_to_the_frame_that_was_read(jobs_of, monkeypatch):
    original = hdwarp.Scene.read

    def read(self, when=None):
        if when is not None and when == 5.0:
            raise hdwarp.StageError("/ball", "cannot be read")
        return original(self, when)

    monkeypatch.setattr(hdwarp.Scene, "read", read)
    results = list(run_jobs(jobs_of("a.####.npz", FRAMES), device="cpu"))
    assert [result.job.frame_number for result in results if result.error] == [5.0]
    assert "/ball" in results[4].error


def test_few_frames_are_in_memory_however_slow_the_disk(jobs_of, monkeypatch):
    """Two writers: three frames wait for their files, and one is being rendered."""
    original_init, original_render = Writers.__init__, jobs_module.render_shot
    monkeypatch.setattr(Writers, "__init__", lambda self, write: original_init(self, write, threads=2))
    planes, most = [], []

    def render(*arguments, **options):
        frame = original_render(*arguments, **options)
        planes.append(weakref.ref(frame.arrays["color"]))
        most.append(sum(plane() is not None for plane in planes))
        return frame

    def slow(frame, path, *rest, **options):
        time.sleep(0.15)
        return write_file(frame, path, *rest, **options)

    monkeypatch.setattr(jobs_module, "render_shot", render)
    monkeypatch.setattr(jobs_module, "write_file", slow)
    list(run_jobs(jobs_of("a.####.npz", FRAMES), device="cpu"))
    assert 1 < max(most) <= 4
    gc.collect()
    assert all(plane() is None for plane in planes)


def test_large_frames_wait_for_each_other():
    writers = Writers(lambda *_: None, threads=8)
    small, large = SimpleNamespace(size=1 << 20), SimpleNamespace(size=MOST_BYTES)
    assert not writers.is_full([]) and not writers.is_full([large]) and writers.is_full([large, large])
    assert not writers.is_full([small] * 8) and writers.is_full([small] * 9)
    writers.close()


def test_a_stage_is_read_by_one_thread_at_a_time_and_never_while_it_is_applied(jobs_of, monkeypatch):
    """Two cameras, two sets of purposes: two scenes of one stage, which take turns."""
    lock, readers = threading.Lock(), set()
    from hdwarp.stage.reader import StageReader

    original = StageReader.update

    def read(*arguments, **options):
        assert lock.acquire(blocking=False), "two threads read the stage"
        try:
            readers.add(threading.current_thread().name.split("_")[0])
            time.sleep(0.005)
            return original(*arguments, **options)
        finally:
            lock.release()

    monkeypatch.setattr(StageReader, "update", read)
    jobs = jobs_of("{camera}.####.npz", FRAMES, cameras=("/camera", "/other"))
    guides = jobs_of("guide.####.npz", FRAMES, purposes=("default", "guide"))
    for guide in guides:
        guide.stage = jobs[0].stage
    mixed = sorted([*jobs, *guides], key=lambda job: job.frame_number)
    results = list(run_jobs(mixed, device="cpu"))
    assert len(results) == 27 and not any(result.error for result in results)
    assert "hdwarp-read" in readers
    for number in FRAMES:  # both scenes were at the right time
        one, other = (np.load(jobs[0].files[0][0].with_name(f"{name}.{number:04d}.npz")) for name in ("camera", "guide"))
        with one, other:
            assert float(one["time"]) == number == float(other["time"])
            assert np.array_equal(one["primId"], other["primId"])


def test_an_interrupted_run_writes_what_is_rendered_and_resume_does_the_rest(jobs_of, tmp_path, many_writers):
    jobs, results, asked = jobs_of("a.####.exr", FRAMES), [], []

    def stop() -> bool:
        asked.append(True)
        return len(asked) > 4

    with pytest.raises(KeyboardInterrupt):
        results.extend(run_jobs(jobs, device="cpu", stop=stop))
    assert numbers(results) == list(FRAMES)[: len(results)] and len(results) == 4
    there = sorted(path.name for path in tmp_path.glob("*.exr"))
    assert there == [result.written[0].name for result in results] and all(exists_complete(tmp_path / name) for name in there)
    assert not list(tmp_path.glob(".hdwarp*")) and not writer_threads()
    again = list(run_jobs(jobs, device="cpu", resume=True))
    assert numbers(again) == list(FRAMES)
    assert [len(result.kept) for result in again] == [1] * len(results) + [0] * (9 - len(results))


def test_interrupted_twice_it_gives_up_files_that_are_not_begun(jobs_of, tmp_path, monkeypatch):
    """One writer: the first frame is done, the second is being written when the second signal comes, the third waits behind it."""
    original_init, original_finish = Writers.__init__, Writing.finish
    asked, interrupted, results, gate = [], [], [], threading.Event()

    def slow(frame, path, *rest, **options):
        assert frame.time != 2.0 or gate.wait(30)
        return write_file(frame, path, *rest, **options)

    def stop() -> bool:
        asked.append(True)
        return len(asked) > 3

    def finish(self):
        if len(asked) > 3 and not interrupted:
            interrupted.append(True)
            raise KeyboardInterrupt
        if interrupted:
            gate.set()
        return original_finish(self)

    monkeypatch.setattr(Writers, "__init__", lambda self, write: original_init(self, write, threads=1))
    monkeypatch.setattr(jobs_module, "write_file", slow)
    monkeypatch.setattr(Writing, "finish", finish)
    with pytest.raises(KeyboardInterrupt):
        results.extend(run_jobs(jobs_of("a.####.npz", FRAMES), device="cpu", stop=stop))
    assert numbers(results) == [1, 2]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.0001.npz", "a.0002.npz", "ball.usda"]


def test_a_consumer_that_leaves_ends_the_threads(jobs_of):
    run = run_jobs(jobs_of("a.####.npz", FRAMES), device="cpu")
    next(run)
    run.close()
    assert not writer_threads()
