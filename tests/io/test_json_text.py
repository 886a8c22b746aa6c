"""JSON: lists are read in pieces, the head is enough to refuse; halves of characters, numbers that are not valid."""

from __future__ import annotations

import gzip
import json
import os
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import latencykit as lk
from latencykit.errors import CorruptInputError
from latencykit.io import json_text
from latencykit.io.json_text import without_halves
from latencykit.io.source import DocumentSource, Source
from tests.conftest import DATA

PIECE = 7  # bytes: most entries are cut by its end
TEXT = st.text(st.sampled_from('a,"\\[]{}é\n 1'), max_size=9)
VALUES = st.recursive(
    st.integers() | st.floats(allow_nan=False) | TEXT | st.none() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def entries(tmp_path_factory):
    """The entries of a text, read in pieces."""
    path = tmp_path_factory.mktemp("pieces") / "a.json"
    path.write_text("[]")

    def read(text: str) -> list[object]:
        source = DocumentSource(Source(path), text.encode("utf-8", "surrogateescape"), 0)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(json_text, "_LIST_PIECE", PIECE)
            patch.setattr(json_text, "HEAD_SIZE", PIECE)
            return [entry for piece in json_text.list_pieces(source) for entry in piece]

    return read


@settings(deadline=None, max_examples=150)
@given(
    st.lists(VALUES, max_size=8), st.sampled_from([None, 0, 3]), st.sampled_from(["", " ", "\n"])
)
def test_pieces_of_a_list_are_its_entries(entries, values, indent, around):
    text = around + json.dumps(values, indent=indent, ensure_ascii=bool(indent)) + around
    assert entries(text) == values


@settings(deadline=None, max_examples=150)
@given(st.lists(VALUES, min_size=1, max_size=6), st.data())
def test_what_is_not_json_as_a_whole_is_none_in_pieces(entries, values, data):
    text = json.dumps(values, indent=data.draw(st.sampled_from([None, 1])))
    at = data.draw(st.integers(1, len(text) - 1))
    text = (
        text[:at]
        + data.draw(st.sampled_from(["", ",", "]", "}", '"', "x", "[", "\\"]))
        + (text[at + data.draw(st.integers(0, 2)) :])
    )
    try:
        expected = json.loads(text)
    except ValueError:
        with pytest.raises((CorruptInputError, json_text.SeveralDocuments)):
            entries(text)
    else:
        assert entries(text) == expected


@pytest.mark.parametrize(
    ("text", "line", "seen"),
    [
        ("[1,\n2,\n3,\n4,\n5 6,\n7]", 5, "corrupt near '6,"),
        ("[1,\n2,\n3,\n4,\n", 5, "ends in the middle"),
        ("[11111,\n22222,\n33333,\n]", 3, "comma without an entry"),
    ],
)
def test_a_corrupt_entry_has_its_line(entries, text, line, seen):
    with pytest.raises(CorruptInputError, match=rf"json:{line}: .*{seen}"):
        entries(text)


HEADS = {
    "a.json": b"[" + b"1, 2, 3, " * 20_000,
    "b.json": b"[" + b'{"start": 1, "latency": 2},' * 9_000,
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
    if not wrong and name in ("a.json", "a.txt"):
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
