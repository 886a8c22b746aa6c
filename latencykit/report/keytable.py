"""The tables of the whole run: what the page shows beside the curve, and all key numbers with their confidence intervals.

Both are made of the record that ``latencykit summary`` prints, so that a page and the command line say the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latencykit.report.markup import esc, table
from latencykit.report.record import TRIMMED
from latencykit.units import format_count, format_percentile, format_range, format_row, format_value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from latencykit.report.series import PageSeries

__all__ = ["key_table", "numbers_table", "shown_percentiles"]

_FAMILIAR = (50.0, 90.0, 99.0, 99.9, 99.99, 100.0)
_PRINTED = 8
"""Further percentiles of a tool that the table has room for."""


def shown_percentiles(series: Sequence[PageSeries]) -> list[float]:
    """Return the columns of the table beside the curve: the familiar percentiles, and those that the tools printed."""
    printed = {p for one in series for p, _ in one.printed} - set(_FAMILIAR)
    known = {p for p in _FAMILIAR if any(p in one.rows(_FAMILIAR) for one in series)}
    return sorted({*known, *(printed if len(printed) <= _PRINTED else ())})


def numbers_table(series: Sequence[PageSeries], percentiles: Sequence[float]) -> str:
    """Return the table beside the curve, filled with the numbers of the whole run; a selection takes their place."""
    names = ["series", "requests", *("max" if p == 100 else f"p{format_percentile(p)}" for p in percentiles), "mean"]
    head = "".join(f"<th scope='col'>{name}</th>" for name in names)
    body = "".join(_numbers(one, k, percentiles) for k, one in enumerate(series))
    return (
        f"<div class='scroll' tabindex='0'><table><thead><tr>{head}</tr></thead><tbody id='numbers'>{body}</tbody></table></div>"
    )


def _numbers(one: PageSeries, position: int, percentiles: Sequence[float]) -> str:
    record, rows = one.numbers, one.rows(percentiles)
    count = "not reported" if record["count"] is None else format_count(record["count"])
    count = "model" if record["rung"] == "model" else count
    cells = [f"<td data-count='{'' if record['count'] is None else record['count']}'>{count}</td>"]
    for p in percentiles:
        row = rows.get(p)
        known = "" if row is None or row["value"] is None else f" data-value='{float(row['value'])!r}'"
        cells.append(f"<td data-percentile='{format_percentile(p)}'{known}>{'' if row is None else _cell(row, record)}</td>")
    cells.append(f"<td>{_statistic(record, 'mean')}</td>")
    name = f"<th scope='row'><i class='swatch {one.look[0]}'></i>{esc(one.name)}</th>"
    return f"<tr data-series='{position}'>{name}{''.join(cells)}</tr>"


def key_table(series: Sequence[PageSeries]) -> str:
    """Return the table: one row per statistic, one column per series."""
    columns = [_column(one) for one in series]
    names = list(dict.fromkeys(name for column in columns for name in column))
    rows = [[esc(name), *(column.get(name, "") for column in columns)] for name in names]
    caption = "Small: the 95 % confidence interval, joined with the bucket. In brackets: sample too small for this percentile."
    trimmed = {name: f"{100 * share:g} %" for name, share in TRIMMED.items() if name in names}
    if trimmed:
        caption += f" {', '.join(trimmed)}: the mean without the lowest and the highest {', '.join(trimmed.values())}."
    return table(["", *(esc(one.name, 60) for one in series)], rows, caption)


def _column(one: PageSeries) -> dict[str, str]:
    """Statistic → cell of one series."""
    record = one.numbers
    found = {} if record["count"] is None else {"requests": format_count(record["count"])}
    others = {"failed": record.get("failed"), "timed out": one.late}
    found |= {name: format_count(number) for name, number in others.items() if number}
    for row in one.rows([]).values():
        if row["value"] is not None and row["percentile"] < 100:
            found[f"p{format_percentile(row['percentile'])}"] = _cell(row, record) + _interval(row, record)
    top = one.rows([100.0]).get(100.0)
    stated = {"max": "" if top is None else _cell(top, record)}
    stated |= {word: _statistic(record, name) for word, name in (("mean", "mean"), ("standard deviation", "std"), ("min", "min"))}
    stated |= {name: esc(format_value(value, record["unit"])) for name, value in one.further_statistics.items()}
    for name in TRIMMED:
        stated[name] = _trimmed(record.get("trimmed", {}).get(name), record)
    return found | {name: text for name, text in stated.items() if text}


def _show(record: dict[str, Any]) -> Callable[[float], str]:
    return lambda value: format_value(value, record["unit"])


def _cell(row: dict[str, Any], record: dict[str, Any]) -> str:
    shown = row | {"supported": None} if row["percentile"] >= 100 else row  # the maximum is what it is
    return esc(format_row(shown, _show(record)))


def _statistic(record: dict[str, Any], name: str) -> str:
    """A mean or an extreme, or the range that the source leaves of it."""
    bounds, value = record.get("ranges", {}).get(name), record.get(name)
    if bounds is not None:
        return esc(format_range(bounds["low"], bounds["high"], _show(record)))
    return "" if value is None else esc(_show(record)(value))


def _trimmed(trim: dict[str, Any] | None, record: dict[str, Any]) -> str:
    if trim is None or trim["high"] is None:
        return ""
    return esc(_show(record)(trim["value"]) if trim["resolved"] else format_range(trim["low"], trim["high"], _show(record)))


def _interval(row: dict[str, Any], record: dict[str, Any]) -> str:
    if row["low"] is None:
        return ""
    show = _show(record)
    high = f"to {show(row['high'])}" if row["high"] is not None else "or more"
    return f"<small>{esc(show(row['low']))} {esc(high)}</small>"
