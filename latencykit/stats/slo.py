"""Service level objectives: limits on statistics, and whether a measurement can tell that they are met."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.errors import UsageError
from latencykit.stats.conditions import statistic_name
from latencykit.stats.slo_check import Outcome, SLORow, check_limit
from latencykit.stats.trim_spec import parse_trim
from latencykit.units import NANOSECONDS, format_duration, parse_duration

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["SLO", "Limit", "passed"]

_ENTRY = re.compile(r"(\w+\s*\(.*?\)|.+?)\s*(<=|>=|≤|≥|<|>|=|:)\s*(.+)")
_NUMBER = re.compile(r"\d+(?:\.\d*)?|\.\d+")
_FAILED = ("failed", "fail", "failures", "failure", "errors", "error", "error rate", "failure rate")
_HINT = "write for example '99.9=20ms, max=1s, mean=2ms, failed=0.1%'"


@dataclass(frozen=True)
class Limit:
    """The most that a statistic may be.

    Attributes
    ----------
    statistic : str
        ``"p99.9"``, ``"max"``, ``"mean"``, ``"tm99"`` or ``"failed"``.
    limit : float
        Nanoseconds; a bare number where `bare`; a share (0..1) of all requests for ``failed``.
    bare : bool
        The limit was written without a unit, for values that have none.
    """

    statistic: str
    limit: float
    bare: bool = False

    @property
    def percentile(self) -> float | None:
        """The percentile (0..100) that is limited; 100 for the maximum, None for other statistics."""
        if self.statistic == "max":
            return 100.0
        return float(self.statistic[1:]) if self.statistic[:1] == "p" else None

    def in_unit(self, unit: str) -> float:
        """Return the limit in the unit of some values.

        Raises
        ------
        UsageError
            Where one of the two has a unit and the other has none.
        """
        if self.statistic == "failed":
            return self.limit
        if self.bare != (unit not in NANOSECONDS):
            kind = "values with a unit" if self.bare else "values without one"
            raise UsageError(
                f"the limit of {self.statistic} cannot be compared with {kind}; write "
                + ("it with a unit, such as 20ms" if self.bare else "a bare number, or name the values' unit (--unit)")
            )
        return self.limit if self.bare else self.limit / NANOSECONDS[unit]

    def __str__(self) -> str:
        if self.statistic == "failed":
            return f"failed={100 * self.limit:g}%"
        return f"{self.statistic}={self.limit:g}" if self.bare else f"{self.statistic}={format_duration(self.limit, 15)}"


@dataclass(frozen=True)
class SLO:
    """Limits that all have to be met.

    Parameters
    ----------
    limits : tuple of Limit

    Examples
    --------
    >>> slo = SLO.parse("99.9=20ms, max=1s, failed=0.1%")
    >>> print(slo)
    p99.9=20 ms, max=1 s, failed=0.1%
    >>> import latencykit as lk
    >>> [row.outcome for row in slo.check(lk.Histogram.of(range(1_000_000, 6_000_000, 1000)))]
    ['met', 'met', 'met']
    """

    limits: tuple[Limit, ...]

    @classmethod
    def parse(cls, text: str) -> SLO:
        """Return the SLO that a text states.

        Parameters
        ----------
        text : str
            Entries such as ``99.9=20ms``, ``p99<20ms``, ``max=1s``, ``mean=2ms``, ``tm99=5ms``, ``failed=0.1%``, parted
            by commas, semicolons or lines; ``#`` begins a comment.

        Raises
        ------
        UsageError
            Where an entry states no limit, or two limit the same statistic.
        """
        lines = (line.split("#", 1)[0] for line in text.splitlines())
        entries = [entry.strip() for line in lines for entry in re.split(r"[,;]", line)]
        return cls.of(_parse_entry(entry) for entry in entries if entry)

    @classmethod
    def of(cls, limits: Iterable[Limit]) -> SLO:
        """Return the SLO of some limits, each statistic being limited once."""
        held = tuple(limits)
        names = [limit.statistic for limit in held]
        if not held:
            raise UsageError(f"the SLO states no limit; {_HINT}")
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice:
            raise UsageError(f"the SLO limits {twice} twice; keep the stricter one")
        return cls(held)

    def check(self, source: Any, confidence: float = 0.95, *, rare: bool = True) -> list[SLORow]:
        """Return one row a limit: met, missed, or unknown where the measurement cannot tell.

        Parameters
        ----------
        source : Histogram, HistogramLog, Samples or Summary
            Or the evidence of one of them. Values of the rows are in its unit.
        confidence : float, default 0.95
        rare : bool, default True
            Allow for stalls that a short measurement need not have seen; see `Evidence.rows`.

        Returns
        -------
        list of SLORow

        Notes
        -----
        A limit is met where the whole confidence interval, joined with the bucket, is within it; missed where all of
        it is beyond; anything else is unknown, and a percentile that the sample does not bound can only be missed or
        unknown. Requests that failed count as slower than any limit. Where the source knows time, intervals allow for
        requests that are slow together.
        """
        evidence = source if hasattr(source, "whole") else source.evidence() if hasattr(source, "histogram") else None
        counted = source if evidence is None else evidence.whole
        limits = [(limit.statistic, limit.in_unit(counted.unit)) for limit in self.limits]
        return [check_limit(counted, *limit, confidence, evidence, rare=rare) for limit in limits]

    def staircase(self) -> tuple[Floats, Floats]:
        """Return the corners of the limits on percentiles, for drawing.

        Returns
        -------
        percentile, limit : ndarray of float64, shape (2 × limits,)
            From 0 on; each limit holds up to its percentile, the maximum's up to 100. Limits in nanoseconds, or bare.

        Examples
        --------
        >>> percentile, limit = SLO.parse("p90=10ms, max=1s").staircase()
        >>> percentile.tolist(), (limit / 1e6).tolist()
        ([0.0, 90.0, 90.0, 100.0], [10.0, 10.0, 1000.0, 1000.0])
        """
        steps = sorted((item.percentile, item.limit) for item in self.limits if item.percentile is not None)
        ends = np.array([percentile for percentile, _ in steps], np.float64)
        corners = np.repeat(np.concatenate(([0.0], ends)), 2)[1:-1]
        return corners, np.repeat(np.array([limit for _, limit in steps], np.float64), 2)

    def __str__(self) -> str:
        return ", ".join(map(str, self.limits))


def passed(rows: Iterable[SLORow], *, strict: bool = False) -> bool | None:
    """Return whether all limits are met; None where some are unknown and none is missed.

    Parameters
    ----------
    rows : iterable of SLORow
    strict : bool, default False
        Take "unknown" for "missed".

    Examples
    --------
    >>> passed([]), passed([], strict=True)
    (True, True)
    """
    outcomes: set[Outcome] = {row.outcome for row in rows}
    if "missed" in outcomes or (strict and "unknown" in outcomes):
        return False
    return None if "unknown" in outcomes else True


def _parse_entry(entry: str) -> Limit:
    found = _ENTRY.fullmatch(entry)
    if not found:
        raise UsageError(f"{entry!r} is no limit; {_HINT}")
    name, sign, value = found[1].strip(), found[2], found[3].strip()
    if sign in (">", ">=", "≥"):
        raise UsageError(f"{entry!r} is a lower limit; an SLO states the most that a statistic may be, such as p99<20ms")
    if name.lower() in _FAILED:
        return Limit("failed", _share(value, entry))
    statistic = statistic_name(name)
    statistic = "max" if statistic == "p100" else statistic
    if statistic[0] in "tTwW" and parse_trim(statistic).kind not in ("TM", "WM"):
        raise UsageError(f"{entry!r} limits a count or a sum; limit percentiles, the maximum, means, or failed requests")
    if _NUMBER.fullmatch(value):
        return Limit(statistic, float(value), bare=True)
    limit = parse_duration(value)
    if limit < 0:
        raise UsageError(f"{entry!r} limits a latency to less than nothing; {_HINT}")
    return Limit(statistic, limit)


def _share(value: str, entry: str) -> float:
    number = value.removesuffix("%").strip()
    if not _NUMBER.fullmatch(number) or (value == number and float(number) != 0) or float(number) > 100:
        raise UsageError(f"{entry!r} states no share of the requests; write it in percent, such as failed=0.1%")
    return float(number) / 100
