"""When the schedule's truth does not hold, a bad word about the tool must not be said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import latencykit as lk
from latencykit.core.run import Note
from latencykit.ctrlz.run import Observed, Plan, _judged
from latencykit.ctrlz.verdict import FrozenSpan, Waiting, scheduled_truth

MS = 1_000_000
SEEN = Observed(
    begin=0, stall=FrozenSpan(4.0, 8.0), elapsed=12.0, base=1.2 * MS,
    waiting=(Waiting(4, 360), Waiting(4, 360)),
    around=False, answered=False, hidden=False, before=200.0, busy=0.1, drain=0.05, requests=1600,
    notes=(),
)  # fmt: skip


def _plan(**changes) -> Plan:
    given = {
        "command": ("tool", "{rate}", "{duration}"), "server": None, "pid": None, "container": None,
        "through": None, "remote": False, "url": None,
        "stall": 4.0,
        "duration": 12.0, "rate": 200.0, "connections": 4, "at": "middle", "partial": None,
        "service_time": 1e6,
        "series": None, "format": None, "options": None, "progress": print,
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
    # The wrong process was frozen, or a part that the tool goes around.
    (LOST, PID, ALIEN, "unknown", "unknown", "right one"),
    (LOST, PID, ALIEN | {"waiting": SEEN.waiting}, "loses", "", ""),
    (OMITTING, {}, {"around": True}, "unknown", "unknown", ""),
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
        assert _verdict(report, requests=2400)[0] == "clips"


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
