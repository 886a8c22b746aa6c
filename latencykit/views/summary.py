"""Key numbers of series: the table, its footnotes, and the page's sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from latencykit._text import brief_list, cause_text, format_items, printable
from latencykit.core.distribution import Distribution
from latencykit.core.histogram import STANDARD_PERCENTILES, Histogram
from latencykit.core.key_statistics import not_answered
from latencykit.core.percentile_rows import statistic_text
from latencykit.core.quantiles import is_resolved
from latencykit.core.run import code_of
from latencykit.core.summary import Summary
from latencykit.units import (
    format_count,
    format_percentile,
    format_range,
    format_row,
    format_value,
    percentile_name,
    sure_percentile,
)
from latencykit.views.markup import as_sentence
from latencykit.views.series import SeriesRecord, bounds_note
from latencykit.views.tables import MOST_ROWS, Table, csv_unit
from latencykit.views.values import value_text

_FEW = 6
"""Footnotes below a table; of more, only their number is stated."""


_OPTIONAL = (
    "highest supported", "tm99", "p99.999", "p75", "p95", "p99.99", "p90", "mean",
    "p99.9",
)  # fmt: skip
"""Columns that a narrow terminal does without, the first ones first."""


def summary_text(
    records: Sequence[SeriesRecord],
    style: str = "table",
    out_unit: str | None = None,
    *,
    percentiles: bool = True,
    notes: bool = False,
    left_out: int = 0,
    trims: Sequence[str] = (),
) -> str:
    """Return one row per series: counts, percentiles, maximum and means."""
    # A percentile in brackets is not supported by the sample: it is one of its largest values.
    # Where the source gives a range, CSV has its upper end. People see the usual `percentiles`, as
    # many as fit, unless they asked for others, and one footnote per series unless they asked for
    # all; `left_out` more series have no records.
    columns = {row["percentile"] for record in records for row in record["percentiles"]}
    if percentiles and style != "csv":
        columns = columns & set(STANDARD_PERCENTILES) or columns
    failed = any(record["failed"] for record in records)
    late = any(record["timeouts"] for record in records)
    all_ = style == "csv" and (failed or late)
    suffix = csv_unit(records, style, out_unit)
    table, named = Table(style, out_unit), () if style == "table" else trims
    for record in records:
        unit, count = record["unit"], record["count"]
        rows = {row["percentile"]: row for row in record["percentiles"]}
        largest = table.bounded(record["max"], record["ranges"].get("max"), unit)
        if largest and record["max_is_lower_bound"] and "max" not in record["ranges"]:
            reached = max([record["max"] or 0, *(row["value"] or 0 for row in rows.values())])
            largest = table.bounded(record["max"], {"low": reached, "high": None}, unit)
        trimmed = {name: record["trimmed"].get(name) for name in ("tm99", *named)}
        ranges = {
            name: trim
            for name, trim in trimmed.items()
            if trim and not trim["resolved"] and (trim["low"], trim["high"]) != (None, None)
        }
        supported = record["highest_supported_percentile"]
        table.add(
            {
                "series": record["name"],
                "requests": table.either(count, None if count is None else format_count(count)),
                **({"failed": record["failed"]} if failed or all_ else {}),
                **({"timeouts": record["timeouts"]} if late or all_ else {}),
                **{
                    f"p{format_percentile(p)}{suffix}": table.percentile(rows.get(p), unit)
                    for p in sorted(columns)
                    if p < 100
                },
                f"max{suffix}": largest,
                f"mean{suffix}": table.bounded(record["mean"], record["ranges"].get("mean"), unit),
                **{
                    f"{name}{suffix}": table.bounded(trim and trim["value"], ranges.get(name), unit)
                    for name, trim in trimmed.items()
                },
                "highest supported": table.either(
                    None if supported is None else f"{supported:.6f}",
                    f"p{format_percentile(sure_percentile(supported))}" if supported else "",
                ),
                **table.flags(row for _, row in sorted(rows.items())),
            }
        )
    optional = _OPTIONAL if percentiles else ("highest supported", "tm99", "mean")
    text = table.render(optional=optional, most=MOST_ROWS, causes=True, left_out=left_out)
    if style != "table":
        return text
    # The trimmed statistics that were asked for, and what to know of each series.
    lines = [text]
    for record in records:
        name = f"{printable(record['name'])}: " if len(records) > 1 else ""
        for spec in trims:
            if trim := record["trimmed"].get(spec):
                show = partial(value_text, unit=record["unit"], out_unit=out_unit)
                value = "nothing"
                if trim["resolved"] and trim["value"] is not None:
                    value = show(trim["value"])
                elif not (trim["value"] is None and trim["low"] is None and trim["high"] is None):
                    value = format_range(trim["low"], trim["high"], show)
                form, _, meaning = trim["definition"].partition(": ")
                lines.append(
                    f"{name}{spec} = {value}, the {meaning} ({form}); "
                    f"leaves out {trim['leaves_out']}"
                )
    messages: dict[str, list[str]] = {}
    totals = [record for record in records if record["aggregate"]]
    of_all = {note for record in totals for note in record["notes"]}
    of_all_slow = any(map(_falls_into_seconds, totals))
    for record in records:
        # The first finding is the incident; the total's line says it of its parts, too.
        first = int(of_all_slow and not record["aggregate"] and _falls_into_seconds(record))
        findings = record["findings"][0 if notes else first :]
        texts = [*findings, *(text for text in record["notes"] if code_of(text) != "unit")]
        if not (record["aggregate"] or notes):
            texts = [text for text in texts if text not in of_all]
        texts.sort(key=lambda text: code_of(text) != "doubt")
        if not notes:  # a doubt of the numbers, and what they show; else the first note
            texts = [text for text in texts if text != bounds_note(record)]
            doubts = [text for text in texts if code_of(text) == "doubt"]
            texts = [*doubts[:1], *findings[:1]] or texts[:1]
        for text in texts:
            messages.setdefault(text, []).append(printable(record["name"]))
    for text, names in messages.items():
        of = f"{brief_list(names)}: " if len(names) < len(records) + left_out else ""
        lines.append(f"{of}{text}")
    if len(messages) > _FEW and not notes:
        lines[-len(messages) :] = ["notes on many series: --notes prints them"]
    return "\n".join(lines)


def _falls_into_seconds(record: SeriesRecord) -> bool:
    """Whether an incident holds most of the slow requests of a run."""
    return record["incident"] is not None and record["incident"]["total"] > 0


def headline(data: Any) -> str:
    """Return p50, p99 and the maximum in one sentence."""
    show = partial(format_value, unit=data.unit)
    if isinstance(data, Summary):
        if data.count == 0 and (lost := not_answered(data.run)):
            return f"No request was answered well: {', '.join(lost)}."
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
        if data.censored:
            return f"No request was answered; {format_count(data.censored)} timed out."
        return "Nothing was counted."
    if isinstance(data, Distribution):
        half, rare = (show(float(data.percentile(p))) for p in (50, 99))
        return f"A model: p50 {half}, p99 {rare}."
    if data.index.size == 1 and not data.censored and is_resolved(data.min, data.max):
        return f"All {format_count(data.requests)} requests took {show(data.max)}."
    parts = [
        f"{percentile_name(row.percentile)} {format_row(replace(row, supported=True), show)}"
        + (
            f" (uncertain: {cause_text(row.cause)})"
            if row.cause and not math.isinf(row.bucket_high)
            else ""
        )
        for row in data.evidence().supported_rows([50.0, 99.0])
    ]
    parts.append(f"max {statistic_text(data, 'max')}")
    late = max(data.censored - (data.requests - data.count), 0)
    if late:
        parts.append(f"and {format_count(late)} gave no answer within {show(data.censored_at)}")
    return f"{format_items(data.requests, 'request')}: {', '.join(parts)}."


def trust(data: Any, record: SeriesRecord) -> list[str]:
    """Return what limits the numbers, one sentence each; `record` is that of ``summary``."""
    run, sentences = data.run, []
    limit = record["highest_supported_percentile"]
    if isinstance(data, Histogram) and data.count and limit:
        highest = f"p{format_percentile(sure_percentile(limit))}"
        sentences.append(
            f"Highest supported percentile of {format_count(data.requests)} requests: {highest}. "
            "Others are in brackets."
        )
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
    if lost := not_answered(run):
        sentences.append(f"Not counted among the answered requests: {', '.join(lost)}.")
    return [*sentences, *(as_sentence(note) for note in record["notes"])]
