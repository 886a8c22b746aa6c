"""The script of the GitHub action: tables in the job's summary, and the worst exit status."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
ACTION = ROOT / ".github" / "actions" / "latencykit"
BASH = shutil.which("bash")

pytestmark = [pytest.mark.slow, pytest.mark.skipif(BASH is None, reason="no bash here")]


@pytest.fixture
def act(tmp_path: Path) -> Callable[..., tuple[int, str, str, str]]:
    """Run the script; return exit status, what it prints, the summary and the verdict."""
    command = tmp_path / "bin" / "latencykit"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m latencykit "$@"\n')
    command.chmod(0o755)
    for side, scale in (("fast", 1.0), ("slow", 2.0)):
        for number in range(5):
            values = np.random.default_rng(number).exponential(scale * 1e6, 5000)
            text = "\n".join(["latency_ns", *(f"{value:.0f}" for value in values), ""])
            (tmp_path / f"{side} {number}.csv").write_text(text)

    def call(**variables: str) -> tuple[int, str, str, str]:
        summary, output = tmp_path / "summary.md", tmp_path / "output"
        for path in (summary, output):
            path.write_text("")
        path = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
        given = {"GITHUB_STEP_SUMMARY": str(summary), "GITHUB_OUTPUT": str(output)}
        done = subprocess.run(
            [str(BASH), str(ACTION / "run.sh")],
            env=os.environ | {"PATH": path, "PYTHONPATH": str(ROOT)} | given | variables,
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        made = summary.read_text("utf-8"), output.read_text().strip()
        return done.returncode, done.stdout + done.stderr, *made

    return call


def test_a_run_is_judged_by_the_history_and_added(act, run, tmp_path):
    known = {
        "HISTORY": "run=fast 0.csv", "STORE": "kept", "LABELS": "machine=ci-4\n", "ADD": "true",
        "COMMENT": "comment.md", "PAGE": "page.html",
    }  # fmt: skip
    status, _, summary, verdict = act(**known)
    assert (status, verdict) == (0, "verdict=passed")
    assert "### Compared with the history" in summary
    assert "needs 5 more runs" in (tmp_path / "comment.md").read_text()
    assert len(list((tmp_path / "kept").glob("*.jsonl"))) == 1
    assert "<html" in (tmp_path / "page.html").read_text()
    for number in range(1, 12):  # the runs before: the files give enough of them
        file = f"run={tmp_path / f'fast {number % 5}.csv'}"
        words = ("add", file, "--store", tmp_path / "kept", "--label", "machine=ci-4")
        assert run("history", *words, "--commit", f"c{number}", "-q")[0] == 0
    status, _, summary, verdict = act(**known | {"HISTORY": "run=slow 1.csv", "CONFIRM": "true"})
    assert (status, verdict) == (1, "verdict=failed")
    assert "worse" in summary


def test_a_limit_that_is_met_and_one_that_is_missed(act):
    status, _, summary, verdict = act(CHECK="fast 0.csv\n\nfast*.csv\n", SLO="50=20ms")
    assert (status, verdict) == (0, "verdict=passed")
    assert summary.startswith("### SLO 50=20ms\n\n**fast 0.csv, ")
    assert "and 3 more: meets its SLO**\n\n| series |" in summary
    assert summary.count("| met |") == 6  # the glob names the first file again
    status, printed, summary, verdict = act(CHECK="fast*.csv\r\n", SLO="50=1us")
    assert (status, verdict) == (1, "verdict=failed")
    assert summary.count("| missed |") == 5
    assert "::error title=SLO 50=1us::negative verdict" in printed


def test_an_undecided_limit_fails_if_asked_to(act):
    assert act(CHECK="fast 0.csv", SLO="99.999=1s")[0] == 0
    assert act(CHECK="fast 0.csv", SLO="99.999=1s", STRICT="true")[0] == 1


def test_several_runs_per_side_are_compared(act):
    status, _, summary, verdict = act(
        BASE="fast*.csv", NEW="slow*.csv", FAIL_IF="p50 > +5%\nmean > +10%"
    )
    assert (status, verdict) == (1, "verdict=failed")
    assert "### Compared with the base" in summary
    assert re.search(r"^\| p50 \| .*\| yes \|$", summary, re.MULTILINE)
    # without `new`, the files that are checked; the worst status counts
    assert act(CHECK="slow*.csv", SLO="50=20ms", BASE="fast*.csv", FAIL_IF="p50 > +5%")[0] == 1


def test_input_that_cannot_be_read_is_an_error_and_the_other_table_is_still_written(act):
    status, printed, summary, verdict = act(
        CHECK="absent.csv", SLO="50=20ms", BASE="fast*.csv", NEW="fast*.csv"
    )
    assert (status, verdict) == (2, "verdict=error")
    assert "::error title=SLO 50=20ms::latencykit: absent.csv" in printed
    assert "### Compared with the base" in summary
    assert act()[::3] == (2, "verdict=error")


def test_a_name_in_an_input_is_not_a_command_to_the_runner(act, tmp_path):
    (tmp_path / "::error::x.csv").write_text("nothing")
    _, printed, _, _ = act(CHECK="::error::x.csv", SLO="50=20ms")
    assert not re.search(r"^::(?!error title=SLO)", printed, re.MULTILINE)


def test_options_with_a_value_and_without_one(act):
    status, _, summary, _ = act(
        CHECK="fast 0.csv", SLO="50=20ms", OPTIONS="--out-unit us\n--lenient"
    )
    assert status == 0
    assert re.search(r"\| p50 \| 20,000 us \| [\d,.]+ us \|", summary)


def test_every_input_reaches_the_script():
    text = (ACTION / "action.yml").read_text("utf-8")
    inputs = re.findall(r"(?m)^  ([\w-]+):\n    description", text.split("\noutputs:")[0])
    given = dict(re.findall(r"(?m)^        ([A-Z_]+): \$\{\{ inputs\.([\w-]+) \}\}", text))
    assert set(given.values()) == {*inputs} - {"install"}
    script = (ACTION / "run.sh").read_text("utf-8")
    assert all(f"{name}:-" in script for name in given)
