"""k6's points: every value of every metric, as ``--out csv`` and ``--out json`` write them.

A point's time is the end of its request; in CSV it is cut to whole seconds, unless ``K6_CSV_TIME_FORMAT`` says otherwise.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.errors import UsageError
from latencykit.formats import jsontext
from latencykit.formats.base import Confidence, Format
from latencykit.formats.k6 import MAIN, loop_of
from latencykit.formats.rows import Layout, line_chunks, read_table
from latencykit.formats.shaping import nanoseconds_of, without_negative
from latencykit.formats.stamps import iso_nanoseconds
from latencykit.formats.vegeta import TIMED_OUT
from latencykit.samples import OUTCOMES, Samples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from latencykit.formats.base import Head, ReadOptions, Rung, Source

    Points = dict[str, Any]  # stamp, value and outcome of one metric

__all__ = ["FORMATS"]

_BESIDE = ("dropped_iterations", "iteration_duration", "vus_max")
_WORDS = ("metric_name", "expected_response", "status", "error_code", "error")
_STAMPS = ((1e17, 1), (1e14, 1_000), (1e11, 1_000_000), (0, 1_000_000_000))  # least value, ns of the unit
_BEGUN = re.compile(rb"^[^\r\n]", re.MULTILINE)
_LINE = re.compile(
    rb'^\{"(?:metric":"[^"\n]+","type":"Point","data":\{"time":"[^"\n]+","value":-?\d[^,\n]*,"tags":[^\n]*\}|'
    rb'type":"Point","data":\{"time":"[^"\n]+","value":-?\d[^,\n]*,"tags":[^\n]*\},"metric":"[^"\n]+"|'
    rb'type":"Metric",[^\n]*)\}\r?$',
    re.MULTILINE,
)


def sniff_csv(head: Head) -> Confidence:
    """Tell the header."""
    return Confidence.CERTAIN if head.text.startswith("metric_name,timestamp,metric_value") else Confidence.NO


def read_csv(source: Source, options: ReadOptions) -> dict[str, Rung]:
    """Read the points of the main metric, or of those asked for by name."""
    lines = source.head.lines
    columns = tuple(lines[0].strip().split(","))
    numeric = len(lines) < 2 or re.match(r"[^,]*,\d+,", lines[1]) is not None
    words = tuple(name for name in (*_WORDS, *(() if numeric else ("timestamp",))) if name in columns)
    layout = Layout(
        columns, ("timestamp", "metric_value") if numeric else ("metric_value",), words, skip=1,
        only={"metric_name": _wanted(options)}, largest={"timestamp": 9.2e18, "metric_value": 9e12},
    )  # fmt: skip
    frame, notes = read_table(source, options, layout)
    found: dict[str, Points] = {}
    for name in frame["metric_name"].cat.categories.tolist():
        rows = frame[frame["metric_name"] == name]
        found[name] = {
            "stamp": _stamps(rows["timestamp"], numeric),
            "value": rows["metric_value"].to_numpy(np.float64),
            "outcome": _outcomes(*(_column(rows, word) for word in _WORDS[1:])),
        }
    if found and all((points["stamp"] % 1_000_000_000 == 0).all() for points in found.values()):
        notes = (*notes, "time stamps are whole seconds: K6_CSV_TIME_FORMAT=unix_nano keeps the rest")
    return _series(found, notes, options, source)


def _stamps(column: Any, numeric: bool) -> NDArray[np.int64]:
    """Nanoseconds since the epoch of seconds, ms, µs or ns (by their size), or of dates."""
    if not numeric:
        return iso_nanoseconds(column.astype(str).tolist())
    given = column.to_numpy(np.int64)
    return np.asarray(given * next(ns for least, ns in _STAMPS if not given.size or given.max() >= least))


def _column(rows: Any, name: str) -> NDArray[np.str_]:
    return np.asarray(rows[name].astype(str)) if name in rows else np.full(len(rows), "")


def _outcomes(
    expected: NDArray[np.str_], status: NDArray[np.str_], code: NDArray[np.str_], error: NDArray[np.str_]
) -> NDArray[np.int8]:
    """What became of requests, by k6's own opinion, else by their status; 1050 is its code for a timeout."""
    unlike = np.char.str_len(status.astype(np.str_)) != 3
    refused = (status >= "400") & ~unlike
    failed = np.where(expected != "", expected == "false", refused | (status == "0"))
    late = (code == "1050") | np.isin(error, [text for text in np.unique(error).tolist() if TIMED_OUT.search(text)])
    return np.where(late & (failed | (error != "")), OUTCOMES.index("timeout"), np.where(failed, 1, 0)).astype(np.int8)


def sniff_json(head: Head) -> Confidence:
    """Tell the first lines: definitions of metrics, and points."""
    lines = [line for line in head.lines[:3] if line.strip()]
    found = lines and all(line.startswith("{") and re.search(r'"type": ?"(?:Point|Metric)"', line) for line in lines)
    return Confidence.CERTAIN if found and all('"metric":' in line and '"data":' in line for line in lines) else Confidence.NO


def read_json(source: Source, options: ReadOptions) -> dict[str, Rung]:
    """Read the points of the main metric, or of those asked for by name."""
    wanted, notes = _wanted(options), list[str]()
    names = b"|".join(re.escape(json.dumps(name)[1:-1].encode()) for name in wanted)
    pattern = re.compile(rb'^[^\n]*"metric":"(?:' + names + rb')"[^\n]*', re.MULTILINE)
    parts: list[dict[str, Points]] = []
    for first, chunk in line_chunks(source):
        whole = len(_LINE.findall(chunk)) == len(_BEGUN.findall(chunk))
        try:
            records = json.loads(b"[" + b",".join(pattern.findall(chunk)) + b"]") if whole else None
            parts.append(_points(_checked(source, options, first, chunk, notes) if records is None else records, wanted))
        except (ValueError, KeyError, TypeError):
            parts.append(_points(_checked(source, options, first, chunk, notes), wanted))
    found = {
        name: {key: np.concatenate([part[name][key] for part in parts if name in part]) for key in ("stamp", "value", "outcome")}
        for name in {name for part in parts for name in part}
    }
    return _series(found, notes, options, source)


def _checked(source: Source, options: ReadOptions, first: int, chunk: bytes, notes: list[str]) -> list[Any]:
    """The points of a chunk, line by line: it names what is damaged."""
    good = []
    for number, record in jsontext.numbered(source, options, first, chunk, notes):
        try:
            if record["type"] == "Point":
                iso_nanoseconds([str(record["data"]["time"])])
                float(record["data"]["value"])
                good.append(record)
        except (KeyError, TypeError, ValueError):
            options.damaged(source.corrupt(number, "a point without time and value", "both", "--lenient skips the line"))
    return good


def _points(records: Sequence[Any], wanted: Sequence[str]) -> dict[str, Points]:
    """Arrays of each metric's points."""
    found: dict[str, Points] = {}
    for name in wanted:
        rows = [one["data"] for one in records if one["metric"] == name and one["type"] == "Point"]
        if rows:
            tags = [row.get("tags") or {} for row in rows]
            found[name] = {
                "stamp": iso_nanoseconds([row["time"] for row in rows]),
                "value": np.array([row["value"] for row in rows], np.float64),
                "outcome": _outcomes(*(np.array([str(tag.get(word, "")) for tag in tags]) for word in _WORDS[1:])),
            }
    return found


def _wanted(options: ReadOptions) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*MAIN, *_BESIDE, *options.series)))


def _series(found: dict[str, Points], notes: Sequence[str], options: ReadOptions, source: Source) -> dict[str, Rung]:
    """Samples of the main metric, or of those asked for; what the others say goes to the run."""
    missing = [name for name in options.series if name not in found]
    if missing:
        raise UsageError(f"{source.shown}: holds no points of {missing[0]!r}; names are those of k6's metrics, without tags")
    main = next((name for name in MAIN if name in found), None)
    names = options.series or ((main,) if main else ())
    busy = vus = None
    if "iteration_duration" in found and "vus_max" in found:
        each, vus = found["iteration_duration"], float(found["vus_max"]["value"].max())
        begin = float((each["stamp"] - each["value"] * 1e6).min())
        span = float(each["stamp"].max()) - begin
        busy = float(each["value"].sum()) * 1e6 / span if span > 0 else None
    dropped = int(found["dropped_iterations"]["value"].sum()) if "dropped_iterations" in found else 0
    run = loop_of(busy, vus, dropped).noting(*notes)
    result: dict[str, Rung] = {}
    for name in names:
        points = found[name]
        duration = np.rint(nanoseconds_of(points["value"], "ms")).astype(np.int64)
        given = {"start": points["stamp"] - duration, "duration": duration}
        given["outcome"] = points["outcome"] if points["outcome"].any() else None
        columns, left_out = without_negative(given, options)
        result[name] = Samples(run=run.noting(*left_out), **columns)
    return result


FORMATS = (
    Format(
        "k6-csv", "k6 points (CSV)", "samples", (".csv",), sniff_csv, read_csv, unit="ms",
        example="K6_CSV_TIME_FORMAT=unix_nano k6 run --out csv=points.csv script.js",
    ),
    Format(
        "k6-json", "k6 points (JSON lines)", "samples", (".json", ".jsonl"), sniff_json, read_json, unit="ms",
        example="k6 run --out json=points.json script.js",
    ),
)  # fmt: skip
