"""``latencykit check``."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from latencykit.cli import options
from latencykit.cli.inputs import Input, load
from latencykit.cli.output import atomic, print_assumed_units, print_json, print_text
from latencykit.errors import InvalidArgumentError

if TYPE_CHECKING:
    from latencykit.analysis.slo import SLO, SLOResult


@click.command("check", cls=options.Command)
@options.inputs(split=True)
@options.slo_option(
    required=True,
    help="Limits such as 99.9=20ms,max=1s,failed=0.1%, 'ttft 99=500ms, tpot 95=50ms', or a file "
    "(repeatable).",
)
@click.option(
    "--joint",
    metavar="SHARE",
    help="Also check that this share of the requests meets all limits, such as 95%.",
)
@click.option(
    "--history",
    "store",
    metavar="DIR|URL",
    help="Store of `latencykit history`: an outcome is sure if run noise leaves it as it is.",
)
@click.option("--sure", is_flag=True, help="Exit with 1 only if a miss is sure.")
@click.option("--strict", is_flag=True, help="Exit with 1 unless all limits are met, and surely.")
@click.option(
    "--junit",
    type=options.OUTPUT_FILE,
    metavar="OUT.xml",
    help="Also write the results as JUnit XML.",
)
@options.confidence_option
@options.format_option
def command(
    given: options.Inputs,
    specs: tuple[str, ...],
    joint: str | None,
    store: str | None,
    sure: bool,
    strict: bool,
    junit: Path | None,
    confidence: float,
    style: str,
) -> int:
    """Check latencies against limits, in a pipeline: exit status 1 if one is missed.

    The outcome is that of this run. It is sure if it holds for traffic like it, by the dependence
    between requests that the run shows; with --history, if the limit is also farther away than
    runs of the history differ by. Failed requests count as slower than any limit. A file of
    requests has one row per limit; --by splits it. A limit that names a series applies to that
    series only; --joint judges goodput, the share of the requests whose latencies are all within
    limits.

    \b
    latencykit check run.hlog --unit ns --slo 99.9=20ms,max=1s,failed=0.1%
    latencykit check requests.csv --slo 99=60ms --by endpoint --sure
    latencykit check checkout=out.json --slo 99=60ms --history history --sure
    latencykit check run.hlog --unit ns --slo slo.txt --strict --junit slo.xml
    latencykit check profile_export.jsonl --slo 'ttft 99=500ms, tpot 95=50ms' --joint 95%
    """
    from latencykit.analysis.slo import SLOResult, passed, seconds_of, with_history
    from latencykit.core.run import TOTAL
    from latencykit.views.slo import check_record, check_text, exit_text, junit_xml

    slo, least = options.slo_of(specs), None if joint is None else options.share(joint)
    checked: dict[str, SLOResult] = {}
    # The requests of a file together, unless limits or options name parts of them.
    together = given.selection.by is None and all(limit.series is None for limit in slo.limits)
    loaded = load(given.selecting(together=together))
    with options.progress("checking"):
        files: list[dict[str, Input]] = []
        for entry in loaded:  # a file may be named twice
            last = files[-1] if files else {}
            if not last or entry.series in last or next(iter(last.values())).path != entry.path:
                files.append({})
            files[-1][entry.series] = entry
        for series in files:
            checked |= _checked(series, slo, least, confidence)
        if store is not None:  # its run noise, where it shows some, decides what is sure
            from latencykit.history.history import History

            history = History(store)
            for text in history.left_out:
                options.note(f"left out: {text}")
            for entry in loaded:
                if entry.name not in checked:
                    continue
                # Requests taken together are what `history add` keeps as the total of their parts.
                results, known = checked[entry.name], entry.name
                tags = getattr(entry.data, "tags", ()) if together else ()
                if len(tags) > 1:
                    known = TOTAL if entry.label is None else f"{entry.label}:{TOTAL}"
                elif tags and entry.label is None:
                    known = tags[0] or known
                wanted = [row.statistic for row in results if not row.is_share]
                noise = options.noise_of(history, known, wanted)
                if missing := [word for word in wanted if word not in noise]:
                    text = options.no_noise(history, store, known, f" {', '.join(missing)}")
                    options.note(f"{text}, so that this run decides what is sure")
                checked[entry.name] = SLOResult(
                    with_history(row, noise[row.statistic]) if row.statistic in noise else row
                    for row in results
                )
    rows = [row for results in checked.values() for row in results]
    good = passed(rows, strict=strict, sure=sure)
    if junit is not None:
        with atomic(junit, given.files, *specs) as temporary:
            temporary.write_text(junit_xml(checked, strict=strict, sure=sure), encoding="utf-8")
    if style == "json":
        notes = [f"{entry.name}: {text}" for entry in loaded for text in entry.data.run.notes]
        print_json(check_record(checked, good, notes))
    else:
        seconds = [length for entry in loaded if (length := seconds_of(entry.data))]
        print_assumed_units({entry.name: entry.data.run for entry in loaded}, style)
        every, shortest = given.notes or style != "table", min(seconds, default=0.0)
        print_text(check_text(checked, style, given.out_unit, shortest, every=every), style)
        if style == "table":
            print_text(exit_text(rows, good, strict=strict, sure=sure), style)
    return int(good is False)


def _checked(
    series: Mapping[str, Input], slo: SLO, least: float | None, confidence: float
) -> dict[str, SLOResult]:
    """Check the series of one file; the joint result is named after the file."""
    from latencykit.analysis.slo import SLOResult, joint_share
    from latencykit.core.histogram_log import HistogramLog, expect
    from latencykit.views.values import in_nanoseconds

    path = next(iter(series.values())).path
    source = Path(path).name if path != "-" else "stdin"
    try:
        limits = slo.of_series(series)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{source}: {error}") from None
    checked: dict[str, SLOResult] = {}
    together: dict[str, tuple[Any, SLO]] = {}
    for name, own in limits.items():
        entry = series[name]
        if any(limit.statistic != "failed" and not limit.bare for limit in own.limits):
            options.need_unit(entry.name, entry.data.run)
        data = in_nanoseconds(entry.data)
        if least is not None:
            together[name] = data, own
        elif len(limits) > 1:
            gc.collect(0)  # the last view: it is referred to by what it caches
            data = data.with_run()
        if isinstance(data, HistogramLog):
            expect(data, keep=False)
        checked[entry.name] = own.check(data, confidence=confidence)
    if least is not None:
        if len(checked) == 1:
            source = next(iter(checked))
        joint = joint_share(together, least, confidence)
        checked[source] = SLOResult([*checked.get(source, ()), joint])
    return checked
