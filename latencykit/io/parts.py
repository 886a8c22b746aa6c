"""Files and ranges of files as results: series or sums of them, reports, or the error."""

from __future__ import annotations

import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit._limits import check_series
from latencykit._records import record
from latencykit.core.blocks import Block, MemoryPart
from latencykit.core.histogram_log import HistogramLog, LogPart
from latencykit.core.run import reporting
from latencykit.errors import InvalidArgumentError, LatencyKitError
from latencykit.io.files import source_of
from latencykit.io.reading import select
from latencykit.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Literal

    from numpy.typing import NDArray

    from latencykit.io.files import FileRange
    from latencykit.io.reading import Selection

    Ints = NDArray[np.int64]

__all__ = ["PartResult", "bar", "checked", "in_memory", "portable", "read_part", "waiting"]

_LONG = 5_000  # intervals: longer logs are decoded once, and answer fewer questions
_CELLS = 24


@record()
class PartResult:
    """The result of one file or range, or of many.

    Attributes
    ----------
    series : tuple of (str, object)
        Name of a series, and its data or the result of a question about it.
    reports : tuple of str
        What ``lenient`` skipped, and other notes.
    error : LatencyKitError or None
    restarted : bool
        Whether a range of lines sets the clock anew: the ranges behind it cannot know that.
    """

    series: tuple[tuple[str, Any], ...] = ()
    reports: tuple[str, ...] = ()
    error: LatencyKitError | None = None
    restarted: bool = False


def checked(result: PartResult) -> PartResult:
    """Return the result, or raise its error."""
    if result.error is not None:
        raise result.error
    return result


def read_part(
    place: FileRange,
    selection: Selection,
    ask: Callable[[Any], Any] | None = None,
    *,
    key: Literal["label", "tag", "all"] = "label",
    hold: float = 0.0,
    travel: float = 0.0,
    shown: bool = False,
    before: Callable[[int], None] | None = None,
) -> PartResult:
    """Read a file or range and ask each of its series; an error is part of the result.

    The `key` of each series is its label, its tag (of a single series), or the same for all but
    aggregates. A log may take `hold` bytes in memory, so that several questions decode it once,
    or `travel` bytes on its way to another process. With `shown`, all series are for one chart or
    page, and more than it shows are refused before their intervals are read. `before` learns the
    number of series before any of them is asked.
    """
    reports: list[str] = []
    is_part = place.end > 0
    try:
        source = source_of(place)
        rows = select(source, selection, reports.append, part=is_part)
        if key == "tag":
            names = list(dict.fromkeys(series for series, _, _ in rows))
            if len(names) > 1:
                raise InvalidArgumentError(
                    f"{source.shown}: has several series: {', '.join(names)}; "
                    "name one with series= (--series)"
                )
            named = [(tag, data) for _, tag, data in rows]
        elif key == "all":
            single = [("", data) for _, _, data in rows if not data.run.aggregate]
            named = single or [("", data) for _, _, data in rows]
        else:
            named = [(tag or series, data) for series, tag, data in rows]
        if shown:
            check_series(sum(not data.run.aggregate for _, data in named))
        if before is not None:
            before(len(named))
        if hold:
            named = [(name, in_memory(data, hold)) for name, data in named]
        if travel:
            anew = partial(_read_again, place, selection)
            named = [
                (name, portable(data, travel, partial(anew, k)))
                for k, (name, data) in enumerate(named)
            ]
        with reporting(reports.append):
            answers = []
            rows.clear()
            named.reverse()
            while named:  # what a series caches is freed before the next
                name, data = named.pop()
                answers.append((name, data if ask is None else ask(data)))
    except LatencyKitError as error:
        return PartResult((), tuple(reports), error)
    return PartResult(tuple(answers), tuple(reports), None, getattr(source, "restarted", False))


def _read_again(place: FileRange, selection: Selection, number: int) -> Any:
    return select(source_of(place), selection)[number][2]


# ------------------------------------------------------------
# Logs that answer several questions, and logs that travel between processes of one machine.


class _Again:
    """Intervals that are read anew, in the process that asks for them."""

    def __init__(self, read: Callable[[], HistogramLog]) -> None:
        self._read = read
        self._part: LogPart | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_read": self._read, "_part": None}

    def blocks(self, rows: Ints) -> Iterator[Block]:
        """Yield the blocks of the given rows."""
        if self._part is None:
            self._part = LogPart(self._read())
        yield from self._part.blocks(rows)


def in_memory(data: Any, most: float, *, travels: bool = False) -> Any:
    """Return a log with its intervals in memory, so that several questions decode it once.

    One that takes more than `most` bytes is returned unchanged, and so is one that keeps them by
    itself, unless it travels to another process.
    """
    if not isinstance(data, HistogramLog) or not 0 < len(data) <= _LONG:
        return data
    if not travels and LogPart(data).in_memory:
        return data
    blocks: list[Block] = []
    rows = size = 0
    for block in data.blocks():
        rows += block.rows.size
        blocks.append(block.kept())
        size += blocks[-1].nbytes
        if size > most * (rows / len(data)):  # extrapolate to all intervals
            return data
    return data._mapped_through(lambda _: MemoryPart(blocks))  # noqa: SLF001


def portable(data: Any, most: float, read: Callable[[], HistogramLog]) -> Any:
    """Return data for another process: a log has its sum, and its intervals or a reader."""
    if not isinstance(data, HistogramLog):
        return data
    kept = in_memory(data, most, travels=True)
    shared = kept
    if kept is data:
        shared = data._mapped_through(lambda _: _Again(read))  # noqa: SLF001
    return shared.rows(np.arange(len(shared)), whole=kept.histogram())


# ------------------------------------------------------------ progress


def bar(what: str, visible: bool | None = None) -> Callable[[int, int], None]:
    """Return a function of (done, of all) that draws a bar on standard error, if a terminal."""
    stream = sys.stderr
    if stream is None or not (stream.isatty() if visible is None else visible):
        return lambda *_: None
    began = shown = time.monotonic()

    def draw(done: int, of: int) -> None:
        nonlocal shown, began
        now = time.monotonic()
        if done == 1:
            began = now  # the time of an earlier pass does not predict the next
        if done < of and now - shown < 0.2:
            return
        shown = now
        stream.write(line(what, done, of, now - began) + ("\x1b[K\n" if done == of else "\x1b[K"))
        stream.flush()

    return draw


def waiting(address: str, size: int) -> None:
    """Show on a terminal which server is waited for; the bar is drawn over it."""
    text = f"{address[-48:]}: {size:,} bytes received" if address else ""
    sys.stderr.write(f"\r{text}\x1b[K")
    sys.stderr.flush()


def line(what: str, done: int, of: int, seconds: float) -> str:
    """Return the text of the bar: cells, counts and the estimated time left."""
    full = _CELLS * done // max(of, 1)
    left = f", {format_duration(seconds / done * (of - done) * 1e9)} left" if 0 < done < of else ""
    return f"\r{what} {'█' * full}{'·' * (_CELLS - full)} {done:,} of {of:,}{left}"
