"""The sentences of a diagnosis."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from latencykit.samples import Samples
from latencykit.summary import Summary
from latencykit.units import format_count, format_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from latencykit.diagnose.evidence import Evidence
    from latencykit.diagnose.facts import Facts
    from latencykit.diagnose.stalls import Stalls

__all__ = ["advice", "sentence"]


def sentence(verdict: str, facts: Facts, evidence: Sequence[Evidence], findings: Sequence[str], stalls: Stalls) -> str:
    """Return the verdict's reason."""
    strongest = max(evidence, key=lambda one: ("none", "honest", "weak", "strong").index(one.level), default=None)
    stall = format_duration(facts.longest * 1e9)
    if verdict == "omits" and strongest is not None:
        missing = float(stalls.missing.sum()) or strongest.missing
        later = "; they were sent later, and timed from then" if "catch-up" in findings else ""
        return (
            f"coordinated omission detected: about {format_count(missing)} requests that were due in stalls of up to "
            f"{stall} are missing{later}"
        )
    if verdict == "clean":
        by = {"us": "back-filled", "tool": "corrected by the tool", "schedule": "timed from the schedule"}
        how = f" ({by[facts.corrected_by]}: do not correct it again)" if facts.corrected_by else ""
        return f"a stall of up to {stall} was seen, and the requests that it delayed are there{how}"
    return _spoiled(facts, findings) or _unknown(facts, evidence, findings, stalls)


def _spoiled(facts: Facts, findings: Sequence[str]) -> str:
    """What is wrong with the numbers themselves, if anything is."""
    run = facts.run
    if "over-corrected" in findings:
        return "the tool's correction invented more slow requests than the run can have had"
    if "lost-to-timeouts" in findings:
        return f"{format_count(run.timeouts)} requests timed out; what they would have taken is not in the latencies"
    if "dropped" in findings:
        return f"{format_count(run.dropped)} requests that were due were dropped, and have no latency"
    if "unfinished" in findings:
        return f"{format_count(run.unfinished)} requests were cut off at the end, and have no latency"
    if "failed-in-stalls" in findings:
        return "many requests failed, it seems while the server stood still; what they would have taken is not in the latencies"
    return ""


def _unknown(facts: Facts, evidence: Sequence[Evidence], findings: Sequence[str], stalls: Stalls) -> str:
    """Why nothing can be said."""
    longest = format_duration(facts.longest * 1e9)
    if "immaterial" in findings and "closed-loop" in findings:
        return f"a closed loop: these are service times; what it left out in hiccups of up to {longest} would hardly be seen"
    if "immaterial" in findings:
        return "some requests were left out, but neither the mean nor a supported percentile would move by a tenth"
    suspected = [one for one in evidence if one.level in ("weak", "strong")]
    if suspected and facts.corrected_by:
        return f"a stall of {longest} implies more slow requests than were recorded; one that delayed no others looks the same"
    if suspected and any(one.missing and one.test != "lower bound" for one in suspected):
        return f"omission, or traffic that paused for a reason of its own while one request took {longest}"
    if suspected:
        return f"omission, or isolated slow requests that delayed no others: the longest took {longest}"
    if "fewer-than-due" in findings:
        due = (facts.told_rate or facts.run.rate or 0.0) * (facts.duration or 0.0)
        return f"only {format_count(facts.count)} of {format_count(due)} requests that were due have a latency"
    if "nothing-to-omit" in findings:
        return "there was nothing to omit: no request took so long that it would have shown"
    if "closed-loop" in findings and facts.corrected_by is None:
        return "a closed loop: these are service times; how many requests users would have sent is not known"
    if not facts.rate:
        return "how many requests were to come is not known"
    if facts.stall and len(stalls):
        return f"stalls of up to {longest} were seen; neither do all requests that they delayed show, nor are they surely missing"
    if facts.stall:
        return f"the slow requests, up to {longest}, are neither as many as one stall leaves nor so few that they must be missing"
    return "no stall was seen, and so nothing that could be missing"


def advice(verdict: str, facts: Facts, findings: Sequence[str], visible: float) -> str:
    """Return what would decide, or what to do about it."""
    if verdict == "omits":
        known = facts.interval is not None
        fix = "lk.correct and lk.retime put them back" if known else "--rate and --connections tell how to put them back"
        return f"{fix}; prefer an open-loop generator that times requests from their scheduled start"
    if verdict == "clean":
        return ""
    if "lost-to-timeouts" in findings:
        return "measure again with a timeout longer than any stall"
    if not facts.rate:
        return "give --rate (requests per second, all connections together) or --duration (of the run)"
    if "over-corrected" in findings:
        return "read the tool's uncorrected values instead"
    if "failed-in-stalls" in findings:
        return "count failed requests as misses (latencykit check does), or measure with a timeout longer than any stall"
    if "nothing-to-omit" in findings and math.isfinite(visible):
        return f"a stall of {format_duration(visible * 1e9, 2)} or more would have shown; latencykit ctrlz makes one"
    if isinstance(facts.rung, Summary):
        return "an output with one row per request would show whether sends went on during the stall"
    if isinstance(facts.rung, Samples) and facts.trace is not None:
        return (
            "to settle it, record when each request was due (intended start), or freeze the server for longer: latencykit ctrlz"
        )
    return "one row per request, with its start, would settle it; or freeze the server for some seconds: latencykit ctrlz"
