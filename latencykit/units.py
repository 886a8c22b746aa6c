"""Text ⇄ numbers: durations ("1.5ms" ⇄ nanoseconds) and percentiles ("p99.9" → 99.9)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeAlias

from latencykit._text import printable
from latencykit.errors import DataNotAvailableError, InvalidArgumentError, require

if TYPE_CHECKING:
    import numpy as np

Moment: TypeAlias = "float | str | datetime | timedelta | np.datetime64 | np.timedelta64"

NANOSECONDS: dict[str, float] = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
"""Nanoseconds per unit of stored values; ``none`` (a bare number) has none."""

_SPELLINGS = {
    **dict.fromkeys(("ps", "picosecond", "picoseconds"), 1e-3),
    **dict.fromkeys(("ns", "nsec", "nsecs", "nanosecond", "nanoseconds"), NANOSECONDS["ns"]),
    **dict.fromkeys(
        ("us", "usec", "usecs", "µs", "μs", "microsecond", "microseconds"), NANOSECONDS["us"]
    ),
    **dict.fromkeys(("ms", "msec", "msecs", "millisecond", "milliseconds"), NANOSECONDS["ms"]),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), NANOSECONDS["s"]),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60000000000.0),
    **dict.fromkeys(("h", "hr", "hour", "hours"), 3600000000000.0),
    **dict.fromkeys(("d", "day", "days"), 86400000000000.0),
}
_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
# Compiled when they are first used.
_PART = rf"\s*({_NUMBER})\s*([A-Za-zµμ]+)\s*"
_PERCENTILE = rf"\s*[pP]?\s*({_NUMBER})\s*(?:%|th)?\s*"


# Unit, its nanoseconds, and from how many nanoseconds on it is used.
_STEPS = (
    *((unit, size, 2 * size) for unit, size in (("d", 86_400e9), ("h", 3600e9), ("min", 60e9))),
    *((unit, size, size) for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0))),
)


def unit_factor(source: str, target: str) -> float:
    """Return how many `target` units one `source` unit is.

    >>> unit_factor("ms", "ns")
    1000000.0
    """
    require(target, str, "a unit: 'ns', 'us', 'ms' or 's'")
    if source == target:
        return 1.0
    if source not in NANOSECONDS or target not in NANOSECONDS:
        raise InvalidArgumentError(
            f"cannot turn values of unit {source!r} into {target!r}; name the source's unit with "
            "unit="
        )
    return NANOSECONDS[source] / NANOSECONDS[target]


def checked_unit(unit: str) -> str:
    """Return a unit that values may have (ns, us, ms, s, none); an error names what is meant.

    >>> checked_unit("msec")
    Traceback (most recent call last):
    latencykit.errors.InvalidArgumentError: unit must be one of ...; not 'msec'. Did you mean 'ms'?
    """
    if unit in NANOSECONDS or unit == "none":
        return unit
    factor = _SPELLINGS.get(unit, _SPELLINGS.get(str(unit).lower()))
    meant = next((name for name, size in NANOSECONDS.items() if size == factor), None)
    hint = f". Did you mean {meant!r}?" if meant else ""
    raise InvalidArgumentError(f"unit must be one of ns, us, ms, s, none; not {unit!r}{hint}")


def parse_duration(text: str | float, default: str | None = None) -> float:
    """Return a duration, such as ``"250 µs"`` or (Go's form) ``"1m2.3s"``, in nanoseconds.

    A bare number is taken in `default` units, and refused without them. A timedelta is one.

    >>> parse_duration("1.5ms"), parse_duration("1m2.3s"), parse_duration(2, "s")
    (1500000.0, 62300000000.0, 2000000000.0)
    """
    seconds = getattr(text, "total_seconds", None)
    words, total, at = str(text) if seconds is None else f"{seconds()} s", 0.0, 0
    if default is not None and re.fullmatch(rf"\s*{_NUMBER}\s*", words):
        total, at = float(words) * NANOSECONDS[default], len(words)
    pattern = re.compile(_PART)
    while part := pattern.match(words, at):
        factor = _SPELLINGS.get(part[2]) or _SPELLINGS.get(part[2].lower())
        if factor is None:
            break
        total, at = total + float(part[1]) * factor, part.end()
    if at == 0 or at != len(words) or not math.isfinite(total):
        raise InvalidArgumentError(
            f"{printable(words, 60)!r} is not a valid duration; write a number and a unit, such "
            "as 250us, 1.5ms or 2s"
        )
    return total


def byte_count(size: int | str) -> int:
    """Return a number of bytes, such as that of ``"2MB"`` or ``"2 MiB"``."""
    text = str(size).strip().replace("_", "")
    parts = re.fullmatch(r"([0-9]{1,30}(?:\.[0-9]{1,9})?) *([kMG]?)i?B?", text, re.IGNORECASE)
    if parts is None or not float(parts[1]):
        raise InvalidArgumentError(
            f"{printable(text, 60)!r} is not a size; expected one such as 500kB or 2MB"
        )
    power = 1024 if "ib" in text.lower() else 1000
    return int(float(parts[1]) * power ** " kmg".index(parts[2].lower() or " "))


def format_duration(nanoseconds: float, digits: int = 3) -> str:
    """Return a duration as text: three significant digits and the largest unit that fits.

    A latency and the length of a run are written alike: above two minutes in min, h or d.

    >>> [format_duration(v) for v in (0, 63_000, 1_040_000, 6.002e9, 119e9, 354e9, 172_800e9)]
    ['0', '63 µs', '1.04 ms', '6 s', '119 s', '5.9 min', '2 d']
    """
    if math.isnan(nanoseconds):
        return "unknown"
    if math.isinf(nanoseconds):
        return "∞" if nanoseconds > 0 else "-∞"
    if nanoseconds == 0:
        return "0"
    rounded = float(f"{nanoseconds:.{digits}g}")
    unit, size, _ = next((step for step in _STEPS if abs(rounded) >= step[2]), _STEPS[-1])
    return f"{_plain((rounded if size <= 1e9 else nanoseconds) / size, digits)} {unit}"


def format_moment(seconds: float) -> str:
    """Return a time from the start as text: in seconds, as ``--from`` takes it.

    >>> [format_moment(v) for v in (0.0123, 206.25, 4213.7)]
    ['12.3 ms', '206.2 s', '4214 s']
    """
    return f"{_plain(seconds, 4)} s" if seconds >= 1 else format_duration(seconds * 1e9, 4)


def format_value(value: float, unit: str = "ns", digits: int = 3) -> str:
    """Return a stored value as text: a duration if the unit is one, else the bare number.

    >>> format_value(1500, "us"), format_value(1500, "none")
    ('1.5 ms', '1,500')
    """
    if unit in NANOSECONDS:
        return format_duration(value * NANOSECONDS[unit], digits)
    return _plain(float(value), max(digits, len(f"{abs(value):.0f}")), comma=True)


def format_range(
    low: float | None, high: float | None, show: Callable[[float], str] = format_duration
) -> str:
    """Return a range as text, with the unit once if both ends share it; None is an open end.

    >>> format_range(3.2e9, 5.7e9), format_range(8e5, 2e6), format_range(2e9, None)
    ('3.2–5.7 s', '800 µs–2 ms', '≥ 2 s')
    """
    if high is None or not math.isfinite(high):
        return f"≥ {show(low)}" if low is not None and math.isfinite(low) else "unknown"
    if low is None or not low > 0:
        return f"≤ {show(high)}" if high else show(high)
    first, last = show(low), show(high)
    if first == last:
        return last
    number, _, unit = first.rpartition(" ")
    return f"{number if number and unit == last.rpartition(' ')[2] else first}–{last}"


def format_row(row: object, show: Callable[[float], str] = format_duration) -> str:
    """Return a percentile as text; a range where the source does not resolve it.

    Of a `PercentileRow`, or a mapping with its fields; in parentheses where it is not supported.

    >>> row = {"value": 5.7e9, "bucket_low": 3.2e9, "bucket_high": 5.7e9, "resolved": False}
    >>> format_row(row | {"supported": True}), format_row(row | {"supported": False})
    ('3.2–5.7 s', '(3.2–5.7 s)')
    """
    cells = row if isinstance(row, Mapping) else vars(row)
    if cells["value"] is None or math.isnan(cells["value"]):
        return ""
    text = (
        show(cells["value"])
        if cells["resolved"]
        else format_range(cells["bucket_low"], cells["bucket_high"], show)
    )
    return f"({text})" if cells["supported"] is False else text


def _plain(number: float, digits: int, comma: bool = False) -> str:
    """`number` with the given significant digits, never with an exponent."""
    if number == 0 or not math.isfinite(number):
        return f"{number:g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(number))))
    text = f"{number:{',' if comma else ''}.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def format_count(count: float) -> str:
    """Return a count with thousands separators.

    >>> format_count(6852)
    '6,852'
    """
    return f"{count:,.0f}"


def format_estimate(count: float) -> str:
    """Return an estimated count: of more than three digits, three are meant.

    >>> format_estimate(2934), format_estimate(293.4)
    ('2,930', '293')
    """
    return format_count(count if count < 1000 else float(f"{count:.3g}"))


def format_rate(rate: float) -> str:
    """Return a rate per second: whole from 100 on, three digits below.

    >>> format_rate(2934.2), format_rate(7.126)
    ('2,934', '7.13')
    """
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"


def format_change(change: float) -> str:
    """Return a relative change as text.

    >>> [format_change(change) for change in (0.0512, -0.5, 3.2, 41.0, -0.99, 0.0)]
    ['+5.1 %', '-50 %', '+320 %', '× 42', '÷ 100', '0 %']
    >>> format_change(1 / 26_786 - 1), format_change(998.7)
    ('÷ 26,786', '× 1,000')
    """
    if math.isnan(change):
        return ""
    if change >= 9.995 or -1 < change < -0.95:
        sign, factor = ("×", 1 + change) if change > 0 else ("÷", 1 / (1 + change))
        if math.isinf(factor):
            return f"{sign} ∞"
        return f"{sign} {factor:,.3g}" if factor < 999.5 else f"{sign} {factor:,.0f}"
    percent = 100 * change
    if abs(percent) < 0.005:
        return "0 %"
    digits = min(2, max(0, 1 - math.floor(math.log10(abs(percent)))))
    text = f"{percent:+.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"


def format_share(share: float) -> str:
    """Return a share as a percentage, never with an exponent: ``243 %``."""
    return f"{_plain(100 * share, 2)} %"


def in_unit(value: str | float, unit: str) -> float:
    """Return a number in `unit` as it is, and a duration such as ``"5ms"`` in that unit."""
    require(value, (str, Real), "a number, or a duration such as '5ms'")
    return parse_duration(value) / unit_factor(unit, "ns") if isinstance(value, str) else value


def interval_seconds(interval: str | float) -> float:
    """Return the length of an interval such as ``"10s"`` in seconds."""
    width = parse_duration(interval, "s") / 1e9
    if not width > 0:
        raise InvalidArgumentError(f"an interval must be longer than nothing, not {interval!r}")
    return width


def parse_moment(value: object, epoch: int | None = None) -> float:
    """Return a moment of a run in seconds from its start.

    It is given in seconds, as a duration such as ``"5s"``, or as a timestamp (ISO text, datetime or
    `numpy.datetime64`; UTC without a zone), for which `epoch`, the start of the run in nanoseconds
    since the epoch, has to be known.

    >>> parse_moment(0.3), parse_moment("1m2.3s")
    (0.3, 62.3)
    >>> parse_moment("2026-01-31T12:00:05", 1769860800 * 10**9)
    5.0
    """
    words: Any = value.strip() if isinstance(value, str) else value
    # numpy's kind, without importing numpy
    kind = getattr(getattr(words, "dtype", None), "kind", "")
    if kind == "m" or isinstance(words, timedelta):
        return (
            int(words.astype("m8[ns]").astype("i8")) / 1e9 if kind else words / timedelta(seconds=1)
        )
    if kind == "M" or isinstance(words, datetime):
        return _since(words, epoch)
    try:
        seconds = float(words)
    except (TypeError, ValueError):
        seconds = math.nan
    if not math.isnan(seconds):
        return seconds
    try:
        if isinstance(words, str) and words[-1:].isalpha() and not words.endswith("Z"):
            nanoseconds = parse_duration(words)
            # 1.1 s in floating point is slightly more than 1,100,000,000 ns
            exact = round(nanoseconds)
            return (exact if math.isclose(nanoseconds, exact, rel_tol=1e-15) else nanoseconds) / 1e9
        return _since(datetime.fromisoformat(words), epoch)
    except (TypeError, ValueError):  # an argument that is wrong is a ValueError, too
        raise InvalidArgumentError(
            f"{printable(str(value))!r} is not a time; write seconds from the start, a duration "
            "such as 5s, or an ISO time such as 2026-01-31T12:00:00"
        ) from None


def _since(moment: Any, epoch: int | None) -> float:
    """Seconds from the epoch of a run, exact to the nanosecond."""
    if epoch is None:
        raise DataNotAvailableError(
            "this source does not say when it began; give times in seconds from its start"
        )
    if isinstance(moment, datetime):
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        nanoseconds = (aware - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1) * 1000
        nanoseconds += int(getattr(aware, "nanosecond", 0))  # a pandas Timestamp has these, too
    else:
        nanoseconds = int(moment.astype("M8[ns]").astype("i8"))
    return (nanoseconds - epoch) / 1e9


def parse_percentile(text: str | float) -> float:
    """Return a percentile in 0..100 from ``99.9``, ``"p99.9"``, ``"99.9%"`` or ``"99.9th"``.

    >>> parse_percentile("p99.9"), parse_percentile("50%")
    (99.9, 50.0)
    """
    match = re.fullmatch(_PERCENTILE, str(text))
    value = float(match[1]) if match else math.nan
    if not 0 <= value <= 100:
        raise InvalidArgumentError(
            f"{text!r} is not a valid percentile; write a number from 0 to 100, such as 99.9"
        )
    return value


def format_percentile(percentile: float) -> str:
    """Return a percentile as the shortest text that reads back the same.

    >>> format_percentile(99.0), format_percentile(99.99)
    ('99', '99.99')
    """
    return repr(float(percentile)).removesuffix(".0")


def percentile_name(percentile: float) -> str:
    """Return a percentile's name: ``p99.9``, or ``max`` for 100."""
    return "max" if percentile == 100 else f"p{format_percentile(percentile)}"


def sure_percentile(limit: float) -> float:
    """Return the highest supported percentile, rounded down to two digits of its distance to 100.

    >>> sure_percentile(99.94618), sure_percentile(63.2)
    (99.946, 63.0)
    """
    left = max(100.0 - limit, 1e-12)
    step = 10.0 ** (math.floor(math.log10(left)) - 1)
    return round(100.0 - math.ceil(left / step - 1e-9) * step, 12)
