"""Comparisons: the record, tables, sentences, and the page's section."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal, NotRequired, TypedDict, cast

from latencykit._text import brief_list, esc, printable, prose
from latencykit.analysis.compare import UNITLESS, Change, Comparison, named_changes
from latencykit.core.histogram import STANDARD_PERCENTILES
from latencykit.errors import LatencyKitError
from latencykit.units import format_change, format_share, format_value
from latencykit.views.markup import as_sentence, badge, bullets, section, table
from latencykit.views.tables import Table, csv_unit
from latencykit.views.values import Versioned, bare_value, number, record_from, value_text

if TYPE_CHECKING:
    from latencykit.views.page_series import PageSeries


class ChangeRecord(TypedDict):
    """One statistic on both sides.

    Changes are relative: 0.05 is +5 %; null is unbounded or unknown.
    """

    statistic: str
    percentile: float | None
    base: float | None
    new: float | None
    change: float | None
    low: float | None
    high: float | None
    difference: float | None
    difference_low: float | None
    difference_high: float | None
    p_value: float | None
    base_low: float | None
    base_high: float | None
    new_low: float | None
    new_high: float | None
    resolved: bool
    significant: bool
    tolerates: float | None
    """Run noise that chance would need to explain the change."""
    note: str


class ComparisonRecord(TypedDict):
    """A comparison of two sides."""

    basis: Literal["requests", "runs"]
    verdict: Literal["same", "better", "worse", "mixed", "inconclusive"]
    tolerates: float | None
    """Run noise that chance would need to explain the clearest change that is stated."""
    unit: str
    runs: list[int]
    """Runs per side."""
    rows: list[ChangeRecord]
    means: list[ChangeRecord]
    failed: list[str]
    """Conditions of --fail-if that are met."""
    reasons: list[str]
    warnings: list[str]


class SeriesComparisonRecord(ComparisonRecord):
    """A comparison of one of several series."""

    name: str


class CompareRecord(Versioned, ComparisonRecord):
    """A comparison; the keys are those of the first of several series."""

    series: NotRequired[list[SeriesComparisonRecord]]
    """One comparison per series."""


_BY_SEVERITY = ("mixed", "worse", "inconclusive", "better", "same")


def comparisons_record(
    comparisons: Mapping[str, Comparison], failed: Mapping[str, Sequence[str]]
) -> CompareRecord:
    """Return the comparison of one series, or of several: the first one, and a list of all."""
    records = {
        name: comparison_record(comparison, failed[name])
        for name, comparison in comparisons.items()
    }
    first = cast("CompareRecord", {"schema_version": 1, **next(iter(records.values()))})
    if len(records) == 1:
        return first
    verdicts = {comparison.verdict for comparison in comparisons.values()}
    if {"better", "worse"} <= verdicts:
        verdicts.add("mixed")
    return {
        **first,
        "verdict": next(verdict for verdict in _BY_SEVERITY if verdict in verdicts),
        "failed": [f"{name}: {text}" for name, texts in failed.items() for text in texts],
        "series": [{"name": name, **record} for name, record in records.items()],
    }


def comparison_record(comparison: Comparison, failed: Sequence[str] = ()) -> ComparisonRecord:
    """Return a comparison as plain values."""
    rows = [
        record_from(
            ChangeRecord,
            row,
            percentile=row.percentile,
            low=number(row.low) if row.low > -1 else None,
        )
        for row in comparison.changes
    ]
    return record_from(
        ComparisonRecord,
        comparison,
        rows=[row for row in rows if row["percentile"] is not None],
        means=[row for row in rows if row["percentile"] is None],
        failed=list(failed),
    )


def comparisons_text(
    comparisons: Mapping[str, Comparison],
    style: str = "table",
    out_unit: str | None = None,
    *,
    every: bool = False,
    picture: str = "",
) -> str:
    """Return one row per statistic, series by series; CSV of several names them in a column."""
    # In a terminal, of several series the first one has a table and the others a headline, of
    # thirty percentiles the usual ones are shown, and one sentence about the evidence, unless all
    # is wanted.
    several = len(comparisons) > 1
    if style == "csv":
        table = Table(style)
        units = [{"unit": comparison.unit} for comparison in comparisons.values()]
        suffix = csv_unit(units, style, out_unit)
        for name, comparison in comparisons.items():
            for row in comparison.changes:
                unit = out_unit if row.statistic not in UNITLESS else None
                low = row.low if row.low > -1 else None
                table.add(
                    {
                        **({"series": name} if several else {}),
                        "statistic": row.statistic,
                        f"base{suffix}": bare_value(row.base, comparison.unit, unit),
                        f"new{suffix}": bare_value(row.new, comparison.unit, unit),
                        "change": number(row.change),
                        "low": number(low),
                        "high": number(row.high),
                        "significant": row.significant,
                        "tolerates": number(row.tolerates),
                        "resolved": row.resolved,
                    }
                )
        return table.render()
    texts, caveats, others = [], list[str](), dict[str, list[str]]()
    brief = style in ("table", "markdown") and not every
    for number_of, (name, comparison) in enumerate(comparisons.items()):
        if brief and number_of:
            text = headline(replace(comparison, would_show=()), out_unit)
            others.setdefault(text, []).append(printable(name, 40))
            continue
        table, show = Table(style), partial(value_text, out_unit=out_unit)
        changes: Sequence[Change] = comparison.changes
        usual = [row for row in changes if row.percentile in (*STANDARD_PERCENTILES, None)]
        changes = usual if brief and len(changes) > _MANY and len(usual) > 1 else changes
        alone = comparison.run_noise is None and comparison.basis == "requests"
        for row in changes:
            known = row.tolerates > 0 and math.isfinite(row.tolerates) and not row.note
            cells = row.cells(partial(show, unit=comparison.unit))
            columns = dict(zip(_COLUMNS, cells, strict=True))
            if alone:
                columns["tolerates"] = format_share(row.tolerates) if known else ""
            table.add(columns)
        head = [f"not alike: {comparison.unfair}"] if comparison.unfair else []
        head = [prose(text, style) for text in (*head, headline(comparison, out_unit))]
        if several:
            head.insert(0, f"{'### ' * (style == 'markdown')}{prose(printable(name), style)}")
        texts += ["\n".join(head), table.render(optional=("tolerates",))]
        caveats += comparison.reasons[:1] if brief else comparison.reasons
    if others:
        lines = [prose(f"{brief_list(names)}: {text}", style) for text, names in others.items()]
        if len(lines) > _BRIEFLY:
            rest = sum(map(len, [*others.values()][_BRIEFLY - 1 :]))
            lines[_BRIEFLY - 1 :] = [f"and {rest:,} more series: --notes or --series NAME"]
        texts.append("\n".join(lines))
    if picture and style == "markdown":
        texts.append(f"![percentiles before and after](<{picture}>)")
    caveats = [prose(text, style) for text in dict.fromkeys(caveats)]
    return "\n\n".join([*texts, "\n".join(caveats)]).rstrip()


_COLUMNS = ("statistic", "base", "new", "change", "interval", "changed")
_BRIEFLY, _MANY = 4, 10
"""Further series of a text; statistics of which only the usual percentiles are shown."""


def headline(comparison: Comparison, out_unit: str | None = None) -> str:
    """Return the verdict in one line, with what changed and what the verdict tolerates."""
    show = partial(value_text, unit=comparison.unit, out_unit=out_unit)
    parts = []
    for row in named_changes(comparison):
        base, new = row.sides(show)
        change = f" ({format_change(row.change)})" if math.isfinite(row.change) else ""
        parts.append(f"{row.statistic} {base} → {new}{change}")
    runs = "one run per side"
    if comparison.basis == "runs":
        runs = f"{comparison.runs[0]} runs against {comparison.runs[1]}"
    text: str = comparison.verdict
    if text == "same":
        text = "the same: every change lies within the margin, with confidence"
    if comparison.would_show and not parts:
        shown = comparison.would_show
        sizes = ", ".join(f"{format_change(size)} at {name}" for name, size in shown)
        text += f": no change shown; {sizes} would have been"
    text += f": {', '.join(parts)}" if parts else ""
    if comparison.tolerates is not None:
        noise = format_share(comparison.tolerates)
        return f"{text}, unless runs of one system differ by more than {noise}"
    return f"{text} ({runs})"


_UNFOLDED = 2
"""Comparisons whose tables are open; of more, the verdicts are seen first."""


def comparison_section(
    series: Sequence[PageSeries],
    compared: Sequence[tuple[PageSeries, Comparison | LatencyKitError]],
) -> str:
    """Return one table per series that is compared with the first; empty for a single series."""
    if not compared:
        return ""
    base, parts = series[0], []
    for other, comparison in compared:
        name = f"<b>{esc(other.short)}</b>"
        if isinstance(comparison, LatencyKitError):
            parts.append(f"<p>{name}: {esc(comparison)}</p>")
            continue
        show = partial(format_value, unit=comparison.unit)
        rows = [[esc(cell) for cell in row.cells(show)] for row in comparison.changes]
        notes = dict.fromkeys(row.note for row in comparison.changes if row.note)
        header = ["", esc(base.short), esc(other.short), "change", "95 % interval", "changed"]
        unfair = [f"not alike: {comparison.unfair}"] if comparison.unfair else []
        # The reasons come first: without them the numbers may seem to contradict the verdict.
        why = bullets(map(as_sentence, [*unfair, headline(comparison), *comparison.reasons]))
        further = bullets(map(as_sentence, [*comparison.warnings, *notes]))
        verdict = f"{name} {badge(comparison.verdict)}"
        content = f"{why}{table(header, rows)}{further}"
        folded = f"<details><summary>{verdict}</summary>{content}</details>"
        parts.append(folded if len(compared) > _UNFOLDED else f"<p>{verdict}</p>{content}")
    more = len(series) - 1 - len(compared)
    if more:
        parts.append(f"<p class='quiet'>The other {more} series are not compared here.</p>")
    return section("comparison", f"Compared with {esc(base.short)}", *parts)
