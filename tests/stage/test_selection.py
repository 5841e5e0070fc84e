"""Which cameras a stage has: those that reading it gives columns for."""

from __future__ import annotations

import pytest

from hdwarp.errors import Diagnostics, StageError
from hdwarp.stage.open import default_time
from hdwarp.stage.render_spec import find_render_prims, read_product
from hdwarp.stage.selection import camera_paths, default_product, product_of

STAGE = """
def PointInstancer "A" {
    rel prototypes = [</A/P>, </Protos/P>]; int[] protoIndices = [0, 1]; point3f[] positions = [(0, 0, 0), (1, 0, 0)]
    def Xform "P" { def Camera "cam" { } }
    def Camera "own" { }
}
def Xform "Protos" { def Xform "P" { def Camera "cam" { } } }
def Material "M" { def Camera "cam" { } }
class Xform "Class" { def Camera "cam" { } }
over "Over" { def Camera "cam" { } }
def Xform "Instanced" (instanceable = true; references = </Source>) { }
def Xform "Source" { def Camera "cam" { token visibility = "invisible"; token purpose = "guide" } }
def Mesh "Mesh" { def GeomSubset "S" { def Camera "cam" { } } }
def Camera "Z" { def Camera "below" { } }
"""
READ = ["/Instanced/cam", "/Protos/P/cam", "/Source/cam", "/Z", "/Z/below"]


def test_the_cameras_listed_are_those_that_are_read(read):
    """Visibility and purpose do not matter; cameras that only an instancer places have no place of their own."""
    found = read(STAGE)
    assert [camera.path for camera in found.cameras] == READ
    assert camera_paths(found.stage) == READ


def test_without_a_camera_named_one_is_chosen_that_can_be_rendered(stage_of):
    stage = stage_of(STAGE)
    product, _ = default_product(stage, None, default_time(), Diagnostics(), find_render_prims(stage))
    assert product.camera == "/Instanced/cam"


def test_a_camera_inside_a_prototype_is_refused_by_name(stage_of):
    stage = stage_of(STAGE + 'def RenderProduct "R" { rel camera = </A/P/cam> }')
    with pytest.raises(StageError, match="inside the PointInstancer </A>"):
        product_of(stage, "/A/P/cam", None, default_time(), Diagnostics(), find_render_prims(stage))
    with pytest.raises(StageError, match="inside the PointInstancer </A>"):
        read_product(stage, "/R")
