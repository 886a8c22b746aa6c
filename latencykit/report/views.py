"""What a notebook shows for a rung, or a diagnosis: title, source, key numbers, and a small percentile curve drawn as SVG."""

from __future__ import annotations

import html as escape
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.diagnose.diagnosis import Diagnosis
from latencykit.distribution import Distribution
from latencykit.histogram import Histogram
from latencykit.keynumbers import key_numbers
from latencykit.log import HistogramLog
from latencykit.samples import Samples
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
    notes = "".join(f"<div style='color:{_GREY};font-size:85%'>{_safe(note, 200)}</div>" for note in rung.run.notes)
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
    """Return a small percentile curve: nines to the right, values (logarithmic) upwards, the maximum at the end."""
    if isinstance(rung, Histogram) and not rung.count:
        return ""
    places = np.append(np.linspace(0, 5, 120), 5.4)
    percentiles = np.append(100 * (1 - 10.0 ** -places[:-1]), 100.0)
    values = np.maximum(np.asarray(rung.percentile(percentiles), np.float64), 1e-12)
    low, high = math.log10(values.min()), math.log10(values.max() * 1.0001)
    x = 8 + places / 5.4 * (_WIDTH - 16)
    y = 14 + (1 - (np.log10(values) - low) / max(high - low, 1e-9)) * (_HEIGHT - 34)
    points = _steps(x.tolist(), y.tolist())
    ticks = "".join(
        f"<text x='{8 + place / 5.4 * (_WIDTH - 16):.0f}' y='{_HEIGHT - 4}' font-size='9' fill='{_GREY}' "
        f"text-anchor='middle'>{text}</text>"
        for place, text in ((0.301, "50"), (1, "90"), (2, "99"), (3, "99.9"), (4, "99.99"))
    )
    top = escape.escape(f"max {format_value(float(values[-1]), rung.unit)}")
    return (
        f"<svg width='{_WIDTH}' height='{_HEIGHT}' role='img' aria-label='percentile curve, {top}'>"
        f"<path d='{points}' fill='none' stroke='{_BLUE}' stroke-width='1.6'/>{ticks}"
        f"<text x='{_WIDTH - 8}' y='10' font-size='10' fill='{_INK}' text-anchor='end'>{top}</text></svg>"
    )


def _steps(x: Sequence[float], y: Sequence[float]) -> str:
    """A path that holds each value up to its own percentile."""
    parts = [f"M{x[0]:.1f} {y[0]:.1f}"]
    parts += [f"V{b:.1f}H{a:.1f}" for a, b in zip(x[1:], y[1:], strict=True)]
    return "".join(parts)
