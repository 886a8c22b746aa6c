"""`diagnose` and `find_stalls`: coordinated omission, and the distribution without it.

From top to bottom: the operations, the verdict, what is known of the run, the most that may have
been omitted, and the corrected distribution. What a stall left behind is measured in
`stall_records`, and weighed in `explanations`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np

from latencykit._records import record
from latencykit._typing import Floats, PathOrFrame
from latencykit.analysis.correct import on_a_fine_grid
from latencykit.analysis.diagnosis import Bound, Diagnosis, Verdict
from latencykit.analysis.explanations import COMPLETE, Explained, explain_stalls
from latencykit.analysis.facts import FACTS, Facts, facts_of
from latencykit.analysis.given import as_data
from latencykit.analysis.period import period_of
from latencykit.analysis.stall_records import StallRecord, stall_record
from latencykit.analysis.stalls import TINY, TRACE, Stalls, stall_candidates
from latencykit.analysis.timeouts import suspected_timeout
from latencykit.core.buckets import HdrBuckets
from latencykit.core.consistency import contradiction
from latencykit.core.histogram import STANDARD_PERCENTILES, Histogram, statistic_of
from latencykit.core.histogram_log import HistogramLog, expect
from latencykit.core.quantiles import median, share_above
from latencykit.core.run import Note
from latencykit.core.samples import Samples
from latencykit.core.summary import Summary
from latencykit.errors import DataNotAvailableError
from latencykit.units import NANOSECONDS, format_count, format_duration, format_estimate

if TYPE_CHECKING:
    import pandas as pd


# ------------------------------------------------------------
# The operation: one record of the stalls, one posterior, one verdict.


@record()
class VerdictRules:
    """From probabilities to a verdict; chosen on tools with failures, timeouts and corrections."""

    # posterior probability of a verdict, and of one that is sure
    likely: float = 0.9
    sure: float = 0.99
    # from which on a correction is shown beside an open verdict
    suspected: float = 0.3
    # requests: with fewer missing none are said to be omitted
    min_missing: float = 5.0
    # requests due in stalls, to say that all of them are recorded
    min_due: float = 20.0
    # of the mean or a percentile: a smaller change is immaterial
    min_ratio: float = 1.1
    # up to that percentile: beyond, few requests decide
    max_percentile: float = 99.99
    # of what is missing: as many failures may be those requests (refused while frozen)
    min_failed_share: float = 0.2
    # of the requests: more that were dropped or timed out are a finding
    min_lost_share: float = 0.01
    # of the requests that were due: more are invented, or the others have no latency
    max_due_ratio: float = 1.25
    min_due_ratio: float = 0.9
    # of the share that one stall can hit: more is invented, too
    max_stall_ratio: float = 2.5
    min_invented_share: float = 0.1
    # of a timeout: requests that end within that time ended together (a stall)
    timeout_share: float = 0.01
    # seconds: nobody gives up sooner
    min_timeout_s: float = 0.02


VERDICT = VerdictRules()


def diagnose(
    data: Samples | HistogramLog | Histogram | Summary | PathOrFrame,
    *,
    expected_interval: str | float | None = None,
    rate: float | None = None,
    connections: int | None = None,
    duration: str | float | None = None,
    unit: str | None = None,
) -> Diagnosis:
    """Detect whether a measurement suffers from coordinated omission.

    Parameters
    ----------
    data : Samples, HistogramLog, Histogram or Summary, path or frame
        The more detail, the more can be decided: samples show whether sends stopped, a log whether
        counts fall short, a histogram only how many requests were slow.
    expected_interval : str or float, optional
        Time between two requests of one connection: ``"10ms"``, or nanoseconds.
    rate : float, optional
        Requests per second of all connections together.
    connections : int, optional
        How many connections sent requests; with `rate`, histograms can be decided, too.
    duration : str or float, optional
        Length of the run: ``"20s"``, or seconds.
    unit : str, optional
        Of a path or frame whose numbers state none, as for `lk.read`.

    Returns
    -------
    Diagnosis
        ``omits``: with a probability of .9 or more the load generator waited for a server that
        had stopped, and the mean or a supported percentile is higher by a tenth or more with the
        requests that are missing. ``clean``: what the stalls delayed is recorded, or others
        were sent on while the slow requests ran. ``no stall``:
        no stall that the run leaves room for would move the mean or a percentile by a tenth.
        ``service times``: the loop waited for replies and has no schedule; `Diagnosis.bound` is
        what users who arrive on their own would see. ``unknown``: with what would decide it.

    Examples
    --------
    >>> from latencykit.simulate import Server, Stall, fixed, open_loop, paced_loop
    >>> server = Server("1ms", stalls=[Stall(100, 100)])
    >>> result = diagnose(paced_loop(server, rate=100, duration=300, connections=1))
    >>> result.verdict, result.sure, f"{result.corrected.percentile(99) / 1e9:.0f} s"
    ('omits', True, '97 s')
    >>> diagnose(open_loop(server, fixed(rate=100, duration=300))).verdict
    'clean'
    """
    data = as_data(data, "diagnose", unit)
    facts = facts_of(data, expected_interval, rate, connections, duration)
    stalls, left, explained = _judged(facts)
    omission = 0.0 if explained is None else explained.omission
    complete = 0.0 if explained is None else sum(explained.probability[name] for name in COMPLETE)
    corrected, stated = None, facts
    if left is not None and explained is not None and omission >= VERDICT.suspected:
        if not facts.connections:
            number = round(float(median(left.throughout)))
            facts = replace(facts, estimated_connections=number)
        if facts.corrected_by not in ("us", "tool", "schedule"):
            corrected = corrected_distribution(facts, left, explained)
    bound = omission_bound(facts) if facts.measured else None
    findings = _findings(facts, left, stalls)
    material = False  # the mean or a supported percentile moves by more than a tenth
    if corrected is not None:
        raw = facts.histogram
        top = min(raw.sample_limit(), VERDICT.max_percentile)
        chosen = [p for p in STANDARD_PERCENTILES if p <= top]
        before = np.asarray(raw.percentile(chosen), np.float64)
        moved = np.asarray(corrected.percentile(chosen), np.float64) > VERDICT.min_ratio * before
        material = bool(moved.any() or corrected.mean > VERDICT.min_ratio * raw.mean)
    # What the stalls delayed is there: enough of it, evenly spread, before the run ends.
    recorded = False
    if explained is not None and left is not None and not facts.is_closed_loop:
        k = explained.decisive
        delayed = float(left.due.sum() if facts.trace is not None else left.due[k])
        recorded = bool(left.is_uniform[k] or left.ended[k]) and delayed >= VERDICT.min_due
        recorded = recorded and explained.probability["recorded"] >= VERDICT.likely
    verdict: Verdict
    sure: bool | None = None
    omitted = 0.0 if left is None else float(left.omitted.sum())
    spoiled = SPOILED & set(findings)
    filled = facts.run.loop == "closed" and facts.corrected_by == "tool"
    listed_stalls = _listed(facts, stalls, explained)
    shown = len(stalls) > 0 if facts.timed else facts.stall > 0
    listed = len(listed_stalls) > 0 if facts.timed else facts.stall > 0
    sent_on = facts.timed and not (listed or facts.at_full_speed)
    if sent_on and left is not None and explained is not None:
        due = float(left.due.sum())
        unsent = float((left.due - left.sent if facts.trace else left.missing).sum())
        # An interval of a log, or more, lies within each time of slow requests.
        sent_on = due >= VERDICT.min_due and left.due.min() >= 2 * left.blur
        sent_on &= not (shown and explained.chance)
        sent_on &= unsent <= TRACE.missing_deviations * math.sqrt(due)
    refused = {"failed-in-stalls", "contradicts-itself"} & set(findings)
    if material and omission >= VERDICT.likely and omitted >= VERDICT.min_missing and not refused:
        verdict, sure = "omits", omission >= VERDICT.sure
    elif spoiled and (facts.is_closed_loop or filled) and spoiled <= _LOST | {"over-corrected"}:
        verdict, sure = "service times", True
    elif spoiled:
        verdict = "unknown"
    elif explained and shown and recorded:
        verdict, sure = "clean", complete >= VERDICT.sure
    elif facts.corrected_by and not filled and facts.measured and omission < VERDICT.suspected:
        verdict, sure = ("clean" if listed else "no stall"), True
    elif sent_on and complete >= VERDICT.likely:
        verdict, sure = "clean", complete >= VERDICT.sure
    elif bound and not (bound.material or stalls.pause or facts.count < BOUND.min_requests):
        verdict, sure = "no stall", True
    elif facts.is_closed_loop or filled or (facts.may_be_closed_loop and facts.at_full_speed):
        verdict, sure = "service times", True
    else:
        verdict = "unknown"
    if verdict not in ("omits", "unknown") or "contradicts-itself" in findings:
        corrected, facts = None, stated
    return Diagnosis(
        verdict=verdict,
        sure=sure,
        findings=findings,
        explained=explained,
        left=left,
        bound=bound,
        raw=facts.data if isinstance(facts.data, Summary) else facts.histogram,
        corrected=corrected,
        expected_interval=facts.interval,
        rate=facts.rate,
        connections=facts.connections,
        duration=facts.duration,
        longest=facts.longest,
        due=facts.due,
        backlog=facts.overload,
        corrected_by=facts.corrected_by,
        extent_known=facts.extent_known,
        detected_stalls=listed_stalls,
        timed=facts.data if facts.timed else None,
        connections_known=facts.timed or facts.estimated_connections is None,
    )


def find_stalls(
    data: Samples | HistogramLog | PathOrFrame, *, unit: str | None = None
) -> pd.DataFrame:
    """Find the times during which a server was stopped.

    In samples a stall is a time without any reply while a request was waiting, longer than the
    gaps between replies usually are; or requests that were sent at various times and end all at
    once, as one stalled shard leaves them. In a log it follows from intervals with long maxima, and
    from intervals that the logger itself could not end in time; it is known to about one interval.
    A maximum alone is not a stall: fewer replies than usual, latencies spread evenly up to it, or
    an interval that ended late must confirm it.

    Parameters
    ----------
    data : Samples or HistogramLog, path or frame
        Samples need start times.
    unit : str, optional
        Of a path or frame whose numbers state none, as for `lk.read`.

    Returns
    -------
    DataFrame
        One row per stall: ``start``, ``end``, ``duration`` (seconds), ``worst`` (ns), ``missing``
        (requests that the usual rate would have sent meanwhile), ``share`` (part of that time's
        requests that were delayed). Its ``attrs["notes"]`` name a warm-up and isolated
        slow requests, which are not stalls, and a period (of 8 stalls or more, in at least four
        periods).

    Raises
    ------
    DataNotAvailableError
        For histograms and summaries, which have no time, and for samples without start times.

    Examples
    --------
    >>> from latencykit.simulate import Server, Stall, paced_loop
    >>> stalls = find_stalls(paced_loop(Server("1ms", stalls=[Stall(4, 2)]), rate=100, duration=10))
    >>> stalls[["start", "end", "duration", "missing"]].round(2).values.tolist()
    [[4.0, 6.0, 2.0, 199.0]]
    """
    return stalls_of(cast("Samples", as_data(data, "find_stalls", unit))).to_frame()


def stalls_of(data: Samples | HistogramLog) -> Stalls:
    """Return the stalls of a run, as `diagnose` lists them: arrays and notes."""
    if not isinstance(data, HistogramLog) and getattr(data, "start", None) is None:
        raise DataNotAvailableError(
            "this source does not know when requests were sent; stalls need a log, or samples with "
            "start times"
        )
    facts = facts_of(data)
    stalls, _, explained = _judged(facts)
    return _listed(facts, stalls, explained)


def _judged(facts: Facts) -> tuple[Stalls, StallRecord | None, Explained | None]:
    """What may be stalls, what they left behind, and how likely each explanation is."""
    stalls = stall_candidates(facts.data, facts.series, facts.trace)
    if not facts.measured or facts.count < BOUND.min_requests:
        return stalls, None, None
    left = stall_record(facts, stalls)
    return stalls, left, explain_stalls(left, facts.source, facts.connections) if left else None


def _listed(facts: Facts, stalls: Stalls, explained: Explained | None) -> Stalls:
    """The stalls on the clock of the run; none that chance leaves, or that delayed no others."""
    if explained and (
        explained.chance > 1 - VERDICT.likely or explained.probability["isolated"] >= VERDICT.likely
    ):
        stalls = replace(Stalls.none(*stalls.notes), pause=stalls.pause)
    period = period_of(stalls.end, facts.duration or 0.0)
    notes = [Note(period.words, "period")] if period else []
    begin = 0.0 if facts.trace is None else facts.trace.begin  # a selection begins later
    pause = stalls.pause and (stalls.pause[0] + begin, stalls.pause[1] + begin)
    start, end = stalls.start + begin, stalls.end + begin
    return replace(stalls, start=start, end=end, pause=pause, notes=(*stalls.notes, *notes))


def diagnosed(
    data: Samples | HistogramLog | Histogram | Summary, whole: Histogram | Summary
) -> Diagnosis | None:
    """Return the diagnosis of a run, of which `whole` has the statistics, that may have omitted."""
    # Most runs are too long for their longest request to be a stall that matters: of the requests
    # that were due it can hide no larger share than its own of the time, nor move the mean by more
    # than they would have waited. These are not diagnosed.
    scale = NANOSECONDS.get(whole.unit, math.nan) / 1e9
    longest, mean = (scale * statistic_of(whole, name) for name in ("p100", "mean"))
    if not isinstance(whole, Summary) and whole.censored:  # it took at least that
        longest = scale * whole.censored_at
    span = data.run.duration or 0.0
    if isinstance(data, Samples | HistogramLog):
        span = data.elapsed if isinstance(data, Samples) else data.duration
    hides = longest >= (1 - VERDICT.max_percentile / 100) * span
    if not hides and not longest**2 / 2 >= (VERDICT.min_ratio - 1) * mean * span:
        return None
    if isinstance(data, HistogramLog):
        expect(data)  # two passes
    return diagnose(data)


def omission_text(found: Diagnosis | None) -> str:
    """Return what a run omitted, in a sentence, or nothing."""
    if found is None or found.verdict != "omits" or found.left is None:
        return ""
    count, stall = found.left.length.size, format_duration(found.left.length.max() * 1e9)
    stalls = f"a stall of {stall}" if count == 1 else f"{count} stalls of up to {stall}"
    omitted = float(found.left.omitted.sum())
    exact = isinstance(found.timed, Samples)
    number = format_count(omitted) if exact else f"about {format_estimate(omitted)}"
    return (
        f"{number} requests were omitted in {stalls}, so percentiles and mean are too low: "
        "see diagnose"
    )


# ------------------------------------------------------------
# The verdict.

SPOILED = {
    "contradicts-itself", "over-corrected", "lost-to-timeouts", "dropped", "unfinished", "clipped",
    "failed-in-stalls", "fewer-than-due",
}  # fmt: skip
"""Findings that leave no verdict but ``omits``."""

_LOST = {"lost-to-timeouts", "unfinished", "clipped"}
"""Of these, findings on requests without a latency: others may be service times all the same."""


def _findings(facts: Facts, left: StallRecord | None, stalls: Stalls) -> tuple[str, ...]:
    """Properties of the run that a reader needs beside the verdict, the most important first."""
    run, histogram = facts.run, facts.histogram
    total = max(facts.count + run.failed + run.dropped, 1)
    # Some tools count requests that timed out among the latencies.
    inside = 0 if histogram is None else histogram.censored
    lost = histogram is None or inside or facts.longest * 1e9 < (run.timeout or 0.0)
    seconds = facts.duration or 0.0
    # Some tools count the wait for the last reply as part of the run.
    sending = seconds - facts.longest
    omitted = 0.0 if left is None else float(left.omitted.sum())
    failures = run.failed + max(run.timeouts - inside, 0)
    if facts.trace is not None:  # in stalls, unless requests fail as often outside them
        sent_at, failed = facts.trace.start, ~facts.trace.good
        sent, failures = (
            int((np.searchsorted(at, stalls.end) - np.searchsorted(at, stalls.start)).sum())
            for at in (sent_at, sent_at[failed])
        )
        outside = (int(failed.sum()) - failures) / max(sent_at.size - sent, 1)
        by_chance = outside * sent
        if failures <= by_chance + TRACE.missing_deviations * math.sqrt(by_chance):
            failures = 0
    # More requests than were due, or more slow ones than one stall can hit.
    over_corrected = False
    if facts.corrected_by in ("us", "tool") and facts.extent_known and seconds and facts.count:
        if facts.offered:
            most = VERDICT.max_due_ratio * facts.offered * seconds + VERDICT.min_due
            over_corrected = facts.count > most
        else:
            share = histogram.count_above(histogram.max / 2) / facts.count
            most = VERDICT.max_stall_ratio * (histogram.max / 2e9) / seconds
            over_corrected = share > most and share > VERDICT.min_invented_share
    # Requests of a round time, the longest, were given up: a stall's would end at once.
    piled = None if histogram is None else suspected_timeout(histogram)
    given_up = piled is not None and piled[0] >= VERDICT.min_timeout_s * 1e9
    if piled is not None and given_up:
        least = piled[0] * (1 - VERDICT.timeout_share)
        if facts.trace is not None:
            ends = facts.trace.end[facts.trace.latency * 1e9 >= least]
            given_up = float(np.ptp(ends)) * 1e9 > VERDICT.timeout_share * piled[0]
        elif facts.series is not None:
            factor = NANOSECONDS.get(facts.series.unit, 1.0)
            given_up = int((np.nan_to_num(facts.series.max) * factor >= least).sum()) > 1
    applies = {
        "contradicts-itself": contradiction(facts.data) is not None,
        "over-corrected": over_corrected,
        "lost-to-timeouts": run.timeouts and lost,
        "dropped": run.dropped > VERDICT.min_lost_share * total,
        "unfinished": run.unfinished > max(VERDICT.min_lost_share * total, facts.connections or 1),
        "clipped": histogram is not None
        and ((histogram.censored and not run.timeouts) or given_up),
        "failed-in-stalls": left is not None
        and failures > VERDICT.min_failed_share * max(omitted, VERDICT.min_missing),
        "overload": facts.overload > 0
        or run.dropped > (1 - FACTS.max_achieved) * max(facts.due, total),
        "fewer-than-due": facts.offered
        and not facts.sent_late
        and facts.extent_known
        and total + run.timeouts < VERDICT.min_due_ratio * facts.offered * sending,
        "already-corrected": facts.corrected_by is not None,
    }
    return tuple(name for name, applied in applies.items() if applied)


# ------------------------------------------------------------
# The most that may have been omitted.


@record()
class BoundRules:
    """The most that may have been omitted; chosen on broad services and freezes."""

    # fewer requests show nothing; more no float counts
    min_requests: int = 20
    max_requests: float = 2.0**53
    # percentile up to which a stall must leave no trace, for there to be none
    max_percentile: float = 99.9
    # of the connections: a stall reaches at least those (one of two servers)
    min_reached_share: float = 0.4
    # medians: the usual request is shorter
    usual_medians: float = 20.0
    # slow requests that end together, beyond chance: part of a server stopped
    together_share: float = 0.5
    together_medians: float = 10.0
    max_probability: float = 0.01
    # of a bucket's edges: a wider one holds an exponential tail, in that many steps
    max_edge_ratio: float = 1.1
    steps: int = 48
    # of nanoseconds that percentiles may be rounded to
    max_digits: int = 10
    # of bisections, to the value of a percentile
    rounds: int = 40
    # and of the mean with those that raise it
    mean_rounds: int = 12
    # requests above a percentile: with fewer it is that of some of them
    min_above: int = 20


BOUND = BoundRules()


def omission_bound(facts: Facts) -> Bound | None:
    """Bound what was omitted: a connection sends no faster than it gets replies."""
    # A request of length v, as far as a stall that the run leaves room for can have caused it, kept
    # its connection from sending at most v / m − 1 others, where m is the usual latency or, if that
    # is longer, the time between two requests of the run; those would have waited v − m, v − 2 m …
    raw = facts.histogram
    if raw is None or not raw.count or raw.censored:
        return None
    value, weight = _smoothed(raw)
    total = float(weight.sum())
    usual = BOUND.usual_medians * float(raw.percentile(50))
    pace = float(np.minimum(value, usual) @ weight) / total
    if facts.given_interval or facts.run.expected_interval or (facts.offered and facts.connections):
        pace = max(pace, facts.interval or 0.0)
    if not facts.is_closed_loop and not facts.at_full_speed and facts.rate:
        pace = max(pace, 1e9 / facts.rate)
    if not pace > 0:
        return None
    pace = max(pace, float(value.max()) / BOUND.max_requests)
    # The longest stall that the run leaves room for: no longer than the longest request, than the
    # longest time without a reply, and than some of its connections waited.
    stall, trace = facts.longest, facts.trace
    if facts.connections:
        waited = round(BOUND.min_reached_share * facts.connections)
        rank = 100 * (1 - max(waited - 1, 0) / max(facts.count, 1))
        stall = min(stall, float(raw.percentile(max(rank, 0.0))) / 1e9)
    if trace is not None and trace.span > 0 and not trace.stamp:
        slowest = float(trace.latency.max(initial=0.0))
        ends = np.sort(trace.end[trace.latency > BOUND.together_share * slowest])
        # Two of the slowest requests that end together, beyond chance, have one cause.
        together = ends.size >= 2 and slowest >= BOUND.together_medians * trace.baseline
        if together:
            closest = float(np.diff(ends).min()) + trace.clock_resolution
            chance = ends.size * (ends.size - 1) * closest / trace.span
            together = chance < BOUND.max_probability
        if not together:
            stall = min(stall, float(trace.silences.max(initial=0.0)))
    caused = np.minimum(value, stall * 1e9)

    # The most of the requests due while those of each length or longer ran that were not sent.
    missing = np.ones(value.size)
    if trace is not None and trace.span > 0 and not (facts.is_closed_loop or facts.at_full_speed):
        order = np.argsort(-trace.latency)
        due = np.cumsum(trace.rate * trace.latency[order])
        sent = np.cumsum(trace.sends_within(trace.start, trace.end)[order] - 1)
        lacking = due - sent + TRACE.missing_deviations * np.sqrt(due)
        unsent = np.append(1.0, np.clip(lacking / np.maximum(due, TINY), 0.0, 1.0))
        missing = unsent[np.searchsorted(-trace.latency[order], -value / 1e9, "right")]
    hidden = missing * np.maximum(np.ceil(caused / pace) - 1, 0.0)
    waits = hidden * caused - pace * hidden * (hidden + 1) / 2
    data, usual_ones = facts.data, [p for p in STANDARD_PERCENTILES if p <= BOUND.max_percentile]
    stated = data.reported_percentiles if isinstance(data, Summary) else usual_ones
    at = np.array([p for p in usual_ones if p in stated])
    beyond = share_above(at)
    enough = raw.count * beyond >= BOUND.min_above
    at, beyond = at[enough], beyond[enough]
    before: Floats = np.asarray(raw.percentile(at), np.float64).reshape(at.shape)
    low, high = before.copy(), np.full(at.size, float(value.max()))
    order, hides = np.argsort(value), hidden > 0
    known, longer = value[order], np.append(np.cumsum(weight[order][::-1])[::-1], 0.0)
    share, longest, usually = missing[hides], caused[hides], np.outer(beyond, hidden[hides])
    for _ in range(BOUND.rounds):
        middle = (low + high) / 2
        above = share * np.maximum(np.ceil((longest - middle[:, None]) / pace) - 1, 0.0)
        # Only those count that raise the percentile: any others may have hidden none.
        raised = longer[np.searchsorted(known, middle, "right")]
        raised += np.maximum(above - usually, 0.0) @ weight[hides]
        more = raised > beyond * total
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    recorded = mean = float(value @ weight) / total
    for _ in range(BOUND.mean_rounds):
        raises = waits > mean * hidden
        mean = float((value + waits * raises) @ weight) / float((1 + hidden * raises) @ weight)
    moved = (high > VERDICT.min_ratio * before).any()
    return Bound(
        stall=stall,
        others=round(float(hidden @ weight)),
        mean=(recorded, mean),
        percentiles=tuple(zip(at.tolist(), before.tolist(), high.tolist(), strict=True)),
        material=bool(moved) or mean > VERDICT.min_ratio * recorded,
    )


def _smoothed(histogram: Histogram) -> tuple[Floats, Floats]:
    """Values and their numbers; those of a wide bucket fall off evenly in logarithm to its top."""
    counted = histogram.counted
    low, high, counts = counted.low, counted.high, counted.counts.astype(np.float64)
    wide = high > BOUND.max_edge_ratio * low
    if not wide.any():
        return high, counts
    beyond = np.concatenate((np.cumsum(counts[::-1])[::-1][1:], [0.0]))[wide]
    first, last = beyond + counts[wide], np.maximum(beyond, 0.5)
    part = np.arange(BOUND.steps + 1) / BOUND.steps
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
    exponents = 10.0 ** np.arange(BOUND.max_digits)
    step = float(exponents[(high % exponents[:, None] == 0).all(axis=1)].max(initial=0.0))
    spread += step * float(counts[body].sum())
    more = (mean * counts.sum() - spread) / top if top > 0 else math.nan
    if more > 0:
        more = min(more, float(counts[high == top].sum()))
        value, weight = np.append(value, top), np.append(weight, more)
    return value, weight


# ------------------------------------------------------------
# The corrected distribution: with the requests that are missing.


def corrected_distribution(facts: Facts, left: StallRecord, explained: Explained) -> Histogram:
    """Return the distribution with the omitted requests: due at any moment of a stall."""
    # Each would have waited for the rest of it. Requests that were sent late, and timed from then,
    # take the place of as many ordinary ones; they are timed from the moments at which they were
    # due where the source has these.
    data, late = facts.data, explained.probability["catches up"] > explained.probability["waits"]
    if late and isinstance(data, Samples) and data.intended is not None:
        due: Histogram = data.measured("response").histogram()
        return due
    raw, shortest = facts.histogram, float(left.length.min()) * 1e9
    base = raw if isinstance(raw.buckets, HdrBuckets) else on_a_fine_grid(raw, shortest)
    number = np.rint(left.omitted)
    top = int(base.buckets.index_of(np.array([left.length.max() * 1e9]))[0])
    counts = np.zeros(max(top, int(base.index.max(initial=0))) + 1, np.int64)
    counts[base.index] = base.counts
    edges = base.buckets.high(np.arange(top + 1))
    parts = np.minimum(edges / (left.length[:, None] * 1e9), 1.0)
    waits = np.diff(np.rint(number[:, None] * parts).sum(axis=0), prepend=0.0).astype(np.int64)
    if late:
        kept = 1 - min(float(number.sum()) / max(facts.count, 1), 1.0)
        counts = np.diff(np.rint(np.cumsum(counts) * kept), prepend=0.0).astype(np.int64)
    counts[: top + 1] += waits
    index = np.flatnonzero(counts)
    corrected = replace(
        base, index=index, counts=counts[index], reported_percentiles=((), ()), reported_stats={}
    )
    return corrected.with_run(corrected="us")
