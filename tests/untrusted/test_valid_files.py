"""Files that are valid, and unusual: they are read, or refused for what they are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import latencykit as lk
from tests.conftest import RAW

if TYPE_CHECKING:
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
