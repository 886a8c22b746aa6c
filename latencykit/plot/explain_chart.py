"""What slow requests have in common, as a picture: paired bars, and the curve without suspects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latencykit.analysis.explain import condition_text
from latencykit.plot.events_chart import events
from latencykit.plot.label_layout import head
from latencykit.plot.percentile_chart import percentiles
from latencykit.plot.style import BLUE, INK, RED, current_axes, plain, shorten
from latencykit.units import format_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from latencykit.analysis.explain import Explanation

__all__ = ["explanation"]

_FOOT = 0.52  # of the height: where the attributes end above events
_MOST_BARS = 14
_BAR = 21.0  # points of each, with its part of a heading
_MOST_PER_ATTRIBUTE = 4


def explanation(
    found: Explanation,
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
    red. Beside them is the percentile curve of all requests, and that of the requests without the
    significant values. Events, if there are any, follow beneath as `plot.events` draws them; where
    requests have no attributes, they are all there is.

    Parameters
    ----------
    found : Explanation
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
    >>> from latencykit.analysis.explain import explained
    >>> from latencykit.core.samples import Samples
    >>> rng = np.random.default_rng(1)
    >>> took, host = rng.exponential(1, 5000), rng.choice(["a", "b"], 5000)
    >>> s = Samples(start=np.arange(5000), duration=took, unit="ms", host=host)
    >>> len(explanation(explained(s), ax=Figure().add_subplot()).child_axes)
    2
    """
    page = current_axes(ax)
    page.set_axis_off()
    points = page.get_window_extent().height * 72.0 / page.figure.dpi
    timed = found.coincidence is not None and len(found.coincidence.lanes) > 0
    bars = _chosen(found, max(2, min(_MOST_BARS, int(points * (1 - _FOOT * timed) / _BAR))))
    latency, others, suspects = found.latency, found.without, found.suspects
    foot = 0.0
    if timed:
        if not bars:
            return events(found.coincidence, ax=page, unit=unit, title=title, subtitle=subtitle)
        foot = _FOOT
        beneath = page.inset_axes((0.0, 0.0, 1.0, foot - 0.12))
        events(found.coincidence, ax=beneath, unit=unit, title="", subtitle="")
    if bars and latency is not None:
        left, right = (
            page.inset_axes((0.17, foot, 0.3, 1.0 - foot)),
            page.inset_axes((0.58, foot, 0.42, 1.0 - foot)),
        )
        _draw_bars(left, bars)
    else:
        left, right = None, page.inset_axes((0.0, foot, 1.0, 1.0 - foot))
    if latency is not None:
        series = {"all requests": latency}
        if others is not None:
            series["without it" if len(suspects) == 1 else "without them"] = others
        look: dict[str, Any] = {"title": "", "subtitle": "", "unit": unit}
        percentiles(series, ax=right, **(look | line_kwargs))
        right.axhline(found.threshold, color=INK, linewidth=0.8, linestyle=(0, (1.5, 1.5)))
        right.set_xlabel("percentile")
    label = plain(shorten(name or found.name, 40))
    words = "nothing in particular stands out" if len(found.attributes) else "nothing to compare"
    if len(suspects):
        some = list(suspects.head(2).itertuples())
        shown = [
            shorten(condition_text(row.attribute, str(row.value)), 48 // len(some)) for row in some
        ]
        words = f"{' and '.join(shown)} {'goes' if len(shown) == 1 else 'go'} with slow requests"
    slow = f"requests above {found.above} ({format_value(found.threshold, 'ns')})"
    slow = f"upper bars: {slow}; lower bars: all" if bars else slow
    heading = f"{label}: {words}" if label else words
    head(page, plain(heading, 120), slow, title, subtitle)
    return page


def _chosen(found: Explanation, most: int) -> list[tuple[str, list[Any]]]:
    """Attributes and the rows of each that are drawn, as many as have space."""
    chosen: list[tuple[str, list[Any]]] = []
    number = 0
    for attribute, rows in found.attributes.groupby("attribute", sort=False):
        weight = (rows["share_above"] - rows["share"]).abs() + rows["significant"]
        some = rows.loc[weight.sort_values(ascending=False).index].head(_MOST_PER_ATTRIBUTE)
        kept = list(some.itertuples())[: most - number]
        if not kept:
            break
        chosen.append((str(attribute), kept))
        number += len(kept)
    return chosen


def _draw_bars(ax: Axes, bars: list[tuple[str, list[Any]]]) -> None:
    place, ticks, names = 0.0, [], []
    for attribute, rows in bars:
        ax.text(
            0.0, place - 0.62, plain(shorten(attribute, 30)), fontsize=8.5, fontweight="bold",
            color=INK, va="bottom",
        )  # fmt: skip
        for row in rows:
            strong = RED if row.significant else INK
            ax.barh(place - 0.19, row.share_above, 0.36, color=strong)
            ax.barh(place + 0.19, row.share, 0.36, color=BLUE, alpha=0.55)
            ticks.append(place)
            names.append(plain(shorten(str(row.value), 24)))
            place += 1.0
        place += 0.8
    ax.set_yticks(ticks, names, fontsize=8)
    ax.set_ylim(place - 0.8, -1.3)
    most = max(max(row.share_above, row.share) for _, rows in bars for row in rows)
    ax.set_xlim(0, min(1.0, 1.08 * most))
    ax.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g} %")
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("share of requests")
