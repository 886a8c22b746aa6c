"""The result of `diagnose`, and every sentence about it.

The tests, and the sentences about what they found, are in `latencykit.analysis.omission`.
"""

from __future__ import annotations

import math
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from latencykit._arrays import Value
from latencykit._records import record
from latencykit._text import format_items, option
from latencykit.analysis.ledger import RIVALS
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

    from latencykit.analysis.ledger import Evidence, Ledger
    from latencykit.analysis.stalls import Stalls
    from latencykit.core.histogram import Histogram
    from latencykit.core.histogram_log import HistogramLog
    from latencykit.core.run import Run
    from latencykit.core.samples import Samples

Verdict = Literal["omits", "clean", "no stall", "unknown"]
Method = Literal["backfill", "retime"]


@record(eq=False)
class Diagnosis(Value):
    """The verdict on a measurement, its evidence, and the corrected distribution.

    Attributes
    ----------
    verdict : {"omits", "clean", "no stall", "unknown"}
        ``clean`` requires a stall whose delayed requests are all recorded; ``no stall`` that
        nothing was slow enough to hide others.
    reason : str
        Why, in a word: the first of the reasons that apply.
    needed : str
        What would decide an ``unknown``, in a word.
    findings : tuple of str
        Further properties of the run: ``closed-loop``, ``already-corrected``, ``over-corrected``,
        ``catch-up``, ``lost-to-timeouts``, ``failed-in-stalls``, ``fewer-than-due``, ``dropped``,
        ``unfinished``, ``clipped``, ``clock-step``, ``immaterial``, ``arithmetic-progression``,
        ``nothing-to-omit``.
    ledger : Ledger
        The tests, and the odds against every other explanation.
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
    longest, visible : float
        Seconds of the longest request, timeouts included, and of the shortest stall that would
        have shown.
    due : float
        Requests that a stated rate implies; 0 without one.
    corrected_by : str or None
        ``us``, ``tool`` or ``schedule`` if omission is taken care of.
    over_time : bool
        The source is a series over time.
    detected_stalls : Stalls
    timed : Samples, HistogramLog or None
        The series over time, if there is one.
    """

    verdict: Verdict
    reason: str
    needed: str
    findings: tuple[str, ...]
    ledger: Ledger
    expected_interval: float | None
    raw: Histogram | Summary
    corrected: Histogram | None
    method: Method | None
    rate: float | None
    duration: float | None
    longest: float
    visible: float
    due: float
    corrected_by: str | None
    over_time: bool
    detected_stalls: Stalls = field(repr=False)
    timed: Samples | HistogramLog | None = field(default=None, repr=False)

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The tests."""
        return self.ledger.entries

    @property
    def summary(self) -> str:
        """The fact about the data, and the reason for the verdict, in a sentence."""
        return _summary(self)

    @property
    def advice(self) -> str:
        """What would decide an ``unknown``, or what to do about an ``omits``."""
        return _advice(self)

    @property
    def moved(self) -> tuple[tuple[str, float, float], ...]:
        """What the longest request could hide: statistic, value, and the least that it would be.

        If the whole server was stopped for that long and no client waited: Q(q) ≥ d − (1 − q)·T,
        and the mean is higher by d² / 2 T. Empty where the length of the run is unknown.
        """
        if not self.duration or self.raw.unit not in NANOSECONDS or not self.raw.count:
            return ()
        if self.reason in ("over-corrected", "lost-to-timeouts", "timeout"):
            return ()  # how long the longest took is unknown
        stall, length = min(self.longest, self.duration), self.duration
        stated = self.raw.stats if isinstance(self.raw, Summary) else {"mean": self.raw.mean}
        rows = [
            ("mean", float(mean), float(mean) + stall**2 / (2 * length) * 1e9)
            for mean in [stated.get("mean")]
            if mean is not None and math.isfinite(mean)
        ]
        for p, value, _ in self.rows:
            if p < 100:
                least = max((stall - (1 - p / 100) * length) * 1e9, value)
                rows.append((percentile_name(p), value, least))
        return tuple(rows)

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
        rows = [(percentile_name(p), raw.get(p, ""), corrected.get(p, "")) for p, *_ in self.rows]
        also = [f"also: {', '.join(self.findings)}"] if self.findings else []
        tests = [f"{item.test}: {item.finding}" for item in self.evidence]
        title = self.run.source or self.run.tool or "this measurement"
        lines = [*also, *tests, *self.detected_stalls.notes, self.advice]
        return verdict_html(title, self.verdict, self.summary, rows, lines)

    def __repr__(self) -> str:
        unit = self.raw.unit
        lines = [f"{self.verdict}: {self.summary}"]
        lines += [f"  {item.test}: {item.finding}" for item in self.evidence]
        for p, before, after in self.rows:
            fixed = "" if after is None else f"  would have been {format_value(after, unit)}"
            lines.append(f"  {percentile_name(p):<8} {format_value(before, unit):>9}{fixed}")
        return "\n".join([*lines, *([f"  {self.advice}"] if self.advice else [])])


# ------------------------------------------------------------
# Its sentences.


def _summary(result: Diagnosis) -> str:
    stall, stalls = seconds_text(result.longest), result.detected_stalls
    if result.verdict == "omits":
        missing = float(stalls.missing.sum()) or result.ledger.missing
        one = len(stalls) <= 1 or not result.over_time
        while_ = f"while one took {stall}" if one else f"in {len(stalls):,} stalls of up to {stall}"
        late = "catch-up" in result.findings
        return (
            f"coordinated omission detected: about {format_count(missing)} requests that were due "
            f"{while_} {'were sent later, and timed from then' if late else 'are missing'}"
        )
    if result.verdict == "clean":
        by = {
            "us": "back-filled",
            "tool": "corrected by the tool",
            "schedule": "timed from the schedule",
        }
        how = ""
        if result.corrected_by:
            how = f" ({by[result.corrected_by]}: do not correct it again)"
        if not result.over_time:
            return (
                "coordinated omission not present: the slow requests are those that one stall of "
                f"{stall} delays, recorded in full{how}"
            )
        return (
            f"coordinated omission not present: a stall of up to {stall} was recorded, and so were "
            f"the requests that it delayed{how}"
        )
    if result.verdict == "no stall":
        return (
            f"the slowest request ({stall}) hid none; how the load generator treats a stall is not "
            "tested by this run"
        )
    return _unknown(result)


_UNKNOWN = {
    "over-corrected": "the tool's correction adds more slow requests than fit into the run",
    "failed-in-stalls": (
        "many requests failed, apparently during stalls; the latencies do not include them"
    ),
    "timeout": (
        "many requests took {stall}, the maximum: a timeout, or the highest value that the "
        "recorder tracks; how long stalls were is then unknown"
    ),
    "immaterial at full speed": (
        "a closed loop, so these are service times; what it omitted in hiccups of up to {stall} "
        "would hardly be visible"
    ),
    "immaterial": (
        "some requests were omitted, but neither the mean nor a supported percentile would move by "
        "a tenth"
    ),
    "corrected": (
        "a stall of {stall} implies more slow requests than were recorded; a slow request that "
        "delayed no others looks the same"
    ),
    "few": "too few requests are missing to accuse ({stall} at most)",
    "empty": "no latency was recorded",
    "closed-loop": (
        "a closed loop, so these are service times; how many requests users would have sent is "
        "unknown"
    ),
    "apart": (
        "the longest requests ({stall}) are far from all others: connections that waited for a "
        "stall, or requests that were slow by themselves"
    ),
    "no rate": "the number of requests that were due is unknown",
    "extent": "how many requests there were, or how long the longest took, is not reported",
    "short": "the longest request took {stall}: too short for an omission to show",
    "stalls": (
        "stalls of up to {stall} were recorded; the requests they delayed are neither all there "
        "nor surely missing"
    ),
    "slow": (
        "the slow requests (up to {stall}) are neither as many as one stall implies nor few enough "
        "to prove that some are missing"
    ),
    "none": "no stall was recorded, and so none whose requests could be missing",
}
"""Why a verdict is unknown, where the longest request is all that the sentence names."""


def _unknown(result: Diagnosis) -> str:
    """Why a verdict is unknown."""
    run, stall = result.run, seconds_text(result.longest)
    if result.reason in _UNKNOWN:
        return _UNKNOWN[result.reason].format(stall=stall)
    if result.reason == "rivals":
        rivals = " or ".join(RIVALS[rival] for rival in result.ledger.remaining[:2])
        others = ", among others" if len(result.ledger.remaining) > 2 else ""
        return f"the longest request took {stall}: omission, or {rivals}{others}"
    begin, end = result.detected_stalls.pause or (0.0, 0.0)
    count = 0 if result.raw.count is None else result.raw.count
    count += 0 if isinstance(result.raw, Summary) else result.raw.censored
    return {
        "lost-to-timeouts": (
            f"{format_items(run.timeouts, 'request')} timed out; "
            f"{'its latency is' if run.timeouts == 1 else 'their latencies are'} not recorded"
        ),
        "dropped": (
            f"{format_items(run.dropped, 'request')} that {were(run.dropped)} due "
            f"{were(run.dropped)} dropped, and {'has' if run.dropped == 1 else 'have'} no latency"
        ),
        "unfinished": (
            f"{format_items(run.unfinished, 'request')} {were(run.unfinished)} still under way at "
            "the end, without a latency"
        ),
        "fewer-than-due": (
            f"only {format_count(count)} of {format_count(result.due)} requests that were due have "
            "a latency"
        ),
        "pause": (
            f"nothing was recorded for {seconds_text(end - begin)}, from {begin:.3f} s on: traffic "
            "paused, or what happened then is not in the file"
        ),
        "all failed": f"all {format_count(run.failed)} requests failed; no latency was recorded",
    }[result.reason]


def doubts_text(result: Diagnosis) -> list[str]:
    """Return what an unknown verdict leaves open: other explanations, and how much it matters."""
    if result.verdict != "unknown":
        return []
    alike: dict[str, list[str]] = {}
    for one in result.ledger.hypotheses if result.ledger.suspects else ():
        if one.remains:
            words = {"for": one.speaks_for, "against": one.speaks_against}
            said = [f"{word} it: {', '.join(tests)}" for word, tests in words.items() if tests]
            ratio = 10 ** abs(one.odds)
            times = f"{ratio:.2g}" if ratio < 10 else f"{float(f'{ratio:.1g}'):,.0f}"
            said.append(f"omission is {times} times {'as' if one.odds >= 0 else 'less'} likely")
            alike.setdefault("; ".join(said), []).append(one.text)
    lines = [f"not excluded: {', '.join(texts)}; {said}" for said, texts in alike.items()]
    moved = [
        f"{name} {format_duration(after)} instead of {format_duration(before)}"
        for name, before, after in result.moved
        if after >= _MOVED * before and name in ("mean", "p50", "p90", "p99", "p99.9")
    ]
    if moved:
        lines.append(f"if the longest request hid others: at least {', '.join(moved)}")
    elif result.moved:
        lines.append(
            "if the longest request hid others, neither the mean nor a supported percentile would "
            "be higher by a tenth"
        )
    return lines


_MOVED = 1.1  # a smaller change is not worth a word


_TIMEOUT = "a timeout longer than any stall"


def _needed_texts() -> dict[str, str]:
    rate, number = option("rate"), option("connections")
    return {
        "longer timeout": f"measure again with {_TIMEOUT}",
        "rate": (
            f"give {rate} (requests per second, all connections together) or {option('duration')} "
            "(of the run)"
        ),
        "uncorrected": "read the tool's uncorrected values instead",
        "schedule": "measure with wrk2 -R, which sends by a schedule, or with hey",
        "failures": (
            f"count failed requests as misses (latencykit check does), or measure with {_TIMEOUT}"
        ),
        "higher maximum": (
            "measure again with a timeout, and a highest value of the recorder, above any stall"
        ),
        "requests": (
            "output with one row per request would show whether sends went on during the stall"
        ),
        "intended": (
            "to settle it, record when each request was due (intended start), or freeze the server "
            "for longer: latencykit ctrlz"
        ),
        "requests or rate": (
            f"one row per request, with its start, would settle it, and {rate} and {number} may; "
            "or freeze the server for some seconds: latencykit ctrlz"
        ),
        "starts": (
            "one row per request, with its start, would settle it; or freeze the server for some "
            "seconds: latencykit ctrlz"
        ),
    }


def _advice(result: Diagnosis) -> str:
    if result.verdict == "omits":
        fix = f"{option('rate')} and {option('connections')} allow them to be put back"
        if result.expected_interval is not None:
            fix = "lk.correct and lk.retime put them back"
            interval = option("expected-interval", format_duration(result.expected_interval))
            if interval.startswith("--"):
                fix = (
                    f"`latencykit chart {interval.replace(' ', '=', 1).replace(' ', '')}` adds them"
                )
        return (
            f"{fix}; prefer an open-loop generator that times requests from their scheduled start"
        )
    if result.verdict == "clean":
        return ""
    if result.verdict == "no stall":
        if not math.isfinite(result.visible):
            return "latencykit ctrlz tests it"
        shown = format_duration(result.visible * 1e9, 2)
        return f"a stall of {shown} or more would have shown; latencykit ctrlz makes one"
    return _needed_texts()[result.needed]


def seconds_text(seconds: float) -> str:
    """Return a time that is given in seconds."""
    return format_duration(seconds * 1e9)


def were(number: int) -> str:
    """Return the verb for a number of things."""
    return "was" if number == 1 else "were"
