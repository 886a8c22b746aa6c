"""`find_incident`: the short time into which most of a run's slow requests fall."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latencykit._records import record
from latencykit.units import format_count, format_duration, format_percentile

if TYPE_CHECKING:
    from latencykit._typing import Floats


@record()
class IncidentRules:
    """When slow requests are one incident; chosen on the worlds of `tests.benchmarks.truth`."""

    # fewer slow requests fall close together by chance
    min_slow_requests: int = 20
    # of the slow requests: what is left explains no tail
    min_slow_share: float = 0.5
    # of the run: a longer time is how the system was
    max_run_share: float = 0.05
    # times as many slow requests as the load of that time accounts for: a rush hour has its share
    min_lift: float = 5.0
    # of the incident: slow requests farther from it than that do not belong to it
    max_gap_share: float = 0.25
    # of the mean gap between the other slow requests: the nearest of those do not, either
    max_other_gaps: float = 0.2
    # of a percentile: it is named with its value without the incident
    min_ratio: float = 1.1
    # named at most; the others are in the record
    named: tuple[float, ...] = (50.0, 99.0, 99.9)


RULES = IncidentRules()


@record()
class Incident:
    """Most of the slow requests of a run, or the stall that carries its percentiles.

    Attributes
    ----------
    start, end : float
        Seconds from the start of the run.
    slow, total : float
        Slow requests in that time, and in all; both 0 of a stall that holds much of the run.
    above : str
        What makes a request slow: a percentile, or a latency.
    without : tuple of (percentile, value, value without the incident)
        Standard percentiles, ns.
    """

    start: float
    end: float
    slow: float
    total: float
    above: str = "p99"
    without: tuple[tuple[float, float, float], ...] = ()

    @property
    def moved(self) -> tuple[tuple[float, float, float], ...]:
        """Of `without`, those named that are lower without the incident."""
        return tuple(
            (p, value, rest)
            for p, value, rest in self.without
            if p in RULES.named and value >= RULES.min_ratio * rest
        )

    @property
    def text(self) -> str:
        """The sentence on it.

        Examples
        --------
        >>> moved = ((50.0, 5e6, 5e6), (99.0, 206e6, 12e6))
        >>> Incident(200, 206, 149, 200, without=moved).text
        '149 of the 200 slowest requests (above p99) fall into 6 s (200 s to 206 s); without them \
p99 is 12 ms instead of 206 ms'
        >>> Incident(200, 206, 0, 0, without=moved).text
        'p99 206 ms (12 ms without the stall of 6 s, 200 s to 206 s)'
        """
        length = format_duration(1e9 * (self.end - self.start), 2)
        grain = (self.end - self.start) / 1000 or 1.0  # a first interval may begin 5 ms too early
        start, end = (
            format_duration(1e9 * (round(moment / grain) * grain + 0.0), 4)
            for moment in (self.start, self.end)
        )
        moved = [
            (f"p{format_percentile(p)}", format_duration(value), format_duration(without))
            for p, value, without in self.moved
        ]
        if not self.total:
            first, *others = [f"{name} {value} ({less}" for name, value, less in moved]
            stall = f" without the stall of {length}, {start} to {end})"
            return ", ".join([first + stall, *(f"{text})" for text in others)])
        slow = f"requests above {self.above}"
        if self.above[:1] == "p":
            slow = f"slowest requests (above {self.above})"
        of_all = "all" if self.slow >= self.total else f"{format_count(self.slow)} of the"
        text = f"{of_all} {format_count(self.total)} {slow} fall into {length} ({start} to {end})"
        if not moved:
            return text
        rest = ", ".join(
            f"{name}{' is' if not k else ''} {less} instead of {value}"
            for k, (name, value, less) in enumerate(moved)
        )
        return f"{text}; without them {rest}"


def find_incident(
    begin: Floats, end: Floats, weight: Floats, load: Floats, span: float
) -> Incident | None:
    """Find the shortest time that contains half of the slow requests, and what adjoins it.

    Parameters
    ----------
    begin, end : ndarray of float64, shape (n,)
        When each slow request, or the interval that counted some, began and ended, in seconds from
        the start of the run; `begin` ascends.
    weight : ndarray of float64, shape (n,)
        Slow requests of each.
    load : ndarray of float64, shape (m,)
        When requests were sent, slow or not, ascending; or the borders of equally loaded times.
    span : float
        Length of the run, seconds.

    Returns
    -------
    Incident or None
        None where slow requests are spread over the run.

    Examples
    --------
    >>> slow = np.sort(np.append(np.linspace(200, 206, 149), np.linspace(0, 600, 51)))
    >>> find_incident(slow, slow, np.ones(200), np.linspace(0, 600, 20_000), 600.0).slow
    150.0
    """
    total = float(weight.sum())
    if total < RULES.min_slow_requests or span <= 0:
        return None
    end = np.maximum.accumulate(end)
    seen = np.concatenate(([0.0], np.cumsum(weight)))
    last = np.searchsorted(seen, seen[:-1] + RULES.min_slow_share * total) - 1
    fits = np.flatnonzero(last < begin.size)
    length = end[last[fits]] - begin[fits]
    first = int(fits[np.argmin(length)])
    final, core = int(last[first]), float(length.min())
    if core > RULES.max_run_share * span:
        return None
    gaps = begin[1:] - end[:-1]
    far = np.flatnonzero(
        gaps
        > min(
            RULES.max_gap_share * core,
            RULES.max_other_gaps * span / max(total * (1 - RULES.min_slow_share), 1.0),
        )
    )
    first = int(np.append(-1, far[far < first])[-1]) + 1
    final = int(np.append(far[far >= final], begin.size - 1)[0])
    start, stop = float(begin[first]), float(end[final])
    slow = float(seen[final + 1] - seen[first])
    sent = np.searchsorted(load, stop, "right") - np.searchsorted(load, start, "left")
    if stop - start > RULES.max_run_share * span:
        return None
    if slow / total < RULES.min_lift * sent / max(load.size, 1):
        return None
    return Incident(start, stop, slow, total)
