"""The block bootstrap covers the truth at every correlation, or declines."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.special import ndtri

from latencykit.stats.block_bootstrap import block_intervals, group_rows, tail_groups
from latencykit.stats.quantiles import rank_interval

EDGES = np.exp(np.linspace(-4, 5, 100))
DRIFT = 0.5  # standard deviation of an interval's common factor, on a log scale


def drifting_log(rng: np.random.Generator, intervals: int, time: float, requests: int = 20) -> np.ndarray:
    """Counts of each interval in EDGES; log-latencies are normal around a level of that correlation time."""
    keep = np.exp(-1 / time) if time else 0.0
    shocks = rng.normal(size=intervals) * np.sqrt(1 - keep * keep)
    shocks[0] = rng.normal()
    level = DRIFT * lfilter([1.0], [1.0, -keep], shocks)
    at = np.searchsorted(EDGES, np.exp(rng.normal(size=(intervals, requests)) + level[:, None]))
    flat = np.bincount((at + np.arange(intervals)[:, None] * (EDGES.size + 1)).ravel(), minlength=intervals * (EDGES.size + 1))
    return flat.reshape(intervals, -1)


@pytest.mark.parametrize(("intervals", "time"), [(400, 0), (400, 1), (400, 3), (1200, 10), (60, 10), (300, 10)])
def test_covers_or_declines(intervals: int, time: float) -> None:
    rng = np.random.default_rng(intervals + int(time))
    truth = np.searchsorted(EDGES, np.exp(np.sqrt(1 + DRIFT**2) * ndtri(0.95)))
    repetitions, wrong, given = 50, 0, 0
    for _ in range(repetitions):
        found = block_intervals(drifting_log(rng, intervals, time), [95], replicates=150)
        if found.block[0]:
            given += 1
            wrong += not found.low[0] <= truth <= found.high[0]
    assert wrong / repetitions <= 0.12
    if (intervals, time) in [(400, 0), (400, 1), (400, 3), (1200, 10)]:
        assert given >= 0.6 * repetitions  # it does not buy coverage by declining
        assert wrong / given <= 0.12


def test_rank_intervals_do_not_cover_drift() -> None:
    rng = np.random.default_rng(2)
    truth, low_high = np.searchsorted(EDGES, np.exp(np.sqrt(1 + DRIFT**2) * ndtri(0.95))), rank_interval(8000, 95)
    covered = 0
    for _ in range(60):
        running = np.cumsum(drifting_log(rng, 400, 10).sum(axis=0))
        low, high = (int(np.searchsorted(running, rank)) for rank in low_high)
        covered += low <= truth <= high
    assert covered / 60 < 0.6


def test_declines_below_twenty_blocks_and_says_why() -> None:
    rng = np.random.default_rng(0)
    short = block_intervals(drifting_log(rng, 19, 0), [50, 95])
    assert short.low.tolist() == short.high.tolist() == [-1, -1]
    assert "19 intervals are too few" in short.reasons[0]
    trend = np.c_[100 - np.arange(100), np.arange(100)]
    assert "stay together" in block_intervals(trend, [50]).reasons[0]


def test_same_seed_same_interval() -> None:
    rows = drifting_log(np.random.default_rng(4), 200, 1)
    first, second = (block_intervals(rows, [50, 99], seed=9) for _ in range(2))
    assert np.array_equal(first.low, second.low)
    assert np.array_equal(first.high, second.high)


def test_grouped_buckets_answer_as_single_ones_within_a_group() -> None:
    rng = np.random.default_rng(8)
    index = np.minimum(rng.lognormal(5, 1, size=(200, 50)).astype(int), 2999)
    rows = np.zeros((200, 3000), np.int64)
    np.add.at(rows, (np.repeat(np.arange(200), 50), index.ravel()), 1)
    group = tail_groups(rows.sum(axis=0), 300)
    assert group[0] == 0
    assert set(np.diff(group)) <= {0, 1}
    assert group[-1] < 300
    entries = [np.flatnonzero(row) for row in rows]
    indptr = np.r_[0, np.cumsum([e.size for e in entries])]
    counts = np.concatenate([row[e] for row, e in zip(rows, entries, strict=True)])
    grouped = group_rows(indptr, group[np.concatenate(entries)], counts, group[-1] + 1)
    assert grouped.sum() == rows.sum()
    fine, coarse = block_intervals(rows, [95]), block_intervals(grouped, [95])
    assert np.abs(group[[fine.low[0], fine.high[0]]] - [coarse.low[0], coarse.high[0]]).max() <= 1


def test_long_logs_merge_neighbours() -> None:
    rows = np.random.default_rng(6).multinomial(5, [0.9, 0.1], size=9000)
    assert block_intervals(rows, [50], replicates=50).block[0] % 3 == 0
