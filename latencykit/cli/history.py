"""``latencykit history``: a store of runs, and the gate that learns from it."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from latencykit._files import checked_chart
from latencykit.cli import options
from latencykit.cli.inputs import load
from latencykit.cli.output import atomic, print_result
from latencykit.errors import InvalidArgumentError
from latencykit.units import parse_moment

if TYPE_CHECKING:
    from latencykit.history.history import History, HistoryVerdict

_RERUNS = 2  # three runs decide


_store = click.option(
    "--store", required=True, metavar="DIR|URL", help="Folder or URL with one file per run."
)
_label = click.option(
    "--label",
    multiple=True,
    metavar="KEY=VALUE",
    help="Label such as machine=ci-4 (repeatable); runs with other labels are judged apart.",
)
_branch = click.option("--branch", metavar="NAME", help="Only runs of this branch.")


@click.group("history")
def command() -> None:
    """Keep the runs of a repository, and judge new ones by what they show.

    A run is worse if its level changed for good: noise, outliers and the modes of two machines are
    learned from the history. Exit status of check: 1 worse.

    \b
    latencykit history add out.json --store history --label machine=ci-4
    latencykit history check out.json --store history --label machine=ci-4
    latencykit history show --store history -o history.svg
    """


@command.command("add", cls=options.Command)
@options.inputs()
@_store
@click.option("--commit", metavar="SHA", help="By default of the CI job, or of git.")
@click.option("--branch", metavar="NAME", help="By default of the CI job, or of git.")
@click.option(
    "--time",
    metavar="T",
    help="ISO time or seconds since 1970, by which runs are ordered; by default the commit's.",
)
@_label
def add(
    given: options.Inputs,
    store: str,
    time: str | None,
    label: tuple[str, ...],
    **origin: str | None,
) -> int:
    """Add FILES to the store, as one run; print the file that holds it."""
    from latencykit.history.history import History, parse_labels

    labels, moment = parse_labels(label), None if time is None else parse_moment(time, epoch=0)
    series = {entry.name: entry.data for entry in load(given)}
    with options.progress(f"adding to {store}"):
        place = History(store).add(series, time=moment, labels=labels, **origin)
    click.echo(place)
    return 0


@command.command("check", cls=options.Command)
@options.inputs()
@_store
@_label
@_branch
@options.list_option(
    "--statistics", help="Such as p50,p99; by default p50, p99 and p99.9, or mean."
)
@click.option(
    "--rename",
    multiple=True,
    metavar="OLD=NEW",
    help="A series whose name changed keeps its history (repeatable).",
)
@click.option(
    "--confirm",
    "again",
    metavar="CMD",
    help="Command that writes FILES anew; run up to twice where a run deviates.",
)
@options.format_option
def check(
    given: options.Inputs,
    store: str,
    label: tuple[str, ...],
    branch: str | None,
    statistics: str | None,
    rename: tuple[str, ...],
    again: str | None,
    style: str,
) -> int:
    """Judge a run by the history.

    The verdict is same, better, worse, confirm or unknown. Exit status 1: worse. A change is
    reported once, when three runs in a row agree: later commits, or the reruns of --confirm. With
    confirm, run it again.
    """
    from latencykit.history.history import History, parse_labels
    from latencykit.views.history import check_record, check_text, sentence

    if again is not None and "-" in given.files:
        raise InvalidArgumentError("--confirm reads FILES again, which standard input cannot be")
    labels = parse_labels(label)
    renamed = parse_labels(rename)
    history = History(store, branch=branch, rename=renamed)
    chosen = options.names_in(statistics or "")
    runs = [{entry.name: entry.data for entry in load(given)}]

    def judged() -> HistoryVerdict:
        with options.progress(f"judging by {store}"):
            return history.judge(runs[0], *runs[1:], labels=labels, statistics=chosen)

    verdict = judged()
    while again is not None and verdict.verdict == "confirm" and len(runs) <= _RERUNS:
        options.note(f"{sentence(verdict)}; running {again}")
        # Run a command, whose output goes to standard error.
        try:
            words = shlex.split(again)
            done = subprocess.run(words, stdout=2, check=False)  # noqa: S603 - the user's own command
        except (OSError, ValueError) as error:
            raise InvalidArgumentError(f"--confirm {again}: cannot be run: {error}") from error
        if done.returncode:
            raise InvalidArgumentError(f"--confirm {again}: ended with status {done.returncode}")
        runs.append({entry.name: entry.data for entry in load(given)})
        verdict = judged()
    for text in (*(f"left out: {text}" for text in history.left_out), *verdict.notes):
        options.note(text)
    print_result(
        style,
        lambda: check_record(verdict, history.left_out, len(runs) - 1),
        lambda: check_text(verdict, style, given.out_unit),
    )
    return int(verdict.verdict == "worse")


@command.command("show")
@_store
@_branch
@click.option("--series", multiple=True, metavar="NAME", help="Only this series (repeatable).")
@options.list_option(
    "--statistics", default=["p50,p99,p99.9,mean"],
    help="Statistics; those that no run has are left out.",
)  # fmt: skip
@click.option("--last", type=click.IntRange(1), default=1000, help="Latest runs to show.")
@click.option(
    "-o", "--output", "out", type=options.OUTPUT_FILE, metavar="OUT",
    help="Chart (.png .svg .pdf) or interactive page (.html).",
)  # fmt: skip
@options.format_option
def show(
    store: str,
    branch: str | None,
    series: tuple[str, ...],
    statistics: str,
    last: int,
    out: Path | None,
    style: str,
) -> int:
    """Show levels, noise bands and changes over the runs."""
    from latencykit.history.history import History, trends_of
    from latencykit.views.history import show_record, show_text

    history = History(store, branch=branch)
    with options.progress(f"reading {store}"):
        trends = trends_of(history, options.names_in(statistics), series, last)
    for text in history.left_out:
        options.note(f"left out: {text}")
    if not trends:
        where = f" of branch {branch}" if branch else ""
        what = f"it has no runs{where}"
        if history.runs:
            of = f" of {', '.join(series)}" if series else ""
            where += f" of the last {last:,}" if len(history.runs) > last else ""
            what = f"no run{where} has {statistics}{of}"
        raise InvalidArgumentError(f"{store}: {what}")
    if out is not None:
        _write(history, trends, out)
        options.note(f"wrote {out}")
    print_result(
        style,
        lambda: show_record(trends, len(history.runs), history.left_out),
        lambda: show_text(trends, style),
    )
    return 0


def _write(history: History, trends: list[Any], out: Path) -> None:
    """Write a chart or a page by its suffix."""
    series = {trend.series for trend in trends if trend.statistic != "mean"}
    kept = [t for t in trends if t.statistic != "mean" or t.series not in series]
    if out.suffix.lower() in (".html", ".htm"):
        from latencykit.views.history import history_html

        with atomic(out) as temporary:
            temporary.write_text(history_html(history, kept), encoding="utf-8")
        return
    from latencykit.plot.files import save
    from latencykit.plot.history_chart import history as chart

    checked_chart(out)
    names = dict.fromkeys(trend.series for trend in trends)
    if len(names) > 1:
        raise InvalidArgumentError(
            f"a chart shows one series, not {len(names)} ({', '.join(names)}); choose one with "
            "--series, or write a page: .html"
        )
    with atomic(out) as temporary:
        save(chart, kept, temporary)
