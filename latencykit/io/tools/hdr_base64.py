"""Encoded HdrHistograms in whatever holds them: base64 in JSON, logs or alone, and their bytes.

HdrHistogram's ports print a histogram as base64 that begins with ``HIST`` (``DHIST`` for doubles),
which services log and tools put into their JSON. A payload states its length, so one that is
wrapped over lines, or followed by another, is known by that.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator

from latencykit._text import printable
from latencykit.core.run import Run
from latencykit.errors import CorruptInputError
from latencykit.hdr.payload import COMPRESSED, DOUBLE, DOUBLE_COMPRESSED, V0, V1, V2
from latencykit.io import json_text
from latencykit.io.build import histogram_of_payload, histograms_found, unique_name, unit_in
from latencykit.io.raw.cells import named
from latencykit.io.source import Confidence, Data, Head, ReadOptions, Source

_BLOB = re.compile(r"""D?HIST(?!OG)[^\s"',;:<>=\\]{16,}=*""")  # not the word HISTOGRAM
_MORE = re.compile(r"(?:[ \t]*\n[ \t]*[A-Za-z0-9+/]+=*)*")  # lines of 64 or 76 characters
_COOKIES = (b"\x1c\x84\x93", b"\x0c\x72\x12")
_DOUBLES = {DOUBLE & ~0xF0, DOUBLE_COMPRESSED & ~0xF0}
_KINDS = {V0, V1, V2, *COMPRESSED, *_DOUBLES}
_JSON = re.compile(r'\s*(?:\{\s*["}]|\[\s*[\[{"])')
_LABEL = re.compile(r"""([^\W\d][^,;:="'\s]*(?: [^,;:="'\s]+)*)["']?\s*[:=]?\s*["']?$""")
_LEVEL = re.compile(r"^(?:TRACE|DEBUG|INFO|WARN(?:ING)?) +", re.IGNORECASE)
_UNIT_KEYS = ("unit", "units", "timeunit", "time_unit", "latency_unit")

_Found = tuple[str, int, str, str | None]  # label, line, payload, unit


def _kind(begin: bytes) -> int:
    """The cookie that a payload begins with, without the bits of its width."""
    return int.from_bytes(begin[:4], "big") & ~0xF0


def _begin(text: str) -> bytes:
    """The first bytes of base64, whatever follows them."""
    valid = next(iter(re.findall(r"^[A-Za-z0-9+/]{4,32}", text)), "")
    valid = valid[: len(valid) - (len(valid) % 4 == 1)]
    return base64.b64decode(valid + "=" * (-len(valid) % 4))


def _blobs(text: str, at: int = 0) -> Iterator[tuple[re.Match[str], str]]:
    """Payloads of a text, and where each begins."""
    while (match := _BLOB.search(text, at)) is not None:
        at = match.end()
        if _kind(_begin(match[0])) not in _KINDS:
            continue
        # as long as it announces
        run, chars = match[0], -(-_bytes_of(_begin(match[0])) // 3) * 4
        if 0 < len(run) < chars - 2 and (more := _MORE.match(text, at)):
            run += re.sub(r"\s", "", more[0])
            at = more.end()
        if 0 < chars < len(run) and at == match.end() and _kind(_begin(run[chars:])) in _KINDS:
            run, at = run[:chars], match.start() + chars  # the next one follows at once
        elif chars > 0:
            run = run.rstrip("=") + "=" * (-len(run.rstrip("=")) % 4)
        yield match, run


def _bytes_of(begin: bytes) -> int:
    """The length that a payload announces, in bytes; 0 where its version states none."""
    ahead = 16 if _kind(begin) in _DOUBLES else 0
    kind = _kind(begin[ahead:])
    length = int.from_bytes(begin[ahead + 4 : ahead + 8], "big", signed=True)
    if kind in COMPRESSED:
        return ahead + 8 + length
    return ahead + 40 + length if kind in (V1, V2) else 0


def _in_text(text: str) -> Iterator[_Found]:
    """Payloads of lines, each with the words that stand before it."""
    line = counted = 0
    for match, payload in _blobs(text):
        start = max(text.rfind("\n", 0, match.start()) + 1, counted)
        line += text.count("\n", counted, match.start())
        before, counted = text[start : match.start()], match.end()
        label = _LABEL.search(before[-80:])
        name = _LEVEL.sub("", label[1]) if label else ""
        yield name, line + 1, payload, named(name).unit


def _in_json(text: str, source: Source) -> Iterator[_Found]:
    """Payloads of documents one after the other, each with the keys that lead to it."""
    seen = line = 0
    for value in json_text.values(text, source):
        for name, blob, unit in _strings(value, (), None):
            where = text.find(blob[:24], seen)
            line += text.count("\n", seen, max(where, seen))
            seen = max(where, seen)
            yield name, line + 1, blob, unit


def _strings(
    value: object, path: tuple[str, ...], unit: str | None
) -> Iterator[tuple[str, str, str | None]]:
    """Payloads below a value: path, payload, and the unit that a key beside it states."""
    if isinstance(value, str):
        own = next((own_unit for key in path[::-1] if (own_unit := named(key).unit)), unit)
        for _, payload in _blobs(value):
            yield ".".join(path), payload, own
    elif isinstance(value, dict):
        stated = (unit_in(str(v)) for k, v in value.items() if k.lower() in _UNIT_KEYS)
        unit = next(filter(None, stated), unit)
        title = next((value[k] for k in ("name", "label", "tag", "operation") if k in value), None)
        inside = (*path, title) if isinstance(title, str) and (title,) != path[-1:] else path
        for key, inner in value.items():
            yield from _strings(inner, (*inside, key), unit)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner, path, unit)


def sniff(head: Head) -> Confidence:
    """Recognise a payload anywhere; a tool's own format that holds one is surer."""
    if head.data.startswith(_COOKIES):
        return Confidence.CERTAIN
    return Confidence.LIKELY if any(_blobs(head.text)) else Confidence.NO


def read(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read histogram after histogram, named by key or by the words before it."""
    if source.head.data.startswith(_COOKIES):
        raw, at, found = source.bytes(), 0, list[_Found]()
        while at < len(raw):  # one after the other
            size = _bytes_of(raw[at : at + 24])
            end = at + size if size > 0 else len(raw)
            found.append(("", 1, base64.b64encode(raw[at:end]).decode(), None))
            at = end
        texts = iter(found)
    else:
        text = source.text()
        texts = _in_json(text, source) if _JSON.match(text) else _in_text(text)
    series: dict[str, Data] = {}
    empty = 0
    for number, (label, line, payload, stated) in enumerate(texts, 1):
        unit, origin = options.resolve_unit("ns", "assumed")
        if stated:
            unit, origin = stated, "file"
        run = Run(tool="HdrHistogram", unit=unit, unit_from=origin)
        try:
            data = histogram_of_payload(payload, unit, run, source, label or f"line {line}")
        except CorruptInputError as error:
            hint = "--lenient skips it"
            options.reject(source.corrupt(line, error.seen, error.expected, hint))
            continue
        if data.count:
            series[unique_name(printable(label, 80) or f"histogram {number}", series)] = data
        else:
            empty += 1
    return histograms_found(series, empty)


FORMATS = {"hdr-base64": (sniff, read)}
