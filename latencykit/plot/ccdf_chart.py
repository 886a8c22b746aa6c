"""The share of requests above each value, both axes logarithmic: a straight line here is a heavy tail."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import FixedLocator, NullLocator

from latencykit.plot.axes import ShareFormatter, fit_values
from latencykit.plot.curves import (
    SHADED,
    as_series,
    band_ends,
    curve_of,
    cut,
    drawable,
    end_words,
    evidence_of,
    expect_evidence,
    spread,
)
from latencykit.plot.figure import (
    chart_title,
    head,
    joined,
    named_count,
    percentile_text,
    same_words,
    slo_pairs,
)
from latencykit.plot.label_layout import LineLabels, outside_legend
from latencykit.plot.style import (
    FEW,
    INK,
    UNSUPPORTED,
    current_axes,
    plain,
    series_styles,
    shorten,
    tidy,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

    from latencykit.core.histogram import Evidence
    from latencykit.plot._typing import Drawable, Limits
    from latencykit.plot.curves import Curve

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
    **line_kwargs: Any,
) -> Axes:
    """Draw the share of requests that took longer than each value.

    Parameters
    ----------
    data : data type with buckets, Distribution, or mapping of str to such
    ax : Axes, optional
        Where to draw; the current axes by default.
    unit : str, optional
        Unit of all ticks; by default each takes the one that suits it.
    slo : optional
        As in `percentiles`; each limit is a point at the share that it allows: curves should pass below and left of it.
    confidence : float, optional
        Draw the band of that confidence.
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
    given = as_series(data)
    if confidence is not None:
        expect_evidence(given)
    series, empty = drawable(given, "tail")
    curves = {label: curve_of(values) for label, values in series.items()}
    every = np.concatenate([np.append(curve.value, curve.top) for curve in curves.values()])
    stored = next(iter(curves.values())).unit
    zero = fit_values(ax, every, stored, fixed=unit, along="x")
    floor = 0.5 / max(
        (curve.count or 10**6) + getattr(series[label], "censored", 0)
        for label, curve in curves.items()
    )
    _share_axis(ax, floor)
    lines = {}
    for label, style in series_styles(series).items():
        look: dict[str, Any] = (
            {"linewidth": 1.8 if len(series) <= FEW else 1.4, "label": plain(label) or "_nolegend_"}
            | style
            | line_kwargs
        )
        lines[label] = _draw(ax, curves[label], look, zero, floor, crowded=len(series) > FEW)
        if confidence is not None and hasattr(series[label], "percentile_rows"):
            evidence = evidence_of(given[label], series[label])
            _band(ax, evidence, curves[label], confidence, look["color"], zero, floor)
    for percentile, limit in slo_pairs(slo) if slo is not None else ():
        share = max(1 - percentile / 100, floor)
        ax.plot(
            [limit],
            [share],
            marker="s",
            color=INK,
            markersize=5,
            linestyle="none",
            zorder=5,
            label="_slo",
            clip_on=False,
        )
        ax.annotate(
            f"SLO {percentile_text(percentile)}",
            (limit, share),
            (6, 3),
            "data",
            "offset points",
            fontsize=8.5,
            color=INK,
        )
    labels = LineLabels()
    _name(ax, labels, series, curves, lines, named=legend)
    ax.add_artist(labels)
    tidy(ax, "latency" if stored != "none" else "value", "share of requests that took longer")
    more = f"nothing counted: {', '.join(map(plain, empty))}" if empty else ""
    wide = SHADED if any(curve.wide for curve in curves.values()) else ""
    head(
        ax,
        chart_title(series),
        joined(series, more, "dotted: the sample is too small", wide),
        title,
        subtitle,
    )
    return ax


def _share_axis(ax: Axes, floor: float) -> None:
    """Shares from all to half a request, with ticks such as 1 % and 0.01 %."""
    ax.set_yscale("log")
    ax.set_ylim(floor, 1.6)
    powers = np.arange(math.ceil(math.log10(floor)), 1)
    ax.yaxis.set_major_locator(
        FixedLocator((10.0 ** powers[:: max(1, math.ceil(powers.size / 9))]).tolist())
    )
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(ShareFormatter())


def _draw(
    ax: Axes, curve: Curve, look: dict[str, Any], zero: float, floor: float, *, crowded: bool
) -> list[Line2D]:
    """Solid as far as the sample supports it, dotted below; a mark where the maximum stands."""
    lines: list[Line2D] = []
    for start, end, kind in (
        (0.0, curve.limit, look),
        (curve.limit, 100.0, look | {"linestyle": UNSUPPORTED}),
    ):
        at, value = cut(curve, start, end)
        if at.size:
            share = np.maximum(1.0 - at / 100.0, floor)
            style = kind if not lines else kind | {"label": "_nolegend_"}
            # What is above one value is above every one up to the next.
            lines += ax.plot(
                np.maximum(value, zero), share, drawstyle="steps-post", zorder=3, **style
            )
    lines += spread(ax, curve, look, zero, across=True, least=floor, crowded=crowded)
    if curve.bound is None and curve.top_known:
        ax.plot(
            [max(curve.top, zero)],
            [floor],
            marker="v",
            color=look["color"],
            markersize=6,
            clip_on=False,
            linestyle="none",
            zorder=4,
        )
    elif curve.bound is not None:
        last = max(1.0 - float(curve.percentile[-1]) / 100.0, floor)
        ax.plot(
            [curve.top],
            [last],
            marker=">",
            color=look["color"],
            markersize=6,
            clip_on=False,
            linestyle="none",
            zorder=4,
        )
    return lines


def _band(
    ax: Axes,
    evidence: Evidence,
    curve: Curve,
    confidence: float,
    colour: str,
    zero: float,
    floor: float,
) -> None:
    grid, low, high = band_ends(evidence, curve, confidence, 12)
    if not grid.size:  # corrected counts
        return
    share = np.maximum(1.0 - grid / 100.0, floor)
    ax.fill_betweenx(
        share,
        np.maximum(low, zero),
        np.maximum(high, zero),
        step="pre",
        color=colour,
        alpha=0.15,
        linewidth=0,
        zorder=2,
    )


def _name(
    ax: Axes, labels: LineLabels, series: Mapping[str, Any], curves: Mapping[str, Curve], lines: Mapping[str, list[Line2D]],
    *, named: bool,
) -> None:  # fmt: skip
    """Name few series beside their curves and many in a legend, in the order in which they end."""
    ends = {label: end_words(curve) for label, curve in curves.items()}
    if named and len(curves) > FEW:
        order = sorted(curves, key=lambda label: -curves[label].top)
        outside_legend(
            ax,
            [lines[label][0] for label in order],
            [f"{plain(shorten(label, 22))}   {ends[label]}" for label in order],
        )
        return
    if named and len(curves) > 1:
        for k, (label, data) in enumerate(series.items()):
            labels.add(ax, named_count(label, data), lines[label], at=0.45 + 0.05 * k, spread=0.5)
    for words, members in same_words(ends).items():
        colour = lines[members[0]][0].get_color() if len(members) == 1 and len(curves) > 1 else INK
        where = (max(curves[members[0]].top, ax.get_xlim()[0]), ax.get_ylim()[0])
        labels.point(
            ax,
            words,
            where,
            [line for label in members for line in lines[label]],
            color=colour,
            fontsize=9,
        )
