"""What charts say."""

from __future__ import annotations

import latencykit as lk
from latencykit.plot.curves import curve_of, two_stories
from latencykit.plot.series import chart_title, conditions
from latencykit.units import sure_percentile


def test_conditions_are_what_the_run_says():
    run = lk.Run(tool="wrk2", loop="open", connections=10, rate=500.0, measure="response")
    run = run.replace(corrected="schedule", timeouts=8)
    said = conditions(lk.Histogram.of([1], run=run))
    assert said == [
        "wrk2", "500 requests/s offered", "open loop", "10 connections", "response times",
        "timed from the schedule",
        "8 timed out",
    ]  # fmt: skip


def test_titles_of_several():
    h = lk.Histogram.of([1, 2])
    assert chart_title({"a": h, "b": h, "c": h}) == "a, b and c · 6 requests"
    assert chart_title({str(k): h for k in range(12)}) == "12 series · 24 requests"
    assert chart_title({str(k): h for k in range(12)}, "runs") == "12 runs · 24 requests"
    assert chart_title({"raw": h, "corrected": h}) == "raw and corrected"  # the same requests twice


def test_the_limit_of_trust_is_never_rounded_up():
    for limit in (50.0, 63.2, 95.01, 99.94618, 99.9999631):
        assert limit * (1 - 0.02) < sure_percentile(limit) <= limit


def test_two_stories_need_a_difference():
    h = lk.Histogram.of([1_000_000] * 1000)
    other = h.with_run(corrected="us")
    assert two_stories({"raw": h, "b": other}, {"raw": curve_of(h), "b": curve_of(other)}) is None
    slow = lk.Histogram.of([1_000_000] * 900 + [10**9] * 200)
    curves = {"raw": curve_of(h), "corrected": curve_of(slow)}
    story = two_stories({"raw": h, "corrected": slow}, curves)
    assert story == "Two stories: p90 is 1 ms or 1 s"
