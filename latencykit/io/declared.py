"""Formats as declarations: where a tool's output has each fact, and what the facts amount to.

`Text`, `Json` and `Rows` say where; `Report` has the facts of one run; `data_of` alone decides what
they amount to. What is peculiar to a tool is its `finish`: a function that corrects a `Report`.
"""

from __future__ import annotations

import math
import re
from bisect import bisect
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any

import numpy as np

from latencykit._records import record
from latencykit._text import printable
from latencykit.core.columns import coded
from latencykit.core.histogram import Histogram
from latencykit.core.run import Note, Run
from latencykit.io import build, json_text
from latencykit.io.rows import RowLayout, read_table
from latencykit.io.source import Data, ReadOptions, Series, Source
from latencykit.io.text_reports import Section, command_of, plain, text_of_run
from latencykit.units import NANOSECONDS, parse_duration

_TIMES = ("min", "max", "mean", "std", "timeout")  # in ns; of `Run`, in seconds:
_SECONDS = ("duration",)
_WHOLE = ("count", "failed", "timeouts", "dropped", "unfinished")
VALUE = r"(-?[\d.]++(?:e[-+]?\d+)?|NaN|[-+]?[Ii]nf) *+((?:10 )?[a-zµμ]{1,5})?\.?"
_POINT = re.compile(rf"^\s*+([\d.]++)(?:th|st)?[ %]*+(?:in|<=|:)? *+(?<= ){VALUE}\s*+$")
_BUCKET = re.compile(rf"^\s*{VALUE} *\[(\d+)\]\s*\|?")
_TITLE = r"^[ \t]*+[A-Z][\w ,()]*+:?[ \t]*+$"
PAIR = r"p(\d+(?:\.\d+)?): ([\d.]+)"
_STATUS = re.compile(r"^\s*\[(\w+)\]\s+(\d+) responses?")
_ERROR = re.compile(r"^\s*\[(\d+)\]\s+(\S.*)$")
TIMED_OUT = re.compile(r"timeout|timed out|deadline (?:has elapsed|exceeded)", re.IGNORECASE)
TRUNCATED = Note("the report is truncated at its end")


@record(kw_only=True)
class Report:
    """The facts of one run, whichever tool stated them; times in ns."""

    run: Run
    stats: Mapping[str, float] = field(default_factory=dict)
    points: Mapping[float, float] = field(default_factory=dict)
    count: int | None = None  # requests among the values; `failures_included` of them failed
    failures_included: int = 0
    edges: tuple[float, ...] = ()  # upper ends of buckets, and the number of values in each
    counts: tuple[int, ...] = ()
    statuses: Mapping[str, int] = field(default_factory=dict)
    errors: Mapping[str, int] = field(default_factory=dict)
    text: str = ""
    timeout: float | None = None  # ns that the tool waits for a reply, if `run` does not say so


def data_of(report: Report) -> Data:
    """Return what a report amounts to: the finest distribution that it allows."""
    run = report.run.with_notes(*build.mixed_note(report.failures_included))
    counted, count, stats = sum(report.counts), report.count, dict(report.stats)
    points = {p: value for p, value in report.points.items() if 0 < p < 100}
    if 0 < counted < (count or 0) and TRUNCATED not in run.notes:
        run = run.with_notes(f"the distribution is of the first {counted:,} of {count:,} replies")
        stats.pop("mean", None)  # the sum of all by the number of the first ones
    count = counted or None if count is None else count
    good = None if count is None else count - report.failures_included
    if (good is not None and good <= 0 and not points) or (count is None and not (points or stats)):
        return build.unanswered(run)
    data: Data
    if good and 0 < good <= counted:
        # which of the values are those of failed requests is not known: as many of each bucket
        kept = np.cumsum(report.counts) * (good / counted if report.failures_included else 1)
        counts = np.diff(np.rint(kept), prepend=0).astype(np.int64).tolist()
        data = build.histogram_of_both(points, report.edges, counts, stats, run)
    else:
        data = build.data_from_points(points, None if good is None else max(good, 0), stats, run)
    if run.timeouts and report.timeout is not None and isinstance(data, Histogram):
        late = run.timeout or report.timeout
        if run.timeout is None and run.duration is not None and run.duration * 1e9 < late:
            late = 0.0  # the run was shorter: only the slowest reply bounds the timeout
        return replace(data, censored=run.timeouts, censored_at=max(late, data.max))
    return data


def in_ns(value: str | float, unit: str) -> float:
    """Return a value in ns, by its own unit or this; oha counts in tens of seconds where slow."""
    tens, _, scale = unit.rpartition(" ")
    if re.fullmatch(VALUE.partition(" ")[0], str(value)) and not math.isfinite(float(value)):
        return math.nan
    text = str(value) if str(value)[-1:].isalpha() else f"{float(value):.17g}{scale}"
    return round(parse_duration(text) * float(tens or 1), 3)


def report_of(
    facts: Mapping[str, float | None], run: Run, finish: Callable[[Report], Report], **known: Any
) -> Data:
    """Return the data of facts by name: statistics, fields of `Run`, the count, and `lost`."""
    # That is the share (%) of the count without an answer.
    given: dict[str, Any] = {name: value for name, value in facts.items() if value is not None}
    stats = {name: given.pop(name) for name in _TIMES if name in given and name != "timeout"}
    count = given.pop("count", None)
    count = None if count is None else int(count)
    lost = round(float(given.pop("lost", 0)) * (count or 0) / 100)
    if count is not None and lost:
        given["timeouts"], count = lost, count - lost
    report = Report(run=run.replace(**given), stats=stats, count=count, **known)
    # the failures among statuses (of 400 and more: mixed) and errors, by their kinds
    run, statuses, errors = report.run, report.statuses, report.errors
    bad = {name: n for name, n in statuses.items() if not name.isdigit() or int(name) >= 400}
    mixed = sum(bad.values()) if any(name.isdigit() for name in statuses) else 0
    late = sum(n for text, n in errors.items() if TIMED_OUT.search(text))
    failed = run.failed + sum(errors.values()) - late + mixed
    run = run.replace(failed=failed, timeouts=run.timeouts + late)
    count = sum(statuses.values()) if count is None and statuses else count
    return data_of(finish(replace(report, run=run, count=count, failures_included=mixed)))


def as_it_is(report: Report) -> Report:
    """Return the report: of tools without peculiarities."""
    return report


# ------------------------------------------------------------
# Text: labels with a value behind them, and blocks of rows below a heading.


@record(kw_only=True)
class Text:
    """Where a text has its facts."""

    run: Run
    begin: str  # the first line of a run's report
    # label, or pattern with the value as its group, of each statistic or field of `Run`
    facts: Mapping[str, str]
    needed: tuple[str, ...] = ()  # facts without which the report is corrupt
    points: tuple[str, ...] = ()  # headings of the blocks, the preferred one first
    buckets: tuple[str, ...] = ()
    bucket_unit: str | None = None
    statuses: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    closing: str = ""  # a heading that every complete report has
    present: Mapping[str, str] = field(default_factory=dict)  # pattern → what is missing without it
    # names of the program, whose command line may stand above the report
    commands: tuple[str, ...] = ()
    finish: Callable[[Report], Report] = as_it_is

    def __call__(self, source: Source, _: ReadOptions) -> dict[str, Data]:
        """Read the report of a run."""
        text, unit = text_of_run(source, self.begin), self.run.unit
        part = Section(text, 1, source)
        facts = {name: _fact(part, label, name, unit) for name, label in self.facts.items()}
        for name in self.needed:
            if facts[name] is None:
                first = re.search(self.begin, text, re.MULTILINE)
                at, label = first.start() if first else None, self.facts[name].rstrip(":")
                raise part.corrupt(at, f"the summary has no {label}", "a value", "run it anew")
        for pattern, seen in self.present.items():
            if not re.search(pattern, text, re.MULTILINE):
                raise part.corrupt(None, seen, "the whole report", "did the run end?")
        own = re.search(self.begin, text, re.MULTILINE)  # above it, the end of another run's
        ends = [line.start() for line in re.finditer(_TITLE, text, re.MULTILINE)]
        cut = bool(self.closing) and not re.search(self.closing, text, re.MULTILINE)

        def rows(
            headings: tuple[str, ...], like: re.Pattern[str], *, strict: bool = True
        ) -> list[re.Match[str]]:
            """Rows below the first heading that is there; others that begin so are corrupt."""
            nonlocal cut
            for heading in headings:
                like_it = re.compile(rf"^[ \t]*{re.escape(heading)}[ \t]*$", re.MULTILINE)
                if title := like_it.search(text, own.start() if own else 0):
                    break
            else:
                return []
            start, end = title.end(), next((at for at in ends if at > title.start()), len(text))
            if end == len(text) and not text.endswith("\n"):
                last = text.rfind("\n") + 1
                if last > start and like.match(text[last:]) is None:
                    end, cut = last, True
            expected = f"a row of the {headings[-1].lower().rstrip(':')}"
            if strict and end < len(text):
                return part.matches(like, start, end, expected)
            matches = []
            for number, line in part.lines(start, end):
                if row := like.match(line):
                    matches.append(row)
                elif line.lstrip().startswith("["):
                    seen = f"{printable(line.strip(), 50)!r}"
                    raise part.source.corrupt(number, seen, expected, "run the tool anew")
            return matches

        points = rows(self.points, _POINT)
        buckets = rows(self.buckets, _BUCKET)
        statuses = rows(self.statuses, _STATUS, strict=False)
        errors: dict[str, int] = {}
        for row in rows(self.errors, _ERROR, strict=False):
            errors[row[2]] = errors.get(row[2], 0) + int(row[1])
        run = self.run.replace(command=command_of(text, *self.commands) if self.commands else None)
        unit = self.bucket_unit or self.run.unit
        data = report_of(
            facts, run.with_notes(*[TRUNCATED] if cut else ()), self.finish, text=text,
            points={float(row[1]): in_ns(row[2], row[3] or self.run.unit) for row in points},
            edges=tuple(in_ns(row[1], row[2] or unit) for row in buckets),
            counts=tuple(int(row[3]) for row in buckets),
            statuses={row[1]: int(row[2]) for row in statuses}, errors=errors,
        )  # fmt: skip
        return {"": data}


def _fact(part: Section, label: str, name: str, unit: str) -> float | None:
    """The value behind a label, by what the fact is: ns, seconds, or a number."""
    pattern = label if "(" in label else rf"^[ \t]*{re.escape(label)}\s+{VALUE}"
    match = re.search(pattern, part.text, re.MULTILINE | re.IGNORECASE)
    if match is None:
        return None
    if name in _WHOLE:
        return int(match[1].replace(",", ""))
    if name not in (*_TIMES, *_SECONDS):
        return float(match[1].replace(",", ""))
    try:
        value = in_ns(match[1], (match[2] if match.re.groups > 1 else None) or unit)
    except ValueError:
        seen = f"{printable(match[0].strip(), 50)!r}"
        raise part.corrupt(match.start(), seen, "a duration", "run the tool anew") from None
    return value / 1e9 if name in _SECONDS and math.isfinite(value) else value


# ------------------------------------------------------------
# Text: one row per series.


@record(kw_only=True)
class Lines:
    """Rows of which each has the facts of a series."""

    run: Run
    # pattern of a row, with groups named as the facts of `report_of`, in the run's unit or that of
    # ``unit``, ``p99_9``, ``name`` of the series, and ``points``: text with a `pair` for each
    row: str
    pair: str = PAIR
    # pattern of a line above rows, whose groups are theirs, too: its ``name`` stands before theirs
    title: str = r"(?!)"
    cumulative: bool = False  # of the rows of a name, or of none, the last one has all values
    last: bool = False  # of the rows without a name, and only of those
    prepare: Callable[[str], str] = plain
    finish: Callable[[Report], Report] = as_it_is

    def __call__(self, source: Source, _: ReadOptions) -> Series:
        """Read every row; without names, each is a run, or the last one has all of a run."""
        text = self.prepare(source.text())
        titles = list(re.finditer(self.title, text, re.MULTILINE))
        starts = [title.start() for title in titles]
        rows = list(re.finditer(self.row, text, re.MULTILINE))
        named = [row for row in rows if row.groupdict().get("name") or "(?P<name>" in self.title]
        if not (named or self.last or self.cumulative):
            text_of_run(source, self.row)
        if self.cumulative:
            named = list({row["name"]: row for row in named}.values())
        for row in named or rows[-1:]:
            at = bisect(starts, row.start())
            head = titles[at - 1].groupdict() if at else {}
            texts = {key: text for key, text in (head | row.groupdict()).items() if text}
            name = f"{head.get('name') or ''} {texts.pop('name', '')}"
            unit = texts.pop("unit", self.run.unit)
            points = re.findall(self.pair, texts.pop("points", ""))
            texts = {key: text.replace(",", "") for key, text in texts.items()}
            levels = build.percentiles_in(texts) | {float(p): value for p, value in points}
            facts = {
                key: in_ns(text, unit) if key in _TIMES
                else int(text) if key in _WHOLE else float(text)
                for key, text in texts.items() if build.percentile_named(key) is None
            }  # fmt: skip
            levels = {p: in_ns(value, unit) for p, value in levels.items()}
            data = report_of(facts, self.run, self.finish, text=row[0], points=levels)
            yield " ".join(name.split()) if len(named) > 1 or self.cumulative else "", data


# ------------------------------------------------------------
# JSON: a path to each fact.


@record(kw_only=True)
class Json:
    """Where a JSON document has its facts."""

    run: Run
    # path of each statistic (in the run's unit) or field of `Run`, such as ``result.latency.mean``
    facts: Mapping[str, str]
    each: str = ""  # path of a list of objects, a series each, and of the series' name in them
    name: str = ""
    needed: tuple[str, ...] = ()  # objects without which it is not this tool's
    points: str = ""  # paths of objects (p99 → value, edge → count, status → count, text → count)
    levels: Mapping[float, str] = field(default_factory=dict)  # percentile → its path
    buckets: str = ""
    statuses: str = ""
    errors: str = ""
    begin: str = ""
    finish: Callable[[Report, Any], Report] = lambda report, _: report

    def __call__(self, source: Source, _: ReadOptions) -> Series:
        """Read the document."""
        if self.begin:
            text_of_run(source, self.begin)
        record = json_text.load(source, after_noise=bool(self.begin))
        for path in self.needed:
            json_text.entry(record, path, source)
        for part in (at(record, self.each) or []) if self.each else [record]:
            yield str(at(part, self.name) or ""), self.data(part)

    def data(self, record: Any) -> Data:
        """Return what one object amounts to."""
        found = {name: at(record, path) for name, path in self.facts.items()}
        facts = {
            name: in_ns(value, self.run.unit) if name in _TIMES
            else int(value) if name in _WHOLE else value
            for name, value in found.items() if value is not None
        }  # fmt: skip
        buckets = at(record, self.buckets) or {}
        marks = sorted(
            (in_ns(mark, self.run.unit), int(number)) for mark, number in buckets.items()
        )
        points = {
            f"p{str(key).removeprefix('p')}": v
            for key, v in (at(record, self.points) or {}).items()
        }
        points |= {f"p{level}": at(record, path) for level, path in self.levels.items()}
        numbers = {key: v for key, v in points.items() if isinstance(v, (int, float))}
        return report_of(
            facts, self.run, lambda report: self.finish(report, record),
            points={p: in_ns(v, self.run.unit) for p, v in build.percentiles_in(numbers).items()},
            edges=tuple(mark for mark, _ in marks), counts=tuple(number for _, number in marks),
            statuses={k: int(n) for k, n in (at(record, self.statuses) or {}).items()},
            errors={str(k): int(n) for k, n in (at(record, self.errors) or {}).items()},
        )  # fmt: skip


def at(record: Any, path: str) -> Any:
    """Return what lies at a path, such as ``result.errors``; None where nothing does."""
    for key in path.split(".") if path else ():
        record = record.get(key) if isinstance(record, dict) else None
    return record if path else None


# ------------------------------------------------------------
# One row per request.


@record(kw_only=True)
class Rows:
    """Which columns of a table have the facts of each request."""

    run: Run
    columns: str  # the header, joined with `sep`, of a table that has none of its own
    duration: str  # columns of the latency in the run's unit, and of when the request began
    start: str = ""
    end: str = ""  # or of when it ended
    clock: str = ""  # the unit of these, where it is another
    sep: str = ","
    status: str = ""  # column of HTTP's status, of which all but 100 to 399 are failures
    operation: str = ""  # columns of words: each operation is a series
    connection: str = ""
    numbers: tuple[str, ...] = ()  # further columns that `finish` takes, if they are there
    words: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    most: int = 0  # the number of rows after which the tool writes no more, and what to say then
    most_note: str = ""
    finish: Callable[[Any, dict[str, Any], Run], tuple[dict[str, Any], Run]] = (
        lambda _, given, run: (given, run)
    )

    def __call__(self, source: Source, options: ReadOptions) -> dict[str, Data]:
        """Read every request."""
        first = source.head.lines[0].strip()
        headed = self.duration in first and not first[:1].isdigit()
        escaped = re.escape(self.duration)
        beside = re.search(rf"{escaped}([,;\t|])|([,;\t|]){escaped}", first) if headed else None
        sep = (beside[1] or beside[2]) if beside else self.sep
        columns = tuple(first.split(sep) if headed else self.columns.split(self.sep))
        numbers = [self.duration, self.start, self.end, self.status, *self.numbers]
        words = [self.operation, self.connection, *self.words]
        numbers, words = ([name for name in names if name in columns] for names in (numbers, words))
        used = {*numbers, *words}
        further = [name for name in columns if name not in used] if options.columns else []
        units = dict.fromkeys((self.start, self.end), self.clock or self.run.unit)
        units[self.duration] = self.run.unit
        layout = RowLayout(
            columns, tuple(numbers), (*words, *further), sep, skip=int(headed),
            optional=self.numbers, na=("null",),
            largest={name: 9.2e18 / NANOSECONDS[unit] for name, unit in units.items()},
        )  # fmt: skip
        frame, notes = read_table(source, options, layout)
        return self.data(frame, (*self.notes, *notes), options)

    def data(
        self, frame: dict[str, Any], notes: tuple[str, ...], options: ReadOptions
    ) -> dict[str, Data]:
        """Return the series of a table's rows."""
        clock, duration = self.clock or self.run.unit, frame[self.duration]
        given: dict[str, Any] = {"duration": build.whole_nanoseconds(duration, self.run.unit)}
        if self.start in frame:
            given["start"] = build.whole_nanoseconds(frame[self.start], clock)
        if self.end in frame:
            given["start"] = build.whole_nanoseconds(frame[self.end], clock) - given["duration"]
        if (status := frame.get(self.status)) is not None:
            given["outcome"] = build.outcome_codes(error=(status < 100) | (status >= 400))
        if self.connection in frame:
            given["connection"] = frame[self.connection].codes
        names: list[str] = []
        if self.operation in frame:
            given["code"], names = coded(frame[self.operation])
        if options.columns:
            own = (self.duration, self.start, self.end)
            given["columns"] = {
                name: build.further_cells([cells])
                for name, cells in frame.items()
                if name not in own
            }
        if self.most and given["duration"].size == self.most:
            notes += (self.most_note,)
        given, run = self.finish(frame, given, self.run.replace(unit_from="format", notes=notes))
        return build.samples_of(given, run, options, names, given.pop("apart", ()))
