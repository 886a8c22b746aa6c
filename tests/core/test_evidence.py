"""What lies above a percentile, counted in events."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import latencykit as lk
from latencykit.core.evidence import TimedSupport, tail_counts, tail_shares
from latencykit.views.series import series_record


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
