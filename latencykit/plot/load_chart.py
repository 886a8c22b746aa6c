"""Latency against load, of given runs or of a sweep: percentiles, throughput, and the capacity."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from latencykit._text import format_items
from latencykit.core import Data
from latencykit.errors import DataNotAvailableError, require
from latencykit.plot import style
from latencykit.plot.axes import fit_values
from latencykit.plot.label_layout import EndLabels, LineLabels, head
from latencykit.plot.series import slo_pairs, uncertain_note
from latencykit.plot.timeline_chart import foot_strip
from latencykit.units import format_rate, format_value, percentile_name

if TYPE_CHECKING:
    from latencykit.analysis.capacity import LoadCurve
    from latencykit.analysis.slo import SLO
    from latencykit.ctrlz.sweep import Sweep


_STRIP, _GAP = 0.2, 0.07
_NUMBER = 0.24  # inches that the number of a run takes
_TAIL = 99.9


def load_curve(
    data: LoadCurve | Mapping[str, Data],
    *,
    ax: Axes | None = None,
    slo: SLO | str | None = None,
    percentiles: Sequence[float] = (50.0, 90.0, 99.0, _TAIL),
    confidence: float = 0.95,
    unit: str | None = None,
    log: bool = True,
    title: str | None = None,
    subtitle: str | None = None,
    **line_kwargs: object,
) -> Axes:
    """Draw percentiles against load, with the throughput that each run achieved below.

    Parameters
    ----------
    data : LoadCurve, or mapping of str to data type
        Runs at different loads; see `latencykit.load_curve`.
    ax : Axes, optional
        Where to draw; the current axes by default.
    slo : SLO or str, optional
        Its limits, and the capacity: the largest load that meets them, between the last load that
        did and the first that did not.
    percentiles : sequence of float
        One line each; the highest, the tail, is the boldest.
    confidence : float, default 0.95
        Of the bars around the tail's points, and of the check against the SLO.
    unit, log, title, subtitle
        As in `percentiles`.
    **line_kwargs
        For the lines, as `Axes.plot` takes them.

    Returns
    -------
    Axes

    Raises
    ------
    DataNotAvailableError
        Where no run has one of the percentiles.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from latencykit.core.histogram import Histogram
    >>> runs = {str(rate): Histogram.of(np.arange(1, 4000) * rate) for rate in (100, 200, 400)}
    >>> ax = load_curve(runs, ax=Figure().add_subplot(), slo="99=1ms")
    >>> [line.get_label() for line in ax.lines if not line.get_label().startswith("_")]
    ['p50', 'p90', 'p99', 'p99.9']
    """
    from latencykit.analysis import capacity  # it imports much that no other chart needs

    ax = style.current_axes(ax)
    if not isinstance(data, capacity.LoadCurve):
        curve = capacity.load_curve(data, slo, confidence=confidence)
    elif slo is not None:
        curve = capacity.load_curve(
            {row.name: row.data for row in data.rows}, slo, confidence=confidence
        )
    else:
        curve = data
    lines = {
        p: np.array([curve.percentiles(row, [p]).get(p, math.nan) for row in curve.rows])
        for p in percentiles
    }
    lines = {p: values for p, values in lines.items() if not np.isnan(values).all()}
    if not lines:
        raise DataNotAvailableError(
            "no run has the percentiles asked for, so there is nothing to draw"
        )
    pairs, stored = slo_pairs(curve.slo), curve.rows[0].data.unit
    drawn = np.concatenate([*lines.values(), [limit for _, limit in pairs]])
    fit_values(ax, drawn, stored, fixed=unit, log=log)
    rates = np.array([row.rate for row in curve.rows])
    span = float(rates.max() - rates.min()) or float(rates.max())
    ax.set_xlim(max(0.0, float(rates.min()) - 0.03 * span), float(rates.max()) + 0.03 * span)
    inches = ax.bbox.width / ax.figure.dpi
    ax.xaxis.set_major_locator(
        MaxNLocator(min(8, max(2, int(1.4 * inches))), steps=[1, 2, 2.5, 5, 10])
    )
    ax.xaxis.set_major_formatter(FuncFormatter(lambda rate, _: f"{rate:,.10g}"))
    if log:  # the strip below takes space, which the logarithmic axis gives
        low, high = ax.get_ylim()
        ax.set_ylim(low / (high / low) ** ((_STRIP + _GAP) / (1 - _STRIP - _GAP)), high)
    labels = LineLabels(lower=_STRIP + _GAP)
    causes: list[str] = []
    known = [row.percentile_rows([*lines], confidence) for row in curve.rows]  # of summaries none
    for k, p in enumerate(lines):
        boldest = p == max(lines)
        colour = style.INK if boldest and len(lines) > 1 else style.COLOURS[k % len(style.COLOURS)]
        look: style.Look = {"color": colour, "linewidth": 2.2 if boldest else 1.4}
        ranges, supported = np.full((len(known), 2), np.nan), np.ones(len(known), np.bool_)
        for number, one in ((number, some[k]) for number, some in enumerate(known) if some):
            if not one.resolved and not math.isinf(one.bucket_high):
                ranges[number] = one.bucket_low, one.bucket_high
            supported[number] = one.supported
            causes += [] if one.supported else [one.cause]
        values = np.where(np.isfinite(ranges[:, 1]), math.nan, lines[p])
        # Straight in the latency's reciprocal: as a queue near its pole, and as a capacity is read.
        exact = np.isfinite(values) & (values > 0)
        x, y = rates[exact], values[exact]
        if x.size > 1:
            between = np.unique(np.concatenate((x, np.linspace(x[0], x[-1], 300))))
            x, y = between, 1.0 / np.interp(between, x, 1.0 / y)
        own = ax.plot(x, y, label=percentile_name(p), **{**look, "zorder": 3, **line_kwargs})
        mark: style.Look = {"linestyle": "none", "marker": "o", "markersize": 5, "zorder": 4}
        mark |= {"color": colour, "label": "_runs"}
        for chosen, face in ((supported, colour), (~supported, style.ground_of(ax))):
            ax.plot(rates[chosen], values[chosen], markerfacecolor=face, **mark)
        # A range is a bar: no line runs through a number that is not known.
        bar: style.Look = {"color": colour, "linewidth": 3 if boldest else 2}
        ax.vlines(rates, *np.maximum(ranges, ax.get_ylim()[0]).T, zorder=3, **bar)
        middle = np.sqrt(ranges[:, 0] * ranges[:, 1])
        own += ax.plot(rates, middle, color=colour, linestyle="none", marker="", label="_range")
        labels.add(ax, percentile_name(p), own, at=0.3, spread=0.7)
    # The tail's intervals, up to the maximum where they have no upper end.
    ends, tail = np.full((len(known), 2), np.nan), [*lines].index(max(lines))
    for k, some in enumerate(known):
        if some:
            last, largest = some[tail], curve.rows[k].data.max
            high = last.high if math.isfinite(last.high) else max(largest, last.value)
            bounded = math.isfinite(last.low)
            ends[k] = (last.low, high) if bounded else (last.bucket_low, last.bucket_high)
    ax.vlines(rates, *ends.T, color=style.INK, alpha=0.35, linewidth=4, zorder=2)
    limits = EndLabels()
    for p, limit in pairs:
        ax.axhline(limit, color=style.INK, linewidth=1.1, label="_slo", zorder=2.5)
        words = f"SLO {percentile_name(p)} {format_value(limit, stored)}"
        limits.add(ax, words, limit, fontsize=9, color=style.INK)
    limits.attach(ax)
    found = curve.capacity
    if found is not None and not math.isnan(found.rate):
        rate, words = found.rate, f"{format_rate(found.rounded)}/s"
        if math.isfinite(found.high):
            ax.axvspan(found.low, found.high, color=style.BLUE, alpha=0.08, linewidth=0, zorder=0)
        else:  # loads above it were not surely met, whatever the estimate
            rate, words = found.low, f"≥ {format_rate(found.low)}/s"
        if math.isfinite(found.high) or found.low:
            line = ax.axvline(rate, color=style.BLUE, label="_capacity", linewidth=1.4, zorder=2.5)
            bold: style.Look = {"fontsize": 9.5, "color": style.BLUE, "fontweight": "bold"}
            labels.point(ax, words, (rate, ax.get_ylim()[1]), [line], **bold)
    measured = [row for row in curve.rows if not math.isnan(row.achieved)]
    if measured:  # bars at the foot; amber where less than was offered
        top = max(max(row.achieved, row.offered if row.saturated else 0.0) for row in measured)
        strip = foot_strip(ax, _STRIP, top, top * 1.05, f"{format_rate(top)}/s")
        left, right = ax.get_xlim()
        width = 0.022 * (right - left)
        strip.bar(
            [row.rate for row in measured], [row.achieved for row in measured], width, alpha=0.7,
            color=[style.AMBER if row.saturated else style.GREY for row in measured],
            label="achieved",
        )  # fmt: skip
        for row in measured:
            if row.saturated:
                sides = [row.rate - width / 2, row.rate + width / 2]
                strip.plot(sides, [row.offered] * 2, color=style.INK, linewidth=1.2)
    ax.add_artist(labels)
    style.tidy(ax, "load, requests per second")
    runs, bars = [row.data.run for row in curve.rows], "bars: throughput achieved"
    if any(row.saturated for row in curve.rows):
        bars += ", amber where it fell short of what was offered"
    assumed = dict.fromkeys(run.unit for run in runs if run.unit_note is not None)
    # Which limit is reached first is known where one is.
    limited = found is not None and found.low > 0 and math.isfinite(found.high)
    interval = f"upright: {100 * confidence:g} % interval of {percentile_name(max(lines))}"
    slo_words = "" if curve.slo is None else f"SLO {curve.slo}"
    parts = [
        f"{slo_words}; limited by {curve.limited_by}" if limited else slo_words,
        found.reason if found is not None else "",
        bars,
        interval if np.isfinite(ends).any() else "",
        uncertain_note("hollow", causes),
        *(f"values assumed to be {one}" for one in assumed),
    ]
    head(ax, _finding(curve), " · ".join(filter(None, parts)), title, subtitle)
    return ax


def _finding(curve: LoadCurve) -> str:
    capacity, rows = curve.capacity, curve.rows
    if capacity is None:
        first, last = format_rate(rows[0].rate), format_rate(rows[-1].rate)
        rates = f"from {first} to {last}" if first != last else f"at {first}"
        return f"{format_items(len(rows), 'run')} {rates} requests/s"
    if math.isnan(capacity.rate):
        return "No load that was measured meets the SLO"
    if not capacity.low:
        missed = f"; {format_rate(capacity.high)} requests/s misses it"
        return f"No load measured surely meets the SLO{missed * math.isfinite(capacity.high)}"
    if math.isinf(capacity.high):
        highest = ", the highest load measured" * (capacity.low == rows[-1].rate)
        return f"The SLO is met up to {format_rate(capacity.low)} requests/s{highest}"
    bracket = f"between {format_rate(capacity.low)} (met) and {format_rate(capacity.high)} (not)"
    rate = format_rate(capacity.rounded)
    return f"About {rate} requests/s within the SLO: {bracket}"


_VERDICTS = {"met": style.BLUE, "missed": style.AMBER, "unknown": style.GREY}


def sweep(
    data: Sweep,
    *,
    ax: Axes | None = None,
    percentiles: Sequence[float] | None = None,
    unit: str | None = None,
    title: str | None = None,
    subtitle: str | None = None,
) -> Axes:
    """Draw percentiles against load, with the order and the verdict of each run.

    Parameters
    ----------
    data : Sweep
    ax : Axes, optional
        Where to draw; the current axes by default.
    percentiles : sequence of float, optional
        One line each; the highest has bars for its intervals. By default the median and those that
        the SLO limits.
    unit, title, subtitle
        As in `percentiles`.

    Returns
    -------
    Axes

    Raises
    ------
    DataNotAvailableError
        For a sweep without a verdict.
    """
    from latencykit.ctrlz.sweep import Sweep

    require(data, Sweep, "a sweep: lk.sweep(command, slo)")
    curve = data.curve
    if curve is None:
        raise DataNotAvailableError("no run of the sweep has a verdict: there is nothing to draw")
    ax = style.current_axes(ax)
    # Lines go through the longest run at each load: that of several which is surest.
    durations = {run.name: run.duration for run in data.runs}
    rows = sorted(curve.rows, key=lambda row: durations[row.name])
    surest = {row.rate: row for row in rows}
    kept = [k for k, row in enumerate(curve.rows) if surest[row.rate] is row]
    drawn = replace(
        curve, rows=tuple(curve.rows[k] for k in kept), checks=tuple(curve.checks[k] for k in kept)
    )
    if percentiles is None:
        percentiles = sorted({50.0, *(p for p, _ in slo_pairs(drawn.slo) if p < 100)})
    order = "numbers: order of the runs; blue met, amber missed, grey undecided"
    load_curve(
        drawn, ax=ax, percentiles=percentiles, confidence=data.confidence, unit=unit,
        title=title, subtitle=f"{data.slo} · {order}" if subtitle is None else subtitle,
    )  # fmt: skip
    # The numbers stand over each load, in the colour of the verdict, those of near loads below each
    # other; what is drawn makes room for them.
    left, right = ax.get_xlim()
    near = _NUMBER / ax.bbox.width * ax.figure.dpi * (right - left)
    numbered = sorted((run.rate, run.number, run) for run in data.runs if run.purpose != "warm-up")
    ends: list[float] = []
    points = ax.bbox.height / ax.figure.dpi * 72
    most = max(1, int((0.3 * points - 8) / 11))  # a small picture shows the first of near runs
    for rate, number, run in numbered:
        level = next((k for k, end in enumerate(ends) if rate - end >= near), len(ends))
        if level == most:
            continue
        ends[level : level + 1] = [rate]
        ax.annotate(
            str(number), (rate, 1.0), xycoords=("data", "axes fraction"),
            xytext=(0, -4 - 11 * level), textcoords="offset points", ha="center", va="top",
            fontsize=8, fontweight="bold", color=_VERDICTS.get(run.verdict, style.INK), zorder=6,
            **style.halo(ax),
        )  # fmt: skip
    foot, room = _STRIP + _GAP, min((8 + 11 * len(ends)) / points, 0.4)
    low, high = np.log(ax.get_ylim())
    span = (1 - foot) * (high - low) / (1 - foot - room)
    ax.set_ylim(math.exp(high - span * (1 - room)), math.exp(high + span * room))
    return ax
