"""``latencykit merge``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from latencykit._text import without_secrets
from latencykit.cli.inputs import load, time_bins_of_all, warn_duplicate_files, without_aggregates
from latencykit.cli.options import OUTPUT_FILE, Command, Inputs, format_option, inputs, note
from latencykit.cli.output import atomic, print_assumed_units, print_written
from latencykit.errors import IncompatibleDataError, InvalidArgumentError
from latencykit.units import interval_seconds


@click.command("merge", cls=Command)
@inputs()
@click.option(
    "-o",
    "--output",
    "out",
    required=True,
    type=OUTPUT_FILE,
    help="File to write: .hlog, .json or .parquet.",
)
@click.option(
    "--align",
    type=click.Choice(["absolute", "relative"]),
    default="absolute",
    help="Align by clock time, or by the time since each log began.",
)
@click.option(
    "--interval", metavar="SECONDS", help="Merge intervals up to this length, such as 10s."
)
@click.option("--force", is_flag=True, help="Merge files whose assumed units seem to differ.")
@click.option(
    "--tag-by-file", is_flag=True, help="Tag every line with its file's name (or NAME= label)."
)
@format_option
def command(
    given: Inputs,
    out: Path,
    align: str,
    interval: str | None,
    force: bool,
    tag_by_file: bool,
    style: str,
) -> None:
    """Merge logs, requests and histograms into one log, sorted by time; tags are kept.

    Requests become intervals of a second, and a histogram one interval of its run's length. In
    .json and .parquet, requests stay requests, and histograms become one.

    \b
    latencykit merge 'host*.hlog' -o all.hlog
    latencykit merge a.hlog b.hlog -o both.hlog --align relative --interval 10s
    """
    from latencykit.analysis.compare import unit_doubts
    from latencykit.core import is_summary
    from latencykit.core.addition import merge
    from latencykit.core.histogram_log import HistogramLog
    from latencykit.io.hlog import as_log
    from latencykit.io.parts import for_transfer
    from latencykit.io.writing import write_series

    if out.suffix.lower() not in (".hlog", ".json", ".parquet"):
        raise InvalidArgumentError(
            f"{out.name}: a merged log is written as .hlog, .json or .parquet; `latencykit "
            "convert` makes other formats of it"
        )
    if given.out_unit is not None:
        raise InvalidArgumentError(
            "--out-unit does not apply to a log, which is written in nanoseconds"
        )
    warn_duplicate_files(given.files)
    if given.dask is not None and interval is not None and not tag_by_file:
        # Only sums are transferred.
        merged: Any = time_bins_of_all(given, interval_seconds(interval), align).log
    else:
        loaded = without_aggregates(
            load(given.selecting(totals=False), for_transfer if given.dask is not None else None)
        )
        parts = []
        over_time = out.suffix.lower() == ".hlog" or interval is not None or tag_by_file
        over_time |= any(isinstance(entry.data, HistogramLog) for entry in loaded)
        for entry in loaded:
            if not over_time and not is_summary(entry.data):
                parts.append(entry.data)
                continue
            try:
                log = as_log(entry.data)
            except InvalidArgumentError as error:
                reason = str(error).partition(";")[0]
                hint = "merge takes logs, requests and HDR histograms"
                raise InvalidArgumentError(f"{entry.path}: {reason}; {hint}") from None
            named = entry.label or Path(without_secrets(entry.path)).stem
            tag = named if tag_by_file else None
            if tag is None and len(log.run.tags) == 1 and not isinstance(entry.data, HistogramLog):
                tag = log.run.tags[0]
            parts.append(log.with_tag(tag))
        if any(entry.data.run.unit_note is not None for entry in loaded):
            totals = [entry.data.histogram() for entry in loaded]
            medians = [total.percentile(50) if total.count else math.nan for total in totals]
            for text in unit_doubts([entry.data.run for entry in loaded], medians):
                if not force:
                    raise IncompatibleDataError(f"{text}, or merge them with --force")
                note(text)
        merged = merge(parts, align)
        merged = merged if interval is None else merged.resample(interval)
    with atomic(out, given.files) as temporary:
        write_series({out.stem: merged}, temporary)
    count, intervals = merged.histogram().requests, 0
    text = f"wrote {out}: {count:,} values"
    if isinstance(merged, HistogramLog):
        intervals = len(merged)
        text = f"wrote {out}: {intervals:,} intervals, {count:,} values"
    print_assumed_units({out.name: merged.run})
    print_written({"output": str(out), "intervals": intervals, "count": count}, style, text)
