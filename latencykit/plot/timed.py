"""What charts over time share: the start on the clock, stalls as grey blocks, an SLO's limit as a line."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from matplotlib import patheffects

from latencykit.plot.labels import SpanLabels
from latencykit.plot.style import GREY, INK, plain, shorten
from latencykit.plot.words import measured, percentile_text, slo_pairs
from latencykit.units import format_count, format_duration, format_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

__all__ = ["clock", "highest_limit", "log_title", "shade", "slo_line", "spans_of"]


def clock(begun: float | None) -> str:
    """The start as UTC, where it is known and plausible."""
    if begun is None or not 0 < begun < 253_402_300_799:
        return ""
    return f", {datetime.fromtimestamp(begun, UTC):%Y-%m-%d %H:%M:%S} UTC"


def log_title(label: str, log: Any, count: int) -> str:
    """Return a log's title: its name, and what was measured."""
    run = log.run.but(duration=log.run.duration or log.duration or None)
    return " · ".join(filter(None, (plain(shorten(label, 60)), measured(run, count))))


def highest_limit(slo: Any) -> tuple[float, float] | None:
    """The percentile and value of the limit that a timeline can show: the highest."""
    pairs = slo_pairs(slo) if slo is not None else []
    return pairs[-1] if pairs else None


def slo_line(ax: Axes, slo: Any, unit: str) -> None:
    """Draw an SLO's highest limit as a line across, with its value."""
    limit = highest_limit(slo)
    if limit is not None:
        ax.axhline(limit[1], color=INK, linewidth=1.1, label="_slo", zorder=4)
        words = f"SLO {percentile_text(limit[0])} {format_value(limit[1], unit)}"
        ax.annotate(
            words, (0, limit[1]), (5, 2), ("axes fraction", "data"), "offset points", fontsize=8.5, color=INK, zorder=7,
            path_effects=[patheffects.withStroke(linewidth=2.5, foreground="white")],
        )  # fmt: skip


def spans_of(stalls: Any) -> list[tuple[float, float, float]]:
    """Stalls as start, end, and missing requests (NaN where unknown)."""
    if stalls is None:
        return []
    rows = stalls[["start", "end", "missing"]].to_numpy().tolist() if hasattr(stalls, "columns") else stalls
    return [(float(start), float(end), float("nan") if missing is None else float(missing)) for start, end, missing in rows]


def shade(ax: Axes, blocks: Sequence[tuple[float, float, float]]) -> None:
    """Grey blocks with their length and the missing requests."""
    labels = SpanLabels()
    for start, end, missing in blocks:
        ax.axvspan(start, end, color=GREY, alpha=0.22, linewidth=0, zorder=0)
        length = format_duration((end - start) * 1e9, 2)
        forms = [f"stall {length}", length]
        if missing >= 1:
            forms.insert(0, f"stall {length} · {format_count(missing)} missing")
            forms.insert(0, f"stall {length} · ~{format_count(missing)} requests missing")
        labels.add(ax, start, end, forms)
    if blocks:
        ax.add_artist(labels)
