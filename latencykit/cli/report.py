"""``latencykit report``."""

from __future__ import annotations

import shlex
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
from latencykit.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from latencykit.cli.common import Input

__all__ = ["command", "write_page"]


@click.command("report")
@inputs()
@click.option(
    "-o",
    "--output",
    "out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write (.html).",
)
@click.option(
    "--slo",
    "spec",
    metavar="SPEC",
    help="Limits such as 99.9=20ms,max=1s, or a file: checked and drawn.",
)
@click.option(
    "--expected-interval",
    metavar="D",
    callback=with_unit,
    help="Between two requests of one connection, such as 2ms.",
)
@click.option(
    "--rate", type=Real(0, min_open=True), help="Requests per second, all connections together."
)
@click.option("--connections", type=click.IntRange(1), help="Connections that sent requests.")
@click.option("--title", help="Instead of what was measured.")
@printing
def command(
    given: Inputs, out: Path | None, spec: str | None, expected_interval: str | None, rate: float | None,
    connections: int | None, title: str | None, style: str,
) -> None:  # fmt: skip
    """Write an interactive page in one file: it needs no server and no network.

    \b
    latencykit report run.hlog -o report.html
    latencykit report before=a.hlog after=b.hlog -o both.html
    latencykit report run.hlog --unit ns --slo 99.9=20ms,max=1s
    """
    if out is not None:
        from latencykit._files import checked_page

        checked_page(out)
    loaded = without_aggregates(load(given, again=True))
    target = out or beside(loaded[0].path, ".html")
    how = {"expected_interval": expected_interval, "rate": rate, "connections": connections}
    write_page(loaded, target, given, spec, slo=slo_of(spec) if spec else None, title=title, **how)
    print_written({"output": str(target)}, style, None if out is None else f"wrote {target}")


def write_page(
    loaded: Sequence[Input], target: Path, given: Inputs, spec: str | None, **options: Any
) -> None:
    """Write the page of some series; `chart` does so, too, where its output is HTML."""
    if given.out_unit is not None:
        raise InvalidArgumentError(
            "--out-unit is for pictures; a page gives each value the unit that suits it"
        )
    from latencykit.views.page import page_html
    from latencykit.views.page_sections import input_file

    args = (click.get_current_context().find_root().obj or {}).get("args", ())
    files = [input_file(path) for path in dict.fromkeys(one.path for one in loaded)]
    named = {one.name: one.data for one in loaded}
    with atomic(target, given.files, spec) as temporary, progress(f"writing {target.name}"):
        text = page_html(named, files=files, command=shlex.join(["latencykit", *args]), **options)
        temporary.write_text(text, encoding="utf-8")
