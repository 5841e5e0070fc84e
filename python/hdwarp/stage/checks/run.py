"""stage.checks.run: the table of all checks, which of them to run, and their findings, each thing told once."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pxr import Tf

from hdwarp.errors import ArgumentError
from hdwarp.stage.checks import assets, labels, lenses, materials, products, scale, sights, upstream
from hdwarp.stage.checks.findings import ERROR, HDWARP, USD, Check, Finding, Rule, worst_first
from hdwarp.stage.checks.subject import BINDING, Subject
from hdwarp.stage.checks.told import MEANINGS, finding_of
from hdwarp.stage.open import plain_text

CHECKS: tuple[Check, ...] = tuple(
    check for module in (lenses, sights, products, labels, materials, scale, assets) for check in module.CHECKS
)
FAILED = Rule("check-failed", ERROR, "a check could not be carried out: its answer is not known")
UNREADABLE = Rule("stage-unreadable", ERROR, "the file is missing, or no stage")
RULES: tuple[Rule, ...] = (*(rule for check in CHECKS for rule in check.rules), upstream.NO_VALIDATORS, UNREADABLE, FAILED)

# One thing of one prim, told by two: (code that is left out, code that tells it).
_TWINS = (
    ("usdValidation:CompositionErrorTest.*", "composition"),
    ("usdValidation:StageMetadataChecker.MissingDefaultPrim", scale.NO_DEFAULT_PRIM.code),
    ("usdGeomValidators:StageMetadataChecker.MissingMetersPerUnitMetadata", scale.NO_METERS_PER_UNIT.code),
    ("usdGeomValidators:StageMetadataChecker.MissingUpAxisMetadata", scale.NO_UP_AXIS.code),
    ("usdShadeValidators:MaterialBindingApiAppliedValidator.*", materials.NO_API.code),
    ("usdShadeValidators:MaterialBindingCollectionValidator.InvalidResourcePath", materials.MISSING.code),
    ("material", materials.NO_SURFACE.code),
)
_NO_API = "but MaterialBindingAPI is not applied"  # in what USD prints
_MISSING_FILE = re.compile("^usdUtilsValidators:MissingReferenceValidator[.]")


@dataclass(frozen=True, slots=True)
class Choice:
    """Which codes are of interest: patterns (`*`, `?`, `[...]`) over codes, and over the names of usd-core's validators."""

    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()

    def takes(self, code: str) -> bool:
        """Whether findings of a code are wanted; a validator's name stands for all it finds."""
        return self.asks_for(code) and not _matches((code, code.partition(".")[0]), self.skip)

    def asks_for(self, code: str) -> bool:
        """Whether ``only`` has it, be it skipped or not."""
        return not self.only or _matches((code, code.partition(".")[0]), self.only)

    def may_find(self, validator: str) -> bool:
        """Whether anything a validator finds may be wanted; the names of its errors are not known before it runs."""
        begins = [pattern.partition(".")[0] for pattern in self.only]
        return (not self.only or _matches((validator,), begins)) and not _matches((validator,), self.skip)

    def check_patterns(self) -> None:
        """Raise ArgumentError for a pattern that no code can match."""
        known = upstream.validators()
        names = [*(rule.code for rule in RULES), *MEANINGS, *(validator.name for validator in known or ())]
        for pattern in (*self.only, *self.skip):
            begin = pattern.partition(".")[0]
            if not fnmatch.filter(names, begin) and not (known is None and ":" in pattern):
                raise ArgumentError(f"no code matches {pattern!r}; --list prints all codes")


_ALL = Choice()


def _matches(names: Iterable[str], patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for name in names for pattern in patterns)


def check_stage(subject: Subject, choice: Choice = _ALL, found: Sequence[Finding] = ()) -> list[Finding]:
    """Everything found, worst first, with what was ``found`` before. A check that raises is a finding of its own."""
    findings = [*found, *(finding_of(item) for item in subject.told)]
    for check in CHECKS:
        codes = [rule.code for rule in check.rules]
        if not any(choice.asks_for(code) for code in codes):
            continue
        told = guarded(check.find.__name__, lambda check=check: list(check.find(subject)))
        # What is skipped is looked for all the same: usd-core is not to tell it instead.
        findings += told if any(choice.takes(code) for code in codes) else [item for item in told if item.code != FAILED.code]
    known = upstream.validators()
    if known is None:
        findings.append(
            upstream.NO_VALIDATORS.broken("/", upstream.NO_VALIDATORS.meaning, "install usd-core 25.11 or newer to have its validators run")
        )
    for validator in known or ():
        if choice.may_find(validator.name):
            findings += guarded(validator.name, lambda validator=validator: list(upstream.run(validator, subject)))
    asked = [item for item in findings if choice.asks_for(item.code)]  # what is not asked for tells nothing in place of others
    return [item for item in worst_first(once(asked)) if choice.takes(item.code)]


def guarded(name: str, find: Callable[[], list[Finding]]) -> list[Finding]:
    """What ``find`` finds; where it raises, that."""
    try:
        return find()
    except Tf.ErrorException as error:
        return [FAILED.broken("/", f"{name} could not be carried out ({plain_text(error)})", "mend what USD names here")]
    except Exception as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())
        return [FAILED.broken("/", f"{name} could not be carried out ({said})", "report it as a defect, with the stage if you can")]


def once(findings: Sequence[Finding]) -> list[Finding]:
    """Without doubles, and without what another finding says of the same prim."""
    there = {(item.code, path) for item in findings for path in item.paths}
    telling = ("composition", "texture", assets.UNRESOLVED.code)
    missing = [item.message for item in findings if item.source == HDWARP and item.code in telling]
    no_api_is_told = any(code == materials.NO_API.code for code, _ in there)
    kept: dict[Finding, None] = {}
    for item in findings:
        twins = [other for pattern, other in _TWINS if fnmatch.fnmatchcase(item.code, pattern)]
        if any((other, _prim_bound(path)) in there for other in twins for path in item.paths):
            continue
        if item.code == "usd" and _NO_API in item.message and no_api_is_told:
            continue
        if item.source == USD and _MISSING_FILE.match(item.code) and any(_file_in(item.message) in message for message in missing):
            continue
        kept.setdefault(item)
    return list(kept)


def _prim_bound(path: str) -> str:
    """The prim of the path of a binding, which our own checks name; any other path as it is, those of collections' bindings too."""
    prim, _, name = path.partition(".")
    return prim if name.startswith(BINDING) and not name.startswith(f"{BINDING}:collection") else path


def _file_in(message: str) -> str:
    """The file that usd-core says it does not find, as authored but for ./ in front."""
    parts = message.split("'")
    return parts[1].rpartition("/")[2] if len(parts) > 2 else message


def catalogue() -> list[tuple[str, str, str, str]]:
    """(code, severity, source, meaning) of every code there is: our checks', the reader's, and usd-core's validators by name."""
    rows = [(rule.code, str(rule.severity), HDWARP, rule.meaning) for rule in RULES]
    own = {rule.code for rule in RULES}
    rows += [(code, "as told", HDWARP, meaning) for code, meaning in MEANINGS.items() if code not in own]
    rows = sorted(rows)
    return rows + [(f"{validator.name}.*", "as told", USD, validator.meaning) for validator in upstream.validators() or ()]
