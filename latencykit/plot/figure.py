"""From a chart function to a file, without pyplot: the same input gives the same bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure

from latencykit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["save"]

_SETTINGS: Any = {
    "svg.hashsalt": "latencykit",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    "font.family": ["DejaVu Sans"],
    "path.simplify": True,
}
_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": "latencykit"}, "svg": {"Date": None, "Creator": "latencykit"},
    "pdf": {"CreationDate": None, "Creator": "latencykit", "Producer": None},
}  # fmt: skip


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
        Width and height in pixels of 1/100 inch.
    dpi : float, default 100
        Pixels an inch of a PNG.
    **options
        For the chart.
    """
    kind = path.suffix.lower().removeprefix(".")
    if kind not in _METADATA:
        raise UsageError(f"{path.name}: charts are written as .png, .svg or .pdf")
    with mpl.rc_context(_SETTINGS):
        figure = Figure(figsize=(size[0] / 100, size[1] / 100), dpi=dpi, layout="constrained", facecolor="white")
        figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)  # type: ignore[union-attr,call-arg]
        ax = figure.add_subplot()
        chart(data, ax=ax, **options)
        figure.savefig(path, format=kind, dpi=dpi, metadata=_METADATA[kind])
