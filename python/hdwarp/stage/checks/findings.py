"""stage.checks.findings: a finding, the rule it breaks, and the row of the table that finds it. Plain data, no pxr."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from hdwarp.errors import Severity

if TYPE_CHECKING:
    from hdwarp.stage.checks.subject import Subject

NOTE, WARNING, ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR
HDWARP, USD = "hdwarp", "usd"  # whose check found it
_SHOWN_PATHS = 3


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found: where (prim or property paths, or a file), what, and what to author instead ("" where nobody knows)."""

    code: str
    severity: Severity
    paths: tuple[str, ...]
    message: str
    cure: str = ""
    source: str = HDWARP
    layers: tuple[str, ...] = ()  # identifiers, where it is told of a layer's specs

    def __str__(self) -> str:
        shown = ", ".join(f"<{path}>" for path in self.paths[:_SHOWN_PATHS])
        more = f" and {len(self.paths) - _SHOWN_PATHS} more" if len(self.paths) > _SHOWN_PATHS else ""
        cure = f"; {self.cure}" if self.cure else ""
        return f"{self.severity} {shown}{more}: [{self.code}] {self.message}{cure}"

    def as_dict(self) -> dict[str, object]:
        return {
            "code": self.code,
            "severity": str(self.severity),
            "paths": list(self.paths),
            "layers": list(self.layers),
            "message": self.message,
            "cure": self.cure,
            "source": self.source,
        }


@dataclass(frozen=True, slots=True)
class Rule:
    """What a code means, and how bad it is to break it."""

    code: str
    severity: Severity
    meaning: str

    def broken(self, paths: object, message: str, cure: str) -> Finding:
        """``paths``: one path, or a sequence of them."""
        several = isinstance(paths, list | tuple)
        return Finding(self.code, self.severity, tuple(str(path) for path in (paths if several else [paths])), message, cure)


class Check(NamedTuple):
    """A row of the table: a function of the subject alone, and the rules whose breaches it yields."""

    find: Callable[[Subject], Iterator[Finding]]
    rules: tuple[Rule, ...]


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Errors, warnings, notes; each in the order of their codes and paths."""
    order = list(reversed(Severity))
    return sorted(findings, key=lambda item: (order.index(item.severity), item.code, item.paths))


def count(findings: Sequence[Finding]) -> dict[str, int]:
    """By severity, worst first: {"error": 0, "warning": 2, "note": 1}."""
    counts = Counter(item.severity for item in findings)
    return {str(severity): counts[severity] for severity in reversed(Severity)}
