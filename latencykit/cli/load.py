"""``latencykit load``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from latencykit.cli import options
from latencykit.cli.inputs import runs_of
from latencykit.cli.output import print_result, print_sentences, write_chart


@click.command("load", cls=options.Command)
@options.inputs()
@options.chart_option
@options.slo_option(
    help="Limits such as 99=20ms, or a file (repeatable): find the highest load that meets them."
)
@options.percentiles_option
@options.confidence_option
@options.format_option
def command(
    given: options.Inputs,
    out: Path | None,
    specs: tuple[str, ...],
    percentiles: str,
    confidence: float,
    style: str,
) -> int:
    """Find the highest load that meets an SLO, from one file per run at a rate of its own.

    Where a file does not state its rate, write it in front: 5000=run.txt. The folder of a
    `latencykit sweep` stands for its runs. A load passes if its entire confidence interval is
    within the limit; loads beyond those measured are not judged. Exit status 1 if no load meets
    the SLO.

    \b
    latencykit load 'rate-*.txt' --slo 99=20ms,max=1s -o load.png
    latencykit load sweep-20260101-120000 --slo 99=20ms
    latencykit load 1000=a.hlog 2000=b.hlog --slo 99=20ms
    """
    from latencykit.analysis.capacity import load_curve
    from latencykit.ctrlz.sweep import RECORD, runs_in
    from latencykit.views.load import load_record, load_text, load_words

    slo, shown = options.slo_of(specs) if any(specs) else None, options.numbers(percentiles)
    folders = [path for path in given.files if (Path(path) / RECORD).is_file()]
    others = tuple(path for path in given.files if path not in folders)
    runs: dict[str, Any] = runs_of(replace(given, files=others)) if others else {}
    for folder in folders:
        for name, data in runs_in(Path(folder)).items():
            runs[name if len(folders) == 1 else f"{folder}/{name}"] = data
    if slo is not None and any(limit.statistic != "failed" for limit in slo.limits):
        for name, data in runs.items():
            options.need_unit(name, data.run)
    curve = load_curve(runs, slo, confidence=confidence)
    with options.progress("measuring load"):
        record = load_record(curve, shown, confidence)
    if out is not None:
        from latencykit.plot.load_chart import load_curve as chart

        look = {"percentiles": shown, "confidence": confidence, "unit": given.out_unit}
        write_chart(chart, curve, out, given.files, *specs, **look)
    print_result(
        style,
        lambda: record,
        lambda: load_text(record, style, given.out_unit),
        {name: data.run for name, data in runs.items()},
    )
    print_sentences(load_words(curve), style)
    return 1 if curve.passed is False else 0
