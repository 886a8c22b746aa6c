"""``latencykit load``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from latencykit.cli.check import slo_of
from latencykit.cli.common import (
    Inputs,
    Real,
    confident,
    drawing,
    inputs,
    need_unit,
    note,
    numbers,
    picture,
    print_json,
    printing,
    progress,
    runs_of,
    say_units,
)

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["command"]


@click.command("load")
@inputs()
@drawing
@click.option(
    "--slo",
    "spec",
    metavar="SPEC",
    help="Limits such as 99=20ms, or a file: the largest load that meets them.",
)
@click.option(
    "--offered",
    type=Real(0, min_open=True),
    metavar="RATE",
    help="How many machines carry this load?",
)
@click.option(
    "--spare",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Machines that may fail at once.",
)
@click.option(
    "--percentiles",
    metavar="LIST",
    default="50,90,99,99.9",
    show_default=True,
    help="Which percentiles.",
)
@confident
@printing
def command(
    given: Inputs,
    out: Path | None,
    spec: str | None,
    offered: float | None,
    spare: int,
    percentiles: str,
    confidence: float,
    style: str,
) -> None:
    """Set latency against load: one file per run, each at another rate.

    Where a file does not say its rate, write it in front: 5000=run.txt. A load passes where all of its confidence
    interval is within the limit; nothing is said beyond the loads that were measured.

    \b
    latencykit load 'rate-*.txt' --slo 99=20ms,max=1s -o load.png
    latencykit load 1000=a.hlog 2000=b.hlog --slo 99=20ms --offered 50000 --spare 1
    """
    from latencykit.analysis.capacity import load_curve
    from latencykit.errors import InvalidArgumentError
    from latencykit.views.text import load_record, load_text, load_words, machines_for

    slo, wanted = None if spec is None else slo_of(spec), numbers(percentiles)
    if offered is not None and slo is None:
        raise InvalidArgumentError(
            "--offered needs --slo: what one machine carries depends on what it has to keep to"
        )
    runs = runs_of(given)
    for name, data in (
        runs.items()
        if slo is not None and any(limit.statistic != "failed" for limit in slo.limits)
        else ()
    ):
        need_unit(name, data.run)
    curve = load_curve(runs, slo, confidence)
    machines = None if offered is None else machines_for(curve, offered, spare)
    with progress("measuring load"):
        record = load_record(curve, wanted, confidence, machines)
    if out is not None:
        from latencykit.plot.load_chart import load_curve as chart

        picture(
            chart,
            curve,
            out,
            given.files,
            spec,
            percentiles=wanted,
            confidence=confidence,
            unit=given.out_unit,
        )
    if style == "json":
        print_json(record)
    else:
        click.echo(load_text(record, style, given.out_unit))
        say_units({name: data.run for name, data in runs.items()}, style)
    for text in load_words(curve, machines):
        click.echo(text) if style in ("table", "markdown") else note(text)
