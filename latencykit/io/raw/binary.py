"""Samples as columns of numbers on disk: Parquet, Feather (Arrow), NumPy arrays."""

from __future__ import annotations

import io
import math
import tokenize
import zipfile
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit._limits import in_force
from latencykit.errors import InputTooLargeError, LatencyKitError, MissingPackageError
from latencykit.io.raw.build_samples import gathered
from latencykit.io.raw.cells import latency_columns
from latencykit.io.raw.columns import plan_of
from latencykit.io.source import Confidence, Format

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import IO

    import pandas as pd

    from latencykit.io.source import Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

_ROWS = 500_000
_SAMPLE = 400
_PIECE = 8 << 20  # bytes
_PAGES = 1 << 20  # bytes of a column of a Parquet file that are read at once
_BROKEN = (
    ValueError, OSError, EOFError, KeyError, RuntimeError, SyntaxError, MemoryError, OverflowError,
    zipfile.BadZipFile,
    zlib.error, tokenize.TokenError, TypeError,
)  # fmt: skip
"""Errors that NumPy raises for corrupt or hostile files."""


def _data_of(
    sample: pd.DataFrame,
    frames: Callable[[list[str]], Iterable[pd.DataFrame]],
    source: Source,
    options: ReadOptions,
) -> dict[str, Data]:
    """Series of a table whose chunks `frames` gives, for the columns that are wanted."""
    plan = plan_of(sample, options, source)
    chunks = _numbered(frames([*plan.numbers, *plan.words]))
    return gathered(
        chunks, plan, options, source, lambda rows: [(None, f"row {row + 1}") for row in rows], []
    )


def _numbered(frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    done = 0
    for frame in frames:
        yield frame.set_axis(range(done, done + len(frame)))
        done += len(frame)


# ---------------------------------------------------------------- Parquet and Feather


def _arrow(what: str) -> Any:
    try:
        import pyarrow as pa
    except ImportError as missing:
        raise MissingPackageError("pyarrow", what, "arrow") from missing
    return pa


def sniff_parquet(head: Head) -> Confidence:
    """Recognise Parquet by its magic, and latencykit's own tables more surely by their metadata."""
    return Confidence.GENERIC if head.data[:4] == b"PAR1" else Confidence.NO


def read_parquet(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read row group by row group, the wanted columns only."""
    pa = _arrow("Parquet")
    import pyarrow.parquet as pq

    with source.open() as stream:
        try:
            content = io.BytesIO(source.bytes()) if source.compressed else stream
            # Page by page: a row group may be as large as the file.
            file = pq.ParquetFile(content, buffer_size=_PAGES, pre_buffer=False)
            begin = next(file.iter_batches(batch_size=_SAMPLE), None)
            if begin is None:
                raise source.corrupt(None, "the table has no rows", "one row per request", "")

            def frames(columns: list[str]) -> Iterator[pd.DataFrame]:
                return (
                    _frame_of(batch)
                    for batch in file.iter_batches(batch_size=_ROWS, columns=columns)
                )

            return _data_of(_frame_of(begin), frames, source, options)
        except LatencyKitError:
            raise
        except (pa.ArrowException, OSError, UnicodeError) as error:
            raise _unreadable(source, "Parquet", error) from None


def _frame_of(batch: Any) -> pd.DataFrame:
    """A batch as a DataFrame, without pandas' own metadata in the file where that is corrupt."""
    try:
        frame: pd.DataFrame = batch.to_pandas()
    except (AttributeError, LookupError, TypeError, ValueError):
        frame = batch.replace_schema_metadata(None).to_pandas()
    return frame


def _sound_frame_of(batch: Any) -> pd.DataFrame:
    """The same of Arrow's own files, whose offsets into texts nothing else checks before use."""
    batch.validate(full=True)
    return _frame_of(batch)


def _unreadable(source: Source, what: str, error: Exception) -> LatencyKitError:
    return source.corrupt(
        None, f"the {what} file is corrupt ({type(error).__name__})", "", "write it anew"
    )


def sniff_feather(head: Head) -> Confidence:
    """Tell Arrow files and streams, and old Feather, by their magic."""
    stream = (
        head.data[:4] == b"\xff\xff\xff\xff"
        and 0 < int.from_bytes(head.data[4:8], "little") < 1 << 20
    )
    return (
        Confidence.CERTAIN
        if head.data[:6] == b"ARROW1" or head.data[:4] == b"FEA1" or stream
        else Confidence.NO
    )


def read_feather(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read batch by batch, the file mapped into memory where it lies uncompressed on disk."""
    pa = _arrow("Arrow and Feather files")
    from pyarrow import feather, ipc

    with source.open() as stream:
        data = io.BytesIO(source.bytes()) if source.compressed else stream
        magic = source.head.data[:6]
        try:
            if magic[:4] == b"FEA1":
                batches: Any = feather.read_table(data).to_batches
            elif magic == b"ARROW1":
                file = ipc.open_file(data)
                count = file.num_record_batches
                batches = lambda: (file.get_batch(k) for k in range(count))  # noqa: E731
            else:
                tables = list(ipc.open_stream(data))
                batches = lambda: tables  # noqa: E731
            begin = next((batch for batch in batches() if batch.num_rows), None)
            if begin is None:
                raise source.corrupt(None, "the table has no rows", "one row per request", "")

            def frames(columns: list[str]) -> Iterator[pd.DataFrame]:
                return (_sound_frame_of(batch.select(columns)) for batch in batches())

            return _data_of(_sound_frame_of(begin.slice(0, _SAMPLE)), frames, source, options)
        except LatencyKitError:
            raise
        except (pa.ArrowException, OSError, UnicodeError) as error:
            raise _unreadable(source, "Arrow", error) from None


# ---------------------------------------------------------------- NumPy


def sniff_npy(head: Head) -> Confidence:
    """Tell the magic."""
    return Confidence.CERTAIN if head.data[:6] == b"\x93NUMPY" else Confidence.NO


def read_npy(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read an array: values, one column each, or records; pickles are never loaded."""
    if sniff_npy(source.head) is Confidence.NO:  # a zip file would be opened, and left open
        raise source.corrupt(
            None, "this is not an array of numbers", "an array saved by numpy.save", ""
        )
    try:
        if source.compressed and (rows := _first_rows(source.head.data)) is not None:
            # What they show to be unusable is refused before the rest is decompressed.
            plan_of(_sample_of(_columns(rows, source)), options, source)
        file: Any = io.BytesIO(source.bytes()) if source.compressed else source.file
        array = np.load(file, mmap_mode=None if source.compressed else "r", allow_pickle=False)
    except LatencyKitError:
        raise
    except _BROKEN as error:
        raise source.corrupt(
            None, f"this is not an array of numbers ({error})", "an array saved by numpy.save", ""
        ) from None
    columns = _columns(array, source)
    if not isinstance(array, np.memmap):
        return _of_arrays(columns, source, options)
    with source.open() as stream:
        return _of_arrays(
            {name: _OnDisk.of(column, array, stream) for name, column in columns.items()},
            source,
            options,
        )


def _first_rows(data: bytes) -> np.ndarray[Any, Any] | None:
    """The rows of an array that the head of its file has; None where they are not together."""
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        return None
    read = getattr(np.lib.format, f"read_array_header_{version[0]}_0")
    shape, transposed, dtype = read(stream)
    if dtype.hasobject or not dtype.itemsize or not shape or (transposed and len(shape) > 1):
        return None
    row = dtype.itemsize * math.prod(shape[1:])
    rows = min(shape[0], (len(data) - stream.tell()) // row) if row else 0
    return np.ndarray((rows, *shape[1:]), dtype, data, stream.tell()) if rows else None


class _OnDisk:
    """A column of a mapped array, whose rows are read when they are asked for.

    Only their offsets are taken from the map, which is not read: a file cut meanwhile would end the
    process (SIGBUS).
    """

    def __init__(self, column: np.ndarray[Any, Any], offset: int, stream: IO[bytes]) -> None:
        self._column, self._offset, self._stream = column, offset, stream

    @classmethod
    def of(
        cls, column: np.ndarray[Any, Any], mapped: np.memmap[Any, Any], stream: IO[bytes]
    ) -> Any:
        """Return the column so, or as it is where it had to be copied."""
        if not np.may_share_memory(column, mapped):
            return column
        return cls(column, mapped.offset + column.ctypes.data - mapped.ctypes.data, stream)

    def __len__(self) -> int:
        return self._column.size

    def __getitem__(self, rows: slice) -> np.ndarray[Any, Any]:
        begin, end, _ = rows.indices(len(self))
        (step,), dtype = self._column.strides, self._column.dtype
        values, most = np.empty(end - begin, dtype), max(1, _PIECE // step)
        for at in range(begin, end, most):
            number = min(most, end - at)
            self._stream.seek(self._offset + at * step)
            data = self._stream.read((number - 1) * step + dtype.itemsize)
            values[at - begin : at - begin + number] = np.ndarray(
                (number,), dtype, data, 0, (step,)
            )
        return values


def _columns(
    array: np.ndarray[Any, Any], source: Source, name: str = "1"
) -> dict[str, np.ndarray[Any, Any]]:
    if array.dtype.names:
        return {field: array[field].reshape(-1) for field in array.dtype.names}
    if array.ndim == 2 and array.shape[1] > 1:
        return {str(k + 1): array[:, k] for k in range(array.shape[1])}
    if array.ndim not in (1, 2):
        raise source.corrupt(
            None, f"the array has {array.ndim} dimensions", "one value or one row per request", ""
        )
    return {name: array.reshape(-1)}


def sniff_npz(head: Head) -> Confidence:
    """Tell a zip file whose first member is an array."""
    zipped = head.data[:4] == b"PK\x03\x04"
    return Confidence.CERTAIN if zipped and b".npy" in head.data[30:600] else Confidence.NO


def read_npz(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read named arrays of one length as columns."""
    try:
        with source.open() as stream:
            with zipfile.ZipFile(stream) as archive:
                size = sum(member.file_size for member in archive.infolist())
                if size > max(in_force().unpacked(source.size), 2 * source.size):
                    raise InputTooLargeError(
                        f"{source.shown}: {size:,} bytes unpacked; --limit whole=SIZE (lk.limits) "
                        "allows more"
                    )
            stream.seek(0)
            with np.load(stream, allow_pickle=False) as saved:
                arrays = {name: saved[name] for name in saved.files}
    except _BROKEN as error:
        raise source.corrupt(
            None, f"these are not arrays of numbers ({error})", "arrays saved by numpy.savez", ""
        ) from None
    flat = {
        name: array for name, array in arrays.items() if array.ndim == 1 and not array.dtype.names
    }
    if not flat and len(arrays) == 1:
        return _of_arrays(_columns(next(iter(arrays.values())), source), source, options)
    named = [part.column for part in latency_columns(flat)[0]]
    chosen = (
        options.column if options.column in flat else named[0] if named else next(iter(flat), None)
    )
    if chosen is None:
        raise source.corrupt(
            None,
            "it contains no array of one dimension",
            "numpy.savez(file, latency_ms=values)",
            "",
        )
    return _of_arrays(
        {name: array for name, array in flat.items() if array.size == flat[chosen].size},
        source,
        options,
    )


def _of_arrays(columns: Mapping[str, Any], source: Source, options: ReadOptions) -> dict[str, Data]:
    import pandas as pd

    size = len(next(iter(columns.values())))
    if not size:
        raise source.corrupt(None, "the array is empty", "one value per request", "")

    def frames(names: list[str]) -> Iterator[pd.DataFrame]:
        for at in range(0, size, _ROWS):
            yield pd.DataFrame({name: _native(columns[name][at : at + _ROWS]) for name in names})

    return _data_of(_sample_of(columns), frames, source, options)


def _sample_of(columns: Mapping[str, Any]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame({name: _native(column[:_SAMPLE]) for name, column in columns.items()})


def _native(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array in this machine's byte order; bytes as text."""
    if array.dtype.kind == "S":
        return np.char.decode(array, "utf-8", "replace")
    return np.asarray(array, array.dtype.newbyteorder("="))


FORMATS = (
    Format(
        name="parquet-samples",
        title="Parquet tables of requests",
        level="samples",
        suffixes=(".parquet",),
        sniff=sniff_parquet,
        read=read_parquet,
        example="python -c \"… df.to_parquet('calls.parquet')\"",
    ),
    Format(
        name="feather",
        title="Feather and Arrow tables of requests",
        level="samples",
        suffixes=(".feather", ".arrow", ".ipc"),
        sniff=sniff_feather,
        read=read_feather,
        example="python -c \"… df.to_feather('calls.feather')\"",
    ),
    Format(
        name="npy",
        title="NumPy arrays of latencies",
        level="samples",
        suffixes=(".npy",),
        sniff=sniff_npy,
        read=read_npy,
        example="python -c \"… np.save('latency.npy', latencies)\"   # writes latency.npy; "
        "numbers need --unit",
    ),
    Format(
        name="npz",
        title="NumPy archives of columns",
        level="samples",
        suffixes=(".npz",),
        sniff=sniff_npz,
        read=read_npz,
        example="python -c \"… np.savez('calls.npz', latency_ms=latencies, start_s=starts)\"   # "
        "writes calls.npz",
    ),
)
