"""What is known of a run: its rate, length, connections and pedigree, and where each of them comes from."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.diagnose.stalls_log import usual_rate
from latencykit.diagnose.trace import Trace
from latencykit.errors import UsageError
from latencykit.log import HistogramLog
from latencykit.samples import Samples
from latencykit.summary import Summary
from latencykit.units import NANOSECONDS, parse_duration

if TYPE_CHECKING:
    from latencykit.histogram import Histogram
    from latencykit.log import IntervalSeries
    from latencykit.run import Run

    Rung = Samples | HistogramLog | Histogram | Summary

__all__ = ["Facts", "facts_of"]

_CATCH_UP = ("wrk2", "oha", "fortio", "ghz", "h2load")
"""Tools that send later what a stall kept them from sending: all requests of the schedule are there."""
_STALL = 20.0  # medians: a longest request below that is no stall


@dataclass(frozen=True)
class Facts:
    """A series and what is known of it, in nanoseconds and seconds.

    Attributes
    ----------
    rung : Samples, HistogramLog, Histogram or Summary
        In ns, where its values have a unit.
    told_rate, told_interval : float or None
        Requests per second, and ns between two of one connection, as the caller says.
    told_connections : int or None
    told_duration : float or None
        Seconds.
    """

    rung: Any
    told_rate: float | None = None
    told_interval: float | None = None
    told_connections: int | None = None
    told_duration: float | None = None
    found_connections: int | None = None

    @property
    def run(self) -> Run:
        """What the source says."""
        run: Run = self.rung.run
        return run

    @cached_property
    def histogram(self) -> Histogram:
        """All values together."""
        histogram: Histogram = self.rung.histogram()
        return histogram

    @cached_property
    def trace(self) -> Trace | None:
        """Sends and replies, where the source knows them."""
        known = isinstance(self.rung, Samples) and self.rung.start is not None and len(self.rung) > 1
        return Trace.of(self.rung) if known else None

    @cached_property
    def series(self) -> IntervalSeries | None:
        """Each interval's numbers, for a log."""
        return self.rung.series((50,)) if isinstance(self.rung, HistogramLog) else None

    def having_found(self, connections: int) -> Facts:
        """Return the same, with the number of connections that a test made out."""
        return self if self.connections or not connections else replace(self, found_connections=connections)

    # ------------------------------------------------------------ numbers

    @cached_property
    def connections(self) -> int | None:
        """As told, as the source says, by its column, or as a test made out."""
        known = self.told_connections or self.run.connections
        if known is None and isinstance(self.rung, Samples) and self.rung.connection is not None and len(self.rung):
            known = int(np.unique(self.rung.connection).size)
        return known or self.found_connections

    @cached_property
    def duration(self) -> float | None:
        """Length of the run in seconds."""
        if self.told_duration or self.run.duration:
            return self.told_duration or self.run.duration
        if isinstance(self.rung, HistogramLog):
            return self.rung.duration or None
        if self.trace is not None:
            return self.rung.elapsed or None
        speed = self.told_rate or self.run.achieved or self.run.rate
        return self.count / speed if speed and self.count else None

    @cached_property
    def count(self) -> int:
        """Requests with a latency."""
        if isinstance(self.rung, Summary):
            return self.rung.count or 0
        return self.histogram.count + self.histogram.censored

    @cached_property
    def observed_rate(self) -> float | None:
        """Requests per second outside the stalls where the source shows them, else of the whole run."""
        if self.trace is not None:
            return self.trace.rate
        if self.series is not None:
            return usual_rate(self.series) or None
        return self.count / self.duration if self.duration and self.count else None

    @cached_property
    def rate(self) -> float | None:
        """Requests per second that were to come, all connections together.

        A rate that the source only aimed at counts no more than what it reached while nothing stood still.
        """
        if self.told_rate:
            return self.told_rate
        if self.told_interval:
            return 1e9 * (self.connections or 1) / self.told_interval
        known = [speed for speed in (self.run.rate, self.observed_rate) if speed]
        return min(known) if known else self.run.achieved

    @cached_property
    def interval(self) -> float | None:
        """Expected interval of one connection, ns."""
        if self.told_interval:
            return self.told_interval
        if self.run.expected_interval and not self.told_rate and not self.told_connections:
            return self.run.expected_interval
        if not self.rate or not self.connections:
            return None
        return 1e9 * self.connections / (self._pace or self.rate)

    @cached_property
    def _pace(self) -> float | None:
        """Requests per second while nothing stood still, guessed for a loop that waited and shows no course."""
        if self.told_rate or self.trace is not None or self.series is not None or not (self.waits and self.duration):
            return None
        lost = 0.0 if self.run.tool in _CATCH_UP else min(self.longest, 0.9 * self.duration)
        pace = self.count / max(self.duration - lost, 1e-9)
        return min(pace, self.run.rate or pace)

    @cached_property
    def longest(self) -> float:
        """Seconds of the longest request, timeouts included."""
        if isinstance(self.rung, Summary):
            return float(self.rung.stats.get("max", 0.0)) / 1e9
        if not self.count:
            return 0.0
        histogram = self.histogram
        late = histogram.censored_at if histogram.censored and np.isfinite(histogram.censored_at) else 0.0
        return max(float(histogram.max) if histogram.count else 0.0, float(late)) / 1e9

    @cached_property
    def stall(self) -> float:
        """The same where it is many times what is usual, so that a stall must be behind it; else 0."""
        if isinstance(self.rung, Summary):
            usual = self.rung.stats.get("mean", 0.0)
        else:
            usual = float(self.histogram.percentile(50)) if self.count else 0.0
        return self.longest if self.longest * 1e9 >= _STALL * usual else 0.0

    # ------------------------------------------------------------ T0, the pedigree of the numbers

    @property
    def corrected_by(self) -> str | None:
        """Who took care of omission in these values: ``us``, ``tool``, ``schedule``, or None for nobody known."""
        run = self.run
        if run.corrected == "schedule" and isinstance(self.rung, Samples):
            from_send = run.measure == "service" and self.rung.intended is not None
            return None if from_send else "schedule"
        return run.corrected if run.corrected in ("us", "tool", "schedule") else None

    @property
    def waits(self) -> bool:
        """Whether the tool is known to wait for replies before it sends, and to time from the send.

        So does one that drops what is due while all its users wait, whatever its schedule.
        """
        if self.corrected_by is None and self.run.dropped > 0.01 * max(self.count, 1):
            return True
        from_schedule = isinstance(self.rung, Samples) and self.run.measure == "response" and self.rung.intended is not None
        return self.corrected_by is None and self.run.loop in ("closed", "paced") and not from_schedule

    @property
    def may_wait(self) -> bool:
        """Whether the load generator may have waited for replies: unless the source is known to time from a schedule."""
        return self.corrected_by is None and self.run.loop != "open"


def facts_of(
    rung: Rung,
    expected_interval: str | float | None = None,
    rate: float | None = None,
    connections: int | None = None,
    duration: str | float | None = None,
) -> Facts:
    """Bring a rung to nanoseconds and take what the caller says of it."""
    same = rung.to_unit("ns") if rung.unit in NANOSECONDS else rung
    bare = None if rung.unit in NANOSECONDS else "ns"  # a bare number is for values without a unit
    interval = None if expected_interval is None else parse_duration(expected_interval, bare)
    if interval is not None and not 0 < interval < math.inf:
        raise UsageError(f"an expected interval must be longer than nothing, not {expected_interval!r}")
    for name, value in (("a rate", rate), ("a number of connections", connections)):
        if value is not None and not 0 < value < math.inf:
            raise UsageError(f"{name} must be more than nothing and finite, not {value!r}")
    return Facts(
        same,
        rate,
        interval,
        connections,
        None if duration is None else parse_duration(duration, "s") / 1e9,
    )
