"""The linked views of a page, its heading, and the data that its script draws."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit._text import esc
from latencykit.core.histogram_log import HistogramLog
from latencykit.core.key_statistics import small_curve
from latencykit.core.run import TOTAL
from latencykit.core.summary import Summary
from latencykit.plot.series import conditions, measured, requests_of, requests_together
from latencykit.units import format_count, format_duration
from latencykit.views.diagnosis import stalls_model, verdict_badge
from latencykit.views.markup import as_sentence
from latencykit.views.page_data import DIGITS
from latencykit.views.page_numbers import numbers_table
from latencykit.views.page_series import (
    bin_width,
    edges_of,
    finest,
)
from latencykit.views.summary import headline
from latencykit.views.values import causes_text

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from latencykit.analysis.slo import SLOResult
    from latencykit.views.page_results import DiagnosedSeries
    from latencykit.views.page_series import PageSeries


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
    how = f"Requests are counted into time bins of {width} by the moment they were sent"
    if isinstance(data, HistogramLog):
        how = "Each time bin is one interval of the file"
        if slots.width is not None:
            count = format_count(len(data))
            count += f" of {len(data.tags)} tags" if len(data.tags) > 1 else ""
            how = f"Each time bin sums up the intervals that start within {width}, {count} in all"
    return f"{how}: {close}."


_SENTENCES = 4
"""Series that each have a sentence above the pictures."""

_LINES = (
    "<p class='quiet'>How long the fastest n % of the requests took at most. "
    "<span class='key'><i class='swatch'></i>supported by the sample</span> "
    "<span class='key'><i class='swatch few'></i>uncertain</span> "
    "<span class='key'><i class='swatch dotted'></i>sample too small</span>"
)
"""Legend of the lines of the percentile curve."""

_WORDS = {
    "timeline": "Time series: maximum, p99 and median of each time bin; the table below has the "
    "numbers of a selection",
    "curve": "Percentile curve; the table below has its numbers",
    "heat": "Heat map: the share of each time bin's requests by latency",
    "fanOut": "Latency of users who wait for the slowest of n calls; the table below has the "
    "numbers",
    "timelineKeys": "Timeline; arrow keys move the selection, with the shift key its end; + and - "
    "zoom, z zooms to the selection, 0 shows all",
    "heatKeys": "Heat map; arrow keys walk from cell to cell, with the shift key they select a "
    "region of time and latency",
    "clock": "from the start",
    "whole": "the whole run",
}


def page_model(
    series: Sequence[PageSeries],
    diagnosed: Sequence[DiagnosedSeries],
    percentiles: Sequence[float],
    origins: Mapping[str, Mapping[str, object]] = MappingProxyType({}),
) -> dict[str, Any]:
    """The data that the engine draws."""
    tagged = {_file_of(entry) for entry in series if entry.counted.run.tags}
    # The moment when the series began, where all began at the same one.
    starts = {entry.data.run.start for entry in series if entry.slots is not None}
    epoch = starts.pop() if len(starts) == 1 else None
    return {
        "unit": series[0].counted.unit,
        "series": [
            entry.record() | {"origin": _origin(entry, origins.get(entry.name, {}), tagged)}
            for entry in series
        ],
        "stalls": stalls_model(diagnosed),
        "slo": [],
        "fanOut": [],
        "details": [],
        "bin": bin_width(series),
        "finest": finest(series),
        "words": _WORDS,
        "epoch": epoch if epoch is not None and 0 < epoch < 253_402_300_799 else None,
        "edges": edges_of(series),
        "percentiles": percentiles,
    }


def _file_of(series: PageSeries) -> tuple[str | None, str | None]:
    return series.counted.run.source, series.counted.run.series


def _origin(
    series: PageSeries,
    options: Mapping[str, Any],
    tagged: Collection[tuple[str | None, str | None]],
) -> dict[str, object]:
    """How the series can be read again: the file, and the options of `latencykit.read`."""
    run = series.counted.run
    # Beside the tags of a log, what has no tag is its untagged part.
    whole = _file_of(series) in tagged and run.aggregate and not run.tags
    tag = run.tags[0] if run.tags else "" if _file_of(series) in tagged and not whole else None
    known = {"path": run.source or series.name, "series": TOTAL if whole else run.series}
    known["tag"] = tag
    if run.unit_from == "option":
        known["unit"] = run.unit
    known |= {key: value for key, value in options.items() if value is not None}
    return {key: value for key, value in known.items() if value is not None}


def page_title(series: Sequence[PageSeries]) -> str:
    """Return the names of the series and what was measured."""
    names = [entry.name for entry in series]
    parts = [entry.counted for entry in series]
    if any(not part.run.aggregate for part in parts):  # of which an aggregate is the sum
        parts = [part for part in parts if not part.run.aggregate]
    if len(series) == 1:
        count = requests_of(parts[0])
        return " · ".join(filter(None, (names[0], measured(series[0].counted.run, count))))
    listed = f"{len(parts)} series"
    if len(names) <= 3:
        listed = f"{', '.join(names[:-1])} and {names[-1]}"
    total = requests_together([entry.counted for entry in series])
    return f"{listed} · {total:,} requests" if total else listed


def header_html(
    title: str, diagnosed: Sequence[DiagnosedSeries], checked: Sequence[SLOResult] = ()
) -> str:
    """Return the heading of a page, and of each series the key numbers, SLO, and incident."""
    series = [entry.series for entry in diagnosed]
    listed = [conditions(entry.counted) for entry in series]
    shared = [part for part in listed[0] if all(part in other for other in listed[1:])]
    sentences, folded, pictures = "", "", ""
    for k, entry in enumerate(diagnosed):
        own = entry.series
        name = f"<b>{esc(own.name)}</b>" if len(diagnosed) > 1 else ""
        facts = [
            headline(own.counted),
            *(as_sentence(rows.headline) for rows in checked[k : k + 1]),
        ]
        if own.numbers["incident"]:
            facts.append(as_sentence(own.numbers["findings"][0]))
        sentence = esc(" ".join(facts), 600)
        words = (
            f"<p class='headline {own.look[0]}'>{name}{sentence}"
            f"<span class='verdict'>{verdict_badge(entry)}</span></p>"
        )
        # Of many series the pictures come first, but for the total, and what is wrong with one.
        if len(diagnosed) <= _SENTENCES or entry.omits or own.counted.run.aggregate:
            sentences += words
        else:
            folded += words
        if not isinstance(own.counted, Summary):
            pictures += f"<p>{esc(own.name)}<br>{small_curve(own.counted)}</p>"
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


def explorer_html(
    series: Sequence[PageSeries],
    percentiles: Sequence[float],
    measured_series: Sequence[PageSeries],
) -> str:
    """The linked views: the curve shows what is selected in the timeline."""
    shown = f"<b>{esc(series[0].name, 60)}</b>"
    if len(series) > 1:
        shown = "".join(
            f"<button type='button' data-series='{k}' aria-pressed='true' "
            f"title='{esc(entry.name)}'>"
            f"<i class='swatch {' '.join(entry.look)}'></i>{esc(entry.short)}</button>"
            for k, entry in enumerate(series)
        )
    causes = causes_text([row for entry in series for row in entry.rows(percentiles).values()])
    selection = when = ""
    if any(entry.slots is not None for entry in series):
        selection = (
            "<span class='span'><span class='quiet'>Selected: <b id='selected'>the whole run</b>"
            "</span> <button type='button' id='whole' disabled>Show the whole run</button></span>"
        )
        when = (
            " <span class='hint'>Drag across the curve to see when such requests occurred.</span>"
        )
    return (
        "<section id='explore'><div id='legend' role='group' aria-label='Series and selection'>"
        f"{shown}{selection}</div>"
        f"<div class='views'>{_timeline(series)}{_heat_map(measured_series)}"
        f"<div class='percentiles'><h2>Percentiles</h2>{_LINES}{when}</p>"
        "<div id='plot-curve' class='plot' "
        "tabindex='0' role='group' "
        "aria-label='Percentile curve; arrow keys walk along it, with the shift key they choose a "
        "range'></div>"
        f"<p class='quiet'>In brackets: uncertain{f' ({causes})' if causes else ''}. "
        "A range: the source does not say more precisely where the value lies.</p>"
        f"{numbers_table(series, percentiles)}</div></div></section>"
    )


def _timeline(series: Sequence[PageSeries]) -> str:
    """The time series of all series; empty without times."""
    if all(entry.slots is None for entry in series):
        return ""
    timed = [entry for entry in series if entry.slots is not None and not entry.shadow]
    bins: dict[str, list[str]] = {}
    for entry in timed:
        bins.setdefault(resolution(entry), []).append(entry.short or entry.name)
    notes = "".join(
        "<p class='quiet'>"
        + (f"<b>{esc(', '.join(names))}:</b> " if len(bins) > 1 else "")
        + f"{esc(text)}</p>"
        for text, names in bins.items()
    )
    if len(bins) > 1:
        notes = (
            f"<details><summary class='quiet'>How wide the time bins are</summary>{notes}</details>"
        )
    lines = "Thick: the p99 of each series; thin: its maximum. " if len(timed) > 1 else ""
    return (
        f"<div class='time'><h2>Over time{_only(series)}</h2>"
        f"<p class='quiet'>{lines}Below: requests per second. <span id='stall-key' hidden>Grey: "
        "stalls, in which no request was answered. </span><span class='how'>Drag across "
        "the timeline to select a span; everything here then shows that span. Escape, or a "
        "double click, shows the whole run again.</span></p>"
        "<div id='plot-timeline' class='plot'></div>"
        "<div class='ranges'><label>from "
        "<input type='range' id='from' min='0' max='1' value='0'></label>"
        "<label>to <input type='range' id='to' min='0' max='1' value='1'></label></div>"
        f"<div id='bins'>{notes}</div></div>"
    )


def _only(series: Sequence[PageSeries]) -> str:
    """The name of the only one of several series that has times, for a heading."""
    timed = [entry for entry in series if entry.slots is not None and not entry.shadow]
    several = len([entry for entry in series if not entry.shadow]) > 1
    return f": {esc(timed[0].short, 60)}" if several and len(timed) == 1 else ""


def _heat_map(series: Sequence[PageSeries]) -> str:
    timed = [entry for entry in series if entry.slots is not None]
    if not timed:
        return ""
    choice = ""
    if len(timed) > 1:
        options = "".join(
            f"<option value='{esc(entry.name)}'>{esc(entry.short)}</option>" for entry in timed
        )
        choice = f"<p><label>Series <select id='heat-series'>{options}</select></label></p>"
    return (
        f"<div class='heat' id='heat'><h2>Distribution over time{_only(series)}</h2>{choice}"
        "<p class='quiet'>Share of each time bin's requests: small <i class='ramp'></i> large; "
        "the line is the maximum. <span class='hint'>Drag across it to select a time and a "
        "range of latencies.</span></p><div id='plot-heat' class='plot'></div></div>"
    )
