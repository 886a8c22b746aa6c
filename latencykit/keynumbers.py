"""The handful of numbers that stand beside a curve, in charts, reports and notebooks alike."""

from __future__ import annotations

from typing import Any

from latencykit.distribution import Distribution
from latencykit.summary import Summary
from latencykit.units import format_count, format_percentile, format_value, sure_percentile

__all__ = ["key_numbers"]


def key_numbers(rung: Any) -> list[tuple[str, str]]:
    """Return the numbers that stand beside the curve, as text; brackets mark what the sample does not support.

    Examples
    --------
    >>> from latencykit.histogram import Histogram
    >>> key_numbers(Histogram.of([1_000_000]))[:2]
    [('requests', '1'), ('p50', '(1 ms)')]
    """
    if isinstance(rung, Summary):
        named = [*rung.stats.items(), *((f"p{format_percentile(p)}", v) for p, v in rung.percentiles.items())]
        count = [("requests", format_count(rung.count))] if rung.count is not None else []
        return count + [(name, format_value(value, rung.unit)) for name, value in named]
    wanted = (50.0, 90.0, 99.0, 99.9, 99.99)
    if isinstance(rung, Distribution):
        return [(f"p{format_percentile(p)}", format_value(float(rung.percentile(p)), rung.unit)) for p in wanted]
    rows = [("requests", format_count(rung.requests))]
    if rung.run.failed or rung.run.timeouts:
        rows += [("failed", format_count(rung.run.failed)), ("timed out", format_count(rung.run.timeouts))]
    if not rung.count:
        return rows
    for row in rung.percentile_rows(wanted):
        value = format_value(row.value, rung.unit)
        rows.append((f"p{format_percentile(row.percentile)}", value if row.supported else f"({value})"))
    rows += [
        ("max", f"{'≥ ' if rung.requests > rung.count else ''}{format_value(rung.max, rung.unit)}"),
        ("mean", format_value(rung.mean, rung.unit)),
    ]
    limit = rung.highest_supported_percentile()
    return [*rows, ("trust up to", f"p{format_percentile(sure_percentile(limit))}")]
