"""``latencykit merge``."""

from __future__ import annotations

import math
from pathlib import Path

import click

from latencykit._text import without_secrets
from latencykit.cli.inputs import load, time_bins_of_all, warn_duplicate_files, without_aggregates
from latencykit.cli.options import Command, Inputs, format_option, inputs, note
from latencykit.cli.output import atomic, print_assumed_units, print_written
from latencykit.errors import InvalidArgumentError
from latencykit.units import interval_seconds


@click.command("merge", cls=Command)
@inputs()
@click.option(
    "-o",
    "--output",
    "out",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Log to write (.hlog).",
)
@click.option(
    "--align",
    type=click.Choice(["absolute", "relative"]),
    default="absolute",
    show_default=True,
    help="Align by clock time, or by the time since each log began.",
)
@click.option("--interval", metavar="D", help="Merge intervals up to this length, such as 10s.")
@click.option(
    "--tag-by-file", is_flag=True, help="Tag every line with its file's name (or NAME= label)."
)
@format_option
def command(
    given: Inputs, out: Path, align: str, interval: str | None, tag_by_file: bool, style: str
) -> None:
    """Merge logs, requests and histograms into one log, sorted by time; tags are kept.

    Requests become intervals of a second, and a histogram one interval of its run's length.

    \b
    latencykit merge 'host*.hlog' -o all.hlog
    latencykit merge a.hlog b.hlog -o both.hlog --align relative --interval 10s
    """
    from latencykit.analysis.compare import unit_doubts
    from latencykit.core.histogram_log import HistogramLog, merge_logs
    from latencykit.io.hlog import as_log, write_hlog
    from latencykit.io.part_results import carried

    if out.suffix.lower() != ".hlog":
        raise InvalidArgumentError(
            f"{out.name}: a merged log is written as .hlog; `latencykit convert` makes other "
            "formats of it"
        )
    if given.out_unit is not None:
        raise InvalidArgumentError(
            "--out-unit does not apply to a log, which is written in nanoseconds"
        )
    warn_duplicate_files(given.files)
    if given.dask is not None and interval is not None and not tag_by_file:
        # Only sums are transferred.
        merged = time_bins_of_all(given, interval_seconds(interval), align).log
    else:
        loaded = without_aggregates(
            load(given, carried if given.dask is not None else None, totals=False)
        )
        logs = []
        for entry in loaded:
            try:
                log = as_log(entry.data)
            except InvalidArgumentError as error:
                raise InvalidArgumentError(f"{entry.path}: {error}") from None
            tag = Path(without_secrets(entry.path)).stem if tag_by_file else None
            if tag is None and len(log.run.tags) == 1 and not isinstance(entry.data, HistogramLog):
                tag = log.run.tags[0]
            logs.append(log.with_tag(tag))
        if any(entry.data.run.unit_note is not None for entry in loaded):
            totals = [entry.data.histogram() for entry in loaded]
            medians = [total.percentile(50) if total.count else math.nan for total in totals]
            for text in unit_doubts([entry.data.run for entry in loaded], medians):
                note(text)
        merged = merge_logs(logs, align)
        merged = merged if interval is None else merged.resample(interval)
    with atomic(out, given.files) as temporary:
        write_hlog(merged, temporary)
    count = merged.histogram().count
    record = {"output": str(out), "intervals": len(merged), "count": count}
    print_assumed_units({out.name: merged.run})
    print_written(record, style, f"wrote {out}: {len(merged):,} intervals, {count:,} values")
