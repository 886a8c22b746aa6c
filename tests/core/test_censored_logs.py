"""Logs of histograms whose last bucket is open-ended: no count above it is lost, or looks better."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import latencykit as lk
from latencykit._arrays import as_positions
from latencykit.core.blocks import MemoryPart, block_of_rows
from latencykit.core.histogram import Histogram, as_interval, merge_histograms, of_interval
from latencykit.core.histogram_log import HistogramLog, interval_series
from latencykit.io.parts import for_transfer
from latencykit.views.page_data import page_bins
from tests.conftest import log_of_values

BOUNDS = np.array([1e6, 1e7, 1e8, 1e9])


def log_of(seed, bounds=BOUNDS, size=24, tags=("",)):
    """Values of a wide spread, counted between bounds; what is above the last is only counted."""
    rng = np.random.default_rng(seed)
    rows = np.repeat(np.arange(size), as_positions(rng.poisson(60, size)))
    values = rng.lognormal(17, 2, rows.size)
    low, high = np.append(0.0, bounds), np.append(bounds, bounds[-1])
    buckets = lk.EdgeBuckets(low, high, open_ended=True)
    block = block_of_rows(rows, buckets.index_of(values), size, buckets)
    codes = np.arange(size) % len(tags)
    log = HistogramLog(
        np.arange(size) * 15.0, np.full(size, 15.0), [MemoryPart([block])],
        tag_code=codes, tag_names=tags,
    )  # fmt: skip
    return log, values, rows


def content(histogram):
    edges = histogram.buckets.high(histogram.index).tolist()
    return edges, histogram.counts.tolist(), histogram.censored, histogram.censored_at


def test_each_interval_keeps_the_count_above_the_last_bound():
    log, values, rows = log_of(1)
    above = values > BOUNDS[-1]
    assert [one.censored for one in log] == np.bincount(rows[above], minlength=len(log)).tolist()
    assert {one.censored_at for one in log if one.censored} == {BOUNDS[-1]}
    total = log.histogram()
    assert (total.count, total.censored) == ((~above).sum(), above.sum())
    assert content(total) == content(merge_histograms(list(log)))


@pytest.mark.parametrize("p", [50, 90, 99, 99.9, 100])
def test_a_percentile_is_never_below_the_values_and_marked_beyond_the_last_bound(p):
    log, values, _ = log_of(2)
    (row,) = log.percentile_rows([p])
    truth = np.percentile(values, p, method="inverted_cdf")
    assert row.value >= min(truth, BOUNDS[-1])
    beyond = truth > BOUNDS[-1]
    assert (row.bucket_high == np.inf, row.cause == "above the last bucket") == (beyond, beyond)
    assert not (beyond and (row.supported or row.resolved))


def test_series_of_intervals_never_look_better_than_the_values():
    log, values, rows = log_of(3)
    series = interval_series(log, (50, 99))
    assert series.count.tolist() == np.bincount(rows).tolist()
    for k in range(len(log)):
        own = np.minimum(values[rows == k], BOUNDS[-1])
        assert series.max[k] >= own.max()
        assert series.beyond[k, 0] == (values[rows == k].max() > BOUNDS[-1])
        assert (series.values[k] >= np.percentile(own, [50, 99], method="inverted_cdf")).all()


@pytest.mark.parametrize(
    "change",
    [
        lambda log: log.resample(60),
        lambda log: log.resample(60).resample(120),
        lambda log: log.with_tag("all"),
        lambda log: lk.merge([log.between(0, 90), log.between(90)]),
        lambda log: lk.merge(log.by_tag()),
        lambda log: log.to_unit("ms").to_unit("ns"),
        lambda log: pickle.loads(pickle.dumps(log)),
        for_transfer,
        lambda log: page_bins(log).log("ns"),
    ],
    ids=["resample", "twice", "tag", "merge", "tags", "unit", "pickle", "carried", "page"],
)
def test_views_keep_it(change):
    log, _, _ = log_of(4, tags=("a", "b"))
    assert content(change(log).histogram()) == content(log.histogram())


@pytest.mark.parametrize("other", [BOUNDS * 3, BOUNDS[:2], None], ids=["far", "near", "HDR"])
def test_sums_of_unlike_layouts_keep_all_and_the_lowest_bound(other):
    log, _, rows = log_of(6)
    if other is None:
        values = [np.full(np.count_nonzero(rows == k), k + 1) for k in range(len(log))]
        more = log_of_values(values, log.starts, log.lengths)
    else:
        more, _, _ = log_of(7, other)
    both = lk.merge([log, more])
    parts = [log.histogram(), more.histogram()]
    for summed in (both.histogram(), both.resample(45).histogram()):
        assert summed.censored == sum(part.censored for part in parts)
        assert summed.count == sum(part.count for part in parts)
        assert summed.censored_at == min(part.censored_at for part in parts)
    sums = [[one.count + one.censored for one in each] for each in (both.resample(15), log, more)]
    assert sums[0] == np.add(*sums[1:]).tolist()


@pytest.mark.parametrize("suffix", ["json", "parquet"])
def test_a_file_gives_the_same_log(tmp_path, suffix):
    log, _, _ = log_of(8, tags=("a", "b"))
    lk.write(log, tmp_path / f"run.{suffix}")
    same = lk.read(tmp_path / f"run.{suffix}")
    assert [content(one) for one in same] == [content(one) for one in log]


def test_a_table_has_no_upper_edge_for_it(tmp_path):
    log, _, _ = log_of(9)
    frame = log.to_frame()
    assert frame["count"][frame["high"].isna()].sum() == log.histogram().censored
    lk.write(log, tmp_path / "run.csv")
    lines = [line.split(",") for line in (tmp_path / "run.csv").read_text().splitlines()]
    high, count = lines[0].index("high_ns"), lines[0].index("count")
    assert sum(int(row[count]) for row in lines[1:] if not row[high]) == log.histogram().censored


def test_an_interval_and_its_histogram_are_one():
    histogram = Histogram.from_buckets([0, 10], [10, 20], [3, 4], censored=5, censored_at=20.0)
    assert of_interval(*as_interval(histogram)) == histogram
    early = Histogram.from_buckets([0, 10], [10, 20], [3, 4], censored=5, censored_at=15.0)
    assert content(of_interval(*as_interval(early))) == content(early)
