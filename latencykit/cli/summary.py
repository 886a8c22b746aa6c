"""``latencykit summary``."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import click

from latencykit._records import record
from latencykit.cli import options
from latencykit.cli.inputs import (
    load,
    merged_whole,
    time_bins_of_all,
    totals_of_all,
    warn_duplicate_files,
)
from latencykit.cli.output import print_assumed_units, print_json, print_text
from latencykit.errors import DataNotAvailableError

if TYPE_CHECKING:
    from latencykit.core.run import Run
    from latencykit.views.series import SeriesRecord

_DEFAULT = "50,75,90,95,99,99.9,99.99,99.999,100"


@click.command("summary", cls=options.Command)
@options.inputs(split=True)
@options.list_option(
    "--percentiles",
    help=f"Percentiles to show, or all that the tool reported.  [default: of {_DEFAULT} those "
    "that fit the terminal]",
)
@click.option(
    "--trim",
    "trims",
    multiple=True,
    metavar="SPEC",
    help="Trimmed statistics: tm95, 'TM(:99%)', IQM.",
)
@click.option(
    "--interval", metavar="SECONDS", help="One row per interval of this length, such as 10s."
)
@options.confidence_option
@options.format_option
def command(
    given: options.Inputs,
    percentiles: str | None,
    trims: tuple[str, ...],
    interval: str | None,
    confidence: float,
    style: str,
) -> None:
    """Print the key numbers of every series, and how far the sample supports them.

    (1.2 ms) in brackets is uncertain: few requests, one slow period, drift or unequal parts decide
    the value. 1–5 ms: the source gives only this range. ≥ 6 s: some requests took longer. tm99 is
    the mean without the lowest and the highest 1 % of the requests.

    \b
    latencykit summary run.hlog
    latencykit summary 'host*.hlog' --merge --percentiles 50,99,99.99
    latencykit summary run.hlog --interval 10s --format csv
    """
    from latencykit.views.intervals import intervals_text
    from latencykit.views.summary import summary_text
    from latencykit.views.tables import MOST_ROWS

    chosen = {
        "percentiles": None if percentiles in (None, "all") else options.numbers(percentiles),
        "confidence": confidence,
        "trims": trims,
        "brief": style != "json",
        "footnotes": style in ("json", "table"),
    }
    records: list[SeriesRecord]
    left_out = 0
    if given.merge:
        warn_duplicate_files(given.files)
        merged = _merged(given, interval, chosen)
        records, runs = [merged.record], {"all": merged.run}
    else:
        ask = functools.partial(_record, interval=interval, chosen=chosen)
        once = interval is None
        notes = style != "table" or not once
        most = math.inf if notes or given.notes else MOST_ROWS
        loaded = load(given.selecting(counted=once), ask, notes=notes, most=most)
        made = [entry for entry in loaded if isinstance(entry.data, _Record)]
        records = [entry.data.record | {"name": entry.name} for entry in made]
        left_out = len(loaded) - len(made)
        runs = {entry.name: entry.data.run for entry in loaded}
    print_assumed_units(runs, style)
    if style == "json":
        print_json({"schema_version": 1, "series": records})
    elif interval:
        print_text(intervals_text(records, style, given.out_unit), style)
    else:
        text = summary_text(
            records,
            style,
            given.out_unit,
            percentiles=percentiles is None,
            notes=given.notes,
            left_out=left_out,
            trims=list(dict.fromkeys(trims)),
        )
        print_text(text, style)


@record()
class _Record:
    """A series as the command prints it, and its run."""

    record: SeriesRecord
    run: Run


def _record(data: Any, interval: str | None, chosen: dict[str, Any]) -> _Record:
    """One series, and its intervals if they are asked for; made where the file is read."""
    from latencykit.core.histogram import STANDARD_PERCENTILES
    from latencykit.core.histogram_log import HistogramLog, expect, interval_series
    from latencykit.core.samples import requests_by_interval
    from latencykit.views.intervals import interval_records
    from latencykit.views.series import series_record
    from latencykit.views.values import in_nanoseconds

    name = data.run.source or ""
    data = in_nanoseconds(data)
    if interval is None:
        if isinstance(data, HistogramLog):
            expect(data, keep=False)
        return _Record(series_record(name, data, **chosen), data.run)
    if not hasattr(data, "to_log"):
        raise DataNotAvailableError(
            f"{name}: contains no times, so it has no intervals; use a log, or samples with start "
            "times"
        )
    percentiles = [p for p in chosen["percentiles"] or STANDARD_PERCENTILES if p < 100]
    if isinstance(data, HistogramLog):
        together = data.with_tag("") if len(data.tags) > 1 else data
        series = interval_series(together.resample(interval), percentiles)
    else:
        series = requests_by_interval(data, interval, percentiles)
    intervals = interval_records(series, chosen["confidence"])
    return _Record(series_record(name, data, **chosen) | {"intervals": intervals}, data.run)


def _merged(given: options.Inputs, interval: str | None, chosen: dict[str, Any]) -> _Record:
    """All series as one; large files are summed where they are read."""
    from latencykit.units import interval_seconds
    from latencykit.views.series import series_record

    data = merged_whole(given)
    if data is None and interval is not None:
        data = time_bins_of_all(given, interval_seconds(interval)).log
    if data is not None:
        merged = _record(data.with_run(tags=()), interval, chosen)
        return _Record(merged.record | {"name": "all"}, data.run)
    totals = totals_of_all(given)
    record = series_record("all", totals.histogram, **chosen) | {"rung": totals.level, "tags": []}
    if totals.level == "log":
        # The sums lack what only a look at every interval shows.
        reason = (
            "the intervals were read only once: no confidence intervals and no events; select a "
            "part with --from and --to"
        )
        record["percentiles"] = [row | {"low": None, "high": None} for row in record["percentiles"]]
        record["notes"] = [*record["notes"], reason]
    return _Record(record, totals.histogram.run)
