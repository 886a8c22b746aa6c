"""Access logs of nginx, Apache httpd and HAProxy; nginx, Caddy, Traefik, Envoy as JSON or pairs.

Servers print what their configuration says, and no file says what that was. So all numbers behind
the status in the first lines are compared: labels and units written beside a number win; of nginx's
times in seconds with three decimals, ``$request_time`` is in every line and never less than
``$upstream_response_time``, which it contains; Apache's ``%T``, ``%{ms}T`` and ``%D`` are one time
in three units; and a number that varies with the size of the body is a size.

* nginx's stamp is the end of the request. A line may also begin with ``$msec $request_time``.
* Apache's ``%D`` is whole microseconds at the end of the line, unless labels or units say
  otherwise; the stamp is the beginning of the request.
* HAProxy's five timers end with the total time in ms; the stamp is the beginning.

A server sees a request when it arrives: the time that it waited before is not in the log.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit._records import record
from latencykit._text import format_items
from latencykit._typing import AnyArray, Floats, Ints
from latencykit.core.run import Run, UnitFrom
from latencykit.io import build, json_text
from latencykit.io.raw import objects
from latencykit.io.raw.cells import Kind, latency_columns, named
from latencykit.io.raw.columns import ColumnPlan, TimestampColumn
from latencykit.io.raw.log_parts import hint_of
from latencykit.io.raw.outcomes import Reading, Style
from latencykit.io.rows import line_chunks, unmatched_lines
from latencykit.io.source import Confidence, Data, Head, ReadOptions, Source
from latencykit.io.text_reports import certain
from latencykit.io.tools.log_lines import SERVER_SIDE, TRAEFIK
from latencykit.units import NANOSECONDS

if TYPE_CHECKING:
    import pandas as pd


_FIELD = rb'(?:"[^"\\\n]*(?:\\.[^"\\\n]*)*"|\[[^\[\]\n]*+\]|[^\s"\[]\S*)'
_FIELDS = re.compile(_FIELD.decode())
_LABELLED = re.compile(
    r'(?<![\w.$%-])([A-Za-z_][\w.-]*) ?[=:] ?"?(\d+(?:\.\d+)?)'
    r' ?(ns|us|µs|ms|s|sec|msec|usec|seconds|milliseconds|microseconds)?"?'
    r'(?=[\s",;|)}\]]|$)'
)
_SUFFIXED = re.compile(r"(?<![\d.])(\d{1,19}(?:\.\d{1,19})?)(ns|us|µs|ms|s|sec|msec|usec)")
_SECONDS = re.compile(r"\d{1,7}\.\d{3}")
_ALL = 0.98  # of the lines; a few may be corrupt
_ROUNDED = 0.0021  # s; two times that are rounded apart
_OWN = {"d": "us", "t": "s"}  # labels after Apache's own directives
_UPSTREAM = re.compile(r"upstream|backend|connect|header|u[rch]t$", re.IGNORECASE)
_SLOWEST_FAST = 100.0  # us; hardly any web server answers half of its requests faster


@record()
class _TimeField:
    """Position, unit and notation of the time among the fields behind the status."""

    unit: str
    unit_from: UnitFrom
    seconds: bool  # as nginx writes it, with three decimals
    label: str | None = None
    left: int | None = None  # fields between the status and it
    right: int | None = None  # fields behind it
    part: int = 0  # which of the numbers of a field such as 0/250000
    notes: tuple[str, ...] = ()

    def pattern(self) -> bytes:
        """Return the pattern of what follows the status, with the time as its group."""
        if self.label is not None:
            label = re.escape(self.label).encode()
            return rb".*?(?<![\w.$%-])" + label + rb' ?[=:] ?"?(\d+(?:\.\d+)?)'
        number = rb"(?:\d+/)" * self.part + rb"(\d+(?:\.\d+)?)(?:/\d+)*[a-z\xc2\xb5]{0,4}"
        number = rb'"?' + number + rb'"?'
        if self.left is not None:
            return rb"(?:" + _FIELD + rb"[ \t]+){%d}" % self.left + number + rb"(?=[ \t\r]|$)"
        assert self.right is not None
        return rb"(?:.*?[ \t])?" + number + rb"(?:[ \t]+" + _FIELD + rb"){%d}[ \t\r]*$" % self.right


def time_field(tails: Sequence[str]) -> _TimeField | None:
    """Return where the time of the request is behind the status; None where it is not there."""
    fields = [[field.strip('"') for field in _FIELDS.findall(tail)] for tail in tails]
    return _labelled(tails) or _suffixed(fields) or _of_seconds(fields) or _whole(fields)


def _labelled(tails: Sequence[str]) -> _TimeField | None:
    """A number with a name that denotes a latency."""
    rows = [{match[1]: match for match in _LABELLED.finditer(tail)} for tail in tails]
    labels = [label for label in rows[0] if sum(label in row for row in rows) >= _ALL * len(rows)]
    candidates = [column.column for column in latency_columns(labels)[0]] + [
        label for label in labels if label.lower() in ("d", "t", "time")
    ]
    candidates = [label for label in dict.fromkeys(candidates) if not _UPSTREAM.search(label)]
    if not candidates:
        return None
    ranks = {"time": 2, "t": 3}  # the most certain label is that of the total time
    label = min(
        candidates,
        key=lambda label: (
            0 if named(label).stem in ("rt", "request_time") else ranks.get(label.lower(), 1)
        ),
    )
    cells = [row[label] for row in rows if label in row]
    beside = {build.unit_in(cell[3]) for cell in cells if cell[3]}
    seconds = all(_SECONDS.fullmatch(cell[2]) for cell in cells)
    stated = named(label).unit or (beside.pop() if len(beside) == 1 else None)
    if stated is not None:
        return _TimeField(stated, "file", seconds and stated == "s", label)
    if seconds:
        return _TimeField("s", "format", True, label)
    if label.lower() in _OWN:
        return _TimeField(_OWN[label.lower()], "format", False, label)
    return _TimeField("us", "assumed", False, label)


def _column(fields: Sequence[Sequence[str]], at: int, pattern: re.Pattern[str]) -> list[str] | None:
    """The fields at a place that match, where nearly all lines have one."""
    cells = [row[at] for row in fields if -len(row) <= at < len(row) and pattern.fullmatch(row[at])]
    return cells if len(cells) >= _ALL * len(fields) and len(cells) else None


def _suffixed(fields: Sequence[Sequence[str]]) -> _TimeField | None:
    """A number with its unit: the last one."""
    for right in range(8):
        cells = _column(fields, -1 - right, _SUFFIXED)
        if cells is not None:
            units = {build.unit_in(cell.lstrip("0123456789.")) for cell in cells}
            if len(units) > 1:
                return None
            return _TimeField(units.pop() or "us", "file", False, right=right)
    return None


def _of_seconds(fields: Sequence[Sequence[str]]) -> _TimeField | None:
    """Nginx's times: the one that contains the others."""
    width = min(max(map(len, fields)), 12)
    places = [("left", k, k) for k in range(width)] + [("right", k, -1 - k) for k in range(width)]
    columns: list[tuple[str, int, Floats]] = []
    for side, number, at in places:
        cells = _column(fields, at, _SECONDS)
        if cells is None or len(cells) != sum(len(row) > max(at, -1 - at) for row in fields):
            continue
        values = np.array(cells, np.float64)
        if (values < 1e6).all() and not any(np.array_equal(values, row[2]) for row in columns):
            columns.append((side, number, values))
    if not columns:
        return None
    side, number, values = columns[0]
    for column in columns[1:]:
        apart = column[2] - values if column[2].size == values.size else np.zeros(1)
        if apart[np.abs(apart) > _ROUNDED].sum() > 0:
            side, number, values = column
    note = "lines contain more than one duration; the longest is taken as $request_time"
    left, right = (number, None) if side == "left" else (None, number)
    notes = (note,) if len(columns) > 1 else ()
    return _TimeField("s", "format", True, left=left, right=right, notes=notes)


def _whole(fields: Sequence[Sequence[str]]) -> _TimeField | None:
    """Apache's whole numbers at the end of the line, behind the size of the body."""
    columns: list[tuple[int, int, Floats]] = []  # fields behind it, part of it, values
    for right in range(6):
        cells = [row[-1 - right] for row in fields if len(row) > right + 1]
        parts = {cell.count("/") for cell in cells}
        if len(cells) < _ALL * len(fields) or len(parts) != 1:
            break
        if not all(re.fullmatch(r"\d+(?:/\d+)*", cell) for cell in cells):
            break
        columns = [
            (right, part, np.array([float(cell.split("/")[part]) for cell in cells]))
            for part in range(next(iter(parts)) + 1)
        ] + columns
    if not columns:
        return None
    body = np.array(
        [float(row[0]) if re.fullmatch(r"\d+", row[0]) else 0.0 for row in fields if len(row) > 1]
    )
    kept = [column for column in columns if not _goes_with(column[2], body)]
    if len(kept) < len(columns) and len(columns) > 1:
        # Bytes received and sent are next to each other, as in Apache's combinedio.
        last = max(k for k, column in enumerate(columns) if _goes_with(column[2], body))
        kept = columns[last + 1 :]
    if not kept:
        return None

    def finer(ratio: float) -> tuple[int, int, Floats] | None:
        """The first column that is another one in a unit finer by `ratio`."""
        pairs = ((fine, coarse) for fine in kept for coarse in kept if coarse is not fine)
        return next((fine for fine, coarse in pairs if _same(fine[2], coarse[2], ratio)), None)

    micro = finer(1e6)
    if micro is not None:
        return _TimeField("us", "format", False, right=micro[0], part=micro[1])
    # seconds of fast requests
    zeros = len(kept) > 1 and not all(column[2].any() for column in kept)
    largest = max(kept, key=lambda column: float(column[2].sum()))
    right, part, values = finer(1e3) or (largest if zeros else kept[-1])
    hint = (
        f"half of the times are below {_SLOWEST_FAST:g} µs, faster than most web servers: "
        "are they %{ms}T? (--unit ms)"
    )
    notes = (hint,) if float(np.median(values)) < _SLOWEST_FAST else ()
    return _TimeField("us", "assumed", False, right=right, part=part, notes=notes)


def _same(fine: Floats, coarse: Floats, ratio: float) -> bool:
    """True if two columns are one time in two units, the coarse one truncated or rounded."""
    if fine.size != coarse.size or not coarse.any():
        return False
    apart = fine / ratio - coarse
    return bool(((apart > -0.6) & (apart < 1.01)).mean() >= _ALL) and float(coarse.max()) > 0


def _goes_with(values: Floats, body: Floats) -> bool:
    """True if a number is the size of the body and a few headers."""
    if values.size != body.size or not np.ptp(body):
        return False
    apart = values - body
    near = bool(((apart >= 0) & (apart < 8192)).all())
    return near and float(np.std(apart)) < 0.2 * float(np.std(body))


# ------------------------------------------------------------
# Lines of text.

_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_DATE = rb"\d\d/(?:" + "|".join(_MONTHS).encode() + rb")/\d{4}:\d\d:\d\d:\d\d"
_HEAD = (  # ingress-nginx has the client's addresses in brackets, too
    rb"^(?:[^\[\n]{0,200}\[[^\]\n]{0,400}\] - ){0,2}[^\[\n]*\[("
    + _DATE
    + rb' [-+]\d{4})\] "[^"\\\n]*(?:\\.[^"\\\n]*)*" (\d{3}) '
)
# unlike nginx's own messages
_ENTRY = re.compile(r"\[(?!(?:emerg|alert|crit|error|warn|notice|info|debug)\])")
_JUDGED = 200  # lines


@record()
class _Line:
    """One line format: what to match, in the order timestamp, status, time; `label` of the time."""

    tool: str
    pattern: re.Pattern[bytes]
    unit: str
    unit_from: UnitFrom
    at_end: bool  # the timestamp is that of the reply
    order: tuple[int, int, int] = (0, 1, 2)
    notes: tuple[str, ...] = ()
    label: str | None = None


_MSEC = re.compile(rb"^(\d{9,11}\.\d{3}) (\d+\.\d{3}) (?:(\d+\.\d{3}|-) )?")
_TAIL = re.compile(_HEAD + rb"(.*)$", re.MULTILINE)
_HAPROXY = _Line(
    "HAProxy",
    re.compile(
        rb"^.*?\[(" + _DATE + rb"\.\d{3})\] \S+ \S+/\S+ "
        rb"-?\d+/-?\d+/-?\d+/-?\d+/\+?(-?\d+) (-?\d+) \+?\d+ ",
        re.MULTILINE,
    ),
    "ms", "format", False, (0, 2, 1),
)  # fmt: skip


def _dated(line: str) -> bool:
    """True if a line may be an entry, and does not only comment on the log."""
    return bool(_ENTRY.search(line)) or line[:9].isdigit() or (" " not in line and line != "")


def _format_of(head: Head) -> _Line | None:
    """The line format that fits nearly all of the first lines."""
    lines = [line.encode("utf-8", "replace") for line in head.lines[:_JUDGED] if _dated(line)]
    # $msec, then a time or two, of which the longer one is the total time.
    matches = [match for line in lines if (match := _MSEC.match(line))]
    pairs = [(float(row[2]), float(row[3])) for row in matches if row[3] not in (None, b"-")]
    longer = sum(two - first for first, two in pairs if abs(two - first) > _ROUNDED) > 0
    number = rb"\S+ (\d+\.\d{3}) " if longer else rb"(\d+\.\d{3}) "
    pattern = rb"^(\d{9,11}\.\d{3}) " + number + rb".*?(?<=\s)([1-5]\d\d)(?=\s|$)"
    headless = re.compile(pattern, re.MULTILINE)
    candidates = [_Line("nginx", headless, "s", "format", True, (0, 2, 1)), _HAPROXY]
    tails = [
        match[3].decode("utf-8", "replace").rstrip()
        for line in lines
        if (match := _TAIL.match(line))
    ]
    if tails and len(tails) >= 0.9 * len(lines) and (time := time_field(tails)) is not None:
        tool = "nginx" if time.seconds else "Apache httpd"
        full = re.compile(_HEAD + time.pattern(), re.MULTILINE)
        row = _Line(tool, full, time.unit, time.unit_from, time.seconds)
        row = replace(row, notes=time.notes, label=time.label)
        candidates.insert(0, row)
    for line_format in candidates:
        fits = sum(line_format.pattern.match(line) is not None for line in lines)
        if lines and fits >= max(1, 0.9 * len(lines)):
            return line_format
    return None


def sniff(head: Head) -> Confidence:
    """Recognise a line format with a time; one without is refused with a reason when it is read."""
    if re.search(TRAEFIK, head.text, re.MULTILINE):
        return Confidence.NO
    if _format_of(head) is not None:
        return Confidence.CERTAIN
    first = next((line for line in head.lines if line.strip()), "")
    return certain(re.match(_HEAD, first.encode("utf-8", "replace")))


def read(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every request."""
    chosen = _format_of(source.head)
    if chosen is None:
        seen, expected = (
            "this access log has no time of a request",
            "$request_time (nginx) or %D (Apache)",
        )
        hint = hint_of(source.head.lines)  # a bare number may be anything
        added = "add it to the log format, such as rt=$request_time or %D at the end"
        raise source.corrupt(1, seen, expected, hint if "try" in hint else added)
    unit, unit_from = options.resolve_unit(chosen.unit, chosen.unit_from)
    notes = [*chosen.notes]
    if chosen is _HAPROXY:
        notes = ["timestamps without a time zone were taken as UTC"]
    parts, others = [], 0
    details: list[pd.DataFrame] = []
    for first, chunk in line_chunks(source):
        rows = chosen.pattern.findall(chunk)
        if len(rows) < chunk.count(b"\n") + (not chunk.endswith(b"\n")):
            for number, line in unmatched_lines(chunk, first, chosen.pattern, notes):
                if not _dated(line):
                    others += 1
                    continue
                seen = f"this line has no time: {line!r}"
                options.refuse(source, number, seen, f"{chosen.tool}'s line format")
        if not rows:
            continue
        columns = list(zip(*rows, strict=True))
        stamp, status = (np.array(columns[k]) for k in chosen.order[:2])
        duration = build.nanoseconds_of([*map(float, columns[chosen.order[2]])], unit)
        try:
            start = _nanoseconds_since_epoch(stamp)
        except ValueError as error:
            seen = f"not a valid timestamp ({error})"
            raise source.corrupt(None, seen, "such as 21/Nov/2026:00:16:36 +0000") from None
        if chosen.at_end:
            start = start - np.rint(duration).astype(np.int64)
        parts.append((duration, start, status.astype(np.int64)))
        if options.columns:
            lines = [line for line in chunk.split(b"\n") if chosen.pattern.match(line)]
            details.append(_details(lines, chosen))
        notes += [] if b"." in rows[0][chosen.order[0]] else ["timestamps are whole seconds"]
    if not parts:
        return {}
    notes += [f"{format_items(others, 'line')} about something else left out"] if others else []
    duration, start, status = (np.concatenate(column) for column in zip(*parts, strict=True))
    outcome = build.outcome_codes(
        error=(status >= 500) | (status <= 0),
        timeout=(status == 504) | (status == 408),
        unfinished=status == 499,  # nginx: the client gave up
    )
    given: dict[str, object] = {"duration": duration, "start": start, "outcome": outcome}
    if options.columns:
        given["columns"] = build.further_columns(details) | {"status": status}
    run = Run(
        tool=chosen.tool, unit=unit, unit_from=unit_from, notes=tuple(notes), measure="service",
        corrected="none",
    )  # fmt: skip
    samples = build.samples_of(given, run, options, unit=build.base_unit(unit))[""]
    return {"": samples.with_run(notes=samples.run.with_notes(SERVER_SIDE).notes)}


_DETAILS = re.compile(
    r'^(?:(?P<client>(?!\d{9,11}\.\d{3} )\S+) )?.*?(?:"| )(?P<method>[A-Z]{3,9}) '
    r'(?P<endpoint>[^\s"]+)[^"\s]*(?: HTTP/[\d.]+)?'
    r'(?:" (?P<status>\d{3}) (?P<size>\d+|-)(?: "(?P<referer>[^"]*)" "(?P<user_agent>[^"]*)")?)?'
)
_BACKEND = re.compile(r"\] (?P<frontend>\S+) (?P<backend>[^/\s]+)/(?P<server>\S+) ")
_NAMED = re.compile(r'(?<![\w.$%?&-])([A-Za-z_][\w.-]*)[=:] ?"?([^\s",;|)}\]=]+)')


def _details(lines: Sequence[bytes], chosen: _Line) -> pd.DataFrame:
    """Further columns of each request: client, method, path, size, agent and labelled values."""
    import pandas as pd

    texts = pd.Series([line.decode("utf-8", "replace") for line in lines], dtype=object)
    frame = texts.str.extract(_DETAILS).drop(columns="status")
    frame["endpoint"] = frame["endpoint"].str.replace(r"[?#].*$", "", regex=True)
    if chosen is _HAPROXY:
        frame = frame.join(texts.str.extract(_BACKEND))
    behind = texts.str.extract(r'" \d{3} (.*)$', expand=False).fillna("")
    behind = behind.str.replace(r'^\S+ "[^"]*" "[^"]*"', "", regex=True)
    named = [dict(_NAMED.findall(text)) for text in behind]
    some = named[:_JUDGED]
    for label in dict.fromkeys(label for row in some for label in row):
        if sum(label in row for row in some) >= 0.5 * len(some) and label != chosen.label:
            frame.insert(len(frame.columns), label, [row.get(label) for row in named], True)
    return frame.dropna(axis=1, how="all")


def _nanoseconds_since_epoch(stamps: AnyArray) -> Ints:
    """Times of seconds, or of ``21/Nov/2026:00:16:36 +0000``, or with milliseconds and no zone."""
    distinct, where = np.unique(stamps, return_inverse=True)  # each is parsed once
    if b"/" not in distinct[0]:
        micros = np.rint(distinct.astype(np.float64) * 1e3).astype(np.int64) * 1_000_000
        return micros[where.reshape(-1)]
    iso, zone = [], []
    for stamp in distinct.tolist():
        text = stamp.decode("ascii")
        fraction = text[20:24] if text[20:21] == "." else ""
        month = _MONTHS.index(text[3:6]) + 1
        iso.append(f"{text[7:11]}-{month:02}-{text[:2]}T{text[12:20]}{fraction}")
        sign = -1 if text[21:22] == "-" else 1
        zone.append(0 if fraction else sign * (int(text[22:24]) * 3600 + int(text[24:26]) * 60))
    since = np.array(iso, dtype="datetime64[ms]").astype(np.int64)
    if (np.abs(since) > 9e12).any():
        raise ValueError("it lies beyond the years 1678 to 2261")
    times = since * 1_000_000 - np.array(zone, np.int64) * int(NANOSECONDS["s"])
    return np.asarray(times[where.reshape(-1)])


# ------------------------------------------------------------
# One JSON object per line.


@record()
class _Keys:
    """The keys that a server writes: the time, its unit, stamps, the status, and others."""

    tool: str
    time: str
    unit: str
    begin: tuple[str, ...]
    end: tuple[str, ...]
    status: tuple[str, ...]
    beside: tuple[str, ...] = ()


_SERVERS = (
    _Keys(
        "nginx", "request_time", "s", (),
        ("msec", "time_iso8601", "time", "@timestamp", "timestamp", "ts"), ("status",),
    ),
    _Keys(
        "Traefik", "Duration", "ns", ("StartUTC", "StartLocal"), ("time",),
        ("DownstreamStatus", "OriginStatus"), ("RequestMethod",),
    ),
    _Keys("Envoy", "duration", "ms", ("start_time",), (), ("response_code",), ("response_code",)),
    _Keys("Caddy", "duration", "s", (), ("ts",), ("status",), ("request", "status")),
)  # fmt: skip


def _server_of(head: Head) -> _Keys | None:
    line = head.lines[0] if head.lines else ""
    servers = _SERVERS if line.startswith("{") else _SERVERS[:1]  # only nginx's are known by name
    try:
        record = json.loads(line) if line.startswith("{") else objects.pairs(line)
    except (ValueError, RecursionError):
        return None
    fits = (
        server
        for server in servers
        if server.time in record
        and all(key in record for key in server.beside)
        and any(key in record for key in (*server.status, *server.beside))
    )
    return next(fits, None)


def sniff_json(head: Head) -> Confidence:
    """Recognise the keys of the first line."""
    return certain(_server_of(head))


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every request."""
    server, line = _server_of(source.head), (source.head.lines or [""])[0]
    if server is None:
        seen = "no server's keys are in the first line"
        raise source.corrupt(1, seen, "request_time and status, or the like")
    is_json = line.startswith("{")
    first = json_text.flat(json.loads(line)) if is_json else objects.pairs(line)
    begin, end, status = (
        next((key for key in keys if key in first), None)
        for keys in (server.begin, server.end, server.status)
    )
    stamp = begin or end
    kind: Kind = (
        "number" if re.fullmatch(r"\d+(?:\.\d+)?", str(first.get(stamp or ""))) else "moment"
    )
    side = {} if stamp is None else {"start" if begin else "end": TimestampColumn(stamp, kind, "s")}
    style: Style = "proxied" if status == "response_code" else "served"
    outcomes = [Reading(status, style, empty=0)] if status else []
    if status == "response_code" and "response_flags" in first:
        outcomes.append(Reading("response_flags", "envoy", empty=0))
    unit, unit_from = options.resolve_unit(server.unit)
    used = (server.time, *server.begin, *server.end, "connection")
    plan = ColumnPlan(
        server.time, "number", unit, unit_from, side, tuple(outcomes), True,
        "connection" if "connection" in first else None, "number", None, None, (),
        further=tuple(key for key in first if key not in used) if options.columns else (),
    )  # fmt: skip
    read = objects.read_lines if is_json else objects.read_pairs
    facts: dict[str, Any] = {"tool": server.tool, "measure": "service", "corrected": "none"}
    return {
        name: data.with_run(**facts, notes=data.run.with_notes(SERVER_SIDE).notes)
        for name, data in read(source, options, plan).items()
    }


FORMATS = {
    "access-log": (sniff, read),
    "access-json": (sniff_json, read_json),
}
