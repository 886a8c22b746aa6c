"""wrk: its text.

The distribution of wrk 4 is corrected for coordinated omission by the tool itself. Replies that come after its
``--timeout`` (2 s by default) are left out of it and only counted.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from latencykit.core.histogram import Histogram
from latencykit.core.run import Run
from latencykit.io.build import data_from_points, distinct, mixed_note, nothing_answered, several
from latencykit.io.source import Confidence, Format
from latencykit.io.text import command_of, plain_report, sections
from latencykit.units import parse_duration

if TYPE_CHECKING:
    from latencykit.io.source import Data, Head, ReadOptions, Source
    from latencykit.io.text import Section

__all__ = ["FORMATS", "POINT", "Told", "is_wrk", "is_wrk2", "named_runs", "ns_of", "told_by"]

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


class Told(NamedTuple):
    """What a report says beside its distribution; `mixed` requests failed and are among the values all the same."""

    run: Run
    stats: dict[str, float]
    requests: int | None
    mixed: int


def is_wrk(text: str) -> bool:
    """Whether there is the table of thread statistics, which wrk and its forks share."""
    return _HEADER.search(text) is not None


def is_wrk2(text: str) -> bool:
    """Whether there is what only wrk2 prints."""
    return (
        "(HdrHistogram - " in text
        or re.search(r"^ +Thread calibration: ", text, re.MULTILINE) is not None
    )


def sniff(head: Head) -> Confidence:
    """Tell the table of thread statistics."""
    text = plain_report(head.text)
    return Confidence.CERTAIN if is_wrk(text) and not is_wrk2(text) else Confidence.NO


def named_runs(source: Source) -> list[tuple[Section, str]]:
    """Return the runs in a file: one is named after the file, several after what they asked for."""
    parts = sections(source, _BEGIN)
    if len(parts) == 1:
        return [(parts[0], "")]
    return [(part, found[1] if (found := _BEGIN.search(part.text)) else "run") for part in parts]


def ns_of(text: str) -> float:
    """Return nanoseconds of what wrk prints for a duration; not-a-number where it had nothing to print."""
    return math.nan if re.match(r"-?(?:nan|inf)", text) else round(parse_duration(text), 3)


def told_by(part: Section) -> Told:
    """Return the numbers around the distribution; a report cut before its closing line has no count."""
    text = part.text
    header, row, closing = _HEADER.search(text), _STATS.search(text), _CLOSING.search(text)
    if header is None or row is None:
        raise part.corrupt(
            header and header.start(),
            "the thread statistics are missing",
            "a line Latency with Avg, Stdev, Max",
        )
    if closing is None and "Requests/sec" in text:
        raise part.corrupt(
            text.index("Requests/sec"),
            "the line above it is corrupt",
            "the number of requests",
            "run wrk anew",
        )
    stats = dict(
        zip(
            ("mean", "std", "max" if header[1] == "Max" else "p99"),
            map(ns_of, row.groups()),
            strict=True,
        )
    )
    reported_stats = part.found(
        "Socket errors:", _ERRORS, "numbers of connect, read, write and timeout"
    )
    errors = [int(number) for number in reported_stats.groups()] if reported_stats else [0, 0, 0, 0]
    refused = part.found("Non-2xx or 3xx responses:", _REFUSED, "a number")
    clients = re.search(r"^ *\d+ threads? and (\d+) connections?", text, re.MULTILINE)
    achieved = re.search(r"^Requests/sec: *([\d.]+)", text, re.MULTILINE)
    command, mixed = command_of(text, "wrk", "wrk2"), int(refused[1]) if refused else 0
    run = Run(
        command=command,
        duration=ns_of(closing[2]) / 1e9 if closing else None,
        achieved=float(achieved[1]) if achieved else None,
        connections=int(clients[1]) if clients else None,
        failed=mixed + sum(errors[:3]),
        timeouts=errors[3],
        timeout=_timeout_of(command),
        unit="ms",
        notes=(*mixed_note(mixed), *(() if closing else (_CUT,))),
    )
    return Told(run, stats, int(closing[1]) if closing else None, mixed)


def _timeout_of(command: str | None) -> float | None:
    found = re.search(r" (?:-T|--timeout)[ =]?(\d+)(s|m|h)?\b", command or "")
    return parse_duration(f"{found[1]}{found[2] or 's'}") if found else None


def read(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the distribution of every run."""
    found: dict[str, Data] = {}
    for part, name in named_runs(source):
        found[distinct(name, found)] = _series(part)
    return found


def _series(part: Section) -> Data:
    """One run: of its replies, those that came too late are censored."""
    run, stats, complete, mixed = told_by(part)
    run = run.replace(tool="wrk", loop="closed", measure="response", corrected="tool")
    limit = max(run.timeout or _TIMEOUT, stats.get("max", 0.0))
    if run.timeouts:
        known = "" if run.timeout else " (2 s unless it was set)"
        run = run.with_notes(
            f"{several(run.timeouts, 'timeout')}: what took longer than --timeout{known} is not among the values"
        )
    count = None if complete is None else complete - mixed - run.timeouts
    if count is not None and count <= 0:
        raise nothing_answered(part.source, run)
    points = _points(part)
    if not points:
        return data_from_points({}, count, stats, run.with_notes(_HINT))
    data = data_from_points(points, count, stats, run)
    late = run.timeouts if isinstance(data, Histogram) else 0
    return (
        replace(data, censored=late, censored_at=limit)
        if isinstance(data, Histogram) and late
        else data
    )


def _points(part: Section) -> dict[float, float]:
    """The printed percentiles; in a report that is cut, a last line that is cut is left out."""
    title = _TITLE.search(part.text)
    if title is None:
        return {}
    closing = _CLOSING.search(part.text)
    end = closing.start() if closing else part.text.rfind("\n") + 1
    rows = part.matches(
        POINT, title.end(), max(end, title.end()), "a percentile and a duration, such as 99% 5.74ms"
    )
    return {float(row[1]): ns_of(row[2]) for row in rows}


FORMATS = (
    Format(
        "wrk", "wrk (text)", "histogram", (".txt",), sniff, read,
        example="wrk -t2 -c8 -d30s --latency --timeout 30s http://127.0.0.1:8080/ > wrk.txt",
    ),
)  # fmt: skip
