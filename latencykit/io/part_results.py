"""Files and ranges of files as results: series or sums of them, reports, or the error."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit._limits import check_series
from latencykit._records import record
from latencykit.core.blocks import MemoryPart
from latencykit.core.histogram_log import HistogramLog, blocks_of, interval_tags
from latencykit.core.run import reporting, shown_parts
from latencykit.errors import InvalidArgumentError, LatencyKitError
from latencykit.io.files import source_of
from latencykit.io.reading import select
from latencykit.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Literal

    from latencykit.core.blocks import Block
    from latencykit.core.histogram import Histogram
    from latencykit.core.run import Run
    from latencykit.io.files import FileRange
    from latencykit.io.reading import Selection


TRAVELS = 32 << 20
"""Bytes of a log's counts that a cluster returns unchanged, if nothing is asked of it."""
_BINS = 1000  # of a log that is larger


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


@record()
class NotAsked:
    """A series that was not asked, for a table does not show it."""

    run: Run


def checked(result: PartResult) -> PartResult:
    """Return the result, or raise its error."""
    if result.error is not None:
        raise result.error
    return result


def read_part(
    place: FileRange,
    selection: Selection,
    ask: Callable[[object], object] | None = None,
    *,
    key: Literal["label", "tag", "all"] = "label",
    shown: bool = False,
    before: Callable[[int], None] | None = None,
    most: float = math.inf,
) -> PartResult:
    """Read a file or range and ask each of its series; an error is part of the result.

    The `key` of each series is its label, its tag (of a single series), or the same for all but
    aggregates. With `shown`, all series are for one chart or page, and more than it shows are
    refused before their intervals are read. `before` learns the number of series before any of
    them is asked. Behind a total, which has read all of the file, series after the first `most`
    are `NotAsked`.
    """
    reports: list[str] = []
    is_part = place.end > 0
    try:
        source = source_of(place)
        rows = select(source, replace(selection, report=reports.append), part=is_part)
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
        if shown and named:
            (label, total), *parts = named
            if total.run.aggregate and not any(data.run.aggregate for _, data in parts):
                total, some = shown_parts(total, parts)
                named = [(label, total), *some]
            check_series(sum(not data.run.aggregate for _, data in named))
        if before is not None:
            before(len(named))
        with reporting(reports.append):
            answers: list[tuple[str, object]] = []
            most = most if named and named[0][1].run.aggregate else math.inf
            rows.clear()
            named.reverse()
            while named:  # what a series caches is freed before the next
                name, data = named.pop()
                asked = len(answers) < most
                answer = NotAsked(data.run) if not asked else data if ask is None else ask(data)
                answers.append((name, answer))
    except LatencyKitError as error:
        return PartResult((), tuple(reports), error)
    return PartResult(tuple(answers), tuple(reports), None, getattr(source, "restarted", False))


def carried(data: object, most: float = math.inf, *, reachable: bool = False) -> Any:
    """Return data for another process: a log has its sum, and its intervals in memory.

    A log of more than `most` bytes is returned as it is where the other process can read its file
    (`reachable`), else as time bins.
    """
    if not isinstance(data, HistogramLog):
        return data
    whole, blocks, size = data.histogram(), [], 0
    for block in blocks_of(data):
        blocks.append(block.kept())
        size += blocks[-1].nbytes
        if size > most and reachable:
            return data
        if size > most and len(data) > _BINS:
            width = data.duration / _BINS
            text = (
                f"its {len(data):,} intervals travelled as time bins of "
                f"{format_duration(width * 1e9)}; sums and maxima are exact"
            )
            return carried(data.resample(width)).with_run(notes=(*data.run.notes, text))
    return in_memory(data, blocks, whole)


def in_memory(
    log: HistogramLog, blocks: Sequence[Block], whole: Histogram | None = None
) -> HistogramLog:
    """Return a log whose intervals are these blocks."""
    names, codes = np.unique(np.asarray(interval_tags(log), np.str_), return_inverse=True)
    return HistogramLog(
        log.starts,
        log.lengths,
        [MemoryPart(blocks)],
        tag_code=codes,
        tag_names=tuple(names.tolist()) or ("",),
        unit=log.unit,
        run=log.run,
        whole=whole,
    )
