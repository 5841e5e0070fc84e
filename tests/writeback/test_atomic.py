"""A file appears whole or not at all."""

from __future__ import annotations

import errno
import os
import resource
import signal
import stat
import tempfile

import numpy as np
import pytest

from hdwarp.errors import OutputError
from hdwarp.writeback import atomic, exr, npz, png
from hdwarp.writeback.layer import frame_to_layer

WRITERS = {
    "exr": lambda frame, path, **options: exr.write_exr(frame, path, **options),
    "png": lambda frame, path, **options: png.write_png(frame, path, "color", **options),
    "jpg": lambda frame, path, **options: png.write_jpeg(frame, path, "color", **options),
    "npz": lambda frame, path, **options: npz.write_npz(frame, path, **options),
    "usda": lambda frame, path, **options: frame_to_layer(frame, path, **options),
    "usdc": lambda frame, path, **options: frame_to_layer(frame, path, **options),
}


def test_the_file_is_there_only_at_the_end(tmp_path):
    target = tmp_path / "new" / "folder" / "a.bin"
    with atomic.writing(target) as file:
        file.write(b"whole")
        file.flush()
        assert not target.exists()
    assert target.read_bytes() == b"whole"
    assert os.listdir(target.parent) == ["a.bin"]


@pytest.mark.parametrize("stop", [RuntimeError("encoder"), KeyboardInterrupt(), SystemExit(1)])
@pytest.mark.parametrize("before", [None, b"older"])
def test_an_interrupted_write_leaves_nothing_and_touches_nothing(tmp_path, stop, before):
    target = tmp_path / "a.exr"
    if before is not None:
        target.write_bytes(before)
    with pytest.raises(type(stop)), atomic.writing(target) as file:
        file.write(b"half")
        raise stop
    assert os.listdir(tmp_path) == ([] if before is None else ["a.exr"])
    assert before is None or target.read_bytes() == before


@pytest.mark.parametrize("suffix", WRITERS)
@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError(errno.ENOSPC, "No space left on device")])
def test_no_writer_leaves_a_half_file(tmp_path, monkeypatch, frame, suffix, stop):
    """Stopped where it hurts most: the bytes are written, the file has not its name yet."""

    def stopped(*_):
        raise stop

    monkeypatch.setattr(atomic, "_move", stopped)
    with pytest.raises(OutputError if isinstance(stop, OSError) else stop) as caught:
        WRITERS[suffix](frame, tmp_path / f"a.{suffix}")
    assert os.listdir(tmp_path) == []
    if isinstance(stop, OSError):
        assert "disk is full" in str(caught.value)
        assert caught.value.errno == errno.ENOSPC


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_disk_that_fills_up_is_noticed(tmp_path, suffix, fakes):
    """With a real limit on the file's size, also one that cuts only the last bytes (OpenEXR itself would not tell)."""
    rng = np.random.default_rng(0)
    image = rng.random((40, 50, 4)).astype(np.float32)
    frame = fakes.make_frame({"color": image})
    whole = tmp_path / f"whole.{suffix}"
    WRITERS[suffix](frame, whole)
    old, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        for limit in (whole.stat().st_size - 3, whole.stat().st_size // 2):
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, old[1]))
            with pytest.raises(OutputError, match=f"cut.{suffix}"):
                WRITERS[suffix](frame, tmp_path / f"cut.{suffix}")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, handler)
    assert os.listdir(tmp_path) == [f"whole.{suffix}"]


def test_overwrite_false_refuses_what_exists(tmp_path):
    target = tmp_path / "a.exr"
    target.write_bytes(b"older")
    with pytest.raises(OutputError, match="--overwrite.*--resume"), atomic.writing(target, overwrite=False):
        pass
    with atomic.writing(tmp_path / "b.exr", overwrite=False) as file:
        file.write(b"new")
    assert target.read_bytes() == b"older"
    assert (tmp_path / "b.exr").read_bytes() == b"new"


def test_overwrite_false_refuses_what_appears_meanwhile(tmp_path):
    target = tmp_path / "a.exr"
    with pytest.raises(OutputError, match="appeared"), atomic.writing(target, overwrite=False) as file:
        file.write(b"mine")
        target.write_bytes(b"theirs")
    assert target.read_bytes() == b"theirs"
    assert os.listdir(tmp_path) == ["a.exr"]


def test_overwrite_false_without_hard_links(tmp_path, monkeypatch):
    def refused(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    atomic.write_bytes(tmp_path / "a", b"x", overwrite=False)
    assert os.listdir(tmp_path) == ["a"]


def test_new_files_follow_the_umask_and_replaced_ones_keep_their_permissions(tmp_path):
    before = os.umask(0o027)
    try:
        atomic.write_bytes(tmp_path / "new", b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    (tmp_path / "new").chmod(0o600)
    atomic.write_bytes(tmp_path / "new", b"again")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o600


def test_a_link_is_written_through(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link.exr").symlink_to(tmp_path / "real" / "a.exr")
    atomic.write_bytes(tmp_path / "link.exr", b"x")
    assert (tmp_path / "link.exr").is_symlink()
    assert (tmp_path / "real" / "a.exr").read_bytes() == b"x"


def _folder(path):
    path.mkdir()
    return path


def _below_a_file(path):
    path.write_bytes(b"")
    return path / "deep" / "a.exr"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_folder, "folder; add a file name"),
        (_below_a_file, "not a folder"),
        (lambda path: path.with_name("x" * 300 + ".exr"), "shorten"),
        (lambda _: "/dev/null", "device"),
        (lambda _: "/proc/nowhere/a.exr", "cannot write"),
    ],
)
def test_targets_that_cannot_be_files(tmp_path, make, words):
    path = make(tmp_path / "thing")
    with pytest.raises(OutputError, match=words) as caught:
        atomic.write_bytes(path, b"x")
    assert str(path) in str(caught.value)
    assert isinstance(caught.value, OSError)


@pytest.mark.parametrize("locked", ["folder", "file"])
def test_read_only_targets(tmp_path, monkeypatch, locked):
    """Asked through os.access, for the superuser may write anywhere."""
    folder = _folder(tmp_path / "locked")
    target = folder / "a.exr"
    if locked == "file":
        target.write_bytes(b"older")
    refused = folder if locked == "folder" else target
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: os.fspath(path) != os.fspath(refused) and allowed(path, mode))
    with pytest.raises(OutputError, match="permission"):
        atomic.write_bytes(target, b"x")
    with pytest.raises(OutputError, match="permission"):
        atomic.check_target(target)


def test_an_unprivileged_user_gets_the_same_words():
    """The real thing: a child process that is not the superuser, in a folder it may only read."""
    if os.geteuid() != 0:
        pytest.skip("only the superuser can become another user")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
                atomic.write_bytes(os.path.join(folder, "a.exr"), b"x")
            except OutputError as error:
                os.write(writing, str(error).encode())
            finally:
                os._exit(0)
        os.close(writing)
        os.waitpid(child, 0)
        with open(reading) as pipe:
            assert f"cannot write {folder}/a.exr: no permission to write in {folder}; choose another place" in pipe.read()
        assert os.listdir(folder) == []


def test_exists_complete_knows_cut_files(tmp_path, frame):
    for suffix, write in WRITERS.items():
        whole = tmp_path / f"whole.{suffix}"
        write(frame, whole)
        assert atomic.exists_complete(whole), suffix
        if not suffix.startswith("usd"):
            cut = tmp_path / f"cut.{suffix}"
            for size in (whole.stat().st_size - 1, whole.stat().st_size // 2, 20, 5, 0):
                cut.write_bytes(whole.read_bytes()[:size])
                assert not atomic.exists_complete(cut), (suffix, size)
    assert not atomic.exists_complete(tmp_path / "none.exr")
    assert not atomic.exists_complete(tmp_path)


def test_exists_complete_reads_single_part_files_of_others(tmp_path):
    import OpenEXR

    path = tmp_path / "one.exr"
    header = {"compression": OpenEXR.ZIPS_COMPRESSION, "type": OpenEXR.scanlineimage}
    OpenEXR.File(header, {"Z": np.random.default_rng(0).random((33, 7)).astype(np.float32)}).write(str(path))
    assert atomic.exists_complete(path)
    path.write_bytes(path.read_bytes()[:-1])
    assert not atomic.exists_complete(path)
