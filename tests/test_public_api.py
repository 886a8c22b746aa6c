"""The public surface: static for tools, lazy at run time, and the same tomorrow unless a change is meant."""

from __future__ import annotations

import ast
import inspect
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import latencykit as lk
from tests.snapshots.surface import snapshots

FACE = Path(lk.__file__)


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in snapshots()])
def test_the_surface_is_as_recorded(path):
    assert snapshots()[path] == path.read_text(encoding="utf-8"), (
        "the public surface changed; if that is meant, run `python -m tests.snapshots`"
    )


def test_no_snapshot_is_left_over():
    assert set(path.parent.glob("*.txt") if (path := next(iter(snapshots()))) else ()) == set(
        snapshots()
    )


def static_names() -> dict[str, str]:
    """The names that type checkers see: name → module."""
    tree = ast.parse(FACE.read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom) and node.module]
    return {
        alias.name: node.module or ""
        for node in imports
        for alias in node.names
        if (node.module or "").startswith("latencykit")
    }


def test_static_and_lazy_names_are_the_same():
    lazy = {
        name: f"latencykit.{where}" if where else "latencykit"
        for name, where in lk._MODULE_OF.items()
    }
    assert static_names() == lazy
    assert sorted(lazy) == lk.__all__


def test_every_name_is_defined_where_it_says():
    for name, module in static_names().items():
        value = getattr(lk, name)
        if not inspect.ismodule(value):
            assert value.__module__ == module, name


def test_importing_it_loads_nothing():
    code = "import sys, latencykit; print([m for m in sys.modules if m.split('.')[0] in ('numpy', 'pandas', 'scipy', 'matplotlib', 'click')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_no_module_is_callable():
    lk.read("data/jhiccup-v2.hlog") if Path("data/jhiccup-v2.hlog").exists() else None
    assert not [
        name
        for name, module in sys.modules.items()
        if name.startswith("latencykit") and callable(module)
    ]


@pytest.mark.parametrize("name", lk.__all__)
def test_everything_public_pickles(name):
    value = getattr(lk, name)
    if not inspect.ismodule(value):
        assert pickle.loads(pickle.dumps(value)) is value


def values() -> dict[str, object]:
    """One of each data type, and of what the analyses return."""
    rng = np.random.default_rng(5)
    start = np.sort(rng.integers(0, 60_000_000_000, 3000))
    samples = lk.Samples(start=start, duration=rng.integers(1_000_000, 9_000_000, 3000))
    log = samples.to_log("1s")
    h = log.histogram()
    return {
        "samples": samples, "log": log, "histogram": h, "summary": h.summary(), "run": h.run, "buckets": h.buckets,
        "fan-out": lk.fan_out(h, [10, 20]), "slo": lk.SLO.parse("99=20ms"), "diagnosis": lk.diagnose(samples),
        "comparison": lk.compare(h, h), "distribution": lk.fan_out(h, 10),
    }  # fmt: skip


@pytest.mark.parametrize("name", list(values()))
def test_values_survive_pickling(name):
    value = values()[name]
    again = pickle.loads(pickle.dumps(value))
    assert type(again) is type(value)
    assert repr(again) == repr(value)
