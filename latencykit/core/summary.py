"""The lowest level of detail: named statistics and a count, which cannot be merged."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from latencykit._arrays import Value
from latencykit._records import record
from latencykit._text import brief_list
from latencykit._typing import Floats
from latencykit.core.percentile_rows import PercentileRow, percentile_frame
from latencykit.core.quantiles import Percentiles, highest_supported_percentile, is_resolved
from latencykit.core.run import Run
from latencykit.errors import DataNotAvailableError, IncompatibleDataError
from latencykit.units import checked_unit, format_percentile, parse_percentile, unit_factor

if TYPE_CHECKING:
    import pandas as pd


@record(eq=False)
class Summary(Percentiles, Value):
    """Named statistics, as reported by a tool.

    Parameters
    ----------
    stats : mapping of str to float
        ``mean``, ``std``, ``min``, ``max``, and whatever else the tool names.
    reported_percentiles : mapping of float to float
        Percentile (0..100) → value.
    count : int or None
        Number of values, where the tool reports it.
    unit : str
        Unit of the values.
    run : Run
        Facts about the measurement.
    runs : tuple of Summary
        The runs of one benchmark that the source repeats, where there are several; then a
        percentile of all lies between the lowest and the highest of theirs.
    causes : mapping of float to str
        Percentile → why it is uncertain, of which only the data summarised here knew.

    Examples
    --------
    >>> s = Summary({"mean": 1200.0}, unit="ns", run=Run(tool="go test -bench"))
    >>> s.mean
    1200.0
    >>> s.percentile(99)
    Traceback (most recent call last):
    latencykit.errors.DataNotAvailableError: go test -bench's output has no p99, only mean; ...
    """

    stats: Mapping[str, float] = field(default_factory=dict)
    reported_percentiles: Mapping[float, float] = field(default_factory=dict)
    count: int | None = None
    unit: str = "ns"
    run: Run = field(default_factory=Run)
    runs: tuple[Summary, ...] = ()
    causes: Mapping[float, str] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_unit(self.unit)

    @classmethod
    def of_runs(cls, runs: Sequence[Summary]) -> Summary:
        """Return the runs of one benchmark as one summary, or the only one.

        Its mean is theirs, each counted alike; percentiles are the highest of any run.

        Examples
        --------
        >>> Summary.of_runs([Summary({"mean": 10.0}), Summary({"mean": 14.0})])
        Summary(mean 12 ns, lowest mean of a run 10 ns, highest mean of a run 14 ns)
        """
        if len(runs) == 1:
            return runs[0]
        named = {
            name: [run.stats[name] for run in runs if name in run.stats]
            for name in ("mean", "min", "max")
        }
        means, stats = named["mean"], dict[str, float]()
        if len(means) == len(runs):
            stats = {
                "mean": math.fsum(means) / len(means),
                "lowest mean of a run": min(means), "highest mean of a run": max(means),
            }  # fmt: skip
        stats |= {name: end(named[name]) for name, end in (("min", min), ("max", max))
                  if len(named[name]) == len(runs)}  # fmt: skip
        percentiles = {
            p: max(run.reported_percentiles[p] for run in runs)
            for p in runs[0].reported_percentiles
            if all(p in run.reported_percentiles for run in runs)
        }
        counts = [run.count for run in runs if run.count is not None]
        count = sum(counts) if len(counts) == len(runs) else None
        return cls(stats, percentiles, count, runs[0].unit, runs[0].run, tuple(runs))

    def percentile_bounds(self, percentile: float) -> tuple[float, float]:
        """Return the lowest and the highest value of a reported percentile in any run."""
        values = [run.percentile(percentile) for run in self.runs or (self,)]
        return min(values), max(values)

    @property
    def mean(self) -> float:
        """The reported mean."""
        return self._reported("mean")

    @property
    def std(self) -> float:
        """The reported standard deviation."""
        return self._reported("std")

    @property
    def min(self) -> float:
        """The reported minimum."""
        return self._reported("min")

    @property
    def max(self) -> float:
        """The reported maximum."""
        return self._reported("max")

    def _values_at(self, percentiles: Floats) -> Floats:
        return np.array([self._reported_percentile(asked) for asked in percentiles.tolist()])

    def percentiles(
        self, percentiles: ArrayLike | None = None, *, confidence: float = 0.95
    ) -> pd.DataFrame:
        """Return a table of reported percentiles, by default of all; see `Histogram.percentiles`.

        `low` and `high` are NaN: a summary has no confidence intervals. A percentile is supported
        if the tool reports enough requests for it.
        """
        return percentile_frame(self.reported_rows(percentiles, confidence=confidence))

    def reported_rows(
        self, percentiles: ArrayLike | None = None, *, confidence: float = 0.95
    ) -> list[PercentileRow]:
        """Return reported percentiles with their bounds in the runs and their support."""
        p = list(self.reported_percentiles) if percentiles is None else percentiles
        limit = highest_supported_percentile(self.count or 0, confidence)
        return [
            PercentileRow(
                low=math.nan, high=math.nan, supported=not cause, cause=cause, percentile=asked,
                value=self._reported_percentile(asked),
                bucket_low=low, bucket_high=high, resolved=bool(is_resolved(low, high)),
            )
            for asked in np.ravel(p).tolist()
            for few in ["" if asked <= limit or asked == 100 else "few requests"]
            for cause in [self.causes.get(asked, few)]
            for low, high in [self.percentile_bounds(asked)]
        ]  # fmt: skip

    def summary(self) -> Summary:
        """Return itself: the lowest data type."""
        return self

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row per reported statistic: its name and value."""
        import pandas as pd

        named = {f"p{format_percentile(p)}": v for p, v in self.reported_percentiles.items()}
        rows = list((dict(self.stats) | named).items())
        return pd.DataFrame(rows, columns=["statistic", "value"])

    def to_unit(self, unit: str) -> Summary:
        """Return the same summary in another unit."""
        if unit == self.unit:
            return self
        factor = unit_factor(self.unit, unit)
        return replace(
            self,
            stats={name: value * factor for name, value in self.stats.items()},
            reported_percentiles={p: v * factor for p, v in self.reported_percentiles.items()},
            unit=unit,
            run=self.run.replace(unit=unit),
            runs=tuple(run.to_unit(unit) for run in self.runs),
        )

    def with_run(self, **changes: object) -> Summary:
        """Return a copy with some facts of the run changed."""
        return replace(self, run=self.run.replace(**changes))

    def __add__(self, other: object) -> NoReturn:
        raise IncompatibleDataError(
            "summaries cannot be added: an average of percentiles is the percentile of nothing; "
            "keep histograms (.hlog, or the tool's output with its buckets) and merge those"
        )

    def _repr_html_(self) -> str:
        from latencykit.core.key_statistics import html_of

        return html_of("Summary", self)

    def __repr__(self) -> str:
        from latencykit.core.key_statistics import key_statistics

        shown = [f"{name} {text}" for name, text in key_statistics(self) if name != "requests"]
        return f"Summary({', '.join(shown)})"

    def _reported(self, name: str) -> float:
        if name in self.stats:
            return self.stats[name]
        return self._refuse(name)

    def _reported_percentile(self, percentile: float) -> float:
        p = parse_percentile(percentile)
        if p in self.reported_percentiles:
            return self.reported_percentiles[p]
        if p in (0.0, 100.0):
            return self._reported("min" if p == 0 else "max")
        return self._refuse(f"p{format_percentile(p)}")

    def _refuse(self, name: str) -> NoReturn:
        names = [*self.stats, *(f"p{format_percentile(p)}" for p in self.reported_percentiles)]
        if not names and self.count == 0:
            raise DataNotAvailableError(f"there is no {name}: no request was answered well")
        tool = self.run.tool or self.run.format or "the source"
        hint = next((note for note in self.run.notes if "distribution" in note), "")
        hint = hint or "read an output that keeps the samples or a histogram"
        raise DataNotAvailableError(
            f"{tool}'s output has no {name}, only {brief_list(names, 12) or 'nothing'}; {hint}"
        )
