"""What is known of a run: its rate, length, connections and provenance, and where from."""

from __future__ import annotations

import math
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from latencykit._records import record
from latencykit.analysis.stalls import (
    SLOW,
    Trace,
    WorkFold,
    constant_load,
    usual_latency,
    usual_rate,
)
from latencykit.core import Data
from latencykit.core.blocks import SeriesFold
from latencykit.core.histogram import Histogram
from latencykit.core.histogram_log import (
    HistogramLog,
    IntervalSeries,
    in_succession,
    scan_with_evidence,
    series_of,
)
from latencykit.core.quantiles import median
from latencykit.core.run import Run
from latencykit.core.samples import Samples
from latencykit.core.summary import Summary
from latencykit.errors import InvalidArgumentError, require
from latencykit.units import NANOSECONDS, parse_duration


@record()
class FactRules:
    """What a source says of its run; chosen on tools whose rate was not reached, or coarse."""

    # of the median: a shorter longest request is not a stall
    min_stall_medians: float = 10.0
    # of the run: no stall takes more of it
    max_stalled_share: float = 0.9
    # of the offered rate: less achieved is an overload, if the backlog grew to about
    max_achieved: float = 0.98
    # these parts of what was not sent
    backlog: tuple[float, float] = (0.5, 1.5)
    # sends whose pace is compared with the offered rate (Poisson's vary by a third), and requests
    # of a run that can show an overload
    sends: int = 10
    min_sends: int = 50
    # requests above the highest percentile of those that state no count
    min_above: int = 20
    # of the requests: with more dropped, all of a tool's users were waiting
    max_dropped_share: float = 0.01


FACTS = FactRules()

_CATCHES_UP = ("wrk2", "oha", "fortio", "ghz", "h2load")
"""Tools that later send what a stall kept them from sending: no request of the schedule is lost."""

_SERVERS = ("nginx", "apache", "haproxy", "envoy", "caddy", "traefik", "iis", "elb", "alb")
"""Tools whose files are a server's own record of its users."""


@record()
class Facts:
    """A measurement and what is known of it; values in ns where they have a unit, times in s."""

    # `given_*` is what the caller states.

    data: Any
    histogram: Any = None  # of all values; None where a summary's statistics do not suffice
    trace: Trace | None = None  # sends and replies, for samples with start times
    series: IntervalSeries | None = None  # each interval's numbers, for a log
    busy: WorkFold | None = None  # and the time that its requests took
    given_rate: float | None = None  # requests per second
    given_interval: float | None = None  # ns between two requests of one connection
    given_connections: int | None = None
    given_duration: float | None = None
    estimated_connections: int | None = None  # by a test

    @property
    def run(self) -> Run:
        """The source's own description of the measurement."""
        run: Run = self.data.run
        return run

    @property
    def timed(self) -> bool:
        """There is a series over time."""
        return self.trace is not None or self.series is not None

    @cached_property
    def connections(self) -> int | None:
        """Their number: given, stated by the source, from its column, or estimated by a test."""
        known, data = self.given_connections or self.run.connections, self.data
        if known is None and isinstance(data, Samples) and data.connection is not None:
            known = int(np.unique(data.connection).size)
        return known or self.estimated_connections

    @cached_property
    def duration(self) -> float | None:
        """Length of the run in seconds."""
        if self.given_duration or self.run.duration:
            return self.given_duration or self.run.duration
        if isinstance(self.data, HistogramLog):
            return self.data.duration or None
        if self.trace is not None:
            return self.data.elapsed or None
        speed = self.given_rate or self.run.achieved or self.run.rate
        return self.count / speed if speed and self.count else None

    @cached_property
    def count(self) -> int:
        """Requests with a latency."""
        if isinstance(self.data, Summary):
            return self.data.count or 0
        return int(self.histogram.count + self.histogram.censored)

    @property
    def extent_known(self) -> bool:
        """The source states how long the longest request took, and how many, or percentiles."""
        return self.histogram is not None

    @property
    def measured(self) -> bool:
        """That is known, and the values are times."""
        return self.extent_known and self.data.unit in NANOSECONDS

    @cached_property
    def observed_rate(self) -> float | None:
        """Requests per second outside the stalls where the source shows them, else overall."""
        if self.trace is not None:
            return self.trace.rate
        if self.series is not None:
            return usual_rate(self.series) or None
        if not self.duration or not self.count:
            return None
        # A loop that waited sent nothing in the longest stall, unless it caught up.
        waited = self.is_closed_loop and self.run.tool not in _CATCHES_UP
        lost = min(self.longest, FACTS.max_stalled_share * self.duration) if waited else 0.0
        return self.count / (self.duration - lost)

    @cached_property
    def rate(self) -> float | None:
        """Requests per second that were due, all connections together."""
        # A rate that the source only aimed at counts no more than what it reached outside stalls.
        if self.given_rate:
            return self.given_rate
        if self.given_interval:
            return 1e9 * (self.connections or 1) / self.given_interval
        known = [speed for speed in (self.run.rate, self.observed_rate) if speed]
        return min(known) if known else self.run.achieved

    @cached_property
    def interval(self) -> float | None:
        """Expected interval of one connection, ns."""
        if self.given_interval:
            return self.given_interval
        if self.run.expected_interval and not self.given_rate and not self.given_connections:
            return self.run.expected_interval
        if not self.rate or not self.connections:
            return None
        return 1e9 * self.connections / self.rate

    @cached_property
    def longest(self) -> float:
        """Seconds of the longest request, timeouts included."""
        histogram = self.histogram
        if histogram is None:
            return 0.0
        late = histogram.censored_at if histogram.censored else 0.0
        top = float(histogram.max) if histogram.count else 0.0
        return max(top, float(late) if np.isfinite(late) else 0.0) / 1e9

    @cached_property
    def stall(self) -> float:
        """`longest` where it is many times the usual, so that a stall must be behind it; else 0."""
        known = self.histogram is not None and self.count
        usual = usual_latency(self.histogram.percentile([10, 50])) if known else 0.0
        return self.longest if self.longest * 1e9 >= FACTS.min_stall_medians * usual else 0.0

    @property
    def corrected_by(self) -> str | None:
        """``us``, ``tool`` or ``schedule`` if omission is taken care of, else None."""
        run = self.run
        if run.corrected == "schedule" and isinstance(self.data, Samples):
            from_send = run.measure == "service" and self.data.intended is not None
            return None if from_send else "schedule"
        return run.corrected if run.corrected in ("us", "tool", "schedule") else None

    @property
    def is_closed_loop(self) -> bool:
        """The tool is known to wait for replies before it sends, and to time from the send."""
        # That includes tools that drop what is due while all their users wait.
        if self.corrected_by is not None:
            return False
        if self.run.dropped > FACTS.max_dropped_share * max(self.count, 1):
            return True
        from_schedule = (
            isinstance(self.data, Samples)
            and self.run.measure == "response"
            and self.data.intended is not None
        )
        return self.run.loop in ("closed", "paced") and not from_schedule

    @property
    def may_be_closed_loop(self) -> bool:
        """Unless the source is known to time from a schedule."""
        return self.corrected_by is None and self.run.loop != "open"

    @property
    def source(self) -> str:
        """The kind of source, whose priors apply."""
        run = self.run
        if self.is_closed_loop:
            return "waiting generator"
        if run.loop == "open" and self.corrected_by == "schedule":
            return "scheduled generator"
        if run.loop == "open":  # timed from the send, although it was due before: may catch up
            sent = isinstance(self.data, Samples) and self.data.intended is not None
            late = sent and run.measure == "service"
            return "generator" if late else "open-loop generator"
        if run.tool in _SERVERS or run.format == "access-log":
            return "access log"
        if run.tool or run.rate or self.given_rate or self.given_interval or self.given_connections:
            return "generator"
        return "unlabelled"

    @property
    def offered(self) -> float:
        """Requests per second that were to be sent; 0 if unknown."""
        return self.given_rate or self.run.rate or 0.0

    @property
    def due(self) -> float:
        """Requests that were to be sent; 0 if unknown."""
        return self.offered * (self.duration or 0.0)

    @property
    def overload(self) -> float:
        """Seconds of backlog that grew over the run; else 0."""
        # The longest request shows it, or how late the requests were sent.
        if not self.offered or not self.duration or self.count < FACTS.min_sends:
            return 0.0
        achieved = self.run.achieved or (self.count + self.run.failed) / self.duration
        backlog = (1 - achieved / self.offered) * self.duration
        least, most = FACTS.backlog
        if isinstance(self.data, Summary):
            middle = self.data.stats.get("mean", 0.0)
        else:
            middle = float(self.histogram.percentile(50))
        grew = least * backlog <= self.longest <= most * backlog
        grew = grew and middle / 1e9 >= least * least * backlog
        if achieved < FACTS.max_achieved * self.offered and grew:
            return backlog
        return 0.0 if self.run.dropped else self.sent_late

    @cached_property
    def sent_late(self) -> float:
        """Seconds by which sends fell behind the offered rate, steadily; after stalls it is 0."""
        trace, some = self.trace, FACTS.sends
        if trace is None or trace.start.size < FACTS.min_sends or not self.offered:
            return 0.0
        behind = trace.start - np.arange(trace.start.size) / self.offered
        pace = float(median(trace.start[some:] - trace.start[:-some])) / some
        least, most = FACTS.backlog
        steady = least * behind[-1] / 2 < behind[behind.size // 2] < most * behind[-1] / 2
        slow = FACTS.max_achieved * pace * self.offered > 1
        return float(behind[-1]) if slow and steady else 0.0

    @cached_property
    def at_full_speed(self) -> bool:
        """A loop that never pauses, by its tool or by the number of requests in flight."""
        if self.run.loop == "closed" and not self.offered:
            return True
        if self.trace is not None or self.series is None or self.busy is None:
            return self.trace is not None and self.trace.full_speed
        if self.count * self.histogram.mean < SLOW.min_load * 1e9 * (self.duration or math.inf):
            return False
        order = np.argsort(self.series.start, kind="stable")
        order = order[self.series.count[order] > 1]
        work, squares = self.busy.work[order] / 1e9, self.busy.squares[order] / 1e9**2
        count = self.series.count[order].astype(np.float64)
        return constant_load(work, squares, count, self.series.length[order])


def facts_of(
    data: Data,
    expected_interval: str | float | None = None,
    rate: float | None = None,
    connections: int | None = None,
    duration: str | float | None = None,
) -> Facts:
    """Convert data to nanoseconds and collect what the caller says about it."""
    has_unit = data.unit in NANOSECONDS
    interval = None
    if expected_interval is not None:  # a bare number is for values without a unit
        interval = parse_duration(expected_interval, None if has_unit else "ns")
    if interval is not None and not 0 < interval < math.inf:
        raise InvalidArgumentError(
            f"an expected interval must be longer than nothing, not {expected_interval!r}"
        )
    length = None if duration is None else parse_duration(duration, "s") / 1e9
    stated = {"a rate": rate, "a number of connections": connections, "a duration": length}
    for name, value in stated.items():
        require(value, (Real, type(None)), f"{name} as a number")
        if value is not None and not 0 < value < math.inf:
            raise InvalidArgumentError(f"{name} must be positive and finite, not {value!r}")
    data = data.to_unit("ns") if has_unit else data
    data = in_succession(data) if isinstance(data, HistogramLog) else data
    series = busy = None
    if isinstance(data, HistogramLog):  # all that one pass can tell
        intervals, busy = SeriesFold(len(data), (50.0,)), WorkFold(len(data))
        scan_with_evidence(data, intervals, busy)
        series = series_of(data, intervals)
    if isinstance(data, Summary):
        # Of percentiles and a maximum, if they suffice; percentiles without a count may be of as
        # few requests as their highest is supported by.
        histogram, count = None, data.count
        points = {p: value for p, value in data.reported_percentiles.items() if 0 < p < 100}
        if not count and points and not data.runs:
            count = round(FACTS.min_above / (1 - max(points) / 100))
        if "max" in data.stats and count:
            histogram = Histogram.from_percentiles(
                sorted(points), sorted(points.values()), count, data.unit, run=data.run,
                reported_stats=data.stats,
            )  # fmt: skip
    else:
        histogram = data.histogram()
    trace = None
    if isinstance(data, Samples) and data.start is not None and len(data) > 1:
        trace = Trace.of(data)
    return Facts(data, histogram, trace, series, busy, rate, interval, connections, length)
