"""A word takes the memory of its length once, not once per row of its table."""

from __future__ import annotations

import json
import tracemalloc
from typing import TYPE_CHECKING

import numpy as np
import pytest

import latencykit as lk
from latencykit.core.columns import LONGEST_WORD, Words, brief

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


@pytest.mark.parametrize("write", [csv, jsonl, zipkin, vegeta])
def test_a_long_word_takes_its_length_once(tmp_path: Path, write: Callable[[Path], None]) -> None:
    path = tmp_path / f"calls.{write.__name__}"
    write(path)
    tracemalloc.start()
    try:
        runs = lk.read_all(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 200 << 20  # rows × longest word are 16 GB
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
