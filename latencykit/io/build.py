"""From a tool's output to data types: nanoseconds, percentile tables, one series per operation."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Container, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latencykit._text import format_items, printable
from latencykit._typing import AnyArray, Floats
from latencykit.core.blocks import Block, MemoryPart
from latencykit.core.buckets import EdgeBuckets
from latencykit.core.columns import Cells, Columns, Words, joined
from latencykit.core.histogram import Histogram
from latencykit.core.histogram_log import HistogramLog
from latencykit.core.quantiles import distinct, surely_within
from latencykit.core.run import Run
from latencykit.core.samples import OUTCOMES, Samples, as_nanoseconds
from latencykit.core.summary import Summary
from latencykit.errors import InvalidArgumentError, PayloadError, RowError
from latencykit.hdr.payload import decode_rows, open_payload
from latencykit.io.sanity_checks import consistent, whole_count
from latencykit.io.source import Data, ReadOptions, Source
from latencykit.units import NANOSECONDS

_Key = TypeVar("_Key")
EMPTY = ("", "-", "NaN", "nan", "NA", "N/A", "n/a", "null", "NULL", "None", "none", "nil", "NaT")
"""Cells that stand for "nothing"."""

_UNITS = {
    word: unit
    for unit, words in {
        "ns": "ns nsec nsecs nano nanos nanosec nanosecond nanoseconds",
        "us": "us usec usecs micro micros microsec microsecond microseconds µs μs",
        "ms": "ms msec msecs milli millis millisec millisecond milliseconds",
        "s": "s sec secs second seconds",
    }.items()
    for word in words.split()
}
_NUMBER = re.compile(
    r"\s*+[-+]?(?:(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:e[-+]?[0-9]++)?|inf(?:inity)?)\s*+",
    re.IGNORECASE,
)
FINE = 10_000.0
"""Nanoseconds below which whole ones would round by more than 0.005 %."""

STATISTIC_WORDS: dict[str, float | str] = {
    "median": 50.0, "med": 50.0, "min": "min", "minimum": "min", "fastest": "min", "max": "max",
    "maximum": "max", "slowest": "max", "mean": "mean", "avg": "mean", "average": "mean",
    "std": "std", "stddev": "std", "stdev": "std", "std dev": "std", "std_dev": "std",
    "pstdev": "std", "mdev": "std", "sd": "std", "q1": 25.0, "q3": 75.0, "count": "count",
    "n": "count", "samples": "count", "requests": "count", "reqs": "count",
}  # fmt: skip
"""What people call a statistic, and its name; the median is the percentile 50."""

_PERCENTILE = re.compile(
    r"p[ _]?\(?(\d+(?:[._]\d+)?)\)?"
    r"|(\d+(?:\.\d+)?) ?(?:%|st|nd|rd|th)(?: ?(?:percentile|%ile|pct))?",
    re.IGNORECASE,
)


def words_in(text: str) -> tuple[str, ...]:
    """Return the words of a text, in order."""
    return tuple(text.split())


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


def unit_in(text: str) -> str | None:
    """Return the unit that a word spells, or None."""
    return _UNITS.get(text.strip().lower())


def nanoseconds(value: float | str, unit: str) -> float:
    """Return a value in nanoseconds, without the conversion's noise; bare numbers are unchanged."""
    return round(float(value) * NANOSECONDS.get(unit, 1.0), 3)


def nanoseconds_of(values: ArrayLike, unit: str) -> Floats:
    """Return values in nanoseconds, float64 of the same shape, rounded to a thousandth."""
    return np.round(np.asarray(values, np.float64) * NANOSECONDS.get(unit, 1.0), 3)


def in_nanoseconds(values: Mapping[_Key, Any], unit: str) -> dict[_Key, float]:
    """Return a mapping's values (numbers, or their text) in nanoseconds, without None."""
    return {key: nanoseconds(value, unit) for key, value in values.items() if value is not None}


def base_unit(unit: str) -> str:
    """Return the unit in which data is kept: ``ns``, or ``none`` for bare numbers."""
    return "none" if unit == "none" else "ns"


def percentile_named(label: str) -> float | None:
    """Return the percentile of a label: p99, p(99), p99_9, p999, 99th, 99%, 3-nines; else None."""
    if nines := re.fullmatch(r"([2-9])-nines", label):
        return round(100 - 100 * 0.1 ** int(nines[1]), 9)
    match = _PERCENTILE.fullmatch(label)
    if match is None:
        return None
    digits = (match[1] or match[2]).replace("_", ".")
    if digits.isdigit() and len(digits) > 2 and digits[0] in "09":
        digits = f"{digits[:2]}.{digits[2:]}"
    return float(digits)


def statistic_named(label: str) -> float | str | None:
    """Return the percentile or the statistic that a label names, in any case; else None."""
    level = percentile_named(label)
    return STATISTIC_WORDS.get(label.lower()) if level is None else level


def percentiles_in(record: Mapping[str, Any]) -> dict[float, Any]:
    """Return the entries whose keys are labels of percentiles, by these."""
    levels = {percentile_named(key): value for key, value in record.items()}
    return {level: value for level, value in levels.items() if level is not None}


def statistics_in(record: Mapping[Any, Any]) -> tuple[dict[float, Any], dict[str, Any]]:
    """Return the percentiles and the statistics of a record, by what its keys name."""
    # The last key that names one counts; None stands for one that is not there.
    found: dict[float | str, Any] = {}
    for key, value in record.items():
        if key is None:  # the cells of a row of CSV that is longer than its header
            continue
        if value is not None and (kind := statistic_named(key)) is not None:
            found[kind] = value
    points = {kind: value for kind, value in found.items() if isinstance(kind, float)}
    return points, {k: v for k, v in found.items() if isinstance(k, str) and k != "count"}


def outcome_codes(**rows: NDArray[np.bool_]) -> NDArray[np.int8] | None:
    """Return the outcome of each request, by the rows that had it; None where all were ok."""
    # Of two outcomes of one row the later one counts: ``outcome_codes(error=failed,
    # timeout=late)``.
    codes = np.zeros(next(iter(rows.values())).shape, np.int8)
    for name, chosen in rows.items():
        codes[chosen] = OUTCOMES.index(name)
    return codes if codes.any() else None


def whole_nanoseconds(stamps: ArrayLike, unit: str) -> NDArray[np.int64]:
    """Return points in time of a unit as whole nanoseconds, int64 of the same shape."""
    # A stamp such as 1795220202.323 s is meant to the microsecond at best; a float64 of its
    # nanoseconds would be off by up to 128.
    array, factor = np.asarray(stamps), NANOSECONDS[unit]
    if array.dtype.kind in "iu":
        return np.asarray(array.astype(np.int64) * np.int64(factor))
    exact = unit == "ns" or np.abs(array).max(initial=0) * factor < 2**53
    step = 1 if exact else 1000
    return np.asarray(np.rint(array * (factor / step)).astype(np.int64) * step)


def unique_name(name: str, taken: Container[str]) -> str:
    """Return `name`, numbered where it is taken: "sleep 1", "sleep 1 (2)"."""
    if name not in taken:
        return name
    most = 2
    while f"{name} ({most})" in taken:
        most *= 2
    # they are given in order: searched, not counted through
    numbers = range(max(most // 2, 2), most + 1)
    at = bisect_left(numbers, 1, key=lambda number: f"{name} ({number})" not in taken)
    return f"{name} ({numbers[at]})"


def data_from_points(
    points: Mapping[float, Any],
    count: int | None,
    stats: Mapping[str, Any],
    run: Run,
    of_unit: str | None = None,
) -> Histogram | Summary:
    """Return what printed percentiles and statistics amount to."""
    # They are in ns, or `of_unit`; then None stands for one that is not there.
    unit, count = base_unit(run.unit), whole_count(count)
    if of_unit is not None:
        points, stats = in_nanoseconds(points, of_unit), in_nanoseconds(stats, of_unit)
    extremes = {name: points[p] for p, name in ((0.0, "min"), (100.0, "max")) if p in points}
    inner = {p: v for p, v in points.items() if 0 < p < 100}
    inner, reported_stats, run = consistent(inner, extremes | dict(stats), run)
    if count and len(inner) + ("max" in reported_stats) >= 3:
        return Histogram.from_percentiles(
            list(inner), list(inner.values()), count, unit, run=run, reported_stats=reported_stats
        )
    return Summary(reported_stats, inner, count, unit, run)


def data_from_statistics(
    record: Mapping[Any, Any], count: int | None, run: Run, of_unit: str | None = None
) -> Histogram | Summary:
    """Return what a record amounts to whose keys name percentiles and statistics."""
    points, stats = statistics_in(record)
    return data_from_points(points, count, stats, run, of_unit)


def data_from_buckets(
    low: ArrayLike,
    high: ArrayLike,
    counts: ArrayLike,
    run: Run,
    *,
    stats: Mapping[str, Any] = MappingProxyType({}),
    points: Mapping[float, Any] = MappingProxyType({}),
    above: int = 0,
    bound: float | None = None,
) -> Histogram:
    """Return the histogram of buckets; edges, statistics and percentiles in the run's unit."""
    # Beyond `bound`, the last edge if it is not given, lie `above` more values.
    ends = nanoseconds_of(high, run.unit)
    beyond = np.inf
    if above:
        beyond = float(ends[-1]) if bound is None else nanoseconds(bound, run.unit)
    return Histogram.from_buckets(
        nanoseconds_of(low, run.unit), ends, counts, base_unit(run.unit), run=run,
        reported_stats=in_nanoseconds(stats, run.unit), censored=above, censored_at=beyond,
        reported_percentiles=printed_rows(in_nanoseconds(points, run.unit)),
    )  # fmt: skip


def data_from_values(
    values: ArrayLike, run: Run, counts: ArrayLike | None = None
) -> Histogram | Samples:
    """Return single values (ns, with fractions) as samples, or as an exact histogram."""
    # Samples hold whole nanoseconds. A micro-benchmark's 2.31 ns an operation would not survive
    # that, so values below 10 µs, and values with counts, become a histogram whose buckets are the
    # values themselves.
    array, unit = np.asarray(values, np.float64), base_unit(run.unit)
    if counts is None and unit == "ns" and array.size and array.min() >= FINE:
        return Samples(duration=array, run=run)
    points, total = added_up(array, 1 if counts is None else np.asarray(counts, np.int64))
    return Histogram.from_buckets(points, points, total, unit, run=run)


def added_up(keys: Floats, counts: int | NDArray[np.int64]) -> tuple[Floats, NDArray[np.int64]]:
    """Return the distinct keys (numbers, or rows of them), ascending, and the counts of each."""
    distinct_keys, where = np.unique(keys, axis=0 if keys.ndim > 1 else None, return_inverse=True)
    total = np.zeros(len(distinct_keys), np.int64)
    np.add.at(total, where.reshape(-1), counts)
    return distinct_keys, total


def without_negative(
    samples: Mapping[str, Any], options: ReadOptions
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return columns without the rows of a negative ``duration``, and the note that says so."""
    bad = np.asarray(samples["duration"]) < 0
    number = int(bad.sum())
    columns = {name: column for name, column in samples.items() if column is not None}
    if not number:
        return columns, ()
    note = f"{format_items(number, 'negative duration')} left out: the clock was set back"
    options.report(note)
    further = columns.pop("columns", None)  # of `Samples.with_columns`
    columns = {name: np.asarray(column)[~bad] for name, column in columns.items()}
    if further is not None:
        columns["columns"] = Columns(further).select(~bad)
    return columns, (note,)


def samples_of(
    columns: Mapping[str, Any],
    run: Run,
    options: ReadOptions,
    names: Sequence[str] = (),
    apart: Sequence[str] = (),
    *,
    unit: str = "ns",
) -> dict[str, Data]:
    """Return the series of requests without those of a negative duration, with a note on them."""
    # `columns` are those of `Samples`, further ones as ``columns``, and as ``code`` the place of
    # each request's operation among `names`. Of several operations all come first, but for those
    # that are `apart`, then each.
    kept, left_out = without_negative(columns, options)
    further, code = kept.pop("columns", {}), kept.pop("code", None)
    start = kept.get("start", np.zeros(0))
    if run.start is None and start.size and start.min() >= 10**17:  # points in time
        run = run.replace(start=float(start.min()) / 1e9)
    samples = Samples(run=run.with_notes(*left_out), unit=unit, **kept).with_columns(further)
    used = [] if code is None else distinct(code).tolist()
    if len(used) < 2:
        return {names[used[0]] if used else "": samples}
    order = np.argsort(code, kind="stable")
    bounds = np.searchsorted(code[order], np.arange(len(names) + 1))
    each: dict[str, Data] = {
        names[k]: samples.select(order[bounds[k] : bounds[k + 1]]) for k in used
    }
    outside = [k for k, name in enumerate(names) if name in apart]
    together = samples.select(~np.isin(code, outside)) if outside else samples
    free = "all operations" if "all" in each else "all"
    return {free: together.with_run(aggregate=True)} | each


def number_in(text: str, most: float = 1e15) -> float | None:
    """Return a number from 0 to below `most`; None for another text."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < most else None


def numbers_of(texts: Iterable[str]) -> NDArray[np.float64]:
    """Return numbers as programs write them; NaN for other texts."""
    return np.array([float(text) if _NUMBER.fullmatch(text) else np.nan for text in texts])


def further_cells(parts: Sequence[Cells]) -> Cells:
    """Return the cells of a further column: numbers where all of its words are such."""
    cells = joined(parts)
    if not isinstance(cells, Words):
        return cells
    words = [word.strip() for word in cells.names.tolist()]
    cells = Words.named(cells.codes, [None if word in EMPTY else word for word in words])
    values, code = numbers_of(cells.names.tolist()), cells.codes
    if not values.size or not np.isfinite(values).all():
        return cells
    if (code >= 0).all() and (values == np.rint(values)).all() and (np.abs(values) < 2**53).all():
        return np.asarray(values.astype(np.int64)[code])
    return np.asarray(np.append(values, np.nan)[code])


# ------------------------------------------------------------
# A histogram from all that a text report says: printed percentiles, and counts in coarse buckets.


def mixed_note(failed: int, what: str = "failed requests") -> tuple[str, ...]:
    """Return the note of a tool that counts failed requests' times among the others, or nothing."""
    word = what.removesuffix("s") if failed == 1 else what
    note = f"the times of {failed:,} {word} are among the values: the tool does not separate them"
    return (note,) if failed else ()


def histogram_of_both(
    points: Mapping[float, float],
    highs: Sequence[float],
    counts: Sequence[int],
    stats: Mapping[str, float],
    run: Run,
    **known: Any,
) -> Histogram:
    """Return the finest histogram that buckets and percentiles of the same values allow."""
    # A bucket says between which values some ranks lie; a percentile says that no lower rank has a
    # higher value and no higher rank a lower one. Cut at every rank that either names, each part is
    # bounded by both.
    number, edge = np.asarray(counts, np.int64), np.asarray(highs, np.float64)
    total = int(number.sum())
    inner, stats, run = consistent({p: v for p, v in points.items() if 0 < p < 100}, stats, run)
    reported_percentiles = (tuple(inner), tuple(inner.values()))
    reached = surely_within(list(inner), total + int(known.get("censored", 0)))
    inside = reached <= total  # the others lie in the censored mass
    value = np.maximum.accumulate(
        np.append(np.array(reported_percentiles[1])[inside], stats.get("max", np.inf))
    )
    rank = np.append(reached[inside], total)
    ends = np.cumsum(number)
    cuts = distinct(np.concatenate(([0], ends, rank)))
    cuts = cuts[cuts <= total]
    bucket = np.searchsorted(ends, cuts[1:], "left")
    floor = np.concatenate(([stats.get("min", 0.0)], edge[:-1]))[bucket]
    before = np.searchsorted(rank, cuts[:-1], "right")
    floor = np.maximum(floor, np.concatenate(([-np.inf], value))[before])
    # of percentiles that name one rank, the highest bounds it
    capped = rank[np.searchsorted(rank, cuts[1:], "left")]
    ceiling = np.minimum(edge[bucket], value[np.searchsorted(rank, capped, "right") - 1])
    # printed edges are rounded, and may contradict each other a little
    ceiling = np.maximum.accumulate(ceiling)
    return Histogram.from_buckets(
        np.minimum(floor, ceiling),
        ceiling,
        np.diff(cuts),
        run=run,
        reported_stats=dict(stats),
        reported_percentiles=reported_percentiles,
        **known,
    )


def of_all_requests(
    points: Mapping[float, float],
    count: int | None,
    failed: int,
    stats: Mapping[str, float],
    run: Run,
) -> Histogram | Summary:
    """Return what a report of any program amounts to, whose count has the failed requests in it."""
    # Such a report does not say whether their times are among its values. Without a good request it
    # has no latencies.
    if not failed:
        return data_from_points(points, count, stats, run)
    word = "request" if failed == 1 else "requests"
    note = f"the report does not say whether the times of {failed:,} failed {word} are in it"
    run = run.replace(failed=failed)
    if count is not None and count <= failed:
        return unanswered(run)
    good = None if count is None else count - failed
    return data_from_points(points, good, stats, run.with_notes(note))


def unanswered(run: Run) -> Summary:
    """Return what is known of a run without a good request: no values, so no notes on them."""
    return Summary({}, {}, 0, base_unit(run.unit), run.replace(notes=()))


# ------------------------------------------------------------
# HdrHistogram payloads inside other outputs.


def histogram_of_payload(
    text: str, unit: str, run: Run, source: Source, name: str, **known: Any
) -> Histogram:
    """Return the histogram in a base64 payload, in ns."""
    try:
        payload: Any = open_payload(text.encode("ascii", "replace"))
        _, index, counts = decode_rows([payload])
    except (PayloadError, RowError) as error:
        seen = f"the histogram of {name} is corrupt ({error})"
        raise source.corrupt(None, seen, "a whole payload", "run it again") from None
    return Histogram(payload.buckets.scaled(NANOSECONDS[unit]), index, counts, "ns", run, **known)


def log_of_counts(
    table: NDArray[np.int64],
    buckets: EdgeBuckets,
    starts: ArrayLike,
    lengths: ArrayLike,
    **known: Any,
) -> HistogramLog:
    """Return a log of a row of counts per interval; starts and lengths are in seconds."""
    if table[:, buckets.lows < 0].any():
        least = buckets.lows.min()
        raise InvalidArgumentError(f"a bucket begins at {least:.4g}, which is not a latency")
    row, index = np.nonzero(table)
    indptr = np.searchsorted(row, np.arange(len(table) + 1)).astype(np.int64)
    counts = table[row, index]
    block = Block(np.arange(len(table)), indptr, index.astype(np.int64), counts, buckets)
    return HistogramLog(starts, lengths, [MemoryPart([block])], **known)


def printed_rows(points: Mapping[float, float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return percentiles and values as a histogram's `printed` takes them, extremes left out."""
    inner = {p: v for p, v in sorted(points.items()) if 0 < p < 100}
    return tuple(inner), tuple(inner.values())


def histograms_found(series: Mapping[str, Data], empty: int) -> dict[str, Data]:
    """Return the histograms of a text, a lone one without its number; notes say what was empty."""
    note = (f"{format_items(empty, 'empty histogram')} left out",) if empty else ()
    bare = len(series) == 1 and next(iter(series)).startswith("histogram ")
    return {
        "" if bare else name: found.with_run(notes=(*found.run.notes, *note))
        for name, found in series.items()
    }


# ------------------------------------------------------------
# Points in time as text: RFC 3339 and its relatives, many at once.


def moments_of(texts: Sequence[str], style: str = "ISO8601") -> AnyArray:
    """Return dates as datetime64, NaT for other texts; what names no zone is UTC."""
    import pandas as pd

    text = pd.Series(texts, dtype=object)
    return as_nanoseconds(pd.to_datetime(text, utc=True, format=style, errors="coerce"))


def iso_nanoseconds(texts: Sequence[str]) -> NDArray[np.int64]:
    """Return nanoseconds since the epoch, int64 of the same length; what names no zone is UTC."""
    when = moments_of([*map(str, texts)])
    if (missing := np.isnat(when)).any():
        shown = printable(str(texts[int(missing.argmax())]), 40)
        seen = f"{shown!r} is not a date between the years 1678 and 2261"
        raise InvalidArgumentError(seen)
    return np.asarray(when.astype(np.int64))


def epoch_seconds(text: object) -> float | None:
    """Return seconds since the epoch, or None if `text` is not a date."""
    try:
        seconds = float(iso_nanoseconds([str(text)])[0]) / 1e9
    except ValueError:
        return None
    return seconds if seconds > 0 else None
