"""Networks of materials, read: interfaces and node graphs around textures, files, and what is wrong with them."""

from __future__ import annotations

import numpy as np
import PIL.Image
import pytest
from pxr import Gf, Sdf, Usd, UsdUtils

from hdwarp.errors import Severity
from hdwarp.stage.changes import StageEdits
from hdwarp.stage.looks import Texture
from hdwarp.stage.reader import StageReader


@pytest.fixture
def png(tmp_path):
    def write(name: str, value: int = 7) -> str:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        PIL.Image.fromarray(np.full((2, 2, 3), value, np.uint8)).save(tmp_path / name)
        return str(tmp_path / name)

    return write


READER = """def Shader "r" {
            uniform token info:id = "UsdPrimvarReader_float2"
            string inputs:varname = "st"
            float2 outputs:result
        }"""
LAID = "float2 inputs:st.connect = </m/r.outputs:result>"


def node(name: str, identifier: str, body: str = "") -> str:
    return f"""def Shader "{name}" {{
            uniform token info:id = "{identifier}"
            {body}
            float2 outputs:result
            float3 outputs:rgb
            float outputs:r
            float outputs:a
        }}
        """


def material(surface: str, more: str) -> str:
    """/m, bound to the cube /c."""
    return f"""def Material "m" {{
        token outputs:surface.connect = </m/s.outputs:surface>
        def Shader "s" {{
            uniform token info:id = "UsdPreviewSurface"
            {surface}
            token outputs:surface
        }}
        {more}
    }}
    def Cube "c" (
        prepend apiSchemas = ["MaterialBindingAPI"]
    ) {{ rel material:binding = </m> }}
    """


DIFFUSE = "color3f inputs:diffuseColor.connect = </m/t.outputs:rgb>"


def textured(file: str, more: str = LAID, others: str = READER, surface: str = DIFFUSE) -> str:
    return material(surface, node("t", "UsdUVTexture", f"asset inputs:file = @{file}@\n{more}") + others)


def diffuse(found) -> Texture | None:
    return found.material("/c").textures.get("diffuseColor")


def test_fallbacks_of_a_texture(read, png):
    """useMetadata, then black; auto; all of the image as it is."""
    found = read(textured(png("a.png")))
    texture = diffuse(found)
    assert found.codes() == []
    assert (texture.image.pixels[..., :3] == 7).all() and texture.image.srgb
    assert texture == Texture(texture.image, "st", "black", "black")


@pytest.mark.parametrize(("more", "told"), [("", True), ("float2 inputs:st = (0.5, 0.5)", False), (LAID, False)])
def test_a_texture_that_is_laid_by_nothing_is_noted(read, png, more, told):
    """It shows one point of its image, as the schema says; mostly somebody forgot to connect it."""
    found = read(textured(png("a.png"), more))
    noted = [item for item in found.diagnostics if item.code == "texture-coordinates"]
    assert [(item.path, item.severity) for item in noted] == ([("/m", Severity.NOTE)] if told else [])
    assert all("inputs:st of </m/t>" in item.message for item in noted)
    texture = diffuse(found)
    assert texture.st_linear == ((1.0, 0.0, 0.0, 1.0) if more == LAID else (0.0,) * 4)
    assert texture.st_offset == ((0.5, 0.5) if "0.5" in more else (0.0, 0.0))


def test_interfaces_and_node_graphs_are_followed(read, png):
    """File, primvar and rotation from the material's interface, the texture in a node graph: as plain connections give."""
    plain = node("x", "UsdTransform2d", "float2 inputs:in.connect = </m/r.outputs:result>\nfloat inputs:rotation = 90") + READER
    laid = "float2 inputs:st.connect = </m/x.outputs:result>"
    expected = diffuse(read(textured(png("a.png"), laid, plain)))
    inside = {
        "t": "asset inputs:file.connect = </m/g.inputs:image>; float2 inputs:st.connect = </m/g/x.outputs:result>",
        "x": "float2 inputs:in.connect = </m/g/r.outputs:result>; float inputs:rotation.connect = </m.inputs:turn>",
        "r": "string inputs:varname.connect = </m/g.inputs:uvset>",
    }
    graph = f"""asset inputs:image = @{png("a.png")}@
        string inputs:uvset = "st"
        float inputs:turn = 90
        def NodeGraph "g" {{
            asset inputs:image.connect = </m.inputs:image>
            string inputs:uvset.connect = </m.inputs:uvset>
            float3 outputs:colour.connect = </m/g/t.outputs:rgb>
            {node("t", "UsdUVTexture", inside["t"])}
            {node("x", "UsdTransform2d", inside["x"])}
            {node("r", "UsdPrimvarReader_float2", inside["r"])}
        }}"""
    found = read(material("color3f inputs:diffuseColor.connect = </m/g.outputs:colour>", graph))
    texture = diffuse(found)
    assert found.codes() == []
    assert texture.st == "st" and texture.st_linear == pytest.approx((0, -1, 1, 0))
    assert (texture.st_linear, texture.wrap_s) == (expected.st_linear, expected.wrap_s)
    assert (texture.image.pixels == expected.image.pixels).all()


def test_equal_files_are_one_image_whatever_their_names(read, png):
    """Also in another colour space, for another input."""
    surface = DIFFUSE + "\ncolor3f inputs:emissiveColor.connect = </m/u.outputs:r>"
    other = node("u", "UsdUVTexture", f'asset inputs:file = @{png("b.png")}@\ntoken inputs:sourceColorSpace = "raw"\n{LAID}')
    found = read(textured(png("a.png"), others=READER + "\n" + other, surface=surface)).material("/c")
    assert found.textures["diffuseColor"].image is found.textures["emissiveColor"].image
    assert (found.textures["emissiveColor"].channel, found.textures["emissiveColor"].colour_space) == (0, "raw")


@pytest.mark.parametrize("where", ["", "below/"])
@pytest.mark.parametrize("tiles", ["t.<UDIM>.png", "<UDIM>/t.png"])
def test_udim_paths_are_anchored_where_they_are_authored(read, png, tmp_path, where, tiles):
    """In a sublayer that lies in another folder than the stage."""
    for number in (1001, 1003, 1012, 1100):
        png(f"lib/{where}{tiles.replace('<UDIM>', str(number))}", number % 100)
    asset = Sdf.Layer.CreateNew(str(tmp_path / "lib" / "look.usda"))
    text = textured(f"./{where}{tiles}").replace("{ ", "{\n").replace(" }", "\n}")
    assert asset.ImportFromString("#usda 1.0\n(\n    metersPerUnit = 1\n)\n" + text)
    asset.Save()
    stage = Usd.Stage.CreateNew(str(tmp_path / "shot.usda"))
    stage.GetRootLayer().subLayerPaths.append("lib/look.usda")
    found = read(stage)
    texture = diffuse(found)
    assert {k: int(tile.pixels[0, 0, 0]) for k, tile in enumerate(texture.tiles) if tile is not None} == {0: 1, 2: 3, 11: 12, 99: 0}
    assert not found.codes("/m")


def test_tiles_in_a_package(read, png, tmp_path, monkeypatch):
    for number in (1001, 1012):
        png(f"t.{number}.png", number % 100)
    layer = Sdf.Layer.CreateNew(str(tmp_path / "a.usda"))
    assert layer.ImportFromString("#usda 1.0\n" + textured("t.<UDIM>.png").replace("{ ", "{\n").replace(" }", "\n}"))
    layer.Save()
    assert UsdUtils.CreateNewUsdzPackage(str(tmp_path / "a.usda"), str(tmp_path / "a.usdz"))
    for file in tmp_path.glob("*.png"):
        file.unlink()
    texture = diffuse(read(Usd.Stage.Open(str(tmp_path / "a.usdz"))))
    assert [k for k, tile in enumerate(texture.tiles) if tile is not None] == [0, 11]


def test_images_that_go_on_being_used_are_not_decoded_again(png, stage_of):
    surface = DIFFUSE + "\ncolor3f inputs:emissiveColor.connect = </m/u.outputs:rgb>"
    other = node("u", "UsdUVTexture", f"asset inputs:file = @{png('b.png', 9)}@\n{LAID}")
    stage = stage_of(textured(png("a.png"), others=READER + "\n" + other, surface=surface))
    reader = StageReader(stage)
    reader.update(StageEdits(), Usd.TimeCode.EarliestTime())
    before = reader.materials["/m"]
    stage.GetAttributeAtPath("/m/s.inputs:diffuseColor").SetConnections(["/m/t.outputs:r"])
    reader.update(StageEdits({"/m/s"}), Usd.TimeCode.EarliestTime())
    after = reader.materials["/m"]
    assert after.textures["diffuseColor"].channel == 0
    assert after.textures["emissiveColor"].image is before.textures["emissiveColor"].image
    reader.update(StageEdits({"/m/s"}), Usd.TimeCode.EarliestTime())
    assert reader.materials["/m"].textures["emissiveColor"].image is before.textures["emissiveColor"].image


# -- what is wrong -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["missing", "broken", "empty", "none", "udim"])
def test_files_that_cannot_be_read_are_named_and_the_fallback_is_shown(read, png, tmp_path, fault):
    file = {"missing": "gone.png", "broken": png("a.png"), "empty": png("a.png"), "none": "", "udim": "gone.<UDIM>.png"}[fault]
    if fault in ("broken", "empty"):
        content = (tmp_path / "a.png").read_bytes()
        (tmp_path / "a.png").write_bytes(content[: len(content) // 2] if fault == "broken" else b"")
    found = read(textured(file, LAID + "\nfloat4 inputs:fallback = (0.9, 0.8, 0.7, 1)"))
    assert diffuse(found) is None
    assert found.material("/c").diffuse_color == pytest.approx((0.9, 0.8, 0.7))
    (told,) = found.diagnostics
    assert (told.path, told.code, told.severity) == ("/m", "texture", Severity.WARNING)
    assert "</m/t>" in told.message and "diffuseColor" in told.message and file.rpartition("/")[2] in told.message


def test_a_broken_tile_is_named_and_the_others_are_shown(read, png, tmp_path):
    for number in (1001, 1002, 1200):
        png(f"t.{number}.png")
    (tmp_path / "t.1002.png").write_bytes(b"no image")
    found = read(textured(str(tmp_path / "t.<UDIM>.png")))
    assert [tile is None for tile in diffuse(found).tiles] == [False]
    messages = [item.message for item in found.diagnostics]
    assert any("t.1002.png" in message and "tile 1002" in message for message in messages)


@pytest.mark.parametrize("fault", ["texture", "transform", "two transforms", "other node", "output"])
def test_circles_and_other_nodes_are_told(read, png, fault):
    others = {
        "texture": node("x", "UsdTransform2d"),
        "transform": node("x", "UsdTransform2d", "float2 inputs:in.connect = </m/x.outputs:result>"),
        "two transforms": node("x", "UsdTransform2d", "float2 inputs:in.connect = </m/y.outputs:result>")
        + node("y", "UsdTransform2d", "float2 inputs:in.connect = </m/x.outputs:result>"),
        "other node": node("x", "ND_noise2d_vector2"),
        "output": node("x", "UsdTransform2d"),
    }[fault]
    source = "t.outputs:rgb" if fault == "texture" else "x.outputs:result"
    surface = DIFFUSE.replace("outputs:rgb", "outputs:result") if fault == "output" else DIFFUSE
    found = read(textured(png("a.png"), f"float2 inputs:st.connect = </m/{source}>", others, surface))
    assert found.codes("/m") == ["texture"]
    assert diffuse(found) is None
    assert ("circle" in found.message("texture")) == ("transform" in fault)


@pytest.mark.parametrize("name", ["st", "file"])
def test_an_input_that_comes_from_itself_is_told(read, png, name):
    kind = "float2" if name == "st" else "asset"
    body = {"st": LAID, "file": f"asset inputs:file = @{png('a.png')}@"}
    body[name] = f"{kind} inputs:{name}.connect = </m/t.inputs:{name}>"
    found = read(material(DIFFUSE, node("t", "UsdUVTexture", "\n".join(body.values())) + READER))
    assert found.codes("/m") == ["material-connection" if name == "st" else "texture"]


@pytest.mark.parametrize(
    "value",
    [
        'token inputs:wrapS = "wild"',
        'token inputs:sourceColorSpace = "ACES"',
        "float4 inputs:scale = (nan, 1, 1, 1)",
        "float inputs:bias = 1",
    ],
)
def test_bad_values_are_told_and_the_texture_is_as_without(read, png, value):
    found = read(textured(png("a.png"), f"{LAID}\n{value}"))
    assert found.codes("/m") == ["material-input"]
    assert diffuse(found) == Texture(diffuse(found).image, "st", "black", "black")


def test_a_reader_without_a_name_gives_its_fallback(read, png):
    reader = node("r", "UsdPrimvarReader_float2", "float2 inputs:fallback = (0.25, 0.75)")
    found = read(textured(png("a.png"), others=reader))
    assert found.codes("/m") == ["texture"]
    assert (diffuse(found).st_linear, diffuse(found).st_offset) == ((0, 0, 0, 0), (0.25, 0.75))


def test_transforms_beyond_all_bounds_stay_finite(read, png):
    big = "float2 inputs:in.connect = </m/{}.outputs:result>\nfloat2 inputs:scale = (1e30, 1e30)"
    others = node("x", "UsdTransform2d", big.format("y")) + node("y", "UsdTransform2d", big.format("r")) + READER
    texture = diffuse(read(textured(png("a.png"), "float2 inputs:st.connect = </m/x.outputs:result>", others)))
    assert np.isfinite(np.float32(texture.st_linear)).all()


@pytest.mark.parametrize(("count", "fits"), [(64, True), (5000, False)])
def test_chains_of_transforms(read, png, count, fits):
    """As many as anybody would author are laid one after another; more are told, and end nothing."""
    body = "float2 inputs:in.connect = </m/%s.outputs:result>\nfloat2 inputs:translation = (0.25, 0)"
    others = "\n".join(node(f"x{k}", "UsdTransform2d", body % (f"x{k + 1}" if k + 1 < count else "r")) for k in range(count))
    found = read(textured(png("a.png"), "float2 inputs:st.connect = </m/x0.outputs:result>", others + "\n" + READER))
    assert found.codes("/m") == ([] if fits else ["texture"])
    if fits:
        assert diffuse(found).st_offset == pytest.approx((count / 4, 0))
    else:
        assert "64 transforms" in found.message("texture")


def test_files_over_time_are_those_of_the_time(read, png, stage_of):
    stage = stage_of(textured(png("a.png", 1)))
    file = stage.GetAttributeAtPath("/m/t.inputs:file")
    for time, name in ((1.0, "a.png"), (2.0, "b.png")):
        file.Set(Sdf.AssetPath(png(name, int(time))), time)
    assert [int(diffuse(read(stage, time=time)).image.pixels[0, 0, 0]) for time in (1.0, 2.0)] == [1, 2]
    stage.GetAttributeAtPath("/m/r.inputs:varname").Set("uv")
    assert diffuse(read(stage)).st == "uv"
    assert Gf.Vec2f(*diffuse(read(stage)).st_fallback) == Gf.Vec2f(0)


# -- node graphs --------------------------------------------------------------------------------------------------------------


def test_nested_node_graphs_and_their_interfaces(read):
    """A value goes down through two interfaces, the surface comes up through two outputs."""
    text = """def Material "m" {
        color3f inputs:paint = (0.25, 0.5, 0.75)
        token outputs:surface.connect = </m/a.outputs:surface>
        def NodeGraph "a" {
            color3f inputs:paint.connect = </m.inputs:paint>
            token outputs:surface.connect = </m/a/b.outputs:surface>
            def NodeGraph "b" {
                color3f inputs:paint.connect = </m/a.inputs:paint>
                float inputs:rough = 0.125
                token outputs:surface.connect = </m/a/b/s.outputs:surface>
                def Shader "s" {
                    uniform token info:id = "UsdPreviewSurface"
                    color3f inputs:diffuseColor.connect = </m/a/b.inputs:paint>
                    float inputs:roughness.connect = </m/a/b.inputs:rough>
                    token outputs:surface
                }
            }
        }
    }
    def Cube "c" (
        prepend apiSchemas = ["MaterialBindingAPI"]
    ) { rel material:binding = </m> }
    """
    found = read(text)
    assert (found.material("/c").diffuse_color, found.material("/c").roughness) == ((0.25, 0.5, 0.75), 0.125)
    assert found.codes() == []


def test_a_node_graph_s_output_that_is_a_texture_of_another(read, png):
    """Through outputs of two graphs, one in the other."""
    inner = node("t", "UsdUVTexture", f"asset inputs:file = @{png('a.png')}@\nfloat2 inputs:st.connect = </m/a/b/r.outputs:result>")
    graph = f"""def NodeGraph "a" {{
            color3f outputs:colour.connect = </m/a/b.outputs:colour>
            def NodeGraph "b" {{
                color3f outputs:colour.connect = </m/a/b/t.outputs:rgb>
                {inner}
                {READER}
            }}
        }}"""
    found = read(material("color3f inputs:diffuseColor.connect = </m/a.outputs:colour>", graph))
    assert (diffuse(found).st, found.codes()) == ("st", [])


@pytest.mark.parametrize("surface", ["</m/g.outputs:surface>", "</m.outputs:surface>", "</m/gone.outputs:surface>", "</m/g>"])
def test_surfaces_in_circles_and_of_nothing_are_told(read, surface):
    text = f"""def Material "m" {{
        token outputs:surface.connect = {surface}
        def NodeGraph "g" {{
            token outputs:surface.connect = </m/g.outputs:surface>
        }}
    }}
    def Cube "c" (
        prepend apiSchemas = ["MaterialBindingAPI"]
    ) {{ rel material:binding = </m> }}
    """
    found = read(text)
    assert found.material("/c").diffuse_color == (0.18, 0.18, 0.18)
    assert found.codes("/m") == ["material"]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ('string inputs:roughness = "rough"', "material-input"),
        ("float[] inputs:roughness = [1, 2]", "material-input"),
        ("float inputs:roughness.connect = </m/g.outputs:out>", "material-connection"),
        ("float inputs:roughness.connect = </c.size>", "material-connection"),
        ("float inputs:roughness.connect = </m/s.outputs:surface>", "texture"),
        ("float inputs:roughness.connect = [</m/gone.outputs:a>, </m/gone.outputs:b>]", "material-connection"),
    ],
)
def test_inputs_that_give_nothing_keep_their_fallback(read, line, code):
    found = read(material(line, 'def NodeGraph "g" {\n float outputs:out.connect = </m/g.outputs:out>\n}'))
    assert (found.material("/c").roughness, found.codes("/m")) == (0.5, [code])
