"""The interactive page: sentences and tables as HTML, and the data that its script draws.

The engine is plain JavaScript of our own, some 2,000 lines: Vega-Lite's libraries are 0.9 MB and
take seconds to load, and its expression interpreter (which a policy without ``unsafe-eval``
needs) walks over half a million bucket counts at each move of the brush. This way a page needs no
further package, opens at once, and is text and SVG that a screen reader, a printer and a dark
screen understand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from latencykit import units
from latencykit._text import esc, format_items, isolated, option, script_json
from latencykit._typing import JSONObject
from latencykit.analysis.compare import Comparison, compare
from latencykit.analysis.omission import diagnose
from latencykit.analysis.slo import SLOResult, for_all_series, why
from latencykit.core import Data
from latencykit.core.distribution import Distribution
from latencykit.core.histogram import Histogram
from latencykit.core.histogram_log import HistogramLog
from latencykit.core.key_statistics import small_curve
from latencykit.core.percentile_rows import Doubt
from latencykit.core.run import TOTAL
from latencykit.core.samples import Samples
from latencykit.core.summary import Summary
from latencykit.errors import DataNotAvailableError, InvalidArgumentError, LatencyKitError
from latencykit.plot.series import as_series, chart_title, conditions
from latencykit.views.compare import comparison_section
from latencykit.views.diagnosis import (
    doubts,
    omission_section,
    stalls_model,
    stalls_section,
    verdict_badge,
)
from latencykit.views.document import asset, document, script_of
from latencykit.views.explanation import explanation_html
from latencykit.views.fan_out import fan_out_model, fan_out_section
from latencykit.views.markup import SCROLLED, as_sentence, bullets, section, table
from latencykit.views.page_data import DIGITS
from latencykit.views.page_series import (
    PAGE_SIZE,
    PageSeries,
    bin_width,
    edges_of,
    finer,
    finest,
    fitted,
    page_series,
    with_short_names,
)
from latencykit.views.provenance import InputFile, provenance
from latencykit.views.series import TRIMMED, SeriesRecord, Statistic
from latencykit.views.slo import slo_section, slo_steps
from latencykit.views.summary import headline, trust
from latencykit.views.values import PercentileRecord, causes_text

if TYPE_CHECKING:
    from latencykit.analysis.explain import Explanation

_BODY = 60_000  # bytes kept for the sentences and tables of a page


def page_html(
    data: object,
    *,
    title: str | None = None,
    slo: object = None,
    files: Sequence[InputFile] = (),
    command: str | None = None,
    page_size: int | str = PAGE_SIZE,
    origins: Mapping[str, Mapping[str, object]] | None = None,
    **diagnosis: object,
) -> str:
    """Return the page; see `latencykit.report`."""
    # `origins` has for each series its file and how it was read, for the commands that the page
    # offers; otherwise they name the file that the data themselves name.
    named = as_series(data)
    # All series, corrected ones last, and close-ups, within a limit in bytes.
    limit = units.byte_count(page_size)
    measured = diagnose_series(page_series(named, limit), diagnosis)
    if len(measured) == 1 and measured[0].omits:  # in the colour of raw measurements
        measured = [replace(measured[0], look=("raw", ""))]
    series = with_short_names([*measured, *corrected_series(measured)])
    # Close-ups of the spans, the first ones, as far as they take a quarter of the page.
    details, spare = [], limit / 4
    for start, end in stall_spans(measured):
        detail = finer({entry.name: entry.data for entry in series}, start, end)
        spare -= len(script_json(detail))
        if spare < 0:
            break
        details.append(detail)
    fixed = [{"curve": entry.curve_record} for entry in series], details
    engine = len(asset("page.css")) + len(script_of("page"))
    series = fitted(series, limit - len(script_json(fixed)) - engine - _BODY)
    measured = series[: len(measured)]
    checked, percentiles = checked_limits(slo, series), shown_percentiles(series)
    model = page_model(series, percentiles, origins or {})
    model |= {"slo": slo_steps(checked), "fanOut": fan_out_model(measured), "details": details}
    heading = title if title is not None else page_title(measured)
    # What limits the numbers, beneath the names of the series of which the same is said.
    limits: dict[str, list[str]] = {}
    of_all: list[str] = []
    for entry in measured:
        lines = [*trust(entry.counted, entry.numbers), *doubts(entry)]
        text = bullets([line for line in lines if line not in of_all])
        if entry.counted.run.aggregate:  # what is said of a total is not repeated
            of_all += lines
        limits.setdefault(text, []).append(isolated(esc(entry.short)))
    reliability = list(limits)
    if len(measured) > 1:
        reliability = [
            f"<p><b>{', '.join(names)}</b></p>{text}" for text, names in limits.items() if text
        ]
    parts = [
        header_html(heading, measured, checked),
        slo_section(checked, series),
        explorer_html(series, percentiles),
        stalls_section(measured),
        omission_section(measured),
        section(
            "explain",
            "What slow requests have in common",
            explanation_html(explanations(named), several=len(named) > 1),
        ),
        comparison_section(measured, comparisons(measured)),
        fan_out_section(model["fanOut"]),
        f"<div class='{'pair' if len(series) <= 3 else ''}'>",
        section("key-numbers", "Key numbers", key_table(series)),
        section("trust", "How far to trust this", *reliability),
        "</div>",
        section("provenance", "Where it comes from", provenance(named, files, command)),
    ]
    return document(heading, "".join(parts), model)


def explorer_parts(data: object) -> tuple[str, str, JSONObject]:
    """Return the linked views without the rest of a page: heading, HTML, and what they draw."""
    series = fitted(with_short_names(diagnose_series(page_series(as_series(data)), {})))
    percentiles = shown_percentiles(series)
    heading = header_html(page_title(series), series)
    return heading, explorer_html(series, percentiles), page_model(series, percentiles)


# ------------------------------------------------------------
# The linked views, the heading, and the data that the script draws.


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
    width = units.format_duration(1e9 * (slots.width or 0.0))
    how = f"Requests are counted into time bins of {width} by the moment they were sent"
    if isinstance(data, HistogramLog):
        how = "Each time bin is one interval of the file"
        if slots.width is not None:
            count = units.format_count(len(data))
            count += f" of {len(data.tags)} tags" if len(data.tags) > 1 else ""
            how = f"Each time bin sums up the intervals that start within {width}, {count} in all"
    return f"{how}: {close}."


_SENTENCES = 4  # series that each have a sentence above the pictures

_LINES = (  # legend of the percentile curve
    "<p class='quiet'>How long the fastest n % of the requests took at most. "
    "<span class='key'><i class='swatch'></i>supported by the sample</span> "
    "<span class='key'><i class='swatch few'></i>uncertain</span> "
    "<span class='key'><i class='swatch dotted'></i>sample too small</span>"
)


def page_model(
    series: Sequence[PageSeries],
    percentiles: Sequence[float],
    origins: Mapping[str, Mapping[str, object]] = MappingProxyType({}),
) -> dict[str, Any]:
    """The data that the engine draws."""
    runs = [entry.counted.run for entry in series]
    tagged = {(run.source, run.series) for run in runs if run.tags}
    records = []
    for entry, run in zip(series, runs, strict=True):
        # How the series can be read again: the file, and the options of `latencykit.read`. Beside
        # the tags of a log, what has no tag is its untagged part.
        beside = (run.source, run.series) in tagged
        whole = beside and run.aggregate and not run.tags
        origin: dict[str, object] = {
            "path": run.source or entry.name,
            "series": TOTAL if whole else run.series,
            "tag": run.tags[0] if run.tags else "" if beside and not whole else None,
        }
        if run.unit_from == "option":
            origin["unit"] = run.unit
        given = {k: v for k, v in origins.get(entry.name, {}).items() if v is not None}
        known = {k: v for k, v in (origin | given).items() if v is not None}
        records.append(entry.record() | {"origin": known})
    # The moment when the series began, where all began at the same one.
    starts = {entry.data.run.start for entry in series if entry.slots is not None}
    epoch = starts.pop() if len(starts) == 1 else None
    return {
        "unit": series[0].counted.unit,
        "series": records,
        "stalls": stalls_model(series),
        "slo": [],
        "fanOut": [],
        "details": [],
        "bin": bin_width(series),
        "finest": finest(series),
        "epoch": epoch if epoch is not None and 0 < epoch < 253_402_300_799 else None,
        "edges": edges_of(series),
        "percentiles": percentiles,
    }


def page_title(series: Sequence[PageSeries]) -> str:
    """Return the names of the series and what was measured, as a chart is headed."""
    return chart_title({entry.name: entry.counted for entry in series}).replace("\\$", "$")


def header_html(title: str, series: Sequence[PageSeries], checked: Sequence[SLOResult] = ()) -> str:
    """Return the heading of a page, and of each series the key numbers, SLO, and incident."""
    each = " each" if len(series) > 1 else ""
    listed = [conditions(entry.counted, each) for entry in series]
    shared = [part for part in listed[0] if all(part in other for other in listed[1:])]
    sentences, folded, pictures = "", "", ""
    for k, entry in enumerate(series):
        name = f"<b>{esc(entry.name)}</b>" if len(series) > 1 else ""
        facts = [
            headline(entry.counted),
            *(as_sentence(rows.headline) for rows in checked[k : k + 1]),
        ]
        if entry.numbers["incident"]:
            facts.append(as_sentence(entry.numbers["findings"][0]))
        sentence = esc(" ".join(facts), 600)
        words = (
            f"<p class='headline {entry.look[0]}'>{name}{sentence}"
            f"<span class='verdict'>{verdict_badge(entry)}</span></p>"
        )
        # Of many series the pictures come first, but for the total, and what is wrong with one.
        if len(series) <= _SENTENCES or entry.omits or entry.counted.run.aggregate:
            sentences += words
        else:
            folded += words
        if not isinstance(entry.counted, Summary):
            pictures += f"<p>{esc(entry.name)}<br>{small_curve(entry.counted)}</p>"
    terms = esc(" · ".join(shared)).replace("\\$", "$")
    if folded:
        sentences += f"<details><summary>Each series in a sentence</summary>{folded}</details>"
    return (
        f"<header><h1>{esc(title)}</h1><p class='conditions'>{terms}</p>{sentences}"
        "<p id='trouble' hidden></p>"
        # The preview of a mail program runs no script. Not <noscript>: in a frame that runs none,
        # Chromium shows its content as text.
        "<div id='static'><p>The charts need JavaScript; the tables contain the numbers.</p>"
        f"{pictures}</div></header>"
    )


def explorer_html(series: Sequence[PageSeries], percentiles: Sequence[float]) -> str:
    """The linked views: the curve shows what is selected in the timeline."""
    shown = f"<b>{esc(series[0].name, 60)}</b>"
    if len(series) > 1:
        shown = "".join(
            f"<button type='button' data-series='{k}' aria-pressed='true' "
            f"title='{esc(entry.name)}'>"
            f"<i class='swatch {' '.join(entry.look)}'></i>{isolated(esc(entry.short))}</button>"
            for k, entry in enumerate(series)
        )
    rows = [entry.rows(percentiles) for entry in series]
    causes = causes_text([known[p] for known in rows for p in percentiles if p in known])
    causes = f" ({causes})" if causes else ""
    selection = when = timeline = heat_map = ""
    timed = [entry for entry in series if entry.slots is not None]
    if timed:
        selection = (
            "<span class='span'><span class='quiet'>Selected: <b id='selected'>the whole run</b>"
            "</span> <button type='button' id='whole' disabled>Show the whole run</button></span>"
        )
        when = (
            " <span class='hint'>Drag across the curve to see when such requests occurred.</span>"
        )
        bins: dict[str, list[str]] = {}
        for entry in timed:
            bins.setdefault(resolution(entry), []).append(isolated(esc(entry.short)))
        notes = "".join(
            "<p class='quiet'>"
            + (f"<b>{', '.join(names)}:</b> " if len(bins) > 1 else "")
            + f"{esc(text)}</p>"
            for text, names in bins.items()
        )
        if len(bins) > 1:
            summary = "<summary class='quiet'>How wide the time bins are</summary>"
            notes = f"<details>{summary}{notes}</details>"
        lines = "Thick: the p99 of each series; thin: its maximum. " if len(timed) > 1 else ""
        # Of the only one of several series that has times, the name is in the headings.
        several = len([entry for entry in series if not entry.derived]) > 1
        only = f": {esc(timed[0].short, 60)}" if several and len(timed) == 1 else ""
        timeline = (
            f"<div class='time'><h2>Over time{only}</h2>"
            f"<p class='quiet'>{lines}Below: requests per second. <span id='stall-key' hidden>Grey:"
            " stalls, in which no request was answered. </span><span class='how'>Drag across "
            "the timeline to select a span; everything here then shows that span. Escape, or a "
            "double click, shows the whole run again.</span></p>"
            "<div id='plot-timeline' class='plot'></div><div class='ranges'><label>from "
            "<input type='range' id='from' min='0' max='1' value='0'></label>"
            "<label>to <input type='range' id='to' min='0' max='1' value='1'></label></div>"
            f"<div id='bins'>{notes}</div></div>"
        )
        choice = ""
        if len(timed) > 1:
            options = "".join(
                f"<option value='{esc(entry.name)}'>{esc(entry.short)}</option>" for entry in timed
            )
            choice = f"<p><label>Series <select id='heat-series'>{options}</select></label></p>"
        late = any(entry.numbers["timeouts"] for entry in timed)
        heat_map = (
            f"<div class='heat' id='heat'><h2>Distribution over time{only}</h2>{choice}"
            "<p class='quiet'>Share of each time bin's requests: small <i class='ramp'></i> large; "
            f"the line is the {'longest reply' if late else 'maximum'}. <span class='hint'>Drag "
            "across it to select a time and a range of latencies.</span></p>"
            "<div id='plot-heat' class='plot'></div></div>"
        )
    return (
        "<section id='explore'><div id='legend' role='group' aria-label='Series and selection'>"
        f"{shown}{selection}</div>"
        f"<div class='views'>{timeline}"
        f"<div class='percentiles'><h2>Percentiles</h2>{_LINES}{when}</p>"
        "<div id='plot-curve' class='plot' tabindex='0' role='group' "
        "aria-label='Percentile curve; arrow keys walk along it, with the shift key they choose a "
        "range'></div>"
        f"<p class='quiet'>In brackets: uncertain<span id='causes'>{causes}</span>. "
        "A range: the source does not say more precisely where the value lies.</p>"
        f"{numbers_table(series, percentiles)}</div>{heat_map}</div></section>"
    )


# ------------------------------------------------------------
# The key numbers of a page: the table beside the curve, and the one that is printed.

_FAMILIAR = (50.0, 90.0, 99.0, 99.9, 99.99, 100.0)

_FURTHER = 8  # percentiles of a tool that fit into the table


def shown_percentiles(series: Sequence[PageSeries]) -> list[float]:
    """Return the columns beside the curve: familiar percentiles, and those that tools report."""
    reported = {p for entry in series for p, _ in entry.reported_percentiles} - set(_FAMILIAR)
    known = {p for entry in series for p in entry.rows(_FAMILIAR)} & set(_FAMILIAR)
    return sorted(known | (reported if len(reported) <= _FURTHER else set()))


def numbers_table(series: Sequence[PageSeries], percentiles: Sequence[float]) -> str:
    """Return the table beside the curve with the numbers of the whole run; the script fills it."""
    names = ["series", "requests", *map(units.percentile_name, percentiles), "mean"]
    columns = "".join(f"<th scope='col'>{name}</th>" for name in names)
    body = []
    for position, entry in enumerate(series):
        record, rows = entry.numbers, entry.rows(percentiles)
        count = record["count"]
        text = "not reported" if count is None else units.format_count(count)
        text = "model" if isinstance(entry.counted, Distribution) else text
        cells = [f"<td data-count='{'' if count is None else count}'>{text}</td>"]
        for p in percentiles:
            row = rows.get(p)
            bare = "" if row is None or row["value"] is None else float(row["value"])
            value = "" if bare == "" else f" data-value='{bare!r}'"
            text = "" if row is None else _cell(row, record)
            cells.append(f"<td data-percentile='{units.format_percentile(p)}'{value}>{text}</td>")
        cells.append(f"<td>{_statistic(record, 'mean')}</td>")
        name = f"<i class='swatch {' '.join(entry.look)}'></i>{isolated(esc(entry.short))}"
        head = f"<th scope='row'>{name}</th>"
        body.append(f"<tr data-series='{position}'>{head}{''.join(cells)}</tr>")
    return (
        f"{SCROLLED}<table><thead><tr>{columns}</tr></thead>"
        f"<tbody id='numbers'>{''.join(body)}</tbody></table></div>"
    )


_ABREAST = 7  # series: more are cut off on paper


def key_table(series: Sequence[PageSeries]) -> str:
    """Return the table: one row per statistic, one column per series; of many, several tables."""
    columns: list[dict[str, str]] = []  # statistic → cell
    for entry in series:
        record, show, counted = entry.numbers, _show(entry.numbers), entry.counted
        # Of what timed out, or in a bucket without an end.
        above = counted.censored if isinstance(counted, Histogram) else 0
        counts = {
            "requests": record["count"],
            "failed": record["failed"] or None,
            "timed out": record["timeouts"] or None,
            "above the last bucket": max(above - (record["timeouts"] or 0), 0) or None,
        }
        cells = {
            name: units.format_count(count) for name, count in counts.items() if count is not None
        }
        for row in entry.rows([]).values():
            if row["value"] is not None and row["percentile"] < 100:
                interval = ""
                if row["low"] is not None:
                    low, cell = show(row["low"]), _cell(row, record)
                    high = f"to {show(row['high'])}" if row["high"] is not None else "or more"
                    if high != f"to {low}" or esc(low) != cell:  # else it says nothing more
                        interval = f"<small>{esc(low)} {esc(high)}</small>"
                cells[units.percentile_name(row["percentile"])] = _cell(row, record) + interval
        largest = entry.rows([100.0]).get(100.0)
        stated = {
            "max": "" if largest is None else _cell(largest, record),
            "mean": _statistic(record, "mean"),
            "standard deviation": _statistic(record, "std"),
            "min": _statistic(record, "min"),
        }
        further = counted.stats if isinstance(counted, Summary) else {}
        known = ("mean", "std", "min", "max")  # of every record
        stated |= {name: esc(show(v)) for name, v in further.items() if name not in known}
        for name in TRIMMED:
            trim = record["trimmed"].get(name)
            if trim is not None and trim["high"] is not None:
                stated[name] = esc(
                    show(trim["value"])
                    if trim["resolved"] and trim["value"] is not None
                    else units.format_range(trim["low"], trim["high"], show)
                )
        columns.append(cells | {name: text for name, text in stated.items() if text})
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
        header = ["", *(esc(series[k].short) for k in part)]
        rows = [[esc(name), *(columns[k].get(name, "") for k in part)] for name in names]
        tables.append(table(header, rows, "" if tables else caption))
    return "".join(tables)


def _show(record: SeriesRecord) -> Callable[[float], str]:
    return lambda value: units.format_value(value, record["unit"])


def _cell(row: PercentileRecord, record: SeriesRecord) -> str:
    if row["percentile"] >= 100:  # a maximum needs no support
        row = row | {"supported": None}
    return esc(units.format_row(row, _show(record)))


def _statistic(record: SeriesRecord, name: Statistic) -> str:
    """A mean or an extreme, or its range where the source gives only that."""
    bounds, value = record["ranges"].get(name), record[name]
    if bounds is not None:
        return esc(units.format_range(bounds["low"], bounds["high"], _show(record)))
    return "" if value is None else esc(_show(record)(value))


# ------------------------------------------------------------
# What a page says of its series: diagnoses, corrections, comparisons, checked limits, fan-out.

_CLOSE_UP, _SHORT_STALL = 6, 3
"""Stalls with time bins of their own: most of them, and time bins that a longer one spans."""

_COMPARED = 6  # series that are compared with the first one


def diagnose_series(series: Sequence[PageSeries], how: dict[str, Any]) -> list[PageSeries]:
    """Diagnose every measured series; `how` are the other arguments of `lk.diagnose`."""
    diagnosed = []
    for entry in series:
        counted = entry.counted
        if not (
            isinstance(entry.data, Distribution)
            or isinstance(counted, Distribution)
            or counted.unit == "none"
            or not counted.count
        ):
            entry = replace(entry, diagnosis=diagnose(entry.data, **how))
        diagnosed.append(entry)
    return diagnosed


def corrected_series(series: Sequence[PageSeries]) -> list[PageSeries]:
    """Return the corrected series of those that omit, of the whole run as `diagnose` has it."""
    derived: list[PageSeries] = []
    for own in series:
        diagnosis = own.diagnosis
        if diagnosis is None or diagnosis.verdict != "omits" or diagnosis.corrected is None:
            continue
        corrected = diagnosis.corrected
        # A colour that no other series has, and a marker beside several.
        taken = {other.look[0] for other in (*series, *derived)}
        free = (name for name in ("c0", "c2", "c3", "c1", "c4", "c5") if name not in taken)
        look = (next(free, "c0"), "mark3" if len(series) > 1 else "")
        # The correction supplies the values from where they are twice the raw ones.
        percentiles = 100 * (1 - 10.0 ** -np.arange(0.05, 9, 0.05))
        whole = isinstance(own.counted, Histogram)  # else it supplies all but some statistics
        raw = own.counted.percentile(percentiles) if whole else 0.0
        moved = corrected.percentile(percentiles) > 2 * raw
        start = float(percentiles[int(np.argmax(moved))]) if moved.any() else 100.0
        stalls = format_items(max(1, len(diagnosis.detected_stalls)), "stall")
        correction = Doubt(start, 100.0, stalls)
        name = f"{own.name}, corrected"
        derived.append(PageSeries(name, corrected, corrected, None, look, True, correction))
    return derived


def checked_limits(slo: Any, series: Sequence[PageSeries]) -> list[SLOResult]:
    """Return the verdicts of each series, one per limit; empty without an SLO."""
    if slo is None:
        return []
    stated = for_all_series(slo)
    checked = []
    for entry in series:
        rows = stated.check(entry.timed)
        if entry.counted.run.unit_from == "assumed":
            # A limit in time cannot be compared with values whose unit is only assumed.
            reasons = why("unit assumed", option=option("unit"))
            rows = SLOResult(
                row
                if row.is_share or row.unit == "none"
                else replace(row, outcome="unknown", reasons=reasons)
                for row in rows
            )
        checked.append(rows)
    return checked


def comparisons(
    series: Sequence[PageSeries],
) -> list[tuple[PageSeries, Comparison | LatencyKitError]]:
    """Compare the first series with the others, or return the reasons why that is impossible."""
    # Parts are not compared with their total: that they differ from it is neither better nor worse.
    if series[0].counted.run.aggregate:
        return []
    compared: list[tuple[PageSeries, Comparison | LatencyKitError]] = []
    for other in series[1 : 1 + _COMPARED]:
        try:
            sides = cast("list[Data]", [series[0].timed, other.timed])  # a model is refused
            compared.append((other, compare(*sides)))
        except LatencyKitError as error:  # a summary beside a curve, or an empty series
            compared.append((other, error))
    return compared


def stall_spans(series: Sequence[PageSeries]) -> list[tuple[float, float]]:
    """Return the time around each of the longest stalls that is shorter than a few time bins."""
    spans = []
    for entry in series:
        slots = entry.slots
        if entry.diagnosis is None or slots is None:
            continue
        interval, stalls = finest([entry]), entry.diagnosis.detected_stalls
        if slots.width is None or slots.width < 2 * interval:
            continue
        for k in entry.longest(_CLOSE_UP):
            start, end = (float(side[k]) for side in (stalls.start, stalls.end))
            if end - start < _SHORT_STALL * slots.width:
                margin = 4 * (end - start) + 60 * interval
                spans.append((end - start, (max(0.0, start - margin), end + margin)))
    return [span for _, span in sorted(spans, reverse=True)[:_CLOSE_UP]]


def has_columns(named: Mapping[str, Data]) -> bool:
    """Return whether any series has single requests with attributes."""
    return any(isinstance(data, Samples) and len(data.columns) for data in named.values())


def explanations(
    named: Mapping[str, Data], between: tuple[units.Moment, units.Moment] | None = None
) -> dict[str, Explanation]:
    """Explain the slow requests of the series that have attributes."""
    # In a web page, these two come later: it is drawn without them, and again when they are there.
    if not has_columns(named) or None in [find_spec(name) for name in ("pandas", "scipy")]:
        return {}
    from latencykit.analysis.explain import explain  # loads scipy

    explained = {}
    for name, data in named.items():
        if isinstance(data, Samples) and len(data.columns):
            with suppress(InvalidArgumentError, DataNotAvailableError):  # all are equally fast
                explained[name] = explain(data, between=between)
    return explained
