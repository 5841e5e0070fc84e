"""The AOV rows are the contract's, and source names in the field find them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import warp as wp

from hdwarp.aovs import buffers
from hdwarp.aovs.registry import AOVS, Conversion, aov_spec, channel_name, primvar_name, resolve_var
from hdwarp.errors import ArgumentError, NotSupported

INF = math.inf
CONTRACT = [  # DESIGN section 8, word for word
    ("color", np.float32, 4, 0),
    ("rgba8", np.uint8, 4, 0),
    ("albedo", np.float32, 4, 0),
    ("depth", np.float32, 1, 1),
    ("cameraDepth", np.float32, 1, INF),
    ("distance_to_image_plane", np.float32, 1, INF),
    ("distance_to_camera", np.float32, 1, INF),
    ("normal", np.float32, 3, 0),
    ("Neye", np.float32, 3, 0),
    ("Ngeom", np.float32, 3, 0),
    ("position", np.float32, 3, INF),
    ("Peye", np.float32, 3, INF),
    ("primId", np.int32, 1, -1),
    ("instanceId", np.int32, 1, -1),
    ("elementId", np.int32, 1, -1),
    ("triangleId", np.int32, 1, -1),
    ("barycentric", np.float32, 2, 0),
    ("materialId", np.int32, 1, -1),
    ("bodyId", np.int32, 1, -1),
    ("instanceRow", np.int32, 1, -1),
    ("worldId", np.int32, 1, -1),
    ("motion", np.float32, 2, 0),
]
MORE = [("direct", np.float32, 3, 0), ("emission", np.float32, 3, 0), ("alpha", np.float32, 1, 0), ("roughness", np.float32, 1, 0)]
LATER = ["semantic_segmentation", "instance_segmentation", "instance_id_segmentation"]


@pytest.mark.parametrize(("name", "dtype", "components", "clear"), CONTRACT + MORE)
def test_rows_are_the_contract(name, dtype, components, clear):
    spec = aov_spec(name)
    assert (spec.numpy_dtype, spec.components, spec.clear) == (dtype, components, clear)
    assert spec.shape(2, 3) == ((2, 3) if components == 1 else (2, 3, components))
    assert spec.meaning
    assert spec.clear_values() == (float(clear),) * components


def test_no_row_is_missing_and_none_is_extra():
    assert set(AOVS) == {row[0] for row in CONTRACT + MORE} | set(LATER)


@pytest.mark.parametrize("name", LATER)
def test_rows_that_wait_for_more_are_not_supported_by_name(name):
    with pytest.raises(NotSupported, match=name):
        aov_spec(name)
    with pytest.raises(NotImplementedError):
        aov_spec(name)


@pytest.mark.parametrize(
    ("wrong", "close"),
    [("distance_to_imageplane", "distance_to_image_plane"), ("Colour", "color"), ("primID", "primId"), ("ldrcolor", "LdrColor")],
)
def test_unknown_names_get_close_matches_and_what_exists(wrong, close):
    with pytest.raises(ArgumentError, match=f"'{wrong}'.*did you mean.*{close}.*there are.*bodyId.*primvars:NAME"):
        aov_spec(wrong)
    with pytest.raises(ValueError):
        aov_spec(wrong)


def test_an_unknown_name_without_likeness_only_lists():
    with pytest.raises(ArgumentError) as caught:
        aov_spec("qqqqqq")
    assert "did you mean" not in str(caught.value)
    assert "segmentation" not in str(caught.value)  # only what there is


@pytest.mark.parametrize("bad", [None, 3, b"color"])
def test_a_name_is_a_string(bad):
    with pytest.raises(ArgumentError):
        aov_spec(bad)


def test_primvars_are_as_wide_as_the_scene_says():
    spec = aov_spec("primvars:my:st")
    assert primvar_name(spec.name) == "my:st"
    assert spec.components == 0
    assert aov_spec("primvars:st", components=2).dtype is wp.vec2f
    assert aov_spec("primvars:w", components=1).dtype is wp.float32
    assert aov_spec("primvars:c", components=4).dtype is wp.vec4f
    with pytest.raises(ArgumentError, match="with_components"):
        _ = spec.dtype
    with pytest.raises(ArgumentError):
        aov_spec("primvars:st", components=5)
    with pytest.raises(ArgumentError):
        aov_spec("primvars:")
    assert primvar_name("color") is None


def test_clear_values_can_be_given():
    assert aov_spec("normal").clear_values((0, 0, 1)) == (0, 0, 1)
    assert aov_spec("color").clear_values(0.5) == (0.5,) * 4
    assert aov_spec("depth").clear_values(np.inf) == (INF,)
    with pytest.raises(ArgumentError, match="color: a clear value of 3"):
        aov_spec("color").clear_values((1, 2, 3))
    with pytest.raises(ArgumentError, match="primId"):
        aov_spec("primId").clear_values(0.5)
    with pytest.raises(ArgumentError, match="rgba8"):
        aov_spec("rgba8").clear_values(256)
    with pytest.raises(ArgumentError):
        aov_spec("primId").clear_values(np.nan)


ALIASES = [
    ("LdrColor", "rgba8"),
    ("HdrColor", "color"),
    ("DistanceToImagePlaneSD", "distance_to_image_plane"),
    ("DistanceToCameraSD", "distance_to_camera"),
    ("NormalSD", "normal"),
    ("Z", "cameraDepth"),
    ("z", "cameraDepth"),
    ("N", "normal"),
    ("P", "position"),
    ("Ci", "color"),
    ("rgb", "color"),
    ("rgba", "color"),
    ("beauty", "color"),
    ("id", "primId"),
    ("faceindex", "elementId"),
    ("st", "primvars:st"),
]


@pytest.mark.parametrize(("source", "aov"), ALIASES)
def test_aliases(source, aov):
    assert resolve_var(source)[0] == aov


@pytest.mark.parametrize("name", [row[0] for row in CONTRACT])
def test_own_names_are_sources(name):
    aov, conversion = resolve_var(name)
    assert aov == name
    assert conversion.channels is None


def test_what_differs_is_converted():
    pixels = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    four = resolve_var("NormalSD")[1].apply(pixels)
    assert four.shape == (2, 2, 4)
    np.testing.assert_array_equal(four[..., :3], pixels)
    assert not four[..., 3].any()
    colour = np.arange(16, dtype=np.float32).reshape(2, 2, 4)
    np.testing.assert_array_equal(resolve_var("alpha")[1].apply(colour), colour[..., 3])
    assert Conversion().apply(pixels) is pixels


@pytest.mark.parametrize(
    ("source", "data_type", "parameters", "precision"),
    [
        ("HdrColor", None, {}, "half"),
        ("color", None, {}, "half"),
        ("color", "half3", {}, "half"),
        ("color", "color3h", {}, "half"),
        ("color", "color4h", {}, "half"),
        ("color", "half", {}, "half"),
        ("color", "color3f", {}, "float"),
        ("color", "float4", {}, "float"),
        ("HdrColor", "color4f", {}, "float"),
        ("normal", None, {}, "float"),
        ("normal", "normal3h", {}, "half"),
        ("depth", None, {}, "float"),
        ("primId", "float", {}, "int32"),
        ("LdrColor", "color4f", {}, "uint8"),
        ("color", None, {"driver:parameters:aov:format": "float3"}, "float"),
        ("normal", None, {"driver:parameters:aov:format": "half3"}, "half"),
        ("color", "color3f", {"driver:parameters:aov:format": "half4"}, "float"),  # dataType says more than the format
    ],
)
def test_precision(source, data_type, parameters, precision):
    assert resolve_var(source, "raw", data_type, "v", parameters)[1].precision == precision


def test_source_types():
    assert resolve_var("st", "primvar")[0] == "primvars:st"
    assert resolve_var("primvars:st", "primvar")[0] == "primvars:st"
    assert resolve_var("primvars:st", "raw")[0] == "primvars:st"
    assert resolve_var("N", "primvar")[0] == "primvars:N"
    assert resolve_var("depth", "intrinsic")[0] == "depth"
    assert resolve_var("depth", "")[0] == "depth"
    for arguments in (("C.*", "lpe"), ("lpe:CD[<L.>O]", "raw")):
        with pytest.raises(NotSupported, match="light path"):
            resolve_var(*arguments)
    with pytest.raises(ArgumentError, match="sourceType 'nonsense'"):
        resolve_var("depth", "nonsense")


def test_an_empty_source_is_the_vars_name():
    assert resolve_var("", "raw", None, "depth")[0] == "depth"
    assert resolve_var("", "raw", None, "beauty_v2", {"driver:parameters:aov:name": "beauty"})[0] == "color"
    assert resolve_var("N", "raw", None, "beauty", {"driver:parameters:aov:name": "beauty"})[0] == "normal"
    assert channel_name("v", {"driver:parameters:aov:name": "C"}) == "C"
    assert channel_name("v") == "v"
    with pytest.raises(ArgumentError):
        resolve_var("", "raw", None, "")
    with pytest.raises(ArgumentError, match="no_such"):
        resolve_var("no_such", "raw", None, "v")


def test_names_of_other_units_are_no_aliases():
    """Ray length and planar depth, metres and scene units, clip depth: each under its own name only."""
    of = {source: resolve_var(source)[0] for source, _ in ALIASES}
    assert of["Z"] != "distance_to_image_plane"
    assert of["DistanceToCameraSD"] != of["DistanceToImagePlaneSD"]
    assert resolve_var("depth")[0] == "depth"


def test_buffers_have_the_pixel_types(device):
    arrays = buffers.allocate(
        ["color", "rgba8", "depth", "barycentric", "primvars:st"], 2, 3, 5, device=device, components={"primvars:st": 2}
    )
    assert {name: (array.shape, array.dtype) for name, array in arrays.items()} == {
        "color": ((2, 3, 5), wp.vec4f),
        "rgba8": ((2, 3, 5), wp.vec4ub),
        "depth": ((2, 3, 5), wp.float32),
        "barycentric": ((2, 3, 5), wp.vec2f),
        "primvars:st": ((2, 3, 5), wp.vec2f),
    }
