"""go test -bench: counts, extra units, events."""

from __future__ import annotations

import tracemalloc

import pytest

from latencykit.errors import CorruptInputError


def test_thousands_of_packages_take_no_more_memory_than_their_text(read_text):
    text = "".join(f"pkg: a/p{n}\nBenchmarkX-8 100 5 ns/op\n" for n in range(1500))
    tracemalloc.start()
    try:
        series = read_text(text)
        assert tracemalloc.get_traced_memory()[1] < 100 * len(text)
    finally:
        tracemalloc.stop()
    assert len(series) == 1500
    with pytest.raises(CorruptInputError, match=r":2998: the result of"):
        read_text(
            text.replace("a/p1498\nBenchmarkX-8 100 5 ns/op", "a/p1498\nBenchmarkX-8 1 -1 ns/op")
        )
