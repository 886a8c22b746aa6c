"""Series records as text: a table for the terminal, Markdown or CSV."""

from __future__ import annotations

import math
import re
from functools import partial
from typing import TYPE_CHECKING, Any

from latencykit.analysis.capacity import machines_needed
from latencykit.analysis.fan_out import samples_needed
from latencykit.core.histogram import Histogram
from latencykit.core.quantiles import highest_supported_percentile, is_resolved
from latencykit.core.summary import Summary
from latencykit.errors import InvalidArgumentError
from latencykit.units import (
    NANOSECONDS,
    format_change,
    format_count,
    format_duration,
    format_percentile,
    format_range,
    format_row,
    printable,
    sure_percentile,
)
from latencykit.views.record import TRIMMED, number
from latencykit.views.tables import csv_text, markdown, shown, styled, text_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from latencykit.analysis.capacity import LoadCurve, LoadRow, Machines
    from latencykit.analysis.compare import Change, Comparison
    from latencykit.analysis.fan_out import FanOut
    from latencykit.analysis.omission import Diagnosis
    from latencykit.analysis.slo import SLORow

__all__ = [
    "check_record",
    "check_text",
    "comparison_record",
    "comparisons_record",
    "comparisons_text",
    "diagnosis_record",
    "diagnosis_text",
    "fan_out_record",
    "fan_out_text",
    "fan_out_words",
    "intervals_text",
    "junit_xml",
    "legend",
    "load_record",
    "load_text",
    "load_words",
    "summary_text",
]


_FEW = 6
_BRACKETS = "(in brackets: sample too small for this percentile)"
_RANGES = "(a–b: between these, the source says no more)"


def summary_text(
    records: Sequence[dict[str, Any]], style: str = "table", out_unit: str | None = None
) -> str:
    """Return one row per series: count, failures, percentiles, maximum, mean, and the highest supported percentile.

    A percentile in brackets is not supported by the sample: it is one of its largest values in disguise. A range is what
    the source says, where that is no number. CSV has the upper end of a range, and names the columns that are supported
    and resolved.
    """
    wanted = sorted({row["percentile"] for record in records for row in record["percentiles"]})
    below = [p for p in wanted if p < 100]
    bad = any(record["failed"] or record["timeouts"] for record in records)
    unit = f" ({_unit(records, out_unit)})" if style == "csv" else ""
    header = [
        "series",
        "requests",
        *(["failed", "timeouts"] if bad else []),
        *(f"p{format_percentile(p)}{unit}" for p in below),
    ]
    header += [f"max{unit}", f"mean{unit}", f"tm99{unit}", "highest supported"]
    rows = [_row(record, below, bad, style, out_unit) for record in records]
    if style == "csv":
        return csv_text([*header, "supported", "resolved"], rows)
    text = (markdown if style == "markdown" else text_table)(
        header, [[str(cell) for cell in row] for row in rows]
    )
    if style == "markdown":
        return text
    return "\n".join(
        [text, *legend(cell for row in rows for cell in row), *_what_to_know(records, out_unit)]
    )


def legend(cells: Iterable[object]) -> list[str]:
    """Return what brackets and ranges among the cells of a table mean, where there are any."""
    texts = [str(cell) for cell in cells]
    found = (
        [_BRACKETS] if any(text.startswith("(") and text.endswith(")") for text in texts) else []
    )
    return (
        [*found, _RANGES]
        if any(re.search(r"\d[^ ]*( [nµm]?s)?–\d|≤ \d", text) for text in texts)
        else found
    )


def _unit(records: Sequence[dict[str, Any]], out_unit: str | None) -> str:
    """The unit of a CSV's numbers, for its header."""
    units = {
        out_unit if out_unit and record["unit"] in NANOSECONDS else record["unit"]
        for record in records
    }
    return "/".join(sorted(unit if unit in NANOSECONDS else "no unit" for unit in units))


def _what_to_know(records: Sequence[dict[str, Any]], out_unit: str | None) -> list[str]:
    """What the tails are based on, and what trimmed statistics leave out; of many series only what was asked for."""
    said = []
    for record in records:
        name = f"{printable(record['name'])}: " if len(records) > 1 else ""
        if record["rests_on"] and len(records) <= _FEW:
            said.append(f"{name}{record['rests_on']}")
        for spec, trim in record["trimmed"].items():
            if spec not in TRIMMED or (spec == "tm99" and len(records) <= _FEW):
                value = _trim_text(trim, record["unit"], out_unit)
                form, _, meaning = trim["definition"].partition(": ")
                said.append(
                    f"{name}{spec} = {value}, the {meaning} ({form}); leaves out {trim['leaves_out']}"
                )
    return said


def _trim_text(trim: dict[str, Any], unit: str, out_unit: str | None) -> str:
    """A trimmed statistic: a number where it is known within a tenth, else a range."""
    share = trim["definition"].startswith("PR")
    plain = share or trim["definition"].startswith("TC")

    def show(value: float) -> str:
        return (
            f"{value:.4g}"
            if share
            else str(shown(value, "none" if plain else unit, "table", out_unit))
        )

    # Of a share, what is left of 100 % is as much of a statement as what is not.
    known = trim["resolved"] and (
        not share or is_resolved(100 - (trim["high"] or 0), 100 - (trim["low"] or 0))
    )
    if trim["value"] is None and trim["low"] is None and trim["high"] is None:
        return "nothing"
    return (show(trim["value"]) if known else format_range(trim["low"], trim["high"], show)) + (
        " %" if share else ""
    )


def _row(
    record: dict[str, Any], below: list[float], bad: bool, style: str, out_unit: str | None
) -> list[Any]:
    def show(value: float | None) -> Any:
        return shown(value, record["unit"], style, out_unit)

    def known(name: str, value: float | None, ends: dict[str, Any] | None) -> Any:
        at_least = name == "max" and record["max_at_least"]
        if style == "csv":
            return show(value)
        if ends is not None:
            return format_range(ends["low"], ends["high"], show)
        return f"≥ {show(value)}" if at_least else show(value)

    held = {row["percentile"]: row for row in record["percentiles"]}
    cells: list[Any] = [
        record["name"],
        record["count"]
        if style == "csv"
        else format_count(record["count"] or 0)
        if record["count"] is not None
        else "",
    ]
    cells += [record["failed"], record["timeouts"]] if bad else []
    for p in below:
        row = held.get(p)
        cells.append(
            show(None)
            if row is None
            else show(row["value"])
            if style == "csv"
            else format_row(row, show)
        )
    cells += [known(name, record[name], record["ranges"].get(name)) for name in ("max", "mean")]
    trim = record["trimmed"].get("tm99")
    cells.append(
        known(
            "tm99",
            record["trimmed_means"].get("tm99"),
            trim if trim and not trim["resolved"] else None,
        )
    )
    supported = record["highest_supported_percentile"]
    if style != "csv":
        return [*cells, f"p{format_percentile(sure_percentile(supported))}" if supported else ""]
    named = [(f"p{format_percentile(p)}", row) for p, row in sorted(held.items())]
    flags = [
        " ".join(name for name, row in named if row[flag]) for flag in ("supported", "resolved")
    ]
    return [*cells, None if supported is None else f"{supported:.6f}", *flags]


def intervals_text(
    records: Sequence[dict[str, Any]], style: str = "table", out_unit: str | None = None
) -> str:
    """Return one row an interval of every series; brackets and ranges are those of `summary_text`."""
    names = list(
        dict.fromkeys(
            p for record in records for row in record["intervals"] for p in row["percentiles"]
        )
    )
    unit = f" ({_unit(records, out_unit)})" if style == "csv" else ""
    header = [
        "series",
        "start",
        "length",
        "requests",
        *(f"p{name}{unit}" for name in names),
        f"max{unit}",
    ]
    rows: list[list[Any]] = []
    for record in records:
        for row in record["intervals"]:
            values = [_interval_cell(row, name, record["unit"], style, out_unit) for name in names]
            last = _interval_cell(row, "max", record["unit"], style, out_unit)
            flags = [
                " ".join(
                    f"p{name}"
                    for name, value in row["percentiles"].items()
                    if value is not None and float(name) <= row["supported_up_to"]
                ),
                " ".join(
                    f"p{name}"
                    for name, value in row["percentiles"].items()
                    if value is not None and name not in row["ranges"]
                ),
            ]
            more = flags if style == "csv" else []
            rows.append(
                [record["name"], row["start"], row["length"], row["count"], *values, last, *more]
            )
    if style == "csv":
        return csv_text([*header, "supported", "resolved"], rows)
    texts = [
        [str(row[0]), f"{row[1]:.3f}", f"{row[2]:.3f}", format_count(row[3]), *map(str, row[4:])]
        for row in rows
    ]
    if style == "markdown":
        return markdown(header, texts)
    return "\n".join([text_table(header, texts), *legend(cell for row in texts for cell in row)])


def _interval_cell(
    row: dict[str, Any], name: str, unit: str, style: str, out_unit: str | None
) -> Any:
    value, ends = (
        row["max"] if name == "max" else row["percentiles"].get(name),
        row["ranges"].get(name),
    )
    if style == "csv":
        return shown(value, unit, style, out_unit)
    fields = {
        "value": value,
        "resolved": ends is None,
        "supported": name == "max" or float(name) <= row["supported_up_to"],
    }
    low, high = (ends["low"], ends["high"]) if ends else (value, value)
    return format_row(
        fields | {"bucket_low": low, "bucket_high": high},
        lambda one: str(shown(one, unit, style, out_unit)),
    )


# ------------------------------------------------------------
# Comparisons as dictionaries and as text.

_GRAVE = ("mixed", "worse", "inconclusive", "better", "same")
_SURE = 0.02
"""Bounds of a probability that are farther apart are both shown."""

_HEADER = ("statistic", "base", "new", "change", "low", "high", "significant")


def comparisons_record(
    found: Mapping[str, Comparison], failed: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """Return the comparison of one series as it is, and of several a list beside the first, as plain values."""
    records = {name: comparison_record(one, failed[name]) for name, one in found.items()}
    if len(records) == 1:
        return {"schema_version": 1, **next(iter(records.values()))}
    verdicts = {one.verdict for one in found.values()}
    both_ways = {"better", "worse"} <= verdicts
    return {
        "schema_version": 1,
        **next(iter(records.values())),
        "verdict": "mixed" if both_ways else next(word for word in _GRAVE if word in verdicts),
        "failed": [f"{name}: {text}" for name, texts in failed.items() for text in texts],
        "series": [{"name": name, **record} for name, record in records.items()],
    }


def comparison_record(found: Comparison, failed: Sequence[str] = ()) -> dict[str, Any]:
    """Return a comparison as plain values; changes are relative (0.05 is +5 %), null where unbounded."""
    rows = [_record(row) for row in found.changes]
    return {
        "basis": found.basis,
        "verdict": found.verdict,
        "unit": found.unit,
        "runs": list(found.runs),
        "rows": [row for row in rows if row["percentile"] is not None],
        "means": [row for row in rows if row["percentile"] is None],
        "faster": number(found.faster),
        "faster_between": [number(end) for end in found.faster_between],
        "failed": list(failed),
        "reasons": list(found.reasons),
        "warnings": list(found.warnings),
    }


def _record(row: Change) -> dict[str, Any]:
    names = (
        "base",
        "new",
        "change",
        "low",
        "high",
        "difference",
        "difference_low",
        "difference_high",
        "p_value",
    )
    values = {name: number(getattr(row, name)) for name in names}
    values["low"] = None if row.low <= -1 else values["low"]
    values |= {
        name: number(getattr(row, name))
        for name in ("base_low", "base_high", "new_low", "new_high")
    }
    values["resolved"] = row.resolved
    return {
        "statistic": row.statistic,
        "percentile": row.percentile,
        **values,
        "significant": row.significant,
        "note": row.note,
    }


def comparisons_text(
    found: Mapping[str, Comparison], style: str = "table", out_unit: str | None = None
) -> str:
    """Return one row per statistic; several series follow each other, in CSV with a column of their own."""
    if style == "csv":
        rows = [
            [name, *_plain(row, one.unit, out_unit)]
            for name, one in found.items()
            for row in one.changes
        ]
        header = [*_HEADER, "resolved"]
        return (
            csv_text(["series", *header], rows)
            if len(found) > 1
            else csv_text(header, [row[1:] for row in rows])
        )
    table = markdown if style == "markdown" else text_table
    texts = []
    for name, one in found.items():
        title = (
            [("### " if style == "markdown" else "") + printable(name)] if len(found) > 1 else []
        )
        rows = [_cells(row, one.unit, out_unit) for row in one.changes]
        texts.append("\n".join([*title, table(_HEADER, rows), "", *_words(one)]))
    return "\n\n".join(texts)


def _cells(row: Change, unit: str, out_unit: str | None) -> list[str]:
    values = [
        value_text(*ends, lambda one: str(shown(one, unit, "table", out_unit)))
        for ends in _sides(row)
    ]
    if row.statistic == "slow share":
        values = [f"{100 * value:.3g} %" for value in (row.base, row.new)]
    ends = [
        format_change(row.low) if row.low > -1 else "",
        format_change(row.high) if math.isfinite(row.high) else "",
    ]
    said = "yes" if row.significant else "not judged" if math.isnan(row.p_value) else "no"
    return [
        "max" if row.percentile == 100 else row.statistic,
        *values,
        format_change(row.change),
        *ends,
        said,
    ]


def _sides(row: Change) -> list[tuple[float, float, float]]:
    return [(row.base, row.base_low, row.base_high), (row.new, row.new_low, row.new_high)]


def value_text(value: float, low: float, high: float, show: Callable[[float], str]) -> str:
    """Return one side of a comparison: a range where its source does not pin it down."""
    return (
        show(value) if math.isnan(low) or is_resolved(low, high) else format_range(low, high, show)
    )


def _plain(row: Change, unit: str, out_unit: str | None) -> list[Any]:
    scaled = None if row.statistic == "slow share" else out_unit
    values = [shown(value, unit, "csv", scaled) for value in (row.base, row.new)]
    ends = [row.change, row.low if row.low > -1 else None, row.high]
    return [
        row.statistic,
        *values,
        *(None if end is None else number(end) for end in ends),
        row.significant,
        row.resolved,
    ]


def _words(found: Comparison) -> list[str]:
    meaning = {
        "same": "the same: every change surely lies within the margin",
        "mixed": "mixed: some statistics are better, others worse",
    }
    runs = (
        f"{found.runs[0]} runs against {found.runs[1]}"
        if found.basis == "runs"
        else "one run per side"
    )
    lines = [f"verdict: {meaning.get(found.verdict, found.verdict)} ({runs})"]
    if math.isfinite(found.faster):
        low, high = found.faster_between
        share = (
            f"{100 * found.faster:.3g}"
            if not high - low > _SURE
            else f"{100 * low:.3g}–{100 * high:.3g}"
        )
        lines.append(f"P(new < base) = {share} %")
    return [*lines, *found.reasons]


# ------------------------------------------------------------
# A diagnosis as the dictionary that the command line prints as JSON, and as text.

_COLOURS = {"omits": "#d0312d", "clean": "#0b5cbf", "unknown": "#c77700"}
_GREY = "#8a909a"

_SHOWN_STALLS = 10


def diagnosis_record(name: str, found: Diagnosis) -> dict[str, Any]:
    """Return one series' diagnosis as plain values: stalls in seconds from the series' start, latencies in ns."""
    stalls = found.found
    rows = zip(
        *(
            column.tolist()
            for column in (stalls.start, stalls.end, stalls.duration, stalls.worst, stalls.missing)
        ),
        strict=True,
    )
    keys = ("start", "end", "duration", "worst", "missing")
    return {
        "name": name,
        "count": found.raw.count,
        "unit_from": found.run.unit_from,
        "verdict": found.verdict,
        "summary": found.summary,
        "ask": found.ask,
        "findings": list(found.findings),
        "evidence": [
            {
                "test": one.test,
                "statistic": number(one.statistic),
                "threshold": number(one.threshold),
                "finding": one.finding,
            }
            for one in found.evidence
        ],
        "expected_interval": number(found.expected_interval),
        "stalls": [
            dict(zip(keys, (*map(number, row[:3]), number(round(row[3])), row[4]), strict=True))
            for row in rows
        ],
        "raw": {format_percentile(p): number(value) for p, value, _ in found.table},
        "raw_ranges": _ranges(found.raw, found),
        "corrected_ranges": _ranges(found.corrected, found),
        "corrected": {
            format_percentile(p): number(value) for p, _, value in found.table if value is not None
        },
        "method": found.method,
        "notes": [*stalls.notes, *filter(None, [found.run.unit_note])],
    }


def _ranges(held: Any, found: Diagnosis) -> dict[str, dict[str, Any]]:
    """Bounds of the percentiles that the source pins down no better than that."""
    if not isinstance(held, Histogram) or not held.count:
        return {}
    rows = held.percentile_rows([p for p, _, _ in found.table])
    return {
        format_percentile(row.percentile): {"low": number(row.bucket_low), "high": number(row.bucket_high)}
        for row in rows if not row.resolved
    }  # fmt: skip


def diagnosis_text(
    records: Sequence[dict[str, Any]], style: str, out_unit: str | None = None
) -> str:
    """Return diagnoses as a paragraph each, or one row each as CSV or Markdown."""
    if style == "table":
        return "\n\n".join(_paragraph(record, out_unit) for record in records)
    heads = [
        "series",
        "requests",
        "verdict",
        "why",
        "findings",
        "expected interval",
        "stalls",
        "method",
    ]
    rows = [
        [
            record["name"], format_count(record["count"] or 0), record["verdict"], record["summary"],
            " ".join(record["findings"]), _time(record["expected_interval"]), str(len(record["stalls"])), record["method"] or "",
        ]
        for record in records
    ]  # fmt: skip
    return csv_text(heads, rows) if style == "csv" else markdown(heads, rows, left=len(heads))


def _paragraph(record: dict[str, Any], out_unit: str | None) -> str:
    lines = [f"{printable(record['name'])}: {record['verdict']}", f"  {record['summary']}"]
    if record["findings"]:
        lines.append(f"  also: {', '.join(record['findings'])}")
    lines += [f"  {one['test']}: {one['finding']}" for one in record["evidence"]]
    lines += [f"  {note}" for note in record["notes"]]
    for stall in record["stalls"][:_SHOWN_STALLS]:
        lines.append(
            f"  stall from {stall['start']:.3f} s to {stall['end']:.3f} s, worst {_time(stall['worst'])}, "
            f"{format_count(stall['missing'])} requests not sent meanwhile"
        )
    if len(record["stalls"]) > _SHOWN_STALLS:
        lines.append(f"  and {format_count(len(record['stalls']) - _SHOWN_STALLS)} more stalls")
    if record["expected_interval"]:
        lines.append(f"  expected interval {_time(record['expected_interval'])}")
    lines += _percentiles(record, out_unit)
    return "\n".join([*lines, *([f"  {record['ask']}"] if record["ask"] else [])])


def _percentiles(record: dict[str, Any], out_unit: str | None) -> list[str]:
    """Raw percentiles, and corrected ones beside them where there are any."""
    heads = ["", "as measured"]
    how = {"retime": "by the schedule", "backfill": "back-filled"}.get(record["method"])
    if record["corrected"] and how:
        heads.append(how)
    columns = [record["raw"], record["corrected"]][: len(heads) - 1]

    def show(value: float | None) -> str:
        return str(shown(value, "ns", "table", out_unit))

    kinds = ("raw", "corrected")[: len(columns)]
    rows = [
        [_named(name), *(_value(record, kind, name, show) for kind in kinds)]
        for name in record["raw"]
    ]
    return [f"  {line}" for line in text_table(heads, rows).splitlines()] if rows else []


def _value(
    record: dict[str, Any], kind: str, name: str, show: Callable[[float | None], str]
) -> str:
    """A percentile of the raw or the corrected counts: a range where the source says no more."""
    ends = record[f"{kind}_ranges"].get(name)
    return (
        show(record[kind].get(name))
        if ends is None
        else format_range(ends["low"], ends["high"], show)
    )


def _named(percentile: str) -> str:
    return "max" if percentile == "100" else f"p{percentile}"


def _time(value: float | None) -> str:
    return "" if value is None else format_duration(float(value))


# ------------------------------------------------------------
# Fan-out as a dictionary, as text, and in words.

_CLOSE = 5e-4
"""Shares that differ by less are one, in a table."""


def fan_out_record(
    name: str,
    found: Sequence[FanOut],
    bounds: Sequence[FanOut] | None,
    percentiles: Sequence[float],
) -> dict[str, Any]:
    """Return one series as a dictionary of plain values; `bounds` are the same for independent calls."""
    rows = [_fanouts_row(one, percentiles) for one in found]
    for row, bound in zip(rows, bounds or (), strict=False):
        other = _fanouts_row(bound, percentiles)
        row["independent"] = {
            key: other[key] for key in ("percentiles", "share_above", "share_between")
        }
    return {"name": name, "unit": found[0].distribution.unit, "rows": rows}


def _fanouts_row(one: FanOut, percentiles: Sequence[float]) -> dict[str, Any]:
    rows = [one.row(p) for p in percentiles]
    return {
        "n": one.n,
        "model": one.model,
        "percentiles": [
            {
                "percentile": row.percentile,
                **{
                    key: number(getattr(row, key)) for key in ("value", "bucket_low", "bucket_high")
                },
                "resolved": row.resolved,
                "supported": row.supported,
                "at_least": math.isinf(row.bucket_high),
            }
            for row in rows
        ],
        "share_above": {
            format_percentile(p): share if _known(one, p) else None
            for p, share in one.above.items()
        },
        "share_between": {
            format_percentile(p): list(one.above_between.get(p, (share, share)))
            for p, share in one.above.items()
        },
        "quorum": one.quorum,
        "sequential": one.sequential,
        "added_load": one.added_load,
        "interval": number(one.interval),
        "note": one.note,
    }


def _known(one: FanOut, p: float) -> bool:
    """Whether the share of users who fare worse than a percentile of one call is known within a tenth."""
    low, high = one.above_between.get(p, (1.0, 1.0))
    return bool(is_resolved(low, high)) or high - low < _CLOSE


def fan_out_text(
    records: Sequence[dict[str, Any]], style: str = "table", out_unit: str | None = None
) -> str:
    """Return one row a number of calls; in brackets what the sample of single calls does not support."""
    wanted = [row["percentile"] for row in records[0]["rows"][0]["percentiles"]]
    header = [
        "series",
        "calls",
        "model",
        *(f"p{format_percentile(p)}" for p in wanted),
        "worse than p99 of one",
    ]
    texts: list[list[object]] = []
    plain: list[list[object]] = []
    for record in records:
        for row in record["rows"]:
            models = [(row["model"], row)] + (
                [("if independent", row["independent"])]
                if "independent" in row and row["n"] > 1
                else []
            )
            for model, values in models:
                start = [record["name"], _calls(row), model]
                share, between = values["share_above"].get("99"), values["share_between"].get("99")
                cells = [_cell(cell, record["unit"], out_unit) for cell in values["percentiles"]]
                texts.append([*start, *cells, _share(share, between)])
                bare = [
                    shown(cell["value"], record["unit"], "csv", out_unit)
                    for cell in values["percentiles"]
                ]
                flags = [
                    " ".join(
                        f"p{format_percentile(cell['percentile'])}"
                        for cell in values["percentiles"]
                        if cell[flag]
                    )
                    for flag in ("supported", "resolved")
                ]
                plain.append([record["name"], row["n"], model, *bare, share, *flags])
    if style == "csv":
        return styled(style, [*header, "supported", "resolved"], texts, plain)
    text = styled(style, header, texts, plain)
    return (
        text
        if style == "markdown"
        else "\n".join([text, *legend(cell for row in texts for cell in row)])
    )


def _share(share: float | None, between: list[float] | None) -> str:
    if between is None:
        return ""
    return (
        f"{100 * share:.3g} %"
        if share is not None
        else f"{100 * between[0]:.3g}–{100 * between[1]:.3g} %"
    )


def _calls(row: dict[str, Any]) -> str:
    text = format_count(row["n"]) + (" in a row" if row["sequential"] else "")
    return text if row["quorum"] is None else f"{row['quorum']:,} of {text}"


def _cell(cell: dict[str, Any], unit: str, out_unit: str | None) -> str:
    return format_row(cell, lambda value: str(shown(value, unit, "table", out_unit)))


def fan_out_words(name: str, found: Sequence[FanOut], confidence: float = 0.95) -> list[str]:
    """Return what the numbers are based on, a sentence a point."""
    most = max(found, key=lambda one: one.n)
    said = [f"{name}, {format_count(one.n)} calls: {one.note}" for one in found if one.note]
    if most.added_load:
        said.append(f"{name}: the hedge sends {100 * most.added_load:,.3g} % more calls")
    if most.n == 1 or most.sequential:
        return said
    rests = most.leaf_percentile(99)
    needed = samples_needed(rests, confidence)
    held = most.leaf.count + most.leaf.censored
    enough = (
        ""
        if held >= needed
        else f"; it takes {format_count(needed)} calls to know, and there are {format_count(held)}"
    )
    of_them = f"{most.quorum:,} of {most.n:,}" if most.quorum is not None else format_count(most.n)
    digits = f"{rests:.7g}"
    said.append(
        f"{name}: of {of_them} independent calls, the user's p99 is the p{digits} of one{enough}"
    )
    return said


# ------------------------------------------------------------
# Load curves as dictionaries, as text, and in words.

_FIELDS = ("value", "low", "high", "bucket_low", "bucket_high")
_FLAGS = ("supported", "resolved")


def load_record(
    curve: LoadCurve,
    percentiles: Sequence[float],
    confidence: float = 0.95,
    machines: Machines | None = None,
) -> dict[str, Any]:
    """Return a load curve as plain values; rates are requests per second."""
    found = curve.capacity
    bracket = None
    if found is not None:
        ends = {name: number(getattr(found, name)) for name in ("rate", "low", "high")}
        bracket = {**ends, "limited_by": curve.limited_by, "reason": found.reason}
    return {
        "schema_version": 1,
        "rows": [_loads_record(row, percentiles, confidence) for row in curve.rows],
        "capacity": bracket,
        "machines": None if machines is None else vars(machines),
        "scalability": _scalability(curve),
    }


def _loads_record(row: LoadRow, percentiles: Sequence[float], confidence: float) -> dict[str, Any]:
    rates = {name: number(getattr(row, name)) for name in ("rate", "offered", "achieved")}
    facts: dict[str, Any] = {
        "series": row.name,
        **rates,
        "saturated": row.saturated,
        "unit": row.data.unit,
        "count": row.data.count,
    }
    facts |= {"unit_from": row.data.run.unit_from, "notes": list(row.data.run.notes)}
    return facts | {"percentiles": _loads_percentiles(row, percentiles, confidence)}


def _loads_percentiles(
    row: LoadRow, percentiles: Sequence[float], confidence: float
) -> list[dict[str, Any]]:
    if isinstance(row.data, Summary):
        held = [
            (p, row.data.reported_percentiles[p])
            for p in percentiles
            if p in row.data.reported_percentiles
        ]
        count = row.data.count
        limit = None if count is None else highest_supported_percentile(count, confidence)
        exact = dict.fromkeys(("low", "high"))
        return [
            {
                "percentile": p,
                "value": number(v),
                **exact,
                "bucket_low": number(v),
                "bucket_high": number(v),
                "resolved": True,
            }
            | {"supported": None if limit is None else p <= limit}
            for p, v in held
        ]
    rows = row.percentile_rows(percentiles, confidence)
    return [
        {"percentile": one.percentile, **{key: number(getattr(one, key)) for key in _FIELDS}}
        | {"resolved": one.resolved, "supported": one.supported}
        for one in rows
    ]


def _scalability(curve: LoadCurve) -> dict[str, Any] | None:
    try:
        law = curve.scalability()
    except (
        InvalidArgumentError
    ):  # fewer than six numbers of connections: there is no law to speak of
        return None
    values = {name: getattr(law, name) for name in ("rate", "contention", "coherence")}
    return {
        **values,
        "errors": law.errors.tolist(),
        "peak": number(law.peak),
        "highest": law.highest,
    }


def load_text(record: dict[str, Any], style: str = "table", out_unit: str | None = None) -> str:
    """Return one row per run, by load."""
    wanted = sorted({cell["percentile"] for row in record["rows"] for cell in row["percentiles"]})
    header = [
        "series",
        "offered",
        "achieved",
        *(f"p{format_percentile(p)}" for p in wanted),
        "saturated",
    ]
    texts: list[list[object]] = []
    plain: list[list[object]] = []
    for row in record["rows"]:
        held = {cell["percentile"]: cell for cell in row["percentiles"]}
        values = [held[p]["value"] if p in held else None for p in wanted]
        show = partial(shown, unit=row["unit"], style="table", out_unit=out_unit)
        cells = [format_row(held[p], show) if p in held else "" for p in wanted]
        rates = [row["offered"], row["achieved"]]
        texts.append(
            [
                row["series"],
                *(_rate(rate) for rate in rates),
                *cells,
                "yes" if row["saturated"] else "",
            ]
        )
        bare = [shown(value, row["unit"], "csv", out_unit) for value in values]
        flags = [
            " ".join(f"p{format_percentile(p)}" for p in wanted if p in held and held[p][flag])
            for flag in _FLAGS
        ]
        plain.append([row["series"], *rates, *bare, row["saturated"], *flags])
    return styled(style, [*header, *_FLAGS] if style == "csv" else header, texts, plain)


def _rate(rate: float | None) -> str:
    return (
        ""
        if rate is None or not math.isfinite(rate)
        else f"{rate:,.0f}/s"
        if rate >= 100
        else f"{rate:.3g}/s"
    )


def load_words(curve: LoadCurve, machines: Machines | None = None) -> list[str]:
    """Return the finding: the largest load within the SLO, and what it is based on."""
    said = []
    found = curve.capacity
    if found is not None and curve.slo is not None:
        bracket = f"between {_rate(found.low)} (met) and {_rate(found.high)} (not)"
        if math.isnan(found.rate):
            said.append(f"no load measured meets {curve.slo}: {found.reason}")
        elif not found.low:
            end = "" if math.isinf(found.high) else f"; {_rate(found.high)} misses it"
            said.append(
                f"{curve.slo}: the largest load is about {_rate(found.rate)}{end}; {found.reason}"
            )
        elif math.isinf(found.high):
            said.append(f"{curve.slo}: met up to {_rate(found.low)}; {found.reason}")
        else:
            said.append(
                f"{curve.slo}: the largest load is about {_rate(found.rate)}, {bracket}; {curve.limited_by} limits it"
            )
            said += [found.reason] if found.reason else []
    lost = [row for row in curve.rows if row.saturated]
    if lost:
        said.append(
            f"from {_rate(lost[0].offered)} offered on, less was achieved ({_rate(lost[0].achieved)}): saturated"
        )
    if machines is not None:
        ends = [
            str(end) if end is not None else "unknown"
            for end in (machines.least, machines.estimate, machines.most)
        ]
        said.append(f"machines needed: {ends[1]} (at least {ends[0]}, at most {ends[2]})")
    return said


def machines_for(curve: LoadCurve, offered: float, spare: int) -> Machines:
    """Return how many machines such as the one measured carry an offered load."""
    if curve.capacity is None:
        raise InvalidArgumentError(
            "how many machines are needed depends on what one carries within its SLO; give the SLO, too"
        )
    return machines_needed(offered, curve.capacity, spare)


# ------------------------------------------------------------
# Checked limits as dictionaries, as text, and as JUnit's XML.

_VERDICTS_HEADER = ("series", "statistic", "limit", "value", "low", "high", "margin", "outcome")


def check_record(found: Mapping[str, Sequence[SLORow]], passed: bool | None) -> dict[str, Any]:
    """Return checked limits as plain values: ns, shares (0..1) for ``failed``; null where unknown or unbounded."""
    rows = [_verdicts_record(name, row) for name, rows in found.items() for row in rows]
    return {"schema_version": 1, "passed": passed, "rows": rows}


def _verdicts_record(name: str, row: SLORow) -> dict[str, Any]:
    factor = NANOSECONDS.get(row.unit, 1.0) if row.statistic != "failed" else 1.0
    values = {
        key: number(getattr(row, key) * factor)
        for key in ("limit", "value", "low", "high", "bucket_low", "bucket_high")
    }
    values["resolved"] = row.resolved
    margins = {key: number(getattr(row, key)) for key in ("margin", "margin_low", "margin_high")}
    return {
        "series": name,
        "statistic": row.statistic,
        **values,
        "outcome": row.outcome,
        **margins,
        "reason": row.reason,
    }


def check_text(
    found: Mapping[str, Sequence[SLORow]], style: str = "table", out_unit: str | None = None
) -> str:
    """Return one row per limit, and below what there is to say of those that are not simply met."""
    flat = [(name, row) for name, rows in found.items() for row in rows]
    cells = [
        [name, row.statistic, *_values(row, out_unit), _percent(row.margin), row.outcome]
        for name, row in flat
    ]
    plain = [
        [name, row.statistic, *_numbers(row, out_unit), number(row.margin), row.outcome, row.resolved] for name, row in flat
    ]  # fmt: skip
    table = styled(
        style,
        [*_VERDICTS_HEADER, "resolved"] if style == "csv" else _VERDICTS_HEADER,
        cells,
        plain,
        left=2,
    )
    reasons = [
        f"{printable(name)} {row.statistic}: {row.reason}" for name, row in flat if row.reason
    ]
    return table if style == "csv" or not reasons else "\n".join([table, "", *reasons])


def _values(row: SLORow, out_unit: str | None) -> list[str]:
    values = (row.limit, row.value, row.low, row.high)
    if row.statistic == "failed":
        return ["" if math.isnan(value) else f"{100 * value:.3g} %" for value in values]

    def show(value: float) -> str:
        return str(shown(value, row.unit, "table", out_unit))

    texts = [show(value) if math.isfinite(value) else "" for value in values]
    texts[1] = texts[1] if row.resolved else format_range(row.bucket_low, row.bucket_high, show)
    return texts


def _numbers(row: SLORow, out_unit: str | None) -> list[Any]:
    values = (row.limit, row.value, row.low, row.high)
    unit = "none" if row.statistic == "failed" else row.unit
    return [
        shown(value, unit, "csv", out_unit) if math.isfinite(value) else None for value in values
    ]


def _percent(margin: float) -> str:
    """Room to the limit; far beyond it, how many times the limit."""
    if margin < -9:
        return f"{1 - margin:,.0f} × limit" if math.isfinite(margin) else ""
    return f"{100 * margin:.3g} %" if math.isfinite(margin) else ""


def junit_xml(found: Mapping[str, Sequence[SLORow]], *, strict: bool = False) -> str:
    """Return the outcomes as JUnit's XML: a missed limit is a failure, an unknown one is skipped (a failure if `strict`)."""
    from xml.etree import ElementTree as ET

    outcomes = [row.outcome for rows in found.values() for row in rows]
    failures = outcomes.count("missed") + (outcomes.count("unknown") if strict else 0)
    counts = {
        "tests": len(outcomes),
        "failures": failures,
        "errors": 0,
        "skipped": 0 if strict else outcomes.count("unknown"),
    }
    numbers = {key: str(value) for key, value in counts.items()}
    root = ET.Element("testsuites", numbers)
    suite = ET.SubElement(root, "testsuite", {"name": "latencykit check", **numbers})
    for name, rows in found.items():
        for row in rows:
            value, limit = _values(row, None)[1] or "unknown", _values(row, None)[0]
            named = {
                "classname": printable(name, 200),
                "name": f"{row.statistic} within {limit}",
                "time": "0",
            }
            case = ET.SubElement(suite, "testcase", named)
            said = f"{row.statistic} is {value}, limit {limit}" + (
                f": {row.reason}" if row.reason else ""
            )
            if row.outcome == "missed" or (strict and row.outcome == "unknown"):
                ET.SubElement(
                    case, "failure", {"message": printable(said, 500), "type": row.outcome}
                )
            elif row.outcome == "unknown":
                ET.SubElement(case, "skipped", {"message": printable(said, 500)})
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, "unicode") + "\n"
