"""``latencykit compare``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from latencykit.cli.common import (
    Inputs,
    confident,
    drawing,
    inputs,
    note,
    numbers,
    pairs_of,
    picture,
    print_json,
    printing,
    progress,
    say_units,
    share,
)

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["command"]


@click.command("compare")
@inputs(required=False)
@drawing
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
    help='Exit with 1 if this is surely so: "p99.9 > +5%", "mean > +1ms".',
)
@click.option(
    "--percentiles",
    metavar="LIST",
    help="Which percentiles; by default those that every run supports.",
)
@click.option(
    "--margin",
    metavar="P%",
    default="5%",
    show_default=True,
    help="Changes surely within it are called the same.",
)
@confident
@printing
def command(
    given: Inputs, out: Path | None, base: tuple[str, ...], new: tuple[str, ...], run_noise: str | None, fail_if: tuple[str, ...],
    percentiles: str | None, margin: str, confidence: float, style: str,
) -> int:  # fmt: skip
    """Compare two runs, or several runs per side, percentile by percentile.

    FILES are BASE and NEW. One run per side concludes nothing unless --run-noise says what runs differ by. Exit status 1:
    a --fail-if condition is met; without any, the verdict is worse or mixed.

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
        "also": [one.statistic for one in conditions],
    }
    options["run_noise"] = None if run_noise is None else share(run_noise)
    options["percentiles"] = None if percentiles is None else numbers(percentiles)
    pairs = pairs_of(given, base, new)
    with progress("comparing"):
        found = {name: compare(*sides, **options) for name, sides in pairs.items()}
    failed = {name: one.failed(conditions) for name, one in found.items()}
    _draw(pairs, out, (*given.files, *base, *new), options)
    if style == "json":
        print_json(comparisons_record(found, failed))
    else:
        click.echo(comparisons_text(found, style, given.out_unit))
        say_units(
            {
                f"{side} {k + 1}" if len(series) > 1 else side: data.run
                for pair in pairs.values()
                for side, series in zip(("base", "new"), pair, strict=True)
                for k, data in enumerate(series)
            },
            style,
        )
    for name, one in found.items():
        for text in (*one.warnings, *(f"failed: {text}" for text in failed[name])):
            note(f"{name}: {text}" if len(found) > 1 else text)
    worse = any(one.verdict in ("worse", "mixed") for one in found.values())
    return int(any(failed.values()) if conditions else worse)


def _draw(
    pairs: dict[str, Any], out: Path | None, files: tuple[str, ...], options: dict[str, Any]
) -> None:
    from latencykit.errors import InvalidArgumentError

    if out is None:
        return
    from latencykit.plot.comparison_chart import compare

    if len(pairs) > 1:
        raise InvalidArgumentError(
            f"the chart shows one series, not {len(pairs)} ({', '.join(pairs)}); choose one with --series or --tag"
        )
    base, new = (side[0] if len(side) == 1 else side for side in next(iter(pairs.values())))
    picture(compare, base, out, files, new=new, **options)
