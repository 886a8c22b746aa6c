"""Reading the files of a command: every series, or the answer to one question per series."""

from __future__ import annotations

import contextlib
import functools
import glob
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latencykit._limits import check_series
from latencykit._records import record
from latencykit._text import brief_list, without_secrets
from latencykit.cli.options import Inputs, note, progress
from latencykit.errors import DataNotAvailableError, InvalidArgumentError

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from latencykit.core.run import Run
    from latencykit.distributed.executors import LocalExecutor
    from latencykit.distributed.results import BinnedLog
    from latencykit.io.parts import PartResult


@record()
class Input:
    """One series of one file."""

    name: str
    data: Any
    path: str = field(compare=False)
    series: str = field(default="", compare=False)
    """Its name in the file."""
    label: str | None = field(default=None, compare=False)
    """Of the file, if it was named as NAME=path."""


def expand(files: Sequence[str]) -> list[tuple[str | None, str]]:
    """Labels and paths; a glob that the shell left alone is expanded here."""
    paths: list[tuple[str | None, str]] = []
    for given in files:
        if not given:
            raise InvalidArgumentError(
                "a FILE is an empty string; expected a path; is a variable of the shell empty?"
            )
        label, path = None, given
        head, equals, tail = given.partition("=")
        if equals and tail and not os.path.lexists(given) and "/" not in head:
            label, path = head, tail
        matches = [path]
        if not os.path.lexists(path) and glob.has_magic(path):
            from latencykit.io.files import expand as matching

            matches = matching(path)
        if not matches:
            raise InvalidArgumentError(f"{path}: no file matches")
        paths += [(label, match) for match in matches]
    if [path for _, path in paths].count("-") > 1:
        raise InvalidArgumentError(
            "-: standard input is named more than once, and it can be read once only; write it to "
            "a file"
        )
    return paths


def repeated_files(files: Sequence[str]) -> list[str]:
    """Return the files that were named before, by whatever name, and would count more than once."""
    seen: set[object] = set()
    repeated = []
    for _, path in expand(files):
        key: object = path
        # remote or missing: reported when it is read
        with contextlib.suppress(OSError, ValueError):
            status = Path(path).stat()
            key = status.st_dev, status.st_ino
        if key in seen:
            repeated.append(path)
        seen.add(key)
    return list(dict.fromkeys(repeated))


def load(
    given: Inputs,
    ask: Callable[[object], object] | None = None,
    *,
    shown: bool = False,
    notes: bool = True,
    most: float = math.inf,
) -> list[Input]:
    """Read the series that the options select, or what `ask` answers of each."""
    # Without `notes`, the caller prints those of the series. With `shown`, all are for one chart or
    # page; too many are refused before they are read. Of a file, `most` series are asked (all logs
    # without a total); the others are `NotAsked`.
    from latencykit.io.reading import unique_names

    files = load_files(given, ask, shown=shown, most=most)
    entries = [entry for series in files for entry in series]
    if given.merge and ask is None and len(entries) > 1:
        entries = [_merged(entries, "all")]
    names = unique_names(
        [(without_secrets(entry.path), entry.name, entry.data) for entry in entries]
    )
    loaded = [
        replace(entry, name=name, data=data)
        for entry, (name, data) in zip(entries, names.items(), strict=True)
    ]
    if notes:
        print_notes(loaded, every=given.notes)
    return loaded


def _merged(entries: Sequence[Input], name: str) -> Input:
    """Return the requests of all series as one."""
    from latencykit.core.addition import merge

    data = merge([entry.data for entry in without_aggregates(entries)])
    return Input(name, data.with_run(tags=()), entries[0].path, name)


def load_files(
    given: Inputs,
    ask: Callable[[object], object] | None = None,
    *,
    shown: bool = False,
    most: float = math.inf,
) -> list[list[Input]]:
    """Read as `load` does, and return the series file by file, under their names in the file."""
    # Files are read here, or where it pays by processes or on a Dask cluster.
    from latencykit.io.files import size_of, worth_multiprocessing
    from latencykit.io.parts import checked, read_part

    files: list[list[Input]] = []
    labelled = expand(given.files)
    paths = [path for _, path in labelled]
    chosen = given.selection
    if shown and not chosen.lenient:  # each file has a series, or is an error
        check_series(len(paths))
    if given.dask is not None and "-" in paths:
        raise InvalidArgumentError(
            "standard input does not reach a cluster; write it to a file that the workers can read"
        )
    spread = given.dask is not None
    if len(paths) > 1 and given.jobs > 1 and "-" not in paths:
        spread |= worth_multiprocessing([size_of(path) for path in paths])
    chosen = replace(
        chosen,
        columns=chosen.columns or chosen.by not in (None, "tag"),
        jobs=None if spread else given.jobs,
    )
    read = functools.partial(read_part, selection=chosen, ask=ask, shown=shown, most=most)
    if spread:
        results = _read_elsewhere(given, paths, read, travels=ask is None)
    else:
        results = []
        alone = f"reading {'standard input' if paths[0] == '-' else paths[0]}" if paths else ""
        with progress(alone) if len(paths) == 1 else counted_files() as count:
            for done, path in enumerate(paths, 1):
                result = read(path)
                results.append(result if chosen.lenient else checked(result))
                if count is not None:
                    count(done, len(paths))
    for path, result in zip(paths, results, strict=True):
        for text in result.reports:
            note(text)
        if result.error is not None:
            note(f"left out: {result.error}")
        elif not result.series:
            raise InvalidArgumentError(f"{path}: no line has the tag {chosen.tags[0]!r}")
    for (label, path), result in zip(labelled, results, strict=True):
        series = result.series
        names = [
            name if label is None else label if len(series) == 1 else f"{label}:{name}"
            for name, _ in series
        ]
        files.append(
            [
                Input(name, data, path, own, label)
                for name, (own, data) in zip(names, series, strict=True)
            ]
        )
    return files


_NOTED = 2
"""Lines of notes on the series of a command; of more, ``--notes`` prints the rest."""


def important_notes(run: Run, *, every: bool = False) -> list[str]:
    """Return the most important note of a run, or all; the unit stands in a table's heading."""
    notes = [text for text in run.notes if text != run.unit_note]
    return notes if every else notes[:1]


def print_notes(loaded: Sequence[Input], *, every: bool = False) -> None:
    """Print the notes of each series, once what is true of all series of a file."""
    series = Counter(entry.path for entry in loaded)
    messages: dict[tuple[str, str], list[str]] = {}
    for entry in loaded:
        for text in important_notes(entry.data.run, every=every):
            messages.setdefault((entry.path, text), []).append(entry.name)
    lines = []
    for (path, text), names in messages.items():
        name = Path(without_secrets(path)).name
        if len(names) == 1 or len(names) < series[path]:
            name = brief_list(names)
        lines.append(f"{'stdin' if name == '-' else name}: {text}")
    shown = lines if every or len(lines) <= _NOTED else lines[: _NOTED - 1]
    for line in shown:
        note(line)
    if len(shown) < len(lines):
        note(f"and notes on {len(lines) - len(shown):,} more series: --notes prints all")


def warn_duplicate_files(files: Sequence[str]) -> None:
    """Note which files are named more than once where their counts are added up."""
    repeated = repeated_files(files)
    if repeated:
        more = f", and {len(repeated) - 1:,} others" if len(repeated) > 1 else ""
        note(f"{repeated[0]}{more}: named more than once, and its requests count as often")


def without_aggregates(loaded: Sequence[Input]) -> list[Input]:
    """Leave out series that sum up others, unless there is nothing else."""
    return [entry for entry in loaded if not entry.data.run.aggregate] or list(loaded)


def with_parts(loaded: Sequence[Input]) -> list[Input]:
    """Leave out series that a tool made of others, but not the totals of parts that are shown."""
    from latencykit.core.run import TOTAL

    parts = {id(entry) for entry in without_aggregates(loaded)}
    return [entry for entry in loaded if id(entry) in parts or entry.series == TOTAL]


def _read_elsewhere(
    given: Inputs, paths: Sequence[str], read: Callable[..., PartResult], *, travels: bool
) -> list[PartResult]:
    """Read files by processes or on a cluster."""
    from latencykit.core.log_cache import BUDGET
    from latencykit.distributed import executors
    from latencykit.io.files import is_url
    from latencykit.io.parts import MAX_TRANSFER_BYTES, for_transfer

    if travels:  # data itself travels to this process, up to a size
        reachable = given.dask is None
        most = BUDGET / len(paths) if reachable else MAX_TRANSFER_BYTES
        if reachable and any(map(is_url, paths)):
            most = math.inf  # the copy of a URL is gone with the process that made it
        read = functools.partial(
            read, ask=functools.partial(for_transfer, most=most, reachable=reachable)
        )
    tasks = executors.tasks_of(paths)
    with _executor(given) as executor, counted_files() as count:
        return executors.read_each(executor, read, tasks, count, lenient=given.selection.lenient)


@contextlib.contextmanager
def counted_files() -> Iterator[Callable[[int, int], None]]:
    """Report on a terminal how many files are read, by what the block calls: (done, of all)."""
    text = "reading"

    def count(done: int, of: int) -> None:
        nonlocal text
        text = f"reading, {done:,} of {of:,} files"

    with progress(lambda: text):
        yield count


TOGETHER = 32 << 20
"""Bytes of files that are merged interval by interval; more are summed where they are read."""


def merged_whole(given: Inputs) -> Any:
    """Return all series merged with every interval; None if the files are too large for that."""
    from latencykit.core.addition import merge
    from latencykit.io.files import size_of
    from latencykit.io.parts import for_transfer

    paths = [path for _, path in expand(given.files)]
    if "-" not in paths and sum(map(size_of, paths)) > TOGETHER:
        return None
    loaded = without_aggregates(load(given, None if given.dask is None else for_transfer))
    return merge([entry.data for entry in loaded])


def totals_of_all(given: Inputs) -> Any:
    """Return the sum of all files: `Totals`, or a lone summary."""
    from latencykit.distributed.results import totals_of

    with _executor(given) as executor:
        return _total(given, executor, totals_of)


def time_bins_of_all(given: Inputs, width: float, align: str = "absolute") -> BinnedLog:
    """Return the sum of all files by time bins, tags apart."""
    from latencykit.distributed.executors import earliest_start, tasks_of
    from latencykit.distributed.results import BinnedLog

    with _executor(given) as executor:
        origin = None
        if align == "absolute":
            tasks = tasks_of([path for _, path in expand(given.files)])
            selection = given.selecting(tags=(), begin=None, end=None, totals=False).selection
            origin = earliest_start(executor, selection, tasks)
        ask = functools.partial(BinnedLog.of, width=width, origin=origin)
        bins: BinnedLog = _total(given, executor, ask)
    return bins


def _total(given: Inputs, executor: Any, ask: Callable[[object], object]) -> Any:
    from latencykit.distributed import executors
    from latencykit.distributed.results import TotalsReader, totals_of
    from latencykit.io.parts import read_part

    chosen = given.selecting(counted=ask is totals_of, totals=False).selection
    tasks = executors.tasks_of([path for _, path in expand(given.files)])
    if not isinstance(executor, executors.LocalExecutor) or executor.spreads(tasks):
        chosen = replace(chosen, jobs=None)
    read: Any = functools.partial(read_part, selection=chosen, ask=ask, key="all")
    if ask is totals_of:
        read = TotalsReader(chosen)
    with counted_files() as count:
        lenient = chosen.lenient
        (result,) = executors.read_each(executor, read, tasks, count, lenient=lenient, add=True)
    for text in result.reports:
        note(text)
    if not result.series:
        raise InvalidArgumentError("none of the files has the series or tags asked for")
    total = executors.added([part for _, part in result.series])
    files = f"{len(tasks):,} files: " if len(tasks) > 1 else ""
    for text in important_notes(total.run, every=given.notes):
        note(f"{files}{text}")
    return total


@contextlib.contextmanager
def _executor(given: Inputs) -> Iterator[LocalExecutor | Executor]:
    from latencykit.distributed.executors import LocalExecutor, dask_executor

    if given.dask is None:
        yield LocalExecutor(given.jobs)
        return
    with dask_executor(given.dask) as executor:
        yield executor


# ------------------------------------------------------------
# From files to the runs that are set side by side: one series per file, or series by their names.


def pairs_of(
    given: Inputs, base: tuple[str, ...], new: tuple[str, ...]
) -> dict[str, tuple[list[Input], list[Input]]]:
    """Series → the runs of either side; files of one series each are a pair whatever its name."""
    # Series are the same by their names in the files, whatever the labels of these.
    from latencykit.analysis.compare import nothing_in_common

    if (
        bool(given.files) == bool(base or new)
        or (given.files and len(given.files) != 2)
        or bool(base) != bool(new)
    ):
        raise InvalidArgumentError(
            "a comparison takes two FILES, BASE and NEW, or several runs per side: --base "
            "'a*.txt' --new 'b*.txt', or a --base or --new for each run"
        )
    chosen = ([given.files[0]], [given.files[1]]) if given.files else (list(base), list(new))
    paths = [[path for _, path in expand(files)] for files in chosen]
    again = [path for files in chosen for path in repeated_files(files)]
    if again:
        raise InvalidArgumentError(
            f"{again[0]}: is named twice on one side; a run counts once, or its copies would pass "
            "for more evidence"
        )
    # several names may be of one file each
    given = given.selecting(anywhere=len(given.selection.series) > 1)
    read = _each_file(replace(given, files=(*chosen[0], *chosen[1])), noted=False)
    split = read[: len(paths[0])], read[len(paths[0]) :]
    halves = [[entry.data for series in files for entry in series] for files in split]
    if problem := nothing_in_common(*halves):
        raise DataNotAvailableError(problem)
    print_notes([entry for series in read for entry in series], every=given.notes)
    sides = [[run for series in files for run in _runs_in(series)] for files in split]
    if all(len(run) == 1 for side in sides for run in side):
        return {"": ([run[0] for run in sides[0]], [run[0] for run in sides[1]])}
    runs = [{entry.series: entry for entry in run} for side in sides for run in side]
    common = [name for name in runs[0] if all(name in run for run in runs)]
    wholes = [[_whole(run) for run in side] for side in sides]
    if not common and all(len(run) == 1 for side in wholes for run in side):
        for run in (run for side in sides for run in side if len(run) > 1):
            note(f"{Path(without_secrets(run[0].path)).name}: its total is compared")
        base_runs, new_runs = ([run[0] for run in side] for side in wholes)
        return {"": (base_runs, new_runs)}
    if not common:
        raise InvalidArgumentError(
            f"the files share no series: {' and '.join(', '.join(run) for run in runs[:2])}; "
            "choose one of each with --series A --series B"
        )
    if others := sorted(set[str]().union(*runs).difference(common)):
        note(f"left out, as not every run contains them: {brief_list(others)}")
    here = len(sides[0])
    return {
        name: ([run[name] for run in runs[:here]], [run[name] for run in runs[here:]])
        for name in common
    }


def _runs_in(series: list[Input]) -> list[list[Input]]:
    """The runs that one file repeats; runs at several loads are series."""
    runs: dict[str, list[Input]] = {}
    for entry in series:
        match = re.fullmatch(r"run (\d+)(?: (.+))?", entry.series)
        if match is None:
            return [series]
        name = match[2] or ""
        runs.setdefault(match[1], []).append(Input(name, entry.data, entry.path, name))
    facts = ("tool", "command", "rate", "connections")
    loads = {
        tuple((entry.name, *(getattr(entry.data.run, fact) for fact in facts)) for entry in run)
        for run in runs.values()
    }
    return [*runs.values()] if len(loads) == 1 else [series]


def _whole(series: list[Input]) -> list[Input]:
    """The series that sum up the others of a file, or all."""
    return [entry for entry in series if entry.data.run.aggregate] or series


def runs_of(given: Inputs) -> dict[str, object]:
    """Name → one series per file: the only one, or the one that sums up the others."""
    runs: list[tuple[str, str, object]] = []
    named = expand(given.files)
    for (label, path), series in zip(
        named, _each_file(replace(given, files=tuple(path for _, path in named))), strict=True
    ):
        chosen = _whole(series)
        if len(chosen) > 1:
            names = ", ".join(entry.name for entry in chosen[:6])
            raise InvalidArgumentError(
                f"{path}: contains several series ({names}); choose one with --series or --tag"
            )
        runs.append((label or chosen[0].name, path, chosen[0].data))
    names_used = [name for name, _, _ in runs]
    return {name if names_used.count(name) == 1 else path: data for name, path, data in runs}


def _each_file(given: Inputs, *, noted: bool = True) -> list[list[Input]]:
    """The series of every file; none may be without."""
    read = load_files(given)
    if given.merge:
        read = [[_merged(series, series[0].name)] for series in read if series]
    if not all(read):
        raise InvalidArgumentError("none of the files has the series or tags asked for")
    if noted:
        print_notes([entry for series in read for entry in series], every=given.notes)
    return read
