"""The result of a diagnosis or of a freeze test as a picture: what was measured, and the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes

from latencykit._text import format_items, plain, shorten
from latencykit.analysis.explanations import TITLES
from latencykit.core.percentile_rows import Doubt
from latencykit.core.summary import Summary
from latencykit.errors import require
from latencykit.plot.curves import curve_of, grid_of, nines_of, place_of
from latencykit.plot.label_layout import head
from latencykit.plot.percentile_chart import percentiles
from latencykit.plot.series import joined
from latencykit.plot.style import INK, RED, Look, current_axes, size_in_points
from latencykit.plot.timeline_chart import timeline
from latencykit.units import NANOSECONDS, format_duration

if TYPE_CHECKING:
    from latencykit.analysis.diagnosis import Diagnosis
    from latencykit.ctrlz.run import Calibration

_MOST_STALLS = 12
_DEEP = 30.0
"""The lower bound lies this many times above the curve: space for words between them."""


def diagnosis(
    result: Diagnosis,
    *,
    ax: Axes | None = None,
    name: str = "",
    unit: str | None = None,
    title: str | None = None,
    subtitle: str | None = None,
    **line_kwargs: object,
) -> Axes:
    """Draw a diagnosis: latency over time with its stalls above, the percentile curves below.

    The measured curve is red and the corrected one blue, dashed wherever it is based on the stalls.
    A stall of the entire server implies a lower bound, ``Q(q) ≥ d − (1 − q)·T``; where the measured
    curve lies below it, the gap is filled.

    Parameters
    ----------
    result : Diagnosis
        Of `latencykit.diagnose`.
    ax : Axes, optional
        The page; its own frame is hidden and its panels are laid inside. The current axes by
        default.
    name : str
        Of the series; the source's unless given.
    unit : str, optional
        Unit of all ticks; by default a suitable one for each tick.
    title, subtitle : str, optional
        By default the verdict, and why. Empty for none.
    **line_kwargs
        For the percentile curves.

    Returns
    -------
    Axes
        The page; ``page.child_axes`` are its panels, the curves last.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from latencykit.analysis.omission import diagnose
    >>> from latencykit.core.samples import Samples
    >>> start = np.arange(2000) * 10_000_000
    >>> result = diagnose(Samples(start=start, duration=np.full(2000, 1_000_000)))
    >>> len(diagnosis(result, ax=Figure().add_subplot()).child_axes)
    2
    """
    from latencykit.analysis.diagnosis import Diagnosis

    require(result, Diagnosis, "a diagnosis: lk.diagnose(data)")
    page = current_axes(ax)
    page.set_axis_off()
    quiet: dict[str, Any] = {"unit": unit, "title": "", "subtitle": ""}
    panels = [(0.0, 0.0, 1.0, 1.0)]
    if result.timed is not None and len(result.timed):
        # The places of two panels: above each other, or beside where the page is too low.
        width, height = size_in_points(page)
        if height < _HIGH_ENOUGH and width > 1.6 * height:
            gap = min(100.0 / width, 0.2)  # names of lines, and ticks
            panels = [(0.0, 0.0, 0.5 - gap / 2, 1.0), (0.5 + gap / 2, 0.0, 0.5 - gap / 2, 1.0)]
        else:
            gap = min(46.0 / height, 0.3)
            panels = [(0.0, 0.5 + gap / 2, 1.0, 0.5 - gap / 2), (0.0, 0.0, 1.0, 0.5 - gap / 2)]
        upper = page.inset_axes(panels[0])
        timeline(result.timed, ax=upper, stalls=stall_rows(result), **quiet)
    lower = page.inset_axes(panels[-1])
    options, raw, duration = quiet | line_kwargs, result.raw, result.duration
    curves, dashed = {"raw": raw}, None
    if result.corrected is not None:
        curves["corrected"] = result.corrected
        length = result.longest
        if len(result.detected_stalls):
            length = float(result.detected_stalls.duration.sum())
        share = min(1.0, length / duration) if duration else 1.0
        events = format_items(max(1, len(result.detected_stalls)), "stall")
        dashed = {"corrected": (Doubt(100.0 - 100.0 * share, 100.0, events),)}
    elif result.verdict == "omits":
        options = {"color": RED} | options
    percentiles(curves, ax=lower, dashed_from=dashed, **options)
    known = not isinstance(raw, Summary) and raw.count and result.left is not None
    # Where nothing stalled, the longest request implies nothing of the others.
    stalled = len(result.detected_stalls) or result.verdict not in ("clean", "no stall")
    if known and stalled and duration and raw.unit in NANOSECONDS and result.longest > 0:
        _draw_lower_bound(lower, raw, result.longest, duration)
    label = plain(shorten(name or result.run.source or result.run.tool or "the measurement", 40))
    notes = [result.summary]
    if result.expected_interval:
        notes.append(f"expected interval {format_duration(result.expected_interval)}")
    if result.method is not None:
        notes.append("corrected: dashed where it is based on the stalls")
    conditions = joined({label: result.raw}, plain(" · ".join(notes), 200))
    head(page, f"{label}: {TITLES[result.verdict]}", conditions, title, subtitle)
    return page


def stall_rows(result: Diagnosis) -> list[tuple[float, float, float]]:
    """Return start, end and missing requests of the longest stalls, in their order."""
    stalls = result.detected_stalls
    order = np.sort(np.argsort(stalls.duration)[::-1][:_MOST_STALLS])
    columns = (stalls.start[order], stalls.end[order], stalls.missing[order].astype(np.float64))
    return list(zip(*(column.tolist() for column in columns), strict=True))


_HIGH_ENOUGH = 230.0
"""Points of height from which on two panels with their axes fit above each other."""


def _draw_lower_bound(ax: Axes, raw: Any, stall: float, duration: float) -> None:
    """Draw the lower bound that one stall implies, and fill the gap below it."""
    curve = curve_of(raw)
    grid = grid_of(100.0, nines_of(curve.count), 400)
    # While a server is stopped for d seconds, λ·(d − x) of the requests that arrive at rate λ take
    # longer than x. Hence Q(q) ≥ d − (1 − q)·T over a run of T seconds.
    least = np.maximum(stall - (1 - grid / 100) * duration, 0.0) * 1e9 / NANOSECONDS[raw.unit]
    low = ax.get_ylim()[0]
    shown = least > low
    if not shown.any():
        return
    look: Look = {"color": INK, "linewidth": 1.0, "linestyle": (0, (1.5, 1.5))}
    ax.plot(grid[shown], least[shown], zorder=2.6, label="floor", **look)
    measured = np.maximum(curve.at(grid), low)
    short = shown & (least > measured)
    fill: Look = {"color": RED, "alpha": 0.13, "linewidth": 0, "zorder": 1}
    ax.fill_between(grid, measured, least, where=short, **fill)
    if np.where(short, least / measured, 0.0).max() > _DEEP:
        places = place_of(grid[short])
        target = 0.62 * places[0] + 0.38 * places[-1]
        at = int(np.flatnonzero(short)[np.argmin(np.abs(places - target))])
        words = (
            f"below what a stall of {format_duration(stall * 1e9)} implies\n"
            "if requests had arrived meanwhile"
        )
        middle = float(np.sqrt(measured[at] * least[at]))
        style: Look = {"color": RED, "ha": "center", "va": "center", "zorder": 5}
        ax.text(float(grid[at]), middle, words, fontsize=8.5, **style)


_REPORTS = {
    "honest": "reports the stall as users experienced it",
    "partly": "misses some of the requests due during the stall",
    "omits": "omits the requests due during the stall",
    "loses": "loses the delayed requests",
    "clips": "clips the longest latencies",
    "overcorrects": "reports more than the stall explains",
    "unknown": "cannot be judged by this run",
}


def ctrlz(
    result: Calibration, *, ax: Axes | None = None, title: str | None = None, **options: Any
) -> Axes:
    """Draw what a load generator reported (red) and the truth (blue) after its server was frozen.

    Parameters
    ----------
    result : Calibration
        Of `latencykit.ctrlz.run.ctrlz`.
    ax : Axes, optional
        Where to draw; the current axes by default.
    title : str, optional
        By default the verdict.
    **options
        As `percentiles` takes them.

    Returns
    -------
    Axes
    """
    from latencykit.ctrlz.run import Calibration

    require(result, Calibration, "what latencykit.ctrlz.run.ctrlz returns")
    series = {"reported": result.reported, "truth": result.truth}
    subtitle = f"server frozen for {format_duration(result.stall * 1e9)}"
    subtitle += f"; {result.model} loop" if result.model != "unknown" else ""
    if title is None:
        title = f"{result.tool or 'the load generator'} {_REPORTS[result.verdict]}"
    return percentiles(series, ax=ax, title=title, subtitle=subtitle, **options)
