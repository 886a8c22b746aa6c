"""Real outputs, mutated but with their structure: near-valid input finds what random bytes do not.

Every mutation follows from a number and a sample alone.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import random
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import latencykit as lk
from latencykit import cli
from latencykit.core.consistency import contradiction
from latencykit.core.histogram_log import HistogramLog, interval_series
from latencykit.core.key_statistics import key_statistics
from latencykit.core.samples import Samples
from latencykit.core.summary import Summary
from latencykit.errors import LatencyKitError, ReaderError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["EXTREMES", "command_line", "laws", "library", "mutated", "samples", "structural"]

_ROOT = Path(__file__).parents[2]
_LARGEST = 12 << 10  # bytes of a sample; of longer ones the beginning, in whole lines
_NUMBER = re.compile(rb"(?<![\w.])-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_JSON = re.compile(rb"\s*[\[{]")

EXTREMES = (
    b"-1", b"-0.5", b"0", b"1e400", b"-1e400", b"1e308", b"1e-320", b"9" * 5000, b"nan", b"NaN",
    b"inf", b"-inf", b"Infinity",
    b"-9223372036854775808", b"9223372036854775807", b"9223372036854775808",
    b"18446744073709551615", b"9007199254740993",
    b"4294967296", b"1,234", b"1.2.3", b"", b"-", b"0x10", b"1_000", "٣".encode(), b"null",
    b"true",
    b'"x"', b"[]", b"{}",
)  # fmt: skip
_VALUES: tuple[Any, ...] = (
    None, True, False, -1, 0, 0.5, -(2**63), 2**63, 10**30, 1e308, float("nan"), float("inf"), "",
    "x", "1", "nan", [], {},
    [1], {"a": 1}, [[]], "\ud800", "9" * 5000,
)  # fmt: skip


def samples() -> list[tuple[str, str, bytes]]:
    """Name, suffix and bytes of every sample of the formats, the logs and the package's data."""
    found = []
    for expect in sorted((_ROOT / "tests/data/formats").glob("*/*/expect.json")):
        path = expect.parent / json.loads(expect.read_text())["file"]
        if path.is_file():
            found.append(path)
    found += sorted((_ROOT / "tests/data/hlog").glob("*/*.hlog"))
    own = (path for path in (_ROOT / "data").rglob("*") if path.suffix in (".hlog", ".csv", ".txt"))
    return [
        (str(path.relative_to(_ROOT)), path.suffix, _begin(path.read_bytes()))
        for path in [*found, *sorted(own)]
    ]


def _begin(data: bytes) -> bytes:
    if len(data) <= _LARGEST or not data.isascii() or _JSON.match(data):
        return data[: 8 * _LARGEST]
    return data[: data.rfind(b"\n", 0, _LARGEST) + 1] or data[:_LARGEST]


def structural(data: bytes, number: int) -> bytes:
    """A sample whose structure lies: of sizes, widths, documents, fields."""
    chance = random.Random(number)
    return STRUCTURAL[number % len(STRUCTURAL)](chance, data)


def mutated(number: int, sources: list[tuple[str, str, bytes]]) -> tuple[str, str, bytes]:
    """Name of the sample and of what was done to it, suffix, and bytes of a mutation."""
    chance = random.Random(number)
    name, suffix, data = chance.choice(sources)
    done = []
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        kinds = _KINDS + (_IN_JSON if _JSON.match(data) else _IN_ROWS)
        kind = chance.choice(kinds)
        if kind is _joined:
            data = _joined(chance, data, chance.choice(sources)[2])
        else:
            data = kind(chance, data)
        done.append(kind.__name__.strip("_"))
    return f"{name}:{'+'.join(done)}", suffix, data


# ------------------------------------------------------------ of any bytes


def _flipped(chance: random.Random, data: bytes) -> bytes:
    broken = bytearray(data)
    for _ in range(chance.choice((1, 2, 8)) if broken else 0):
        broken[chance.randrange(len(broken))] ^= 1 << chance.randrange(8)
    return bytes(broken)


def _overwritten(chance: random.Random, data: bytes) -> bytes:
    at = chance.randrange(len(data) + 1)
    new = bytes(chance.randrange(256) for _ in range(chance.randrange(1, 5)))
    return data[:at] + new + data[at + chance.randrange(5) :]


def _truncated(chance: random.Random, data: bytes) -> bytes:
    front = chance.random() < 0.8
    at = chance.randrange(len(data) + 1)
    return data[:at] if front else data[at:]


def _numbered(chance: random.Random, data: bytes) -> bytes:
    """One number, or all of one line, replaced by an extreme or by itself changed."""
    hits = list(_NUMBER.finditer(data))
    chosen = chance.sample(hits, min(len(hits), chance.choice((1, 1, 2, 5))))
    for hit in sorted(chosen, key=lambda one: -one.start()):
        own, zeros = hit[0], b"0" * chance.randrange(12)
        new = chance.choice((*EXTREMES, b"-" + own, own + zeros, own + own, own[:-1]))
        data = data[: hit.start()] + new + data[hit.end() :]
    return data


def _crlf(chance: random.Random, data: bytes) -> bytes:
    way = chance.choice((b"\r\n", b"\r", b"\r\r\n", b"\n\r\n", b"\r\n\r\n"))
    some = -1 if chance.random() < 0.8 else chance.randrange(1, 9)
    return data.replace(b"\n", way, some)


def _marked(chance: random.Random, data: bytes) -> bytes:
    mark = chance.choice((b"\xef\xbb\xbf", b"\xff\xfe", b"\n\n", b"\r\n", b" ", b"\0", b"# \xff\n"))
    return mark + data if chance.random() < 0.7 else data + mark


def _joined(chance: random.Random, data: bytes, other: bytes) -> bytes:
    return data + chance.choice((b"", b"\n")) + chance.choice((data, other))


def _sized(chance: random.Random, data: bytes) -> bytes:
    """One integer of a binary header replaced by a size that the file does not have."""
    width, order = chance.choice((1, 2, 4, 4, 8)), chance.choice(("little", "big"))
    at = chance.randrange(min(len(data), 4096) + 1)
    if chance.random() < 0.3:  # sizes also stand at the end
        at = max(0, len(data) - at)
    most = (1 << 8 * width) - 1
    size = chance.choice((most, most >> 1, (most >> 1) + 1, most >> 2, len(data) * 1000 & most, 0))
    return data[:at] + size.to_bytes(width, order) + data[at + width :]


def _repeated(chance: random.Random, data: bytes) -> bytes:
    """The whole document, many times."""
    most = max(2, (256 << 10) // max(len(data), 1))
    return chance.choice((b"", b"\n", b"\n\n", b"\r")).join([data] * chance.randrange(2, most + 1))


def _exchanged(chance: random.Random, data: bytes) -> bytes:
    """Two numbers exchanged, wherever they stand."""
    hits = list(_NUMBER.finditer(data))
    if len(hits) < 2:
        return data
    a, b = sorted(chance.sample(hits, 2), key=lambda one: one.start())
    return data[: a.start()] + b[0] + data[a.end() : b.start()] + a[0] + data[b.end() :]


# ------------------------------------------------------------ of lines


def _lines(
    change: Callable[[random.Random, list[bytes]], None], name: str
) -> Callable[[random.Random, bytes], bytes]:
    def changed(chance: random.Random, data: bytes) -> bytes:
        lines = data.split(b"\n")
        change(chance, lines)
        return b"\n".join(lines)

    changed.__name__ = name
    return changed


def _swap(chance: random.Random, lines: list[bytes]) -> None:
    a, b = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]


def _double(chance: random.Random, lines: list[bytes]) -> None:
    at = chance.randrange(len(lines))
    lines[at:at] = [lines[at]] * chance.choice((1, 1, 2, 50))


def _drop(chance: random.Random, lines: list[bytes]) -> None:
    at = chance.randrange(len(lines))
    del lines[at : at + chance.choice((1, 1, 2, 10))]


def _blank(chance: random.Random, lines: list[bytes]) -> None:
    lines[chance.randrange(len(lines))] = chance.choice(
        (b"", b"\r", b" ", b"\t", b",", b"#", b"\x85", b"\x0c", b"\xe2\x80\xa8")
    )


def _widen(chance: random.Random, lines: list[bytes]) -> None:
    """One row becomes very wide, and short rows follow it."""
    at = chance.randrange(len(lines))
    sep = max((b",", b"\t", b";", b"|", b" "), key=lines[at].count)
    short = min(filter(None, lines), key=len, default=b"1")[:100]
    lines[at] += (sep + b"1") * chance.choice((10, 1_000, 30_000))
    lines += [short] * chance.choice((0, 100, 2_000))


STRUCTURAL = (_sized, _repeated, _exchanged, _lines(_widen, "widened"))
_KINDS = (
    *STRUCTURAL,
    _flipped, _overwritten, _truncated, _numbered, _numbered, _numbered, _crlf, _marked, _joined,
    _lines(_swap, "swapped"), _lines(_double, "doubled"), _lines(_drop, "dropped"),
    _lines(_blank, "blanked"),
)  # fmt: skip

# ------------------------------------------------------------ of tables


def _columns(chance: random.Random, data: bytes) -> bytes:
    """One column of a table dropped, doubled, emptied, or exchanged with another one."""
    lines = data.split(b"\n")
    head = chance.choice(lines[:5])
    sep = max((b",", b"\t", b";", b"|", b" "), key=head.count)
    width = head.count(sep) + 1
    a, b, how = chance.randrange(width), chance.randrange(width), chance.randrange(4)
    for k, line in enumerate(lines):
        cells = line.split(sep)
        if len(cells) <= max(a, b):
            continue
        if how == 0:
            del cells[a]
        elif how == 1:
            cells.insert(a, cells[a])
        elif how == 2:
            cells[a], cells[b] = cells[b], cells[a]
        elif k:
            cells[a] = b""
        lines[k] = sep.join(cells)
    return b"\n".join(lines)


def _cell(chance: random.Random, data: bytes) -> bytes:
    """One word replaced by an extreme, quoted, or emptied."""
    words = list(re.finditer(rb"[^\s,;:|=\"]+", data))
    if not words:
        return data
    hit = chance.choice(words)
    own = hit[0]
    changed = (b'"' + own, b'"' + own + b'"', own * 2, own.upper(), b"\xff" + own)
    new = chance.choice((*EXTREMES, *changed))
    return data[: hit.start()] + new + data[hit.end() :]


_IN_ROWS = (_columns, _columns, _cell, _cell)

# ------------------------------------------------------------ of JSON


def _record(chance: random.Random, data: bytes) -> bytes:
    """Drop, rename, double or retype one value of a document or of one line of objects."""
    lines = data.split(b"\n")
    at = chance.randrange(len(lines))
    for begin, text in ((None, data), (at, lines[at])):
        try:
            record = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if not isinstance(record, (dict, list)) or not record:
            continue
        _changed(chance, record)
        if begin is None:
            return json.dumps(record, indent=chance.choice((None, 1))).encode()
        lines[begin] = json.dumps(record).encode()
        return b"\n".join(lines)
    return data


def _changed(chance: random.Random, record: Any) -> None:
    places: list[tuple[Any, Any]] = []
    waiting = [record]
    while waiting and len(places) < 5000:
        inner = waiting.pop()
        keys = list(inner) if isinstance(inner, dict) else range(min(len(inner), 50))
        places += [(inner, key) for key in keys]
        values = (inner[key] for key in keys)
        waiting += [value for value in values if value and isinstance(value, (dict, list))]
    for inner, key in chance.sample(places, min(len(places), chance.choice((1, 1, 2)))):
        how = chance.randrange(5)
        try:
            if how == 0:
                del inner[key]
            elif how == 1 and isinstance(inner, dict):
                value, other = inner.pop(key), chance.choice(list(inner))
                inner[chance.choice((f"{key}x", "", str(key).upper(), other))] = value
            elif how == 2 and isinstance(inner, list):
                inner.insert(key, inner[key])
            else:
                inner[key] = chance.choice(_VALUES)
        except (KeyError, IndexError):
            pass  # an earlier change took it away


_IN_JSON = (_record, _record, _record, _record)

# ------------------------------------------------------------ what must hold

_PERCENTILES = [0.0, 25.0, 50.0, 90.0, 99.0, 99.999, 100.0]
_ROUNDING = 0.06  # as coarsely as tools print
_LEAST = 1e7  # ns
_COMMANDS: tuple[tuple[str, ...], ...] = (
    ("summary", "--format", "json"),
    ("summary", "--format", "json", "--lenient"),
    ("summary", "--merge"),
    ("check", "--format", "json", "--slo", "99=20ms,max=1s,mean=2ms,failed=1%"),
    ("diagnose", "--format", "json", "--rate", "500"),
    ("fanout", "--format", "json", "-n", "1,10,100"),
    ("load", "--format", "json"),
    ("summary", "--format", "json", "--interval", "10s"),
    ("compare", "--format", "json"),
    ("convert", ".json"),
    ("convert", ".csv"),
    ("convert", ".hgrm"),
    ("convert", ".hlog"),
)


def library(path: Path, number: int) -> None:
    """Read a file and ask the library for everything: only our own errors, and no nonsense."""
    try:
        found = lk.read_all(path, lenient=number % 5 == 0, unit="ms" if number % 7 == 0 else None)
    except ReaderError:
        raise
    except LatencyKitError as error:
        said = str(error)
    else:
        said = ""
    if said:
        assert str(path) in said, f"the message names no file: {said}"
        assert said.isprintable(), f"the message is not one line: {said!r}"
        return
    for series in list(found.values())[:8]:
        with contextlib.suppress(LatencyKitError):
            laws(series)
        with contextlib.suppress(LatencyKitError):
            repr(series)
            if number % 8 == 0:
                series._repr_html_()
        with contextlib.suppress(LatencyKitError):
            if number % 3 == 0:
                lk.diagnose(series)


def laws(series: Any) -> None:
    """Ask a series for what summaries and charts ask for: its numbers agree."""
    notes = series.run.notes
    assert all(note.isprintable() or "\n" not in note for note in notes), notes
    if isinstance(series, Summary):
        key_statistics(series)
        values = [value for _, value in sorted(series.reported_percentiles.items())]
        stats = {} if contradiction(series) else series.stats  # a note says which cannot be
        _ordered(values, stats.get("min"), stats.get("mean"), stats.get("max"))
        assert series.count is None or series.count >= 0
        return
    if isinstance(series, Samples):
        assert len(series.to_frame()) == len(series)
    histogram = series.histogram()
    key_statistics(histogram)
    assert (histogram.counts > 0).all()
    assert histogram.censored >= 0
    if not histogram.count:
        return
    histogram.to_frame()
    histogram.percentiles(_PERCENTILES)
    summary = histogram.summary()
    assert histogram.count == sum(histogram.counts.tolist())
    assert summary.count == histogram.requests
    # The last percentile of a list without a maximum may lie below the mean.
    open_end = "mean" in histogram.reported_stats and "max" not in histogram.reported_stats
    mean = None if contradiction(series) or open_end else histogram.mean  # else a note says so
    values = np.asarray(histogram.percentile(_PERCENTILES)).tolist()
    _ordered(values, histogram.min, mean, histogram.max)
    if isinstance(series, HistogramLog):
        total = histogram.count + histogram.censored
        assert interval_series(series, [99]).count.sum() == total


def _ordered(
    values: list[float], least: float | None, mean: float | None, most: float | None
) -> None:
    assert all(value >= 0 for value in values), f"percentiles below 0, or none: {values}"
    assert all(a <= b for a, b in itertools.pairwise(values)), f"percentiles fall: {values}"
    stated = [value for value in (least, mean, most) if value is not None]
    assert all(value >= 0 for value in stated), f"statistics below 0, or none: {stated}"
    for low, high in itertools.pairwise(stated):
        assert low <= high * (1 + _ROUNDING) + _LEAST, f"minimum, mean, maximum: {stated}"


def command_line(path: Path, number: int) -> None:
    """Run a command on a file: a status, one line of error or whole output, and valid JSON."""
    command, *options = _COMMANDS[number % len(_COMMANDS)]
    files = [str(path)] * (2 if command == "compare" else 1)
    if command == "convert":
        files, options = [*files, str(path.with_name("output" + options[0]))], []
    out, err = io.StringIO(), io.StringIO()
    status: Any = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            unit = ("--unit", "ms") if number % 7 == 0 else ()
            cli.main(["-q", command, *options, *files, *unit, "--jobs", "1"])
        except SystemExit as ended:
            status = ended.code or 0
    said = err.getvalue()
    assert status in (0, 1, 2), f"{command}: status {status}"
    if status == 2:
        assert said.startswith("latencykit: "), f"{command}: {said!r}"
        assert said.count("\n") == 1, f"{command}: {said!r}"
        assert not out.getvalue(), f"{command}: output beside an error"
        assert "is a bug in the reader" not in said, said
        assert "out of memory" not in said, said
    elif "json" in options:
        json.loads(out.getvalue(), parse_constant=_no_number)


def _no_number(text: str) -> None:
    raise AssertionError(f"{text} in JSON")
