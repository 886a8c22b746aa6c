"""Rust's benchmarks: what Criterion.rs writes and prints, and what ``cargo bench`` does itself.

A sample is a batch: ``times`` are nanoseconds per batch, ``iters`` the calls in it.
``change/estimates.json`` contains ratios.
"""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np

from latencykit.core.probability import normal_quantile
from latencykit.core.run import CLOSED, Run
from latencykit.core.summary import Summary
from latencykit.errors import CorruptInputError
from latencykit.io import json_text
from latencykit.io.build import data_from_values, nanoseconds, nanoseconds_of
from latencykit.io.source import Confidence, Data, Head, ReadOptions, Series, Source
from latencykit.io.text_reports import certain, has_match, plain, starts_with
from latencykit.units import NANOSECONDS, parse_duration

_DEPTHS = ("new", "*/new", "*/*/new", "*/*/*/new", "*/*/*/*/new")
_RAW = (
    "group,function,value,throughput_num,throughput_type,sample_measured_value,unit,iteration_count"
)
_TEXT = re.compile(
    r"^(?:(?P<name>\S(?:.{0,200}?\S)??)?[ \t]+)?time:[ \t]+"
    r"\[(?P<low>[\d.]+ \S+) (?P<mid>[\d.]+ \S+) (?P<high>[\d.]+ \S+)\]",
    re.MULTILINE,
)
_LONGEST = 1000  # characters of an id on its own line
_RUN = Run(tool="Criterion.rs", **CLOSED, connections=1, unit="ns", unit_from="format")
_HINT = (
    "estimates only; sample.json beside it (the directory target/criterion) "
    "contains the distribution of the batches"
)


def sniff_directory(head: Head) -> Confidence:
    """Recognise a directory with ``…/new/sample.json`` in it."""
    if not head.is_dir or head.path is None:
        return Confidence.NO
    deeper = any(next(head.path.glob(f"{depth}/sample.json"), None) for depth in _DEPTHS)
    return certain(deeper or (head.path / "sample.json").exists())


def read_directory(source: Source, options: ReadOptions) -> Series:
    """Read the newest sample of every benchmark."""
    paths = [source.path / "sample.json"]
    if not paths[0].exists():
        found = (source.path.glob(f"{depth}/sample.json") for depth in _DEPTHS)
        paths = sorted(path for some in found for path in some)
    for path in paths:
        try:
            yield _name(path), _sample(Source(path))
        except CorruptInputError as error:
            options.reject(error)


def _name(path: Path) -> str:
    """The benchmark's id: from ``benchmark.json`` beside the sample, else from its folder."""
    try:
        record = json.loads((path.parent / "benchmark.json").read_text("utf-8"))
        return str(record.get("full_id") or record["title"])
    except (OSError, ValueError, KeyError, AttributeError):
        return path.resolve().parent.parent.name


def read_sample(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read one sample; its benchmark's id is in a file beside it."""
    name = _name(source.path) if source.path.name == "sample.json" else ""
    return {name: _sample(source)}


def _sample(source: Source) -> Data:
    record = json_text.load(source)
    iters, times = (
        np.asarray(json_text.entry(record, key, source, list), np.float64)
        for key in ("iters", "times")
    )
    if iters.shape != times.shape or not (iters > 0).all():
        seen = f"{times.size} times and {iters.size} iteration counts"
        raise source.corrupt(None, seen, "as many of each, above 0")
    run = _RUN
    if iters.max(initial=1) > 1:
        run = run.with_notes(
            f"each value is the mean of a batch of up to {int(iters.max()):,} calls"
        )
    return data_from_values(nanoseconds_of(times / iters, "ns"), run)


def read_estimates(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read mean, median and standard deviation."""
    record: dict[str, object] = {  # old releases wrote StdDev
        re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key).lower(): value
        for key, value in json_text.load(source).items()
    }
    if "std_dev" not in record or source.path.parent.name == "change":
        seen = "these are ratios between two runs (change/estimates.json)"
        hint = "read new/estimates.json, or the directory target/criterion"
        raise source.corrupt(None, seen, "the estimates of one run", hint)

    def estimate(name: str) -> float:
        path = f"{name}.point_estimate"
        return round(float(json_text.entry(record, path, source, (int, float))), 3)

    stats = {"mean": estimate("mean"), "std": estimate("std_dev")}
    error = json_text.entry(record, "mean", source).get("standard_error")
    stats |= {"standard error": error} if isinstance(error, float) else {}
    name = _name(source.path) if source.path.name == "estimates.json" else ""
    run = _RUN.with_notes(_HINT)
    return {name: Summary(stats, {50.0: estimate("median")}, None, "ns", run)}


def read_raw(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read ``raw.csv`` of older versions: one row per batch."""
    values: dict[str, list[float]] = {}
    reader = csv.DictReader(source.text().splitlines())
    for row in reader:
        name = "/".join(part for part in (row["group"], row["function"], row["value"]) if part)
        try:
            batch = float(row["sample_measured_value"]) / float(row["iteration_count"])
            value = batch * NANOSECONDS[row["unit"]]
        except (ValueError, TypeError, KeyError, ZeroDivisionError):
            options.refuse(source, reader.line_num, "a row without a measured time", "a number")
            continue
        values.setdefault(name, []).append(value)
    run = _RUN.with_notes("each value is the mean of a batch of calls")
    return {name: data_from_values(np.round(some, 3), run) for name, some in values.items()}


def read_text(source: Source, options: ReadOptions) -> Series:
    """Read the printed estimates, one summary per benchmark; a long id is on the line before."""
    text = plain(source.text())
    for row in _TEXT.finditer(text):
        above = text[max(0, row.start() - _LONGEST) : row.start()].rstrip().rpartition("\n")[2]
        name = row["name"] or above.strip()
        interval = f"95 % confidence interval of the estimate: {row['low']} to {row['high']}"
        width = parse_duration(row["high"]) - parse_duration(row["low"])
        error = width / 2 / normal_quantile(0.975)
        stats = {"mean": round(parse_duration(row["mid"]), 3), "standard error": error}
        run = _RUN.with_notes(_HINT, interval)
        yield name, Summary(stats, {}, None, "ns", run)


_LIBTEST = re.compile(
    r"^test (\S[^\n]{0,500}?) \.\.\. bench: +(\d[\d,]*(?:\.\d+)?) (\w+)/(?:iter|s)\b", re.MULTILINE
)
_MEDIAN = "ns/iter of cargo bench is the median of batches of calls, each the mean of its calls"


def read_libtest(source: Source, options: ReadOptions) -> Series:
    """Read the benchmarks of ``#[bench]``; Criterion.rs prints its estimate in the same form."""
    text = plain(source.text())
    estimates = re.search(r"^(?:Gnuplot|Benchmarking) |Criterion\.rs", text, re.MULTILINE)
    for name, cell, unit in _LIBTEST.findall(text):
        if unit not in NANOSECONDS:
            options.report(f"{source.shown}: {name} is in {unit}, not in a unit of time; left out")
            continue
        value = nanoseconds(cell.replace(",", ""), unit)
        stats, points, run = {"mean": value}, dict[float, float](), _RUN.with_notes(_HINT)
        if not estimates:
            stats, points = {}, {50.0: value}
            run = _RUN.replace(tool="cargo bench").with_notes(_MEDIAN)
        yield name.strip(), Summary(stats, points, None, "ns", run)


FORMATS = {
    "criterion": (sniff_directory, read_directory),
    "criterion-sample": read_sample,
    "criterion-estimates": read_estimates,
    "criterion-csv": (starts_with(_RAW), read_raw),
    "criterion-text": (has_match(_TEXT, confidence=Confidence.LIKELY), read_text),
    "cargo-bench": (has_match(_LIBTEST, plain=plain), read_libtest),
}
