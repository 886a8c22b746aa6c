"""Conditions on a change, as a pipeline states them: ``p99.9 > +5%``, ``mean > +1ms``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from latencykit.errors import UsageError
from latencykit.stats.trim_spec import parse_trim
from latencykit.units import NANOSECONDS, format_percentile, parse_duration, parse_percentile

if TYPE_CHECKING:
    from latencykit.stats.verdict import Change

__all__ = ["Condition", "parse_condition", "statistic_name"]

_CONDITION = re.compile(r"\s*(.+?)\s*(>=|<=|>|<)\s*([+-]?)\s*(\S.*?)\s*")
_HINT = "write for example 'p99.9 > +5%' or 'mean > +1ms'"


@dataclass(frozen=True)
class Condition:
    """A change that must not be.

    Attributes
    ----------
    statistic : str
        ``"p99.9"``, ``"mean"``, ``"tm99"``.
    above : bool
        Whether it is met by changes above the threshold, or below.
    threshold : float
        Relative (0.05 is 5 %) or in nanoseconds.
    relative : bool
    text : str
        The condition as it was written.
    """

    statistic: str
    above: bool
    threshold: float
    relative: bool
    text: str

    def holds(self, change: Change, unit: str = "ns") -> bool | None:
        """Return whether a change surely meets the condition.

        Parameters
        ----------
        change : Change
            Of this statistic.
        unit : str
            Unit of its values.

        Returns
        -------
        bool or None
            Decided on the end of the interval that is closest to no change, never on the point; None where that end
            is open, so that nothing can be told.
        """
        if self.relative:
            bound, threshold, end = (change.low if self.above else change.high), self.threshold, -1.0
        else:
            bound = change.difference_low if self.above else change.difference_high
            threshold, end = self.threshold / NANOSECONDS.get(unit, 1.0), -float("inf")
        if bound == (end if self.above else float("inf")):
            return None
        return bool(bound > threshold if self.above else bound < threshold)


def parse_condition(text: str) -> Condition:
    """Return the condition that a text states.

    Parameters
    ----------
    text : str
        A percentile, ``mean`` or a trimmed mean; ``>`` or ``<``; a change in percent or, with its sign, as a duration.

    Raises
    ------
    UsageError
        Where the text states none.

    Examples
    --------
    >>> parse_condition("p99.9 > +5%")
    Condition(statistic='p99.9', above=True, threshold=0.05, relative=True, text='p99.9 > +5%')
    >>> parse_condition("mean > +1ms").threshold
    1000000.0
    """
    found = _CONDITION.fullmatch(text)
    if not found:
        raise UsageError(f"{text!r} is no condition; {_HINT}")
    name, sign, size = statistic_name(found[1]), found[3], found[4]
    if name == "p100":
        raise UsageError(f"{text!r} judges the maximum, which grows with the length of a run; take a percentile instead")
    factor = -1.0 if sign == "-" else 1.0
    if size.endswith("%"):
        try:
            return Condition(name, ">" in found[2], factor * float(size[:-1]) / 100, True, text)
        except ValueError:
            raise UsageError(f"{size!r} in {text!r} is no number of percent; {_HINT}") from None
    if not sign:
        raise UsageError(
            f"{text!r} is a limit, not a change; write '+{size}' for a change, or check the limit with an SLO (check --slo)"
        )
    return Condition(name, ">" in found[2], factor * parse_duration(size), False, text)


def statistic_name(text: str) -> str:
    """Return the usual name of a statistic that can be compared: ``p99.9``, ``mean``, or a trimmed mean as written.

    Examples
    --------
    >>> statistic_name("0.99")
    Traceback (most recent call last):
    latencykit.errors.UsageError: p0.99 lies below the first percent: was p99 meant? Write 99
    >>> statistic_name("99.9"), statistic_name("avg"), statistic_name("max"), statistic_name("tm99")
    ('p99.9', 'mean', 'p100', 'tm99')
    """
    word = text.strip().lower()
    if word in ("mean", "avg", "average"):
        return "mean"
    if word in ("max", "maximum", "worst"):
        return "p100"
    if word in ("median", "med"):
        return "p50"
    if word[:1] in "tw" or word == "iqm":
        parse_trim(text)
        return text.strip()
    percentile = parse_percentile(text)
    if 0 < percentile < 1:
        meant = format_percentile(float(f"{100 * percentile:.12g}"))
        raise UsageError(f"p{format_percentile(percentile)} lies below the first percent: was p{meant} meant? Write {meant}")
    return f"p{format_percentile(percentile)}"
