"""`diagnose`: from the tests and the pedigree to one verdict, which never accuses an honest measurement."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from latencykit.diagnose.counts import counts_in_stalls
from latencykit.diagnose.diagnosis import Diagnosis
from latencykit.diagnose.evidence import Evidence, holm
from latencykit.diagnose.facts import Facts, facts_of
from latencykit.diagnose.floor import area_test, floor_test, seen_from
from latencykit.diagnose.ladder import full_speed, ladder
from latencykit.diagnose.repair import is_material, repaired, repaired_by
from latencykit.diagnose.sends import sends_in_slow_times
from latencykit.diagnose.stalls import Stalls, stalls_of
from latencykit.diagnose.words import advice, sentence
from latencykit.summary import Summary

if TYPE_CHECKING:
    from latencykit.diagnose.diagnosis import Verdict
    from latencykit.histogram import Histogram
    from latencykit.log import HistogramLog
    from latencykit.samples import Samples

__all__ = ["diagnose"]

_INTERVALS = 12.0  # of one connection: a stall shorter than that accuses nobody
_OVER = 1.25  # of the requests that the schedule held: more are invented
_CEILING = 2.5  # of the share that one stall can hit
_FEWER = 0.9  # of the requests that the schedule held: the others have no latency
_FAILED = 0.2  # of what a stall as long as the longest request has room for: so many failures may be what it delayed
_LOST = 0.01  # of the requests: so many dropped or timed out are no footnote


def diagnose(
    rung: Samples | HistogramLog | Histogram | Summary,
    expected_interval: str | float | None = None,
    rate: float | None = None,
    connections: int | None = None,
    duration: str | float | None = None,
) -> Diagnosis:
    """Tell whether a measurement left out requests because it waited for replies (coordinated omission).

    Parameters
    ----------
    rung : Samples, HistogramLog, Histogram or Summary
        The more of the ladder is left, the more can be told: a trace shows whether sends stopped, a log whether counts
        fall short, a histogram only whether as many requests were slow as a stall must hit.
    expected_interval : str or float, optional
        Between two requests of one connection: ``"10ms"``, or nanoseconds.
    rate : float, optional
        Requests per second of all connections together.
    connections : int, optional
    duration : str or float, optional
        Length of the run: ``"20s"``, or seconds.

    Returns
    -------
    Diagnosis
        ``omits`` needs strong evidence (p < .001 after Holm's correction, at least 5 requests missing) that the load
        generator itself waited, and that the mean or a supported percentile moves by more than a tenth by it;
        ``clean`` needs a stall that was seen and is fully there; anything else is ``unknown``, and says what would tell.

    Examples
    --------
    >>> from latencykit.simulate import Server, Stall, fixed, open_loop, paced_loop
    >>> server = Server("1ms", stalls=[Stall(7, 6)], ideal=True)
    >>> diagnose(paced_loop(server, rate=200, duration=20, connections=4)).verdict
    'omits'
    >>> diagnose(open_loop(server, fixed(rate=200, duration=20))).verdict
    'clean'
    """
    facts = facts_of(rung, expected_interval, rate, connections, duration)
    timed = facts.trace is not None or facts.series is not None
    stalls = stalls_of(facts.rung, facts.series, facts.trace) if timed else Stalls.none()
    tests = _run_tests(facts, stalls)
    facts = facts.having_found(tests.connections)
    suspected = [one for one in tests.evidence if one.level in ("strong", "weak")]
    method = repaired_by(facts, scheduled=not tests.steady) if suspected and facts.corrected_by != "tool" else None
    after = repaired(facts, method)
    material = bool(suspected) and is_material(facts, after, facts.longest, coarse=_at_full_speed(facts, tests))
    verdict, findings = _judge(facts, tests, material, stalls)
    kept = verdict != "clean" and after is not None
    return Diagnosis(
        verdict=verdict,
        summary=sentence(verdict, facts, tests.evidence, findings, stalls),
        ask=advice(verdict, facts, findings, seen_from(facts.rate or 0.0, facts.connections or 1)),
        findings=findings,
        evidence=tuple(tests.evidence),
        expected_interval=facts.interval,
        raw=facts.rung if isinstance(facts.rung, Summary) else facts.histogram,
        corrected=after if kept else None,
        method=method if kept else None,
        rate=facts.rate,
        duration=facts.duration,
        found=stalls,
        timed=facts.rung if facts.trace is not None or facts.series is not None else None,
    )


@dataclass(frozen=True)
class _Tests:
    """What the tests found, each at most once."""

    sends: Evidence | None
    counts: Evidence | None
    floor: Evidence | None
    others: tuple[Evidence, ...]
    connections: int
    went_on: bool
    failed: bool

    @property
    def steady(self) -> bool:
        """Whether one and the same number of requests was always under way: a closed loop at full speed."""
        return any(one.test == "requests under way" for one in self.others)

    @property
    def evidence(self) -> list[Evidence]:
        return [one for one in (self.sends, self.counts, self.floor, *self.others) if one is not None]


def _run_tests(facts: Facts, stalls: Stalls) -> _Tests:
    """Run the tests that the source allows."""
    sends, steady = None, None
    if facts.trace is not None:
        steady = full_speed(facts.trace)
        until = facts.told_duration or facts.run.duration
        sends = sends_in_slow_times(facts.trace, stalls, until, full_speed=steady is not None)
    counts = None
    if facts.series is not None:
        counts = counts_in_stalls(stalls, facts.observed_rate or 0.0, facts.run.failed + facts.run.timeouts)
    floor = _floor(facts)
    first = [None if one is None else one.evidence for one in (sends, counts)]
    ran = iter(holm([one for one in (*first, floor) if one is not None]))
    adjusted = [None if one is None else next(ran) for one in (*first, floor)]
    others = [steady]
    if not isinstance(facts.rung, Summary) and facts.count:
        others.append(ladder(facts.histogram, facts.interval))
    connections = (sends.under_way if sends else 0) or (counts.waiting if counts else 0)
    went_on = sends.went_on if sends else False
    failed = (sends.failed if sends else False) or (counts.failed if counts else False)
    kept = tuple(one for one in others if one is not None)
    return _Tests(adjusted[0], adjusted[1], adjusted[2], kept, connections, went_on, failed)


def _floor(facts: Facts) -> Evidence | None:
    """The floor test, or that of the area where only a mean and a maximum are held."""
    if not facts.rate or not facts.count:
        return None
    duration = facts.duration or float("inf")
    if not isinstance(facts.rung, Summary):
        return floor_test(facts.histogram, facts.rate, duration, waited=facts.may_wait)
    stats = facts.rung.stats
    if "mean" in stats and "max" in stats:
        return area_test(stats["mean"], stats["max"], facts.count, facts.rate, duration, waited=facts.may_wait)
    return None


def _at_full_speed(facts: Facts, tests: _Tests) -> bool:
    return tests.steady or (facts.run.loop == "closed" and not facts.run.rate and not facts.told_rate)


# ---------------------------------------------------------------- the verdict


def _judge(facts: Facts, tests: _Tests, material: bool, stalls: Stalls) -> tuple[Verdict, tuple[str, ...]]:
    findings = _findings(facts, tests, stalls)
    seen = max((one.level for one in (tests.sends, tests.counts) if one is not None), key=_RANK.index, default="none")
    floor = tests.floor.level if tests.floor is not None else "none"
    accused = _accused(facts, seen, floor, tests.went_on)
    if accused and material:
        return "omits", (*findings, *(("catch-up",) if _caught_up(facts, tests) else ()))
    if accused:
        return "unknown", (*findings, "immaterial")
    spoiled = _SPOILED & set(findings)
    if facts.stall and not spoiled and _fully_there(facts, stalls, seen, floor):
        return "clean", findings
    if seen in ("weak", "strong") or floor in ("weak", "strong"):
        return "unknown", findings
    quiet = bool(facts.rate) and facts.longest < seen_from(facts.rate or 0.0, 1)
    return "unknown", (*findings, *(("nothing-to-omit",) if quiet and not spoiled else ()))


_RANK = ("none", "honest", "weak", "strong")
_SPOILED = {"over-corrected", "lost-to-timeouts", "dropped", "unfinished", "clipped", "fewer-than-due", "failed-in-stalls"}


def _accused(facts: Facts, seen: str, floor: str, went_on: bool) -> bool:
    """Whether strong evidence says that the load generator itself waited."""
    if facts.corrected_by in ("us", "tool"):
        return False
    if seen == "strong":
        return True
    if floor != "strong" or not facts.waits or went_on or seen == "honest":
        return False
    interval = facts.interval or 1e9 / (facts.rate or 1e9)
    return facts.longest * 1e9 >= _INTERVALS * interval


def _fully_there(facts: Facts, stalls: Stalls, seen: str, floor: str) -> bool:
    """Whether a stall was seen, and all that it must have delayed is there."""
    if facts.waits:  # it cannot be: what it left out is not seen, at best
        return False
    if floor in ("weak", "strong") or seen in ("weak", "strong"):
        return False
    if facts.trace is not None or facts.series is not None:  # the course over time tells more than the sum
        return len(stalls) > 0 and seen == "honest"
    return floor == "honest"


def _findings(facts: Facts, tests: _Tests, stalls: Stalls) -> tuple[str, ...]:
    """Names of what is to be known of the run beside the verdict."""
    run, found = facts.run, []
    if tests.steady or run.loop == "closed":
        found.append("closed-loop")
    if facts.corrected_by is not None:
        found.append("already-corrected")
    if facts.corrected_by in ("us", "tool") and _over_corrected(facts):
        found.append("over-corrected")
    if any(one.test == "ladder" for one in tests.others):
        found.append("ladder")
    total = max(facts.count + run.failed + run.dropped, 1)
    if run.timeouts and _lost(facts):
        found.append("lost-to-timeouts")
    if run.dropped > _LOST * total:
        found.append("dropped")
    if run.unfinished > max(_LOST * total, facts.connections or 1):
        found.append("unfinished")
    if _clipped(facts):
        found.append("clipped")
    offered = facts.told_rate or run.rate
    sending = (facts.duration or 0.0) - facts.longest  # some tools count the wait for the last reply in
    if offered and total + run.timeouts < _FEWER * offered * sending:
        found.append("fewer-than-due")
    sum_only = facts.trace is None and facts.series is None
    if tests.failed or (sum_only and run.failed + run.timeouts > _FAILED * (facts.rate or math.inf) * facts.stall > 0):
        found.append("failed-in-stalls")
    if any("clock" in note for note in stalls.notes):
        found.append("clock-step")
    return tuple(found)


def _over_corrected(facts: Facts) -> bool:
    """Whether more requests are there than the schedule held, or more slow ones than one stall can hit."""
    if isinstance(facts.rung, Summary) or not facts.duration or not facts.count:
        return False
    speed = facts.told_rate or facts.run.rate
    if speed:
        return facts.count > _OVER * speed * facts.duration + 20
    histogram = facts.histogram
    share = histogram.count_above(histogram.max / 2) / facts.count
    return share > _CEILING * (histogram.max / 2e9) / facts.duration and share > 0.1


def _lost(facts: Facts) -> bool:
    """Whether requests that timed out are not among the latencies; some tools count them and time them all the same."""
    return isinstance(facts.rung, Summary) or facts.histogram.censored > 0 or facts.longest * 1e9 < (facts.run.timeout or 0.0)


def _clipped(facts: Facts) -> bool:
    """Whether values stop at a limit that is no timeout: known, or a pile of them at the very top."""
    if isinstance(facts.rung, Summary) or not facts.count:
        return False
    histogram = facts.histogram
    return bool(histogram.censored and not facts.run.timeouts)


def _caught_up(facts: Facts, tests: _Tests) -> bool:
    """Whether the requests that were due in the stalls were sent after all, late."""
    trace = facts.trace
    if trace is None or tests.sends is None or not facts.rate:
        return False
    return trace.due.size >= facts.rate * trace.span - 0.2 * tests.sends.missing
