"""The result of `diagnose`, and every sentence about it: fact, consequence, how sure."""

from __future__ import annotations

import math
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from latencykit._arrays import Value
from latencykit._records import record
from latencykit._text import format_items, option
from latencykit.analysis.explanations import COMPLETE, EXPLANATIONS, OMISSION
from latencykit.core.consistency import contradiction
from latencykit.core.histogram import STANDARD_PERCENTILES
from latencykit.core.repr_html import verdict_html
from latencykit.core.summary import Summary
from latencykit.units import (
    NANOSECONDS,
    format_count,
    format_duration,
    format_row,
    format_value,
    percentile_name,
)

if TYPE_CHECKING:
    import pandas as pd

    from latencykit.analysis.explanations import Explained
    from latencykit.analysis.stall_records import StallRecord
    from latencykit.analysis.stalls import Stalls
    from latencykit.core.histogram import Histogram
    from latencykit.core.histogram_log import HistogramLog
    from latencykit.core.run import Run
    from latencykit.core.samples import Samples

Verdict = Literal["omits", "clean", "no stall", "service times", "unknown"]
Method = Literal["backfill", "retime"]

TITLES: dict[str, str] = {
    "omits": "requests were omitted",
    "clean": "nothing was omitted",
    "no stall": "no stall that could hide requests",
    "service times": "service times",
    "unknown": "undecided",
}
"""Verdicts as headings have them."""


@record()
class Bound:
    """The most that waiting for replies may have hidden.

    Attributes
    ----------
    stall : float
        Seconds of the longest stall that the run leaves room for.
    others : int
        Requests that may not have been sent, at most.
    mean : (float, float)
        As recorded, and at most, ns.
    percentiles : tuple of (percentile, as recorded, at most)
        Supported percentiles, ns.
    material : bool
        The mean or one of them may be higher by more than a tenth.
    """

    stall: float
    others: int
    mean: tuple[float, float]
    percentiles: tuple[tuple[float, float, float], ...]
    material: bool


@record()
class Evidence:
    """What one explanation makes of the decisive stall: one line of a diagnosis."""

    test: str  # the explanation
    statistic: float  # decades by which the record is less likely than what it predicts
    threshold: float  # from which on it explains the record worse than none does
    finding: str  # the observations that speak against it


@record(eq=False)
class Diagnosis(Value):
    """The verdict on a measurement, its evidence, and the corrected distribution.

    Attributes
    ----------
    verdict : {"omits", "clean", "no stall", "service times", "unknown"}
        ``clean`` requires a stall whose delayed requests are all recorded; ``no stall`` that no
        stall that the run leaves room for would move a percentile; ``service times`` a loop that
        waits for replies, without a schedule to compare with.
    sure : bool or None
        The probability is .99 or more; None for ``unknown``.
    findings : tuple of str
        Properties of the run, as codes: ``contradicts-itself``, ``overload``,
        ``already-corrected``, ``over-corrected``, ``lost-to-timeouts``, ``failed-in-stalls``,
        ``fewer-than-due``, ``dropped``, ``unfinished``, ``clipped``.
    explained : Explained or None
        The probability of each explanation; None where no stall shows.
    left : StallRecord or None
        What each stall left behind.
    bound : Bound or None
        The most that may have been omitted; None where the longest request is unknown.
    raw : Histogram or Summary
        The values as measured.
    corrected : Histogram or None
        With the omitted requests; only if omission was detected or is suspected.
    expected_interval : float or None
        Time between two requests of one connection, ns.
    rate, connections, duration : float, int or None
        Requests per second that were due, connections, and seconds of the run, as used.
    longest : float
        Seconds of the longest request, timeouts included.
    due : float
        Requests that a stated rate implies; 0 without one.
    backlog : float
        Seconds of backlog that an overload left; 0 without one.
    corrected_by : str or None
        ``us``, ``tool`` or ``schedule`` if omission is taken care of.
    waits : bool
        The load generator is known, or seen, to wait for replies.
    extent_known : bool
        The number of requests and the longest are known.
    detected_stalls : Stalls
    timed : Samples, HistogramLog or None
        The series over time, if there is one.
    """

    verdict: Verdict
    sure: bool | None
    findings: tuple[str, ...]
    explained: Explained | None
    left: StallRecord | None
    bound: Bound | None
    raw: Histogram | Summary
    corrected: Histogram | None
    expected_interval: float | None
    rate: float | None
    connections: int | None
    duration: float | None
    longest: float
    due: float
    backlog: float
    corrected_by: str | None
    waits: bool
    extent_known: bool
    detected_stalls: Stalls = field(repr=False)
    timed: Samples | HistogramLog | None = field(default=None, repr=False)

    @property
    def method(self) -> Method | None:
        """``retime`` if the source has intended starts, else ``backfill``: by the stalls."""
        if self.corrected is None:
            return None
        return "retime" if self.corrected.run.corrected == "schedule" else "backfill"

    @property
    def explanations(self) -> tuple[tuple[str, float], ...]:
        """Names of the explanations and their probabilities, the most likely first."""
        if self.explained is None:
            return ()
        pairs = self.explained.probability.items()
        return tuple(sorted(pairs, key=lambda pair: -pair[1]))

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """What each explanation makes of the stall that tells most."""
        if self.explained is None:
            return ()
        return tuple(
            Evidence(name, sum(terms.values()), -2.5, _terms_text(name, terms))
            for name, terms in self.explained.terms.items()
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """The fact, its consequence, and how sure that is; a sentence each."""
        return tuple(text for text in _sentences(self) if text)

    @property
    def summary(self) -> str:
        """The fact about the run."""
        return self.sentences[0]

    @property
    def advice(self) -> str:
        """What would decide an ``unknown``, or what to do about an ``omits``."""
        return _advice(self)

    @cached_property
    def stalls(self) -> pd.DataFrame:
        """The stalls: start, end, duration (s), worst (ns), missing (requests), share."""
        return self.detected_stalls.to_frame()

    @property
    def run(self) -> Run:
        """The source's own description of the measurement."""
        return self.raw.run

    @property
    def table(self) -> pd.DataFrame:
        """One row per percentile, up to the highest supported one: raw and corrected value."""
        import pandas as pd

        frame = pd.DataFrame(self.rows, columns=["percentile", "raw", "corrected"], dtype=float)
        return frame.set_index("percentile")

    @cached_property
    def rows(self) -> list[tuple[float, float, float | None]]:
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
    def most(self) -> dict[float, tuple[float, float]]:
        """Of ``service times``: what users who arrive on their own see, as recorded and at most."""
        if self.verdict != "service times" or self.bound is None or self.corrected_by:
            return {}
        return {p: (low, high) for p, low, high in self.bound.percentiles}

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
            rows = data.percentile_rows([p for p, *_ in self.rows]) if data.count else []
            return {
                row.percentile: format_row(
                    replace(row, supported=True), lambda value: format_value(value, data.unit)
                )
                for row in rows
            }

        raw, corrected = texts(self.raw), texts(self.corrected)
        for p, (_, high) in self.most.items():
            corrected[p] = f"up to {format_value(high, self.raw.unit)}"
        rows = [(percentile_name(p), raw.get(p, ""), corrected.get(p, "")) for p, *_ in self.rows]
        title = self.run.source or self.run.tool or "this measurement"
        fact, *others = self.sentences
        lines = [*others, *self.detected_stalls.notes, self.advice]
        return verdict_html(title, TITLES[self.verdict], fact, rows, lines)

    def __repr__(self) -> str:
        unit, most = self.raw.unit, self.most
        lines = [f"{self.verdict}: {TITLES[self.verdict]}", *(f"  {s}" for s in self.sentences)]
        for p, before, after in self.rows:
            text = f"  {percentile_name(p):<8} {format_value(before, unit):>9}"
            if after is not None:
                text += f"  would have been {format_value(after, unit)}"
            elif p in most:
                text += f"  at most {format_value(most[p][1], unit)}"
            lines.append(text)
        return "\n".join([*lines, *([f"  {self.advice}"] if self.advice else [])])


# ------------------------------------------------------------
# Its sentences.


def _sentences(result: Diagnosis) -> tuple[str, ...]:
    """Fact, consequence, how sure: what decides the verdict comes first."""
    findings = {code: text for code in result.findings if (text := _finding_text(result, code))}
    first = [findings.pop(code) for code in _FACTS if code in findings]
    stall = _stall_text(result)
    if result.verdict == "omits":
        return (stall, _missing_text(result), _how_sure(result), *first, *findings.values())
    if result.verdict == "clean" and _is_samples(result) and not len(result.detected_stalls):
        due = f"{_due_text(result)}, within what chance allows: the slow ones delayed no others"
        stall += "; others were sent on meanwhile"
        return (stall, due, _how_sure(result), *first, *findings.values())
    if result.verdict == "clean":
        need = "the percentiles include the stalls and need no correction"
        if result.left is not None and result.left.length.size == 1:
            need = need.replace("the stalls", "the stall")
        return (stall, _due_text(result), need, _how_sure(result), *first, *findings.values())
    if result.verdict == "no stall":
        return (*first, *_nothing_hidden(result), *findings.values())
    if result.verdict == "service times":
        return (*first, *_service_times(result), *findings.values())
    reason = _why_unknown(result)
    if result.explained is None or result.left is None:
        return (*first, *findings.values(), reason)
    return (*first, stall, _due_text(result), *findings.values(), reason)


_FACTS = ("contradicts-itself", "overload")
"""Findings that come before what else is said."""


def _finding_text(result: Diagnosis, code: str) -> str:
    """A finding as a sentence, with its numbers."""
    run, longest = result.run, seconds_text(result.longest)
    count = 0 if result.raw.count is None else result.raw.count
    count += 0 if isinstance(result.raw, Summary) else result.raw.censored
    known = {
        "us": "already corrected by back-filling: do not correct it again",
        "tool": "already corrected by the tool: do not correct it again",
        "schedule": "each request is timed from its scheduled start: no correction is needed",
    }
    if code == "overload":
        speed = count / (result.duration or 1.0)
        if not result.backlog:
            share = run.dropped / max(result.due, count + run.failed + run.dropped)
            return (
                f"overload: {100 * share:.2g} % of what was due was dropped, because all users "
                "were waiting for replies"
            )
        if result.longest < result.backlog / 2:
            return (
                f"overload: {_speed(speed)} of {_speed(result.due / (result.duration or 1.0))} per "
                f"second were sent, the last ones {seconds_text(result.backlog)} late; the "
                "latencies leave that wait out"
            )
        return (
            f"overload: the server kept up with {_speed(run.achieved or speed)} of "
            f"{_speed(result.due / (result.duration or 1.0))} per second; the backlog of "
            f"{seconds_text(result.backlog)} explains the slowest request ({longest})"
        )
    return {
        "contradicts-itself": contradiction(result.raw) or "",
        "over-corrected": "the correction adds more slow requests than fit into the run",
        "already-corrected": known.get(result.corrected_by or "", ""),
        "lost-to-timeouts": (
            f"{format_items(run.timeouts, 'request')} timed out; "
            f"{'its latency is' if run.timeouts == 1 else 'their latencies are'} not in the data"
        ),
        "dropped": (
            f"{format_items(run.dropped, 'request')} {were(run.dropped)} due and dropped, and "
            f"{'has' if run.dropped == 1 else 'have'} no latency"
        ),
        "unfinished": (
            f"{format_items(run.unfinished, 'request')} {were(run.unfinished)} still in flight at "
            "the end, without a latency"
        ),
        "clipped": (
            f"many requests took {longest}, the maximum: a timeout, or the highest value that the "
            "recorder tracks"
        ),
        "failed-in-stalls": (
            "many requests failed, apparently during stalls; the latencies do not include them"
        ),
        "fewer-than-due": (
            f"only {format_count(count)} of {format_count(result.due)} requests that were due have "
            "a latency"
        ),
    }[code]


def _stall_text(result: Diagnosis) -> str:
    """What happened: when and for how long nothing was answered, or how slow the slowest were."""
    left, stalls = result.left, result.detected_stalls
    if left is None or result.explained is None:
        return ""
    k, number = result.explained.decisive, left.length.size
    longest = seconds_text(float(left.length.max()))
    if left.length.min() < 0.95 * left.length.max():
        longest = f"{seconds_text(float(left.length.min()))} to {longest}"
    if not left.timed or not len(stalls):
        return _slowest_text(result, int(max(np.rint(left.throughout[k]), 1)))
    if number > 1:
        return f"nothing was answered during {number} stalls of {longest}"
    if left.ended[k]:
        return f"until the end of the run, nothing was answered for {longest}"
    begin = float(stalls.start[int(stalls.duration.argmax())])
    return f"from {_moment(begin)} on, nothing was answered for {longest}"


def _slowest_text(result: Diagnosis, number: int) -> str:
    raw, longest = result.raw, seconds_text(result.longest)
    if isinstance(raw, Summary) or number >= raw.count:
        return f"the slowest request took {longest}"
    rest = float(raw.percentile(100 * (1 - (number + 0.5) / raw.count)))
    took = f"the slowest request took {longest}"
    if number > 1:
        took = f"{format_count(number)} requests took about {longest}"
    return f"{took}, the next slowest {format_duration(rest)}"


def _missing_text(result: Diagnosis) -> str:
    """How many requests were due in the stalls, and how many of them are missing."""
    left = result.left
    assert left is not None
    omitted = float(left.omitted.sum())
    due = omitted + float(left.waited.sum())
    waited = round(float(np.median(left.throughout)))
    sent = f"the {format_count(waited)} that were sent waited for their replies"
    if waited <= 1:
        sent = "the 1 that was sent waited for its reply"
    if left.length.size > 1:
        sent = f"{format_count(max(due - omitted, waited))} were sent"
    exact = result.timed is not None and _is_samples(result)
    about = "" if exact else "about "
    late = result.explained is not None and (
        result.explained.probability["catches up"] > result.explained.probability["waits"]
    )
    fate = "were sent late and timed from then" if late else "are missing"
    return (
        f"at {_speed(left.rate)}/s, {about}{_rounded(due, exact)} requests were due in that time: "
        f"{sent}; {_rounded(omitted, exact)} {fate}"
    )


def _due_text(result: Diagnosis) -> str:
    """How many requests were due in the stalls, and how many of them are recorded."""
    left = result.left
    if left is None or not left.due.sum() >= 1:
        return ""
    exact = _is_samples(result)
    there = float(left.waited.sum())
    all_due = result.verdict == "clean" and len(result.detected_stalls) > 0
    due = float(left.due.sum()) if all_due else there + float(left.omitted.sum())
    text = f"at {_speed(left.rate)}/s, {'' if exact else 'about '}{_rounded(due, exact)} requests"
    text += " were due in that time"
    if all_due:
        return f"{text}, and all of them are recorded"
    if not left.sends_known:
        slow = round(float((left.throughout + left.partly).sum()))
        return f"{text}; {format_items(slow, 'request')} {were(slow)} as slow"
    recorded = max(round(there), 1)
    return f"{text}; {_rounded(recorded, exact)} {'is' if recorded == 1 else 'are'} recorded"


def _nothing_hidden(result: Diagnosis) -> tuple[str, ...]:
    """Why no stall can have hidden requests, and of which length of stall that speaks."""
    longest = seconds_text(result.longest)
    bound = result.bound
    if "overload" in result.findings and result.longest < result.backlog / 2:
        return ()  # each request kept the next one from being sent
    if bound is None or not bound.others:
        return (
            f"the slowest request took {longest} and kept no other from being sent",
            "a stall of the server was not seen, so how the load generator treats one is not known",
        )
    left, stall = result.left, seconds_text(bound.stall)
    fact = f"no stall of all connections lasted longer than {stall}; the slowest request took "
    fact += longest
    if len(result.detected_stalls) and left is not None:
        fact = _stall_text(result)
    moved = (
        "with all requests that it may have kept from being sent, neither the mean nor a supported "
        "percentile would be higher by a tenth"
    )
    return fact, moved, "how the load generator treats a longer stall is not tested by this run"


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
    if result.corrected_by:
        return (
            f"{loop}; the tool added the requests that it did not send",
            "the percentiles estimate what users would have seen: compare them with no others",
        )
    texts = [f"{loop}; a schedule to compare with is missing"]
    rows = () if bound is None else bound.percentiles
    p, _, high = next((row for row in reversed(rows) if row[0] <= 99), (0.0, 0.0, 0.0))
    if p:
        texts.append(
            f"users who arrive on their own{at} may see more: {percentile_name(p)} up to "
            f"{format_duration(high)}, if slow requests were stalls of the server"
        )
    else:
        texts.append(f"users who arrive on their own{at} may see more")
    if result.explained is not None and result.left is not None:
        slow = max(round(float(result.left.throughout.sum())), 1)
        alone = result.explained.probability["isolated"]
        shows = "no stall shows" if alone >= 0.5 else "whether the server stopped is open"
        texts.append(
            f"{shows}: {format_items(slow, 'request')} took about {seconds_text(result.longest)}"
        )
    texts.append("a server that these connections keep busy is another question: see load")
    return tuple(texts)


def _how_sure(result: Diagnosis) -> str:
    """The probability of the verdict, and what is not excluded."""
    explained = result.explained
    if explained is None:
        return ""
    names = OMISSION if result.verdict == "omits" else COMPLETE
    probability = sum(explained.probability[name] for name in names)
    rest = [
        f"{EXPLANATIONS[name]} ({_percent(p)})"
        for name, p in result.explanations
        if name not in names and p >= _NAMED
    ]
    rest = sorted(rest[:3], key=lambda text: text.startswith(EXPLANATIONS["none of these"]))
    word = "sure" if result.sure else "likely"
    left = f"; not excluded: {', '.join(rest)}" if rest else ""
    return f"{word} ({_percent(probability)}){left}"


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
    if any(code in result.findings for code in _DECIDING):
        return ""
    if not result.extent_known:
        return "how many requests there were, or how long the longest took, is not reported"
    if explained is not None:
        omission = explained.omission
        pairs = [("omission", omission)] + [
            (EXPLANATIONS[name], p) for name, p in result.explanations if name not in OMISSION
        ]
        shown = sorted((pair for pair in pairs if pair[1] >= 0.01), key=lambda pair: -pair[1])
        return "possible: " + ", ".join(f"{name} {_percent(p)}" for name, p in shown[:4])
    pause = result.detected_stalls.pause
    if pause is not None:
        return (
            f"nothing was recorded for {seconds_text(pause[1] - pause[0])}, from "
            f"{_moment(pause[0])} on: traffic paused, or what happened then is not in the file"
        )
    if isinstance(result.raw, Summary):
        return "these statistics do not show how many requests were slow"
    return (
        f"the slowest request took {seconds_text(result.longest)}; whether the load generator "
        "waits for replies is not known"
    )


_NAMED = 1e-4
"""Probability from which on an explanation is named."""

_DECIDING = (
    "contradicts-itself", "over-corrected", "lost-to-timeouts", "dropped", "unfinished", "clipped",
    "failed-in-stalls", "fewer-than-due",
)  # fmt: skip


def _advice(result: Diagnosis) -> str:
    has = set(result.findings).__contains__
    if result.verdict == "omits":
        return "prefer an open-loop generator that times requests from their scheduled start"
    if result.verdict == "no stall":
        return "to test it, freeze a server: latencykit ctrlz"
    if result.verdict != "unknown":
        return ""
    timeout = "a timeout longer than any stall"
    if has("contradicts-itself"):
        return "check how the tool computes its statistics, or read one row per request"
    if has("lost-to-timeouts") or has("clipped"):
        return f"measure again with {timeout}"
    if has("failed-in-stalls"):
        return f"count failed requests as misses, or measure with {timeout}"
    if has("over-corrected"):
        return (
            "measure with wrk2 -R, which sends by a schedule, or with hey"
            if result.run.tool == "wrk"
            else "read the tool's uncorrected values instead"
        )
    rate, number = option("rate"), option("connections")
    if result.timed is None:
        return f"{rate} and {number}, or one row per request with its start, would decide it"
    return (
        f"{rate}, or a record of when each request was due, would decide it; or freeze the server "
        "for longer: latencykit ctrlz"
    )


def _terms_text(name: str, terms: dict[str, float]) -> str:
    """What speaks against an explanation, the strongest first."""
    against = sorted((value, test) for test, value in terms.items() if value <= -0.3)
    text = EXPLANATIONS[name]
    if not against:
        return f"{text}: as predicted"
    return f"{text}: against it {', '.join(f'{t} (10^{v:.1f})' for v, t in against)}"


def _percent(p: float) -> str:
    if p > 0.999:
        return "> 99.9 %"
    return f"{100 * p:.3g} %" if p >= 0.01 else f"{100 * p:.1g} %"


def _speed(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 1000 else f"{rate:.3g}"


def _moment(seconds: float) -> str:
    return f"{seconds:,.1f} s" if seconds >= 1 else seconds_text(seconds)


def _is_samples(result: Diagnosis) -> bool:
    return hasattr(result.timed, "duration") and hasattr(result.timed, "intended")


def _rounded(number: float, exact: bool) -> str:
    return format_count(number if exact or number < 1000 else float(f"{number:.3g}"))


def seconds_text(seconds: float) -> str:
    """Return a time that is given in seconds."""
    return format_duration(seconds * 1e9)


def were(number: int) -> str:
    """Return the verb for a number of things."""
    return "was" if number == 1 else "were"
