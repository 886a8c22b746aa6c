"""HTML for notebooks, without scripts: pure functions of plain values; file content is escaped."""

from __future__ import annotations

import math
from collections.abc import Sequence

from latencykit._text import esc

_WIDTH, _HEIGHT = 300, 120
# A notebook may be light or dark: text keeps its colour, and lines are seen on both.
_BLUE, _GREY = "#2f7bd6", "#8a909a"
_COLOURS = {
    "omits": "#d0312d",
    "clean": _BLUE,
    "no stall": _BLUE,
    "service times": _BLUE,
    "unknown": "#c77700",
}
_FADED = "opacity:0.75"
_QUIET = f"style='{_FADED};font-size:85%'"

_STEPS = 120
_NINES = (*(5 * k / (_STEPS - 1) for k in range(_STEPS)), 5.4)
CURVE_PERCENTILES = (*(100 * (1 - 10.0**-nines) for nines in _NINES[:-1]), 100.0)
"""Percentiles of `curve_svg`: evenly spaced by nines up to p99.999, then the maximum."""


def data_html(
    title: str,
    source: str,
    rows: Sequence[tuple[str, str]],
    picture: str,
    notes: Sequence[str] = (),
) -> str:
    """Return a table of statistics beside a small curve, with the source above and notes below."""
    cells = "".join(
        f"<tr><td style='text-align:left;{_FADED}'>{esc(name, 80)}</td>"
        f"<td style='text-align:right'>{esc(value, 80)}</td></tr>"
        for name, value in rows
    )
    below = "".join(f"<div {_QUIET}>{esc(note, 200)}</div>" for note in notes)
    return (
        f"<div style='font-family:sans-serif;max-width:560px'><b>{esc(title, 80)}</b>"
        f"<div {_QUIET}>{esc(source, 200)}</div>"
        f"<div style='display:flex;gap:24px;align-items:center'><table>{cells}</table>{picture}"
        f"</div>{below}</div>"
    )


def verdict_html(
    title: str,
    verdict: str,
    text: str,
    summary: str,
    correction: str,
    rows: Sequence[tuple[str, str, str]],
    lines: Sequence[str] = (),
) -> str:
    """Return a diagnosis: a verdict and its text, percentiles as recorded and with a correction."""
    colour = _COLOURS.get(verdict, _GREY)
    cells = "".join(
        f"<tr><td {_QUIET}>{esc(name, 80)}</td><td style='text-align:right'>{esc(raw, 80)}</td>"
        f"<td style='text-align:right'>{esc(corrected, 80)}</td></tr>"
        for name, raw, corrected in rows
    )
    head = ""
    if any(corrected for *_, corrected in rows):
        head = f"<tr {_QUIET}><td></td><td>as recorded</td><td>{esc(correction)}</td></tr>"
    below = "".join(f"<div {_QUIET}>{esc(line, 400)}</div>" for line in lines if line)
    return (
        f"<div style='font-family:sans-serif;max-width:640px'><b>{esc(title, 80)}: "
        f"<span style='color:{colour}'>\u25cf</span> {esc(text, 80)}</b>"
        f"<div>{esc(summary, 300)}</div><table>{head}{cells}</table>{below}</div>"
    )


def listing_html(
    title: str, header: Sequence[str], rows: Sequence[Sequence[str]], lines: Sequence[str] = ()
) -> str:
    """Return a title, sentences, and a table whose first column names the rows."""
    cells = "".join(
        f"<tr><td style='text-align:left'>{esc(first, 80)}</td>"
        + "".join(f"<td style='text-align:right'>{esc(cell, 80)}</td>" for cell in others)
        + "</tr>"
        for first, *others in rows
    )
    head = "".join(f"<th style='text-align:right'>{esc(name, 80)}</th>" for name in header)
    table = f"<table><tr>{head}</tr>{cells}</table>" if rows else ""
    below = "".join(f"<div {_QUIET}>{esc(line, 400)}</div>" for line in lines if line)
    return f"<div style='font-family:sans-serif'><b>{esc(title, 80)}</b>{table}{below}</div>"


def curve_svg(
    values: Sequence[float], lowest: Sequence[float], wide: Sequence[bool], maximum: str
) -> str:
    """Return a small percentile curve: nines to the right, values (logarithmic) upwards."""
    # `values` belong to `CURVE_PERCENTILES`. Where one is `wide`, the source does not pin it down:
    # an area from `lowest` to the value is filled in place of a line. `maximum` is the text at the
    # end.
    feet = [low if open_ else value for value, low, open_ in zip(values, lowest, wide, strict=True)]
    floor = max(min([foot for foot in feet if foot > 0], default=1e-12), 1e-12)
    low, high = math.log10(floor), math.log10(max(*values, floor) * 1.0001)

    def height(value: float) -> float:
        return 14 + (1 - (math.log10(max(value, floor)) - low) / max(high - low, 1e-9)) * (
            _HEIGHT - 34
        )

    x = [8 + nines / _NINES[-1] * (_WIDTH - 16) for nines in _NINES]
    line, areas = [], []
    for k, open_ in enumerate(wide):
        top = height(values[k])
        if open_ and k:
            areas.append(
                f"M{x[k - 1]:.1f} {top:.1f}H{x[k]:.1f}V{height(feet[k]):.1f}H{x[k - 1]:.1f}Z"
            )
        elif not open_:
            joined = k and not wide[k - 1]
            line.append(f"V{top:.1f}H{x[k]:.1f}" if joined else f"M{x[k]:.1f} {top:.1f}")
    filled = f"<path d='{''.join(areas)}' fill='{_BLUE}' fill-opacity='0.25'/>" if areas else ""
    ticks = "".join(
        f"<text x='{8 + nines / _NINES[-1] * (_WIDTH - 16):.0f}' y='{_HEIGHT - 4}' font-size='9' "
        f"fill='currentColor' opacity='0.75' text-anchor='middle'>{text}</text>"
        for nines, text in ((0.301, "50"), (1, "90"), (2, "99"), (3, "99.9"), (4, "99.99"))
    )
    top_text = esc(maximum if maximum.startswith("≥") else f"max {maximum}")
    return (
        f"<svg width='{_WIDTH}' height='{_HEIGHT}' viewBox='0 0 {_WIDTH} {_HEIGHT}' role='img' "
        f"aria-label='percentile curve, {top_text}'>"
        f"{filled}<path d='{''.join(line)}' fill='none' stroke='{_BLUE}' "
        f"stroke-width='1.6'/>{ticks}"
        f"<text x='{_WIDTH - 8}' y='10' font-size='10' fill='currentColor' "
        f"text-anchor='end'>{top_text}</text></svg>"
    )
