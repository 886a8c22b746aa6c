"""Fan-out: the record, the table, sentences, and the page's section with its slider."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NotRequired, TypedDict, cast

from latencykit._text import esc
from latencykit._typing import JSONObject, PercentileName
from latencykit.analysis.fan_out import FanOut, fan_out, samples_needed
from latencykit.core.histogram import Histogram
from latencykit.core.quantiles import is_resolved
from latencykit.core.run import Run
from latencykit.units import format_count, format_percentile
from latencykit.views.markup import section, table
from latencykit.views.tables import MOST_ROWS, Table, csv_unit
from latencykit.views.values import UnitFrom, UserPercentileRecord, number, percent, record_from

if TYPE_CHECKING:
    from latencykit.views.page_series import PageSeries

_SAME_SHARE = 5e-4  # those that differ by less are one, in a table


class UsersRecord(TypedDict):
    """The latency of users."""

    percentiles: list[UserPercentileRecord]
    share_above: dict[PercentileName, float | None]
    """Share of users slower than that percentile of one call; null where it is a range."""
    share_between: dict[PercentileName, list[float]]
    """Bounds of the share."""


class CallsRecord(UsersRecord):
    """The latency of users who wait for a number of calls."""

    n: int
    """Calls per request."""
    model: Literal["mixture", "independent"]
    quorum: int | None
    sequential: bool
    added_load: float
    """Share of additional calls that hedging sends."""
    interval: float | None
    """Seconds per interval whose calls share their fate."""
    note: str
    independent: NotRequired[UsersRecord]
    """What users would wait for if calls were independent."""


class FanOutRecord(TypedDict):
    """The fan-out of one series."""

    name: str
    unit: Literal["ns", "none"]
    rows: list[CallsRecord]
    unit_from: UnitFrom
    notes: list[str]


def fan_out_record(
    name: str,
    run: Run,
    answers: Sequence[FanOut],
    bounds: Sequence[FanOut] | None,
    percentiles: Sequence[float],
) -> FanOutRecord:
    """Return one series as plain values; `bounds` are the same for independent calls."""
    rows: list[CallsRecord] = []
    for answer in answers:
        facts = {
            "n": answer.n,
            "model": answer.model,
            **_users_record(answer, percentiles),
            "quorum": answer.quorum,
            "sequential": answer.sequential,
            "added_load": answer.added_load,
            "interval": number(answer.interval),
            "note": answer.note,
        }
        rows.append(cast("CallsRecord", facts))
    for row, bound in zip(rows, bounds or (), strict=False):
        row["independent"] = _users_record(bound, percentiles)
    return {
        "name": name,
        "unit": "none" if answers[0].unit == "none" else "ns",
        "rows": rows,
        "unit_from": run.unit_from,
        "notes": list(run.notes),
    }


def _users_record(answer: FanOut, percentiles: Sequence[float]) -> UsersRecord:
    above: dict[str, float | None] = {}
    between: dict[str, list[float]] = {}
    for p, share in answer.above.items():
        low, high = answer.above_between.get(p, (share, share))
        known = p not in answer.above_between or is_resolved(low, high) or high - low < _SAME_SHARE
        above[format_percentile(p)] = share if known else None
        between[format_percentile(p)] = [low, high]
    return {
        "percentiles": [
            record_from(
                UserPercentileRecord,
                row,
                percentile=row.percentile,
                at_least=math.isinf(row.bucket_high),
                cause=row.cause or None,
            )
            for row in answer.rows(percentiles)
        ],
        "share_above": above,
        "share_between": between,
    }


def fan_out_text(
    records: Sequence[FanOutRecord],
    style: str = "table",
    out_unit: str | None = None,
    *,
    left_out: int = 0,
) -> str:
    """Return one row per number of calls, and another one if the calls were independent."""
    # `left_out` more series have no records.
    table, suffix = Table(style, out_unit), csv_unit(records, style, out_unit)
    for record in records:
        for row in record["rows"]:
            models: dict[str, UsersRecord] = {row["model"]: row}
            if "independent" in row and row["n"] > 1:
                models["if independent"] = row["independent"]
            calls = f"{format_count(row['n'])}{' in a row' if row['sequential'] else ''}"
            if row["quorum"] is not None:
                calls = f"{row['quorum']:,} of {calls}"
            for model, values in models.items():
                share, between = values["share_above"].get("99"), values["share_between"].get("99")
                text = ""
                if between is not None:
                    low, high = between
                    text = f"{100 * low:.3g}–{percent(high)}" if share is None else percent(share)
                table.add(
                    {
                        "series": record["name"],
                        "calls": table.either(row["n"], calls),
                        "model": model,
                        **{
                            f"p{format_percentile(cell['percentile'])}{suffix}": table.percentile(
                                cell, record["unit"]
                            )
                            for cell in values["percentiles"]
                        },
                        "worse than p99 of one": table.either(share, text),
                        **table.flags(values["percentiles"]),
                    }
                )
    return table.render(
        optional=("p99.9", "p90", "worse than p99 of one"),
        most=MOST_ROWS,
        causes=True,
        left_out=left_out,
    )


def fan_out_words(name: str, answers: Sequence[FanOut]) -> list[str]:
    """Return what the numbers are based on, one sentence per point, the most important first."""
    largest = max(answers, key=lambda answer: answer.n)
    lines = []
    if largest.added_load:
        lines.append(f"{name}: the hedge sends {100 * largest.added_load:,.3g} % more calls")
    if largest.n > 1 and not largest.sequential:
        percentile = largest.leaf_percentile(99)
        needed = samples_needed(percentile)
        count = largest.leaf.count + largest.leaf.censored
        enough = ""
        if count < needed:
            enough = (
                f"; that takes {format_count(needed)} calls, and there are {format_count(count)}"
            )
        calls = format_count(largest.n)
        if largest.quorum is not None:
            calls = f"{largest.quorum:,} of {largest.n:,}"
        lines.append(
            f"{name}: of {calls} independent calls, the user's p99 is the p{percentile:.7g} of one"
            f"{enough}"
        )
    lines += [
        f"{name}, {format_count(answer.n)} calls: {answer.note}"
        for answer in answers
        if answer.note
    ]
    return lines


_PERCENTILES = (50.0, 90.0, 99.0)

_FIRST = 100  # calls at which the slider begins


_CALLS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000)
"""Numbers of calls of the slider."""

_WITH_FAN_OUT = 6  # series that have one


def fan_out_model(series: Sequence[PageSeries]) -> list[dict[str, object]]:
    """Return the values behind the slider for each series, of calls apart and in one time bin."""
    model = []
    counted = [
        (part, part.counted)
        for part in series
        if isinstance(part.counted, Histogram) and part.counted.count
    ]
    for part, whole in counted[:_WITH_FAN_OUT]:
        mixed: Sequence[FanOut | None] = [None] * len(_CALLS)
        slots = None if whole.censored else part.slots  # these have no timeouts
        largest = math.inf if whole.censored else whole.max
        if slots is not None:
            mixed = fan_out(slots.log(whole.unit), _CALLS, shares=(99.0,))
        rows = []
        independent = fan_out(whole, _CALLS, independent=True, shares=(99.0,))
        for apart, together in zip(independent, mixed, strict=True):
            percentile, answer = apart.leaf_percentile(99.0), together or apart
            calls = f"{format_count(apart.n)} calls" if apart.n > 1 else "1 call"
            words = (
                f"Of users who wait for {calls}, {_fan_out_share(answer)} meet one that is slower "
                "than the p99 of a single call"
            )
            if together is not None and together.model == "mixture":
                share = _fan_out_share(apart)
                words += f" ({share} if slow calls came independently of each other)"
            leaf = f"{percentile:.5f}".rstrip("0").rstrip(".")
            words += (
                f"; the p99 of users is based on the p{leaf} of one call, which takes "
                f"{format_count(samples_needed(percentile))} requests to know."
            )
            if answer.note:
                words += f" {answer.note[:1].upper()}{answer.note[1:]}."
            rows.append(
                {
                    "n": apart.n,
                    "words": words,
                    "independent": _fan_out_values(apart, largest),
                    "mixture": [] if together is None else _fan_out_values(together, largest),
                }
            )
        facts = {"name": part.short, "mixed": slots is not None, "percentiles": _PERCENTILES}
        model.append(facts | {"rows": rows})
    return model


def _fan_out_values(answer: FanOut, largest: float) -> list[dict[str, object]]:
    return [
        {
            "value": number(min(row.value, largest)),
            "low": number(min(row.bucket_low, largest)),
            "resolved": row.resolved,
            "open": not math.isfinite(row.bucket_high),
            "supported": row.supported,
        }
        for row in answer.rows(_PERCENTILES)
    ]


def _fan_out_share(answer: FanOut) -> str:
    between = answer.above_between.get(99.0, (answer.above[99.0],) * 2)
    low, high = (f"{100 * share:.0f}" for share in between)
    return f"{high} %" if low == high else f"{low}–{high} %"


def fan_out_section(model: Sequence[JSONObject]) -> str:
    """Return the section around the plot: slider, sentence and table."""
    if not model:
        return ""
    mixed = any(row["mixed"] for row in model)
    legend = (
        "Solid: all calls of a user fall into the same moment, as they do (mixed by the steps of "
        "the timeline). Thin: as if slow calls came independently of each other."
        if mixed
        else "As if slow calls came independently of each other: without times, or with "
        "values that are only lower bounds, how they came together is not known."
    )
    choice = ""
    if len(model) > 1:
        options = "".join(
            f"<option value='{k}'>{esc(row['name'])}</option>" for k, row in enumerate(model)
        )
        choice = f"<p><label>Series <select id='fan-out-series'>{options}</select></label></p>"
    calls = [row["n"] for row in model[0]["rows"]]
    first = calls.index(_FIRST)
    slider = (
        "<p class='slider'><label for='fan-out-slider'>calls "
        f"<b id='fan-out-n'>{_FIRST}</b></label><input type='range' id='fan-out-slider' "
        f"min='0' max='{len(calls) - 1}' value='{first}'></p>"
    )
    words = esc(model[0]["rows"][first]["words"], 500)
    columns = ["users'", *(["in one moment"] if mixed else []), "if independent"]
    return section(
        "fan-out",
        "Fan-out",
        f"<p class='quiet'>{legend}</p>",
        choice,
        slider,
        f"<p id='fan-out-words' aria-live='polite'>{words}</p>",
        "<div id='plot-fanOut' class='plot'></div>",
        table(columns, [], name="fan-out-table"),
    )
