"""`read_events`: times at which something happened, from the logs that other processes keep.

Each kind of file is recognised by its content. From top to bottom: the operation and what
recognises a file, logs of garbage collectors, JSON of journals and clusters, hiccup logs, Redis'
slow log, and tables of times.
"""

from __future__ import annotations

import csv
import json
import os
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import zip_longest
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from latencykit import errors
from latencykit._text import printable
from latencykit._typing import Floats
from latencykit.core.columns import Words, word_of
from latencykit.core.events import Clock, Events
from latencykit.core.histogram_log import HistogramLog, interval_series
from latencykit.io import json_text, registry
from latencykit.io.build import epoch_seconds, iso_nanoseconds
from latencykit.io.raw.cells import Kind, kind_of, times_of
from latencykit.io.source import Confidence, Source
from latencykit.units import NANOSECONDS, parse_duration

_EXPECTED = (
    "a JVM or Go GC log, a hiccup log (.hlog), journalctl -o json, kubectl get events -o json, "
    "a Redis slow log, or a CSV of times"
)
_OFFSET = re.compile(r"(?P<path>.+)@(?P<offset>[+-]\d.*|\d{4}-\d\d-\d\d.*)", re.DOTALL)
_ISO = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
_ZONE = re.compile(r"(?:Z|[+-]\d\d:?\d\d)$")

_Row = tuple[float, float, str]
"""Start, end and label of an event."""
_Read = tuple[str, Sequence[_Row], Clock, Iterable[str]]
"""Kind of a file, its events, their clock, and notes."""


def read_events(path: str | os.PathLike[str], offset: float | str | None = None) -> Events:
    """Read the events of a log beside a run, whatever process wrote it.

    Logs of garbage collections (JVM unified logging and the style of JDK 8, Go's
    ``GODEBUG=gctrace=1``), hiccup logs (``.hlog``), ``journalctl -o json``,
    ``kubectl get events -o json``, ``SLOWLOG GET`` of Redis, and tables (CSV or JSON) of
    moments or of times from–to are recognised by their content.

    Parameters
    ----------
    path : str or path-like
        ``gc.log@+3600s`` moves the clock of that file by an hour, ``gc.log@2026-01-31T12:00:00Z``
        says when the process started whose times count from there; a file of such a name wins.
    offset : float or str, optional
        The same as an argument: seconds to add, a duration, or that moment.

    Returns
    -------
    Events
        Times in seconds on their `clock`.

    Raises
    ------
    UnknownFormatError
        If the content is none of these.
    CorruptInputError
        If the file cannot be read, or none of its events has a time.
    InvalidArgumentError
        For an offset that is not a time, or a moment for a clock that needs none.

    Examples
    --------
    >>> import tempfile
    >>> log = Path(tempfile.mkdtemp()) / "gc.log"
    >>> _ = log.write_text("[2.500s][info][gc] GC(0) Pause Full (System.gc()) 9M->2M(64M) 500.0ms")
    >>> gc = read_events(log)
    >>> gc.kind, gc.clock, gc.start.tolist(), gc.label.tolist()
    ('jvm-gc', 'relative', [2.0], ['Pause Full (System.gc())'])
    """
    errors.require_path(path)
    name = str(path)
    if offset is None and not Path(name).exists() and (match := _OFFSET.fullmatch(name)):
        name, offset = match["path"], match["offset"]
    source = Source(name)
    if not source.is_dir and not source.head.data.removeprefix(b"\xef\xbb\xbf").strip():
        raise source.corrupt(None, "the file is empty", _EXPECTED, "was it recorded?")
    reader: Callable[[Source], _Read]
    hlog = registry.named_format("hlog")
    if hlog is not None and hlog.sniff(source.head) >= Confidence.LIKELY:
        reader = _hiccups
    elif b"\0" in source.head.data[:4096]:
        raise errors.UnknownFormatError(f"{source.shown}: this is not text; expected {_EXPECTED}")
    else:
        known = (reader for mark, reader in _MARKS if mark.search(source.head.text))
        reader = next(known, _table)
    try:
        kind, rows, clock, notes = reader(source)
        start, end, label = zip(*rows, strict=True) if rows else ((), (), ())
        words: Any = [printable(text, 80) for text in label]
        stop: Any = np.maximum(start, end)
        events = Events(source.name, kind, np.array(start), stop, words, clock, notes=tuple(notes))
    except errors.LatencyKitError:
        raise
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
        seen = f"a value in it cannot be read ({printable(str(error), 80)})"
        raise source.corrupt(None, seen, _EXPECTED) from error
    if offset is None:
        return events
    moment = epoch_seconds(offset) if re.match(r"\d{4}-", str(offset)) else None
    if moment is not None:
        if events.clock != "relative":
            raise errors.InvalidArgumentError(
                f"{source.shown}: its times are dates already; write an offset such as @+3600s"
            )
        return replace(events.shifted(moment), clock="epoch", offset=moment)
    text = str(offset)
    sign = -1 if text.startswith("-") else 1
    seconds = sign * parse_duration(text.lstrip("+-"), "s") / 1e9
    clock = "epoch" if clock == "local" else clock
    return replace(events.shifted(seconds), clock=clock, offset=seconds)


def _number(text: str) -> float:
    """A decimal, which some locales write with a comma."""
    return float(text.replace(",", "."))


# ------------------------------------------------------------
# Garbage collectors. Unified logging (JEP 158) writes a line when a pause is over; its decorations
# are chosen by the user and stand in brackets before it. JDK 8 stamps the start of a pause.

_PAUSE = re.compile(
    r"^(?P<before>.{0,200}?)(?:GC\(\d{1,19}\) )?(?:[YOyo]: )?"
    r"(?P<what>(?:Pause|Allocation Stall)\b.{0,200}?)"
    r"(?: \d+[BKMG]->\d+[BKMG]\(\d+[BKMG]\))?(?: \([\d.,]+s, [\d.,]+s\))?"
    r" (?P<took>\d+[.,]\d+)ms[ \t]*$",
    re.MULTILINE,
)
_SAFEPOINT = re.compile(
    r'^(?P<before>.*?)Safepoint "(?P<what>[^"]*)",.*?Total: *(?P<took>\d+) ns.*$', re.MULTILINE
)
_STOPPED = re.compile(
    r"^(?P<before>.*?)Total time for which application threads were (?P<what>stopped): "
    r"(?P<took>\d+[.,]\d+) seconds.*$",
    re.MULTILINE,
)
_JDK8 = re.compile(
    rf"^.{{0,200}}?(?:(?P<date>{_ISO}): )?(?:(?P<uptime>\d{{1,12}}[.,]\d{{1,9}}): )?"
    r"\[(?P<what>Full GC|GC)(?P<rest>[^\n]*)",
    re.MULTILINE,
)
_SECONDS = re.compile(r", (\d+[.,]\d+) secs\]")
_CLOCKS = (
    (re.compile(_ISO), "date"),
    (re.compile(r"\[\s*(\d{12,14})ms\s*\]"), "epoch-ms"),
    (re.compile(r"\[\s*(\d+[.,]\d+)s\s*\]"), "s"),
    (re.compile(r"\[\s*(\d+)ms\s*\]"), "ms"),
    (re.compile(r"\[\s*(\d+)ns\s*\]"), "ns"),
    (re.compile(r"(?:^|\s)(\d+[.,]\d+): "), "s"),
)
_NEAR = 0.002  # s: stamps are rounded to a millisecond
_NO_TIME = "log with -Xlog:gc*,safepoint:file=gc.log:time,uptime,level,tags"
_UNTIMED = "the lines of its pauses have no time"
_RELATIVE = "its times count from the start of its process"


def _decorated(before: Sequence[str]) -> tuple[Floats, Clock] | None:
    """Times of the decorations of lines, NaN where a line has none; None if no line has any."""
    for pattern, unit in _CLOCKS:
        if not any(pattern.search(text) for text in before[:200]):
            continue
        matches = [pattern.search(text) for text in before]
        times = np.full(len(matches), np.nan)
        has = np.flatnonzero([match is not None for match in matches])
        if unit == "date":
            texts = [match[0].replace(",", ".") for match in matches if match]
            times[has] = iso_nanoseconds(texts) / 1e9
            return times, "epoch" if _ZONE.search(texts[0]) else "local"
        times[has] = [_number(match[1]) for match in matches if match]
        if unit == "epoch-ms":
            return times / 1e3, "epoch"
        return times * NANOSECONDS[unit] / 1e9, "relative"
    return None


def _jvm(source: Source) -> _Read:
    """Pauses of a JVM: of its collector and, where they are logged, at safepoints."""
    text = source.text()
    gc, clock = _jdk8_pauses(text, source)
    clocks, stops = ({clock} if gc else set[Clock]()), list[_Row]()
    undated: list[int] = []
    kinds = ((_PAUSE, 1e-3, gc), (_SAFEPOINT, 1e-9, stops), (_STOPPED, 1.0, stops))
    for pattern, factor, pauses in kinds:
        lines = list(pattern.finditer(text))
        timed = _decorated([line["before"] for line in lines])
        if timed is None:
            undated += [line.start() for line in lines[:1]]
            continue
        clocks.add(timed[1])
        for line, at in zip(lines, timed[0].tolist(), strict=True):
            what = line["what"].strip()
            if pauses is stops:
                what = f"Safepoint {what.replace('stopped', '')}".strip()
            if at == at:  # it has a time
                pauses.append((at - _number(line["took"]) * factor, at, what))
    if undated and not clocks:
        number = text.count("\n", 0, min(undated)) + 1
        raise source.corrupt(number, _UNTIMED, "the decoration time or uptime", _NO_TIME)
    if len(clocks) > 1:
        seen = "some of its lines have a date and others an uptime only"
        raise source.corrupt(None, seen, "one clock", _NO_TIME)
    # A pause lasts from the moment that threads were asked to stop; other safepoints are their own.
    gc.sort(key=itemgetter(0))
    rows, ends = list(gc), [end for _, end, _ in gc]
    for begin, stop, what in stops:
        k = bisect_left(ends, begin - _NEAR)
        if k < len(ends) and gc[k][0] <= stop + _NEAR:
            start, end, label = rows[k]
            rows[k] = min(start, begin), max(end, stop), label
        else:
            rows.append((begin, stop, what))
    clock = clocks.pop() if clocks else "epoch"
    notes = [_RELATIVE] if clock == "relative" else []
    return "jvm-gc", rows, clock, notes if rows else [*notes, "this GC log contains no pause"]


def _jdk8_pauses(text: str, source: Source) -> tuple[list[_Row], Clock]:
    """Pauses as JDK 8 prints them, and their clock."""
    headers = [match for match in _JDK8.finditer(text) if "concurrent" not in match["rest"][:30]]
    rows = []
    for match, following in zip_longest(headers, headers[1:]):
        until = min(following.start() if following else len(text), match.end() + 4000)
        line = match["rest"].split("[Times:")[0]
        took = _SECONDS.findall(line)
        took = took or _SECONDS.findall(text[match.end() : until].split("[Times:")[0])
        if took and (match["date"] or match["uptime"]):
            cause = re.match(r" remark| cleanup|(?:--)?(?: pause)?(?: \([^()]*(?:\(\))?\))*", line)
            what = f"{match['what']}{cause[0] if cause else ''}"
            rows.append((match["date"], match["uptime"], _number(took[-1]), what))
    if headers and not any(match["date"] or match["uptime"] for match in headers):
        line = text.count("\n", 0, headers[0].start()) + 1
        hint = "run Java with -XX:+PrintGCDateStamps -XX:+PrintGCDetails"
        raise source.corrupt(line, _UNTIMED, "a date or an uptime", hint)
    dates = [date for date, *_ in rows if date]
    if dates and len(dates) == len(rows):
        start = iso_nanoseconds([date.replace(",", ".") for date in dates]) / 1e9
        timed: Iterable[tuple[float, Any]] = zip(start.tolist(), rows, strict=True)
        clock: Clock = "epoch" if _ZONE.search(dates[0]) else "local"
    else:
        timed, clock = ((_number(row[1]), row) for row in rows if row[1]), "relative"
    return [(at, at + took, what) for at, (_, _, took, what) in timed], clock


_GCTRACE = re.compile(
    r"^(?P<before>.{0,200}?)\bgc \d+ @(?P<at>\d+\.\d+)s \d+%: (?P<clock>[\d.+]+) ms clock,"
    r"(?:[^\n(]|\((?!forced\)))*+(?P<forced>\(forced\))?[ \t]*+$",
    re.MULTILINE,
)


def _gctrace(source: Source) -> _Read:
    """Cycles of Go's collector; ``@`` is the start of one, the sum of its phases its length."""
    lines = _GCTRACE.findall(source.text())
    before, at, phases, forced = zip(*lines, strict=True)
    start = np.array(at, np.float64)
    length = np.array([sum(map(float, filter(None, part.split("+")))) for part in phases]) / 1e3
    label = ["GC forced" if is_forced else "GC" for is_forced in forced]
    # A container's log puts a date before each line, which is written when the cycle ends.
    stamped = _decorated([re.sub(r"\[[^\[\]]*+\]", "", text) for text in before])
    clock: Clock = "relative"
    if stamped is not None and np.isfinite(stamped[0]).all() and stamped[1] != "relative":
        start, clock = start + float(np.median(stamped[0] - start - length)), stamped[1]
    notes = [_RELATIVE] if clock == "relative" else []
    return "go-gctrace", list(zip(start, start + length, label, strict=True)), clock, notes


# ------------------------------------------------------------
# JSON: journals, clusters.

_STARTING = "7d4958e842da4a758f6c1cdc7b36dcc5"  # systemd's message ids (sd-messages.h)
_STARTED = ("39f53479d3a045ac8e11786248231fbf", "be02cf6855d2428ba40df7e9d022f03d")


def _objects(source: Source) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """All JSON objects: one document, one per line, or one after another; of lists their items."""
    text, notes = source.text().replace("\x1e", ""), list[str]()
    text = re.sub(r"^data: ", "", text, flags=re.MULTILINE) if text.startswith("data: ") else text
    values = json_text.values(text, source, notes)
    return [value for value in values if isinstance(value, dict)], tuple(notes)


def _journal(source: Source) -> _Read:
    """Messages of systemd's journal; of a unit that started, from its start to when it was done."""
    records, notes = _objects(source)
    rows: list[_Row] = []
    begun: dict[str, int] = {}
    for record in records:
        stamp = record.get("_SOURCE_REALTIME_TIMESTAMP") or record.get("__REALTIME_TIMESTAMP")
        if not str(stamp).isdigit():
            continue
        at = int(str(stamp)) / 1e6
        unit = record.get("UNIT") or record.get("USER_UNIT")
        if unit and record.get("MESSAGE_ID") in _STARTED and unit in begun:
            k = begun.pop(unit)
            rows[k] = rows[k][0], at, rows[k][2]
            continue
        if unit and record.get("MESSAGE_ID") == _STARTING:
            begun[unit] = len(rows)
        who = str(unit or record.get("SYSLOG_IDENTIFIER") or record.get("_SYSTEMD_UNIT") or "")
        message = record.get("MESSAGE")
        command = re.search(r"\bCMD \((.*)\)", message) if isinstance(message, str) else None
        rows.append((at, at, f"{who}: {command[1]}" if command else who))
    if not rows:
        hint = "write it with journalctl -o json"
        raise source.corrupt(None, "no message has a time", "__REALTIME_TIMESTAMP", hint)
    return "journal", rows, "epoch", notes


def _kubernetes(source: Source) -> _Read:
    """Events of a cluster; of one that recurred, its first and its last time."""
    records, notes = _objects(source)
    found: list[tuple[str, str]] = []  # time, label
    recurred = False
    for record in records:
        inner: dict[str, Any] = record.get("object") or record
        for item in (inner.get("items") or []) if "items" in inner else [inner]:
            series = item.get("series") or {}
            times = [
                item.get("firstTimestamp") or item.get("deprecatedFirstTimestamp"),
                item.get("eventTime"),
                item.get("lastTimestamp") or item.get("deprecatedLastTimestamp"),
                series.get("lastObservedTime"),
            ]
            about = item.get("involvedObject") or item.get("regarding") or {}
            created = [(item.get("metadata") or {}).get("creationTimestamp")]
            recurred |= int(item.get("count") or series.get("count") or 1) > 2
            label = f"{item.get('reason') or '?'} {about.get('kind') or ''}".strip()
            stamps = dict.fromkeys(filter(None, times if any(times) else created))
            found += [(stamp, label) for stamp in stamps]
    if not found:
        hint = "write it with kubectl get events -A -o json"
        raise source.corrupt(None, "no event has a time", "lastTimestamp or eventTime", hint)
    start = iso_nanoseconds([stamp for stamp, _ in found]) / 1e9
    if recurred:
        notes = (*notes, "of events that recurred, the first and the last time are known only")
    rows = [  # without a fraction, known to the second
        (at, at + ("." not in stamp), label)
        for at, (stamp, label) in zip(start.tolist(), found, strict=True)
    ]
    return "kubernetes", rows, "epoch", notes


# ------------------------------------------------------------
# Hiccup logs: each interval whose longest pause stands out.

_OUTLYING = 5.0  # times the median of the intervals' maxima,
_MOST = 0.1  # or the highest tenth of them
_LEAST_PAUSE = 1e-3  # seconds


def _hiccups(source: Source) -> _Read:
    from latencykit.io.reading import read

    log = read(source.shown)
    if not isinstance(log, HistogramLog) or not len(log):
        raise source.corrupt(None, "this log has no interval", "a hiccup log", "was it recorded?")
    series = interval_series(log, (50,))
    worst = np.nan_to_num(series.max) * NANOSECONDS.get(series.unit, 1.0) / 1e9
    usual, high = np.quantile(worst, (0.5, 1 - _MOST)).tolist()
    limit = max(min(_OUTLYING * usual, high), _LEAST_PAUSE)
    chosen = worst > limit
    begin = log.run.start or 0.0
    start = begin + series.start[chosen] - worst[chosen]
    end = begin + (series.start + series.length)[chosen]
    note = f"pauses above {1e3 * limit:.3g} ms, each known to its interval"
    rows = [(*pair, "hiccup") for pair in zip(start.tolist(), end.tolist(), strict=True)]
    return "hiccup", rows, "epoch" if log.run.start else "relative", (note,)


# ------------------------------------------------------------
# Redis: SLOWLOG GET as redis-cli prints it to a terminal, into a file, or with --json. The stamp
# is of the second in which a command ended.

_SLOW = re.compile(
    r"^ *\d+\) +1\) \(integer\) \d+\n +2\) \(integer\) (\d+)\n +3\) \(integer\) (\d+)\n"
    r" +4\) +1\) \"((?:[^\"\\\n]|\\.)*)\"",
    re.MULTILINE,
)
_SLOW_RAW = re.compile(r"^\d+\n(1\d{9})\n(\d+)\n([^\n]+)\n(?:[^\n]*\n)*?[^\s]+:\d+\n", re.MULTILINE)


def _slowlog(source: Source) -> _Read:
    text = source.text()
    found: list[Any] = _SLOW.findall(text) or _SLOW_RAW.findall(text)
    if text.lstrip().startswith("[["):
        found = [(row[1], row[2], (row[3] or [""])[0]) for row in json.loads(text)]
    if not found:
        raise source.corrupt(None, "this slow log is empty", "entries of SLOWLOG GET", "")
    rows = [
        (float(stamp) - float(took) / 1e6, float(stamp) + 1, str(command).upper())
        for stamp, took, command in found
    ]
    note = "the slow log knows the second in which a command ended"
    return "redis-slowlog", rows, "epoch", (note,)


# ------------------------------------------------------------
# Tables of times: CSV with or without a header, JSON objects with the same names.

_ROLES = {
    "start": "start starttime start_time started from begin begins time timestamp @timestamp ts at "
    "when date datetime created_at created",
    "end": "end endtime end_time ended to until stop finish finished timeend time_end end_at",
    "length": "duration length took elapsed",
    "label": "label name event what kind type text title message msg reason job source description",
}
_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "seconds": 1.0, "min": 60.0}


def _role_of(name: str) -> tuple[str, float]:
    """Role and unit in seconds (0: unknown) that the name of a column states."""
    word = name.strip().strip('"').lower().replace(" ", "_")
    stem, _, unit = re.sub(r"[(\[]", "_", word).rstrip(")]").rpartition("_")
    for key, factor in ((word, 0.0), (stem.rstrip("_"), _UNITS.get(unit, 0.0))):
        for role, names in _ROLES.items():
            if key in names.split():
                return role, factor
    return "", 0.0


def _kind(text: str) -> Kind:
    return kind_of(Words.of([text]))


def _column(
    source: Source, column: tuple[list[str], float], numbers: Sequence[int]
) -> tuple[Floats, Clock]:
    """A column of times in seconds, and their clock; a cell unlike the first is an error."""
    # A number is a moment since 1970 in the unit by which it lies between 1973 and 2286, otherwise
    # seconds from the start.
    texts, factor = column
    kind = _kind(texts[0])
    times = times_of(Words.of(texts), kind, "none")
    wrong = np.flatnonzero(times.missing | times.corrupt)
    if wrong.size or kind == "word":
        at = int(wrong[0]) if wrong.size else 0
        seen = f"{printable(texts[at], 40)!r} is not a time as those before it"
        expected = "seconds, or a date such as 2026-01-31T12:00:00Z"
        raise source.corrupt(numbers[at], seen, expected, "")
    values = times.ns.astype(np.float64)
    if kind == "span":
        return values / 1e9, "relative"
    if kind == "moment":
        return times.ns / 1e9, "epoch" if _ZONE.search(texts[0][10:]) else "local"
    largest = float(np.abs(values).max(initial=0.0))
    sizes = (factor,) if factor else (1e-9, 1e-6, 1e-3, 1.0)
    scale = next((size for size in sizes if 1e8 < largest * size < 1e10), 0.0)
    return (values * scale, "epoch") if scale else (values * (factor or 1.0), "relative")


def _table(source: Source) -> _Read:
    """Moments, or times from–to, with a label where there is one."""
    text = source.text()
    if text.lstrip()[:1] in ("{", "["):
        records, _ = _objects(source)
        header = list(dict.fromkeys(name for record in records for name in record))
        rows = [[word_of(record.get(name)) or "" for name in header] for record in records]
        numbers = list(range(1, len(rows) + 1))
    else:
        # without a header: start, end (if that is a time), label
        lines = [
            (number, line)
            for number, line in enumerate(text.split("\n"), 1)
            if line.strip() and not line.startswith("#")
        ]
        first = lines[0][1] if lines else ""
        mark = next((mark for mark in "\t;,|" if mark in first), ",")
        numbers = [number for number, _ in lines]
        parsed = csv.reader((line for _, line in lines), delimiter=mark, skipinitialspace=True)
        rows = [[cell.strip() for cell in row] for row in parsed]
        header = rows[0] if rows else []
        if header and _kind(header[0]) == "word":
            rows, numbers = rows[1:], numbers[1:]
        else:
            second = len(header) > 1 and _kind(header[1]) != "word"
            header = ["start", *(["end"] if second else []), "label"]
    roles = [_role_of(name) for name in header]
    columns: dict[str, tuple[list[str], float]] = {}
    for k, (role, factor) in enumerate(roles):
        if role and role not in columns:
            columns[role] = [row[k] if k < len(row) else "" for row in rows], factor
    if "start" not in columns or not rows:
        begin = printable(text.strip().split("\n")[0], 50)
        raise errors.UnknownFormatError(
            f"{source.shown}: no events are known in this input (it begins '{begin}'); expected "
            f"{_EXPECTED} with a column such as start, from or time"
        )
    start, clock = _column(source, columns["start"], numbers)
    end = start
    if "end" in columns:
        texts, factor = columns["end"]
        # what goes on at the end of the recording has no end yet: a moment
        begins, default = columns["start"]
        texts = [b or a for a, b in zip(begins, texts, strict=True)]
        stop, other = _column(source, (texts, factor or default), numbers)
        if other != clock:
            seen = "its starts and ends are on different clocks"
            raise source.corrupt(numbers[0], seen, "one clock")
        end = stop
        if (end < start).any():
            line = numbers[int(np.argmax(end < start))]
            raise source.corrupt(line, "the event ends before it starts", "start, then end")
    elif "length" in columns:
        texts, factor = columns["length"]
        none = "0" if _kind(next(filter(None, texts), "0")) == "number" else "0s"
        lengths, _ = _column(source, ([text or none for text in texts], factor or 1.0), numbers)
        end = start + lengths
    label = columns["label"][0] if "label" in columns else [""] * len(rows)
    notes = ("its times state no zone; taken as UTC",) if clock == "local" else ()
    rows_of = zip(start.tolist(), end.tolist(), label, strict=True)
    return "times", list(rows_of), clock, notes


_MARKS: tuple[tuple[re.Pattern[str], Callable[[Source], _Read]], ...] = (
    (re.compile(r'"__REALTIME_TIMESTAMP"'), _journal),
    (
        re.compile(r'"(?:involvedObject|regarding)"\s*:|"kind"\s*:\s*"(?:EventList|Event)"'),
        _kubernetes,
    ),
    (re.compile(r"\bgc \d+ @\d+\.\d+s \d+%: "), _gctrace),
    (
        re.compile(
            r"GC\(\d+\) |Safepoint \"|application threads were stopped: |\]\s*Using "
            r"(?:G1|Serial|Parallel|Shenandoah|The Z|Epsilon|Concurrent Mark)|"
            r"^[^\n]*?\d[.,]\d+: \[(?:Full )?GC\b|^\[(?:Full )?GC\b|CommandLine flags: ",
            re.MULTILINE,
        ),
        _jvm,
    ),
    (
        re.compile(
            r"^ *1\) +1\) \(integer\) |^\d+\n1\d{9}\n\d+\n|^[ \t]*+\[\[\d+,\s*+1\d{9},",
            re.MULTILINE,
        ),
        _slowlog,
    ),
)
