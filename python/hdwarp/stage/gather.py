"""stage.gather: what a walk found -> records: meshes built, matrices turned to metres, materials and bodies named by path."""

from __future__ import annotations

from collections.abc import Callable, Container
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np
from pxr import Gf, Tf

from hdwarp.errors import Diagnostics
from hdwarp.stage import transforms
from hdwarp.stage.bodies import read_frames
from hdwarp.stage.columns import Body, Camera, Gprim, GprimKey, Instancer, Site, gprim_keys
from hdwarp.stage.mesh_batch import build_meshes
from hdwarp.stage.open import plain_text

if TYPE_CHECKING:
    from hdwarp.stage.walk import Drawn, Walk

_NO_SHAPE = (0.0, 0.0, 0.0, 0.0)
_MEND_SIZES = "Mend its size, its xformOps or those above, or the stage's metersPerUnit"


def gather_bodies(walk: Walk, scale: float) -> dict[str, Body]:
    return {path: Body(path, pose, walk.bodies[path][1]) for path, pose in _frames(walk, walk.bodies, "rigid body", scale).items()}


def gather_sites(walk: Walk, scale: float, bodies: Container[str]) -> dict[str, Site]:
    poses = _frames(walk, walk.sites, "site", scale)
    return {path: Site(path, pose, _known(walk.sites[path][1], bodies)) for path, pose in poses.items()}


def _frames(walk: Walk, found: dict[str, tuple[Gf.Matrix4d, str]], what: str, scale: float) -> dict[str, np.ndarray]:
    if not found:
        return {}
    told = Diagnostics()
    poses = read_frames({path: matrix for path, (matrix, _) in found.items()}, what, scale, told)
    for item in told:
        walk.diagnostics.owner = item.path
        walk.diagnostics.extend([item])
    return poses


def gather_cameras(walk: Walk, scale: float, bodies: Container[str]) -> dict[str, Camera]:
    if not walk.cameras:
        return {}
    from hdwarp.stage.cameras import read_camera

    cameras = {}
    paths = sorted(walk.cameras)
    world = transforms.columns_from_gf([walk.cameras[path][0] for path in paths])
    for k, path in enumerate(paths):
        walk.diagnostics.owner = path
        prim = walk.reader.stage.GetPrimAtPath(path)
        try:
            camera = read_camera(prim, walk.reader.time, world[k], scale, walk.diagnostics)
        except (TypeError, ValueError, Tf.ErrorException) as error:  # an attribute of a type no camera has
            message = (
                f"an attribute holds a value of the wrong type ({plain_text(error)}); the camera cannot be rendered. Author the schema's"
            )
            walk.diagnostics.error(path, "wrong-type", message)
            continue
        if camera is not None:
            camera.body = _known(walk.cameras[path][1], bodies)
            cameras[path] = camera
    return cameras


def _known(body: str, bodies: Container[str]) -> str:
    return body if body in bodies else ""


def gather_gprims(
    walk: Walk, scale: float, bodies: Container[str], materials: Callable[[list[Drawn]], Callable[[Drawn], tuple[str, tuple[str, ...]]]]
) -> dict[str, dict[GprimKey, Gprim]]:
    """The gprims by the path of what has to be read again for them. ``materials``: gives for gprims a function from one of them to the
    paths of its material and of those of its slots."""
    diagnostics = walk.diagnostics
    build_meshes(walk.meshes.meshes)
    drawn = []
    for item in walk.drawn:
        if item.mesh is not None and item.mesh.diagnostics:
            diagnostics.owner = item.owner
            diagnostics.share(item.mesh.diagnostics, item.mesh.path, item.path, item.source)
        if item.mesh is None or item.mesh.built is not None:
            drawn.append(item)
    drawn.sort(key=attrgetter("path"))
    world = transforms.columns_from_gf([item.state.matrix for item in drawn])
    shaped = [k for k, item in enumerate(drawn) if item.shape is not None]
    if shaped:
        with np.errstate(invalid="ignore"):  # infinite scales are reported below
            world[shaped, :3, :3] = world[shaped, :3, :3] @ np.stack([drawn[k].shape.linear for k in shaped])
    metres = transforms.in_metres(world, scale)
    finite, invertible = transforms.usable(world)
    material_of = materials(drawn)
    radius = np.array([1.0 if item.mesh is None else item.mesh.built.reach for item in drawn])  # shapes are unit shapes
    in_range = transforms.in_range(metres, radius)
    invertible, in_range = invertible.tolist(), in_range.tolist()
    found: dict[str, list[Gprim]] = {}
    merged: dict[tuple, Gprim] = {}
    for k, item in enumerate(drawn):
        state, instances = item.state, item.state.instances
        matrices, ids, rates = metres[k : k + 1], None, {}
        if instances is None and not (invertible[k] and in_range[k]):
            diagnostics.owner = item.owner
            _report_transform(item.path, invertible[k], bool(finite[k]), diagnostics)
            continue
        if instances is not None:
            diagnostics.owner = item.owner
            rows = _instance_rows(item, world[k], scale, radius[k], diagnostics)
            if rows is None:
                continue
            matrices, ids, rates = rows
        material, subset_materials = material_of(item)
        gprim = Gprim(
            path=item.path,
            kind=item.kind,
            mesh=None if item.mesh is None else item.mesh.built,
            transforms=matrices,
            shape=_NO_SHAPE if item.shape is None else item.shape.parameters,
            instance_ids=ids,
            instancer=None if instances is None else instances.instancer,
            material=material,
            subset_materials=subset_materials,
            body=state.body if state.body and state.body in bodies else "",
            double_sided=item.double_sided,
            one_sided=item.one_sided,
            purpose=state.purpose or "default",
            collision=bool(state.collision),
            visual=item.visual,
            lods=state.lods,
            constants=state.constants,
            instance_primvars=rates,
        )
        if instances is not None:
            key = (item.path, _chain(gprim.instancer), item.visual)
            if key in merged:  # a prototype inside another prototype of the same instancer
                _merge(merged[key], gprim)
                continue
            merged[key] = gprim
        found.setdefault(item.owner, []).append(gprim)
    return {owner: gprim_keys(gprims) for owner, gprims in found.items()}


def _instance_rows(
    item: Drawn, world: np.ndarray, scale: float, radius: float, diagnostics: Diagnostics
) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]] | None:
    """(matrices [m], instance ids, primvars by name) of the instances that can be drawn; None: there are none. ``world``: (4, 4) of the
    prim in the space of its prototype."""
    instances = item.state.instances
    matrices = instances.world @ world
    _, good = transforms.usable(matrices)
    if not good.all():
        number = int((~good).sum())
        message = f"{number} of {len(good)} instances have a singular or non-finite transform; they are skipped. Mend the scales"
        diagnostics.error(item.path, "singular-transform", message)
        matrices = matrices[good]
    matrices = transforms.in_metres(matrices, scale)
    near = transforms.in_range(matrices, radius)
    if not near.all():
        number = int((~near).sum())
        message = f"{number} of {len(good)} instances are not in the range that can be drawn, {transforms.RANGE}; they are skipped"
        diagnostics.error(item.path, "size-range", f"{message}. {_MEND_SIZES}")
        matrices = matrices[near]
        good[good] = near
    if not len(matrices):
        return None
    if good.all():
        return matrices, instances.ids, dict(instances.primvars)
    return matrices, instances.ids[good], {name: values[good] for name, values in instances.primvars.items()}


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


def _report_transform(path: str, invertible: bool, finite: bool, diagnostics: Diagnostics) -> None:
    if invertible:
        message = f"its size or place is not in the range that can be drawn, {transforms.RANGE}; the prim is skipped. {_MEND_SIZES}"
        diagnostics.error(path, "size-range", message)
        return
    said = "is singular (a scale of 0?)" if finite else "is not finite"
    diagnostics.error(
        path, "singular-transform", f"the world transform {said}; the prim is skipped. Mend the xformOps of it or of what is above"
    )
