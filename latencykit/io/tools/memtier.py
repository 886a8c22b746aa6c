"""memtier_benchmark: its JSON, which holds a whole HdrHistogram (µs) of every command, and its tables.

The ``.txt`` files of ``--hdr-file-prefix`` are percentile text, its ``.hgrm`` files interval logs.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from latencykit.core.run import Run
from latencykit.io import text as jsontext
from latencykit.io.build import data_from_points, histogram_of_payload, nanoseconds, printed_rows
from latencykit.io.source import Confidence, Format

if TYPE_CHECKING:
    from latencykit.io.source import Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

_AGGREGATE = "Totals"
_HINT = "--json-out-file holds the whole distribution"
_TABLE_ROW = re.compile(r"^(\w[\w-]*)((?: +(?:[\d.]+|---|-?nan))+) *$", re.MULTILINE)
_SPREAD_ROW = re.compile(r"^(\w[\w-]*) +([\d.]+) +([\d.]+) *$", re.MULTILINE)


def sniff_json(head: Head) -> Confidence:
    """Tell the keys of the configuration, or of the statistics."""
    found = jsontext.has_keys(head, "configuration", "run information") or jsontext.has_keys(
        head, "ALL STATS", "Totals"
    )
    return Confidence.CERTAIN if found else Confidence.NO


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the totals, then every command that was sent."""
    record: dict[str, Any] = jsontext.load(source)
    section, note = _section(record, source)
    run = _run(record, section).with_notes(*note)
    rows = {
        name: row for name, row in section.items() if isinstance(row, dict) and row.get("Count")
    }
    order = sorted(rows, key=lambda name: name != _AGGREGATE)
    return {name: _series(name, rows[name], section, run, source) for name in order}


def _section(record: dict[str, Any], source: Source) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Statistics of the one run, or of all runs together."""
    candidates = [
        key for key, value in record.items() if isinstance(value, dict) and _AGGREGATE in value
    ]
    if not candidates:
        raise source.corrupt(
            None,
            "the JSON holds no statistics",
            '"ALL STATS"',
            "run memtier_benchmark with --json-out-file",
        )
    chosen = next(
        (
            key
            for key in ("ALL STATS", *candidates)
            if key in candidates and not key.startswith(("BEST", "WORST"))
        ),
        candidates[0],
    )
    return record[chosen], () if len(candidates) == 1 else (
        f"of {', '.join(candidates)}, this is {chosen}",
    )


def _run(record: dict[str, Any], section: dict[str, Any]) -> Run:
    facts, asked = record.get("run information") or {}, record.get("configuration") or {}
    clients = (facts.get("Threads") or asked.get("threads") or 0) * (
        facts.get("Connections per thread") or asked.get("clients") or 0
    )
    each, runtime = asked.get("rate_limit") or 0, section.get("Runtime") or {}
    return Run(
        tool="memtier_benchmark",
        loop="paced" if each else "closed",
        measure="service",
        corrected="none",
        start=runtime["Start time"] / 1e3 if runtime.get("Start time") else None,
        duration=runtime["Total duration"] / 1e3 if runtime.get("Total duration") else None,
        rate=float(each * clients) if each and clients else None,
        connections=clients or None,
        expected_interval=round(1e9 / each, 3) if each else None,
        unit="ms",
        unit_from="format",
    )


def _series(
    name: str, row: dict[str, Any], section: dict[str, Any], run: Run, source: Source
) -> Data:
    """One row of the statistics: its payload, else its percentiles."""
    known = run.replace(
        aggregate=name == _AGGREGATE,
        achieved=row.get("Ops/sec"),
        failed=int(row.get("Connection Errors") or 0),
    )
    if name != _AGGREGATE:  # the rate is that of all commands together
        known = known.replace(rate=None, expected_interval=None)
    stats = {
        "min": row.get("Min Latency"),
        "max": row.get("Max Latency"),
        "mean": row.get("Average Latency", row.get("Latency")),
    }
    reported_stats = {key: nanoseconds(value, "ms") for key, value in stats.items() if value}
    latencies = row.get("Percentile Latencies") or row
    points = {
        float(key[1:]): nanoseconds(value, "ms")
        for key, value in latencies.items()
        if re.fullmatch(r"p\d+(?:\.\d+)?", key) and isinstance(value, (int, float))
    }
    payload = (latencies.get("Histogram log format") or {}).get("Compressed Histogram")
    if payload:
        return histogram_of_payload(
            payload,
            "us",
            known,
            source,
            name,
            reported_stats=reported_stats,
            reported_percentiles=printed_rows(points),
        )
    spread = section.get(re.sub(r"S$", "", name.upper()), [])
    points |= {
        step["percent"]: nanoseconds(step["<=msec"], "ms") for step in spread if "percent" in step
    }
    points.pop(0.0, None)
    return data_from_points(points, int(row["Count"]), reported_stats, known)


def sniff_text(head: Head) -> Confidence:
    """Tell the table."""
    found = (
        re.search(r"^ALL STATS$|^AGGREGATED AVERAGE RESULTS", head.text, re.MULTILINE)
        and "Ops/sec" in head.text
    )
    return Confidence.CERTAIN if found else Confidence.NO


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the table and the cumulative lines of every command."""
    text = source.text()
    at = max(text.rfind("\nALL STATS\n"), text.rfind("AGGREGATED AVERAGE RESULTS"), 0)
    header = re.search(r"^Type +.*$", text[at:], re.MULTILINE)
    if header is None:
        raise source.corrupt(
            None,
            "the table of statistics is missing",
            "ALL STATS and its table",
            "did the run end?",
        )
    columns = header[0].replace(" Latency", "_Latency").split()
    body = text[at + header.end() :].split("Request Latency Distribution")
    spread: dict[str, dict[float, float]] = {}
    for command, value, percent in _SPREAD_ROW.findall(body[1] if len(body) > 1 else ""):
        spread.setdefault(command, {})[float(percent)] = nanoseconds(float(value), "ms")
    run, requests = _text_run(text)
    found: dict[str, Data] = {}
    for name, rest in _TABLE_ROW.findall(body[0]):
        row = {
            k: float(v) for k, v in zip(columns[1:], rest.split(), strict=False) if v[0].isdigit()
        }
        if not row.get("Ops/sec"):
            continue
        points = {
            float(found_p[1]): nanoseconds(value, "ms")
            for key, value in row.items()
            if (found_p := re.match(r"p([\d.]+)_Latency", key))
        } | {p: v for p, v in spread.get(re.sub(r"S$", "", name.upper()), {}).items() if p > 0}
        mean = row.get("Avg._Latency", row.get("Latency"))
        reported_stats = {"mean": nanoseconds(mean, "ms")} if mean else {}
        exact = requests if name == _AGGREGATE else None
        count = exact or (round(row["Ops/sec"] * run.duration) if run.duration else None)
        known = run.replace(aggregate=name == _AGGREGATE, achieved=row["Ops/sec"])
        noted = known if exact else known.with_notes("the number of requests is Ops/sec x seconds")
        found[name] = data_from_points(points, count, reported_stats, noted.with_notes(_HINT))
    return dict(sorted(found.items(), key=lambda item: item[0] != _AGGREGATE))


def _text_run(text: str) -> tuple[Run, int | None]:
    """The lines above the table: threads, connections, and seconds or requests a client."""

    def number(name: str) -> int:
        found = re.search(rf"^(\d+) +{name}\s*$", text, re.MULTILINE)
        return int(found[1]) if found else 0

    clients = number("Threads") * number("Connections per thread")
    seconds, each = number("Seconds"), number("Requests per client")
    run = Run(
        tool="memtier_benchmark", loop="closed", measure="service", corrected="none", duration=float(seconds) or None,
        connections=clients or None, unit="ms", unit_from="format",
    )  # fmt: skip
    return run, each * clients or None


FORMATS = (
    Format(
        "memtier-json", "memtier_benchmark (JSON)", "histogram", (".json",), sniff_json, read_json, unit="ms",
        example="memtier_benchmark --json-out-file out.json",
    ),
    Format(
        "memtier", "memtier_benchmark (text)", "histogram", (".txt",), sniff_text, read_text, unit="ms",
        example="memtier_benchmark > out.txt",
    ),
)  # fmt: skip
