"""Rules that the source keeps, and how it is built and published."""

from __future__ import annotations

import ast
import os
import re
import runpy
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import pytest

import latencykit

# ---------------------------------------------------------------- circles of imports

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


# ---------------------------------------------------------------- positions

MAKES_POSITIONS = {"as_positions", "np.flatnonzero", "np.argsort", "len"}
"""Calls whose result has that type, or is a Python number."""


def _positions_of(call: ast.Call) -> ast.expr | None:
    """The argument that numpy takes as positions or lengths."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    place = 0 if name == "choose" else 1
    if name == "repeat":
        base = ast.unparse(call.func)
        place = 1 if base.startswith("np.") else 0
        if base.startswith(("itertools.", "pa.")):
            return None
    elif name not in ("reduceat", "choose"):
        return None
    return call.args[place] if len(call.args) > place else None


def _made(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Call):
        ends_in_type = ast.unparse(value).endswith(".astype(np.intp)")
        return ends_in_type or ast.unparse(value.func) in MAKES_POSITIONS
    return isinstance(value, ast.Constant) or (
        isinstance(value, ast.Attribute) and value.attr == "size"
    )


def _flaws(tree: ast.Module) -> list[int]:
    """Lines on which positions may have another type than numpy's own."""
    flaws, right = set[int](), set[int]()
    functions = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)]
    calls = [(one, call) for one in functions for call in ast.walk(one)]
    for function, call in calls:
        at = _positions_of(call) if isinstance(call, ast.Call) else None
        if at is None or _made(at):
            continue
        values = [
            one.value
            for one in ast.walk(function)
            if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == ast.unparse(at)
        ]
        # of nested functions, one of both may know the name
        (right if values and all(map(_made, values)) else flaws).add(at.lineno)
    return sorted(flaws - right)


def test_positions_have_the_type_that_numpy_takes_everywhere():
    flaws = {
        str(path.relative_to(ROOT)): lines
        for path in ROOT.rglob("*.py")
        if re.search(r"\b(?:repeat|reduceat|choose)\(", text := path.read_text("utf-8"))
        if (lines := _flaws(ast.parse(text)))
    }
    assert not flaws, f"wrap these in latencykit._arrays.as_positions: {flaws}"


def test_the_rule_finds_what_it_is_for():
    wrong = "def f(a, n):\n    return np.repeat(a, n), np.add.reduceat(a, np.cumsum(n))"
    right = "def f(a, n):\n    n = as_positions(n)\n    return a.repeat(n), np.repeat(a, len(n))"
    assert _flaws(ast.parse(wrong)) == [2]
    assert _flaws(ast.parse(right)) == []


# ------------------------------------------------------------
# Products of positions: in a browser they have 32 bits, and so has a product with a Python number.

DEFAULT = {
    "arange", "argsort", "argwhere", "bincount", "digitize", "flatnonzero", "indices", "nonzero",
    "searchsorted",
}  # fmt: skip
"""Functions whose integers have numpy's default type, unless a dtype or weights are given.

Sums of int64 are int64 everywhere; those of flags are numbers of values in memory.
"""
FLOATS = {
    ("analysis/compare.py", "holm"): "times p-values",
    ("analysis/explain.py", "explains"): "weights",
    ("analysis/slow_times.py", "find_incident"): "times a lift",
    ("analysis/stalls.py", "full_speed"): "times seconds",
}
"""Where the other factor, or the sum, is a floating-point number."""


def _is_default(value: ast.AST, names: set[str]) -> bool:
    if isinstance(value, ast.Subscript):
        return _is_default(value.value, names)
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add | ast.Sub):
        return _is_default(value.left, names) or _is_default(value.right, names)
    if isinstance(value, ast.Name):
        return value.id in names
    if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)):
        return False
    given = {word.arg for word in value.keywords} & {"dtype", "weights"}
    return value.func.attr in DEFAULT and not given and "." not in _constants(value)


def _constants(value: ast.AST) -> str:
    """The numbers of an expression; a floating-point one, and a division, have a point."""
    numbers = [ast.unparse(one) for one in ast.walk(value) if isinstance(one, ast.Constant)]
    divided = any(isinstance(one, ast.Div) for one in ast.walk(value))
    return " ".join(numbers) + ". int64" * ("int64" in ast.unparse(value) or divided)


def _products(tree: ast.Module) -> list[tuple[str, int]]:
    """Functions, and lines in them, that multiply default integers by what may be one."""
    flaws = set()
    for function in (one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)):
        names: set[str] = set()
        for one in ast.walk(function):
            if isinstance(one, ast.Assign) and _is_default(one.value, names):
                names |= {target.id for target in one.targets if isinstance(target, ast.Name)}
        for one in ast.walk(function):
            if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mult | ast.Pow | ast.LShift):
                factors = [_is_default(side, names) for side in (one.left, one.right)]
                if any(factors) and "." not in _constants(one):
                    flaws.add((function.name, one.lineno))
    return sorted(flaws)


def test_no_product_of_default_integers():
    found = {
        (str(path.relative_to(ROOT)), name): line
        for package in ("core", "analysis", "hdr")
        for path in (ROOT / package).glob("*.py")
        for name, line in _products(ast.parse(path.read_text("utf-8")))
    }
    assert found.keys() == FLOATS.keys(), f"state dtype=np.int64, or why it is a float: {found}"


def test_the_rule_on_products_finds_what_it_is_for():
    wrong = "def f(n, step):\n    place = np.arange(n)\n    return place[1:] * step"
    right = "def f(n, step):\n    place = np.arange(n, dtype=np.int64)\n    return place * step"
    assert _products(ast.parse(wrong)) == [("f", 3)]
    assert _products(ast.parse(right)) == []
    assert _products(ast.parse("def f(n, step):\n    return np.arange(n) * np.int64(step)")) == []


# ---------------------------------------------------------------- tuned numbers

MODULES = (
    "stalls", "stall_records", "facts", "omission", "diagnosis", "explanations", "timeouts", "period",
)  # fmt: skip

PLAIN = {0, 0.5, 1, 2, 4, 10, 50, 100, 1e9, 2e9}
"""Halves and quarters, the base of decades, the median, percent, nanoseconds of a second."""


@pytest.mark.parametrize("module", MODULES)
def test_functions_hold_no_tuned_number(module: str) -> None:
    path = Path(latencykit.__file__).parent / "analysis" / f"{module}.py"
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    found = {
        f"{module}.py:{node.lineno}: {node.value}"
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, (int, float))
        and not isinstance(node.value, bool)
        and node.value not in PLAIN
    }
    assert found == set()


# ---------------------------------------------------------------- built and published

CHECKOUT = Path(__file__).parents[1]


def test_the_publishing_workflow_pins_its_actions() -> None:
    text = (CHECKOUT / ".github/workflows/release.yml").read_text(encoding="utf-8")
    used = re.findall(r"uses: (\S+)", text)
    assert used
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action) for action in used)


@pytest.mark.slow
@pytest.mark.parametrize("junk", ["junk", "", "other counts"])
def test_a_compiler_that_produces_junk_is_noticed(
    junk: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "bin" / "cc"
    fake.parent.mkdir()
    wrong = (
        """sed 's/done += entries;/done += entries + 1;/' "$last" >"$out.c"\n"""
        """/usr/bin/cc -shared -fPIC -o "$out" "$out.c"\n"""
    )
    fake.write_text(
        '#!/bin/sh\nfor last; do [ "$before" = -o ] && out=$last; before=$last; done\n'
        + (wrong if junk == "other counts" else f"printf '{junk}' >\"$out\"\n")
    )  # fmt: skip
    fake.chmod(0o755)
    if junk == "other counts" and not Path("/usr/bin/cc").exists():
        pytest.skip("no C compiler")
    build = runpy.run_path(str(CHECKOUT / "hatch_build.py"))
    monkeypatch.setenv("CC", str(fake))
    monkeypatch.setenv(
        "PATH", f"{fake.parent}:/bin" if junk != "other counts" else os.environ["PATH"]
    )
    library = tmp_path / "out" / "_kernel.so"
    monkeypatch.setitem(build["_compile"].__globals__, "shutil", _only(fake))
    problem = build["_compile"](CHECKOUT / "latencykit/core/kernel.c", library, [])
    assert problem
    assert not library.exists()
    if junk == "other counts":
        assert "other counts" in problem


def _only(compiler: Path) -> Any:
    """A `shutil` that finds one compiler."""

    class Shutil:
        @staticmethod
        def which(name: str) -> str | None:
            return name if name == str(compiler) else None

    return Shutil
