"""memtier_benchmark: its JSON, with a whole HdrHistogram (µs) of every command, and its tables.

The ``.txt`` files of ``--hdr-file-prefix`` are percentile text, its ``.hgrm`` files interval logs.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from latencykit.core.run import Run
from latencykit.io import text as jsontext
from latencykit.io.build import (
    data_from_points,
    histogram_of_payload,
    in_nanoseconds,
    nanoseconds,
    printed_rows,
)
from latencykit.io.sniffing import certain, has_json_keys
from latencykit.io.source import Format
from latencykit.io.text import fact

if TYPE_CHECKING:
    from latencykit.io.source import Confidence, Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

_TOTALS = "Totals"
_HINT = "--json-out-file holds the whole distribution"
_TABLE_ROW = re.compile(r"^(\w[\w-]*)((?: +(?:[\d.]+|---|-?nan))+) *$", re.MULTILINE)
_SPREAD_ROW = re.compile(r"^(\w[\w-]*) +([\d.]+) +([\d.]+) *$", re.MULTILINE)


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the totals, then every command that was sent; of several runs, all of them together."""
    record: dict[str, Any] = jsontext.load(source)
    sections = [key for key, row in record.items() if isinstance(row, dict) and _TOTALS in row]
    if not sections:
        hint = "run memtier_benchmark with --json-out-file"
        raise source.corrupt(None, "the JSON holds no statistics", '"ALL STATS"', hint)
    others = [key for key in sections if not key.startswith(("BEST", "WORST"))]
    chosen = "ALL STATS" if "ALL STATS" in sections else (others or sections)[0]
    section = record[chosen]
    facts, settings = record.get("run information") or {}, record.get("configuration") or {}
    threads = facts.get("Threads") or settings.get("threads") or 0
    clients = threads * (facts.get("Connections per thread") or settings.get("clients") or 0)
    each, runtime = settings.get("rate_limit") or 0, section.get("Runtime") or {}
    start, duration = runtime.get("Start time"), runtime.get("Total duration")
    run = Run(
        tool="memtier_benchmark", loop="paced" if each else "closed", measure="service",
        corrected="none", start=start / 1e3 if start else None,
        duration=duration / 1e3 if duration else None, connections=clients or None,
        rate=float(each * clients) if each and clients else None,
        expected_interval=round(1e9 / each, 3) if each else None, unit="ms", unit_from="format",
    )  # fmt: skip
    if len(sections) > 1:
        run = run.with_notes(f"of {', '.join(sections)}, this is {chosen}")
    names = [name for name, row in section.items() if isinstance(row, dict) and row.get("Count")]
    names.sort(key=lambda name: name != _TOTALS)
    return {name: _data(name, section[name], section, run, source) for name in names}


def _data(
    name: str, row: dict[str, Any], section: dict[str, Any], run: Run, source: Source
) -> Data:
    """One row of the statistics: its payload, else its percentiles."""
    failed = int(row.get("Connection Errors") or 0)
    run = run.replace(aggregate=name == _TOTALS, achieved=row.get("Ops/sec"), failed=failed)
    if name != _TOTALS:  # the rate is that of all commands together
        run = run.replace(rate=None, expected_interval=None)
    keys = {"min": "Min Latency", "max": "Max Latency"}
    cells = {kind: row.get(key) or None for kind, key in keys.items()}
    cells["mean"] = row.get("Average Latency", row.get("Latency")) or None
    stats = in_nanoseconds(cells, "ms")
    latencies = row.get("Percentile Latencies") or row
    points = {
        float(key[1:]): nanoseconds(value, "ms")
        for key, value in latencies.items()
        if re.fullmatch(r"p\d+(?:\.\d+)?", key) and isinstance(value, (int, float))
    }
    payload = (latencies.get("Histogram log format") or {}).get("Compressed Histogram")
    if payload:
        return histogram_of_payload(
            payload, "us", run, source, name, reported_stats=stats,
            reported_percentiles=printed_rows(points),
        )  # fmt: skip
    spread = section.get(re.sub(r"S$", "", name.upper()), [])
    points |= {
        step["percent"]: nanoseconds(step["<=msec"], "ms") for step in spread if "percent" in step
    }
    points.pop(0.0, None)
    return data_from_points(points, int(row["Count"]), stats, run)


def sniff_text(head: Head) -> Confidence:
    """Recognize the table."""
    title = re.search(r"^ALL STATS$|^AGGREGATED AVERAGE RESULTS", head.text, re.MULTILINE)
    return certain(title and "Ops/sec" in head.text)


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the table and the cumulative lines of every command."""
    text = source.text()
    at = max(text.rfind("\nALL STATS\n"), text.rfind("AGGREGATED AVERAGE RESULTS"), 0)
    header = re.search(r"^Type +.*$", text[at:], re.MULTILINE)
    if header is None:
        seen = "the table of statistics is missing"
        raise source.corrupt(None, seen, "ALL STATS and its table", "did the run end?")
    columns = header[0].replace(" Latency", "_Latency").split()
    body, _, cumulative = text[at + header.end() :].partition("Request Latency Distribution")
    spread: dict[str, dict[float, float]] = {}
    for command, value, percent in _SPREAD_ROW.findall(
        cumulative.split("Request Latency Distribution")[0]
    ):
        spread.setdefault(command, {})[float(percent)] = nanoseconds(value, "ms")
    threads, per_thread, seconds, each = (
        fact(text, rf"^(\d+) +{name}\s*$", int) or 0
        for name in ("Threads", "Connections per thread", "Seconds", "Requests per client")
    )
    clients = threads * per_thread
    run = Run(
        tool="memtier_benchmark", loop="closed", measure="service", corrected="none", unit="ms",
        duration=float(seconds) or None, connections=clients or None, unit_from="format",
    )  # fmt: skip
    series: dict[str, Data] = {}
    for name, rest in _TABLE_ROW.findall(body):
        cells = zip(columns[1:], rest.split(), strict=False)
        row = {column: float(cell) for column, cell in cells if cell[0].isdigit()}
        if not row.get("Ops/sec"):
            continue
        own = run.replace(aggregate=name == _TOTALS, achieved=row["Ops/sec"])
        count: int | None = each * clients if name == _TOTALS else 0
        if not count:
            own = own.with_notes("the number of requests is Ops/sec x seconds")
            count = round(row["Ops/sec"] * seconds) if seconds else None
        points = {
            float(match[1]): nanoseconds(value, "ms")
            for column, value in row.items()
            if (match := re.match(r"p([\d.]+)_Latency", column))
        }
        steps = spread.get(re.sub(r"S$", "", name.upper()), {})
        points |= {p: value for p, value in steps.items() if p > 0}
        mean = row.get("Avg._Latency", row.get("Latency")) or None
        stats = in_nanoseconds({"mean": mean}, "ms")
        series[name] = data_from_points(points, count, stats, own.with_notes(_HINT))
    return dict(sorted(series.items(), key=lambda item: item[0] != _TOTALS))


FORMATS = (
    Format(
        "memtier-json", "memtier_benchmark (JSON)", "histogram", (".json",),
        has_json_keys(("configuration", "run information"), ("ALL STATS", _TOTALS)), read_json,
        unit="ms", example="memtier_benchmark --json-out-file out.json",
    ),
    Format(
        "memtier", "memtier_benchmark (text)", "histogram", (".txt",), sniff_text, read_text,
        unit="ms", example="memtier_benchmark > out.txt",
    ),
)  # fmt: skip
