"""latencykit's own JSON: any data type, complete, so that reading restores what was written."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from latencykit._typing import JSONObject
from latencykit.core.blocks import Block, MemoryPart
from latencykit.core.buckets import Buckets, EdgeBuckets, HdrBuckets
from latencykit.core.histogram import Histogram
from latencykit.core.histogram_log import HistogramLog, blocks_of, interval_tags
from latencykit.core.run import Run
from latencykit.core.samples import Samples
from latencykit.core.summary import Summary
from latencykit.hdr.payload import counts_length
from latencykit.io.source import Data, ReadOptions, Source, level_name
from latencykit.io.text_reports import has_match
from latencykit.units import NANOSECONDS

_MOST = (1 << 63) - 1
_LARGEST = float(_MOST)  # of the facts of a run: seconds, nanoseconds, requests
_UNFIT = (
    AttributeError, IndexError, KeyError, OverflowError, RecursionError, TypeError, ValueError,
)  # fmt: skip
_COLUMNS = ("start", "duration", "intended", "outcome", "connection", "tag")
_BLOCK = ("rows", "indptr", "index", "counts")


def write_json(series: Mapping[str, Data], path: Path) -> None:
    """Write every series."""
    records = {name: record_of(data) for name, data in series.items()}
    record = {"latencykit": 1, "series": records}
    path.write_text(json.dumps(record, separators=(",", ":")) + "\n", encoding="utf-8")


def record_of(data: Data) -> JSONObject:
    """Return a data type as plain values; `data_of` is the inverse."""
    content: dict[str, object]
    if isinstance(data, Summary):
        percentiles = [[p, v] for p, v in data.reported_percentiles.items()]
        content = {"stats": dict(data.stats), "percentiles": percentiles, "count": data.count}
        content |= {"runs": [record_of(run) for run in data.runs]} if data.runs else {}
    elif isinstance(data, Samples):
        columns = {column: getattr(data, column) for column in _COLUMNS}
        content = {key: cells.tolist() for key, cells in columns.items() if cells is not None}
    elif isinstance(data, Histogram):
        content = {"buckets": layout_of(data.buckets)}
        content |= {key: getattr(data, key).tolist() for key in _BLOCK[2:]} | stated_by(data)
    else:
        content = {"start": data.starts.tolist(), "length": data.lengths.tolist()}
        content |= {"tags": interval_tags(data)}
        content["blocks"] = [
            {"buckets": layout_of(block.buckets)}
            | {key: getattr(block, key).tolist() for key in _BLOCK}
            for block in blocks_of(data)
        ]
    return frame_of(data) | content


def frame_of(data: Data) -> JSONObject:
    """Return what every record begins with: data type, unit, run."""
    return {"rung": level_name(data), "unit": data.unit, "run": dataclasses.asdict(data.run)}


def stated_by(histogram: Histogram) -> JSONObject:
    """Return what a histogram holds beside its counts."""
    bound = histogram.censored_at if np.isfinite(histogram.censored_at) else None
    stated = {
        "reported_stats": dict(histogram.reported_stats),
        "reported_percentiles": histogram.reported_percentiles,
    }
    return stated | {"censored": histogram.censored, "censored_at": bound}


def layout_of(buckets: Buckets) -> JSONObject:
    """Return a layout as plain values."""
    if isinstance(buckets, HdrBuckets):
        return {"digits": buckets.digits, "lowest": buckets.lowest, "scale": buckets.scale}
    assert isinstance(buckets, EdgeBuckets)
    edges = {"low": buckets.lows.tolist(), "high": buckets.highs.tolist()}
    return edges | ({"open_ended": True} if buckets.open_ended else {})


def read(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read every series back."""
    try:
        record = json.loads(source.text())
        return {name: data_of(series) for name, series in record["series"].items()}
    except json.JSONDecodeError as error:
        line, seen = error.lineno, f"the JSON is corrupt ({error.msg})"
    except _UNFIT as error:
        line, seen = None, f"the record is incomplete ({type(error).__name__}: {error})"
    expected = "a file that latencykit wrote"
    raise source.corrupt(line, seen, expected, "convert the original again")


def data_of(record: JSONObject) -> Data:
    """Return the data type that a record holds."""
    facts = dict(record["run"])
    run = _run(facts | {"tags": tuple(facts["tags"]), "notes": tuple(facts["notes"])})
    kind, unit = record["rung"], record["unit"]
    if unit not in (*NANOSECONDS, "none"):
        raise ValueError(f"{unit!r} is not a unit")
    if kind == "summary":
        pairs = [number for pair in record["percentiles"] for number in pair]
        if not _numbers([*record["stats"].values(), *pairs, record["count"] or 0]):
            raise ValueError("a statistic is not a number")
        runs: Any = tuple(map(data_of, record.get("runs", ())))
        points = dict(record["percentiles"])
        return Summary(record["stats"], points, record["count"], unit, run, runs)
    if kind == "samples":
        return Samples(
            unit=unit, run=run, **{name: record[name] for name in _COLUMNS if name in record}
        )
    if kind == "histogram":
        bound = record["censored_at"]
        block = block_of(record | {"rows": [0], "indptr": [0, len(record["index"])]}, 1)
        stats, (percentiles, values) = record["reported_stats"], record["reported_percentiles"]
        if not _numbers([*stats.values(), *percentiles, *values, record["censored"], bound or 0]):
            raise ValueError("a stated number is none")
        return Histogram(
            block.buckets, block.index, block.counts, unit, run, stats,
            (tuple(percentiles), tuple(values)), record["censored"],
            float("inf") if bound is None else bound,
        )  # fmt: skip
    if kind != "log":
        raise ValueError(f"no data type is called {kind!r}")
    start, length, tags = record["start"], record["length"], record["tags"]
    if not (_numbers(start) and _numbers(length) and len(start) == len(length) == len(tags)):
        raise ValueError("start, length and tags do not fit together")
    if not all(isinstance(tag, str) for tag in tags):
        raise ValueError("a tag is not text")
    blocks = [block_of(block, len(start)) for block in record["blocks"]]
    names = list(dict.fromkeys(["", *tags]))
    codes = [names.index(tag) for tag in tags]
    return HistogramLog(
        start, length, [MemoryPart(blocks)], tag_code=codes, tag_names=names, unit=unit, run=run
    )


def _run(facts: JSONObject) -> Run:
    """Return the facts as a `Run`, where each is of the kind that the field states."""
    run = Run(**facts)
    for field in dataclasses.fields(Run):
        value = facts.get(field.name, field.default)
        integer = field.name in ("failed", "timeouts", "dropped", "unfinished", "connections")
        if field.name in ("tags", "notes"):
            fits = all(isinstance(text, str) for text in value)
        elif value is None:
            fits = field.default is None
        elif integer or field.type == "float | None":
            fits = (
                isinstance(value, int if integer else (int, float))
                and not isinstance(value, bool)
                and abs(value) <= _LARGEST
            )
        else:
            fits = isinstance(value, bool if field.type == "bool" else str)
        if not fits:
            raise ValueError(f"{field.name} is {value!r}")
    return run


def block_of(record: JSONObject, intervals: int) -> Block:
    """Return a block of a log with this number of intervals; rows that fit no histogram raise."""
    rows, indptr, index, counts = (np.asarray(record[key], np.int64) for key in _BLOCK)
    layout = record["buckets"]
    buckets: Any
    if "digits" in layout:
        buckets = HdrBuckets(layout["digits"], layout["lowest"], layout["scale"])
        slots = counts_length(buckets, _MOST)
    else:
        open_ended = layout.get("open_ended") is True
        buckets = EdgeBuckets(layout["low"], layout["high"], open_ended=open_ended)
        slots = len(buckets)
    if indptr.shape != (rows.size + 1,) or ((rows < 0) | (rows >= intervals)).any():
        raise ValueError("rows and indptr do not fit together")
    ends = [*indptr[[0, -1]].tolist(), *index.shape]
    if ends != [0, index.size, *counts.shape] or (np.diff(indptr) < 0).any():
        raise ValueError("index and counts do not fit together")
    if (counts < 0).any() or (index < 0).any() or (index >= slots).any():
        raise ValueError("a count or an index is out of its range")
    steps, inner = np.diff(index), indptr[1:-1]
    steps[inner[(inner > 0) & (inner < index.size)] - 1] = 1  # a new row begins anywhere
    if (steps <= 0).any():
        raise ValueError("the indices of a row do not ascend")
    return Block(rows, indptr, index, counts, buckets)


def _numbers(values: Iterable[object]) -> bool:
    # not-a-number is not below it
    return all(isinstance(v, (int, float)) and abs(v) <= _LARGEST for v in values)


FORMATS = {"json": (has_match(r'\A\s*\{"latencykit":'), read, write_json)}
