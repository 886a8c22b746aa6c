from __future__ import annotations

import numpy as np
import pytest

from latencykit.ctrlz.verdict import FrozenSpan, scheduled_truth
from latencykit.errors import InvalidArgumentError

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
