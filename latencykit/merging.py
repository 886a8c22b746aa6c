"""Adding up rungs of any kind: what may be added is, what may not says why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latencykit.errors import UsageError
from latencykit.histogram import merge_histograms, reported
from latencykit.log import HistogramLog, merge_logs
from latencykit.summary import Summary

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["merge"]


def merge(rungs: Iterable[Any] | Mapping[str, Any], align: str = "absolute") -> Any:
    """Add up what several hosts, files or runs measured.

    Parameters
    ----------
    rungs : iterable or mapping of rungs
        Logs give a log; anything else steps down to histograms and gives a histogram.
    align : {"absolute", "relative"}
        How the intervals of logs are laid side by side: by the clock, or by the time since each began.

    Returns
    -------
    HistogramLog or Histogram

    Raises
    ------
    MixedInputsError
        For summaries (an average of percentiles is the percentile of nothing), and for different units, measures or
        corrections.

    Examples
    --------
    >>> from latencykit.histogram import Histogram
    >>> merge([Histogram.of([1, 2]), Histogram.of([900])]).max
    900.0
    """
    parts = list(rungs.values()) if hasattr(rungs, "values") else list(rungs)
    if not parts:
        raise UsageError("there is nothing to merge")
    for part in parts:
        if isinstance(part, Summary):
            _ = part + part
    if all(isinstance(part, HistogramLog) for part in parts):
        return merge_logs(parts, align)
    return reported(merge_histograms([part.histogram() for part in parts]))
