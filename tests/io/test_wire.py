"""Binary records: messages of Protocol Buffers, chains of records, Go's gobs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latencykit.errors import InvalidArgumentError
from latencykit.io.reading import read_source
from latencykit.io.source import ReadOptions, Source
from latencykit.io.wire import Schema, decode, delimited, follow
from tests.io.test_contract import attempt

DATA = Path(__file__).parents[1] / "data" / "formats"
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
