"""``latencykit compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from latencykit._text import brief_list
from latencykit.cli import options
from latencykit.cli.inputs import pairs_of
from latencykit.cli.output import print_result, write_chart
from latencykit.core.run import code_of
from latencykit.errors import InvalidArgumentError


@click.command("compare", cls=options.Command)
@options.inputs(required=False, split=True)
@options.chart_option
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
    "--history",
    "store",
    metavar="DIR|URL",
    help="Store of `latencykit history`, whose runs show that deviation, in place of --run-noise.",
)
@click.option(
    "--fail-if",
    multiple=True,
    metavar="COND",
    help='Exit with 1 if this holds with confidence: "p99.9 > +5%", "mean > +1ms".',
)
@options.list_option("--percentiles", help="Percentiles; by default those that every run supports.")
@click.option(
    "--margin",
    metavar="P%",
    default="5%",
    help="Changes within this margin, with confidence, count as the same.",
)
@options.confidence_option
@options.format_option
def command(
    given: options.Inputs,
    out: Path | None,
    base: tuple[str, ...],
    new: tuple[str, ...],
    run_noise: str | None,
    store: str | None,
    fail_if: tuple[str, ...],
    percentiles: str | None,
    margin: str,
    confidence: float,
    style: str,
) -> int:
    """Show which percentiles changed, with confidence.

    FILES are BASE and NEW. With one run per side a change is stated where it is larger than runs of
    one system plausibly differ, with the run noise that chance would need; --run-noise states how
    much runs differ. Exit status 1: a --fail-if condition is met; without any, the verdict is worse
    or mixed.

    \b
    latencykit compare before.hlog after.hlog -o change.png
    latencykit compare --base 'before*.hlog' --new 'after*.hlog'
    latencykit compare before.hlog after.hlog --run-noise 3% --fail-if 'p99 > +5%'
    """
    from latencykit.analysis.compare import compare, parse_condition
    from latencykit.views.compare import comparisons_record, comparisons_text

    conditions = [parse_condition(text) for text in fail_if]
    chosen: dict[str, Any] = {
        "confidence": confidence,
        "margin": options.share(margin),
        "also": [condition.statistic for condition in conditions],
        "run_noise": None if run_noise is None else options.share(run_noise),
        "percentiles": None if percentiles is None else options.numbers(percentiles),
    }
    if store is not None and run_noise is not None:
        raise InvalidArgumentError("--run-noise and --history both state the run noise; give one")
    named = pairs_of(given, base, new)
    pairs = {
        name: tuple([entry.data for entry in side] for side in pair) for name, pair in named.items()
    }
    with options.progress("comparing"):
        comparisons = {}
        if store is not None:
            from latencykit.history.history import History

            history = History(store)
            series_known = list(dict.fromkeys(one for run in history.runs for one in run.series))
        for name, pair in pairs.items():
            if store is not None:  # the run noise of the noisiest of the usual statistics
                series = named[name][1][0].name
                if not name and len(series_known) == 1:  # a pair of files, whatever their names
                    (series,) = series_known
                found = options.noise_of(history, series, ("p50", "p99", "mean"))
                chosen["run_noise"] = None
                if found:
                    noise = max(min(one.noise, 0.99) for one in found.values())
                    options.note(f"run noise {100 * noise:.3g} %, from the history of {series}")
                    chosen["run_noise"] = noise
                elif len(pairs) == 1:
                    raise InvalidArgumentError(options.no_noise(history, store, series))
                else:
                    options.note(options.no_noise(history, store, series))
            comparisons[name] = compare(*pair, **chosen)
    failed = {name: comparison.failed(conditions) for name, comparison in comparisons.items()}
    if out is not None:
        from latencykit.plot.comparison_chart import compare as chart

        if len(pairs) > 1:
            raise InvalidArgumentError(
                f"the chart shows one series, not {len(pairs)} ({', '.join(pairs)}); choose one "
                "with --series or --tag"
            )
        (pair,) = pairs.values()
        old, after = (side[0] if len(side) == 1 else side for side in pair)
        write_chart(chart, old, out, (*given.files, *base, *new), new=after, **chosen)
    print_result(
        style,
        lambda: comparisons_record(comparisons, failed),
        lambda: comparisons_text(
            comparisons, style, given.out_unit, every=given.notes, picture=str(out or "")
        ),
        {
            f"{side} {k + 1}" if len(series) > 1 else side: data.run
            for pair in pairs.values()
            for side, series in zip(("base", "new"), pair, strict=True)
            for k, data in enumerate(series)
        },
    )
    messages: dict[str, list[str]] = {}
    for name, comparison in comparisons.items():
        warnings = [text for text in comparison.warnings if code_of(text) != "unit"]
        warnings = warnings if given.notes else warnings[:1]
        for text in (*warnings, *(f"failed: {text}" for text in failed[name])):
            messages.setdefault(text, []).append(name)
    for text, names in messages.items():
        options.note(text if len(names) == len(comparisons) else f"{brief_list(names)}: {text}")
    worse = any(comparison.verdict in ("worse", "mixed") for comparison in comparisons.values())
    return int(any(failed.values()) if conditions else worse)
