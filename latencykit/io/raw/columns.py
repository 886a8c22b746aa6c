"""The plan for a table, made once from the names of its columns and its first rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from latencykit._limits import current_limits
from latencykit._records import record
from latencykit._text import brief_list, option, printable
from latencykit._typing import Floats
from latencykit.core.columns import Cells, coded
from latencykit.core.run import PROVENANCE, UnitFrom
from latencykit.core.samples import OUTCOMES
from latencykit.errors import InvalidArgumentError
from latencykit.io.build import unit_in, word_set
from latencykit.io.raw.aggregates import Shape, bounded, shape_of
from latencykit.io.raw.cells import (
    ColumnName,
    Kind,
    Sample,
    are_statistics,
    date_style,
    kind_of,
    latency_columns,
    named,
    only_by_default,
    present,
    roles_of,
    start_and_end,
    times_of,
)
from latencykit.io.raw.log_parts import hint_of
from latencykit.io.raw.outcomes import OutcomeRule, candidate, outcome_rule, words_of
from latencykit.io.source import ReadOptions, Source
from latencykit.units import NANOSECONDS

_EPOCHS = (("ns", 1e17), ("us", 1e14), ("ms", 1e11), ("s", 1e8))
_MOST_TAGS = 40
_OWN = ("outcome", "connection", "tag")  # columns that samples have in any case
_AGES = 1e17  # ns, three years: not a latency, but a point in time
_LATEST = 9.2e18  # ns since 1970; the year 2261
_HOUR = 3.6e12  # ns
_LONGEST_REQUEST = 3e11  # ns: the median of tables of requests is shorter
_SPAN = 0.8  # of their middle: the first quarter of points in time since 1970 is above it
_NARROW = 1e-3  # of their middle, by which points in time of one run differ at most
_MEANT_AS_START = word_set(
    "timestamp time_stamp ts datetime date_time time date t epoch unix when at"
)


@record()
class TimestampColumn:
    """A column of points in time."""

    column: str
    kind: Kind
    unit: str  # of numbers; of dates as text, how they are written


@record()
class ColumnPlan:
    """Which column is what."""

    duration: str  # column of latencies, or of when requests ended
    kind: Kind
    unit: str  # of the numbers; ``none`` for bare ones
    unit_from: UnitFrom
    moments: dict[str, TimestampColumn]  # for ``start``, ``end`` and ``intended``
    outcomes: tuple[OutcomeRule, ...]  # columns of outcomes, and how each is understood
    failures_known: bool  # false where a column looks like an outcome and is not understood
    connection: str | None
    connection_kind: Kind
    tag: str | None
    series: str | None
    notes: tuple[str, ...]
    unit_column: str | None = None  # column of each row's unit
    shape: Shape | None = None  # what rows are that are not requests
    # columns that are kept under their own names, if they are asked for
    further: tuple[str, ...] = ()
    # columns of facts about the measurement, which are the run's where every row agrees
    provenance: tuple[str, ...] = ()
    # the unit of `duration` where it is the end, and a latency the time since ``moments["start"]``
    ended: str | None = None

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns of numbers; those of a table of counts are words: edges may be infinite."""
        moments = [(moment.column, moment.kind) for moment in self.moments.values()]
        kinds = [(self.duration, self.kind), *moments, (self.connection, self.connection_kind)]
        numbers = [name for name, kind in kinds if name is not None and kind == "number"]
        return tuple(numbers) if self.shape is None else ()

    @property
    def numbers_as_words(self) -> tuple[str, ...]:
        """Columns of numbers among the words: values, edges and counts of a table of counts."""
        if self.shape is None:
            return ()
        low = self.shape.low.column if self.shape.low else None
        return tuple(name for name in (self.duration, self.shape.count, low) if name is not None)

    @property
    def words(self) -> tuple[str, ...]:
        """Columns that hold words, dates or spelled durations."""
        names = [
            self.duration,
            *(moment.column for moment in self.moments.values()),
            *(outcome.column for outcome in self.outcomes),
            self.connection, self.tag, self.series, self.unit_column, *self.numbers_as_words,
            self.shape.level if self.shape else None, *self.further, *self.provenance,
        ]  # fmt: skip
        others = {None, *self.numbers}
        return tuple(
            name for name in dict.fromkeys(names) if name is not None and name not in others
        )


def looked_at(
    columns: Iterable[str], options: ReadOptions, notes: list[str] | None = None
) -> list[str]:
    """Return the columns that are looked at: those that name latencies, then the first ones."""
    names, most = list(dict.fromkeys(columns)), current_limits().columns
    if len(names) <= most:
        return names
    if notes is not None:
        notes.append(
            f"of {len(names):,} columns {most:,} are looked at; --limit columns=N "
            "(lk.limits) allows more"
        )
    named = [part.column for part in latency_columns(names)[0]]
    named += [part.column for part in start_and_end(names) or ()]
    given = [name for name in (options.column, options.start_column) if name in names]
    kept = set(list(dict.fromkeys([*given, *named, *names]))[:most])
    return [name for name in names if name in kept]


def plan_of(
    sample: Sample, options: ReadOptions, source: Source, notes: Sequence[str] = ()
) -> ColumnPlan:
    """Decide which column is what; `notes` are the reader's."""
    notes = list(notes)
    columns = looked_at(sample, options, notes)
    sample = {name: sample[name] for name in columns}
    shape = None if options.start_column is not None else shape_of(sample, options.column, notes)
    bounds = None if shape or options.column is not None else _bounds(sample, source, notes)
    if bounds is not None:
        chosen = bounds[1]
    else:
        chosen = _latencies(sample, options, source, notes) if shape is None else shape.value
    cells = sample[chosen.column]
    if shape is not None:
        notes += shape.notes
        cells = bounded(cells)
    kind = kind_of(cells)
    if not bounds and not _may_be_latencies(cells):
        first = printable(present(cells)[0], 30)
        raise InvalidArgumentError(
            f"{source.shown}: column {chosen.column!r} contains {first!r}, not latencies; name a "
            "column with --column"
        )
    kind = "number" if kind == "word" else kind
    unit_column, stated = None, chosen
    if kind == "number" and chosen.unit is None:
        unit_column = _unit_column(sample, chosen, notes)
    if shape is not None and shape.low is not None and chosen.unit is None:
        stated = shape.low
    unit, unit_from = _unit(stated, kind, unit_column, options, source, notes)
    bare = kind == "number" and unit_column is None and bounds is None
    if bare and _are_moments(cells, chosen, unit):
        first = printable(present(cells)[0], 30)
        seen = f"column {chosen.column!r} contains points in time ({first}), not latencies"
        raise InvalidArgumentError(
            f"{source.shown}: {seen}; name the column of latencies with --column, or another --unit"
        )
    roles = roles_of(columns, chosen.column)
    if bounds is not None:
        roles["start"] = replace(bounds[0], unit=options.unit or bounds[0].unit or unit)
    if options.start_column is not None:
        start = named(_column(options.start_column, columns, source, "--start-column"))
        others = {role: part for role, part in roles.items() if part.column != start.column}
        roles = others | {"start": start}
    if shape is not None:
        kept = {role: part for role, part in roles.items() if role in ("tag", "series")}
        roles = {role: part for role, part in kept.items() if part.column != shape.level}
    taken: set[str | None] = {chosen.column, *(part.column for part in roles.values())}
    if shape is not None:
        taken |= {shape.count, shape.level, shape.low.column if shape.low else None}
    provenance = tuple(name for name in PROVENANCE if name in columns and name not in taken)
    taken |= {*provenance}
    rest = [column for column in columns if column not in taken]
    outcomes, known = _understood(sample, rest, notes)
    connection, tag = roles.get("connection"), roles.get("tag")
    moments = _moments(sample, roles, unit if kind == "number" else "ns", notes)
    ended = moments["start"].unit if bounds and kind == "moment" else unit
    if tag is not None:  # unless nearly every row has another
        kinds = len(coded(sample[tag.column])[1])
        if kinds > _MOST_TAGS and kinds > sample[tag.column].shape[0] / 4:
            if not options.columns:  # of further columns it is one
                notes.append(
                    f"column {tag.column!r} has too many different values for operations; "
                    f"--by {tag.column} splits by them"
                )
            tag = None
    further: tuple[str, ...] = ()
    if options.columns and shape is None:
        used = {chosen.column, unit_column, *(part.column for part in moments.values()), *_OWN}
        used |= {roles["series"].column} if "series" in roles else set()
        further = tuple(column for column in columns if column not in used)
    return ColumnPlan(
        duration=chosen.column, kind=kind, unit=unit, unit_from=unit_from,
        moments=moments, further=further, provenance=provenance,
        outcomes=outcomes, failures_known=known,
        connection=connection.column if connection else None,
        connection_kind=kind_of(sample[connection.column]) if connection else "word",
        tag=tag.column if tag else None,
        series=roles["series"].column if "series" in roles else None,
        notes=tuple(notes), unit_column=unit_column, shape=shape,
        ended=ended if bounds else None,
    )  # fmt: skip


def _column(name: str, columns: Sequence[str], source: Source, option: str) -> str:
    """The column that the user names: as written, else in any case, else by its number."""
    if (name := str(name)) in columns:
        return name
    alike = [column for column in columns if column.strip().lower() == name.strip().lower()]
    if len(alike) == 1:
        return alike[0]
    if name.isdigit() and 1 <= int(name) <= len(columns):
        return columns[int(name) - 1]
    raise InvalidArgumentError(f"{source.shown}: no column {name!r} ({option}); {_listed(columns)}")


def _listed(columns: Sequence[str]) -> str:
    shown = ", ".join(printable(column, 30) for column in columns[:20])
    return f"the columns are {shown}{' …' if len(columns) > 20 else ''}"


def _latencies(
    sample: Sample, options: ReadOptions, source: Source, notes: list[str]
) -> ColumnName:
    columns = list(sample)
    if not columns:
        raise source.corrupt(1, "the rows contain no values", "a latency per row")
    if options.column is not None:
        return named(_column(options.column, columns, source, "--column"))
    if len(columns) == 1:
        return named(columns[0])
    own = [part for part in map(named, columns[:3]) if part.stem in ("series", "start", "duration")]
    if len(own) > 1 and own[-1].stem == "duration" and own[-1].unit is not None:
        return own[-1]  # in a table that latencykit wrote
    candidates, sure = latency_columns(columns)
    # `total_latency` or `latency` beside `max_latency` is not of one request
    of_each = [replace(part, stem=part.stem.removeprefix("total_")) for part in candidates]
    if "statistic" in columns or (
        are_statistics(columns)
        and all(only_by_default(p) or are_statistics(columns, p.stem) for p in of_each)
    ):
        hint = "read what they were made from"
        raise source.corrupt(1, "the rows are statistics", "one row per request", hint)
    fitting = [part for part in candidates if _may_be_latencies(sample[part.column])]
    lasting = [part for part in fitting if not _are_moments(sample[part.column], part, part.unit)]
    fitting, sure = lasting, sure or len(lasting) < len(fitting)
    candidates = lasting if len(lasting) < len(candidates) else candidates
    sure = sure and bool(fitting) and fitting[0] is candidates[0]
    if not sure and len(fitting) != 1:
        names = brief_list([repr(part.column) for part in fitting], 8)
        what = f"several columns may be the latency: {names}"
        if not fitting:
            what = "no column is named as a latency"
        hint = ""
        if not fitting and list(columns[:1]) == ["1"]:  # without a header: a log, perhaps
            hint = hint_of(source.head.lines)
            what = f"{what} in {printable(source.head.lines[0], 300)!r}; {hint}" if hint else what
        raise InvalidArgumentError(
            f"{source.shown}: {what}; {_listed(columns)}; name one with --column (column=)"
        )
    if len(fitting) > 1:
        others = ", ".join(repr(part.column) for part in fitting[1:])
        notes.append(
            f"latencies are taken from column {fitting[0].column!r}; --column takes another one "
            f"({others})"
        )
    return fitting[0]


def _bounds(
    sample: Sample, source: Source, notes: list[str]
) -> tuple[ColumnName, ColumnName] | None:
    """The columns of each request's start and end, where only their difference is a latency."""
    bounds = start_and_end(sample)
    if bounds is None:
        return None
    kinds = [kind_of(sample[part.column]) for part in bounds]
    if kinds[0] != kinds[1] or kinds[0] == "word":
        return None
    start, end = bounds
    if kinds[0] == "number" and end.unit is None:
        end = replace(end, unit=start.unit or _epoch_unit(_values(sample[end.column])))
    begins, ends = (times_of(sample[part.column], kinds[0], "none").ns for part in (start, end))
    if len(ends) > 2 and (begins[1:] == ends[:-1]).all():
        seen = f"each {start.column!r} is the {end.column!r} before it: the rows are intervals"
        raise source.corrupt(None, seen, "one row per request", "read what they were made from")
    unit = end.unit or "ns"
    lasted = [times_of(sample[part.column], kinds[0], unit).ns for part in (start, end)]
    if not 0 <= float(np.median(lasted[1] - lasted[0])) <= _LONGEST_REQUEST:
        return None  # of appointments, trips, terms of office
    notes.append(f"latencies are the times from {start.column!r} to {end.column!r}")
    return start, end


def _may_be_latencies(cells: Cells) -> bool:
    """True if a column holds numbers or durations; empty cells may be followed by some."""
    return kind_of(cells) in ("number", "span") or not present(cells)


def _values(cells: Cells) -> Floats:
    times = times_of(cells, "number", "none")
    return np.asarray(times.ns[~times.missing & ~times.corrupt], np.float64)


def _are_moments(cells: Cells, stamp: ColumnName, unit: str | None) -> bool:
    """True if numbers are points in time: longer than any latency, or close together since 1970."""
    # Numbers close together are suspicious in a column such as ``time``, which may be either, and
    # elsewhere where each would be a latency of hours.
    if kind_of(cells) != "number":
        return False
    values = _values(cells)
    if not values.size:
        return False
    middle, scale = float(np.median(values)), NANOSECONDS.get(unit or "", 0.0)
    if middle * scale > _AGES or (unit is None and middle > _AGES):
        return True
    since = any(0.63 * 1e9 <= middle * NANOSECONDS[name] / 1e9 <= 4.2e9 for name in NANOSECONDS)
    close = values.size > 1 and float(np.ptp(values)) <= _NARROW * middle
    return since and close and (only_by_default(stamp) or middle * scale > _HOUR) and unit != "none"


def _unit_column(sample: Sample, chosen: ColumnName, notes: list[str]) -> str | None:
    """The column that names each row's unit, by its name and its cells."""
    for column in sample:
        words = words_of(column)
        if column == chosen.column or not words or words[-1] not in ("unit", "units", "uom"):
            continue
        if not set(words[:-1]) <= {"time", "of", "measurement"} | set(words_of(chosen.stem)):
            continue
        if any(map(unit_in, present(sample[column]))):
            return column
        notes.append(f"column {column!r} does not name a unit of time and is ignored")
    return None


def _unit(
    chosen: ColumnName,
    kind: Kind,
    unit_column: str | None,
    options: ReadOptions,
    source: Source,
    notes: list[str],
) -> tuple[str, UnitFrom]:
    if unit_column is not None or kind in ("span", "moment"):
        if options.unit is not None:
            states = f"every value of {chosen.column!r} states its unit itself"
            if unit_column is not None:
                states = f"column {unit_column!r} states the unit of each row"
            raise InvalidArgumentError(f"{source.shown}: {states}; leave {option('unit')} out")
        return "ns", "file"
    if options.unit is not None:
        if chosen.unit not in (None, options.unit) and not chosen.assumed:
            notes.append(
                f"column {chosen.column!r} names {chosen.unit}; its values are taken as "
                f"{options.unit}, as asked"
            )
        return options.unit, "option"
    if chosen.unit is not None:
        return chosen.unit, "assumed" if chosen.assumed else "file"
    if chosen.column.isdigit():
        return "none", "assumed"
    seen = f"column {printable(chosen.column, 40)!r} states no unit"
    how = option("unit", "ns, us, ms or s", "'ns', 'us', 'ms' or 's' (lk.read)")
    raise InvalidArgumentError(
        f"{source.shown}: {seen}; give it with {how}, or none for bare numbers"
    )


def _moments(
    sample: Sample, roles: dict[str, ColumnName], unit: str, notes: list[str]
) -> dict[str, TimestampColumn]:
    """Columns of points in time that can be understood; a start makes an end needless."""
    moments: dict[str, TimestampColumn] = {}
    for role in ("start", "end", "intended"):
        if role not in roles or (role == "end" and "start" in moments):
            continue
        part = roles[role]
        kind = kind_of(sample[part.column])
        if kind == "word":
            notes.append(f"column {part.column!r} is not understood as a time; it is left out")
            continue
        stated = part.unit or "ns"
        dates = present(sample[part.column]) if kind == "moment" else [""]
        if re.match(r"\d{1,2}/\d{1,2}/", dates[0]):  # as the first rows have it, all others do
            stated = date_style(dates)
            order = "month" if "%m/%d" in stated else "day"
            notes.append(f"column {part.column!r}: of dates, the {order} comes first")
        if kind == "number":
            # Points in time fit 64 bits of nanoseconds; a column `time_ms` may hold microseconds.
            values = _values(sample[part.column])
            middle = float(np.median(np.abs(values))) if values.size else 0.0
            if part.unit is None or middle * NANOSECONDS[part.unit] >= _LATEST:
                stated = _epoch_unit(values) or ""
            if not stated:
                integers = bool((values == np.rint(values)).all())
                stated = unit if integers and unit in NANOSECONDS else "s"
                notes.append(f"column {part.column!r} states no unit; it is taken as {stated}")
        moments[role] = TimestampColumn(part.column, kind, stated)
        if role == "start" and part.stem in _MEANT_AS_START:
            notes.append(f"column {part.column!r} is taken as the start of each request")
    if "intended" in moments and not ({"start", "end"} & set(moments)):
        del moments["intended"]
    return moments


def _epoch_unit(values: Floats) -> str | None:
    """Unit of points in time since 1970 by their size; None if they count from elsewhere."""
    low, middle = np.quantile(np.abs(values), [0.25, 0.5]) if values.size else (0.0, 0.0)
    if low < _SPAN * middle:  # counted from the start of the run
        return None
    return next((name for name, least in _EPOCHS if middle >= least), None)


def _understood(
    sample: Sample, columns: Sequence[str], notes: list[str]
) -> tuple[tuple[OutcomeRule, ...], bool]:
    """Columns of outcomes, and whether all that look like such are understood."""
    readings, strange, others = [], [], []
    if "outcome" in columns and {*coded(sample["outcome"])[1]} <= {*OUTCOMES}:
        columns = ["outcome"]  # as latencykit writes it, whatever others say
    for column in columns:
        outcome = candidate(column)
        if outcome is None:
            continue
        reading = outcome_rule(sample[column], outcome)
        if reading is not None:
            readings.append(reading)
            notes += [reading.note] if reading.note else []
        elif outcome.sense != "other":
            strange.append(column)
        elif not latency_columns([column])[0]:
            others.append(column)
    if any(words_of(reading.column)[-1] in ("flag", "flags") for reading in readings):  # Envoy's
        readings = [replace(r, style="session") if r.style == "http" else r for r in readings]
        strange = []
    for column in strange:
        notes.append(
            f"column {column!r} looks like an outcome and is not understood: how many requests "
            "failed is unknown"
        )
    for column in others:
        unknown = "" if readings else ": how many requests failed is unknown"
        notes.append(f"column {column!r} is not taken as the outcome of a request{unknown}")
    return tuple(readings), not strange and (bool(readings) or not others)
