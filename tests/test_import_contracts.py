"""The house's one direction, checked on the source: who may import pxr, who may import warp, and that nothing flows back up."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "python" / "hdwarp"

# Rooms in the order data flows; a room may import from its own floor and from those before it. One floor: neither comes first.
FLOORS: list[set[str]] = [
    {"errors", "garbage", "schema_registration", "later"},
    {"stage", "worlds"},
    {"delegate"},
    {"launch", "state", "tables"},
    {"views"},
    {"trace"},
    {"shade", "aovs"},
    {
        "delegate.aov",
        "delegate.layers",
        "delegate.progress",
        "delegate.render_buffer",
        "delegate.render_delegate",
        "delegate.render_param",
        "delegate.render_pass",
        "delegate.render_plan",
    },
    {"truth"},
    {"writeback", "frame"},
    {"author", "batch.shots"},
    {"scene", "rendering"},
    {"sensors", "physics", "batch"},
    {"viewer", "cli", "examples", "__main__"},
]
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
PXR_ROOMS = {"schema_registration", "stage", "author", "writeback", "physics", "examples"}
NO_PXR_FLOORS = range(FLOOR["tables"], FLOOR["aovs"] + 1)  # nor may what they import have it
FIRST_WARP_FLOOR = FLOOR["tables"]


def _modules() -> dict[str, Path]:
    """Dotted name inside hdwarp ("" for the package itself) and file of every module."""
    names = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


MODULES = _modules()
INSIDE = sorted(set(MODULES) - {""})


def _room(module: str) -> str:
    """The room a module stands in: its own entry in FLOORS if it has one, else its first folder."""
    return module if module in FLOOR else module.partition(".")[0]


def _is_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING")


def _import_statements(node: ast.AST, inside_functions: bool) -> list[ast.Import | ast.ImportFrom]:
    """Import statements below a node, those for type checkers left out."""
    found: list[ast.Import | ast.ImportFrom] = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            found.append(child)
        elif isinstance(child, ast.If) and _is_type_checking(child.test):
            found += [statement for part in child.orelse for statement in _import_statements(ast.Module([part], []), inside_functions)]
        elif inside_functions or not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            found += _import_statements(child, inside_functions)
    return found


@functools.cache
def _imports(module: str, inside_functions: bool = True) -> frozenset[str]:
    """What a module imports: dotted names, those of hdwarp as deep as modules go ("hdwarp.stage.columns")."""
    path = MODULES[module]
    names: set[str] = set()
    for statement in _import_statements(ast.parse(path.read_text(encoding="utf8"), str(path)), inside_functions):
        if isinstance(statement, ast.Import):
            names |= {alias.name for alias in statement.names}
            continue
        base = statement.module or ""
        if statement.level:
            package = ["hdwarp", *module.split(".")] if path.name == "__init__.py" else ["hdwarp", *module.split(".")][:-1]
            base = ".".join([*package[: len(package) - statement.level + 1], *([base] if base else [])])
        for alias in statement.names:
            name = f"{base}.{alias.name}"
            names.add(name if name.removeprefix("hdwarp.") in MODULES else base)
    return frozenset(names)


def _inside(names: frozenset[str]) -> list[str]:
    """The hdwarp modules among imported names, as keys of MODULES; `import hdwarp` itself is light and does not count."""
    return sorted(name.removeprefix("hdwarp.") for name in names if name.startswith("hdwarp."))


def _takes(names: frozenset[str], package: str) -> bool:
    return any(name == package or name.startswith(f"{package}.") for name in names)


def _reaches(module: str, package: str) -> list[str] | None:
    """The chain of imports made on loading ``module`` that ends at ``package``; None if there is none."""
    chains = {module: [module]}
    queue = [module]
    while queue:
        current = queue.pop(0)
        names = _imports(current, inside_functions=False)
        if _takes(names, package):
            return [*chains[current], package]
        reached = _inside(names)
        reached += [parent for name in reached for parent in [name.rpartition(".")[0]] if parent in MODULES and parent]
        for name in reached:
            if name in MODULES and name not in chains:
                chains[name] = [*chains[current], name]
                queue.append(name)
    return None


@pytest.mark.parametrize("module", INSIDE)
def test_every_module_has_a_room(module):
    assert _room(module) in FLOOR, f"hdwarp.{module} stands in no room; add it to FLOORS if DESIGN's tree has one for it"


@pytest.mark.parametrize("module", INSIDE)
def test_first_line_says_where_the_module_stands(module):
    """`name: what it is` - for a package of other packages, the room's name."""
    docstring = ast.get_docstring(ast.parse(MODULES[module].read_text(encoding="utf8")))
    assert docstring, f"hdwarp.{module} has no docstring"
    assert docstring.partition(":")[0] in {module, module.removesuffix(".__init__")}, f"the first line should begin with '{module}: '"


@pytest.mark.parametrize("module", INSIDE)
def test_only_some_rooms_import_pxr(module):
    if _takes(_imports(module), "pxr"):
        assert _room(module) in PXR_ROOMS, f"hdwarp.{module} imports pxr; only {sorted(PXR_ROOMS)} may"


@pytest.mark.parametrize("module", [module for module in INSIDE if FLOOR.get(_room(module)) in NO_PXR_FLOORS])
def test_tables_to_aovs_load_no_pxr_by_way_of_others(module):
    assert _reaches(module, "pxr") is None


@pytest.mark.parametrize("module", INSIDE)
def test_only_tables_and_what_follows_import_warp(module):
    if _takes(_imports(module), "warp"):
        assert FLOOR[_room(module)] >= FIRST_WARP_FLOOR, f"hdwarp.{module} imports warp; only hdwarp.tables and what follows it may"


@pytest.mark.parametrize("module", [module for module in INSIDE if FLOOR.get(_room(module), 99) < FIRST_WARP_FLOOR])
def test_stage_and_delegate_load_no_warp_by_way_of_others(module):
    assert _reaches(module, "warp") is None


@pytest.mark.parametrize("module", INSIDE)
def test_nothing_flows_back_up(module):
    own = FLOOR[_room(module)]
    above = [name for name in _inside(_imports(module)) if FLOOR[_room(name)] > own and _room(name) != _room(module).partition(".")[0]]
    assert not above, f"hdwarp.{module} imports {above}, which stand after it in the flow"


def test_the_contract_checks_see_what_they_should(tmp_path, monkeypatch):
    """The test of the tests: imports in functions count, those for type checkers do not, relative ones are resolved."""
    source = tmp_path / "probe.py"
    source.write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import warp\nfrom . import columns\nfrom ..errors import Error\n"
        "def f():\n    from pxr import Usd\n"
    )
    monkeypatch.setitem(MODULES, "stage.probe", source)
    names = _imports("stage.probe")
    _imports.cache_clear()
    assert names == {"typing", "hdwarp.stage.columns", "hdwarp.errors", "pxr"}


def test_import_hdwarp_is_light():
    """Under 0.3 s on top of pxr, and Warp is not loaded."""
    program = (
        "import time; from pxr import Plug, Usd\n"
        "start = time.perf_counter(); import hdwarp; took = time.perf_counter() - start\n"
        "import sys; print(took, 'warp' in sys.modules)"
    )
    runs = [subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split() for _ in range(3)]
    assert {loaded for _, loaded in runs} == {"False"}
    assert min(float(took) for took, _ in runs) < 0.3
