"""The percentile curve: the whole distribution, evenly by nines, with the maximum and the limit of trust."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.core.summary import Summary
from latencykit.plot.axes import fit_values
from latencykit.plot.curves import (
    SHADED,
    as_series,
    band,
    curve_of,
    dashes,
    draw_curve,
    draw_summary,
    drawable,
    end_words,
    evidence_of,
    expect_evidence,
    grid_of,
    nines_of,
    resting,
    two_stories,
)
from latencykit.plot.figure import (
    chart_title,
    head,
    joined,
    named_count,
    same_words,
    slo_finding,
    slo_pairs,
)
from latencykit.plot.label_layout import LineLabels, outside_legend
from latencykit.plot.style import (
    FEW,
    GREY,
    GROUND,
    INK,
    current_axes,
    plain,
    series_styles,
    shorten,
    tidy,
)
from latencykit.units import format_percentile, format_value, sure_percentile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

    from latencykit.plot._typing import Dashed, Drawable, Limits
    from latencykit.plot.curves import Curve

__all__ = ["percentiles", "staircase"]


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
    dashed_from: Dashed | Mapping[str, Dashed] | None = None,
    legend: bool = True,
    title: str | None = None,
    subtitle: str | None = None,
    **line_kwargs: Any,
) -> Axes:
    """Draw percentile curves.

    Parameters
    ----------
    data : data type, Distribution, or mapping of str to such
        A tagged log gives one curve a tag.
    ax : Axes, optional
        Where to draw; the current axes by default.
    unit : str, optional
        Unit of all ticks (``ns``, ``us``, ``ms``, ``s``); by default each tick takes the one that suits it.
    slo : SLO, str such as ``"99.9=20ms"``, or sequence of (percentile, limit in ns), optional
        Limits, drawn as a staircase: each holds up to its percentile.
    confidence : float, optional
        Draw the band of that confidence, such as 0.95.
    nines : float, optional
        Nines before 100 %; by default as many as the largest sample fills, at most 6.
    log : bool, default True
        Logarithmic values.
    runs : bool, default False
        The series are runs of one thing: thin lines, their median and their range.
    dashed_from : float, (float, str), or mapping of label to such, optional
        Percentile from which a curve is based on a few events, and what these are ("1 stall"); dashed from there. By default
        what logs and samples know of it; an empty mapping for none.
    legend : bool, default True
        Name the series.
    title, subtitle : str, optional
        By default the finding where there is one, else what was measured; and the conditions. Empty for none.
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
        label: held_data for label, held_data in series.items() if isinstance(held_data, Summary)
    }
    if confidence is not None or (dashed_from is None and not runs):
        expect_evidence(series)
    counted, empty = _counted(
        {label: held_data for label, held_data in series.items() if label not in summaries}
    )
    curves = {label: curve_of(held_data) for label, held_data in counted.items()}
    pairs = slo_pairs(slo) if slo is not None else []
    if dashed_from is None and not runs:
        dashed_from = resting(
            {label: held_data for label, held_data in series.items() if label in counted}, counted
        )
    places = nines or max((nines_of(curve.count) for curve in curves.values()), default=3)
    ax.set_xscale("percentile", nines=places)
    ax.set_xlim(0, 100)
    zero = _value_axis(ax, curves, summaries, pairs, unit, log=log)
    shown = {
        label: (counted | summaries)[label]
        for label in series
        if label in counted or label in summaries
    }
    styles = series_styles(shown)
    labels = LineLabels()
    drawn = (
        _draw_runs(ax, curves, places, zero, line_kwargs)
        if runs and len(curves) > 1
        else _draw_all(
            ax,
            {} if confidence is None else _evidence(series, counted),
            curves,
            styles,
            places,
            zero,
            confidence,
            dashed_from,
            line_kwargs,
        )
    )
    for label, summary in summaries.items():
        drawn[label] = draw_summary(
            ax, labels, summary, styles[label]["color"], alone=len(series) == 1
        )
    staircase(ax, pairs, labels)
    if runs and len(curves) > 1:
        _name_runs(ax, labels, drawn, curves)
    elif legend:
        _name(ax, labels, shown, curves, drawn)
    named = _ground(ax, labels, curves)
    ax.add_artist(labels)
    tidy(
        ax,
        "percentile of requests (grey: the sample is too small)"
        if not named
        else "percentile of requests",
    )
    _head(ax, shown, curves, pairs, title, subtitle, runs=runs, empty=empty, dashed=dashed_from)
    return ax


def _counted(series: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    return drawable(series, "curve") if series else ({}, [])


def _value_axis(
    ax: Axes, curves: Mapping[str, Curve], summaries: Mapping[str, Summary], pairs: Sequence[tuple[float, float]],
    unit: str | None, *, log: bool,
) -> float:  # fmt: skip
    """Scale the value axis to all that is drawn; return where zeros go."""
    every = [curve.value for curve in curves.values()] + [
        np.array([curve.top]) for curve in curves.values()
    ]
    every += [
        np.array(
            [
                *summary.reported_percentiles.values(),
                *(summary.stats[name] for name in ("mean", "max") if name in summary.stats),
            ]
        )
        for summary in summaries.values()
    ]
    every.append(np.array([limit for _, limit in pairs]))
    stored = [
        *(curve.unit for curve in curves.values()),
        *(summary.unit for summary in summaries.values()),
    ][0]
    below = (
        1.6 if summaries else 1.0
    )  # points have no line that leads to them; they stand clear of the frame
    return fit_values(ax, np.concatenate(every), stored, below=below, fixed=unit, log=log)


def _evidence(series: Mapping[str, Any], counted: Mapping[str, Any]) -> dict[str, Any]:
    """How far each measured series can be trusted; a model has no confidence."""
    return {
        label: evidence_of(series[label], whole)
        for label, whole in counted.items()
        if hasattr(whole, "evidence")
    }


def _draw_all(
    ax: Axes, evidence: Mapping[str, Any], curves: Mapping[str, Curve], styles: Mapping[str, dict[str, Any]], nines: float,
    zero: float, confidence: float | None, dashed_from: Any, line_kwargs: dict[str, Any],
) -> dict[str, list[Line2D]]:  # fmt: skip
    drawn = {}
    for label, curve in curves.items():
        style: dict[str, Any] = {
            "label": plain(label) or "_nolegend_",
            "linewidth": 1.8 if len(curves) <= FEW else 1.5,
        } | styles[label]
        style |= line_kwargs
        dashed, _ = _dashed(dashed_from, label)
        drawn[label] = draw_curve(ax, curve, style, zero, dashed, crowded=len(curves) > FEW)
        if confidence is not None and label in evidence:
            sure = curve if dashed is None else replace(curve, limit=min(dashed, curve.limit))
            band(ax, evidence[label], sure, confidence, style["color"], nines, zero)
    return drawn


def _dashed(dashed_from: Any, label: str) -> tuple[float | None, str]:
    """Percentile from which a series is based on a few events, and what these are."""
    given = dashed_from.get(label) if hasattr(dashed_from, "get") else dashed_from
    if given is None:
        return None, ""
    at, words = given if isinstance(given, tuple) else (given, "a few events")
    return float(at), words


def _draw_runs(
    ax: Axes, curves: Mapping[str, Curve], nines: float, zero: float, line_kwargs: dict[str, Any]
) -> dict[str, list[Line2D]]:
    """Thin lines, the range that they span, and their median."""
    for label, curve in curves.items():
        draw_curve(
            ax,
            curve,
            {"color": GREY, "linewidth": 0.7, "label": f"_{plain(label)}"},
            zero,
            crowded=True,
        )
    grid = grid_of(100.0, nines, 500)
    values = np.maximum(np.array([curve.at(grid) for curve in curves.values()]), zero)
    ax.fill_between(
        grid,
        values.min(0),
        values.max(0),
        step="pre",
        color=GREY,
        alpha=0.22,
        linewidth=0,
        zorder=1,
    )
    look: dict[str, Any] = {
        "color": INK,
        "linewidth": 1.8,
        "label": f"median of {len(curves)} runs",
        "zorder": 4,
    } | line_kwargs
    # The lower middle run where their number is even would flatter; the upper one does not.
    middle = np.sort(values, axis=0)[len(curves) // 2]
    return {"": ax.plot(grid, middle, drawstyle="steps-pre", **look)}


def _name_runs(
    ax: Axes, labels: LineLabels, drawn: Mapping[str, Sequence[Line2D]], curves: Mapping[str, Curve]
) -> None:
    tops, unit = [curve.top for curve in curves.values()], next(iter(curves.values())).unit
    labels.add(ax, f"median of {len(curves)} runs", drawn[""], at=0.4)
    words = f"max {format_value(min(tops), unit)} to {format_value(max(tops), unit)}"
    labels.point(ax, words, (100.0, max(tops)), drawn[""], color=INK, fontsize=9)


def _name(
    ax: Axes,
    labels: LineLabels,
    series: Mapping[str, Any],
    curves: Mapping[str, Curve],
    drawn: Mapping[str, Sequence[Line2D]],
) -> None:
    """Name few series beside their curves and many in a legend, in the order in which they end; label each maximum."""
    ends = {label: _end(series[label], curves.get(label)) for label in series}
    if len(series) > FEW:
        order = sorted(series, key=lambda label: -ends[label][0])
        listed = [
            "   ".join(filter(None, (plain(shorten(label, 22)), ends[label][1]))) for label in order
        ]
        outside_legend(ax, [drawn[label][0] for label in order], listed)
        return
    if len(series) > 1:
        for k, (label, data) in enumerate(series.items()):
            labels.add(ax, named_count(label, data), drawn[label], at=0.38 + 0.04 * k, spread=0.6)
    for words, members in same_words({label: ends[label][1] for label in curves}).items():
        colour = drawn[members[0]][0].get_color() if len(members) == 1 and len(series) > 1 else INK
        ends_at = (100.0, max(curves[members[0]].top, ax.get_ylim()[0]))
        labels.point(
            ax,
            words,
            ends_at,
            [line for label in members for line in drawn[label]],
            color=colour,
            fontsize=9,
        )


def _end(data: Any, curve: Curve | None) -> tuple[float, str]:
    """Where a series ends at the right, and the words for it."""
    if curve is None:
        known = [
            *data.reported_percentiles.values(),
            *(data.stats[name] for name in ("mean", "max") if name in data.stats),
        ]
        name = next((name for name in ("max", "mean") if name in data.stats), None)
        return max(
            known, default=0.0
        ), f"{name} {format_value(data.stats[name], data.unit)}" if name else ""
    return curve.top, end_words(curve)


def _ground(ax: Axes, labels: LineLabels, curves: Mapping[str, Curve]) -> bool:
    """Grey ground and a plain sentence where no sample reaches; False where there is no room for the sentence."""
    limit = max((curve.limit for curve in curves.values()), default=100.0)
    if limit >= 99.99999:
        return True
    ax.axvspan(limit, 100, color=GROUND, zorder=0, linewidth=0)
    places = ax.transScale.transform([(0.0, 1.0), (limit, 1.0), (100.0, 1.0)])[:, 0]
    width = (
        (places[2] - places[1])
        / (places[2] - places[0])
        * ax.get_window_extent().width
        * 72.0
        / ax.figure.dpi
    )
    if width < 95:
        return False
    sure = f"beyond p{format_percentile(sure_percentile(limit))}"
    forms = (
        f"{sure} the sample is too small:\nthe truth may lie higher",
        f"{sure}\nthe sample is too small:\nthe truth may lie higher",
        f"{sure}\nthe sample is\ntoo small: the\ntruth may lie\nhigher",
    )

    def region() -> tuple[float, float, float, float]:
        box: Any = ax.get_window_extent()
        pad = 6.0 * ax.figure.dpi / 72.0
        return (
            float(ax.transData.transform((limit, ax.get_ylim()[0]))[0]) + pad,
            box.y0 + pad,
            box.x1 - pad,
            box.y1,
        )

    labels.note(ax, forms, region, (0.0, 0.0))
    return True


def staircase(ax: Axes, slo: Any, labels: LineLabels | None = None) -> list[Line2D]:
    """Draw the limits of an SLO, each up to its percentile, and name the line where `labels` are given."""
    pairs = slo_pairs(slo)
    if not pairs:
        return []
    at = np.array([0.0, *(percentile for percentile, _ in pairs)])
    limits = np.array([pairs[0][1], *(limit for _, limit in pairs)])
    lines = ax.plot(
        at, limits, drawstyle="steps-pre", color=INK, linewidth=1.2, zorder=2.5, label="_slo"
    )
    if labels is not None:
        labels.add(ax, "SLO", lines, at=0.0, spread=0.9, color=INK, fontweight="normal", fontsize=9)
    return lines


def _head(
    ax: Axes, series: Mapping[str, Any], curves: Mapping[str, Curve], pairs: Sequence[tuple[float, float]], title: str | None,
    subtitle: str | None, *, runs: bool, empty: Sequence[str], dashed: Any,
) -> None:  # fmt: skip
    """The finding, or what was measured; and the conditions."""
    finding = None
    if not runs and pairs and len(series) == 1:
        ((label, data),) = series.items()
        finding = slo_finding(label, data, pairs)
    elif not runs:
        finding = two_stories(series, curves)
    said = chart_title(series, "runs" if runs else "")
    more = [
        said if finding else "",
        f"nothing counted: {', '.join(map(plain, empty))}" if empty else "",
    ]
    more.append(dashes({label: (0.0, _dashed(dashed, label)[1]) for label in curves}))
    more.append(SHADED if any(curve.wide for curve in curves.values()) else "")
    head(ax, finding or said, joined(series, *more), title, subtitle)
