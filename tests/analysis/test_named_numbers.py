"""The numbers of a diagnosis stand in records, with a unit and a reason, not in its functions."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import latencykit

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
