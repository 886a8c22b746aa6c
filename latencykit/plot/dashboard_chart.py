"""The picture to print: timeline, percentile curve below, key numbers and verdict beside it."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from functools import partial
from typing import Any

from matplotlib.axes import Axes

from latencykit._text import plain
from latencykit.analysis.omission import diagnosed, omission_text
from latencykit.analysis.slow_times import incident_of
from latencykit.core.histogram import Histogram
from latencykit.core.histogram_log import HistogramLog
from latencykit.core.key_statistics import key_statistics
from latencykit.core.percentile_rows import statistic_text
from latencykit.core.samples import Samples
from latencykit.core.summary import Summary
from latencykit.plot import style
from latencykit.plot.curves import area_notes
from latencykit.plot.density_chart import density
from latencykit.plot.diagnosis_chart import stall_rows
from latencykit.plot.label_layout import head
from latencykit.plot.percentile_chart import percentiles
from latencykit.plot.series import (
    Drawable,
    Limits,
    StallRows,
    as_histogram,
    as_series,
    chart_title,
    dashes_note,
    doubts_from,
    evidence_of,
    joined,
    key_finding,
    requests_of,
    slo_finding,
    slo_pairs,
)
from latencykit.plot.timeline_chart import timeline
from latencykit.units import format_count, format_row, format_value, percentile_name

_COLUMNS, _MEAN = (50.0, 99.0, 99.9, 100.0), -1.0  # percentiles; the place of a mean
_USUAL = ("p50", "p90", "p95", "p99", "p99.9", "p99.99")


def dashboard(
    data: Drawable,
    *,
    ax: Axes | None = None,
    unit: str | None = None,
    slo: Limits | None = None,
    confidence: float | None = 0.95,
    nines: float | None = None,
    stalls: StallRows | None = None,
    title: str | None = None,
    subtitle: str | None = None,
    **line_kwargs: object,
) -> Axes:
    """Draw timeline, percentile curve and key numbers on one page.

    Parameters
    ----------
    data : data type, or mapping of str to data type
        Of one series all key numbers are listed beside the curve; of several a table, which is also
        the legend. Where no time is known, the density takes the place of the timeline.
    ax : Axes, optional
        The page; its own frame is hidden and its panels are laid inside. The current axes by
        default.
    unit, slo, confidence, nines
        As in `percentiles`.
    stalls : optional
        As in `timeline`; by default those in which requests were omitted.
    title, subtitle : str, optional
        By default what was measured, and the conditions. Empty for none.
    **line_kwargs
        For the percentile curves.

    Returns
    -------
    Axes
        The page; ``page.child_axes`` are its panels.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> page = dashboard(Histogram.of(range(1, 1000)), ax=Figure().add_subplot())
    >>> len(page.child_axes)
    3
    """
    page = style.current_axes(ax)
    series = as_series(data)
    counted = {label: as_histogram(values) for label, values in series.items()}
    single = len(series) == 1
    page.set_axis_off()
    # The space between the panels is for their labels.
    width, height = style.size_in_points(page)
    gap, margin = min(46 / height, 0.2), min(26 / width, 0.06)
    share = min(max((170 if single else 300) / width, 0.18), 0.30 if single else 0.5)
    timed = all(
        isinstance(values, HistogramLog)
        or (isinstance(values, Samples) and values.start is not None)
        for values in series.values()
    )
    # The percentiles of summaries are all that is known of them: they have the page for themselves.
    above = timed or not any(isinstance(values, Summary) for values in counted.values())
    half = (1 - gap) / 2
    upper = page.inset_axes((0.0, (1 + gap) / 2, 1.0, half), label="") if above else None
    lower = page.inset_axes((0.0, 0.0, 1 - share - margin, half if above else 1.0))
    beside = page.inset_axes((1 - share, 0.0, share, half if above else 1.0))
    beside.set_axis_off()
    beside.set_xlim(0, 1)
    beside.set_ylim(0, 1)
    quiet: dict[str, Any] = {"unit": unit, "title": "", "subtitle": "", "legend": single}
    omitted = ""
    if single and timed:
        ((label, total),) = counted.items()
        found = diagnosed(series[label], total) if total.count else None
        omitted = omission_text(found)
        if omitted and found is not None and stalls is None:
            stalls = stall_rows(found)
    if timed:
        timeline(series, ax=upper, stalls=stalls, **quiet)
    elif upper is not None:
        density(counted, ax=upper, **quiet)
    band = confidence if len(counted) <= 3 else None
    percentiles(series, ax=lower, slo=slo, confidence=band, nines=nines, **(quiet | line_kwargs))
    lines = "" if single else "timeline: p99 bold, max thin"
    finding = None
    if single:
        ((label, total),) = counted.items()
        finding = slo_finding(label, total, slo_pairs(slo)) or key_finding(counted)
        words = omitted
        if not omitted and timed and total.count:
            incident = incident_of(series[label], evidence_of(series[label], total), found)
            words = "" if incident is None else incident.text
        # Names flush left, numbers flush right, and what happened below if it fits.
        rows, letters = key_statistics(total), max(16, int(style.size_in_points(beside)[0] / 4.6))
        texts = textwrap.wrap(words, letters)
        if len(rows) > _rows(beside, len(rows))[1]:  # the usual percentiles, and what is none
            rows = [row for row in rows if row[0] in _USUAL or row[0][1:].isalpha()]
        step, most = _rows(beside, len(rows) + len(texts))
        for k, (name, value) in enumerate(rows[:most]):
            y = 1.0 - (k + 0.5) * step
            _write(beside, 0.0, y, plain(name, 24), fontsize=9, color=style.MUTED)
            _write(beside, 1.0, y, plain(value, 24), fontsize=9, ha="right")
        for k, line in enumerate(texts if len(rows) + len(texts) <= most else (), len(rows)):
            y = 1.0 - (k + 0.6) * step
            _write(beside, 0.0, y, plain(line, 80), fontsize=8, color=style.MUTED)
    else:
        _table(beside, counted)
    bracketed = any(text.get_text().startswith("(") for text in beside.texts)
    brackets = "in brackets: uncertain" if bracketed else ""
    default = chart_title(counted)
    measured = default if finding else ""
    dashes = dashes_note(doubts_from(series, counted))
    intervals = "" if upper is None else str(upper.get_label())
    notes = [measured, lines if timed else "", intervals, dashes, brackets]
    notes += area_notes(lower, band)
    head(page, finding or default, joined(counted, *notes), title, subtitle)
    return page


def _rows(ax: Axes, needed: int, size: float = 9.0) -> tuple[float, int]:
    """Return the height of a row as a share of the axes, and how many rows fit."""
    _, height = style.size_in_points(ax)
    step = min(17.0, max(size * 1.25, height / max(needed, 1)))
    return step / height, max(1, int(height / step + 1e-9))


def _write(ax: Axes, x: float, y: float, text: str, **look: Any) -> None:
    ax.text(x, y, text, **{"va": "center", "color": style.INK} | look)


def _table(ax: Axes, series: Mapping[str, object]) -> None:
    """Write one row per series with its count and percentiles, the highest maximum first."""
    styles = style.series_styles(series)
    order = sorted(series, key=lambda label: -_value(series[label], 100.0))
    step, most = _rows(ax, len(series) + 1, 8.0)
    width, _ = style.size_in_points(ax)
    longest = max(len(_text(data, p)) for data in series.values() for p in _COLUMNS)
    column = max(40.0, 4.5 * longest + 6.0)  # a range takes more space than a number
    number = max(2, min(len(_COLUMNS) + 1, int((width - 92) / column)))
    chosen = {2: (99.0, 100.0), 3: (50.0, 99.0, 100.0)}.get(number, _COLUMNS)
    if all(_text(data, p) == "–" for data in series.values() for p in _COLUMNS):
        chosen = (_MEAN,)
    counts = number > len(_COLUMNS)
    places = [1.0 - column * k / width for k in range(len(chosen))][::-1]
    places = [places[0] - column / width, *places] if counts else places
    heads = [
        *(["requests"] if counts else []),
        *("mean" if p == _MEAN else percentile_name(p) for p in chosen),
    ]
    look: style.Look = {"fontsize": 8}
    for x, words in zip(places, heads, strict=True):
        _write(ax, x, 1.0 - 0.5 * step, words, color=style.MUTED, ha="right", **look)
    letters = max(8, int((places[0] * width - column - 0.07 * width) / 4.9))
    shown = order if len(order) < most else order[: most - 2]
    for k, (label, short) in enumerate(zip(shown, style.short_names(shown, letters), strict=True)):
        y, data = 1.0 - (k + 1.5) * step, series[label]
        middle: style.Look = {**styles[label], "linewidth": 2.0, "markevery": [1]}
        ax.plot([0.0, 0.025, 0.05], [y] * 3, **middle)
        _write(ax, 0.065, y, plain(short), **look)
        texts = [_text(data, p) for p in chosen]
        if counts:
            count = requests_of(data)
            texts.insert(0, format_count(count) if count is not None else "")
        for x, words in zip(places, texts, strict=True):
            _write(ax, x, y, words, ha="right", **look)
    if len(shown) < len(order):
        y, words = 1.0 - (len(shown) + 1.5) * step, f"and {len(order) - len(shown)} more"
        _write(ax, 0.065, y, words, color=style.MUTED, **look)


def _value(data: Any, percentile: float) -> float:
    """Return a percentile, or NaN where the source does not have it."""
    if isinstance(data, Summary):
        known = dict(data.reported_percentiles)
        names = ((100.0, "max"), (_MEAN, "mean"))
        known |= {p: data.stats[name] for p, name in names if name in data.stats}
        return known.get(percentile, float("nan"))
    return float(data.percentile(percentile)) if getattr(data, "count", 1) else float("nan")


def _text(data: Any, percentile: float) -> str:
    """Return a percentile as the table shows it: maybe a range, in brackets beyond the sample."""
    value = _value(data, percentile)
    if value != value:
        return "–"
    if percentile == 100 and isinstance(data, Histogram):
        return statistic_text(data, "max")
    show = partial(format_value, unit=data.unit)
    if not isinstance(data, Histogram):
        return show(value)
    (row,) = data.percentile_rows([percentile])
    return format_row(row, show)
