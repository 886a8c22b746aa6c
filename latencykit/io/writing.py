"""Writing to files by suffix; CSV with one row per bucket, interval or request."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latencykit._files import whole
from latencykit._text import guarded, option
from latencykit._typing import AnyArray
from latencykit.core.columns import Words
from latencykit.core.histogram import Histogram
from latencykit.core.histogram_log import (
    HistogramLog,
    blocks_of,
    interval_series,
    interval_tags,
    merge_logs,
)
from latencykit.core.run import PROVENANCE, Run, failure_counts, require_data
from latencykit.core.samples import OUTCOMES, Samples
from latencykit.core.summary import Summary
from latencykit.errors import InvalidArgumentError, require_path
from latencykit.io.source import Data, level_name
from latencykit.units import NANOSECONDS, format_percentile, parse_percentile


def write_csv(
    series: Mapping[str, Data],
    path: Path,
    percentiles: str | None = None,
    out_unit: str | None = None,
) -> None:
    """Write series of one kind as a table; the unit stands in the names of the columns."""
    columns = None if percentiles is None else list(map(parse_percentile, percentiles.split(",")))
    facts = _known_facts(series.values())
    kinds = {(level_name(data), data.unit): name for name, data in series.items()}
    if len(kinds) > 1:
        named = ", ".join(f"{name}: {level} in {unit}" for (level, unit), name in kinds.items())
        raise InvalidArgumentError(
            f"series of several kinds or units do not fit into one table ({named}); choose one "
            "with --series, or write .json"
        )
    requests = {name: data for name, data in series.items() if isinstance(data, Samples)}
    tables: Iterable[tuple[str, dict[str, AnyArray]]] = requests_tables(
        requests, guarded, out_unit
    ).items()
    if not requests:
        tables = (
            (name, table)
            for name, data in series.items()
            for table in _tables(data, columns, facts, out_unit)
        )
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        for number, (name, table) in enumerate(tables):
            if number == 0:
                writer.writerow(["series", *table])
            rows = zip(*map(_plain, table.values()), strict=True)
            writer.writerows((guarded(name), *row) for row in rows)


def _plain(column: AnyArray) -> list[Any]:
    """Whole numbers without a decimal point, nothing for not-a-number."""
    array = np.asarray(column)
    if array.dtype.kind != "f":
        return list(array.tolist())
    whole = np.isfinite(array) & (np.abs(array) < 2**53)
    if whole.all() and (array == np.rint(array)).all():
        return list(array.astype(np.int64).tolist())
    return ["" if value != value else value for value in array.tolist()]


def _tables(
    data: Data, percentiles: Sequence[float] | None, facts: Sequence[str], out_unit: str | None
) -> Iterator[dict[str, AnyArray]]:
    """The columns of a series; of a log's buckets a table per block."""
    if isinstance(data, HistogramLog) and percentiles is not None:
        series = interval_series(data, percentiles)
        names = map(format_percentile, series.percentiles)
        columns = {f"p{p}": v for p, v in zip(names, series.values.T, strict=True)}
        yield {
            "start_s": np.round(series.start, 6),
            "length_s": np.round(series.length, 6),
            "tag": _cells(interval_tags(data)),
            "count": series.count,
            **_values(data, out_unit, {**columns, "max": series.max}),
        }
    elif isinstance(data, HistogramLog):
        tags = _cells(interval_tags(data))
        for block in blocks_of(data):
            row = block.rows[block.entry_rows]
            yield {
                "start_s": np.round(data.starts[row], 6),
                "length_s": np.round(data.lengths[row], 6), "tag": tags[row],
                "index": block.index,
                **_values(data, out_unit, {
                    "low": block.buckets.low(block.index),
                    "high": block.buckets.upper_edge(block.index),
                }),
                "count": block.counts, **_provenance(data, facts, row.size),
            }  # fmt: skip
    elif isinstance(data, Histogram):
        low, high, counts = data.buckets.low(data.index), data.buckets.high(data.index), data.counts
        if data.censored:  # a last row without an upper edge
            low, high = np.append(low, data.censored_at), np.append(high, np.nan)
            counts = np.append(counts, data.censored)
        yield {
            **_values(data, out_unit, {"low": low, "high": high}),
            "count": counts, **_provenance(data, facts, low.size),
        }  # fmt: skip
    elif isinstance(data, Summary):
        count = [] if data.count is None else [data.count]
        reported = data.reported_percentiles.items()
        numbers = {**data.stats, **{f"p{format_percentile(p)}": v for p, v in reported}}
        values = _values(data, out_unit, {"value": np.array([*numbers.values()], np.float64)})
        yield {
            "statistic": _cells(["count"] * len(count) + [*numbers]),
            **{name: np.append(count, column) for name, column in values.items()},
            **_provenance(data, facts, len(count) + len(numbers)),
        }


def _values(
    data: Data, out_unit: str | None, columns: Mapping[str, AnyArray]
) -> dict[str, AnyArray]:
    """Columns of latencies, the unit in their names; a quotient has no noise in its last digits."""
    unit = out_unit if out_unit and data.unit in NANOSECONDS else data.unit
    suffix = f"_{unit}{'_assumed' if data.run.unit_from == 'assumed' else ''}"
    if unit != data.unit:
        own, per = NANOSECONDS[data.unit], NANOSECONDS[unit]
        columns = {name: column * own / per for name, column in columns.items()}
    return {f"{name}{suffix}": column for name, column in columns.items()}


def _known_facts(series: Iterable[Data]) -> list[str]:
    """Facts about the measurement that some series states."""
    runs = [data.run for data in series]
    return [
        name for name in PROVENANCE if any(_fact(run, name) not in ("", "none") for run in runs)
    ]


def _fact(run: Run, name: str) -> str:
    if name == "failures_known":
        return "" if run.failures_known and not any(failure_counts(run).values()) else "no"
    fact = getattr(run, name)
    return "" if fact in (None, "unknown") else str(fact)


def _provenance(data: Data, facts: Sequence[str], size: int) -> dict[str, AnyArray]:
    return {name: np.full(size, guarded(_fact(data.run, name)), object) for name in facts}


def requests_tables(
    series: Mapping[str, Samples], safe: Callable[[str], str] = str, out_unit: str | None = None
) -> dict[str, dict[str, AnyArray]]:
    """A table per series, its own columns first, texts `safe`; all have the same columns."""
    facts = _known_facts(series.values())
    tables: dict[str, dict[str, Any]] = {}
    for name, data in series.items():
        times = {"start": data.start, "duration": data.duration, "intended": data.intended}
        columns: dict[str, Any] = {
            **_values(data, out_unit, {k: t for k, t in times.items() if t is not None}),
            "outcome": None if data.outcome is None else np.asarray(OUTCOMES)[data.outcome],
            "connection": data.connection,
            "tag": None if data.tag is None else _cells(data.tag.tolist(), safe),
        }
        table = {key: column for key, column in columns.items() if column is not None}
        for key in data.columns:
            cells = data.columns.cells(key)
            if isinstance(cells, Words):
                cells = np.array([*map(safe, cells.names), ""], object)[cells.codes]
            table.setdefault(key, cells)
        tables[name] = table | {
            key: cells
            for key, cells in _provenance(data, facts, len(data.duration)).items()
            if key not in table
        }
    if any("outcome" in table for table in tables.values()):
        for name, data in series.items():
            tables[name].setdefault("outcome", np.full(len(data.duration), OUTCOMES[0], object))
    names = list(dict.fromkeys(key for table in tables.values() for key in table))
    for name, table in tables.items():  # empty where only others have a column
        none = np.full(len(series[name].duration), None, object)
        tables[name] = {key: table.get(key, none) for key in names}
    return tables


def _cells(texts: Sequence[str], safe: Callable[[str], str] = guarded) -> NDArray[np.object_]:
    changed = {text: safe(text) for text in set(texts)}
    return np.asarray([changed[text] for text in texts], object)


# ------------------------------------------------------------
# From data types to a file, by its suffix.


_OPTIONS = {".hgrm": ("out_unit", "ticks", "csv"), ".csv": ("out_unit", "percentiles")}
"""What else may be chosen of a format."""


def write_series(series: Mapping[str, Data], path: Path, suffix: str = "", **options: Any) -> None:
    """Write one or several series to a file; its suffix, or this one, names the format."""
    from latencykit.io import native_json as json_native
    from latencykit.io.hgrm import write_hgrm
    from latencykit.io.hlog import as_log, write_hlog

    suffix = suffix or checked_suffix(path)
    options = {name: value for name, value in options.items() if value is not None}
    for name in options:
        if name not in _OPTIONS.get(suffix, ()):
            takers = " and ".join(taker for taker, names in _OPTIONS.items() if name in names)
            raise InvalidArgumentError(
                f"{option(name.replace('_', '-'))} applies to {takers}, not to {suffix}"
            )
    if suffix == ".hlog":
        data = next(iter(series.values()))
        if len(series) > 1:  # one log with a tag per series: its own, or its name
            logs = {name: as_log(data) for name, data in series.items()}
            tagged = any(log.run.tags for log in logs.values())  # one without is the untagged rest
            data = merge_logs(
                [
                    log.with_tag(log.run.tags[0] if log.run.tags else None if tagged else name)
                    for name, log in logs.items()
                ]
            )
        write_hlog(data, path)
    elif suffix == ".hgrm":
        if len(series) > 1:
            raise InvalidArgumentError(
                f"an .hgrm holds one series, not {len(series)} ({', '.join(series)}); choose one "
                "with --series or --tag"
            )
        write_hgrm(next(iter(series.values())), path, **options)
    elif suffix == ".csv":
        write_csv(series, path, **options)
    elif suffix == ".json":
        json_native.write_json(series, path)
    else:
        from latencykit.io import parquet

        samples = {name: data for name, data in series.items() if isinstance(data, Samples)}
        if len(samples) == len(series):
            parquet.write_requests(requests_tables(samples), path)
        else:
            parquet.write_parquet(series, path)


def checked_suffix(path: Path) -> str:
    """Return the suffix of a file to write, or raise `InvalidArgumentError` for another one."""
    suffix = path.suffix.lower()
    if suffix not in (".hlog", ".hgrm", ".csv", ".json", ".parquet"):
        named = suffix or "a file without a suffix"
        raise InvalidArgumentError(
            f"{path.name}: cannot write {named}; take .hlog, .hgrm, .csv, .json or .parquet"
        )
    return suffix


def write(
    data: Data,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002 - the contract's name
) -> Path:
    """Write one data type to a file, completely or not at all.

    Parameters
    ----------
    data : Samples, HistogramLog, Histogram or Summary
    path : str or os.PathLike
        The suffix chooses the format: ``.hlog``, ``.hgrm``, ``.csv``, ``.json`` or ``.parquet``.
    format : str, optional
        ``"hlog"``, ``"hgrm"``, ``"csv"``, ``"json"`` or ``"parquet"``, whatever the suffix.

    Returns
    -------
    Path
        Where it was written.

    Raises
    ------
    InvalidArgumentError
        For another suffix or format.
    DataNotAvailableError
        Where the format needs more than the data holds.

    Examples
    --------
    >>> import tempfile
    >>> from latencykit.core.histogram import Histogram
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Histogram.of([1, 2, 3]), f"{folder}/h.hgrm").name
    'h.hgrm'
    """
    require_data(data, "write")
    require_path(path)
    target = Path(path)
    chosen = checked_suffix(target if format is None else Path(f"data.{format}"))
    with whole(target) as temporary:
        write_series({data.run.source or target.stem: data}, temporary, chosen)
    return target
