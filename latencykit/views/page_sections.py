"""The sections of a page as HTML: sentences, tables, and what its script draws beside them."""

from __future__ import annotations

import hashlib
import html
import math
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit import __version__
from latencykit._records import record
from latencykit.analysis.compare import compare, significance
from latencykit.analysis.correct import back_filled
from latencykit.analysis.fan_out import fan_outs, samples_needed
from latencykit.analysis.omission import diagnose
from latencykit.analysis.slo import for_all_series
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
    format_items,
    format_percentile,
    format_range,
    format_row,
    format_value,
    printable,
    sure_percentile,
    without_secrets,
)
from latencykit.views.page_data import DIGITS, PAGE_SIZE, PageSeries, finest, most_slots, slots_of
from latencykit.views.record import TRIMMED, number
from latencykit.views.text import (
    BADGES,
    comparison_reasons,
    percent,
    percentile_name,
    side_texts,
    slo_texts,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from latencykit.analysis.fan_out import FanOut
    from latencykit.analysis.omission import Diagnosis
    from latencykit.analysis.slo import SLORow

__all__ = [
    "Diagnosed",
    "InputFile",
    "as_raw",
    "as_sentence",
    "badge",
    "bullets",
    "comparison_section",
    "corrected_series",
    "diagnose_series",
    "doubts",
    "esc",
    "fan_out_model",
    "fan_out_section",
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
    "stall_spans",
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
        f"<th scope='col'{kind if k else ''}>{cell}</th>" if cell else "<td></td>"
        for k, cell in enumerate(header)
    )
    body = ""
    for first, *cells in rows:
        columns = "".join(f"<td{kind}>{cell}</td>" for cell in cells)
        body += f"<tr><th scope='row'>{first}</th>{columns}</tr>"
    title = f"<caption>{caption}</caption>" if caption else ""
    marked = f" id='{name}'" if name else ""
    return (
        f"<div class='scroll' tabindex='0'><table{marked}>{title}<thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def section(name: str, title: str, *parts: str) -> str:
    """Return a section with its heading; empty without content."""
    content = "".join(parts)
    if not content:
        return ""
    heading = f"<h2 id='{name}-title'>{title}</h2>"
    return f"<section id='{name}' aria-labelledby='{name}-title'>{heading}{content}</section>"


def bullets(texts: Iterable[str]) -> str:
    """Return escaped texts as a list."""
    items = "".join(f"<li>{esc(text, 500)}</li>" for text in texts if text)
    return f"<ul>{items}</ul>" if items else ""


# ------------------------------------------------------------
# Sentences: the finding of each series, and how far it can be trusted.

_RARE = ((99.9, "one in a thousand"), (99.0, "one in a hundred"), (90.0, "one in ten"))
_NEAR, _NONE, _FEW = 0.3, 0.005, 0.1
"""The mean describes requests within 30 % of it; smaller shares than these are none and few."""


def headline(data: Any, limit: float | None = None) -> str:
    """Return the finding in one sentence of everyday words."""

    def show(value: float) -> str:
        return format_value(value, data.unit)

    if isinstance(data, Summary):
        values = [f"{name} {show(value)}" for name, value in data.stats.items()]
        values += [
            f"{percentile_name(p)} {show(v)}" for p, v in sorted(data.reported_percentiles.items())
        ]
        of = "" if data.count is None else f" of {format_count(data.count)} requests"
        return (
            f"The source reports {', '.join(values) or 'no statistic'}{of}; "
            "it does not contain the rest of the distribution."
        )
    if isinstance(data, Histogram) and not data.count:
        return (
            f"No request was answered; {format_count(data.censored)} timed out."
            if data.censored
            else "Nothing was counted."
        )
    if isinstance(data, Distribution):
        half, rare = (show(float(data.percentile(p))) for p in (50, 99))
        return f"Half of the users wait {half} or less, one in a hundred over {rare}."
    if data.index.size == 1 and not data.censored and is_resolved(data.min, data.max):
        return f"All {format_count(data.requests)} requests took {show(data.max)}."
    # "or less" is also true of an upper bound.
    median = data.percentile_rows([50.0])[0]
    took = f"at least {show(median.value)}"
    if math.isfinite(median.bucket_high):
        took = f"{show(median.value)} or less"
    parts = [f"Half of the {format_count(data.requests)} requests took {took}"]
    highest = data.sample_limit() if limit is None else limit
    for row in data.percentile_rows([p for p, _ in _RARE]):
        unbounded = math.isinf(row.bucket_high)
        if row.percentile <= highest and (row.supported or unbounded):
            over = "at least" if unbounded else "over"
            value = show(row.value if row.resolved else row.bucket_low)
            parts.append(f"{dict(_RARE)[row.percentile]} {over} {value}")
            break
    parts.append(f"the worst {statistic_text(data, 'max')}")
    late = max(data.censored - (data.requests - data.count), 0)
    if late:
        parts.append(f"and {format_count(late)} gave no answer within {show(data.censored_at)}")
    return f"{', '.join(parts)}; {_mean_sentence(data)}."


def _mean_sentence(histogram: Histogram) -> str:
    """Say what the mean describes: how many requests may have taken about as long."""
    text = statistic_text(histogram, "mean")
    mean, low, high = histogram.mean, histogram.counted.low, histogram.counted.high
    if is_resolved(*histogram.bracket("mean")):
        near = (low <= (1 + _NEAR) * mean) & (high >= (1 - _NEAR) * mean)
        share = float(histogram.counts[near].sum()) / histogram.count
        if share < _FEW:
            few = "none" if share < _NONE else "hardly any"
            return f"the mean, {text}, describes {few} of them"
    return f"the mean is {text}"


def resolution(series: PageSeries) -> str:
    """Return how coarse the page is, for readers who compare its numbers with those of the file."""
    slots, data = series.slots, series.data
    assert slots is not None
    wide = 100.0 / (1 << int(np.ceil(np.log2(2 * 10**DIGITS))) - 1)
    close = "counts, maxima and percentiles are those of the file"
    if slots.rough is None and np.any(slots.high > slots.low * (1 + 0.1 / 10**DIGITS)):
        close = (
            "counts and maxima are exact, percentiles of a selection lie at most "
            f"{wide:.1g} % above those of the file"
        )
    seconds = slots.width or 0.0
    width = format_duration(seconds * 1e9)
    for size, name in ((60, "min"), (3600, "h"), (86400, "d")):
        if seconds >= size:
            width = f"{seconds / size:.3g} {name}"
    if isinstance(data, Samples):
        how = f"Requests are counted into time bins of {width} by the moment they were sent"
    elif slots.width is None:
        how = "Each time bin is one interval of the file"
    else:
        count = format_count(len(data))
        how = f"Each time bin sums up the intervals that start within {width}, {count} in all"
    return f"{how}: {close}."


def trust(data: Any, record: Mapping[str, Any]) -> list[str]:
    """Return what limits the numbers, one sentence each; `record` is that of ``summary``."""
    run, sentences = data.run, []
    limit = record["highest_supported_percentile"]
    if isinstance(data, Histogram) and data.count and limit:
        highest = f"p{format_percentile(sure_percentile(limit))}"
        sentences.append(
            f"Highest supported percentile of {format_count(data.requests)} requests: {highest}. "
            "Others are in brackets."
        )
    if record["tail_note"]:
        sentences.append(as_sentence(record["tail_note"]))
    if isinstance(data, Distribution):
        sentences.append("A model, not a measurement: it has no confidence intervals.")
    if run.unit_note is not None and run.unit_note not in run.notes:
        sentences.append(as_sentence(run.unit_note))
    if run.corrected == "unknown" and run.loop in ("closed", "paced"):
        sentences.append(
            "A closed loop waits for each reply before it sends the next request: "
            "during a stall it measures nothing."
        )
    if run.corrected in ("us", "tool"):
        sentences.append(
            "Corrected for coordinated omission: added values follow from those measured, "
            "so no confidence is claimed."
        )
    others = {
        "failed": run.failed,
        "timed out": run.timeouts,
        "dropped": run.dropped,
        "unfinished": run.unfinished,
    }
    counts = [f"{format_count(number)} {word}" for word, number in others.items() if number]
    if counts:
        sentences.append(f"Not counted among the answered requests: {', '.join(counts)}.")
    return [*sentences, *(as_sentence(note) for note in record["notes"])]


def as_sentence(text: str) -> str:
    """Return a text with a capital and a full stop; empty stays empty."""
    if not text:
        return ""
    first = text[:1] if re.match(r"lk\.|p\d", text) else text[:1].upper()
    return f"{first}{text[1:]}{'' if text.endswith(('.', '!')) else '.'}"


# ------------------------------------------------------------
# Provenance: files, sizes, hashes, tools, and the command that made the page.


@record()
class InputFile:
    """A file that was read: name, size in bytes, SHA-256; None for a stream or a missing file."""

    name: str
    size: int | None
    sha256: str | None


def input_file(path: str | Path) -> InputFile:
    """Return what identifies a file."""
    file = Path(without_secrets(str(path)))
    if str(path) == "-" or not file.is_file():
        return InputFile("standard input" if str(path) == "-" else file.name, None, None)
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return InputFile(file.name, file.stat().st_size, digest)


def provenance(series: Mapping[str, Any], files: Sequence[InputFile], command: str | None) -> str:
    """Return tables of files, of series, and of this page."""
    inputs = [
        [
            esc(file.name),
            "" if file.size is None else f"{format_count(file.size)} bytes",
            f"<code>{file.sha256 or 'not known'}</code>",
        ]
        for file in files
    ]
    sources = []
    for name, run in ((name, data.run) for name, data in series.items()):
        tool = " ".join(filter(None, (run.tool, run.version)))
        facts = [esc(fact or "not known") for fact in (run.source, run.format, tool)]
        code = f"<code>{esc(run.command, 1000)}</code>" if run.command else ""
        sources.append([esc(name or "all requests", 80), *facts, code])
    page = [
        ["made by", f"latencykit {__version__}"],
        ["made at", f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"],
    ]
    if command:
        page.append(["command", f"<code>{esc(without_secrets(command), 2000)}</code>"])
    header = ["series", "source", "format", "tool", "its command"]
    parts = [table(["file", "size", "SHA-256"], inputs, words=True)] if inputs else []
    parts.append(table(header, sources, words=True))
    parts.append(table(["this page", ""], page, words=True))
    return "".join(parts)


# ------------------------------------------------------------
# The tables of the whole run: beside the curve, and all key numbers with their intervals. Both are
# made of the record that ``latencykit summary`` prints, so that both give the same numbers.

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
        text = "model" if record["rung"] == "model" else text
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
    caption = (
        "Small: the 95 % confidence interval, joined with the bucket. "
        "In brackets: sample too small for this percentile."
    )
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
        "failed": record.get("failed") or None,
        "timed out": series.late or None,
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
        trim = record.get("trimmed", {}).get(name)
        if trim is not None and trim["high"] is not None:
            stated[name] = esc(
                show(trim["value"])
                if trim["resolved"]
                else format_range(trim["low"], trim["high"], show)
            )
    return cells | {name: text for name, text in stated.items() if text}


def _show(record: dict[str, Any]) -> Callable[[float], str]:
    return lambda value: format_value(value, record["unit"])


def _cell(row: dict[str, Any], record: dict[str, Any]) -> str:
    if row["percentile"] >= 100:  # a maximum needs no support
        row = row | {"supported": None}
    return esc(format_row(row, _show(record)))


def _statistic(record: dict[str, Any], name: str) -> str:
    """A mean or an extreme, or its range where the source gives only that."""
    bounds, value = record.get("ranges", {}).get(name), record.get(name)
    if bounds is not None:
        return esc(format_range(bounds["low"], bounds["high"], _show(record)))
    return "" if value is None else esc(_show(record)(value))


# ------------------------------------------------------------
# Comparisons: every series against the first one.

_COMPARED = 6
"""Series that are compared with the first one."""

_UNFOLDED = 2
"""Comparisons whose tables are open; of more, the verdicts are seen first."""


def comparison_section(series: Sequence[PageSeries]) -> str:
    """Return one table per series that is compared with the first; empty for a single series."""
    if len(series) < 2:
        return ""
    base, *others = series
    compared = others[:_COMPARED]
    parts = [_against(base, other, folded=len(compared) > _UNFOLDED) for other in compared]
    if len(others) > _COMPARED:
        more = len(others) - _COMPARED
        parts.append(f"<p class='quiet'>The other {more} series are not compared here.</p>")
    return section("comparison", f"Compared with {esc(base.name, 60)}", *parts)


def _against(base: PageSeries, other: PageSeries, *, folded: bool) -> str:
    name = f"<b>{esc(other.name, 60)}</b>"
    try:
        comparison = compare(_timed(base), _timed(other))
    except LatencyKitError as error:  # a summary beside a curve, or an empty series
        return f"<p>{name}: {esc(error)}</p>"
    rows = []
    for row in comparison.changes:
        low = format_change(row.low) if row.low > -1 else "unknown"
        high = format_change(row.high) if math.isfinite(row.high) else "unknown"
        rows.append(
            [
                esc("max" if row.percentile == 100 else row.statistic),
                *map(esc, side_texts(row, lambda value: format_value(value, comparison.unit))),
                format_change(row.change),
                f"{low} to {high}" if {low, high} != {"unknown"} else "",
                significance(row),
            ]
        )
    notes = [
        *comparison.warnings,
        *dict.fromkeys(row.note for row in comparison.changes if row.note),
    ]
    names = (base.short or base.name, other.short or other.name)
    header = [
        "",
        *map(esc, names),
        "change",
        "95 % interval",
        "significant",
    ]
    # The reasons come first: without them the numbers may seem to contradict the verdict.
    why, further = (
        bullets(as_sentence(text) for text in texts)
        for texts in (comparison_reasons(comparison, *names), notes)
    )
    verdict = f"{name} {badge(comparison.verdict)}"
    content = f"{why}{table(header, rows)}{further}"
    if folded:
        return f"<details><summary>{verdict}</summary>{content}</details>"
    return f"<p>{verdict}</p>{content}"


def badge(verdict: str) -> str:
    """Return a verdict as a coloured word."""
    return f"<span class='badge {BADGES[verdict]}'>{verdict}</span>"


def _timed(series: PageSeries) -> Any:
    """The measurement with its times, in the unit of the page; its counts where it has no times."""
    if not isinstance(series.data, HistogramLog | Samples) or not len(series.data):
        return series.counted
    same = series.data.unit == series.counted.unit
    return series.data if same else series.data.to_unit(series.counted.unit)


# ------------------------------------------------------------
# Limits: as a staircase beside the curve, and a table of verdicts.


def slo_rows(slo: Any, series: Sequence[PageSeries]) -> list[list[SLORow]]:
    """Return the verdicts of each series, one per limit; empty without an SLO."""
    if slo is None:
        return []
    stated = for_all_series(slo)
    checked = []
    for entry in series:
        rows = stated.check(_timed(entry))
        if entry.counted.run.unit_from == "assumed":
            # A limit in time cannot be compared with values whose unit is only assumed.
            reason = "the unit of the values is only assumed; --unit settles it"
            rows = [
                row
                if row.is_share or row.unit == "none"
                else replace(row, outcome="unknown", reason=reason)
                for row in rows
            ]
        checked.append(rows)
    return checked


def slo_steps(checked: Sequence[Sequence[SLORow]]) -> list[dict[str, Any]]:
    """Return the limits on percentiles as steps; the worst verdict of all series colours each."""
    steps = []
    for rows in zip(*checked, strict=True):
        statistic, outcomes = rows[0].statistic, {row.outcome for row in rows}
        if statistic == "max" or statistic.startswith("p"):
            percentile = 100.0 if statistic == "max" else float(statistic[1:])
            worst = next(outcome for outcome in ("missed", "unknown", "met") if outcome in outcomes)
            limit = number(rows[0].limit)
            steps.append({"percentile": percentile, "limit": limit, "outcome": worst})
    return sorted(steps, key=lambda step: step["percentile"])


def slo_section(checked: Sequence[Sequence[SLORow]], series: Sequence[PageSeries]) -> str:
    """Return the table of verdicts: a row per limit, a column per series."""
    if not checked:
        return ""
    rows, missed, unknown = [], 0, 0
    for results in zip(*checked, strict=True):
        outcomes = {row.outcome for row in results}
        missed, unknown = missed + ("missed" in outcomes), unknown + ("unknown" in outcomes)
        cells = [f"{esc(results[0].statistic)} ≤ {esc(slo_texts(results[0])[0])}"]
        for row in results:
            reason = f"<small>{esc(row.reason)}</small>" if row.reason else ""
            cells.append(f"{badge(row.outcome)} {esc(slo_texts(row)[1])}{reason}")
        rows.append(cells)
    title = "SLO: met"
    if missed or unknown:
        verdict = "missed" if missed else "cannot be judged"
        title = f"SLO: {missed or unknown} of {len(rows)} limits {verdict}"
    legend = (
        "<p class='quiet'>Met: the entire confidence interval is within the limit. "
        "Missed: the entire interval is beyond it.</p>"
    )
    header = ["limit", *(esc(entry.short or entry.name) for entry in series)]
    return section("slo", title, legend, table(header, rows, words=True))


# ------------------------------------------------------------
# Fan-out: the latency of users who wait for the slowest of n calls, for each n of a slider.

_CALLS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000)
_PERCENTILES = (50.0, 90.0, 99.0)
_FIRST = _CALLS.index(100)


def fan_out_model(series: Sequence[PageSeries]) -> list[dict[str, Any]]:
    """Return the values behind the slider for each measured series; six series at most."""
    counted = [
        part for part in series if isinstance(part.counted, Histogram) and part.counted.count
    ]
    model = []
    for part in counted[:6]:
        alone = fan_outs(part.counted, _CALLS, independent=True, shares=(99.0,))
        mixed: Sequence[FanOut | None] = [None] * len(_CALLS)
        if part.slots is not None:
            mixed = fan_outs(part.slots.log(part.counted.unit), _CALLS, shares=(99.0,))
        rows = [
            {
                "n": apart.n,
                "words": _fan_out_sentences(apart, together),
                "independent": _fan_out_values(apart, part.counted.max),
                "mixture": [] if together is None else _fan_out_values(together, part.counted.max),
            }
            for apart, together in zip(alone, mixed, strict=True)
        ]
        timed = part.slots is not None
        model.append({"name": part.name, "mixed": timed, "percentiles": _PERCENTILES, "rows": rows})
    return model


def _fan_out_values(answer: FanOut, largest: float) -> list[dict[str, Any]]:
    return [
        {
            "value": number(min(row.value, largest)),
            "low": number(min(row.bucket_low, largest)),
            "resolved": row.resolved,
            "open": not math.isfinite(row.bucket_high),
            "supported": row.supported,
        }
        for row in map(answer.row, _PERCENTILES)
    ]


def _fan_out_sentences(apart: FanOut, together: FanOut | None) -> str:
    percentile = apart.leaf_percentile(99.0)
    calls = f"{format_count(apart.n)} calls" if apart.n > 1 else "1 call"
    answer = together or apart
    text = (
        f"Of users who wait for {calls}, {_fan_out_share(answer)} meet one that is slower than "
        "the p99 of a single call"
    )
    if together is not None and together.model == "mixture":
        text += f" ({_fan_out_share(apart)} if slow calls came independently of each other)"
    needed = format_count(samples_needed(percentile))
    leaf = f"{percentile:.5f}".rstrip("0").rstrip(".")
    basis = (
        f"the p99 of users is based on the p{leaf} of one call, which takes {needed} requests to "
        "know"
    )
    note = f" {answer.note[:1].upper()}{answer.note[1:]}." if answer.note else ""
    return f"{text}; {basis}.{note}"


def _fan_out_share(answer: FanOut) -> str:
    between = answer.above_between.get(99.0, (answer.above[99.0],) * 2)
    low, high = (f"{100 * share:.0f}" for share in between)
    return f"{high} %" if low == high else f"{low}–{high} %"


def fan_out_section(model: Sequence[dict[str, Any]]) -> str:
    """Return the section around the plot: slider, sentence and table."""
    if not model:
        return ""
    mixed = any(row["mixed"] for row in model)
    legend = (
        "Solid: all calls of a user fall into the same moment, as they do (mixed by the steps of "
        "the timeline). Dashed: as if slow calls came independently of each other."
        if mixed
        else "As if slow calls came independently of each other: a source without time does not "
        "show when they came together."
    )
    choice = ""
    if len(model) > 1:
        options = "".join(
            f"<option value='{k}'>{esc(row['name'], 60)}</option>" for k, row in enumerate(model)
        )
        choice = f"<p><label>Series <select id='fan-out-series'>{options}</select></label></p>"
    slider = (
        "<p class='slider'><label for='fan-out-slider'>calls "
        f"<b id='fan-out-n'>{_CALLS[_FIRST]}</b></label><input type='range' id='fan-out-slider' "
        f"min='0' max='{len(_CALLS) - 1}' value='{_FIRST}'></p>"
    )
    first = esc(model[0]["rows"][_FIRST]["words"], 500)
    columns = ["users'", *(["in one moment"] if mixed else []), "if independent"]
    return section(
        "fan-out",
        "Waiting for many answers",
        f"<p class='quiet'>{legend}</p>",
        choice,
        slider,
        f"<p id='fan-out-words' aria-live='polite'>{first}</p>",
        "<div id='plot-fanOut' class='plot'></div>",
        table(columns, [], name="fan-out-table"),
    )


# ------------------------------------------------------------
# Diagnoses: stalls, the verdict on coordinated omission, and the corrected series beside the raw.

_SHADED, _LISTED, _LABELLED = 100, 20, 4
"""Numbers of the longest stalls that are shaded, listed, and labelled."""

_CLOSE_UP, _SHORT_STALL = 6, 3
"""Stalls with time bins of their own: most of them, and time bins that a longer one spans."""

_COUNTS = 60_000_000
"""Logs of more counts are not diagnosed for a page; an hour of a very busy server is 14 million."""


@record(eq=False)
class Diagnosed:
    """A series and its diagnosis; None where the source cannot be diagnosed."""

    series: PageSeries
    diagnosis: Diagnosis | None

    @property
    def omits(self) -> bool:
        """The diagnosis found coordinated omission."""
        return self.diagnosis is not None and self.diagnosis.verdict == "omits"


def diagnose_series(series: Sequence[PageSeries], how: dict[str, Any]) -> list[Diagnosed]:
    """Diagnose every measured series; `how` are the other arguments of `lk.diagnose`."""
    diagnosed = []
    for entry in series:
        model = isinstance(entry.counted, Distribution)
        skip = model or entry.counted.unit == "none" or not entry.counted.count or _too_large(entry)
        diagnosed.append(Diagnosed(entry, None if skip else diagnose(entry.data, **how)))
    return diagnosed


def _too_large(series: PageSeries) -> bool:
    """Return True if the passes that a diagnosis takes over the log would take minutes."""
    if series.slots is None or not isinstance(series.data, HistogramLog):
        return False
    # As if no interval of a time bin shared buckets with another.
    most = series.slots.decoded * len(series.data) / series.slots.start.size
    return bool(min(most, series.counted.count) > _COUNTS)


def corrected_series(
    diagnosed: Sequence[Diagnosed], page_size: int = PAGE_SIZE
) -> list[PageSeries]:
    """Return the corrected series of those that omit, over time where back-filling keeps it."""
    shadows: list[PageSeries] = []
    for entry in diagnosed:
        own, diagnosis = entry.series, entry.diagnosis
        if diagnosis is None or diagnosis.verdict != "omits" or diagnosis.corrected is None:
            continue
        corrected, interval = diagnosis.corrected, diagnosis.expected_interval
        data, slots, log = corrected, None, None
        if (
            diagnosis.method == "backfill"
            and interval is not None
            and isinstance(own.data, HistogramLog)
        ):
            log = back_filled(own.data, interval)
            slots, data = slots_of(log, *most_slots(len(diagnosed), page_size))
        # A colour that no other series has, and a dash beside several.
        taken = {other.series.look[0] for other in diagnosed} | {
            shadow.look[0] for shadow in shadows
        }
        free = (name for name in ("c0", "c2", "c3", "c1", "c4", "c5") if name not in taken)
        look = (next(free, "c0"), "dash3" if len(diagnosed) > 1 else "")
        # The correction supplies the values from where they are twice the raw ones.
        percentiles = 100 * (1 - 10.0 ** -np.arange(0.05, 9, 0.05))
        moved = corrected.percentile(percentiles) > 2 * own.counted.percentile(percentiles)
        start = float(percentiles[int(np.argmax(moved))]) if moved.any() else 100.0
        supplied = start, format_items(max(1, len(diagnosis.detected_stalls)), "stall")
        name = f"{own.name}, corrected"
        shadows.append(PageSeries(name, data, corrected, slots, look, True, supplied, log))
    return shadows


def as_raw(diagnosed: Sequence[Diagnosed]) -> list[Diagnosed]:
    """Return a single series that omits in the colour of raw measurements."""
    if len(diagnosed) != 1 or not diagnosed[0].omits:
        return list(diagnosed)
    return [replace(diagnosed[0], series=replace(diagnosed[0].series, look=("raw", "")))]


def verdict_badge(entry: Diagnosed) -> str:
    """Return the verdict as a coloured word, and its sentence."""
    if entry.diagnosis is None or entry.diagnosis.verdict == "unknown":
        return ""
    return f"{badge(entry.diagnosis.verdict)} {esc(as_sentence(entry.diagnosis.summary))}"


def _longest(diagnosis: Diagnosis, most: int) -> list[int]:
    """Positions of the longest stalls, in order of time."""
    return sorted(np.argsort(-diagnosis.detected_stalls.duration, kind="stable")[:most].tolist())


def stalls_model(diagnosed: Sequence[Diagnosed]) -> list[dict[str, Any]]:
    """Return the stalls that the timeline shades."""
    model = []
    for entry in diagnosed:
        if entry.diagnosis is None:
            continue
        stalls = entry.diagnosis.detected_stalls
        labelled = set(_longest(entry.diagnosis, _LABELLED)) if len(stalls) <= _LISTED else set()
        for k in _longest(entry.diagnosis, _SHADED):
            label = ""
            if k in labelled:
                label = f"stall {format_duration(float(stalls.duration[k]) * 1e9, 2)}"
                missing = int(stalls.missing[k])
                if missing and entry.omits:
                    label += f" · ~{format_count(missing)} requests missing"
            start, end = (
                float(side[k]) + entry.series.begin for side in (stalls.start, stalls.end)
            )
            model.append({"start": start, "end": end, "label": label})
    return model


def stall_spans(diagnosed: Sequence[Diagnosed]) -> list[tuple[float, float]]:
    """Return the time around each of the longest stalls that is shorter than a few time bins."""
    spans = []
    for entry in diagnosed:
        slots = entry.series.slots
        if entry.diagnosis is None or slots is None:
            continue
        interval, stalls = finest([entry.series]), entry.diagnosis.detected_stalls
        if slots.width is None or slots.width < 2 * interval:
            continue
        for k in _longest(entry.diagnosis, _CLOSE_UP):
            start, end = (
                float(side[k]) + entry.series.begin for side in (stalls.start, stalls.end)
            )
            if end - start < _SHORT_STALL * slots.width:
                margin = 4 * (end - start) + 60 * interval
                spans.append((end - start, (max(0.0, start - margin), end + margin)))
    return [span for _, span in sorted(spans, reverse=True)[:_CLOSE_UP]]


def stalls_section(diagnosed: Sequence[Diagnosed]) -> str:
    """Return a table of stalls per series, each with a button that selects its time."""
    parts = [
        _stalls_table(entry.series, entry.diagnosis, several=len(diagnosed) > 1)
        for entry in diagnosed
        if entry.diagnosis is not None and len(entry.diagnosis.detected_stalls)
    ]
    return section("stalls", "Stalls", *parts)


def _stalls_table(series: PageSeries, diagnosis: Diagnosis, *, several: bool) -> str:
    stalls = diagnosis.detected_stalls
    rows: list[list[str]] = []
    for k in _longest(diagnosis, _LISTED):
        start, end = (float(side[k]) + series.begin for side in (stalls.start, stalls.end))
        button = ""
        if series.slots is not None:
            button = f"<button type='button' data-from='{start!r}' data-to='{end!r}'>Show</button>"
        rows.append(
            [
                str(len(rows) + 1),
                _seconds(start),
                _seconds(end),
                format_duration((end - start) * 1e9),
                format_duration(float(stalls.worst[k])),
                format_count(int(stalls.missing[k])),
                percent(float(stalls.share[k])),
                button,
            ]
        )
    caption = ""
    if len(stalls) > len(rows):
        caption = f"{format_count(len(stalls))} stalls; the {len(rows)} longest are listed."
    header = ["", "from", "to", "length", "worst request", "requests missing", "delayed", ""]
    name = f"<p><b>{esc(series.name)}</b></p>" if several else ""
    return name + table(header, rows, caption) + bullets(map(as_sentence, stalls.notes))


def _seconds(moment: float) -> str:
    """A moment to the millisecond, as ``--from`` and ``--to`` take it."""
    return f"{moment:.3f}".rstrip("0").rstrip(".") + " s"


def omission_section(diagnosed: Sequence[Diagnosed]) -> str:
    """Return raw percentiles beside corrected ones, with the evidence, for all that omit."""
    parts = []
    for entry in diagnosed:
        diagnosis = entry.diagnosis
        if diagnosis is None or diagnosis.verdict != "omits":
            continue
        how = ""
        if diagnosis.method == "backfill":
            interval = diagnosis.expected_interval
            of = f" of {format_duration(interval)}" if interval else ""
            how = f" at the expected interval{of}"
        elif diagnosis.method == "retime":
            how = " by the schedule"
        rows = []
        for percentile, raw, corrected in diagnosis.table:
            value = "not known"
            if corrected is not None:
                value = format_value(corrected, diagnosis.raw.unit)
            measured = format_value(raw, diagnosis.raw.unit)
            rows.append([percentile_name(percentile), esc(measured), esc(value)])
        evidence = [as_sentence(f"{piece.test}: {piece.finding}") for piece in diagnosis.evidence]
        parts += [
            f"<p>{verdict_badge(entry)}</p>",
            table(["", "as measured", f"corrected{esc(how)}"], rows, esc(entry.series.name)),
            bullets([*evidence, as_sentence(diagnosis.advice)]),
        ]
    return section("omission", "What the measurement left out", *parts)


def doubts(entry: Diagnosed) -> list[str]:
    """Return the reasons why coordinated omission is not judged."""
    if _too_large(entry.series):
        return [
            (
                "A log of this size is not diagnosed for a page: latencykit diagnose finds stalls "
                "and "
                "coordinated omission."
            )
        ]
    if entry.diagnosis is None or entry.diagnosis.verdict != "unknown":
        return []
    return [as_sentence(text) for text in (entry.diagnosis.summary, entry.diagnosis.advice) if text]
