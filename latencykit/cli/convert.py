"""``latencykit convert``."""

from __future__ import annotations

from pathlib import Path

import click

from latencykit.cli.inputs import load, without_aggregates
from latencykit.cli.options import OUTPUT_FILE, Command, Inputs, format_option, inputs, list_option
from latencykit.cli.output import atomic, print_assumed_units, print_written


@click.command("convert", cls=Command)
@inputs(nargs=1)
@click.argument("out", type=OUTPUT_FILE)
@click.option("--ticks", type=click.IntRange(1), default=5, help="Rows per half distance in .hgrm.")
@list_option("--percentiles", help="Percentiles of every interval, in .csv.")
@click.option("--csv", "as_csv", is_flag=True, help="Write .hgrm in its CSV form.")
@format_option
def command(
    given: Inputs, out: Path, ticks: int, percentiles: str | None, as_csv: bool, style: str
) -> None:
    """Convert a file to another format, by OUT's suffix: .hlog .hgrm .csv .json .parquet.

    \b
    latencykit convert run.hlog run.hgrm
    latencykit convert run.hlog run.csv --percentiles 50,99,99.9
    """
    from latencykit.core.histogram_log import HistogramLog, expect
    from latencykit.io.writing import checked_suffix, write_series

    checked_suffix(out)  # before anything is read
    loaded = without_aggregates(load(given.selecting(totals=False)))
    for entry in loaded:
        if isinstance(entry.data, HistogramLog):
            expect(entry.data, keep=False)
    with atomic(out, given.files) as temporary:
        write_series(
            {entry.name: entry.data for entry in loaded},
            temporary,
            ticks=ticks,
            percentiles=percentiles,
            style="csv" if as_csv else "text",
            out_unit=given.out_unit,
        )
    print_assumed_units({entry.name: entry.data.run for entry in loaded})
    print_written({"output": str(out)}, style, f"wrote {out}")
