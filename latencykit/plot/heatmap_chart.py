"""Counts of a log by time and latency, in one pass and in little memory, however long the log is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, LogNorm
from matplotlib.image import PcolorImage
from matplotlib.ticker import LogLocator, NullLocator
from matplotlib.transforms import IdentityTransform

from latencykit.core.buckets import HdrBuckets
from latencykit.errors import DataNotAvailableError
from latencykit.plot.axes import ShareFormatter, time_axis, value_axis
from latencykit.plot.curves import only_series
from latencykit.plot.figure import head, joined
from latencykit.plot.label_layout import LineLabels, make_room
from latencykit.plot.style import GAP, INK, MUTED, RED, current_axes, tidy
from latencykit.plot.timeline_chart import as_log, clock, log_title, slo_line
from latencykit.units import format_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from latencykit.core.buckets import Buckets
    from latencykit.core.histogram_log import HistogramLog
    from latencykit.plot._typing import Drawable, Limits

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["Grid", "grid", "heatmap"]


_COLUMNS = 480
_A_DECADE = 48
_CODE = 1 << 16
_LOWEST, _HIGHEST = -6, 16
"""Powers of ten between which values have rows of their own."""


@dataclass(frozen=True)
class Grid:
    """Counts of values by time and by latency.

    Attributes
    ----------
    times : ndarray of float64, shape (columns + 1,)
        Edges in seconds; columns without an interval are gaps.
    values : ndarray of float64, shape (rows + 1,)
        Edges, evenly spaced in their logarithm; the lowest row holds the zeros where there are any.
    counts : ndarray of float64, shape (rows, columns)
        NaN in gaps.
    top : ndarray of float64, shape (columns,)
        The maximum of each column.
    zeros : bool
        Whether the lowest row holds zeros.
    """

    times: Floats
    values: Floats
    counts: Floats
    top: Floats
    zeros: bool


def grid(log: HistogramLog, columns: int = _COLUMNS) -> Grid:
    """Return a log's counts by time and latency, in one pass and in little memory."""
    edges, column = _columns(log, columns)
    shape = ((_HIGHEST - _LOWEST) * _A_DECADE + 2, edges.size - 1)
    counts, change = np.zeros(shape), np.zeros(shape)
    top = np.full(edges.size - 1, -np.inf)
    known: dict[Buckets, Ints] = {}
    for block in log.blocks():
        codes = known[block.buckets] = _rows_of(
            block.buckets, int(block.index.max(initial=0)), known.get(block.buckets)
        )
        held = np.flatnonzero(np.diff(block.indptr))
        if not held.size:
            continue
        starts = _groups(codes[block.index], block.indptr[held])
        first, wide = np.divmod(codes[block.index[starts]], _CODE)
        at = column[block.rows[np.searchsorted(block.indptr, starts, "right") - 1]]
        share = np.add.reduceat(block.counts, starts) / (wide + 1)
        one = wide == 0
        np.add.at(counts, (first[one], at[one]), share[one])
        np.add.at(change, (first[~one], at[~one]), share[~one])
        np.add.at(change, ((first + wide + 1)[~one], at[~one]), -share[~one])
        np.maximum.at(
            top,
            column[block.rows[held]],
            block.buckets.high(block.index[block.indptr[held + 1] - 1]),
        )
    counts += np.cumsum(change, axis=0)
    counts[counts < 1e-6] = 0.0
    used = np.flatnonzero(counts.any(axis=1))
    if not used.size:
        raise DataNotAvailableError(
            "nothing was counted, so there is nothing to draw; was the range too narrow?"
        )
    return _cropped(edges, counts, top, used, column)


def _groups(codes: Ints, begins: Ints) -> Ints:
    """Where runs of equal codes start; a run ends where an interval does."""
    new = np.ones(codes.size, np.bool_)
    np.not_equal(codes[1:], codes[:-1], out=new[1:])
    new[begins] = True
    return np.flatnonzero(new)


def _cropped(edges: Floats, counts: Floats, top: Floats, used: Ints, column: Ints) -> Grid:
    """Only the rows that hold something, fewer and taller ones where counts are small; the zeros right below them."""
    zeros = bool(used[0] == 0)
    positive = used[used > 0] if (used > 0).any() else np.array([1 - _LOWEST * _A_DECADE])
    typical = float(np.median(counts.sum(0)[np.unique(column)]))
    joint = 4 if typical < 1000 else 2 if typical < 10_000 else 1
    first = (int(positive[0]) - 1) // joint * joint + 1
    size = -(-(int(positive[-1]) + 1 - first) // joint)
    body = np.pad(
        counts[first : first + size * joint],
        ((0, max(0, first + size * joint - len(counts))), (0, 0)),
    )
    shown = body.reshape(size, joint, -1).sum(1)
    values = 10.0 ** (_LOWEST + (first - 1 + joint * np.arange(size + 1)) / _A_DECADE)
    if zeros:
        gap = max(2.0, size * joint / 16) / _A_DECADE
        values = np.concatenate((values[0] / 10.0 ** (np.array([2.0, 1.0]) * gap), values))
        shown = np.concatenate((counts[:1], np.zeros((1, shown.shape[1])), shown))
    shown[:, np.setdiff1d(np.arange(edges.size - 1), column)] = np.nan
    return Grid(edges, values, shown, np.where(np.isfinite(top), top, np.nan), zeros)


def _columns(log: HistogramLog, most: int) -> tuple[Floats, Ints]:
    """Edges of the columns in seconds, and the column of each interval."""
    start, end = log.starts, log.starts + log.lengths
    begin, finish = float(start.min()), float(end.max())
    typical = float(np.median(log.lengths)) or 1e-3
    whole = max(1, round((finish - begin) / typical))
    number = min(whole, most)
    width = typical if number == whole else (finish - begin) / number
    column = np.clip(np.floor((start - begin) / width + 1e-3).astype(np.int64), 0, number - 1)
    return np.asarray(begin + width * np.arange(number + 1), np.float64), column


def _rows_of(buckets: Buckets, highest: int, known: Ints | None) -> Ints:
    """First row of every bucket up to an index, times `_CODE`, plus how many more rows it covers.

    A bucket wider than a row fills all that it covers; a narrower one goes where its middle is.
    """
    if known is not None and known.size > highest:
        return known
    index = np.arange(
        min(2 * (highest + 1), buckets.slots) if isinstance(buckets, HdrBuckets) else highest + 1
    )
    low, high = buckets.low(index), buckets.high(index)
    zero = high <= 0
    if isinstance(buckets, HdrBuckets):
        high = np.append(
            low[1:], high[-1]
        )  # steps are counted, so a bucket reaches to the next one's low end
    low = np.where(
        low > 0, low, high / 2
    )  # from zero to somewhere is endless on a logarithmic axis
    first, last = np.floor(_place(low)), np.ceil(_place(high) - 1e-9) - 1
    middle = np.floor((_place(low) + _place(high)) / 2)
    narrow = last <= first + 1
    first, wide = np.where(narrow, middle, first), np.where(narrow, 0, last - first)
    return np.where(zero, 0, (first.astype(np.int64) + 1) * _CODE + wide.astype(np.int64))


def _place(values: Floats) -> Floats:
    top = (_HIGHEST - _LOWEST) * _A_DECADE
    return np.asarray(
        np.clip((np.log10(np.maximum(values, 10.0**_LOWEST)) - _LOWEST) * _A_DECADE, 0, top - 1),
        np.float64,
    )


# ------------------------------------------------------------
# Time × latency: how the values of each interval lie, at one look, with the maximum on top of it.

_MAP = LinearSegmentedColormap.from_list(
    "latency", ["#cfe0f4", "#8fb9e6", "#3f86d3", "#0b4a97", "#061a38"]
)


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
        cells = np.pad(
            self.to_rgba(np.ma.asarray(self.get_array()), bytes=True), ((1, 1), (1, 1), (0, 0))
        )
        return np.ascontiguousarray(cells[y][:, x]), left, lower, IdentityTransform()


def _looked_up(edges: Floats, axis: Any, first: float, last: float, pixels: int) -> Ints:
    """The cell (from 1; 0 and beyond for none) of each pixel along an axis."""
    transform = axis.get_transform()
    ends = transform.transform(np.array([first, last]))
    values = transform.inverted().transform(np.linspace(ends[0], ends[1], pixels))
    return np.asarray(np.searchsorted(edges, values, "right"), np.int64)


def heatmap(
    data: Drawable,
    *,
    ax: Axes | None = None,
    unit: str | None = None,
    slo: Limits | None = None,
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
    InvalidArgumentError
        For more than one series.
    DataNotAvailableError
        Where a source knows no time.
    """
    ax = current_axes(ax)
    label, held_data = only_series(data, "a heat map")
    log = as_log(label, held_data)
    cells = grid(log)
    total = np.nansum(cells.counts, axis=0)
    shown = (
        np.divide(cells.counts, total, out=np.zeros_like(cells.counts), where=total > 0)
        if share
        else cells.counts
    )
    _axes(ax, cells, log.unit, unit)
    known = shown[np.isfinite(shown) & (shown > 0)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.1, 1.0)
    look: dict[str, Any] = {
        "cmap": _MAP,
        "norm": LogNorm(max(low, high * 1e-6), max(high, low * 1.01), clip=True),
    } | image_kwargs
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
        ax.yaxis.set_major_formatter(
            lambda x, pos: "0" if x <= middle * 1.0001 else formatter(x, int(pos))
        )
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
    edge = float(
        cells.values[np.searchsorted(cells.values, top).clip(0, cells.values.size - 1)]
    )  # of the cell that holds it
    labels.point(ax, f"max {format_value(top, unit)}", (at, edge), [line], above=True)
    ax.add_artist(labels)


def _bar(ax: Axes, image: Any, *, share: bool) -> None:
    """A slim colour bar at the right."""
    place = ax.inset_axes((1.018, 0.0, 0.014, 1.0))
    bar = ax.figure.colorbar(image, cax=place)
    bar.outline.set_visible(False)
    bar.ax.yaxis.set_major_locator(LogLocator(numticks=8))
    bar.ax.yaxis.set_minor_locator(NullLocator())
    bar.ax.yaxis.set_major_formatter(
        ShareFormatter() if share else lambda value, _: f"{value:,.4g}"
    )
    bar.ax.tick_params(labelsize=8, labelcolor=INK, length=0)
    bar.set_label(
        "share of the interval's requests" if share else "requests", fontsize=8.5, color=MUTED
    )
    make_room(ax, bar.ax.yaxis.label)
