"""Re-timing: response times from the schedule, for loops that skip and for loops that catch up."""

from __future__ import annotations

import numpy as np
import pytest

import latencykit as lk
from latencykit.analysis.retime import chains
from latencykit.simulate.generators import catch_up_loop, fixed, open_loop, paced_loop
from latencykit.simulate.server import Server, Stall, exponential

PERCENTILES = [50, 75, 90, 99, 99.9, 100]
STALLED = Server(exponential("1ms"), servers=8, stalls=[Stall(7, 6)])


def truth(rate: float, server: Server = STALLED) -> np.ndarray:
    return open_loop(server, fixed(rate, 20)).histogram().percentile(PERCENTILES)


@pytest.mark.parametrize("loop", [paced_loop, catch_up_loop])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("connections", [1, 4])
def test_both_kinds_of_loop_come_back_to_the_truth(
    loop: object, known: bool, connections: int
) -> None:
    naive = loop(STALLED, 200, 20, connections=connections)
    if not known:
        naive = lk.Samples(start=naive.start, duration=naive.duration)
    timed = lk.retime(naive, rate=200, connections=connections)
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
    naive = lk.Samples(start=[0, 10], duration=[1, 1], unit="ms")
    with pytest.raises(lk.InvalidArgumentError, match="rate="):
        lk.retime(naive)
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
