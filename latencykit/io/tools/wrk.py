"""wrk and wrk2: their texts.

The distribution of wrk 4 is corrected for coordinated omission by the tool itself. Replies that
arrive after its ``--timeout`` (2 s by default) are left out of it and only counted.

wrk2 keeps a schedule and prints a spectrum of times from the moment each request was due, and with
``--u_latency`` a second one from its send. It discards what it measured in its first ten seconds,
in which it calibrates.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np

from latencykit._text import format_items
from latencykit.core.histogram import Histogram
from latencykit.core.run import Note, Run
from latencykit.io import build
from latencykit.io.hgrm import parse_spectrum
from latencykit.io.source import Data, ReadOptions, Series, Source
from latencykit.io.text_reports import Section, blocks, command_of, fact, has_match, plain, sections
from latencykit.units import parse_duration

_BEGIN = re.compile(r"^[^\n]{0,40}?Running \S+ test @ (\S+)", re.MULTILINE)
_DURATION = r"(-?(?:[\d.]+(?:e[-+]?\d+)?|nan|inf)(?:[nu]s|ms|s|m|h))"
_HEADER = re.compile(r"^ *Thread Stats +Avg +Stdev +(Max|99%) +\+/- Stdev", re.MULTILINE)
_RUN = re.compile(  # the first line is missing in some copies
    rf"{_BEGIN.pattern}(?:[^\n]*\n(?!{_BEGIN.pattern}))*?{_HEADER.pattern}"
    rf"|{_BEGIN.pattern}|{_HEADER.pattern}",
    re.MULTILINE,
)
_STATS = re.compile(rf"^ *Latency +{_DURATION} +{_DURATION} +{_DURATION}(?:\s|$)", re.MULTILINE)
_TITLE = re.compile(r"^ *Latency Distribution *$", re.MULTILINE)
_POINT = re.compile(rf"^ *([\d.]+)% +{_DURATION} *$")
_CLOSING = re.compile(rf"^ *([\d,]+) requests in +{_DURATION}, ", re.MULTILINE)
_ERRORS = re.compile(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)")
_REFUSED = re.compile(r"Non-2xx or 3xx responses: (\d+)")
_TIMEOUT = 2e9
_CUT = Note(
    "the report has no closing line: it is truncated, and the number of requests is unknown"
)
_HINT = "wrk --latency prints the distribution"
_SPECTRUM = re.compile(
    r"^ *Latency Distribution \(HdrHistogram - (Recorded|Uncorrected) Latency.*$", re.MULTILINE
)
_DETAILS = re.compile(r"^ *Detailed Percentile spectrum: *$", re.MULTILINE)
_BELOW = re.compile(rf"^#\[|{_CLOSING.pattern}", re.MULTILINE)  # a table without its details
_FOOTER = re.compile(r"^#\[Buckets.*$|^-{20,}", re.MULTILINE)
_RATE = re.compile(r" (?:-R *|--rate[ =])(\d+(?:\.\d+)?)([kKmM]?)\b")
_OF_WRK2 = r"\(HdrHistogram - |^ *Thread calibration: "
_KINDS: dict[str, dict[str, Any]] = {
    "corrected": {"measure": "response", "corrected": "schedule"},
    "uncorrected": {"measure": "service", "corrected": "none", "loop": "paced"},
}
_CALIBRATION = 10.0
_WRK2_HINT = "wrk2 --latency prints the distribution"


def _named_runs(source: Source) -> list[tuple[Section, str]]:
    """Return the runs in a file: one is named after the file, several after their URLs."""
    parts = sections(source, _RUN)
    urls = [fact(part.text, _BEGIN, str) or f"run {k}" for k, part in enumerate(parts, 1)]
    return list(zip(parts, urls if len(parts) > 1 else [""], strict=True))


def _ns_of(text: str) -> float:
    """Return a duration as wrk prints it, in ns; not-a-number where it had nothing to print."""
    return math.nan if re.match(r"-?(?:nan|inf)", text) else round(parse_duration(text), 3)


def _report_of(part: Section) -> tuple[Run, dict[str, float], int | None, int]:
    """Run, statistics, requests (none in a truncated report), and those of them that failed."""
    text = part.text
    header, row, closing = _HEADER.search(text), _STATS.search(text), _CLOSING.search(text)
    if header is None or row is None:
        at, expected = header and header.start(), "a line Latency with Avg, Stdev, Max"
        raise part.corrupt(at, "the thread statistics are missing", expected)
    if closing is None and "Requests/sec" in text:
        at, seen = text.index("Requests/sec"), "the line above it is corrupt"
        raise part.corrupt(at, seen, "the number of requests", "run wrk anew")
    names = ("mean", "std", "max" if header[1] == "Max" else "p99")
    stats = dict(zip(names, map(_ns_of, row.groups()), strict=True))
    expected = "numbers of connect, read, write and timeout"
    counts = part.found("Socket errors:", _ERRORS, expected)
    errors = [int(number) for number in counts.groups()] if counts else [0, 0, 0, 0]
    refused = part.found("Non-2xx or 3xx responses:", _REFUSED, "a number")
    command, mixed = command_of(text, "wrk", "wrk2"), int(refused[1]) if refused else 0
    timeout = re.search(r" (?:-T|--timeout)[ =]?(\d+)(s|m|h)?\b", command or "")
    run = Run(
        command=command, duration=_ns_of(closing[2]) / 1e9 if closing else None,
        achieved=fact(text.replace(",", ""), r"^Requests/sec: *([\d.]+)", float),
        connections=fact(text, r"^ *\d+ threads? and (\d+) connections?", int),
        failed=mixed + sum(errors[:3]), timeouts=errors[3],
        timeout=parse_duration(f"{timeout[1]}{timeout[2] or 's'}") if timeout else None,
        unit="ms", notes=(*build.mixed_note(mixed), *(() if closing else (_CUT,))),
    )  # fmt: skip
    return run, stats, int(closing[1].replace(",", "")) if closing else None, mixed


def read(source: Source, options: ReadOptions) -> Series:
    """Read the distribution of every run; replies that came too late are censored."""
    for part, name in _named_runs(source):
        run, stats, requests, mixed = _report_of(part)
        run = run.replace(tool="wrk", loop="closed", measure="response", corrected="tool")
        if run.timeouts:
            limit = "--timeout" if run.timeout else "--timeout (2 s unless it was set)"
            late = format_items(run.timeouts, "timeout")
            run = run.with_notes(f"{late}: what took longer than {limit} is not among the values")
        count = None if requests is None else requests - mixed - run.timeouts
        if count is not None and count <= 0:
            if not mixed:
                yield name, build.unanswered(run)
                continue
            count = 0  # the values are those of the failed ones
        title, points = _TITLE.search(part.text), dict[float, float]()
        if title:
            closing = _CLOSING.search(part.text)  # without it, the last line may be truncated, too
            end = closing.start() if closing else part.text.rfind("\n") + 1
            expected = "a percentile and a duration, such as 99% 5.74ms"
            rows = part.matches(_POINT, title.end(), max(end, title.end()), expected)
            points = {float(row[1]): _ns_of(row[2]) for row in rows}
        data = build.data_from_points(
            points, count, stats, run if points else run.with_notes(_HINT)
        )
        if points and run.timeouts and isinstance(data, Histogram):
            bound = max(run.timeout or _TIMEOUT, stats.get("max", 0.0))
            data = replace(data, censored=run.timeouts, censored_at=bound)
        yield name, data


def read_wrk2(source: Source, options: ReadOptions) -> Series:
    """Read the spectra of every run: ``corrected``, then ``uncorrected``."""
    for part, name in _named_runs(source):
        for kind, data in _spectra(part).items():
            yield f"{name} {kind}".strip(), data


def _spectra(part: Section) -> dict[str, Data]:
    """The spectra of a run; without ``--latency`` the statistics, of the corrected values."""
    run, stats, requests, mixed = _report_of(part)
    good = max(requests - mixed, 0) if mixed and requests is not None else None
    rate = _RATE.search(run.command or "")
    factor = {"": 1.0, "k": 1e3, "m": 1e6}[rate[2].lower()] if rate else 0.0
    run = run.replace(tool="wrk2", loop="open", rate=float(rate[1]) * factor if rate else None)
    if run.rate and run.connections:
        run = run.replace(expected_interval=round(1e9 * run.connections / run.rate, 3))
    if run.timeouts:
        run = run.with_notes(
            "wrk2 counts timeouts apart, yet keeps the times of those that were answered after all"
        )
    whole = run.duration
    if "Thread calibration:" in part.text and run.duration and run.duration > _CALIBRATION:
        text = "the first 10 s, in which wrk2 calibrates, are not among the values"
        run = run.replace(duration=round(run.duration - _CALIBRATION, 6))
        run = run.with_notes(Note(text, "begin", _CALIBRATION))
    series: dict[str, Data] = {}
    for title, end in blocks(part.text, _SPECTRUM):
        kind = "corrected" if title[1] == "Recorded" else "uncorrected"
        own, start, text = run.replace(**_KINDS[kind]), title.end(), part.text
        details = _DETAILS.search(text, start, end)
        footer = _FOOTER.search(text, details.end() if details else start, end)
        below = details or _BELOW.search(text, start, end)
        table = below.start() if below else end
        last = max(text.rfind("\n", start, table) + 1, start)
        rows = part.matches(_POINT, start, last, "a percentile and a duration")
        points = {float(row[1]): _ns_of(row[2]) for row in rows}
        top = points.pop(100.0, None)
        if details is None or (footer is None and requests is None):
            if not points:
                expected = "percentiles below this line"
                raise part.corrupt(start, "the spectrum is missing", expected, "did the run end?")
            counted = fact(text[start:end], r"^#\[Max.*Total count *= *(\d+)", int)
            count, known = counted if good is None else good, {} if top is None else {"max": top}
            series[kind] = build.data_from_points(points, count, known, own)
        else:
            until = text.find("\n", footer.start()) if footer else end
            stop = until if until > 0 else end
            series[kind] = _detailed(part, (details.end(), stop), points, own, good)
    if series:
        return series
    run = run.replace(duration=whole, **_KINDS["corrected"])  # that of all that are counted
    if requests == 0:
        return {"corrected": build.unanswered(run)}
    count = requests if good is None else good
    return {"corrected": build.data_from_points({}, count, stats, run.with_notes(_WRK2_HINT))}


def _detailed(
    part: Section, span: tuple[int, int], points: dict[float, float], run: Run, good: int | None
) -> Data:
    """The histogram between the rows of the details (ms), and the percentiles of the table."""
    # Where failed requests are among the values, only the number of `good` ones is known.

    def fail(number: int | None, seen: str, expected: str) -> Exception:
        return part.source.corrupt(number, seen, expected, "run wrk2 anew")

    lines = part.lines(*span)
    spectrum = parse_spectrum(lines, fail)
    for label, name in (("#[Mean", "mean"), ("#[Max", "max")):
        at = next((number for number, line in lines if line.startswith(label)), None)
        if at is not None and name not in spectrum.reported_stats:
            raise fail(at, f"the {name} is corrupt", f"{label} = a number")
    if not spectrum.counts or not spectrum.counts[-1]:
        return build.unanswered(run)
    highs, cumulative = build.nanoseconds_of(spectrum.values, "ms"), np.asarray(spectrum.counts)
    if (np.diff(highs) < 0).any() or (np.diff(cumulative) < 0).any():
        seen = "values and counts do not both ascend"
        raise fail(part.line_at(span[0]), seen, "rows in ascending order")
    stats = build.in_nanoseconds(spectrum.reported_stats, "ms")
    # The footer's maximum is the lower end of its bucket.
    stats |= {"min": float(highs[0]), "max": max(stats.get("max", 0.0), float(highs[-1]))}
    if good is not None:
        shares = (100.0 * cumulative / cumulative[-1]).tolist()
        return build.data_from_points(
            dict(zip(shares, highs.tolist(), strict=True)), good, stats, run
        )
    counts = np.diff(cumulative, prepend=0).tolist()
    return build.histogram_of_both(points, highs.tolist(), counts, stats, run)


FORMATS = {
    "wrk": (has_match(_HEADER, without=_OF_WRK2, plain=plain), read),
    "wrk2": (has_match(_HEADER, _OF_WRK2, plain=plain), read_wrk2),
}
