"""Latencies that are longer than the run they are from: told when a file is read, most often a unit that is wrong.

They are no error. A request may have begun before its log did, tools calibrate before they count, and wait a little
for the last replies: what follows leaves room for all of that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latencykit.errors import LatencyKitError
from latencykit.histogram import Histogram
from latencykit.log import HistogramLog
from latencykit.samples import Samples
from latencykit.units import NANOSECONDS, format_duration

if TYPE_CHECKING:
    from latencykit.formats.base import Rung

__all__ = ["too_long"]

_LOOKED_AT = 16  # intervals of a log, the first in time: they are decoded once more than the others
_FIRST = 10
_ENOUGH = 10  # requests
_SLACK = 10.0  # seconds; as long as wrk2 calibrates
_ROOM = 1.1


def too_long(rung: Rung) -> str | None:
    """Return a note on latencies that last longer than the run; None where there is nothing to say.

    Parameters
    ----------
    rung : Samples, HistogramLog, Histogram or Summary
        As it was read, with the run's facts.

    Examples
    --------
    >>> from latencykit.run import Run
    >>> too_long(Histogram.of([1e6, 5e11], run=Run(duration=20.0, unit="ms", unit_from="option")))
    'a latency of 500 s is longer than the run, 20 s: are the values in ms? (--unit)'
    >>> too_long(Histogram.of([1e6, 5e9], run=Run(duration=20.0)))
    """
    if rung.unit not in NANOSECONDS:
        return None
    found = _of_log(rung) if isinstance(rung, HistogramLog) else _of_samples(rung) if isinstance(rung, Samples) else None
    found = found or _of_told(rung)
    if found is None:
        return None
    stated = rung.run.unit_from == "option"
    why = f"are the values in {rung.run.unit}? (--unit)" if stated else "was a clock set, or had it begun before?"
    return f"{found}: {why}"


def _of_told(rung: Rung) -> str | None:
    """A longest latency that does not fit in the time that the source says the run took."""
    told, longest = rung.run.duration, _longest(rung)
    if not (told and longest > _ROOM * told + _SLACK):
        return None
    return f"a latency of {format_duration(longest * 1e9)} is longer than the run, {format_duration(told * 1e9)}"


def _longest(rung: Rung) -> float:
    """Seconds of the longest latency; 0 where it is not known, or not looked for."""
    if isinstance(rung, HistogramLog):
        return 0.0
    if isinstance(rung, Samples):
        return float(rung.duration.max(initial=0)) / 1e9
    if isinstance(rung, Histogram):
        top = float(rung.max) if rung.count else 0.0
    else:
        top = max(rung.stats.get("max", 0.0), *rung.percentiles.values(), 0.0)
    return top * NANOSECONDS[rung.unit] / 1e9


def _of_log(log: HistogramLog) -> str | None:
    """An interval with a latency longer than all of the log, or first intervals with latencies from before it began."""
    if not len(log):
        return None
    try:
        series = log.rows(np.arange(min(len(log), _LOOKED_AT))).series()
    except LatencyKitError:  # a large log tells of damage when it is decoded
        return None
    held = series.count > 0
    longest = series.max[held] * (NANOSECONDS[log.unit] / 1e9)
    begin, whole = min(0.0, float(log.starts.min())), float((log.starts + log.lengths).max())
    if not held.any() or not whole > begin:
        return None
    top = float(longest.max())
    if top > _ROOM * (whole - begin) + _SLACK:
        return f"a latency of {format_duration(top * 1e9)} is longer than the log, {format_duration((whole - begin) * 1e9)}"
    since = ((series.start + series.length)[held] - begin)[:_FIRST]
    early = longest[:_FIRST] > since
    # Values that are taken for nanoseconds cannot come out too long, and an overloaded system may have been so for long.
    if log.run.unit_from == "assumed" or early.size < _FIRST or early.sum() <= _FIRST / 2:
        return None
    return f"{early.sum()} of the first {_FIRST} intervals hold latencies that began before the log did"


def _of_samples(samples: Samples) -> str | None:
    """Half of the requests taking longer than all of them took to be sent, where it is the user who says the unit."""
    if samples.start is None or len(samples) < _ENOUGH or samples.run.unit_from != "option":
        return None
    sending = (float(samples.start.max()) - float(samples.start.min())) / 1e9
    middle = float(np.median(samples.duration)) / 1e9
    if not middle > sending > 0:
        return None
    half, all_of_them = format_duration(middle * 1e9), format_duration(sending * 1e9)
    return f"half of the requests took longer than {half}, and all of them were sent within {all_of_them}"
