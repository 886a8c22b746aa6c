"""``latencykit check``."""

from __future__ import annotations

from pathlib import Path

import click

from latencykit.cli.common import load
from latencykit.cli.options import (
    Command,
    Inputs,
    confidence_option,
    format_option,
    inputs,
    need_unit,
    note,
    slo_of,
)
from latencykit.cli.output import atomic, print_assumed_units, print_json, progress

__all__ = ["command"]


@click.command("check", cls=Command)
@inputs()
@click.option(
    "--slo",
    "spec",
    required=True,
    metavar="SPEC",
    help="Limits such as 99.9=20ms,max=1s,failed=0.1%, or a file.",
)
@click.option("--strict", is_flag=True, help="Treat undecided thresholds as failed.")
@click.option(
    "--junit",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="OUT.xml",
    help="Also write the results as JUnit XML.",
)
@confidence_option
@format_option
def command(
    given: Inputs, spec: str, strict: bool, junit: Path | None, confidence: float, style: str
) -> int:
    """Check latencies against limits, in a pipeline: exit status 0 met or unknown, 1 missed.

    A limit is met if the entire confidence interval is within it, and missed if the entire
    interval is beyond it. Failed requests count as slower than any limit. A file with the SLO may
    also contain gnuplot steps or the XML of HistogramLogAnalyzer.

    \b
    latencykit check run.hlog --unit ns --slo 99.9=20ms,max=1s,failed=0.1%
    latencykit check run.hlog --unit ns --slo slo.txt --strict --junit slo.xml
    """
    from latencykit.analysis.slo import passed
    from latencykit.views.record import in_nanoseconds
    from latencykit.views.text import check_record, check_text, junit_xml

    slo = slo_of(spec)
    in_time = any(limit.statistic != "failed" and not limit.bare for limit in slo.limits)
    with progress("checking"):
        loaded = load(given)
        checked = {}
        for one in loaded:
            if in_time:
                need_unit(one.name, one.data.run)
            checked[one.name] = slo.check(in_nanoseconds(one.data), confidence)
    good = passed((row for rows in checked.values() for row in rows), strict=strict)
    if junit is not None:
        with atomic(junit, given.files, spec) as temporary:
            temporary.write_text(junit_xml(checked, strict=strict), encoding="utf-8")
    if style == "json":
        notes = [f"{one.name}: {text}" for one in loaded for text in one.data.run.notes]
        print_json(check_record(checked, good) | {"notes": notes})
    else:
        click.echo(check_text(checked, style, given.out_unit))
        print_assumed_units({one.name: one.data.run for one in loaded}, style)
    if good is None:
        note("some limits are undecided; --strict treats them as failed")
    return int(good is False)
