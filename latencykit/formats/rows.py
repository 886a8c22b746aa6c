"""Big files of rows, a chunk at a time: delimited tables through pandas, whole lines for the rest."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from latencykit.errors import CorruptInputError, LimitError
from latencykit.units import printable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import pandas as pd

    from latencykit.formats.base import ReadOptions, Source

__all__ = ["Layout", "Locate", "line_chunks", "read_table", "refuse_rows", "row_texts", "table_chunks"]

Locate = Callable[["Sequence[int]"], "list[tuple[int | None, str]]"]
"""From numbers of rows to where they stand (a line, if there are lines) and what they say."""

_TOLD = 20
_ROWS = 500_000
_BYTES = 8 << 20
_LONGEST = 64 << 20
_LARGEST = 2.0**53


class _WholeLines(io.RawIOBase):
    """A byte stream that ends with its last line break; what follows it is kept apart as `tail`."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._held, self.tail = stream, b"", b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while True:
            if self._held and (end := self._held.rfind(b"\n") + 1):
                size = min(end, len(buffer))
                buffer[:size], self._held = self._held[:size], self._held[size:]
                return size
            more = self._stream.read(1 << 17)
            if not more:
                self.tail, self._held = self.tail or self._held, b""
                return 0
            self._held += more
            if len(self._held) > _LONGEST:
                raise LimitError(f"a line is longer than {_LONGEST >> 20} MiB; this is no table of rows")


@dataclass(frozen=True)
class Layout:
    """How a delimited table is laid out.

    Attributes
    ----------
    columns : tuple of str
        Names of all columns, in order.
    numbers : tuple of str
        Columns that are taken as numbers; a row where one of them is none is damaged.
    words : tuple of str
        Columns that are taken as text, as pandas categories.
    sep : str
        Separator of the fields; ``" "`` stands for any run of blanks.
    skip : int
        Lines before the first row, the header included.
    optional : tuple of str
        Number columns that may be empty (NaN).
    comment : str or None
        A character that begins lines to be passed over.
    ragged : bool
        Whether rows may have fewer fields than columns.
    na : tuple of str
        What stands for "no number" beside an empty field.
    only : mapping of str to collection of str
        Rows are kept where a column of words holds one of these; the others are checked and let go.
    largest : mapping of str to float
        Largest number that a column may hold, so that it fits in 63 bits as nanoseconds; 2**53 where none is named.
    decimal : str
        Decimal point.
    thousands : str or None
        What groups the digits of numbers.
    """

    columns: tuple[str, ...]
    numbers: tuple[str, ...]
    words: tuple[str, ...] = ()
    sep: str = ","
    skip: int = 0
    optional: tuple[str, ...] = ()
    comment: str | None = None
    ragged: bool = False
    na: tuple[str, ...] = ()
    only: Mapping[str, Collection[str]] = field(default_factory=dict)
    largest: Mapping[str, float] = field(default_factory=dict)
    decimal: str = "."
    thousands: str | None = None


def read_table(source: Source, options: ReadOptions, layout: Layout) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Read the wanted columns of a delimited file: numbers as int64 or float64, words as categories.

    Returns
    -------
    frame : DataFrame
    notes : tuple of str
        What was left out at the end of the file.

    Raises
    ------
    CorruptInputError
        At the first damaged row, unless ``options.lenient``.
    """
    import pandas as pd

    notes: list[str] = []
    frames = [_wanted(frame, layout) for frame in table_chunks(source, options, layout, notes)]
    if not frames:
        frames = [pd.DataFrame({name: [] for name in (*layout.numbers, *layout.words)})]
    return _joined(frames, layout), tuple(notes)


def table_chunks(source: Source, options: ReadOptions, layout: Layout, notes: list[str]) -> Iterator[pd.DataFrame]:
    """Yield the table of `read_table` a chunk at a time; the index numbers the rows.

    What was left out at the end of the file is appended to `notes`. A last row without a line break comes alone, with
    ``attrs["unended"]``: whether its text is cut can be told by the caller only.
    """
    done = 0
    with source.open() as raw:
        stream = _WholeLines(raw)
        for frame in _frames(io.BufferedReader(stream, 1 << 17), source, options, layout):
            done = int(frame.index[-1]) + 1 if len(frame) else done
            yield frame
    if stream.tail.strip(b"\0\r\n\t "):
        last = _tail_frame(stream.tail, layout)
        if last is None:
            notes.append("the last line is cut; it was left out")
        else:
            if len(layout.columns) == 1:
                notes.append("the last line does not end: if the file was cut, so was its number")
            last = last.set_axis(range(done, done + len(last)))
            last.attrs["unended"] = True
            yield last


def _joined(frames: list[pd.DataFrame], layout: Layout) -> pd.DataFrame:
    import pandas as pd

    frames = [frame for frame in frames if len(frame)] or frames[:1]
    if len(frames) == 1:
        return frames[0]
    for name in layout.words:
        kinds = pd.api.types.union_categoricals([frame[name] for frame in frames]).categories
        for frame in frames:
            frame[name] = frame[name].cat.set_categories(kinds)
    return pd.concat(frames, ignore_index=True)


def _reader(stream: Any, layout: Layout, lenient: bool) -> Any:
    import pandas as pd

    blanks = layout.sep == " "
    return pd.read_csv(
        stream,
        sep=r"\s+" if blanks else layout.sep,
        names=list(layout.columns),
        usecols=[*layout.numbers, *layout.words],
        dtype=dict.fromkeys(layout.words, str),  # "category" would take a chunk of numbers or booleans for such
        header=None,
        index_col=False,
        skiprows=layout.skip,
        comment=layout.comment,
        chunksize=_ROWS,
        keep_default_na=False,
        na_values={name: ["", *layout.na] for name in layout.numbers},
        skipinitialspace=not blanks,
        encoding_errors="surrogateescape",
        on_bad_lines="warn" if lenient else "error",
        low_memory=False,
        decimal=layout.decimal,
        thousands=layout.thousands,
    )


def _frames(stream: Any, source: Source, options: ReadOptions, layout: Layout) -> Iterator[pd.DataFrame]:
    """Chunks of good rows; damaged ones raise or are reported."""
    import pandas as pd

    done = 0
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", pd.errors.ParserWarning)
            for chunk in _reader(stream, layout, options.lenient):
                size = len(chunk)
                chunk = _with_kinds(chunk, layout)
                yield _good_rows(chunk, done, source, options, layout)
                done += size
        for line in (line for one in said for line in str(one.message).splitlines() if line.strip()):
            options.report(f"skipped: {source.shown}: {line.strip()}")
    except pd.errors.EmptyDataError:
        return
    except pd.errors.ParserError as error:
        raise _parser_error(source, str(error)) from None
    except UnicodeDecodeError:
        raise source.corrupt(1, "the text is no UTF-8", "UTF-8", "convert it with iconv") from None


def _with_kinds(chunk: pd.DataFrame, layout: Layout) -> pd.DataFrame:
    return chunk.astype(dict.fromkeys(layout.words, "category"))


def _wanted(chunk: pd.DataFrame, layout: Layout) -> pd.DataFrame:
    for name, kinds in layout.only.items():
        chunk = chunk[chunk[name].isin(kinds)].copy()
        chunk[name] = chunk[name].cat.remove_unused_categories()
    return chunk


def _parser_error(source: Source, text: str) -> CorruptInputError:
    found = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", text)
    if found:
        return source.corrupt(int(found[2]), f"a row of {found[3]} fields", f"{found[1]}", "--lenient skips the line")
    found = re.search(r"inside string starting at row (\d+)", text)
    line = int(found[1]) + 1 if found else None
    return source.corrupt(line, f"the table is damaged ({printable(text, 80)})", "", "")


def _good_rows(chunk: pd.DataFrame, done: int, source: Source, options: ReadOptions, layout: Layout) -> pd.DataFrame:
    """Drop (or refuse) rows whose numbers are none."""
    import pandas as pd

    bad = np.zeros(len(chunk), np.bool_)
    for name in layout.numbers:
        if chunk[name].dtype.kind not in "iuf":
            given = chunk[name]
            chunk[name] = pd.to_numeric(_plain(given, layout), errors="coerce")
            bad |= (chunk[name].isna() & given.notna()).to_numpy()
        if name not in layout.optional and chunk[name].dtype.kind == "f":
            bad |= ~np.isfinite(chunk[name].to_numpy())
        bad |= (chunk[name].abs() > layout.largest.get(name, _LARGEST)).to_numpy()
    if not bad.any():
        return chunk
    needed = [name for name in layout.numbers if name not in layout.optional] or list(layout.numbers)
    expected = f"numbers in {', '.join(needed)}"
    rows = [done + position for position in np.flatnonzero(bad).tolist()]
    refuse_rows(rows, partial(row_texts, source, layout), source, options, "this is no row of this table", expected)
    return chunk[~bad]


def refuse_rows(rows: Sequence[int], locate: Locate, source: Source, options: ReadOptions, seen: str, expected: str) -> None:
    """Raise for the first of damaged rows; under ``lenient`` report each, or their number where they are many."""
    told = rows[:_TOLD] if options.lenient else rows[:1]
    for line, text in locate(told):
        options.damaged(source.corrupt(line, f"{seen}: {printable(text)!r}", expected, "--lenient skips the line"))
    if len(rows) > len(told):
        options.report(f"skipped: {source.shown}: {len(rows) - len(told):,} more rows like these")


def _plain(cells: pd.Series[Any], layout: Layout) -> pd.Series[Any]:
    """Numbers that pandas left as text, because one cell of the column is none, as it would have read the others."""
    for sign, meant in ((layout.thousands, ""), (layout.decimal if layout.decimal != "." else None, ".")):
        if sign is not None:
            cells = cells.astype(str).str.replace(sign, meant, regex=False).where(cells.notna())
    return cells


def row_texts(source: Source, layout: Layout, rows: Sequence[int]) -> list[tuple[int | None, str]]:
    """Return physical line and text of rows, ascending: found by reading the file again, for messages only."""
    found: list[tuple[int | None, str]] = []
    wanted, row = iter(rows), -1
    next_row = next(wanted, None)
    with source.open() as raw:
        lines = io.TextIOWrapper(raw, "utf-8", "replace", newline="")
        for _ in range(layout.skip):
            next(lines, "")
        reader = csv.reader(lines, delimiter=layout.sep if layout.sep != " " else "\0")
        before = layout.skip
        for fields in reader:
            if next_row is None:
                break
            start, before = before + 1, layout.skip + reader.line_num
            if not any(fields) or (layout.comment and fields[0].startswith(layout.comment)):
                continue
            row += 1
            if row == next_row:
                found.append((start, layout.sep.join(fields)))
                next_row = next(wanted, None)
    return found + [(None, "")] * (len(rows) - len(found))


def _tail_frame(tail: bytes, layout: Layout) -> pd.DataFrame | None:
    """The last line, which has no line break, as a row; None where it is cut."""
    import pandas as pd

    text = tail.decode("utf-8", "replace")
    fields = text.split() if layout.sep == " " else next(csv.reader([text], delimiter=layout.sep), [])
    if layout.comment and text.startswith(layout.comment):
        return None
    if len(fields) < len(layout.columns) and not layout.ragged:
        return None
    try:
        chunk: pd.DataFrame = _with_kinds(next(iter(_reader(io.BytesIO(tail), replace(layout, skip=0), False))), layout)
    except (StopIteration, pd.errors.ParserError, pd.errors.EmptyDataError):
        return None
    for name in layout.numbers:
        values = pd.to_numeric(chunk[name], errors="coerce")
        if (values.isna().any() and name not in layout.optional) or (values.abs() > layout.largest.get(name, _LARGEST)).any():
            return None
        chunk[name] = values
    return chunk


def line_chunks(source: Source, size: int = _BYTES) -> Iterator[tuple[int, bytes]]:
    """Yield (number of the first line, bytes) in chunks that end with a line break; the last one may not."""
    with source.open() as stream:
        held, line = b"", 1
        while more := stream.read(size):
            held += more
            if len(held) > _LONGEST + size:
                raise LimitError(f"{source.shown}: a line is longer than {_LONGEST >> 20} MiB")
            end = held.rfind(b"\n") + 1
            if end:
                yield line, held[:end]
                line, held = line + held.count(b"\n", 0, end), held[end:]
        if held:
            yield line, held
