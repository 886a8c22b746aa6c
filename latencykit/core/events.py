"""Events beside a run: what a log of another process says happened, and when."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latencykit._arrays import Value
from latencykit._records import record
from latencykit._typing import Floats
from latencykit.errors import InvalidArgumentError

Clock = Literal["epoch", "local", "relative"]


@record(eq=False)
class Events(Value):
    """Times at which something happened: garbage collections, jobs, restarts.

    Attributes
    ----------
    name : str
        The source, as charts and tables show it.
    kind : str
        ``jvm-gc``, ``go-gctrace``, ``hiccup``, ``journal``, ``kubernetes`` or ``times``.
    start, end : ndarray of float64, shape (n,)
        Seconds on `clock`, ascending by start; equal for events without a length.
    label : ndarray of str, shape (n,)
        What each of them is.
    clock : {"epoch", "local", "relative"}
        Seconds since 1970 in UTC; the same in a zone that the source does not state; or seconds
        since the process that wrote the source began.
    offset : float or None
        Seconds by which a user moved the clock, None where the source's own times are taken.
    notes : tuple of str

    Examples
    --------
    >>> gc = Events("gc.log", "jvm-gc", start=[2.0, 39.0], end=[2.4, 39.3], label=["Full", "Full"])
    >>> len(gc), gc.between(10, 60).start.tolist()
    (2, [39.0])
    """

    name: str
    kind: str
    start: Floats
    end: Floats
    label: NDArray[np.object_]
    clock: Clock = "relative"
    offset: float | None = None
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        start, end = np.asarray(self.start, np.float64), np.asarray(self.end, np.float64)
        label = np.asarray(self.label, object)
        if not (start.shape == end.shape == label.shape and start.ndim == 1):
            raise InvalidArgumentError("start, end and label of events must be of one length")
        if not (np.isfinite(start).all() and np.isfinite(end).all()):
            raise InvalidArgumentError("times of events must be finite; drop such rows")
        if (end < start).any():
            raise InvalidArgumentError("an event ends before it starts; are the columns exchanged?")
        order = np.argsort(start, kind="stable")
        for name, column in (("start", start), ("end", end), ("label", label)):
            object.__setattr__(self, name, column[order])
        super().__post_init__()

    def __len__(self) -> int:
        return int(self.start.size)

    def select(self, rows: ArrayLike) -> Events:
        """Return some of the events: a boolean mask or positions."""
        chosen = np.asarray(rows)
        columns = (self.start[chosen], self.end[chosen], self.label[chosen])
        return replace(self, **dict(zip(("start", "end", "label"), columns, strict=True)))

    def between(self, begin: float, end: float) -> Events:
        """Return the events under way in [begin, end], seconds on their clock."""
        return self.select((self.end >= begin) & (self.start <= end))

    def shifted(self, seconds: float) -> Events:
        """Return the same events on a clock that is ahead by `seconds`."""
        return replace(self, start=self.start + seconds, end=self.end + seconds)

    def __repr__(self) -> str:
        return f"Events({self.name!r}, {self.kind}, {len(self):,} events)"
