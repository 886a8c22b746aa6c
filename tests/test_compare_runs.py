"""Comparison: one run per side shows little, several show more, unlike ones are refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

import latencykit as lk
from latencykit.errors import DataNotAvailableError, IncompatibleDataError, InvalidArgumentError


def run_of(
    seed: int, factor: float = 1.0, size: int = 4000, noise: float = 0.03, **facts
) -> lk.Histogram:
    rng = np.random.default_rng(seed)
    luck = float(np.exp(rng.normal(0, noise)))
    return lk.Histogram.of(rng.lognormal(14, 0.5, size) * factor * luck).with_run(**facts)


def side(first: int, number: int, factor: float = 1.0, size: int = 4000) -> list[lk.Histogram]:
    return [run_of(first + k, factor, size) for k in range(number)]


def test_one_run_a_side_concludes_nothing():
    found = lk.compare(run_of(1), run_of(2, 1.5))
    assert (found.basis, found.verdict, found.runs) == ("requests", "inconclusive", (1, 1))
    assert "run-noise" in found.reasons[0]
    assert found.faster < 0.5
    table = found.table
    assert list(table.index)[:3] == ["p50", "p75", "p90"]
    assert table.low["p50"] < table.change["p50"] < table.high["p50"]


def test_only_supported_percentiles_are_compared_unasked():
    names = list(lk.compare(run_of(1), run_of(2)).table.index)
    assert "p99.9" in names  # 4,000 requests support p99.908
    assert "p99.99" not in names
    assert {"p100", "mean", "tm99"} <= set(names)
    asked = lk.compare(run_of(1), run_of(2), percentiles=[99.99]).changes[0]
    assert asked.statistic == "p99.99"
    assert not asked.significant
    assert (asked.low, asked.high) == (-1.0, math.inf)


@pytest.mark.slow
def test_noise_makes_it_a_verdict():
    assert lk.compare(run_of(1), run_of(2, 1.5), run_noise=0.03).verdict == "worse"
    assert lk.compare(run_of(1, 1.5), run_of(2), run_noise=0.03).verdict == "better"
    assert lk.compare(run_of(1), run_of(2), run_noise=0.03).verdict == "inconclusive"
    wide = lk.compare(
        run_of(1, size=40_000, noise=0),
        run_of(2, size=40_000, noise=0),
        run_noise=0.005,
        percentiles=[50],
        margin=0.1,
    )
    assert wide.verdict == "same"


def test_runs_are_the_samples():
    found = lk.compare(side(10, 6), side(20, 6, 1.25))
    assert (found.basis, found.verdict, found.runs) == ("runs", "worse", (6, 6))
    assert math.isnan(found.faster)
    assert lk.compare(side(10, 6), side(20, 6)).verdict != "worse"
    few = lk.compare(side(10, 3), side(20, 3, 3.0))
    assert few.verdict == "inconclusive"
    assert "at least 4 runs" in few.reasons[0]


@pytest.mark.slow
def test_identical_systems_rarely_alarm():
    """3 % between runs, one run with a stall: at most 5 % of comparisons report a change."""
    alarms = 0
    for k in range(60):
        base, new = side(1000 + 20 * k, 5, size=1000), side(1010 + 20 * k, 5, size=1000)
        new[k % 5] = new[k % 5] + lk.Histogram.of(np.linspace(1e6, 2e9, 200))
        alarms += lk.compare(base, new, means=("mean",), percentiles=[50, 90, 99]).verdict in (
            "worse",
            "better",
            "mixed",
        )
    assert alarms <= 6  # 5 % of 60, and what chance adds (p < 0.05)


def test_conditions_fire_on_the_bound():
    found = lk.compare(run_of(1), run_of(2, 1.5))
    assert found.failed(["p50 > +5%", "p50 > +500%", "mean > +1us"]) == ["p50 > +5%", "mean > +1us"]
    assert found.failed(["p50 < -5%"]) == []
    with pytest.raises(InvalidArgumentError, match="was not compared"):
        found.failed(["p99.9999 > 5%"])


@pytest.mark.slow
def test_what_else_differs_is_said():
    base = run_of(1, rate=500.0, connections=10, measure="service")
    new = run_of(2, rate=1000.0, connections=20, measure="response")
    warned = " ".join(lk.compare(base, new).warnings)
    assert "rate" in warned
    assert "connections" in warned
    assert "response" in warned
    assert lk.compare(base, base).warnings == ("both sides have the very same numbers",)
    among = lk.compare([base, new], [base, base]).warnings
    assert any(text.startswith("among the base runs") for text in among)


def test_copies_of_a_run_are_not_further_runs():
    runs = side(1, 3)
    (said,) = lk.compare([*runs, runs[0], runs[1]], side(11, 3)).warnings
    assert said.startswith("2 of the 5 base runs repeat another's very numbers")
    assert lk.compare(runs, side(11, 3)).warnings == ()
    reported_percentiles = [lk.Summary({"mean": 5.0, "p50": 4.0}, unit="ms", count=10)] * 2
    assert lk.compare(reported_percentiles, reported_percentiles).warnings == ()


def test_corrected_counts_have_no_intervals():
    found = lk.compare(
        run_of(1, corrected="tool"), run_of(2, 1.5, corrected="tool"), run_noise=0.01
    )
    assert found.verdict == "inconclusive"
    assert all(not row.significant for row in found.changes)
    assert any("corrected" in text for text in found.reasons)


def test_units_meet_or_not():
    micro = lk.Histogram.of(np.arange(1000, 3000), unit="us")
    nano = lk.Histogram.of(np.arange(1000, 3000) * 1000, unit="ns")
    assert lk.compare(micro, nano).table.change["p50"] == pytest.approx(0, abs=2e-3)
    with pytest.raises(IncompatibleDataError):
        lk.compare(nano, lk.Histogram.of([1, 2, 3], unit="none"))


def test_printed_numbers_are_compared_as_they_are():
    base, new = (lk.Summary({"mean": mean}, {50.0: 2 * mean}, 10) for mean in (10.0, 12.0))
    found = lk.compare(base, new)
    assert [row.statistic for row in found.changes] == ["p50", "mean"]
    assert found.changes[1].change == pytest.approx(0.2)
    assert found.verdict == "inconclusive"
    several = lk.compare(
        [lk.Summary({"mean": 10.0 + k}) for k in range(5)],
        [lk.Summary({"mean": 20.0 + k}) for k in range(5)],
    )
    assert several.verdict == "worse"
    with pytest.raises(DataNotAvailableError, match="no statistic in common"):
        lk.compare(lk.Summary({"mean": 1.0}), lk.Summary({}, {50.0: 1.0}))


@pytest.mark.parametrize(
    "options", [{"confidence": 1.0}, {"run_noise": -0.1}, {"run_noise": 3}, {"margin": -1}]
)
def test_impossible_options(options):
    with pytest.raises(InvalidArgumentError):
        lk.compare(run_of(1), run_of(2), **options)


def test_empty_sides():
    with pytest.raises(InvalidArgumentError, match="new side is empty"):
        lk.compare(run_of(1), [])
    with pytest.raises(DataNotAvailableError):
        lk.compare(run_of(1), lk.Histogram.of([]))


def test_change_points_of_runs():
    runs = side(100, 15) + side(200, 15, 1.3)
    for statistic in ("p50", 90, "mean", "tm99"):
        (found,) = lk.change_points(runs, statistic)
        assert abs(found.position - 15) <= 1
        assert found.change == pytest.approx(0.3, abs=0.1)
    assert lk.change_points(side(100, 20), "p50") == []
    with pytest.raises(DataNotAvailableError, match=r"does not support p99\.999"):
        lk.change_points(runs, "p99.999")
