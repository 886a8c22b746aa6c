"""Several runs a side: the samples are the runs, not their requests.

Pooled requests of identical systems differ "significantly" in every second comparison, because each run has its own
luck. Here every run gives one number a statistic, and the two groups of numbers are compared by their ranks, which one
run with a stall cannot sway.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latencykit.errors import UsageError
from latencykit.stats.verdict import Change, Verdict, verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["RunsComparison", "compare_runs", "least_p", "rank_sum_null", "runs_needed"]

_MOST_EXACT = 20_000  # relabellings; more are drawn


@dataclass(frozen=True)
class RunsComparison:
    """Groups of runs, compared.

    Attributes
    ----------
    changes : list of Change
        `base` and `new` are medians over the runs, `change` the median of all ratios of a new run to a base run.
    verdict : {"same", "better", "worse", "mixed", "inconclusive"}
    reasons : tuple of str
        What kept the comparison from deciding, or parts of it.
    """

    changes: list[Change]
    verdict: Verdict
    reasons: tuple[str, ...]


def least_p(base_runs: int, new_runs: int) -> float:
    """Return the smallest two-sided p-value that an exact test of so many runs can give.

    Examples
    --------
    >>> [round(least_p(n, n), 4) for n in (3, 4, 5)]
    [0.1, 0.0286, 0.0079]
    """
    return min(1.0, 2.0 / math.comb(base_runs + new_runs, base_runs))


def runs_needed(alpha: float = 0.05) -> int:
    """Return how many runs a side it takes before a test at level `alpha` can ever fire.

    Examples
    --------
    >>> runs_needed(0.05), runs_needed(0.01)
    (4, 5)
    """
    return next(n for n in itertools.count(2) if least_p(n, n) <= alpha)


def compare_runs(
    base: ArrayLike,
    new: ArrayLike,
    statistics: Sequence[str],
    *,
    confidence: float = 0.95,
    margin: float = 0.05,
    seed: int = 0,
) -> RunsComparison:
    """Compare two groups of runs.

    Parameters
    ----------
    base, new : array_like of float, shape (runs, statistics)
        One row a run; NaN where a run does not support a statistic.
    statistics : sequence of str
        Names, such as ``"p99"`` or ``"mean"``.
    confidence : float, default 0.95
    margin : float, default 0.05
        See `latencykit.stats.verdict.verdict`.
    seed : int, default 0
        For drawing relabellings where there are more than 20,000.

    Returns
    -------
    RunsComparison

    Notes
    -----
    The test is Mann and Whitney's rank sum over all ways to label the runs, so that its p-values are exact. Across
    statistics they are adjusted by stepping down through the same relabellings (Westfall and Young, 1993): what Holm's
    procedure does, but percentiles of one run go together, and that is taken into account. The interval
    of a ratio is Hodges and Lehmann's.

    Examples
    --------
    >>> found = compare_runs([[10.0], [10.2], [9.9], [10.1]], [[12.0], [12.2], [11.9], [12.1]], ["p99"])
    >>> found.verdict, round(found.changes[0].change, 2), round(found.changes[0].p_value, 4)
    ('worse', 0.2, 0.0286)
    """
    sides = [np.atleast_2d(np.asarray(side, np.float64)) for side in (base, new)]
    if any(side.shape[1] != len(statistics) for side in sides):
        raise UsageError(f"every run needs {len(statistics)} numbers, one for each of {', '.join(statistics)}")
    pooled = np.concatenate(sides)
    runs, reasons = [len(side) for side in sides], []
    whole = np.logical_not(np.isnan(pooled).any(axis=0))
    left = np.asarray(statistics)[~whole].tolist()
    if left:
        reasons.append(f"not every run supports {', '.join(left)}: not judged")
    needed, alpha = runs_needed(1 - confidence), 1 - confidence
    enough = min(runs) >= needed
    if not enough:
        reasons.append(
            f"{runs[0]} and {runs[1]} runs cannot decide at the {100 * alpha:.2g} % level: the smallest p-value they "
            f"can give is {least_p(*runs):.2g}; measure at least {needed} runs a side"
        )
    judged = np.flatnonzero(whole & (np.array(statistics) != "p100"))
    chances = np.full(len(statistics), np.nan)
    if judged.size and enough:
        chances[judged] = _relabelled(pooled[:, judged], runs[0], seed)
    changes = [
        _change(name, sides[0][:, k], sides[1][:, k], confidence).judged(float(chances[k]), confidence)
        for k, name in enumerate(statistics)
    ]
    return RunsComparison(changes, verdict(changes, margin, noise_known=enough), tuple(reasons))


def _relabelled(pooled: Floats, first: int, seed: int) -> Floats:
    """Adjusted p-value of each column, over all (or 20,000 drawn) ways to call so many rows the first group."""
    rows = len(pooled)
    order = _mid_ranks(pooled)
    if math.comb(rows, first) <= _MOST_EXACT:
        chosen = np.array(list(itertools.combinations(range(rows), first)), np.int64)
    else:
        rng = np.random.default_rng(seed)
        drawn = np.argsort(rng.random((_MOST_EXACT - 1, rows)), axis=1)[:, :first]
        chosen = np.concatenate((np.arange(first)[None, :], drawn))
    sums = order[chosen].sum(axis=1)
    spread = np.maximum(sums.std(axis=0), 1e-12)
    away = np.abs(sums - first * (rows + 1) / 2) / spread
    seen = away[0]  # the first relabelling is the one that was measured
    down = np.argsort(-seen, kind="stable")
    rest = np.maximum.accumulate(away[:, down[::-1]], axis=1)[:, ::-1]
    out = np.empty(seen.size)
    out[down] = np.maximum.accumulate((rest >= seen[down] - 1e-9).mean(axis=0))
    return out


def _mid_ranks(pooled: Floats) -> Floats:
    """Ranks of each column from 1, equal values sharing theirs."""
    below = (pooled[:, None, :] > pooled[None, :, :]).sum(axis=1)
    level = (pooled[:, None, :] == pooled[None, :, :]).sum(axis=1)
    return np.asarray(below + (level + 1) / 2)


def rank_sum_null(first: int, second: int) -> Floats:
    """Return the probability of each value 0 … first × second of the Mann–Whitney statistic without a difference.

    Examples
    --------
    >>> (rank_sum_null(2, 2) * 6).round().tolist()
    [1.0, 1.0, 2.0, 1.0, 1.0]
    """
    # U is a sum over the second group of how many of the first lie below: a Gaussian binomial coefficient.
    ways = np.zeros(first * second + 1)
    ways[0] = 1.0
    for k in range(1, second + 1):
        grown = ways.copy()
        grown[first + k :] -= ways[: grown.size - first - k] if first + k < grown.size else 0.0
        for start in range(k):
            grown[start::k] = np.cumsum(grown[start::k])
        ways = grown
    return np.asarray(ways / ways.sum())


def _change(name: str, base: Floats, new: Floats, confidence: float) -> Change:
    """Medians, and Hodges and Lehmann's interval of the ratio and of the difference."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.sort((new[:, None] / base[None, :]).ravel()) - 1
    steps = np.sort((new[:, None] - base[None, :]).ravel())
    out = int(np.searchsorted(np.cumsum(rank_sum_null(base.size, new.size)), (1 - confidence) / 2 + 1e-12, "right"))
    ends = [-1.0, math.inf, -math.inf, math.inf]
    if out >= 1 and not np.isnan(steps).any():
        ends = [float(part[at]) for part in (ratios, steps) for at in (out - 1, -out)]
    middle = (float(np.median(base)), float(np.median(new)), float(np.median(ratios)))
    return Change.of(name, [*middle, ends[0], ends[1], float(np.median(steps)), ends[2], ends[3], math.nan])
