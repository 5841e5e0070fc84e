"""What is told reads as lines, and stays what it is to programs."""

from __future__ import annotations

import hdwarp
from hdwarp.errors import Diagnostic, Diagnostics, Severity, Told

LINES = "error: </A>: it is broken; mend it [broken]\nnote: </B/C>: it is small [small]"


def filled() -> Diagnostics:
    diagnostics = Diagnostics()
    diagnostics.error("/A", "broken", "it is broken; mend it")
    diagnostics.note("/B/C", "small", "it is small")
    return diagnostics


def test_diagnostics_print_one_a_line():
    """Severity, path, message with its cure, code."""
    assert str(filled()) == str(Told(filled())) == f"{Told(filled())}" == LINES
    assert str(Told()) == str(Diagnostics()) == "nothing to tell"


def test_told_is_a_tuple_of_what_it_holds():
    told = Told(filled())
    assert told == tuple(filled()) and hash(told) == hash(tuple(filled()))
    assert told[0] == Diagnostic("/A", "broken", Severity.ERROR, "it is broken; mend it")
    assert "code='small'" in repr(told)


def test_frames_and_scenes_print_what_they_have_to_tell(tmp_path):
    path = tmp_path / "a.usda"
    path.write_text('#usda 1.0\ndef Sphere "S"\n{\n    double radius = -1\n}\ndef Cube "C"\n{\n}\n')
    scene = hdwarp.Scene(str(path), device="cpu")
    frame = hdwarp.render(scene, resolution=(4, 4))
    for told in (scene.diagnostics, frame.diagnostics):
        lines = str(told).splitlines()
        assert len(lines) == len(told) > 0
        assert any("</S>" in line and line.endswith("[shape-size]") for line in lines)
