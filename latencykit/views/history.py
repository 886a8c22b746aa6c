"""Runs judged by a history, and its trends: records, tables, a comment, the interactive page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypedDict

import numpy as np

from latencykit._text import brief_list, esc, format_items, printable, prose
from latencykit.core.histogram import Histogram
from latencykit.core.repr_html import CURVE_PERCENTILES
from latencykit.errors import CorruptInputError
from latencykit.units import format_percentile
from latencykit.views.document import document
from latencykit.views.markup import bullets, section, table
from latencykit.views.tables import Cell, Table
from latencykit.views.values import Versioned, number, percent, record_from

if TYPE_CHECKING:
    from latencykit.history.history import History, HistoryRow, HistoryVerdict, Trend
    from latencykit.history.run_file import StoredRun

_BARS = "▁▂▃▄▅▆▇█"
_COMMENT_ROWS = 12  # of a comment: one screen
_UNCHANGED = 5e-5  # relative
_SPARK = 30  # runs of a line of bars
_MARKS = {"worse": "🔴 worse", "better": "🟢 better", "confirm": "🟡 confirm"}


class HistoryRunRecord(TypedDict):
    """A run of the history."""

    run: str
    commit: str | None
    branch: str | None
    time: float
    """Seconds since the epoch."""


class HistoryRowRecord(TypedDict):
    """A statistic of a series, judged: times in nanoseconds."""

    series: str
    statistic: str
    unit: str
    verdict: Literal["same", "better", "worse", "confirm", "unknown"]
    missing: int
    """Earlier runs that are missing for a verdict."""
    runs: int
    """Earlier runs that it was compared with."""
    value: float | None
    level: float | None
    """Median of the runs since the last change."""
    low: float | None
    high: float | None
    """The band in which 95 of 100 unchanged runs lie."""
    change: float | None
    """Relative deviation from the level."""
    since: HistoryRunRecord | None
    """The first run at this level; null if the level never changed."""


class HistoryCheckRecord(Versioned):
    """A run judged by its history."""

    verdict: Literal["same", "better", "worse", "confirm", "unknown"]
    """The gravest of all rows."""
    reruns: int
    """Runs of --confirm."""
    rows: list[HistoryRowRecord]
    left_out: list[str]
    """Files of the store that cannot be read."""
    notes: list[str]


class HistoryChangeRecord(TypedDict):
    """A change of a level, which happened between two runs."""

    first: HistoryRunRecord
    """The last run that is surely before it."""
    last: HistoryRunRecord
    """The first run that is surely after it."""
    before: float
    after: float
    change: float


class HistoryTrendRecord(TypedDict):
    """A statistic of a series over the runs of one set of labels: times in nanoseconds."""

    series: str
    statistic: str
    unit: str
    labels: dict[str, str]
    runs: int
    latest: float | None
    level: float | None
    low: float | None
    high: float | None
    changes: list[HistoryChangeRecord]


class HistoryShowRecord(Versioned):
    """The trends of a history."""

    runs: int
    trends: list[HistoryTrendRecord]
    left_out: list[str]
    """Files of the store that cannot be read."""


def run_record(run: StoredRun) -> HistoryRunRecord:
    """Return a run as plain values."""
    return {"run": run.name, "commit": run.commit, "branch": run.branch, "time": run.time}


def check_record(
    judged: HistoryVerdict, left_out: Sequence[str], reruns: int = 0
) -> HistoryCheckRecord:
    """Return a verdict as plain values."""
    rows = [
        record_from(
            HistoryRowRecord, row, since=None if row.since is None else run_record(row.since)
        )
        for row in judged.rows
    ]
    return record_from(
        HistoryCheckRecord, judged, schema_version=1, reruns=reruns, rows=rows,
        left_out=list(left_out),
    )  # fmt: skip


def check_text(judged: HistoryVerdict, style: str = "table", out_unit: str | None = None) -> str:
    """Return one row per series and statistic; as Markdown a comment of one screen."""
    rows = list(judged.rows)
    hidden: list[HistoryRow] = []
    if style == "markdown":
        order = ("worse", "confirm", "better", "unknown", "same")
        rows.sort(key=lambda row: (order.index(row.verdict), -abs(row.change)))
        rows, hidden = rows[:_COMMENT_ROWS], rows[_COMMENT_ROWS:]
    table = Table(style, out_unit)
    for row in rows:
        low, high = (table.value(number(end), row.unit) for end in (row.low, row.high))
        verdict: str = row.verdict
        if verdict == "unknown" and style != "csv":
            verdict = f"needs {format_items(row.missing, 'more run')}"
        if style == "markdown":
            verdict = _MARKS.get(verdict, verdict)
        since = "" if row.since is None else row.since.label
        cells: dict[str, Cell] = {
            "series": row.series,
            "statistic": row.statistic,
            "value": table.value(row.value, row.unit),
            "level": table.value(number(row.level), row.unit),
            "change": table.either(number(row.change), _change(row.change)),
        }
        if style == "csv":
            cells |= {
                "low": low, "high": high, "since": since, "runs": row.runs,
                "missing": row.missing, "verdict": verdict,
            }  # fmt: skip
        else:
            between = f"{low} … {high}" if math.isfinite(row.low) else ""
            cells |= {"95 % of runs": between, "level since": since, "verdict": verdict}
        table.add(cells)
    text = table.render(left=2, optional=("level since",))
    if style == "csv":
        return text
    above = [f"**{prose(sentence(judged), style)}**", ""] if style == "markdown" else []
    lines = [*above, text]
    if hidden:
        words = [row.verdict for row in hidden]
        counts = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
        lines += ["", f"{len(hidden)} further rows: {counts}."]
    if style == "markdown" and judged.notes:
        lines += ["", *(prose(printable(note, 300), style, listed=True) for note in judged.notes)]
    return "\n".join(lines)


def _change(change: float) -> str:
    if abs(change) < _UNCHANGED:
        return "unchanged"
    return f"{'+' if change > 0 else ''}{percent(change)}" if math.isfinite(change) else ""


def sentence(judged: HistoryVerdict) -> str:
    """Return the verdict in a sentence."""
    rows = [row for row in judged.rows if row.verdict == judged.verdict]
    if judged.verdict == "same":  # one run beyond the others does not show a change
        within = 1 + _UNCHANGED
        rows = [row for row in rows if not row.low / within <= row.value <= row.high * within]
    names = brief_list(f"{row.series} {row.statistic}" for row in rows)
    missing = max((row.missing for row in rows), default=0)
    return {
        "worse": f"Worse: {names}",
        "better": f"Better: {names}",
        "confirm": f"Run again to confirm: {names}",
        "same": f"No change shown; outside the range of 95 % of earlier runs: {names}"
        if rows
        else "The same as the runs before",
        "unknown": f"Unknown: needs {format_items(missing, 'more run')}",
    }[judged.verdict]


def show_record(trends: Sequence[Trend], runs: int, left_out: Sequence[str]) -> HistoryShowRecord:
    """Return trends as plain values."""
    records = []
    for trend in trends:
        ends = {"level": trend.level, "low": trend.low, "high": trend.high, "latest": trend.values}
        latest = {name: number(float(values[-1])) for name, values in ends.items()}
        changes = [
            record_from(
                HistoryChangeRecord,
                change,
                first=run_record(trend.runs[change.first]),
                last=run_record(trend.runs[change.last]),
                change=change.after / change.before - 1,
            )
            for change in trend.changes
        ]
        records.append(
            record_from(HistoryTrendRecord, trend, runs=len(trend.runs), changes=changes, **latest)
        )
    return {"schema_version": 1, "runs": runs, "trends": records, "left_out": list(left_out)}


def show_text(trends: Sequence[Trend], style: str = "table") -> str:
    """Return one row per trend, and below the changes of their levels."""
    table = Table(style)
    shown = trends[:_COMMENT_ROWS] if style == "markdown" else trends
    for trend in shown:
        table.add(trend_cells(trend, table, style))
    optional = ("changes",) if _labels_differ(shown) else ("labels", "changes")
    text = table.render(left=3, optional=optional)
    if style == "csv":
        return text
    changes = changes_texts(shown)
    if len(changes) > _COMMENT_ROWS:
        changes = [f"{len(changes) - _COMMENT_ROWS} earlier changes", *changes[-_COMMENT_ROWS:]]
    lines = [text]
    if changes:
        lines += ["", *(prose(line, style, listed=True) for line in changes)]
    if len(shown) < len(trends):
        lines += ["", f"{len(trends) - len(shown)} further rows"]
    return "\n".join(lines)


def trend_cells(trend: Trend, table: Table, style: str = "table") -> dict[str, Cell]:
    """Return the row of a trend."""
    ends = [table.value(number(float(a[-1])), trend.unit) for a in (trend.low, trend.high)]
    cells: dict[str, Cell] = {
        "series": trend.series,
        "statistic": trend.statistic,
        "labels": ", ".join(f"{key}={value}" for key, value in trend.labels.items()),
        "runs": len(trend.runs),
        "latest": table.value(float(trend.values[-1]), trend.unit),
        "level": table.value(number(float(trend.level[-1])), trend.unit),
    }
    if style == "csv":
        return cells | {"low": ends[0], "high": ends[1], "changes": len(trend.changes)}
    between = f"{ends[0]} … {ends[1]}" if math.isfinite(trend.low[-1]) else ""
    # The latest runs as a line of bars, on a logarithmic scale.
    logs = np.log(trend.values[-_SPARK:])
    span = float(np.ptp(logs))
    steps = ((logs - logs.min()) / (span or 1.0) * (len(_BARS) - 1)).round().astype(int)
    bars = "".join(_BARS[step if span >= 1e-9 else 0] for step in steps.tolist())
    return cells | {
        "95 % of runs": between, "changes": len(trend.changes), "latest runs": bars
    }  # fmt: skip


def _labels_differ(trends: Sequence[Trend]) -> bool:
    return len({tuple(trend.labels.items()) for trend in trends}) > 1


def changes_texts(trends: Sequence[Trend]) -> list[str]:
    """Return a line per change of a level."""
    texts, differ = [], _labels_differ(trends)
    for trend in trends:
        name = f"{printable(trend.series, 60)} {trend.statistic}"
        if differ and trend.labels:
            name += f" ({printable(', '.join(trend.labels.values()), 60)})"
        for change in trend.changes:
            first, last = trend.runs[change.first].label, trend.runs[change.last].label
            when = f"at {last}" if first == last else f"after {first}, by {last}"
            step = _change(change.after / change.before - 1)
            texts.append(f"{name}: {step} {when}")
    return texts


# ------------------------------------------------------------
# The page: a click on a run opens its distribution, two are compared.


_TITLE = "History of runs"
_MOST_CURVES = 400  # latest runs whose distributions are on the page: 20 bytes per percentile


def history_html(history: History, trends: Sequence[Trend]) -> str:
    """Return the page: trends, and the distributions of the latest runs, which a click opens."""
    runs = sorted({run for trend in trends for run in trend.runs}, key=lambda run: run.order)
    place = {run.name: k for k, run in enumerate(runs)}
    curves: dict[str, dict[str, list[float | None]]] = {}  # of the latest runs, by series
    left_out = [*history.left_out]
    for run in runs[-_MOST_CURVES:]:
        try:
            data = history.distribution(run)
        except CorruptInputError as error:
            left_out.append(str(error))
            continue
        curves[str(place[run.name])] = {
            name: _numbers(entry.percentile(list(CURVE_PERCENTILES)).tolist())
            for name, entry in data.items()
            if isinstance(entry, Histogram)
        }
    model = {
        "history": {
            "percentiles": list(CURVE_PERCENTILES),
            "names": [f"p{format_percentile(p)}" for p in CURVE_PERCENTILES],
            "runs": [
                {**run_record(run), "label": run.label, "labels": dict(run.labels)} for run in runs
            ],
            "trends": [
                {
                    **{key: getattr(trend, key) for key in ("series", "statistic", "unit")},
                    "labels": dict(trend.labels),
                    "runs": [place[run.name] for run in trend.runs],
                    **{
                        key: _numbers(getattr(trend, key).tolist())
                        for key in ("values", "level", "low", "high")
                    },
                    "changes": [
                        [
                            place[trend.runs[change.first].name],
                            place[trend.runs[change.last].name],
                            change.after / change.before - 1,
                        ]
                        for change in trend.changes
                    ],
                }
                for trend in trends
            ],
            "curves": curves,
        }
    }
    cells = [trend_cells(trend, Table()) for trend in trends]
    numbers = table(
        [*cells[0]], [[esc(str(cell), 200) for cell in row.values()] for row in cells]
    ) + bullets(changes_texts(trends))
    hint = "a click on a run opens its distribution, a second one compares two"
    parts = [
        f"<header><h1>{_TITLE}</h1><p class='quiet'>{len(runs):,} runs; {hint}.</p></header>",
        section("trends", "Over the runs", "<div id='history-trends'></div>"),
        section(
            "runs",
            "Runs",
            "<p id='history-chosen' role='status' aria-live='polite'>No run is chosen.</p>"
            "<div id='history-curves'></div><div id='history-table'></div>",
        ),
        section("numbers", "Numbers", numbers),
    ]
    parts.append(section("left-out", "Left out", bullets(left_out)))
    return document(_TITLE, "".join(parts), model, home="history")


def _numbers(values: Sequence[float]) -> list[float | None]:
    return [float(f"{value:.5g}") if math.isfinite(value) else None for value in values]
