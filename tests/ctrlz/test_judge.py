"""Verdicts: of reports, real ones and bent ones, against the truth, and what voids them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import latencykit as lk
from latencykit.core.run import Note
from latencykit.ctrlz.run import Observed, Plan, _judged
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


def test_without_a_rate_the_requests_are_spread_over_the_run() -> None:
    assert scheduled_truth(FrozenSpan(1, 2), 4, count=400).count == 400
    assert scheduled_truth(FrozenSpan(1, 2), 4).count == 10_000
    with pytest.raises(InvalidArgumentError):
        scheduled_truth(FrozenSpan(1, 2), 0)


# ---------------------------------------------------------------- what voids a verdict

SEEN = Observed(
    begin=0, stall=FrozenSpan(4.0, 8.0), elapsed=12.0, base=1.2 * MS,
    waiting=(Waiting(4, 360), Waiting(4, 360)),
    answered=False, hidden=False, before=200.0, busy=0.1, drain=0.05, requests=1600,
    notes=(),
)  # fmt: skip


def _plan(**changes) -> Plan:
    given = {
        "command": ("tool", "{rate}", "{duration}"), "stall": 4.0, "duration": 12.0,
        "service_time": 1e6, "options": None, "progress": print,
    }  # fmt: skip
    return Plan(**given | changes)


def _report(p50: float, p99: float, top: float, **run) -> lk.Histogram:
    known = lk.Run(**run)
    return lk.Histogram.from_percentiles(
        [50, 99], [p50 * MS, p99 * MS], 2000, reported_stats={"max": top * MS}, run=known
    )


INFLATED, LOST, OMITTING = (2000, 3900, 4000), (1.2, 3, 12), (1.2, 3, 4000)


def _verdict(report, plan=None, **seen) -> tuple[str, str, str]:
    found = _judged(plan or _plan(), replace(SEEN, **seen), ["tool"], report)
    return found.verdict, found.model, " ".join(found.reasons)


FREE, PID = {"command": ("tool", "{duration}")}, {"pid": 77}
ALIEN = {"before": None, "busy": None, "requests": None, "waiting": (Waiting(4, 0), Waiting(4, 0))}
LATE = {"50": 1e6, "99": 0.3e9, "100": 0.5e9}
TWICE = "requests were sent where 2,400 were scheduled"
JUDGED = [
    # report, plan, what was seen, verdict, model where it matters, words of the reason
    (INFLATED, {}, {}, "overcorrects", "", ""),
    (LOST, {}, {}, "loses", "", ""),
    (OMITTING, {}, {}, "omits", "paced", "1,600 of 2,400 scheduled requests were sent"),
    # Without a rate, it may have been cut off, and its report be of the slowest requests.
    (INFLATED, FREE, {}, "unknown", "", "write the rate as {rate}"),
    # The backlog hides what the tool does, and so does a rate that was never reached,
    (INFLATED, {}, {"drain": 1.0}, "unknown", "", "1 s for the backlog"),
    (INFLATED, {}, {"before": 150.0}, "unknown", "", "150 of 200"),
    # a queue behind the stall, or in the tool itself.
    (INFLATED, {}, {"busy": 0.5}, "unknown", "", "utilisation of 50%"),
    (INFLATED, {}, {"waiting": (None, None), "busy": None}, "unknown", "", "cannot be seen"),
    ((2000, 5100, 5350), {}, {}, "unknown", "", "1.3 s later than the stall explains"),
    # The wrong process was frozen.
    (LOST, PID, ALIEN, "unknown", "unknown", "right one"),
    (LOST, PID, ALIEN | {"waiting": SEEN.waiting}, "loses", "", ""),
    (OMITTING, {}, {"answered": True}, "unknown", "unknown", "other processes serve the port"),
    # A busy machine, and a rate that is not kept: JMeter's thousand threads send at once.
    (INFLATED, {}, {"jitter": LATE}, "unknown", "", "too busy"),
    (INFLATED, {}, {"jitter": {"99": 1e6}}, "overcorrects", "", ""),
    (OMITTING, {}, {"busy": 0.9}, "unknown", "", "busy 90% of the time"),
    (OMITTING, {}, {"requests": 4700}, "unknown", "", f"4,700 {TWICE}"),
    (OMITTING, {}, {"requests": 2500}, "omits", "", ""),
    ((300, 3000, 4000), {}, {"requests": 3456}, "unknown", "", f"3,456 {TWICE}"),
    ((1.2, 3, 13_000), {}, {"requests": 2400}, "omits", "", "counted twice?"),
    # It gave up at the first error, or asked once, slept, and sent its load after the thaw.
    *(
        row
        for report in (LOST, OMITTING)
        for row in (
            (report, {}, {"elapsed": 8.5, "requests": 900}, "unknown", "", "8.5 s after its first"),
            (report, {}, {"before": 0.25, "requests": 2400}, "unknown", "", "had not begun"),
            (report, FREE, {"before": 9.0, "requests": 2000}, "unknown", "", "had not begun"),
        )
    ),
    # Without a rate, busy connections tell full speed.
    (OMITTING, FREE, {"before": 300.0}, "omits", "paced", ""),
    (OMITTING, FREE, {"before": 700.0}, "omits", "unknown", ""),
    (OMITTING, FREE, {"before": 2900.0}, "omits", "closed", ""),
]


@pytest.mark.parametrize(("report", "plan", "seen", "verdict", "model", "words"), JUDGED)
def test_a_tool_is_accused_only_where_the_schedule_holds(
    report, plan, seen, verdict, model, words
) -> None:
    found = _verdict(_report(*report), _plan(**plan), **seen)
    assert (found[0], found[1] if model else "") == (verdict, model)
    assert words in found[2]


def test_what_the_report_says_of_itself_counts() -> None:
    assert _verdict(_report(*LOST, timeouts=8), _plan(**PID), **ALIEN)[0] == "loses"
    for before in (300.0, 700.0):
        found = _verdict(_report(*OMITTING, loop="closed"), _plan(**FREE), before=before)
        assert found[1] == "closed"
    verdict, _, why = _verdict(_report(*OMITTING, unit_from="assumed"))
    assert (verdict, "--unit" in why) == ("unknown", True)


@pytest.mark.parametrize("report", [LOST, OMITTING])
def test_a_load_that_had_begun_or_a_freeze_at_the_end_excuses_nobody(report) -> None:
    cut = {"stall": FrozenSpan(9.6, 13.6), "elapsed": 13.7, "requests": 2400}
    for plan, seen in ((FREE, {}), (FREE | {"at": "end"}, cut)):
        assert "had not begun" not in _verdict(_report(*report), _plan(**plan), **seen)[2]


@pytest.mark.parametrize(
    ("start", "verdict"), [(0.25, "unknown"), (2.0, "partly")], ids=["at once", "later"]
)
def test_a_run_that_ends_at_the_thaw_cannot_catch_up(start: float, verdict: str) -> None:
    """As oha with its correction: at its time it ends, whatever is still to be sent."""
    length = 4.0 + 2 * start
    stall = FrozenSpan(start, start + 4.0)
    due = np.arange(0, length / 2, 0.005)
    waits = np.where(due >= start, 1e9 * (start + 4.0 - due), 1.2 * MS)
    report = lk.Samples(duration=waits.astype(np.int64)).histogram()
    seen = {"stall": stall, "elapsed": length, "requests": due.size}
    found, _, why = _verdict(report, _plan(duration=length), **seen)
    assert found == verdict
    assert ("use --duration 6s" in why) is (verdict == "unknown")
    # Nor if it is busy all the time as it is, with its connections or with the server.
    for busy in ({"base": 16 * MS}, {"busy": 0.7}):
        found, _, why = _verdict(report, _plan(duration=length), **seen | busy)
        assert found == "unknown"
        assert "lower the rate" in why


def test_times_without_the_handshake_are_named() -> None:
    """As k6's http_req_duration: its requests wait in the handshake, which it does not time."""
    waiting = {"waiting": (Waiting(280, 28_000), Waiting(680, 68_000)), "requests": None}
    for url, named in (("https://127.0.0.1", True), ("http://127.0.0.1", False)):
        for report, accused in ((LOST, "loses"), (OMITTING, "omits")):
            plan = _plan(through="127.0.0.1:443", url=url)
            verdict, model, why = _verdict(_report(*report), plan, **waiting)
            assert (verdict, model, "TLS's handshake" in why) == (accused, "open", named)
            assert ("in the report" in why or "are missing" in why) is not named


def _waits() -> np.ndarray:
    """Of the requests of the schedule, as `SEEN` would have them."""
    due = np.arange(2400) * 5 * MS
    return np.where((due >= 4e9) & (due < 8e9), 8e9 - due, 1.2 * MS)


def test_values_just_below_a_timeout_are_clipped() -> None:
    """Times measured by the tool's own timer end at, or shortly after, its timeout."""
    rng, waits = np.random.default_rng(2), _waits()
    for top in (0.5, 1.0):
        late = np.minimum(waits, top * 1e9 + rng.exponential(0.02e9, waits.size))
        exact = lk.Samples(duration=late.astype(np.int64))
        for report in (exact, exact.histogram(), _brief(late)):
            assert _verdict(report, requests=2400)[0] == "clips"
        kept = lk.Samples(duration=waits[waits < top * 1e9].astype(np.int64))
        assert _verdict(kept, requests=2400)[0] == "loses"


def test_a_straggler_above_a_clip_does_not_hide_those_below_it() -> None:
    """The report lost no delayed request; a busy machine adds one late one."""
    clipped = np.minimum(_waits(), 1.1e9)
    clipped[0] = 1.7e9
    for report in (lk.Samples(duration=clipped.astype(np.int64)), _brief(clipped)):
        verdict, _, why = _verdict(report, requests=2400)
        assert (verdict, why.startswith("hardly anything above")) == ("clips", True), why


def _brief(values: np.ndarray) -> lk.Histogram:
    points, stats = [50, 90, 99], {"max": float(values.max())}
    return lk.Histogram.from_percentiles(
        points, np.percentile(values, points), values.size, reported_stats=stats
    )


def test_a_stall_shorter_than_the_interval_of_a_connection_acquits_nobody() -> None:
    response = scheduled_truth(SEEN.stall, 12.0, rate=200.0, base=1.2 * MS)
    assert _verdict(response, requests=2400)[:2] == ("honest", "paced")
    many = Waiting(400, 36_000)
    verdict, _, why = _verdict(response, requests=2400, waiting=(many, many))
    assert (verdict, "2.0 requests in the stall" in why) == ("unknown", True)


def test_a_loop_has_no_more_connections_than_the_command_got() -> None:
    """A tool that opens more does not wait, even where the first look came too late."""
    response = scheduled_truth(SEEN.stall, 12.0, rate=200.0, base=1.2 * MS)
    seen = {"requests": 2400, "waiting": (None, Waiting(680, 61_200))}
    given = _plan(command=("tool", "{rate}", "{duration}", "{connections}"))
    assert _verdict(response, given, **seen)[0] == "honest"
    assert _verdict(response, **seen)[0] == "unknown"


def test_of_a_run_that_ends_in_its_freeze_only_the_rest_has_requests_due() -> None:
    assert _plan().stalled == 4.0
    assert _plan(at="end").stalled == pytest.approx(2.4)


def test_what_the_tool_leaves_out_is_not_expected() -> None:
    """wrk2 calibrates for 10 s, and forgets what it measured meanwhile."""
    run = lk.Run(tool="wrk2", notes=(Note("the first 10 s are left out", "begin", 10.0),))
    long = replace(SEEN, stall=FrozenSpan(13.0, 17.0), elapsed=30.0, requests=6000)
    response = scheduled_truth(FrozenSpan(3.0, 7.0), 20.0, rate=200.0, base=1.2 * MS)
    response = response.with_run(notes=run.notes, tool="wrk2")
    found = _judged(_plan(duration=30.0), long, ["wrk2"], response)
    assert (found.verdict, found.truth.run.duration) == ("honest", 20.0)
    short = _judged(_plan(), SEEN, ["wrk2"], _report(*LOST, notes=run.notes))
    assert short.verdict == "unknown"
    assert "use --duration 28s" in short.reasons[0]


def test_the_reader_of_wrk2_notes_its_calibration_as_it_is_looked_for() -> None:
    from latencykit.ctrlz.run import _skipped

    samples = Path(__file__).parents[1] / "data/formats/wrk2"
    noted = [
        _skipped(data)
        for path in samples.glob("*/*.txt")
        for data in lk.read_all(path).values()
        if isinstance(data, lk.Histogram | lk.Summary)
    ]
    assert 10.0 in noted
