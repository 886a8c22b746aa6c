"""`diagnose`: detect coordinated omission and estimate the distribution without it.

From top to bottom: the result, the operation, the verdict with its sentences, what is known of the
run, the tests T1 to T5, and the corrected distribution.
"""

from __future__ import annotations

import math
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from latencykit._records import record
from latencykit.analysis.correct import back_filled
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
from latencykit.core.histogram_log import HistogramLog
from latencykit.core.quantiles import median, poisson_at_least, poisson_at_most, poisson_mean
from latencykit.core.repr_html import verdict_html
from latencykit.core.run import require_data
from latencykit.core.samples import Samples
from latencykit.core.summary import Summary
from latencykit.core.value import Value
from latencykit.errors import InvalidArgumentError
from latencykit.units import (
    NANOSECONDS,
    format_count,
    format_duration,
    format_percentile,
    format_row,
    format_value,
    parse_duration,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    from latencykit.core.blocks import TopFold
    from latencykit.core.histogram import Histogram
    from latencykit.core.histogram_log import IntervalSeries
    from latencykit.core.run import Run

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Data = Samples | HistogramLog | Histogram | Summary

__all__ = [
    "STRONG",
    "WEAK",
    "Counts",
    "Diagnosis",
    "Evidence",
    "Facts",
    "Sends",
    "Verdict",
    "above_half",
    "advice",
    "area_test",
    "arithmetic_progression_test",
    "corrected_distribution",
    "correction_method",
    "counts_test",
    "diagnose",
    "facts_of",
    "full_speed_test",
    "holm",
    "is_material",
    "min_slow_requests_test",
    "percentile_lower_bound",
    "send_gap_test",
    "sentence",
    "shortest_visible_stall",
]

STRONG, WEAK = 0.001, 0.05
MIN_MISSING = 5  # requests: with fewer missing no load generator is accused

Verdict = Literal["omits", "clean", "unknown"]


@record()
class Evidence:
    """One test and its result: one line of a diagnosis."""

    test: str
    statistic: float  # the p-value if `p` is true, else the number that the test compares
    threshold: float
    finding: str  # one sentence
    level: str = "none"  # "none", "weak" or "strong" for omission; "honest": against it
    missing: float = 0.0  # requests
    p: bool = True


@record(eq=False)
class Diagnosis(Value):
    """The verdict on a measurement, its evidence, and the corrected distribution.

    Attributes
    ----------
    verdict : {"omits", "clean", "unknown"}
        ``clean`` requires a stall whose delayed requests are all recorded; without a stall there is
        nothing to judge by.
    summary : str
        The reason for the verdict, in a sentence.
    advice : str
        What would decide an ``unknown``, or what to do about an ``omits``.
    findings : tuple of str
        Further properties of the run: ``closed-loop``, ``already-corrected``, ``over-corrected``,
        ``catch-up``, ``lost-to-timeouts``, ``failed-in-stalls``, ``fewer-than-due``, ``dropped``,
        ``unfinished``, ``clipped``, ``clock-step``, ``immaterial``, ``arithmetic-progression``,
        ``nothing-to-omit``.
    evidence : tuple of Evidence
        The tests; p-values are adjusted for the number of tests.
    expected_interval : float or None
        Time between two requests of one connection, ns.
    raw : Histogram or Summary
        The values as measured.
    corrected : Histogram or None
        With the omitted requests; only if omission was detected or is suspected.
    method : {"retime", "backfill"} or None
        How `corrected` was made.
    rate, duration : float or None
        Requests per second that were due, and length of the run in seconds, as used by the tests.
    timed : Samples, HistogramLog or None
        The series over time, if there is one.
    """

    verdict: Verdict
    summary: str
    advice: str
    findings: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    expected_interval: float | None
    raw: Histogram | Summary
    corrected: Histogram | None
    method: str | None
    rate: float | None
    duration: float | None
    detected_stalls: Stalls = field(repr=False)
    timed: Samples | HistogramLog | None = field(default=None, repr=False)

    @cached_property
    def stalls(self) -> pd.DataFrame:
        """The stalls: start, end, duration (s), worst (ns), missing (requests), share."""
        return self.detected_stalls.to_frame()

    @property
    def run(self) -> Run:
        """The source's own description of the measurement."""
        return self.raw.run

    @cached_property
    def table(self) -> list[tuple[float, float, float | None]]:
        """Percentile, raw and corrected value, up to the highest supported percentile."""
        if isinstance(self.raw, Summary):
            return [(p, float(v), None) for p, v in self.raw.reported_percentiles.items()]
        if not self.raw.count + self.raw.censored:
            return []
        limit = self.raw.sample_limit()
        chosen = [p for p in STANDARD_PERCENTILES if p <= limit or p in (99.0, 99.9, 100.0)]
        before = np.asarray(self.raw.percentile(chosen)).tolist()
        after: list[float | None] = [None] * len(chosen)
        if self.corrected is not None:
            after = np.asarray(self.corrected.percentile(chosen)).tolist()
        return list(zip(chosen, before, after, strict=True))

    @property
    def longest_stall(self) -> float:
        """Seconds of the longest stall, or of the longest request where no time is known."""
        if len(self.detected_stalls):
            return float(self.detected_stalls.worst.max()) / 1e9
        top = self.raw.stats.get("max", 0.0) if isinstance(self.raw, Summary) else self.raw.max
        return float(top) / 1e9 if np.isfinite(top) and self.raw.unit in NANOSECONDS else 0.0

    def _repr_html_(self) -> str:
        def texts(data: Histogram | Summary | None) -> dict[float, str]:
            """Percentiles of the table: ranges where the source does not resolve them."""
            if data is None:
                return {}
            if isinstance(data, Summary):
                return {
                    p: format_value(value, data.unit)
                    for p, value in data.reported_percentiles.items()
                }
            rows = data.percentile_rows([p for p, *_ in self.table]) if data.count else []
            return {
                row.percentile: format_row(
                    replace(row, supported=True), lambda value: format_value(value, data.unit)
                )
                for row in rows
            }

        raw, corrected = texts(self.raw), texts(self.corrected)
        rows = [(_percentile_name(p), raw.get(p, ""), corrected.get(p, "")) for p, *_ in self.table]
        also = [f"also: {', '.join(self.findings)}"] if self.findings else []
        tests = [f"{item.test}: {item.finding}" for item in self.evidence]
        title = self.run.source or self.run.tool or "this measurement"
        lines = [*also, *tests, *self.detected_stalls.notes, self.advice]
        return verdict_html(title, self.verdict, self.summary, rows, lines)

    def __repr__(self) -> str:
        unit = self.raw.unit
        lines = [f"{self.verdict}: {self.summary}"]
        lines += [f"  {item.test}: {item.finding}" for item in self.evidence]
        for p, before, after in self.table:
            fixed = "" if after is None else f"  would have been {format_value(after, unit)}"
            lines.append(f"  {_percentile_name(p):<8} {format_value(before, unit):>9}{fixed}")
        return "\n".join([*lines, *([f"  {self.advice}"] if self.advice else [])])


def _percentile_name(percentile: float) -> str:
    return "max" if percentile == 100 else f"p{format_percentile(percentile)}"


# ------------------------------------------------------------
# The operation: tests, provenance, one verdict. It never accuses an honest measurement.

_VERDICT_INTERVALS = 12.0  # of one connection: a shorter stall accuses no tool
_OVER = 1.25  # of the requests that were due: more are invented
_CEILING = 2.5  # of the share that one stall can hit
_FEWER = 0.9  # of the requests that were due: the others have no latency
_VERDICT_FAILED = 0.2  # of what the longest stall delays: that many failures may be those requests
_LOST = 0.01  # of the requests: more that were dropped or timed out are a finding


def diagnose(
    data: Samples | HistogramLog | Histogram | Summary,
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
    duration : str or float, optional
        Length of the run: ``"20s"``, or seconds.

    Returns
    -------
    Diagnosis
        ``omits`` requires strong evidence (p < .001 after Holm's correction, at least 5 requests
        missing) that the load generator itself waited, and that the mean or a supported percentile
        moves by more than a tenth because of it; ``clean`` requires a stall whose delayed requests
        are all recorded; anything else is ``unknown``, with advice on what would decide it.

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
    tests = _run_tests(facts, stalls)
    if tests.connections and not facts.connections:
        facts = replace(facts, estimated_connections=tests.connections)
    run = facts.run
    suspected = any(item.level in ("strong", "weak") for item in tests.evidence)
    method, at_full_speed = None, tests.steady
    if suspected and facts.corrected_by != "tool":
        method = correction_method(facts, scheduled=not tests.steady)
    if run.loop == "closed" and not run.rate and not facts.given_rate:
        at_full_speed = True
    after = corrected_distribution(facts, method)
    material = suspected and is_material(facts, after, facts.longest, coarse=at_full_speed)
    verdict, findings = _judge(facts, tests, material, stalls)
    if verdict == "clean" or after is None:
        after, method = None, None
    return Diagnosis(
        verdict=verdict,
        summary=sentence(verdict, facts, tests.evidence, findings, stalls),
        advice=advice(verdict, facts, findings),
        findings=findings,
        evidence=tuple(tests.evidence),
        expected_interval=facts.interval,
        raw=facts.data if isinstance(facts.data, Summary) else facts.histogram,
        corrected=after,
        method=method,
        rate=facts.rate,
        duration=facts.duration,
        detected_stalls=stalls,
        timed=facts.data if facts.timed else None,
    )


@record()
class _Tests:
    """Results of the tests, each at most once."""

    sends: Evidence | None
    counts: Evidence | None
    lower_bound: Evidence | None
    others: tuple[Evidence, ...]
    connections: int
    went_on: bool
    failed: bool

    @property
    def steady(self) -> bool:
        """A constant number of requests was under way: a closed loop at full speed."""
        return any(item.test == "requests under way" for item in self.others)

    @property
    def evidence(self) -> list[Evidence]:
        first = (self.sends, self.counts, self.lower_bound)
        return [item for item in (*first, *self.others) if item is not None]


def _run_tests(facts: Facts, stalls: Stalls) -> _Tests:
    """Run the tests that the source allows."""
    sends, counts, steady, lower_bound = None, None, None, None
    rate, duration = facts.rate, facts.duration or math.inf
    is_summary = isinstance(facts.data, Summary)
    if facts.trace is not None:
        steady = full_speed_test(facts.trace)
        until = facts.given_duration or facts.run.duration
        sends = send_gap_test(facts.trace, stalls, until, full_speed=steady is not None)
    if facts.series is not None:
        failures = facts.run.failed + facts.run.timeouts
        counts = counts_test(stalls, facts.observed_rate or 0.0, failures)
    if rate and facts.count and not is_summary:
        lower_bound = min_slow_requests_test(facts.histogram, rate, duration, waited=facts.may_wait)
    elif rate and facts.count and {"mean", "max"} <= facts.data.stats.keys():
        mean, top = facts.data.stats["mean"], facts.data.stats["max"]
        lower_bound = area_test(mean, top, facts.count, rate, duration, waited=facts.may_wait)
    results = [None if result is None else result.evidence for result in (sends, counts)]
    adjusted = iter(holm([item for item in (*results, lower_bound) if item is not None]))
    first, second, third = (
        None if item is None else next(adjusted) for item in (*results, lower_bound)
    )
    others = [steady]
    if facts.count and not is_summary:
        others.append(arithmetic_progression_test(facts.histogram, facts.interval))
    return _Tests(
        first, second, third, tuple(item for item in others if item is not None),
        connections=(sends.under_way if sends else 0) or (counts.waiting if counts else 0),
        went_on=sends.went_on if sends else False,
        failed=(sends.failed if sends else False) or (counts.failed if counts else False),
    )  # fmt: skip


def holm(evidence: list[Evidence]) -> list[Evidence]:
    """Adjust p-values for the number of tests (Holm, 1979), and the levels to match."""
    order = sorted((item.statistic, k) for k, item in enumerate(evidence) if item.p)
    out, worst = list(evidence), 0.0
    for place, (p, k) in enumerate(order):
        worst = max(worst, min(1.0, p * (len(order) - place)))
        level = evidence[k].level
        if level in ("weak", "strong") and not (level == "strong" and worst < STRONG):
            level = "weak" if worst < WEAK else "none"
        out[k] = replace(evidence[k], statistic=worst, level=level)
    return out


# ------------------------------------------------------------
# The verdict.

_RANK = ("none", "honest", "weak", "strong")
_SPOILED = {
    "over-corrected",
    "lost-to-timeouts",
    "dropped",
    "unfinished",
    "clipped",
    "fewer-than-due",
    "failed-in-stalls",
}


def _judge(
    facts: Facts, tests: _Tests, material: bool, stalls: Stalls
) -> tuple[Verdict, tuple[str, ...]]:
    findings = _findings(facts, tests, stalls)
    over_time = max(
        (item.level for item in (tests.sends, tests.counts) if item is not None),
        key=_RANK.index,
        default="none",
    )
    lower_bound = tests.lower_bound.level if tests.lower_bound is not None else "none"

    # Accused: strong evidence that the load generator itself waited. The lower bound alone is
    # enough only for a tool that is known to wait, and for a stall of many intervals.
    accused = over_time == "strong"
    if over_time in ("none", "weak") and lower_bound == "strong" and not tests.went_on:
        interval = facts.interval or 1e9 / (facts.rate or 1e9)
        accused = facts.waits and facts.longest * 1e9 >= _VERDICT_INTERVALS * interval
    accused = accused and facts.corrected_by not in ("us", "tool")
    if accused and not material:
        return "unknown", (*findings, "immaterial")
    if accused:
        # Requests that were due in the stalls may have been sent after all, late.
        trace, caught_up = facts.trace, False
        if trace is not None and tests.sends is not None and facts.rate:
            all_due = facts.rate * trace.span - 0.2 * tests.sends.missing
            caught_up = trace.due.size >= all_due
        return "omits", (*findings, *(("catch-up",) if caught_up else ()))

    suspected = {over_time, lower_bound} & {"weak", "strong"}
    spoiled = _SPOILED & set(findings)
    if facts.stall and not spoiled and not facts.waits and not suspected:
        # Clean: a stall was seen and all that it must have delayed is there. A series over time
        # says more than the sum; of a tool that waits, omitted requests cannot be seen at all.
        clean = (
            len(stalls) > 0 and over_time == "honest" if facts.timed else lower_bound == "honest"
        )
        if clean:
            return "clean", findings
    quiet = bool(facts.rate) and facts.extent_known
    quiet = quiet and facts.longest < shortest_visible_stall(facts.rate or 0.0)
    nothing = quiet and not (spoiled or suspected or stalls.pause) and _harmless(facts)
    return "unknown", (*findings, *(("nothing-to-omit",) if nothing else ()))


def _harmless(facts: Facts) -> bool:
    """No percentile would move if each slow request had kept its connection from sending."""
    if isinstance(facts.data, Summary) or not facts.rate or not facts.count:
        return True
    # By Little's law at least that many connections were busy.
    busy = facts.rate * facts.histogram.mean / 1e9 if facts.histogram.unit in NANOSECONDS else 1.0
    interval = facts.interval or 1e9 * max(busy, 1.0) / facts.rate
    if facts.longest * 1e9 <= interval or facts.corrected_by is not None:
        return True
    filled = back_filled(facts.histogram, interval).histogram()
    return not is_material(facts, filled, facts.longest, coarse=False)


def _findings(facts: Facts, tests: _Tests, stalls: Stalls) -> tuple[str, ...]:
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
        "closed-loop": tests.steady or run.loop == "closed",
        "already-corrected": facts.corrected_by is not None,
        "over-corrected": facts.corrected_by in ("us", "tool") and _over_corrected(facts),
        "arithmetic-progression": any(
            item.test == "arithmetic progression" for item in tests.others
        ),
        "lost-to-timeouts": run.timeouts and lost,
        "dropped": run.dropped > _LOST * total,
        "unfinished": run.unfinished > max(_LOST * total, facts.connections or 1),
        "clipped": histogram is not None
        and ((histogram.censored and not run.timeouts) or suspected_timeout(histogram) is not None),
        "fewer-than-due": offered
        and facts.extent_known
        and total + run.timeouts < _FEWER * offered * sending,
        "failed-in-stalls": tests.failed
        or (
            not facts.timed
            and unanswered > _VERDICT_FAILED * (facts.rate or math.inf) * facts.stall > 0
        ),
        "clock-step": any("clock" in note for note in stalls.notes),
    }
    return tuple(name for name, applied in applies.items() if applied)


def _over_corrected(facts: Facts) -> bool:
    """More requests than were due, or more slow ones than one stall can hit."""
    if isinstance(facts.data, Summary) or not facts.duration or not facts.count:
        return False
    rate, histogram = facts.given_rate or facts.run.rate, facts.histogram
    if rate:
        return bool(facts.count > _OVER * rate * facts.duration + 20)
    share = histogram.count_above(histogram.max / 2) / facts.count
    return bool(share > _CEILING * (histogram.max / 2e9) / facts.duration and share > 0.1)


# ------------------------------------------------------------
# The sentences of a diagnosis.


def sentence(
    verdict: str,
    facts: Facts,
    evidence: Sequence[Evidence],
    findings: Sequence[str],
    stalls: Stalls,
) -> str:
    """Return the reason for the verdict."""
    strongest = max(evidence, key=lambda item: _RANK.index(item.level), default=None)
    stall = format_duration(facts.longest * 1e9)
    if verdict == "omits" and strongest is not None:
        missing = float(stalls.missing.sum()) or strongest.missing
        later = "; they were sent later, and timed from then" if "catch-up" in findings else ""
        return (
            f"coordinated omission detected: about {format_count(missing)} requests that were due "
            f"in stalls of up to {stall} are missing{later}"
        )
    if verdict == "clean":
        by = {
            "us": "back-filled",
            "tool": "corrected by the tool",
            "schedule": "timed from the schedule",
        }
        how = f" ({by[facts.corrected_by]}: do not correct it again)" if facts.corrected_by else ""
        return (
            f"coordinated omission not present: a stall of up to {stall} was recorded, and so were "
            f"the requests that it delayed{how}"
        )
    return _why_unknown(facts, evidence, findings, stalls)


def _why_unknown(
    facts: Facts, evidence: Sequence[Evidence], findings: Sequence[str], stalls: Stalls
) -> str:
    """The first reason that applies: flaws of the numbers themselves, then of the evidence."""
    run, longest = facts.run, format_duration(facts.longest * 1e9)
    suspected = [item for item in evidence if item.level in ("weak", "strong")]
    if "over-corrected" in findings:
        return "the tool's correction invented more slow requests than the run can have had"
    if "lost-to-timeouts" in findings:
        return f"{format_count(run.timeouts)} requests timed out; their latencies are not recorded"
    if "dropped" in findings:
        dropped = format_count(run.dropped)
        return f"{dropped} requests that were due were dropped, and have no latency"
    if "unfinished" in findings:
        unfinished = format_count(run.unfinished)
        return f"{unfinished} requests were still under way at the end, and have no latency"
    if "failed-in-stalls" in findings:
        return "many requests failed, apparently during stalls; the latencies do not include them"
    if "clipped" in findings and suspected_timeout(facts.histogram) is not None:
        return (
            f"many requests took {longest}, the maximum: a timeout, or the highest value that "
            "the recorder tracks; how long stalls were is then unknown"
        )
    if "immaterial" in findings and "closed-loop" in findings:
        return (
            "a closed loop, so these are service times; what it omitted in hiccups of up to "
            f"{longest} would hardly be visible"
        )
    if "immaterial" in findings:
        return (
            "some requests were omitted, but neither the mean nor a supported percentile would "
            "move by a tenth"
        )
    if suspected and facts.corrected_by:
        return (
            f"a stall of {longest} implies more slow requests than were recorded; a slow request "
            "that delayed no others looks the same"
        )
    if any(item.missing and item.test != "lower bound" for item in suspected):
        return (
            "omission, or traffic that paused for a reason of its own while one request took "
            f"{longest}"
        )
    if suspected and facts.trace is not None and _sends_stopped(facts.trace):
        return (
            "omission, traffic that paused, or a clock that was set forward: the longest request "
            f"took {longest}"
        )
    if suspected:
        return (
            "omission, or isolated slow requests that delayed no others: the longest took "
            f"{longest}"
        )
    if "fewer-than-due" in findings:
        count = format_count(facts.count)
        due = format_count((facts.given_rate or run.rate or 0.0) * (facts.duration or 0.0))
        return f"only {count} of {due} requests that were due have a latency"
    if stalls.pause:
        begin, end = stalls.pause
        return (
            f"nothing was recorded for {format_duration((end - begin) * 1e9)}, from {begin:.3f} s "
            "on: traffic paused, or what happened then is not in the file"
        )
    if "nothing-to-omit" in findings:
        return "nothing to omit: no request took long enough for an omission to show"
    if "closed-loop" in findings and facts.corrected_by is None:
        return (
            "a closed loop, so these are service times; how many requests users would have sent "
            "is unknown"
        )
    if not facts.rate:
        return "the number of requests that were due is unknown"
    if not facts.extent_known:
        return "how many requests there were, or how long the longest took, is not reported"
    if facts.longest < shortest_visible_stall(facts.rate):
        return f"the longest request took {longest}: too short for an omission to show"
    if facts.stall and len(stalls):
        return (
            f"stalls of up to {longest} were recorded; the requests they delayed are neither all "
            "there nor surely missing"
        )
    if facts.stall:
        return (
            f"the slow requests (up to {longest}) are neither as many as one stall implies nor "
            "few enough to prove that some are missing"
        )
    return "no stall was recorded, and so none whose requests could be missing"


def _sends_stopped(trace: Trace) -> bool:
    """Few requests were sent while the longest was under way."""
    begin, end = trace.windows
    if not begin.size:
        return False
    longest = int((end - begin).argmax())
    first, last = begin[longest : longest + 1], end[longest : longest + 1]
    sent = int(trace.sends_within(first, last)[0]) - 1
    return bool(last[0] < trace.span and sent < (1 - _WENT_ON) * trace.rate * (last - first)[0])


def advice(verdict: str, facts: Facts, findings: Sequence[str]) -> str:
    """Return what would decide an unknown verdict, or what to do about an omission."""
    visible = shortest_visible_stall(facts.rate or 0.0, facts.connections or 1)
    if verdict == "omits":
        known = facts.interval is not None
        fix = (
            "lk.correct and lk.retime put them back"
            if known
            else "--rate and --connections allow them to be put back"
        )
        return (
            f"{fix}; prefer an open-loop generator that times requests from their scheduled start"
        )
    if verdict == "clean":
        return ""
    if "lost-to-timeouts" in findings:
        return "measure again with a timeout longer than any stall"
    if not facts.rate:
        return (
            "give --rate (requests per second, all connections together) or --duration (of the run)"
        )
    if "over-corrected" in findings:
        return "read the tool's uncorrected values instead"
    if "failed-in-stalls" in findings:
        return (
            "count failed requests as misses (latencykit check does), or measure with a timeout "
            "longer than any stall"
        )
    clipped = "clipped" in findings
    quiet = (
        facts.extent_known and facts.longest < shortest_visible_stall(facts.rate) and not clipped
    )
    if ("nothing-to-omit" in findings or quiet) and math.isfinite(visible):
        gap = _longest_gap(facts)  # a stall within it delays nobody
        shown = format_duration((visible + (gap if gap > visible else 0.0)) * 1e9, 2)
        return f"a stall of {shown} or more would have shown; latencykit ctrlz makes one"
    if clipped:
        return "measure again with a timeout, and a highest value of the recorder, above any stall"
    if isinstance(facts.data, Summary):
        return "output with one row per request would show whether sends went on during the stall"
    if isinstance(facts.data, Samples) and facts.trace is not None:
        return (
            "to settle it, record when each request was due (intended start), or freeze the server "
            "for longer: latencykit ctrlz"
        )
    return (
        "one row per request, with its start, would settle it; or freeze the server for some "
        "seconds: latencykit ctrlz"
    )


def _longest_gap(facts: Facts) -> float:
    """Longest time, in seconds, in which no request was sent."""
    if facts.trace is not None:
        return float(np.diff(facts.trace.due).max(initial=0.0))
    if facts.series is None:
        return 0.0
    used, start = facts.series.count > 0, facts.series.start
    begin, end = hulls(start[used], (start + facts.series.length)[used])
    return float((begin[1:] - end[:-1]).max(initial=0.0))


def _p_text(p: float) -> str:
    return "p < 1e-12" if p < 1e-12 else f"p = {p:.2g}"


# ------------------------------------------------------------
# What is known of a run: its rate, length, connections and provenance, and where each of them comes
# from.

_CATCHES_UP = ("wrk2", "oha", "fortio", "ghz", "h2load")
"""Tools that later send what a stall kept them from sending: no request of the schedule is lost."""
_STALL = 20.0  # medians: a shorter longest request is not a stall


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
        return self.longest if self.longest * 1e9 >= _STALL * usual else 0.0

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
    data = data.in_succession() if isinstance(data, HistogramLog) else data
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

_INTERVALS = 12.0  # of a connection: a shorter gap accuses no tool
_AT_CAP = 0.02  # of the time outside slow requests: more may be under way than in the gap
_RESUME = 2.0  # intervals after a reply within which sends must resume
_WENT_ON = 0.8  # of the usual sends: the tool did not wait
_TO_THE_END = 0.7  # of the usual sends in a stall's second half,
_GAP = 0.25  # and no longer part of it without any
_TRIFLE = 0.05  # of the usual sends: that many may be missing in stalls that are not large
_SENDS_POWER = 20.0  # sends that are due in a stall, to show that they went on
_SCHEDULE = 0.25  # of the Poisson variance: sends that vary less keep to a schedule
_CROWDED = 15.0  # sends at which random arrivals would have exceeded the number under way,
_RARELY = 0.05  # and the part of them that closed loops may have
_EXAMINED, _ORDERS = 50_000, 4
_SURE = 1e-3  # probability of random sends that come as fast after replies


@record()
class Sends:
    """Result of `send_gap_test`; the level is ``honest`` if sends went on through every stall."""

    evidence: Evidence
    went_on: bool  # slow periods have about as many sends as usual, whenever in them
    under_way: int  # requests in the largest gap that counts: the connections of a closed loop
    failed: bool  # many requests in the stalls failed: their latencies are unknown


def send_gap_test(
    trace: Trace, stalls: Stalls, until: float | None = None, *, full_speed: bool = False
) -> Sends | None:
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
            usual[longest].sum() >= _SENDS_POWER
            and all(
                sent[some].sum() >= _WENT_ON * usual[some].sum() for some in (longest, slice(None))
            )
        )
        p, under_way, missing, sure = _worst_gap(trace, begin, end, local, full_speed=full_speed)
    enough = missing >= MIN_MISSING and sure
    level = "strong" if p < STRONG and enough else "weak" if p < WEAK else "none"
    if level == "none" and _sent_through(trace, stalls, until):
        level = "honest"
    finding = _sends_finding(trace, stalls, level, under_way, p, sure)
    lost = float(stalls.missing.sum()) or (missing if level in ("weak", "strong") else 0.0)
    failed = trace.due[~trace.good]
    failures = np.searchsorted(failed, stalls.end) - np.searchsorted(failed, stalls.start)
    in_stalls = max(int(trace.sends_within(stalls.start, stalls.end).sum()), 1)
    return Sends(
        Evidence("sends in slow periods", p, STRONG, finding, level, lost),
        went_on,
        under_way,
        bool(failures.sum() > (1 - _WENT_ON) * in_stalls),
    )


def _worst_gap(
    trace: Trace, begin: Floats, end: Floats, local: Floats, *, full_speed: bool
) -> tuple[float, int, float, bool]:
    """Examine the coordinated gaps, one per window at most.

    Returns the p-value of the largest, the requests under way in it, all that are missing, and
    whether it bears the mark of a load generator.
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
    long_enough = right - left >= _INTERVALS * interval * (1 - 1e-9)
    largest, missing, most, marked = 0.0, 0.0, 0, False
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
        if (sure, weight / spread) > (marked, largest):
            largest, most, marked = weight / spread, many, sure
    p = float(min(1.0, begin.size * np.exp(-largest))) if largest else 1.0
    return p, most, missing, marked


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
    """The requests whose replies a gap waited for, or none.

    All connections that there may be are under way, and the next send follows an awaited reply.
    """
    if trace.share_above(under_way) > _AT_CAP:
        return np.zeros(0, np.int64)
    late = trace.ending_within(left + (right - left) / 2, right + interval)
    late = late[trace.due[late] <= left + interval]
    soon = late.size and right - float(trace.end[late].min()) <= _RESUME * interval + trace.usual
    return late if soon else late[:0]


def _follow_replies(trace: Trace, replies: Ints, right: float, under_way: int, rate: float) -> bool:
    """Sends follow the first replies faster than random arrivals at the usual rate would."""
    first = float(trace.end[replies].min())
    if right < first - trace.grain:
        return False
    at = np.searchsorted(trace.due, right, "left")
    number = 2 ** np.arange(int(np.log2(max(min(under_way, trace.due.size - int(at)), 1))) + 1)
    passed = np.maximum(trace.due[at + number - 1] - first, 0.0) + trace.grain
    return bool(poisson_at_least(number, rate * passed).min() * number.size < _SURE)


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
    few = poisson_at_most(int(halves.sum()), usual) < _SURE
    few = few and poisson_at_most(int(halves[1]), usual / 2) < _SURE
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
    return deviation**2 <= max(_SCHEDULE * middle, 1.0 if middle >= 8 else 0.0)


def _is_capped(trace: Trace, under_way: int) -> bool:
    """That many are hardly ever under way at a send, as they would be if sends ignored replies.

    The same latencies in another order show how often they would be.
    """
    ordinary = np.flatnonzero(~trace.slow)[:_EXAMINED]
    due, took = trace.due[ordinary], trace.took[ordinary]
    rng = np.random.default_rng(0)
    crowded = []
    for times in (took, *(rng.permutation(took) for _ in range(_ORDERS))):
        replied = np.searchsorted(np.sort(due + times), due, "right")
        crowded.append(int((np.arange(due.size) - replied >= under_way).sum()))
    usual = float(np.mean(crowded[1:]))
    return usual >= _CROWDED and crowded[0] <= _RARELY * usual


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
        or stalls.missing.sum() > _TRIFLE * trace.rate * stalls.duration.sum()
    ):
        return False
    begin, end = stalls.start[large], stalls.end[large]
    stop = np.minimum(end, trace.span if until is None else max(until, trace.span))
    reach = np.maximum(end - begin, _SENDS_POWER / max(trace.rate, 1e-9))
    before = trace.sends_within(np.maximum(begin - reach, 0.0), begin)
    before_rate = before / np.maximum(np.minimum(reach, begin), 1e-9)
    rate = np.maximum(trace.rate, np.where(begin >= reach / 2, before_rate, 0.0))
    due, middle = rate * (stop - begin), (begin + stop) / 2
    if (due < _SENDS_POWER).any():
        return False
    sent, later = trace.sends_within(begin, stop), trace.sends_within(middle, stop)
    if (sent < _WENT_ON * due).any() or (later < _TO_THE_END * due / 2).any():
        return False
    first = np.searchsorted(trace.due, begin, "left").tolist()
    last = np.searchsorted(trace.due, stop, "left").tolist()
    for a, b, i, j in zip(begin.tolist(), end.tolist(), first, last, strict=True):
        gaps = np.diff(np.concatenate(([a], trace.due[i:j], [b])))
        if float(gaps.max()) > _GAP * (b - a):
            return False
    return True


def _sends_finding(
    trace: Trace, stalls: Stalls, level: str, under_way: int, p: float, sure: bool
) -> str:
    if not len(stalls):
        slow = (
            f"no stall was seen, only requests slower than {format_duration(trace.slow_from * 1e9)}"
        )
        return slow if level in ("none", "honest") else f"{slow}; sends paused ({_p_text(p)})"
    stop = np.minimum(stalls.end, trace.span)
    sent = format_count(int(trace.sends_within(stalls.start, stop).sum()))
    due = format_count(round(trace.rate * float(np.maximum(stop - stalls.start, 0).sum())))
    total = format_duration(float(stalls.duration.sum()) * 1e9)
    counts = (
        f"during stalls ({total} in total) {sent} requests were sent; "
        f"the surrounding rate implies {due}"
    )
    if level == "honest":
        return f"{counts}: the load generator did not wait for replies"
    if level not in ("strong", "weak") or not under_way:
        return counts
    who = "its only connection" if under_way == 1 else f"all {under_way} connections"
    if sure:
        return f"{counts}; {who} waited, and sends resumed with the replies ({_p_text(p)})"
    return (
        f"{counts}; {who} may have waited, or traffic paused for a reason of its own ({_p_text(p)})"
    )


# ------------------------------------------------------------
# T2: whether counts fall short while a log's server was stopped, and whether all that its stalls
# delayed is there.
#
# A closed loop that waits loses exactly as many requests as were due in the stall, and those that
# waited, one per connection, all take as long as the stall. A deploy, a dip or the refusals of a
# frozen server lose requests, too: so a shortfall accuses only if it equals the number due to
# within the variation of the counts, if the counts are steadier than those of independent users,
# and if failed requests do not account for it. A client that catches up loses none; it has too few
# of the latencies between nothing and the stall's length.

_NEARLY = 0.5  # of those it delayed: that many were delayed for all of the stall in a closed loop
_MATCH = 0.0025  # of the stall: the shortfall may differ by that, beside the variation of counts
_VARIATION = 3.0  # standard deviations of the counts
_COUNTS_FINE = (
    0.02  # of the stall: if counts vary by more, a match may be chance, and proves nothing
)
_COUNTS_SCHEDULE = 0.25  # of the Poisson variance: counts that vary less keep to a schedule
_FAILED = 0.2  # of those missing: that many failures may be what is missing
_IN_FLIGHT = 3  # requests that may be under way by chance when a clock is set, or traffic pauses
_COUNTS_POWER = 8.0  # requests in a fifth of a stall, to show that all of it is there
_COUNTS_LEAST_PART = 0.5  # of what each part of a stall leaves
_COUNTS_THERE = 0.8
_COUNTS_TRIFLE = 0.05  # of the requests: that many may be missing in shorter stalls


@record()
class Counts:
    """Result of `counts_test`."""

    evidence: Evidence
    waiting: int  # requests delayed for all of the largest stall: connections of a closed loop
    failed: bool  # failures may account for what is missing


def counts_test(stalls: Stalls, rate: float, failures: int) -> Counts | None:
    """Test the counts around every stall; None without a stall, or with too little to go by."""
    counts = stalls.delayed
    if counts is None or not len(stalls) or not rate or np.isnan(counts.deviation):
        return None
    due, missing = rate * stalls.duration, float(stalls.missing.sum())
    waiting, any_delay = counts.above[LEVELS.index(0.8)], counts.above[LEVELS.index(0.1)]
    lost = due - waiting / 2  # each connection still sent one, and loses full intervals only
    slack = 1.0 + _MATCH * due + _VARIATION * counts.noise
    match = (
        (waiting >= _NEARLY * any_delay)
        & (counts.short >= MIN_MISSING)
        & (np.abs(counts.short - lost) <= slack + waiting / 2)
        & (slack <= np.maximum(_COUNTS_FINE * due, _VARIATION))
    )
    noise = np.maximum(counts.noise, np.sqrt(np.maximum(due, 1.0)))
    sigma = np.where(match, counts.short / noise, 0.0)
    largest, p = int(np.argmax(sigma)), 1.0
    if match.any():
        p = min(1.0, len(stalls) * 0.5 * math.erfc(float(sigma[largest]) / math.sqrt(2.0)))
    failed = failures > _FAILED * (missing if missing >= MIN_MISSING else float(due.sum()))
    steady = counts.deviation**2 <= max(
        _COUNTS_SCHEDULE * counts.usual, 1.0 if counts.usual >= _COUNTS_POWER else 0.0
    )
    # A few requests that are slow by themselves, or whose clock was set forward, fit any gap;
    # a connection loses requests to each hiccup.
    several = waiting[largest] > _IN_FLIGHT or counts.alone or int(match.sum()) > 1
    enough = missing >= MIN_MISSING and steady and not failed and several
    level = "strong" if p < STRONG and enough else "weak" if p < WEAK else "none"
    longest = stalls.duration >= stalls.duration.max() * _COUNTS_THERE
    lost_none = not stalls.missing[longest].any() and missing <= _COUNTS_TRIFLE * float(due.sum())
    if level == "none" and lost_none:
        # The longest stalls each left latencies all the way down from their length, as clients do
        # that do not wait; the shortest waits are the first to be omitted.
        even = evenly_spread(counts.above, counts.beside, due, _COUNTS_POWER)
        half = LEVELS.index(0.5)
        even &= counts.above[half] - counts.beside[half] >= _COUNTS_THERE * due / 2
        tenth = np.diff(-counts.above[:2] + counts.beside[:2], axis=0)[0]
        even &= tenth >= _COUNTS_LEAST_PART * due / 10
        level = "honest" if even[longest].all() else "none"
    delayed = int(waiting[largest])
    finding = _counts_finding(stalls, level, float(due.sum()), delayed, p, failures * failed)
    evidence = Evidence("counts in stalls", p, STRONG, finding, level, missing)
    return Counts(evidence, delayed if match.any() else 0, failed)


def _counts_finding(
    stalls: Stalls, level: str, due: float, waiting: int, p: float, failures: int
) -> str:
    """`failures` are those that may account for what is missing."""
    shortfall = (
        f"during stalls ({format_duration(float(stalls.duration.sum()) * 1e9)} in total) the usual "
        f"rate implies {format_count(round(due))} requests; "
        f"{format_count(int(stalls.missing.sum()))} are missing"
    )
    if failures:
        return f"{shortfall}, and {format_count(failures)} failed at unknown times"
    if level == "strong":
        who = "one request was" if waiting == 1 else f"{waiting} requests were"
        return (
            f"{shortfall}, and {who} delayed for the whole of the longest ({_p_text(p)}): a closed "
            "loop that waited"
        )
    if level == "weak":
        return (
            f"{shortfall}: a closed loop that waited, or traffic that paused for a reason of its "
            f"own ({_p_text(p)})"
        )
    if level == "honest":
        return (
            f"{shortfall}, and latencies are spread evenly up to the longest: the load generator "
            "did not wait for replies"
        )
    return shortfall


# ------------------------------------------------------------
# T3, the lower bound: the slow requests that a stall of a whole server must leave behind if the
# load generator did not wait.
#
# While a server is stopped for d seconds, requests that arrive at rate λ regardless of it find it
# so: λ·(d − x) of them take longer than x. Hence Q(q) ≥ d − (1 − q)·T over a run of T seconds. A
# lone slow request that delayed no other breaks the bound as well, so this test accuses only tools
# that are known to wait for replies. Nor does reaching the bound prove anything: many stalls that
# each omitted requests, or a service that is slow at times, reach it, too. One stall without
# waiting leaves latencies spread evenly from its length down; that shape is proof.

_DEFICIT = 0.5  # of what must be there: less is missing, not just late
_THERE = 0.8
_MOST = 1.25  # of what one stall leaves: more is not one stall
_PARTS = (0.2, 0.4, 0.6, 0.8)  # of the stall: latencies between these are counted
_LEAST_PART = 0.6  # of what one stall leaves in each of these parts
_SURE_PART = 25.0  # requests there
_FEW_EDGES = 40  # of buckets: a list of percentiles, not a histogram
_POWER = 20.0  # requests that must exceed half of the stall for the test to be decisive


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


def min_slow_requests_test(
    histogram: Histogram, rate: float, duration: float, *, waited: bool = True
) -> Evidence:
    """Test whether as many requests exceed half of the longest as its stall must have hit."""
    surely, at_most, top = above_half(histogram)
    stall = min(top / 1e9, duration)
    expected = rate * stall / 2
    p, missing, level = poisson_at_most(at_most, expected), expected - at_most, "none"
    if p < WEAK and at_most < _DEFICIT * expected:
        level = "strong" if p < STRONG and missing >= MIN_MISSING else "weak"
    elif expected >= _POWER:
        enough = not waited and surely >= _THERE * expected
        if enough or _like_one_stall(histogram, rate, stall, duration):
            level = "honest"
    recorded = format_count(at_most)
    if surely != at_most:
        recorded = f"{format_count(surely)} to {recorded}"
    finding = (
        f"a stall of {format_duration(top)} at {f'{rate:,.0f}' if rate >= 1000 else f'{rate:.4g}'} "
        f"requests per second implies {format_count(expected)} requests slower than half of it; "
        f"{recorded} {'was' if recorded == '1' else 'were'} recorded ({_p_text(p)})"
    )
    missing = max(missing, 0.0) if level in ("weak", "strong") else 0.0
    return Evidence("lower bound", p, STRONG, finding, level, missing)


def _like_one_stall(histogram: Histogram, rate: float, stall: float, duration: float) -> bool:
    """Latencies have the shape that one stall leaves: evenly spread below its length."""
    if not histogram.count or histogram.censored:
        return False
    low, high = histogram.buckets.low(histogram.index), histogram.buckets.high(histogram.index)
    edges = np.array(_PARTS) * stall * 1e9
    if not (high[high > edges[0]] > _MOST * low[high > edges[0]]).any():
        above = np.array([int(histogram.counts[high > edge].sum()) for edge in edges])
        fill, each = -np.diff(above, append=0), rate * stall * (1 - _PARTS[-1])
        total = each * len(_PARTS)
        near = ((fill >= _LEAST_PART * each) & (fill <= each / _LEAST_PART)).all()
        if near and each >= _SURE_PART and _THERE * total <= above[0] <= _MOST * total:
            return True
    # Wide buckets do not show where in them requests lie; their upper edges are percentiles, and
    # must be close to the lower bound. With many buckets the counts above say more.
    if not np.isfinite(duration):
        return False
    share = histogram.cumulative[:-1] / histogram.count
    least = percentile_lower_bound(100.0 * share, stall, duration)
    shown = least >= (1 - _THERE) * stall
    values, least = (high[:-1] / 1e9)[shown], least[shown]
    near = ((values >= _THERE * least) & (values <= _MOST * least)).all()
    return bool(near and 2 <= shown.sum() <= _FEW_EDGES)


def area_test(
    mean: float, top: float, count: int, rate: float, duration: float, *, waited: bool = True
) -> Evidence:
    """Test whether the mean allows for the stall that the maximum shows: n · mean ≥ λ d² / 2.

    If it does, nothing follows where the load generator may have waited: N connections at full
    speed always take n · mean = N · T together, whatever they omitted.
    """
    stall = min(top / 1e9, duration)
    needed, taken = rate * stall**2 / 2, count * mean / 1e9
    ratio = taken / needed if needed > 0 else 1.0
    missing = rate * stall / 2
    level = "strong" if ratio < 0.25 and missing >= 4 * MIN_MISSING else "none"
    if ratio >= 1 and missing >= _POWER and not waited:
        level = "honest"
    finding = (
        f"all requests together took {format_duration(taken * 1e9)}; a stall of "
        f"{format_duration(top)} alone would add {format_duration(needed * 1e9)}"
    )
    missing = missing if level == "strong" else 0.0
    return Evidence("area", ratio, 0.25, finding, level, missing, p=False)


def shortest_visible_stall(rate: float, connections: int = 1) -> float:
    """Return the shortest stall, in seconds, that the lower bound shows at the strong level."""
    if not rate > 0:
        return math.inf
    least = poisson_mean(connections, STRONG), connections + MIN_MISSING, connections / _DEFICIT
    return 2.0 * max(least) / rate


# ------------------------------------------------------------
# T4 and T5: marks of a closed loop at full speed, and of synthetic values, in the numbers alone.

_WINDOWS = 50
_STEADY = 0.02  # relative variation of the number under way that still counts as constant
_STEPS = 8  # values that a progression has at least
_FINE = 20.0  # bucket widths: a smaller step cannot be distinguished from the buckets


def full_speed_test(trace: Trace) -> Evidence | None:
    """Test whether a constant number of requests is under way (Little's law): full speed."""
    if trace.due.size < 4 * _WINDOWS or not trace.span > 0:
        return None
    edges = np.linspace(0.0, trace.span, _WINDOWS + 1)
    work = np.zeros(edges.size)  # request-seconds under way up to each edge
    for times, sign in ((trace.due, 1.0), (trace.ends, -1.0)):
        passed = np.searchsorted(times, edges, "right")
        total = np.concatenate(([0.0], np.cumsum(times)))
        work += sign * (passed * edges - total[passed])
    level = np.diff(work) / np.diff(edges)
    mean, near = float(level.mean()), round(float(np.median(level)))
    off = max(abs(np.median(level) - near), level[1:-1].std())
    if near < 1 or off > _STEADY * near:
        return None
    finding = (
        f"always {near} under way: a closed loop at full speed with N = {near}, so these are "
        "service times"
    )
    return Evidence("requests under way", mean, float(near), finding, p=False)


def arithmetic_progression_test(
    histogram: Histogram, interval: float | None = None
) -> Evidence | None:
    """Find equal steps between the longest values: back-filled, or measured from a schedule."""
    if not histogram.index.size:
        return None
    high, low = histogram.buckets.high(histogram.index), histogram.buckets.low(histogram.index)
    upper = high > high[-1] / 2
    values, counts = high[upper], histogram.counts[upper]
    if values.size < _STEPS:
        return None
    width = float((high - low)[upper].max())
    step = float(median(np.diff(values)))
    if interval and abs(step - interval) < 0.1 * interval:
        step = interval
    if step < _FINE * max(width, 1.0) or not np.all(counts <= 8):
        return None
    below = (values[-1] - values) / step
    share = float((np.abs(below - np.rint(below)) * step <= 2 * width + 0.02 * step).mean())
    if share < 0.9:
        return None
    finding = (
        f"the longest {values.size} values are {format_duration(step)} apart: back-filled or "
        "measured from a schedule; do not correct again, and count them as one event"
    )
    return Evidence("arithmetic progression", share, 0.9, finding, "honest", p=False)


# ------------------------------------------------------------
# The corrected distribution: re-timed where the sends allow it, else back-filled.

_MOVED, _DOUBLED = 1.1, 2.0
_ON_TIME = 0.1  # of an interval: half of a schedule's sends are at most that far off


def correction_method(facts: Facts, *, scheduled: bool = True) -> str | None:
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
    on_time = off.size and np.median(off) <= _ON_TIME * facts.interval
    return "retime" if on_time else "backfill"


def corrected_distribution(facts: Facts, method: str | None) -> Histogram | None:
    """Return the distribution with the omitted requests, or None where it is unknown."""
    if method is None or facts.interval is None:
        return None
    corrected: Histogram | None
    if method == "retime":
        corrected = _from_intended_starts(facts)
        if corrected is None:
            data = facts.data.measured("service").with_run(corrected="none")
            if facts.given_duration:
                data = data.with_run(duration=facts.given_duration)
            corrected = retime(data, facts.rate, facts.connections).histogram()
    else:
        corrected = back_filled(facts.data, facts.interval).histogram()
    return corrected


def _from_intended_starts(facts: Facts) -> Histogram | None:
    """The response times, where the source has all intended starts and omits no request."""
    data = facts.data
    if not isinstance(data, Samples) or data.intended is None or data.run.measure == "response":
        return None
    timed = data.measured("response")
    trace = Trace.of(timed)
    sends = send_gap_test(trace, stalls_of(timed, trace=trace))
    complete = sends is not None and sends.evidence.level in ("none", "honest")
    return timed.histogram() if complete else None


def is_material(facts: Facts, after: Histogram | None, stall: float, *, coarse: bool) -> bool:
    """Return whether the mean or a supported percentile moves by more than a tenth.

    A loop at full speed is judged by its stalls alone (`coarse`): back-filling would also take its
    usual latencies for stalls.
    """
    if isinstance(facts.data, Summary):
        mean, duration = facts.data.stats.get("mean"), facts.duration
        return bool(mean and duration and stall**2 / (2 * duration) * 1e9 > (_MOVED - 1) * mean)
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
        (moved > _MOVED * before).any() or mean > (_DOUBLED if coarse else _MOVED) * raw.mean
    )
