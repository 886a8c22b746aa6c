"""How far a percentile of a histogram can be trusted: its interval, its bucket, and whether the sample supports it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latencykit.histogram.lookup import brackets_at
from latencykit.stats.percentiles import is_resolved, percentile_table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from latencykit.histogram.noun import Histogram

    Floats = NDArray[np.float64]

__all__ = ["PercentileRow", "highest_pinned_down", "statistic_bracket", "trusted_rows"]


@dataclass(frozen=True)
class PercentileRow:
    """One percentile and how far it can be trusted.

    Attributes
    ----------
    percentile, value : float
    low, high : float
        Confidence interval joined with the bucket; NaN where there is no lower bound or none can be given,
        infinity where there is no upper bound.
    bucket_low, bucket_high : float
        What the source pins the percentile down between: its bucket, cut at what the tool printed; infinite above
        where it reaches censored values.
    resolved : bool
        Whether these two are within a tenth of each other; a percentile that the tool printed is exact. Where they are
        not, `value` is the upper bound of a range.
    supported : bool
        Whether the sample is large enough to bound the percentile from above.
    events : int or None
        How many events (stalls, intervals) make up what lies above it, where the source knows of time.
    """

    percentile: float
    value: float
    low: float
    high: float
    bucket_low: float
    bucket_high: float
    resolved: bool
    supported: bool
    events: int | None = None


def trusted_rows(histogram: Histogram, p: Floats, confidence: float) -> list[PercentileRow]:
    """Return one row a percentile; see `Histogram.percentile_rows`."""
    values, bottoms, tops, open_above = brackets_at(histogram, p)
    low, high = _interval(histogram, p, confidence)
    supported = (p <= histogram.sample_limit(confidence)) & ~open_above
    columns = (
        p,
        values,
        np.minimum(low, bottoms),
        np.where(open_above, np.inf, np.maximum(high, tops)),
        bottoms,
        tops,
        is_resolved(bottoms, tops),
        supported,
    )
    return [PercentileRow(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def highest_pinned_down(histogram: Histogram, limit: float) -> float:
    """Return the highest percentile up to `limit` that is known within a tenth; 0 where there is none."""
    reached = 100.0 * histogram.cumulative / max(histogram.count + histogram.censored, 1)
    ends = np.concatenate(([limit], reached, histogram.printed[0]))
    ends = np.unique(ends[(ends > 0) & (ends <= limit)])[::-1]
    _, low, high, _ = brackets_at(histogram, ends)
    return float(next(iter(ends[is_resolved(low, high)]), 0.0))


def statistic_bracket(histogram: Histogram, name: str) -> tuple[float, float]:
    """Return what ``min``, ``max``, ``mean`` or ``std`` is at least and at most: what the source states, or the edges."""
    if name in histogram.told:
        return histogram.told[name], histogram.told[name]
    held = histogram.counted.at_best()
    if not held.total:
        return math.nan, math.nan
    if name in ("min", "max"):
        at = 0 if name == "min" else -1
        return float(held.low[at]), float(held.high[at])
    if name == "mean":
        return tuple(float(np.average(edge, weights=held.counts)) for edge in (held.low, held.high))  # type: ignore[return-value]
    if histogram.censored:
        return 0.0, math.inf
    # The deviation moves by no more than its values do, in the mean of squares, when each moves to its bucket's middle.
    reach = math.sqrt(float(np.average((held.high - held.low) ** 2, weights=held.counts))) / 2
    return max(histogram.std - reach, 0.0), histogram.std + reach


def _interval(histogram: Histogram, p: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Order-statistic interval joined with the buckets; none for corrected counts, whose ranks are invented."""
    if not histogram.count + histogram.censored:
        return np.full(p.shape, np.nan), np.full(p.shape, np.inf)
    corrected = histogram.run.corrected in ("us", "tool")
    table = percentile_table(histogram.counted, p, confidence, corrected=corrected)
    return table.low, table.high
