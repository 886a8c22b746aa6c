"""wrk: its text.

The distribution of wrk 4 is corrected for coordinated omission by the tool itself. Replies that
arrive after its ``--timeout`` (2 s by default) are left out of it and only counted.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from latencykit.core.histogram import Histogram
from latencykit.core.run import Run
from latencykit.io.build import data_from_points, distinct, mixed_note, nothing_answered, several
from latencykit.io.sniffing import certain
from latencykit.io.source import Format
from latencykit.io.text import command_of, fact, plain_report, sections
from latencykit.units import parse_duration

if TYPE_CHECKING:
    from latencykit.io.source import Confidence, Data, Head, ReadOptions, Source
    from latencykit.io.text import Section

__all__ = ["FORMATS", "POINT", "Report", "is_wrk", "is_wrk2", "named_runs", "ns_of", "report_of"]

_BEGIN = re.compile(r"^[^\n]{0,40}?Running \S+ test @ (\S+)", re.MULTILINE)
_DURATION = r"(-?(?:[\d.]+(?:e[-+]?\d+)?|nan|inf)(?:us|ms|s|m|h))"
_HEADER = re.compile(r"^ +Thread Stats +Avg +Stdev +(Max|99%) +\+/- Stdev", re.MULTILINE)
_STATS = re.compile(rf"^ +Latency +{_DURATION} +{_DURATION} +{_DURATION}(?:\s|$)", re.MULTILINE)
_TITLE = re.compile(r"^ *Latency Distribution *$", re.MULTILINE)
POINT = re.compile(rf"^ *([\d.]+)% +{_DURATION} *$")
_CLOSING = re.compile(rf"^ *(\d+) requests in +{_DURATION}, ", re.MULTILINE)
_ERRORS = re.compile(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)")
_REFUSED = re.compile(r"Non-2xx or 3xx responses: (\d+)")
_TIMEOUT = 2e9
_CUT = "the report ends before its closing line: it is cut, and the number of requests is not known"
_HINT = "wrk --latency prints the distribution"


class Report(NamedTuple):
    """A report without its distribution; `mixed` requests failed and are among the values."""

    run: Run
    stats: dict[str, float]
    requests: int | None
    mixed: int


def is_wrk(text: str) -> bool:
    """Whether there is the table of thread statistics, which wrk and its forks share."""
    return _HEADER.search(text) is not None


def is_wrk2(text: str) -> bool:
    """Whether there are lines that only wrk2 prints."""
    calibration = re.search(r"^ +Thread calibration: ", text, re.MULTILINE)
    return "(HdrHistogram - " in text or calibration is not None


def sniff(head: Head) -> Confidence:
    """Recognize the table of thread statistics."""
    text = plain_report(head.text)
    return certain(is_wrk(text) and not is_wrk2(text))


def named_runs(source: Source) -> list[tuple[Section, str]]:
    """Return the runs in a file: one is named after the file, several after their URLs."""
    parts = sections(source, _BEGIN)
    if len(parts) == 1:
        return [(parts[0], "")]
    return [(part, fact(part.text, _BEGIN, str) or "run") for part in parts]


def ns_of(text: str) -> float:
    """Return a duration as wrk prints it, in ns; not-a-number where it had nothing to print."""
    return math.nan if re.match(r"-?(?:nan|inf)", text) else round(parse_duration(text), 3)


def report_of(part: Section) -> Report:
    """Return the numbers around the distribution; a truncated report has no count."""
    text = part.text
    header, row, closing = _HEADER.search(text), _STATS.search(text), _CLOSING.search(text)
    if header is None or row is None:
        at, expected = header and header.start(), "a line Latency with Avg, Stdev, Max"
        raise part.corrupt(at, "the thread statistics are missing", expected)
    if closing is None and "Requests/sec" in text:
        at, seen = text.index("Requests/sec"), "the line above it is corrupt"
        raise part.corrupt(at, seen, "the number of requests", "run wrk anew")
    names = ("mean", "std", "max" if header[1] == "Max" else "p99")
    stats = dict(zip(names, map(ns_of, row.groups()), strict=True))
    expected = "numbers of connect, read, write and timeout"
    counts = part.found("Socket errors:", _ERRORS, expected)
    errors = [int(number) for number in counts.groups()] if counts else [0, 0, 0, 0]
    refused = part.found("Non-2xx or 3xx responses:", _REFUSED, "a number")
    command, mixed = command_of(text, "wrk", "wrk2"), int(refused[1]) if refused else 0
    timeout = re.search(r" (?:-T|--timeout)[ =]?(\d+)(s|m|h)?\b", command or "")
    run = Run(
        command=command, duration=ns_of(closing[2]) / 1e9 if closing else None,
        achieved=fact(text, r"^Requests/sec: *([\d.]+)", float),
        connections=fact(text, r"^ *\d+ threads? and (\d+) connections?", int),
        failed=mixed + sum(errors[:3]), timeouts=errors[3],
        timeout=parse_duration(f"{timeout[1]}{timeout[2] or 's'}") if timeout else None,
        unit="ms", notes=(*mixed_note(mixed), *(() if closing else (_CUT,))),
    )  # fmt: skip
    return Report(run, stats, int(closing[1]) if closing else None, mixed)


def read(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the distribution of every run."""
    series: dict[str, Data] = {}
    for part, name in named_runs(source):
        series[distinct(name, series)] = _data(part)
    return series


def _data(part: Section) -> Data:
    """One run: of its replies, those that arrived too late are censored."""
    run, stats, requests, mixed = report_of(part)
    run = run.replace(tool="wrk", loop="closed", measure="response", corrected="tool")
    if run.timeouts:
        limit = "--timeout" if run.timeout else "--timeout (2 s unless it was set)"
        late = several(run.timeouts, "timeout")
        run = run.with_notes(f"{late}: what took longer than {limit} is not among the values")
    count = None if requests is None else requests - mixed - run.timeouts
    if count is not None and count <= 0:
        raise nothing_answered(part.source, run)
    title, points = _TITLE.search(part.text), dict[float, float]()
    if title:
        closing = _CLOSING.search(part.text)  # without it, the last line may be truncated, too
        end = closing.start() if closing else part.text.rfind("\n") + 1
        expected = "a percentile and a duration, such as 99% 5.74ms"
        rows = part.matches(POINT, title.end(), max(end, title.end()), expected)
        points = {float(row[1]): ns_of(row[2]) for row in rows}
    if not points:
        return data_from_points({}, count, stats, run.with_notes(_HINT))
    data = data_from_points(points, count, stats, run)
    if run.timeouts and isinstance(data, Histogram):
        bound = max(run.timeout or _TIMEOUT, stats.get("max", 0.0))
        return replace(data, censored=run.timeouts, censored_at=bound)
    return data


FORMATS = (
    Format(
        "wrk", "wrk (text)", "histogram", (".txt",), sniff, read,
        example="wrk -t2 -c8 -d30s --latency --timeout 30s http://127.0.0.1:8080/ > wrk.txt",
    ),
)  # fmt: skip
