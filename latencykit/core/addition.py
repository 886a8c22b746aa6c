"""Adding up data types of any kind: what may be added is, what may not says why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from latencykit.core import Data, is_summary
from latencykit.core.histogram import Histogram, merge_histograms
from latencykit.core.histogram_log import HistogramLog, merge_logs
from latencykit.core.run import require_data
from latencykit.errors import InvalidArgumentError

if TYPE_CHECKING:
    from latencykit.core.samples import Samples


def merge(
    series: Iterable[Data] | Mapping[str, Data], align: str = "absolute"
) -> HistogramLog | Histogram | Samples:
    """Add up what several hosts, files or runs measured.

    Parameters
    ----------
    series : iterable or mapping of data types
        Logs give a log, requests with their starts give requests; anything else steps down to
        histograms and gives a histogram.
    align : {"absolute", "relative"}
        How logs or requests are laid side by side: by the clock, or by the time since each began.

    Raises
    ------
    IncompatibleDataError
        For summaries (an average of percentiles is the percentile of nothing), and for different
        units, measures or corrections.

    Examples
    --------
    >>> from latencykit.core.histogram import Histogram
    >>> merge([Histogram.of([1, 2]), Histogram.of([900])]).max
    900.0
    """
    given = series.values() if isinstance(series, Mapping) else series
    parts: list[Any] = list(given) if hasattr(given, "__iter__") else [given]
    if not parts:
        raise InvalidArgumentError("there is nothing to merge")
    for part in parts:
        require_data(part, "merge")
        if is_summary(part):
            _ = part + part  # says why
    if all(isinstance(part, HistogramLog) for part in parts):
        return merge_logs(parts, align)
    join = getattr(type(parts[0]), "_joined", None)  # of requests
    if join and all(type(part) is type(parts[0]) for part in parts):
        together: Samples | None = join(parts, align)
        if together is not None:
            return together
    return merge_histograms([part.histogram() for part in parts])
