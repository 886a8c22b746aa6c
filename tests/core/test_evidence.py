"""What lies above a percentile, counted in events, and intervals that widen where slow requests cluster."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import latencykit as lk
from latencykit.core import evidence
from latencykit.core.evidence import TimedSupport, tail_counts, tail_shares
from latencykit.views.series import series_record
from tests.conftest import log_of_values


def test_a_tail_is_exactly_its_share() -> None:
    counts = np.array([500, 300, 150, 40, 9, 1])
    percentiles = [0, 50, 90, 98.5, 99.9, 100]
    at, share = tail_shares(counts, percentiles)
    above = np.array(
        [counts[k + 1 :].sum() + part * counts[k] for k, part in zip(at, share, strict=True)]
    )
    assert above == pytest.approx([1000, 500, 100, 15, 1, 0])


def test_rows_add_up_to_the_tail() -> None:
    rng = np.random.default_rng(1)
    rows = rng.multinomial(50, [0.6, 0.3, 0.1], size=40)
    at, share = tail_shares(rows.sum(axis=0), [50, 75, 95])
    indptr = np.arange(0, 121, 3)
    tail = tail_counts(indptr, np.tile([0, 1, 2], 40), rows.ravel(), at, share)
    assert tail.shape == (40, 3)
    assert tail.sum(axis=0) == pytest.approx([1000, 500, 100])


def events(tail: np.ndarray) -> float:
    """Events above p99.9 of bins of 1,000 requests each, some of them slow."""
    table = np.stack((1000.0 - tail, tail), axis=1)
    start = np.arange(float(tail.size))
    whole = lk.Histogram.of(np.repeat([1.0, 1e3], table.sum(axis=0).astype(int)))
    found = TimedSupport(whole, table, np.array([1.0, 1e3]), start, np.ones(tail.size))
    return float(found.events([100 * (1 - tail.sum() / table.sum())])[0])


def test_independent_requests_are_as_many_events() -> None:
    found = [events(np.random.default_rng(k).poisson(1.0, 3600)) for k in range(40)]
    assert np.median(found) == pytest.approx(3600, rel=0.15)
    assert max(found) <= 3800


def test_a_stall_is_one_event_and_twelve_are_about_twelve() -> None:
    tail = np.zeros(3600)
    tail[1800:1803] = [400, 400, 400]
    assert events(tail) == pytest.approx(1, rel=0.15)
    stalls = np.zeros(3600)
    stalls[np.random.default_rng(1).integers(0, 3600, 60)] = 180
    assert 20 < events(stalls) < 180


def test_too_few_bins_show_no_events() -> None:
    assert np.isnan(events(np.array([500.0, 0.0])))


def test_a_percentile_above_an_uncertain_one_may_be_known() -> None:
    """Where a share of the requests is slow, only percentiles at its edge are uncertain."""
    rng = np.random.default_rng(3)
    took = np.where(rng.random(20_000) < 0.0205, 50e6, 1e6) * np.exp(
        0.05 * rng.standard_normal(20_000)
    )
    run = lk.Samples(start=np.cumsum(took) - took, duration=took)
    assert run.percentiles([95, 98, 99])["supported"].tolist() == [True, False, True]
    assert run.highest_supported_percentile() == pytest.approx(99.95)


def test_forms_of_one_run_support_one_percentile(tmp_path) -> None:
    """A log, its total, its .hgrm, its summary and its page agree on what a run supports."""
    rng = np.random.default_rng(5)
    start = np.sort(rng.random(12_000)) * 120
    took = 5e-3 * rng.lognormal(0, 0.5, start.size)
    took += np.where((start > 60) & (start < 62), 62 - start, 0.0)
    samples = lk.Samples(start=start * 1e9, duration=took * 1e9)
    log = samples.to_log("1s")
    path = tmp_path / "run.hgrm"
    lk.write(log, path)
    rebuilt = lk.read(path)
    assert isinstance(rebuilt, lk.Histogram)
    limit = log.highest_supported_percentile()
    assert 90 < limit < 99
    assert log.histogram().highest_supported_percentile() == limit
    assert rebuilt.highest_supported_percentile() == pytest.approx(limit, rel=1e-5)
    assert series_record("a", log)["highest_supported_percentile"] == limit
    flags = [
        data.percentiles([50, 90, 99, 99.9]).supported.tolist()
        for data in (log, log.histogram(), rebuilt)
    ]
    assert flags[0] == flags[1] == flags[2]
    alone = samples.histogram()
    assert alone.highest_supported_percentile() == samples.highest_supported_percentile()
    assert pickle.loads(pickle.dumps(alone)).highest_supported_percentile() < 99


def test_a_few_intervals_that_differ_support_nothing() -> None:
    start, level = np.arange(4000) * 1e6, np.repeat([1e6, 8e6, 2e6, 4e6], 1000)
    log = lk.Samples(start=start, duration=level).to_log("1s")
    (first, *_) = log.evidence().doubts()
    assert (first.first, first.cause) == (0.0, "parts differ")
    assert not log.percentiles([50, 90])["supported"].any()


# ---------------------------------------------------------------- tails of a log


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
    assert "11 time bins: a confidence interval needs 12" in why[0]
    record = series_record("a", log_of_values(calm(11)))
    assert record["percentiles"][0]["low"] is None
    assert any("needs 12" in note for note in record["notes"])


def test_samples_tell_events_too():
    slow = np.where(np.arange(20_000) // 1000 == 4, 900, 1)
    timed = lk.Samples(start=np.arange(20_000), duration=slow, unit="ms").percentiles([98])
    assert timed.events.tolist() == [1]
    assert lk.Samples(duration=slow, unit="ms").percentiles([98]).events.tolist() == [None]


def test_nothing_counted():
    empty = lk.HistogramLog([], [], [])
    assert empty.percentile_rows([50])[0].events is None


def test_trimmed_means_of_a_histogram():
    ten = lk.Histogram.of(range(1, 11), unit="none")
    assert ten.trimmed_mean("TM(2:9)") == 6.0  # above 2, up to 9
    assert ten.winsorized_mean("wm90") == 5.5
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
