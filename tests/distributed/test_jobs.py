"""Commands over many files print and write the same, whether one process reads or several."""

from __future__ import annotations

import math
import multiprocessing
import pickle
import threading

import pytest

import latencykit as lk
from latencykit.cli import inputs
from latencykit.core import log_cache
from latencykit.distributed import executors as engines
from latencykit.distributed.executors import LocalExecutor, Task, read_each
from latencykit.io import files as places
from latencykit.io.parts import PartResult, for_transfer
from tests.conftest import RAW
from tests.distributed.conftest import rows_of

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("words", "out", "room"),
    [
        (["merge"], "out.hlog", 4),
        (["chart", "--kind", "timeline"], "out.svg", log_cache.BUDGET),
        (["compare", "--base", 0, "--base", 1, "--new", 2, "--new", 3], None, 4),
        (["check", "--unit", "ns", "--slo", "99=1ms,max=1s"], None, log_cache.BUDGET),
        (["fanout"], None, 4),
    ],
)
def test_processes_print_and_write_the_same(logs, say, monkeypatch, tmp_path, words, out, room):
    files = [] if words[0] == "compare" else logs[:4]
    given = [*(logs[word] if isinstance(word, int) else word for word in words), *files]
    monkeypatch.setattr(log_cache, "BUDGET", room)
    found = []
    for jobs, worth in ((1, 1 << 40), (2, 0)):
        monkeypatch.setattr(places, "_WORTH_PROCESSES", worth)
        target = tmp_path / f"{jobs}-{out}"
        more = ["-o", target] if out else ["--format", "json"]
        said = say(*given, "--jobs", jobs, *more)
        found.append((*said, target.read_bytes() if out else b""))
    assert found[0] == found[1]
    assert found[0][0] in (0, 1)


def test_an_unreadable_file_is_named_by_the_process_that_reads_it(logs, monkeypatch, run, tmp_path):
    bad = tmp_path / "bad.hlog"
    bad.write_bytes(bytes(range(256)) * 10)
    monkeypatch.setattr(places, "_WORTH_PROCESSES", 0)
    err = run.refused("merge", *logs[:3], bad, "--jobs", 2, "-o", tmp_path / "out.hlog")
    assert "bad.hlog" in err
    assert not (tmp_path / "out.hlog").exists()


def test_few_and_small_files_start_no_process(logs, monkeypatch, say):
    monkeypatch.setattr(engines, "_processes", None)
    assert say("summary", *logs[:3], "--jobs", 4)[0] == 0


def much(_: int) -> bytes:
    """An answer that is long on its way."""
    return bytes(50_000_000)


def test_a_pool_that_is_given_up_ends_though_an_answer_is_on_its_way():
    before = set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt), engines._processes(2) as pool:  # noqa: PT012 - in the middle of it
        answers = [pool.submit(much, k) for k in range(20)]
        answers[0].result()
        raise KeyboardInterrupt
    for thread in set(threading.enumerate()) - before:
        thread.join(20)
        assert not thread.is_alive()


@pytest.mark.parametrize("room", [0, math.inf])
def test_a_log_travels_with_its_sum_and_its_intervals_or_where_they_are(room):
    log = lk.read(RAW)
    travelled = pickle.loads(pickle.dumps(for_transfer(log, room, reachable=True)))
    assert rows_of(travelled) == rows_of(log)
    assert travelled.histogram().counts.tolist() == log.histogram().counts.tolist()
    assert travelled.between(3, 9).histogram().count == log.between(3, 9).histogram().count
    assert (travelled.unit, travelled.run) == (log.unit, log.run)
    assert rows_of(travelled.resample("2s")) == rows_of(log.resample("2s"))


def test_only_what_another_process_cannot_read_travels_in_memory(make_log, tmp_path):
    log = lk.read(make_log(tmp_path / "a.hlog"))
    assert for_transfer(log, 100, reachable=True) is log
    far = for_transfer(log, 100)
    assert far is not log
    assert rows_of(far) == rows_of(log)


def test_a_sum_is_counted_once(monkeypatch):
    log = lk.read(RAW)
    whole = log.histogram()
    monkeypatch.setattr(type(log), "_blocks", None)
    assert log.histogram() is whole


def refused(url):
    """A result that is an error."""
    return PartResult((), (), lk.InvalidArgumentError(url))


def test_threads_end_with_the_first_error(monkeypatch):
    monkeypatch.setattr(places, "_WORTH_PROCESSES", 0)
    before = set(threading.enumerate())
    tasks = [Task(name) for name in "abc"]
    with pytest.raises(lk.InvalidArgumentError, match="a"):
        read_each(LocalExecutor(2), refused, tasks, lambda done, every: None, lenient=False)
    for thread in set(threading.enumerate()) - before:
        thread.join(20)
        assert not thread.is_alive()


@pytest.mark.parametrize("words", [["summary"], ["summary", "--merge"]])
def test_an_assumed_unit_is_noted_once_with_the_number_of_files(logs, run, words, monkeypatch):
    for together in (inputs.TOGETHER, 0):
        monkeypatch.setattr(inputs, "TOGETHER", together)
        paths = [RAW, RAW.with_name("scheduled.hlog")]
        out = run(*words, *paths)[1]
        assert out.count("unit: ns (assumed; --unit states another)") == 1, out
        assert out.count("assumed") == 1


def test_an_executor_reads_what_this_process_does(logs):
    from concurrent.futures import ProcessPoolExecutor

    plain = lk.read_all(logs[5:8])
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        spread_out = lk.read_all(logs[5:8], executor=pool, tag=["get", ""])
    assert list(spread_out) == [name for name in plain if name != "put"]
    for name, data in spread_out.items():
        assert rows_of(data) == rows_of(plain[name])
