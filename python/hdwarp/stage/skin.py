"""stage.skin: deforming one mesh by blend shapes and joints, or moving one rigidly bound prim, with UsdSkel's own functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pxr import Gf, Sdf, Tf, Usd, UsdSkel, Vt

from hdwarp.errors import Diagnostics
from hdwarp.stage.columns import Primvar
from hdwarp.stage.open import plain_text

if TYPE_CHECKING:
    from hdwarp.stage.meshes import RawMesh
    from hdwarp.stage.skinning import Pose

_METHODS = ("classicLinear", "dualQuaternion")
UNSKINNED = "it is drawn unskinned"


class Skin:
    """How one prim is deformed at one time; native instances in the same pose share it, and what is ``told`` of it. ``geometry`` and
    ``geometry_read`` are for the caller: what reading the deformed mesh gave, kept for the next of them."""

    geometry: object = None
    geometry_read = False

    def __init__(
        self,
        prim: Usd.Prim,
        path: str,
        query: UsdSkel.SkinningQuery,
        pose: Pose,
        matrix: Gf.Matrix4d | None,
        time: Usd.TimeCode,
    ) -> None:
        """``matrix``: mesh from skeleton, Gf rows; None: the identity."""
        self.prim, self.path, self.query, self.pose = prim, path, query, pose
        self._matrix, self._time, self.told = matrix, time, Diagnostics()
        self._shapes: UsdSkel.BlendShapeQuery | None = None

    def deform(self, mesh: RawMesh) -> None:
        """Give ``mesh`` the points, (P, 3) float32 in its own space, and normals of this time. Where the skinning is broken, they stay as
        authored, with a diagnostic."""
        try:
            self._deform(mesh)
        except (Tf.ErrorException, TypeError, ValueError) as error:
            self._report_unreadable(error)

    def _deform(self, mesh: RawMesh) -> None:
        points = Vt.Vec3fArray.FromNumpy(mesh.points)
        normals, changed = mesh.normals, False
        if self.query.HasBlendShapes() and self.pose.weights is not None:
            normals, changed = self._blend(points, normals)
        if changed:
            mesh.points, mesh.normals = np.array(points), normals
        if self.query.HasJointInfluences() and self.pose.transforms is not None:
            found = self._influences(len(points))
            skinned = None if found is None else self._skin_points(points, mesh.points, *found)
            if skinned is not None:
                mesh.normals = self._skin_normals(mesh, mesh.normals, *found)
                mesh.points = skinned

    def transform(self) -> Gf.Matrix4d | None:
        """Where a rigidly bound prim is moved to: its own space from what is authored, Gf rows. None: it stays."""
        try:
            return self._transform()
        except (Tf.ErrorException, TypeError, ValueError) as error:
            self._report_unreadable(error)
            return None

    def _transform(self) -> Gf.Matrix4d | None:
        if self.query.HasBlendShapes():
            self._error("blend-shapes", "blend shapes deform points, and it has none; they are left out")
        if not self.query.HasJointInfluences() or self.pose.transforms is None:
            return None
        if not self.query.IsRigidlyDeformed():
            self._error("joint-influences", f"its joint influences are vertex, and it has no points; {UNSKINNED}. Author constant ones")
            return None
        found = self._influences(1)
        if found is None:
            return None
        indices, weights, joints = found
        moved = UsdSkel.SkinTransform(self._method(), self._bind_transform(), joints, indices, weights)
        if moved is None:
            self._error("skinning", f"USD computes no transform from its joint influences; {UNSKINNED}")
            return None
        return moved if self._matrix is None else moved * self._matrix

    def inputs_vary(self) -> bool:
        """Whether points, influences or the pose may change over time."""
        query = self.query
        attributes = [self.prim.GetAttribute("points"), self.prim.GetAttribute("normals"), self.prim.GetAttribute("primvars:normals")]
        if query.HasJointInfluences():
            attributes += [query.GetJointIndicesPrimvar().GetAttr(), query.GetJointWeightsPrimvar().GetAttr()]
            attributes.append(query.GetGeomBindTransformAttr())
            if self.pose.joints_vary:
                return True
        if query.HasBlendShapes() and self.pose.weights_vary:
            return True
        return any(attribute and attribute.ValueMightBeTimeVarying() for attribute in attributes)

    def blend_shapes(self) -> list[Sdf.Path]:
        """Where the BlendShape prims are, or would be if they existed."""
        return UsdSkel.BindingAPI(self.prim).GetBlendShapeTargetsRel().GetTargets() if self.query.HasBlendShapes() else []

    def _report_unreadable(self, error: Exception) -> None:  # an attribute of a type that no skin has
        self._error("skinning", f"its skinning cannot be read ({plain_text(error)}); {UNSKINNED}. Author the types of the UsdSkel schemas")

    def _error(self, code: str, message: str) -> None:
        self.told.error(self.path, code, message)

    def _blend(self, points: Vt.Vec3fArray, normals: Primvar | None) -> tuple[Primvar | None, bool]:
        """Add the offsets of the animated blend shapes to ``points``, in place. Also the normals, and whether anything has changed."""
        order, targets = self.query.GetBlendShapeOrder(), UsdSkel.BindingAPI(self.prim).GetBlendShapeTargetsRel().GetTargets()
        if len(order) != len(targets):
            message = f"skel:blendShapes has {len(order)} names for {len(targets)} skel:blendShapeTargets; none is applied"
            self._error("blend-shapes", f"{message}. Author one target a name")
            return normals, False
        stage = self.prim.GetStage()
        lost = [target for target in targets if not UsdSkel.BlendShape.Get(stage, target) or not stage.GetPrimAtPath(target).IsActive()]
        if lost:
            said = ", ".join(f"<{target}>" for target in lost)
            self._error("blend-shapes", f"{said}: no active BlendShape; the shape is left out. Mend skel:blendShapeTargets")
            if len(lost) == len(targets):
                return normals, False  # USD's query counts on there being one
        mapped = UsdSkel.AnimMapper(self.pose.shapes, order).Remap(self.pose.weights)
        shapes = UsdSkel.BlendShapeQuery(UsdSkel.BindingAPI(self.prim))
        offsets_of = None if normals is None or normals.interpolation != "vertex" else _flat(normals)
        turned = False
        changed = False
        for weight, number, part in zip(*shapes.ComputeSubShapeWeights(mapped), strict=True):
            if weight == 0.0 or targets[number] in lost:
                continue
            shape, between = shapes.GetBlendShape(number), shapes.GetInbetween(part)
            indices = shape.GetPointIndicesAttr().Get() or Vt.IntArray()
            offsets = (between.GetOffsets() if between else shape.GetOffsetsAttr().Get()) or Vt.Vec3fArray()
            if not len(offsets):
                continue
            wrong = _wrong_offsets(offsets, indices, len(points))
            if wrong:
                name = between.GetAttr().GetPath() if between else targets[number]
                self._error("blend-shapes", f"<{name}> {wrong}; the shape is left out. Mend the BlendShape")
                continue
            changed |= UsdSkel.ApplyBlendShape(weight, offsets, indices, points)
            bent = between.GetNormalOffsets() if between else shape.GetNormalOffsetsAttr().Get()
            if bent and offsets_of is not None and not _wrong_offsets(bent, indices, len(offsets_of)):
                turned |= UsdSkel.ApplyBlendShape(weight, bent, indices, offsets_of)
        if turned:
            normals = Primvar("vertex", _unit(np.asarray(offsets_of, np.float64)), None)
        return normals, changed

    def _influences(self, count: int) -> tuple[Vt.IntArray, Vt.FloatArray, Vt.Matrix4dArray] | None:
        """(indices, weights: as many for each of ``count`` points; transforms of the joints they index), or None with a diagnostic."""
        query = self.query
        wide, rigid = query.GetNumInfluencesPerComponent(), query.IsRigidlyDeformed()
        arrays = []
        for primvar in (query.GetJointIndicesPrimvar(), query.GetJointWeightsPrimvar()):
            value = primvar.ComputeFlattened(self._time)
            expected = wide * (1 if rigid else count)
            if value is None or len(value) != expected:
                what = f"{wide} for all points" if rigid else f"{wide} for each of {count} points"
                message = f"{primvar.GetPrimvarName()} has {len(value or ())} values where {expected} are expected ({what})"
                self._error("joint-influences", f"{message}; {UNSKINNED}. Author as many, or mend elementSize")
                return None
            arrays.append(value)
        indices, weights = arrays
        numbers, shares = np.asarray(indices), np.asarray(weights)
        if not np.isfinite(shares).all():
            bad = int((~np.isfinite(shares)).sum())
            self._error("joint-influences", f"{bad} of {len(shares)} joint weights are NaN or infinite; {UNSKINNED}. Mend them")
            return None
        joints, transforms = self._joints()
        if len(numbers) and (numbers.min() < 0 or numbers.max() >= len(joints)):
            outside = (numbers < 0) | (numbers >= len(joints))
            used = outside & (shares != 0)
            if used.any():
                message = f"{int(used.sum())} of {len(numbers)} joint indices are outside 0..{len(joints) - 1}"
                message = f"{message} (first: {int(numbers[used][0])})"
                self._error("joint-influences", f"{message}; {UNSKINNED}. Mend them, or skel:joints")
                return None
            indices = Vt.IntArray.FromNumpy(np.where(outside, 0, numbers).astype(np.int32))  # padding of no weight
        sums = shares.reshape(-1, wide) @ np.ones(wide, np.float32)
        uneven = int((np.abs(sums - 1.0) > 1e-3).sum())
        if uneven:
            message = f"the joint weights of {uneven} of {len(sums)} points do not add up to 1; USD takes them as they are"
            self.told.note(self.path, "joint-weights", f"{message}. Normalise them")
        if rigid:
            repeated = [Vt.IntArray.FromNumpy(np.tile(np.asarray(indices), count)), Vt.FloatArray.FromNumpy(np.tile(shares, count))]
            indices, weights = repeated
        return indices, weights, transforms

    def _joints(self) -> tuple[tuple[str, ...], Vt.Matrix4dArray]:
        """The joints that indices count, and their skinning transforms: the skeleton's, or what skel:joints picks."""
        order, mapper = self.query.GetJointOrder(), self.query.GetJointMapper()
        if order is None or mapper is None:
            return self.pose.joints, self.pose.transforms
        lost = sorted(set(order) - set(self.pose.joints))
        if lost:
            message = f"skel:joints names {', '.join(lost)}, which the skeleton lacks; what they hold does not move. Author its joints"
            self.told.warning(self.path, "joint-influences", message)
        return tuple(order), mapper.RemapTransforms(self.pose.transforms, Vt.Matrix4dArray(len(order), Gf.Matrix4d(1.0)))

    def _method(self) -> str:
        method = self.query.GetSkinningMethod()
        if method not in _METHODS:
            message = f"skinningMethod is '{method}' (known: {', '.join(_METHODS)}); read as classicLinear"
            self.told.warning(self.path, "skinning-method", message)
            return _METHODS[0]
        return method

    def _bind_transform(self) -> Gf.Matrix4d:
        return self.query.GetGeomBindTransform(self._time)

    def _skin_points(
        self, points: Vt.Vec3fArray, before: np.ndarray, indices: Vt.IntArray, weights: Vt.FloatArray, joints: Vt.Matrix4dArray
    ) -> np.ndarray | None:
        """(P, 3) float32 in the mesh's space. ``points`` are overwritten; ``before`` are the same."""
        wide = self.query.GetNumInfluencesPerComponent()
        if not UsdSkel.SkinPoints(self._method(), self._bind_transform(), joints, indices, weights, wide, points, inSerial=False):
            self._error("skinning", f"USD computes no points from its joint influences; {UNSKINNED}")
            return None
        found = np.asarray(points)
        if self._matrix is not None:
            rows = np.array(self._matrix)
            found = (found @ rows[:3, :3] + rows[3, :3]).astype(np.float32)
        if not np.isfinite(found).all() and (np.isfinite(before) & ~np.isfinite(found)).any():
            message = (
                f"its skinned points are not finite; {UNSKINNED}. Mend geomBindTransform, the joints' transforms or those of the prims"
            )
            self._error("skinning", message)
            return None
        return found

    def _skin_normals(
        self, mesh: RawMesh, normals: Primvar | None, indices: Vt.IntArray, weights: Vt.FloatArray, joints: Vt.Matrix4dArray
    ) -> Primvar | None:
        """The authored normals, turned with their points. None where there are none, or one a face and the face bends: then the
        deformed face's own counts."""
        if normals is None or mesh.scheme != "none":
            return normals
        wide = self.query.GetNumInfluencesPerComponent()
        numbers, shares = np.asarray(indices).reshape(-1, wide), np.asarray(weights).reshape(-1, wide)
        if self.query.IsRigidlyDeformed():
            turned, kept, point = Vt.Vec3fArray.FromNumpy(normals.values), normals.indices, np.zeros(len(normals.values), np.int64)
        elif normals.interpolation == "uniform":
            message = "its normals are uniform, and its faces bend: they are replaced by the deformed faces' own"
            self.told.note(self.path, "skinned-normals", message)
            return None
        else:
            turned, kept = _flat(normals), None
            point = np.arange(len(numbers)) if normals.interpolation == "vertex" else np.clip(mesh.indices, 0, len(numbers) - 1)
        straight = Vt.Matrix3dArray([_inverse_transpose(joint) for joint in joints])
        indices = Vt.IntArray.FromNumpy(np.ascontiguousarray(numbers[point]).reshape(-1))
        weights = Vt.FloatArray.FromNumpy(np.ascontiguousarray(shares[point]).reshape(-1))
        bind = _inverse_transpose(self._bind_transform())
        if not UsdSkel.SkinNormals(self._method(), bind, straight, indices, weights, wide, turned, inSerial=False):
            return None
        values = np.asarray(turned, np.float64)
        if self._matrix is not None:
            values = values @ np.array(_inverse_transpose(self._matrix))
        return Primvar(normals.interpolation, _unit(values), kept)


def _inverse_transpose(matrix: Gf.Matrix4d) -> Gf.Matrix3d:
    return matrix.ExtractRotationMatrix().GetInverse().GetTranspose()


def _flat(primvar: Primvar) -> Vt.Vec3fArray:
    """The values without indices, a copy."""
    values = primvar.values if primvar.indices is None else primvar.values[primvar.indices]
    return Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(values, np.float32))


def _unit(vectors: np.ndarray) -> np.ndarray:
    """(n, 3) float32 of length 1, zero where a vector has no direction."""
    with np.errstate(over="ignore", invalid="ignore"):
        length = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    good = (length > 0.0) & np.isfinite(length)
    return np.where(good[:, None], vectors / np.where(good, length, 1.0)[:, None], 0.0).astype(np.float32)


def _wrong_offsets(offsets: Vt.Vec3fArray, indices: Vt.IntArray, count: int) -> str:
    """What keeps offsets from being added to ``count`` points; "" for nothing."""
    expected = len(indices) or count
    if len(offsets) != expected:
        return f"has {len(offsets)} offsets for {expected} {'pointIndices' if len(indices) else 'points'}"
    numbers = np.asarray(indices)
    if len(numbers) and (numbers.min() < 0 or numbers.max() >= count):
        return f"has pointIndices outside 0..{count - 1}"
    if not np.isfinite(np.asarray(offsets)).all():
        return "has offsets that are NaN or infinite"
    return ""
