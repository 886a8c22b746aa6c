"""hyperfine: its JSON (every run), CSV and Markdown exports, and what it prints."""

from __future__ import annotations

import csv
import math
import re

import numpy as np

from latencykit._typing import JSONObject
from latencykit.core.run import CLOSED, Run
from latencykit.core.samples import Samples
from latencykit.io import build, json_text
from latencykit.io.source import Data, ReadOptions, Series, Source
from latencykit.io.text_reports import has_match, plain, starts_with
from latencykit.units import parse_duration

_MD_HEADER = re.compile(
    r"^\| *Command *\| *Mean \[(\S+)\] *\| *Min \[\S+\] *\| *Max \[\S+\] *\|", re.MULTILINE
)
_MD_ROW = re.compile(
    r"^\| *+(?:`` ?)?`?(.{1,400}?)`? {0,80}\| *+([\d.]+)(?: *± *([\d.]+))?"
    r" *\| *([\d.]+) *\| *([\d.]+) *\|",
    re.MULTILINE,
)
_VALUE = r"([\d.]+ \S+)"
_TEXT = re.compile(
    rf"^(?:Benchmark #?\d+: (.+)\n\s*|[ \t]*)Time \((mean ± σ|abs ≡)\): +{_VALUE}(?: ± +{_VALUE})?"
    rf"[^\n]*(?:\n\s*Range \(min … max\): +{_VALUE} … +{_VALUE}(?: +(\d+) runs)?)?",
    re.MULTILINE,
)
_RUN = Run(tool="hyperfine", **CLOSED, connections=1, unit="s", unit_from="format")
_ALL_FAILED = "every run ended with an exit code other than 0: the times are of those runs"
_SUMMARIZED = _RUN.with_notes("hyperfine --export-json keeps every run: the distribution")


def read_json(source: Source, options: ReadOptions) -> Series:
    """Read every run of every command; unless all did, runs with a non-zero exit code failed."""
    for result in json_text.entry(json_text.load(source), "results", source, list):
        name = json_text.entry(result, "command", source, str)
        times, codes = result.get("times"), result.get("exit_codes")
        if not times:
            yield name, _summary(result)
            continue
        outcome, run = None, _RUN.replace(values_are_runs=True)
        if codes and len(codes) == len(times):
            failed = np.array([code != 0 for code in codes])
            if failed.all():  # the command ends so by nature, and hyperfine ignores that (-i)
                run = run.with_notes(_ALL_FAILED)
            else:
                outcome = build.outcome_codes(error=failed)
        yield name, Samples(duration=build.nanoseconds_of(times, "s"), outcome=outcome, run=run)


def _summary(result: JSONObject) -> Data:
    """Mean, spread and extremes (s) as a summary."""
    cells = {key: value for key, value in result.items() if value != ""}
    return build.data_from_statistics(cells, None, _SUMMARIZED, "s")


def read_csv(source: Source, options: ReadOptions) -> Series:
    """Read one summary per command."""
    reader = csv.DictReader(source.text().splitlines(), restval="none")
    for row in reader:
        try:
            yield row["command"], _summary(row)
        except ValueError:
            seen = f"a row without numbers: {row['command']!r}"
            options.refuse(source, reader.line_num, seen, "seconds")


def read_markdown(source: Source, options: ReadOptions) -> Series:
    """Read one summary per command."""
    text = source.text()
    header = _MD_HEADER.search(text)
    unit = build.unit_in(header[1]) or header[1] if header else "s"
    run = _SUMMARIZED.replace(unit=unit, unit_from="file")
    for name, mean, spread, low, high in _MD_ROW.findall(text, header.end() if header else 0):
        cells = {"mean": mean, "std": spread or None, "min": low, "max": high}
        yield name.replace("\\|", "|"), build.data_from_points({}, None, cells, run, unit)


def read_text(source: Source, options: ReadOptions) -> Series:
    """Read the printed benchmarks, one summary per command."""
    for name, kind, mean, spread, low, high, runs in _TEXT.findall(plain(source.text())):
        cells = {"mean": mean, "std": spread, "min": low, "max": high}
        stats = {key: parse_duration(cell) for key, cell in cells.items() if cell}
        unit = build.unit_in(mean.split()[1]) or mean.split()[1]
        run = _SUMMARIZED.replace(unit=unit, unit_from="file")
        count = int(runs) if runs else 1 if kind == "abs ≡" else None  # older ones print none
        if spread and count:
            stats["standard error"] = stats["std"] / math.sqrt(count)
        yield name.strip(), build.data_from_points({}, count, stats, run, "ns")


FORMATS = {
    "hyperfine-json": read_json,
    "hyperfine-csv": (starts_with("command,mean,stddev,median,user,system,min,max"), read_csv),
    "hyperfine-markdown": (has_match(_MD_HEADER), read_markdown),
    "hyperfine": (has_match(_TEXT, plain=plain), read_text),
}
