"""cli.check_run: a file -> what is found wrong with it: opened, planned and read as for rendering, then handed to the checks. No device."""

from __future__ import annotations

from dataclasses import dataclass

from hdwarp.errors import Diagnostics, StageError
from hdwarp.stage.checks.findings import ERROR, WARNING, Finding, count
from hdwarp.stage.checks.run import UNREADABLE, Choice, check_stage, guarded


@dataclass(frozen=True, slots=True)
class Report:
    """What is found wrong with one stage, worst first."""

    stage: str  # as given
    findings: tuple[Finding, ...]

    def passes(self, strict: bool) -> bool:
        """No errors; ``strict``: no warnings either."""
        bad = (ERROR, WARNING) if strict else (ERROR,)
        return not any(item.severity in bad for item in self.findings)

    def as_dict(self, strict: bool) -> dict[str, object]:
        return {
            "stage": self.stage,
            "ok": self.passes(strict),
            "counts": count(self.findings),
            "findings": [item.as_dict() for item in self.findings],
        }


def report_on(path: str, choice: Choice) -> Report:
    """Check one file. Nothing about it raises: a file that is no stage is a finding."""
    from hdwarp.stage.open import open_stage

    diagnostics = Diagnostics()
    try:
        stage = open_stage(path, diagnostics=diagnostics)
    except StageError as error:
        finding = UNREADABLE.broken(error.path, error.reason, "")
        return Report(path, (finding,) if choice.takes(finding.code) else ())
    return Report(path, tuple(_check(stage, diagnostics, choice)))


def _check(stage, diagnostics: Diagnostics, choice: Choice) -> list[Finding]:
    from hdwarp.batch.shots import plan_shots
    from hdwarp.cli.inspect import drawn_purposes, read_as_rendered
    from hdwarp.stage.checks.subject import Picture, Subject
    from hdwarp.stage.columns import StageColumns
    from hdwarp.stage.open import metres_per_unit, resolve_time

    shots: list = []
    columns = StageColumns(metres_per_unit(stage), "Y", None, stage.GetTimeCodesPerSecond())  # where reading fails: nothing is drawn

    def plan() -> list[Finding]:
        shots.extend(plan_shots(stage, diagnostics=diagnostics))
        return []

    def read() -> list[Finding]:
        nonlocal columns
        columns = read_as_rendered(stage, shots, diagnostics)
        return []

    failed = [*guarded("planning its pictures", plan), *guarded("reading the stage", read)]
    pictures = [Picture(shot.product, shot.camera, shot.image, tuple((var.path, var.name, var.aov) for var in shot.vars)) for shot in shots]
    subject = Subject(stage, resolve_time(stage, None), columns, pictures, list(diagnostics), drawn_purposes(shots))
    return check_stage(subject, choice, failed)
