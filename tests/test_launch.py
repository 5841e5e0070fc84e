"""The thread pool and compilation: every job once, errors come back, callers may be threads themselves."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import warp as wp

from hdwarp import launch as launching
from hdwarp.launch import LANE_OPTIONS, launch


@wp.kernel(enable_backward=False, module="unique", module_options=LANE_OPTIONS)
def count_up(first: wp.int32, step: wp.int32, count: wp.int32, amount: wp.int32, out: wp.array[wp.int32]):
    job = first + wp.tid() * step
    if job >= count:
        return
    out[job] += amount


@pytest.mark.parametrize("thread_count", [1, 2, 7])
@pytest.mark.parametrize("jobs", [0, 1, 6, 1003])
def test_every_job_runs_once(monkeypatch, thread_count, jobs, device):
    monkeypatch.setenv("HDWARP_THREADS", str(thread_count))
    out = wp.zeros(1100, dtype=wp.int32, device=device)
    launch(count_up, jobs, [3], [out], device=device, grain=1)
    wp.synchronize_device(device)
    assert np.array_equal(out.numpy(), np.where(np.arange(1100) < jobs, 3, 0))


def test_many_threads_may_launch_at_once(monkeypatch):
    """Eight user threads, each with launches of its own, on a pool of two."""
    monkeypatch.setenv("HDWARP_THREADS", "3")
    arrays = [wp.zeros(500, dtype=wp.int32, device="cpu") for _ in range(8)]

    def work(out):
        for _ in range(20):
            launch(count_up, 500, [1], [out], device="cpu", grain=1)

    users = [threading.Thread(target=work, args=(a,)) for a in arrays]
    for user in users:
        user.start()
    for user in users:
        user.join(timeout=60)
    assert all((a.numpy() == 20).all() for a in arrays)


def test_a_share_may_launch_itself():
    """Shares that use the pool do their part in their own thread: no deadlock."""
    pool, done = launching._pool(), []
    pool.run([lambda: pool.run([lambda: done.append(1)] * 3)] * 4)
    assert len(done) == 12


def test_an_error_of_any_share_is_raised_and_the_rest_finishes():
    pool, done = launching._pool(), []

    def fail():
        raise ValueError("share")

    for shares in ([fail, lambda: done.append(1)], [lambda: done.append(1), fail], [fail, fail]):
        with pytest.raises(ValueError, match="share"):
            pool.run(shares)
    pool.run([lambda: done.append(1)] * 3)  # and the pool goes on
    assert len(done) == 5


def test_wrong_arguments_are_reported(monkeypatch):
    monkeypatch.setenv("HDWARP_THREADS", "2")
    with pytest.raises(RuntimeError):
        launch(count_up, 100, [1], [wp.zeros(100, dtype=wp.float32, device="cpu")], device="cpu", grain=1)


def test_a_cold_compile_is_announced_once(monkeypatch, tmp_path):
    """The hook hears of the first kernel that is not in the cache; a second process finds it there."""
    told = []
    monkeypatch.setattr(launching, "on_compile", told.append)
    monkeypatch.setattr(launching, "_announced", False)
    monkeypatch.setattr(wp.config, "kernel_cache_dir", str(tmp_path))

    def fresh(number):
        @wp.kernel(enable_backward=False, module="unique")
        def announced(first: wp.int32, step: wp.int32, count: wp.int32, out: wp.array[wp.int32]):
            out[0] = number

        return announced

    kernels = [fresh(k) for k in range(2)]
    assert all(launching.is_cold(k, "cpu") for k in kernels)
    for kernel in kernels:
        launching.prepare(kernel, "cpu")
    assert len(told) == 1
    assert "announced" in told[0]
    assert not any(launching.is_cold(k, "cpu") for k in kernels)
    again = fresh(1)
    assert not launching.is_cold(again, "cpu")


def test_a_refused_flag_falls_back(monkeypatch, tmp_path, capfd):
    """A compiler that does not know one of our flags: the kernel runs with Warp's own, and so do those made later."""
    monkeypatch.setattr(wp.config, "kernel_cache_dir", str(tmp_path))
    monkeypatch.setattr(launching, "_FLAGS", "-march=native -mllvm=-no-such-option=1")
    monkeypatch.setitem(LANE_OPTIONS, "cpu_compiler_flags", launching._FLAGS)
    assert not launching.flags_are_accepted()

    @wp.kernel(enable_backward=False, module="unique", module_options=LANE_OPTIONS)
    def falls_back(first: wp.int32, step: wp.int32, count: wp.int32, out: wp.array[wp.int32]):
        out[first + wp.tid() * step] = 5

    out = wp.zeros(4, dtype=wp.int32, device="cpu")
    launch(falls_back, 4, [], [out], device="cpu")
    assert (out.numpy() == 5).all()
    assert LANE_OPTIONS["cpu_compiler_flags"] is None


def test_our_flags_are_accepted_here():
    assert launching.flags_are_accepted()


@wp.kernel(enable_backward=False, module="unique", module_options=LANE_OPTIONS)
def add_before(first: wp.int32, step: wp.int32, count: wp.int32, source: wp.array[wp.int32], out: wp.array[wp.int32]):
    job = first + wp.tid() * step
    if job >= count:
        return
    out[2 * job] = source[job] + 1
    out[2 * job + 1] = source[job] + 2


@pytest.mark.parametrize("thread_count", [1, 2, 7])
def test_a_pipeline_takes_every_stretch_through_all_steps(monkeypatch, thread_count, device):
    """The second step reads what the first wrote for the same stretch; a stretch may be empty for one of them."""
    monkeypatch.setenv("HDWARP_THREADS", str(thread_count))
    source, out = wp.zeros(100, dtype=wp.int32, device=device), wp.zeros(200, dtype=wp.int32, device=device)
    stretches = [((a, b), (a, b)) for a, b in launching.cut(100, 3, device)] + [((0, 0), (0, 0))]
    pipeline = launching.Pipeline([(count_up, [5, source]), (add_before, [source, out])], stretches, device=device)
    for run in (1, 2):
        pipeline.run()
        wp.synchronize_device(device)
        assert np.array_equal(out.numpy(), np.tile([5 * run + 1, 5 * run + 2], 100))


@pytest.mark.parametrize("thread_count", [1, 2, 7])
@pytest.mark.parametrize(("count", "least"), [(0, 0), (5, 0), (1, 1), (5, 16), (60, 1), (1000, 64)])
def test_stretches_cover_everything_once(monkeypatch, thread_count, count, least):
    monkeypatch.setenv("HDWARP_THREADS", str(thread_count))
    stretches = launching.cut(count, least, "cpu")
    assert [i for first, last in stretches for i in range(first, last)] == list(range(count))
    assert all(last - first >= least for first, last in stretches[:-1])


def test_a_caller_does_not_wait_for_a_thread_that_sleeps(monkeypatch):
    """Both jobs are the caller's if no other thread comes for them."""
    pool = launching._Pool()
    monkeypatch.setattr(pool, "_grow", lambda size: None)
    done = []
    pool.run([lambda: done.append(1), lambda: done.append(2)])
    assert done == [1, 2]
