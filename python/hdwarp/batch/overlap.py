"""batch.overlap: what runs beside tracing: earlier frames are encoded and written, the next one is read. Threads, and bounds on both.

Encoders let go of the GIL while they pack (OpenEXR, Pillow and zlib all do), so a thread a core leaves none idle while the tracing
thread prepares its launches, waits for them or reads the stage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING

from hdwarp.errors import Error
from hdwarp.launch import thread_count

if TYPE_CHECKING:
    from pxr import Usd

    from hdwarp.frame import Frame
    from hdwarp.scene import Pending, Scene

MOST_BYTES = 1 << 30  # of planes that wait for their files: with more, two frames are in flight and no third


class Writing:
    """The files of one frame on their way to the disk."""

    def __init__(self, size: int) -> None:
        self.size = size  # bytes of planes. The planes themselves are held by the files still to write, and by nobody else
        self.paths: list[Path] = []
        self.futures: list[Future[bool]] = []

    @property
    def done(self) -> bool:
        return all(future.done() for future in self.futures)

    def finish(self) -> tuple[list[Path], str | None]:
        """Wait; (files written, error of the first that was not). Raises what is no `Error`: a defect is not a frame's failure."""
        wait(self.futures)
        written, error = [], None
        for path, future in zip(self.paths, self.futures, strict=True):
            try:
                if future.result():
                    written.append(path)
            except Error as failure:
                error = error or str(failure)
        return written, error


class Writers:
    """Threads that encode and write, as many as there are cores; each file is one piece of work."""

    def __init__(self, write: Callable[[Frame, Path, str | None], object], *, threads: int | None = None) -> None:
        self._write = write
        threads = threads or thread_count()
        self.most_frames = threads + 1  # one a thread, and the next at hand when the first of them is done
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="hdwarp-write")  # starts threads as they are needed
        self._cancelled = False

    def submit(self, frame: Frame, files: Sequence[tuple[Path, str | None]]) -> Writing:
        """Start to write ``files`` (path, the one var it holds or None for all) of ``frame``, which nobody may change from here on."""
        writing = Writing(sum(array.nbytes for array in frame.arrays.values()))
        for path, name in files:
            writing.paths.append(path)
            writing.futures.append(self._executor.submit(self._one, writing, frame, path, name))
        return writing

    def _one(self, writing: Writing, frame: Frame, path: Path, name: str | None) -> bool:
        """True when written; False where another file of the frame has failed already, or the run was given up."""
        if self._cancelled or any(future.done() and future.exception() is not None for future in writing.futures):
            return False
        self._write(frame, path, name)
        return True

    def is_full(self, waiting: Sequence[Writing]) -> bool:
        """Whether one of ``waiting`` has to be finished before another frame may be rendered."""
        if len(waiting) < 2:
            return len(waiting) >= self.most_frames
        next_size = max(writing.size for writing in waiting)
        return len(waiting) >= self.most_frames or sum(writing.size for writing in waiting) + next_size > MOST_BYTES

    def cancel(self) -> None:
        """Leave out the files that no thread has begun."""
        self._cancelled = True

    def close(self) -> None:
        """Leave out what is not begun and wait for the rest: afterwards no thread writes."""
        self.cancel()
        self._executor.shutdown(wait=True)


class Reader:
    """Reads the next time of a scene on a thread of its own. Between `start` and `take` nothing else may read or edit the stage: the
    caller traces meanwhile, and what is traced are device tables."""

    def __init__(self) -> None:
        self._executor: ThreadPoolExecutor | None = None  # made when first needed: a single frame needs none
        self._reading: tuple[Scene, Usd.TimeCode, Future[Pending]] | None = None

    def start(self, scene: Scene, time: Usd.TimeCode) -> None:
        """Begin to read, unless a reading that nobody took is under way."""
        if self._reading is not None:
            return
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, thread_name_prefix="hdwarp-read")
        self._reading = (scene, time, self._executor.submit(scene.read, time))

    def take(self, scene: Scene | None, time: Usd.TimeCode) -> Pending | None:
        """What was read ahead for this scene and time, if it was. Waits for any reading: the stage is the caller's again. Raises what
        reading raised."""
        if self._reading is None:
            return None
        wait([self._reading[2]])
        (of_scene, at, future), self._reading = self._reading, None
        return future.result() if of_scene is scene and at == time else None

    def close(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=True)
