"""Intervals that are folded while they are decoded: the same numbers as from the decoded arrays."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from latencykit import read
from latencykit.core import kernel
from latencykit.core.blocks import Block, SeriesFold, SlidingSums, TotalsFold
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


def made(seed: int, rows: int = 40, *, large: bool = False) -> EncodedBlock:
    """Rows of random counts, some empty; with `large`, some too large for the one walk."""
    rng, layout, texts = np.random.default_rng(seed), HdrBuckets(2), []
    for row in range(rows):
        index = np.flatnonzero(rng.random(3000) < rng.choice([0, 0.001, 0.3]))
        counts = rng.integers(1, 1 << int(rng.choice([1, 6, 20])), index.size)
        if large and index.size and row % 5 == 3:
            counts[0] = 1 << int(rng.integers(38, 55))
        highest = int(rng.choice([3_600_000_000, 3_600_000_000_000]))
        texts.append(encode(layout, index, counts, highest=highest))
    return EncodedBlock(np.arange(rows), open_payloads(texts), never)


def plain(block: Block) -> Block:
    return Block(block.rows, block.indptr, block.index, block.counts, block.buckets)


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_one_walk_gives_the_numbers_of_the_arrays(seed, large):
    block, again = made(seed, large=large), made(seed, large=large)
    folds = [TotalsFold() for _ in range(2)]
    warm = made(seed + 100)  # the sums have an array then, at times too narrow
    for fold in folds:
        fold.add(plain(warm))
    found, expected = block.folded(P, folds[0]), plain(again).folded(P, folds[1])
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(*(fold.sums() for fold in folds), strict=True):
        assert one[0] == other[0]
        np.testing.assert_array_equal(one[1:], other[1:])
    if kernel.in_use() == "C" and not large:
        held = block.payloads
        places = held.data, held.begins, held.ends, held.slots
        assert kernel.fold_varints(*places, P)[2] == 40  # nothing is left to numpy


@pytest.mark.parametrize("seed", range(3))
def test_sums_of_groups_and_series_in_one_walk(seed):
    group = np.sort(np.random.default_rng(seed).integers(0, 3, 40))
    found = []
    for block in (made(seed, large=seed == 2), plain(made(seed, large=seed == 2))):
        sums: dict[int, list] = {}
        sliding, series = SlidingSums(group, sums.__setitem__), SeriesFold(40, P)
        for part in (block.part(0, 11), block.part(11, 40)):
            sliding.add(part)
            series.add(part)
        sliding.close()
        found.append((sums, series))
    (ours, fast), (theirs, slow) = found
    assert ours.keys() == theirs.keys()
    for number, parts in ours.items():
        for one, other in zip(parts, theirs[number], strict=True):
            np.testing.assert_array_equal(one[1:], other[1:])
    np.testing.assert_array_equal(fast.count, slow.count)
    for one, other in zip(fast.edges(P), slow.edges(P), strict=True):
        np.testing.assert_array_equal(one, other)


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
