"""Writing HdrHistogram interval logs, version 1.3, as the reference does, with the unit said in a comment."""

from __future__ import annotations

import re
import time
from typing import IO, TYPE_CHECKING

from latencykit import codec
from latencykit.buckets import HdrBuckets
from latencykit.errors import UsageError
from latencykit.layouts import CellBuckets, cost, on_grid, widest
from latencykit.units import NANOSECONDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from latencykit.formats.base import Rung
    from latencykit.log import HistogramLog

__all__ = ["HlogWriter", "own_comment", "own_facts", "write_hlog"]

_UNIT_NAMES = {"ns": "nanoseconds", "us": "microseconds", "ms": "milliseconds", "s": "seconds"}
_OWN = re.compile(r"^#\[latencykit ([^\]\n]*)\]", re.MULTILINE)
_BAD_IN_TAG = frozenset(", \r\n\t")


def own_comment(facts: Mapping[str, str]) -> str:
    """Return facts as the inside of the comment that `own_facts` reads."""
    return "latencykit " + ", ".join(f"{name}: {value}" for name, value in facts.items())


def own_facts(text: str) -> dict[str, str]:
    """Return what latencykit wrote of a measurement into the comments of a log or of a percentile distribution.

    Examples
    --------
    >>> own_facts("#[latencykit unit: us, unit_from: assumed]")
    {'unit': 'us', 'unit_from': 'assumed'}
    """
    found: dict[str, str] = {}
    for own in _OWN.finditer(text):
        found |= {name: value for name, colon, value in (part.partition(": ") for part in own[1].split(", ")) if colon}
    return found


class HlogWriter:
    """Writes a log line by line; the file is valid after every line.

    Parameters
    ----------
    stream : file object
        Opened for bytes.
    start : float or None
        Seconds since the epoch at which offset 0 lies; None where it is not known.
    unit : str
        What one step of the recorded integers is: ``ns``, ``us``, ``ms``, ``s`` or ``none``.
    comments : iterable of str
        Further facts, one line each, written as ``#[…]``.
    """

    def __init__(self, stream: IO[bytes], start: float | None, unit: str = "ns", comments: Iterable[str] = ()) -> None:
        self._stream, self._start, self._unit, self._comments = stream, start, unit, tuple(comments)

    def header(self) -> None:
        """Write the comments, the version, StartTime, BaseTime and the legend."""
        lines = [f"#[{_one_line(comment)}]" for comment in self._comments]
        lines.append("#[Histogram log format version 1.3]")
        if self._start is not None:
            stamp = time.strftime("%a %b %d %H:%M:%S UTC %Y", time.gmtime(self._start))
            lines.append(f"#[StartTime: {self._start:.3f} (seconds since epoch), {stamp}]")
            lines.append(f"#[BaseTime: {self._start:.3f} (seconds since epoch)]")
        if self._unit in _UNIT_NAMES:
            lines.append(
                "#UNITS: StartTimestamp = seconds; Interval_Length = seconds; "
                f"values in the histogram = {_UNIT_NAMES[self._unit]}"
            )
        lines.append('"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"')
        self._stream.write("".join(line + "\n" for line in lines).encode("utf-8", "surrogateescape"))

    def interval(
        self,
        start: float,
        length: float,
        buckets: HdrBuckets,
        index: NDArray[np.int64],
        counts: NDArray[np.int64],
        tag: str | None = None,
    ) -> None:
        """Write one interval.

        Parameters
        ----------
        start, length : float
            Seconds from the log's start, and seconds.
        buckets : HdrBuckets
            The layout; a `scale` other than 1 is written as a DoubleHistogram.
        index, counts : ndarray of int64, shape (nonzero,)
        tag : str, optional

        Raises
        ------
        UsageError
            For a tag with a comma, blank or line break in it.
        """
        if tag and _BAD_IN_TAG & set(tag):
            raise UsageError(f"a tag in a log cannot hold commas, blanks or line breaks, as {tag!r} does; rename it")
        high = float(buckets.high(index[-1])) if index.size else 0.0
        payload = codec.encode(buckets, index, counts, double=buckets.scale != 1.0)
        front = f"Tag={tag}," if tag else ""
        line = f"{front}{start:.3f},{length:.3f},{high / 1e6:.3f},".encode("utf-8", "surrogateescape")
        self._stream.write(line + payload + b"\n")

    def comment(self, text: str) -> None:
        """Write a comment between intervals, as ``#[…]``."""
        self._stream.write(f"#[{_one_line(text)}]\n".encode("utf-8", "surrogateescape"))


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("]", ")")


def write_hlog(rung: Rung, path: Path, *, comments: Iterable[str] = ()) -> None:
    """Write a log (or what steps down to one: samples, or one histogram as a single interval) to a file.

    Parameters
    ----------
    rung : Samples, HistogramLog or Histogram
        Of HDR buckets: listed edges have no place in the format.
    path : Path
    comments : iterable of str
        Further comment lines.

    Raises
    ------
    UsageError
        For summaries and for buckets with listed edges.
    """
    from latencykit.histogram import Histogram
    from latencykit.log import HistogramLog
    from latencykit.samples import Samples

    if isinstance(rung, Samples):
        rung = rung.to_log("1s") if rung.start is not None else rung.histogram()
    if isinstance(rung, Histogram):
        rung = _single(rung)
    if not isinstance(rung, HistogramLog):
        raise UsageError("a summary has no buckets to write into an .hlog; convert the tool's full output instead")
    rung = _from_zero(rung)
    factor, unit = _stored_unit(rung)
    guessed = rung.run.unit_from == "assumed"
    told = {"unit": unit if guessed or unit == "none" else "unknown", "unit_from": "assumed" if guessed else "unknown"}
    told |= {"corrected": rung.run.corrected, "measure": rung.run.measure, "loop": rung.run.loop}
    known = {name: value for name, value in told.items() if value != "unknown"}
    run = rung.run
    if not run.failures_known or run.failed + run.timeouts + run.dropped + run.unfinished:
        known["failures"] = "not in this log"
    with path.open("wb") as stream:
        stated = "none" if guessed else unit  # a guess must not become a fact by being copied
        writer = HlogWriter(stream, rung.start, stated, [*comments, *([own_comment(known)] if known else [])])
        writer.header()
        _write_rows(rung, writer, factor)


def _from_zero(log: HistogramLog) -> HistogramLog:
    """The log with its earliest interval as its start, if any began before that: readers drop negative time stamps."""
    early = min(float(log.starts.min(initial=0.0)), 0.0)
    if not early:
        return log
    return log.shifted(-early)


def _stored_unit(log: HistogramLog) -> tuple[float, str]:
    """What to divide scales by, and the unit that is then stored: the source's own, so that its integers come back."""
    stored = log.run.unit if log.run.unit in NANOSECONDS and log.unit in NANOSECONDS else log.unit
    factor = 1.0 if stored == log.unit else NANOSECONDS[stored] / NANOSECONDS[log.unit]
    return factor, stored


def _write_rows(log: HistogramLog, writer: HlogWriter, factor: float) -> None:
    """Write the rows in order of time; blocks arrive in file order, so a late row waits for those before it."""
    tags = log.tag_of_rows()
    waiting: dict[int, tuple[HdrBuckets, NDArray[np.int64], NDArray[np.int64]]] = {}
    following = 0
    widest_yet = 0.0
    for block in log.blocks():
        if not isinstance(block.buckets, HdrBuckets | CellBuckets):
            raise UsageError("only HDR buckets fit into an .hlog; write .csv, .json or .parquet instead")
        if isinstance(block.buckets, CellBuckets) and block.buckets.overlap:
            width, low, high = widest(block.buckets, block.index)
            if width > widest_yet:
                widest_yet = width
                writer.comment(cost(width, low, high, log.unit))
        for k, row in enumerate(block.rows.tolist()):
            entries = slice(int(block.indptr[k]), int(block.indptr[k + 1]))
            layout, index, counts = on_grid(block.buckets, block.index[entries], block.counts[entries])
            assert isinstance(layout, HdrBuckets)
            if not layout.reaches(index):
                raise UsageError(
                    "an .hlog cannot hold values that differ by more than 2**63 in one interval; write shorter intervals, "
                    "or .csv, .json or .parquet"
                )
            waiting[row] = (HdrBuckets(layout.digits, layout.lowest, layout.scale / factor), index, counts)
        while following in waiting:
            writer.interval(
                float(log.starts[following]),
                float(log.lengths[following]),
                *waiting.pop(following),
                tags[following],
            )
            following += 1
    for row in sorted(waiting):
        writer.interval(float(log.starts[row]), float(log.lengths[row]), *waiting[row], tags[row])


def _single(histogram: Histogram) -> HistogramLog:  # type: ignore[name-defined]  # noqa: F821
    """One histogram as a log of one interval."""
    import numpy as np

    from latencykit.blocks import Block, MemoryPart
    from latencykit.log import HistogramLog

    indptr = np.array([0, histogram.index.size])
    block = Block(np.zeros(1, np.int64), indptr, histogram.index, histogram.counts, histogram.buckets)
    length = histogram.run.duration or 0.0
    return HistogramLog([0.0], [length], [MemoryPart([block])], unit=histogram.unit, run=histogram.run)
