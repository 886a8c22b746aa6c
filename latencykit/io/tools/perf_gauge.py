"""perf-gauge: its text (one block per run, or per rate of a ramp), and its metrics (µs).

The percentiles of its text, and of its metric ``latency``, are of all requests, failed ones among
them; the metrics ``success_latency`` and ``error_latency`` are of each apart. It pushes metrics to
Prometheus.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from dataclasses import replace

from latencykit._text import printable
from latencykit.core.histogram import Histogram
from latencykit.core.run import CLOSED, Run
from latencykit.io import build
from latencykit.io.source import Data, ReadOptions, Series, Source
from latencykit.io.text_reports import (
    below,
    blocks,
    durations,
    either,
    fact,
    has_match,
    line_numbers,
    plain,
)
from latencykit.io.tools import prometheus

_BEGIN = re.compile(r"^Test: (.*)$", re.MULTILINE)
_ROW = re.compile(r"^(Min|p[\d.]+|Max|Mean|StdDev|tm[\d.]+) *: *(\S+) *$", re.MULTILINE)
_CODE = re.compile(r"^(\S.*): (\d+) *$", re.MULTILINE)
_GAUGE = re.compile(
    r"^(\w*latency)_(min|max|mean|stddev|p\d+(?:_\d+)?)(\{[^\n]*\}) ([\d.eE+]+)\s*$", re.MULTILINE
)
_ZEROED = "perf-gauge sets its metrics to zero at its end; --continuous keeps them"


def read_text(source: Source, options: ReadOptions) -> Series:
    """Read every block."""
    text = plain(source.text())
    parts = list(blocks(text, _BEGIN))
    line_at = line_numbers(text)
    for begin, end in parts:
        line, body = line_at(begin.start()), text[begin.end() : end]
        total = fact(body, r"^Requests: (\d+)", int)
        at = body.find("\nLatency:")
        rows = dict(_ROW.findall(body[at:])) if at >= 0 else {}
        for number, row in below(body, "Latency:"):
            if _ROW.match(row) is None:
                seen, expected = f"{printable(row.strip())!r}", "such as p99 : 6.22ms"
                raise source.corrupt(line + number - 1, seen, expected, "run it again")
        share = fact(body, r"^Success rate: ([\d.]+)%", float)
        if total is None or share is None or not {"Max", "p50"} <= set(rows):
            seen, expected = "this block is corrupt, or cut", "Requests, Latency with percentiles"
            raise source.corrupt(line, seen, expected, "run it again")
        values = durations(rows, source, "1.42ms", line=line)
        points, stats = build.statistics_in(values)
        codes = _CODE.findall(body[body.find("\nSummary:") : at])
        bad = total - round(total * share / 100)
        late = min(sum(int(number) for name, number in codes if "time" in name.lower()), bad)
        notes = [*build.mixed_note(bad)]
        if bad:
            notes += [f"{int(number):,} × {printable(name, 80)}" for name, number in codes]
        stats |= {name: value for name, value in values.items() if name.startswith("tm")}
        run = Run(
            tool="perf-gauge", **CLOSED, failed=bad - late, timeouts=late, notes=tuple(notes),
            duration=fact(body, r"^Duration:? +([\d.]+)", float),
            achieved=fact(body, r"^Request rate:? +([\d.]+)", float),
        )  # fmt: skip
        label = f"{begin[1]} at {run.achieved:g}/s" if run.achieved else begin[1]
        data: Data = build.unanswered(run)
        if total > bad:
            data = build.data_from_points(points, total - bad, stats, run)
        yield "" if len(parts) == 1 else label, data


def read_metrics(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the histograms together with the percentiles beside them as gauges."""
    gauges: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for family, name, labels, value in _GAUGE.findall(source.text()):
        gauges[family + labels][name] = float(value)
    histograms = {
        name: data
        for name, data in prometheus.read(source, replace(options, unit=options.unit or "us"))
        if isinstance(data, Histogram) and "latency" in name.partition("{")[0]
    }
    if not histograms:
        raise source.corrupt(None, "its latencies are all zero", "one run's metrics", _ZEROED)
    tests = {name.partition("{")[2] for name in histograms}
    unit_from = "format" if options.unit is None else "option"
    series: dict[str, Data] = {}
    for name, data in histograms.items():
        family, _, labels = name.partition("{")
        test = fact(labels, r'testname="([^"]*)"', str)
        label = family if len(tests) == 1 else f"{family} {labels if test is None else test}"
        errors, failed = histograms.get(f"error_latency{{{labels}"), 0
        if errors is not None and family in ("latency", "success_latency"):
            failed = errors.count + errors.censored
        mixed = build.mixed_note(failed) if family == "latency" else ()
        notes = [note for note in data.run.notes if "histogram_quantile" not in note]
        if gauges[name].get("max"):  # the percentiles and statistics that the tool states
            points, stats = build.statistics_in(build.in_nanoseconds(gauges[name], data.run.unit))
            levels = tuple(sorted(points))
            ascending = tuple(itertools.accumulate((points[p] for p in levels), max))
            stats = {**data.reported_stats, **stats}
            data = replace(data, reported_stats=stats, reported_percentiles=(levels, ascending))
        series[build.unique_name(label, series)] = data.with_run(
            tool="perf-gauge", loop="closed", unit_from=unit_from,
            aggregate=family == "latency" and len(histograms) > 1,
            failed=failed if not mixed else 0, notes=(*mixed, *notes),
        )  # fmt: skip
    names = sorted(series, key=lambda name: name.startswith("error"))
    names.sort(key=lambda name: not series[name].run.aggregate)
    return {name: series[name] for name in names}


FORMATS = {
    "perf-gauge": (
        either(
            has_match(_BEGIN, r"^Request rate: \S+ per second", plain=plain),
            has_match(r"^Done gauging performance|perf_gauge::", plain=plain),
        ),
        read_text,
    ),
    "perf-gauge-prometheus": (
        either(
            has_match(r"^# TYPE \w*latency_tm9\d(?:_9)? gauge"),
            has_match(r"^# HELP error_latency Latency of failed requests", "success_latency"),
        ),
        read_metrics,
    ),
}
