"""Rows into data types: samples, or counts where a histogram of a long table is requested."""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from latencykit._text import format_items, printable
from latencykit._typing import AnyArray
from latencykit.core.blocks import narrowed
from latencykit.core.columns import Cells, Words, coded, matching, select
from latencykit.core.columns import Columns as FurtherColumns
from latencykit.core.histogram import Histogram, merge_histograms
from latencykit.core.run import FAILURES, Corrected, Loop, Note, Run, failure_counts
from latencykit.core.samples import OUTCOMES, Samples, counted
from latencykit.io.build import EMPTY, FINE, base_unit, data_from_values, further_cells, unit_in
from latencykit.io.raw.aggregates import bounded, counted_data, level_of, percentile_data
from latencykit.io.raw.cells import Times, times_of
from latencykit.io.raw.columns import ColumnPlan
from latencykit.io.raw.outcomes import UNKNOWN, combined, failure_in, outcome_of
from latencykit.io.rows import Table
from latencykit.io.source import Data, Locate, ReadOptions, Source, refuse_rows
from latencykit.units import NANOSECONDS

Columns = dict[str, NDArray[Any]]

KEPT = 2_000_000
"""Rows that are kept as samples where a histogram would do."""

_MOST_TAGS = 200
_GUARD = re.compile(r"(^|;)'(?=[=+\-@＝＋－＠])")  # as `guarded` writes cells
_MOST_EDGES = 1_000_000
_FURTHER = "\0further"  # a name that no role has
_AT_ONCE = 16  # histograms that are added up


class _Words(dict[str, int]):
    """Numbers for words, the same in every chunk."""

    def codes(self, cells: Cells) -> NDArray[np.int64]:
        codes, distinct = coded(cells)
        words = [*map(str.strip, distinct), *[""] * bool((codes < 0).any())]
        names = ("" if word in EMPTY else _GUARD.sub(r"\1", word) for word in words)
        table = [self.setdefault(name, len(self)) for name in names]
        if table != [*range(len(distinct))]:
            codes = np.array(table or [0])[codes]
        return np.asarray(codes, np.int64)


class _Rows:
    """Turns chunks of cells into columns of good numbers, and tallies what is left out."""

    def __init__(
        self, plan: ColumnPlan, options: ReadOptions, source: Source, locate: Locate
    ) -> None:
        self.plan, self.options, self.source, self.locate = plan, options, source, locate
        self.tally: Counter[str] = Counter()
        self.lost: Counter[int] = Counter()  # outcome → requests without a latency
        self.strange: dict[str, None] = {}
        self.tags, self.series, self.connections = _Words(), _Words(), _Words()
        self.levels, self.texts = _Words(), _Words()  # of percentiles, and their values as written
        self.stated: dict[tuple[str, str], set[str]] = {}  # series, fact → what rows say

    def columns(self, frame: Table) -> Columns:
        """Return the columns of `Samples` (tags and series as codes) of the usable rows."""
        plan, (times, outcome) = self.plan, self._times(frame)
        if plan.outcomes:
            read = [outcome_of(frame[reading.column], reading) for reading in plan.outcomes]
            self.strange |= dict.fromkeys(word for _, strange in read for word in strange)
            outcome[outcome == 0] = UNKNOWN
            outcome, silent = combined([*(codes for codes, _ in read), outcome])
            self.tally["silent"] += silent
        bad = np.logical_or.reduce([column.corrupt for column in times.values()])
        empty, negative = times["duration"].missing, times["duration"].ns < 0
        unstamped = np.logical_or.reduce([column.missing for column in times.values()]) & ~empty
        for name in plan.provenance:
            keys, groups = (np.zeros(1, np.int64), [""])
            if plan.series is not None:
                keys, groups = coded(frame[plan.series])
            codes, texts = coded(frame[name])
            both = np.stack(np.broadcast_arrays(keys, codes), axis=1)
            for key, code in np.unique(both, axis=0).tolist():
                if min(key, code) >= 0:
                    self.stated.setdefault((groups[key], name), set()).add(texts[code])
        out = bad | empty | negative | unstamped
        if not out.any():
            keep = slice(None)
        else:
            lost = empty & ~bad & (outcome != 0)
            self.lost.update(outcome[lost].tolist())
            self.tally["missing"] += int((empty & ~bad & ~lost).sum())
            self.tally["negative"] += int((negative & ~bad).sum())
            self.tally["unstamped"] += int((unstamped & ~bad & ~negative).sum())
            keep = ~out
        columns: Columns = {role: column.ns[keep] for role, column in times.items()}
        if "end" in columns:
            ended = columns.pop("end")
            columns["start"] = ended - np.rint(columns["duration"]).astype(np.int64)
        if plan.outcomes:
            columns["outcome"] = outcome[keep]
        if plan.connection is not None:
            cells = frame[plan.connection]
            if plan.connection_kind == "number":
                numbers = times_of(cells, "number", "none").ns.astype(np.int64)
            else:
                numbers = self.connections.codes(cells)
            columns["connection"] = numbers[keep]
        for name, column, words in (
            ("tag", plan.tag, self.tags),
            ("series", plan.series, self.series),
        ):
            if column is not None:
                columns[name] = words.codes(frame[column])[keep]
        if plan.further:
            further: Any = {name: select(frame[name], keep) for name in plan.further}
            columns[_FURTHER] = further
        if plan.shape is not None and plan.shape.level is not None:
            columns["level"] = self.levels.codes(frame[plan.shape.level])[keep]
            columns["text"] = self.texts.codes(frame[plan.duration])[keep]
        self.tally["rows"] += len(columns["duration"])
        return columns

    def _times(self, frame: Table) -> tuple[dict[str, Times], NDArray[np.int8]]:
        """All columns of times, and the outcomes that stand in place of latencies (``timeout``)."""
        # Rows in which a time cannot be read raise or are reported.
        plan = self.plan
        moments = {
            role: times_of(frame[column.column], column.kind, column.unit, stamps=True)
            for role, column in plan.moments.items()
        }
        if plan.ended is not None:
            ended = times_of(frame[plan.duration], plan.kind, plan.ended, stamps=True)
            lasted = np.where(ended.missing, 0, ended.ns - moments["start"].ns)
            times = {"duration": ended._replace(ns=lasted)}
        elif plan.unit_column is not None:  # each in the unit of its row
            codes, distinct = coded(frame[plan.unit_column])
            units = [NANOSECONDS.get(unit_in(word) or "", np.nan) for word in distinct]
            factors = np.array([*units, np.nan])[codes]
            bare = times_of(frame[plan.duration], plan.kind, "none")
            corrupt = bare.corrupt | (np.isnan(factors) & ~bare.missing)
            ns = np.round(bare.ns * np.nan_to_num(factors), 3)
            times = {"duration": Times(ns, bare.missing, corrupt)}
        else:
            times = {"duration": times_of(frame[plan.duration], plan.kind, plan.unit)}
        if plan.shape is not None and plan.shape.edge in ("upper", "both"):  # inf: an open bucket
            ends = times_of(bounded(frame[plan.duration]), plan.kind, plan.unit)
            ns = np.where(ends.missing, np.inf, ends.ns)
            times = {"duration": Times(ns, np.zeros(len(frame), np.bool_), ends.corrupt)}
        elif plan.shape is not None and plan.shape.level is not None:
            timed = ~matching(frame[plan.shape.level], lambda text: level_of(text) == "count")
            given = times["duration"]
            missing, corrupt = given.missing & timed, given.corrupt & timed
            times = {"duration": given._replace(missing=missing, corrupt=corrupt)}
        if plan.shape is not None and plan.shape.low is not None:
            times["low"] = times_of(frame[plan.shape.low.column], plan.kind, plan.unit)
        if plan.shape is not None and plan.shape.count is not None:
            times["count"] = times_of(frame[plan.shape.count], "number", "none")
        failure = np.zeros(len(frame), np.int8)
        cells, given = frame[plan.duration], times["duration"]
        if plan.shape is None and isinstance(cells, Words) and given.corrupt.any():
            failures = [*(failure_in(name or "") for name in cells.names.tolist()), 0]
            failure[given.corrupt] = np.array(failures, np.int8)[cells.codes[given.corrupt]]
            missing, corrupt = given.missing | (failure > 0), given.corrupt & (failure == 0)
            times["duration"] = given._replace(missing=missing, corrupt=corrupt)
        times |= moments
        reported = np.zeros(len(frame), np.bool_)
        for role, column in times.items():
            wrong = np.flatnonzero(column.corrupt & ~reported)
            if wrong.size and frame.unended:
                self.tally["cut"] += 1
            elif wrong.size:
                what = "latency" if role == "duration" else role
                expected = "a duration" if role == "duration" else "a time"
                rows = frame.first + (wrong if frame.rows is None else frame.rows[wrong])
                refuse_rows(
                    rows.tolist(), self.locate, self.source, self.options,
                    f"this row has no {what} that can be read", expected,
                )  # fmt: skip
            reported |= column.corrupt
        return times, failure

    def notes(self) -> list[str]:
        """Return one sentence per kind of row that was left out."""
        counted = (
            (self.tally["negative"], "negative duration", "left out: the clock went backwards"),
            (self.tally["cut"], "", Note("the last line is truncated and was left out")),
            (self.tally["missing"], "row", "without a latency left out"),
            (self.tally["unstamped"], "row", "without a start or an intended start left out"),
            (sum(self.lost.values()), "failed request", "without a latency counted apart"),
            (self.tally["silent"], "row", "with an empty outcome counted as failures"),
        )
        notes = [
            f"{format_items(number, what)} {fate}" if what else fate
            for number, what, fate in counted
            if number
        ]
        if self.strange:
            words = ", ".join(printable(word, 20) for word in list(self.strange)[:5])
            notes.append(f"unknown outcomes count as failures: {words}")
        return notes

    def provenance(self, series: str | None = None) -> dict[str, Any]:
        """Return the facts about the measurement on which all rows, or those of a series, agree."""
        stated: dict[str, set[str]] = {}
        for (key, name), words in self.stated.items():
            if series in (None, key):
                stated[name] = stated.get(name, set()) | words
        single = {name: min(words) for name, words in stated.items() if len(words) == 1}
        known = {"tool": printable(single.get("tool", ""), 60)}
        for name, type_ in (("loop", Loop), ("corrected", Corrected)):
            known[name] = single[name] if single.get(name) in get_args(type_) else ""
        lost = {"failures_known": False} if single.get("failures_known") == "no" else {}
        return {name: fact for name, fact in known.items() if fact} | lost

    def no_latencies(self) -> Exception:
        """Return the error of a table without a usable row."""
        seen = [f"column {self.plan.duration!r} contains no latencies", *self.notes()]
        return self.source.corrupt(None, "; ".join(seen), "", "")


def build_data(
    frames: Iterable[Table],
    plan: ColumnPlan,
    options: ReadOptions,
    source: Source,
    locate: Locate,
    notes: list[str],
) -> dict[str, Data]:
    """Return the series of a table that comes in chunks."""
    rows = _Rows(plan, options, source, locate)
    frames = (frame for frame in frames if len(frame))  # an empty one may be of another dtype
    if plan.shape is not None:
        return _aggregated(frames, rows, notes)
    parts = (rows.columns(frame) for frame in frames)
    kept: list[Columns] = []
    for part in parts:
        kept.append(part)
        if options.counted and rows.tally["rows"] > KEPT:
            return _counted(chain(kept, parts), rows, notes)
    if not rows.tally["rows"] and not rows.lost:
        raise rows.no_latencies()
    tables: list[Any] = [part.pop(_FURTHER) for part in kept] if plan.further else []
    further = {
        name: further_cells([part[name] for part in tables if part[name].shape[0]])
        for name in plan.further
        if name not in rows.provenance()
    }
    table = {name: np.concatenate([part[name] for part in kept]) for name in kept[0]}
    run = _run(plan, rows).with_notes(*plan.notes, *notes, *rows.notes())
    series = table.pop("series", None)
    if series is None:
        data = _data(table, run, rows)
        columns = FurtherColumns(further)
        return {"": data.with_columns(columns) if isinstance(data, Samples) else data}
    series_data: dict[str, Data] = {}
    names = list(rows.series)
    for code in np.unique(series).tolist():
        own, name = series == code, names[code]
        own_run = run.replace(**rows.provenance(name))
        data = _data({role: column[own] for role, column in table.items()}, own_run, rows)
        if isinstance(data, Samples):
            data = data.with_columns(FurtherColumns(further).select(own))
        series_data[name] = data
    return series_data


def _run(plan: ColumnPlan, rows: _Rows) -> Run:
    """Facts of the measurement; requests without a latency are in it if there is one operation."""
    single = len(rows.tags) < 2 and len(rows.series) < 2
    lost = {FAILURES[code - 1]: number for code, number in rows.lost.items() if single}
    return Run(
        unit=plan.unit, unit_from=plan.unit_from, failures_known=plan.failures_known
    ).replace(**lost, **rows.provenance())


def _aggregated(frames: Iterable[Table], rows: _Rows, notes: list[str]) -> dict[str, Data]:
    """Tables of counts and of percentiles: one series per operation that a column names."""
    plan, shape = rows.plan, rows.plan.shape
    assert shape is not None
    kept = [rows.columns(frame) for frame in frames]
    if not kept or not rows.tally["rows"]:
        raise rows.no_latencies()
    table = {name: np.concatenate([part[name] for part in kept]) for name in kept[0]}
    run = _run(plan, rows).with_notes(*plan.notes, *notes, *rows.notes())
    named, names = _labels(rows), list(rows.series)
    levels, texts = list(rows.levels), list(rows.texts)
    series_data: dict[str, Data] = {}
    for place, columns in _grouped(table):
        label = named(place)[1]
        own = run.replace(**rows.provenance(names[place[0]] if names else ""))
        outcome = columns.pop("outcome", None)
        try:
            if shape.kind == "percentiles":
                pairs = zip(columns["level"].tolist(), columns["text"].tolist(), strict=True)
                cells = [(levels[level], texts[text]) for level, text in pairs]
                series_data[label] = percentile_data(columns, cells, shape, own)
                continue
            if outcome is not None:
                own = _failed(own, outcome, np.rint(columns["count"]), more=True)
                columns = {name: column[outcome == 0] for name, column in columns.items()}
            series_data[label] = counted_data(columns, shape, own)
        except ValueError as error:
            seen = f"{label}: {error}" if label else str(error)
            raise rows.source.corrupt(None, seen, "", "look at the rows of the table") from None
    return series_data


def _data(columns: Columns, run: Run, rows: _Rows) -> Data:
    """Samples; or an exact histogram where rounding to nanoseconds would lose too much."""
    duration, unit = columns["duration"], rows.plan.unit
    outcome = columns.get("outcome")
    if any(failure_counts(run).values()):
        run = _failed(run, outcome, more=True)
    if duration.dtype.kind == "f" and (duration != np.rint(duration)).any():
        good = duration if outcome is None else duration[outcome == 0]
        if unit == "none":
            return _plain_numbers(good, _failed(run, outcome))
        if "start" not in columns and good.size and good.size <= _MOST_EDGES and good.min() < FINE:
            return data_from_values(good, _failed(run, outcome))
    arrays: dict[str, Any] = dict(columns)
    if "tag" in arrays:
        arrays["tag"] = Words(arrays["tag"], np.array([*rows.tags], object))
        if len(rows.tags) > _MOST_TAGS:
            del arrays["tag"]
            run = run.with_notes(
                f"column {rows.plan.tag!r} has {len(rows.tags):,} different values: too "
                "many for operations"
            )
    starts, epoch = arrays.get("start"), None
    if starts is not None and starts.size and starts.min() >= 10**17:  # points in time
        epoch = float(starts.min()) / 1e9
    return Samples(**arrays, unit=base_unit(unit), run=run.replace(start=epoch))


def _plain_numbers(values: AnyArray, run: Run) -> Histogram:
    """Numbers without a unit, with their exact ends."""
    ends = {"min": float(values.min()), "max": float(values.max())} if values.size else {}
    return replace(Histogram.of(values, unit="none", run=run), reported_stats=ends)


def _failed(
    run: Run, outcome: AnyArray | None, weights: AnyArray | None = None, *, more: bool = False
) -> Run:
    """The run with its numbers of failures: those of the outcomes, or its own; `more`: both."""
    if outcome is None:
        return run
    join = operator.add if more else max
    counts = np.bincount(outcome, weights, len(OUTCOMES)).astype(np.int64).tolist()
    return run.replace(
        **{name: join(getattr(run, name), n) for name, n in zip(FAILURES, counts[1:], strict=True)}
    )


def _counted(parts: Iterator[Columns], rows: _Rows, notes: list[str]) -> dict[str, Data]:
    """Histograms by series and tag, folded chunk by chunk; memory does not grow with the table."""
    found: dict[tuple[int, int], list[Histogram]] = {}
    begin = first = np.iinfo(np.int64).max
    last = 0
    unit, measure = rows.plan.unit, rows.options.measure
    for part in parts:
        if "start" in part and part["start"].size:
            begin = min(begin, int(part["start"].min()))
            first = min(first, begin, int(part.get("intended", part["start"]).min()))
            last = max(last, int((part["start"] + part["duration"].astype(np.int64)).max()))
            if "intended" not in part and measure is None:
                del part["start"]  # counts do not tell it
        if len(rows.tags) > _MOST_TAGS:
            part.pop("tag", None)
        for place, group in _grouped(part):
            outcome, good = group.get("outcome"), group["duration"]
            if unit == "none" and "intended" not in group:
                good = (good if outcome is None else good[outcome == 0]).astype(np.float64)
                counts = _plain_numbers(good, _failed(Run(unit="none"), outcome))
            else:
                samples = Samples(**group, unit=base_unit(unit), run=Run(unit=unit))
                counts = counted(samples if measure is None else samples.measured(measure))
                counts = replace(counts, run=counts.run.replace(duration=None))
            waiting = found.setdefault(place, [])
            waiting.append(counts)
            if len(waiting) == _AT_ONCE:
                waiting[:] = [merge_histograms(waiting)]
    known: dict[str, Any] = {
        "start": begin / 1e9 if 10**17 <= begin < last else None,
        "duration": (last - first) / 1e9 if last > first else None,
    }
    folded = (
        f"{format_items(rows.tally['rows'], 'row')} were counted as they were read: "
        "single requests are not kept"
    )
    run = _run(rows.plan, rows)
    known |= {name: getattr(run, name) for name in ("unit", "unit_from", "failures_known")}
    known["notes"] = (*rows.plan.notes, *notes, *rows.notes(), folded)
    series: dict[str, Data] = {}
    named = _labels(rows)
    for place, waiting in found.items():
        total = merge_histograms(waiting)
        tag, label = named(place)
        facts = {name: getattr(total.run, name) + getattr(run, name) for name in FAILURES}
        series[label] = total.with_run(tags=(tag,) if tag else (), **facts, **known)
    return series


def _grouped(columns: Columns) -> Iterator[tuple[tuple[int, int], Columns]]:
    """Yield codes of series and tag, ascending, and the rows that have them."""
    series, tag = (columns.pop(name, np.zeros(1, np.int64)) for name in ("series", "tag"))
    kinds = int(tag.max(initial=0)) + 1
    key = narrowed(series * kinds + tag)  # which is sorted sooner
    if not (key != key[:1]).any():
        yield from ((divmod(code, kinds), columns) for code in key[:1].tolist())
        return
    order = np.argsort(key, kind="stable")
    key, columns = key[order], {name: column[order] for name, column in columns.items()}
    ends = [*(np.flatnonzero(key[1:] != key[:-1]) + 1).tolist(), key.size]
    for begin, end in zip([0, *ends[:-1]], ends, strict=True):
        group = {name: column[begin:end] for name, column in columns.items()}
        yield divmod(int(key[begin]), kinds), group


def _labels(rows: _Rows) -> Callable[[tuple[int, int]], tuple[str, str]]:
    """Return what gives the tag of a group, and its name, by the codes of its series and tag."""
    every, tags = list(rows.series), list(rows.tags) if len(rows.tags) <= _MOST_TAGS else []

    def named(place: tuple[int, int]) -> tuple[str, str]:
        series = every[place[0]] if every else ""
        tag = tags[place[1]] if tags else ""
        return tag, f"{series}:{tag}" if series and tag and series != tag else series or tag

    return named
