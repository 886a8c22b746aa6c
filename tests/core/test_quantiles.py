"""Ranks, rank intervals, and the table that joins them with buckets and censored mass."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import scipy
from scipy import special

from latencykit.core import probability
from latencykit.core.buckets import EdgeBuckets
from latencykit.core.histogram import Histogram
from latencykit.core.percentile_rows import columns_at
from latencykit.core.quantiles import (
    Counted,
    highest_supported_percentile,
    interval_ends,
    rank_interval,
    ranks,
)
from latencykit.core.run import Run
from latencykit.errors import InvalidArgumentError


def columns(counted: Counted, percentiles: list[float], **known: str) -> SimpleNamespace:
    """The percentiles of the values, column by column."""
    buckets, index = EdgeBuckets(counted.low, counted.high), np.arange(counted.counts.size)
    late = {"censored": counted.censored, "censored_at": counted.limit}
    histogram = Histogram(buckets, index, counted.counts, run=Run(**known), **late)
    asked, doubts = np.array(percentiles, np.float64), histogram.evidence().doubts()
    return SimpleNamespace(**columns_at(histogram, asked, 0.95, doubts))


@pytest.mark.parametrize(
    ("n", "q"), [(10, 0.5), (100, 0.9), (1500, 0.99), (1500, 0.999), (37, 0.05), (5, 0.99)]
)
def test_interval_equals_the_order_statistics_of_scipy(n: int, q: float) -> None:
    values = np.sort(np.random.default_rng(n).lognormal(size=n))
    # scipy's two-sided interval excludes a rank on which the binomial tail falls exactly; none of
    # these does
    theirs = scipy.stats.quantile_test(values, p=q).confidence_interval(0.95)
    (low,), (high,) = interval_ends(Counted.of(values), np.array([100 * q]))
    assert low == pytest.approx(theirs.low, nan_ok=True)
    high = np.nan if np.isinf(high) else high
    assert high == pytest.approx(theirs.high, nan_ok=True)


def test_ranks_of_fifteen_hundred_samples() -> None:
    low, high = rank_interval(1500, [50, 99, 99.9])
    assert low.tolist() == [712, 1477, 1496]
    assert high.tolist() == [789, 1493, 1501]
    # the three last columns of a table to six nines are the maximum, three times
    found = ranks([99, 99.9, 99.99, 99.999, 99.9999], 1500).tolist()
    assert found == [1485, 1499, 1500, 1500, 1500]


def test_a_percentile_is_supported_by_ten_requests_above_it() -> None:
    assert highest_supported_percentile(1500) == pytest.approx(100 * (1 - 10 / 1500))
    table = columns(Counted.of(np.arange(1500.0)), [99.3, 99.34, 99.7, 99.9])
    assert table.supported.tolist() == [True, False, False, False]
    assert np.isinf(table.high).tolist() == [False, False, False, True]
    # The median needs an upper bound, which the largest of six is in 97.5 %.
    assert [highest_supported_percentile(n) >= 50 for n in (0, 5, 6, 20)] == [0, 0, 1, 1]


@pytest.mark.parametrize("percentile", [10, 50, 90, 95, 99])
def test_rank_intervals_cover_the_truth(percentile: float) -> None:
    rng = np.random.default_rng(7)
    truth, repetitions, n = -np.log(1 - percentile / 100), 1500, 600
    samples = np.sort(rng.exponential(size=(repetitions, n)), axis=1)
    low, high = rank_interval(n, percentile)
    covered = (samples[:, int(low) - 1] <= truth) & (truth <= samples[:, int(high) - 1])
    assert 0.94 <= covered.mean() <= 0.995


def test_the_interval_is_joined_with_the_bucket() -> None:
    table = columns(
        Counted(np.array([0.0, 10.0]), np.array([10.0, 50.0]), np.array([900, 100])), [50, 95]
    )
    assert table.value.tolist() == [10, 50]
    assert table.low.tolist() == [0, 10]
    assert table.high.tolist() == [10, 50]
    assert table.bucket_low.tolist() == [0, 10]


def test_censored_values_make_percentiles_at_least() -> None:
    timeouts = Counted.of(np.arange(1.0, 91.0), censored=10, limit=2000.0)
    table = columns(timeouts, [50, 89, 95, 100])
    assert table.value.tolist() == [50, 89, 2000, 2000]
    assert np.isinf(table.bucket_high).tolist() == [False, False, True, True]
    assert table.supported.tolist() == [True, True, False, False]
    assert np.isinf(table.high[1:]).all()
    assert table.high[0] < 90


def test_values_above_the_limit_keep_their_bounds() -> None:
    # half of what reached the limit of 10 was cut there, and the rest was measured
    mixed = Counted.of([1.0] * 50 + [20.0] * 45 + [90.0] * 4, censored=1, limit=10.0)
    assert columns(mixed, [51, 60]).value.tolist() == [10, 20]
    # even if the censored one is slower than all, rank 60 ± 10 lies among the 20s
    assert interval_ends(mixed, np.array([51.0, 60.0]))[1][1] == 20


def test_nothing_counted_is_an_error() -> None:
    with pytest.raises(InvalidArgumentError, match="no values were counted"):
        interval_ends(Counted.of([]), np.array([50.0]))


# ------------------------------------------------------------ chances without scipy: what scipy says


@pytest.mark.parametrize("n", [0, 1, 2, 37, 1500, 6852, 1_000_000, 40_000_000])
def test_binomial_quantiles(n):
    q = np.concatenate([[0.0, 1.0, 1e-9], 1 - 10.0 ** -np.linspace(0.01, 7, 40)])
    ours = probability.binomial_quantiles((0.0005, 0.025, 0.5, 0.975), n, tuple(q))
    inside, p = np.clip(q, 1e-12, 1 - 1e-12), np.array([[0.0005], [0.025], [0.5], [0.975]])
    assert (special.bdtr(ours, n, inside) >= p * (1 - 1e-9)).all()
    assert (special.bdtr(np.maximum(ours - 1, 0), n, inside) < p * (1 + 1e-9))[ours > 0].all()


def test_poisson_at_least():
    rng = np.random.default_rng(0)
    k = 10 ** rng.uniform(0, 4, 5000)
    mean = k * 10 ** rng.uniform(-2, 0.0, k.size)
    theirs = special.gammainc(k, mean)
    np.testing.assert_allclose(
        probability.poisson_at_least(k, mean), theirs, rtol=1e-6, atol=1e-250
    )
    assert probability.poisson_at_least([3.0], [0.0]).tolist() == [0.0]
