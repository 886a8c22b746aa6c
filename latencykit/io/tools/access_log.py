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
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np

from latencykit._typing import Floats, JSONObject
from latencykit.core.run import SERVER_SIDE, UnitFrom
from latencykit.io import build, json_text
from latencykit.io.raw import objects
from latencykit.io.raw.cells import Kind, latency_columns, named
from latencykit.io.raw.columns import ColumnPlan, TimestampColumn
from latencykit.io.raw.log_parts import hint_of
from latencykit.io.raw.outcomes import OutcomeRule, Style
from latencykit.io.source import Confidence, Data, Head, ReadOptions, Source
from latencykit.io.text_reports import certain
from latencykit.io.tools.log_lines import PRESETS, Log

_FIELD = r'(?:"[^"\\\n]*(?:\\.[^"\\\n]*)*"|\[[^\[\]\n]*+\]|[^\s"\[]\S*)'
_FIELDS = re.compile(_FIELD)
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


_DATE = r"\d\d/(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)/\d{4}:\d\d:\d\d:\d\d"
_HEAD = (  # ingress-nginx has the client's addresses in brackets, too
    r"^[^\[\n]*+(?:\[(?!\d\d/)[^\]\n]{0,400}+\] - [^\[\n]*+){0,2}\[(?P<start>"
    + _DATE
    + r' [-+]\d{4})\] "[^"\\\n]*+(?:\\.[^"\\\n]*+)*+" (?P<status>\d{3}) '
)
# unlike nginx's and HAProxy's own messages, and comments on the log
_LEVELS = "emerg|alert|crit|error|warn|notice|info|debug"
_ENTRY = rf"^(?:[^\n]*?\[(?!(?:{_LEVELS})\]|[^\]\n]*\] \S+/\S+: )|\d{{9}}|[^ \n]+$)"
_SECONDS_ONLY = "timestamps are whole seconds"


def _access_log(
    like: str, unit: str, unit_from: UnitFrom, *, seconds: bool = False, notes: Sequence[str] = ()
) -> Log:
    """The log whose lines have `like` behind the status, with the time of the request as ``<>``."""
    # Nginx writes it in `seconds`, with three decimals, when the request has ended.
    group = f"latency_{unit}{'_assumed' * (unit_from == 'assumed')}"
    return Log(
        (_HEAD.replace("?P<start>", "?P<end>") if seconds else _HEAD)
        + like.replace("<>", rf"(?P<{group}>\d+(?:\.\d+)?)"),
        entry=_ENTRY, tool="nginx" if seconds else "Apache httpd", unit_from=unit_from,
        notes=(*notes, _SECONDS_ONLY),
    )  # fmt: skip


def _behind(right: int, part: int = 0) -> str:
    """The pattern of a number with that many fields behind it; of 0/250000, a part."""
    number = r"(?:\d+/)" * part + r"<>(?:/\d+)*[a-zµμ]{0,4}"
    return rf'(?:.*?[ \t])?"?{number}"?(?:[ \t]+{_FIELD}){{{right}}}[ \t\r]*$'


def timed_log(tails: Sequence[str]) -> Log | None:
    """Return the log by what is behind the status of its lines; None where no time is there."""
    # a number with a name that denotes a latency
    rows = [{match[1]: match for match in _LABELLED.finditer(tail)} for tail in tails]
    labels = [label for label in rows[0] if sum(label in row for row in rows) >= _ALL * len(rows)]
    named_so = [column.column for column in latency_columns(labels)[0]]
    named_so += [label for label in labels if label.lower() in ("d", "t", "time")]
    ranks = {"time": 2, "t": 3}  # the most certain label is that of the total time
    label = min(
        (label for label in named_so if not _UPSTREAM.search(label)),
        key=lambda x: 0 if named(x).stem in ("rt", "request_time") else ranks.get(x.lower(), 1),
        default=None,
    )
    if label is not None:
        cells = [row[label] for row in rows if label in row]
        beside = {build.unit_in(cell[3]) for cell in cells if cell[3]}
        seconds = all(_SECONDS.fullmatch(cell[2]) for cell in cells)
        stated = named(label).unit or (beside.pop() if len(beside) == 1 else None)
        like = rf'(?:.*[^\w.$%-])?{re.escape(label)} ?[=:] ?"?<>'
        if stated is not None:
            return _access_log(like, stated, "file", seconds=seconds and stated == "s")
        own = "s" if seconds else _OWN.get(label.lower())
        return _access_log(like, own or "us", "format" if own else "assumed", seconds=seconds)
    fields = [[field.strip('"') for field in _FIELDS.findall(tail)] for tail in tails]
    for right in range(8):  # a number with its unit: the last one
        numbers = _column(fields, -1 - right, _SUFFIXED)
        if numbers is not None:
            units = {build.unit_in(cell.lstrip("0123456789.")) for cell in numbers}
            if len(units) == 1:
                return _access_log(_behind(right), units.pop() or "us", "file")
            break
    return _of_seconds(fields) or _whole(fields)


def _column(fields: Sequence[Sequence[str]], at: int, pattern: re.Pattern[str]) -> list[str] | None:
    """The fields at a place that match, where nearly all lines have one."""
    cells = [row[at] for row in fields if -len(row) <= at < len(row) and pattern.fullmatch(row[at])]
    return cells if len(cells) >= _ALL * len(fields) and len(cells) else None


def _of_seconds(fields: Sequence[Sequence[str]]) -> Log | None:
    """Nginx's times: the one that contains the others."""
    width = min(max(map(len, fields)), 12)
    columns: list[tuple[int, Floats]] = []
    for at in (*range(width), *range(-1, -1 - width, -1)):
        cells = _column(fields, at, _SECONDS)
        if cells is None or len(cells) != sum(len(row) > max(at, -1 - at) for row in fields):
            continue
        values = np.array(cells, np.float64)
        if (values < 1e6).all() and not any(np.array_equal(values, other) for _, other in columns):
            columns.append((at, values))
    if not columns:
        return None
    at, values = columns[0]
    for place, other in columns[1:]:
        apart = other - values if other.size == values.size else np.zeros(1)
        if apart[np.abs(apart) > _ROUNDED].sum() > 0:
            at, values = place, other
    note = "lines contain more than one duration; the longest is taken as $request_time"
    like = rf'(?:{_FIELD}[ \t]+){{{at}}}"?<>"?(?=[ \t\r]|$)' if at >= 0 else _behind(-1 - at)
    return _access_log(like, "s", "format", seconds=True, notes=[note] * (len(columns) > 1))


def _whole(fields: Sequence[Sequence[str]]) -> Log | None:
    """Apache's whole numbers at the end of the line, behind the size of the body."""
    columns: list[tuple[int, int, Floats]] = []  # fields behind it, part of it, values
    for right in range(6):
        cells = [row[-1 - right] for row in fields if len(row) > right + 1]
        parts = {cell.count("/") for cell in cells}
        if len(cells) < _ALL * len(fields) or len(parts) != 1:
            break
        if not all(re.fullmatch(r"\d+(?:/\d+)*", cell) for cell in cells):
            break
        numbers = np.array([cell.split("/") for cell in cells], np.float64).T
        columns = [(right, part, values) for part, values in enumerate(numbers)] + columns
    # Bytes received and sent are next to each other, as in Apache's combinedio.
    sizes = [row[0] for row in fields if len(row) > 1]
    body = np.array([float(size) if re.fullmatch(r"\d+", size) else 0.0 for size in sizes])
    last = [k for k, column in enumerate(columns) if _goes_with(column[2], body)][-1:]
    kept = columns[last[0] + 1 :] if last else columns
    if not kept:
        return None
    largest = max(kept, key=lambda column: float(column[2].sum()))
    # seconds of fast requests
    zeros = len(kept) > 1 and not all(column[2].any() for column in kept)
    right, part, values = largest if zeros else kept[-1]
    # A time in two units, of which the finer one is taken; the coarse one is truncated or rounded.
    pairs = ((ratio, *pair) for ratio in (1e6, 1e3) for pair in permutations(kept, 2))
    for ratio, fine, coarse in pairs:
        if fine[2].size == coarse[2].size and coarse[2].any():
            apart = fine[2] / ratio - coarse[2]
            if ((apart > -0.6) & (apart < 1.01)).mean() >= _ALL:
                right, part, values = fine
                if ratio == 1e6:
                    return _access_log(_behind(right, part), "us", "format")
                break
    hint = (
        f"half of the times are below {_SLOWEST_FAST:g} µs, faster than most web servers: "
        "are they %{ms}T? (--unit ms)"
    )
    doubt = [hint] * (float(np.median(values)) < _SLOWEST_FAST)
    return _access_log(_behind(right, part), "us", "assumed", notes=doubt)


def _goes_with(values: Floats, body: Floats) -> bool:
    """True if a number is the size of the body and a few headers."""
    if values.size != body.size or not np.ptp(body):
        return False
    apart = values - body
    near = bool(((apart >= 0) & (apart < 8192)).all())
    return near and float(np.std(apart)) < 0.2 * float(np.std(body))


# ------------------------------------------------------------
# Lines of text: the log of a pattern.

_TAIL = re.compile(_HEAD + r"(?P<tail>.*)$")
_MSEC = re.compile(r"^\d{9,11}\.\d{3} (\d+\.\d{3}) (?:(\d+\.\d{3}|-) )?")
_HAPROXY = (
    r"^.*?\[(?P<start>" + _DATE + r"\.\d{3})\] \S+ \S+/\S+ "
    r"-?\d+/-?\d+/-?\d+/-?\d+/\+?(?P<latency_ms>-?\d+) (?P<status>-?\d+) \+?\d+ "
)
_JUDGED = 200  # lines
# Further columns, wherever they are in a line.
_REQUEST = r'[^\n]*?(?:"| )(?P<method>[A-Z]{3,9}) (?P<endpoint>[^\s"?#]+)'
_CLIENT = r"(?P<client>(?!\d{9,11}\.\d{3} )\S+) "
_SIZE = r'[^\n]*?" \d{3} (?P<size>\d+|-)(?: "(?P<referer>[^"\n]*)" "(?P<user_agent>[^"\n]*)")?'
_BACKEND = r"[^\n]*?\] (?P<frontend>\S+) (?P<backend>[^/\s]+)/(?P<server>\S+) "
_NAMED = re.compile(r'(?<![\w.$%?&-])([A-Za-z_]\w*)[=:] ?"?[^\s",;|)}\]=]+')
_LABEL = (
    r'(?>[^\n]*?" \d{{3}} )(?>\S+ "[^"\n]*" "[^"\n]*")?[^\n]*?'
    r'(?<![\w.$%?&-]){0}[=:] ?"?(?P<{0}>[^\s",;|)}}\]=]+)'
)


def _log_of(head: Head, *, columns: bool = False) -> Log | None:
    """The log whose pattern fits nearly all of the first lines; its pattern has all columns."""
    lines = [line for line in head.lines[:_JUDGED] if re.match(_ENTRY, line)]
    # $msec, then a time or two, of which the longer one is the total time.
    matches = [match for line in lines if (match := _MSEC.match(line))]
    pairs = [(float(row[1]), float(row[2])) for row in matches if row[2] not in (None, "-")]
    longer = sum(two - first for first, two in pairs if abs(two - first) > _ROUNDED) > 0
    headless = r"^(?P<end_s>\d{9,11}\.\d{3}) " + r"\S+ " * longer
    headless += r"(?P<latency_s>\d+\.\d{3}) .*?(?<=\s)(?P<status>[1-5]\d\d)(?=\s|$)"
    zone = "timestamps without a time zone were taken as UTC"
    of_tool = partial(Log, entry=_ENTRY, unit_from="format")
    logs = [of_tool(headless, tool="nginx"), of_tool(_HAPROXY, tool="HAProxy", notes=(zone,))]
    tails = [match["tail"].rstrip() for line in lines if (match := _TAIL.match(line))]
    if tails and len(tails) >= 0.9 * len(lines) and (timed := timed_log(tails)) is not None:
        logs.insert(0, timed)
    for log in logs if lines else ():
        if sum(re.match(log.pattern, line) is not None for line in lines) >= 0.9 * len(lines):
            if not columns:
                return log
            parts = [_CLIENT, _REQUEST, _SIZE] + [_BACKEND] * (log.tool == "HAProxy")
            taken = set(re.findall(r"\?P<(\w+)", f"{parts}{log.pattern}"))
            rest = [re.sub(r'^\S+ "[^"]*" "[^"]*"', "", tail) for tail in tails]
            often = Counter(name for tail in rest for name in dict.fromkeys(_NAMED.findall(tail)))
            names = [name for name, number in often.items() if 2 * number >= len(rest)]
            taken |= {name for name in names if f"{re.escape(name)} ?[=:]" in log.pattern}
            parts += [_LABEL.format(name) for name in names if name not in taken]
            ahead = "".join(f"(?:(?={part})|)" for part in parts)
            return replace(log, pattern=f"^{ahead}{log.pattern[1:]}")
    return None


def sniff(head: Head) -> Confidence:
    """Recognise a line format with a time; one without is refused with a reason when it is read."""
    if re.search(PRESETS["traefik"].pattern, head.text, re.MULTILINE):
        return Confidence.NO
    if _log_of(head) is not None:
        return Confidence.CERTAIN
    first = next((line for line in head.lines if line.strip()), "")
    return certain(re.match(_HEAD, first))


def read(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every request."""
    log = _log_of(source.head, columns=options.columns)
    if log is not None:
        return log(source, options)
    seen = "this access log has no time of a request"
    expected = "$request_time (nginx) or %D (Apache)"
    hint = hint_of(source.head.lines)  # a bare number may be anything
    added = "add it to the log format, such as rt=$request_time or %D at the end"
    raise source.corrupt(1, seen, expected, hint if "try" in hint else added)


# ------------------------------------------------------------
# One JSON object per line.


# What a server writes: its time and the unit of that, stamps of the begin and the end, the status,
# and other keys.
_SERVERS = (
    (
        "nginx", "request_time", "s", (),
        ("msec", "time_iso8601", "time", "@timestamp", "timestamp", "ts"), ("status",), (),
    ),
    (
        "Traefik", "Duration", "ns", ("StartUTC", "StartLocal"), ("time",),
        ("DownstreamStatus", "OriginStatus"), ("RequestMethod",),
    ),
    ("Envoy", "duration", "ms", ("start_time",), (), ("response_code",), ("response_code",)),
    ("Caddy", "duration", "s", (), ("ts",), ("status",), ("request", "status")),
)  # fmt: skip


def _server_of(head: Head) -> tuple[Any, JSONObject]:
    """The server whose keys are in the first line, or None, and the line's cells."""
    line = (head.lines or [""])[0]
    servers = _SERVERS if line.startswith("{") else _SERVERS[:1]  # only nginx's are known by name
    try:
        first = json.loads(line) if line.startswith("{") else objects.pairs(line)
    except (ValueError, RecursionError):
        return None, {}
    for server in servers:
        *_, statuses, beside = server
        known = any(key in first for key in (*statuses, *beside))
        if server[1] in first and known and all(key in first for key in beside):
            return server, json_text.flat(first)
    return None, {}


def sniff_json(head: Head) -> Confidence:
    """Recognise the keys of the first line."""
    return certain(_server_of(head)[0])


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every request."""
    server, first = _server_of(source.head)
    if server is None:
        return {}
    tool, time, unit, begins, ends, statuses, _ = server
    begin, end, status = (
        next((key for key in keys if key in first), None) for keys in (begins, ends, statuses)
    )
    stamp = begin or end
    kind: Kind = (
        "number" if re.fullmatch(r"\d+(?:\.\d+)?", str(first.get(stamp or ""))) else "moment"
    )
    side = {} if stamp is None else {"start" if begin else "end": TimestampColumn(stamp, kind, "s")}
    style: Style = "proxied" if status == "response_code" else "served"
    outcomes = [OutcomeRule(status, style, empty=0)] if status else []
    if status == "response_code" and "response_flags" in first:
        outcomes.append(OutcomeRule("response_flags", "envoy", empty=0))
    unit, unit_from = options.resolve_unit(unit)
    used = (time, *begins, *ends, "connection")
    plan = ColumnPlan(
        time, "number", unit, unit_from, side, tuple(outcomes), True,
        "connection" if "connection" in first else None, "number", None, None, (),
        further=tuple(key for key in first if key not in used) if options.columns else (),
    )  # fmt: skip
    is_json = source.head.text.startswith("{")
    read = objects.read_lines if is_json else objects.read_pairs
    facts: dict[str, Any] = {"tool": tool, "measure": "service", "corrected": "none"}
    return {
        name: data.with_run(**facts, notes=data.run.with_notes(SERVER_SIDE).notes)
        for name, data in read(source, options, plan).items()
    }


FORMATS = {"access-log": (sniff, read), "access-json": (sniff_json, read_json)}
