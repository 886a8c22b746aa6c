"""A chart's title and the grey line of conditions below it, fitted to the width of the figure when they are drawn."""

from __future__ import annotations

import contextlib
import io
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, SubplotParams
from matplotlib.font_manager import fontManager
from matplotlib.text import Text
from matplotlib.transforms import Bbox, IdentityTransform

from latencykit.errors import InvalidArgumentError
from latencykit.plot.axes import time_text
from latencykit.plot.style import INK, MUTED, plain, shorten
from latencykit.units import format_count, format_percentile, format_row, format_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes


__all__ = [
    "Heading",
    "chart_title",
    "checked_ending",
    "conditions",
    "figure_of",
    "head",
    "joined",
    "measured",
    "named_count",
    "percentile_text",
    "requests_of",
    "same_words",
    "save",
    "series_title",
    "slo_finding",
    "slo_pairs",
    "wrapped",
]


def wrapped(text: str, width: float, lines: int, measure: Callable[[str], float]) -> str:
    """Return `text` broken at blanks into at most so many lines; what does not fit ends in an ellipsis."""
    rows: list[str] = []
    words = text.split(" ")
    while words:
        count = len(words)
        while count > 1 and measure(" ".join(words[:count])) > width:
            count -= 1
        row, words = " ".join(words[:count]), words[count:]
        if words and len(rows) == lines - 1:
            while count > 1 and measure(f"{row} …") > width:
                row = row.rsplit(" ", 1)[0]
                count -= 1
            row, words = f"{row} …", []
        while len(row) > 2 and measure(row) > width:
            row = row.removesuffix("…")[:-1] + "…"
        rows.append(row)
    return "\n".join(rows)


class Heading(Artist):
    """Title and conditions above the axes, flush with their left edge."""

    zorder = 5

    def __init__(self, ax: Axes, title: str, conditions: str) -> None:
        super().__init__()
        self.title, self.conditions = title, conditions
        common: dict[str, Any] = {
            "va": "bottom",
            "ha": "left",
            "transform": IdentityTransform(),
            "figure": ax.figure,
        }
        self._title = Text(
            0, 0, title, fontsize=12.5, fontweight="bold", color=INK, linespacing=1.15, **common
        )
        self._conditions = Text(
            0, 0, conditions, fontsize=9, color=MUTED, linespacing=1.25, **common
        )

    def get_children(self) -> list[Artist]:
        """Return the texts."""
        return [text for text in (self._title, self._conditions) if text.get_text()]

    def _fit(self, renderer: Any) -> list[Text]:
        """Break the texts at the figure's right edge and stack them above the axes."""
        assert self.axes is not None
        figure: Any = self.axes.figure
        point = figure.dpi / 72.0
        box = self.axes.get_window_extent(renderer)
        width = figure.bbox.x1 - box.x0 - 6 * point
        y = box.y1 + 6 * point
        shown = []
        for text, full, lines in (
            (self._conditions, self.conditions, 2),
            (self._title, self.title, 2),
        ):
            if not full:
                continue

            def measure(part: str, text: Text = text) -> float:
                text.set_text(part)
                return float(text.get_window_extent(renderer).width)

            text.set_text(wrapped(full, width, lines, measure))
            text.set_position((box.x0, y))
            y = text.get_window_extent(renderer).y1 + 3 * point
            shown.append(text)
        return shown

    def get_window_extent(self, renderer: Any = None) -> Bbox:
        """Return what the texts cover."""
        renderer = renderer if renderer is not None else self.axes.figure.canvas.get_renderer()  # type: ignore[union-attr]
        boxes = [text.get_window_extent(renderer) for text in self._fit(renderer)]
        return Bbox.union(boxes) if boxes else Bbox.null()

    def get_tightbbox(self, renderer: Any = None) -> Bbox | None:
        """Return what a layout has to leave room for."""
        return self.get_window_extent(renderer) if self.title or self.conditions else None

    def draw(self, renderer: Any) -> None:
        """Draw the texts."""
        if self.get_visible():
            for text in self._fit(renderer):
                text.draw(renderer)
        self.stale = False


def head(
    ax: Axes, said: str, conditions: str, title: str | None = None, subtitle: str | None = None
) -> None:
    """Put a heading above the axes, in place of one that is there."""
    said = said if title is None else plain(title, 200)
    conditions = conditions if subtitle is None else plain(subtitle, 300)
    for artist in [one for one in ax.artists if isinstance(one, Heading)]:
        artist.remove()
    if said or conditions:
        heading = Heading(ax, said, conditions)
        ax.add_artist(heading)
        heading.set_clip_on(False)


# ------------------------------------------------------------
# What a chart says in words: source, count, duration and rate; the conditions; the finding where
# there is one.

_LOOPS = {"open": "open loop", "paced": "paced loop", "closed": "closed loop"}


def measured(run: Any, count: int | None) -> str:
    """Return count, duration and rate."""
    parts = (
        [f"{format_count(count)} requests" if count != 1 else "1 request"]
        if count is not None
        else []
    )
    if run.duration:
        parts.append(f"in {time_text(run.duration)}")
        rate = count / run.duration if count else None
        parts.append(
            f"({rate:,.0f}/s)" if rate and rate >= 10 else f"({rate:.2g}/s)" if rate else ""
        )
    return " ".join(filter(None, parts))


def requests_of(data: Any) -> int | None:
    """Return how many good requests a data type stands for, where it knows: those above a limit count, too."""
    return getattr(data, "requests", getattr(data, "count", None))


def named_count(label: str, data: Any) -> str:
    """Return a series' name and number of requests, as they stand beside its curve."""
    count = requests_of(data)
    return "  ".join(
        filter(
            None,
            (plain(shorten(label, 32)), f"n = {format_count(count)}" if count is not None else ""),
        )
    )


def _connections(number: int | None) -> str:
    return "" if not number else "1 connection" if number == 1 else f"{number:,} connections"


def conditions(data: Any) -> list[str]:
    """Return how it was measured, part by part: tool, loop, connections, measure, correction, failures."""
    run = data.run
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
    others = (
        (run.failed, "failed"),
        (run.timeouts, "timed out"),
        (run.dropped, "dropped"),
        (run.unfinished, "unfinished"),
    )
    parts += [f"{format_count(number)} {word}" for number, word in others if number]
    parts.append(f"values assumed to be {run.unit}" if run.unit_note is not None else "")
    return [part for part in parts if part]


def joined(series: Mapping[str, Any], *first: str) -> str:
    """Return `first` and then the conditions that all series share, in one line."""
    listed = [conditions(data) for data in series.values()]
    shared = (
        [part for part in listed[0] if all(part in other for other in listed[1:])] if listed else []
    )
    guesses = [
        (label, part)
        for (label, data), parts in zip(series.items(), listed, strict=True)
        for part in parts[-1:]
        if data.run.unit_note is not None and part not in shared
    ]
    shared += [f"{part} in {plain(shorten(label, 40))}" for label, part in guesses]
    return " · ".join((*filter(None, first), *shared))


def series_title(label: str, data: Any) -> str:
    """Return the title of one series: its name, and what was measured."""
    return " · ".join(
        filter(None, (plain(shorten(label, 60)), measured(data.run, requests_of(data))))
    )


def chart_title(series: Mapping[str, Any], kind: str = "") -> str:
    """Return the title of a chart where no finding is known."""
    if len(series) == 1:
        (label, data), *_ = series.items()
        return series_title(label, data)
    if kind == "runs":
        return " · ".join(filter(None, (f"{len(series)} runs", *_total(series))))
    names = [plain(shorten(label, 24)) for label in series]
    named = (
        f"{', '.join(names[:-1])} and {names[-1]}" if len(names) <= 3 else f"{len(names)} series"
    )
    return " · ".join(filter(None, (named, kind, *_total(series))))


def _total(series: Mapping[str, Any]) -> list[str]:
    counts = [requests_of(data) for data in series.values()]
    return [f"{format_count(sum(filter(None, counts)))} requests"] if any(counts) else []


def percentile_text(percentile: float) -> str:
    """Return a percentile's name: p99.9, or the maximum."""
    return "max" if percentile >= 100 else f"p{format_percentile(percentile)}"


def slo_pairs(slo: Any) -> list[tuple[float, float]]:
    """Return an SLO's percentiles and limits in ns, ascending; from an `SLO`, from text that states one, or from pairs."""
    if isinstance(slo, str):
        from latencykit.analysis.slo import SLO

        slo = SLO.parse(slo)
    pairs = (
        [(one.percentile, one.limit) for one in slo.limits if one.percentile is not None]
        if hasattr(slo, "limits")
        else slo
    )
    return sorted((float(percentile), float(limit)) for percentile, limit in pairs)


def slo_finding(label: str, data: Any, pairs: Sequence[tuple[float, float]]) -> str | None:
    """Return what an SLO's limits say of one series, where they say something for sure."""
    if not pairs or not hasattr(data, "percentile_rows"):
        return None
    rows = data.percentile_rows([percentile for percentile, _ in pairs])
    over = [
        (row.value / limit, row, limit)
        for row, (_, limit) in zip(rows, pairs, strict=True)
        if row.value > limit
    ]
    missed = [
        one for one in over if one[1].bucket_low > one[2]
    ]  # a bucket that reaches from below the limit says neither
    name = plain(shorten(label, 40)) or "this"
    if over and not missed:
        return None
    if missed:
        _, row, limit = max(missed, key=lambda one: one[0])

        def show(value: float) -> str:
            return format_value(value, data.unit)

        values = f"{format_row(replace(row, supported=True), show)}, limit {show(limit)}"
        return f"{name} misses its SLO: {percentile_text(row.percentile)} is {values}"
    sure = all(row.supported or row.percentile >= 100 for row in rows)
    return f"{name} meets its SLO" if sure else None


def same_words(words: Mapping[str, str]) -> dict[str, list[str]]:
    """Return text → the labels that share it; the text says so where all do."""
    groups: dict[str, list[str]] = {}
    for label, text in words.items():
        groups.setdefault(text, []).append(label)
    shared = {1: "", 2: " (both)"}.get(len(words), f" (all {len(words)})")
    return {
        text + (shared if len(members) == len(words) else ""): members
        for text, members in groups.items()
    }


# ------------------------------------------------------------
# From a chart function to a file, without pyplot: the same input gives the same bytes.

_SETTINGS: Any = {
    "svg.hashsalt": "latencykit",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    "path.simplify": True,
}
_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": "latencykit"}, "svg": {"Date": None, "Creator": "latencykit"},
    "pdf": {"CreationDate": None, "Creator": "latencykit", "Producer": None},
}  # fmt: skip

_NOT_OURS = {"backend", "backend_fallback", "interactive", "toolbar", "timezone", "date.epoch"}

_SIDE, _PIXELS = 1 << 16, 400_000_000  # what Agg can draw, and 1.6 GB

_FONTS = (
    "Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Sans", "Noto Sans Arabic", "Noto Sans Devanagari", "Hiragino Sans",
    "PingFang SC", "Microsoft YaHei", "Yu Gothic", "Malgun Gothic", "WenQuanYi Zen Hei",
    "Noto Emoji", "Segoe UI Symbol", "Apple Symbols",
)  # fmt: skip
"""Where letters come from that DejaVu Sans lacks, as far as they are installed: tags are written in any language."""


@contextlib.contextmanager
def _house_settings() -> Iterator[None]:
    """Settings that do not depend on the user's; his are back afterwards."""
    installed = {entry.name for entry in fontManager.ttflist}
    family: Any = ["DejaVu Sans", *(name for name in _FONTS if name in installed)]
    with mpl.rc_context(), warnings.catch_warnings():
        # Not `rcdefaults`, which reads all style files first.
        defaults = {
            key: value for key, value in mpl.rcParamsDefault.items() if key not in _NOT_OURS
        }
        mpl.rcParams.update({**defaults, **_SETTINGS, "font.family": family})
        warnings.filterwarnings(
            "ignore", message=r"Glyph .* missing from"
        )  # a box stands for a letter that no font has
        yield


def figure_of(
    chart: Callable[..., Any],
    data: Any,
    *,
    size: tuple[float, float] = (1000, 560),
    dpi: float = 100,
    **options: Any,
) -> Figure:
    """Draw a chart on a figure of its own."""
    width, height = size
    # What labels will take, roughly: charts that measure their axes while they draw see about their final size.
    guess = SubplotParams(
        left=min(0.3, 72 / width),
        right=1 - min(0.1, 24 / width),
        bottom=min(0.3, 56 / height),
        top=1 - min(0.3, 62 / height),
    )
    figure = Figure(
        figsize=(width / 100, height / 100),
        dpi=dpi,
        layout="constrained",
        facecolor="white",
        subplotpars=guess,
    )
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)  # type: ignore[union-attr,call-arg]
    chart(data, ax=figure.add_subplot(), **options)
    return figure


def checked_ending(path: Path) -> str:
    """Return the ending of a chart's file, or raise `InvalidArgumentError` where it is none that charts are written as."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in _METADATA:
        raise InvalidArgumentError(f"{path.name}: charts are written as .png, .svg or .pdf")
    return kind


def save(
    chart: Callable[..., Any],
    data: Any,
    path: Path,
    *,
    size: tuple[float, float] = (1000, 560),
    dpi: float = 100,
    **options: Any,
) -> None:
    """Draw a chart into a file."""
    kind = checked_ending(path)
    pixels = [side * dpi / 100 for side in size]
    if kind == "png" and (max(pixels) >= _SIDE or pixels[0] * pixels[1] > _PIXELS):
        said = " × ".join(f"{side:,.0f}" for side in pixels)
        raise InvalidArgumentError(
            f"{said} pixels are too many for a .png; take a smaller size, fewer pixels per inch, or .svg"
        )
    with _house_settings():
        figure = figure_of(chart, data, size=size, dpi=dpi, **options)
        drawn = io.BytesIO()  # matplotlib's own writers hide what is wrong with a disk
        if (
            kind == "png"
        ):  # `savefig` draws twice, once for the layout, which a drawing begins with anyway
            FigureCanvasAgg(figure).print_png(drawn, metadata=_METADATA[kind])  # type: ignore[no-untyped-call]
        else:
            figure.savefig(drawn, format=kind, dpi=dpi, metadata=_METADATA[kind])
    path.write_bytes(drawn.getvalue())
