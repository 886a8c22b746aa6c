"""The intervals of a log: records that are made when they are looked at, and their table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

import numpy as np

from latencykit.core.quantiles import highest_supported_percentile, is_resolved
from latencykit.units import format_count, format_duration, format_percentile
from latencykit.views.series import IntervalRecord
from latencykit.views.tables import Table, csv_unit
from latencykit.views.values import PercentileRecord, Span, number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from latencykit.core.histogram_log import IntervalSeries
    from latencykit.views.series import SeriesRecord

_AT_ONCE = 4096  # intervals whose records are made together


def interval_records(series: IntervalSeries, confidence: float = 0.95) -> IntervalRecords:
    """Return one dictionary per interval: start, length, count, max and percentiles.

    ``supported_up_to`` is the highest percentile that the requests of the interval bound from
    above, and ``ranges`` has the bounds of those that its buckets do not resolve.
    """
    return IntervalRecords(series, confidence)


class IntervalRecords(Sequence[IntervalRecord]):
    """What `interval_records` returns: made when it is looked at, for a day has many intervals."""

    def __init__(self, series: IntervalSeries, confidence: float) -> None:
        self._series = series
        sizes, which = np.unique(series.count, return_inverse=True)
        limits = [highest_supported_percentile(size, confidence) for size in sizes.tolist()]
        self._limits = np.array(limits)[which.reshape(-1)]

    def __len__(self) -> int:
        return int(self._series.count.size)

    def __iter__(self) -> Iterator[IntervalRecord]:
        for first in range(0, len(self), _AT_ONCE):
            yield from self[first : first + _AT_ONCE]

    @overload
    def __getitem__(self, which: int) -> IntervalRecord: ...
    @overload
    def __getitem__(self, which: slice) -> list[IntervalRecord]: ...
    def __getitem__(self, which: int | slice) -> IntervalRecord | list[IntervalRecord]:
        rows = np.atleast_1d(np.arange(len(self))[which])
        series = self._series
        names = [format_percentile(p) for p in series.percentiles]
        percentiles = series.values[rows]
        values = np.column_stack(
            [series.max[rows], np.where(np.isfinite(percentiles), percentiles, np.nan)]
        )
        lows = series.lows[rows]
        ranges: list[dict[str, Span]] = [{} for _ in values]
        highs = np.where(series.beyond[rows], np.inf, values)
        wide = ~is_resolved(lows, highs) & np.isfinite(values)
        for row, column in zip(*np.nonzero(wide), strict=True):
            low, high = number(lows[row, column]), number(highs[row, column])
            ranges[row][("max", *names)[column]] = {"low": low, "high": high}
        columns = (
            *map(_numbers, (series.start[rows], series.length[rows])),
            series.count[rows].tolist(),
            zip(*map(_numbers, values.T), strict=True),
            self._limits[rows].tolist(),
            ranges,
        )
        records: list[IntervalRecord] = [
            {
                "start": start,
                "length": length,
                "count": count,
                "max": largest,
                "percentiles": dict(zip(names, row, strict=True)),
                "supported_up_to": limit,
                "ranges": known,
            }
            for start, length, count, (largest, *row), limit, known in zip(*columns, strict=True)
        ]
        return records if isinstance(which, slice) else records[0]


def _numbers(values: NDArray[np.float64]) -> list[float | int | None]:
    """Each value as `number` returns it; at once where all are integers."""
    if (np.abs(values) < 2.0**53).all() and (values == np.rint(values)).all():
        return list(values.astype(np.int64).tolist())
    return [number(value) for value in values.tolist()]


def intervals_text(
    records: Sequence[SeriesRecord], style: str = "table", out_unit: str | None = None
) -> str:
    """Return one row per interval of every series; see `summary_text` for brackets and ranges."""
    names = list(
        dict.fromkeys(
            p for record in records for row in record["intervals"] for p in row["percentiles"]
        )
    )
    suffix = csv_unit(records, style, out_unit)
    header = ["series", "start", "length", "requests", *(f"p{name}{suffix}" for name in names)]
    flags = ["supported", "resolved"] if style == "csv" else []
    table = Table(style, out_unit, header=[*header, f"max{suffix}", *flags])
    for record in records:
        for row in record["intervals"]:
            cells = {name: _interval_row(row, name) for name in (*names, "max")}
            start, length, count = row["start"], row["length"], row["count"]
            table.add(
                {
                    "series": record["name"],
                    "start": table.either(start, f"{start:.3f} s"),
                    "length": table.either(length, format_duration(1e9 * length, 4)),
                    "requests": table.either(count, format_count(count)),
                    **{
                        f"{'' if name == 'max' else 'p'}{name}{suffix}": table.percentile(
                            cell, record["unit"]
                        )
                        for name, cell in cells.items()
                    },
                    **table.flags(
                        cells[name] for name in names if cells[name]["value"] is not None
                    ),
                }
            )
    return table.render(optional=[f"p{name}" for name in ("99.999", "75", "95", "99.99", "90")])


def _interval_row(row: IntervalRecord, name: str) -> PercentileRecord:
    """A percentile, or the maximum, of an interval as a row of percentiles has it."""
    value = row["max"] if name == "max" else row["percentiles"].get(name)
    ends = row["ranges"].get(name)
    percentile = 100.0 if name == "max" else float(name)
    return {
        "percentile": percentile,
        "value": value,
        "low": None,
        "high": None,
        "bucket_low": ends["low"] if ends else value,
        "bucket_high": ends["high"] if ends else value,
        "resolved": ends is None,
        "supported": name == "max" or percentile <= row["supported_up_to"],
        "events": None,
        "cause": None if percentile <= row["supported_up_to"] else "few requests",
    }
