"""Files of rows in pieces: small ones by numpy, plain ones by pyarrow, others by pandas; lines."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from latencykit._arrays import as_positions
from latencykit._limits import current_limits
from latencykit._records import record
from latencykit._text import format_items, printable
from latencykit._threads import in_order, jobs
from latencykit._typing import AnyArray, AnySeries, Ints
from latencykit.core.columns import Cells, Words, encoded, joined, matching, select
from latencykit.core.run import Note
from latencykit.core.samples import as_nanoseconds
from latencykit.errors import (
    CorruptInputError,
    InputTooLargeError,
    LatencyKitError,
    MissingPackageError,
)
from latencykit.io.source import ReadOptions, Source, refuse_rows

if TYPE_CHECKING:
    import pandas as pd

CUT_LINE = Note("the last line is truncated; it was left out")
"""The note of a reader that left the end of a file out."""

_BYTES = 4 << 20
_LARGEST = 2.0**53
_BREAK = ord("\n")
_ORDINARY = 8  # times the mean that the longest line of a table may have before fields are counted
_CELLS = 4 << 20  # that the rows of a piece may take, each as wide as the widest
_SHOWN = 1000  # bytes of a row in a message
_SMALL = 1 << 20  # bytes that numpy reads before pandas, which is faster, would be imported
_FEW = 1 << 17  # rows, each of which takes some objects
_ODD = re.compile(rb"\0|^[ \t]+\r?$", re.MULTILINE)
_WIDEST = 1 << 24  # characters of a piece's cells, each as wide as the widest
_DIGITS = b"+-.0123456789Ee \0"
_WORKERS = 4
_MOST_TOTALS = 12  # rows at the end


@record()
class RowLayout:
    """How a delimited table is laid out."""

    columns: tuple[str, ...]  # names of all columns, in order
    # columns that are taken as numbers; a row where one of them is none is corrupt
    numbers: tuple[str, ...]
    words: tuple[str, ...] = ()  # columns that are taken as text, as pandas categories
    sep: str = ","  # separator of the fields; ``" "`` stands for any run of blanks
    skip: int = 0  # lines before the first row, the header included
    optional: tuple[str, ...] = ()  # number columns that may be empty (NaN)
    comment: str | None = None  # a character that begins lines to be passed over
    na: tuple[str, ...] = ()  # what stands for "no number" beside an empty field
    # rows are kept where a column of words holds one of these; the others are checked and let
    # go
    only: Mapping[str, Collection[str]] = field(default_factory=dict)
    # largest number that a column may hold, so that it fits in 63 bits as nanoseconds; 2**53
    # where none is named
    largest: Mapping[str, float] = field(default_factory=dict)
    # whether blanks may follow separators: looked up in the head, for it takes pandas half as
    # long again
    padded: bool = True
    # whether rows of more fields than columns are corrupt; pandas would cut them
    exact: bool = False
    # whether rows are requests: last ones that begin with Total, Mean or the like are none
    totalled: bool = False
    # number columns whose cells may say that a request failed, and what recognises these: a
    # piece with such cells has them as text
    failures: Mapping[str, Callable[[str], int]] = field(default_factory=dict)


@record(eq=False)
class Table:
    """Rows of a table."""

    columns: Mapping[str, Cells]  # numbers as int64 or float64, words as codes
    first: int = 0  # number of the first row in the file
    # whether this is a last row without a line break: only the caller knows if its text is
    # truncated
    unended: bool = False
    rows: Ints | None = None  # numbers of the rows from `first` on, where some were left out

    @classmethod
    def of(cls, frame: pd.DataFrame, first: int = 0) -> Table:
        """Return the rows of a DataFrame, whose index numbers them."""
        columns = {str(name): cells_of(frame[name]) for name in frame.columns}
        return cls(columns, first, rows=np.asarray(frame.index, np.int64))

    @classmethod
    def of_arrow(cls, batch: Any, *, decoded: bool = False) -> Table:
        """Return the rows of a batch or table; `decoded`: as if no column had a dictionary."""
        columns: dict[str, Cells] = {}
        for name, parts in zip(batch.schema.names, batch.columns, strict=True):
            column = parts.combine_chunks() if hasattr(parts, "chunks") else parts
            coded = decoded and hasattr(column, "dictionary")
            columns[name] = _arrow_cells(column.dictionary_decode() if coded else column)
        return cls(columns)

    def __len__(self) -> int:
        return next((cells.shape[0] for cells in self.columns.values()), 0)

    def __getitem__(self, name: str) -> Cells:
        return self.columns[name]


@record()
class _Piece:
    """Complete lines of a file: number of the first, and of the lines before the first row."""

    first: int
    data: bytes
    skip: int


def read_table(
    source: Source, options: ReadOptions, layout: RowLayout
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Read columns of a delimited file: numbers as int64 or float64, others as sorted `Words`."""
    notes: list[str] = []
    names = (*layout.numbers, *layout.words)
    parts: dict[str, list[Cells]] = {name: [] for name in names}
    for table in table_chunks(source, options, layout, notes):
        kept: Any = slice(None)
        for name, kinds in layout.only.items():
            kept = matching(table[name], kinds.__contains__)
        for name in names:
            parts[name].append(select(table[name], kept))
    columns: dict[str, Any] = {name: joined(parts[name]) for name in layout.numbers}
    for name in layout.words:
        words: Any = joined([*parts[name], Words.of([])])
        columns[name] = words.sorted()
    return columns, tuple(notes)


def refuse_twice(columns: Iterable[str], source: Source) -> None:
    """Refuse two columns of one name, of which neither can be chosen."""
    places: dict[str, int] = {}
    for k, name in enumerate(columns, 1):
        if name in places:
            seen = f"columns {places[name]} and {k} are both named {printable(name, 40)!r}"
            raise source.corrupt(1, seen, "one name for each", "rename one of them")
        places[name] = k


def table_chunks(
    source: Source, options: ReadOptions, layout: RowLayout, notes: list[str]
) -> Iterator[Table]:
    """Yield the table of `read_table` a piece at a time."""
    # What was left out at the end of the file is appended to `notes`. A last row without a line
    # break comes alone.
    refuse_twice(layout.columns, source)
    done, tail = 0, bytearray()
    layout = replace(layout, padded=layout.sep != " " and f"{layout.sep} " in source.head.text)
    parse = partial(_parsed, source=source, options=options, layout=layout)
    pieces = _pieces(source, layout, tail)
    pieces = _without_totals(pieces, layout, tail, notes) if layout.totalled else pieces
    # what is skipped is reported in order
    alone = options.lenient or source.head.whole
    threads = 1 if alone else min(_WORKERS, jobs(options.jobs))
    for table, size in in_order(pieces, parse, threads):
        if len(table):
            yield replace(table, first=done)
        done += size
    if tail.strip(b"\0\r\n\t "):  # the last line, which has no line break
        text, last = tail.decode("utf-8", "replace"), Table({})
        blanks, sep = layout.sep == " ", layout.sep
        fields = text.split() if blanks else next(csv.reader([text], delimiter=sep), [])
        commented = layout.comment and text.startswith(layout.comment)
        if len(fields) >= len(layout.columns) and not commented:
            with contextlib.suppress(CorruptInputError):
                last, _ = _parsed(_Piece(1, bytes(tail), 0), source, ReadOptions(), layout)
        if not len(last):
            notes.append(CUT_LINE)
            return
        if len(layout.columns) == 1:
            notes.append(Note("the last line has no newline; its number may be incomplete"))
        yield replace(last, first=done, unended=True)


def _pieces(source: Source, layout: RowLayout, tail: bytearray) -> Iterator[_Piece]:
    """Pieces that cut neither lines nor quoted fields; the rest after the last goes to `tail`."""
    pending, at, skip, longest = b"", 1, layout.skip, current_limits().line
    for first, chunk in line_chunks(source):
        pending, at = (pending + chunk, at) if pending else (chunk, first)
        if len(pending) < longest and (_count(pending, b'"') % 2 or not pending.endswith(b"\n")):
            continue
        yield _Piece(at, pending, skip)
        pending, skip = b"", 0
    end = pending.rfind(b"\n") + 1
    if end:
        yield _Piece(at, pending[:end], skip)
    tail += pending[end:]


_TOTAL = re.compile(
    rb"\W*+(?:(?:grand )?totals?|sum|average|avg|mean|median|min|max|count|std|\d[\d.]*+%)\W*+",
    re.IGNORECASE,
)


def _without_totals(
    pieces: Iterator[_Piece], layout: RowLayout, tail: bytearray, notes: list[str]
) -> Iterator[_Piece]:
    """Pieces without the rows of a spreadsheet's sums and means at the end of the last one."""
    sep = None if layout.sep == " " else layout.sep.encode()

    def label(row: bytes) -> bytes:
        return next(filter(bytes.strip, row.split(sep, _MOST_TOTALS)), b"")

    held = next(pieces, None)
    while held is not None:
        following = next(pieces, None)
        rows = [] if following else (held.data + tail).rstrip().rsplit(b"\n", _MOST_TOTALS)
        end = len(rows)
        while end > held.skip + 1 and _TOTAL.fullmatch(label(rows[end - 1])):
            end -= 1
        if left := rows[end:]:
            kept = b"\n".join(rows[:end]) + b"\n"
            if not any(label(row) + (sep or b" ") in kept for row in left):
                tail.clear()
                held = replace(held, data=kept)
                seen = printable(left[0].decode("utf-8", "replace"), 40)
                notes.append(f"{format_items(len(left), 'row')} of totals left out: {seen!r}")
        yield held
        held = following


def _count(data: bytes, character: bytes) -> int:
    """How often a character occurs; `bytes.count` takes ten times as long where that is often."""
    if character not in data:
        return 0
    return int(np.count_nonzero(np.frombuffer(data, np.uint8) == character[0]))


def _by_numpy(data: bytes, skip: int, layout: RowLayout) -> Table | None:
    """The table as numpy reads it; None where not all of it is as expected, or it is large."""
    if len(data) > _SMALL or data.count(b"\n") > _FEW or _ODD.search(data):
        return None
    quotes = data.count(b'"')
    if quotes and (layout.padded or quotes % 2):
        return None
    text = io.StringIO(data.decode("utf-8", "backslashreplace"), newline="")
    lines = list(itertools.islice(text, skip, None))
    begun = (line.strip()[:1] not in ("", layout.comment) for line in lines)
    if not any(begun) or len(lines) * max(map(len, lines)) > _WIDEST:
        return None
    try:
        rows = np.loadtxt(
            lines, object, comments=layout.comment, ndmin=2, quotechar='"',
            delimiter=None if layout.sep == " " else layout.sep,
        )  # fmt: skip
    except ValueError:
        return None
    if rows.shape[1] != len(layout.columns):
        return None
    columns: dict[str, Cells] = {}

    def cells(name: str) -> list[str]:
        texts: list[str] = rows[:, layout.columns.index(name)].tolist()
        return [*map(str.lstrip, texts)] if layout.padded else texts

    for name in layout.numbers:
        values = _plain_numbers(np.array(cells(name), str), ("", *layout.na))
        if values is None:
            return None
        if np.any(_unfit(values, name, layout)):
            return None
        columns[name] = values
    for name in layout.words:
        columns[name] = Words.of(cells(name)).sorted()
    return Table(columns)


def _by_arrow(data: bytes, skip: int, layout: RowLayout) -> Table | None:
    """The table as pyarrow reads it; None without it, or where not all of it is as expected."""
    blank_is_word = len(layout.columns) == 1 and layout.words
    if layout.comment or layout.padded or layout.sep == " " or b"\0" in data or blank_is_word:
        return None
    try:
        import pyarrow as pa
        from pyarrow import csv as arrow
    except ImportError:
        return None
    try:
        table = arrow.read_csv(
            pa.BufferReader(data),
            arrow.ReadOptions(
                use_threads=False, block_size=2 * _BYTES, skip_rows=skip,
                column_names=list(layout.columns),
            ),
            arrow.ParseOptions(delimiter=layout.sep, newlines_in_values=True),
            arrow.ConvertOptions(
                include_columns=[*layout.numbers, *layout.words], null_values=["", *layout.na],
                column_types=dict.fromkeys(layout.words, pa.dictionary(pa.int32(), pa.binary())),
            ),
        )  # fmt: skip
        last_line = data[data.rfind(b"\n", 0, -1) + 1 :].decode("utf-8", "replace")
        last_row = next(csv.reader([last_line], delimiter=layout.sep), [])
    except (pa.ArrowException, csv.Error):
        return None
    if len(table) != _count(data, b"\n") - skip or "\n" in "".join(last_row):
        return None  # an open quote takes the rest for text
    columns: dict[str, Any] = {**Table.of_arrow(table).columns}
    for name in layout.numbers:
        empty = table[name].null_count
        values = np.full(empty, np.nan) if empty == len(table) else columns[name]
        if isinstance(values, Words) or values.dtype.kind not in "if":
            return None
        hexadecimal = pa.types.is_integer(table[name].type) and b"0x" in data.lower()
        if hexadecimal or np.count_nonzero(values != values) > empty:  # NaN as text
            return None
        if np.any(_unfit(values, name, layout)):
            return None
        columns[name] = values
    return Table(columns | {name: columns[name].sorted() for name in layout.words})


def _plain_numbers(cells: NDArray[np.str_], none: Sequence[str]) -> AnyArray | None:
    """Int64 where all are whole, else float64; None where one is spelled in another way."""
    missing = np.isin(cells, none)
    if len(cells) and missing.all():
        return np.full(cells.size, np.nan)
    cells = np.where(missing, "0", cells)
    used = np.unique(cells.view(np.uint32))
    if not np.isin(used, np.frombuffer(_DIGITS, np.uint8)).all():
        return None
    try:
        if not missing.any() and not np.isin(used, np.frombuffer(b".Ee", np.uint8)).any():
            return cells.astype(np.int64)
        return np.where(missing, np.nan, cells.astype(np.float64))
    except (ValueError, OverflowError):
        return None


def cells_of(column: AnySeries | AnyArray | list[Any]) -> Cells:
    """Return a column of pandas, numpy or JSON as it is read from files, times as UTC."""
    if isinstance(column, list):
        kinds = {*map(type, column)}
        if kinds == {str} and "" not in column:
            return Words.of(column)
        if kinds and kinds <= {int, float} and max(map(abs, column)) < 1 << 63:
            column = np.array(column)
    if isinstance(column, np.ndarray) and column.dtype.kind in "iuf":
        return column
    import pandas as pd

    column = pd.Series(column)
    if column.dtype.kind in "mM" or isinstance(column.dtype, pd.DatetimeTZDtype):
        instants = as_nanoseconds(column)
        if not (np.isnat(instants) & column.notna().to_numpy()).any():
            coarse = instants.astype(f"{instants.dtype.kind}8[us]")  # which Python has, too
            return coarse if np.array_equal(coarse, instants, equal_nan=True) else instants
        column = column.astype(object)  # beyond 64 bits of nanoseconds
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iuf":
        return column.to_numpy()
    if isinstance(column.dtype, pd.CategoricalDtype):
        names = column.cat.categories
        if names.dtype.kind not in "iuf" or 2 * len(names) < len(column):
            codes = column.cat.codes.to_numpy().astype(np.int32)
            return Words.named(codes, list(map(str, names)))
    mixed = ("boolean", "mixed", "mixed-integer")
    if column.dtype == object and pd.api.types.infer_dtype(column) in mixed:  # true is not 1
        column = column.map(lambda cell: str(cell).lower() if isinstance(cell, bool) else cell)
    return encoded(column)


def bytes_type(kind: Any) -> Any:
    """Return Arrow's type of the bytes of a text, which they may be themselves; None for others."""
    import pyarrow as pa

    kind = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary()}.get(kind, kind)
    raw = kind in (pa.binary(), pa.large_binary()) or pa.types.is_fixed_size_binary(kind)
    return kind if raw else None


@contextlib.contextmanager
def opened_for_arrow(source: Source, what: str, *further: type[Exception]) -> Iterator[IO[bytes]]:
    """Open a file for Arrow; its errors, and `further` ones, mean that the file is corrupt."""
    try:
        import pyarrow as pa
    except ImportError as missing:
        raise MissingPackageError("pyarrow", what, "arrow") from missing
    with source.open() as stream:
        try:
            yield io.BytesIO(source.bytes()) if source.compressed else stream
        except LatencyKitError:
            raise
        except (pa.ArrowException, OSError, UnicodeError, *further) as error:
            seen = f"the {what.split()[0]} file is corrupt ({type(error).__name__})"
            raise source.corrupt(None, seen, "", "write it anew") from None


def _arrow_cells(column: Any) -> Cells:
    """Numbers where they lie, words by their dictionary; pandas, slow to import, has the rest."""
    import pyarrow as pa

    kind, coded = column.type, hasattr(column, "dictionary")
    if (pa.types.is_integer(kind) or pa.types.is_floating(kind)) and not column.null_count:
        return np.from_dlpack(column)
    if raw := bytes_type(kind.value_type if coded else kind):
        words = column if coded else column.dictionary_encode()
        texts = words.dictionary.view(raw).to_pylist()
        names = [t.decode("utf-8", "backslashreplace") if t else None for t in texts]
        index: Any = _arrow_cells(words.indices)
        return Words.named(np.nan_to_num(index, nan=-1).astype(np.int32, copy=False), names)
    if pa.types.is_timestamp(kind):  # pandas may not know its zone
        column = column.cast(pa.timestamp(kind.unit))
    return cells_of(column.to_pandas())


def _parsed(
    piece: _Piece, source: Source, options: ReadOptions, layout: RowLayout
) -> tuple[Table, int]:
    """Good rows of a piece, and how many it has; corrupt ones raise or are reported."""
    header = "".join(source.head.lines[layout.skip - 1 : layout.skip]).encode()
    begins = not piece.skip and piece.data.startswith(header)
    if header and (begins or b"\n" + header in piece.data):  # of tables that were put together
        again = rb"^" + re.escape(header) + rb"\r?$"
        piece = replace(piece, data=re.sub(again, b"", piece.data, flags=re.MULTILINE))
    for read in (_by_numpy, _by_arrow):
        table = read(piece.data, piece.skip, layout)
        if table is not None:
            return table, len(table)
    # pandas reports what is wrong, and knows more spellings of numbers
    import pandas as pd

    data = _without_wide_rows(piece, source, options, layout)
    blanks = layout.sep == " "
    try:
        frame = pd.read_csv(
            io.BytesIO(data),
            sep=r"\s+" if blanks else layout.sep,
            names=list(layout.columns),
            usecols=[*layout.numbers, *layout.words],
            # "category" would take a piece of numbers for such, and lose their spelling
            dtype=dict.fromkeys(layout.words, str),
            header=None,
            index_col=False,
            skiprows=piece.skip,
            comment=layout.comment,
            keep_default_na=False,
            na_values={name: ["", *layout.na] for name in layout.numbers},
            skipinitialspace=layout.padded and not blanks,
            encoding_errors="backslashreplace",
            low_memory=False,
        )
    except pd.errors.EmptyDataError:
        return Table({}), 0
    except (pd.errors.ParserError, IndexError) as error:
        quote = re.search(r"inside string starting at row (\d+)", str(error))
        seen = "a quote is opened and not closed"
        seen = seen if quote else f"the table is corrupt ({printable(str(error), 80)})"
        line = int(quote[1]) + piece.first if quote else None
        raise source.corrupt(line, seen, "", "") from None
    frame = frame.astype(dict.fromkeys(layout.words, "category"))
    return Table.of(_good_rows(frame, piece, source, options, layout)), len(frame)


def _without_wide_rows(
    piece: _Piece, source: Source, options: ReadOptions, layout: RowLayout
) -> bytes:
    """The piece with rows of too many fields emptied; one separator at the end is ignored."""
    # Where a layout is not exact, only rows too wide to be afforded are: the parser gives all that
    # follow a row as many cells as it has.
    characters = np.frombuffer(piece.data, np.uint8)
    ends = np.flatnonzero(characters == _BREAK)
    if not ends.size:
        return piece.data
    blanks, sep = layout.sep == " ", layout.sep.encode()
    most = len(layout.columns) - 1
    exact = layout.exact and not blanks and b'"' not in piece.data
    if not (exact and np.count_nonzero(characters == sep[0]) > most * ends.size):
        if int(np.diff(ends, prepend=-1).max()) * ends.size <= _ORDINARY * len(piece.data):
            return piece.data
        most = most if exact else max(most + 1, _CELLS // ends.size)
    between = (characters == sep[0]) | (characters == ord("\t") if blanks else False)
    counts = np.add.reduceat(between, as_positions(np.append(0, ends[:-1] + 1)), dtype=np.int64)
    lines, comment = piece.data.split(b"\n"), (layout.comment or "\n").encode()

    def is_wide(line: bytes) -> bool:
        bare = re.sub(rb'"[^"]*"', b"", line).rstrip(b"\r")
        separators = len(bare.split()) - 1 if blanks else bare.removesuffix(sep).count(sep)
        return separators > most and not line.startswith(comment)

    suspects = np.flatnonzero(counts > most).tolist()
    wide = [k for k in suspects if k >= piece.skip and is_wide(lines[k])]
    if wide:
        texts = [(piece.first + k, lines[k][:_SHOWN].decode("utf-8", "replace")) for k in wide]
        seen = "a row of more fields than there are columns"
        refuse_rows(
            range(len(wide)), lambda rows: [texts[k] for k in rows], source, options, seen,
            f"{len(layout.columns)} fields",
        )  # fmt: skip
    for k in wide:
        lines[k] = b""
    return b"\n".join(lines)


def _good_rows(
    frame: pd.DataFrame, piece: _Piece, source: Source, options: ReadOptions, layout: RowLayout
) -> pd.DataFrame:
    """Drop (or refuse) rows with text in place of numbers."""
    import pandas as pd

    bad = np.zeros(len(frame), np.bool_)
    for name in layout.numbers:
        if frame[name].dtype.kind not in "iuf":
            text = frame[name]
            numbers = pd.to_numeric(text, errors="coerce")
            words = text[numbers.isna() & text.notna()]
            failed = text.isin([*filter(layout.failures.get(name, lambda _: 0), words.unique())])
            bad |= (numbers.isna() & text.notna() & ~failed).to_numpy()
            frame[name] = text.astype("category") if failed.any() else numbers
        if frame[name].dtype.kind in "iuf":
            bad |= _unfit(frame[name].to_numpy(), name, layout)
    if not bad.any():
        return frame
    needed = [name for name in layout.numbers if name not in layout.optional] or list(
        layout.numbers
    )

    def locate(rows: Sequence[int]) -> list[tuple[int | None, str]]:
        lines = io.StringIO(piece.data.decode("utf-8", "replace"), newline="")
        return _rows_in(lines, piece.first, piece.skip, layout.sep, layout.comment, rows)

    rows = np.flatnonzero(bad).tolist()
    seen, expected = "this is not a row of this table", f"numbers in {', '.join(needed)}"
    refuse_rows(rows, locate, source, options, seen, expected)
    return frame[~bad]


def _unfit(values: Any, name: str, layout: RowLayout) -> Any:
    """Mask of numbers of a column that are too large or missing; False if there are none."""
    largest = layout.largest.get(name, _LARGEST)
    if not values.size or (values.max() <= largest and values.min() >= -largest):
        return False
    unfit = np.abs(values.astype(np.float64)) > largest
    needed = values.dtype.kind == "f" and name not in layout.optional
    return unfit | ~np.isfinite(values) if needed else unfit


def _rows_in(
    lines: Iterator[str], first: int, skip: int, sep: str, comment: str | None, rows: Sequence[int]
) -> list[tuple[int | None, str]]:
    """Line and text of some rows, ascending; the first line has the number `first`."""
    found: list[tuple[int | None, str]] = []
    wanted, row = iter(rows), -1
    next_row = next(wanted, None)
    header = ""
    for _ in range(skip):
        header = next(lines, "")
    names = next(csv.reader([header], delimiter=sep if sep != " " else "\0"), [])
    reader = csv.reader(lines, delimiter=sep if sep != " " else "\0")
    before = first - 1 + skip
    # Python's parser refuses some rows, such as one with a field of a megabyte.
    with contextlib.suppress(csv.Error):
        for fields in reader:
            if next_row is None:
                break
            start, before = before + 1, first - 1 + skip + reader.line_num
            if not "".join(fields).strip() and len(fields) < 2:  # as pandas has it
                continue
            if (comment and fields[0].startswith(comment)) or fields == names:
                continue
            row += 1
            if row == next_row:
                found.append((start, sep.join(fields)))
                next_row = next(wanted, None)
    return found + [(None, "")] * (len(rows) - len(found))


def row_texts(
    source: Source, layout: RowLayout, rows: Sequence[int]
) -> list[tuple[int | None, str]]:
    """Return physical line and text of rows, ascending, by reading the file again."""
    with source.open() as raw:
        lines = io.TextIOWrapper(raw, "utf-8", "replace", newline="")
        return _rows_in(lines, 1, layout.skip, layout.sep, layout.comment, rows)


def line_chunks(source: Source, size: int = _BYTES) -> Iterator[tuple[int, bytes]]:
    """Yield (number of the first line, bytes) in chunks of complete lines, except the last."""
    longest, begin = current_limits().line, source.head.data
    lone = b"\r" in begin and b"\n" not in begin  # carriage returns end the lines
    with source.open() as stream:
        pending, line = b"", 1
        while more := stream.read(size):
            more = more.replace(b"\r", b"\n") if lone else more
            more = more if pending or line > 1 else more.removeprefix(b"\xef\xbb\xbf")
            if len(pending) + len(more) > longest + size:
                raise InputTooLargeError(
                    f"{source.shown}:{line}: a line of more than {longest:,} bytes; --limit "
                    "line=SIZE (lk.limits) allows more"
                )
            end = more.rfind(b"\n") + 1
            whole = b"".join((pending, memoryview(more)[:end])) if end else b""
            pending = more[end:] if end else pending + more
            # a parser takes long over megabytes of blank lines
            if end and not whole.isspace():
                yield line, whole
            line += _count(whole, b"\n")
        if pending:
            yield line, pending


def line_refuser(
    source: Source, options: ReadOptions, text: str, notes: list[str]
) -> Callable[[int, str, str], None]:
    """Return what refuses a line of a text by its number: what was seen, what was expected."""
    # If it is the last one and has no line break, `notes` get that it is cut instead.
    last = 0 if text.endswith("\n") else text.count("\n") + 1

    def refuse(number: int, seen: str, expected: str) -> None:
        if number == last:
            notes.append(CUT_LINE)
        else:
            options.refuse(source, number, seen, expected)

    return refuse


def records(
    source: Source,
    options: ReadOptions,
    pattern: re.Pattern[bytes],
    entry: re.Pattern[bytes],
    expected: str,
    notes: list[str],
) -> Iterator[tuple[bytes, ...]]:
    """Yield the groups of each line that matches a pattern; another `entry` is corrupt."""
    # One at the end of the file without a line break is cut: `notes` get that instead.
    for first, chunk in line_chunks(source):
        rows = pattern.findall(chunk)
        yield from rows
        lines = chunk.split(b"\n") if len(entry.findall(chunk)) > len(rows) else []
        for number, line in enumerate(lines, first):
            if not entry.match(line) or pattern.match(line):
                continue
            if number == first + len(lines) - 1:
                notes.append(CUT_LINE)
            else:
                seen = printable(line.decode("utf-8", "replace").strip())
                options.refuse(source, number, f"not a valid record: {seen!r}", expected)
