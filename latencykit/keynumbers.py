"""The handful of numbers that stand beside a curve, in charts, reports and notebooks alike."""

from __future__ import annotations

from typing import Any

from latencykit.distribution import Distribution
from latencykit.stats.percentiles import is_resolved
from latencykit.summary import Summary
from latencykit.units import format_count, format_percentile, format_range, format_row, format_value, sure_percentile

__all__ = ["key_numbers", "statistic_text"]


def key_numbers(rung: Any) -> list[tuple[str, str]]:
    """Return the numbers that stand beside the curve, as text: ranges where the source says no more than that.

    Brackets mark what the sample does not support.

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

    def show(value: float) -> str:
        return format_value(value, rung.unit)

    rows += [(f"p{format_percentile(row.percentile)}", format_row(row, show)) for row in rung.percentile_rows(wanted)]
    rows += [(name, statistic_text(rung, name)) for name in ("max", "mean")]
    limit = rung.highest_supported_percentile()
    return [*rows, ("supported to", f"p{format_percentile(sure_percentile(limit))}")] if limit else rows


def statistic_text(histogram: Any, name: str) -> str:
    """Return ``min``, ``max``, ``mean`` or ``std`` as people see it: a range where the source does not pin it down.

    Examples
    --------
    >>> from latencykit.histogram import Histogram
    >>> statistic_text(Histogram.from_percentiles([50, 99], [1e6, 4e6], 1000, told={"max": 5e6}), "mean")
    '530 µs–2.51 ms'
    """

    def show(value: float) -> str:
        return format_value(value, histogram.unit)

    low, high = histogram.bracket(name)
    if name == "max" and histogram.requests > histogram.count:
        return f"≥ {show(histogram.max)}"
    return show(getattr(histogram, name)) if is_resolved(low, high) else format_range(low, high, show)
