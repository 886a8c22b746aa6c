"""When the schedule's truth does not hold, a bad word about the tool must not be said."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import latencykit as lk
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


def test_what_holds_is_said() -> None:
    assert _verdict(_report(*INFLATED))[0] == "overcorrects"
    assert _verdict(_report(*LOST))[0] == "loses"
    assert _verdict(_report(*OMITTING))[:2] == ("omits", "paced")


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


def test_without_a_rate_nobody_overcorrects() -> None:
    """It may have been cut off, and its report be of the slowest requests."""
    verdict, _, why = _verdict(_report(*INFLATED), _plan(command=("tool", "{duration}")))
    assert (verdict, "write the rate as {rate}" in why) == ("unknown", True)


def test_times_without_the_handshake_are_named() -> None:
    """As k6's http_req_duration: its requests wait in the handshake, which it does not time."""
    waiting = {"waiting": (Waiting(280, 28_000), Waiting(680, 68_000)), "requests": None}
    for url, named in (("https://127.0.0.1", True), ("http://127.0.0.1", False)):
        for report, accused in ((LOST, "loses"), (OMITTING, "omits")):
            plan = _plan(through="127.0.0.1:443", url=url)
            verdict, model, why = _verdict(_report(*report), plan, **waiting)
            assert (verdict, model, "TLS's handshake" in why) == (accused, "open", named)
            assert ("in the report" in why or "are missing" in why) is not named


def test_a_long_backlog_hides_what_a_tool_does() -> None:
    verdict, _, why = _verdict(_report(*INFLATED), drain=1.0)
    assert verdict == "unknown"
    assert "1 s for the backlog" in why


def test_a_rate_that_was_never_reached_hides_it_too() -> None:
    verdict, _, why = _verdict(_report(*INFLATED), before=150.0)
    assert verdict == "unknown"
    assert "150 of 200" in why


def test_the_wrong_process_is_not_a_loss() -> None:
    alien = {
        "before": None,
        "busy": None,
        "requests": None,
        "waiting": (Waiting(4, 0), Waiting(4, 0)),
    }
    verdict, model, why = _verdict(_report(*LOST), _plan(pid=77), **alien)
    assert (verdict, model) == ("unknown", "unknown")
    assert "right one" in why
    assert _verdict(_report(*LOST, timeouts=8), _plan(pid=77), **alien)[0] == "loses"
    assert (
        _verdict(_report(*LOST), _plan(pid=77), **alien | {"waiting": SEEN.waiting})[0] == "loses"
    )


def test_going_around_a_frozen_part_is_not_omission() -> None:
    assert _verdict(_report(*OMITTING), around=True)[:2] == ("unknown", "unknown")


def test_a_queue_in_the_tool_itself_is_not_overcorrection() -> None:
    verdict, _, why = _verdict(_report(2000, 5100, 5350))
    assert verdict == "unknown"
    assert "1.3 s later than the stall explains" in why
    assert _verdict(_report(2000, 3900, 4000))[0] == "overcorrects"


def test_a_busy_machine_and_a_rate_that_is_not_kept_decide_nothing() -> None:
    late = {"50": 1e6, "99": 0.3e9, "100": 0.5e9}
    assert _verdict(_report(*INFLATED), jitter=late)[0] == "unknown"
    assert "too busy" in _verdict(_report(*INFLATED), jitter=late)[2]
    assert _verdict(_report(*INFLATED), jitter={"99": 1e6})[0] == "overcorrects"
    verdict, _, why = _verdict(_report(*OMITTING), requests=4700)
    assert verdict == "unknown"
    assert "4,700 requests were sent where 2,400 were scheduled" in why
    assert _verdict(_report(*OMITTING), requests=2500)[0] == "omits"


def test_a_tool_that_ended_early_or_had_not_begun_is_not_accused() -> None:
    """It gave up at the first error, or asked once, slept, and sent its load after the thaw."""
    for report in (LOST, OMITTING):
        verdict, _, why = _verdict(_report(*report), elapsed=8.5, requests=900)
        assert (verdict, "8.5 s after its first request" in why) == ("unknown", True)
        verdict, _, why = _verdict(_report(*report), before=0.25, requests=2400)
        assert (verdict, "had not begun" in why) == ("unknown", True)
        free = _plan(command=("tool", "{duration}"))
        assert "had not begun" in _verdict(_report(*report), free, before=9.0, requests=2000)[2]
        assert "had not begun" not in _verdict(_report(*report), free)[2]
        end = _plan(command=("tool", "{duration}"), at="end")
        cut = {"stall": FrozenSpan(9.6, 13.6), "elapsed": 13.7, "requests": 2400}
        assert "had not begun" not in _verdict(_report(*report), end, **cut)[2]


def test_more_requests_than_were_due_are_named_once_in_a_sentence() -> None:
    """As JMeter with a thousand threads, each of which sends its first request at once."""
    half = _report(300, 3000, 4000)
    verdict, _, why = _verdict(half, requests=3456)
    assert verdict == "unknown"
    assert "3,456 requests were sent where 2,400 were scheduled" in why


def test_values_just_below_a_timeout_are_clipped() -> None:
    """Times measured by the tool's own timer end at, or shortly after, its timeout."""
    rng = np.random.default_rng(2)
    due = np.arange(2400) * 5 * MS
    waits = np.where((due >= 4e9) & (due < 8e9), 8e9 - due, 1.2 * MS)
    for top in (0.5, 1.0):
        late = np.minimum(waits, top * 1e9 + rng.exponential(0.02e9, due.size))
        exact = lk.Samples(duration=late.astype(np.int64))
        points = [50, 90, 99]
        values = np.percentile(late, points)
        stats = {"max": float(late.max())}
        brief = lk.Histogram.from_percentiles(points, values, 2400, reported_stats=stats)
        for report in (exact, exact.histogram(), brief):
            assert _verdict(report, requests=2400)[0] == "clips"
        kept = lk.Samples(duration=waits[waits < top * 1e9].astype(np.int64))
        assert _verdict(kept, requests=2400)[0] == "loses"


def test_a_straggler_above_a_clip_does_not_hide_those_below_it() -> None:
    """The report lost no delayed request; a busy machine adds one late one."""
    due = np.arange(2400) * 5 * MS
    waits = np.where((due >= 4e9) & (due < 8e9), 8e9 - due, 1.2 * MS)
    clipped = np.minimum(waits, 1.1e9)
    clipped[0] = 1.7e9
    for report in (lk.Samples(duration=clipped.astype(np.int64)), _brief(clipped)):
        assert _verdict(report, requests=2400)[0] == "clips"


def _brief(values: np.ndarray) -> lk.Histogram:
    points, stats = [50, 90, 99], {"max": float(values.max())}
    return lk.Histogram.from_percentiles(
        points, np.percentile(values, points), values.size, reported_stats=stats
    )


def test_a_busy_server_is_admitted() -> None:
    assert "busy 90% of the time" in _verdict(_report(*OMITTING), busy=0.9)[2]


@pytest.mark.parametrize(
    ("before", "model"), [(300.0, "paced"), (700.0, "unknown"), (2900.0, "closed")]
)
def test_without_a_rate_busy_connections_tell_full_speed(before, model) -> None:
    plan = _plan(command=("tool", "{duration}"))
    assert _verdict(_report(*OMITTING), plan, before=before)[1] == model
    assert _verdict(_report(*OMITTING, loop="closed"), plan, before=before)[1] == "closed"


def test_the_run_s_length_is_the_schedule_s_or_what_was_seen() -> None:
    reported_stats = _judged(_plan(), SEEN, ["tool"], _report(*OMITTING))
    seen = _judged(
        _plan(command=("tool",)), replace(SEEN, elapsed=16.0), ["tool"], _report(*OMITTING)
    )
    assert reported_stats.truth.run.duration == 12.0
    assert (seen.truth.run.duration, seen.truth.count) == (16.0, 1600)


def test_a_queue_behind_the_stall_is_not_overcorrection() -> None:
    verdict, _, why = _verdict(_report(*INFLATED), busy=0.5)
    assert (verdict, "utilisation of 50%" in why) == ("unknown", True)
    verdict, _, why = _verdict(_report(*INFLATED), waiting=(None, None), busy=None)
    assert (verdict, "cannot be seen" in why) == ("unknown", True)


def test_a_stall_shorter_than_the_interval_of_a_connection_acquits_nobody() -> None:
    response = scheduled_truth(SEEN.stall, 12.0, rate=200.0, base=1.2 * MS)
    assert _verdict(response, requests=2400)[:2] == ("honest", "paced")
    many = Waiting(400, 36_000)
    verdict, _, why = _verdict(response, requests=2400, waiting=(many, many))
    assert (verdict, "2.0 requests in the stall" in why) == ("unknown", True)


def test_an_unknown_usual_time_is_null() -> None:
    result = _judged(_plan(), replace(SEEN, base=None, before=None), ["tool"], _report(*OMITTING))
    assert result.verdict == "omits"
    record = json.loads(json.dumps(result.record(), allow_nan=False))
    assert (record["truth"]["50"], record["rows"][0]["ratio"]) == (None, None)
    assert "usual time of a request is unknown" in " ".join(result.reasons)


def test_what_the_tool_leaves_out_is_not_expected() -> None:
    """wrk2 calibrates for 10 s, and forgets what it measured meanwhile."""
    run = lk.Run(
        tool="wrk2", notes=("the first 10 s, in which wrk2 calibrates, are not among the values",)
    )
    long = replace(SEEN, stall=FrozenSpan(13.0, 17.0), elapsed=30.0, requests=6000)
    response = scheduled_truth(FrozenSpan(3.0, 7.0), 20.0, rate=200.0, base=1.2 * MS).with_run(
        notes=run.notes, tool="wrk2"
    )
    found = _judged(_plan(duration=30.0), long, ["wrk2"], response)
    assert (found.verdict, found.truth.run.duration) == ("honest", 20.0)
    short = _judged(_plan(), SEEN, ["wrk2"], _report(*LOST, notes=run.notes))
    assert short.verdict == "unknown"
    assert "use --duration 28s" in short.reasons[0]


def test_who_answers_was_not_frozen() -> None:
    verdict, model, why = _verdict(_report(*OMITTING), answered=True)
    assert (verdict, model, "other processes serve the port" in why) == ("unknown", "unknown", True)


def test_a_latency_longer_than_the_run_is_doubted() -> None:
    verdict, _, why = _verdict(_report(1.2, 3, 13_000), requests=2400)
    assert "counted twice?" in why
    assert verdict != "honest"


def test_an_assumed_unit_accuses_nobody() -> None:
    verdict, _, why = _verdict(_report(*OMITTING, unit_from="assumed"))
    assert (verdict, "--unit" in why) == ("unknown", True)


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
