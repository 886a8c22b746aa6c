"""What a chart says in words: source, count, duration and rate; the conditions; the finding where there is one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.plot.style import plain, role_of, shorten
from latencykit.plot.ticks import time_text
from latencykit.units import format_count, format_percentile, format_range, format_row, format_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from latencykit.plot.curves import Curve

__all__ = [
    "chart_title", "conditions", "end_words", "joined", "measured", "named_count", "percentile_text",
    "requests_of", "same_words", "series_title", "slo_finding", "slo_pairs", "two_stories",
]  # fmt: skip

_LOOPS = {"open": "open loop", "paced": "paced loop", "closed": "closed loop"}


def measured(run: Any, count: int | None) -> str:
    """Return count, duration and rate.

    Examples
    --------
    >>> from latencykit.run import Run
    >>> measured(Run(duration=2.0), 3)
    '3 requests in 2 s (1.5/s)'
    """
    parts = [f"{format_count(count)} requests" if count != 1 else "1 request"] if count is not None else []
    if run.duration:
        parts.append(f"in {time_text(run.duration)}")
        rate = count / run.duration if count else None
        parts.append(f"({rate:,.0f}/s)" if rate and rate >= 10 else f"({rate:.2g}/s)" if rate else "")
    return " ".join(filter(None, parts))


def requests_of(rung: Any) -> int | None:
    """Return how many good requests a rung stands for, where it knows: those above a limit count, too.

    Examples
    --------
    >>> from latencykit.histogram import Histogram
    >>> requests_of(Histogram.from_percentiles([50, 90], [1e6, 2e6], 1000))
    1000
    """
    return getattr(rung, "requests", getattr(rung, "count", None))


def named_count(label: str, rung: Any) -> str:
    """Return a series' name and number of requests, as they stand beside its curve."""
    count = requests_of(rung)
    return "  ".join(filter(None, (plain(shorten(label, 32)), f"n = {format_count(count)}" if count is not None else "")))


def _connections(number: int | None) -> str:
    return "" if not number else "1 connection" if number == 1 else f"{number:,} connections"


def conditions(rung: Any) -> list[str]:
    """Return how it was measured, part by part: tool, loop, connections, measure, correction, failures."""
    run = rung.run
    parts = [plain(" ".join(filter(None, (run.tool, run.version))), 40)]
    if run.rate:
        parts.append(f"{run.rate:,.6g} requests/s offered")
    parts += [_LOOPS.get(run.loop, ""), _connections(run.connections)]
    parts.append({"service": "service times", "response": "response times"}.get(run.measure, ""))
    parts.append(
        {
            "tool": "corrected by the tool", "us": "corrected for coordinated omission", "schedule": "timed from the schedule",
            "none": "not corrected",
        }.get(run.corrected, "")
    )  # fmt: skip
    others = ((run.failed, "failed"), (run.timeouts, "timed out"), (run.dropped, "dropped"), (run.unfinished, "unfinished"))
    parts += [f"{format_count(number)} {word}" for number, word in others if number]
    parts.append(f"values assumed to be {run.unit}" if run.unit_note is not None else "")
    return [part for part in parts if part]


def joined(series: Mapping[str, Any], *first: str) -> str:
    """Return `first` and then the conditions that all series share, in one line."""
    listed = [conditions(rung) for rung in series.values()]
    shared = [part for part in listed[0] if all(part in other for other in listed[1:])] if listed else []
    guesses = [
        (label, part)
        for (label, rung), parts in zip(series.items(), listed, strict=True)
        for part in parts[-1:]
        if rung.run.unit_note is not None and part not in shared
    ]
    shared += [f"{part} in {plain(shorten(label, 40))}" for label, part in guesses]
    return " · ".join((*filter(None, first), *shared))


def series_title(label: str, rung: Any) -> str:
    """Return the title of one series: its name, and what was measured."""
    return " · ".join(filter(None, (plain(shorten(label, 60)), measured(rung.run, requests_of(rung)))))


def chart_title(series: Mapping[str, Any], kind: str = "") -> str:
    """Return the title of a chart where no finding is known.

    Examples
    --------
    >>> from latencykit.histogram import Histogram
    >>> chart_title({"a": Histogram.of([1]), "b": Histogram.of([1, 2])})
    'a and b · 3 requests'
    """
    if len(series) == 1:
        (label, rung), *_ = series.items()
        return series_title(label, rung)
    if kind == "runs":
        return " · ".join(filter(None, (f"{len(series)} runs", *_total(series))))
    names = [plain(shorten(label, 24)) for label in series]
    named = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) <= 3 else f"{len(names)} series"
    return " · ".join(filter(None, (named, kind, *_total(series))))


def _total(series: Mapping[str, Any]) -> list[str]:
    counts = [requests_of(rung) for rung in series.values()]
    return [f"{format_count(sum(filter(None, counts)))} requests"] if any(counts) else []


def percentile_text(percentile: float) -> str:
    """Return a percentile's name: p99.9, or the maximum.

    Examples
    --------
    >>> percentile_text(99.9), percentile_text(100)
    ('p99.9', 'max')
    """
    return "max" if percentile >= 100 else f"p{format_percentile(percentile)}"


def slo_pairs(slo: Any) -> list[tuple[float, float]]:
    """Return an SLO's percentiles and limits in ns, ascending; from an `SLO`, from text that states one, or from pairs."""
    if isinstance(slo, str):
        from latencykit.stats.slo import SLO

        slo = SLO.parse(slo)
    pairs = [(one.percentile, one.limit) for one in slo.limits if one.percentile is not None] if hasattr(slo, "limits") else slo
    return sorted((float(percentile), float(limit)) for percentile, limit in pairs)


def slo_finding(label: str, rung: Any, pairs: Sequence[tuple[float, float]]) -> str | None:
    """Return what an SLO's limits say of one series, where they say something for sure."""
    if not pairs or not hasattr(rung, "percentile_rows"):
        return None
    rows = rung.percentile_rows([percentile for percentile, _ in pairs])
    over = [(row.value / limit, row, limit) for row, (_, limit) in zip(rows, pairs, strict=True) if row.value > limit]
    missed = [one for one in over if one[1].bucket_low > one[2]]  # a bucket that reaches from below the limit says neither
    name = plain(shorten(label, 40)) or "this"
    if over and not missed:
        return None
    if missed:
        _, row, limit = max(missed, key=lambda one: one[0])

        def show(value: float) -> str:
            return format_value(value, rung.unit)

        values = f"{format_row(replace(row, supported=True), show)}, limit {show(limit)}"
        return f"{name} misses its SLO: {percentile_text(row.percentile)} is {values}"
    sure = all(row.supported or row.percentile >= 100 for row in rows)
    return f"{name} meets its SLO" if sure else None


def two_stories(series: Mapping[str, Any], curves: Mapping[str, Curve]) -> str | None:
    """Return the finding of a raw and a corrected measurement side by side: the percentile on which they differ most.

    Only percentiles that both samples support count, and only differences of more than a tenth.
    """
    roles = {role_of(label, rung): label for label, rung in series.items()}
    if len(series) != 2 or set(roles) != {"raw", "honest"} or not set(series) <= set(curves):
        return None
    raw, honest = curves[roles["raw"]], curves[roles["honest"]]
    wanted = np.array([p for p in (50.0, 90.0, 99.0, 99.9) if p <= min(raw.limit, honest.limit)])
    wanted = wanted[raw.known_at(wanted) & honest.known_at(wanted)]
    if not wanted.size:
        return None
    flattered, true = raw.at(wanted), honest.at(wanted)
    worst = int(np.argmax(true / np.maximum(flattered, 1e-12)))
    if not true[worst] > 1.1 * flattered[worst]:
        return None
    low, high = (format_value(float(value[worst]), raw.unit, 2) for value in (flattered, true))
    return f"Two stories: {percentile_text(float(wanted[worst]))} is {low} or {high}"


def end_words(curve: Curve) -> str:
    """Return what stands at a curve's end: its maximum, or where its censored values begin."""

    def show(value: float) -> str:
        return format_value(value, curve.unit)

    if curve.bound is not None:
        return f"≥ {show(curve.top)} ({format_count(curve.censored)} requests)"
    return f"max {show(curve.top) if curve.top_known else format_range(curve.top_low, curve.top, show)}"


def same_words(words: Mapping[str, str]) -> dict[str, list[str]]:
    """Return text → the labels that share it; the text says so where all do.

    Examples
    --------
    >>> same_words({"a": "max 6 s", "b": "max 6 s"})
    {'max 6 s (both)': ['a', 'b']}
    """
    groups: dict[str, list[str]] = {}
    for label, text in words.items():
        groups.setdefault(text, []).append(label)
    shared = {1: "", 2: " (both)"}.get(len(words), f" (all {len(words)})")
    return {text + (shared if len(members) == len(words) else ""): members for text, members in groups.items()}
