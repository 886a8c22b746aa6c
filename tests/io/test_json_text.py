"""JSON: the head of a table is enough to refuse; halves of characters, numbers that are not valid."""

from __future__ import annotations

import gzip
import json
import os
import sys

import pytest

import latencykit as lk
from latencykit.io.json_text import without_halves
from tests.conftest import DATA

HEADS = {
    "a.jsonl": b'{"start": 1, "latency": 2}\n' * 9_000,
    "a.csv": b"start,latency\n" + b"1,2\n" * 40_000,
    "a.txt": b"17\n" * 60_000,
}


@pytest.mark.skipif(sys.platform == "emscripten", reason="files have no holes in a page")
@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("how", ["large", "compressed"])
@pytest.mark.parametrize("wrong", [{}, {"unit": "ms", "column": "other"}], ids=["unit", "column"])
def test_what_the_head_shows_is_refused_before_the_rest_is_read(tmp_path, name, how, wrong):
    path = tmp_path / name
    if how == "large":
        path.write_bytes(HEADS[name])
        os.truncate(path, 1 << 40)  # a hole: to read it would take an hour
    else:  # and the stream breaks after the head
        path.write_bytes(gzip.compress(HEADS[name] + os.urandom(1 << 20))[: -(1 << 19)])
    if not wrong and name == "a.txt":
        return  # bare numbers need no unit
    with pytest.raises(lk.InvalidArgumentError, match="no column 'other'" if wrong else "no unit"):
        lk.read(path, **wrong)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (r'"\ud83d\ude00"', "\U0001f600"),
        (r'"\uD83D\uDE00"', "\U0001f600"),
        (r'"\ud83d"', "\ufffd"),
        (r'"\ude00"', "\ufffd"),
        (r'"\ud83dx\ude00"', "\ufffdx\ufffd"),
        (r'"\ude00\ud83d"', "\ufffd\ufffd"),
        (r'"\ud83d\ud83d\ude00"', "\ufffd\U0001f600"),
        (r'"\\ud83d"', r"\ud83d"),
        (r'"\\\ud83d"', "\\\ufffd"),
    ],
)
def test_half_a_character_is_replaced_and_nothing_else(text, meant):
    assert json.loads(without_halves(text)) == meant
    assert len(without_halves(text)) == len(text)


def test_rows_with_half_a_character_are_read(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(
        "".join(f'{{"latency_ms": {k}, "op": "a\\ud800{k % 2}"}}\n' for k in range(1, 9))
    )
    found = lk.read_all(path)
    assert sum(len(series) for series in found.values()) == 8
    assert all("\ufffd" in name for name in found)


@pytest.mark.parametrize("value", [[], {}, "x", [1], {"a": 1}, True, None, "digits"])
@pytest.mark.parametrize(
    "name",
    ["oha-json/ctrlz-corrected/out.json", "fio-json/*/*.json", "k6-summary/ctrlz/summary.json"],
)
def test_json_of_another_shape_names_the_file_and_asks_for_it(name, value, tmp_path):
    (path,) = sorted((DATA / "formats").glob(name))[:1] or pytest.fail(name)
    record = json.loads(path.read_text()[path.read_text().index("{") :])
    copy = tmp_path / "out.json"
    for key in list(record)[:12]:
        text = json.dumps(record | {key: "@"}).replace(
            '"@"', "9" * 5000 if value == "digits" else json.dumps(value)
        )
        copy.write_text(text)
        try:
            lk.read_all(copy)
        except lk.LatencyKitError as error:
            said = error
        else:
            continue
        assert str(copy) in str(said)
        assert "bug in the reader" not in str(said)
