"""Facts that a source states about the measurement itself: its provenance, its series' names."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any, Literal, Self, TypeVar

from latencykit._limits import current_limits
from latencykit._records import record
from latencykit._text import format_items, option
from latencykit._typing import is_path_or_frame
from latencykit.errors import IncompatibleDataError, InvalidArgumentError

T = TypeVar("T")

Loop = Literal["open", "paced", "closed", "unknown"]
Measure = Literal["service", "response", "unknown"]
Corrected = Literal["none", "tool", "schedule", "us", "unknown"]
UnitFrom = Literal["file", "format", "option", "assumed"]
Code = Literal["doubt", "unit", "begin", "period", "failures"]

CONTRADICTS = "contradicts"
"""In the note on reported numbers that cannot be true together."""

PROVENANCE = ("tool", "loop", "corrected", "failures_known")
"""Facts that tables carry in columns of these names."""

SERVER_SIDE = "measured by the server: excludes what requests waited before they arrived"

CLOSED: dict[str, Any] = {"loop": "closed", "measure": "service", "corrected": "none"}
"""Of a tool that sends when the last reply has come, and times a request from its send."""

SCHEDULED: dict[str, Any] = {"loop": "open", "measure": "response", "corrected": "schedule"}
"""Of a tool that sends by a schedule, and times a request from the moment that it was due."""

UNIT_NAMES = {"ns": "nanoseconds", "us": "microseconds", "ms": "milliseconds", "s": "seconds"}


class Note(str):
    """A note that something depends on, by its code; its text is for people alone."""

    # Code ``doubt``: it concerns all numbers of a series (what could not be read, an unlikely
    # unit); ``unit``: the unit is assumed, which headings say; ``begin``: the report leaves out the
    # first `value` seconds; ``period``: events occur at one; ``failures``: `value` requests failed,
    # in this part or not.

    __slots__ = ("code", "value")
    code: Code
    value: float

    def __new__(cls, text: str, code: Code = "doubt", value: float = 0.0) -> Self:
        """Return the text with its code."""
        note = super().__new__(cls, text)
        note.code, note.value = code, value
        return note


def code_of(note: str) -> str:
    """Return the code of a note; "" where nothing depends on it."""
    return getattr(note, "code", "")


FAILURES = ("failed", "timeouts", "dropped", "unfinished")


@record(kw_only=True)
class Run:
    """Facts about the measurement that the source states; every data type carries one.

    Attributes
    ----------
    tool, version, command : str or None
        The program that made the output.
    source, format : str or None
        The file's name, and the name of its format.
    series : str or None
        The series' name in a file that has several.
    loop : {"open", "paced", "closed", "unknown"}
        Requests are sent on a schedule (open), by connections that wait for the reply and then for
        their next turn (paced), or by connections that send as soon as they can (closed).
    measure : {"service", "response", "unknown"}
        Time from the send (service), or from the moment the request was due (response).
    corrected : {"none", "tool", "schedule", "us", "unknown"}
        Correction for coordinated omission: none, back-filled by the tool, timed from a schedule,
        or corrected by latencykit.
    start : float or None
        Start of the measurement, seconds since the epoch.
    duration : float or None
        Its length in seconds.
    rate, achieved : float or None
        Requests per second intended and sent, over all connections.
    connections : int or None
        Connections, users or threads that sent requests.
    expected_interval : float or None
        Nanoseconds between two requests of one connection, if the source or a correction states it.
    failed, timeouts, dropped, unfinished : int
        Requests that did not succeed, by outcome.
    failures_known : bool
        False where the source reports failures in a form that is not understood; there may be more.
    timeout : float or None
        Nanoseconds after which the tool gave up on a request.
    unit : str
        Unit of the values as stored in the source.
    unit_from : {"file", "format", "option", "assumed"}
        Origin of that unit.
    aggregate : bool
        True for a series that sums up the others of the same source.
    tags : tuple of str
        Tags of the lines in this series; empty for untagged ones.
    values_are_runs : bool
        True where each value is a run of a benchmark (a process, a repetition), not a request.
    supported : float or None
        Highest percentile that the richer data behind this source supported, where it says so.
    notes : tuple of str
        Facts needed to interpret the numbers, one sentence each.
    """

    tool: str | None = None
    version: str | None = None
    command: str | None = None
    source: str | None = None
    format: str | None = None
    series: str | None = None
    loop: Loop = "unknown"
    measure: Measure = "unknown"
    corrected: Corrected = "unknown"
    start: float | None = None
    duration: float | None = None
    rate: float | None = None
    achieved: float | None = None
    connections: int | None = None
    expected_interval: float | None = None
    failed: int = 0
    timeouts: int = 0
    dropped: int = 0
    unfinished: int = 0
    failures_known: bool = True
    timeout: float | None = None
    unit: str = "ns"
    unit_from: UnitFrom = "file"
    aggregate: bool = False
    tags: tuple[str, ...] = ()
    values_are_runs: bool = False
    supported: float | None = field(default=None, compare=False)
    notes: tuple[str, ...] = field(default=())

    @property
    def unit_note(self) -> Note | None:
        """The note on a unit that is only assumed; None if the source states it or has none.

        Examples
        --------
        >>> Run(unit="ms", unit_from="assumed").unit_note
        'the unit of the values is not stated: assuming milliseconds; override with unit='
        """
        if self.unit_from != "assumed":
            return None
        if self.unit == "none":
            taken = f"plain numbers; {option('unit', 'ms', repr('ms'))} makes them times"
        elif self.unit in UNIT_NAMES:
            taken = f"assuming {UNIT_NAMES[self.unit]}; override with {option('unit')}"
        else:
            return None
        return Note(f"the unit of the values is not stated: {taken}", "unit")

    def replace(self, **changes: object) -> Run:
        """Return a copy with some fields changed.

        Examples
        --------
        >>> Run(tool="wrk2").replace(rate=500.0).rate
        500.0
        """
        return Run(**vars(self) | changes)

    def with_notes(self, *notes: str) -> Run:
        """Return a copy with further notes, each once.

        Examples
        --------
        >>> Run().with_notes("a", "b").with_notes("a").notes
        ('a', 'b')
        """
        joined = tuple(dict.fromkeys((*self.notes, *notes)))
        return self if joined == self.notes else self.replace(notes=joined)


def require_data(data: object, name: str) -> None:
    """Raise where an argument is not data: only a data type carries a run."""
    if not isinstance(getattr(data, "run", None), Run):
        raise InvalidArgumentError(
            f"{name} takes data from lk.read (a log, samples, a histogram or a summary), "
            f"not {type(data).__name__}{'; lk.read makes it' if is_path_or_frame(data) else ''}"
        )


def failure_counts(run: Run) -> dict[str, int]:
    """Return the numbers of requests without a good latency, by the outcome."""
    return {name: getattr(run, name) for name in FAILURES}


def of_some(run: Run) -> Run:
    """Return the run of some of its intervals: which of its failures are theirs is not known."""
    lost = sum(failure_counts(run).values())
    if not lost:
        return run
    failed = f"{format_items(lost, 'request')} failed: how many of this part is not known"
    none = dict.fromkeys(FAILURES, 0)
    note = Note(f"of the whole log, {failed}", "failures", lost)
    return run.with_notes(note).replace(**none, failures_known=False)


def merge_runs(runs: Sequence[Run]) -> Run:
    """Return the run of several sources together."""
    # Failures add up, the shortest timeout and the earliest start hold for all, notes are joined;
    # other fields that differ become unknown.
    for name, hint in (
        ("unit", f"state {option('unit')} when they are read"),
        ("measure", f"state {option('measure')} when they are read"),
        ("corrected", "merge the raw ones, then correct once"),
    ):
        values = {getattr(run, name) for run in runs} - {"unknown"}
        if len(values) > 1:
            raise IncompatibleDataError(
                f"these cannot be merged: their {name} differs "
                f"({' and '.join(sorted(values))}); {hint}"
            )
    merged: dict[str, Any] = {}
    for item in dataclasses.fields(Run):
        first = getattr(runs[0], item.name)
        same = all(getattr(run, item.name) == first for run in runs)
        merged[item.name] = first if same else item.default
    merged |= {name: sum(getattr(run, name) for run in runs) for name in FAILURES}
    waits = (run.timeout or 0.0 for run in runs if run.timeouts)
    merged["timeout"] = min(waits, default=merged["timeout"]) or None
    starts = [run.start for run in runs if run.start is not None]
    notes = tuple(dict.fromkeys(note for run in runs for note in run.notes))
    for name in ("measure", "corrected"):
        stated = (value for run in runs if (value := getattr(run, name)) != "unknown")
        merged[name] = next(stated, "unknown")
    # One assumption among facts makes the result an assumption.
    origins: tuple[UnitFrom, ...] = ("assumed", "option", "format", "file")
    merged["unit_from"] = next(
        origin for origin in origins if any(run.unit_from == origin for run in runs)
    )
    merged["failures_known"] = all(run.failures_known for run in runs)
    return Run(**merged | {"start": min(starts, default=None), "notes": notes})


# ------------------------------------------------------------
# Series by their names: latency types as tools spell them, and a total before its parts.

TOTAL = "total"
"""Name of the series with all tags, endpoints or other parts of a file."""

_SPELLINGS = (
    ("ttft", "time_to_first_token"),
    ("itl", "inter_token_latency"),
    ("tpot", "time_per_output_token"),
    ("e2el", "request_latency", "e2e", "e2e_latency", "end_to_end_latency"),
)


def series_named(name: str, names: Iterable[str]) -> list[str]:
    """Return the series that a name means: the one so called, else those of the latency type.

    ``"ttft"`` also means ``time_to_first_token``, and ``"rate 2 ttft"`` where a file has several
    runs.

    >>> series_named("ttft", ["request_latency", "time_to_first_token"])
    ['time_to_first_token']
    >>> series_named("e2e", ["constant@2 request_latency", "constant@4 request_latency"])
    ['constant@2 request_latency', 'constant@4 request_latency']
    >>> series_named("GET", ["GET /cart", "POST"])
    []
    """
    known = list(names)
    if name in known:
        return [name]
    spellings = next((row for row in _SPELLINGS if name.lower() in row), ())
    last = {series: re.sub(r" \(\d+\)$", "", series).rsplit(" ", 1)[-1] for series in known}
    for spelling in sorted(spellings, key=lambda spelling: spelling != name.lower()):
        matching = [series for series in known if last[series] == spelling]
        if matching:
            return matching
    return []


def shown_parts(total: Any, parts: Sequence[T]) -> tuple[Any, Sequence[T]]:
    """Return a total, and as many of its parts as fit into one chart or page beside it."""
    # Where these are not all, a note of the total says so.
    most = max(current_limits().series - 1, 0)
    if len(parts) <= most:
        return total, parts
    text = (
        f"shown are the total and the first {most:,} of {len(parts):,} series; "
        f"{option('series')} or {option('tag')} selects others, "
        "--limit series=N (lk.limits) allows more"
    )
    return total.with_run(notes=(text, *total.run.notes)), parts[:most]
