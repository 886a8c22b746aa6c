"""OpenTelemetry: three spellings, cumulative and delta, restarts, overflow."""

from __future__ import annotations

import json

from latencykit.core.histogram import Histogram
from latencykit.core.histogram_log import HistogramLog, interval_series


def go(counts, at, start="2026-11-21T00:00:00Z", scale=0):
    data = {
        "DataPoints": [
            {
                "Attributes": [{"Key": "route", "Value": {"Type": "STRING", "Value": "/x"}}],
                "StartTime": start,
                "Time": f"2026-11-21T00:00:{at:02}Z", "Count": sum(counts), "Min": 0.3, "Max": 3.5,
                "Sum": 9.0, "Scale": scale,
                "ZeroCount": 1, "ZeroThreshold": 0,
                "PositiveBucket": {"Offset": -2, "Counts": counts},
            }
        ],
        "Temporality": "CumulativeTemporality",
    }  # fmt: skip
    return json.dumps({"ScopeMetrics": [{"Metrics": [{"Name": "d", "Unit": "s", "Data": data}]}]})


def otlp(counts, maximum=None, start=1, end=2_000_000_001, delta=False, code=None):
    point = {
        "startTimeUnixNano": str(start), "timeUnixNano": str(end), "count": str(sum(counts)),
        "sum": 40.0,
        "bucketCounts": [str(c) for c in counts], "explicitBounds": [5, 10],
        "attributes": [{"key": "http.response.status_code", "value": {"intValue": code}}] if code else [],
    }  # fmt: skip
    if maximum is not None:
        point |= {"max": maximum, "min": 1.0}
    data = {"dataPoints": [point], "aggregationTemporality": 1 if delta else 2}
    return {
        "resourceMetrics": [
            {"scopeMetrics": [{"metrics": [{"name": "d", "unit": "ms", "histogram": data}]}]}
        ]
    }


def test_cumulative_exports_become_a_log(read_text):
    found = read_text(go([2, 0, 4, 1], 10) + "\n" + go([2, 1, 9, 2], 20), "o.json")['d{route="/x"}']
    assert isinstance(found, HistogramLog)
    series = interval_series(found)
    assert series.count.tolist() == [8, 7]
    assert found.lengths.tolist() == [10.0, 10.0]
    h = found.histogram()
    # offset -2 at scale 0: buckets up to 0.5, 1, 2 and 4 s; the extremes are stated
    assert h.max == 3.5e9
    assert h.percentile(50) == 2e9
    assert h.percentile(1) == 0


def test_a_restart_begins_anew_and_a_changed_scale_leaves_the_sum(read_text):
    found = read_text(go([2, 3], 10) + go([1, 1], 20, "2026-11-21T00:00:15Z"), "o.json")[
        'd{route="/x"}'
    ]
    assert interval_series(found).count.tolist() == [6, 3]
    changed = read_text(go([2, 3], 10, scale=1) + go([9, 9], 20), "o.json")['d{route="/x"}']
    assert isinstance(changed, Histogram)
    assert changed.count == 19
    assert any("resolution changed" in note for note in changed.run.notes)


def test_delta_exports_are_intervals(read_text):
    lines = [
        json.dumps(otlp([1, k, 0], start=10**9 * k, end=10**9 * (k + 1), delta=True))
        for k in (1, 2)
    ]
    found = read_text("\n".join(lines))["d"]
    assert interval_series(found).count.tolist() == [2, 3]
