"""Load curves as dictionaries, as text, and in words."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

from latencykit.errors import UsageError
from latencykit.report.record import number
from latencykit.report.tables import styled
from latencykit.report.values import shown
from latencykit.stats.load import machines_needed
from latencykit.stats.quantiles import highest_supported_percentile
from latencykit.summary import Summary
from latencykit.units import format_percentile, format_row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from latencykit.loading import LoadCurve, LoadRow
    from latencykit.stats.load import Machines

_FIELDS = ("value", "low", "high", "bucket_low", "bucket_high")
_FLAGS = ("supported", "resolved")

__all__ = ["load_record", "load_text", "load_words"]


def load_record(
    curve: LoadCurve, percentiles: Sequence[float], confidence: float = 0.95, machines: Machines | None = None
) -> dict[str, Any]:
    """Return a load curve as plain values; rates are requests per second."""
    found = curve.capacity
    bracket = None
    if found is not None:
        ends = {name: number(getattr(found, name)) for name in ("rate", "low", "high")}
        bracket = {**ends, "limited_by": curve.limited_by, "reason": found.reason}
    return {
        "schema_version": 1,
        "rows": [_record(row, percentiles, confidence) for row in curve.rows],
        "capacity": bracket,
        "machines": None if machines is None else vars(machines),
        "scalability": _scalability(curve),
    }


def _record(row: LoadRow, percentiles: Sequence[float], confidence: float) -> dict[str, Any]:
    rates = {name: number(getattr(row, name)) for name in ("rate", "offered", "achieved")}
    facts: dict[str, Any] = {
        "series": row.name,
        **rates,
        "saturated": row.saturated,
        "unit": row.rung.unit,
        "count": row.rung.count,
    }
    facts |= {"unit_from": row.rung.run.unit_from, "notes": list(row.rung.run.notes)}
    return facts | {"percentiles": _percentiles(row, percentiles, confidence)}


def _percentiles(row: LoadRow, percentiles: Sequence[float], confidence: float) -> list[dict[str, Any]]:
    if isinstance(row.rung, Summary):
        held = [(p, row.rung.percentiles[p]) for p in percentiles if p in row.rung.percentiles]
        count = row.rung.count
        limit = None if count is None else highest_supported_percentile(count, confidence)
        exact = dict.fromkeys(("low", "high"))
        return [
            {"percentile": p, "value": number(v), **exact, "bucket_low": number(v), "bucket_high": number(v), "resolved": True}
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
    except UsageError:  # fewer than six numbers of connections: there is no law to speak of
        return None
    values = {name: getattr(law, name) for name in ("rate", "contention", "coherence")}
    return {**values, "errors": law.errors.tolist(), "peak": number(law.peak), "highest": law.highest}


def load_text(record: dict[str, Any], style: str = "table", out_unit: str | None = None) -> str:
    """Return one row a run, by load."""
    wanted = sorted({cell["percentile"] for row in record["rows"] for cell in row["percentiles"]})
    header = ["series", "offered", "achieved", *(f"p{format_percentile(p)}" for p in wanted), "saturated"]
    texts: list[list[object]] = []
    plain: list[list[object]] = []
    for row in record["rows"]:
        held = {cell["percentile"]: cell for cell in row["percentiles"]}
        values = [held[p]["value"] if p in held else None for p in wanted]
        show = partial(shown, unit=row["unit"], style="table", out_unit=out_unit)
        cells = [format_row(held[p], show) if p in held else "" for p in wanted]
        rates = [row["offered"], row["achieved"]]
        texts.append([row["series"], *(_rate(rate) for rate in rates), *cells, "yes" if row["saturated"] else ""])
        bare = [shown(value, row["unit"], "csv", out_unit) for value in values]
        flags = [" ".join(f"p{format_percentile(p)}" for p in wanted if p in held and held[p][flag]) for flag in _FLAGS]
        plain.append([row["series"], *rates, *bare, row["saturated"], *flags])
    return styled(style, [*header, *_FLAGS] if style == "csv" else header, texts, plain)


def _rate(rate: float | None) -> str:
    return "" if rate is None or not math.isfinite(rate) else f"{rate:,.0f}/s" if rate >= 100 else f"{rate:.3g}/s"


def load_words(curve: LoadCurve, machines: Machines | None = None) -> list[str]:
    """Return the finding: the largest load within the SLO, and what it rests on."""
    said = []
    found = curve.capacity
    if found is not None and curve.slo is not None:
        bracket = f"between {_rate(found.low)} (met) and {_rate(found.high)} (not)"
        if math.isnan(found.rate):
            said.append(f"no load measured meets {curve.slo}: {found.reason}")
        elif not found.low:
            end = "" if math.isinf(found.high) else f"; {_rate(found.high)} misses it"
            said.append(f"{curve.slo}: the largest load is about {_rate(found.rate)}{end}; {found.reason}")
        elif math.isinf(found.high):
            said.append(f"{curve.slo}: met up to {_rate(found.low)}; {found.reason}")
        else:
            said.append(f"{curve.slo}: the largest load is about {_rate(found.rate)}, {bracket}; {curve.limited_by} limits it")
            said += [found.reason] if found.reason else []
    lost = [row for row in curve.rows if row.saturated]
    if lost:
        said.append(f"from {_rate(lost[0].offered)} offered on, less was achieved ({_rate(lost[0].achieved)}): saturated")
    if machines is not None:
        ends = [str(end) if end is not None else "unknown" for end in (machines.least, machines.estimate, machines.most)]
        said.append(f"machines needed: {ends[1]} (at least {ends[0]}, at most {ends[2]})")
    return said


def machines_for(curve: LoadCurve, offered: float, spare: int) -> Machines:
    """Return how many machines such as the one measured carry an offered load."""
    if curve.capacity is None:
        raise UsageError("how many machines are needed depends on what one carries within its SLO; give the SLO, too")
    return machines_needed(offered, curve.capacity, spare)
