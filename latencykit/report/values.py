"""Values in cells of tables."""

from __future__ import annotations

import math
from typing import Any

from latencykit.units import NANOSECONDS, format_value

__all__ = ["shown"]


def shown(value: float | None, unit: str, style: str = "table", out_unit: str | None = None) -> Any:
    """Return a value for a cell: a bare number in CSV and where a unit is asked for, else with the unit that suits it.

    Examples
    --------
    >>> shown(1.5e6, "ns"), shown(1.5e6, "ns", "csv"), shown(1.5e6, "ns", "csv", "ms"), shown(None, "ns")
    ('1.5 ms', 1500000.0, 1.5, '')
    """
    if value is None or math.isnan(value):
        return None if style == "csv" else ""
    if out_unit is not None and unit in NANOSECONDS:
        scaled = value * NANOSECONDS[unit] / NANOSECONDS[out_unit]
        return scaled if style == "csv" else f"{scaled:,.6g} {out_unit}"
    return value if style == "csv" else format_value(value, unit)
