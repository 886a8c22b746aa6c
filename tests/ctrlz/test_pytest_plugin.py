"""The fixture `ctrlz`, as a project that uses latencykit has it."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULE = "latencykit.pytest_plugin"
TESTS = """
import sys, pytest

def test_nothing_is_imported_until_used():
    assert not {"numpy", "latencykit.ctrlz.run"} & set(sys.modules)

@pytest.mark.parametrize("mode", ["open", "closed"])
def test_our_load_generator(ctrlz, mode):
    command = [sys.executable, "-m", "latencykit.ctrlz.client", mode, "{url}"]
    command += ["--rate", "{rate}", "--duration", "{duration}s", "-o", "{out}"]
    result = ctrlz(command, stall=0.9, duration=2.7)
    assert result.verdict == "honest", result.reasons
"""


def test_the_plug_in_is_registered() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"latencykit": MODULE}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot freeze a process")
def test_a_gate_in_pytest(tmp_path) -> None:
    (tmp_path / "test_load.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", MODULE]
    command += ["--rootdir", str(tmp_path), "-c", "/dev/null", str(tmp_path)]
    # An installed package is found by its entry point, and a plug-in is registered once.
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    for _ in range(3):  # a machine may be busy
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=ROOT, env=env
        )
        if "1 failed, 2 passed" in done.stdout:
            assert "test_our_load_generator[closed]" in done.stdout.partition("short test")[2]
            return
    pytest.fail(done.stdout + done.stderr)
