"""Trimmed statistics: definitions, partial weights, brackets, and what they leave out."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from latencykit.core.quantiles import Counted
from latencykit.core.trimmed import parse_trim, trimmed
from latencykit.errors import InvalidArgumentError

TEN = Counted.of(range(1, 11))


def by_value(values: np.ndarray, percentile: float) -> int:
    """The third "tm": the mean, truncated, of all values between two percentiles, inclusive."""
    ordered = np.sort(values)
    ends = [
        ordered[max(0, int(np.ceil(q / 100 * ordered.size)) - 1)]
        for q in (100 - percentile, percentile)
    ]
    return int(ordered[(ordered >= ends[0]) & (ordered <= ends[1])].mean())


def test_three_things_are_called_tm() -> None:
    values = np.r_[np.arange(1, 100), 10_000]
    counted = Counted.of(values)
    assert trimmed(counted, "tm99").value == pytest.approx(np.arange(2, 100).mean())  # both ends
    # CloudWatch's tm99
    assert trimmed(counted, "TM(:99%)").value == pytest.approx(np.arange(1, 100).mean())
    assert by_value(values, 99) == 50  # by value and cut to a whole number: 1 and 99 stay in
    ten = np.arange(1, 11)
    assert [trimmed(TEN, name).value for name in ("tm90", "TM(:90%)")] == [5.5, 5.0]
    assert by_value(ten, 90) == 5


def test_published_examples() -> None:
    assert trimmed(TEN, "IQM").value == 5.5
    assert trimmed(TEN, "TM(5%:95%)").value == pytest.approx(5.5)
    assert trimmed(Counted.of([5, 5, 5, 5, 5, 6, 7, 8, 9, 10]), "tm90").value == 6.25
    normal = Counted.of([*range(300, 390, 10), 10_122])
    degraded = Counted.of([300, 340, 345, 348, 349, 351, 378, 379, 380, 10_122])
    assert trimmed(normal, "tm90").value == 345
    assert trimmed(degraded, "tm90").value == 358.75


@pytest.mark.parametrize("cut", [0.1, 0.25, 0.01])
def test_equals_scipy_where_whole_values_are_cut(cut: float) -> None:
    values = np.random.default_rng(3).lognormal(size=400)
    ours = trimmed(Counted.of(values), f"TM({100 * cut:g}%:{100 * (1 - cut):g}%)").value
    assert ours == pytest.approx(scipy.stats.trim_mean(values, cut), rel=1e-12)
    wins = scipy.stats.mstats.winsorize(values, (cut, cut)).mean()
    assert trimmed(Counted.of(values), f"wm{100 * (1 - cut):g}").value == pytest.approx(
        wins, rel=1e-12
    )


def test_partial_weights_cut_through_a_bucket() -> None:
    # 5 % of 30 is 1.5 at each end: one and a half of the 1s stay out
    counted = Counted.of([1.0] * 3 + [2.0] * 24 + [9.0] * 3)
    assert trimmed(counted, "tm95").value == pytest.approx((1.5 * 1 + 24 * 2 + 1.5 * 9) / 27)


def test_values_as_bounds() -> None:
    counted = Counted.of([100, 150, 200, 1000, 1001])
    assert trimmed(counted, "TM(150:1000)", "none").value == 600  # lower bound out, upper one in
    assert trimmed(counted, "TM(150ms:1s)", "ms").value == 600
    assert trimmed(counted, "WM(150ms:1s)", "ms").value == (150 + 150 + 200 + 1000 + 1000) / 5


def test_the_bracket_holds_whatever_the_values_in_the_buckets_are() -> None:
    rng = np.random.default_rng(11)
    values = rng.uniform(0, 100, 3000)
    edges = np.linspace(0, 100, 41)
    counts = np.histogram(values, edges)[0]
    counted = Counted(edges[:-1], edges[1:], counts)
    raw = Counted.of(values)
    for spec in (
        "tm95",
        "wm90",
        "TM(:99%)",
        "TM(13:67)",
        "TM(:41)",
        "WM(13:67)",
    ):
        found, truth = trimmed(counted, spec, "none"), trimmed(raw, spec, "none").value
        assert found.low <= truth <= found.high, spec
        assert found.low <= found.value <= found.high, spec


def test_says_what_it_leaves_out() -> None:
    values = np.r_[np.full(6838, 1e6), np.full(7, 6e9), np.full(7, 0.5e6)]
    found = trimmed(Counted.of(values), "tm99.9")
    assert found.leaves_out == "2 × 7 requests, up to 6 s"
    assert found.definition == "TM(0.1%:99.9%): mean without the lowest 0.1 % and the highest 0.1 %"
    assert trimmed(TEN, "TM(:90%)", "none").leaves_out == "1 request, up to 10"
    assert trimmed(TEN, "TM(10%:)", "none").leaves_out == "1 request below"
    assert trimmed(TEN, "TM(:10)", "none").leaves_out == "nothing"


def test_censored_values_leave_the_upper_end_open() -> None:
    counted = Counted.of([1.0] * 95, censored=5, limit=100.0)
    reaching, clear = trimmed(counted, "TM(:99%)"), trimmed(counted, "TM(:95%)")
    assert reaching.value == pytest.approx((95 + 400) / 99)
    assert np.isinf(reaching.high)
    assert clear.high == 1
    assert np.isinf(clear.worst)
    assert clear.leaves_out == "5 requests, ≥ 100 ns"


@pytest.mark.parametrize(
    "spec",
    ["tm", "tm50", "tm101", "mean", "TM(:)", "TM(5%:1s)", "TM(95%:5%)", "PR(:300ms)", "tc90", "TM(1s:1ms)",
     "TM(x%:)", "TM(:1e9%)"],
)  # fmt: skip
def test_refuses_what_means_nothing(spec: str) -> None:
    with pytest.raises(InvalidArgumentError):
        parse_trim(spec)


def test_plain_numbers_need_plain_bounds() -> None:
    with pytest.raises(InvalidArgumentError, match="not a plain number"):
        trimmed(TEN, "TM(:3ms)", "none")
