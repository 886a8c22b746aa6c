"""Tables of counts as CSV: one row a bucket (of an interval), one row an interval, or one row a request."""

from __future__ import annotations

import csv
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from latencykit.histogram import Histogram
from latencykit.log import HistogramLog
from latencykit.samples import OUTCOMES, Samples
from latencykit.units import format_percentile, guarded, parse_percentile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from latencykit.formats.base import Rung
    from latencykit.summary import Summary

__all__ = ["write_csv"]


def write_csv(series: Mapping[str, Rung], path: Path, percentiles: str | None = None) -> None:
    """Write series of one kind as a table; the unit stands in the names of the columns.

    Parameters
    ----------
    series : mapping of str to rung
    path : Path
    percentiles : str, optional
        ``"50,99"``: one row an interval with these, in place of one row a bucket.
    """
    wanted = None if percentiles is None else [parse_percentile(p) for p in percentiles.split(",")]
    with path.open("w", encoding="utf-8", newline="") as stream:
        for number, (name, rung) in enumerate(series.items()):
            _write_one(stream, guarded(name), rung, wanted, header=number == 0)


def _write_one(stream: IO[str], name: str, rung: Rung, wanted: Sequence[float] | None, *, header: bool) -> None:
    guess = "_assumed" if rung.run.unit_from == "assumed" else ""
    unit = "" if rung.unit == "none" else f"_{rung.unit}{guess}"
    if isinstance(rung, HistogramLog) and wanted is not None:
        table = _percentile_columns(rung, wanted, unit)
        _rows(stream, table, name, header=header)
    elif isinstance(rung, HistogramLog):
        tags = _cells(rung.tag_of_rows())
        for number, block in enumerate(rung.blocks()):
            row = block.rows[block.entry_rows]
            table = {
                "start_s": np.round(rung.starts[row], 6), "length_s": np.round(rung.lengths[row], 6), "tag": tags[row],
                "index": block.index, f"low{unit}": block.buckets.low(block.index),
                f"high{unit}": block.buckets.high(block.index), "count": block.counts,
            }  # fmt: skip
            _rows(stream, table, name, header=header and number == 0)
    elif isinstance(rung, Histogram):
        low, high, counts = rung.buckets.low(rung.index), rung.buckets.high(rung.index), rung.counts
        if rung.censored:  # a last row without an upper edge
            low, high = np.append(low, rung.censored_at), np.append(high, np.nan)
            counts = np.append(counts, rung.censored)
        _rows(stream, {f"low{unit}": low, f"high{unit}": high, "count": counts}, name, header=header)
    elif isinstance(rung, Samples):
        _rows(stream, _sample_columns(rung, unit), name, header=header)
    else:
        _rows(stream, _summary_columns(rung, unit), name, header=header)


def _percentile_columns(log: HistogramLog, wanted: Sequence[float], unit: str) -> dict[str, Any]:
    series = log.series(wanted)
    columns: dict[str, Any] = {
        "start_s": np.round(series.start, 6), "length_s": np.round(series.length, 6),
        "tag": _cells(log.tag_of_rows()), "count": series.count,
    }  # fmt: skip
    columns |= {f"p{format_percentile(p)}{unit}": series.values[:, k] for k, p in enumerate(series.percentiles)}
    return columns | {f"max{unit}": series.max}


def _sample_columns(samples: Samples, unit: str) -> dict[str, Any]:
    columns: dict[str, Any] = {
        f"start{unit}": samples.start,
        f"duration{unit}": samples.duration,
        f"intended{unit}": samples.intended,
    }
    if samples.outcome is not None:
        columns["outcome"] = np.asarray(OUTCOMES)[samples.outcome]
    columns["connection"] = samples.connection
    if samples.tag is not None:
        columns["tag"] = _cells(samples.tag.tolist())
    return {name: column for name, column in columns.items() if column is not None}


def _summary_columns(summary: Summary, unit: str) -> dict[str, Any]:
    names = [*summary.stats, *(f"p{format_percentile(p)}" for p in summary.percentiles)]
    values = [*summary.stats.values(), *summary.percentiles.values()]
    return {"statistic": _cells(names), f"value{unit}": np.asarray(values, np.float64)}


def _cells(texts: Sequence[str]) -> NDArray[np.object_]:
    safe = {text: guarded(text) for text in set(texts)}
    return np.asarray([safe[text] for text in texts], object)


def _rows(stream: IO[str], columns: Mapping[str, Any], name: str, *, header: bool) -> None:
    """Columns as lines; whole numbers without a decimal point, nothing for not-a-number."""
    writer = csv.writer(stream, lineterminator="\n")
    if header:
        writer.writerow(["series", *columns])
    plain = [_plain(column) for column in columns.values()]
    writer.writerows((name, *row) for row in zip(*plain, strict=True))


def _plain(column: Any) -> list[Any]:
    array = np.asarray(column)
    if array.dtype.kind != "f":
        return list(array.tolist())
    if np.isfinite(array).all() and (array == np.rint(array)).all() and (np.abs(array) < 2**53).all():
        return list(array.astype(np.int64).tolist())
    return ["" if value != value else value for value in array.tolist()]
