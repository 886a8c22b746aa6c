"""`diagnose`: detect coordinated omission and estimate the distribution without it.

From top to bottom: the operation, the verdict, what is known of the run, the tests T1 to T5, and
the corrected distribution.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit._records import record
from latencykit._text import format_items
from latencykit.analysis.correct import back_filled
from latencykit.analysis.diagnosis import Diagnosis, seconds_text, were
from latencykit.analysis.ledger import (
    LEDGER,
    TAIL,
    Evidence,
    Ledger,
    evidence,
    tail_odds,
)
from latencykit.analysis.retime import chains, retime
from latencykit.analysis.stalls import (
    LEVELS,
    Stalls,
    Trace,
    evenly_spread,
    first_pass_over,
    hulls,
    stalls_of,
    usual_rate,
)
from latencykit.analysis.timeouts import suspected_timeout
from latencykit.core.histogram import STANDARD_PERCENTILES
from latencykit.core.histogram_log import HistogramLog, in_succession, interval_series
from latencykit.core.quantiles import median, poisson_at_least, poisson_at_most, poisson_mean
from latencykit.core.run import require_data
from latencykit.core.samples import Samples
from latencykit.core.summary import Summary
from latencykit.errors import InvalidArgumentError
from latencykit.units import NANOSECONDS, format_count, parse_duration, percentile_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from latencykit._typing import Flags, Floats, Ints
    from latencykit.analysis.diagnosis import Method, Verdict
    from latencykit.analysis.stalls import Delayed
    from latencykit.core.blocks import TopFold
    from latencykit.core.histogram import Histogram
    from latencykit.core.histogram_log import IntervalSeries
    from latencykit.core.run import Run

    Data = Samples | HistogramLog | Histogram | Summary


# ------------------------------------------------------------
# The operation: observations, one ledger, one verdict. It never accuses an honest measurement.


@record()
class VerdictRules:
    """From findings to verdict; chosen on tools with failures, timeouts and corrections."""

    # of the requests that were due: more are invented (back-filled wrk, autocannon)
    max_due_ratio: float = 1.25
    # of the share that one stall can hit: more is invented, too
    max_stall_ratio: float = 2.5
    # of the requests that were due: the others have no latency
    min_due_ratio: float = 0.9
    # of what the longest stall delays: failures may be those requests (refused while frozen)
    min_failed_share: float = 0.2
    # of the requests: more that were dropped or timed out are a finding
    min_lost_share: float = 0.01
    # of as many requests under way at the end (a stall that outlasts the run)
    max_probability: float = 1e-3
    # of the median: a shorter longest request is not a stall (clean)
    min_stall_medians: float = 20.0
    # of the mean or a percentile: a smaller change is immaterial
    min_ratio: float = 1.1
    # of the mean of a loop at full speed, whose hiccups are many
    min_ratio_full_speed: float = 2.0
    # of the connections: a stall reaches at least those (one of two servers)
    min_reached_share: float = 0.4
    # percentile up to which a stall must leave no trace, for there to be none
    max_percentile: float = 99.9
    # of a timeout: requests that end within that time ended together (a stall)
    timeout_share: float = 0.01
    # that can show anything
    min_requests: int = 20
    # times the mean: the highest percentile of a summary that lacks it
    tail_means: float = 5.0


VERDICT = VerdictRules()


def diagnose(
    data: Samples | HistogramLog | Histogram | Summary,
    *,
    expected_interval: str | float | None = None,
    rate: float | None = None,
    connections: int | None = None,
    duration: str | float | None = None,
) -> Diagnosis:
    """Detect whether a measurement suffers from coordinated omission.

    Parameters
    ----------
    data : Samples, HistogramLog, Histogram or Summary
        The more detail, the more can be decided: samples show whether sends stopped, a log whether
        counts fall short, a histogram only whether as many requests were slow as a stall must hit.
    expected_interval : str or float, optional
        Time between two requests of one connection: ``"10ms"``, or nanoseconds.
    rate : float, optional
        Requests per second of all connections together.
    connections : int, optional
        How many connections sent requests; with `rate`, histograms and logs can be decided, too.
    duration : str or float, optional
        Length of the run: ``"20s"``, or seconds.

    Returns
    -------
    Diagnosis
        ``omits`` requires that nothing but a load generator that waited explains the run
        (`latencykit.analysis.ledger`), and that the mean or a supported percentile moves by more
        than a tenth because of it; ``clean`` a stall whose delayed requests are all recorded;
        ``no stall`` that nothing was slow enough to hide others; anything else is ``unknown``, with
        advice on what would decide it.

    Examples
    --------
    >>> from latencykit.simulate import Server, Stall, fixed, open_loop, paced_loop
    >>> server = Server("1ms", stalls=[Stall(7, 6)], ideal=True)
    >>> diagnose(paced_loop(server, rate=200, duration=20, connections=4)).verdict
    'omits'
    >>> diagnose(open_loop(server, fixed(rate=200, duration=20))).verdict
    'clean'
    """
    require_data(data, "diagnose")
    facts = facts_of(data, expected_interval, rate, connections, duration)
    stalls = Stalls.none()
    if facts.timed:
        stalls = stalls_of(facts.data, facts.first_pass, facts.trace)
    ledger = ledger_of(facts, stalls)
    if ledger.connections and not facts.connections:
        facts = replace(facts, estimated_connections=ledger.connections)
    suspected, at_full_speed = ledger.suspects, ledger.marked("full speed")
    method: Method | None = None
    if suspected and facts.corrected_by != "tool":
        method = correction_method(facts, scheduled=not at_full_speed)
    if facts.run.loop == "closed" and not facts.run.rate and not facts.given_rate:
        at_full_speed = True
    after = corrected_distribution(facts, method)
    material = suspected and is_material(facts, after, facts.longest, coarse=at_full_speed)
    verdict, findings = _judge(facts, ledger, material, stalls)
    if verdict in ("clean", "no stall") or after is None:
        after, method = None, None
    visible = shortest_visible_stall(facts.rate or 0.0, facts.connections or 1)
    gap = _longest_gap(facts)  # a stall within it delays nobody
    return Diagnosis(
        verdict=verdict,
        reason=_why_unknown(facts, ledger, findings, stalls),
        needed=_needed(facts, findings),
        findings=findings,
        ledger=ledger,
        expected_interval=facts.interval,
        raw=facts.data if isinstance(facts.data, Summary) else facts.histogram,
        corrected=after,
        method=method,
        rate=facts.rate,
        duration=facts.duration,
        longest=facts.longest,
        visible=visible + (gap if gap > visible else 0.0),
        due=(facts.given_rate or facts.run.rate or 0.0) * (facts.duration or 0.0),
        corrected_by=facts.corrected_by,
        over_time=facts.timed,
        detected_stalls=stalls,
        timed=facts.data if facts.timed else None,
    )


def ledger_of(facts: Facts, stalls: Stalls) -> Ledger:
    """Run the tests that the source allows, and list what else may explain the run."""
    trace = facts.trace
    sends: Evidence | None = None
    silence: Evidence | None = None
    full_speed: Evidence | None = None
    if trace is not None:
        full_speed = full_speed_test(trace)
        until = facts.given_duration or facts.run.duration
        if not facts.may_wait and not facts.given_duration:
            until = trace.span  # the tool's length may contain the wait for the last reply
        sends = send_gap_test(trace, stalls, until, full_speed=full_speed is not None)
    if trace is not None and sends is not None:
        silence = silence_test(trace)
        unknown = silence is None and trace.answers.size >= SILENCE.min_silences
        silence = cluster_test(facts) if facts.coarse or unknown else silence
    summary = isinstance(facts.data, Summary)
    values, rate = facts.count > 0 and not summary, facts.rate
    once = values and not facts.timed  # each value is known, but not when
    entries = (
        sends,
        silence,
        hole_test(facts, stalls) if facts.series is not None else None,
        min_slow_requests_test(facts) if values and rate else None,
        shape_test(facts) if once and not rate and facts.stall else None,
        cluster_test(facts) if once else None,
        due_test(facts) if values and trace is None else None,
        area_test(facts) if summary and rate and facts.extent_known else None,
        evidence("provenance", "the tool is known to wait for replies", PROVENANCE.odds)
        if facts.waits
        else None,
        full_speed,
        facts.hidden if not facts.timed else None,
        arithmetic_progression_test(facts.histogram, facts.interval) if values else None,
    )
    shown = tuple(item for item in entries if item is not None)
    rivals = ["recorded", "isolated", "paused", "ejected"]
    rivals += ["clock"] if facts.timed else []
    rivals += ["refused"] if any("failed" in item.marks for item in shown) else []
    return Ledger(shown, tuple(rivals))


@record()
class ProvenanceRules:
    """What it says that a tool is known to wait; chosen on closed loops without a freeze."""

    recorded: float = 1.0
    # sends stop for as long as a reply takes: in such a tool nothing else is needed
    paused: float = 2.0
    clock: float = 2.0

    @property
    def odds(self) -> dict[str, float]:
        """By rival."""
        paused = {"paused": self.paused, "ejected": self.paused}
        return {"recorded": self.recorded, "clock": self.clock} | paused


PROVENANCE = ProvenanceRules()


# ------------------------------------------------------------
# The verdict.

_SPOILED = {
    "over-corrected", "lost-to-timeouts", "dropped", "unfinished", "clipped", "fewer-than-due",
    "failed-in-stalls",
}  # fmt: skip


def _judge(
    facts: Facts, ledger: Ledger, material: bool, stalls: Stalls
) -> tuple[Verdict, tuple[str, ...]]:
    findings = _findings(facts, ledger, stalls)
    accused = ledger.accuses and facts.corrected_by not in ("us", "tool")
    if accused and not material:
        return "unknown", (*findings, "immaterial")
    if accused:
        # Requests that were due in the stalls may have been sent after all, late.
        trace, caught_up = facts.trace, ledger.marked("caught up")
        if trace is not None and facts.rate:
            caught_up = trace.due.size >= facts.rate * trace.span - 0.2 * ledger.missing
        return "omits", (*findings, *(("catch-up",) if caught_up else ()))
    if (_SPOILED | {"clock-step"}) & set(findings):
        return "unknown", findings
    if _nothing_to_omit(facts, ledger, stalls):
        return "no stall", (*findings, "nothing-to-omit")
    if facts.stall and not facts.waits and not ledger.suspects and ledger.honest:
        # A stall was seen and all that it must have delayed is there. A series over time says more
        # than the sum; of a tool that waits, omitted requests cannot be seen at all.
        over_time = any(item.honest for item in ledger.entries if item.test in OVER_TIME)
        bound = any(item.honest for item in ledger.entries if item.test == "lower bound")
        if (len(stalls) > 0 and over_time) if facts.timed else bound:
            return "clean", findings
    return "unknown", findings


OVER_TIME = ("sends in slow periods", "counts in stalls")


def _nothing_to_omit(facts: Facts, ledger: Ledger, stalls: Stalls) -> bool:
    """No stall as long as the run leaves room for would move the mean or a percentile."""
    if stalls.pause or not facts.extent_known or facts.count < VERDICT.min_requests:
        return False
    if facts.hidden is not None and "immaterial" in facts.hidden.marks:
        return True
    if facts.corrected_by == "schedule" and not facts.stall:  # nothing waits for replies
        return True
    if not facts.duration:
        return False
    longest, several, trace = facts.longest, 1.0, facts.trace
    if trace is not None and (ledger.marked("went on") or not trace.slow.any()):
        longest = min(longest, float(trace.silences.max(initial=0.0)))
        several = _beyond(trace.silences, longest)
    elif facts.series is not None and not len(stalls):
        unanswered = _unanswered(facts.series)
        longest = float(unanswered.max(initial=0.0))
        several = _beyond(unanswered, longest)
    if trace is not None and not trace.span > 0:
        return False
    if isinstance(facts.data, Summary):
        mean = facts.data.stats.get("mean", 0.0)
        values = {VERDICT.max_percentile: VERDICT.tail_means * mean}
        return bool(mean and not _moves(values, mean, longest, facts.duration))
    raw = facts.histogram
    if facts.connections:
        # A stall lasted no longer than the connections that it reached waited.
        waited = round(VERDICT.min_reached_share * facts.connections)
        slowest = 100 * (1 - max(waited - 1, 0) / max(facts.count, 1))
        least = float(raw.percentile(max(slowest, 0.0))) / 1e9
        longest = min(longest, least + CLUSTER.min_connections * (facts.interval or 0.0) / 1e9)
        usual = min(float(raw.percentile(50)) / 1e9, longest)
        several = raw.count_above((usual + longest) / 2 * 1e9) / facts.connections
    several = max(several, 1.0)
    values = _percentiles_up_to(raw, raw.sample_limit())
    return not _moves(values, raw.mean, longest, facts.duration / several)


def _percentiles_up_to(histogram: Histogram, limit: float) -> dict[float, float]:
    """Percentiles that a stall must leave as they are."""
    chosen = [p for p in STANDARD_PERCENTILES if p <= min(limit, VERDICT.max_percentile)]
    return dict(zip(chosen, np.asarray(histogram.percentile(chosen)).tolist(), strict=True))


def _beyond(values: Floats, longest: float) -> float:
    """How many lie nearer to the longest than to the median: as many stalls may there be."""
    usual = min(float(median(values)), longest) if values.size else 0.0
    return float((values > (usual + longest) / 2).sum())


def _moves(values: dict[float, float], mean: float, stall: float, duration: float) -> bool:
    """A stall (s) in as many seconds would move the mean or one of the percentiles (ns)."""
    if stall**2 / (2 * duration) * 1e9 > (VERDICT.min_ratio - 1) * mean:
        return True
    least = percentile_lower_bound(list(values), stall, duration) * 1e9
    return bool((least > VERDICT.min_ratio * np.array(list(values.values()))).any())


def _unanswered(series: IntervalSeries) -> Floats:
    """Seconds of intervals' longest requests, if others may not have been answered meanwhile."""
    worst = np.nan_to_num(series.max) * NANOSECONDS.get(series.unit, 1.0) / 1e9
    stop, rate = series.start + series.length, usual_rate(series)
    total = np.concatenate(([0], np.cumsum(series.count)))
    first = np.minimum(np.searchsorted(series.start, stop - worst), np.arange(worst.size))
    replies = total[:-1] - total[first]
    due = rate * (series.start - series.start[first])
    answered = (due >= BOUND.min_due_requests) & (replies >= SENDS.went_on_share * due)
    return np.asarray(worst[~answered])


def _findings(facts: Facts, ledger: Ledger, stalls: Stalls) -> tuple[str, ...]:
    """Properties of the run that a reader needs beside the verdict."""
    run, histogram = facts.run, None if isinstance(facts.data, Summary) else facts.histogram
    total = max(facts.count + run.failed + run.dropped, 1)
    unanswered = run.failed + run.timeouts
    # Some tools count requests that timed out among the latencies.
    lost = histogram is None or histogram.censored > 0
    lost = lost or facts.longest * 1e9 < (run.timeout or 0.0)
    offered = facts.given_rate or run.rate
    # Some tools count the wait for the last reply as part of the run.
    sending = (facts.duration or 0.0) - facts.longest
    applies = {
        "closed-loop": ledger.marked("full speed") or run.loop == "closed",
        "already-corrected": facts.corrected_by is not None,
        "over-corrected": facts.corrected_by in ("us", "tool") and _over_corrected(facts),
        "arithmetic-progression": any(
            item.test == "arithmetic progression" for item in ledger.entries
        ),
        "lost-to-timeouts": run.timeouts and lost,
        "dropped": run.dropped > VERDICT.min_lost_share * total,
        "unfinished": run.unfinished > max(VERDICT.min_lost_share * total, facts.connections or 1)
        or _stuck_at_end(facts),
        "clipped": histogram is not None
        and ((histogram.censored and not run.timeouts) or _timed_out(facts)),
        "fewer-than-due": offered
        and facts.extent_known
        and total + run.timeouts < VERDICT.min_due_ratio * offered * sending,
        "failed-in-stalls": ledger.marked("failed")
        or (
            not facts.timed
            and unanswered > VERDICT.min_failed_share * (facts.rate or math.inf) * facts.stall > 0
        ),
        "clock-step": any("clock" in note for note in stalls.notes),
    }
    return tuple(name for name, applied in applies.items() if applied)


def _timed_out(facts: Facts) -> bool:
    """Requests of a round time, the longest, were given up: a stall's would end at once."""
    piled = suspected_timeout(facts.histogram)
    if piled is None:
        return False
    least = piled[0] * (1 - VERDICT.timeout_share)
    if facts.trace is not None:
        ends = facts.trace.end[facts.trace.took * 1e9 >= least]
        return float(np.ptp(ends)) * 1e9 > VERDICT.timeout_share * piled[0]
    if facts.series is not None:
        factor = NANOSECONDS.get(facts.series.unit, 1.0)
        return int((np.nan_to_num(facts.series.max) * factor >= least).sum()) > 1
    return True


def _stuck_at_end(facts: Facts) -> bool:
    """More requests were under way at the end than usually are, by Little's law."""
    if isinstance(facts.data, Summary) or not facts.count or not facts.rate:
        return False
    usual = facts.rate * facts.histogram.mean / 1e9
    number = facts.run.unfinished
    return number > 1 and float(poisson_at_least(number, usual)) < VERDICT.max_probability


def _over_corrected(facts: Facts) -> bool:
    """More requests than were due, or more slow ones than one stall can hit."""
    if isinstance(facts.data, Summary) or not facts.duration or not facts.count:
        return False
    rate, histogram = facts.given_rate or facts.run.rate, facts.histogram
    if rate:
        return bool(facts.count > VERDICT.max_due_ratio * rate * facts.duration + 20)
    share = histogram.count_above(histogram.max / 2) / facts.count
    return bool(
        share > VERDICT.max_stall_ratio * (histogram.max / 2e9) / facts.duration and share > 0.1
    )


def _why_unknown(facts: Facts, ledger: Ledger, findings: Sequence[str], stalls: Stalls) -> str:
    """The first reason that applies: flaws of the numbers themselves, then of the evidence."""
    has, rate = set(findings).__contains__, facts.rate or 0.0
    reasons = (
        *((has(name), name) for name in (
            "over-corrected", "lost-to-timeouts", "dropped", "unfinished", "failed-in-stalls",
        )),
        (has("clipped") and _timed_out(facts), "timeout"),
        (has("immaterial") and has("closed-loop"), "immaterial at full speed"),
        (has("immaterial"), "immaterial"),
        (ledger.suspects and facts.corrected_by is not None, "corrected"),
        (ledger.suspects and bool(ledger.remaining), "rivals"),
        (ledger.suspects, "few"),
        (has("fewer-than-due"), "fewer-than-due"),
        (stalls.pause is not None, "pause"),
        (not facts.count and facts.run.failed > 0, "all failed"),
        (facts.extent_known and not facts.count, "empty"),
        (has("closed-loop") and facts.corrected_by is None, "closed-loop"),
        (not rate and facts.stall > 0 and not facts.timed and _apart(facts), "apart"),
        (not rate, "no rate"),
        (not facts.extent_known, "extent"),
        (rate > 0 and facts.longest < shortest_visible_stall(rate), "short"),
        (len(stalls) > 0, "stalls"),
        (facts.stall > 0, "slow"),
    )  # fmt: skip
    return next((name for applies, name in reasons if applies), "none")


def _apart(facts: Facts) -> bool:
    """The requests near the maximum do not belong to the tail of the others."""
    return not isinstance(facts.data, Summary) and top_of(facts.histogram).odds >= LEDGER.min_odds


def _needed(facts: Facts, findings: Sequence[str]) -> str:
    """What would decide an unknown verdict."""
    has, samples = set(findings).__contains__, isinstance(facts.data, Samples)
    untimed = not facts.timed and not (facts.given_rate and facts.given_connections)
    reasons = (
        (has("lost-to-timeouts"), "longer timeout"),
        (not facts.rate, "rate"),
        # wrk prints no uncorrected values
        (has("over-corrected"), "schedule" if facts.data.run.tool == "wrk" else "uncorrected"),
        (has("failed-in-stalls"), "failures"),
        (has("clipped"), "higher maximum"),
        (isinstance(facts.data, Summary), "requests"),
        (samples and facts.trace is not None, "intended"),
        (untimed and not facts.waits, "requests or rate"),
    )
    return next((name for applies, name in reasons if applies), "starts")


def _longest_gap(facts: Facts) -> float:
    """Longest time, in seconds, in which no request was sent."""
    if facts.trace is not None:
        return float(np.diff(facts.trace.due).max(initial=0.0))
    if facts.series is None:
        return 0.0
    used, start = facts.series.count > 0, facts.series.start
    begin, end = hulls(start[used], (start + facts.series.length)[used])
    return float((begin[1:] - end[:-1]).max(initial=0.0))


# ------------------------------------------------------------
# What is known of a run: its rate, length, connections and provenance, and where each of them comes
# from.

_CATCHES_UP = ("wrk2", "oha", "fortio", "ghz", "h2load")
"""Tools that later send what a stall kept them from sending: no request of the schedule is lost."""


@record()
class Facts:
    """A measurement and what is known of it; values in ns where they have a unit, times in s.

    `given_*` is what the caller states.
    """

    data: Any
    histogram: Any = None  # of all values; None for a summary
    trace: Trace | None = None  # sends and replies, for samples with start times
    first_pass: tuple[IntervalSeries, TopFold | None] | None = None  # over a log
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
    def series(self) -> IntervalSeries | None:
        """Each interval's numbers, for a log."""
        return None if self.first_pass is None else self.first_pass[0]

    @property
    def timed(self) -> bool:
        """There is a series over time."""
        return self.trace is not None or self.series is not None

    @cached_property
    def coarse(self) -> bool:
        """Starts are stamped too coarsely to show a stall: whole seconds, as `ab -g` has them."""
        trace = self.trace
        if trace is None or not trace.span > 0:
            return False
        return trace.step > SENDS.coarse_gaps * trace.span / trace.due.size

    @cached_property
    def connections(self) -> int | None:
        """As given, as the source says, from its column, or as a test estimated."""
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
        """The source states how many requests there were and how long the longest took."""
        data = self.data
        return not isinstance(data, Summary) or (data.count is not None and "max" in data.stats)

    @cached_property
    def observed_rate(self) -> float | None:
        """Requests per second outside the stalls where the source shows them, else overall."""
        if self.trace is not None:
            return self.trace.rate
        if self.series is not None:
            return usual_rate(self.series) or None
        return self.count / self.duration if self.duration and self.count else None

    @cached_property
    def rate(self) -> float | None:
        """Requests per second that were due, all connections together.

        A rate that the source only aimed at counts no more than what it reached outside stalls.
        """
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
        rate = self.rate
        if not self.given_rate and not self.timed and self.waits and self.duration:
            # A loop that waited, without a series over time: its rate outside the longest stall.
            lost = 0.0 if self.run.tool in _CATCHES_UP else min(self.longest, 0.9 * self.duration)
            pace = self.count / max(self.duration - lost, 1e-9)
            rate = min(pace, self.run.rate or pace) or rate
        return 1e9 * self.connections / rate

    @cached_property
    def longest(self) -> float:
        """Seconds of the longest request, timeouts included."""
        if isinstance(self.data, Summary):
            return float(self.data.stats.get("max", 0.0)) / 1e9
        histogram = self.histogram
        late = histogram.censored_at if histogram.censored else 0.0
        top = float(histogram.max) if histogram.count else 0.0
        return max(top, float(late) if np.isfinite(late) else 0.0) / 1e9

    @cached_property
    def stall(self) -> float:
        """`longest` where it is many times the usual, so that a stall must be behind it; else 0."""
        if isinstance(self.data, Summary):
            usual = self.data.stats.get("mean", 0.0)
        else:
            usual = float(self.histogram.percentile(50)) if self.count else 0.0
        return self.longest if self.longest * 1e9 >= VERDICT.min_stall_medians * usual else 0.0

    @cached_property
    def hidden(self) -> Evidence | None:
        """The most that slow requests can have hidden, where each of them is known."""
        return most_hidden(self)

    @property
    def corrected_by(self) -> str | None:
        """``us``, ``tool`` or ``schedule`` if omission is taken care of, else None."""
        run = self.run
        if run.corrected == "schedule" and isinstance(self.data, Samples):
            from_send = run.measure == "service" and self.data.intended is not None
            return None if from_send else "schedule"
        return run.corrected if run.corrected in ("us", "tool", "schedule") else None

    @property
    def waits(self) -> bool:
        """The tool is known to wait for replies before it sends, and to time from the send.

        That includes tools that drop what is due while all their users wait.
        """
        if self.corrected_by is not None:
            return False
        if self.run.dropped > 0.01 * max(self.count, 1):
            return True
        from_schedule = (
            isinstance(self.data, Samples)
            and self.run.measure == "response"
            and self.data.intended is not None
        )
        return self.run.loop in ("closed", "paced") and not from_schedule

    @property
    def may_wait(self) -> bool:
        """Unless the source is known to time from a schedule."""
        return self.corrected_by is None and self.run.loop != "open"


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
    for name, value in (("a rate", rate), ("a number of connections", connections)):
        if value is not None and not 0 < value < math.inf:
            raise InvalidArgumentError(f"{name} must be positive and finite, not {value!r}")
    length = None if duration is None else parse_duration(duration, "s") / 1e9
    data = data.to_unit("ns") if has_unit else data
    data = in_succession(data) if isinstance(data, HistogramLog) else data
    first_pass = first_pass_over(data) if isinstance(data, HistogramLog) else None
    histogram = None if isinstance(data, Summary) else data.histogram()
    trace = None
    if isinstance(data, Samples) and data.start is not None and len(data) > 1:
        trace = Trace.of(data)
    return Facts(data, histogram, trace, first_pass, rate, interval, connections, length)


# ------------------------------------------------------------
# T1: whether the load generator stopped sending while replies were late: the strongest evidence;
# it needs a trace.
#
# A gap in the sends within slow requests is what coordinated omission looks like; so may a deploy,
# the end of a burst, a quiet minute, a clock that was set forward, or a balancer that removes a
# frozen node. What distinguishes coordination is two observations. The gap itself: all connections
# are under way in it (never more), it is far longer than random gaps, and sends resume with the
# first replies. And the mark of a load generator: sends follow those replies one by one, faster
# than random arrivals would; or they dwindled as one connection after the other had to wait; or
# there are never more under way, though random arrivals would exceed that; or all other sends keep
# to a schedule, and a clock that was set forward would not have left the same.


@record()
class SendRules:
    """When a gap between sends is a loop that waited; chosen on deploys, lulls and clock steps."""

    # of a connection, from the last send on: shorter ones are usual (freezes of 3 to 6 intervals)
    min_intervals: float = 2.0
    # of the time outside slow requests: more may be under way than in the gap
    max_share_above_cap: float = 0.02
    # after a reply within which sends must resume
    resume_intervals: float = 2.0
    # of the usual sends: the tool did not wait
    went_on_share: float = 0.8
    # of the usual sends in a stall's second half: else it caught up (catch-up loops)
    second_half_share: float = 0.7
    # of a stall without any send, where sends went on
    max_gap_share: float = 0.25
    # of the usual sends: may be missing in stalls that are not large
    trifle_share: float = 0.05
    # sends that are due in a stall, to show that they went on
    min_due_requests: float = 20.0
    # of the Poisson variance: sends that vary less keep to a schedule
    schedule_variance: float = 0.25
    # at which random arrivals would have exceeded the number under way,
    min_crowded_sends: float = 15.0
    # and the part of them that closed loops may have
    max_crowded_share: float = 0.05
    # mean gaps between sends: starts are stamped too coarsely beyond (whole seconds)
    coarse_gaps: float = 5.0
    # for the time that shuffling takes
    max_examined_requests: int = 50_000
    # random ones
    orders: int = 4
    # of random sends that come as fast after replies
    max_probability: float = 1e-3
    # probability of a gap, from which on a shortfall is mentioned
    weak_probability: float = 0.05
    # against rivals, of a gap without a mark of a load generator
    max_unmarked_odds: float = 1.0


SENDS = SendRules()


def send_gap_test(
    trace: Trace, stalls: Stalls, until: float | None = None, *, full_speed: bool = False
) -> Evidence | None:
    """Test whether sends stopped with the replies; None without slow requests to judge by."""
    begin, end = trace.windows
    inner = end < trace.span  # what follows the last send cannot be judged from sends
    begin, end = begin[inner], end[inner]
    if not begin.size and not len(stalls):
        return None
    p, missing, under_way, went_on, sure = 1.0, 0.0, 0, False, False
    if begin.size:
        local = _local_rate(trace, begin, end)
        usual, sent = (end - begin) * local, np.maximum(trace.sends_within(begin, end) - 1, 0)
        longest = end - begin >= (end - begin).max() / 2
        went_on = bool(
            usual[longest].sum() >= SENDS.min_due_requests
            and all(
                sent[some].sum() >= SENDS.went_on_share * usual[some].sum()
                for some in (longest, slice(None))
            )
        )
        p, under_way, missing, sure = _worst_gap(trace, begin, end, local, full_speed=full_speed)
    odds = -math.log10(max(p, 1e-300)) if p < SENDS.weak_probability else 0.0
    odds = odds if sure else min(odds, SENDS.max_unmarked_odds)
    clock = odds
    whole = _whole_seconds(float(trace.took.max()), float(np.quantile(trace.took, 0.99)))
    if (
        odds
        and whole
        and not full_speed
        and _keeps_a_schedule(trace, begin, end, under_way / max(trace.rate, 1e-9))
    ):
        load = float(trace.took[~trace.slow].sum()) / max(
            trace.span - float(trace.took.max()), 1e-9
        )
        as_many = -math.log10(max(float(poisson_at_least(under_way, load)), 1e-9))
        clock = odds if as_many >= PINNED.min_unusual_odds else min(odds, as_many)
    honest = not odds and _sent_through(trace, stalls, until)
    found = _sends_found(trace, stalls, honest, under_way, p, sure)
    lost = (float(stalls.missing.sum()) or missing) if odds else 0.0
    rivals = ("recorded", "paused", "ejected", "clock", "refused")
    failed = trace.due[~trace.good]
    failures = np.searchsorted(failed, stalls.end) - np.searchsorted(failed, stalls.start)
    in_stalls = max(int(trace.sends_within(stalls.start, stalls.end).sum()), 1)
    many_failed = failures.sum() > (1 - SENDS.went_on_share) * in_stalls
    return evidence(
        "sends in slow periods", found,
        dict.fromkeys(rivals, odds) | {"clock": clock} if odds else {},
        missing=lost, honest=honest, connections=under_way,
        marks=["went on"] * went_on + ["failed"] * bool(many_failed),
    )  # fmt: skip


def _worst_gap(
    trace: Trace, begin: Floats, end: Floats, local: Floats, *, full_speed: bool
) -> tuple[float, int, float, bool]:
    """Examine the coordinated gaps, one per window at most.

    Returns their p-value, the requests under way in the largest, all that are missing, and whether
    any bears the mark of a load generator. What repeats adds up.
    """
    left, right = _longest_gaps(trace, begin, end)
    # Variance over mean of the sends outside the windows: 1 for Poisson arrivals, more for bursts.
    width = max(float((end - begin).max()), 10.0 / max(trace.rate, 1e-9))
    counts = _counts_outside(trace, begin, end, min(width, trace.span / 20))
    spread = 1.0
    if counts.size >= 3 and counts.mean():
        spread = float(max(1.0, counts.var(ddof=1) / counts.mean()))
    under_way = trace.under_way(left + (right - left) / 2)
    interval = under_way / np.maximum(np.maximum(local, trace.rate), 1e-9)
    long_enough = right - left >= SENDS.min_intervals * interval * (1 - 1e-9)
    largest, missing, most, marked = 0.0, 0.0, 0, False
    exponent, windows = 0.0, math.log(begin.size)
    capped: dict[int, bool] = {}
    scheduled: dict[int, bool] = {}
    for k in np.flatnonzero((under_way >= 1) & (local > 0) & long_enough).tolist():
        a, b, many, each = float(left[k]), float(right[k]), int(under_way[k]), float(interval[k])
        replies = _awaited(trace, a, b, many, each)
        if not replies.size:
            continue
        weight, speed = (b - a) * float(local[k]), max(float(local[k]), trace.rate)
        missing += weight
        sure = full_speed or _follow_replies(trace, replies, b, many, speed)
        soon = b - float(trace.end[replies].min()) <= max(each, 3 / trace.rate)
        sure = sure or (soon and _dwindles(trace, a, b, speed))
        if not sure:
            if many not in capped:
                capped[many] = _is_capped(trace, many)
                scheduled[many] = not capped[many] and _keeps_a_schedule(trace, begin, end, each)
            sure = capped[many] or (
                scheduled[many] and soon and not _like_a_clock_step(trace, replies, b)
            )
        if sure and not marked:
            exponent, largest = 0.0, 0.0
        if sure >= marked:
            exponent += max(weight / spread - windows, 0.0)
            if weight > largest:
                largest, most = weight, many
        marked = marked or sure
    return math.exp(-exponent), most, missing, marked


def _local_rate(trace: Trace, begin: Floats, end: Floats) -> Floats:
    """Sends per second beside each window: of both sides the smaller, for ramps and bursts."""
    reach = np.maximum(end - begin, 20.0 / max(trace.rate, 1e-9))
    left = np.maximum(np.concatenate(([0.0], end[:-1])), begin - reach)
    right = np.minimum(np.concatenate((begin[1:], [trace.span])), end + reach)
    sides = []
    for a, b in ((left, begin), (end, right)):
        length = b - a
        speed = trace.sends_within(a, b) / np.maximum(length, 1e-9)
        sides.append(np.where(length * trace.rate >= 5, speed, np.nan))
    both = np.nan_to_num(np.fmin(*sides), nan=trace.rate)
    return np.asarray(np.minimum(both, 2 * trace.rate))


def _longest_gaps(trace: Trace, begin: Floats, end: Floats) -> tuple[Floats, Floats]:
    """The longest time without a send in each window, up to the send that follows the window."""
    left, right = [], []
    for a, b in zip(begin.tolist(), end.tolist(), strict=True):
        first, last = np.searchsorted(trace.due, (a, b), "left").tolist()
        inside = trace.due[first : last + 1]
        gaps = np.diff(inside)
        k = int(np.argmax(gaps)) if gaps.size else 0
        left.append(float(inside[k]) if gaps.size else b)
        right.append(float(inside[k + 1]) if gaps.size else b)
    return np.array(left), np.array(right)


def _counts_outside(trace: Trace, begin: Floats, end: Floats, width: float) -> Ints:
    """Sends in time bins that touch neither a window nor the possible catching up after it."""
    edges = np.arange(0.0, trace.span, max(width, trace.span / 1e6))
    low, high = edges[:-1], edges[1:]
    left, right = hulls(begin, end + (end - begin))
    touched = np.searchsorted(left, high, "left") - np.searchsorted(right, low, "right") > 0
    outside: Ints = trace.sends_within(low, high)[~touched]
    return outside


def _awaited(trace: Trace, left: float, right: float, under_way: int, interval: float) -> Ints:
    """Requests whose replies a gap waited for, on all connections, until a send follows one."""
    if trace.share_above(under_way) > SENDS.max_share_above_cap:
        return np.zeros(0, np.int64)
    late = trace.ending_within(left + (right - left) / 2, right + interval)
    late = late[trace.due[late] <= left + interval]
    soon = (
        late.size
        and right - float(trace.end[late].min()) <= SENDS.resume_intervals * interval + trace.usual
    )
    return late if soon else late[:0]


def _follow_replies(trace: Trace, replies: Ints, right: float, under_way: int, rate: float) -> bool:
    """Sends follow the first replies faster than random arrivals at the usual rate would."""
    first = float(trace.end[replies].min())
    if right < first - trace.grain:
        return False
    at = np.searchsorted(trace.due, right, "left")
    number = 2 ** np.arange(int(np.log2(max(min(under_way, trace.due.size - int(at)), 1))) + 1)
    passed = np.maximum(trace.due[at + number - 1] - first, 0.0) + trace.grain
    return bool(poisson_at_least(number, rate * passed).min() * number.size < SENDS.max_probability)


def _dwindles(trace: Trace, left: float, right: float, rate: float) -> bool:
    """Sends thin out from the last reply before a gap: one connection after the other waits.

    That is how clients stop that think for a random time between a reply and the next send.
    """
    last_reply = int(np.searchsorted(trace.ends, left + (right - left) / 2)) - 1
    before = float(trace.ends[max(last_reply, 0)])
    if before >= left:
        return False
    middle, usual = (before + left) / 2, rate * (left - before)
    halves = trace.sends_within(np.array([before, middle]), np.array([middle, left]))
    few = poisson_at_most(int(halves.sum()), usual) < SENDS.max_probability
    few = few and poisson_at_most(int(halves[1]), usual / 2) < SENDS.max_probability
    return bool(few and halves[1] < halves[0] / 2)


def _keeps_a_schedule(trace: Trace, begin: Floats, end: Floats, interval: float) -> bool:
    """Nearly equal numbers of sends per interval: a load generator must have paced them."""
    several = max(1.0, np.ceil(10.0 / max(trace.rate * interval, 1e-9)))
    counts = _counts_outside(trace, begin, end, several * interval)
    counts = counts[counts > 0]
    if counts.size < 8:
        return False
    middle = float(np.median(counts))
    away = np.abs(counts - middle)
    deviation = max(1.4826 * float(np.median(away)), float(np.quantile(away, 0.8)) / 1.28)
    return deviation**2 <= max(SENDS.schedule_variance * middle, 1.0 if middle >= 8 else 0.0)


def _is_capped(trace: Trace, under_way: int) -> bool:
    """That many are hardly ever under way at a send, but would be with the latencies shuffled."""
    ordinary = np.flatnonzero(~trace.slow)[: SENDS.max_examined_requests]
    due, took = trace.due[ordinary], trace.took[ordinary]
    rng = np.random.default_rng(0)
    crowded = []
    for times in (took, *(rng.permutation(took) for _ in range(SENDS.orders))):
        replied = np.searchsorted(np.sort(due + times), due, "right")
        crowded.append(int((np.arange(due.size) - replied >= under_way).sum()))
    usual = float(np.mean(crowded[1:]))
    return usual >= SENDS.min_crowded_sends and crowded[0] <= SENDS.max_crowded_share * usual


def _like_a_clock_step(trace: Trace, replies: Ints, right: float) -> bool:
    """All replies are late by the same time, as if the clock had been set forward."""
    took, sent, ended = trace.took[replies], trace.due[replies], trace.end[replies]
    if replies.size > 1:
        return float(np.ptp(took)) < 0.5 * float(np.ptp(sent))
    if trace.idle.size < 20:
        return True
    low, high = np.quantile(trace.idle, (0.005, 0.995)).tolist()
    return bool(low - trace.grain <= right - float(ended[0]) <= high + trace.grain)


def _sent_through(trace: Trace, stalls: Stalls, until: float | None) -> bool:
    """Sends went on as usual to the very end of every large stall: all it delayed is there.

    Only the time without replies counts: what is sent in a burst afterwards was late.
    """
    if not len(stalls):
        return False
    large = stalls.duration >= stalls.duration.max() / 2
    if (
        stalls.missing[large].any()
        or stalls.missing.sum() > SENDS.trifle_share * trace.rate * stalls.duration.sum()
    ):
        return False
    begin, end = stalls.start[large], stalls.end[large]
    stop = np.minimum(end, trace.span if until is None else max(until, trace.span))
    reach = np.maximum(end - begin, SENDS.min_due_requests / max(trace.rate, 1e-9))
    before = trace.sends_within(np.maximum(begin - reach, 0.0), begin)
    before_rate = before / np.maximum(np.minimum(reach, begin), 1e-9)
    rate = np.maximum(trace.rate, np.where(begin >= reach / 2, before_rate, 0.0))
    due, middle = rate * (stop - begin), (begin + stop) / 2
    if (due < SENDS.min_due_requests).any():
        return False
    sent, later = trace.sends_within(begin, stop), trace.sends_within(middle, stop)
    if (sent < SENDS.went_on_share * due).any() or (
        later < SENDS.second_half_share * due / 2
    ).any():
        return False
    first = np.searchsorted(trace.due, begin, "left").tolist()
    last = np.searchsorted(trace.due, stop, "left").tolist()
    last_send = end if until is None else stop
    for a, b, i, j in zip(begin.tolist(), last_send.tolist(), first, last, strict=True):
        gaps = np.diff(np.concatenate(([a], trace.due[i:j], [b])))
        if float(gaps.max()) > SENDS.max_gap_share * (b - a):
            return False
    return True


def _sends_found(
    trace: Trace, stalls: Stalls, honest: bool, under_way: int, p: float, sure: bool
) -> str:
    """Sends in slow periods, against those that the surrounding rate implies."""
    paused = p < SENDS.weak_probability
    if not len(stalls):
        slow = f"no stall was seen, only requests slower than {seconds_text(trace.slow_from)}"
        return f"{slow}; sends paused ({_p_text(p)})" if paused else slow
    stop = np.minimum(stalls.end, trace.span)
    sent = int(trace.sends_within(stalls.start, stop).sum())
    due = round(trace.rate * float(np.maximum(stop - stalls.start, 0).sum()))
    counts = (
        f"during stalls ({seconds_text(float(stalls.duration.sum()))} in total) "
        f"{format_items(sent, 'request')} {were(sent)} sent; the surrounding rate implies "
        f"{format_count(due)}"
    )
    if honest:
        return f"{counts}: the load generator did not wait for replies"
    if not paused or not under_way:
        return counts
    who = "its only connection" if under_way == 1 else f"all {under_way} connections"
    if sure:
        return f"{counts}; {who} waited, and sends resumed with the replies ({_p_text(p)})"
    return (
        f"{counts}; {who} may have waited, or traffic paused for a reason of its own ({_p_text(p)})"
    )


def _p_text(p: float) -> str:
    return "p < 1e-12" if p < 1e-12 else f"p = {p:.2g}"


@record()
class SilenceRules:
    """When a silence is not that of slow requests; chosen on broad services without a freeze."""

    # between replies: fewer show no tail, as where a clock of seconds stamps many requests alike
    min_silences: float = TAIL.min_values / TAIL.max_share
    # that count as stalls where one or two connections wait: more are slow requests
    max_alone: int = 2
    # and where more wait, so that all of them would have to be slow at once
    max_several: int = 100
    # slow requests for each of those: more are the tail of a broad service (lognormal 1.5)
    max_slow: float = 6.0
    # of the longest to the next: beyond it not even a tail has it (Pareto 1.5: 3 of 1,000 runs)
    max_tail_ratio: float = 50.0
    # of the longest request: where one or two wait, more such requests than wait in all stalls are
    # a slow mode of the service (one in 1,000 × 200)
    mode_share: float = 1 / 3
    max_mode_odds: float = 1.0


SILENCE = SilenceRules()


def silence_test(trace: Trace) -> Evidence | None:
    """Test whether the longest times without a reply belong to the tail of all others."""
    silences = np.sort(trace.silences)[::-1]
    silences = silences[silences > 0]
    if silences.size < SILENCE.min_silences:
        return None
    under_way = int(trace.longest_silence_load)
    most = SILENCE.max_several if under_way > SILENCE.max_alone else SILENCE.max_alone
    ratios = silences[:-1] / silences[1:]
    candidates = (np.argsort(-ratios[:most])[:3] + 1).tolist()
    rest, ones = silences[::-1], np.ones(silences.size)
    odds, number = max(
        (tail_odds(float(silences[k - 1]), k, rest[:-k], ones[k:]), k) for k in candidates
    )
    alike = int((trace.took > SILENCE.mode_share * trace.took.max()).sum())
    tail = trace.slow.sum() > SILENCE.max_slow * number
    tail &= silences[0] < SILENCE.max_tail_ratio * silences[number]
    many = alike > under_way * number or tail
    if under_way <= SILENCE.max_alone and many:
        odds = min(odds, SILENCE.max_mode_odds)
    found = (
        f"nothing was answered for {seconds_text(float(silences[0]))} while "
        f"{format_items(under_way, 'request')} waited; the next longest such time, but "
        f"for {format_items(number, 'stall')}, was {seconds_text(float(silences[number]))}"
    )
    return evidence("silence", found, {"isolated": odds})


# ------------------------------------------------------------
# T2: the hole that a stall leaves in the counts of a log.
#
# A server that stops for d seconds answers nothing meanwhile. N connections that wait for it leave
# N requests of about that length and hardly any shorter ones, and the replies of λ·d − N requests
# are missing, or return in a burst without being slow. Clients that do not wait leave latencies
# spread evenly up to d. Traffic that pauses leaves a hole as well, but one that fits the requests
# under way only by chance.


@record()
class PinnedHoleRules:
    """When a hole is that of a loop that waited; chosen on deploys, lulls and clock steps."""

    # of the requests that waited for all of the stall: at most that many took a part of it,
    max_between_share: float = 0.5
    # beside that part of the requests due
    max_between_due: float = 0.05
    # of the requests due in the stall: more were delayed than connections can have been
    max_waiting_share: float = 0.25
    # of the replies due within the longest request's life: more and the server did not stop
    max_replies_share: float = 0.1
    # of each connection that waited: what it sent meanwhile (on a grid, paced, full speed),
    sent_requests: tuple[float, ...] = (0.5, 1.0, 1.5)
    # and how far that may be off: each by itself, and all of them alike
    slack_root: float = 0.25
    slack_share: float = 0.05
    # requests that waited to the end, each less likely by chance: odds, and all of them together
    tight_odds: float = 1.2
    max_tight_odds: float = 1.5
    # for each further hole that fits
    further_odds: float = 0.7
    # without any mark of a load generator (deploys of users who come at random)
    max_unmarked_odds: float = 1.0
    # requests under way by chance when a clock is set, or traffic pauses
    max_in_flight: int = 3
    # intervals within a hole: a clock that was set forward would have made one long one
    min_core: int = 2
    # of the Poisson variance: counts that vary less keep to a schedule
    schedule_variance: float = 0.25
    # of what chance explains: request-seconds that vary less are those of a constant number
    max_load_variation: float = 0.5
    # sums over that many intervals are compared, if there are enough of them
    load_widths: tuple[tuple[int, int], ...] = ((1, 6), (2, 12), (4, 12), (8, 12))
    # that slow requests elsewhere cost the only connection requests, too
    max_alone_odds: float = 1.5
    # of those missing: that many failures may be what is missing
    min_failed_share: float = 0.2
    # against rivals that a hole with such a mark cannot be
    sure_odds: float = 2.5
    # against a clock that is set while several wait, or by other than whole seconds
    rare_odds: float = 0.6
    uneven_odds: float = 0.8
    # the same, with one request under way: that it was hit is rare as well
    alone_step_odds: float = 1.2
    # against as many requests under way when a clock was set: less is as many as ever
    min_unusual_odds: float = 0.8
    # seconds: time daemons do not set a clock by less, they slew it
    min_clock_step: float = 0.4
    slewed_odds: float = 1.5
    # against a clock, of requests that differ by more than those under way at one moment do
    max_apart_odds: float = 1.5
    # of a latency: its bucket in a log is that wide
    bucket_share: float = 0.001
    # of a second, beyond whole ones: the usual latency of a request that a clock step hit
    max_usual_s: float = 0.5
    # of an interval: those of a log that was made of requests are no less alike
    grid_share: float = 1e-6
    # of the requests due: as many come back in a burst if the loop caught up
    min_burst_share: float = 0.5


PINNED = PinnedHoleRules()


@record()
class SpreadRules:
    """When all that a log's stalls delayed is there; chosen on one stall and catch-up loops."""

    # in a fifth of a stall, to show that all of it is there
    min_fifth_requests: float = 8.0
    # of what each part of a stall leaves
    min_part_share: float = 0.5
    # of what a stall leaves: all of it is there
    there_share: float = 0.8
    # of the requests: that many may be missing in shorter stalls
    trifle_share: float = 0.05


SPREAD = SpreadRules()


def hole_test(facts: Facts, stalls: Stalls) -> Evidence | None:
    """Test the counts around every stall; None without a stall, or with too little to go by."""
    counts = stalls.delayed
    if counts is None or not len(stalls) or not facts.observed_rate:
        return None
    slow = np.maximum(counts.above - counts.beside, 0.0)
    waiting = np.maximum(slow[LEVELS.index(0.8)], 1.0)
    between = np.maximum(slow[LEVELS.index(0.1)] - waiting, 0.0)
    fits = between <= PINNED.max_between_share * waiting + PINNED.max_between_due * counts.due
    fits &= waiting <= np.maximum(PINNED.max_waiting_share * counts.due, 1.0)
    silent = counts.core_replies <= PINNED.max_replies_share * counts.core_due
    fits &= silent
    # Each connection still sent one, and not those that were due while it waited.
    slack = PINNED.slack_root * np.sqrt(waiting) + PINNED.slack_share * waiting + 0.3
    noise = np.hypot(counts.noise, slack)
    waited = _waited_odds(counts, waiting, noise)
    returned = counts.dip >= np.maximum(PINNED.min_burst_share * counts.due, 3.0)
    burst = _coincidence(counts.due, counts.rest, np.hypot(counts.rest_noise, slack + waiting / 3))
    burst = np.where(returned, burst, -LEDGER.max_odds)
    odds = np.where(fits, np.maximum(waited, burst), -LEDGER.max_odds)
    worst = int(np.argmax(odds))
    caught_up = bool(burst[worst] > waited[worst])
    number, due = round(float(waiting[worst])), float(counts.due[worst])
    missing = max(float(due - waiting[worst]), 0.0) if fits[worst] else 0.0
    failures = facts.run.failed + facts.run.timeouts
    failed = failures > PINNED.min_failed_share * max(
        float(stalls.missing.sum()), missing, LEDGER.min_missing_requests
    )
    further = np.delete(odds, worst)
    further = further[further > PINNED.further_odds / 2]
    level = _hole_odds(facts, counts, worst, float(odds[worst]), further.size)
    honest = not level["paused"] > 0 and _all_recorded(stalls, counts)
    if not fits[worst] or odds[worst] <= 0:
        level, missing = {}, 0.0
    found = _hole_found(
        stalls, counts, honest, number if level else 0, caught_up, failures * failed
    )
    return evidence(
        "counts in stalls", found, level, missing=missing, honest=honest,
        connections=number if level else 0,
        marks=["failed"] * failed + ["caught up"] * (caught_up and bool(level)),
    )  # fmt: skip


def _hole_found(
    stalls: Stalls, counts: Delayed, honest: bool, waiting: int, caught_up: bool, failures: int
) -> str:
    """Counts of a log in stalls, against those that the usual rate implies."""
    missing = int(stalls.missing.sum())
    shortfall = (
        f"during stalls ({seconds_text(float(stalls.duration.sum()))} in total) the usual rate "
        f"implies {format_items(round(float(counts.due.sum())), 'request')}"
    )
    lost = f"{shortfall}; {format_count(missing)} {'is' if missing == 1 else 'are'} missing"
    if failures:
        return f"{lost}, and {format_count(failures)} failed at unknown times"
    if honest:
        return (
            f"{shortfall}, and latencies are spread evenly up to the longest: the load "
            "generator did not wait for replies"
        )
    if not waiting:
        return lost
    who = "one request was" if waiting == 1 else f"{waiting} requests were"
    whole = f"{who} delayed for the whole of the longest, and hardly any for a part of it"
    if caught_up:
        return f"{shortfall}; {whole}; the others came back in a burst, without a delay"
    return f"{lost}, and {whole}: a closed loop that waited leaves that"


def _waited_odds(counts: Delayed, waiting: Floats, noise: Floats) -> Floats:
    """Odds that what is missing is what those that waited did not send, whatever each had sent."""
    lost = counts.due * np.minimum(counts.waited, 1.0)
    each = [
        _coincidence(counts.due, counts.short - lost + sent * waiting, noise)
        for sent in PINNED.sent_requests
    ]
    mean: Floats = np.logaddexp.reduce(math.log(10) * np.array(each)) / math.log(10)
    return mean - math.log10(len(each))


def _coincidence(due: Floats, difference: Floats, deviation: Floats) -> Floats:
    """Odds of a difference that is due to chance, where else anything up to `due` is likely."""
    least = np.maximum(deviation, 1e-9)
    chance = np.log10(np.maximum(due, 1.0) / (math.sqrt(2 * math.pi) * least))
    return np.asarray(chance - (difference / least) ** 2 / 2 / math.log(10))


def _hole_odds(
    facts: Facts, counts: Delayed, worst: int, odds: float, further: int
) -> dict[str, float]:
    """Odds of the hole that fits best, against each rival."""
    number = round(max(float((counts.above - counts.beside)[LEVELS.index(0.8), worst]), 1.0))
    tight = min(PINNED.max_tight_odds, PINNED.tight_odds * (number - 1))
    paused = odds + tight + PINNED.further_odds * further
    steady = counts.steadiness <= PINNED.schedule_variance
    alone = 0.0
    if number == 1:
        tight = PINNED.tight_odds
        alone = float(np.clip(counts.alone, -LEDGER.max_odds, PINNED.max_alone_odds))
        paused += tight + alone
    marked = steady or alone >= LEDGER.mentioned_odds or facts.waits
    marked |= bool(facts.connections) and abs(number - (facts.connections or 0)) <= number / 10
    if not marked and paused > PINNED.max_unmarked_odds and not _constant_load(facts, counts.quiet):
        paused = min(paused, PINNED.max_unmarked_odds)
    due = float(counts.due[worst])
    clock = alone + _clock_odds(facts, counts, worst, number)
    if number == 1:
        clock += PINNED.further_odds * further
    elif further:
        clock = PINNED.sure_odds
    between = float((counts.above - counts.beside)[LEVELS.index(0.1), worst]) - number
    expected = max(0.5 * due - number, 0.0)
    unspread = -math.log10(max(poisson_at_most(max(round(between), 0), expected), 1e-300))
    top = top_of(facts.histogram)
    isolated = top.odds
    if number > 1:  # all of them wait, and nothing is answered
        silence = float(counts.core_due[worst]) / math.log(10)
        lacking = max(float(counts.short[worst]), float(counts.dip[worst]), 0.0)
        lacking /= float(counts.noise[worst])
        isolated += min(max(silence, lacking**2 / 2 / math.log(10)), LEDGER.max_odds)
    elif top.near + top.part > CLUSTER.max_alone:  # a mode of the service, not some stalls
        isolated = 0.0
    return {
        "recorded": unspread, "isolated": isolated, "paused": paused, "ejected": paused,
        "clock": clock,
    }  # fmt: skip


def _clock_odds(facts: Facts, counts: Delayed, worst: int, number: int) -> float:
    """Odds against a clock that was set forward while the requests of a hole were under way."""
    longest, several = facts.longest, int(counts.core[worst]) >= PINNED.min_core
    usually = _under_way_odds(facts, number)
    gap = (1 - float(counts.waited[worst])) * longest * number / max(number - 1, 1)
    odds = usually + _apart_odds(facts, number, gap)
    whole = _whole_seconds(longest, float(facts.histogram.percentile(99)) / 1e9)
    if not whole and number == 1:
        odds += PINNED.alone_step_odds
    elif several and not whole:
        odds += PINNED.uneven_odds
    elif number > 1:
        odds += PINNED.rare_odds
    many = number > PINNED.max_in_flight and (
        usually >= PINNED.min_unusual_odds or _constant_load(facts, counts.quiet, scheduled=True)
    )
    length = facts.series.length[:-1] if facts.series is not None else np.zeros(0)
    # All intervals are exactly as long as one another: no clock of a recorder ended them.
    on_a_grid = length.size and np.ptp(length) <= PINNED.grid_share * length.max()
    if many or (several and not on_a_grid):
        odds += PINNED.sure_odds
    elif longest < PINNED.min_clock_step:
        odds += PINNED.slewed_odds
    return odds


def _under_way_odds(facts: Facts, number: int) -> float:
    """Odds against that many requests under way when a clock was set: Poisson, by Little's law."""
    others = facts.histogram.mean / 1e9 * facts.count - number * facts.longest
    usual = max(others, 0.0) / max((facts.duration or 0.0) - facts.longest, 1e-9)
    return -math.log10(max(float(poisson_at_least(number, usual)), 1e-9))


def _apart_odds(facts: Facts, number: int, gap: float) -> float:
    """Odds against latencies that far from the longest, if a clock had been set.

    All that were under way would be longer by the same, and differ as requests usually do.
    """
    if number < 2:
        return 0.0
    gap -= PINNED.bucket_share * facts.longest
    counted, rest = facts.histogram.counted, 0.5 * facts.longest * 1e9
    load = counted.high * counted.counts * (counted.high < rest)
    tail = float(load[counted.high > gap * 1e9].sum() / max(load.sum(), 1e-9))
    return float(np.clip(-math.log10(max(number * tail, 1e-9)), 0.0, PINNED.max_apart_odds))


def _whole_seconds(longest: float, usual: float) -> bool:
    """A clock that is set by hand or by a time zone jumps by whole seconds."""
    return longest >= 1.0 and longest % 1.0 <= min(2 * usual, PINNED.max_usual_s)


def _constant_load(facts: Facts, quiet: Flags, *, scheduled: bool = False) -> bool:
    """A constant number of requests is under way in a log, by Little's law: a loop at full speed.

    The sum of latencies varies far less over quiet intervals than that of random arrivals, or of
    requests that are sent on a schedule.
    """
    series = interval_series(facts.data, (), moments=True)
    order = np.argsort(series.start, kind="stable")[quiet]
    count, mean, std = series.count[order], series.mean[order], series.std[order]
    used = count > 1
    length = series.length[order][used]
    load = (count * mean)[used]
    square = (count * (std**2 + (0.0 if scheduled else mean**2)))[used]
    for width, least in PINNED.load_widths:
        number = load.size // width
        if number < least:
            break
        sums, chance, lengths = (
            part[: number * width].reshape(number, width).sum(axis=1)
            for part in (load, square, length)
        )
        away = 1.4826 * float(median(np.abs(sums / lengths - median(sums / lengths))))
        if away <= PINNED.max_load_variation * float(median(chance**0.5 / lengths)):
            return True
    return False


def _all_recorded(stalls: Stalls, counts: Delayed) -> bool:
    """The longest stalls left latencies down from their length; short waits are omitted first."""
    due = counts.due
    longest = stalls.duration >= stalls.duration.max() * SPREAD.there_share
    missing = float(stalls.missing.sum())
    if stalls.missing[longest].any() or missing > SPREAD.trifle_share * float(due.sum()):
        return False
    even = evenly_spread(counts.above, counts.beside, due, SPREAD.min_fifth_requests)
    half = LEVELS.index(0.5)
    even &= counts.above[half] - counts.beside[half] >= SPREAD.there_share * due / 2
    tenth = np.diff(-counts.above[:2] + counts.beside[:2], axis=0)[0]
    even &= tenth >= SPREAD.min_part_share * due / 10
    return bool(even[longest].all())


# ------------------------------------------------------------
# T3: the slow requests that a stall of a whole server must leave behind.
#
# While a server is stopped for d seconds, requests that arrive at rate λ regardless of it find it
# so: λ·(d − x) of them take longer than x. Hence Q(q) ≥ d − (1 − q)·T over a run of T seconds. A
# lone slow request that delayed no other breaks the bound as well, so it accuses nobody. Nor does
# reaching the bound prove anything: many stalls that each omitted requests, or a service that is
# slow at times, reach it, too. One stall without waiting leaves latencies spread evenly from its
# length down; that shape is proof. N connections that wait leave about N requests near the maximum,
# hardly any in the middle, and all others in a tail that does not reach there.


@record()
class LowerBoundRules:
    """When slow requests are as many as one stall leaves; chosen on one stall."""

    # of what must be there: less is missing, not just late
    deficit_share: float = 0.5
    # of what must be there: it is all there
    there_share: float = 0.8
    # of what one stall leaves: more is not one stall
    max_stall_ratio: float = 1.25
    # of the stall: latencies between these are counted
    parts: tuple[float, ...] = (0.2, 0.4, 0.6, 0.8)
    # of what one stall leaves in each of these parts
    min_part_share: float = 0.6
    # there: fewer may be chance
    min_part_requests: float = 25.0
    # of buckets: a list of percentiles, not a histogram
    max_edges: int = 40
    # that must exceed half of the stall for the test to be decisive
    min_due_requests: float = 20.0
    # probability of as few slow requests, from which on a shorter stall would have shown
    max_probability: float = 1e-3
    # of the requests due in a run of known rate, that one may lack and be complete (two phases)
    min_due_share: float = 0.98


BOUND = LowerBoundRules()


def percentile_lower_bound(percentile: ArrayLike, stall: float, duration: float) -> Floats:
    """Return the least that a percentile can be if a whole server stopped and no client waited."""
    q = np.asarray(percentile, np.float64) / 100.0
    return np.asarray(np.maximum(stall - (1.0 - q) * duration, 0.0))


def above_half(histogram: Histogram) -> tuple[int, int, float]:
    """Return how many values surely, and at most, exceed half of the largest, and the largest."""
    top = histogram.max if histogram.count else 0.0
    if histogram.censored and np.isfinite(histogram.censored_at):
        top = max(top, histogram.censored_at)
    low, high = histogram.buckets.low(histogram.index), histogram.buckets.high(histogram.index)
    surely = int(histogram.counts[low > top / 2].sum()) if histogram.count else 0
    at_most = int(histogram.counts[high > top / 2].sum()) if histogram.count else 0
    late = histogram.censored if histogram.censored_at > top / 2 else 0
    return max(surely, 1) + late if at_most else late, at_most + late, top


def min_slow_requests_test(facts: Facts) -> Evidence:
    """Test whether as many requests exceed half of the longest as its stall must have hit."""
    histogram, rate, duration = facts.histogram, facts.rate or 0.0, facts.duration or math.inf
    surely, at_most, top = above_half(histogram)
    stall = min(top / 1e9, duration)
    expected = rate * stall / 2
    p, level, missing, honest = poisson_at_most(at_most, expected), 0.0, 0.0, False
    if at_most < BOUND.deficit_share * expected:
        level, missing = -math.log10(max(p, 1e-300)), expected - at_most
    elif expected >= BOUND.min_due_requests:
        due = facts.given_rate or facts.run.rate
        # A tool that keeps to a schedule may count the wait for the last reply as part of the run.
        sending = duration if facts.may_wait or facts.given_duration else duration - stall
        complete = not due or facts.timed or facts.count >= BOUND.min_due_share * due * sending
        enough = not facts.may_wait and surely >= BOUND.there_share * expected
        honest = complete and (enough or _like_one_stall(histogram, rate, stall, duration))
    recorded = format_count(at_most)
    if surely != at_most:
        recorded = f"{format_count(surely)} to {recorded}"
    speed = f"{rate:,.0f}" if rate >= 1000 else f"{rate:.4g}"
    chance = f" ({_p_text(p)})" if level >= LEDGER.min_odds else ""
    found = (
        f"a stall of {seconds_text(top / 1e9)} at {speed} requests per second implies "
        f"{format_items(round(expected), 'request')} slower than half of it; {recorded} "
        f"{'was' if recorded == '1' else 'were'} recorded{chance}"
    )
    # A series over time shows the same, and more.
    seen = facts.timed and not facts.coarse
    odds = {} if seen or not level else {"recorded": level}
    return evidence("lower bound", found, odds, missing=missing, honest=honest)


def shape_test(facts: Facts) -> Evidence:
    """Test, where no rate is known, whether latencies are spread evenly up to the longest."""
    _, at_most, top = above_half(facts.histogram)
    stall = top / 1e9
    rate = 2 * at_most / stall
    honest = 0 < rate < math.inf and _like_one_stall(
        facts.histogram, rate, stall, facts.count / rate
    )
    found = (
        f"{format_items(at_most, 'request')} took longer than half of the longest "
        f"({seconds_text(stall)}), {'' if honest else 'not '}spread evenly from there down, "
        "as those are that one stall delays"
    )
    return evidence("lower bound", found, {}, honest=honest)


def _like_one_stall(histogram: Histogram, rate: float, stall: float, duration: float) -> bool:
    """Latencies have the shape that one stall leaves: evenly spread below its length."""
    if not histogram.count or histogram.censored:
        return False
    low, high = histogram.buckets.low(histogram.index), histogram.buckets.high(histogram.index)
    edges = np.array(BOUND.parts) * stall * 1e9
    if not (high[high > edges[0]] > BOUND.max_stall_ratio * low[high > edges[0]]).any():
        above = np.array([int(histogram.counts[high > edge].sum()) for edge in edges])
        fill, each = -np.diff(above, append=0), rate * stall * (1 - BOUND.parts[-1])
        total = each * len(BOUND.parts)
        near = ((fill >= BOUND.min_part_share * each) & (fill <= each / BOUND.min_part_share)).all()
        whole = BOUND.there_share * total <= above[0] <= BOUND.max_stall_ratio * total
        if near and whole and each >= BOUND.min_part_requests:
            return True
    # Wide buckets do not show where in them requests lie; their upper edges are percentiles, and
    # must be close to the lower bound. With many buckets the counts above say more.
    if not np.isfinite(duration):
        return False
    share = histogram.cumulative[:-1] / histogram.count
    least = percentile_lower_bound(100.0 * share, stall, duration)
    shown = least >= (1 - BOUND.there_share) * stall
    values, least = (high[:-1] / 1e9)[shown], least[shown]
    near = ((values >= BOUND.there_share * least) & (values <= BOUND.max_stall_ratio * least)).all()
    return bool(near and 2 <= shown.sum() <= BOUND.max_edges)


@record()
class HidingRules:
    """What slow requests can have hidden at most; chosen on broad services and freezes."""

    # of a bucket's edges: a wider one holds an exponential tail, in that many steps
    max_edge_ratio: float = 1.1
    steps: int = 48
    # of nanoseconds that percentiles may be rounded to
    max_digits: int = 10
    # of bisections, to the value of a percentile
    rounds: int = 40
    # requests above a percentile: with fewer it is that of one or two
    min_above: int = 3


HIDING = HidingRules()


def most_hidden(facts: Facts) -> Evidence | None:
    """Bound what was omitted: a connection sends no faster than it gets replies.

    A request of length v kept its connection from sending at most v / m − 1 others, where m is the
    usual latency, and those would have waited v − m, v − 2 m … Exponential service times remain as
    they are.
    """
    if isinstance(facts.data, Summary) or not facts.count or facts.histogram.censored:
        return None
    value, weight = _smoothed(facts.histogram)
    total = float(weight.sum())
    most = VERDICT.min_stall_medians * float(facts.histogram.percentile(50))
    pace = float(np.minimum(value, most) @ weight) / total
    if facts.given_interval or (facts.given_rate and facts.connections):
        pace = max(pace, facts.interval or 0.0)
    if not pace > 0:
        return None

    def above(level: Floats) -> Floats:
        return np.asarray(np.ceil(np.maximum(value - level[:, None], 0.0) / pace) @ weight)

    limit = min(VERDICT.max_percentile, facts.histogram.sample_limit())
    at = np.array([p for p in STANDARD_PERCENTILES if p <= limit])
    before = np.asarray(facts.histogram.percentile(at), np.float64).reshape(at.shape)
    sent = float(above(np.zeros(1))[0])
    low, high = before.copy(), np.full(at.size, float(value.max()))
    for _ in range(HIDING.rounds):
        middle = (low + high) / 2
        more = above(middle) > (1 - at / 100) * sent
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    number = np.ceil(value / pace)
    mean = float((number * value - pace * number * (number - 1) / 2) @ weight) / sent
    moved = high / np.maximum(before, 1e-300)
    worst = int(moved.argmax()) if at.size else 0
    matters = mean > VERDICT.min_ratio * float(value @ weight) / total
    matters |= bool((moved > VERDICT.min_ratio).any())
    # All near the longest as one stall: there was no more time between them than that.
    top = float(value.max())
    seconds = total * pace / float(weight[value > CLUSTER.near_share * top].sum()) / 1e9
    known = 100 * (1 - HIDING.min_above / facts.count)
    values = _percentiles_up_to(facts.histogram, known)
    matters |= _moves(values, facts.histogram.mean, top / 1e9, seconds)
    others = round(sent - total)
    found = (
        f"slow requests kept at most {format_items(others, 'other request')} from being sent, "
        "at full speed"
    )
    if not others:
        found = "no request was slow enough to keep another from being sent"
    elif not matters:
        found += ": too few to move the mean or a percentile by a tenth"
    elif at.size:
        name = percentile_name(float(at[worst]))
        was, now = (seconds_text(float(end[worst]) / 1e9) for end in (before, high))
        found += f": {name} was {was}, and up to {now} with them"
    return evidence("most that waiting can hide", found, {}, marks=["immaterial"] * (not matters))


def _smoothed(histogram: Histogram) -> tuple[Floats, Floats]:
    """Values and their numbers; those of a wide bucket fall off evenly in logarithm to its top."""
    counted = histogram.counted
    low, high, counts = counted.low, counted.high, counted.counts.astype(np.float64)
    wide = high > HIDING.max_edge_ratio * low
    if not wide.any():
        return high, counts
    beyond = np.concatenate((np.cumsum(counts[::-1])[::-1][1:], [0.0]))[wide]
    first, last = beyond + counts[wide], np.maximum(beyond, 0.5)
    part = np.arange(HIDING.steps + 1) / HIDING.steps
    left = first[:, None] * (last / first)[:, None] ** part  # lie above each step
    left[:, -1] = beyond
    middle = low[wide, None] + (high - low)[wide, None] * (part[:-1] + part[1:]) / 2
    value, weight = np.concatenate((high[~wide], middle.ravel())), -np.diff(left, axis=1).ravel()
    weight = np.concatenate((counts[~wide], weight))
    # A mean that is higher than all this explains has more requests near the maximum.
    mean, top = histogram.reported_stats.get("mean", math.nan), float(high.max())
    body = ~wide | (high < top)
    spread = float(high[body] @ counts[body] + middle[high[wide] == top].ravel()
                   @ -np.diff(left[high[wide] == top], axis=1).ravel())  # fmt: skip
    # Percentiles may have been rounded down: ab's are whole milliseconds.
    exponents = 10.0 ** np.arange(HIDING.max_digits)
    step = float(exponents[(high % exponents[:, None] == 0).all(axis=1)].max(initial=0.0))
    spread += step * float(counts[body].sum())
    more = (mean * counts.sum() - spread) / top if top > 0 else math.nan
    if more > 0:
        more = min(more, float(counts[high == top].sum()))
        value, weight = np.append(value, top), np.append(weight, more)
    return value, weight


def shortest_visible_stall(rate: float, connections: int = 1) -> float:
    """Return the shortest stall, in seconds, that the lower bound shows beyond chance."""
    if not rate > 0:
        return math.inf
    least = (
        poisson_mean(connections, BOUND.max_probability),
        connections + LEDGER.min_missing_requests,
        connections / BOUND.deficit_share,
    )
    return 2.0 * max(least) / rate


@record()
class ClusterRules:
    """When requests near the maximum are the connections of a loop that waited.

    Chosen on closed loops of broad service without a freeze: none of them is accused.
    """

    # of the maximum: slower requests waited for all of the stall,
    near_share: float = 0.75
    # slower ones for a part of it
    part_share: float = 0.25
    # of the connections: at least that many wait,
    min_connections: float = 0.6
    # and at most that many: some stalls are about as long
    max_connections: float = 2.0
    extra_connections: float = 3.0
    # and of a single connection, those that took a part of it included (one in 1,000 × 200)
    max_alone: int = 2
    # of those that waited: more that took a part of the stall are those of a broad service
    max_part_share: float = 0.6
    # of each connection: with fewer, a slow mode of 2 % is about as many requests (2 % × 50)
    min_requests: float = 100.0
    # without known connections: requests at the maximum, and intervals of theirs that it took
    min_unknown: int = 3
    min_unknown_intervals: float = 50.0
    # that as many requests as connections lie there, where none stopped: fewer than 1 of 360 runs
    match_odds: float = 1.5
    # of so few connections a rare slow mode is as many requests (one in 1,000 × 200): what they
    # are worth by number, and by how much closer they are than this part of the maximum
    max_few: int = 5
    # where a bucket hides how close they are (fortio's, of a real freeze of four), wider than
    max_few_hidden: int = 3
    max_hidden: float = 0.1
    few_odds: float = 0.8
    few_spread: float = 0.25
    # values that count as independent for that, and the closest that buckets show
    few_values: int = 3
    min_spread: float = 0.002
    # upper edge over lower: a wider bucket is one between two percentiles
    max_edge_ratio: float = 1.5


CLUSTER = ClusterRules()


@record()
class Top:
    """The requests near the maximum of a histogram, and those that took a good part of it."""

    near: float
    part: float
    odds: float  # against a common tail with all others
    # how far those near the maximum are apart, as a part of it; nan where a bucket hides it
    spread: float = 0.0


def top_of(histogram: Histogram) -> Top:
    """Count the requests near the maximum; in wide buckets, as the mean allows."""
    low, high = histogram.buckets.low(histogram.index), histogram.buckets.high(histogram.index)
    counts, top, late = histogram.counts.astype(np.float64), float(histogram.max), 0.0
    if histogram.censored and np.isfinite(histogram.censored_at):
        late, top = float(histogram.censored), max(top, float(histogram.censored_at))
    high = np.minimum(high, top)
    near, part = low > CLUSTER.near_share * top, high > CLUSTER.part_share * top
    # Between two percentiles, or in the bucket of the maximum, requests may be anywhere.
    wide = part & ~near & (high > CLUSTER.max_edge_ratio * low)
    number, at_most = float(counts[near].sum()) + late, float(counts[wide].sum())
    part &= ~near & ~wide
    if at_most:
        mean = histogram.reported_stats.get("mean", math.nan)
        rest = mean * counts.sum() - float(((low + high) / 2 * counts)[~wide].sum())
        rest -= float((low * counts)[wide].sum())
        more = rest / top if rest == rest else 0.0
        number += float(np.clip(round(more), 0.0 if number else 1.0, at_most))
    body = ~near & ~wide & ~part
    if not body.any() or not number:
        return Top(number, float(counts[part].sum()), 0.0)
    # The least that they can be, if it is not known where in a bucket they are.
    least = max(float(low[near][0]) if near.any() else 0.0, CLUSTER.near_share * top)
    between = max(float(counts.sum()) + late - float(counts[body].sum()) - round(number), 0.0)
    values, points = np.append(high[body], least), np.append(counts[body], between)
    odds = tail_odds(least, max(round(number), 1), values, points)
    spread = 1 - least / top if near.any() else 0.0
    hidden = near.any() and high[near][0] - low[near][0] > CLUSTER.max_hidden * top
    return Top(number, float(counts[part].sum()), odds, math.nan if hidden else spread)


def cluster_test(facts: Facts) -> Evidence:
    """Test whether as many requests are near the maximum as connections can have waited."""
    top, number, rate = top_of(facts.histogram), facts.connections, facts.rate or 0.0
    near, stall = top.near, facts.longest
    alone = top.part <= CLUSTER.max_part_share * near
    if number:
        most = CLUSTER.max_connections * number + CLUSTER.extra_connections
        most = most if number > 1 else CLUSTER.max_alone - top.part
        match = alone and CLUSTER.min_connections * number <= near <= most
        match = match and facts.count >= CLUSTER.min_requests * number
        isolated = CLUSTER.match_odds * (number > 1) + top.odds if match else -LEDGER.max_odds
        hidden = math.isnan(top.spread)
        if 1 < number <= (CLUSTER.max_few_hidden if hidden else CLUSTER.max_few):
            spread = CLUSTER.few_spread if hidden else max(top.spread, CLUSTER.min_spread)
            closer = math.log10(CLUSTER.few_spread / spread)
            values = min(round(near), CLUSTER.few_values) - 1
            isolated = min(isolated, CLUSTER.few_odds + values * closer)
    else:
        intervals = rate * stall / max(near, 1.0)
        known_interval = facts.given_rate and near < CLUSTER.min_unknown  # one connection
        match = bool(near >= CLUSTER.min_unknown or known_interval) and top.part < near / 2
        match = match and intervals >= CLUSTER.min_unknown_intervals
        isolated = top.odds if match else 0.0
    found = (
        f"{format_items(round(near), 'request')} took about as long as the longest "
        f"({seconds_text(stall)}), {format_count(round(top.part))} a quarter of it or more"
    )
    found += f", of {format_items(number, 'connection')}" if number else ""
    return evidence("requests near the maximum", found, {"isolated": isolated})


@record()
class DueRules:
    """When the requests that are missing are those that waiting costs; chosen on honest worlds."""

    # of the requests missing: that many may be lost or gained at the ends of the run
    slack_share: float = 0.02
    # each connection that waited, beyond the first: odds, and all of them together
    tight_odds: float = 1.0
    max_tight_odds: float = 1.5
    # of requests near the maximum over connections, to be the same
    max_ratio: float = 1.5


DUE = DueRules()


def due_test(facts: Facts) -> Evidence | None:
    """Test whether n requests and those that slow ones kept from being sent make up rate × T.

    A connection that waits v for a reply does not send v / I − 1 requests of its schedule (I is the
    time between two of them). None without a rate, connections and length that are known.
    """
    rate, number = facts.given_rate or facts.run.rate, facts.connections
    if not rate or not number or not facts.duration or not facts.count or facts.corrected_by:
        return None
    histogram, interval = facts.histogram, 1e9 * number / rate
    due = rate * facts.duration
    lacking = due - facts.count - facts.run.failed
    if lacking < LEDGER.min_missing_requests:
        return None
    low, high = histogram.buckets.low(histogram.index), histogram.buckets.high(histogram.index)
    middle = np.minimum((low + high) / 2, histogram.max)
    cost = float(np.maximum(middle / interval - 1, 0.0) @ histogram.counts)
    cost += histogram.censored * max(facts.longest * 1e9 / interval - 1, 0.0)
    slack = (math.sqrt(number) + 1) / 2 + DUE.slack_share * lacking
    # Random arrivals lack some by chance; lost for another reason, any number may be.
    fits = -math.log10(slack) - ((cost - lacking) / slack) ** 2 / 2 / math.log(10)
    chance = -math.log10(math.sqrt(due)) - lacking**2 / due / 2 / math.log(10)
    odds = fits - max(chance, math.log10(math.sqrt(2 * math.pi) / lacking))
    near = top_of(histogram).near
    if odds > 0 and 1 / DUE.max_ratio <= near / number <= DUE.max_ratio:
        odds += min(DUE.max_tight_odds, DUE.tight_odds * (number - 1))
    found = (
        f"{format_count(lacking)} of {format_count(due)} requests that were due are "
        f"missing; {format_items(number, 'connection')} that waited for the slow "
        f"ones would have kept {format_count(cost)} from being sent"
    )
    if odds <= 0:
        return evidence("requests due", found, {})
    sure = {"recorded": odds, "paused": odds, "ejected": odds}
    return evidence("requests due", found, sure, missing=lacking)


@record()
class AreaRules:
    """What mean and maximum say of a stall; chosen on summaries of broad services."""

    # of what the stall adds if nobody waits: less was recorded
    max_share: float = 0.25
    min_missing_requests: float = 20.0
    # exponent of the tail that a service may have (Pareto)
    exponent: float = 1.5
    # of the mean: the median is at least that, where it is not known
    min_usual_share: float = 0.05


AREA = AreaRules()


def area_test(facts: Facts) -> Evidence | None:
    """Test whether the mean, if stated, allows for the stall of the maximum: n · mean ≥ λ d² / 2.

    If it does, nothing follows where the load generator may have waited: N connections at full
    speed always take n · mean = N · T together, whatever they omitted.
    """
    stats, count, number = facts.data.stats, facts.count, facts.connections
    rate, duration = facts.rate or 0.0, facts.duration or math.inf
    if "mean" not in stats or not count:
        return None
    mean, top, odds, missing = stats["mean"], stats["max"], {}, 0.0
    stall = min(top / 1e9, duration)
    needed, taken = rate * stall**2 / 2, count * mean / 1e9
    ratio = taken / needed if needed > 0 else 1.0
    if ratio < AREA.max_share and rate * stall / 2 >= AREA.min_missing_requests:
        missing = rate * stall / 2
        others = mean - (number or 1) * top / count  # of all but those that waited
        usual = stats.get("p50", max(others, AREA.min_usual_share * mean))
        near = max(count * (mean - usual) / max(top - usual, 1.0), 1.0)
        tail = AREA.exponent * math.log10(max(top / max(usual, 1.0), 1.0)) - math.log10(count / 2)
        most = CLUSTER.max_connections * (number or 0) + CLUSTER.extra_connections
        match = bool(number) and CLUSTER.min_connections * (number or 0) <= near <= most
        odds = {"recorded": -math.log10(max(ratio, 1e-6)) + 1.0, "isolated": tail if match else 0.0}
    honest = ratio >= 1 and rate * stall / 2 >= BOUND.min_due_requests and not facts.may_wait
    found = (
        f"all requests together took {seconds_text(taken)}; a stall of "
        f"{seconds_text(top / 1e9)} alone would add {seconds_text(needed)}"
    )
    return evidence("area", found, odds, missing=missing, honest=honest)


# ------------------------------------------------------------
# T4 and T5: marks of a closed loop at full speed, and of synthetic values, in the numbers alone.


@record()
class ShapeRules:
    """Marks of a loop at full speed, and of synthetic values; chosen on full-speed loops."""

    # of the run, in which the number under way is averaged
    windows: int = 50
    # of the number under way that still counts as constant
    max_variation: float = 0.02
    # values that a progression has at least
    min_steps: int = 8
    # of buckets: a smaller step cannot be distinguished from them
    min_widths: float = 20.0


SHAPE = ShapeRules()


def full_speed_test(trace: Trace) -> Evidence | None:
    """Test whether a constant number of requests is under way (Little's law): full speed."""
    if trace.due.size < 4 * SHAPE.windows or not trace.span > 0:
        return None
    edges = np.linspace(0.0, trace.span, SHAPE.windows + 1)
    work = np.zeros(edges.size)  # request-seconds under way up to each edge
    for times, sign in ((trace.due, 1.0), (trace.ends, -1.0)):
        passed = np.searchsorted(times, edges, "right")
        total = np.concatenate(([0.0], np.cumsum(times)))
        work += sign * (passed * edges - total[passed])
    level = np.diff(work) / np.diff(edges)
    mean, near = float(level.mean()), round(float(np.median(level)))
    off = max(abs(np.median(level) - near), level[1:-1].std())
    if near < 1 or off > SHAPE.max_variation * near:
        return None
    found = (
        f"always {near} under way: a closed loop at full speed with N = {near}, "
        "so these are service times"
    )
    return Evidence("requests under way", mean, float(near), found, marks=("full speed",))


def arithmetic_progression_test(
    histogram: Histogram, interval: float | None = None
) -> Evidence | None:
    """Find equal steps between the longest values: back-filled, or measured from a schedule."""
    if not histogram.index.size:
        return None
    high, low = histogram.buckets.high(histogram.index), histogram.buckets.low(histogram.index)
    upper = high > high[-1] / 2
    values, counts = high[upper], histogram.counts[upper]
    if values.size < SHAPE.min_steps:
        return None
    width = float((high - low)[upper].max())
    step = float(median(np.diff(values)))
    if interval and abs(step - interval) < 0.1 * interval:
        step = interval
    if step < SHAPE.min_widths * max(width, 1.0) or not np.all(counts <= 8):
        return None
    below = (values[-1] - values) / step
    share = float((np.abs(below - np.rint(below)) * step <= 2 * width + 0.02 * step).mean())
    if share < 0.9:
        return None
    found = (
        f"the longest {values.size} values are {seconds_text(step / 1e9)} apart: back-filled or "
        "measured from a schedule; do not correct again, and count them as one event"
    )
    return Evidence("arithmetic progression", share, 0.9, found)


# ------------------------------------------------------------
# The corrected distribution: re-timed where the sends allow it, else back-filled.


def correction_method(facts: Facts, *, scheduled: bool = True) -> Method | None:
    """Return ``retime`` or ``backfill``, or None where the interval is unknown.

    A closed loop at full speed is not `scheduled`: it has nothing to time from.
    """
    if not facts.interval or not facts.rate or isinstance(facts.data, Summary) or not facts.count:
        return None
    if _from_intended_starts(facts) is not None:
        return "retime"
    trace = facts.trace
    if not scheduled or trace is None or trace.usual * 1e9 > facts.interval:
        return "backfill"
    # Each connection must send at equal distances but for its stalls.
    start = np.rint(trace.due * 1e9).astype(np.int64)
    took = np.rint(trace.took * 1e9).astype(np.int64)
    chain = chains(start, took, None, facts.connections or 1, facts.interval)
    order = np.lexsort((start, chain))
    same = np.diff(chain[order]) == 0
    off = np.abs(np.diff(start[order])[same] - facts.interval)
    on_time = off.size and np.median(off) <= 0.1 * facts.interval
    return "retime" if on_time else "backfill"


def corrected_distribution(facts: Facts, method: Method | None) -> Histogram | None:
    """Return the distribution with the omitted requests, or None where it is unknown."""
    if method is None or facts.interval is None:
        return None
    if method == "backfill":
        corrected: Histogram = back_filled(facts.data, facts.interval).histogram()
        return corrected
    response_times = _from_intended_starts(facts)
    if response_times is not None:
        return response_times
    data = facts.data.measured("service").with_run(corrected="none")
    if facts.given_duration:
        data = data.with_run(duration=facts.given_duration)
    return retime(data, rate=facts.rate, connections=facts.connections).histogram()


def _from_intended_starts(facts: Facts) -> Histogram | None:
    """The response times, where the source has all intended starts and omits no request."""
    data = facts.data
    if not isinstance(data, Samples) or data.intended is None or data.run.measure == "response":
        return None
    timed = data.measured("response")
    trace = Trace.of(timed)
    sends = send_gap_test(trace, stalls_of(timed, trace=trace))
    complete = sends is not None and not sends.odds
    return timed.histogram() if complete else None


def is_material(facts: Facts, after: Histogram | None, stall: float, *, coarse: bool) -> bool:
    """Return whether the mean or a supported percentile moves by more than a tenth.

    A loop at full speed is judged by its stalls alone (`coarse`): back-filling would also take its
    usual latencies for stalls.
    """
    if isinstance(facts.data, Summary):
        mean, duration = facts.data.stats.get("mean"), facts.duration
        return bool(mean and duration and _moves({}, mean, stall, duration))
    raw = facts.histogram
    limit = min(99.0 if coarse else 100.0, raw.sample_limit())
    chosen = [p for p in STANDARD_PERCENTILES if p <= limit]
    before = np.asarray(raw.percentile(chosen), np.float64)
    if after is not None and not coarse:
        moved, mean = np.asarray(after.percentile(chosen), np.float64), after.mean
    elif facts.duration:
        moved = percentile_lower_bound(chosen, stall, facts.duration) * 1e9
        mean = raw.mean + stall**2 / (2 * facts.duration) * 1e9
    else:
        return False
    return bool(
        (moved > VERDICT.min_ratio * before).any()
        or mean > (VERDICT.min_ratio_full_speed if coarse else VERDICT.min_ratio) * raw.mean
    )
