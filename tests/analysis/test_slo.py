"""SLOs: notations, files of other tools, and outcomes that admit what cannot be decided."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import latencykit as lk
from latencykit.analysis.slo import SLO, SLORow, passed, why
from latencykit.plot.series import slo_finding, slo_pairs
from latencykit.simulate import Server, Stall, paced_loop
from latencykit.views.page import checked_limits
from latencykit.views.page_series import page_series
from latencykit.views.slo import SENTENCES, check_text, exit_text, slo_section
from tests.conftest import FORMS

MS = 1_000_000


def histogram(n: int = 10_000, **run: object) -> lk.Histogram:
    """1 to 10 ms, evenly."""
    return lk.Histogram.of(np.linspace(1 * MS, 10 * MS, n).astype(np.int64), run=lk.Run(**run))


def outcomes(text: str, source: object) -> list[str]:
    return [row.outcome for row in SLO.parse(text).check(source)]


def test_notations() -> None:
    text = "99.9=20ms, p99<15 ms; 50% <= 2ms, max=1s\nmean: 2ms  # a comment\nfailed=0.1%, tm99=3ms"
    slo = SLO.parse(text)
    limits = {"p99.9": 20 * MS, "p99": 15 * MS, "p50": 2 * MS, "max": 1e9, "mean": 2 * MS}
    limits |= {"failed": 0.001, "tm99": 3 * MS}
    assert [(limit.statistic, limit.limit) for limit in slo.limits] == list(limits.items())
    said = "p99.9=20 ms, p99=15 ms, p50=2 ms, max=1 s, mean=2 ms, failed=0.1%, tm99=3 ms"
    assert str(slo) == said
    assert SLO.parse(said) == slo


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "no limit"),
        ("p99", "is not a valid limit"),
        ("p99 > 20ms", "lower limit"),
        ("p101=20ms", "not a valid percentile"),
        ("p99=fast", "not a valid duration"),
        ("tc99=3ms", "not a valid trimmed mean"),
        ("p99=-1ms", "negative value"),
        ("p99=1ms, 99.0=2ms", "p99 twice"),
        ("failed=3", "in percent"),
        ("failed=200%", "in percent"),
    ],
)
def test_refuses_what_states_no_limit(text: str, complaint: str) -> None:
    with pytest.raises(lk.InvalidArgumentError, match=complaint):
        SLO.parse(text)


def drifting(minutes: float = 6, factor: float = 1.0, *, failed: float = 0.0) -> lk.Samples:
    """Requests of 6 ms or so, 50 per second; the median of each minute is alike."""
    rng = np.random.default_rng(3)
    start = np.sort(rng.random(int(3000 * minutes))) * minutes * 60_000 * MS
    words = np.where(rng.random(start.size) < failed, "error", "ok")
    took = factor * 6 * MS * rng.lognormal(0, 0.3, start.size)
    return lk.Samples(start=start, duration=took, outcome=words)


def test_the_outcome_is_about_this_run_and_sure_about_traffic_like_it() -> None:
    assert outcomes("p50=6ms, p50.1=5ms, p49=5.51ms", histogram()) == ["met", "missed", "met"]
    (row,) = SLO.parse("p50=5.51ms").check(histogram())  # the interval is some 0.2 ms wide
    assert (row.outcome, row.bounded, row.sure) == ("met", "unknown", False)
    assert row.low < row.limit < row.high
    assert "no times" in row.reason
    assert row.margin_low < row.margin < row.margin_high
    far, near, missed = SLO.parse("p99=20ms, p90=9ms, p50=4ms").check(drifting())
    assert [(row.outcome, row.sure) for row in (far, missed)] == [("met", True), ("missed", True)]
    assert far.reason == missed.reason == ""
    assert (near.outcome, near.sure) == ("met", False)
    assert "would decide" in near.reason


def test_a_short_run_says_what_would_break_it() -> None:
    (row,) = SLO.parse("p99=20ms").check(drifting(1))
    assert (row.outcome, row.sure) == ("met", False)
    assert row.reason == (
        "one stall longer than 600 ms would break it; 2 min of such traffic would decide"
    )
    (row,) = SLO.parse("p99=2ms").check(drifting(1))  # a miss needs no five minutes
    assert (row.outcome, row.sure, row.reason) == ("missed", True, "")


def test_values_that_are_all_equal_decide() -> None:
    equal = lk.Samples(start=np.arange(600) * 1000 * MS, duration=np.full(600, 200 * MS))
    rows = SLO.parse("p50=100ms, p99=100ms, max=100ms, mean=300ms").check(equal)
    assert [row.outcome for row in rows] == ["missed", "missed", "missed", "met"]
    assert all(row.sure for row in rows)
    assert outcomes("p50=100ms, p99=200ms", equal.histogram()) == ["missed", "met"]


def test_a_maximum_is_sure_where_the_maxima_of_parts_are_far_below() -> None:
    run = drifting()
    top = run.histogram().max / MS
    missed, close, far = (
        SLO.parse(f"max={top * part:.3f}ms").check(run)[0] for part in (0.9, 1.05, 3)
    )
    assert (missed.outcome, missed.sure) == ("missed", True)
    assert (close.outcome, close.sure) == ("met", False)
    assert "grows with the length of a run" in close.reason
    assert (far.outcome, far.sure) == ("met", True)


def test_failures_count_when_they_happened() -> None:
    run = drifting(failed=0.02)
    rows = [SLO.parse(f"failed={limit}%").check(run)[0] for limit in (0.5, 8, 0, 2.1)]
    assert [row.outcome for row in rows[:3]] == ["missed", "met", "missed"]
    assert [row.sure for row in rows] == [True, True, True, False]
    (row,) = SLO.parse("p99=1s").check(run)
    assert (row.outcome, row.sure) == ("missed", True)
    (row,) = SLO.parse("failed=8%").check(run.to_log("1s"))
    assert (row.outcome, row.sure) == ("met", False)
    assert row.reason.endswith("the source does not show when")


def test_ten_requests_above_make_a_percentile_sure() -> None:
    few = drifting().select(np.arange(0, 18_000, 36))
    (row,) = SLO.parse("99.9=1s").check(few)
    assert (row.outcome, row.sure) == ("met", False)
    assert row.reason == "0 requests lie above p99.9; 10 are needed, so 10,000 in all"
    (row,) = SLO.parse("90=1s").check(few)
    assert (row.outcome, row.sure) == ("met", True)


def test_the_bucket_counts() -> None:
    edges, counts = [0, 0.1, 0.25, 0.5, 1.0], [5000, 4950, 50, 0]
    scrape = lk.Histogram.from_buckets(edges[:-1], edges[1:], counts, unit="s")
    assert outcomes("p95=250ms", scrape) == ["met"]
    assert outcomes("p95=200ms", scrape) == ["unknown"]
    assert outcomes("p95=99ms, p95.1=100ms", scrape) == ["missed", "missed"]


def test_failed_requests_are_slower_than_any_limit() -> None:
    clean, failing = histogram(), histogram(failed=150)
    assert outcomes("p99=20ms, max=20ms, failed=1%", clean) == ["met", "met", "met"]
    rows = SLO.parse("p99=20ms, p98=20ms, max=20ms, failed=1%").check(failing)
    assert [row.outcome for row in rows] == ["missed", "met", "missed", "missed"]
    assert "150 of 10,150 requests failed" in rows[0].reason
    assert math.isinf(rows[0].value)
    assert rows[1].value > clean.percentile(98)  # the 98th of all attempts is a later success
    assert outcomes("failed=0%", failing) == ["missed"]
    assert outcomes("failed=0%", clean) == ["met"]


def test_a_share_of_failures_has_an_interval() -> None:
    row = SLO.parse("failed=0.1%").check(histogram(1500))[0]
    assert (row.outcome, row.sure) == ("met", False)
    assert row.high == pytest.approx(0.00246, abs=1e-5)
    assert "0 of 1,500" in row.reason


def test_timeouts_among_the_censored_are_failures_once() -> None:
    took, outcome = [1 * MS] * 980 + [2000 * MS] * 20, ["ok"] * 980 + ["timeout"] * 20
    samples = lk.Samples(duration=took, outcome=outcome)
    rows = SLO.parse("p99=5s, p95=5ms, failed=5%").check(samples)
    assert [row.outcome for row in rows] == ["missed", "met", "met"]
    assert rows[2].value == pytest.approx(0.02)


def test_values_above_a_scrape_are_unknown() -> None:
    above = {"censored": 500, "censored_at": 10.0}
    scrape = lk.Histogram.from_buckets([0, 5], [5, 10], [9000, 500], unit="s", **above)
    assert outcomes("p99=20s", scrape) == ["unknown"]
    assert outcomes("p99=9s, max=9s", scrape) == ["missed", "missed"]
    assert outcomes("p90=9s, max=20s, mean=1h", scrape) == ["met", "unknown", "unknown"]
    assert outcomes("p90=10s", scrape) == ["met"]


def test_means_and_trimmed_means() -> None:
    assert outcomes("mean=5.6ms, tm99=5.6ms, TM(:50%)=3.4ms", histogram()) == ["met", "met", "met"]
    assert outcomes("TM(:50%)=3.3ms", histogram()) == ["met"]  # 3.25 ms
    assert outcomes("mean=5.4ms", histogram()) == ["missed"]
    assert outcomes("mean=5.51ms", histogram()) == ["met"]
    assert "did not fail" in SLO.parse("mean=6ms").check(histogram(failed=3))[0].reason


def test_plain_numbers_and_units_do_not_mix() -> None:
    plain = lk.Histogram.of(range(1, 5000), unit="none")
    assert outcomes("p99=6000, max=100", plain) == ["met", "missed"]
    with pytest.raises(lk.InvalidArgumentError, match="bare number"):
        outcomes("p99=20ms", plain)
    with pytest.raises(lk.InvalidArgumentError, match="with a unit"):
        outcomes("p99=20", histogram())
    assert outcomes("p99=20ms", histogram().to_unit("us")) == ["met"]


def test_a_summary_answers_what_it_holds() -> None:
    stats, run = {"mean": 2.0, "max": 30.0}, lk.Run(tool="wrk", failed=5)
    limits = SLO.parse("p99=10ms, max=50ms, mean=1ms, p99.9=1s, tm99=1s, failed=1%")
    rows = limits.check(lk.Summary(stats, {99.0: 12.0}, 1000, "ms", run))
    assert [row.outcome for row in rows] == ["missed"] * 3 + ["unknown"] * 2 + ["met"]
    assert "has no p99.9" in rows[3].reason
    nameless = lk.Summary({"mean": 2.0}, {}, None, "ms")
    assert "number of requests" in SLO.parse("failed=1%").check(nameless)[0].reason


def test_nothing_measured() -> None:
    assert outcomes("p99=1s, max=1s, mean=1s, failed=1%", lk.Histogram.of([])) == ["unknown"] * 4


def test_all_together() -> None:
    sure, met, missed, wide = SLO.parse("p99=20ms, p90=9ms, p50=4ms, mean=5.51ms").check(drifting())
    unknown = replace(missed, outcome="unknown", sure=False)
    unsure = replace(missed, sure=False)
    assert passed([sure, met]) is True
    assert passed([sure, unknown]) is None
    assert passed([sure, unsure]) is False
    assert passed([sure, unsure], sure=True) is None
    assert passed([met, missed], sure=True) is False
    assert passed([sure], strict=True) is True
    assert passed([sure, met], strict=True) is False
    assert passed([sure, unknown], strict=True) is False
    assert wide.outcome == "missed"
    assert "1 limit met, but not surely" in exit_text([sure, met], good=False, strict=True)
    assert "met, but" not in exit_text([sure, met], good=True)
    for rows, words in (
        ([missed], "the miss is sure"),
        ([missed, unsure], "1 of 2 misses is sure"),
    ):
        assert words in exit_text(rows, good=False)


def ticking(tick: float, factor: float = 1.0) -> lk.Samples:
    """Latencies around 5 ms as differences of two readings of a clock."""
    rng = np.random.default_rng(4)
    start = np.sort(rng.random(20_000)) * 300 * 1000 * MS
    end = start + factor * 5 * MS * rng.lognormal(0, 0.5, start.size)
    begin, end = (np.floor(time / tick) * tick for time in (start, end))
    return lk.Samples(start=begin, duration=end - begin)


@pytest.mark.parametrize("tick", [15.625 * MS, 10 * MS, 4 * MS])
def test_a_coarse_clock_decides_nothing_between_its_ticks(tick: float) -> None:
    run = ticking(tick)
    assert outcomes(f"p90={4.4 * tick:.0f}ns", run) == ["met"]
    judged = [
        (factor, outcomes(f"{name}={truth * factor:.0f}ns", run)[0])
        for name, truth in (("p50", 5 * MS), ("p90", 9.49 * MS))
        for factor in (0.3, 0.6, 0.85, 0.97, 1.03, 1.2, 1.7, 2.6)
    ]
    assert all(row in ("unknown", "met" if factor > 1 else "missed") for factor, row in judged)
    assert "unknown" in [row for _, row in judged]


@pytest.mark.filterwarnings("error")
def test_reported_percentiles_of_one_value_show_no_clock(run, tmp_path):
    path = tmp_path / "out.txt"
    path.write_text(
        "    http_req_duration..............: avg=14.41ms min=1.14ms  med=1.69ms  max=5.99s "
        "p(50)=1.69ms  p(75)=1.9ms   p(90)=2.19ms  p(95)=2.45ms  p(99)=3.8ms   p(99.9)=5.99s "
        "p(99.99)=5.99s count=1900\n"
    )
    status, out, err = run("check", path, "--slo", "90=20ms")
    assert (status, err) == (0, "")
    assert " met" in out


@pytest.mark.parametrize("failing", [0.0, 0.006])
@pytest.mark.parametrize("seconds", [20, 400])
def test_check_load_page_and_chart_judge_by_one_function(failing: float, seconds: int) -> None:
    rng, n = np.random.default_rng(3), 100 * seconds
    start, took = np.arange(n) * 0.01, rng.lognormal(np.log(5e-3), 0.4, n)
    outcome = np.where(rng.random(n) < failing, "error", "ok")
    run = lk.Samples(start=start, duration=took, outcome=outcome, unit="s")
    text = "p50=8ms, p99=30ms, p99.9=60ms, max=1s"
    result = lk.SLO.parse(text).check(run)
    (checks,) = lk.load_curve({"100": run}, text).checks
    (shown,) = checked_limits(text, page_series({"run": run}))
    missed = [row.outcome for row in shown].count("missed")
    heading = f"SLO: {missed} of 4 limits missed" if missed else "SLO: met"
    assert heading in slo_section([shown], page_series({"run": run}))
    rows, *others = (
        [(row.statistic, row.outcome, row.sure, row.reason) for row in each]
        for each in (result, checks, shown)
    )
    assert others == [rows, rows]
    assert slo_finding("run", run.histogram(), slo_pairs(text)) == f"run {result.headline}"
    if failing:
        assert all("failed" in row.reason for row in result)
        assert result.headline.startswith("misses its SLO: p99.9 falls among failed requests")
    elif seconds < 300:
        assert "one stall longer than" in {row[0]: row[3] for row in rows}["p99"]
    assert result.passed is (not failing)
    assert list(result.table.index) == ["p50", "p99", "p99.9", "max"]
    assert "p99.9" in result._repr_html_()


def test_failures_alone_meet_no_limit():
    """Where a tool reports the times of failed requests among those of the others."""
    data = lk.Summary({"max": 6e6}, {99.0: 6e6}, 0, run=lk.Run(failed=10_000))
    rows = SLO.parse("99=1s,max=1s,failed=1%").check(data)
    assert [row.outcome for row in rows] == ["missed", "missed", "missed"]
    assert rows[0].reason == "10,000 of 10,000 requests failed, and p99 falls among them"


@pytest.mark.parametrize("form", FORMS)
def test_what_was_omitted_would_have_been_slow(form: str) -> None:
    server = Server("1ms", stalls=[Stall(100, 20)])
    whole = FORMS[form](paced_loop(server, rate=100, duration=300, connections=1))
    whole = whole.with_run(loop="paced", connections=1, rate=100.0, duration=300.0)
    rows = SLO.parse("p90=2ms,p99=2ms,p50=0.5ms,max=30s,failed=1%").check(whole)
    by = {row.statistic: row for row in rows}
    for name in ("p90", "p99"):
        assert (by[name].outcome, by[name].sure) == ("met", False)
        assert "requests were omitted in a stall of 20 s" in by[name].reason
    assert by["p50"].outcome == "missed"
    assert not any("omitted" in by[name].reason for name in ("p50", "max", "failed"))
    quiet = paced_loop(Server("1ms"), rate=100, duration=300, connections=1)
    assert all(row.sure for row in SLO.parse("p90=2ms,p99=2ms").check(quiet.to_log("1s")))


def test_every_reason_has_its_sentence_and_no_sentence_is_left_over():
    package = Path(lk.__file__).parent
    texts = "".join(path.read_text("utf-8") for path in package.rglob("*.py"))
    given = re.findall(r'\bwhy\(\s*"([^"]+)"', texts)
    assert {*given, "too close", "too different"} == {*SENTENCES}


def test_a_stall_that_would_break_a_mean_makes_up_what_is_left() -> None:
    """A stall of d makes rate × d requests wait, d / 2 each on average."""
    start = np.arange(6000) * 10 * MS
    run = lk.Samples(start=start, duration=np.full(6000, MS))
    (row,) = SLO.parse("mean=2ms").check(run)
    (stall,) = [reason.facts["stall"] for reason in row.reasons if reason.code == "stall breaks"]
    assert (stall / 1e9) ** 2 / 2 / 60 == pytest.approx((2 * MS - row.value) / 1e9, rel=1e-2)


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (4.0, 6.0, "4 ms to 6 ms"),
        (4.0, math.inf, "from 4 ms"),
        (-math.inf, 6.0, "up to 6 ms"),
        (4.0, 4.0, "4 ms"),
        (5.0, 5.0, ""),  # the value alone
        (4.9, 5.1, ""),  # its bucket alone
        (-math.inf, math.inf, ""),
    ],
)
def test_an_interval_says_what_is_known_beside_the_value(
    low: float, high: float, text: str
) -> None:
    row = SLORow("p99", 1e7, 5e6, low * 1e6, high * 1e6, "met", bucket_low=4.9e6, bucket_high=5.1e6)
    (line,) = (
        line for line in check_text({"a": [row]}, "markdown").splitlines() if "p99 |" in line
    )
    assert line.split("|")[5].strip() == text


def test_a_terminal_states_the_first_reasons_and_how_many_more_there_are() -> None:
    texts = [f"reason {k}" for k in range(6)]
    row = SLORow("p99", 1e7, 5e6, 4e6, 6e6, "met")
    rows = {text: [replace(row, reasons=why("text", text=text))] for text in texts}
    assert [text in check_text(rows) for text in texts] == [True] * 6
    brief = check_text(rows, every=False)
    assert brief.endswith("reason 3\nand 2 reasons more: --notes states all")
    assert "more" not in check_text({text: rows[text] for text in texts[:4]}, every=False)
