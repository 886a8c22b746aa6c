"""Time × latency: how the values of each interval lie, at one look, with the maximum on top of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, LogNorm
from matplotlib.image import PcolorImage
from matplotlib.ticker import LogLocator, NullLocator
from matplotlib.transforms import IdentityTransform

from latencykit.plot.courses import as_log
from latencykit.plot.curves import only_series
from latencykit.plot.grid import grid
from latencykit.plot.heading import head
from latencykit.plot.labels import LineLabels, make_room
from latencykit.plot.style import GAP, INK, MUTED, RED, current_axes, tidy
from latencykit.plot.ticks import ShareFormatter, time_axis, value_axis
from latencykit.plot.timed import clock, log_title, slo_line
from latencykit.plot.words import joined
from latencykit.units import format_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from latencykit.plot.grid import Grid

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["heatmap"]

_MAP = LinearSegmentedColormap.from_list("latency", ["#cfe0f4", "#8fb9e6", "#3f86d3", "#0b4a97", "#061a38"])


class _Image(PcolorImage):
    """An image with edges of its own on any scales, drawn by looking up each pixel's cell: the fastest way there is."""

    def __init__(self, ax: Axes, x: Floats, y: Floats, cells: Any, **kwargs: Any) -> None:
        super().__init__(ax, x, y, cells, **kwargs)
        self._x_edges, self._y_edges = x, y
        self.set_in_layout(False)  # it fills the axes and has no extent of its own

    def make_image(self, renderer: Any, magnification: float = 1.0, unsampled: bool = False) -> Any:  # noqa: ARG002
        """Return the pixels, and where they go."""
        ax: Any = self.axes
        left, lower, right, upper = ax.bbox.extents
        width = round((round(right) - round(left) + 1) * magnification)
        height = round((round(upper) - round(lower) + 1) * magnification)
        view = ax.viewLim
        x = _looked_up(self._x_edges, ax.xaxis, view.x0, view.x1, width)
        y = _looked_up(self._y_edges, ax.yaxis, view.y0, view.y1, height)
        cells = np.pad(self.to_rgba(np.ma.asarray(self.get_array()), bytes=True), ((1, 1), (1, 1), (0, 0)))
        return np.ascontiguousarray(cells[y][:, x]), left, lower, IdentityTransform()


def _looked_up(edges: Floats, axis: Any, first: float, last: float, pixels: int) -> Ints:
    """The cell (from 1; 0 and beyond for none) of each pixel along an axis."""
    transform = axis.get_transform()
    ends = transform.transform(np.array([first, last]))
    values = transform.inverted().transform(np.linspace(ends[0], ends[1], pixels))
    return np.asarray(np.searchsorted(edges, values, "right"), np.int64)


def heatmap(
    data: Any,
    *,
    ax: Axes | None = None,
    unit: str | None = None,
    slo: Any = None,
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
        Where to draw; the current axes by default.
    unit : str, optional
        Unit of all ticks; by default each takes the one that suits it.
    slo : optional
        As in `percentiles`; the highest limit is drawn as a line.
    share : bool, default True
        Colour by the share of the interval's requests; else by their number.
    title, subtitle : str, optional
        By default what was measured, and the conditions. Empty for none.
    **image_kwargs
        For the image, such as ``cmap`` and ``norm``.

    Returns
    -------
    Axes

    Raises
    ------
    UsageError
        For more than one series.
    NotHeldError
        Where a source knows no time.
    """
    ax = current_axes(ax)
    label, rung = only_series(data, "a heat map")
    log = as_log(label, rung)
    cells = grid(log)
    total = np.nansum(cells.counts, axis=0)
    shown = np.divide(cells.counts, total, out=np.zeros_like(cells.counts), where=total > 0) if share else cells.counts
    _axes(ax, cells, log.unit, unit)
    known = shown[np.isfinite(shown) & (shown > 0)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.1, 1.0)
    look: dict[str, Any] = {"cmap": _MAP, "norm": LogNorm(max(low, high * 1e-6), max(high, low * 1.01), clip=True)} | image_kwargs
    image = _Image(ax, cells.times, cells.values, np.ma.masked_where(~(shown > 0), shown), **look)
    ax.add_image(image)
    _gaps(ax, cells)
    _maximum(ax, cells, log.unit)
    _bar(ax, image, share=share)
    slo_line(ax, slo, log.unit)
    tidy(ax, f"time from the start{clock(log.start)}")
    ax.grid(visible=False)
    said = log_title(label, log, round(float(total.sum())))
    head(ax, said, joined({label: log}), title, subtitle)
    return ax


def _axes(ax: Axes, cells: Grid, stored: str, unit: str | None) -> None:
    """Scale both axes to the cells; zeros stand below the logarithmic scale, labelled 0."""
    first = 2 if cells.zeros else 0
    low, high = float(cells.values[first]), float(cells.values[-1])
    value_axis(ax, low, high, stored, fixed=unit)
    ax.set_ylim(bottom=float(cells.values[0]))
    if cells.zeros:
        middle = float(np.sqrt(cells.values[0] * cells.values[1]))
        locator, formatter = ax.yaxis.get_major_locator(), ax.yaxis.get_major_formatter()
        locator.zero, locator.floor = middle, low  # type: ignore[attr-defined]
        ax.yaxis.set_major_formatter(lambda x, pos: "0" if x <= middle * 1.0001 else formatter(x, int(pos)))
    time_axis(ax, float(cells.times[0]), float(cells.times[-1]))


def _gaps(ax: Axes, cells: Grid) -> None:
    """Grey ground where nothing was counted: nothing is known there."""
    gap = ~(np.nan_to_num(cells.counts) > 0).any(axis=0)
    edge = np.flatnonzero(np.diff(np.concatenate(([False], gap, [False])).astype(np.int8)))
    for start, end in edge.reshape(-1, 2).tolist():
        ax.axvspan(cells.times[start], cells.times[end], color=GAP, linewidth=0, zorder=0.5)


def _maximum(ax: Axes, cells: Grid, unit: str) -> None:
    """The maximum of each column as a thin red line, and the highest of all in words."""
    known = np.isfinite(cells.top)
    x = np.repeat(cells.times, 2)[1:-1]
    y = np.repeat(np.where(known, np.maximum(cells.top, cells.values[0]), np.nan), 2)
    (line,) = ax.plot(x, y, color=RED, linewidth=0.9, zorder=3, label="max")
    top = float(np.nanmax(cells.top))
    at = float(x[np.flatnonzero(y == max(top, cells.values[0]))[:2]].mean())
    labels = LineLabels()
    edge = float(cells.values[np.searchsorted(cells.values, top).clip(0, cells.values.size - 1)])  # of the cell that holds it
    labels.point(ax, f"max {format_value(top, unit)}", (at, edge), [line], above=True)
    ax.add_artist(labels)


def _bar(ax: Axes, image: Any, *, share: bool) -> None:
    """A slim colour bar at the right."""
    place = ax.inset_axes((1.018, 0.0, 0.014, 1.0))
    bar = ax.figure.colorbar(image, cax=place)
    bar.outline.set_visible(False)
    bar.ax.yaxis.set_major_locator(LogLocator(numticks=8))
    bar.ax.yaxis.set_minor_locator(NullLocator())
    bar.ax.yaxis.set_major_formatter(ShareFormatter() if share else lambda value, _: f"{value:,.4g}")
    bar.ax.tick_params(labelsize=8, labelcolor=INK, length=0)
    bar.set_label("share of the interval's requests" if share else "requests", fontsize=8.5, color=MUTED)
    make_room(ax, bar.ax.yaxis.label)
