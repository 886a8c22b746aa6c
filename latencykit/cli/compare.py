"""``latencykit compare``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from latencykit.cli.inputs import pairs_of
from latencykit.cli.options import (
    Command,
    Inputs,
    chart_option,
    confidence_option,
    format_option,
    inputs,
    note,
    numbers,
    share,
)
from latencykit.cli.output import print_assumed_units, print_json, progress, write_chart
from latencykit.core.run import UNSTATED
from latencykit.errors import InvalidArgumentError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["command"]


@click.command("compare", cls=Command)
@inputs(required=False)
@chart_option
@click.option(
    "--base", multiple=True, metavar="FILE", help="A run of the base side (repeatable, or a glob)."
)
@click.option(
    "--new", multiple=True, metavar="FILE", help="A run of the new side (repeatable, or a glob)."
)
@click.option(
    "--run-noise",
    metavar="P%",
    help="Standard deviation of a statistic from run to run, such as 3%.",
)
@click.option(
    "--fail-if",
    multiple=True,
    metavar="COND",
    help='Exit with 1 if this holds with confidence: "p99.9 > +5%", "mean > +1ms".',
)
@click.option(
    "--percentiles", metavar="LIST", help="Percentiles; by default those that every run supports."
)
@click.option(
    "--margin",
    metavar="P%",
    default="5%",
    show_default=True,
    help="Changes within this margin, with confidence, count as the same.",
)
@confidence_option
@format_option
def command(
    given: Inputs,
    out: Path | None,
    base: tuple[str, ...],
    new: tuple[str, ...],
    run_noise: str | None,
    fail_if: tuple[str, ...],
    percentiles: str | None,
    margin: str,
    confidence: float,
    style: str,
) -> int:
    """Show which percentiles changed, with confidence.

    FILES are BASE and NEW. One run per side is inconclusive unless --run-noise states how much
    runs differ. Exit status 1: a --fail-if condition is met; without any, the verdict is worse or
    mixed.

    \b
    latencykit compare before.hlog after.hlog -o change.png
    latencykit compare --base 'before*.hlog' --new 'after*.hlog'
    latencykit compare before.hlog after.hlog --run-noise 3% --fail-if 'p99 > +5%'
    """
    from latencykit.analysis.compare import compare, parse_condition
    from latencykit.views.text import comparisons_record, comparisons_text

    conditions = [parse_condition(text) for text in fail_if]
    options: dict[str, Any] = {
        "confidence": confidence,
        "margin": share(margin),
        "also": [condition.statistic for condition in conditions],
        "run_noise": None if run_noise is None else share(run_noise),
        "percentiles": None if percentiles is None else numbers(percentiles),
    }
    pairs = pairs_of(given, base, new)
    with progress("comparing"):
        comparisons = {name: compare(*sides, **options) for name, sides in pairs.items()}
    failed = {name: comparison.failed(conditions) for name, comparison in comparisons.items()}
    if out is not None:
        from latencykit.plot.comparison_chart import compare as chart

        if len(pairs) > 1:
            raise InvalidArgumentError(
                f"the chart shows one series, not {len(pairs)} ({', '.join(pairs)}); choose one "
                "with --series or --tag"
            )
        sides = [side[0] if len(side) == 1 else side for side in next(iter(pairs.values()))]
        files = (*given.files, *base, *new)
        write_chart(chart, sides[0], out, files, new=sides[1], **options)
        note(f"wrote {out}")
    if style == "json":
        print_json(comparisons_record(comparisons, failed))
    else:
        click.echo(comparisons_text(comparisons, style, given.out_unit))
        runs = {
            f"{side} {k + 1}" if len(series) > 1 else side: data.run
            for pair in pairs.values()
            for side, series in zip(("base", "new"), pair, strict=True)
            for k, data in enumerate(series)
        }
        print_assumed_units(runs, style)
    for name, comparison in comparisons.items():
        warnings = [text for text in comparison.warnings if UNSTATED not in text]  # a note of files
        for text in (*warnings, *(f"failed: {text}" for text in failed[name])):
            note(f"{name}: {text}" if len(comparisons) > 1 else text)
    worse = any(comparison.verdict in ("worse", "mixed") for comparison in comparisons.values())
    return int(any(failed.values()) if conditions else worse)
