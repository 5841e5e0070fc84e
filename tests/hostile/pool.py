"""Keeps a worker alive over many hostile stages, watches its time, and starts another where one died or hung."""

from __future__ import annotations

import json
import select
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
START_LIMIT = 240.0  # s: the first worker may have kernels to compile
JOBS = 400  # a worker serves: Usd never gives back all that it has read


class Failure(AssertionError):
    """A hostile stage got the better of hdWarp. ``kind``: "crash", "hang", or the type of the exception."""

    def __init__(self, kind: str, text: str) -> None:
        self.kind = kind
        frames = [line for line in text.partition("Current thread")[2].splitlines() if "File" in line]
        # USD parses and composes below these two, and a dying process says where it was.
        self.is_of_usd = kind == "crash" and bool(frames) and frames[0].endswith((" in _opened", " in _open_layer"))
        super().__init__(f"{kind}: {text}")


@dataclass
class Pool:
    """One worker at a time."""

    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="hdwarp-hostile-")))
    worker: subprocess.Popen | None = None
    done: int = 0
    count: int = 0

    def part(self, layer: str, *, sync: bool = True, times: tuple[float, ...] = (), limit: float = 40.0) -> dict:
        """What became of a hostile layer beside the healthy stage. Raises Failure."""
        return self.bytes(layer.encode(), ".usda", {"how": "part", "sync": sync, "times": list(times)}, limit)

    def file(self, data: bytes, suffix: str, *, limit: float = 40.0) -> dict:
        """What became of a hostile file, opened and referenced."""
        return self.bytes(data, suffix, {"how": "file"}, limit)

    def bytes(self, data: bytes, suffix: str, job: dict, limit: float) -> dict:
        self.count += 1
        path = self.folder / f"hostile{self.count}{suffix}"  # a name of its own: Usd keeps layers by name
        path.write_bytes(data)
        try:
            answer = self._ask({**job, "path": str(path)}, limit)
        finally:
            path.unlink()
        if not answer["ok"]:
            raise Failure(answer["type"], answer["failure"])
        return answer

    def _ask(self, job: dict, limit: float) -> dict:
        if self.worker is None or self.done >= JOBS:
            self.close()
            self._start()
        self.done += 1
        try:
            self.worker.stdin.write(json.dumps(job) + "\n")
            self.worker.stdin.flush()
        except BrokenPipeError:
            pass  # it has died: `_answer` says how
        return self._answer(limit)

    def _start(self) -> None:
        command = [sys.executable, "-X", "faulthandler", "-m", "tests.hostile.worker", str(self.folder)]
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 (kept as long as the worker)
        self.worker = subprocess.Popen(
            command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True, bufsize=1
        )
        self.done = 0
        self._answer(START_LIMIT)

    def _answer(self, limit: float) -> dict:
        ready, _, _ = select.select([self.worker.stdout], [], [], limit)
        line = self.worker.stdout.readline() if ready else ""
        if line:
            return json.loads(line)
        if not ready:
            self.worker.send_signal(signal.SIGABRT)  # faulthandler says where it is
        code = self.worker.wait(60)
        self.errors.seek(0)
        told = self.errors.read()[-6000:]
        self.worker = None
        raise Failure("hang" if not ready else "crash", (f"no answer after {limit} s" if not ready else f"exit code {code}") + f"\n{told}")

    def close(self) -> None:
        """End the worker."""
        if self.worker is not None:
            self.worker.stdin.close()
            try:
                self.worker.wait(10)
            except subprocess.TimeoutExpired:
                self.worker.kill()
                self.worker.wait()
            self.worker = None
