"""The trimmed family from counts: tm, wm, tc, ts, PR and IQM, with partial bucket weights; see `trim_spec`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latencykit.stats.percentiles import is_resolved
from latencykit.stats.trim_spec import Trim, parse_trim
from latencykit.units import format_count, format_value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from latencykit.stats.counted import Counted

    Floats = NDArray[np.float64]

__all__ = ["Trimmed", "trimmed"]


@dataclass(frozen=True)
class Trimmed:
    """One trimmed statistic, with what it means and what it hides.

    Attributes
    ----------
    value : float
        From the middle of each bucket, as long as that is known within a tenth; else the most that it can be (of a share,
        and where there is no most, the least): nothing reads better than it was. NaN where nothing is left.
    low, high : float
        What it can be at least and at most, given the edges of the buckets and values known only to be large.
    definition : str
        The statistic in unambiguous notation, and in words.
    leaves_out : str
        "2 × 7 requests, up to 6 s".
    below, above : float
        Requests left out (of a winsorized mean: replaced) at either end; parts of a request occur.
    worst : float
        Highest value left out above, infinite where it is unknown; NaN where there is none.
    """

    value: float
    low: float
    high: float
    definition: str
    leaves_out: str
    below: float
    above: float
    worst: float

    @property
    def resolved(self) -> bool:
        """Whether these bounds are within a tenth of each other; else the statistic is a range."""
        return bool(is_resolved(self.low, self.high))


def trimmed(counted: Counted, spec: str | Trim, unit: str = "ns") -> Trimmed:
    """Return a trimmed statistic of counted values.

    Parameters
    ----------
    counted : Counted
    spec : str or Trim
        See `parse_trim`.
    unit : str
        Unit of the values.

    Returns
    -------
    Trimmed

    Notes
    -----
    Bounds in ranks cut buckets: of the bucket in which a bound lies, the fitting part counts, so that trimming a whole
    number of values from each end gives what `scipy.stats.trim_mean` gives. Bounds in values take the buckets that
    lie wholly within, and the bracket says what the others could add. Censored values count as their limit in
    `value` and `low`, and as anything above in `high`.

    Examples
    --------
    >>> from latencykit.stats.counted import Counted
    >>> ten = Counted.of(range(1, 11))
    >>> [trimmed(ten, spec, "none").value for spec in ("tm90", "TM(:90%)", "IQM")]
    [5.5, 5.0, 5.5]
    >>> trimmed(ten, "tm90", "none").leaves_out
    '2 × 1 request, up to 10'
    """
    trim = parse_trim(spec, unit) if isinstance(spec, str) else spec
    held = counted.occupied()
    best = held.at_best()
    part: _ByRank | _ByValue = _ByRank(best, trim) if trim.by_rank else _ByValue(best, trim)
    low, value, high = part.lowest(), part.statistic(best.middle), part.highest()
    if trim.by_rank:
        low = _ByRank(best.by_low(), trim).lowest()
        high = _ByRank(held.at_worst(), trim).highest() if held.censored else high
    if not is_resolved(low, high) and not math.isnan(value):
        value = low if trim.kind == "PR" or math.isinf(high) else high
    out = np.flatnonzero(part.above > 0)
    top = float(best.high[out[-1]]) if out.size else math.nan
    below, above = float(part.below.sum()), float(part.above.sum())
    words = _leaves_out(below, above, top, held, unit)
    return Trimmed(value, low, high, trim.definition(unit), words, below, above, top)


class _ByRank:
    """Weights of the buckets between two ranks."""

    def __init__(self, counted: Counted, trim: Trim) -> None:
        self.kind, self.counted, total = trim.kind, counted, counted.count
        first, last = float(trim.low * total), float(trim.high * total)
        after = counted.cumulative.astype(np.float64)
        before = after - counted.counts
        self.kept = np.clip(np.minimum(after, last) - np.maximum(before, first), 0.0, None)
        self.below = np.clip(np.minimum(after, first) - before, 0.0, None)
        self.above = np.clip(after - np.maximum(before, last), 0.0, None)

    def statistic(self, values: Floats) -> float:
        """The statistic if every bucket's values were `values`."""
        kept = np.flatnonzero(self.kept > 0)
        count, total = float(self.kept.sum()), float((values[kept] * self.kept[kept]).sum())
        if self.kind == "TC":
            return count
        if self.kind == "TS":
            return total
        if self.kind == "TM":
            return total / count
        low, high = float(self.below.sum()), float(self.above.sum())
        ends = (low * values[kept[0]] if low else 0.0) + (high * values[kept[-1]] if high else 0.0)
        return (total + float(ends)) / (count + low + high)

    def lowest(self) -> float:
        """The least that it can be; the weights are the ranks', whatever the values are."""
        return self.statistic(self.counted.low)

    def highest(self) -> float:
        """The most that it can be."""
        return self.statistic(self.counted.high)


class _ByValue:
    """Buckets wholly between two values, and those that only may be."""

    def __init__(self, counted: Counted, trim: Trim) -> None:
        self.kind, self.bounds = trim.kind, (float(trim.low), float(trim.high))
        self.counted = counted
        a, b = self.bounds
        wide = counted.high > counted.low
        over = (counted.low > a) | (wide & (counted.low >= a))
        self.inside = over & (counted.high <= b)
        outside = (counted.high <= a) | (counted.low > b)
        self.maybe = ~self.inside & ~outside
        self.below = np.where(counted.high <= a, counted.counts, 0)
        self.above = np.where(self.inside | (counted.high <= a), 0, counted.counts)

    def statistic(self, values: Floats) -> float:
        """The statistic of the buckets wholly inside; of a winsorized mean, all buckets held within the bounds."""
        return self._of(values, self.inside)

    def lowest(self) -> float:
        """The least that it can be; a mean falls where a bucket that reaches below the range joins it."""
        joins = self.maybe & (self.counted.low < self.bounds[0]) if self.kind == "TM" else False
        return self._of(np.maximum(self.counted.low, self.bounds[0]), self.inside | joins)

    def highest(self) -> float:
        """The most that it can be; a mean rises where a bucket that reaches above the range joins it."""
        joins = self.maybe & ((self.counted.high > self.bounds[1]) | (self.kind != "TM"))
        return self._of(np.minimum(self.counted.high, self.bounds[1]), self.inside | joins)

    def _of(self, values: Floats, held: NDArray[np.bool_]) -> float:
        counts, total = self.counted.counts, self.counted.count
        if self.kind == "WM":
            return float((np.clip(values, *self.bounds) * counts).sum()) / total
        count = float(counts[held].sum())
        if self.kind == "TC":
            return count
        if self.kind == "PR":
            return 100.0 * count / total
        summed = float((values[held] * counts[held]).sum())
        if self.kind == "TS":
            return summed
        return summed / count if count else math.nan


def _leaves_out(below: float, above: float, top: float, counted: Counted, unit: str) -> str:
    if not below and not above:
        return "nothing"
    some = "≥ " + format_value(counted.limit, unit) if math.isinf(top) else f"up to {format_value(top, unit)}"
    if not above:
        return f"{_requests(below)} below"
    if math.isclose(below, above):
        return f"2 × {_requests(above)}, {some}"
    return f"{_requests(below)} below and {_requests(above)} above, {some}" if below else f"{_requests(above)}, {some}"


def _requests(count: float) -> str:
    shown = format_count(count) if count >= 0.5 or not count else "< 1"
    return f"{shown} request" + ("" if shown in ("1", "< 1") else "s")
