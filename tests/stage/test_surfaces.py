"""Surfaces of MaterialX and of Omniverse's mdl library, read as what they have in common with UsdPreviewSurface."""

from __future__ import annotations

import math

import numpy as np
import PIL.Image
import pytest

from hdwarp.errors import Severity
from hdwarp.stage.looks import Texture


@pytest.fixture
def png(tmp_path):
    def write(name: str, value: int = 7) -> str:
        PIL.Image.fromarray(np.full((2, 2, 3), value, np.uint8)).save(tmp_path / name)
        return str(tmp_path / name)

    return write


def node(name: str, identifier: str, body: str = "") -> str:
    return f"""def Shader "{name}" {{
            uniform token info:id = "{identifier}"
            {body}
            token outputs:out
            float outputs:outg
        }}
        """


CUBE = """def Cube "c" (
        prepend apiSchemas = ["MaterialBindingAPI"]
    ) { rel material:binding = </m> }
    """


def mtlx(identifier: str, inputs: str = "", more: str = "", output: str = "outputs:mtlx:surface") -> str:
    """/m, bound to the cube /c."""
    return (
        f"""def Material "m" {{
        token {output}.connect = </m/s.outputs:out>
        {node("s", identifier, inputs)}
        {more}
    }}
    """
        + CUBE
    )


STANDARD, OPEN_PBR, GLTF = "ND_standard_surface_surfaceshader", "ND_open_pbr_surface_surfaceshader", "ND_gltf_pbr_surfaceshader"


def look(material) -> tuple:
    return material.diffuse_color, material.metallic, material.roughness, material.ior, material.clearcoat, material.opacity


@pytest.mark.parametrize(
    ("identifier", "expected"),
    [
        (STANDARD, ((0.8, 0.8, 0.8), 0.0, 0.2, 1.5, 0.0, 1.0)),
        (STANDARD + "_100", ((0.8, 0.8, 0.8), 0.0, 0.2, 1.5, 0.0, 1.0)),
        (OPEN_PBR, ((0.8, 0.8, 0.8), 0.0, 0.3, 1.5, 0.0, 1.0)),
        (GLTF, ((1.0, 1.0, 1.0), 1.0, 1.0, 1.5, 0.0, 1.0)),
    ],
)
@pytest.mark.parametrize("output", ["outputs:mtlx:surface", "outputs:surface"])
def test_fallbacks_of_the_surfaces(read, identifier, expected, output):
    """As MaterialX's definitions have them."""
    found = read(mtlx(identifier, output=output))
    assert look(found.material("/c")) == expected
    assert (found.material("/c").emissive_color, found.codes()) == ((0.0, 0.0, 0.0), [])


def test_standard_surface(read):
    inputs = """float inputs:base = 0.5
        color3f inputs:base_color = (0.25, 0.5, 1)
        float inputs:emission = 2
        color3f inputs:emission_color = (1, 0.5, 0)
        float inputs:metalness = 0.75
        float inputs:specular_roughness = 0.125
        float inputs:specular_IOR = 1.25
        float inputs:coat = 0.5
        float inputs:coat_roughness = 0.25
        color3f inputs:opacity = (0.25, 0.5, 0.75)
        float inputs:sheen = 0
        color3f inputs:sheen_color = (1, 0, 0)"""
    found = read(mtlx(STANDARD, inputs))
    material = found.material("/c")
    assert look(material) == ((0.125, 0.25, 0.5), 0.75, 0.125, 1.25, 0.5, 0.5)
    assert material.emissive_color == (2, 1, 0)
    assert (material.clearcoat_roughness, material.opacity_mode) == (0.25, "presence")
    assert "material-dropped" not in found.codes()


def test_open_pbr_surface(read):
    inputs = """float inputs:base_weight = 0.5
        color3f inputs:base_color = (0.25, 0.5, 1)
        float inputs:emission_luminance = 10
        color3f inputs:emission_color = (1, 0.5, 0)
        float inputs:base_metalness = 0.75
        float inputs:specular_ior = 1.25
        float inputs:coat_weight = 0.5
        float inputs:geometry_opacity = 0.5"""
    material = read(mtlx(OPEN_PBR, inputs)).material("/c")
    assert look(material) == ((0.125, 0.25, 0.5), 0.75, pytest.approx(0.3), 1.25, 0.5, 0.5)
    assert material.emissive_color == (10, 5, 0)


@pytest.mark.parametrize(("mode", "opacity", "threshold"), [(0, 1.0, 0.0), (1, 0.25, 0.5), (2, 0.25, 0.0)])
def test_alpha_modes_of_gltf(read, mode, opacity, threshold):
    material = read(mtlx(GLTF, f"float inputs:alpha = 0.25\nint inputs:alpha_mode = {mode}")).material("/c")
    assert (material.opacity, material.opacity_threshold) == (opacity, threshold)


def test_what_is_dropped_is_told_once(read):
    inputs = """float inputs:transmission = 1
        float inputs:subsurface.connect = </m/x.outputs:out>
        float inputs:thin_film_thickness = 0
        color3f inputs:specular_color = (1, 1, 1)"""
    found = read(mtlx(STANDARD, inputs, node("x", "ND_noise2d_float")))
    assert [(item.path, item.code, item.severity) for item in found.diagnostics] == [("/m", "material-dropped", Severity.NOTE)]
    message = found.message("material-dropped")
    assert "subsurface, transmission of its surface have no counterpart" in message


@pytest.mark.parametrize(("weight", "ior"), [(0.0, 1.0), (1.0, 1.5), (0.25, (1 + 0.1) / (1 - 0.1))])
def test_a_weight_of_the_reflection_lowers_it(read, weight, ior):
    """F0 is ((1 - n) / (1 + n))^2, 0.04 at 1.5: a quarter of it is 0.1^2."""
    assert read(mtlx(STANDARD, f"float inputs:specular = {weight}")).material("/c").ior == pytest.approx(ior)


# -- nodes of MaterialX -------------------------------------------------------------------------------------------------------


def image(file: str, more: str = "", kind: str = "color3", name: str = "t") -> str:
    return node(name, f"ND_image_{kind}", f"asset inputs:file = @{file}@\n{more}")


BASE = "color3f inputs:base_color.connect = </m/t.outputs:out>"


def base(found) -> Texture:
    return found.material("/c").textures["diffuseColor"]


def test_an_image(read, png):
    found = read(mtlx(STANDARD, BASE + "\nfloat inputs:base = 0.5", image(png("a.png"))))
    texture = base(found)
    assert (texture.st, texture.wrap_s, texture.wrap_t, texture.channel, texture.colour_space) == ("st", "repeat", "repeat", -1, "auto")
    assert texture.scale[:3] == (0.5, 0.5, 0.5) and (texture.image.pixels[..., :3] == 7).all()
    assert found.codes() == []


@pytest.mark.parametrize(
    ("space", "kind", "read_as"),
    [("", "color3", "auto"), ("srgb_texture", "color3", "sRGB"), ("raw", "color3", "raw"), ("lin_rec709", "color3", "raw")],
)
def test_colour_spaces_of_files(read, png, space, kind, read_as):
    said = f'(\n            colorSpace = "{space}"\n        )' if space else ""
    found = read(mtlx(STANDARD, BASE, node("t", f"ND_image_{kind}", f"asset inputs:file = @{png('a.png')}@ {said}")))
    assert (base(found).colour_space, found.codes()) == (read_as, [])


def test_unknown_colour_spaces_are_told(read, png):
    body = f'asset inputs:file = @{png("a.png")}@ (\n            colorSpace = "acescg_of_ours"\n        )'
    found = read(mtlx(STANDARD, BASE, node("t", "ND_image_color3", body)))
    assert (base(found).colour_space, found.codes()) == ("auto", ["material-input"])


def test_address_modes_and_a_missing_file(read, png):
    more = 'string inputs:uaddressmode = "mirror"\nstring inputs:vaddressmode = "constant"'
    assert (lambda t: (t.wrap_s, t.wrap_t))(base(read(mtlx(STANDARD, BASE, image(png("a.png"), more))))) == ("mirror", "black")
    found = read(mtlx(STANDARD, BASE, image("gone.png", "color3f inputs:default = (0.25, 0.5, 0.75)")))
    assert (found.material("/c").diffuse_color, found.codes()) == ((0.25, 0.5, 0.75), ["texture"])


def test_single_numbers_of_images(read, png):
    """An image of floats, and a channel of one of colours: for metalness, which is no colour."""
    for more, channel in (
        (image(png("a.png"), kind="float", name="x"), 0),
        (node("x", "ND_extract_color3", "color3f inputs:in.connect = </m/t.outputs:out>\nint inputs:index = 2") + image(png("a.png")), 2),
    ):
        found = read(mtlx(STANDARD, "float inputs:metalness.connect = </m/x.outputs:out>", more))
        texture = found.material("/c").textures["metallic"]
        assert (texture.channel, found.codes()) == (channel, [])
    separate = node("x", "ND_separate3_color3", "color3f inputs:in.connect = </m/t.outputs:out>")
    found = read(mtlx(STANDARD, "float inputs:metalness.connect = </m/x.outputs:outg>", separate + image(png("a.png"))))
    assert found.material("/c").textures["metallic"].channel == 1


def place(scale, rotate, offset, pivot, order: int = 0):
    """NumPy twin of MaterialX's place2d, written from its node graph."""
    angle = math.radians(rotate)
    turn = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])

    def map_(uv):
        uv = np.asarray(uv, float) - pivot
        if order:
            return (turn @ (uv - offset)) / scale + pivot
        return turn @ (uv / scale) - offset + pivot

    return map_


@pytest.mark.parametrize("order", [0, 1])
def test_place2d(read, png, order):
    values = {"scale": (2.0, 0.5), "rotate": 30.0, "offset": (0.25, -0.5), "pivot": (0.5, 0.75)}
    body = "\n".join(f"{'float' if k == 'rotate' else 'float2'} inputs:{k} = {v}" for k, v in values.items())
    body += f"\nint inputs:operationorder = {order}\nfloat2 inputs:texcoord.connect = </m/g.outputs:out>"
    more = image(png("a.png"), "float2 inputs:texcoord.connect = </m/p.outputs:out>")
    more += node("p", "ND_place2d_vector2", body) + node("g", "ND_geompropvalue_vector2", 'string inputs:geomprop = "uv1"')
    found = read(mtlx(STANDARD, BASE, more))
    texture, twin = base(found), place(np.array(values["scale"]), 30.0, np.array(values["offset"]), np.array(values["pivot"]), order)
    assert (texture.st, found.codes()) == ("uv1", [])
    for uv in ((0, 0), (1, 0), (0, 1), (0.3, -2)):
        assert np.reshape(texture.st_linear, (2, 2)) @ uv + texture.st_offset == pytest.approx(twin(uv))


def test_tiled_images_and_arithmetic_on_coordinates(read, png):
    body = f"asset inputs:file = @{png('a.png')}@\nfloat2 inputs:uvtiling = (2, 4)\nfloat2 inputs:uvoffset = (0.25, 0.5)"
    texture = base(read(mtlx(STANDARD, BASE, node("t", "ND_tiledimage_color3", body))))
    assert (texture.st_linear, texture.st_offset) == ((2, 0, 0, 4), (-0.25, -0.5))
    more = image(png("a.png"), "float2 inputs:texcoord.connect = </m/x.outputs:out>")
    more += node("x", "ND_multiply_vector2FA", "float2 inputs:in1.connect = </m/g.outputs:out>\nfloat inputs:in2 = 3")
    more += node("g", "ND_texcoord_vector2", "int inputs:index = 1")
    texture = base(read(mtlx(STANDARD, BASE, more)))
    assert (texture.st, texture.st_linear) == ("st1", (3, 0, 0, 3))


@pytest.mark.parametrize(("identifier", "name"), [(STANDARD, "normal"), (OPEN_PBR, "geometry_normal"), (GLTF, "normal")])
def test_normal_maps(read, png, identifier, name):
    """From [0, 1] to [-1, 1], x and y times the map's scale; raw."""
    more = image(png("a.png"), kind="vector3")
    more += node("n", "ND_normalmap", "float3 inputs:in.connect = </m/t.outputs:out>\nfloat inputs:scale = 0.5")
    found = read(mtlx(identifier, f"float3 inputs:{name}.connect = </m/n.outputs:out>", more))
    texture = found.material("/c").textures["normal"]
    assert (texture.scale[:3], texture.bias[:3], texture.colour_space) == ((1, 1, 2), (-0.5, -0.5, -1), "raw")
    assert found.codes() == []


def test_arithmetic_on_colours(read, png):
    """Inverted, multiplied and added to: one texture with a scale and a bias; constants likewise."""
    more = node("t", "ND_add_color3", "color3f inputs:in1.connect = </m/m.outputs:out>\ncolor3f inputs:in2 = (0, 0.25, 0.5)")
    more += node("m", "ND_multiply_color3", "color3f inputs:in1 = (0.5, 1, 2)\ncolor3f inputs:in2.connect = </m/i.outputs:out>")
    more += node("i", "ND_invert_color3", "color3f inputs:in.connect = </m/f.outputs:out>")
    texture = base(read(mtlx(STANDARD, BASE, more + image(png("a.png"), name="f"))))
    assert texture.scale[:3] == (-0.5, -1, -2)
    assert texture.bias[:3] == (0.5, 1.25, 2.5)
    constant = node("f", "ND_constant_color3", "color3f inputs:value = (0.5, 0.25, 0.75)")
    assert read(mtlx(STANDARD, BASE, more + constant)).material("/c").diffuse_color == (0.25, 1.0, 1.0)


def test_primvars(read):
    """The mesh's colour drives the base colour as USD's displayColor does; another primvar shows itself, its default elsewhere."""
    found = read(mtlx(STANDARD, BASE, node("t", "ND_geomcolor_color3")))
    assert (found.material("/c").diffuse_color, found.material("/c").textures, found.codes()) == (None, {}, [])
    body = 'string inputs:geomprop = "paint"\ncolor3f inputs:default = (0.25, 0.5, 0.75)'
    found = read(mtlx(STANDARD, BASE + "\nfloat inputs:base = 0.5", node("t", "ND_geompropvalue_color3", body)))
    texture = base(found)
    assert (texture.image, texture.st, texture.scale[0], texture.fallback[:3]) == (None, "paint", 0.5, (0.125, 0.25, 0.375))


def test_a_tint_cannot_be_a_texture_too(read, png):
    more = node(
        "t", "ND_multiply_color3", "color3f inputs:in1.connect = </m/a.outputs:out>\ncolor3f inputs:in2.connect = </m/a.outputs:out>"
    )
    found = read(mtlx(STANDARD, BASE, more + image(png("a.png"), name="a")))
    assert (found.codes(), found.material("/c").textures) == (["texture"], {})


@pytest.mark.parametrize("identifier", ["ND_multiply_color3", "ND_convert_float_color3", "ND_extract_color3", "ND_normalmap"])
def test_nodes_in_a_circle_are_told(read, identifier):
    name = "in1" if "multiply" in identifier else "in"
    found = read(mtlx(STANDARD, BASE, node("t", identifier, f"color3f inputs:{name}.connect = </m/t.outputs:out>")))
    assert found.codes() == ["texture"]
    assert found.material("/c").diffuse_color == (0.8, 0.8, 0.8)


# -- which surface counts -----------------------------------------------------------------------------------------------------

MDL = """def Shader "{name}" {{
            uniform token info:implementationSource = "sourceAsset"
            uniform asset info:mdl:sourceAsset = @{module}@
            uniform token info:mdl:sourceAsset:subIdentifier = "{sub}"
            {inputs}
            token outputs:out
        }}
        """


def omnipbr(inputs: str = "", module: str = "OmniPBR.mdl", sub: str = "OmniPBR") -> str:
    shader = MDL.format(name="s", module=module, sub=sub, inputs=inputs)
    return f'def Material "m" {{\n        token outputs:mdl:surface.connect = </m/s.outputs:out>\n        {shader}\n    }}\n    {CUBE}'


@pytest.mark.parametrize(
    ("contexts", "roughness"),
    [("universal mtlx mdl", 0.125), ("mtlx mdl", 0.25), ("mdl", 0.375), ("unknown mtlx mdl", 0.25), ("unknown mdl", 0.375)],
)
def test_the_universal_surface_then_materialx_then_mdl(read, contexts, roughness):
    text = {
        "universal": "token outputs:surface.connect = </m/u.outputs:out>\n"
        + node("u", "UsdPreviewSurface", "float inputs:roughness = 0.125"),
        "unknown": "token outputs:surface.connect = </m/k.outputs:out>\n" + node("k", "PxrSurface"),
        "mtlx": "token outputs:mtlx:surface.connect = </m/x.outputs:out>\n" + node("x", STANDARD, "float inputs:specular_roughness = 0.25"),
        "mdl": "token outputs:mdl:surface.connect = </m/o.outputs:out>\n"
        + MDL.format(name="o", module="OmniPBR.mdl", sub="OmniPBR", inputs="float inputs:reflection_roughness_constant = 0.375"),
    }
    found = read('def Material "m" {\n' + "\n".join(text[name] for name in contexts.split()) + "\n}\n" + CUBE)
    assert found.material("/c").roughness == roughness
    assert found.codes() == []


# -- OmniPBR ------------------------------------------------------------------------------------------------------------------


def test_fallbacks_of_omnipbr(read):
    found = read(omnipbr())
    assert look(found.material("/c")) == ((0.2, 0.2, 0.2), 0.0, 0.5, pytest.approx(1.5), 0.0, 1.0)
    assert (found.material("/c").textures, found.codes()) == ({}, [])


@pytest.mark.parametrize(
    ("module", "sub", "known"),
    [
        ("OmniPBR.mdl", "OmniPBR", True),
        ("nvidia/core_definitions/OmniPBR.mdl", "OmniPBR", True),
        ("OmniPBR_Opacity.mdl", "OmniPBR_Opacity", True),
        ("Carpet.mdl", "OmniPBR", False),
        ("OmniPBR.mdl", "Carpet", False),
        ("", "OmniPBR", False),
    ],
)
def test_which_modules_are_omnipbr(read, module, sub, known):
    found = read(omnipbr("color3f inputs:diffuse_color_constant = (1, 0, 0)", module, sub))
    codes = [code for code in found.codes("/m") if code == "material"]
    assert (found.material("/c").diffuse_color, codes) == (((1, 0, 0), []) if known else ((0.18, 0.18, 0.18), ["material"]))


def test_constants_of_omnipbr(read):
    inputs = """color3f inputs:diffuse_color_constant = (0.5, 0.25, 1)
        color3f inputs:diffuse_tint = (0.5, 1, 1)
        float inputs:reflection_roughness_constant = 0.25
        float inputs:metallic_constant = 0.75
        float inputs:specular_level = 0
        bool inputs:enable_emission = 1
        color3f inputs:emissive_color = (1, 0.5, 0)
        float inputs:emissive_intensity = 10
        bool inputs:enable_opacity = 1
        float inputs:opacity_constant = 0.5
        float inputs:opacity_threshold = 0.25"""
    material = read(omnipbr(inputs)).material("/c")
    assert look(material) == ((0.25, 0.25, 1), 0.75, 0.25, 1.0, 0.0, 0.5)
    assert (material.emissive_color, material.opacity_threshold) == ((10, 5, 0), 0.25)
    off = read(omnipbr(inputs.replace("enable_emission = 1", "enable_emission = 0").replace("enable_opacity = 1", "enable_opacity = 0")))
    assert (off.material("/c").emissive_color, off.material("/c").opacity) == ((0, 0, 0), 1.0)


def test_textures_of_omnipbr(read, png):
    a = png("a.png")
    inputs = f"""asset inputs:diffuse_texture = @{a}@
        float inputs:albedo_brightness = 0.5
        float inputs:albedo_add = 0.25
        color3f inputs:diffuse_tint = (1, 0.5, 0)
        bool inputs:enable_ORM_texture = 1
        asset inputs:ORM_texture = @{a}@
        float inputs:reflection_roughness_constant = 0.5
        float inputs:reflection_roughness_texture_influence = 0.25
        float inputs:metallic_texture_influence = 1
        asset inputs:normalmap_texture = @{a}@
        float inputs:bump_factor = 0.5
        float2 inputs:texture_scale = (2, 4)
        float inputs:texture_rotate = 90
        float2 inputs:texture_translate = (0.25, 0.5)"""
    found = read(omnipbr(inputs))
    textures = found.material("/c").textures
    assert found.codes() == []
    assert sorted(textures) == ["diffuseColor", "metallic", "normal", "occlusion", "roughness"]
    assert len({texture.image for texture in textures.values()}) == 1
    assert (textures["diffuseColor"].scale[:3], textures["diffuseColor"].bias[:3]) == ((0.5, 0.25, 0), (0.125, 0.0625, 0))
    assert [textures[name].channel for name in ("occlusion", "roughness", "metallic")] == [0, 1, 2]
    assert (textures["roughness"].scale[0], textures["roughness"].bias[0]) == (0.25, 0.375)
    assert (textures["normal"].scale[:3], textures["normal"].bias[:3]) == ((1, 1, 2), (-0.5, -0.5, -1))
    assert [textures[name].colour_space for name in ("diffuseColor", "roughness", "normal")] == ["auto", "raw", "raw"]
    for texture in textures.values():
        assert texture.st_linear == pytest.approx((0, -4, 2, 0)) and texture.st_offset == (0.25, 0.5)


def test_what_omnipbr_has_and_we_have_not_is_told(read, png):
    found = read(
        omnipbr(f"bool inputs:project_uvw = 1\nfloat inputs:albedo_desaturation = 0.5\nasset inputs:diffuse_texture = @{png('a.png')}@")
    )
    assert found.codes() == ["material-dropped"]
    assert "albedo_desaturation, project_uvw" in found.message("material-dropped")


@pytest.mark.parametrize("name", ["diffuse_texture", "reflectionroughness_texture", "normalmap_texture"])
def test_a_missing_file_of_omnipbr_is_told(read, name):
    found = read(omnipbr(f"asset inputs:{name} = @gone.png@\nfloat inputs:reflection_roughness_texture_influence = 1"))
    assert found.codes() == ["texture"] and name in found.message("texture")
    assert (found.material("/c").textures, found.material("/c").diffuse_color) == ({}, (0.2, 0.2, 0.2))


# -- bad input ----------------------------------------------------------------------------------------------------------------


def test_graphs_that_multiply_their_nodes_end(read):
    """Each node uses the next one twice: 2^60 ways through 60 nodes."""
    body = "color3f inputs:in1.connect = </m/n{0}.outputs:out>\ncolor3f inputs:in2.connect = </m/n{0}.outputs:out>"
    more = "\n".join(node(f"n{k}", "ND_multiply_color3", body.format(k + 1)) for k in range(60))
    more += node("n60", "ND_constant_color3", "color3f inputs:value = (1, 1, 1)")
    found = read(mtlx(STANDARD, "color3f inputs:base_color.connect = </m/n0.outputs:out>", more))
    assert (found.codes(), found.material("/c").diffuse_color) == (["texture"], (0.8, 0.8, 0.8))


def test_products_stay_within_float32(read, png):
    inputs = "float inputs:base = 1e29\ncolor3f inputs:base_color = (1e29, 1, -1e29)"
    assert np.isfinite(np.float32(read(mtlx(STANDARD, inputs)).material("/c").diffuse_color)).all()
    more = node("t", "ND_multiply_color3", "color3f inputs:in1.connect = </m/f.outputs:out>\ncolor3f inputs:in2 = (1e29, 1e29, 1e29)")
    texture = base(read(mtlx(STANDARD, BASE + "\nfloat inputs:base = 1e29", more + image(png("a.png"), name="f"))))
    assert np.isfinite(np.float32(texture.scale)).all() and np.isfinite(np.float32(texture.bias)).all()


OF_OMNIPBR = [
    "diffuse_color_constant",
    "diffuse_texture",
    "albedo_brightness",
    "albedo_add",
    "diffuse_tint",
    "reflection_roughness_constant",
    "reflection_roughness_texture_influence",
    "reflectionroughness_texture",
    "metallic_constant",
    "metallic_texture",
    "specular_level",
    "ORM_texture",
    "enable_ORM_texture",
    "emissive_color",
    "emissive_intensity",
    "enable_emission",
    "opacity_constant",
    "enable_opacity",
    "opacity_threshold",
    "opacity_mode",
    "opacity_texture",
    "enable_opacity_texture",
    "normalmap_texture",
    "bump_factor",
    "texture_scale",
    "texture_rotate",
    "texture_translate",
    "uv_space_index",
    "project_uvw",
    "clearcoat_tint",
    "detail_normalmap_texture",
    "enable_clearcoat",
    "clearcoat_weight",
]


@pytest.mark.parametrize(
    "value",
    ['string {} = "wrong"', "float[] {} = [1, 2]", "float {} = nan", "matrix4d {}", "asset {} = @gone.png@", "float3 {} = (inf, 0, 0)"],
)
@pytest.mark.parametrize("surface", ["omnipbr", STANDARD, OPEN_PBR, GLTF, "UsdPreviewSurface"])
def test_inputs_of_wrong_types_crash_nothing(read, value, surface):
    """All at once; what is read is finite."""
    from hdwarp.stage.looks import MATERIAL_INPUTS
    from hdwarp.stage.surfaces import MODELS

    names = OF_OMNIPBR if surface == "omnipbr" else MATERIAL_INPUTS
    if surface in MODELS:
        model = MODELS[surface]
        names = [*{name for theirs in model.inputs.values() for name in theirs}, *model.dropped, model.specular, "alpha_mode"]
    inputs = "\n".join(value.format(f"inputs:{name}") for name in names)
    material = read(omnipbr(inputs) if surface == "omnipbr" else mtlx(surface, inputs, output="outputs:surface")).material("/c")
    numbers = [getattr(material, name) for name in ("metallic", "roughness", "clearcoat", "opacity", "ior", "occlusion")]
    assert np.isfinite([*numbers, *material.diffuse_color, *material.emissive_color]).all()
    assert material.textures == {}
