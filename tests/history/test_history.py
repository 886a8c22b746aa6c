"""Histories of runs, their store and their commands."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import latencykit as lk
from latencykit.history.history import origin, trends_of
from latencykit.io.native_json import write_json
from latencykit.plot.history_chart import history
from tests.history.conftest import DAY, fill, run_of
from tests.plot.conftest import assert_tidy, drawn
from tests.views.conftest import model_of
from tests.views.test_schemas import validated

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., tuple[int, str, str]]


def _judge(store: object, *factors: float, **options: object) -> str:
    runs = [{"checkout": run_of(900 + k, factor)} for k, factor in enumerate(factors)]
    return lk.History(store, **options).judge(runs[0], *runs[1:]).verdict  # type: ignore[arg-type]


def test_a_run_is_judged_by_the_runs_before(store: Path) -> None:
    assert _judge(store, 1.0) == "same"
    assert _judge(store, 1.5) == "confirm"
    assert _judge(store, 1.5, 1.5, 1.5) == "worse"
    assert _judge(store, 0.6, 0.6, 0.6) == "better"
    assert _judge(store, 1.5, 1.0, 1.0) == "same"


def test_a_change_that_was_added_is_reported_once_and_learned(store: Path) -> None:
    verdicts = []
    for number in range(20, 30):
        new = {"checkout": run_of(number, 1.5)}
        verdicts.append(lk.History(store).judge(new).verdict)
        fill(store, 1, number, 1.5)
    assert verdicts.count("worse") == 1
    assert "worse" in verdicts[:3]
    assert verdicts[-3:] == ["same"] * 3
    three = lk.History(store).judge(*({"checkout": run_of(970 + k, 3.0)} for k in range(3)))
    assert three.rows[0].change == pytest.approx(1.0, rel=0.2)  # to the level before the change
    row = lk.History(store).judge({"checkout": run_of(99, 1.5)}).rows[0]
    assert row.since is not None
    assert row.since.commit in ("0000013", "0000014")  # the change, or the run before it


def test_a_run_that_is_in_the_store_is_not_its_own_history(store: Path) -> None:
    before = lk.History(store).judge({"checkout": run_of(77, 1.5)})
    lk.History(store).add({"checkout": run_of(77, 1.5)}, time=30 * DAY)
    after = lk.History(store).judge({"checkout": run_of(77, 1.5)})
    assert [row.runs for row in after.rows] == [row.runs for row in before.rows]


def test_too_few_runs_are_unknown_and_say_how_many_are_missing(tmp_path: Path) -> None:
    fill(tmp_path / "few", 4)
    verdict = lk.History(tmp_path / "few").judge({"checkout": run_of(901)})
    assert verdict.verdict == "unknown"
    assert {row.missing for row in verdict.rows} == {1}
    assert lk.History(tmp_path / "none").judge({"checkout": run_of(1)}).verdict == "unknown"


def test_machines_are_judged_apart(tmp_path: Path) -> None:
    fill(tmp_path, 15, labels={"machine": "slow"}, factor=1.5)
    fill(tmp_path, 15, labels={"machine": "fast"})
    history = lk.History(tmp_path)
    runs = [{"checkout": run_of(800 + k, 1.5)} for k in range(3)]
    assert history.judge(runs[0], labels={"machine": "slow"}).verdict == "same"
    assert history.judge(*runs, labels={"machine": "fast"}).verdict == "worse"
    other = history.judge(runs[0], labels={"machine": "new"})
    assert other.verdict == "unknown"
    assert "machine=fast" in other.notes[0]


def test_many_statistics_are_one_family(tmp_path: Path) -> None:
    """One series of many deviates by chance in what would be an alarm of a gate on it alone."""
    alone, many = tmp_path / "alone", tmp_path / "many"
    for number in range(20):
        facts = {"time": number * DAY, "commit": "a", "branch": "b"}
        lk.History(alone).add({"s0": run_of(number)}, **facts)  # type: ignore[arg-type]
        series = {f"s{k}": run_of(number) for k in range(40)}
        lk.History(many).add(series, **facts)  # type: ignore[arg-type]
    runs = [{"s0": run_of(500 + k, 1.11)} for k in range(3)]
    assert lk.History(alone).judge(*runs, statistics=["p50"]).verdict == "worse"
    rest = [run | {f"s{k}": run_of(600 + n) for k in range(1, 40)} for n, run in enumerate(runs)]
    assert lk.History(many).judge(*rest, statistics=["p50"]).verdict != "worse"


def test_a_short_run_decides_nothing_by_its_own_noise(store: Path) -> None:
    short = {"checkout": lk.Histogram.of([1_200_000, 1_600_000] * 4)}  # p50: uncertain by a third
    judged = lk.History(store).judge(short, statistics=["p50", "max", "p99.999"])
    assert [row.verdict for row in judged.rows] == ["same", "confirm"]
    assert judged.notes[0].startswith("left out: p99.999")
    for day in range(30, 34):
        lk.History(store).add(short, time=day * DAY)
    assert not trends_of(lk.History(store), ("p50",))[0].changes


def test_two_writers_keep_both_runs_and_the_same_run_once(tmp_path: Path) -> None:
    def add(number: int) -> str:
        return lk.History(tmp_path).add(run_of(number % 4), commit="abc", branch="main", time=DAY)

    with ThreadPoolExecutor(8) as pool:
        places = list(pool.map(add, range(64)))
    assert len(set(places)) == len(lk.History(tmp_path).runs) == 4


@pytest.mark.parametrize("fault", ["cut", "empty", "noise", "record", "line", "distribution"])
def test_a_corrupt_file_is_named_and_left_out(store: Path, fault: str) -> None:
    path = sorted(store.glob("*.jsonl"))[3]
    content = path.read_bytes()
    corrupt = {
        "cut": content[: len(content) // 2],
        "empty": b"",
        "noise": bytes(range(256)) * 20,
        "record": content.replace(b'"series":', b'"serie5":'),
        "line": content.replace(b'"labels":', b'"label5":'),
        "distribution": content.replace(b'"distribution":"eJ', b'"distribution":"eN'),
    }
    path.write_bytes(corrupt[fault])
    history = lk.History(store)
    assert len(history.runs) == 19
    assert len(history.left_out) == 1
    assert path.name in history.left_out[0]
    assert history.judge({"checkout": run_of(901)}).verdict == "same"


def test_a_history_is_a_table_of_runs_and_statistics(store: Path) -> None:
    history = lk.History(store)
    frame = history.to_frame()
    assert frame["run"].nunique() == len(history.runs)
    p99 = frame[frame["statistic"] == "p99"]["value"].tolist()
    assert p99 == [run.series["checkout"].value("p99") for run in history.runs]


def test_a_renamed_series_is_pointed_out_and_can_be_named(store: Path) -> None:
    new = {"cart": run_of(901)}
    verdict = lk.History(store).judge(new)
    assert verdict.verdict == "unknown"
    assert "checkout" in verdict.notes[0]
    assert "cart is new" in verdict.notes[0]
    assert lk.History(store, rename={"checkout": "cart"}).judge(new).verdict == "same"


def test_a_changed_unit_is_an_error(store: Path) -> None:
    bare = {"checkout": lk.Histogram.of([1, 2, 3] * 400, unit="none")}
    with pytest.raises(lk.IncompatibleDataError, match="checkout: has the unit 'none', but 'ns'"):
        lk.History(store).judge(bare)


def test_a_summary_is_judged_by_its_mean(tmp_path: Path) -> None:
    for number in range(12):
        mean = lk.Summary({"mean": 100.0 + number % 3}, unit="us")
        lk.History(tmp_path).add({"bench": mean}, time=number * DAY)
    row = lk.History(tmp_path).judge({"bench": lk.Summary({"mean": 101.0}, unit="us")}).rows[0]
    assert (row.statistic, row.unit, row.value, row.verdict) == ("mean", "ns", 101_000, "same")
    assert_tidy(drawn(history, trends_of(lk.History(tmp_path), ("mean",)), 1000, 400))


def test_a_trend_has_bands_and_the_runs_between_which_it_changed(store: Path) -> None:
    fill(store, 20, 20, 1.5)
    fill(store, 20, 40, 1.0)
    (trend,) = trends_of(lk.History(store), ("p50",))
    up, down = trend.changes
    assert (up.first, up.position, up.last) == (19, 20, 20)
    assert (down.first, down.position, down.last) == (39, 40, 40)
    assert [one.after / one.before for one in (up, down)] == pytest.approx([1.5, 1 / 1.5], rel=0.1)
    assert (trend.low[15:] <= trend.level[15:]).all()


def test_ci_variables_come_before_git() -> None:
    known = origin({"GITHUB_SHA": "abc123", "GITHUB_REF_NAME": "main"})
    assert (known.commit, known.branch) == ("abc123", "main")
    assert origin({"CI_COMMIT_SHA": "def", "CI_COMMIT_REF_NAME": "topic"}).branch == "topic"
    assert origin({"GITHUB_SHA": "--output=/tmp/x"}).commit != "--output=/tmp/x"


@pytest.mark.slow
def test_commit_and_time_come_from_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("git") is None:
        pytest.skip("no git here")
    for words in (
        ["init", "-q", "-b", "trunk"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x",
         "--date", "2024-01-01T00:00:00Z"],
    ):  # fmt: skip
        subprocess.run(
            ["git", *words], cwd=tmp_path, check=True,
            env={"GIT_COMMITTER_DATE": "2024-01-02T00:00:00Z", "PATH": "/usr/bin:/bin"},
        )  # fmt: skip
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_SHA", "GITHUB_REF_NAME", "CI_COMMIT_SHA", "GIT_COMMIT"):
        monkeypatch.delenv(name, raising=False)
    known = origin()
    assert (known.branch, known.time) == ("trunk", 1704153600.0)
    assert len(known.commit or "") == 40


def test_a_bucket_is_a_store() -> None:
    pytest.importorskip("fsspec")
    place = "memory://runs/of/main"
    assert lk.History(place).runs == ()
    fill(place, 15)
    assert len(lk.History(place).runs) == 15
    assert _judge(place, 1.5, 1.5, 1.5) == "worse"
    history = lk.History(place)
    assert history.distribution(history.runs[0])["checkout"] == run_of(0)


@pytest.mark.slow
@pytest.mark.needs_tool
def test_a_server_like_s3_is_a_store(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("s3fs")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0)
    server.start()
    try:
        port = server._server.server_port
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
        fsspec = pytest.importorskip("fsspec")
        fsspec.filesystem("s3", skip_instance_cache=True).mkdir("bucket")
        fill("s3://bucket/runs", 12)
        assert len(lk.History("s3://bucket/runs").runs) == 12
        assert _judge("s3://bucket/runs", 1.5, 1.5, 1.5) == "worse"
    finally:
        server.stop()


@pytest.mark.slow
def test_a_writer_that_is_killed_leaves_no_half_a_run(tmp_path: Path) -> None:
    code = (
        "import latencykit as lk, sys, itertools\n"
        "for n in itertools.count():\n"
        "    lk.History(sys.argv[1]).add(lk.Histogram.of([n + 1, n + 2]), time=n,"
        " commit='a', branch='b')\n"
        "    print(n, flush=True)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "runs")]
    writer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    for _ in range(20):
        writer.stdout.readline()
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    writer.stdout.close()
    history = lk.History(tmp_path / "runs")
    assert len(history.runs) >= 20
    assert history.left_out == ()


def test_the_store_is_refused_where_it_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(lk.InvalidArgumentError, match="is a file"):
        lk.History(tmp_path / "file")
    with pytest.raises(lk.InvalidArgumentError):
        lk.History("")
    with pytest.raises(lk.InvalidArgumentError):
        lk.History(tmp_path).add({})
    with pytest.raises(lk.InvalidArgumentError):
        lk.History(tmp_path).add(run_of(1), time=float("nan"))


# ---------------------------------------------------------------- commands


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
    write_json({f"s{k}": lk.Summary({"mean": 100.0 + 3 * (k == 1)}) for k in range(40)}, path)
    out = run("history", "check", path, "--store", tmp_path / "many", "--format", "markdown")[1]
    assert out.startswith("**No change shown; outside the range of 95 % of earlier runs: s1 mean**")
    assert len(out.splitlines()) < 25
    assert "28 further rows: 28 same." in out


def test_corrupt_files_are_named_on_standard_error(run: Run, store: Path, values: Any) -> None:
    (store / "20240101T000000Z-x-y.jsonl").write_bytes(b"PAR1")
    status, _, notes = run("history", "check", f"checkout={values(1)}", "--store", store)
    assert (status, "left out: 20240101T000000Z-x-y.jsonl" in notes) == (0, True)
    notes = run("history", "check", f"checkout={values(1)}", "--store", store / "new")[2]
    assert "the store has no runs yet" in notes


def test_show_in_all_forms(run: Run, store: Path, tmp_path: Path) -> None:
    fill(store, 20, 20, 1.5)
    status, out, _ = run("history", "show", "--store", store)
    assert (status, "checkout p50: +" in out) == (0, True)
    out = run("history", "show", "--store", store, "--format", "json")[1]
    record = validated("history-show", out)
    assert record["runs"] == 40
    assert {len(one["changes"]) for one in record["trends"] if one["statistic"] == "p50"} == {1}
    for name in ("a.svg", "b.png", "c.html"):
        assert run("history", "show", "--store", store, "-o", tmp_path / name)[0] == 0
        assert (tmp_path / name).stat().st_size > 5000
    shown = model_of((tmp_path / "c.html").read_text("utf-8"))["history"]["trends"]
    ((_, _, factor),) = next(one["changes"] for one in shown if one["statistic"] == "p50")
    assert factor == pytest.approx(0.5, abs=0.1)
    assert " %, from " in (tmp_path / "a.svg").read_text("utf-8")
    lk.History(store).add({"checkout": lk.Summary({"mean": 1e6})}, time=9e9)
    words = ("history", "show", "--store", store, "--statistics", "p50,max", "--last", "1")
    assert "no run of the last 1 has p50" in run.refused(*words)
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
    assert (low, high) == pytest.approx((np.exp(-1.8 * 2**0.5 * noise), np.exp(1.8 * noise)))
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
    other = ("check", f"cart={values(1)}", "--slo", "50=1s", "--history", store)  # not that series
    assert "no run noise of cart p50; it takes six runs (series: checkout;" in run(*other)[2]
    status, _, notes = run("check", path, "--slo", slo, "--history", store / "none")
    assert (status, "six runs" in notes) == (0, True)


def test_wrong_words_are_one_line(run: Run, store: Path, values: Any) -> None:
    path = values(1)
    for more in (["--label", "x"], ["--rename", "a"], ["--statistics", "p101"]):
        run.refused("history", "check", path, "--store", store, *more)
    error = run.refused("history", "add", path, "--store", store, "--time", "yesterday")
    assert "is not a time" in error
