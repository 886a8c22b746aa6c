"""Two distributions as wholes: the shift of every percentile, and the chance that one side's request is the faster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latencykit.stats.bootstrap import draw_percentiles
from latencykit.stats.percentiles import percentile_table

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from latencykit.stats.counted import Counted

    Floats = NDArray[np.float64]

__all__ = ["Shift", "Superiority", "shift", "superiority"]


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
    high = max(faster, 1 - slower)  # rounding must not turn the bracket over
    return Superiority((faster + high) / 2, faster, high)


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
