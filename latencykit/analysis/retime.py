"""`retime`: response times from the schedule, for load generators that report how long each request took from its send."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latencykit.core.samples import Samples
from latencykit.errors import AlreadyCorrectedError, DataNotAvailableError, InvalidArgumentError
from latencykit.units import format_count, format_duration

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["chains", "retime"]

_SLACK = 0.05  # of an interval: what pacing wavers by


def retime(
    samples: Samples,
    rate: float | None = None,
    connections: int | None = None,
    *,
    force: bool = False,
) -> Samples:
    """Return samples timed from when each request was due, those that were never sent put in.

    Each connection has a schedule of one slot every ``connections / rate`` seconds. A send that comes late because the
    reply before was late, and is followed by sends that make up for it, belongs to the slot that it made up for:
    response = end − slot. Slots that nobody makes up for are filled with the requests that would have been in them;
    they were answered when the one that held them up was. A steady drift of the pacing is no lateness.

    Parameters
    ----------
    samples : Samples
        With start times.
    rate : float, optional
        Requests per second of all connections together; what the source says unless given.
    connections : int, optional
        The number of connections, where the samples have no connection column; what the source says, or the largest
        number of requests that were under way at once, unless given.
    force : bool, default False
        Time anew even what already comes from a schedule.

    Returns
    -------
    Samples
        Sorted by due time; ``measure="response"``, ``corrected="us"``. Rows that were never sent have as start the
        moment at which they could have been.

    Raises
    ------
    AlreadyCorrectedError
        Where the samples were measured from a schedule or corrected already.
    DataNotAvailableError
        Without start times.

    Examples
    --------
    >>> from latencykit.simulate import Server, Stall, catch_up_loop
    >>> late = catch_up_loop(Server("1ms", stalls=[Stall(5, 3)], ideal=True), rate=100, duration=20)
    >>> raw, timed = late.histogram(), retime(late, rate=100).histogram()
    >>> [round(h.percentile(90) / 1e6) for h in (raw, timed)]
    [1, 1201]
    """
    run = samples.run
    if run.corrected in ("us", "tool", "schedule") and not force:
        raise AlreadyCorrectedError(
            f"{run.source or run.tool or 'these samples'}: already timed from a schedule or corrected; "
            "in Python, force=True does it anew"
        )
    if samples.start is None:
        raise DataNotAvailableError(
            "these samples do not know when each request was sent, so there are no slots to lay them in"
        )
    speed = rate or run.rate
    if not speed or speed <= 0:
        raise InvalidArgumentError(
            "re-timing needs the rate of all connections together: rate=... (--rate)"
        )
    if not len(samples):
        return samples.with_run(measure="response", corrected="us")
    order = np.argsort(samples.start, kind="stable")
    start, took = samples.start[order], samples.duration[order]
    several = connections or run.connections or _most_under_way(start, took)
    column = None if samples.connection is None else samples.connection[order]
    chain = chains(start, took, column, several, 1e9 * several / speed)
    several = int(chain.max(initial=0)) + 1
    until = np.inf if not run.duration else start[0] + run.duration * 1e9
    found = _lay(start, took, chain, 1e9 * several / speed, until)
    return _rebuilt(samples, order, found, speed, several)


def chains(
    start: Ints, took: Ints, connection: Ints | None, connections: int, interval: float = 0.0
) -> Ints:
    """Return which connection sent each request, int64, shape (n,), numbered from 0.

    Without a column, a send is taken to come from the connection that has been free the longest: of all requests in
    the order in which they set their connection free, the r-th is followed, on it, by the send number r + N.
    """
    if connection is not None:
        return np.unique(connection, return_inverse=True)[1].astype(np.int64)
    several = max(1, min(connections, start.size))
    free = np.maximum(start + took, start + interval)
    before = np.arange(start.size)
    before[several:] = np.argsort(free, kind="stable")[: start.size - several]
    before = np.minimum(
        before, np.arange(start.size)
    )  # nobody follows a request that was sent later
    while (before >= several).any() and (
        before != before[before]
    ).any():  # to the first of its chain, ever farther
        before = before[before]
    return np.unique(before, return_inverse=True)[1].astype(np.int64)


def _most_under_way(start: Ints, took: Ints) -> int:
    """The largest number of requests under way at once."""
    ended = np.searchsorted(np.sort(start + took), start, "right")
    return int((np.arange(1, start.size + 1) - ended).max(initial=1))


@dataclass(frozen=True)
class _Laid:
    """Sends laid into slots; missing rows name the send that they wait behind."""

    due: Ints
    behind: Ints
    missing_due: Ints
    missing_end: Ints


def _lay(start: Ints, took: Ints, chain: Ints, interval: float, until: float) -> _Laid:
    """Lay the sends of every connection into its slots; no slot lies behind `until`.

    The lag of a connection grows by (gap − interval) at each send and never below zero. What of it is made up for later
    is lateness; what remains for good was slots left out, or drift where it is less than a slot.
    """
    end = start + took
    last = np.lexsort((start, chain))[np.flatnonzero(np.diff(np.sort(chain), append=-1))]
    # Slots passed behind the last send, too, if its reply was late: they end with a send that never came.
    reach = np.maximum(np.minimum(end[last], until) - start[last], interval).astype(np.int64)
    times, of = np.concatenate((start, start[last] + reach)), np.concatenate((chain, chain[last]))
    order = np.lexsort((times, of))
    sent = times[order]
    first = np.diff(of[order], prepend=-1) != 0
    excess = np.where(first, 0.0, np.diff(sent, prepend=sent[:1]) - interval)
    lag = _lindley(excess, first)
    kept = _least_from_here(lag, first)
    grown = np.where(first, 0.0, np.diff(kept, prepend=0.0))
    late = lag - kept
    held = (
        np.concatenate(([False], end[np.minimum(order, start.size - 1)][:-1] > (sent - late)[1:]))
        & ~first
    )
    late = np.where(
        held | (late >= interval), late, 0.0
    )  # less, with the reply there in time, is the timer's wavering
    slot = np.rint(sent - late).astype(np.int64)
    left_out = np.where(
        grown > interval * (1 - _SLACK), np.floor(grown / interval + _SLACK), 0
    ).astype(np.int64)
    before = np.repeat(np.arange(sent.size) - 1, left_out)
    number = np.arange(before.size) - np.repeat(np.cumsum(left_out) - left_out, left_out) + 1
    missing = np.rint(slot[before] + number * interval).astype(np.int64)
    free = end[order[before]]
    ready = np.where(
        free > missing, free, sent[before + 1]
    )  # held up by the reply, or by the load generator itself
    usual = int(np.median(took))
    due = np.empty(times.size, np.int64)
    due[order] = slot
    return _Laid(due[: start.size], order[before], missing, np.maximum(ready, missing + usual))


def _lindley(steps: Floats, first: NDArray[np.bool_]) -> Floats:
    """Running sum of steps that never falls below zero, begun anew at each `first`."""
    group = np.cumsum(first) - 1
    total = np.cumsum(steps)
    span = float(np.abs(steps).sum()) + 1.0
    least: Floats = np.minimum.accumulate(total - group * 2 * span) + group * 2 * span
    return total - least


def _least_from_here(lag: Floats, first: NDArray[np.bool_]) -> Floats:
    """The smallest value from each place to the end of its group."""
    group = np.cumsum(first) - 1
    span = float(lag.max(initial=0.0)) + 1.0
    least: Floats = np.minimum.accumulate((lag + group * 2 * span)[::-1])[::-1] - group * 2 * span
    return least


def _rebuilt(samples: Samples, order: Ints, found: _Laid, rate: float, connections: int) -> Samples:
    """The samples with their due times, and rows for those that were never sent."""
    extra = found.missing_due.size
    assert samples.start is not None
    usual = int(np.median(samples.duration)) if len(samples) else 0
    start = np.concatenate(
        (samples.start[order], np.maximum(found.missing_end - usual, found.missing_due))
    )
    end = np.concatenate(
        (
            (samples.start + samples.duration)[order],
            np.maximum(found.missing_end, start[len(samples) :]),
        )
    )
    due = np.concatenate((found.due, found.missing_due))
    turn = np.argsort(due, kind="stable")
    interval = 1e9 * connections / rate
    notes = [
        f"timed from a schedule of one request every {format_duration(interval)} on each of {connections} connections"
    ]
    if extra:
        notes.append(f"{format_count(extra)} requests that were never sent were put in")
    rows = np.concatenate((order, order[found.behind] if extra else np.zeros(0, np.int64)))

    def column(values: NDArray[np.generic] | None) -> NDArray[np.generic] | None:
        return None if values is None else values[rows][turn]

    outcome = None
    if samples.outcome is not None:
        outcome = np.concatenate((samples.outcome[order], np.zeros(extra, np.int8)))[turn]
    run = samples.run.with_notes(*notes).replace(
        measure="response",
        corrected="us",
        rate=rate,
        connections=connections,
        expected_interval=interval,
    )
    return Samples(
        start=start[turn], duration=(end - start)[turn], intended=due[turn], outcome=outcome,
        connection=column(samples.connection), tag=column(samples.tag), run=run,
    )  # fmt: skip
