"""``latencykit report``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from latencykit.cli import options
from latencykit.cli.inputs import load, with_parts
from latencykit.cli.output import beside, print_assumed_units, print_written, write_page


@click.command("report", cls=options.Command)
@options.inputs(split=True)
@click.option("-o", "--output", "out", type=options.OUTPUT_FILE, help="File to write (.html).")
@options.slo_option(
    help="Limits to check and draw, such as 99.9=20ms,max=1s, or a file (repeatable)."
)
@options.interval_option
@options.sender_options
@click.option("--title", help="Page title.")
@click.option(
    "--page-size",
    metavar="SIZE",
    default="2MB",
    help="Size that the page should not exceed; a larger one has narrower time bins.",
)
@options.format_option
def command(
    given: options.Inputs, out: Path | None, specs: tuple[str, ...], style: str, **chosen: Any
) -> None:
    """Write an interactive page in one file; it needs no server and no network.

    \b
    latencykit report run.hlog -o report.html
    latencykit report before=a.hlog after=b.hlog -o both.html
    latencykit report run.hlog --unit ns --slo 99.9=20ms,max=1s
    """
    if out is not None:
        from latencykit._files import checked_page

        checked_page(out)
    from latencykit.units import byte_count

    byte_count(chosen["page_size"])  # before anything is read
    loaded = with_parts(load(given.selecting(columns=True), shown=True))
    target = out or beside(loaded[0].path, ".html")
    slo = options.slo_of(specs) if any(specs) else None
    write_page(loaded, target, given, specs, slo=slo, **chosen)
    print_assumed_units({entry.name: entry.data.run for entry in loaded})
    print_written({"output": str(target)}, style, None if out is None else f"wrote {target}")
