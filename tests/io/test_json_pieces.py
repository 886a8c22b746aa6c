"""Lists in JSON are read in pieces, and mean what they mean as a whole; the head is enough to refuse."""

from __future__ import annotations

import gzip
import json
import os
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import latencykit as lk
from latencykit.errors import CorruptInputError
from latencykit.io import json_text
from latencykit.io.source import DocumentSource, Source

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


def test_a_compressed_array_is_refused_from_its_head(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.arange(1, 200_000))
    path.write_bytes(gzip.compress(path.read_bytes(), 1)[:-1000])
    with pytest.raises(lk.InvalidArgumentError, match="no column 'other'"):
        lk.read(path, column="other")
    with pytest.raises(CorruptInputError, match="not an array of numbers"):
        lk.read(path, unit="ns")
