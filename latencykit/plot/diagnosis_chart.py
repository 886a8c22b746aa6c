"""A diagnosis as a picture: the course with its stalls, and what was measured beside what would have been."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.core.summary import Summary
from latencykit.plot.curves import curve_of, grid_of, nines_of, place_of
from latencykit.plot.figure import head, joined
from latencykit.plot.percentile_chart import percentiles
from latencykit.plot.style import INK, RED, current_axes, plain, shorten
from latencykit.plot.timeline_chart import timeline
from latencykit.units import NANOSECONDS, format_duration

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from latencykit.analysis.omission import Diagnosis

__all__ = ["diagnosis", "floor"]

_SAID = {
    "omits": "leaves out what its stalls hit",
    "clean": "holds what its stalls hit",
    "unknown": "cannot be judged",
}
_HOW = {"retime": "corrected by the schedule", "backfill": "corrected by back-filling"}
_DEEP = 30.0  # times that the floor lies above the curve: room for words between them


def diagnosis(
    found: Diagnosis,
    *,
    ax: Axes | None = None,
    name: str = "",
    unit: str | None = None,
    title: str | None = None,
    subtitle: str | None = None,
    **line_kwargs: Any,
) -> Axes:
    """Draw a diagnosis: the course with its stalls above, the percentile curves below.

    The measured curve is red and the corrected one blue, dashed wherever it is based on the stalls. The floor is what a
    stall of the whole server must leave at least, ``Q(q) ≥ d − (1 − q)·T``; where the measured curve lies below it, the
    gap is filled.

    Parameters
    ----------
    found : Diagnosis
    ax : Axes, optional
        The page; its own frame is hidden and its panels are laid inside. The current axes by default.
    name : str
        Of the series; the source's unless given.
    unit : str, optional
        Unit of all ticks; by default each takes the one that suits it.
    title, subtitle : str, optional
        By default the verdict, and why. Empty for none.
    **line_kwargs
        For the percentile curves.

    Returns
    -------
    Axes
        The page; ``page.child_axes`` are its panels, the curves last.
    """
    page = current_axes(ax)
    page.set_axis_off()
    quiet: dict[str, Any] = {"unit": unit, "title": "", "subtitle": ""}
    lower = page.inset_axes((0.0, 0.0, 1.0, 1.0))
    if found.timed is not None and len(found.timed):
        point = page.figure.dpi / 72.0
        gap = min(46 * point / page.get_window_extent().height, 0.2)
        lower.remove()
        upper = page.inset_axes((0.0, 0.5 + gap / 2, 1.0, 0.5 - gap / 2))
        timeline(found.timed, ax=upper, stalls=_longest(found), **quiet)
        lower = page.inset_axes((0.0, 0.0, 1.0, 0.5 - gap / 2))
    _curves(lower, found, quiet | line_kwargs)
    label = plain(shorten(name or found.run.source or found.run.tool or "the measurement", 40))
    more = [found.summary]
    if found.expected_interval:
        more.append(f"expected interval {format_duration(found.expected_interval)}")
    if found.method is not None:
        more.append(f"{_HOW[found.method]}, dashed where it is based on the stalls")
    head(
        page,
        f"{label} {_SAID[found.verdict]}",
        joined({label: found.raw}, plain(" · ".join(more), 200)),
        title,
        subtitle,
    )
    return page


def _longest(found: Diagnosis, most: int = 12) -> list[tuple[float, float, float]]:
    """The stalls as spans, the longest of them where there are many."""
    stalls = found.found
    order = np.sort(np.argsort(stalls.duration)[::-1][:most])
    columns = (stalls.start[order], stalls.end[order], stalls.missing[order].astype(np.float64))
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _curves(ax: Axes, found: Diagnosis, options: dict[str, Any]) -> None:
    """Raw and corrected curve, and the floor."""
    series = (
        {"raw": found.raw}
        if found.corrected is None
        else {"raw": found.raw, "corrected": found.corrected}
    )
    dashed = None
    if found.corrected is None and found.verdict == "omits":
        options = {"color": RED} | options
    if found.corrected is not None:
        hit = 100.0 * min(1.0, _stalled(found) / found.duration) if found.duration else 100.0
        number = max(1, len(found.found))
        dashed = {"corrected": (100.0 - hit, f"{number} stall{'' if number == 1 else 's'}")}
    percentiles(series, ax=ax, dashed_from=dashed, **options)
    if isinstance(found.raw, Summary) or not found.raw.count:
        return
    stall = found.longest_stall
    if found.duration and found.raw.unit in NANOSECONDS and found.evidence and stall > 0:
        floor(ax, found.raw, stall, found.duration)


def _stalled(found: Diagnosis) -> float:
    return float(found.found.duration.sum()) if len(found.found) else found.longest_stall


def floor(ax: Axes, raw: Any, stall: float, duration: float) -> None:
    """Draw the floor of one stall, and fill what the curve falls short of it."""
    from latencykit.analysis.omission import percentile_lower_bound

    curve = curve_of(raw)
    grid = grid_of(100.0, nines_of(curve.count), 400)
    least = percentile_lower_bound(grid, stall, duration) * 1e9 / NANOSECONDS[raw.unit]
    low = ax.get_ylim()[0]
    shown = least > low
    if not shown.any():
        return
    ax.plot(
        grid[shown],
        least[shown],
        color=INK,
        linewidth=1.0,
        linestyle=(0, (1.5, 1.5)),
        zorder=2.6,
        label="floor",
    )
    measured = np.maximum(curve.at(grid), low)
    short = shown & (least > measured)
    ax.fill_between(
        grid, measured, least, where=short, color=RED, alpha=0.13, linewidth=0, zorder=1
    )
    depth = np.where(short, least / measured, 0.0)
    if depth.max() > _DEEP:  # room for words
        places = place_of(grid[short])
        at = int(
            np.flatnonzero(short)[
                np.argmin(np.abs(places - (0.62 * places[0] + 0.38 * places[-1])))
            ]
        )
        words = f"less than a stall of {format_duration(stall * 1e9)} must leave,\nhad requests come meanwhile"
        middle = float(np.sqrt(measured[at] * least[at]))
        ax.text(
            float(grid[at]),
            middle,
            words,
            fontsize=8.5,
            color=RED,
            ha="center",
            va="center",
            zorder=5,
        )
