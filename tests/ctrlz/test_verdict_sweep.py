"""No honest report is accused, and no omitting one acquitted, whatever part of the run is frozen.

Twelve modes of load generators are simulated against a server that is frozen, and their reports given
in the forms that tools print.
"""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest

import latencykit as lk
from latencykit.ctrlz.verdict import FrozenSpan, Judgement, judge, scheduled_truth

pytestmark = pytest.mark.slow

MS, S = 1e6, 1e9
BASE = 1.3 * MS
CONNECTIONS = 4
PARTS = [0.02, 0.03, 0.05, 0.1, 0.15, 0.2, 0.25, 1 / 3, 0.4, 0.5, 0.6]
STALLS = [((4.0, 200.0), (0.9, 200.0)), ((4.0, 200.0), (2.5, 50.0))]
"""Seconds frozen and requests per second, of every other part."""


def _due(rate: float, duration: float) -> np.ndarray:
    return np.arange(round(rate * duration)) / rate


def _open(
    stall: FrozenSpan, duration: float, rate: float, due: np.ndarray | None = None
) -> np.ndarray:
    due = _due(rate, duration) if due is None else due
    waits = (due >= stall.start) & (due < stall.end)
    return np.where(waits, (stall.end - due) * S, 0.0) + BASE


def _poisson(stall: FrozenSpan, duration: float, rate: float) -> np.ndarray:
    rng = np.random.default_rng(round(1000 * stall.seconds))
    return _open(stall, duration, rate, np.sort(rng.uniform(0, duration, round(rate * duration))))


def _queued(stall: FrozenSpan, duration: float, rate: float, load: float = 0.25) -> np.ndarray:
    """One server of utilisation `load`, so that a queue remains after the thaw."""
    due, service, free = _due(rate, duration), load / rate, 0.0
    end = np.empty(len(due))
    for number, moment in enumerate(due.tolist()):
        begin = max(moment, free)
        begin = stall.end if stall.start <= begin < stall.end else begin
        free = end[number] = begin + service
    return (end - due) * S


def _paced(stall: FrozenSpan, duration: float, rate: float) -> np.ndarray:
    """Each connection waits for its reply, and drops the turns that pass meanwhile."""
    due = _due(rate, duration)
    response = _open(stall, duration, rate)
    inside = np.flatnonzero((due >= stall.start) & (due < stall.end))
    return np.delete(response, inside[CONNECTIONS:])


def _catching_up(stall: FrozenSpan, duration: float, rate: float) -> np.ndarray:
    """The dropped turns are made up for after the thaw, timed from their send."""
    response = _open(stall, duration, rate)
    response[np.flatnonzero(response > BASE)[CONNECTIONS:]] = BASE
    return response


def _full_speed(stall: FrozenSpan, duration: float, rate: float) -> np.ndarray:
    count = round(CONNECTIONS * (duration - stall.seconds) / (BASE / S))
    return np.concatenate([np.full(count, BASE), np.full(CONNECTIONS, stall.seconds * S)])


def _wrk(stall: FrozenSpan, duration: float, rate: float) -> np.ndarray:
    """The correction that wrk makes by itself: by the mean interval of a connection."""
    samples = _full_speed(stall, duration, rate)
    interval = duration * S * CONNECTIONS / len(samples)
    filled = np.arange(stall.seconds * S - interval, interval, -interval)
    return np.concatenate([samples, np.repeat(filled, CONNECTIONS)])


def _busy_wrk(stall: FrozenSpan, duration: float, rate: float) -> np.ndarray:
    """The same on a busy machine: pauses of 30 ms, a tenth of the time, are filled in, too."""
    pause = 0.03
    pauses = round(0.1 * (duration - stall.seconds) / pause)
    count = round(CONNECTIONS * (0.9 * (duration - stall.seconds)) / (BASE / S))
    interval = duration * S * CONNECTIONS / (count + CONNECTIONS * (pauses + 1))
    times = [np.full(count, BASE)]
    for length, often in ((stall.seconds * S, 1), (pause * S, pauses)):
        filled = np.arange(length, interval, -interval)
        times.append(np.repeat(filled, CONNECTIONS * often))
    return np.concatenate(times)


def _autocannon(stall: FrozenSpan, duration: float, rate: float) -> np.ndarray:
    """A correction by 1 ms, whatever the rate."""
    filled = np.arange(stall.seconds * S - MS, MS, -MS)
    return np.concatenate([_paced(stall, duration, rate), np.repeat(filled, CONNECTIONS)])


def _few_workers(stall: FrozenSpan, duration: float, rate: float) -> np.ndarray:
    """Half of the requests due in the stall find a free worker; the others are never sent."""
    response = _open(stall, duration, rate)
    inside = np.flatnonzero(response > BASE)
    return np.delete(response, inside[len(inside) // 2 :])


def _few_streams(stall: FrozenSpan, duration: float, rate: float) -> np.ndarray:
    """Half of the requests due in the stall find a free stream; the others are sent late."""
    response = _open(stall, duration, rate)
    inside = np.flatnonzero(response > BASE)
    response[inside[len(inside) // 2 :]] = BASE
    return response


def _timeout(stall: FrozenSpan, duration: float, rate: float) -> np.ndarray:
    """A closed loop that gives up on requests, and does not count them."""
    response = _paced(stall, duration, rate)
    return response[response == BASE]


MODES = {
    "open": (_open, "honest"),
    "poisson": (_poisson, "honest"),
    "queued": (_queued, "honest"),
    "wrk": (_wrk, "honest"),
    "busy wrk": (_busy_wrk, "honest"),
    "paced": (_paced, "omits"),
    "catching up": (_catching_up, "omits"),
    "full speed": (_full_speed, "omits"),
    "few workers": (_few_workers, "partly"),
    "few streams": (_few_streams, "partly"),
    "1 ms": (_autocannon, "overcorrects"),
    "timeout": (_timeout, "loses"),
}


def _percentiles(*asked: float, mean: bool = True, top: bool = True):
    def report(samples: np.ndarray) -> lk.Histogram:
        stats = {"mean": float(samples.mean())} if mean else {}
        stats |= {"max": float(samples.max())} if top else {}
        values = np.quantile(samples, np.array(asked) / 100, method="inverted_cdf").tolist()
        return lk.Histogram.from_percentiles(asked, values, len(samples), reported_stats=stats)

    return report


def _buckets(samples: np.ndarray) -> lk.Histogram:
    """The default buckets of a Prometheus client, the last one open."""
    edges = np.array([0.0, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]) * S
    counts, _ = np.histogram(samples, edges)
    above = int((samples > edges[-1]).sum())
    known = {"censored": above, "censored_at": float(edges[-1])} if above else {}
    return lk.Histogram.from_buckets(edges[:-1], edges[1:], counts, **known)


def _summary(samples: np.ndarray, *names: str) -> lk.Summary:
    stats = {name: float(getattr(samples, name)()) for name in names}
    return lk.Summary(stats, count=len(samples))


FORMS = {
    "samples": lambda samples: lk.Samples(duration=np.rint(samples).astype(np.int64)),
    "hey": _percentiles(10, 25, 50, 75, 90, 95, 99),
    "k6": _percentiles(50, 75, 90, 95, 99, 99.9),
    "wrk": _percentiles(50, 75, 90, 99),
    "vegeta": _percentiles(50, 90, 95, 99),
    "percentiles only": _percentiles(50, 90, 99, mean=False),
    "percentiles without a maximum": _percentiles(50, 75, 90, 99, mean=False, top=False),
    "median and p99.9": _percentiles(50, 99.9, mean=False),
    "buckets": _buckets,
    "mean and maximum": lambda samples: _summary(samples, "mean", "max"),
    "mean": lambda samples: _summary(samples, "mean"),
    "maximum": lambda samples: _summary(samples, "max"),
}
# Where a form cannot distinguish two accusations, the weaker one is made; no other error is
# allowed.
WEAKER = {"omits": {"partly"}, "loses": {"omits", "partly"}}


@functools.lru_cache(100)
def _world(
    mode: str, duration: float, seconds: float, rate: float
) -> tuple[FrozenSpan, np.ndarray, lk.Histogram]:
    stall = FrozenSpan((duration - seconds) / 2, (duration + seconds) / 2)
    samples = MODES[mode][0](stall, duration, rate)
    if mode in ("wrk", "busy wrk", "full speed"):
        truth = scheduled_truth(stall, duration, count=len(samples), base=BASE)
    else:
        truth = scheduled_truth(stall, duration, rate=rate, base=BASE)
    return stall, samples, truth


@functools.cache
def _verdicts(
    mode: str, form: str, part: float, seconds: float, rate: float
) -> tuple[Judgement, Judgement]:
    """With a server that counts its requests, and without."""
    duration = seconds / part
    stall, samples, truth = _world(mode, duration, seconds, rate)
    asked = FORMS[form](samples), truth, seconds * S, stall.share_due(duration)
    known = {"base": BASE, "stretched": "wrk" in mode}
    counted = judge(*asked, **known, sent=min(1.0, len(samples) / truth.count))
    return counted, judge(*asked, **known)


@pytest.mark.parametrize("mode", MODES)
def test_no_verdict_is_wrong(mode) -> None:
    right = MODES[mode][1]
    allowed = {right, "unknown"} | WEAKER.get(right, set())
    for form, (part, stalls) in itertools.product(FORMS, zip(PARTS, itertools.cycle(STALLS))):
        for seconds, rate in stalls:
            for judgement in _verdicts(mode, form, part, seconds, rate):
                where = (form, part, seconds, rate, judgement)
                assert judgement.verdict in allowed, where
                assert all(row.ratio is None or row.ratio >= 0 for row in judgement.rows), where


@pytest.mark.parametrize("mode", MODES)
def test_every_part_of_the_run_is_seen(mode) -> None:
    """With 4 s frozen, 200 requests per second and a server that counts, verdicts are given."""
    right = MODES[mode][1]
    for form in ("samples", "buckets", "hey", "k6", "wrk"):
        given = {part: _verdicts(mode, form, part, 4.0, 200.0)[0].verdict for part in PARTS}
        undecided = [part for part, verdict in given.items() if verdict != right]
        decides = form == "samples" or right in ("omits", "loses")
        assert len(undecided) <= (0 if decides else 3), (form, undecided)
