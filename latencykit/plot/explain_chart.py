"""Charts of what slow requests have in common, and of what else happened at the time.

An explanation is paired bars of attributes, and the percentile curve without suspects; events are a
lane per source beneath latency over time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection

from latencykit._text import format_items, plain, shorten
from latencykit.analysis.coincidence import Coincidence
from latencykit.analysis.explain import Explanation
from latencykit.core.samples import Samples
from latencykit.errors import DataNotAvailableError, require
from latencykit.plot import style
from latencykit.plot.axes import time_axis
from latencykit.plot.label_layout import head
from latencykit.plot.percentile_chart import percentiles
from latencykit.plot.timeline_chart import timeline
from latencykit.units import format_count, format_value

_FOOT = 0.52  # of the height: where the attributes end above events
_MOST_BARS = 14
_BAR = 21.0  # points of each, with its part of a heading
_MOST_PER_ATTRIBUTE = 4


def explanation(
    result: Explanation,
    *,
    ax: Axes | None = None,
    name: str = "",
    unit: str | None = None,
    title: str | None = None,
    subtitle: str | None = None,
    **line_kwargs: object,
) -> Axes:
    """Draw an explanation: shares of slow and of all requests, and the curve without suspects.

    Attributes come in the order of what they explain, each with its most telling values: the upper
    bar is the share of the slow requests, the lower one the share of all. Significant values are in
    amber. Beside them is the percentile curve of all requests, and that of the requests without the
    significant values. Events, if there are any, follow beneath as `plot.coincidence` draws them;
    where requests have no attributes, they are all there is.

    Parameters
    ----------
    result : Explanation
        Of `latencykit.explain`.
    ax, name, unit, **line_kwargs
        As in `diagnosis`.
    title, subtitle : str, optional
        By default the first finding. Empty for none.

    Returns
    -------
    Axes
        The page; ``page.child_axes`` are its panels, the curves last.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from latencykit.analysis.explain import explain
    >>> from latencykit.core.samples import Samples
    >>> rng = np.random.default_rng(1)
    >>> took, host = rng.exponential(1, 5000), rng.choice(["a", "b"], 5000)
    >>> s = Samples(start=np.arange(5000), duration=took, unit="ms", host=host)
    >>> len(explanation(explain(s), ax=Figure().add_subplot()).child_axes)
    2
    """
    require(result, Explanation, "an explanation: lk.explain(data)")
    page = style.current_axes(ax)
    page.set_axis_off()
    _, points = style.size_in_points(page)
    timed = result.coincidence is not None and len(result.coincidence.lanes) > 0
    # Attributes and the rows of each that are drawn, as many as have space.
    space = max(2, min(_MOST_BARS, int(points * (1 - _FOOT * timed) / _BAR)))
    bars: list[tuple[str, list[Any]]] = []
    for attribute, rows in result.attributes.groupby("attribute", sort=False):
        weight = (rows["share_above"] - rows["share"]).abs() + rows["significant"]
        strongest = rows.loc[weight.sort_values(ascending=False).index].head(_MOST_PER_ATTRIBUTE)
        kept = list(strongest.itertuples())[:space]
        if not kept:
            break
        bars.append((str(attribute), kept))
        space -= len(kept)
    latency, others, suspects = result.latency, result.without, result.suspects
    foot = 0.0
    if timed:
        if not bars:
            return coincidence(result, ax=page, unit=unit, title=title, subtitle=subtitle)
        foot = _FOOT
        beneath = page.inset_axes((0.0, 0.0, 1.0, foot - 0.12))
        coincidence(result, ax=beneath, unit=unit, title="", subtitle="")
    if bars and latency is not None:
        left = page.inset_axes((0.17, foot, 0.3, 1.0 - foot))
        right = page.inset_axes((0.58, foot, 0.42, 1.0 - foot))
        place, ticks, names = 0.0, [], []
        for attribute, drawn in bars:
            left.text(
                0.0, place - 0.62, plain(shorten(attribute, 30)), fontsize=8.5, fontweight="bold",
                color=style.INK, va="bottom",
            )  # fmt: skip
            for row in drawn:
                strong = style.AMBER if row.significant else style.INK
                left.barh(place - 0.19, row.share_above, 0.36, color=strong)
                left.barh(place + 0.19, row.share, 0.36, color=style.BLUE, alpha=0.55)
                ticks.append(place)
                names.append(plain(shorten(str(row.value), 24)))
                place += 1.0
            place += 0.8
        left.set_yticks(ticks, names, fontsize=8)
        left.set_ylim(place - 0.8, -1.3)
        most = max(max(row.share_above, row.share) for _, drawn in bars for row in drawn)
        left.set_xlim(0, min(1.0, 1.08 * most))
        left.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g} %")
        for side in ("top", "right", "left"):
            left.spines[side].set_visible(False)
        left.tick_params(axis="y", length=0)
        left.set_xlabel("share of requests")
    else:
        right = page.inset_axes((0.0, foot, 1.0, 1.0 - foot))
    if latency is not None:
        series = {"all requests": latency}
        if others is not None:
            series["without it" if len(suspects) == 1 else "without them"] = others
        look: style.Look = {"title": "", "subtitle": "", "unit": unit}
        percentiles(series, ax=right, **(look | line_kwargs))
        right.axhline(result.threshold, color=style.INK, linewidth=0.8, linestyle=(0, (1.5, 1.5)))
        right.set_xlabel("percentile")
    label = plain(shorten(name or result.name, 40))
    words = "no value stands out" if len(result.attributes) else "nothing to compare"
    if len(suspects):
        some = list(suspects.head(2).itertuples())
        shown = [shorten(f"{row.attribute}={row.value}", 48 // len(some)) for row in some]
        words = f"{' and '.join(shown)} {'goes' if len(shown) == 1 else 'go'} with slow requests"
    slow = f"requests above {result.above} ({format_value(result.threshold, 'ns')})"
    slow = f"upper bars: {slow}; lower bars: all" if bars else slow
    heading = f"{label}: {words}" if label else words
    head(page, plain(heading, 120), slow, title, subtitle)
    return page


_LANE = 23.0  # points
_LEAST_LANE = 15.0
_MOST_LANES = 12
_COLOURS = tuple(colour for colour in style.COLOURS if colour != style.COLOURS[4])


def coincidence(
    result: Explanation | Coincidence,
    *,
    ax: Axes | None = None,
    unit: str | None = None,
    title: str | None = None,
    subtitle: str | None = None,
) -> Axes:
    """Draw latency over time, and beneath it a lane of events per source.

    A stall has the colour of the source that coincides with it, and is grey where none does more
    often than by chance. Sources that coincide with stalls come first; the others are grey.

    Parameters
    ----------
    result : Explanation or Coincidence
        Of `latencykit.explain` with events, or its ``coincidence``.
    ax, unit
        As in `diagnosis`.
    title, subtitle : str, optional
        By default the first findings. Empty for none.

    Returns
    -------
    Axes
        The page; ``page.child_axes`` are the timeline and the lanes.

    Raises
    ------
    DataNotAvailableError
        For a result without its run.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from latencykit.analysis.explain import explain
    >>> from latencykit.core.events import Events
    >>> from latencykit.core.samples import Samples
    >>> took = np.random.default_rng(1).exponential(1e6, 2000)
    >>> run = Samples(start=np.arange(2000) * 10_000_000, duration=took)
    >>> gc = Events("gc.log", "jvm-gc", [2.0], [2.1], ["Pause Full"])
    >>> len(coincidence(explain(run, events=gc), ax=Figure().add_subplot()).child_axes)
    2
    """
    if isinstance(result, Explanation):
        if result.coincidence is None:
            raise DataNotAvailableError("the requests have no start times to compare events with")
        result = result.coincidence
    require(result, Coincidence, "an explanation: lk.explain(data, events=…)")
    if result.data is None:
        raise DataNotAvailableError("this result does not contain its run; call explain again")
    page = style.current_axes(ax)
    page.set_axis_off()
    if isinstance(result.data, Samples):
        first, span = float(result.data.offsets.min()), result.data.elapsed
    else:
        first, span = float(result.data.starts.min()), result.data.duration
    suspects = [
        name
        for name in dict.fromkeys(result.rows["source"])
        if (result.stalls["suspect"] == name).any()
    ]
    significant = list(result.rows["source"][result.rows["significant"].astype(bool)])
    lanes: list[tuple[str, Any]] = []
    for source in result.lanes:
        kinds = [name for name in significant if name.startswith(f"{source.name}: ")]
        for name in kinds:
            label = name.removeprefix(f"{source.name}: ")
            lanes.append((name, source.select(source.label == label)))
        if not kinds:
            lanes.append((source.name, source))
    lanes.sort(key=lambda lane: lane[0] not in significant)
    colour = {
        name: _COLOURS[k % len(_COLOURS)]
        for k, name in enumerate(dict.fromkeys([*suspects, *significant]))
    }
    width, points = style.size_in_points(page)
    shown = lanes[: max(1, min(_MOST_LANES, int(0.5 * points / _LEAST_LANE)))]
    foot = min(len(shown) * _LANE / points, 0.5)
    gap = min(26.0 / points, 0.15) if shown else 0.0
    upper = page.inset_axes((0.0, foot + gap, 1.0, 1.0 - foot - gap))
    timeline({"": result.data}, ax=upper, unit=unit, title="", subtitle="")  # all operations
    limits = upper.get_xlim()
    least = (limits[1] - limits[0]) / max(width, 1.0)  # narrower than a point, it may vanish
    columns = (result.stalls[name].tolist() for name in ("start", "end", "suspect"))
    for begin, until, suspect in zip(*columns, strict=True):
        shade, end = colour.get(suspect, style.GREY), max(until, begin + least)
        upper.axvspan(begin, end, color=shade, alpha=0.3, linewidth=0, zorder=0)
    if shown:
        # One row per source, its name at the left within the row.
        lower = page.inset_axes((0.0, 0.0, 1.0, foot))
        size = min(8.0, 0.4 * min(_LANE, foot * points / len(shown)))
        for k, (name, events) in enumerate(shown):
            row, shade = len(shown) - 1 - k, colour.get(name, style.MUTED)
            inside = events.between(first, first + span)
            start, end = inside.start, np.maximum(inside.end, inside.start + least)
            low, high = np.full(start.size, row + 0.14), np.full(start.size, row + 0.56)
            corners = ((start, low), (start, high), (end, high), (end, low))
            boxes = np.stack([np.stack(pair, 1) for pair in corners], 1)
            lower.add_collection(
                PolyCollection(list(boxes), facecolors=shade, edgecolors="none", linewidths=0),
                autolim=False,
            )
            lower.annotate(
                f"{plain(shorten(name, 60))}  {format_items(len(inside), 'event')}",
                (0.0, row + 0.6), (2, 0), ("axes fraction", "data"), "offset points",
                va="bottom", fontsize=size, color=shade if name in colour else style.INK,
            )  # fmt: skip
            lower.axhline(row, color=style.GREY, linewidth=0.4, alpha=0.5)
        lower.set_ylim(0, len(shown) + 0.1)
        style.tidy(lower, "time from the start")
        lower.grid(visible=False, axis="y")
        lower.set_yticks([])
        lower.spines["left"].set_visible(False)
        lower.set_xlabel(upper.get_xlabel())
        upper.set_xlabel("")
        time_axis(lower, *limits)
        upper.tick_params(labelbottom=False)
    left = format_count(len(lanes) - len(shown))
    notes = [f"{left} more sources are not drawn"] if len(lanes) > len(shown) else []
    if result.stalls.shape[0] and shown:
        notes.append("stalls in the colour of what coincides, grey without")
    finding = "Nothing coincides with the stalls" if shown else "Nothing stands out in time"
    sentences = sorted(result.findings, key=lambda text: "coincides with" not in text)
    names = sorted({source.name for source in result.lanes}, key=len, reverse=True)
    for name in names:
        sentences = [text.replace(name, shorten(name, 40)) for text in sentences]
    if sentences:
        finding = plain(sentences[0].split(" (by chance")[0], 110)
    others = [plain(text, 160) for text in sentences[1:2]]
    head(page, finding, " · ".join([*others, *notes]), title, subtitle)
    return page
