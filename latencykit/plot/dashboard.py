"""The picture that people print: timeline on top, percentile curve below, key numbers and verdict beside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latencykit.errors import UsageError
from latencykit.keynumbers import key_numbers
from latencykit.plot.curves import as_histogram, as_series, describe
from latencykit.plot.percentiles import percentiles
from latencykit.plot.style import AMBER, BLUE, GREY, INK, RED, current_axes, plain, title_axes
from latencykit.plot.timeline import timeline

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["dashboard"]

_VERDICTS = {"omits": RED, "clean": BLUE, "unknown": AMBER}


def dashboard(
    data: Any,
    *,
    ax: Axes | None = None,
    unit: str | None = None,
    slo: Any = None,
    confidence: float | None = 0.95,
    stalls: Any = None,
    verdict: str | None = None,
    corrected: Any = None,
    title: str | None = None,
    subtitle: str | None = None,
    **line_kwargs: Any,
) -> Axes:
    """Draw timeline, percentile curve and key numbers of one series on one page.

    Parameters
    ----------
    data : rung, or mapping of one label to a rung
    ax : Axes, optional
        The page; its own frame is hidden and its panels are laid inside.
    unit, slo, confidence
        As in `percentiles`.
    stalls : optional
        As in `timeline`.
    verdict : str, optional
        ``omits``, ``clean`` or ``unknown``, where a diagnosis was made.
    corrected : Histogram, optional
        Drawn in blue beside the raw curve in red.
    title, subtitle : str, optional
    **line_kwargs
        For the curve.

    Returns
    -------
    Axes
        The page; ``page.child_axes`` are its panels.
    """
    page = current_axes(ax)
    series = as_series(data)
    if len(series) > 1:
        raise UsageError(
            f"a dashboard shows one series, not {len(series)} ({', '.join(series)}); choose one with --series or --tag"
        )
    (label, rung), *_ = series.items()
    counted = as_histogram(rung)
    page.axis("off")
    timed = (hasattr(rung, "to_log") and getattr(rung, "start", 0.0) is not None) or hasattr(rung, "series")
    if timed:
        top = page.inset_axes((0.0, 0.66, 1.0, 0.34))
        timeline({label: rung}, ax=top, unit=unit, stalls=stalls, title="", subtitle="")
    curve = page.inset_axes((0.0, 0.0, 0.70, 0.44 if timed else 1.0))
    shown = {label: counted} if corrected is None else {"raw": counted, "corrected": corrected}
    percentiles(shown, ax=curve, unit=unit, slo=slo, confidence=confidence, title="", subtitle="", **line_kwargs)
    side = page.inset_axes((0.83, 0.0, 0.17, 0.44 if timed else 1.0))
    side.axis("off")
    _column(side, key_numbers(counted), verdict)
    title_axes(page, label if title is None else title, describe(counted) if subtitle is None else subtitle)
    return page


def _column(ax: Axes, numbers: list[tuple[str, str]], verdict: str | None) -> None:
    """Names flush left, numbers flush right."""
    rows = [(name, text, INK) for name, text in numbers]
    if verdict is not None:
        rows.append(("verdict", verdict, _VERDICTS.get(verdict, INK)))
    step = 1.0 / max(len(rows) + 1, 11)
    for k, (name, text, colour) in enumerate(rows):
        y = 1.0 - (k + 0.5) * step
        ax.text(0.0, y, name, fontsize=9, color=GREY, va="center", transform=ax.transAxes)
        ax.text(
            1.0, y, plain(text, 24), fontsize=9, color=colour, va="center", ha="right", transform=ax.transAxes,
            fontweight="bold" if name == "verdict" else "normal",
        )  # fmt: skip
