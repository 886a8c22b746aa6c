"""How far the numbers of a measurement can be trusted: one place for the intervals of every command.

`evidence()` of samples, of a log and of a histogram gives the same questions to ask. Here they are answered for
data without time, by ranks, as of independent requests; `latencykit.log.tails` answers them where time is known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latencykit.histogram.trust import highest_pinned_down
from latencykit.stats.dependence import normal_quantile
from latencykit.stats.trim_spec import parse_trim

if TYPE_CHECKING:
    from collections.abc import Sequence

    from latencykit.histogram.noun import Histogram
    from latencykit.histogram.trust import PercentileRow
    from latencykit.stats.dependence import Dependence

__all__ = ["Evidence", "ranks_of_mean"]


@dataclass(frozen=True, eq=False)
class Evidence:
    """Intervals of the statistics of one measurement.

    Attributes
    ----------
    whole : Histogram
        All of it.
    """

    whole: Histogram

    @property
    def dependence(self) -> Dependence | None:
        """How requests depend on each other; None where the source does not know when they were."""
        return None

    def rows(
        self,
        percentiles: Sequence[float],
        confidence: float = 0.95,
        *,
        rare: bool = True,  # noqa: ARG002 - counts do not know how long it took
    ) -> tuple[list[PercentileRow], tuple[str, ...]]:
        """Return percentiles with their intervals, and why some have none.

        Parameters
        ----------
        percentiles : sequence of float
        confidence : float, default 0.95
        rare : bool, default True
            Allow for stalls that a short run need not have seen: for statements about a system. Two runs of one
            length are compared, and loads are set side by side, without.
        """
        return self.whole.percentile_rows(percentiles, confidence), ()

    def mean(
        self,
        name: str = "mean",
        confidence: float = 0.95,
        *,
        rare: bool = True,  # noqa: ARG002 - as above
    ) -> tuple[float, float]:
        """Return by how much a mean may be lower and higher than the sample's (both 0 or more; infinite where open).

        Parameters
        ----------
        name : str
            ``"mean"``, or a mean between two ranks such as ``"tm99"``.
        confidence : float, default 0.95
        rare : bool, default True
        """
        ends = ranks_of_mean(name)
        if ends is None or not self.whole.count:
            return 0.0, 0.0
        counted = self.whole.counted.occupied()
        shares = counted.cumulative / counted.count
        first, last = (counted.middle[min(int(np.searchsorted(shares, end - 1e-12)), shares.size - 1)] for end in ends)
        kept = np.clip(counted.middle, first, last)
        mean = float((kept * counted.counts).sum() / counted.count)
        spread = math.sqrt(max(float(((kept - mean) ** 2 * counted.counts).sum()), 0.0)) / counted.count / (ends[1] - ends[0])
        if name == "mean":
            spread = self.whole.bracket("std")[1] / math.sqrt(counted.count)
        error = normal_quantile((1 + confidence) / 2) * spread
        return error, error

    def highest_supported_percentile(self, confidence: float = 0.95) -> float:
        """Return the highest percentile that the measurement bounds from above, and that the source pins down."""
        return highest_pinned_down(self.whole, self.solid_up_to(confidence)[0])

    def solid_up_to(self, confidence: float = 0.95) -> tuple[float, str]:
        """Return the percentile up to which the measurement bounds the curve, and what it is based on beyond (``"1 stall"``).

        The words are empty where time is not known.
        """
        return self.whole.sample_limit(confidence), ""


def ranks_of_mean(name: str) -> tuple[float, float] | None:
    """Return the shares of the ranks between which a mean is taken, None where it is not cut by ranks.

    Examples
    --------
    >>> ranks_of_mean("mean"), ranks_of_mean("TM(:99%)"), ranks_of_mean("TM(1ms:2ms)")
    ((0.0, 1.0), (0.0, 0.99), None)
    """
    trim = parse_trim("TM(0%:100%)" if name == "mean" else name)
    return (float(trim.low), float(trim.high)) if trim.kind in ("TM", "WM") and trim.by_rank else None
