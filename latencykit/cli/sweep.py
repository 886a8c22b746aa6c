"""``latencykit sweep``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from latencykit.cli import options
from latencykit.cli.output import print_result, print_sentences, write_chart


@click.command("sweep")
@click.argument(
    "load_generator", metavar="-- CMD…", nargs=-1, required=True, type=click.Path(readable=False)
)
@options.slo_option(
    required=True, help="Limits such as 99=20ms,failed=0.1%, or a file (repeatable)."
)
@click.option(
    "--from",
    "start",
    type=options.Real(0, min_open=True),
    metavar="RATE",
    default=100,
    help="Lowest load, requests per second.",
)
@click.option(
    "--to",
    "stop",
    type=options.Real(0, min_open=True),
    metavar="RATE",
    default=50_000,
    help="Highest load, requests per second.",
)
@click.option(
    "--duration",
    metavar="SECONDS",
    default="20s",
    help="Length of a usual run. The longest run takes eight times as long.",
)
@click.option("--budget", metavar="SECONDS", help="Time for all runs together, such as 10m.")
@click.option(
    "--runs",
    type=click.IntRange(3, 1000),
    default=12,
    help="Maximum number of runs, the warm-up included.",
)
@click.option(
    "--precision",
    metavar="SHARE",
    default="10%",
    help="Stop when the ends of the bracket differ by less.",
)
@options.confidence_option
@click.option("--url", help="Address for {url}, {host} and {port}.")
@click.option(
    "--connections",
    type=click.IntRange(1),
    help="Number for {connections} and {rate_per_connection}.",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    help="New folder for the outputs of all runs; sweep-DATE-TIME by default.",
)
@click.option(
    "--accept-omission",
    is_flag=True,
    help="Use a load generator that is known to omit requests that a stall delays.",
)
@options.output_options
@options.percentiles_option
@options.chart_option
@options.format_option
def command(
    load_generator: tuple[str, ...],
    specs: tuple[str, ...],
    out: Path | None,
    style: str,
    precision: str,
    percentiles: str,
    format_in: str | None,
    **chosen: Any,
) -> int:
    """Find the highest load that surely meets an SLO, with any load generator.

    The load doubles until the SLO is missed; then the bracket is narrowed, by longer runs where one
    decides nothing; at last both ends are measured again, the lower one coming from an overload.
    {rate} (per second) {duration} (seconds) {requests} {connections} {rate_per_connection} {url}
    {host} {port} {out} {out.json} {out.csv} in CMD are filled in. CMD must be an open loop, and its
    output one that `latencykit summary` reads. Ctrl+C keeps what was measured; `latencykit load
    FOLDER` reads the outputs again. Exit status 1 if no load meets the SLO.

    \b
    latencykit sweep --slo 99=20ms --url URL -- wrk2 -R {rate} -d {duration} --latency {url}
    latencykit sweep --slo 99=20ms,failed=0.1% --from 100 --to 5000 --budget 10m -o knee.png --
      vegeta attack -rate {rate} -duration {duration}s -targets t.txt -output {out}
    """
    from latencykit.ctrlz.sweep import sweep
    from latencykit.views.load import sweep_record, sweep_text, sweep_words

    shown = options.numbers(percentiles)
    result = sweep(
        load_generator,
        options.slo_of(specs),
        precision=options.share(precision),
        format=format_in,
        progress=options.note,
        **chosen,
    )
    if out is not None and result.curve is not None:
        from latencykit.plot.load_chart import sweep as chart

        write_chart(chart, result, out, (), *specs)
    record = sweep_record(result, shown)
    print_result(style, lambda: record, lambda: sweep_text(record, style))
    print_sentences(sweep_words(result), style)
    options.note(f"outputs: {result.folder}")
    if result.stopped == "interrupted":
        raise KeyboardInterrupt
    return 1 if result.passed is False else 0
