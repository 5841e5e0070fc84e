"""stage.skinning: which prims a UsdSkel Skeleton deforms, by which poses. USD's own functions decide; skin.py does the deforming."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from pxr import Gf, Sdf, Tf, Usd, UsdGeom, UsdSkel, Vt

from hdwarp.errors import Diagnostic, Diagnostics
from hdwarp.stage.expansion import MOST_PRIMS, Sizes
from hdwarp.stage.open import plain_text
from hdwarp.stage.skin import Skin

# Prototypes of point instancers may be overs or classes; prims in native instances have bindings of their own.
_EVERYTHING = Usd.TraverseInstanceProxies(Usd.PrimIsActive & Usd.PrimIsLoaded)
_LARGEST = 1e30  # beyond it, what USD gives is the inverse of a singular matrix
UNSKINNED = "what it skins is drawn unskinned"


def asks_for_skinning(names: Collection[str]) -> bool:
    """Whether authored properties say that a prim is deformed."""
    return "primvars:skel:jointIndices" in names or "skel:blendShapes" in names


@dataclass(slots=True, eq=False)
class Pose:
    """A Skeleton at the time: everything that what it skins has in common. Instances of the same Skeleton and animation share one."""

    joints: tuple[str, ...]
    transforms: Vt.Matrix4dArray | None  # skinning transforms in the skeleton's joint order (rows); None: there are none, and a diagnostic
    shapes: Vt.TokenArray  # the animation's blend shapes
    weights: Vt.FloatArray | None  # and theirs; None: no blend shape is animated
    joints_vary: bool
    weights_vary: bool
    told: tuple[Diagnostic, ...] = ()  # what reading it found
    told_at: str = ""


@dataclass(frozen=True, slots=True)
class Dependence:
    """What a deformed prim depends on beside itself and what is above it."""

    paths: tuple[str, ...]  # of prims: an edit of one may change the result. In native instances both the instance's and the prototype's
    varies: bool  # whether the result may change over time


class Skinning:
    """The skinning of one stage at one time. Each SkelRoot is populated when the first prim below it asks, once.

    ``dependences``: by the path of every prim that asked for skinning below a SkelRoot, those whose skinning is broken included."""

    def __init__(self, stage: Usd.Stage, time: Usd.TimeCode, diagnostics: Diagnostics) -> None:
        self.stage, self.time, self.diagnostics = stage, time, diagnostics
        self.dependences: dict[str, Dependence] = {}
        self._cache = UsdSkel.Cache()
        self._xforms = UsdGeom.XformCache(time)
        self._roots: dict[str, dict[str, tuple[UsdSkel.Skeleton, UsdSkel.SkinningQuery]]] = {}
        self._poses: dict[tuple[str, str], Pose | None] = {}
        self._skins: dict[tuple, Skin] = {}
        self._sizes = Sizes()

    def bind(self, prim: Usd.Prim, names: Collection[str], path: str, skel_root: str) -> Skin | None:
        """How the gprim or point instancer at ``path`` is deformed; None: it is not, with a diagnostic where it asks to be.

        ``prim``: whose geometry it is, in a native instance the prim in the prototype; ``names``: its authored properties; ``skel_root``:
        path of the outermost SkelRoot at or above ``path``, "" for none. What deforms in the same way, as instances in the same pose do,
        is given the same Skin.
        """
        if not skel_root:
            if asks_for_skinning(names):  # so too what USD has baked
                message = "it has joint influences or blend shapes, but no SkelRoot is above it: USD skins nothing there; drawn as authored"
                self.diagnostics.note(path, "skel-root", f"{message}. To have it skinned, make a prim above it and its Skeleton a SkelRoot")
            return None
        try:
            return self._bind(prim, names, path, skel_root)
        except (Tf.ErrorException, TypeError, ValueError) as error:  # an attribute of a type no skeleton has
            message = f"its skinning cannot be read ({plain_text(error)}); drawn unskinned. Author the types of the UsdSkel schemas"
            self.diagnostics.error(path, "skinning", message)
            return None

    def _bind(self, prim: Usd.Prim, names: Collection[str], path: str, skel_root: str) -> Skin | None:
        found = self._targets(skel_root).get(path)
        if found is None:
            if asks_for_skinning(names):
                self._report_unbound(path, skel_root)
            return None
        skeleton, query = found
        if not query.HasJointInfluences() and not query.HasBlendShapes():
            if asks_for_skinning(names):
                here = self.stage.GetPrimAtPath(path)
                self._report_no_influences(here, names, path)
                self.dependences[path] = Dependence(self._prims(here, skeleton.GetPrim(), skel_root), False)  # without it, other words
            return None
        here, pose = self.stage.GetPrimAtPath(path), self._pose(skeleton)
        if pose is None or (pose.transforms is None and not query.HasBlendShapes()):  # told at the skeleton
            self.dependences[path] = Dependence(self._prims(here, skeleton.GetPrim(), skel_root), True)  # another time may be better
            return None
        matrix = self._mesh_from_skeleton(skeleton.GetPrim(), here)
        key = (str(prim.GetPath()), id(pose), matrix and tuple(map(tuple, matrix)), *_inputs(query))
        skin = self._skins.get(key)
        if skin is None:
            skin = self._skins[key] = Skin(here, path, query, pose, matrix, self.time)
        paths = self._prims(here, skeleton.GetPrim(), skel_root, skin.blend_shapes())
        self.dependences[path] = Dependence(paths, skin.inputs_vary() or self._moves(here, skeleton.GetPrim()))
        return skin

    def _targets(self, skel_root: str) -> dict[str, tuple[UsdSkel.Skeleton, UsdSkel.SkinningQuery]]:
        """What the skeletons below a SkelRoot deform, by path."""
        targets = self._roots.get(skel_root)
        if targets is None:
            targets = self._roots[skel_root] = {}
            root = UsdSkel.Root(self.stage.GetPrimAtPath(skel_root))
            if root and self._sizes.at_and_below(root.GetPrim()) > MOST_PRIMS:  # USD goes through every instance
                message = f"it shows more than {MOST_PRIMS:,} prims by way of the instances in it; {UNSKINNED}"
                self.diagnostics.error(skel_root, "skel-root", f"{message}. Keep instances out of the SkelRoot")
            elif root and self._cache.Populate(root, _EVERYTHING):
                for binding in self._cache.ComputeSkelBindings(root, _EVERYTHING):
                    for query in binding.GetSkinningTargets():
                        targets[str(query.GetPrim().GetPath())] = binding.GetSkeleton(), query
        return targets

    def _pose(self, skeleton: UsdSkel.Skeleton) -> Pose | None:
        prim = skeleton.GetPrim()
        query = self._cache.GetSkelQuery(skeleton)
        if not query:
            _, reason = UsdSkel.Topology(skeleton.GetJointsAttr().Get() or Vt.TokenArray()).Validate()
            message = f"its joints make no hierarchy ({reason or 'unreadable'}); {UNSKINNED}. Author parents before children, each once"
            self.diagnostics.error(prim.GetPath(), "skeleton", message)
            return None
        animation = query.GetAnimQuery()
        key = (_source_path(prim), str(animation.GetPrim().GetPath()) if animation else "")
        if key not in self._poses:
            told, self.diagnostics = self.diagnostics, Diagnostics()
            try:
                pose = self._read_pose(query, animation if animation else None, prim)
                pose.told, pose.told_at = tuple(self.diagnostics), str(prim.GetPath())
            finally:
                self.diagnostics = told
            self._poses[key] = pose
        pose = self._poses[key]
        if pose.told:
            self.diagnostics.share(pose.told, pose.told_at, str(prim.GetPath()), key[0])
        return pose

    def _read_pose(self, query: UsdSkel.SkeletonQuery, animation: UsdSkel.AnimQuery | None, prim: Usd.Prim) -> Pose:
        path, joints = prim.GetPath(), tuple(query.GetJointOrder())
        shapes, weights = Vt.TokenArray(), None
        if animation is None:
            self._report_no_animation(prim)
        else:
            self._check_animation(query, animation)
            shapes = animation.GetBlendShapeOrder() or Vt.TokenArray()
            weights = self._blend_weights(animation, len(shapes)) if shapes else None
        transforms = query.ComputeSkinningTransforms(self.time) if query.HasBindPose() else None
        if not query.HasBindPose():
            count = len(query.GetSkeleton().GetBindTransformsAttr().Get() or ())
            message = f"bindTransforms has {count} values for {len(joints)} joints; {UNSKINNED}. Author one a joint"
            self.diagnostics.error(path, "skeleton", message)
        elif transforms is None or len(transforms) != len(joints):
            count = len(query.GetSkeleton().GetRestTransformsAttr().Get() or ())
            message = f"no animation poses all of its joints, and restTransforms has {count} values for {len(joints)}; {UNSKINNED}"
            self.diagnostics.error(path, "skeleton", f"{message}. Author one a joint, or animate every joint")
            transforms = None
        elif joints:
            numbers = np.asarray(transforms)
            usable = np.isfinite(numbers).all(axis=(1, 2)) & (
                np.abs(np.where(np.isfinite(numbers), numbers, 0)).max(axis=(1, 2)) < _LARGEST
            )
            if not usable.all():
                first = joints[int(np.argmin(usable))]
                message = f"{int((~usable).sum())} of {len(joints)} joints have a transform that is not finite, or a bind transform that"
                message = f"{message} cannot be inverted (first: '{first}'); {UNSKINNED}. Mend the animation or bindTransforms"
                self.diagnostics.error(path, "skeleton", message)
                transforms = None
        return Pose(
            joints,
            transforms,
            shapes,
            weights,
            animation is not None and animation.JointTransformsMightBeTimeVarying(),
            animation is not None and animation.BlendShapeWeightsMightBeTimeVarying(),
        )

    def _check_animation(self, query: UsdSkel.SkeletonQuery, animation: UsdSkel.AnimQuery) -> None:
        """Tell why an animation does not move the joints: USD takes the rest pose in silence."""
        prim, joints = animation.GetPrim(), animation.GetJointOrder()
        if not joints:
            return
        values = {name: prim.GetAttribute(name).Get(self.time) for name in ("translations", "rotations", "scales")}
        if any(value is None or len(value) != len(joints) for value in values.values()):
            said = ", ".join(f"{'no' if value is None else len(value)} {name}" for name, value in values.items())
            message = f"it has {said} at this time for {len(joints)} joints; the rest pose is drawn. Author one of each a joint"
            self.diagnostics.error(prim.GetPath(), "skel-animation", message)
        elif not set(joints) & set(query.GetJointOrder()):
            message = f"none of its {len(joints)} joints is one of <{query.GetPrim().GetPath()}>; the rest pose is drawn. Author its names"
            self.diagnostics.warning(prim.GetPath(), "skel-animation", message)

    def _blend_weights(self, animation: UsdSkel.AnimQuery, count: int) -> Vt.FloatArray | None:
        path, attribute = animation.GetPrim().GetPath(), animation.GetPrim().GetAttribute("blendShapeWeights")
        if not attribute.HasAuthoredValue():
            return None
        weights = animation.ComputeBlendShapeWeights(self.time)
        if weights is None or len(weights) != count:
            message = f"blendShapeWeights has {len(weights or ())} values at this time for {count} blendShapes; none is applied"
            self.diagnostics.error(path, "blend-weights", f"{message}. Author one a shape")
            return None
        numbers = np.asarray(weights)
        if not np.isfinite(numbers).all():
            message = f"{int((~np.isfinite(numbers)).sum())} of {count} blendShapeWeights are NaN or infinite; they are read as 0"
            self.diagnostics.error(path, "blend-weights", f"{message}. Mend them")
            weights = Vt.FloatArray.FromNumpy(np.where(np.isfinite(numbers), numbers, np.float32(0)))
        return weights

    def _mesh_from_skeleton(self, skeleton: Usd.Prim, mesh: Usd.Prim) -> Gf.Matrix4d | None:
        """Gf rows. None: the identity. Through the nearest common ancestor: instances anywhere get the same numbers, and small ones."""
        common = self.stage.GetPrimAtPath(skeleton.GetPath().GetCommonPrefix(mesh.GetPath()))
        up, up_resets = self._xforms.ComputeRelativeTransform(skeleton, common)
        down, down_resets = self._xforms.ComputeRelativeTransform(mesh, common)
        if up_resets or down_resets:
            up, down = self._xforms.GetLocalToWorldTransform(skeleton), self._xforms.GetLocalToWorldTransform(mesh)
        if up == down or not down.GetDeterminant():  # what has a singular transform is not drawn
            return None
        return up * down.GetInverse()

    def _moves(self, prim: Usd.Prim, skeleton: Usd.Prim) -> bool:
        """Whether prim and skeleton may move against each other over time."""
        common = skeleton.GetPath().GetCommonPrefix(prim.GetPath())
        steps = [UsdGeom.Xformable(step) for end in (skeleton, prim) for step in _chain(end, common)]
        if any(step and step.GetResetXformStack() for step in steps):
            steps = [UsdGeom.Xformable(step) for end in (skeleton, prim) for step in _chain(end, Sdf.Path.absoluteRootPath)]
        return any(step and step.TransformMightBeTimeVarying() for step in steps)

    def _prims(self, prim: Usd.Prim, skeleton: Usd.Prim, skel_root: str, shapes: Sequence[Sdf.Path] = ()) -> tuple[str, ...]:
        """The paths of a Dependence: ``shapes`` and animations, too, that do not exist yet or any more."""
        prims = [self.stage.GetPrimAtPath(skel_root), *_chain(skeleton, skeleton.GetPath().GetCommonPrefix(prim.GetPath()))]
        named = [*shapes, *_named_animation(skeleton)[1]]
        paths = dict.fromkeys([str(found.GetPath()) for found in prims] + [str(path) for path in named])
        paths.update(dict.fromkeys(_source_path(found) for found in prims))
        paths.update(dict.fromkeys(self._source_of(path) for path in named))
        return tuple(paths)

    def _source_of(self, path: Sdf.Path) -> str:
        """`_source_path` of a prim that may not exist: from the nearest one above it that does."""
        above = path
        while not self.stage.GetPrimAtPath(above):
            above = above.GetParentPath()
        return str(path.ReplacePrefix(above, Sdf.Path(_source_path(self.stage.GetPrimAtPath(above)))))

    def _report_unbound(self, path: str, skel_root: str) -> None:
        """A prim below a SkelRoot asks for skinning, and USD finds no binding."""
        prim = self.stage.GetPrimAtPath(path)
        if not prim.HasAPI(UsdSkel.BindingAPI):
            message = "it has joint influences or blend shapes, but SkelBindingAPI is not applied to it: USD passes over them"
            self.diagnostics.error(path, "skel-binding", f"{message}; drawn unskinned. Apply SkelBindingAPI")
            return
        why = "no prim from here up to the SkelRoot has a skel:skeleton with SkelBindingAPI applied"
        for step in _chain(prim, Sdf.Path(skel_root).GetParentPath()):
            targets = step.GetRelationship("skel:skeleton").GetForwardedTargets() if step.HasRelationship("skel:skeleton") else ()
            if targets:
                self.dependences[path] = Dependence((skel_root, str(targets[0])), False)
                target = self.stage.GetPrimAtPath(targets[0])
                state = "does not exist" if not target else "is inactive" if not target.IsActive() else f"is a '{target.GetTypeName()}'"
                why = f"skel:skeleton is <{targets[0]}>, which {state}"
                if target and target.IsA(UsdSkel.Skeleton) and target.IsActive():
                    why = f"what binds it to <{targets[0]}> is passed over: a gprim lies between, or SkelBindingAPI is not applied"
                break
        self.diagnostics.error(path, "skel-binding", f"{why}; drawn unskinned. Bind it to a Skeleton")

    def _report_no_influences(self, prim: Usd.Prim, names: Collection[str], path: str) -> None:
        indices = UsdGeom.Primvar(prim.GetAttribute("primvars:skel:jointIndices"))
        weights = UsdGeom.Primvar(prim.GetAttribute("primvars:skel:jointWeights"))
        if indices and not (weights and weights.HasAuthoredValue()):
            why = "jointIndices come without jointWeights"
        elif indices:
            said = [f"{p.GetInterpolation()} with elementSize {p.GetElementSize()}" for p in (indices, weights)]
            why = f"jointIndices are {said[0]}, jointWeights {said[1]}; USD takes constant or vertex, and the same for both"
        else:
            why = "skel:blendShapes come without skel:blendShapeTargets"
        self.diagnostics.error(path, "joint-influences", f"{why}; drawn unskinned. Author both alike")

    def _report_no_animation(self, skeleton: Usd.Prim) -> None:
        """Tell of an animation source that is named and is none; without any, a skeleton rests on purpose."""
        step, targets = _named_animation(skeleton)
        if not targets:
            return
        target = self.stage.GetPrimAtPath(targets[0])
        state = "does not exist" if not target else "is inactive" if not target.IsActive() else f"is a '{target.GetTypeName()}'"
        if target and target.IsActive() and UsdSkel.IsSkelAnimationPrim(target):
            state = "is passed over, as SkelBindingAPI is not applied there"
        message = f"skel:animationSource is <{targets[0]}>, which {state}; the rest pose is drawn. Name a SkelAnimation"
        self.diagnostics.warning(step.GetPath(), "skel-animation", message)


def _named_animation(skeleton: Usd.Prim) -> tuple[Usd.Prim | None, list[Sdf.Path]]:
    """The nearest prim that says what animates a skeleton, and what it names; the empty list, said on purpose, is no animation."""
    for step in _chain(skeleton, Sdf.Path.absoluteRootPath):
        relationship = step.GetRelationship("skel:animationSource")
        if relationship and relationship.HasAuthoredTargets():
            return step, relationship.GetForwardedTargets()
    return None, []


def _chain(prim: Usd.Prim, above: Sdf.Path) -> list[Usd.Prim]:
    """``prim`` and its ancestors below the path ``above``."""
    chain = []
    while prim and not prim.IsPseudoRoot() and prim.GetPath() != above:
        chain.append(prim)
        prim = prim.GetParent()
    return chain


def _source_path(prim: Usd.Prim) -> str:
    """Where the prim's opinions are: in a native instance its path in the prototype."""
    return str((prim.GetPrimInPrototype() if prim.IsInstanceProxy() else prim).GetPath())


def _inputs(query: UsdSkel.SkinningQuery) -> tuple:
    """Which attributes a prim is skinned by: they may be inherited, and then differ between instances."""
    found = [query.GetGeomBindTransformAttr(), query.GetSkinningMethodAttr()]
    if query.HasJointInfluences():
        found += [query.GetJointIndicesPrimvar().GetAttr(), query.GetJointWeightsPrimvar().GetAttr()]
    order = query.GetJointOrder()
    return (*(str(attribute.GetPath()) if attribute else "" for attribute in found), None if order is None else tuple(order))
