"""Names and cells of columns: numbers in local styles, units, durations, dates."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from latencykit._records import record
from latencykit._typing import AnyArray, Flags
from latencykit.core.columns import Cells, Words, coded, matching
from latencykit.errors import InvalidArgumentError
from latencykit.io.build import EMPTY, moments_of, numbers_of, unit_in, word_set, words_in
from latencykit.io.raw.outcomes import failure_in
from latencykit.units import NANOSECONDS, parse_duration

Sample: TypeAlias = "Mapping[str, Cells]"
"""The first rows of a table, column by column."""

Style = Literal["plain", "point", "grouped", "comma", "unclear", "mixed"]
"""How the numbers of a column are written: without or with a decimal point; with a decimal point
and grouped digits; with a decimal comma; ``1,234`` throughout, which may be either; or mixed."""

_GROUP = r"[ '’_\u00a0\u202f]"
_EXPONENT = r"(?:[eE][-+]?\d+)?"
_SPACED = rf"[1-9]\d{{0,2}}(?:{_GROUP}\d{{3}})+"
_ENGLISH = re.compile(rf"[-+]?(?:[1-9]\d{{0,2}}(?:,\d{{3}})+|{_SPACED}|\d*)(?:\.\d*)?{_EXPONENT}")
_GERMAN = re.compile(rf"[-+]?(?:[1-9]\d{{0,2}}(?:\.\d{{3}})+|{_SPACED}|\d*)(?:,\d*)?{_EXPONENT}")
_LOCAL = re.compile(rf"\d,|,\d|\d{_GROUP}\d")
_GROUPS = re.compile(rf",|\d{_GROUP}\d")
_LONGEST = 60


def style_of(cells: Iterable[str]) -> Style | None:
    """Return how the numbers of a column are written; None where most cells are not numbers."""
    texts = [cell.strip() for cell in cells if cell.strip()]
    short = [text for text in texts if len(text) <= _LONGEST and re.search(r"\d", text)]
    point, comma = (set(filter(like.fullmatch, short)) for like in (_ENGLISH, _GERMAN))
    if 2 * sum(text in point or text in comma for text in short) <= len(texts):
        return None
    either, grouped = point & comma, any(map(_GROUPS.search, point))
    unclear = any("," in text for text in either)
    if comma != either:
        return "comma" if point == either else "mixed"
    if point != either:
        return "grouped" if grouped else "point"
    if unclear:
        return "mixed" if any("." in text for text in either) else "unclear"
    return "grouped" if grouped else "plain"


def styles_of(columns: Mapping[str, Iterable[str]]) -> tuple[dict[str, Style], list[str]]:
    """Return the styles of columns of numbers, and the names of those decided by other columns."""
    # One file is written by the habits of one country: where ``1,234`` may be either, columns that
    # are clear decide, if they agree; and in a table of decimal commas, ``1.234`` is a grouped
    # number.
    kept = {name: list(cells) for name, cells in columns.items()}
    # as programs write nearly all tables
    if not any(_LOCAL.search(cell) for cells in kept.values() for cell in cells):
        return {}, []
    styles = {name: style for name, cells in kept.items() if (style := style_of(cells)) is not None}
    clear = {
        style == "comma" for style in styles.values() if style in ("comma", "point", "grouped")
    }
    decided = [
        name
        for name, style in styles.items()
        if (style == "unclear" and len(clear) == 1)
        or (style == "plain" and clear == {True} and any("." in cell for cell in kept[name]))
    ]
    return styles | dict.fromkeys(decided, "comma" if clear == {True} else "grouped"), decided


def with_point(cell: str, style: Style) -> str:
    """Return a number with a decimal point; ``"?"`` where it does not fit the column's style."""
    # Of a column that is unclear or mixed, which is refused if it is needed, only the digits are
    # given.
    bare = cell.strip()
    if not any(digit.isdigit() for digit in bare):
        return bare
    if style in ("unclear", "mixed"):
        return re.sub(r"[^-+\d]", "", bare)
    like, mark, point = (_GERMAN, r"\.", ",") if style == "comma" else (_ENGLISH, ",", ".")
    return (
        re.sub(rf"{_GROUP}|{mark}", "", bare).replace(point, ".") if like.fullmatch(bare) else "?"
    )


def decimal_style(cells: Iterable[str]) -> Style:
    """Return the style of numbers of a tool that prints decimals: 1,234 alone has a comma."""
    style = style_of(cells) or "plain"
    return "comma" if style == "unclear" else style


def decimal_number(cell: str, style: Style) -> str | None:
    """Return such a number with a decimal point; None where it does not fit the style."""
    number = "?" if style == "mixed" else with_point(cell, style)
    return number if number == "NaN" or re.match(r"[-+.]?\d", number) else None


# ------------------------------------------------------------
# Names of columns: latencies, starts, operations …, and their units.

_WITHIN = word_set(
    "ms msec msecs millis millisecond milliseconds usec usecs micros microsecond microseconds nsec "
    "nanos nanosecond nanoseconds seconds"
)
"""Units that a name may state before its end: others are also words (us, micro, second)."""
_NAMES_LONGEST = 200  # of names that may state a unit: the pattern is quadratic on hostile ones
_BRACKETS = re.compile(r"^(.*?)[\s_.:-]*[(\[{<]\s*(?:in\s+)?([A-Za-zµμ]+)\s*[)\]}>]\s*$")
# the byte of µ in Latin-1, as UTF-8 readers leave it
_FOREIGN_MICRO = re.compile("[\ufffd\udcb5](?=s(?:[^a-z]|$))")

_AWS = ("target_processing_time", "backend_processing_time")
"""Seconds, of a load balancer's log as its query services give it."""
_LATENCY = _AWS + words_in(
    "latency latencies lat response_time resp_time responsetime restime rt duration dur elapsed "
    "elapsed_time time_elapsed service_time servicetime took time_taken timetaken request_time "
    "round_trip roundtrip round_trip_time rtt total_time time_total exec_time execution_time "
    "run_time runtime processing_time process_time query_time wall_time walltime wall e2e delay "
    "cost ping"
)
_GUESSED = {"time_total": "s", "ping": "ms"}
"""Units of curl's and of speedtest-cli's columns, of which others may have the names."""
_FALLBACK = ("", "time", "value", "values", "sample", "samples", "measurement")
_ENDINGS = words_in(
    "latency latencies duration elapsed response_time service_time round_trip rtt took time_taken"
)
_STATISTICS = re.compile(
    r"(?:(?:^|_)(?:avg|average|mean|median|min|max|std|stddev|stdev|sum|count|p\d+|\d+th|pct"
    r"|percentile|warm_?up)|(?:^|(?:^|_)(?:time|latency|[num]?s(?:ec)?)_)per_(?:call|op|operation|query|req"
    r"|request))(?:_|$)"
)

_STARTS = (
    "start start_time starttime started started_at start_at start_timestamp start_ts sent sent_at "
    "send send_time begin began begin_time request_start"
)
ROLES: dict[str, tuple[str, ...]] = {
    role: tuple(names.split())
    for role, names in {
        "intended": "intended intended_start intended_time intended_at intended_send "
        "intended_start_time scheduled scheduled_at scheduled_time scheduled_start schedule due "
        "due_at expected_start planned planned_start target_time",
        "start": f"{_STARTS} timestamp time_stamp ts "
        "datetime date_time time epoch unix date at offset t when",
        "end": "end end_time endtime ended ended_at end_timestamp end_ts finish finish_time "
        "finished finished_at completed completed_at complete_time stop stop_time stopped "
        "stopped_at done done_at received_at receive_time recv_time request_end response_end",
        "connection": "connection connection_id conn conn_id thread thread_id thread_name "
        "threadname worker worker_id client client_id vu vu_id user user_id session tid",
        "tag": "tag label operation operation_name op op_name op_type endpoint route transaction "
        "scenario command cmd query_name kind name type method verb",
        "series": "series",
    }.items()
}
"""Role → names that a column of that role may bear, the surest first."""


@record()
class ColumnName:
    """A column's name taken apart."""

    column: str  # as the file has it
    stem: str  # in small letters, words joined by ``_``, without the unit
    unit: str | None  # the unit that the name states
    # whether the name says that its unit is a guess (``duration_ns_assumed``), as latencykit
    # writes it
    assumed: bool = False


def named(column: str) -> ColumnName:
    """Take a name apart."""
    bare = column.strip().strip("\"'").lstrip("#").strip()
    bare = _FOREIGN_MICRO.sub("µ", bare)
    if bare.endswith("_assumed"):
        return replace(named(bare.removesuffix("_assumed")), column=column, assumed=True)
    if bare.endswith("_none"):  # latencykit's plain numbers
        return replace(named(bare.removesuffix("_none")), column=column, unit="none")
    bracket = _BRACKETS.match(bare) if len(bare) < _NAMES_LONGEST else None
    stated = unit_in(bracket[2]) if bracket else None
    if bracket and stated:
        bare = bracket[1]
    snake = re.sub(r"(?<=[a-zµ0-9])(?=[A-Z])", "_", bare).lower()
    words = [word for word in re.split(r"[^0-9a-zµμ]+", snake) if word]
    stem = "_".join(words)
    if stated or stem in _KNOWN:
        guess = None if stated else _GUESSED.get(stem)
        return ColumnName(
            column, stem, stated or guess or ("s" if stem in _AWS else None), bool(guess)
        )
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
    """Return the columns named as latencies, the surest first, and if that one is sure."""
    # Names such as ``p99_latency`` or ``mean_ms`` are statistics, not samples.
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


def are_statistics(columns: Iterable[str], of: str = "") -> bool:
    """True if columns are named as statistics (``p99_ms``, ``mean``) of many requests."""
    stems = (part.stem for part in map(named, columns) if part.stem != "count")
    return any(_STATISTICS.search(stem) and stem.endswith(of) for stem in stems)


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


def start_and_end(columns: Iterable[str]) -> tuple[ColumnName, ColumnName] | None:
    """Return the columns of when requests began and ended, where nothing names their latency."""
    columns = list(columns)
    if latency_columns(columns)[0] or are_statistics(columns):
        return None
    roles = roles_of(columns, "")
    start, end = roles.get("start"), roles.get("end")
    if start is None or end is None or start.stem not in _STARTS.split():
        return None
    return start, end


# ------------------------------------------------------------
# Cells into nanoseconds: numbers of a unit, spelled durations, dates.

Kind = Literal["number", "span", "moment", "word"]

_KINDS: dict[str, Kind] = {"m": "span", "M": "moment"}
_JUDGED = 60
_LONGEST_WORD = 80
_ISO_SPAN = re.compile(r"[-+]?P(?:\d+D)?T?[\dHMS.,]+", re.IGNORECASE)
_GROUPED_SPAN = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+|,\d{3})\s*[A-Za-zµμ]+$")
_REWRITTEN = (
    (re.compile(r"([-+]\d\d:?\d\d) ?(?:[A-Z]{3,4}|\[[\w/+-]+\])$"), r"\1"),  # of Go, and of Java
    (re.compile(r"^\[|\]$|[\u00a0\u202f]|@(?= \d)"), " "),  # of web servers, ICU, Kibana
    (re.compile(r"(\d) ?(?:UTC|GMT)$"), r"\1Z"),
    (re.compile(r"(?<=:\d\d),(?=\d)"), "."),
    # 2019/09/06 - 08:33:33 of Gin, and date and time of W3C logs, which a tab separates
    (re.compile(r"^(\d{4})[/-](\d\d)[/-](\d\d)(?: - |\t|(?<=\d/\d\d) )(?=\d\d:)"), r"\1-\2-\3T"),
)
"""Patterns of dates, and what makes them such as pandas reads."""
_MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"
_WEB = re.compile(
    r"\[?([0-2]\d|3[01])/(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)/(\d{4}):"
    r"((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?)(?: ?([-+])(\d\d):?(\d\d))?\]?"
)
_SPELLED_SPAN = re.compile(r"([-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)\s*([A-Za-zµμ]+)")
_DATED = re.compile(
    r"\s*(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? *)?"
    r"(?:[-+]?\[?\d|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* *\d)"
)
_CLOCK = re.compile(r"(?:\d+ days? ?)?\d+:\d\d(?::\d\d(?:[.,]\d+)?)?")


class Times(NamedTuple):
    """Cells as nanoseconds."""

    ns: AnyArray  # 0 where there is none
    missing: Flags  # empty cells
    corrupt: Flags  # cells with something other than a time


def present(cells: Cells) -> list[str]:
    """Return the texts of the cells that have one; for the first rows of a table."""
    codes, names = coded(cells)
    words = [name.strip() for name in names]
    return [words[code] for code in codes.tolist() if code >= 0 and words[code] not in EMPTY]


def kind_of(cells: Cells) -> Kind:
    """Return what a column's cells are, judged by the first of them."""
    if not isinstance(cells, Words):
        return _KINDS.get(cells.dtype.kind, "number")
    texts = present(cells)[:_JUDGED]
    readers: dict[Kind, Any] = {"number": numbers_of, "span": _spans, "moment": _moments}
    for kind, read in readers.items():
        values = read(texts) if texts else np.zeros(0)
        fitting = int(np.count_nonzero(values == values))  # neither NaN nor NaT
        if fitting and 2 * fitting <= len(texts):
            fitting += sum(map(bool, map(failure_in, texts)))
        if 2 * fitting > len(texts):
            return kind
    return "word"


def times_of(cells: Cells, kind: Kind, unit: str, *, stamps: bool = False) -> Times:
    """Return cells as nanoseconds; numbers are of `unit` (``none``: they stay as they are)."""
    # With `stamps`, fractional seconds since the epoch are meant to the microsecond, which is all
    # that a float holds. Of moments, `unit` may be their style (see `date_style`).
    if not isinstance(cells, Words) and cells.dtype.kind in _KINDS:
        missing = np.isnat(cells)
        ns = np.where(missing, 0, cells.astype(f"{cells.dtype.kind}8[ns]").astype(np.int64))
        return Times(ns, missing, np.zeros(cells.size, np.bool_))
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
    codes, names = coded(cells)
    texts = [name.strip() for name in names]
    empty = np.array([*(text in EMPTY for text in texts), True])
    parsed = _spans(texts) if kind == "span" else _moments(texts, unit if "%" in unit else "")
    none = np.append(parsed != parsed, True)
    ns = np.append(parsed.astype(np.float64 if kind == "span" else np.int64), 0)
    return Times(np.where(none, 0, ns)[codes], empty[codes], (none & ~empty)[codes])


def _numbers(cells: Cells, unit: str) -> Times:
    factor = NANOSECONDS.get(unit, 1.0)
    nothing = np.zeros(cells.shape, np.bool_)
    if isinstance(cells, Words):
        codes, names = coded(cells)
        missing = matching(cells, lambda name: name.strip() in EMPTY) | (codes < 0)
        reals = np.append(numbers_of(names), np.nan)[codes]
    elif cells.dtype.kind in "iu" and (
        not cells.size or max(-float(cells.min()), float(cells.max())) * factor <= _LARGEST
    ):
        ns = cells.astype(np.int64, copy=False)
        return Times(ns if factor == 1 else ns * np.int64(factor), nothing, nothing)
    else:
        reals = cells.astype(np.float64, copy=False)
        missing = np.isnan(reals)
    if reals.size and not missing.any() and max(-reals.min(), reals.max()) <= _LARGEST / factor:
        kept, corrupt = reals, nothing
    else:
        corrupt = ~missing & ~(np.abs(reals) <= _LARGEST / factor)  # not a number is not below it
        kept = np.where(missing | corrupt, 0.0, reals)
    return Times(np.round(kept * factor, 3) if unit != "none" else kept, missing, corrupt)


_EPOCH = 1e17  # ns; 1973
_LARGEST = 2.0**62  # a start and a duration of this size can still be added


def _spans(texts: Sequence[str]) -> NDArray[np.float64]:
    """Spelled durations in ns; NaN where they are none."""
    spans = np.array([_span(text) for text in texts], np.float64)
    return np.where(np.abs(spans) <= _LARGEST, spans, np.nan)


def _span(text: str) -> float:
    if len(text) > _LONGEST_WORD:  # not a duration, and slow to refuse
        return np.nan
    # 1,234.5 ms; in 1,234 ms the comma may group digits or be a decimal comma
    text = text.replace(",", "") if _GROUPED_SPAN.match(text) else text
    parts = _SPELLED_SPAN.fullmatch(text)
    if parts is not None:
        unit = unit_in(parts[2])
        if unit is not None:
            return float(np.round(float(parts[1]) * NANOSECONDS[unit], 3))
    with contextlib.suppress(ValueError, InvalidArgumentError, OverflowError):
        if not (_ISO_SPAN.fullmatch(text) or _CLOCK.fullmatch(text)):
            return parse_duration(text)  # 1m2.3s
        import pandas as pd

        return float(pd.Timedelta(text.replace(",", ".")).value)  # PT0.5S or 00:00:01.5
    return np.nan


def _moments(texts: Sequence[str], style: str = "") -> AnyArray:
    """Dates, UTC unless they say otherwise; NaT where they are none."""
    if not any(map(_DATED.match, texts)):
        return np.full(len(texts), "NaT", "M8[ns]")
    if _WEB.match(next(filter(None, texts), "")):
        with contextlib.suppress(ValueError):  # of a day that its month lacks
            return _web_moments(texts)
    moments = moments_of(texts).copy()
    left = [k for k in np.flatnonzero(np.isnat(moments)).tolist() if texts[k] not in EMPTY]
    if left:  # as people, spreadsheets, Gin and web servers write them
        texts = [texts[k] for k in left]
        for pattern, usual in _REWRITTEN:
            texts = [pattern.sub(usual, text) for text in texts]
        for like in ("ISO8601", "%d/%b/%Y:%H:%M:%S %z", style or date_style(texts)):
            moments[left] = np.where(
                np.isnat(moments[left]), moments_of(texts, like), moments[left]
            )
    return moments


def date_style(texts: Sequence[str]) -> str:
    """Return the format of dates as people write them, in the order of day and month that fits."""
    # Where both fit, the month is first.
    from pandas.tseries.api import guess_datetime_format

    first = next(filter(_DATED.match, texts), "").replace("PM", "AM")  # it guesses no PM
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that a date allows one order only
        styles = [guess_datetime_format(first, dayfirst=day) for day in (False, True)]
    return min(
        filter(None, styles), key=lambda like: np.isnat(moments_of(texts, like)).sum(), default=""
    )


def _web_moments(texts: Sequence[str]) -> AnyArray:
    """Dates as web servers write them, ``21/Nov/2026:00:16:36 +0000``; NaT where they are none."""
    stamps = [_WEB.fullmatch(text) for text in texts]
    iso, minutes = [], []
    for stamp in stamps:
        day, month, year, clock, sign, hours, rest = stamp.groups("0") if stamp else ("0",) * 7
        iso.append(f"{year}-{_MONTHS.index(month) // 3 + 1:02}-{day}T{clock}" if stamp else "NaT")
        minutes.append((60 * int(hours) + int(rest)) * (-1 if sign == "-" else 1))
    when = np.array(iso, "M8[ms]") - np.array(minutes, "m8[m]")
    beyond = np.abs(when.astype(np.int64)) > _LARGEST / 1e6
    return np.asarray(np.where(beyond, np.datetime64("NaT"), when).astype("M8[ns]"))
