"""The output of models: buckets and probabilities, without counts and so without confidence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latencykit._arrays import Value
from latencykit._records import record
from latencykit._typing import Floats
from latencykit.core.buckets import Buckets
from latencykit.core.quantiles import Percentiles
from latencykit.core.run import Run
from latencykit.errors import InvalidArgumentError
from latencykit.units import format_value, in_unit, unit_factor

if TYPE_CHECKING:
    import pandas as pd


@record(eq=False)
class Distribution(Percentiles, Value):
    """A distribution over buckets: fan-out, sums, hedges, mixtures.

    Parameters
    ----------
    buckets : Buckets
        Layout of the buckets.
    index : ndarray of int64, shape (buckets,)
        Ascending bucket indices that carry probability.
    probabilities : ndarray of float64, shape (buckets,)
        Probability of each; they sum to 1.
    unit : str
        Unit of the values.
    run : Run
        The provenance of the model's input.
    censored_at : float
        From here on values are only lower bounds: the model's input was censored there.

    Examples
    --------
    >>> from latencykit.core.buckets import EdgeBuckets
    >>> d = Distribution(EdgeBuckets([0, 1], [1, 10]), np.array([0, 1]), np.array([0.9, 0.1]))
    >>> d.percentile([50, 95]).tolist(), d.share_above(1)
    ([1.0, 10.0], 0.1)
    """

    buckets: Buckets
    index: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    unit: str = "ns"
    run: Run = field(default_factory=Run)
    censored_at: float = float("inf")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.index.shape != self.probabilities.shape or not self.index.size:
            raise InvalidArgumentError(
                "a distribution needs one probability a bucket, and at least one bucket"
            )
        if (self.probabilities < 0).any() or abs(float(self.probabilities.sum()) - 1.0) > 1e-6:
            raise InvalidArgumentError(
                f"probabilities must be ≥ 0 and sum to 1, not {self.probabilities.sum():g}"
            )

    def _values_at(self, percentiles: Floats) -> Floats:
        return self.buckets.high(self._index_at(percentiles))

    def _index_at(self, p: Floats) -> NDArray[np.int64]:
        if not ((p >= 0) & (p <= 100)).all():
            raise InvalidArgumentError(f"percentiles must be from 0 to 100, not {p.tolist()}")
        # A sum of probabilities may fall short of its exact value by rounding; the margin is far
        # below any sample's.
        occupied = self.probabilities > 0
        cumulative = np.cumsum(self.probabilities[occupied]) * (1 + 1e-12)
        at = np.minimum(np.searchsorted(cumulative, p / 100.0, "left"), cumulative.size - 1)
        return np.asarray(self.index[occupied][at], np.int64)

    @overload
    def bounds(self, percentile: float) -> tuple[float, float]: ...
    @overload
    def bounds(self, percentile: Sequence[float] | Floats) -> tuple[Floats, Floats]: ...
    def bounds(self, percentile: ArrayLike) -> tuple[float, float] | tuple[Floats, Floats]:
        """Return the edges of a percentile's bucket; infinite above if it is only a lower bound."""
        p = np.asarray(percentile, np.float64)
        values = np.asarray(self.percentile(p))
        open_above = values >= self.censored_at
        low = np.where(open_above, values, self.buckets.low(self._index_at(p)))
        high = np.where(open_above, math.inf, values)
        return (low, high) if p.ndim else (float(low), float(high))

    def share_above(self, value: float | str) -> float:
        """Return the probability (0..1) of a value above `value` (in `unit`, or ``"5ms"``)."""
        limit = in_unit(value, self.unit)
        return float(self.probabilities[self.buckets.high(self.index) > limit].sum())

    def percentile_of(self, value: float | str) -> float:
        """Return the share (in %) of values surely at or below `value`: complete buckets only."""
        return 100.0 * (1.0 - self.share_above(value))

    @property
    def min(self) -> float:
        """Lowest value of the lowest bucket."""
        return float(self.buckets.low(self.index[self.probabilities > 0][0]))

    @property
    def max(self) -> float:
        """Highest value of the highest bucket."""
        return float(self.buckets.high(self.index[self.probabilities > 0][-1]))

    @property
    def mean(self) -> float:
        """Mean, from the middle of each bucket."""
        return float((self.buckets.mid(self.index) * self.probabilities).sum())

    @property
    def std(self) -> float:
        """Standard deviation, from the middle of each bucket."""
        middle = self.buckets.mid(self.index)
        return float(np.sqrt((((middle - self.mean) ** 2) * self.probabilities).sum()))

    def percentiles(
        self, percentiles: ArrayLike = (50, 75, 90, 95, 99, 99.9, 99.99)
    ) -> pd.DataFrame:
        """Return a table of percentiles: value, and `at_least` where that is only a lower bound."""
        import pandas as pd

        p = np.atleast_1d(np.asarray(percentiles, np.float64))
        values = self.percentile(p)
        columns = {"value": values, "at_least": values >= self.censored_at}
        return pd.DataFrame(columns, index=pd.Index(p, name="percentile"))

    @property
    def table(self) -> pd.DataFrame:
        """The usual percentiles; see `percentiles`."""
        return self.percentiles()

    def to_unit(self, unit: str) -> Self:
        """Return the same distribution in another unit."""
        if unit == self.unit:
            return self
        factor = unit_factor(self.unit, unit)
        return replace(
            self, buckets=self.buckets.scaled(factor), unit=unit, run=self.run.replace(unit=unit),
            censored_at=self.censored_at * factor,
        )  # fmt: skip

    def _repr_html_(self) -> str:
        from latencykit.core.key_statistics import html_of

        return html_of("Model", self)

    def __repr__(self) -> str:
        shown = {"p50": self.percentile(50), "p99": self.percentile(99), "max": self.max}
        texts = (f"{name} {format_value(float(v), self.unit)}" for name, v in shown.items())
        return f"Distribution({', '.join(texts)})"
