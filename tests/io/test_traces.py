"""Traces: one request per span, the roots by default, in three formats that agree."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

import latencykit as lk
from tests.io.test_contract import DATA

if TYPE_CHECKING:
    from pathlib import Path

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
