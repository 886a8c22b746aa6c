"""Nighthawk: what its outputs say about a run, whose length is not a latency."""

from __future__ import annotations

import json

import pytest

import latencykit as lk
from latencykit.errors import LatencyKitError


def test_rates_and_connections_are_those_of_all_workers(data) -> None:
    path = data / "formats/nighthawk/workers/nighthawk.json"
    run = lk.read(path, series="request_to_response").run
    assert (run.rate, run.connections, run.loop) == (400.0, 6, "open")
    assert (run.failed, run.dropped, run.duration) == (14, 2, 10.001)
    assert any("8 failed requests" in note for note in run.notes)


def test_how_long_a_run_took_is_not_a_latency(tmp_path) -> None:
    """It was read as the time of one request."""
    path = tmp_path / "out.json"
    run = {"name": "global", "counters": [{"name": "sent", "value": 9}], "duration": "10s"}
    path.write_text(json.dumps({"results": [run]}))
    with pytest.raises(LatencyKitError):
        lk.read(path)


def test_yaml_is_refused_by_name(tmp_path) -> None:
    path = tmp_path / "out.yaml"
    path.write_text(
        "results:\n  - name: global\n    statistics:\n      - count: 3\n        id: a\n"
        "        min: 0.1s\n        mean: 0.2s\n        max: 0.3s\n"
    )
    with pytest.raises(LatencyKitError, match="--output-format json"):
        lk.read(path)


def test_its_metrics_are_in_microseconds(tmp_path) -> None:
    path = tmp_path / "metrics.prom"
    path.write_text(
        "# TYPE nighthawk_a summary\n"
        'nighthawk_a{scope="global",quantile="0.5"} 190\n'
        'nighthawk_a_count{scope="global"} 4\nnighthawk_a_sum{scope="global"} 780\n'
    )
    data = lk.read(path)
    assert (data.percentile(50), data.mean) == (190e3, 195e3)
