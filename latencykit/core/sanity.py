"""Marks that numbers are not what they seem: time-outs, repeated rows, averages."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.units import NANOSECONDS, format_count, format_duration, format_value

if TYPE_CHECKING:
    from latencykit.core.quantiles import Counted

__all__ = ["remarks", "time_out_of"]

_PILE = 10  # requests that took as long as the longest
_NEAR, _BELOW = 0.99, 0.5  # of it: "as long", and where there must be fewer
_MOST = 0.5  # of all requests: more are how long they take
_LIVELY = 50  # different latencies: fewer are not those of a service
_LEAST = 1e8  # ns: nobody waits for less before giving up
_ROUND = 0.005  # of a round number
_ROWS, _SLOW_STEP, _EXACTLY = 20, 5e9, 1e-6  # times (ns) that no load keeps so exactly


def time_out_of(counted: Counted, unit: str) -> tuple[float, int] | None:
    """Return the time-out at which many requests may have been given up, and their number.

    They took as long as the longest, a round duration that few others come near. True modes look
    the same, so it is a possibility and no more.
    """
    if unit not in NANOSECONDS or counted.censored or counted.counts.size < _LIVELY:
        return None
    longest = float(counted.high[-1])
    nanoseconds = longest * NANOSECONDS[unit]
    digits = nanoseconds / 10 ** math.floor(math.log10(max(nanoseconds, 1.0)))
    if nanoseconds < _LEAST or abs(digits * 2 / max(round(digits * 2), 1) - 1) > _ROUND:
        return None
    pile = int(counted.counts[counted.high >= _NEAR * longest].sum())
    near = int(counted.counts[counted.high >= _BELOW * longest].sum()) - pile
    return (longest, pile) if max(_PILE, near) < pile < _MOST * counted.count else None


def remarks(data: Any, histogram: Any) -> list[str]:
    """Return one sentence per mark in a measurement and its histogram."""
    counted, found = histogram.counted, []
    start = getattr(data, "start", None)
    if isinstance(start, np.ndarray) and start.size >= _ROWS:
        steps = np.diff(np.sort(start))
        if steps[0] >= _SLOW_STEP and np.ptp(steps) <= _EXACTLY * steps[0]:
            found.append(
                f"one row every {format_duration(float(steps[0]))}: if the rows are averages, as "
                "dashboards export them, the percentiles of requests are unknown"
            )
    given_up = time_out_of(counted, histogram.unit)
    if given_up is not None:
        found.append(
            f"{format_count(given_up[1])} requests took {format_value(given_up[0], histogram.unit)}"
            ", the longest of all: if that is a time-out, true latencies are longer"
        )
    if counted.repeats > 1:
        found.append(
            f"every latency was counted {format_count(counted.repeats)} times or a multiple of it: "
            "repeated rows, or samples scaled up; intervals take each for one"
        )
    return found
