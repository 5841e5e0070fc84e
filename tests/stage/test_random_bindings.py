"""Bindings of random stages, each prim's asked of UsdShade by itself: direct, by collection, stronger than what is below, by purpose, of
subsets, and in instances."""

from __future__ import annotations

import numpy as np
import pytest
from pxr import Sdf, Usd, UsdGeom, UsdShade

PURPOSES = ("allPurpose", "full", "preview")
STRENGTHS = ("weakerThanDescendants", "strongerThanDescendants")


def random_stage(seed: int) -> Usd.Stage:
    """A tree three deep below /w with prototypes below /library that some of its leaves are instances of."""
    rng = np.random.default_rng(seed)
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    materials = [UsdShade.Material.Define(stage, f"/looks/m{k}") for k in range(6)]
    for k in range(2):
        UsdGeom.Xform.Define(stage, f"/library/proto{k}")
        _grow(stage, f"/library/proto{k}", 2, rng, [])
    stage.GetPrimAtPath("/library").SetSpecifier(Sdf.SpecifierClass)
    UsdGeom.Xform.Define(stage, "/w")
    _grow(stage, "/w", 3, rng, ["/library/proto0", "/library/proto1"])
    prims = [prim for prim in stage.TraverseAll() if str(prim.GetPath()).startswith(("/w", "/library/"))]
    for prim in prims:
        if prim.IsInstanceProxy() or rng.random() > 0.5:
            continue
        api, purposes = UsdShade.MaterialBindingAPI.Apply(prim), rng.choice(PURPOSES, rng.integers(1, 3), replace=False)
        for purpose in purposes:
            api.Bind(materials[rng.integers(6)], str(rng.choice(STRENGTHS, p=(0.7, 0.3))), purpose.replace("allPurpose", ""))
    for k, prim in enumerate(prims):
        if k % 4 or prim.IsInstanceProxy() or prim.IsA(UsdGeom.Subset):
            continue
        below = [other.GetPath() for other in prims if other.GetPath().HasPrefix(prim.GetPath())]
        some = Usd.CollectionAPI.Apply(prim, "some")
        some.CreateExpansionRuleAttr(str(rng.choice(("expandPrims", "explicitOnly"))))
        some.CreateIncludesRel().SetTargets([below[i] for i in rng.choice(len(below), min(len(below), 3), replace=False)])
        api, purpose = UsdShade.MaterialBindingAPI.Apply(prim), str(rng.choice(PURPOSES)).replace("allPurpose", "")
        api.Bind(some, materials[rng.integers(6)], "some", str(rng.choice(STRENGTHS)), purpose)
    return stage


def _grow(stage: Usd.Stage, path: str, depth: int, rng: np.random.Generator, prototypes: list[str]) -> None:
    for k in range(3):
        here = f"{path}/c{k}"
        kind = rng.random()
        if depth and kind < 0.6:
            UsdGeom.Xform.Define(stage, here)
            _grow(stage, here, depth - 1, rng, prototypes)
        elif prototypes and kind < 0.8:
            prim = UsdGeom.Xform.Define(stage, here).GetPrim()
            prim.GetReferences().AddInternalReference(prototypes[rng.integers(2)])
            prim.SetInstanceable(True)
        else:
            mesh = UsdGeom.Mesh.Define(stage, here)
            mesh.CreatePointsAttr([(0, 0, 0), (1, 0, 0), (0, 1, 0)])
            mesh.CreateFaceVertexCountsAttr([3, 3, 3])
            mesh.CreateFaceVertexIndicesAttr([0, 1, 2] * 3)
            mesh.CreateSubdivisionSchemeAttr("none")
            if rng.random() < 0.5:
                UsdGeom.Subset.CreateGeomSubset(mesh, "s0", "face", [int(rng.integers(3))], "materialBind", "nonOverlapping")


def said_by_usd(prim: Usd.Prim, purpose: str) -> str:
    material = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial(purpose)[0]
    return str(material.GetPath()) if material else ""


@pytest.mark.parametrize("purposes", [("full", ""), ("preview", ""), ("",)])
@pytest.mark.parametrize("seed", range(8))
def test_bindings_are_those_that_usd_computes_prim_by_prim(read, seed, purposes):
    stage = random_stage(seed)
    found = read(stage, material_purposes=purposes)
    proxies = subsets = 0
    assert len(found.gprims) >= 5
    for gprim in found.gprims:
        prim = stage.GetPrimAtPath(gprim.path)
        proxies += prim.IsInstanceProxy()
        assert gprim.material == said_by_usd(prim, purposes[0]), gprim.path
        faces = gprim.mesh.face_subset
        for k, subset in enumerate(UsdGeom.Subset.GetAllGeomSubsets(UsdGeom.Imageable(prim))):
            subsets += 1
            face = subset.GetIndicesAttr().Get()[0]
            slot = faces[face] if faces is not None else -1
            drawn = (gprim.subset_materials[slot] if slot >= 0 else "") or gprim.material
            assert drawn == said_by_usd(subset.GetPrim(), purposes[0]), (gprim.path, k)
    assert (proxies, subsets) != (0, 0)


def test_random_stages_have_what_they_are_for():
    """Instances, subsets and bindings that differ by purpose, over all seeds."""
    instances = subsets = differing = 0
    for seed in range(8):
        stage = random_stage(seed)
        for prim in stage.Traverse(Usd.TraverseInstanceProxies()):
            instances += prim.IsInstance()
            subsets += prim.IsA(UsdGeom.Subset)
            differing += prim.IsA(UsdGeom.Gprim) and len({said_by_usd(prim, purpose) for purpose in ("", "full", "preview")}) > 1
    assert min(instances, subsets, differing) > 10
