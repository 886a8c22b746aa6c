"""What `lk.diagnose` gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from latencykit.histogram import STANDARD_PERCENTILES
from latencykit.rooms import html_of
from latencykit.summary import Summary
from latencykit.units import NANOSECONDS, format_percentile, format_value

if TYPE_CHECKING:
    import pandas as pd

    from latencykit.diagnose.evidence import Evidence
    from latencykit.diagnose.stalls import Stalls
    from latencykit.histogram import Histogram

__all__ = ["Diagnosis", "Verdict"]

Verdict = Literal["omits", "clean", "unknown"]
_SHOWN = (50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99)


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Whether a measurement left requests out because it waited for replies, and what it would have shown.

    Attributes
    ----------
    verdict : {"omits", "clean", "unknown"}
        ``clean`` needs a stall that was seen and is fully there; without one there is nothing to tell by.
    summary : str
        The verdict and its reason in a sentence.
    ask : str
        What would decide an ``unknown``, or the way out of an ``omits``.
    findings : tuple of str
        Names of what was found beside: ``closed-loop``, ``already-corrected``, ``over-corrected``, ``catch-up``,
        ``lost-to-timeouts``, ``failed-in-stalls``, ``fewer-than-due``, ``dropped``, ``unfinished``, ``clipped``,
        ``clock-step``, ``immaterial``, ``ladder``, ``nothing-to-omit``.
    evidence : tuple of Evidence
        The tests, their p-values adjusted for how many they are.
    expected_interval : float or None
        Between two requests of one connection, ns.
    raw : Histogram or Summary
        As it was measured.
    corrected : Histogram or None
        With the omitted requests; only where omission was found or is suspected.
    method : {"retime", "backfill"} or None
        How.
    rate, duration : float or None
        Requests per second that were to come, and length of the run in seconds, as used by the tests.
    timed : Samples, HistogramLog or None
        The series over time, where it has one.
    """

    verdict: Verdict
    summary: str
    ask: str
    findings: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    expected_interval: float | None
    raw: Histogram | Summary
    corrected: Histogram | None
    method: str | None
    rate: float | None
    duration: float | None
    found: Stalls = field(repr=False)
    timed: Any = field(default=None, repr=False)

    @cached_property
    def stalls(self) -> pd.DataFrame:
        """The stalls: ``start``, ``end``, ``duration`` (seconds), ``worst`` (ns), ``missing``, ``share``."""
        return self.found.to_frame()

    @property
    def run(self) -> Any:
        """What the source says of the measurement."""
        return self.raw.run

    @cached_property
    def table(self) -> list[tuple[float, float, float | None]]:
        """Percentile, raw and corrected value, as far as the number of requests supports it."""
        if isinstance(self.raw, Summary):
            return [(p, float(v), None) for p, v in self.raw.percentiles.items()]
        if not self.raw.count + self.raw.censored:
            return []
        limit = self.raw.sample_limit()
        wanted = [p for p in STANDARD_PERCENTILES if p <= limit or p in (99.0, 99.9, 100.0)]
        before = np.asarray(self.raw.percentile(wanted)).tolist()
        after: list[float | None] = [None] * len(wanted)
        if self.corrected is not None:
            after = np.asarray(self.corrected.percentile(wanted)).tolist()
        return list(zip(wanted, before, after, strict=True))

    @property
    def longest_stall(self) -> float:
        """Seconds of the longest stall, or of the longest request where no time is known."""
        if len(self.found):
            return float(self.found.worst.max()) / 1e9
        top = self.raw.stats.get("max", 0.0) if isinstance(self.raw, Summary) else self.raw.max
        return float(top) / 1e9 if np.isfinite(top) and self.raw.unit in NANOSECONDS else 0.0

    def _repr_html_(self) -> str:
        return html_of(self)

    def __repr__(self) -> str:
        lines = [f"{self.verdict}: {self.summary}"]
        lines += [f"  {one.test}: {one.finding}" for one in self.evidence]
        for p, before, after in self.table:
            fixed = "" if after is None else f"  would have been {format_value(after, self.raw.unit)}"
            lines.append(f"  p{format_percentile(p):<7} {format_value(before, self.raw.unit):>9}{fixed}")
        return "\n".join([*lines, *([f"  {self.ask}"] if self.ask else [])])
