"""Fan-out as a dictionary, as text, and in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latencykit.report.record import number
from latencykit.report.tables import styled
from latencykit.report.values import shown
from latencykit.stats.fanout import samples_needed
from latencykit.units import format_count, format_percentile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from latencykit.fanning import FanOut

__all__ = ["fan_out_record", "fan_out_text", "fan_out_words"]


def fan_out_record(
    name: str, found: Sequence[FanOut], bounds: Sequence[FanOut] | None, percentiles: Sequence[float]
) -> dict[str, Any]:
    """Return one series as a dictionary of plain values; `bounds` are the same for independent calls."""
    rows = [_row(one, percentiles) for one in found]
    for row, bound in zip(rows, bounds or (), strict=False):
        other = _row(bound, percentiles)
        row["independent"] = {key: other[key] for key in ("percentiles", "share_above")}
    return {"name": name, "unit": found[0].distribution.unit, "rows": rows}


def _row(one: FanOut, percentiles: Sequence[float]) -> dict[str, Any]:
    model = one.distribution
    return {
        "n": one.n,
        "model": one.model,
        "percentiles": [
            {
                "percentile": p,
                "value": number(float(model.percentile(p))),
                "supported": one.supported(p),
                "at_least": bool(model.at_least(p)),
            }
            for p in percentiles
        ],
        "share_above": {format_percentile(p): share for p, share in one.above.items()},
        "quorum": one.quorum,
        "in_series": one.in_series,
        "added_load": one.added_load,
        "interval": number(one.interval),
        "note": one.note,
    }


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
                share = values["share_above"].get("99")
                cells = [_cell(cell, record["unit"], out_unit) for cell in values["percentiles"]]
                texts.append([*start, *cells, f"{100 * share:.3g} %" if share is not None else ""])
                bare = [shown(cell["value"], record["unit"], "csv", out_unit) for cell in values["percentiles"]]
                plain.append([record["name"], row["n"], model, *bare, share])
    return styled(style, header, texts, plain)


def _calls(row: dict[str, Any]) -> str:
    text = format_count(row["n"]) + (" in a row" if row["in_series"] else "")
    return text if row["quorum"] is None else f"{row['quorum']:,} of {text}"


def _cell(cell: dict[str, Any], unit: str, out_unit: str | None) -> str:
    text = ("≥ " if cell["at_least"] else "") + str(shown(cell["value"], unit, "table", out_unit))
    return text if cell["supported"] else f"({text})"


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
