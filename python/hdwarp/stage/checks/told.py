"""stage.checks.told: the codes with which reading a stage tells what is wrong, and a diagnostic as a finding. Plain data, no pxr."""

from __future__ import annotations

import re

from hdwarp.errors import Diagnostic
from hdwarp.stage.checks.findings import Finding

MEANINGS = {
    "blend-shapes": "a blend shape whose offsets do not fit its mesh",
    "blend-weights": "weights of blend shapes that are too few or not finite",
    "camera-aperture": "an aperture that is negative, or 0 on both sides",
    "camera-clipping-planes": "clippingPlanes that are not finite or too many",
    "camera-clipping-range": "a clippingRange whose far end is not beyond the near one, or that begins behind the camera",
    "camera-exposure": "exposure attributes that give no usable scale",
    "camera-focal-length": "a focalLength that is not above 0",
    "camera-not-finite": "a NaN or infinite number on a camera",
    "camera-projection": "a projection that is neither perspective nor orthographic",
    "camera-scale": "a camera whose transform scales, shears or mirrors",
    "camera-shutter": "a shutter that closes before it opens",
    "camera-transform": "a transform of a camera that is singular, not finite or too far",
    "composition": "a reference, payload or sublayer that is not found, or another composition error",
    "conform-policy": "an aspectRatioConformPolicy that UsdRender does not have",
    "control-cage": "subdivision meshes that are drawn as their control cage",
    "default-camera": "a stage without cameras",
    "default-resolution": "a camera that no product targets",
    "degenerate-faces": "faces that have no area or fewer than three corners",
    "depth-of-field": "a camera that asks for depth of field, which is not supported yet",
    "draw-mode": "a draw mode that cannot be drawn as authored",
    "draw-mode-texture": "cards with textures, which are not supported yet",
    "empty-instancer": "a point instancer without instances",
    "empty-mesh": "a mesh that is empty at this time",
    "hole-range": "holeIndices that name no face",
    "index-range": "indices beyond the points",
    "instancer-cycle": "a point instancer that is part of its own prototype",
    "instancer-lengths": "arrays of a point instancer that differ in length",
    "instancer-size": "more instances than can be counted",
    "joint-influences": "joint indices or weights that do not fit the mesh or skeleton",
    "joint-weights": "joint weights that do not add up to 1",
    "lod": "an LOD item or override that leads nowhere",
    "lod-heuristics": "LOD heuristics, which are not carried out",
    "material": "a material whose shader is not supported",
    "material-binding": "a binding that names no one Material, or goes in a circle",
    "material-connection": "an input whose connection gives no value",
    "material-input": "an input that holds no usable value",
    "mesh-size": "a mesh with more numbers than int32 counts",
    "metres-per-unit": "a metersPerUnit that is no size",
    "missing-topology": "a mesh without the arrays that make it one",
    "motion-blur": "a camera that asks for motion blur, which is not supported yet",
    "no-faces": "a mesh without a face that can be drawn",
    "no-render-vars": "a product without orderedVars",
    "normal-length": "normals that do not fit their interpolation",
    "nurbs-form": "a form of a NURBS patch that is none, or not kept",
    "nurbs-knots": "knots that are too few, or fall",
    "nurbs-normals": "normals authored on a NURBS patch",
    "nurbs-order": "an order that is no order",
    "nurbs-points": "points that do not fit the patch",
    "nurbs-range": "a range beyond the knots",
    "nurbs-resolution": "a patch too large to be drawn as finely as others",
    "nurbs-weights": "point weights that are too few or not above 0",
    "opacity": "a material that is not opaque: drawn opaque, or cut away",
    "points-not-finite": "points that are NaN, infinite or too far",
    "position-in-metres": "a var of positions in a stage that does not count in metres",
    "primvar-count": "a primvar with too few values",
    "primvar-indices": "primvar indices beyond the values",
    "primvar-interpolation": "an interpolation that does not exist",
    "primvar-not-finite": "a primvar with NaN or infinite values",
    "primvar-width": "a primvar of more than four numbers a value",
    "product-type": "a productType other than raster",
    "product-without-camera": "a product without camera, of its own or from its settings",
    "projective-transform": "a transform with a projective part",
    "proto-indices": "protoIndices that name no prototype",
    "prototype-missing": "a prototype that is not there",
    "purpose": "a purpose that does not exist",
    "render-product": "a product that cannot be rendered",
    "render-settings": "a renderSettingsPrimPath that names no RenderSettings",
    "render-var": "a RenderVar that is not there, or whose source no AOV is",
    "render-var-name": "several RenderVars of one name",
    "several-render-settings": "several RenderSettings, and nothing that chooses one",
    "shape-axis": "an axis other than X, Y or Z",
    "shape-size": "a size of a shape that is negative or not finite",
    "singular-transform": "a transform that collapses space",
    "size-range": "something too small or too large for float32",
    "skel-animation": "an animation that does not fit its skeleton",
    "skel-binding": "a skinned mesh without a usable SkelBindingAPI",
    "skel-root": "a skinned mesh that is below no SkelRoot",
    "skeleton": "a skeleton that is not there, or whose arrays do not fit",
    "skinned-normals": "normals that are skinned in another way than USD's",
    "skinning": "a skinned mesh that cannot be skinned",
    "skinning-method": "a skinning method that does not exist",
    "subdivision-scheme": "a subdivisionScheme that does not exist",
    "subset-count": "more GeomSubsets than can be told apart",
    "subset-duplicates": "faces that are in several subsets",
    "subset-family": "a family of subsets that is not what it says it is",
    "subset-indices": "subset indices that name no face",
    "subset-type": "a subset of other than faces",
    "texture": "inputs that come from textures, which are not supported yet",
    "topology": "a mesh whose counts and indices do not agree",
    "trim-curves": "trim curves, which are not supported yet",
    "unknown-type": "a prim of a type that no schema here knows",
    "unloaded": "a payload that is not loaded",
    "unreadable": "a value that USD itself cannot read",
    "unsupported-api": "an applied schema that is not supported yet",
    "unsupported-type": "geometry of a type that is not supported yet",
    "up-axis": "an upAxis other than Y or Z",
    "usd": "a message of USD's own while the stage was opened",
    "visibility": "a visibility that is neither inherited nor invisible",
    "wrong-type": "a value of another type than its schema has",
    "xform-op": "an xformOpOrder that names an op that is not there",
}

# Messages end in what to do, in the imperative.
_CURE = re.compile(
    r"[.;,] (?=(?:author|mend|bind|choose|split|normalise|apply|make|give|target|remove|bring|put|check|rename|to have it|raise|lower)\b)",
    re.IGNORECASE,
)


def finding_of(item: Diagnostic) -> Finding:
    """A diagnostic of the reader's; what its message says to do is the cure."""
    message, cure = item.message, ""
    parts = list(_CURE.finditer(message))
    if parts and "; " not in message[parts[-1].end() :]:  # else the effect is told after the cure: they stay together
        message, cure = message[: parts[-1].start()], message[parts[-1].end() :]
        cure = cure[0].lower() + cure[1:]
    return Finding(item.code, item.severity, (item.path,), message, cure)
