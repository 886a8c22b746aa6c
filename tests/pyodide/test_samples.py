"""All sample files in Pyodide: the same refusals, numbers and verdicts as natively, to 1e-9."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import latencykit as lk
from latencykit.views.diagnosis import diagnosis_record
from tests.conftest import DATA

ROOT = Path(__file__).parents[2]
FILES = sorted(str(path.relative_to(ROOT)) for path in DATA.rglob("*") if path.is_file())
NATIVE = Path("/pure/native.json")
"""What this machine answered: `tests.pyodide` writes it before it starts Pyodide."""
PERCENTILES = (0, 25, 50, 90, 99, 99.9, 100)


def answer(name: str) -> Any:
    """What a file says, or why it is refused, as JSON has it."""
    try:
        data = lk.read(ROOT / name)
    except lk.MissingPackageError as error:
        return {"missing": str(error)}
    except lk.LatencyKitError as error:
        return str(error).replace(f"{ROOT}/", "")
    series = data if isinstance(data, dict) else {"": data}
    return json.loads(json.dumps({key: facts(one) for key, one in series.items()}, default=str))


def facts(data: Any) -> dict[str, Any]:
    run = dataclasses.replace(data.run, source=None)
    said = {"type": type(data).__name__, "run": dataclasses.asdict(run)}
    for name in ("count", "mean"):
        said[name] = attempt(getattr, data, name)
    said["percentiles"] = [attempt(data.percentile, p) for p in PERCENTILES]
    said["diagnosis"] = attempt(lambda: diagnosis_record("", lk.diagnose(data)))
    wait = attempt(lambda: f"{data.percentile(50):.0f}{'ns' if data.unit == 'none' else data.unit}")
    filled = attempt(lambda: lk.correct(data, wait))
    if not isinstance(filled, str):
        said["corrected"] = [attempt(filled.percentile, p) for p in PERCENTILES]
    if isinstance(data, lk.Samples):
        for name in ("start", "duration", "intended", "outcome", "connection"):
            column = getattr(data, name)
            said[name] = (
                None
                if column is None
                else int(np.bitwise_xor.reduce(column.astype(np.int64), initial=0))
            )
        said["columns"] = {
            name: [str(cell) for cell in data.columns[name][:3]] for name in data.columns
        }
    return said


def attempt(ask: Any, *words: Any) -> Any:
    try:
        value = ask(*words)
    except lk.LatencyKitError as error:
        return str(error)
    return value() if callable(value) else value


def same(here: Any, there: Any) -> bool:
    """True for equal values, and for numbers that differ by rounding alone."""
    if isinstance(here, dict) and isinstance(there, dict):
        return list(here) == list(there) and all(same(here[key], there[key]) for key in here)
    if isinstance(here, list) and isinstance(there, list):
        return len(here) == len(there) and all(map(same, here, there))
    if isinstance(here, float) and isinstance(there, float):
        return math.isclose(here, there, rel_tol=1e-9, abs_tol=1e-12) or (
            here != here and there != there
        )
    return here == there


@pytest.mark.parametrize("name", FILES if sys.platform == "emscripten" else [])
def test_a_sample_file_says_the_same_as_natively(name):
    here, there = answer(name), json.loads(NATIVE.read_text("utf-8"))[name]
    if isinstance(here, dict) and "missing" in here:
        pytest.skip(here["missing"])
    assert same(here, there), (here, there)
