"""The reference's rule for requests that were never sent: for every value v, fills at v − I, v − 2I … down to I.

A value below twice the interval gets no fill, and the smallest one lies in [I, 2I), as in ``AbstractHistogram.java`` of
HdrHistogram 2.2.2 (``recordValueWithCountAndExpectedInterval``). Fills are an arithmetic progression, so those that
fall into one bucket are counted, not listed, wherever that is less work: a stall of 100 s at an interval of 1 µs costs
as many steps as the layout has buckets below it, not 100 million.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.core.blocks import Block
from latencykit.core.buckets import HdrBuckets
from latencykit.core.histogram import Histogram
from latencykit.core.histogram_log import HistogramLog
from latencykit.core.samples import Samples
from latencykit.core.summary import Summary
from latencykit.errors import (
    AlreadyCorrectedError,
    DataNotAvailableError,
    InputTooLargeError,
    InvalidArgumentError,
)
from latencykit.units import NANOSECONDS, format_duration, parse_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from latencykit.core.blocks import Part
    from latencykit.core.buckets import Buckets
    from latencykit.core.run import Run

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["back_filled", "correct", "expected_interval_of", "fill", "fills_of"]


_AT_ONCE = 1 << 20  # fills, or buckets, looked at in one pass
_MOST = 1 << 62  # of all counts together


def fills_of(values: Ints, interval: int) -> Ints:
    """Return how many fills each value has, int64."""
    return np.where(values >= interval, values // interval - 1, 0)


def fill(
    values: Ints, counts: Ints, rows: Ints, interval: int, layout: HdrBuckets
) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Yield what is to be added: rows, bucket indices and counts, in pieces of bounded size; pairs may repeat."""
    if interval < 1:
        raise InvalidArgumentError(
            "the expected interval must be at least one step of the values' resolution"
        )
    number = fills_of(values, interval)
    if float((number + 1.0) @ counts) >= _MOST:
        raise InputTooLargeError(
            "the fills would not fit in 63 bits; the interval is far shorter than the stalls"
        )
    held = np.flatnonzero(number)
    values, counts, rows, number = values[held], counts[held], rows[held], number[held]
    least = values - number * interval
    first, last = layout.index_of(least), layout.index_of(values - interval)
    width = last - first + 1
    listed = number <= width
    for piece in _pieces(np.where(listed, number, width)):
        one = piece[listed[piece]]
        source, place = _ragged(number[one])
        index = layout.index_of(least[one][source] + place * interval)
        yield rows[one][source], index, counts[one][source]
        many = piece[~listed[piece]]
        source, place = _ragged(width[many])
        index = first[many][source] + place
        times = _between(
            layout.low_steps(index),
            layout.high_steps(index),
            least[many][source],
            number[many][source],
            interval,
        )
        yield rows[many][source], index, times * counts[many][source]


def _pieces(work: Ints) -> Iterator[Ints]:
    """Positions of the values, so many at a time that their work is bounded."""
    block = np.cumsum(work) // _AT_ONCE
    bounds = np.flatnonzero(np.diff(block, prepend=-1, append=-1))
    for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        yield np.arange(begin, end)


def _ragged(sizes: Ints) -> tuple[Ints, Ints]:
    """For every place of rows of these sizes: the row, and the place within it."""
    row = np.repeat(np.arange(sizes.size), sizes)
    return row, np.arange(row.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def _between(bottom: Ints, top: Ints, least: Ints, number: Ints, interval: int) -> Ints:
    """How many of the fills least, least + I, … (so many) lie in buckets with these edges, none of them below `least`."""
    up_to = np.minimum((top - least) // interval + 1, number)
    below = np.maximum(-((least - bottom) // interval), 0)  # ⌈(bottom − least) / I⌉
    return np.asarray(np.maximum(up_to - below, 0))


# ------------------------------------------------------------
# `correct`: put back the requests that a load generator would have sent, had it not waited for a
# reply.

_WIDE = 1.25  # a bucket whose edges are farther apart than this does not say where its requests lie
_DIGITS = 3
_SHORT, _MANY, _FOR_ONE = (
    1e5,
    5e7,
    1000,
)  # ns; fills, and fills for each request, that only a slip asks for


def correct(
    data: Samples | HistogramLog | Histogram,
    expected_interval: str | float | None = None,
    *,
    rate: float | None = None,
    connections: int | None = None,
    force: bool = False,
) -> HistogramLog | Histogram:
    """Back-fill the requests that coordinated omission left out, by HdrHistogram's rule.

    Every value v of at least twice the expected interval I is taken for a request that kept its connection from
    sending others, which would have taken v − I, v − 2I and so on down to I. That holds for connections that wait for
    each reply and do not make up for what they missed; where the requests were sent late instead, `retime` is right.

    Parameters
    ----------
    data : Samples, HistogramLog or Histogram
    expected_interval : str or float, optional
        Between two requests of one connection, with its unit: ``"10ms"``. A bare number is for values without a unit.
    rate, connections : float and int, optional
        In its place: requests per second of all connections together, and how many those are (1 unless the source
        says); the interval is connections / rate. What the source itself says is used where nothing is given.
    force : bool, default False
        Correct even what is already corrected, and by however short an interval.

    Returns
    -------
    Histogram or HistogramLog
        A log for a log, else a histogram; its run says ``corrected="us"`` and the interval.

    Raises
    ------
    AlreadyCorrectedError
        Where we, the tool, or a schedule already took care of it: twice would invent latencies.
    InvalidArgumentError
        Where no interval is given or known, or one without a unit, or one so short that thousands of fills would stand
        for each request.

    Notes
    -----
    The rule is that of ``copyCorrectedForCoordinatedOmission`` of HdrHistogram 2.2.2 (of
    ``recordValueWithExpectedInterval`` for samples, which are known exactly): threshold 2 I, smallest fill in [I, 2 I),
    the highest equivalent value of each bucket.

    Examples
    --------
    >>> naive = Samples(duration=[1_000_000] * 10_000 + [100_000_000_000])
    >>> fixed = correct(naive, "10ms")
    >>> fixed.count, round(fixed.mean / 1e9, 2), round(fixed.percentile(75) / 1e9)
    (20000, 25.0, 50)
    >>> correct(fixed, "10ms")
    Traceback (most recent call last):
    latencykit.errors.AlreadyCorrectedError: ...
    """
    if isinstance(data, Summary):
        raise DataNotAvailableError(
            "a summary holds no distribution to correct; read an output that keeps a histogram or samples"
        )
    _refuse_twice(data.run, force)
    interval = expected_interval_of(data, expected_interval, rate=rate, connections=connections)
    if not (force or isinstance(data, Histogram)):  # of which each bucket is filled from but once
        _refuse_nonsense(data, interval, _shown(interval, data.unit))
    corrected: HistogramLog | Histogram = back_filled(data, interval)
    return corrected


def _shown(interval: float, unit: str) -> str:
    return format_duration(interval) if unit in NANOSECONDS else f"{interval:g}"


def back_filled(data: Samples | HistogramLog | Histogram, interval: float) -> Any:
    """Return what `correct` returns for an interval in nanoseconds; nothing is refused."""
    known: dict[str, Any] = {
        "corrected": "us",
        "expected_interval": interval,
        "notes": data.run.with_notes(
            f"back-filled with an expected interval of {_shown(interval, data.unit)}"
        ).notes,
    }
    if isinstance(data, HistogramLog):
        return _correct_log(data, interval).with_run(**known)
    if isinstance(data, Samples):
        raw, values = data.histogram(), data.values[data.good]
        filled = _filled(raw, values, np.ones(values.size, np.int64), max(1, round(interval)))
        return filled.with_run(**known)
    return _correct_histogram(data, interval).with_run(**known)


def expected_interval_of(
    data: Samples | HistogramLog | Histogram,
    given: str | float | None = None,
    *,
    rate: float | None = None,
    connections: int | None = None,
) -> float:
    """Return the expected interval in nanoseconds: as given, from rate and connections, or from what the source says."""
    run = data.run
    if given is not None:
        interval = parse_duration(given, None if data.unit in NANOSECONDS else "ns")
    elif rate or not run.expected_interval:
        speed = rate or run.rate
        if not speed:
            raise InvalidArgumentError(
                "the expected interval is not known; give it (expected_interval, --expected-interval), or the rate of all "
                "connections together and their number (--rate, --connections)"
            )
        interval = 1e9 * (connections or run.connections or 1) / speed
    else:
        interval = run.expected_interval
    if not interval > 0:
        raise InvalidArgumentError(
            f"an expected interval must be longer than nothing, not {given if given is not None else interval}"
        )
    return interval


def _refuse_twice(run: Run, force: bool) -> None:
    by = {
        "us": "it was already back-filled",
        "tool": "the tool itself corrected it",
        "schedule": "it was measured from a schedule",
    }
    if run.corrected in by and not force:
        raise AlreadyCorrectedError(
            f"{run.source or run.tool or 'this'}: {by[run.corrected]}; correcting twice invents latencies; "
            "in Python, force=True does it"
        )


def _refuse_nonsense(data: Samples | HistogramLog, interval: float, shown: str) -> None:
    """Refuse an interval in the wrong unit, before minutes go into billions of fills."""
    if interval >= _SHORT:
        return  # a log is not read an additional time for what no longer costs anything
    raw = data.histogram()
    fills = float(
        np.maximum(raw.buckets.high(raw.index) * NANOSECONDS.get(raw.unit, 1.0) / interval - 1, 0)
        @ raw.counts
    )
    if fills > _MANY and fills > _FOR_ONE * raw.count:
        raise InvalidArgumentError(
            f"an expected interval of {shown} would put {fills:,.0f} requests beside the {raw.count:,} that were measured; "
            "give the time between two requests of one connection, with its unit, such as 10ms"
        )


# ---------------------------------------------------------------- one histogram
def _correct_histogram(raw: Histogram, interval: float) -> Histogram:
    factor = NANOSECONDS.get(raw.unit, 1.0)
    if isinstance(raw.buckets, HdrBuckets):
        base = raw
    else:
        base = _on_a_fine_grid(raw, interval / factor)
    layout = base.buckets
    assert isinstance(layout, HdrBuckets)
    steps = interval / factor / layout.scale
    return _filled(base, layout.high_steps(base.index), base.counts, max(1, round(steps)))


def _on_a_fine_grid(raw: Histogram, interval: float) -> Histogram:
    """Counts between listed edges as HDR counts; of a wide bucket only so many at its top as are known to be there.

    A percentile list puts all between two percentiles into one bucket, and all above the last one into a bucket up to the
    maximum. Taken at its upper edge, each of these requests would be a stall of its own.
    """
    layout = HdrBuckets(_DIGITS, 1, 1.0 / NANOSECONDS.get(raw.unit, 2.0**30))
    if not raw.index.size:
        return replace(raw, buckets=layout, reported_percentiles=((), ()), reported_stats={})
    low, high, counts = (
        raw.buckets.low(raw.index),
        raw.buckets.high(raw.index),
        raw.counts.astype(np.int64),
    )
    top = raw.reported_stats.get("max", float(high[-1]))
    if (
        top > _WIDE * high[-1]
    ):  # the maximum stands above all buckets: one of the last one's requests is it
        low, high = np.append(low, top), np.append(high, top)
        counts = np.append(counts, 1)
        counts[-2] -= 1
    wide = (high > _WIDE * low) & (high >= 2 * interval)
    at_top = np.where(
        wide, _at_the_top(raw.reported_stats.get("mean"), low, high, counts, wide), counts
    )
    values, numbers = np.concatenate((low, high)), np.concatenate((counts - at_top, at_top))
    index, inverse = np.unique(layout.index_of(values), return_inverse=True)
    totals = np.zeros(index.size, np.int64)
    np.add.at(totals, inverse.reshape(-1), numbers)
    kept = totals > 0
    return replace(
        raw,
        buckets=layout,
        index=index[kept],
        counts=totals[kept],
        reported_percentiles=((), ()),
        reported_stats={},
    )


def _at_the_top(
    mean: float | None, low: Floats, high: Floats, counts: Ints, wide: NDArray[np.bool_]
) -> Ints:
    """How many requests of each wide bucket stand at its upper edge.

    The mean, where the tool printed one, tells how many it has room for, the highest first; else only the maximum is
    sure.
    """
    sure = np.zeros(counts.size, np.int64)
    sure[-1] = min(1, counts[-1])
    if mean is None:
        return sure
    room = mean * counts.sum() - float(np.where(wide, low, high) @ counts)
    for k in np.flatnonzero(wide)[::-1].tolist():
        sure[k] = int(np.clip(round(room / (high[k] - low[k])), sure[k], counts[k]))
        room -= sure[k] * (high[k] - low[k])
    return sure


def _filled(base: Histogram, values: Ints, counts: Ints, interval: int) -> Histogram:
    """`base` with the fills of these values (in its steps); requests that timed out are filled from their bound."""
    layout = base.buckets
    assert isinstance(layout, HdrBuckets)
    whole = HdrBuckets(layout.digits, layout.lowest)
    if base.censored and np.isfinite(base.censored_at):
        values = np.append(values, np.int64(base.censored_at / layout.scale))
        counts = np.append(counts, base.censored)
    total = np.zeros(layout.slots, np.int64)
    total[base.index] = base.counts
    for _, index, number in fill(values, counts, np.zeros(values.size, np.int64), interval, whole):
        np.add.at(total, index, number)
    index = np.flatnonzero(total)
    reported_stats = {
        name: value for name, value in base.reported_stats.items() if name in ("min", "max")
    }
    return replace(
        base,
        index=index,
        counts=total[index],
        reported_stats=reported_stats,
        reported_percentiles=((), ()),
    )


# ---------------------------------------------------------------- a log
def _correct_log(log: HistogramLog, interval: float) -> HistogramLog:
    return log._mapped_through(  # noqa: SLF001
        lambda part: _FilledPart(part, interval / NANOSECONDS.get(log.unit, 1.0))
    )


class _FilledPart:
    """A log's intervals, each with the fills of its own values, as a recorder that corrects would have written them."""

    def __init__(self, part: Part, interval: float) -> None:
        self._part, self._interval = part, interval

    def blocks(self, rows: Ints) -> Iterator[Block]:
        """Yield the corrected blocks of the given rows."""
        for block in self._part.blocks(rows):
            yield _filled_block(block, self._interval)


def _filled_block(block: Block, interval: float) -> Block:
    layout: Buckets = block.buckets
    if not isinstance(layout, HdrBuckets):
        raise DataNotAvailableError(
            "only logs with HDR buckets can be back-filled; take log.histogram() and correct that"
        )
    whole = HdrBuckets(layout.digits, layout.lowest)
    entry = block.entry_rows
    keys, numbers = [entry * layout.slots + block.index], [block.counts]
    for row, index, number in fill(
        layout.high_steps(block.index),
        block.counts,
        entry,
        max(1, round(interval / layout.scale)),
        whole,
    ):
        key, inverse = np.unique(row * layout.slots + index, return_inverse=True)
        total = np.zeros(key.size, np.int64)
        np.add.at(total, inverse.reshape(-1), number)
        keys.append(key)
        numbers.append(total)
    key, inverse = np.unique(np.concatenate(keys), return_inverse=True)
    counts = np.zeros(key.size, np.int64)
    np.add.at(counts, inverse.reshape(-1), np.concatenate(numbers))
    indptr = np.searchsorted(key, np.arange(block.rows.size + 1) * layout.slots)
    return Block(block.rows, indptr.astype(np.int64), key % layout.slots, counts, layout)
