"""From which percentile on a curve rests on a few events: what its log, or its samples, know of time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latencykit.histogram import Histogram
from latencykit.log import HistogramLog
from latencykit.plot.style import plain
from latencykit.samples import Samples

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["dashes", "resting"]

_FEW = 4
"""More series are told apart by nothing finer than their curves."""


def resting(series: Mapping[str, Any], counted: Mapping[str, Any]) -> dict[str, tuple[float, str]]:
    """Return label → percentile from which a curve rests on a few events, and what these are.

    Parameters
    ----------
    series : mapping of str to rung
    counted : mapping of str to Histogram
        The same, counted.
    """
    found: dict[str, tuple[float, str]] = {}
    for label, rung in series.items() if len(series) <= _FEW else ():
        whole = counted.get(label)
        if isinstance(rung, Samples | HistogramLog) and isinstance(whole, Histogram) and whole.count:
            at, words = rung.evidence(whole).solid_up_to()
            found |= {label: (at, words)} if words else {}
    return found


def dashes(rests: Mapping[str, tuple[float, str]]) -> str:
    """Return what the dashes of a chart mean, or nothing where there are none.

    Examples
    --------
    >>> dashes({"a": (99.0, "1 stall"), "b": (99.9, "2 events")})
    'dashed: rests on 1 stall, 2 events'
    """
    words = dict.fromkeys(plain(what) for _, what in rests.values() if what)
    return f"dashed: rests on {', '.join(words)}" if words else ""
