"""The interactive page: sentences and tables as HTML, and the data that its script draws.

The engine is plain JavaScript of our own, some 2,000 lines: Vega-Lite's libraries are 0.9 MB and
take seconds to load, and its expression interpreter (which a policy without ``unsafe-eval``
needs) walks over half a million bucket counts at each move of the brush. This way a page needs no
further package, opens at once, and is text and SVG that a screen reader, a printer and a dark
screen understand.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from latencykit._text import esc, script_json
from latencykit.errors import InvalidArgumentError
from latencykit.plot.series import as_series
from latencykit.views.compare import comparison_section
from latencykit.views.diagnosis import doubts, omission_section, stalls_section
from latencykit.views.document import asset, document, script_of
from latencykit.views.explanation import explanation_section
from latencykit.views.explorer import (
    explorer_html,
    header_html,
    key_table,
    page_model,
    page_title,
    shown_percentiles,
)
from latencykit.views.fan_out import fan_out_model, fan_out_section
from latencykit.views.markup import bullets, section
from latencykit.views.page_results import (
    as_raw,
    checked_limits,
    comparisons,
    corrected_series,
    diagnose_series,
    explanations,
    fan_outs_of,
    stall_spans,
)
from latencykit.views.page_series import (
    PAGE_SIZE,
    finer,
    fitted,
    page_series,
    with_short_names,
)
from latencykit.views.provenance import InputFile, provenance
from latencykit.views.slo import slo_section, slo_steps
from latencykit.views.summary import trust

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from latencykit._typing import JSONObject
    from latencykit.views.page_results import DiagnosedSeries
    from latencykit.views.provenance import InputFile


_BODY = 60_000
"""Bytes kept for the sentences and tables of a page."""


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
    """Return the page; see `latencykit.report`.

    `origins` has for each series its file and how it was read, for the commands that the page
    offers; otherwise they name the file that the data themselves name.
    """
    named = as_series(data)
    # All series, corrected ones last, their diagnoses, and close-ups, within a limit in bytes.
    limit = byte_count(page_size)
    diagnosed = as_raw(diagnose_series(page_series(named, limit), diagnosis))
    series = with_short_names(
        [*(entry.series for entry in diagnosed), *corrected_series(diagnosed)]
    )
    # Close-ups of the spans, the first ones, as far as they take a quarter of the page.
    details, spare = [], limit / 4
    for start, end in stall_spans(diagnosed):
        detail = finer({entry.name: entry.data for entry in series}, start, end)
        spare -= len(script_json(detail))
        if spare < 0:
            break
        details.append(detail)
    fixed = [{"curve": entry.curve_record} for entry in series], details
    engine = len(asset("page.css")) + len(script_of("page"))
    series = fitted(series, limit - len(script_json(fixed)) - engine - _BODY)
    diagnosed = [replace(entry, series=own) for entry, own in zip(diagnosed, series, strict=False)]
    measured_series = series[: len(diagnosed)]
    checked, percentiles = checked_limits(slo, series), shown_percentiles(series)
    model = page_model(series, diagnosed, percentiles, origins or {})
    model |= {
        "slo": slo_steps(checked),
        "fanOut": fan_out_model(fan_outs_of(measured_series)),
        "details": details,
    }
    heading = title if title is not None else page_title(measured_series)
    parts = [
        header_html(heading, diagnosed, checked),
        slo_section(checked, series),
        explorer_html(series, percentiles, measured_series),
        stalls_section(diagnosed),
        omission_section(diagnosed),
        explanation_section(explanations(named), several=len(named) > 1),
        comparison_section(measured_series, comparisons(measured_series)),
        fan_out_section(model["fanOut"]),
        f"<div class='{'pair' if len(series) <= 3 else ''}'>",
        section("key-numbers", "Key numbers", key_table(series)),
        section("trust", "How far to trust this", *_reliability(diagnosed)),
        "</div>",
        section("provenance", "Where it comes from", provenance(named, files, command)),
    ]
    return document(heading, "".join(parts), model)


def _reliability(diagnosed: Sequence[DiagnosedSeries]) -> list[str]:
    """What limits the numbers, beneath the names of the series of which the same is said."""
    texts: dict[str, list[str]] = {}
    of_all: list[str] = []
    for entry in diagnosed:
        lines = [*trust(entry.series.counted, entry.series.numbers), *doubts(entry)]
        text = bullets([line for line in lines if line not in of_all])
        if entry.series.counted.run.aggregate:  # what is said of a total is not repeated
            of_all += lines
        texts.setdefault(text, []).append(entry.series.short or entry.series.name)
    if len(diagnosed) == 1:
        return list(texts)
    named = {text: esc(", ".join(names), 1000) for text, names in texts.items() if text}
    return [f"<p><b>{names}</b></p>{text}" for text, names in named.items()]


def byte_count(size: int | str) -> int:
    """Return a number of bytes, such as that of ``"2MB"``."""
    text = str(size).strip()
    parts = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kMG]?)i?B?", text, re.IGNORECASE)
    if parts is None or not float(parts[1]):
        raise InvalidArgumentError(f"{text!r} is not a size; expected one such as 500kB or 2MB")
    power = 1024 if "ib" in text.lower() else 1000
    return int(float(parts[1]) * power ** " kmg".index(parts[2].lower() or " "))


def explorer_parts(data: object) -> tuple[str, str, JSONObject]:
    """Return the linked views without the rest of a page: heading, HTML, and what they draw."""
    diagnosed = diagnose_series(page_series(as_series(data)), {})
    series = fitted(with_short_names([entry.series for entry in diagnosed]))
    diagnosed = [replace(entry, series=own) for entry, own in zip(diagnosed, series, strict=True)]
    percentiles = shown_percentiles(series)
    views = explorer_html(series, percentiles, series)
    return (
        header_html(page_title(series), diagnosed),
        views,
        page_model(series, diagnosed, percentiles),
    )
