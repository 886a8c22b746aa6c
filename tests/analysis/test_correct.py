"""Corrections: intervals that are filled in, and requests that are timed from when they were due."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import latencykit as lk
from latencykit.analysis.correct import fill, fills_of, on_a_fine_grid
from latencykit.analysis.retime import chains
from latencykit.hdr.payload import decode_rows, open_payload
from latencykit.simulate.generators import catch_up_loop, fixed, open_loop, paced_loop
from latencykit.simulate.server import Server, Stall, exponential

DATA = Path(__file__).parent.parent / "data/payloads"
GOLDENS = {g["name"]: g for g in map(json.loads, (DATA / "goldens.jsonl").read_text().splitlines())}


def golden(name: str) -> lk.Histogram:
    payload = open_payload(GOLDENS[f"java 2.2.2 {name}"]["base64"].encode())
    _, index, counts = decode_rows([payload])
    return lk.Histogram(payload.buckets, index, counts)


def by_hand(values: list[int], interval: int) -> list[int]:
    """The loop of AbstractHistogram.recordValueWithCountAndExpectedInterval."""
    out = []
    for value in values:
        out.append(value)
        missing = value - interval
        while missing >= interval:
            out.append(missing)
            missing -= interval
    return out


@pytest.mark.parametrize("ms", [1, 2, 10])
def test_the_references_corrected_copies(ms: int) -> None:
    ours = lk.correct(golden("auto-resize-3digits"), f"{ms}ms")
    theirs = golden(f"copyCorrected-{ms}ms")
    assert np.array_equal(ours.index, theirs.index)
    assert np.array_equal(ours.counts, theirs.counts)
    assert (ours.run.corrected, ours.run.expected_interval) == ("us", ms * 1e6)


@pytest.mark.parametrize("ms", [1, 2, 10])
def test_samples_are_filled_as_the_recorder_fills_them(ms: int) -> None:
    slow = np.array(json.loads((DATA / "slow.json").read_text()))
    fast = golden("auto-resize-3digits")
    ours = lk.correct(lk.Samples(duration=slow), f"{ms}ms")
    counts = np.zeros(max(fast.index[-1], ours.index[-1]) + 1, np.int64)
    for one in (fast, ours):
        counts[one.index] += one.counts
    np.subtract.at(counts, fast.buckets.index_of(slow), 1)
    theirs = golden(f"recordWithExpected-{ms}ms")
    assert np.flatnonzero(counts).tolist() == theirs.index.tolist()
    assert counts[theirs.index].tolist() == theirs.counts.tolist()


@pytest.mark.parametrize("digits", [1, 2, 3, 5])
def test_the_rule_by_hand(digits: int) -> None:
    rng = np.random.default_rng(digits)
    layout = lk.HdrBuckets(digits)
    for interval in (1, 3, 10, 999):
        values = rng.integers(0, 20_000, 40)
        every = by_hand(values.tolist(), interval)
        want = np.bincount(layout.index_of(every), minlength=layout.slots)
        got = np.bincount(layout.index_of(values), minlength=layout.slots)
        once, row = np.ones(40, np.int64), np.zeros(40, np.int64)
        for _, index, counts in fill(values, once, row, interval, layout):
            np.add.at(got, index, counts)
        assert np.array_equal(got, want)


def test_threshold_and_smallest_fill() -> None:
    values, fills = [0, 9, 10, 19, 20, 29, 30, 105], [0, 0, 0, 0, 1, 1, 2, 9]
    assert fills_of(np.array(values), 10).tolist() == fills
    filled = lk.correct(lk.Histogram.of([105]), "10ns")
    assert filled.buckets.low(filled.index).tolist() == [15, 25, 35, 45, 55, 65, 75, 85, 95, 105]


def test_a_long_stall_at_a_short_interval_is_counted_not_listed() -> None:
    filled = lk.correct(lk.Histogram.of([1_000_000] * 1000 + [100_000_000_000], digits=4), "1us")
    assert filled.count == pytest.approx(1e8 + 1000 * 1000, rel=1e-4)
    assert filled.percentile(50) / 1e9 == pytest.approx(49.5, rel=1e-3)
    with pytest.raises(lk.InputTooLargeError):
        lk.correct(lk.Histogram.of([1 << 62] * 4), "1ns")


def test_the_articles_numbers_come_back() -> None:
    naive = paced_loop(Server("1ms", stalls=[Stall(100, 100)], ideal=True), 100, 200)
    fixed = lk.correct(naive, "10ms")
    assert fixed.count == 20_000
    assert fixed.mean / 1e9 == pytest.approx(25.003, rel=1e-3)
    found = fixed.percentile([50, 75, 99.99]) / 1e6
    assert found == pytest.approx([1, 50_000, 99_980], rel=1e-3)
    known = lk.correct(naive)  # the run knows its rate and connections
    assert known.counts.tolist() == fixed.counts.tolist()


def test_a_log_is_corrected_interval_by_interval() -> None:
    naive = paced_loop(Server("1ms", stalls=[Stall(3.5, 2)]), 100, 10)
    log = naive.to_log("1s")
    fixed = lk.correct(log, rate=100)
    whole = lk.correct(log.histogram(), rate=100)
    assert isinstance(fixed, lk.HistogramLog)
    assert fixed.run.corrected == "us"
    assert np.array_equal(fixed.histogram().counts, whole.counts)
    assert fixed.between(4, 6).histogram().count == log.between(4, 6).histogram().count + 199
    in_ms = lk.correct(log.to_unit("ms"), "10ms").histogram()
    assert (in_ms.count, in_ms.max) == (whole.count, pytest.approx(whole.max / 1e6))


def test_correcting_twice_is_refused() -> None:
    once = lk.correct(lk.Histogram.of([100]), "10ns")
    with pytest.raises(lk.AlreadyCorrectedError, match=r"already back-filled; .*force=True"):
        lk.correct(once, "10ns")
    assert lk.correct(once, "10ns", force=True).count > once.count
    for by in ("tool", "schedule"):
        with pytest.raises(lk.AlreadyCorrectedError):
            lk.correct(lk.Histogram.of([100]).with_run(corrected=by), "10ns")


def test_what_is_needed_is_asked_for() -> None:
    with pytest.raises(lk.InvalidArgumentError, match="rate="):
        lk.correct(lk.Histogram.of([100]))
    with pytest.raises(lk.InvalidArgumentError, match="longer than nothing"):
        lk.correct(lk.Histogram.of([100]), "0ms")
    with pytest.raises(lk.DataNotAvailableError):
        lk.correct(lk.Summary({"mean": 1.0}), "1ms")


def test_timeouts_are_filled_from_their_bound() -> None:
    cut = lk.Samples(start=[0, 0], duration=[1, 2000], outcome=["ok", "timeout"], unit="ms")
    for data in (cut, cut.histogram(), cut.to_log()):
        filled = lk.correct(data, "100ms")
        assert (filled.count, filled.censored) == (1 + 19, 1)
        assert filled.percentile(50) == pytest.approx(1e9, rel=0.1)  # beyond all replies


def test_percentile_lists_are_filled_from_what_is_sure() -> None:
    known = {"max": 6e9, "mean": (994 * 1.5e6 + 4 * 6e9 + 2 * 3e6) / 1000}
    listed = lk.Histogram.from_percentiles([50, 99], [1.5e6, 3e6], 1000, reported_stats=known)
    filled = lk.correct(listed, rate=400, connections=4)
    assert 4 * 599 <= filled.count - 1000 <= 4 * 600, (
        "ten requests lie above p99, but the mean has room for four of 6 s"
    )
    between = lk.Histogram.from_percentiles(
        [50, 99, 99.9], [1.5e6, 3e6, 5.99e9], 2000, reported_stats={"max": 6e9, "mean": 13.5e6}
    )
    filled = lk.correct(between, rate=400, connections=4)
    assert 4 * 598 <= filled.count - 2000 <= 4 * 600, (
        "eighteen lie between p99 and p99.9, and two of these took so long"
    )
    above = lk.Histogram.from_percentiles(
        [50, 100], [1.5e6, 3e6], 1000, reported_stats={"max": 6e9}
    )
    assert 598 <= lk.correct(above, rate=400, connections=4).count - 1000 <= 600, (
        "the maximum is one of the last bucket"
    )
    lone = lk.correct(
        lk.Histogram.from_percentiles([50, 99], [1.5e6, 3e6], 1000, reported_stats={"max": 6e9}),
        rate=400,
        connections=4,
    )
    assert 598 <= lone.count - 1000 <= 600, "without a mean only the maximum is sure"


@pytest.mark.slow
def test_an_interval_in_the_wrong_unit_is_refused_at_once_unless_it_is_meant():
    raw = lk.Samples(start=np.arange(1001) * 10**6, duration=[1_000_000] * 1000 + [10_000_000_000])
    for data in (raw, raw.to_log("1s")):
        with pytest.raises(
            lk.InvalidArgumentError,
            match=r"an expected interval of 10 ns would add 1,\d+,\d+,\d+ requests to the 1,001",
        ):
            lk.correct(data, "10ns")
        assert lk.correct(data, "100us").histogram().count > 1e5
    assert lk.correct(raw, "10ns", force=True).count == 1_100_000_000


def test_listed_buckets_that_overlap_are_counted_once_each() -> None:
    """As the rows of two series leave them that were mixed."""
    high = np.array([2.9, 3.1, 8.8, 9.0, 15.0, 16.0, 60.0, 70.0, 100.0, 1193.3]) * 1e6
    low = np.concatenate(([0.0, 0.0], high[:-2]))
    counts = [200_000, 300_000, 180_000, 270_000, 16_000, 24_000, 3600, 5400, 400, 600]
    raw = lk.Histogram.from_buckets(low, high, counts, reported_stats={"mean": 3.92e6})
    grid = on_a_fine_grid(raw, float(high[-1]))
    assert grid.count == raw.count
    assert (grid.counts > 0).all()
    assert grid.index.size == grid.counts.size


# ---------------------------------------------------------------- timed from the schedule

PERCENTILES = [50, 75, 90, 99, 99.9, 100]
STALLED = Server(exponential("1ms"), servers=8, stalls=[Stall(7, 6)])


def truth(rate: float, server: Server = STALLED) -> np.ndarray:
    return open_loop(server, fixed(rate, 20)).histogram().percentile(PERCENTILES)


@pytest.mark.parametrize("loop", [paced_loop, catch_up_loop])
@pytest.mark.parametrize("connections", [1, 4])
def test_both_kinds_of_loop_come_back_to_the_truth(loop: object, connections: int) -> None:
    naive = loop(STALLED, 200, 20, connections=connections)
    bare = lk.Samples(start=naive.start, duration=naive.duration)
    timed = lk.retime(bare, rate=200, connections=connections)
    got = timed.histogram().percentile(PERCENTILES)
    want = truth(200)
    if loop is not paced_loop:
        slots = loop(STALLED, 200, 20, connections=connections).response
        want = np.percentile(slots, PERCENTILES)
    assert got[1:] == pytest.approx(want[1:], rel=0.12)
    assert got[0] < 1.3 * want[0]
    assert len(timed) == pytest.approx(4000, abs=8)
    assert (timed.run.measure, timed.run.corrected) == ("response", "us")


def test_a_catching_up_loop_is_timed_from_its_very_slots() -> None:
    naive = catch_up_loop(STALLED, 200, 20, connections=2)
    timed = lk.retime(naive, rate=200)
    assert np.allclose(np.sort(timed.response), np.sort(naive.response), atol=1e5)


def test_a_stall_at_the_end_of_the_run() -> None:
    server = Server("1ms", stalls=[Stall(9, 5)], ideal=True)
    timed = lk.retime(paced_loop(server, 100, 12), rate=100)
    assert timed.histogram().percentile(90) / 1e9 == pytest.approx(3.8, rel=0.02)
    assert len(timed) == pytest.approx(1200, abs=2), "no slot lies behind the run's end"


@pytest.mark.parametrize("connections", [1, 8])
def test_a_backlog_that_outlives_the_run_owes_no_more_requests(connections: int) -> None:
    frozen = Server("1ms", stalls=[Stall(100, 100)], ideal=True)  # to the end of the run
    naive = catch_up_loop(frozen, rate=100, duration=200, connections=connections)
    timed = lk.retime(naive, rate=100)
    assert len(timed) == len(naive) == 20_000
    assert timed.intended is not None
    assert timed.intended.max() < 200e9
    drains = lk.simulate.open_loop(Server("1ms", stalls=[Stall(100, 100)]), fixed(100, 200))
    p50, p75 = timed.histogram().percentile([50, 75]) / 1e9
    assert p50 == pytest.approx(0.001, rel=1e-3)
    if connections == 1:  # one after the other, as a server with one worker drains its queue
        assert p75 == pytest.approx(np.percentile(drains.response, 75) / 1e9, rel=1e-3)
        assert round(p75, 1) == 55.0


def test_connections_are_distinguished_from_who_was_free() -> None:
    server = Server(exponential("15ms"), servers=64, stalls=[Stall(2, 1)])
    naive = paced_loop(server, 200, 10, connections=8, seed=5)
    found = chains(naive.start, naive.duration, None, 8)
    bare = lk.Samples(start=naive.start, duration=naive.duration)
    assert lk.retime(bare, rate=200).run.connections == 8
    assert found.max() == 7
    for one in range(8):
        mine = found == one
        replies = (naive.start + naive.duration)[mine]
        assert (naive.start[mine][1:] >= replies[:-1]).all()  # nobody sends before the reply


def test_failures_and_tags_stay_with_their_rows() -> None:
    columns = {"outcome": ["ok", "error", "ok", "ok"], "tag": list("abcd")}
    naive = lk.Samples(start=[0, 10, 20, 90], duration=[1, 1, 61, 1], unit="ms", **columns)
    timed = lk.retime(naive, rate=100)
    assert timed.tag.tolist() == ["a", "b", *"ccccccc", "d"]
    assert (~timed.good).sum() == 1
    assert (timed.response[2:9] / 1e6).tolist() == [61, 51, 41, 31, 21, 11, 1]


def test_what_cannot_be_timed_is_refused() -> None:
    naive = lk.Samples(start=range(0, 600, 10), duration=[1] * 60, unit="ms")
    with pytest.raises(lk.InvalidArgumentError, match="rate="):
        lk.retime(naive)
    with pytest.raises(lk.InvalidArgumentError, match="102 per second were sent"):
        lk.retime(naive, rate=25)  # of each of four connections
    with pytest.raises(lk.AlreadyCorrectedError):
        lk.retime(lk.retime(naive, rate=100), rate=100)
    with pytest.raises(lk.DataNotAvailableError):
        lk.retime(lk.Samples(duration=[1]), rate=100)


def test_more_requests_than_memory_can_hold_are_not_added() -> None:
    start = np.arange(100, dtype=np.int64) * 10_000_000
    took = np.where(start == start[-1], np.int64(10**17), 10**6)
    endless = lk.Samples(start=start, duration=took)
    with pytest.raises(lk.InputTooLargeError, match="would add 9,999,999,999 requests"):
        lk.retime(endless, rate=100)
