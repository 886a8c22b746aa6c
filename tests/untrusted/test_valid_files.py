"""Valid files with what no tool writes: further columns, long words, odd types."""

from __future__ import annotations

import json
import tracemalloc
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import latencykit as lk
from latencykit._text import LONGEST_WORD, brief
from latencykit.core.columns import Words
from latencykit.core.samples import OUTCOMES
from latencykit.io.gob import _message as gob_message
from tests.conftest import DATA, RAW

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def columns() -> dict[str, tuple[Any, list[Any] | None]]:
    """Further columns of a table of four rows, and what becomes of them: None if they are left out."""
    pa = pytest.importorskip("pyarrow")
    zone = pa.timestamp("ms", tz="Mars/Olympus")
    buffers = pa.array([b"\xff\xfe", b"a", b"c", b"\x80"]).buffers()
    return {
        "list": (pa.array([[1, 2], [], None, [3]]), None),
        "map": (pa.array([[("a", 1)], [], None, []], pa.map_(pa.string(), pa.int64())), None),
        "structure": (pa.array([{"a": 1}, {"a": 2}, None, {"a": 3}]), None),
        "bytes": (pa.array([b"\xff\xfe", b"a", None, b"\x80"]), ["\\xff\\xfe", "a", None, "\\x80"]),
        "fixed": (pa.array([b"\xff", b"a", None, b"c"], pa.binary(1)), ["\\xff", "a", None, "c"]),
        "text": (pa.Array.from_buffers(pa.string(), 4, buffers), ["\\xff\\xfe", "a", "c", "\\x80"]),
        "zone": (pa.array([1_700_000_000_000, 1, 2, 3], zone), ["2023-11-14 22:13:20"]),
        "words": (pa.array(["a", "b", None, "a"]).dictionary_encode(), ["a", "b", None, "a"]),
    }


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
@pytest.mark.parametrize(
    "name", ["list", "map", "structure", "bytes", "fixed", "text", "zone", "words"]
)
def test_a_further_column_of_any_type_stops_nothing(name: str, suffix: str, tmp_path: Path) -> None:
    cells, kept = columns()[name]
    if (name, suffix) == ("text", "feather"):
        pytest.skip("Arrow checks its own files whole")
    from pyarrow import feather, parquet, table

    path = tmp_path / f"a.{suffix}"
    write = parquet.write_table if suffix == "parquet" else feather.write_feather
    write(table({"latency_ms": [1.0, 2.0, 3.0, 4.0], name: cells}), path)
    samples = lk.read(path)
    assert isinstance(samples, lk.Samples)
    assert samples.max == 4e6
    if kept is None:
        assert name not in samples.columns
        assert any(f"column {name!r} holds" in note for note in samples.run.notes)
    else:
        found = samples.columns[name].tolist()
        assert [
            str(cell)[: len(word or "")] if word else cell
            for cell, word in zip(found, kept, strict=False)
        ] == kept


@pytest.mark.parametrize("unit", ["Y", "M", None])
def test_durations_without_a_length_are_refused(unit: str | None, tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.array([1, 2, 3], f"m8[{unit}]" if unit else "m8"))
    with pytest.raises(lk.CorruptInputError, match="has no length in seconds"):
        lk.read(path)


@pytest.mark.parametrize(
    "text",
    [
        '{"latency_ms": true}\n{"latency_ms": 2}\n{"latency_ms": 3}\n',
        '[{"latency_ms": 2}, {"latency_ms": true}, {"latency_ms": 3}]',
        '{"latency_ms": [1, true, 3]}',
    ],
)
def test_true_is_not_a_number(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(lk.LatencyKitError, match="no latency that can be read"):
        lk.read(path)


def test_objects_in_zipkins_tags_are_words(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    span = {"traceId": "1", "name": "n", "timestamp": 1_700_000_000_000_000, "duration": 100}
    tags = {"a": {"b": 1}, "c": [1], "d": "x"}
    path.write_text(json.dumps([span | {"id": str(k), "tags": tags} for k in range(5)]))
    (samples,) = lk.read_all(path, format="zipkin").values()
    assert isinstance(samples, lk.Samples)
    assert set(samples.columns["a"]) == {'{"b": 1}'}
    assert set(samples.columns["d"]) == {"x"}


def test_points_of_k6_that_were_all_skipped_get_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    head = "metric_name,timestamp,metric_value,method,name,scenario,status,url\n"
    path.write_text(head + "http_req_duration,x,abc,GET,u,default,200,u\n" * 3)
    with pytest.raises(lk.LatencyKitError) as refused:
        lk.read(path, lenient=True)
    assert "broke" not in str(refused.value)


def test_carriage_returns_alone_end_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"latency_ms": 1}\r{"latency_ms": 2}\r{"latency_ms": 3}\r')
    assert lk.read(path).max == 3e6
    lines = RAW.read_bytes().split(b"\n")
    path = tmp_path / "a.hlog"
    path.write_bytes(b"\r".join(lines))
    found, whole = lk.read(path).histogram(), lk.read(RAW).histogram()
    assert np.array_equal(found.counts, whole.counts)
    first = next(k for k, line in enumerate(lines) if line[:1].isdigit())
    lines[first + 3] = lines[first + 3][:40]
    path.write_bytes(b"\r".join(lines))
    with pytest.raises(lk.CorruptInputError):
        lk.read(path)


# ---------------------------------------------------------------- a word takes the memory of its length once, not once per row of its table

ROWS, LONG = 10_000, "y" * 200_000


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
    assert peak < 200 << 20  # rows × longest word are 2 GB and more
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
