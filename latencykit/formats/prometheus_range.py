"""Prometheus query answers saved as JSON: histograms over a range of time (``query_range``), or at one instant.

Classic buckets come as series labelled ``le``, counters or rates; native histograms come with their own edges.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.blocks import Block, MemoryPart
from latencykit.buckets import EdgeBuckets
from latencykit.formats import jsontext
from latencykit.formats.base import Confidence, Format
from latencykit.formats.labelled import family_series, unit_of
from latencykit.formats.prometheus import from_cumulative
from latencykit.formats.shaping import nanoseconds_of
from latencykit.log import HistogramLog
from latencykit.run import Run

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from latencykit.formats.base import Head, ReadOptions, Rung, Source

    Floats = NDArray[np.float64]

__all__ = ["FORMATS"]


def sniff(head: Head) -> Confidence:
    """Tell the answer of the HTTP API."""
    return Confidence.CERTAIN if jsontext.has_keys(head, "resultType", "result", within=4000) else Confidence.NO


def read(source: Source, options: ReadOptions) -> dict[str, Rung]:
    """Read every histogram: a range as a log, an instant as a histogram."""
    record = jsontext.load(source)
    data = record.get("data", record) if isinstance(record, dict) else {}
    kind, results = data.get("resultType"), jsontext.entry(data, "result", source, list)
    if kind not in ("matrix", "vector"):
        raise source.corrupt(None, f"the answer is a {kind}", "a matrix (query_range) or a vector", "")
    families: dict[str, dict[tuple[tuple[str, str], ...], list[dict[str, Any]]]] = {}
    for one in results:
        labels = dict(jsontext.entry(one, "metric", source))
        name = str(labels.pop("__name__", "")).removesuffix("_bucket")
        if "le" not in labels and "histograms" not in one and "histogram" not in one:
            continue
        own = tuple(sorted((key, value) for key, value in labels.items() if key != "le"))
        families.setdefault(name, {}).setdefault(own, []).append(one)
    if not families:
        raise source.corrupt(
            None, "no series has the label le", "buckets of a histogram",
            "query the buckets, such as sum by (le) (rate(x_bucket[1m])), not histogram_quantile of them",
        )  # fmt: skip
    found: dict[str, Rung] = {}
    for name, members in families.items():
        unit = unit_of(name, options)
        if unit is None:
            continue
        run = Run(tool="Prometheus", measure="service", corrected="none", unit=unit[0], unit_from=unit[1])
        rungs = [(dict(own), _rung(parts, kind, run, source)) for own, parts in members.items()]
        found |= family_series(name, [(labels, rung) for labels, rung in rungs if rung is not None])
    return found


def _rung(parts: list[dict[str, Any]], kind: str, run: Run, source: Source) -> Rung | None:
    """The series of one set of labels."""
    if "histograms" in parts[0] or "histogram" in parts[0]:
        return _native(parts[0].get("histograms") or [parts[0]["histogram"]], run, source)
    if kind == "vector":
        edges = {float(one["metric"]["le"]): float(one["value"][1]) for one in parts}
        whole = all(value == round(value) for value in edges.values())
        if not whole:  # a rate: only the shape is known
            run = run.noting("the counts are rates, scaled to a million")
            top = max(edges.values())
            edges = {edge: value / top * 1e6 for edge, value in edges.items()} if top else edges
        return from_cumulative(edges, math.nan, {}, run, source, None)
    return _classic(parts, run, source)


def _classic(parts: list[dict[str, Any]], run: Run, source: Source) -> Rung | None:
    """Buckets over time: differences of counters, or rates times the step."""
    parts = sorted(parts, key=lambda one: float(one["metric"]["le"]))
    limits = np.array([float(one["metric"]["le"]) for one in parts])
    times = np.unique(np.concatenate([[float(t) for t, _ in one["values"]] for one in parts]))
    table = np.full((times.size, limits.size), np.nan)
    for column, one in enumerate(parts):
        stamps, values = np.array(one["values"], dtype=np.float64).T
        table[np.searchsorted(times, stamps), column] = values
    step = float(np.median(np.diff(times))) if times.size > 1 else 60.0
    table = np.nan_to_num(table)
    counters = "__name__" in parts[0]["metric"] or _are_counters(table)
    if counters:
        counts, notes = _increments(table)
        starts, lengths = times[:-1], np.diff(times)
    else:
        counts, notes = table * step, ("the values are taken as rates a second (rate()); counts are rate x step, rounded",)
        starts, lengths = times - step, np.full(times.size, step)
    if not counts.size or not counts.any():
        return None
    whole = np.rint(np.maximum.accumulate(counts, axis=1)).astype(np.int64)  # a rounding error must not make a count negative
    per_bucket = np.diff(whole, prepend=0, axis=1)
    known = run.noting(*notes)
    if not math.isfinite(limits[-1]):
        if per_bucket[:, -1].any():
            return _with_overflow(limits, whole, known, source, starts, lengths)
        limits, per_bucket = limits[:-1], per_bucket[:, :-1]
    high = nanoseconds_of(limits, run.unit)
    low = np.concatenate(([min(0.0, high[0])], high[:-1]))
    return _log(EdgeBuckets(low, high), per_bucket, starts, lengths, known)


def _are_counters(table: Floats) -> bool:
    """Whole numbers that never shrink are sums since a start."""
    return len(table) > 1 and bool((table == np.rint(table)).all() and (np.diff(table, axis=0) >= 0).all())


def _increments(table: Floats) -> tuple[Floats, tuple[str, ...]]:
    """Differences between samples; where a counter shrank it began anew, and its value is the increment."""
    steps = np.diff(table, axis=0)
    reset = (steps < 0).any(axis=1)
    steps[reset] = table[1:][reset]
    number = int(reset.sum())
    return steps, (f"the counters were reset {number} time{'s' if number > 1 else ''} in the range",) if number else ()


def _with_overflow(
    limits: Floats, whole: NDArray[np.int64], run: Run, source: Source, starts: Floats, lengths: Floats
) -> Rung | None:
    """Counts above the last finite edge cannot stand in a log: the whole range becomes one histogram with a bound."""
    edges = dict(zip(limits.tolist(), whole.sum(axis=0).tolist(), strict=True))
    known = run.noting("some values lie above the last bucket, so the range is one histogram, not a log").but(
        start=float(starts[0]), duration=float(lengths.sum())
    )
    return from_cumulative(edges, math.nan, {}, known, source, None)


def _log(buckets: EdgeBuckets, counts: NDArray[np.int64], starts: Floats, lengths: Floats, run: Run) -> HistogramLog:
    row, index = np.nonzero(counts)
    indptr = np.searchsorted(row, np.arange(len(counts) + 1)).astype(np.int64)
    block = Block(np.arange(len(counts)), indptr, index.astype(np.int64), counts[row, index], buckets)
    known = run.but(start=float(starts[0]), duration=float(starts[-1] + lengths[-1] - starts[0]))
    unit = "none" if run.unit == "none" else "ns"
    return HistogramLog(starts - starts[0], lengths, [MemoryPart([block])], unit=unit, run=known)


def _native(samples: list[Any], run: Run, source: Source) -> Rung | None:
    """Native histograms: each sample lists its own buckets as [rule, low, high, count]."""
    times = np.array([float(stamp) for stamp, _ in samples])
    rows: list[tuple[int, float, float, float]] = []
    for place, (_, one) in enumerate(samples):
        listed = one.get("buckets") or [] if isinstance(one, dict) else []
        rows += [(place, float(low), float(high), float(count)) for _, low, high, count in listed]
    if not rows:
        return None
    table = np.array(rows)
    if not np.isfinite(table).all() or (table[:, 3] < 0).any():
        raise source.corrupt(None, "a native histogram with edges or counts that are no numbers", "finite ones", "")
    table = table[table[:, 2] > 0]
    edges, where = np.unique(table[:, 2:0:-1], axis=0, return_inverse=True)
    values = np.zeros((times.size, len(edges)))
    values[table[:, 0].astype(np.int64), where.reshape(-1)] = table[:, 3]
    step = float(np.median(np.diff(times))) if times.size > 1 else 60.0
    notes: tuple[str, ...]
    if times.size > 1 and _are_counters(values):
        counts, notes = _increments(values)
        starts, lengths = times[:-1], np.diff(times)
    else:
        rated = times.size > 1
        counts, notes = values * (step if rated else 1.0), ("the values are taken as rates a second (rate())",) if rated else ()
        starts, lengths = times - step, np.full(times.size, step)
    low, high = (nanoseconds_of(np.maximum(edges[:, k], 0), run.unit) for k in (1, 0))
    whole = np.rint(counts).astype(np.int64)
    log = _log(EdgeBuckets(low, high), whole, starts, lengths, run.noting(*notes))
    return log if times.size > 1 else log.histogram()


FORMATS = (
    Format(
        name="prometheus-json",
        title="Prometheus query answers (JSON)",
        rung="log",
        suffixes=(".json",),
        sniff=sniff,
        read=read,
        example="curl 'PROMETHEUS/api/v1/query_range?query=sum by(le)(rate(x_bucket[1m]))&…' > range.json",
    ),
)
