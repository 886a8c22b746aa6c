"""Rows into data types: samples, or counts where a histogram of a long table is requested."""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from latencykit._text import format_items, printable
from latencykit._typing import Ints
from latencykit.core.blocks import narrowed
from latencykit.core.columns import Cells, Words, coded, matching, select
from latencykit.core.columns import Columns as FurtherColumns
from latencykit.core.histogram import Histogram, merge_histograms
from latencykit.core.run import Corrected, Loop, Note, Run
from latencykit.core.samples import OUTCOMES, Samples
from latencykit.io.build import EMPTY, FINE, base_unit, data_from_values, further_cells, unit_in
from latencykit.io.raw.aggregates import bounded, counted_data, level_of, percentile_data
from latencykit.io.raw.cells import Times, times_of
from latencykit.io.raw.columns import ColumnPlan
from latencykit.io.raw.outcomes import combined, outcome_of
from latencykit.io.rows import Table
from latencykit.io.source import Data, Locate, ReadOptions, Source, refuse_rows
from latencykit.units import NANOSECONDS

Columns = dict[str, NDArray[Any]]

KEPT = 2_000_000
"""Rows that are kept as samples where a histogram would do."""

_MOST_TAGS = 200
_GUARD = re.compile(r"(^|;)'(?=[=+\-@＝＋－＠])")  # as `guarded` writes cells
_MOST_EDGES = 1_000_000
_FACTS = ("failed", "timeouts", "dropped", "unfinished")
_FURTHER = "\0further"  # a name that no role has


@dataclass
class _Words:
    """Numbers for words, the same in every chunk."""

    names: list[str] = field(default_factory=list)
    known: dict[str, int] = field(default_factory=dict)

    def codes(self, cells: Cells) -> NDArray[np.int64]:
        codes, distinct = coded(cells)
        table = [self._code(word.strip()) for word in distinct] + (
            [self._code("")] if (codes < 0).any() else []
        )
        return np.asarray(np.array(table or [0], np.int64)[codes])

    def _code(self, word: str) -> int:
        name = "" if word in EMPTY else _GUARD.sub(r"\1", word)
        if name not in self.known:
            self.known[name] = len(self.names)
            self.names.append(name)
        return self.known[name]


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
        plan, times = self.plan, self._times(frame)
        outcome = np.zeros(len(frame), np.int8)
        if plan.outcomes:
            read = [outcome_of(frame[reading.column], reading) for reading in plan.outcomes]
            self.strange |= dict.fromkeys(word for _, strange in read for word in strange)
            outcome, silent = combined([codes for codes, _ in read])
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

    def _times(self, frame: Table) -> dict[str, Times]:
        """All columns of times; rows in which one cannot be read raise or are reported."""
        plan = self.plan
        moments = {
            role: times_of(frame[column.column], column.kind, column.unit, stamps=True)
            for role, column in plan.moments.items()
        }
        if plan.ended is None:
            times = {"duration": self._durations(frame)}
        else:
            ended = times_of(frame[plan.duration], plan.ended.kind, plan.ended.unit, stamps=True)
            lasted = np.where(ended.missing, 0, ended.ns - moments["start"].ns)
            times = {"duration": ended._replace(ns=lasted)}
        if plan.shape is not None and plan.shape.low is not None:
            times["low"] = times_of(frame[plan.shape.low.column], plan.kind, plan.unit)
        if plan.shape is not None and plan.shape.count is not None:
            times["count"] = times_of(frame[plan.shape.count], "number", "none")
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
        return times

    def _durations(self, frame: Table) -> Times:
        """Latencies, each in the unit of its row where a column has it; inf for open buckets."""
        plan = self.plan
        cells = frame[plan.duration]
        if plan.unit_column is not None:
            codes, distinct = coded(frame[plan.unit_column])
            factors = np.array(
                [NANOSECONDS.get(unit_in(word) or "", np.nan) for word in distinct] + [np.nan]
            )[codes]
            bare = times_of(cells, plan.kind, "none")
            ns = np.round(bare.ns * np.nan_to_num(factors), 3)
            return Times(ns, bare.missing, bare.corrupt | (np.isnan(factors) & ~bare.missing))
        if plan.shape is not None and plan.shape.edge in ("upper", "both"):
            durations = times_of(bounded(cells), plan.kind, plan.unit)
            ends = np.where(durations.missing, np.inf, durations.ns)
            return Times(ends, np.zeros(len(frame), np.bool_), durations.corrupt)
        durations = times_of(cells, plan.kind, plan.unit)
        if plan.shape is not None and plan.shape.level is not None:
            times = ~matching(frame[plan.shape.level], lambda text: level_of(text) == "count")
            durations = Times(durations.ns, durations.missing & times, durations.corrupt & times)
        return durations

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

    def provenance(self, series: str | None = None) -> dict[str, str]:
        """Return the facts about the measurement on which all rows, or those of a series, agree."""
        stated: dict[str, set[str]] = {}
        for (key, name), words in self.stated.items():
            if series in (None, key):
                stated[name] = stated.get(name, set()) | words
        single = {name: min(words) for name, words in stated.items() if len(words) == 1}
        known = {"tool": printable(single.get("tool", ""), 60)}
        for name, type_ in (("loop", Loop), ("corrected", Corrected)):
            known[name] = single[name] if single.get(name) in get_args(type_) else ""
        return {name: fact for name, fact in known.items() if fact}

    def no_latencies(self) -> Exception:
        """Return the error of a table without a usable row."""
        seen = [f"column {self.plan.duration!r} contains no latencies", *self.notes()]
        return self.source.corrupt(None, "; ".join(seen), "", "")


def gathered(
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
    for code in np.unique(series).tolist():
        own = series == code
        own_run = run.replace(**rows.provenance(rows.series.names[code]))
        data = _data({name: column[own] for name, column in table.items()}, own_run, rows)
        if isinstance(data, Samples):
            data = data.with_columns(FurtherColumns(further).select(own))
        series_data[rows.series.names[code]] = data
    return series_data


def _run(plan: ColumnPlan, rows: _Rows) -> Run:
    """Facts of the measurement; requests without a latency are in it if there is one operation."""
    single = len(rows.tags.names) < 2 and len(rows.series.names) < 2
    lost = {_FACTS[code - 1]: number for code, number in rows.lost.items() if single}
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
    series_data: dict[str, Data] = {}
    for place, columns in _grouped(table):
        label = _label(place, rows)

        def fail(seen: str, label: str = label) -> Exception:
            seen = f"{label}: {seen}" if label else seen
            return rows.source.corrupt(None, seen, "", "look at the rows of the table")

        own = run.replace(
            **rows.provenance(rows.series.names[place[0]] if rows.series.names else "")
        )
        outcome = columns.pop("outcome", None)
        if shape.kind == "percentiles":
            try:
                levels = [rows.levels.names[code] for code in columns["level"].tolist()]
                texts = [rows.texts.names[code] for code in columns["text"].tolist()]
                series_data[label] = percentile_data(columns, levels, texts, shape, own)
            except ValueError as error:
                raise fail(str(error)) from None
            continue
        if outcome is not None:
            lost = np.bincount(outcome, np.rint(columns["count"]), len(OUTCOMES)).astype(np.int64)
            own = _with_outcomes(own, lost, operator.add)
            columns = {name: column[outcome == 0] for name, column in columns.items()}
        if not columns["count"].any():
            raise fail("no request was counted")
        series_data[label] = counted_data(columns, shape, own, fail)
    return series_data


def _data(columns: Columns, run: Run, rows: _Rows) -> Data:
    """Samples; or an exact histogram where rounding to nanoseconds would lose too much."""
    duration, unit = columns["duration"], rows.plan.unit
    outcome = columns.get("outcome")
    counts = None if outcome is None else np.bincount(outcome, minlength=len(OUTCOMES))
    if counts is not None and any(getattr(run, name) for name in _FACTS):
        run = _with_outcomes(run, counts, operator.add)
    if duration.dtype.kind == "f" and (duration != np.rint(duration)).any():
        good = duration if outcome is None else duration[outcome == 0]
        if unit == "none":
            return Histogram.of(good, unit="none", run=_with_outcomes(run, counts, max))
        if "start" not in columns and good.size and good.size <= _MOST_EDGES and good.min() < FINE:
            return data_from_values(good, _with_outcomes(run, counts, max))
    arrays: dict[str, Any] = dict(columns)
    if "tag" in arrays:
        arrays["tag"] = Words(arrays["tag"], np.array(rows.tags.names, object))
        if len(rows.tags.names) > _MOST_TAGS:
            del arrays["tag"]
            run = run.with_notes(
                f"column {rows.plan.tag!r} has {len(rows.tags.names):,} different values: too "
                "many for operations"
            )
    starts, epoch = arrays.get("start"), None
    if starts is not None and starts.size and starts.min() >= 10**17:  # points in time
        epoch = float(starts.min()) / 1e9
    return Samples(**arrays, unit=base_unit(unit), run=run.replace(start=epoch))


def _with_outcomes(run: Run, counts: Ints | None, join: Callable[[int, int], int]) -> Run:
    """The run with its numbers of failures joined with the counts of each outcome."""
    if counts is None:
        return run
    pairs = zip(_FACTS, counts.tolist()[1:], strict=True)
    return run.replace(**{name: join(getattr(run, name), count) for name, count in pairs})


def _counted(parts: Iterator[Columns], rows: _Rows, notes: list[str]) -> dict[str, Data]:
    """Histograms by series and tag, folded chunk by chunk; memory does not grow with the table."""
    totals: dict[tuple[int, int], Histogram] = {}
    begin = first = np.iinfo(np.int64).max
    last = 0
    for part in parts:
        if "start" in part and part["start"].size:
            begin = min(begin, int(part["start"].min()))
            first = min(first, begin, int(part.get("intended", part["start"]).min()))
            last = max(last, int((part["start"] + part["duration"].astype(np.int64)).max()))
        if len(rows.tags.names) > _MOST_TAGS:
            part.pop("tag", None)
        for place, group in _grouped(part):
            counts = _histogram(group, rows)
            totals[place] = merge_histograms([totals[place], counts]) if place in totals else counts
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
    for place, total in totals.items():
        tag = _tag(place, rows)
        facts = {name: getattr(total.run, name) + getattr(run, name) for name in _FACTS}
        series[_label(place, rows)] = total.with_run(tags=(tag,) if tag else (), **facts, **known)
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


def _histogram(columns: Columns, rows: _Rows) -> Histogram:
    """One chunk's counts."""
    unit, measure = rows.plan.unit, rows.options.measure
    if unit == "none" and "intended" not in columns:
        outcome, good, run = columns.get("outcome"), columns["duration"], Run(unit="none")
        if outcome is not None:
            run = _with_outcomes(run, np.bincount(outcome, minlength=len(OUTCOMES)), max)
            good = good[outcome == 0]
        return Histogram.of(good.astype(np.float64), unit="none", run=run)
    samples = Samples(**columns, unit=base_unit(unit), run=Run(unit=unit))
    counted = (samples if measure is None else samples.measured(measure)).histogram()
    return replace(counted, run=counted.run.replace(duration=None))


def _tag(place: tuple[int, int], rows: _Rows) -> str:
    names = rows.tags.names
    return names[place[1]] if names and len(names) <= _MOST_TAGS else ""


def _label(place: tuple[int, int], rows: _Rows) -> str:
    series = rows.series.names[place[0]] if rows.series.names else ""
    tag = _tag(place, rows)
    return f"{series}:{tag}" if series and tag and series != tag else series or tag
