"""``latencykit explain``."""

from __future__ import annotations

from pathlib import Path

import click

from latencykit.cli import options
from latencykit.cli.inputs import load
from latencykit.cli.output import print_assumed_units, print_json, print_text, write_chart


@click.command("explain", cls=options.Command)
@options.inputs()
@click.option(
    "--above",
    metavar="P",
    help="Requests above it are slow: a percentile, or a latency such as 200ms; by default the "
    "highest of p99, p95 and p90 at which something stands out.",
)
@options.list_option(
    "--by", "attributes", help="Columns to look at, such as endpoint,host; all without it."
)
@click.option(
    "--events",
    multiple=True,
    type=click.Path(readable=False),
    metavar="FILE",
    help="Events to compare with stalls: GC logs, journals, tables of times; FILE@+1h shifts its "
    "clock (repeatable).",
)
@options.chart_option
@options.format_option
def command(
    given: options.Inputs,
    above: str | None,
    attributes: str | None,
    events: tuple[str, ...],
    out: Path | None,
    style: str,
) -> None:
    """Find what slow requests have in common, and what happened then.

    Compares the columns of slow requests with those of the others, block of time by block of time.
    Names an incident first, if most slow requests fall into a short time. --from and --to choose a
    span, which is explained against the rest of the run.

    \b
    latencykit explain access.log --above p99 --by endpoint,host -o why.png
    latencykit explain calls.csv --above 200ms --from 60 --to 120
    latencykit explain run.hlog --events gc.log
    """
    from latencykit.analysis.explain import explain
    from latencykit.io.events import read_events
    from latencykit.views.explanation import explanation_record, explanation_text

    read = [read_events(path) for path in events]
    columns = None if attributes is None else options.names_in(attributes)
    between = None
    if given.selection.windowed:
        between = given.selection.begin or "-inf", given.selection.end or "inf"
    # All requests of each input together, whatever their operation, with all columns.
    selection = {"columns": True, "together": True, "totals": False, "begin": None, "end": None}
    loaded = load(given.selecting(**selection))
    with options.progress("comparing"):
        explanations = {
            entry.name: explain(entry.data, above, columns, between, read) for entry in loaded
        }
    if out is not None:
        from latencykit.plot.explain_chart import explanation

        name, *others = explanations
        if others:
            options.note(f"the chart shows {name}; choose another with --series or --tag")
        tall = bool(events) and len(explanations[name].attributes) > 0
        write_chart(
            explanation, explanations[name], out, given.files, *events,
            size=(1000.0, 960.0 if tall else 640.0), name=name, unit=given.out_unit,
        )  # fmt: skip
    records = [explanation_record(name, result) for name, result in explanations.items()]
    if style == "json":
        print_json({"schema_version": 1, "series": records})
        return
    print_assumed_units({entry.name: entry.data.run for entry in loaded}, style)
    print_text(explanation_text(records, style, given.out_unit), style)
    for text in dict.fromkeys(text for result in explanations.values() for text in result.notes):
        options.note(text)
