"""The compiled loops in Pyodide, where ziglang compiled them, and numpy agree."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import latencykit as lk
from latencykit.core import kernel
from tests.conftest import DATA
from tests.fuzz.kernel import _payload, numpy_alone, same

COMPILED = Path("/pure/_kernel.so")
LOGS = sorted(DATA.rglob("*.hlog"))

pytestmark = pytest.mark.skipif(
    not COMPILED.exists(), reason="no kernel for WebAssembly: ziglang is not installed"
)


@pytest.fixture(autouse=True)
def _compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LATENCYKIT_KERNEL", "yes")
    monkeypatch.setattr(kernel, "FILE", str(COMPILED))
    monkeypatch.setattr(kernel, "_C", kernel._load())


@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_logs_read_alike(path):
    assert kernel.in_use() == "C"
    fast = lk.read_all(path)
    with numpy_alone():
        assert lk.read_all(path) == fast


def test_payloads_decode_alike():
    rng = np.random.default_rng(7)
    assert sum(same(*_payload(rng)) for _ in range(300)) > 0
