"""What the commands share: options and what they mean, loading the inputs, and printing."""

from __future__ import annotations

import contextlib
import functools
import glob
import json
import math
import os
import sys
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from latencykit._limits import limits
from latencykit.core.histogram_log import merge
from latencykit.core.run import reporting
from latencykit.distributed.executors import (
    DaskExecutor,
    LocalExecutor,
    PartResult,
    added,
    bar,
    jobs_of,
    local_cluster,
)
from latencykit.distributed.logs import ClusterLog, Reading
from latencykit.distributed.results import HELD, TRAVELS, carried, held, light, slots_of, totals_of
from latencykit.distributed.sources import source_of
from latencykit.errors import DataNotAvailableError, InvalidArgumentError, LatencyKitError
from latencykit.units import did_you_mean, parse_duration, parse_moment, printable, without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from latencykit.core.run import Measure, Run
    from latencykit.distributed.executors import Engine
    from latencykit.distributed.results import Slots
    from latencykit.distributed.sources import FileRange
    from latencykit.io.source import Source

__all__ = [
    "Input",
    "Inputs",
    "Real",
    "atomic",
    "beside",
    "confident",
    "counts",
    "drawing",
    "expand",
    "inputs",
    "load",
    "load_files",
    "merged_whole",
    "need_unit",
    "note",
    "numbers",
    "pairs_of",
    "picture",
    "print_json",
    "print_written",
    "printing",
    "progress",
    "read_each",
    "runs_of",
    "say_units",
    "series_of",
    "share",
    "slots_of_all",
    "tell_notes",
    "totals_of_all",
    "twice",
    "warn_duplicate_files",
    "with_buckets",
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
    data: Any
    path: str = field(compare=False)


_OPTIONS = (
    click.option(
        "--format-in", metavar="NAME", help="The input's format, instead of recognising it."
    ),
    click.option("--series", multiple=True, metavar="NAME", help="Only this series (repeatable)."),
    click.option(
        "--tag",
        multiple=True,
        metavar="NAME",
        help='Only this tag (repeatable; "" for untagged lines).',
    ),
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
    click.option(
        "--unit",
        type=click.Choice(["ns", "us", "ms", "s", "none"]),
        help="What the stored values are.",
    ),
    click.option(
        "--out-unit",
        type=click.Choice(["ns", "us", "ms", "s"]),
        help="Unit of what is written or drawn.",
    ),
    click.option("--column", metavar="NAME", help="Column of latencies in a table of raw samples."),
    click.option(
        "--start-column", metavar="NAME", help="Column of start times in a table of raw samples."
    ),
    click.option(
        "--lenient",
        is_flag=True,
        help="Skip corrupt lines, counted by reason, and unreadable files; say so.",
    ),
    click.option(
        "--jobs",
        type=click.IntRange(1),
        default=os.cpu_count() or 1,
        show_default="all cores",
        help="Files, and parts of large logs, read at once.",
    ),
    click.option(
        "--limit",
        multiple=True,
        metavar="NAME=SIZE",
        help="Let input take more than usual: whole=4GiB (repeatable).",
    ),
    click.option(
        "--dask",
        metavar="ADDRESS",
        help="Read on a Dask cluster: tcp://HOST:PORT, or local for one on this machine.",
    ),
)


def inputs(
    *, nargs: int = -1, required: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the FILES argument and the common options, as one `Inputs`."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(files: str | tuple[str, ...], limit: tuple[str, ...], **options: Any) -> Any:
            named = {key: options.pop(key) for key in Inputs.__dataclass_fields__ if key in options}
            given = Inputs(files=(files,) if isinstance(files, str) else files, **named)
            bounds = {
                name.strip(): size for name, _, size in (part.partition("=") for part in limit)
            }
            with limits(**bounds), reporting(note):
                return function(given, **options)

        for option in reversed(_OPTIONS):
            wrapped = option(wrapped)
        return click.argument("files", nargs=nargs, required=required)(wrapped)

    return decorate


def printing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command ``--format``."""
    choice = click.Choice(["table", "json", "csv", "markdown"])
    return click.option(
        "--format", "style", type=choice, default="table", show_default=True, help="What prints."
    )(function)


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
    return click.option(
        "--confidence", type=bounds, default=0.95, show_default=True, help="Of the intervals."
    )(function)


def numbers(text: str) -> list[float]:
    """Return percentiles from a list such as ``50,99,99.9``."""
    from latencykit.units import parse_percentile

    found = [parse_percentile(part) for part in text.split(",") if part.strip()]
    if not found:
        raise InvalidArgumentError(f"{text!r} names no percentiles; write them as 50,99,99.9")
    for value in found:
        if 0.9 <= value < 1:
            note(f"note: p{value:g} lies below the first per cent; was p{value * 100:g} meant?")
    return found


def counts(text: str) -> list[int]:
    """Return whole numbers of 1 or more from a list such as ``1,10,100``."""
    parts = [part.strip().replace("_", "") for part in text.split(",") if part.strip()]
    if not parts or not all(
        part.isdecimal() and len(part) <= 10 and 0 < int(part) <= 10**9 for part in parts
    ):
        raise InvalidArgumentError(
            f"{text!r} is no list of whole numbers from 1 to a billion; write them as 1,10,100"
        )
    return [int(part) for part in parts]


def share(text: str) -> float:
    """Return a share (0..1) from a percentage such as ``3%``."""
    number = text.strip().removesuffix("%").strip()
    try:
        value = float(number) / 100
    except ValueError:
        value = -1.0
    if not (text.strip().endswith("%") or value == 0) or not 0 <= value <= 1:
        raise InvalidArgumentError(f"{text!r} is no percentage; write it as 3%")
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
            from latencykit.distributed.sources import expand as matching

            matches = matching(path)
        if not matches:
            raise InvalidArgumentError(f"{path}: no file matches")
        found += [(label, match) for match in matches]
    if [path for _, path in found].count("-") > 1:
        raise InvalidArgumentError(
            "-: standard input is named more than once, and it can be read once only; write it to a file"
        )
    return found


def twice(files: Sequence[str]) -> list[str]:
    """Files that were named before, by whatever name: what they hold would count more than once."""
    seen: set[object] = set()
    found = []
    for _, path in expand(files):
        key: object = path
        with contextlib.suppress(
            OSError, ValueError
        ):  # a file elsewhere, or none: that is told where it is read
            status = Path(path).stat()
            key = status.st_dev, status.st_ino
        if key in seen:
            found.append(path)
        seen.add(key)
    return list(dict.fromkeys(found))


def load(
    given: Inputs,
    ask: Callable[[Any], Any] | None = None,
    *,
    counted: bool = False,
    again: bool = False,
) -> list[Input]:
    """Read every series of every file, as the options say; all files at once as ``--jobs`` allows."""
    from latencykit.io.reading import unique_names

    every = [
        one for series in load_files(given, ask, counted=counted, again=again) for one in series
    ]
    if not every:
        raise InvalidArgumentError("none of the files holds what was asked for")
    names = unique_names([(without_secrets(one.path), one.name, one.data) for one in every])
    loaded = [
        Input(name, data, one.path) for one, (name, data) in zip(every, names.items(), strict=True)
    ]
    tell_notes(loaded)
    return loaded


def load_files(
    given: Inputs,
    ask: Callable[[Any], Any] | None = None,
    *,
    counted: bool = False,
    again: bool = False,
) -> list[list[Input]]:
    """Read as `load` does, and return the series file by file, under names that are their file's own."""
    paths = expand(given.files)
    found: list[list[Input]] = []
    for (label, path), series in zip(
        paths,
        read_each(given, [path for _, path in paths], ask, counted=counted, again=again),
        strict=True,
    ):
        shown = [
            name if label is None else label if len(series) == 1 else f"{label}:{name}"
            for name, _ in series
        ]
        found.append(
            [Input(name, data, path) for name, (_, data) in zip(shown, series, strict=True)]
        )
    return found


def tell_notes(loaded: Sequence[Input]) -> None:
    """Say on standard error what is to be known of each series, and once what is true of all series of a file."""
    series = Counter(one.path for one in loaded)
    messages: dict[tuple[str, str], list[str]] = {}
    for one in loaded:
        for text in one.data.run.notes:
            messages.setdefault((one.path, text), []).append(one.name)
    for (path, text), names in messages.items():
        who = (
            ", ".join(names)
            if len(names) == 1 or len(names) < series[path]
            else Path(without_secrets(path)).name
        )
        note(f"{'stdin' if who == '-' else who}: {text}")


def say_units(runs: Mapping[str, Run], style: str) -> None:
    """Print below a table for people which units are only assumed: the table may be read without what stands beside it."""
    if style in ("table", "markdown"):
        messages: dict[str, list[str]] = {}
        for name, run in runs.items():
            if run.unit_note is not None:
                messages.setdefault(run.unit_note, []).append(name)
        for text, names in messages.items():
            shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
            click.echo(f"{printable(shown, 200)}: {text}" if shown else text)


def need_unit(name: str, run: Run) -> None:
    """Refuse a limit in time on values whose unit is only assumed."""
    if run.unit_note is not None:
        raise InvalidArgumentError(
            f"{name}: does not state the unit of its values, so they cannot be compared with a limit in time; "
            f"state it: --unit {run.unit}"
        )


def warn_duplicate_files(files: Sequence[str]) -> None:
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
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{option.opts[0]}: {error}") from error
    return text


def series_of(
    given: Inputs,
    source: Source,
    say: Callable[[str], None],
    *,
    part: bool = False,
    counted: bool = False,
) -> list[tuple[str, Any]]:
    """Return the series of one file, or of a range of its lines, that the options ask for."""
    from latencykit.io.reading import expand_tags, read_source, with_measure
    from latencykit.io.source import ReadOptions

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
    found = read_source(
        source, options, "hlog" if part else given.format_in, part=part
    )  # only logs are read in ranges
    chosen: list[tuple[str, Any]] = []
    missing = [name for name in given.series if name not in found]
    if missing:
        raise InvalidArgumentError(
            f"{path}: holds no series {missing[0]!r}{did_you_mean(missing[0], found)}"
        )
    tags: set[str] = set()
    for name, data in found.items():
        if given.series and name not in given.series:
            continue
        for label, one in expand_tags(name, with_measure(data, given.measure)).items():
            tags.add((one.run.tags or ("",))[0])
            if not given.tag or (one.run.tags or ("",))[0] in given.tag:
                chosen.append((label, _window(one, given, say)))
    unknown = [] if part else [tag for tag in given.tag if tag not in tags]
    if unknown:
        raise InvalidArgumentError(
            f"{path}: no line has the tag {unknown[0]!r}{did_you_mean(unknown[0], tags)}"
        )
    return chosen


def _window(data: Any, given: Inputs, say: Callable[[str], None]) -> Any:
    """The part of a data type that ``--from`` and ``--to`` leave."""
    if given.begin is None and given.end is None:
        return data
    if not hasattr(data, "between"):
        raise DataNotAvailableError(
            f"{data.run.source}: a histogram of the whole run knows no time; --from and --to need a log or samples"
        )
    try:
        start = parse_moment("-inf" if given.begin is None else given.begin, data.epoch)
        end = parse_moment("inf" if given.end is None else given.end, data.epoch)
    except DataNotAvailableError as error:
        raise DataNotAvailableError(f"{data.run.source}: {error}") from None
    if start > end:
        raise InvalidArgumentError(
            f"--from {given.begin} is later than --to {given.end}: nothing lies between them; exchange the two"
        )
    if start == end:
        raise InvalidArgumentError(
            f"--from {given.begin} and --to {given.end} are the same moment: --to itself is not included"
        )
    part = data.between(start, end)
    if len(part) < len(data):
        whole, left = data.histogram(), part.histogram()
        kept = (
            "is still in it"
            if left.count and left.max == whole.max
            else "is among what was left out"
        )
        say(
            f"{data.run.source}: --from/--to left {left.count:,} of {whole.count:,} requests; the maximum {kept}"
        )
    return part


def without_aggregates(loaded: Sequence[Input]) -> list[Input]:
    """Leave out series that sum up others, unless there is nothing else."""
    return [one for one in loaded if not one.data.run.aggregate] or list(loaded)


# ------------------------------------------------------------
# Files that commands write, whole or not at all: charts and others.


@contextlib.contextmanager
def atomic(path: Path, files: Sequence[str] = (), *also: str | None) -> Iterator[Path]:
    """Give a temporary path that takes the place of `path` when all went well; neither FILES nor `also` are written over."""
    from latencykit._files import whole

    local = [given for given in files if given != "-" and "://" not in given]
    with whole(
        path, [*(found for _, found in expand(local)), *(other for other in also if other)]
    ) as temporary:
        yield temporary


def beside(path: str, ending: str) -> Path:
    """The file beside an input, or here where the input is elsewhere, that takes its name and an ending."""
    from latencykit.distributed.sources import is_url

    name = without_secrets(path).rpartition("/")[2] if is_url(path) else path.rstrip("/")
    source = Path("latencykit" if name == "-" else name)
    return source.with_name(f"{source.name}{ending}")


def picture(
    chart: Callable[..., Any],
    data: Any,
    target: Path | None,
    files: Sequence[str],
    *also: str | None,
    **options: Any,
) -> None:
    """Draw a chart into a file, where one is asked for, and say so."""
    if target is None:
        return
    from latencykit.plot.files import save

    with atomic(target, files, *also) as temporary, progress(f"drawing {target.name}"):
        save(chart, data, temporary, **options)
    note(f"wrote {target}")


def drawing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command ``-o CHART``."""
    kind = _Picture(dir_okay=False, path_type=Path)
    return click.option(
        "-o", "--output", "out", type=kind, metavar="CHART", help="Draw it, too: .png .svg .pdf."
    )(function)


class _Picture(click.Path):
    """A chart's file, whose ending is looked at before the work."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path."""
        path: Any = super().convert(value, param, ctx)
        if path.suffix.lower() not in (".png", ".svg", ".pdf"):
            raise InvalidArgumentError(f"{path.name}: charts are written as .png, .svg or .pdf")
        return path


@contextlib.contextmanager
def progress(what: str) -> Iterator[None]:
    """Say on standard error what takes longer than a second, where a person is watching."""
    import threading

    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    done = threading.Event()

    def tell() -> None:
        began = time.monotonic()
        while not done.wait(1.0):
            note(f"{what} … {time.monotonic() - began:.0f} s")

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def print_written(record: dict[str, Any], style: str, said: str | None = None) -> None:
    """Print what was written as ``--format`` asks: ``record`` for programs; for people `said`, beside the output, or the path.

    The path is printed as it is for a program, safe for a terminal.
    """
    if style == "json":
        print_json(record)
    elif style != "table":
        from latencykit.views.tables import styled

        row = list(record.values())
        click.echo(styled(style, list(record), [row], [row]))
    elif said is not None:
        note(said)
    else:
        path = record["output"]
        click.echo(
            printable(path, len(path)) if sys.stdout is not None and sys.stdout.isatty() else path
        )


# ------------------------------------------------------------
# The files of a command, read by threads, by processes or on a Dask cluster; the answers are the
# same.

TOGETHER = 32 << 20
"""Bytes of files that are merged interval by interval; more are summed where they are read."""


def answer_of(
    place: FileRange, given: Inputs, ask: Callable[[Any], Any] | None, *, counted: bool = False, as_one: bool = False,
    again: float = 0.0, travels: float = 0.0,
) -> PartResult:  # fmt: skip
    """Read one place as the options say; what goes wrong is part of the answer.

    A log may take `again` bytes in memory, so that several questions decode it once, or on its way to another process
    `travels` bytes.
    """
    said: list[str] = []
    try:
        source = source_of(place)
        found = series_of(
            given, source, said.append, part=place.end > 0, counted=counted or ask is totals_of
        )
        if as_one:  # aggregates sum up the others
            found = [("", data) for _, data in found if not data.run.aggregate] or [
                ("", data) for _, data in found
            ]
        if again:
            found = [(name, held(data, again)) for name, data in found]
        if travels:
            anew = functools.partial(_series_again, place, given)
            found = [
                (name, light(data, travels, functools.partial(anew, k)))
                for k, (name, data) in enumerate(found)
            ]
        with reporting(said.append):
            answers = tuple((name, data if ask is None else ask(data)) for name, data in found)
    except LatencyKitError as error:
        return PartResult((), tuple(said), error)
    return PartResult(answers, tuple(said), None, getattr(source, "restarted", False))


def _series_again(place: FileRange, given: Inputs, number: int) -> Any:
    return series_of(given, source_of(place), lambda _: None)[number][1]


def read_each(
    given: Inputs,
    paths: Sequence[str],
    ask: Callable[[Any], Any] | None,
    *,
    counted: bool = False,
    again: bool = False,
) -> list[list[tuple[str, Any]]]:
    """Return the series of every file, or what `ask` makes of them there; `again` says that it asks more than once."""
    if given.dask is not None and "-" in paths:
        raise InvalidArgumentError(
            "standard input does not reach a cluster; write it to a file that the workers can read"
        )
    if given.dask is not None and ask is None:
        ask = functools.partial(carried, most=TRAVELS)
    with _engine(given) as engine:
        jobs, most = jobs_of(paths, divide=False), HELD / max(len(paths), 1)
        read = functools.partial(
            answer_of, given=replace(given, files=()), ask=ask, counted=counted, again=most * again
        )
        if ask is None and isinstance(engine, LocalExecutor) and engine.spreads(jobs):
            read = functools.partial(
                read, again=0.0, travels=most if again else 1.0
            )  # 1: its sum alone, and where it is
        answers = engine.each(read, jobs, _bar(), lenient=given.lenient)
    for path, answer in zip(paths, answers, strict=True):
        _tell(answer.reports)
        if answer.error is not None:
            _tell([f"left out: {answer.error}"])
        elif not answer.found:
            raise InvalidArgumentError(f"{path}: no line has the tag {given.tag[0]!r}")
    return [list(answer.found) for answer in answers]


def merged_whole(given: Inputs) -> Any:
    """Return all series merged into one data type, every interval of it; None where the files are too large for that."""
    paths = [path for _, path in expand(given.files)]
    if "-" not in paths and sum(job.size for job in jobs_of(paths, divide=False)) > TOGETHER:
        return None
    loaded = without_aggregates(load(given, carried if given.dask is not None else None))
    return merge([one.data for one in loaded])


def totals_of_all(given: Inputs) -> Any:
    """Return the sum of all files: `Totals`, or a lone summary."""
    with _engine(given) as engine:
        return _total(given, engine, totals_of)


def slots_of_all(given: Inputs, width: float, align: str = "absolute") -> Slots:
    """Return the sum of all files by slots of time, tags apart."""
    with _engine(given) as engine:
        reading = Reading(given.format_in, next(iter(given.series), None), lenient=given.lenient)
        jobs = tuple(jobs_of([path for _, path in expand(given.files)], divide=False))
        origin = ClusterLog(jobs, engine, reading, align).origin()
        slots: Slots = _total(
            given, engine, functools.partial(slots_of, width=width, origin=origin)
        )
    return slots


def _total(given: Inputs, engine: Engine, ask: Callable[[Any], Any]) -> Any:
    # Ranges of lines only where nothing that is said of a file depends on seeing all of it.
    divide = not (given.lenient or given.tag) and given.begin is None and given.end is None
    jobs = jobs_of([path for _, path in expand(given.files)], divide=divide)
    read = functools.partial(answer_of, given=replace(given, files=()), ask=ask, as_one=True)
    answer = engine.total(read, jobs, _bar(), lenient=given.lenient)
    _tell(answer.reports)
    if not answer.found:
        raise InvalidArgumentError("none of the files holds what was asked for")
    whole = added([part for _, part in answer.found])
    _tell(whole.run.notes)
    return whole


@contextlib.contextmanager
def _engine(given: Inputs) -> Iterator[Engine]:
    if given.dask is None:
        yield LocalExecutor(given.jobs)
        return
    with local_cluster(given.dask, given.jobs) as client:
        yield DaskExecutor(client)


def _bar() -> Callable[[int, int], None]:
    context = click.get_current_context(silent=True)
    quiet = context is not None and bool((context.find_root().obj or {}).get("quiet"))
    return bar("reading", False if quiet else None)


def _tell(texts: Sequence[str]) -> None:
    for text in texts:
        note(text)


# ------------------------------------------------------------
# From files to the runs that are set side by side: one series per file, or series by their names.


def pairs_of(
    given: Inputs, base: tuple[str, ...], new: tuple[str, ...]
) -> dict[str, tuple[list[Any], list[Any]]]:
    """Series → the runs of either side; files of one series each are a pair whatever it is called."""
    from latencykit.errors import InvalidArgumentError

    if (
        bool(given.files) == bool(base or new)
        or (given.files and len(given.files) != 2)
        or bool(base) != bool(new)
    ):
        raise InvalidArgumentError(
            "a comparison takes two FILES, BASE and NEW, or several runs per side: --base 'a*.txt' --new 'b*.txt', "
            "or a --base or --new for each run"
        )
    chosen = ([given.files[0]], [given.files[1]]) if given.files else (list(base), list(new))
    paths = [[path for _, path in expand(files)] for files in chosen]
    again = [path for files in chosen for path in twice(files)]
    if again:
        raise InvalidArgumentError(
            f"{again[0]}: is named twice on one side; a run counts once, or its copies would pass for more evidence"
        )
    read = _each_file(replace(given, files=(*paths[0], *paths[1])))
    sides = [read[: len(paths[0])], read[len(paths[0]) :]]
    if all(len(run) == 1 for side in sides for run in side):
        return {"": ([run[0].data for run in sides[0]], [run[0].data for run in sides[1]])}
    held = [{one.name: one.data for one in run} for side in sides for run in side]
    common = [name for name in held[0] if all(name in run for run in held)]
    if not common:
        raise InvalidArgumentError(
            f"the files share no series: {' and '.join(', '.join(run) for run in held[:2])}; choose with --series"
        )
    here = len(sides[0])
    return {
        name: ([run[name] for run in held[:here]], [run[name] for run in held[here:]])
        for name in common
    }


def runs_of(given: Inputs) -> dict[str, Any]:
    """Name → one series per file: the only one, or the one that sums up the others."""
    from latencykit.errors import InvalidArgumentError

    found: list[tuple[str, str, Any]] = []
    named = expand(given.files)
    for (label, path), series in zip(
        named, _each_file(replace(given, files=tuple(path for _, path in named))), strict=True
    ):
        chosen = [one for one in series if one.data.run.aggregate] or series
        if len(chosen) > 1:
            names = ", ".join(one.name for one in chosen[:6])
            raise InvalidArgumentError(
                f"{path}: holds several series ({names}); choose one with --series or --tag"
            )
        found.append((label or chosen[0].name, path, chosen[0].data))
    names_used = [name for name, _, _ in found]
    return {name if names_used.count(name) == 1 else path: data for name, path, data in found}


def _each_file(given: Inputs) -> list[list[Input]]:
    """The series of every file; none may be without."""
    from latencykit.errors import InvalidArgumentError

    read = load_files(given)
    if not all(read):
        raise InvalidArgumentError("none of the files holds what was asked for")
    for series in read:
        tell_notes(series)
    return read


def with_buckets(loaded: list[Any]) -> list[Any]:
    """Leave out series of printed numbers, unless there is nothing else."""
    from latencykit.core.summary import Summary

    held = [one for one in loaded if not isinstance(one.data, Summary)] or loaded
    for one in loaded:
        if one not in held:
            note(f"{one.name}: left out: it holds printed numbers only, no distribution")
    return held
