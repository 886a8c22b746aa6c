"""Reading the files of a command: every series, or what a question about each of them answers."""

from __future__ import annotations

import contextlib
import functools
import glob
import os
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from latencykit.cli.options import Inputs, note
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
from latencykit.units import did_you_mean, parse_moment, without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from latencykit.distributed.executors import Engine
    from latencykit.distributed.results import Slots
    from latencykit.distributed.sources import FileRange
    from latencykit.io.source import Source

__all__ = [
    "Input",
    "expand",
    "load",
    "load_files",
    "merged_whole",
    "pairs_of",
    "print_notes",
    "read_each",
    "runs_of",
    "series_of",
    "slots_of_all",
    "totals_of_all",
    "twice",
    "warn_duplicate_files",
    "with_buckets",
]


@dataclass(frozen=True)
class Input:
    """One series of one file."""

    name: str
    data: Any
    path: str = field(compare=False)


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
    print_notes(loaded)
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


def print_notes(loaded: Sequence[Input]) -> None:
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


def warn_duplicate_files(files: Sequence[str]) -> None:
    """Say on standard error which files are named more than once where their counts are added up."""
    found = twice(files)
    if found:
        more = f", and {len(found) - 1:,} others" if len(found) > 1 else ""
        note(f"{found[0]}{more}: named more than once, and its requests count as often")


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
        print_notes(series)
    return read


def with_buckets(loaded: list[Any]) -> list[Any]:
    """Leave out series of printed numbers, unless there is nothing else."""
    from latencykit.core.summary import Summary

    held = [one for one in loaded if not isinstance(one.data, Summary)] or loaded
    for one in loaded:
        if one not in held:
            note(f"{one.name}: left out: it holds printed numbers only, no distribution")
    return held
