"""From a chart function to a file, without pyplot: the same input gives the same bytes."""

from __future__ import annotations

import contextlib
import io
import warnings
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, SubplotParams
from matplotlib.font_manager import fontManager

from latencykit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["checked_ending", "figure_of", "save"]

_SETTINGS: Any = {"svg.hashsalt": "latencykit", "svg.fonttype": "path", "pdf.fonttype": 42, "path.simplify": True}
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
        defaults = {key: value for key, value in mpl.rcParamsDefault.items() if key not in _NOT_OURS}
        mpl.rcParams.update({**defaults, **_SETTINGS, "font.family": family})
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from")  # a box stands for a letter that no font has
        yield


def figure_of(
    chart: Callable[..., Any], data: Any, *, size: tuple[float, float] = (1000, 560), dpi: float = 100, **options: Any
) -> Figure:
    """Draw a chart on a figure of its own.

    Parameters
    ----------
    chart : callable
        One of this room's functions.
    data : rung or mapping
    size : tuple of float
        Width and height in hundredths of an inch.
    dpi : float, default 100
        Pixels an inch.
    **options
        For the chart.
    """
    width, height = size
    # What labels will take, roughly: charts that measure their axes while they draw see about their final size.
    guess = SubplotParams(
        left=min(0.3, 72 / width), right=1 - min(0.1, 24 / width), bottom=min(0.3, 56 / height), top=1 - min(0.3, 62 / height)
    )
    figure = Figure(figsize=(width / 100, height / 100), dpi=dpi, layout="constrained", facecolor="white", subplotpars=guess)
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)  # type: ignore[union-attr,call-arg]
    chart(data, ax=figure.add_subplot(), **options)
    return figure


def checked_ending(path: Path) -> str:
    """Return the ending of a chart's file, or raise `UsageError` where it is none that charts are written as."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in _METADATA:
        raise UsageError(f"{path.name}: charts are written as .png, .svg or .pdf")
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
    """Draw a chart into a file.

    Parameters
    ----------
    chart : callable
        One of this room's functions.
    data : rung or mapping
    path : Path
        ``.png``, ``.svg`` or ``.pdf``.
    size : tuple of float
        Width and height in hundredths of an inch: pixels at the default resolution.
    dpi : float, default 100
        Pixels an inch of a PNG.
    **options
        For the chart.

    Raises
    ------
    UsageError
        For another ending, and for more pixels than memory should be taken for.
    """
    kind = checked_ending(path)
    pixels = [side * dpi / 100 for side in size]
    if kind == "png" and (max(pixels) >= _SIDE or pixels[0] * pixels[1] > _PIXELS):
        said = " × ".join(f"{side:,.0f}" for side in pixels)
        raise UsageError(f"{said} pixels are too many for a .png; take a smaller size, fewer pixels an inch, or .svg")
    with _house_settings():
        figure = figure_of(chart, data, size=size, dpi=dpi, **options)
        drawn = io.BytesIO()  # matplotlib's own writers hide what is wrong with a disk
        if kind == "png":  # `savefig` draws twice, once for the layout, which a drawing begins with anyway
            FigureCanvasAgg(figure).print_png(drawn, metadata=_METADATA[kind])  # type: ignore[no-untyped-call]
        else:
            figure.savefig(drawn, format=kind, dpi=dpi, metadata=_METADATA[kind])
    path.write_bytes(drawn.getvalue())
