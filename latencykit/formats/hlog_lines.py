"""The lines of an HdrHistogram interval log: which are intervals, when they were, and where their payloads lie.

The grammar, and what StartTime and BaseTime mean (``HistogramLogReader.java``):

* A line ``#[StartTime: 1441812279.474 (seconds since epoch), …]`` says when the log began; without one it began with
  its first interval.
* A time stamp is absolute if ``#[BaseTime: …]`` says 0 or nothing and it lies within a year of StartTime; otherwise it
  counts from BaseTime, or from StartTime. The decision is made once, at the first interval after such a header, so
  that two logs laid end to end both keep their times.
* A log with BaseTime alone begins at BaseTime plus its first stamp (the reference forgets the base there).
* The second column is the interval's length. HdrHistogram_c writes its end there; `end_column` finds that out.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from latencykit.stats.quantiles import median
from latencykit.units import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

__all__ = ["Columns", "Intervals", "LineError", "TagTable", "Times", "columns_of", "end_column", "split_line"]

YEAR = 365 * 24 * 3600.0
EPOCH_FROM = 1e8  # a "seconds since epoch" below this is some other clock
MAX_TAG = 256
_NEWLINE, _COMMA, _POINT, _ZERO = b"\n,.0"
_EXACT_DIGITS = 15  # a whole number of so many is exact in binary

_HEADER = re.compile(rb"#\s*\[\s*(StartTime|BaseTime)\s*:\s*([^\s\]]+)", re.IGNORECASE)


class LineError(ValueError):
    """Why a line is no interval: what was seen, and what was expected."""

    def __init__(self, seen: str, expected: str = "") -> None:
        super().__init__(seen)
        self.seen, self.expected = seen, expected


@dataclass
class Times:
    """Turns time stamps into seconds from the log's start, as headers come and go."""

    first_start: float | None = None
    start: float | None = None
    base: float | None = None
    explicit_base: bool = False
    decided: bool = False
    restarts: int = 0
    notes: list[str] = field(default_factory=list)

    def header(self, line: bytes) -> None:
        """Take a ``#[StartTime: …]`` or ``#[BaseTime: …]`` line in."""
        found = _HEADER.match(line)
        if found is None:
            return
        try:
            seconds = float(found[2])
        except ValueError:
            raise LineError(
                f"{found[1].decode()} is {printable(found[2].decode('latin-1'))!r}", "seconds since the epoch"
            ) from None
        if not np.isfinite(seconds):
            raise LineError(f"{found[1].decode()} is {seconds}", "seconds since the epoch")
        if found[1].lower() == b"basetime":
            self.base, self.explicit_base = seconds, True
            return
        if self.decided:
            self.restarts += 1
        self.start, self.decided = seconds, False

    def absolute(self, stamp: float) -> float:
        """Return the stamp on the clock of StartTime."""
        if not self.decided:
            self._decide(stamp)
        assert self.base is not None
        return stamp + self.base

    def _decide(self, stamp: float) -> None:
        if not self.explicit_base:
            start = stamp if self.start is None else self.start
            self.base = start if stamp < start - YEAR else 0.0
        assert self.base is not None
        if self.start is None:
            self.start = stamp + self.base
        elif self.explicit_base and self.base and stamp > EPOCH_FROM and stamp + self.base - self.start > YEAR:
            self.base = 0.0  # BaseTime beside absolute stamps: the reference would add the base twice
            self.notes.append("BaseTime stands beside absolute time stamps; it was not added again")
        if self.first_start is None:
            self.first_start = self.start
        self.decided = True


@dataclass
class TagTable:
    """Tags in order of appearance; code 0 is "no tag"."""

    codes: dict[bytes, int] = field(default_factory=lambda: {b"": 0})

    def code(self, tag: bytes) -> int:
        """Return the tag's number, a new one for a new tag."""
        if tag not in self.codes:
            if len(tag) > MAX_TAG:
                raise LineError(f"a tag of {len(tag)} characters", f"at most {MAX_TAG}")
            self.codes[tag] = len(self.codes)
        return self.codes[tag]

    @property
    def names(self) -> tuple[str, ...]:
        """The tags as text; foreign bytes survive as escapes."""
        return tuple(tag.decode("utf-8", "surrogateescape") for tag in self.codes)


@dataclass
class Intervals:
    """What is known of each interval without decoding it: 36 bytes a line."""

    start: array[float] = field(default_factory=lambda: array("d"))
    length: array[float] = field(default_factory=lambda: array("d"))
    offset: array[int] = field(default_factory=lambda: array("q"))
    size: array[int] = field(default_factory=lambda: array("i"))
    line: array[int] = field(default_factory=lambda: array("i"))
    tag: array[int] = field(default_factory=lambda: array("i"))

    def extend(self, columns: Columns, base: float, offset: int, line: int) -> None:
        """Take neighbours in: `base` is added to their stamps, `offset` and `line` are those of the first."""
        self.start.frombytes((columns.stamp + base).tobytes())
        self.length.frombytes(columns.second.tobytes())
        self.offset.frombytes((columns.offset + offset).tobytes())
        self.size.frombytes(columns.size.astype(np.int32).tobytes())
        self.line.frombytes(np.arange(line, line + columns.size.size, dtype=np.int32).tobytes())
        self.tag.frombytes(columns.tag.tobytes())

    def add(self, start: float, length: float, offset: int, size: int, line: int, tag: int) -> None:
        """Take an interval in."""
        self.start.append(start)
        self.length.append(length)
        self.offset.append(offset)
        self.size.append(size)
        self.line.append(line)
        self.tag.append(tag)

    def __len__(self) -> int:
        return len(self.start)


class Columns(NamedTuple):
    """Interval lines that lie one after the other, column by column; offsets count from the first of them."""

    stamp: NDArray[np.float64]
    second: NDArray[np.float64]
    tag: NDArray[np.int32]
    offset: NDArray[np.int64]
    size: NDArray[np.int64]

    def texts(self, chunk: bytes) -> list[bytes]:
        """The payloads of the chunk that these are the columns of."""
        return _between(chunk, self.offset, self.offset + self.size)


def columns_of(chunk: bytes, codes: Mapping[bytes, int]) -> Columns | None:
    """Return the columns of whole lines, tagged or not; None if one of them is unlike the others or no ordinary interval.

    `split_line` knows what to make of those.

    Examples
    --------
    >>> chunk = b"Tag=a,0.5,1,9,HISTF\\nTag=a,1.5,1,9,HISTFAA\\n"
    >>> columns = columns_of(chunk, {b"a": 1})
    >>> columns.stamp.tolist(), columns.tag.tolist(), columns.texts(chunk)
    ([0.5, 1.5], [1, 1], [b'HISTF', b'HISTFAA'])
    """
    if b"\r" in chunk or b" " in chunk:
        return None
    data = np.frombuffer(chunk, np.uint8)
    ends, at = np.flatnonzero(data == _NEWLINE), np.flatnonzero(data == _COMMA)
    count, width = ends.size, at.size // ends.size
    if width not in (3, 4) or at.size != width * count:
        return None
    commas = at.reshape(count, width)
    if (commas[:, -1] > ends).any() or (commas[1:, 0] < ends[:-1]).any():
        return None
    starts = np.concatenate(([0], ends[:-1] + 1))
    tags = np.zeros(count, np.int32)
    try:
        if width == 4:
            tags[:] = [codes[_tag_of(one)] for one in _between(chunk, starts, commas[:, 0])]
            starts = commas[:, 0] + 1
        stamps, seconds = _numbers(chunk, starts, commas[:, -3]), _numbers(chunk, commas[:, -3] + 1, commas[:, -2])
    except (KeyError, ValueError):
        return None
    if not ((np.abs(stamps) < 1e18) & (seconds >= 0) & (seconds < 1e18)).all():
        return None
    begins = commas[:, -1] + 1
    return Columns(stamps, seconds, tags, begins, ends - begins)


def _between(chunk: bytes, begins: Ints, ends: Ints) -> list[bytes]:
    return [chunk[begin:end] for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]


def _numbers(chunk: bytes, begins: Ints, ends: Ints) -> NDArray[np.float64]:
    """The numbers that stand there; `ValueError` for what is none."""
    found = _decimals(np.frombuffer(chunk, np.uint8), begins, ends)
    if found is None:
        texts = _between(chunk, begins, ends)
        if b"_" in b"".join(texts):  # Python takes 1_0 for a number
            raise ValueError
        found = np.array(list(map(float, texts)))
    return found


def _decimals(data: NDArray[np.uint8], begins: Ints, ends: Ints) -> NDArray[np.float64] | None:
    """The same of digits with a point at one distance from the end, at once; None where one is unlike that.

    A whole number below 2**53 over a power of ten up to 10**22 is rounded as ``float`` rounds the text (Clinger, "How
    to read floating point numbers accurately", 1990).
    """
    widths = ends - begins
    most, places = int(widths.max()), (data[begins[0] : ends[0]] == _POINT).nonzero()[0]
    if most > _EXACT_DIGITS + 1 or places.size != 1:
        return None
    decimals = int(widths[0] - places[0]) - 1
    point = most - 1 - decimals
    if widths.min() < max(decimals + 1, 2):
        return None
    columns = np.arange(most)
    chars = data.take(ends[:, None] - (most - columns), mode="clip")
    if (chars[:, point] != _POINT).any():
        return None
    digits = chars - np.uint8(_ZERO)
    digits[columns < most - widths[:, None]] = 0
    digits[:, point] = 0
    if (digits > 9).any():
        return None
    powers = 10.0 ** (most - 1 - columns - (columns < point))  # all sums of these are whole and exact, in any order
    return (digits.astype(np.float64) @ powers) / 10.0**decimals


def _tag_of(field: bytes) -> bytes:
    if not field.startswith(b"Tag="):
        raise ValueError(field)
    return field[4:]


def split_line(line: bytes) -> tuple[bytes, float, float, bytes]:
    """Return tag, time stamp, second column and payload of an interval line.

    Raises
    ------
    LineError
        Saying what the line looks like instead.
    """
    fields = line.split(b",")
    tag = b""
    if fields[0].startswith(b"Tag="):
        tag = fields.pop(0)[4:]
    if len(fields) != 4:
        raise _shape_error(fields, tag)
    try:
        stamp, length = float(fields[0]), float(fields[1])
    except ValueError:
        raise _number_error(fields) from None
    # NaN fails every comparison, so this refuses it as well as infinities; Python's float() alone takes "1_0".
    if not (-1e18 < stamp < 1e18 and 0 <= length < 1e18) or b"_" in fields[0] or b"_" in fields[1]:
        raise _number_error(fields)
    return tag, stamp, length, fields[3].strip()


def _shape_error(fields: list[bytes], tag: bytes) -> LineError:
    whole = b",".join(fields)
    if sum(b"HIST" in one for one in fields) > 1:
        return LineError("two interval lines are glued together", "one interval a line")
    if len(fields) == 7 and b"HIST" in fields[6]:
        return LineError("the numbers have decimal commas", "decimal points")
    if not tag and fields[0].startswith(b"Tag="):
        return LineError("a tag without a comma behind it", "Tag=NAME,START,LENGTH,MAX,PAYLOAD")
    seen = printable(whole.decode("utf-8", "replace"), 40)
    return LineError(f"{len(fields)} field{'s' * (len(fields) > 1)} ({seen!r})", "START,LENGTH,MAX,PAYLOAD")


def _number_error(fields: list[bytes]) -> LineError:
    for name, text in zip(("time stamp", "interval length"), fields, strict=False):
        shown = printable(text.decode("utf-8", "replace"), 30)
        try:
            value = float(text)
        except ValueError:
            return LineError(f"the {name} is {shown!r}", "seconds")
        if b"_" in text or not np.isfinite(value) or (value < 0 and name != "time stamp") or abs(value) >= 1e18:
            return LineError(f"the {name} is {shown!r}", "seconds")
    return LineError("numbers that cannot be read", "seconds")


def end_column(raw_start: NDArray[np.float64], column: NDArray[np.float64]) -> bool:
    """Whether the second column holds end times, as HdrHistogram_c writes them, and not lengths.

    Examples
    --------
    >>> end_column(np.array([0.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0]))
    True
    >>> end_column(np.array([0.0, 1.0, 2.0]), np.array([1.0, 1.0, 1.0]))
    False
    """
    if raw_start.size and (raw_start > 1e6).all() and (column >= raw_start).all():
        return True
    if raw_start.size < 3:
        return False
    spacing = np.diff(raw_start)
    typical = float(median(spacing))
    misses = np.abs(column[:-1] - raw_start[1:])
    return typical > 0 and float(median(misses)) < 0.1 * typical and float(median(column)) > 1.5 * typical
