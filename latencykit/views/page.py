"""The interactive page: sentences and tables as HTML, and the data that its script draws.

The engine is plain JavaScript of our own, some 2,000 lines: Vega-Lite's libraries are 0.9 MB and
take seconds to load, and its expression interpreter (which a policy without ``unsafe-eval``
needs) walks over half a million bucket counts at each move of the brush. This way a page needs no
further package, opens at once, and is text and SVG that a screen reader, a printer and a dark
screen understand.
"""

from __future__ import annotations

import base64
import hashlib
import io
import re
from dataclasses import replace
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from latencykit.core.key_statistics import small_curve
from latencykit.core.samples import Samples
from latencykit.core.summary import Summary
from latencykit.errors import InvalidArgumentError
from latencykit.plot.series import as_series, conditions, measured
from latencykit.views.page_data import (
    PAGE_SIZE,
    bin_width,
    edges_of,
    finer,
    finest,
    fitted,
    page_series,
    script_json,
    with_short_names,
)
from latencykit.views.page_sections import (
    Diagnosed,
    as_raw,
    bullets,
    comparison_section,
    corrected_series,
    diagnose_series,
    doubts,
    esc,
    fan_out_model,
    fan_out_section,
    headline,
    key_table,
    numbers_table,
    omission_section,
    provenance,
    resolution,
    section,
    shown_percentiles,
    slo_rows,
    slo_section,
    slo_steps,
    stall_spans,
    stalls_model,
    stalls_section,
    trust,
    verdict_badge,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from latencykit.views.page_data import PageSeries
    from latencykit.views.page_sections import InputFile

__all__ = [
    "SPOKEN",
    "asset",
    "bundle",
    "byte_count",
    "document",
    "explorer_parts",
    "frame",
    "has_columns",
    "page_html",
    "script_of",
]

SPOKEN = "<div id='spoken' class='spoken' role='status' aria-live='polite'></div>"
"""Texts for screen readers."""

_SENTENCES = 4
"""Series that each have a sentence above the pictures."""

_BODY = 60_000
"""Bytes kept for the sentences and tables of a page."""

_MODULES = (
    "numbers",
    "data",
    "events",
    "draw",
    "timeline",
    "curve",
    "heat",
    "fanout",
    "pin",
    "controls",
    "main",
)
_BETWEEN_MODULES = re.compile(
    r"^import [^;]*;\n|^export (?=(?:async )?function|const)|^ *//.*\n", re.MULTILINE
)

_LINES = (
    "<p class='quiet'>How long the fastest n % of the requests took at most. "
    "<span class='key'><i class='swatch'></i>supported by the sample</span> "
    "<span class='key'><i class='swatch few'></i>based on few events</span> "
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
    "zoom, z zooms to the selection, p pins it, 0 shows all",
    "heatKeys": "Heat map; arrow keys walk from cell to cell, with the shift key they select a "
    "region of time and latency",
    "clock": "from the start",
    "whole": "the whole run",
}


def page_html(
    data: Any,
    *,
    title: str | None = None,
    slo: Any = None,
    files: Sequence[InputFile] = (),
    command: str | None = None,
    page_size: int | str = PAGE_SIZE,
    origins: Mapping[str, Mapping[str, Any]] | None = None,
    **diagnosis: Any,
) -> str:
    """Return the page; see `latencykit.report`.

    `origins` has for each series its file and how it was read, for the commands that the page
    offers; otherwise they name the file that the data themselves name.
    """
    limit = byte_count(page_size)
    named = as_series(data)
    diagnosed = as_raw(diagnose_series(page_series(named, limit), diagnosis))
    series = with_short_names(
        [*(entry.series for entry in diagnosed), *corrected_series(diagnosed, limit)]
    )
    details = _details(series, stall_spans(diagnosed), limit)
    fixed = [{"curve": entry.curve_record} for entry in series], details
    spare = (
        limit - len(script_json(fixed)) - len(asset("page.css")) - len(script_of("page")) - _BODY
    )
    series = fitted(series, spare)
    diagnosed = [replace(entry, series=own) for entry, own in zip(diagnosed, series, strict=False)]
    measured_series = series[: len(diagnosed)]
    checked, percentiles = slo_rows(slo, series), shown_percentiles(series)
    model = _model(series, diagnosed, percentiles, origins or {})
    model |= {
        "slo": slo_steps(checked),
        "fanOut": fan_out_model(measured_series),
        "details": details,
    }
    heading = title if title is not None else _title(measured_series)
    reliability: dict[str, list[str]] = {}  # series of which the same is to be said
    for entry in diagnosed:
        text = bullets([*trust(entry.series.counted, entry.series.numbers), *doubts(entry)])
        reliability.setdefault(text, []).append(entry.series.short or entry.series.name)
    parts = [
        _header(heading, diagnosed),
        slo_section(checked, series),
        _explorer(series, percentiles, measured_series),
        stalls_section(diagnosed),
        omission_section(diagnosed),
        _explanation(named),
        comparison_section(measured_series),
        fan_out_section(model["fanOut"]),
        f"<div class='{'pair' if len(series) <= 3 else ''}'>",
        section("key-numbers", "Key numbers", key_table(series)),
        section("trust", "How far to trust this", *_by_series(reliability, len(diagnosed))),
        "</div>",
        section("provenance", "Where it comes from", provenance(named, files, command)),
    ]
    return document(heading, "".join(parts), model)


def _explanation(named: Mapping[str, Any]) -> str:
    """The section on slow requests; without columns scipy, which it needs, is not loaded."""
    if not has_columns(named):
        return ""
    from latencykit.views.explanation import explanation_html

    return section("explain", "What slow requests have in common", explanation_html(named))


def has_columns(named: Mapping[str, Any]) -> bool:
    """Return whether any series has single requests with attributes."""
    return any(isinstance(data, Samples) and len(data.columns) for data in named.values())


def _by_series(texts: Mapping[str, Sequence[str]], series: int) -> list[str]:
    """Each text beneath the names of its series, if there are several."""
    names = (f"<p><b>{esc(', '.join(own), 1000)}</b></p>" for own in texts.values())
    return [(name if series > 1 else "") + text for name, text in zip(names, texts, strict=True)]


def byte_count(size: int | str) -> int:
    """Return a number of bytes, such as that of ``"2MB"``."""
    text = str(size).strip()
    parts = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kMG]?)i?B?", text, re.IGNORECASE)
    if parts is None or not float(parts[1]):
        raise InvalidArgumentError(f"{text!r} is not a size; expected one such as 500kB or 2MB")
    power = 1024 if "ib" in text.lower() else 1000
    return int(float(parts[1]) * power ** " kmg".index(parts[2].lower() or " "))


def _details(
    series: Sequence[PageSeries], spans: Sequence[tuple[float, float]], limit: int
) -> list[dict[str, Any]]:
    """Close-ups of the spans, the first ones, as far as they take a quarter of the page."""
    details, spare = [], limit / 4
    for start, end in spans:
        detail = finer({entry.name: entry.over_time or entry.data for entry in series}, start, end)
        spare -= len(script_json(detail))
        if spare < 0:
            break
        details.append(detail)
    return details


def bundle(data: Any, page: str) -> tuple[dict[str, str], dict[str, Any]]:
    """Return what a notebook keeps: a page in a frame, and a picture for viewers that show none."""
    from latencykit.plot import percentiles
    from latencykit.plot.files import figure_of
    from latencykit.plot.label_layout import alt_text

    picture, figure = io.BytesIO(), figure_of(percentiles, data, size=(800, 480), dpi=80)
    figure.savefig(picture, format="png")
    png, alt = base64.b64encode(picture.getvalue()).decode(), alt_text(figure)
    return {"image/png": png, "text/html": frame(page, png, alt)}, {"image/png": {"alt": alt}}


# A frame sees the system's theme only. Where JupyterLab has another, the page is loaded with that.
_THEMED = (
    "this.onload=null;const light=document.body.dataset.jpThemeLight;"
    "if(light&&(light===&quot;true&quot;)===matchMedia(&quot;(prefers-color-scheme:dark)&quot;)"
    ".matches)this.srcdoc=this.srcdoc.replace(&quot;<html &quot;,&quot;<html data-theme=&quot;"
    "+(light===&quot;true&quot;?&quot;light &quot;:&quot;dark &quot;))"
)


def frame(document: str, png: str = "", alt: str = "", height: int = 900) -> str:
    """Return a page in a frame; its content is what a viewer shows that removes frames."""
    words = esc(alt or "Latency report", max(len(alt), 20))
    picture = f"<img alt='{words}' src='data:image/png;base64,{png}'>" if png else ""
    # Of the characters that end an attribute, a page has fewer of these than of the other quotes.
    content = document.replace("&", "&amp;").replace("'", "&#39;")
    return (
        f"<iframe title='{words}' sandbox='allow-scripts allow-downloads' width='100%' "
        f"height='{height}' "
        f"style='border:0' onload='{_THEMED}' srcdoc='{content}'>{picture}</iframe>"
    )


def explorer_parts(data: Any) -> tuple[str, str, dict[str, Any]]:
    """Return the linked views without the rest of a page: heading, HTML, and what they draw."""
    diagnosed = diagnose_series(page_series(as_series(data)), {})
    series = fitted(with_short_names([entry.series for entry in diagnosed]))
    diagnosed = [replace(entry, series=own) for entry, own in zip(diagnosed, series, strict=True)]
    percentiles = shown_percentiles(series)
    views = _explorer(series, percentiles, series)
    return _header(_title(series), diagnosed), views, _model(series, diagnosed, percentiles)


def _model(
    series: Sequence[PageSeries],
    diagnosed: Sequence[Diagnosed],
    percentiles: Sequence[float],
    origins: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
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
) -> dict[str, Any]:
    """How the series can be read again: the file, and the options of `latencykit.read`."""
    run = series.counted.run
    # Beside the tags of a log, what has no tag is its untagged part.
    tag = run.tags[0] if run.tags else "" if _file_of(series) in tagged else None
    known = {"path": run.source or series.name, "series": run.series, "tag": tag}
    if run.unit_from == "option":
        known["unit"] = run.unit
    known |= {key: value for key, value in options.items() if value is not None}
    return {key: value for key, value in known.items() if value is not None}


def document(title: str, body: str, model: dict[str, Any]) -> str:
    """Return a page with its style and its script."""
    style, script = asset("page.css"), f'(() => {{\n"use strict";\n{script_of("page")}}})();'
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    return (
        "<!doctype html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        "<meta name='viewport' content='width=device-width, initial-scale=1'>\n<meta "
        "name='color-scheme' content='light dark'>\n"
        f"<title>{esc(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n"
        f"{SPOKEN}\n<script type='application/json' "
        f"id='model'>{script_json(model)}</script>\n<script>{script}</script>\n</body>\n</html>\n"
    )


def script_of(home: str) -> str:
    """Return the modules of the engine and of its home as one text, without comments."""
    texts = (_BETWEEN_MODULES.sub("", asset(f"{name}.js")) for name in (*_MODULES, home))
    return "\n".join(texts)


@cache
def asset(name: str) -> str:
    """Return the text of a file of the engine."""
    return resources.files("latencykit.views").joinpath("assets", name).read_text("utf-8")


def _hash(text: str) -> str:
    """The hash by which a content security policy allows an inline script or style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}"


def _title(series: Sequence[PageSeries]) -> str:
    names = [entry.name for entry in series]
    counts = [getattr(entry.counted, "count", None) for entry in series]
    if len(series) == 1:
        return " · ".join(filter(None, (names[0], measured(series[0].counted.run, counts[0]))))
    listed = f"{len(names)} series"
    if len(names) <= 3:
        listed = f"{', '.join(names[:-1])} and {names[-1]}"
    total = sum(count or 0 for count in counts)
    return f"{listed} · {total:,} requests" if total else listed


def _header(title: str, diagnosed: Sequence[Diagnosed]) -> str:
    series = [entry.series for entry in diagnosed]
    listed = [conditions(entry.counted) for entry in series]
    shared = [part for part in listed[0] if all(part in other for other in listed[1:])]
    sentences, folded, pictures = "", "", ""
    for entry in diagnosed:
        own = entry.series
        name = f"<b>{esc(own.name)}</b>" if len(diagnosed) > 1 else ""
        sentence = esc(headline(own.counted, own.numbers["supported_up_to"]))
        words = (
            f"<p class='headline {own.look[0]}'>{name}{sentence}"
            f"<span class='verdict'>{verdict_badge(entry)}</span></p>"
        )
        # Of many series the pictures come first, and what is wrong with one.
        if len(diagnosed) <= _SENTENCES or entry.omits:
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


def _explorer(
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
    selection = timeline = when = ""
    if any(entry.slots is not None for entry in series):
        selection = (
            "<span class='span'><span class='quiet'>Selected: <b id='selected'>the whole run</b>"
            "</span> <button type='button' id='whole' disabled>Show the whole run</button></span>"
        )
        when = (
            " <span class='hint'>Drag across the curve to see when such requests occurred.</span>"
        )
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
        lines = "Thick: the p99 of each series; thin: its maximum. " if len(timed) > 1 else ""
        timeline = (
            f"<div class='time'><h2>Over time{_only(series)}</h2>"
            f"<p class='quiet'>{lines}Below: requests per second. <span class='how'>Drag across "
            "the timeline to select a span; everything here then shows that span. Escape, or a "
            "double click, shows the whole run again.</span></p>"
            "<div id='plot-timeline' class='plot'></div>"
            "<div class='ranges'><label>from "
            "<input type='range' id='from' min='0' max='1' value='0'></label>"
            "<label>to <input type='range' id='to' min='0' max='1' value='1'></label></div>"
            f"{notes}</div>"
        )
    return (
        "<section id='explore'><div id='legend' role='group' aria-label='Series and selection'>"
        f"{shown}{selection}</div><div class='views'>{timeline}{_heat_map(measured_series)}"
        f"<div class='percentiles'><h2>Percentiles</h2>{_LINES}{when}</p>"
        "<div id='plot-curve' class='plot' "
        "tabindex='0' role='group' "
        "aria-label='Percentile curve; arrow keys walk along it, with the shift key they choose a "
        "range'></div>"
        "<p class='quiet'>In brackets: sample too small for this percentile. "
        "A range: the source does not say more precisely where the value lies.</p>"
        f"{numbers_table(series, percentiles)}</div></div></section>"
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
        "the red line is the maximum. <span class='hint'>Drag across it to select a time and a "
        "range of latencies.</span></p><div id='plot-heat' class='plot'></div></div>"
    )
