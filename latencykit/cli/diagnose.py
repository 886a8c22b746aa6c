"""``latencykit diagnose``."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from latencykit.cli.inputs import load, without_aggregates
from latencykit.cli.options import (
    Command,
    Inputs,
    Real,
    chart_option,
    format_option,
    inputs,
    note,
    with_unit,
)
from latencykit.cli.output import print_assumed_units, print_json, progress, write_chart

if TYPE_CHECKING:
    from pathlib import Path

    from latencykit.analysis.omission import Diagnosis

__all__ = ["command"]


@click.command("diagnose", cls=Command)
@inputs()
@click.option(
    "--expected-interval",
    metavar="D",
    callback=with_unit,
    help="Time between two requests of one connection, such as 10ms.",
)
@click.option(
    "--rate", type=Real(0, min_open=True), help="Requests per second, over all connections."
)
@click.option("--connections", type=click.IntRange(1), help="Connections that sent requests.")
@click.option(
    "--duration", metavar="D", help="Length of the run, such as 60s, if the file does not state it."
)
@chart_option
@click.option("--fail", is_flag=True, help="Exit with 1 if coordinated omission is detected.")
@format_option
def command(
    given: Inputs,
    out: Path | None,
    fail: bool,
    style: str,
    expected_interval: str | None,
    rate: float | None,
    connections: int | None,
    duration: str | None,
) -> int:
    """Detect coordinated omission and estimate the corrected distribution.

    \b
    latencykit diagnose run.hlog --rate 500
    latencykit diagnose hey.csv --connections 4 -o diagnosis.png --fail
    """
    from latencykit.views.text import diagnosis_record, diagnosis_text

    known = (expected_interval, rate, connections, duration)
    local = out is not None and given.dask is None  # a chart needs all data here anyway
    ask = None if local else functools.partial(_diagnosed, known=known, drawn=out is not None)
    loaded = load(given, ask, again=True)
    with progress("diagnosing"):
        diagnoses = {
            entry.name: _diagnosed(entry.data, known) if local else entry.data for entry in loaded
        }
    if out is not None:
        from latencykit import plot

        name, *others = (entry.name for entry in without_aggregates(loaded))
        if others:
            note(f"the chart shows {name}; choose another with --series or --tag")
        write_chart(
            plot.diagnosis,
            diagnoses[name],
            out,
            given.files,
            size=(1000.0, 560.0 if diagnoses[name].timed is None else 780.0),
            name=name,
            unit=given.out_unit,
        )
        note(f"wrote {out}")
    records = [diagnosis_record(name, diagnosis) for name, diagnosis in diagnoses.items()]
    if style == "json":
        print_json({"schema_version": 1, "series": records})
    else:
        click.echo(diagnosis_text(records, style, given.out_unit))
        if style == "markdown":  # the paragraphs of the other text include it
            print_assumed_units(
                {name: diagnosis.run for name, diagnosis in diagnoses.items()}, style
            )
    return int(fail and any(diagnosis.verdict == "omits" for diagnosis in diagnoses.values()))


def _diagnosed(data: Any, known: tuple[Any, ...], drawn: bool | None = None) -> Diagnosis:
    """Diagnose a series where it is read; the time series is returned only for a chart."""
    from latencykit.analysis.omission import diagnose
    from latencykit.distributed.results import TRAVELS, carried

    diagnosis = diagnose(data, *known)
    if drawn is None:
        return diagnosis
    return replace(diagnosis, timed=carried(diagnosis.timed, TRAVELS) if drawn else None)
