"""The fixture `ctrlz`, as a project that uses latencykit has it."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULE = "latencykit.pytest_plugin"
TESTS = """
import sys

def test_nothing_is_imported_until_used():
    assert not {"numpy", "latencykit.ctrlz.run"} & set(sys.modules)

def test_our_load_generator(ctrlz):
    command = [sys.executable, "-m", "latencykit.ctrlz.client", "MODE", "{url}"]
    command += ["--rate", "{rate}", "--duration", "{duration}s", "-o", "{out}"]
    result = ctrlz(command, stall=0.9, duration=2.7)
    assert result.verdict == "honest", result.reasons
"""


def test_the_plug_in_is_registered() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"latencykit": MODULE}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot freeze a process")
@pytest.mark.parametrize(
    ("mode", "passed"), [("open", "2 passed"), ("closed", "1 failed, 1 passed")]
)
def test_a_gate_in_pytest(mode, passed, tmp_path) -> None:
    (tmp_path / "test_load.py").write_text(TESTS.replace("MODE", mode))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    fixtures = subprocess.run(
        [*command, "--fixtures", "-p", MODULE], capture_output=True, text=True, check=False,
        cwd=ROOT,
    )  # fmt: skip
    assert "Test whether a load generator reports" in fixtures.stdout
    for _ in range(3):  # a machine may be busy
        done = subprocess.run(
            [*command, "-p", MODULE, "--rootdir", str(tmp_path), "-c", "/dev/null"],
            capture_output=True, text=True, check=False, cwd=ROOT,
        )  # fmt: skip
        if passed in done.stdout:
            return
    pytest.fail(done.stdout)
