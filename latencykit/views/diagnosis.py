"""Diagnoses of stalls and coordinated omission: sentences, record, text, sections of the page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypedDict

import numpy as np

from latencykit._records import record
from latencykit._text import brief_list, esc, format_items, option, printable
from latencykit._typing import PercentileName
from latencykit.analysis.diagnosis import Diagnosis, Method, Verdict
from latencykit.analysis.explanations import COMPLETE, EXPLANATIONS, OMISSION, TITLES
from latencykit.analysis.omission import BOUND, SPOILED, VERDICT
from latencykit.core.consistency import contradiction
from latencykit.core.histogram import Histogram
from latencykit.core.percentile_rows import statistic_text
from latencykit.core.quantiles import is_resolved, median
from latencykit.core.repr_html import verdict_html
from latencykit.core.run import code_of
from latencykit.core.summary import Summary
from latencykit.units import (
    NANOSECONDS,
    format_count,
    format_duration,
    format_estimate,
    format_percentile,
    percentile_name,
)
from latencykit.views.markup import as_sentence, badge, bullets, section, table
from latencykit.views.tables import Table, csv_unit
from latencykit.views.values import Span, UnitFrom, number, percent, plain, record_from, value_text

if TYPE_CHECKING:
    from latencykit.views.page_series import PageSeries


# ------------------------------------------------------------
# What a diagnosis says: fact, consequence, how sure.


@record()
class TextRules:
    """What sentences name, and how exactly; chosen on the eight cases of the how-to."""

    # of the longest stall: others are about as long
    alike: float = 0.95
    # that are named beside the verdict, from which probability on,
    alternatives: int = 3
    min_named: float = 1e-4
    # and of an open one
    min_possible: float = 0.01
    # shown as "more than"
    nearly_sure: float = 0.999
    # decades by which an observation speaks against an explanation
    against: float = 0.3
    # from which on numbers have no fraction
    whole: int = 1000
    # percentile of which service times speak, if it is supported
    percentile: float = 99.0


TEXT = TextRules()


def sentences_of(result: Diagnosis) -> tuple[str, ...]:
    """Return fact, consequence, how sure: what decides the verdict comes first."""
    findings = {code: _finding_text(result, code) for code in result.findings}
    first = [findings.pop(code) for code in _FACTS if code in findings]
    stall, left, sure = _stall_text(result), result.left, _how_sure(result)
    if result.verdict == "omits":
        texts = [stall, _missing_text(result), sure]
    elif result.verdict == "clean" and left and left.timed and not len(result.detected_stalls):
        due = f"{_due_text(result)}, within what chance allows: the slow ones delayed no others"
        texts = [f"{stall}; others were sent meanwhile", due, sure]
    elif result.verdict == "clean":
        stalls = "stall" if left is not None and left.length.size == 1 else "stalls"
        need = f"the percentiles include the {stalls} and need no correction"
        even = left is not None and not left.timed and bool(left.is_uniform.any())
        if not even and not len(result.detected_stalls):  # no sentence names a stall
            need = findings.pop("already-corrected", "")
        spread = "latencies are spread evenly up to that, as a stall recorded in full leaves them"
        texts = [stall, _due_text(result) or (spread if even else ""), need, sure]
    elif result.verdict == "no stall":
        # Why no stall can have hidden requests, and of which length of stall that speaks.
        longest, bound = _slowest(result), result.bound
        if "overload" in result.findings and result.longest < result.backlog / 2:
            texts = []  # each request kept the next one from being sent
        elif bound is None or not bound.others:
            kept = f"the slowest request took {longest} and kept no other from being sent"
            unseen = "a stall of the server was not seen, so how the load generator treats one is"
            texts = [kept, f"{unseen} not known"]
        else:
            length = _seconds_text(bound.stall)
            fact = f"no stall of all connections lasted longer than {length}; the slowest request "
            fact += f"took {longest}"
            if len(result.detected_stalls) and left is not None:
                fact = stall
            moved = (
                "with all requests that it may have kept from being sent, neither the mean nor a "
                "supported percentile would be higher by a tenth"
            )
            untested = "how the load generator treats a longer stall is not tested by this run"
            texts = [fact, moved, untested]
    elif result.verdict == "service times":
        texts = [*_service_times(result)]
    else:
        texts = [stall, _due_text(result)]
    texts = [*texts, *first] if result.verdict in ("omits", "clean") else [*first, *texts]
    texts += findings.values()
    if result.verdict == "unknown":
        texts.append(_why_unknown(result))
    return tuple(text for text in texts if text)


_FACTS = ("contradicts-itself", "overload")
"""Findings that come before what else is said."""

_LOST = {"lost-to-timeouts", "clipped"}
"""Findings on requests that took longer than a timeout."""

_FINDINGS = {
    "contradicts-itself": "{contradiction}",
    "overload": "overload: the server kept up with {achieved} of {offered} per second; the backlog "
    "of {backlog} explains the slowest request ({longest})",
    "overload, dropped": "overload: {share} % of what was due was dropped, because all users were "
    "waiting for replies",
    "overload, late": "overload: {speed} of {offered} per second were sent, the last ones "
    "{backlog} late; the latencies leave that wait out",
    "over-corrected": "the correction adds more slow requests than fit into the run",
    "already-corrected": "{corrected}",
    "lost-to-timeouts": "{timeouts} timed out; {their} not in the data",
    "dropped": "{dropped} due and dropped, and {have} no latency",
    "unfinished": "{unfinished} still in flight at the end, without a latency",
    "clipped": "many requests took {longest}, the maximum: a timeout, or the highest value that "
    "the recorder tracks",
    "clipped, censored": "{censored} known only to have taken more than {bound}",
    "failed-in-stalls": "many requests failed{when}; the latencies do not include them",
    "fewer-than-due": "only {count} of {due} requests that were due have a latency",
}
"""Findings by their codes."""

_CORRECTED = {
    None: "",
    "us": "already corrected by back-filling: do not correct it again",
    "tool": "already corrected by the tool: do not correct it again",
    "schedule": "each request is timed from its scheduled start: no correction is needed",
}
"""Sentences by who took care of omission."""


def _finding_text(result: Diagnosis, code: str) -> str:
    """A finding as a sentence, with its numbers."""
    run, raw, length = result.run, result.raw, result.duration or 1.0
    censored = 0 if isinstance(raw, Summary) else raw.censored
    count, bound = (raw.count or 0) + censored, getattr(raw, "censored_at", 0.0)
    if code == "clipped" and censored:
        code = "clipped, censored"
    elif code == "overload" and not result.backlog:
        code = "overload, dropped"
    elif code == "overload" and result.longest < result.backlog / 2:
        code = "overload, late"
    return _FINDINGS[code].format(
        share=f"{100 * run.dropped / max(result.due, count + run.failed + run.dropped, 1):.2g}",
        speed=_speed(count / length),
        contradiction=contradiction(raw) if code == "contradicts-itself" else "",
        achieved=_speed(run.achieved or count / length),
        offered=_speed(result.due / length),
        backlog=_seconds_text(result.backlog),
        longest=_seconds_text(result.longest),
        corrected=_CORRECTED[result.corrected_by],
        timeouts=format_items(run.timeouts, "request"),
        their="its latency is" if run.timeouts == 1 else "their latencies are",
        dropped=f"{format_items(run.dropped, 'request')} {_were(run.dropped)}",
        when=" during stalls" if _is_samples(result) else ", perhaps during stalls",
        have="has" if run.dropped == 1 else "have",
        unfinished=f"{format_items(run.unfinished, 'request')} {_were(run.unfinished)}",
        count=format_count(count),
        due=format_count(result.due),
        censored=f"{format_items(censored, 'request')} {'is' if censored == 1 else 'are'}",
        bound=format_duration(bound) if math.isfinite(bound) else "all others",
    )


def _stall_text(result: Diagnosis) -> str:
    """What happened: when and for how long nothing was answered, or how slow the slowest were."""
    left, stalls = result.left, result.detected_stalls
    if left is None or result.explained is None:
        return ""
    k, number = result.explained.decisive, left.length.size
    longest = _seconds_text(float(left.length.max()))
    if left.length.min() < TEXT.alike * left.length.max():
        longest = f"{_seconds_text(float(left.length.min()))} to {longest}"
    if not left.timed or not len(stalls):
        number, rest = _as_slow(result)
        took = f"the slowest request took {_slowest(result)}"
        if number > 1:
            took = f"{format_count(number)} requests took about {_slowest(result)}"
            took = took.replace("about ≥", "at least")
        return f"{took}, the next slowest {format_duration(rest)}" if rest else took
    if number > 1:
        return f"nothing was answered during {number} stalls of {longest}"
    if left.ended[k]:
        return f"until the end of the run, nothing was answered for {longest}"
    begin = float(stalls.start[int(stalls.duration.argmax())])
    since = f"from {_moment(begin)} on" if begin > 0 else "from the start of the run"
    return f"{since}, nothing was answered for {longest}"


def _as_slow(result: Diagnosis) -> tuple[int, float]:
    """How many requests took about as long as the slowest, and how long the next; 0 if unknown."""
    raw, left = result.raw, result.left
    if isinstance(raw, Summary):
        return 1, 0.0
    counted, longest = raw.counted, max(raw.censored_at if raw.censored else 0.0, raw.max)
    beyond, below = counted.low > TEXT.alike * longest, counted.high <= TEXT.alike * longest
    number, most = (int(counted.counts[part].sum()) for part in (beyond, ~below))
    most += raw.censored
    number += raw.censored if raw.censored_at > TEXT.alike * longest else 0
    if left is not None:  # in a wide bucket, as many as waited
        number = max(number, min(most, round(float(left.throughout.sum()))))
    rest = int(np.where(below, counted.high, -1.0).argmax())
    known = below[rest] and number == most and is_resolved(counted.low[rest], counted.high[rest])
    return max(number, 1), float(counted.high[rest]) if known else 0.0


def _slowest(result: Diagnosis) -> str:
    """The latency of the slowest request: a range where the source does not resolve it."""
    raw = result.raw
    if isinstance(raw, Histogram) and raw.count and not is_resolved(*raw.bounds("max")):
        return statistic_text(raw, "max")
    return _seconds_text(result.longest)


def _missing_text(result: Diagnosis) -> str:
    """How many requests were due in the stalls, and how many of them are missing."""
    left = result.left
    assert left is not None
    omitted = float(left.omitted.sum())
    due = omitted + float(left.waited.sum())
    waited = round(float(median(left.throughout)))
    sent = f"the {format_count(waited)} that were sent waited for their replies"
    if waited <= 1:
        sent = "the 1 that was sent waited for its reply"
    if left.length.size > 1:
        sent = f"{format_count(max(due - omitted, waited))} were sent"
    about, show = ("", format_count) if _is_samples(result) else ("about ", format_estimate)
    late = result.explained is not None and (
        result.explained.probability["catches up"] > result.explained.probability["waits"]
    )
    fate = "were sent late and timed from then" if late else "are missing"
    return (
        f"at {_speed(left.rate)}/s, {about}{show(due)} requests were due in that time: "
        f"{sent}; {show(omitted)} {fate}"
    )


def _due_text(result: Diagnosis) -> str:
    """How many requests were due in the stalls, and how many of them are recorded."""
    left = result.left
    if left is None or not left.due.sum() >= 1 or not (left.sends_known or result.rate):
        return ""  # the rate is a guess
    about, show = ("", format_count) if _is_samples(result) else ("about ", format_estimate)
    there = float(left.waited.sum())
    seen = len(result.detected_stalls) > 0 or left.hidden > 0
    all_due = result.verdict == "clean" and seen
    due = float(left.due.sum()) if all_due else there + float(left.omitted.sum())
    when = "in that time"
    if left.timed and not len(result.detected_stalls):  # no sentence names a time
        when = "while slow requests were in flight"
        if not _is_samples(result) and result.verdict != "clean":
            return ""
    if left.timed and not _is_samples(result):  # a log shows what waited, and what is missing
        due, waited = float(left.due.sum()), float((left.throughout + left.partial).sum())
        there = max(there, min(waited, due), due - float(left.missing.clip(0, left.due).sum()))
    text = f"at {_speed(left.rate)}/s, {about}{show(due)} requests were due {when}"
    if all_due:
        return f"{text}, and all of them are recorded"
    if not left.timed:  # which requests of a histogram were among these is not known
        return "" if result.verdict == "clean" else text
    recorded = max(round(there), 1)
    return f"{text}; {show(recorded)} {'is' if recorded == 1 else 'are'} recorded"


def _service_times(result: Diagnosis) -> tuple[str, ...]:
    """What a loop without a schedule measures, and what users may see instead."""
    bound, number = result.bound, result.connections
    loop = "each connection waited for its reply before it sent the next request"
    if number:
        who = "1 connection" if number == 1 else f"{format_count(number)} connections"
        loop = f"{who}, {'which' if number == 1 else 'each of which'} waited for its reply before "
        loop += "it sent the next request"
    speed = result.rate or (result.raw.count or 0) / (result.duration or math.inf)
    at = f" at {_speed(speed)}/s" if speed else ""
    lost = not _LOST.isdisjoint(result.findings)
    if result.corrected_by:
        means = "the percentiles estimate what users would have seen: compare them with no others"
        if lost:
            means = "without what timed out, and what was due meanwhile, percentiles are too low"
        return f"{loop}; the tool added the requests that it did not send", means
    texts = [f"{loop}; a schedule to compare with is missing"]
    most = _most_text(result) if result.most else ""
    if most:
        more = f": {most}, if slow requests were stalls of the server"
    else:
        lacks = "percentiles and the slowest request would show"
        if lost or result.pause > result.longest:
            lacks = "what is not recorded would show"
        elif bound is not None:
            lacks = f"{format_items(result.raw.count or 0, 'request')} cannot show"
        more = f"; how much more, {lacks}"
    texts.append(f"users who arrive on their own{at} may see more{more}")
    if len(result.detected_stalls):
        texts.append(_stall_text(result))
    elif pause := _pause_text(result):
        texts.append(pause)
    elif result.explained and result.left and not lost:
        slow, _ = _as_slow(result)
        alone = result.explained.probability["isolated"]
        shows = "no stall shows" if alone >= 0.5 else "whether the server stopped is open"
        texts.append(
            f"{shows}: {format_items(slow, 'request')} took about {_seconds_text(result.longest)}"
        )
    texts.append("a server that these connections keep busy is another question: see load")
    return tuple(texts)


def _most_text(result: Diagnosis) -> str:
    """The most that the highest supported percentile up to p99 can be."""
    rows = () if result.bound is None else result.bound.percentiles
    for p, _, high in reversed(rows):
        if p <= TEXT.percentile:
            return f"{percentile_name(p)} up to {format_duration(high)}"
    return ""


def _how_sure(result: Diagnosis) -> str:
    """The probability of the verdict, and what is not excluded."""
    explained = result.explained
    if explained is None:
        return ""
    names = OMISSION if result.verdict == "omits" else COMPLETE
    probability = sum(explained.probability[name] for name in names)
    if result.corrected_by and probability < VERDICT.sure:
        return ""  # the tool's own statement decides, not what its counts look like
    rest = [
        (name, f"{EXPLANATIONS[name]} ({_percent(p)})")
        for name, p in result.explanations
        if name not in names and p >= TEXT.min_named
    ]
    rest = sorted(rest[: TEXT.alternatives], key=lambda pair: pair[0] == "none of these")
    word = f"{'sure' if result.sure else 'likely'} ({_percent(probability)})"
    if not result.connections_known:
        those = format_items(result.connections or 1, "connection")
        word += f"; corrected as if {those} sent all requests: with more "
        word += f"({option('connections')}) fewer are missing"
    left = f"; not excluded: {', '.join(text for _, text in rest)}" if rest else ""
    return f"{word}{left}"


def _pause_text(result: Diagnosis) -> str:
    """When nothing was recorded, if nothing waited for that time."""
    pause = result.detected_stalls.pause
    if pause is None:
        return ""
    return (
        f"nothing was recorded for {_seconds_text(result.pause)}, from "
        f"{_moment(pause[0])} on: traffic paused, or what happened then is not in the file"
    )


def _why_unknown(result: Diagnosis) -> str:
    """What keeps an unknown verdict open."""
    run, explained = result.run, result.explained
    if result.raw.unit not in NANOSECONDS:
        return (
            f"the values have no unit of time; {option('unit', 'ms', repr('ms'))} makes them times"
        )
    if not (result.raw.count or 0) and not getattr(result.raw, "censored", 0):
        if run.failed:
            return f"all {format_count(run.failed)} requests failed; no latency was recorded"
        if not isinstance(result.raw, Summary):
            return "no latency was recorded"
    if SPOILED & set(result.findings):
        return ""
    if not result.extent_known:
        return "how many requests there were, or how long the longest took, is not reported"
    count = result.raw.count
    if count and count < BOUND.min_requests:
        few = f"{format_items(count, 'request')} cannot show how the load generator treats a stall"
        return f"the slowest request took {_slowest(result)}; {few}"
    unknown, most = "whether the load generator waits for replies is not known", _most_text(result)
    if result.bound and most:
        others = format_items(result.bound.others, "request")
        unknown += f": if it does, at most {others} {_were(result.bound.others)} not sent, {most}"
    if explained is not None:
        omission = explained.omission
        pairs = [("omission", omission)] + [
            (EXPLANATIONS[name], p) for name, p in result.explanations if name not in OMISSION
        ]
        shown = sorted(
            (pair for pair in pairs if pair[1] >= TEXT.min_possible), key=lambda pair: -pair[1]
        )
        if shown and shown[0][1] >= VERDICT.likely:  # what the stall left fits, but not how it sent
            return unknown
        return "possible: " + ", ".join(
            f"{name} {_percent(p)}" for name, p in shown[: TEXT.alternatives + 1]
        )
    if pause := _pause_text(result):
        return pause
    if isinstance(result.raw, Summary):
        return "these statistics do not show how many requests were slow"
    return f"the slowest request took {_slowest(result)}; {unknown}"


def advice_of(result: Diagnosis) -> str:
    """Return what would decide an ``unknown``, or what to do about an ``omits``."""
    has = set(result.findings).__contains__
    if result.verdict == "omits":
        return "prefer an open-loop generator that times requests from their scheduled start"
    if result.verdict == "no stall":
        return "to test it, freeze a server: latencykit ctrlz"
    timeout, lost = "a timeout longer than any stall", not _LOST.isdisjoint(result.findings)
    beyond = getattr(result.raw, "censored", 0) and not result.run.timeouts
    again = f"measure again with {'a recorder that tracks longer latencies' if beyond else timeout}"
    if result.verdict == "service times":
        paced = result.run.loop == "paced" and not result.expected_interval
        decides = f"{option('expected-interval')} would decide it" if paced else ""
        return again if lost else decides
    if result.verdict != "unknown" or result.raw.count == 0:
        return ""
    if has("contradicts-itself"):
        return "check how the tool computes its statistics, or read one row per request"
    if lost:
        return again
    if has("failed-in-stalls"):
        return f"count failed requests as misses, or measure with {timeout}"
    if has("over-corrected"):
        if result.run.tool == "wrk":
            return "measure with wrk2 -R, which sends by a schedule, or with hey"
        return "read the tool's uncorrected values instead"
    if result.raw.count and result.raw.count < BOUND.min_requests:
        return "measure for longer"
    stated, rate, number = result.due > 0, option("rate"), option("connections")
    if result.timed is None:
        need = "" if stated and result.connections else f"{rate} and {number}, or "
        return f"{need}one row per request with its start would decide it"
    need = "" if stated else f"{rate}, or "
    return (
        f"{need}a record of when each request was due would decide it; or freeze the server for "
        "longer: latencykit ctrlz"
    )


def terms_text(name: str, terms: dict[str, float]) -> str:
    """Return what speaks against an explanation, the strongest first."""
    against = sorted((value, test) for test, value in terms.items() if value <= -TEXT.against)
    text = EXPLANATIONS[name]
    if not against:
        return f"{text}: as predicted"
    return f"{text}: against it {', '.join(f'{t} (10^{v:.1f})' for v, t in against)}"


def _percent(p: float) -> str:
    if p > TEXT.nearly_sure:
        return "> 99.9 %"
    return f"{100 * p:.3g} %" if p >= TEXT.min_possible else f"{100 * p:.1g} %"


def _speed(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= TEXT.whole else f"{rate:.3g}"


def _moment(seconds: float) -> str:
    return f"{seconds:,.1f} s" if seconds >= 1 else _seconds_text(seconds)


def _is_samples(result: Diagnosis) -> bool:
    return hasattr(result.timed, "duration") and hasattr(result.timed, "intended")


def _seconds_text(seconds: float) -> str:
    """A time that is given in seconds."""
    return format_duration(seconds * 1e9)


def _were(number: int) -> str:
    return "was" if number == 1 else "were"


_USERS = "users, up to"


def _correction(verdict: Verdict) -> str:
    """Return what the corrected percentiles are."""
    return "had they been sent" if verdict == "omits" else "if it was omission"


def html_of(result: Diagnosis) -> str:
    """Return the diagnosis as a notebook shows it."""
    record, (fact, *others) = diagnosis_record("", result), result.sentences
    (_, raw), *further = _shown(record).items()
    correction, corrected = further[-1] if further else ("", {})
    rows = [(percentile_name(float(p)), raw[p], corrected.get(p, "")) for p in record["raw"]]
    lines = [*others, *result.detected_stalls.notes, result.advice]
    title, title_of = result.run.source or result.run.tool, TITLES[result.verdict]
    title = title or "this measurement"
    return verdict_html(title, result.verdict, title_of, fact, correction, rows, lines)


def text_of(result: Diagnosis) -> str:
    """Return the diagnosis as a console shows it."""
    return diagnosis_text([diagnosis_record(result.verdict, result)], "table")


# ------------------------------------------------------------
# Its record, paragraph, and sections of the page.


class EvidenceRecord(TypedDict):
    """A test and what it found."""

    test: str
    statistic: float | None
    threshold: float | None
    finding: str


class ExplanationRecord(TypedDict):
    """An explanation of the stalls."""

    name: str
    probability: float


class StallRecord(TypedDict):
    """A stall: times in seconds from the start of the series, latencies in nanoseconds."""

    start: float
    end: float
    duration: float
    worst: float | None
    """Slowest request, ns."""
    missing: int
    """Requests that the schedule implies and the source lacks."""


class DiagnosisRecord(TypedDict):
    """The diagnosis of a series."""

    name: str
    count: int | None
    unit: Literal["ns", "none"]
    unit_from: UnitFrom
    verdict: Verdict
    """Whether coordinated omission was detected."""
    sure: bool | None
    """The probability is .99 or more; null for an unknown verdict."""
    explanations: list[ExplanationRecord]
    """The most likely first; empty where no stall shows."""
    findings: list[str]
    """Sentences: the fact, its consequence, how sure."""
    evidence: list[EvidenceRecord]
    """By explanation: how much less likely the stall that tells most is, in decades."""
    advice: str
    """What to do next."""
    expected_interval: float | None
    """Nanoseconds between requests of one connection."""
    stalls: list[StallRecord]
    raw: dict[PercentileName, float | None]
    """Value as measured, by percentile."""
    raw_ranges: dict[str, Span]
    """Bounds of percentiles, and of the ``mean``, that the source does not resolve."""
    corrected_ranges: dict[str, Span]
    corrected: dict[PercentileName, float | None]
    """Value after correction, by percentile."""
    raw_mean: float | None
    corrected_mean: float | None
    range: dict[PercentileName, list[float]]
    """Of service times: what users who arrive on their own see, as recorded and at most."""
    method: Method | None
    notes: list[str]


def diagnosis_record(name: str, diagnosis: Diagnosis) -> DiagnosisRecord:
    """Return a diagnosis as plain values: times in seconds from the start, latencies in ns."""
    stalls = diagnosis.detected_stalls
    worst = np.round(stalls.worst)
    columns = (stalls.start, stalls.end, stalls.duration, worst, stalls.missing)
    ranges = _ranges(diagnosis.raw, diagnosis)
    corrected_ranges = _ranges(diagnosis.corrected, diagnosis)
    return record_from(
        DiagnosisRecord,
        diagnosis,
        name=name,
        count=getattr(diagnosis.raw, "requests", diagnosis.raw.count),
        unit="none" if diagnosis.run.unit == "none" else "ns",
        unit_from=diagnosis.run.unit_from,
        explanations=[
            {"name": name, "probability": plain(share)} for name, share in diagnosis.explanations
        ],
        findings=list(diagnosis.sentences),
        evidence=[
            record_from(EvidenceRecord, piece, statistic=plain(max(piece.statistic, -99.0)))
            for piece in diagnosis.evidence
        ],
        stalls=[
            record_from(StallRecord, dict(zip(StallRecord.__annotations__, row, strict=True)))
            for row in zip(*(column.tolist() for column in columns), strict=True)
        ],
        raw={format_percentile(p): number(value) for p, value, _ in diagnosis.rows},
        raw_ranges=ranges,
        corrected_ranges=corrected_ranges,
        corrected={
            format_percentile(p): number(value)
            for p, _, value in diagnosis.rows
            if value is not None
        },
        raw_mean=_mean(diagnosis.raw, ranges),
        corrected_mean=_mean(diagnosis.corrected, corrected_ranges),
        range={
            format_percentile(p): [plain(low), plain(high)]
            for p, (low, high) in diagnosis.most.items()
        },
        notes=[*stalls.notes, *filter(None, [diagnosis.run.unit_note])],
    )


def _mean(data: Histogram | Summary | None, ranges: Mapping[str, Span]) -> float | None:
    if data is None or isinstance(data, Summary):
        return None if data is None else number(data.stats.get("mean"))
    return number(data.mean) if data.count and "mean" not in ranges else None


def _ranges(data: object, diagnosis: Diagnosis) -> dict[str, Span]:
    """Bounds of the percentiles and of the mean that the source does not resolve."""
    if not isinstance(data, Histogram) or not data.count:
        return {}
    rows = data.evidence().supported_rows([p for p, _, _ in diagnosis.rows])
    wide = {
        format_percentile(row.percentile): (row.bucket_low, row.bucket_high)
        for row in rows
        if not row.resolved
    }
    if not is_resolved(*data.bounds("mean")):
        wide["mean"] = data.bounds("mean")
    return {name: {"low": number(low), "high": number(high)} for name, (low, high) in wide.items()}


def diagnosis_text(
    records: Sequence[DiagnosisRecord],
    style: str,
    out_unit: str | None = None,
    *,
    every: bool = False,
    verbose: bool = False,
    left_out: int = 0,
) -> str:
    """Return a paragraph per diagnosis, or a row each as CSV or Markdown."""
    # Of several series the first one has a paragraph, the others a sentence, unless all is wanted
    # (`verbose`: with the evidence for each explanation); `left_out` more series have no records.
    if style == "table" and (every or verbose or len(records) == 1):
        return "\n\n".join(
            _paragraph(record, out_unit, every=every, verbose=verbose) for record in records
        )
    if style == "table":
        first, *others = records
        sentences: dict[str, list[str]] = {}
        for record in others:
            text = f"{TITLES[record['verdict']]}: {record['findings'][0]}"
            sentences.setdefault(text, []).append(printable(record["name"], 40))
        lines = [f"{brief_list(names)}: {text}" for text, names in sentences.items()]
        if left_out or len(lines) > _BRIEFLY:
            rest = left_out + sum(map(len, [*sentences.values()][_BRIEFLY - 1 :]))
            lines[_BRIEFLY - 1 :] = [f"and {rest:,} more series: --notes or --series NAME"]
        brief = _paragraph(first, out_unit)
        return "\n\n".join([brief, "\n".join(lines)])
    table, suffix = Table(style, out_unit), csv_unit([{"unit": "ns"}], style, out_unit)
    for record in records:
        count, stalls = record["count"], len(record["stalls"])
        table.add(
            {
                "series": record["name"],
                "requests": table.either(count, format_count(count or 0)),
                "verdict": record["verdict"],
                "sure": table.either(
                    record["sure"], {True: "yes", False: "no", None: ""}[record["sure"]]
                ),
                "why": ". ".join(record["findings"]),
                f"expected interval{suffix}": table.value(record["expected_interval"], "ns"),
                "stalls": table.either(stalls, str(stalls)),
                "method": record["method"] or "",
            }
        )
    return table.render(left=8)


_BRIEFLY = 4
"""Further series of a text, unless all of them are wanted."""

_USUAL = ("50", "90", "99", "99.9")
"""Percentiles of a text."""


def _paragraph(
    record: DiagnosisRecord, out_unit: str | None, *, every: bool = False, verbose: bool = False
) -> str:
    """The fact and its consequence, the numbers, and how sure: eight lines."""
    texts = [as_sentence(text) for text in record["findings"]]
    table = Table(out_unit=out_unit)
    usual = [name for name in record["raw"] if name in _USUAL]
    shown = list(record["raw"]) if every or not usual else usual
    for heading, cells in _shown(record, out_unit).items():
        named = {percentile_name(float(name)): cells.get(name, "") for name in shown}
        table.add({"": heading, "mean": cells["mean"], **named})
    lines = texts[:2]
    if record["raw"]:
        lines += table.render(optional=("p50",), indent=2).splitlines()
    lines += texts[2:]
    if verbose:
        lines += [f"{piece['statistic']:6.1f}  {piece['finding']}" for piece in record["evidence"]]
    if every:
        lines += [
            f"stall from {stall['start']:.3f} s to {stall['end']:.3f} s, worst "
            f"{value_text(stall['worst'], 'ns')}, {format_count(stall['missing'])} requests missing"
            for stall in record["stalls"]
        ]
    lines += [text for text in record["notes"] if code_of(text) != "unit"][: None if every else 1]
    if record["advice"]:
        lines.append(as_sentence(record["advice"]))
    heading = f"{printable(record['name'])}: {TITLES[record['verdict']]}"
    return "\n".join([heading, *(f"  {line}" for line in lines)])


def _shown(record: DiagnosisRecord, out_unit: str | None = None) -> dict[str, dict[str, str]]:
    """Mean and percentiles by name, as recorded and otherwise: ranges where these are known."""
    table, unit, corrected = Table(out_unit=out_unit), record["unit"], record["corrected"]
    rows = {"as recorded": (record["raw_mean"], record["raw"], record["raw_ranges"])}
    if corrected:
        heading = _correction(record["verdict"])
        rows[heading] = record["corrected_mean"], corrected, record["corrected_ranges"]
    if record["range"]:
        rows[_USERS] = None, {name: high for name, (_, high) in record["range"].items()}, {}
    return {
        heading: {
            name: str(table.bounded(value, ranges.get(name), unit))
            for name, value in {"mean": mean, **values}.items()
        }
        for heading, (mean, values, ranges) in rows.items()
    }


_SHADED, _LISTED, _LABELLED = 100, 20, 4
"""Numbers of the longest stalls that are shaded, listed, and labelled."""


def verdict_badge(entry: PageSeries) -> str:
    """Return the verdict as a coloured word, and its sentence."""
    if entry.diagnosis is None or entry.diagnosis.verdict == "unknown":
        return ""
    return f"{badge(entry.diagnosis.verdict)} {esc(as_sentence(entry.diagnosis.summary))}"


def stalls_model(series: Sequence[PageSeries]) -> list[dict[str, object]]:
    """Return the stalls that the timeline shades."""
    model = []
    for entry in series:
        if entry.diagnosis is None:
            continue
        stalls = entry.diagnosis.detected_stalls
        labelled = set(entry.longest(_LABELLED)) if len(stalls) <= _LISTED else set()
        for k in entry.longest(_SHADED):
            label = ""
            if k in labelled:
                label = f"stall {format_duration(float(stalls.duration[k]) * 1e9, 2)}"
                missing = int(stalls.missing[k])
                if missing and entry.omits:
                    label += f" · ~{format_estimate(missing)} requests missing"
            start, end = (float(side[k]) for side in (stalls.start, stalls.end))
            model.append({"start": start, "end": end, "label": label})
    return model


def stalls_section(series: Sequence[PageSeries]) -> str:
    """Return a table of stalls per series, each with a button that selects its time."""
    parts = []
    for entry in series:
        if entry.diagnosis is None or not len(entry.diagnosis.detected_stalls):
            continue
        stalls = entry.diagnosis.detected_stalls
        rows: list[list[str]] = []
        count = format_count if _is_samples(entry.diagnosis) else format_estimate
        for k in entry.longest(_LISTED):
            start, end = (float(side[k]) for side in (stalls.start, stalls.end))
            show = f"<button type='button' data-from='{start!r}' data-to='{end!r}'>Show</button>"
            rows.append(
                [
                    str(len(rows) + 1),
                    _seconds(start),
                    _seconds(end),
                    format_duration((end - start) * 1e9),
                    format_duration(float(stalls.worst[k])),
                    count(int(stalls.missing[k])),
                    percent(float(stalls.share[k])),
                    "" if entry.slots is None else show,
                ]
            )
        caption = ""
        if len(stalls) > len(rows):
            caption = f"{format_count(len(stalls))} stalls; the {len(rows)} longest are listed."
        header = ["", "from", "to", "length", "worst request", "requests missing", "delayed", ""]
        parts += [
            f"<p><b>{esc(entry.name)}</b></p>" if len(series) > 1 else "",
            table(header, rows, caption),
            bullets(map(as_sentence, stalls.notes)),
        ]
    return section("stalls", "Stalls", *parts)


def _seconds(moment: float) -> str:
    """A moment to the millisecond, as ``--from`` and ``--to`` take it."""
    return f"{moment:.3f}".rstrip("0").rstrip(".") + " s"


def omission_section(series: Sequence[PageSeries]) -> str:
    """Return raw percentiles beside corrected ones, with the evidence, for all that omit."""
    parts = []
    for entry in series:
        diagnosis = entry.diagnosis
        if diagnosis is None or diagnosis.verdict != "omits":
            continue
        raw, corrected, *_ = [*_shown(diagnosis_record("", diagnosis)).values(), {}]
        rows = [
            [percentile_name(p), esc(raw[key]), esc(corrected.get(key) or "not known")]
            for p, key in ((p, format_percentile(p)) for p, *_ in diagnosis.rows)
        ]
        parts += [
            f"<p>{verdict_badge(entry)}</p>",
            table(["", "as recorded", _correction("omits")], rows, esc(entry.name)),
            bullets(map(as_sentence, [*diagnosis.sentences[1:], diagnosis.advice])),
        ]
    return section("omission", "What the measurement left out", *parts)


def doubts(entry: PageSeries) -> list[str]:
    """Return why coordinated omission is not judged, or what users may see instead."""
    diagnosis = entry.diagnosis
    if diagnosis is None or diagnosis.verdict in ("omits", "clean"):
        return []
    texts = (*diagnosis.sentences[1:], diagnosis.advice)
    if diagnosis.verdict == "unknown":
        texts = (diagnosis.summary, *texts)
    return [as_sentence(text) for text in texts if text]
