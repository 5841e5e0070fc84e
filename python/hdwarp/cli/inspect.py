"""cli.inspect: `hdwarp inspect`: what a stage holds, as hdWarp sees it: cameras with K, products, counts, what would be skipped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hdwarp.cli.console import DONE, print_json, show_diagnostics
from hdwarp.errors import Diagnostics

if TYPE_CHECKING:
    from hdwarp.stage.columns import StageColumns

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
    from hdwarp.stage.columns import GeometryKind
    from hdwarp.stage.open import open_stage
    from hdwarp.stage.render_spec import find_render_prims

    diagnostics = Diagnostics()
    stage = open_stage(path, diagnostics=diagnostics)
    found = find_render_prims(stage)
    shots = plan_shots(stage, diagnostics=diagnostics, found=found, purposes=check_purposes(purposes) if purposes is not None else None)
    columns = read_as_rendered(stage, shots, diagnostics, time=time)
    meshes = [mesh for mesh in columns.meshes if mesh.form == GeometryKind.MESH]
    instanced = sum(len(gprim.transforms) * len(gprim.mesh.triangle_face) for gprim in columns.gprims if gprim.kind == GeometryKind.MESH)
    points = sum(len(mesh.triangle_face) for mesh in columns.meshes if mesh.form == GeometryKind.POINTS)
    segments = sum(mesh.face_count for mesh in columns.meshes if mesh.pieces is not None)
    summary = {
        "stage": stage.GetRootLayer().identifier,
        "metersPerUnit": columns.metres_per_unit,
        "upAxis": columns.up_axis,
        "time": columns.time,
        "timeCodes": [stage.GetStartTimeCode(), stage.GetEndTimeCode()] if stage.HasAuthoredTimeCodeRange() else None,
        "purposes": list(drawn_purposes(shots)),
        "cameras": [describe_camera(camera, stage, found) for camera in columns.cameras],
        "renders": [describe_shot(shot, columns) for shot in shots],
        "prims": dict(sorted(columns.prim_counts.items())),
        "drawn": {
            "prims": len(columns.gprims),
            "instances": sum(len(gprim.transforms) for gprim in columns.gprims),
            "uniqueMeshes": len(meshes),
            "triangles": sum(len(mesh.triangle_face) for mesh in meshes),
            "trianglesWithInstances": instanced,
            "points": points,
            "curveSegments": segments,
            "materials": len(columns.materials),
            "bodies": len(columns.bodies),
        },
        "lights": {light.path: light.kind.name.lower() if light.visible else "off" for light in columns.lights},
        "sites": [site.path for site in columns.sites],
    }
    return summary, diagnostics


def read_as_rendered(stage, shots: list, diagnostics: Diagnostics, *, time: float | None = None) -> StageColumns:
    """What is drawn of a stage in the shots planned of it, at a time; what there is to tell goes to ``diagnostics``."""
    from hdwarp.batch.shots import note_camera
    from hdwarp.stage.open import resolve_time
    from hdwarp.stage.reader import read_stage

    columns = read_stage(stage, resolve_time(stage, time), purposes=drawn_purposes(shots))
    diagnostics.extend(list(columns.diagnostics))
    used = {shot.camera for shot in shots}
    for camera in columns.cameras:
        if camera.path in used:
            note_camera(camera, diagnostics)
    return columns


def drawn_purposes(shots: list) -> tuple[str, ...]:
    return shots[0].purposes if shots else ("default", "render")


def describe_camera(camera, stage, found) -> dict:
    """A camera and the image it makes through the first product that targets it."""
    from hdwarp.batch.shots import plan_shot
    from hdwarp.errors import Error
    from hdwarp.schema_registration import is_sensor, sensor_attributes

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
    if is_sensor(prim):
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
    """The summary for people, on stdout: a line a camera and a render, so that grep finds them."""
    codes = summary["timeCodes"]
    times = f", time codes {codes[0]:g} to {codes[1]:g}" if codes else ""
    print(f"{summary['stage']}: {summary['upAxis']} up, metersPerUnit {summary['metersPerUnit']:g}{times}")
    for row in summary["cameras"]:
        near, far = row["clippingRange_m"]
        sensor = "" if "sensor" not in row else " sensor"
        print(f"camera {row['path']}: {row['lens']}{sensor}{_size(row.get('resolution'))}{_k(row.get('K'))}, clip {near:g} to {far:g} m")
    for row in summary["renders"]:
        x0, y0, width, height = row["dataWindow"]
        window = "" if [x0, y0, width, height] == [0, 0, *row["resolution"]] else f", data window {width}x{height}{x0:+d}{y0:+d}"
        names = ", ".join(var["name"] if var["name"] == var["aov"] else f"{var['name']} ({var['aov']})" for var in row["vars"])
        name = row["product"] or "(no product)"
        camera = row["camera"] or "framed default view"
        print(f"render {name}: camera {camera}{_size(row['resolution'])}{window}{_k(row['K'])}; {names}")
    drawn = summary["drawn"]
    print(
        f"draws {drawn['prims']} prims: {drawn['instances']} instances, {drawn['uniqueMeshes']} unique meshes,"
        f" {drawn['triangles']:,} triangles ({drawn['trianglesWithInstances']:,} with instances),"
        f" {drawn['points']:,} points, {drawn['curveSegments']:,} curve segments,"
        f" {drawn['materials']} materials, {drawn['bodies']} bodies"
    )
    print("prims: " + (", ".join(f"{name} {count}" for name, count in summary["prims"].items()) or "none"))
    if summary["lights"]:
        print("lights: " + ", ".join(f"{path} ({kind})" for path, kind in summary["lights"].items()))
    if summary["sites"]:
        print("sites: " + ", ".join(summary["sites"]))


def _size(resolution: list | None) -> str:
    return "" if resolution is None else f", {resolution[0]}x{resolution[1]}"


def _k(k: list | None) -> str:
    return "" if k is None else f", fx {k[0][0]:.3f} fy {k[1][1]:.3f} cx {k[0][2]:.3f} cy {k[1][2]:.3f} px"
