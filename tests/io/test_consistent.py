"""Statistics that contradict each other or their run, and honest ones that only look so."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import latencykit as lk
from latencykit.core.consistency import contradiction
from latencykit.core.histogram_log import HistogramLog
from latencykit.core.run import Run
from latencykit.core.summary import Summary
from latencykit.errors import InvalidArgumentError
from latencykit.io.build import data_from_points
from latencykit.io.sanity_checks import consistent, longer_than_run, whole_count
from tests.conftest import DATA
from tests.io.test_cases import text_of

MS = 1e6
WRK = text_of("wrk", "wrk is corrected by itself")
IMPOSSIBLE = [-1.0, math.nan, math.inf, -math.inf, -(2.0**63), 2.0**63, float(2**63 - 1), 1e300]


@pytest.mark.parametrize("value", IMPOSSIBLE)
@pytest.mark.parametrize("name", ["mean", "std", "min", "max"])
def test_what_no_latency_can_be_is_left_out(name, value):
    points, stats, run = consistent(
        {50: 5 * MS},
        {"mean": 5 * MS, "max": 9 * MS, "min": 1 * MS, "std": 1 * MS} | {name: value},
        Run(),
    )
    assert name not in stats
    assert len(stats) == 3
    assert points == {50: 5 * MS}
    assert len(run.notes) == 1
    assert "which is not a latency" in run.notes[0]
    points, _, run = consistent({50: value, 99: 3 * MS}, {}, Run())
    assert points == {99: 3 * MS}
    assert run.notes[0].startswith("p50 is ")


@pytest.mark.parametrize(
    ("points", "stats", "left"),
    [
        ({}, {"min": 5 * MS, "mean": 2 * MS, "max": 9 * MS}, {"min", "max"}),
        ({}, {"min": 1 * MS, "mean": 20 * MS, "max": 9 * MS}, {"min", "max"}),
        ({50: 2 * MS, 99: 8 * MS}, {"max": 5 * MS, "mean": 3 * MS}, {"mean"}),
        ({50: 2 * MS, 99: 8 * MS}, {"min": 5 * MS, "max": 9 * MS}, {"max"}),
        ({}, {"min": 9 * MS, "max": 5 * MS}, {"max"}),
    ],
)
def test_what_contradicts_is_not_believed(points, stats, left):
    _, held, run = consistent(points, stats, Run())
    assert set(held) == left
    assert len(run.notes) == 1


def test_a_percentile_that_falls_is_raised_never_lowered():
    points, _, run = consistent({50: 2 * MS, 90: 9 * MS, 99: 4 * MS, 99.9: 5 * MS}, {}, Run())
    assert list(points.values()) == [2 * MS, 9 * MS, 9 * MS, 9 * MS]
    assert [note[:3] for note in run.notes] == ["p99", "p99"]


@pytest.mark.parametrize(
    ("points", "stats", "unit"),
    [
        ({}, {"min": 1.004e9, "mean": 1.00e9, "max": 1.00e9}, "ns"),  # two digits
        # whole milliseconds beside exact ones
        ({50: 1e6, 90: 1e6}, {"max": 0.87e6, "min": 1e6}, "ms"),
        ({99: 1200 * MS}, {"max": 1183 * MS}, "ms"),  # Locust: two digits
        ({50: 0.0, 99: 1e6}, {"min": 0.4e6, "mean": 0.3e6}, "ms"),  # rounded down
        ({99.9: 5.74e9, 100: 6.003e9}, {"max": 6.0e9}, "ns"),  # the upper edge of a bucket
        ({50: 3.0, 90: 3.0, 99: 3.0}, {"mean": 3.0, "max": 3.0, "min": 3.0}, "ns"),
    ],
)
def test_rounding_contradicts_nothing(points, stats, unit):
    _, held, run = consistent(points, stats, Run(unit=unit))
    assert held == stats
    assert not run.notes


@pytest.mark.slow
@given(
    st.lists(st.floats(1, 1e12), min_size=1, max_size=50),
    st.integers(2, 6),
    st.sampled_from([1.0, 1e3, 1e6]),
)
def test_no_honest_statistics_are_doubted_however_they_are_rounded(values, digits, grain):
    """Each statistic is printed with its own rounding: some with few digits, others to a coarse grain."""
    ordered = sorted(values)
    exact = {"min": ordered[0], "mean": sum(ordered) / len(ordered), "max": ordered[-1]}
    points = {
        p: ordered[min(math.ceil(p / 100 * len(ordered)), len(ordered)) - 1]
        for p in (25, 50, 90, 99)
    }
    unit = {1.0: "ns", 1e3: "us", 1e6: "ms"}[grain]
    rounded = {name: round(value / grain) * grain for name, value in exact.items()}
    for stats in (exact, rounded):
        given_points = {p: float(f"{value:.{digits - 1}e}") for p, value in points.items()}
        _, held, run = consistent(given_points, stats, Run(unit=unit))
        assert held == stats, run.notes
        assert not run.notes


@pytest.mark.slow
@given(
    st.dictionaries(st.floats(0.1, 99.9), st.floats(), max_size=6),
    st.dictionaries(st.sampled_from(["mean", "std", "min", "max"]), st.floats() | st.integers()),
)
def test_what_comes_of_it_can_be_true(points, stats):
    inner, held, run = consistent(points, stats, Run())
    values = [value for _, value in sorted(inner.items())]
    assert values == sorted(values)
    assert all(0 <= value < 2**63 for value in [*values, *held.values()])
    again = consistent(inner, held, run)
    assert again == (inner, held, run)


@pytest.mark.parametrize("count", [-1, 1.5, math.nan, math.inf, "x", [], True, 2**63])
def test_a_count_that_is_none_is_refused(count):
    with pytest.raises(InvalidArgumentError):
        whole_count(count)
    with pytest.raises(InvalidArgumentError):
        data_from_points({50: 1.0, 90: 2.0}, count, {"max": 3.0}, Run())


def test_buckets_are_believed_rather_than_what_is_said_of_them(read_text):
    record = json.loads((DATA / "formats/oha-json/ctrlz-corrected/out.json").read_text())
    text = json.dumps(record | {"summary": record["summary"] | {"slowest": 1e-6}}, indent=1)
    found = next(iter(read_text(text, "out.json").values()))
    assert any("maximum" in note and "left out" in note for note in found.run.notes)
    assert found.percentile(99.9) <= found.max


@pytest.mark.parametrize(
    "value", ["-9223372036854775808", "NaN", "Infinity", "-Infinity", "1e400", "-5"]
)
@pytest.mark.parametrize("key", ["mean", "max", "p99"])
def test_json_that_says_nonsense_is_noted(read_text, key, value):
    path = DATA / "formats/autocannon-json/failures/ac.json"
    record = json.loads(path.read_text())
    record["latency"][key] = float(value)
    found = read_text(json.dumps(record, indent=1), "ac.json")["ac.json"]
    notes = [note for note in found.run.notes if "which is not a latency" in note]
    assert len(notes) == 1


def test_the_note_reaches_the_user(run, tmp_path):
    path = tmp_path / "wrk.txt"
    path.write_text(WRK.replace("5.74s", "1.00ms"))
    status, out, err = run("summary", "--format", "json", path)
    assert status == 0
    assert "lies below p90" in err
    assert any("lies below p90" in note for note in json.loads(out)["series"][0]["notes"])


@pytest.mark.slow
def test_real_outputs_are_not_doubted():
    for expect in sorted((DATA / "formats").glob("*/*/expect.json")):
        stated = json.loads(expect.read_text())
        path = expect.parent / stated["file"]
        try:
            found = lk.read_all(path, **stated.get("options", {}))
        except InvalidArgumentError:  # it wants a unit
            continue
        for series in found.values():
            if isinstance(series, Summary) or hasattr(series, "reported_stats"):
                doubts = [
                    note
                    for note in series.run.notes
                    if "lies below" in note or "lies above" in note
                ]
                assert not doubts, (path, doubts)


# ---------------------------------------------------------------- latencies longer than their run

ROOT = Path(__file__).parents[2]
HLOG = ROOT / "data/jhiccup-v2.hlog"


def doubts(notes):
    return [note for note in notes if "is longer than the" in note]


def test_a_latency_longer_than_its_run_is_remarked_on(run, tmp_path):
    assert doubts(lk.read(HLOG, unit="ns").run.notes) == []
    (note,) = doubts(lk.read(HLOG, unit="ms").run.notes)
    assert (
        note == "a latency of 20.9 d is longer than the log, 62.1 s: are the values in ms? (unit=)"
    )
    status, out, _ = run("summary", "--unit", "ms", HLOG)
    assert status == 0  # a remark, no error
    assert " ".join(out.split()).count(note.replace("unit=", "--unit")) == 1
    table = tmp_path / "a.csv"
    table.write_text("start_s,latency\n" + "".join(f"{k * 0.01},{5 + k % 9}\n" for k in range(200)))
    assert doubts(lk.read(table, unit="ms").run.notes) == []
    (note,) = doubts(lk.read(table, unit="s").run.notes)
    assert note.startswith("a latency of 13 s is longer than the run, 1.99 s: are the values in s?")


SECOND = 1e9


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (Summary({"mean": SECOND, "max": 90 * SECOND}, {}, 10, "ns", Run(duration=10.0)), True),
        (Summary({"mean": SECOND}, {99.0: 90 * SECOND}, 10, "ns", Run(duration=10.0)), True),
        (Summary({"mean": SECOND, "max": 90 * SECOND}, {}, 10, "ns", Run()), False),
        (Summary({"max": float("nan")}, {50.0: float("nan")}, 10, "ns", Run(duration=10.0)), False),
        (Summary({"max": 9 * SECOND}, {}, 10, "ns", Run(duration=float("nan"))), False),
        (Summary({"mean": SECOND, "max": 12 * SECOND}, {}, 10, "ns", Run(duration=10.0)), False),
        (
            Summary({"mean": 1.0, "max": 9e12}, {}, 10, "none", Run(duration=10.0, unit="none")),
            False,
        ),
        (lk.Histogram.of([90_000], unit="ms", run=Run(duration=10.0, unit="ms")), True),
        (lk.Histogram.of([], unit="ms", run=Run(duration=10.0, unit="ms")), False),
        (lk.Samples(duration=[90.0], unit="s", run=Run(duration=10.0)), True),
        (HistogramLog([], [], []), False),
        (
            HistogramLog(
                [0.0], [0.0], lk.Samples(start=[0], duration=[9], unit="s").to_log()._parts
            ),
            False,
        ),
    ],
)
def test_for_and_against(data, said):
    assert (longer_than_run(data) is not None) == said


@pytest.mark.slow
def test_no_honest_file_gets_the_note():
    seen = 0
    for path in sorted((ROOT / "data").rglob("*.*")):
        if path.suffix not in (".hlog", ".csv", ".txt", ".json", ".gz"):
            continue
        try:
            found = lk.read_all(path)
        except lk.LatencyKitError:
            continue
        assert not any(doubts(data.run.notes) for data in found.values()), path
        seen += len(found)
    assert seen > 20


# ---------------------------------------------------------------- reports that cannot be true


def report(tool="hey", *, count=100, seconds=10.0, connections=1, points=None, **stats):
    run = Run(
        tool=tool, duration=seconds, connections=connections, unit="ms", unit_from="format",
        corrected="none",
    )  # fmt: skip
    times = {name: value * 1e6 for name, value in stats.items()}
    return Summary(times, {p: v * 1e6 for p, v in (points or {}).items()}, count, run=run)


@pytest.mark.parametrize(
    ("impossible", "honest"),
    [
        # the connection has 10 s; the last replies, and how tools count, take a little more
        (report(count=1_000, mean=15, connections=1), report(count=1_000, mean=12, connections=1)),
        # `http.batch` of k6 sends up to 20 requests at once per VU
        (report("k6", count=60_000, mean=5.5), report("k6", count=30_000, mean=5.5)),
        (report("wrk2", max=25_000), report("wrk2", max=20_500)),
        (report(max=12_500), report(max=11_900)),
        (
            report(mean=355, max=1550, points={50: 0.001, 99: 0.001}),
            report(mean=15, max=1550, points={50: 0.001, 99: 0.001}),
        ),
        # half of the requests took 60 ms
        (
            report(mean=20, max=60, points={50: 60, 99: 60}),
            report(mean=55, max=60, points={50: 60}),
        ),
    ],
)
def test_a_report_contradicts_itself_and_one_near_to_it_does_not(impossible, honest):
    assert "contradicts itself" in (contradiction(impossible) or "")
    assert contradiction(honest) is None


@pytest.mark.parametrize("tool", ["redis-benchmark", "h2load", "memtier_benchmark", "Nighthawk"])
def test_pipelines_and_streams_exceed_connections_times_duration_honestly(tool):
    assert contradiction(report(tool, count=160_000, mean=5)) is None
    assert contradiction(report(count=160_000, mean=5)) is not None
