"""Two distributions: intervals of changes, bucket widths, superiority, shift, and gaps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as reference

import latencykit as lk
from latencykit.analysis.bootstrap import draw_means, draw_percentiles, rank_draws
from latencykit.analysis.compare import compare_counts, gap_at, shift, superiority, verdict
from latencykit.core.quantiles import Counted
from latencykit.errors import InvalidArgumentError


def lognormal(seed: int, n: int, factor: float = 1.0) -> Counted:
    return Counted.of(factor * np.random.default_rng(seed).lognormal(3, 0.5, n))


@pytest.mark.slow
def test_rank_draws_are_the_poisson_bootstrap() -> None:
    rng, n, percentiles = np.random.default_rng(1), 2000, np.array([50.0, 90.0, 99.0])
    counts = rng.poisson(1.0, (2000, n)).cumsum(axis=1)
    direct = np.array(
        [(counts < np.ceil(p / 100 * counts[:, -1:])).sum(axis=1) + 1 for p in percentiles]
    ).T
    drawn = rank_draws(n, percentiles, 2000, rng)
    for k in range(3):
        at = np.quantile(direct[:, k], [0.025, 0.5, 0.975])
        assert np.quantile(drawn[:, k], [0.025, 0.5, 0.975]) == pytest.approx(
            at, abs=0.12 * (at[2] - at[0])
        )
    ours, theirs = (np.corrcoef(part, rowvar=False) for part in (drawn, direct))
    assert ours == pytest.approx(theirs, abs=0.1)


def test_mean_draws_have_the_standard_error() -> None:
    # more than two thousand buckets are put together
    values = np.random.default_rng(2).lognormal(0, 1, 5000)
    draws = draw_means(
        Counted.of(values), [(0.0, 1.0), (0.01, 0.99)], 800, np.random.default_rng(0)
    )
    assert draws.low[:, 0].mean() == pytest.approx(values.mean(), rel=0.005)
    assert draws.low[:, 0].std() == pytest.approx(values.std() / np.sqrt(5000), rel=0.1)
    assert draws.low[:, 1].mean() == pytest.approx(reference.trim_mean(values, 0.01), rel=0.005)


@pytest.mark.slow
def test_the_interval_of_a_ratio_covers_it() -> None:
    rng, covered, repetitions = np.random.default_rng(3), 0, 200
    for seed in range(repetitions):
        base, new = (Counted.of(level * rng.lognormal(0, 0.5, 3000)) for level in (10.0, 11.0))
        row = compare_counts(base, new, [99], [], seed=seed)[0]
        covered += row.low <= 0.1 <= row.high
    assert 0.90 <= covered / repetitions <= 0.99


@pytest.mark.slow
def test_two_equal_systems_differ_without_run_noise_and_not_with_it() -> None:
    rng, alarms = np.random.default_rng(4), {None: 0, 0.03: 0}
    for seed in range(40):
        levels = np.exp(rng.normal(0, 0.03, 2))
        base, new = (
            lognormal(1000 + 2 * seed + k, 100_000, level) for k, level in enumerate(levels)
        )
        for noise in alarms:
            rows = compare_counts(
                base, new, [50, 99], [], run_noise=noise, replicates=400, seed=seed
            )
            alarms[noise] += any(row.significant for row in rows)
    assert alarms[None] / 40 > 0.5
    assert alarms[0.03] / 40 <= 0.1


def test_a_real_change_shows_through_run_noise() -> None:
    rows = compare_counts(lognormal(1, 50_000), lognormal(2, 50_000, 1.3), [50, 99], run_noise=0.03)
    assert all(row.significant for row in rows)
    assert verdict(rows) == "worse"
    assert verdict(rows, noise_known=False) == "inconclusive"


def test_a_change_below_the_bucket_width_is_none() -> None:
    edges = np.array([0.0, 10.0, 20.0, 50.0, 100.0])
    base, new = (
        Counted(edges[:-1], edges[1:], np.array([0, n, 1000, 0])) for n in (90_000, 80_000)
    )
    row = compare_counts(base, new, [50], [])[0]
    assert (row.base, row.new, row.change) == (20, 20, 0)
    assert row.low == -0.5  # from 20 down to 10, and up again
    assert row.high == 1.0
    fine = np.array([1000.0, 1001.0, 1002.0])
    step = [Counted(fine[k : k + 1], fine[k : k + 1] + 1, np.array([100_000])) for k in (0, 1)]
    assert not compare_counts(*step, [50], [])[0].significant  # neighbours: 1000-1001 and 1001-1002


def test_unsupported_percentiles_are_open_and_the_maximum_is_not_judged() -> None:
    rows = compare_counts(lognormal(1, 500), lognormal(2, 500), [50, 99.9, 100], [])
    assert (rows[1].low, rows[1].high) == (-1, np.inf)
    assert not rows[1].significant
    assert np.isnan(rows[2].p_value)
    assert "maximum" in rows[2].note


def test_censored_values_open_the_upper_end() -> None:
    base = Counted.of(np.linspace(1, 2, 1000))
    new = Counted.of(np.linspace(1, 2, 900), censored=100, limit=5.0)
    rows = {row.statistic: row for row in compare_counts(base, new, [50, 95], ["mean", "TM(:50%)"])}
    assert np.isinf(rows["p95"].high)
    assert np.isinf(rows["mean"].high)
    assert rows["mean"].low > 0
    assert np.isfinite(rows["TM(:50%)"].high)


def test_only_means_can_be_compared_besides_percentiles() -> None:
    with pytest.raises(InvalidArgumentError, match="cannot be compared"):
        compare_counts(lognormal(1, 100), lognormal(2, 100), [50], ["PR(:3ms)"])


def test_superiority_is_mann_and_whitneys() -> None:
    rng = np.random.default_rng(5)
    base, new = rng.integers(0, 40, 300), rng.integers(2, 45, 250)
    found = superiority(Counted.of(base), Counted.of(new))
    statistic = reference.mannwhitneyu(base, new).statistic
    assert found.value == pytest.approx(statistic / (300 * 250))
    assert found.low < found.value < found.high  # equal values are ties


def test_superiority_within_buckets_is_a_bracket() -> None:
    wide = Counted(np.array([0.0, 10.0]), np.array([10.0, 20.0]), np.array([50, 50]))
    found = superiority(wide, wide)
    assert (found.low, found.value, found.high) == (0.25, 0.5, 0.75)


@pytest.mark.slow
def test_shift_holds_for_all_percentiles_at_once() -> None:
    grid, inside = np.r_[np.arange(5, 100, 5), 99, 99.9], 0
    for seed in range(60):
        found = shift(
            lognormal(seed, 4000), lognormal(seed + 500, 4000, 1.2), grid, replicates=300, seed=seed
        )
        inside += bool(((found.low <= 1.2) & (found.high >= 1.2)).all())
    assert inside / 60 >= 0.85
    assert found.percentile[-1] == 99.9


def test_drawing_percentiles_of_censored_counts() -> None:
    draws = draw_percentiles(
        Counted.of([1.0] * 50, censored=50, limit=3.0), [90], 10, np.random.default_rng(0)
    )
    assert draws.low.tolist() == [[3.0]] * 10
    assert np.isinf(draws.high).all()


def bimodal(seed: int, slow: int) -> Counted:
    rng = np.random.default_rng(seed)
    return Counted.of(np.r_[rng.normal(1.5, 0.1, 10_000 - slow), rng.normal(45, 1, slow)])


@pytest.mark.parametrize("factor", [1.0, 1.15])
def test_a_clock_that_reads_zero_has_a_slow_share_with_an_interval(factor: float) -> None:
    def run(seed: int, slower: float) -> lk.Samples:
        rng = np.random.default_rng(seed)
        start = np.sort(rng.random(10_000)) * 300e9
        end = start + slower * 5e6 * rng.lognormal(0, 0.5, start.size)
        begin, end = (np.floor(time / 1e7) * 1e7 for time in (start, end))
        return lk.Samples(start=begin, duration=end - begin)

    changes = {row.statistic: row for row in lk.compare(run(1, 1.0), run(2, factor)).changes}
    share = changes["slow share"]
    assert share.low < share.change < share.high
    assert share.significant == (factor > 1)


def test_a_percentile_between_modes_jumps_and_is_reported() -> None:
    from latencykit.core.quantiles import percentile_table

    values = [
        percentile_table(bimodal(seed, slow), [99]).value[0] for seed, slow in ((1, 95), (2, 105))
    ]
    assert values[1] > 20 * values[0]
    rows = compare_counts(bimodal(1, 95), bimodal(2, 105), [50, 99], [])
    assert "between two modes" in rows[1].note
    assert rows[0].note == ""
    assert not rows[1].significant
    assert [row.statistic for row in rows[2:]] == ["slow share", "slow median"]
    assert rows[2].low < 105 / 95 - 1 < rows[2].high
    assert rows[3].change == pytest.approx(0, abs=0.01)
    assert not any(row.significant for row in rows)
    assert all(row.percentile is None for row in rows[2:])
    gap = gap_at(bimodal(1, 95), 99)
    assert gap is not None
    assert gap.weight_low < 0.0095 < gap.weight_high
    assert gap.slow_median == pytest.approx(45, abs=1)


def test_a_heavy_tail_is_not_a_gap() -> None:
    rng = np.random.default_rng(6)
    reported_stats = sum(
        gap_at(Counted.of(rng.pareto(1.5, 5000) + 1), p) is not None
        for _ in range(40)
        for p in (99, 99.9)
    )
    assert reported_stats <= 2
    assert gap_at(bimodal(1, 95), 90) is None
    assert gap_at(bimodal(1, 95), 99.9) is None


def test_a_slow_mode_that_grew_is_significant() -> None:
    rows = {
        row.statistic: row for row in compare_counts(bimodal(1, 95), bimodal(2, 190), [50, 99], [])
    }
    assert rows["slow share"].significant
    assert rows["slow share"].change == pytest.approx(1.0, abs=0.01)
    gone = {
        row.statistic: row for row in compare_counts(bimodal(1, 95), bimodal(2, 0), [50, 99], [])
    }
    assert gone["slow share"].high == -1
    assert "slow median" not in gone


def test_corrected_counts_are_shown_and_not_judged() -> None:
    rows = compare_counts(lognormal(1, 5000), lognormal(2, 5000, 2.0), [50, 99], corrected=True)
    assert [round(row.change) for row in rows] == [1, 1, 1]
    assert all((row.low, row.high) == (-1, np.inf) for row in rows)
    assert verdict(rows) == "inconclusive"
