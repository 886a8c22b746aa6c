"""What a load generator reported beside what was true, after its server was stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latencykit.plot.percentile_chart import percentiles
from latencykit.units import format_duration

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from latencykit.ctrlz.run import Calibration

__all__ = ["calibration"]

_FOUND = {
    "honest": "shows the stall as users met it",
    "omits": "omits what should have been sent during the stall",
    "loses": "loses the requests that were held up",
    "clips": "cuts off what took longest",
    "overcorrects": "shows more than the stall explains",
    "unknown": "cannot be judged by this run",
}


def calibration(
    result: Calibration, *, ax: Axes | None = None, title: str | None = None, **options: Any
) -> Axes:
    """Draw what a load generator reported (red) and what was true (blue).

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
    name = result.tool or "the load generator"
    said = f"{name} {_FOUND[result.verdict]}"
    stall = f"server frozen for {format_duration(result.stall * 1e9)}; {result.model} loop"
    subtitle = stall if result.model != "unknown" else stall.split(";")[0]
    series = {"reported": result.reported, "truth": result.truth}
    return percentiles(
        series, ax=ax, title=said if title is None else title, subtitle=subtitle, **options
    )
