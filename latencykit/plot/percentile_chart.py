"""The full distribution as a curve that shows its tail: evenly by nines, or as a CCDF.

On the logarithmic axes of the complementary cumulative distribution heavy tails are straight lines.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator

from latencykit._text import plain
from latencykit._typing import Floats
from latencykit.core import is_summary
from latencykit.core.percentile_rows import Doubt
from latencykit.plot.axes import fit_values, share_text
from latencykit.plot.curves import (
    area_notes,
    band,
    band_ends,
    curve_of,
    draw_curve,
    end_words,
    grid_of,
    nines_of,
    place_of,
    two_stories,
)
from latencykit.plot.label_layout import LineLabels, head, name_curves
from latencykit.plot.series import (
    Drawable,
    Limits,
    as_series,
    chart_title,
    dashes_note,
    distinct_names,
    doubts_from,
    drawable,
    evidence_of,
    is_empty,
    joined,
    key_finding,
    named_count,
    slo_finding,
    slo_pairs,
)
from latencykit.plot.style import (
    FEW,
    GREY,
    GROUND,
    INK,
    MARKERS,
    Look,
    current_axes,
    series_styles,
    size_in_points,
    tidy,
)
from latencykit.units import format_percentile, format_value, percentile_name, sure_percentile

if TYPE_CHECKING:
    from latencykit.core.summary import Summary


def percentiles(
    data: Drawable,
    *,
    ax: Axes | None = None,
    unit: str | None = None,
    slo: Limits | None = None,
    confidence: float | None = None,
    nines: float | None = None,
    log: bool = True,
    runs: bool = False,
    dashed_from: Mapping[str, Sequence[Doubt]] | None = None,
    legend: bool = True,
    title: str | None = None,
    subtitle: str | None = None,
    **line_kwargs: object,
) -> Axes:
    """Draw percentile curves.

    Parameters
    ----------
    data : data type, Distribution, or mapping of str to such
        A tagged log gives one curve per tag.
    ax : Axes, optional
        Where to draw; the current axes by default.
    unit : str, optional
        Unit of all ticks (``ns``, ``us``, ``ms``, ``s``); by default a suitable one for each tick.
    slo : SLO, str such as ``"99.9=20ms"``, or sequence of (percentile, limit in ns), optional
        Limits, drawn as a staircase: each applies up to its percentile.
    confidence : float, optional
        Draw the band of that confidence, such as 0.95.
    nines : float, optional
        Nines before 100 %; by default as many as the largest sample fills, at most 6, or as the
        source reports percentiles of.
    log : bool, default True
        Logarithmic values.
    runs : bool, default False
        The series are runs of one thing: thin lines, their median and their range.
    dashed_from : mapping of label to sequence of Doubt, optional
        Percentiles at which a curve is dashed, based on a few events, and what these are
        ("1 stall"). By default as logs and samples report it; an empty mapping for none.
    legend : bool, default True
        Name the series.
    title, subtitle : str, optional
        By default the finding where there is one, else what was measured; and the conditions.
        Empty for none.
    **line_kwargs
        For the lines, as `Axes.plot` takes them.

    Returns
    -------
    Axes

    Raises
    ------
    DataNotAvailableError
        Where nothing was counted.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from latencykit.core.histogram import Histogram
    >>> ax = percentiles(Histogram.of([1_000_000, 2_000_000]), ax=Figure().add_subplot())
    >>> ax.get_xscale(), [float(end) for end in ax.get_xlim()]
    ('percentile', [0.0, 100.0])
    """
    ax = current_axes(ax)
    series = as_series(data)
    summaries = {
        label: part for label, part in series.items() if is_summary(part) and not is_empty(part)
    }
    measured = {label: part for label, part in series.items() if label not in summaries}
    counted, empty = drawable(measured, "curve", others=bool(summaries))
    shown = {
        label: (counted | summaries)[label] for label in series if label in counted | summaries
    }
    curves = {label: curve_of(part) for label, part in counted.items()}
    doubts: Mapping[str, Sequence[Doubt]] = {} if dashed_from is None else dashed_from
    if dashed_from is None and not runs:
        doubts = doubts_from({label: measured[label] for label in counted}, counted)
    pairs = slo_pairs(slo)
    reported = [p for part in summaries.values() for p in part.reported_percentiles if p < 100]
    for part in counted.values():
        reported += [p for p in getattr(part, "reported_percentiles", ((),))[0] if p < 100]
    deepest = math.ceil(float(place_of(np.array(max(reported, default=0.0)))) - 1e-6)
    filled = max((nines_of(curve.count) for curve in curves.values()), default=3)
    places = nines or max(filled, deepest)
    ax.set_xscale("percentile", nines=places)
    ax.set_xlim(0, 100)
    values = [np.append(curve.value, curve.top) for curve in curves.values()]
    values += [_known_values(summary) for summary in summaries.values()]
    values.append(np.array([limit for _, limit in pairs]))
    # Points have no line that leads to them; they keep a distance from the frame.
    below = 1.6 if summaries else 1.0
    stored = next(iter((curves | summaries).values())).unit
    zero = fit_values(ax, np.concatenate(values), stored, below=below, fixed=unit, log=log)
    styles, labels, lines = series_styles(shown), LineLabels(), {}
    as_runs = runs and len(curves) > 1
    if as_runs:
        # Thin lines, the range that they span, and their median.
        for label, curve in curves.items():
            thin = {"color": GREY, "linewidth": 0.7, "label": f"_{plain(label)}"}
            draw_curve(ax, curve, thin, zero, crowded=True)
        grid = grid_of(100.0, places, 500)
        spread = np.maximum(np.array([curve.at(grid) for curve in curves.values()]), zero)
        fill: Look = {"step": "pre", "color": GREY, "alpha": 0.22, "linewidth": 0, "zorder": 1}
        ax.fill_between(grid, spread.min(0), spread.max(0), **fill)
        # The lower middle run where their number is even would flatter; the upper one does not.
        middle = np.sort(spread, axis=0)[len(curves) // 2]
        bold: Look = {"color": INK, "linewidth": 1.8, "zorder": 4}
        bold |= {"label": f"median of {len(curves)} runs"} | line_kwargs
        lines[""] = ax.plot(grid, middle, drawstyle="steps-pre", **bold)
    for label, curve in curves.items() if not as_runs else ():
        look: Look = {"linewidth": 1.8 if len(curves) <= FEW else 1.5}
        look |= {"label": plain(label) or "_nolegend_"} | styles[label] | line_kwargs
        lines[label] = draw_curve(
            ax, curve, look, zero, doubts.get(label, ()), crowded=len(curves) > FEW
        )
        if confidence is not None and hasattr(counted[label], "evidence"):
            evidence = evidence_of(series[label], counted[label])
            band(ax, band_ends(evidence, curve, confidence, places), look["color"], zero)
    names = distinct_names(series, 32)
    for label, summary in summaries.items():
        alone = len(series) == 1
        own = "" if alone or len(shown) > FEW or not legend else named_count(names[label], summary)
        lines[label] = _draw_summary(ax, labels, summary, styles[label], own, zero, alone=alone)
    only = ""
    if len(shown) == len(summaries) and (len(shown) == 1 or all(map(_mean_only, shown.values()))):
        run = next(iter(summaries.values())).run
        what = "these points only; values between them are unknown"
        if all(map(_mean_only, shown.values())):
            what = "means only; the distribution is unknown"
        only = f"{run.tool or run.source or 'this output'} reports {what}"
    if pairs:
        at = np.array([0.0, *(percentile for percentile, _ in pairs)])
        limits = np.array([pairs[0][1], *(limit for _, limit in pairs)])
        step: Look = {"drawstyle": "steps-pre", "zorder": 2.5, "label": "_slo"}
        stair = ax.plot(at, limits, color=INK, linewidth=1.2, **step)
        labels.add(ax, "SLO", stair, at=0.0, spread=0.9, color=INK, fontweight="normal", fontsize=9)
    if as_runs:
        tops = [curve.top for curve in curves.values()]
        words = f"max {format_value(min(tops), stored)} to {format_value(max(tops), stored)}"
        labels.add(ax, f"median of {len(curves)} runs", lines[""], at=0.4)
        labels.point(ax, words, (100.0, max(tops)), lines[""], color=INK, fontsize=9)
    elif legend:
        ends = {label: (curve.top, end_words(curve)) for label, curve in curves.items()}
        for label, summary in summaries.items():
            name = next((name for name in ("max", "mean") if name in summary.stats), None)
            text = f"{name} {format_value(summary.stats[name], summary.unit)}" if name else ""
            ends[label] = float(_known_values(summary).max(initial=0.0)), text
        many = len(shown) > FEW
        named = {key: part for key, part in shown.items() if many or not _mean_only(part)}
        name_curves(ax, labels, named, curves, ends, lines, (0.38, 0.04, 0.6))
    ax.add_artist(labels)
    # A grey ground where no sample reaches, and words on it, unless it is slim.
    limit, words = max((curve.limit for curve in curves.values()), default=100.0), ""
    start, reached, end = ax.transScale.transform([(0.0, 1.0), (limit, 1.0), (100.0, 1.0)])[:, 0]
    width, _ = size_in_points(ax)
    if (end - reached) / (end - start) * width >= 2:
        ax.axvspan(limit, 100, color=GROUND, zorder=0, linewidth=0)
        sure = format_percentile(sure_percentile(limit))
        words = ("\n" if width < 340 else " ") + f"(grey: too few requests above p{sure})"
    tidy(ax, f"percentile of requests{words}")
    finding = None
    if not runs and pairs and len(shown) == 1:
        ((label, part),) = shown.items()
        finding = slo_finding(label, part, pairs)
    elif not runs:
        finding = two_stories(shown, curves) or key_finding(shown)
    default = chart_title(shown, "runs" if runs else "")
    dashes = dashes_note({label: doubts[label] for label in curves if label in doubts})
    if finding and len(shown) == 1:  # which names it
        default = chart_title({"": next(iter(shown.values()))})
    notes = [default if finding else "", empty, only, dashes, *area_notes(ax, confidence)]
    head(ax, finding or default, joined(shown, *notes), title, subtitle)
    return ax


def _known_values(summary: Summary) -> Floats:
    stats = (summary.stats[name] for name in ("min", "mean", "max") if name in summary.stats)
    return np.array([*summary.reported_percentiles.values(), *stats])


_LABELLED = 12
_USUAL = (0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0)


def _mean_only(part: object) -> bool:
    """Whether no percentile is known of it: it has no curve that a name could stand beside."""
    return is_summary(part) and not (
        part.reported_percentiles or "min" in part.stats or "max" in part.stats
    )


def _draw_summary(
    ax: Axes,
    labels: LineLabels,
    summary: Summary,
    style: Look,
    title: str,
    zero: float,
    *,
    alone: bool,
) -> list[Line2D]:
    """Draw points, among others along a dotted line, or the mean as a mark at the axis."""
    known = dict(summary.reported_percentiles)
    for name, percentile in (("min", 0.0), ("max", 100.0)):
        if name in summary.stats:
            known[percentile] = summary.stats[name]
    known = dict(sorted(known.items()))
    mean, colour = summary.stats.get("mean", math.nan), style["color"]
    if known:
        mark: Look = {"linestyle": "none" if alone else ":", "linewidth": 0.9, "zorder": 4}
        marker = dict(zip(MARKERS, ("o", "s", "^", "D"), strict=True))[style["marker"]]
        mark |= {"color": colour, "marker": marker, "markersize": 5.5}
        places = {percentile: max(value, zero) for percentile, value in known.items()}
        lines = ax.plot(list(places), list(places.values()), clip_on=False, **mark)
        for percentile, value in known.items() if alone else ():
            if len(known) <= _LABELLED or percentile in _USUAL:
                name = "min" if percentile == 0 else percentile_name(percentile)
                words = f"{name} {format_value(value, summary.unit)}"
                labels.point(ax, words, (percentile, places[percentile]), lines, fontsize=9)
    else:
        # No percentile is known, so nothing runs along their axis.
        place: Look = {"transform": ax.get_yaxis_transform(), "linewidth": 3, "zorder": 4}
        lines = ax.plot([0.0, 0.03], [mean, mean], color=colour, solid_capstyle="butt", **place)
        if not math.isnan(mean) and (alone or title):
            words = f"{title}  mean {format_value(mean, summary.unit)}".lstrip()
            labels.point(ax, words, (1.0, mean), lines, fontsize=9)
    return lines


def ccdf(
    data: Drawable,
    *,
    ax: Axes | None = None,
    unit: str | None = None,
    slo: Limits | None = None,
    confidence: float | None = None,
    legend: bool = True,
    title: str | None = None,
    subtitle: str | None = None,
    **line_kwargs: object,
) -> Axes:
    """Draw the share of requests that took longer than each value.

    Parameters
    ----------
    data : data type with buckets, Distribution, or mapping of str to such
    slo : optional
        As in `percentiles`; each limit is a point at the share that it allows: curves should pass
        below and left of it.
    confidence : float, optional
        Draw the band of that confidence.
    ax, unit, legend, title, subtitle, **line_kwargs
        As in `percentiles`.

    Returns
    -------
    Axes

    Raises
    ------
    DataNotAvailableError
        For a summary, and where nothing was counted.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from latencykit.core.histogram import Histogram
    >>> ax = ccdf(Histogram.of(range(1, 1000)), ax=Figure().add_subplot())
    >>> ax.get_xscale(), ax.get_yscale()
    ('log', 'log')
    """
    ax = current_axes(ax)
    measured = as_series(data)
    series, empty = drawable(measured, "tail")
    doubts = doubts_from({label: measured[label] for label in series}, series)
    curves = {label: curve_of(values) for label, values in series.items()}
    values = [np.append(curve.value, curve.top) for curve in curves.values()]
    values.append(np.array([limit for _, limit in slo_pairs(slo)]))
    stored = next(iter(curves.values())).unit
    zero = fit_values(ax, np.concatenate(values), stored, fixed=unit, along="x")
    largest = max((curve.count or 10**6) + curve.censored for curve in curves.values())
    least = 0.5 / largest  # half a request
    ax.set_yscale("log")
    ax.set_ylim(least, 1.6)
    ax.yaxis.set_major_locator(LogLocator(numticks=9))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(share_text)
    lines, crowded = {}, len(series) > FEW
    for label, style in series_styles(series).items():
        look: Look = {"linewidth": 1.4 if crowded else 1.8}
        look |= {"label": plain(label) or "_nolegend_"} | style | line_kwargs
        lines[label] = draw_curve(
            ax, curves[label], look, zero, doubts.get(label, ()),
            crowded=crowded, across=True, least=least,
        )  # fmt: skip
        if confidence is not None and hasattr(series[label], "percentile_rows"):
            evidence = evidence_of(measured[label], series[label])
            ends = band_ends(evidence, curves[label], confidence, 12)
            band(ax, ends, look["color"], zero, across=True, least=least)
    for percentile, limit in slo_pairs(slo):
        at, words = (limit, max(1 - percentile / 100, least)), f"SLO {percentile_name(percentile)}"
        mark: Look = {"marker": "s", "markersize": 5, "zorder": 5, "clip_on": False}
        ax.plot(*at, color=INK, linestyle="none", label="_slo", **mark)
        ax.annotate(words, at, (6, 3), "data", "offset points", fontsize=8.5, color=INK)
    labels = LineLabels()
    ends_of = {label: (curve.top, end_words(curve)) for label, curve in curves.items()}
    places = (0.45, 0.05, 0.5)
    name_curves(ax, labels, series, curves, ends_of, lines, places, across=True, named=legend)
    ax.add_artist(labels)
    tidy(ax, "latency" if stored != "none" else "value", "share of requests that took longer")
    notes = [empty, dashes_note(doubts), "dotted: the sample is too small"]
    notes += area_notes(ax, confidence)
    head(ax, chart_title(series), joined(series, *notes), title, subtitle)
    return ax
