"""Samples as columns of numbers: Parquet, Feather (Arrow), NumPy arrays, frames in memory."""

from __future__ import annotations

import io
import tokenize
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from latencykit._text import printable
from latencykit._typing import AnyArray
from latencykit.errors import InvalidArgumentError, LatencyKitError
from latencykit.io.raw.build_samples import build_data
from latencykit.io.raw.cells import latency_columns
from latencykit.io.raw.columns import ColumnPlan, looked_at, plan_of
from latencykit.io.rows import Table, bytes_type, cells_of, opened_for_arrow, refuse_twice
from latencykit.io.source import Confidence, Data, Format, Head, ReadOptions, Source
from latencykit.io.text_reports import certain, has_match

_ROWS = 500_000
_SAMPLE = 400
_CELL = 8  # bytes
_NAMED = 3  # columns of nested values that a note names
_PIECE = 8 << 20  # bytes
_PAGES = 1 << 20  # bytes of a column of a Parquet file that are read at once


def _data_of(
    sample: Table,
    tables: Callable[[ColumnPlan], Iterable[Table]],
    source: Source,
    options: ReadOptions,
    notes: Sequence[str] = (),
) -> dict[str, Data]:
    """Series of a table whose chunks `tables` gives, for the columns that are wanted."""
    plan = plan_of(sample.columns, options, source, notes)

    def numbered() -> Iterator[Table]:
        done = 0
        for table in tables(plan):
            yield replace(table, first=done)
            done += len(table)

    return build_data(
        numbered(), plan, options, source, lambda rows: [(None, f"row {k + 1}") for k in rows], []
    )


# ---------------------------------------------------------------- Parquet and Feather


def _data_of_batches(
    batches: Callable[[Sequence[str], Sequence[str], int], Iterator[Any]],
    schema: Any,
    rows: int,
    source: Source,
    options: ReadOptions,
) -> dict[str, Data]:
    """Series of a table of some rows, of which `batches` gives some columns, the words coded."""
    try:  # the index of a DataFrame that was written is not a column
        index = {name for name in schema.pandas_metadata["index_columns"] if isinstance(name, str)}
    except (LookupError, TypeError, ValueError, RecursionError):
        index = set()
    names = [name for name in schema.names if name not in index]
    refuse_twice(names, source)
    kinds, notes = {name: schema.field(name).type for name in names}, list[str]()
    import pyarrow as pa

    looked = looked_at(kinds, options, notes)
    nested = [name for name in looked if pa.types.is_nested(kinds[name])]
    notes += [
        f"column {name!r} holds {printable(str(kinds[name]), 40)}; it is left out"
        for name in nested[:_NAMED]
    ]
    if len(nested) > _NAMED:
        notes.append(f"{len(nested) - _NAMED:,} more columns of nested values are left out")
    looked = [name for name in looked if name not in nested]
    begin = next((batch for batch in batches(looked, (), _SAMPLE) if batch.num_rows), None)
    if begin is None:
        raise source.corrupt(None, "the table has no rows", "one row per request", "")

    def tables(plan: ColumnPlan) -> Iterator[Table]:
        columns = [*plan.numbers, *plan.words]
        source.check_memory(rows * len(columns) * _CELL, "a table of its rows")
        coded = [name for name in plan.words if bytes_type(kinds[name])]
        return map(Table.of_arrow, batches(columns, coded, _ROWS))

    sample = Table.of_arrow(begin.slice(0, _SAMPLE), decoded=True)
    return _data_of(sample, tables, source, options, notes)


def read_parquet(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read row group by row group, the wanted columns only."""
    with opened_for_arrow(source, "Parquet") as content:
        import pyarrow.parquet as pq

        metadata = pq.read_metadata(content)
        if b"latencykit" in (metadata.metadata or {}):  # compressed, where sniffing sees no end
            from latencykit.io import parquet

            return parquet.read(source, options)

        def batches(columns: Sequence[str], coded: Sequence[str], size: int) -> Iterator[Any]:
            # Page by page: a row group may be as large as the file.
            file = pq.ParquetFile(
                content, metadata=metadata, buffer_size=_PAGES, pre_buffer=False,
                read_dictionary=coded,
            )  # fmt: skip
            yield from file.iter_batches(batch_size=size, columns=list(columns))

        schema = metadata.schema.to_arrow_schema()
        return _data_of_batches(batches, schema, metadata.num_rows, source, options)


def sniff_feather(head: Head) -> Confidence:
    """Tell Arrow files and streams, and old Feather, by their magic."""
    stream = (
        head.data[:4] == b"\xff\xff\xff\xff"
        and 0 < int.from_bytes(head.data[4:8], "little") < 1 << 20
    )
    return certain(stream or head.data.startswith((b"ARROW1", b"FEA1")))


def read_feather(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read batch by batch, the wanted columns only."""
    with opened_for_arrow(source, "Arrow and Feather files") as data:
        from pyarrow import feather, ipc

        magic = source.head.data[:6]
        opened = ipc.open_file if magic == b"ARROW1" else ipc.open_stream
        schema = (feather.read_table if magic[:4] == b"FEA1" else opened)(data).schema

        def batches(columns: Sequence[str], *_: object) -> Iterator[Any]:
            data.seek(0)
            if magic[:4] == b"FEA1":
                parts = feather.read_table(data, columns).to_batches()
            else:
                fields = [k for k, name in enumerate(schema.names) if name in columns]
                parts = opened(data, options=ipc.IpcReadOptions(included_fields=fields))
            if magic == b"ARROW1":
                parts = map(parts.get_batch, range(parts.num_record_batches))
            for batch in parts:
                batch.validate(full=True)  # offsets into texts, which nothing else checks
                yield batch

        return _data_of_batches(batches, schema, 0, source, options)


# ---------------------------------------------------------------- NumPy


@contextmanager
def _intact(source: Source, seen: str, expected: str) -> Iterator[None]:
    """Whatever numpy raises means that a file is corrupt; it loads no pickles."""
    from zipfile import BadZipFile  # not for other tables

    try:
        yield
    except LatencyKitError:
        raise
    except (
        ValueError, OSError, EOFError, KeyError, RuntimeError, SyntaxError, MemoryError,
        OverflowError, BadZipFile, zlib.error, tokenize.TokenError, TypeError,
    ) as error:  # fmt: skip
        raise source.corrupt(None, f"{seen} ({error})", expected, "") from None


def sniff_npy(head: Head) -> Confidence:
    """Tell the magic."""
    return certain(head.data[:6] == b"\x93NUMPY")


def read_npy(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read an array: values, one column each, or records; pickles are never loaded."""
    with _intact(source, "this is not an array of numbers", "an array saved by numpy.save"):
        if sniff_npy(source.head) is Confidence.NO:  # a zip file would be opened, and left open
            raise ValueError("the magic string is not correct")
        array = None if source.compressed else np.load(source.file, mmap_mode="r")
        if array is None or not (array.ndim and array.flags.c_contiguous):
            array = np.load(io.BytesIO(source.bytes()))
    if not isinstance(array, np.memmap):
        return _of_arrays(_columns(array, source), source, options)
    # Only its layout is taken from the map, which is not read: a file cut meanwhile would end the
    # process (SIGBUS).
    row = np.dtype((array.dtype, array.shape[1:]))

    def columns(rows: slice) -> dict[str, AnyArray]:
        begin, end, _ = rows.indices(len(array))
        stream.seek(array.offset + begin * row.itemsize)
        data = stream.read((end - begin) * row.itemsize)
        return _columns(np.frombuffer(data, row, end - begin), source)

    with source.open() as stream:
        step = max(1, min(_ROWS, _PIECE // max(row.itemsize, 1)))
        return _of_rows(columns, len(array) if row.itemsize else 0, source, options, step)


def _columns(array: AnyArray, source: Source) -> dict[str, AnyArray]:
    if array.dtype.names:
        return {field: array[field].reshape(-1) for field in array.dtype.names}
    if array.ndim == 2 and array.shape[1] > 1:
        return {str(k + 1): array[:, k] for k in range(array.shape[1])}
    if array.ndim not in (1, 2):
        seen = f"the array has {array.ndim} dimensions"
        raise source.corrupt(None, seen, "one value or one row per request")
    return {"1": array.reshape(-1)}


def sniff_npz(head: Head) -> Confidence:
    """Tell a zip file whose first member is an array."""
    return certain(head.data[:4] == b"PK\x03\x04" and b".npy" in head.data[30:600])


def read_npz(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read named arrays of one length as columns."""
    from zipfile import ZipFile

    expected = "arrays saved by numpy.savez"
    with _intact(source, "these are not arrays of numbers", expected), source.open() as stream:
        with ZipFile(stream) as archive:
            size = sum(member.file_size for member in archive.infolist())
            source.check_memory(size, whole=size > 2 * source.size)
        stream.seek(0)
        with np.load(stream) as saved:
            arrays = {name: saved[name] for name in saved.files}
    flat = {
        name: array for name, array in arrays.items() if array.ndim == 1 and not array.dtype.names
    }
    if not flat and len(arrays) == 1:
        return _of_arrays(_columns(next(iter(arrays.values())), source), source, options)
    named = [part.column for part in latency_columns(flat)[0]]
    chosen = next((name for name in (options.column, *named, *flat) if name in flat), None)
    if chosen is None:
        seen = "it contains no array of one dimension"
        raise source.corrupt(None, seen, "numpy.savez(file, latency_ms=values)", "")
    columns = {name: array for name, array in flat.items() if array.size == flat[chosen].size}
    return _of_arrays(columns, source, options)


_UNEQUAL = {"m": ("generic", "Y", "M"), "M": ("generic",)}


def _of_arrays(columns: Mapping[str, Any], source: Source, options: ReadOptions) -> dict[str, Data]:
    size = len(next(iter(columns.values())))
    return _of_rows(
        lambda rows: {name: column[rows] for name, column in columns.items()}, size, source, options
    )


def _of_rows(
    columns: Callable[[slice], Mapping[str, AnyArray]],
    size: int,
    source: Source,
    options: ReadOptions,
    step: int = _ROWS,
) -> dict[str, Data]:
    """Series of a table of some rows, of which `columns` gives those of a slice, a step each."""
    if not size:
        raise source.corrupt(None, "the array is empty", "one value per request", "")
    begin = columns(slice(min(_SAMPLE, step)))
    for name, column in begin.items():
        kind: Any = column.dtype  # may be one of pandas, whose times have a length
        if (
            isinstance(kind, np.dtype)
            and kind.kind in "mM"
            and np.datetime_data(kind)[0] in _UNEQUAL[kind.kind]
        ):
            seen = f"column {name!r} is {kind}, which has no length in seconds"
            raise source.corrupt(None, seen, "a unit of fixed length", "write timedelta64[ns]")

    def tables(plan: ColumnPlan) -> Iterator[Table]:
        names = (*plan.numbers, *plan.words)
        for at in range(0, size, step):
            some = columns(slice(at, at + step))
            yield _table_of({name: some[name] for name in names})

    return _data_of(_table_of(begin), tables, source, options)


def _table_of(columns: Mapping[str, Any]) -> Table:
    """The columns in this machine's byte order; bytes as text."""
    cells = {}
    for name, column in columns.items():
        if isinstance(column, np.ndarray) and column.dtype.kind == "S":
            column = np.char.decode(column, "utf-8", "replace")
        elif isinstance(column, np.ndarray):
            column = np.asarray(column, column.dtype.newbyteorder("="))
        cells[name] = cells_of(column)
    return Table(cells)


# ---------------------------------------------------------------- frames in memory


class FrameSource(Source):
    """A data frame or a Series of pandas, Polars or Arrow; one without a name is the latencies."""

    def __init__(self, data: Any) -> None:
        super().__init__(type(data).__name__)
        frame = data.to_pandas() if hasattr(data, "to_pandas") else data
        if hasattr(frame, "iloc") and not hasattr(frame, "columns"):
            frame = frame.to_frame("latency" if frame.name is None else frame.name)
        if not hasattr(frame, "iloc"):
            raise InvalidArgumentError(
                f"{self.shown} is not read: give a path, a data frame or a Series; of an array, "
                "Histogram.of(values, unit='ms') makes data"
            )
        index = frame.index  # of times: when requests were sent
        if index.dtype.kind == "M" and (name := index.name or "start") not in frame.columns:
            frame = frame.reset_index(names=name)
        names = [str(name) for name in frame.columns]
        refuse_twice(names, self)
        self.frame = frame.set_axis(names, axis=1)
        vars(self)["head"] = Head(self.shown, b"")
        if not len(frame):
            raise self.corrupt(None, "the frame has no rows", "one row per request", "")


def _read_frame(source: Source, options: ReadOptions) -> dict[str, Data]:
    assert isinstance(source, FrameSource)
    frame = source.frame
    return _of_rows(lambda rows: dict(frame.iloc[rows].items()), len(frame), source, options)


FRAME = Format("frame", "data frame", "samples", (), lambda _: Confidence.CERTAIN, _read_frame)

FORMATS = {
    "parquet-samples": (has_match(r"\APAR1", confidence=Confidence.GENERIC), read_parquet),
    "feather": (sniff_feather, read_feather),
    "npy": (sniff_npy, read_npy),
    "npz": (sniff_npz, read_npz),
}
