"""HdrHistogram payloads inside other outputs: one as a histogram, one an interval as a log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.blocks import Block, MemoryPart, blocks_by_layout
from latencykit.codec import PayloadError, RowError, decode_rows, open_payload
from latencykit.histogram import Histogram
from latencykit.log import HistogramLog
from latencykit.units import NANOSECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike

    from latencykit.formats.base import Source
    from latencykit.run import Run

__all__ = ["histogram_of_payload", "log_of_payloads", "printed_rows"]


def histogram_of_payload(text: str, unit: str, run: Run, source: Source, name: str, **known: Any) -> Histogram:
    """Return the histogram in a base64 payload, in ns.

    Parameters
    ----------
    text : str
    unit : str
        Unit of the recorded values.
    run : Run
    source : Source
    name : str
        What the message calls it where it is damaged.
    **known
        Further fields of the histogram: `told`, `printed`.
    """
    payload = _opened(text, source, name)
    _, index, counts = _decoded([payload], source, name)
    return Histogram(payload.buckets.scaled(NANOSECONDS[unit]), index, counts, "ns", run, **known)


def log_of_payloads(
    texts: Sequence[str], starts: ArrayLike, lengths: ArrayLike, unit: str, run: Run, source: Source, name: str
) -> HistogramLog:
    """Return one interval a payload; starts and lengths are seconds from the log's start."""
    payloads = [_opened(text, source, name) for text in texts]
    blocks: list[Block] = []
    row = 0
    while row < len(payloads):
        end = row + 1
        while end < len(payloads) and payloads[end].layout.joins(payloads[row].layout):
            end += 1
        indptr, index, counts = _decoded(payloads[row:end], source, name)
        blocks += blocks_by_layout(np.arange(row, end), indptr, index, counts, [one.buckets for one in payloads[row:end]])
        row = end
    return HistogramLog(starts, lengths, [MemoryPart(blocks)], run=run, factor=NANOSECONDS[unit])


def printed_rows(points: Mapping[float, float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return percentiles and values as a histogram's `printed` takes them, extremes left out."""
    inner = {p: v for p, v in sorted(points.items()) if 0 < p < 100}
    return tuple(inner), tuple(inner.values())


def _opened(text: str, source: Source, name: str) -> Any:
    try:
        return open_payload(text.encode("ascii", "replace"))
    except PayloadError as error:
        raise source.corrupt(None, f"the histogram of {name} is damaged ({error})", "a whole payload", "run it again") from None


def _decoded(payloads: Sequence[Any], source: Source, name: str) -> tuple[Any, Any, Any]:
    try:
        return decode_rows(payloads)
    except (PayloadError, RowError) as error:
        raise source.corrupt(None, f"the histogram of {name} is damaged ({error})", "a whole payload", "run it again") from None
