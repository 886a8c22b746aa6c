"""hey (once boom): its text and its CSV, both in seconds with four decimals.

Its report, which oha prints, too, has a summary, a coarse histogram, percentiles, and the outcomes
of requests. The histogram's first mark is the fastest request, and ten steps of equal width lead to
the slowest; a mark is the upper end of its bucket. Marks are printed with three decimals, so they
are computed anew from the two ends.

hey sends the next request when the reply to the last one arrived (or later, with ``-q``), so a
stall shows in one request per worker and in none of those that were not sent. Neither output
contains the command line.
"""

from __future__ import annotations

import math
import re
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit._records import record
from latencykit._text import printable
from latencykit.core.histogram import Histogram
from latencykit.core.run import Run
from latencykit.io.build import (
    data_from_points,
    further_columns,
    histogram_of_both,
    mixed_note,
    outcome_codes,
    samples_of,
    unanswered,
)
from latencykit.io.rows import RowLayout, read_table
from latencykit.io.sniffing import certain, starts_with
from latencykit.io.source import Format
from latencykit.io.text_reports import blocks, command_of, plain, section_runs
from latencykit.units import parse_duration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from latencykit.io.source import Confidence, Data, Head, ReadOptions, Source
    from latencykit.io.text_reports import Section

BEGIN = re.compile(r"^Summary:[ \t]*$", re.MULTILINE)
_NUMBER = r"(-?[\d.]+(?:e[-+]?\d+)?|NaN|[-+]?Inf|inf)"
_UNIT = r"((?:10 )?(?:ns|us|µs|ms|secs?|s|min|m|hours?|h))?\.?"
_FACT = re.compile(
    rf"^[ \t]*(Total|Slowest|Fastest|Average|Requests/sec):\s+{_NUMBER} *{_UNIT}\s*$", re.MULTILINE
)
_PART = r"(?: \([^)\n]*only\))?"
_HEADING = re.compile(
    rf"^(Summary|Response time histogram{_PART}|(?:Latency|Response time) distribution{_PART}"
    r"|Details[^:\n]*|Status code distribution|Error distribution):[ \t]*$",
    re.MULTILINE,
)
_BUCKET = re.compile(rf"^\s*{_NUMBER} *{_UNIT} *\[(\d+)\]\s*\|?")
_POINT = re.compile(rf"^\s*([\d.]+)%+ +in +{_NUMBER} *{_UNIT}\s*$")
_STATUS = re.compile(r"^\s*\[(\d+)\]\s+(\d+) responses")
_ERROR = re.compile(r"^\s*\[(\d+)\]\s+(\S.*)$")
_TIMED_OUT = re.compile(r"timeout|timed out|deadline (?:has elapsed|exceeded)", re.IGNORECASE)
_UNFINISHED = re.compile(r"aborted due to deadline", re.IGNORECASE)
# etcd's benchmark prints hey's report without the replies by status.
_ETCD = re.compile(r"^\s*Stddev:", re.MULTILINE)
_GOOD = "Response time distribution (2xx only)"


@record()
class HeyReport:
    """The contents of a report; times in ns."""

    stats: Mapping[str, float]  # min, max, mean as far as there are any
    points: Mapping[float, float] = field(default_factory=dict)
    marks: tuple[float, ...] = ()  # upper ends of the histogram's buckets as printed
    buckets: tuple[int, ...] = ()
    statuses: Mapping[int, int] = field(default_factory=dict)  # status code → replies
    errors: Mapping[str, int] = field(default_factory=dict)  # text → number
    duration: float | None = None
    achieved: float | None = None
    cut: bool = False  # the report ends early
    apart: bool = False  # percentiles and buckets are of good replies only
    grain: float = 0.0  # by how much a printed mark may be off

    @property
    def outcomes(self) -> dict[str, int]:
        """Requests that failed, timed out or did not finish, as `Run` names them."""
        unfinished = sum(number for text, number in self.errors.items() if _UNFINISHED.search(text))
        late = sum(
            number
            for text, number in self.errors.items()
            if _TIMED_OUT.search(text) and not _UNFINISHED.search(text)
        )
        failed = sum(self.errors.values()) - unfinished - late + self.mixed
        return {"failed": failed, "timeouts": late, "unfinished": unfinished}

    @property
    def mixed(self) -> int:
        """Replies with a status of 400 and more: failures whose times are among the others'."""
        return sum(number for code, number in self.statuses.items() if code >= 400)


def is_report(text: str, heading: str) -> bool:
    """True if text has the summary, the histogram, and percentiles under this heading."""
    headings = {match[1] for match in _HEADING.finditer(text)}
    return headings >= {"Summary", "Response time histogram", heading} and "Fastest:" in text


def _ns(number: str, unit: str | None) -> float:
    if not math.isfinite(float(number)):
        return math.nan
    # oha counts in tens of seconds where requests took longer.
    tens, _, scale = (unit or "s").rpartition(" ")
    return round(parse_duration(number + scale) * float(tens or 1), 3)


def parse_report(part: Section) -> HeyReport:
    """Parse one report; what precedes and follows it is ignored."""
    text = part.text
    facts = {
        name: (float(number) if name == "Requests/sec" else _ns(number, unit))
        for name, number, unit in _FACT.findall(text)
    }
    for name in ("Fastest", "Slowest", "Average"):
        if name not in facts:
            first = _HEADING.search(text)
            at = first.start() if first else None
            raise part.corrupt(at, f"the summary has no {name}", "a duration", "run the tool anew")
    spans = {heading[1]: (heading.end(), end) for heading, end in blocks(text, _HEADING)}
    cut = "Status code distribution" not in spans and _ETCD.search(text) is None

    def rows_under(*names: str, like: re.Pattern[str], strict: bool = True) -> list[re.Match[str]]:
        """Rows of the first of these blocks that is there, without a truncated last line."""
        nonlocal cut
        start, end = next((spans[name] for name in names if name in spans), (0, 0))
        if end == len(text) and not text.endswith("\n"):
            last = text.rfind("\n") + 1
            if last > start and like.match(text[last:]) is None:
                end, cut = last, True
        expected = f"a row of the {names[-1].lower()}"
        if strict and end < len(text):
            return part.matches(like, start, end, expected)
        rows = []
        for number, line in part.lines(start, end):
            row = like.match(line)
            if row is not None:
                rows.append(row)
            elif line.lstrip().startswith("["):
                seen = f"{printable(line.strip(), 50)!r}"
                raise part.source.corrupt(number, seen, expected, "run the tool anew")
        return rows

    distributions = (_GOOD, "Latency distribution", "Response time distribution")
    points = rows_under(*distributions, like=_POINT)
    histograms = ("Response time histogram (2xx only)", "Response time histogram")
    buckets = rows_under(*histograms, like=_BUCKET)
    errors: dict[str, int] = {}
    for row in rows_under("Error distribution", like=_ERROR, strict=False):
        errors[row[2]] = errors.get(row[2], 0) + int(row[1])
    statuses = rows_under("Status code distribution", like=_STATUS, strict=False)
    total = facts.get("Total", math.nan)
    return HeyReport(
        {"min": facts["Fastest"], "max": facts["Slowest"], "mean": facts["Average"]},
        {float(row[1]): _ns(row[2], row[3]) for row in points if 0 < float(row[1]) < 100},
        tuple(_ns(row[1], row[2]) for row in buckets),
        tuple(int(row[3]) for row in buckets),
        {int(row[1]): int(row[2]) for row in statuses},
        errors,
        total / 1e9 if math.isfinite(total) else None,
        facts.get("Requests/sec"),
        cut=cut,
        apart=_GOOD in spans,
        grain=0.0006 * _ns("1", buckets[0][2]) if buckets else 0.0,
    )


def data_from_report(report: HeyReport, run: Run, timeout: float) -> Data:
    """Return the finest distribution that the report allows."""
    outcomes, mixed = report.outcomes, 0 if report.apart else report.mixed
    run = run.replace(duration=report.duration, achieved=report.achieved, **outcomes)
    run = run.with_notes(*mixed_note(mixed))
    if report.cut:
        run = run.with_notes("the report is truncated at its end")
    answered, counted = sum(report.statuses.values()), sum(report.buckets)
    stats = dict(report.stats)
    if 0 < counted < answered - (report.mixed if report.apart else 0) and not report.cut:
        note = f"the distribution is of the first {counted:,} of {answered:,} replies"
        run = run.with_notes(note)
        stats.pop("mean", None)  # the tool divides the sum of all by the number of the first ones
    good = answered - report.mixed if answered else counted
    if not (answered or counted) or (good <= 0 and not report.points):
        return unanswered(run)
    if report.apart and report.mixed:
        stats = {"max": report.marks[-1]} if report.marks else {}
    # Some versions of oha print marks that do not lead from the fastest to the slowest request.
    near = report.grain + 1.0
    even = (
        len(report.marks) >= 2
        and {"min", "max"} <= set(stats)
        and abs(report.marks[0] - stats["min"]) <= near
        and abs(report.marks[-1] - stats["max"]) <= near
    )
    data: Data
    if mixed or not counted or not even:
        data = data_from_points(report.points, good, stats, run)
    else:
        edges = np.round(np.linspace(stats["min"], stats["max"], len(report.buckets)), 3)
        data = histogram_of_both(report.points, edges.tolist(), report.buckets, stats, run)
    if outcomes["timeouts"] and isinstance(data, Histogram):
        if run.timeout is None and report.duration is not None and report.duration * 1e9 < timeout:
            timeout = 0.0  # the run was shorter: only the slowest reply bounds the timeout
        bound = max(timeout, data.max)
        return replace(data, censored=outcomes["timeouts"], censored_at=bound)
    return data


# ------------------------------------------------------------
# hey's own outputs.

_HEADER = "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read"
_TIMEOUT, _MOST = 20e9, 1_000_000
_RUN = Run(tool="hey", loop="closed", measure="service", corrected="none", unit="s")


def sniff_text(head: Head) -> Confidence:
    """Recognise the headings; the reports of oha and ghz have others."""
    text = plain(head.text)
    other = "Success rate:" in text or re.search(r"^[ \t]*Count:\s+\d", text, re.MULTILINE)
    return certain(is_report(text, "Latency distribution") and not other)


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read every report; a command line before it, of a copied terminal, describes the run."""
    series: dict[str, Data] = {}
    for name, part in section_runs(source, BEGIN).items():
        command = command_of(part.text, "hey", "boom")
        pairs = re.findall(r" -([cqt])[ =]?(\d+(?:\.\d+)?)", command or "")
        flags = {key: float(value) for key, value in pairs}
        workers, each = int(flags.get("c", 50)) if command else None, flags.get("q", 0.0)
        run = _RUN.replace(
            command=command,
            connections=workers,
            loop="paced" if each else "closed",
            rate=each * workers if each and workers else None,
            expected_interval=round(1e9 / each, 3) if each else None,
            timeout=flags["t"] * 1e9 if "t" in flags else None,
        )
        if _ETCD.search(part.text):
            run = run.replace(tool="etcd benchmark", loop="unknown", connections=None)
        timeout = run.timeout or _TIMEOUT
        series[name] = data_from_report(parse_report(part), run, timeout)
    return series


def read_csv(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every reply; hey leaves requests without one out of its CSV."""
    columns = tuple(source.head.lines[0].strip().split(","))
    numbers = tuple(name for name in ("response-time", "status-code", "offset") if name in columns)
    largest = {"response-time": 9e9, "offset": 9e9}
    further = [name for name in columns if name not in numbers] if options.columns else []
    layout = RowLayout(columns, numbers, tuple(further), skip=1, largest=largest)
    frame, notes = read_table(source, options, layout)
    given: dict[str, Any] = {"duration": frame["response-time"].to_numpy(np.float64)}
    if "offset" in frame:
        given["start"] = frame["offset"].to_numpy(np.float64)
    if "status-code" in frame:
        given["outcome"] = outcome_codes(error=frame["status-code"].to_numpy(np.int64) >= 400)
    if options.columns:
        given["columns"] = further_columns([frame[[*further, "status-code"]]])
    if len(frame) == _MOST:
        notes += ("hey keeps the first million replies: the run may have been longer",)
    run = _RUN.replace(unit_from="format", notes=("hey prints times to 0.1 ms", *notes))
    return samples_of(given, run, options, unit="s")


FORMATS = (
    Format(
        "hey", "hey (text)", "histogram", (".txt",), sniff_text, read_text, unit="s",
        example="hey -z 30s -c 8 http://127.0.0.1:8080/ > hey.txt",
    ),
    Format(
        "hey-csv", "hey (CSV)", "samples", (".csv",), starts_with(_HEADER), read_csv, unit="s",
        example="hey -z 30s -c 8 -o csv http://127.0.0.1:8080/ > hey.csv",
    ),
)  # fmt: skip
