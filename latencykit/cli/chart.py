"""``latencykit chart``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from latencykit.cli.check import slo_of
from latencykit.cli.common import (
    Inputs,
    Real,
    atomic,
    beside,
    inputs,
    load,
    print_written,
    printing,
    progress,
    with_unit,
    without_aggregates,
)
from latencykit.cli.report import write_page
from latencykit.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from latencykit.cli.common import Input

__all__ = ["command"]

_KINDS = ("percentiles", "timeline", "heatmap", "density", "ccdf", "dashboard")
_SIZES = {"dashboard": (1000.0, 780.0)}
_CURVES = ("percentiles", "ccdf", "dashboard")
_ONLY = {
    "runs": ("percentiles",), "nines": ("percentiles", "dashboard"), "y": ("percentiles", "timeline"), "confidence": _CURVES,
    "expected_interval": _CURVES,
}  # fmt: skip
"""Options that only some kinds of charts know."""

_ON_PAGES = ("slo", "title", "expected_interval")
"""Options that an interactive page knows; a terminal knows none."""


@click.command("chart")
@inputs()
@click.option(
    "-o",
    "--output",
    "out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write: .png .svg .pdf, or .html for an interactive page.",
)
@click.option(
    "--kind",
    type=click.Choice(_KINDS),
    default="percentiles",
    show_default=True,
    help="Which chart.",
)
@click.option("--runs", is_flag=True, help="Runs of one thing: thin lines and their envelope.")
@click.option(
    "--slo", metavar="SPEC", help="Limits such as 99.9=20ms,max=1s, or a file: drawn and judged."
)
@click.option("--nines", type=Real(1, 12), help="Nines before 100 %.")
@click.option(
    "--y", type=click.Choice(["log", "linear"]), show_default="log", help="Axis of values."
)
@click.option(
    "--expected-interval",
    metavar="D",
    callback=with_unit,
    help="Between two requests of one connection, such as 10ms: draw raw and corrected.",
)
@click.option("--term", is_flag=True, help="Draw curve and timeline in the terminal.")
@click.option("--title", help="Instead of what was measured.")
@click.option(
    "--confidence",
    type=Real(0.5, 0.9999),
    show_default="0.95 for up to three curves",
    help="Of the band around a curve.",
)
@click.option("--size", metavar="WxH", help="Pixels, such as 1600x900.")
@click.option(
    "--dpi", type=Real(30, 1200), show_default="100", help="Pixels an inch; 200 doubles the size."
)
@printing
def command(
    given: Inputs, out: Path | None, kind: str, term: bool, style: str, **look: Any
) -> None:
    """Draw the whole distribution: percentile curves, or another kind.

    \b
    latencykit chart run.hlog -o run.png
    latencykit chart before=a.hlog after=b.hlog -o both.svg
    latencykit chart run.hlog --kind dashboard --slo 99.9=20ms,max=1s
    latencykit chart run.hlog --term
    """
    page = out is not None and out.suffix.lower() in (".html", ".htm")
    if term and given.out_unit is not None:
        raise InvalidArgumentError(
            "--out-unit is for pictures; the terminal gives each value the unit that suits it"
        )
    _refuse({name: value for name, value in look.items() if value}, kind, term=term, page=page)
    if term and style != "table":
        raise InvalidArgumentError(
            f"--term draws for people, --format {style} prints for programs; leave one of them out"
        )
    if out is not None and not page:
        from latencykit.plot.files import checked_ending

        checked_ending(out)  # before anything is read
    spec = look["slo"]
    if spec:
        look["slo"] = slo_of(spec)
    counted = kind in ("percentiles", "density", "ccdf") and not (term or page)
    loaded = without_aggregates(load(given, counted=counted, again=True))
    if term:
        _in_terminal(loaded)
        if out is None:
            return
    target = out or beside(loaded[0].path, ".png" if kind == "percentiles" else f".{kind}.png")
    if page:
        write_page(loaded, target, given, spec, **{name: look[name] for name in _ON_PAGES})
    else:
        with atomic(target, given.files, spec) as temporary, progress(f"drawing {target.name}"):
            _draw(loaded, temporary, given, kind, **look)
    said = None if out is None else f"wrote {target}"
    print_written(
        {"output": str(target)} | (_series(loaded) if style == "json" else {}), style, said
    )


def _refuse(asked: dict[str, Any], kind: str, *, term: bool, page: bool) -> None:
    """No option does nothing in silence."""
    for name in asked:
        option, kinds = f"--{name.replace('_', '-')}", _ONLY.get(name, _KINDS)
        if term or (page and name not in _ON_PAGES):
            raise InvalidArgumentError(
                f"{option} is for pictures; a page and a terminal show curve and timeline at once"
            )
        if not page and kind not in kinds:
            raise InvalidArgumentError(
                f"{option} is for --kind {' or '.join(kinds)}, not for {kind}"
            )
    if (term and kind != _KINDS[0]) or (page and kind in ("density", "ccdf")):
        raise InvalidArgumentError(
            f"--kind {kind} is for pictures; a page and a terminal show curve and timeline at once"
        )
    if "runs" in asked and "confidence" in asked:
        raise InvalidArgumentError(
            "--runs draws the range of the runs, which takes the place of the band of --confidence"
        )


def _draw(
    loaded: Sequence[Input], target: Path, given: Inputs, kind: str, *, runs: bool, nines: float | None, y: str | None,
    confidence: float | None, expected_interval: str | None, size: str | None, dpi: float | None, **words: Any,
) -> None:  # fmt: skip
    """Write one picture."""
    from latencykit import plot
    from latencykit.plot.files import save

    if confidence is None and len(loaded) <= 3 and not runs:
        confidence = 0.95
    known: dict[str, Any] = {
        "runs": runs,
        "nines": nines,
        "y": y != "linear",
        "confidence": confidence,
    }
    options = {
        "log" if name == "y" else name: value
        for name, value in known.items()
        if kind in _ONLY[name]
    }
    data = {one.name: one.data for one in loaded}
    if expected_interval is not None:
        data = _raw_and_corrected(data, expected_interval)
    options |= {"unit": given.out_unit, **words}
    save(getattr(plot, kind), data, target, size=_size(size, kind), dpi=dpi or 100, **options)


def _raw_and_corrected(data: dict[str, Any], interval: str) -> dict[str, Any]:
    """Every series as it was measured, and back-filled beside it."""
    from latencykit.analysis.correct import correct

    if len(data) == 1:
        ((_, values),) = data.items()
        return {"raw": values, "corrected": correct(values, interval)}
    both: dict[str, Any] = {}
    for name, values in data.items():
        both |= {f"{name} raw": values, f"{name} corrected": correct(values, interval)}
    return both


def _in_terminal(loaded: Sequence[Input]) -> None:
    """Draw in the terminal: as wide as it is, coloured where a person is watching and does not mind."""
    import os
    import shutil
    import sys

    from latencykit.views.terminal import terminal_chart

    columns, lines = shutil.get_terminal_size((80, 24))
    colour = sys.stdout is not None and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    width, height = min(max(columns, 50), 160), min(max(lines - 6, 14), 30)
    click.echo(
        terminal_chart(
            {one.name: one.data for one in loaded}, width=width, height=height, colour=colour
        )
    )


def _size(text: str | None, kind: str) -> tuple[float, float]:
    if text is None:
        return _SIZES.get(kind, (1000.0, 560.0))
    width, _, height = text.lower().partition("x")
    if not (
        width.isdigit()
        and height.isdigit()
        and 200 <= int(width) <= 20_000
        and 150 <= int(height) <= 20_000
    ):
        raise InvalidArgumentError(
            f"a size is WIDTHxHEIGHT in pixels, such as 1600x900 (200x150 to 20000x20000), not {text!r}"
        )
    return float(width), float(height)


def _series(loaded: Sequence[Input]) -> dict[str, Any]:
    from latencykit.views.record import series_record

    return {"series": [series_record(one.name, one.data) for one in loaded]}
