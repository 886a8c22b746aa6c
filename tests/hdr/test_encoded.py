"""Intervals that are decoded when they are asked for: the same counts, however they are taken."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from latencykit import read
from latencykit.core.blocks import Block
from latencykit.core.buckets import HdrBuckets
from latencykit.core.histogram_log import interval_series
from latencykit.errors import CorruptInputError
from latencykit.hdr.encoded import EncodedBlock
from latencykit.hdr.payload import Payload, Payloads, open_payloads
from latencykit.hdr.write import encode
from latencykit.io.hlog import HlogWriter, blocks_of_payloads

P = (0.0, 50.0, 99.0, 100.0, 25.0)


def never(row: int, reason: str) -> None:
    raise AssertionError((row, reason))


def made(seed: int, rows: int = 40) -> EncodedBlock:
    """Rows of random counts, some empty."""
    rng, layout, texts = np.random.default_rng(seed), HdrBuckets(2), []
    for _ in range(rows):
        index = np.flatnonzero(rng.random(3000) < rng.choice([0, 0.001, 0.3]))
        counts = rng.integers(1, 1 << int(rng.choice([1, 6, 20])), index.size)
        highest = int(rng.choice([3_600_000_000, 3_600_000_000_000]))
        texts.append(encode(layout, index, counts, highest=highest))
    return EncodedBlock(np.arange(rows), open_payloads(texts), never)


def plain(block: Block) -> Block:
    return Block(block.rows, block.indptr, block.index, block.counts, block.buckets)


def test_parts_rows_and_pickles_are_of_the_same_counts():
    block, whole = made(7), plain(made(7))
    some = np.array([3, 4, 17, 39])
    for one, other in (
        (block.take(some), whole.take(some)),
        (block.part(5, 20), whole.part(5, 20)),
        (pickle.loads(pickle.dumps(block)), whole),
        (block.numbered(block.rows + 9).kept().widened(), whole.numbered(whole.rows + 9)),
    ):
        for name in ("rows", "indptr", "index", "counts"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_a_corrupt_row_counts_as_empty_where_it_is_let_pass():
    good = made(1, rows=3).payloads
    bodies = [Payload(good[0].layout, good[k].body) for k in range(3)]
    bodies[1] = bodies[1]._replace(body=b"\x80")
    refused: list[int] = []
    (block,) = blocks_of_payloads(
        np.array([4, 5, 6]), Payloads.of(bodies), lambda row, reason: refused.append(row)
    )
    sums = block.folded(P)[0]
    assert refused == [5]
    assert sums[1] == 0
    np.testing.assert_array_equal(block.folded(P)[0], sums)
    assert refused == [5]


def test_a_corrupt_line_is_named_by_its_number(tmp_path, monkeypatch):
    monkeypatch.setattr("latencykit.io.hlog.KEEP", 0)
    path = tmp_path / "a.hlog"
    with path.open("wb") as stream:
        writer = HlogWriter(stream, 1e9)
        writer.header()
        for k in range(30):
            writer.interval(k, 1, HdrBuckets(3), np.array([k, 90]), np.array([1, 2]))
    lines = path.read_bytes().split(b"\n")
    lines[-5] = lines[-5][:-9] + b"AAAA" + lines[-5][-5:]
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(CorruptInputError, match=rf"a\.hlog:{len(lines) - 4}: "):
        interval_series(read(path), [50])
