"""``latencykit history``: add, check, show."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import latencykit as lk
from latencykit.io.native_json import write_json
from tests.history.conftest import fill
from tests.views.test_schemas import validated

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def values(tmp_path: Path) -> Callable[[float, int], Path]:
    """Write a run as CSV; return its path."""

    def written(factor: float, seed: int = 1) -> Path:
        rng = np.random.default_rng(seed)
        level = 1e6 * factor * np.exp(0.03 * rng.standard_normal())
        numbers = level * np.exp(0.3 * rng.standard_normal(3000))
        path = tmp_path / f"run-{factor:g}-{seed}.csv"
        path.write_text("latency_ns\n" + "".join(f"{value:.0f}\n" for value in numbers))
        return path

    return written


def test_a_change_is_found_and_the_status_says_so(run: Run, store: Path, values: Any) -> None:
    fast, slow = (f"checkout={values(factor)}" for factor in (1, 1.6))
    assert run("history", "check", fast, "--store", store)[0] == 0
    status, out, _ = run("history", "check", slow, "--store", store, "--format", "json")
    record = validated("history-check", out)
    assert (status, record["verdict"], record["schema_version"]) == (0, "confirm", 1)
    for seed in (2, 3):
        again = f"checkout={values(1.6, seed)}"
        added = run("history", "add", again, "--store", store, "--time", f"{1970 + seed}-06-01",
                    "--commit", "abc", "--branch", "main")  # fmt: skip
        assert added[0] == 0
    status, out, _ = run("history", "check", slow, "--store", store)
    assert status == 1
    assert "worse" in out


def test_confirm_runs_the_command_again(run: Run, store: Path, values: Any, tmp_path: Path) -> None:
    path = values(1.6)
    code = tmp_path / "again.py"
    code.write_text(
        "import sys, pathlib, random\np = pathlib.Path(sys.argv[1])\n"
        "lines = p.read_text().split()\n"
        "p.write_text('\\n'.join([lines[0], *(str(int(n) + random.randrange(9)) for n in lines[1:])]))\n"
    )
    words = ["history", "check", f"checkout={path}", "--store", store]
    status, _, notes = run(*words, "--confirm", f"{sys.executable} {code} {path}")
    assert status == 1
    assert notes.count("running") == 2
    fails = f"{sys.executable} -c 'raise SystemExit(3)'"
    for command, why in (("no-such-program", "cannot be run"), (fails, "status 3")):
        status, _, error = run(*words, "--confirm", command)
        assert (status, why in error) == (2, True)


def test_markdown_is_a_comment_of_one_screen(run: Run, tmp_path: Path) -> None:
    for number in range(12):
        series = {f"s{k}": lk.Summary({"mean": 100.0 + number % 2}) for k in range(40)}
        lk.History(tmp_path / "many").add(series, time=number * 1e5)
    path = tmp_path / "now.json"
    write_json({f"s{k}": lk.Summary({"mean": 100.0}) for k in range(40)}, path)
    out = run("history", "check", path, "--store", tmp_path / "many", "--format", "markdown")[1]
    assert out.startswith("**The same as the runs before**")
    assert len(out.splitlines()) < 25
    assert "28 further rows: 28 same." in out


def test_corrupt_files_are_named_on_standard_error(run: Run, store: Path, values: Any) -> None:
    (store / "20240101T000000Z-x-y.jsonl").write_bytes(b"PAR1")
    status, _, notes = run("history", "check", f"checkout={values(1)}", "--store", store)
    assert status == 0
    assert "left out: 20240101T000000Z-x-y.jsonl" in notes


def test_show_in_all_forms(run: Run, store: Path, tmp_path: Path) -> None:
    fill(store, 20, 20, 1.5)
    status, out, _ = run("history", "show", "--store", store)
    assert status == 0
    assert "checkout p50: +" in out
    record = validated(
        "history-show", run("history", "show", "--store", store, "--format", "json")[1]
    )
    assert record["runs"] == 40
    assert all(
        len(trend["changes"]) == 1 for trend in record["trends"] if trend["statistic"] == "p50"
    )
    for name in ("a.svg", "b.png", "c.html"):
        status, _, _ = run("history", "show", "--store", store, "-o", tmp_path / name)
        assert status == 0
        assert (tmp_path / name).stat().st_size > 5000
    assert run("history", "show", "--store", store, "-o", tmp_path / "d.png", "--heatmap")[0] == 0
    assert "no run" in run.refused("history", "show", "--store", tmp_path / "none")
    assert run("history", "show", "--store", store, "-o", tmp_path / "e.gif")[0] == 2


def test_a_page_shows_no_markup_of_a_name(run: Run, tmp_path: Path) -> None:
    name = "</script><script>alert(1)</script>"
    for number in range(3):
        lk.History(tmp_path / "h").add(
            {name: lk.Histogram.of([1, 2, 3])}, commit=name, time=1e5 + number
        )
    assert run("history", "show", "--store", tmp_path / "h", "-o", tmp_path / "p.html")[0] == 0
    assert "<script>alert" not in (tmp_path / "p.html").read_text()


def test_compare_takes_the_run_noise_of_a_history(run: Run, store: Path, values: Any) -> None:
    sides = (values(1), values(1.04, 2))
    status, out, notes = run("compare", *sides, "--history", store, "--format", "json")
    assert status == 0
    assert json.loads(out)["verdict"] != "worse"
    assert "run noise" in notes
    assert "from the history of checkout" in notes
    assert run("compare", values(1), values(1.6, 2), "--history", store)[0] == 1
    both = run("compare", *sides, "--history", store, "--run-noise", "3%")
    assert (both[0], "give one" in both[2]) == (2, True)
    assert "shows no run noise" in run.refused("compare", *sides, "--history", store / "none")


def test_check_is_sure_by_the_run_noise_of_a_history(run: Run, store: Path, values: Any) -> None:
    fast, words = f"checkout={values(1)}", ("--history", store, "--format", "json")
    p50 = json.loads(run("check", fast, "--slo", "50=1s", *words)[1])["rows"][0]["value"] / 1e6
    limits = {"met": 1.3 * p50, "close": 1.02 * p50, "near": 0.98 * p50, "missed": 0.7 * p50}
    rows = {}
    for name, limit in limits.items():
        status, out, _ = run("check", fast, "--slo", f"50={limit}ms", *words, "--sure")
        (rows[name],) = validated("check", out)["rows"]
        assert status == (name == "missed")
    assert [row["outcome"] for row in rows.values()] == ["met", "met", "missed", "missed"]
    assert [row["sure"] for row in rows.values()] == [True, False, False, True]
    assert "runs differ by" in rows["close"]["reason"]
    noise = lk.History(store).latest("checkout", "p50").noise
    assert noise is not None
    low, high = (rows["met"][end] / rows["met"]["value"] for end in ("low", "high"))
    assert (low, high) == pytest.approx((np.exp(-(8**0.5) * noise), np.exp(2 * noise)))
    lucky = f"checkout={values(0.8)}"  # an outlier has to be met again
    slo = f"50={0.95 * p50}ms"
    (row,) = json.loads(run("check", lucky, "--slo", slo, *words)[1])["rows"]
    assert (row["outcome"], row["sure"]) == ("met", False)
    assert "earlier runs reach" in row["reason"]
    assert not run.json("check", fast, "--slo", "50=1s")["rows"][0]["sure"]


def test_check_says_which_run_noise_the_history_lacks(run: Run, store: Path, values: Any) -> None:
    path = f"checkout={values(1)}"
    slo = "50=1s,tm99=1s,failed=1%"
    status, out, notes = run("check", path, "--slo", slo, "--history", store, "--format", "json")
    assert status == 0
    assert [row["sure"] for row in json.loads(out)["rows"]] == [True, False, False]
    assert "shows no run noise of checkout tm99" in notes
    status, _, notes = run("check", path, "--slo", slo, "--history", store / "none")
    assert status == 0
    assert "eleven runs" in notes


def test_wrong_words_are_one_line(run: Run, store: Path, values: Any) -> None:
    path = values(1)
    for more in (["--label", "x"], ["--rename", "a"], ["--statistics", "p101"]):
        status, _, error = run("history", "check", path, "--store", store, *more)
        assert (status, error.count("\n")) == (2, 1), error
    error = run.refused("history", "add", path, "--store", store, "--time", "yesterday")
    assert "is not a time" in error
