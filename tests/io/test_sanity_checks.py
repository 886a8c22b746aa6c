"""Latencies longer than their run are remarked upon, and nothing honest is."""

from __future__ import annotations

from pathlib import Path

import pytest

import latencykit as lk
from latencykit.core.histogram_log import HistogramLog
from latencykit.core.run import Run
from latencykit.core.summary import Summary
from latencykit.io.sanity_checks import longer_than_run, without_contradictions

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


def test_percentiles_that_fall_by_rounding_are_level():
    """Whole milliseconds may contradict each other by one; no reader of a summary asks for more."""
    run = Run(unit="ms")
    data = without_contradictions(Summary({"max": 7e6}, {75.0: 5e6, 95.0: 4e6}, 10, "ns", run))
    assert data.reported_percentiles == {75.0: 5e6, 95.0: 5e6}
    assert data.run is run
