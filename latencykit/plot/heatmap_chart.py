"""Time × latency: counts of a log in one pass and little memory, however long the log is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, LogNorm
from matplotlib.ticker import LogLocator, NullLocator

from latencykit._records import record
from latencykit._typing import Floats, Ints
from latencykit.core.buckets import Buckets, HdrBuckets
from latencykit.core.histogram_log import HistogramLog, blocks_of, merge_logs
from latencykit.errors import DataNotAvailableError
from latencykit.plot.axes import share_text, time_axis, value_axis
from latencykit.plot.label_layout import LineLabels, head
from latencykit.plot.series import Drawable, Limits, as_series, joined, slo_pairs
from latencykit.plot.style import GAP, INK, MUTED, Look, current_axes, tidy
from latencykit.plot.timeline_chart import as_log, clock, late, log_title, max_text, slo_line

_COLUMNS = 480
_A_DECADE = 48
_LOWEST, _HIGHEST = -6, 16
"""Powers of ten between which values have rows of their own."""

_SPREAD = 2
"""Series were measured at once if they span at most this multiple of what they recorded."""


@record()
class Grid:
    """Counts of values by time and by latency, shape (rows, columns)."""

    times: Floats  # edges in seconds; columns without an interval are gaps
    values: Floats  # edges, evenly spaced in their logarithm
    counts: Floats  # NaN in gaps
    top: Floats  # the maximum of each column
    zeros: bool  # the lowest row is that of zeros
    beyond: bool  # the highest maximum is only a lower bound


def grid(log: HistogramLog, columns: int = _COLUMNS) -> Grid:
    """Return a log's counts by time and latency, in one pass and in little memory."""
    start, end = log.starts, log.starts + log.lengths
    begin, finish = float(start.min()), float(end.max())
    typical = float(np.median(log.lengths)) or 1e-3
    most = max(1, round((finish - begin) / typical))
    number = min(most, columns)
    width = typical if number == most else (finish - begin) / number
    column = np.clip(np.floor((start - begin) / width + 1e-3).astype(np.int64), 0, number - 1)
    shape = ((_HIGHEST - _LOWEST) * _A_DECADE + 2, number)
    change = np.zeros(shape)
    top, beyond = np.full(number, -np.inf), False
    for block in blocks_of(log):
        filled = np.flatnonzero(np.diff(block.indptr))
        if not filled.size:
            continue
        # A bucket's counts are spread over its rows: they begin in the first, end after the last.
        edges = _rows_of(block.buckets, int(block.index.max()))
        first, last = (rows[block.index] for rows in edges)
        at, share = column[block.rows[block.entry_rows]], block.counts / (last + 1 - first)
        np.add.at(change, (first, at), share)
        np.add.at(change, (last + 1, at), -share)
        highest = block.index[block.indptr[filled + 1] - 1]
        np.maximum.at(top, column[block.rows[filled]], block.buckets.high(highest))
        beyond |= bool(np.isnan(block.buckets.upper_edge(highest)).any())
    counts = np.cumsum(change, axis=0)
    counts[counts < 1e-6] = 0.0
    if not counts.any():
        raise DataNotAvailableError(
            "nothing was counted, so there is nothing to draw: all requests failed, "
            "or none is in the range"
        )
    times = np.asarray(begin + width * np.arange(number + 1), np.float64)
    # Only the rows with values, fewer and taller ones where counts are small, and zeros.
    used = np.flatnonzero(counts.any(axis=1))
    zeros = bool(used[0] == 0)
    positive = used[used > 0] if (used > 0).any() else np.array([1 - _LOWEST * _A_DECADE])
    usual = float(np.median(counts.sum(0)[np.unique(column)]))
    joint = 4 if usual < 1000 else 2 if usual < 10_000 else 1
    low_row = (int(positive[0]) - 1) // joint * joint + 1
    size = -(-(int(positive[-1]) + 1 - low_row) // joint)
    high_row = low_row + size * joint
    body = np.pad(counts[low_row:high_row], ((0, max(0, high_row - len(counts))), (0, 0)))
    shown = body.reshape(size, joint, -1).sum(1)
    values = 10.0 ** (_LOWEST + (low_row - 1 + joint * np.arange(size + 1)) / _A_DECADE)
    if zeros:
        gap = max(2.0, size * joint / 16) / _A_DECADE
        values = np.concatenate((values[0] / 10.0 ** (np.array([2.0, 1.0]) * gap), values))
        shown = np.concatenate((counts[:1], np.zeros((1, number)), shown))
    shown[:, np.setdiff1d(np.arange(number), column)] = np.nan
    return Grid(times, values, shown, np.where(np.isfinite(top), top, np.nan), zeros, beyond)


def _rows_of(buckets: Buckets, highest: int) -> tuple[Ints, Ints]:
    """Return the first and the last row of every bucket."""
    size = highest + 1
    if isinstance(buckets, HdrBuckets):
        size = min(2 * size, buckets.slots)
    low, high = buckets.low(np.arange(size)), buckets.high(np.arange(size))
    zero = high <= 0
    if isinstance(buckets, HdrBuckets):  # discrete: a bucket reaches to the next one's low end
        high = np.append(low[1:], high[-1])
    low = np.where(low > 0, low, high / 2)  # a logarithmic axis never reaches zero
    first, last = np.floor(_place(low)), np.ceil(_place(high) - 1e-9) - 1
    middle, narrow = np.floor((_place(low) + _place(high)) / 2), last <= first + 1
    rows = np.where(narrow, middle, (first, last))
    first, last = np.where(zero, 0, rows + 1).astype(np.int64)
    return first, last


def _place(values: Floats) -> Floats:
    top = (_HIGHEST - _LOWEST) * _A_DECADE
    rows = (np.log10(np.maximum(values, 10.0**_LOWEST)) - _LOWEST) * _A_DECADE
    return np.asarray(np.clip(rows, 0, top - 1), np.float64)


# ------------------------------------------------------------
# The chart: the values of each interval as colours, with the maximum on top.

_MAP = LinearSegmentedColormap.from_list(
    "latency", ["#cfe0f4", "#8fb9e6", "#3f86d3", "#0b4a97", "#061a38"]
)


def heatmap(
    data: Drawable,
    *,
    ax: Axes | None = None,
    unit: str | None = None,
    slo: Limits | None = None,
    title: str | None = None,
    subtitle: str | None = None,
    **image_kwargs: object,
) -> Axes:
    """Draw the share of each interval's requests by latency.

    Parameters
    ----------
    data : HistogramLog or Samples, or mapping of label to such
        Of several series the total is drawn: by the clock, or each from its start where they are
        of different times.
    ax : Axes, optional
        Where to draw; the current axes by default.
    unit : str, optional
        Unit of all ticks; by default a suitable one for each tick.
    slo : optional
        As in `percentiles`; the highest limit is drawn as a line.
    title, subtitle : str, optional
        By default what was measured, and the conditions. Empty for none.
    **image_kwargs
        For the image, such as ``cmap`` and ``norm``.

    Returns
    -------
    Axes

    Raises
    ------
    DataNotAvailableError
        Where a source has no times.
    IncompatibleDataError
        For series that cannot be added: unlike units, latency types or corrections.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from latencykit.core.samples import Samples
    >>> start = np.arange(1000) * 10_000_000
    >>> samples = Samples(start=start, duration=start % 7_000_000 + 1)
    >>> heatmap(samples, ax=Figure().add_subplot()).get_yscale()
    'log'
    """
    ax = current_axes(ax)
    series = as_series(data)
    label, log = _total(series)
    cells = grid(log)
    total = np.nansum(cells.counts, axis=0)
    shown = np.divide(cells.counts, total, out=np.zeros_like(cells.counts), where=total > 0)
    first, last = float(cells.values[2 if cells.zeros else 0]), float(cells.values[-1])
    limits = [limit for _, limit in slo_pairs(slo)[-1:]]
    value_axis(ax, first, max([last, *limits]), log.unit, fixed=unit)
    ax.set_ylim(bottom=min([float(cells.values[0]), *(limit / 1.2 for limit in limits)]))
    if cells.zeros:  # below the logarithmic scale, labelled 0
        middle = float(np.sqrt(cells.values[0] * cells.values[1]))
        locator, formatter = ax.yaxis.get_major_locator(), ax.yaxis.get_major_formatter()
        locator.zero, locator.floor = middle, first  # type: ignore[attr-defined]
        ax.yaxis.set_major_formatter(
            lambda x, pos: "0" if x <= middle * 1.0001 else formatter(x, int(pos))
        )
    time_axis(ax, float(cells.times[0]), float(cells.times[-1]))
    known = shown[np.isfinite(shown) & (shown > 0)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.1, 1.0)
    norm = LogNorm(min(max(low, high * 1e-6), high / 10), high, clip=True)
    look: Look = {"cmap": _MAP, "norm": norm} | image_kwargs
    shown = np.ma.masked_where(~(shown > 0), shown)
    mesh: Any = ax.pcolormesh  # of which a picture of lines and text has an image
    image = mesh(cells.times, cells.values, shown, rasterized=True, **look)
    image.set_in_layout(False)  # it fills the axes
    # Grey ground where nothing was counted: nothing is known there.
    gap = ~(np.nan_to_num(cells.counts) > 0).any(axis=0)
    edges = np.flatnonzero(np.diff(np.concatenate(([False], gap, [False])).astype(np.int8)))
    for start, end in cells.times[edges.reshape(-1, 2)].tolist():
        ax.axvspan(start, end, color=GAP, linewidth=0, zorder=0.5)
    # The maximum of each column as a thin line, and a label at the highest of all.
    heights = np.where(np.isfinite(cells.top), np.maximum(cells.top, cells.values[0]), np.nan)
    x, y = np.repeat(cells.times, 2)[1:-1], np.repeat(heights, 2)
    (line,) = ax.plot(x, y, color=INK, linewidth=0.9, zorder=3, label="max")
    top = float(np.nanmax(cells.top))
    at = float(x[np.flatnonzero(y == max(top, cells.values[0]))[:2]].mean())
    cell = np.searchsorted(cells.values, top).clip(1, cells.values.size - 1)
    known = not any(map(late, series.values()))
    words = max_text(list(series.values()), top, beyond=cells.beyond, known=known)
    labels, edge = LineLabels(), float(cells.values[cell])  # the upper one of its cell
    labels.point(ax, words, (at, edge), [line], above=True)
    ax.add_artist(labels)
    # A slim colour bar with logarithmic ticks at the right.
    bar: Any = ax.figure.colorbar(image, cax=ax.inset_axes((1.018, 0.0, 0.014, 1.0)))
    bar.outline.set_visible(False)
    bar.ax.yaxis.set_major_locator(LogLocator(numticks=8))
    bar.ax.yaxis.set_minor_locator(NullLocator())
    bar.ax.yaxis.set_major_formatter(share_text)
    bar.ax.tick_params(labelsize=8, labelcolor=INK, length=0)
    bar.set_label("share of the interval's requests", fontsize=8.5, color=MUTED)
    slo_line(ax, slo, log.unit)
    tidy(ax, f"time from the start{clock(log.start)}")
    ax.grid(visible=False)
    finding = log_title(label, log, round(float(total.sum())))
    note = "grey: no request was counted" if gap.any() else ""
    head(ax, finding, joined({label: log}, note), title, subtitle)
    return ax


def _total(series: Mapping[str, Any]) -> tuple[str, HistogramLog]:
    """Return the one series over time, or the total of several, with a label that says so."""
    parts = {label: values for label, values in series.items() if not values.run.aggregate}
    totals = [values for values in series.values() if values.run.aggregate]
    name = f"total of {len(parts or series)} series"
    if len(series) == 1:
        ((name, only),) = series.items()
        return name, as_log(name, only)
    if len(totals) == 1 and len({values.run.source for values in series.values()}) == 1:
        return name, as_log(name, totals[0])
    logs = [as_log(label, values) for label, values in (parts or series).items()]
    begins = [log.start for log in logs if log.start is not None]
    ends = [log.start + log.duration for log in logs if log.start is not None]
    recorded = sum(log.duration for log in logs)
    at_once = not begins or max(ends) - min(begins) <= _SPREAD * recorded
    if len(begins) in (0, len(logs)) and at_once:
        return name, merge_logs(logs)
    return f"{name}, each from its start", merge_logs(logs, "relative")
