"""The slowest of n: published tables, other models, and logs whose intervals are mixed."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from latencykit.analysis import fan_out as fanout
from latencykit.errors import InvalidArgumentError

# Tene, "MOST page loads will experience the 99%'ile server response": requests per page, share that
# sees worse


def test_hundred_calls_with_one_bad_in_a_thousand() -> None:
    # so p90 stays fast
    assert 100 * fanout.probability_of_slow(99.9, 100) == pytest.approx(9.5208, abs=1e-4)
    assert fanout.landing_percentile(99.9, 105) > 90 > fanout.landing_percentile(99.9, 106)


@pytest.mark.parametrize(
    ("n", "half", "most"),
    [(10, 93.30, 99.8995), (40, 98.28, 99.9749), (100, 99.309, 99.98995), (1000, 99.931, 99.99899)],
)
def test_the_inverse(n: int, half: float, most: float) -> None:
    assert fanout.leaf_percentile([50, 99], n) == pytest.approx([half, most], abs=5e-3)
    assert fanout.landing_percentile(fanout.leaf_percentile([50, 99], n), n) == pytest.approx(
        [50, 99]
    )


def test_samples_needed() -> None:
    needed = [fanout.samples_needed(p) for p in (99, 99.9, 99.99, 99.999, 99.9999)]
    assert needed == [1_000, 10_000, 100_000, 1_000_000, 10_000_000]
    assert fanout.samples_needed(float(fanout.leaf_percentile(99, 100))) == pytest.approx(
        99_500, rel=2e-3
    )


def test_tail_at_scale() -> None:
    assert fanout.probability_of_slow(99, 100) == pytest.approx(0.634, abs=5e-4)
    assert fanout.probability_of_slow(99.99, 2000) == pytest.approx(0.181, abs=5e-4)


def sample() -> tuple[np.ndarray, np.ndarray]:
    values = np.sort(np.random.default_rng(12).lognormal(sigma=0.8, size=2000))
    return values, fanout.survival(np.ones(2000, np.int64))


def test_the_slowest_and_the_quorum_agree_with_drawing() -> None:
    values, above = sample()
    draws = np.sort(np.random.default_rng(0).choice(values, (40_000, 50)), axis=1)
    for found, drawn in (
        (fanout.slowest(above, 50), draws[:, -1]),
        (fanout.quorum(above, 45, 50), draws[:, 44]),
    ):
        p99 = values[np.searchsorted(-found, -0.01, "left")]
        assert p99 == pytest.approx(np.quantile(drawn, 0.99), rel=0.03)


def test_quorum_is_the_binomial_tail() -> None:
    above = np.array([0.9, 0.3, 1e-3, 0.0])
    expected = 1 - scipy.stats.binom.sf(44, 50, 1 - above)
    assert fanout.quorum(above, 45, 50) == pytest.approx(expected, abs=1e-12)
    assert fanout.quorum(above, 50, 50) == pytest.approx(fanout.slowest(above, 50), rel=1e-9)
    assert fanout.quorum(above, 1, 2) == pytest.approx(above**2, rel=1e-9)
    assert fanout.leaf_percentile(99, 50, k=45) == pytest.approx(
        100 * (1 - scipy.stats.beta.isf(0.99, 6, 45)), abs=1e-6
    )


def test_intervals_alike_are_independent_calls_and_one_interval_is_too() -> None:
    rng = np.random.default_rng(9)
    row = rng.multinomial(900, [0.7, 0.2, 0.1])
    indptr, index = np.array([0, 3, 6]), np.tile(np.arange(3), 2)
    within = fanout.Within(indptr, index, np.tile(row, 2), 1800)
    mixed = within.mixed(20, 3)
    assert mixed == pytest.approx(fanout.probabilities(fanout.slowest(fanout.survival(row), 20)))
    half = fanout.Within(np.array([0, 3]), np.arange(3), row, 1800)
    assert 2 * half.mixed(20, 3) == pytest.approx(mixed)
    assert within.mixed(20, 3, k=15) == pytest.approx(
        fanout.probabilities(fanout.quorum(fanout.survival(row), 15, 20))
    )


def test_refuses_what_means_nothing() -> None:
    for wrong in (
        lambda: fanout.slowest([0.1], 0),
        lambda: fanout.quorum([0.1], 6, 5),
        lambda: fanout.samples_needed(100),
    ):
        with pytest.raises(InvalidArgumentError):
            wrong()
