"""YCSB: its closing lines (text and JSON), with the buckets or raw rows that its measurement types add.

* ``hdrhistogram`` with ``measurement.histogram.verbose``: one line a recorded value (µs) and its count
* ``histogram`` with it: one line a millisecond, and the overflow
* ``timeseries``: one line per interval with its mean, which is left out here
* ``raw``: rows of operation, time in ms (when the operation ended) and latency in µs

``Intended-READ`` and the like count from the moment the operation was due. The ``.hdr`` files are interval logs.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.core.histogram import Histogram
from latencykit.core.run import Run
from latencykit.core.samples import Samples
from latencykit.io import text as jsontext
from latencykit.io.build import data_from_points, nanoseconds, per_operation, without_negative
from latencykit.io.rows import line_chunks
from latencykit.io.source import Confidence, Format

if TYPE_CHECKING:
    from collections.abc import Mapping

    from latencykit.io.source import Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

_LINE = re.compile(r"^\[([^\]]+)\], ([^,\n]+), (\S+) *$", re.MULTILINE)
_RAW = re.compile(rb"^([A-Za-z][\w-]*),(\d{12,14}),(-?\d+)\r?$", re.MULTILINE)
_RAW_HEADER = "latency raw data: op, timestamp(ms), latency(us)"
_PERCENTILE = re.compile(r"([\d.]+)(?:st|nd|rd|th)?PercentileLatency\(us\)|p([\d.]+)")
_STATS = {
    "AverageLatency(us)": "mean", "MinLatency(us)": "min", "MaxLatency(us)": "max", "Average": "mean", "Min": "min", "Max": "max",
}  # fmt: skip
_APART = ("OVERALL", "CLEANUP")
_HINT = "-p measurement.histogram.verbose=true prints the whole distribution, -p hdrhistogram.fileoutput=true logs it (.hdr)"


def sniff_text(head: Head) -> Confidence:
    """Tell the closing lines."""
    found = "[OVERALL], RunTime(ms)," in head.text or re.search(
        r"^\[\w[\w-]*\], \S*Latency\(us\), ", head.text, re.MULTILINE
    )
    return Confidence.CERTAIN if found and _RAW_HEADER not in head.text else Confidence.NO


def sniff_raw(head: Head) -> Confidence:
    """Tell the head of the rows, or the rows."""
    if _RAW_HEADER in head.text:
        return Confidence.CERTAIN
    lines = [line.encode("utf-8", "replace") for line in head.lines[:20] if line.strip()]
    return (
        Confidence.LIKELY
        if lines and all(_RAW.fullmatch(line) for line in lines)
        else Confidence.NO
    )


def sniff_json(head: Head) -> Confidence:
    """Tell the keys of a measurement."""
    return (
        Confidence.CERTAIN
        if jsontext.has_keys(head, "metric", "measurement", "value", within=2000)
        else Confidence.NO
    )


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read one series per operation."""
    text = source.text()
    return _series([found.groups() for found in _LINE.finditer(text)], _command(text))


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read one series per operation from a list of measurements, or measurements one after another."""
    text = source.text()
    records: list[Any] = []
    at = 0
    while (begin := re.compile(r"\S").search(text, at)) is not None:
        value, at = jsontext.parse_next(text, source, begin.start())
        records += value if isinstance(value, list) else [value]
    rows = [
        (str(one.get("metric")), str(one.get("measurement")), str(one.get("value")))
        for one in records
        if isinstance(one, dict)
    ]
    return _series(rows, Run(loop="closed"))


def _command(text: str) -> Run:
    """What the command line says, where it is printed: target rate and threads."""
    target, threads = re.search(r"-target (\d+)", text), re.search(r"-threads (\d+)", text)
    return Run(
        loop="paced" if target else "closed",
        rate=float(target[1]) if target else None,
        connections=int(threads[1]) if threads else None,
    )


def _series(rows: list[Any], command: Run) -> dict[str, Data]:
    metrics: dict[str, dict[str, str]] = {}
    for metric, name, value in rows:
        metrics.setdefault(metric, {})[name.strip()] = value
    overall = metrics.get("OVERALL", {})
    seconds = float(overall["RunTime(ms)"]) / 1e3 if "RunTime(ms)" in overall else None
    found: dict[str, Data] = {}
    for metric, facts in metrics.items():
        if metric in _APART or metric.startswith("TOTAL_GC") or metric.endswith("-FAILED"):
            continue
        count = int(float(facts.get("Operations", facts.get("Total Operations", 0))))
        if not count:
            continue
        intended = metric.startswith("Intended-")
        failed = sum(
            int(float(n))
            for name, n in facts.items()
            if name.startswith("Return=") and "OK" not in name
        )
        failed = failed or int(float(metrics.get(f"{metric}-FAILED", {}).get("Operations", 0)))
        run = command.replace(
            tool="YCSB", measure="response" if intended else "service", corrected="schedule" if intended else "none",
            duration=seconds, failed=failed, unit="us", unit_from="format",
            achieved=count / seconds if seconds else None,
        )  # fmt: skip
        found[metric] = _operation(facts, count, run)
    return found


def _operation(facts: Mapping[str, str], count: int, run: Run) -> Data:
    """One operation: its buckets where they are printed, else its percentiles."""
    reported_stats = {
        ours: nanoseconds(float(facts[theirs]), "us")
        for theirs, ours in _STATS.items()
        if theirs in facts
    }
    points = {
        float(found[1] or found[2]): nanoseconds(float(value), "us")
        for name, value in facts.items()
        if (found := _PERCENTILE.fullmatch(name))
    }
    keyed = {int(name): float(value) for name, value in facts.items() if name.isdigit()}
    over = next(
        (int(float(value)) for name, value in facts.items() if re.fullmatch(r">\d+", name)), None
    )
    inner = {p: v for p, v in sorted(points.items()) if 0 < p < 100}
    keys, counts = np.array(sorted(keyed)), np.array([keyed[key] for key in sorted(keyed)])
    if (
        over is not None
    ):  # buckets of 1 ms; percentiles are printed as their lower edges, so they are not taken
        low = keys * 1e6
        bound = float(low[-1] + 1e6) if keys.size else 0.0
        high = np.minimum(low + 999_999, max(reported_stats.get("max", np.inf), 0.0))
        return Histogram.from_buckets(
            np.minimum(low, high), high, counts.astype(np.int64), run=run, reported_stats=reported_stats, censored=over,
            censored_at=bound if over else float("inf"),
        )  # fmt: skip
    if keyed and round(float(counts.sum())) == count and (counts == np.rint(counts)).all():
        values = np.minimum(keys * 1e3, reported_stats.get("max", np.inf))
        reported_percentiles = (tuple(inner), tuple(inner.values()))
        return Histogram.from_buckets(
            values,
            values,
            counts.astype(np.int64),
            run=run,
            reported_stats=reported_stats,
            reported_percentiles=reported_percentiles,
        )
    return data_from_points(points, count, reported_stats, run.with_notes(_HINT))


def read_raw(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every row of the raw measurement type."""
    parts = []
    for first, chunk in line_chunks(source):
        found = _RAW.findall(chunk)
        parts += [[np.array(column) for column in zip(*found, strict=True)]] if found else []
        strange = re.search(rb"^[A-Z][\w-]*,\d{12,14},(?!-?\d+\r?$)[^\n]*\n", chunk, re.MULTILINE)
        if strange:
            line = first + chunk.count(b"\n", 0, strange.start())
            options.reject(
                source.corrupt(
                    line,
                    "this is no row of the raw measurement",
                    "operation,ms,us",
                    "--lenient skips the line",
                )
            )
    if not parts:
        return {}
    operation, end, latency = (np.concatenate(column) for column in zip(*parts, strict=True))
    names, code = np.unique(operation, return_inverse=True)
    duration = latency.astype(np.int64) * 1_000
    facts = {
        "duration": duration,
        "start": end.astype(np.int64) * 1_000_000 - duration,
        "code": code.reshape(-1),
    }
    columns, left_out = without_negative(facts, options)
    code = columns.pop("code")
    run = Run(
        tool="YCSB",
        loop="closed",
        measure="service",
        corrected="none",
        unit="us",
        unit_from="format",
        notes=left_out,
    )
    return per_operation(
        Samples(run=run, **columns),
        code,
        [name.decode() for name in names.tolist()],
        apart=("CLEANUP",),
    )


FORMATS = (
    Format("ycsb", "YCSB (text)", "histogram", (".txt",), sniff_text, read_text, unit="us", example="bin/ycsb run … > ycsb.txt"),
    Format(
        "ycsb-json", "YCSB (JSON)", "histogram", (".json",), sniff_json, read_json, unit="us",
        example="bin/ycsb run … -p exporter=…exporter.JSONArrayMeasurementsExporter -p exportfile=ycsb.json",
    ),
    Format(
        "ycsb-raw", "YCSB's raw rows", "samples", (".txt", ".csv"), sniff_raw, read_raw, unit="us",
        example="bin/ycsb run … -p measurementtype=raw -p measurement.raw.output_file=raw.txt",
    ),
)  # fmt: skip
