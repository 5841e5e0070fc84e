"""writeback.atomic: a file appears whole or not at all. Every writer of this room goes through here.

The bytes go to a hidden temporary file beside the target, which takes the target's name when it is complete. Whatever stops the
writing, an exception or Ctrl-C, removes the temporary file and leaves an older target as it was.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from hdwarp.errors import OutputError

_CURES = {
    errno.EACCES: "choose another place or change the permissions",
    errno.EPERM: "choose another place or change the permissions",
    errno.EROFS: "the file system is read-only; choose another place",
    errno.ENOSPC: "the disk is full; free some space or choose another place",
    errno.EDQUOT: "the disk quota is used up; free some space or choose another place",
    errno.EFBIG: "the file would be larger than allowed; raise the limit (ulimit -f) or write fewer AOVs",
    errno.ENOTDIR: "a part of the path is a file, not a folder; choose another place",
    errno.EEXIST: "a part of the path is a file, not a folder; choose another place",
    errno.EISDIR: "it is a folder; add a file name",
    errno.ENAMETOOLONG: "the name is too long; shorten it",
    errno.ELOOP: "its symbolic links form a loop",
}


def output_error(path: str | os.PathLike[str], error: OSError) -> OutputError:
    """An operating system's refusal, with the path and what to do about it."""
    reason = error.strerror or str(error) or type(error).__name__
    cure = _CURES.get(error.errno)
    result = OutputError(f"cannot write {os.fspath(path)}: {reason}" + (f"; {cure}" if cure else ""))
    result.errno = error.errno
    return result


def check_target(path: str | os.PathLike[str], *, overwrite: bool = True) -> None:
    """Raise the OutputError that writing ``path`` would meet, as far as one can tell without writing: worth a call before a long render."""
    target = Path(path)
    try:
        existing = os.stat(target)
    except (FileNotFoundError, NotADirectoryError):
        existing = None
    except OSError as error:  # a name too long, a loop of links, a folder that must not be searched
        raise output_error(path, error) from None
    if existing is not None:
        if stat.S_ISDIR(existing.st_mode):
            raise output_error(path, IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR)))
        if not stat.S_ISREG(existing.st_mode):
            raise OutputError(f"cannot write {os.fspath(path)}: it is a device, pipe or socket; name a file")
        if not overwrite:
            raise OutputError(f"{os.fspath(path)} exists; pass --overwrite to replace it or --resume to keep it (overwrite=True in Python)")
        if not os.access(target, os.W_OK):  # replacing needs only a writable folder, but whoever locked the file meant it
            raise OutputError(f"cannot write {os.fspath(path)}: the file is read-only; change its permissions or choose another name")
    parent = Path(os.path.realpath(target)).parent
    while not os.path.lexists(parent) and parent != parent.parent:
        parent = parent.parent
    if not parent.is_dir():
        raise output_error(path, NotADirectoryError(errno.ENOTDIR, f"{parent} is not a folder"))
    if not os.access(parent, os.W_OK | os.X_OK):
        raise output_error(path, PermissionError(errno.EACCES, f"no permission to write in {parent}"))


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], *, overwrite: bool = True) -> Iterator[Path]:
    """Yield the path of an empty temporary file with the target's suffix; when the block ends well it becomes ``path``.

    ``overwrite=False`` refuses a target that exists, also one that appears while the block runs. Missing folders are made. A symbolic
    link is written through. A replaced file keeps its permissions, a new one gets the user's usual ones.
    """
    check_target(path, overwrite=overwrite)
    target = Path(os.path.realpath(path))  # the link itself stays
    temporary = target.with_name(f".hdwarp-{secrets.token_hex(6)}.tmp{target.suffix}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # 0o666 less the umask, which tempfile would not give
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        yield temporary
        _move(temporary, target, overwrite)
    except OutputError:
        raise
    except OSError as error:
        raise output_error(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


@contextlib.contextmanager
def writing(path: str | os.PathLike[str], *, overwrite: bool = True) -> Iterator[BinaryIO]:
    """`replacing` with the temporary file open for writing."""
    with replacing(path, overwrite=overwrite) as temporary, open(temporary, "wb") as file:
        yield file
        # Closed before it is moved: what the disk refuses, it refuses here.


def write_bytes(path: str | os.PathLike[str], data: bytes | memoryview, *, overwrite: bool = True) -> None:
    with writing(path, overwrite=overwrite) as file:
        file.write(data)


def exists_complete(path: str | os.PathLike[str]) -> bool:
    """Whether ``path`` is a finished output that ``--resume`` may keep: a file whose first and last bytes are those of its format.

    Our own files are whole by construction; this guards against copies cut short and other programs' leftovers.
    """
    try:
        with open(path, "rb") as file:
            head = file.read(8)
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 12))
            tail = file.read()
        suffix = Path(path).suffix.lower()
        if suffix == ".exr":
            return head.startswith(b"\x76\x2f\x31\x01") and _exr_complete(path)
        if suffix == ".png":
            return head == b"\x89PNG\r\n\x1a\n" and tail[4:8] == b"IEND"
        if suffix in (".jpg", ".jpeg"):
            return head.startswith(b"\xff\xd8") and tail.endswith(b"\xff\xd9")
        if suffix == ".npz":
            return zipfile.is_zipfile(path)
        return size > 0
    except OSError:
        return False


def _exr_complete(path: str | os.PathLike[str]) -> bool:
    """The last chunk an EXR's offset table points at lies inside the file. Opening it reads headers and tables, no pixels."""
    from hdwarp.writeback.exr import is_complete

    return is_complete(path)


def _move(temporary: Path, target: Path, overwrite: bool) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
    if overwrite:
        os.replace(temporary, target)
        return
    try:
        os.link(temporary, target)  # unlike a rename it fails if another process made the target meanwhile
    except FileExistsError:
        raise OutputError(f"{target} appeared while it was being written; pass --overwrite to replace it or --resume to keep it") from None
    except OSError:  # a file system without hard links: the check at the start has to do
        check_target(target, overwrite=False)
        os.replace(temporary, target)
