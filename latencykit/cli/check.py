"""``latencykit check``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from latencykit.cli.inputs import load
from latencykit.cli.options import (
    Command,
    Inputs,
    confidence_option,
    format_option,
    inputs,
    need_unit,
    note,
    share,
    slo_of,
)
from latencykit.cli.output import atomic, print_assumed_units, print_json, progress
from latencykit.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from latencykit.analysis.slo import SLO, SLORow
    from latencykit.cli.inputs import Input

__all__ = ["command"]


@click.command("check", cls=Command)
@inputs()
@click.option(
    "--slo",
    "spec",
    required=True,
    metavar="SPEC",
    help="Limits such as 99.9=20ms,max=1s,failed=0.1%, 'ttft 99=500ms, tpot 95=50ms', or a file.",
)
@click.option(
    "--joint",
    metavar="SHARE",
    help="Also check that this share of the requests meets all limits, such as 95%.",
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
    given: Inputs,
    spec: str,
    joint: str | None,
    strict: bool,
    junit: Path | None,
    confidence: float,
    style: str,
) -> int:
    """Check latencies against limits, in a pipeline: exit status 0 met or unknown, 1 missed.

    A limit is met if the entire confidence interval is within it, and missed if the entire
    interval is beyond it. Failed requests count as slower than any limit. A file with the SLO may
    also contain gnuplot steps or the XML of HistogramLogAnalyzer. A limit that names a series
    applies to that series only; --joint judges goodput, the share of the requests whose
    latencies are all within the limits.

    \b
    latencykit check run.hlog --unit ns --slo 99.9=20ms,max=1s,failed=0.1%
    latencykit check run.hlog --unit ns --slo slo.txt --strict --junit slo.xml
    latencykit check profile_export.jsonl --slo 'ttft 99=500ms, tpot 95=50ms' --joint 95%
    """
    from latencykit.analysis.slo import passed
    from latencykit.views.text import check_record, check_text, junit_xml

    slo, least = slo_of(spec), None if joint is None else share(joint)
    checked: dict[str, list[SLORow]] = {}
    with progress("checking"):
        loaded = load(given)
        files: list[dict[str, Input]] = []
        for entry in loaded:  # a file may be named twice
            last = files[-1] if files else {}
            if not last or entry.series in last or next(iter(last.values())).path != entry.path:
                files.append({})
            files[-1][entry.series] = entry
        for series in files:
            checked |= _checked(series, slo, least, confidence)
    good = passed((row for rows in checked.values() for row in rows), strict=strict)
    if junit is not None:
        with atomic(junit, given.files, spec) as temporary:
            temporary.write_text(junit_xml(checked, strict=strict), encoding="utf-8")
    if style == "json":
        notes = [f"{entry.name}: {text}" for entry in loaded for text in entry.data.run.notes]
        print_json(check_record(checked, good) | {"notes": notes})
    else:
        click.echo(check_text(checked, style, given.out_unit))
        print_assumed_units({entry.name: entry.data.run for entry in loaded}, style)
    if good is None:
        note("some limits are undecided; --strict treats them as failed")
    return int(good is False)


def _checked(
    series: Mapping[str, Input], slo: SLO, least: float | None, confidence: float
) -> dict[str, list[SLORow]]:
    """Check the series of one file; the joint result is named after the file."""
    from latencykit.analysis.slo import joint_share
    from latencykit.views.record import in_nanoseconds

    path = next(iter(series.values())).path
    source = Path(path).name if path != "-" else "stdin"
    try:
        limits = slo.of_series(series)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{source}: {error}") from None
    checked: dict[str, list[SLORow]] = {}
    together: dict[str, tuple[Any, SLO]] = {}
    for name, own in limits.items():
        entry = series[name]
        if any(limit.statistic != "failed" and not limit.bare for limit in own.limits):
            need_unit(entry.name, entry.data.run)
        data = in_nanoseconds(entry.data)
        if least is not None:
            together[name] = data, own
        elif len(limits) > 1:
            data = data.with_run()  # a view: what it caches is freed with it
        checked[entry.name] = own.check(data, confidence)
    if least is not None:
        if len(checked) == 1:
            source = next(iter(checked))
        checked.setdefault(source, []).append(joint_share(together, least, confidence))
    return checked
