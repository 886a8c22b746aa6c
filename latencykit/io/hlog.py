"""HdrHistogram interval logs: their lines, times and payloads, read and written.

The grammar, and what StartTime and BaseTime mean (``HistogramLogReader.java``):

* A line ``#[StartTime: 1441812279.474 (seconds since epoch), …]`` says when the log began;
  without one it began with its first interval.
* A time stamp is absolute if ``#[BaseTime: …]`` says 0 or nothing and it lies within a year of
  StartTime; otherwise it counts from BaseTime, or from StartTime. The decision is made once, at the
  first interval after such a header, so that two logs laid end to end both keep their times.
* A log with BaseTime alone begins at BaseTime plus its first stamp (the reference forgets the base
  there).
* The second column is the interval's length. HdrHistogram_c writes its end there; `end_column`
  detects that.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from latencykit import errors
from latencykit._arrays import as_positions
from latencykit._limits import current_limits
from latencykit._text import LONGEST_WORD, printable
from latencykit._threads import ahead, jobs
from latencykit._typing import AnyArray, Floats, Ints
from latencykit.core import is_samples, kernel
from latencykit.core.blocks import Block, MemoryPart, TotalsFold
from latencykit.core.buckets import (
    COST,
    Buckets,
    CellBuckets,
    Counts,
    HdrBuckets,
    cost,
    on_grid,
    widest,
)
from latencykit.core.histogram_log import HistogramLog, blocks_of, interval_tags, shifted
from latencykit.core.quantiles import median
from latencykit.core.run import FAILURES, UNIT_NAMES, Note, Run, UnitFrom, failure_counts
from latencykit.hdr.payload import (
    HEADER_BYTES,
    SHORT,
    Payloads,
    between,
    decode_summed,
    open_payload,
    open_payloads,
    sum_of_rows,
)
from latencykit.io.files import is_url, size_of, source_of
from latencykit.io.source import (
    HEAD_SIZE,
    Confidence,
    Data,
    DocumentSource,
    Head,
    ReadOptions,
    Source,
)
from latencykit.units import NANOSECONDS, parse_duration

T = TypeVar("T")

YEAR = 365 * 24 * 3600.0
EPOCH_FROM = 1e8  # a "seconds since epoch" below this is some other clock
_NEWLINE, _COMMA = b"\n,"

_HEADER = re.compile(rb"#\s*\[\s*(StartTime|BaseTime)\s*:\s*([^\s\]]+)", re.IGNORECASE)


class LineError(ValueError):
    """Why a line is not an interval: what was seen, and what was expected."""

    def __init__(self, seen: str, expected: str = "") -> None:
        super().__init__(seen)
        self.seen, self.expected = seen, expected


class LogTimes:
    """Turns time stamps into seconds from the log's start, as headers come and go."""

    def __init__(self) -> None:
        self.first_start: float | None = None
        self.start: float | None = None
        self.base: float | None = None
        self.explicit_base = self.decided = False
        self.restarts = 0
        self.notes: list[str] = []

    def header(self, line: bytes) -> None:
        """Take a ``#[StartTime: …]`` or ``#[BaseTime: …]`` line in."""
        found = _HEADER.match(line)
        if found is None:
            return
        try:
            seconds = float(found[2])
        except ValueError:
            seconds = np.nan
        if not np.isfinite(seconds):
            text = printable(found[2].decode("latin-1"))
            raise LineError(f"{found[1].decode()} is {text!r}", "seconds since the epoch")
        if found[1].lower() == b"basetime":
            self.base, self.explicit_base = seconds, True
            return
        if self.decided:
            self.restarts += 1
        self.start, self.decided = seconds, False

    def absolute(self, stamp: float) -> float:
        """Return the stamp on the clock of StartTime; the first one decides what it counts from."""
        if self.decided:
            assert self.base is not None
            return stamp + self.base
        if not self.explicit_base:
            start = stamp if self.start is None else self.start
            self.base = start if stamp < start - YEAR else 0.0
        assert self.base is not None
        if self.start is None:
            self.start = stamp + self.base
        absolute = self.explicit_base and self.base and stamp > EPOCH_FROM
        if absolute and stamp + self.base - self.start > YEAR:
            self.base = 0.0  # the reference would add it twice
            self.notes.append("timestamps are absolute; BaseTime was not added to them again")
        if self.first_start is None:
            self.first_start = self.start
        self.decided = True
        return stamp + self.base


_ROW = np.dtype(
    {
        "names": ["start", "length", "offset", "size", "line", "tag"],
        "formats": ["f8", "f8", "i8", "i4", "i4", "i4"],
    }
)
"""What is known of an interval without decoding it."""


class LineIntervals:
    """The rows of all intervals, as they come."""

    def __init__(self) -> None:
        self._rows = bytearray()

    def add(self, rows: AnyArray) -> None:
        """Take intervals in."""
        self._rows += rows.tobytes()

    def __getitem__(self, name: str) -> AnyArray:
        return np.frombuffer(self._rows, _ROW)[name]

    def __len__(self) -> int:
        return len(self._rows) // _ROW.itemsize


def columns_of(chunk: bytes, code: Callable[[bytes], int]) -> AnyArray | None:
    """Return the rows of complete lines, tagged or not; None if one is not an ordinary interval."""
    # `split_line` parses those. `code` returns the number of a tag, or raises an error. Starts are
    # as written, lines and offsets count from the first.
    if chunk[:1] in b'#"' or not chunk.endswith(b"\n") or b"\r" in chunk or b" " in chunk:
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
    rows = np.zeros(count, _ROW)
    try:
        if width == 4:
            names = between(chunk, starts, commas[:, 0])
            if not all(name.startswith(b"Tag=") for name in names):
                return None
            rows["tag"] = [code(name[4:]) for name in names]
            starts = commas[:, 0] + 1
        rows["start"] = stamps = _numbers(chunk, starts, commas[:, -3])
        rows["length"] = seconds = _numbers(chunk, commas[:, -3] + 1, commas[:, -2])
    except (KeyError, ValueError):
        return None
    if not ((np.abs(stamps) < 1e18) & (seconds >= 0) & (seconds < 1e18)).all():
        return None
    rows["offset"] = begins = commas[:, -1] + 1
    rows["size"], rows["line"] = ends - begins, np.arange(count)
    return rows


def _numbers(chunk: bytes, begins: Ints, ends: Ints) -> NDArray[np.float64]:
    """The numbers that stand there; `ValueError` for what is none."""
    texts = between(chunk, begins, ends)
    if b"_" in b"".join(texts):  # Python takes 1_0 for a number
        raise ValueError
    return np.array(list(map(float, texts)))


def split_line(line: bytes) -> tuple[bytes, float, float, bytes]:
    """Return tag, time stamp, second column and payload of an interval line."""
    fields = line.split(b",")
    tag = b""
    if fields[0].startswith(b"Tag="):
        tag = fields.pop(0)[4:]
    if len(fields) != 4:
        raise _shape_error(fields, tag)
    numbers = []
    for text, name, least in ((fields[0], "time stamp", -1e18), (fields[1], "interval length", 0)):
        try:
            numbers.append(float(text))
        except ValueError:
            numbers.append(np.nan)
        # NaN fails every comparison; Python's float() alone takes "1_0"
        if not least <= numbers[-1] < 1e18 or b"_" in text:
            shown = printable(text.decode("utf-8", "replace"), 30)
            raise LineError(f"the {name} is {shown!r}", "seconds")
    return tag, numbers[0], numbers[1], fields[3].strip()


def _shape_error(fields: list[bytes], tag: bytes) -> LineError:
    whole = b",".join(fields)
    if sum(b"HIST" in one for one in fields) > 1:
        return LineError("two interval lines are glued together", "one interval per line")
    if len(fields) == 7 and b"HIST" in fields[6]:
        return LineError("the numbers have decimal commas", "decimal points")
    if not tag and fields[0].startswith(b"Tag="):
        return LineError("a tag without a comma behind it", "Tag=NAME,START,LENGTH,MAX,PAYLOAD")
    seen = printable(whole.decode("utf-8", "replace"), 40)
    return LineError(
        f"{len(fields)} field{'s' * (len(fields) > 1)} ({seen!r})", "START,LENGTH,MAX,PAYLOAD"
    )


def highest_of(total: Iterable[Counts]) -> float:
    """Return the highest value that was counted, 0 where none was."""
    return max((float(of.high(index[-1])) for of, index, _ in total if index.size), default=0.0)


def end_column(raw_start: NDArray[np.float64], column: NDArray[np.float64]) -> bool:
    """Whether the second column holds end times, as HdrHistogram_c writes them, and not lengths."""
    if raw_start.size and (raw_start > 1e6).all() and (column >= raw_start).all():
        return True
    if raw_start.size < 3:
        return False
    typical = float(median(np.diff(raw_start)))
    if not typical > 0 or column.max() <= 1.5 * typical:
        return False
    misses = np.abs(column[:-1] - raw_start[1:])
    return float(median(misses)) < 0.1 * typical and float(median(column)) > 1.5 * typical


# ------------------------------------------------------------
# The payloads of a log file as a part of a `HistogramLog`: decoded a block of lines at a time,
# when asked for.

CHUNK = 192 * 1024
"""Bytes of inflated payload decoded at once: the temporaries of such a block fit the cache."""
_BESIDE = 16  # bytes that a payload costs beside its own

AHEAD = 496 * 1024
"""Bytes of lines that are read at once."""
AT_ONCE = 8 << 20
"""Bytes that are inflated at once; the rest waits for its turn."""
TOGETHER = 1024
"""Rows that are opened together at most."""
THREADED = 32 << 20
"""Bytes of payloads from which on a second thread saves more than its start costs."""
KEEP = 6 << 20
"""A log keeps its intervals if they take less memory; others are decoded when they are needed."""


def blocks_of_payloads(
    rows: Ints, payloads: Payloads, refuse: Callable[[int, str], object]
) -> Iterator[Block]:
    """Yield opened payloads as blocks for each layout; `refuse` takes what is corrupt."""
    codes: dict[tuple[int, int], int] = {}  # equal headers give the same object
    kinds = [codes.setdefault((of.word, id(of.buckets)), len(codes)) for of in payloads.layouts]
    if len(codes) > 1:  # rare
        kind_of = np.array(kinds)
        for kind in range(len(codes)):
            places = np.flatnonzero(kind_of == kind)
            yield from blocks_of_payloads(rows[places], payloads.take(places), refuse)
        return
    chunk = np.cumsum(payloads.sizes + _BESIDE) // CHUNK
    # after a payload that crosses a bound, be it the first
    last = (np.diff(chunk, prepend=0).nonzero()[0] + 1).tolist()
    for begin, end in pairwise(dict.fromkeys([0, *last, len(payloads)])):
        some = rows[begin:end]
        corrupt = partial(_corrupt, refuse, some)
        yield EncodedBlock(some, payloads.layouts[0].buckets, payloads[begin:end], corrupt, [])


def _corrupt(refuse: Callable[[int, str], object], rows: Ints, row: int, reason: str) -> None:
    refuse(int(rows[row]), reason)


class EncodedBlock(Block):
    """Intervals as they were written, half as large as decoded, which they are when needed."""

    payloads: Payloads
    corrupt: Callable[[int, str], object]
    decoded: list[tuple[Ints, Ints, Ints, Ints | None]]  # once, for all that it is moved to

    def __init__(
        self, rows: Ints, buckets: Buckets, payloads: Payloads, corrupt: object, decoded: object
    ) -> None:
        own = {"payloads": payloads, "corrupt": corrupt, "decoded": decoded}
        vars(self).update(rows=rows, buckets=buckets, **own)

    def __getstate__(self) -> dict[str, Any]:  # what travels was decoded once
        return vars(self) | {"corrupt": None, "decoded": []}

    @property
    def _entries(self) -> tuple[Ints, Ints, Ints, Ints | None]:
        while not self.decoded:
            try:
                self.decoded.append(decode_summed(self.payloads))
            except errors.RowError as bad:
                self.corrupt(bad.row, str(bad))
                # where that returns: an empty interval
                self.payloads.ends[bad.row] = self.payloads.begins[bad.row]
        return self.decoded[0]

    indptr = property(lambda self: self._entries[0])
    index = property(lambda self: self._entries[1])
    counts = property(lambda self: self._entries[2])

    @property
    def sums(self) -> Ints | None:
        """Sums of all rows, bucket by bucket: half of the time that the entries take."""
        return self.decoded[0][3] if self.decoded else sum_of_rows(self.payloads)

    @property
    def nbytes(self) -> int:
        """Memory that it takes, in bytes: of the bodies, and of where each lies."""
        return int(self.payloads.sizes.sum()) + (HEADER_BYTES + 24) * self.rows.size

    def moved(self, rows: Ints, buckets: Buckets) -> EncodedBlock:
        """Return the block with other numbers of its rows, in a layout of another scale."""
        return EncodedBlock(rows, buckets, self.payloads, self.corrupt, self.decoded)

    def kept(self) -> Block:
        """Return what takes the least memory to give this block again."""
        return self.widened() if kernel.in_use() == "C" else self.narrow()

    def widened(self) -> EncodedBlock:
        """Return the intervals as they were written."""
        return EncodedBlock(self.rows, self.buckets, self.payloads, self.corrupt, [])


class HlogPart:
    """A log file's intervals."""

    def __init__(
        self,
        source: Source,
        intervals: LineIntervals,
        refuse: Callable[[int, str], object],
        jobs: int | None,
    ) -> None:
        self._source, self._refuse, self._jobs = source, refuse, jobs
        self._intervals = intervals

    def blocks(self, rows: Ints) -> Iterator[Block]:
        """Yield the blocks of the given rows; a thread opens the next payloads meanwhile."""
        opened, size = self._opened(rows), int(self._intervals["size"][rows].sum())
        # Short payloads take less time to open than to hand over.
        threaded = size > max(THREADED, SHORT * rows.size) and jobs(self._jobs) > 1
        for some, payloads, bad in ahead(opened) if threaded else opened:
            if bad is not None:
                self._refuse(int(some[-1]), str(bad))
            yield from blocks_of_payloads(some[: len(payloads)], payloads, self._refuse)

    def _opened(self, rows: Ints) -> Iterator[tuple[Ints, Payloads, errors.RowError | None]]:
        """Yield rows and their payloads, as many as memory allows; behind them may be an error."""
        limits = replace(current_limits(), block=min(current_limits().block, AT_ONCE))
        begins = self._intervals["offset"][rows]
        ends = begins + self._intervals["size"][rows]
        first = 0
        with self._source.open() as stream:
            while first < rows.size:
                low = int(begins[first])
                last = int(np.searchsorted(ends[first : first + TOGETHER], low + AHEAD, "right"))
                some = slice(first, first + max(last, 1))
                stream.seek(low)
                data = stream.read(int(ends[some][-1]) - low)
                texts = between(data, begins[some] - low, ends[some] - low)
                while texts:
                    bad = None
                    try:
                        payloads = open_payloads(texts, limits)
                    except errors.RowError as error:
                        payloads = open_payloads(texts[: error.row], limits)
                        bad = error if len(payloads) == error.row else None
                    taken = len(payloads) + (bad is not None)
                    yield rows[first : first + taken], payloads, bad
                    first += taken
                    del texts[:taken]


# ------------------------------------------------------------
# Writing HdrHistogram interval logs, version 1.3, as the reference does, with the unit said in a
# comment.

_OWN = re.compile(r"^#\[latencykit ([^\]\n]*)\]", re.MULTILINE)
_STATED = ("tool", "loop", "corrected", "measure")
_BAD_IN_TAG = frozenset(", \r\n\t")


def own_comment(facts: Mapping[str, str]) -> str:
    """Return facts as the inside of the comment that `own_facts` reads."""
    return "latencykit " + ", ".join(f"{name}: {value}" for name, value in facts.items())


def own_facts(text: str) -> dict[str, str]:
    """Return the facts that latencykit wrote into the comments of a log or of an .hgrm."""
    found: dict[str, str] = {}
    for part in ", ".join(_OWN.findall(text)).split(", "):
        name, colon, value = part.partition(": ")
        if name in FAILURES and value.isdecimal():  # those of logs laid end to end add up
            value = str(int(found.get(name, "0")) + int(value))
        elif name == "timeout":
            value = min(value, found.get(name, value), key=parse_duration)
        found |= {name: value} if colon else {}
    return found


def stated_facts(run: Run) -> dict[str, str]:
    """Return what is known of a measurement, for `own_comment`."""
    facts = {name: getattr(run, name) or "unknown" for name in _STATED}
    facts["tool"] = re.sub(r"[^\w .+/()-]+", "_", facts["tool"])
    facts["failures"] = "unknown" if run.failures_known else "not in this file"
    return {k: fact for k, fact in facts.items() if fact != "unknown"} | stated_failures(run)


def stated_failures(run: Run) -> dict[str, str]:
    """Return the numbers of failed requests, and how long one waits until it is a timeout."""
    facts = {name: str(number) for name, number in failure_counts(run).items() if number}
    if run.timeouts and run.timeout:
        facts["timeout"] = f"{run.timeout / 1e9:.9g}s"
    return facts


def run_facts(own: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a run that `stated_facts` wrote."""
    facts: dict[str, Any] = {name: fact for name, fact in own.items() if name in _STATED}
    if "tool" in facts:
        facts["tool"] = printable(facts["tool"])
    counts = {name: own[name] for name in FAILURES if own.get(name, "").isdecimal()}
    facts |= {name: int(count) for name, count in counts.items() if len(count) < 19}
    if "timeout" in own:
        facts["timeout"] = parse_duration(own["timeout"])
    return facts | ({"failures_known": False} if "failures" in own else {})


class HlogWriter:
    """Writes a log line by line; the file is valid after every line."""

    def __init__(
        self, stream: IO[bytes], start: float | None, unit: str = "ns", comments: Iterable[str] = ()
    ) -> None:
        self._stream, self._start, self._unit, self._comments = stream, start, unit, tuple(comments)
        self._empty: dict[HdrBuckets, bytes] = {}  # payloads: one late request, a million of them

    def header(self) -> None:
        """Write the comments, the version, StartTime, BaseTime and the legend."""
        lines = [f"#[{_one_line(comment)}]" for comment in self._comments]
        lines.append("#[Histogram log format version 1.3]")
        if self._start is not None:
            stamp = time.strftime("%a %b %d %H:%M:%S UTC %Y", time.gmtime(self._start))
            lines.append(f"#[StartTime: {self._start:.3f} (seconds since epoch), {stamp}]")
            lines.append(f"#[BaseTime: {self._start:.3f} (seconds since epoch)]")
        if self._unit in UNIT_NAMES:
            lines.append(
                "#UNITS: StartTimestamp = seconds; Interval_Length = seconds; "
                f"values in the histogram = {UNIT_NAMES[self._unit]}"
            )
        lines.append(
            '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"'
        )
        self._stream.write(
            "".join(line + "\n" for line in lines).encode("utf-8", "surrogateescape")
        )

    def interval(
        self,
        start: float,
        length: float,
        buckets: HdrBuckets,
        index: NDArray[np.int64],
        counts: NDArray[np.int64],
        tag: str | None = None,
    ) -> None:
        """Write one interval."""
        if tag and _BAD_IN_TAG & set(tag):
            raise errors.InvalidArgumentError(
                f"a tag in a log cannot contain commas, blanks or line breaks, as {tag!r} does; "
                "rename it"
            )
        high = float(buckets.high(index[-1])) if index.size else 0.0
        from latencykit.hdr.write import encode

        payload = b"" if index.size else self._empty.get(buckets, b"")
        if not payload:
            payload = encode(buckets, index, counts, double=buckets.scale != 1.0)
        if not index.size:
            self._empty[buckets] = payload
        front = f"Tag={tag}," if tag else ""
        line = f"{front}{start:.3f},{length:.3f},{high / 1e6:.3f},".encode(
            "utf-8", "surrogateescape"
        )
        self._stream.write(line + payload + b"\n")

    def comment(self, text: str) -> None:
        """Write a comment between intervals, as ``#[…]``."""
        self._stream.write(f"#[{_one_line(text)}]\n".encode("utf-8", "surrogateescape"))


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("]", ")")


def as_log(data: Data) -> HistogramLog:
    """Return samples as intervals of a second or more, and a histogram as a single interval."""
    from latencykit.core.histogram import Histogram

    if is_samples(data):
        data = data.to_log() if data.start is not None else data.histogram()
    if isinstance(data, Histogram):
        if not isinstance(data.buckets, HdrBuckets | CellBuckets):
            raise errors.InvalidArgumentError(
                "only HDR buckets fit into an .hlog; write .csv, .json or .parquet instead"
            )
        indptr = np.array([0, data.index.size])
        block = Block(np.zeros(1, np.int64), indptr, data.index, data.counts, data.buckets)
        length = data.run.duration or 0.0
        return HistogramLog([0.0], [length], [MemoryPart([block])], unit=data.unit, run=data.run)
    if not isinstance(data, HistogramLog):
        raise errors.InvalidArgumentError(
            "a summary has no buckets to write into an .hlog; convert the tool's full output "
            "instead"
        )
    return data


def write_hlog(data: Data, path: Path) -> None:
    """Write a log, samples as intervals of a second, or a histogram as a single interval."""
    data = as_log(data)
    early = min(float(data.starts.min(initial=0.0)), 0.0)
    if early:  # readers drop negative time stamps
        data = shifted(data, -early)
    # Scales are divided so that the source's own unit is stored, which keeps its integers.
    both_timed = data.run.unit in NANOSECONDS and data.unit in NANOSECONDS
    unit = data.run.unit if both_timed else data.unit
    factor = 1.0 if unit == data.unit else NANOSECONDS[unit] / NANOSECONDS[data.unit]
    guessed = data.run.unit_from == "assumed"
    run = data.run
    known = {"unit": unit} if guessed or unit == "none" else {}
    known |= ({"unit_from": "assumed"} if guessed else {}) | stated_facts(run)
    with path.open("wb") as stream:
        stated = "none" if guessed else unit  # a guess must not become a fact by being copied
        writer = HlogWriter(stream, data.start, stated, [own_comment(known)] if known else ())
        writer.header()
        _write_rows(data, writer, factor)


def _write_rows(log: HistogramLog, writer: HlogWriter, factor: float) -> None:
    """Write the rows in order of time; blocks arrive in file order, so a late row waits."""
    tags = interval_tags(log)
    waiting: dict[int, tuple[HdrBuckets, NDArray[np.int64], NDArray[np.int64]]] = {}
    following = 0
    widest_yet = 0.0
    for block in blocks_of(log):
        if not isinstance(block.buckets, HdrBuckets | CellBuckets):
            raise errors.InvalidArgumentError(
                "only HDR buckets fit into an .hlog; write .csv, .json or .parquet instead"
            )
        if isinstance(block.buckets, CellBuckets) and block.buckets.overlap:
            width, low, high = widest(block.buckets, block.index)
            if width > widest_yet:
                widest_yet = width
                writer.comment(cost(width, low, high, log.unit))
        layout = block.buckets.grid if isinstance(block.buckets, CellBuckets) else block.buckets
        stored = HdrBuckets(layout.digits, layout.lowest, layout.scale / factor)
        for k, row in enumerate(block.rows.tolist()):
            entries = slice(int(block.indptr[k]), int(block.indptr[k + 1]))
            _, index, counts = on_grid(block.buckets, block.index[entries], block.counts[entries])
            if not layout.reaches(index):
                raise errors.InvalidArgumentError(
                    "an .hlog cannot contain values that differ by more than 2**63 in one "
                    "interval; write shorter intervals, or .csv, .json or .parquet"
                )
            waiting[row] = stored, index, counts
        while following in waiting:
            start, length = float(log.starts[following]), float(log.lengths[following])
            writer.interval(start, length, *waiting.pop(following), tags[following])
            following += 1
    for row in sorted(waiting):
        writer.interval(float(log.starts[row]), float(log.lengths[row]), *waiting[row], tags[row])


# ------------------------------------------------------------
# HdrHistogram interval logs: ``.hlog``, versions 1.0 to 1.3, of any writer.
#
# Parsed lines become a `HistogramLog`. Nothing in the format names the unit: a comment of the
# generator does, or the user, else nanoseconds are assumed.

_BOM = b"\xef\xbb\xbf"
_BLANK = (b"\n", b"\r\n")
_LEGEND = re.compile(r'^"(Start)?Timestamp"', re.MULTILINE)
_PAYLOAD = re.compile(r"^(Tag=[^,\n]*,)?[-+\d.eEnaif]+,[^,\n]*,[^,\n]*,\s*D?HIST", re.MULTILINE)
_HISTOGRAM_UNITS = re.compile(r"values in the histogram\s*=\s*(\w+)", re.IGNORECASE)
_WORDS = {"nanoseconds": "ns", "microseconds": "us", "milliseconds": "ms", "seconds": "s"}
# From the comments of well-known generators: tool, unit of the values, who corrected.
_GENERATORS: tuple[tuple[re.Pattern[str], str, str, dict[str, str]], ...] = (
    (
        re.compile(r"#\[Logged with jHiccup(?: version (\S+?))?\]"), "jHiccup", "ns",
        {"corrected": "tool", "loop": "open", "measure": "service"},
    ),
    (re.compile(r"#\[Logging for: \S+\]"), "YCSB", "us", {}),
    (re.compile(r"#\s*Logging op latencies for Cassandra Stress"), "cassandra-stress", "ns", {}),
    (
        re.compile(r"#\s*+(?:\[\s*+)?logging histograms for session", re.IGNORECASE),
        "NoSQLBench", "ns", {},
    ),
    (re.compile(r"#\[Logged with latencykit hiccup.*\]"), "latencykit hiccup", "ns", {}),
)  # fmt: skip


def sniff(head: Head) -> Confidence:
    """Detect a log by its version line, its legend or the shape of an interval line."""
    text = head.text
    if _PAYLOAD.search(text):
        return Confidence.CERTAIN
    if re.search(
        r"^#\s*Tag,Interval_Start,Interval_Length,count,|\"Int_Count\"", text, re.MULTILINE
    ):
        return Confidence.NO  # statistics of intervals, with the head of a log
    if "#[Histogram log format version" in text or (
        "#[StartTime:" in text and _LEGEND.search(text)
    ):
        return Confidence.CERTAIN
    if _LEGEND.search(text) and "Interval_Compressed_Histogram" in text:
        return Confidence.CERTAIN
    return Confidence.LIKELY if head.suffix == ".hlog" else Confidence.NO


def read(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read a log; payloads are decoded at once if it is small, else when they are needed."""
    scan = _Scan(source, options)
    scan.run()
    # Under --lenient all are, for what is corrupt has to be left out.
    if options.lenient or scan.found["size"].sum() <= KEEP // 2:
        scan.decode()
    return {"": scan.log()}


class _Refused:
    """What is corrupt: an error, or under ``lenient`` left out."""

    # Blocks refer to it, and to no scan: one that they refer to in a circle stays in memory with
    # all that it has read until garbage is collected.

    def __init__(self, source: Source, found: LineIntervals, options: ReadOptions) -> None:
        self._source, self._found, self._options = source, found, options
        self.lines = 0
        self.rows: set[int] = set()

    def error(self, line: int, reason: str, expected: str = "") -> errors.CorruptInputError:
        """Return the error of a line."""
        before = bisect_left(self._found["line"], line)
        read = f"{before:,} intervals before it were read; --lenient skips such lines"
        return self._source.corrupt(line, reason, expected, read)

    def line(self, line: int, reason: str, expected: str = "") -> None:
        """Leave a line out, or raise."""
        self._options.reject(self.error(line, reason, expected))
        self.lines += 1

    def row(self, row: int, reason: str) -> None:
        """Leave an interval out, or raise."""
        if row not in self.rows:
            self.line(int(self._found["line"][row]), reason)
            self.rows.add(row)


class _Scan:
    """One pass over the lines."""

    def __init__(self, source: Source, options: ReadOptions) -> None:
        self.source, self.options = source, options
        self.times, self.found = LogTimes(), LineIntervals()
        self.tags = {b"": 0}  # in order of appearance; 0 is "no tag"
        self.comments: list[str] = []
        self.notes: list[str] = []
        self.end_legend = self.headed = False
        self.refused = _Refused(source, self.found, options)
        self.part = HlogPart(source, self.found, self.refused.row, options.jobs)
        self.kept: MemoryPart | None = None
        self.total: list[Counts] | None = None
        self.offset = self.number = 0  # bytes and lines that were gone through
        self.limits = current_limits()

    # ------------------------------------------------------------ lines

    def run(self) -> None:
        """Go through all lines; remember the intervals."""
        with self.source.open() as stream:
            while chunk := stream.read(AHEAD):
                if not chunk.endswith(b"\n"):
                    chunk += stream.readline(self.limits.line)
                header: bytes = _ABOVE.match(chunk)[0]  # type: ignore[index]
                self._lines(header)
                chunk = chunk[len(header) :] if header else chunk
                rows = columns_of(chunk, self.tags.__getitem__) if chunk else None
                if rows is None and chunk.startswith(b"Tag="):  # there may be new tags
                    rows = columns_of(chunk, self._code)
                if (
                    rows is None
                    or len(self.found) + rows.size > self.limits.intervals
                    or rows["size"].max() >= self.limits.line
                ):
                    self._lines(chunk)
                    continue
                self.times.absolute(float(rows["start"][0]))
                rows["start"] += self.times.base or 0.0
                rows["offset"] += self.offset
                rows["line"] += self.number + 1
                self.found.add(rows)
                self.number += rows.size
                self.offset += len(chunk)

    def decode(self) -> None:
        """Decode the intervals: sum them up, and keep them unless they take too much memory."""
        total, fits, blocks, size = TotalsFold(), True, list[Block](), 0
        for block in self.part.blocks(np.arange(len(self.found))):
            try:
                total.add(block)
            except errors.InputTooLargeError:  # as a whole: a slice of the log may be fine
                fits = False
            if size <= KEEP:
                blocks.append(block.kept())
                size += blocks[-1].nbytes
        self.total = total.sums() if fits else None
        self.kept = MemoryPart(blocks) if size <= KEEP else None

    def _code(self, tag: bytes) -> int:
        """The tag's number, a new one for a new tag."""
        size = len(tag.decode("utf-8", "surrogateescape"))
        if size > LONGEST_WORD:
            raise LineError(f"a tag of {size} characters", f"at most {LONGEST_WORD}")
        return self.tags.setdefault(tag, len(self.tags))

    def _lines(self, chunk: bytes) -> None:
        """Take lines of any kind in, one by one."""
        for line in BytesIO(chunk):
            self.number += 1
            if line in _BLANK:
                self.offset += len(line)
                continue
            if len(line) >= self.limits.line:
                raise self._beyond("line", f"a line of more than {self.limits.line:,} bytes")
            ended = line.endswith(b"\n")
            # A lone carriage return ends a line, too.
            at = self.offset
            pieces = line.split(b"\r") if b"\r" in line.rstrip(b"\r\n") else [line]
            for left, piece in enumerate(pieces, 1 - len(pieces)):
                self._line(piece, at, self.number, ended or left < 0)
                at += len(piece) + 1
            self.offset += len(line)
        if self.number - len(self.found) > self.limits.others:
            raise self._beyond(
                "others", f"more than {self.limits.others:,} lines that are not intervals"
            )

    def _beyond(self, name: str, seen: str) -> errors.InputTooLargeError:
        return errors.InputTooLargeError(
            f"{self.source.shown}:{self.number}: {seen}; --limit {name}=SIZE (lk.limits) allows "
            "more"
        )

    def _line(self, line: bytes, offset: int, number: int, ended: bool) -> None:
        if line.startswith(_BOM):
            line, offset = line[len(_BOM) :], offset + len(_BOM)
        text = line.strip()
        self.headed |= text[:1] in (b'"', b"#")
        if not text or text.startswith(b'"'):
            self.end_legend |= b"EndTimestamp" in text
            return
        try:
            if text.startswith(b"#"):
                if len(self.comments) < 1000:
                    self.comments.append(text.decode("utf-8", "surrogateescape"))
                self.times.header(text)
            else:
                tag, stamp, column, payload = split_line(line.rstrip(b"\r\n"))
                if not ended:
                    open_payload(payload, self.limits)
                if len(self.found) >= self.limits.intervals:
                    raise self._beyond(
                        "intervals", f"more than {self.limits.intervals:,} intervals"
                    )
                at = offset + line.index(payload, line.rindex(b","))
                start, code = self.times.absolute(stamp), self._code(tag)
                row = (start, column, at, len(payload), number, code)
                self.found.add(np.array(row, _ROW))
        except (LineError, errors.PayloadError) as bad:
            expected = bad.expected if isinstance(bad, LineError) else ""
            if not ended or not text.strip(b"\0"):
                # it is all there is: a page, a message
                if not (self.headed or len(self.found) or self.refused.lines):
                    raise self.refused.error(number, str(bad), "an interval log") from None
                self.notes.append(Note(f"the last line is incomplete and was left out ({bad})"))
                return
            self.refused.line(number, str(bad), expected)

    # ------------------------------------------------------------ the log

    def log(self) -> HistogramLog:
        """Return what was found as a log."""
        if self.refused.lines and not len(self.found):
            seen = f"none of its {self.refused.lines:,} lines is an interval"
            raise self.source.corrupt(None, seen, "an interval log", "is it one?")
        if not len(self.found):
            self.notes.append("the log holds no interval")
        start, length = self.found["start"].copy(), self.found["length"].copy()
        since = start - (self.times.base or 0.0)
        perhaps = start.size and length[0] >= since[0] and length[-1] >= since[-1]
        if (self.end_legend or perhaps) and end_column(since, length):
            length -= since
            self.notes.append(
                "the second column contains end times (as HdrHistogram_c writes them); lengths "
                "were taken from them"
            )
        first = self.times.first_start if self.times.first_start is not None else self.times.start
        origin = 0.0 if first is None else first
        offsets = start - origin
        good = np.delete(np.arange(start.size), sorted(self.refused.rows))
        if back := int((np.diff(offsets[good]) < 0).sum()):
            self.notes.append(
                f"{back} intervals begin before the one above them; they were sorted by time"
            )
        order = good[np.argsort(offsets[good], kind="stable")]
        if self.times.restarts:
            self.notes.append(
                f"StartTime occurs {self.times.restarts + 1} times: logs laid end to end, each on "
                "its own clock"
            )
        epoch = first if first is not None and first > EPOCH_FROM else None
        if first and epoch is None and start.size:  # 0: its writer did not know
            self.notes.append(
                f"StartTime {first:g} is not a time since the epoch; only the distances between "
                "intervals are known"
            )
        run, unit = self._run(epoch)
        self.source.highest = highest_of(self.total or ())
        return HistogramLog(
            offsets[order], length[order], [self.kept or self.part],
            where=(np.zeros(order.size, np.int64), order),
            tag_code=self.found["tag"].astype(np.int64)[order],
            tag_names=tuple(tag.decode("utf-8", "surrogateescape") for tag in self.tags),
            unit=unit, run=run, total=self.total,
        )  # fmt: skip

    def _run(self, epoch: float | None) -> tuple[Run, str]:
        text = "\n".join(self.comments)
        facts: dict[str, Any] = {"start": epoch}
        hit = _HISTOGRAM_UNITS.search(text)
        stated = _WORDS.get(hit[1].lower()) if hit else None
        unit = stated or "ns"
        origin: UnitFrom = "file" if stated else "assumed"
        for pattern, tool, its_unit, provenance in _GENERATORS:
            hit = pattern.search(text)
            if hit is not None:
                facts |= {"tool": tool, **provenance}
                facts["version"] = hit[1] if hit.re.groups else None
                if origin == "assumed":
                    unit, origin = its_unit, "file"
                break
        self.notes += [
            comment[2:].rstrip("]") for comment in self.comments if comment.startswith(f"#[{COST}")
        ]
        own = own_facts(text)
        facts |= run_facts(own)
        if own.get("unit") in (*NANOSECONDS, "none") and stated is None:
            unit, origin = own["unit"], "assumed" if own.get("unit_from") == "assumed" else "file"
        unit, unit_from = self.options.resolve_unit(unit, origin)
        notes = tuple(dict.fromkeys(self.times.notes + self.notes))
        return Run(unit=unit, unit_from=unit_from, notes=notes, **facts), unit


# ------------------------------------------------------------
# Many small logs at once.
#
# A log takes hundreds of calls beside those for its payloads. Of logs with equal comments, and with
# nothing to note of their intervals, only moments and counts differ: the lines of all are gone
# through as if they were one log's.

_MOMENT = re.compile(rb"^(#\[(?:Start|Base)Time: )[\d.]{1,15}[\w:. ()+,-]*\]$", re.MULTILINE)
_ABOVE = re.compile(rb"(?:[#\"][^\n]*\n|\s*\n)*")
_LAYOUTS = 8  # at most, whose sums fit into little memory


class SmallLog(NamedTuple):
    """A log that may be read with others: its header without moments, its clock, its lines."""

    source: Source
    header: bytes
    times: LogTimes
    lines: bytes


def small_log(url: str) -> SmallLog | None:
    """Return a small log; None for anything that is to be read by itself."""
    if is_url(url) or not 0 < size_of(url) < HEAD_SIZE:
        return None
    source, times = source_of(url), LogTimes()
    try:
        data = source.head.data
        header: bytes = _ABOVE.match(data)[0]  # type: ignore[index]
        lines = data[len(header) :]
        for line in header.splitlines():
            if line.startswith(b"#"):
                times.header(line)
        times.absolute(float(lines[: lines.find(b",")]))
    except (errors.LatencyKitError, ValueError):  # raised again when it is read by itself
        return None
    odd = b"\r" in data or b"Tag=" in data or b"EndTimestamp" in header or times.notes
    whole = source.head.whole and data.endswith(b"\n") and not source.cut
    if odd or not whole or not (times.first_start or 0.0) > EPOCH_FROM:
        return None
    return SmallLog(source, _MOMENT.sub(rb"\1", header), times, lines)


def sum_of_small(
    logs: Sequence[SmallLog], unit: str
) -> tuple[list[Counts], int, Floats, Floats, Floats] | None:
    """Return the sum of logs, its number of intervals, and start, first and end of each log."""
    # None where a look at each by itself may find something to note, or corruption.
    lines = b"".join(log.lines for log in logs)
    scan = _Scan(DocumentSource(logs[0].source, lines, 0), ReadOptions())
    scan.times.base, scan.times.decided = 0.0, True
    try:
        with np.errstate(invalid="raise", over="raise"):
            scan.run()
            scan.decode()
    except (errors.LatencyKitError, ArithmeticError):
        return None
    begins = np.cumsum([0, *(len(log.lines) for log in logs[:-1])])
    first = np.searchsorted(scan.found["offset"], begins)
    sizes = np.diff(first, append=len(scan.found))
    odd = scan.comments or scan.notes or len(scan.tags) > 1 or sizes.min() < 1
    counts = [] if odd else scan.total or []
    if not 1 <= len(counts) <= _LAYOUTS:
        return None
    base, origin = (
        np.array([getattr(log.times, name) for log in logs]) for name in ("base", "first_start")
    )
    of = np.repeat(np.arange(len(logs)), as_positions(sizes))
    # What follows is as in `_Scan.log` and `longer_than_run`; only they decide where it is close.
    longest = highest_of(counts) * NANOSECONDS.get(unit, 0.0) / 1e9
    start, length = scan.found["start"] + base[of], scan.found["length"]
    since, offset = start - base[of], start - origin[of]
    ends, last, begin = offset + length, first + sizes - 1, np.minimum(offset[first], 0.0)
    end = np.maximum.reduceat(ends, as_positions(first))
    back = np.diff(offset) < 0
    back[last[:-1]] = False
    in_ends = (length[first] >= since[first]) & (length[last] >= since[last])
    in_ends &= (sizes > 2) | (since[first] > 1e6)
    late = ((end > begin) & (longest > end - begin)).any()
    if back.any() or in_ends.any() or late or not (np.abs(ends) < YEAR).all():
        return None
    return counts, ends.size, origin, offset[first], end


FORMATS = {"hlog": (sniff, read, write_hlog)}
