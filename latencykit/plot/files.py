"""From a chart function to a file: without pyplot, and the same bytes each time."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.backend_bases import get_registered_canvas_class
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager

from latencykit._files import checked_chart
from latencykit.errors import InvalidArgumentError
from latencykit.plot.label_layout import alt_text

_SETTINGS: Any = {
    "svg.hashsalt": "latencykit",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    "path.simplify": True,
}
_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": "latencykit"},
    "svg": {"Date": None, "Creator": "latencykit"},
    "pdf": {"CreationDate": None, "Creator": "latencykit", "Producer": None},
}
_NOT_OURS = {"backend", "backend_fallback", "interactive", "toolbar", "timezone", "date.epoch"}

_SIDE, _PIXELS = 1 << 16, 400_000_000  # what Agg can draw, and 1.6 GB

_FONTS = (
    "Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Sans", "Noto Sans Arabic", "Noto Sans Devanagari",
    "Hiragino Sans", "PingFang SC", "Microsoft YaHei", "Yu Gothic", "Malgun Gothic",
    "WenQuanYi Zen Hei", "Noto Emoji", "Segoe UI Symbol", "Apple Symbols",
)  # fmt: skip
"""Fonts for letters that DejaVu Sans lacks, where installed: tags are written in any language."""


def figure_of(
    chart: Callable[..., object],
    data: object,
    *,
    size: tuple[float, float] = (1000, 560),
    dpi: float = 100,
    **options: object,
) -> Figure:
    """Draw a chart on a figure of its own."""
    width, height = size
    figure = Figure(
        figsize=(width / 100, height / 100), dpi=dpi, layout="constrained", facecolor="white"
    )
    # Roughly what labels will take: charts that measure their axes see about their final size. (The
    # figure's own argument is ignored by matplotlib 3.11.)
    figure.subplotpars.update(
        left=min(0.3, 72 / width),
        right=1 - min(0.1, 24 / width),
        bottom=min(0.3, 56 / height),
        top=1 - min(0.3, 62 / height),
    )
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)  # type: ignore[union-attr,call-arg]
    chart(data, ax=figure.add_subplot(), **options)
    return figure


def save(
    chart: Callable[..., object],
    data: object,
    path: Path,
    *,
    size: tuple[float, float] = (1000, 560),
    dpi: float = 100,
    **options: object,
) -> None:
    """Draw a chart into a file, with settings that do not depend on the user's."""
    kind = checked_chart(path)
    pixels = [side * dpi / 100 for side in size]
    if kind == "png" and (max(pixels) >= _SIDE or pixels[0] * pixels[1] > _PIXELS):
        raise InvalidArgumentError(
            f"{' × '.join(f'{side:,.0f}' for side in pixels)} pixels are too many for a .png; "
            "take a smaller size, fewer pixels per inch, or .svg"
        )
    installed = {entry.name for entry in fontManager.ttflist}
    family: object = ["DejaVu Sans", *(name for name in _FONTS if name in installed)]
    with mpl.rc_context(), warnings.catch_warnings():
        # Not `rcdefaults`, which reads all style files first.
        defaults = {key: val for key, val in mpl.rcParamsDefault.items() if key not in _NOT_OURS}
        mpl.rcParams.update({**defaults, **_SETTINGS, "font.family": family})
        # A box replaces a letter that no font has.
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from")
        # What does not fit into a small picture is seen there.
        warnings.filterwarnings("ignore", message="constrained_layout not applied")
        figure = figure_of(chart, data, size=size, dpi=dpi, **options)
        metadata = _METADATA[kind] | {"Description" if kind == "png" else "Title": alt_text(figure)}
        drawn = io.BytesIO()  # matplotlib's own writers hide what is wrong with a disk
        # `savefig` draws twice, once for the layout, which drawing does anyway
        canvas: Any = get_registered_canvas_class(kind)(figure)
        getattr(canvas, f"print_{kind}")(drawn, metadata=metadata)
    path.write_bytes(drawn.getvalue())
