"""Tails of a log: events, and confidence intervals that widen where slow requests cluster."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import latencykit as lk
from latencykit.core import evidence
from latencykit.views.series import series_record
from tests.conftest import log_of_values


def calm(intervals: int, size: int = 100, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).lognormal(13, 0.5, (intervals, size))


def test_intervals_are_not_narrower_than_of_independent_requests():
    log = log_of_values(calm(1600, 20))
    for p, plain in zip((50, 90, 99), log.histogram().percentile_rows([50, 90, 99]), strict=True):
        (row,) = log.percentile_rows([p])
        assert row.low <= plain.low
        assert row.high >= plain.high
        assert math.log(row.high / row.low) < 2.2 * math.log(plain.high / plain.low)


def test_drift_widens_them():
    rng = np.random.default_rng(8)
    level = np.repeat(rng.normal(0, 0.5, 160), 5)  # five seconds alike
    log = log_of_values(calm(800, 50) * np.exp(level)[:, None])
    (row,), (plain,) = log.percentile_rows([90]), log.histogram().percentile_rows([90])
    assert math.log(row.high / row.low) > 2 * math.log(plain.high / plain.low)


def test_short_logs_have_none_and_say_so():
    rows, why = log_of_values(calm(11)).evidence().rows([50, 99, 100])
    assert all(math.isnan(row.low) and math.isnan(row.high) for row in rows[:2])
    assert "11 time bins are too few" in why[0]
    record = series_record("a", log_of_values(calm(11)))
    assert record["percentiles"][0]["low"] is None
    assert any("too few" in note for note in record["notes"])


def test_samples_tell_events_too():
    slow = np.where(np.arange(20_000) // 1000 == 4, 900, 1)
    timed = lk.Samples(start=np.arange(20_000), duration=slow, unit="ms").percentiles([98])
    assert timed.events.tolist() == [1]
    assert lk.Samples(duration=slow, unit="ms").percentiles([98]).events.tolist() == [None]


def test_nothing_counted():
    empty = lk.HistogramLog([], [], [])
    assert empty.percentile_rows([50])[0].events is None


def test_trimmed_means_of_a_histogram():
    """Three statistics are called tm90: two-sided, one-sided and by value."""
    ten = lk.Histogram.of(range(1, 11), unit="none")
    assert ten.trimmed_mean("tm90") == ten.trimmed_mean("TM(10%:90%)") == 5.5
    assert ten.trimmed_mean("TM(:90%)") == 5.0
    assert ten.trimmed_mean("TM(2:9)") == 6.0  # above 2, up to 9
    assert ten.winsorized_mean("wm90") == 5.5
    found = ten.trimmed("TM(:90%)")
    assert found.definition == "TM(:90%): mean without the highest 10 %"
    assert found.leaves_out == "1 request, up to 10"
    with pytest.raises(lk.LatencyKitError, match="not a trimmed mean"):
        ten.trimmed_mean("wm90")
    with pytest.raises(lk.LatencyKitError, match="not a winsorized mean"):
        ten.winsorized_mean("tm90")


def test_summaries_cannot_be_merged():
    with pytest.raises(lk.LatencyKitError, match="percentile of nothing; keep histograms"):
        lk.merge([lk.Summary({"mean": 1.0}), lk.Summary({"mean": 2.0})])
    for change in ({"unit": "us"}, {"measure": "service"}, {"corrected": "tool"}):
        one = lk.Histogram.of([1, 2, 3]).with_run(measure="response", corrected="none")
        micro = lk.Histogram.of([1, 2, 3], unit="us")
        other = micro if "unit" in change else one.with_run(**change)
        with pytest.raises(lk.LatencyKitError, match=next(iter(change))):
            lk.merge([one, other])


@given(st.integers(0, 2**32), st.integers(1, 9), st.integers(1, 9))
def test_requests_above_cuts_are_those_of_the_buckets_beyond(seed, rows, columns):
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 5, (rows, columns)).astype(np.float64)
    group, share = rng.integers(0, columns, 7), rng.integers(0, 5, 7) / 4
    above = evidence._above(table, group, share)
    for k, at in enumerate(group.tolist()):
        beyond = table[:, at + 1 :].sum(axis=1) + table[:, at] * share[k]
        np.testing.assert_array_equal(above[:, k], beyond)
