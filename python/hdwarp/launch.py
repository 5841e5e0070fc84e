"""launch: how kernels are compiled and run: compiler options with their fallback, the persistent thread pool, strided launches."""

from __future__ import annotations

import copy
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue

import warp as wp

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

GRAIN = 64  # jobs below which waking another thread is not worth it, unless the caller knows better

_compile_lock = threading.Lock()
_announced = False
_ready: weakref.WeakKeyDictionary[wp.Kernel, set[str]] = weakref.WeakKeyDictionary()


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
    shares = [command.launch]
    for first in range(1, share_count):
        share = copy.copy(command)  # the arguments are packed once; a share only differs in where it starts
        share.params, share.fwd_args = list(command.params), list(command.fwd_args)
        share.set_param_at_index(0, first)
        shares.append(share.launch)
    _pool().run(shares)


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
    """Threads that wait for shares of launches. Warp releases the GIL while a kernel runs."""

    def __init__(self) -> None:
        self._tasks: SimpleQueue[tuple[SimpleQueue, SimpleQueue]] = SimpleQueue()  # (shares not begun, outcomes)
        self._size = 0
        self._lock = threading.Lock()
        self._inside = threading.local()

    def run(self, shares: Sequence[Callable[[], None]]) -> None:
        """Call every share and return when all are done; the first error raised by any of them is raised here.

        The calling thread takes the first share, and then those that no thread of the pool has begun: these may be busy, or wait for a
        core or the GIL that something else has. Any thread may call; a share that calls gets its own shares done in its own thread.
        """
        if getattr(self._inside, "worker", False):
            for share in shares:
                share()
            return
        self._grow(len(shares) - 1)
        waiting: SimpleQueue[Callable[[], None]] = SimpleQueue()
        done: SimpleQueue[BaseException | None] = SimpleQueue()
        for share in shares[1:]:
            waiting.put(share)
            self._tasks.put((waiting, done))
        errors: list[BaseException | None] = []
        share: Callable[[], None] | None = shares[0]
        while share is not None:
            errors.append(_attempt(share))
            share = _next(waiting)
        errors += [done.get() for _ in range(len(shares) - len(errors))]
        for error in errors:
            if error is not None:
                raise error

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
            waiting, done = self._tasks.get()
            share = _next(waiting)
            if share is not None:
                done.put(_attempt(share))
            del share, waiting, done  # nothing of a finished launch is kept alive while waiting


def _next(waiting: SimpleQueue[Callable[[], None]]) -> Callable[[], None] | None:
    try:
        return waiting.get_nowait()
    except Empty:
        return None


def _attempt(share: Callable[[], None]) -> BaseException | None:
    try:
        share()
    except BaseException as error:
        return error
    return None


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
