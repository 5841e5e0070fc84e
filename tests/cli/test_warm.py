"""`hdwarp doctor --warm`: its list of kernels is complete, and what it has compiled stays compiled."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hdwarp.cli import warm

PACKAGE = Path(warm.__file__).parents[1]


def test_every_kernel_is_in_the_list():
    """Factories of kernels by name, modules with plain kernels by module."""
    listed = Path(warm.__file__).read_text(encoding="utf8")
    missing = []
    for path in PACKAGE.rglob("*.py"):
        if path.parent.name == "examples" or path.name == "user_aovs.py":  # kernels of users
            continue
        text = path.read_text(encoding="utf8")
        missing += [name for name in re.findall(r"^def (\w+)\(.*\) -> wp\.Kernel:", text, re.MULTILINE) if f"{name}(" not in listed]
        if re.search(r"^@wp\.kernel", text, re.MULTILINE):
            module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
            missing += [] if f'"{module}"' in listed else [module]
    allowed = {f"{name}(" for name in re.findall(r"for factory in \((.*)\):", listed)[0].split(", ")}
    assert not [name for name in missing if f"{name}(" not in allowed]


@pytest.mark.parametrize("share", [0, 1])
def test_what_is_compiled_stays_compiled(share, device):
    """Every 1000th kernel is one kernel."""
    assert len(warm.compile_share(device, share, 1000)) == 1
    assert warm.compile_share(device, share, 1000) == [False]
