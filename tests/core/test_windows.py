"""Windows in time are half open: neighbouring windows share nothing and lose nothing."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import latencykit as lk
from latencykit.core.histogram_log import slot_edges, slot_numbers
from latencykit.units import parse_moment
from tests.conftest import RAW, log_of_values

EPOCH = 1_441_812_279  # a whole second
GRIDS = st.sampled_from([0.001, 0.1, 0.3, 0.7, 1.0, 2.5])


def log_of(starts: list[float], **run: object) -> lk.HistogramLog:
    return log_of_values([[1000 + k] for k in range(len(starts))], starts, run=lk.Run(**run))


def samples_of(starts: list[float], origin: int = 0) -> lk.Samples:
    start = np.array([round(one * 1e9) for one in starts])
    return lk.Samples(start=origin + start - start.min(), duration=np.full(start.size, 5_000_000))


@pytest.mark.slow
@given(st.lists(st.integers(0, 400), min_size=1, max_size=30), GRIDS, st.integers(0, 400))
def test_a_cut_on_a_start_puts_it_into_the_later_half(steps, grid, cut):
    starts = sorted(float(f"{step * grid:.6f}") for step in steps)
    moment = float(f"{cut * grid:.6f}")
    for data, first in ((log_of(starts), 0.0), (samples_of(starts), starts[0])):
        at = float(f"{moment - first:.6f}")
        before, after = data.between(end=at), data.between(at)
        assert len(before) == sum(float(f"{one - first:.6f}") < at for one in starts)
        assert len(before) + len(after) == len(starts)
        assert len(data.between(at, at)) == 0


@pytest.mark.slow
@given(
    st.lists(st.integers(0, 3000), min_size=1, max_size=40), GRIDS,
    st.integers(1, 20), st.integers(0, 40), st.integers(1, 40),
)  # fmt: skip
def test_a_resampled_slot_is_the_window_between_its_edges(steps, grid, width, first, size):
    starts = np.array(sorted(float(f"{step * grid:.6f}") for step in steps))
    wide = float(f"{width * grid:.6f}")
    begin, end = slot_edges(np.array([first, first + size], float), wide).tolist()
    inside = (slot_numbers(starts, wide) >= first) & (slot_numbers(starts, wide) < first + size)
    assert inside.tolist() == ((starts >= begin) & (starts < end)).tolist()
    log = log_of(starts.tolist())
    part, slots = log.between(begin, end), log.resample(wide).between(begin, end)
    assert slots.histogram().count == part.histogram().count


@pytest.mark.parametrize(
    "moment",
    [
        5.5, "5.5", "5.5s", "5500 ms", "5s500ms",
        "2015-09-09T15:24:44.500", "2015-09-09T17:24:44.5+02:00",
        dt.datetime(2015, 9, 9, 15, 24, 44, 500_000, dt.UTC), dt.timedelta(seconds=5.5),
        np.datetime64("2015-09-09T15:24:44.5"), np.timedelta64(5500, "ms"), np.float32(5.5),
        pd.Timestamp("2015-09-09T15:24:44.5Z"), pd.Timedelta("5.5s"),
    ],
)  # fmt: skip
def test_a_moment_is_written_in_many_ways(moment):
    assert parse_moment(moment, EPOCH * 10**9) == 5.5
    starts = [0, 5.25, 5.5, 6]
    for data in (log_of(starts, start=float(EPOCH)), samples_of(starts, EPOCH * 10**9)):
        assert len(data.between(moment)) == 2
        assert len(data.between(end=moment)) == 2


@pytest.mark.parametrize("moment", ["noon", "5 parsecs", float("nan"), None, "s", ""])
def test_what_is_not_a_moment_is_refused(moment):
    with pytest.raises(lk.InvalidArgumentError, match="is not a time"):
        parse_moment(moment, 0)


def test_a_timestamp_needs_a_run_that_says_when_it_began():
    with pytest.raises(lk.DataNotAvailableError, match="when it began"):
        log_of([0, 1]).between("2026-01-31T12:00:00")


@given(st.integers(0, 10**6), st.integers(0, 10**9))
def test_a_timestamp_of_an_interval_selects_from_that_interval_on(millisecond, second):
    log = log_of([0.0, millisecond / 1000, millisecond / 1000 + 0.5], start=float(f"{second}.127"))
    stamp = np.datetime64(second * 1000 + 127 + millisecond, "ms")
    assert len(log.between(stamp)) == (3 if millisecond == 0 else 2)


def test_the_command_line_takes_the_same_windows(run):
    log = lk.read(RAW)
    starts = log.starts.tolist()
    later = [one + 0.0005 for one in starts]
    for begin, end in ((starts[3], starts[9]), (starts[0], starts[5]), (later[4], later[5])):
        record = run.json("summary", RAW, "--from", repr(begin), "--to", f"{end!r}s")
        assert record["series"][0]["count"] == log.between(begin, end).histogram().count > 0
    assert "are the same moment" in run("summary", RAW, "--from", "5", "--to", "5s")[2]
    assert run("check", RAW, "--unit", "ns", "--slo", "max=1s", "--from", "6", "--to", "5")[0] == 2


def test_a_part_of_samples_counts_time_from_where_the_whole_does():
    whole = samples_of([0.0, 1.25, 2.5, 3.0, 7.75], EPOCH * 10**9)
    part = whole.between(1, 5)
    assert part.offsets.tolist() == [1.25, 2.5, 3.0]
    assert part.between(2, 3).offsets.tolist() == whole.between(2, 3).offsets.tolist() == [2.5]
    assert len(part.between("2015-09-09T15:24:41.5")) == len(part.between(2.5)) == 2
    log = part.to_log("500ms")
    assert (log.starts[0], log.start) == (1.0, float(EPOCH))
    assert log.between(2.5, 3).histogram().count == 1
    tags = lk.Samples(start=[0, 10, 20, 30], duration=[1] * 4, tag=list("abab"), unit="s")
    for one in (tags.tagged("b").between(5, 15), tags.between(5, 15).tagged("b")):
        assert one.offsets.tolist() == [10.0]
    assert tags.tagged("b").elapsed == 21.0


def test_requests_that_are_far_apart_are_not_lost_among_empty_intervals():
    far = samples_of([k * 86400.0 for k in range(30)])
    log = far.to_log()
    assert (log.histogram().count, log.lengths[0], len(log)) == (30, 60.0, 29 * 1440 + 1)
    with pytest.raises(lk.InputTooLargeError, match="number 2,505,601, for 30 requests; use"):
        far.to_log("1s")
    assert len(samples_of([0.0, 86400.0]).to_log()) == 86401
