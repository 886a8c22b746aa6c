"""wrk2: its text.

wrk2 keeps a schedule and prints a spectrum of times from the moment each request was due, and with ``--u_latency`` a
second one from its send. What it measured in its first ten seconds, in which it calibrates, it throws away.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.io.build import (
    data_from_points,
    distinct,
    histogram_of_both,
    nanoseconds,
    nanoseconds_of,
    nothing_answered,
)
from latencykit.io.hgrm import parse_spectrum
from latencykit.io.source import Confidence, Format
from latencykit.io.text import plain_report
from latencykit.io.tools.wrk import POINT, is_wrk, is_wrk2, named_runs, ns_of, told_by

if TYPE_CHECKING:
    from latencykit.core.histogram import Histogram
    from latencykit.core.run import Run
    from latencykit.io.source import Data, Head, ReadOptions, Source
    from latencykit.io.text import Section
    from latencykit.io.tools.wrk import Told

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
    """Tell the table of thread statistics, and what only wrk2 prints around it."""
    text = plain_report(head.text)
    return Confidence.CERTAIN if is_wrk(text) and is_wrk2(text) else Confidence.NO


def read(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the spectra of every run: ``corrected``, then ``uncorrected``."""
    found: dict[str, Data] = {}
    for part, name in named_runs(source):
        for kind, data in _series(part).items():
            found[distinct(f"{name} {kind}".strip(), found)] = data
    return found


def _series(part: Section) -> dict[str, Data]:
    """The spectra of one run; without ``--latency`` the statistics alone, which are of the corrected values."""
    reported_stats = _calibrated(told_by(part), part.text)
    titles = list(_TITLE.finditer(part.text))
    bounds = [*(one.start() for one in titles), len(part.text)]
    found: dict[str, Data] = {}
    for title, end in zip(titles, bounds[1:], strict=True):
        kind = "corrected" if title[1] == "Recorded" else "uncorrected"
        found[kind] = _spectrum(
            part, title.end(), end, reported_stats, reported_stats.run.replace(**_KINDS[kind])
        )
    if found:
        return found
    if reported_stats.requests == 0:
        raise nothing_answered(part.source, reported_stats.run)
    return {
        "corrected": data_from_points(
            {},
            reported_stats.requests,
            reported_stats.stats,
            reported_stats.run.replace(**_KINDS["corrected"]).with_notes(_HINT),
        )
    }


def _calibrated(reported_stats: Told, text: str) -> Told:
    """The run without its first ten seconds, where it says that it calibrated."""
    run = reported_stats.run.replace(
        tool="wrk2", loop="open", rate=_rate_of(reported_stats.run.command)
    )
    if run.rate and run.connections:
        run = run.replace(expected_interval=round(1e9 * run.connections / run.rate, 3))
    if run.timeouts:
        run = run.with_notes(
            "wrk2 counts timeouts apart, yet keeps the times of those that were answered after all"
        )
    if "Thread calibration:" in text and run.duration and run.duration > _CALIBRATION:
        run = run.replace(duration=round(run.duration - _CALIBRATION, 6)).with_notes(
            "the first 10 s, in which wrk2 calibrates, are not among the values"
        )
    return reported_stats._replace(run=run)


def _rate_of(command: str | None) -> float | None:
    found = _RATE.search(command or "")
    return float(found[1]) * {"": 1.0, "k": 1e3, "m": 1e6}[found[2].lower()] if found else None


def _spectrum(part: Section, start: int, end: int, reported_stats: Told, run: Run) -> Data:
    """One spectrum; its short table alone, where the details are missing or cut."""
    details = _DETAILS.search(part.text, start, end)
    points, top = _points(part, start, details.start() if details else end)
    footer = _FOOTER.search(part.text, details.end(), end) if details else None
    if details is None or (footer is None and reported_stats.requests is None):
        if not points:
            raise part.corrupt(
                start, "the spectrum is missing", "percentiles below this line", "did the run end?"
            )
        return data_from_points(points, None, top, run)
    until = part.text.find("\n", footer.start()) if footer else end
    return _detailed(part, details.end(), until if until > 0 else end, points, run)


def _points(part: Section, start: int, end: int) -> tuple[dict[float, float], dict[str, float]]:
    """The short table of percentiles, and its 100 % as the maximum; a cut last line is left out."""
    rows = part.matches(
        POINT,
        start,
        max(part.text.rfind("\n", start, end) + 1, start),
        "a percentile and a duration",
    )
    points = {float(row[1]): ns_of(row[2]) for row in rows}
    top = points.pop(100.0, None)
    return points, {} if top is None else {"max": top}


def _detailed(
    part: Section, start: int, end: int, points: dict[float, float], run: Run
) -> Histogram:
    """The histogram between the rows of the details (ms), and the percentiles of the short table."""

    def fail(number: int, seen: str, expected: str) -> Exception:
        return part.source.corrupt(number, seen, expected, "run wrk2 anew")

    rows = (
        (number, line) for number, line in part.lines(start, end) if not line.startswith("----")
    )
    spectrum = parse_spectrum(rows, fail)
    for label, name in (("#[Mean", "mean"), ("#[Max", "max")):
        line = next(
            (number for number, text in part.lines(start, end) if text.startswith(label)), None
        )
        if line is not None and name not in spectrum.reported_stats:
            raise part.source.corrupt(
                line, f"the {name} is corrupt", f"{label} = a number", "run wrk2 anew"
            )
    if not spectrum.counts or not spectrum.counts[-1]:
        raise nothing_answered(part.source, run)
    highs, cumulative = nanoseconds_of(spectrum.values, "ms"), np.asarray(spectrum.counts)
    if (np.diff(highs) < 0).any() or (np.diff(cumulative) < 0).any():
        raise part.corrupt(
            start,
            "values and counts do not both ascend",
            "rows in ascending order",
            "run wrk2 anew",
        )
    stats = {name: nanoseconds(value, "ms") for name, value in spectrum.reported_stats.items()}
    # The footer's maximum is the lower end of its bucket.
    stats |= {"min": float(highs[0]), "max": max(stats.get("max", 0.0), float(highs[-1]))}
    return histogram_of_both(
        points, highs.tolist(), np.diff(cumulative, prepend=0).tolist(), stats, run
    )


FORMATS = (
    Format(
        "wrk2", "wrk2 (text)", "histogram", (".txt",), sniff, read, unit="ms",
        example="wrk2 -t2 -c8 -d30s -R400 --latency --u_latency http://127.0.0.1:8080/ > wrk2.txt",
    ),
)  # fmt: skip
