"""``latencykit load``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from latencykit.cli.check import slo_of
from latencykit.cli.common import Inputs, expand, inputs, load, note, numbers, print_json, printing, progress

__all__ = ["command"]


@click.command("load")
@inputs()
@click.option("--slo", "spec", metavar="SPEC", help="Limits such as 99=20ms, or a file: the largest load that meets them.")
@click.option("--offered", type=click.FloatRange(0, min_open=True), metavar="RATE", help="How many machines carry this load?")
@click.option("--spare", type=click.IntRange(0), default=0, show_default=True, help="Machines that may fail at once.")
@click.option("--percentiles", default="50,90,99,99.9", show_default=True, help="Which percentiles.")
@click.option("--confidence", type=click.FloatRange(0.5, 0.9999), default=0.95, show_default=True, help="Of the intervals.")
@printing
def command(
    given: Inputs, spec: str | None, offered: float | None, spare: int, percentiles: str, confidence: float, style: str
) -> None:
    """Set latency against load: one file a run, each at another rate.

    Where a file does not say its rate, write it in front: 5000=run.txt. A load passes where all of its confidence
    interval is within the limit; nothing is said beyond the loads that were measured.

    \b
    latencykit load 'rate-*.txt' --slo 99=20ms,max=1s
    latencykit load 1000=a.hlog 2000=b.hlog --slo 99=20ms --offered 50000 --spare 1
    """
    from latencykit.errors import UsageError
    from latencykit.loading import load_curve
    from latencykit.report.loads import load_record, load_text, load_words, machines_for

    slo, wanted = None if spec is None else slo_of(spec), numbers(percentiles)
    if offered is not None and slo is None:
        raise UsageError("--offered needs --slo: what one machine carries depends on what it has to keep to")
    curve = load_curve(_runs(given), slo, confidence)
    machines = None if offered is None else machines_for(curve, offered, spare)
    with progress("measuring load"):
        record = load_record(curve, wanted, confidence, machines)
    if style == "json":
        print_json(record)
    else:
        click.echo(load_text(record, style, given.out_unit))
    for text in load_words(curve, machines):
        click.echo(text) if style in ("table", "markdown") else note(text)


def _runs(given: Inputs) -> dict[str, Any]:
    """Name → one series a file: the only one, or the one that sums up the others."""
    from latencykit.errors import UsageError

    found: list[tuple[str, str, Any]] = []
    for label, path in expand(given.files):
        series = load(replace(given, files=(path,)))
        chosen = [one for one in series if one.rung.run.aggregate] or series
        if len(chosen) > 1:
            names = ", ".join(one.name for one in chosen[:6])
            raise UsageError(f"{path}: holds several series ({names}); choose one with --series or --tag")
        found.append((label or chosen[0].name, path, chosen[0].rung))
    names_used = [name for name, _, _ in found]
    return {name if names_used.count(name) == 1 else path: rung for name, path, rung in found}
