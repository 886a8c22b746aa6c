"""What a trimmed statistic keeps: the notations ``tm99.9``, ``TM(5%:95%)``, ``TM(150ms:1s)`` and their relatives.

Three things are called "tm99" out there. Here ``tm99`` leaves out 1 % at *each* end, as the articles and perf-gauge's
manual say; Amazon CloudWatch's tm99 leaves out the top 1 % only and is written ``TM(:99%)`` here, in CloudWatch's own
notation for it; perf-gauge's program trims by value, not by rank, and what it printed is quoted, never recomputed.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction

from latencykit.errors import UsageError
from latencykit.units import NANOSECONDS, format_percentile, format_value, parse_duration

__all__ = ["Trim", "parse_trim"]

_LONGEST = 80  # characters
_SHORT = re.compile(r"\s*(tm|wm|tc|ts)\s*(\d+(?:\.\d+)?)\s*%?\s*", re.IGNORECASE)
_RANGE = re.compile(r"\s*(tm|wm|tc|ts|pr)\s*\(\s*([^:()]*?)\s*:\s*([^:()]*?)\s*\)\s*", re.IGNORECASE)
_DECIMAL = re.compile(r"\d+(?:\.\d*)?|\.\d+")
_WHAT = {
    "TM": "mean",
    "WM": "winsorized mean",
    "TC": "count",
    "TS": "sum",
    "PR": "share (in %)",
}


@dataclass(frozen=True)
class Trim:
    """What to keep.

    Attributes
    ----------
    kind : {"TM", "WM", "TC", "TS", "PR"}
        Trimmed mean, winsorized mean, trimmed count, trimmed sum, share within.
    low, high : Fraction or float
        Bounds: shares of the ranks (0..1) as exact fractions, or values as floats, of which `low` is exclusive and
        `high` inclusive.
    text : str
        The specification as it was written.
    """

    kind: str
    low: Fraction | float
    high: Fraction | float
    text: str

    @property
    def by_rank(self) -> bool:
        """Whether the bounds are shares of the ranks, not values."""
        return isinstance(self.high, Fraction)

    def definition(self, unit: str = "ns") -> str:
        """Return the specification in full, and in words; values are shown in their `unit`.

        Examples
        --------
        >>> parse_trim("tm95").definition()
        'TM(5%:95%): mean without the lowest 5 % and the highest 5 %'
        """
        low, high = self.low, self.high
        if isinstance(low, Fraction) and isinstance(high, Fraction):
            bounds = [f"{_percent(low)}%" if low else "", f"{_percent(high)}%" if high < 1 else ""]
            ends = [f"the lowest {_percent(low)} %"] if low else []
            ends += [f"the highest {_percent(1 - high)} %"] if high < 1 else []
            verb = "with {} pulled in to the rest" if self.kind == "WM" else "without {}"
            rest = verb.format(" and ".join(ends)) if ends else "of all"
        else:
            bounds = ["" if math.isinf(v) else format_value(float(v), unit) for v in (low, high)]
            ends = [f"above {bounds[0]}"] if bounds[0] else []
            ends += [f"up to {bounds[1]}"] if bounds[1] else []
            rest = ("held " if self.kind == "WM" else "of values ") + " and ".join(ends)
        return f"{self.kind}({bounds[0]}:{bounds[1]}): {_WHAT[self.kind]} {rest}"


def parse_trim(spec: str, unit: str = "ns") -> Trim:
    """Return what a specification keeps.

    Parameters
    ----------
    spec : str
        ``"tm99.9"`` (without the lowest and the highest 0.1 %; so ``wm``, ``tc``, ``ts``), ``"TM(5%:95%)"``,
        ``"TM(:99%)"``, ``"TM(150ms:1s)"``, ``"PR(:300ms)"``, ``"IQM"``.
    unit : str
        Unit of the values that the bounds are to be compared with; bare numbers are taken as such values.

    Raises
    ------
    UsageError
        Where the text is no such specification.

    Examples
    --------
    >>> trim = parse_trim("tm99.9")
    >>> trim.kind, trim.low, trim.high
    ('TM', Fraction(1, 1000), Fraction(999, 1000))
    >>> parse_trim("TM(150ms:1s)", "ms").low
    150.0
    """
    if len(spec) > _LONGEST:
        raise UsageError(f"{spec[:20]!r}… is no trimmed statistic; write tm99.9, TM(:99%) or TM(150ms:1s)")
    if spec.strip().upper() == "IQM":
        return Trim("TM", Fraction(1, 4), Fraction(3, 4), spec.strip())
    if short := _SHORT.fullmatch(spec):
        high = Fraction(short[2]) / 100
        if not Fraction(1, 2) < high <= 1:
            raise UsageError(
                f"{spec!r} would leave nothing: {short[1]}P leaves out 100 - P percent at each end, so P is above 50"
            )
        return Trim(short[1].upper(), 1 - high, high, spec.strip())
    if span := _RANGE.fullmatch(spec):
        return _parse_range(spec.strip(), span[1].upper(), span[2], span[3], unit)
    raise UsageError(
        f"{spec!r} is no trimmed statistic; write tm99.9, TM(5%:95%), TM(:99%), TM(150ms:1s), wm98, tc90, ts90, PR(:300ms) or IQM"
    )


def _parse_range(spec: str, kind: str, first: str, last: str, unit: str) -> Trim:
    if not first and not last:
        raise UsageError(f"{spec!r} names no bound; write for example TM(:99%) or TM(150ms:1s)")
    ranks = {text.endswith("%") for text in (first, last) if text}
    if len(ranks) > 1:
        raise UsageError(f"{spec!r} mixes a percentile and a value; both bounds must be of one kind")
    if ranks == {True}:
        if kind == "PR":
            raise UsageError(f"{spec!r} asks for a share between percentiles; PR takes values: PR(:300ms)")
        low, high = (_share(text, spec) if text else Fraction(n) for text, n in ((first, 0), (last, 1)))
        if not 0 <= low < high <= 1:
            raise UsageError(f"{spec!r} keeps nothing; percentiles ascend from 0% to 100%")
        return Trim(kind, low, high, spec)
    least, most = (_bound(text, unit) if text else end for text, end in ((first, -math.inf), (last, math.inf)))
    if not least < most:
        raise UsageError(f"{spec!r} keeps nothing; the first bound must be below the second")
    return Trim(kind, least, most, spec)


def _share(text: str, spec: str) -> Fraction:
    number = text.removesuffix("%").strip()
    if not _DECIMAL.fullmatch(number):  # an exponent could ask for a number of a billion digits
        raise UsageError(f"{text!r} in {spec!r} is no percentile; write for example TM(5%:95%)")
    return Fraction(number) / 100


def _bound(text: str, unit: str) -> float:
    return parse_duration(text, unit) / NANOSECONDS[unit] if unit in NANOSECONDS else _number(text)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{text!r} is no plain number, which values without a unit are compared with") from None


def _percent(share: Fraction) -> str:
    return format_percentile(float(share * 100))
