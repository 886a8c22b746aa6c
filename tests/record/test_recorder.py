"""Recorders: what is measured, counted by interval and written; and the hiccups of a machine."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import io
import os
import signal
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import latencykit as lk
from latencykit.core.histogram_log import interval_series
from latencykit.core.samples import OUTCOMES
from latencykit.record.hiccup import hiccup, lateness
from latencykit.record.intervals import IntervalCounter, interval_width
from tests.conftest import python


@pytest.fixture
def clock(monkeypatch):
    """A clock that moves only when it is set, or slept on."""

    class Clock:
        now = 1_000_000_000

        def perf_counter_ns(self) -> int:
            return self.now

        def sleep(self, seconds: float) -> None:
            self.now += round(seconds * 1e9)

        def __getattr__(self, name: str):
            return getattr(time, name)

    clock = Clock()
    monkeypatch.setattr("latencykit.record.recorder.time", clock)
    return clock


def test_a_block_counts_its_service_time(clock) -> None:
    recorder = lk.Recorder()
    for ms in (1, 2, 5):
        with recorder.measure():
            clock.now += ms * 1_000_000
    samples = recorder.samples()
    assert samples.duration.tolist() == [1_000_000, 2_000_000, 5_000_000]
    assert np.diff(samples.start).tolist() == [1_000_000, 2_000_000]
    assert samples.run.measure == "service"
    assert samples.run.corrected == "none"
    assert recorder.histogram().count == 3


def test_a_decorated_function_is_measured_and_stays_itself(clock) -> None:
    recorder = lk.Recorder()

    @recorder
    def work(ms: int) -> int:
        """Says what it does."""
        clock.now += ms * 1_000_000
        return ms

    assert [work(3), work(4)] == [3, 4]
    assert work.__doc__ == "Says what it does."
    assert recorder.samples().duration.tolist() == [3_000_000, 4_000_000]


def test_a_coroutine_is_measured_until_it_returns(clock) -> None:
    recorder = lk.Recorder()

    @recorder.measure(tag="get")
    async def work() -> str:
        clock.now += 7
        await asyncio.sleep(0)
        clock.now += 8
        return "done"

    async def block() -> None:
        async with recorder.measure(tag="set"):
            clock.now += 9

    assert asyncio.run(work()) == "done"
    asyncio.run(block())
    assert recorder.samples().duration.tolist() == [15, 9]
    assert recorder.log().tags == ("get", "set")


def test_generators_are_refused() -> None:
    with pytest.raises(lk.InvalidArgumentError, match="generator"):

        @lk.Recorder()
        def work():
            yield 1


def test_slots_count_from_when_they_were_due(clock) -> None:
    recorder = lk.Recorder(rate=100)
    for slot in recorder.schedule(count=5):
        with slot:
            clock.now += 25_000_000 if slot.due == 1_010_000_000 else 1_000_000
    samples = recorder.samples()
    assert samples.duration.tolist() == [1_000_000, 25_000_000, 1_000_000, 1_000_000, 1_000_000]
    assert samples.values.tolist() == [1_000_000, 25_000_000, 16_000_000, 7_000_000, 1_000_000]
    assert samples.run.measure == "response"
    assert samples.run.corrected == "schedule"
    assert recorder.histogram().max >= 25_000_000


def test_an_asynchronous_schedule_keeps_its_times() -> None:
    recorder = lk.Recorder()

    async def run() -> list[int]:
        dues = []
        async for slot in recorder.schedule(2000, duration="10ms"):
            dues.append(slot.due)
            async with slot:
                pass
        return dues

    dues = asyncio.run(run())
    assert np.diff(dues).tolist() == [500_000] * 19
    assert len(recorder.samples()) == 20


def test_one_recorder_holds_one_kind_of_time() -> None:
    recorder = lk.Recorder()
    recorder.record(5)
    with pytest.raises(lk.IncompatibleDataError, match="service times"):
        recorder.measure(intended=1)


@pytest.mark.parametrize("path", [None, "a.hlog"])
def test_failures_are_counted_apart(clock, tmp_path, path) -> None:
    recorder = lk.Recorder(path and tmp_path / path)

    def fail(error) -> None:
        clock.now += 50
        raise error

    for error in (ValueError, TimeoutError, KeyboardInterrupt):
        with pytest.raises(error), recorder.measure():
            fail(error)
    with recorder.measure():
        clock.now += 10
    samples = recorder.samples()
    assert [OUTCOMES[code] for code in samples.outcome] == ["error", "timeout", "unfinished", "ok"]
    recorder.close()
    for log in (recorder.log(), lk.read(recorder.path) if path else recorder.log()):
        assert (log.run.failed, log.run.timeouts, log.run.unfinished) == (1, 1, 1)
        assert (log.histogram().count, log.histogram().censored_at) == (1, 50)


def test_threads_lose_nothing(tmp_path) -> None:
    recorder = lk.Recorder(tmp_path / "a.hlog", interval="20ms")

    def work() -> None:
        for k in range(5000):
            recorder.record(k)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorder.close()
    assert recorder.histogram().count == 20_000
    assert np.bincount(recorder.samples().duration).tolist() == [4] * 5000


def test_many_rows_of_every_kind_are_counted_and_kept(clock) -> None:
    recorder = lk.Recorder(interval="10ms")
    expected = []
    for k in range(30_000):
        clock.now += 1_000
        tag, value = ("odd" if k % 1000 > 990 else None), [k, 7 << 32, k / 2][k % 3]
        recorder.record(value, tag=tag)
        expected.append((clock.now - int(value), int(value), tag or ""))
        if k % 5000 == 0:
            with contextlib.suppress(ValueError), recorder.measure():
                clock.now += 5
                raise ValueError
            expected.append((clock.now - 5, 5, ""))
    samples, zero = recorder.samples(), recorder._zero - recorder._epoch
    columns = (samples.start + zero).tolist(), samples.duration.tolist(), samples.tag.tolist()
    assert list(zip(*columns, strict=True)) == expected
    assert recorder.histogram().count == 30_000
    assert len(recorder.log().starts) >= 3
    assert recorder.log().tagged("odd").histogram().count == 270


def test_what_a_duration_may_be(clock) -> None:
    recorder = lk.Recorder()
    record, measure = recorder.record, recorder.measure
    for value in (5, 5.9, True, np.int64(5), np.float32(5.5)):
        recorder.record(value)
    for value in ("5", -1, 1 << 62, -0.5, float("nan"), 2**70):
        with pytest.raises((lk.InvalidArgumentError, TypeError)):
            recorder.record(value)
    assert recorder.samples().duration.tolist() == [5, 5, 1, 5, 5]
    with pytest.raises(TypeError):
        record(5, 6)
    with pytest.raises(TypeError):
        record(5, name="a")
    with pytest.raises(lk.InvalidArgumentError, match="from 0 to 2"):
        record(-1)
    measurement = measure()
    assert (measurement.due, type(measurement)) == (None, type(measure(tag="a")))
    recorder.close()
    for use in (record, lambda _: measure()):
        with pytest.raises(lk.InvalidArgumentError, match="closed"):
            use(1)


@pytest.mark.slow
def test_a_recorder_is_freed_with_its_rows() -> None:
    recorder = lk.Recorder()
    with recorder.measure():
        pass
    timer, freed = recorder.measure(), weakref.ref(recorder)
    recorder.slot, recorder.timer = recorder.record, timer
    del recorder, timer
    gc.collect()
    assert freed() is None


def test_the_file_says_what_was_measured(tmp_path) -> None:
    path = tmp_path / "a.hlog"
    with lk.Recorder(path, tag="db") as recorder:
        for slot in recorder.schedule(1000, count=3):
            with slot:
                pass
    log = lk.read(path)
    assert log.run.measure == "response"
    assert log.run.corrected == "schedule"
    assert log.tags == ("db",)
    assert log.histogram().count == 3
    assert abs(log.start - time.time()) < 60


@pytest.mark.slow
def test_a_killed_program_leaves_a_valid_file(tmp_path) -> None:
    path = tmp_path / "a.hlog"
    code = "import os, sys, latencykit as lk; r = lk.Recorder(sys.argv[1])"
    code += "; [r.record(1000) for _ in range(10)]; r.flush(); os.kill(os.getpid(), 9)"
    python("-c", code, path, check=False, timeout=60)
    assert lk.read(path).histogram().count == 10


@pytest.mark.slow
def test_an_open_recorder_is_written_out_when_the_program_ends(tmp_path) -> None:
    path = tmp_path / "a.hlog"
    code = "import os, sys, latencykit as lk; r = lk.Recorder(sys.argv[1], interval=3600)"
    code += "; r.record(5); os.fork() and os.wait()"  # the child ends, too
    python("-c", code, path, timeout=60)
    assert lk.read(path).histogram().count == 1


def test_a_write_that_fails_is_reported_at_the_next_measurement(tmp_path) -> None:
    recorder = lk.Recorder(tmp_path / "a.hlog", interval="5ms")
    recorder.record(1)
    recorder._stream.close()
    recorder._counter._writer._stream = recorder._counter._stream = _Full()
    deadline = time.monotonic() + 20
    while recorder._failure is None and time.monotonic() < deadline:
        time.sleep(0.005)
    with pytest.raises(lk.LatencyKitError, match="could not be written: no space"):
        recorder.record(1)
    with pytest.raises(lk.LatencyKitError):
        recorder.close()


class _Full:
    def write(self, _: bytes) -> int:
        raise OSError("no space")

    def flush(self) -> None:
        raise OSError("no space")


def test_rows_beyond_the_limit_are_counted_but_not_kept() -> None:
    recorder = lk.Recorder(keep=10)
    for _ in range(11):
        recorder.record(3)
    assert recorder.histogram().count == 11
    with pytest.raises(lk.InputTooLargeError, match="keep="):
        recorder.samples()


def test_a_closed_recorder_refuses_but_still_answers() -> None:
    with lk.Recorder() as recorder:
        recorder.record(7)
    with pytest.raises(lk.InvalidArgumentError, match="closed"):
        recorder.record(8)
    assert recorder.histogram().count == 1
    assert repr(recorder) == "Recorder(1 measurements)"


@pytest.mark.parametrize(
    "use",
    [
        lambda: lk.Recorder(tag="a,b"),
        lambda: lk.Recorder().record(-1),
        lambda: lk.Recorder().schedule(),
        lambda: lk.Recorder().schedule(0),
        lambda: lk.Recorder("nowhere/x.hlog"),
        lambda: lk.Recorder().measure(intended=time.time_ns()),
    ],
)
def test_what_cannot_be_used_is_refused(use) -> None:
    with pytest.raises(lk.InvalidArgumentError):
        use()


# ---------------------------------------------------------------- intervals

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


@pytest.mark.parametrize("interval", ["0.5ms", "1us", 0, "-1s"])
def test_intervals_below_a_millisecond_are_refused(interval) -> None:
    with pytest.raises(lk.InvalidArgumentError, match="at least 1 ms"):
        interval_width(interval)


# ---------------------------------------------------------------- hiccups

MS = 1_000_000


def test_every_slot_of_a_stop_counts_how_late_it_was_noticed() -> None:
    rows = np.array([[1, 1, 1 * MS + 50], [2, 4, 4 * MS + 60], [5, 5, 5 * MS + 10]])
    ((now, late),) = lateness(rows, MS)
    assert late.tolist() == [50, 2 * MS + 60, MS + 60, 60, 10]
    assert now.tolist() == [1 * MS + 50, *[4 * MS + 60] * 3, 5 * MS + 10]


def test_a_very_long_stop_is_expanded_in_pieces(monkeypatch) -> None:
    monkeypatch.setattr("latencykit.record.hiccup._PIECE", 4)
    rows = np.array([[1, 10, 10 * MS], [11, 11, 11 * MS + 7]])
    parts = list(lateness(rows, MS))
    assert max(late.size for _, late in parts) == 4
    every = sorted(np.concatenate([late for _, late in parts]).tolist())
    assert every == [0, 7, *range(MS, 10 * MS, MS)]


@pytest.mark.slow
def test_a_log_is_written_and_says_how_it_was_measured(tmp_path) -> None:
    path = tmp_path / "h.hlog"
    log = hiccup(path, duration="0.3s", interval="100ms", resolution="2ms")
    assert log.histogram().count == 149  # slots at 2, 4, … 298 ms
    assert len(log) == 3
    assert log.run.tool == "latencykit hiccup"
    assert (log.run.corrected, log.run.measure) == ("schedule", "response")
    assert "resolution 2 ms" in path.read_text(errors="replace")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_the_file_is_whole_or_the_old_one(tmp_path, number) -> None:
    path = tmp_path / "h.hlog"
    path.write_text("old")
    code = (
        "import sys; from latencykit.record.hiccup import hiccup\n"
        "from latencykit.cli.signals import handle_signals\n"
        "with handle_signals(): hiccup(sys.argv[1], interval=0.1)"
    )
    command = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if sum(part.read_bytes().count(b"HISTF") for part in tmp_path.iterdir()) >= 2:
                break
            time.sleep(0.02)
        assert path.read_text() == "old"
        os.kill(process.pid, getattr(signal, number))
        assert process.wait(30) != 0
    if number == "SIGKILL":
        assert path.read_text() == "old"
        return
    assert [part.name for part in tmp_path.iterdir()] == ["h.hlog"]
    assert path.read_bytes().endswith(b"\n")
    assert lk.read(path).histogram().count > 100


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGSTOP")
@pytest.mark.parametrize("whole", [False, True])
def test_a_stop_of_the_parent_is_not_recorded_and_one_of_both_is(tmp_path, whole) -> None:
    """At 50 µs the pipe is full after two seconds: the clock goes on all the same."""
    path = tmp_path / "h.hlog"
    command = [sys.executable, "-m", "latencykit", "hiccup", "-o", str(path)]
    stop = os.killpg if whole else os.kill
    with subprocess.Popen(
        [*command, "--duration", "6s", "--resolution", "50us" if not whole else "1ms"],
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, start_new_session=True,
    ) as process:  # fmt: skip
        process.stderr.readline()  # of the first second
        stop(process.pid, signal.SIGSTOP)
        time.sleep(3)  # the length of the stop
        stop(process.pid, signal.SIGCONT)
        process.stderr.read()
    longest = lk.read(path).max
    assert longest >= 2.9e9 if whole else longest < 1.5e9


@pytest.mark.parametrize("bad", [{"resolution": "1us"}, {"duration": 0}, {"interval": "1us"}])
def test_what_cannot_be_recorded_is_refused(tmp_path, bad) -> None:
    with pytest.raises(lk.InvalidArgumentError):
        hiccup(tmp_path / "h.hlog", **bad)
    assert not (tmp_path / "h.hlog").exists()
