"""HdrHistogram payloads: every encoding that exists is decoded as the reference does, and written back."""

from __future__ import annotations

import base64
import importlib.util
import itertools
import json
import math
import pickle
import struct
import sys
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latencykit import hdr as codec
from latencykit._limits import Limits
from latencykit.core.buckets import HdrBuckets
from latencykit.errors import (
    InputTooLargeError,
    InvalidArgumentError,
    LatencyKitError,
    PayloadError,
    RowError,
)
from latencykit.hdr import payload as rows
from latencykit.hdr.payload import (
    Payload,
    Payloads,
    counts_length,
    decode_rows,
    open_payload,
    open_payloads,
    sum_of_rows,
)
from latencykit.hdr.write import encode
from latencykit.io.hlog import blocks_of_payloads

GOLDENS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data/payloads/goldens.jsonl").read_text().splitlines()
]
OTHER = encode(HdrBuckets(3), [5, 700], [3, 1])
HOUR = 3_600_000_000_000
TOP = (1 << 63) - 1
steady = settings(derandomize=True, deadline=None, max_examples=150)


# ------------------------------------------------------------ a second opinion, number by number


def varint(number: int) -> bytes:
    """ZigZag LEB128-64b9B of one number."""
    left = (number << 1 ^ number >> 63) & (1 << 64) - 1
    out = bytearray()
    while left > 127 and len(out) < 8:
        out.append(left & 127 | 128)
        left >>= 7
    return bytes([*out, left])


def scalar(body: bytes) -> list[tuple[int, int]]:
    """(index, count) of a V2 body."""
    at, index, found = 0, 0, []
    while at < len(body):
        value = 0
        for k in range(9):
            byte = body[at]
            at += 1
            value |= (byte if k == 8 else byte & 127) << 7 * k
            if byte < 128:
                break
        number = value >> 1 ^ -(value & 1)
        if number > 0:
            found.append((index, number))
        index += -number if number < 0 else 1
    return found


def body_of(index: list[int], counts: list[int]) -> bytes:
    """V2 counts as the reference writes them."""
    out, following = b"", 0
    for i, count in zip(index, counts, strict=True):
        gap = i - following
        out += (b"" if gap == 0 else varint(0 if gap == 1 else -gap)) + varint(count)
        following = i + 1
    return out or b"\0"


def header(
    length: int, *, cookie: int = 0x1C849313, digits: int = 3, lowest: int = 1,
    highest: int = HOUR, ratio: float = 1.0,
    offset: int = 0,
) -> bytes:  # fmt: skip
    return struct.pack(">Iiiiqqd", cookie, length, offset, digits, lowest, highest, ratio)


def plain(body: bytes, **fields: float) -> bytes:
    return header(len(body), **fields) + body


def v0(body: bytes, cookie: int = 0x1C849388) -> bytes:
    return struct.pack(">Iiqqq", cookie, 3, 1, HOUR, 77) + body


def envelope(stream: bytes, cookie: int = 0x1C849314, length: int | None = None) -> bytes:
    return struct.pack(">Ii", cookie, len(stream) if length is None else length) + stream


def squeezed(raw: bytes, cookie: int = 0x1C849314) -> bytes:
    return envelope(zlib.compress(raw), cookie)


def boxed(body: bytes = b"\x02", **fields: float) -> bytes:
    return squeezed(plain(body, **fields))


def doubled(
    raw: bytes, digits: int = 3, dynamic_range: int = 1 << 20, cookie: int = 0x0C72124F
) -> bytes:
    return struct.pack(">Iiq", cookie, digits, dynamic_range) + raw


def text(raw: bytes) -> bytes:
    return base64.b64encode(raw)


def pairs(payload: Payload) -> list[tuple[int, int]]:
    _, index, counts = decode_rows([payload])
    return list(zip(index.tolist(), counts.tolist(), strict=True))


def at_once(payloads: list[Payload]) -> list[list[tuple[int, int]]]:
    indptr, index, counts = decode_rows(payloads)
    assert [array.dtype for array in (indptr, index, counts)] == [np.int64] * 3
    if (sums := sum_of_rows(Payloads.of(payloads))) is not None:
        np.add.at(sums, index, -counts)
        assert not sums.any()
    found = list(zip(index.tolist(), counts.tolist(), strict=True))
    return [found[a:b] for a, b in itertools.pairwise(indptr)]


def fresh(name: str, patch: pytest.MonkeyPatch) -> Any:
    """The module imported anew, beside the one that is in use."""
    spec = importlib.util.find_spec(name)
    module = importlib.util.module_from_spec(spec)
    patch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


def among_others(text: bytes, limits: Limits = codec.DEFAULT) -> Payload:
    """`open_payloads`, of which this is the second of three."""
    return open_payloads([OTHER, text, OTHER], limits)[1]


@pytest.fixture(scope="module", params=["installed", "standard library", "many"])
def opened(request: pytest.FixtureRequest):
    """`open_payload` with the fast libraries, and as it is where they are not installed."""
    if request.param == "installed":
        return open_payload
    if request.param == "many":
        return among_others
    with pytest.MonkeyPatch.context() as patch:
        for name in ("isal", "isal.isal_zlib", "pybase64"):
            patch.setitem(sys.modules, name, None)
        module = fresh("latencykit.hdr.payload", patch)
    assert module.inflate is zlib.decompress
    assert module.inflater is zlib.decompressobj
    return module.open_payload


# ------------------------------------------------------------ what real writers wrote


@pytest.mark.parametrize("golden", GOLDENS, ids=[golden["name"] for golden in GOLDENS])
def test_golden(golden, opened):
    payload = opened(golden["base64"].encode())
    buckets = payload.buckets
    _, index, counts = decode_rows([payload])
    assert (buckets.digits, counts.sum()) == (golden["digits"], golden["count"])
    assert payload.layout.highest == golden.get("highest", payload.layout.highest)
    assert buckets.lowest == golden.get("lowest", buckets.lowest)
    assert payload.layout.double == ("double" in golden["name"])
    assert index.size == golden.get("recorded", index.size)
    first = golden.get("first", [])
    assert np.stack([buckets.high_steps(index), counts], 1)[: len(first)].tolist() == first
    if not golden["count"]:
        return
    cumulative = np.cumsum(counts)
    for percentile, value in golden["percentiles"].items():
        p, n = float(percentile), golden["count"]
        rank = (
            int(p / 100 * n + 0.5)
            if golden.get("rank") == "round"
            else math.ceil(math.nextafter(p, -math.inf) * n / 100)
        )
        at = index[np.searchsorted(cumulative, max(rank, 1))]
        edge = buckets.low if p == 0 or golden.get("edge") == "low" else buckets.high
        assert edge(at) == value, percentile
    if "max" in golden:
        # A DoubleHistogram's maximum is the last number below the next bucket, above its p100.
        slack = 2.0 ** (1 - buckets.half_magnitude) if payload.layout.double else 0
        assert golden["max"] == pytest.approx(buckets.high(index[-1]), rel=slack, abs=0)
        assert golden["min"] == buckets.low(index[0])
    if "mean" in golden and not golden["name"].startswith("js"):
        middle = buckets.mid(index)
        mean = (middle * counts).sum() / counts.sum()
        assert mean == pytest.approx(golden["mean"], rel=1e-12)
        std = math.sqrt((counts * (middle - mean) ** 2).sum() / counts.sum())
        assert std == pytest.approx(golden["std"], rel=1e-9, abs=1e-9)


def test_goldens_decode_together_as_they_do_alone():
    groups: list[list[Payload]] = []
    for golden in GOLDENS:
        payload = open_payload(golden["base64"].encode())
        home = next((group for group in groups if group[0].layout.joins(payload.layout)), None)
        if home is None:
            groups.append(home := [])
        home.append(payload)
    assert max(len(group) for group in groups) > 5
    for group in groups:
        assert at_once(group) == [pairs(payload) for payload in group]


@pytest.mark.parametrize(
    "golden", [g for g in GOLDENS if g["name"].startswith("java 2.2.2")], ids=lambda g: g["name"]
)
def test_writes_what_the_reference_wrote(golden):
    payload = open_payload(golden["base64"].encode())
    _, index, counts = decode_rows([payload])
    like = {"double": payload.layout.double, "highest": payload.layout.highest}
    again = base64.b64decode(encode(payload.buckets, index, counts, **like))
    theirs = base64.b64decode(golden["base64"])
    if payload.layout.double:
        assert struct.unpack_from(">Ii", again) == struct.unpack_from(">Ii", theirs)
        # Of the dynamic range only the power of two survives in what the histogram inside says.
        assert (
            len({struct.unpack_from(">q", raw, 8)[0].bit_length() for raw in (again, theirs)}) == 1
        )
        again, theirs = again[16:], theirs[16:]
    if "not compressed" in golden["name"]:
        assert zlib.decompress(again[8:]) == theirs
        return
    assert again[:4] == theirs[:4]
    ours, original = (bytearray(zlib.decompress(raw[8:])) for raw in (again, theirs))
    # the normalizing offset says how the writer kept its counts
    ours[8:12] = original[8:12] = bytes(4)
    assert ours == original


# ------------------------------------------------------------ round trips

layouts = st.builds(
    HdrBuckets, st.integers(0, 5), st.one_of(st.just(1), st.integers(1, 1 << 44)), st.just(1.0)
)  # 44 + 18 bits is what five digits leave
COUNTS = ((1, 63), (64, 1 << 20), (1, 1 << 55), (1 << 55, 1 << 62))
count = st.one_of(*(st.integers(*ends) for ends in COUNTS))


@st.composite
def histograms(draw: st.DrawFn, buckets: HdrBuckets) -> tuple[list[int], list[int]]:
    most = counts_length(buckets, TOP) - 1
    near = st.integers(0, min(most, 300))
    index = sorted(draw(st.sets(draw(st.sampled_from([near, st.integers(0, most)])), max_size=40)))
    counts = draw(st.lists(count, min_size=len(index), max_size=len(index)))
    while sum(counts) > TOP:
        counts[counts.index(max(counts))] = 1
    return index, counts


@pytest.mark.slow
@steady
@given(st.data())
def test_round_trip(data):
    buckets = data.draw(layouts)
    drawn = data.draw(st.lists(histograms(buckets), min_size=1, max_size=8))
    texts = [encode(buckets, index, counts) for index, counts in drawn]
    payloads = [open_payload(one) for one in texts]
    assert all(payload.buckets == buckets for payload in payloads)
    assert all(payload.buckets.lowest == buckets.lowest for payload in payloads)
    expected = [list(zip(*one, strict=True)) for one in drawn]
    assert at_once(payloads) == expected
    for payload, (index, counts) in zip(payloads, drawn, strict=True):
        assert payload.body == body_of(index, counts)
        assert scalar(payload.body) == list(zip(index, counts, strict=True))
        assert not index or counts_length(buckets, payload.layout.highest) > index[-1]
    assert [encode(buckets, *one) for one in drawn] == texts


@pytest.mark.slow
@steady
@given(st.data())
def test_round_trip_of_scales(data):
    lowest = data.draw(st.sampled_from([1, 1, 1000]))
    buckets = HdrBuckets(data.draw(st.integers(0, 4)), lowest, data.draw(st.floats(1e-9, 1e9)))
    most = min(5000, counts_length(HdrBuckets(buckets.digits, lowest), TOP) - 1)
    index = sorted(data.draw(st.sets(st.integers(0, most), max_size=40)))
    payload = open_payload(encode(buckets, index, [3] * len(index), double=True))
    assert payload.layout.double
    assert payload.buckets == HdrBuckets(buckets.digits, 1, buckets.scale)
    _, found, counts = decode_rows([payload])
    assert payload.buckets.high(found).tolist() == buckets.high(index).tolist()
    assert counts.tolist() == [3] * len(index)
    if lowest == 1:
        assert found.tolist() == index


NUMBERS = ((0, 0), (1, 63), (1, 8191), (-64, -1), (-3000, -1), (1 << 13, 1 << 48))
numbers = st.one_of(*(st.integers(*ends) for ends in NUMBERS))


@pytest.mark.slow
@steady
@given(st.lists(st.lists(numbers, max_size=30), min_size=1, max_size=12))
def test_the_kernel_and_numpy_agree_with_one_number_at_a_time(drawn):
    bodies = [b"".join(map(varint, one)) for one in drawn]
    expected = [scalar(body) for body in bodies]
    payloads = [open_payload(text(plain(body, digits=5, highest=TOP))) for body in bodies]
    assert at_once(payloads) == expected
    data = b"".join(bodies)
    if not data:
        return
    every = np.frombuffer(data, np.uint8), np.cumsum([len(body) for body in bodies])
    slots = np.array(payloads[0].layout.slots)
    for a, b in zip(rows._varints(*every, slots), decode_rows(payloads), strict=True):
        np.testing.assert_array_equal(a, b)


def test_nine_bytes_that_all_look_unfinished():
    """The largest counts end in a byte above 127: adjacent, at the end of a row, before another."""
    assert varint(TOP)[-1] > 127
    drawn = [([3], [TOP]), ([0, 1], [1 << 62, 5]), ([2, 3], [7, (1 << 62) + 1])]
    drawn += [([0], [1]), ([0], [TOP])]
    payloads = [open_payload(encode(HdrBuckets(2), *one)) for one in drawn]
    assert at_once(payloads) == [list(zip(*one, strict=True)) for one in drawn]


def test_numbers_longer_than_they_need_to_be():
    body = b"\x82\x00" + b"\x84\x80\x80\x00" + b"\x86" + b"\x80" * 7 + b"\x00"
    assert pairs(open_payload(text(plain(body)))) == [(0, 1), (1, 2), (2, 3)]


def test_many_rows_with_far_indices_do_not_wrap():
    """The steps of all rows together exceed 32 bits."""
    last = counts_length(HdrBuckets(5), TOP) - 1
    for counts in ([1], [5000]):
        payload = open_payload(encode(HdrBuckets(5), [last], counts))
        assert at_once([payload] * 400) == [[(last, counts[0])]] * 400


def test_rows_without_a_byte():
    empty = open_payload(text(plain(b"")))
    one = open_payload(text(plain(b"\x02")))
    assert at_once([empty, one, empty, empty, one, empty]) == [[], [(0, 1)], [], [], [(0, 1)], []]
    assert at_once([empty, empty]) == [[], []]
    assert at_once([]) == []


@pytest.mark.parametrize("word", [2, 4, 8])
def test_fixed_words(word, opened):
    drawn = [[0, 7, 0, 0, 300], [], [1], [0, 0], [(1 << 8 * word - 1) - 1]]
    bodies = [np.array(one, f">i{word}").tobytes() for one in drawn]
    expected = [[(i, n) for i, n in enumerate(one) if n] for one in drawn]
    bits = word << 4
    for kind in (
        lambda body: plain(body, cookie=0x1C849301 | bits),
        lambda body: squeezed(plain(body, cookie=0x1C849301 | bits), 0x1C849302 | bits),
        lambda body: v0(body, 0x1C849308 | bits),
        lambda body: squeezed(v0(body, 0x1C849308 | bits), 0x1C849309 | bits),
    ):
        payloads = [opened(text(kind(body))) for body in bodies]
        assert {payload.layout.word for payload in payloads} == {word}
        assert at_once(payloads) == expected


@pytest.mark.parametrize("cookie", [0x1C849313, 0x1C849303])
@pytest.mark.parametrize("offset", [0, 1, -3, 1 << 20])
def test_other_ways_to_write_version_2(cookie, offset, opened):
    """The normalizing offset, too, changes nothing."""
    raw = plain(b"\x09\x04", cookie=cookie, ratio=0.25, offset=offset)
    wholes = [raw, squeezed(raw), squeezed(raw, 0x1C849304)]
    for whole in wholes:
        payload = opened(text(whole))
        assert (payload.layout.double, payload.buckets.scale) == (False, 1.0)
        assert pairs(payload) == [(5, 2)]
    for whole in wholes:
        for outer in (0x0C72124E, 0x0C72124F):
            payload = opened(text(doubled(whole, cookie=outer)))
            assert (payload.layout.double, payload.buckets.scale) == (True, 0.25)
            assert pairs(payload) == [(5, 2)]


# ------------------------------------------------------------ the package of the same name


@pytest.mark.slow
def test_the_python_port_reads_what_we_write():
    hdrh = pytest.importorskip("hdrh.histogram")
    rng = np.random.default_rng(11)
    for digits in (1, 2, 3, 4, 5):
        buckets = HdrBuckets(digits)
        index, counts = np.unique(
            buckets.index_of(rng.lognormal(9, 2, 3000).astype(np.int64)), return_counts=True
        )
        counts[-1] = 1 << 40
        theirs = hdrh.HdrHistogram.decode(encode(buckets, index, counts, highest=HOUR))
        assert theirs.get_total_count() == counts.sum()
        assert (theirs.min_value, theirs.max_value) == (
            buckets.low_steps(index[0]),
            buckets.high_steps(index[-1]),
        ) or theirs.get_max_value() == buckets.high_steps(index[-1])
        found = [i for i in range(theirs.counts_len) if theirs.get_count_at_index(i)]
        assert found == index.tolist()
        assert [theirs.get_count_at_index(i) for i in found] == counts.tolist()


@pytest.mark.slow
def test_we_read_what_the_python_port_writes():
    hdrh = pytest.importorskip("hdrh.histogram")
    rng = np.random.default_rng(12)
    for digits, lowest in ((1, 1), (2, 1000), (3, 1), (4, 1), (5, 7)):
        theirs = hdrh.HdrHistogram(lowest, HOUR, digits)
        for value in rng.lognormal(11, 2, 500).astype(int).tolist():
            theirs.record_value(value, int(rng.integers(1, 1 << 50)) if value % 7 == 0 else 1)
        payload = open_payload(theirs.encode())
        assert (payload.layout.highest, payload.layout.slots) == (HOUR, theirs.counts_len)
        _, index, counts = decode_rows([payload])
        found = [i for i in range(theirs.counts_len) if theirs.get_count_at_index(i)]
        assert index.tolist() == found
        assert counts.tolist() == [theirs.get_count_at_index(i) for i in found]


# ------------------------------------------------------------ corruption

GOOD = plain(b"\x09\x04")
STREAM = zlib.compress(GOOD)
FLIPPED = bytearray(STREAM)
FLIPPED[len(STREAM) // 2] ^= 0x55

WHOLE = text(envelope(STREAM))
UNOPENABLE = {
    "empty": (b"", "0 bytes, too few"),
    "short": (b"\x1c\x84\x93\x14", "4 bytes, too few"),
    "announces too much": (
        envelope(STREAM, length=99),
        r"announces 99 compressed bytes; \d+ follow",
    ),
    "announces too little": (envelope(STREAM, length=3), "announces 3 compressed bytes"),
    "announces a negative length": (envelope(STREAM, length=-1), "announces -1 compressed bytes"),
    "unknown cookie": (envelope(STREAM, cookie=0xDEADBEEF), "0xdeadbeef"),
    "unknown cookie inside": (boxed(cookie=0x12345678), "0x12345678"),
    "compressed twice": (squeezed(envelope(STREAM)), "0x1c849314"),
    "stream corrupt": (envelope(bytes(FLIPPED)), "compressed data is corrupt"),
    "checksum corrupt": (envelope(STREAM[:-1] + b"\x00"), "compressed data is corrupt"),
    "no stream": (envelope(b""), "compressed data is truncated"),
    "stream cut": (envelope(STREAM[:-6]), "compressed data is truncated"),
    "checksum cut": (envelope(STREAM[:-2]), "compressed data is truncated"),
    "bytes behind the stream": (envelope(STREAM + b"more"), "4 bytes follow the end"),
    "a byte behind the stream": (envelope(STREAM + b"\0"), "1 bytes follow the end"),
    "header cut": (squeezed(GOOD[:30]), "header is truncated: 30 bytes of 40"),
    "header cut, version 0": (squeezed(v0(b"")[:31], 0x1C849389), "truncated: 31 bytes of 32"),
    "nothing inflates": (squeezed(b""), "not a known version"),
    "counts cut": (squeezed(GOOD[:-1]), "announces 2 bytes of counts; 1 follow"),
    "counts too long": (squeezed(GOOD + b"\0"), "announces 2 bytes of counts; 3 follow"),
    "counts too long, not compressed": (GOOD + b"\0", "announces 2 bytes of counts; 3 follow"),
    "counts announced negative": (squeezed(header(-1) + b"\x02"), "announces -1 bytes"),
    "counts announced huge": (squeezed(header(2147483647) + b"\x02"), "announces 2147483647 bytes"),
    "digits 6": (boxed(digits=6), "digits must be 0 to 5, not 6"),
    "digits -1": (boxed(digits=-1), "digits must be 0 to 5, not -1"),
    "lowest 0": (boxed(lowest=0), "lowest discernible value must be 1"),
    "lowest negative": (boxed(lowest=-1), "lowest discernible value must be 1"),
    "lowest huge": (boxed(lowest=(1 << 62) + 1, highest=TOP), "at least twice"),
    "lowest too high for the digits": (boxed(lowest=1 << 60, highest=TOP), "do not fit in 63 bits"),
    "highest below twice the lowest": (
        boxed(lowest=10, highest=19),
        "at least twice the lowest, 10",
    ),
    "highest negative": (boxed(highest=-1), "highest value is -1"),
    "ratio nan": (boxed(ratio=math.nan), "value of one step is nan"),
    "ratio infinite": (boxed(ratio=math.inf), "value of one step is inf"),
    "ratio 0": (doubled(squeezed(plain(b"\x02", ratio=0.0))), "value of one step is 0.0"),
    "ratio negative": (doubled(squeezed(plain(b"\x02", ratio=-2.0))), "value of one step is -2.0"),
    "double, cut": (doubled(b""), "16 bytes, too few for a DoubleHistogram"),
    "double, digits differ": (
        doubled(boxed(), digits=2),
        "2 digits but the histogram inside has 3",
    ),
    "double, range 1": (doubled(boxed(), dynamic_range=1), "ratio is 1; it must be 2 or more"),
    "double in a double": (doubled(doubled(squeezed(GOOD))), "0x0c72124f"),
    "double of version 0": (doubled(v0(bytes(8))), "version 0 inside a DoubleHistogram"),
    "double, corrupt inside": (doubled(envelope(STREAM[:-6])), "truncated"),
    "words of 6 bytes": (plain(bytes(12), cookie=0x1C849361), "counts of 6 bytes"),
    "words of no bytes": (v0(bytes(8), 0x1C849308), "counts of 0 bytes"),
    "half a word": (
        plain(bytes(7), cookie=0x1C849321),
        "7 bytes, which is not a multiple of their 2",
    ),
    "half a word, version 0": (v0(bytes(12)), "12 bytes, which is not a multiple of their 8"),
    "more words than buckets": (
        plain(bytes(2 * 33_793), cookie=0x1C849321),
        "more than 33792 buckets",
    ),
    "more bytes than buckets": (
        plain(b"\x80" * (9 * 2048 + 1), highest=2),
        "more than 2048 buckets",
    ),
}
NOT_BASE64 = {
    "blank inside": WHOLE[:20] + b" " + WHOLE[20:],
    "line break inside": WHOLE[:20] + b"\n" + WHOLE[20:],
    "foreign character": WHOLE[:20] + b"-" + WHOLE[21:],
    "byte above ASCII": WHOLE[:20] + b"\xff" + WHOLE[21:],
    "padding lost": b"HISTFAAAACV42pNpmSzMwMDAwgABzFCaEYh5f7hHMNh/gAicX8bIBABjHQW",
    "glued": text(envelope(STREAM + b"x"))[:-1] + b"=" + WHOLE,
}
UNOPENABLE_TEXTS = {
    **{name: (text(raw), reason) for name, (raw, reason) in UNOPENABLE.items()},
    **{name: (whole, "base64 is corrupt") for name, whole in NOT_BASE64.items()},
    "glued without padding": (text(envelope(STREAM[:-4])) + WHOLE, "announces"),
}


@pytest.mark.parametrize("name", UNOPENABLE_TEXTS)
def test_what_cannot_be_opened(name, opened):
    payload, reason = UNOPENABLE_TEXTS[name]
    assert opened(text(envelope(STREAM))).body == b"\x09\x04"  # so that its header is known
    for _ in range(2):
        with pytest.raises(PayloadError, match=reason) as caught:
            opened(payload)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 200


HUGE = 1 << 62
UNDECODABLE = {
    "cut number": (plain(b"\x02\x81"), "end inside a number"),
    "only a cut number": (plain(b"\x80"), "end inside a number"),
    "a nine-byte number cut": (plain(b"\x02" + b"\xff" * 8), "end inside a number"),
    "cut after a nine-byte number": (plain(b"\xfe" * 9 + b"\xff" * 3), "end inside a number"),
    "empty buckets beyond the last": (
        plain(varint(-33_793)),
        "run of 33793 empty buckets; the header allows 33792",
    ),
    "most empty buckets of all": (plain(b"\xff" * 9), f"run of {1 << 63} empty buckets"),
    "2**31 empty buckets": (plain(varint(-(1 << 31))), "run of 2147483648 empty buckets"),
    "a count beyond the last": (
        plain(varint(-2048) + b"\x02", highest=2),
        "fill 2049 buckets; the header allows 2048",
    ),
    "runs that add up beyond the last": (
        plain(varint(-2000) + varint(-49), highest=2),
        "fill 2049 buckets",
    ),
    "runs of one byte beyond the last": (
        plain(b"\x7f" * 33, highest=2),
        "fill 2112 buckets; the header allows 2048",
    ),
    "one count too many": (plain(b"\x02" * 2049, highest=2), "fill more buckets than the 2048"),
    "one empty bucket too many": (
        plain(b"\x00" * 2049, highest=2),
        "fill more buckets than the 2048",
    ),
    "sum of 2**63": (plain(varint(HUGE) + varint(HUGE)), r"more than 2\*\*63 - 1"),
    "sum that comes round to 0": (plain(varint(HUGE) * 4), r"more than 2\*\*63 - 1"),
    "sum one above": (plain(varint(TOP) + b"\x02"), r"more than 2\*\*63 - 1"),
    "sum of many": (plain(varint(1 << 54) * 513), r"more than 2\*\*63 - 1"),
}
UNDECODABLE_WORDS = {
    "negative count, 8 bytes": (8, np.array([1, -3], ">i8").tobytes(), "count is negative: -3"),
    "negative count, 4 bytes": (4, np.array([-1], ">i4").tobytes(), "count is negative: -1"),
    "negative count, 2 bytes": (
        2,
        np.array([0, -32768], ">i2").tobytes(),
        "count is negative: -32768",
    ),
    "sum of 2**63": (8, np.array([HUGE, HUGE], ">i8").tobytes(), r"more than 2\*\*63 - 1"),
}


def neighbours(kind: str) -> list[Payload]:
    if kind == "short":
        drawn = [(list(range(0, 40, 2)), [1 + i % 5 for i in range(20)])] * 40
    elif kind == "long":
        drawn = [(list(range(0, 2000, 100)), [1000 + i for i in range(20)])] * 40
    else:
        drawn = [([0, 2], [TOP - 1, 1]), ([1], [7])] * 20
    return [open_payload(encode(HdrBuckets(3), *one, highest=HOUR)) for one in drawn]


@pytest.mark.parametrize("among", ["nobody", "short", "long", "nine bytes"])
@pytest.mark.parametrize("name", UNDECODABLE)
def test_what_cannot_be_decoded(name, among):
    raw, reason = UNDECODABLE[name]
    bad = open_payload(text(squeezed(raw)))
    good = [] if among == "nobody" else neighbours(among)
    before = at_once(good)
    for place in sorted({0, len(good) // 3, len(good)}):
        with pytest.raises(RowError, match=reason) as caught:
            decode_rows([*good[:place], bad, *good[place:]])
        assert caught.value.row == place
        with pytest.raises(RowError) as caught:
            decode_rows([*good[:place], bad, bad, *good[place:], bad])
        assert caught.value.row == place
    assert at_once(good) == before


@pytest.mark.parametrize("name", UNDECODABLE_WORDS)
def test_words_that_cannot_be_counts(name):
    word, body, reason = UNDECODABLE_WORDS[name]
    cookie = 0x1C849301 | word << 4
    bad, good = (open_payload(text(plain(one, cookie=cookie))) for one in (body, bytes(word * 5)))
    with pytest.raises(RowError, match=reason) as caught:
        decode_rows([good, good, bad, good])
    assert caught.value.row == 2


def test_sums_up_to_the_last_that_fits():
    body = varint(1 << 54) * 511 + varint((1 << 54) - 1)
    payload = open_payload(text(plain(body)))
    assert sum(n for _, n in pairs(payload)) == TOP
    assert len(at_once([payload] * 5)) == 5  # the sum of all rows may exceed what one row may hold


def test_every_row_has_its_own_highest_value():
    """Histograms that size themselves differ in nothing else, so they share a block."""
    small, large = (open_payload(encode(HdrBuckets(3), index, [1])) for index in ([2047], [30_000]))
    assert small.layout is not large.layout
    assert small.layout.joins(large.layout)
    assert at_once([small, large]) == [[(2047, 1)], [(30_000, 1)]]
    bad = open_payload(text(plain(varint(-2048) + b"\x02", highest=2)))
    with pytest.raises(RowError, match="allows 2048") as caught:
        decode_rows([small, large, bad, large])
    assert caught.value.row == 2


@pytest.mark.slow
@steady
@given(st.integers(0, len(GOLDENS) - 1), st.data())
def test_changed_bytes_are_read_or_refused(golden, data):
    raw = bytearray(base64.b64decode(GOLDENS[golden]["base64"]))
    inside = data.draw(st.booleans()) and raw[:4] == b"\x1c\x84\x93\x14"
    if inside:
        raw = bytearray(zlib.decompress(raw[8:]))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, min(len(raw), 200) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del raw[data.draw(st.integers(0, len(raw) - 1)) :]
    whole = text(squeezed(bytes(raw)) if inside else bytes(raw))
    try:
        payload = open_payload(whole)
        found = pairs(payload)
    except PayloadError:
        return
    assert found == sorted(found)
    assert all(n > 0 for _, n in found)
    assert sum(n for _, n in found) <= TOP
    if payload.layout.word == 0:
        assert found == scalar(payload.body)


# ------------------------------------------------------------ limits


@pytest.mark.slow
@pytest.mark.parametrize("size", [1 << 20, 40 << 20])
def test_a_bomb_takes_no_memory(size, opened):
    bomb = text(boxed(bytes(size), highest=2))
    limits = Limits(inflated=256 << 10)
    tracemalloc.start()
    try:
        with pytest.raises(PayloadError, match="inflates to more than 262,144 bytes"):
            opened(bomb, limits)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3 * limits.inflated


@pytest.mark.parametrize("kind", ["alike", "one of version 1"])
def test_no_more_is_opened_once_it_takes_the_limit(kind):
    empty = text(boxed(bytes(30_000), digits=5))
    other = text(header(30_000, cookie=0x1C849321, digits=5) + bytes(30_000))
    texts = [empty, other if kind != "alike" else empty, *[empty] * 18]
    limits, opened = Limits(inflated=40_000, block=200_000), []
    while len(opened) < len(texts):
        some = open_payloads(texts[len(opened) :], limits)
        assert len(some) >= 1
        assert some.sizes.sum() <= limits.block + limits.inflated
        opened += some
    assert [payload.body for payload in opened] == [bytes(30_000)] * 20


@pytest.mark.slow
def test_a_payload_larger_than_what_is_inflated_in_one_go(opened):
    rng = np.random.default_rng(2)
    index = np.flatnonzero(rng.random(200_000) < 0.5)
    counts = rng.integers(1, 5000, index.size)
    whole = encode(HdrBuckets(5), index, counts)
    assert len(whole) > Limits().harmless
    for _ in range(2):
        assert pairs(opened(whole)) == list(zip(index.tolist(), counts.tolist(), strict=True))


def test_limits():
    whole = text(envelope(STREAM))
    assert (
        open_payload(whole, Limits(line=len(whole), inflated=len(GOOD), slots=33_792)).body
        == b"\x09\x04"
    )
    for limits, reason in (
        (Limits(line=len(whole) - 1), "bytes of base64; at most"),
        (Limits(inflated=len(GOOD) - 1), "inflates to more than 41 bytes"),
        (Limits(slots=33_791), "asks for 33,792 buckets; at most 33,791"),
    ):
        with pytest.raises(PayloadError, match=reason):
            open_payload(whole, limits)
    largest = open_payload(text(boxed(digits=5, highest=TOP)))
    assert largest.layout.slots == counts_length(HdrBuckets(5), TOP) == 6_160_384
    payload = open_payload(whole)
    decode_rows([payload] * 10, Limits(block=20))
    with pytest.raises(InputTooLargeError, match="more than 20 bytes"):
        decode_rows([payload] * 11, Limits(block=20))


# ------------------------------------------------------------ small things


@pytest.mark.slow
def test_many_headers():
    texts = [encode(HdrBuckets(1), [3], [1], highest=1000 + i) for i in range(5000)]
    assert [payload.layout.highest for payload in open_payloads(texts)] == list(range(1000, 6000))


def test_the_first_bad_one_of_many_is_named():
    good = encode(HdrBuckets(3), [7], [1])
    assert [payload.body for payload in open_payloads([good] * 3)] == [open_payload(good).body] * 3
    assert list(open_payloads([])) == []
    for bad in (good[:-4], b"!" + good[1:], good[:30] + b"AAAA" + good[34:]):
        with pytest.raises(RowError) as caught:
            open_payloads([good, good, bad, good, bad])
        assert caught.value.row == 2
        with pytest.raises(PayloadError) as alone:
            open_payload(bad)
        assert str(caught.value) == str(alone.value)


def test_varints_and_words_are_not_decoded_together():
    varints, words = (open_payload(text(raw)) for raw in (GOOD, plain(bytes(8), cookie=0x1C849381)))
    assert not varints.layout.joins(words.layout)
    with pytest.raises(InvalidArgumentError, match="cannot be decoded together"):
        decode_rows([varints, words])


def test_slots_are_as_many_as_the_values_need():
    for digits in range(6):
        for lowest in (1, 7, 1000):
            buckets = HdrBuckets(digits, lowest)
            for highest in (2 * lowest, 100_000, HOUR, TOP - 1, TOP):
                slots = counts_length(buckets, highest)
                assert buckets.index_of(np.array([highest]))[0] < slots
                assert slots % (1 << buckets.half_magnitude) == 0
                assert slots >= 2 << buckets.half_magnitude
                if slots > 2 << buckets.half_magnitude:
                    assert buckets.low_steps(slots - (1 << buckets.half_magnitude)) <= highest


@pytest.mark.parametrize(
    ("buckets", "index", "counts", "options", "reason"),
    [
        (HdrBuckets(3, 1, 0.5), [1], [1], {}, "double=True"),
        (HdrBuckets(3), [1], [-1], {}, "must not be negative"),
        (HdrBuckets(3), [2, 1], [1, 1], {}, "ascend"),
        (HdrBuckets(3), [1, 1], [1, 1], {}, "ascend"),
        (HdrBuckets(3), [-1], [1], {}, "0 or more"),
        (HdrBuckets(3), [1, 2], [1], {}, "of one length"),
        (HdrBuckets(3), [[1]], [[1]], {}, "one-dimensional"),
        (HdrBuckets(3), [1, 2], [HUGE, HUGE], {}, "add up to more than"),
        (HdrBuckets(3), [55_296], [1], {}, "above the highest that"),
        (HdrBuckets(3), [2048], [1], {"highest": 2047}, "above the highest value, 2047"),
        (HdrBuckets(3, 1000), [1], [1], {"highest": 1999}, "must be 2000 to"),
        (HdrBuckets(3), [1], [1], {"highest": 1 << 63}, "must be 2 to"),
    ],
)
def test_what_cannot_be_written(buckets, index, counts, options, reason):
    with pytest.raises(InvalidArgumentError, match=reason):
        encode(buckets, index, counts, **options)


def test_errors_belong_to_the_family_and_travel():
    assert issubclass(PayloadError, ValueError)
    assert issubclass(PayloadError, LatencyKitError)
    error = pickle.loads(pickle.dumps(RowError(7, "cut")))
    assert (error.row, str(error), type(error)) == (7, "cut", RowError)
    payload = pickle.loads(pickle.dumps(open_payload(text(GOOD))))
    assert pairs(payload) == [(5, 2)]
    assert at_once([payload, open_payload(text(GOOD))]) == [[(5, 2)]] * 2


# ------------------------------------------------------------ corrupt payloads of a log


def test_a_corrupt_row_counts_as_empty_where_it_is_let_pass():
    good = open_payload(encode(HdrBuckets(2), np.array([3, 9]), np.array([1, 2])))
    opened = Payloads.of([good, Payload(good.layout, b"\x80"), good])
    refused: list[int] = []
    rows = np.array([4, 5, 6])
    (block,) = blocks_of_payloads(rows, opened, lambda row, reason: refused.append(row))
    assert block.folded()[0].tolist() == [3, 0, 3]
    assert (refused, block.rows.tolist()) == ([5], [4, 5, 6])
