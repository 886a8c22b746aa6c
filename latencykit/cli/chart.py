"""``latencykit chart``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from latencykit.cli.common import (
    Inputs,
    Real,
    atomic,
    inputs,
    load,
    note,
    print_json,
    printing,
    progress,
    without_aggregates,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from latencykit.cli.common import Input

__all__ = ["command"]

_KINDS = ("percentiles", "timeline", "heatmap", "density", "ccdf", "dashboard")
_SIZES = {"dashboard": (1000.0, 780.0)}


@click.command("chart")
@inputs()
@click.option(
    "-o",
    "--output",
    "out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write: .png .svg .pdf, or .html for an interactive page.",
)
@click.option("--kind", type=click.Choice(_KINDS), default="percentiles", show_default=True, help="Which chart.")
@click.option("--runs", is_flag=True, help="Runs of one thing: thin lines and their envelope.")
@click.option("--slo", "spec", metavar="SPEC", help="Limits such as 99.9=20ms,max=1s, or a file: drawn and judged.")
@click.option("--nines", type=Real(1, 12), help="Nines before 100 %.")
@click.option(
    "--y",
    "scale",
    type=click.Choice(["log", "linear"]),
    default="log",
    show_default=True,
    help="Axis of values.",
)
@click.option(
    "--expected-interval",
    metavar="D",
    help="Between two requests of one connection, such as 10ms: draw raw and corrected.",
)
@click.option("--term", is_flag=True, help="Draw curve and timeline in the terminal.")
@click.option("--title", help="Instead of what was measured.")
@click.option(
    "--confidence",
    type=Real(0.5, 0.9999),
    default=0.95,
    show_default=True,
    help="Of the band around a curve.",
)
@click.option("--size", default=None, metavar="WxH", help="Pixels, such as 1600x900.")
@click.option(
    "--dpi",
    type=Real(30, 1200),
    default=100,
    show_default=True,
    help="Pixels an inch; 200 doubles the size.",
)
@printing
def command(
    given: Inputs, out: Path | None, kind: str, runs: bool, spec: str | None, nines: float | None, scale: str, term: bool,
    title: str | None, confidence: float, size: str | None, dpi: float, expected_interval: str | None, style: str,
) -> None:  # fmt: skip
    """Draw the whole distribution: percentile curves, or another kind.

    \b
    latencykit chart run.hlog -o run.png
    latencykit chart before=a.hlog after=b.hlog -o both.svg
    latencykit chart run.hlog --kind dashboard --slo 99.9=20ms,max=1s
    latencykit chart run.hlog --term
    """
    from latencykit import plot
    from latencykit.cli.check import slo_of
    from latencykit.cli.report import write_page
    from latencykit.plot.figure import save

    slo = slo_of(spec) if spec else None
    over_time = term or (out is not None and out.suffix.lower() == ".html")
    loaded = without_aggregates(load(given, counted=kind in ("percentiles", "density", "ccdf") and not over_time))
    if term:
        _only_for_pictures(
            {
                "--runs": runs,
                "--slo": spec,
                "--nines": nines,
                "--size": size,
                "--title": title,
                f"--kind {kind}": kind != _KINDS[0],
                "--expected-interval": expected_interval,
            }
        )
        _in_terminal(loaded)
        if out is None:
            return
    target = out or _beside(loaded[0], kind)
    if target.suffix.lower() == ".html":
        _only_for_pictures(
            {
                "--runs": runs,
                "--nines": nines,
                "--size": size,
                f"--kind {kind}": kind in ("density", "ccdf"),
                "--expected-interval": expected_interval,
            }
        )
        write_page(loaded, target, given, title=title, slo=slo)
        _tell(target, loaded, style, named=out is not None)
        return
    options: dict[str, Any] = {"unit": given.out_unit, "title": title, "slo": slo}
    if kind in ("percentiles", "timeline"):
        options["log"] = scale == "log"
    if kind in ("percentiles", "dashboard"):
        options["nines"] = nines
    if kind == "percentiles":
        options["runs"] = runs
    if kind in ("percentiles", "ccdf", "dashboard"):
        options["confidence"] = confidence if len(loaded) <= 3 and not runs else None
    data = {one.name: one.rung for one in loaded}
    if expected_interval is not None:
        data = _raw_and_corrected(data, expected_interval, kind)
    with atomic(target, given.files) as temporary, progress(f"drawing {target.name}"):
        save(getattr(plot, kind), data, temporary, size=_size(size, kind), dpi=dpi, **options)
    _tell(target, loaded, style, named=out is not None)


def _raw_and_corrected(data: dict[str, Any], interval: str, kind: str) -> dict[str, Any]:
    """Every series as it was measured, and back-filled beside it."""
    from latencykit.diagnose import correct
    from latencykit.errors import UsageError

    if kind not in ("percentiles", "ccdf", "dashboard"):
        raise UsageError(f"--expected-interval draws raw and corrected curves; --kind {kind} has no room for both")
    if len(data) == 1:
        ((_, rung),) = data.items()
        return {"raw": rung, "corrected": correct(rung, interval)}
    both: dict[str, Any] = {}
    for name, rung in data.items():
        both |= {f"{name} raw": rung, f"{name} corrected": correct(rung, interval)}
    return both


def _in_terminal(loaded: Sequence[Input]) -> None:
    """Draw in the terminal: as wide as it is, coloured where a person is watching and does not mind."""
    import os
    import shutil
    import sys

    from latencykit.report.terminal import terminal_chart

    columns, lines = shutil.get_terminal_size((80, 24))
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    width, height = min(max(columns, 50), 160), min(max(lines - 6, 14), 30)
    click.echo(terminal_chart({one.name: one.rung for one in loaded}, width=width, height=height, colour=colour))


def _only_for_pictures(options: dict[str, Any]) -> None:
    from latencykit.errors import UsageError

    for name, value in options.items():
        if value:
            raise UsageError(f"{name} is for pictures; a page and a terminal show curve and timeline at once")


def _beside(first: Input, kind: str) -> Path:
    """The file beside the first input that the chart goes to."""
    from latencykit.cluster.places import is_url

    path = first.path.partition("?")[0].rpartition("/")[2] if is_url(first.path) else first.path
    source = Path("latencykit" if path == "-" else path.rstrip("/"))
    ending = "" if kind == "percentiles" else f".{kind}"
    return source.with_name(f"{source.name}{ending}.png")


def _size(text: str | None, kind: str) -> tuple[float, float]:
    from latencykit.errors import UsageError

    if text is None:
        return _SIZES.get(kind, (1000.0, 560.0))
    width, _, height = text.lower().partition("x")
    if not (width.isdigit() and height.isdigit() and 200 <= int(width) <= 20_000 and 150 <= int(height) <= 20_000):
        raise UsageError(f"a size is WIDTHxHEIGHT in pixels, such as 1600x900 (200x150 to 20000x20000), not {text!r}")
    return float(width), float(height)


def _tell(target: Path, loaded: Sequence[Input], style: str, *, named: bool) -> None:
    if style == "json":
        from latencykit.report.record import series_record

        print_json({"output": str(target), "series": [series_record(one.name, one.rung) for one in loaded]})
    elif named:
        note(f"wrote {target}")
    else:
        click.echo(str(target))
