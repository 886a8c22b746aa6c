"""perf-gauge: its text (one block a run; a ramp prints one a rate), and the metrics that it pushes to Prometheus (µs).

The percentiles of its text, and of its metric ``latency``, are of all requests, failed ones among them; the metrics
``success_latency`` and ``error_latency`` are of each apart.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from latencykit.core.histogram import Histogram
from latencykit.core.run import Run
from latencykit.errors import InvalidArgumentError
from latencykit.io.build import (
    data_from_points,
    distinct,
    mixed_note,
    nanoseconds,
    nothing_answered,
)
from latencykit.io.source import Confidence, Format
from latencykit.io.text import below, plain
from latencykit.io.tools import prometheus
from latencykit.units import parse_duration, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from latencykit.io.source import Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

_BEGIN = re.compile(r"^Test: (.*?)\s*$", re.MULTILINE)
_ROW = re.compile(r"^(Min|p[\d.]+|Max|Mean|StdDev|tm[\d.]+) *: *(\S+) *$", re.MULTILINE)
_CODE = re.compile(r"^(\S.*): (\d+) *$", re.MULTILINE)
_STATS = {"Min": "min", "Max": "max", "Mean": "mean", "StdDev": "std"}
_GAUGE = re.compile(
    r"^(\w*latency)_(min|max|mean|stddev|p\d+(?:_\d+)?)(\{[^\n]*\}) ([\d.eE+]+)\s*$", re.MULTILINE
)
_GAUGES = {"min": "min", "max": "max", "mean": "mean", "stddev": "std"}
_ZEROED = "perf-gauge sets its metrics to zero at its end; --continuous keeps them"


def sniff_text(head: Head) -> Confidence:
    """Tell the block of latencies."""
    text = plain(head.text)
    block = _BEGIN.search(text) and re.search(r"^Request rate: \S+ per second", text, re.MULTILINE)
    found = (
        block
        or re.search(r"^Done gauging performance", text, re.MULTILINE)
        or "perf_gauge::" in text
    )
    return Confidence.CERTAIN if found else Confidence.NO


def sniff_metrics(head: Head) -> Confidence:
    """Tell its gauges of trimmed means."""
    found = re.search(r"^# TYPE \w*latency_tm9\d(?:_9)? gauge", head.text, re.MULTILINE)
    pushed = re.search(r"^# HELP error_latency Latency of failed requests", head.text, re.MULTILINE)
    return (
        Confidence.CERTAIN
        if found or (pushed and "success_latency" in head.text)
        else Confidence.NO
    )


def _blocks(text: str) -> Iterator[tuple[str, str, int]]:
    """Name, text and first line of each block."""
    begins = list(_BEGIN.finditer(text))
    for begin, end in zip(
        begins, [*(one.start() for one in begins[1:]), len(text)], strict=False
    ):  # none, or as many
        yield begin[1], text[begin.end() : end], text.count("\n", 0, begin.start()) + 1


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read every block."""
    blocks = list(_blocks(plain(source.text())))
    if not blocks:
        raise source.corrupt(
            None, "there is no block of latencies", "one a run", "run the tool anew"
        )
    found: dict[str, Data] = {}
    refused: Run | None = None
    for name, body, line in blocks:
        run, count, data = _block(body, line, source)
        if count <= 0:
            refused = run
            continue
        label = (
            "" if len(blocks) == 1 else f"{name} at {run.achieved:g}/s" if run.achieved else name
        )
        found[distinct(label, found) if label else ""] = data
    if refused is not None and not found:
        raise nothing_answered(source, refused)
    return found


def _block(body: str, line: int, source: Source) -> tuple[Run, int, Data]:
    """One run: what it says of itself, its good requests, and its latencies."""
    total = re.search(r"^Requests: (\d+)", body, re.MULTILINE)
    at = body.find("\nLatency:")
    rows = dict(_ROW.findall(body[at:])) if at >= 0 else {}
    for number, row in below(body, "Latency:"):
        if _ROW.match(row) is None:
            raise source.corrupt(
                line + number - 1,
                f"{printable(row.strip())!r}",
                "such as p99 : 6.22ms",
                "run it again",
            )
    if (
        total is None
        or "Max" not in rows
        or "p50" not in rows
        or not re.search(r"^Success rate: [\d.]+%", body, re.MULTILINE)
    ):
        raise source.corrupt(
            line,
            "this block is corrupt, or cut",
            "Requests, and Latency with its percentiles",
            "run it again",
        )
    try:
        values = {name: round(parse_duration(cell), 3) for name, cell in rows.items()}
    except InvalidArgumentError as error:
        raise source.corrupt(
            line, f"a latency of this block cannot be read ({error})", "such as 1.42ms", ""
        ) from None
    points = {float(name[1:]): value for name, value in values.items() if name.startswith("p")}
    stats = {kind: values[name] for name, kind in _STATS.items() if name in values}
    quoted = ", ".join(f"{name} {cell}" for name, cell in rows.items() if name.startswith("tm"))
    run, good = _run(body, int(total[1]))
    run = run.with_notes(*([f"perf-gauge prints {quoted}"] if quoted else []))
    return run, good, data_from_points(points, max(good, 0), stats, run)


def _run(body: str, total: int) -> tuple[Run, int]:
    facts = dict(
        re.findall(r"^(Duration|Request rate|Success rate):? +([\d.]+)", body, re.MULTILINE)
    )
    share = float(facts.get("Success rate", 100.0))
    codes = _CODE.findall(body[body.find("\nSummary:") : body.find("\nLatency:")])
    bad = total - round(total * share / 100)
    late = min(
        sum(int(number) for name, number in codes if re.search("time", name, re.IGNORECASE)), bad
    )
    reported_stats = (
        [f"{int(number):,} × {printable(name, 80)}" for name, number in codes] if bad else []
    )
    run = Run(
        tool="perf-gauge", loop="closed", measure="service", corrected="none", failed=bad - late, timeouts=late,
        duration=float(facts["Duration"]) if "Duration" in facts else None,
        achieved=float(facts["Request rate"]) if "Request rate" in facts else None, notes=(*mixed_note(bad), *reported_stats),
    )  # fmt: skip
    return run, total - bad


def read_metrics(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the histograms together with the percentiles that stand beside them as gauges."""
    reported_stats: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for family, name, labels, value in _GAUGE.findall(source.text()):
        reported_stats[family + labels][name] = float(value)
    held = {
        name: data
        for name, data in prometheus.read(
            source, replace(options, unit=options.unit or "us")
        ).items()
        if isinstance(data, Histogram) and "latency" in name.partition("{")[0]
    }
    if not held:
        raise source.corrupt(None, "its latencies are all zero", "one run's metrics", _ZEROED)
    tests = {name.partition("{")[2] for name in held}
    unit_from = "format" if options.unit is None else "option"
    found: dict[str, Data] = {}
    for name, data in held.items():
        family, _, labels = name.partition("{")
        test = re.search(r'testname="([^"]*)"', labels)
        label = family if len(tests) == 1 else f"{family} {test[1] if test else labels}"
        errors = held.get(f"error_latency{{{labels}")
        failed = (
            errors.count + errors.censored
            if errors is not None and family in ("latency", "success_latency")
            else 0
        )
        mixed = mixed_note(failed) if family == "latency" else ()
        notes = [note for note in data.run.notes if "histogram_quantile" not in note]
        whole = _with_gauges(data, reported_stats[name], data.run.unit)
        found[distinct(label, found)] = whole.with_run(
            tool="perf-gauge", loop="closed", unit_from=unit_from, aggregate=family == "latency" and len(held) > 1,
            failed=failed if not mixed else 0, notes=(*mixed, *notes),
        )  # fmt: skip
    return dict(
        sorted(
            found.items(), key=lambda item: (not item[1].run.aggregate, item[0].startswith("error"))
        )
    )


def _with_gauges(histogram: Histogram, reported_stats: Mapping[str, float], unit: str) -> Histogram:
    """The histogram with the percentiles and statistics that the tool states."""
    points = {
        float(name[1:].replace("_", ".")): nanoseconds(value, unit)
        for name, value in reported_stats.items()
        if name.startswith("p")
    }
    stats = {
        _GAUGES[name]: nanoseconds(value, unit)
        for name, value in reported_stats.items()
        if name in _GAUGES
    }
    if not reported_stats.get("max"):
        return histogram
    levels = sorted(points)
    values: list[float] = []
    for level in levels:
        values.append(max(points[level], values[-1] if values else 0.0))
    return replace(
        histogram,
        reported_stats={**histogram.reported_stats, **stats},
        reported_percentiles=(tuple(levels), tuple(values)),
    )


FORMATS = (
    Format(
        "perf-gauge", "perf-gauge (text)", "histogram", (".txt",), sniff_text, read_text,
        example="perf-gauge -c 4 -r 100 -d 60s http URL > out.txt",
    ),
    Format(
        "perf-gauge-prometheus", "perf-gauge (Prometheus metrics)", "histogram", (".txt", ".prom"), sniff_metrics, read_metrics,
        unit="us", example="perf-gauge --continuous --prometheus GATEWAY … ; curl -s GATEWAY/metrics > metrics.txt",
    ),
)  # fmt: skip
