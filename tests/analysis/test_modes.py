"""Modes: those that are there, and none in distributions that have one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

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


def _timed(values):
    start = np.arange(values.size) * 5_000_000
    return lk.Samples(start=start, duration=values.astype(np.int64))


@pytest.mark.parametrize("seconds", [3, 10, 60])
def test_a_drift_has_no_modes(seconds):
    """AR(1) over 120 s at 200 requests per second, with a noise of 2 %."""
    named = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        kept = np.exp(-1 / (200 * seconds))
        steps = rng.normal(0, np.sqrt(1 - kept**2), 24_000)
        level = lfilter([1], [1, -kept], np.append(rng.normal(), steps))[1:]
        data = _timed(np.exp(14 + 0.3 * level + 0.02 * rng.normal(size=24_000)))
        named += len(find_modes(data.histogram(), data.evidence())) > 1
    assert named == 0


def test_modes_of_requests_with_times_are_found():
    rng, found = np.random.default_rng(3), 0
    for _ in range(40):
        values = rng.lognormal(14, 0.1, 10_000)
        values[rng.random(values.size) < 0.02] *= 2
        data = _timed(values)
        found += len(find_modes(data.histogram(), data.evidence())) == 2
    assert found >= 36


def test_two_constants_and_wide_buckets():
    assert find_modes(lk.Histogram.of([1e6] * 900 + [20e6] * 100))[1].share == 0.1
    wide = lk.Histogram.from_buckets([1e6, 5e6, 25e6], [5e6, 25e6, 125e6], [90, 1, 60])
    assert find_modes(wide) == []
