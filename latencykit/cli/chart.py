"""``latencykit chart``."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from latencykit._files import checked_chart
from latencykit.cli import options
from latencykit.cli.inputs import load, with_parts
from latencykit.cli.output import atomic, beside, print_assumed_units, print_written, write_page
from latencykit.errors import InvalidArgumentError

if TYPE_CHECKING:
    from latencykit._typing import JSONObject

_KINDS = ("percentiles", "timeline", "heatmap", "density", "ccdf", "dashboard")
_CURVES = ("percentiles", "ccdf", "dashboard")
_KINDS_WITH = {
    "runs": ("percentiles",),
    "nines": ("percentiles", "dashboard"),
    "y": ("percentiles", "timeline"),
    "confidence": _CURVES,
    "expected_interval": _CURVES,
}
"""Options that only some kinds of charts have."""

_PAGE_OPTIONS = ("slo", "title", "expected_interval")
"""Options that an interactive page has; a terminal has none."""


@click.command("chart", cls=options.Command)
@options.inputs(split=True)
@click.option(
    "-o",
    "--output",
    "out",
    type=options.OUTPUT_FILE,
    help="File to write: .png .svg .pdf, or .html for an interactive page.",
)
@click.option("--kind", type=click.Choice(_KINDS), default="percentiles", help="Kind of chart.")
@click.option("--runs", is_flag=True, help="Repeated runs: thin lines and their envelope.")
@options.slo_option(help="Limits to draw, such as 99.9=20ms,max=1s, or a file (repeatable).")
@click.option("--nines", type=options.Real(1, 12), help="Number of nines before 100 %.")
@click.option(
    "--y", type=click.Choice(["log", "linear"]), show_default="log", help="Scale of the value axis."
)
@options.interval_option
@click.option("--term", is_flag=True, help="Draw the curve and the timeline in the terminal.")
@click.option("--title", help="Chart title.")
@click.option(
    "--confidence",
    type=options.Real(0.5, 0.9999),
    show_default="0.95 for up to three curves",
    help="Confidence level of the band.",
)
@click.option("--size", metavar="WxH", help="Size in pixels, such as 1600x900.")
@click.option(
    "--dpi",
    type=options.Real(30, 1200),
    show_default="100",
    help="Pixels per inch; 200 doubles the size.",
)
@options.format_option
def command(
    given: options.Inputs,
    out: Path | None,
    kind: str,
    specs: tuple[str, ...],
    term: bool,
    style: str,
    **look: Any,
) -> None:
    """Plot the full distribution, or latency over time.

    \b
    latencykit chart run.hlog -o run.png
    latencykit chart before=a.hlog after=b.hlog -o both.svg
    latencykit chart run.hlog --kind dashboard --slo 99.9=20ms,max=1s
    latencykit chart run.hlog --term
    """
    page = out is not None and out.suffix.lower() in (".html", ".htm")
    look["slo"] = options.slo_of(specs) if any(specs) else None
    if term and given.out_unit is not None:
        raise InvalidArgumentError(
            "--out-unit is for pictures; the terminal gives each value the unit that suits it"
        )
    # Options that would have no effect.
    both = "is for pictures; a page and a terminal show curve and timeline at once"
    for name in sorted(name for name, value in look.items() if value):
        option, kinds = f"--{name.replace('_', '-')}", _KINDS_WITH.get(name, _KINDS)
        if term or (page and name not in _PAGE_OPTIONS):
            raise InvalidArgumentError(f"{option} {both}")
        if not page and kind not in kinds:
            raise InvalidArgumentError(
                f"{option} is for --kind {' or '.join(kinds)}, not for {kind}"
            )
    if (term and kind != _KINDS[0]) or (page and kind in ("density", "ccdf")):
        raise InvalidArgumentError(f"--kind {kind} {both}")
    if look["runs"] and look["confidence"]:
        raise InvalidArgumentError(
            "--runs draws the range of the runs, which takes the place of the band of --confidence"
        )
    if term and style != "table":
        raise InvalidArgumentError(
            f"--term draws for people, --format {style} prints for programs; leave one of them out"
        )
    if out is not None and not page:
        checked_chart(out)  # before anything is read
    counted = kind in ("percentiles", "density", "ccdf") and not (term or page)
    loaded = with_parts(load(given.selecting(counted=counted), shown=True))
    if term:
        from latencykit.views.terminal import terminal_chart

        columns, lines = shutil.get_terminal_size((80, 24))
        colour = sys.stdout is not None and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        width, height = min(max(columns, 50), 160), min(max(lines - 6, 14), 30)
        series = {entry.name: entry.data for entry in loaded}
        click.echo(terminal_chart(series, width=width, height=height, colour=colour))
        if out is None:
            return
    target = out or beside(loaded[0].path, ".png" if kind == "percentiles" else f".{kind}.png")
    if page:
        write_page(loaded, target, given, specs, **{name: look[name] for name in _PAGE_OPTIONS})
    else:
        from latencykit import plot
        from latencykit.plot.files import save

        data = {entry.name: entry.data for entry in loaded}
        interval = look.pop("expected_interval")
        if look["confidence"] is None and len(loaded) <= 3 and not look["runs"]:
            look["confidence"] = 0.95
        if interval is not None:
            from latencykit.analysis.correct import correct

            pairs: dict[str, Any] = {}  # corrected series beside raw ones
            for name, values in data.items():
                prefix = f"{name} " if len(data) > 1 else ""
                pairs |= {f"{prefix}raw": values, f"{prefix}corrected": correct(values, interval)}
            data = pairs
        look = {key: value for key, value in look.items() if kind in _KINDS_WITH.get(key, _KINDS)}
        if "y" in look:
            look["log"] = look.pop("y") != "linear"
        names = 20.0 * len(data) * (kind not in ("dashboard", "heatmap"))  # one line each
        pixels = (1000.0, max(780.0 if kind == "dashboard" else 560.0, 160.0 + names))
        if (size := look["size"]) is not None:
            sides = re.fullmatch(r"(\d{3,5})x(\d{3,5})", size.lower(), re.ASCII)
            wide, high = map(float, sides.groups() if sides else (0, 0))
            if not (200 <= wide <= 20_000 and 150 <= high <= 20_000):
                raise InvalidArgumentError(
                    "a size is WIDTHxHEIGHT in pixels, such as 1600x900 (200x150 to 20000x20000), "
                    f"not {size!r}"
                )
            pixels = wide, high
        look |= {"size": pixels, "dpi": look["dpi"] or 100}
        with atomic(target, given.files, *specs) as temporary:
            save(getattr(plot, kind), data, temporary, unit=given.out_unit, **look)
    print_assumed_units({entry.name: entry.data.run for entry in loaded})
    record: JSONObject = {"output": str(target)}
    if style == "json":
        from latencykit.views.series import series_record

        record["series"] = [series_record(entry.name, entry.data) for entry in loaded]
    print_written(record, style, None if out is None else f"wrote {target}")
