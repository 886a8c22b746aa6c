"""What the commands share: options and what they mean, loading the inputs, and printing."""

from __future__ import annotations

import contextlib
import functools
import glob
import json
import math
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from latencykit.errors import NotHeldError, UsageError
from latencykit.limits import limits
from latencykit.run import reporting
from latencykit.units import did_you_mean, parse_duration, parse_moment, printable, without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from latencykit.formats.base import Source
    from latencykit.run import Measure, Run

__all__ = [
    "Input",
    "Inputs",
    "Real",
    "confident",
    "counts",
    "expand",
    "inputs",
    "load",
    "load_files",
    "need_unit",
    "note",
    "numbers",
    "print_json",
    "printing",
    "say_units",
    "series_of",
    "share",
    "tell_notes",
    "tell_twice",
    "twice",
]


@dataclass(frozen=True)
class Inputs:
    """What the common options say."""

    files: tuple[str, ...] = ()
    format_in: str | None = None
    series: tuple[str, ...] = ()
    tag: tuple[str, ...] = ()
    measure: Measure | None = None
    begin: str | None = None
    end: str | None = None
    unit: str | None = None
    out_unit: str | None = None
    column: str | None = None
    start_column: str | None = None
    lenient: bool = False
    jobs: int = 1
    dask: str | None = None


@dataclass(frozen=True)
class Input:
    """One series of one file."""

    name: str
    rung: Any
    path: str = field(compare=False)


_OPTIONS = (
    click.option("--format-in", metavar="NAME", help="The input's format, instead of recognising it."),
    click.option("--series", multiple=True, metavar="NAME", help="Only this series (repeatable)."),
    click.option("--tag", multiple=True, metavar="NAME", help='Only this tag (repeatable; "" for untagged lines).'),
    click.option(
        "--measure",
        type=click.Choice(["response", "service"]),
        help="Which time, where the source knows both.",
    ),
    click.option(
        "--from",
        "begin",
        metavar="T",
        help="Ignore requests that started before T: seconds from the start, a duration such as 5s, or ISO time (UTC).",
    ),
    click.option("--to", "end", metavar="T", help="Ignore requests that started at or after T."),
    click.option("--unit", type=click.Choice(["ns", "us", "ms", "s", "none"]), help="What the stored values are."),
    click.option("--out-unit", type=click.Choice(["ns", "us", "ms", "s"]), help="Unit of what is written or drawn."),
    click.option("--column", metavar="NAME", help="Column of latencies in a table of raw samples."),
    click.option("--start-column", metavar="NAME", help="Column of start times in a table of raw samples."),
    click.option("--lenient", is_flag=True, help="Skip damaged lines, counted by reason, and unreadable files; say so."),
    click.option(
        "--jobs",
        type=click.IntRange(1),
        default=os.cpu_count() or 1,
        show_default="all cores",
        help="Files, and parts of large logs, read at once.",
    ),
    click.option("--limit", multiple=True, metavar="NAME=SIZE", help="Let input take more than usual: whole=4GiB (repeatable)."),
    click.option("--dask", metavar="ADDRESS", help="Read on a Dask cluster: tcp://HOST:PORT, or local for one on this machine."),
)


def inputs(*, nargs: int = -1, required: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the FILES argument and the common options, as one `Inputs`."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(files: str | tuple[str, ...], limit: tuple[str, ...], **options: Any) -> Any:
            named = {key: options.pop(key) for key in Inputs.__dataclass_fields__ if key in options}
            given = Inputs(files=(files,) if isinstance(files, str) else files, **named)
            bounds = {name.strip(): size for name, _, size in (part.partition("=") for part in limit)}
            with limits(**bounds), reporting(note):
                return function(given, **options)

        for option in reversed(_OPTIONS):
            wrapped = option(wrapped)
        return click.argument("files", nargs=nargs, required=required)(wrapped)

    return decorate


def printing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command ``--format``."""
    choice = click.Choice(["table", "json", "csv", "markdown"])
    return click.option("--format", "style", type=choice, default="table", show_default=True, help="What prints.")(function)


def note(text: str) -> None:
    """Print a note of one line on standard error, safe for a terminal, unless the user wants none."""
    context = click.get_current_context(silent=True)
    if context is None or not (context.find_root().obj or {}).get("quiet"):
        with contextlib.suppress(OSError):  # nobody reads notes; the work goes on
            click.echo(printable(without_secrets(text), len(text)), err=True)


def print_json(record: Any) -> None:
    """Print JSON on standard output, and nothing else there."""
    click.echo(json.dumps(record, ensure_ascii=True, allow_nan=False, indent=1))


class Real(click.FloatRange):
    """A number within bounds; click's own range lets not-a-number through."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number."""
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is no number.", param, ctx)
        return number


def confident(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command ``--confidence``."""
    bounds = Real(0.5, 0.9999)
    return click.option("--confidence", type=bounds, default=0.95, show_default=True, help="Of the intervals.")(function)


def numbers(text: str) -> list[float]:
    """Return percentiles from a list such as ``50,99,99.9``."""
    from latencykit.units import parse_percentile

    found = [parse_percentile(part) for part in text.split(",") if part.strip()]
    if not found:
        raise UsageError(f"{text!r} names no percentiles; write them as 50,99,99.9")
    for value in found:
        if 0.9 <= value < 1:
            note(f"note: p{value:g} lies below the first per cent; was p{value * 100:g} meant?")
    return found


def counts(text: str) -> list[int]:
    """Return whole numbers of 1 or more from a list such as ``1,10,100``."""
    parts = [part.strip().replace("_", "") for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() and len(part) <= 10 and 0 < int(part) <= 10**9 for part in parts):
        raise UsageError(f"{text!r} is no list of whole numbers from 1 to a billion; write them as 1,10,100")
    return [int(part) for part in parts]


def share(text: str) -> float:
    """Return a share (0..1) from a percentage such as ``3%``."""
    number = text.strip().removesuffix("%").strip()
    try:
        value = float(number) / 100
    except ValueError:
        value = -1.0
    if not (text.strip().endswith("%") or value == 0) or not 0 <= value <= 1:
        raise UsageError(f"{text!r} is no percentage; write it as 3%")
    return value


# ---------------------------------------------------------------- inputs


def expand(files: Sequence[str]) -> list[tuple[str | None, str]]:
    """Labels and paths; a glob that the shell left alone is expanded here."""
    found: list[tuple[str | None, str]] = []
    for given in files:
        label, path = None, given
        head, equals, tail = given.partition("=")
        if equals and tail and not os.path.lexists(given) and "/" not in head:
            label, path = head, tail
        matches = [path]
        if not os.path.lexists(path) and glob.has_magic(path):
            from latencykit.cluster.places import expand as matching

            matches = matching(path)
        if not matches:
            raise UsageError(f"{path}: no file matches")
        found += [(label, match) for match in matches]
    if [path for _, path in found].count("-") > 1:
        raise UsageError("-: standard input is named more than once, and it can be read once only; write it to a file")
    return found


def twice(files: Sequence[str]) -> list[str]:
    """Files that were named before, by whatever name: what they hold would count more than once."""
    seen: set[object] = set()
    found = []
    for _, path in expand(files):
        key: object = path
        with contextlib.suppress(OSError, ValueError):  # a file elsewhere, or none: that is told where it is read
            status = Path(path).stat()
            key = status.st_dev, status.st_ino
        if key in seen:
            found.append(path)
        seen.add(key)
    return list(dict.fromkeys(found))


def load(given: Inputs, ask: Callable[[Any], Any] | None = None, *, counted: bool = False, again: bool = False) -> list[Input]:
    """Read every series of every file, as the options say; all files at once as ``--jobs`` allows.

    Parameters
    ----------
    given : Inputs
    ask : callable, optional
        What is wanted of each rung, such as `latencykit.cluster.answers.totals_of`. It is asked where the file is read,
        in another process or on a cluster, and its answer is what comes back in the rung's place.
    counted : bool, default False
        Only histograms will be asked for, so that long tables of samples may be counted as they are read.
    again : bool, default False
        More than one question will be asked of each log, so that it is kept in memory if it is not too large.

    Raises
    ------
    LatencyKitError
        For the first file that cannot be read, before anything is printed or written; under ``--lenient`` such files
        are reported and left out.
    """
    from latencykit.formats.reading import unique_names

    every = [one for series in load_files(given, ask, counted=counted, again=again) for one in series]
    if not every:
        raise UsageError("none of the files holds what was asked for")
    names = unique_names([(without_secrets(one.path), one.name, one.rung) for one in every])
    loaded = [Input(name, rung, one.path) for one, (name, rung) in zip(every, names.items(), strict=True)]
    tell_notes(loaded)
    return loaded


def load_files(
    given: Inputs, ask: Callable[[Any], Any] | None = None, *, counted: bool = False, again: bool = False
) -> list[list[Input]]:
    """Read as `load` does, and return the series file by file, under names that are their file's own."""
    from latencykit.cli.spread import read_each

    paths = expand(given.files)
    found: list[list[Input]] = []
    for (label, path), series in zip(
        paths, read_each(given, [path for _, path in paths], ask, counted=counted, again=again), strict=True
    ):
        shown = [name if label is None else label if len(series) == 1 else f"{label}:{name}" for name, _ in series]
        found.append([Input(name, rung, path) for name, (_, rung) in zip(shown, series, strict=True)])
    return found


def tell_notes(loaded: Sequence[Input]) -> None:
    """Say on standard error what is to be known of each series, and once what is true of all series of a file."""
    series = Counter(one.path for one in loaded)
    told: dict[tuple[str, str], list[str]] = {}
    for one in loaded:
        for text in one.rung.run.notes:
            told.setdefault((one.path, text), []).append(one.name)
    for (path, text), names in told.items():
        who = ", ".join(names) if len(names) == 1 or len(names) < series[path] else Path(without_secrets(path)).name
        note(f"{'stdin' if who == '-' else who}: {text}")


def say_units(runs: Mapping[str, Run], style: str) -> None:
    """Print below a table for people which units are only assumed: the table may be read without what stands beside it."""
    if style in ("table", "markdown"):
        told: dict[str, list[str]] = {}
        for name, run in runs.items():
            if run.unit_note is not None:
                told.setdefault(run.unit_note, []).append(name)
        for text, names in told.items():
            shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
            click.echo(f"{printable(shown, 200)}: {text}" if shown else text)


def need_unit(name: str, run: Run) -> None:
    """Refuse a limit in time on values whose unit is only assumed."""
    if run.unit_note is not None:
        raise UsageError(
            f"{name}: does not state the unit of its values, so they cannot be compared with a limit in time; "
            f"state it: --unit {run.unit}"
        )


def tell_twice(files: Sequence[str]) -> None:
    """Say on standard error which files are named more than once where their counts are added up."""
    found = twice(files)
    if found:
        more = f", and {len(found) - 1:,} others" if len(found) > 1 else ""
        note(f"{found[0]}{more}: named more than once, and its requests count as often")


def with_unit(_context: click.Context, option: click.Parameter, text: str | None) -> str | None:
    """Let a duration through if it says its unit: a bare number means seconds in other options."""
    if text is not None:
        try:
            parse_duration(text)
        except UsageError as error:
            raise UsageError(f"{option.opts[0]}: {error}") from error
    return text


def series_of(
    given: Inputs, source: Source, say: Callable[[str], None], *, part: bool = False, counted: bool = False
) -> list[tuple[str, Any]]:
    """Return the series of one file, or of a range of its lines, that the options ask for."""
    from latencykit.formats.base import ReadOptions
    from latencykit.formats.reading import expand_tags, read_source, with_measure

    path = source.shown
    options = ReadOptions(
        unit=given.unit,
        column=given.column,
        start_column=given.start_column,
        lenient=given.lenient,
        counted=counted and given.begin is None and given.end is None,
        measure=given.measure,
        series=given.series,
        report=say,
    )
    found = read_source(source, options, "hlog" if part else given.format_in, part=part)  # only logs are read in ranges
    chosen: list[tuple[str, Any]] = []
    missing = [name for name in given.series if name not in found]
    if missing:
        raise UsageError(f"{path}: holds no series {missing[0]!r}{did_you_mean(missing[0], found)}")
    tags: set[str] = set()
    for name, rung in found.items():
        if given.series and name not in given.series:
            continue
        for label, one in expand_tags(name, with_measure(rung, given.measure)).items():
            tags.add((one.run.tags or ("",))[0])
            if not given.tag or (one.run.tags or ("",))[0] in given.tag:
                chosen.append((label, _window(one, given, say)))
    unknown = [] if part else [tag for tag in given.tag if tag not in tags]
    if unknown:
        raise UsageError(f"{path}: no line has the tag {unknown[0]!r}{did_you_mean(unknown[0], tags)}")
    return chosen


def _window(rung: Any, given: Inputs, say: Callable[[str], None]) -> Any:
    """The part of a rung that ``--from`` and ``--to`` leave."""
    if given.begin is None and given.end is None:
        return rung
    if not hasattr(rung, "between"):
        raise NotHeldError(
            f"{rung.run.source}: a histogram of the whole run knows no time; --from and --to need a log or samples"
        )
    try:
        start = parse_moment("-inf" if given.begin is None else given.begin, rung.epoch)
        end = parse_moment("inf" if given.end is None else given.end, rung.epoch)
    except NotHeldError as error:
        raise NotHeldError(f"{rung.run.source}: {error}") from None
    if start > end:
        raise UsageError(f"--from {given.begin} is later than --to {given.end}: nothing lies between them; exchange the two")
    if start == end:
        raise UsageError(f"--from {given.begin} and --to {given.end} are the same moment: --to itself is not included")
    part = rung.between(start, end)
    if len(part) < len(rung):
        whole, left = rung.histogram(), part.histogram()
        kept = "is still in it" if left.count and left.max == whole.max else "is among what was left out"
        say(f"{rung.run.source}: --from/--to left {left.count:,} of {whole.count:,} requests; the maximum {kept}")
    return part


def without_aggregates(loaded: Sequence[Input]) -> list[Input]:
    """Leave out series that sum up others, unless there is nothing else."""
    return [one for one in loaded if not one.rung.run.aggregate] or list(loaded)
