"""Goodput and times between tokens: the intervals hold the truth though requests are correlated."""

from __future__ import annotations

import numpy as np
import pytest

import latencykit as lk
from latencykit.analysis.slo import SLO, joint_share

LIMITS = {"ttft": ("99=300ms", 0.3), "itl": ("99=30ms", 0.03), "e2el": ("99=700ms", 0.7)}


def world(rng: np.random.Generator, number: int, rho: float) -> dict[str, tuple]:
    """Latencies (s) and request of each row; load wanders slowly, tokens of a request are alike."""
    load = np.empty(number)
    load[0] = rng.normal()
    for k, step in enumerate(rng.normal(0, np.sqrt(1 - rho**2), number - 1), 1):
        load[k] = rho * load[k - 1] + step
    each = np.arange(number)
    of_token = np.repeat(each, rng.integers(5, 40, number))
    ttft = np.exp(-2 + 0.5 * load + 0.3 * rng.normal(size=number))
    level = np.exp(-4.5 + 0.3 * load + 0.3 * rng.normal(size=number))
    itl = level[of_token] * np.exp(0.3 * rng.normal(size=of_token.size))
    e2el = ttft + np.bincount(of_token, itl, number)
    return {"ttft": (ttft, each), "itl": (itl, of_token), "e2el": (e2el, each)}


def goodput(rows: dict[str, tuple]) -> float:
    good = np.ones(rows["ttft"][0].size, bool)
    for name, (latency, request) in rows.items():
        good[request[latency > LIMITS[name][1]]] = False
    return float(good.mean())


@pytest.mark.slow
@pytest.mark.parametrize(("rho", "number"), [(0.0, 400), (0.5, 400), (0.9, 2000)])
def test_intervals_hold_the_truth(rho, number):
    long = world(np.random.default_rng(99), 60_000, rho)
    share, p90 = goodput(long), np.percentile(long["itl"][0], 90) * 1e9
    rng, held, given, runs = np.random.default_rng(1), 0, 0, 25
    for _ in range(runs):
        samples = {
            name: lk.Samples(start=request * 1e8, duration=latency * 1e9).with_request(request)
            for name, (latency, request) in world(rng, number, rho).items()
        }
        limits = {name: (samples[name], SLO.parse(LIMITS[name][0])) for name in LIMITS}
        row = joint_share(limits, 0.5)
        (between,), _ = samples["itl"].evidence().rows((90.0,))
        ends = [(row.low, row.high, share), (between.low or 0, between.high or np.inf, p90)]
        for low, high, truth in ends:
            given += low > 0 and np.isfinite(high)
            held += low <= truth <= high
    assert held >= 0.93 * 2 * runs
    assert given >= runs
