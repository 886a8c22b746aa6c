"""vegeta's results by the row: ``vegeta encode -to csv`` and ``-to json``.

A row's time stamp is its send; rows are not sorted by it. vegeta sends by a schedule and adds workers where replies are
late, so times are those of an open loop, unless ``-max-workers`` ends that: then sends stop while requests are in flight.
"""

from __future__ import annotations

import csv
import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.formats import jsontext
from latencykit.formats.base import Confidence, Format
from latencykit.formats.rows import Layout, line_chunks, read_table
from latencykit.formats.shaping import per_operation, without_negative
from latencykit.formats.stamps import iso_nanoseconds
from latencykit.run import Run
from latencykit.samples import OUTCOMES, Samples
from latencykit.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from latencykit.formats.base import Head, ReadOptions, Rung, Source

    Columns = dict[str, Any]

__all__ = ["FORMATS", "RUN", "TIMED_OUT"]

RUN = Run(tool="vegeta", loop="open", measure="response", corrected="schedule", unit="ns", unit_from="format")
TIMED_OUT = re.compile(r"timeout|timed out|deadline exceeded", re.IGNORECASE)
_COLUMNS = ("stamp", "code", "latency", "out", "in", "error", "body", "attack", "seq", "method", "url", "headers")
_ROW = re.compile(r"\d{16,19},\d{1,3},-?\d+,\d+,\d+,")
_KEYS = ("timestamp", "latency", "code", "bytes_in", "bytes_out")
_WHOLE = {key: re.compile(rf'"{key}":(-?\d+)[,}}]'.encode()) for key in ("latency", "code")}
_WORDS = {key: re.compile(rf'"{key}":"((?:[^"\\]|\\.)*)"'.encode()) for key in ("timestamp", "error", "attack")}
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
_OFTEN, _LONG = 20, 5e7


def sniff_csv(head: Head) -> Confidence:
    """Tell nanoseconds since the epoch, a status, a latency and two sizes at the begin of the first row."""
    return Confidence.CERTAIN if _ROW.match(head.text) else Confidence.NO


def read_csv(source: Source, options: ReadOptions) -> dict[str, Rung]:
    """Read every request."""
    line, ends, _ = source.head.text.partition("\n")
    columns = _COLUMNS[: len(next(csv.reader([line.rstrip("\r")])))] if ends else _COLUMNS
    words = tuple(name for name in ("error", "attack") if name in columns)
    layout = Layout(columns, ("stamp", "code", "latency"), words, largest={"stamp": 9.2e18, "latency": 9.2e18})
    frame, notes = read_table(source, options, layout)
    given: Columns = {
        "start": frame["stamp"].to_numpy(np.int64),
        "duration": frame["latency"].to_numpy(np.int64),
        "status": frame["code"].to_numpy(np.int64),
    }
    for name in words:
        kinds = frame[name].astype("category").cat
        given[name] = np.asarray(kinds.codes, np.int64)
        given[f"{name}s"] = ["" if kind == "" else str(kind) for kind in kinds.categories]
    return _series(given, notes, options)


def sniff_json(head: Head) -> Confidence:
    """Tell the keys of the first object."""
    if not head.text.startswith("{"):
        return Confidence.NO
    line = head.text.partition("\n")[0]
    return Confidence.CERTAIN if all(f'"{key}":' in line for key in _KEYS) else Confidence.NO


def read_json(source: Source, options: ReadOptions) -> dict[str, Rung]:
    """Read every request: chunks of whole lines by pattern; a chunk that does not fit is taken line by line."""
    notes: list[str] = []
    parts: list[Columns] = []
    for first, chunk in line_chunks(source):
        whole = chunk.rfind(b"\n") + 1
        parts.append(_matched(chunk[:whole]) or _parsed(source, options, first, chunk[:whole], notes))
        if whole < len(chunk):
            parts.append(_parsed(source, options, first + chunk.count(b"\n"), chunk[whole:], notes))
    parts = [part for part in parts if len(part["start"])]
    if not parts:
        return {}
    given: Columns = {name: np.concatenate([part[name] for part in parts]) for name in ("start", "duration", "status")}
    for name in ("error", "attack"):
        kinds, code = np.unique(np.concatenate([part[name] for part in parts]), return_inverse=True)
        given[name], given[f"{name}s"] = code.reshape(-1), [_text(kind) for kind in kinds.tolist()]
    return _series(given, tuple(notes), options)


def _matched(chunk: bytes) -> Columns | None:
    """The columns of a chunk, where each of its lines has each of the keys once."""
    size = chunk.count(b"\n")
    whole = {key: pattern.findall(chunk) for key, pattern in _WHOLE.items()}
    words = {key: pattern.findall(chunk) for key, pattern in _WORDS.items()}
    words["attack"] = words["attack"] or [b""] * size
    if not size or any(len(found) != size for found in (*whole.values(), *words.values())):
        return None
    try:
        start = iso_nanoseconds([text.decode() for text in words["timestamp"]])
        return {
            "start": start,
            "duration": np.array(whole["latency"], "S20").astype(np.int64),
            "status": np.array(whole["code"], "S8").astype(np.int64),
            "error": np.array(words["error"], np.bytes_),
            "attack": np.array(words["attack"], np.bytes_),
        }
    except (ValueError, OverflowError):
        return None


def _parsed(source: Source, options: ReadOptions, first: int, chunk: bytes, notes: list[str]) -> Columns:
    """The same, line by line: it names what is damaged."""
    stamps: list[str] = []
    rows: list[tuple[int, int, bytes, bytes]] = []
    for number, record in jsontext.numbered(source, options, first, chunk, notes):
        try:
            error, attack = (str(record.get(key, "")).encode() for key in ("error", "attack"))
            row = _int64(record["latency"]), _int64(record["code"]), error, attack
            stamps.append(_stamp(record["timestamp"]))
            rows.append(row)
        except (AttributeError, KeyError, TypeError, ValueError):
            seen = "an object without a proper timestamp, latency and code"
            options.damaged(source.corrupt(number, seen, "a result of vegeta", "--lenient skips the line"))
    return {
        "start": iso_nanoseconds(stamps),
        "duration": np.array([row[0] for row in rows], np.int64),
        "status": np.array([row[1] for row in rows], np.int64),
        "error": np.array([row[2] for row in rows], np.bytes_),
        "attack": np.array([row[3] for row in rows], np.bytes_),
    }


def _stamp(value: Any) -> str:
    if _STAMP.fullmatch(str(value)) is None:
        raise ValueError(value)
    return str(value)


def _int64(value: Any) -> int:
    number = int(value)
    if abs(number) >= 2**63:
        raise ValueError(number)
    return number


def _text(kind: bytes) -> str:
    text = kind.decode("utf-8", "replace")
    return str(json.loads(f'"{text}"')) if "\\" in text else text


def _series(given: Columns, notes: Sequence[str], options: ReadOptions) -> dict[str, Rung]:
    """Columns as samples: one series an attack, where there are several."""
    errors, attacks = given.pop("errors", []), given.pop("attacks", [])
    error, status = given.pop("error", None), given.pop("status")
    bad = (status < 200) | (status >= 400)
    outcome = np.where(bad, OUTCOMES.index("error"), 0)
    if error is not None:
        late = np.array([TIMED_OUT.search(text) is not None for text in errors] or [False], np.bool_)
        told = np.array([text != "" for text in errors] or [False], np.bool_)
        outcome[told[error]] = OUTCOMES.index("error")
        outcome[late[error] & (bad | told[error])] = OUTCOMES.index("timeout")
    given["outcome"] = outcome if outcome.any() else None
    columns, left_out = without_negative(given, options)
    code = columns.pop("attack", None)
    run = _paced(columns["start"], columns["duration"]).noting(*notes, *left_out)
    samples = Samples(run=run, **columns)
    return {"": samples} if code is None else per_operation(samples, code, attacks)


def _paced(start: NDArray[np.int64], duration: NDArray[np.int64]) -> Run:
    """The run: of an open loop, unless sends stopped for as long as requests were in flight."""
    if start.size < _OFTEN:
        return RUN
    order = np.argsort(start, kind="stable")
    sent, ended = start[order], start[order] + duration[order]
    gaps = np.diff(sent)
    at = int(gaps.argmax())
    gap, span = float(gaps[at]), float(sent[-1] - sent[0]) / 1e9
    run = RUN.but(rate=round((start.size - 1) / span, 3), achieved=round((start.size - 1) / span, 3)) if span > 0 else RUN
    if gap <= max(_OFTEN * float(np.median(gaps)), _LONG) or not (ended[: at + 1] >= sent[at] + 0.9 * gap).any():
        return run
    note = (
        f"sends stopped for {format_duration(gap)} while requests were in flight: the workers ran out (-max-workers), and "
        "what was due in that time is missing"
    )
    return run.but(loop="paced", measure="service", corrected="none", rate=None).noting(note)


FORMATS = (
    Format(
        "vegeta-csv", "vegeta results (CSV)", "samples", (".csv",), sniff_csv, read_csv, unit="ns",
        example="vegeta encode -to csv results.bin > results.csv",
    ),
    Format(
        "vegeta-json", "vegeta results (JSON lines)", "samples", (".json", ".jsonl"), sniff_json, read_json, unit="ns",
        example="vegeta encode -to json results.bin > results.json",
    ),
)  # fmt: skip
