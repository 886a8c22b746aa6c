"""``latencykit summary``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from latencykit.cli.common import Input, Inputs, inputs, load, numbers, print_json, printing, progress, without_aggregates

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["command"]

_DEFAULT = "50,75,90,95,99,99.9,99.99,99.999,100"


@click.command("summary")
@inputs()
@click.option("--percentiles", default=_DEFAULT, show_default=True, help="Which percentiles.")
@click.option("--trim", "trims", multiple=True, metavar="SPEC", help="Trimmed statistics: tm95, 'TM(:99%)', 'PR(:300ms)', IQM.")
@click.option("--merge", is_flag=True, help="One series of all, in place of one each.")
@click.option("--interval", metavar="D", help="One row an interval of this length, such as 10s.")
@click.option("--confidence", default=0.95, show_default=True, help="Of the intervals around percentiles.")
@printing
def command(
    given: Inputs, percentiles: str, trims: tuple[str, ...], merge: bool, interval: str | None, confidence: float, style: str
) -> None:
    """Print the key numbers of every series, and how far the sample supports them.

    \b
    latencykit summary run.hlog
    latencykit summary 'host*.hlog' --merge --percentiles 50,99,99.99
    latencykit summary run.hlog --interval 10s --format csv
    """
    from latencykit.report.summaries import intervals_text, summary_text

    wanted = numbers(percentiles)
    loaded = load(given, counted=interval is None)
    if merge:
        loaded = [_merged(loaded)]
    with progress("counting"):
        records = [_record(one, interval, percentiles=wanted, confidence=confidence, trims=trims) for one in loaded]
    if style == "json":
        print_json({"schema_version": 1, "series": records})
    else:
        click.echo((intervals_text if interval else summary_text)(records, style, given.out_unit))


def _merged(loaded: Sequence[Input]) -> Input:
    from latencykit.merging import merge

    return Input("all", merge([one.rung for one in without_aggregates(loaded)]), loaded[0].path)


def _record(one: Input, interval: str | None, **asked: Any) -> dict[str, Any]:
    """One series, and its intervals where they are asked for."""
    from latencykit.report.record import in_nanoseconds, interval_records, series_record

    rung = in_nanoseconds(one.rung)
    if interval is None:
        return series_record(one.name, rung, **asked)
    log = rung.to_log(interval) if hasattr(rung, "to_log") else _timeless(one)
    totals, series = log.totals_fold(), log.series_fold([p for p in asked["percentiles"] if p < 100])
    log.scan(totals, series)
    record = series_record(one.name, log, histogram=log.histogram_of(totals), **asked)
    return record | {"intervals": interval_records(log.series_of(series))}


def _timeless(one: Input) -> Any:
    from latencykit.errors import NotHeldError

    raise NotHeldError(f"{one.name}: knows no time, so it has no intervals; a log or samples with start times would")
