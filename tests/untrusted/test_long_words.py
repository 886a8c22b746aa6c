"""A word takes the memory of its length once, not once per row of its table."""

from __future__ import annotations

import json
import tracemalloc
from typing import TYPE_CHECKING

import numpy as np
import pytest

import latencykit as lk
from latencykit._text import LONGEST_WORD, brief
from latencykit.core.columns import Words
from latencykit.core.samples import OUTCOMES
from latencykit.io.gob import _message as gob_message
from tests.conftest import DATA

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROWS, LONG = 20_000, "y" * 200_000


def csv(path: Path) -> None:
    rows = (f"{k * 1000},{1000 + k % 7},{LONG if k == 5 else 'a'}" for k in range(ROWS))
    path.write_text("start_ns,latency_ns,operation\n" + "\n".join(rows) + "\n")


def jsonl(path: Path) -> None:
    rows = (
        {"start_ns": k * 1000, "latency_ns": 1000 + k % 7, "operation": LONG if k == 5 else "a"}
        for k in range(ROWS)
    )
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")


def zipkin(path: Path) -> None:
    spans = [
        {"traceId": f"{k:x}", "id": f"{k:x}", "name": LONG if k == 5 else "a", "kind": "SERVER",
         "timestamp": 1_700_000_000_000_000 + k, "duration": 100 + k % 7,
         "localEndpoint": {"serviceName": "s"}}
        for k in range(ROWS)
    ]  # fmt: skip
    path.write_text(json.dumps(spans))


def vegeta(path: Path) -> None:
    rows = (
        {"attack": LONG if k == 5 else "a", "seq": k, "code": 200, "latency": 1000 + k % 7,
         "timestamp": f"2026-01-01T00:00:00.{k:09d}Z", "bytes_out": 0, "bytes_in": 0, "error": "",
         "body": None, "method": "GET", "url": "http://a/", "headers": None}
        for k in range(ROWS)
    )  # fmt: skip
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")


def gatling(path: Path) -> None:
    rows = (
        f"REQUEST\t{LONG if k == 3 else ''}\t{LONG if k == 5 else 'a'}\t{1658765870186 + k}\t"
        f"{1658765870286 + k}\t{'KO' if k == 7 else 'OK'}\t{LONG if k == 7 else ''} timeout"
        for k in range(ROWS)
    )
    path.write_text("RUN\ta.B\tb\t1658765864198\t \t3.4.2\n" + "\n".join(rows) + "\n")


def ghz(path: Path) -> None:
    rows = (f"7.{'3' * len(LONG) if k == 5 else '38'},OK," for k in range(ROWS))
    path.write_text("duration (ms),status,error\n" + "\n".join(rows) + "\n")


def k6(path: Path) -> None:
    head = "metric_name,timestamp,metric_value,error,error_code,expected_response,status\n"
    rows = (
        f"http_req_duration,1795219554,6.5,{'timeout' + LONG if k == 5 else ''},,"
        f"{'false' if k == 5 else 'true'},200"
        for k in range(ROWS)
    )
    path.write_text(head + "\n".join(rows) + "\n")


def k6_json(path: Path) -> None:
    rows = (
        {"metric": "http_req_duration", "type": "Point",
         "data": {"time": "2026-01-01T00:00:00Z", "value": 6.5,
                  "tags": {"expected_response": "false" if k == 5 else "true", "status": "200",
                           "error": LONG + "timeout" if k == 5 else ""}}}
        for k in range(ROWS)
    )  # fmt: skip
    path.write_text("\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "\n")


def ycsb(path: Path) -> None:
    head = "READ latency raw data: op, timestamp(ms), latency(us)\n"
    rows = (f"{LONG.upper() if k == 5 else 'READ'},{1795220742902 + k},500" for k in range(ROWS))
    path.write_text(head + "\n".join(rows) + "\n")


def gob(path: Path) -> None:
    data = (DATA / "formats/vegeta/attack/results.bin").read_bytes()
    at = 0
    while (message := gob_message(data, at)) is not None and message[2] < 0:
        at = message[1]
    assert message is not None

    def number(value: int) -> bytes:
        size = (value.bit_length() + 7) // 8
        return bytes([value]) if value < 128 else bytes([256 - size]) + value.to_bytes(size, "big")

    def value(k: int) -> bytes:
        error = (LONG + "timeout" if k == 5 else "refused").encode()[:1000]
        stamp = bytes([1]) + (63_900_000_000 + k).to_bytes(8, "big") + bytes(4) + b"\xff\xff"
        fields = {"Code": number(200), "Timestamp": number(len(stamp)) + stamp,
                  "Latency": number(2_000_000), "Error": number(len(error)) + error}  # fmt: skip
        rest, last = number(2 * message[2]), -1
        for name, content in fields.items():
            place = GOB_FIELDS.index(name)
            rest, last = rest + number(place - last) + content, place
        return number(len(rest) + 1) + rest + b"\0"

    path.write_bytes(data[:at] + b"".join(map(value, range(ROWS))))


GOB_FIELDS = ["Attack", "Seq", "Code", "Timestamp", "Latency", "BytesOut", "BytesIn", "Error"]
TABLES = [csv, jsonl, zipkin, vegeta, gatling, ghz, k6, k6_json, ycsb, gob]


@pytest.mark.parametrize("write", TABLES)
def test_a_long_word_takes_its_length_once(tmp_path: Path, write: Callable[[Path], None]) -> None:
    path = tmp_path / f"calls.{write.__name__}"
    write(path)
    tracemalloc.start()
    try:
        runs = lk.read_all(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 200 << 20  # rows × longest word are 4 GB and more
    if write in (gatling, k6, k6_json):  # a long message is searched, too
        late = [np.sum(data.outcome == OUTCOMES.index("timeout")) for data in runs.values()]
        assert max(late) == 1
    tags = {tag for data in runs.values() for tag in (*data.tags, *data.run.tags)} | set(runs)
    assert max(map(len, tags)) <= LONGEST_WORD + len("/calls")


def test_words_are_cut_with_a_mark_and_then_equal_ones_are_one() -> None:
    assert brief("y" * 256) == "y" * 256
    assert brief("y" * 257) == "y" * 255 + "…"
    words = Words.of(["y" * 300, "a", "y" * 400])
    assert words.names.tolist() == ["y" * 255 + "…", "a"]
    assert words.codes.tolist() == [0, 1, 0]


def test_tags_are_objects_whatever_they_were_given_as() -> None:
    given = [["b", "a", "b"], np.array(["b", "a", "b"]), np.array(["b", "a", "b"], object)]
    for tag in given:
        samples = lk.Samples(duration=[1, 2, 3], tag=tag)
        assert samples.tag.dtype == object
        assert samples.tags == ("a", "b")
        assert {tag: len(part) for tag, part in samples.by_tag().items()} == {"a": 1, "b": 2}
        assert samples.tagged("b").duration.tolist() == [1, 3]
    assert lk.Samples(duration=[1, 2], tag=["a", None]).tags == ("", "a")


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_tables_of_arrow(tmp_path: Path, suffix: str) -> None:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    words = [LONG if k == 5 else "a" for k in range(ROWS)]
    frame = pd.DataFrame({"latency_ns": np.arange(ROWS) % 7 + 1, "operation": words})
    path = tmp_path / f"calls.{suffix}"
    getattr(frame, f"to_{suffix}")(path)
    assert lk.read(path).tags == ("a", "y" * 255 + "…")
