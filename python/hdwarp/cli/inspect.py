"""cli.inspect: `hdwarp inspect`: what a stage holds, as hdWarp sees it: cameras with K, products, counts, what would be skipped."""

from __future__ import annotations

from typing import Annotated

import typer

from hdwarp.cli.console import DONE, print_json, show_diagnostics
from hdwarp.errors import Diagnostics

HELP = "Print cameras, intrinsics, products, prim counts, lights, sites, and what would be skipped and why."


def inspect(
    stage: Annotated[str, typer.Argument(metavar="STAGE")],
    purposes: Annotated[str | None, typer.Option("--purposes", help="Drawn purposes, separated by commas.")] = None,
    time: Annotated[float | None, typer.Option("--time", help="Time code; the stage's start by default.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
) -> int:
    summary, diagnostics = inspect_stage(stage, purposes=purposes, time=time)
    if as_json:
        print_json({**summary, "diagnostics": [item.as_dict() for item in diagnostics]})
    else:
        show(summary)
        show_diagnostics(diagnostics, verbose=True)
    return DONE


def inspect_stage(path: str, *, purposes: str | None = None, time: float | None = None) -> tuple[dict, Diagnostics]:
    """(summary as plain data, diagnostics). No device is touched."""
    from hdwarp.batch.shots import plan_shots
    from hdwarp.scene import check_purposes
    from hdwarp.stage.open import open_stage, resolve_time
    from hdwarp.stage.render_spec import find_render_prims
    from hdwarp.stage.traverse import read_stage

    diagnostics = Diagnostics()
    stage = open_stage(path, diagnostics=diagnostics)
    code = resolve_time(stage, time)
    found = find_render_prims(stage)
    shots = plan_shots(stage, diagnostics=diagnostics, found=found, purposes=check_purposes(purposes) if purposes is not None else None)
    drawn = shots[0].purposes if shots else ("default", "render")
    columns = read_stage(stage, code, purposes=drawn)
    diagnostics.extend(list(columns.diagnostics))
    triangles = [len(mesh.triangle_face) for mesh in columns.meshes]
    instanced = sum(len(gprim.transforms) * triangles[gprim.mesh] for gprim in columns.gprims if gprim.mesh >= 0)
    summary = {
        "stage": stage.GetRootLayer().identifier,
        "metersPerUnit": columns.metres_per_unit,
        "upAxis": columns.up_axis,
        "time": columns.time,
        "timeCodes": [stage.GetStartTimeCode(), stage.GetEndTimeCode()] if stage.HasAuthoredTimeCodeRange() else None,
        "purposes": list(drawn),
        "cameras": [describe_camera(camera, stage, found) for camera in columns.cameras],
        "renders": [describe_shot(shot, columns) for shot in shots],
        "prims": dict(sorted(columns.prim_counts.items())),
        "drawn": {
            "prims": len(columns.gprims),
            "instances": sum(len(gprim.transforms) for gprim in columns.gprims),
            "uniqueMeshes": len(columns.meshes),
            "triangles": sum(triangles),
            "trianglesWithInstances": instanced,
            "materials": len(columns.materials),
            "bodies": len(columns.bodies),
        },
        "lights": columns.light_paths,
        "sites": [site.path for site in columns.sites],
    }
    return summary, diagnostics


def describe_camera(camera, stage, found) -> dict:
    """A camera and the image it makes through the first product that targets it."""
    from hdwarp.batch.shots import plan_shot
    from hdwarp.errors import Error
    from hdwarp.schema_registration import sensor_attributes

    lens = "orthographic" if camera.projection == "orthographic" else "pinhole"
    about = {
        "path": camera.path,
        "lens": lens,
        "focalLength_m": camera.focal_length,
        "aperture_m": list(camera.aperture),
        "clippingRange_m": list(camera.clipping_range),
        "position_m": camera.world_from_camera[:3, 3].tolist(),
    }
    try:
        shot = plan_shot(stage, camera.path, diagnostics=Diagnostics(), found=found)
    except Error:
        return about
    about["resolution"] = [shot.image.width, shot.image.height]
    about["K"] = _intrinsics(camera, shot.image)
    prim = stage.GetPrimAtPath(camera.path)
    if "HdWarpCameraAPI" in prim.GetAppliedSchemas():
        about["sensor"] = sensor_attributes(prim)
    return about


def describe_shot(shot, columns) -> dict:
    camera = next((camera for camera in columns.cameras if camera.path == shot.camera), None)
    image = shot.image
    return {
        "product": shot.product or None,
        "camera": shot.camera or None,
        "resolution": [image.image_width, image.image_height],
        "dataWindow": [image.x0, image.y0, image.width, image.height],
        "pixelAspectRatio": image.pixel_aspect_ratio,
        "aspectRatioConformPolicy": image.aspect_ratio_conform_policy,
        "vars": [{"name": var.name, "aov": var.aov} for var in shot.vars],
        "K": _intrinsics(camera, image) if camera is not None else None,
    }


def _intrinsics(camera, image) -> list | None:
    from hdwarp.views import pinhole

    return None if camera.projection == "orthographic" else pinhole.intrinsics(camera, image).tolist()


def show(summary: dict) -> None:
    """The summary for people, on stdout."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, soft_wrap=True)
    codes = summary["timeCodes"]
    times = f", time codes {codes[0]:g} to {codes[1]:g}" if codes else ""
    console.print(f"{summary['stage']}: {summary['upAxis']} up, metersPerUnit {summary['metersPerUnit']:g}{times}", markup=False)
    for title, rows in (("camera", summary["cameras"]), ("render", summary["renders"])):
        if not rows:
            continue
        table = Table(box=None, pad_edge=False, header_style="bold")
        headings = (
            ("camera", "lens", "image", "fx fy cx cy [px]", "clip [m]")
            if title == "camera"
            else ("product", "camera", "image", "fx fy cx cy [px]", "vars")
        )
        for heading in headings:
            table.add_column(heading, overflow="fold")
        for row in rows:
            table.add_row(*(_camera_cells(row) if title == "camera" else _shot_cells(row)))
        console.print()
        console.print(table)
    drawn = summary["drawn"]
    console.print()
    console.print(
        f"draws {drawn['prims']} prims ({drawn['instances']} instances, {drawn['uniqueMeshes']} unique meshes,"
        f" {drawn['triangles']:,} triangles; {drawn['trianglesWithInstances']:,} with instances),"
        f" {drawn['materials']} materials, {drawn['bodies']} bodies",
        markup=False,
    )
    console.print("prims: " + ", ".join(f"{name} {count}" for name, count in summary["prims"].items()), markup=False)
    if summary["lights"]:
        console.print("lights (not used yet): " + ", ".join(summary["lights"]), markup=False)
    if summary["sites"]:
        console.print("sites: " + ", ".join(summary["sites"]), markup=False)


def _k_cell(k: list | None) -> str:
    return "-" if k is None else f"{k[0][0]:.3f} {k[1][1]:.3f} {k[0][2]:.3f} {k[1][2]:.3f}"


def _camera_cells(row: dict) -> tuple[str, ...]:
    size = "x".join(str(side) for side in row["resolution"]) if "resolution" in row else "-"
    near, far = row["clippingRange_m"]
    return row["path"], row["lens"], size, _k_cell(row.get("K")), f"{near:g} {far:g}"


def _shot_cells(row: dict) -> tuple[str, ...]:
    size = "x".join(str(side) for side in row["resolution"])
    x0, y0, width, height = row["dataWindow"]
    if [x0, y0, width, height] != [0, 0, *row["resolution"]]:
        size += f" window {width}x{height}{x0:+d}{y0:+d}"
    names = ", ".join(var["name"] if var["name"] == var["aov"] else f"{var['name']} ({var['aov']})" for var in row["vars"])
    return row["product"] or "-", row["camera"] or "framed default view", size, _k_cell(row["K"]), names
