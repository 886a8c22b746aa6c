"""Access logs with one JSON object a line: nginx, Caddy, Traefik, Envoy."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.formats import jsontext
from latencykit.formats.access_log import SERVER_SIDE, outcomes_of
from latencykit.formats.base import Confidence, Format
from latencykit.formats.shaping import nanoseconds_of, whole_nanoseconds, without_negative
from latencykit.formats.stamps import iso_nanoseconds
from latencykit.run import Run
from latencykit.samples import Samples

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from latencykit.formats.base import Head, ReadOptions, Rung, Source

__all__ = ["FORMATS"]


@dataclass(frozen=True)
class _Keys:
    """Which keys a server writes: the time, its unit, stamps of the begin or the end, the status."""

    tool: str
    time: str
    unit: str
    begin: tuple[str, ...]
    end: tuple[str, ...]
    status: tuple[str, ...]
    beside: tuple[str, ...] = ()


_SERVERS = (
    _Keys("nginx", "request_time", "s", (), ("msec", "time_iso8601", "time", "@timestamp", "timestamp", "ts"), ("status",)),
    _Keys(
        "Traefik",
        "Duration",
        "ns",
        ("StartUTC", "StartLocal"),
        ("time",),
        ("DownstreamStatus", "OriginStatus"),
        ("RequestMethod",),
    ),
    _Keys("Envoy", "duration", "ms", ("start_time",), (), ("response_code",), ("response_code",)),
    _Keys("Caddy", "duration", "s", (), ("ts",), ("status",), ("request", "status")),
)


def _server_of(head: Head) -> _Keys | None:
    if not head.lines or not head.lines[0].startswith("{"):
        return None
    try:
        record = json.loads(head.lines[0])
    except (ValueError, RecursionError):
        return None
    fits = (one for one in _SERVERS if one.time in record and any(key in record for key in (*one.status, *one.beside)))
    return next((one for one in fits if all(key in record for key in one.beside)), None)


def sniff(head: Head) -> Confidence:
    """Tell the keys of the first line."""
    return Confidence.CERTAIN if _server_of(head) is not None else Confidence.NO


def read(source: Source, options: ReadOptions) -> dict[str, Rung]:
    """Read every request."""
    server = _server_of(source.head)
    if server is None:
        raise source.corrupt(1, "no server's keys are in the first line", "request_time and status, or the like", "")
    notes: list[str] = []
    parts = [_columns(batch, first, server, source, options) for first, batch in jsontext.lines(source, options, notes) if batch]
    if not parts:
        return {}
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    unit, unit_from = options.resolve_unit(server.unit)
    duration = nanoseconds_of(columns["time"], unit)
    kept: dict[str, Any] = {"duration": duration, "outcome": outcomes_of(columns["status"])}
    for side in ("begin", "end"):
        if side in columns:
            kept["start"] = columns[side] - (np.rint(duration).astype(np.int64) if side == "end" else 0)
    if "connection" in columns:
        kept["connection"] = columns["connection"]
    kept, left_out = without_negative(kept, options)
    run = Run(
        tool=server.tool, loop="unknown", measure="service", corrected="none", unit=unit, unit_from=unit_from,
        notes=(*notes, *left_out, SERVER_SIDE),
    )  # fmt: skip
    return {"": Samples(run=run, unit="none" if unit == "none" else "ns", **kept)}


def _columns(batch: list[Any], first: int, server: _Keys, source: Source, options: ReadOptions) -> dict[str, NDArray[Any]]:
    """The wanted keys of a batch as arrays; objects without a time are damaged."""
    try:
        time = np.array([float(one[server.time]) for one in batch])
    except (KeyError, TypeError, ValueError):
        good = [one for one in batch if _has_time(one, server.time)]
        seen = f"an object without {server.time}"
        error = source.corrupt(_line_of(batch, first, server), seen, "a number", "--lenient skips it")
        options.damaged(error, len(batch) - len(good))
        batch, time = good, np.array([float(one[server.time]) for one in good])
    if not batch:
        return {"time": time, "status": np.zeros(0, np.int64)}
    status = next((key for key in server.status if key in batch[0]), "")
    columns: dict[str, NDArray[Any]] = {
        "time": time,
        "status": np.array([_whole(one.get(status), 200) for one in batch], np.int64),
    }
    for side, keys in (("begin", server.begin), ("end", server.end)):
        key = next((key for key in keys if key in batch[0]), None)
        if key is not None and "begin" not in columns:
            try:
                columns[side] = _stamps([one.get(key) for one in batch])
            except (TypeError, ValueError, OverflowError):
                raise source.corrupt(first, f"{key} here, or in a line behind, is no time", "a date or seconds", "") from None
    if "connection" in batch[0]:
        columns["connection"] = np.array([_whole(one.get("connection"), -1) for one in batch], np.int64)
    return columns


def _has_time(one: Any, key: str) -> bool:
    try:
        float(one[key])
    except (KeyError, TypeError, ValueError):
        return False
    return True


def _line_of(batch: list[Any], first: int, server: _Keys) -> int:
    return first + next(k for k, one in enumerate(batch) if not _has_time(one, server.time))


def _whole(value: Any, otherwise: int) -> int:
    return int(value) if isinstance(value, int) or re.fullmatch(r"-?\d+", str(value)) else otherwise


def _stamps(values: list[Any]) -> NDArray[np.int64]:
    """Nanoseconds since the epoch: seconds with decimals, or dates (without a zone: UTC)."""
    if isinstance(values[0], (int, float)) or re.fullmatch(r"\d+(?:\.\d+)?", str(values[0])):
        return whole_nanoseconds([float(value or 0) for value in values], "s")
    return iso_nanoseconds(values)


FORMATS = (
    Format(
        name="access-json",
        title="access logs as JSON lines (nginx, Caddy, Traefik, Envoy)",
        rung="samples",
        suffixes=(".log", ".json", ".jsonl"),
        sniff=sniff,
        read=read,
        example='log_format t escape=json \'{"msec":$msec,"status":$status,"request_time":$request_time}\'   # writes access.log',
    ),
)
