"""The key numbers of a page: the table beside the curve, and the one that is printed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from latencykit._text import esc
from latencykit.core.distribution import Distribution
from latencykit.units import (
    format_count,
    format_percentile,
    format_range,
    format_row,
    format_value,
    percentile_name,
)
from latencykit.views.markup import table
from latencykit.views.summary import TRIMMED
from latencykit.views.values import causes_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from latencykit.views.page_series import PageSeries
    from latencykit.views.summary import SeriesRecord, Statistic
    from latencykit.views.values import PercentileRecord

_FAMILIAR = (50.0, 90.0, 99.0, 99.9, 99.99, 100.0)

_FURTHER = 8
"""Further percentiles of a tool that fit into the table."""


def shown_percentiles(series: Sequence[PageSeries]) -> list[float]:
    """Return the columns beside the curve: familiar percentiles, and those that tools report."""
    reported = {p for entry in series for p, _ in entry.reported_percentiles} - set(_FAMILIAR)
    known = {p for entry in series for p in entry.rows(_FAMILIAR)} & set(_FAMILIAR)
    return sorted(known | (reported if len(reported) <= _FURTHER else set()))


def numbers_table(series: Sequence[PageSeries], percentiles: Sequence[float]) -> str:
    """Return the table beside the curve with the numbers of the whole run; the script fills it."""
    names = ["series", "requests", *map(percentile_name, percentiles), "mean"]
    columns = "".join(f"<th scope='col'>{name}</th>" for name in names)
    body = []
    for position, entry in enumerate(series):
        record, rows = entry.numbers, entry.rows(percentiles)
        count = record["count"]
        text = "not reported" if count is None else format_count(count)
        text = "model" if isinstance(entry.counted, Distribution) else text
        cells = [f"<td data-count='{'' if count is None else count}'>{text}</td>"]
        for p in percentiles:
            row = rows.get(p)
            bare = "" if row is None or row["value"] is None else float(row["value"])
            value = "" if bare == "" else f" data-value='{bare!r}'"
            text = "" if row is None else _cell(row, record)
            cells.append(f"<td data-percentile='{format_percentile(p)}'{value}>{text}</td>")
        cells.append(f"<td>{_statistic(record, 'mean')}</td>")
        swatch, name = (
            f"<i class='swatch {' '.join(entry.look)}'></i>",
            esc(entry.short or entry.name),
        )
        head = f"<th scope='row'>{swatch}{name}</th>"
        body.append(f"<tr data-series='{position}'>{head}{''.join(cells)}</tr>")
    return (
        f"<div class='scroll' tabindex='0'><table><thead><tr>{columns}</tr></thead>"
        f"<tbody id='numbers'>{''.join(body)}</tbody></table></div>"
    )


_ABREAST = 7  # series: more are cut off on paper


def key_table(series: Sequence[PageSeries]) -> str:
    """Return the table: one row per statistic, one column per series; of many, several tables."""
    columns = [_column(entry) for entry in series]
    names = list(dict.fromkeys(name for column in columns for name in column))
    caption = "Small: the 95 % confidence interval, joined with the bucket."
    causes = causes_text([row for entry in series for row in entry.rows([]).values()])
    if causes:
        caption += f" In brackets: uncertain ({causes})."
    trimmed = {name: f"{100 * share:g} %" for name, share in TRIMMED.items() if name in names}
    if trimmed:
        shares = ", ".join(trimmed.values())
        caption += f" {', '.join(trimmed)}: the mean without the lowest and the highest {shares}."
    tables: list[str] = []
    for part in np.array_split(np.arange(len(series)), math.ceil(len(series) / _ABREAST)):
        header = ["", *(esc(series[k].short or series[k].name) for k in part)]
        rows = [[esc(name), *(columns[k].get(name, "") for k in part)] for name in names]
        tables.append(table(header, rows, "" if tables else caption))
    return "".join(tables)


def _column(series: PageSeries) -> dict[str, str]:
    """Statistic → cell of one series."""
    record, show = series.numbers, _show(series.numbers)
    counts = {
        "requests": record["count"],
        "failed": record["failed"] or None,
        "timed out": record["timeouts"] or None,
        "above the last bucket": max(series.late - (record["timeouts"] or 0), 0) or None,
    }
    cells = {name: format_count(count) for name, count in counts.items() if count is not None}
    for row in series.rows([]).values():
        if row["value"] is not None and row["percentile"] < 100:
            interval = ""
            if row["low"] is not None:
                low, cell = show(row["low"]), _cell(row, record)
                high = f"to {show(row['high'])}" if row["high"] is not None else "or more"
                if high != f"to {low}" or esc(low) != cell:  # else it says nothing more
                    interval = f"<small>{esc(low)} {esc(high)}</small>"
            cells[percentile_name(row["percentile"])] = _cell(row, record) + interval
    largest = series.rows([100.0]).get(100.0)
    stated = {
        "max": "" if largest is None else _cell(largest, record),
        "mean": _statistic(record, "mean"),
        "standard deviation": _statistic(record, "std"),
        "min": _statistic(record, "min"),
    }
    stated |= {name: esc(show(value)) for name, value in series.further_statistics.items()}
    for name in TRIMMED:
        trim = record["trimmed"].get(name)
        if trim is not None and trim["high"] is not None:
            stated[name] = esc(
                show(trim["value"])
                if trim["resolved"] and trim["value"] is not None
                else format_range(trim["low"], trim["high"], show)
            )
    return cells | {name: text for name, text in stated.items() if text}


def _show(record: SeriesRecord) -> Callable[[float], str]:
    return lambda value: format_value(value, record["unit"])


def _cell(row: PercentileRecord, record: SeriesRecord) -> str:
    if row["percentile"] >= 100:  # a maximum needs no support
        row = row | {"supported": None}
    return esc(format_row(row, _show(record)))


def _statistic(record: SeriesRecord, name: Statistic) -> str:
    """A mean or an extreme, or its range where the source gives only that."""
    bounds, value = record["ranges"].get(name), record[name]
    if bounds is not None:
        return esc(format_range(bounds["low"], bounds["high"], _show(record)))
    return "" if value is None else esc(_show(record)(value))
