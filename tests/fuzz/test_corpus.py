"""Replay the fuzzing corpus: only our own errors, in bounded time and memory."""

from __future__ import annotations

import tracemalloc

import pytest

from tests.fuzz.targets import CORPUS, TARGETS, seeds

MOST = 256 << 20
KEPT = sorted(path for path in CORPUS.glob("*/*") if path.parent.name in TARGETS)


@pytest.mark.parametrize(
    "path", [pytest.param(path, id=f"{path.parent.name}/{path.name}") for path in KEPT]
)
def test_what_once_broke_something_breaks_nothing(path):
    tracemalloc.start()
    try:
        TARGETS[path.parent.name](path.read_bytes())
        assert tracemalloc.get_traced_memory()[1] <= MOST
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("target", ["codec", "log"])  # tests of formats read those of `sniff`
def test_real_outputs_pass(target):
    begin_with = list(seeds(target))
    assert len(begin_with) > 10
    for data in begin_with:
        TARGETS[target](data)
