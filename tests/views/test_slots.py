"""A log at the resolution of a page: exact counts and maxima, percentiles in coarser buckets."""

from __future__ import annotations

import numpy as np
import pytest

import latencykit as lk
from latencykit._text import script_json
from latencykit.views.page_data import page_bins, started
from latencykit.views.page_series import edges_of, page_series
from tests.conftest import log_of_values


def log_of(intervals: int, digits: int = 3, seed: int = 1) -> lk.HistogramLog:
    """Intervals of 1 s with 40 values each; every seventh is missing."""
    kept = np.flatnonzero(np.arange(intervals) % 7 != 3)
    values = np.random.default_rng(seed).lognormal(12, 1.2, (kept.size, 40))
    return log_of_values(values, kept, digits=digits)


@pytest.mark.parametrize("size", [90, 5_000])
def test_every_slot_counts_what_its_intervals_counted_and_keeps_their_maximum(size):
    log = log_of(size)
    slots, total = page_bins(log, fine=10**9)
    assert slots.start.size <= 301
    assert (slots.width is None) == (size == 90)
    assert total.count == log.histogram().count == slots.counts.sum()
    for k in (0, slots.start.size // 2, slots.start.size - 1):
        part = log.between(slots.start[k], slots.end[k]).histogram()
        assert slots.max[k] == part.max
        assert slots.sum[k] / part.count == pytest.approx(part.mean, rel=1e-12)
        for seen, layout in ((slots, lk.HdrBuckets(3)), (slots.coarser(), lk.HdrBuckets(2))):
            held = slice(seen.indptr[k], seen.indptr[k + 1])
            wanted = part.rebucket(layout)
            assert seen.counts[held].tolist() == wanted.counts.tolist()
            for edge, own in ((seen.high, wanted.buckets.high), (seen.low, wanted.buckets.low)):
                assert edge[seen.index[held]].tolist() == own(wanted.index).tolist()


@pytest.mark.parametrize("step", [7_000_000, 100_000_000, 333_333_333])
def test_requests_are_counted_by_the_moment_they_were_sent_on_the_edges_that_windows_cut_at(step):
    number = np.arange(3000, dtype=np.int64)
    samples = lk.Samples(start=10**18 + number * step, duration=number % 97 * 1e6 + 1e6)
    log = started(samples)
    assert 8 <= len(log) <= 301
    edges = [*log.starts.tolist(), np.inf]
    for k in (0, 1, 7, len(log) - 1):
        assert log[np.array([k])].histogram().count == len(samples.between(edges[k], edges[k + 1]))


def test_slots_of_twice_the_width_hold_the_same_requests():
    slots, total = page_bins(log_of(5_000))
    wider = slots.wider()
    assert wider.width >= 2 * slots.width
    assert wider.counts.sum() == total.count
    assert np.nanmax(wider.max) == total.max
    assert (np.diff(wider.start) > 0).all()
    assert (wider.end[:-1] <= wider.start[1:] + 1e-9).all()


@pytest.mark.parametrize("noise", [0, 0.002, 0.127])
def test_a_selection_may_begin_at_a_short_number_just_before_each_interval(noise):
    starts = 7 + np.arange(40) + np.random.default_rng(3).uniform(0, noise, 40)
    edges = np.array(edges_of(page_series({"a": log_of_values([[10**6]] * 40, starts)})))
    assert ((starts - edges[:-1] >= 0) & (starts - edges[:-1] <= 0.01)).all()
    assert np.abs(np.round(edges[:-1], 2) - edges[:-1]).max() < 1e-9


def test_json_in_a_script_ends_no_script():
    text = script_json({"name": "</script><script>alert(1)</script>\u2028\u2029<!-- &amp;"})
    assert not set("<>&\u2028\u2029") & set(text)
