"""A histogram from all that a text report says: printed percentiles, and counts in coarse buckets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.formats.stated import stated
from latencykit.histogram import Histogram
from latencykit.stats.quantiles import surely_within

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from latencykit.errors import CorruptInputError
    from latencykit.formats.base import Source
    from latencykit.run import Run

__all__ = ["histogram_of_both", "mixed_note", "nothing_answered"]


def mixed_note(failed: int, what: str = "failed requests") -> tuple[str, ...]:
    """Return the note of a tool that counts failed requests' times among the others, or nothing.

    Examples
    --------
    >>> mixed_note(16)
    ('the times of 16 failed requests are among the values: the tool does not tell them apart',)
    """
    word = what.removesuffix("s") if failed == 1 else what
    return (f"the times of {failed:,} {word} are among the values: the tool does not tell them apart",) if failed else ()


def histogram_of_both(
    points: Mapping[float, float],
    highs: Sequence[float],
    counts: Sequence[int],
    stats: Mapping[str, float],
    run: Run,
    **known: Any,
) -> Histogram:
    """Return the finest histogram that buckets and percentiles of the same values allow.

    A bucket says between which values some ranks lie; a percentile says that no lower rank has a higher value and no
    higher rank a lower one. Cut at every rank that either names, each part is bounded by both.

    Parameters
    ----------
    points : mapping of float to float
        Percentile (0..100) → ns.
    highs : sequence of float
        Upper edges of the buckets, ascending, ns; the first one begins at the minimum.
    counts : sequence of int
        Values in each.
    stats : mapping of str to float
        ``min``, ``max``, ``mean``, ``std`` as far as the tool states them.
    run : Run
    **known
        Further fields of the histogram: `censored`, `censored_at`.

    Examples
    --------
    >>> from latencykit.run import Run
    >>> h = histogram_of_both({50: 2.0, 99: 5.0}, [1, 10, 100], [1, 98, 1], {"min": 1, "max": 90}, Run())
    >>> h.percentile([50, 98, 99, 100]).tolist(), h.count_above(5)
    ([2.0, 5.0, 5.0, 90.0], 1)
    """
    number, edge = np.asarray(counts, np.int64), np.asarray(highs, np.float64)
    total = int(number.sum())
    inner, stats, run = stated({p: v for p, v in points.items() if 0 < p < 100}, stats, run)
    printed = (tuple(inner), tuple(inner.values()))
    reached = surely_within(list(inner), total + int(known.get("censored", 0)))
    held = reached <= total  # the others lie in the censored mass
    value = np.maximum.accumulate(np.append(np.array(printed[1])[held], stats.get("max", np.inf)))
    rank = np.append(reached[held], total)
    ends = np.cumsum(number)
    cuts = np.unique(np.concatenate(([0], ends, rank)))
    cuts = cuts[cuts <= total]
    bucket = np.searchsorted(ends, cuts[1:], "left")
    floor = np.concatenate(([stats.get("min", 0.0)], edge[:-1]))[bucket]
    before = np.searchsorted(rank, cuts[:-1], "right")
    floor = np.maximum(floor, np.concatenate(([-np.inf], value))[before])
    capped = rank[np.searchsorted(rank, cuts[1:], "left")]  # of percentiles that name one rank, the highest bounds it
    ceiling = np.minimum(edge[bucket], value[np.searchsorted(rank, capped, "right") - 1])
    ceiling = np.maximum.accumulate(ceiling)  # printed edges are rounded, and may contradict each other a little
    return Histogram.from_buckets(
        np.minimum(floor, ceiling), ceiling, np.diff(cuts), run=run, told=dict(stats), printed=printed, **known
    )


def nothing_answered(source: Source, run: Run) -> CorruptInputError:
    """Return the error for a run of which no request was answered well: there is no latency to tell of."""
    others = {"failed": run.failed, "timed out": run.timeouts, "dropped": run.dropped, "unfinished": run.unfinished}
    told = ", ".join(f"{number:,} {name}" for name, number in others.items() if number)
    seen = f"no request was answered well ({told})" if told else "no request was answered"
    return source.corrupt(None, seen, "at least one that was", "see whether the server ran, and run the tool anew")
