"""The interactive page of a history: a click on a run opens its distribution, two are compared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from latencykit._text import esc
from latencykit.core.histogram import Histogram
from latencykit.core.repr_html import CURVE_PERCENTILES
from latencykit.errors import CorruptInputError
from latencykit.units import format_percentile
from latencykit.views.document import document
from latencykit.views.history import changes_texts, run_record, trend_cells
from latencykit.views.markup import bullets, section, table
from latencykit.views.tables import Table

if TYPE_CHECKING:
    from latencykit.history.history import History, Trend


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
                    "series": trend.series,
                    "statistic": trend.statistic,
                    "unit": trend.unit,
                    "labels": dict(trend.labels),
                    "runs": [place[run.name] for run in trend.runs],
                    "values": _numbers(trend.values.tolist()),
                    "level": _numbers(trend.level.tolist()),
                    "low": _numbers(trend.low.tolist()),
                    "high": _numbers(trend.high.tolist()),
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
