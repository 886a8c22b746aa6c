"""Load generators: the article's table, and what each leaves out of the same stall."""

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
from latencykit.simulate.server import Server, Stall, exponential

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
