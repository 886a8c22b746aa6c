"""What will be made of a table: decided once, from the names of its columns and its first rows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.errors import UsageError
from latencykit.formats.raw.names import Named, latency_columns, named, roles_of
from latencykit.formats.raw.values import EMPTY, kind_of, outcome_of, times_of
from latencykit.units import NANOSECONDS, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from latencykit.formats.base import ReadOptions, Source
    from latencykit.formats.raw.values import Kind
    from latencykit.run import UnitFrom

__all__ = ["Moment", "Plan", "plan_of"]

_EPOCHS = (("ns", 1e17), ("us", 1e14), ("ms", 1e11), ("s", 1e8))
_MOST_TAGS = 40
_MEANT_AS_START = frozenset(
    ("timestamp", "time_stamp", "ts", "datetime", "date_time", "time", "date", "t", "epoch", "unix", "when", "at")
)


@dataclass(frozen=True)
class Moment:
    """A column of points in time."""

    column: str
    kind: Kind
    unit: str


@dataclass(frozen=True)
class Plan:
    """Which column is what.

    Attributes
    ----------
    duration : str
        Column of latencies.
    kind : {"number", "span"}
    unit : str
        Of the numbers; ``none`` for bare ones.
    unit_from : str
    moments : dict of str to Moment
        For ``start``, ``end`` and ``intended``.
    outcomes : tuple of (str, str)
        Column and role (``status``, ``good``, ``bad``, ``late``).
    zero_is_good : bool
        What a status of 0 means.
    connection, tag, series : str or None
    notes : tuple of str
    """

    duration: str
    kind: Kind
    unit: str
    unit_from: UnitFrom
    moments: dict[str, Moment]
    outcomes: tuple[tuple[str, str], ...]
    zero_is_good: bool
    connection: str | None
    connection_kind: Kind
    tag: str | None
    series: str | None
    notes: tuple[str, ...]

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns that hold numbers."""
        found = [self.duration] if self.kind == "number" else []
        found += [one.column for one in self.moments.values() if one.kind == "number"]
        return (*found, *([self.connection] if self.connection and self.connection_kind == "number" else []))

    @property
    def words(self) -> tuple[str, ...]:
        """Columns that hold words, dates or spelled durations."""
        every = [self.duration, *(one.column for one in self.moments.values()), *(column for column, _ in self.outcomes)]
        every += [column for column in (self.connection, self.tag, self.series) if column]
        return tuple(column for column in dict.fromkeys(every) if column not in self.numbers)


def plan_of(sample: pd.DataFrame, options: ReadOptions, source: Source) -> Plan:
    """Decide.

    Parameters
    ----------
    sample : DataFrame
        The first rows, all columns.
    options : ReadOptions
    source : Source

    Raises
    ------
    UsageError
        Where no column, or more than one, may be the one of latencies, and where bare numbers have no unit.
    """
    columns = [str(column) for column in sample.columns]
    notes: list[str] = []
    chosen = _latencies(sample, columns, options, source, notes)
    kind = kind_of(sample[chosen.column])
    if not _may_be_latencies(sample[chosen.column]):
        first = printable(str(sample[chosen.column].dropna().iloc[0]), 30)
        raise UsageError(f"{source.shown}: column {chosen.column!r} holds no latencies but {first!r}; name one with --column")
    kind = "number" if kind == "word" else kind
    unit, unit_from = _unit(chosen, kind, options, source, notes)
    roles = roles_of(columns, chosen.column)
    if options.start_column is not None:
        roles["start"] = named(_column(options.start_column, columns, source, "--start-column"))
        roles = {role: one for role, one in roles.items() if role == "start" or one.column != roles["start"].column}
    named_so = [(roles[role].column, role) for role in ("status", "good", "bad", "late") if role in roles]
    outcomes = _understood(sample, tuple(named_so), notes)
    connection = roles.get("connection")
    return Plan(
        duration=chosen.column, kind=kind, unit=unit, unit_from=unit_from,
        moments=_moments(sample, roles, unit if kind == "number" else "ns", notes),
        outcomes=outcomes, zero_is_good=_zero_is_good(sample, outcomes),
        connection=connection.column if connection else None,
        connection_kind=kind_of(sample[connection.column]) if connection else "word",
        tag=_tag(sample, roles.get("tag"), notes), series=roles["series"].column if "series" in roles else None,
        notes=tuple(notes),
    )  # fmt: skip


def _column(wanted: str, columns: Sequence[str], source: Source, option: str) -> str:
    """The column that the user names: as written, else in any case, else by its number."""
    if wanted in columns:
        return wanted
    alike = [column for column in columns if column.strip().lower() == wanted.strip().lower()]
    if len(alike) == 1:
        return alike[0]
    if wanted.isdigit() and 1 <= int(wanted) <= len(columns):
        return columns[int(wanted) - 1]
    raise UsageError(f"{source.shown}: there is no column {wanted!r} ({option}); {_listed(columns)}")


def _listed(columns: Sequence[str]) -> str:
    shown = ", ".join(printable(column, 30) for column in columns[:20])
    return f"the columns are {shown}{' …' if len(columns) > 20 else ''}"


def _latencies(sample: pd.DataFrame, columns: Sequence[str], options: ReadOptions, source: Source, notes: list[str]) -> Named:
    if options.column is not None:
        return named(_column(options.column, columns, source, "--column"))
    if len(columns) == 1:
        return named(columns[0])
    if "statistic" in columns:
        raise source.corrupt(1, "the rows are statistics", "one request a row", "read what they were made from")
    found, sure = latency_columns(columns)
    fitting = [one for one in found if _may_be_latencies(sample[one.column])]
    sure = sure and bool(fitting) and fitting[0] is found[0]
    if not sure and len(fitting) != 1:
        what = (
            f"several columns may be the latency: {', '.join(repr(one.column) for one in fitting)}"
            if fitting
            else "no column is named as a latency"
        )
        raise UsageError(f"{source.shown}: {what}; {_listed(columns)}; name one with --column (column=)")
    if len(fitting) > 1:
        others = ", ".join(repr(one.column) for one in fitting[1:])
        notes.append(f"latencies are taken from column {fitting[0].column!r}; --column takes another one ({others})")
    return fitting[0]


def _may_be_latencies(cells: pd.Series[Any]) -> bool:
    """Whether a column holds numbers or durations; empty cells may be followed by some."""
    return kind_of(cells) in ("number", "span") or bool(cells.dropna().isin(EMPTY).all())


def _unit(chosen: Named, kind: Kind, options: ReadOptions, source: Source, notes: list[str]) -> tuple[str, UnitFrom]:
    if kind == "span":
        if options.unit is not None:
            raise UsageError(f"{source.shown}: every value of {chosen.column!r} states its unit itself; leave --unit (unit=) out")
        return "ns", "file"
    if options.unit is not None:
        if chosen.unit is not None and chosen.unit != options.unit:
            notes.append(f"column {chosen.column!r} names {chosen.unit}; its values are taken as {options.unit}, as asked")
        return options.unit, "option"
    if chosen.unit is None:
        what = "the numbers state" if chosen.column.isdigit() else f"column {printable(chosen.column, 40)!r} states"
        raise UsageError(f"{source.shown}: {what} no unit; say it with --unit ns, us, ms or s (unit=), or none for bare numbers")
    return chosen.unit, "file"


def _moments(sample: pd.DataFrame, roles: dict[str, Named], unit: str, notes: list[str]) -> dict[str, Moment]:
    """Columns of points in time that can be understood; a start makes an end needless."""
    found: dict[str, Moment] = {}
    for role in ("start", "end", "intended"):
        if role not in roles or (role == "end" and "start" in found):
            continue
        one = roles[role]
        kind = kind_of(sample[one.column])
        if kind == "word":
            notes.append(f"column {one.column!r} is not understood as a time; it is left out")
            continue
        stated = one.unit or (_stamp_unit(sample[one.column], one.column, unit, notes) if kind == "number" else "ns")
        found[role] = Moment(one.column, kind, stated)
        if role == "start" and one.stem in _MEANT_AS_START:
            notes.append(f"column {one.column!r} is taken as the start of each request")
    if "intended" in found and not ({"start", "end"} & set(found)):
        del found["intended"]
    return found


def _stamp_unit(cells: pd.Series[Any], column: str, unit: str, notes: list[str]) -> str:
    """Unit of stamps whose name tells none: by their size for those since the epoch, else assumed."""
    times = times_of(cells, "number", "none")
    values = times.ns[~times.missing & ~times.damaged]
    middle = float(np.median(np.abs(values))) if values.size else 0.0
    epoch = next((name for name, least in _EPOCHS if middle >= least), None)
    if epoch is not None:
        return epoch
    whole = bool((values == np.rint(values)).all())
    assumed = unit if whole and unit in NANOSECONDS else "s"
    notes.append(f"column {column!r} states no unit; it is taken as {assumed}")
    return assumed


def _understood(sample: pd.DataFrame, outcomes: tuple[tuple[str, str], ...], notes: list[str]) -> tuple[tuple[str, str], ...]:
    """Without a status column in which no word is understood."""
    kept = []
    for column, role in outcomes:
        distinct = sample[column].dropna()
        _, strange = outcome_of(distinct, role, zero_is_good=True)
        if role == "status" and strange and len(strange) == len(set(distinct.astype(str).str.strip().str.lower())):
            notes.append(f"column {column!r} is not understood as an outcome; it is left out")
        else:
            kept.append((column, role))
    return tuple(kept)


def _zero_is_good(sample: pd.DataFrame, outcomes: tuple[tuple[str, str], ...]) -> bool:
    """Whether a status of 0 is an exit code: not in a column that holds HTTP statuses, or is named so."""
    status = next((column for column, role in outcomes if role == "status"), None)
    if status is None:
        return True
    words = sample[status].dropna().astype(str).str.strip()
    return not words.str.fullmatch(r"[1-5]\d\d(?:\.0)?").any() and not re.search("http|response", status, re.IGNORECASE)


def _tag(sample: pd.DataFrame, one: Named | None, notes: list[str]) -> str | None:
    """The column of operations, unless nearly every row has another."""
    if one is None:
        return None
    kinds = int(sample[one.column].nunique())
    if kinds > _MOST_TAGS and kinds > len(sample) / 4:
        notes.append(f"column {one.column!r} has too many different values for operations; it is left out")
        return None
    return one.column
