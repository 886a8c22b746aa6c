"""``latencykit convert``."""

from __future__ import annotations

import shutil
import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from latencykit.cli.inputs import load, without_aggregates
from latencykit.cli.options import OUTPUT_FILE, Command, Inputs, format_option, inputs, list_option
from latencykit.cli.output import atomic, print_assumed_units, print_written


@click.command("convert", cls=Command)
@inputs(nargs=1)
@click.argument("out", type=OUTPUT_FILE)
@click.option("--ticks", type=click.IntRange(1), help="Rows per half distance in .hgrm (5).")
@list_option("--percentiles", help="Percentiles of every interval, in .csv.")
@click.option("--csv", "as_csv", is_flag=True, help="Write .hgrm in its CSV form.")
@format_option
def command(
    given: Inputs, out: Path, ticks: int | None, percentiles: str | None, as_csv: bool, style: str
) -> None:
    """Convert a file to another format, by OUT's suffix: .hlog .hgrm .csv .json .parquet.

    - is standard output: JSON, which keeps everything, or CSV with --format csv.

    \b
    latencykit convert run.hlog run.hgrm
    latencykit convert run.hlog run.csv --percentiles 50,99,99.9
    latencykit convert run.hlog - | jq .
    """
    from latencykit.core.histogram_log import HistogramLog, expect
    from latencykit.io.writing import checked_suffix, write_series

    printed = str(out) == "-"
    if not printed:
        checked_suffix(out)  # before anything is read
    loaded = without_aggregates(load(given.selecting(totals=False)))
    for entry in loaded:
        if isinstance(entry.data, HistogramLog):
            expect(entry.data, keep=False)
    runs = {entry.name: entry.data.run for entry in loaded}
    with ExitStack() as stack:
        if printed:
            folder = stack.enter_context(TemporaryDirectory())
            temporary = Path(folder, "out.csv" if style == "csv" else "out.json")
        else:
            temporary = stack.enter_context(atomic(out, given.files))
        write_series(
            {entry.name: entry.data for entry in loaded},
            temporary,
            ticks=ticks,
            percentiles=percentiles,
            csv=as_csv or None,
            out_unit=given.out_unit,
        )
        if printed:
            print_assumed_units(runs, "json")  # beside the output
            with temporary.open("rb") as file:
                shutil.copyfileobj(file, sys.stdout.buffer)
            return
    print_assumed_units(runs)
    print_written({"output": str(out)}, style, f"wrote {out}")
