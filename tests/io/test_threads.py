"""A long log is read in pieces: the same numbers, notes and errors whatever their size. Threads keep the order."""

from __future__ import annotations

import base64
import gzip
import sys
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import latencykit as lk
from latencykit import _threads
from latencykit.core import log_cache
from latencykit.core.buckets import HdrBuckets
from latencykit.core.histogram_log import blocks_of, interval_series
from latencykit.errors import CorruptInputError, InvalidArgumentError
from latencykit.hdr.write import encode
from latencykit.io import hlog
from latencykit.io.hlog import HlogWriter
from latencykit.views.page_data import page_bins
from tests.conftest import python


def write(path, seed, rows=150, tags=1, layouts=1, large=False):
    """Write a log of random intervals, some empty."""
    rng = np.random.default_rng(seed)
    with path.open("wb") as stream:
        writer = HlogWriter(stream, 1_700_000_000.0, "ns")
        writer.header()
        for row in range(rows):
            layout = HdrBuckets(int(rng.integers(2, 2 + layouts)))
            values = rng.lognormal(14, 1.5, int(rng.choice([0, 3, 300, 2000])))
            counts = np.bincount(layout.index_of(values)) if values.size else np.zeros(1, np.int64)
            index = np.flatnonzero(counts)
            counts = counts[index]
            if large and index.size and row % 7 == 3:
                counts[0] = 1 << int(rng.integers(38, 46))
            tag = f"t{rng.integers(tags)}" if tags > 1 else None
            start = row + (0.25 if rng.random() < 0.1 else 0.0)
            writer.interval(start, 1.0, layout, index, counts, tag)
            if rng.random() < 0.01:
                writer.comment("between")
    return path


PIECES = (hlog.AHEAD, 8_000, 3_000)
"""Bytes that are read at once: all of a test's log, some of its lines, one or two."""


@pytest.fixture
def small(monkeypatch):
    for name in ("KEEP", "SHORT", "THREADED"):
        monkeypatch.setattr(hlog, name, 0)
    return monkeypatch


def answers(path):
    """What is asked of a log, each question of a log of its own."""

    def fresh():
        return lk.read(path, unit="ns")

    log = fresh()
    yield log.histogram()
    yield [vars(row) for row in log.evidence().rows([50, 99, 99.9], 0.95)[0]]
    yield [vars(interval_series(one, (50, 99))) for one in (log, fresh(), fresh().to_unit("ms"))]
    yield vars(interval_series(fresh(), (50,)))
    yield fresh().resample("7s").histogram(), list(fresh().resample("7s"))
    yield fresh().between(20, 90).histogram(), list(fresh().between(20, 60))
    yield [one.histogram() for one in fresh().by_tag().values()]
    yield vars(page_bins(fresh(), 40))
    yield lk.diagnose(fresh()).verdict
    blocks = blocks_of(fresh())
    columns = [(block.rows[block.entry_rows], block.index, block.counts) for block in blocks]
    row, index, counts = map(np.concatenate, zip(*columns, strict=True))
    order = np.lexsort((index, row))
    yield row[order], index[order], counts[order]
    yield lk.fan_out(fresh(), 10).percentile(99)


@pytest.mark.slow
@pytest.mark.parametrize("budget", [0, 100_000, log_cache.BUDGET])
@given(
    seed=st.integers(0, 1 << 20), tags=st.integers(1, 3), layouts=st.integers(1, 2),
    large=st.booleans(), ahead=st.sampled_from(PIECES[1:]),
)  # fmt: skip
@settings(max_examples=2, deadline=None)
def test_pieces_give_the_same_numbers(tmp_path_factory, seed, tags, layouts, large, ahead, budget):
    path = write(tmp_path_factory.mktemp("law") / "x.hlog", seed, 150, tags, layouts, large)
    whole = list(answers(path))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("KEEP", 0), ("SHORT", 0), ("THREADED", 0), ("AHEAD", ahead)):
            patch.setattr(hlog, name, value)
        patch.setattr(log_cache, "BUDGET", budget)
        for one, other in zip(whole, answers(path), strict=True):
            np.testing.assert_equal(other, one)


def corrupted(path, line, how):
    lines = path.read_bytes().splitlines(keepends=True)
    front, _, payload = lines[line].rpartition(b",")
    if how == "base64":
        payload = payload[:40] + b"!" + payload[41:]
    elif how == "counts":  # inflates, but does not decode
        layout = HdrBuckets(3)
        good = encode(layout, np.array([5]), np.array([3]), highest=10_000)
        raw = base64.b64decode(good)
        plain = bytearray(zlib.decompress(raw[8:]))
        plain[40:] = b"\x80" * len(plain[40:])
        packed = zlib.compress(bytes(plain))
        payload = base64.b64encode(raw[:4] + len(packed).to_bytes(4, "big") + packed) + b"\n"
    else:
        front = front.replace(b".", b":", 1)
    lines[line] = front + b"," + payload
    path.write_bytes(b"".join(lines))


@pytest.mark.parametrize("how", ["base64", "counts", "time stamp"])
@pytest.mark.parametrize("cut", [False, True])
def test_pieces_raise_the_same_error(small, tmp_path, how, cut):
    path = write(tmp_path / "x.hlog", 3, 400)
    for line in (200, 320):
        corrupted(path, line, how)
    if cut:
        packed = gzip.compress(path.read_bytes())
        path = tmp_path / "x.hlog.gz"
        path.write_bytes(packed[: len(packed) * 9 // 10])
    messages = set()
    for ahead in PIECES:
        small.setattr(hlog, "AHEAD", ahead)
        with pytest.raises(CorruptInputError) as raised:
            lk.read(path).histogram()
        messages.add(str(raised.value))
    assert len(messages) == 1
    assert ":201: " in messages.pop()


def test_lenient_skips_the_same_lines(small, tmp_path):
    path = write(tmp_path / "x.hlog", 3, 400)
    corrupted(path, 200, "counts")
    one = lk.read(path, lenient=True)
    small.setattr(hlog, "AHEAD", PIECES[-1])
    other = lk.read(path, lenient=True)
    assert one.run.notes == other.run.notes
    assert len(one) == len(other) == 399
    assert one.histogram() == other.histogram()


def test_what_expands_very_much_waits_for_its_turn(small, tmp_path):
    path = write(tmp_path / "x.hlog", 5)
    expected = lk.read(path).histogram()
    small.setattr(hlog, "AT_ONCE", 1)  # one payload at a time
    assert lk.read(path).histogram() == expected


def test_results_come_in_order_and_little_is_taken_ahead():
    taken = []

    def items():
        for number in range(50):
            taken.append(number)
            yield number

    for number, result in enumerate(_threads.in_order(items(), lambda k: k * k, 3)):
        assert result == number**2
        assert len(taken) <= number + 1 + 3
    assert taken == list(range(50))


def test_an_error_is_raised_after_the_results_before_it():
    def items():
        yield from range(10)
        raise OSError("cut")

    results = _threads.in_order(items(), lambda k: k, 4)
    assert [next(results) for _ in range(10)] == list(range(10))
    with pytest.raises(OSError, match="cut"):
        next(results)
    results = _threads.in_order(range(-5, 10), lambda k: 1 / k, 4)
    assert len([next(results) for _ in range(5)]) == 5
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_where_no_thread_can_be_started_the_asking_one_works(monkeypatch):
    def refused(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    assert list(_threads.in_order(range(9), lambda k: k + 1, 3)) == list(range(1, 10))
    assert list(_threads.ahead(iter(range(9)))) == list(range(9))


@pytest.mark.skipif(sys.platform == "emscripten", reason="a page has one thread")
class TestNumberOfThreads:
    def test_as_given_else_by_the_environment_else_one_per_core(self, monkeypatch):
        monkeypatch.delenv(_threads.VARIABLE, raising=False)
        monkeypatch.setattr(_threads.os, "sched_getaffinity", lambda _: {0, 1, 4}, raising=False)
        assert _threads.jobs() == 3
        monkeypatch.setenv(_threads.VARIABLE, "5")
        assert (_threads.jobs(), _threads.jobs(2)) == (5, 2)

    def test_one_in_the_threads_of_a_pool_unless_given(self, monkeypatch):
        monkeypatch.delenv(_threads.VARIABLE, raising=False)
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(_threads.jobs).result() == 1
            assert pool.submit(_threads.jobs, 4).result() == 4
            monkeypatch.setenv(_threads.VARIABLE, "3")
            assert pool.submit(_threads.jobs).result() == 3

    @pytest.mark.slow
    def test_one_in_the_processes_of_a_pool(self):
        code = (
            "import multiprocessing as m\n"
            "from latencykit._threads import jobs\n"
            "if __name__ == '__main__':\n"
            "    with m.get_context('spawn').Pool(1) as pool: print(pool.apply(jobs))\n"
        )
        assert python("-c", code).stdout == "1\n"

    def test_one_without_threads(self, monkeypatch):
        monkeypatch.delenv(_threads.VARIABLE, raising=False)
        monkeypatch.setattr(_threads, "THREADS", False)
        assert _threads.jobs() == 1
        assert list(_threads.in_order(range(3), str, 4)) == ["0", "1", "2"]

    @pytest.mark.parametrize("text", ["0", "-1", "two", "1.5", "²"])
    def test_nonsense_is_refused(self, monkeypatch, text):
        monkeypatch.setenv(_threads.VARIABLE, text)
        with pytest.raises(InvalidArgumentError, match="LATENCYKIT_JOBS"):
            _threads.jobs()
        with pytest.raises(InvalidArgumentError, match="jobs"):
            lk.read("x.hlog", jobs=0)

    def test_one_thread_starts_none(self, small, tmp_path, monkeypatch):
        path = write(tmp_path / "x.hlog", 1)
        small.setattr(threading.Thread, "start", None)
        assert lk.read(path, jobs=1).histogram().count
        monkeypatch.setenv(_threads.VARIABLE, "1")
        assert lk.read(path).histogram().count
