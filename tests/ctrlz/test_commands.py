"""The command of Ctrl+Z and its gate in pytest."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import latencykit as lk
from latencykit.ctrlz.run import Calibration
from latencykit.ctrlz.verdict import CalibrationRow
from latencykit.plot.diagnosis_chart import ctrlz


def result(verdict: str = "omits") -> Calibration:
    reported = lk.Histogram.of(np.array([1e6] * 999 + [4e9]))
    truth = lk.Histogram.of(np.concatenate([np.full(667, 1e6), np.linspace(1e6, 4e9, 333)]))
    rows = (CalibrationRow(99.0, 1e6, 3.88e9, True), CalibrationRow(100.0, 4e9, 4e9, False))
    found = verdict, "paced", 4.0, rows, ("the stall is missing",)
    return Calibration(
        *found, ("hey",), "hey", "0.1", reported, truth,
        notes=("it was quiet",),
        load={"duration": 12.0, "rate": 200.0, "connections": 4, "due": 2400, "sent": 2400},
        server={"kind": "own", "usual": 1e6, "busy": 0.1, "jitter": {"50": 1e5}},
        machine={"system": "Linux", "cpus": 2, "load_average": 0.5},
    )  # fmt: skip


@pytest.fixture
def judged(monkeypatch):
    def fake(command, *, progress, **options):
        progress(" ".join(command))
        assert options["stall"] == "4s"
        return result(command[0])

    monkeypatch.setattr("latencykit.ctrlz.run.ctrlz", fake)


@pytest.mark.parametrize(
    ("verdict", "code"), [("omits", 1), ("partly", 1), ("loses", 1), ("honest", 0), ("unknown", 0)]
)
@pytest.mark.usefixtures("judged")
def test_the_verdict_is_the_exit_status(run, verdict, code):
    status, out, err = run("ctrlz", "--format", "json", "--", verdict, "-c", "4")
    assert (status, err) == (code, f"{verdict} -c 4\n")
    record = json.loads(out)
    assert [record[key] for key in ("verdict", "model", "stall")] == [verdict, "paced", 4.0]
    assert record["reported"] == {"99": 1e6, "100": 4e9}
    assert record["truth"]["99"] == record["rows"][0]["truth"] == 3.88e9


@pytest.mark.usefixtures("judged")
def test_the_table_says_why_and_the_chart_is_drawn(run, tmp_path):
    chart = tmp_path / "chart.svg"
    lines = run("ctrlz", "-o", chart, "--", "omits")[1].splitlines()
    assert lines[:2] == ["hey: omits (paced loop)", "  the stall is missing"]
    assert lines[2] == "  note: it was quiet"
    assert lines[-1].split() == ["max", "4", "s", "4", "s", "1.00"]
    assert chart.read_text().startswith("<?xml")
    header, *_ = run("ctrlz", "--format", "csv", "--", "omits")[1].splitlines()
    assert header == "percentile,reported,truth,ratio"


@pytest.mark.slow
def test_reported_is_red_and_true_is_blue():
    ax = ctrlz(result(), ax=Figure().add_subplot())
    colours = {line.get_color() for line in ax.get_lines() if line.get_linewidth() > 1.5}
    assert {"#d0312d", "#0b5cbf"} <= colours


@pytest.mark.usefixtures("judged")
def test_a_process_is_frozen_only_after_a_yes(run, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("n\ny\n"))
    status, out, err = run("ctrlz", "--pid", "4711", "--", "omits")
    assert (status, "(process 4711) and its child processes for 4s?" in out + err) == (2, True)
    assert "nothing was frozen" in err
    assert run("ctrlz", "--pid", "4711", "--", "omits")[0] == 1
    assert run("ctrlz", "--pid", "4711", "--", "omits")[0] == 2  # nobody answers
    assert run("ctrlz", "--pid", "4711", "--yes", "--", "omits")[0] == 1


def test_nothing_to_test_and_nowhere_to_write(run, tmp_path):
    assert run("ctrlz")[0] == 2
    for name, said in (("x.txt", "is written as .hlog"), ("no/x.hlog", "directory does not exist")):
        assert said in run.refused("hiccup", "-o", tmp_path / name, "--duration", "1s")
        assert not (tmp_path / name).exists()


@pytest.mark.slow
def test_hiccups_are_recorded(run, tmp_path: Path):
    path = tmp_path / "h.hlog"
    words = ("-o", path, "--duration", "0.3s", "--interval", "0.1s", "--format", "json")
    _, out, err = run("hiccup", *words)
    record = json.loads(out)
    assert record["output"] == str(path)
    assert record["series"][0]["count"] == lk.read(path).histogram().count > 100
    run = lk.read(path).run
    assert (run.tool, run.corrected) == ("latencykit hiccup", "schedule")
    assert "worst so far" in err


# ---------------------------------------------------------------- pytest

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
