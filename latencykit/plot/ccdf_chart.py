"""The share of requests above each value, on logarithmic axes: heavy tails are straight lines."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import FixedLocator, NullLocator

from latencykit.plot.axes import ShareFormatter, fit_values
from latencykit.plot.curves import band, band_ends, curve_of, cut, end_words, shaded, spread
from latencykit.plot.label_layout import LineLabels, head, name_curves
from latencykit.plot.series import (
    as_series,
    chart_title,
    drawable,
    evidence_of,
    expect_evidence,
    joined,
    percentile_text,
    slo_pairs,
)
from latencykit.plot.style import FEW, INK, UNSUPPORTED, current_axes, plain, series_styles, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

    from latencykit.plot.curves import Curve
    from latencykit.plot.series import Drawable, Limits

__all__ = ["ccdf"]


def ccdf(
    data: Drawable,
    *,
    ax: Axes | None = None,
    unit: str | None = None,
    slo: Limits | None = None,
    confidence: float | None = None,
    legend: bool = True,
    title: str | None = None,
    subtitle: str | None = None,
    **line_kwargs: object,
) -> Axes:
    """Draw the share of requests that took longer than each value.

    Parameters
    ----------
    data : data type with buckets, Distribution, or mapping of str to such
    slo : optional
        As in `percentiles`; each limit is a point at the share that it allows: curves should pass
        below and left of it.
    confidence : float, optional
        Draw the band of that confidence.
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
    >>> ax = ccdf(Histogram.of(range(1, 1000)), ax=Figure().add_subplot())
    >>> ax.get_xscale(), ax.get_yscale()
    ('log', 'log')
    """
    ax = current_axes(ax)
    measured = as_series(data)
    if confidence is not None:
        expect_evidence(measured)
    series, empty = drawable(measured, "tail")
    curves = {label: curve_of(values) for label, values in series.items()}
    values = np.concatenate([np.append(curve.value, curve.top) for curve in curves.values()])
    stored = next(iter(curves.values())).unit
    zero = fit_values(ax, values, stored, fixed=unit, along="x")
    largest = max((curve.count or 10**6) + curve.censored for curve in curves.values())
    least = 0.5 / largest  # half a request
    ax.set_yscale("log")
    ax.set_ylim(least, 1.6)
    powers = np.arange(math.ceil(math.log10(least)), 1)
    ticks = 10.0 ** powers[:: max(1, math.ceil(powers.size / 9))]
    ax.yaxis.set_major_locator(FixedLocator(ticks.tolist()))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(ShareFormatter())
    lines, crowded = {}, len(series) > FEW
    for label, style in series_styles(series).items():
        look: dict[str, Any] = {"linewidth": 1.4 if crowded else 1.8}
        look |= {"label": plain(label) or "_nolegend_"} | style | line_kwargs
        lines[label] = _draw(ax, curves[label], look, zero, least, crowded=crowded)
        if confidence is not None and hasattr(series[label], "percentile_rows"):
            evidence = evidence_of(measured[label], series[label])
            ends = band_ends(evidence, curves[label], confidence, 12)
            band(ax, ends, look["color"], zero, across=True, least=least)
    for percentile, limit in slo_pairs(slo):
        at, words = (limit, max(1 - percentile / 100, least)), f"SLO {percentile_text(percentile)}"
        mark: dict[str, Any] = {"marker": "s", "markersize": 5, "zorder": 5, "clip_on": False}
        ax.plot(*at, color=INK, linestyle="none", label="_slo", **mark)
        ax.annotate(words, at, (6, 3), "data", "offset points", fontsize=8.5, color=INK)
    labels = LineLabels()
    ends_of = {label: (curve.top, end_words(curve)) for label, curve in curves.items()}
    places = (0.45, 0.05, 0.5)
    name_curves(ax, labels, series, curves, ends_of, lines, places, across=True, named=legend)
    ax.add_artist(labels)
    tidy(ax, "latency" if stored != "none" else "value", "share of requests that took longer")
    notes = (empty, "dotted: the sample is too small", shaded(curves))
    head(ax, chart_title(series), joined(series, *notes), title, subtitle)
    return ax


def _draw(
    ax: Axes, curve: Curve, look: dict[str, Any], zero: float, least: float, *, crowded: bool
) -> list[Line2D]:
    """Draw a curve, dotted where the sample does not support it, and a mark at the maximum."""
    lines: list[Line2D] = []
    dotted = look | {"linestyle": UNSUPPORTED}
    for start, end, kind in ((0.0, curve.limit, look), (curve.limit, 100.0, dotted)):
        at, value = cut(curve, start, end)
        if at.size:
            x, share = np.maximum(value, zero), np.maximum(1.0 - at / 100.0, least)
            style = kind if not lines else kind | {"label": "_nolegend_"}
            # The share above one value applies to every value up to the next.
            lines += ax.plot(x, share, drawstyle="steps-post", zorder=3, **style)
    lines += spread(ax, curve, look, zero, across=True, least=least, crowded=crowded)
    mark = {"color": look["color"], "markersize": 6, "clip_on": False, "linestyle": "none"}
    if curve.bound is None and curve.top_known:
        ax.plot([max(curve.top, zero)], [least], marker="v", zorder=4, **mark)
    elif curve.bound is not None:
        last = max(1.0 - float(curve.percentile[-1]) / 100.0, least)
        ax.plot([curve.top], [last], marker=">", zorder=4, **mark)
    return lines
