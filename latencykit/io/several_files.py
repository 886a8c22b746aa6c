"""`read_all`: every series of several files, here or by an executor of any kind."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, cast

from latencykit._text import without_secrets
from latencykit.io.files import FileRange, source_of
from latencykit.io.reading import (
    TRAVELS,
    Selection,
    carried,
    checked,
    listed,
    read_part,
    select,
    unique_names,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence
    from concurrent.futures import Executor

    from latencykit.core.run import Measure
    from latencykit.io.source import Data


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
    lenient: bool = False,
    counted: bool = False,
    jobs: int | None = None,
    executor: Executor | None = None,
) -> dict[str, Data]:
    """Read every series of several files.

    Parameters
    ----------
    paths, format, series, tag, measure, unit, column, start_column, lenient, counted, jobs
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
        lenient=lenient,
        counted=counted,
        jobs=jobs,
        anywhere=True,
    )
    several = not (isinstance(paths, str) or hasattr(paths, "__fspath__"))
    urls = list(map(str, cast("Iterable[object]", paths) if several else [paths]))
    results: Iterable[Iterable[tuple[str, Data]]]
    if executor is None:
        entries = (select(source_of(FileRange(url)), selection) for url in urls)
        results = ([(label or name, data) for name, label, data in chosen] for chosen in entries)
    else:
        ask = functools.partial(carried, most=TRAVELS)
        read = functools.partial(read_part, selection=selection, ask=ask)
        parts = executor.map(read, list(map(FileRange, urls)))  # Dask maps over no iterator
        results = (checked(part).series for part in parts)
    return unique_names(
        [
            (without_secrets(url), name, data)
            for url, series in zip(urls, results, strict=True)
            for name, data in series
        ]
    )
