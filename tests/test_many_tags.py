"""Logs of many tags: their tags are read together, and each is what it is by itself."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import latencykit as lk
from latencykit.core import blocks
from latencykit.io.hlog import HlogPart

TAGS = 40


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Tags of two layouts that take turns, the last of them much longer than the others."""
    rng = np.random.default_rng(1)
    logs = []
    for digits in (2, 3):
        count = TAGS * 60
        tags = rng.integers(0, TAGS + 5, count).clip(0, TAGS - 1)
        samples = lk.Samples(
            start=np.sort(rng.uniform(0, 30e9, count)),
            duration=np.exp(rng.normal(14, 1, count)).astype(np.int64),
            tag=np.array([f"/item/{k}" for k in range(TAGS)])[tags],
        )
        logs.append(samples.to_log("1s", digits=digits))
    found = tmp_path_factory.mktemp("tags") / "many.hlog"
    lk.write(lk.merge(logs), found)
    return found


@pytest.fixture(params=[1 << 25, 20_000, 1_000])
def size(request, monkeypatch):
    """Bytes that are held: of all tags, of some, and less than the longest takes."""
    monkeypatch.setattr(blocks, "_TAG_BYTES", request.param)
    return request.param


@pytest.mark.parametrize("unit", ["ns", "ms"])
def test_each_tag_is_what_it_is_by_itself(path, size, unit):
    log = lk.read(path, unit="ns").to_unit(unit)
    parts = log.by_tag()
    assert len(parts) == TAGS
    for tag, part in parts.items():
        alone = log.tagged(tag)
        assert part == alone
        assert part.histogram() == alone.histogram()
        assert part.between(5, 20).histogram() == alone.between(5, 20).histogram()
        assert part.run == alone.run
    assert lk.merge(list(parts.values())).histogram() == log.histogram()


def test_they_are_read_together(path, monkeypatch):
    read = []
    blocks_of = HlogPart.blocks
    monkeypatch.setattr("latencykit.io.hlog.KEEP", 0)
    monkeypatch.setattr(
        HlogPart, "blocks", lambda part, rows: read.append(rows.size) or blocks_of(part, rows)
    )
    log = lk.read(path, unit="ns")
    for part in log.by_tag().values():
        assert part.histogram().count
        assert part.evidence().rows([50, 99])
    assert sum(read) <= 2 * len(log)
    assert 1 <= len(read) <= 2


def test_they_travel_and_come_in_any_order(path):
    log = lk.read(path, unit="ns")
    parts = pickle.loads(pickle.dumps(log.by_tag()))
    for tag in reversed(parts):
        assert parts[tag].percentile(99) == log.tagged(tag).percentile(99)


def test_samples_of_each_tag_are_what_they_are_by_themselves():
    rng = np.random.default_rng(2)
    samples = lk.Samples(
        start=rng.integers(0, 10**9, 500),
        duration=rng.integers(1, 10**6, 500),
        tag=np.array(["", "get", "set"])[rng.integers(0, 3, 500)],
        host=rng.integers(0, 4, 500).astype(str),
    )
    parts = samples.by_tag()
    assert list(parts) == ["", "get", "set"]
    for tag, part in parts.items():
        alone = samples.tagged(tag)
        assert part.to_frame().equals(alone.to_frame())
        assert (part.run, part.epoch) == (alone.run, alone.epoch)
        assert np.array_equal(part.offsets, alone.offsets)
    assert list(lk.Samples(duration=[1, 2]).by_tag()) == [""]
