"""Hedged requests and sequences of calls."""

from __future__ import annotations

import numpy as np
import pytest

from latencykit.analysis.fan_out import Leg, hedged, sum_of, survival
from latencykit.errors import InputTooLargeError, InvalidArgumentError


def at(values: np.ndarray, above: np.ndarray, percentile: float) -> float:
    return float(values[np.flatnonzero(above <= 1 - percentile / 100 + 1e-12)[0]])


@pytest.fixture(scope="module")
def leaf() -> tuple[np.ndarray, np.ndarray]:
    values = np.exp(np.sort(np.random.default_rng(1).normal(size=20_000)))
    return values, survival(np.ones(values.size, np.int64))


def test_a_hedge_at_p95_costs_five_percent(leaf: tuple[np.ndarray, np.ndarray]) -> None:
    values, above = leaf
    found = hedged(values, above, at(values, above, 95))
    assert found.added_load == pytest.approx(0.05, abs=1e-4)
    assert at(values, above, 99) == pytest.approx(10.2, rel=0.03)
    assert at(found.values, found.survival, 99) == pytest.approx(6.6, rel=0.03)
    assert at(found.values, found.survival, 99.9) == pytest.approx(9.3, rel=0.05)


def test_a_hedge_agrees_with_drawing(leaf: tuple[np.ndarray, np.ndarray]) -> None:
    values, above = leaf
    rng, delay = np.random.default_rng(2), 4.0
    first, second = rng.choice(values, (2, 200_000))
    drawn = np.where(first > delay, np.minimum(first, delay + second), first)
    found = hedged(values, above, delay)
    for percentile in (50, 90, 95, 99):
        assert at(found.values, found.survival, percentile) == pytest.approx(
            np.percentile(drawn, percentile), rel=0.03
        )


def test_sums_are_bracketed_by_n_steps() -> None:
    values = np.sort(np.random.default_rng(3).lognormal(size=5000))
    leg = Leg(values, values, np.full(values.size, 1 / values.size), times=20)
    found = sum_of([leg], step=0.05)
    low, high = found.quantile([0.5, 0.99])
    assert (high - low <= 20 * 0.05 + 1e-9).all()
    drawn = np.random.default_rng(4).choice(values, (100_000, 20)).sum(axis=1)
    truth = np.quantile(drawn, [0.5, 0.99])
    assert (low - 0.5 <= truth).all()
    assert (truth <= high + 0.5).all()


def test_a_sum_of_unlike_calls_is_exact_on_a_grid() -> None:
    coin = Leg(np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.array([0.5, 0.5]), times=2)
    slow = Leg(np.array([10.0]), np.array([10.0]), np.array([1.0]))
    found = sum_of([coin, slow], step=1.0)
    assert found.slow[10:13] == pytest.approx([0.25, 0.5, 0.25])
    assert found.fast == pytest.approx(found.slow)
    half = Leg(np.array([1.5]), np.array([1.5]), np.array([1.0]), times=100)
    assert sum_of([half], step=1.0).quantile([0.5]) == ([100.0], [200.0])  # each call rounded


@pytest.mark.slow
def test_the_default_step_is_fine() -> None:
    leg = Leg(np.array([1.0, 6000.0]), np.array([1.0, 6000.0]), np.array([0.999, 0.001]), times=10)
    low, high = sum_of([leg]).quantile([0.5])
    assert high[0] - low[0] <= 0.6
    assert low[0] <= 10 <= high[0]


def test_limits() -> None:
    leg = Leg(np.array([1.0]), np.array([1.0]), np.array([1.0]))
    with pytest.raises(InputTooLargeError, match="wider step"):
        sum_of([leg], step=1e-9)
    with pytest.raises(InvalidArgumentError):
        sum_of([])
    with pytest.raises(InvalidArgumentError):
        hedged(np.array([1.0]), np.array([0.0]), -1.0)
    with pytest.raises(InvalidArgumentError):
        hedged(np.array([1.0]), np.array([0.0]), 1.0, shared=2.0)
