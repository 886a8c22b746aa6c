"""The truth of a schedule with a stall, and the verdict on a report that is compared with it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from latencykit.core.histogram import Histogram
from latencykit.core.run import Run
from latencykit.core.summary import Summary
from latencykit.errors import InvalidArgumentError
from latencykit.units import format_duration, format_percentile

if TYPE_CHECKING:
    from latencykit.io.source import Data

__all__ = [
    "CalibrationRow",
    "Judgement",
    "Model",
    "Stall",
    "Verdict",
    "Waiting",
    "judge",
    "model_of",
    "reported_percentiles",
    "scheduled_truth",
    "waiting_requests",
]


MOST_REQUESTS = 1_000_000


@dataclass(frozen=True)
class Stall:
    """The time that a server was frozen, in seconds from the run's start, and the share frozen.

    Attributes
    ----------
    start, end : float
    share : float
        Share of the requests that it delays: 1 for the full server, 1/4 for one of four processes.
    """

    start: float
    end: float
    share: float = 1.0

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.end - self.start

    def share_due(self, duration: float) -> float:
        """Return the share of a run's requests that were due in it and delayed."""
        return self.share * max(0.0, min(self.end, duration) - max(self.start, 0.0)) / duration


def scheduled_truth(
    stall: Stall,
    duration: float,
    *,
    rate: float | None = None,
    count: int | None = None,
    base: float = 0.0,
) -> Histogram:
    """Return the response times of a constant rate; requests due in the stall wait for its end.

    A request due at t in a stall that ends at e takes e − t and the usual time; the others take the
    usual time. The backlog after the thaw is ignored: the truth is a lower bound, close with a fast
    server. ``Q(q) = (e − a) − (1 − q)·T`` above the quiet part (a: start of the stall, T: length of
    the run).
    """
    if duration <= 0:
        raise InvalidArgumentError("a run must be longer than nothing")
    requests = count if rate is None else round(rate * duration)
    size = max(1, min(MOST_REQUESTS, requests or 10_000))
    due = np.arange(size) * (duration / size)
    waits = (due >= stall.start) & (due < stall.end)
    if stall.share < 1:  # every n-th of them, evenly
        number = np.cumsum(waits)
        waits &= np.floor(number * stall.share) > np.floor((number - 1) * stall.share)
    response = base + np.where(waits, (stall.end - due) * 1e9, 0.0)
    run = Run(
        tool="the schedule",
        loop="open",
        measure="response",
        corrected="schedule",
        duration=duration,
        rate=rate,
    )
    return Histogram.of(np.rint(response).astype(np.int64), run=run)


# ------------------------------------------------------------
# The requests that wait for a frozen server: what a load generator does without replies shows its
# model.

_ESTABLISHED = "01"


@dataclass(frozen=True)
class Waiting:
    """Connections to a server that does not read.

    Attributes
    ----------
    connections : int
        Established ones, accepted or not.
    octets : int
        Unread bytes on all of them. A request that was read and not yet answered has none.
    """

    connections: int
    octets: int


def waiting_requests(
    port: int, tables: tuple[str, ...] = ("/proc/net/tcp", "/proc/net/tcp6")
) -> Waiting | None:
    """Return the backlog of a local port; None without the tables that only Linux has."""
    unread: list[int] = []
    readable = False
    for table in tables:
        try:
            lines = Path(table).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        readable = True
        for line in lines:
            _, local, _, state, queues, *_ = line.split()
            if state == _ESTABLISHED and int(local.rpartition(":")[2], 16) == port:
                unread.append(int(queues.rpartition(":")[2], 16))
    return Waiting(len(unread), sum(unread)) if readable else None


# ------------------------------------------------------------
# From the report and the truth to a verdict, and the reasons for it.

Verdict = Literal["honest", "omits", "loses", "clips", "overcorrects", "unknown"]
Model = Literal["open", "paced", "closed", "unknown"]

_ASKED = (50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 100.0)
NEAR = 0.15  # of the truth at the highest percentile that the stall decides: honest
HALF = 0.5  # of the truth: below it the stall is missing, below it at the maximum it is lost
ABOVE = 1.5  # of the truth, and by
DRAIN = 0.25  # of the stall: more than a queue that drains afterwards
# A percentile this far inside the stalled share is decided by the stall: neither by the drain nor
# by
# a correction's interval that the stall itself has stretched (wrk's, which fills h / (1 + h) where
# h
# was stalled).
DEEP = 0.6


@dataclass(frozen=True)
class CalibrationRow:
    """One percentile, reported and true.

    Attributes
    ----------
    percentile : float
    reported, truth : float
        In ns.
    decisive : bool
        True where the stall alone decides the truth.
    """

    percentile: float
    reported: float
    truth: float
    decisive: bool

    @property
    def ratio(self) -> float:
        """Reported over true."""
        return self.reported / self.truth if self.truth else float("nan")


@dataclass(frozen=True)
class Judgement:
    """A verdict, its rows and its reasons."""

    verdict: Verdict
    rows: tuple[CalibrationRow, ...]
    reasons: tuple[str, ...]


def reported_percentiles(data: Data, stall: float) -> dict[float, float]:
    """Return percentile → ns as the tool reported them, the maximum as 100.

    A percentile between two reported ones is left out where its bucket is wide compared with the
    stall (ns): the bucket above the last one reaches up to the maximum, and the tool did not report
    its edge.
    """
    if isinstance(data, Summary):
        values = {p: data.percentile(p) for p in _ASKED[:-1] if p in data.reported_percentiles}
        return values | ({100.0: data.max} if "max" in data.stats else {})
    histogram: Histogram = data if isinstance(data, Histogram) else data.histogram()
    if not histogram.count:
        return {}
    values = {100.0: histogram.max}
    for row in histogram.percentile_rows(_ASKED[:-1]):
        width = row.bucket_high - row.bucket_low
        sharp = row.bucket_high <= 1.25 * row.bucket_low or width <= 0.05 * stall
        covered = histogram.count * (1 - row.percentile / 100) >= 1
        if row.percentile in histogram.reported_percentiles[0] or (sharp and covered):
            values[row.percentile] = row.value
    return values


def judge(data: Data, truth: Histogram, stall: float, due: float) -> Judgement:
    """Compare a report with the truth; `stall` in ns, `due` the share of requests due in it."""
    rows = tuple(
        CalibrationRow(p, value, truth.percentile(p), p < 100 and 1 - p / 100 <= DEEP * due)
        for p, value in sorted(reported_percentiles(data, stall).items())
    )
    if not rows:
        return Judgement("unknown", (), ("the report has no percentiles and no maximum",))
    verdict, reason = _rule(rows, data, truth, stall, due)
    admitted = {
        "timed out": data.run.timeouts,
        "were cut off at the end": data.run.unfinished,
        "were not sent": data.run.dropped,
    }
    reasons = [
        f"the report does say that {count:,} requests {words}"
        for words, count in admitted.items()
        if count
    ]
    if data.run.corrected == "tool" and verdict == "honest":
        reasons.append("by the tool's own correction: do not correct it again")
    return Judgement(verdict, rows, (reason, *reasons))


def _rule(
    rows: tuple[CalibrationRow, ...], data: Data, truth: Histogram, stall: float, due: float
) -> tuple[Verdict, str]:
    decisive = [row for row in rows if row.decisive]
    quiet = [row for row in rows if 1 - row.percentile / 100 >= 1.5 * due]
    inflated = [row for row in quiet if row.reported > row.truth + DRAIN * stall]
    inflated += [
        row for row in decisive if row.ratio > ABOVE and row.reported > row.truth + DRAIN * stall
    ]
    if inflated:
        why = "more than any queue behind the stall explains"
        return "overcorrects", f"{_words(inflated[0])}: {why}"
    top, limit = rows[-1], _limit(data, truth)
    if top.reported < HALF * min(stall, truth.max) and not (limit and top.reported >= 0.9 * limit):
        return "loses", f"{_words(top)}: the delayed requests are not in the report"
    missing = [row for row in decisive if row.ratio < HALF]
    capped = [
        row for row in decisive if row.ratio < 1 - NEAR and limit and row.reported >= 0.9 * limit
    ]
    if missing and missing != capped:
        why = "the requests that should have been sent meanwhile are missing"
        return "omits", f"{_words(missing[-1])}: {why}"
    if capped and limit:
        return "clips", f"nothing above {format_duration(limit)} is reported; {_words(capped[-1])}"
    if not decisive:
        why = "the report has no percentile that this stall decides"
        return "unknown", f"{why}; freeze it for a larger part of the run"
    last = decisive[-1]
    if abs(last.ratio - 1) <= NEAR:
        return "honest", _words(last)
    return "unknown", f"{_words(last)}: neither near the truth nor without the stall"


def _limit(data: Data, truth: Histogram) -> float | None:
    """Return the value at which the tool clips latencies, known or a pile at the top, if any."""
    if isinstance(data, Histogram):
        if data.censored and data.censored_at < 0.9 * truth.max and not data.run.timeouts:
            return data.censored_at
        if data.reported_percentiles[0] or not data.count:
            return None
    if isinstance(data, Summary):
        return None
    histogram = data if isinstance(data, Histogram) else data.histogram()
    if histogram.max >= 0.9 * truth.max:
        return None
    near = histogram.count_above(0.995 * histogram.max)
    return histogram.max if near >= max(10, 0.005 * histogram.count) else None


def _words(row: CalibrationRow) -> str:
    name = "the maximum" if row.percentile == 100 else f"p{format_percentile(row.percentile)}"
    reported, truth = format_duration(row.reported), format_duration(row.truth)
    return f"{name} is reported as {reported} where the truth is {truth}"


def model_of(
    early: Waiting | None,
    late: Waiting | None,
    *,
    rate: float | None,
    stall: float,
    paced: bool | None,
) -> Model:
    """Return the model by the backlog of the frozen server early and late in the stall."""
    if early is None or late is None or not late.connections:
        return "unknown"
    grew = late.octets >= 1.5 * early.octets and late.octets - early.octets > 100
    due = (rate or 0.0) * stall
    if grew and (late.connections >= 0.3 * due or late.octets >= 10 * due):
        return "open"
    return "unknown" if paced is None else "paced" if paced else "closed"
