"""What is fuzzed: each target takes any bytes, and only a `LatencyKitError` may come of them.

The first line of an input says how the rest is meant, so that a kept input can be read and written
by hand.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import json
import os
import shutil
import struct
import tempfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np

from latencykit.core.histogram_log import HistogramLog, interval_series, interval_tags
from latencykit.errors import LatencyKitError, PayloadError
from latencykit.hdr.payload import Payload, decode_rows, open_payload, open_payloads
from latencykit.hdr.write import encode
from latencykit.io import hlog
from latencykit.io.reading import detect, expand_tags, read_source
from latencykit.io.registry import builtin_formats
from latencykit.io.source import ReadOptions, Source
from tests.fuzz.mutations import laws

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["CORPUS", "TARGETS", "seeds"]

CORPUS = Path(__file__).parent / "corpus"
_DATA = Path(__file__).parents[1] / "data"
_SMALL = 2 << 10  # bytes of a seed: mutating larger ones is slow and finds little
_TOP = (1 << 63) - 1
_GOOD = b"HISTFAAAACV42pNpmSzMwMDAwgABzFCaEYh5f7hHMNh/gAicX8bIBABjHQWa"
_FORMATS = {one.name: one for one in builtin_formats()}
_PERCENTILES = [0.0, 25.0, 50.0, 90.0, 99.0, 99.999, 100.0]


def _one_in(n: int, data: bytes) -> bool:
    """Whether to do what is slow: always the same of one input, for a few of them."""
    return zlib.crc32(data) % n == 0


# ------------------------------------------------------------ the codec


def codec(data: bytes) -> None:
    """Open and decode a payload, alone and among others; write the result and read it back."""
    how, _, rest = data.partition(b"\n")
    try:
        texts = _MEANT[how](rest) if how in _MEANT else [data]
    except (IndexError, struct.error):
        return
    opened = [_alone(text) for text in texts]
    if None in opened:
        _refused(lambda: open_payloads([_GOOD, *texts]))
        return
    payloads = [payload for payload in opened if payload is not None]
    assert [tuple(one) for one in open_payloads(texts)] == [tuple(one) for one in payloads]
    decoded = [_decoded(payload) for payload in payloads]
    if None in decoded:
        _refused(lambda: decode_rows(payloads))
        return
    if all(payload.layout.joins(payloads[0].layout) for payload in payloads):
        together = decode_rows(payloads)
        for row, (_, index, counts) in enumerate(filter(None, decoded)):
            piece = slice(together[0][row], together[0][row + 1])
            assert np.array_equal(together[1][piece], index)
            assert np.array_equal(together[2][piece], counts)
    if _one_in(4, data):
        _written_and_read(payloads[0], *decoded[0][1:])


def _alone(text: bytes) -> Payload | None:
    try:
        return open_payload(text)
    except PayloadError:
        return None


def _decoded(payload: Payload) -> Any:
    try:
        indptr, index, counts = decode_rows([payload])
    except PayloadError:
        return None
    assert indptr.tolist() == [0, index.size]
    assert (counts > 0).all()
    assert (np.diff(index) > 0).all()
    assert not index.size or 0 <= index[0] <= index[-1] < payload.layout.slots
    assert sum(counts.tolist()) <= _TOP
    return indptr, index, counts


def _written_and_read(payload: Payload, index: Any, counts: Any) -> None:
    again = open_payload(encode(payload.buckets, index, counts, double=payload.layout.double))
    _, found, numbers = decode_rows([again])
    assert np.array_equal(again.buckets.high(found), payload.buckets.high(index))
    assert np.array_equal(numbers, counts)


def _refused(function: Callable[[], Any]) -> None:
    try:
        function()
    except PayloadError:
        return
    raise AssertionError("what is refused alone was taken among others")


def _rows(rest: bytes) -> list[bytes]:
    """Digits, width of a word, length of the first row; then the counts of two rows."""
    digits, word, first = rest[0] % 6, rest[1] % 4 * 2, rest[2]
    body = rest[3:]
    cookie = 0x1C849301 | word << 4 if word else 0x1C849313
    heads = (
        struct.pack(">Iiiiqqd", cookie, len(row), 0, digits, 1, _TOP, 1.0) + row
        for row in (body[:first], body[first:])
    )
    return [base64.b64encode(one) for one in heads]


def _squeezed(rest: bytes) -> list[bytes]:
    stream = zlib.compress(rest, 1)
    return [base64.b64encode(struct.pack(">Ii", 0x1C849314, len(stream)) + stream)]


_MEANT: dict[bytes, Callable[[bytes], list[bytes]]] = {
    b"bytes": lambda rest: [base64.b64encode(rest)],
    b"inflated": _squeezed,
    b"rows": _rows,
    b"texts": lambda rest: rest.split(b"\n")[:8],
}


# ------------------------------------------------------------ readers


def log(data: bytes) -> None:
    """Read an interval log strictly, leniently, at once and in pieces: the results must agree."""
    path = _file(data, ".hlog")
    facts = _facts(path)
    if facts is None:
        _facts(path, lenient=True)
    elif _one_in(4, data):
        assert _facts(path, lenient=True) == facts, (
            "a log without corruption reads otherwise leniently"
        )
        for name, value in (("KEEP", 0), ("AHEAD", 100)):
            with mock.patch.object(hlog, name, value):
                assert _facts(path) == facts, f"another {name} gives another log"


def _facts(path: Path, *, lenient: bool = False) -> str | None:
    """All that is read of a log; None where it is refused."""
    try:
        found = read_source(Source(path), ReadOptions(unit="none", lenient=lenient), "hlog")
        (one,) = found.values()
        assert isinstance(one, HistogramLog)
        series = interval_series(one, [50, 99])
    except LatencyKitError as error:
        _is_one_line(error, path)
        return None
    with contextlib.suppress(LatencyKitError):
        assert one.histogram().count == series.count.sum()
    arrays = (one.starts, one.lengths, series.count, series.max, series.values)
    return repr([*(array.tolist() for array in arrays), interval_tags(one), one.run.notes])


def sniff(data: bytes) -> None:
    """Read a file in the format of its first line, else as detected; use everything in it."""
    name, _, rest = data.partition(b"\n")
    named = _FORMATS.get(name.decode("latin-1"))
    path = _file(rest if named else data, named.suffixes[0] if named and named.suffixes else ".txt")
    chosen: str | None = named.name if named else None
    for lenient in (False, True)[: 1 + _one_in(4, data)]:
        try:
            chosen = chosen or detect(Source(path)).name
            found = read_source(Source(path), ReadOptions(lenient=lenient), chosen)
        except LatencyKitError as error:
            _is_one_line(error, path)
            continue
        for label, series in found.items():
            for part in expand_tags(label, series).values():
                with contextlib.suppress(LatencyKitError):
                    laws(part)
        return


def _is_one_line(error: LatencyKitError, path: Path) -> None:
    """Check that an error names the file, in a line that a terminal can show."""
    assert str(path) in str(error)
    assert str(error).isprintable()


_FOLDER = Path(
    tempfile.mkdtemp(
        prefix="latencykit-fuzz-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    )
)
atexit.register(shutil.rmtree, _FOLDER, ignore_errors=True)


def _file(data: bytes, suffix: str) -> Path:
    path = _FOLDER / f"input{suffix}"
    path.write_bytes(data)
    return path


TARGETS: dict[str, Callable[[bytes], None]] = {"codec": codec, "log": log, "sniff": sniff}


# ------------------------------------------------------------ what to begin with


def seeds(target: str) -> Iterator[bytes]:
    """Small real outputs, as inputs of a target; those that were kept come after them."""
    if target == "codec":
        for line in (_DATA / "payloads/goldens.jsonl").read_text().splitlines():
            text = json.loads(line)["base64"].encode()
            with contextlib.suppress(PayloadError):
                yield from _payload_seeds(text, open_payload(text))
    if target == "log":
        for path in sorted((_DATA / "hlog").glob("*/*.hlog")):
            head = path.read_bytes()[:_SMALL]
            yield head[: head.rfind(b"\n") + 1]
        yield b"".join(b"Tag=%c,%d.5,1.0,9.0,%s\n" % (97 + k % 2, k, _GOOD) for k in range(5))
        yield b"#[StartTime: 1441812279.474]\n" + b"".join(
            b"%d.5,1.0,9.0,%s\n" % (k, _GOOD) for k in range(5)
        )
    if target == "sniff":  # a case of each format, and of every second the name, too
        cases = sorted((_DATA / "formats").glob("*/*/expect.json"))
        for number, (name, case) in enumerate({one.parts[-3]: one for one in cases}.items()):
            path = case.parent / json.loads(case.read_text())["file"]
            if path.is_file():
                yield f"{name}\n".encode() * (number % 2) + path.read_bytes()[:_SMALL]
    yield from (path.read_bytes() for path in sorted(CORPUS.glob(f"{target}/*")))


def _payload_seeds(text: bytes, payload: Payload) -> Iterator[bytes]:
    raw = base64.b64decode(text)
    yield b"texts\n" + text
    yield b"bytes\n" + raw
    with contextlib.suppress(zlib.error):
        yield b"inflated\n" + zlib.decompress(raw[8:])
    if len(payload.body) < _SMALL:
        sizes = payload.buckets.digits, payload.layout.word // 2, min(len(payload.body) // 2, 255)
        yield b"rows\n" + bytes(sizes) + payload.body
