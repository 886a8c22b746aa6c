"""Capacity within an SLO, and saturation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import latencykit as lk
from latencykit.analysis.capacity import bracket, crossing, load_row
from latencykit.analysis.sweep import times_longer
from latencykit.views.load import load_words

RATES = np.arange(100.0, 1000, 100)
P99 = math.log(100) / (1000 - RATES)  # M/M/1 that serves 1000/s, seconds


def test_the_latency_of_an_mm1_queue_crosses_20_ms_at_769_7_per_second() -> None:
    assert crossing(RATES, P99, 0.020) == pytest.approx(769.74, abs=0.01)
    order = np.random.default_rng(1).permutation(18) % 9
    twice = crossing(RATES[order], P99[order] * np.tile([0.99, 1.01], 9), 0.020)
    assert twice == pytest.approx(769.7, rel=0.02)


def test_nothing_is_said_beyond_the_measurement() -> None:
    assert crossing([100, 200], [10.0, 12.0], 20.0) == 200
    assert math.isnan(crossing([100, 200], [30.0, 40.0], 20.0))
    assert crossing([100, 200, 300], [10.0, 11.0, 12.0], 20.0, [False, False, True]) < 300
    for rates, values in (([], []), ([1, 2], [1.0]), ([1], [0.0])):
        with pytest.raises(lk.InvalidArgumentError):
            crossing(rates, values, 1.0)


@pytest.mark.parametrize(
    ("loads", "outcomes", "low", "high", "remark"),
    [
        ([100, 200], "++", 200, math.inf,
         "the limit was met at every load measured; the capacity is at least the highest"),
        ([100, 200, 300, 400], "+??-", 100, 400, "2 loads between them cannot be decided"),
        ([100, 200, 300, 400], "?+?-", 200, 400, "1 load between them cannot be decided"),
        ([100, 200, 300, 400], "+-?-", 100, 200, ""),
        ([100, 200], "-?", 0, 100, "even the lowest load measured, 100/s, misses the limit"),
        ([100, 200], "+?", 100, math.inf,
         "no load measured surely misses the limit: undecided at 200/s; measure for longer"),
        # A stall at 200 fails a sustained load: 300 passes, so nothing in between is known.
        ([100, 200, 300, 400], "+-+-", 100, 400, "200/s misses the limit, and a higher load meets it"),
        # Runs at one load must agree; one that is undecided is outvoted.
        ([100, 200, 200, 300], "++--", 100, 300, "1 load between them cannot be decided"),
        ([100, 200, 200, 300], "++?-", 200, 300, ""),
        ([300, 200, 100, 100], "-???", 0, 300,
         "undecided at 100/s, 200/s; measure for longer"),
    ],
)  # fmt: skip
def test_what_runs_leave_of_the_capacity(
    loads: list[float], outcomes: str, low: float, high: float, remark: str
) -> None:
    words = {"+": "met", "-": "missed", "?": "unknown"}
    assert bracket(loads, [words[sign] for sign in outcomes]) == (low, high, remark)


def queue(rng: np.random.Generator, rate: float, size: int) -> lk.Samples:
    """Requests of one server of a mean of 1 ms, at random moments."""
    sent, work = np.cumsum(rng.exponential([[1 / rate], [1e-3]], (2, size)), axis=1)
    replied = work + np.maximum.accumulate(sent - np.append(0.0, work[:-1]))
    return lk.Samples(start=sent * 1e9, duration=(replied - sent) * 1e9)


def test_the_events_of_a_run_say_how_much_longer_it_has_to_be() -> None:
    rng = np.random.default_rng(5)
    runs = {f"{rate}": queue(rng, rate, 2000) for rate in (300, 500, 600)}
    curve = lk.load_curve(runs, "99.5=60ms")
    (row,) = (row for row in curve.rows if row.name == "600")
    assert curve.decided("600")[0] == "unknown"
    evidence: Any = row.evidence
    (events,) = evidence.events([99.5])
    assert times_longer(curve, "600") == pytest.approx(1.2 * 20 / max(events, 0.1))


@pytest.mark.parametrize("form", ["samples", "histogram", "log of 3 to 10 s"])
def test_short_runs_of_a_queue_leave_its_capacity_within_the_bracket(form: str) -> None:
    rng, held, decided = np.random.default_rng(5), 0, 0
    for _ in range(12):
        runs: dict[str, lk.Data] = {}
        for rate in (300, 500, 600, 700, 780, 820, 900):
            run = queue(rng, rate, 3000)
            forms = {"samples": run, "histogram": run.histogram()}
            runs[f"{rate}"] = forms.get(form, run.to_log("1s"))
        capacity = lk.load_curve(runs, "99=20ms").capacity
        assert capacity is not None
        held += capacity.low <= 769.74 <= capacity.high
        decided += capacity.low > 0
    assert held >= 11
    assert decided >= 9


def test_service_times_that_vary_are_not_taken_for_waiting() -> None:
    rng = np.random.default_rng(7)
    runs = {f"{rate}": lk.Histogram.of(rng.exponential(8e6, 20_000)) for rate in (300, 600, 900)}
    assert lk.load_curve(runs, "99=50ms").capacity.low == 900  # p99 is 37 ms
    took = rng.exponential(32e6, 20_000)  # of 64 servers, as times show
    runs = {
        rate: lk.Samples(start=np.arange(2e4) * 1e9 / int(rate), duration=took) for rate in runs
    }
    assert lk.load_curve(runs, "99=170ms").capacity.low == 900  # p99 is 147 ms


def test_few_requests_do_not_show_saturation() -> None:
    for count, saturated in ((1_000, False), (100_000, True)):
        run = lk.Run(loop="open", rate=500.0, duration=count / 480)
        data = lk.Histogram.of(np.full(count, 1_000), run=run)
        assert [row.saturated for row in lk.load_curve({"": data}).rows] == [saturated]


def test_a_run_misses_by_the_first_limit_that_it_misses() -> None:
    values = {"500": 1e9 / 500, "990": 1e9 / 10}
    runs = {rate: lk.Histogram.of(np.full(2000, value)) for rate, value in values.items()}
    curve = lk.load_curve(runs, "p50=1s, p99=20ms")
    assert curve.verdict("500") == ("met", "")
    outcome, reason = curve.verdict("990")
    assert (outcome, reason) == ("missed", curve.checks[1][1].reason)
    assert reason
    assert [curve.decided(name)[0] for name in ("500", "990")] == ["met", "missed"]
    falling = {"500": runs["990"], "990": runs["500"].with_run(loop="closed")}
    limit, loops = load_words(lk.load_curve(falling, "p99=20ms"))
    assert limit == "p99=20 ms: 500/s misses the limit, and a higher load meets it"
    assert loops.startswith("closed loops (990): each connection waited")
    took = np.random.default_rng(1).exponential(4e6, 2000).astype(np.int64)
    sent = [
        (np.cumsum(gap) - gap, loop)
        for gap, loop in ((took + 1000, "closed"), (4000 + 0 * took, "unknown"))
    ]
    for start, loop in sent:  # as diagnose sees it: one request in flight, always
        assert load_row("", lk.Samples(start=start, duration=took)).data.run.loop == loop


@pytest.mark.parametrize(("rate", "saturated"), [(980, False), (1050, True), (1200, True)])
def test_a_queue_that_grows_is_saturated_though_all_is_answered(
    rate: float, saturated: bool
) -> None:
    """The last replies come after the last requests, so that as many are answered as were sent."""
    rng, n = np.random.default_rng(9), 20_000
    arrival, work = (np.cumsum(rng.exponential(mean, n)) for mean in (1 / rate, 1e-3))
    done = work + np.maximum.accumulate(arrival - np.concatenate(([0.0], work[:-1])))
    run = lk.Samples(start=arrival * 1e9, duration=(done - arrival) * 1e9)
    data = run.to_log("1s") if rate > 1100 else run  # twelve blocks of one or two intervals
    (row,) = lk.load_curve({f"{rate}": data}).rows
    assert row.saturated == saturated
    assert row.achieved_low <= min(rate, 1000) <= row.achieved_high
