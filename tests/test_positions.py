"""Positions have numpy's own index type: with int64, nothing would run where an index has 32 bits."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import latencykit

ROOT = Path(latencykit.__file__).parent
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
