"""Time × latency: how the distribution of each interval lies, at one look."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, LogNorm
from matplotlib.image import PcolorImage

from latencykit.errors import UsageError
from latencykit.plot.curves import as_series, describe
from latencykit.plot.style import INK, current_axes, log_ticks, tick_text, tidy, title_axes
from latencykit.plot.timeline import as_log
from latencykit.units import unit_factor

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from latencykit.log import HistogramLog

    Floats = NDArray[np.float64]

__all__ = ["grid", "heatmap"]

_COLUMNS, _ROWS = 400, 140
_LOWEST, _DECADES, _FINE = -12, 32, 64  # bins of value while counting: 64 a decade, from 1e-12 to 1e20
_COLOURS = LinearSegmentedColormap.from_list("latency", ["#e3edf9", "#9cc3ec", "#3f86d3", "#0b4a97", "#08203f"])


def grid(log: HistogramLog, rows: int = _ROWS) -> tuple[Floats, Floats, Floats]:
    """Return time edges, value edges and counts, in one pass over the log.

    Parameters
    ----------
    log : HistogramLog
    rows : int, default 140
        At most so many bins of value, evenly spaced in its logarithm.

    Returns
    -------
    times : ndarray of float64, shape (columns + 1,)
    values : ndarray of float64, shape (rows + 1,)
    counts : ndarray of float64, shape (rows, columns)
    """
    slots = log.resample(log.duration / _COLUMNS) if len(log) > _COLUMNS else log
    edges = np.append(slots.starts, slots.starts[-1] + slots.lengths[-1])
    fine = np.zeros((_DECADES * _FINE, len(slots)))  # no matter where the values lie, one pass and a few MB
    for block in slots.blocks():
        middle = np.log10(np.maximum(block.buckets.mid(block.index), 10.0**_LOWEST))
        row = np.clip((middle - _LOWEST) * _FINE, 0, len(fine) - 1).astype(np.int64)
        np.add.at(fine, (row, block.rows[block.entry_rows]), block.counts)
    held = np.flatnonzero(fine.any(axis=1))
    first, last = (int(held[0]), int(held[-1]) + 1) if held.size else (0, 1)
    group = max(1, -(-(last - first) // rows))
    starts = np.arange(first, last, group)
    counts = np.add.reduceat(fine, starts, axis=0)
    counts[-1] = fine[starts[-1] : last].sum(0)
    values = 10.0 ** (_LOWEST + np.append(starts, starts[-1] + group) / _FINE)
    return edges, values, counts


def heatmap(
    data: Any,
    *,
    ax: Axes | None = None,
    unit: str | None = None,
    slo: Any = None,
    confidence: float | None = None,  # noqa: ARG001 - every chart takes the same options
    share: bool = True,
    title: str | None = None,
    subtitle: str | None = None,
    **image_kwargs: Any,
) -> Axes:
    """Draw how many requests of each interval took how long.

    Parameters
    ----------
    data : HistogramLog or Samples
    ax : Axes, optional
    unit : str, optional
        Fix the unit of the ticks.
    slo : optional
        An SLO: its highest limit is drawn as a line.
    share : bool, default True
        Colour by the share of the interval's requests; else by their number.
    title, subtitle : str, optional
    **image_kwargs
        For `matplotlib.image.PcolorImage`.

    Returns
    -------
    Axes
    """
    ax = current_axes(ax)
    series = as_series(data)
    if len(series) > 1:
        raise UsageError(
            f"a heat map shows one series, not {len(series)} ({', '.join(series)}); choose one with --series or --tag"
        )
    (label, rung), *_ = series.items()
    log = as_log(label, rung)
    if len(log.tags) > 1:
        raise UsageError(f"a heat map shows one series; choose a tag: {', '.join(log.tags)}")
    times, values, counts = grid(log)
    total = counts.sum(0)
    shown = np.divide(counts, total, out=np.zeros_like(counts), where=total > 0) if share else counts
    _log_rows(ax, values, log.unit, unit)
    ax.set_xlim(float(times[0]), float(times[-1]))
    positive = shown[shown > 0]
    norm = LogNorm(float(positive.min()), float(positive.max()) * 1.0001) if positive.size else None
    image = PcolorImage(
        ax,
        times,
        np.log10(values),
        np.ma.masked_less_equal(shown, 0),
        cmap=_COLOURS,
        norm=norm,
        **image_kwargs,
    )
    image.set_in_layout(False)  # it fills the axes and knows no extent of its own
    ax.add_image(image)
    bar = ax.figure.colorbar(image, ax=ax, pad=0.015, aspect=32, shrink=0.9)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, colors=INK)
    bar.minorticks_off()
    if share:
        bar.ax.yaxis.set_major_formatter(lambda value, _: f"{value * 100:.3g} %")
    bar.set_label("share of the interval's requests" if share else "requests", fontsize=8.5, color=INK)
    if slo is not None:
        from latencykit.plot.timeline import _limit

        limit = _limit(slo)
        if limit is not None:
            ax.axhline(np.log10(limit), color=INK, linewidth=1.2)
    ax.set_xlabel("seconds from start", fontsize=9.5, color=INK)
    tidy(ax)
    ax.grid(visible=False)
    title_axes(ax, label if title is None else title, describe(log) if subtitle is None else subtitle)
    return ax


def _log_rows(ax: Axes, values: Floats, stored: str, unit: str | None) -> None:
    """Label an axis of logarithms with the values: images know linear axes only."""
    factor = 1.0 if unit is None else unit_factor(stored, unit)
    low, high = float(values[0]), float(values[-1])
    ticks = log_ticks(low, high)
    texts = [tick_text(tick, stored) if unit is None else f"{tick * factor:,.10g} {unit.replace('us', 'µs')}" for tick in ticks]
    ax.set_ylim(np.log10(low), np.log10(high))
    ax.set_yticks(np.log10(ticks), texts)
