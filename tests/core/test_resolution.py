"""What a source does not pin down is a range, and the truth lies in it: percentiles printed from samples that are known."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import latencykit as lk
from latencykit.analysis.slo import check_limit
from latencykit.core.histogram_log import interval_series
from latencykit.core.key_statistics import key_statistics
from latencykit.core.quantiles import RESOLVED, is_resolved
from latencykit.views.intervals import intervals_text
from latencykit.views.series import series_record
from latencykit.views.summary import summary_text
from tests.conftest import log_of_values

FORMATS = Path(__file__).parents[1] / "data/formats"
PRINTED = ((50.0, 99.0), (50.0, 75.0, 90.0, 99.0), (25.0, 50.0, 95.0, 99.5, 99.9), (10.0, 90.0))
ASKED = np.array([1.0, 25.0, 40.0, 50.0, 66.6, 75.0, 90.0, 95.0, 99.0, 99.3, 99.9, 100.0])
WORLDS = ("lognormal", "bimodal", "pareto", "stall")


@cache
def sample(world: str, size: int = 4321) -> np.ndarray:
    rng = np.random.default_rng([WORLDS.index(world), size])
    late = size // 20
    if world == "lognormal":
        values = rng.lognormal(14, 1, size)
    elif world == "bimodal":
        slow = rng.random(size) < 0.03
        values = np.where(slow, rng.normal(9e8, 1e7, size), rng.normal(1.5e6, 1e5, size))
    elif world == "pareto":
        values = 1e6 * (1 + rng.pareto(1.1, size))
    else:
        values = np.append(rng.exponential(1e6, size - late), rng.uniform(0, 6e9, late))
    return np.sort(values)


def of_tool(values, reported, method, *, extremes=True, mean=False):
    """What a tool with that convention prints of these values, read back."""
    stats = {"min": float(values[0]), "max": float(values[-1])} if extremes else {}
    stats |= {"mean": float(values.mean())} if mean else {}
    points = np.percentile(values, reported, method=method).tolist()
    return lk.Histogram.from_percentiles(reported, points, values.size, reported_stats=stats)


def in_buckets(values, factor):
    """The same values in buckets that widen by a factor, as Prometheus has them."""
    number = math.ceil(math.log(values[-1] / 1e5, factor)) + 1
    edges = np.append(0.0, 1e5 * factor ** np.arange(number))
    counts = np.histogram(values, np.nextafter(edges, np.inf))[0]
    counts[0] += (values <= edges[0]).sum()
    return lk.Histogram.from_buckets(edges[:-1], edges[1:], counts)


def worlds(function):
    return pytest.mark.parametrize("world", WORLDS)(function)


@worlds
@pytest.mark.parametrize("reported", PRINTED)
@pytest.mark.parametrize("method", ["inverted_cdf", "linear", "lower", "higher", "nearest"])
@pytest.mark.parametrize("extremes", [True, False])
def test_the_true_percentile_lies_in_the_range(world, reported, method, extremes):
    values = sample(world)
    h = of_tool(values, reported, method, extremes=extremes)
    rows = h.percentile_rows(ASKED)
    for row, true in zip(rows, np.percentile(values, ASKED, method=method), strict=True):
        assert row.bucket_low <= true * (1 + 1e-12)
        assert true <= row.bucket_high * (1 + 1e-12)
        assert row.bucket_low <= row.value <= row.bucket_high
        assert row.resolved == (row.bucket_high <= RESOLVED * row.bucket_low * (1 + 1e-12))
        if row.percentile in reported:
            assert row.resolved
            assert row.value == pytest.approx(true)
    last = 100 if extremes else reported[-1]
    assert h.percentile(100) == np.percentile(values, last, method=method)


@worlds
@pytest.mark.parametrize("factor", [1.05, 1.5, 2.0, 10.0])
def test_buckets_of_any_width_hold_the_truth(world, factor):
    values = sample(world)
    h = in_buckets(values, factor)
    rows = h.percentile_rows(ASKED)
    true = np.percentile(values, ASKED, method="inverted_cdf")
    for row, one in zip(rows, true, strict=True):
        assert row.bucket_low <= one <= row.bucket_high
    assert {row.resolved for row in rows if row.bucket_low > 0} == {factor < RESOLVED}
    for name in ("mean", "std", "min", "max"):
        low, high = h.bounds(name)
        assert low <= getattr(values, name)() <= high


@worlds
@pytest.mark.parametrize("reported", PRINTED)
def test_means_and_shares_lie_in_their_brackets(world, reported):
    values = sample(world)
    for h in (of_tool(values, reported, "inverted_cdf"), in_buckets(values, 3.0)):
        for name, share in (("tm95", 0.05), ("tm99", 0.01), ("tm99.9", 0.001)):
            found = h.trimmed(name)
            assert found.low <= trimmed_mean(values, share) <= found.high
            assert found.resolved == bool(is_resolved(found.low, found.high))
            assert found.resolved or found.value == found.high
        for limit in np.percentile(values, [30, 80, 98]):
            true = 100 * np.mean(values <= limit)
            assert h.percentile_of(limit) <= true + 1e-9  # never more than is sure
        low, high = h.bounds("mean")
        assert low <= values.mean() <= high


def trimmed_mean(values, share):
    """Between two ranks, parts of a request at either end."""
    ends = np.arange(values.size + 1.0)
    low, high = share * values.size, (1 - share) * values.size
    weight = np.maximum(np.minimum(ends[1:], high) - np.maximum(ends[:-1], low), 0)
    return float(weight @ values / weight.sum())


@worlds
@pytest.mark.parametrize("n", [1, 2, 10, 50])
def test_fan_out_percentiles_lie_in_their_ranges(world, n):
    values = sample(world)
    share = (np.arange(1, values.size + 1) / values.size) ** n
    for h in (of_tool(values, (50.0, 75.0, 90.0, 99.0), "inverted_cdf"), in_buckets(values, 2.5)):
        (found,) = lk.fan_out(h, [n])
        for p in (10.0, 50.0, 90.0, 99.0):
            row = found.rows([p])[0]
            true = values[np.searchsorted(share, p / 100 * (1 - 1e-12))]
            assert row.bucket_low <= true * (1 + 1e-12)
            assert true <= row.bucket_high * (1 + 1e-12)


@pytest.mark.slow
@worlds
@pytest.mark.parametrize("k", [3])
def test_sums_and_hedges_lie_in_their_ranges(world, k):
    values, rng = sample(world), np.random.default_rng(k)
    draws = rng.choice(values, (20_000, k))
    for h in (of_tool(values, (50.0, 75.0, 90.0, 99.0), "inverted_cdf"), in_buckets(values, 2.5)):
        summed = lk.sequential(h, k)
        (hedged,) = lk.fan_out(h, [1], hedge=90.0)
        delay = np.percentile(values, 90, method="inverted_cdf")
        answers = np.minimum(draws[:, 0], delay + draws[:, 1])
        for found, true in ((summed, draws.sum(axis=1)), (hedged, answers)):
            for p in (25.0, 50.0, 80.0, 97.0):
                row = found.rows([p])[0]
                least, most = np.percentile(true, [p - 1, p + 1])  # the error of the simulation
                assert row.bucket_low <= most
                assert least <= row.bucket_high


def test_shares_above_of_wide_buckets_have_bounds_that_hold_the_truth():
    rng = np.random.default_rng(5)
    seconds = [rng.lognormal(14, 1 if k % 10 else 2, 200) for k in range(40)]
    every = np.sort(np.concatenate(seconds))
    cut = np.percentile(every, 99, method="inverted_cdf")
    for n in (2, 20):
        true = np.mean([1 - np.mean(one <= cut) ** n for one in seconds])
        for factor in (4.0, 1.01):
            log = log_of(seconds, factor)
            (found,) = lk.fan_out(log, [n], shares=(99.0,))
            low, high = found.above_between[99.0]
            assert low - 1e-9 <= true <= high + 1e-9
            assert low <= found.above[99.0] <= high
        assert high - low < 0.1  # narrow buckets, narrow bounds


def log_of(parts, factor):
    """One second each, in buckets that widen by a factor."""
    edges = 1e3 * factor ** np.arange(0, math.ceil(math.log(1e13 / 1e3, factor)))
    return log_of_values(parts, buckets=lk.EdgeBuckets(edges[:-1], edges[1:]))


@worlds
@pytest.mark.parametrize("reported", PRINTED)
def test_no_verdict_on_a_limit_is_wrong_by_resolution(world, reported):
    values = sample(world)
    true = {"mean": values.mean(), "tm99": trimmed_mean(values, 0.01), "max": values[-1]}
    for p in (50, 75, 90, 95, 99):
        true[f"p{p}"] = np.percentile(values, p, method="inverted_cdf")
    seen = set()
    for h in (of_tool(values, reported, "inverted_cdf"), in_buckets(values, 2.0)):
        for name, value in true.items():
            for share in (0.5, 0.97, 1.03, 2.0):
                row = check_limit(h, name, share * float(value), 0.95)
                seen.add(row.outcome)
                assert row.outcome in ("unknown", "met" if share > 1 else "missed")
                assert row.low <= row.bucket_low or math.isnan(row.bucket_low)
    assert "unknown" in seen
    assert {"met", "missed"} & seen


def test_what_the_tool_states_wins_over_the_buckets():
    values = sample("stall")
    h = of_tool(values, (50.0, 75.0, 90.0, 99.0), "linear", mean=True)
    assert h.bounds("mean") == (values.mean(), values.mean())
    other = of_tool(1.1 * values, (50.0, 75.0, 90.0, 99.0), "linear", mean=True)
    rows = {row.statistic: row for row in lk.compare(h, other).changes}
    assert rows["mean"].base == pytest.approx(values.mean())
    assert rows["mean"].change == pytest.approx(0.1)
    assert rows["mean"].low < 0.1 < rows["mean"].high
    shown = [50, 75, 90, 99]
    expected = pytest.approx(np.percentile(values, shown).tolist())
    assert [rows[f"p{p}"].base for p in shown] == expected
    assert check_limit(h, "mean", values.mean() * 2, 0.95).value == pytest.approx(values.mean())


def test_a_comparison_of_ranges_gives_no_number():
    one, two = (in_buckets(sample("lognormal") * factor, 2.0) for factor in (1.0, 1.3))
    changes = lk.compare(one, two, percentiles=[50, 99], run_noise=0.01).changes
    rows = {row.statistic: row for row in changes}
    assert not rows["p50"].resolved
    assert math.isnan(rows["p50"].change)
    assert rows["p50"].low <= 0.3 <= rows["p50"].high
    assert not rows["p50"].significant
    assert math.isnan(rows["tm99"].change)


def test_the_highest_supported_percentile_is_one_that_is_known():
    values = sample("pareto")
    h = of_tool(values, (50.0, 75.0, 90.0), "linear")
    assert h.sample_limit() > 99.7
    assert h.highest_supported_percentile() == 90
    assert in_buckets(values, 2.0).highest_supported_percentile() == 0
    fine = lk.Histogram.of(values)
    assert fine.highest_supported_percentile() == fine.sample_limit()
    assert all(row.resolved for row in fine.percentile_rows(ASKED))


# ---------------------------------------------------------------- what people see


def wrk():
    return lk.read(FORMATS / "wrk/ctrlz/stdout.txt")


def test_the_columns_are_those_that_the_tool_printed():
    record = series_record("wrk", wrk())
    assert [row["percentile"] for row in record["percentiles"]] == [50, 75, 90, 99, 100]
    assert all(row["resolved"] for row in record["percentiles"])
    assert record["trimmed_means"]["tm99"] is None
    assert record["trimmed"]["tm99"]["low"] < record["trimmed"]["tm99"]["high"]
    text = summary_text([record])
    assert "p95" not in text
    assert "681 ms" not in text
    asked = series_record("wrk", wrk(), [95, 99])["percentiles"]
    ends = [(row["resolved"], row["bucket_low"], row["bucket_high"]) for row in asked]
    assert ends == [(False, 3.4e9, 5.74e9), (True, 5.74e9, 5.74e9)]
    assert "3.4–5.74 s" in summary_text([series_record("wrk", wrk(), [95, 99])])


def test_intervals_of_wide_buckets_are_ranges():
    from latencykit.views.intervals import interval_records

    parts = [np.random.default_rng(k).lognormal(14, 1, 500) for k in range(3)]
    rows = interval_records(interval_series(log_of(parts, 2.0), [50.0, 90.0]))
    for row, part in zip(rows, parts, strict=True):
        median = np.percentile(part, 50, method="inverted_cdf")
        for name, true in (("50", median), ("max", part.max())):
            assert row["ranges"][name]["low"] <= true <= row["ranges"][name]["high"]
    assert "–" in intervals_text([{"name": "x", "unit": "ns", "intervals": rows}])


def test_frames_and_notebooks_say_what_is_resolved():
    frame = wrk().percentiles([50, 95])
    columns = "value low high bucket_low bucket_high resolved supported events"
    assert list(frame.columns) == columns.split()
    assert frame.resolved.tolist() == [True, False]
    wide = in_buckets(sample("lognormal"), 2.0)
    assert dict(key_statistics(wide))["mean"].count("–") == 1
    coarse = lk.Histogram.from_buckets([10, 20], [10, 90], [1, 10**6])
    assert "supported to" not in dict(key_statistics(coarse))  # it was p0
    assert "fill-opacity" in wide._repr_html_()
    assert "fill-opacity" not in lk.Histogram.of(sample("lognormal"))._repr_html_()
    assert "–" in repr(wide)


def test_sums_and_differences_keep_what_every_part_states():
    one, two = sample("stall"), sample("pareto", 3000)
    parts = [of_tool(values, (50.0, 99.0), "linear", mean=True) for values in (one, two)]
    every = np.concatenate((one, two))
    assert (parts[0] + parts[1]).bounds("mean") == pytest.approx((every.mean(), every.mean()))
    edges = np.append(0.0, 1e5 * 4.0 ** np.arange(12))

    def stating_its_mean(values):
        counts, stats = np.histogram(values, edges)[0], {"mean": float(values.mean())}
        return lk.Histogram.from_buckets(edges[:-1], edges[1:], counts, reported_stats=stats)

    early, late = map(stating_its_mean, (one[::2], one))
    assert (late - early).mean == pytest.approx(one[1::2].mean())
    stated = lk.Histogram.of(one)
    assert (stated + stated).reported_stats == {}
