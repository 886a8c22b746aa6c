"""The picture that people print: timeline on top, percentile curve below, key numbers and verdict beside."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from latencykit.core.histogram import Histogram
from latencykit.core.histogram_log import HistogramLog
from latencykit.core.key_statistics import key_statistics
from latencykit.core.samples import Samples
from latencykit.core.summary import Summary
from latencykit.plot.curves import (
    SHADED,
    as_histogram,
    as_series,
    curve_of,
    dashes,
    expect_evidence,
    resting,
)
from latencykit.plot.density_chart import density
from latencykit.plot.figure import chart_title, head, joined, percentile_text, requests_of
from latencykit.plot.percentile_chart import percentiles
from latencykit.plot.style import (
    AMBER,
    BLUE,
    FEW,
    INK,
    MUTED,
    RED,
    current_axes,
    plain,
    series_styles,
    shorten,
)
from latencykit.plot.timeline_chart import timeline
from latencykit.units import format_count, format_row, format_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from latencykit.plot._typing import Drawable, Limits, StallRows

__all__ = ["dashboard"]

_VERDICTS = {"omits": RED, "clean": BLUE, "unknown": AMBER}
_COLUMNS = (50.0, 99.0, 99.9, 100.0)


def dashboard(
    data: Drawable,
    *,
    ax: Axes | None = None,
    unit: str | None = None,
    slo: Limits | None = None,
    confidence: float | None = 0.95,
    nines: float | None = None,
    stalls: StallRows | None = None,
    corrected: Histogram | None = None,
    verdict: str | None = None,
    findings: Sequence[str] = (),
    title: str | None = None,
    subtitle: str | None = None,
    **line_kwargs: Any,
) -> Axes:
    """Draw timeline, percentile curve and key numbers on one page.

    Parameters
    ----------
    data : data type, or mapping of str to data type
        Of one series all key numbers stand beside the curve; of several a table, which is the legend, too. Where no time
        is known, the density takes the place of the timeline.
    ax : Axes, optional
        The page; its own frame is hidden and its panels are laid inside. The current axes by default.
    unit, slo, confidence, nines
        As in `percentiles`.
    stalls : optional
        As in `timeline`.
    corrected : Histogram, optional
        The corrected counterpart of a single series: drawn in blue beside the raw curve in red.
    verdict : str, optional
        ``omits``, ``clean`` or ``unknown``, where a diagnosis was made.
    findings : sequence of str, optional
        What the verdict is based on, a sentence each.
    title, subtitle : str, optional
        By default what was measured, and the conditions. Empty for none.
    **line_kwargs
        For the percentile curves.

    Returns
    -------
    Axes
        The page; ``page.child_axes`` are its panels.
    """
    page = current_axes(ax)
    series = as_series(data)
    if corrected is None:
        expect_evidence(series)
    counted = {label: as_histogram(values) for label, values in series.items()}
    page.set_axis_off()
    upper, lower, beside = _panels(page, wide=len(series) > 1)
    timed = all(
        isinstance(values, HistogramLog)
        or (isinstance(values, Samples) and values.start is not None)
        for values in series.values()
    )
    quiet: dict[str, Any] = {"unit": unit, "title": "", "subtitle": ""}
    if timed:
        timeline(series, ax=upper, stalls=stalls, legend=len(series) == 1, **quiet)
    elif not any(isinstance(values, Summary) for values in counted.values()):
        density(counted, ax=upper, legend=len(series) == 1, **quiet)
    else:
        upper.remove()
    shown = (
        counted
        if corrected is None
        else {"raw": next(iter(counted.values())), "corrected": corrected}
    )
    band = confidence if len(shown) <= 3 else None
    rests = resting(series, counted) if corrected is None else {}
    look = quiet | {"dashed_from": rests} | line_kwargs
    percentiles(
        shown, ax=lower, slo=slo, confidence=band, nines=nines, legend=len(series) == 1, **look
    )
    if len(series) == 1:
        _numbers(beside, next(iter(counted.values())), verdict, findings)
    elif len(series) <= FEW:
        _side_by_side(beside, counted)
    else:
        _table(beside, counted)
    head(
        page,
        chart_title(counted),
        joined(counted, _legend(len(series)) if timed else "", dashes(rests), _shaded(counted)),
        title,
        subtitle,
    )
    return page


def _shaded(counted: Mapping[str, Any]) -> str:
    held = [data for data in counted.values() if isinstance(data, Histogram) and data.count]
    return SHADED if any(curve_of(data).wide for data in held) else ""


def _legend(number: int) -> str:
    """What the timeline's lines are, where they are not named beside them."""
    return {1: ""}.get(
        number,
        "timeline: p99 bold, max thin"
        if number <= 4
        else "timeline: p99 of each, max of all in grey",
    )


def _panels(page: Axes, *, wide: bool) -> tuple[Axes, Axes, Axes]:
    """Timeline above, curve below, numbers beside it; the room between them is what their labels need."""
    box = page.get_window_extent()
    point = page.figure.dpi / 72.0
    gap, side = min(46 * point / box.height, 0.2), (300 if wide else 170) * point / box.width
    share = min(max(side, 0.18), 0.5 if wide else 0.30)
    height = (1 - gap) / 2
    room = min(26 * point / box.width, 0.06)
    upper = page.inset_axes((0.0, 1 - height, 1.0, height))
    lower = page.inset_axes((0.0, 0.0, 1 - share - room, height))
    beside = page.inset_axes((1 - share, 0.0, share, height))
    beside.set_axis_off()
    beside.set_xlim(0, 1)
    beside.set_ylim(0, 1)
    return upper, lower, beside


def _rows(ax: Axes, wanted: int, size: float = 9.0) -> tuple[float, int]:
    """Height of a row as a share of the axes, and how many fit."""
    height = ax.get_window_extent().height * 72.0 / ax.figure.dpi
    step = min(17.0, max(size * 1.25, height / max(wanted, 1)))
    return step / height, max(1, int(height / step + 1e-9))


def _numbers(ax: Axes, counted: Any, verdict: str | None, findings: Sequence[str]) -> None:
    """Names flush left, numbers flush right, the verdict and what it is based on below."""
    rows = [(name, value, INK, "normal") for name, value in key_statistics(counted)]
    if verdict is not None:
        rows.append(("verdict", verdict, _VERDICTS.get(verdict, INK), "bold"))
    width = ax.get_window_extent().width * 72.0 / ax.figure.dpi
    said = [textwrap.wrap(text, max(16, int(width / 4.6))) for text in findings]
    step, most = _rows(ax, len(rows) + sum(map(len, said)))
    for k, (name, value, colour, weight) in enumerate(rows[:most]):
        y = 1.0 - (k + 0.5) * step
        ax.text(0.0, y, plain(name, 24), fontsize=9, color=MUTED, va="center")
        ax.text(
            1.0,
            y,
            plain(value, 24),
            fontsize=9,
            color=colour,
            va="center",
            ha="right",
            fontweight=weight,
        )
    at = len(rows)
    for sentence in said:
        if at + len(sentence) <= most:  # whole sentences, or none
            for line in sentence:
                ax.text(
                    0.0,
                    1.0 - (at + 0.6) * step,
                    plain(line, 80),
                    fontsize=8,
                    color=MUTED,
                    va="center",
                )
                at += 1


def _side_by_side(ax: Axes, series: Mapping[str, Any]) -> None:
    """One column per series under its name, one row per number."""
    styles, listed = (
        series_styles(series),
        {label: dict(key_statistics(data)) for label, data in series.items()},
    )
    names = list(dict.fromkeys(name for numbers in listed.values() for name in numbers))
    step, most = _rows(ax, len(names) + 2, 8.5)
    width = ax.get_window_extent().width * 72.0 / ax.figure.dpi
    apart = min(0.5, (1 - 58.0 / width) / len(series))
    for k, (label, numbers) in enumerate(listed.items()):
        x = 1.0 - apart * (len(series) - 1 - k)
        look = {"linewidth": 2.2} | styles[label]
        ax.plot(
            [x - min(0.85 * apart, 40 / width), x],
            [1.0 - 0.35 * step] * 2,
            solid_capstyle="butt",
            **look,
        )
        name = plain(shorten(label, max(6, int(apart * width / 5.4))))
        ax.text(
            x,
            1.0 - 1.2 * step,
            name,
            fontsize=8.5,
            fontweight="bold",
            color=look["color"],
            ha="right",
            va="center",
        )
        for row, wanted in enumerate(names[: most - 2]):
            words = plain(numbers.get(wanted, "–"), 24)
            ax.text(
                x, 1.0 - (row + 2.4) * step, words, fontsize=8.5, color=INK, ha="right", va="center"
            )
    for row, name in enumerate(names[: most - 2]):
        ax.text(
            0.0, 1.0 - (row + 2.4) * step, plain(name, 16), fontsize=8.5, color=MUTED, va="center"
        )


def _table(ax: Axes, series: Mapping[str, Any]) -> None:
    """One row per series, the highest maximum first, with its colour, its count and its percentiles."""
    styles = series_styles(series)
    order = sorted(series, key=lambda label: -_value(series[label], 100.0))
    step, most = _rows(ax, len(series) + 1, 8.0)
    width = ax.get_window_extent().width * 72.0 / ax.figure.dpi
    longest = max(len(_text(data, p)) for data in series.values() for p in _COLUMNS)
    column = max(40.0, 4.5 * longest + 6.0)  # a range takes more room than a number
    number = max(2, min(len(_COLUMNS) + 1, int((width - 92) / column)))
    wanted = {2: (99.0, 100.0), 3: (50.0, 99.0, 100.0)}.get(number, _COLUMNS)
    counts = number > len(_COLUMNS)
    places = [1.0 - column * k / width for k in range(len(wanted))][::-1]
    places = [places[0] - column / width, *places] if counts else places
    heads = (
        *(["requests"] if counts else []),
        *(percentile_text(percentile) for percentile in wanted),
    )
    for x, words in zip(places, heads, strict=True):
        ax.text(x, 1.0 - 0.5 * step, words, fontsize=8, color=MUTED, ha="right", va="center")
    letters = max(8, int((places[0] * width - column - 0.07 * width) / 4.9))
    shown = order if len(order) < most else order[: most - 2]
    for k, label in enumerate(shown):
        y, data = 1.0 - (k + 1.5) * step, series[label]
        ax.plot([0.0, 0.05], [y, y], linewidth=2.0, **styles[label])
        ax.text(0.065, y, plain(shorten(label, letters)), fontsize=8, color=INK, va="center")
        count = requests_of(data)
        texts = [
            *([format_count(count) if count is not None else ""] if counts else []),
            *(_text(data, p) for p in wanted),
        ]
        for x, words in zip(places, texts, strict=True):
            ax.text(x, y, words, fontsize=8, color=INK, ha="right", va="center")
    if len(shown) < len(order):
        ax.text(
            0.065,
            1.0 - (len(shown) + 1.5) * step,
            f"and {len(order) - len(shown)} more",
            fontsize=8,
            color=MUTED,
            va="center",
        )


def _value(data: Any, percentile: float) -> float:
    """A percentile, or NaN where the source does not hold it."""
    if isinstance(data, Summary):
        known = dict(data.reported_percentiles) | (
            {100.0: data.stats["max"]} if "max" in data.stats else {}
        )
        return known.get(percentile, float("nan"))
    if not getattr(data, "count", 1):
        return float("nan")
    return float(data.percentile(percentile))


def _text(data: Any, percentile: float) -> str:
    """A percentile as the table shows it: a range where that is all the source says, in brackets beyond the sample."""
    value = _value(data, percentile)
    if value != value:
        return "–"

    def show(number: float) -> str:
        return format_value(number, data.unit)

    if not isinstance(data, Histogram):
        return show(value)
    (row,) = data.percentile_rows([percentile])
    return format_row(replace(row, supported=row.supported or percentile >= 100), show)
