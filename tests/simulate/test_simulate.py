"""Simulated servers and load generators: the queue one by one, theory, published tables."""

from __future__ import annotations

import numpy as np
import pytest

from latencykit.errors import DataNotAvailableError, InvalidArgumentError
from latencykit.simulate.generators import (
    catch_up_loop,
    closed_loop,
    fixed,
    open_loop,
    paced_loop,
    poisson,
)
from latencykit.simulate.server import Queue, Server, Stall, exponential, lognormal

STALLS = (Stall(2, 1), Stall("2.5s", 1), Stall(7, 0.25))


def one_by_one(server: Server, sent: np.ndarray, seed: int) -> np.ndarray:
    """Replies by the sequential queue, with the very draws of `Server.replies`."""
    rng = np.random.default_rng(seed)
    work, shard = server.draw(rng, sent.size), server.shards_of(rng, sent.size)
    queue = Queue(server)
    rows = zip(sent.tolist(), work.tolist(), shard.tolist(), strict=True)
    return np.array([queue.take(*row) for row in rows])


@pytest.mark.parametrize(
    "server",
    [
        Server(exponential("8ms"), stalls=STALLS),
        Server(lognormal("5ms", 0.8), ideal=True, stalls=STALLS),
        Server(
            exponential("30ms"), servers=4, sharded=True, stalls=(Stall(3, 2, shard=1), *STALLS)
        ),
        Server(exponential("8ms"), stalls=(Stall(1, 1, drain=True), Stall(5, 1))),
    ],
)
def test_the_recursion_in_one_pass_is_the_queue_one_by_one(server: Server) -> None:
    sent = poisson(100, 10, seed=4)
    assert np.allclose(
        server.replies(sent, np.random.default_rng(9)), one_by_one(server, sent, 9), atol=1e-3
    )


def test_a_queue_in_balance_waits_as_the_theory_says() -> None:
    sent = poisson(800, 400, seed=1)
    response = Server(exponential("1ms")).replies(sent, np.random.default_rng(2)) - sent
    assert response.mean() / 1e6 == pytest.approx(5.0, rel=0.08)  # M/M/1 at 0.8: 1 / (1 - 0.8)
    assert np.quantile(response, 0.5) / 1e6 == pytest.approx(5.0 * np.log(2), rel=0.08)


def test_a_real_server_drains_after_the_thaw() -> None:
    sent = np.arange(20_000) * 1e7
    real = Server("1ms", stalls=[Stall(100, 100)]).replies(sent, np.random.default_rng(0)) - sent
    assert real.mean() / 1e9 == pytest.approx(27.50, abs=0.01)
    assert np.quantile(real, 0.75, method="inverted_cdf") / 1e9 == pytest.approx(55.0, abs=0.01)


def test_one_queue_before_many_servers_goes_around_the_one_that_stops_responding() -> None:
    sent = np.arange(0, 4e9, 1e7)
    shared = Server("15ms", servers=2, stalls=[Stall(1.002, 1, shard=0)])
    slow = shared.replies(sent, np.random.default_rng(0)) - sent
    assert (slow > 0.9e9).sum() == 1, "only the request that was being served waits for the thaw"
    shards = Server("5ms", servers=2, sharded=True, stalls=[Stall(1, 1, shard=0)])
    held = shards.replies(sent, np.random.default_rng(0)) - sent
    assert 30 < (held[(sent >= 1e9) & (sent < 2e9)] > 0.5e8).sum() < 70, (
        "half of the requests are that shard's"
    )


def test_a_draining_server_turns_new_requests_away_and_works_on() -> None:
    replies = Server("300ms", stalls=[Stall(1, 1, drain=True)]).replies(
        np.array([0.9e9, 1.5e9, 2.0e9]), np.random.default_rng(0)
    )
    assert replies.tolist() == [1.2e9, -np.inf, 2.3e9]


def test_impossible_servers_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="no shard 3"):
        Server(servers=2, stalls=[Stall(1, 1, shard=3)])
    with pytest.raises(InvalidArgumentError, match="longer than nothing"):
        Stall(1, 0)
    with pytest.raises(InvalidArgumentError, match="at least one server"):
        Server(servers=0)


# ---------------------------------------------------------------- load generators

ARTICLE = Server("1ms", stalls=[Stall(100, 100)], ideal=True)


def nearest_rank(values: np.ndarray, percentile: float) -> float:
    return float(np.quantile(values, percentile / 100, method="inverted_cdf")) / 1e6


def test_the_articles_table() -> None:
    truth = open_loop(ARTICLE, fixed(100, 200)).response
    naive = paced_loop(ARTICLE, 100, 200).duration
    assert (len(naive), len(truth)) == (10_001, 20_000)
    assert naive.mean() / 1e6 == pytest.approx(10.9989, abs=1e-4)
    assert [nearest_rank(naive, p) for p in (50, 75, 99.99)] == [1, 1, 1]
    assert truth.mean() / 1e9 == pytest.approx(25.003, abs=1e-3)
    late = pytest.approx(99_980, abs=11)
    assert [nearest_rank(truth, p) for p in (50, 75, 99.99)] == [1, 50_000, late]


def test_catching_up_is_twice_as_wrong() -> None:
    naive = catch_up_loop(ARTICLE, 100, 200)
    assert len(naive) == 20_000
    assert naive.duration.mean() / 1e6 == pytest.approx(6.0, abs=0.01)
    assert nearest_rank(naive.duration, 99.995) == 1
    assert naive.response.mean() / 1e9 == pytest.approx(27.5, abs=0.1), "the slots know better"


def test_a_closed_loop_at_full_speed_keeps_its_connections_busy() -> None:
    samples = closed_loop(Server(exponential("2ms"), servers=8), 5, connections=4, seed=3)
    assert samples.duration.sum() / 5e9 == pytest.approx(4.0, rel=0.01), (
        "Little's law: four are always under way"
    )
    with pytest.raises(DataNotAvailableError):
        _ = samples.response


def test_connections_take_turns_and_only_wait_for_themselves() -> None:
    samples = paced_loop(Server("1ms", stalls=[Stall(2, 3)]), rate=200, duration=10, connections=4)
    assert len(samples) == pytest.approx(200 * 7 + 4, abs=4)
    for connection in range(4):
        mine = np.sort(samples.start[samples.connection == connection])
        assert np.diff(mine).min() >= 15e6, "a slot that passed is not made up for"
    assert (samples.duration > 2.9e9).sum() == 4


def test_timeouts_cut_what_the_client_sees() -> None:
    samples = paced_loop(
        Server("1ms", stalls=[Stall(2, 3)], ideal=True), rate=100, duration=10, timeout="500ms"
    )
    late = ~samples.good
    assert samples.duration[late].tolist() == [5e8] * 5, (
        "half a second each; the sixth is answered in time"
    )
    assert (samples.histogram().censored, samples.run.timeout) == (5, 5e8)
    lost = open_loop(
        Server("1ms", stalls=[Stall(2, 3)], ideal=True), fixed(100, 10), timeout="500ms"
    )
    assert (~lost.good).sum() == 250


def test_the_same_seed_gives_the_same_world() -> None:
    server = Server(exponential("3ms"))
    first, again = (open_loop(server, poisson(100, 5, seed=1), seed=2).duration for _ in range(2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, open_loop(server, poisson(100, 5, seed=1), seed=3).duration)


def test_the_provenance_is_reported() -> None:
    paced = paced_loop(ARTICLE, 100, 2).run
    assert (paced.loop, paced.measure, paced.corrected) == ("paced", "service", "none")
    assert open_loop(ARTICLE, fixed(100, 2), duration=2).run.rate == 100
    assert closed_loop(ARTICLE, 1).run.loop == "closed"
    with pytest.raises(InvalidArgumentError):
        paced_loop(ARTICLE, 0, 1)
