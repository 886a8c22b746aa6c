"""Untrusted JSON: halves of characters, and numbers that are not valid."""

from __future__ import annotations

import json

import pytest

import latencykit as lk
from latencykit.io.json_text import without_halves
from tests.conftest import DATA


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
