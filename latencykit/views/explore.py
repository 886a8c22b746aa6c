"""``lk.explore``: the linked view in a notebook, drawn by JupyterLab's own Vega-Lite: no extension, no network.

The specification holds the counts; the brush filters them, and the percentile curve is worked out from what is left by
Vega-Lite's transforms (sum by bucket, running total, nines). So it needs no kernel once it is shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.errors import MissingPackageError
from latencykit.plot.curves import as_series
from latencykit.plot.style import AMBER, BLUE, COLOURS, GREY, GRID, INK, RED
from latencykit.units import format_count, printable
from latencykit.views.page_data import page_series

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from latencykit.core.histogram_log import HistogramLog
    from latencykit.core.samples import Samples
    from latencykit.views.page_data import PageSeries, Slots

    TimedData = Samples | HistogramLog

__all__ = ["Explorer", "explore"]

_ENTRIES = 60_000
"""Counts that a specification may hold: notebooks are saved with it."""

_FAMILIAR = (50.0, 90.0, 99.0, 99.9)
_MIME = "application/vnd.vegalite.v5+json"
_TIME = "datum.value >= 1e9 ? format(datum.value / 1e9, '~g') + ' s' : datum.value >= 1e6 ? format(datum.value / 1e6, '~g') + ' ms' : datum.value >= 1e3 ? format(datum.value / 1e3, '~g') + ' µs' : format(datum.value, '~g') + ' ns'"


@dataclass(frozen=True)
class Explorer:
    """The linked view of a series, to be shown by a notebook.

    Attributes
    ----------
    spec : dict
        Vega-Lite v5: what is shown, with all data.
    words : str
        What it says where no notebook shows it.
    """

    spec: dict[str, Any]
    words: str

    @property
    def chart(self) -> Any:
        """The same as an Altair chart, to change or to save."""
        return _altair().VConcatChart.from_dict(self.spec)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {_MIME: self.spec, "text/plain": self.words}

    def __repr__(self) -> str:
        return self.words


def explore(data: TimedData | Mapping[str, TimedData], *, width: int = 760) -> Explorer:
    """Return the timeline and the percentile curve, linked by a brush, for a notebook.

    Parameters
    ----------
    data : HistogramLog or Samples, or mapping of str to such
        A tagged log gives one series per tag.
    width : int, default 760
        Pixels.

    Returns
    -------
    Explorer
        JupyterLab shows it: drag across the timeline, and the curve becomes that of the slots that begin within; click the
        legend to single out a series.

    Raises
    ------
    DataNotAvailableError
        Where a source knows no time.
    MissingPackageError
        Where Altair is not installed.

    Examples
    --------
    >>> import latencykit as lk
    >>> log = lk.Samples(start=np.arange(900), duration=np.arange(900) + 1, unit="ms").to_log("100ms")
    >>> lk.explore(log)
    Explorer(900 requests in 18 slots; a notebook shows it)
    """
    from latencykit.plot.timeline_chart import as_log

    named = as_series(data)
    for label, one in named.items():
        as_log(label, one)  # says what is missing where there is no time
    series = [(one, _small(one)) for one in page_series(named)]
    alt = _altair()
    chart = _chart(alt, series, width)
    words = f"{format_count(sum(one.counted.count for one, _ in series))} requests in {sum(s.start.size for _, s in series)} slots"
    with alt.data_transformers.enable("default", max_rows=None, consolidate_datasets=False):
        return Explorer(chart.to_dict(), f"Explorer({words}; a notebook shows it)")


def _altair() -> Any:
    try:
        import altair as alt
    except ImportError as missing:
        raise MissingPackageError("altair", "lk.explore", "report") from missing
    return alt


def _small(one: PageSeries) -> Slots:
    """Slots of so few counts that a notebook stays small."""
    slots = one.slots
    assert slots is not None
    slots = slots.coarser()
    while slots.index.size > _ENTRIES and slots.start.size > 20:
        slots = slots.wider()
    return slots


# ---------------------------------------------------------------- data


def _moments(name: str, slots: Slots) -> list[dict[str, Any]]:
    """One row per slot: when, how many, and the familiar values; a row of nothing where time is missing."""
    from latencykit.core.quantiles import row_quantile_positions

    held = np.flatnonzero(np.diff(slots.indptr))
    position = row_quantile_positions(slots.indptr, slots.counts, (50.0, 99.0))[held]
    value = np.minimum(slots.high[slots.index[position]], slots.max[held][:, None])
    count = np.diff(np.concatenate(([0], np.cumsum(slots.counts)))[slots.indptr])[held]
    rows: list[dict[str, Any]] = []
    columns = (slots.start[held], slots.end[held], count, slots.max[held], value[:, 1], value[:, 0])
    for start, end, number, top, late, half in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        if rows and start - rows[-1]["end"] > 0.05 * (end - start) + 2e-3:
            before = rows[-1]["end"]  # the step reaches to there, and then there is nothing
            rows += [
                {**rows[-1], "start": before, "requests": 0},
                {"series": name, "start": before, "end": start, "requests": 0},
            ]
        rows.append(
            {
                "series": name,
                "start": start,
                "end": end,
                "requests": number,
                "max": top,
                "p99": late,
                "p50": half,
            }
        )
    return [*rows, {**rows[-1], "start": rows[-1]["end"], "requests": 0}] if rows else []


def _counts(name: str, slots: Slots) -> list[dict[str, Any]]:
    """One row per slot, with its buckets and counts as lists, which a notebook stores in few bytes."""
    bounds = zip(
        slots.start.tolist(),
        slots.max.tolist(),
        slots.indptr[:-1].tolist(),
        slots.indptr[1:].tolist(),
        strict=True,
    )
    high: NDArray[Any] = slots.high
    if (high == np.rint(high)).all() and high.max(initial=0) < 2**53:
        high = high.astype(np.int64)
    return [
        {
            "series": name,
            "start": start,
            "top": top,
            "value": high[slots.index[a:b]].tolist(),
            "count": slots.counts[a:b].tolist(),
        }
        for start, top, a, b in bounds
        if b > a
    ]


# ---------------------------------------------------------------- charts


def _chart(alt: Any, series: Sequence[tuple[PageSeries, Slots]], width: int) -> Any:
    names = [printable(one.name) or "all" for one, _ in series]
    moments = [
        row for name, (_, slots) in zip(names, series, strict=True) for row in _moments(name, slots)
    ]
    counts = [
        row for name, (_, slots) in zip(names, series, strict=True) for row in _counts(name, slots)
    ]
    nines = int(np.clip(np.ceil(np.log10(max(one.counted.count for one, _ in series))), 2, 9))
    span = alt.selection_interval(name="span", encodings=["x"])
    picked = alt.selection_point(name="picked", fields=["series"], bind="legend")
    unit = series[0][0].counted.unit
    tops = np.concatenate([slots.max for _, slots in series])
    lows = min(float(slots.low[slots.low > 0].min(initial=np.inf)) for _, slots in series)
    domain = [
        max(min(lows, float(np.nanmax(tops)) / 10), 1e-12) / 1.3,
        float(np.nanmax(tops)) * 1.6,
    ]
    colours = {"raw": RED, "honest": BLUE}
    palette = [
        colours.get(one.look[0]) or COLOURS[int(one.look[0][1:]) % len(COLOURS)]
        for one, _ in series
    ]
    y = {"scale": alt.Scale(type="log", domain=domain, nice=False), "axis": _value_axis(alt, unit)}
    legend = None if len(names) == 1 else alt.Legend(title=None)
    colour = alt.Color("series:N", scale=alt.Scale(domain=names, range=palette), legend=legend)
    timeline = _timeline(alt, moments, y, colour, span, picked, single=len(names) == 1)
    curve = _curve(alt, counts, y, colour, nines, picked, unit)
    slots = series[0][1]
    width_words = "interval" if slots.width is None else f"slot of {slots.width:g} s"
    title = alt.Title(
        ", ".join(names),
        subtitle=f"Drag across the timeline: the curve below becomes that of the span. A step is one {width_words}.",
    )
    return (
        alt.vconcat(
            timeline.properties(width=width, height=220),
            curve.properties(width=width, height=320),
            title=title,
            background="white",
        )
        .resolve_scale(color="shared")
        .configure_view(stroke=None)
        .configure_axis(
            gridColor=GRID,
            labelColor=INK,
            titleColor=INK,
            domainColor=GREY,
            tickColor=GREY,
            titleFontWeight="normal",
        )
        .configure_title(color=INK, subtitleColor=GREY, anchor="start")
    )


def _value_axis(alt: Any, unit: str) -> Any:
    return alt.Axis(
        title=None, labelExpr=_TIME if unit == "ns" else "format(datum.value, '~g')", tickCount=6
    )


def _timeline(
    alt: Any, rows: Any, y: Any, colour: Any, span: Any, picked: Any, *, single: bool
) -> Any:
    tooltip = [
        alt.Tooltip("series:N"),
        *(alt.Tooltip(f"{name}:Q", title=f"{word} (s)", format="~g") for name, word in (("start", "from"), ("end", "to"))),
        alt.Tooltip("requests:Q", format=","), *(alt.Tooltip(f"{name}:Q", format="~s") for name in ("p50", "p99", "max")),
    ]  # fmt: skip
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X(
            "start:Q",
            title="seconds from the start",
            axis=alt.Axis(grid=False),
            scale=alt.Scale(nice=False, zero=False),
        ),
        opacity=alt.condition(picked, alt.value(1), alt.value(0.1)),
        tooltip=tooltip,
    )
    line = {"interpolate": "step-after", "invalid": "break-paths-show-path-domains"}
    lines = (
        (("max", RED), ("p99", AMBER), ("p50", BLUE)) if single else (("max", None), ("p99", None))
    )
    layers = []
    for name, fixed in lines:
        look = {"strokeWidth": 1.0 if fixed is None and name == "max" else 1.8}
        paint = alt.value(fixed) if fixed else colour
        layers.append(base.mark_line(**line, **look).encode(y=alt.Y(f"{name}:Q", **y), color=paint))
    layers[0] = layers[0].add_params(span, picked)
    return alt.layer(*layers)


def _curve(alt: Any, rows: Any, y: Any, colour: Any, nines: int, picked: Any, unit: str) -> Any:
    """The curve of what the brush leaves: sums by bucket, running totals, and nines, worked out by Vega."""
    # A hair below the percentile's share, as the reference's rule has it.
    found = {
        f"at{k}": f"datum.below >= max(1, ceil({p * (1 - 2**-53)!r} * datum.total / 100)) ? datum.value : null"
        for k, p in enumerate((*_FAMILIAR, 100.0))
    }
    place = f"datum.below >= datum.total ? {nines + 0.5} : min({nines + 0.5}, -log(1 - datum.below / datum.total) / LN10)"
    base = (
        alt.Chart(alt.Data(values=rows))
        .transform_filter({"param": "span"})
        .transform_flatten(["value", "count"])
        .transform_aggregate(number="sum(count)", top="max(top)", groupby=["series", "value"])
        .transform_window(
            below="sum(number)", sort=[alt.SortField("value")], groupby=["series"], frame=[None, 0]
        )
        .transform_joinaggregate(total="sum(number)", top="max(top)", groupby=["series"])
        .transform_calculate(value="min(datum.value, datum.top)")  # the maximum of a slot is exact
        .transform_calculate(
            place=place,
            above="datum.total - datum.below",
            percentile="100 * datum.below / datum.total",
            **found,
        )
    )
    at = [0.0, -float(np.log10(0.5)), *range(1, nines + 1), nines + 0.5]
    names = [
        "0",
        "50",
        *("90" if k == 1 else f"99.{'9' * (k - 2)}".rstrip(".") for k in range(1, nines + 1)),
        "100 %",
    ]
    labels = (
        " : ".join(
            f"abs(datum.value - {value!r}) < 0.01 ? '{name}'"
            for value, name in zip(at, names, strict=True)
        )
        + " : ''"
    )
    axis = alt.Axis(
        values=at, labelExpr=labels, title="percentile of requests", labelOverlap="greedy"
    )
    x = alt.X("place:Q", scale=alt.Scale(domain=[0, nines + 0.5], nice=False), axis=axis)
    number = alt.condition(picked, alt.value(1), alt.value(0.1))
    tooltip = [
        alt.Tooltip("series:N"), alt.Tooltip("percentile:Q", format=".6~g"),
        alt.Tooltip("value:Q", format=",", title="value" if unit == "none" else f"value ({unit})"),
        alt.Tooltip("above:Q", format=",", title="took longer"), alt.Tooltip("total:Q", format=",", title="requests"),
    ]  # fmt: skip
    line = base.mark_line(interpolate="step-before", strokeWidth=2).encode(
        x=x, y=alt.Y("value:Q", **y), color=colour, opacity=number, order="value:Q", tooltip=tooltip
    )
    text = _TIME.replace("'~g'", "'.3~g'") if unit == "ns" else "format(datum.value, '.4~g')"
    columns = list(found)
    marks = (
        base.transform_aggregate(**{name: f"min({name})" for name in columns}, groupby=["series"])
        .transform_fold(columns, as_=["name", "value"])
        .transform_calculate(
            place=f"{{at0: 0.30103, at1: 1, at2: 2, at3: 3, at4: {nines + 0.5}}}[datum.name]",
            text=f"{{at0: 'p50 ', at1: 'p90 ', at2: 'p99 ', at3: 'p99.9 ', at4: 'max '}}[datum.name] + ({text})",
        )
        .encode(x=x, y=alt.Y("value:Q", **y), color=colour, opacity=number)
    )
    dots = marks.mark_point(filled=True, size=36)
    bold = marks.encode(text="text:N", description="value:N")
    words = bold.transform_filter("datum.name != 'at4'").mark_text(
        align="left", dx=7, dy=11, fontWeight="bold"
    )
    top = bold.transform_filter("datum.name == 'at4'").mark_text(
        align="right", dx=-2, dy=-10, fontWeight="bold"
    )
    return alt.layer(line, dots, words, top)
