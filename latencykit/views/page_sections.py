"""HTML from text that may come from anywhere: everything goes through `esc`."""

from __future__ import annotations

import hashlib
import html
import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit import __version__
from latencykit.analysis.compare import compare
from latencykit.analysis.correct import back_filled
from latencykit.analysis.fan_out import fan_outs, samples_needed
from latencykit.analysis.omission import diagnose
from latencykit.analysis.slo import SLO
from latencykit.core.distribution import Distribution
from latencykit.core.histogram import Histogram
from latencykit.core.histogram_log import HistogramLog
from latencykit.core.key_statistics import statistic_text
from latencykit.core.quantiles import is_resolved
from latencykit.core.samples import Samples
from latencykit.core.summary import Summary
from latencykit.errors import LatencyKitError
from latencykit.units import (
    format_change,
    format_count,
    format_duration,
    format_percentile,
    format_range,
    format_row,
    format_value,
    printable,
    sure_percentile,
    without_secrets,
)
from latencykit.views.page_data import DIGITS, PageSeries, slots_of
from latencykit.views.record import TRIMMED, number
from latencykit.views.text import side_texts, significance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from latencykit.analysis.compare import Change, Comparison
    from latencykit.analysis.fan_out import FanOut
    from latencykit.analysis.omission import Diagnosis
    from latencykit.analysis.slo import SLORow
    from latencykit.views.page_data import Slots

__all__ = [
    "Found",
    "InputFile",
    "as_raw",
    "bullets",
    "comparison_section",
    "corrected_series",
    "doubts",
    "esc",
    "fan_out_model",
    "fan_out_section",
    "found_in",
    "headline",
    "input_file",
    "key_table",
    "numbers_table",
    "omission_section",
    "provenance",
    "resolution",
    "section",
    "shown_percentiles",
    "slo_rows",
    "slo_section",
    "slo_steps",
    "stalls_model",
    "stalls_section",
    "table",
    "trust",
    "verdict_badge",
]


def esc(text: object, limit: int = 300) -> str:
    r"""Return foreign text as HTML text, or as the value of a quoted attribute."""
    return html.escape(printable(str(text), limit), quote=True)


def table(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    caption: str = "",
    name: str = "",
    words: bool = False,
) -> str:
    """Return a table whose first column heads the rows; cells are HTML already."""
    kind = " class='words'" if words else ""
    head = "".join(
        f"<th scope='col'{kind if k else ''}>{cell}</th>" for k, cell in enumerate(header)
    )
    body = "".join(
        f"<tr><th scope='row'>{row[0]}</th>{''.join(f'<td{kind}>{cell}</td>' for cell in row[1:])}</tr>"
        for row in rows
    )
    said = f"<caption>{caption}</caption>" if caption else ""
    marked = f" id='{name}'" if name else ""
    return f"<div class='scroll' tabindex='0'><table{marked}>{said}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def section(name: str, title: str, *parts: str) -> str:
    """Return a section with its heading; empty where it has nothing to say."""
    inside = "".join(parts)
    return (
        f"<section id='{name}' aria-labelledby='{name}-title'><h2 id='{name}-title'>{title}</h2>{inside}</section>"
        if inside
        else ""
    )


def bullets(texts: Iterable[str]) -> str:
    """Return escaped texts as a list."""
    items = "".join(f"<li>{esc(text, 500)}</li>" for text in texts)
    return f"<ul>{items}</ul>" if items else ""


# ------------------------------------------------------------
# What a page says in whole sentences: the finding of each series, and how far it can be trusted.

_RARE = ((99.9, "one in a thousand"), (99.0, "one in a hundred"), (90.0, "one in ten"))
_NEAR, _NONE, _FEW = 0.3, 0.005, 0.1
"""Requests within 30 % of the mean are what it describes; fewer than these shares are none and hardly any."""


def headline(data: Any, limit: float | None = None) -> str:
    """Return what happened, in one sentence that anybody understands."""
    if isinstance(data, Summary):
        return _of_summary(data)
    if isinstance(data, Histogram) and not data.count:
        return (
            f"No request was answered; {format_count(data.censored)} timed out."
            if data.censored
            else "Nothing was counted."
        )

    def show(value: float) -> str:
        return format_value(value, data.unit)

    half = float(data.percentile(50))  # "or less": true of an upper bound, too
    if isinstance(data, Distribution):
        return f"Half of the users wait {show(half)} or less, one in a hundred over {show(float(data.percentile(99)))}."
    if data.index.size == 1 and not data.censored and is_resolved(data.min, data.max):
        return f"All {format_count(data.requests)} requests took {show(data.max)}."
    highest = data.sample_limit() if limit is None else limit
    rows = [
        row
        for row in data.percentile_rows([p for p, _ in _RARE])
        if row.supported or math.isinf(row.bucket_high)
    ]
    rare = next((row for row in rows if row.percentile <= highest), None)
    parts = [_half(data, show)]
    if rare is not None:
        over = "at least" if math.isinf(rare.bucket_high) else "over"
        parts.append(
            f"{dict(_RARE)[rare.percentile]} {over} {show(rare.value if rare.resolved else rare.bucket_low)}"
        )
    parts.append(f"the worst {statistic_text(data, 'max')}")
    late = max(data.censored - (data.requests - data.count), 0)
    if late:
        parts.append(f"and {format_count(late)} gave no answer within {show(data.censored_at)}")
    return f"{', '.join(parts)}; {_mean(data)}."


def _half(data: Histogram, show: Callable[[float], str]) -> str:
    row = data.percentile_rows([50.0])[0]
    took = (
        f"at least {show(row.value)}"
        if not np.isfinite(row.bucket_high)
        else f"{show(row.value)} or less"
    )
    return f"Half of the {format_count(data.requests)} requests took {took}"


def _mean(histogram: Histogram) -> str:
    """What the mean is worth: how many requests may have taken about as long."""
    text = statistic_text(histogram, "mean")
    if not is_resolved(*histogram.bracket("mean")):
        return f"the mean is {text}"
    mean, low, high = histogram.mean, histogram.counted.low, histogram.counted.high
    near = (low <= (1 + _NEAR) * mean) & (high >= (1 - _NEAR) * mean)
    share = float(histogram.counts[near].sum()) / histogram.count
    if share < _FEW:
        return f"the mean, {text}, describes {'none' if share < _NONE else 'hardly any'} of them"
    return f"the mean is {text}"


def _of_summary(summary: Summary) -> str:
    held = [f"{name} {format_value(value, summary.unit)}" for name, value in summary.stats.items()]
    held += [
        f"p{format_percentile(p)} {format_value(value, summary.unit)}"
        for p, value in sorted(summary.percentiles.items())
    ]
    whose = "" if summary.count is None else f" of {format_count(summary.count)} requests"
    return f"The source reports {', '.join(held) or 'no statistic'}{whose}; the rest of the distribution is not in it."


def resolution(slots: Slots, data: Any) -> str:
    """Return how coarse the page is: for people who compare its numbers with those of the file."""
    wide = 100.0 / (1 << int(np.ceil(np.log2(2 * 10**DIGITS))) - 1)
    close = "counts, maxima and percentiles are those of the file"
    if slots.rough is None and np.any(slots.high > slots.low * (1 + 0.1 / 10**DIGITS)):
        close = f"counts and maxima are exact, percentiles of a selection lie at most {wide:.1g} % above those of the file"
    if isinstance(data, Samples):
        return f"Requests are counted into time bins of {_long(slots.width or 0.0)} by the moment they were sent: {close}."
    if slots.width is None:
        return f"Each time bin is one interval of the file: {close}."
    return f"Each time bin sums up the intervals that start within {_long(slots.width)}, {format_count(len(data))} in all: {close}."


def _long(seconds: float) -> str:
    size, name = next(
        (part for part in ((86400, "d"), (3600, "h"), (60, "min")) if seconds >= part[0]), (1, "")
    )
    return f"{seconds / size:.3g} {name}" if name else format_duration(seconds * 1e9)


def trust(data: Any, record: Mapping[str, Any]) -> list[str]:
    """Return what a reader of the numbers has to know, one sentence each; `record` is what ``summary`` prints of it."""
    run, said = data.run, []
    limit = record["highest_supported_percentile"]
    if isinstance(data, Histogram) and data.count and limit:
        highest = f"p{format_percentile(sure_percentile(limit))}"
        said.append(
            f"Highest supported percentile of {format_count(data.requests)} requests: {highest}. Others are in brackets."
        )
    if record["tail_note"]:
        said.append(f"{record['tail_note'][:1].upper()}{record['tail_note'][1:]}.")
    if isinstance(data, Distribution):
        said.append("A model, not a measurement: it has no confidence intervals.")
    if run.unit_note is not None and run.unit_note not in run.notes:
        said.append(f"{run.unit_note[:1].upper()}{run.unit_note[1:]}.")
    if run.corrected == "unknown" and run.loop in ("closed", "paced"):
        said.append(
            "A closed loop waits for each reply before it sends the next request: during a stall it measures nothing."
        )
    if run.corrected in ("us", "tool"):
        said.append(
            "Corrected for coordinated omission: added values follow from those measured, so no confidence is claimed."
        )
    others = {
        "failed": run.failed,
        "timed out": run.timeouts,
        "dropped": run.dropped,
        "unfinished": run.unfinished,
    }
    if any(others.values()):
        words = ", ".join(
            f"{format_count(number)} {word}" for word, number in others.items() if number
        )
        said.append(f"Not counted among the answered requests: {words}.")
    return [
        *said,
        *(
            note[:1].upper() + note[1:] + ("" if note.endswith((".", "!")) else ".")
            for note in record["notes"]
        ),
    ]


# ------------------------------------------------------------
# Where a page's numbers come from: files, sizes, hashes, tools, and the command that made it.


@dataclass(frozen=True)
class InputFile:
    """A file that was read: its name, its size in bytes and its SHA-256; None where it is gone or was a stream."""

    name: str
    size: int | None
    sha256: str | None


def input_file(path: str | Path) -> InputFile:
    """Return what identifies a file."""
    where = Path(without_secrets(str(path)))
    if str(path) == "-" or not where.is_file():
        return InputFile("standard input" if str(path) == "-" else where.name, None, None)
    with where.open("rb") as stream:
        return InputFile(
            where.name, where.stat().st_size, hashlib.file_digest(stream, "sha256").hexdigest()
        )


def provenance(series: Mapping[str, Any], files: Sequence[InputFile], command: str | None) -> str:
    """Return tables of files, of series, and of this page."""
    inputs = [
        [
            esc(one.name),
            "" if one.size is None else f"{format_count(one.size)} bytes",
            f"<code>{one.sha256 or 'not known'}</code>",
        ]
        for one in files
    ]
    said = [
        [
            esc(label, 80),
            *(esc(part or "not known") for part in (run.source, run.format, _tool(run))),
            _code(run.command),
        ]
        for label, run in ((label, data.run) for label, data in series.items())
    ]
    page = [
        ["made by", f"latencykit {__version__}"],
        ["made at", f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"],
    ]
    page += [["command", f"<code>{esc(without_secrets(command), 2000)}</code>"]] if command else []
    parts = [table(["file", "size", "SHA-256"], inputs, words=True)] if inputs else []
    parts.append(table(["series", "source", "format", "tool", "its command"], said, words=True))
    parts.append(table(["this page", ""], page, words=True))
    return "".join(parts)


def _tool(run: Any) -> str:
    return " ".join(filter(None, (run.tool, run.version)))


def _code(text: str | None) -> str:
    return f"<code>{esc(text, 1000)}</code>" if text else ""


# ------------------------------------------------------------
# The tables of the whole run: what the page shows beside the curve, and all key numbers with
# their confidence intervals.
#
# Both are made of the record that ``latencykit summary`` prints, so that a page and the command line say the same.

_FAMILIAR = (50.0, 90.0, 99.0, 99.9, 99.99, 100.0)
_PRINTED = 8
"""Further percentiles of a tool that the table has room for."""


def shown_percentiles(series: Sequence[PageSeries]) -> list[float]:
    """Return the columns of the table beside the curve: the familiar percentiles, and those that the tools printed."""
    reported_percentiles = {p for one in series for p, _ in one.reported_percentiles} - set(
        _FAMILIAR
    )
    known = {p for p in _FAMILIAR if any(p in one.rows(_FAMILIAR) for one in series)}
    return sorted(
        {*known, *(reported_percentiles if len(reported_percentiles) <= _PRINTED else ())}
    )


def numbers_table(series: Sequence[PageSeries], percentiles: Sequence[float]) -> str:
    """Return the table beside the curve, filled with the numbers of the whole run; a selection takes their place."""
    names = [
        "series",
        "requests",
        *("max" if p == 100 else f"p{format_percentile(p)}" for p in percentiles),
        "mean",
    ]
    head = "".join(f"<th scope='col'>{name}</th>" for name in names)
    body = "".join(_numbers(one, k, percentiles) for k, one in enumerate(series))
    return f"<div class='scroll' tabindex='0'><table><thead><tr>{head}</tr></thead><tbody id='numbers'>{body}</tbody></table></div>"


def _numbers(one: PageSeries, position: int, percentiles: Sequence[float]) -> str:
    record, rows = one.numbers, one.rows(percentiles)
    count = "not reported" if record["count"] is None else format_count(record["count"])
    count = "model" if record["rung"] == "model" else count
    cells = [f"<td data-count='{'' if record['count'] is None else record['count']}'>{count}</td>"]
    for p in percentiles:
        row = rows.get(p)
        known = (
            "" if row is None or row["value"] is None else f" data-value='{float(row['value'])!r}'"
        )
        cells.append(
            f"<td data-percentile='{format_percentile(p)}'{known}>{'' if row is None else _cell(row, record)}</td>"
        )
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
            found[f"p{format_percentile(row['percentile'])}"] = _cell(row, record) + _interval(
                row, record
            )
    top = one.rows([100.0]).get(100.0)
    stated = {"max": "" if top is None else _cell(top, record)}
    stated |= {
        word: _statistic(record, name)
        for word, name in (("mean", "mean"), ("standard deviation", "std"), ("min", "min"))
    }
    stated |= {
        name: esc(format_value(value, record["unit"]))
        for name, value in one.further_statistics.items()
    }
    for name in TRIMMED:
        stated[name] = _trimmed(record.get("trimmed", {}).get(name), record)
    return found | {name: text for name, text in stated.items() if text}


def _show(record: dict[str, Any]) -> Callable[[float], str]:
    return lambda value: format_value(value, record["unit"])


def _cell(row: dict[str, Any], record: dict[str, Any]) -> str:
    shown = (
        row | {"supported": None} if row["percentile"] >= 100 else row
    )  # the maximum is what it is
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
    return esc(
        _show(record)(trim["value"])
        if trim["resolved"]
        else format_range(trim["low"], trim["high"], _show(record))
    )


def _interval(row: dict[str, Any], record: dict[str, Any]) -> str:
    if row["low"] is None:
        return ""
    show = _show(record)
    high = f"to {show(row['high'])}" if row["high"] is not None else "or more"
    return f"<small>{esc(show(row['low']))} {esc(high)}</small>"


# ------------------------------------------------------------
# The comparison of a page: every series against the first one.

_MOST = 6
_BADGES = {
    "better": "good",
    "same": "good",
    "worse": "bad",
    "mixed": "bad",
    "inconclusive": "unsure",
}


def comparison_section(series: Sequence[PageSeries]) -> str:
    """Return one table a series that is compared with the first; empty for a single series."""
    if len(series) < 2:
        return ""
    base, *others = series
    parts = [_against(base, other) for other in others[:_MOST]]
    if len(others) > _MOST:
        parts.append(
            f"<p class='quiet'>The other {len(others) - _MOST} series are not compared here.</p>"
        )
    return section("comparison", f"Compared with {esc(base.name, 60)}", *parts)


def _against(base: PageSeries, other: PageSeries) -> str:
    name = f"<b>{esc(other.name, 60)}</b>"
    try:
        found = compare(_with_time(base), _with_time(other))
    except (
        LatencyKitError
    ) as error:  # a summary beside a curve, or an empty series: the page says so
        return f"<p>{name}: {esc(error)}</p>"
    badge = f"<span class='badge {_BADGES[found.verdict]}'>{found.verdict}</span>"
    header = ["", esc(base.name, 40), esc(other.name, 40), "change", "95 % interval", "significant"]
    return f"<p>{name} {badge}</p>{table(header, [_row(row, found) for row in found.changes])}{bullets(_notes(found))}"


def _row(row: Change, found: Comparison) -> list[str]:
    low = format_change(row.low) if row.low > -1 else "unknown"
    high = format_change(row.high) if math.isfinite(row.high) else "unknown"
    return [
        esc("max" if row.percentile == 100 else row.statistic),
        *map(esc, side_texts(row, lambda value: format_value(value, found.unit))),
        format_change(row.change),
        f"{low} to {high}" if {low, high} != {"unknown"} else "",
        significance(row),
    ]


def _notes(found: Comparison) -> list[str]:
    """What kept the comparison from deciding, what else differs, and what there is to know of single rows."""
    texts = [
        *found.reasons,
        *found.warnings,
        *dict.fromkeys(row.note for row in found.changes if row.note),
    ]
    return [f"{text[:1].upper()}{text[1:]}." for text in texts]


# ------------------------------------------------------------
# The SLO of a page: limits as a staircase, and what each series says of them.

_LIMITS_BADGES = {"met": "good", "missed": "bad", "unknown": "unsure"}


def slo_rows(slo: Any, series: Sequence[PageSeries]) -> list[list[SLORow]]:
    """Return each series' verdicts, one a limit; empty without an SLO."""
    if slo is None:
        return []
    stated = SLO.parse(slo) if isinstance(slo, str) else slo
    return [[_sure(row, one) for row in stated.check(_with_time(one))] for one in series]


def _with_time(one: PageSeries) -> Any:
    """The measurement with its times, in the unit of the page; its counts where it knows no time."""
    data = one.data
    timed = isinstance(data, HistogramLog | Samples) and len(data) > 0
    return (
        data.to_unit(one.counted.unit)
        if timed and data.unit != one.counted.unit
        else data
        if timed
        else one.counted
    )


def _sure(row: SLORow, one: PageSeries) -> SLORow:
    """A limit in time says nothing of values whose unit is only assumed."""
    if row.statistic == "failed" or one.counted.run.unit_from != "assumed" or row.unit == "none":
        return row
    return replace(
        row, outcome="unknown", reason="the unit of the values is only assumed; --unit settles it"
    )


def slo_steps(checked: Sequence[Sequence[SLORow]]) -> list[dict[str, Any]]:
    """Return the limits on percentiles as steps for the curve; the worst verdict of all series colours each."""
    steps = []
    for rows in zip(*checked, strict=True):
        statistic, outcomes = rows[0].statistic, {row.outcome for row in rows}
        percentile = (
            100.0 if statistic == "max" else float(statistic[1:]) if statistic[:1] == "p" else None
        )
        if percentile is not None:
            worst = next(outcome for outcome in ("missed", "unknown", "met") if outcome in outcomes)
            steps.append(
                {"percentile": percentile, "limit": number(rows[0].limit), "outcome": worst}
            )
    return sorted(steps, key=lambda step: step["percentile"])


def slo_section(checked: Sequence[Sequence[SLORow]], series: Sequence[PageSeries]) -> str:
    """Return the table of verdicts: a row per limit, a column per series."""
    if not checked:
        return ""
    rows = [
        [f"{esc(limits[0].statistic)} ≤ {_limit(limits[0])}", *map(_limits_cell, limits)]
        for limits in zip(*checked, strict=True)
    ]
    limits = [{row.outcome for row in limits} for limits in zip(*checked, strict=True)]
    missed, unknown = (
        sum(outcome in outcomes for outcomes in limits) for outcome in ("missed", "unknown")
    )
    title = "SLO: met"
    if missed or unknown:
        title = f"SLO: {missed or unknown} of {len(limits)} limits {'missed' if missed else 'cannot be judged'}"
    said = "<p class='quiet'>Met: the whole confidence interval is within the limit. Missed: all of it is beyond.</p>"
    return section(
        "slo",
        title,
        said,
        table(["limit", *(esc(one.name, 60) for one in series)], rows, words=True),
    )


def _limits_cell(row: SLORow) -> str:
    value = (
        ""
        if row.value != row.value
        else f"{_share(row.value) if row.statistic == 'failed' else _value(row)}"
    )
    reason = f"<small>{esc(row.reason)}</small>" if row.reason else ""
    return f"<span class='badge {_LIMITS_BADGES[row.outcome]}'>{row.outcome}</span> {esc(value)}{reason}"


def _value(row: SLORow) -> str:
    def show(value: float) -> str:
        return format_value(value, row.unit)

    return show(row.value) if row.resolved else format_range(row.bucket_low, row.bucket_high, show)


def _limit(row: SLORow) -> str:
    return (
        _share(row.limit) if row.statistic == "failed" else esc(format_value(row.limit, row.unit))
    )


def _share(value: float) -> str:
    return f"{100 * value:.3g} %"


# ------------------------------------------------------------
# The fan-out of a page: what users meet who wait for the slowest of n calls, for the values of n
# that a slider has.

_CALLS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000)
_PERCENTILES = (50.0, 90.0, 99.0)
_FIRST = _CALLS.index(100)


def fan_out_model(series: Sequence[PageSeries]) -> list[dict[str, Any]]:
    """Return what the slider of each measured series walks through; six series at most."""
    found = [one for one in series if isinstance(one.counted, Histogram) and one.counted.count]
    return [
        {
            "name": one.name,
            "mixed": one.slots is not None,
            "percentiles": _PERCENTILES,
            "rows": _rows(one),
        }
        for one in found[:6]
    ]


def _rows(one: PageSeries) -> list[dict[str, Any]]:
    """One row a value of n: percentiles of the slowest, and a sentence."""
    alone = fan_outs(one.counted, _CALLS, independent=True, shares=(99.0,))
    mixed = (
        fan_outs(one.slots.log(one.counted.unit), _CALLS, shares=(99.0,))
        if one.slots is not None
        else [None] * len(_CALLS)
    )
    return [
        {
            "n": apart.n, "words": _words(apart, together), "independent": _values(apart, one.counted.max),
            "mixture": [] if together is None else _values(together, one.counted.max),
        }
        for apart, together in zip(alone, mixed, strict=True)
    ]  # fmt: skip


def _values(found: FanOut, top: float) -> list[dict[str, Any]]:
    rows = [found.row(p) for p in _PERCENTILES]
    return [
        {
            "value": number(min(row.value, top)), "low": number(min(row.bucket_low, top)), "resolved": row.resolved,
            "open": not math.isfinite(row.bucket_high), "supported": row.supported,
        }
        for row in rows
    ]  # fmt: skip


def _words(apart: FanOut, together: FanOut | None) -> str:
    leaf = apart.leaf_percentile(99.0)
    calls = f"{format_count(apart.n)} calls" if apart.n > 1 else "1 call"
    most = together or apart
    said = f"Of users who wait for {calls}, {_fanout_share(most)} meet one that is slower than the p99 of a single call"
    if together is not None and together.model == "mixture":
        said += f" ({_fanout_share(apart)} if slow calls came independently of each other)"
    needed = format_count(samples_needed(leaf))
    rests = f"the p99 of users is based on the p{_cut(leaf)} of one call, which takes {needed} requests to know"
    note = f" {most.note[:1].upper()}{most.note[1:]}." if most.note else ""
    return f"{said}; {rests}.{note}"


def _fanout_share(found: FanOut) -> str:
    low, high = (
        f"{100 * share:.0f}" for share in found.above_between.get(99.0, (found.above[99.0],) * 2)
    )
    return f"{high} %" if low == high else f"{low}–{high} %"


def _cut(percentile: float) -> str:
    return f"{percentile:.5f}".rstrip("0").rstrip(".")


def fan_out_section(model: Sequence[dict[str, Any]]) -> str:
    """Return the section around the plot: slider, sentence and table."""
    if not model:
        return ""
    mixed = any(one["mixed"] for one in model)
    said = (
        "Solid: all calls of a user fall into the same moment, as they do (mixed by the steps of the timeline). "
        "Dashed: as if slow calls came independently of each other."
        if mixed
        else "As if slow calls came independently of each other: a source without time cannot tell when they came together."
    )
    options = "".join(
        f"<option value='{k}'>{esc(one['name'], 60)}</option>" for k, one in enumerate(model)
    )
    choice = (
        f"<p><label>Series <select id='fan-out-series'>{options}</select></label></p>"
        if len(model) > 1
        else ""
    )
    slider = (
        f"<p class='slider'><label for='fan-out-slider'>calls <b id='fan-out-n'>{_CALLS[_FIRST]}</b></label>"
        f"<input type='range' id='fan-out-slider' min='0' max='{len(_CALLS) - 1}' value='{_FIRST}'></p>"
    )
    first = model[0]["rows"][_FIRST]["words"]
    words = f"<p id='fan-out-words' aria-live='polite'>{esc(first, 500)}</p>"
    columns = (
        ["users'", "in one moment", "if independent"] if mixed else ["users'", "if independent"]
    )
    return section(
        "fan-out", "Waiting for many answers", f"<p class='quiet'>{said}</p>", choice, slider, words,
        "<div id='plot-fanOut' class='plot'></div>", table(columns, [], name="fan-out-table"),
    )  # fmt: skip


# ------------------------------------------------------------
# What a diagnosis adds to a page: stalls, the verdict on coordinated omission, and the corrected
# series beside the raw one.

_SHADED, _LISTED, _LABELLED = 100, 20, 4
"""So many of the longest stalls are shaded, listed, and labelled."""

_COUNTS = 60_000_000
"""Logs of more counts than that are not diagnosed for a page: about an hour of seconds of a very busy server is 14 million."""

_OMISSION_BADGES = {"omits": "bad", "clean": "good", "unknown": "unsure"}


@dataclass(frozen=True, eq=False)
class Found:
    """A series and its diagnosis; None where the source cannot be diagnosed."""

    series: PageSeries
    diagnosis: Diagnosis | None


def found_in(series: Sequence[PageSeries], how: dict[str, Any]) -> list[Found]:
    """Diagnose every measured series; `how` is what `lk.diagnose` takes beside it."""
    return [Found(one, _diagnosed(one, how)) for one in series]


def _diagnosed(one: PageSeries, how: dict[str, Any]) -> Diagnosis | None:
    if (
        isinstance(one.counted, Distribution)
        or one.counted.unit == "none"
        or not one.counted.count
        or _too_large(one)
    ):
        return None
    return diagnose(one.data, **how)


def _too_large(one: PageSeries) -> bool:
    """Whether the passes that a diagnosis takes over the log would take minutes."""
    if one.slots is None or not isinstance(one.data, HistogramLog):
        return False
    most = (
        one.slots.decoded * len(one.data) / one.slots.start.size
    )  # as if no interval of a slot shared buckets with another
    return bool(min(most, one.counted.count) > _COUNTS)


def corrected_series(found: Sequence[Found]) -> list[PageSeries]:
    """Return the corrected series of those that omit, over time where back-filling keeps it."""
    shadows = []
    for one in found:
        if (
            one.diagnosis is None
            or one.diagnosis.verdict != "omits"
            or one.diagnosis.corrected is None
        ):
            continue
        own, slots, data = one.series, None, one.diagnosis.corrected
        interval = one.diagnosis.expected_interval
        if (
            one.diagnosis.method == "backfill"
            and interval is not None
            and isinstance(own.data, HistogramLog)
        ):
            slots, data = slots_of(back_filled(own.data, interval))
        look = (
            ("honest", "")
            if len(found) == 1
            else ("honest" if own.look[0] == "raw" else own.look[0], "dash3")
        )
        supplied = _supplied_from(one.diagnosis.corrected, own.counted), _number(one.diagnosis)
        name = f"{own.name}, corrected"
        shadows.append(
            PageSeries(
                name, data, one.diagnosis.corrected, slots, look, shadow=True, supplied=supplied
            )
        )
    return shadows


def _supplied_from(corrected: Histogram, raw: Histogram) -> float:
    """The percentile from which on it is the correction that supplies the values: from there it is twice the raw one."""
    percentiles = 100 * (1 - 10.0 ** -np.arange(0.05, 9, 0.05))
    moved = corrected.percentile(percentiles) > 2 * raw.percentile(percentiles)
    return float(percentiles[int(np.argmax(moved))]) if moved.any() else 100.0


def _number(found: Diagnosis) -> str:
    stalls = max(1, len(found.found))
    return f"{stalls} stall{'' if stalls == 1 else 's'}"


def as_raw(found: Sequence[Found]) -> list[Found]:
    """Return a single series that omits in the colour of what omits."""
    if len(found) != 1 or found[0].diagnosis is None or found[0].diagnosis.verdict != "omits":
        return list(found)
    return [replace(found[0], series=replace(found[0].series, look=("raw", "")))]


def verdict_badge(one: Found) -> str:
    """Return the verdict as a word in a frame, and its sentence."""
    if one.diagnosis is None or one.diagnosis.verdict == "unknown":
        return ""
    found = one.diagnosis
    return f"<span class='badge {_OMISSION_BADGES[found.verdict]}'>{found.verdict}</span> {esc(_sentence(found.summary))}"


def _sentence(text: str) -> str:
    first = text[:1] if text.startswith("lk.") else text[:1].upper()
    return f"{first}{text[1:]}{'' if text.endswith('.') else '.'}" if text else ""


# ---------------------------------------------------------------- stalls
def _longest(found: Diagnosis, most: int) -> list[int]:
    """Positions of the longest stalls, in order of time."""
    return sorted(np.argsort(-found.found.duration, kind="stable")[:most].tolist())


def stalls_model(found: Sequence[Found]) -> list[dict[str, Any]]:
    """Return what the timeline shades."""
    model = []
    for one in found:
        if one.diagnosis is None:
            continue
        stalls = one.diagnosis.found
        named = set(_longest(one.diagnosis, _LABELLED)) if len(stalls) <= _LISTED else set()
        for k in _longest(one.diagnosis, _SHADED):
            missing = int(stalls.missing[k])
            label = f"stall {format_duration(float(stalls.duration[k]) * 1e9, 2)}"
            label += (
                f" · ~{format_count(missing)} requests missing"
                if missing and one.diagnosis.verdict == "omits"
                else ""
            )
            start, end = (float(side[k]) + one.series.begin for side in (stalls.start, stalls.end))
            model.append({"start": start, "end": end, "label": label if k in named else ""})
    return model


def stalls_section(found: Sequence[Found]) -> str:
    """Return a table of stalls a series, each with a button that selects its time."""
    held = [one for one in found if one.diagnosis is not None and len(one.diagnosis.found)]
    return section("stalls", "Stalls", *(_stalls(one, several=len(found) > 1) for one in held))


def _stalls(one: Found, *, several: bool) -> str:
    assert one.diagnosis is not None
    stalls = one.diagnosis.found
    rows: list[list[str]] = []
    for k in _longest(one.diagnosis, _LISTED):
        start, end = (float(side[k]) + one.series.begin for side in (stalls.start, stalls.end))
        button = (
            f"<button type='button' data-from='{start!r}' data-to='{end!r}'>Show</button>"
            if one.series.slots is not None
            else ""
        )
        cells = [_seconds(start), _seconds(end), format_duration((end - start) * 1e9)]
        share = f"{100 * float(stalls.share[k]):.3g} %"
        worst, missing = (
            format_duration(float(stalls.worst[k])),
            format_count(int(stalls.missing[k])),
        )
        rows.append([str(len(rows) + 1), *cells, worst, missing, share, button])
    more = len(stalls) - len(rows)
    caption = (
        f"{format_count(len(stalls))} stalls; the {len(rows)} longest are listed." if more else ""
    )
    header = ["", "from", "to", "length", "worst request", "requests missing", "delayed", ""]
    name = f"<p><b>{esc(one.series.name)}</b></p>" if several else ""
    return name + table(header, rows, caption) + bullets(_sentence(note) for note in stalls.notes)


def _seconds(moment: float) -> str:
    """A moment to the millisecond, as ``--from`` and ``--to`` take it."""
    return f"{moment:.3f}".rstrip("0").rstrip(".") + " s"


# ---------------------------------------------------------------- raw against corrected
def omission_section(found: Sequence[Found]) -> str:
    """Return the raw percentiles beside the corrected ones, with what speaks for it, for all series that omit."""
    held = [one for one in found if one.diagnosis is not None and one.diagnosis.verdict == "omits"]
    return section("omission", "What the measurement left out", *map(_omission, held))


def _omission(one: Found) -> str:
    found = one.diagnosis
    assert found is not None
    how = {
        "backfill": "corrected at the expected interval",
        "retime": "timed from the schedule",
    }.get(found.method or "", "")
    if found.method == "backfill" and found.expected_interval:
        how = f"corrected at the expected interval of {format_duration(found.expected_interval)}"
    rows = []
    for percentile, before, after in found.table:
        name = "max" if percentile >= 100 else f"p{format_percentile(percentile)}"
        fixed = "not known" if after is None else format_value(after, found.raw.unit)
        rows.append([name, esc(format_value(before, found.raw.unit)), esc(fixed)])
    said = f"<p>{verdict_badge(one)}</p>"
    evidence = bullets(
        [
            *(_sentence(f"{piece.test}: {piece.finding}") for piece in found.evidence),
            _sentence(found.ask),
        ]
    )
    header = ["", "as measured", f"corrected{f' ({esc(how)})' if how else ''}"]
    return said + table(header, rows, esc(one.series.name)) + evidence


def doubts(one: Found) -> list[str]:
    """Return what a diagnosis that cannot tell says to who trusts the numbers."""
    if _too_large(one.series):
        return [
            "A log of this size is not diagnosed along the way: latencykit diagnose tells stalls and what was left out."
        ]
    if one.diagnosis is None or one.diagnosis.verdict != "unknown":
        return []
    return [_sentence(text) for text in (one.diagnosis.summary, one.diagnosis.ask) if text]
