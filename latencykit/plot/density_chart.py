"""The density of values: the modes that a single percentile hides, on a logarithmic axis."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from latencykit._text import plain
from latencykit._typing import Floats
from latencykit.analysis.modes import find_modes
from latencykit.core.distribution import Distribution
from latencykit.plot.axes import share_text, value_axis
from latencykit.plot.curves import curve_of, end_words
from latencykit.plot.label_layout import LineLabels, head, lanes, named_tops
from latencykit.plot.series import (
    Drawable,
    Limits,
    as_series,
    chart_title,
    distinct_names,
    drawable,
    joined,
    slo_pairs,
)
from latencykit.plot.style import FEW, INK, MUTED, Look, current_axes, series_styles, tidy
from latencykit.units import format_value, percentile_name

_SPREAD = "spread evenly within wide buckets, of which the file gives only a range"


def shares(data: Any, edges: Floats) -> Floats:
    """Return the share of values per bin; buckets across an edge are divided as on the axis."""
    # In proportion to the values, a wide bucket would rise to a peak at its upper edge, on a
    # logarithmic axis: one that nobody measured.
    weights, total = (
        (data.probabilities, 1.0)
        if isinstance(data, Distribution)
        else (data.counts, data.count + data.censored)
    )
    high = data.buckets.high(data.index)
    weights = np.where(high > 0, weights, 0)  # zeros are below all edges
    low = np.log(np.maximum(data.buckets.low(data.index), edges[0]))
    width = np.maximum(np.log(np.maximum(high, edges[0])) - low, 1e-12)
    below = [
        float((weights * np.clip((edge - low) / width, 0.0, 1.0)).sum())
        for edge in np.log(edges).tolist()
    ]
    return np.diff(below) / max(total, 1e-300)


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
    **line_kwargs: object,
) -> Axes:
    """Draw the share of requests by value.

    Parameters
    ----------
    data : data type with buckets, Distribution, or mapping of str to such
    slo : optional
        As in `percentiles`; the limits are drawn as upright lines.
    bins : int, default 120
        Evenly spaced in the logarithm of the value.
    ax, unit, legend, title, subtitle, **line_kwargs
        As in `percentiles`.

    Returns
    -------
    Axes

    Raises
    ------
    DataNotAvailableError
        For a summary, and where nothing was counted.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from latencykit.core.histogram import Histogram
    >>> density(Histogram.of(range(1, 1000)), ax=Figure().add_subplot()).get_xscale()
    'log'
    """
    ax = current_axes(ax)
    given = as_series(data)
    series, empty = drawable(given, "density")
    stored = next(iter(series.values())).unit
    curves = {label: curve_of(part) for label, part in series.items()}
    begins, shares_of_zeros = zip(*map(_lowest_and_zeros, series.values()), strict=True)
    low, high = min(begins), max(curve.top for curve in curves.values())
    if high < low:  # nothing but zeros
        low, high = 1.0, 10.0
    edges = np.geomspace(low / 1.02, max(high, low * 1.5) * 1.02, bins + 1)
    parts = {label: shares(values, edges) for label, values in series.items()}
    zeros = dict(zip(series, shares_of_zeros, strict=True))
    limits = [limit for _, limit in slo_pairs(slo)]
    zero = value_axis(
        ax, min([low, *limits]), max([high, *limits]), stored,
        fixed=unit, along="x", zeros=any(zeros.values()),
    )  # fmt: skip
    peak = max(*(float(part.max()) for part in parts.values()), *zeros.values(), 1e-12)
    labels = LineLabels()
    lines: dict[str, Line2D] = {}
    many = len(series) > FEW  # each on a lane: lines and fillings of many on each other are mud
    for k, (label, style) in enumerate(series_styles(series).items()):
        base, scale = (len(series) - 1 - k, 0.9 / peak) if many else (0, 1.0)
        style |= {"marker": "None"}
        look: Look = {"linewidth": 1.6, "zorder": 3.0 + len(lines)} | style | line_kwargs
        look |= {"label": plain(label) or "_nolegend_"}
        x = np.append(edges, edges[-1])
        y = np.concatenate((base + scale * parts[label], [base, base]))
        ax.fill_between(x, base, y, color=look["color"], alpha=0.16, step="post", linewidth=0)
        (lines[label],) = ax.plot(x, y, drawstyle="steps-post", solid_joinstyle="miter", **look)
        if zeros[label] > 0:  # as a bar
            ax.plot(
                [zero, zero], [base, base + scale * zeros[label]], color=look["color"],
                linewidth=5, solid_capstyle="butt", zorder=look["zorder"],
            )  # fmt: skip
        top = max(curves[label].top, ax.get_xlim()[0])
        above: Look = {"color": look["color"], "clip_on": False, "zorder": 31}
        mark: Look = {"marker": "|", "markersize": 11, "markeredgewidth": 2}
        ax.plot([top], [base], linestyle="none", label="_max", **mark, **above)
    if many:
        tops = {label: end_words(curve) for label, curve in curves.items()}
        ax.set_ylim(-0.1, len(series))
        lanes(ax, tops, [str(line.get_color()) for line in lines.values()], legend)
    else:
        ax.set_ylim(0, peak * (1.16 if len(series) == 1 else 1.3))
        ax.yaxis.set_major_formatter(share_text)
        # Each series is named at its peak; of a single one the modes are labelled; and the maxima.
        middle, names = np.sqrt(edges[1:] * edges[:-1]), distinct_names(parts, 32)
        for label, part in parts.items():
            model, origin = isinstance(series[label], Distribution), given[label]
            evidence = origin.evidence() if hasattr(origin, "evidence") else None
            modes = [] if model or len(parts) > 1 else find_modes(series[label], evidence)
            for mode in modes:
                place = int(np.searchsorted(edges, mode.value)) - 1
                words = format_value(mode.value, stored, 2)
                if len(modes) > 1:
                    words += f"  {100 * mode.share:.2g} %"
                at = (mode.value, float(part[max(place - 2, 0) : place + 3].max()))
                labels.point(ax, words, at, [lines[label]], above=True, color=MUTED)
            if len(parts) > 1 and legend:
                peak_at = int(np.argmax(part))
                at = (float(middle[peak_at]), float(part[peak_at]))
                bold: Look = {"fontsize": 9.5, "fontweight": "bold"}
                labels.point(ax, plain(names[label]), at, [lines[label]], above=True, **bold)
        maxima = {label: (curve.top, end_words(curve)) for label, curve in curves.items()}
        for words, members in named_tops(ax, maxima, across=True):
            colour = INK
            if len(members) == 1 and len(series) > 1:
                colour = str(lines[members[0]].get_color())
            at = (max(curves[members[-1]].top, ax.get_xlim()[0]), 0.0)
            named = [lines[label] for label in members]
            labels.point(ax, words, at, named, above=True, color=colour)
    for percentile, limit in slo_pairs(slo):
        ax.axvline(limit, color=INK, linewidth=1.1, zorder=30, label="_slo")
        words, units = f"SLO {percentile_name(percentile)}", ("data", "axes fraction")
        look = {"fontsize": 8.5, "color": INK, "va": "top"}
        ax.annotate(words, (limit, 1), (3, -3), units, "offset points", **look)
    ax.add_artist(labels)
    per_decade = bins / math.log10(edges[-1] / edges[0])
    tidy(ax, "latency" if stored != "none" else "value", "share per bin")
    spread = _SPREAD if any(curve.wide for curve in curves.values()) else ""
    finest = f"{per_decade:.0f} bins per decade"
    each = f"each lane up to {share_text(float(f'{peak / 0.9:.2g}'))}" if many else ""
    head(ax, chart_title(series), joined(series, empty, each, finest, spread), title, subtitle)
    return ax


def _lowest_and_zeros(data: Any) -> tuple[float, float]:
    """Where the values above zero begin, and the share of those that are zero."""
    model = isinstance(data, Distribution)
    weights = data.probabilities if model else data.counts
    low, high = data.buckets.low(data.index), data.buckets.high(data.index)
    middle = np.where(low > 0, low, high / 2)[weights > 0]
    zeros = float(weights[high <= 0].sum()) / (1 if model else data.count)
    return float(middle[middle > 0].min(initial=math.inf)), zeros
