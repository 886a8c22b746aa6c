"""The tools of message brokers, and Rally: what differs between their versions."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    "line",
    [
        "min/median/75th/95th/99th latency: 11, 22.5, 33, 44, 55 microseconds",
        "min/median/75th/95th/99th consumer latency: 11/22.5/33/44/55 ?s",
        "consumer latency min/median/75th/95th/99th 11/22.5/33/44/55 µs",
        "min/median/75th/95th/99th message latency: 11/22.5/33/44/55 µs, confirm latency: , 1/2/3/4/5 µs",
    ],
)
def test_perf_test_in_its_versions(read_text, line):
    found = read_text(f"id: test-1, time: 22.028s, sent: 9 msg/s, {line}\n")
    first = next(iter(found.values()))
    assert (first.min, first.percentile(50), first.percentile(99)) == (11e3, 22.5e3, 55e3)
    assert len(found) == 1 + ("confirm" in line)


def test_the_line_of_the_run_stands_alone(read_text):
    five = "min/median/75th/95th/99th"
    found = read_text(
        f"id: test-1, time: 1.0s, sent: 9 msg/s, {five} consumer latency: 1/2/3/4/5 µs\n"
        f"id: test-1, consumer latency {five} 1/2/3/4/9 µs\n"
    )
    assert [data.percentile(99) for data in found.values()] == [9e3]


def test_pulsars_intervals_are_kept_apart(read_text):
    rest = "ms - med: 2 - 99pct: 4 - Max: {0}"
    lines = [
        f"10:00:0{k} [main] INFO a.B - Throughput received: 9 msg/s --- Latency: mean: 2 {rest.format(k + 5)}\n"
        for k in (1, 2)
    ]
    assert {name: data.max for name, data in read_text("".join(lines)).items()} == {
        "10:00:01": 6e6, "10:00:02": 7e6,
    }  # fmt: skip


def test_rally_as_csv_and_its_two_times(read_text):
    found = read_text(
        "Metric,Task,Value,Unit\nMin Throughput,index,31.2,docs/s\n"
        "50th percentile latency,index,87.5,ms\n100th percentile latency,index,200,ms\n"
        "50th percentile service time,index,80,ms\nerror rate,index,1.25,%\n",
        "race.csv",
    )
    latency, service = found["index latency"], found["index service time"]
    assert (latency.percentile(50), latency.max, service.percentile(50)) == (87.5e6, 200e6, 80e6)
    assert (latency.run.measure, service.run.measure) == ("response", "service")
    assert not latency.run.failures_known
    assert any("1.25 %" in note for note in latency.run.notes)
