"""Two distributions: intervals of changes, bucket widths, superiority, shift, and gaps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import latencykit as lk
from latencykit.analysis.compare import compare_single, gap_at, verdict
from latencykit.core.evidence import Evidence
from latencykit.core.quantiles import Counted, values_at_ranks
from tests.conftest import DATA
from tests.views.test_prometheus_page import WRK

if TYPE_CHECKING:
    from pathlib import Path


def lognormal(seed: int, n: int, factor: float = 1.0) -> Counted:
    return Counted.of(factor * np.random.default_rng(seed).lognormal(3, 0.5, n))


def single(base: Counted, new: Counted, percentiles: list[float], means=(), **options):
    """The changes between two runs, by statistic."""
    result = compare_single((plain(base), plain(new)), percentiles, means, **options)
    return {row.statistic: row for row in result.changes}


def plain(counted: Counted) -> Evidence:
    """Evidence of counts without times."""
    return Evidence(lk.Histogram.from_buckets(
        counted.low, counted.high, counted.counts, censored=counted.censored,
        censored_at=counted.limit,
    ))  # fmt: skip


@pytest.mark.slow
def test_the_interval_of_a_ratio_covers_it() -> None:
    rng, covered, repetitions = np.random.default_rng(3), 0, 200
    for _ in range(repetitions):
        base, new = (Counted.of(level * rng.lognormal(0, 0.5, 3000)) for level in (10.0, 11.0))
        row = single(base, new, [99])["p99"]
        covered += row.low <= 0.1 <= row.high
    assert 0.90 <= covered / repetitions <= 0.99


def test_run_noise_widens_intervals_and_decides() -> None:
    base, new = lognormal(1, 50_000), lognormal(2, 50_000, 1.3)
    known = single(base, new, [50, 99], run_noise=0.03)
    assert all(row.significant for row in known.values())
    assert verdict(list(known.values())) == "worse"
    wide = single(base, new, [50, 99], run_noise=0.2)
    assert not any(row.significant for row in wide.values())
    assert wide["p50"].low < known["p50"].low < 0.3 < known["p50"].high < wide["p50"].high


def test_a_change_below_the_bucket_width_is_none() -> None:
    edges = np.array([0.0, 10.0, 20.0, 50.0, 100.0])
    base, new = (
        Counted(edges[:-1], edges[1:], np.array([0, n, 1000, 0])) for n in (90_000, 80_000)
    )
    row = single(base, new, [50])["p50"]
    assert (row.base, row.new) == (20, 20)
    assert np.isnan(row.change)  # of ranges there is none
    assert row.low == pytest.approx(-0.5)  # from 20 down to 10, and up again
    assert row.high == pytest.approx(1.0)


def test_a_change_below_a_tick_of_the_clock_is_not_the_same() -> None:
    rng = np.random.default_rng(4)
    base, new = (
        lk.Histogram.of(np.floor(level * rng.lognormal(0, 0.4, 20_000)) * 1e6)
        for level in (1.25, 1.75)
    )
    found = lk.compare(base, new, run_noise=0.02, percentiles=[50])
    (row, *_) = found.changes
    assert row.base == row.new
    assert row.low < -0.4
    assert row.high > 0.4
    assert not row.significant
    assert found.verdict != "same"


def test_unsupported_percentiles_are_open_and_the_maximum_is_not_judged() -> None:
    rows = single(lognormal(1, 500), lognormal(2, 500, 9.0), [50, 99.9, 100])
    assert rows["p50"].significant
    assert (rows["p99.9"].high, rows["p99.9"].significant) == (np.inf, False)
    assert not rows["p100"].significant
    assert "maximum" in rows["p100"].note


def test_censored_values_open_the_upper_end() -> None:
    base = Counted.of(np.linspace(1, 2, 1000))
    new = Counted.of(np.linspace(1, 2, 900), censored=100, limit=5.0)
    rows = single(base, new, [50, 95], ["mean", "TM(:50%)"])
    assert np.isinf(rows["p95"].high)
    assert np.isinf(rows["mean"].high)
    assert rows["mean"].low > 0
    assert np.isfinite(rows["TM(:50%)"].high)


def test_only_means_can_be_compared_besides_percentiles() -> None:
    with pytest.raises(lk.InvalidArgumentError, match="cannot be compared"):
        single(lognormal(1, 100), lognormal(2, 100), [50], ["wm95"])


def timed(seed: int, factor: float = 1.0, stall: float = 0.0) -> lk.HistogramLog:
    """A log of two minutes; a stall in its middle."""
    rng = np.random.default_rng(seed)
    start = np.sort(rng.random(12_000)) * 120
    took = factor * 5e-3 * rng.lognormal(0, 0.5, start.size)
    took += np.where((start > 60) & (start < 60 + stall), 60 + stall - start, 0.0)
    return lk.Samples(start=start * 1e9, duration=took * 1e9).to_log("1s")


def test_what_would_have_been_stated_is_a_change_worth_a_word() -> None:
    shown = dict(lk.compare(timed(1), timed(2)).would_show)
    assert 0.5 <= shown["p50"] <= shown["p99"] <= 9


def test_parts_of_runs_state_a_change_and_one_stall_does_not() -> None:
    assert lk.compare(timed(1), timed(2, 2.2)).verdict == "worse"
    assert lk.compare(timed(1, 2.2), timed(2)).verdict == "better"
    stalled = lk.compare(timed(1), timed(2, stall=6.0))
    assert stalled.verdict == "inconclusive"
    assert stalled.table.change["p99"] > 5
    assert not stalled.table.significant["p99"]


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
    assert (share.tolerates > 0) == (factor > 1)


def bimodal(seed: int, slow: int) -> Counted:
    rng = np.random.default_rng(seed)
    return Counted.of(np.r_[rng.normal(1.5, 0.1, 10_000 - slow), rng.normal(45, 1, slow)])


def test_a_percentile_between_modes_jumps_and_is_reported() -> None:
    low, high = (
        values_at_ranks(counted, np.array([0]), np.array([99 * counted.total // 100]))[1]
        for counted in (bimodal(1, 95), bimodal(2, 105))
    )
    assert high > 20 * low
    rows = list(single(bimodal(1, 95), bimodal(2, 105), [50, 99]).values())
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
    rows = single(bimodal(1, 95), bimodal(2, 380), [50, 99])
    assert rows["slow share"].significant
    assert rows["slow share"].change == pytest.approx(3.0, abs=0.01)
    gone = single(bimodal(1, 95), bimodal(2, 0), [50, 99])
    assert gone["slow share"].change == -1
    assert "slow median" not in gone


def test_a_stall_in_one_of_two_runs_is_not_called_chance() -> None:
    values = np.random.default_rng(3).lognormal(14, 0.1, 5000)
    stalled = np.append(values[:3500], values[3500:] * 800)
    result = lk.compare(lk.Histogram.of(values), lk.Histogram.of(stalled))
    assert result.verdict == "inconclusive"
    reasons = " ".join(result.reasons)
    assert "one slow period may explain it: the median's change is" in reasons
    assert "chance explains it" not in reasons


def test_a_stall_of_a_third_of_the_run_is_worse(tmp_path: Path) -> None:
    """Its median is as before, its p90 is not: by wrk, which back-fills."""
    (tmp_path / "quiet.txt").write_text(WRK)
    runs = [lk.read(tmp_path / "quiet.txt"), lk.read(DATA / "formats/wrk/ctrlz/stdout.txt")]
    found = lk.compare(*runs)
    assert found.verdict == "worse"
    named = [row.statistic for row in found.changes if row.significant]
    assert named == ["p90", "p99", "mean", "tm99"]
    assert found.tolerates is not None
    assert found.tolerates > 2
    assert lk.compare(*runs[::-1]).verdict == "better"


def reported(factor: float, **stats: float) -> lk.Summary:
    """What a tool prints of a run: percentiles, without the number of requests."""
    percentiles = {50.0: 3e6 * factor, 90.0: 5e6 * factor, 99.0: 9e6 * factor}
    return lk.Summary(stats, reported_percentiles=percentiles, unit="ns")


def test_reported_percentiles_state_what_runs_may_differ_by() -> None:
    found = lk.compare(reported(1.0, max=2e7), reported(2.0, max=4e7))
    assert found.verdict == "worse"
    assert found.tolerates == pytest.approx(np.log(2) / (1.96 * 2**0.5), rel=0.01)
    rows = {row.statistic: row for row in found.changes}
    assert not rows["p100"].significant
    assert rows["p50"].low == -1  # without an interval
    assert not found.failed(["p50 > +5%"])
    assert lk.compare(reported(1.0), reported(1.3)).verdict == "inconclusive"
    assert lk.compare(reported(1.0), reported(1.3), run_noise=0.03).verdict == "worse"
    assert lk.compare(reported(1.0), reported(1.05), run_noise=0.03).verdict == "inconclusive"


def test_a_mean_alone_is_not_judged() -> None:
    sides = [lk.Summary({"mean": mean, "max": 9e6}, unit="ns") for mean in (1e6, 4e6)]
    assert lk.compare(*sides).verdict == "inconclusive"


def test_stamps_too_coarse_for_a_course_leave_what_a_histogram_shows() -> None:
    rng = np.random.default_rng(3)
    second = 1_700_000_000 * 10**9

    def run(scale: float) -> lk.Samples:
        took = np.rint(rng.lognormal(np.log(scale), 0.5, 6000) / 1e4) * 1e4
        return lk.Samples(start=second + rng.integers(0, 5, 6000) * 10**9, duration=took)

    pair = run(3e6), run(6e6)
    assert lk.compare(*pair).verdict == "worse"
    assert lk.compare(*(side.histogram() for side in pair)).verdict == "worse"
    assert lk.compare(run(3e6), run(3e6)).verdict == "inconclusive"


@pytest.mark.parametrize("other", ["scheduled", "corrected"])
def test_a_side_that_omitted_requests_is_named_first(other: str) -> None:
    logs = DATA.parent.parent / "data"
    omits = lk.read(logs / "ctrlz-uncorrected.hlog", unit="ns")
    whole = lk.read(logs / f"ctrlz-{other}.hlog", unit="ns")
    found = lk.compare(whole, omits).unfair
    assert found.startswith("new: about 2,9")
    assert "requests were omitted in a stall of 6 s, so percentiles and mean are too low" in found
    assert lk.compare(omits, whole).unfair == found.replace("new", "base")
    assert not lk.compare(omits, omits).unfair
