"""redis-benchmark (and valkey-benchmark): its text, ``-q`` and ``--csv``.

Since 6.2 it counts in an HdrHistogram and prints two lists of exact cumulative counts: at halving shares, and every
0.1 ms (above 2 ms every 1 ms, where the count changes). Values above 3 s are counted as 3 s. Before, it printed the
share up to each whole millisecond (or what ``--precision`` says), rounded down. With ``-P`` each request of a pipeline
gets the time of the whole pipeline; the output does not say so.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from latencykit.core.histogram import Histogram
from latencykit.core.run import Run
from latencykit.core.summary import Summary
from latencykit.io.build import (
    data_from_points,
    distinct,
    histogram_of_both,
    nanoseconds,
    nanoseconds_of,
    several,
)
from latencykit.io.source import Confidence, Format
from latencykit.io.text import plain
from latencykit.units import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from latencykit.io.source import Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

_BLOCK = re.compile(r"^====== (.{1,300}?) ======\s*$")
_ROW = re.compile(
    r"^\s*([\d.]{1,20})% <= ([\d.]{1,30}) milliseconds(?: \(cumulative count (\d{1,18})\))?\s*$"
)
_QUIET = re.compile(
    r"^(.{1,300}?): ([\d.]+|inf|nan) requests per second(?:, p50=([\d.]+) msec)?\s*$"
)
_COLUMNS = re.compile(r"\s*avg(?:\s+(?:min|max|p\d+(?:\.\d+)?))+\s*")
_VALUE = re.compile(r"[\d.]+|[-+]?(?:nan|inf)")
_TELLING = re.compile(r"requests per second|requests completed in|^\s*avg\s+min\s")
_PROGRESS = re.compile(r"rps=[\d.]+ \(overall: ")
_NAMES = {"avg": "mean", "min": "min", "max": "max"}
_CLIP = 3000.0  # ms
_COARSEST = 0.93  # a bucket of one digit is up to 1/16 of its value wide
_HINT = "redis-benchmark without -q and --csv (6.2 and later) prints the whole distribution"
_OLD = "this version rounds latencies down: each may be up to {} higher than printed"


@dataclass
class _Test:
    """One test of the run, as it is gathered line by line."""

    name: str
    count: int = 0
    seconds: float | None = None
    clients: int | None = None
    rate: float | None = None
    shares: list[tuple[float, float]] = field(
        default_factory=list
    )  # ms, percent: versions before 6.2
    steps: list[tuple[float, int]] = field(
        default_factory=list
    )  # ms, values up to there: at halving shares
    edges: list[tuple[float, int]] = field(default_factory=list)  # the same at even steps
    decimals: int = 0
    columns: list[str] = field(default_factory=list)
    stats: dict[str, float] = field(default_factory=dict)


def sniff_text(head: Head) -> Confidence:
    """Tell the title of a test, a quiet line, or the progress that is overwritten."""
    text = plain(head.text)
    titled = "requests completed in" in text and re.search(
        r"^====== .{1,300} ======\s*$", text, re.MULTILINE
    )
    summed = (
        re.search(r"^[ \t]*latency summary \(msec\):", text, re.MULTILINE)
        and "throughput summary:" in text
    )
    quiet = any(
        _QUIET.match(line)
        for line in text.split("\n")
        if "requests per second" in line and len(line) < 500
    )
    return (
        Confidence.CERTAIN
        if titled or summed or quiet or _PROGRESS.search(head.text)
        else Confidence.NO
    )


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read one series per test."""
    found: dict[str, Data] = {}
    for test in _tests(plain(source.text()).split("\n"), source, options):
        data = _data(test, source)
        if data is not None:
            found[distinct(test.name, found)] = data
    if not found:
        raise source.corrupt(
            None, "it holds no latencies", "a distribution, a summary or a p50", _HINT
        )
    return found


def _tests(lines: list[str], source: Source, options: ReadOptions) -> Iterator[_Test]:
    """Every test of the text."""
    test = _Test("")
    even = False
    for number, line in enumerate(lines, 1):
        title, quiet = _BLOCK.match(line), _QUIET.match(line)
        if title or (quiet and not quiet[1].strip().startswith("throughput summary")):
            yield test
            test, even = _Test((title or quiet)[1].strip()), False  # type: ignore[index]
            if quiet:
                test.rate = _number(quiet[2])
                test.stats = {"p50": float(quiet[3])} if quiet[3] else {}
        elif "<=" in line and "millisec" in line:
            row = _ROW.match(line)
            if (row is None or not _take(row, test, even)) and number < len(lines):
                seen, expected = (
                    f"{printable(line.strip())!r}",
                    "50.000% <= 0.031 milliseconds (cumulative count 1), ascending",
                )
                options.reject(source.corrupt(number, seen, expected, "--lenient skips such lines"))
        elif line.startswith("Cumulative distribution"):
            even = True
        elif test.columns and line.strip():
            words, test.columns, columns = line.split(), [], test.columns
            if len(words) == len(columns) and all(_VALUE.fullmatch(word) for word in words):
                test.stats = {
                    name: v
                    for name, word in zip(columns, words, strict=True)
                    if (v := _number(word)) is not None
                }
            elif number < len(lines):
                seen, expected = f"{printable(line.strip())!r}", ", ".join(columns)
                options.reject(source.corrupt(number, seen, expected, "--lenient skips such lines"))
        elif not _fact(line, test) and _TELLING.search(line) and number < len(lines):
            seen = f"{printable(line.strip())!r}"
            options.reject(
                source.corrupt(
                    number, seen, "a line that redis-benchmark prints", "--lenient skips such lines"
                )
            )
    yield test


def _take(row: re.Match[str], test: _Test, even: bool) -> bool:
    """Add one row of a list; False where it does not ascend."""
    value, share = _number(row[2]), _number(row[1])
    if value is None or share is None:
        return False
    if row[3] is None:
        test.decimals = len(row[2].partition(".")[2])
        known: list[tuple[float, float]] | list[tuple[float, int]] = test.shares
        test.shares.append((value, share))
    else:
        known = test.edges if even else test.steps
        known.append((value, int(row[3])))
    if len(known) > 1 and (known[-1][0] < known[-2][0] or known[-1][1] < known[-2][1]):
        known.pop()
        return False
    return True


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < 1e15 else None


def _fact(line: str, test: _Test) -> bool:
    """Take what a line says of the test; False where it says nothing that is known."""
    if completed := re.match(r"^\s*(\d{1,18}) requests completed in ([\d.]+) seconds", line):
        test.count, test.seconds = int(completed[1]), _number(completed[2])
    elif clients := re.match(r"^\s*(\d{1,9}) parallel clients", line):
        test.clients = int(clients[1])
    elif rate := re.match(r"^\s*(?:throughput summary: )?([\d.]+) requests per second", line):
        test.rate = _number(rate[1])
    elif _COLUMNS.fullmatch(line):
        test.columns = line.split()
    else:
        return False
    return True


def _data(test: _Test, source: Source) -> Data | None:
    """What a test's lines amount to; None where they hold no latency."""
    stats = {
        _NAMES[name]: nanoseconds(value, "ms")
        for name, value in test.stats.items()
        if name in _NAMES
    }
    points = {
        float(name[1:]): nanoseconds(value, "ms")
        for name, value in test.stats.items()
        if re.fullmatch(r"p[\d.]+", name)
    }
    run = Run(
        tool="redis-benchmark", loop="closed", measure="service", corrected="none", unit="ms", unit_from="file",
        duration=test.seconds or None, achieved=test.rate, connections=test.clients,
    )  # fmt: skip
    if test.steps or test.edges:
        return _counted(test, stats, points, run, source)
    if test.shares:
        return _rounded_down(test, run)
    if not stats and not points:
        return None
    return data_from_points(points, test.count or None, stats, run.with_notes(_HINT))


def _counted(
    test: _Test, stats: dict[str, float], points: dict[float, float], run: Run, source: Source
) -> Data | None:
    """The histogram of two lists of cumulative counts."""
    known = dict(sorted(test.steps + test.edges))
    for (before, count), (value, more) in zip(test.edges, test.edges[1:], strict=False):
        below = value * _COARSEST - (0.1 if value < 2.2 else 1.0)
        if more > count and below > before:
            known.setdefault(
                below, max(n for v, n in known.items() if v <= below)
            )  # nothing was counted up to here
    value, cumulative = np.array(sorted(known.items())).T
    counts = np.diff(cumulative.astype(np.int64), prepend=0)
    if (counts < 0).any():
        raise source.corrupt(
            None,
            f"the two distributions of {test.name} contradict each other",
            "equal counts",
            "run it again",
        )
    if not counts.sum():
        return None
    if not stats:
        run = run.with_notes("the output ends before the summary of this test")
    clipped = value >= _CLIP
    late = int(counts[clipped].sum())
    if late:
        run = run.with_notes(
            f"redis-benchmark counts what takes longer than 3 s as 3 s: {several(late, 'request')} took 3 s or more"
        )
    return histogram_of_both(
        points, [nanoseconds(v, "ms") for v in value[~clipped]], counts[~clipped].tolist(), stats, run,
        censored=late, censored_at=_CLIP * 1e6 if late else np.inf,
    )  # fmt: skip


def _rounded_down(test: _Test, run: Run) -> Data:
    """The histogram of versions before 6.2: shares up to a rounded value."""
    value, share = np.array(test.shares).T
    step, reported_stats = 10.0**-test.decimals, {"max": nanoseconds(float(value[-1]), "ms")}
    known = run.with_notes(_OLD.format(f"{step:g} ms"))
    if not test.count:
        points = {p: nanoseconds(v, "ms") for v, p in test.shares}
        return Summary(reported_stats, points, None, "ns", known)
    counts = np.diff(np.rint(share * test.count / 100).astype(np.int64), prepend=0)
    high = nanoseconds_of(np.append(value[:-1], value[-1] + step), "ms")
    return Histogram.from_buckets(
        np.concatenate(([0.0], high[:-1])), high, counts, run=known, reported_stats=reported_stats
    )


def sniff_csv(head: Head) -> Confidence:
    """Tell the heading, or rows of old versions."""
    lines = [line for line in head.lines if line.startswith('"')]
    if lines and lines[0].startswith('"test","rps"'):
        return Confidence.CERTAIN
    old = lines and all(re.fullmatch(r'"[A-Z][^"]{0,100}","[\d.]+"', line) for line in lines)
    return Confidence.LIKELY if old else Confidence.NO


def read_csv(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read one summary a test."""
    found: dict[str, Data] = {}
    columns: list[str] = []
    lines = source.text().split("\n")
    for number, line in enumerate(lines, 1):
        if not line.startswith('"'):
            continue  # warnings of the tool
        row = next(csv.reader([line]))
        if row[:2] == ["test", "rps"]:
            columns = [re.sub(r"_latency_ms$", "", name) for name in row]
            continue
        values = [_number(word) for word in row[1:]]
        if (
            not line.rstrip().endswith('"')
            or (columns and len(row) != len(columns))
            or None in values
        ):
            if number < len(lines):
                options.reject(
                    source.corrupt(
                        number,
                        f"{printable(line)!r}",
                        "a test and its numbers",
                        "--lenient skips it",
                    )
                )
            continue
        test = _Test(row[0], rate=values[0])
        test.stats = {
            name: value
            for name, value in zip(columns[2:], values[1:], strict=False)
            if value is not None
        }
        data = _data(test, source)
        if data is not None:
            found[distinct(test.name, found)] = data
    if not found:
        seen = "this version's --csv prints throughput only"
        raise source.corrupt(
            None, seen if not columns else "there is no test below the heading", "latencies", _HINT
        )
    return found


FORMATS = (
    Format(
        name="redis-benchmark",
        title="redis-benchmark (text)",
        level="histogram",
        suffixes=(".txt",),
        sniff=sniff_text,
        read=read_text,
        unit="ms",
        example="redis-benchmark -t set,get -n 100000 > out.txt",
    ),
    Format(
        name="redis-benchmark-csv",
        title="redis-benchmark (CSV)",
        level="summary",
        suffixes=(".csv",),
        sniff=sniff_csv,
        read=read_csv,
        unit="ms",
        example="redis-benchmark -t set,get --csv > out.csv",
    ),
)
