"""A run as sends and replies: what the tests of samples look at."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from latencykit.samples import OUTCOMES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from latencykit.samples import Samples

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["Trace", "hulls"]

_SLOW_GAPS = 5.0  # of the mean gap between sends: no request is called slow below that,
_SLOW_TIMES = 5.0  # nor below so many times the median
_CATCH_UP = 1.0  # of a stall: so long after it sends may be crowded
_QUIET = 0.1  # of the run: less of it tells no usual rate


@dataclass(frozen=True)
class Trace:
    """Requests in the order of the moments that their latency counts from.

    Attributes
    ----------
    due : ndarray of float64, shape (n,)
        That moment (the send, or the intended start where the samples count from it), seconds from the first one.
    end : ndarray of float64, shape (n,)
        The reply, seconds.
    good : ndarray of bool, shape (n,)
        Which requests were answered; the others failed, which is no sign of a server at work.
    """

    due: Floats
    end: Floats
    good: NDArray[np.bool_]

    @classmethod
    def of(cls, samples: Samples) -> Trace:
        """Take all requests that were sent, failed ones too."""
        assert samples.start is not None
        sent = np.ones(len(samples), np.bool_) if samples.outcome is None else samples.outcome != OUTCOMES.index("dropped")
        good = samples.good[sent]
        counts_from = samples.intended if samples.run.measure == "response" and samples.intended is not None else samples.start
        due, end = counts_from[sent], (samples.start + samples.duration)[sent]
        order = np.argsort(due, kind="stable")
        origin = due[order[0]] if order.size else 0
        return cls((due[order] - origin) / 1e9, (np.maximum(end, due)[order] - origin) / 1e9, good[order])

    @cached_property
    def took(self) -> Floats:
        """Latency of each request, seconds."""
        return self.end - self.due

    @cached_property
    def usual(self) -> float:
        """Median latency, seconds."""
        return float(np.median(self.took)) if self.took.size else 0.0

    @cached_property
    def span(self) -> float:
        """Seconds from the first to the last send."""
        return float(self.due[-1]) if self.due.size else 0.0

    @cached_property
    def slow_from(self) -> float:
        """Seconds above which a request is slow enough to have kept others from being sent.

        Five mean gaps between sends or five times the median, whichever is more; more again where such requests would
        cover more than half of the run.
        """
        if self.due.size < 2 or not self.span:
            return float("inf")
        limit = max(_SLOW_GAPS * self.span / self.due.size, _SLOW_TIMES * self.usual)
        slow = np.sort(self.took[self.took > limit])
        while slow.size and _covered(*hulls(self.due[self.took > limit], self.end[self.took > limit])) > self.span / 2:
            limit = float(slow[slow.size // 2])
            slow = slow[slow > limit]
        return float(limit)

    @cached_property
    def grain(self) -> float:
        """Seconds that the clock counts in, or less: the shortest time between any two sends or replies."""
        steps = np.diff(np.sort(np.concatenate((self.due, self.end))))
        return float(steps[steps > 0].min(initial=self.span))

    @cached_property
    def slow(self) -> NDArray[np.bool_]:
        """Which requests are slow."""
        return self.took > self.slow_from

    @cached_property
    def windows(self) -> tuple[Floats, Floats]:
        """Begin and end of the times in which slow requests were under way, overlapping ones merged, seconds."""
        return hulls(self.due[self.slow], self.end[self.slow])

    @cached_property
    def rate(self) -> float:
        """Sends per second outside those times, and outside what may be the catching up after them."""
        begin, end = self.windows
        for reach in (_CATCH_UP * (end - begin), np.zeros(end.size)):
            left, right = hulls(begin, np.minimum(end + reach, self.span))
            quiet = self.span - _covered(left, right)
            outside = self.due.size - int(self.sends_within(left, right).sum())
            if quiet > _QUIET * self.span and outside >= 20:
                return outside / quiet
        return self.due.size / max(self.span, 1e-9)

    def sends_within(self, begin: Floats, end: Floats) -> Ints:
        """Return how many sends lie in each half-open window [begin, end)."""
        found: Ints = np.searchsorted(self.due, end, "left") - np.searchsorted(self.due, begin, "left")
        return found

    @cached_property
    def ends(self) -> Floats:
        """All replies in order, seconds."""
        return np.asarray(self.end[self.by_end])

    @cached_property
    def answers(self) -> Floats:
        """Good replies in order, seconds."""
        return np.sort(self.end[self.good])

    @cached_property
    def by_end(self) -> Ints:
        """Requests in the order of their replies."""
        return np.argsort(self.end, kind="stable")

    def ending_within(self, begin: float, end: float) -> Ints:
        """Return the requests that were answered in (begin, end], in the order of their replies."""
        first, last = np.searchsorted(self.ends, (begin, end), "right").tolist()
        return self.by_end[first:last]

    @cached_property
    def idle(self) -> Floats:
        """Seconds from each reply to the send that follows the request's own, ascending; slow requests left out."""
        rest = self.due[1:] - self.end[:-1]
        return np.sort(rest[~self.slow[:-1]])

    def under_way(self, at: Floats) -> Ints:
        """Return how many requests were under way right after each moment."""
        found: Ints = np.searchsorted(self.due, at, "right") - np.searchsorted(self.ends, at, "right")
        return found

    def share_above(self, level: int) -> float:
        """Return the part of the run in which more than so many requests were under way."""
        return float(self._time_at[level + 1 :].sum()) / max(self.span, 1e-9)

    @cached_property
    def _time_at(self) -> Floats:
        """Seconds during which 0, 1, 2 … requests were under way."""
        at = np.concatenate((self.due, self.end))
        step = np.concatenate((np.ones(self.due.size, np.int64), np.full(self.end.size, -1)))
        order = np.lexsort((step, at))  # a reply and a send of one moment overlap nowhere
        level = np.cumsum(step[order])[:-1]
        return np.asarray(np.bincount(np.maximum(level, 0), np.diff(at[order])), np.float64)


def hulls(begin: Floats, end: Floats) -> tuple[Floats, Floats]:
    """Merge windows that overlap: begins and ends of what they cover, ascending.

    Examples
    --------
    >>> [side.tolist() for side in hulls(np.array([5.0, 0.0, 1.0]), np.array([6.0, 2.0, 3.0]))]
    [[0.0, 5.0], [3.0, 6.0]]
    """
    if not begin.size:
        return np.zeros(0), np.zeros(0)
    order = np.argsort(begin, kind="stable")
    left, right = begin[order], np.maximum.accumulate(end[order])
    first = np.concatenate(([True], left[1:] > right[:-1]))
    return left[first], right[np.concatenate((first[1:], [True]))]


def _covered(begin: Floats, end: Floats) -> float:
    return float((end - begin).sum())
