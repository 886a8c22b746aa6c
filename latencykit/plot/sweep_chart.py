"""A sweep: percentiles against load, the order of the runs, and the bracket as a band."""

from __future__ import annotations

from typing import TYPE_CHECKING

from latencykit.analysis.capacity import LoadCurve
from latencykit.errors import DataNotAvailableError
from latencykit.plot.load_chart import load_curve
from latencykit.plot.style import BLUE, GREY, INK, RED, current_axes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from latencykit.ctrlz.sweep import Sweep

__all__ = ["sweep"]

_COLOURS = {"met": BLUE, "missed": RED, "unknown": GREY}


def sweep(
    data: Sweep,
    *,
    ax: Axes | None = None,
    percentiles: Sequence[float] | None = None,
    unit: str | None = None,
    title: str | None = None,
    subtitle: str | None = None,
) -> Axes:
    """Draw percentiles against load, with the order and the verdict of each run.

    Parameters
    ----------
    data : Sweep
    ax : Axes, optional
        Where to draw; the current axes by default.
    percentiles : sequence of float, optional
        One line each; the highest has bars for its intervals. By default the median and those that
        the SLO limits.
    unit, title, subtitle
        As in `percentiles`.

    Returns
    -------
    Axes

    Raises
    ------
    DataNotAvailableError
        For a sweep without a verdict.
    """
    curve = data.curve
    if curve is None:
        raise DataNotAvailableError("no run of the sweep has a verdict: there is nothing to draw")
    ax = current_axes(ax)
    # Lines go through the longest run at each load: that of several which is surest.
    durations = {run.name: run.duration for run in data.runs}
    rows = sorted(curve.rows, key=lambda row: durations[row.name])
    surest = {row.rate: row for row in rows}
    kept = [k for k, row in enumerate(curve.rows) if surest[row.rate] is row]
    drawn = LoadCurve(
        tuple(curve.rows[k] for k in kept), curve.slo, tuple(curve.checks[k] for k in kept),
        curve.capacity, curve.limited_by,
    )  # fmt: skip
    if percentiles is None:
        limited = (limit.percentile for limit in data.slo.limits)
        percentiles = sorted({50.0, *(p for p in limited if p is not None and p < 100)})
    order = "numbers: order of the runs; blue met, red missed, grey undecided"
    load_curve(
        drawn, ax=ax, percentiles=percentiles, confidence=data.confidence, unit=unit,
        title=title, subtitle=f"{data.slo} · {order}" if subtitle is None else subtitle,
    )  # fmt: skip
    # The numbers stand over each load, in the colour of the verdict.
    left, right = ax.get_xlim()
    stacks: dict[int, int] = {}
    for run in data.runs:
        if run.purpose == "warm-up":
            continue
        place = round(24 * (run.rate - left) / (right - left))
        level = stacks[place] = stacks.get(place, -1) + 1
        ax.annotate(
            str(run.number), (run.rate, 1.0), xycoords=("data", "axes fraction"),
            xytext=(0, -10 - 11 * level), textcoords="offset points", ha="center", va="top",
            fontsize=8, fontweight="bold", color=_COLOURS.get(run.verdict, INK), zorder=6,
        )  # fmt: skip
    return ax
