"""Histograms: laws of their buckets and sums, and the counting of any numbers."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import latencykit as lk
from tests.conftest import PEAK, python

VALUES = st.lists(st.integers(0, 2**62), min_size=1, max_size=60)
PERCENTILES = [0, 1, 25, 50, 75, 90, 99, 99.9, 99.99, 100]


@given(VALUES, st.integers(0, 5), st.sampled_from([1, 2, 1000, 20_000, 1 << 20]))
def test_a_value_lies_in_its_bucket_and_the_bucket_is_narrow(values, digits, lowest):
    layout = lk.HdrBuckets(digits, lowest)
    given_values = np.asarray(values, np.int64)
    index = layout.index_of(given_values)
    low, high = layout.low_steps(index), layout.high_steps(index)
    assert ((low <= given_values) & (given_values <= high)).all()
    assert (layout.index_of(low) == index).all()
    assert (layout.index_of(high) == index).all()
    most = np.maximum(low / 10.0**digits * 1.0000001, 1 << layout.unit_magnitude)
    assert ((high - low + 1) <= most).all()


@pytest.mark.slow
@given(VALUES)
def test_quantiles_ascend_and_stay_within_the_extremes(values):
    h = lk.Histogram.of(np.asarray(values, np.int64))
    found = h.percentile(PERCENTILES)
    assert (np.diff(found) >= 0).all()
    assert found[0] == h.min
    assert found[-1] == h.max
    assert h.count == len(values)


@pytest.mark.slow
@given(VALUES)
def test_a_percentile_is_never_below_the_exact_nearest_rank(values):
    exact = np.sort(np.asarray(values, np.int64))
    h = lk.Histogram.of(exact)
    for p in PERCENTILES[1:]:
        rank = max(1, int(np.ceil(np.nextafter(p, 0) * exact.size / 100)))
        assert exact[rank - 1] <= h.percentile(p) <= exact[rank - 1] * 1.001 + 1


@pytest.mark.slow
@given(VALUES, VALUES, VALUES)
@settings(max_examples=50)
def test_merging_is_associative_commutative_and_loses_nothing(a, b, c):
    x, y, z = (lk.Histogram.of(np.asarray(v, np.int64)) for v in (a, b, c))
    left, right, turned = (x + y) + z, x + (y + z), z + y + x
    for other in (right, turned):
        assert left.index.tolist() == other.index.tolist()
        assert left.counts.tolist() == other.counts.tolist()
    assert left.count == len(a) + len(b) + len(c)
    assert (left - z).counts.tolist() == (x + y).counts.tolist()


@pytest.mark.slow
@given(VALUES, VALUES, st.floats(0, 100))
def test_a_pooled_percentile_lies_within_those_of_the_parts(a, b, p):
    x, y = (lk.Histogram.of(np.asarray(v, np.int64)) for v in (a, b))
    both = sorted((x.percentile(p), y.percentile(p)))
    assert both[0] <= (x + y).percentile(p) <= both[1]


def test_agrees_with_the_hdrhistogram_package():
    hdrh = pytest.importorskip("hdrh.histogram", reason="hdrhistogram has no wheel here")
    rng = np.random.default_rng(5)
    values = rng.lognormal(10, 2, 5000).astype(np.int64)
    theirs = hdrh.HdrHistogram(1, 10**12, 3)
    for value in values.tolist():
        theirs.record_value(value)
    h = lk.Histogram.from_hdrh(theirs)
    assert h.index.tolist() == lk.Histogram.of(values).index.tolist()
    assert (h.mean, h.max) == (theirs.get_mean_value(), theirs.get_max_value())
    back = h.to_hdrh()
    assert back.get_total_count() == 5000
    assert back.get_value_at_percentile(99) == theirs.get_value_at_percentile(99)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({"unit": "us"}, {"unit": "ns"}),
        ({"measure": "service"}, {"measure": "response"}),
        ({"corrected": "none"}, {"corrected": "tool"}),
    ],
)
def test_what_must_not_be_added_is_refused(a, b):
    x, y = (lk.Histogram.of([1], unit=one.get("unit", "ns"), run=lk.Run(**one)) for one in (a, b))
    with pytest.raises(lk.IncompatibleDataError, match="cannot be merged"):
        x + y


def test_count_and_share_never_flatter():
    h = lk.Histogram.of([1000, 2000, 3000])
    top = h.percentile(50)
    assert h.percentile_of(top) == pytest.approx(200 / 3)
    assert h.percentile_of(top - 0.5) == pytest.approx(100 / 3)
    assert h.count_above(top - 0.5) == 2


def test_printed_percentiles_are_given_back_as_printed():
    stats, values = {"max": 7.71e6, "mean": 1.3e6}, [1.26e6, 1.37e6, 4.04e6]
    h = lk.Histogram.from_percentiles([50, 90, 99], values, 24018, reported_stats=stats)
    assert h.percentile([50, 90, 99, 100]).tolist() == [1.26e6, 1.37e6, 4.04e6, 7.71e6]
    assert 1.37e6 <= h.percentile(95) <= 4.04e6
    assert (h.count, h.mean) == (24018, 1.3e6)


def test_a_minimum_above_the_lowest_percentile_is_not_a_minimum():
    stats, values = {"min": 7.0, "max": 8.0}, [1.0, 1.0, 5.0]
    h = lk.Histogram.from_percentiles([50, 90, 99], values, 100, reported_stats=stats)
    assert h.percentile([0, 50, 90, 99, 100]).tolist() == [1.0, 1.0, 1.0, 5.0, 8.0]
    assert h.min == 1.0


def test_what_is_censored_reads_at_least():
    counted, late = (np.array([1000]), np.array([92])), {"censored": 8, "censored_at": 2e9}
    h = lk.Histogram(lk.HdrBuckets(3), *counted, run=lk.Run(timeouts=8), **late)
    assert h.percentile(50) == 1000
    assert h.percentile(95) == 2e9
    row = h.percentile_rows([95])[0]
    assert (row.high, row.supported) == (float("inf"), False)
    longest = replace(h, reported_stats={"max": 3e9}).percentile([99, 100])
    assert longest.tolist() == [2e9, 3e9]
    assert h.percentile_of(1e12) == 92.0
    assert "max" not in h.summary().stats
    with pytest.raises(lk.InputTooLargeError, match="corrupt"):
        replace(lk.Histogram.of([1, 2, 3]), censored=2**64 - 1, censored_at=4.0)


def test_a_summary_answers_only_what_it_holds():
    s = lk.Summary({"mean": 5.0}, run=lk.Run(tool="go test -bench"))
    with pytest.raises(lk.DataNotAvailableError, match="has no p99, only mean"):
        s.percentile(99)


@pytest.mark.parametrize("bound", [1e6, 41e6, 60e6, 70e6])
def test_percentiles_ascend_within_what_the_source_states(bound):
    """A tool's own extremes lie inside their buckets; censored values lie among the others."""
    stated = {"min": 41e6, "max": 60e6}
    counted = lk.Histogram.of([41_000_000, 50_000_000, 60_000_000])
    h = replace(counted, reported_stats=stated, censored=2, censored_at=bound)
    values = h.percentile(np.linspace(0, 100, 41))
    assert (np.diff(values) >= 0).all()
    assert values[0] == h.min
    assert values[-1] == max(h.max, bound)


# ---------------------------------------------------------------- counting

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


@pytest.mark.parametrize("kind", ["f4", "f8", ">f8", ">i8", "i4", "u1", "u8", "m8[ns]"])
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
