"""Where the values lie: the modes that a single percentile hides, on a logarithmic axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.errors import NotHeldError
from latencykit.plot.curves import as_histogram, as_series, describe
from latencykit.plot.style import INK, current_axes, line_styles, plain, tidy, title_axes, value_axis
from latencykit.summary import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from latencykit.histogram import Histogram

    Floats = NDArray[np.float64]

__all__ = ["density", "shares"]


def shares(histogram: Histogram, edges: Floats) -> Floats:
    """Return the share of values in each bin; a bucket that straddles an edge is divided in proportion.

    Parameters
    ----------
    histogram : Histogram
    edges : ndarray of float64, shape (bins + 1,)

    Returns
    -------
    ndarray of float64, shape (bins,)

    Examples
    --------
    >>> from latencykit.histogram import Histogram
    >>> shares(Histogram.of([1, 2, 100]), np.array([0.5, 10.5, 200.5])).round(2).tolist()
    [0.67, 0.33]
    """
    low, high = histogram.buckets.low(histogram.index), histogram.buckets.high(histogram.index)
    width = np.maximum(high - low, 1e-9)
    part = np.zeros(edges.size)
    for k, edge in enumerate(edges.tolist()):
        part[k] = float((histogram.counts * np.clip((edge - low) / width, 0.0, 1.0)).sum())
    return np.diff(part) / max(histogram.count, 1)


def density(
    data: Any,
    *,
    ax: Axes | None = None,
    unit: str | None = None,
    slo: Any = None,
    confidence: float | None = None,  # noqa: ARG001 - every chart takes the same options
    bins: int = 120,
    title: str | None = None,
    subtitle: str | None = None,
    **line_kwargs: Any,
) -> Axes:
    """Draw the share of requests by value.

    Parameters
    ----------
    data : rung with buckets, or mapping of str to such
    ax : Axes, optional
    unit : str, optional
        Fix the unit of the ticks.
    slo : optional
        An SLO: its limits are drawn as upright lines.
    bins : int, default 120
        Evenly spaced in the logarithm of the value.
    title, subtitle : str, optional
    **line_kwargs
        For the lines.

    Returns
    -------
    Axes
    """
    ax = current_axes(ax)
    series = {label: as_histogram(rung) for label, rung in as_series(data).items()}
    for label, rung in series.items():
        if isinstance(rung, Summary) or not rung.count:
            raise NotHeldError(f"{label}: has no buckets, so its density is unknown; a histogram or samples would show it")
    low = min(_lowest(rung) for rung in series.values())
    high = max(rung.max for rung in series.values())
    edges = np.geomspace(low * 0.95, max(high, low) * 1.05, bins + 1)
    shown = next(iter(series.values())).unit
    value_axis(ax, low, high, shown, along="x")
    styles = line_styles(list(series))
    peak = 0.0
    for (label, rung), style in zip(series.items(), styles, strict=True):
        part = shares(rung, edges)
        peak = max(peak, float(part.max()))
        look = {"linewidth": 1.6} | style | line_kwargs
        if len(series) <= 2:
            ax.fill_between(edges, np.append(part, part[-1]), step="post", color=look["color"], alpha=0.15, linewidth=0)
        ax.plot(edges, np.append(part, part[-1]), drawstyle="steps-post", label=plain(label, 30), **look)
        ax.plot(
            [rung.max],
            [0],
            marker="|",
            markersize=12,
            markeredgewidth=2,
            color=look["color"],
            clip_on=False,
            linestyle="none",
        )
    ax.set_ylim(0, peak * 1.12)
    ax.yaxis.set_major_formatter(lambda value, _: f"{value * 100:.3g} %")
    if unit is not None:
        from matplotlib.ticker import FuncFormatter

        from latencykit.units import unit_factor

        factor = unit_factor(shown, unit)
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value * factor:,.10g} {unit.replace('us', 'µs')}"))
    if slo is not None:
        for _, limit in slo.staircase() if hasattr(slo, "staircase") else slo:
            ax.axvline(limit, color=INK, linewidth=1.0)
    if len(series) > 1:
        ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize=9, labelcolor="linecolor")
    ax.set_ylabel("share of requests a bin", fontsize=9.5, color=INK)
    ax.set_xlabel("latency (bins of equal width in its logarithm; a tick marks each maximum)", fontsize=9.5, color=INK)
    tidy(ax)
    first = next(iter(series))
    conditions = describe(series[first]) if len(series) == 1 else ""
    title_axes(
        ax,
        (first if len(series) == 1 else f"{len(series)} series") if title is None else title,
        conditions if subtitle is None else subtitle,
    )
    return ax


def _lowest(histogram: Histogram) -> float:
    """The lowest positive value."""
    middle = histogram.buckets.mid(histogram.index)
    positive = middle[middle > 0]
    return float(positive[0]) if positive.size else 0.5
