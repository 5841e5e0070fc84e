"""stage.gather: what the walk found -> sorted rows: meshes built, matrices turned to metres, materials and bodies numbered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pxr import Tf, Usd

from hdwarp.stage import transforms
from hdwarp.stage.bodies import bodies_from, read_frames, sites_from
from hdwarp.stage.columns import GeometryKind, Gprim, Instancer, StageColumns
from hdwarp.stage.materials import bound_materials, read_material
from hdwarp.stage.mesh_batch import build_meshes
from hdwarp.stage.open import plain_text

if TYPE_CHECKING:
    from hdwarp.stage.traverse import Drawn, Walk

_MEND_SIZES = "Mend its size, its xformOps or those above, or the stage's metersPerUnit"


def gather(walk: Walk, columns: StageColumns, time: Usd.TimeCode, material_purposes: Sequence[str]) -> None:
    """Fill ``columns``. Everything with a path is in path order: Sdf.Path's, which for prim paths is that of their text."""
    diagnostics, scale = columns.diagnostics, columns.metres_per_unit
    poses = read_frames(walk.bodies, "rigid body", scale, diagnostics)
    columns.bodies = bodies_from(poses)
    body_number = {body.path: k for k, body in enumerate(columns.bodies)}
    body_number[""] = -1
    site_poses = read_frames({path: matrix for path, (matrix, _) in walk.sites.items()}, "site", scale, diagnostics)
    columns.sites = sites_from(site_poses, {path: body_number.get(walk.sites[path][1], -1) for path in site_poses})
    columns.light_paths = sorted(walk.lights)
    columns.prim_counts = dict(sorted(walk.counts.items()))
    _gather_cameras(walk, columns, time, body_number)
    _gather_gprims(walk, columns, time, material_purposes, body_number)
    if walk.control_cages:
        several = (
            "1 mesh with a subdivision scheme is"
            if walk.control_cages == 1
            else f"{walk.control_cages} meshes with subdivision schemes are"
        )
        cages = "its control cage" if walk.control_cages == 1 else "their control cages"
        diagnostics.note("/", "control-cage", f"{several} drawn as {cages} (complexity low)")


def _gather_cameras(walk: Walk, columns: StageColumns, time: Usd.TimeCode, body_number: dict[str, int]) -> None:
    from hdwarp.stage.cameras import read_camera

    paths = sorted(walk.cameras)
    world = transforms.columns_from_gf([walk.cameras[path][0] for path in paths])
    for k, path in enumerate(paths):
        prim = walk.reader.stage.GetPrimAtPath(path)
        try:
            camera = read_camera(prim, time, world[k], columns.metres_per_unit, columns.diagnostics)
        except (TypeError, ValueError, Tf.ErrorException) as error:  # an attribute of a type no camera has
            message = (
                f"an attribute holds a value of the wrong type ({plain_text(error)}); the camera cannot be rendered. Author the schema's"
            )
            columns.diagnostics.error(path, "wrong-type", message)
            continue
        if camera is not None:
            camera.body = body_number.get(walk.cameras[path][1], -1)
            columns.cameras.append(camera)


def _gather_gprims(
    walk: Walk, columns: StageColumns, time: Usd.TimeCode, material_purposes: Sequence[str], body_number: dict[str, int]
) -> None:
    diagnostics = columns.diagnostics
    built = build_meshes(walk.meshes.meshes, diagnostics)
    drawn = [item for item in walk.drawn if item.kind is not GeometryKind.MESH or built[item.mesh] is not None]
    drawn.sort(key=lambda item: item.path)
    world = transforms.columns_from_gf([item.state.matrix for item in drawn])
    shaped = [k for k, item in enumerate(drawn) if item.shape is not None]
    if shaped:
        with np.errstate(invalid="ignore"):  # infinite scales are reported below
            world[shaped, :3, :3] = world[shaped, :3, :3] @ np.stack([drawn[k].shape.linear for k in shaped])
    placed = [_placed(item, world[k]) for k, item in enumerate(drawn)]
    metres = transforms.in_metres(world, columns.metres_per_unit)
    finite, invertible = transforms.usable(world)
    material_of = _Materials(walk, columns, time, material_purposes, drawn)
    radius = _radii(built, drawn)
    in_range = transforms.in_range(metres, radius)
    mesh_number = {-1: -1}
    rows: dict[tuple, int] = {}
    for k, item in enumerate(drawn):
        instances = item.state.instances
        ids, rates = None, {}
        if instances is None:
            if not invertible[k]:
                _report_transform(item.path, bool(finite[k]), diagnostics)
                continue
            matrices = metres[k : k + 1]
            if not in_range[k]:
                message = f"its size or place is not in the range that can be drawn, {transforms.RANGE}; the prim is skipped. {_MEND_SIZES}"
                diagnostics.error(item.path, "size-range", message)
                continue
        else:
            matrices = placed[k]
            _, good = transforms.usable(matrices)
            if not good.all():
                number = int((~good).sum())
                message = f"{number} of {len(good)} instances have a singular or non-finite transform; they are skipped. Mend the scales"
                diagnostics.error(item.path, "singular-transform", message)
                if number == len(good):
                    continue
                matrices = matrices[good]
            matrices = transforms.in_metres(matrices, columns.metres_per_unit)
            near = transforms.in_range(matrices, radius[k])
            if not near.all():
                number = int((~near).sum())
                message = f"{number} of {len(good)} instances are not in the range that can be drawn, {transforms.RANGE}; they are skipped"
                diagnostics.error(item.path, "size-range", f"{message}. {_MEND_SIZES}")
                if number == len(near):
                    continue
                matrices = matrices[near]
                good = np.flatnonzero(good)[near]
            ids = instances.ids[good]
            rates = {name: values[good] for name, values in instances.primvars.items()}
        if item.mesh not in mesh_number:
            mesh_number[item.mesh] = len(columns.meshes)
            columns.meshes.append(built[item.mesh])
        material, subset_materials = material_of.row(item)
        gprim = Gprim(
            path=item.path,
            kind=item.kind,
            mesh=mesh_number[item.mesh],
            transforms=matrices,
            shape=(0.0, 0.0, 0.0, 0.0) if item.shape is None else item.shape.parameters,
            instance_ids=ids,
            instancer=None if instances is None else instances.instancer,
            material=material,
            subset_materials=subset_materials,
            body=body_number.get(item.state.body, -1),
            double_sided=item.double_sided,
            purpose=item.state.purpose or "default",
            constants=item.state.constants,
            instance_primvars=rates,
        )
        key = (item.path, _chain(gprim.instancer))
        if instances is not None and key in rows:  # a prototype inside another prototype of the same instancer
            _merge(columns.gprims[rows[key]], gprim)
            continue
        rows[key] = len(columns.gprims)
        columns.gprims.append(gprim)


def _radii(built: list, drawn: list[Drawn]) -> np.ndarray:
    """How far what is drawn reaches along an axis of its own; shapes are unit shapes."""
    known = {-1: 1.0}
    for item in drawn:
        if item.mesh not in known:
            points = built[item.mesh].points
            known[item.mesh] = float(max(points.max(), -points.min()))
    return np.array([known[item.mesh] for item in drawn])


def _chain(instancer: Instancer | None) -> tuple[str, ...]:
    """Paths of an instancer and those around it, which tell apart what the same prim is drawn by."""
    paths = []
    while instancer is not None:
        paths.append(instancer.path)
        instancer = instancer.outer
    return tuple(paths)


def _merge(gprim: Gprim, more: Gprim) -> None:
    order = np.argsort(np.concatenate((gprim.instance_ids, more.instance_ids)), kind="stable")
    gprim.transforms = np.concatenate((gprim.transforms, more.transforms))[order]
    gprim.instance_ids = np.concatenate((gprim.instance_ids, more.instance_ids))[order]
    for name in gprim.instance_primvars:
        gprim.instance_primvars[name] = np.concatenate((gprim.instance_primvars[name], more.instance_primvars[name]))[order]


def _placed(item: Drawn, matrix: np.ndarray) -> np.ndarray | None:
    return None if item.state.instances is None else item.state.instances.world @ matrix


def _report_transform(path: str, finite: bool, diagnostics) -> None:
    said = "is singular (a scale of 0?)" if finite else "is not finite"
    diagnostics.error(
        path, "singular-transform", f"the world transform {said}; the prim is skipped. Mend the xformOps of it or of what is above"
    )


class _Materials:
    """Material numbers of gprims. Bindings are computed once for each prim that has some, for all at once."""

    def __init__(self, walk: Walk, columns: StageColumns, time: Usd.TimeCode, purposes: Sequence[str], drawn: list[Drawn]) -> None:
        askers: dict[str, None] = {}
        for item in drawn:
            own = _asker(item)
            if own:
                askers[own] = None
            for name, bound in item.slots:
                if bound or item.state.collections:
                    askers[f"{item.path}/{name}"] = None
        paths = list(askers)
        bound, materials = bound_materials(walk.reader.stage, paths, purposes, columns.diagnostics)
        order = sorted(materials)
        number = {path: k for k, path in enumerate(order)}
        columns.materials = [read_material(materials[path], path, time, columns.diagnostics) for path in order]
        self._number = {asker: number.get(path, -1) for asker, path in zip(paths, bound, strict=True)}

    def row(self, item: Drawn) -> tuple[int, tuple[int, ...]]:
        """(the gprim's material, those of its subset slots)."""
        slots = tuple(self._number.get(f"{item.path}/{name}", -1) for name, _ in item.slots) if item.slots else ()
        return self._number.get(_asker(item), -1), slots


def _asker(item: Drawn) -> str:
    """The prim whose binding is the gprim's: itself where collections matter, else the nearest with bindings."""
    return item.path if item.state.collections else item.state.binder
