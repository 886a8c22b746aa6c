"""A freeze test: the table of report and truth, and its sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from latencykit.units import format_duration, percentile_name
from latencykit.views.tables import Table

if TYPE_CHECKING:
    from latencykit.ctrlz.run import Calibration


def ctrlz_text(result: Calibration, style: str = "table") -> str:
    """Return one row per percentile."""
    table = Table(style)
    for row in result.rows:
        truth = "unknown" if row.truth is None else format_duration(row.truth)
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        table.add(
            {
                "percentile": table.either(row.percentile, percentile_name(row.percentile)),
                "reported": table.either(row.reported, format_duration(row.reported)),
                "truth": table.either(row.truth, truth),
                "ratio": table.either(row.ratio, ratio),
            }
        )
    return table.render()


def ctrlz_words(result: Calibration, *, verdict: bool = True) -> list[str]:
    """Return the verdict, the reasons for it, and notes."""
    tool = result.tool or "load generator"
    notes = [f"note: {text}" for text in result.notes]
    return [
        *([f"{tool}: {result.verdict} ({result.model} loop)"] if verdict else []),
        *(f"  {text}" for text in (*result.reasons, *notes)),
    ]
