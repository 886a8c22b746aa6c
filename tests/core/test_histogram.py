"""Laws of histograms, and agreement with the hdrhistogram package and with exact samples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import latencykit as lk

VALUES = st.lists(st.integers(0, 2**62), min_size=1, max_size=60)
PERCENTILES = [0, 1, 25, 50, 75, 90, 99, 99.9, 99.99, 100]


@given(VALUES, st.integers(0, 5), st.sampled_from([1, 2, 1000, 20_000, 1 << 20]))
def test_a_value_lies_in_its_bucket_and_the_bucket_is_narrow(values, digits, lowest):
    layout = lk.HdrBuckets(digits, lowest)
    given_values = np.asarray(values, np.int64)
    index = layout.index_of(given_values)
    low, high = layout.low_steps(index), layout.high_steps(index)
    assert ((low <= given_values) & (given_values <= high)).all()
    assert (layout.index_of(low) == index).all()
    assert (layout.index_of(high) == index).all()
    most = np.maximum(low / 10.0**digits * 1.0000001, 1 << layout.unit_magnitude)
    assert ((high - low + 1) <= most).all()


@pytest.mark.slow
@given(VALUES)
def test_quantiles_ascend_and_stay_within_the_extremes(values):
    h = lk.Histogram.of(np.asarray(values, np.int64))
    found = h.percentile(PERCENTILES)
    assert (np.diff(found) >= 0).all()
    assert found[0] == h.min
    assert found[-1] == h.max
    assert h.count == len(values)


@pytest.mark.slow
@given(VALUES)
def test_a_percentile_is_never_below_the_exact_nearest_rank(values):
    exact = np.sort(np.asarray(values, np.int64))
    h = lk.Histogram.of(exact)
    for p in PERCENTILES[1:]:
        rank = max(1, int(np.ceil(np.nextafter(p, 0) * exact.size / 100)))
        assert exact[rank - 1] <= h.percentile(p) <= exact[rank - 1] * 1.001 + 1


@pytest.mark.slow
@given(VALUES, VALUES, VALUES)
@settings(max_examples=50)
def test_merging_is_associative_commutative_and_loses_nothing(a, b, c):
    x, y, z = (lk.Histogram.of(np.asarray(v, np.int64)) for v in (a, b, c))
    left, right, turned = (x + y) + z, x + (y + z), z + y + x
    for other in (right, turned):
        assert left.index.tolist() == other.index.tolist()
        assert left.counts.tolist() == other.counts.tolist()
    assert left.count == len(a) + len(b) + len(c)
    assert (left - z).counts.tolist() == (x + y).counts.tolist()


@pytest.mark.slow
@given(VALUES, VALUES, st.floats(0, 100))
def test_a_pooled_percentile_lies_within_those_of_the_parts(a, b, p):
    x, y = (lk.Histogram.of(np.asarray(v, np.int64)) for v in (a, b))
    both = sorted((x.percentile(p), y.percentile(p)))
    assert both[0] <= (x + y).percentile(p) <= both[1]


def test_agrees_with_the_hdrhistogram_package():
    hdrh = pytest.importorskip("hdrh.histogram", reason="hdrhistogram has no wheel here")
    rng = np.random.default_rng(5)
    values = rng.lognormal(10, 2, 5000).astype(np.int64)
    theirs = hdrh.HdrHistogram(1, 10**12, 3)
    for value in values.tolist():
        theirs.record_value(value)
    h = lk.Histogram.from_hdrh(theirs)
    assert h.index.tolist() == lk.Histogram.of(values).index.tolist()
    assert (h.mean, h.max) == (theirs.get_mean_value(), theirs.get_max_value())
    back = h.to_hdrh()
    assert back.get_total_count() == 5000
    assert back.get_value_at_percentile(99) == theirs.get_value_at_percentile(99)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({"unit": "us"}, {"unit": "ns"}),
        ({"measure": "service"}, {"measure": "response"}),
        ({"corrected": "none"}, {"corrected": "tool"}),
    ],
)
def test_what_must_not_be_added_is_refused(a, b):
    x, y = (lk.Histogram.of([1], unit=one.get("unit", "ns"), run=lk.Run(**one)) for one in (a, b))
    with pytest.raises(lk.IncompatibleDataError, match="cannot be merged"):
        x + y


def test_count_and_share_never_flatter():
    h = lk.Histogram.of([1000, 2000, 3000])
    top = h.percentile(50)
    assert h.percentile_of(top) == pytest.approx(200 / 3)
    assert h.percentile_of(top - 0.5) == pytest.approx(100 / 3)
    assert h.count_above(top - 0.5) == 2


def test_printed_percentiles_are_given_back_as_printed():
    stats, values = {"max": 7.71e6, "mean": 1.3e6}, [1.26e6, 1.37e6, 4.04e6]
    h = lk.Histogram.from_percentiles([50, 90, 99], values, 24018, reported_stats=stats)
    assert h.percentile([50, 90, 99, 100]).tolist() == [1.26e6, 1.37e6, 4.04e6, 7.71e6]
    assert 1.37e6 <= h.percentile(95) <= 4.04e6
    assert (h.count, h.mean) == (24018, 1.3e6)


def test_a_minimum_above_the_lowest_percentile_is_not_a_minimum():
    stats, values = {"min": 7.0, "max": 8.0}, [1.0, 1.0, 5.0]
    h = lk.Histogram.from_percentiles([50, 90, 99], values, 100, reported_stats=stats)
    assert h.percentile([0, 50, 90, 99, 100]).tolist() == [1.0, 1.0, 1.0, 5.0, 8.0]
    assert h.min == 1.0


def test_what_is_censored_reads_at_least():
    counted, late = (np.array([1000]), np.array([92])), {"censored": 8, "censored_at": 2e9}
    h = lk.Histogram(lk.HdrBuckets(3), *counted, run=lk.Run(timeouts=8), **late)
    assert h.percentile(50) == 1000
    assert h.percentile(95) == 2e9
    row = h.percentile_rows([95])[0]
    assert (row.high, row.supported) == (float("inf"), False)
    assert h.percentile_of(1e12) == 92.0
    with pytest.raises(lk.InputTooLargeError, match="corrupt"):
        replace(lk.Histogram.of([1, 2, 3]), censored=2**64 - 1, censored_at=4.0)


def test_a_summary_answers_only_what_it_holds():
    s = lk.Summary({"mean": 5.0}, run=lk.Run(tool="go test -bench"))
    with pytest.raises(lk.DataNotAvailableError, match="has no p99, only mean"):
        s.percentile(99)


@pytest.mark.parametrize("bound", [1e6, 41e6, 60e6, 70e6])
def test_percentiles_ascend_within_what_the_source_states(bound):
    """A tool's own extremes lie inside their buckets; censored values lie among the others."""
    stated = {"min": 41e6, "max": 60e6}
    counted = lk.Histogram.of([41_000_000, 50_000_000, 60_000_000])
    h = replace(counted, reported_stats=stated, censored=2, censored_at=bound)
    values = h.percentile(np.linspace(0, 100, 41))
    assert (np.diff(values) >= 0).all()
    assert values[0] == h.min
    assert values[-1] == max(h.max, bound)
