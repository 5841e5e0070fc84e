"""cli.render: `hdwarp render`: stages in, files out. usdrecord's spellings work too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from hdwarp.cli.frames import parse_frames, parse_resolution
from hdwarp.delegate.render_settings import RenderSettings, setting_help
from hdwarp.delegate.sampling import sample_grid
from hdwarp.errors import ArgumentError, NotSupported

if TYPE_CHECKING:
    from hdwarp.writeback.display import Display


@dataclass(frozen=True, slots=True)
class Request:
    """What the command line asks for, checked as far as it can be without opening anything."""

    stages: tuple[str, ...]
    out: str | None
    cameras: tuple[str, ...]
    products: tuple[str, ...]
    settings_path: str | None
    frames: tuple[float, ...] | None
    default_time: bool
    resolution: tuple[int, int] | None
    image_width: int | None
    aovs: tuple[str, ...] | None
    plugins: tuple[str, ...]  # Python files that register AOVs
    samples: int
    complexity: str
    purposes: tuple[str, ...] | None
    mask: tuple[str, ...] | None
    draw_modes: bool
    session_layer: str | None
    device: str | None
    settings: dict[str, object]  # those of `RenderSettings` that are given
    results: str | None
    compression: dict[str, str | int]  # format -> compression, where one is chosen
    display: Display
    texture_budget: int | None  # bytes
    overwrite: bool
    resume: bool
    strict: bool
    as_json: bool
    verbose: bool


HELP = (
    "Render stages to files. Without --camera or --product every RenderProduct is rendered, with all its vars; a stage without products "
    "renders its first camera in path order, one without cameras a framed default view. Arguments with an image suffix are outputs. "
    "Over --frames, reading, tracing and writing overlap; after Ctrl-C or SIGTERM every file is whole and --resume continues."
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
    frames: Annotated[
        str | None, typer.Option("--frames", "-f", metavar="SPEC", help="Time codes: 7, 1:10, 101:109x2,120, 1:2x0.25.")
    ] = None,
    default_time: Annotated[bool, typer.Option("--default-time", "--defaultTime", "-d", help="Render the default time.")] = False,
    resolution: Annotated[str | None, typer.Option("--resolution", metavar="WxH", help="Image size in place of the product's.")] = None,
    image_width: Annotated[
        int | None, typer.Option("--image-width", "--imageWidth", "-w", help="Image width; the height follows the camera's aspect.")
    ] = None,
    aov: Annotated[list[str] | None, typer.Option("--aov", metavar="NAME", help="A plane in place of the vars; repeatable.")] = None,
    plugin: Annotated[
        list[str] | None, typer.Option("--plugin", metavar="FILE", help="A .py file that registers planes of its own; repeatable.")
    ] = None,
    samples: Annotated[int, typer.Option("--samples", help="Samples a pixel for colour: 1, 4, 9, 16, ...")] = 1,
    complexity: Annotated[str, typer.Option("--complexity", "-c", help="low: the control cage.")] = "low",
    purposes: Annotated[str | None, typer.Option("--purposes", help="Drawn purposes, separated by commas.")] = None,
    mask: Annotated[str | None, typer.Option("--mask", help="Load only these prims and what they need, separated by commas.")] = None,
    session_layer: Annotated[str | None, typer.Option("--session-layer", "--sessionLayer", help="A layer over the stage.")] = None,
    device: Annotated[str | None, typer.Option("--device", help="cpu or cuda:0; the first CUDA device by default.")] = None,
    cull: Annotated[bool | None, typer.Option("--cull/--no-cull", help=setting_help("cull"))] = None,
    integrator: Annotated[str | None, typer.Option("--integrator", metavar="NAME", help=setting_help("integrator"))] = None,
    shadows: Annotated[bool | None, typer.Option("--shadows/--no-shadows", help=setting_help("shadows"))] = None,
    ambient_occlusion: Annotated[
        bool | None, typer.Option("--ambient-occlusion/--no-ambient-occlusion", help=setting_help("ambient_occlusion"))
    ] = None,
    textures: Annotated[bool | None, typer.Option("--textures/--no-textures", help=setting_help("textures"))] = None,
    texture_budget: Annotated[
        int | None,
        typer.Option("--texture-budget", metavar="MIB", min=0, help="Memory for images of materials; larger ones are halved; 2048."),
    ] = None,
    light_samples: Annotated[int | None, typer.Option("--light-samples", metavar="N", help=setting_help("light_samples"))] = None,
    camera_light: Annotated[bool | None, typer.Option("--camera-light/--no-camera-light", help=setting_help("headlight"))] = None,
    color_correction: Annotated[
        str,
        typer.Option(
            "--color-correction",
            "--colorCorrectionMode",
            "-color",
            metavar="MODE",
            help="Colour of 8-bit files: sRGB, disabled (linear) or openColorIO.",
        ),
    ] = "sRGB",
    ocio_config: Annotated[str | None, typer.Option("--ocio-config", metavar="FILE", help="Also ocio://default; $OCIO by default.")] = None,
    ocio_display: Annotated[str | None, typer.Option("--ocio-display", metavar="NAME", help="The config's default by default.")] = None,
    ocio_view: Annotated[str | None, typer.Option("--ocio-view", metavar="NAME", help="The display's default by default.")] = None,
    exr_compression: Annotated[
        str | None,
        typer.Option("--exr-compression", metavar="NAME", help="zip (default), zips, rle, piz, none, ...; with loss in colour: dwaa, ..."),
    ] = None,
    png_compression: Annotated[
        int | None, typer.Option("--png-compression", metavar="LEVEL", help="0 (none, fast) to 9 (smallest, slow); 3 by default.")
    ] = None,
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
    disable_draw_mode: Annotated[
        bool, typer.Option("--disable-draw-mode", "--disableDrawMode", help="Draw models whole, whatever their draw mode.")
    ] = False,
    dome_visibility: Annotated[bool, typer.Option("--enable-dome-light-visibility", "--enableDomeLightVisibility", hidden=True)] = False,
    resolver_context: Annotated[str | None, typer.Option("--resolver-context", "--resolverContext", hidden=True)] = None,
    trace_file: Annotated[str | None, typer.Option("--trace-to-file", "--traceToFile", hidden=True)] = None,
    trace_format: Annotated[str | None, typer.Option("--trace-format", "--traceFormat", hidden=True)] = None,
    memstats: Annotated[str | None, typer.Option("--memstats", hidden=True)] = None,
) -> int:
    refuse_unsupported(complexity, jobs, renderer, render_pass)
    for flag, given in (
        ("--enableDomeLightVisibility", dome_visibility),
        ("--resolverContext", resolver_context),
        ("--traceToFile", trace_file),
        ("--traceFormat", trace_format),
        ("--memstats", memstats),
    ):
        if given:
            raise NotSupported(f"{flag} is a flag of usdrecord that hdwarp does not support; leave it out")
    for one, other, both in (
        ("--overwrite", "--resume", overwrite and resume),
        ("--frames", "--default-time", frames is not None and default_time),
        ("--resolution", "--image-width", resolution is not None and image_width is not None),
    ):
        if both:
            raise ArgumentError(f"{one} and {other} exclude each other")
    sample_grid(samples)
    stages, out = split_paths(paths, out)
    request = Request(
        stages=tuple(stages),
        out=out,
        cameras=tuple(camera or ()),
        products=tuple(product or ()),
        settings_path=settings_path,
        frames=tuple(parse_frames(frames)) if frames is not None else None,
        default_time=default_time,
        resolution=parse_resolution(resolution) if resolution is not None else None,
        image_width=image_width,
        aovs=tuple(aov) if aov else None,
        plugins=tuple(plugin or ()),
        samples=samples,
        complexity=complexity,
        purposes=_listed(purposes),
        mask=_listed(mask),
        draw_modes=not disable_draw_mode,
        session_layer=session_layer,
        device="cpu" if disable_gpu and device is None else device,
        settings=_settings(
            cull=cull,
            integrator=integrator,
            shadows=shadows,
            ambient_occlusion=ambient_occlusion,
            textures=textures,
            light_samples=light_samples,
            headlight=False if disable_camera_light else camera_light,
        ),
        results=results,
        compression=_compression(exr_compression, png_compression),
        display=_display(color_correction, {"config": ocio_config, "display": ocio_display, "view": ocio_view}),
        texture_budget=None if texture_budget is None else texture_budget << 20,
        overwrite=overwrite,
        resume=resume,
        strict=strict,
        as_json=as_json,
        verbose=verbose,
    )
    from hdwarp.cli.quiet import start_quietly

    start_quietly()  # before anything else of ours imports Warp

    from hdwarp.cli.render_run import run

    return run(request)


def _settings(**given: object) -> dict[str, object]:
    """The render settings that the command line names, checked."""
    named = {name: value for name, value in given.items() if value is not None}
    RenderSettings(**named)
    return named


def _compression(exr: str | None, png: int | None) -> dict[str, str | int]:
    """Format -> compression, checked."""
    from hdwarp.writeback import check_compression

    chosen = {kind: value for kind, value in (("exr", exr), ("png", png)) if value is not None}
    for kind, value in chosen.items():
        check_compression(kind, value, f"--{kind}-compression")
    return chosen


def _display(mode: str, names: dict[str, str | None]) -> Display:
    """How 8-bit files show colour, checked; ``names``: OpenColorIO's, where they are given."""
    from hdwarp.writeback.display import MODES, Display

    if mode not in MODES:
        raise ArgumentError(f"--color-correction {mode}: expected {', '.join(MODES)}")
    given = {name: value for name, value in names.items() if value is not None}
    if given and mode != "openColorIO":
        raise ArgumentError(f"--ocio-{next(iter(given))} goes with --color-correction openColorIO")
    display = Display(mode, **given)
    display.check()
    return display


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


def refuse_unsupported(complexity, jobs, renderer, render_pass) -> None:
    """Options of the interface that this version cannot carry out are named, not ignored."""
    if jobs != 1:
        raise NotSupported(f"--jobs {jobs}: several processes are not supported yet; one process uses all cores (HDWARP_THREADS)")
    if renderer not in (None, "hdWarp", "hdwarp"):
        raise ArgumentError(f"--renderer {renderer}: this is hdWarp, the only renderer here")
    if render_pass is not None:
        raise NotSupported("--renderPassPrimPath is not supported yet")
    if complexity not in ("low", "medium", "high", "veryhigh"):
        raise ArgumentError(f"--complexity {complexity}: expected low, medium, high or veryhigh")


def _listed(text: str | None) -> tuple[str, ...] | None:
    return tuple(part for part in text.replace(" ", ",").split(",") if part) if text is not None else None
