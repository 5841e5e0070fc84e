"""cli.render_run: a checked request -> planned shots -> files, told as they are made. Imports the renderer."""

from __future__ import annotations

import contextlib
import gc

from hdwarp import launch
from hdwarp.batch.jobs import Job, JobResult, describe, plan_jobs, run_jobs
from hdwarp.batch.shots import Shot, plan_shots
from hdwarp.cli.console import DONE, FAILED, SOME_FAILED, print_json, say, show_diagnostics
from hdwarp.cli.interrupts import Interrupts
from hdwarp.cli.plugins import load_plugins
from hdwarp.cli.progress import Progress
from hdwarp.cli.render import Request
from hdwarp.errors import ArgumentError, Diagnostics, Error, Severity
from hdwarp.launch import find_device
from hdwarp.scene import check_purposes
from hdwarp.stage.open import default_time, open_stage
from hdwarp.stage.render_spec import find_render_prims
from hdwarp.writeback import EIGHT_BIT
from hdwarp.writeback.layer import check_layer_target, write_results
from hdwarp.writeback.names import format_of

LEFT_OUT = ("render-product", "product-without-camera", "render-var")  # codes of outputs that were asked for and are not there


def run(request: Request) -> int:
    """Do what is asked; the exit code."""
    launch.on_compile = lambda name: say("compiling kernels; this happens on the first run only")
    device = find_device(request.device)
    load_plugins(request.plugins)
    planned: dict[int, Diagnostics] = {}
    shots, failures = plan_stages(request, planned)
    replacing = request.overwrite or request.resume
    if request.results is not None:
        check_layer_target(request.results, [stage for stage, _ in shots], overwrite=replacing)
    jobs = plan_jobs(shots, request.out, request.frames, default_time() if request.default_time else None)
    check_formats(request, jobs)
    outcome: list[JobResult] = []
    progress = Progress(len(jobs), quiet=request.as_json)
    interrupted = False
    with Interrupts() as interrupts:
        results = run_jobs(
            jobs,
            device=device,
            samples=request.samples,
            complexity=request.complexity,
            settings=request.settings,
            strict=request.strict,
            overwrite=request.overwrite,
            resume=request.resume,
            mask=request.mask,
            draw_modes=request.draw_modes,
            records=request.results is not None,
            planned=planned,
            compression=request.compression,
            display=request.display,
            texture_budget=request.texture_budget,
            stop=interrupts,
        )
        try:
            with contextlib.closing(results):  # whatever ends it, no thread writes on
                for result in results:
                    gc.enable()
                    outcome.append(result)
                    progress.step(result)
        except KeyboardInterrupt:
            interrupted = True
            say(f"interrupted after {len(outcome)} of {len(jobs)}; what is written is whole, --resume renders the rest")
        progress.finish()
        records = [result.record for result in outcome if result.record is not None]
        if records:
            write_results(records, None, request.results, overwrite=replacing)
    everything = Diagnostics()
    for diagnostics in [*planned.values(), *(result.diagnostics for result in outcome)]:
        everything.extend(list(diagnostics))
    failed = tell(request, outcome, everything, failures, errors_told=progress.errors_told)
    left_out = any(item.code in LEFT_OUT and item.severity is Severity.ERROR for item in everything)
    if not failed and not left_out and not interrupted:
        return DONE
    return SOME_FAILED if any(result.error is None for result in outcome) else FAILED


def check_formats(request: Request, jobs: list[Job]) -> None:
    """A compression or display for files that this run does not write is a mistake, not something to pass over."""
    written = {format_of(path) for job in jobs for path, _ in job.files}
    for kind in request.compression:
        if kind not in written:
            others = ", ".join(sorted(written)) or "none"
            raise ArgumentError(f"--{kind}-compression is given, and no .{kind} file is written (formats of this run: {others})")
    if request.display.mode == "openColorIO" and not written.intersection(EIGHT_BIT):
        raise ArgumentError("--color-correction openColorIO is for .png and .jpg, and none is written: .exr and .npz hold linear colour")


def plan_stages(request: Request, planned: dict[int, Diagnostics]) -> tuple[list[tuple[object, list[Shot]]], list[str]]:
    """[(stage, shots)] and the stages that failed, as messages; with one stage its error is raised. ``planned``: filled with what was
    found, by id(stage)."""
    options = {
        "aovs": request.aovs,
        "purposes": check_purposes(request.purposes) if request.purposes is not None else None,
        "settings": request.settings_path,
        "resolution": request.resolution,
        "image_width": request.image_width,
    }
    named = [*request.cameras, *request.products]
    mask = None
    if request.mask is not None:  # what is named for rendering has to be there too, and by custom render prims are below /Render
        mask = [*request.mask, "/Render", *(name for name in [*named, request.settings_path] if name and name.startswith("/"))]
    shots, failures = [], []
    for path in request.stages:
        diagnostics = Diagnostics()
        try:
            stage = open_stage(path, mask=mask, session_layer=request.session_layer, diagnostics=diagnostics)
            for name in request.mask or ():
                if not stage.GetPrimAtPath(name):
                    diagnostics.warning(name, "mask", "--mask names this path, and no prim is there")
            found = find_render_prims(stage)
            planned[id(stage)] = diagnostics
            of_stage = plan_shots(
                stage, cameras=request.cameras, products=request.products, diagnostics=diagnostics, found=found, **options
            )
            if request.strict:
                diagnostics.raise_errors()
            shots.append((stage, of_stage))
        except Error as error:
            if len(request.stages) == 1:
                raise
            failures.append(str(error))
    return shots, failures


def tell(
    request: Request, outcome: list[JobResult], diagnostics: Diagnostics, failures: list[str], *, errors_told: bool = False
) -> list[str]:
    """Print what went wrong, and with --json everything; the failures as messages. ``errors_told``: those of pictures are known."""
    failed = failures + [f"{describe(result.job)}: {result.error}" for result in outcome if result.error]
    told = {f"<{item.path}>: {item.message}" for item in diagnostics}
    errors = [] if errors_told else [result.error for result in outcome if result.error and result.error not in told]
    for failure in failures + errors:
        say(f"error: {failure}")
    if request.as_json:
        print_json(report(outcome, diagnostics, failed))
    else:
        show_diagnostics(diagnostics, verbose=request.verbose)
    return failed


def report(outcome, diagnostics: Diagnostics, failed: list[str]) -> dict:
    """What --json prints."""
    return {
        "outputs": [
            {
                "stage": result.job.identifier,
                "product": result.job.shot.product,
                "camera": result.job.shot.camera,
                "frame": result.job.frame_number,
                "written": [str(path) for path in result.written],
                "kept": [str(path) for path in result.kept],
                "aovs": list(result.aovs or result.job.shot.aovs),
                "width": result.job.shot.image.width,
                "height": result.job.shot.image.height,
                "error": result.error,
            }
            for result in outcome
        ],
        "diagnostics": [item.as_dict() for item in diagnostics],
        "failed": failed,
    }
