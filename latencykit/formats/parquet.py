"""Counts as Parquet: one row a bucket of an interval, so that DuckDB, Spark or Polars can query them.

Columns: series, row, start, length (seconds), tag, layout, index, low, high, count. ``low`` and ``high`` are the bucket's
edges in the unit that the metadata names; percentiles come out of a running sum of ``count`` ordered by ``high``. The
metadata key ``latencykit`` holds what does not fit a table: runs, layouts, units, and what a source stated itself.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.errors import MissingPackageError, UsageError
from latencykit.formats import json_native
from latencykit.formats.base import Confidence, Format
from latencykit.histogram import Histogram
from latencykit.log import HistogramLog

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from latencykit.formats.base import Head, ReadOptions, Rung, Source

__all__ = ["FORMATS", "write_parquet"]

_KEY = b"latencykit"
_LARGEST_FOOTER = 64 << 20


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as missing:
        raise MissingPackageError("pyarrow", "Parquet", "arrow") from missing
    return pa, pq


def write_parquet(series: Mapping[str, Rung], path: Path) -> None:
    """Write logs and histograms; a block at a time, so that memory does not grow with a log.

    Raises
    ------
    UsageError
        For samples and summaries: ``.csv`` or ``.json`` hold those.
    """
    pa, pq = _arrow()
    names = ("series", "row", "start", "length", "tag", "layout", "index", "low", "high", "count")
    kinds = (
        pa.string(),
        pa.int64(),
        pa.float64(),
        pa.float64(),
        pa.string(),
        pa.int32(),
        pa.int64(),
        pa.float64(),
        pa.float64(),
        pa.int64(),
    )
    layouts: list[dict[str, Any]] = []
    frames = {name: _frame(rung) for name, rung in series.items()}
    schema = pa.schema(list(zip(names, kinds, strict=True)))
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for name, rung in series.items():
            for columns in _columns(rung, layouts):
                size = len(columns[0])
                arrays = [pa.array([name] * size, pa.string())]
                arrays += [pa.array(column, kind) for column, kind in zip(columns, kinds[1:], strict=True)]
                writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
        writer.add_key_value_metadata({_KEY: json.dumps({"series": frames, "layouts": layouts}).encode()})


def _frame(rung: Rung) -> dict[str, Any]:
    """What the rows do not say."""
    if isinstance(rung, HistogramLog):
        times = {"start": rung.starts.tolist(), "length": rung.lengths.tolist(), "tags": rung.tag_of_rows()}
        return json_native.frame_of(rung) | times
    if isinstance(rung, Histogram):
        return json_native.frame_of(rung) | json_native.stated_by(rung)
    raise UsageError("only logs and histograms fit into the Parquet table of buckets; write .csv or .json for the others")


def _columns(rung: Rung, layouts: list[dict[str, Any]]) -> Any:
    """Row, start, length, tag, layout, index, low, high, count of each block."""
    if isinstance(rung, Histogram):
        size, nothing = rung.index.size, np.full(rung.index.size, np.nan)
        edges = (rung.buckets.low(rung.index), rung.buckets.high(rung.index))
        layout = np.full(size, _layout_number(rung.buckets, layouts))
        yield [np.zeros(size, np.int64), nothing, nothing, [None] * size, layout, rung.index, *edges, rung.counts]
        return
    assert isinstance(rung, HistogramLog)
    tags = np.asarray(rung.tag_of_rows(), object)
    for block in rung.blocks():
        row = block.rows[block.entry_rows]
        layout = np.full(row.size, _layout_number(block.buckets, layouts))
        edges = (block.buckets.low(block.index), block.buckets.high(block.index))
        yield [row, rung.starts[row], rung.lengths[row], tags[row], layout, block.index, *edges, block.counts]


def _layout_number(buckets: Any, layouts: list[dict[str, Any]]) -> int:
    record = json_native.layout_of(buckets)
    if record not in layouts:
        layouts.append(record)
    return layouts.index(record)


def sniff(head: Head) -> Confidence:
    """Tell our own tables by the metadata at their end; other Parquet files hold samples."""
    return Confidence.CERTAIN if head.data[:4] == b"PAR1" and _KEY in _footer(head) else Confidence.NO


def _footer(head: Head) -> bytes:
    """The metadata at the end of a Parquet file; nothing where it cannot be reached."""
    if head.whole or head.path is None:
        return head.data[4:]
    try:
        with head.path.open("rb") as stream:
            stream.seek(-8, os.SEEK_END)
            size = int.from_bytes(stream.read(4), "little")
            stream.seek(-min(size + 8, _LARGEST_FOOTER), os.SEEK_END)
            return stream.read()
    except OSError:
        return b""


def read(source: Source, options: ReadOptions) -> dict[str, Rung]:  # noqa: ARG001 - the file says everything itself
    """Read logs and histograms back."""
    pa, pq = _arrow()
    try:
        with source.open() as stream:
            file = pq.ParquetFile(stream)
            told = (file.schema_arrow.metadata or {}).get(_KEY) or (file.metadata.metadata or {}).get(_KEY)
            table = file.read()
        if told is None:
            raise source.corrupt(None, "this Parquet file was not written by latencykit", "its metadata", "convert the original")
        facts = json.loads(told)
        return {name: _rebuilt(name, frame, facts["layouts"], table) for name, frame in facts["series"].items()}
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError, IndexError) as error:
        if hasattr(error, "seen"):
            raise
        raise source.corrupt(
            None, f"the Parquet file is damaged ({type(error).__name__})", "", "convert the original again"
        ) from None


def _rebuilt(name: str, frame: dict[str, Any], layouts: list[dict[str, Any]], table: Any) -> Rung:
    import pyarrow.compute as pc

    mine = table.filter(pc.equal(table["series"], name))
    row, layout, index, counts = (mine[key].to_numpy().astype(np.int64) for key in ("row", "layout", "index", "count"))
    if frame["rung"] == "histogram":
        number = int(layout[0]) if layout.size else 0
        return json_native.rung_of(frame | {"buckets": layouts[number], "index": index.tolist(), "counts": counts.tolist()})
    blocks = []
    for number, record in enumerate(layouts):
        chosen = np.flatnonzero(layout == number)
        order = chosen[np.lexsort((index[chosen], row[chosen]))]
        rows, first = np.unique(row[order], return_index=True)
        indptr = np.append(first, order.size)
        if rows.size:
            held = {
                "rows": rows.tolist(),
                "indptr": indptr.tolist(),
                "index": index[order].tolist(),
                "counts": counts[order].tolist(),
            }
            blocks.append({"buckets": record, **held})
    return json_native.rung_of(frame | {"blocks": blocks})


FORMATS = (
    Format(
        name="parquet",
        title="latencykit's table of buckets in Parquet",
        rung="log",
        suffixes=(".parquet",),
        sniff=sniff,
        read=read,
        write=write_parquet,
        example="latencykit convert run.hlog run.parquet",
    ),
)
