"""``latencykit diagnose``."""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from latencykit.cli import options
from latencykit.cli.inputs import load, merged_whole
from latencykit.cli.output import print_result, write_chart
from latencykit.errors import InputTooLargeError

if TYPE_CHECKING:
    from latencykit.analysis.diagnosis import Diagnosis


@click.command("diagnose", cls=options.Command)
@options.inputs(split=True)
@options.interval_option
@options.sender_options
@click.option(
    "--duration",
    metavar="SECONDS",
    help="Length of the run, such as 60s, if the file does not state it.",
)
@options.chart_option
@click.option("--verbose", is_flag=True, help="Print the evidence for each explanation.")
@click.option("--fail", is_flag=True, help="Exit with 1 if coordinated omission is detected.")
@options.format_option
def command(
    given: options.Inputs, out: Path | None, fail: bool, verbose: bool, style: str, **known: Any
) -> int:
    """Detect coordinated omission and estimate the corrected distribution.

    The verdict is omits, clean (a stall whose requests are all recorded), no stall (none that could
    hide requests), service times (of a loop that waits for replies and has no schedule), or
    unknown, with the explanations that remain.

    \b
    latencykit diagnose run.hlog --rate 500
    latencykit diagnose 'host*.hlog' --merge
    latencykit diagnose hey.csv --connections 4 -o diagnosis.png --fail
    """
    from latencykit._limits import current_limits
    from latencykit.io.parts import NotAsked
    from latencykit.views.diagnosis import diagnosis_record, diagnosis_text

    local = out is not None and given.dask is None  # a chart needs all data here anyway
    ask = None if local else functools.partial(_diagnosed, known=known, drawn=out is not None)
    every = given.notes or verbose or fail or style != "table"
    loaded = (
        [] if given.merge else load(given, ask, most=math.inf if every else current_limits().series)
    )
    with options.progress("diagnosing"):
        diagnoses = {
            entry.name: _diagnosed(entry.data, known) if local else entry.data
            for entry in loaded
            if not isinstance(entry.data, NotAsked)
        }
        if given.merge:
            together = merged_whole(given)
            if together is None:
                raise InputTooLargeError(
                    "the files are too large to diagnose together; add them up first: "
                    "latencykit merge"
                )
            diagnoses = {"all": _diagnosed(together.with_run(tags=()), known)}
    if out is not None:
        name, *others = diagnoses
        if others:
            options.note(f"the chart shows {name}; choose another with --series or --tag")
        from latencykit.plot import diagnosis as chart

        size = (1000.0, 560.0 if diagnoses[name].timed is None else 780.0)
        look = {"size": size, "name": name, "unit": given.out_unit}
        write_chart(chart, diagnoses[name], out, given.files, **look)
    records = [diagnosis_record(name, diagnosis) for name, diagnosis in diagnoses.items()]
    print_result(
        style,
        lambda: {"schema_version": 1, "series": records},
        lambda: diagnosis_text(
            records,
            style,
            given.out_unit,
            every=given.notes,
            verbose=verbose,
            left_out=len(loaded) - len(records) if loaded else 0,
        ),
        {name: diagnosis.run for name, diagnosis in diagnoses.items()},
    )
    return int(fail and any(diagnosis.verdict == "omits" for diagnosis in diagnoses.values()))


def _diagnosed(data: Any, known: dict[str, Any], drawn: bool | None = None) -> Diagnosis:
    """Diagnose a series where it is read; the time series is returned only for a chart."""
    from latencykit.analysis.omission import diagnose

    diagnosis = diagnose(data, **known)
    if drawn is None:
        return diagnosis
    if not drawn and diagnosis.timed is not None:  # an empty one still has its type
        return replace(diagnosis, timed=diagnosis.timed.between(0, 0))
    from latencykit.io.parts import MAX_TRANSFER_BYTES, for_transfer

    return replace(diagnosis, timed=for_transfer(diagnosis.timed, MAX_TRANSFER_BYTES))
