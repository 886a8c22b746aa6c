"""``latencykit summary``."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from latencykit.cli.common import (
    Inputs,
    confident,
    inputs,
    load,
    numbers,
    print_json,
    printing,
    say_units,
    warn_duplicate_files,
)

if TYPE_CHECKING:
    from latencykit.core.run import Run

__all__ = ["command"]

_DEFAULT = "50,75,90,95,99,99.9,99.99,99.999,100"


@click.command("summary")
@inputs()
@click.option(
    "--percentiles",
    metavar="LIST",
    help=f"Which percentiles.  [default: those that the tool reported, else {_DEFAULT}]",
)
@click.option(
    "--trim",
    "trims",
    multiple=True,
    metavar="SPEC",
    help="Trimmed statistics: tm95, 'TM(:99%)', 'PR(:300ms)', IQM.",
)
@click.option("--merge", is_flag=True, help="One series of all, in place of one each.")
@click.option("--interval", metavar="D", help="One row an interval of this length, such as 10s.")
@confident
@printing
def command(
    given: Inputs,
    percentiles: str | None,
    trims: tuple[str, ...],
    merge: bool,
    interval: str | None,
    confidence: float,
    style: str,
) -> None:
    """Print the key numbers of every series, and how far the sample supports them.

    \b
    latencykit summary run.hlog
    latencykit summary 'host*.hlog' --merge --percentiles 50,99,99.99
    latencykit summary run.hlog --interval 10s --format csv
    """
    from latencykit.views.text import intervals_text, summary_text

    asked = {
        "percentiles": None if percentiles is None else numbers(percentiles),
        "confidence": confidence,
        "trims": trims,
    }
    if merge:
        warn_duplicate_files(given.files)
        records = [_merged(given, interval, asked)]
        runs = {record["name"]: record.pop("_run") for record in records}
    else:
        ask, whole = functools.partial(_record, interval=interval, asked=asked), interval is None
        loaded = load(given, ask, counted=whole, again=whole)
        records = [one.data.record | {"name": one.name} for one in loaded]
        runs = {one.name: one.data.run for one in loaded}
    if style == "json":
        print_json({"schema_version": 1, "series": records})
    else:
        click.echo((intervals_text if interval else summary_text)(records, style, given.out_unit))
        say_units(runs, style)


@dataclass(frozen=True)
class _Record:
    """A series as the command prints it, and its run."""

    record: dict[str, Any]
    run: Run


def _record(data: Any, interval: str | None, asked: dict[str, Any]) -> _Record:
    """One series, and its intervals where they are asked for; made where the file is read."""
    from latencykit.core.histogram import STANDARD_PERCENTILES
    from latencykit.views.record import in_nanoseconds, interval_records, series_record

    name = data.run.source or ""
    data = in_nanoseconds(data)
    if interval is None:
        return _Record(series_record(name, data, **asked), data.run)
    log = data.to_log(interval) if hasattr(data, "to_log") else _timeless(name)
    percentiles = [p for p in asked["percentiles"] or STANDARD_PERCENTILES if p < 100]
    log.expect(percentiles)
    record, series = series_record(name, log, **asked), log.series(percentiles)
    return _Record(
        record | {"intervals": interval_records(series, asked["confidence"])},
        data.run,
    )


def _merged(given: Inputs, interval: str | None, asked: dict[str, Any]) -> dict[str, Any]:
    """All series as one; where that is too much to look at every interval of, the files are summed where they are read."""
    from latencykit.cli.common import merged_whole, slots_of_all, totals_of_all
    from latencykit.distributed.results import width_of

    whole = merged_whole(given)
    if whole is None and interval is not None:
        whole = slots_of_all(given, width_of(interval)).log()
    if whole is not None:
        return _record(whole.with_run(tags=()), interval, asked).record | {
            "name": "all",
            "_run": whole.run,
        }
    totals = totals_of_all(given)
    return _of_totals(totals, asked) | {"_run": totals.histogram.run}


def _of_totals(totals: Any, asked: dict[str, Any]) -> dict[str, Any]:
    """Sums of files: percentiles without what only a look at every interval would tell."""
    from latencykit.views.record import series_record

    record = series_record("all", totals.histogram, **asked) | {"rung": totals.level, "tags": []}
    if totals.level != "log":
        return record
    said = "so many intervals are read once: no confidence and no events; cut them with --from and --to"
    rows = [row | {"low": None, "high": None} for row in record["percentiles"]]
    return record | {"percentiles": rows, "notes": [*record["notes"], said]}


def _timeless(name: str) -> Any:
    from latencykit.errors import DataNotAvailableError

    raise DataNotAvailableError(
        f"{name}: knows no time, so it has no intervals; a log or samples with start times would"
    )
