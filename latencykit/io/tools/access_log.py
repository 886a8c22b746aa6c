"""Which number behind the status of an access log's line is the time of the request, and in which unit.

Servers print what their configuration says, and no file says what that was. So all numbers of the first lines are looked
at together: labels and units that are written beside a number win; of nginx's times in seconds with three decimals,
``$request_time`` is in every line and never less than ``$upstream_response_time``, which it holds; Apache's ``%T``, ``%{ms}T``
and ``%D`` are one time in three units; and a number that goes with the size of the body is a size.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.core.run import Run, UnitFrom
from latencykit.core.samples import OUTCOMES, Samples
from latencykit.io import text as jsontext
from latencykit.io.build import nanoseconds_of, whole_nanoseconds, without_negative
from latencykit.io.raw.cells import latency_columns, named, unit_in
from latencykit.io.rows import line_chunks
from latencykit.io.source import Confidence, Format
from latencykit.io.text import iso_nanoseconds
from latencykit.units import NANOSECONDS, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from latencykit.core.run import UnitFrom
    from latencykit.io.source import Data, Head, ReadOptions, Source

    Floats = NDArray[np.float64]

__all__ = ["FIELD", "FORMATS", "SERVER_SIDE", "TimeField", "outcomes_of", "time_field"]


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
_ALL = 0.98  # of the lines; a few may be corrupt
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
            return (
                rb".*?(?<![\w.$%-])"
                + re.escape(self.label).encode()
                + rb' ?[=:] ?"?(\d+(?:\.\d+)?)'
            )
        number = (
            rb'"?'
            + rb"(?:\d+/)" * self.part
            + rb"(\d+(?:\.\d+)?)(?:/\d+)*[a-z\xc2\xb5]{0,4}"
            + rb'"?'
        )
        if self.left is not None:
            return rb"(?:" + FIELD + rb"[ \t]+){%d}" % self.left + number + rb"(?=[ \t\r]|$)"
        assert self.right is not None
        return rb"(?:.*?[ \t])?" + number + rb"(?:[ \t]+" + FIELD + rb"){%d}[ \t\r]*$" % self.right


def time_field(tails: Sequence[str]) -> TimeField | None:
    """Return where the time of the request is in what follows the status; None where there is none."""
    if not tails:
        return None
    fields = [[field.strip('"') for field in _FIELDS.findall(tail)] for tail in tails]
    return _labelled(tails) or _suffixed(fields) or _of_seconds(fields) or _whole(fields)


def _labelled(tails: Sequence[str]) -> TimeField | None:
    """A number with a name that speaks of a latency."""
    rows = [{found[1]: found for found in _LABELLED.finditer(tail)} for tail in tails]
    labels = [label for label in rows[0] if sum(label in row for row in rows) >= _ALL * len(rows)]
    sure = [one.column for one in latency_columns(labels)[0]] + [
        label for label in labels if label.lower() in ("d", "t", "time")
    ]
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
    return (
        TimeField("s", "format", True, label)
        if seconds
        else TimeField("us", "assumed", False, label)
    )


def label_rank(label: str) -> int:
    """Return how surely a label is that of the whole request."""
    return (
        0
        if named(label).stem in ("rt", "request_time")
        else {"time": 2, "t": 3}.get(label.lower(), 1)
    )


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
            return (
                TimeField(units.pop() or "us", "file", False, right=right)
                if len(units) == 1
                else None
            )
    return None


def _of_seconds(fields: Sequence[Sequence[str]]) -> TimeField | None:
    """Nginx's times: the one that holds the others."""
    longest = max(map(len, fields))
    places = [("left", k, k) for k in range(min(longest, 12))] + [
        ("right", k, -1 - k) for k in range(min(longest, 12))
    ]
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
        if (
            len(cells) < _ALL * len(fields)
            or len(parts) != 1
            or not all(re.fullmatch(r"\d+(?:/\d+)*", cell) for cell in cells)
        ):
            break
        columns = [
            (right, part, np.array([float(cell.split("/")[part]) for cell in cells]))
            for part in range(next(iter(parts)) + 1)
        ] + columns
    if not columns:
        return None
    sizes = [float(row[0]) if _WHOLE.fullmatch(row[0]) else 0.0 for row in fields if len(row) > 1]
    body = np.array(sizes)
    kept = [one for one in columns if not _goes_with(one[2], body)]
    if (
        len(kept) < len(columns) and len(columns) > 1
    ):  # bytes received and sent stand together, as in Apache's combinedio
        last = max(k for k, one in enumerate(columns) if _goes_with(one[2], body))
        kept = [one for k, one in enumerate(columns) if k > last]
    if not kept:
        return None
    for fine in kept:
        for coarse in kept:
            if coarse is not fine and coarse[2].any() and _same(fine[2], coarse[2], 1e6):
                return TimeField("us", "format", False, right=fine[0], part=fine[1])
    thousands = [
        fine
        for fine in kept
        for coarse in kept
        if coarse is not fine and coarse[2].any() and _same(fine[2], coarse[2], 1e3)
    ]
    right, part, values = (
        thousands[0]
        if thousands
        else max(kept, key=lambda one: float(one[2].sum()))
        if _zeros(kept)
        else kept[-1]
    )
    low = float(np.median(values)) < _SLOWEST_FAST
    hint = (
        f"half of the times are below {_SLOWEST_FAST:g} µs, faster than most web servers: are they %{{ms}}T? (--unit ms)",
    )
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
    return (
        bool((apart >= 0).all())
        and bool((apart < 8192).all())
        and float(np.std(apart)) < 0.2 * float(np.std(body))
    )


# ------------------------------------------------------------
# Access logs of nginx, Apache httpd and HAProxy, in the line formats that carry a time.
#
# * nginx's ``$request_time`` is seconds with three decimals, wherever it stands behind the status, bare or as ``rt=``; the
#   stamp is the end of the request. A line may also begin with ``$msec $request_time``.
# * Apache's ``%D`` is whole microseconds at the end of the line, unless labels or units say otherwise; the stamp is the begin
#   of the request. `latencykit.io.tools.access_log` finds the number.
# * HAProxy's five timers end with the total time in ms; the stamp is the begin.
#
# A server sees a request when it arrives: whatever it waited before that is not in the log.

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
    tails = [
        found[3].decode("utf-8", "replace").rstrip()
        for line in lines
        if (found := _TAIL.match(line))
    ]
    candidates = [_with_msec(lines), _HAPROXY]
    if tails and len(tails) >= 0.9 * len(lines) and (where := time_field(tails)) is not None:
        tool = "nginx" if where.seconds else "Apache httpd"
        pattern = _compiled(_HEAD, where.pattern())
        candidates.insert(
            0, _Line(tool, pattern, where.unit, where.unit_from, where.seconds, notes=where.notes)
        )
    for one in candidates:
        fits = sum(one.pattern.match(line) is not None for line in lines)
        if lines and fits >= max(1, 0.9 * len(lines)):
            return one
    return None


def _with_msec(lines: list[bytes]) -> _Line:
    """``$msec``, then a time or two, of which the longer one is that of the whole request."""
    pairs = [
        (float(found[2]), float(found[3]))
        for line in lines
        if (found := _MSEC.match(line)) and found[3] not in (None, b"-")
    ]
    longer = (
        sum(two - one for one, two in pairs if abs(two - one) > 0.0021) > 0
    )  # more than they are rounded by
    time = rb"\S+ (\d+\.\d{3}) " if longer else rb"(\d+\.\d{3}) "
    return _Line(
        "nginx", _compiled(rb"^(\d{9,11}\.\d{3}) ", time, _HEADLESS), "s", "format", True, (0, 2, 1)
    )


def sniff(head: Head) -> Confidence:
    """Tell a line format that carries a time; a log without one is told as such when it is read."""
    if _format_of(head) is not None:
        return Confidence.CERTAIN
    first = next((line for line in head.lines if line.strip()), "")
    return (
        Confidence.CERTAIN if re.match(_HEAD, first.encode("utf-8", "replace")) else Confidence.NO
    )


def read(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every request."""
    chosen = _format_of(source.head)
    if chosen is None:
        raise source.corrupt(
            1, "this access log has no time of a request", "$request_time (nginx) or %D (Apache)",
            "add it to the log format, such as rt=$request_time or %D at the end",
        )  # fmt: skip
    unit, unit_from = options.resolve_unit(chosen.unit, chosen.unit_from)
    notes: list[str] = (
        [*chosen.notes]
        if chosen.tool != "HAProxy"
        else ["stamps without a time zone were taken as UTC"]
    )
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
    kept, left_out = without_negative(
        {"duration": duration, "start": when, "outcome": outcome}, options
    )
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
        raise source.corrupt(
            None, f"a stamp is no date ({error})", "such as 21/Nov/2026:00:16:36 +0000", ""
        ) from None
    if chosen.at_end:
        when = when - np.rint(duration).astype(np.int64)
    return duration, when, status.astype(np.int64)


def _report_others(
    chunk: bytes, first: int, chosen: _Line, source: Source, options: ReadOptions
) -> list[str]:
    """Lines that do not fit: corrupt ones, blank ones, and a last one that is cut."""
    rows = chunk.split(b"\n")
    for number, line in enumerate(rows, first):
        if not line.strip() or chosen.pattern.match(line):
            continue
        if number == first + len(rows) - 1:  # no line break behind it
            return ["the last line is cut; it was left out"]
        text = printable(line.decode("utf-8", "replace"))
        options.reject(
            source.corrupt(
                number,
                f"this line has no time: {text!r}",
                f"{chosen.tool}'s line format",
                "--lenient skips the line",
            )
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
        iso.append(
            f"{text[7:11]}-{_MONTHS.index(text[3:6]) + 1:02}-{text[:2]}T{text[12:20]}{fraction}"
        )
        sign = -1 if text[21:22] == "-" else 1
        zone.append(0 if fraction else sign * (int(text[22:24]) * 3600 + int(text[24:26]) * 60))
    since = np.array(iso, dtype="datetime64[ms]").astype(np.int64)
    if (np.abs(since) > 9e12).any():
        raise ValueError("it lies beyond the years 1678 to 2261")
    return np.asarray(since * 1_000_000 - np.array(zone, np.int64) * int(NANOSECONDS["s"]))


_ACCESS_LOG = (
    Format(
        name="access-log",
        title="access logs with a time (nginx, Apache httpd, HAProxy)",
        level="samples",
        suffixes=(".log",),
        sniff=sniff,
        read=read,
        example=(
            "log_format timed '$remote_addr - - [$time_local] \"$request\" $status $body_bytes_sent rt=$request_time';"
            "   # writes access.log"
        ),
    ),
)


# ------------------------------------------------------------
# Access logs with one JSON object per line: nginx, Caddy, Traefik, Envoy.


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
    _Keys(
        "nginx",
        "request_time",
        "s",
        (),
        ("msec", "time_iso8601", "time", "@timestamp", "timestamp", "ts"),
        ("status",),
    ),
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
    fits = (
        one
        for one in _SERVERS
        if one.time in record and any(key in record for key in (*one.status, *one.beside))
    )
    return next((one for one in fits if all(key in record for key in one.beside)), None)


def sniff_json(head: Head) -> Confidence:
    """Tell the keys of the first line."""
    return Confidence.CERTAIN if _server_of(head) is not None else Confidence.NO


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every request."""
    server = _server_of(source.head)
    if server is None:
        raise source.corrupt(
            1, "no server's keys are in the first line", "request_time and status, or the like", ""
        )
    notes: list[str] = []
    parts = [
        _access_json_columns(batch, first, server, source, options)
        for first, batch in jsontext.lines(source, options, notes)
        if batch
    ]
    if not parts:
        return {}
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    unit, unit_from = options.resolve_unit(server.unit)
    duration = nanoseconds_of(columns["time"], unit)
    kept: dict[str, Any] = {"duration": duration, "outcome": outcomes_of(columns["status"])}
    for side in ("begin", "end"):
        if side in columns:
            kept["start"] = columns[side] - (
                np.rint(duration).astype(np.int64) if side == "end" else 0
            )
    if "connection" in columns:
        kept["connection"] = columns["connection"]
    kept, left_out = without_negative(kept, options)
    run = Run(
        tool=server.tool, loop="unknown", measure="service", corrected="none", unit=unit, unit_from=unit_from,
        notes=(*notes, *left_out, SERVER_SIDE),
    )  # fmt: skip
    return {"": Samples(run=run, unit="none" if unit == "none" else "ns", **kept)}


def _access_json_columns(
    batch: list[Any], first: int, server: _Keys, source: Source, options: ReadOptions
) -> dict[str, NDArray[Any]]:
    """The wanted keys of a batch as arrays; objects without a time are corrupt."""
    try:
        time = np.array([float(one[server.time]) for one in batch])
    except (KeyError, TypeError, ValueError):
        good = [one for one in batch if _has_time(one, server.time)]
        seen = f"an object without {server.time}"
        error = source.corrupt(
            _line_of(batch, first, server), seen, "a number", "--lenient skips it"
        )
        options.reject(error, len(batch) - len(good))
        batch, time = good, np.array([float(one[server.time]) for one in good])
    if not batch:
        return {"time": time, "status": np.zeros(0, np.int64)}
    status = next((key for key in server.status if key in batch[0]), "")
    columns: dict[str, NDArray[Any]] = {
        "time": time,
        "status": np.array([_access_json_whole(one.get(status), 200) for one in batch], np.int64),
    }
    for side, keys in (("begin", server.begin), ("end", server.end)):
        key = next((key for key in keys if key in batch[0]), None)
        if key is not None and "begin" not in columns:
            try:
                columns[side] = _stamps([one.get(key) for one in batch])
            except (TypeError, ValueError, OverflowError):
                raise source.corrupt(
                    first, f"{key} here, or in a line behind, is no time", "a date or seconds", ""
                ) from None
    if "connection" in batch[0]:
        columns["connection"] = np.array(
            [_access_json_whole(one.get("connection"), -1) for one in batch], np.int64
        )
    return columns


def _has_time(one: Any, key: str) -> bool:
    try:
        float(one[key])
    except (KeyError, TypeError, ValueError):
        return False
    return True


def _line_of(batch: list[Any], first: int, server: _Keys) -> int:
    return first + next(k for k, one in enumerate(batch) if not _has_time(one, server.time))


def _access_json_whole(value: Any, otherwise: int) -> int:
    return int(value) if isinstance(value, int) or re.fullmatch(r"-?\d+", str(value)) else otherwise


def _stamps(values: list[Any]) -> NDArray[np.int64]:
    """Nanoseconds since the epoch: seconds with decimals, or dates (without a zone: UTC)."""
    if isinstance(values[0], (int, float)) or re.fullmatch(r"\d+(?:\.\d+)?", str(values[0])):
        return whole_nanoseconds([float(value or 0) for value in values], "s")
    return iso_nanoseconds(values)


_ACCESS_JSON = (
    Format(
        name="access-json",
        title="access logs as JSON lines (nginx, Caddy, Traefik, Envoy)",
        level="samples",
        suffixes=(".log", ".json", ".jsonl"),
        sniff=sniff_json,
        read=read_json,
        example='log_format t escape=json \'{"msec":$msec,"status":$status,"request_time":$request_time}\'   # writes access.log',
    ),
)

FORMATS = (*_ACCESS_LOG, *_ACCESS_JSON)
