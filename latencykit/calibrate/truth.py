"""What a stall does to the requests of a schedule: the truth that a report is held against."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from latencykit.errors import UsageError
from latencykit.histogram import Histogram
from latencykit.run import Run

__all__ = ["Stall", "scheduled_truth"]

MOST_REQUESTS = 1_000_000


@dataclass(frozen=True)
class Stall:
    """When the server stood still, in seconds from the run's begin, and how much of it.

    Attributes
    ----------
    start, end : float
    share : float
        Part of the requests that it holds up: 1 for the whole server, 1/4 for one of four processes.
    """

    start: float
    end: float
    share: float = 1.0

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.end - self.start

    def held(self, duration: float) -> float:
        """Return the part of a run's requests that were due in it."""
        return self.share * max(0.0, min(self.end, duration) - max(self.start, 0.0)) / duration


def scheduled_truth(
    stall: Stall, duration: float, *, rate: float | None = None, count: int | None = None, base: float = 0.0
) -> Histogram:
    """Return the response times of requests at a constant rate, those due in the stall waiting for its end.

    A request due at t in a stall that ends at e takes e − t and the usual time; the others take the usual time.
    What the backlog adds after the thaw is left out: the truth is a floor, and a small one with a fast server. By
    it, ``Q(q) = (e − a) − (1 − q)·T`` above the quiet part (a: begin of the stall, T: length of the run).

    Parameters
    ----------
    stall : Stall
    duration : float
        Length of the run in seconds.
    rate : float, optional
        Requests per second; without it `count` of them, or 10,000, are spread over the run.
    count : int, optional
    base : float
        The usual time, ns.

    Returns
    -------
    Histogram
        In ns.

    Examples
    --------
    >>> h = scheduled_truth(Stall(7.0, 13.0), 20.0, rate=200, base=1.4e6)
    >>> [round(value / 1e6) for value in h.percentile([50, 75, 90, 99])]
    [1, 1002, 4003, 5805]
    """
    if duration <= 0:
        raise UsageError("a run must be longer than nothing")
    wanted = count if rate is None else round(rate * duration)
    size = max(1, min(MOST_REQUESTS, wanted or 10_000))
    due = np.arange(size) * (duration / size)
    waits = (due >= stall.start) & (due < stall.end)
    if stall.share < 1:  # every n-th of them, evenly
        number = np.cumsum(waits)
        waits &= np.floor(number * stall.share) > np.floor((number - 1) * stall.share)
    response = base + np.where(waits, (stall.end - due) * 1e9, 0.0)
    run = Run(tool="the schedule", loop="open", measure="response", corrected="schedule", duration=duration, rate=rate)
    return Histogram.of(np.rint(response).astype(np.int64), run=run)
