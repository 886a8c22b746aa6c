"""``latencykit fanout``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from latencykit.cli.common import (
    Inputs,
    counts,
    drawing,
    inputs,
    load,
    note,
    numbers,
    picture,
    print_json,
    printing,
    progress,
    say_units,
    with_buckets,
)

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["command"]


@click.command("fanout")
@inputs()
@drawing
@click.option(
    "-n",
    "--calls",
    metavar="LIST",
    default="1,10,100",
    show_default=True,
    help="Calls that a user waits for.",
)
@click.option(
    "--independent",
    is_flag=True,
    help="Calls know nothing of each other, even where the log knows better.",
)
@click.option(
    "--quorum", type=click.IntRange(1), metavar="K", help="Users wait for the K fastest calls only."
)
@click.option("--series-of", metavar="LIST", help="So many calls one after the other instead.")
@click.option(
    "--hedge-after",
    metavar="P",
    help="A second call is sent after this percentile of one, such as 95.",
)
@click.option(
    "--percentiles",
    metavar="LIST",
    default="50,90,99,99.9",
    show_default=True,
    help="Which percentiles of the users.",
)
@printing
def command(
    given: Inputs, out: Path | None, calls: str, independent: bool, quorum: int | None, series_of: str | None,
    hedge_after: str | None, percentiles: str, style: str,
) -> None:  # fmt: skip
    """Tell what users see who wait for the slowest of n calls.

    Of a log, the calls of one user fall into one interval: in a stall all are slow together. In brackets: more than so
    many requests can support.

    \b
    latencykit fanout run.hlog -n 1,10,100 -o fanout.png
    latencykit fanout run.hlog -n 50 --quorum 45
    latencykit fanout run.hlog -n 10 --hedge-after 95
    """
    from latencykit.errors import InvalidArgumentError
    from latencykit.units import parse_percentile
    from latencykit.views.text import fan_out_record, fan_out_text, fan_out_words

    asked = counts(calls if series_of is None else series_of)
    options = {
        "quorum": quorum,
        "hedge": None if hedge_after is None else parse_percentile(hedge_after),
    }
    if series_of is not None and (
        independent or any(value is not None for value in options.values())
    ):
        raise InvalidArgumentError(
            "--series-of adds up independent calls; it takes no --independent, --quorum or --hedge-after"
        )
    wanted, records, said, loaded = numbers(percentiles), [], [], load(given, again=True)
    for one in with_buckets(loaded):
        with progress("drawing calls"):
            found, bounds = _answers(one.data, asked, series_of is not None, independent, options)
        run = one.data.run
        record = fan_out_record(one.name, found, bounds, wanted) | {
            "unit_from": run.unit_from,
            "notes": list(run.notes),
        }
        records.append(record)
        said += fan_out_words(one.name, found)
    if out is not None:
        from latencykit.plot.fan_out_chart import fan_out

        if series_of is not None or any(value is not None for value in options.values()):
            raise InvalidArgumentError(
                "the chart shows the slowest of n calls; it takes no --quorum, --hedge-after or --series-of"
            )
        data = {one.name: one.data for one in loaded}
        picture(
            fan_out, data, out, given.files, n=asked, independent=independent, unit=given.out_unit
        )
    if style == "json":
        print_json({"schema_version": 1, "series": records})
    else:
        click.echo(fan_out_text(records, style, given.out_unit))
        say_units({one.name: one.data.run for one in loaded}, style)
    for text in said:
        note(text)


def _answers(
    data: Any, calls: list[int], in_a_row: bool, independent: bool, options: dict[str, Any]
) -> tuple[Any, Any]:
    """Each number of calls, and for a mixture the same with independent calls."""
    from latencykit.analysis.fan_out import fan_outs, sequential

    if in_a_row:
        return [sequential(data, n) for n in calls], None
    found = fan_outs(data, calls, independent=independent, **options)
    mixed = any(answer.model == "mixture" for answer in found)
    return found, fan_outs(data, calls, independent=True, **options) if mixed else None
