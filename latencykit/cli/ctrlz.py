"""``latencykit ctrlz``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from latencykit.cli.options import Real, chart_option, format_option, note
from latencykit.cli.output import print_json, write_chart

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["command"]


@click.command("ctrlz")
@click.argument(
    "load_generator", metavar="-- CMD…", nargs=-1, required=True, type=click.UNPROCESSED
)
@click.option(
    "--stall",
    metavar="D",
    default="4s",
    show_default=True,
    help="How long the server is paused.",
)
@click.option("--duration", metavar="D", default="12s", show_default=True, help="Length of a run.")
@click.option(
    "--rate",
    type=Real(0, min_open=True),
    default=200,
    show_default=True,
    help="Requests per second, over all connections.",
)
@click.option(
    "--connections",
    type=click.IntRange(1),
    default=4,
    show_default=True,
    help="Connections that send requests.",
)
@click.option(
    "--at",
    type=click.Choice(["middle", "end"]),
    default="middle",
    show_default=True,
    help="When the server is paused.",
)
@click.option("--partial", metavar="1/4", help="Pause this part of several server processes.")
@click.option(
    "--repeat",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Number of runs; the verdict of the majority counts.",
)
@click.option(
    "--service-time",
    metavar="D",
    default="1ms",
    show_default=True,
    help="Service time of the built-in server.",
)
@click.option(
    "--server",
    metavar="CMD",
    help="Command that starts your server on {port}, in place of the built-in one.",
)
@click.option(
    "--pid",
    type=int,
    help="PID of a running server, which is paused and resumed (SIGSTOP, SIGCONT).",
)
@click.option("--url", help="URL of the server of --server or --pid.")
@click.option("--series", metavar="NAME", help="Series of the output, if there are several.")
@click.option("--format-in", metavar="NAME", help="Format of the output; detected by default.")
@click.option("--yes", is_flag=True, help="Pause --pid without asking.")
@chart_option
@format_option
def command(
    load_generator: tuple[str, ...],
    out: Path | None,
    style: str,
    yes: bool,
    format_in: str | None,
    **test: Any,
) -> int:
    """Freeze a server to test whether the load generator reports the stall.

    {url} {host} {port} {rate} {rate_per_connection} {connections} {duration} {requests} {out} in
    CMD are replaced by their values. Without --server or --pid the test runs a built-in server
    (HTTP, and RESP for redis-benchmark) on this machine. Exit status 1 for every verdict except
    honest and unknown.

    \b
    latencykit ctrlz -- hey -z {duration}s -c {connections} -q {rate_per_connection} {url}
    latencykit ctrlz --stall 4s -- wrk -t2 -c{connections} -d{duration}s --latency {url}
    latencykit ctrlz --repeat 3 -- redis-benchmark -p {port} -c {connections} -n 20000 -t get
    """
    from latencykit.ctrlz.run import ctrlz
    from latencykit.units import format_duration
    from latencykit.views.tables import Table
    from latencykit.views.text import percentile_name

    if test["pid"] is not None and not yes:
        click.confirm(
            f"pause process {test['pid']} for {test['stall']}, and all its clients?",
            abort=True,
            err=True,
        )
    result = ctrlz(load_generator, format=format_in, progress=note, **test)
    if out is not None:
        from latencykit.plot.diagnosis_chart import calibration

        write_chart(calibration, result, out, ())
        note(f"wrote {out}")
    if style == "json":
        print_json(result.record())
    else:
        table = Table(style)
        for row in result.rows:
            table.add(
                {
                    "percentile": table.either(row.percentile, percentile_name(row.percentile)),
                    "reported": table.either(row.reported, format_duration(row.reported)),
                    "truth": table.either(row.truth, format_duration(row.truth)),
                    "ratio": table.either(row.ratio, f"{row.ratio:.2f}"),
                }
            )
        if style != "csv":
            tool = result.tool or "load generator"
            click.echo(f"{tool}: {result.verdict} ({result.model} loop)")
            click.echo("\n".join(f"  {reason}" for reason in result.reasons) + "\n")
        click.echo(table.render())
    return 0 if result.verdict in ("honest", "unknown") else 1
