"""Events beside a run: what logs say happened."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

import latencykit as lk
from latencykit.core.events import Events
from latencykit.io.events import read_events

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
