"""Confidence intervals of dependent requests contain the truth or are not given; fixed seeds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import latencykit as lk
from latencykit import simulate
from tests.benchmarks import worlds
from tests.benchmarks.worlds import Drift, Modes, Stalls, World, autoregression, requests

PERCENTILES = (50.0, 90.0, 99.0, 99.9)
RUNS = 12

DRAWS = 500_000

CELLS = [
    (World(rate=40.0, service=worlds.exponential, draws=DRAWS), 120.0),
    (World(rate=200.0, service=worlds.pareto, draws=DRAWS), 60.0),
    (Drift(time=5.0, rate=50.0, draws=DRAWS), 200.0),
    (Drift(time=20.0, rate=30.0, draws=DRAWS), 600.0),
    (Stalls(per_minute=3.0, length=0.6, rate=60.0, draws=DRAWS), 200.0),
    (Stalls(per_minute=0.4, length=3.0, constant=True, rate=40.0, draws=DRAWS), 120.0),
    (Modes(usual=8.0, bad=2.0, rate=50.0, draws=DRAWS), 400.0),
]


def samples_of(world: World, seed: Any, length: float) -> lk.Samples:
    return world.samples(np.random.default_rng(seed), length)


def log_of(world: World, seed: Any, length: float) -> lk.HistogramLog:
    return samples_of(world, seed, length).to_log("1s")


@pytest.fixture(scope="module")
def asked() -> list[tuple[World, list[lk.HistogramLog]]]:
    """Some runs of every world."""
    return [
        (world, [log_of(world, [run, 5], length) for run in range(RUNS)]) for world, length in CELLS
    ]


@pytest.mark.slow
def test_intervals_hold_the_truth(asked: list[tuple[World, list[lk.HistogramLog]]]) -> None:
    """Each percentile of each run has one; rare stalls that a run misses do not belong to it."""
    given = wrong = 0
    for world, logs in asked:
        for log in logs:
            for row in log.evidence().rows((50.0, 90.0))[0]:
                truth = world.percentile(row.percentile) * 1e9
                given += not math.isnan(row.low)
                wrong += row.low > truth or row.high < truth
    assert given == 2 * RUNS * len(CELLS)
    assert wrong <= 0.08 * given


@pytest.mark.slow
def test_sure_outcomes_are_right(asked: list[tuple[World, list[lk.HistogramLog]]]) -> None:
    wrong = sure = decided = 0
    for world, logs in asked:
        for factor in (0.5, 0.95, 1.05, 2.0):
            limits = {f"p{p:g}": factor * world.percentile(p) * 1e9 for p in PERCENTILES[:3]}
            slo = lk.SLO.parse(",".join(f"{name}={limit:.0f}ns" for name, limit in limits.items()))
            rows = [row for log in logs for row in slo.check(log)]
            decided += sum(row.outcome != "unknown" for row in rows)
            sure += sum(row.sure for row in rows)
            wrong += sum(row.sure and (row.outcome == "met") != (factor > 1) for row in rows)
    assert decided > 0.99 * 12 * RUNS * len(CELLS)
    assert sure > 0.25 * 12 * RUNS * len(CELLS)
    assert wrong <= 0.03 * sure


@pytest.mark.slow
def test_independent_requests_keep_their_intervals() -> None:
    world = World(rate=100.0)
    long = [samples_of(world, run, 1600.0).evidence() for run in range(6)]
    rows = [row for one in long for row in one.rows(PERCENTILES)[0]]
    assert sum(math.isfinite(row.high) for row in rows) >= 23
    wide = [math.log(row.high / row.low) for row in rows if math.isfinite(row.high)]
    plain = [
        math.log(row.high / row.low)
        for one in long
        for row in one.whole.percentile_rows(PERCENTILES)
    ]
    assert np.median(wide) < 1.8 * np.median(plain)
    assert all(math.isfinite(one.mean()[1]) for one in long)


def test_a_quiet_run_is_bounded_by_what_it_shows() -> None:
    """Stalls of 5 s every five minutes: runs without any look like independent requests."""
    quiet = samples_of(World(rate=50.0), 1, 300.0).evidence()
    rows, why = quiet.rows([50, 90, 99])
    assert [math.isfinite(row.high) for row in rows] == [True] * 3
    assert [row.supported for row in rows] == [True] * 3
    assert not why
    assert math.isfinite(quiet.mean()[1])
    assert math.isfinite(quiet.mean("tm90")[1])


def test_a_percentile_that_few_stalls_carry_is_not_supported() -> None:
    world = Stalls(per_minute=1.0, length=1.0, rate=50.0)
    for run in range(5):
        evidence = log_of(world, run, 300.0).evidence()
        row = evidence.rows([99])[0][0]
        assert not row.supported
        assert evidence.highest_supported_percentile() < 99
        assert row.cause in ("one slow period", "parts differ")


def test_the_headline_is_what_the_rows_say() -> None:
    evidence = log_of(Stalls(per_minute=6.0, length=0.3), 3, 600.0).evidence()
    highest = evidence.highest_supported_percentile()
    places = [highest - 0.01, *(100 - (100 - highest) * 10.0**-k for k in (0.05, 0.3, 1.0))]
    assert [row.supported for row in evidence.rows(places)[0]] == [True, False, False, False]


def test_no_row_beyond_the_headline_is_supported() -> None:
    """A short log with a burst: events may grow again far out, but one place decides."""
    world = Stalls(per_minute=8.0, length=0.4, rate=300.0)
    for run in range(4):
        evidence = log_of(world, run, 24.0).evidence()
        limit = evidence.supported_up_to()
        rows = evidence.rows([50, 75, 90, 95, 99, 99.5, 99.9, 99.99])[0]
        assert not [row.percentile for row in rows if row.supported and row.percentile > limit]


def test_a_drift_as_slow_as_the_run_leaves_nothing() -> None:
    log = log_of(Drift(time=30.0, rate=40.0), 2, 120.0)
    row, tail = log.evidence().rows([50, 99])[0]
    assert row.high / row.low > 2
    assert not row.supported
    assert not tail.supported


@pytest.mark.slow
def test_bins_of_another_length_say_the_same() -> None:
    world = Drift(time=3.0, rate=60.0)
    samples = samples_of(world, 8, 1200.0)
    ends = [
        samples.evidence().rows([50])[0][0],
        *(samples.to_log(width).evidence().rows([50])[0][0] for width in ("100ms", "5s")),
    ]
    spans = [math.log(row.high / row.low) for row in ends]
    assert max(spans) < 1.6 * min(spans)


def test_a_timeout_counts_as_slower_than_anything() -> None:
    rng = np.random.default_rng(4)
    start = np.sort(rng.random(20_000)) * 100e9
    outcome = np.where(rng.random(20_000) < 0.03, 2, 0)
    latency = np.where(outcome == 2, 5e9, rng.lognormal(14, 1, 20_000))
    evidence = lk.Samples(start=start, duration=latency, outcome=outcome).evidence()
    assert evidence.jackknife is not None
    assert evidence.jackknife.table.sum() == 20_000
    row = evidence.rows([95])[0][0]
    assert row.low < row.value < row.high < math.inf
    assert evidence.rows([98])[0][0].high == math.inf


@pytest.mark.slow
def test_pairs_of_one_system_raise_no_alarm_and_changes_do() -> None:
    alarms = seen = 0
    for world in (Drift(time=7.0), Stalls(per_minute=2.0, length=0.7), World()):
        for run in range(6):
            rng = np.random.default_rng([run, 1])
            base, new, slower = (
                world.samples(rng, 200.0, factor).to_log("1s") for factor in (1.0, 1.0, 1.4)
            )
            alarms += bool(lk.compare(base, new, also=["p99"]).failed(["p99 > +5%"]))
            alarms += lk.compare(base, new, run_noise=0.03).verdict in ("better", "worse", "mixed")
            worse = lk.compare(base, slower, run_noise=0.03).verdict == "worse"
            seen += type(world) is World and worse
    assert alarms <= 2  # 5 % of 36
    assert seen == 6


@pytest.mark.slow
def test_medians_of_briefly_correlated_runs_are_nearly_as_sure_as_theory_allows() -> None:
    length, spread, per_second = 300, 0.5, 10
    keep = math.exp(-1 / per_second)  # a correlation of one second
    widths = []
    for seed in range(40):
        rng = np.random.default_rng([seed, 77])
        level = spread * autoregression(rng, length * per_second, keep)
        start = np.sort(rng.random(100 * length)) * length
        took = np.exp(level[(start * per_second).astype(int)] + rng.normal(0, 0.5, start.size))
        log = requests(start, 5e-3 * took).to_log("1s")
        (row,), _ = log.evidence().rows([50.0])
        widths.append(math.log(row.high / row.low))
    known = 2 * 1.96 * math.sqrt(spread**2 * 2 / length)  # the integral of the correlation is 1 s
    assert known < np.median(widths) < 1.45 * known


@pytest.mark.parametrize("service", ["1ms", simulate.lognormal("1ms", 0.5)])
@pytest.mark.parametrize("stall", [[], [simulate.Stall(100, 100)]])
def test_one_request_of_a_minute_makes_no_other_uncertain(service, stall) -> None:
    """The textbook's freeze: all but one of 20,001 requests took 1 ms, in every second."""
    run = simulate.paced_loop(simulate.Server(service, stalls=stall), 100, "300s", connections=1)
    for data in (run, run.to_log("1s")):
        rows = data.evidence().supported_rows([50.0, 90.0, 99.0, 99.9])
        assert [row.cause for row in rows] == [""] * 4
