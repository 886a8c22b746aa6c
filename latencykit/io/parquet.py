"""Counts as Parquet: one row per bucket and interval, for DuckDB, Polars or Spark to query.

=========  =======  ================================================================================
column     type     meaning
=========  =======  ================================================================================
series     string   name of the series: a file's, or a tool's own
row        int64    number of the interval in the series; 0 for a histogram of a complete run
start      double   seconds from the log's start (``run.start`` in the metadata, since the epoch);
                    NaN without a time
length     double   seconds
tag        string   of the interval; empty for none, null for a histogram of a complete run
layout     int32    number of the layout in the metadata that `index` belongs to
index      int64    of the bucket
low, high  double   lowest and highest value of the bucket, in `unit`
count      int64    number of values in the bucket
unit       string   ``ns``, ``us``, ``ms``, ``s`` or ``none``
=========  =======  ================================================================================

The metadata key ``latencykit`` holds, as JSON, what does not fit a table: runs, layouts, the times
of all intervals (an empty one has no rows), and the statistics that a source reported. A row group
holds complete intervals of one layout, so a log is written and read back a row group at a time.

Counts of buckets add up, percentiles do not. So merging is ``sum(count)`` by bucket, and a
percentile is the ``high`` of the first bucket at which the running sum reaches its share of all
counts, which is never lower than the true value::

    -- DuckDB: p99.9 of everything that a day of hosts measured
    WITH merged AS (
        SELECT high, sum(count)::BIGINT AS n
        FROM read_parquet('day/*.parquet') WHERE unit = 'ns' GROUP BY high
    ), ranked AS (
        SELECT high, sum(n) OVER (ORDER BY high) AS upto, sum(n) OVER () AS total FROM merged
    )
    SELECT min(high) AS p999 FROM ranked WHERE upto >= ceil(0.999 * total);

Spark takes the same with ``FROM parquet.`day/*.parquet` `` and ``CAST(sum(count) AS BIGINT)``. For
one row per minute and tag, group, partition and count by ``floor(start / 60), tag`` as well.
Polars::

    rows = pl.scan_parquet("day/*.parquet").filter(pl.col("unit") == "ns")
    merged = rows.group_by("high").agg(pl.col("count").sum()).sort("high").collect()
    merged.filter(pl.col("count").cum_sum() >= math.ceil(0.999 * merged["count"].sum()))["high"][0]
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from latencykit._typing import AnyArray, Floats
from latencykit.core.blocks import Block, MemoryPart
from latencykit.core.histogram import Histogram
from latencykit.core.histogram_log import HistogramLog, blocks_of, interval_tags, mapped_through
from latencykit.errors import InvalidArgumentError, MissingPackageError
from latencykit.io import native_json as json_native
from latencykit.io.rows import opened_for_arrow
from latencykit.io.source import Confidence, Data, Head, ReadOptions, Source

_KEY = b"latencykit"
_GROUP = 1 << 20  # buckets per row group, at most
_LARGEST_FOOTER = 64 << 20
_SCHEMA = {
    "series": "string", "row": "int64", "start": "double", "length": "double", "tag": "string",
    "layout": "int32", "index": "int64", "low": "double", "high": "double", "count": "int64",
    "unit": "string",
}  # fmt: skip
# Columns that repeat by interval take a dictionary. Ascending indices are small as differences,
# small counts as few bits, and the edges of neighbouring buckets share their leading bytes.
_ENCODINGS = {
    "index": "DELTA_BINARY_PACKED",
    "count": "DELTA_BINARY_PACKED",
    "low": "BYTE_STREAM_SPLIT",
    "high": "BYTE_STREAM_SPLIT",
}


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as missing:
        raise MissingPackageError("pyarrow", "Parquet", "arrow") from missing
    return pa, pq


def write_parquet(series: Mapping[str, Data], path: Path) -> None:
    """Write logs and histograms in row groups, so that memory does not grow with a log."""
    pa, pq = _arrow()
    layouts: list[dict[str, object]] = []
    frames: dict[str, object] = {}
    intervals: dict[str, tuple[HistogramLog | Histogram, Floats, Floats, Any]] = {}
    tags: Sequence[str | None]
    for name, data in series.items():
        if isinstance(data, HistogramLog):
            starts, lengths, tags = data.starts, data.lengths, interval_tags(data)
            facts = {"start": starts.tolist(), "length": lengths.tolist(), "tags": tags}
        elif isinstance(data, Histogram):
            starts = lengths = np.array([np.nan])
            tags, facts = [None], json_native.stated_by(data)
        else:
            raise InvalidArgumentError(
                "logs and histograms fit into the Parquet table of buckets, requests into one of "
                "their own; write .csv or .json for others, and for both at once"
            )
        frames[name] = json_native.frame_of(data) | facts
        intervals[name] = data, starts, lengths, pa.array(tags, pa.string())
    schema = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in _SCHEMA.items()])
    repeated = [name for name in _SCHEMA if name not in _ENCODINGS]
    with pq.ParquetWriter(
        path, schema, compression="zstd", use_dictionary=repeated, column_encoding=_ENCODINGS
    ) as writer:
        for name, (data, starts, lengths, tag) in intervals.items():
            for buckets, row, index, counts in _groups(data):
                layout = json_native.layout_of(buckets)
                if layout not in layouts:
                    layouts.append(layout)
                columns = {
                    "series": pa.repeat(pa.scalar(name, pa.string()), row.size),
                    "row": row,
                    "start": starts[row],
                    "length": lengths[row],
                    "tag": tag.take(pa.array(row)),
                    "layout": np.full(row.size, layouts.index(layout), np.int32),
                    "index": index,
                    "low": buckets.low(index),
                    "high": buckets.upper_edge(index),
                    "count": counts,
                    "unit": pa.repeat(pa.scalar(data.unit, pa.string()), row.size),
                }
                table = pa.Table.from_pydict(columns, schema=schema)
                writer.write_table(table, row_group_size=max(1, row.size))
        metadata = json.dumps({"series": frames, "layouts": layouts}).encode()
        writer.add_key_value_metadata({_KEY: metadata})


def write_requests(tables: Mapping[str, Mapping[str, AnyArray]], path: Path) -> None:
    """Write a row per request, with all columns; names of series that are not tags come first."""
    pa, pq = _arrow()
    tagged = all(set(table.get("tag", ())) == {name} for name, table in tables.items())
    parts = []
    for name, table in tables.items():
        columns = {key: pa.array(cells, from_pandas=True) for key, cells in table.items()}
        if len(tables) > 1 and not tagged:
            size = len(next(iter(columns.values())))
            columns = {"series": pa.repeat(pa.scalar(name, pa.string()), size), **columns}
        parts.append(pa.table(columns))
    pq.write_table(pa.concat_tables(parts, promote_options="permissive"), path, compression="zstd")


def _groups(data: HistogramLog | Histogram) -> Iterator[tuple[Any, ...]]:
    """Whole intervals of one layout, as many as a row group takes: layout, row, index, counts."""
    if isinstance(data, Histogram):
        yield data.buckets, np.zeros(data.index.size, np.int64), data.index, data.counts
        return
    for block in blocks_of(data):
        cuts = np.flatnonzero(np.diff(block.indptr[:-1] // _GROUP)) + 1
        for rows in np.split(np.arange(block.rows.size), cuts):
            piece = block.take(rows)
            yield piece.buckets, piece.rows[piece.entry_rows], piece.index, piece.counts


def sniff(head: Head) -> Confidence:
    """Detect our own tables by the metadata at their end; other Parquet files hold samples."""
    if head.data[:4] != b"PAR1":
        return Confidence.NO
    footer = head.data[4:]
    if not head.whole and head.path is not None:
        try:
            with head.path.open("rb") as stream:
                stream.seek(-8, os.SEEK_END)
                size = int.from_bytes(stream.read(4), "little")
                stream.seek(-min(size + 8, _LARGEST_FOOTER), os.SEEK_END)
                footer = stream.read()
        except OSError:
            return Confidence.NO
    return Confidence.CERTAIN if _KEY in footer else Confidence.NO


def read(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read histograms and logs back, a row group at a time: each is a block of one series."""
    unfit = (KeyError, TypeError, ValueError, IndexError)
    with opened_for_arrow(source, "Parquet", *unfit) as content:
        file = _arrow()[1].ParquetFile(content)
        metadata = file.metadata.metadata or {}
        record = (file.schema_arrow.metadata or {}).get(_KEY) or metadata.get(_KEY)
        if record is None and b"latencykit.history" in metadata:
            hint = "latencykit history show --store reads the folder"
            raise source.corrupt(None, "this is a run of a history", "a measurement", hint)
        if record is None:
            seen = "this Parquet file was not written by latencykit"
            raise source.corrupt(None, seen, "its metadata", "convert the original")
        facts = json.loads(record)
        names = ["row", "layout", "index", "count"]
        source.check_memory(8 * len(names) * file.metadata.num_rows, "a table of its rows")
        place = file.schema_arrow.get_field_index("series")
        blocks: dict[str, list[Block]] = {name: [] for name in facts["series"]}
        for number in range(file.metadata.num_row_groups):
            table = file.read_row_group(number, columns=names)
            if not table.num_rows:
                continue
            name = file.metadata.row_group(number).column(place).statistics.min
            row, layout, index, counts = (table[key].to_numpy() for key in names)
            step = np.diff(row)
            in_order = ((step > 0) | ((step == 0) & (np.diff(index) > 0))).all()
            order = np.arange(row.size) if in_order else np.lexsort((index, row))
            rows, begins = np.unique(row[order], return_index=True)
            record = {
                "buckets": facts["layouts"][int(layout[0])],
                "rows": rows,
                "indptr": np.append(begins, order.size),
                "index": index[order],
                "counts": counts[order],
            }
            intervals = len(facts["series"][name].get("start", [0]))
            blocks[name].append(json_native.block_of(record, intervals).narrow())
        return {
            name: _rebuilt(frame, facts["layouts"], blocks[name])
            for name, frame in facts["series"].items()
        }


def _rebuilt(
    frame: dict[str, Any], layouts: list[dict[str, object]], blocks: Sequence[Block]
) -> Data:
    if frame["rung"] != "histogram":
        log = json_native.data_of(frame | {"blocks": []})
        assert isinstance(log, HistogramLog)
        return mapped_through(log, lambda _: MemoryPart(blocks))
    empty = layouts[0] if layouts else {"digits": 3, "lowest": 1, "scale": 1.0}
    content: dict[str, object] = {"buckets": empty, "index": [], "counts": []}
    if blocks:
        layout = json_native.layout_of(blocks[0].buckets)
        content = {"buckets": layout, "index": blocks[0].index, "counts": blocks[0].counts}
    return json_native.data_of(frame | content)


FORMATS = {"parquet": (sniff, read, write_parquet)}
