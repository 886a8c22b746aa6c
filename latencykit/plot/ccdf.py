"""The share of requests above each value: straight lines here are heavy tails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.errors import NotHeldError
from latencykit.plot.curves import as_histogram, as_series, curve_of, describe
from latencykit.plot.style import INK, current_axes, line_styles, plain, tidy, title_axes, value_axis
from latencykit.summary import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ccdf"]


def ccdf(
    data: Any,
    *,
    ax: Axes | None = None,
    unit: str | None = None,
    slo: Any = None,
    confidence: float | None = None,  # noqa: ARG001 - every chart takes the same options
    title: str | None = None,
    subtitle: str | None = None,
    **line_kwargs: Any,
) -> Axes:
    """Draw the share of requests that took longer, both axes logarithmic.

    Parameters
    ----------
    data : rung with buckets, Distribution, or mapping of str to such
    ax : Axes, optional
    unit : str, optional
        Fix the unit of the ticks.
    slo : optional
        An SLO: each limit is drawn as a point with the share that it allows.
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
        if isinstance(rung, Summary):
            raise NotHeldError(f"{label}: has no buckets, so its tail is unknown; a histogram or samples would show it")
    curves = {label: curve_of(rung) for label, rung in series.items()}
    positive = np.concatenate([curve.value[curve.value > 0] for curve in curves.values()])
    low, high = (float(positive.min()), float(positive.max())) if positive.size else (0.5, 1.0)
    floor = min(1.0 / max(getattr(rung, "count", 1e6), 1) for rung in series.values()) * 0.5
    shown = next(iter(curves.values())).unit
    value_axis(ax, low, high, shown, along="x")
    ax.set_yscale("log")
    ax.set_ylim(floor, 1.3)
    for (label, curve), style in zip(curves.items(), line_styles(list(curves)), strict=True):
        above = np.maximum(1.0 - curve.percentile / 100.0, floor)
        look = {"linewidth": 1.7} | style | line_kwargs
        ax.plot(np.maximum(curve.value, low), above, drawstyle="steps-post", label=plain(label, 30), **look)
        ax.plot(
            [curve.top],
            [floor],
            marker="v",
            color=look["color"],
            markersize=6,
            clip_on=False,
            linestyle="none",
        )
    if slo is not None:
        for percentile, limit in slo.staircase() if hasattr(slo, "staircase") else slo:
            ax.plot(
                [limit],
                [max(1 - percentile / 100, floor)],
                marker="s",
                color=INK,
                markersize=5,
                linestyle="none",
            )
    if unit is not None:
        from matplotlib.ticker import FuncFormatter

        from latencykit.units import unit_factor

        factor = unit_factor(shown, unit)
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value * factor:,.10g} {unit.replace('us', 'µs')}"))
    ax.yaxis.set_major_formatter(lambda value, _: f"{value * 100:.10g} %")
    ax.yaxis.set_minor_locator(_none())
    if len(series) > 1:
        ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize=9, labelcolor="linecolor")
    ax.set_xlabel("latency (a triangle marks each maximum)", fontsize=9.5, color=INK)
    ax.set_ylabel("share of requests that took longer", fontsize=9.5, color=INK)
    tidy(ax)
    first = next(iter(series))
    conditions = describe(series[first]) if len(series) == 1 else ""
    title_axes(
        ax,
        (first if len(series) == 1 else f"{len(series)} series") if title is None else title,
        conditions if subtitle is None else subtitle,
    )
    return ax


def _none() -> Any:
    from matplotlib.ticker import NullLocator

    return NullLocator()
