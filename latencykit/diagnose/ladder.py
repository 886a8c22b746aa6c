"""T4 and T5: what tells a closed loop at full speed, and synthetic values, from the numbers alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latencykit.diagnose.evidence import Evidence
from latencykit.units import format_duration

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from latencykit.diagnose.trace import Trace
    from latencykit.histogram import Histogram

    Floats = NDArray[np.float64]

__all__ = ["full_speed", "ladder"]

_WINDOWS = 50
_STEADY = 0.02  # variation of the number under way that still is one number
_STEPS = 8  # rungs that a ladder has at least
_FINE = 20.0  # times the width of a bucket: a step below that is not told from the buckets


def full_speed(trace: Trace) -> Evidence | None:
    """Tell whether a fixed number of requests is always under way (Little's law): a closed loop at full speed.

    Returns
    -------
    Evidence or None
        Its statistic is the mean number under way; None where that wavers or is no whole number.
    """
    if trace.due.size < 4 * _WINDOWS:
        return None
    edges = np.linspace(0.0, trace.span, _WINDOWS + 1)
    work = _running_work(trace, edges)
    level = np.diff(work) / np.diff(edges)
    mean, near = float(level.mean()), round(float(np.median(level)))
    if near < 1 or abs(np.median(level) - near) > _STEADY * near or level[1:-1].std() > _STEADY * near:
        return None
    finding = f"always {near} under way: a closed loop at full speed with N = {near}, so these are service times"
    return Evidence("requests under way", mean, float(near), finding, p=False)


def _running_work(trace: Trace, at: Floats) -> Floats:
    """Request-seconds under way up to each moment."""
    due, end = trace.due, trace.ends
    sums = [np.concatenate(([0.0], np.cumsum(times))) for times in (due, end)]
    out = np.zeros(at.size)
    for times, total, sign in ((due, sums[0], 1.0), (end, sums[1], -1.0)):
        passed = np.searchsorted(times, at, "right")
        out += sign * (passed * at - total[passed])
    return out


def ladder(histogram: Histogram, interval: float | None = None) -> Evidence | None:
    """Find values on a ladder of equal steps below the maximum: back-filled, or measured from a schedule.

    Parameters
    ----------
    histogram : Histogram
        In ns.
    interval : float, optional
        Expected interval in ns, if it is known: the step to look for first.

    Returns
    -------
    Evidence or None
        Its statistic is the part of the upper half that stands on the ladder.
    """
    if not histogram.index.size:
        return None
    high, low = histogram.buckets.high(histogram.index), histogram.buckets.low(histogram.index)
    upper = high > high[-1] / 2
    values, widths, counts = high[upper], (high - low)[upper], histogram.counts[upper]
    if values.size < _STEPS:
        return None
    gaps = np.diff(values)
    step = float(np.median(gaps))
    if interval and abs(step - interval) < 0.1 * interval:
        step = interval
    width = float(widths.max())
    if step < _FINE * max(width, 1.0) or not np.all(counts <= 8):
        return None
    off = np.abs((values[-1] - values) / step - np.rint((values[-1] - values) / step)) * step
    share = float((off <= 2 * width + 0.02 * step).mean())
    if share < 0.9:
        return None
    finding = (
        f"the longest {values.size} values stand {format_duration(step)} apart: back-filled or measured from a schedule; do not "
        "correct again, and take them for one event"
    )
    return Evidence("ladder", share, 0.9, finding, "honest", p=False)
