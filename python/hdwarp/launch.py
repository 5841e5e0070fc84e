"""launch: where and how kernels are compiled and run: devices, compiler options with their fallback, thread pool, strided launches."""

from __future__ import annotations

import copy
import functools
import itertools
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from queue import SimpleQueue

import warp as wp

from hdwarp.errors import ArgumentError

# Without -unroll-full-max-count=1 every 16-lane loop is unrolled before LLVM's loop vectoriser sees it, and stays scalar: 3x.
_FLAGS = " ".join(
    (
        "-march=native",
        "-mllvm=-inline-threshold=100000",
        "-mllvm=-inline-cold-callsite-threshold=100000",
        "-mllvm=-unroll-full-max-count=1",
    )
)

LANE_OPTIONS: dict[str, object] = {"max_unroll": 1, "cpu_compiler_flags": _FLAGS}
"""``module_options`` of every kernel with lane loops. Warp's own unrolling (``max_unroll``) would undo the flags and compile for longer."""

on_compile: Callable[[str], None] | None = None
"""Called once a process, with the kernel's name, when the first kernel that is not in Warp's cache is about to be compiled (seconds)."""

Step = tuple[wp.Kernel, Sequence[object]]

GRAIN = 64  # jobs below which waking another thread is not worth it, unless the caller knows better

_compile_lock = threading.Lock()
_announced = False
_ready: weakref.WeakKeyDictionary[wp.Kernel, set[str]] = weakref.WeakKeyDictionary()


def find_device(device: str | wp.Device | None) -> wp.Device:
    """Warp device of a name; None: the first CUDA device, else the CPU. Raises ArgumentError naming what exists."""
    if isinstance(device, wp.Device):
        return device
    wp.init()
    names = [str(item) for item in wp.get_devices()]
    if device is None:
        return wp.get_device("cuda:0" if "cuda:0" in names else "cpu")
    if device == "cuda" and "cuda:0" in names:
        device = "cuda:0"
    if device not in names:
        raise ArgumentError(f"device {device!r} does not exist here; devices: {', '.join(names)}")
    return wp.get_device(device)


def launch(
    kernel: wp.Kernel,
    count: int,
    inputs: Sequence[object],
    outputs: Sequence[object] = (),
    *,
    device: wp.Device | str,
    grain: int = GRAIN,
) -> None:
    """Run ``count`` jobs. The kernel's first three parameters are ``first, step, count``; a thread does one job:
    ``job = first + wp.tid() * step; if job >= count: return``. On the CPU the jobs are dealt to the pool in strides, and done on return.

    ``grain``: jobs that are worth a thread of their own. Kernels that use Warp's tiles are not for this: their storage is shared by
    all threads on x86.
    """
    if count <= 0:
        return
    device = wp.get_device(device)
    prepare(kernel, device)
    share_count = min(thread_count(), max(1, count // max(grain, 1))) if device.is_cpu else 1
    if wp.config.mode == "debug":
        share_count = 1  # debug kernels share one static pointer (Warp's tile storage) between threads
    if share_count == 1:
        wp.launch(kernel, dim=count, inputs=[0, 1, count, *inputs], outputs=list(outputs), device=device)
        return
    size = -(-count // share_count)
    arguments = [0, share_count, count, *inputs]
    command = wp.launch(kernel, dim=size, inputs=arguments, outputs=list(outputs), device=device, record_cmd=True)
    shares = [command.launch, *(_part(command, first, count).launch for first in range(1, share_count))]
    _pool().run(shares)


class Pipeline:
    """Kernels that pixels pass through one after another. A thread takes a stretch of them through all kernels while it lies in its
    caches; whichever thread is free takes the next. Arguments are packed once: arrays may change between runs, their addresses may not.
    """

    def __init__(self, steps: Sequence[Step], stretches: Sequence[Sequence[tuple[int, int]]], *, device: wp.Device | str) -> None:
        """``steps``: kernels as for `launch`, with the arguments that follow ``first, step, count``. ``stretches``: the jobs of each,
        (first, last) a step; steps of one stretch may read what earlier ones wrote for it."""
        self._device = wp.get_device(device)
        for kernel, _ in steps:
            prepare(kernel, device)
        packed = [wp.launch(kernel, 1, [0, 1, 1, *arguments], device=device, record_cmd=True) for kernel, arguments in steps]
        self._stretches: list[list[wp.Launch]] = []
        for stretch in stretches:
            parts = []
            for command, (first, last) in zip(packed, stretch, strict=True):
                if first < last:
                    parts.append(_part(command, first, last))
                    parts[-1].set_dim(last - first)
            self._stretches.append(parts)

    def run(self) -> None:
        """Run everything; on the CPU it is done on return."""
        threads = thread_count() if self._device.is_cpu and wp.config.mode != "debug" else 1
        _pool().run([functools.partial(_launch_all, parts) for parts in self._stretches], threads)


def cut(count: int, least: int, device: wp.Device | str) -> list[tuple[int, int]]:
    """Stretches (first, last) of ``count`` things for a `Pipeline`, of ``least`` or more: large ones first, so that at the end no thread
    waits long for another."""
    ends, threads = [0], thread_count() if wp.get_device(device).is_cpu else 1
    while threads > 1 and count - ends[-1] > least:
        ends.append(ends[-1] + max((count - ends[-1]) // (2 * threads), least, 1))
    return list(itertools.pairwise([*ends, count]))


def _part(command: wp.Launch, first: int, last: int) -> wp.Launch:
    """The same launch from another job on."""
    part = copy.copy(command)
    part.params, part.fwd_args = list(command.params), list(command.fwd_args)
    part.set_param_at_index(0, first)
    part.set_param_at_index(2, last)
    return part


def _launch_all(commands: Sequence[wp.Launch]) -> None:
    for command in commands:
        command.launch()


def prepare(kernel: wp.Kernel, device: wp.Device | str) -> None:
    """Compile and load a kernel's module unless that is done. Called by `launch`; call it ahead to choose when the compiler runs.

    Where the bundled compiler refuses our flags, the module falls back to Warp's own: slower, same results.
    """
    device = wp.get_device(device)
    if device.alias in _ready.get(kernel, ()):
        return
    with _compile_lock:
        module, block_dim = kernel.module, 1 if device.is_cpu else 256
        if is_cold(kernel, device):
            _announce(kernel.key)
        try:
            module.load(device, block_dim)
        except Exception:
            if module.options.get("cpu_compiler_flags") != _FLAGS or device.is_cuda:
                raise
            module.options["cpu_compiler_flags"] = LANE_OPTIONS["cpu_compiler_flags"] = None
            module.mark_modified()
            module.load(device, block_dim)
        _ready.setdefault(kernel, set()).add(device.alias)


def is_cold(kernel: wp.Kernel, device: wp.Device | str) -> bool:
    """True if launching the kernel would start a compiler, as far as Warp lets one know."""
    device = wp.get_device(device)
    module, block_dim = kernel.module, 1 if device.is_cpu else 256
    try:
        if (device.context, block_dim) in module.execs:
            return False
        folder = os.path.join(wp.config.kernel_cache_dir, module.get_module_identifier(block_dim))
        return not os.path.exists(os.path.join(folder, module._get_compile_output_name(device, block_dim=block_dim)))
    except (AttributeError, TypeError):  # not a public interface: with another Warp, compile without a word
        return False


def flags_are_accepted() -> bool:
    """Self-test for `hdwarp doctor`: a tiny kernel compiles with our flags. False: kernels run with Warp's own flags, slower."""

    @wp.kernel(enable_backward=False, module="unique", module_options=dict(LANE_OPTIONS, cpu_compiler_flags=_FLAGS))
    def flags_probe(out: wp.array[wp.float32]):
        for lane in range(16):
            out[lane] = 1.0

    try:
        flags_probe.module.load(wp.get_device("cpu"), 1)
    except Exception:
        return False
    return True


def thread_count() -> int:
    """Threads that CPU launches are dealt to, the calling one included: HDWARP_THREADS, else the CPUs this process may use."""
    try:
        wanted = int(os.environ.get("HDWARP_THREADS", ""))
    except ValueError:
        wanted = 0
    if wanted > 0:
        return wanted
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _announce(name: str) -> None:
    global _announced
    if not _announced and on_compile is not None:
        _announced = True
        on_compile(name)


class _Pool:
    """Threads that wait for parts of launches. Warp releases the GIL while a kernel runs."""

    def __init__(self) -> None:
        self._tasks: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._size = 0
        self._lock = threading.Lock()
        self._inside = threading.local()

    def run(self, jobs: Sequence[Callable[[], None]], threads: int | None = None) -> None:
        """Call every job and return when all are done; the first error raised by any of them is raised here.

        ``threads``: the most that may work, None: one a job. Whoever is free takes the next job. The calling thread is one of them: it
        never waits for one that has not woken up yet. Any thread may call; a job that calls gets its own jobs done in its own thread.
        """
        todo = iter(jobs)  # hands out every job once, whichever threads ask
        done: SimpleQueue[BaseException | None] = SimpleQueue()

        def take() -> None:
            for job in todo:
                try:
                    job()
                except BaseException as error:
                    done.put(error)
                else:
                    done.put(None)

        helpers = len(jobs) - 1 if threads is None else min(threads, len(jobs)) - 1
        if getattr(self._inside, "worker", False):
            helpers = 0
        self._grow(helpers)
        for _ in range(helpers):
            self._tasks.put(take)
        take()
        errors = [error for error in (done.get() for _ in jobs) if error is not None]
        if errors:
            raise errors[0]

    def _grow(self, size: int) -> None:
        if self._size >= size:
            return
        with self._lock:
            for _ in range(self._size, size):
                threading.Thread(target=self._work, name="hdwarp", daemon=True).start()
            self._size = max(self._size, size)

    def _work(self) -> None:
        self._inside.worker = True
        while True:
            take = self._tasks.get()
            take()
            del take  # nothing of a finished launch is kept alive while waiting


_the_pool: _Pool | None = None
_pool_lock = threading.Lock()


def _pool() -> _Pool:
    global _the_pool
    if _the_pool is None:
        with _pool_lock:
            if _the_pool is None:
                _the_pool = _Pool()
    return _the_pool


def _forget_pool() -> None:
    global _the_pool
    _the_pool = None  # a forked child has none of its parent's threads


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
