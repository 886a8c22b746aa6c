"""ApacheBench: its text, the rows of ``-g``, and the percentiles of ``-e``.

Text and rows round times to whole milliseconds; ``-e`` prints three decimals, but not how many requests there were.
ab sends the next request of a connection when the reply to the last one came.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.core.run import Run
from latencykit.core.samples import Samples
from latencykit.io.build import (
    data_from_points,
    distinct,
    mixed_note,
    nanoseconds,
    nothing_answered,
    without_negative,
)
from latencykit.io.rows import Layout, read_table
from latencykit.io.source import Confidence, Format
from latencykit.io.text import command_of, plain_report, sections
from latencykit.units import printable

if TYPE_CHECKING:
    from latencykit.io.source import Data, Head, ReadOptions, Source
    from latencykit.io.text import Section

__all__ = ["FORMATS"]

_BANNER = re.compile(r"^This is ApacheBench, Version", re.MULTILINE)
_SERVER = re.compile(r"^Server Software:", re.MULTILINE)
_TABLE = re.compile(
    r"^Connection Times \(ms\)[^\n]*\n\s*min\s+(mean\[\+/-sd\]\s+median|avg)\s+max\s*\n",
    re.MULTILINE,
)
_TOTAL = re.compile(r"^Total:((?:\s+-?\d+(?:\.\d+)?)+)\s*$", re.MULTILINE)
_SPREAD = re.compile(
    r"^Percentage of the requests served within a certain time \(ms\) *\n", re.MULTILINE
)
_POINT = re.compile(r"^\s*(\d+)%\s+(?:(\d+)(?:\s+\(longest request\))?|<0> \(never\))\s*$")
_FACT = re.compile(r":\s+\d")
_COLUMNS = "starttime\tseconds\tctime\tdtime\tttime\twait"
_RUN = Run(
    tool="ab", loop="closed", measure="service", corrected="none", unit="ms", unit_from="file"
)
_ROUNDED = "ab rounds times to whole milliseconds"
_HINT = "ab -g writes every request: the distribution"


def sniff_text(head: Head) -> Confidence:
    """Tell the banner, or the report without it."""
    text = plain_report(head.text)
    report = (
        _SERVER.search(text) and "Concurrency Level:" in text and "Time taken for tests:" in text
    )
    return Confidence.CERTAIN if report or _BANNER.search(text) else Confidence.NO


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read every report."""
    parts = sections(source, _BANNER if _BANNER.search(plain_report(source.text())) else _SERVER)
    found: dict[str, Data] = {}
    for number, part in enumerate(parts, 1):
        found["" if len(parts) == 1 else distinct(f"run {number}", found)] = _report(part)
    return found


def _report(part: Section) -> Data:
    """One report: its percentiles, and what the table of connection times adds."""
    facts = {
        name: float(number)
        for name, number in re.findall(
            r"^([A-Z][\w -]+):\s+(\d+(?:\.\d+)?)", part.text, re.MULTILINE
        )
    }
    for label in (
        "Complete requests",
        "Failed requests",
        "Non-2xx responses",
        "Concurrency Level",
        "Time taken for tests",
    ):
        part.found(f"{label}:", _FACT, "a number")
    if "Complete requests" not in facts:
        raise part.corrupt(
            None,
            "the report is missing",
            "the number of complete requests",
            "did ab run to its end?",
        )
    run, good = _outcomes(part, facts)
    if good <= 0:
        raise nothing_answered(part.source, run)
    stats = _table(part)
    means = re.findall(r"^Time per request:\s+([\d.]+) \[ms\] \(mean\)", part.text, re.MULTILINE)
    if means and ("mean" not in stats or abs(float(means[0]) - stats["mean"]) <= 1.0):
        stats["mean"] = float(
            means[0]
        )  # concurrency x time / requests: the same mean, with three decimals
    title = _SPREAD.search(part.text)
    points: dict[float, float] = {}
    if title:
        at = title.end()
        end = re.compile(r"^[ \t]*$|\Z", re.MULTILINE).search(part.text, at)
        stop = end.start() if end else len(part.text)
        if stop == len(part.text) and not part.text.endswith("\n"):
            stop, run = part.text.rfind("\n") + 1, run.with_notes("the report is cut at its end")
        rows = part.matches(_POINT, at, max(stop, at), "a percentage and whole milliseconds")
        points = {float(row[1]): nanoseconds(float(row[2]), "ms") for row in rows if row[2]}
    reported_stats = {name: nanoseconds(value, "ms") for name, value in stats.items()}
    return data_from_points(points, good, reported_stats, run.with_notes(_ROUNDED, _HINT))


def _outcomes(part: Section, facts: dict[str, float]) -> tuple[Run, int]:
    """The run, and the number of good requests; connections that failed are not among the complete ones."""
    connect = re.search(r"\(Connect: (\d+)", part.text)
    unconnected = int(connect[1]) if connect else 0
    mixed = max(
        int(facts.get("Failed requests", 0)) - unconnected, int(facts.get("Non-2xx responses", 0))
    )
    version = re.search(r"ApacheBench, Version (\S+)", part.text)
    run = _RUN.replace(
        version=version[1] if version else None,
        command=command_of(part.text, "ab"),
        duration=facts.get("Time taken for tests"),
        achieved=facts.get("Requests per second"),
        connections=int(facts["Concurrency Level"]) if "Concurrency Level" in facts else None,
        failed=unconnected + mixed,
    )
    return run.with_notes(*mixed_note(mixed)), int(facts["Complete requests"]) - mixed


def _table(part: Section) -> dict[str, float]:
    """Minimum, mean, standard deviation, median and maximum of the whole times, in ms."""
    table = _TABLE.search(part.text)
    row = _TOTAL.search(part.text, table.end()) if table else None
    if table is None:
        return {}
    names = ("min", "mean", "max") if table[1] == "avg" else ("min", "mean", "std", "median", "max")
    numbers = [float(number) for number in row[1].split()] if row else []
    if len(numbers) != len(names):
        raise part.corrupt(
            table.end(),
            "the row Total of the connection times is corrupt",
            f"{len(names)} numbers",
            "run ab anew",
        )
    return {name: number for name, number in zip(names, numbers, strict=True) if name != "median"}


def sniff_rows(head: Head) -> Confidence:
    """Tell the header."""
    return Confidence.CERTAIN if head.text.startswith(_COLUMNS) else Confidence.NO


def read_rows(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every request; the time of its send is known to the second."""
    layout = Layout(
        tuple(_COLUMNS.split("\t")),
        ("seconds", "ttime"),
        sep="\t",
        skip=1,
        largest={"seconds": 9e9, "ttime": 9e12},
    )
    frame, notes = read_table(source, options, layout)
    given: dict[str, Any] = {
        "duration": np.rint(frame["ttime"].to_numpy(np.float64) * 1e6).astype(np.int64),
        "start": np.rint(frame["seconds"].to_numpy(np.float64)).astype(np.int64) * 1_000_000_000,
    }
    columns, left_out = without_negative(given, options)
    reported_stats = (
        _ROUNDED,
        "starts are known to the second; rows are sorted by time, those of failed requests among them",
    )
    return {
        "": Samples(
            run=_RUN.replace(unit_from="format").with_notes(*reported_stats, *notes, *left_out),
            **columns,
        )
    }


def sniff_percent(head: Head) -> Confidence:
    """Tell the header."""
    return (
        Confidence.CERTAIN
        if head.text.startswith("Percentage served,Time in ms")
        else Confidence.NO
    )


def read_percent(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the percentiles 0 to 99."""
    text, points, notes = source.text(), dict[float, float](), list[str]()
    for number, line in enumerate(text.splitlines()[1:], 2):
        row = re.fullmatch(r"\s*(\d+),\s*(\d+(?:\.\d+)?)\s*", line)
        if number == text.count("\n") + 1:
            notes.append("the last line is cut; it was left out")
        elif row is not None and float(row[1]) <= 100:
            points[float(row[1])] = nanoseconds(float(row[2]), "ms")
        elif line.strip():
            seen = f"{printable(line, 50)!r}"
            options.reject(
                source.corrupt(
                    number, seen, "a percentage and milliseconds", "--lenient skips the line"
                )
            )
    hint = f"ab -e does not print how many requests there were; {_HINT}"
    return {"": data_from_points(points, None, {}, _RUN.with_notes(*notes, hint))}


FORMATS = (
    Format(
        "ab", "ApacheBench (text)", "histogram", (".txt",), sniff_text, read_text, unit="ms",
        example="ab -k -c 4 -t 30 http://127.0.0.1:8080/ > ab.txt",
    ),
    Format(
        "ab-gnuplot", "ApacheBench (-g, one row per request)", "samples", (".tsv",), sniff_rows, read_rows, unit="ms",
        example="ab -k -c 4 -t 30 -g plot.tsv http://127.0.0.1:8080/",
    ),
    Format(
        "ab-csv", "ApacheBench (-e, percentiles)", "summary", (".csv",), sniff_percent, read_percent, unit="ms",
        example="ab -k -c 4 -t 30 -e percent.csv http://127.0.0.1:8080/",
    ),
)  # fmt: skip
