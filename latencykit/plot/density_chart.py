"""Where the values lie: the modes that a single percentile hides, on a logarithmic axis."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.core.distribution import Distribution
from latencykit.core.key_statistics import statistic_text
from latencykit.core.quantiles import is_resolved
from latencykit.plot.axes import ShareFormatter, value_axis
from latencykit.plot.curves import as_series, drawable
from latencykit.plot.figure import chart_title, head, joined, percentile_text, same_words, slo_pairs
from latencykit.plot.label_layout import LineLabels
from latencykit.plot.style import FEW, INK, MUTED, current_axes, plain, series_styles, shorten, tidy
from latencykit.units import format_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from numpy.typing import NDArray

    from latencykit.plot._typing import Drawable, Limits

    Floats = NDArray[np.float64]

__all__ = ["density", "modes", "shares"]

_LANE = 11.0
"""Points that a series needs for its name and its maximum."""

_SPREAD = "spread evenly within wide buckets, of which the source says no more"

_OVERLAP = 1.9
"""How far a series that stands among others may reach, in distances from one to the next."""


def shares(data: Any, edges: Floats) -> Floats:
    """Return the share of values in each bin; a bucket that straddles an edge is divided in proportion."""
    weights, total = (
        (data.probabilities, 1.0)
        if isinstance(data, Distribution)
        else (data.counts, data.count + data.censored)
    )
    low, high = data.buckets.low(data.index), data.buckets.high(data.index)
    width = np.maximum(high - low, 1e-9)
    below = [
        float((weights * np.clip((edge - low) / width, 0.0, 1.0)).sum()) for edge in edges.tolist()
    ]
    return np.diff(below) / max(total, 1e-300)


def modes(part: Floats, most: int = 3, weight: float = 0.02) -> list[int]:
    """Return the positions of the highest peaks that stand out from their surroundings, the highest first.

    A peak stands out where it is three times as high as the valley towards any higher one, and where it holds at least
    `weight` of all values.
    """
    smooth = np.convolve(part, [0.25, 0.5, 0.25], "same")
    found: list[int] = []
    for peak in np.argsort(-smooth, kind="stable").tolist():
        if len(found) == most or smooth[peak] <= 0:
            break
        if (peak > 0 and smooth[peak - 1] > smooth[peak]) or (
            peak + 1 < smooth.size and smooth[peak + 1] > smooth[peak]
        ):
            continue
        valleys = [smooth[min(peak, other) : max(peak, other) + 1].min() for other in found]
        around = part[max(0, peak - 4) : peak + 5].sum()
        if all(3 * valley <= smooth[peak] for valley in valleys) and around >= weight:
            found.append(peak)
    return found


def density(
    data: Drawable,
    *,
    ax: Axes | None = None,
    unit: str | None = None,
    slo: Limits | None = None,
    bins: int = 120,
    legend: bool = True,
    title: str | None = None,
    subtitle: str | None = None,
    **line_kwargs: Any,
) -> Axes:
    """Draw the share of requests by value.

    Parameters
    ----------
    data : data type with buckets, Distribution, or mapping of str to such
        More than four series stand above each other, each with a base line of its own.
    ax : Axes, optional
        Where to draw; the current axes by default.
    unit : str, optional
        Unit of all ticks; by default each takes the one that suits it.
    slo : optional
        As in `percentiles`; the limits are drawn as upright lines.
    bins : int, default 120
        Evenly spaced in the logarithm of the value.
    legend : bool, default True
        Name the series.
    title, subtitle : str, optional
        By default what was measured, and the conditions. Empty for none.
    **line_kwargs
        For the lines.

    Returns
    -------
    Axes

    Raises
    ------
    DataNotAvailableError
        For a summary, and where nothing was counted.
    """
    ax = current_axes(ax)
    series, empty = drawable(as_series(data), "density")
    stored = next(iter(series.values())).unit
    low = min(_lowest(values) for values in series.values())
    high = max(_highest(values) for values in series.values())
    if high < low:  # nothing but zeros
        low, high = 1.0, 10.0
    edges = np.geomspace(low / 1.02, max(high, low * 1.5) * 1.02, bins + 1)
    parts = {label: shares(values, edges) for label, values in series.items()}
    zeros = {label: share for label, values in series.items() if (share := _zeros(values)) > 0}
    zero = value_axis(ax, low, high, stored, fixed=unit, along="x", zeros=bool(zeros))
    stacked = len(series) > FEW
    base = {label: float(len(series) - 1 - k) if stacked else 0.0 for k, label in enumerate(series)}
    peak = max(*(float(part.max()) for part in parts.values()), *zeros.values(), 1e-12)
    labels = LineLabels()
    lines = {}
    for label, style in series_styles(series).items():
        scale = _OVERLAP / peak if stacked else 1.0
        look = (
            {"linewidth": 1.1 if stacked else 1.6, "zorder": 2.0 + len(series) - base[label]}
            | style
            | line_kwargs
        )
        look |= {"label": plain(label) or "_nolegend_"} | (
            {"linestyle": "solid"} if stacked else {}
        )
        lines[label] = _draw(
            ax,
            edges,
            parts[label] * scale,
            zeros.get(label, 0.0) * scale,
            zero,
            base[label],
            look,
            stacked=stacked,
        )
        _tick(
            ax,
            series[label],
            base[label],
            look,
            labelled=stacked and _lane(ax, len(series)) >= _LANE,
        )
    if stacked:
        _lanes(ax, base)
    else:
        ax.set_ylim(0, peak * (1.16 if len(series) == 1 else 1.3))
        ax.yaxis.set_major_formatter(ShareFormatter())
        _name(ax, labels, series, parts, edges, lines, named=legend)
    _limits(ax, slo)
    ax.add_artist(labels)
    a_decade = bins / math.log10(edges[-1] / edges[0])
    height = "" if stacked else f"share of requests a bin ({a_decade:.0f} bins a decade)"
    tidy(ax, "latency" if stored != "none" else "value", height)
    ax.spines["left"].set_visible(not stacked)
    more = f"nothing counted: {', '.join(map(plain, empty))}" if empty else ""
    spread = _SPREAD if any(_wide(values).any() for values in series.values()) else ""
    head(
        ax,
        chart_title(series),
        joined(series, more, "all on one scale" if stacked else "", spread),
        title,
        subtitle,
    )
    return ax


def _limits(ax: Axes, slo: Any) -> None:
    """An SLO's limits as upright lines."""
    for percentile, limit in slo_pairs(slo) if slo is not None else ():
        ax.axvline(limit, color=INK, linewidth=1.1, zorder=30, label="_slo")
        words = f"SLO {percentile_text(percentile)}"
        ax.annotate(
            words,
            (limit, 1),
            (3, -3),
            ("data", "axes fraction"),
            "offset points",
            fontsize=8.5,
            color=INK,
            va="top",
        )


def _draw(
    ax: Axes,
    edges: Floats,
    part: Floats,
    zeros: float,
    zero: float,
    base: float,
    look: dict[str, Any],
    *,
    stacked: bool,
) -> Line2D:
    """One series as steps over its base, and its zeros as a bar of their own."""
    x, y = np.append(edges, edges[-1]), base + np.concatenate((part, [0.0, 0.0]))
    fill = {"step": "post", "linewidth": 0, "zorder": look["zorder"] - 0.5}
    if stacked:
        ax.fill_between(x, base, y, color="white", alpha=0.75, **fill)
    ax.fill_between(x, base, y, color=look["color"], alpha=0.30 if stacked else 0.16, **fill)
    (line,) = ax.plot(x, y, drawstyle="steps-post", solid_joinstyle="miter", **look)
    if zeros > 0:
        ax.plot(
            [zero, zero],
            [base, base + zeros],
            color=look["color"],
            linewidth=5,
            solid_capstyle="butt",
            zorder=look["zorder"],
        )
    return line


def _tick(ax: Axes, data: Any, base: float, look: dict[str, Any], *, labelled: bool) -> None:
    """A tick on the base line where the maximum stands."""
    top, over = (
        max(_highest(data), ax.get_xlim()[0]),
        {"color": look["color"], "clip_on": False, "zorder": 31},
    )
    ax.plot(
        [top],
        [base],
        marker="|",
        markersize=11,
        markeredgewidth=2,
        linestyle="none",
        label="_max",
        **over,
    )
    if labelled:
        ax.annotate(
            _words(data),
            (top, base),
            (-4, 1.5),
            "data",
            "offset points",
            ha="right",
            va="bottom",
            fontsize=7.5,
            color=MUTED,
            zorder=32,
        )


def _words(data: Any) -> str:
    if getattr(data, "censored", 0) or isinstance(data, Distribution):
        return f"{'≥' if getattr(data, 'censored', 0) else 'max'} {format_value(_highest(data), data.unit)}"
    return f"max {statistic_text(data, 'max')}"


def _name(
    ax: Axes, labels: LineLabels, series: Mapping[str, Any], parts: Mapping[str, Floats], edges: Floats,
    lines: Mapping[str, Line2D], *, named: bool,
) -> None:  # fmt: skip
    """Name each series at its peak, or write beside the modes of a single one where they lie; label the maxima."""
    middle = np.sqrt(edges[1:] * edges[:-1])
    for label, part in parts.items():
        peak = int(np.argmax(part))
        if len(parts) == 1:
            for mode in modes(part):
                if not _pinned_down(series[label], edges[mode], edges[mode + 1]):
                    continue
                words = format_value(float(middle[mode]), series[label].unit, 2)
                labels.point(
                    ax,
                    words,
                    (float(middle[mode]), float(part[mode])),
                    [lines[label]],
                    above=True,
                    color=MUTED,
                )
        elif named:
            where = (float(middle[peak]), float(part[peak]))
            labels.point(
                ax,
                plain(shorten(label, 32)),
                where,
                [lines[label]],
                above=True,
                fontsize=9.5,
                fontweight="bold",
            )
    for words, members in same_words(
        {label: _words(data) for label, data in series.items()}
    ).items():
        colour = lines[members[0]].get_color() if len(members) == 1 and len(series) > 1 else INK
        labels.point(
            ax,
            words,
            (max(_highest(series[members[0]]), ax.get_xlim()[0]), 0.0),
            [lines[label] for label in members],
            above=True,
            color=colour,
        )


def _wide(data: Any) -> NDArray[np.bool_]:
    """Buckets with values that may lie anywhere in more than a tenth of their value."""
    return ~is_resolved(data.buckets.low(_held(data)), data.buckets.high(_held(data)))


def _pinned_down(data: Any, low: float, high: float) -> bool:
    """Whether what lies between two edges is where it was measured, and not only spread over a wide bucket."""
    wide = _wide(data)
    bottom, top = data.buckets.low(_held(data))[wide], data.buckets.high(_held(data))[wide]
    return not bool(((bottom < high) & (top > low)).any())


def _lane(ax: Axes, number: int) -> float:
    """Distance in points from one series to the next where they stand above each other."""
    return float(ax.get_window_extent().height * 72.0 / ax.figure.dpi / (number + 1.3))


def _lanes(ax: Axes, base: Mapping[str, float]) -> None:
    """Names at the base lines of series that stand above each other."""
    step = max(
        1, round(_LANE / _lane(ax, len(base)))
    )  # where there is little room, every second name or fewer
    ax.set_yticks(
        list(base.values())[::step], [plain(shorten(label, 22)) for label in list(base)[::step]]
    )
    ax.set_ylim(-0.25, len(base) - 1 + _OVERLAP * 1.06)


def _held(data: Any) -> Any:
    return data.index[data.probabilities > 0] if isinstance(data, Distribution) else data.index


def _zeros(data: Any) -> float:
    """The share of values that are zero."""
    at_zero = data.buckets.high(data.index) <= 0
    if isinstance(data, Distribution):
        return float(data.probabilities[at_zero].sum())
    return float(data.counts[at_zero].sum() / data.count)


def _lowest(data: Any) -> float:
    """The lowest positive value; infinity where there is none."""
    low, high = data.buckets.low(_held(data)), data.buckets.high(_held(data))
    middle = np.where(low > 0, low, high / 2)
    positive = middle[middle > 0]
    return float(positive[0]) if positive.size else math.inf


def _highest(data: Any) -> float:
    """The maximum, or where the censored values begin."""
    top = float(data.max)
    return max(top, float(data.censored_at)) if getattr(data, "censored", 0) else top
