"""Text output of the commands: series, comparisons, diagnoses, fan-out, loads and limits.

For each there is a record of plain values, which is printed as JSON, and a text: a table for the
terminal, Markdown or CSV.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

from latencykit.core.histogram import Histogram
from latencykit.core.quantiles import highest_supported_percentile, is_resolved
from latencykit.core.summary import Summary
from latencykit.errors import InvalidArgumentError
from latencykit.units import (
    NANOSECONDS,
    format_change,
    format_count,
    format_duration,
    format_items,
    format_percentile,
    format_range,
    printable,
    sure_percentile,
)
from latencykit.views.record import TRIMMED, exact_row, number, numbers_of, percentile_row
from latencykit.views.tables import Table, shown, text_table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from latencykit.analysis.capacity import LoadCurve, LoadRow, Machines
    from latencykit.analysis.compare import Change, Comparison
    from latencykit.analysis.fan_out import FanOut
    from latencykit.analysis.omission import Diagnosis
    from latencykit.analysis.slo import SLORow
    from latencykit.ctrlz.sweep import Sweep

__all__ = [
    "BADGES",
    "check_record",
    "check_text",
    "comparison_reasons",
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
    "load_record",
    "load_text",
    "load_words",
    "machines_for",
    "percent",
    "percentile_name",
    "side_texts",
    "slo_texts",
    "summary_text",
    "sweep_record",
    "sweep_text",
    "sweep_words",
]

BADGES = {
    "better": "good",
    "same": "good",
    "met": "good",
    "clean": "good",
    "worse": "bad",
    "mixed": "bad",
    "missed": "bad",
    "omits": "bad",
    "inconclusive": "unsure",
    "unknown": "unsure",
}
"""Verdict → how a page colours it."""


def percentile_name(percentile: float) -> str:
    """Return ``p99.9``, or ``max`` for 100."""
    return "max" if percentile >= 100 else f"p{format_percentile(percentile)}"


def percent(share: float) -> str:
    """Return a share as a percentage."""
    return f"{100 * share:.3g} %"


# ------------------------------------------------------------
# Summaries of series.

_FEW = 6
"""Of more series, only the statistics that were asked for are explained below the table."""


def summary_text(
    records: Sequence[dict[str, Any]], style: str = "table", out_unit: str | None = None
) -> str:
    """Return one row per series: counts, percentiles, maximum and means.

    A percentile in brackets is not supported by the sample: it is one of its largest values. Where
    the source gives a range, CSV has its upper end.
    """
    percentiles = sorted({row["percentile"] for record in records for row in record["percentiles"]})
    failures = any(record["failed"] or record["timeouts"] for record in records)
    suffix = _csv_unit(records, style, out_unit)
    table = Table(style, out_unit)
    for record in records:
        unit, count = record["unit"], record["count"]
        rows = {row["percentile"]: row for row in record["percentiles"]}
        largest = table.bounded(record["max"], record["ranges"].get("max"), unit)
        if record["max_is_lower_bound"] and "max" not in record["ranges"]:
            largest = table.either(largest, f"≥ {largest}")
        trim = record["trimmed"].get("tm99")
        supported = record["highest_supported_percentile"]
        table.add(
            {
                "series": record["name"],
                "requests": table.either(count, None if count is None else format_count(count)),
                **({key: record[key] for key in ("failed", "timeouts")} if failures else {}),
                **{
                    f"p{format_percentile(p)}{suffix}": table.percentile(rows.get(p), unit)
                    for p in percentiles
                    if p < 100
                },
                f"max{suffix}": largest,
                f"mean{suffix}": table.bounded(record["mean"], record["ranges"].get("mean"), unit),
                f"tm99{suffix}": table.bounded(
                    record["trimmed_means"].get("tm99"),
                    trim if trim and not trim["resolved"] else None,
                    unit,
                ),
                "highest supported": table.either(
                    None if supported is None else f"{supported:.6f}",
                    f"p{format_percentile(sure_percentile(supported))}" if supported else "",
                ),
                **table.flags(row for _, row in sorted(rows.items())),
            }
        )
    text = table.render(legend=True)
    if style != "table":
        return text
    return "\n".join([text, *_explanations(records, out_unit)])


def _csv_unit(records: Sequence[dict[str, Any]], style: str, out_unit: str | None) -> str:
    """The unit of a CSV's numbers, for its header."""
    if style != "csv":
        return ""
    units = {
        out_unit if out_unit and record["unit"] in NANOSECONDS else record["unit"]
        for record in records
    }
    return f" ({'/'.join(sorted(unit if unit in NANOSECONDS else 'no unit' for unit in units))})"


def _explanations(records: Sequence[dict[str, Any]], out_unit: str | None) -> list[str]:
    """Notes on the evidence of the tails, and on what trimmed statistics leave out."""
    lines = []
    for record in records:
        name = f"{printable(record['name'])}: " if len(records) > 1 else ""
        if record["tail_note"] and len(records) <= _FEW:
            lines.append(f"{name}{record['tail_note']}")
        if len(records) <= _FEW:
            lines += [f"{name}{text}" for text in record["findings"]]
        for spec, trim in record["trimmed"].items():
            if spec not in TRIMMED or (spec == "tm99" and len(records) <= _FEW):
                value = _trim_text(trim, record["unit"], out_unit)
                form, _, meaning = trim["definition"].partition(": ")
                lines.append(
                    f"{name}{spec} = {value}, the {meaning} ({form}); "
                    f"leaves out {trim['leaves_out']}"
                )
    with_findings = sum(bool(record["findings"]) for record in records)
    if with_findings and len(records) > _FEW:
        lines.append(
            f"findings on {with_findings} of {len(records)} series (not steady, a timeout, "
            "averages …): see --format json, or select with --series"
        )
    return lines


def _trim_text(trim: dict[str, Any], unit: str, out_unit: str | None) -> str:
    """A trimmed statistic: a number where it is known within a tenth, otherwise a range."""
    value, low, high = trim["value"], trim["low"], trim["high"]
    if value is None and low is None and high is None:
        return "nothing"
    if trim["definition"].startswith("PR"):
        # The rest up to 100 % is as much of a statement as the share itself.
        exact = trim["resolved"] and is_resolved(100 - (high or 0), 100 - (low or 0))
        text = f"{value:.4g}" if exact else format_range(low, high, lambda end: f"{end:.4g}")
        return f"{text} %"
    counted = trim["definition"].startswith("TC")
    show = partial(shown, unit="none" if counted else unit, style="table", out_unit=out_unit)
    return str(show(value)) if trim["resolved"] else format_range(low, high, show)


def intervals_text(
    records: Sequence[dict[str, Any]], style: str = "table", out_unit: str | None = None
) -> str:
    """Return one row per interval of every series; see `summary_text` for brackets and ranges."""
    names = list(
        dict.fromkeys(
            p for record in records for row in record["intervals"] for p in row["percentiles"]
        )
    )
    suffix = _csv_unit(records, style, out_unit)
    header = ["series", "start", "length", "requests", *(f"p{name}{suffix}" for name in names)]
    flags = ["supported", "resolved"] if style == "csv" else []
    table = Table(style, out_unit, header=[*header, f"max{suffix}", *flags])
    for record in records:
        for row in record["intervals"]:
            cells = {name: _interval_row(row, name) for name in (*names, "max")}
            start, length, count = row["start"], row["length"], row["count"]
            table.add(
                {
                    "series": record["name"],
                    "start": table.either(start, f"{start:.3f}"),
                    "length": table.either(length, f"{length:.3f}"),
                    "requests": table.either(count, format_count(count)),
                    **{
                        f"{'' if name == 'max' else 'p'}{name}{suffix}": table.percentile(
                            cell, record["unit"]
                        )
                        for name, cell in cells.items()
                    },
                    **table.flags(
                        cells[name] for name in names if cells[name]["value"] is not None
                    ),
                }
            )
    return table.render(legend=True)


def _interval_row(row: dict[str, Any], name: str) -> dict[str, Any]:
    """A percentile, or the maximum, of an interval as a row of percentiles has it."""
    value = row["max"] if name == "max" else row["percentiles"].get(name)
    ends = row["ranges"].get(name)
    percentile = 100.0 if name == "max" else float(name)
    return {
        "percentile": percentile,
        "value": value,
        "bucket_low": ends["low"] if ends else value,
        "bucket_high": ends["high"] if ends else value,
        "resolved": ends is None,
        "supported": name == "max" or percentile <= row["supported_up_to"],
    }


# ------------------------------------------------------------
# Comparisons.

_BY_SEVERITY = ("mixed", "worse", "inconclusive", "better", "same")
_CLOSE = 0.02
"""Bounds of a probability that are farther apart are both shown."""


def comparisons_record(
    comparisons: Mapping[str, Comparison], failed: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """Return the comparison of one series, or of several: the first one, and a list of all."""
    records = {
        name: comparison_record(comparison, failed[name])
        for name, comparison in comparisons.items()
    }
    first = {"schema_version": 1, **next(iter(records.values()))}
    if len(records) == 1:
        return first
    verdicts = {comparison.verdict for comparison in comparisons.values()}
    if {"better", "worse"} <= verdicts:
        verdicts.add("mixed")
    return first | {
        "verdict": next(verdict for verdict in _BY_SEVERITY if verdict in verdicts),
        "failed": [f"{name}: {text}" for name, texts in failed.items() for text in texts],
        "series": [{"name": name, **record} for name, record in records.items()],
    }


def comparison_record(comparison: Comparison, failed: Sequence[str] = ()) -> dict[str, Any]:
    """Return a comparison as plain values; changes are relative (0.05 is +5 %)."""
    rows = [
        {
            "statistic": row.statistic,
            "percentile": row.percentile,
            **numbers_of(row, "base", "new", "change"),
            "low": number(row.low) if row.low > -1 else None,
            **numbers_of(row, "high", "difference", "difference_low", "difference_high", "p_value"),
            **numbers_of(row, "base_low", "base_high", "new_low", "new_high"),
            "resolved": row.resolved,
            "significant": row.significant,
            "note": row.note,
        }
        for row in comparison.changes
    ]
    return {
        "basis": comparison.basis,
        "verdict": comparison.verdict,
        "unit": comparison.unit,
        "runs": list(comparison.runs),
        "rows": [row for row in rows if row["percentile"] is not None],
        "means": [row for row in rows if row["percentile"] is None],
        "faster": number(comparison.faster),
        "faster_between": [number(end) for end in comparison.faster_between],
        "failed": list(failed),
        "reasons": list(comparison.reasons),
        "warnings": list(comparison.warnings),
    }


def comparisons_text(
    comparisons: Mapping[str, Comparison], style: str = "table", out_unit: str | None = None
) -> str:
    """Return one row per statistic, series by series; CSV of several names them in a column."""
    from latencykit.analysis.compare import significance  # not needed by other texts

    several = len(comparisons) > 1
    if style == "csv":
        table = Table(style)
        for name, comparison in comparisons.items():
            for row in comparison.changes:
                unit = None if row.statistic == "slow share" else out_unit
                low = row.low if row.low > -1 else None
                table.add(
                    {
                        **({"series": name} if several else {}),
                        "statistic": row.statistic,
                        "base": shown(row.base, comparison.unit, "csv", unit),
                        "new": shown(row.new, comparison.unit, "csv", unit),
                        "change": number(row.change),
                        "low": number(low),
                        "high": number(row.high),
                        "significant": row.significant,
                        "resolved": row.resolved,
                    }
                )
        return table.render()
    texts = []
    for name, comparison in comparisons.items():
        table = Table(style)
        show = partial(shown, unit=comparison.unit, style="table", out_unit=out_unit)
        for row in comparison.changes:
            base, new = side_texts(row, show)
            table.add(
                {
                    "statistic": "max" if row.percentile == 100 else row.statistic,
                    "base": base,
                    "new": new,
                    "change": format_change(row.change),
                    "low": format_change(row.low) if row.low > -1 else "",
                    "high": format_change(row.high) if math.isfinite(row.high) else "",
                    "significant": significance(row),
                }
            )
        title = [f"{'### ' if style == 'markdown' else ''}{printable(name)}"] if several else []
        texts.append("\n".join([*title, table.render(), "", *_conclusion(comparison)]))
    return "\n\n".join(texts)


def side_texts(row: Change, show: Callable[[float], str]) -> list[str]:
    """Return the base and the new value: a range where the source does not resolve it."""
    if row.statistic == "slow share":
        return [percent(row.base), percent(row.new)]
    sides = ((row.base, row.base_low, row.base_high), (row.new, row.new_low, row.new_high))
    return [
        show(value) if math.isnan(low) or is_resolved(low, high) else format_range(low, high, show)
        for value, low, high in sides
    ]


def _conclusion(comparison: Comparison) -> list[str]:
    verdict = {
        "same": "the same: every change lies within the margin, with confidence",
        "mixed": "mixed: some statistics are better, others worse",
    }.get(comparison.verdict, comparison.verdict)
    runs = "one run per side"
    if comparison.basis == "runs":
        runs = f"{comparison.runs[0]} runs against {comparison.runs[1]}"
    return [f"verdict: {verdict} ({runs})", *comparison_reasons(comparison)]


def comparison_reasons(comparison: Comparison, base: str = "base", new: str = "new") -> list[str]:
    """Return P(new < base), where it is known, and the reasons for the verdict."""
    if not math.isfinite(comparison.faster):
        return list(comparison.reasons)
    low, high = comparison.faster_between
    share = f"{100 * comparison.faster:.3g}"
    if high - low > _CLOSE:
        share = f"{100 * low:.3g}–{100 * high:.3g}"
    return [f"P({new} < {base}) = {share} %", *comparison.reasons]


# ------------------------------------------------------------
# Diagnoses.

_SHOWN_STALLS = 10


def diagnosis_record(name: str, diagnosis: Diagnosis) -> dict[str, Any]:
    """Return a diagnosis as plain values: times in seconds from the start, latencies in ns."""
    stalls = diagnosis.detected_stalls
    columns = (stalls.start, stalls.end, stalls.duration, stalls.worst, stalls.missing)
    return {
        "name": name,
        "count": diagnosis.raw.count,
        "unit_from": diagnosis.run.unit_from,
        "verdict": diagnosis.verdict,
        "summary": diagnosis.summary,
        "advice": diagnosis.advice,
        "findings": list(diagnosis.findings),
        "evidence": [
            {
                "test": piece.test,
                **numbers_of(piece, "statistic", "threshold"),
                "finding": piece.finding,
            }
            for piece in diagnosis.evidence
        ],
        "expected_interval": number(diagnosis.expected_interval),
        "stalls": [
            {
                "start": number(start),
                "end": number(end),
                "duration": number(duration),
                "worst": number(round(worst)),
                "missing": missing,
            }
            for start, end, duration, worst, missing in zip(
                *(column.tolist() for column in columns), strict=True
            )
        ],
        "raw": {format_percentile(p): number(value) for p, value, _ in diagnosis.table},
        "raw_ranges": _ranges(diagnosis.raw, diagnosis),
        "corrected_ranges": _ranges(diagnosis.corrected, diagnosis),
        "corrected": {
            format_percentile(p): number(value)
            for p, _, value in diagnosis.table
            if value is not None
        },
        "method": diagnosis.method,
        "notes": [*stalls.notes, *filter(None, [diagnosis.run.unit_note])],
    }


def _ranges(data: Any, diagnosis: Diagnosis) -> dict[str, dict[str, Any]]:
    """Bounds of the percentiles that the source does not resolve."""
    if not isinstance(data, Histogram) or not data.count:
        return {}
    rows = data.evidence().supported_rows([p for p, _, _ in diagnosis.table])
    return {
        format_percentile(row.percentile): {
            "low": number(row.bucket_low),
            "high": number(row.bucket_high),
        }
        for row in rows
        if not row.resolved
    }


def diagnosis_text(
    records: Sequence[dict[str, Any]], style: str, out_unit: str | None = None
) -> str:
    """Return a paragraph per diagnosis, or a row each as CSV or Markdown."""
    if style == "table":
        return "\n\n".join(_paragraph(record, out_unit) for record in records)
    table = Table(style)
    for record in records:
        table.add(
            {
                "series": record["name"],
                "requests": format_count(record["count"] or 0),
                "verdict": record["verdict"],
                "why": record["summary"],
                "findings": " ".join(record["findings"]),
                "expected interval": _duration(record["expected_interval"]),
                "stalls": str(len(record["stalls"])),
                "method": record["method"] or "",
            }
        )
    return table.render(left=8)


def _paragraph(record: dict[str, Any], out_unit: str | None) -> str:
    lines = [record["summary"]]
    if record["findings"]:
        lines.append(f"also: {', '.join(record['findings'])}")
    lines += [f"{piece['test']}: {piece['finding']}" for piece in record["evidence"]]
    lines += record["notes"]
    stalls = record["stalls"]
    for stall in stalls[:_SHOWN_STALLS]:
        lines.append(
            f"stall from {stall['start']:.3f} s to {stall['end']:.3f} s, "
            f"worst {_duration(stall['worst'])}, "
            f"{format_count(stall['missing'])} requests not sent meanwhile"
        )
    if len(stalls) > _SHOWN_STALLS:
        lines.append(f"and {format_count(len(stalls) - _SHOWN_STALLS)} more stalls")
    if record["expected_interval"]:
        lines.append(f"expected interval {_duration(record['expected_interval'])}")
    kinds = {"raw": "as measured"}
    how = {"retime": "by the schedule", "backfill": "back-filled"}.get(record["method"])
    if record["corrected"] and how:
        kinds["corrected"] = how
    show = partial(shown, unit="ns", style="table", out_unit=out_unit)
    rows = []
    for name in record["raw"]:
        cells = [percentile_name(float(name))]
        for kind in kinds:
            ends = record[f"{kind}_ranges"].get(name)
            cells.append(
                show(record[kind].get(name))
                if ends is None
                else format_range(ends["low"], ends["high"], show)
            )
        rows.append(cells)
    if rows:
        lines += text_table(["", *kinds.values()], rows).splitlines()
    if record["advice"]:
        lines.append(record["advice"])
    heading = f"{printable(record['name'])}: {record['verdict']}"
    return "\n".join([heading, *(f"  {line}" for line in lines)])


def _duration(value: float | None) -> str:
    return "" if value is None else format_duration(float(value))


# ------------------------------------------------------------
# Fan-out.

_SAME_SHARE = 5e-4
"""Shares that differ by less are one, in a table."""


def fan_out_record(
    name: str,
    answers: Sequence[FanOut],
    bounds: Sequence[FanOut] | None,
    percentiles: Sequence[float],
) -> dict[str, Any]:
    """Return one series as plain values; `bounds` are the same for independent calls."""
    rows = [_fan_out_row(answer, percentiles) for answer in answers]
    for row, bound in zip(rows, bounds or (), strict=False):
        independent = _fan_out_row(bound, percentiles)
        row["independent"] = {
            key: independent[key] for key in ("percentiles", "share_above", "share_between")
        }
    return {"name": name, "unit": answers[0].distribution.unit, "rows": rows}


def _fan_out_row(answer: FanOut, percentiles: Sequence[float]) -> dict[str, Any]:
    above: dict[str, float | None] = {}
    between: dict[str, list[float]] = {}
    for p, share in answer.above.items():
        low, high = answer.above_between.get(p, (share, share))
        known = p not in answer.above_between or is_resolved(low, high) or high - low < _SAME_SHARE
        above[format_percentile(p)] = share if known else None
        between[format_percentile(p)] = [low, high]
    return {
        "n": answer.n,
        "model": answer.model,
        "percentiles": [
            {
                "percentile": row.percentile,
                **numbers_of(row, "value", "bucket_low", "bucket_high"),
                "resolved": row.resolved,
                "supported": row.supported,
                "at_least": math.isinf(row.bucket_high),
            }
            for row in answer.rows(percentiles)
        ],
        "share_above": above,
        "share_between": between,
        "quorum": answer.quorum,
        "sequential": answer.sequential,
        "added_load": answer.added_load,
        "interval": number(answer.interval),
        "note": answer.note,
    }


def fan_out_text(
    records: Sequence[dict[str, Any]], style: str = "table", out_unit: str | None = None
) -> str:
    """Return one row per number of calls, and another one if the calls were independent."""
    table = Table(style, out_unit)
    for record in records:
        for row in record["rows"]:
            models = {row["model"]: row}
            if "independent" in row and row["n"] > 1:
                models["if independent"] = row["independent"]
            calls = f"{format_count(row['n'])}{' in a row' if row['sequential'] else ''}"
            if row["quorum"] is not None:
                calls = f"{row['quorum']:,} of {calls}"
            for model, values in models.items():
                share, between = (values[key].get("99") for key in ("share_above", "share_between"))
                text = ""
                if between is not None:
                    low, high = between
                    text = f"{100 * low:.3g}–{percent(high)}" if share is None else percent(share)
                table.add(
                    {
                        "series": record["name"],
                        "calls": table.either(row["n"], calls),
                        "model": model,
                        **{
                            f"p{format_percentile(cell['percentile'])}": table.percentile(
                                cell, record["unit"]
                            )
                            for cell in values["percentiles"]
                        },
                        "worse than p99 of one": table.either(share, text),
                        **table.flags(values["percentiles"]),
                    }
                )
    return table.render(legend=True)


def fan_out_words(name: str, answers: Sequence[FanOut]) -> list[str]:
    """Return what the numbers are based on, one sentence per point."""
    from latencykit.analysis.fan_out import samples_needed

    largest = max(answers, key=lambda answer: answer.n)
    lines = [
        f"{name}, {format_count(answer.n)} calls: {answer.note}"
        for answer in answers
        if answer.note
    ]
    solid = largest.solid_up_to()
    if largest.n > 1 and solid < min(largest.leaf_percentile(50), largest.leaf.sample_limit()):
        upto = f"above p{format_percentile(sure_percentile(solid))}" if solid else "throughout"
        lines.append(
            f"{name}: too few independent events bound the latency of one call {upto}; another run "
            "may show other percentiles to users"
        )
    if largest.added_load:
        lines.append(f"{name}: the hedge sends {100 * largest.added_load:,.3g} % more calls")
    if largest.n == 1 or largest.sequential:
        return lines
    percentile = largest.leaf_percentile(99)
    needed = samples_needed(percentile)
    count = largest.leaf.count + largest.leaf.censored
    enough = ""
    if count < needed:
        enough = f"; that takes {format_count(needed)} calls, and there are {format_count(count)}"
    calls = format_count(largest.n)
    if largest.quorum is not None:
        calls = f"{largest.quorum:,} of {largest.n:,}"
    lines.append(
        f"{name}: of {calls} independent calls, the user's p99 is the p{percentile:.7g} of one"
        f"{enough}"
    )
    return lines


# ------------------------------------------------------------
# Load curves.


def load_record(
    curve: LoadCurve,
    percentiles: Sequence[float],
    confidence: float = 0.95,
    machines: Machines | None = None,
) -> dict[str, Any]:
    """Return a load curve as plain values; rates are requests per second."""
    capacity = curve.capacity
    scalability: dict[str, Any] | None
    try:
        law = curve.scalability()
        scalability = {
            "rate": law.rate,
            "contention": law.contention,
            "coherence": law.coherence,
            "errors": law.errors.tolist(),
            "peak": number(law.peak),
            "highest": law.highest,
        }
    except InvalidArgumentError:  # fewer than six numbers of connections do not determine the law
        scalability = None
    return {
        "schema_version": 1,
        "rows": [
            {
                "series": row.name,
                **numbers_of(row, "rate", "offered", "achieved", "achieved_low", "achieved_high"),
                "saturated": row.saturated,
                "verdict": None if curve.slo is None else curve.verdict(row.name)[0],
                "unit": row.data.unit,
                "count": row.data.count,
                "unit_from": row.data.run.unit_from,
                "notes": list(row.data.run.notes),
                "percentiles": _load_percentiles(row, percentiles, confidence),
            }
            for row in curve.rows
        ],
        "capacity": None
        if capacity is None
        else {
            **numbers_of(capacity, "rate", "low", "high"),
            "limited_by": curve.limited_by,
            "reason": capacity.reason,
        },
        "machines": None if machines is None else vars(machines),
        "scalability": scalability,
    }


def _load_percentiles(
    row: LoadRow, percentiles: Sequence[float], confidence: float
) -> list[dict[str, Any]]:
    if not isinstance(row.data, Summary):
        return [percentile_row(result) for result in row.percentile_rows(percentiles, confidence)]
    reported, count = row.data.reported_percentiles, row.data.count
    limit = None if count is None else highest_supported_percentile(count, confidence)
    return [
        exact_row(p, reported[p], None if limit is None else p <= limit)
        for p in percentiles
        if p in reported
    ]


def load_text(record: dict[str, Any], style: str = "table", out_unit: str | None = None) -> str:
    """Return one row per run, by load."""
    percentiles = sorted(
        {cell["percentile"] for row in record["rows"] for cell in row["percentiles"]}
    )
    table = Table(style, out_unit)
    for row in record["rows"]:
        cells = {cell["percentile"]: cell for cell in row["percentiles"]}
        table.add(
            {
                "series": row["series"],
                "offered": table.either(row["offered"], _rate(row["offered"])),
                "achieved": table.either(row["achieved"], _rate(row["achieved"])),
                **{
                    f"p{format_percentile(p)}": table.percentile(cells.get(p), row["unit"])
                    for p in percentiles
                },
                "saturated": table.either(row["saturated"], "yes" if row["saturated"] else ""),
                **table.flags(cells[p] for p in percentiles if p in cells),
            }
        )
    return table.render()


def _rate(rate: float | None) -> str:
    if rate is None or not math.isfinite(rate):
        return ""
    return f"{rate:,.0f}/s" if rate >= 100 else f"{rate:.3g}/s"


def load_words(curve: LoadCurve, machines: Machines | None = None) -> list[str]:
    """Return the findings: the largest load within the SLO, and what limits it."""
    from latencykit.analysis.capacity import overload_text

    lines = []
    capacity = curve.capacity
    if capacity is not None and curve.slo is not None:
        rate, low, high = (_rate(end) for end in (capacity.rate, capacity.low, capacity.high))
        largest = f"{curve.slo}: the largest load is about {rate}"
        if curve.passed is False and math.isnan(capacity.rate):
            lines.append(f"no load measured meets {curve.slo}: {capacity.reason}")
        elif math.isnan(capacity.rate):
            lines.append(f"no load measured surely meets {curve.slo}: {capacity.reason}")
        elif not capacity.low and math.isinf(capacity.high):
            lines.append(f"no load measured surely meets or misses {curve.slo}: {capacity.reason}")
        elif not capacity.low:
            lines.append(f"{largest}; {high} misses it; {capacity.reason}")
        elif math.isinf(capacity.high):
            lines.append(f"{curve.slo}: met up to {low}; {capacity.reason}")
        else:
            bracket = f"between {low} (met) and {high} (not met)"
            lines.append(f"{largest}, {bracket}; limited by {curve.limited_by}")
            lines += [capacity.reason] if capacity.reason else []
    saturated = [row for row in curve.rows if row.saturated]
    if saturated:
        lines.append(
            f"saturated from {_rate(saturated[0].offered)} offered: {overload_text(saturated[0])}"
        )
    if machines is not None:
        least, estimate, most = (
            "unknown" if end is None else str(end)
            for end in (machines.least, machines.estimate, machines.most)
        )
        lines.append(f"machines needed: {estimate} (at least {least}, at most {most})")
    return lines


def machines_for(curve: LoadCurve, offered: float, spare: int) -> Machines:
    """Return how many machines such as the one measured carry an offered load."""
    from latencykit.analysis.capacity import machines_needed

    if curve.capacity is None:
        raise InvalidArgumentError(
            "the number of machines depends on what one carries within its SLO; give the SLO, too"
        )
    return machines_needed(offered, curve.capacity, spare)


def sweep_record(sweep: Sweep, percentiles: Sequence[float]) -> dict[str, Any]:
    """Return a sweep as plain values: the keys of `load_record`, with the rows in their order."""
    known: dict[str, Any] = {"rows": [], "capacity": None}
    if sweep.curve is not None:
        known = load_record(sweep.curve, percentiles, sweep.confidence)
    rows = {row["series"]: row for row in known["rows"]}
    missing: dict[str, Any] = {
        "achieved": None, "achieved_low": None, "achieved_high": None, "saturated": False,
        "count": None, "percentiles": [],
    }  # fmt: skip
    return {
        "schema_version": 1,
        "passed": sweep.passed,
        "slo": str(sweep.slo),
        "capacity": known["capacity"],
        "stopped": sweep.stopped,
        "complete": sweep.complete,
        "hysteresis": list(sweep.hysteresis),
        "command": list(sweep.command),
        "folder": None if sweep.folder is None else str(sweep.folder),
        "notes": list(sweep.notes),
        "rows": [
            {
                "number": run.number,
                "series": run.name,
                "rate": run.rate,
                "duration": run.duration,
                "purpose": run.purpose,
                "verdict": run.verdict,
                "reason": run.reason,
                "hiccup": number(run.hiccup),
                "unit": "ns",
                **{key: rows.get(run.name, missing)[key] for key in missing},
            }
            for run in sweep.runs
        ],
    }


def sweep_text(record: dict[str, Any], style: str = "table") -> str:
    """Return one row per run, in their order."""
    percentiles = sorted(
        {cell["percentile"] for row in record["rows"] for cell in row["percentiles"]}
    )
    table = Table(style)
    for row in record["rows"]:
        cells = {cell["percentile"]: cell for cell in row["percentiles"]}
        table.add(
            {
                "run": row["number"] if style == "csv" else str(row["number"]),
                "offered": table.either(row["rate"], _rate(row["rate"])),
                "achieved": table.either(row["achieved"], _rate(row["achieved"])),
                "seconds": table.either(row["duration"], f"{row['duration']:g}"),
                **{
                    f"p{format_percentile(p)}": table.percentile(cells.get(p), row["unit"])
                    for p in percentiles
                },
                "purpose": row["purpose"],
                "verdict": "no verdict" if row["verdict"] == "void" else row["verdict"],
                **table.flags(cells[p] for p in percentiles if p in cells),
            }
        )
    return table.render()


def sweep_words(sweep: Sweep) -> list[str]:
    """Return the findings of a sweep: the bracket, why it ended, and what to know of it."""
    lines = []
    if sweep.curve is not None:
        lines += load_words(sweep.curve)
    else:
        lines.append(f"{sweep.slo}: no run has a verdict")
    for rate in sweep.hysteresis:
        lines.append(
            f"{_rate(rate)} met the SLO in one run and missed it in another: "
            "the load before matters (hysteresis), or the system varies"
        )
    runs = format_items(len(sweep.runs), "run")
    lines.append(f"{runs}; the search ended because {_because(sweep)}")
    return [*lines, *sweep.notes]


def _because(sweep: Sweep) -> str:
    return "it was interrupted" if sweep.stopped == "interrupted" else sweep.stopped


# ------------------------------------------------------------
# Checked limits.


def check_record(checked: Mapping[str, Sequence[SLORow]], passed: bool | None) -> dict[str, Any]:
    """Return checked limits as plain values: ns, and shares (0..1) for failed and joint."""
    rows = []
    for name, results in checked.items():
        for row in results:
            factor = 1.0 if row.is_share else NANOSECONDS.get(row.unit, 1.0)
            rows.append(
                {
                    "series": name,
                    "statistic": row.statistic,
                    **{
                        key: number(getattr(row, key) * factor)
                        for key in ("limit", "value", "low", "high", "bucket_low", "bucket_high")
                    },
                    "resolved": row.resolved,
                    "outcome": row.outcome,
                    **numbers_of(row, "margin", "margin_low", "margin_high"),
                    "reason": row.reason,
                }
            )
    return {"schema_version": 1, "passed": passed, "rows": rows}


def check_text(
    checked: Mapping[str, Sequence[SLORow]], style: str = "table", out_unit: str | None = None
) -> str:
    """Return one row per limit, and below the reasons for results other than met."""
    table = Table(style, out_unit)
    reasons = []
    for name, results in checked.items():
        for row in results:
            if style == "csv":
                unit = "none" if row.is_share else row.unit
                ends = (row.limit, row.value, row.low, row.high)
                limit, value, low, high = (
                    table.value(end, unit) if math.isfinite(end) else None for end in ends
                )
            else:
                limit, value, low, high = slo_texts(row, out_unit)
            margin = percent(row.margin) if math.isfinite(row.margin) else ""
            if -math.inf < row.margin < -9:
                margin = f"{1 - row.margin:,.0f} × limit"
            table.add(
                {
                    "series": name,
                    "statistic": row.statistic,
                    "limit": limit,
                    "value": value,
                    "low": low,
                    "high": high,
                    "margin": table.either(number(row.margin), margin),
                    "outcome": row.outcome,
                    **({"resolved": row.resolved} if style == "csv" else {}),
                }
            )
            if row.reason:
                reasons.append(f"{printable(name)} {row.statistic}: {row.reason}")
    text = table.render(left=2)
    return text if style == "csv" or not reasons else "\n".join([text, "", *reasons])


def slo_texts(row: SLORow, out_unit: str | None = None) -> list[str]:
    """Return the limit, the value and the ends of its interval."""
    values = (row.limit, row.value, row.low, row.high)
    if row.is_share:
        return ["" if math.isnan(value) else percent(value) for value in values]
    show = partial(shown, unit=row.unit, style="table", out_unit=out_unit)
    texts = [str(show(value)) if math.isfinite(value) else "" for value in values]
    if not row.resolved:
        texts[1] = format_range(row.bucket_low, row.bucket_high, show)
    return texts


def junit_xml(checked: Mapping[str, Sequence[SLORow]], *, strict: bool = False) -> str:
    """Return the outcomes as JUnit XML: missed is a failure, unknown is skipped.

    With `strict`, unknown is a failure, too.
    """
    from xml.etree import ElementTree as ET

    outcomes = [row.outcome for results in checked.values() for row in results]
    unknown = outcomes.count("unknown")
    counts = {
        "tests": str(len(outcomes)),
        "failures": str(outcomes.count("missed") + (unknown if strict else 0)),
        "errors": "0",
        "skipped": "0" if strict else str(unknown),
    }
    root = ET.Element("testsuites", counts)
    suite = ET.SubElement(root, "testsuite", {"name": "latencykit check", **counts})
    for name, results in checked.items():
        for row in results:
            limit, value, _, _ = slo_texts(row)
            relation = "at least" if row.statistic == "joint" else "within"
            attributes = {
                "classname": printable(name, 200),
                "name": f"{row.statistic} {relation} {limit}",
                "time": "0",
            }
            case = ET.SubElement(suite, "testcase", attributes)
            reason = f": {row.reason}" if row.reason else ""
            message = printable(
                f"{row.statistic} is {value or 'unknown'}, limit {limit}{reason}", 500
            )
            if row.outcome == "missed" or (strict and row.outcome == "unknown"):
                ET.SubElement(case, "failure", {"message": message, "type": row.outcome})
            elif row.outcome == "unknown":
                ET.SubElement(case, "skipped", {"message": message})
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, "unicode") + "\n"
