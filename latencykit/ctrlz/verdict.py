"""The truth of a schedule with a stall, and the verdict on a report that is compared with it."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Literal

import numpy as np

from latencykit._records import record
from latencykit.core import Data
from latencykit.core.histogram import Histogram
from latencykit.core.run import Run
from latencykit.core.summary import Summary
from latencykit.ctrlz.freeze import LISTENS, tcp_sockets
from latencykit.errors import InvalidArgumentError
from latencykit.units import format_duration, format_percentile

MOST_REQUESTS = 1_000_000


@record()
class FrozenSpan:
    """The time that a server was frozen, in seconds from the run's start."""

    start: float
    end: float

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.end - self.start

    def share_due(self, duration: float) -> float:
        """Return the share of a run's requests that were due in it."""
        return max(0.0, min(self.end, duration) - max(self.start, 0.0)) / duration


def scheduled_truth(
    stall: FrozenSpan,
    duration: float,
    *,
    rate: float | None = None,
    count: int | None = None,
    base: float = 0.0,
) -> Histogram:
    """Return the response times of a constant rate; requests due in the stall wait for its end."""
    # A request due at t in a stall that ends at e takes e − t and the usual time; the others take
    # the usual time. The backlog after the thaw is ignored: the truth is a lower bound, close with
    # a fast server. ``Q(q) = (e − a) − (1 − q)·T`` above the quiet part (a: start of the stall, T:
    # length of the run).
    if duration <= 0:
        raise InvalidArgumentError("a run must be longer than nothing")
    requests = count if rate is None else round(rate * duration)
    size = max(1, min(MOST_REQUESTS, requests or 10_000))
    due = np.arange(size) * (duration / size)
    waits = (due >= stall.start) & (due < stall.end)
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


@record()
class Waiting:
    """Connections to a server that does not read."""

    connections: int  # established ones, accepted or not
    octets: int  # unread on all of them; a request that was read and not yet answered has none


def waiting_requests(
    port: int, tables: tuple[str, ...] = ("/proc/net/tcp", "/proc/net/tcp6")
) -> Waiting | None:
    """Return the backlog of a local port; None without the tables that only Linux has."""
    sockets = tcp_sockets(tables)
    if sockets is None:
        return None
    unread = [
        int(fields[4].rpartition(":")[2], 16)
        for ports, state, fields in sockets
        if state == _ESTABLISHED and ports[0] == port
    ]
    return Waiting(len(unread), sum(unread))


def connected_clients(port: int) -> set[str] | None:
    """Return the addresses of both ends of all connections to a port, closed ones included."""
    # None without the tables that only Linux has.
    sockets = tcp_sockets()
    if sockets is None:
        return None
    return {
        " ".join(sorted(fields[1:3]))
        for ports, state, fields in sockets
        if state != LISTENS and port in ports
    }


# ------------------------------------------------------------
# From the report and the truth to a verdict, and the reasons for it.

Verdict = Literal["honest", "partly", "omits", "loses", "clips", "overcorrects", "unknown"]
Model = Literal["open", "paced", "closed", "unknown"]

_PERCENTILES = (50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 100.0)
# The share of requests slower than a part of the stall, reported over true, separates the verdicts:
# loops that wait have 0 to 0.13, loops with too few workers 0.6 to 0.7, honest ones 1 to 1.4 (the
# queue after the thaw is above 1), and a correction by too short an interval 3. The gaps between
# these bounds are not judged.
OMITS = 0.35
PARTLY = 0.72
HONEST = (0.8, 1.5)
OVER = 2.0
# The mean covers every request, but a few slow ones weigh more in it: narrower bounds.
MEAN_PARTLY = 0.85
MEAN_HONEST = (0.9, 1.4)
# Above half of the stall a few requests that waited from its beginning look like all of them.
PARTS = (0.1, 0.2, 0.3, 0.4, 0.5)
ENOUGH = 50  # requests that should be slower than the part, for an honest verdict
NEAR = 0.15  # of the truth at the highest percentile that the stall decides: honest
HALF = 0.5  # of the truth: below it the stall is missing, below it at the maximum it is lost
ABOVE = 1.5  # of the truth, and by
DRAIN = 0.25  # of the stall: more than a queue that drains afterwards
FLAT = 1.1  # reported percentiles next to each other, whose truths differ by
STEEP = 1.2  # at least: many requests were given one value
# A percentile this far inside the stalled share is decided by the stall: neither by the drain nor
# by a correction's interval that the stall itself has stretched (wrk's).
DEEP = 0.6


@record()
class CalibrationRow:
    """One percentile, reported and true, in ns."""

    percentile: float
    reported: float
    truth: float | None  # None where the usual time of a request is unknown
    decisive: bool  # the stall alone decides the truth

    @property
    def ratio(self) -> float | None:
        """Reported over true; None where the truth is unknown."""
        return self.reported / self.truth if self.truth else None


@record()
class Judgement:
    """A verdict, its rows and its reasons."""

    verdict: Verdict
    rows: tuple[CalibrationRow, ...]
    reasons: tuple[str, ...]
    seen: str = ""  # what accuses the tool, before what it means in the first reason


def reported_percentiles(data: Data, stall: float) -> dict[float, float]:
    """Return percentile → ns as the tool reported them, the maximum as 100."""
    # A percentile between two reported ones is left out where its bucket is wide compared with the
    # stall (ns): the bucket above the last one reaches up to the maximum, and the tool did not
    # report its edge.
    if isinstance(data, Summary):
        values = {p: v for p, v in data.reported_percentiles.items() if p in _PERCENTILES}
        return values | ({100.0: data.max} if "max" in data.stats else {})
    histogram = data.histogram()
    if not histogram.count:
        return {}
    values = {100.0: histogram.max} if np.isfinite(histogram.bounds("max")[1]) else {}
    for row in histogram.percentile_rows(_PERCENTILES[:-1]):
        width = row.bucket_high - row.bucket_low
        sharp = row.bucket_high <= 1.25 * row.bucket_low or width <= 0.05 * stall
        covered = histogram.count * (1 - row.percentile / 100) >= 1
        if row.percentile in histogram.reported_percentiles[0] or (sharp and covered):
            values[row.percentile] = row.value
    return values


@record()
class SlowShare:
    """The share of requests slower than a limit (ns): bounds from the report, and the truth."""

    limit: float
    low: float  # equal to `high` for samples, and at reported percentiles
    high: float
    truth: float
    due: float  # number of requests that should be slower

    def __str__(self) -> str:
        share = f"{100 * self.high:.2g}%" if self.high < 0.1 else f"{self.high:.0%}"
        share = f"at most {share}" if self.high > 1.05 * self.low + 0.001 else share
        return (
            f"{share} of the requests took longer than {format_duration(self.limit)} by the "
            "report, "
            f"{self.truth:.0%} by the schedule"
        )


def slow_shares(
    data: Data,
    truth: Histogram,
    stall: float,
    usual: float,
    cap: float | None = None,
    sent: float = 1.0,
    fill: float = 1.0,
) -> list[SlowShare]:
    """Return the shares of requests slower than parts of the stall (ns), by ascending part."""
    # The parts are fixed ones and those at which the tool reports a percentile; they are well above
    # the `usual` time of a request, and below the value at which the tool clips. Shares are of the
    # requests due, of which the share `sent` arrived: those never sent are not slow ones either. A
    # tool that fills in the share `fill` of what is missing has more than a few above half of the
    # stall: wrk's p90 is there where a third of the run is frozen.
    low = high = counts = np.empty(0)
    censored, total, bound = 0, 0, np.inf
    if isinstance(data, Summary):
        points = dict(data.reported_percentiles)
    else:
        histogram = data.histogram()
        low, high, counts = (getattr(histogram.counted, name) for name in ("low", "high", "counts"))
        censored, bound = histogram.censored, histogram.censored_at
        total = histogram.count + censored
        points = dict(zip(*histogram.reported_percentiles, strict=True))
    if isinstance(data, Summary) and "max" in data.stats:
        points[100.0] = data.max
    most = min(0.5 * stall, np.inf if cap is None else 0.75 * cap)
    limits = {part * min(stall, 2 * most) for part in PARTS}
    limits |= {value for value in points.values() if 0.05 * stall <= value <= most / fill}
    shares = []
    for limit in sorted(limits):
        due = truth.count_above(limit)
        if limit < 5 * usual or not due:
            continue
        surely, perhaps = 0.0, 1.0
        if total:
            surely = (counts[low >= limit].sum() + (censored if bound >= limit else 0)) / total
            perhaps = (counts[high > limit].sum() + censored) / total
        surely = max([surely, *(1 - p / 100 for p, value in points.items() if value >= limit)])
        perhaps = min([perhaps, *(1 - p / 100 for p, value in points.items() if value <= limit)])
        bounds = sent * surely, sent * max(surely, perhaps)
        shares.append(SlowShare(limit, *bounds, due / truth.count, float(due)))
    return shares


def judge(
    data: Data,
    truth: Histogram,
    stall: float,
    due: float,
    *,
    base: float | None = None,
    sent: float | None = None,
    stretched: bool = False,
) -> Judgement:
    """Compare a report with the truth of `scheduled_truth`, both in ns."""
    # The `stall` (ns) is the share `due` of the requests, `base` the usual time of one (ns), and
    # `sent` the share that arrived at the server. A correction is `stretched` if the stall itself
    # has stretched its interval: wrk's fills in 1 / (1 + h) of what is due in the share h of the
    # run.
    data = data if isinstance(data, Summary) else data.histogram()
    rows = tuple(
        CalibrationRow(
            p,
            value,
            None if base is None and true < 1.0 else true,
            p < 100 and 1 - p / 100 <= DEEP * due,
        )
        for p, value in sorted(reported_percentiles(data, stall).items())
        for true in [truth.percentile(p)]
    )
    case = _Case(data, rows, truth, stall, due, base, sent, 1 / (1 + due) if stretched else 1.0)
    accusation, seen = case.by_shares() or case.by_mean(), ""
    if accusation:
        verdict, seen, why = accusation
        reason = f"{seen}: {why}"
    else:
        verdict, reason = case.clipped() or case.rest()
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
    return Judgement(verdict, rows, (reason, *reasons), seen)


_MORE = "more than any queue behind the stall explains"
_MISSING = "the requests that should have been sent meanwhile are missing"
_SOME_MISSING = f"some of {_MISSING}, or sent late"


class _Case:
    """A report and the truth, with what the rules ask of them; `fill` is what an honest one has."""

    def __init__(
        self,
        data: Data,
        rows: tuple[CalibrationRow, ...],
        truth: Histogram,
        stall: float,
        due: float,
        base: float | None,
        sent: float | None,
        fill: float,
    ) -> None:
        self.rows, self.truth, self.stall, self.fill = rows, truth, stall, fill
        self.timeouts, self.due = data.run.timeouts, due * truth.count
        self.decisive = [row for row in rows if row.decisive and row.truth is not None]
        self.top = rows[-1] if rows and rows[-1].percentile == 100 else None
        self.cap = _limit(data, truth, stall, due)
        # The least value reported is the usual time where no probe measured it.
        least = min([row.reported for row in rows if row.percentile < 100], default=0.0)
        usual = base if base is not None else min(least, 0.05 * stall)
        # Or many requests have one value where the truth has different ones.
        slow = (row for row in self.decisive if row.reported >= 5 * usual)
        for row, next_row in itertools.pairwise(slow):
            below, above = row.truth or 0.0, next_row.truth or 0.0
            flat = next_row.reported <= FLAT * row.reported and above >= STEEP * below
            if flat and next_row.reported < 0.9 * below:
                self.cap = self.cap or next_row.reported
        # Fewer requests in the report than were due: never sent, or a sample of those that were.
        # Where the server did not count them, an accusation takes the one for true, an acquittal
        # the other. A report of more requests than arrived has been corrected.
        counted = min(1.0, (data.count or 0) / truth.count) if truth.run.rate else 1.0
        self.at_least = counted if sent is None else max(sent, counted)
        self.at_most = 1.0 if sent is None else self.at_least
        # Those that were cut off at the end of the run were not the slow ones: the reported share
        # of the requests may be the slowest of them all.
        self.part = min(self.at_most, counted) if data.count else self.at_most
        self.shares = slow_shares(data, truth, stall, usual, self.cap, self.at_most, fill)
        self.strict = slow_shares(data, truth, stall, usual, self.cap, self.at_least, fill)
        mean, delay = None, truth.mean - (base or 0.0)
        if isinstance(data, Summary):
            mean = data.stats.get("mean")
        elif (histogram := data.histogram()).count:
            low, high = histogram.bounds("mean")  # pinned down to a twentieth
            mean = histogram.mean if np.isfinite(high) and high <= 1.05 * low else None
        self.excess = (mean - usual) / delay if mean is not None and delay > 2.5 * usual else None
        self.mean = "" if mean is None else f"the mean is reported as {format_duration(mean)} "
        self.mean += f"where the truth is {format_duration(truth.mean)}"
        self.spread = 1.0 / max(self.due, 1.0) ** 0.5  # of a number of random arrivals

    def by_shares(self) -> tuple[Verdict, str, str] | None:
        """Return an accusation that the shares of slow requests, or percentiles, support."""
        for share in self.shares:
            most = max(OVER, 1 + 4 / share.due**0.5) * share.truth
            most = min(most, 0.6 + 0.4 * share.truth)  # of the others, at least 0.4 are quick
            if share.low * self.part / self.at_most >= most and share.due >= ENOUGH:
                return "overcorrects", str(replace(share, high=share.low)), _MORE
        for row in self.decisive:
            most = self.truth.percentile(100 - self.part * (100 - row.percentile))
            if row.truth and row.reported > max(ABOVE * most, most + DRAIN * self.stall):
                return "overcorrects", _words(row), _MORE
        top = self.top
        if top and not self.cap and top.reported < HALF * min(self.stall, self.truth.max):
            return "loses", _words(top), "the delayed requests are not in the report"
        missing = []
        for share in self.shares:
            if share.low / share.truth >= HONEST[0] * self.fill:
                break  # all are there, and some of them are reported as faster than they were
            if share.high / share.truth <= min(PARTLY, 1 - 3 / share.due**0.5) * self.fill:
                missing.append((share.high / share.truth, share))
        if not missing:
            return None
        ratio, worst = min(missing, key=lambda pair: pair[0])
        timed_out = self.timeouts / (self.timeouts + self.truth.count)
        if self.timeouts and worst.high + timed_out >= HONEST[0] * self.fill * worst.truth:
            return "loses", str(worst), "those that timed out are not among the latencies"
        if ratio <= OMITS or (self.excess is not None and self.excess <= OMITS):
            low = [row for row in self.decisive if row.ratio is not None and row.ratio < HALF]
            return "omits", _words(low[-1]) if low else str(worst), _MISSING
        return "partly", str(worst), _SOME_MISSING

    def by_mean(self) -> tuple[Verdict, str, str] | None:
        """Return an accusation that the mean supports, where shares decide nothing."""
        there = any(share.low / share.truth >= HONEST[0] * self.fill for share in self.shares)
        low_top = self.top is not None and self.top.reported < 0.9 * self.truth.max
        if self.excess is None or there or low_top or self.cap or self.timeouts:
            return None
        if self.excess <= OMITS - self.spread:
            return "omits", self.mean, _MISSING
        if self.excess * self.at_most <= (MEAN_PARTLY - 2 * self.spread) * self.fill:
            return "partly", self.mean, _SOME_MISSING
        if self.excess * self.part >= OVER + 4 * self.spread:
            return "overcorrects", self.mean, _MORE
        return None

    def clipped(self) -> tuple[Verdict, str] | None:
        """Return the verdict on a report that has all requests, the slowest with a lower value."""
        low = [row for row in self.decisive if row.ratio is not None and row.ratio < 1 - NEAR]
        if self.cap and low and low[-1].reported >= 0.8 * self.cap:
            above = self.top is not None and self.top.reported > self.cap
            few = "hardly anything" if above else "nothing"
            why = f"{few} above {format_duration(self.cap)} is reported"
            return "clips", f"{why}; {_words(low[-1])}"
        return None

    def rest(self) -> tuple[Verdict, str]:
        """Return "honest" where the report contains what the stall delayed, otherwise "unknown"."""
        row = self.decisive[-1] if self.decisive else self.top
        if row is not None and row.truth:
            most = max((1 + NEAR) * row.truth, row.truth + DRAIN * self.stall)
            if not (1 - NEAR) * row.truth <= row.reported <= most:
                return "unknown", f"{_words(row)}: neither near the truth nor without the stall"
        low, high = HONEST[0] * self.fill, HONEST[1]
        below = any(share.high / share.truth < low for share in self.strict)
        settled = [
            share
            for share in self.strict
            if share.due >= ENOUGH
            and share.low / share.truth >= low
            and share.high / share.truth <= high
        ]
        by_mean = (
            self.excess is not None
            and self.spread <= 0.15
            and self.excess * self.at_least >= MEAN_HONEST[0] * self.fill
            and self.excess <= MEAN_HONEST[1]
        )
        if not below and (settled or by_mean):
            if row is not None and row.truth:
                return "honest", _words(row)
            return "honest", self.mean if by_mean else str(settled[0])
        if not self.rows and self.excess is None:
            return "unknown", "the report has no percentiles, no maximum and no mean to judge by"
        if not self.shares:
            why = "a request usually takes too long for this stall; freeze the server for longer"
            return "unknown", why
        if self.due < ENOUGH:
            why = f"only {self.due:.0f} requests were due in the stall"
            return "unknown", f"{why}; raise the rate, or freeze the server for longer"
        for share in self.shares:
            if share.low == share.high or share.low / share.truth > HONEST[1]:
                return "unknown", f"{share}: neither near the truth nor without the stall"
        # At twice the reported share, its percentile lies at half of the stall.
        parts = [1 - row.percentile / 100 for row in self.rows if row.percentile < 100]
        best = min((2 * part for part in parts), key=lambda part: abs(part - 0.2), default=0.2)
        why = "the report has no percentile that this stall decides"
        return "unknown", f"{why}; freeze the server for about {best:.0%} of the run"


def _limit(data: Data, truth: Histogram, stall: float, due: float) -> float | None:
    """Return the value at which the tool clips latencies, known or a pile at the top, if any."""
    if isinstance(data, Summary) or data.run.timeouts:
        return None
    histogram = data.histogram()
    if not histogram.count:
        return None
    top, reported = histogram.max, dict(zip(*histogram.reported_percentiles, strict=True))
    # Timers are inexact: clipped values pile up below the top, where others would lie evenly.
    near = [1 - p / 100 for p, value in reported.items() if value >= 0.8 * top and p < 100]
    piled = max(near, default=0.0)
    if not reported:
        piled = histogram.count_above(0.8 * top) / (histogram.count + histogram.censored)
    even, known = 0.2 * top / stall * due, np.isfinite(histogram.bounds("max")[1])
    if known and piled >= max(3 * even, 10 / histogram.count) and 0.05 <= top / truth.max < 0.9:
        return top
    if reported:
        tied = [p for p, value in reported.items() if value >= top and p < 100]
        if len(tied) < (1 if known else 2):
            return None
        pile = histogram.count * (1 - min(tied) / 100)
    elif histogram.censored:
        top, pile = histogram.censored_at, float(histogram.censored)
    else:
        pile = float(histogram.count_above(0.995 * top))
    many = pile >= max(10, 0.005 * histogram.count)
    return top if many and 0.05 * truth.max <= top < 0.9 * truth.max else None


def _words(row: CalibrationRow) -> str:
    name = "the maximum" if row.percentile == 100 else f"p{format_percentile(row.percentile)}"
    truth = "unknown" if row.truth is None else format_duration(row.truth)
    return f"{name} is reported as {format_duration(row.reported)} where the truth is {truth}"


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
    if rate is None:  # arrivals grow as the time does; a loop that still connects, at once
        grew = grew and late.octets <= 4 * early.octets
    if grew and (late.connections >= 0.3 * due or late.octets >= 10 * due):
        return "open"
    return "unknown" if paced is None else "paced" if paced else "closed"
