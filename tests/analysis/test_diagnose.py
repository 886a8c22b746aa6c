"""Verdicts: what each source and provenance allows to be said."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

import latencykit as lk
from latencykit.analysis.explanations import EXPLANATIONS, explain_stalls
from latencykit.analysis.stall_records import StallRecord, _overlap_decades
from latencykit.core.run import Run
from latencykit.io.hlog import write_hlog
from latencykit.simulate.generators import (
    catch_up_loop,
    closed_loop,
    fixed,
    open_loop,
    paced_loop,
    ramp,
)
from latencykit.simulate.server import Server, Stall, exponential, lognormal
from latencykit.views.diagnosis import sentences_of
from tests.conftest import DATA

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


def bare(data: lk.Samples) -> lk.Samples:
    """The same without anything that the source says of itself."""
    return data.with_run(
        loop="unknown", tool=None, corrected="unknown", measure="service", rate=None,
        connections=None, duration=None, achieved=None, expected_interval=None,
    )  # fmt: skip


# ---------------------------------------------------------------- the textbook freeze

SERVICES = {"1 ms": "1ms", "lognormal": lognormal("1ms", 0.3), "exponential": exponential("1ms")}
SCHEDULES = {
    "the run ends in it": ("200s", [Stall(100, 100)]),
    "once": ("300s", [Stall(100, 100)]),
    "three times": ("700s", [Stall(100 + 200 * k, 100) for k in range(3)]),
}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("service", SERVICES)
def test_the_textbook_freeze(service: str, schedule: str) -> None:
    """100 requests per second, frozen for 100 s: in every form, with and without provenance."""
    duration, stalls = SCHEDULES[schedule]
    connections = 1 if len(service + schedule) % 2 else 10
    server = Server(SERVICES[service], stalls=stalls)
    waited = paced_loop(server, 100, duration, connections=connections)
    truth = lk.retime(waited, rate=100, connections=connections).histogram()
    for data in (waited, waited.to_log("1s")):
        for known in (data, bare(data)):
            found = lk.diagnose(known)
            assert found.verdict == "omits", found
            assert found.left is not None
            missing = 10_000 * len(stalls)
            assert float(found.left.omitted.sum()) == pytest.approx(missing, rel=0.02)
            assert found.corrected is not None
            if schedule != "the run ends in it":
                assert found.corrected.percentile(99) == pytest.approx(
                    truth.percentile(99), rel=0.03
                )
    histogram = waited.histogram()
    assert lk.diagnose(histogram).verdict == "omits"
    known = {"rate": 100, "connections": connections, "duration": duration}
    assert lk.diagnose(bare(histogram), **known).verdict == "omits"
    assert lk.diagnose(bare(histogram)).verdict == "unknown", "nothing says that it waits"
    twin = open_loop(server, fixed(100, duration))
    log = twin.to_log("1s")
    for data in (twin, bare(twin), log, bare(log), twin.histogram()):
        assert lk.diagnose(data).verdict == "clean", data


@pytest.mark.parametrize("begin", [2, 3, 5])
def test_an_open_loop_whose_sends_end_in_a_stall_recorded_it(begin: int) -> None:
    """Of more than half of its requests, too: their median is not the usual latency."""
    server = Server("1.5ms", servers=64, stalls=[Stall(begin, 15)])
    run = bare(open_loop(server, fixed(200, 10), duration=25))
    for data in (run, run.to_log("100ms")):
        found = lk.diagnose(data)
        assert found.verdict == "clean", str(found)
        assert len(found.stalls) == 1
    waited = bare(paced_loop(server, 200, "10s", connections=10))
    assert lk.diagnose(waited).verdict != "clean"


@pytest.mark.parametrize("service", ["1ms", lognormal("1ms", 1.0)])
def test_stalls_of_several_lengths_are_found_in_every_form(service) -> None:
    """The shorter one is neither the tail of a constant service, nor are slow requests a mode."""
    server = Server(service, stalls=[Stall(20, 8), Stall(40, 5)])
    run = bare(paced_loop(server, 100, "60s", connections=1))
    for data in (run, run.to_log("1s"), run.to_log("100ms")):
        found = lk.diagnose(data)
        assert (found.verdict, len(found.stalls)) == ("omits", 2), str(found)


def test_the_sentences_of_the_textbook_freeze() -> None:
    since = {0: "from the start of the run", 100: "from 100.0 s on"}
    for start, when in since.items():
        server = Server("1ms", stalls=[Stall(start, 100)])
        found = lk.diagnose(paced_loop(server, 100, "300s", connections=1).to_log("1s"))
        assert found.sentences[0] == f"{when}, nothing was answered for 100 s"
    assert found.sentences[1] == (
        "at 100/s, about 10,000 requests were due in that time: the 1 that was sent waited for "
        "its reply; 10,000 are missing"
    )
    assert found.sentences[2].startswith("sure (99.")
    assert sum(p for _, p in found.explanations) == pytest.approx(1.0)
    worst = {piece.test: piece.statistic for piece in found.evidence}
    assert worst["waits"] > -0.5
    assert worst["recorded"] < -10


# ---------------------------------------------------------------- loops and forms


def test_a_trace_of_a_loop_that_waited() -> None:
    found = lk.diagnose(measured("paced"))
    assert (found.verdict, found.method) == ("omits", "backfill")
    assert found.corrected.percentile([75, 90, 99]) / 1e9 == pytest.approx(
        [1.0, 4.0, 5.8], rel=0.05
    )
    assert found.expected_interval == pytest.approx(20e6)
    assert found.stalls["duration"].tolist() == pytest.approx([6], abs=0.01)
    missing = int(found.stalls["missing"].sum())
    assert missing == pytest.approx(1196, abs=2)
    assert f"{missing:,} are missing" in found.sentences[1], "the list of stalls says the same"
    assert repr(found).startswith("omits: ")
    assert "had they been sent" in repr(found)


def test_late_sends_are_distinguished_from_missing_ones() -> None:
    found = lk.diagnose(measured("late").with_run(loop="unknown", rate=None, connections=None))
    assert found.verdict == "omits"
    assert dict(found.explanations)["catches up"] > 0.9
    assert "sent late" in found.sentences[1]
    assert found.corrected.percentile(99) / 1e9 == pytest.approx(5.8, rel=0.05)
    assert lk.diagnose(measured("late").measured("response")).verdict == "clean"


def test_logs_and_histograms_accuse_only_whom_they_can() -> None:
    unlabelled = bare(measured("paced"))
    by_log = lk.diagnose(unlabelled.to_log("1s"), connections=4)
    assert (by_log.verdict, by_log.method) == ("omits", "backfill")
    assert by_log.corrected.percentile(90) / 1e9 == pytest.approx(4.0, rel=0.05)
    unknown = lk.diagnose(unlabelled.histogram(), rate=200)
    assert unknown.verdict == "unknown"
    assert "slow requests that delayed no others" in unknown.sentences[-1]
    assert "one row per request" in unknown.advice
    known = lk.diagnose(unlabelled.histogram(), rate=200, connections=4, duration="20s")
    assert known.verdict == "omits", "1,200 requests are missing, as four that waited explain"
    assert lk.diagnose(measured("paced").histogram()).verdict == "omits", "the provenance tells"


def test_without_rate_or_length_it_asks() -> None:
    alone = lk.Histogram.of(measured("paced").duration)
    found = lk.diagnose(alone)
    assert found.verdict == "unknown"
    assert "rate=" in found.advice
    lone = lk.Histogram.of([1e6] * 999 + [2e9])
    assert "rate=" in lk.diagnose(lone).advice
    assert "rate=" not in lk.diagnose(lone, rate=100, connections=1).advice
    assert lk.diagnose(lk.Histogram.of([])).advice == "", "nothing can be asked of no request"
    paced = alone.with_run(loop="paced", corrected="none")
    assert lk.diagnose(paced, duration="20s").verdict == "omits"


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


def test_percentiles_of_a_known_loop() -> None:
    run, shown = measured("paced"), [50, 90, 99]
    stats = {"max": float(run.duration.max()), "mean": float(run.duration.mean())}
    values = run.histogram().percentile(shown).tolist()
    listed = lk.Histogram.from_percentiles(
        shown, values, len(run), reported_stats=stats, run=run.run
    )
    found = lk.diagnose(listed)
    assert found.verdict == "omits"
    assert found.corrected.percentile(90) / 1e9 == pytest.approx(4.0, rel=0.06)


@pytest.mark.parametrize("count", [None, 0, 3, 100_000])
def test_a_summary_of_any_statistics_is_diagnosed(count: int | None) -> None:
    stated = {"mean": 2e6, "max": 5e9, "p50": 1e6, "p99": 9e6, "min": 1e5}
    for size in range(len(stated) + 1):
        for names in itertools.combinations(stated, size):
            summary = lk.Summary({name: stated[name] for name in names}, count=count)
            for rate, connections in itertools.product((None, 1000.0), (None, 8)):
                found = lk.diagnose(summary, rate=rate, connections=connections, duration=100.0)
                assert found.verdict in ("unknown", "clean", "no stall")


def test_nothing_and_little_do_not_fail() -> None:
    empty = lk.Samples(start=[], duration=[])
    for data in (empty, empty.histogram(), lk.Samples(start=[0, 0], duration=[5, 5])):
        assert lk.diagnose(data, rate=10).verdict == "unknown"
    plain = lk.Samples(
        start=measured("paced").start, duration=measured("paced").duration, unit="none"
    )
    assert lk.diagnose(plain).verdict == "unknown"


def test_the_view_of_a_notebook_escapes_what_a_file_says() -> None:
    view = lk.diagnose(measured("paced").with_run(source="<b>run</b>"))._repr_html_()
    assert "requests were omitted" in view
    assert "&lt;b&gt;run" in view
    assert "<b>run" not in view
    assert "undecided" in lk.diagnose(lk.Summary({"mean": 1.0}))._repr_html_()


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
    assert (some.verdict, some.sentences[-1]) == (
        "unknown",
        "80 requests were due and dropped, and have no latency",
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


def test_the_command(run, tmp_path: Path) -> None:
    log = tmp_path / "run.hlog"
    write_hlog(measured("paced").to_log("1s"), log)
    record = run.json("diagnose", log, "--connections", "4")["series"][0]
    assert record["verdict"] == "omits"
    assert record["corrected"]["90"] == pytest.approx(4e9, rel=0.05)
    assert record["expected_interval"] == pytest.approx(20e6, rel=0.05)
    text = run("diagnose", log, "--connections", "4")[1]
    assert 2 <= len(text.splitlines()) <= 9
    assert "run.hlog: requests were omitted" in text
    assert "had they been sent" in text
    assert "as predicted" in run("diagnose", log, "--connections", "4", "--verbose")[1]


# ---------------------------------------------------------------- without omission


def test_service_times_come_with_what_users_may_see() -> None:
    healthy = closed_loop(Server(exponential("1ms"), servers=8), 10, connections=4)
    found = lk.diagnose(healthy.histogram().with_run(connections=None, duration=None))
    assert (found.verdict, found.sure, found.corrected) == ("service times", True, None)
    assert "a schedule to compare with is missing" in found.summary
    for p, (low, high) in found.most.items():
        assert low == healthy.histogram().percentile(p)
        assert high >= low
    frozen = lk.diagnose(bare(measured("full")))
    assert (frozen.verdict, frozen.method) == ("omits", "backfill")


def test_connections_that_nobody_stated_and_values_beyond_the_recorder_are_not_made_up() -> None:
    path = DATA / "formats/bpftrace/two-maps/bpftrace.txt"
    found = lk.diagnose(lk.read(path, series="@usecs"))
    assert found.connections is None
    assert sentences_of(found) == ("3 requests are known only to have taken more than 2.05 ms",)
    assert "tracks longer latencies" in found.advice


def test_a_timer_that_wakes_threads_at_a_known_interval_has_a_schedule() -> None:
    whole = lk.read_all(DATA / "formats/cyclictest/histogram/stdout.txt")["all"]
    assert "expected_interval= would decide" in lk.diagnose(whole).advice
    assert lk.diagnose(whole, expected_interval="1ms").verdict == "no stall"


def test_a_list_of_statistics_has_a_range_where_it_suffices() -> None:
    loop = Run(tool="ab", loop="closed", corrected="none", measure="service")
    points = {50.0: 1e6, 90.0: 2e6, 99.0: 4e6}
    found = lk.diagnose(lk.Summary({"mean": 1.2e6, "max": 9e6}, points, run=loop))
    assert found.verdict == "service times"
    assert list(found.most) == [50.0, 90.0, 99.0], "no percentile that is not reported"
    assert all(low == points[p] and low <= high <= 9e6 for p, (low, high) in found.most.items())
    without = lk.diagnose(lk.Summary({"mean": 1.2e6}, points, run=loop))
    assert (without.verdict, without.most) == ("service times", {})
    assert "the slowest request would show" in " ".join(without.sentences)


def test_without_a_stall_nothing_was_hidden() -> None:
    found = lk.diagnose(measured("quiet"))
    assert (found.verdict, found.corrected) == ("no stall", None)
    assert found.bound is not None
    assert not found.bound.material
    assert "kept no other from being sent" in found.summary
    tenth = lk.Histogram.of(np.repeat([1000, 3000], [900, 100]), unit="us")
    found = lk.diagnose(tenth.with_run(rate=300.0, connections=10))
    assert (found.verdict, found.bound and found.bound.material) == ("no stall", False)


def test_what_is_corrected_is_not_accused() -> None:
    once = lk.correct(measured("paced").to_log("1s"))
    found = lk.diagnose(once)
    assert found.verdict != "omits"
    assert found.corrected is None
    assert "already-corrected" in found.findings
    for by in ("tool", "schedule"):
        raw = measured("paced").histogram().with_run(corrected=by)
        assert lk.diagnose(raw).verdict != "omits"


def test_an_overload_is_named_with_its_backlog() -> None:
    rate, duration = 1000.0, 60.0
    due = np.arange(0, duration, 1 / rate)
    end = np.maximum(due, np.arange(due.size) / 900.0) + 1e-3
    sent = end < duration
    took = lk.Samples(
        start=due[sent] * 1e9, duration=(end - due)[sent] * 1e9,
        run=Run(loop="open", corrected="schedule", measure="response", rate=rate, duration=duration),
    )  # fmt: skip
    found = lk.diagnose(took)
    assert "overload" in found.findings
    assert "kept up with 900 of 1,000 per second" in found.summary


def test_an_overload_is_named_where_sends_fall_behind_and_not_after_stalls() -> None:
    """A limit on concurrency holds requests back before they are sent, where no latency has it."""
    random = np.random.default_rng(2)
    took = random.normal(0.7, 0.05, 100)
    start = np.cumsum(took) - took
    run = Run(loop="closed", measure="service", rate=10.0, duration=float(took.sum()))
    found = lk.diagnose(lk.Samples(start=start * 1e9, duration=took * 1e9, run=run))
    assert "overload" in found.findings
    assert (
        f"of 10 per second were sent, the last ones {start[-1] - 9.9:.1f} s late" in found.summary
    )
    assert "no other from being sent" not in found.summary
    stalled = paced_loop(
        Server("1ms", stalls=[Stall(10 + 20 * k, 5) for k in range(10)]), 100, "200s", connections=1
    )
    assert "overload" not in lk.diagnose(stalled.with_run(rate=100.0)).findings
    poisson = np.cumsum(random.exponential(0.1, 500))
    calm = lk.Samples(start=poisson * 1e9, duration=np.full(500, 5e6))
    assert "overload" not in lk.diagnose(calm, rate=10.0).findings


@pytest.mark.parametrize(("dropped", "named"), [(6_000, True), (60, False)])
def test_dropped_iterations_are_an_overload_unless_they_are_few(dropped: int, named: bool) -> None:
    run = Run(
        tool="k6", loop="open", measure="service", rate=200.0, duration=60.0, dropped=dropped,
        unit="ms", unit_from="format",
    )  # fmt: skip
    data = lk.Histogram.from_percentiles(
        [50, 90, 95], [1e9, 1.3e9, 1.4e9], 12_000 - dropped, reported_stats={"max": 2.3e9}, run=run
    )
    found = lk.diagnose(data)
    assert ("overload" in found.findings) is named
    assert ("50 % of what was due was dropped" in found.summary) is named


def test_a_report_that_cannot_be_true_decides_nothing() -> None:
    run = Run(tool="hey", loop="closed", corrected="none", connections=10, duration=10.0)
    wrong = lk.Histogram.from_percentiles(
        [50, 90, 99], [1e6, 2e6, 3e6], 1000, reported_stats={"mean": 2e9, "max": 3e9}, run=run
    )
    found = lk.diagnose(wrong)
    assert (found.verdict, found.corrected) == ("unknown", None)
    assert "contradicts itself" in found.summary
    late = lk.Histogram.from_percentiles(
        [50, 90, 99], [1e6, 2e6, 3e6], 1000, reported_stats={"max": 90e9}, run=run
    )
    assert "a latency of 90 s is longer than the run, 10 s" in lk.diagnose(late).summary


@pytest.mark.parametrize(("rate", "log"), [(50, False), (200, False), (1000, False), (200, True)])
def test_nothing_is_missing_where_others_were_sent_on(rate, log):
    rng = np.random.default_rng(rate + log)
    start, duration = np.cumsum(rng.exponential(1e9 / rate, 60_000)), rng.lognormal(14.5, 1, 60_000)
    slow = np.arange(60_000) // 60 == 500 if log else rng.random(60_000) < 0.001
    duration[slow] = rng.uniform(0.2e9, 2.4e9 if log else 1.4e9, int(slow.sum()))
    samples = lk.Samples(start=start, duration=duration)
    found = lk.diagnose(samples.to_log("1s") if log else samples)
    assert len(found.stalls) == 0
    assert (found.verdict, found.sure or log) == ("clean", True)
    assert "others were sent meanwhile" in found.sentences[0]
    assert "within what chance allows" in found.sentences[1]


def test_the_backlog_of_a_stall_is_not_a_part_of_it():
    """Two connections catch up at full speed; times count from when each request was due."""
    rng, free = np.random.default_rng(4), np.zeros(2)
    due = np.arange(4000) * 5e6
    end = np.zeros(due.size)
    for k, at in enumerate(due):
        begin = max(at, free[k % 2])
        begin += 13e9 - begin if 7e9 <= begin < 13e9 else 0.0
        end[k] = free[k % 2] = begin + 2e6 * rng.lognormal(0, 0.1)
    found = lk.diagnose(lk.Samples(start=due, duration=end - due))
    assert (found.verdict, found.sure) == ("clean", True)
    assert found.detected_stalls.end == pytest.approx([13.0], abs=0.01)


def test_sends_that_went_on_while_requests_were_slow_bound_what_is_missing():
    """Hits and misses of a cache, at random moments: each miss alone could hide a request."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        start = np.cumsum(rng.exponential(0.01, 12_000))
        took = np.where(rng.random(12_000) < 0.03, 0.02, 0.001) * rng.lognormal(0, 0.1, 12_000)
        assert lk.diagnose(lk.Samples(start=start * 1e9, duration=took * 1e9)).verdict == "no stall"


def test_one_connection_of_two_that_waited_is_not_called_complete():
    rows = []
    for at in (0.0, 0.01):
        while at < 120:
            took = 3.0 if 50 < at < 50.02 and not at % 0.02 > 0.005 else 0.005
            rows.append((at, took))
            at = max(at + 0.02, at + took)
    start, took = np.array(sorted(rows)).T
    found = lk.diagnose(lk.Samples(start=start * 1e9, duration=took * 1e9))
    assert found.verdict != "clean"


VEGETA = """Requests      [total, rate, throughput]         {count}, {rate:.2f}, {rate:.2f}
Duration      [total, attack, wait]             20s, 19.99s, 2.9ms
Latencies     [min, mean, 50, 90, 95, 99, max]  {}
Success       [ratio]                           100.00%
Status Codes  [code:count]                      200:{count}
"""


@pytest.mark.parametrize("rate", [100, 400])
@pytest.mark.parametrize("stall", [4, 6, 8])
def test_a_few_percentiles_show_that_an_open_loop_recorded_its_stall(tmp_path, stall, rate):
    server = Server(exponential("1ms"), servers=8, stalls=[Stall(7, stall)])
    took = open_loop(server, fixed(rate, 20), duration=20).histogram()
    values = [took.min, took.mean, *took.percentile([50, 90, 95, 99]), took.max]
    numbers = ", ".join(f"{value / 1e6:.6g}ms" for value in values)
    path = tmp_path / "report.txt"
    path.write_text(VEGETA.format(numbers, count=took.count, rate=float(rate)))
    found = lk.diagnose(lk.read(path))
    assert found.verdict == "clean", found
    assert "all of them are recorded" in str(found)


@pytest.mark.parametrize("stall", [3, 5, 7])
def test_a_tool_that_times_from_the_schedule_recorded_the_stall_that_ended_its_run(stall):
    ended = open_loop(
        Server("1ms", servers=8, stalls=[Stall(9, stall)]), fixed(100, 12), duration=12
    )
    reported = {p: float(ended.percentile(p)) for p in (50, 90, 95, 99)}
    stats = {"max": float(ended.histogram().max), "mean": float(ended.histogram().mean)}
    run = Run(tool="vegeta", loop="open", measure="response", corrected="schedule", rate=100.0,
              duration=max(12.0, 9 + stall))  # fmt: skip
    assert lk.diagnose(lk.Summary(stats, reported, 1200, "ns", run)).verdict == "clean"


def test_what_a_tool_states_needs_no_probability():
    found = lk.diagnose(measured("open").to_log("1s").with_run(corrected="tool"))
    assert found.verdict == "clean"
    unlikely = replace(found.explained, probability=dict.fromkeys(EXPLANATIONS, 0.125))
    assert "sure (" in "; ".join(sentences_of(found))
    assert "sure (" not in "; ".join(sentences_of(replace(found, explained=unlikely)))


@pytest.mark.parametrize("usual", [0.0, 5e-324, 1e-300, 1e6])
def test_usual_values_may_be_below_what_the_source_resolves(usual: float) -> None:
    start = np.arange(2000) * 1e7 + 4e9 * (np.arange(2000) > 1000)
    found = lk.diagnose(lk.Samples(start=start, duration=np.where(start == 1e10, 4e9, usual)))
    assert found.verdict == "omits"
    assert len(found.stalls) == 1
    listed = [usual, usual, usual, 4e9]
    lk.diagnose(lk.Histogram.from_percentiles([50, 90, 99, 100], listed, 2000), rate=100)


@pytest.mark.parametrize("length", [[1.0, 2.0], [2.0, 1.0]])
def test_of_stalls_that_tell_as_much_the_longest_decides(length: list[float]) -> None:
    record = StallRecord(
        length, due=[10.0, 10.0], sent=0.0, missing=10.0, throughout=1.0, partial=0.0, tail=0.0,
        baseline=0.001, rate=10.0, count=1000.0, timed=False,
    )  # fmt: skip
    assert length[explain_stalls(record, "generator", None).decisive] == 2.0


def test_how_unusual_it_is_that_requests_as_slow_overlap() -> None:
    """Of 102 s of such requests in 10,000 s, two at once: 100 others, any of them."""
    one = np.ones(2)
    decades = _overlap_decades(102 * one, one, np.array([2.0, 1.0]), 10_000.0)
    assert decades.tolist() == [pytest.approx(-math.log10(100 / 20_000) - 2), 0.0]


@pytest.mark.parametrize(("at", "length"), [(8, 3), (5, 2)])
def test_an_early_stall_of_a_growing_load_has_what_was_due_then(at: int, length: int) -> None:
    """At the rate of the whole run, twice to three times as many requests were due."""
    server = Server(lognormal("2ms", 0.5), stalls=[Stall(at, length)])
    run = open_loop(server, ramp(20, 400, 60, seed=1), seed=1)
    for data in (run, run.to_log("1s")):
        found = lk.diagnose(data.with_run(loop="unknown", measure="service", corrected="unknown"))
        assert (found.verdict, found.sure) == ("clean", True)
        then = 20 + 380 * (at + length / 2) / 60
        assert 0.7 < found.left.due[0] / (then * length) < 1.7


def test_two_seconds_of_a_clock_of_whole_seconds() -> None:
    """As ab writes starts: no pause lies between them, nothing is due after the last, and no stall shows."""
    start, took = np.repeat([0.0, 1e9], 1500), np.resize([1e6, 2e6, 3e6], 3000)
    took[[0, -1]] = 5e6, 20e6
    found = lk.diagnose(lk.Samples(start=start, duration=took))
    assert (found.verdict, found.left, len(found.detected_stalls)) == ("no stall", None, 0)
    assert found.rate == pytest.approx(3000)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 10, 19])
def test_few_requests_show_nothing(count: int) -> None:
    """No explanation is weighed, whatever the form and whatever is stated."""
    took = np.where(np.arange(count) == count // 2, 2e9, 1e6)
    start = np.arange(count) * 1e8 + 2e9 * (np.arange(count) > count // 2)
    samples = lk.Samples(start=start, duration=took)
    for data in (samples, samples.to_log("1s"), samples.histogram()):
        for stated in ({}, {"rate": 10, "connections": 1}):
            found = lk.diagnose(data, **stated)
            assert (found.verdict, found.explained, found.findings) == ("unknown", None, ())
            assert "cannot show" in found.summary
            assert found.advice == "measure for longer"


def test_an_unknown_loop_has_a_bound() -> None:
    """Slow requests that may have delayed others, or not: how much that is at most."""
    start = np.arange(4000) * 2e6
    took = np.where(np.arange(4000) % 400 == 7, 14e6, 5e4)
    log = lk.Samples(start=start, duration=took).to_log("1s")
    found = lk.diagnose(log)
    assert found.verdict == "unknown"
    assert found.bound is not None
    assert f"at most {found.bound.others:,} requests were not sent, p99 up to" in found.summary


def test_slow_requests_of_one_connection_that_differ_may_be_a_mode() -> None:
    """Equal freezes are none; the farther from the usual latency, the less likely it is."""
    rng = np.random.default_rng(3)

    def verdicts(slow: list[float]) -> set[str]:
        took = rng.gamma(8, 0.1e-3, 20_000)
        took[[2500, 7500, 12_500, 17_500]] = slow
        start = np.cumsum(np.maximum(took, 5e-3)) - np.maximum(took, 5e-3)
        samples = lk.Samples(start=np.rint(start * 1e9), duration=np.rint(took * 1e9))
        return {lk.diagnose(data).verdict for data in (samples, samples.to_log("100ms"))}

    assert "omits" not in verdicts([0.16, 0.1, 0.2, 0.13])
    assert verdicts([0.2, 0.2, 0.2, 0.2]) == {"omits"}
    assert verdicts([16.0, 10.0, 20.0, 13.0]) == {"omits"}


def test_as_many_slow_requests_as_connections_but_one_are_isolated() -> None:
    """Of 8 connections 9 requests were equally slow, and none is missing at 200 per second."""
    rng = np.random.default_rng(0)
    latencies = np.append(rng.lognormal(14, 1, 5991), np.full(9, 2e9))
    stated = {"rate": 200, "connections": 8, "duration": 30}
    assert lk.diagnose(lk.Histogram.of(latencies), **stated).verdict != "omits"


@pytest.mark.parametrize(("begin", "width"), [(20.0, "1s"), (20.0, "100ms"), (20.5, "100ms")])
def test_one_stall_that_is_recorded_speaks_for_all(begin: float, width: str) -> None:
    """The backlog after the last stall of an open loop looks like a stall of its own."""
    server = Server(exponential("1ms"), stalls=[Stall(begin, 0.8)])
    twin = bare(open_loop(server, fixed(400, begin + 0.8))).to_log(width)
    assert lk.diagnose(twin).verdict == ("unknown" if width == "1s" else "clean")


@pytest.mark.parametrize("stated", [{}, {"rate": 500}, {"rate": 500, "connections": 1000}])
def test_of_a_histogram_it_is_not_said_how_many_of_those_due_are_recorded(stated):
    start = np.arange(30_000) * 2_000_000
    took = np.random.default_rng(1).lognormal(14.5, 0.5, start.size).astype(np.int64)
    frozen = (start < 31e9) & (start + took > 30e9)
    took[frozen] = np.maximum(start + took, 31_000_000_000)[frozen] - start[frozen]
    found = lk.diagnose(lk.Samples(start=start, duration=took).histogram(), **stated)
    assert found.verdict == "clean"
    assert "spread evenly" in str(found)
    assert "were due" not in str(found)
