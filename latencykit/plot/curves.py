"""From a rung to the arrays that charts draw: steps, never a straight line between two far samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.distribution import Distribution
from latencykit.errors import MixedInputsError, NotHeldError, UsageError
from latencykit.histogram import Histogram
from latencykit.plot.style import plain
from latencykit.stats.percentiles import is_resolved
from latencykit.summary import Summary
from latencykit.units import NANOSECONDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["Curve", "as_histogram", "as_series", "curve_of", "drawable", "only_series", "place_of"]

_CHOSEN = 12
"""Percentiles that somebody chose to print; more are the rows of a spectrum."""

_MOST, _A_NINE = 4000, 1000
"""With more points than that, so many a nine of the axis are kept: more than a screen shows."""


@dataclass(frozen=True)
class Curve:
    """A step function: the value holds up to its own percentile.

    Attributes
    ----------
    percentile, value : ndarray of float64, shape (points,)
        Ascending; to be drawn with ``drawstyle="steps-pre"``. The last point is 100 % and the maximum, or, where values
        are censored, the last percentile that is known.
    low : ndarray of float64, shape (points,)
        The least that each value can be: the lower edge of its bucket.
    limit : float
        Highest percentile that the sample supports; 100 for models.
    bound : float or None
        Where the censored mass begins: what lies beyond the last point is at least this.
    unit : str
    count : int or None
        Number of values behind it; None for models.
    printed : tuple of two tuples of float
        Percentiles that the tool printed, and their values.
    top_low : float
        The least that the maximum can be; the maximum itself where the tool states it.
    """

    percentile: Floats
    value: Floats
    low: Floats
    limit: float
    bound: float | None
    unit: str
    count: int | None
    censored: int = 0
    printed: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())
    top_low: float = 0.0

    @property
    def top(self) -> float:
        """The highest value known: the maximum, or where the censored mass begins."""
        return float(self.value[-1]) if self.bound is None else max(self.bound, float(self.value[-1]))

    @cached_property
    def resolved(self) -> NDArray[np.bool_]:
        """Whether each value is known within a tenth; the others are drawn as a band, bool, shape (points,)."""
        return is_resolved(self.low, self.value)

    @property
    def wide(self) -> bool:
        """Whether somewhere a line would say more than the source does."""
        return not bool(self.resolved.all())

    @property
    def top_known(self) -> bool:
        """Whether the maximum is known within a tenth."""
        return self.bound is None and bool(is_resolved(self.top_low, self.top))

    def known_at(self, percentiles: Any) -> NDArray[np.bool_]:
        """Return whether the value at each percentile is known within a tenth."""
        found = np.searchsorted(self.percentile, np.asarray(percentiles, np.float64), "left")
        return np.where(found < self.value.size, self.resolved[np.minimum(found, self.value.size - 1)], True)

    def at(self, percentiles: Any) -> Floats:
        """Return the value at each percentile, float64; the highest known where the sample is censored."""
        found = np.searchsorted(self.percentile, np.asarray(percentiles, np.float64), "left")
        return np.where(found < self.value.size, self.value[np.minimum(found, self.value.size - 1)], self.top)


def as_series(data: Any) -> dict[str, Any]:
    """Return label → rung, in nanoseconds where there is a unit; a tagged log gives one series a tag.

    Raises
    ------
    UsageError
        Where there is nothing to draw.
    MixedInputsError
        Where bare numbers and times stand side by side.
    """
    if not isinstance(data, Mapping) and not hasattr(data, "run"):
        raise UsageError(f"a chart takes a rung or a mapping of label to rung, not {type(data).__name__}")
    named = dict(data) if isinstance(data, Mapping) else {data.run.source or ", ".join(data.run.tags): data}
    series: dict[str, Any] = {}
    for label, rung in named.items():
        tagged = hasattr(rung, "by_tag") and len(rung.tags) > 1
        parts = {tag or "untagged": part for tag, part in rung.by_tag().items()} if tagged else {"": rung}
        for tag, part in parts.items():
            name = " ".join(filter(None, (str(label) if len(named) > 1 or not tag else "", tag)))
            series[name] = part.to_unit("ns") if part.unit in NANOSECONDS else part
    if not series:
        raise UsageError("there is nothing to draw")
    if len({rung.unit for rung in series.values()}) > 1:
        raise MixedInputsError("bare numbers and times have no axis in common; name the unit of the former with unit= (--unit)")
    return series


def only_series(data: Any, what: str) -> tuple[str, Any]:
    """Return label and rung of the one series that a chart can show.

    Raises
    ------
    UsageError
        Where there are several; it names `what`.
    """
    series = as_series(data)
    if len(series) > 1:
        names = ", ".join(plain(label, 24) for label in list(series)[:6])
        raise UsageError(f"{what} shows one series, not {len(series)} ({names}); choose one with --series or --tag")
    return next(iter(series.items()))


def as_histogram(rung: Any) -> Any:
    """Return what can be drawn as a curve: a histogram, a model, or a summary."""
    return rung if isinstance(rung, Histogram | Distribution | Summary) else rung.histogram()


def drawable(series: Mapping[str, Any], what: str) -> tuple[dict[str, Any], list[str]]:
    """Return the series that hold buckets with values, as histograms or models, and the labels of empty ones.

    Raises
    ------
    NotHeldError
        Where one is a summary, or all are empty.
    """
    found = {label: as_histogram(rung) for label, rung in series.items()}
    for label, rung in found.items():
        if isinstance(rung, Summary):
            raise NotHeldError(
                f"{label}: a summary holds no buckets, so its {what} is unknown; a histogram or samples would show it"
            )
    empty = [label for label, rung in found.items() if isinstance(rung, Histogram) and not rung.count]
    if len(empty) == len(found):
        raise NotHeldError(
            f"{', '.join(filter(None, empty)) or 'this'}: nothing was counted, so there is nothing to draw; "
            "was the range too narrow?"
        )
    return {label: rung for label, rung in found.items() if label not in empty}, empty


def curve_of(rung: Any) -> Curve:
    """Return the percentile curve of a histogram with values, or of a model."""
    if isinstance(rung, Distribution):
        held = rung.probabilities > 0
        index, share = rung.index[held], 100.0 * np.minimum(np.cumsum(rung.probabilities[held]), 1.0)
        share[-1] = 100.0
        curve = _thinned(share, rung.buckets.high(index), rung.buckets.low(index), 100.0, None, rung.unit, None)
        return replace(curve, top_low=float(curve.low[-1]))
    total = rung.count + rung.censored
    share = 100.0 * rung.cumulative / total
    # A hair below each step's end, so that rounding cannot reach into the next bucket.
    value = np.asarray(rung.percentile(share * (1 - 4e-16)), np.float64)
    low = np.minimum(rung.counted.low, value)
    bound = float(rung.censored_at) if rung.censored else None
    if bound is not None:
        known = rung.buckets.high(rung.index) <= bound
        share, value, low = share[known], value[known], low[known]
        if not share.size:
            share, value, low = np.zeros(1), np.full(1, bound), np.full(1, bound)
    curve = _thinned(share, value, low, rung.sample_limit(), bound, rung.unit, rung.count)
    printed = rung.printed if len(rung.printed[0]) <= _CHOSEN else ((), ())
    return replace(curve, censored=rung.censored, printed=printed, top_low=rung.bracket("max")[0])


def place_of(percentile: Floats) -> Floats:
    """Return the place of each percentile on an axis of nines, twelve at most."""
    return -np.log10(np.clip(1.0 - np.asarray(percentile, np.float64) / 100.0, 1e-12, None))


def _thinned(share: Floats, value: Floats, low: Floats, limit: float, bound: float | None, unit: str, count: int | None) -> Curve:
    """No more points than a screen can show: of those on one place of the axis the first and the last stay.

    The first ends the step before it where it ends; the last is the highest.
    """
    if share.size > _MOST:
        new = np.diff(np.floor(place_of(share) * _A_NINE)) > 0
        kept = np.append(new, True) | np.append(True, new)
        share, value, low = share[kept], value[kept], low[kept]
    share, value, low = (np.concatenate((first, rest)) for first, rest in (([0.0], share), (value[:1], value), (low[:1], low)))
    return Curve(share, value, low, limit, bound, unit, count)
