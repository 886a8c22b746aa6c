"""Laws of what is computed, and how often intervals hold the truth."""

from __future__ import annotations

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

import latencykit as lk
from latencykit.analysis.slo import SLO, joint_share
from latencykit.core.jackknife import Jackknife

VALUES = st.lists(st.integers(0, 10**7), min_size=1, max_size=60)
LAYOUTS = st.builds(lk.HdrBuckets, st.integers(0, 4), st.sampled_from([1, 100, 4096]))
PERCENTILES = np.linspace(0, 100, 21)


def counted(values: list[int], layout: lk.HdrBuckets) -> lk.Histogram:
    index, counts = np.unique(layout.index_of(np.asarray(values, np.int64)), return_counts=True)
    return lk.Histogram(layout, index, counts)


@given(VALUES, st.integers(1000, 10**6))
@settings(max_examples=60)
def test_correction_adds_what_its_rule_says_and_takes_nothing_away(values, interval):
    raw = lk.Histogram.of(np.asarray(values, np.int64))
    fixed = lk.correct(lk.Samples(duration=values), f"{interval}ns", force=True)
    assert fixed.count == sum(max(1, value // interval) for value in values)
    assert fixed.max == max(values)
    kept = dict(zip(fixed.index.tolist(), fixed.counts.tolist(), strict=True))
    assert all(
        kept[index] >= count
        for index, count in zip(raw.index.tolist(), raw.counts.tolist(), strict=True)
    )


@given(VALUES, st.lists(st.integers(1, 99), min_size=2, max_size=6, unique=True))
@settings(max_examples=60)
def test_a_trimmed_mean_lies_between_the_extremes_and_rises_with_what_it_keeps(values, tops):
    h = lk.Histogram.of(np.asarray(values, np.int64))
    means = [h.trimmed_mean(f"TM(:{top}%)") for top in sorted(tops)]
    assert (np.diff(means) >= -1e-12 * h.max).all()
    assert h.min <= means[0] * (1 + 1e-12)
    assert means[-1] <= h.max * (1 + 1e-12)
    assert means[-1] <= h.mean * (1 + 1e-12)


@pytest.mark.slow
@given(VALUES, VALUES, LAYOUTS, LAYOUTS)
@settings(max_examples=60)
def test_unlike_layouts_merge_without_loss_whatever_the_order(a, b, one, other):
    x, y = counted(a, one), counted(b, other)
    both, turned = x + y, y + x
    assert both.count == len(a) + len(b)
    assert (both.index.tolist(), both.counts.tolist()) == (
        turned.index.tolist(),
        turned.counts.tolist(),
    )
    found = both.percentile(PERCENTILES)
    assert (np.diff(found) >= 0).all()
    assert (found[0], found[-1]) == (both.min, both.max)


@given(
    VALUES,
    st.lists(st.tuples(st.integers(1, 99), st.integers(0, 10**7)), max_size=4),
    st.integers(0, 5),
    st.data(),
)
@settings(max_examples=60)
def test_percentiles_ascend_whatever_the_source_states(
    values, reported_percentiles, censored, data
):
    """What a tool printed, its extremes and values above a bound, all at once."""
    rows = sorted(dict(reported_percentiles).items())
    shown = np.maximum.accumulate([value for _, value in rows]).tolist() if rows else []
    h = lk.Histogram.of(np.asarray(values, np.int64))
    bound = float(data.draw(st.integers(0, 10**7)))
    reported_stats = {"min": float(min(values)), "max": float(max(values))}
    stated = lk.Histogram(
        h.buckets, h.index, h.counts, "ns", h.run, reported_stats,
        (tuple(float(p) for p, _ in rows), tuple(map(float, shown))), censored,
        bound if censored else float("inf"),
    )  # fmt: skip
    found = stated.percentile(PERCENTILES)
    assert (np.diff(found) >= 0).all()


# ---------------------------------------------------------------- truth

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
@pytest.mark.parametrize(
    ("rho", "number", "runs"), [(0.0, 400, 25), (0.5, 400, 25), (0.9, 2000, 25), (0.9, 400, 240)]
)
def test_intervals_hold_the_truth(rho, number, runs):
    long = world(np.random.default_rng(99), 200_000, rho)
    share, p90 = goodput(long), np.percentile(long["itl"][0], 90) * 1e9
    rng, held, given = np.random.default_rng(1), 0, 0
    for _ in range(runs):
        samples = {
            name: lk.Samples(start=request * 1e8, duration=latency * 1e9).with_request(request)
            for name, (latency, request) in world(rng, number, rho).items()
        }
        limits = {name: (samples[name], SLO.parse(LIMITS[name][0])) for name in LIMITS}
        row = joint_share(limits, 0.5)
        (between,), _ = samples["itl"].evidence().rows((90.0,))
        for low, high, truth in ((row.low, row.high, share), (between.low, between.high, p90)):
            if low > 0 and np.isfinite(high):
                given += 1
                held += low <= truth <= high
    # At a correlation of 0.9, 400 requests are some 20 independent ones.
    assert held >= (0.88 if rho > 0.5 else 0.9) * given
    assert given == 2 * runs


def sequences(rng: np.random.Generator, rho: float, number: int, runs: int) -> np.ndarray:
    """Standard normal loads of runs, with noise, each an autoregression."""
    steps = rng.normal(size=(runs, number)) * np.sqrt(1 - rho**2)
    steps[:, 0] = rng.normal(size=runs)
    load = scipy.signal.lfilter([1.0], [1.0, -rho], steps, axis=1)
    return (load + 0.6 * rng.normal(size=load.shape)) / np.sqrt(1.36)


@pytest.mark.parametrize(
    ("rho", "number", "share", "runs"),
    [
        (0.0, 400, 0.3, 200),
        (0.9, 400, 0.3, 200),
        (0.97, 2000, 0.1, 200),
        (0.95, 400, 0.3, 700),
    ],
)
def test_the_interval_of_a_share_allows_for_the_correlation(rho, number, share, runs):
    held = given = 0
    for late in sequences(np.random.default_rng(3), rho, number, runs) > scipy.special.ndtri(
        1 - share
    ):
        table = np.stack((~late, late), axis=1).astype(float)
        low, high = Jackknife(table, np.array([0.0, 1.0]), 300.0).share_interval()
        given += 1
        held += low <= share <= high
    assert held >= 0.86 * given
