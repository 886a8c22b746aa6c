"""wrk2: its text.

wrk2 keeps a schedule and prints a spectrum of times from the moment each request was due, and with
``--u_latency`` a second one from its send. It discards what it measured in its first ten seconds,
in which it calibrates.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.io.build import (
    data_from_points,
    distinct,
    histogram_of_both,
    in_nanoseconds,
    nanoseconds_of,
    nothing_answered,
)
from latencykit.io.hgrm import parse_spectrum
from latencykit.io.sniffing import certain
from latencykit.io.source import Format
from latencykit.io.text import plain_report
from latencykit.io.tools.wrk import POINT, is_wrk, is_wrk2, named_runs, ns_of, report_of

if TYPE_CHECKING:
    from latencykit.core.histogram import Histogram
    from latencykit.core.run import Run
    from latencykit.io.source import Confidence, Data, Head, ReadOptions, Source
    from latencykit.io.text import Section

__all__ = ["FORMATS"]

_TITLE = re.compile(
    r"^ *Latency Distribution \(HdrHistogram - (Recorded|Uncorrected) Latency.*$", re.MULTILINE
)
_DETAILS = re.compile(r"^ *Detailed Percentile spectrum: *$", re.MULTILINE)
_FOOTER = re.compile(r"^#\[Buckets.*$|^-{20,}", re.MULTILINE)
_RATE = re.compile(r" (?:-R *|--rate[ =])(\d+(?:\.\d+)?)([kKmM]?)\b")
_KINDS: dict[str, dict[str, Any]] = {
    "corrected": {"measure": "response", "corrected": "schedule"},
    "uncorrected": {"measure": "service", "corrected": "none", "loop": "paced"},
}
_CALIBRATION = 10.0
_HINT = "wrk2 --latency prints the distribution"


def sniff(head: Head) -> Confidence:
    """Recognize the table of thread statistics, and the lines that only wrk2 prints."""
    text = plain_report(head.text)
    return certain(is_wrk(text) and is_wrk2(text))


def read(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the spectra of every run: ``corrected``, then ``uncorrected``."""
    series: dict[str, Data] = {}
    for part, name in named_runs(source):
        for kind, data in _spectra(part).items():
            series[distinct(f"{name} {kind}".strip(), series)] = data
    return series


def _spectra(part: Section) -> dict[str, Data]:
    """The spectra of a run; without ``--latency`` the statistics, of the corrected values."""
    report = report_of(part)
    rate = _RATE.search(report.run.command or "")
    factor = {"": 1.0, "k": 1e3, "m": 1e6}[rate[2].lower()] if rate else 0.0
    run = report.run.replace(
        tool="wrk2", loop="open", rate=float(rate[1]) * factor if rate else None
    )
    if run.rate and run.connections:
        run = run.replace(expected_interval=round(1e9 * run.connections / run.rate, 3))
    if run.timeouts:
        run = run.with_notes(
            "wrk2 counts timeouts apart, yet keeps the times of those that were answered after all"
        )
    if "Thread calibration:" in part.text and run.duration and run.duration > _CALIBRATION:
        run = run.replace(duration=round(run.duration - _CALIBRATION, 6)).with_notes(
            "the first 10 s, in which wrk2 calibrates, are not among the values"
        )
    titles = list(_TITLE.finditer(part.text))
    ends = [*(title.start() for title in titles[1:]), len(part.text)]
    series: dict[str, Data] = {}
    for title, end in zip(titles, ends, strict=False):
        kind = "corrected" if title[1] == "Recorded" else "uncorrected"
        complete, own = report.requests is not None, run.replace(**_KINDS[kind])
        series[kind] = _spectrum(part, title.end(), end, complete, own)
    if series:
        return series
    if report.requests == 0:
        raise nothing_answered(part.source, run)
    run = run.replace(**_KINDS["corrected"]).with_notes(_HINT)
    return {"corrected": data_from_points({}, report.requests, report.stats, run)}


def _spectrum(part: Section, start: int, end: int, complete: bool, run: Run) -> Data:
    """One spectrum; its short table alone, where the details are missing or truncated."""
    text = part.text
    details = _DETAILS.search(text, start, end)
    # A truncated last line is left out.
    last = max(text.rfind("\n", start, details.start() if details else end) + 1, start)
    rows = part.matches(POINT, start, last, "a percentile and a duration")
    points = {float(row[1]): ns_of(row[2]) for row in rows}
    top = points.pop(100.0, None)
    footer = _FOOTER.search(text, details.end(), end) if details else None
    if details is None or (footer is None and not complete):
        if not points:
            expected = "percentiles below this line"
            raise part.corrupt(start, "the spectrum is missing", expected, "did the run end?")
        return data_from_points(points, None, {} if top is None else {"max": top}, run)
    until = text.find("\n", footer.start()) if footer else end
    return _detailed(part, details.end(), until if until > 0 else end, points, run)


def _detailed(
    part: Section, start: int, end: int, points: dict[float, float], run: Run
) -> Histogram:
    """The histogram between the rows of the details (ms), and the percentiles of the table."""

    def fail(number: int | None, seen: str, expected: str) -> Exception:
        return part.source.corrupt(number, seen, expected, "run wrk2 anew")

    lines = part.lines(start, end)
    rows = ((number, line) for number, line in lines if not line.startswith("----"))
    spectrum = parse_spectrum(rows, fail)
    for label, name in (("#[Mean", "mean"), ("#[Max", "max")):
        at = next((number for number, line in lines if line.startswith(label)), None)
        if at is not None and name not in spectrum.reported_stats:
            raise fail(at, f"the {name} is corrupt", f"{label} = a number")
    if not spectrum.counts or not spectrum.counts[-1]:
        raise nothing_answered(part.source, run)
    highs, cumulative = nanoseconds_of(spectrum.values, "ms"), np.asarray(spectrum.counts)
    if (np.diff(highs) < 0).any() or (np.diff(cumulative) < 0).any():
        seen = "values and counts do not both ascend"
        raise fail(part.line_at(start), seen, "rows in ascending order")
    stats = in_nanoseconds(spectrum.reported_stats, "ms")
    # The footer's maximum is the lower end of its bucket.
    stats |= {"min": float(highs[0]), "max": max(stats.get("max", 0.0), float(highs[-1]))}
    counts = np.diff(cumulative, prepend=0).tolist()
    return histogram_of_both(points, highs.tolist(), counts, stats, run)


FORMATS = (
    Format(
        "wrk2", "wrk2 (text)", "histogram", (".txt",), sniff, read, unit="ms",
        example="wrk2 -t2 -c8 -d30s -R400 --latency --u_latency http://127.0.0.1:8080/ "
        "> wrk2.txt",
    ),
)  # fmt: skip
