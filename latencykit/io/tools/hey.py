"""The report that boom and hey print, and oha after them: a summary, a coarse histogram, percentiles, what became of requests.

The histogram's first mark is the fastest request, and ten steps of equal width lead to the slowest; a mark is the upper
end of its bucket. Marks are printed with three decimals, so they are worked out anew from the two ends.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.core.histogram import Histogram
from latencykit.core.run import Run
from latencykit.core.samples import OUTCOMES, Samples
from latencykit.io.build import (
    data_from_points,
    distinct,
    histogram_of_both,
    mixed_note,
    nothing_answered,
    without_negative,
)
from latencykit.io.rows import Layout, read_table
from latencykit.io.source import Confidence, Format
from latencykit.io.text import command_of, plain_report, sections
from latencykit.units import parse_duration, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from latencykit.io.source import Data, Head, ReadOptions, Source
    from latencykit.io.text import Section

__all__ = ["FORMATS", "Report", "is_report", "parse_report", "rung_of_report"]


_NUMBER = r"(-?[\d.]+(?:e[-+]?\d+)?|NaN|[-+]?Inf|inf)"
_UNIT = r"((?:10 )?(?:ns|us|µs|ms|secs?|s|min|m|hours?|h))?\.?"
_FACT = re.compile(
    rf"^[ \t]*(Total|Slowest|Fastest|Average|Requests/sec):\s+{_NUMBER} *{_UNIT}\s*$", re.MULTILINE
)
_PART = r"(?: \([^)\n]*only\))?"
_HEADING = re.compile(
    rf"^(Summary|Response time histogram{_PART}|(?:Latency|Response time) distribution{_PART}|Details[^:\n]*|"
    r"Status code distribution|Error distribution):[ \t]*$",
    re.MULTILINE,
)
_BUCKET = re.compile(rf"^\s*{_NUMBER} *{_UNIT} *\[(\d+)\]\s*\|?")
_POINT = re.compile(rf"^\s*([\d.]+)%+ +in +{_NUMBER} *{_UNIT}\s*$")
_STATUS = re.compile(r"^\s*\[(\d+)\]\s+(\d+) responses")
_ERROR = re.compile(r"^\s*\[(\d+)\]\s+(\S.*)$")
_TIMED_OUT = re.compile(r"timeout|timed out|deadline (?:has elapsed|exceeded)", re.IGNORECASE)
_UNFINISHED = re.compile(r"aborted due to deadline", re.IGNORECASE)
_GOOD = "Response time distribution (2xx only)"
_CUT = "the report is cut at its end"


@dataclass(frozen=True)
class Report:
    """What the report says; times in ns.

    Attributes
    ----------
    stats : mapping of str to float
        ``min``, ``max``, ``mean`` as far as there are any.
    points : mapping of float to float
        Percentile (0..100) → ns.
    marks : tuple of float
        Upper ends of the histogram's buckets as printed, ns.
    buckets : tuple of int
        Their counts.
    statuses : mapping of int to int
        Status code → replies.
    errors : mapping of str to int
        What went wrong → how often.
    duration, achieved : float or None
        Seconds, and requests per second.
    cut : bool
        Whether the report ends early.
    apart : bool
        Whether percentiles and buckets are of good replies only.
    grain : float
        What a mark may be off by, as printed, ns.
    """

    stats: Mapping[str, float]
    points: Mapping[float, float] = field(default_factory=dict)
    marks: tuple[float, ...] = ()
    buckets: tuple[int, ...] = ()
    statuses: Mapping[int, int] = field(default_factory=dict)
    errors: Mapping[str, int] = field(default_factory=dict)
    duration: float | None = None
    achieved: float | None = None
    cut: bool = False
    apart: bool = False
    grain: float = 0.0

    def outcomes(self) -> dict[str, int]:
        """Return requests that are no good ones: ``failed``, ``timeouts``, ``unfinished``, as `Run` names them."""
        unfinished = sum(number for text, number in self.errors.items() if _UNFINISHED.search(text))
        late = sum(
            n
            for text, n in self.errors.items()
            if _TIMED_OUT.search(text) and not _UNFINISHED.search(text)
        )
        failed = sum(self.errors.values()) - unfinished - late + self.mixed
        return {"failed": failed, "timeouts": late, "unfinished": unfinished}

    @property
    def mixed(self) -> int:
        """Replies with a status of 400 and more: failures whose times are among the others'."""
        return sum(number for code, number in self.statuses.items() if code >= 400)


def is_report(text: str, heading: str) -> bool:
    """Whether it has the summary, and percentiles under this heading."""
    found = {one[1] for one in _HEADING.finditer(text)}
    return (
        "Summary" in found
        and "Response time histogram" in found
        and heading in found
        and "Fastest:" in text
    )


def _ns(number: str, unit: str | None) -> float:
    if not math.isfinite(float(number)):
        return math.nan
    tens, _, scale = (unit or "s").rpartition(
        " "
    )  # oha counts in tens of seconds where requests took longer
    return round(parse_duration(number + scale) * float(tens or 1), 3)


def parse_report(part: Section) -> Report:
    """Read one report; what stands before it and after it is passed over."""
    text = part.text
    facts = {
        name: (float(number) if name == "Requests/sec" else _ns(number, unit))
        for name, number, unit in _FACT.findall(text)
    }
    for name in ("Fastest", "Slowest", "Average"):
        if name not in facts:
            at = found.start() if (found := _HEADING.search(text)) else None
            raise part.corrupt(at, f"the summary has no {name}", "a duration", "run the tool anew")
    rows = _Rows(part)
    points = rows.under(
        "Response time distribution (2xx only)",
        "Latency distribution",
        "Response time distribution",
        like=_POINT,
    )
    buckets = rows.under(
        "Response time histogram (2xx only)", "Response time histogram", like=_BUCKET
    )
    errors: dict[str, int] = {}
    for row in rows.under("Error distribution", like=_ERROR, strict=False):
        errors[row[2]] = errors.get(row[2], 0) + int(row[1])
    names = {"min": "Fastest", "max": "Slowest", "mean": "Average"}
    total = facts.get("Total", math.nan)
    return Report(
        {name: facts[given] for name, given in names.items()},
        dict(_points(points)),
        tuple(_ns(row[1], row[2]) for row in buckets),
        tuple(int(row[3]) for row in buckets),
        {
            int(row[1]): int(row[2])
            for row in rows.under("Status code distribution", like=_STATUS, strict=False)
        },
        errors,
        total / 1e9 if math.isfinite(total) else None,
        facts.get("Requests/sec"),
        cut=rows.cut or "Status code distribution" not in rows.blocks,
        apart=_GOOD in rows.blocks,
        grain=0.0006 * _ns("1", buckets[0][2]) if buckets else 0.0,
    )


def _points(rows: Sequence[re.Match[str]]) -> Iterator[tuple[float, float]]:
    for row in rows:
        percentile, value = float(row[1]), _ns(row[2], row[3])
        if 0 < percentile < 100:
            yield percentile, value


class _Rows:
    """The blocks of a report under their headings."""

    def __init__(self, part: Section) -> None:
        headings = list(_HEADING.finditer(part.text))
        ends = [*(one.start() for one in headings[1:]), len(part.text)]
        self.part, self.cut = part, False
        self.blocks = {one[1]: (one.end(), end) for one, end in zip(headings, ends, strict=True)}

    def under(
        self, *headings: str, like: re.Pattern[str], strict: bool = True
    ) -> list[re.Match[str]]:
        """The rows of the first of these blocks that is there; a last line of the file that is cut is left out."""
        start, end = next((self.blocks[name] for name in headings if name in self.blocks), (0, 0))
        text = self.part.text
        if end == len(text) and not text.endswith("\n"):
            last = text.rfind("\n") + 1
            if last > start and like.match(text[last:]) is None:
                end, self.cut = last, True
        if strict and end < len(text):
            return self.part.matches(like, start, end, f"a row of the {headings[-1].lower()}")
        rows = [(number, line, like.match(line)) for number, line in self.part.lines(start, end)]
        for number, line, row in rows:
            if row is None and line.lstrip().startswith("["):
                seen = f"{printable(line.strip(), 50)!r}"
                raise self.part.source.corrupt(
                    number, seen, f"a row of the {headings[-1].lower()}", "run the tool anew"
                )
        return [row for _, _, row in rows if row is not None]


def rung_of_report(report: Report, run: Run, source: Source, timeout: float) -> Data:
    """Return the finest distribution that the report allows."""
    others, mixed = report.outcomes(), 0 if report.apart else report.mixed
    run = run.replace(duration=report.duration, achieved=report.achieved, **others).with_notes(
        *mixed_note(mixed)
    )
    if report.cut:
        run = run.with_notes(_CUT)
    answered, counted = sum(report.statuses.values()), sum(report.buckets)
    stats = dict(report.stats)
    if 0 < counted < answered - (report.mixed if report.apart else 0) and not report.cut:
        run = run.with_notes(
            f"the distribution is of the first {counted:,} of {answered:,} replies"
        )
        stats.pop("mean", None)  # the tool divides the sum of all by the number of the first ones
    good = answered - report.mixed if answered else counted
    if not (answered or counted) or (good <= 0 and not report.points):
        raise nothing_answered(source, run)
    if report.apart and report.mixed:
        stats = {"max": report.marks[-1]} if report.marks else {}
    data: Data
    if mixed or not counted or not _even(report, stats):
        data = data_from_points(report.points, good, stats, run)
    else:
        edges = np.round(np.linspace(stats["min"], stats["max"], len(report.buckets)), 3)
        data = histogram_of_both(report.points, edges.tolist(), report.buckets, stats, run)
    if others["timeouts"] and isinstance(data, Histogram):
        if run.timeout is None and report.duration is not None and report.duration * 1e9 < timeout:
            timeout = 0.0  # the whole run was shorter: the limit was another, and all that is known is the slowest reply
        return replace(data, censored=others["timeouts"], censored_at=max(timeout, data.max))
    return data


def _even(report: Report, stats: Mapping[str, float]) -> bool:
    """Whether the marks lead from the fastest to the slowest request: some versions of oha print others."""
    if len(report.marks) < 2 or not {"min", "max"} <= set(stats):
        return False
    near = report.grain + 1.0
    return (
        abs(report.marks[0] - stats["min"]) <= near and abs(report.marks[-1] - stats["max"]) <= near
    )


# ------------------------------------------------------------
# hey (once boom): its text and its CSV, both in seconds with four decimals.
#
# hey sends the next request when the reply to the last one came (or later, with ``-q``), so a stall shows in one request a
# worker and in none of those that were not sent. In neither output does it say how it was called.

_BEGIN = re.compile(r"^Summary:[ \t]*$", re.MULTILINE)
_HEADER = "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read"
_TIMEOUT, _MOST = 20e9, 1_000_000
_RUN = Run(
    tool="hey", loop="closed", measure="service", corrected="none", unit="s", unit_from="file"
)


def sniff_text(head: Head) -> Confidence:
    """Tell the headings; the reports of oha and ghz have others."""
    text = plain_report(head.text)
    other = "Success rate:" in text or "  Count:\t" in text
    return (
        Confidence.CERTAIN
        if is_report(text, "Latency distribution") and not other
        else Confidence.NO
    )


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read every report."""
    found: dict[str, Data] = {}
    parts = sections(source, _BEGIN)
    for number, part in enumerate(parts, 1):
        run, timeout = _called(command_of(part.text, "hey", "boom"))
        name = "" if len(parts) == 1 else distinct(f"run {number}", found)
        found[name] = rung_of_report(parse_report(part), run, source, timeout)
    return found


def _called(command: str | None) -> tuple[Run, float]:
    """The run as a command line before the report tells it, and hey's timeout."""
    options = {
        key: float(value)
        for key, value in re.findall(r" -([cqt])[ =]?(\d+(?:\.\d+)?)", command or "")
    }
    workers = int(options.get("c", 50)) if command else None
    each = options.get("q", 0.0)
    run = _RUN.replace(
        command=command,
        connections=workers,
        loop="paced" if each else "closed",
        rate=each * workers if each and workers else None,
        expected_interval=round(1e9 / each, 3) if each else None,
        timeout=options["t"] * 1e9 if "t" in options else None,
    )
    return run, run.timeout or _TIMEOUT


def sniff_csv(head: Head) -> Confidence:
    """Tell the header."""
    return Confidence.CERTAIN if head.lines and head.lines[0].startswith(_HEADER) else Confidence.NO


def read_csv(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every reply; hey leaves requests without one out of its CSV."""
    columns = tuple(source.head.lines[0].strip().split(","))
    wanted = tuple(name for name in ("response-time", "status-code", "offset") if name in columns)
    largest = {"response-time": 9e9, "offset": 9e9}
    frame, notes = read_table(source, options, Layout(columns, wanted, skip=1, largest=largest))
    given: dict[str, Any] = {"duration": frame["response-time"].to_numpy(np.float64)}
    if "offset" in frame:
        given["start"] = frame["offset"].to_numpy(np.float64)
    if "status-code" in frame:
        failed = frame["status-code"].to_numpy(np.int64) >= 400
        given["outcome"] = np.where(failed, OUTCOMES.index("error"), 0) if failed.any() else None
    given, left_out = without_negative(given, options)
    if len(frame) == _MOST:
        notes = (*notes, "hey keeps the first million replies: the run may have been longer")
    run = _RUN.replace(unit_from="format").with_notes(
        "hey prints times to 0.1 ms", *notes, *left_out
    )
    return {"": Samples(unit="s", run=run, **given)}


FORMATS = (
    Format(
        "hey", "hey (text)", "histogram", (".txt",), sniff_text, read_text, unit="s",
        example="hey -z 30s -c 8 http://127.0.0.1:8080/ > hey.txt",
    ),
    Format(
        "hey-csv", "hey (CSV)", "samples", (".csv",), sniff_csv, read_csv, unit="s",
        example="hey -z 30s -c 8 -o csv http://127.0.0.1:8080/ > hey.csv",
    ),
)  # fmt: skip
