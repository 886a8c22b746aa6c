"""Events beside a run: what logs say happened, and what is said about it."""

from __future__ import annotations

import json
import pickle
import re
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import latencykit as lk
from latencykit.analysis.coincidence import coincide
from latencykit.core.events import Events
from latencykit.io.events import read_events
from tests.benchmarks import truth_events as worlds

DATA = Path(__file__).parents[1] / "data" / "events"
NOON = 1_769_860_800.0  # 2026-01-31T12:00:00Z


def written(folder: Path, text: str, name: str = "events.txt") -> Path:
    path = folder / name
    path.write_text(text)
    return path


# ------------------------------------------------------------ files


@pytest.mark.parametrize(
    ("name", "kind", "clock"),
    [
        ("g1-25.log", "jvm-gc", "relative"),
        ("serial-17.log", "jvm-gc", "relative"),
        ("parallel-17.log", "jvm-gc", "epoch"),
        ("shenandoah-17.log", "jvm-gc", "relative"),
        ("zgc-17.log", "jvm-gc", "relative"),
        ("zgc-generational-25.log", "jvm-gc", "epoch"),
        ("timenanos-25.log", "jvm-gc", "relative"),
        ("jvm/gc.log", "jvm-gc", "epoch"),
        ("jdk8-parallel.log", "jvm-gc", "epoch"),
        ("jdk8-cms.log", "jvm-gc", "relative"),
        ("jdk8-g1.log", "jvm-gc", "epoch"),
        ("gctrace.txt", "go-gctrace", "relative"),
        ("journal.json", "journal", "epoch"),
        ("kubernetes.json", "kubernetes", "epoch"),
        ("redis/slowlog.txt", "redis-slowlog", "epoch"),
        ("redis/slowlog-tty.txt", "redis-slowlog", "epoch"),
        ("redis/slowlog.json", "redis-slowlog", "epoch"),
    ],
)
def test_files_are_recognised_by_their_content(name: str, kind: str, clock: str) -> None:
    found = read_events(DATA / name)
    assert (found.kind, found.clock) == (kind, clock)
    assert len(found)
    assert (found.end >= found.start).all()
    assert (np.diff(found.start) >= 0).all()


@pytest.mark.parametrize(
    "name",
    ["serial-17.log", "parallel-17.log", "shenandoah-17.log", "zgc-17.log", "g1-25.log",
     "zgc-generational-25.log"],
)  # fmt: skip
def test_all_pauses_of_all_collectors_count(name: str) -> None:
    text = (DATA / name).read_text()
    lengths = re.findall(r"Pause .*? (\d+\.\d+)ms$", text, re.MULTILINE)
    found = read_events(DATA / name)
    pauses = np.char.startswith(found.label.astype(str), "Pause")
    assert pauses.sum() == len(lengths)
    if "afepoint" not in text:  # which begin before the pause that they are for
        assert sum(found.end - found.start) == pytest.approx(
            sum(map(float, lengths)) / 1e3, abs=1e-5
        )


def test_a_pause_ends_where_its_line_is_written() -> None:
    found = read_events(DATA / "serial-17.log")
    assert found.end[0] == pytest.approx(0.247)
    assert found.start[0] == pytest.approx(0.247 - 14.493e-3)


@pytest.mark.parametrize(
    ("decorations", "clock"),
    [
        ("[{date}][{up:.3f}s][info][gc]", "epoch"),
        ("[{date}][gc          ]", "epoch"),
        ("[{ms}ms][{up:.3f}s][gc]", "epoch"),
        ("[{up:.3f}s][info ][gc]", "relative"),
        ("[{upms}ms][4711]", "relative"),
        ("[{upns}ns][host-1][4711][4712][info][gc]", "relative"),
        ("shop-1  | {date} [{up:.3f}s][info][gc]", "epoch"),
    ],
)
def test_decorations_do_not_change_what_is_read(
    tmp_path: Path, decorations: str, clock: str
) -> None:
    ends = np.array([2.5, 39.5, 76.75])
    lines = []
    for k, end in enumerate(ends.tolist()):
        date = datetime.fromtimestamp(NOON + end, UTC).isoformat(timespec="milliseconds")
        head = decorations.format(
            date=date.replace("+00:00", "+0000"), ms=round(1e3 * (NOON + end)), up=end,
            upms=round(1e3 * end), upns=round(1e9 * end),
        )  # fmt: skip
        lines += [
            f"{head} GC({k}) Pause Full (System.gc())",
            f"{head} GC({k}) Concurrent Mark 12.000ms",
            f"{head} GC({k}) Pause Full (System.gc()) 100M->20M(256M) 500.000ms",
        ]
    found = read_events(written(tmp_path, "\n".join(lines)))
    assert found.clock == clock
    origin = NOON if clock == "epoch" else 0.0
    np.testing.assert_allclose(found.start - origin, ends - 0.5, atol=1e-6)
    assert set(found.label) == {"Pause Full (System.gc())"}


def test_a_safepoint_belongs_to_its_pause_and_reaches_back_to_its_request(tmp_path: Path) -> None:
    text = """\
[10.400s][info][gc] GC(3) Pause Full (System.gc()) 9M->2M(64M) 400.000ms
[10.401s][info][safepoint] Safepoint "SerialCollectFull", Time since last: 1 ns, \
Reaching safepoint: 1500000000 ns, At safepoint: 401000000 ns, Total: 1901000000 ns
[12.000s][info][safepoint] Safepoint "RevokeBias", Time since last: 1 ns, \
Reaching safepoint: 9 ns, At safepoint: 250000000 ns, Total: 250000000 ns
[13.000s][info][gc] Allocation Stall (main) 125.000ms
"""
    found = read_events(written(tmp_path, text))
    np.testing.assert_allclose(found.start, [8.5, 11.75, 12.875])
    np.testing.assert_allclose(found.end, [10.401, 12.0, 13.0])
    assert found.label.tolist() == [
        "Pause Full (System.gc())", "Safepoint RevokeBias", "Allocation Stall (main)",
    ]  # fmt: skip


def test_jdk_8_stamps_the_start_and_may_break_lines() -> None:
    g1 = read_events(DATA / "jdk8-g1.log")
    np.testing.assert_allclose(g1.start - NOON, [0.25, 1.1, 1.2, 2.0], atol=1e-6)
    np.testing.assert_allclose(g1.end - g1.start, [0.025, 0.005, 0.0012, 0.3], atol=1e-6)
    cms = read_events(DATA / "jdk8-cms.log")
    np.testing.assert_allclose(cms.start, [0.247, 1.5, 1.54])
    np.testing.assert_allclose(cms.end - cms.start, [0.0125, 0.00125, 0.00375])
    parallel = read_events(DATA / "jdk8-parallel.log")  # UTC+1, with stopped times
    np.testing.assert_allclose(parallel.start - NOON, [1.499, 38.5, 40.0998], atol=1e-6)


def test_go_counts_from_its_start_or_from_a_date_before_each_line(tmp_path: Path) -> None:
    found = read_events(DATA / "gctrace.txt")
    assert found.start[0] == 0.030
    assert found.end[0] == pytest.approx(0.030 + 2.449e-3)
    line = (
        "gc 7 @8.000s 1%: 0.1+99.8+0.1 ms clock, 0.2+0/0/0+0.2 ms cpu, 4->4->0 MB, 5 MB goal, 8 P"
    )
    dated = read_events(
        written(tmp_path, f"2026-01-31T12:00:08.100000000Z stderr F {line} (forced)")
    )
    assert dated.clock == "epoch"
    assert dated.start[0] == pytest.approx(NOON + 8.0)
    assert dated.label.tolist() == ["GC forced"]


def test_journals_know_jobs_and_clusters_recurrence(tmp_path: Path) -> None:
    journal = read_events(DATA / "journal.json")
    assert journal.label.tolist() == [
        "backup.service",
        "CRON: run-parts /etc/cron.hourly",
        "kernel",
    ]
    np.testing.assert_allclose(journal.start - NOON, [0.0, 1.25, 30.0])
    np.testing.assert_allclose(journal.end - NOON, [200.0, 1.25, 30.0])
    pretty = "\n".join(
        json.dumps(json.loads(line), indent=4)
        for line in (DATA / "journal.json").read_text().splitlines()
    )
    assert read_events(written(tmp_path, pretty)).start.tolist() == journal.start.tolist()
    pods = read_events(DATA / "kubernetes.json")
    np.testing.assert_allclose(pods.start - NOON, [10, 120.25, 250])
    assert pods.label.tolist() == ["Unhealthy Pod", "Killing Pod", "Unhealthy Pod"]
    assert pods.notes


def test_the_three_prints_of_a_slow_log_agree() -> None:
    raw, terminal, fields = (
        read_events(DATA / "redis" / name)
        for name in ("slowlog.txt", "slowlog-tty.txt", "slowlog.json")
    )
    assert len(raw) == 10
    assert raw.start.tolist() == terminal.start.tolist() == fields.start.tolist()
    assert set(raw.label) == {"DEBUG"}


def test_hiccup_logs_give_the_intervals_that_stand_out(tmp_path: Path) -> None:
    start = np.arange(60_000) * 1e-3
    took = np.full(start.size, 50e-6)
    took[[20_500, 41_250]] = 0.2
    log = lk.Samples(start=(NOON + start) * 1e9, duration=took * 1e9).to_log("1s")
    lk.write(log, tmp_path / "hiccups.hlog")
    found = read_events(tmp_path / "hiccups.hlog")
    assert (found.kind, found.clock, len(found)) == ("hiccup", "epoch", 2)
    assert ((found.start - NOON <= [20.5, 41.25]) & (found.end - NOON >= [20.7, 41.45])).all()


@pytest.mark.parametrize(
    ("text", "clock", "start", "end", "label"),
    [
        ("12.5\n40\n", "relative", [12.5, 40], [12.5, 40], ["", ""]),
        ("start,end,what\n1,2,a\n5,7.5,b\n", "relative", [1, 5], [2, 7.5], ["a", "b"]),
        ("1;2;a\n5;7.5;b\n", "relative", [1, 5], [2, 7.5], ["a", "b"]),
        ("5,deploy\n9,rollback\n", "relative", [5, 9], [5, 9], ["deploy", "rollback"]),
        (f"from\tto\n{NOON + 1:.0f}\t{NOON + 2:.0f}\n", "epoch", [NOON + 1], [NOON + 2], [""]),
        (f"time_ms,duration_ms\n{(NOON + 1) * 1e3:.0f},250\n", "epoch", [NOON + 1],
         [NOON + 1.25], [""]),
        ("time,event\n2026-01-31T12:00:01Z,x\n", "epoch", [NOON + 1], [NOON + 1], ["x"]),
        ("# jobs\n2026-01-31 13:00:01+01:00,2026-01-31 13:00:03+01:00\n", "epoch", [NOON + 1],
         [NOON + 3], [""]),
        ("2026-01-31 12:00:01\n", "local", [NOON + 1], [NOON + 1], [""]),
        ("at,took\n5s,250ms\n1m30s,1s\n", "relative", [5, 90], [5.25, 91], ["", ""]),
        (json.dumps([{"time": (NOON + 1) * 1e3, "timeEnd": (NOON + 2) * 1e3, "text": "deploy"}]),
         "epoch", [NOON + 1], [NOON + 2], ["deploy"]),
    ],
)  # fmt: skip
def test_tables_of_times(
    tmp_path: Path, text: str, clock: str, start: list[float], end: list[float], label: list[str]
) -> None:
    found = read_events(written(tmp_path, text))
    assert (found.kind, found.clock) == ("times", clock)
    np.testing.assert_allclose(found.start, start)
    np.testing.assert_allclose(found.end, end)
    assert found.label.tolist() == label


def test_offsets_are_given_with_the_path(tmp_path: Path) -> None:
    path = written(
        tmp_path, "[2.500s][info][gc] GC(0) Pause Full (x) 9M->2M(64M) 500.000ms", "gc.log"
    )
    assert read_events(f"{path}@+1h").start.tolist() == [3602.0]
    assert read_events(f"{path}@-90").start.tolist() == [-88.0]
    assert read_events(path, "+250ms").start.tolist() == [2.25]
    dated = read_events(f"{path}@2026-01-31T12:00:00Z")
    assert (dated.clock, dated.start.tolist()) == ("epoch", [NOON + 2.0])
    odd = written(tmp_path, "7\n", "gc.log@+1h")
    assert read_events(odd).start.tolist() == [7.0]
    with pytest.raises(lk.InvalidArgumentError, match="dates already"):
        read_events(f"{DATA / 'jvm/gc.log'}@2026-01-31T12:00:00Z")
    with pytest.raises(lk.InvalidArgumentError, match="not a valid duration"):
        read_events(path, "+later")


@pytest.mark.parametrize(
    ("text", "error", "match"),
    [
        ("", lk.CorruptInputError, "the file is empty"),
        ("hello world\nthis is prose\n", lk.UnknownFormatError, "a JVM or Go GC log"),
        ("\x00\x01\x02", lk.UnknownFormatError, "not text"),
        ("start,end\n1,2\nsoon,4\n", lk.CorruptInputError, r":3: 'soon' is not a time"),
        ("start,end\n1,2\n9,4\n", lk.CorruptInputError, r":3: the event ends before"),
        ("1\n2026-01-31T12:00:00Z\n", lk.CorruptInputError, r":2: "),
        ('{"__REALTIME_TIMESTAMP":"1"}\n{"x\nz', lk.CorruptInputError, r":2: the JSON is corrupt"),
        ('[{"time": NaN}]', lk.CorruptInputError, "is not a time"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_one_line(
    tmp_path: Path, text: str, error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match) as raised:
        read_events(written(tmp_path, text))
    assert "\n" not in str(raised.value)


def test_a_gc_log_without_times_says_how_to_log_them() -> None:
    with pytest.raises(lk.CorruptInputError, match=r":2: .*-Xlog:gc\*"):
        read_events(DATA / "undecorated-25.log")


def test_events_check_themselves() -> None:
    with pytest.raises(lk.InvalidArgumentError, match="ends before"):
        Events("x", "times", [2.0], [1.0], [""])
    with pytest.raises(lk.InvalidArgumentError, match="finite"):
        Events("x", "times", [np.nan], [np.nan], [""])
    with pytest.raises(lk.InvalidArgumentError, match="one length"):
        Events("x", "times", [1.0], [1.0, 2.0], [""])


# ------------------------------------------------------------ what was recorded together


def requests(name: str) -> lk.Samples:
    return lk.read(DATA / name / "requests.csv.gz")


def test_a_jvm_under_load_and_its_gc_log() -> None:
    """Serial collector, System.gc() about every 7 s, 80 requests/s; recorded together."""
    found = coincide(requests("jvm"), [read_events(DATA / "jvm" / "gc.log")])
    full = found.rows[found.rows.source.str.contains("Pause Full")].iloc[0]
    assert full.significant
    assert full.coincide == full.stalls == len(found.stalls) >= 8
    assert full.expected < 0.3 * full.stalls
    assert full.share_above == 1.0
    assert abs(full.lag) < 50e6
    assert set(found.stalls.suspect) == {full.source}
    assert any("coincides with" in text for text in found.findings)
    assert not any("cause" in text for text in found.findings)


def test_a_log_without_stalls_still_has_slow_requests_that_coincide() -> None:
    log = requests("jvm").to_log("1s")
    found = coincide(log, [read_events(DATA / "jvm" / "gc.log")])
    assert found.rows.significant.any()
    assert found.rows.share_above[0] == 1.0


def test_redis_asleep_and_its_slow_log() -> None:
    found = coincide(requests("redis"), [read_events(DATA / "redis" / "slowlog.txt")])
    row = found.rows.iloc[0]
    assert (row.stalls, row.coincide, row.significant) == (10, 10, True)


def test_a_given_offset_moves_a_wrong_clock() -> None:
    gc = str(DATA / "jvm" / "gc.log")
    wrong = coincide(requests("jvm"), [read_events(f"{gc}@+3s")])
    right = coincide(requests("jvm"), [read_events(gc).shifted(3.0).shifted(-3.0)])
    assert wrong.rows.coincide[0] < right.rows.coincide[0]


# ------------------------------------------------------------ simulated worlds


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in worlds.PLANTED if "37 s, log" not in name])
def test_planted_causes_are_found_and_decoys_are_not(name: str) -> None:
    runs = 2 if name == "nightly job" else 5
    right, causes, wrong = worlds.planted_cell((name, 10, runs))
    assert right >= 0.8 * causes
    assert wrong == 0


@pytest.mark.slow
def test_phases_of_a_period_are_evidence_in_a_log_of_seconds() -> None:
    """Each interval allows any phase within a second, so that not every run can show it."""
    right, causes, wrong = worlds.planted_cell(("GC every 37 s, log of 1 s", 20, 20))
    assert right >= 0.6 * causes
    assert wrong <= 1


@pytest.mark.slow
@pytest.mark.parametrize("name", worlds.NULLS)
def test_without_a_connection_nothing_is_said(name: str) -> None:
    wrong, anything = worlds.null_cell((name, 370.0, "", 10))
    assert wrong + anything <= 2


@pytest.mark.slow
def test_other_periods_loads_and_rhythms_show_nothing_either() -> None:
    """Requests and logs take turns, as do the ways of the stalls."""
    wrong = 0
    for seed in range(18):
        rng = np.random.default_rng([seed, 2027])
        span, rate = rng.choice([300.0, 700.0, 1500.0]), rng.choice([20.0, 60.0, 150.0])
        stalls = (worlds.random, worlds.bursts, worlds.periodic)[seed % 3](rng, span)
        if seed % 3 == 2:
            stalls = worlds.periodic(rng, span, rng.uniform(13.0, 90.0))
        run = worlds.served(rng, rate, span, stalls, rng.uniform(0.2, 1.0))
        flush = np.cumsum(rng.gamma(8.0, rng.uniform(13.0, 60.0) / 8, 400))
        busy = np.sort(np.clip(rng.normal(0.5, 0.15, int(span / 40)), 0, 1)) * span
        sources = [
            worlds.events("gc.log", worlds.periodic(rng, span, rng.uniform(13.0, 90.0)), 0.3),
            worlds.events("flush.log", flush[flush < span], 0.05),
            worlds.events("app.csv", busy),
            *worlds.decoys(rng, span)[1:3],
        ]
        data = run.to_log("1s") if seed % 2 else run
        found = coincide(data, [one for one in sources if len(one)])
        wrong += bool(worlds.files_found(found))
    assert wrong <= 2  # of 18: more has a probability of 6 % at a rate of 5 %


@pytest.mark.slow
def test_two_rhythms_of_one_period_agree_by_chance_as_often_as_their_phases() -> None:
    """Garbage collections every 37.3 s, and stalls every 37.3 s of another cause; requests and logs take turns."""
    wrong = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        stalls, gc = (worlds.periodic(rng, 600.0, 37.3) for _ in range(2))
        run = worlds.served(rng, 100.0, 600.0, stalls, 0.4)
        data = run.to_log("1s") if seed % 2 else run
        found = coincide(data, [worlds.events("gc.log", gc, 0.4)])
        wrong += bool(worlds.files_found(found))
    assert wrong <= 6  # 5 % of 40; more than 6 has probability 0.003


@pytest.mark.slow
def test_busy_hours_in_common_are_not_a_connection() -> None:
    """Deploys and stalls are both of the day, and have nothing else to do with each other."""
    wrong, day = 0, 86_400.0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        busy = [np.sort(day * rng.beta(10, 10, size)) for size in (25, 100)]
        run = worlds.served(rng, 0.5, day, busy[0], 20 + rng.exponential(40, 25))
        found = coincide(run, [worlds.events("deploys.csv", busy[1], 5.0)])
        wrong += bool(found.rows.significant.any())
    assert wrong <= 1


def test_one_period_leaves_the_phase_as_evidence_and_says_so() -> None:
    rng = np.random.default_rng(5)
    at = np.arange(5.0, 600.0, 37.0)
    data = worlds.served(rng, 100.0, 600.0, at, 0.4).to_log("10s")
    found = coincide(data, [worlds.events("gc.log", at, 0.4)])
    assert not found.rows.significant.any() or found.rows.p[0] > 0.01


def test_a_clock_that_only_counts_up_needs_its_start() -> None:
    world = worlds.gc_random(np.random.default_rng(4), 12)
    gc = world.sources[0]
    uptime = Events("gc.log", "jvm-gc", gc.start - NOON + 500, gc.end - NOON + 500, gc.label)
    unplaced = coincide(world.data, [uptime])
    assert not unplaced.rows.significant.any()
    assert any("gc.log@+10s" in note for note in unplaced.notes)
    assert worlds.files_found(coincide(world.data, [gc])) == {"gc.log"}


def test_what_no_suspect_explains_is_counted() -> None:
    rng = np.random.default_rng(2)
    world = worlds.gc_random(rng, 14)
    alien = np.array([41.0, 111.0, 207.0])
    at = np.concatenate([world.sources[0].start - NOON, alien])
    run = worlds.served(rng, 100.0, float(at.max()) + 20, at, 0.4)
    found = coincide(run, [world.sources[0]])
    left = int((found.stalls.suspect == "").sum())
    assert 2 <= left <= 4
    assert f"no suspect explains {left} of {len(found.stalls)} stalls" in found.findings


# ------------------------------------------------------------ the run's own evidence


def test_a_rhythm_is_found_and_placed_on_the_clock() -> None:
    rng = np.random.default_rng(1)
    run = worlds.served(rng, 50.0, 1200.0, np.arange(5.0, 1200.0, 60.0), 0.5)
    (finding,) = coincide(run).findings
    assert "about every 1 min" in finding.replace("60 s", "1 min")
    assert "after the full minute" in finding


def test_a_period_that_is_nearly_a_minute_is_not_placed_on_the_clock() -> None:
    rng = np.random.default_rng(1)
    run = worlds.served(rng, 50.0, 1500.0, np.arange(5.0, 1500.0, 59.7), 0.5)
    (finding,) = coincide(run).findings
    assert "about every 59.7 s" in finding
    assert "full minute" not in finding


def test_the_time_of_day_is_found_over_days() -> None:
    rng = np.random.default_rng(6)
    world = worlds.nightly(rng, 5)
    findings = coincide(world.data).findings
    assert any("of each day (5 days" in text for text in findings)
    quiet = worlds.served(rng, 1.0, 5 * 86_400.0, rng.random(40) * 5 * 86_400, 5.0).to_log("1min")
    assert not any("each day" in text for text in coincide(quiet).findings)


def test_a_warm_up_is_found() -> None:
    rng = np.random.default_rng(9)
    start = np.sort(rng.random(30_000)) * 600
    took = rng.lognormal(0, 0.5, start.size) * np.where(start < 60, 3e6, 1e6)
    run = lk.Samples(start=start * 1e9, duration=took)
    (finding,) = [text for text in coincide(run).findings if "warm-up" in text]
    assert finding.startswith(("the first 1 min", "the first 60 s"))
    (again,) = coincide(run.to_log("1s")).findings
    assert again.split(" (")[0] == finding.split(" (")[0]
    late = np.where(start > 570, 3 * took, took)  # as slow at its end
    again = lk.Samples(start=start * 1e9, duration=late)
    assert not any("warm-up" in text for text in coincide(again).findings)


def test_requests_after_idle_times_are_found() -> None:
    rng = np.random.default_rng(10)
    bursts = np.cumsum(rng.exponential(10.0, 60)) + 5
    start = np.sort((bursts[:, None] + np.arange(40) * 0.02).ravel())
    first = np.concatenate(([True], np.diff(start) > 1.0))
    took = rng.lognormal(0, 0.3, start.size) * np.where(first, 30e6, 1e6)
    run = lk.Samples(start=start * 1e9, duration=took)
    assert any("after an idle time" in text for text in coincide(run).findings)
    shuffled = lk.Samples(start=start * 1e9, duration=rng.permutation(took))
    assert not any("idle" in text for text in coincide(shuffled).findings)


# ------------------------------------------------------------ the result


def test_data_without_time_say_so() -> None:
    with pytest.raises(lk.DataNotAvailableError, match="when requests were sent"):
        coincide(lk.Samples(duration=[1, 2, 3]))


def test_little_data_are_not_evidence() -> None:
    for run in (
        lk.Samples(start=[NOON * 1e9], duration=[5]),
        lk.Samples(start=np.arange(50) + NOON * 1e9, duration=np.full(50, 5)),
        lk.Samples(start=np.arange(50) * 1e9, duration=np.zeros(50)),
    ):
        found = coincide(run, [worlds.events("x.csv", [0.0, 0.1, 0.2], 0.01)])
        assert found.findings == ()
        assert len(found.rows) == 1


def test_thresholds_are_percentiles_or_latencies() -> None:
    run = worlds.served(np.random.default_rng(1), 100.0, 60.0, [20.0], 1.0)
    assert coincide(run, above="20ms").threshold == 20e6
    assert coincide(run, above=5e6).threshold == 5e6
    assert coincide(run, above="p90").threshold == run.percentile(90)
    with pytest.raises(lk.InvalidArgumentError):
        coincide(run, above=-1)


def test_results_are_values() -> None:
    world = worlds.gc_random(np.random.default_rng(3), 10)
    one, other = (coincide(world.data, world.sources) for _ in range(2))
    assert one == other
    assert pickle.loads(pickle.dumps(one)) == one


def test_one_name_twice_stays_two_sources() -> None:
    run = worlds.served(np.random.default_rng(1), 100.0, 60.0, [20.0], 1.0)
    gc = worlds.events("gc.log", [20.0], 1.0)
    assert coincide(run, [gc, gc]).rows.source.tolist() == ["gc.log", "gc.log (2)"]


def test_explained_stalls_have_the_colour_of_their_lane() -> None:
    found = coincide(requests("jvm"), [read_events(DATA / "jvm" / "gc.log")])
    page = lk.plot.coincidence(found, ax=Figure(figsize=(10, 5)).add_subplot())
    timeline, lanes = page.child_axes
    (lane,) = lanes.collections
    colour = tuple(lane.get_facecolor()[0][:3])
    spans = [patch for patch in timeline.patches if patch.get_alpha() == 0.3]
    assert len(spans) == len(found.stalls)
    assert {tuple(span.get_facecolor()[:3]) for span in spans} == {colour}
    plain = lk.plot.coincidence(coincide(requests("jvm")), ax=Figure().add_subplot())
    assert len(plain.child_axes) == 1
