"""Ranks, their intervals, buckets and censored mass; and means of what lies between two ranks."""

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
from latencykit.core.trimmed import parse_trim, trimmed
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


# ---------------------------------------------------------------- trimmed means

TEN = Counted.of(range(1, 11))


def by_value(values: np.ndarray, percentile: float) -> int:
    """The third "tm": the mean, truncated, of all values between two percentiles, inclusive."""
    ordered = np.sort(values)
    ends = [
        ordered[max(0, int(np.ceil(q / 100 * ordered.size)) - 1)]
        for q in (100 - percentile, percentile)
    ]
    return int(ordered[(ordered >= ends[0]) & (ordered <= ends[1])].mean())


def test_three_things_are_called_tm() -> None:
    values = np.r_[np.arange(1, 100), 10_000]
    counted = Counted.of(values)
    assert trimmed(counted, "tm99").value == pytest.approx(np.arange(2, 100).mean())  # both ends
    # CloudWatch's tm99
    assert trimmed(counted, "TM(:99%)").value == pytest.approx(np.arange(1, 100).mean())
    assert by_value(values, 99) == 50  # by value and cut to a whole number: 1 and 99 stay in
    ten = np.arange(1, 11)
    assert [trimmed(TEN, name).value for name in ("tm90", "TM(:90%)")] == [5.5, 5.0]
    assert by_value(ten, 90) == 5


def test_published_examples() -> None:
    assert trimmed(TEN, "IQM").value == 5.5
    assert trimmed(TEN, "TM(5%:95%)").value == pytest.approx(5.5)
    assert trimmed(Counted.of([5, 5, 5, 5, 5, 6, 7, 8, 9, 10]), "tm90").value == 6.25
    normal = Counted.of([*range(300, 390, 10), 10_122])
    degraded = Counted.of([300, 340, 345, 348, 349, 351, 378, 379, 380, 10_122])
    assert trimmed(normal, "tm90").value == 345
    assert trimmed(degraded, "tm90").value == 358.75


@pytest.mark.parametrize("cut", [0.1, 0.25, 0.01])
def test_equals_scipy_where_whole_values_are_cut(cut: float) -> None:
    values = np.random.default_rng(3).lognormal(size=400)
    ours = trimmed(Counted.of(values), f"TM({100 * cut:g}%:{100 * (1 - cut):g}%)").value
    assert ours == pytest.approx(scipy.stats.trim_mean(values, cut), rel=1e-12)
    wins = scipy.stats.mstats.winsorize(values, (cut, cut)).mean()
    assert trimmed(Counted.of(values), f"wm{100 * (1 - cut):g}").value == pytest.approx(
        wins, rel=1e-12
    )


def test_partial_weights_cut_through_a_bucket() -> None:
    # 5 % of 30 is 1.5 at each end: one and a half of the 1s stay out
    counted = Counted.of([1.0] * 3 + [2.0] * 24 + [9.0] * 3)
    assert trimmed(counted, "tm95").value == pytest.approx((1.5 * 1 + 24 * 2 + 1.5 * 9) / 27)


def test_values_as_bounds() -> None:
    counted = Counted.of([100, 150, 200, 1000, 1001])
    assert trimmed(counted, "TM(150:1000)", "none").value == 600  # lower bound out, upper one in
    assert trimmed(counted, "TM(150ms:1s)", "ms").value == 600
    assert trimmed(counted, "WM(150ms:1s)", "ms").value == (150 + 150 + 200 + 1000 + 1000) / 5


def test_the_bracket_holds_whatever_the_values_in_the_buckets_are() -> None:
    rng = np.random.default_rng(11)
    values = rng.uniform(0, 100, 3000)
    edges = np.linspace(0, 100, 41)
    counts = np.histogram(values, edges)[0]
    counted = Counted(edges[:-1], edges[1:], counts)
    raw = Counted.of(values)
    for spec in ("tm95", "wm90", "TM(:99%)", "TM(13:67)", "TM(:41)", "WM(13:67)"):
        found, truth = trimmed(counted, spec, "none"), trimmed(raw, spec, "none").value
        assert found.low <= truth <= found.high, spec
        assert found.low <= found.value <= found.high, spec


def test_says_what_it_leaves_out() -> None:
    values = np.r_[np.full(6838, 1e6), np.full(7, 6e9), np.full(7, 0.5e6)]
    found = trimmed(Counted.of(values), "tm99.9")
    assert found.leaves_out == "2 × 7 requests, up to 6 s"
    assert found.definition == "TM(0.1%:99.9%): mean without the lowest 0.1 % and the highest 0.1 %"
    assert trimmed(TEN, "TM(:90%)", "none").leaves_out == "1 request, up to 10"
    assert trimmed(TEN, "TM(10%:)", "none").leaves_out == "1 request below"
    assert trimmed(TEN, "TM(:10)", "none").leaves_out == "nothing"


def test_censored_values_leave_the_upper_end_open() -> None:
    counted = Counted.of([1.0] * 95, censored=5, limit=100.0)
    reaching, clear = trimmed(counted, "TM(:99%)"), trimmed(counted, "TM(:95%)")
    assert reaching.value == pytest.approx((95 + 400) / 99)
    assert np.isinf(reaching.high)
    assert clear.high == 1
    assert np.isinf(clear.worst)
    assert clear.leaves_out == "5 requests, ≥ 100 ns"


@pytest.mark.parametrize(
    "spec",
    ["tm", "tm50", "tm101", "mean", "TM(:)", "TM(5%:1s)", "TM(95%:5%)", "PR(:300ms)", "tc90", "TM(1s:1ms)",
     "TM(x%:)", "TM(:1e9%)"],
)  # fmt: skip
def test_refuses_what_means_nothing(spec: str) -> None:
    with pytest.raises(InvalidArgumentError):
        parse_trim(spec)


def test_plain_numbers_need_plain_bounds() -> None:
    with pytest.raises(InvalidArgumentError, match="not a plain number"):
        trimmed(TEN, "TM(:3ms)", "none")
