"""Fan-out of data types: logs mixed by interval, others independent, and their support."""

from __future__ import annotations

import numpy as np
import pytest

import latencykit as lk
from latencykit.analysis.fan_out import fan_outs, sequential
from latencykit.errors import DataNotAvailableError, InvalidArgumentError
from tests.conftest import DATA, log_of_values

SCHEDULED = DATA / "hlog/hdrhistogram-java-ctrlz-a/scheduled.hlog"


def log_of(
    *intervals: np.ndarray, tags: list[int] | None = None, digits: int = 3
) -> lk.HistogramLog:
    """A log of one-second intervals."""
    names = ("",) if tags is None else ("a", "b")
    where = np.arange(len(intervals)) if tags is None else np.arange(len(intervals)) // 2
    return log_of_values(intervals, where, digits=digits, tag_code=tags, tag_names=names)


def test_a_stall_hits_few_users_but_all_their_calls():
    log = lk.read(SCHEDULED)
    mixed, apart = fan_outs(log, [100])[0], fan_outs(log, [100], independent=True)[0]
    assert (mixed.model, apart.model) == ("mixture", "independent")
    assert mixed.above[99] == pytest.approx(0.30, abs=0.01)  # a log that was stopped for 6 s
    assert apart.above[99] == pytest.approx(1 - 0.99**100)


def test_one_call_is_the_source_itself():
    log = lk.read(SCHEDULED)
    whole = log.histogram()
    for p in (1, 50, 75, 90, 99, 99.9, 100):
        assert lk.fan_out(log, 1).percentile(p) == whole.percentile(p)
        assert lk.fan_out(whole, 1).percentile(p) == whole.percentile(p)


def test_several_numbers_are_answered_at_once():
    log = lk.read(SCHEDULED)
    one, ten = lk.fan_out(log, [1, 10])
    assert ten.percentile(90) == lk.fan_out(log, 10).percentile(90) > one.percentile(90)


def test_mixture_agrees_with_drawing_calls():
    rng = np.random.default_rng(2)
    parts = [rng.lognormal(13 + (k == 3), 0.5, 500) for k in range(6)]
    found = lk.fan_out(log_of(*parts), 20)
    drawn = np.concatenate([rng.choice(part, (20_000, 20)).max(1) for part in parts])
    for p in (10, 50, 90):
        assert found.percentile(p) == pytest.approx(np.percentile(drawn, p), rel=0.02)


def test_unlike_layouts_meet_in_one():
    rng = np.random.default_rng(2)
    parts = [rng.lognormal(13, 0.5, 500) for _ in range(4)]
    fine, coarse = log_of(*parts), log_of(*parts, digits=2)
    both = lk.fan_out(fine + coarse, 10)
    assert both.percentile(99) == pytest.approx(lk.fan_out(fine, 10).percentile(99), rel=0.02)


def test_few_requests_an_interval_are_not_flattering():
    """The slowest of a hundred draws from five requests is one of the five: intervals widen."""
    rng = np.random.default_rng(5)
    log = log_of(*[rng.lognormal(13, 0.5, 5) for _ in range(800)])
    found = fan_outs(log, [100])[0]
    assert found.interval == 60
    assert "60 s" in found.note
    assert found.above[99] > 0.5  # 63 % if independent, as these are; 5 % from five requests each
    alone = fan_outs(log, [5000])[0]
    assert alone.model == "independent"
    assert alone.note


def test_tags_of_one_second_are_one_interval():
    rng = np.random.default_rng(5)
    parts = [rng.lognormal(13 + k % 2, 0.5, 400) for k in range(8)]
    tagged = log_of(*parts, tags=[0, 1] * 4)
    merged = log_of(*[np.concatenate(parts[k : k + 2]) for k in range(0, 8, 2)])
    assert lk.fan_out(tagged, 10).percentile(90) == lk.fan_out(merged, 10).percentile(90)


def test_quorum_and_hedge_and_correlation():
    one = lk.Histogram.of(np.random.default_rng(1).lognormal(13, 0.7, 20_000))
    all_of_them, most = fan_outs(one, [10])[0], fan_outs(one, [10], quorum=9)[0]
    assert most.distribution.percentile(99) < all_of_them.distribution.percentile(99)
    pair = fan_outs(one, [10], hedge=95)[0]
    assert pair.added_load == pytest.approx(0.05, abs=0.001)
    assert pair.distribution.percentile(99) < all_of_them.distribution.percentile(99)
    alike = lk.fan_out(one, 10, correlation=1.0)
    assert alike.percentile(99) == one.percentile(99)


def test_shared_stalls_defeat_a_hedge():
    rng = np.random.default_rng(3)
    parts = [rng.lognormal(13, 0.3, 2000) for _ in range(40)]
    parts[7] = parts[7] + 1e9  # one second in which every server is stopped
    log = log_of(*parts)
    together, apart = (lk.fan_out(log, 1, hedge=95, independent=flag) for flag in (False, True))
    assert together.percentile(99) > 1e9
    assert apart.percentile(99) < 1e8


def test_support_is_that_of_one_call():
    found = fan_outs(lk.Histogram.of(np.arange(1, 37_001)), [100])[0]
    assert found.leaf_percentile(99) == pytest.approx(99.98995, abs=1e-5)
    assert found.supported(99)  # it takes 36,700 requests
    assert not found.supported(99.9)
    assert not found.supported(100)
    assert not fan_outs(lk.Histogram.of(np.arange(1, 36_001)), [100])[0].supported(99)


def test_timeouts_are_slower_than_anything_known():
    durations = np.where(np.arange(1000) < 20, 2000.0, 5.0)
    requests = lk.Samples(
        start=np.arange(1000),
        duration=durations,
        outcome=["timeout"] * 20 + ["ok"] * 980,
        unit="ms",
    )
    found = fan_outs(requests, [1, 100])
    assert not found[0].distribution.at_least(90)
    assert found[1].distribution.at_least(50)
    assert not found[1].supported(50)
    assert found[1].distribution.to_unit("ms").percentile(50) == pytest.approx(2000.0, rel=1e-3)


def test_samples_know_when():
    slow = np.where(np.arange(20_000) // 1000 == 4, 900, 1)
    requests = lk.Samples(start=np.arange(20_000), duration=slow, unit="ms")
    assert fan_outs(requests, [100])[0].model == "mixture"
    assert fan_outs(requests.select(np.arange(20_000)), [100], independent=True)[0].above[
        99
    ] == pytest.approx(0.634, abs=1e-3)


@pytest.mark.slow
def test_a_sequence_of_calls():
    found = sequential(lk.Histogram.of([1_000] * 99 + [1_000_000]), 100)
    assert found.distribution.min <= 100_000 <= found.distribution.percentile(1)
    assert 1.09e6 < found.distribution.percentile(50) < 1.11e6  # 63 % have at least one slow call
    assert found.distribution.percentile(30) < 1.2e5
    assert not found.supported(99)


@pytest.mark.parametrize(
    ("numbers", "options"),
    [([0], {}), ([-3], {}), ([], {}), ([3], {"quorum": 4}), ([3], {"quorum": 0}),
     ([3], {"correlation": 2}),
     ([3], {"hedge": 101}), ([3], {"hedge": -1})],
)  # fmt: skip
def test_impossible_questions(numbers, options):
    with pytest.raises(InvalidArgumentError):
        fan_outs(lk.Histogram.of([1, 2, 3]), numbers, **options)


def test_nothing_to_fan_out():
    with pytest.raises(DataNotAvailableError, match="full distribution"):
        lk.fan_out(lk.Summary({"mean": 1.0}), 10)
    with pytest.raises(DataNotAvailableError, match="nothing was counted"):
        lk.fan_out(lk.Histogram.of([]), 10)
    with pytest.raises(InvalidArgumentError, match="takes data"):
        lk.fan_out([1, 2, 3], 10)
    with pytest.raises(InvalidArgumentError, match="which calls are slow together"):
        lk.fan_out(lk.read(SCHEDULED), 10, correlation=0.5)
    with pytest.raises(InvalidArgumentError, match="at least 1"):
        sequential(lk.Histogram.of([1]), 0)


def test_a_model_answers_as_a_histogram_does():
    one = lk.Histogram.of(np.random.default_rng(1).lognormal(13, 0.7, 20_000))
    same = lk.fan_out(one, 1)
    for name in ("min", "max", "mean", "std"):
        assert getattr(same, name) == pytest.approx(getattr(one, name), rel=1e-3)
    assert same.percentile_of(1e6) == pytest.approx(one.percentile_of(1e6))
    assert same.percentiles([50, 99]).value.tolist() == one.percentile([50, 99]).tolist()
    assert not same.percentiles([50]).at_least.any()
    assert repr(same).startswith("Distribution(p50 ")
