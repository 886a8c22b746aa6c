"""``latencykit ctrlz``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from latencykit.cli.common import Real, drawing, note, picture, print_json, printing

if TYPE_CHECKING:
    from pathlib import Path

    from latencykit.ctrlz.run import Calibration

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
    help="How long the server is stopped.",
)
@click.option(
    "--duration", metavar="D", default="12s", show_default=True, help="How long the run is."
)
@click.option(
    "--rate",
    type=Real(0, min_open=True),
    default=200,
    show_default=True,
    help="Requests per second, of all connections.",
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
    help="When it freezes.",
)
@click.option("--partial", metavar="1/4", help="Freeze a part of several server processes.")
@click.option(
    "--repeat",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Runs; what most of them say counts.",
)
@click.option(
    "--service-time",
    metavar="D",
    default="1ms",
    show_default=True,
    help="Of the test's own server.",
)
@click.option(
    "--server", metavar="CMD", help="Starts a server of yours on {port}, instead of the test's own."
)
@click.option(
    "--pid", type=int, help="A server of yours that runs already; it will be stopped and continued."
)
@click.option("--url", help="Where --server or --pid listens.")
@click.option(
    "--series", metavar="NAME", help="Which series of the output, where there are several."
)
@click.option(
    "--format-in", metavar="NAME", help="Format of the output, where it is not recognised."
)
@click.option("--yes", is_flag=True, help="Freeze --pid without asking.")
@drawing
@printing
def command(
    load_generator: tuple[str, ...],
    out: Path | None,
    style: str,
    yes: bool,
    format_in: str | None,
    **test: Any,
) -> int:
    """Freeze a server under a load generator and tell whether its report shows the stall that users felt.

    {url} {host} {port} {rate} {rate_per_connection} {connections} {duration} {requests} {out} in CMD are filled in.
    Without --server or --pid the test runs its own server (HTTP, and RESP for redis-benchmark) on this machine.
    Exit status 1 for every verdict but honest and unknown.

    \b
    latencykit ctrlz -- hey -z {duration}s -c {connections} -q {rate_per_connection} {url}
    latencykit ctrlz --stall 4s -- wrk -t2 -c{connections} -d{duration}s --latency {url}
    latencykit ctrlz --repeat 3 -- redis-benchmark -h {host} -p {port} -c {connections} -n 20000 -t get
    """
    from latencykit.ctrlz.run import ctrlz

    if test["pid"] is not None and not yes:
        click.confirm(
            f"freeze process {test['pid']} for {test['stall']}, and all who wait for it?",
            abort=True,
            err=True,
        )
    result = ctrlz(load_generator, format=format_in, progress=note, **test)
    if out is not None:
        from latencykit.plot.diagnosis_chart import calibration

        picture(calibration, result, out, ())
    if style == "json":
        print_json(result.record())
    else:
        click.echo(_told(result, style))
    return 0 if result.verdict in ("honest", "unknown") else 1


def _told(result: Calibration, style: str) -> str:
    """The verdict, why, and the rows."""
    from latencykit.units import format_duration, format_percentile
    from latencykit.views.tables import styled

    cells = [
        [
            "max" if row.percentile == 100 else f"p{format_percentile(row.percentile)}",
            format_duration(row.reported),
            "unknown" if row.truth is None else format_duration(row.truth),
            "" if row.ratio is None else f"{row.ratio:.2f}",
        ]
        for row in result.rows
    ]
    bare = [[row.percentile, row.reported, row.truth, row.ratio] for row in result.rows]
    table = styled(style, ["percentile", "reported", "truth", "ratio"], cells, bare)
    if style == "csv":
        return table
    why = "\n".join(f"  {reason}" for reason in result.reasons)
    return f"{result.tool or 'load generator'}: {result.verdict} ({result.model} loop)\n{why}\n\n{table}"
