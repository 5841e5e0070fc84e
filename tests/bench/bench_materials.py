"""Reading materials and bindings, against plain loops over pxr that ask the same in the same process.

    python tests/bench/bench_materials.py [--rounds N] [--materials N] [--prims N]

A line a figure: the median ratio of interleaved runs.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

from pxr import Gf, Sdf, Usd, UsdGeom, UsdShade

import hdwarp  # noqa: F401  (registers the schemas before the first stage opens)
from hdwarp.errors import Diagnostics
from hdwarp.stage.bindings import bound_materials
from hdwarp.stage.images import Images
from hdwarp.stage.materials import read_material
from hdwarp.stage.networks import nodes_outside

TIME = Usd.TimeCode.EarliestTime()


def material_stage(count: int) -> Usd.Stage:
    """Materials as exporters write them: a UsdPreviewSurface with constants and an interface, roughness and metalness from one primvar
    reader each, and a texture with its reader whose file is not there: decoding images is no query."""
    layer = Sdf.Layer.CreateAnonymous(".usda")
    stage = Usd.Stage.Open(layer)
    types = Sdf.ValueTypeNames
    for k in range(count):
        material = UsdShade.Material.Define(stage, f"/m{k}")
        paint = material.CreateInput("paint", types.Color3f)
        paint.Set(Gf.Vec3f(0.1, 0.2, (k % 100) / 100))
        surface = UsdShade.Shader.Define(stage, f"/m{k}/surface")
        surface.CreateIdAttr("UsdPreviewSurface")
        surface.CreateInput("diffuseColor", types.Color3f).ConnectToSource(paint)
        for name, value in (("ior", 1.4), ("clearcoat", 0.5), ("opacity", 1.0), ("occlusion", 1.0), ("opacityThreshold", 0.0)):
            surface.CreateInput(name, types.Float).Set(value)
        for name in ("roughness", "metallic"):
            reader = UsdShade.Shader.Define(stage, f"/m{k}/{name}")
            reader.CreateIdAttr("UsdPrimvarReader_float")
            reader.CreateInput("varname", types.String).Set(name)
            reader.CreateInput("fallback", types.Float).Set(0.5)
            surface.CreateInput(name, types.Float).ConnectToSource(reader.CreateOutput("result", types.Float))
        st = UsdShade.Shader.Define(stage, f"/m{k}/st")
        st.CreateIdAttr("UsdPrimvarReader_float2")
        st.CreateInput("varname", types.String).Set("st")
        texture = UsdShade.Shader.Define(stage, f"/m{k}/texture")
        texture.CreateIdAttr("UsdUVTexture")
        texture.CreateInput("file", types.Asset).Set("")
        texture.CreateInput("st", types.Float2).ConnectToSource(st.CreateOutput("result", types.Float2))
        texture.CreateInput("wrapS", types.Token).Set("repeat")
        texture.CreateInput("fallback", types.Float4).Set(Gf.Vec4f(0.5, 0.5, 0.5, 1))
        surface.CreateInput("emissiveColor", types.Color3f).ConnectToSource(texture.CreateOutput("rgb", types.Float3))
        material.CreateSurfaceOutput().ConnectToSource(surface.CreateOutput("surface", types.Token))
    return stage


def queries(stage: Usd.Stage) -> int:
    """What pxr needs for the same: the surface, its inputs, what produces their values, and so on for the nodes that these are of."""
    count = 0
    for prim in stage.GetPseudoRoot().GetChildren():
        todo, seen = [UsdShade.Material(prim).ComputeSurfaceSource()[0]], set()
        while todo:
            node = todo.pop()
            node.GetShaderId()
            for found in node.GetInputs():
                for attribute in found.GetValueProducingAttributes():
                    if UsdShade.Input.IsInput(attribute):
                        attribute.Get(TIME)
                        count += 1
                    elif attribute.GetPrim().GetPath() not in seen:
                        seen.add(attribute.GetPrim().GetPath())
                        todo.append(UsdShade.Shader(attribute.GetPrim()))
    return count


def read_all(stage: Usd.Stage) -> int:
    images, told = Images(), Diagnostics()
    for prim in stage.GetPseudoRoot().GetChildren():
        material, path = UsdShade.Material(prim), str(prim.GetPath())
        read_material(material, path, TIME, images, told)
        nodes_outside(material, path)
    return len(told)


def bound_stage(count: int) -> Usd.Stage:
    """Groups of 100 prims, bound by group, one in ten by itself, and a tenth of the groups by a collection at the root."""
    stage = Usd.Stage.CreateInMemory()
    with Sdf.ChangeBlock():
        layer = stage.GetRootLayer()
        for name in ("red", "green", "blue"):
            Sdf.CreatePrimInLayer(layer, f"/{name}").specifier = Sdf.SpecifierDef
            layer.GetPrimAtPath(f"/{name}").typeName = "Material"
        for k in range(count):
            group = f"/w/g{k // 100}"
            spec = Sdf.CreatePrimInLayer(layer, f"{group}/p{k}")
            spec.typeName, spec.specifier = "Cube", Sdf.SpecifierDef
            if k % 100 == 0:
                _bind(layer.GetPrimAtPath(group), "/red")
            if k % 10 == 0:
                _bind(spec, "/green")
        for path in ("/w", *(f"/w/g{k}" for k in range(-(-count // 100)))):
            layer.GetPrimAtPath(path).specifier = Sdf.SpecifierDef
            layer.GetPrimAtPath(path).typeName = "Xform"
    root = stage.GetPrimAtPath("/w")
    some = Usd.CollectionAPI.Apply(root, "some")
    some.CreateExpansionRuleAttr("expandPrims")
    some.CreateIncludesRel().SetTargets([Sdf.Path(f"/w/g{k}") for k in range(0, -(-count // 100), 10)])
    UsdShade.MaterialBindingAPI.Apply(root).Bind(some, UsdShade.Material.Get(stage, "/blue"), "blues", "strongerThanDescendants")
    return stage


def _bind(spec: Sdf.PrimSpec, material: str) -> None:
    Sdf.RelationshipSpec(spec, "material:binding").targetPathList.explicitItems = [Sdf.Path(material)]
    spec.SetInfo("apiSchemas", Sdf.TokenListOp.Create(prependedItems=["MaterialBindingAPI"]))


def ratio(ours: Callable[[], object], theirs: Callable[[], object], rounds: int) -> tuple[float, float, float]:
    """(median of ours / theirs, medians of both in seconds), run in turns."""
    times: tuple[list[float], list[float]] = [], []
    for _ in range(rounds):
        for taken, work in zip(times, (ours, theirs), strict=True):
            start = time.perf_counter()
            work()
            taken.append(time.perf_counter() - start)
    return statistics.median(a / b for a, b in zip(*times, strict=True)), *map(statistics.median, times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--materials", type=int, default=1000)
    parser.add_argument("--prims", type=int, default=100_000)
    given = parser.parse_args()
    stage = material_stage(given.materials)
    found, ours, theirs = ratio(lambda: read_all(stage), lambda: queries(stage), given.rounds)
    print(f"{given.materials} materials read: {1e3 * ours:.1f} ms, {found:.2f} of pxr's {1e3 * theirs:.1f} ms for the same queries")
    for count in (given.prims // 10, given.prims):
        found, ours, theirs = _bindings(count, given.rounds)
        print(f"{count} prims bound: {ours:.2f} s, {1e6 * ours / count:.1f} us a prim, {found:.2f} of ComputeBoundMaterials")


def _bindings(count: int, rounds: int) -> tuple[float, float, float]:
    stage = bound_stage(count)
    paths = [str(prim.GetPath()) for prim in stage.Traverse() if prim.IsA(UsdGeom.Gprim)]
    prims = [stage.GetPrimAtPath(path) for path in paths]
    return ratio(
        lambda: bound_materials(stage, paths, ("full", ""), Diagnostics()),
        lambda: UsdShade.MaterialBindingAPI.ComputeBoundMaterials(prims, "full"),
        rounds,
    )


if __name__ == "__main__":
    main()
