"""From a data type to the arrays that charts draw: steps, never a straight line between two far samples."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.core.distribution import Distribution
from latencykit.core.histogram import Histogram
from latencykit.core.histogram_log import HistogramLog
from latencykit.core.quantiles import is_resolved
from latencykit.core.samples import Samples
from latencykit.core.summary import Summary
from latencykit.errors import DataNotAvailableError, IncompatibleDataError, InvalidArgumentError
from latencykit.plot.figure import percentile_text
from latencykit.plot.style import UNSUPPORTED, plain, role_of
from latencykit.units import NANOSECONDS, format_count, format_range, format_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from numpy.typing import NDArray

    from latencykit.core.histogram import Evidence
    from latencykit.plot.label_layout import LineLabels

    Floats = NDArray[np.float64]

__all__ = [
    "SHADED",
    "Curve",
    "as_histogram",
    "as_series",
    "band",
    "band_ends",
    "curve_of",
    "cut",
    "dashes",
    "draw_curve",
    "draw_summary",
    "drawable",
    "end_words",
    "evidence_of",
    "expect_evidence",
    "grid_of",
    "known_points",
    "nines_of",
    "only_series",
    "place_of",
    "resting",
    "spread",
    "two_stories",
    "what_is_missing",
]


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
    reported_percentiles: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())
    top_low: float = 0.0

    @property
    def top(self) -> float:
        """The highest value known: the maximum, or where the censored mass begins."""
        return (
            float(self.value[-1]) if self.bound is None else max(self.bound, float(self.value[-1]))
        )

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
        return np.where(
            found < self.value.size, self.resolved[np.minimum(found, self.value.size - 1)], True
        )

    def at(self, percentiles: Any) -> Floats:
        """Return the value at each percentile, float64; the highest known where the sample is censored."""
        found = np.searchsorted(self.percentile, np.asarray(percentiles, np.float64), "left")
        return np.where(
            found < self.value.size, self.value[np.minimum(found, self.value.size - 1)], self.top
        )


def as_series(data: Any) -> dict[str, Any]:
    """Return label → data type, in nanoseconds where there is a unit; a tagged log gives one series per tag."""
    if not isinstance(data, Mapping) and not hasattr(data, "run"):
        raise InvalidArgumentError(
            f"a chart takes a data type or a mapping of label to data type, not {type(data).__name__}"
        )
    named = (
        dict(data)
        if isinstance(data, Mapping)
        else {data.run.source or ", ".join(data.run.tags): data}
    )
    series: dict[str, Any] = {}
    for label, values in named.items():
        tagged = hasattr(values, "by_tag") and len(values.tags) > 1
        parts = (
            {tag or "untagged": part for tag, part in values.by_tag().items()}
            if tagged
            else {"": values}
        )
        for tag, part in parts.items():
            name = " ".join(filter(None, (str(label) if len(named) > 1 or not tag else "", tag)))
            series[name] = part.to_unit("ns") if part.unit in NANOSECONDS else part
    if not series:
        raise InvalidArgumentError("there is nothing to draw")
    if len({values.unit for values in series.values()}) > 1:
        raise IncompatibleDataError(
            "bare numbers and times have no axis in common; name the unit of the former with unit= (--unit)"
        )
    return series


def only_series(data: Any, what: str) -> tuple[str, Any]:
    """Return label and data type of the one series that a chart can show."""
    series = as_series(data)
    if len(series) > 1:
        names = ", ".join(plain(label, 24) for label in list(series)[:6])
        raise InvalidArgumentError(
            f"{what} shows one series, not {len(series)} ({names}); choose one with --series or --tag"
        )
    return next(iter(series.items()))


def as_histogram(data: Any) -> Any:
    """Return what can be drawn as a curve: a histogram, a model, or a summary."""
    return data if isinstance(data, Histogram | Distribution | Summary) else data.histogram()


def drawable(series: Mapping[str, Any], what: str) -> tuple[dict[str, Any], list[str]]:
    """Return the series that hold buckets with values, as histograms or models, and the labels of empty ones."""
    found = {label: as_histogram(data) for label, data in series.items()}
    for label, data in found.items():
        if isinstance(data, Summary):
            raise DataNotAvailableError(
                f"{label}: a summary holds no buckets, so its {what} is unknown; a histogram or samples would show it"
            )
    empty = [
        label for label, data in found.items() if isinstance(data, Histogram) and not data.count
    ]
    if len(empty) == len(found):
        raise DataNotAvailableError(
            f"{', '.join(filter(None, empty)) or 'this'}: nothing was counted, so there is nothing to draw; "
            "was the range too narrow?"
        )
    return {label: data for label, data in found.items() if label not in empty}, empty


def curve_of(data: Any) -> Curve:
    """Return the percentile curve of a histogram with values, or of a model."""
    if isinstance(data, Distribution):
        held = data.probabilities > 0
        index, share = (
            data.index[held],
            100.0 * np.minimum(np.cumsum(data.probabilities[held]), 1.0),
        )
        share[-1] = 100.0
        curve = _thinned(
            share, data.buckets.high(index), data.buckets.low(index), 100.0, None, data.unit, None
        )
        return replace(curve, top_low=float(curve.low[-1]))
    total = data.count + data.censored
    share = 100.0 * data.cumulative / total
    # A hair below each step's end, so that rounding cannot reach into the next bucket.
    value = np.asarray(data.percentile(share * (1 - 4e-16)), np.float64)
    low = np.minimum(data.counted.low, value)
    bound = float(data.censored_at) if data.censored else None
    if bound is not None:
        known = data.buckets.high(data.index) <= bound
        share, value, low = share[known], value[known], low[known]
        if not share.size:
            share, value, low = np.zeros(1), np.full(1, bound), np.full(1, bound)
    curve = _thinned(share, value, low, data.sample_limit(), bound, data.unit, data.count)
    reported_percentiles = (
        data.reported_percentiles if len(data.reported_percentiles[0]) <= _CHOSEN else ((), ())
    )
    return replace(
        curve,
        censored=data.censored,
        reported_percentiles=reported_percentiles,
        top_low=data.bracket("max")[0],
    )


def place_of(percentile: Floats) -> Floats:
    """Return the place of each percentile on an axis of nines, twelve at most."""
    return -np.log10(np.clip(1.0 - np.asarray(percentile, np.float64) / 100.0, 1e-12, None))


def _thinned(
    share: Floats,
    value: Floats,
    low: Floats,
    limit: float,
    bound: float | None,
    unit: str,
    count: int | None,
) -> Curve:
    """No more points than a screen can show: of those on one place of the axis the first and the last stay.

    The first ends the step before it where it ends; the last is the highest.
    """
    if share.size > _MOST:
        new = np.diff(np.floor(place_of(share) * _A_NINE)) > 0
        kept = np.append(new, True) | np.append(True, new)
        share, value, low = share[kept], value[kept], low[kept]
    share, value, low = (
        np.concatenate((first, rest))
        for first, rest in (([0.0], share), (value[:1], value), (low[:1], low))
    )
    return Curve(share, value, low, limit, bound, unit, count)


def two_stories(series: Mapping[str, Any], curves: Mapping[str, Curve]) -> str | None:
    """Return the finding of a raw and a corrected measurement side by side: the percentile on which they differ most.

    Only percentiles that both samples support count, and only differences of more than a tenth.
    """
    roles = {role_of(label, data): label for label, data in series.items()}
    if len(series) != 2 or set(roles) != {"raw", "honest"} or not set(series) <= set(curves):
        return None
    raw, honest = curves[roles["raw"]], curves[roles["honest"]]
    wanted = np.array([p for p in (50.0, 90.0, 99.0, 99.9) if p <= min(raw.limit, honest.limit)])
    wanted = wanted[raw.known_at(wanted) & honest.known_at(wanted)]
    if not wanted.size:
        return None
    flattered, true = raw.at(wanted), honest.at(wanted)
    worst = int(np.argmax(true / np.maximum(flattered, 1e-12)))
    if not true[worst] > 1.1 * flattered[worst]:
        return None
    low, high = (format_value(float(value[worst]), raw.unit, 2) for value in (flattered, true))
    return f"Two stories: {percentile_text(float(wanted[worst]))} is {low} or {high}"


def end_words(curve: Curve) -> str:
    """Return what stands at a curve's end: its maximum, or where its censored values begin."""

    def show(value: float) -> str:
        return format_value(value, curve.unit)

    if curve.bound is not None:
        return f"≥ {show(curve.top)} ({format_count(curve.censored)} requests)"
    return f"max {show(curve.top) if curve.top_known else format_range(curve.top_low, curve.top, show)}"


# ------------------------------------------------------------
# How a percentile curve is drawn: solid where the sample supports it, dashed where one event
# does, dotted beyond.

SHADED = "shaded: the source says no more"
"""What a chart says of areas that `spread` fills."""

_EVENT = (0, (3.4, 2.0))
"""The dashes of what is based on a few events."""


def cut(curve: Curve, start: float, end: float) -> tuple[Floats, Floats]:
    """Return the corners of a curve between two percentiles, for ``drawstyle="steps-pre"``."""
    last = float(curve.percentile[-1])
    if start >= min(end, last):
        return np.zeros(0), np.zeros(0)
    inside = (curve.percentile > start) & (curve.percentile < min(end, last))
    at = np.concatenate(([start], curve.percentile[inside], [min(end, last)]))
    value = np.concatenate((curve.at([start]), curve.value[inside], curve.at([min(end, last)])))
    return at, np.where(curve.known_at(at), value, np.nan)


def draw_curve(
    ax: Axes,
    curve: Curve,
    style: dict[str, Any],
    zero: float,
    dashed_from: float | None = None,
    *,
    crowded: bool = False,
) -> list[Line2D]:
    """Draw a curve in up to three pieces and its end at 100 %; return the lines, the supported piece first."""
    look: dict[str, Any] = {
        "linewidth": 1.8,
        "solid_joinstyle": "miter",
        "dash_capstyle": "butt",
        "zorder": 3,
    } | style
    faint = look | {"linewidth": 0.85 * look["linewidth"], "linestyle": UNSUPPORTED}
    first = curve.limit if dashed_from is None else min(dashed_from, curve.limit)
    pieces = [
        (0.0, first, look),
        (first, curve.limit, look | {"linestyle": _EVENT}),
        (curve.limit, 100.0, faint),
    ]
    lines: list[Line2D] = []
    for start, end, kind in pieces:
        at, value = cut(curve, start, end)
        if at.size:
            named = kind if not lines else kind | {"label": "_nolegend_"}
            lines += ax.plot(at, np.maximum(value, zero), drawstyle="steps-pre", **named)
    lines += spread(ax, curve, look, zero, crowded=crowded)
    mark = {
        "linestyle": "none",
        "color": look["color"],
        "clip_on": False,
        "markersize": 4.0,
        "zorder": 4,
        "label": "_nolegend_",
    }
    if curve.bound is not None:
        last = float(curve.percentile[-1])
        lines += ax.plot(
            [last, last, 100.0],
            [max(float(curve.value[-1]), zero), curve.top, curve.top],
            **faint | {"label": "_nolegend_"},
        )
        ax.plot([100.0], [curve.top], marker="^", **mark)
    elif curve.top_known:
        ax.plot([100.0], [max(curve.top, zero)], marker="o", **mark)
    return lines


def grid_of(limit: float, nines: float, points: int = 260) -> Floats:
    """Return percentiles from 0 to `limit`, evenly by nines."""
    top = float(min(place_of(np.array([limit]))[0], nines + 0.6))
    grid = 100.0 * (1.0 - 10.0 ** -np.linspace(0.0, top, points))
    grid[-1] = min(limit, 100.0)
    return grid


def band(
    ax: Axes,
    evidence: Evidence,
    curve: Curve,
    confidence: float,
    colour: str,
    nines: float,
    zero: float,
) -> None:
    """Draw the confidence band as far as the sample supports the curve; where it has no upper end it opens to the maximum."""
    grid, low, high = band_ends(evidence, curve, confidence, nines)
    if not grid.size:  # corrected counts
        return
    ax.fill_between(
        grid,
        np.maximum(low, zero),
        np.maximum(high, zero),
        step="pre",
        color=colour,
        alpha=0.15,
        linewidth=0,
        zorder=2,
    )


def band_ends(
    evidence: Evidence, curve: Curve, confidence: float, nines: float
) -> tuple[Floats, Floats, Floats]:
    """Return percentiles and the ends of the confidence band up to each; the curve lies within, for each of its steps is one."""
    grid = grid_of(curve.limit, nines)
    grid = np.unique(np.concatenate((grid, curve.percentile[curve.percentile <= grid[-1]])))
    rows, _ = evidence.rows((grid * (1 - 4e-16)).tolist(), confidence)
    low, high = np.array([row.low for row in rows]), np.array([row.high for row in rows])
    known = ~(np.isnan(low) & np.isnan(high))
    value = curve.at(grid)  # of a dense curve fewer steps are drawn than there are
    low = np.minimum(np.where(np.isfinite(low), low, curve.low[0]), value)
    high = np.maximum(np.where(np.isfinite(high), high, curve.top), value)
    return grid[known], low[known], high[known]


def spread(
    ax: Axes,
    curve: Curve,
    look: dict[str, Any],
    zero: float,
    *,
    across: bool = False,
    least: float = 0.0,
    crowded: bool = False,
) -> list[Line2D]:
    """Fill from the lower to the upper edge where the source says no more, and mark what the tool printed."""
    if not curve.wide:
        return []
    at = np.maximum(1.0 - curve.percentile / 100.0, least) if across else curve.percentile
    low, high = (
        np.where(curve.resolved, np.nan, np.maximum(edge, zero))
        for edge in (curve.low, curve.value)
    )
    fill = {
        "color": look["color"],
        "alpha": 0.04 if crowded else 0.2,
        "linewidth": 0,
        "zorder": 2,
        "step": "pre",
    }
    (ax.fill_betweenx if across else ax.fill_between)(at, low, high, **fill)
    thin = {"color": look["color"], "linewidth": 0.7, "alpha": 0.7, "zorder": 2.2, "label": "_edge"}
    style = {
        "drawstyle": "steps-post" if across else "steps-pre",
        **thin,
        "linestyle": look.get("linestyle", "solid"),
    }
    lower, upper = ((edge, at) if across else (at, edge) for edge in (low, high))
    ax.plot(*lower, **style)
    lines: list[Line2D] = ax.plot(*upper, **style)
    p, value = (
        np.asarray(curve.reported_percentiles[0], np.float64),
        np.maximum(np.asarray(curve.reported_percentiles[1], np.float64), zero),
    )
    inner = (p > 0) & (p < 100)
    p = np.maximum(1.0 - p / 100.0, least) if across else p
    place = (value, p) if across else (p, value)
    mark = {
        "linestyle": "none",
        "marker": "o",
        "markersize": 4.0,
        "color": look["color"],
        "zorder": 4,
        "label": "_printed",
    }
    ax.plot(*(part[inner] for part in place), **mark)
    return lines


def nines_of(count: int | None) -> int:
    """Return how many nines an axis needs for a sample: its last step stands shortly before 100 %, six nines at most."""
    return 6 if count is None else int(min(6, max(2, math.ceil(math.log10(max(count, 1)) - 0.4))))


# ------------------------------------------------------------
# From which percentile on a curve is based on a few events: what its log, or its samples, know of
# time.

_FEW = 4
"""More series are told apart by nothing finer than their curves."""


def expect_evidence(series: Mapping[str, Any]) -> None:
    """Have the pass that sums a log show how its requests cluster, too."""
    for data in series.values():
        if isinstance(data, HistogramLog):
            data.expect()


def evidence_of(data: Any, counted: Any) -> Evidence:
    """Return how far the numbers can be trusted: of what knows time by its time, else by ranks."""
    evidence: Evidence = (
        data.evidence(counted) if isinstance(data, Samples | HistogramLog) else counted.evidence()
    )
    return evidence


def resting(series: Mapping[str, Any], counted: Mapping[str, Any]) -> dict[str, tuple[float, str]]:
    """Return label → percentile from which a curve is based on a few events, and what these are."""
    found: dict[str, tuple[float, str]] = {}
    for label, data in series.items() if len(series) <= _FEW else ():
        whole = counted.get(label)
        if (
            isinstance(data, Samples | HistogramLog)
            and isinstance(whole, Histogram)
            and whole.count
        ):
            at, words = data.evidence(whole).solid_up_to()
            found |= {label: (at, words)} if words else {}
    return found


def dashes(rests: Mapping[str, tuple[float, str]]) -> str:
    """Return what the dashes of a chart mean, or nothing where there are none."""
    words = dict.fromkeys(plain(what) for _, what in rests.values() if what)
    return f"dashed: is based on {', '.join(words)}" if words else ""


# ------------------------------------------------------------
# A summary as what it is: some labelled points, or one line where only a mean is known.

_LABELLED = 12
_USUAL = (0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0)


def known_points(summary: Summary) -> dict[float, float]:
    """Return the percentiles that a summary holds, its minimum and maximum among them, ascending."""
    known = dict(summary.reported_percentiles)
    for name, percentile in (("min", 0.0), ("max", 100.0)):
        if name in summary.stats:
            known[percentile] = summary.stats[name]
    return dict(sorted(known.items()))


def what_is_missing(summary: Summary) -> str:
    """Return a plain sentence on what the chart cannot show."""
    tool = summary.run.tool or summary.run.source or "this output"
    if known_points(summary):
        return f"{tool} prints these points only: nothing is known between them"
    return f"{tool} prints a mean only: nothing is known of the distribution"


def draw_summary(
    ax: Axes, labels: LineLabels, summary: Summary, colour: str, *, alone: bool
) -> list[Line2D]:
    """Draw points, or the mean as a line; alone, each with its value and with a sentence on what is missing."""
    known = known_points(summary)
    mean = summary.stats.get("mean")
    if known:
        look: dict[str, Any] = {
            "linestyle": "none",
            "marker": "o",
            "markersize": 5.5,
            "color": colour,
            "clip_on": False,
            "zorder": 4,
        }
        lines = ax.plot(list(known), list(known.values()), **look)
        crowded = len(known) > _LABELLED
        for percentile, value in known.items() if alone else ():
            if crowded and percentile not in _USUAL:
                continue
            name = "min" if percentile == 0 else percentile_text(percentile)
            labels.point(
                ax,
                f"{name} {format_value(value, summary.unit)}",
                (percentile, value),
                lines,
                fontsize=9,
            )
    else:
        lines = [
            ax.axhline(
                mean if mean is not None else 1.0,
                color=colour,
                linewidth=1.6,
                linestyle=(0, (6, 2.5)),
            )
        ]
        if alone and mean is not None:
            labels.add(ax, f"mean {format_value(mean, summary.unit)}", lines, at=0.5)
    if alone:
        words = what_is_missing(summary)
        labels.note(
            ax,
            (words, words.replace(": ", ":\n")),
            lambda: ax.get_window_extent().extents,
            (0.97, 0.05),
        )
    return lines
