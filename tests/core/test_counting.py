"""Counting raw values: every input gives the counts of bucket arithmetic, in bounded memory."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import latencykit as lk
from tests.conftest import PEAK, python

LARGE = [(b - 50, b + 5000) for b in (1 << 52, 1 << 53)]
RANGES = st.sampled_from(
    [(0, 10), (0, 3000), (500, 5000), (1 << 20, 1 << 40), *LARGE, (0, (1 << 63) - 1)]
)


def expected(values: np.ndarray, digits: int) -> tuple[list[int], list[int]]:
    """Index and counts by the definition of the layout, one value at a time."""
    index_of = lk.HdrBuckets(digits).index_of
    index, counts = np.unique([int(index_of(int(v))) for v in values], return_counts=True)
    return index.tolist(), counts.tolist()


@pytest.mark.slow
@given(RANGES, st.integers(0, 5), st.integers(0, 2**32), st.integers(1, 50))
@settings(max_examples=60, deadline=None)
def test_integers_go_where_the_layout_puts_them(bounds, digits, seed, size):
    values = np.random.default_rng(seed).integers(*bounds, size, endpoint=True)
    h = lk.Histogram.of(values, digits)
    assert (h.index.tolist(), h.counts.tolist()) == expected(values, digits)


@pytest.mark.parametrize("kind", ["f4", "f8", ">f8", ">i8", "i4", "u1", "u8"])
def test_every_type_of_number_is_counted_alike(kind):
    values = np.arange(0, 200)
    h = lk.Histogram.of(values.astype(kind))
    assert (h.index.tolist(), h.count) == (values.tolist(), 200)


@given(st.integers(0, 5), st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_floats_go_where_their_whole_part_goes(digits, seed):
    rng = np.random.default_rng(seed)
    edges = 2.0 ** rng.integers(0, 62, 20)
    small = [*rng.uniform(0, 5000, 20), 0.0, -0.0, 5e-324, 0.999]
    values = np.concatenate([edges, np.nextafter(edges, 0), small])
    h = lk.Histogram.of(values, digits)
    assert (h.index.tolist(), h.counts.tolist()) == expected(np.floor(values), digits)


@pytest.mark.parametrize(
    "shape", ["strided", "matrix", "fortran", "list", "chunks", "zero-dimensional"]
)
def test_the_shape_of_the_input_does_not_matter(shape):
    values = np.arange(6000)
    ways = {
        "strided": np.stack([values, values + 1], 1)[:, 0], "matrix": values.reshape(60, 100),
        "fortran": np.asfortranarray(values.reshape(60, 100)), "list": values.tolist(),
        "chunks": (values[at : at + 7] for at in range(0, 6000, 7)), "zero-dimensional": None,
    }  # fmt: skip
    if shape == "zero-dimensional":
        assert lk.Histogram.of(np.int64(7)).max == 7
        return
    h, plain = lk.Histogram.of(ways[shape]), lk.Histogram.of(values)
    assert (h.index.tolist(), h.counts.tolist()) == (plain.index.tolist(), plain.counts.tolist())


def test_masked_values_are_left_out():
    assert lk.Histogram.of(np.ma.masked_greater(np.arange(10), 6)).count == 7


@given(st.integers(1, 10**12), st.sampled_from([("ms", 1e6), ("s", 1e9), ("us", 1e3)]))
def test_a_float_of_whole_nanoseconds_never_falls_into_the_bucket_below(ns, unit):
    name, size = unit
    h = lk.Histogram.of([ns / size], unit=name)
    assert h.index.tolist() == [int(lk.HdrBuckets(3).index_of(ns))]


@pytest.mark.parametrize("bad", [-1.0, float("nan"), -float("nan"), float("inf"), 2.0**63])
@pytest.mark.parametrize("company", [[], [5.0], [1e6] * 40_000])
def test_what_cannot_be_counted_is_refused_wherever_it_stands(bad, company):
    for values in ([bad, *company], [*company, bad]):
        with pytest.raises(lk.InvalidArgumentError, match="can be counted"):
            lk.Histogram.of(np.array(values))


def test_other_refusals_say_why():
    with pytest.raises(lk.InvalidArgumentError, match="must be numbers"):
        lk.Histogram.of(np.array(["5ms"]))
    with pytest.raises(lk.InvalidArgumentError, match="can be counted"):
        lk.Histogram.of(np.array([(1 << 63) + 5], np.uint64))
    with pytest.raises(lk.InvalidArgumentError, match="can be counted"):
        lk.Histogram.of(np.array([5, -1]))
    with pytest.raises(lk.InvalidArgumentError, match="mixed"):
        lk.Histogram.of([np.array([5]), np.array([0.5])], unit="ms")


def test_arrow_arrays_and_parquet_batches(tmp_path):
    pa = pytest.importorskip("pyarrow", reason="the extra `arrow` is not installed")
    pq = pytest.importorskip("pyarrow.parquet")
    values = np.arange(1, 100_000)
    plain = lk.Histogram.of(values)
    table = pa.table({"latency": values, "other": values})
    pq.write_table(table, tmp_path / "x.parquet")
    batches = pq.ParquetFile(tmp_path / "x.parquet").iter_batches(10_000, columns=["latency"])
    chunks = pa.chunked_array([values[:5], values[5:]])
    for given_as in (pa.array(values), chunks, table["latency"], batches):
        h = lk.Histogram.of(given_as)
        assert h.index.tolist() == plain.index.tolist()
        assert h.counts.tolist() == plain.counts.tolist()
    with pytest.raises(lk.InvalidArgumentError, match="2 columns"):
        lk.Histogram.of(table.to_batches())
    with pytest.raises(lk.InvalidArgumentError, match="can be counted"):
        lk.Histogram.of(pa.array([1, None, 3]))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="/proc has the peak memory")
def test_counting_a_mapped_file_takes_less_than_20_megabytes_whatever_its_size(tmp_path):
    path = tmp_path / "big.npy"
    file = np.lib.format.open_memmap(path, "w+", np.int64, (8_000_000,))
    file[:] = 1_000_000
    file.flush()
    del file
    code = PEAK + (
        "import numpy as np, latencykit as lk\n"
        "lk.Histogram.of(np.arange(1000, 100000)); before = peak()\n"
        f"n = lk.Histogram.of(np.load({str(path)!r}, mmap_mode='r')).count\n"
        "print(n, peak() - before)"
    )
    done = python("-c", code)
    count, extra = map(int, done.stdout.split())
    assert count == 8_000_000
    assert extra < 20e6 < path.stat().st_size
