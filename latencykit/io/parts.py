"""Files as results: series or sums of them, reports, or the error.

`read_all` reads every series of several files, here or by an executor of any kind.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from latencykit._limits import check_series
from latencykit._records import record
from latencykit._text import without_secrets
from latencykit._typing import is_path_or_frame
from latencykit.core.blocks import Block, MemoryPart
from latencykit.core.histogram import Histogram
from latencykit.core.histogram_log import HistogramLog, blocks_of, interval_tags
from latencykit.core.run import Measure, Run, shown_parts
from latencykit.errors import InvalidArgumentError, LatencyKitError, require
from latencykit.io.files import source_of
from latencykit.io.reading import Selection, listed, select, unique_names
from latencykit.io.source import Data
from latencykit.units import format_duration

if TYPE_CHECKING:
    from concurrent.futures import Executor

MAX_TRANSFER_BYTES = 32 << 20
"""Bytes of a log's counts that a cluster returns unchanged, if nothing is asked of it."""
_BINS = 1000  # of a log that is larger


@record()
class PartResult:
    """The result of one file, or of many."""

    series: tuple[tuple[str, Any], ...] = ()  # names, and the data or answers
    reports: tuple[str, ...] = ()  # what `lenient` skipped, and other notes
    error: LatencyKitError | None = None


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
    url: str,
    selection: Selection,
    ask: Callable[[object], object] | None = None,
    *,
    key: Literal["label", "tag", "all"] = "label",
    shown: bool = False,
    most: float = math.inf,
) -> PartResult:
    """Read a file and ask each of its series; an error is part of the result."""
    # The `key` of each series is its label, its tag (of a single series), or the same for all but
    # aggregates. With `shown`, all series are for one chart or page, and more than it shows are
    # refused before their intervals are read. Series after the first `most` are `NotAsked`, but
    # for logs without a total: who asks them reads the file.
    reports: list[str] = []
    try:
        source = source_of(url)
        rows = select(source, replace(selection, report=reports.append))
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
        answers: list[tuple[str, object]] = []
        if any(isinstance(data, HistogramLog) for _, data in named):
            most = most if named[0][1].run.aggregate else math.inf
        rows.clear()
        named.reverse()
        while named:  # what a series caches is freed before the next
            name, data = named.pop()
            asked = len(answers) < most
            answer = NotAsked(data.run) if not asked else data if ask is None else ask(data)
            answers.append((name, answer))
    except LatencyKitError as error:
        return PartResult((), tuple(reports), error)
    return PartResult(tuple(answers), tuple(reports))


def for_transfer(data: object, most: float = math.inf, *, reachable: bool = False) -> Any:
    """Return data for another process: a log has its sum, and its intervals in memory."""
    # A log of more than `most` bytes is returned as it is where the other process can read its file
    # (`reachable`), else as time bins.
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
            return for_transfer(data.resample(width)).with_run(notes=(*data.run.notes, text))
    return in_memory(data, blocks, whole)


def in_memory(
    log: HistogramLog, blocks: Sequence[Block], whole: Histogram | None = None
) -> HistogramLog:
    """Return a log whose intervals are these blocks."""
    from latencykit.core.columns import Words

    tags = Words.of(interval_tags(log)).sorted()
    return HistogramLog(
        log.starts,
        log.lengths,
        [MemoryPart(blocks)],
        tag_code=tags.codes,
        tag_names=tuple(tags.names.tolist()) or ("",),
        unit=log.unit,
        run=log.run,
        whole=whole,
    )


def read_all(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    format: str | None = None,  # noqa: A002 - the contract's name
    series: str | Sequence[str] | None = None,
    tag: str | Sequence[str] | None = None,
    measure: Measure | None = None,
    unit: str | None = None,
    column: str | None = None,
    start_column: str | None = None,
    pattern: str | None = None,
    lenient: bool = False,
    counted: bool = False,
    jobs: int | None = None,
    executor: Executor | None = None,
) -> dict[str, Data]:
    """Read every series of several files.

    Parameters
    ----------
    paths, format, series, tag, measure, unit, column, start_column, pattern, lenient, counted, jobs
        As `latencykit.read` takes them; several paths, series and tags.
    executor : concurrent.futures.Executor, optional
        Reads the files: a `ProcessPoolExecutor`, or ``client.get_executor()`` of a Dask cluster,
        whose workers need latencykit and access to the files. Data comes back in memory; a log of
        more than 32 MB as time bins.

    Returns
    -------
    dict of str to data type
        One entry per series (of a tagged log, one per tag); equal names are prefixed with as much
        of the path as distinguishes them.
    """
    selection = Selection(
        format=format,
        series=listed(series),
        tags=listed(tag),
        measure=measure,
        unit=unit,
        column=column,
        start_column=start_column,
        pattern=pattern,
        lenient=lenient,
        counted=counted,
        jobs=jobs,
        anywhere=True,
    )
    given: Any = [paths] if is_path_or_frame(paths) else paths
    require(given, Iterable, "paths or URLs as text")
    urls = list[str]()
    for path in given:
        require(path, (str, os.PathLike), "paths or URLs as text; lk.read takes a frame")
        urls.append(str(path))
    results: Iterable[Iterable[tuple[str, Data]]]
    if executor is None:
        sources = map(source_of, urls)
        results = (
            [(tag or name, data) for name, tag, data in select(source, selection)]
            for source in sources
        )
    else:
        ask = functools.partial(for_transfer, most=MAX_TRANSFER_BYTES)
        read = functools.partial(read_part, selection=selection, ask=ask)
        parts = executor.map(read, urls)  # Dask maps over no iterator
        results = (checked(part).series for part in parts)
    return unique_names(
        [
            (without_secrets(url), name, data)
            for url, series in zip(urls, results, strict=True)
            for name, data in series
        ]
    )
