"""The key numbers shown beside a curve, in charts, reports and notebooks alike."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

from latencykit import units
from latencykit.core.percentile_rows import PercentileRow, bounds_at, statistic_text
from latencykit.core.quantiles import is_resolved
from latencykit.core.run import Run, failure_counts


def not_answered(run: Run) -> list[str]:
    """Return the numbers of requests that were not answered well, in words."""
    words = ("failed", "timed out", "dropped", "unfinished")
    numbers = zip(failure_counts(run).values(), words, strict=True)
    return [f"{units.format_count(number)} {word}" for number, word in numbers if number]


def key_statistics(data: Any) -> list[tuple[str, str]]:
    """Return the numbers shown beside the curve as text; a range where the source gives no more."""
    # Parentheses mark percentiles that the sample does not support.
    show = partial(units.format_value, unit=data.unit)

    def texts(rows: Iterable[PercentileRow], **known: object) -> list[tuple[str, str]]:
        return [
            (units.percentile_name(r.percentile), units.format_row(vars(r) | known, show))
            for r in rows
        ]

    if hasattr(data, "stats"):
        count, known = [("requests", units.format_count(data.count or 0))], dict[str, object]()
        if data.count is None:
            count, known = [], {"supported": None}
        named = [(name, show(value)) for name, value in data.stats.items()]
        return list(dict([*count, *texts(data.reported_rows(), **known), *named]).items())
    usual = (50.0, 90.0, 99.0, 99.9, 99.99)
    if not hasattr(data, "count"):
        return [(f"p{units.format_percentile(p)}", show(float(data.percentile(p)))) for p in usual]
    rows = [("requests", units.format_count(data.requests))]
    if data.run.failed or data.run.timeouts:
        rows += [
            ("failed", units.format_count(data.run.failed)),
            ("timed out", units.format_count(data.run.timeouts)),
        ]
    if not data.count:
        return rows
    rows += texts(data.percentile_rows(usual))
    rows += [(name, statistic_text(data, name)) for name in ("max", "mean")]
    limit = units.sure_percentile(data.highest_supported_percentile())
    if limit > 0:
        rows.append(("supported to", f"p{units.format_percentile(limit)}"))
    return rows


def html_of(title: str, data: Any) -> str:
    """Return the HTML of a data type for notebooks: statistics and a small percentile curve."""
    from latencykit.core.repr_html import data_html  # a chart needs no HTML

    counted = data.histogram() if hasattr(data, "histogram") else data
    if counted.unit in units.NANOSECONDS:
        counted = counted.to_unit("ns")
    run = data.run
    corrected = {
        "tool": "corrected by the tool",
        "us": "corrected",
        "schedule": "from the schedule",
    }
    parts = [
        run.source,
        run.tool and f"{run.tool} {run.version or ''}".strip(),
        ", ".join(run.tags),
    ]
    source = " · ".join(part for part in [*parts, corrected.get(run.corrected)] if part)
    return data_html(
        title, source, key_statistics(counted), small_curve(counted), counted.run.notes
    )


def small_curve(counted: Any) -> str:
    """Return the percentile curve of a histogram or distribution as SVG; empty without values."""
    from latencykit.core.repr_html import CURVE_PERCENTILES, curve_svg

    if hasattr(counted, "stats") or getattr(counted, "count", 1) == 0:
        return ""
    values = counted.percentile(list(CURVE_PERCENTILES)).tolist()
    if not hasattr(counted, "percentile_rows"):
        return curve_svg(
            values, values, [False] * len(values), units.format_value(values[-1], counted.unit)
        )
    # Of the rows of a table only these are needed; their confidence intervals would import scipy.
    lowest = bounds_at(counted.histogram(), np.array(CURVE_PERCENTILES, np.float64))[1].tolist()
    wide = (~is_resolved(lowest, values)).tolist()
    return curve_svg(values, lowest, wide, statistic_text(counted, "max"))
