"""`hdwarp check` as a pipeline meets it: exit codes, lines on stderr, JSON on stdout, and our own and real stages."""

from __future__ import annotations

import json
import re

import pytest

from hdwarp.cli import main
from hdwarp.cli.check_run import report_on
from hdwarp.errors import Severity
from hdwarp.stage.checks.run import RULES, Choice, catalogue

STAGE = """#usda 1.0
(
    defaultPrim = "World"
    metersPerUnit = 1
    upAxis = "Y"
)
def Xform "World"
{{
    def Sphere "Ball"
    {{
        {ball}
    }}
}}
"""
CLEAN, WARNED, BROKEN = "", "rel material:binding = </World>", "double radius = -1"
MEANT = {"mesh_faces.usda": {("points-not-finite", "/World/Broken")}}  # errors that a sample stage is there to show


@pytest.fixture
def files(tmp_path):
    """Paths of three stages: one without fault, one with a warning, one with an error."""
    found = []
    for name, ball in (("clean", CLEAN), ("warned", WARNED), ("broken", BROKEN)):
        found.append(tmp_path / f"{name}.usda")
        found[-1].write_text(STAGE.format(ball=ball))
    return [str(path) for path in found]


def run(*arguments, code: int) -> None:
    assert main(["check", *map(str, arguments)]) == code


def test_exit_codes(files, tmp_path):
    clean, warned, broken = files
    run(clean, code=0)
    run(warned, code=0)
    run(warned, "--strict", code=1)
    run(clean, "--strict", code=0)
    run(broken, code=1)
    run(clean, broken, warned, code=1)
    run(tmp_path / "gone.usda", code=1)
    run(code=2)
    run(clean, "--skip", "no-such-code", code=2)
    run(clean, "--frobnicate", code=2)


def test_a_line_a_finding_and_one_that_counts(files, capsys):
    run(*files, code=1)
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    house = re.compile(r"hdwarp: (error|warning|note) </[^>]*>: \[[\w:.-]+\] .+")
    sums = [line for line in lines if not house.fullmatch(line)]
    assert sums == [
        f"hdwarp: {files[0]}: passed: 1 note",
        f"hdwarp: {files[1]}: passed: 2 warnings, 1 note",
        f"hdwarp: {files[2]}: failed: 1 error, 1 note",
        "hdwarp: 1 of 3 stages failed",
    ]
    assert "hdwarp: error </World/Ball>: [shape-size] radius is -1; the prim is skipped; author a finite value" in err


def test_worst_first(files, capsys):
    run(files[1], "--json", code=0)
    order = [item["severity"] for item in json.loads(capsys.readouterr().out)["findings"]]
    assert order == sorted(order, key=["error", "warning", "note"].index)


def test_json_has_a_line_a_stage_of_one_schema(files, capsys):
    run(*files, "--json", code=1)
    out, err = capsys.readouterr()
    assert err == ""
    reports = [json.loads(line) for line in out.splitlines()]
    assert [report["stage"] for report in reports] == files
    assert [report["ok"] for report in reports] == [True, True, False]
    for report in reports:
        assert set(report) == {"stage", "ok", "counts", "findings"}
        assert set(report["counts"]) == {"error", "warning", "note"}
        assert sum(report["counts"].values()) == len(report["findings"])
        for item in report["findings"]:
            assert set(item) == {"code", "severity", "paths", "layers", "message", "cure", "source"}
            assert item["source"] in ("usd", "hdwarp") and item["severity"] in ("error", "warning", "note")
            assert item["paths"] and all(isinstance(path, str) for path in item["paths"])
    run(files[1], "--json", "--strict", code=1)
    assert json.loads(capsys.readouterr().out)["ok"] is False


def test_a_missing_or_broken_file_is_a_finding_and_the_others_are_checked(files, tmp_path, capsys):
    rubbish = tmp_path / "rubbish.usda"
    rubbish.write_text("#usda 1.0\ndef Xform {")
    run(tmp_path / "gone.usda", rubbish, files[0], "--json", code=1)
    reports = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [[item["code"] for item in report["findings"]] for report in reports[:2]] == [["stage-unreadable"]] * 2
    assert reports[2]["ok"]


def test_many_findings_of_one_code_are_counted(tmp_path, capsys):
    path = tmp_path / "many.usda"
    balls = "".join(f'def Sphere "B{k:02}"\n{{\n{BROKEN}\n}}\n' for k in range(25))
    path.write_text(STAGE.format(ball=CLEAN) + balls)
    run(path, code=1)
    err = capsys.readouterr().err
    assert err.count("[shape-size]") == 10
    assert "25 errors, 1 note (15 not shown; --verbose shows all)" in err
    run(path, "--verbose", code=1)
    assert capsys.readouterr().err.count("[shape-size]") == 25
    run(path, "--json", code=1)
    assert json.loads(capsys.readouterr().out)["counts"]["error"] == 25


def test_only_and_skip(files, capsys):
    run(files[2], "--skip", "shape-*", code=0)
    run(files[2], "--only", "camera-*", "--only", "material*", code=0)
    run(files[1], "--only", "material-binding-api", "--strict", code=1)
    err = capsys.readouterr().err
    assert "[material-binding-api]" in err and "[material-missing]" not in err


def test_list_prints_every_code(capsys):
    run("--list", code=0)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [code for code, *_ in catalogue()]
    run("--list", "--json", code=0)
    rows = json.loads(capsys.readouterr().out)
    assert {row["code"] for row in rows} == {code for code, *_ in catalogue()}
    assert set(rows[0]) == {"code", "severity", "source", "meaning"}


def test_the_readme_s_table_is_that_of_the_rules(sample_stages):
    readme = (sample_stages.parent / "README.md").read_text(encoding="utf8")
    for rule in RULES:
        assert f"| `{rule.code}` | {rule.severity} | {rule.meaning} |" in readme


def test_sample_stages_hold_no_errors_but_those_they_show(sample_stages, subtests):
    paths = sorted(sample_stages.glob("*.usda"))
    assert len(paths) >= 9
    for path in paths:
        with subtests.test(path.name):
            findings = report_on(str(path), Choice()).findings
            errors = {(item.code, item.paths[0]) for item in findings if item.severity is Severity.ERROR}
            assert errors == MEANT.get(path.name, set())
            assert not [item for item in findings if item.source == "usd"]


def test_real_stages_are_checked_without_failure_and_without_false_alarm(shared, subtests):
    """43 public stages render as their authors meant; the two that are wrong somewhere are told."""
    rows = (line.split("|")[1].strip() for line in (shared / "assets" / "MANIFEST.md").read_text().splitlines() if line.startswith("| "))
    names = [row for row in rows if row.rsplit(".", 1)[-1] in ("usd", "usda", "usdc", "usdz")]
    assert len(names) > 40
    errors = {
        "RoughnessTest.usdz": {"usdUtilsValidators:FileExtensionValidator.UnsupportedFileExtensionInPackage"},  # a .tga inside
        "basicCurves.usda": {"curve-counts"},  # its BezierClosedBad
    }
    for name in names:
        with subtests.test(name):
            findings = report_on(str(shared / "assets" / name), Choice()).findings
            assert "check-failed" not in [item.code for item in findings]
            found = {item.code for item in findings if item.severity is Severity.ERROR}
            assert found == errors.get(name.rpartition("/")[2], set())
            blind = ("camera-sees-nothing", "camera-clip-hides-all", "camera-far-away", "camera-inside", "camera-field-of-view")
            assert not [item for item in findings if item.code in blind]  # their pictures show something: tests/test_assets.py
