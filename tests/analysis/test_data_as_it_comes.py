"""Data sets as users have them, whose truth is known: no sentence about them may be false."""

from __future__ import annotations

import math

import numpy as np
import pytest

import latencykit as lk
from latencykit.views.series import series_record
from tests.benchmarks.worlds import moments, requests

EPOCH = 1_770_000_000.0


def usual(rng: np.random.Generator, number: int, median: float = 5e-3) -> np.ndarray:
    """Latencies of a healthy service, seconds."""
    return median * rng.lognormal(0, 0.5, number)


def samples(start: np.ndarray, latency: np.ndarray, **columns: object) -> lk.Samples:
    """Requests with their times, seconds."""
    rows = requests(EPOCH + start, latency)
    return rows.with_columns(columns) if columns else rows


# ---------------------------------------------------------------- hosts side by side


@pytest.fixture(scope="module")
def hosts() -> lk.HistogramLog:
    """Four hosts of one service for ten minutes, one of which dies halfway."""
    logs = []
    for host in range(4):
        rng = np.random.default_rng([3, host])
        start = moments(rng, 50, 300.0 if host == 2 else 600.0) + 0.2 * host
        logs.append(samples(start, usual(rng, start.size)).to_log("1s"))
    return lk.merge(logs)


def test_seconds_of_hosts_side_by_side_are_not_added_up(hosts: lk.HistogramLog) -> None:
    assert 595 <= hosts.evidence().jackknife.bins <= 602
    assert 600 <= hosts.evidence().jackknife.seconds <= 602


def test_the_rate_of_hosts_side_by_side_is_that_of_all(hosts: lk.HistogramLog) -> None:
    found = lk.diagnose(hosts)
    assert found.rate is not None
    assert 150 < found.rate < 210
    assert hosts.histogram().count == found.raw.count


# ---------------------------------------------------------------- requests counted again


def test_requests_that_were_counted_again_make_nothing_surer() -> None:
    rng = np.random.default_rng(4)
    truth = 5e6 * math.exp(0.5 * 2.3263479)
    wrong = 0
    for _ in range(100):
        values = 5e6 * rng.lognormal(0, 0.5, 2000)
        again = lk.Histogram.of(np.repeat(values, 50))
        for factor in (0.98, 1.02):
            (row,) = lk.SLO.parse(f"99={factor * truth:.0f}ns").check(again)
            wrong += row.bounded == ("met" if factor < 1 else "missed")
            assert not row.sure
    assert wrong <= 8  # of 200
    once, often = lk.Histogram.of(values), lk.Histogram.of(np.repeat(values, 50))
    ours, theirs = (one.percentile_rows([50, 99]) for one in (once, often))
    assert [(row.low, row.high) for row in ours] == [(row.low, row.high) for row in theirs]
    assert often.highest_supported_percentile() == once.highest_supported_percentile()


@pytest.mark.parametrize("together", [False, True])
def test_shares_of_a_round_number_of_requests_are_not_repeats(together: bool) -> None:
    percentiles = np.arange(1.0, 101.0)
    one, other = (
        lk.Histogram.from_percentiles(percentiles, scale * 1.03**percentiles, count)
        for scale, count in ((1e6, 1000), (1.1e6, 4000))
    )
    data = lk.merge([one, other]) if together else one
    assert np.gcd.reduce(data.counts) > 1
    assert data.sample_limit() == lk.Histogram.of(np.arange(data.count) + 1.0).sample_limit()
    assert series_record("shares", data)["findings"] == []


@pytest.mark.slow
def test_a_run_and_its_copy_are_not_different() -> None:
    """Pairs of one system, of which the new side was counted twenty times."""
    alarms = 0
    for k in range(8):
        rng = np.random.default_rng([6, k])
        base, new = (5e6 * rng.lognormal(0, 0.5, 2000) for _ in range(2))
        found = lk.compare(lk.Histogram.of(base), lk.Histogram.of(np.repeat(new, 20)))
        alarms += bool(found.failed(["p50 > 0.1%", "p99 > 0.1%"]))
    assert alarms <= 1


# ---------------------------------------------------------------- users who wait for many calls


def test_fan_out_trusts_one_call_no_further_than_its_summary() -> None:
    """A cache warms up: requests of the first minute are slow together."""
    rng = np.random.default_rng(5)
    start = moments(rng, 100, 300.0)
    warm = samples(start, usual(rng, start.size) * (1 + 9 * np.exp(-start / 30)))
    (one,) = lk.fan_out(warm, [1])
    for row in warm.evidence().rows([50, 90, 99])[0]:
        assert one.supported(row.percentile) == row.supported
    assert not one.rows([99])[0].supported


# ---------------------------------------------------------------- timeouts, averages, coarse clocks


def given_up(rng: np.random.Generator, at: float, share: float = 0.02) -> lk.Samples:
    """A client that gives up after `at` seconds and records that latency."""
    start = moments(rng, 20, 1800.0)
    slow = rng.random(start.size) < share
    latency = np.where(slow, rng.exponential(2 * at, start.size), usual(rng, start.size, 0.1))
    return samples(start, np.minimum(latency, at))


@pytest.mark.parametrize("at", [2.0, 5.0, 30.0])
def test_what_a_timeout_hides_is_unknown(at: float) -> None:
    requests = given_up(np.random.default_rng([7, int(at)]), at)
    for data in (requests, requests.histogram()):
        (row,) = lk.SLO.parse(f"99.5={1.2 * at}s").check(data)
        assert row.outcome == "unknown"  # true: more than twice that
        assert "if that is a timeout" in row.reason
    (row,) = lk.SLO.parse(f"90={1.2 * at}s").check(requests)
    assert row.outcome == "met"


def test_one_row_every_ten_seconds_may_be_an_average() -> None:
    rng = np.random.default_rng(9)
    means = samples(np.arange(360.0) * 10, usual(rng, 360))
    assert any("if the rows are averages" in text for text in series_record("", means)["findings"])
    start = moments(rng, 0.1, 3600.0)
    single = samples(start, usual(rng, start.size))
    assert series_record("", single)["findings"] == []


def test_the_mean_of_latencies_that_are_rounded_down_is_not_exact() -> None:
    """Whole milliseconds of 2.5 on average, all rounded down."""
    rng = np.random.default_rng(10)
    start = moments(rng, 40, 1800.0)
    whole = samples(start, np.floor(usual(rng, start.size, 2.2e-3) * 1e3) / 1e3)
    (row,) = lk.SLO.parse("mean=2.3ms").check(whole)
    assert row.outcome == "unknown"


# ---------------------------------------------------------------- what a diagnosis says


def test_a_pause_of_the_traffic_is_named() -> None:
    rng = np.random.default_rng(11)
    start = moments(rng, 100, 120.0)
    start = start[(start < 50) | (start > 75)]
    rows = samples(start, usual(rng, start.size))
    for data in (rows, rows.to_log("1s")):
        found = lk.diagnose(data)
        assert found.verdict == "unknown"
        assert found.findings == ()
        assert "nothing was recorded for 2" in found.summary
        assert found.rate == pytest.approx(100, rel=0.05)


def test_bursts_are_not_reported_as_pauses() -> None:
    rng = np.random.default_rng(12)
    start = np.sort((np.arange(60) * 3.0)[:, None] + rng.random((60, 40)), axis=None)
    assert "nothing was recorded" not in lk.diagnose(samples(start, usual(rng, 2400))).summary


def test_short_requests_that_kept_no_others_from_being_sent_leave_the_record_whole() -> None:
    """One request of a hundred was kept of a service that stalls for half a second."""
    rng = np.random.default_rng(13)
    start = moments(rng, 10, 1200.0)
    latency = usual(rng, start.size)
    for begin in moments(rng, 1 / 30, 1190.0):
        hit = (start >= begin) & (start < begin + 0.5)
        latency[hit] += begin + 0.5 - start[hit]
    found = lk.diagnose(samples(start, latency))
    assert (found.verdict, found.sure) == ("clean", True)
    assert lk.diagnose(samples(start, usual(rng, start.size))).verdict == "no stall"


def test_what_a_list_of_percentiles_does_not_say_is_unknown(tmp_path) -> None:
    path = tmp_path / "percentiles.csv"
    path.write_text("percentile,latency_ms\n50,5\n90,9.5\n99,16\n99.9,25\n")
    found = lk.diagnose(lk.read(path), rate=100, duration=60)
    assert (found.verdict, found.findings) == ("unknown", ())
    assert found.summary == (
        "how many requests there were, or how long the longest took, is not reported"
    )
