"""The lowest rung: named statistics and a count, and nothing that could be added or asked further."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from latencykit.core.run import Run
from latencykit.errors import DataNotAvailableError, IncompatibleDataError
from latencykit.units import checked_unit, format_percentile, parse_percentile, unit_factor

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Summary"]

_LISTED = 12


@dataclass(frozen=True)
class Summary:
    """Named statistics, as a tool printed them.

    Parameters
    ----------
    stats : mapping of str to float
        ``mean``, ``std``, ``min``, ``max``, and whatever else the tool names.
    percentiles : mapping of float to float
        Percentile (0..100) → value.
    count : int or None
        Number of values behind it, where the tool says.
    unit : str
        Unit of the values.
    run : Run
        What the source says of the measurement.

    Examples
    --------
    >>> s = Summary({"mean": 1200.0}, unit="ns", run=Run(tool="go test -bench"))
    >>> s.mean
    1200.0
    >>> s.percentile(99)
    Traceback (most recent call last):
    latencykit.errors.DataNotAvailableError: go test -bench's output holds no p99, only mean; ...
    """

    stats: Mapping[str, float] = field(default_factory=dict)
    percentiles: Mapping[float, float] = field(default_factory=dict)
    count: int | None = None
    unit: str = "ns"
    run: Run = field(default_factory=Run)

    def __post_init__(self) -> None:
        checked_unit(self.unit)

    @property
    def mean(self) -> float:
        """The mean that the tool printed."""
        return self._held("mean")

    @property
    def std(self) -> float:
        """The standard deviation that the tool printed."""
        return self._held("std")

    @property
    def min(self) -> float:
        """The minimum that the tool printed."""
        return self._held("min")

    @property
    def max(self) -> float:
        """The maximum that the tool printed."""
        return self._held("max")

    def percentile(self, percentile: float) -> float:
        """Return a percentile that the tool printed.

        Raises
        ------
        DataNotAvailableError
            For any other: nothing can be made of a summary that is not in it.
        """
        wanted = parse_percentile(percentile)
        if wanted in self.percentiles:
            return self.percentiles[wanted]
        if wanted in (0.0, 100.0):
            return self._held("min" if wanted == 0 else "max")
        return self._refuse(f"p{format_percentile(wanted)}")

    def quantile(self, quantile: float) -> float:
        """Return the quantile (0..1), where the tool printed that percentile."""
        return self.percentile(quantile * 100.0)

    def summary(self) -> Summary:
        """Return itself: the lowest data type."""
        return self

    def to_unit(self, unit: str) -> Summary:
        """Return the same summary in another unit."""
        if unit == self.unit:
            return self
        factor = unit_factor(self.unit, unit)
        stats = {name: value * factor for name, value in self.stats.items()}
        return Summary(
            stats,
            {p: v * factor for p, v in self.percentiles.items()},
            self.count,
            unit,
            self.run.replace(unit=unit),
        )

    def with_run(self, **changes: Any) -> Summary:
        """Return a copy with some facts of the run changed."""
        return Summary(
            self.stats, self.percentiles, self.count, self.unit, self.run.replace(**changes)
        )

    def __add__(self, other: object) -> NoReturn:
        raise IncompatibleDataError(
            "summaries cannot be added: an average of percentiles is the percentile of nothing; keep histograms "
            "(.hlog, or the tool's output with its buckets) and merge those"
        )

    def _repr_html_(self) -> str:
        from latencykit.core.key_statistics import html_of

        return html_of("Summary", self)

    def _held(self, name: str) -> float:
        if name not in self.stats:
            return self._refuse(name)
        return self.stats[name]

    def _refuse(self, name: str) -> NoReturn:
        holds = [*self.stats, *(f"p{format_percentile(p)}" for p in self.percentiles)]
        if len(holds) > _LISTED:
            holds = [*holds[: _LISTED - 2], "…", holds[-1]]
        tool = self.run.tool or self.run.format or "the source"
        hint = next((note for note in self.run.notes if "distribution" in note), "")
        hint = hint or "read an output that keeps the samples or a histogram"
        raise DataNotAvailableError(
            f"{tool}'s output holds no {name}, only {', '.join(holds) or 'nothing'}; {hint}"
        )
