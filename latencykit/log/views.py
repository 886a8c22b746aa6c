"""Logs seen differently: intervals summed into slots, and several logs as one. Nothing is decoded until asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latencykit.blocks import Block, TotalsFold
from latencykit.errors import MixedInputsError, UsageError
from latencykit.histogram import Histogram, merge_histograms
from latencykit.log.noun import HistogramLog
from latencykit.run import merge_runs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from latencykit.blocks import Part
    from latencykit.buckets import Buckets

    Ints = NDArray[np.int64]

__all__ = ["LogPart", "SlotPart", "merge_logs"]


class SlotPart:
    """A log's intervals summed into slots, decoded when asked for."""

    def __init__(self, log: HistogramLog, group: Ints, size: int) -> None:
        self._log, self._group, self._size = log, group, size
        self._order = np.argsort(group, kind="stable")
        self._bounds = np.searchsorted(group[self._order], np.arange(size + 1))

    def blocks(self, rows: Ints) -> Iterator[Block]:
        """Yield the slots' blocks; some slots at a time, so that few intervals are in memory at once."""
        for slots in np.array_split(rows, max(1, rows.size // 16)):
            chosen = np.concatenate([self._order[self._bounds[s] : self._bounds[s + 1]] for s in slots.tolist()])
            local = np.searchsorted(slots, self._group[chosen])
            by_row = np.argsort(chosen, kind="stable")
            view = self._log.rows(chosen[by_row])
            fold = TotalsFold(local[by_row])
            view.scan(fold)
            yield from _as_blocks(fold, slots)


def _as_blocks(fold: TotalsFold, slots: Ints) -> Iterator[Block]:
    """The totals of some slots as blocks, one a layout; a slot of several layouts is brought to one."""
    parts: dict[int, list[Histogram]] = {}
    for slot, buckets, index, counts in fold.totals():
        parts.setdefault(slot, []).append(Histogram(buckets, index, counts))
    held = {slot: several[0] if len(several) == 1 else merge_histograms(several) for slot, several in parts.items()}
    layouts: dict[Buckets, list[int]] = {}
    for slot, histogram in sorted(held.items()):
        layouts.setdefault(histogram.buckets, []).append(slot)
    for buckets, members in layouts.items():
        indices, numbers = [held[s].index for s in members], [held[s].counts for s in members]
        indptr = np.concatenate(([0], np.cumsum([part.size for part in indices])))
        yield Block(slots[members], indptr, np.concatenate(indices), np.concatenate(numbers), buckets)


def merge_logs(logs: Sequence[HistogramLog], align: str = "absolute") -> HistogramLog:
    """Return all intervals of all logs, sorted by time; a view, nothing is decoded.

    Parameters
    ----------
    logs : sequence of HistogramLog
    align : {"absolute", "relative"}
        By the clock (where every log knows its start), or by the time since each log's start.

    Raises
    ------
    MixedInputsError
        Where units, measures or corrections differ.
    """
    if align not in ("absolute", "relative"):
        raise UsageError(f"align must be 'absolute' or 'relative', not {align!r}")
    run = merge_runs([log.run.but(unit=log.unit) for log in logs])
    by_clock = align == "absolute" and all(log.start is not None for log in logs)
    origin = min(log.start or 0.0 for log in logs) if by_clock else 0.0
    if align == "absolute" and not by_clock and any(log.start is not None for log in logs):
        raise MixedInputsError(
            "some of these logs do not say when they began; merge them with align='relative' (--align relative)"
        )
    names = list(dict.fromkeys(name for log in logs for name in log._tag_names))
    parts: list[Part] = []
    starts, part_of, row_of, codes = [], [], [], []
    for log in logs:
        shift = (log.start or 0.0) - origin if by_clock else 0.0
        starts.append(log.starts + shift)
        view = log if log._factor == 1.0 else None
        part_of.append((log._where[0] if view else np.zeros(len(log), np.int64)) + len(parts))
        row_of.append(log._where[1] if view else np.arange(len(log)))
        parts.extend(log._parts if view else [LogPart(log)])
        codes.append(np.array([names.index(name) for name in log._tag_names], np.int64)[log._tag_code])
    start = np.concatenate(starts)
    order = np.argsort(start, kind="stable")
    return HistogramLog(
        start[order],
        np.concatenate([log.lengths for log in logs])[order],
        parts,
        where=(np.concatenate(part_of)[order], np.concatenate(row_of)[order]),
        tag_code=np.concatenate(codes)[order],
        tag_names=names,
        unit=logs[0].unit,
        run=run.but(start=origin if by_clock else None, tags=()),
    )


class LogPart:
    """Another log's rows as a part: for views that change its values."""

    def __init__(self, log: HistogramLog) -> None:
        self._log = log

    def blocks(self, rows: Ints) -> Iterator[Block]:
        """Yield the log's blocks of the given rows, numbered as the log numbers them."""
        for block in self._log.rows(rows).blocks():
            yield Block(rows[block.rows], block.indptr, block.index, block.counts, block.buckets)
