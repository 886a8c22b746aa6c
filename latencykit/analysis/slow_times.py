"""Slow times of a run, and what they show by themselves.

Each question about the run has its own test and its own part of the false findings: a period of the
stalls, the time of day, the first minutes, idle times, one connection.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np

from latencykit._records import record
from latencykit._typing import Floats
from latencykit.analysis.diagnosis import Diagnosis
from latencykit.analysis.omission import stalls_of
from latencykit.analysis.period import period_of
from latencykit.analysis.stalls import LEVELS, SlowFold, Stalls, merge_intervals
from latencykit.core.evidence import Evidence, TimedSupport
from latencykit.core.histogram import STANDARD_PERCENTILES
from latencykit.core.histogram_log import HistogramLog, expect, interval_series, scan
from latencykit.core.quantiles import median
from latencykit.core.samples import OUTCOMES, Samples
from latencykit.errors import InvalidArgumentError
from latencykit.units import (
    NANOSECONDS,
    format_count,
    format_duration,
    format_moment,
    format_percentile,
    in_unit,
    parse_percentile,
)


@record()
class SlowTimesRules:
    """When a run's own slow times are worth a sentence; chosen on `truth_events`."""

    # of any false finding, for each question
    max_false_share: float = 0.003
    # of a latency: less than a bucket below it
    equal_share: float = 0.999
    # mean gaps between requests: so well the ends of a stall are known
    reach_gaps: float = 3.0
    # time bins of a day
    day_bins: int = 48
    # of a period, over the run, if it is that of the clock
    max_moved_share: float = 0.05
    # of a run, for its first minutes
    run_blocks: int = 20
    # times as slow: less is not worth a sentence
    min_slower: float = 1.2
    # of the requests have a time of their own, else the clock is too coarse
    min_stamped_share: float = 0.5
    # after the one that ended an idle time: it is compared with that
    later_requests: int = 3
    # times the usual gap between requests: shorter times are not idle
    min_idle_gaps: float = 20.0


RULES = SlowTimesRules()


@record()
class SlowTimes:
    """A run: its span, its stalls and its slow requests, in seconds from its start."""

    data: Samples | HistogramLog
    epoch: float | None
    first: float  # where it begins: after the start of the run, if it is a part of one
    span: float
    tolerance: float  # seconds by which the start of a stall may be wrong
    threshold: float  # ns
    name: str  # of the threshold
    begin: Floats  # of the stalls
    end: Floats
    slow_begin: Floats  # of the slow requests, or of the intervals that counted them
    slow_end: Floats
    weight: Floats

    @classmethod
    def of(cls, data: Samples | HistogramLog, stalls: Stalls, above: str | float) -> SlowTimes:
        """Return the slow times of a run; requests above a percentile or a latency are slow."""
        (name, level), factor = threshold_name(above), NANOSECONDS.get(data.unit, 1.0)
        if level is None:
            threshold = float(in_unit(above, "ns"))
        else:
            threshold = float(data.percentile(level)) * factor
        if isinstance(data, Samples):
            assert data.start is not None
            epoch = None if data.epoch is None else data.epoch / 1e9
            values = data.values
            slow = (values > threshold) & data.good
            if not slow.any():  # many are as slow as the slowest
                slow = (values >= threshold * RULES.equal_share) & data.good
            if data.outcome is not None:
                slow |= data.outcome == OUTCOMES.index("timeout")
            end = (data.offsets + data.duration / 1e9)[slow]
            begin, weight = end - values[slow] / 1e9, np.ones(end.size)
            first, span = float(data.offsets.min()), data.elapsed
            gaps = np.diff(np.sort(data.start + data.duration))
            gaps = gaps[gaps > 0]
            grain = float(median(gaps)) / 1e9 if gaps.size else 0.0
            tolerance = max(RULES.reach_gaps * span / max(len(data), 1), grain, 1e-3)
        else:
            epoch, span = data.run.start, data.duration
            first = float(data.starts.min()) if len(data) else 0.0
            counts = np.zeros(len(data), np.int64)
            for limit in (threshold, threshold * RULES.equal_share):
                if not counts.any():
                    fold = SlowFold(np.full(len(data), 2 * limit / factor))
                    scan(data, fold)
                    counts = fold.counts[LEVELS.index(0.5)]
            slow = counts > 0
            begin, weight = data.starts[slow], counts[slow].astype(np.float64)
            end = begin + data.lengths[slow]
            tolerance = float(median(data.lengths)) / 2 if len(data) else 1.0
        order = np.argsort(begin, kind="stable")
        return cls(
            data, epoch, first, float(span), tolerance, threshold, name, stalls.start, stalls.end,
            begin[order], end[order], weight[order],
        )  # fmt: skip

    def incident(self) -> Incident | None:
        """Return the short time into which most of the slow requests fall, if there is one."""
        if isinstance(self.data, Samples):
            load = np.sort(self.data.offsets)
        else:
            series = interval_series(self.data)
            counts = np.cumsum(series.count)
            if not counts.size or not counts[-1]:
                return None
            load = np.interp(np.linspace(0, counts[-1], 10_000), counts, series.start)
        incident = find_incident(self.slow_begin, self.slow_end, self.weight, load, self.span)
        if incident is None:
            return None
        if not isinstance(self.data, Samples):
            # An interval counts what ended in it: a stall began before.
            hit = (self.begin < incident.end) & (self.end > incident.start - self.tolerance)
            incident = replace(incident, start=float(min([incident.start, *self.begin[hit]])))
        return _with_rest(replace(incident, above=self.name), self.data)


def incident_of(
    data: Samples | HistogramLog, evidence: Evidence, diagnosis: Diagnosis | None = None
) -> Incident | None:
    """Return the short time of most requests above p99, or the one stall that counts."""
    # Most runs have none, which the time bins of their evidence show. A diagnosis knows the stalls.
    if data.unit not in NANOSECONDS or type(evidence) is not TimedSupport:
        return None
    one_period = any(doubt.cause == "one slow period" for doubt in evidence.doubts())
    if not one_period and evidence.table.sum() < 99 * INCIDENT.min_slow_requests:
        return None
    above = evidence.above(99.0)
    begin, span = evidence.start, float((evidence.start + evidence.length).max(initial=0.0))
    order = np.argsort(begin, kind="stable")
    begin, total = begin[order], float(above.sum())
    running = np.cumsum(above[order])
    last = np.searchsorted(running, running - above[order] + total / 2 * (1 - 1e-9))
    fits = last < begin.size
    core = float((begin[last[fits]] - begin[fits]).min(initial=math.inf))
    # Requests of one bin may have begun up to its length apart, and so may those of the other.
    bins = 2 * float(evidence.length.max(initial=0.0))
    crowded = total >= INCIDENT.min_slow_requests and core <= span / INCIDENT.min_lift + bins
    if not crowded and not one_period:
        return None
    if isinstance(data, HistogramLog):
        expect(data)  # much more will be asked of it
    stalls = stalls_of(data) if diagnosis is None else diagnosis.detected_stalls
    incident = SlowTimes.of(data, stalls, "p99").incident() if crowded else None
    if incident is not None or not one_period or not len(stalls):
        return incident
    longest = int(stalls.duration.argmax())
    found = Incident(float(stalls.start[longest]), float(stalls.end[longest]), 0.0, 0.0)
    found = _with_rest(found, data)
    return found if found.moved else None


def _with_rest(incident: Incident, data: Samples | HistogramLog) -> Incident:
    """The percentiles of the run, and of what remains without the incident."""
    if isinstance(data, Samples):
        nanosecond = 1e-9  # rounding would leave the request that begins with the stall outside
        sent = data.offsets
        outside = (sent < incident.start - nanosecond) | (sent > incident.end + nanosecond)
        rest: Samples | HistogramLog = data.select(outside)
    else:
        touched = (data.starts <= incident.end) & (data.starts + data.lengths > incident.start)
        rest = data[np.flatnonzero(~touched)]
    whole, others = data.histogram(), rest.histogram()
    if not others.count or not whole.count:
        return incident
    factor = NANOSECONDS[data.unit]
    values = (
        np.asarray(side.percentile(STANDARD_PERCENTILES)) * factor for side in (whole, others)
    )
    columns = (STANDARD_PERCENTILES, *(side.tolist() for side in values))
    return replace(incident, without=tuple(zip(*columns, strict=True)))


def threshold_name(above: str | float) -> tuple[str, float | None]:
    """Return the threshold in words, and the percentile that it is, if it is one."""
    if isinstance(above, str) or 0 < above <= 100:
        try:
            level = parse_percentile(above)
        except InvalidArgumentError:
            in_unit(above, "ns")
            return str(above), None
        if not 0 < level < 100:
            raise InvalidArgumentError(f"above={above!r}: choose a percentile between 0 and 100")
        return f"p{format_percentile(level)}", level
    if not 0 <= above < math.inf:
        raise InvalidArgumentError(f"above={above!r}: choose a percentile, or a latency as '20ms'")
    return format_duration(above), None


def probability_text(p: float) -> str:
    """Return a probability as findings print it."""
    return f"p = {p:.2g}" if p >= 0.001 else "p < 0.001"


# ------------------------------------------------------------
# The questions.

_DAY = 86_400.0
_ROUND = (60.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 21_600.0, 43_200.0, _DAY)


def own_findings(run: SlowTimes, stalls: Stalls) -> list[str]:
    """Return what the run shows by itself, one sentence each."""
    findings: list[str] = []
    # Stalls that follow each other closely are one event: a cluster would pass for a period.
    apart = run.span / max(4 * len(stalls), 1)
    period = period_of(merge_intervals(stalls.start, stalls.end + apart)[0], run.span)
    if period is not None and period.p <= RULES.max_false_share:
        words = period.words
        cycle = min(_ROUND, key=lambda size: abs(np.log(size / period.seconds)))
        # A period that is nearly whole moves through the minute as the run goes on.
        moved = abs(period.seconds / cycle - 1) * run.span / cycle
        if run.epoch is not None and moved < RULES.max_moved_share:
            turn = np.exp(2j * np.pi * (stalls.start + run.epoch) / cycle).sum()
            phase = round(float(np.angle(turn)) / (2 * np.pi), 2) % 1.0 * cycle
            words += f", {format_duration(phase * 1e9, 2)} after the full "
            words += {60.0: "minute", 3600.0: "hour", _DAY: "day"}.get(
                cycle, format_duration(cycle * 1e9)
            )
            words += " of the clock (UTC)"
        findings.append(words)
    findings += _time_of_day(run)
    findings += _first_minutes(run)
    if isinstance(run.data, Samples):
        findings += _after_idle(run, run.data)
    return findings


def _time_of_day(run: SlowTimes) -> list[str]:
    """Days are alike in when they are slow: each turned at random, they would not be."""
    days = int(run.span // _DAY)
    if days < 3 or not run.slow_begin.size or run.epoch is None:
        return []
    slot = (run.slow_begin / _DAY * RULES.day_bins).astype(np.int64)
    kept = slot < days * RULES.day_bins
    table = np.bincount(slot[kept], run.weight[kept], days * RULES.day_bins).reshape(
        days, RULES.day_bins
    )
    table = table[table.sum(axis=1) > 0]
    if len(table) < 3:
        return []
    table = table / table.sum(axis=1)[:, None]

    def peak(rows: Floats) -> Floats:
        middle = rows.mean(axis=-2)
        return np.asarray((middle + np.roll(middle, 1, axis=-1)).max(axis=-1))

    rng = np.random.default_rng(7)
    turns = rng.integers(0, RULES.day_bins, (4999, len(table), 1))
    turned = np.take_along_axis(
        np.broadcast_to(table, (4999, *table.shape)),
        (np.arange(RULES.day_bins) + turns) % RULES.day_bins,
        axis=2,
    )
    seen = float(peak(table))
    p = (1 + int((peak(turned) >= seen - 1e-12).sum())) / 5000
    if p > RULES.max_false_share:
        return []
    middle = table.mean(axis=0)
    last = int(np.argmax(middle + np.roll(middle, 1)))
    begin = (run.epoch + (last - 1) * _DAY / RULES.day_bins) % _DAY
    clock = [f"{int(t // 3600) % 24:02d}:{int(t % 3600 // 60):02d}" for t in (begin, begin + 3600)]
    text = (
        f"{100 * seen:.0f} % of the requests above {run.name} fall between {clock[0]} and "
        f"{clock[1]} UTC of each day ({len(table)} days; {probability_text(p)})"
    )
    return [text]


def _first_minutes(run: SlowTimes) -> list[str]:
    """The first blocks are slower than all others, by more than these differ (Dixon, 1950)."""
    if isinstance(run.data, Samples):
        at, value = run.data.offsets[run.data.good], run.data.values[run.data.good] / 1e9
    else:
        series = interval_series(run.data, (50,))
        counted = series.count > 0
        at = series.start[counted]
        value = series.values[counted, 0] * NANOSECONDS.get(series.unit, 1.0) / 1e9
    if at.size < 5 * RULES.run_blocks or not run.span > 0:
        return []
    order = np.argsort(at, kind="stable")
    at, value = at[order], np.maximum(value[order], 1e-9)
    blocks = np.arange(RULES.run_blocks + 1) / RULES.run_blocks
    edges = np.searchsorted(at, run.first + blocks * run.span)
    if (np.diff(edges) < 5).any():
        return []
    middle = np.log([median(value[a:b]) for a, b in pairwise(edges.tolist())])
    for lead in (3, 2, 1):
        rest = middle[lead:]
        gap = float(middle[:lead].min() - rest.max())
        if gap >= max(float(np.ptp(rest)), np.log(RULES.min_slower)):
            first, others = (1e9 * float(median(part)) for part in np.split(value, [edges[lead]]))
            length = format_duration(lead / RULES.run_blocks * run.span * 1e9, 2)
            text = (
                f"the first {length} are slower than all the rest (median "
                f"{format_duration(first)} against {format_duration(others)}), as in a warm-up"
            )
            return [text]
    return []


def _after_idle(run: SlowTimes, samples: Samples) -> list[str]:
    """Requests after an idle time are slow more often than those that follow (McNemar's test)."""
    from scipy import special

    assert samples.start is not None
    order = np.argsort(samples.start, kind="stable")
    start, slow = samples.offsets[order], (samples.values > run.threshold)[order]
    end = (samples.offsets + samples.duration / 1e9)[order]
    if start.size < 100:
        return []
    idle = start[1:] - np.maximum.accumulate(end)[:-1]
    limit = RULES.min_idle_gaps * float(median(np.diff(start)))
    # Stamps of whole seconds, say, put starts or ends together, and idle times between them.
    apart = min(np.count_nonzero(np.diff(start)), np.count_nonzero(np.diff(np.sort(end))))
    if apart < RULES.min_stamped_share * start.size - 1:
        return []
    after = np.concatenate(([False], idle > limit))
    both, number = int((after & slow).sum()), int(after.sum())
    if both < 5 or both < 0.1 * slow.sum() or both < 0.3 * number:
        return []
    first = np.flatnonzero(after)
    first = first[first + RULES.later_requests < start.size]
    first = first[np.cumsum(after)[first] == np.cumsum(after)[first + RULES.later_requests]]
    alone = int((slow[first] & ~slow[first + RULES.later_requests]).sum())
    others = int((~slow[first] & slow[first + RULES.later_requests]).sum())
    p = float(special.betainc(alone, others + 1, 0.5)) if alone else 1.0
    if p > RULES.max_false_share:
        return []
    text = (
        f"{both} of {format_count(number)} requests after an idle time of "
        f"{format_duration(limit * 1e9, 2)} or more are above {run.name} ({probability_text(p)})"
    )
    return [text]


# ------------------------------------------------------------
# `find_incident`: the short time into which most of a run's slow requests fall.


@record()
class IncidentRules:
    """When slow requests are one incident; chosen on the worlds of `tests.benchmarks.truth`."""

    # fewer slow requests fall close together by chance
    min_slow_requests: int = 20
    # of the slow requests: what is left explains no tail
    min_slow_share: float = 0.5
    # times as many slow requests as the load of that time accounts for: a rush hour has its share
    min_lift: float = 5.0
    # of the incident: slow requests farther from it than that do not belong to it
    max_gap_share: float = 0.25
    # of the incident: with a longer time without slow requests in it, it is two
    max_inner_gap: float = 0.5
    # of the mean gap between the other slow requests: the nearest of those do not, either
    max_other_gaps: float = 0.2
    # of a percentile: it is named with its value without the incident
    min_ratio: float = 1.1
    # named at most; the others are in the record
    named: tuple[float, ...] = (50.0, 99.0, 99.9)


INCIDENT = IncidentRules()


@record()
class Incident:
    """Most of the slow requests of a run, or the stall that carries its percentiles."""

    start: float  # seconds from the start of the run
    end: float
    slow: float  # requests in that time,
    total: float  # and in all; both 0 of a stall that holds much of the run
    above: str = "p99"  # what makes a request slow: a percentile, or a latency
    without: tuple[tuple[float, float, float], ...] = ()  # percentile, value, without it; ns

    @property
    def moved(self) -> tuple[tuple[float, float, float], ...]:
        """Of `without`, those named that are lower without the incident."""
        return tuple(
            (p, value, rest)
            for p, value, rest in self.without
            if p in INCIDENT.named and value >= INCIDENT.min_ratio * rest
        )

    @property
    def text(self) -> str:
        """The sentence on it.

        >>> moved = ((50.0, 5e6, 5e6), (99.0, 206e6, 12e6))
        >>> Incident(200, 206, 149, 200, without=moved).text
        '149 of the 200 slowest requests (above p99) fall into 6 s (200 s to 206 s); without that \
time p99 is 12 ms instead of 206 ms'
        >>> Incident(200, 206, 0, 0, without=moved).text
        'p99 206 ms (12 ms without the stall of 6 s, 200 s to 206 s)'
        """
        length = format_duration(1e9 * (self.end - self.start), 2)
        grain = (self.end - self.start) / 1000 or 1.0  # a first interval may begin 5 ms too early
        start, end = (
            format_moment(round(moment / grain) * grain + 0.0) for moment in (self.start, self.end)
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
        return f"{text}; without that time {rest}"


def find_incident(
    begin: Floats, end: Floats, weight: Floats, load: Floats, span: float
) -> Incident | None:
    """Find the shortest time that contains half of the slow requests, and what adjoins it.

    Slow requests, or the intervals that counted `weight` of them, `begin` and `end` in seconds from
    the start of the run; `begin` ascends. The `load` is when requests were sent, slow or not,
    ascending, or the borders of equally loaded times. None where slow requests are spread over the
    run.

    >>> slow = np.sort(np.append(np.linspace(200, 206, 149), np.linspace(0, 600, 51)))
    >>> find_incident(slow, slow, np.ones(200), np.linspace(0, 600, 20_000), 600.0).slow
    150.0
    """
    total = float(weight.sum())
    if total < INCIDENT.min_slow_requests or span <= 0:
        return None
    end = np.maximum.accumulate(end)
    seen = np.concatenate(([0.0], np.cumsum(weight)))
    last = np.searchsorted(seen, seen[:-1] + INCIDENT.min_slow_share * total) - 1
    fits = np.flatnonzero(last < begin.size)
    length = end[last[fits]] - begin[fits]
    first = int(fits[np.argmin(length)])
    final, core = int(last[first]), float(length.min())
    gaps = begin[1:] - end[:-1]
    far = np.flatnonzero(
        gaps
        > min(
            INCIDENT.max_gap_share * core,
            INCIDENT.max_other_gaps * span / max(total * (1 - INCIDENT.min_slow_share), 1.0),
        )
    )
    first = int(np.append(-1, far[far < first])[-1]) + 1
    final = int(np.append(far[far >= final], begin.size - 1)[0])
    start, stop = float(begin[first]), float(end[final])
    if float(gaps[first:final].max(initial=0.0)) > INCIDENT.max_inner_gap * (stop - start):
        return None
    slow = float(seen[final + 1] - seen[first])
    sent = np.searchsorted(load, stop, "right") - np.searchsorted(load, start, "left")
    if slow / total < INCIDENT.min_lift * sent / max(load.size, 1):
        return None
    return Incident(start, stop, slow, total)
