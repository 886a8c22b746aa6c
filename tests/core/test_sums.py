"""Sums of unlike HDR layouts: counts are exact, values stay, and the cost is stated."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import latencykit as lk
from latencykit.core import blocks
from latencykit.core.blocks import Block, MemoryPart, TotalsFold
from latencykit.core.buckets import HdrBuckets, add_up, cells_of, coarser, grid_of
from latencykit.core.histogram import Histogram, merge_histograms
from latencykit.core.histogram_log import HistogramLog, interval_series, scan
from latencykit.core.run import Run
from latencykit.io.hgrm import hgrm_lines
from latencykit.io.hlog import HlogWriter
from latencykit.io.writing import write_series as write

steady = settings(derandomize=True, deadline=None, max_examples=40)

WHOLE = st.builds(HdrBuckets, st.integers(1, 4), st.sampled_from([1, 3, 64, 1000, 20_000, 1 << 20]))
DYADIC = st.builds(
    lambda digits, power: HdrBuckets(digits, 1, 2.0**power), st.integers(1, 5), st.integers(-60, 60)
)
ANY_SCALE = st.builds(
    lambda digits, scale: HdrBuckets(digits, 1, scale), st.integers(1, 4), st.floats(1e-15, 1e15)
)


@st.composite
def counted(draw, layouts, *, top=1 << 40):
    """A histogram, and the values that it counted: in steps from 0 on, and often few ones."""
    layout = draw(layouts)
    numbers = st.integers(0, top) | st.integers(0, 3000)
    values = np.array(draw(st.lists(numbers, min_size=1, max_size=12)), np.int64)
    steps = HdrBuckets(layout.digits, layout.lowest).index_of(values)
    index, counts = np.unique(steps, return_counts=True)
    return Histogram(layout, index, counts.astype(np.int64)), values * layout.scale


def content(h):
    """Edges and counts: what a histogram says, whatever it calls its buckets."""
    edges = h.buckets.low(h.index), h.buckets.high(h.index)
    kept = np.stack([*edges, h.counts.astype(np.float64)], 1)
    return kept[np.lexsort(kept.T[::-1])].tolist()


def exact(values, p):
    return np.sort(values)[max(1, int(np.ceil(np.nextafter(p, -1) * values.size / 100))) - 1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "layouts", [WHOLE, DYADIC, ANY_SCALE], ids=["whole", "dyadic", "any scale"]
)
@given(data=st.data(), p=st.floats(0.01, 100))
@steady
def test_a_percentile_of_a_sum_encloses_that_of_the_pooled_values(layouts, data, p):
    parts = data.draw(st.lists(counted(layouts), min_size=2, max_size=4))
    total = merge_histograms([h for h, _ in parts])
    pooled = np.concatenate([values for _, values in parts])
    assert total.count == pooled.size
    truth, above = exact(pooled, p), 1 + 1e-9
    (row,) = total.percentile_rows([p])
    assert row.bucket_low <= truth * above
    assert truth <= row.value * above
    assert row.value == row.bucket_high == total.percentile(p)
    assert total.min <= pooled.min() * above
    assert pooled.max() <= total.max * above


@pytest.mark.slow
@given(data=st.data())
@steady
def test_no_bucket_of_a_sum_is_wider_than_its_sources_digits_and_note(data):
    parts = [h for h, _ in data.draw(st.lists(counted(WHOLE), min_size=2, max_size=4))]
    total = merge_histograms(parts)
    low, high = total.buckets.low(total.index), total.buckets.high(total.index)
    digits = 2.0 ** -grid_of(total.buckets).half_magnitude
    for a, b in zip(low, high, strict=True):
        edges = [(h.buckets.low(h.index), h.buckets.high(h.index)) for h in parts]
        widths = [(high - low).max() for low, high in edges if low.max() >= a]
        assert b - a <= max(digits * b, *widths)
    widest = float(np.max((high - low) / np.maximum(high, 1)))
    if not total.run.notes:
        assert isinstance(total.buckets, HdrBuckets)
        assert len({h.buckets.digits for h in parts if h.index[-1]}) <= 1
        return
    (note,) = total.run.notes
    stated = float(re.search(r"up to ([\d.e+-]+) % wide", note)[1]) / 100
    assert widest <= stated
    assert stated <= 1.1 * max(widest, 2.0 ** -grid_of(total.buckets).half_magnitude)


@pytest.mark.slow
@pytest.mark.parametrize("layouts", [WHOLE, DYADIC], ids=["whole", "dyadic"])
@given(data=st.data(), digits=st.integers(1, 5))
@steady
def test_order_and_grouping_do_not_matter_where_digits_are_equal(layouts, data, digits):
    alike = layouts.map(lambda layout: HdrBuckets(digits, layout.lowest, layout.scale))
    a, b, c = (h for h, _ in data.draw(st.tuples(*[counted(alike)] * 3)))
    for total in (a + (b + c), c + a + b, merge_histograms([b, c, a])):
        assert content(total) == content((a + b) + c)


@given(
    one=counted(WHOLE | DYADIC | ANY_SCALE),
    other=WHOLE | DYADIC | ANY_SCALE,
    zeros=st.integers(0, 9),
)
@steady
def test_what_holds_no_values_or_zeros_alone_changes_no_bucket(one, other, zeros):
    h, _ = one
    empty = Histogram(other, np.zeros(0, np.int64), np.zeros(0, np.int64))
    for total in (h + empty, empty + h, empty + h + empty):
        assert total.buckets == h.buckets
        assert total.index.tolist() == h.index.tolist()
        assert total.counts.tolist() == h.counts.tolist()
        assert total.run.notes == h.run.notes
    if zeros and not other.unit_magnitude and not h.buckets.unit_magnitude:
        total = h + Histogram(other, np.zeros(1, np.int64), np.array([zeros]))
        assert total.buckets == h.buckets
        assert total.count == h.count + zeros
        assert total.run.notes == ()


@pytest.mark.slow
@given(data=st.data())
@steady
def test_ratios_of_powers_of_two_cost_nothing(data):
    """DoubleHistogram recorders choose their ratio so that no value is below the first doubling."""
    parts = []
    for power in data.draw(st.lists(st.integers(-15, 15), min_size=2, max_size=5)):
        h, _ = data.draw(counted(st.just(HdrBuckets(3, 1, 2.0**power)), top=1 << 20))
        parts.append(replace(h, index=np.where(h.index > 0, h.index + 1024, 0)))
    total = merge_histograms(parts)
    assert isinstance(total.buckets, HdrBuckets)
    assert total.run.notes == ()
    want: dict[float, int] = {}
    for h in parts:
        for low, count in zip(h.buckets.low(h.index).tolist(), h.counts.tolist(), strict=True):
            want[low] = want.get(low, 0) + count
    low = total.buckets.low(total.index).tolist()
    assert dict(zip(low, total.counts.tolist(), strict=True)) == want


def test_coarse_steps_keep_their_own_edges_beside_fine_ones():
    fine = Histogram.of(np.arange(1, 22), digits=3)
    layout = HdrBuckets(3, 1 << 19)
    wide = Histogram(layout, layout.index_of([7, 1 << 33]), np.array([1, 1]))
    total = fine + wide
    assert total.percentile([50, 90]).tolist() == [12, 21]
    assert (total.percentile(91), total.min) == (21, 0)
    assert total.percentile(95) == (1 << 19) - 1
    assert total.mean == pytest.approx((fine.mean * 21 + wide.mean * 2) / 23, rel=1e-12)
    (note,) = total.run.notes
    assert "up to 100 % wide (0 to 524" in note


# ---------------------------------------------------------------- no end above


@pytest.mark.parametrize(("small", "large"), [(1e-15, 1e15), (2.0**-900, 2.0**900), (1.0, 2.0**62)])
def test_ranges_beyond_63_bits_neither_overflow_nor_lose_counts(small, large):
    a = Histogram(HdrBuckets(3, 1, small / 1500), np.array([1500, 2600]), np.array([1 << 40, 3]))
    b = Histogram(HdrBuckets(3, 1, large / 1500), np.array([1500, 55_000]), np.array([5, 1 << 61]))
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        for total in (a + b, b + a, a + b + a):
            assert total.count in (a.count + b.count, 2 * a.count + b.count)
            assert total.min == pytest.approx(a.min, rel=2e-3)
            assert total.percentile(0) == total.min
            middle = total.percentile(100 * a.count / total.count / 2)
            assert middle == pytest.approx(a.percentile(50), rel=2e-3)
            assert total.max == pytest.approx(b.max, rel=2e-3)
            assert total.mean == pytest.approx(b.mean, rel=2e-3)
            assert np.isfinite(total.std)
        assert len(hgrm_lines(a + b, 1.0)) > 5


def test_values_at_the_end_of_63_bits_stay_in_their_bucket():
    top = (1 << 62) + (1 << 61) + 12345
    fine, coarse = Histogram.of([top, 1], digits=5), Histogram.of([top], digits=2)
    total = fine + coarse
    assert total.buckets == HdrBuckets(2)
    assert total.counts.tolist() == [1, 2]
    assert total.buckets.low(total.index[-1]) <= top <= total.buckets.high(total.index[-1])


@given(
    layout=WHOLE | DYADIC,
    grid=WHOLE | DYADIC,
    values=st.lists(st.integers(0, (1 << 62) - 1), min_size=1, max_size=20),
)
@steady
def test_cells_are_those_that_the_values_are_counted_in(layout, grid, values):
    """By whole numbers of any size, against the arithmetic of indices."""
    index = HdrBuckets(layout.digits, layout.lowest).index_of(np.array(values))
    first, last = cells_of(grid, layout, index)
    sub, shift = layout.parts(index)
    for k in range(index.size):
        low = int(sub[k]) << int(shift[k])
        high = low + (1 << int(shift[k])) - 1
        for value, cell in ((low, first[k]), (high, last[k])):
            assert holds(grid, int(cell), value, layout.scale / grid.scale)


def holds(grid, cell, value, ratio):
    """Whether a cell of a grid contains N steps of another; in whole numbers."""
    up, down = (int(ratio), 1) if ratio >= 1 else (1, int(1 / ratio))
    sub, shift = (int(part[()]) for part in grid.parts(cell))
    return (sub << shift) * down <= value * up < ((sub + 1) << shift) * down


def test_what_does_not_fit_a_layout_is_refused():
    h = Histogram(HdrBuckets(3, 1, 2.0**80), np.array([2000]), np.array([1]))
    with pytest.raises(lk.InvalidArgumentError, match="do not fit"):
        h.rebucket(HdrBuckets(3))


# ---------------------------------------------------------------- logs


def log_of(rows, **facts):
    """A log of (layout, index, counts), one an interval, a block each."""
    parts = [
        Block(np.array([k]), np.array([0, len(index)]), np.array(index), np.array(counts), layout)
        for k, (layout, index, counts) in enumerate(rows)
    ]
    return HistogramLog(np.arange(len(rows)), np.ones(len(rows)), [MemoryPart(parts)], **facts)


def mixed(intervals, seed=7):
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(intervals):
        layout = HdrBuckets(3, 1, float(rng.uniform(1, 2) * 2.0 ** rng.integers(-20, 4)))
        index, counts = np.unique(rng.integers(1024, 6000, 40), return_counts=True)
        rows.append((layout, index, counts))
    return rows


def test_a_log_of_many_layouts_is_summed_within_bounds(monkeypatch):
    """What is put aside and added up on the way is what would have been added in the end."""
    rows = mixed(60)
    plain = log_of(rows).histogram()
    monkeypatch.setattr(blocks, "_DENSE", 1 << 16)
    monkeypatch.setattr(blocks, "_ASIDE", 200)
    fold = TotalsFold()
    scan(log_of(rows), fold)
    assert len(fold._dense) < 60
    assert fold._waiting <= 300
    aside = log_of(rows).histogram()
    assert aside.count == plain.count == sum(int(counts.sum()) for *_, counts in rows)
    p = [1, 25, 50, 90, 99, 100]
    assert aside.percentile(p) == pytest.approx(plain.percentile(p), rel=3e-3)
    assert sum(int(counts.sum()) for *_, counts in fold.sums()) == plain.count


def test_files_of_unlike_layouts_add_up_like_one(tmp_path):
    rows = [
        (HdrBuckets(3, 1, 2.0 ** (k % 5)), np.array([1024 + 31 * k, 4000]), np.array([k + 1, 2]))
        for k in range(12)
    ]
    for name, some in (("a", rows[:5]), ("b", rows[5:]), ("all", rows)):
        with (tmp_path / f"{name}.hlog").open("wb") as stream:
            writer = HlogWriter(stream, 1.7e9, "ns")
            writer.header()
            for k, row in enumerate(some):
                writer.interval(k, 1.0, *row)
    a, b, whole = (lk.read(tmp_path / f"{name}.hlog") for name in ("a", "b", "all"))
    together = lk.merge([a, b], align="relative").histogram()
    for summed in (a.histogram() + b.histogram(), together):
        assert content(summed) == content(whole.histogram())
    assert whole.histogram().run.notes == whole.run.notes
    slots = whole.resample("4s")
    assert sum(interval_series(slots).count) == whole.histogram().count
    assert content(slots.histogram()) == content(whole.histogram())


def test_intervals_put_together_in_a_file_say_what_that_costs(tmp_path):
    layout = HdrBuckets(3, 1 << 19)
    log = log_of([(HdrBuckets(3), [5, 9], [3, 4]), (layout, [0, 3000], [1, 1])], run=Run(unit="ns"))
    path = tmp_path / "slots.hlog"
    write({"": log.resample("10s")}, path)
    cost = "#[unlike histogram layouts were added: a bucket is up to 100 % wide (0 to 524 µs)]"
    assert cost in path.read_text()
    back = lk.read(path)
    assert any("up to 100 % wide" in note for note in back.run.notes)
    assert back.histogram().count == 9
    again, before = (one.histogram().percentile([50, 80, 100]) for one in (back, log))
    assert again.tolist() == before.tolist()
    write({"": log}, tmp_path / "whole.hgrm")
    rows = lk.read(tmp_path / "whole.hgrm")
    assert rows.count == 9
    assert any("up to 100 % wide" in note for note in rows.run.notes)


def test_an_interval_that_no_reader_could_hold_is_not_written(tmp_path):
    log = log_of([(HdrBuckets(3, 1, 1e-15), [2000], [1]), (HdrBuckets(3, 1, 1e15), [2000], [1])])
    reason = "cannot contain values that differ by more than"
    with pytest.raises(lk.InvalidArgumentError, match=reason):
        write({"": log.resample("10s")}, tmp_path / "x.hlog")
    write({"": log.resample("10s")}, tmp_path / "x.json")
    assert lk.read(tmp_path / "x.json").histogram().count == 2


def test_a_common_layout_has_the_finest_steps_and_the_fewest_digits():
    assert coarser(HdrBuckets(3, 1000), HdrBuckets(2, 1)) == HdrBuckets(2)
    assert coarser(HdrBuckets(3, 1, 8.0), HdrBuckets(3, 1, 0.37)) == HdrBuckets(3, 1, 0.37)
    zeros = ((HdrBuckets(3), 2), (HdrBuckets(1, 1, 1e200), 3))
    layout, index, counts = add_up([(one, np.array([0]), np.array([n])) for one, n in zeros])
    assert (index.tolist(), counts.tolist()) == ([0], [5])
    assert layout.digits == 3


def test_counts_that_wrap_to_a_number_are_refused():
    most = (HdrBuckets(3), np.array([5]), np.array([(1 << 63) - 1]))
    with pytest.raises(lk.InputTooLargeError, match="2\\^63"):  # the sum of three is positive again
        log_of([most] * 3).histogram()


def test_an_interval_counts_once():
    log = log_of(mixed(9))
    assert log[[8, 2, 5]].histogram().count == sum(log[k].count for k in (2, 5, 8))
    with pytest.raises(lk.InvalidArgumentError, match="more than once"):
        log[[2, 2]]
