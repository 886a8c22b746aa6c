"""``latencykit diagnose``."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from latencykit.cli.common import (
    Inputs,
    Real,
    drawing,
    inputs,
    load,
    note,
    picture,
    print_json,
    printing,
    progress,
    say_units,
    with_unit,
    without_aggregates,
)

if TYPE_CHECKING:
    from pathlib import Path

    from latencykit.analysis.omission import Diagnosis

__all__ = ["command"]


@click.command("diagnose")
@inputs()
@click.option(
    "--expected-interval",
    metavar="D",
    callback=with_unit,
    help="Between two requests of one connection, such as 10ms.",
)
@click.option(
    "--rate", type=Real(0, min_open=True), help="Requests per second, all connections together."
)
@click.option("--connections", type=click.IntRange(1), help="Connections that sent requests.")
@click.option(
    "--duration", metavar="D", help="Length of the run, such as 60s, where the file does not say."
)
@drawing
@click.option("--fail", is_flag=True, help="Exit with 1 where requests were omitted.")
@printing
def command(
    given: Inputs, out: Path | None, fail: bool, style: str, expected_interval: str | None, rate: float | None,
    connections: int | None, duration: str | None,
) -> int:  # fmt: skip
    """Tell whether a measurement left out the requests that its stalls would have hit, and what is true.

    \b
    latencykit diagnose run.hlog --rate 500
    latencykit diagnose hey.csv --connections 4 -o diagnosis.png --fail
    """
    known = (expected_interval, rate, connections, duration)
    drawn_here = out is not None and given.dask is None
    ask = None if drawn_here else functools.partial(_diagnosed, known=known, drawn=out is not None)
    loaded = load(given, ask, again=True)
    with progress("diagnosing"):
        found = {
            one.name: _diagnosed(one.data, known) if drawn_here else one.data for one in loaded
        }
    if out is not None:
        shown = [one.name for one in without_aggregates(loaded)]
        _draw({name: found[name] for name in shown}, out, given)
    _print(found, style, given.out_unit)
    return int(fail and any(one.verdict == "omits" for one in found.values()))


def _diagnosed(data: Any, known: tuple[Any, ...], drawn: bool | None = None) -> Diagnosis:
    """Diagnose a series where it is read; its course over time comes along, in memory, only if it will be drawn."""
    from latencykit.analysis.omission import diagnose
    from latencykit.distributed.results import TRAVELS, carried

    found = diagnose(data, *known)
    return (
        found
        if drawn is None
        else replace(found, timed=carried(found.timed, TRAVELS) if drawn else None)
    )


def _draw(found: dict[str, Diagnosis], target: Path, given: Inputs) -> None:
    from latencykit import plot

    if len(found) > 1:
        note(f"the chart shows {next(iter(found))}; choose another with --series or --tag")
    name, diagnosis = next(iter(found.items()))
    size = (1000.0, 560.0 if diagnosis.timed is None else 780.0)
    picture(
        plot.diagnosis, diagnosis, target, given.files, size=size, name=name, unit=given.out_unit
    )


def _print(found: dict[str, Diagnosis], style: str, out_unit: str | None) -> None:
    from latencykit.views.text import diagnosis_record, diagnosis_text

    records: list[dict[str, Any]] = [diagnosis_record(name, one) for name, one in found.items()]
    if style == "json":
        print_json({"schema_version": 1, "series": records})
    else:
        click.echo(diagnosis_text(records, style, out_unit))
        if style == "markdown":  # the paragraphs say it themselves
            say_units({name: one.run for name, one in found.items()}, style)
