"""``latencykit ctrlz``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from latencykit._text import prose
from latencykit.cli.options import chart_option, format_option, freeze_options, note, output_options
from latencykit.cli.output import print_json, print_text, write_chart


@click.command("ctrlz")
@click.argument(
    "load_generator", metavar="-- CMD…", nargs=-1, required=True, type=click.Path(readable=False)
)
@freeze_options
@click.option(
    "--at",
    type=click.Choice(["middle", "end"]),
    default="middle",
    help="When the server is frozen.",
)
@click.option(
    "--repeat", type=click.IntRange(1), default=1, help="Number of runs; the majority decides."
)
@click.option(
    "--service-time",
    metavar="SECONDS",
    default="1ms",
    help="Service time of the test's own server.",
)
@click.option(
    "--server", metavar="CMD", help="Command that starts a server on {port}; it is frozen instead."
)
@click.option(
    "--pid",
    type=click.IntRange(1),
    help="PID of a running server, which is paused and resumed (SIGSTOP, SIGCONT), with its child "
    "processes and all that listen on the port of --url.",
)
@click.option(
    "--through",
    metavar="HOST:PORT",
    help="Address of a running server of any protocol: requests pass through the test's own proxy, "
    "which is frozen in its place. The best choice for servers of your own.",
)
@click.option(
    "--url",
    help="Address of --server or --pid, or for --through its protocol and path: http://, redis://, "
    "postgres://, grpc://, tcp:// …",
)
@output_options
@click.option(
    "--check", is_flag=True, help="Run for two seconds without a freeze: is the output read?"
)
@click.option("--yes", is_flag=True, help="Do not ask: freeze --pid, load a remote --through.")
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
    """Freeze a server under a load generator, and test whether its report shows the stall.

    {url} {host} {port} {rate} {rate_per_connection} {connections} {duration} {requests} {out}
    {out.json} {out.csv} in CMD are filled in. Without --through, --server or --pid the
    test runs its own server (HTTP, and RESP for redis-benchmark) on this machine.
    Exit status 1 for every verdict but honest and unknown.

    \b
    latencykit ctrlz -- hey -z {duration}s -c {connections} -q {rate_per_connection} {url}
    latencykit ctrlz --stall 4s -- wrk -t2 -c{connections} -d{duration}s --latency {url}
    latencykit ctrlz --through 127.0.0.1:8080 -- wrk -c{connections} -d{duration}s --latency {url}
    latencykit ctrlz --repeat 3 -- redis-benchmark -h {host} -p {port} -n 20000 -t get
    """
    from latencykit.ctrlz.run import ctrlz
    from latencykit.errors import InvalidArgumentError
    from latencykit.views.ctrlz import ctrlz_record, ctrlz_text, ctrlz_words

    # Ask before a process of the user's is frozen, or another machine gets load.
    if not yes and test["pid"] is not None:
        from latencykit.ctrlz.freeze import program

        named = f"{program(test['pid'])} (process {test['pid']}) and its child processes"
        if not _agreed(f"freeze {named} for {test['stall']}?"):
            raise InvalidArgumentError("nothing was frozen; --yes agrees in advance")
    if test["through"] is not None:
        from latencykit.ctrlz.targets import ProxyTarget

        proxy = ProxyTarget(test["through"], test["url"], remote=True)
        question = f"{proxy.host} is not this machine; do its owners agree to the load?"
        if not (yes or proxy.local or _agreed(question)):
            raise InvalidArgumentError("nothing was sent; --yes agrees in advance")
        test["remote"] = True
    result = ctrlz(load_generator, format=format_in, progress=note, **test)
    if out is not None:
        from latencykit.plot.diagnosis_chart import ctrlz as chart

        write_chart(chart, result, out, ())
    if style == "json":
        print_json(ctrlz_record(result))
    else:
        if style != "csv":
            words = ctrlz_words(result, verdict=not test["check"])
            print_text("\n".join(prose(word, style) for word in words) + "\n", style)
        print_text(ctrlz_text(result, style), style)
    return 0 if result.verdict in ("honest", "unknown") else 1


def _agreed(question: str) -> bool:
    """Ask; where nobody is there to answer, the answer is no."""
    try:
        return click.confirm(question, err=True)
    except click.Abort as stopped:
        if isinstance(stopped.__context__, EOFError):
            return False
        raise
