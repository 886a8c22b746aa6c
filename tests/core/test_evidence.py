"""What lies above a percentile, counted in events."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import latencykit as lk
from latencykit.core.evidence import TailEvents, TimeBins, tail_counts, tail_shares
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


def above(percentile: float, tail: np.ndarray, *bins: np.ndarray) -> TailEvents:
    """Events of intervals, by their requests above the percentiles, counts, starts and lengths."""
    return TimeBins.of(*bins).bursts([percentile], tail[:, None].astype(float)).events()[0]


def of(tail: np.ndarray, *longest: np.ndarray) -> TailEvents:
    n = tail.size
    return above(99.9, tail, np.full(n, 1000), np.arange(float(n)), np.ones(n), *longest)


def test_independent_requests_are_as_many_events() -> None:
    found = of(np.random.default_rng(2).poisson(1.0, 3600))
    assert found.effective == pytest.approx(found.requests, rel=0.02)
    assert found.stalls == 0
    assert found.supports()
    assert "independent events" in found.words


def test_one_stall_is_one_event() -> None:
    tail = np.zeros(3600)
    tail[1800:1803] = [1600, 1400, 400]
    tail[::20] += 1
    found = of(tail)
    assert found.stalls == 1
    assert found.count == 1
    assert not found.supports()
    assert found.words == "p99.9 is based on 1 stall; 95 % of the tail comes from 3 of 3,600 s"


def test_twenty_equal_stalls_support_a_bound() -> None:
    tail = np.zeros(3600)
    tail[100:3300:160] = 180
    found = of(tail)
    assert (found.stalls, found.count) == (18, 20)  # 18 of them are nine tenths
    assert found.supports()
    tail[100] = 0
    assert of(tail).count == 19
    assert not of(tail).supports()


def test_stalls_that_overlap_in_time_are_one() -> None:
    tail = np.zeros(100)
    tail[[50, 53]] = 300  # six seconds of silence end in two bursts
    apart = of(tail)
    longest = np.full(100, 0.001)
    longest[53] = 6.0
    assert (apart.stalls, of(tail, longest).stalls) == (2, 1)


def test_a_slow_minute_is_one_stall_at_every_percentile() -> None:
    """Its slowest requests are too few to touch; the slow ones between them join them."""
    rng = np.random.default_rng(2)
    start = np.sort(rng.random(36_000)) * 600
    took = 2e6 * np.exp(0.5 * rng.standard_normal(start.size)) * np.where(start < 60, 6, 1)
    log = lk.Samples(start=start * 1e9, duration=took).to_log("1s")
    assert [event.stalls for event in log.events([98.0, 99.0, 99.9])] == [1, 1, 1]


def test_nothing_above_the_maximum() -> None:
    found = of(np.zeros(10))
    assert found.count == 0
    assert found.words == "nothing lies above p99.9"


def test_a_percentile_above_an_uncertain_one_may_be_known() -> None:
    """Where a share of the requests is slow, only percentiles at its edge are uncertain."""
    rng = np.random.default_rng(3)
    took = np.where(rng.random(20_000) < 0.0205, 50e6, 1e6) * np.exp(
        0.05 * rng.standard_normal(20_000)
    )
    run = lk.Samples(start=np.cumsum(took) - took, duration=took)
    assert run.evidence().supported([95.0, 98.0, 99.0]).tolist() == [True, False, True]
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
    assert not log.evidence().supported([50.0, 90.0]).any()
