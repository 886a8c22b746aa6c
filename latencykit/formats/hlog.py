"""HdrHistogram interval logs: ``.hlog``, versions 1.0 to 1.3, of any writer.

`latencykit.formats.hlog_lines` tells what the lines mean; here they become a `HistogramLog`. Nothing in the format
names the unit: a comment of the generator does, or the user, else nanoseconds are assumed.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.codec import PayloadError, Payloads, RowError, open_payload, open_payloads
from latencykit.errors import CorruptInputError, LimitError
from latencykit.formats.base import Confidence, Format
from latencykit.formats.hlog_lines import (
    EPOCH_FROM,
    Intervals,
    LineError,
    TagTable,
    Times,
    columns_of,
    end_column,
    split_line,
)
from latencykit.formats.hlog_part import AHEAD, KEEP, SPAN, BlockBuilder, HlogPart, narrow
from latencykit.formats.hlog_writer import own_facts, write_hlog
from latencykit.layouts import COST
from latencykit.limits import in_force
from latencykit.log import HistogramLog
from latencykit.run import Run
from latencykit.units import NANOSECONDS, printable

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import IO

    from latencykit.blocks import Block
    from latencykit.formats.base import Head, ReadOptions, Rung, Source
    from latencykit.run import UnitFrom

__all__ = ["FORMATS"]

_BOM = b"\xef\xbb\xbf"
_BLANK = (b"\n", b"\r\n")
_LEGEND = re.compile(r'^"(Start)?Timestamp"', re.MULTILINE)
_PAYLOAD = re.compile(r"^(Tag=[^,\n]*,)?[-+\d.eEnaif]+,[^,\n]*,[^,\n]*,\s*D?HIST", re.MULTILINE)
_HISTOGRAM_UNITS = re.compile(r"values in the histogram\s*=\s*(\w+)", re.IGNORECASE)
_WORDS = {"nanoseconds": "ns", "microseconds": "us", "milliseconds": "ms", "seconds": "s"}
# What the comments of well-known generators tell: tool, unit of the values, who corrected.
_GENERATORS: tuple[tuple[re.Pattern[str], str, str, dict[str, str]], ...] = (
    (
        re.compile(r"#\[Logged with jHiccup(?: version (\S+?))?\]"), "jHiccup", "ns",
        {"corrected": "tool", "loop": "open", "measure": "service"},
    ),
    (re.compile(r"#\[Logging for: \S+\]"), "YCSB", "us", {}),
    (re.compile(r"#\s*Logging op latencies for Cassandra Stress"), "cassandra-stress", "ns", {}),
    (re.compile(r"#\s*\[?\s*logging histograms for session", re.IGNORECASE), "NoSQLBench", "ns", {}),
    (re.compile(r"#\[Logged with latencykit hiccup.*\]"), "latencykit hiccup", "ns", {}),
)  # fmt: skip


def sniff(head: Head) -> Confidence:
    """Tell a log by its version line, its legend or the shape of an interval line."""
    text = head.text
    if _PAYLOAD.search(text):
        return Confidence.CERTAIN
    if re.search(r"^#\s*Tag,Interval_Start,Interval_Length,count,", text, re.MULTILINE):
        return Confidence.NO  # statistics of intervals, with the head of a log
    if "#[Histogram log format version" in text or ("#[StartTime:" in text and _LEGEND.search(text)):
        return Confidence.CERTAIN
    if _LEGEND.search(text) and "Interval_Compressed_Histogram" in text:
        return Confidence.CERTAIN
    return Confidence.LIKELY if head.suffix == ".hlog" else Confidence.NO


def read(source: Source, options: ReadOptions) -> dict[str, Rung]:
    """Read a log; its payloads are decoded now if it is small, else when they are asked for."""
    scan = _Scan(source, options)
    scan.run()
    return {"": scan.log()}


class _Scan:
    """One pass over the lines."""

    def __init__(self, source: Source, options: ReadOptions) -> None:
        self.source, self.options = source, options
        self.times, self.tags, self.found = Times(), TagTable(), Intervals()
        self.comments: list[str] = []
        self.notes: list[str] = []
        self.end_legend = self.headed = False
        self.skipped = 0
        # Lines are decoded as they are read until there is too much to keep: a small log is read in one pass, and of
        # a large one only the places are noted. Under --lenient all are, for what is damaged has to be left out.
        self.eager = True
        self.part = HlogPart(source, self.found, self._error)
        self.builder = BlockBuilder(self._row_damaged)
        self.blocks: list[Block] = []
        self.kept_bytes = 0
        self.bad_rows: set[int] = set()
        self.offset = self.number = 0  # bytes and lines that were gone through
        self.limits = in_force()

    # ------------------------------------------------------------ lines

    def run(self) -> None:
        """Go through all lines; remember the intervals."""
        with self.source.open() as stream:
            while chunk := self._next(stream):
                if not chunk.endswith(b"\n"):
                    chunk += stream.readline(self.limits.line)
                elif chunk in _BLANK:  # there may be millions
                    chunk += stream.read(SPAN)
                    chunk += stream.readline(self.limits.line)
                if not self._intervals(chunk):
                    self._lines(chunk)
        self._keep(self.builder.flush())

    def _next(self, stream: IO[bytes]) -> bytes:
        """Read on: line by line until the log's clock is known, then as much as is looked at together."""
        if not self.times.decided:
            return stream.readline(self.limits.line)
        return stream.read(SPAN if self.eager else AHEAD)

    def _intervals(self, chunk: bytes) -> bool:
        """Take whole lines in, if all of them are ordinary intervals."""
        if not self.times.decided or not chunk.endswith(b"\n"):
            return False
        columns = columns_of(chunk, self.tags.codes)
        begin = len(self.found)
        if columns is None or begin + len(columns.size) > self.limits.intervals:
            return False
        try:
            payloads = open_payloads(columns.texts(chunk)) if self.eager else None
        except RowError:
            return False
        self.found.extend(columns, self.times.base or 0.0, self.offset, self.number + 1)
        self.number += len(columns.size)
        self.offset += len(chunk)
        if payloads is not None:
            self._keep(self.builder.add(range(begin, len(self.found)), payloads))
        return True

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
            for piece, at in _pieces(line):
                self._line(piece, self.offset + at, self.number, ended)
            self.offset += len(line)
        if self.number - len(self.found) > self.limits.others:
            raise self._beyond("others", f"more than {self.limits.others:,} lines that are no intervals")

    def _beyond(self, name: str, seen: str) -> LimitError:
        return LimitError(f"{self.source.shown}:{self.number}: {seen}; --limit {name}=SIZE (lk.limits) allows more")

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
                self._comment(text)
            else:
                self._interval(line, offset, number)
        except (LineError, PayloadError) as bad:
            expected = bad.expected if isinstance(bad, LineError) else ""
            if not ended or not text.strip(b"\0"):
                if not (self.headed or len(self.found) or self.skipped):  # it is all there is: a page, a message
                    raise self._error(number, str(bad), "an interval log") from None
                self.notes.append(f"the last line is incomplete and was left out ({bad})")
                return
            self._damaged(self._error(number, str(bad), expected))

    def _comment(self, text: bytes) -> None:
        if len(self.comments) < 1000:
            self.comments.append(text.decode("utf-8", "surrogateescape"))
        self.times.header(text)

    def _interval(self, line: bytes, offset: int, number: int) -> None:
        tag, stamp, column, payload = split_line(line.rstrip(b"\r\n"))
        row = len(self.found)
        opened = open_payload(payload) if self.eager else None
        if row >= self.limits.intervals:
            raise self._beyond("intervals", f"more than {self.limits.intervals:,} intervals")
        at = offset + line.index(payload, line.rindex(b","))
        self.found.add(self.times.absolute(stamp), column, at, len(payload), number, self.tags.code(tag))
        if opened is not None:
            self._keep(self.builder.add([row], Payloads.of([opened])))

    # ------------------------------------------------------------ damage

    def _error(self, line: int, reason: str, expected: str = "") -> CorruptInputError:
        if b"\0" in reason.encode("utf-8", "replace"):
            reason = printable(reason)
        before = bisect_left(self.found.line, line)
        read = f"{before:,} intervals before it were read; --lenient skips such lines"
        return self.source.corrupt(line, reason, expected, read)

    def _damaged(self, error: CorruptInputError) -> None:
        self.options.damaged(error)
        self.skipped += 1

    def _row_damaged(self, row: int, reason: str) -> None:
        self._damaged(self._error(self.found.line[row], reason))
        self.bad_rows.add(row)

    def _keep(self, blocks: Iterable[Block]) -> None:
        for block in blocks:
            if self.kept_bytes > KEEP:
                continue
            narrowed = narrow(block)
            self.kept_bytes += narrowed.nbytes
            self.blocks.append(narrowed)
            # What is kept grows as the file does: of a log that will be too large in the end no more is decoded twice.
            if self.kept_bytes * max(1.0, 0.8 * self.source.size / max(self.offset, 1)) > KEEP:
                self.kept_bytes = KEEP + 1
                self.blocks.clear()
                self.eager = self.options.lenient

    # ------------------------------------------------------------ the log

    def log(self) -> HistogramLog:
        """Return what was found as a log."""
        if self.skipped and not len(self.found):
            raise self.source.corrupt(None, f"none of its {self.skipped:,} lines is an interval", "an interval log", "is it one?")
        start, length = np.array(self.found.start, np.float64), np.array(self.found.length, np.float64)
        self._end_times(start, length)
        if self.kept_bytes <= KEEP:
            self.part.keep(self.blocks)
        first = self.times.first_start if self.times.first_start is not None else self.times.start
        origin = 0.0 if first is None else first
        offsets = start - origin
        good = np.array(sorted(set(range(start.size)) - self.bad_rows), np.int64) if self.bad_rows else np.arange(start.size)
        back = int((np.diff(offsets) < 0).sum())
        if back:
            self.notes.append(f"{back} intervals begin before the one above them; they were sorted by time")
        order = good[np.argsort(offsets[good], kind="stable")]
        if self.times.restarts:
            self.notes.append(f"StartTime stands {self.times.restarts + 1} times: logs laid end to end, each on its own clock")
        epoch = first if first is not None and first > EPOCH_FROM else None
        if first is not None and epoch is None and start.size:
            self.notes.append(f"StartTime {first:g} is no time since the epoch; only the distances between intervals are known")
        run, unit = self._run(epoch)
        return HistogramLog(
            offsets[order], length[order], [self.part], where=(np.zeros(order.size, np.int64), order),
            tag_code=np.array(self.found.tag, np.int64)[order], tag_names=self.tags.names, unit=unit, run=run,
        )  # fmt: skip

    def _end_times(self, start: np.ndarray[Any, Any], column: np.ndarray[Any, Any]) -> None:
        """Turn a column of end times into lengths."""
        base = self.times.base or 0.0
        if (self.end_legend or (start.size and column[0] >= start[0] - base)) and end_column(start - base, column):
            column -= start - base
            self.notes.append("the second column holds end times (as HdrHistogram_c writes them); lengths were taken from them")

    def _run(self, epoch: float | None) -> tuple[Run, str]:
        text = "\n".join(self.comments)
        facts: dict[str, Any] = {"start": epoch}
        unit, origin = self._told_unit(text)
        for pattern, tool, its_unit, pedigree in _GENERATORS:
            hit = pattern.search(text)
            if hit is not None:
                facts |= {"tool": tool, **pedigree}
                facts["version"] = hit[1] if hit.re.groups else None
                if origin == "assumed":
                    unit, origin = its_unit, "file"
                break
        self.notes += [comment[2:].rstrip("]") for comment in self.comments if comment.startswith(f"#[{COST}")]
        own = own_facts(text)
        facts |= {name: value for name, value in own.items() if name in ("corrected", "measure", "loop")}
        facts["failures_known"] = "failures" not in own
        if own.get("unit") in (*NANOSECONDS, "none") and self._told_unit(text)[1] == "assumed":
            unit, origin = own["unit"], "assumed" if own.get("unit_from") == "assumed" else "file"
        unit, unit_from = self.options.resolve_unit(unit, origin)
        return Run(unit=unit, unit_from=unit_from, notes=tuple(dict.fromkeys(self.times.notes + self.notes)), **facts), unit

    @staticmethod
    def _told_unit(text: str) -> tuple[str, UnitFrom]:
        hit = _HISTOGRAM_UNITS.search(text)
        if hit is not None and hit[1].lower() in _WORDS:
            return _WORDS[hit[1].lower()], "file"
        return "ns", "assumed"


def _pieces(line: bytes) -> list[tuple[bytes, int]]:
    """A physical line, cut at lone carriage returns; each piece with its offset."""
    body = line.rstrip(b"\r\n")
    if b"\r" not in body:
        return [(line, 0)]
    pieces, at = [], 0
    for piece in line.split(b"\r"):
        pieces.append((piece, at))
        at += len(piece) + 1
    return pieces


FORMATS = (
    Format(
        name="hlog",
        title="HdrHistogram interval log",
        rung="log",
        suffixes=(".hlog", ".hgrm.log"),
        sniff=sniff,
        read=read,
        write=write_hlog,
        unit="ns",
        example="java -javaagent:jHiccup.jar='-l hiccup.hlog' -jar app.jar   # writes hiccup.hlog; so does HistogramLogWriter",
    ),
)
