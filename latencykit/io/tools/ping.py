"""ping and ioping: round trips of packets, and of requests to a disk.

ping of iputils, BusyBox, BSD and macOS, and Windows; ``-D`` adds the time of the reply. ioping's
lines, its JSON (``-J``), and its raw statistics (``-p``, ``-B``).
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np

from latencykit._text import format_items
from latencykit.core.run import Run
from latencykit.core.samples import Samples
from latencykit.core.summary import Summary
from latencykit.io import build, json_text
from latencykit.io.source import Confidence, Data, Head, ReadOptions, Source
from latencykit.io.text_reports import certain, fact, has_match, plain
from latencykit.units import parse_duration

# Words differ by language: "icmp_seq=1 ttl=52 temps=9,85 ms", "Bytes=32 Zeit<1ms TTL=52".
_REPLY = re.compile(
    r"^(?:\[(\d+\.\d+)\] )?.{0,200}?\b[^\W\d]\w{0,30}=(\d+).{0,99}?\b[^\W\d]{1,30}([=<]) {0,9}"
    r"(-?\d+(?:[.,]\d+)?) ?(ms|us|usec|sec|s|m)\b(.*)$",
    re.MULTILINE,
)
_SENT = re.compile(
    r"\b(\d+) packets transmitted, (\d+) (?:packets )?received|Sent = (\d+), Received = (\d+)"
    r"|^[ \t]*(\d+) [^\d\n,]+, (\d+) [^\d\n,]+, (?:\+\d+ [^\d\n,]+, )?[\d.,]+ ?%"
    r"|: [^\W\d]+ = (\d+), [^\W\d]+ = (\d+), [^\W\d]+ = \d+",
    re.MULTILINE,
)
_BEGIN = re.compile(
    r"^[ \t]*(?:H?PING|Pinging) \S|^[^=\n]{0,200}[ \t]\d+ [^\W\d][^=\n]{0,60}:[ \t]*$", re.MULTILINE
)  # what Windows says in any language ends in "32 bytes of data:"
_TARGET = re.compile(
    r"^[ \t]*--- (\S+) h?ping statistic"
    r"|^[^\n]{0,80}?((?:\d{1,3}\.){3}\d{1,3}|[\da-f]{1,4}:[\da-f:]{2,40})[^\n]{0,40}:\n"
    r"[^\n=]{1,40}: [^\W\d]+ = \d+, ",
    re.MULTILINE,
)
_DUPLICATES = re.compile(r"received, \+\d+ duplicates")
_LOST = re.compile(r"Request time(?:out for icmp_seq|d out)|no answer yet for icmp_seq")
_PING_STATS = re.compile(r"min/avg/max(?:/(?:mdev|stddev))? = ((?:[\d.,]+/){2,3}[\d.,]+) ms")
_UNREACHABLE = re.compile(
    r"^(?:\[[\d.]+\] )?From .*(?:Unreachable|exceeded)|^Reply from .*unreachable",
    re.MULTILINE | re.IGNORECASE,
)
_CUT = (
    "the closing statistics are missing: the run was cut short, lost packets are those it reported"
)
_PING_HINT = "the single replies are not in it, as with -q; they would show the distribution"
_MS = r"[^\W\d]+ = (\d+(?:[.,]\d+)?) ?ms"
_WINDOWS_STATS = re.compile(rf"\b{_MS}, {_MS}, {_MS}")
_REQUEST = re.compile(r"request=\d+ time=([\d.]+) (\S+)(.*)$", re.MULTILINE)
_IOPING_STATS = re.compile(r"min/avg/max/mdev = ([^\n]+)")
_IOPING_COUNT = re.compile(r"^(\d+(?:\.\d+)?) ?([kMG]?) requests completed", re.MULTILINE)
_IOPING_RAW = re.compile(r"\d{1,18}(?: \d{1,18}){9}")
_IOPING = Run(tool="ioping", measure="service", corrected="none", connections=1, unit="ns")
_IOPING_HINT = (
    "the single requests were not printed (-q, -B); without that ioping prints the distribution"
)


_PING = re.compile(
    r"^(?:PING|Pinging) \S+|\b\d+ bytes from .*icmp_seq=\d+ .*time=[\d.]+ ms|"
    r"=\d+ [^\W\d]+[=<] ?\d+ ?ms? TTL=\d|"
    r"^[^\n:]{0,80}\b[Pp]ing\b[^\n]{0,80}:\n[^\n:]{1,40}: [^\W\d]+ = \d+, |" + _PING_STATS.pattern,
    re.MULTILINE,
)


def read_ping(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every reply, one series per target; lost packets are counted apart."""
    text = plain(source.text())
    starts = [match.start() for match in _BEGIN.finditer(text)]
    targets: dict[str, str] = {}
    for begin, end in pairwise([0, *starts[1:], len(text)]):
        target = _TARGET.search(text, begin, end)
        name = "" if target is None else target[1] or target[2]
        targets[name] = targets.get(name, "") + text[begin:end]
    if len(targets) < 2:
        return _replies(text, options)
    return {
        name: data for name, part in targets.items() for data in _replies(part, options).values()
    }


def _replies(text: str, options: ReadOptions) -> dict[str, Data]:
    """The replies of one target, or the closing statistics."""
    rows = _REPLY.findall(text)
    single = [row for row in rows if "DUP!" not in row[5]]
    if len(_SENT.findall(text)) == 1 and _DUPLICATES.search(text):  # not marked by macOS
        single = list({row[1]: row for row in reversed(single)}.values())[::-1]
    sent, unreachable = _SENT.findall(text), len(_UNREACHABLE.findall(text))
    notes = []
    if len(rows) > len(single):
        count = format_items(len(rows) - len(single), "duplicate reply", "duplicate replies")
        notes.append(f"{count} left out")
    if any(row[2] == "<" for row in single):
        notes.append("times printed as below a bound are taken at that bound")
    received = None
    if sent:
        counts = [[int(number) for number in row if number] for row in sent]
        sent_count, received = (sum(column) for column in zip(*counts, strict=True))
        lost = sent_count - received
        unreachable = min(unreachable, max(lost, 0))
        late = max(lost - unreachable, 0)
    else:
        late = len(_LOST.findall(text))
        notes.append(_CUT)
    spans = [int(span) for span in re.findall(r"packet loss, time (\d+)ms", text)]
    run = Run(
        tool="ping", version=fact(text, r"ping from (\S+ \S+)", str), loop="open",
        measure="service", corrected="schedule", connections=1, failed=unreachable, timeouts=late,
        duration=sum(spans) / 1e3 if spans else None, unit="ms",
        notes=tuple(notes) if single else (),
    )  # fmt: skip
    if not single:
        stats, windows = _PING_STATS.findall(text), _WINDOWS_STATS.findall(text)
        if received and not (stats or windows):  # without the line of times
            return {"": Summary({}, {}, received, "ns", run.with_notes(_PING_HINT))}
        if received == 0 or not (stats or windows):
            none = {"duration": np.zeros(0, np.int64)}
            return build.samples_of(none, run, options) if late else {}
        names = ["min", "mean", "max", "std"] if stats else ["min", "max", "mean"]
        cells = [row.split("/") for row in stats] or windows
        numbers = ([build.nanoseconds(x.replace(",", "."), "ms") for x in row] for row in cells)
        blocks = [dict(zip(names, row, strict=False)) for row in numbers]
        named = blocks[0]
        if len(blocks) > 1:
            weights = [row[1] for row in counts if row[1]] if sent else []
            together = len(weights) == len(blocks)
            named = {"min": min(b["min"] for b in blocks), "max": max(b["max"] for b in blocks)}
            if together:
                total = sum(n * b["mean"] for n, b in zip(weights, blocks, strict=True))
                named["mean"] = total / sum(weights)
            run = run.with_notes(f"{len(blocks)} closing statistics are added up")
        return {"": Summary(named, {}, received, "ns", run.with_notes(_PING_HINT))}
    # Windows in Spanish has "m" for ms
    unit = (build.unit_in(single[0][4]) if single[0][4] != "m" else "ms") or "ms"
    cells = [float(row[3].replace(",", ".")) for row in single]
    duration = build.nanoseconds_of(cells, unit)
    ends = np.array([float(row[0] or "nan") for row in single])
    travelled = np.rint(np.maximum(duration, 0)).astype(np.int64)
    start = None if np.isnan(ends).any() else build.whole_nanoseconds(ends, "s") - travelled
    given = {"duration": duration, "start": start}
    return build.samples_of(given, run.replace(unit=unit), options)


def sniff_raw(head: Head) -> Confidence:
    """Recognise lines of ten whole numbers that agree with each other as ioping's do."""
    lines = [line.strip() for line in head.lines if line.strip()]
    if not lines or not all(map(_IOPING_RAW.fullmatch, lines)):
        return certain(match=False)
    count, busy, _, _, low, mean, high, _, total, span = map(int, lines[0].split())
    ordered = low <= mean <= high and count <= total and busy <= span
    return certain(ordered and abs(count * mean - busy) <= count and count)


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every request but warm-up, too slow and too fast ones, as ioping's sums do."""
    text = source.text()
    rows = _REQUEST.findall(text)
    good = [row for row in rows if not re.search(r"\((?:warmup|too slow|too fast)\)", row[2])]
    run = _IOPING
    generated = r"^generated \S+(?: (?:k|M|G))? requests in ([\d.]+ \S+),"
    span = fact(text, generated, parse_duration)
    busy = fact(text, r"requests completed in ([\d.]+ \S+),", parse_duration)
    if span is not None and busy is not None:
        loop = "paced" if span > 2 * busy else "closed"
        run = run.replace(loop=loop, duration=round(span / 1e9, 9))
    if len(good) < len(rows):
        number = format_items(len(rows) - len(good), "request")
        run = run.with_notes(f"{number} marked as warm-up, too fast or too slow left out")
    if good:
        values = [parse_duration(f"{number}{unit}") for number, unit, _ in good]
        return {"": Samples(duration=np.round(values, 3), run=run)}
    stats = _IOPING_STATS.search(text)
    if stats is None:
        return {}
    numbers = [round(parse_duration(part), 3) for part in stats[1].split(" / ")]
    values_by_name = dict(zip(("min", "mean", "max", "std"), numbers, strict=False))
    completed = _IOPING_COUNT.search(text)
    count = None
    if completed:
        count = round(float(completed[1]) * {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[completed[2]])
    return {"": Summary(values_by_name, {}, count, "ns", run.with_notes(_IOPING_HINT))}


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every request; the time stamp is the end of it."""
    records = [row for row in json_text.load(source) if isinstance(row, dict)]
    requests = [row for row in records if "io" in row]
    closing: dict[str, Any] = next((row for row in records if "stat" in row), {})
    run = _IOPING.replace(unit_from="format")
    load, stat = closing.get("load", {}), closing.get("stat", {})
    if load.get("time"):
        loop = "paced" if load["time"] > 2 * stat.get("time", 0) else "closed"
        run = run.replace(loop=loop, duration=load["time"] / 1e9, achieved=load.get("iops"))
    good = [row for row in requests if not row["io"].get("ignored")]
    if len(good) < len(requests):
        number = format_items(len(requests) - len(good), "request")
        run = run.with_notes(f"{number} marked as ignored (warm-up) left out")
    if not good:
        stats = {name: float(value) for name, value in build.statistics_in(stat)[1].items()}
        summary = Summary(stats, {}, stat.get("count"), "ns", run.with_notes(_IOPING_HINT))
        return {"": summary} if stats else {}
    durations, stamps = (
        [json_text.entry(row, path, source, (int, float)) for row in good]
        for path in ("io.time", "timestamp")
    )
    duration = np.array(durations, np.int64)
    given = {"duration": duration, "start": build.whole_nanoseconds(stamps, "s") - duration}
    return build.samples_of(given, run, options)


def read_raw(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read lines of raw statistics, one per period; together they are one summary."""
    rows = []
    for number, line in enumerate(source.text().splitlines(), 1):
        if _IOPING_RAW.fullmatch(line.strip()):
            rows.append([int(part) for part in line.split()])
        elif line.strip():
            seen = "not a line of ioping -p"
            options.reject(source.corrupt(number, seen, "ten whole numbers"))
    if not rows:
        return {}
    table = np.array(rows, np.float64)
    count, total = int(table[:, 0].sum()), float(table[:, 1].sum())
    low, high = float(table[:, 4].min()), float(table[:, 6].max())
    stats = {"min": low, "mean": round(total / max(count, 1), 3), "max": high}
    if len(rows) == 1:
        stats["std"] = float(table[0, 7])
    seconds = float(table[:, 9].sum()) / 1e9
    run = _IOPING.replace(unit_from="format", duration=seconds, notes=(_IOPING_HINT,))
    return {"": Summary(stats, {}, count, "ns", run)}


FORMATS = {
    "ping": (has_match(_PING, without="ioping statistics"), read_ping),
    "ioping": (
        has_match(r"(?:<<<|>>>|from|to) .*: request=\d+ time=|ioping statistics ---"),
        read_text,
    ),
    "ioping-json": read_json,
    "ioping-raw": (sniff_raw, read_raw),
}
