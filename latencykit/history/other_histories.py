"""Histories that other tools keep: github-action-benchmark, pytest-benchmark, asv, and CSV.

Each gives the runs of the tool as series, commit, branch, time and labels. Rates are turned into
times, so that higher is worse.
"""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import io
import itertools
import json
import math
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latencykit._records import record
from latencykit.core.run import Run
from latencykit.core.summary import Summary
from latencykit.errors import CorruptInputError, UnknownFormatError
from latencykit.io.several_files import read_all
from latencykit.units import NANOSECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from latencykit.core import Data

_COLUMNS = {"series", "time", "value"}
_UNVERSIONED = ("unversioned", "(unknown)")  # pytest-benchmark outside of a repository
_RATES = ("/s", "/sec", "ops", "/second", "per second")


@record(eq=False)
class OtherRun:
    """One run of another tool's history."""

    series: dict[str, Data]
    commit: str | None
    branch: str | None
    time: float | None
    labels: dict[str, str]


def read_history(path: str) -> list[OtherRun]:
    """Return the runs of a history that another tool keeps, oldest first.

    Raises
    ------
    UnknownFormatError
        For anything else.
    CorruptInputError
        If it is corrupt.
    """
    place = Path(path)
    found: list[OtherRun] = []
    try:
        if place.is_dir():
            readers: tuple[Callable[[Path], Iterator[OtherRun]], ...] = (_asv, _pytest, _single)
        elif place.name.endswith((".csv", ".csv.gz")):
            readers = (_table,)
        else:
            readers = (_action, _pytest_file, _single)
        for read in readers:
            found = list(read(place))
            if found:
                break
    except (KeyError, TypeError, ValueError, AttributeError, csv.Error, EOFError) as error:
        raise CorruptInputError(
            path, None, f"the history is corrupt ({type(error).__name__}: {error})", ""
        ) from error
    if not found:
        raise UnknownFormatError(
            f"{path}: not a history that can be imported; expected data.js of "
            "github-action-benchmark, .benchmarks of pytest-benchmark, asv's results, or a CSV "
            "with the columns series, time and value"
        )
    return sorted(found, key=lambda run: run.time or 0.0)


def statistic(value: float, unit: str, tool: str, count: int | None = None) -> Summary:
    """Return a mean, in ns if its unit is a time or a rate per second, else as a bare number."""
    word = unit.strip().lower().replace("µ", "u")
    time = word.split("/")[0].strip() if not word.endswith(_RATES) else ""
    names = {"second": "s", "seconds": "s", "sec": "s", "msec": "ms", "usec": "us", "nsec": "ns"}
    time = names.get(time, time)
    run = Run(tool=tool, unit="ns", unit_from="file")
    if word.endswith(_RATES):
        return Summary({"mean": 1e9 / value}, {}, count, "ns", run)
    if time in NANOSECONDS:
        return Summary({"mean": value * NANOSECONDS[time]}, {}, count, "ns", run)
    return Summary({"mean": value}, {}, count, "none", run.replace(unit="none"))


def _action(path: Path) -> Iterator[OtherRun]:
    """``data.js`` of github-action-benchmark: ``window.BENCHMARK_DATA = {…}``."""
    text = path.read_text("utf-8", errors="replace").lstrip()
    if not text.startswith(("window.BENCHMARK_DATA", '{"lastUpdate"')):
        return
    facts = json.JSONDecoder().raw_decode(text[text.index("{") :])[0]
    for suite, entries in facts["entries"].items():
        many = len(facts["entries"]) > 1
        for entry in entries:
            series: dict[str, Data] = {}
            for bench in entry["benches"]:
                unit = str(bench.get("unit", ""))
                value = float(bench["value"])
                if value <= 0 or not math.isfinite(value):
                    continue
                if entry.get("tool") == "customBiggerIsBetter" and not unit.endswith(_RATES):
                    value, unit = 1 / value, "reciprocal"
                name = f"{suite}: {bench['name']}" if many else str(bench["name"])
                series[name] = statistic(value, unit, "github-action-benchmark")
            commit = entry.get("commit") or {}
            time = parse_time(commit.get("timestamp")) or float(entry["date"]) / 1000
            if series:
                yield OtherRun(series, commit.get("id"), None, time, {})


def _pytest(path: Path) -> Iterator[OtherRun]:
    """``.benchmarks`` of pytest-benchmark: a folder per machine, a file per run."""
    for file in sorted(path.glob("**/*.json")):
        yield from _pytest_file(file)


def _pytest_file(path: Path) -> Iterator[OtherRun]:
    facts = _json(path)
    if isinstance(facts, dict) and "machine_info" in facts and "commit_info" in facts:
        commit = facts["commit_info"] or {}
        time = parse_time(commit.get("time")) or parse_time(facts.get("datetime"))
        machine = (facts["machine_info"] or {}).get("node")
        labels = {"machine": str(machine)} if machine else {}
        known = (commit.get(key) for key in ("id", "branch"))
        sha, branch = (text if text not in _UNVERSIONED else None for text in known)
        yield OtherRun(dict(read_all(path)), sha, branch, time, labels)


def _asv(path: Path) -> Iterator[OtherRun]:
    """``results`` of asv: a folder per machine, a file per commit and environment."""
    for file in sorted(path.glob("**/*.json")):
        facts = _json(file)
        if not (isinstance(facts, dict) and "commit_hash" in facts and "results" in facts):
            continue
        columns = facts.get("result_columns") or ["result", "params"]
        series: dict[str, Data] = {}
        for name, result in facts["results"].items():
            cells = dict(zip(columns, result, strict=False)) if isinstance(result, list) else result
            if not isinstance(cells, dict):
                cells = {"result": cells}
            values = cells.get("result")
            values = values if isinstance(values, list) else [values]
            params = itertools.product(*cells.get("params") or [])
            labels = [", ".join(map(str, combination)) for combination in params]
            for number, value in enumerate(values):
                own = (
                    f"{name}({labels[number]})" if number < len(labels) and labels[number] else name
                )
                unit = "s" if name.rpartition(".")[2].startswith("time_") else ""
                if isinstance(value, (int, float)) and value > 0:
                    series[own] = statistic(float(value), unit, "asv")
        machine = (facts.get("params") or {}).get("machine") or file.parent.name
        time = float(facts["date"]) / 1000 if facts.get("date") else None
        if series:
            yield OtherRun(series, facts["commit_hash"], None, time, {"machine": str(machine)})


def _table(path: Path) -> Iterator[OtherRun]:
    """A CSV with the columns series, time (seconds, or ISO), value, and commit, branch, unit."""
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    reader = csv.DictReader(io.StringIO(content.decode("utf-8-sig")))
    if not set(reader.fieldnames or ()) >= _COLUMNS:
        return
    runs: dict[tuple[float, str, str, int], dict[str, Data]] = defaultdict(dict)
    seen: dict[tuple[float, str, str, str], int] = defaultdict(int)
    for row in reader:
        time = parse_time(row["time"])
        value = float(row["value"])
        if time is None:
            raise ValueError(f"line {reader.line_num}: {row['time']!r} is not a time")
        if value > 0 and math.isfinite(value):
            key = time, row.get("commit") or "", row.get("branch") or ""
            number = seen[(*key, row["series"])]  # repetitions are runs of their own
            seen[(*key, row["series"])] += 1
            runs[(*key, number)][row["series"]] = statistic(value, row.get("unit") or "", "csv")
    for (time, commit, branch, number), series in runs.items():
        yield OtherRun(series, commit or None, branch or None, time + number / 1000, {})


def _single(path: Path) -> Iterator[OtherRun]:
    """One output of any tool, at the time of its file: such as criterion's or JMH's."""
    yield OtherRun(dict(read_all(path)), None, None, path.stat().st_mtime, {})


def _json(path: Path) -> object:
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None


def parse_time(text: Any) -> float | None:
    """Seconds since the epoch from a number or ISO time; None for anything else."""
    if text is None or text == "":
        return None
    try:
        return float(text)
    except ValueError:
        pass
    try:
        moment = dt.datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)).timestamp()
