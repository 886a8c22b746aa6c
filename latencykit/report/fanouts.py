"""Fan-out as a dictionary, as text, and in words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from latencykit.report.record import number
from latencykit.report.summaries import legend
from latencykit.report.tables import styled
from latencykit.report.values import shown
from latencykit.stats.fanout import samples_needed
from latencykit.stats.percentiles import is_resolved
from latencykit.units import format_count, format_percentile, format_row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from latencykit.fanning import FanOut

_CLOSE = 5e-4
"""Shares that differ by less are one, in a table."""

__all__ = ["fan_out_record", "fan_out_text", "fan_out_words"]


def fan_out_record(
    name: str, found: Sequence[FanOut], bounds: Sequence[FanOut] | None, percentiles: Sequence[float]
) -> dict[str, Any]:
    """Return one series as a dictionary of plain values; `bounds` are the same for independent calls."""
    rows = [_row(one, percentiles) for one in found]
    for row, bound in zip(rows, bounds or (), strict=False):
        other = _row(bound, percentiles)
        row["independent"] = {key: other[key] for key in ("percentiles", "share_above", "share_between")}
    return {"name": name, "unit": found[0].distribution.unit, "rows": rows}


def _row(one: FanOut, percentiles: Sequence[float]) -> dict[str, Any]:
    rows = [one.row(p) for p in percentiles]
    return {
        "n": one.n,
        "model": one.model,
        "percentiles": [
            {
                "percentile": row.percentile,
                **{key: number(getattr(row, key)) for key in ("value", "bucket_low", "bucket_high")},
                "resolved": row.resolved,
                "supported": row.supported,
                "at_least": math.isinf(row.bucket_high),
            }
            for row in rows
        ],
        "share_above": {format_percentile(p): share if _known(one, p) else None for p, share in one.above.items()},
        "share_between": {format_percentile(p): list(one.above_between.get(p, (share, share))) for p, share in one.above.items()},
        "quorum": one.quorum,
        "in_series": one.in_series,
        "added_load": one.added_load,
        "interval": number(one.interval),
        "note": one.note,
    }


def _known(one: FanOut, p: float) -> bool:
    """Whether the share of users who fare worse than a percentile of one call is known within a tenth."""
    low, high = one.above_between.get(p, (1.0, 1.0))
    return bool(is_resolved(low, high)) or high - low < _CLOSE


def fan_out_text(records: Sequence[dict[str, Any]], style: str = "table", out_unit: str | None = None) -> str:
    """Return one row a number of calls; in brackets what the sample of single calls does not support."""
    wanted = [row["percentile"] for row in records[0]["rows"][0]["percentiles"]]
    header = ["series", "calls", "model", *(f"p{format_percentile(p)}" for p in wanted), "worse than p99 of one"]
    texts: list[list[object]] = []
    plain: list[list[object]] = []
    for record in records:
        for row in record["rows"]:
            models = [(row["model"], row)] + (
                [("if independent", row["independent"])] if "independent" in row and row["n"] > 1 else []
            )
            for model, values in models:
                start = [record["name"], _calls(row), model]
                share, between = values["share_above"].get("99"), values["share_between"].get("99")
                cells = [_cell(cell, record["unit"], out_unit) for cell in values["percentiles"]]
                texts.append([*start, *cells, _share(share, between)])
                bare = [shown(cell["value"], record["unit"], "csv", out_unit) for cell in values["percentiles"]]
                flags = [
                    " ".join(f"p{format_percentile(cell['percentile'])}" for cell in values["percentiles"] if cell[flag])
                    for flag in ("supported", "resolved")
                ]
                plain.append([record["name"], row["n"], model, *bare, share, *flags])
    if style == "csv":
        return styled(style, [*header, "supported", "resolved"], texts, plain)
    text = styled(style, header, texts, plain)
    return text if style == "markdown" else "\n".join([text, *legend(cell for row in texts for cell in row)])


def _share(share: float | None, between: list[float] | None) -> str:
    if between is None:
        return ""
    return f"{100 * share:.3g} %" if share is not None else f"{100 * between[0]:.3g}–{100 * between[1]:.3g} %"


def _calls(row: dict[str, Any]) -> str:
    text = format_count(row["n"]) + (" in a row" if row["in_series"] else "")
    return text if row["quorum"] is None else f"{row['quorum']:,} of {text}"


def _cell(cell: dict[str, Any], unit: str, out_unit: str | None) -> str:
    return format_row(cell, lambda value: str(shown(value, unit, "table", out_unit)))


def fan_out_words(name: str, found: Sequence[FanOut], confidence: float = 0.95) -> list[str]:
    """Return what the numbers rest on, a sentence a point."""
    most = max(found, key=lambda one: one.n)
    said = [f"{name}, {format_count(one.n)} calls: {one.note}" for one in found if one.note]
    if most.added_load:
        said.append(f"{name}: the hedge sends {100 * most.added_load:,.3g} % more calls")
    if most.n == 1 or most.in_series:
        return said
    rests = most.leaf_percentile(99)
    needed = samples_needed(rests, confidence)
    held = most.leaf.count + most.leaf.censored
    enough = "" if held >= needed else f"; it takes {format_count(needed)} calls to know, and there are {format_count(held)}"
    of_them = f"{most.quorum:,} of {most.n:,}" if most.quorum is not None else format_count(most.n)
    digits = f"{rests:.7g}"
    said.append(f"{name}: of {of_them} independent calls, the user's p99 is the p{digits} of one{enough}")
    return said
