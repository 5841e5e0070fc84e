"""cli.render: `hdwarp render`: stages in, files out. usdrecord's spellings work too."""

from __future__ import annotations

import gc
import time as clock
from pathlib import Path
from typing import Annotated

import typer

from hdwarp.cli.console import DONE, FAILED, SOME_FAILED, print_json, say, show_diagnostics
from hdwarp.cli.frames import parse_frames, parse_resolution
from hdwarp.cli.interrupts import Interrupts
from hdwarp.errors import ArgumentError, Diagnostics, Error, NotSupported, Severity

LEFT_OUT = ("render-product", "product-without-camera", "render-var")  # codes of outputs that were asked for and are not there

HELP = (
    "Render stages to files. Without --camera or --product every RenderProduct is rendered, with all its vars; a stage without products "
    "renders its first camera, one without cameras a framed default view. Arguments with an image suffix are outputs."
)


def render(
    paths: Annotated[list[str], typer.Argument(metavar="STAGE... [OUT]", help="Stages; an argument with an image suffix is the output.")],
    out: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="OUT", help="Output: .exr .png .jpg .npz; {stage} {product} {camera} {aov} {frame} ####."),
    ] = None,
    camera: Annotated[list[str] | None, typer.Option("--camera", "-cam", metavar="PATH", help="A camera to render; repeatable.")] = None,
    product: Annotated[list[str] | None, typer.Option("--product", metavar="PATH", help="A RenderProduct to render; repeatable.")] = None,
    settings_path: Annotated[
        str | None, typer.Option("--settings", "--renderSettingsPrimPath", "-rs", metavar="PATH", help="The RenderSettings prim to use.")
    ] = None,
    frames: Annotated[str | None, typer.Option("--frames", "-f", metavar="SPEC", help="Time codes: 7, 1:10, 101:109x2,120.")] = None,
    default_time: Annotated[bool, typer.Option("--default-time", "--defaultTime", "-d", help="Render the default time.")] = False,
    resolution: Annotated[str | None, typer.Option("--resolution", metavar="WxH", help="Image size in place of the product's.")] = None,
    image_width: Annotated[
        int | None, typer.Option("--image-width", "--imageWidth", "-w", help="Image width; the height follows the camera's aspect.")
    ] = None,
    aov: Annotated[list[str] | None, typer.Option("--aov", metavar="NAME", help="A plane in place of the vars; repeatable.")] = None,
    samples: Annotated[int, typer.Option("--samples", help="Samples a pixel for colour: 1, 4, 9, 16, ...")] = 1,
    complexity: Annotated[str, typer.Option("--complexity", "-c", help="low: the control cage.")] = "low",
    purposes: Annotated[str | None, typer.Option("--purposes", help="Drawn purposes, separated by commas.")] = None,
    mask: Annotated[str | None, typer.Option("--mask", help="Load only these prims and what they need, separated by commas.")] = None,
    session_layer: Annotated[str | None, typer.Option("--session-layer", "--sessionLayer", help="A layer over the stage.")] = None,
    device: Annotated[str | None, typer.Option("--device", help="cpu or cuda:0; the first CUDA device by default.")] = None,
    cull: Annotated[bool, typer.Option("--cull", help="Look through back faces of prims that are not doubleSided.")] = False,
    color_correction: Annotated[
        str, typer.Option("--color-correction", "--colorCorrectionMode", "-color", help="sRGB (for 8-bit files) or disabled.")
    ] = "sRGB",
    results: Annotated[str | None, typer.Option("--results", metavar="USD", help="Write a USD layer that tells what was rendered.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that exist.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Keep complete files of an earlier run, render the others.")] = False,
    strict: Annotated[bool, typer.Option("--strict", "--abortOnError", help="Fail on the first broken prim.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print results and diagnostics as JSON on stdout.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show all diagnostics, notes too.")] = False,
    jobs: Annotated[int, typer.Option("--jobs", help="Processes (only 1 so far: a process uses all cores).")] = 1,
    renderer: Annotated[str | None, typer.Option("--renderer", "-r", hidden=True)] = None,
    disable_camera_light: Annotated[bool, typer.Option("--disable-camera-light", "--disableCameraLight", hidden=True)] = False,
    disable_gpu: Annotated[bool, typer.Option("--disable-gpu", "--disableGpu", hidden=True)] = False,
    render_pass: Annotated[str | None, typer.Option("--render-pass", "--renderPassPrimPath", "-rp", hidden=True)] = None,
    disable_draw_mode: Annotated[bool, typer.Option("--disable-draw-mode", "--disableDrawMode", hidden=True)] = False,
    dome_visibility: Annotated[bool, typer.Option("--enable-dome-light-visibility", "--enableDomeLightVisibility", hidden=True)] = False,
    resolver_context: Annotated[str | None, typer.Option("--resolver-context", "--resolverContext", hidden=True)] = None,
    trace_file: Annotated[str | None, typer.Option("--trace-to-file", "--traceToFile", hidden=True)] = None,
    trace_format: Annotated[str | None, typer.Option("--trace-format", "--traceFormat", hidden=True)] = None,
    memstats: Annotated[str | None, typer.Option("--memstats", hidden=True)] = None,
) -> int:
    # --disableDrawMode needs nothing done: draw modes are not applied yet, and a diagnostic names the prims that have one.
    refuse_unsupported(complexity, jobs, renderer, disable_camera_light, render_pass, color_correction)
    for flag, given in (
        ("--enableDomeLightVisibility", dome_visibility),
        ("--resolverContext", resolver_context),
        ("--traceToFile", trace_file),
        ("--traceFormat", trace_format),
        ("--memstats", memstats),
    ):
        if given:
            raise NotSupported(f"{flag} is a flag of usdrecord that hdwarp does not support; leave it out")
    stages, out = split_paths(paths, out)
    if overwrite and resume:
        raise ArgumentError("--overwrite and --resume exclude each other: one replaces files, the other keeps them")
    if frames is not None and default_time:
        raise ArgumentError("--frames and --default-time exclude each other")
    if resolution is not None and image_width is not None:
        raise ArgumentError("--resolution and --image-width exclude each other")
    numbers = parse_frames(frames) if frames is not None else None
    size = parse_resolution(resolution) if resolution is not None else None
    check_samples(samples)

    from hdwarp.cli.quiet import start_quietly

    start_quietly()

    from hdwarp import launch
    from hdwarp.batch.jobs import describe, plan_jobs, run_jobs
    from hdwarp.delegate.render_settings import RenderSettings
    from hdwarp.scene import check_purposes, find_device
    from hdwarp.stage.open import default_time as stage_default_time
    from hdwarp.writeback.layer import check_layer_target, write_results

    launch.on_compile = lambda name: say("compiling kernels; this happens on the first run only")
    device_found = find_device("cpu" if disable_gpu and device is None else device)
    time = stage_default_time() if default_time else None
    options = {
        "aovs": aov or None,
        "purposes": check_purposes(purposes) if purposes is not None else None,
        "settings": settings_path,
        "resolution": size,
        "image_width": image_width,
    }
    planned: dict[int, Diagnostics] = {}
    shots, failures = plan_stages(
        stages, camera or [], product or [], options, planned, mask=_listed(mask), session_layer=session_layer, strict=strict
    )
    if results is not None:
        check_layer_target(results, [stage for stage, _ in shots], overwrite=overwrite or resume)
    work = plan_jobs(shots, out, numbers, time)
    progress = Progress(len(work), quiet=as_json)
    outcome, everything = [], Diagnostics()
    for diagnostics in planned.values():
        everything.extend(list(diagnostics))
    interrupted = False
    with Interrupts() as interrupts:
        try:
            for result in run_jobs(
                work,
                device=device_found,
                samples=samples,
                complexity=complexity,
                settings=RenderSettings(cull=cull),
                strict=strict,
                overwrite=overwrite,
                resume=resume,
                mask=_listed(mask),
                records=results is not None,
                planned=planned,
                stop=interrupts,
            ):
                gc.enable()
                outcome.append(result)
                everything.extend(list(result.diagnostics))
                progress.step(describe(result.job), result)
        except KeyboardInterrupt:
            interrupted = True
            say(f"interrupted after {len(outcome)} of {len(work)}; what is written is whole, --resume renders the rest")
    records = [result.record for result in outcome if result.record is not None]
    if results is not None and records:
        write_results(records, None, results, overwrite=overwrite or resume)
    failed = failures + [f"{describe(result.job)}: {result.error}" for result in outcome if result.error]
    told = {f"<{item.path}>: {item.message}" for item in everything}
    for failure in failures + [result.error for result in outcome if result.error and result.error not in told]:
        say(f"error: {failure}")
    if as_json:
        print_json(report(outcome, everything, failed))
    else:
        show_diagnostics(everything, verbose=verbose)
    left_out = any(item.code in LEFT_OUT and item.severity is Severity.ERROR for item in everything)
    if not failed and not left_out and not interrupted:
        return DONE
    return SOME_FAILED if any(result.error is None for result in outcome) else FAILED


def split_paths(paths: list[str], out: str | None) -> tuple[list[str], str | None]:
    """(stages, output): an argument with an image suffix is an output."""
    from hdwarp.writeback.names import is_image

    outputs = [path for path in paths if is_image(path)]
    stages = [path for path in paths if not is_image(path)]
    if len(outputs) > 1 or (outputs and out is not None):
        raise ArgumentError(f"one output, please; given: {', '.join([*outputs, *([out] if out else [])])}")
    if not stages:
        raise ArgumentError("no stage is named; arguments with an image suffix are outputs")
    return stages, outputs[0] if outputs else out


def refuse_unsupported(complexity, jobs, renderer, disable_camera_light, render_pass, color_correction) -> None:
    """Options of the interface that this version cannot carry out are named, not ignored."""
    if jobs != 1:
        raise NotSupported(f"--jobs {jobs}: several processes are not supported yet; one process uses all cores (HDWARP_THREADS)")
    if renderer not in (None, "hdWarp", "hdwarp"):
        raise ArgumentError(f"--renderer {renderer}: this is hdWarp, the only renderer here")
    if disable_camera_light:
        raise NotSupported("--disableCameraLight: the stage's own lights are not supported yet; use --aov albedo for unlit colour")
    if render_pass is not None:
        raise NotSupported("--renderPassPrimPath is not supported yet")
    if color_correction not in ("sRGB", "disabled"):
        raise NotSupported(f"--colorCorrectionMode {color_correction} is not supported; sRGB is")
    if color_correction == "disabled":
        raise NotSupported("--colorCorrectionMode disabled is not supported: 8-bit files are sRGB; write .exr for linear colour")
    if complexity not in ("low", "medium", "high", "veryhigh"):
        raise ArgumentError(f"--complexity {complexity}: expected low, medium, high or veryhigh")


def check_samples(samples: int) -> None:
    from hdwarp.delegate.sampling import sample_grid

    sample_grid(samples)


def _listed(text: str | None) -> list[str] | None:
    return [part for part in text.replace(" ", ",").split(",") if part] if text is not None else None


def plan_stages(stages, cameras, products, options, planned, *, mask, session_layer, strict):
    """[(stage, shots)] and the stages that failed, as messages; with one stage its error is raised."""
    from hdwarp.batch.shots import plan_shots
    from hdwarp.stage.open import open_stage
    from hdwarp.stage.render_spec import find_render_prims

    shots, failures, asked = [], [], mask or []
    if mask is not None:  # what is named for rendering has to be there too, and by custom render prims are below /Render
        mask = [*mask, "/Render", *(name for name in [*cameras, *products, options["settings"]] if name and name.startswith("/"))]
    for path in stages:
        diagnostics = Diagnostics()
        try:
            stage = open_stage(path, mask=mask, session_layer=session_layer, diagnostics=diagnostics)
            for name in asked:
                if not stage.GetPrimAtPath(name):
                    diagnostics.warning(name, "mask", "--mask names this path, and no prim is there")
            found = find_render_prims(stage)
            planned[id(stage)] = diagnostics
            of_stage = plan_shots(stage, cameras=cameras, products=products, diagnostics=diagnostics, found=found, **options)
            if strict:
                diagnostics.raise_errors()
            shots.append((stage, of_stage))
        except Error as error:
            if len(stages) == 1:
                raise
            failures.append(str(error))
    return shots, failures


def report(outcome, diagnostics: Diagnostics, failed: list[str]) -> dict:
    """What --json prints."""
    return {
        "outputs": [
            {
                "stage": result.job.stage.GetRootLayer().identifier,
                "product": result.job.shot.product,
                "camera": result.job.shot.camera,
                "frame": result.job.frame_number,
                "written": [str(path) for path in result.written],
                "kept": [str(path) for path in result.kept],
                "aovs": list(result.job.shot.aovs),
                "width": result.job.shot.image.width,
                "height": result.job.shot.image.height,
                "error": result.error,
            }
            for result in outcome
        ],
        "diagnostics": [item.as_dict() for item in diagnostics],
        "failed": failed,
    }


class Progress:
    """One line a finished shot, with the time left in longer runs."""

    def __init__(self, total: int, *, quiet: bool) -> None:
        self.total, self.done, self.quiet, self.start = total, 0, quiet, clock.perf_counter()

    def step(self, name: str, result) -> None:
        self.done += 1
        if self.quiet or result.error:
            return
        left = (clock.perf_counter() - self.start) / self.done * (self.total - self.done)
        place = f"[{self.done}/{self.total}] " if self.total > 1 else ""
        files = ", ".join(str(Path(path)) for path in [*result.written, *result.kept])
        what = "kept" if result.kept and not result.written else "wrote"
        say(f"{place}{name}: {what} {files}" + (f" ({left:.0f} s left)" if left >= 2 else ""))
