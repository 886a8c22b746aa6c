"""The intervals of a log: their records, and their table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from latencykit.core.quantiles import highest_supported_percentile, is_resolved
from latencykit.units import format_count, format_duration, format_percentile
from latencykit.views.tables import Table, csv_unit
from latencykit.views.values import PercentileRecord, Span, number, numbers

if TYPE_CHECKING:
    from latencykit.core.histogram_log import IntervalSeries
    from latencykit.views.series import IntervalRecord, SeriesRecord


def interval_records(series: IntervalSeries, confidence: float = 0.95) -> list[IntervalRecord]:
    """Return one dictionary per interval: start, length, count, max and percentiles."""
    # ``supported_up_to`` is the highest percentile that the requests of the interval bound from
    # above, and ``ranges`` has the bounds of those that its buckets do not resolve.
    names = [format_percentile(p) for p in series.percentiles]
    known = np.where(np.isfinite(series.values), series.values, np.nan)
    values = np.column_stack([series.max, known])
    ranges: list[dict[str, Span]] = [{} for _ in values]
    highs = np.where(series.beyond, np.inf, values)
    wide = ~is_resolved(series.lows, highs) & np.isfinite(values)
    for row, column in zip(*np.nonzero(wide), strict=True):
        low, high = number(series.lows[row, column]), number(highs[row, column])
        ranges[row][("max", *names)[column]] = {"low": low, "high": high}
    sizes, which = np.unique(series.count, return_inverse=True)
    limits = [highest_supported_percentile(size, confidence) for size in sizes.tolist()]
    columns = (
        *map(numbers, (series.start, series.length)),
        series.count.tolist(),
        zip(*map(numbers, values.T), strict=True),
        np.array(limits)[which.reshape(-1)].tolist(),
        ranges,
    )
    return [
        {
            "start": start,
            "length": length,
            "count": count,
            "max": largest,
            "percentiles": dict(zip(names, row, strict=True)),
            "supported_up_to": limit,
            "ranges": spans,
        }
        for start, length, count, (largest, *row), limit, spans in zip(*columns, strict=True)
    ]


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
            cells: dict[str, PercentileRecord] = {}
            for name in (*names, "max"):
                value = row["max"] if name == "max" else row["percentiles"].get(name)
                percentile = 100.0 if name == "max" else float(name)
                ends: Span = row["ranges"].get(name, {"low": value, "high": value})
                cells[name] = {
                    "percentile": percentile,
                    "value": value,
                    "low": None,
                    "high": None,
                    "bucket_low": ends["low"],
                    "bucket_high": ends["high"],
                    "resolved": name not in row["ranges"],
                    "supported": name == "max" or percentile <= row["supported_up_to"],
                    "events": None,
                    "cause": None if percentile <= row["supported_up_to"] else "few requests",
                }
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
    optional = [f"p{name}" for name in ("99.999", "75", "95", "99.99", "90")]
    return table.render(optional=optional, causes=True)
