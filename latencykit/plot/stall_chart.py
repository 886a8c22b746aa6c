"""The stall strip: every request as a line that rises while it waits, stalls as grey blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.collections import LineCollection

from latencykit.core.samples import Samples
from latencykit.errors import DataNotAvailableError, InvalidArgumentError
from latencykit.plot.axes import time_axis, value_axis
from latencykit.plot.curves import as_series
from latencykit.plot.figure import head
from latencykit.plot.style import BLUE, INK, MUTED, RED, current_axes, plain, shorten, tidy
from latencykit.plot.timeline_chart import shade, spans_of
from latencykit.units import format_count

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from latencykit.plot._typing import Drawable, StallRows

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
    """Draw requests as lines that rise from their send to their reply: what waited stands up, what was never sent lacks.

    Parameters
    ----------
    data : Samples, or mapping of str to Samples
        One row each; timed from the intended start where they count from it.
    ax : Axes, optional
        The page; with several series its own frame is hidden and a row is laid inside for each. The current axes by
        default.
    stalls : iterable of (start, end, missing), or DataFrame with these columns, optional
        Grey blocks in every row; those that `find_stalls` finds in each unless given.
    unit : str, optional
        Unit of all ticks.
    most : int, default 2000
        Lines a row at most: the longest of them all, and of the others as many as fit, evenly.
    title, subtitle : str, optional
        Empty for none.

    Returns
    -------
    Axes

    Raises
    ------
    DataNotAvailableError
        For anything but samples with start times.
    """
    page = current_axes(ax)
    series = as_series(data)
    for label, values in series.items():
        if not isinstance(values, Samples) or values.start is None or not len(values):
            raise DataNotAvailableError(
                f"{label or 'this'}: the stall strip needs samples with start times"
            )
    if most < 1:
        raise InvalidArgumentError(f"at least one line must be drawn, not {most}")
    traces = {label: _lines(values) for label, values in series.items()}
    span = max(float((start + took).max()) for start, took in traces.values())
    top = max(float(took.max()) for _, took in traces.values())
    rows = {next(iter(series)): page} if len(series) == 1 else _rows(page, series)
    kept = 0
    for label, row in rows.items():
        kept += _draw(row, series[label], traces[label], stalls, (span, top), unit, most)
        if len(series) > 1:
            words = f"{plain(shorten(label, 32))}  n = {format_count(len(series[label]))}"
            row.annotate(
                words,
                (0.0, 1.0),
                (4, -4),
                "axes fraction",
                "offset points",
                va="top",
                fontsize=9,
                fontweight="bold",
                color=INK,
            )
    tidy(list(rows.values())[-1], "time from the start")
    total = sum(len(values) for values in series.values())
    note = (
        f"{format_count(kept)} of {format_count(total)} requests drawn, the slow ones all"
        if kept < total
        else ""
    )
    said = "Each request rises while it waits"
    head(page, said, note, title, subtitle)
    return page


def _lines(samples: Samples) -> tuple[Floats, Floats]:
    """Seconds of each request's begin and of its latency, by the samples' measure."""
    assert samples.start is not None
    took = samples.values / 1e9
    end = (samples.start + samples.duration) / 1e9
    begin = end - took
    return np.asarray(begin - begin.min()), np.asarray(took)


def _rows(page: Axes, series: Mapping[str, Any]) -> dict[str, Axes]:
    page.set_axis_off()
    number = len(series)
    gap = 0.06 if number < 4 else 0.03
    height = (1.0 - gap * (number - 1)) / number
    rows = {}
    for k, label in enumerate(series):
        rows[label] = page.inset_axes((0.0, 1.0 - height - k * (height + gap), 1.0, height))
        if k < number - 1:
            rows[label].tick_params(labelbottom=False)
    return rows


def _draw(
    ax: Axes,
    samples: Samples,
    trace: tuple[Floats, Floats],
    stalls: Any,
    limits: tuple[float, float],
    unit: str | None,
    most: int,
) -> int:
    """One row; return how many lines it has."""
    start, took = trace
    chosen = _chosen(took, most)
    begin, length = start[chosen], took[chosen]
    value_axis(ax, 0.0, limits[1] * 1e9, "ns", fixed=unit, log=False, zeros=True)
    foot = np.stack([begin, np.zeros_like(begin)], 1)
    tip = np.stack([begin + length, length * 1e9], 1)
    slow = length > 0.02 * limits[1]
    for which, colour, width in ((~slow, MUTED, 0.5), (slow, _colour(samples), 0.7)):
        lines = LineCollection(
            np.stack([foot, tip], 1)[which],  # type: ignore[arg-type]
            colors=colour,
            linewidths=width,
            zorder=2 + (colour != MUTED),
        )
        ax.add_collection(lines, autolim=False)
    ax.plot(
        begin,
        np.zeros_like(begin),
        linestyle="none",
        marker="|",
        markersize=5,
        color=MUTED,
        zorder=2,
        clip_on=False,
    )
    if stalls is None:
        from latencykit.analysis.stalls import stalls_of

        found = stalls_of(samples)
        stalls = list(
            zip(found.start.tolist(), found.end.tolist(), found.missing.tolist(), strict=True)
        )
    shade(ax, spans_of(stalls))
    time_axis(ax, 0.0, limits[0])
    ax.set_ylim(0.0, limits[1] * 1e9 * 1.25)
    tidy(ax)
    return int(chosen.size)


def _colour(samples: Samples) -> str:
    """Blue for what counts from the schedule, red for what counts from the send."""
    return BLUE if samples.run.measure == "response" else RED


def _chosen(took: Floats, most: int) -> NDArray[np.int64]:
    """The slowest half of the lines, and of the others as many as fit, evenly; in the order of the samples."""
    if took.size <= most:
        return np.arange(took.size)
    order = np.argsort(-took, kind="stable")
    slow, others = order[: most // 2], np.sort(order[most // 2 :])
    every = np.unique(np.linspace(0, others.size - 1, most - slow.size).astype(np.int64))
    return np.sort(np.concatenate((slow, others[every])))
