"""``latencykit fanout``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from latencykit.cli import options
from latencykit.cli.inputs import load
from latencykit.cli.output import print_result, write_chart
from latencykit.errors import InvalidArgumentError

if TYPE_CHECKING:
    from latencykit.analysis.fan_out import FanOut
    from latencykit.views.fan_out import FanOutRecord


@click.command("fanout", cls=options.Command)
@options.inputs(split=True)
@options.chart_option
@options.list_option(
    "-n", "--calls", default=["1,10,100"], help="Numbers of calls that a user waits for."
)
@click.option(
    "--independent",
    is_flag=True,
    help="Treat calls as independent, even if the log shows that they are not.",
)
@click.option(
    "--quorum", type=click.IntRange(1), metavar="K", help="Users wait for the K fastest calls only."
)
@options.list_option(
    "--sequential",
    "--series-of",
    "sequential",
    help="Numbers of calls made one after the other instead.",
)
@click.option(
    "--hedge-after",
    metavar="P",
    help="Send a second call after this percentile of one, such as 95.",
)
@options.percentiles_option
@options.format_option
def command(
    given: options.Inputs,
    out: Path | None,
    calls: str,
    independent: bool,
    quorum: int | None,
    sequential: str | None,
    hedge_after: str | None,
    percentiles: str,
    style: str,
) -> None:
    """Estimate tail latency under fan-out: users wait for the slowest of n calls.

    In a log, the calls of one user fall into one interval: in a stall all are slow together. In
    brackets: uncertain (few requests, one slow period, drift, or the parts of the run differ).
    1–5 ms: the source gives only this range.

    \b
    latencykit fanout run.hlog -n 1,10,100 -o fanout.png
    latencykit fanout run.hlog -n 50 --quorum 45
    latencykit fanout run.hlog -n 10 --hedge-after 95
    """
    from latencykit.analysis.fan_out import fan_out as slowest_of
    from latencykit.analysis.fan_out import sequential as in_sequence
    from latencykit.core.summary import Summary
    from latencykit.units import parse_percentile
    from latencykit.views.fan_out import fan_out_record, fan_out_text, fan_out_words
    from latencykit.views.tables import MOST_ROWS

    numbers_of_calls = options.counts(calls if sequential is None else sequential)
    hedge = None if hedge_after is None else parse_percentile(hedge_after)
    strategy = quorum is not None or hedge is not None
    if sequential is not None and (independent or strategy):
        raise InvalidArgumentError(
            "--sequential adds up calls one after the other; it takes no --independent, --quorum "
            "or --hedge-after"
        )
    shown, loaded = options.numbers(percentiles), load(given)
    chosen: dict[str, Any] = {"quorum": quorum, "hedge": hedge}
    records: list[FanOutRecord] = []
    sentences: list[str] = []
    shown_series = [entry for entry in loaded if not isinstance(entry.data, Summary)] or loaded
    for entry in loaded if len(shown_series) < len(loaded) else ():
        if isinstance(entry.data, Summary):
            options.note(
                f"{entry.name}: left out: it contains reported statistics only, no distribution"
            )
    most = MOST_ROWS if style == "table" and not given.notes else len(shown_series)
    for entry in shown_series[:most]:
        data = entry.data if len(loaded) == 1 else entry.data.with_run()  # frees what it caches
        answers: Sequence[FanOut]
        bounds: Sequence[FanOut] | None = None  # of mixtures, as if calls were independent
        with options.progress("drawing calls"):
            if sequential is not None:
                answers = [in_sequence(data, n) for n in numbers_of_calls]
            else:
                answers = slowest_of(data, numbers_of_calls, independent=independent, **chosen)
                if any(answer.model == "mixture" for answer in answers):
                    bounds = slowest_of(data, numbers_of_calls, independent=True, **chosen)
        records.append(fan_out_record(entry.name, entry.data.run, answers, bounds, shown))
        lines = fan_out_words(entry.name, answers)
        sentences += lines if given.notes else lines[: not sentences]
    if out is not None:
        if sequential is not None or strategy:
            raise InvalidArgumentError(
                "the chart shows the slowest of n calls; it takes no --quorum, --hedge-after or "
                "--sequential"
            )
        from latencykit.plot.fan_out_chart import fan_out

        drawn = {entry.name: entry.data for entry in loaded}
        look = {"n": numbers_of_calls, "independent": independent, "unit": given.out_unit}
        write_chart(fan_out, drawn, out, given.files, **look)
    print_result(
        style,
        lambda: {"schema_version": 1, "series": records},
        lambda: fan_out_text(
            records, style, given.out_unit, left_out=len(shown_series) - len(records)
        ),
        {entry.name: entry.data.run for entry in loaded},
    )
    for text in sentences:
        options.note(text)
