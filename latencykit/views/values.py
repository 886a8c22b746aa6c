"""Single values as JSON and as text: numbers, percentiles with their intervals, shares."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from latencykit._text import cause_text
from latencykit.units import NANOSECONDS, format_value, percentile_name

if TYPE_CHECKING:
    from latencykit._typing import Percentile
    from latencykit.core.percentile_rows import PercentileRow
    from latencykit.core.summary import Summary


UnitFrom = Literal["file", "format", "option", "assumed"]


class Versioned(TypedDict):
    """What a command prints."""

    schema_version: Literal[1]
    """Grows when a key changes its meaning or goes away."""


class Span(TypedDict):
    """Bounds of a value that the source does not pin down; null is unbounded."""

    low: float | None
    high: float | None


class PercentileRecord(TypedDict):
    """A percentile.

    low and high are the confidence interval joined with the bucket; null is unbounded or unknown.
    """

    percentile: Percentile
    value: float | None
    """The highest equivalent value of the bucket; an upper bound where resolved is false."""
    low: float | None
    high: float | None
    bucket_low: float | None
    bucket_high: float | None
    resolved: bool
    """False where the edges of the bucket differ by more than a tenth."""
    supported: bool | None
    """Whether the run shows the percentile within a quarter; null is unknown."""
    events: int | None
    """Independent events above the percentile, where requests depend on each other."""
    cause: str | None
    """Why not: few requests, one slow period, drift, parts differ, as stated, timeouts."""


class UserPercentileRecord(TypedDict):
    """A percentile of the users' latency."""

    percentile: float
    value: float | None
    bucket_low: float | None
    bucket_high: float | None
    resolved: bool
    supported: bool | None
    at_least: bool
    """The value is only a lower bound."""
    cause: str | None
    """Why not: few requests, one slow period, drift, parts differ, as stated, timeouts."""


class TrimmedRecord(TypedDict):
    """A trimmed statistic."""

    value: float | None
    low: float | None
    high: float | None
    resolved: bool
    definition: str
    """The ranks or values that are kept."""
    leaves_out: str
    """The requests that are left out."""


def number(value: float | None) -> float | int | None:
    """Return a number as JSON has it: integers where exact, null where unbounded or unknown."""
    if value is None or not math.isfinite(value):
        return None
    return plain(value)


def numbers(values: ArrayLike) -> list[float | int | None]:
    """Return each value as `number` does."""
    array = np.asarray(values, np.float64)
    finite = np.isfinite(array)
    integers = np.flatnonzero(finite & (np.trunc(array) == array) & (np.abs(array) < 2.0**62))
    cells = np.where(finite, array, None)  # type: ignore[call-overload]
    cells[integers] = array[integers].astype(np.int64)
    plain: list[float | int | None] = cells.tolist()
    return plain


def plain(value: float) -> float | int:
    """Return a finite number as JSON has it: an integer where exact."""
    return int(value) if float(value).is_integer() else float(value)


def percentile_row(row: PercentileRow) -> PercentileRecord:
    """Return a percentile, its confidence interval and its bucket."""
    return record_from(PercentileRecord, row, percentile=row.percentile, cause=row.cause or None)


def summary_rows(
    summary: Summary, percentiles: Sequence[float], confidence: float = 0.95
) -> list[PercentileRecord]:
    """Return reported percentiles; how well they are known only where the tool reports a count."""
    unknown: Any = {"supported": None, "cause": None} if summary.count is None else {}
    rows = summary.reported_rows(percentiles, confidence=confidence)
    return [{**percentile_row(row), **unknown} for row in rows]


def causes_text(rows: Iterable[PercentileRecord | UserPercentileRecord]) -> str:
    """Return why percentiles are in brackets: "p90 to p99.9: drift; p99.99: few requests"."""
    # Where one of them has another cause in another row, only the causes are named.
    causes: dict[str, dict[float, None]] = {}
    for row in rows:
        if row["supported"] is False and row["cause"]:
            causes.setdefault(cause_text(row["cause"]), {})[row["percentile"]] = None
    named = [p for percentiles in causes.values() for p in percentiles]
    if len(causes) < 2 or len(set(named)) < len(named):
        return ", ".join(causes)
    parts = []
    for cause, percentiles in causes.items():
        names = [percentile_name(p) for p in sorted(percentiles)]
        span = ", ".join(names) if len(names) < 3 else f"{names[0]} to {names[-1]}"
        parts.append(f"{span}: {cause}")
    return "; ".join(parts)


def in_nanoseconds(data: Any) -> Any:
    """Return the data in nanoseconds, or unchanged where the values have no unit."""
    return data.to_unit("ns") if data.unit in NANOSECONDS else data


def percent(share: float | None) -> str:
    """Return a share as a percentage; empty if unknown."""
    return "" if share is None else f"{100 * share:.3g} %"


def value_text(value: float | None, unit: str, out_unit: str | None = None) -> str:
    """Return a value with its unit, which is `out_unit` or the one that suits the value."""
    bare = bare_value(value, unit, out_unit)
    if bare is None or value is None:
        return ""
    in_out_unit = out_unit is not None and unit in NANOSECONDS
    return (
        f"{format_value(bare, 'none', 6)} {out_unit}" if in_out_unit else format_value(value, unit)
    )


def bare_value(value: float | None, unit: str, out_unit: str | None = None) -> float | None:
    """Return a value as a number, in `out_unit` if it is a time."""
    if value is None or math.isnan(value):
        return None
    if out_unit is not None and unit in NANOSECONDS:
        return value * NANOSECONDS[unit] / NANOSECONDS[out_unit]
    return value


# ------------------------------------------------------------
# From results to the records that are printed as JSON.

Record = TypeVar("Record")


def record_from(kind: type[Record], source: object, **own: object) -> Record:
    """Return a record of a kind: `own` keys, and the others by name from an object or a mapping."""
    # Numbers are as JSON has them, and tuples are lists.
    names: Mapping[str, object] = kind.__annotations__
    get: Any = source.__getitem__ if hasattr(source, "__getitem__") else source.__getattribute__
    values: dict[str, Any] = {}
    for name, hint in names.items():
        if "NotRequired" in str(hint) and name not in own:
            continue
        values[name] = value = own[name] if name in own else get(name)
        if name not in own and isinstance(value, float | tuple):
            values[name] = number(value) if isinstance(value, float) else list(value)
    return cast("Record", values)
