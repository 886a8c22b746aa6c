"""Fan-out: logs mixed by interval, others independent; their support; hedges, sums and published tables."""

from __future__ import annotations

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

import latencykit as lk
from latencykit.analysis import fan_out as fanout
from latencykit.analysis.fan_out import fan_out, hedged, sequential, survival
from tests.conftest import SCHEDULED, log_of_values


def log_of(
    *intervals: np.ndarray, tags: list[int] | None = None, digits: int = 3
) -> lk.HistogramLog:
    """A log of one-second intervals."""
    names = ("",) if tags is None else ("a", "b")
    where = np.arange(len(intervals)) if tags is None else np.arange(len(intervals)) // 2
    return log_of_values(intervals, where, digits=digits, tag_code=tags, tag_names=names)


def test_a_stall_hits_few_users_but_all_their_calls():
    log = lk.read(SCHEDULED)
    mixed, apart = fan_out(log, [100])[0], fan_out(log, [100], independent=True)[0]
    assert (mixed.model, apart.model) == ("mixture", "independent")
    assert mixed.above[99] == pytest.approx(0.30, abs=0.01)  # a log that was stopped for 6 s
    assert apart.above[99] == pytest.approx(1 - 0.99**100)


def test_one_call_is_the_source_itself():
    log, p = lk.read(SCHEDULED), [1, 50, 75, 90, 99, 99.9, 100]
    assert lk.fan_out(log, 1).percentile(p).tolist() == log.histogram().percentile(p).tolist()


def test_mixture_agrees_with_drawing_calls():
    rng = np.random.default_rng(2)
    parts = [rng.lognormal(13 + (k == 3), 0.5, 500) for k in range(6)]
    found = lk.fan_out(log_of(*parts), 20)
    drawn = np.concatenate([rng.choice(part, (20_000, 20)).max(1) for part in parts])
    for p in (10, 50, 90):
        assert found.percentile(p) == pytest.approx(np.percentile(drawn, p), rel=0.02)


def test_few_requests_per_interval_are_not_flattering():
    """The slowest of a hundred draws from five requests is one of the five: intervals widen."""
    rng = np.random.default_rng(5)
    log = log_of(*[rng.lognormal(13, 0.5, 5) for _ in range(800)])
    found = fan_out(log, [100])[0]
    assert found.interval == 64  # 1 s, doubled until there are three requests per call
    assert "1.07 min" in found.note or "64 s" in found.note
    assert found.above[99] > 0.5  # 63 % if independent, as these are; 5 % from five requests each
    alone = fan_out(log, [5000])[0]
    assert alone.model == "independent"
    assert alone.note


def test_shared_stalls_defeat_a_hedge():
    rng = np.random.default_rng(3)
    parts = [rng.lognormal(13, 0.3, 2000) for _ in range(40)]
    parts[7] = parts[7] + 1e9  # one second in which every server is stopped
    log = log_of(*parts)
    together, apart = (lk.fan_out(log, 1, hedge="p95", independent=flag) for flag in (False, True))
    assert together.percentile(99) > 1e9
    assert apart.percentile(99) < 1e8
    assert apart.added_load == pytest.approx(0.05, abs=0.001)


def test_timeouts_are_slower_than_anything_known():
    durations = np.where(np.arange(1000) < 20, 2000.0, 5.0)
    outcome = ["timeout"] * 20 + ["ok"] * 980
    requests = lk.Samples(start=np.arange(1000), duration=durations, outcome=outcome, unit="ms")
    found = fan_out(requests, [1, 100])
    assert np.isfinite(found[0].bounds(90)[1])
    assert np.isinf(found[1].bounds(50)[1])
    assert not found[1].supported(50)
    assert found[1].to_unit("ms").percentile(50) == pytest.approx(2000.0, rel=1e-3)


def test_a_sequence_of_calls():
    found = sequential(lk.Histogram.of([1_000] * 99 + [1_000_000]), 100)
    assert found.min <= 100_000 <= found.percentile(1)
    assert 1.09e6 < found.percentile(50) < 1.11e6  # 63 % have at least one slow call
    assert found.percentile(30) < 1.2e5
    assert not found.supported(99)
    sent = np.arange(20_000) * 5e6  # a second of each 25 s is frozen: nobody waits twice
    took = np.maximum(1e9 - sent % 25e9, 0) + 1e6
    one = lk.Samples(start=sent, duration=took)
    assert sequential(one, 10).percentile([90, 100]) == pytest.approx([10e6, 1.01e9], rel=0.01)
    assert sequential(one.to_log("1s"), 10).percentile(90) == pytest.approx(10e6, rel=0.01)


@pytest.mark.parametrize(
    ("numbers", "options"),
    [([0], {}), ([-3], {}), ([], {}), ([3], {"quorum": 4}), ([3], {"quorum": 0}),
     ([3], {"hedge": 101}), ([3], {"hedge": -1})],
)  # fmt: skip
def test_impossible_questions(numbers, options):
    with pytest.raises(lk.InvalidArgumentError):
        fan_out(lk.Histogram.of([1, 2, 3]), numbers, **options)


def test_nothing_to_fan_out():
    with pytest.raises(lk.DataNotAvailableError, match="full distribution"):
        lk.fan_out(lk.Summary({"mean": 1.0}), 10)
    with pytest.raises(lk.DataNotAvailableError, match="nothing was counted"):
        lk.fan_out(lk.Histogram.of([]), 10)
    with pytest.raises(lk.InvalidArgumentError, match="takes data"):
        lk.fan_out([1, 2, 3], 10)
    with pytest.raises(lk.InvalidArgumentError, match="at least 1"):
        sequential(lk.Histogram.of([1]), 0)


def test_a_model_answers_as_a_histogram_does():
    one = lk.Histogram.of(np.random.default_rng(1).lognormal(13, 0.7, 20_000))
    same = lk.fan_out(one, 1)
    for name in ("min", "max", "mean", "std"):
        assert getattr(same, name) == pytest.approx(getattr(one, name), rel=1e-3)
    assert same.percentile_of(1e6) == pytest.approx(one.percentile_of(1e6))
    for p in (1, 50, 75, 90, 99, 99.9, 100):
        assert same.percentile(p) == one.percentile(p)
    assert same.table.resolved.all()
    assert repr(same).startswith("FanOut(slowest of 1 call, independent, p50 ")


@pytest.mark.parametrize("hedge", [None, 95])
def test_no_user_waits_longer_than_the_slowest_call(hedge):
    took = np.random.default_rng(2).lognormal(13, 0.7, 3000)
    run = lk.Samples(start=np.arange(3000) * 10**6, duration=took)
    users = lk.fan_out(run, 20, hedge=hedge)
    assert users.percentile(100) == users.quantile(1.0) == run.max


LOGS = st.lists(
    st.lists(st.sampled_from([0, 1000, 1001, 50_000, 10**6, 3 * 10**9]), max_size=9),
    min_size=1,
    max_size=12,
).filter(any)
NUMBERS = st.lists(st.integers(1, 300), min_size=2, max_size=2, unique=True).map(sorted)
GRID = [0.0, 1.0, 10.0, 50.0, 90.0, 99.0, 99.9, 100.0]


def is_slower(few: lk.FanOut, many: lk.FanOut) -> bool:
    """Whether users of `many` are at least as slow in every percentile and share."""
    slower = (many.percentile(GRID) >= few.percentile(GRID)).all()
    shares = all(many.above[p] >= few.above[p] - 1e-12 for p in few.above)
    return bool(slower and shares)


@pytest.mark.slow
@given(LOGS, LOGS, NUMBERS, st.sampled_from([None, 0.0, 50.0, 90.0]))
@settings(max_examples=50, deadline=None)
def test_waiting_for_more_calls_is_never_faster(fine, coarse, numbers, hedge):
    log = log_of(*map(np.array, fine)) + log_of(*map(np.array, coarse), digits=2)
    few, many = (lk.fan_out(log, n, hedge=hedge) for n in numbers)
    assert is_slower(few, many)
    assert [few, many] == lk.fan_out(log, numbers, hedge=hedge)  # whatever else is asked
    few, many = lk.fan_out(log, numbers, hedge=hedge, independent=True)
    assert is_slower(few, many)


@given(LOGS, NUMBERS)
@settings(max_examples=30, deadline=None)
def test_waiting_for_more_of_the_calls_is_never_faster(values, numbers):
    log = log_of(*map(np.array, values))
    k, n = numbers
    for independent in (False, True):
        few = lk.fan_out(log, n, quorum=k, independent=independent)
        assert is_slower(few, lk.fan_out(log, n, independent=independent))


@pytest.mark.slow
@given(LOGS, st.integers(1, 12))
@settings(max_examples=12, deadline=None)
def test_another_call_in_a_sequence_is_never_faster(values, n):
    one = lk.Histogram.of(np.concatenate(list(map(np.array, values))))
    assert is_slower(lk.sequential(one, n), lk.sequential(one, n + 1))


def test_a_fan_out_is_a_distribution_a_table_and_html():
    log = lk.read(SCHEDULED)
    for result in (lk.fan_out(log, 100), lk.sequential(log, 3)):
        assert isinstance(result, lk.Distribution)
        assert result.table.supported.tolist() == [result.supported(p) for p in result.table.index]
        assert result.table.value.tolist() == result.percentile(result.table.index).tolist()
        assert "p99" in result._repr_html_()
        milliseconds = result.to_unit("ms")
        assert milliseconds.table.value.to_numpy() == pytest.approx(result.table.value / 1e6)
        assert milliseconds.table.supported.equals(result.table.supported)


def test_support_is_the_rule_of_single_calls_applied_to_users():
    rng = np.random.default_rng(4)
    steady = log_of(*[rng.lognormal(13, 0.5, 800) for _ in range(60)])
    one, ten = lk.fan_out(steady, [1, 10])
    asked = [50.0, 90.0, 99.0, 99.9, 99.99]
    assert one.percentiles(asked).supported.tolist() == steady.percentiles(asked).supported.tolist()
    assert ten.supported(50)
    assert not ten.supported(99.99)
    stalled = log_of(*[rng.lognormal(13 + 4 * (20 <= k < 35), 0.5, 800) for k in range(60)])
    assert not lk.fan_out(stalled, 10).supported(90)  # one stall decides it


# ------------------------------------------------------------ hedges and sums


def at(values: np.ndarray, above: np.ndarray, percentile: float) -> float:
    return float(values[np.flatnonzero(above <= 1 - percentile / 100 + 1e-12)[0]])


@pytest.fixture(scope="module")
def leaf() -> tuple[np.ndarray, np.ndarray]:
    values = np.exp(np.sort(np.random.default_rng(1).normal(size=20_000)))
    return values, survival(np.ones(values.size, np.int64))


def test_a_hedge_agrees_with_drawing(leaf: tuple[np.ndarray, np.ndarray]) -> None:
    values, above = leaf
    rng, delay = np.random.default_rng(2), at(values, above, 95)
    first, second = rng.choice(values, (2, 200_000))
    drawn = np.where(first > delay, np.minimum(first, delay + second), first)
    found = hedged(values, above, delay)
    assert found.added_load == pytest.approx(0.05, abs=1e-4)
    asked = (50, 90, 95, 99)
    ours = [at(found.values, found.survival, percentile) for percentile in asked]
    assert ours == pytest.approx(np.percentile(drawn, asked), rel=0.03)


def test_sums_are_those_of_independent_calls() -> None:
    values = np.rint(1e6 * np.random.default_rng(3).lognormal(size=5000))
    drawn = np.random.default_rng(4).choice(values, (100_000, 20)).sum(axis=1)
    sums = sequential(lk.Histogram.of(values), 20).percentile([50, 99])
    assert np.percentile(drawn, [50, 99]) == pytest.approx(sums, rel=0.01)


def test_limits() -> None:
    one = np.array([1.0])
    for wrong in (
        lambda: hedged(one, np.array([0.0]), -1.0),
        lambda: hedged(one, np.array([0.0]), 1.0, shared=2.0),
        lambda: fanout.slowest([0.1], 0),
        lambda: fanout.quorum([0.1], 6, 5),
        lambda: fanout.samples_needed(100),
    ):
        with pytest.raises(lk.InvalidArgumentError):
            wrong()


# ------------------------------------------------------------ published tables and other models


def test_published_numbers() -> None:
    # Dean and Barroso
    assert fanout.probability_of_slow(99, 100) == pytest.approx(0.634, abs=5e-4)
    assert fanout.probability_of_slow(99.99, 2000) == pytest.approx(0.181, abs=5e-4)
    # from Tene: "MOST page loads will experience the 99%'ile server response"
    assert 100 * fanout.probability_of_slow(99.9, 100) == pytest.approx(9.5208, abs=1e-4)
    assert fanout.landing_percentile(99.9, 105) > 90 > fanout.landing_percentile(99.9, 106)
    needed = [fanout.samples_needed(p) for p in (99, 99.9, 99.99, 99.999, 99.9999)]
    assert needed == [1_000, 10_000, 100_000, 1_000_000, 10_000_000]
    leaf = float(fanout.leaf_percentile(99, 100))
    assert fanout.samples_needed(leaf) == pytest.approx(99_500, rel=2e-3)


@pytest.mark.parametrize(
    ("n", "half", "most"),
    [(10, 93.30, 99.8995), (40, 98.28, 99.9749), (100, 99.309, 99.98995), (1000, 99.931, 99.99899)],
)
def test_the_inverse(n: int, half: float, most: float) -> None:
    leaves = fanout.leaf_percentile([50, 99], n)
    assert leaves == pytest.approx([half, most], abs=5e-3)
    assert fanout.landing_percentile(leaves, n) == pytest.approx([50, 99])


def test_quorum_is_the_binomial_tail() -> None:
    above = np.array([0.9, 0.3, 1e-3, 0.0])
    expected = 1 - scipy.stats.binom.sf(44, 50, 1 - above)
    assert fanout.quorum(above, 45, 50) == pytest.approx(expected, abs=1e-12)
    assert fanout.quorum(above, 50, 50) == pytest.approx(fanout.slowest(above, 50), rel=1e-9)
    assert fanout.quorum(above, 1, 2) == pytest.approx(above**2, rel=1e-9)
    leaf = 100 * (1 - scipy.stats.beta.isf(0.99, 6, 45))
    assert fanout.leaf_percentile(99, 50, k=45) == pytest.approx(leaf, abs=1e-6)


def test_intervals_alike_are_independent_calls_and_one_interval_is_too() -> None:
    rng = np.random.default_rng(9)
    row = rng.multinomial(900, [0.7, 0.2, 0.1])
    indptr, index = np.array([0, 3, 6]), np.tile(np.arange(3), 2)
    within = fanout.Within(indptr, index, np.tile(row, 2), 1800)
    mixed = within.mixed(20, 3)
    above = survival(row)
    assert mixed == pytest.approx(fanout.probabilities(fanout.slowest(above, 20)))
    half = fanout.Within(np.array([0, 3]), np.arange(3), row, 1800)
    assert 2 * half.mixed(20, 3) == pytest.approx(mixed)
    quorum = fanout.probabilities(fanout.quorum(above, 15, 20))
    assert within.mixed(20, 3, k=15) == pytest.approx(quorum)
