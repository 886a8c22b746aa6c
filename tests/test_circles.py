"""Imports inside a package run one way, those for type checkers alone included."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import latencykit

ROOT = Path(latencykit.__file__).parent
PACKAGES = ("core", "hdr", "analysis", "io", "history", "record", "ctrlz", "plot", "views")
PACKAGES += ("distributed", "cli")


def imports_of(package: str) -> dict[str, set[str]]:
    """Module → modules of the same package that it imports anywhere in its text."""
    paths = list((ROOT / package).rglob("*.py"))
    places = ((ROOT.name, *path.relative_to(ROOT).with_suffix("").parts) for path in paths)
    names = (".".join(parts).removesuffix(".__init__") for parts in places)
    modules = dict(zip(names, paths, strict=True))
    found: dict[str, set[str]] = {name: set() for name in modules}
    for name, path in modules.items():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            for alias in node.names if isinstance(node, ast.ImportFrom) else ():
                target = f"{node.module}.{alias.name}"  # a module, or a name in one
                found[name].add(target if target in modules else node.module)
        found[name] &= modules.keys() - {name}
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_imports_itself_by_way_of_others(package: str) -> None:
    try:
        TopologicalSorter(imports_of(package)).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(error.args[1]))


def test_the_check_sees_a_circle() -> None:
    assert "latencykit.core.quantiles" in imports_of("core")["latencykit.core.histogram"]
    with pytest.raises(CycleError):
        TopologicalSorter({"a": {"b"}, "b": {"a"}}).prepare()
