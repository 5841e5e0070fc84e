"""errors: the exceptions hdWarp raises and the diagnostics it collects. Every message names the thing, the reason and the cure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum


class Error(Exception):
    """Base of everything hdWarp raises on purpose."""


class NotSupported(Error, NotImplementedError):
    """An option the interface offers and this version does not carry out yet; the message names it."""


class StageError(Error, ValueError):
    """A stage, or one prim of it, that cannot be read. ``path`` is the prim's path, or the file's name."""

    def __init__(self, path: object, message: str) -> None:
        self.path = str(path)
        self.reason = message
        super().__init__(f"<{self.path}>: {message}")


class OutOfMemory(Error, MemoryError):
    """A stage or a picture that does not fit into memory."""


class ArgumentError(Error, ValueError):
    """A value given to hdWarp that it cannot use: says what was given and what would do."""


class OutputError(Error, OSError):
    """A file that cannot be written."""


class Severity(StrEnum):
    NOTE = "note"  # worth knowing; the picture is as documented
    WARNING = "warning"  # something authored is not drawn, or not drawn as authored
    ERROR = "error"  # something is broken and was skipped; ``strict`` raises


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing to tell about one prim. ``code`` is a stable kebab-case word to filter by, ``path`` a prim path or file name."""

    path: str
    code: str
    severity: Severity
    message: str

    def __str__(self) -> str:
        return f"{self.severity}: <{self.path}>: {self.message} [{self.code}]"

    def as_dict(self) -> dict[str, str]:
        return asdict(self)


class Told(tuple[Diagnostic, ...]):
    """Diagnostics that print one a line."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "nothing to tell"


@dataclass(frozen=True, slots=True)
class SharedDiagnostic(Diagnostic):
    """Of something that native instances have in common: every one of them has it, the first tells it. ``source``: equal in all."""

    source: str = ""


def _without_common_end(*paths: str) -> list[str]:
    parts = [path.split("/") for path in paths]
    while all(parts) and len({names[-1] for names in parts}) == 1:
        for names in parts:
            names.pop()
    return ["/".join(names) for names in parts]


def _renamed(path: str, old: str, new: str) -> str:
    return new + path[len(old) :] if path == old or path.startswith(f"{old}/") else path


class Diagnostics:
    """The diagnostics of one scene or render, in the order found, each reported once."""

    def __init__(self) -> None:
        self._items: dict[Diagnostic, None] = {}

    def add(self, path: object, code: str, severity: Severity | str, message: str) -> None:
        self._items.setdefault(Diagnostic(str(path), code, Severity(severity), message))

    def note(self, path: object, code: str, message: str) -> None:
        self.add(path, code, Severity.NOTE, message)

    def warning(self, path: object, code: str, message: str) -> None:
        self.add(path, code, Severity.WARNING, message)

    def error(self, path: object, code: str, message: str) -> None:
        self.add(path, code, Severity.ERROR, message)

    def extend(self, items: Iterator[Diagnostic] | list[Diagnostic] | tuple[Diagnostic, ...]) -> None:
        for item in items:
            self._items.setdefault(item)

    def share(self, items: Iterable[Diagnostic], found_at: str, path: str, source: str) -> None:
        """Tell at ``path`` what was ``found_at`` another instance of ``source``, or there itself."""
        if path == source:
            self.extend(list(items))
            return
        there, here, shared = _without_common_end(found_at, path, source)
        for item in items:
            key = f"{_renamed(item.path, there, shared)} {item.code} {item.message.replace(f'<{there}/', f'<{shared}/')}"
            message = item.message.replace(f"<{there}/", f"<{here}/")
            self.extend([SharedDiagnostic(_renamed(item.path, there, here), item.code, item.severity, message, key)])

    def clear(self) -> None:
        self._items.clear()

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __str__(self) -> str:
        return str(Told(self))

    def raise_errors(self) -> None:
        """``strict``: raise StageError for the first diagnostic of severity error, if any."""
        raise_errors(self._items)


def raise_errors(items: Iterable[Diagnostic]) -> None:
    """Raise StageError for the first diagnostic of severity error, if any."""
    errors = [item for item in items if item.severity is Severity.ERROR]
    if errors:
        rest = len(errors) - 1
        more = f" (and {rest} more error{'s' if rest > 1 else ''})" if rest else ""
        raise StageError(errors[0].path, errors[0].message + more)


class OwnedDiagnostics(Diagnostics):
    """Diagnostics kept by the prim that was read when they were found, so that reading it again replaces them. ``owner``: its path."""

    def __init__(self) -> None:
        super().__init__()
        self.owner = ""
        self.by_owner: dict[str, dict[Diagnostic, None]] = {}

    def add(self, path: object, code: str, severity: Severity | str, message: str) -> None:
        self.extend([Diagnostic(str(path), code, Severity(severity), message)])

    def extend(self, items: Iterator[Diagnostic] | list[Diagnostic] | tuple[Diagnostic, ...]) -> None:
        for item in items:
            self._items.setdefault(item)
            self.by_owner.setdefault(self.owner, {}).setdefault(item)
