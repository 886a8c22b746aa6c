"""When the earliest of many logs begins, found by whichever process reads them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from latencykit.core.histogram_log import HistogramLog
from latencykit.core.samples import Samples
from latencykit.distributed.executors import read_each
from latencykit.errors import DataNotAvailableError, IncompatibleDataError, LatencyKitError
from latencykit.io.files import read_head
from latencykit.io.parts import PartResult, read_part
from latencykit.io.reading import Selection, select

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Executor

    from latencykit.distributed.executors import LocalExecutor, Task
    from latencykit.io.files import FileRange


def earliest_start(
    executor: LocalExecutor | Executor, selection: Selection, tasks: Sequence[Task]
) -> float | None:
    """Return the earliest start of all logs, seconds since the epoch; None if none states it."""
    read = functools.partial(_start, selection=selection)
    results = read_each(executor, read, tasks, lambda *_: None, lenient=selection.lenient)
    starts = {start for result in results for _, some in result.series for start in some}
    if None in starts and len(starts) > 1:
        raise IncompatibleDataError(
            "some of these logs do not say when they began; align them with --align relative"
        )
    return min((start for start in starts if start is not None), default=None)


def _start(place: FileRange, selection: Selection) -> PartResult:
    """When a file begins: its first bytes state it, if it is a log."""
    try:
        with read_head(place) as source:
            rows = select(
                source, Selection(format=selection.format, series=selection.series, lenient=True)
            )
        data: Any = rows[0][2]  # all tags begin with their log
        timed = isinstance(data, HistogramLog) and (data.start is not None or len(data))
        if timed and len({series for series, _, _ in rows}) == 1:
            return PartResult((("start", (data.start,)),))
    except LatencyKitError:  # the complete file states it, or has an error of its own
        pass
    result = read_part(place, selection, _start_of, key="tag")
    if result.error is not None:
        return PartResult((), result.reports, result.error)
    return PartResult((("start", tuple(start for _, start in result.series)),), result.reports)


def _start_of(data: Any) -> float | None:
    if isinstance(data, Samples):
        return data.to_log().start
    if not isinstance(data, HistogramLog):
        raise DataNotAvailableError(
            f"{data.run.source}: has no times; a log or samples with start times would"
        )
    return data.start
