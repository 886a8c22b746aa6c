"""Laws for any values: what correction adds, what trimming leaves, what merging keeps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import latencykit as lk

VALUES = st.lists(st.integers(0, 10**7), min_size=1, max_size=60)
LAYOUTS = st.builds(lk.HdrBuckets, st.integers(0, 4), st.sampled_from([1, 100, 4096]))
PERCENTILES = np.linspace(0, 100, 21)


def counted(values: list[int], layout: lk.HdrBuckets) -> lk.Histogram:
    index, counts = np.unique(layout.index_of(np.asarray(values, np.int64)), return_counts=True)
    return lk.Histogram(layout, index, counts)


@given(VALUES, st.integers(1000, 10**6))
@settings(max_examples=60)
def test_correction_adds_what_its_rule_says_and_takes_nothing_away(values, interval):
    raw = lk.Histogram.of(np.asarray(values, np.int64))
    fixed = lk.correct(lk.Samples(duration=values), f"{interval}ns", force=True)
    assert fixed.count == sum(max(1, value // interval) for value in values)
    assert fixed.max == max(values)
    kept = dict(zip(fixed.index.tolist(), fixed.counts.tolist(), strict=True))
    assert all(
        kept[index] >= count
        for index, count in zip(raw.index.tolist(), raw.counts.tolist(), strict=True)
    )


@given(VALUES, st.lists(st.integers(1, 99), min_size=2, max_size=6, unique=True))
@settings(max_examples=60)
def test_a_trimmed_mean_lies_between_the_extremes_and_rises_with_what_it_keeps(values, tops):
    h = lk.Histogram.of(np.asarray(values, np.int64))
    means = [h.trimmed_mean(f"TM(:{top}%)") for top in sorted(tops)]
    assert (np.diff(means) >= -1e-12 * h.max).all()
    assert h.min <= means[0] * (1 + 1e-12)
    assert means[-1] <= h.max * (1 + 1e-12)
    assert means[-1] <= h.mean * (1 + 1e-12)


@pytest.mark.slow
@given(VALUES, VALUES, LAYOUTS, LAYOUTS)
@settings(max_examples=60)
def test_unlike_layouts_merge_without_loss_whatever_the_order(a, b, one, other):
    x, y = counted(a, one), counted(b, other)
    both, turned = x + y, y + x
    assert both.count == len(a) + len(b)
    assert (both.index.tolist(), both.counts.tolist()) == (
        turned.index.tolist(),
        turned.counts.tolist(),
    )
    found = both.percentile(PERCENTILES)
    assert (np.diff(found) >= 0).all()
    assert (found[0], found[-1]) == (both.min, both.max)


@given(
    VALUES,
    st.lists(st.tuples(st.integers(1, 99), st.integers(0, 10**7)), max_size=4),
    st.integers(0, 5),
    st.data(),
)
@settings(max_examples=60)
def test_percentiles_ascend_whatever_the_source_states(
    values, reported_percentiles, censored, data
):
    """What a tool printed, its extremes and values above a bound, all at once."""
    rows = sorted(dict(reported_percentiles).items())
    shown = np.maximum.accumulate([value for _, value in rows]).tolist() if rows else []
    h = lk.Histogram.of(np.asarray(values, np.int64))
    bound = float(data.draw(st.integers(0, 10**7)))
    reported_stats = {"min": float(min(values)), "max": float(max(values))}
    stated = lk.Histogram(
        h.buckets, h.index, h.counts, "ns", h.run, reported_stats,
        (tuple(float(p) for p, _ in rows), tuple(map(float, shown))), censored,
        bound if censored else float("inf"),
    )  # fmt: skip
    found = stated.percentile(PERCENTILES)
    assert (np.diff(found) >= 0).all()
