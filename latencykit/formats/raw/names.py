"""What the names of columns say: which one holds latencies, starts, operations …, and in which unit."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["ROLES", "Named", "are_statistics", "latency_columns", "named", "only_by_default", "roles_of", "unit_in", "word_set"]

_UNITS = {
    **dict.fromkeys(("ns", "nsec", "nsecs", "nano", "nanos", "nanosec", "nanosecond", "nanoseconds"), "ns"),
    **dict.fromkeys(("us", "usec", "usecs", "micro", "micros", "microsec", "microsecond", "microseconds", "µs", "μs"), "us"),
    **dict.fromkeys(("ms", "msec", "msecs", "milli", "millis", "millisec", "millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "s"),
}
_WITHIN = frozenset(
    (
        "ms", "msec", "msecs", "millis", "millisecond", "milliseconds", "usec", "usecs", "micros", "microsecond", "microseconds",
        "nsec", "nanos", "nanosecond", "nanoseconds", "seconds",
    )
)  # fmt: skip
"""Units that a name may state before its end: others are also words (us, micro, second)."""
_LONGEST = 200  # of a name that may state its unit: the pattern takes quadratic time on a hostile one
_BRACKETS = re.compile(r"^(.*?)[\s_.:-]*[(\[{<]\s*(?:in\s+)?([A-Za-zµμ]+)\s*[)\]}>]\s*$")
_FOREIGN_MICRO = re.compile("[\ufffd\udcb5](?=s(?:[^a-z]|$))")  # the byte of µ in Latin-1, as UTF-8 readers leave it

_LATENCY = (
    "latency", "latencies", "lat", "response_time", "resp_time", "responsetime", "restime", "rt", "duration", "dur", "elapsed",
    "elapsed_time", "time_elapsed", "service_time", "servicetime", "took", "time_taken", "timetaken", "request_time",
    "round_trip", "roundtrip", "round_trip_time", "rtt", "total_time", "time_total", "exec_time", "execution_time", "run_time",
    "runtime", "processing_time", "process_time", "query_time", "wall_time", "walltime", "wall", "e2e", "delay", "cost",
)  # fmt: skip
_FALLBACK = ("", "time", "value", "values", "sample", "samples", "measurement")
_ENDINGS = (
    "latency", "latencies", "duration", "elapsed", "response_time", "service_time", "round_trip", "rtt", "took", "time_taken",
)  # fmt: skip
_STATISTICS = re.compile(
    r"(?:^|_)(?:avg|average|mean|median|min|max|std|stddev|stdev|sum|count|p\d+|\d+th|pct|percentile)(?:_|$)"
)

ROLES: dict[str, tuple[str, ...]] = {
    "intended": (
        "intended", "intended_start", "intended_time", "intended_at", "intended_send", "intended_start_time", "scheduled",
        "scheduled_at", "scheduled_time", "scheduled_start", "schedule", "due", "due_at", "expected_start", "planned",
        "planned_start", "target_time",
    ),
    "start": (
        "start", "start_time", "starttime", "started", "started_at", "start_at", "start_timestamp", "start_ts", "sent",
        "sent_at", "send", "send_time", "begin", "began", "begin_time", "request_start", "timestamp",
        "time_stamp", "ts", "datetime", "date_time", "time", "epoch", "unix", "date", "at", "offset", "t", "when",
    ),
    "end": ("end", "end_time", "endtime", "ended", "ended_at", "end_timestamp", "end_ts", "finish", "finished",
            "finished_at", "completed", "completed_at", "stop", "done", "done_at"),
    "connection": ("connection", "connection_id", "conn", "conn_id", "thread", "thread_id", "thread_name", "threadname",
                   "worker", "worker_id", "client", "client_id", "vu", "vu_id", "user", "user_id", "session", "tid"),
    "tag": ("tag", "label", "operation", "operation_name", "op", "op_name", "op_type", "endpoint", "route", "transaction",
            "scenario", "command", "cmd", "query_name", "kind", "name", "type", "method", "verb"),
    "series": ("series",),
}  # fmt: skip
"""Role → names that a column of that role may bear, the surest first."""


@dataclass(frozen=True)
class Named:
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
        Whether the name says that its unit is a guess (``duration_ns_assumed``), as latencykit writes it.
    """

    column: str
    stem: str
    unit: str | None
    assumed: bool = False


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


def unit_in(text: str) -> str | None:
    """Return the unit that a word spells, or None.

    Examples
    --------
    >>> unit_in("msec"), unit_in("bytes")
    ('ms', None)
    """
    return _UNITS.get(text.strip().lower())


def named(column: str) -> Named:
    """Take a name apart.

    Examples
    --------
    >>> named("Response Time (us)")
    Named(column='Response Time (us)', stem='response_time', unit='us', assumed=False)
    >>> named("latencyMs").unit, named("duration_in_ns").stem, named("ts").unit
    ('ms', 'duration', None)
    """
    bare = column.strip().strip("\"'").lstrip("#").strip()
    bare = _FOREIGN_MICRO.sub("µ", bare)
    if bare.endswith("_assumed"):
        return replace(named(bare.removesuffix("_assumed")), column=column, assumed=True)
    bracket = _BRACKETS.match(bare) if len(bare) < _LONGEST else None
    stated = unit_in(bracket[2]) if bracket else None
    if bracket and stated:
        bare = bracket[1]
    snake = re.sub(r"(?<=[a-zµ0-9])(?=[A-Z])", "_", bare).lower()
    words = [word for word in re.split(r"[^0-9a-zµμ]+", snake) if word]
    whole = "_".join(words)
    if stated or whole in _KNOWN:
        return Named(column, whole, stated)
    if words and (unit := unit_in(words[-1])) and not (len(words) == 1 and len(words[0]) == 1):
        words = words[:-2] if words[-2:-1] in (["in"], ["unit"]) else words[:-1]
        return Named(column, "_".join(words), unit)
    for spelling in ("ns", "us", "ms"):  # latencyms
        if whole.endswith(spelling) and whole.removesuffix(spelling) in _LATENCY:
            return Named(column, whole.removesuffix(spelling), spelling)
    within = [word for word in words[:-1] if word in _WITHIN]
    if len(within) == 1:  # latency_ms_client
        return Named(column, "_".join(word for word in words if word != within[0]), unit_in(within[0]))
    return Named(column, whole, None)


_KNOWN = frozenset((*_LATENCY, *(name for names in ROLES.values() for name in names)))


def latency_columns(columns: Iterable[str]) -> tuple[list[Named], bool]:
    """Return the columns whose names say that they hold latencies, the surest first, and whether the first one is sure.

    Names such as ``p99_latency`` or ``mean_ms`` are statistics, not samples.

    Examples
    --------
    >>> [one.column for one in latency_columns(["time", "db_latency", "latency_ms", "p99_latency"])[0]]
    ['latency_ms', 'db_latency']
    """
    parts = [named(column) for column in columns]
    parts = [one for one in parts if not _STATISTICS.search(one.stem)]
    surest = [one for stem in _LATENCY for one in parts if one.stem == stem]
    ending = [one for one in parts if one not in surest and any(one.stem.endswith(f"_{end}") for end in _ENDINGS)]
    if surest or ending:
        return surest + ending, bool(surest) or len(ending) == 1
    timed = [one for one in parts if one.stem in _FALLBACK and one.unit]
    last = timed or [one for one in parts if one.stem in _FALLBACK and one.stem]
    return last, len(last) == 1 and (bool(timed) or len(parts) == 1)


def only_by_default(one: Named) -> bool:
    """Whether a name (``time``, ``value``) speaks of a latency only where no better one is there."""
    return one.stem in _FALLBACK


def are_statistics(columns: Iterable[str]) -> bool:
    """Whether columns are named as statistics, such as ``p99_ms`` and ``mean``: each row sums up many requests.

    Examples
    --------
    >>> are_statistics(["time_s", "p50_ms", "p99_ms"]), are_statistics(["time_s", "count"])
    (True, False)
    """
    return any(one.stem != "count" and _STATISTICS.search(one.stem) for one in map(named, columns))


def roles_of(columns: Iterable[str], taken: str) -> dict[str, Named]:
    """Return role → column for all but the column of latencies, which is `taken`.

    Examples
    --------
    >>> {role: one.column for role, one in roles_of(["sent_at", "latency_ms", "thread"], "latency_ms").items()}
    {'start': 'sent_at', 'connection': 'thread'}
    """
    parts = [named(column) for column in columns if column != taken]
    found: dict[str, Named] = {}
    for role, names in ROLES.items():
        for one in (one for name in names for one in parts if one.stem == name):
            if one not in found.values():
                found[role] = one
                break
    return found
