"""`retime`: response times from the schedule, for tools that time requests from their send."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from latencykit import errors
from latencykit._arrays import ragged
from latencykit._text import option
from latencykit._typing import Floats, Ints, PathOrFrame
from latencykit.analysis.given import as_data
from latencykit.core.samples import Samples
from latencykit.units import format_count, format_duration, format_rate

_SLACK = 0.05  # of an interval: variation of the pacing
_MOST_RATIO = 1.5  # of the rate that is stated: more sends, but for a few, are on no such schedule
_FEW = 20
_MOST = 1 << 25  # requests that are added: each is a row, of 100 bytes while it is computed


def retime(
    samples: Samples | PathOrFrame,
    *,
    rate: float | None = None,
    connections: int | None = None,
    force: bool = False,
    unit: str | None = None,
) -> Samples:
    """Return samples timed from when each request was due, with those that were never sent.

    Each connection is due to send every ``connections / rate`` seconds. A send that comes late
    because the reply before was late, and is followed by sends that make up for it, belongs to the
    due time that it made up for: response = end − due time. Due times that no send makes up for
    get the requests that were never sent; they were answered when the one that delayed them was. A
    steady drift of the pacing does not count as lateness.

    Parameters
    ----------
    samples : Samples, path or frame
        With start times.
    rate : float, optional
        Requests per second of all connections together; by default what the source says.
    connections : int, optional
        The number of connections, if the samples have no connection column; by default what the
        source says, or the largest number of requests under way at once.
    force : bool, default False
        Re-time even what is already timed from a schedule.
    unit : str, optional
        Of a path or frame whose numbers state none, as for `lk.read`.

    Returns
    -------
    Samples
        Sorted by due time; ``measure="response"``, ``corrected="us"``. Requests that were never
        sent start when they could have been sent.

    Raises
    ------
    AlreadyCorrectedError
        If the samples are already timed from a schedule or corrected.
    DataNotAvailableError
        Without start times.
    InputTooLargeError
        If more than 33 million requests would be added.
    InvalidArgumentError
        Without a rate, and for one that the sends exceed by half.

    Examples
    --------
    >>> from latencykit.simulate import Server, Stall, catch_up_loop
    >>> late = catch_up_loop(Server("1ms", stalls=[Stall(5, 3)], ideal=True), rate=100, duration=20)
    >>> raw, timed = late.histogram(), retime(late, rate=100).histogram()
    >>> [round(h.percentile(90) / 1e6) for h in (raw, timed)]
    [1, 1201]
    """
    samples = cast("Samples", as_data(samples, "retime", unit))
    run = samples.run
    name = run.source or run.tool or "these samples"
    if run.corrected in ("us", "tool", "schedule") and not force:
        raise errors.AlreadyCorrectedError(
            f"{name}: already timed from a schedule or "
            "corrected; in Python, force=True re-times them"
        )
    errors.require(samples, Samples, "samples, which have the start of each request")
    if samples.start is None:
        raise errors.DataNotAvailableError(
            "re-timing needs the start of each request, which these samples do not have"
        )
    speed = rate or run.rate
    if not speed or speed <= 0:
        raise errors.InvalidArgumentError(
            f"re-timing needs the rate of all connections together: {option('rate')}"
        )
    if not len(samples):
        return samples.with_run(measure="response", corrected="us")
    order = np.argsort(samples.start, kind="stable")
    start, took = samples.start[order], samples.duration[order]
    seconds = max(float(start[-1] - start[0]) / 1e9, 1 / speed)
    if rate and start.size - _FEW > _MOST_RATIO * rate * seconds:
        raise errors.InvalidArgumentError(
            f"{name}: {format_rate(start.size / seconds)} per second were sent, more than "
            f"{rate:g}; {option('rate')} is the rate of all connections together"
        )
    several = connections or run.connections
    if not several:  # the largest number of requests under way at once
        ended = np.searchsorted(np.sort(start + took), start, "right")
        several = int((np.arange(1, start.size + 1) - ended).max(initial=1))
    column = None if samples.connection is None else samples.connection[order]
    chain = chains(start, took, column, several, 1e9 * several / speed)
    several = int(chain.max(initial=0)) + 1
    until = np.inf if not run.duration else start[0] + run.duration * 1e9
    return _on_schedule(samples, order, chain, speed, several, until)


def chains(
    start: Ints, took: Ints, connection: Ints | None, connections: int, interval: float = 0.0
) -> Ints:
    """Return which connection sent each request, int64, shape (n,), numbered from 0."""
    # Without a column, a send is assumed to come from the connection that has been free the
    # longest: of all requests in the order in which they free their connection, the r-th is
    # followed, on it, by the send number r + N.
    if connection is not None:
        return np.unique(connection, return_inverse=True)[1].astype(np.int64)
    several = max(1, min(connections, start.size))
    free = np.maximum(start + took, start + interval)
    before = np.arange(start.size)
    before[several:] = np.argsort(free, kind="stable")[: start.size - several]
    before = np.minimum(before, np.arange(start.size))  # never a request that was sent later
    # Follow each chain to its first request, in steps that double.
    while (before >= several).any() and (before != before[before]).any():
        before = before[before]
    return np.unique(before, return_inverse=True)[1].astype(np.int64)


def _on_schedule(
    samples: Samples, order: Ints, chain: Ints, rate: float, connections: int, until: float
) -> Samples:
    """Assign the sends of every connection to its due times, none after `until`."""
    assert samples.start is not None
    start, took, interval = samples.start[order], samples.duration[order], 1e9 * connections / rate
    end = start + took
    last = np.lexsort((start, chain))[np.flatnonzero(np.diff(np.sort(chain), append=-1))]
    # Due times passed after the last send, too, if its reply was late.
    reach = np.maximum(np.minimum(end[last], until) - start[last], interval).astype(np.int64)
    times, of = np.concatenate((start, start[last] + reach)), np.concatenate((chain, chain[last]))
    by_chain = np.lexsort((times, of))
    sent = times[by_chain]
    first = np.diff(of[by_chain], prepend=-1) != 0
    # What a later send makes up for is lateness; the rest was omitted, or less than an interval.
    excess = np.where(first, 0.0, np.diff(sent, prepend=sent[:1]) - interval)
    lag = _lindley(excess, first)
    # Nothing is due after the end of the run: what the sends outlast it by is backlog.
    final = np.append(first[1:], True)
    lag[final] = np.maximum(lag[final] - np.maximum(sent[final] - until, 0.0), 0.0)
    # The smallest lag from each send to the last of its connection.
    group, span = np.cumsum(first) - 1, float(lag.max(initial=0.0)) + 1.0
    shifted = (lag + group * 2 * span)[::-1]
    kept = np.minimum.accumulate(shifted)[::-1] - group * 2 * span
    grown = np.where(first, 0.0, np.diff(kept, prepend=0.0))
    late = lag - kept
    replied = end[np.minimum(by_chain, start.size - 1)][:-1]
    delayed = np.concatenate(([False], replied > (sent - late)[1:])) & ~first
    # Less than an interval, with the reply there in time, is the timer's variation.
    late = np.where(delayed | (late >= interval), late, 0.0)
    slot = np.rint(sent - late).astype(np.int64)
    omitted = np.where(grown > interval * (1 - _SLACK), np.floor(grown / interval + _SLACK), 0)
    if omitted.sum() > _MOST:
        raise errors.InputTooLargeError(
            f"{samples.run.source or samples.run.tool or 'these samples'}: re-timing would add "
            f"{omitted.sum():,.0f} requests, at most {_MOST:,} are added; "
            "leave out the slowest requests, or check their unit"
        )
    following, place = ragged(omitted)
    before = following - 1
    missing = np.rint(slot[before] + (place + 1) * interval).astype(np.int64)
    behind = by_chain[before]
    # Delayed by the reply, or by the load generator itself.
    ready = np.where(end[behind] > missing, end[behind], sent[before + 1])
    usual = int(np.median(took))
    ready = np.maximum(ready, missing + usual)
    due = np.empty(times.size, np.int64)
    due[by_chain] = slot
    due = np.concatenate((due[: start.size], missing))
    turn = np.argsort(due, kind="stable")
    start = np.concatenate((start, np.maximum(ready - usual, missing)))
    end = np.concatenate((end, np.maximum(ready, start[len(samples) :])))
    notes = [
        (
            f"timed from a schedule: one request every {format_duration(interval)} on each of "
            f"{connections} connections"
        )
    ]
    if missing.size:
        notes.append(f"{format_count(missing.size)} requests that were never sent were added")
    rows = np.concatenate((order, order[behind]))

    def column(values: NDArray[np.generic] | None) -> NDArray[np.generic] | None:
        return None if values is None else values[rows][turn]

    outcome = None
    if samples.outcome is not None:
        added = np.zeros(missing.size, np.int8)
        outcome = np.concatenate((samples.outcome[order], added))[turn]
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
    ).with_columns(samples.columns.select(rows[turn]))  # fmt: skip


def _lindley(steps: Floats, first: NDArray[np.bool_]) -> Floats:
    """Running sum that never falls below zero (Lindley), restarted at each `first`."""
    group = np.cumsum(first) - 1
    total = np.cumsum(steps)
    span = float(np.abs(steps).sum()) + 1.0
    least: Floats = np.minimum.accumulate(total - group * 2 * span) + group * 2 * span
    return total - least
