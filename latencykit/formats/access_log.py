"""Access logs of nginx, Apache httpd and HAProxy, in the line formats that carry a time.

* nginx's ``$request_time`` is seconds with three decimals, wherever it stands behind the status, bare or as ``rt=``; the
  stamp is the end of the request. A line may also begin with ``$msec $request_time``.
* Apache's ``%D`` is whole microseconds at the end of the line, unless labels or units say otherwise; the stamp is the begin
  of the request. `latencykit.formats.access_times` finds the number.
* HAProxy's five timers end with the total time in ms; the stamp is the begin.

A server sees a request when it arrives: whatever it waited before that is not in the log.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.formats.access_times import time_field
from latencykit.formats.base import Confidence, Format
from latencykit.formats.rows import line_chunks
from latencykit.formats.shaping import nanoseconds_of, without_negative
from latencykit.run import Run, UnitFrom
from latencykit.samples import OUTCOMES, Samples
from latencykit.units import NANOSECONDS, printable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from latencykit.formats.base import Head, ReadOptions, Rung, Source

__all__ = ["FORMATS", "SERVER_SIDE", "outcomes_of"]

SERVER_SIDE = "measured by the server: what a request waited before it arrived is not in it"
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_DATE = rb"\d\d/(?:" + "|".join(_MONTHS).encode() + rb")/\d{4}:\d\d:\d\d:\d\d"
_HEAD = rb"^[^\[\n]*\[(" + _DATE + rb' [-+]\d{4})\] "[^"\\\n]*(?:\\.[^"\\\n]*)*" (\d{3}) '
_JUDGED = 200  # lines


@dataclass(frozen=True)
class _Line:
    """One line format: what to match, in the order stamp, status, time."""

    tool: str
    pattern: re.Pattern[bytes]
    unit: str
    unit_from: UnitFrom
    at_end: bool
    order: tuple[int, int, int] = (0, 1, 2)
    notes: tuple[str, ...] = ()


def _compiled(*parts: bytes) -> re.Pattern[bytes]:
    return re.compile(b"".join(parts), re.MULTILINE)


_MSEC = re.compile(rb"^(\d{9,11}\.\d{3}) (\d+\.\d{3}) (?:(\d+\.\d{3}|-) )?")
_TAIL = re.compile(_HEAD + rb"(.*)$", re.MULTILINE)
_HAPROXY = _Line(
    "HAProxy",
    _compiled(
        rb"^.*?\[(",
        _DATE,
        rb"\.\d{3})\] \S+ \S+/\S+ ",
        rb"-?\d+/-?\d+/-?\d+/-?\d+/\+?(-?\d+) (-?\d+) \+?\d+ ",
    ),
    "ms", "format", False, (0, 2, 1),
)  # fmt: skip
_HEADLESS = rb".*?(?<=\s)([1-5]\d\d)(?=\s|$)"


def _format_of(head: Head) -> _Line | None:
    """The line format that fits nearly all of the first lines."""
    lines = [line.encode("utf-8", "replace") for line in head.lines[:_JUDGED] if line.strip()]
    tails = [found[3].decode("utf-8", "replace").rstrip() for line in lines if (found := _TAIL.match(line))]
    candidates = [_with_msec(lines), _HAPROXY]
    if tails and len(tails) >= 0.9 * len(lines) and (where := time_field(tails)) is not None:
        tool = "nginx" if where.seconds else "Apache httpd"
        pattern = _compiled(_HEAD, where.pattern())
        candidates.insert(0, _Line(tool, pattern, where.unit, where.unit_from, where.seconds, notes=where.notes))
    for one in candidates:
        fits = sum(one.pattern.match(line) is not None for line in lines)
        if lines and fits >= max(1, 0.9 * len(lines)):
            return one
    return None


def _with_msec(lines: list[bytes]) -> _Line:
    """``$msec``, then a time or two, of which the longer one is that of the whole request."""
    pairs = [
        (float(found[2]), float(found[3])) for line in lines if (found := _MSEC.match(line)) and found[3] not in (None, b"-")
    ]
    longer = sum(two - one for one, two in pairs if abs(two - one) > 0.0021) > 0  # more than they are rounded by
    time = rb"\S+ (\d+\.\d{3}) " if longer else rb"(\d+\.\d{3}) "
    return _Line("nginx", _compiled(rb"^(\d{9,11}\.\d{3}) ", time, _HEADLESS), "s", "format", True, (0, 2, 1))


def sniff(head: Head) -> Confidence:
    """Tell a line format that carries a time; a log without one is told as such when it is read."""
    if _format_of(head) is not None:
        return Confidence.CERTAIN
    first = next((line for line in head.lines if line.strip()), "")
    return Confidence.CERTAIN if re.match(_HEAD, first.encode("utf-8", "replace")) else Confidence.NO


def read(source: Source, options: ReadOptions) -> dict[str, Rung]:
    """Read every request."""
    chosen = _format_of(source.head)
    if chosen is None:
        raise source.corrupt(
            1, "this access log has no time of a request", "$request_time (nginx) or %D (Apache)",
            "add it to the log format, such as rt=$request_time or %D at the end",
        )  # fmt: skip
    unit, unit_from = options.resolve_unit(chosen.unit, chosen.unit_from)
    notes: list[str] = [*chosen.notes] if chosen.tool != "HAProxy" else ["stamps without a time zone were taken as UTC"]
    parts = []
    for first, chunk in line_chunks(source):
        found = chosen.pattern.findall(chunk)
        if len(found) < chunk.count(b"\n") + (not chunk.endswith(b"\n")):
            notes += _report_others(chunk, first, chosen, source, options)
        if found:
            parts.append(_columns(found, chosen, unit, source))
            notes += [] if b"." in found[0][chosen.order[0]] else ["stamps are whole seconds"]
    if not parts:
        return {}
    duration, when, status = (np.concatenate(column) for column in zip(*parts, strict=True))
    outcome = outcomes_of(status)
    kept, left_out = without_negative({"duration": duration, "start": when, "outcome": outcome}, options)
    run = Run(
        tool=chosen.tool, loop="unknown", measure="service", corrected="none", unit=unit, unit_from=unit_from,
        notes=(*dict.fromkeys(notes), *left_out, SERVER_SIDE),
    )  # fmt: skip
    return {"": Samples(run=run, unit="none" if unit == "none" else "ns", **kept)}


def _columns(
    found: list[tuple[bytes, ...]], chosen: _Line, unit: str, source: Source
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Durations, begins and statuses of the matches of a chunk."""
    columns = list(zip(*found, strict=True))
    stamp, status, time = (np.array(columns[k]) for k in chosen.order)
    duration = nanoseconds_of(time.astype(np.float64), unit)
    try:
        when = _when(stamp)
    except ValueError as error:
        raise source.corrupt(None, f"a stamp is no date ({error})", "such as 21/Nov/2026:00:16:36 +0000", "") from None
    if chosen.at_end:
        when = when - np.rint(duration).astype(np.int64)
    return duration, when, status.astype(np.int64)


def _report_others(chunk: bytes, first: int, chosen: _Line, source: Source, options: ReadOptions) -> list[str]:
    """Lines that do not fit: damaged ones, blank ones, and a last one that is cut."""
    rows = chunk.split(b"\n")
    for number, line in enumerate(rows, first):
        if not line.strip() or chosen.pattern.match(line):
            continue
        if number == first + len(rows) - 1:  # no line break behind it
            return ["the last line is cut; it was left out"]
        text = printable(line.decode("utf-8", "replace"))
        options.damaged(
            source.corrupt(number, f"this line has no time: {text!r}", f"{chosen.tool}'s line format", "--lenient skips the line")
        )
    return []


def outcomes_of(status: NDArray[np.int64]) -> NDArray[np.int8] | None:
    """Return what became of requests by HTTP status; None where all were answered.

    5xx failed (504 and 408 are timeouts); nginx's 499 was given up by the client before the answer.
    """
    timeout = (status == 504) | (status == 408)
    failed = (status >= 500) | (status <= 0)
    codes = np.where(failed, OUTCOMES.index("error"), 0)
    codes = np.where(timeout, OUTCOMES.index("timeout"), codes)
    codes = np.where(status == 499, OUTCOMES.index("unfinished"), codes)
    return codes.astype(np.int8) if codes.any() else None


def _when(stamps: NDArray[Any]) -> NDArray[np.int64]:
    """Nanoseconds since the epoch of stamps; each distinct one is parsed once."""
    distinct, where = np.unique(stamps, return_inverse=True)
    if b"/" not in distinct[0]:
        whole = np.rint(distinct.astype(np.float64) * 1e3).astype(np.int64) * 1_000_000
        return whole[where.reshape(-1)]
    return _calendar(distinct)[where.reshape(-1)]


def _calendar(stamps: NDArray[Any]) -> NDArray[np.int64]:
    """``21/Nov/2026:00:16:36 +0000``, or with milliseconds and no zone, as nanoseconds since the epoch."""
    iso, zone = [], []
    for stamp in stamps.tolist():
        text = stamp.decode("ascii")
        fraction = text[20:24] if text[20:21] == "." else ""
        iso.append(f"{text[7:11]}-{_MONTHS.index(text[3:6]) + 1:02}-{text[:2]}T{text[12:20]}{fraction}")
        sign = -1 if text[21:22] == "-" else 1
        zone.append(0 if fraction else sign * (int(text[22:24]) * 3600 + int(text[24:26]) * 60))
    since = np.array(iso, dtype="datetime64[ms]").astype(np.int64)
    if (np.abs(since) > 9e12).any():
        raise ValueError("it lies beyond the years 1678 to 2261")
    return np.asarray(since * 1_000_000 - np.array(zone, np.int64) * int(NANOSECONDS["s"]))


FORMATS = (
    Format(
        name="access-log",
        title="access logs with a time (nginx, Apache httpd, HAProxy)",
        rung="samples",
        suffixes=(".log",),
        sniff=sniff,
        read=read,
        example=(
            "log_format timed '$remote_addr - - [$time_local] \"$request\" $status $body_bytes_sent rt=$request_time';"
            "   # writes access.log"
        ),
    ),
)
