"""From files to the runs that are set side by side: one series a file, or series by their names."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from latencykit.cli.common import expand, load_files, note, tell_notes, twice

if TYPE_CHECKING:
    from latencykit.cli.common import Input, Inputs

__all__ = ["pairs_of", "runs_of", "with_buckets"]


def pairs_of(given: Inputs, base: tuple[str, ...], new: tuple[str, ...]) -> dict[str, tuple[list[Any], list[Any]]]:
    """Series → the runs of either side; files of one series each are a pair whatever it is called."""
    from latencykit.errors import UsageError

    if bool(given.files) == bool(base or new) or (given.files and len(given.files) != 2) or bool(base) != bool(new):
        raise UsageError(
            "a comparison takes two FILES, BASE and NEW, or several runs a side: --base 'a*.txt' --new 'b*.txt', "
            "or a --base or --new for each run"
        )
    chosen = ([given.files[0]], [given.files[1]]) if given.files else (list(base), list(new))
    paths = [[path for _, path in expand(files)] for files in chosen]
    again = [path for files in chosen for path in twice(files)]
    if again:
        raise UsageError(f"{again[0]}: is named twice on one side; a run counts once, or its copies would pass for more evidence")
    read = _each_file(replace(given, files=(*paths[0], *paths[1])))
    sides = [read[: len(paths[0])], read[len(paths[0]) :]]
    if all(len(run) == 1 for side in sides for run in side):
        return {"": ([run[0].rung for run in sides[0]], [run[0].rung for run in sides[1]])}
    held = [{one.name: one.rung for one in run} for side in sides for run in side]
    common = [name for name in held[0] if all(name in run for run in held)]
    if not common:
        raise UsageError(f"the files share no series: {' and '.join(', '.join(run) for run in held[:2])}; choose with --series")
    here = len(sides[0])
    return {name: ([run[name] for run in held[:here]], [run[name] for run in held[here:]]) for name in common}


def runs_of(given: Inputs) -> dict[str, Any]:
    """Name → one series a file: the only one, or the one that sums up the others."""
    from latencykit.errors import UsageError

    found: list[tuple[str, str, Any]] = []
    named = expand(given.files)
    for (label, path), series in zip(named, _each_file(replace(given, files=tuple(path for _, path in named))), strict=True):
        chosen = [one for one in series if one.rung.run.aggregate] or series
        if len(chosen) > 1:
            names = ", ".join(one.name for one in chosen[:6])
            raise UsageError(f"{path}: holds several series ({names}); choose one with --series or --tag")
        found.append((label or chosen[0].name, path, chosen[0].rung))
    names_used = [name for name, _, _ in found]
    return {name if names_used.count(name) == 1 else path: rung for name, path, rung in found}


def _each_file(given: Inputs) -> list[list[Input]]:
    """The series of every file; none may be without."""
    from latencykit.errors import UsageError

    read = load_files(given)
    if not all(read):
        raise UsageError("none of the files holds what was asked for")
    for series in read:
        tell_notes(series)
    return read


def with_buckets(loaded: list[Any]) -> list[Any]:
    """Leave out series of printed numbers, unless there is nothing else."""
    from latencykit.summary import Summary

    held = [one for one in loaded if not isinstance(one.rung, Summary)] or loaded
    for one in loaded:
        if one not in held:
            note(f"{one.name}: left out: it holds printed numbers only, no distribution")
    return held
