"""The stall strip: every request as a line that rises while it waits, stalls as grey blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.collections import LineCollection

from latencykit.core.samples import Samples
from latencykit.errors import DataNotAvailableError, InvalidArgumentError
from latencykit.plot.axes import time_axis, value_axis
from latencykit.plot.label_layout import head
from latencykit.plot.series import as_series
from latencykit.plot.style import BLUE, INK, MUTED, RED, current_axes, plain, shorten, tidy
from latencykit.plot.timeline_chart import draw_stalls, spans_of
from latencykit.units import format_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from latencykit.plot.series import Drawable, StallRows

    Floats = NDArray[np.float64]

__all__ = ["stall_strip"]


def stall_strip(
    data: Drawable,
    *,
    ax: Axes | None = None,
    stalls: StallRows | None = None,
    unit: str | None = None,
    most: int = 2000,
    title: str | None = None,
    subtitle: str | None = None,
) -> Axes:
    """Draw requests as lines that rise from send to reply, and stalls as grey blocks.

    Parameters
    ----------
    data : Samples, or mapping of str to Samples
        One row each; response times start at the intended start.
    ax : Axes, optional
        The page; with several series its own frame is hidden and a row is laid inside for each. The
        current axes by default.
    stalls : iterable of (start, end, missing), or DataFrame with these columns, optional
        Grey blocks in every row; by default those that `find_stalls` finds in each.
    unit : str, optional
        Unit of all ticks.
    most : int, default 2000
        Lines per row at most: half of them the slowest requests, the others evenly spread.
    title, subtitle : str, optional
        Empty for none.

    Returns
    -------
    Axes

    Raises
    ------
    DataNotAvailableError
        For anything but samples with start times.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> start = np.arange(1000) * 10_000_000
    >>> samples = Samples(start=start, duration=start % 7_000_000 + 1)
    >>> stall_strip(samples, ax=Figure().add_subplot()).get_xlabel()
    'time from the start'
    """
    page = current_axes(ax)
    series = as_series(data)
    for label, samples in series.items():
        if not isinstance(samples, Samples) or samples.start is None or not len(samples):
            raise DataNotAvailableError(
                f"{label or 'this'}: the stall strip needs samples with start times"
            )
    if most < 1:
        raise InvalidArgumentError(f"at least one line must be drawn, not {most}")
    traces = {}  # seconds of each request's start and of its latency
    for label, samples in series.items():
        took = np.asarray(samples.values / 1e9)
        start = (samples.start + samples.duration) / 1e9 - took
        traces[label] = np.asarray(start - start.min()), took
    span = max(float((start + took).max()) for start, took in traces.values())
    top = max(float(took.max()) for _, took in traces.values())
    rows = dict.fromkeys(series, page)
    if len(series) > 1:
        page.set_axis_off()
        gap = 0.06 if len(series) < 4 else 0.03
        height = (1.0 - gap * (len(series) - 1)) / len(series)
        for k, label in enumerate(series):
            rows[label] = page.inset_axes((0.0, 1.0 - height - k * (height + gap), 1.0, height))
            if k < len(series) - 1:
                rows[label].tick_params(labelbottom=False)
    kept = 0
    for label, row in rows.items():
        kept += _draw(row, series[label], traces[label], stalls, (span, top), unit, most)
        if len(series) > 1:
            words = f"{plain(shorten(label, 32))}  n = {format_count(len(series[label]))}"
            look: dict[str, Any] = {"va": "top", "fontsize": 9, "fontweight": "bold", "color": INK}
            row.annotate(words, (0.0, 1.0), (4, -4), "axes fraction", "offset points", **look)
    tidy(list(rows.values())[-1], "time from the start")
    total, note = sum(len(samples) for samples in series.values()), ""
    if kept < total:
        note = f"{format_count(kept)} of {format_count(total)} requests drawn, the slow ones all"
    head(page, "Each request rises while it waits", note, title, subtitle)
    return page


def _draw(
    ax: Axes,
    samples: Samples,
    trace: tuple[Floats, Floats],
    stalls: Any,
    limits: tuple[float, float],
    unit: str | None,
    most: int,
) -> int:
    """Draw one row; return the number of its lines."""
    start, took = trace
    span, top = limits
    chosen = np.arange(took.size)
    if took.size > most:  # the slowest, and others evenly, in the order of the samples
        order = np.argsort(-took, kind="stable")
        slowest, others = order[: most // 2], np.sort(order[most // 2 :])
        even = np.unique(np.linspace(0, others.size - 1, most - slowest.size).astype(np.int64))
        chosen = np.sort(np.concatenate((slowest, others[even])))
    begin, length = start[chosen], took[chosen]
    value_axis(ax, 0.0, top * 1e9, "ns", fixed=unit, log=False, zeros=True)
    foot = np.stack([begin, np.zeros_like(begin)], 1)
    lines = np.stack([foot, np.stack([begin + length, length * 1e9], 1)], 1)
    slow = length > 0.02 * top
    # Blue for latencies from the schedule, red for those from the send.
    colour = BLUE if samples.run.measure == "response" else RED
    for which, shade, width, zorder in ((~slow, MUTED, 0.5, 2), (slow, colour, 0.7, 3)):
        segments: Any = lines[which]
        ax.add_collection(
            LineCollection(segments, colors=shade, linewidths=width, zorder=zorder), autolim=False
        )
    mark: dict[str, Any] = {"marker": "|", "markersize": 5, "color": MUTED, "clip_on": False}
    ax.plot(begin, np.zeros_like(begin), linestyle="none", zorder=2, **mark)
    if stalls is None:
        from latencykit.analysis.stalls import stalls_of

        found = stalls_of(samples)
        columns = (found.start, found.end, found.missing)
        stalls = zip(*(column.tolist() for column in columns), strict=True)
    draw_stalls(ax, spans_of(stalls))
    time_axis(ax, 0.0, span)
    ax.set_ylim(0.0, top * 1e9 * 1.25)
    tidy(ax)
    return int(chosen.size)
