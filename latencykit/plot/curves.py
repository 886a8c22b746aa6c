"""From a rung to the arrays that charts draw: steps, never a straight line between two far samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.distribution import Distribution
from latencykit.errors import NotHeldError, UsageError
from latencykit.histogram import Histogram
from latencykit.summary import Summary
from latencykit.units import NANOSECONDS, format_count, format_duration

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["Curve", "as_histogram", "as_series", "curve_of", "describe"]

_MOST_POINTS = 4000


@dataclass(frozen=True)
class Curve:
    """A step function: the value holds up to its own percentile.

    Attributes
    ----------
    percentile, value : ndarray of float64, shape (points,)
        Ascending; to be drawn with ``drawstyle="steps-pre"``.
    limit : float
        Highest percentile that the sample supports; 100 for models.
    top : float
        The maximum.
    bound : float or None
        Where censored mass begins: what lies beyond is at least this.
    unit : str
    """

    percentile: Floats
    value: Floats
    limit: float
    top: float
    bound: float | None
    unit: str

    def at(self, percentile: float) -> float:
        """Return the value at a percentile."""
        return float(self.value[min(int(np.searchsorted(self.percentile, percentile, "left")), self.value.size - 1)])


def as_series(data: Any, default: str = "") -> dict[str, Any]:
    """Return label → rung, in nanoseconds where there is a unit."""
    named = dict(data) if isinstance(data, Mapping) else {(data.run.source or default): data}
    if not named:
        raise UsageError("there is nothing to draw")
    return {label: rung.to_unit("ns") if rung.unit in NANOSECONDS else rung for label, rung in named.items()}


def as_histogram(rung: Any) -> Any:
    """Return what can be drawn as a curve: a histogram, a model, or a summary."""
    return rung if isinstance(rung, Histogram | Distribution | Summary) else rung.histogram()


def curve_of(rung: Any) -> Curve:
    """Return the percentile curve of a histogram or a model.

    Raises
    ------
    NotHeldError
        Where nothing was counted.
    """
    if isinstance(rung, Distribution):
        held = rung.probabilities > 0
        share = 100.0 * np.cumsum(rung.probabilities[held])
        return _thinned(share, rung.buckets.high(rung.index[held]), 100.0, None, rung.unit)
    total = rung.count + rung.censored
    if not rung.count:
        raise NotHeldError(
            f"{rung.run.source or 'this'}: nothing was counted, so there is nothing to draw; was the range too narrow?"
        )
    share = 100.0 * rung.cumulative / total
    value = np.asarray(rung.percentile(share), np.float64)
    bound = float(rung.censored_at) if rung.censored else None
    if bound is not None:
        kept = rung.buckets.high(rung.index) <= max(bound, float(value[0]))
        share, value = share[kept], value[kept]
    return _thinned(share, value, rung.highest_supported_percentile(), bound, rung.unit)


def _thinned(share: Floats, value: Floats, limit: float, bound: float | None, unit: str) -> Curve:
    """At most some thousand points: of those on one place of the axis the last, highest one stays."""
    top = float(value[-1])
    if share.size > _MOST_POINTS:
        place = np.floor(-np.log10(np.clip(1 - share / 100, 1e-9, None)) * 1000)
        last = np.append(np.diff(place) > 0, True)
        share, value = share[last], value[last]
    share, value = np.concatenate(([0.0], share)), np.concatenate(([value[0]], value))
    if bound is None:
        share[-1] = 100.0
    return Curve(share, value, limit, top, bound, unit)


def describe(rung: Any) -> str:
    """Return what was measured in one line: count, duration, rate, failures, correction.

    Examples
    --------
    >>> describe(Histogram.of([1, 2, 3]))
    '3 requests'
    """
    run = rung.run
    parts = []
    counted = rung.count if isinstance(rung, Histogram | Summary) else None
    if counted is not None:
        parts.append(f"{format_count(counted)} requests")
    if run.duration:
        parts.append(format_duration(run.duration * 1e9))
    rate = run.rate or run.achieved or (counted / run.duration if counted and run.duration else None)
    if rate:
        parts.append(f"{rate:,.0f} requests/s" if rate >= 10 else f"{rate:.2g} requests/s")
    if run.failed or run.timeouts:
        parts.append(f"{format_count(run.failed)} failed, {format_count(run.timeouts)} timed out")
    words = {
        "tool": f"corrected by {run.tool or 'the tool'}",
        "us": "corrected for coordinated omission",
        "schedule": "from the schedule",
    }
    if run.corrected in words:
        parts.append(words[run.corrected])
    return " · ".join(parts)
