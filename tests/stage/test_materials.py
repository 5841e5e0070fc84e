"""Material bindings, GeomSubsets and the constants of UsdPreviewSurface."""

from __future__ import annotations

import pytest

from hdwarp.errors import Severity


def surface(name: str, inputs: str = "", *, shader: str = "UsdPreviewSurface", more: str = "", output: str = "outputs:surface") -> str:
    identifier = f'uniform token info:id = "{shader}"' if shader else ""
    return f"""def Material "{name}" {{
        token {output}.connect = </{name}/s.outputs:surface>
        def Shader "s" {{
            {identifier}
            {inputs}
            token outputs:surface
        }}
        {more}
    }}
    """


def cube(binding: str, name: str = "c") -> str:
    return f'def Cube "{name}" (\n    prepend apiSchemas = ["MaterialBindingAPI"]\n) {{ rel material:binding = <{binding}> }}\n'


INPUTS = """color3f inputs:diffuseColor = (0.1, 0.2, 0.3)
            color3f inputs:emissiveColor = (1, 2, 3)
            float inputs:metallic = 0.25
            float inputs:roughness = 0.75
            float inputs:opacity = 1
            float inputs:ior = 1.33
            int inputs:useSpecularWorkflow = 1
            color3f inputs:specularColor = (0.4, 0.5, 0.6)"""


def test_constants(read):
    material = read(surface("m", INPUTS) + cube("/m")).material("/c")
    assert material.path == "/m"
    assert material.diffuse_color == pytest.approx((0.1, 0.2, 0.3))
    assert material.emissive_color == (1, 2, 3)
    assert (material.metallic, material.roughness, material.opacity) == (0.25, 0.75, 1.0)
    assert material.ior == pytest.approx(1.33)
    assert material.use_specular_workflow is True
    assert material.specular_color == pytest.approx((0.4, 0.5, 0.6))


def test_fallbacks(read):
    found = read(surface("m") + cube("/m"))
    material = found.material("/c")
    assert material.diffuse_color == (0.18, 0.18, 0.18)
    assert (material.metallic, material.roughness, material.opacity, material.ior) == (0.0, 0.5, 1.0, 1.5)
    assert found.codes() == []


def test_unbound_prims_have_no_material(read):
    found = read(surface("m") + 'def Cube "c" {}')
    assert found.gprim("/c").material == ""
    assert found.materials == []  # what nobody uses is not read


def test_an_interface_input_and_a_node_graph_are_followed(read):
    text = """def Material "m" {
        color3f inputs:paint = (0.1, 0.2, 0.3)
        token outputs:surface.connect = </m/g.outputs:surface>
        def NodeGraph "g" {
            color3f inputs:through.connect = </m.inputs:paint>
            token outputs:surface.connect = </m/g/s.outputs:surface>
            def Shader "s" {
                uniform token info:id = "UsdPreviewSurface"
                color3f inputs:diffuseColor.connect = </m/g.inputs:through>
                token outputs:surface
            }
        }
    }
    """
    assert read(text + cube("/m")).material("/c").diffuse_color == pytest.approx((0.1, 0.2, 0.3))


TEXTURE = """def Shader "t" {
            uniform token info:id = "UsdUVTexture"
            asset inputs:file = @missing.png@
            %s
            float3 outputs:rgb
            float outputs:g
        }"""


@pytest.mark.parametrize(
    ("fallback", "own", "expected"),
    [
        ("float4 inputs:fallback = (0.9, 0.8, 0.7, 1)", " = (0.1, 0.2, 0.3)", (0.9, 0.8, 0.7)),
        ("", " = (0.1, 0.2, 0.3)", (0.1, 0.2, 0.3)),
        ("", "", (0.18, 0.18, 0.18)),
    ],
)
def test_textures_give_their_fallback(read, fallback, own, expected):
    inputs = (f"color3f inputs:diffuseColor{own}\n" if own else "") + "color3f inputs:diffuseColor.connect = </m/t.outputs:rgb>"
    found = read(surface("m", inputs, more=TEXTURE % fallback) + cube("/m"))
    assert found.material("/c").diffuse_color == pytest.approx(expected)
    assert found.codes("/m") == ["texture"]
    assert "diffuseColor" in found.message("texture")


def test_a_channel_of_a_textures_fallback(read):
    inputs = "float inputs:roughness.connect = </m/t.outputs:g>"
    found = read(surface("m", inputs, more=TEXTURE % "float4 inputs:fallback = (0.9, 0.8, 0.7, 1)") + cube("/m"))
    assert found.material("/c").roughness == pytest.approx(0.8)


def test_display_color_through_a_primvar_reader(read):
    reader = """def Shader "r" {
            uniform token info:id = "UsdPrimvarReader_float3"
            string inputs:varname = "displayColor"
            %s
            float3 outputs:result
        }"""
    inputs = "color3f inputs:diffuseColor.connect = </m/r.outputs:result>"
    found = read(surface("m", inputs, more=reader % "") + cube("/m"))
    assert (found.material("/c").diffuse_color, found.material("/c").textures) == (None, {})
    assert found.codes() == []
    found = read(surface("m", inputs, more=reader % "float3 inputs:fallback = (0.5, 0.25, 0.75)") + cube("/m"))
    shown = found.material("/c").textures["diffuseColor"]
    assert (shown.image, shown.st, shown.channel, shown.fallback[:3]) == (None, "displayColor", -1, (0.5, 0.25, 0.75))
    assert found.codes() == []


READER = """def Shader "r" {
            uniform token info:id = "UsdPrimvarReader_%s"
            string inputs:varname = "wear"
            %s
            token outputs:result
        }"""


@pytest.mark.parametrize(
    ("kind", "fallback", "channel", "shown"),
    [
        ("float", "float inputs:fallback = 0.25", 0, (0.25, 0, 0, 0)),
        ("float3", "float3 inputs:fallback = (0.25, 0.5, 0.75)", -1, (0.25, 0.5, 0.75, 0)),
        ("normal", "normal3f inputs:fallback = (0.25, 0.5, 0.75)", -1, (0.25, 0.5, 0.75, 0)),
        ("point", "", -1, (0, 0, 0, 0)),
        ("vector", "", -1, (0, 0, 0, 0)),
        ("float4", "float4 inputs:fallback = (1, 2, 3, 4)", -1, (1, 2, 3, 4)),
        ("float2", "float2 inputs:fallback = (1, 2)", -1, (1, 2, 0, 0)),
    ],
)
def test_readers_show_primvars_themselves(read, kind, fallback, channel, shown):
    inputs = "color3f inputs:emissiveColor.connect = </m/r.outputs:result>"
    found = read(surface("m", inputs, more=READER % (kind, fallback)) + cube("/m"))
    texture = found.material("/c").textures["emissiveColor"]
    assert (texture.image, texture.st, texture.channel, texture.fallback) == (None, "wear", channel, shown)
    assert found.codes() == []


def test_a_single_number_takes_the_first_of_several_and_tells(read):
    inputs = "float inputs:roughness.connect = </m/r.outputs:result>"
    found = read(surface("m", inputs, more=READER % ("float3", "")) + cube("/m"))
    assert found.material("/c").textures["roughness"].channel == 0
    assert found.codes("/m") == ["material-input"]


@pytest.mark.parametrize("kind", ["string", "int", "matrix"])
def test_readers_of_what_no_surface_shows_are_told(read, kind):
    inputs = "float inputs:roughness = 0.25\nfloat inputs:roughness.connect = </m/r.outputs:result>"
    found = read(surface("m", inputs, more=READER % (kind, "")) + cube("/m"))
    assert found.material("/c").roughness == 0.25
    assert found.codes("/m") == ["texture"]
    assert f"of type {kind}" in found.message("texture")


def test_every_input_and_mode(read):
    more = """float inputs:clearcoat = 0.25
            float inputs:clearcoatRoughness = 0.5
            float inputs:occlusion = 0.75
            token inputs:opacityMode = "presence"
        """
    material = read(surface("m", more) + cube("/m")).material("/c")
    assert (material.clearcoat, material.clearcoat_roughness, material.occlusion) == (0.25, 0.5, 0.75)
    assert material.opacity_mode == "presence"
    found = read(surface("m", 'token inputs:opacityMode = "gone"') + cube("/m"))
    assert (found.material("/c").opacity_mode, found.codes("/m")) == ("transparent", ["material-input"])


@pytest.mark.parametrize("text", ["float inputs:displacement = 0.5", "float inputs:displacement.connect = </m.inputs:bump>"])
def test_displacement_is_told(read, text):
    found = read(surface("m", text) + cube("/m"))
    assert [(item.code, item.severity) for item in found.diagnostics] == [("displacement", Severity.NOTE)]
    assert read(surface("m", "float inputs:displacement = 0") + cube("/m")).codes() == []


@pytest.mark.parametrize("shader", ["ND_surface", "PxrSurface", ""])
def test_unknown_shaders_are_grey_and_noted(read, shader):
    found = read(surface("m", "color3f inputs:diffuseColor = (1, 0, 0)", shader=shader) + cube("/m"))
    assert found.material("/c").diffuse_color == (0.18, 0.18, 0.18)
    assert [(item.path, item.code, item.severity) for item in found.diagnostics] == [("/m", "material", Severity.NOTE)]


def test_any_render_context_will_do_the_universal_first(read):
    red, green = ("color3f inputs:diffuseColor = (1, 0, 0)", "color3f inputs:diffuseColor = (0, 1, 0)")
    assert read(surface("m", red, output="outputs:mtlx:surface") + cube("/m")).material("/c").diffuse_color == (1, 0, 0)
    both = f"""def Material "m" {{
        token outputs:ri:surface.connect = </m/a.outputs:surface>
        token outputs:surface.connect = </m/b.outputs:surface>
        def Shader "a" {{
            uniform token info:id = "UsdPreviewSurface"
            {red}
            token outputs:surface
        }}
        def Shader "b" {{
            uniform token info:id = "UsdPreviewSurface"
            {green}
            token outputs:surface
        }}
    }}
    """
    assert read(both + cube("/m")).material("/c").diffuse_color == (0, 1, 0)


def test_materials_without_surface(read):
    assert read('def Material "m" {}\n' + cube("/m")).codes("/m") == ["material"]


@pytest.mark.parametrize(
    ("opacity", "threshold", "cut", "noted"),
    [(0.5, 0.0, False, False), (0.5, 0.6, True, True), (0.6, 0.6, False, False), (1.0, 0.5, False, False)],
)
def test_opacity_threshold_cuts(read, opacity, threshold, cut, noted):
    """Below a threshold above 0 nothing is drawn, and a note says so; at or above it the surface is opaque. Without one it is blended."""
    found = read(surface("m", f"float inputs:opacity = {opacity}\nfloat inputs:opacityThreshold = {threshold}") + cube("/m"))
    material = found.material("/c")
    assert (material.opacity, material.opacity_threshold) == pytest.approx((opacity, threshold))
    assert material.is_cut_away == cut
    assert material.is_blended == (threshold == 0.0)
    assert ("opacity" in found.codes("/m")) == noted


def test_bad_values_are_warned_of(read):
    found = read(surface("m", 'float inputs:opacity = 0.5\nfloat inputs:metallic = nan\nstring inputs:roughness = "rough"') + cube("/m"))
    assert found.codes("/m") == ["material-input", "material-input"]
    assert (found.material("/c").opacity, found.material("/c").metallic, found.material("/c").roughness) == (0.5, 0.0, 0.5)


def test_a_binding_to_nothing_is_named(read):
    found = read(cube("/gone"))
    assert found.gprim("/c").material == ""
    assert found.codes("/c") == ["material-missing"]


def test_materials_are_in_path_order_and_read_once(read):
    found = read(surface("z") + surface("a") + cube("/z", "c") + cube("/a", "d") + cube("/z", "e"))
    assert [material.path for material in found.materials] == ["/a", "/z"]
    assert [found.gprim(path).material for path in ("/c", "/d", "/e")] == ["/z", "/a", "/z"]


# -- bindings: openusd.md fact 21 ----------------------------------------------------------------------------------------------

COLORS = 'def Material "red" {}\ndef Material "green" {}\n'


def bound(read, text: str, path: str, **options) -> str:
    material = read(COLORS + text, **options).material(path)
    return "" if material is None else material.path


def family(parent: str, child: str) -> str:
    api = 'prepend apiSchemas = ["MaterialBindingAPI", "CollectionAPI:all"]'
    return f'def Xform "p" (\n    {api}\n) {{\n    {parent}\n    def Cube "c" (\n    {api}\n    ) {{\n        {child}\n    }}\n}}'


STRONG = '(\n    bindMaterialAs = "strongerThanDescendants"\n)'
COLLECTION = 'uniform token collection:all:expansionRule = "expandPrims"\nrel collection:all:includes = </p>\n'


@pytest.mark.parametrize(
    ("parent", "child", "expected"),
    [
        ("rel material:binding = </red>", "", "/red"),
        ("rel material:binding = </red>", "rel material:binding = </green>", "/green"),
        (f"rel material:binding = </red> {STRONG}", "rel material:binding = </green>", "/red"),
        (COLLECTION + "rel material:binding:collection:x = [</p.collection:all>, </red>]", "", "/red"),
        (COLLECTION + "rel material:binding:collection:x = [</p.collection:all>, </red>]", "rel material:binding = </green>", "/green"),
        (COLLECTION + "rel material:binding:collection:x = [</p.collection:all>, </red>]\nrel material:binding = </green>", "", "/red"),
    ],
)
def test_binding_strength(read, parent, child, expected):
    assert bound(read, family(parent, child), "/p/c") == expected


def test_a_collection_binds_only_what_it_includes(read):
    text = """def Xform "p" (
        prepend apiSchemas = ["MaterialBindingAPI", "CollectionAPI:some"]
    ) {
        uniform token collection:some:expansionRule = "expandPrims"
        rel collection:some:includes = </p/a>
        rel material:binding:collection:x = [</p.collection:some>, </red>]
        def Cube "a" {}
        def Cube "b" {}
    }"""
    assert bound(read, text, "/p/a") == "/red"
    assert bound(read, text, "/p/b") == ""


@pytest.mark.parametrize(
    ("purposes", "expected"),
    [
        (("full", ""), "/green"),
        (("preview", ""), "/red"),
        (("",), "/green"),
        (("preview",), "/red"),
        (("full",), ""),
        (("full", "preview"), "/red"),
    ],
)
def test_binding_purposes_in_order(read, purposes, expected):
    """Only a preview and an all-purpose binding: full falls back to all-purpose, and only where that is asked for."""
    text = family("", "rel material:binding:preview = </red>\nrel material:binding = </green>")
    assert bound(read, text, "/p/c", material_purposes=purposes) == expected


# -- subsets --------------------------------------------------------------------------------------------------------------------


def subset(name: str, indices: str, binding: str = "", *, family_name: str = "materialBind", element: str = "face") -> str:
    said = f"rel material:binding = <{binding}>" if binding else ""
    return f"""def GeomSubset "{name}" (
        prepend apiSchemas = ["MaterialBindingAPI"]
    ) {{
        uniform token elementType = "{element}"
        uniform token familyName = "{family_name}"
        int[] indices = {indices}
        {said}
    }}
    """


def grid(subsets: str, binding: str = "/green") -> str:
    return f"""def Mesh "m" (
        prepend apiSchemas = ["MaterialBindingAPI"]
    ) {{
        int[] faceVertexCounts = [3, 3, 3, 3]
        int[] faceVertexIndices = [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2]
        point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 1, 0)]
        uniform token subdivisionScheme = "none"
        rel material:binding = <{binding}>
        {subsets}
    }}
    """


def slots(found) -> list[str]:
    """Material of each face as the columns tell it."""
    gprim = found.gprim("/m")
    faces = found.mesh("/m").face_subset
    chosen = [gprim.subset_materials[slot] if slot >= 0 else "" for slot in (faces if faces is not None else [-1] * 4)]
    return [name or gprim.material for name in chosen]


def test_subsets_give_faces_their_material_and_the_rest_keep_the_meshs(read):
    found = read(COLORS + 'def Material "blue" {}\n' + grid(subset("a", "[0]", "/red") + subset("b", "[3]", "/blue")))
    assert slots(found) == ["/red", "/green", "/green", "/blue"]
    assert found.mesh("/m").face_subset.tolist() == [0, -1, -1, 1]
    assert found.mesh("/m").face_subset.dtype.name == "int16"


def test_a_subset_bound_to_nothing_has_the_meshs_material(read):
    assert slots(read(COLORS + grid(subset("a", "[0]")))) == ["/green"] * 4


@pytest.mark.parametrize(("family_name", "element"), [("other", "face"), ("materialBind", "point")])
def test_other_families_and_elements_do_not_count(read, family_name, element):
    found = read(COLORS + grid(subset("a", "[0]", "/red", family_name=family_name, element=element)))
    assert found.mesh("/m").face_subset is None
    assert slots(found) == ["/green"] * 4


def test_bad_subset_indices_are_named_and_the_rest_counts(read):
    found = read(COLORS + grid(subset("a", "[0, 9, -1, 0]", "/red") + subset("b", "[0, 1]", "/green")))
    assert found.mesh("/m").face_subset.tolist() == [0, 1, -1, -1]
    assert found.codes("/m/a") == ["subset-indices", "subset-duplicates"]
    assert found.codes("/m/b") == ["subset-duplicates"]


def test_meshes_with_equal_subsets_but_other_materials_share_geometry(read):
    one, other = grid(subset("a", "[0]", "/red")), grid(subset("a", "[0]", "/green")).replace('"m"', '"n"', 1)
    found = read(COLORS + one + other)
    assert len(found.meshes) == 1
    assert found.gprim("/m").subset_materials != found.gprim("/n").subset_materials


# -- bindings and connections that lead nowhere --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("binding", "said"),
    [
        ("rel material:binding = [</m>, </n>]", "names 2 materials"),
        ("rel material:binding = </c.material:binding>", "leads from </c.material:binding> to no prim"),
        ("rel material:binding:full = [</m>, </n>]", "material:binding:full names 2 materials"),
        ("int material:binding = 5", "is not a relationship"),
    ],
)
@pytest.mark.parametrize("above", [False, True])
def test_a_binding_that_binds_nothing_is_named(read, binding, said, above):
    """What is bound above counts then, and other prims keep their materials."""
    broken = cube("/m", "c").replace("rel material:binding = </m>", binding)
    if above:
        inner = broken.replace("</c.", "</x/c.")
        broken = f'def Xform "x" (prepend apiSchemas = ["MaterialBindingAPI"]) {{ rel material:binding = </m>; {inner} }}'
    found = read(surface("m") + surface("n") + cube("/n", "fine") + broken)
    path = "/x/c" if above else "/c"
    assert found.codes(path) == ["material-binding"]
    assert said.replace("</c.", f"<{path}.") in found.message("material-binding")
    assert found.material("/fine").path == "/n"
    if not above:
        assert found.material(path) is None
    elif not binding.startswith("int"):
        assert found.material(path).path == "/m"


@pytest.mark.parametrize("source", ["</m/s.inputs:diffuseColor>", "</m.inputs:round>", "</m/gone.outputs:rgb>"])
def test_an_input_connected_to_nothing_is_named_and_keeps_its_own_value(read, source):
    more = "color3f inputs:round.connect = </m.inputs:round>"
    inputs = f"color3f inputs:diffuseColor = (1, 0, 0)\ncolor3f inputs:diffuseColor.connect = {source}"
    found = read(surface("m", inputs, more=more) + cube("/m"))
    assert found.codes("/m") == ["material-connection"]
    assert "inputs:diffuseColor is connected to" in found.message("material-connection")


def test_an_interface_without_a_value_is_no_mistake(read):
    found = read(surface("m", "color3f inputs:diffuseColor.connect = </m.inputs:tint>", more="color3f inputs:tint") + cube("/m"))
    assert found.codes("/m") == []
    assert found.material("/c").diffuse_color == (0.18, 0.18, 0.18)
