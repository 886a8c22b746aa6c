"""Names and cells of columns: numbers in local styles, units, durations, dates."""

from __future__ import annotations

import contextlib
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from latencykit._records import record
from latencykit.core.samples import as_nanoseconds
from latencykit.errors import InvalidArgumentError
from latencykit.io.build import EMPTY
from latencykit.units import NANOSECONDS, parse_duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from numpy.typing import NDArray

    from latencykit._typing import AnyArray, AnySeries, Flags


Style = Literal["plain", "point", "grouped", "comma", "unclear", "mixed"]
"""How the numbers of a column are written: without or with a decimal point; with a decimal point
and grouped digits; with a decimal comma; ``1,234`` throughout, which may be either; or mixed."""

_GROUP = r"[ '’_\u00a0\u202f]"
_EXPONENT = r"(?:[eE][-+]?\d+)?"
_COMMA = re.compile(
    rf"\d{{1,3}}(?:\.\d{{3}})+,\d*|\d{{1,3}}(?:\.\d{{3}}){{2,}}|\d{{1,3}}(?:{_GROUP}\d{{3}})+,\d*"
    rf"|(?:0\d*|\d{{4,}})?,\d+{_EXPONENT}|\d{{1,3}},(?:\d{{1,2}}|\d{{4,}})?{_EXPONENT}"
    r"|\d{1,3},\d{3}[eE][-+]?\d+"
)
_GROUPED = re.compile(
    rf"\d{{1,3}}(?:,\d{{3}})+\.\d*|\d{{1,3}}(?:,\d{{3}}){{2,}}|\d{{1,3}}(?:{_GROUP}\d{{3}})+\.\d*"
)
_EITHER_GROUP = re.compile(rf"\d{{1,3}}(?:{_GROUP}\d{{3}})+")
_UNCLEAR = re.compile(r"[1-9]\d{0,2},\d{3}")
_POINT = re.compile(rf"\d*\.\d*{_EXPONENT}")
_UNCLEAR_POINT = re.compile(r"[1-9]\d{0,2}\.\d{3}")
_WHOLE = re.compile(rf"\d+{_EXPONENT}")
_GERMAN = re.compile(
    rf"[-+]?(?:\d{{1,3}}(?:\.\d{{3}})+|\d{{1,3}}(?:{_GROUP}\d{{3}})+|\d*)(?:,\d*)?{_EXPONENT}"
)
_ENGLISH = re.compile(
    rf"[-+]?(?:\d{{1,3}}(?:,\d{{3}})+|\d{{1,3}}(?:{_GROUP}\d{{3}})+|\d*)(?:\.\d*)?{_EXPONENT}"
)
_LOCAL = re.compile(rf"\d,|,\d|\d{_GROUP}\d")
_LONGEST = 60


def _kind(cell: str) -> str:
    bare = cell.strip().lstrip("+-")
    if len(bare) > _LONGEST or not any(digit.isdigit() for digit in bare):
        return ""
    for kind, pattern in (
        ("whole", _WHOLE), ("unclear", _UNCLEAR), ("unclear point", _UNCLEAR_POINT),
        ("comma", _COMMA), ("grouped", _GROUPED),
        ("point", _POINT), ("spaced", _EITHER_GROUP),
    ):  # fmt: skip
        if pattern.fullmatch(bare):
            return kind
    return ""


def style_of(cells: Iterable[str]) -> Style | None:
    """Return how the numbers of a column are written; None where most cells are not numbers."""
    kinds = [_kind(cell) for cell in cells if cell.strip()]
    seen = set(kinds)
    if kinds.count("") * 2 >= len(kinds):
        return None
    comma, point = "comma" in seen, bool(seen & {"grouped", "point"})
    if (comma and point) or ({"unclear", "unclear point"} <= seen and not (comma or point)):
        return "mixed"
    if comma:
        return "comma"
    if point:
        return "grouped" if seen & {"grouped", "unclear", "spaced"} else "point"
    return "unclear" if "unclear" in seen else "grouped" if "spaced" in seen else "plain"


def styles_of(columns: Mapping[str, Iterable[str]]) -> tuple[dict[str, Style], list[str]]:
    """Return the styles of columns of numbers, and the names of those decided by other columns.

    One file is written by the habits of one country: where ``1,234`` may be either, columns that
    are clear decide, if they agree; and in a table of decimal commas, ``1.234`` is a grouped
    number.
    """
    kept = {name: list(cells) for name, cells in columns.items()}
    # as programs write nearly all tables
    if not any(_LOCAL.search(cell) for cells in kept.values() for cell in cells):
        return {}, []
    styles = {name: style for name, cells in kept.items() if (style := style_of(cells)) is not None}
    clear = {
        "comma" if style == "comma" else "point"
        for style in styles.values()
        if style in ("comma", "point", "grouped")
    }
    decided: list[str] = []
    for name, style in styles.items():
        if style == "unclear" and len(clear) == 1:
            styles[name] = "comma" if clear == {"comma"} else "grouped"
            decided.append(name)
        elif (
            style == "plain"
            and clear == {"comma"}
            and any(_kind(cell) == "unclear point" for cell in kept[name])
        ):
            styles[name] = "comma"
            decided.append(name)
    return styles, decided


def with_point(cell: str, style: Style) -> str:
    """Return a number with a decimal point; ``"?"`` where it does not fit the column's style.

    Of a column that is unclear or mixed, which is refused if it is needed, only the digits are
    given.
    """
    bare = cell.strip()
    if not any(digit.isdigit() for digit in bare):
        return bare
    if style in ("unclear", "mixed"):
        return re.sub(r"[^-+\d]", "", bare)
    if style == "comma":
        return (
            re.sub(rf"{_GROUP}|\.", "", bare).replace(",", ".") if _GERMAN.fullmatch(bare) else "?"
        )
    return re.sub(rf"{_GROUP}|,", "", bare) if _ENGLISH.fullmatch(bare) else "?"


# ------------------------------------------------------------
# Names of columns: latencies, starts, operations …, and their units.

_UNITS = {
    **dict.fromkeys(
        ("ns", "nsec", "nsecs", "nano", "nanos", "nanosec", "nanosecond", "nanoseconds"), "ns"
    ),
    **dict.fromkeys(
        (
            "us",
            "usec",
            "usecs",
            "micro",
            "micros",
            "microsec",
            "microsecond",
            "microseconds",
            "µs",
            "μs",
        ),
        "us",
    ),
    **dict.fromkeys(
        ("ms", "msec", "msecs", "milli", "millis", "millisec", "millisecond", "milliseconds"), "ms"
    ),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "s"),
}
_WITHIN = frozenset(
    (
        "ms", "msec", "msecs", "millis", "millisecond", "milliseconds", "usec", "usecs", "micros",
        "microsecond", "microseconds",
        "nsec", "nanos", "nanosecond", "nanoseconds", "seconds",
    )
)  # fmt: skip
"""Units that a name may state before its end: others are also words (us, micro, second)."""
_NAMES_LONGEST = (
    200  # of a name that may state its unit: the pattern takes quadratic time on a hostile one
)
_BRACKETS = re.compile(r"^(.*?)[\s_.:-]*[(\[{<]\s*(?:in\s+)?([A-Za-zµμ]+)\s*[)\]}>]\s*$")
# the byte of µ in Latin-1, as UTF-8 readers leave it
_FOREIGN_MICRO = re.compile("[\ufffd\udcb5](?=s(?:[^a-z]|$))")

_LATENCY = (
    "latency", "latencies", "lat", "response_time", "resp_time", "responsetime", "restime", "rt",
    "duration", "dur", "elapsed",
    "elapsed_time", "time_elapsed", "service_time", "servicetime", "took", "time_taken",
    "timetaken", "request_time",
    "round_trip", "roundtrip", "round_trip_time", "rtt", "total_time", "time_total", "exec_time",
    "execution_time", "run_time",
    "runtime", "processing_time", "process_time", "query_time", "wall_time", "walltime", "wall",
    "e2e", "delay", "cost",
)  # fmt: skip
_FALLBACK = ("", "time", "value", "values", "sample", "samples", "measurement")
_ENDINGS = (
    "latency", "latencies", "duration", "elapsed", "response_time", "service_time", "round_trip",
    "rtt", "took", "time_taken",
)  # fmt: skip
_STATISTICS = re.compile(
    r"(?:^|_)(?:avg|average|mean|median|min|max|std|stddev|stdev|sum|count|p\d+|\d+th|pct"
    r"|percentile)(?:_|$)"
)

ROLES: dict[str, tuple[str, ...]] = {
    "intended": (
        "intended", "intended_start", "intended_time", "intended_at", "intended_send",
        "intended_start_time", "scheduled",
        "scheduled_at", "scheduled_time", "scheduled_start", "schedule", "due", "due_at",
        "expected_start", "planned",
        "planned_start", "target_time",
    ),
    "start": (
        "start", "start_time", "starttime", "started", "started_at", "start_at", "start_timestamp",
        "start_ts", "sent",
        "sent_at", "send", "send_time", "begin", "began", "begin_time", "request_start",
        "timestamp",
        "time_stamp", "ts", "datetime", "date_time", "time", "epoch", "unix", "date", "at",
        "offset", "t", "when",
    ),
    "end": ("end", "end_time", "endtime", "ended", "ended_at", "end_timestamp", "end_ts", "finish",
            "finished",
            "finished_at", "completed", "completed_at", "stop", "done", "done_at"),
    "connection": ("connection", "connection_id", "conn", "conn_id", "thread", "thread_id",
                   "thread_name", "threadname",
                   "worker", "worker_id", "client", "client_id", "vu", "vu_id", "user", "user_id",
                   "session", "tid"),
    "tag": ("tag", "label", "operation", "operation_name", "op", "op_name", "op_type", "endpoint",
            "route", "transaction",
            "scenario", "command", "cmd", "query_name", "kind", "name", "type", "method", "verb"),
    "series": ("series",),
}  # fmt: skip
"""Role → names that a column of that role may bear, the surest first."""


@record()
class ColumnName:
    """A column's name taken apart.

    Attributes
    ----------
    column : str
        As the file has it.
    stem : str
        In small letters, words joined by ``_``, without the unit.
    unit : str or None
        The unit that the name states.
    assumed : bool
        Whether the name says that its unit is a guess (``duration_ns_assumed``), as latencykit
        writes it.
    """

    column: str
    stem: str
    unit: str | None
    assumed: bool = False


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


def unit_in(text: str) -> str | None:
    """Return the unit that a word spells, or None."""
    return _UNITS.get(text.strip().lower())


def named(column: str) -> ColumnName:
    """Take a name apart."""
    bare = column.strip().strip("\"'").lstrip("#").strip()
    bare = _FOREIGN_MICRO.sub("µ", bare)
    if bare.endswith("_assumed"):
        return replace(named(bare.removesuffix("_assumed")), column=column, assumed=True)
    bracket = _BRACKETS.match(bare) if len(bare) < _NAMES_LONGEST else None
    stated = unit_in(bracket[2]) if bracket else None
    if bracket and stated:
        bare = bracket[1]
    snake = re.sub(r"(?<=[a-zµ0-9])(?=[A-Z])", "_", bare).lower()
    words = [word for word in re.split(r"[^0-9a-zµμ]+", snake) if word]
    stem = "_".join(words)
    if stated or stem in _KNOWN:
        return ColumnName(column, stem, stated)
    if words and (unit := unit_in(words[-1])) and not (len(words) == 1 and len(words[0]) == 1):
        words = words[:-2] if words[-2:-1] in (["in"], ["unit"]) else words[:-1]
        return ColumnName(column, "_".join(words), unit)
    for spelling in ("ns", "us", "ms"):  # latencyms
        if stem.endswith(spelling) and stem.removesuffix(spelling) in _LATENCY:
            return ColumnName(column, stem.removesuffix(spelling), spelling)
    within = [word for word in words[:-1] if word in _WITHIN]
    if len(within) == 1:  # latency_ms_client
        return ColumnName(
            column, "_".join(word for word in words if word != within[0]), unit_in(within[0])
        )
    return ColumnName(column, stem, None)


_KNOWN = frozenset((*_LATENCY, *(name for names in ROLES.values() for name in names)))


def latency_columns(columns: Iterable[str]) -> tuple[list[ColumnName], bool]:
    """Return the columns named as latencies, the surest first, and whether the first one is sure.

    Names such as ``p99_latency`` or ``mean_ms`` are statistics, not samples.
    """
    parts = [named(column) for column in columns]
    parts = [part for part in parts if not _STATISTICS.search(part.stem)]
    surest = [part for stem in _LATENCY for part in parts if part.stem == stem]
    ending = [
        part
        for part in parts
        if part not in surest and any(part.stem.endswith(f"_{end}") for end in _ENDINGS)
    ]
    if surest or ending:
        return surest + ending, bool(surest) or len(ending) == 1
    timed = [part for part in parts if part.stem in _FALLBACK and part.unit]
    last = timed or [part for part in parts if part.stem in _FALLBACK and part.stem]
    return last, len(last) == 1 and (bool(timed) or len(parts) == 1)


def only_by_default(name: ColumnName) -> bool:
    """True if a name (``time``, ``value``) means a latency only if no other column does."""
    return name.stem in _FALLBACK


def are_statistics(columns: Iterable[str]) -> bool:
    """True if columns are named as statistics (``p99_ms``, ``mean``) of many requests."""
    return any(
        part.stem != "count" and _STATISTICS.search(part.stem) for part in map(named, columns)
    )


def roles_of(columns: Iterable[str], taken: str) -> dict[str, ColumnName]:
    """Return role → column for all but the column of latencies, which is `taken`."""
    parts = [named(column) for column in columns if column != taken]
    roles: dict[str, ColumnName] = {}
    for role, names in ROLES.items():
        for part in (part for name in names for part in parts if part.stem == name):
            if part not in roles.values():
                roles[role] = part
                break
    return roles


# ------------------------------------------------------------
# Cells into nanoseconds: numbers of a unit, spelled durations, dates.

Kind = Literal["number", "span", "moment", "word"]

_JUDGED = 60
_LONGEST_WORD = 80
_ISO_SPAN = re.compile(r"[-+]?P(?:\d+D)?T?[\dHMS.,]+", re.IGNORECASE)
_GROUPED_SPAN = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+|,\d{3})\s*[A-Za-zµμ]+$")
_ZULU = re.compile(r"(\d) ?(?:UTC|GMT)$")
_CLOCK = re.compile(r"(?:\d+ days? ?)?\d+:\d\d(?::\d\d(?:[.,]\d+)?)?")


class Times(NamedTuple):
    """Cells as nanoseconds.

    Attributes
    ----------
    ns : ndarray of int64 or float64, shape (n,)
        0 where there is none.
    missing : ndarray of bool, shape (n,)
        Empty cells.
    corrupt : ndarray of bool, shape (n,)
        Cells with something other than a time.
    """

    ns: AnyArray
    missing: Flags
    corrupt: Flags


def kind_of(cells: AnySeries) -> Kind:
    """Return what a column's cells are, judged by the first of them."""
    import pandas as pd

    if cells.dtype.kind in "iufmM":
        return (
            "span" if cells.dtype.kind == "m" else "moment" if cells.dtype.kind == "M" else "number"
        )
    if isinstance(cells.dtype, pd.DatetimeTZDtype):
        return "moment"
    text = cells.dropna().astype(str)
    text = text[~text.isin(EMPTY)].iloc[:_JUDGED]
    if not len(text) or cells.dtype.kind == "b":
        return "word"
    readers: dict[Kind, Any] = {
        "number": lambda: pd.to_numeric(text, errors="coerce"),
        "span": lambda: _spans(text),
        "moment": lambda: _moments(text),
    }
    for kind, read in readers.items():
        if pd.notna(read()).mean() > 0.5:
            return kind
    return "word"


def times_of(cells: AnySeries, kind: Kind, unit: str, *, stamps: bool = False) -> Times:
    """Return cells as nanoseconds; numbers are of `unit` (``none``: they stay as they are).

    With `stamps`, fractional seconds since the epoch are meant to the microsecond, which is all
    that a float holds.
    """
    import pandas as pd

    if kind == "number":
        times = _numbers(cells, unit)
        ns = times.ns
        if (
            stamps
            and ns.dtype.kind == "f"
            and unit in ("s", "ms")
            and ns.size
            and ns.max() >= _EPOCH
        ):
            return times._replace(ns=np.rint(ns / 1e3).astype(np.int64) * 1000)
        return times
    if cells.dtype.kind in "mM" or isinstance(cells.dtype, pd.DatetimeTZDtype):
        instants, missing = as_nanoseconds(cells), cells.isna().to_numpy()
        corrupt = np.isnat(instants) & ~missing
        return Times(np.where(missing | corrupt, 0, instants.astype(np.int64)), missing, corrupt)
    codes, distinct = coded(cells)
    text = pd.Series([str(cell).strip() for cell in distinct], dtype=object)
    empty = np.append(text.isin(EMPTY).to_numpy(np.bool_), True)
    parsed = _spans(text) if kind == "span" else _moments(text)
    filled = np.append(parsed, np.nan if kind == "span" else np.datetime64("NaT", "ns"))
    none = np.isnan(filled) if kind == "span" else np.isnat(filled)
    ns = np.where(none, 0, filled if kind == "span" else filled.astype(np.int64))
    return Times(ns[codes], empty[codes], (none & ~empty)[codes])


def coded(cells: AnySeries) -> tuple[AnyArray, list[object]]:
    """Return a code per cell, -1 for empty ones, and the value of each code."""
    import pandas as pd

    if isinstance(cells.dtype, pd.CategoricalDtype):
        return cells.cat.codes.to_numpy(), cells.cat.categories.tolist()
    codes, distinct = pd.factorize(cells, use_na_sentinel=True)
    return codes, list(distinct)


def _numbers(cells: AnySeries, unit: str) -> Times:
    import pandas as pd

    factor = NANOSECONDS.get(unit, 1.0)
    nothing = np.zeros(len(cells), np.bool_)
    if cells.dtype.kind in "iu" and isinstance(cells.dtype, np.dtype):
        integers = cells.to_numpy()
        if (
            not integers.size
            or max(-float(integers.min()), float(integers.max())) * factor <= _LARGEST
        ):
            ns = integers.astype(np.int64, copy=False)
            return Times(ns if factor == 1 else ns * np.int64(factor), nothing, nothing)
        large = np.abs(integers.astype(np.float64)) * factor > _LARGEST
        return Times(
            np.where(large, 0, integers).astype(np.int64) * np.int64(factor), nothing, large
        )
    missing = cells.isna().to_numpy(np.bool_)
    if cells.dtype.kind not in "iuf":
        # isin and to_numeric take true for 1
        if pd.api.types.infer_dtype(cells) in ("boolean", "mixed", "mixed-integer"):
            cells = cells.map(lambda cell: str(cell) if isinstance(cell, bool) else cell)
        missing = missing | cells.isin(EMPTY).to_numpy(np.bool_)
        cells = pd.to_numeric(cells.astype(object), errors="coerce")
    reals = cells.to_numpy(np.float64, na_value=np.nan)
    if reals.size and not missing.any() and max(-reals.min(), reals.max()) <= _LARGEST / factor:
        return Times(np.round(reals * factor, 3) if unit != "none" else reals, nothing, nothing)
    size = np.abs(
        np.where(missing, 0.0, np.nan_to_num(reals, nan=np.inf, posinf=np.inf, neginf=-np.inf))
    )
    corrupt = ~missing & ~(size <= _LARGEST / factor)
    kept = np.where(missing | corrupt, 0.0, reals)
    return Times(np.round(kept * factor, 3) if unit != "none" else kept, missing, corrupt)


_EPOCH = 1e17  # ns; 1973
_LARGEST = 2.0**62  # a start and a duration of this size can still be added


def _spans(text: AnySeries) -> NDArray[np.float64]:
    """Spelled durations in ns; NaN where they are none."""
    import pandas as pd

    # longer ones are not durations, and slow to refuse
    text = text.where(text.str.len() <= _LONGEST_WORD, "")
    # 1,234.5 ms; in 1,234 ms the comma may group digits or be a decimal comma
    text = text.where(~text.str.match(_GROUPED_SPAN), text.str.replace(",", ""))
    parts = text.str.extract(r"^([-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)\s*([A-Za-zµμ]+)$")
    factor = parts[1].map(
        {
            word: NANOSECONDS[unit_in(word) or ""]
            for word in parts[1].dropna().unique()
            if unit_in(word)
        }
    )
    spans = np.round(
        pd.to_numeric(parts[0], errors="coerce").to_numpy(np.float64) * factor.to_numpy(np.float64),
        3,
    )
    for at in np.flatnonzero(np.isnan(spans)).tolist():
        word = str(text.iloc[at])  # 1m2.3s, PT0.5S or 00:00:01.5
        with contextlib.suppress(ValueError, InvalidArgumentError, OverflowError):
            spans[at] = (
                float(pd.Timedelta(word.replace(",", ".")).value)
                if _ISO_SPAN.fullmatch(word) or _CLOCK.fullmatch(word)
                else parse_duration(word)
            )
    return np.where(np.abs(spans) <= _LARGEST, spans, np.nan)


def _moments(text: AnySeries) -> AnyArray:
    """Dates, UTC unless they say otherwise; NaT where they are none."""
    import pandas as pd

    text = text.str.replace(_ZULU, r"\1Z", regex=True)
    moments = pd.to_datetime(text, utc=True, format="ISO8601", errors="coerce")
    if moments.isna().any():  # as web servers write them
        when = pd.to_datetime(
            text.str.strip("[]"), utc=True, format="%d/%b/%Y:%H:%M:%S %z", errors="coerce"
        )
        moments = moments.fillna(when)
    return as_nanoseconds(moments)
