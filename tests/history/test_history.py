"""A store survives what happens to folders, and its gate judges families of statistics."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

import latencykit as lk
from latencykit.history.history import origin, trends_of
from tests.history.conftest import DAY, fill, run_of

if TYPE_CHECKING:
    from pathlib import Path


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
    assert {row.missing for row in verdict.rows} == {6}
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
    rng_free = lk.Histogram.of([1_000_000, 1_300_000] * 4)  # p50 is uncertain by a third
    assert lk.History(store).judge({"checkout": rng_free}, statistics=["p50"]).verdict == "same"


def test_two_writers_keep_both_runs_and_the_same_run_once(tmp_path: Path) -> None:
    runs = [run_of(seed).with_run(start=DAY) for seed in range(4)]

    def add(number: int) -> str:
        return lk.History(tmp_path).add(runs[number % 4], commit="abc", branch="main", time=DAY)

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
    known = origin({"GITHUB_SHA": "--output=/tmp/x", "GITHUB_REF_NAME": "m"})
    assert known.commit != "--output=/tmp/x"


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


@pytest.mark.needs_tool
def test_duckdb_reads_the_folder(store: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    rows = duckdb.sql(
        f"SELECT \"commit\", statistics.p99[1] FROM '{store}/*.jsonl' WHERE series = 'checkout' "
        "ORDER BY time"
    ).fetchall()
    runs, values = lk.History(store).values("checkout", "p99")
    assert rows == [(run.commit, value) for run, value in zip(runs, values, strict=True)]


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
