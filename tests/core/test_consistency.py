"""Which reports cannot be true, and which look so and can."""

from __future__ import annotations

import pytest

from latencykit.core.consistency import contradiction
from latencykit.core.run import Run
from latencykit.core.summary import Summary


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
