"""Charts for a terminal: the percentile curve and the timeline in characters, drawn by plotext."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from latencykit._text import printable
from latencykit._typing import Floats
from latencykit.core.histogram import Histogram
from latencykit.core.histogram_log import HistogramLog
from latencykit.core.samples import Samples
from latencykit.errors import DataNotAvailableError, MissingPackageError
from latencykit.plot.axes import log_ticks, second_of
from latencykit.plot.curves import curve_of, end_words, place_of
from latencykit.plot.series import as_series, drawable, measured
from latencykit.plot.style import AMBER, BLUE, LIGHT, RED, series_styles
from latencykit.plot.timeline_chart import as_log, envelope, intervals_of
from latencykit.units import format_percentile, format_value
from latencykit.views.page_data import nice_width


def _rgb(colour: str) -> tuple[int, int, int]:
    """A chart's colour as a terminal takes it: that of a dark ground."""
    red, green, blue = bytes.fromhex(LIGHT.get(colour, colour).removeprefix("#"))
    return red, green, blue


_ONE = ((100.0, "max", _rgb(RED)), (99.0, "p99", _rgb(AMBER)), (50.0, "p50", _rgb(BLUE)))

Line = tuple["Floats", "Floats", str, tuple[int, int, int]]


def terminal_chart(
    series: object, *, width: int = 80, height: int = 20, colour: bool = True
) -> str:
    """Return the percentile curve, and below it the timeline where time is known, as text."""
    try:
        import plotext
    except ImportError as missing:
        raise MissingPackageError("plotext", "a chart in the terminal", "terminal") from missing
    named = as_series(series)
    plotext.terminal.limit(False)
    shown, _ = drawable(named, "curve")
    curves = {name: curve_of(data) for name, data in shown.items()}
    most = max(curve.count or 1e5 for curve in curves.values())
    nines = int(np.clip(math.ceil(math.log10(most)), 2, 9))
    end = nines + 0.5
    lines: list[Line] = []
    for (name, curve), look in zip(curves.items(), _looks(shown), strict=True):
        place = np.minimum(np.append(place_of(curve.percentile[:-1]), end), end)
        ranges = "(two lines: a range)" if curve.wide else ""
        label = " ".join(filter(None, (printable(name, 40), end_words(curve), ranges)))
        values = np.append(curve.value[:-1], curve.top)
        lines.append((np.repeat(place, 2)[:-1], np.repeat(values, 2)[1:], label, look))
        if curve.wide:  # both edges of what the source gives
            foot = 1e-3 * values[values > 0].min(initial=1.0)
            low = np.where(curve.resolved, np.nan, np.maximum(curve.low, foot))
            lines.append((np.repeat(place, 2)[:-1], np.repeat(low, 2)[1:], "", look))
    ticks = [(0.0, "0"), (0.30103, "50")]
    ticks += [
        (float(k), format_percentile(round(100 * (1 - 10.0**-k), k)))
        for k in range(1, nines + 1, 1 if width / 9 >= end else 2)
    ]
    ticks.append((end, "100%"))
    title = f"{len(shown)} series"
    if len(shown) == 1:
        ((name, only),) = shown.items()
        words = measured(only.run, only.count) if isinstance(only, Histogram) else "a model"
        title = " · ".join(filter(None, (printable(name, 40), words)))
    unit, size = next(iter(curves.values())).unit, (width, height)
    parts = [_figure(plotext, title, lines, ticks, "percentile of requests", unit, size, colour)]
    timed = {
        name: data
        for name, data in named.items()
        if isinstance(data, HistogramLog) or (isinstance(data, Samples) and data.start is not None)
        if len(data)
    }
    if timed:
        size = (width, max(12, height - 4))
        courses = {
            name: intervals_of(as_log(name, data), (99.0, 50.0), data)
            for name, data in timed.items()
        }
        lines = []
        for (name, course), own in zip(courses.items(), _looks(timed), strict=True):
            drawn = _ONE if len(courses) == 1 else ((99.0, f"{printable(name, 40)} p99", own),)
            for percentile, label, look in drawn:
                line = envelope(course, course.values[percentile], 2 * size[0])
                lines.append((*line.line(line.high), label, look))
        begin = min(float(course.start.min()) for course in courses.values())
        end = max(float(course.end.max()) for course in courses.values())
        seconds, word = 1.0, "seconds"
        if end - begin > 14_400:
            seconds, word = 3600.0, "hours"
        elif end - begin > 240:
            seconds, word = 60.0, "minutes"
        step = nice_width((end - begin) / max(3, size[0] / 12))
        places = step * np.arange(math.ceil(begin / step), end / step + 1e-9)
        ticks = [(at, f"{at / seconds:.6g}") for at in places.tolist()]
        axis, unit = f"{word} from the start", next(iter(courses.values())).unit
        parts.append(_figure(plotext, "", lines, ticks, axis, unit, size, colour))
    notes = {note: None for data in named.values() if (note := data.run.unit_note) is not None}
    return "\n".join([*parts, *notes])


def _looks(named: Mapping[str, object]) -> list[tuple[int, int, int]]:
    return [_rgb(style["color"]) for style in series_styles(named).values()]


def _figure(
    plotext: Any,
    title: str,
    lines: Sequence[Line],
    ticks: Sequence[tuple[float, str]],
    axis: str,
    unit: str,
    size: tuple[int, int],
    colour: bool,
) -> str:
    """One chart and the names of its lines; values on a logarithmic axis."""
    figure = plotext.figure
    figure.clear()
    figure.plot_size(*size)
    figure.theme("colorless")
    values = np.concatenate([y[y > 0] for _, y, label, _ in lines if label])
    if not values.size:
        raise DataNotAvailableError(
            "no value is above zero, so there is nothing to draw on a logarithmic axis"
        )
    low, high = math.log10(float(values.min())) - 0.05, math.log10(float(values.max())) + 0.1
    # Each line, and for the legend a sample of it and its name.
    single = sum(bool(line[2]) for line in lines) == 1
    legend, labelled = [], 0
    for x, y, label, look in lines:
        labelled += bool(label)
        symbol = "braille"
        if not (colour or single):
            symbol = "abcdefghijklmnopqrstuvwxyz"[(labelled - 1) % 26]
        marker = plotext.marker(symbol, look) if colour else symbol
        for part in np.split(np.arange(y.size), np.flatnonzero(np.isnan(y))):
            run = part[np.isfinite(y[part])]
            if run.size:
                heights = np.log10(np.maximum(y[run], 10**low))  # an edge at 0 lies at the foot
                signal = figure.signal(x[run].tolist(), heights.tolist(), marker=marker)
                figure.draw(signal.lines(True))
        if label:
            sample = "━━" if symbol == "braille" else symbol * 2
            legend.append(f"{plotext.colorize(sample, look) if colour else sample} {label}")
    if title:
        figure.title(title)
    figure.label(axis, "x", "lower")
    figure.ruler("x", "lower").ticks([at for at, _ in ticks], [text for _, text in ticks])
    marks = log_ticks(10**low, 10**high, max(3, size[1] // 3), second_of(unit))
    texts = [format_value(value, unit) for value in marks]
    figure.ruler("y", "left").ticks([math.log10(value) for value in marks], texts)
    chart = str(figure.build()).rstrip("\n")
    if not colour:
        chart = str(plotext.uncolorize(chart))
    # Names side by side where they fit; escapes, which take no space, are as long for each.
    joined = "   ".join(legend)
    if len(joined) <= size[0] + 24 * ("\x1b" in joined) * len(legend):
        legend = [joined]
    return "\n".join([chart, *(f"  {line}" for line in legend), ""])
