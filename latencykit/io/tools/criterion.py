"""Criterion.rs: the directory ``target/criterion``, a single ``sample.json`` or ``estimates.json``, ``raw.csv``, and its text.

A sample is a batch: ``times`` are nanoseconds a batch, ``iters`` the calls in it. ``change/estimates.json`` holds ratios.
"""

from __future__ import annotations

import csv
import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.core.run import Run
from latencykit.core.summary import Summary
from latencykit.errors import CorruptInputError
from latencykit.io import text as jsontext
from latencykit.io.build import data_from_values, distinct, nanoseconds_of
from latencykit.io.source import Confidence, Format, Source
from latencykit.units import NANOSECONDS, parse_duration

if TYPE_CHECKING:
    from pathlib import Path

    from latencykit.io.source import Data, Head, ReadOptions

__all__ = ["FORMATS"]

_DEPTHS = ("new", "*/new", "*/*/new", "*/*/*/new", "*/*/*/*/new")
_RAW = (
    "group,function,value,throughput_num,throughput_type,sample_measured_value,unit,iteration_count"
)
_TEXT = re.compile(
    r"^(?:(?P<name>\S.{0,200}?)(?:[ \t]*\n)?)?[ \t]+time:[ \t]+\[(?P<low>[\d.]+ \S+) (?P<mid>[\d.]+ \S+) (?P<high>[\d.]+ \S+)\]",
    re.MULTILINE,
)
_HINT = "estimates only; sample.json beside it (the directory target/criterion) holds the distribution of the batches"


def _run(*notes: str) -> Run:
    return Run(
        tool="Criterion.rs", loop="closed", measure="service", corrected="none", connections=1, unit="ns", unit_from="format",
        notes=notes,
    )  # fmt: skip


def _samples(folder: Path) -> list[Path]:
    return sorted(path for depth in _DEPTHS for path in folder.glob(f"{depth}/sample.json"))


def sniff_directory(head: Head) -> Confidence:
    """Tell a directory with ``…/new/sample.json`` in it."""
    if not head.is_dir or head.path is None:
        return Confidence.NO
    found = any(next(head.path.glob(f"{depth}/sample.json"), None) for depth in _DEPTHS)
    return Confidence.CERTAIN if found or (head.path / "sample.json").exists() else Confidence.NO


def read_directory(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the newest sample of every benchmark."""
    found: dict[str, Data] = {}
    own = source.path / "sample.json"
    for path in [own] if own.exists() else _samples(source.path):
        try:
            found[distinct(_name(path), found)] = _sample(Source(path))
        except CorruptInputError as error:
            options.reject(error)
    return found


def _name(path: Path) -> str:
    """The benchmark's id: from ``benchmark.json`` beside the sample, else from its folder."""
    try:
        record = json.loads((path.parent / "benchmark.json").read_text("utf-8"))
        return str(record.get("full_id") or record["title"])
    except (OSError, ValueError, KeyError, AttributeError):
        return path.resolve().parent.parent.name


def sniff_sample(head: Head) -> Confidence:
    """Tell the keys of a sample."""
    return (
        Confidence.CERTAIN if jsontext.has_keys(head, "sampling_mode", "iters") else Confidence.NO
    )


def read_sample(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read one sample; its benchmark's id lies beside it."""
    name = _name(source.path) if source.path.name == "sample.json" else ""
    return {name: _sample(source)}


def _sample(source: Source) -> Data:
    record = jsontext.load(source)
    iters, times = (
        np.asarray(jsontext.entry(record, key, source, list), np.float64)
        for key in ("iters", "times")
    )
    if iters.shape != times.shape or not (iters > 0).all():
        raise source.corrupt(
            None,
            f"{times.size} times and {iters.size} iteration counts",
            "as many of each, above 0",
            "",
        )
    notes = (
        (f"each value is the mean of a batch of up to {int(iters.max()):,} calls",)
        if iters.max(initial=1) > 1
        else ()
    )
    return data_from_values(nanoseconds_of(times / iters, "ns"), _run(*notes))


def sniff_estimates(head: Head) -> Confidence:
    """Tell the keys of estimates."""
    found = jsontext.has_keys(head, "mean", "median", "confidence_interval", "point_estimate")
    return Confidence.CERTAIN if found else Confidence.NO


def read_estimates(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read mean, median and standard deviation."""
    record: dict[str, Any] = jsontext.load(source)
    if "std_dev" not in record or source.path.parent.name == "change":
        raise source.corrupt(
            None, "these are ratios between two runs (change/estimates.json)", "the estimates of one run",
            "read new/estimates.json, or the directory target/criterion",
        )  # fmt: skip
    stats = {
        ours: round(
            float(jsontext.entry(record, f"{theirs}.point_estimate", source, (int, float))), 3
        )
        for ours, theirs in (("mean", "mean"), ("std", "std_dev"))
    }
    median = round(float(jsontext.entry(record, "median.point_estimate", source, (int, float))), 3)
    name = _name(source.path) if source.path.name == "estimates.json" else ""
    return {name: Summary(stats, {50.0: median}, None, "ns", _run(_HINT))}


def sniff_raw(head: Head) -> Confidence:
    """Tell the header of ``raw.csv``."""
    return Confidence.CERTAIN if head.lines and head.lines[0].startswith(_RAW) else Confidence.NO


def read_raw(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read ``raw.csv`` of older versions: one row a batch."""
    values: dict[str, list[float]] = {}
    reader = csv.DictReader(source.text().splitlines())
    for row in reader:
        name = "/".join(part for part in (row["group"], row["function"], row["value"]) if part)
        try:
            value = (
                float(row["sample_measured_value"])
                / float(row["iteration_count"])
                * NANOSECONDS[row["unit"]]
            )
        except (ValueError, TypeError, KeyError, ZeroDivisionError):
            options.reject(
                source.corrupt(
                    reader.line_num, "a row without a measured time", "a number and its unit", ""
                )
            )
            continue
        values.setdefault(name, []).append(value)
    run = _run("each value is the mean of a batch of calls")
    return {
        name: data_from_values(nanoseconds_of(held, "ns"), run) for name, held in values.items()
    }


def sniff_text(head: Head) -> Confidence:
    """Tell a printed estimate: a time between two bounds."""
    return Confidence.LIKELY if _TEXT.search(head.text) else Confidence.NO


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the printed estimates, one summary a benchmark; a long id stands on the line before."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", source.text())
    found: dict[str, Data] = {}
    for one in _TEXT.finditer(text):
        before = text[: one.start()].rstrip().splitlines()
        name = (one["name"] or (before[-1] if before else "")).strip()
        run = _run(
            _HINT, f"95 % confidence interval of the estimate: {one['low']} to {one['high']}"
        )
        found[distinct(name, found)] = Summary(
            {"mean": round(parse_duration(one["mid"]), 3)}, {}, None, "ns", run
        )
    return found


FORMATS = (
    Format(
        "criterion", "Criterion.rs (directory)", "samples", (), sniff_directory, read_directory, unit="ns",
        example="cargo bench   # writes target/criterion",
    ),
    Format(
        "criterion-sample", "Criterion.rs sample.json", "samples", (".json",), sniff_sample, read_sample, unit="ns",
        example="cargo bench   # writes target/criterion/GROUP/ID/new/sample.json",
    ),
    Format(
        "criterion-estimates", "Criterion.rs estimates.json", "summary", (".json",), sniff_estimates, read_estimates,
        unit="ns", example="cargo bench   # writes target/criterion/GROUP/ID/new/estimates.json",
    ),
    Format(
        "criterion-csv", "Criterion.rs raw.csv", "samples", (".csv",), sniff_raw, read_raw,
        example="cargo bench   # writes target/criterion/GROUP/ID/new/raw.csv, with the feature csv_output",
    ),
    Format(
        "criterion-text", "Criterion.rs (text)", "summary", (".txt",), sniff_text, read_text,
        example="cargo bench > bench.txt",
    ),
)  # fmt: skip
