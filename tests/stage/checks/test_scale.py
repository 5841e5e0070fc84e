"""Units: of layers that are brought in, with and without a scale that makes up for them; sizes of scenes."""

from __future__ import annotations

import math

import pytest

PART = """#usda 1.0
(
    defaultPrim = "Part"
    metersPerUnit = {unit}
)
def Xform "Part"
{{
    def Sphere "Ball"
    {{
    }}
}}
"""
STAGE = """#usda 1.0
(
    defaultPrim = "World"
    metersPerUnit = 1
    upAxis = "Y"
    {sublayers}
)
def Xform "World"
{{
{prims}
}}
"""
CODE = "layer-meters-per-unit"


def told(found, tmp_path, prims: str, *, unit: float = 0.01, sublayers: str = ""):
    (tmp_path / "part.usda").write_text(PART.format(unit=unit))
    return [item for item in found(STAGE.format(prims=prims, sublayers=sublayers)) if item.code == CODE]


def part(name: str = "A", arc: str = "references", scale: float | None = None) -> str:
    ops = "" if scale is None else f'float3 xformOp:scale = ({scale}, {scale}, {scale})\nuniform token[] xformOpOrder = ["xformOp:scale"]\n'
    return f'def Xform "{name}" (prepend {arc} = @./part.usda@)\n{{\n{ops}}}\n'


@pytest.mark.parametrize("arc", ["references", "payload"])
def test_a_layer_in_other_units_is_told_with_the_scale_it_needs(found, tmp_path, arc):
    (finding,) = told(found, tmp_path, part(arc=arc))
    assert finding.paths == ("/World/A",)
    assert "xformOp:scale = (0.01, 0.01, 0.01)" in finding.cure
    assert told(found, tmp_path, part(arc=arc, scale=0.01)) == []


def test_equal_units_are_no_matter(found, tmp_path):
    assert told(found, tmp_path, part(), unit=1.0) == []


def test_a_scale_above_makes_up_for_it(found, tmp_path):
    above = (
        f'def Xform "Group"\n{{\nfloat3 xformOp:scale = (0.01, 0.01, 0.01)\nuniform token[] xformOpOrder = ["xformOp:scale"]\n{part()}}}\n'
    )
    assert told(found, tmp_path, above) == []


def test_a_layer_brought_often_is_told_once(found, tmp_path):
    (finding,) = told(found, tmp_path, part("A") + part("B") + part("C", scale=0.01))
    assert set(finding.paths) == {"/World/A", "/World/B"}


def test_sublayers_are_told_too(found, tmp_path):
    (finding,) = told(found, tmp_path, "", sublayers="subLayers = [@./part.usda@]")
    assert "part.usda" in finding.message and "0.01" in finding.message


@pytest.mark.parametrize(("size", "is_told"), [(0.9e-3, True), (1.1e-3, False), (0.9e6, False), (1.1e6, True)])
def test_the_limits_of_sizes(found, size, is_told):
    """A ball of radius r: the diagonal of its box is 2 sqrt(3) r."""
    radius = size / (2.0 * math.sqrt(3.0))
    findings = found(f'def Sphere "Ball"\n{{\ndouble radius = {radius}\n}}\n', only=("scene-size",))
    assert bool(findings) == is_told
    if findings:
        assert f"{size:.6g} m" in findings[0].message


def test_a_plane_without_end_has_no_size(found):
    assert found('def Plane "Ground"\n{\nbool hdwarp:infinite = 1\n}\n', only=("scene-size",)) == []
