"""`correct`: back-fill the requests that coordinated omission left out, by HdrHistogram's rule.

For every value v and expected interval I, the rule adds fills at v − I, v − 2I … down to I. A value
below twice the interval gets no fill, and the smallest one lies in [I, 2I), as in
``AbstractHistogram.java`` of HdrHistogram 2.2.2 (``recordValueWithCountAndExpectedInterval``).
Fills are an arithmetic progression, so those that fall into one bucket are counted, not listed,
wherever that is less work: a stall of 100 s at an interval of 1 µs costs as many steps as the
layout has buckets below it, not 100 million.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import numpy as np

from latencykit import errors
from latencykit._arrays import ragged
from latencykit._records import record
from latencykit._text import option
from latencykit._typing import Ints, PathOrFrame
from latencykit.analysis.given import as_data
from latencykit.core.blocks import Block, Part
from latencykit.core.buckets import Buckets, HdrBuckets, added
from latencykit.core.consistency import contradiction
from latencykit.core.histogram import Histogram
from latencykit.core.histogram_log import HistogramLog, mapped_through
from latencykit.core.samples import Samples
from latencykit.core.summary import Summary
from latencykit.units import NANOSECONDS, format_duration, parse_duration

_AT_ONCE = 1 << 20  # fills, or buckets, per pass
_MOST = 1 << 62  # of all counts together


def fills_of(values: Ints, interval: int) -> Ints:
    """Return how many fills each value has, int64."""
    return np.where(values >= interval, values // interval - 1, 0)


def fill(
    values: Ints, counts: Ints, rows: Ints, interval: int, layout: HdrBuckets
) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Yield the rows, bucket indices and counts to add, in pieces of bounded size."""
    if interval < 1:
        raise errors.InvalidArgumentError(
            "the expected interval must be at least one step of the values' resolution"
        )
    number = fills_of(values, interval)
    if float((number + 1.0) @ counts) >= _MOST:
        raise errors.InputTooLargeError(
            "the fills would not fit in 63 bits; the interval is far shorter than the stalls"
        )
    filled = np.flatnonzero(number)
    values, counts, rows, number = (part[filled] for part in (values, counts, rows, number))
    least = values - number * interval
    first, last = layout.index_of(least), layout.index_of(values - interval)
    width = last - first + 1
    listed = number <= width
    block = np.cumsum(np.where(listed, number, width)) // _AT_ONCE
    bounds = np.flatnonzero(np.diff(block, prepend=-1, append=-1)).tolist()
    for begin, end in itertools.pairwise(bounds):
        piece = np.arange(begin, end)
        few = piece[listed[piece]]
        source, place = ragged(number[few])
        index = layout.index_of(
            least[few][source] + place * np.int64(interval)
        )  # positions have 32 bits in a browser
        yield rows[few][source], index, counts[few][source]
        many = piece[~listed[piece]]
        source, place = ragged(width[many])
        index = first[many][source] + place
        # Fills least + k·I (k below their number) within the edges of each bucket.
        first_fill, fills = least[many][source], number[many][source]
        up_to = np.minimum((layout.high_steps(index) - first_fill) // interval + 1, fills)
        below = np.maximum(-((first_fill - layout.low_steps(index)) // interval), 0)
        yield rows[many][source], index, np.maximum(up_to - below, 0) * counts[many][source]


# ------------------------------------------------------------
# The operation.


@record()
class BackFillRules:
    """What is back-filled, and how finely."""

    # ratio of edges above which a bucket does not show where its requests lie
    wide: float = 1.25
    # of the counts' buckets, significant
    digits: int = 3
    # ns: shorter intervals between the requests of one connection are mistakes of the unit
    min_interval: float = 1e5
    # together, and per request: more is what only a mistake asks for
    max_fills: float = 5e7
    max_fills_per_request: float = 1000.0


RULES = BackFillRules()


def correct(
    data: Samples | HistogramLog | Histogram | PathOrFrame,
    expected_interval: str | float | None = None,
    *,
    rate: float | None = None,
    connections: int | None = None,
    force: bool = False,
    unit: str | None = None,
) -> HistogramLog | Histogram:
    """Back-fill the requests that coordinated omission left out, by HdrHistogram's rule.

    Every value v of at least twice the expected interval I counts as a request that kept its
    connection from sending others, which would have taken v − I, v − 2I and so on down to I. That
    applies to connections that wait for each reply and do not make up for what they missed; if the
    requests were sent late instead, use `retime`.

    Parameters
    ----------
    data : Samples, HistogramLog or Histogram, path or frame
    expected_interval : str or float, optional
        Time between two requests of one connection, with its unit: ``"10ms"``. A bare number is
        for values without a unit.
    rate, connections : float and int, optional
        Instead: requests per second of all connections together, and their number (by default from
        the source, or 1); the interval is connections / rate. By default the source's own values.
    force : bool, default False
        Correct even what is already corrected, and with any interval.
    unit : str, optional
        Of a path or frame whose numbers state none, as for `lk.read`.

    Returns
    -------
    Histogram or HistogramLog
        A log for a log (without timeouts), else a histogram, whose run says ``corrected="us"``.

    Raises
    ------
    AlreadyCorrectedError
        If the data is already corrected: correcting twice invents latencies.
    DataNotAvailableError
        For a summary, and for a report that contradicts itself.
    InvalidArgumentError
        If no interval is given or known, or one without a unit, or one so short that there would
        be thousands of fills per request.

    Notes
    -----
    The rule is that of ``copyCorrectedForCoordinatedOmission`` of HdrHistogram 2.2.2 (of
    ``recordValueWithExpectedInterval`` for samples, which are exact): threshold 2 I, smallest fill
    in [I, 2 I), the highest equivalent value of each bucket.

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
    data = cast("Samples | HistogramLog | Histogram", as_data(data, "correct", unit))
    if isinstance(data, Summary):
        raise errors.DataNotAvailableError(
            "a summary has no distribution to correct; read an output that keeps a histogram or "
            "samples"
        )
    run = data.run
    by = {
        "us": "it was already back-filled",
        "tool": "the tool itself corrected it",
        "schedule": "it was measured from a schedule",
    }
    if run.corrected in by and not force:
        raise errors.AlreadyCorrectedError(
            f"{run.source or run.tool or 'this'}: {by[run.corrected]}; correcting twice invents "
            "latencies; in Python, force=True does it"
        )
    if (reason := contradiction(data)) is not None and not force:
        raise errors.DataNotAvailableError(
            f"{run.source or run.tool or 'this'}: {reason}; nothing is derived"
        )
    interval = expected_interval_of(data, expected_interval, rate=rate, connections=connections)
    # An interval in the wrong unit would cost minutes for billions of fills. A histogram costs one
    # fill per bucket, and long intervals are cheap: they are not worth a pass over a log.
    if not force and not isinstance(data, Histogram) and interval < RULES.min_interval:
        raw = data.histogram()
        top = raw.buckets.high(raw.index) * NANOSECONDS.get(raw.unit, 1.0)
        fills = float(np.maximum(top / interval - 1, 0) @ raw.counts)
        if fills > RULES.max_fills and fills > RULES.max_fills_per_request * raw.count:
            raise errors.InvalidArgumentError(
                f"an expected interval of {_shown(interval, data.unit)} would add {fills:,.0f} "
                f"requests to the {raw.count:,} that were measured; give the time between two "
                "requests of one connection, with its unit, such as 10ms"
            )
    corrected: HistogramLog | Histogram = back_filled(data, interval)
    return corrected


def _shown(interval: float, unit: str) -> str:
    return format_duration(interval) if unit in NANOSECONDS else f"{interval:g}"


def back_filled(data: Samples | HistogramLog | Histogram, interval: float) -> Any:
    """Correct with an interval in nanoseconds, without checks."""
    known: dict[str, object] = {
        "corrected": "us",
        "expected_interval": interval,
        "notes": data.run.with_notes(
            f"back-filled with an expected interval of {_shown(interval, data.unit)}"
        ).notes,
    }
    in_unit = interval / NANOSECONDS.get(data.unit, 1.0)
    if isinstance(data, HistogramLog) and not (data.run.timeouts and data.run.timeout):
        log = mapped_through(data, lambda part: _FilledPart(part, in_unit))
        return log.with_run(**known)
    if isinstance(data, Samples):
        raw, values = data.histogram(), data.values[data.good]
        filled = _filled(raw, values, np.ones(values.size, np.int64), max(1, round(interval)))
        return filled.with_run(**known)
    whole = data.histogram() if isinstance(data, HistogramLog) else data
    base = whole if isinstance(whole.buckets, HdrBuckets) else on_a_fine_grid(whole, in_unit)
    layout = base.buckets
    assert isinstance(layout, HdrBuckets)
    steps = max(1, round(in_unit / layout.scale))
    return _filled(base, layout.high_steps(base.index), base.counts, steps).with_run(**known)


def expected_interval_of(
    data: Samples | HistogramLog | Histogram,
    stated: str | float | None = None,
    *,
    rate: float | None = None,
    connections: int | None = None,
) -> float:
    """Return the expected interval, ns: given, from rate and connections, or from the source."""
    run = data.run
    if stated is not None:
        interval = parse_duration(stated, None if data.unit in NANOSECONDS else "ns")
    elif rate or not run.expected_interval:
        speed = rate or run.rate
        if not speed:
            raise errors.InvalidArgumentError(
                f"the expected interval is unknown; give it ({option('expected-interval')}), or "
                f"the rate of all connections together and their number ({option('rate')}, "
                f"{option('connections')})"
            )
        interval = 1e9 * (connections or run.connections or 1) / speed
    else:
        interval = run.expected_interval
    if not interval > 0:
        raise errors.InvalidArgumentError(
            "an expected interval must be longer than nothing, not "
            f"{stated if stated is not None else interval}"
        )
    return interval


def on_a_fine_grid(raw: Histogram, interval: float) -> Histogram:
    """HDR counts of listed buckets; of a wide one only those known to be at its top."""
    # A list of percentiles has all requests between two of them in one bucket, and all above the
    # last one in a bucket up to the maximum. At the upper edge, each of these would be a stall.
    layout = HdrBuckets(RULES.digits, 1, 1.0 / NANOSECONDS.get(raw.unit, 2.0**30))
    if not raw.index.size:
        return replace(raw, buckets=layout, reported_percentiles=((), ()), reported_stats={})
    low, high = raw.buckets.low(raw.index), raw.buckets.high(raw.index)
    counts = raw.counts.astype(np.int64)
    top = raw.reported_stats.get("max", float(high[-1]))
    if top > RULES.wide * high[-1]:  # one request of the last bucket is the maximum, above it
        low, high = np.append(low, top), np.append(high, top)
        counts = np.append(counts, 1)
        counts[-2] -= 1
    wide = (high > RULES.wide * low) & (high >= 2 * interval)
    # Of those at an upper edge a reported mean limits the number, the highest first; otherwise only
    # the maximum is certain.
    at_top, mean = np.where(wide, 0, counts), raw.reported_stats.get("mean")
    if wide[-1]:
        at_top[-1] = min(1, counts[-1])
    if mean is not None:
        rest = mean * counts.sum() - float(np.where(wide, low, high) @ counts)
        for k in np.flatnonzero(wide)[::-1].tolist():
            at_top[k] = int(np.clip(round(rest / (high[k] - low[k])), at_top[k], counts[k]))
            rest -= at_top[k] * (high[k] - low[k])
    # The others lie evenly between their edges: at the upper one, a median that a percentile list
    # reports would leap to the next of its rows when one request is added.
    narrow = np.where(wide, 0, counts)
    edges = layout.high(np.arange(int(layout.index_of(high.max(keepdims=True))[0]) + 1))
    below = np.column_stack((np.cumsum(narrow) - narrow, np.cumsum(narrow))).ravel()
    bounds = np.column_stack((np.minimum(low, high * (1 - 1e-9)), high)).ravel()
    bounds = np.maximum.accumulate(bounds)  # listed buckets may overlap
    totals = np.diff(np.rint(np.interp(edges, bounds, below)), prepend=0.0).astype(np.int64)
    values = np.concatenate((low[wide], high[wide]))
    numbers = np.concatenate(((counts - at_top)[wide], at_top[wide]))
    np.add.at(totals, layout.index_of(values), numbers)
    return replace(
        raw,
        buckets=layout,
        index=np.flatnonzero(totals),
        counts=totals[totals > 0],
        reported_percentiles=((), ()),
        reported_stats={},
    )


def _filled(base: Histogram, values: Ints, counts: Ints, interval: int) -> Histogram:
    """`base` with the fills of the values (in steps) and of timeouts, from their bound."""
    layout = base.buckets
    assert isinstance(layout, HdrBuckets)
    steps = HdrBuckets(layout.digits, layout.lowest)
    if base.censored and np.isfinite(base.censored_at):
        values = np.append(values, np.int64(base.censored_at / layout.scale))
        counts = np.append(counts, base.censored)
    total = np.zeros(layout.slots, np.int64)
    total[base.index] = base.counts
    for _, index, number in fill(values, counts, np.zeros(values.size, np.int64), interval, steps):
        np.add.at(total, index, number)
    index = np.flatnonzero(total)
    ends = {"min": slice(1), "max": slice(-1, None)}  # extremes, if no fill lies beyond them
    known = {name for name, end in ends.items() if np.array_equal(index[end], base.index[end])}
    reported_stats = {name: v for name, v in base.reported_stats.items() if name in known}
    return replace(
        base,
        index=index,
        counts=total[index],
        reported_stats=reported_stats,
        reported_percentiles=((), ()),
    )


class _FilledPart:
    """Intervals with the fills of their own values, as a correcting recorder writes them."""

    def __init__(self, part: Part, interval: float) -> None:
        self._part, self._interval = part, interval

    def blocks(self, rows: Ints) -> Iterator[Block]:
        """Yield the corrected blocks of the given rows."""
        for block in self._part.blocks(rows):
            layout: Buckets = block.buckets
            if not isinstance(layout, HdrBuckets):
                raise errors.DataNotAvailableError(
                    "only logs with HDR buckets can be back-filled; take log.histogram() and "
                    "correct that"
                )
            steps = HdrBuckets(layout.digits, layout.lowest)
            entry = block.entry_rows
            keys, numbers = [entry * layout.slots + block.index], [block.counts]
            for row, index, number in fill(
                layout.high_steps(block.index),
                block.counts,
                entry,
                max(1, round(self._interval / layout.scale)),
                steps,
            ):
                key, inverse = np.unique(row * layout.slots + index, return_inverse=True)
                keys.append(key)
                numbers.append(added(number, inverse.reshape(-1), key.size))
            key, inverse = np.unique(np.concatenate(keys), return_inverse=True)
            counts = added(np.concatenate(numbers), inverse.reshape(-1), key.size)
            indptr = np.searchsorted(
                key, np.arange(block.rows.size + 1, dtype=np.int64) * layout.slots
            )
            yield Block(block.rows, indptr.astype(np.int64), key % layout.slots, counts, layout)
