"""What a notebook shows for a rung, or a diagnosis: title, source, key numbers, and a small percentile curve drawn as SVG."""

from __future__ import annotations

import html as escape
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.diagnose.diagnosis import Diagnosis
from latencykit.distribution import Distribution
from latencykit.histogram import Histogram
from latencykit.keynumbers import key_numbers, statistic_text
from latencykit.log import HistogramLog
from latencykit.samples import Samples
from latencykit.stats.percentiles import is_resolved
from latencykit.summary import Summary
from latencykit.units import NANOSECONDS, format_count, format_duration, format_value, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["curve_svg", "html"]

_WIDTH, _HEIGHT = 300, 120
_BLUE, _GREY, _INK = "#0b5cbf", "#8a909a", "#1a1d23"


def html(rung: Any) -> str:
    """Return the view of a rung or a diagnosis as HTML without scripts; everything that comes from a file is escaped.

    Examples
    --------
    >>> "p99.9" in html(Histogram.of([1_000_000, 2_000_000]))
    True
    """
    if isinstance(rung, Diagnosis):
        from latencykit.report.diagnoses import diagnosis_html

        return diagnosis_html(rung)
    counted = rung.histogram() if isinstance(rung, HistogramLog | Samples) else rung
    if counted.unit in NANOSECONDS:
        counted = counted.to_unit("ns")
    cells = "".join(
        f"<tr><td style='text-align:left;color:{_GREY}'>{_safe(name)}</td><td style='text-align:right'>{_safe(value)}</td></tr>"
        for name, value in key_numbers(counted)
    )
    notes = "".join(f"<div style='color:{_GREY};font-size:85%'>{_safe(note, 200)}</div>" for note in counted.run.notes)
    picture = "" if isinstance(counted, Summary) else curve_svg(counted)
    return (
        f"<div style='font-family:sans-serif;max-width:560px'><b>{_safe(_title(rung))}</b>"
        f"<div style='color:{_GREY};font-size:85%'>{_safe(_source(rung), 200)}</div>"
        f"<div style='display:flex;gap:24px;align-items:center'><table>{cells}</table>{picture}</div>{notes}</div>"
    )


def _safe(text: str, limit: int = 80) -> str:
    return escape.escape(printable(text, limit))


def _title(rung: Any) -> str:
    kind = {HistogramLog: "Histogram log", Samples: "Samples", Histogram: "Histogram", Summary: "Summary", Distribution: "Model"}
    detail = (
        f", {format_count(len(rung))} intervals over {format_duration(rung.duration * 1e9)}"
        if isinstance(rung, HistogramLog)
        else ""
    )
    return f"{kind[type(rung)]}{detail}"


def _source(rung: Any) -> str:
    run = rung.run
    parts = [run.source, run.tool and f"{run.tool} {run.version or ''}".strip(), ", ".join(run.tags)]
    parts.append({"tool": "corrected by the tool", "us": "corrected", "schedule": "from the schedule"}.get(run.corrected))
    return " · ".join(part for part in parts if part)


def curve_svg(rung: Any) -> str:
    """Return a small percentile curve: nines to the right, values (logarithmic) upwards, the maximum at the end.

    Where the source does not pin the values down, an area between their bounds is filled.
    """
    if isinstance(rung, Histogram) and not rung.count:
        return ""
    places = np.append(np.linspace(0, 5, 120), 5.4)
    percentiles = np.append(100 * (1 - 10.0 ** -places[:-1]), 100.0)
    values = np.asarray(rung.percentile(percentiles), np.float64)
    least = np.array([row.bucket_low for row in rung.percentile_rows(percentiles)]) if isinstance(rung, Histogram) else values
    wide = ~is_resolved(least, values)
    values, least = np.maximum(values, 1e-12), np.where(wide, least, values)
    floor = least[least > 0].min(initial=values.min())
    low, high = math.log10(max(floor, 1e-12)), math.log10(values.max() * 1.0001)
    x = 8 + places / 5.4 * (_WIDTH - 16)
    y, foot = (
        14 + (1 - (np.log10(np.maximum(v, 10**low)) - low) / max(high - low, 1e-9)) * (_HEIGHT - 34) for v in (values, least)
    )
    points = _steps(x[~wide].tolist(), y[~wide].tolist(), np.flatnonzero(~wide).tolist())
    areas = "".join(
        f"M{x[k - 1]:.1f} {y[k]:.1f}H{x[k]:.1f}V{foot[k]:.1f}H{x[k - 1]:.1f}Z" for k in np.flatnonzero(wide).tolist() if k
    )
    filled = f"<path d='{areas}' fill='{_BLUE}' fill-opacity='0.25'/>" if areas else ""
    ticks = "".join(
        f"<text x='{8 + place / 5.4 * (_WIDTH - 16):.0f}' y='{_HEIGHT - 4}' font-size='9' fill='{_GREY}' "
        f"text-anchor='middle'>{text}</text>"
        for place, text in ((0.301, "50"), (1, "90"), (2, "99"), (3, "99.9"), (4, "99.99"))
    )
    words = statistic_text(rung, "max") if isinstance(rung, Histogram) else format_value(float(values[-1]), rung.unit)
    top = escape.escape(words if words.startswith("≥") else f"max {words}")
    return (
        f"<svg width='{_WIDTH}' height='{_HEIGHT}' role='img' aria-label='percentile curve, {top}'>"
        f"{filled}<path d='{points}' fill='none' stroke='{_BLUE}' stroke-width='1.6'/>{ticks}"
        f"<text x='{_WIDTH - 8}' y='10' font-size='10' fill='{_INK}' text-anchor='end'>{top}</text></svg>"
    )


def _steps(x: Sequence[float], y: Sequence[float], place: Sequence[int]) -> str:
    """A path that holds each value up to its own percentile, broken where places are left out."""
    parts, last = [], None
    for a, b, k in zip(x, y, place, strict=True):
        parts.append(f"V{b:.1f}H{a:.1f}" if last == k - 1 else f"M{a:.1f} {b:.1f}")
        last = k
    return "".join(parts)
