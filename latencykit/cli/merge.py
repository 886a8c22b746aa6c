"""``latencykit merge``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from latencykit.cli.common import (
    Inputs,
    atomic,
    inputs,
    load,
    note,
    print_written,
    printing,
    progress,
    warn_duplicate_files,
    without_aggregates,
)
from latencykit.errors import InvalidArgumentError
from latencykit.units import without_secrets

if TYPE_CHECKING:
    from latencykit.core.histogram_log import HistogramLog

__all__ = ["command"]


@click.command("merge")
@inputs()
@click.option(
    "-o",
    "--output",
    "out",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The log to write (.hlog).",
)
@click.option(
    "--align",
    type=click.Choice(["absolute", "relative"]),
    default="absolute",
    show_default=True,
    help="By the clock, or by the time since each log began.",
)
@click.option("--interval", metavar="D", help="Add intervals up to this length, such as 10s.")
@click.option(
    "--tag-by-file", is_flag=True, help="Tag every line with its file's name (or NAME= label)."
)
@printing
def command(
    given: Inputs, out: Path, align: str, interval: str | None, tag_by_file: bool, style: str
) -> None:
    """Join the lines of several logs into one, sorted by time; tags are kept.

    \b
    latencykit merge 'host*.hlog' -o all.hlog
    latencykit merge a.hlog b.hlog -o both.hlog --align relative --interval 10s
    """
    from latencykit.io.hlog import write_hlog

    if out.suffix.lower() != ".hlog":
        raise InvalidArgumentError(
            f"{out.name}: a merged log is written as .hlog; `latencykit convert` makes other formats of it"
        )
    if given.out_unit is not None:
        raise InvalidArgumentError(
            "--out-unit has no place in a log, which is written in nanoseconds"
        )
    warn_duplicate_files(given.files)
    merged = _merged(given, align, interval, tag_by_file=tag_by_file)
    with atomic(out, given.files) as temporary, progress(f"writing {out.name}"):
        write_hlog(merged, temporary)
    count = merged.histogram().count
    record = {"output": str(out), "intervals": len(merged), "count": count}
    print_written(record, style, f"wrote {out}: {len(merged):,} intervals, {count:,} values")


def _merged(given: Inputs, align: str, interval: str | None, *, tag_by_file: bool) -> HistogramLog:
    from latencykit.analysis.compare import unit_doubts
    from latencykit.cli.common import slots_of_all
    from latencykit.core.histogram_log import HistogramLog, merge_logs
    from latencykit.distributed.results import carried, width_of

    if given.dask is not None and interval is not None and not tag_by_file:
        return slots_of_all(given, width_of(interval), align).log()  # only the sums travel
    loaded = without_aggregates(
        load(given, carried if given.dask is not None else None, again=True)
    )
    if any(one.data.run.unit_note is not None for one in loaded):
        middles = [
            histogram.percentile(50) if (histogram := one.data.histogram()).count else math.nan
            for one in loaded
        ]
        for text in unit_doubts([one.data.run for one in loaded], middles):
            note(text)
    for one in loaded:
        if not isinstance(one.data, HistogramLog):
            raise InvalidArgumentError(
                f"{one.path}: only interval logs can be merged into a log; `summary --merge` adds histograms up"
            )
    merged = merge_logs(
        [
            one.data.with_tag(Path(without_secrets(one.path)).stem if tag_by_file else None)
            for one in loaded
        ],
        align,
    )
    return merged if interval is None else merged.resample(interval)
