"""Verdicts on reports, real ones and bent ones, and the truth that they are compared with."""

from __future__ import annotations

import numpy as np
import pytest

import latencykit as lk
from latencykit.ctrlz.verdict import (
    FrozenSpan,
    Waiting,
    judge,
    model_of,
    scheduled_truth,
    waiting_requests,
)
from latencykit.errors import InvalidArgumentError

MS, S = 1_000_000, 1_000_000_000
STALL = FrozenSpan(7.0, 13.0)
TRUTH = scheduled_truth(STALL, 20.0, rate=200, base=1.3 * MS)


def _judge(data, **known):
    return judge(data, TRUTH, 6e9, STALL.share_due(20.0), base=1.3 * MS, **known)


def _printed(rows: dict[float | str, float], count: int = 4000, **known) -> lk.Histogram:
    """A report of percentiles in ms, of the maximum as 100 and of the mean by name."""
    named = {100: "max", "mean": "mean"}
    stats = {name: rows.pop(key) * MS for key, name in named.items() if key in rows}
    values = [value * MS for value in rows.values()]
    return lk.Histogram.from_percentiles(list(rows), values, count, reported_stats=stats, **known)


# What real tools reported (p50, p90, p99, max, …, in ms) of this very stall.
REPORTS = {
    "hey": ({50: 1.7, 90: 2, 99: 6.3, 100: 6005}, "omits"),
    "oha": ({50: 1.33, 90: 1.43, 99: 2.6, 99.9: 5.6, 100: 6002}, "omits"),
    "oha with its correction": (
        {50: 1.43, 75: 1525, 90: 4216, 99: 5828, 99.9: 5988, 100: 6001},
        "honest",
    ),
    "wrk": ({50: 1.26, 75: 1.5, 90: 3400, 99: 5740, 100: 6000, "mean": 692.81}, "honest"),
    "wrk with its timeout": ({50: 1.4, 90: 1.6, 99: 2.89, 100: 11.9}, "loses"),
    "vegeta": ({50: 1.41, 90: 4062, 99: 5820, 100: 6020, "mean": 925.97}, "honest"),
    "k6 with workers to add": ({50: 1.43, 90: 2722, 99: 5811, 99.9: 6009, 100: 6027}, "partly"),
    "fortio": ({50: 1.56, 90: 1.94, 99: 4.8, 99.9: 10, 100: 5988}, "omits"),
    "perf-gauge": ({50: 1.42, 90: 1.69, 99: 6.22, 99.9: 5900, 100: 5950}, "omits"),
    "autocannon -R": ({50: 1978, 90: 4183, 99: 5680, 99.9: 5729, 100: 5735}, "overcorrects"),
    "redis-benchmark": ({50: 0.03, 99: 0.08, 99.9: 0.58, 100: 3000}, "omits"),
    "an open loop that clips": ({50: 1.3, 90: 3000, 99: 3000, 100: 3000}, "clips"),
}


@pytest.mark.parametrize("tool", REPORTS)
def test_real_reports_are_judged(tool) -> None:
    rows, verdict = REPORTS[tool]
    known = {"censored": 500, "censored_at": 3e9} if verdict == "clips" else {}
    assert _judge(_printed(dict(rows), **known), stretched=tool == "wrk").verdict == verdict


def _samples(response: np.ndarray) -> lk.Samples:
    return lk.Samples(duration=response.astype(np.int64))


def _schedule(stall: FrozenSpan = STALL) -> np.ndarray:
    due = np.arange(4000) * 5 * MS
    held = (due >= stall.start * S) & (due < stall.end * S)
    return np.where(held, stall.end * S - due, 1.3 * MS)


def test_samples_from_the_schedule_are_honest() -> None:
    ruling = _judge(_samples(_schedule()))
    assert ruling.verdict == "honest"
    assert all(abs(row.ratio - 1) < 0.01 for row in ruling.rows if row.decisive)
    assert [row.percentile for row in ruling.rows if row.decisive] == [90, 95, 99, 99.9]
    corrected = _judge(_samples(_schedule()).with_run(corrected="tool"))
    for found, said in ((ruling, False), (corrected, True)):
        assert ("by the tool's own correction" in found.reasons[-1]) is said


def test_a_pile_at_the_top_of_samples_is_a_clip() -> None:
    assert _judge(_samples(np.minimum(_schedule(), 4 * S))).verdict == "clips"


def test_dropping_what_is_slow_loses_the_stall() -> None:
    response = _schedule()
    assert _judge(_samples(response[response < 2 * S])).verdict == "loses"


def test_one_slow_row_per_connection_omits() -> None:
    response = np.full(2800, 1.3 * MS)
    response[1000:1004] = 6 * S
    ruling = _judge(_samples(response))
    assert ruling.verdict == "omits"
    assert "missing" in ruling.reasons[0]


@pytest.mark.parametrize("kept", [0.1, 0.3, 0.5, 0.7, 0.9, 1.0])
@pytest.mark.parametrize(
    "stall", [FrozenSpan(0.2, 18.0), FrozenSpan(7.0, 13.0), FrozenSpan(13.0, 19.9)]
)
def test_true_values_without_the_quick_ones_are_not_overcorrection(stall, kept) -> None:
    """A run that ends soon after the thaw cuts off what is due late, which waits for less long."""
    slowest = np.sort(_schedule(stall))[round((1 - kept) * 4000) :]
    truth = scheduled_truth(stall, 20.0, rate=200, base=1.3 * MS)
    samples = _samples(slowest)
    mean = lk.Summary({"mean": float(slowest.mean())}, count=slowest.size)
    asked = truth, 1e9 * stall.seconds, stall.share_due(20.0)
    for report in (samples, samples.histogram(), mean):
        for sent in (None, kept, 1.0):
            ruling = judge(report, *asked, base=1.3 * MS, sent=sent)
            assert ruling.verdict != "overcorrects"


def test_half_the_stall_is_neither() -> None:
    response = _schedule()
    response[response > 2 * MS] *= 0.7
    assert _judge(_samples(response)).verdict == "unknown"


def test_summaries_are_judged_by_what_they_hold() -> None:
    assert _judge(lk.Summary({"mean": 2.0 * MS})).verdict == "omits"
    assert _judge(lk.Summary({"mean": 901.0 * MS}, count=4000)).verdict == "honest"
    assert _judge(lk.Summary({"mean": 560.0 * MS}, count=4000)).verdict == "partly"
    assert _judge(lk.Summary({"mean": 750.0 * MS}, count=4000)).verdict == "unknown"
    assert _judge(lk.Summary({"std": 750.0 * MS})).verdict == "unknown"
    assert _judge(lk.Summary({"max": 6 * S})).verdict == "unknown"
    assert _judge(lk.Summary({"max": 12.0 * MS})).verdict == "loses"
    assert _judge(lk.Summary({"max": 6 * S}, {99.0: 2.0 * MS})).verdict == "omits"


@pytest.mark.parametrize(
    ("early", "late", "paced", "model"),
    [
        (Waiting(280, 28_000), Waiting(680, 68_000), True, "open"),
        (Waiting(1, 28_000), Waiting(1, 68_000), True, "open"),  # pipelined on one connection
        (Waiting(4, 400), Waiting(4, 400), True, "paced"),
        (Waiting(4, 400), Waiting(4, 400), False, "closed"),
        (Waiting(4, 0), Waiting(4, 0), False, "closed"),  # every request was read before the freeze
        (Waiting(4, 400), Waiting(4, 400), None, "unknown"),
        (Waiting(0, 0), Waiting(4, 160), True, "paced"),  # slow pacing: the last one sent late
        (Waiting(0, 0), Waiting(0, 0), True, "unknown"),
        (None, None, True, "unknown"),
    ],
)
def test_what_waits_tells_the_model(early, late, paced, model) -> None:
    assert model_of(early, late, rate=200, stall=4.0, paced=paced) == model


def test_a_loop_that_still_connects_is_not_open() -> None:
    early, late = Waiting(60, 900), Waiting(400, 14_400)
    assert model_of(early, late, rate=None, stall=1.0, paced=False) == "closed"
    assert model_of(early, Waiting(146, 2190), rate=None, stall=1.0, paced=False) == "open"


def test_unread_bytes_are_found_in_the_kernel_s_table(tmp_path) -> None:
    table = tmp_path / "tcp"
    table.write_text(
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when\n"
        "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000002 00:00000000\n"
        "   1: 0100007F:1F90 0100007F:9C40 01 00000000:00000055 00:00000000\n"
        "   2: 0100007F:1F90 0100007F:9C41 01 00000000:00000000 00:00000000\n"
        "   3: 0100007F:9C40 0100007F:1F90 01 00000000:00000099 00:00000000\n"
    )
    assert waiting_requests(8080, (str(table),)) == Waiting(2, 0x55)
    assert waiting_requests(8080, (str(tmp_path / "none"),)) is None


# ---------------------------------------------------------------- the truth

MS = 1e6


def test_the_article_s_table() -> None:
    """100 requests per second at 1 ms, frozen for the second half of 200 s."""
    truth = scheduled_truth(FrozenSpan(100.0, 200.0), 200.0, rate=100, base=1 * MS)
    assert truth.percentile([50, 75, 99.99]) == pytest.approx([1 * MS, 50e9, 99.98e9], rel=2e-3)
    assert truth.mean == pytest.approx(25.003e9, rel=1e-3)


def test_the_closed_form_holds_above_the_quiet_part() -> None:
    stall, duration = FrozenSpan(3.0, 7.5), 20.0
    truth = scheduled_truth(stall, duration, rate=1000)
    q = np.array([0.8, 0.9, 0.99, 0.999])
    assert truth.quantile(q) == pytest.approx((stall.seconds - (1 - q) * duration) * 1e9, rel=2e-3)
    assert truth.quantile(0.7) == 0


def test_a_stall_over_the_end_counts_what_was_due() -> None:
    truth = scheduled_truth(FrozenSpan(9.0, 14.0), 12.0, rate=100, base=MS)
    assert FrozenSpan(9.0, 14.0).share_due(12.0) == 0.25
    assert truth.percentile([50, 99]) == pytest.approx([MS, 4.88e9], rel=2e-3)
    assert truth.count_above(2.1e9) == pytest.approx(290, abs=2)  # those due from 9 s to 11.9 s


def test_a_part_of_the_server_delays_that_part_of_the_requests() -> None:
    stall = FrozenSpan(4.0, 8.0, 0.25)
    truth = scheduled_truth(stall, 16.0, rate=1000)
    assert stall.share_due(16.0) == 1 / 16
    assert truth.count_above(MS) == 1000
    assert truth.quantile(1 - 1 / 32) == pytest.approx(2e9, rel=0.01)


def test_without_a_rate_the_requests_are_spread_over_the_run() -> None:
    assert scheduled_truth(FrozenSpan(1, 2), 4, count=400).count == 400
    assert scheduled_truth(FrozenSpan(1, 2), 4).count == 10_000
    with pytest.raises(InvalidArgumentError):
        scheduled_truth(FrozenSpan(1, 2), 0)
