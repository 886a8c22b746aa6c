"""Binary records and traces: messages of Protocol Buffers, chains, gobs, spans."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import latencykit as lk
from latencykit.errors import InvalidArgumentError
from latencykit.io.reading import read_source
from latencykit.io.source import ReadOptions, Source
from latencykit.io.wire import Schema, decode, delimited, follow
from tests.io.test_contract import DATA, attempt

NUMBERS = {
    "int": (-(1 << 63), (1 << 63) - 1),
    "uint": (0, (1 << 64) - 1),
    "sint": (-(1 << 62), 1 << 62),
}


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def packed(numbers: list[int], kind: str) -> bytes:
    if kind == "sint":
        numbers = [(n << 1) ^ (n >> 63) for n in numbers]
    return b"".join(map(varint, numbers))


@pytest.mark.parametrize("kind", NUMBERS)
@given(data=st.data())
def test_repeated_numbers_are_read_packed_or_not(kind, data):
    numbers = data.draw(st.lists(st.integers(*NUMBERS[kind]), min_size=1, max_size=20))
    schema: Schema = {3: ("n[]", kind)}
    body = packed(numbers, kind)
    whole = b"\x1a" + varint(len(body)) + body
    single = b"".join(b"\x18" + packed([n], kind) for n in numbers)
    assert decode(memoryview(whole), schema)["n"].tolist() == numbers
    assert decode(memoryview(single), schema)["n"].tolist() == numbers


def test_unknown_fields_are_skipped_and_others_kept():
    unknown = b"\x28\x05" + b"\x35abcd" + b"\x39abcdefgh" + b"\x42\x03abc"
    schema: Schema = {1: ("name", "text"), 2: ("inner[]", {1: ("x", "double")})}
    inner = b"\x12\x09\x09" + np.array([2.5]).tobytes()
    message = decode(memoryview(unknown + b"\x0a\x02hi" + inner + unknown + inner), schema)
    assert message == {"name": "hi", "inner": [{"x": 2.5}, {"x": 2.5}]}


@pytest.mark.parametrize(
    "data",
    [b"\x0a", b"\x0a\x05ab", b"\x0a" + b"\xff" * 9 + b"\x7f", b"\x80" * 11, b"\x00\x01", b"\x0b", b"\x08\x01"],
)  # fmt: skip
def test_what_is_not_a_message_is_one_line(data):
    with pytest.raises(InvalidArgumentError, match=r"^[^\n]+$"):
        decode(memoryview(data), {1: ("name", "text")})


def test_of_a_head_what_is_whole_is_kept():
    schema: Schema = {1: ("name", "text"), 2: ("n", "uint"), 3: ("inner", {1: ("name", "text")})}
    message = b"\x0a\x02hi\x10\x05\x1a\x80\x01\x0a\x03abc"
    found = decode(memoryview(message), schema, head=True)
    assert found == {"name": "hi", "n": 5, "inner": {"name": "abc"}}
    cut = memoryview(b"\x02ab\x03c")
    assert [bytes(part) for part in delimited(cut, head=True)] == [b"ab", b"c"]
    with pytest.raises(InvalidArgumentError, match="truncated"):
        list(delimited(cut))


@given(st.lists(st.integers(1, 9), min_size=1, max_size=60))
def test_a_chain_is_what_steps_one_by_one_give(steps):
    size = len(steps)
    successor = np.minimum(np.arange(size) + steps, size)
    at, chain = 0, []
    while at < size:
        chain.append(at)
        at = int(successor[at])
    assert follow(successor, 0).tolist() == chain


SAMPLES = [
    "ddsketch/go-linear/sketch.pb", "otel-protobuf/sdk/metrics.pb",
    "otel-protobuf/file-exporter/metrics.pb", "prometheus-protobuf/go-delimited/scrape.pb",
    "datasketches/kll/latency.bin", "vegeta/attack/results.bin",
    "otlp-traces-protobuf/file-exporter/traces.pb", "t-digest/java/latency.bin",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("sample", SAMPLES)
def test_truncated_anywhere_it_is_read_or_one_line(sample, tmp_path):
    data, path = (DATA / sample).read_bytes()[:6000], tmp_path / "cut"
    for end in [*range(1, min(len(data), 400)), *range(400, len(data), 97)]:
        path.write_bytes(data[:end])
        read_it = attempt(read_source, Source(path), ReadOptions(), sample.partition("/")[0])
        assert "\n" not in read_it if isinstance(read_it, str) else read_it


# ---------------------------------------------------------------- gobs

RESULTS = DATA / "vegeta" / "attack" / "results.bin"


def read(path: Path) -> object:
    return read_source(Source(path), ReadOptions(columns=True), "vegeta")["a"]


def test_results_in_small_pieces_are_the_same(monkeypatch):
    whole = read(RESULTS)
    monkeypatch.setattr("latencykit.io.gob._CHUNK", 1000)
    pieces = read(RESULTS)
    assert (pieces.start == whole.start).all()
    assert (pieces.duration == whole.duration).all()
    assert (pieces.outcome == whole.outcome).all()
    assert whole.where(method="GET").run.timeouts == whole.run.timeouts


def test_two_runs_in_one_file_and_a_truncated_one(tmp_path):
    data, path = RESULTS.read_bytes(), tmp_path / "results.bin"
    path.write_bytes(data + data[:-10])
    both = read(path)
    assert len(both) == 2 * len(read(RESULTS)) - 1
    assert any("truncated" in note for note in both.run.notes)


# ---------------------------------------------------------------- traces

FILES = {
    "otlp-traces": DATA / "otlp-traces" / "shop" / "traces.jsonl",
    "otlp-traces-protobuf": DATA / "otlp-traces-protobuf" / "file-exporter" / "traces.pb",
    "jaeger": DATA / "jaeger" / "shop" / "traces.json",
    "zipkin": DATA / "zipkin" / "shop" / "traces.json",
}


@pytest.mark.parametrize("name", FILES)
def test_roots_are_read_and_calls_on_demand(name: str) -> None:
    """40 traces 25 ms apart: a request, every fourth to pay, and three calls of 0.2 times as long."""
    series = lk.read_all([FILES[name]])
    assert [len(one) for one in series.values()] == [30, 10]
    cart = next(iter(series.values()))
    assert cart.run.tool
    assert max(one.duration.max() for one in series.values()) == 900_000_000
    assert sum(int((~one.good).sum()) for one in series.values()) == 1
    assert cart.epoch == 1_769_860_800 * 10**9
    select = lk.read(FILES[name], series="select" if name == "zipkin" else "SELECT")
    assert len(select) == 120
    assert select.duration.max() == pytest.approx(0.2 * 900e6, abs=1000)
    assert any("fanout -n 3" in note for note in cart.run.notes)
    assert any(
        "further series: SELECT" in note.replace("select", "SELECT") for note in cart.run.notes
    )


@pytest.mark.parametrize("name", FILES)
def test_attributes_are_columns(name: str) -> None:
    cart = next(iter(lk.read_all([FILES[name]]).values()))
    assert {"service", "operation", "host", "http.status_code"} <= set(cart.columns)
    assert set(cart.columns["service"]) == {"shop"}
    assert "db.shard" not in cart.columns
    assert len(cart.where(host="web-1")) == 10


def test_the_formats_agree() -> None:
    times = [
        np.sort(np.concatenate([one.start for one in lk.read_all([path]).values()])) // 1000
        for path in FILES.values()
    ]
    assert all(np.array_equal(times[0], other) for other in times[1:])


def messages_of(data: bytes) -> list[bytes]:
    """The messages, each after its length of four bytes."""
    parts = []
    while data:
        size = 4 + int.from_bytes(data[:4], "big")
        parts.append(data[4:size])
        data = data[size:]
    return parts


def sized(messages: list[bytes]) -> bytes:
    return b"".join(len(one).to_bytes(4, "big") + one for one in messages)


@pytest.mark.parametrize("name", ["otlp-traces", "otlp-traces-protobuf"])
def test_messages_that_are_compressed_one_by_one(name: str, tmp_path: Path) -> None:
    """The collector's file exporter with ``compression: zstd``."""
    zstandard = pytest.importorskip("zstandard")
    data = FILES[name].read_bytes()
    messages = data.splitlines() if name == "otlp-traces" else messages_of(data)
    packed = [zstandard.ZstdCompressor().compress(one) for one in messages]
    path = tmp_path / "traces.zst"
    path.write_bytes(sized(packed))
    plain, read = lk.read_all([FILES[name]]), lk.read_all([path])
    assert list(read) == list(plain)
    for name, series in read.items():
        assert series.to_frame().equals(plain[name].to_frame())
    path.write_bytes(sized(packed)[:-5])
    cut = next(iter(lk.read_all([path]).values()))
    assert any("truncated" in note for note in cut.run.notes)
    path.write_bytes(sized([packed[0][:20] + b"x" * 40]))
    with pytest.raises(lk.CorruptInputError, match="the compressed stream is corrupt"):
        lk.read_all([path])


def test_one_message_and_lengths_of_variable_size(tmp_path: Path) -> None:
    messages = messages_of(FILES["otlp-traces-protobuf"].read_bytes())
    path, counts = tmp_path / "traces.pb", []
    for one in messages:
        path.write_bytes(one)
        counts.append(sum(map(len, lk.read_all([path]).values())))
    assert counts == [20, 20]
    path.write_bytes(b"".join(bytes([len(m) & 127 | 128, len(m) >> 7]) + m for m in messages))
    assert sum(map(len, lk.read_all([path]).values())) == 40


def span(**changes: object) -> dict[str, object]:
    return {
        "traceId": "a1", "spanId": "b1", "name": "GET /", "startTimeUnixNano": "1000000000000000000",
        "endTimeUnixNano": "1000000000005000000",
    } | changes  # fmt: skip


def test_empty_messages_say_nothing(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    compress = zstandard.ZstdCompressor().compress
    messages = FILES["otlp-traces"].read_bytes().splitlines()
    path, parts = tmp_path / "traces.zst", [compress(one) for one in messages]
    path.write_bytes(sized([compress(b""), *parts[:1], b"", *parts[1:]]))
    plain = lk.read_all([FILES["otlp-traces"]])
    assert [len(one) for one in lk.read_all([path]).values()] == [len(o) for o in plain.values()]
    path.write_bytes(sized(parts)[: len(parts[0])])
    with pytest.raises(lk.CorruptInputError, match="truncated, and nothing of it can be read"):
        lk.read_all([path])


def test_every_operation_is_a_series_of_its_own_spans(tmp_path: Path) -> None:
    spans = [
        span(spanId=f"b{k}", name=f"op {k % 7}", endTimeUnixNano=str(10**18 + 1000 * k))
        for k in range(50)
    ]
    path = tmp_path / "traces.json"
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
    for name in range(7):
        series = lk.read(path, series=f"op {name}")
        assert series.duration.tolist() == [1000 * k for k in range(name, 50, 7)]
