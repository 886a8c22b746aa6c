"""Hedged requests and sequences of calls."""

from __future__ import annotations

import numpy as np
import pytest

from latencykit.analysis.fan_out import hedged, sum_of, survival
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
    found = sum_of(values, values, np.full(values.size, 1 / values.size), 20)
    low, high = found.quantile([0.5, 0.99])
    assert ((high - low > 0) & (high - low <= 20 * found.step)).all()
    drawn = np.random.default_rng(4).choice(values, (100_000, 20)).sum(axis=1)
    assert np.quantile(drawn, [0.5, 0.99]) == pytest.approx(low, rel=0.01)


def test_a_sum_is_exact_on_its_grid() -> None:
    coin = np.array([0.0, 1.0])
    found = sum_of(coin, coin, np.array([0.5, 0.5]), 2)
    assert found.slow[:: int(1 / found.step)] == pytest.approx([0.25, 0.5, 0.25])
    assert found.fast == pytest.approx(found.slow)


def test_limits() -> None:
    one = np.array([1.0])
    with pytest.raises(InputTooLargeError, match="5,000,000 calls"):
        sum_of(one, one, one, 5_000_000)
    with pytest.raises(InvalidArgumentError, match="finite"):
        sum_of(one, np.array([np.inf]), one, 2)
    with pytest.raises(InvalidArgumentError):
        hedged(one, np.array([0.0]), -1.0)
    with pytest.raises(InvalidArgumentError):
        hedged(one, np.array([0.0]), 1.0, shared=2.0)
