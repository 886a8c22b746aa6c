from __future__ import annotations

import io

import numpy as np
import pytest

import latencykit as lk
from latencykit.core.histogram_log import interval_series
from latencykit.record.intervals import IntervalCounter, interval_width

SECOND = 10**9


def test_values_are_counted_in_the_interval_of_their_reply() -> None:
    counter = IntervalCounter(1e9, SECOND, 3)
    rng = np.random.default_rng(1)
    end, value = rng.integers(0, 5 * SECOND, 1000), rng.integers(0, 10**7, 1000)
    for part in np.array_split(np.arange(1000), 7):
        counter.add(end[part], value[part])
    counter.advance(5 * SECOND)
    series = interval_series(counter.log(), (50,))
    assert series.count.tolist() == np.bincount(end // SECOND, minlength=5).tolist()
    assert counter.log().histogram().percentile(50) == lk.Histogram.of(value).percentile(50)


def test_finish_cuts_the_running_interval_and_goes_on_behind_the_cut() -> None:
    counter = IntervalCounter(1e9, SECOND, 3)
    counter.add([SECOND // 4], [5])
    counter.finish(SECOND // 2)
    counter.add([SECOND * 3 // 4], [6])
    counter.finish(SECOND)
    log = counter.log()
    assert log.starts.tolist() == [0.0, 0.5]
    assert log.lengths.tolist() == [0.5, 0.5]
    assert interval_series(log).count.tolist() == [1, 1]


def test_tags_are_kept_apart_in_one_interval() -> None:
    counter = IntervalCounter(1e9, SECOND, 3)
    counter.tags += ["get", "set"]
    counter.add([1, 2, 3], [10, 20, 30], [1, 2, 1])
    counter.advance(SECOND)
    log = counter.log()
    assert log.tags == ("get", "set")
    assert log.tagged("get").histogram().count == 2


def test_the_stream_is_a_readable_log_after_every_line(tmp_path) -> None:
    stream = io.BytesIO()
    counter = IntervalCounter(1.7e9, SECOND, 3, stream, ["Logged with latencykit Recorder"])
    sizes = [len(stream.getvalue())]
    for second in range(3):
        counter.add([second * SECOND + 5], [1000 * (second + 1)])
        counter.advance((second + 1) * SECOND)
        sizes.append(len(stream.getvalue()))
    path = tmp_path / "a.hlog"
    for n, size in enumerate(sizes):
        path.write_bytes(stream.getvalue()[:size])
        log = lk.read(path)
        assert len(log) == n
    assert log.start == 1.7e9
    assert interval_series(log).max.tolist() == [1000, 2000, 3001]  # the upper end of 3000's bucket


def test_many_values_are_folded(monkeypatch) -> None:
    monkeypatch.setattr("latencykit.record.intervals._FOLD_AT", 10)
    counter = IntervalCounter(1e9, SECOND, 3)
    for k in range(50):
        counter.add(np.arange(20) + k, np.arange(20))
    assert len(counter._pending) <= 2
    counter.advance(SECOND)
    assert counter.log().histogram().count == 1000


@pytest.mark.parametrize("interval", ["0.5ms", 0, "-1s"])
def test_intervals_below_a_millisecond_are_refused(interval) -> None:
    with pytest.raises(lk.InvalidArgumentError, match="at least 1 ms"):
        interval_width(interval)
