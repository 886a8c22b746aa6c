"""Two distributions side by side: how much each statistic changed, and how sure that is.

One run a side says how much two *runs* differ, not two systems: runs of the same system differ, too, and with a million
requests any such difference is "significant". So intervals of single runs hold for their requests only, unless
`run_noise` says by how much runs differ; several runs a side are compared in `latencykit.stats.runs`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latencykit.errors import UsageError
from latencykit.stats.bootstrap import Draws, draw_means, draw_percentiles
from latencykit.stats.modes import gap_at
from latencykit.stats.percentiles import percentile_table
from latencykit.stats.trim_spec import parse_trim
from latencykit.stats.trimmed import trimmed
from latencykit.stats.verdict import Change, holm
from latencykit.units import format_percentile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from latencykit.stats.counted import Counted

    Floats = NDArray[np.float64]

__all__ = ["Shift", "Superiority", "compare_counts", "shift", "superiority"]


def compare_counts(
    base: Counted,
    new: Counted,
    percentiles: Sequence[float],
    means: Sequence[str] = ("mean",),
    *,
    confidence: float = 0.95,
    run_noise: float | None = None,
    replicates: int = 1000,
    seed: int = 0,
) -> list[Change]:
    """Return the change of each statistic between two runs.

    Parameters
    ----------
    base, new : Counted
        In one unit.
    percentiles : sequence of float
    means : sequence of str
        ``"mean"`` and trimmed means between ranks (``"tm99"``, ``"TM(:99%)"``).
    confidence : float, default 0.95
    run_noise : float, optional
        Relative standard deviation of a statistic from run to run (0.03 for 3 %).
    replicates, seed : int

    Returns
    -------
    list of Change
        Percentiles first. An interval holds the width of the buckets on both sides, so that a change below it is
        none; it is open where a side's sample does not bound the percentile. The maximum is shown and never judged.

    Examples
    --------
    >>> from latencykit.stats.counted import Counted
    >>> rng = np.random.default_rng(1)
    >>> sides = [Counted.of(rng.normal(mean, 1, 5000)) for mean in (100, 110)]
    >>> change = compare_counts(*sides, [50])[0]
    >>> round(change.change, 2), change.significant
    (0.1, True)
    """
    rng = np.random.default_rng(seed)
    p = np.asarray(percentiles, np.float64)
    tables = [percentile_table(side, p, confidence) for side in (base, new)]
    sides = [draw_percentiles(side, p, replicates, rng) for side in (base, new)]
    points = [table.value for table in tables]
    bounded = [table.supported for table in tables]
    if means:
        trims = [_ranks_of(name) for name in means]
        for k, side in enumerate((base, new)):
            found = draw_means(side, trims, replicates, rng)
            sides[k] = Draws(np.c_[sides[k].low, found.low], np.c_[sides[k].high, found.high])
            points[k] = np.append(points[k], [trimmed(side, _spec(name)).value for name in means])
            bounded[k] = np.append(bounded[k], np.ones(len(means), np.bool_))
    noise = np.exp(rng.normal(0.0, math.sqrt(2) * (run_noise or 0.0), (replicates, 1)))
    names = [f"p{format_percentile(q)}" for q in p.tolist()] + list(means)
    rows = _rows(names, points, sides, bounded, noise, confidence)
    judged = [k for k, name in enumerate(names) if name != "p100"]
    adjusted = np.full(len(names), np.nan)
    adjusted[judged] = holm(np.array([rows[k].p_value for k in judged]))
    notes = [_note(base, new, name) for name in names]
    return [row.judged(float(adjusted[k]), confidence, notes[k]) for k, row in enumerate(rows)]


def _spec(name: str) -> str:
    return "TM(0%:100%)" if name == "mean" else name


def _ranks_of(name: str) -> tuple[float, float]:
    trim = parse_trim(_spec(name))
    if trim.kind != "TM" or not trim.by_rank:
        raise UsageError(f"{name!r} cannot be compared; compare percentiles, the mean, or trimmed means such as tm99")
    return float(trim.low), float(trim.high)


def _note(base: Counted, new: Counted, name: str) -> str:
    if name == "p100":
        return "the maximum grows with the number of requests and the length of a run: it is shown, not judged"
    if not name.startswith("p"):
        return ""
    gaps = [gap_at(side, float(name[1:])) for side in (base, new)]
    return next((gap.words for gap in gaps if gap is not None), "")


def _rows(
    names: list[str],
    points: list[Floats],
    sides: list[Draws],
    bounded: list[NDArray[np.bool_]],
    noise: Floats,
    confidence: float,
) -> list[Change]:
    """Point, interval and chance of every change, ratios and differences alike."""
    base, new = sides
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio_low = np.nan_to_num(new.low / base.high * noise, nan=0.0, posinf=np.inf)
        ratio_high = np.nan_to_num(new.high / base.low * noise, nan=np.inf, posinf=np.inf)
        change = points[1] / points[0] - 1
        step_low = np.nan_to_num(new.low * noise - base.high, nan=-np.inf, neginf=-np.inf, posinf=np.inf)
        step_high = np.nan_to_num(new.high * noise - base.low, nan=np.inf, neginf=-np.inf, posinf=np.inf)
    tail = (1 - confidence) / 2
    ends = [np.quantile(part, q, axis=0, method="inverted_cdf") for part, q in _ends(ratio_low, ratio_high, tail)]
    steps = [np.quantile(part, q, axis=0, method="inverted_cdf") for part, q in _ends(step_low, step_high, tail)]
    low, high = np.where(bounded[0], ends[0] - 1, -1.0), np.where(bounded[1], ends[1] - 1, np.inf)
    step = np.where(bounded[0], steps[0], -np.inf), np.where(bounded[1], steps[1], np.inf)
    count = len(noise) + 1
    slower, faster = ((part <= 0).sum(axis=0) + 1 for part in (ratio_low - 1, 1 - ratio_high))
    chance = np.minimum(1.0, 2.0 * np.minimum(slower, faster) / count)
    chance = np.where(bounded[0] & bounded[1], chance, 1.0)
    columns = (points[0], points[1], change, low, high, points[1] - points[0], *step, chance)
    return [Change.of(name, [float(column[k]) for column in columns]) for k, name in enumerate(names)]


def _ends(low: Floats, high: Floats, tail: float) -> tuple[tuple[Floats, float], tuple[Floats, float]]:
    return (low, tail), (high, 1 - tail)


@dataclass(frozen=True)
class Superiority:
    """Chance that a request of the new side is faster than one of the base: 0.5 where neither is.

    Attributes
    ----------
    value : float
        P(new < base) + ½ P(equal), ties being requests of overlapping buckets.
    low, high : float
        Bounds if all ties went against the new side, or for it.
    """

    value: float
    low: float
    high: float


def superiority(base: Counted, new: Counted) -> Superiority:
    """Return the probability that a request of `new` is faster than one of `base`.

    Examples
    --------
    >>> from latencykit.stats.counted import Counted
    >>> superiority(Counted.of([2, 3]), Counted.of([1, 2])).value
    0.875
    """
    sides = [side.occupied().at_worst() for side in (base, new)]
    pairs = float(sides[0].cumulative[-1]) * float(sides[1].cumulative[-1])
    faster, slower = (_sure_wins(a, b) / pairs for a, b in ((sides[1], sides[0]), (sides[0], sides[1])))
    return Superiority(faster + (1 - faster - slower) / 2, faster, 1 - slower)


def _sure_wins(fast: Counted, slow: Counted) -> float:
    """Pairs in which a value of `fast` surely lies below one of `slow`."""
    running = np.concatenate(([0.0], np.cumsum(fast.counts.astype(np.float64))))
    # An upper edge that is the next bucket's lower one belongs to the lower bucket, unless the buckets have no width.
    touch = (slow.high > slow.low) & np.isfinite(slow.low)
    strictly = np.searchsorted(fast.high, slow.low, "left")
    below = np.where(touch, np.searchsorted(fast.high, slow.low, "right"), strictly)
    return float((running[below] * slow.counts).sum())


@dataclass(frozen=True, eq=False)
class Shift:
    """The whole shift function: how each percentile changed, with a band that holds for all at once.

    Attributes
    ----------
    percentile, ratio, low, high : ndarray of float64, shape (p,)
        Ratio of new to base, and the simultaneous band.
    """

    percentile: Floats
    ratio: Floats
    low: Floats
    high: Floats


def shift(
    base: Counted, new: Counted, percentiles: ArrayLike, *, confidence: float = 0.95, replicates: int = 1000, seed: int = 0
) -> Shift:
    """Return the ratio of each percentile, with a simultaneous band.

    The band is as many standard errors wide, on a logarithmic scale, as the largest deviation of a replicate from the
    point has in `confidence` of the replicates (max-t bootstrap), joined with the buckets. Percentiles that either
    sample does not support are left out.

    Examples
    --------
    >>> from latencykit.stats.counted import Counted
    >>> found = shift(Counted.of(np.arange(1.0, 1001)), Counted.of(np.arange(2.0, 2002, 2)), [50, 90, 99.99])
    >>> found.percentile.tolist(), found.ratio.tolist()
    ([50.0, 90.0], [2.0, 2.0])
    """
    tables = [percentile_table(side, percentiles, confidence) for side in (base, new)]
    held = tables[0].supported & tables[1].supported & (tables[0].bucket_low > 0) & (tables[1].bucket_low > 0)
    p = tables[0].percentile[held]
    rng = np.random.default_rng(seed)
    draws = [draw_percentiles(side, p, replicates, rng) for side in (base, new)]
    logs = [np.log(np.maximum((d.low + np.where(np.isinf(d.high), d.low, d.high)) / 2, 1e-300)) for d in draws]
    spread = logs[1] - logs[0]
    error = np.maximum(spread.std(axis=0), 1e-12)
    farthest = (np.abs(spread - spread.mean(axis=0)) / error).max(axis=1, initial=0.0)
    reach = float(np.quantile(farthest, confidence)) if p.size else 0.0
    ratio = tables[1].value[held] / tables[0].value[held]
    least = tables[1].bucket_low[held] / tables[0].bucket_high[held]
    most = tables[1].bucket_high[held] / tables[0].bucket_low[held]
    return Shift(p, ratio, least * np.exp(-reach * error), most * np.exp(reach * error))
