"""Modes: those that are there, and none in distributions that have one."""

from __future__ import annotations

import numpy as np
import pytest

import latencykit as lk
from latencykit.analysis.modes import find_modes

pytestmark = pytest.mark.slow


def lognormal(rng, count):
    return rng.lognormal(14, rng.uniform(0.1, 2), count)


def pareto(rng, count):
    return 1e6 * (1 + rng.pareto(rng.uniform(1, 3), count))


def stepped(rng, count):
    step = 10 ** rng.uniform(3, 6)
    return step * np.maximum(np.rint(rng.lognormal(14, rng.uniform(0.1, 1.5), count) / step), 1)


@pytest.mark.parametrize("world", [lognormal, pareto, stepped])
def test_one_mode_is_one(world):
    rng = np.random.default_rng(2)
    for _ in range(100):
        values = world(rng, int(10 ** rng.uniform(2.5, 5)))
        assert len(find_modes(lk.Histogram.of(values))) == 1


@pytest.mark.parametrize(
    ("weight", "ratio", "spread"), [(0.02, 2, 0.1), (0.1, 2, 0.1), (0.02, 3, 0.15), (0.5, 20, 0.3)]
)
def test_two_modes_are_two(weight, ratio, spread):
    rng, found = np.random.default_rng(3), 0
    for _ in range(40):
        values = rng.lognormal(14, spread, 10_000)
        values[rng.random(values.size) < weight] *= ratio
        modes = find_modes(lk.Histogram.of(values))
        found += len(modes) == 2
        if len(modes) == 2:
            assert modes[1].share == pytest.approx(weight, rel=0.4)
            assert modes[1].value / modes[0].value == pytest.approx(ratio, rel=0.1)
    assert found >= 36


def test_two_constants_and_wide_buckets():
    assert find_modes(lk.Histogram.of([1e6] * 900 + [20e6] * 100))[1].share == 0.1
    wide = lk.Histogram.from_buckets([1e6, 5e6, 25e6], [5e6, 25e6, 125e6], [90, 1, 60])
    assert find_modes(wide) == []
