"""Which number behind the status of an access log's line is the time of the request, and in which unit.

Servers print what their configuration says, and no file says what that was. So all numbers of the first lines are looked
at together: labels and units that are written beside a number win; of nginx's times in seconds with three decimals,
``$request_time`` is in every line and never less than ``$upstream_response_time``, which it holds; Apache's ``%T``, ``%{ms}T``
and ``%D`` are one time in three units; and a number that goes with the size of the body is a size.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latencykit.formats.raw.names import latency_columns, named, unit_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from latencykit.run import UnitFrom

    Floats = NDArray[np.float64]

__all__ = ["FIELD", "TimeField", "time_field"]

FIELD = rb'(?:"[^"\\\n]*(?:\\.[^"\\\n]*)*"|\[[^\]\n]*\]|[^\s"\[]\S*)'
_FIELDS = re.compile(FIELD.decode())
_LABELLED = re.compile(
    r'(?<![\w.$%-])([A-Za-z_][\w.-]*) ?[=:] ?"?(\d+(?:\.\d+)?)'
    r' ?(ns|us|µs|ms|s|sec|msec|usec|seconds|milliseconds|microseconds)?"?'
    r'(?=[\s",;|)}\]]|$)'
)
_SUFFIXED = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|sec|msec|usec)")
_SECONDS = re.compile(r"\d{1,7}\.\d{3}")
_WHOLE = re.compile(r"\d+")
_ALL = 0.98  # of the lines; a few may be damaged
_ROUNDED = 0.0021  # s; two times that are rounded apart
_OWN = {"d": ("us", "format"), "t": ("s", "format")}  # labels after Apache's own directives
_UPSTREAM = re.compile(r"upstream|backend|connect|header|u[rch]t$", re.IGNORECASE)
_SLOWEST_FAST = 100.0  # us; hardly any web server answers half of its requests faster


@dataclass(frozen=True)
class TimeField:
    """Where the time is.

    Attributes
    ----------
    label : str or None
        What stands before it, with its separator.
    left, right : int or None
        Fields between the status and it, or behind it.
    part : int
        Which of the numbers of a field such as ``0/250000``.
    unit : str
    unit_from : {"file", "format", "assumed"}
    seconds : bool
        Whether it is written as nginx does: seconds with three decimals.
    notes : tuple of str
    """

    unit: str
    unit_from: UnitFrom
    seconds: bool
    label: str | None = None
    left: int | None = None
    right: int | None = None
    part: int = 0
    notes: tuple[str, ...] = ()

    def pattern(self) -> bytes:
        """Return the pattern of what follows the status, with the time as its group."""
        if self.label is not None:
            return rb".*?(?<![\w.$%-])" + re.escape(self.label).encode() + rb' ?[=:] ?"?(\d+(?:\.\d+)?)'
        number = rb'"?' + rb"(?:\d+/)" * self.part + rb"(\d+(?:\.\d+)?)(?:/\d+)*[a-z\xc2\xb5]{0,4}" + rb'"?'
        if self.left is not None:
            return rb"(?:" + FIELD + rb"[ \t]+){%d}" % self.left + number + rb"(?=[ \t\r]|$)"
        assert self.right is not None
        return rb"(?:.*?[ \t])?" + number + rb"(?:[ \t]+" + FIELD + rb"){%d}[ \t\r]*$" % self.right


def time_field(tails: Sequence[str]) -> TimeField | None:
    """Return where the time of the request is in what follows the status; None where there is none.

    Examples
    --------
    >>> found = time_field(['512 "-" "curl" 0.004 0.010', '3 "-" "curl" - 0.001'])
    >>> found.unit, found.left
    ('s', 4)
    >>> time_field(['512 "-" "curl" took_ms=4']).unit
    'ms'
    """
    if not tails:
        return None
    fields = [[field.strip('"') for field in _FIELDS.findall(tail)] for tail in tails]
    return _labelled(tails) or _suffixed(fields) or _of_seconds(fields) or _whole(fields)


def _labelled(tails: Sequence[str]) -> TimeField | None:
    """A number with a name that speaks of a latency."""
    rows = [{found[1]: found for found in _LABELLED.finditer(tail)} for tail in tails]
    labels = [label for label in rows[0] if sum(label in row for row in rows) >= _ALL * len(rows)]
    sure = [one.column for one in latency_columns(labels)[0]] + [label for label in labels if label.lower() in ("d", "t", "time")]
    known = [label for label in dict.fromkeys(sure) if not _UPSTREAM.search(label)]
    if not known:
        return None
    label = min(known, key=label_rank)
    found = [row[label] for row in rows if label in row]
    beside = {unit_in(one[3]) for one in found if one[3]}
    seconds = all(_SECONDS.fullmatch(one[2]) for one in found)
    stated = named(label).unit or (beside.pop() if len(beside) == 1 else None)
    if stated is not None:
        return TimeField(stated, "file", seconds and stated == "s", label)
    if label.lower() in _OWN and not seconds:
        return TimeField(_OWN[label.lower()][0], "format", False, label)
    return TimeField("s", "format", True, label) if seconds else TimeField("us", "assumed", False, label)


def label_rank(label: str) -> int:
    """Return how surely a label is that of the whole request."""
    return 0 if named(label).stem in ("rt", "request_time") else {"time": 2, "t": 3}.get(label.lower(), 1)


def _column(fields: Sequence[Sequence[str]], at: int, pattern: re.Pattern[str]) -> list[str] | None:
    """The fields at a place, where nearly all lines hold such a one; without the others."""
    found = [row[at] for row in fields if -len(row) <= at < len(row) and pattern.fullmatch(row[at])]
    return found if len(found) >= _ALL * len(fields) and len(found) else None


def _suffixed(fields: Sequence[Sequence[str]]) -> TimeField | None:
    """A number with its unit: the last one."""
    for right in range(8):
        found = _column(fields, -1 - right, _SUFFIXED)
        if found is not None:
            units = {unit_in(_SUFFIXED.fullmatch(text)[2]) for text in found}  # type: ignore[index]
            return TimeField(units.pop() or "us", "file", False, right=right) if len(units) == 1 else None
    return None


def _of_seconds(fields: Sequence[Sequence[str]]) -> TimeField | None:
    """Nginx's times: the one that holds the others."""
    longest = max(map(len, fields))
    places = [("left", k, k) for k in range(min(longest, 12))] + [("right", k, -1 - k) for k in range(min(longest, 12))]
    found: list[tuple[str, int, Floats]] = []
    for side, number, at in places:
        cells = _column(fields, at, _SECONDS)
        if cells is None or len(cells) != sum(len(row) > max(at, -1 - at) for row in fields):
            continue
        values = np.array(cells, np.float64)
        if (values < 1e6).all() and not any(np.array_equal(values, other) for _, _, other in found):
            found.append((side, number, values))
    if not found:
        return None
    side, number, values = found[0]
    notes: tuple[str, ...] = ()
    for other in found[1:]:
        apart = other[2] - values if other[2].size == values.size else np.zeros(1)
        if apart[np.abs(apart) > _ROUNDED].sum() > 0:
            side, number, values = other
    if len(found) > 1:
        notes = ("lines hold several times; the one that is longest is taken as $request_time",)
    left, right = (number, None) if side == "left" else (None, number)
    return TimeField("s", "format", True, left=left, right=right, notes=notes)


def _whole(fields: Sequence[Sequence[str]]) -> TimeField | None:
    """Apache's whole numbers at the end of the line, behind the size of the body."""
    columns: list[tuple[int, int, Floats]] = []  # fields behind it, part of it, values
    for right in range(6):
        cells = [row[-1 - right] for row in fields if len(row) > right + 1]
        parts = {cell.count("/") for cell in cells}
        if len(cells) < _ALL * len(fields) or len(parts) != 1 or not all(re.fullmatch(r"\d+(?:/\d+)*", cell) for cell in cells):
            break
        columns = [
            (right, part, np.array([float(cell.split("/")[part]) for cell in cells])) for part in range(next(iter(parts)) + 1)
        ] + columns
    if not columns:
        return None
    sizes = [float(row[0]) if _WHOLE.fullmatch(row[0]) else 0.0 for row in fields if len(row) > 1]
    body = np.array(sizes)
    kept = [one for one in columns if not _goes_with(one[2], body)]
    if len(kept) < len(columns) and len(columns) > 1:  # bytes received and sent stand together, as in Apache's combinedio
        last = max(k for k, one in enumerate(columns) if _goes_with(one[2], body))
        kept = [one for k, one in enumerate(columns) if k > last]
    if not kept:
        return None
    for fine in kept:
        for coarse in kept:
            if coarse is not fine and coarse[2].any() and _same(fine[2], coarse[2], 1e6):
                return TimeField("us", "format", False, right=fine[0], part=fine[1])
    thousands = [
        fine for fine in kept for coarse in kept if coarse is not fine and coarse[2].any() and _same(fine[2], coarse[2], 1e3)
    ]
    right, part, values = (
        thousands[0] if thousands else max(kept, key=lambda one: float(one[2].sum())) if _zeros(kept) else kept[-1]
    )
    low = float(np.median(values)) < _SLOWEST_FAST
    hint = (f"half of the times are below {_SLOWEST_FAST:g} µs, faster than most web servers: are they %{{ms}}T? (--unit ms)",)
    return TimeField("us", "assumed", False, right=right, part=part, notes=hint if low else ())


def _zeros(columns: Sequence[tuple[int, int, Floats]]) -> bool:
    """Whether a column of zeros, whole seconds of fast requests, is among several."""
    return len(columns) > 1 and any(not one[2].any() for one in columns)


def _same(fine: Floats, coarse: Floats, ratio: float) -> bool:
    """Whether two columns are one time in two units, the coarse one cut or rounded."""
    if fine.size != coarse.size:
        return False
    apart = fine / ratio - coarse
    return bool(((apart > -0.6) & (apart < 1.01)).mean() >= _ALL) and float(coarse.max()) > 0


def _goes_with(values: Floats, body: Floats) -> bool:
    """Whether a number is the size of the body and a few headers."""
    if values.size != body.size or not np.ptp(body):
        return False
    apart = values - body
    return bool((apart >= 0).all()) and bool((apart < 8192).all()) and float(np.std(apart)) < 0.2 * float(np.std(body))
