"""``go test -bench``: text, and the events of ``-json``. A benchmark prints its mean and nothing else."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from latencykit.core.run import Run
from latencykit.core.summary import Summary
from latencykit.io import text as jsontext
from latencykit.io.build import nanoseconds
from latencykit.io.source import Confidence, Format
from latencykit.units import NANOSECONDS, printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from latencykit.io.source import Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

_PACKAGE = re.compile(r"^pkg: (\S+)", re.MULTILINE)
_RESULT = re.compile(r"^(Benchmark\S*)[ \t]+(\d+)[ \t]+(.*\bns/op.*)$", re.MULTILINE)
_METRIC = re.compile(r"(?:^|(?<=[ \t]))([\d.]+(?:[eE][+-]?\d+)?|[+-]?Inf|NaN)[ \t]+(\S+)")
_PERCENTILE = re.compile(r"p([\d.]+)[-_]?(ns|us|µs|ms|s)(?:/op)?")
_HINT = (
    "go test -bench prints means only; for the distribution record each call in an HdrHistogram and write its .hlog, "
    'or report percentiles with b.ReportMetric(v, "p99-ns/op")'
)


def sniff_text(head: Head) -> Confidence:
    """Tell a result line."""
    return Confidence.CERTAIN if _RESULT.search(head.text) else Confidence.NO


def sniff_json(head: Head) -> Confidence:
    """Tell the events of a test run that has benchmarks in it."""
    first = head.text.lstrip()[:4000]
    found = (
        first.startswith("{")
        and '"Action":' in first
        and '"Package":' in first
        and "Benchmark" in head.text
    )
    return Confidence.CERTAIN if found else Confidence.NO


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read one summary a benchmark; those of several packages one after the other."""
    text = source.text()
    begins = [0, *(one.start() for one in _PACKAGE.finditer(text))]
    parts: dict[str, str] = {}
    for begin, end in zip(begins, [*begins[1:], len(text)], strict=True):
        named = _PACKAGE.match(text, begin)
        package = named[1] if named else ""
        parts[package] = parts.get(package, "\n" * text.count("\n", 0, begin)) + text[begin:end]
    return _by_package(parts, source, options)


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the events' text, a package at a time: a result may be split over several events."""
    text: dict[str, list[str]] = {}
    notes: list[str] = []
    for _, batch in jsontext.lines(source, options, notes):
        for event in batch:
            if isinstance(event, dict) and event.get("Action") == "output":
                text.setdefault(str(event.get("Package")), []).append(str(event.get("Output", "")))
    found = _by_package(
        {package: "".join(parts) for package, parts in text.items()}, source, options, lines=False
    )
    return {name: data.with_run(notes=(*data.run.notes, *notes)) for name, data in found.items()}


def _by_package(
    parts: Mapping[str, str], source: Source, options: ReadOptions, *, lines: bool = True
) -> dict[str, Data]:
    """Series of all packages; where two have a benchmark of one name, the later ones carry their package."""
    found: dict[str, Data] = {}
    for package, text in parts.items():
        for name, data in _summaries(text, source, options, lines=lines).items():
            found[name if name not in found else f"{package}.{name}"] = data
    return found


def _summaries(text: str, source: Source, options: ReadOptions, *, lines: bool) -> dict[str, Data]:
    """One summary a benchmark; several runs of it (``-count``) become the mean of their means."""
    runs: dict[str, list[tuple[int, dict[str, float]]]] = {}
    for row in _RESULT.finditer(text):
        metrics = {unit: float(value) for value, unit in _METRIC.findall(row[3])}
        if 0 <= metrics.get("ns/op", -1.0) < math.inf:
            runs.setdefault(row[1], []).append((int(row[2]), metrics))
            continue
        line = text.count("\n", 0, row.start()) + 1 if lines else None
        seen = f"the result of {printable(row[1], 40)} is {printable(row[3].strip(), 40)!r}"
        options.reject(source.corrupt(line, seen, "a number of ns/op", "--lenient skips it"))
    processor = re.search(r"^cpu: (.+)$", text, re.MULTILINE)
    return {
        name: _summary(held, processor[1] if processor else None) for name, held in runs.items()
    }


def _summary(runs: list[tuple[int, dict[str, float]]], processor: str | None) -> Summary:
    means = [metrics["ns/op"] for _, metrics in runs]
    stats = {"mean": nanoseconds(sum(means) / len(means), "ns")}
    notes = [_HINT]
    if len(runs) > 1:
        stats |= {"lowest mean of a run": min(means), "highest mean of a run": max(means)}
        notes.insert(
            0, f"the mean of {len(runs)} runs; a run's mean says nothing of its slowest calls"
        )
    points: dict[float, float] = {}
    for unit in runs[0][1]:
        found = _PERCENTILE.fullmatch(unit)
        if found and len(runs) == 1 and 0 < float(found[1]) < 100:
            factor = NANOSECONDS[found[2].replace("µ", "u")]
            points[float(found[1])] = round(runs[0][1][unit] * factor, 3)
    if processor:
        notes.append(f"cpu: {processor}")
    run = Run(
        tool="go test -bench",
        loop="closed",
        measure="service",
        corrected="none",
        unit="ns",
        notes=tuple(notes),
    )
    return Summary(stats, points, sum(number for number, _ in runs), "ns", run)


FORMATS = (
    Format(
        "go-bench", "go test -bench (text)", "summary", (".txt",), sniff_text, read_text,
        example="go test -bench=. -count=10 > bench.txt",
    ),
    Format(
        "go-bench-json", "go test -bench -json", "summary", (".json", ".jsonl"), sniff_json, read_json,
        example="go test -bench=. -json > bench.json",
    ),
)  # fmt: skip
