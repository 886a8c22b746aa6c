"""Requests of several files: one series of requests, by the clock."""

from __future__ import annotations

import numpy as np
import pytest

import latencykit as lk


def test_requests_stay_requests() -> None:
    rng = np.random.default_rng(1)
    whole = lk.Samples(
        start=np.sort(rng.uniform(1.7e18, 1.7e18 + 60e9, 3000)),
        duration=rng.exponential(1e6, 3000),
        connection=rng.integers(4, size=3000),
        endpoint=["/cart", "/pay", "/"] * 1000,
    )
    halves = [whole.select(np.arange(k, 3000, 2)) for k in (0, 1)]
    joined = lk.merge(halves)
    assert isinstance(joined, lk.Samples)
    assert np.array_equal(joined.start, whole.start)
    assert np.array_equal(joined.duration, whole.duration)
    assert joined.columns["endpoint"].tolist() == whole.columns["endpoint"].tolist()
    assert np.unique(joined.connection).size == 8  # other connections, in another file
    assert joined.evidence().doubts() == whole.evidence().doubts()


def test_one_incident_is_one_finding() -> None:
    """Two load generators that wait for one frozen server."""
    server = lk.simulate.Server("1ms", stalls=[lk.simulate.Stall(10, 4)], ideal=True)
    parts = [lk.simulate.paced_loop(server, rate=100, duration=30, connections=4) for _ in range(2)]
    found = lk.diagnose(lk.merge(parts))
    assert found.verdict == "omits"
    assert len(found.stalls) == 1
    assert found.stalls.missing.sum() == pytest.approx(2 * 4 * 100, rel=0.05)


def test_failures_and_dates() -> None:
    good = lk.Samples(start=[0, 10], duration=[1, 2], unit="ms")
    bad = lk.Samples(start=[5], duration=[3], unit="ms", outcome=["error"])
    both = lk.merge([good, bad])
    assert both.good.tolist() == [True, False, True]
    assert both.histogram().run.failed == 1
    dated = lk.Samples(start=[1_700_000_000_000], duration=[3], unit="ms")
    assert isinstance(lk.merge([good, dated]), lk.Histogram)  # nothing tells when one began
    assert len(lk.merge([good, dated], align="relative")) == 3
