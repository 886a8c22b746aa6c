"""Counts as Parquet: one row a bucket of an interval, so that DuckDB, Polars or Spark can query them.

=========  =======  ==============================================================================================
column     type     meaning
=========  =======  ==============================================================================================
series     string   name of the series: a file's, or a tool's own
row        int64    which interval of the series; 0 for a histogram of a whole run
start      double   seconds from the log's start (in the metadata: ``run.start``, since the epoch); NaN without a time
length     double   seconds
tag        string   of the interval; empty for none, null for a histogram of a whole run
layout     int32    which of the metadata's layouts `index` belongs to
index      int64    of the bucket
low, high  double   lowest and highest value of the bucket, in `unit`
count      int64    how many values the bucket holds
unit       string   ``ns``, ``us``, ``ms``, ``s`` or ``none``
=========  =======  ==============================================================================================

The metadata key ``latencykit`` holds, as JSON, what does not fit a table: runs, layouts, the times of all intervals (an
empty one has no rows), and what a source stated itself. A row group holds whole intervals of one layout, so a log is
read back a row group at a time.

Counts of buckets add up, percentiles do not. So merging is ``sum(count)`` by bucket, and a percentile is the ``high`` of the
first bucket at which the running sum reaches its share of all counts, which never reads better than the data::

    -- DuckDB: p99.9 of everything that a day of hosts measured
    WITH merged AS (
        SELECT high, sum(count)::BIGINT AS n FROM read_parquet('day/*.parquet') WHERE unit = 'ns' GROUP BY high
    ), ranked AS (
        SELECT high, sum(n) OVER (ORDER BY high) AS upto, sum(n) OVER () AS total FROM merged
    )
    SELECT min(high) AS p999 FROM ranked WHERE upto >= ceil(0.999 * total);

Spark takes the same with ``FROM parquet.`day/*.parquet` `` and ``CAST(sum(count) AS BIGINT)``. For one row per minute and
tag, group, partition and count by ``floor(start / 60), tag`` as well. Polars::

    rows = pl.scan_parquet("day/*.parquet").filter(pl.col("unit") == "ns")
    merged = rows.group_by("high").agg(pl.col("count").sum()).sort("high").collect()
    merged.filter(pl.col("count").cum_sum() >= math.ceil(0.999 * merged["count"].sum()))["high"][0]
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.core.histogram import Histogram
from latencykit.core.histogram_log import HistogramLog
from latencykit.errors import InvalidArgumentError, LatencyKitError, MissingPackageError
from latencykit.io import native_json as json_native
from latencykit.io.source import Confidence, Format

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from latencykit.core.blocks import Block
    from latencykit.io.source import Data, Head, ReadOptions, Source

    Ints = NDArray[np.int64]

__all__ = ["FORMATS", "write_parquet"]

_KEY = b"latencykit"
_GROUP = 1 << 18  # buckets per row group
_LARGEST_FOOTER = 64 << 20


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as missing:
        raise MissingPackageError("pyarrow", "Parquet", "arrow") from missing
    return pa, pq


def write_parquet(series: Mapping[str, Data], path: Path) -> None:
    """Write logs and histograms; a block at a time, so that memory does not grow with a log."""
    pa, pq = _arrow()
    names = (
        "series",
        "row",
        "start",
        "length",
        "tag",
        "layout",
        "index",
        "low",
        "high",
        "count",
        "unit",
    )
    text, whole, real = pa.string(), pa.int64(), pa.float64()
    kinds = (text, whole, real, real, text, pa.int32(), whole, real, real, whole, text)
    layouts: list[dict[str, Any]] = []
    frames = {name: _frame(data) for name, data in series.items()}
    schema = pa.schema(list(zip(names, kinds, strict=True)))
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for name, data in series.items():
            for columns in _columns(data, layouts):
                size = len(columns[0])
                arrays = [pa.repeat(pa.scalar(name, text), size)]
                arrays += [
                    pa.array(column, kind)
                    for column, kind in zip(columns, kinds[1:-1], strict=True)
                ]
                arrays += [pa.repeat(pa.scalar(data.unit, text), size)]
                writer.write_table(
                    pa.Table.from_arrays(arrays, schema=schema), row_group_size=max(1, size)
                )
        writer.add_key_value_metadata(
            {_KEY: json.dumps({"series": frames, "layouts": layouts}).encode()}
        )


def _frame(data: Data) -> dict[str, Any]:
    """What the rows do not say."""
    if isinstance(data, HistogramLog):
        times = {
            "start": data.starts.tolist(),
            "length": data.lengths.tolist(),
            "tags": data.tag_of_rows(),
        }
        return json_native.frame_of(data) | times
    if isinstance(data, Histogram):
        return json_native.frame_of(data) | json_native.stated_by(data)
    raise InvalidArgumentError(
        "only logs and histograms fit into the Parquet table of buckets; write .csv or .json for the others"
    )


def _columns(data: Data, layouts: list[dict[str, Any]]) -> Any:
    """Row, start, length, tag, layout, index, low, high, count of each block."""
    if isinstance(data, Histogram):
        size, nothing = data.index.size, np.full(data.index.size, np.nan)
        edges = (data.buckets.low(data.index), data.buckets.high(data.index))
        layout = np.full(size, _layout_number(data.buckets, layouts))
        yield [
            np.zeros(size, np.int64),
            nothing,
            nothing,
            [None] * size,
            layout,
            data.index,
            *edges,
            data.counts,
        ]
        return
    assert isinstance(data, HistogramLog)
    tags = np.asarray(data.tag_of_rows(), object)
    for block in (piece for whole in data.blocks() for piece in _pieces(whole)):
        row = block.rows[block.entry_rows]
        layout = np.full(row.size, _layout_number(block.buckets, layouts))
        edges = (block.buckets.low(block.index), block.buckets.high(block.index))
        yield [
            row,
            data.starts[row],
            data.lengths[row],
            tags[row],
            layout,
            block.index,
            *edges,
            block.counts,
        ]


def _pieces(block: Block) -> Iterator[Block]:
    """A block in pieces of whole intervals that are small enough for a row group."""
    cuts = np.flatnonzero(np.diff(block.indptr[:-1] // _GROUP)) + 1
    for rows in np.split(np.arange(block.rows.size), cuts):
        yield block.take(rows)


def _layout_number(buckets: Any, layouts: list[dict[str, Any]]) -> int:
    record = json_native.layout_of(buckets)
    if record not in layouts:
        layouts.append(record)
    return layouts.index(record)


def sniff(head: Head) -> Confidence:
    """Tell our own tables by the metadata at their end; other Parquet files hold samples."""
    return (
        Confidence.CERTAIN if head.data[:4] == b"PAR1" and _KEY in _footer(head) else Confidence.NO
    )


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


def read(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001 - the file says everything itself
    """Read histograms back, and logs whose row groups are read when they are asked for."""
    pa, pq = _arrow()
    try:
        with source.open() as stream:
            file = pq.ParquetFile(stream)
            reported_stats = (file.schema_arrow.metadata or {}).get(_KEY) or (
                file.metadata.metadata or {}
            ).get(_KEY)
            if reported_stats is None:
                raise source.corrupt(
                    None,
                    "this Parquet file was not written by latencykit",
                    "its metadata",
                    "convert the original",
                )
            facts = json.loads(reported_stats)
            groups = _groups(file.metadata)
            return {
                name: _rebuilt(frame, facts["layouts"], groups.get(name, []), source)
                for name, frame in facts["series"].items()
            }
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError, IndexError) as error:
        raise _damaged(source, error) from None


def _damaged(source: Source, error: Exception) -> Exception:
    if isinstance(error, LatencyKitError):
        return error
    return source.corrupt(
        None,
        f"the Parquet file is corrupt ({type(error).__name__})",
        "",
        "convert the original again",
    )


def _groups(metadata: Any) -> dict[str, list[tuple[int, int, int]]]:
    """Row groups of each series, with the lowest and highest interval in them."""
    found: dict[str, list[tuple[int, int, int]]] = {}
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        columns = {
            group.column(k).path_in_schema: group.column(k).statistics
            for k in range(group.num_columns)
        }
        if group.num_rows:
            place = (number, int(columns["row"].min), int(columns["row"].max))
            found.setdefault(columns["series"].min, []).append(place)
    return found


def _rebuilt(
    frame: dict[str, Any],
    layouts: list[dict[str, Any]],
    groups: list[tuple[int, int, int]],
    source: Source,
) -> Data:
    part = _ParquetPart(source, groups, layouts, len(frame.get("start", [0])))
    if frame["rung"] == "histogram":
        held = list(part.blocks(np.zeros(1, np.int64)))
        counts: dict[str, Any] = (
            {"index": held[0].index, "counts": held[0].counts}
            if held
            else {"index": [], "counts": []}
        )
        layout = (
            json_native.layout_of(held[0].buckets)
            if held
            else layouts[0]
            if layouts
            else {"digits": 3, "lowest": 1, "scale": 1.0}
        )
        return json_native.rung_of(frame | {"buckets": layout} | counts)
    log = json_native.rung_of(frame | {"blocks": []})
    assert isinstance(log, HistogramLog)
    return log._mapped_through(lambda _: part)  # noqa: SLF001


class _ParquetPart:
    """The intervals of one series; a row group is one block."""

    def __init__(
        self,
        source: Source,
        groups: list[tuple[int, int, int]],
        layouts: list[dict[str, Any]],
        intervals: int,
    ) -> None:
        self._source, self._groups, self._layouts, self._intervals = (
            source,
            groups,
            layouts,
            intervals,
        )

    def blocks(self, rows: Ints) -> Iterator[Block]:
        """Yield the blocks of the given rows."""
        pa, pq = _arrow()
        try:
            with self._source.open() as stream:
                file = pq.ParquetFile(stream)
                for number, first, last in self._groups:
                    low, high = np.searchsorted(rows, [first, last + 1])
                    if low < high:
                        yield from self._group(file, number, rows[low:high])
        except (pa.ArrowException, OSError, KeyError, TypeError, ValueError, IndexError) as error:
            raise _damaged(self._source, error) from None

    def _group(self, file: Any, number: int, rows: Ints) -> Iterator[Block]:
        table = file.read_row_group(number, columns=["row", "layout", "index", "count"])
        row, layout, index, counts = (
            table[key].to_numpy().astype(np.int64) for key in ("row", "layout", "index", "count")
        )
        order = np.lexsort((index, row))
        held, first = np.unique(row[order], return_index=True)
        record = {
            "buckets": self._layouts[int(layout[0])], "rows": held, "indptr": np.append(first, order.size),
            "index": index[order], "counts": counts[order],
        }  # fmt: skip
        block = json_native.block_of(record, self._intervals)
        chosen = np.flatnonzero(np.isin(held, rows, assume_unique=True))
        if chosen.size:
            yield block if chosen.size == held.size else block.take(chosen)


FORMATS = (
    Format(
        name="parquet",
        title="latencykit's table of buckets in Parquet",
        level="log",
        suffixes=(".parquet",),
        sniff=sniff,
        read=read,
        write=write_parquet,
        example="latencykit convert run.hlog run.parquet",
    ),
)
