"""What is recognised of the lines of a log that no preset knows, and the pattern that reads them.

A refusal shows both. Where each line has a method, a status and one duration with its unit, the
pattern is beyond doubt: `latencykit.io.tools.request_lines` reads the log by it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from latencykit._text import option
from latencykit.io.raw.cells import latency_columns
from latencykit.io.source import Confidence, Head

ESCAPES = re.compile(r"\x1b\[[\d;]*m")  # colours of a terminal
_TRIED = 50  # lines
_TIMES = (
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[-+]\d\d:?\d\d)?",
    r"\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [-+]\d{4}",
    r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d(?:\.\d+)?",
)
_NUMBER = re.compile(
    r"(?<![\w.:/+-])(?:\d{1,9}m)?\d{1,18}(?P<point>\.\d+)?"
    r"(?P<unit> ?(?:[nuµμm]?s|[num]?secs?|(?:nano|micro|milli)?seconds?))?(?![\w.:/%])"
)
_STATUS = re.compile(r"(?<=[\s=\"|(:\[])[1-5]\d\d(?=[\s\"|,;)\]}]|$)(?! (?:[nuµμm]?s|\w?i?B)\b)")
_STATUS_NAME = re.compile(r"(?i)(?:stat|code|resp)\w{0,9}\W{1,3}$")
# what stands before a value and goes with it: `status=`, `"latency": `, `in`, `|`
_LABEL = re.compile(r"(?:[\w.-]{0,40}[\"']?[=:][\"'\[(]?|[\"'|(\[>-]{1,9}|(?<!\S)[a-z]{1,20})$")
_METHOD = re.compile(r"(?<!\w)(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)(?!\w)")
_NAMED = re.compile(rf"\s*([A-Za-z]\w{{0,40}}+)(?:\s++|\s*+[:=]\s*+){_NUMBER.pattern}\s*")
_STATUSES = {499, *map(int, HTTPStatus)}


def hint_of(lines: Sequence[str]) -> str:
    """Return what of a log is recognised, and a pattern that would read it; else nothing."""
    found, pieces = _proposed(lines)
    seen = ", ".join(f"{name.partition('_')[0]} {text}" for name, text in found.items())
    seen = f"it has a {seen.replace('end', 'time', 1) if 'end' in found else seen}"
    latency = next((text for name, text in found.items() if name.startswith("latency")), "")
    if latency:
        unit = "" if latency[-1].isalpha() or "latency" not in found else f" {option('unit')} s"
        pattern = "^" + "".join(f".*?{piece}" for piece in pieces)
        given = [line for line in lines[:_TRIED] if line.strip()]
        named = [_NAMED.fullmatch(line) for line in given]
        if all(named) and len({match[1] for match in named if match}) > 1:
            return ""  # parts of requests, one per line: of curl, of bash's time
        matched = rows_of(re.compile(_linear(pieces), re.MULTILINE), "\n".join(given))
        if len(matched) < min(3, len(given) / 2) or re.match(
            r"\s*(?:[{<]|\[(?!\d+[/-]))", given[0]
        ):
            return ""  # a report, no log
        return f"{seen}: try {option('pattern')} '{pattern}'{unit}"
    return f"{seen}, but no latency; {option('pattern')} states where one is" * ("end" in found)


def sniff_requests(head: Head) -> Confidence:
    """Recognise lines that each have a method, one duration with its unit, and a status."""
    lines = _requests(head)
    if not lines or re.match(r"\s*(?:\{|<[!\w])", lines[0]):
        return Confidence.NO
    found, pieces = _proposed(lines)
    spans = [sum(bool(m["unit"]) for m in _NUMBER.finditer(line)) for line in lines]
    if not {"latency", "status"} <= set(found) or max(spans) > 1:
        return Confidence.NO
    status = list(re.compile(_linear(pieces)).groupindex).index("status")
    rows = rows_of(re.compile(_linear(pieces), re.MULTILINE), "\n".join(lines))
    sure = len(rows) == sum(spans) and all(int(row[status]) in _STATUSES for row in rows)
    return Confidence.GENERIC if sure else Confidence.NO


def pattern_of(head: Head) -> str:
    """Return the pattern of lines that `sniff_requests` recognises."""
    return _linear(_proposed(_requests(head))[1])


def rows_of(pattern: re.Pattern[str], text: str) -> list[tuple[str, ...]]:
    """Return the texts of the named groups of each line that matches."""
    rows: list[Any] = pattern.findall(ESCAPES.sub("", text))
    if pattern.groups == 1:
        return [(cell,) for cell in rows]
    places = [k - 1 for k in pattern.groupindex.values()]
    if len(places) == pattern.groups:
        return rows
    return [tuple(row[k] for k in places) for row in rows]


def _requests(head: Head) -> list[str]:
    lines = (ESCAPES.sub("", line[:2000]) for line in head.lines[:_TRIED])
    return [line for line in lines if _METHOD.search(line)]


def _linear(pieces: Sequence[str]) -> str:
    """A pattern that takes time in proportion to a line: what matched is not tried again."""
    return "^" + "".join(f"(?>.*?{piece})" for piece in pieces)


def _proposed(lines: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """What is recognised in the line that has most of it, and the pattern of each part in order."""
    # A part's label goes with it unless more lines match without.
    lines = [ESCAPES.sub("", line[:2000]) for line in lines[:_TRIED]]
    parts = [(line, _parts_of(line)) for line in lines]
    line, found = max(parts, key=lambda part: len(part[1]), default=("", {}))
    labelled, bare, at = [], [], 0
    for name, match in sorted(found.items(), key=lambda part: part[1].start()):
        before = line[at : match.start()]
        label = _LABEL.search(before.rstrip())
        blanks = "[ \\t]*" if before[-1:].isspace() else ""
        span = match.groupdict().get("unit") or ""
        cell = r"\d[\w.]*s" if span else r"\d[\d.]*"
        cell = r"\d[\d.]* (?:[nuµm]?s(?:ecs?)?|\w*seconds?)\b" if " " in span else cell
        cell = r"\d{3}\b" if name == "status" else match.re.pattern if name == "end" else cell
        bare.append(("" if name == "end" else r"(?<![\w.])") + f"(?P<{name}>{cell})")
        labelled.append(f"{re.escape(label[0])}{blanks}(?P<{name}>{cell})" if label else bare[-1])
        at = match.end()
    text = "\n".join(lines)
    patterns = [re.compile(_linear(way), re.MULTILINE) for way in (labelled, bare)]
    less = len(rows_of(patterns[0], text)) < len(rows_of(patterns[1], text))
    return {name: match[0].strip() for name, match in found.items()}, bare if less else labelled


def _parts_of(line: str) -> dict[str, re.Match[str]]:
    """What of a line is recognised: time, latency, status."""
    # The latency is the first number with a latency's name, else the last one with a unit, else the
    # last that looks like nginx's seconds.
    time = next(filter(None, (re.search(like, line) for like in _TIMES)), None)
    found = {"end": time} if time else {}
    ranked = []
    for match in _NUMBER.finditer(line, time.end() if time else 0):
        before = line[: match.start()]
        label = re.search(r"[\w.-]{1,40}$", before.rstrip("=:\"' ")) if before else None
        named = latency_columns([label[0]])[0] if label else []
        seconds = len(match["point"] or "") >= 4 and before[-1:] in "= "
        rank = 3 if named else 2 if match["unit"] else 1 if seconds else 0
        unit = named[0].unit if named and not match["unit"] else None
        if rank:
            at = -match.start() if rank == 3 else match.start()
            ranked.append((rank, at, f"latency_{unit}" if unit else "latency", match))
    ranked.sort(key=lambda item: item[:2])
    found |= {name: match for *_, name, match in ranked[-1:]}
    taken = {at for match in found.values() for at in range(match.start(), match.end())}
    states = [match for match in _STATUS.finditer(line) if match.start() not in taken]
    sure = [match for match in states if _STATUS_NAME.search(line[: match.start()][-15:])]
    states = sure or [match for match in states if int(match[0]) in _STATUSES]
    return found | ({"status": states[0]} if states else {})
