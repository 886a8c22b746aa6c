"""OpenTelemetry: three spellings, cumulative and delta, restarts, overflow."""

from __future__ import annotations

import json

import pytest

from latencykit.core.histogram import Histogram
from latencykit.core.histogram_log import HistogramLog, interval_series
from latencykit.errors import CorruptInputError


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
    assert any("scale changed" in note for note in changed.run.notes)


def test_otlp_with_and_without_a_maximum(read_text):
    open_end = read_text(json.dumps(otlp([3, 4, 2])))["d"]
    assert (open_end.count, open_end.censored, open_end.censored_at, open_end.mean) == (
        7,
        2,
        1e7,
        round(40 / 9 * 1e6, 3),
    )
    known = read_text(json.dumps(otlp([3, 4, 2], 12.5)))["d"]
    assert (known.count, known.censored, known.max) == (9, 0, 12.5e6)


def test_delta_exports_are_intervals(read_text):
    lines = [
        json.dumps(otlp([1, k, 0], start=10**9 * k, end=10**9 * (k + 1), delta=True))
        for k in (1, 2)
    ]
    found = read_text("\n".join(lines))["d"]
    assert interval_series(found).count.tolist() == [2, 3]


def test_python_spelling_and_failures(read_text):
    def snake(value):
        if isinstance(value, dict):
            return {
                "".join("_" + c.lower() if c.isupper() else c for c in k): snake(v)
                for k, v in value.items()
            }
        return [snake(v) for v in value] if isinstance(value, list) else value

    good, bad = otlp([1, 2, 0], 6.0, code="200"), otlp([4, 0, 0], 3.0, code="503")
    text = json.dumps(snake(good), indent=4) + "\n" + json.dumps(snake(bad), indent=4)
    found = read_text(text)
    assert next(iter(found)) == "d"
    assert (found["d"].count, found["d"].run.failed) == (3, 4)


def test_corruption(read_text):
    text = go([1], 10) + "\n" + go([1], 20)
    cut = read_text(text[:-20])['d{route="/x"}']
    assert any("truncated" in note for note in cut.run.notes)
    with pytest.raises(CorruptInputError, match=r"out\.txt:2: the JSON is corrupt"):
        read_text(text.replace('"Scale"', "Scale").replace("Scale", '"Scale"', 1))
    broken = otlp([1, 2, 3])
    broken["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0]["histogram"]["dataPoints"][0][
        "bucketCounts"
    ] = ["1"]
    with pytest.raises(CorruptInputError, match="2 bounds and 1 counts"):
        read_text(json.dumps(broken))
