"""``latencykit compare``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from latencykit.cli.common import Inputs, expand, inputs, load, note, numbers, print_json, printing, progress, share

__all__ = ["command"]


@click.command("compare")
@inputs(required=False)
@click.option("--base", multiple=True, metavar="FILE", help="A run of the base side (repeatable, or a glob).")
@click.option("--new", multiple=True, metavar="FILE", help="A run of the new side (repeatable, or a glob).")
@click.option("--run-noise", metavar="3%", help="By how much a statistic differs from run to run (standard deviation).")
@click.option("--fail-if", multiple=True, metavar="COND", help='Exit with 1 if this is surely so: "p99.9 > +5%", "mean > +1ms".')
@click.option("--percentiles", help="Which percentiles; by default those that every run supports.")
@click.option("--margin", default="5%", show_default=True, help="Changes surely within it are called the same.")
@click.option("--confidence", type=click.FloatRange(0.5, 0.9999), default=0.95, show_default=True, help="Of the intervals.")
@printing
def command(
    given: Inputs, base: tuple[str, ...], new: tuple[str, ...], run_noise: str | None, fail_if: tuple[str, ...],
    percentiles: str | None, margin: str, confidence: float, style: str,
) -> int:  # fmt: skip
    """Compare two runs, or several runs a side, percentile by percentile.

    FILES are BASE and NEW. One run a side concludes nothing unless --run-noise says what runs differ by. Exit status 1:
    a --fail-if condition is met; without any, the verdict is worse or mixed.

    \b
    latencykit compare before.hlog after.hlog
    latencykit compare --base 'before*.hlog' --new 'after*.hlog'
    latencykit compare before.hlog after.hlog --run-noise 3% --fail-if 'p99 > +5%'
    """
    from latencykit.comparing import compare
    from latencykit.report.comparisons import comparisons_record, comparisons_text
    from latencykit.stats.conditions import parse_condition

    conditions = [parse_condition(text) for text in fail_if]
    options: dict[str, Any] = {"confidence": confidence, "margin": share(margin), "also": [one.statistic for one in conditions]}
    options["run_noise"] = None if run_noise is None else share(run_noise)
    options["percentiles"] = None if percentiles is None else numbers(percentiles)
    with progress("comparing"):
        found = {name: compare(*sides, **options) for name, sides in _pairs(given, base, new).items()}
    failed = {name: one.failed(conditions) for name, one in found.items()}
    if style == "json":
        print_json(comparisons_record(found, failed))
    else:
        click.echo(comparisons_text(found, style, given.out_unit))
    for name, one in found.items():
        for text in (*one.warnings, *(f"failed: {text}" for text in failed[name])):
            note(f"{name}: {text}" if len(found) > 1 else text)
    worse = any(one.verdict in ("worse", "mixed") for one in found.values())
    return int(any(failed.values()) if conditions else worse)


def _pairs(given: Inputs, base: tuple[str, ...], new: tuple[str, ...]) -> dict[str, tuple[list[Any], list[Any]]]:
    """Series → the runs of either side; files of one series each are a pair whatever it is called."""
    from latencykit.errors import UsageError

    if bool(given.files) == bool(base or new) or (given.files and len(given.files) != 2) or bool(base) != bool(new):
        raise UsageError("a comparison takes two FILES, BASE and NEW, or several runs a side with --base and --new")
    chosen = ([given.files[0]], [given.files[1]]) if given.files else (list(base), list(new))
    sides = [[load(replace(given, files=(file,))) for _, file in expand(files)] for files in chosen]
    if all(len(run) == 1 for side in sides for run in side):
        return {"": ([run[0].rung for run in sides[0]], [run[0].rung for run in sides[1]])}
    held = [{one.name: one.rung for one in run} for side in sides for run in side]
    common = [name for name in held[0] if all(name in run for run in held)]
    if not common:
        raise UsageError(f"the files share no series: {' and '.join(', '.join(run) for run in held[:2])}; choose with --series")
    here = len(sides[0])
    return {name: ([run[name] for run in held[:here]], [run[name] for run in held[here:]]) for name in common}
