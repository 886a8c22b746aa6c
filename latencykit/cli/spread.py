"""The files of a command, read by threads, by processes or on a Dask cluster; the answers are the same."""

from __future__ import annotations

import contextlib
import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from latencykit.cli.common import expand, load, note, series_of, without_aggregates
from latencykit.cluster.answers import TRAVELS, carried, slots_of, totals_of
from latencykit.cluster.engines import Answer, Here, OnDask, added, jobs_of, local_cluster
from latencykit.cluster.held import HELD, held, light
from latencykit.cluster.log import ClusterLog, Reading
from latencykit.cluster.places import source_of
from latencykit.cluster.progress import bar
from latencykit.errors import LatencyKitError, UsageError
from latencykit.merging import merge
from latencykit.run import reporting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from latencykit.cli.common import Inputs
    from latencykit.cluster.answers import Slots
    from latencykit.cluster.engines import Engine
    from latencykit.cluster.places import Place

__all__ = ["merged_whole", "read_each", "slots_of_all", "totals_of_all"]

TOGETHER = 32 << 20
"""Bytes of files that are merged interval by interval; more are summed where they are read."""


def answer_of(
    place: Place, given: Inputs, ask: Callable[[Any], Any] | None, *, counted: bool = False, as_one: bool = False,
    again: float = 0.0, travels: float = 0.0,
) -> Answer:  # fmt: skip
    """Read one place as the options say; what goes wrong is part of the answer.

    A log may take `again` bytes in memory, so that several questions decode it once, or on its way to another process
    `travels` bytes.
    """
    said: list[str] = []
    try:
        source = source_of(place)
        found = series_of(given, source, said.append, part=place.end > 0, counted=counted or ask is totals_of)
        if as_one:  # aggregates sum up the others
            found = [("", rung) for _, rung in found if not rung.run.aggregate] or [("", rung) for _, rung in found]
        if again:
            found = [(name, held(rung, again)) for name, rung in found]
        if travels:
            anew = functools.partial(_series_again, place, given)
            found = [(name, light(rung, travels, functools.partial(anew, k))) for k, (name, rung) in enumerate(found)]
        with reporting(said.append):
            answers = tuple((name, rung if ask is None else ask(rung)) for name, rung in found)
    except LatencyKitError as error:
        return Answer((), tuple(said), error)
    return Answer(answers, tuple(said), None, getattr(source, "restarted", False))


def _series_again(place: Place, given: Inputs, number: int) -> Any:
    return series_of(given, source_of(place), lambda _: None)[number][1]


def read_each(
    given: Inputs, paths: Sequence[str], ask: Callable[[Any], Any] | None, *, counted: bool = False, again: bool = False
) -> list[list[tuple[str, Any]]]:
    """Return the series of every file, or what `ask` makes of them there; `again` says that it asks more than once."""
    if given.dask is not None and "-" in paths:
        raise UsageError("standard input does not reach a cluster; write it to a file that the workers can read")
    if given.dask is not None and ask is None:
        ask = functools.partial(carried, most=TRAVELS)
    with _engine(given) as engine:
        jobs, most = jobs_of(paths, divide=False), HELD / max(len(paths), 1)
        read = functools.partial(answer_of, given=replace(given, files=()), ask=ask, counted=counted, again=most * again)
        if ask is None and isinstance(engine, Here) and engine.spreads(jobs):
            read = functools.partial(read, again=0.0, travels=most if again else 1.0)  # 1: its sum alone, and where it is
        answers = engine.each(read, jobs, _bar(), lenient=given.lenient)
    for path, answer in zip(paths, answers, strict=True):
        _tell(answer.reports)
        if answer.error is not None:
            _tell([f"left out: {answer.error}"])
        elif not answer.found:
            raise UsageError(f"{path}: no line has the tag {given.tag[0]!r}")
    return [list(answer.found) for answer in answers]


def merged_whole(given: Inputs) -> Any:
    """Return all series merged into one rung, every interval of it; None where the files are too large for that."""
    paths = [path for _, path in expand(given.files)]
    if "-" not in paths and sum(job.size for job in jobs_of(paths, divide=False)) > TOGETHER:
        return None
    loaded = without_aggregates(load(given, carried if given.dask is not None else None))
    return merge([one.rung for one in loaded])


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
        slots: Slots = _total(given, engine, functools.partial(slots_of, width=width, origin=origin))
    return slots


def _total(given: Inputs, engine: Engine, ask: Callable[[Any], Any]) -> Any:
    # Ranges of lines only where nothing that is said of a file depends on seeing all of it.
    divide = not (given.lenient or given.tag) and given.begin is None and given.end is None
    jobs = jobs_of([path for _, path in expand(given.files)], divide=divide)
    read = functools.partial(answer_of, given=replace(given, files=()), ask=ask, as_one=True)
    answer = engine.total(read, jobs, _bar(), lenient=given.lenient)
    _tell(answer.reports)
    if not answer.found:
        raise UsageError("none of the files holds what was asked for")
    whole = added([part for _, part in answer.found])
    _tell(whole.run.notes)
    return whole


@contextlib.contextmanager
def _engine(given: Inputs) -> Iterator[Engine]:
    if given.dask is None:
        yield Here(given.jobs)
        return
    with local_cluster(given.dask, given.jobs) as client:
        yield OnDask(client)


def _bar() -> Callable[[int, int], None]:
    context = click.get_current_context(silent=True)
    quiet = context is not None and bool((context.find_root().obj or {}).get("quiet"))
    return bar("reading", False if quiet else None)


def _tell(texts: Sequence[str]) -> None:
    for text in texts:
        note(text)
