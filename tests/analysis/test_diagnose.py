"""Verdicts: what each source and provenance allows to be said."""

from __future__ import annotations

import functools
import itertools
import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from click.testing import CliRunner

import latencykit as lk
from latencykit.analysis.ledger import LEDGER, Ledger, evidence, tail_odds
from latencykit.analysis.omission import (
    above_half,
    percentile_lower_bound,
    shortest_visible_stall,
)
from latencykit.cli import cli
from latencykit.errors import InvalidArgumentError
from latencykit.io.hlog import write_hlog
from latencykit.simulate.generators import catch_up_loop, closed_loop, fixed, open_loop, paced_loop
from latencykit.simulate.server import Server, Stall, exponential

if TYPE_CHECKING:
    from pathlib import Path

SERVER = Server(exponential("1ms"), servers=8, stalls=[Stall(7, 6)])


@functools.cache
def measured(loop: str) -> lk.Samples:
    """The same stall as each kind of load generator measures it, and a run without one."""
    if loop == "open":
        return open_loop(SERVER, fixed(200, 20), duration=20)
    if loop == "late":
        return catch_up_loop(SERVER, 200, 20, connections=4)
    if loop == "full":
        return closed_loop(SERVER, 20, connections=4)
    quiet = Server(exponential("1ms"), servers=8)
    return paced_loop(quiet if loop == "quiet" else SERVER, 200, 20, connections=4)


def test_a_trace_of_a_loop_that_waited() -> None:
    found = lk.diagnose(measured("paced"))
    assert (found.verdict, found.method) == ("omits", "retime")
    assert found.corrected.percentile([75, 90, 99]) / 1e9 == pytest.approx(
        [1.0, 4.0, 5.8], rel=0.05
    )
    assert found.expected_interval == pytest.approx(20e6)
    assert found.stalls["duration"].tolist() == pytest.approx([6], abs=0.01)
    missing = int(found.stalls["missing"].sum())
    assert missing == pytest.approx(1197, abs=2)
    assert f"about {missing:,} requests" in found.summary
    assert "omits" in repr(found)
    assert "would have been" in repr(found)


def test_late_sends_are_distinguished_from_missing_ones() -> None:
    found = lk.diagnose(measured("late").with_run(loop="unknown", rate=None, connections=None))
    assert found.verdict == "omits"
    assert "catch-up" in found.findings
    assert found.corrected.percentile(99) / 1e9 == pytest.approx(5.8, rel=0.05)
    assert lk.diagnose(measured("late").measured("response")).verdict == "clean"


def test_an_open_loop_is_clean_of_every_data_type_that_can_show_it() -> None:
    bare = measured("open").with_run(loop="unknown", corrected="unknown", rate=None)
    for data in (measured("open"), bare, bare.to_log("1s"), bare.histogram()):
        assert lk.diagnose(data).verdict == "clean", data


def test_logs_and_histograms_accuse_only_whom_they_can() -> None:
    bare = measured("paced").with_run(
        loop="unknown", corrected="unknown", rate=None, connections=None
    )
    by_log = lk.diagnose(bare.to_log("1s"), connections=4)
    assert (by_log.verdict, by_log.method) == ("omits", "backfill")
    assert by_log.corrected.percentile(90) / 1e9 == pytest.approx(4.0, rel=0.05)
    unknown = lk.diagnose(bare.histogram(), rate=200)
    assert unknown.verdict == "unknown"
    assert "omission, or traffic that paused" in unknown.summary
    assert "one row per request" in unknown.advice
    known = lk.diagnose(bare.histogram(), rate=200, connections=4, duration="20s")
    assert known.verdict == "omits", "1,200 requests are missing, as four that waited explain"
    assert lk.diagnose(measured("paced").histogram()).verdict == "omits", "the provenance tells"


def test_without_rate_or_length_it_asks() -> None:
    bare = lk.Histogram.of(measured("paced").duration)
    found = lk.diagnose(bare)
    assert found.verdict == "unknown"
    assert "rate=" in found.advice
    assert "duration=" in found.advice
    assert (
        lk.diagnose(bare.with_run(loop="paced", corrected="none"), duration="20s").verdict
        == "omits"
    )


def test_without_a_stall_nothing_was_hidden() -> None:
    found = lk.diagnose(measured("quiet"))
    assert (found.verdict, found.corrected) == ("no stall", None)
    assert "hid none" in found.summary
    assert "would have shown" in found.advice


@pytest.mark.parametrize("as_log", [False, True])
def test_a_stall_between_bursts_of_requests_would_not_have_shown(as_log: bool) -> None:
    rng = np.random.default_rng(4)
    start = np.sort(rng.random(20_000)) * 200
    start = start[start % 10 < 4]
    bursts = lk.Samples(start=start * 1e9, duration=rng.lognormal(14, 0.3, start.size))
    advice = lk.diagnose(bursts.to_log("1s") if as_log else bursts).advice
    seconds = float(advice.removeprefix("a stall of ").split(" s or more")[0])
    assert 5 < seconds < 7


@pytest.mark.slow
def test_a_closed_loop_at_full_speed() -> None:
    found = lk.diagnose(measured("full").with_run(loop="unknown"))
    assert (found.verdict, found.method) == ("omits", "backfill")
    assert "closed-loop" in found.findings
    healthy = lk.diagnose(closed_loop(Server(exponential("1ms"), servers=8), 10, connections=4))
    assert healthy.verdict == "unknown"
    assert "closed-loop" in healthy.findings


def test_what_is_corrected_is_not_accused() -> None:
    once = lk.correct(measured("paced").to_log("1s"))
    found = lk.diagnose(once)
    assert (found.verdict, found.corrected) == ("clean", None)
    assert "already-corrected" in found.findings
    for by in ("tool", "schedule"):
        assert (
            lk.diagnose(measured("paced").histogram().with_run(corrected=by)).verdict == "unknown"
        )


def test_over_corrected() -> None:
    inflated = lk.correct(measured("paced").histogram(), "1ms").with_run(
        corrected="tool", rate=200.0
    )
    found = lk.diagnose(inflated)
    assert found.verdict == "unknown"
    assert "over-corrected" in found.findings
    unknown_rate = lk.diagnose(inflated.with_run(rate=None, expected_interval=None))
    assert "over-corrected" in unknown_rate.findings


def test_timeouts_hide_the_stall() -> None:
    cut = paced_loop(SERVER, 200, 20, connections=4, timeout="2s")
    found = lk.diagnose(cut.histogram().with_run(corrected="tool"))
    assert found.verdict == "unknown"
    assert "lost-to-timeouts" in found.findings
    assert "timeout longer" in found.advice


@pytest.mark.slow
def test_little_is_not_omission() -> None:
    short = paced_loop(Server("3ms", stalls=[Stall(7, 0.35)]), 50, 600)
    found = lk.diagnose(short.with_run(loop="unknown"))
    assert found.evidence[0].speaks_for, "seventeen requests were left out, without a doubt"
    assert found.verdict == "unknown"
    assert "immaterial" in found.findings


def test_percentiles_of_a_known_loop() -> None:
    values = [measured("paced").histogram().percentile(p) for p in (50, 90, 99)]
    reported_stats = {
        "max": float(measured("paced").duration.max()),
        "mean": float(measured("paced").duration.mean()),
    }
    listed = lk.Histogram.from_percentiles(
        [50, 90, 99],
        values,
        len(measured("paced")),
        reported_stats=reported_stats,
        run=measured("paced").run,
    )
    found = lk.diagnose(listed)
    assert found.verdict == "omits"
    assert found.corrected.percentile(90) / 1e9 == pytest.approx(4.0, rel=0.06)


def test_a_summary_has_an_area() -> None:
    stats = {
        "mean": float(measured("paced").duration.mean()),
        "max": float(measured("paced").duration.max()),
    }
    summary = lk.Summary(stats, count=len(measured("paced")), run=measured("paced").run)
    assert lk.diagnose(summary).verdict == "omits"
    assert lk.diagnose(lk.Summary({"mean": 1.0})).verdict == "unknown"
    assert (
        lk.diagnose(lk.Summary(stats, count=len(measured("paced"))), rate=200).verdict == "unknown"
    )


@pytest.mark.parametrize("count", [None, 0, 3, 100_000])
def test_a_summary_of_any_statistics_is_diagnosed(count: int | None) -> None:
    stated = {"mean": 2e6, "max": 5e9, "p50": 1e6, "p99": 9e6, "min": 1e5}
    for size in range(len(stated) + 1):
        for names in itertools.combinations(stated, size):
            summary = lk.Summary({name: stated[name] for name in names}, count=count)
            for rate, connections in itertools.product((None, 1000.0), (None, 8)):
                found = lk.diagnose(summary, rate=rate, connections=connections, duration=100.0)
                assert found.verdict in ("unknown", "clean", "omits", "no stall")


def test_nothing_and_little_do_not_fail() -> None:
    empty = lk.Samples(start=[], duration=[])
    for data in (
        empty,
        empty.histogram(),
        lk.Samples(start=[0], duration=[5]),
        lk.Samples(start=[0, 0], duration=[5, 5]),
    ):
        assert lk.diagnose(data, rate=10).verdict == "unknown"
    bare = lk.Samples(
        start=measured("paced").start, duration=measured("paced").duration, unit="none"
    )
    assert lk.diagnose(bare).verdict in ("omits", "unknown")


def test_the_view_of_a_notebook_escapes_what_a_file_says() -> None:
    view = lk.diagnose(measured("paced").with_run(source="<b>run</b>"))._repr_html_()
    assert "omits" in view
    assert "&lt;b&gt;run" in view
    assert "<b>run" not in view
    assert "unknown" in lk.diagnose(lk.Summary({"mean": 1.0}))._repr_html_()


def test_a_tool_that_drops_what_is_due_waited() -> None:
    few_users = (
        measured("paced").histogram().with_run(loop="open", corrected="unknown", dropped=1197)
    )
    found = lk.diagnose(few_users)
    assert found.verdict == "omits"
    assert "dropped" in found.findings
    some = lk.diagnose(
        measured("open").histogram().with_run(loop="open", corrected="unknown", dropped=80)
    )
    assert (some.verdict, some.summary) == (
        "unknown",
        "80 requests that were due were dropped, and have no latency",
    )


def test_requests_cut_off_at_the_end_leave_their_number() -> None:
    cut = (
        measured("quiet")
        .select(measured("quiet").start < 15e9)
        .histogram()
        .with_run(loop="open", corrected="none")
    )
    found = lk.diagnose(cut, rate=200, duration="20s")
    assert found.verdict == "unknown"
    assert "fewer-than-due" in found.findings
    assert "only 3,000 of 4,000 requests" in found.summary


def test_percentiles_alone_can_stand_on_the_floor() -> None:
    reported_stats = {"max": float(measured("open").response.max())}
    values = measured("open").histogram().percentile([50, 75, 90, 99])
    listed = lk.Histogram.from_percentiles(
        [50, 75, 90, 99], values.tolist(), len(measured("open")), reported_stats=reported_stats
    )
    assert lk.diagnose(listed, duration="20s").verdict == "clean"
    flat = lk.Histogram.from_percentiles(
        [50, 75, 90, 99],
        [1e6, 1.1e6, 1.2e6, 2e6],
        len(measured("open")),
        reported_stats=reported_stats,
    )
    assert lk.diagnose(flat, duration="20s").verdict == "unknown"


@pytest.mark.slow
def test_a_hiccup_of_a_loop_at_full_speed_accuses_nobody() -> None:
    server = Server(exponential("1ms"), servers=8, stalls=[Stall(3, 0.03)])
    found = lk.diagnose(closed_loop(server, 10, connections=4).histogram())
    assert found.verdict == "unknown"


def test_the_floor() -> None:
    assert percentile_lower_bound([75, 90, 99], 100, 200).tolist() == pytest.approx([50, 80, 98])
    assert percentile_lower_bound(50, 6, 20) == 0
    assert above_half(lk.Histogram.of([1, 1, 9, 10]))[:2] == (2, 2)
    assert above_half(
        lk.Histogram.from_percentiles([50, 99], [1, 2], 1000, reported_stats={"max": 100.0})
    )[:2] == (1, 10)
    assert 18.4 / 100 < shortest_visible_stall(100) < 18.6 / 100, (
        "science: 18.5 expected intervals at .001"
    )


def test_equal_ends_are_a_stall_and_equal_latencies_a_timeout() -> None:
    rng = np.random.default_rng(5)
    start = np.sort(rng.random(6000)) * 60e9
    took = rng.exponential(2e6, 6000)
    apart, together = took.copy(), took.copy()
    apart[rng.choice(6000, 12, replace=False)] = 5e9
    first = int(np.searchsorted(start, 20e9))
    sent = start.copy()
    sent[first : first + 12] = sent[first] + np.arange(12) * 1e5
    together[first : first + 12] = sent[first] + 5.0005e9 - sent[first : first + 12]
    order = np.argsort(sent)
    late = lk.diagnose(lk.Samples(start=start, duration=apart))
    stalled = lk.diagnose(lk.Samples(start=sent[order], duration=together[order]))
    assert "clipped" in late.findings
    assert "clipped" not in stalled.findings


def test_odds_add_up_and_the_closest_rival_decides() -> None:
    first = evidence("a", "finding", {"paused": 1.0, "recorded": 9.0}, missing=20)
    second = evidence("b", "finding", {"paused": 1.0})
    one, both = Ledger((first,), ("paused", "recorded")), Ledger((first, second), ("paused",))
    assert one.odds == {"paused": 1.0, "recorded": LEDGER.max_odds}
    assert (one.remaining, one.accuses, one.suspects) == (("paused",), False, True)
    assert (both.remaining, both.accuses) == ((), True)
    few = evidence("a", "finding", {"paused": 6.0}, missing=LEDGER.min_missing_requests - 1)
    assert not Ledger((few,), ("paused",)).accuses


def test_a_tail_is_not_a_gap() -> None:
    rng = np.random.default_rng(1)
    wrong = 0
    for _ in range(200):
        values = np.sort((1 - rng.random(5000)) ** (-1 / 1.5))
        ones = np.ones(values.size - 2)
        wrong += tail_odds(values[-2], 2, values[:-2], ones) >= LEDGER.min_odds
    assert wrong <= 4
    body = np.sort(rng.lognormal(0.0, 1.0, 5000))
    assert tail_odds(20 * body[-1], 2, body, np.ones(body.size)) >= LEDGER.min_odds


def test_the_command(run, tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    rows = np.stack([measured("paced").start, measured("paced").duration], 1)
    path.write_text(
        "start_ns,latency_ns\n" + "\n".join(f"{a},{b}" for a, b in rows.tolist()) + "\n"
    )
    log = tmp_path / "run.hlog"
    write_hlog(measured("paced").to_log("1s"), log)
    record = json.loads(run("diagnose", log, "--connections", "4", "--format", "json")[1])[
        "series"
    ][0]
    assert record["verdict"] == "omits"
    assert set(record) >= {
        "name", "count", "verdict", "findings", "evidence", "expected_interval", "stalls", "raw",
        "corrected", "method"
    }  # fmt: skip
    assert set(record["evidence"][0]) == {"test", "statistic", "threshold", "finding"}
    assert set(record["stalls"][0]) == {"start", "end", "duration", "worst", "missing"}
    assert record["corrected"]["90"] == pytest.approx(4e9, rel=0.05)
    assert record["expected_interval"] == pytest.approx(20e6, rel=0.05)
    text = run("diagnose", log, "--connections", "4")[1]
    assert "run.hlog: omits" in text
    assert "back-filled" in text


def test_the_exit_status(tmp_path: Path) -> None:
    waited, honest = tmp_path / "waited.hlog", tmp_path / "honest.hlog"
    write_hlog(measured("paced").to_log("1s"), waited)
    write_hlog(measured("open").to_log("1s"), honest)
    run = CliRunner().invoke
    assert run(cli, ["diagnose", str(waited), "--fail"], standalone_mode=False).return_value == 1
    assert run(cli, ["diagnose", str(waited)], standalone_mode=False).return_value == 0
    assert run(cli, ["diagnose", str(honest), "--fail"], standalone_mode=False).return_value == 0
    wrong = run(
        cli, ["diagnose", str(waited), "--expected-interval", "soon"], standalone_mode=False
    )
    assert isinstance(wrong.exception, InvalidArgumentError)
