"""Stalls: where they lie, how many requests they cost, and what only looks like one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import latencykit as lk
from latencykit.analysis.period import period_of
from latencykit.analysis.stalls import WorkFold
from latencykit.core.histogram_log import scan
from latencykit.errors import DataNotAvailableError
from latencykit.simulate.generators import fixed, open_loop, paced_loop, poisson
from latencykit.simulate.server import Server, Stall, exponential, mixture

TWO = Server(exponential("1ms"), servers=8, stalls=[Stall(3, 2), Stall(12.25, 0.5)])


def two_stalls(loop: str) -> lk.Samples:
    paced = loop == "paced"
    return paced_loop(TWO, 200, 20, connections=4) if paced else open_loop(TWO, fixed(200, 20))


@pytest.mark.parametrize("loop", ["open", "paced"])
def test_stalls_of_samples(loop: str) -> None:
    samples = two_stalls(loop)
    later = lk.find_stalls(samples.between(2.5))["start"]  # a selection keeps the clock of its run
    assert later.tolist() == pytest.approx([3, 12.25], abs=0.03)
    found = lk.find_stalls(samples)
    assert found.columns.tolist() == ["start", "end", "duration", "worst", "missing", "share"]
    assert found["start"].tolist() == pytest.approx([3, 12.25], abs=0.03)
    assert found["duration"].tolist() == pytest.approx([2, 0.5], abs=0.03)
    assert (found["worst"] / 1e9).tolist() == pytest.approx([2, 0.5], abs=0.03)
    missing = [0, 0] if loop == "open" else [396, 96]
    assert found["missing"].tolist() == pytest.approx(missing, abs=4)
    assert (found["share"] > 0.9).all()


@pytest.mark.parametrize("loop", ["open", "paced"])
@pytest.mark.parametrize("interval", ["1s", "250ms"])
def test_stalls_of_a_log_are_known_to_an_interval(loop: str, interval: str) -> None:
    found = lk.find_stalls(two_stalls(loop).to_log(interval))
    width = 1.0 if interval == "1s" else 0.25
    assert found["start"].tolist() == pytest.approx([3, 12.25], abs=width)
    assert found["duration"].tolist() == pytest.approx([2, 0.5], rel=0.02)
    missing = [0, 0] if loop == "open" else [398, 98]
    assert found["missing"].tolist() == pytest.approx(missing, abs=6)


def test_one_shard_is_distinguished_from_the_whole() -> None:
    server = Server(exponential("1ms"), servers=8, sharded=True, stalls=[Stall(10, 3, shard=2)])
    found = lk.find_stalls(open_loop(server, poisson(200, 30, seed=4)))
    assert found["start"].tolist() == pytest.approx([10], abs=0.1)
    assert found["duration"].tolist() == pytest.approx([3], abs=0.1)
    assert 0.05 < found["share"][0] < 0.25


def test_a_backlog_that_drains_is_not_a_second_stall() -> None:
    server = Server(exponential("1ms"), stalls=[Stall(10, 3)])
    found = lk.find_stalls(open_loop(server, poisson(300, 30, seed=2)))
    assert found["start"].tolist() == pytest.approx([10], abs=0.05)
    assert found["duration"].tolist() == pytest.approx([3], abs=0.05)


def test_independent_slow_requests_are_not_a_stall() -> None:
    pool = Server(mixture((0.999, "2ms"), (0.001, "2s")), ideal=True)
    assert len(lk.find_stalls(open_loop(pool, poisson(300, 30, seed=1)))) == 0


@pytest.mark.parametrize("waits", [True, False])
def test_an_interval_that_ended_late_is_a_stall_if_a_request_waited(waits: bool) -> None:
    world = open_loop(Server("1ms"), fixed(100, 10))
    took = np.where(waits & (np.arange(1000) == 409), 900_000_000, world.duration)
    log = lk.Samples(start=world.start, duration=took).to_log("1s")
    late = lk.HistogramLog(
        np.where(np.arange(10) > 4, log.starts + 0.8, log.starts),
        np.where(np.arange(10) == 4, 1.8, 1.0),
        log._parts,
    )
    found = lk.find_stalls(late)
    assert found["start"].tolist() == pytest.approx([5.0] if waits else [], abs=0.11)
    assert found["duration"].tolist() == pytest.approx([0.8] if waits else [], abs=0.11)


def test_a_period_is_named_from_eight_stalls_on() -> None:
    rng = np.random.default_rng(3)
    at = 10.3 * np.arange(1, 30) + rng.normal(0, 0.5, 29)
    assert period_of(at, 310).seconds == pytest.approx(10.3, abs=0.1)
    assert period_of(at[:7], 80) is None
    false = sum(period_of(np.sort(rng.uniform(0, 300, 30)), 300) is not None for _ in range(100))
    assert false <= 5
    stalls = [Stall(2 + 3 * k, 0.3) for k in range(9)]
    notes = lk.find_stalls(paced_loop(Server("1ms", stalls=stalls), 200, 30)).attrs["notes"]
    assert notes[0].startswith("9 stalls occur about every 3 s")


def test_a_stall_that_delayed_the_logger_too_is_one() -> None:
    log = lk.read(Path(__file__).parents[2] / "data" / "jhiccup-v2.hlog", unit="ns")
    found = lk.find_stalls(log)
    # where the stretched intervals end
    assert found["end"].tolist() == pytest.approx([10.883, 30.593, 50.081], abs=0.001)
    assert found["duration"].tolist() == pytest.approx((found["worst"] / 1e9).tolist())


def test_what_knows_no_time_is_refused() -> None:
    with pytest.raises(DataNotAvailableError, match="start times"):
        lk.find_stalls(lk.Histogram.of([1, 2]))
    with pytest.raises(DataNotAvailableError):
        lk.find_stalls(lk.Samples(duration=[1, 2]))
    assert len(lk.find_stalls(lk.Samples(start=[0], duration=[1]))) == 0


def test_the_period_of_many_stalls_is_found_by_the_first_thousand() -> None:
    rng = np.random.default_rng(4)
    found = period_of(np.arange(20_000) * 12.5 + rng.normal(0, 0.8, 20_000), 250_000)
    assert (found.events, found.seconds) == (20_000, pytest.approx(12.5, rel=0.001))


def of_three_lengths(rate: float, stalls: tuple[float, ...] = ()) -> lk.HistogramLog:
    """Intervals of 1, 10 and 3 s, 300 s of each; requests that arrive during a stall of 1 s wait."""
    rng, parts = np.random.default_rng(8), []
    for width, first in (("1s", 0.0), ("10s", 300.0), ("3s", 600.0)):
        start = np.sort(rng.random(rng.poisson(300 * rate))) * 300
        took = rng.lognormal(14.5, 0.5, start.size)
        for at in stalls:
            within = (start > at) & (start < at + 1)
            took[within] = (at + 1 - start[within]) * 1e9
        log = lk.Samples(start=start * 1e9, duration=took).to_log(width)
        parts.append(log.with_run(start=1.7e9 + first))
    return lk.merge(parts)


@pytest.mark.parametrize("rate", [2.0, 100.0])
def test_intervals_that_were_meant_to_be_longer_are_not_stalls(rate: float) -> None:
    log = of_three_lengths(rate)
    assert np.ptp(log.lengths) > 5
    assert not len(lk.find_stalls(log))


def test_stalls_are_found_in_intervals_of_every_length() -> None:
    at = (20.3, 104.5, 222.2)
    found = lk.find_stalls(of_three_lengths(100.0, at))
    expected = [first + begin for first in (0, 300, 600) for begin in at]
    assert found["start"].tolist() == pytest.approx(expected, abs=8)
    assert found["duration"].tolist() == pytest.approx([1.0] * 9, rel=0.05)
    assert not found["missing"].any()
    assert not found.attrs["notes"]


def _whole_seconds(seed: int, stall: float = 0.0, spread: float = 1.2) -> lk.Samples:
    """An access log of 200 requests per second for five minutes: ends are stamped in seconds."""
    rng = np.random.default_rng(seed)
    start = np.sort(rng.uniform(0, 300, rng.poisson(60_000)))
    took = rng.lognormal(np.log(0.02), spread, start.size)
    stalled = (start > 100) & (start < 100 + stall)
    took[stalled] = np.maximum(took[stalled], 100 + stall - start[stalled])
    begin = np.floor(start + took) - took
    return lk.Samples(start=(begin * 1e9).astype(np.int64), duration=(took * 1e9).astype(np.int64))


@pytest.mark.parametrize("seed", range(8))
def test_stamps_of_whole_seconds_make_no_stalls(seed):
    data = _whole_seconds(seed, spread=0.6 + 0.1 * seed)
    assert lk.find_stalls(data).empty
    assert lk.diagnose(data).verdict != "omits"


def test_a_stall_of_many_stamps_is_found():
    found = lk.find_stalls(_whole_seconds(1, stall=8.0, spread=0.3))
    assert found["duration"].max() == pytest.approx(8.0, abs=1.5)


def test_work_and_squares_are_those_of_each_interval():
    log = open_loop(TWO, poisson(5, 20), seed=1).to_log("100ms")  # some intervals are empty
    fold = WorkFold(len(log))
    scan(log, fold)
    alone = [log._view(np.array([row])).histogram() for row in range(len(log))]
    counts, means, stds = (
        np.array([getattr(h, name) for h in alone]) for name in ("count", "mean", "std")
    )
    assert not counts.all()
    assert fold.work == pytest.approx(np.where(counts, counts * means, 0))
    assert fold.squares == pytest.approx(np.where(counts, counts * (means**2 + stds**2), 0))
