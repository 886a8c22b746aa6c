"""hyperfine: its JSON (every run), CSV and Markdown exports, and what it prints."""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.core.run import Run, UnitFrom
from latencykit.core.samples import OUTCOMES, Samples
from latencykit.core.summary import Summary
from latencykit.io import text as jsontext
from latencykit.io.build import distinct, nanoseconds, nanoseconds_of
from latencykit.io.source import Confidence, Format
from latencykit.io.text import plain
from latencykit.units import parse_duration

if TYPE_CHECKING:
    from latencykit.io.source import Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

_CSV_HEADER = "command,mean,stddev,median,user,system,min,max"
_MD_HEADER = re.compile(
    r"^\| *Command *\| *Mean \[(\S+)\] *\| *Min \[\S+\] *\| *Max \[\S+\] *\|", re.MULTILINE
)
_MD_ROW = re.compile(
    r"^\| *(?:`` ?)?`?(.+?)`? *\| *([\d.]+)(?: *± *([\d.]+))? *\| *([\d.]+) *\| *([\d.]+) *\|",
    re.MULTILINE,
)
_VALUE = r"([\d.]+ \S+)"
_TEXT = re.compile(
    rf"^Benchmark #?\d+: (.+)\n\s*Time \((?:mean ± σ|abs ≡)\): +{_VALUE}(?: ± +{_VALUE})?[^\n]*"
    rf"(?:\n\s*Range \(min … max\): +{_VALUE} … +{_VALUE} +(\d+) runs)?",
    re.MULTILINE,
)
_ALL_FAILED = "every run ended with an exit code other than 0: the times are of those runs"
_HINT = "hyperfine --export-json keeps every run: the distribution"


def _run(unit: str, origin: UnitFrom, *notes: str) -> Run:
    return Run(
        tool="hyperfine",
        loop="closed",
        measure="service",
        corrected="none",
        connections=1,
        unit=unit,
        unit_from=origin,
        notes=notes,
    )


def sniff_json(head: Head) -> Confidence:
    """Tell the keys of a result."""
    found = jsontext.has_keys(head, "results", "command", "mean", "stddev", "system", within=4000)
    return Confidence.CERTAIN if found else Confidence.NO


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read every run of every command; runs that ended with another exit code than 0 failed, unless all of them did."""
    found: dict[str, Data] = {}
    for result in jsontext.entry(jsontext.load(source), "results", source, list):
        name = distinct(str(jsontext.entry(result, "command", source, str)), found)
        times, codes = result.get("times"), result.get("exit_codes")
        if not times:
            found[name] = _summary(result, _run("s", "format", _HINT))
            continue
        outcome = None
        notes: list[str] = []
        if codes and len(codes) == len(times):
            failed = np.array([code != 0 for code in codes])
            if failed.all():  # the command ends so by nature, and hyperfine was told to go on (-i)
                notes.append(_ALL_FAILED)
            elif failed.any():
                outcome = np.where(failed, OUTCOMES.index("error"), 0).astype(np.int8)
        found[name] = Samples(
            duration=nanoseconds_of(times, "s"), outcome=outcome, run=_run("s", "format", *notes)
        )
    return found


def _summary(result: dict[str, Any], run: Run) -> Summary:
    """Mean, spread and extremes (s) as a summary."""
    stats = {
        ours: nanoseconds(float(result[theirs]), "s")
        for ours, theirs in (("mean", "mean"), ("std", "stddev"), ("min", "min"), ("max", "max"))
        if result.get(theirs) not in (None, "")
    }
    middle = result.get("median")
    points = {50.0: nanoseconds(float(middle), "s")} if middle not in (None, "") else {}
    return Summary(stats, points, None, "ns", run)


def sniff_csv(head: Head) -> Confidence:
    """Tell the header."""
    return (
        Confidence.CERTAIN
        if head.lines and head.lines[0].startswith(_CSV_HEADER)
        else Confidence.NO
    )


def read_csv(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read one summary a command."""
    found: dict[str, Data] = {}
    reader = csv.DictReader(source.text().splitlines())
    for row in reader:
        try:
            found[distinct(str(row["command"]), found)] = _summary(row, _run("s", "format", _HINT))
        except ValueError:
            seen, hint = f"a row without numbers: {row['command']!r}", "--lenient skips the line"
            options.reject(source.corrupt(reader.line_num, seen, "seconds", hint))
    return found


def sniff_markdown(head: Head) -> Confidence:
    """Tell the head of the table."""
    return Confidence.CERTAIN if _MD_HEADER.search(head.text) else Confidence.NO


def read_markdown(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read one summary a command."""
    text = source.text()
    header = _MD_HEADER.search(text)
    if header is None:
        raise source.corrupt(1, "there is no table", "the head of hyperfine's Markdown table", "")
    unit = {"µs": "us", "μs": "us"}.get(header[1], header[1])
    found: dict[str, Data] = {}
    for name, mean, spread, low, high in _MD_ROW.findall(text[header.end() :]):
        stats = {"mean": mean, "std": spread, "min": low, "max": high}
        held = {key: nanoseconds(float(value), unit) for key, value in stats.items() if value}
        found[distinct(name.replace("\\|", "|"), found)] = Summary(
            held, {}, None, "ns", _run(unit, "file", _HINT)
        )
    return found


def sniff_text(head: Head) -> Confidence:
    """Tell a printed benchmark."""
    return Confidence.CERTAIN if _TEXT.search(plain(head.text)) else Confidence.NO


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read what hyperfine printed, one summary a command."""
    found: dict[str, Data] = {}
    for name, mean, spread, low, high, runs in _TEXT.findall(plain(source.text())):
        stats = {"mean": mean, "std": spread, "min": low, "max": high}
        held = {key: round(parse_duration(value), 3) for key, value in stats.items() if value}
        unit = {"µs": "us", "μs": "us"}.get(mean.split()[1], mean.split()[1])
        count = int(runs) if runs else 1
        found[distinct(name.strip(), found)] = Summary(
            held, {}, count, "ns", _run(unit, "file", _HINT)
        )
    return found


FORMATS = (
    Format(
        "hyperfine-json", "hyperfine (JSON)", "samples", (".json",), sniff_json, read_json, unit="s",
        example="hyperfine --export-json out.json COMMAND",
    ),
    Format(
        "hyperfine-csv", "hyperfine (CSV)", "summary", (".csv",), sniff_csv, read_csv, unit="s",
        example="hyperfine --export-csv out.csv COMMAND",
    ),
    Format(
        "hyperfine-markdown", "hyperfine (Markdown)", "summary", (".md",), sniff_markdown, read_markdown,
        example="hyperfine --export-markdown out.md COMMAND",
    ),
    Format("hyperfine", "hyperfine (text)", "summary", (".txt",), sniff_text, read_text, example="hyperfine COMMAND > out.txt"),
)  # fmt: skip
