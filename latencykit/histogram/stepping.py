"""Stepping down to a histogram, or to one number a run, with a word for those who cannot."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from latencykit.errors import NotHeldError, UsageError
from latencykit.stats.percentiles import is_resolved
from latencykit.summary import Summary
from latencykit.units import NANOSECONDS, format_percentile

if TYPE_CHECKING:
    from latencykit.histogram.noun import Histogram

__all__ = ["histogram_of", "statistic_of"]


def histogram_of(rung: Any, purpose: str) -> Histogram:
    """Return the histogram of a rung, in nanoseconds where its values have a unit.

    Parameters
    ----------
    rung : Samples, HistogramLog or Histogram
    purpose : str
        What it is wanted for, as the beginning of a sentence.

    Raises
    ------
    NotHeldError
        For a summary, and where nothing was counted.
    UsageError
        For what is no rung.
    """
    name = getattr(getattr(rung, "run", None), "source", None) or "this source"
    if isinstance(rung, Summary):
        holds = [*rung.stats, *(f"p{format_percentile(p)}" for p in rung.percentiles)]
        raise NotHeldError(
            f"{name}: {purpose} needs the whole distribution, and it holds only {', '.join(holds) or 'nothing'}; "
            "read an output that keeps the samples or a histogram"
        )
    if not hasattr(rung, "histogram"):
        raise UsageError(f"{purpose} takes what lk.read gives (a log, samples, a histogram), not {type(rung).__name__}")
    counted: Histogram = rung.histogram()
    if not counted.count + counted.censored:
        raise NotHeldError(f"{name}: nothing was counted; was the range too narrow?")
    return counted.to_unit("ns") if counted.unit in NANOSECONDS else counted


def statistic_of(rung: Histogram | Summary, name: str, confidence: float = 0.95) -> float:
    """Return one number of a run, NaN where its sample does not support it or the source does not pin it down.

    Parameters
    ----------
    rung : Histogram or Summary
    name : str
        ``"p99.9"``, ``"mean"`` or a trimmed mean; see `latencykit.stats.conditions.statistic_name`.
    confidence : float, default 0.95
        At which a percentile has to be bounded from above.

    Examples
    --------
    >>> from latencykit.histogram import Histogram
    >>> h = Histogram.of(range(1000))
    >>> statistic_of(h, "p99"), statistic_of(h, "mean"), statistic_of(h, "p99.99")
    (989.0, 499.5, nan)
    """
    if isinstance(rung, Summary):
        try:
            return float(rung.percentile(float(name[1:])) if name.startswith("p") else rung.stats[name])
        except (NotHeldError, KeyError):
            return math.nan
    if name == "p100":
        return rung.max if not rung.censored and is_resolved(*rung.bracket("max")) else math.nan
    if name.startswith("p"):
        row = rung.percentile_rows([float(name[1:])], confidence)[0]
        return row.value if row.supported and row.resolved else math.nan
    if name == "mean":
        return rung.mean if rung.censored or is_resolved(*rung.bracket("mean")) else math.nan
    found = rung.trimmed(name)
    return found.value if found.resolved or rung.censored else math.nan
