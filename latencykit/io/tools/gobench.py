"""``go test -bench``: text, and the events of ``-json``. A benchmark prints only its mean."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, chain, pairwise

from latencykit._text import printable
from latencykit.core.run import CLOSED, Run
from latencykit.core.summary import Summary
from latencykit.io import json_text
from latencykit.io.build import nanoseconds, percentile_named, unit_in
from latencykit.io.sanity_checks import consistent
from latencykit.io.source import Data, ReadOptions, Series, Source
from latencykit.io.text_reports import documents_at, has_match, line_numbers, plain
from latencykit.units import parse_duration

_PACKAGE = re.compile(r"^pkg: (\S+)", re.MULTILINE)
_CPU = re.compile(r"^cpu: (.+)$", re.MULTILINE)
# above the results of one of two versions: ``Before:``, ``## After the change``, ``git checkout …``
_SIDE = re.compile(
    r"^[-#*=/ ]*+(?:[\w./'`-]+ ){0,3}(?i:before|after|old|new|baseline|master|main|patched)"
    r"(?: [\w./'`-]+){0,3}[-*=: ]*$|^[$>#%+ ]*git (?:checkout|switch|stash)\b",
    re.MULTILINE,
)
_RESULT = re.compile(r"^(Benchmark\S*+)[ \t]++(\d++)[ \t]++([-+\dN.].*\bns/op.*)$", re.MULTILINE)
_METRIC = re.compile(r"(?:^|(?<=[ \t]))([\d.]+(?:[eE][+-]?\d+)?|[+-]?Inf|NaN)[ \t]+(\S+)")
_PERCENTILE = re.compile(
    r"(?:([^\n]*)(?<![A-Za-z0-9]))?(p\d{1,9}(?:[._]\d{1,9})?)[-_]?(ns|us|µs|ms|s|sec)(?:/op)?"
)
_CELL = re.compile(r"(\d[\d.]*)([nuµμm]?)s?[¹²³⁴⁵ ]*(?:± ?(\d+|∞)%?)?[¹²³⁴⁵ ]*")
_RUN = Run(tool="go test -bench", **CLOSED, unit="ns")
_HINT = (
    "go test -bench prints means only; for the distribution record each call in an HdrHistogram "
    'and write its .hlog, or report percentiles with b.ReportMetric(v, "p99-ns/op")'
)


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read one summary per benchmark; those of several packages one after the other."""
    text = source.text()
    bounds = [0, *(side.start() for side in _SIDE.finditer(text)), len(text)]
    names = [{row[1] for row in _RESULT.finditer(text, *span)} for span in pairwise(bounds)]
    if any(own & other for own, other in pairwise(filter(None, names))):
        runs = [begin for begin, own in zip(bounds, names, strict=False) if own]
        raise documents_at(text, [0, *runs[1:]])
    begins = [0, *(match.start() for match in _PACKAGE.finditer(text))]
    spans: dict[str, list[tuple[int, int]]] = {}
    for begin, end in zip(begins, [*begins[1:], len(text)], strict=True):
        header = _PACKAGE.match(text, begin)
        spans.setdefault(header[1] if header else "", []).append((begin, end))
    return _by_package(text, spans, line_numbers(text), source, options)


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the events' text by package: a result may be split over several events."""
    printed: dict[str, list[str]] = {}
    notes: list[str] = []
    for event in json_text.lines(source, options, notes):
        if isinstance(event, dict) and event.get("Action") == "output":
            package = str(event.get("Package"))
            printed.setdefault(package, []).append(str(event.get("Output", "")))
    texts = ["".join(pieces) for pieces in printed.values()]
    ends = [0, *accumulate(map(len, texts))]
    spans = {package: [span] for package, span in zip(printed, pairwise(ends), strict=True)}
    series = _by_package("".join(texts), spans, lambda _: None, source, options)
    return {name: data.with_run(notes=(*data.run.notes, *notes)) for name, data in series.items()}


def read_benchstat(source: Source, options: ReadOptions) -> Series:
    """Read the time per operation of each side: the median of runs, in old releases the mean."""
    sides, files, note = list[str](), [""], ""
    for line in plain(source.text()).splitlines():
        name, _, rest = line.partition(" ")
        cells = [cell.strip() for cell in line.split("│")[1:-1]]
        if cells or name in ("", "name"):  # a heading, or the end of a table
            new = any(cell.startswith("sec/op") for cell in cells)
            sides = files if new else re.findall(r"(?<!\S)(?:(\S++) ++)?time/op", rest)
            note = f"benchstat's {'median' if new else 'mean'} of the runs' means"
            files = cells or files
        elif name != "geomean" and len(values := _CELL.findall(rest)) >= len(sides):
            for side, (value, unit, spread) in zip(sides, values, strict=False):
                mean = round(parse_duration(f"{value}{unit}s"), 3)
                stats = {"mean": mean}
                if "median" in note and spread.isdigit():  # half of an interval of 95 %
                    stats["standard error"] = mean * int(spread) / 196
                data = Summary(stats, {}, None, "ns", _RUN.with_notes(note, _HINT))
                yield f"{name} {side}".strip(), data


def _by_package(
    text: str,
    spans: Mapping[str, Sequence[tuple[int, int]]],
    line_at: Callable[[int], int | None],
    source: Source,
    options: ReadOptions,
) -> dict[str, Data]:
    """Series of all packages; of two with one name, the later one carries its package."""
    series: dict[str, Data] = {}
    for package, pieces in spans.items():
        runs: dict[str, list[tuple[int, dict[str, float]]]] = {}
        for row in chain.from_iterable(_RESULT.finditer(text, *piece) for piece in pieces):
            metrics = {unit: float(value) for value, unit in _METRIC.findall(row[3])}
            if 0 <= metrics.get("ns/op", -1.0) < math.inf:
                runs.setdefault(row[1], []).append((int(row[2]), metrics))
                continue
            seen = f"the result of {printable(row[1], 40)} is {printable(row[3].strip(), 40)!r}"
            options.refuse(source, line_at(row.start()), seen, "a number of ns/op")
        cpu = next(filter(None, (_CPU.search(text, *piece) for piece in pieces)), None)
        notes = (f"cpu: {cpu[1]}",) if cpu else ()
        for name, results in runs.items():
            label = name if name not in series else f"{package}.{name}"
            common = _RUN.with_notes(*notes)
            if len(results) > 1:
                note = f"{len(results)} runs; a run's mean says nothing of its slowest calls"
                common = _RUN.with_notes(note, *notes)
            parts: dict[str, list[Summary]] = {}
            for count, metrics in results:
                # what it measured within, too: ``write-p99-ns`` is of the series "… write"
                reported, inside = _reported(metrics), dict[str, dict[float, float]]({"": {}})
                for part, points in (inside | reported).items():
                    stats = {} if part else {"mean": nanoseconds(metrics["ns/op"], "ns")}
                    stats |= {"max": points[100.0]} if 100.0 in points else {}
                    inner = {level: value for level, value in points.items() if level < 100}
                    inner, stats, run = consistent(inner, stats, common)
                    run = run if reported else run.with_notes(_HINT)
                    data = Summary(stats, inner, None if part else count, "ns", run)
                    parts.setdefault(f"{label} {part}".rstrip(), []).append(data)
            series |= {part: Summary.of_runs(all_runs) for part, all_runs in parts.items()}
    return series


def _reported(metrics: Mapping[str, float]) -> dict[str, dict[float, float]]:
    """Percentiles that a benchmark reports itself (ns), by what stands before them."""
    found: dict[str, dict[float, float]] = {}
    for name, value in metrics.items():
        metric = _PERCENTILE.fullmatch(name)
        level = percentile_named(metric[2]) if metric else None
        unit = unit_in(metric[3]) if metric else None
        if metric and level is not None and unit and 0 < level <= 100:
            points = found.setdefault((metric[1] or "").strip("-_./"), {})
            points.setdefault(level, nanoseconds(value, unit))
    return found


FORMATS = {
    "go-bench": (has_match(_RESULT), read_text),
    "benchstat": (has_match(r"^name .*time/op|^[^\n]*│ +sec/op "), read_benchstat),
    "go-bench-json": (
        has_match(r'\A\s*\{[^\0]{0,4000}?"Action":', r'\A[^\0]{0,4000}?"Package":', "Benchmark"),
        read_json,
    ),
}
