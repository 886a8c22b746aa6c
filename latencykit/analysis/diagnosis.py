"""The result of `diagnose`: codes and numbers, which `views.diagnosis` puts into words."""

from __future__ import annotations

from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from latencykit._arrays import Value
from latencykit._records import record
from latencykit.analysis.explanations import MODEL, Explained
from latencykit.analysis.stall_records import StallRecord
from latencykit.analysis.stalls import Stalls
from latencykit.core.histogram import STANDARD_PERCENTILES, Histogram
from latencykit.core.histogram_log import HistogramLog
from latencykit.core.run import Run
from latencykit.core.samples import Samples
from latencykit.core.summary import Summary

if TYPE_CHECKING:
    import pandas as pd


Verdict = Literal["omits", "clean", "no stall", "service times", "unknown"]
Method = Literal["backfill", "retime"]

_ALWAYS = (99.0, 99.9, 100.0)
"""Percentiles of every table, even of few requests."""


@record()
class Bound:
    """The most that waiting for replies may have hidden."""

    stall: float  # seconds of the longest that the run leaves room for
    others: int  # requests that may not have been sent, at most
    mean: tuple[float, float]  # as recorded, and at most, ns
    percentiles: tuple[tuple[float, float, float], ...]  # supported ones, as recorded, at most; ns
    material: bool  # the mean or one of these may be higher by more than a tenth


@record()
class Evidence:
    """What one explanation makes of the decisive stall: one line of a diagnosis."""

    test: str  # the explanation
    statistic: float  # decades by which the record is less likely than what it predicts
    threshold: float  # from which on it explains the record worse than none does
    finding: str  # the observations that speak against it


@record(eq=False)
class Diagnosis(Value):
    """The verdict on a measurement, its evidence, and the corrected distribution.

    Attributes
    ----------
    verdict : {"omits", "clean", "no stall", "service times", "unknown"}
        ``clean`` requires a stall whose delayed requests are all recorded; ``no stall`` that no
        stall that the run leaves room for would move a percentile; ``service times`` a loop that
        waits for replies, without a schedule to compare with.
    sure : bool or None
        The probability is .99 or more; None for ``unknown``.
    findings : tuple of str
        Properties of the run, as codes: ``contradicts-itself``, ``overload``,
        ``already-corrected``, ``over-corrected``, ``lost-to-timeouts``, ``failed-in-stalls``,
        ``fewer-than-due``, ``dropped``, ``unfinished``, ``clipped``.
    explained : Explained or None
        The probability of each explanation; None where no stall shows.
    left : StallRecord or None
        What each stall left behind.
    bound : Bound or None
        The most that may have been omitted; None where the longest request is unknown.
    raw : Histogram or Summary
        The values as measured.
    corrected : Histogram or None
        With the omitted requests; only if omission was detected or is suspected.
    expected_interval : float or None
        Time between two requests of one connection, ns.
    rate, connections, duration : float, int or None
        Requests per second that were due, connections, and seconds of the run, as used.
    longest : float
        Seconds of the longest request, timeouts included.
    due : float
        Requests that a stated rate implies; 0 without one.
    backlog : float
        Seconds of backlog that an overload left; 0 without one.
    connections_known : bool
        Their number is stated, or seen; else those that waited are taken for all.
    corrected_by : str or None
        ``us``, ``tool`` or ``schedule`` if omission is taken care of.
    extent_known : bool
        The number of requests and the longest are known.
    detected_stalls : Stalls
    timed : Samples, HistogramLog or None
        The series over time, if there is one.
    """

    verdict: Verdict
    sure: bool | None
    findings: tuple[str, ...]
    explained: Explained | None
    left: StallRecord | None
    bound: Bound | None
    raw: Histogram | Summary
    corrected: Histogram | None
    expected_interval: float | None
    rate: float | None
    connections: int | None
    duration: float | None
    longest: float
    due: float
    backlog: float
    corrected_by: str | None
    extent_known: bool
    detected_stalls: Stalls = field(repr=False)
    timed: Samples | HistogramLog | None = field(default=None, repr=False)
    connections_known: bool = True

    @property
    def method(self) -> Method | None:
        """``retime`` if the source has intended starts, else ``backfill``: by the stalls."""
        if self.corrected is None:
            return None
        return "retime" if self.corrected.run.corrected == "schedule" else "backfill"

    @property
    def explanations(self) -> tuple[tuple[str, float], ...]:
        """Names of the explanations and their probabilities, the most likely first."""
        if self.explained is None:
            return ()
        pairs = self.explained.probability.items()
        return tuple(sorted(pairs, key=lambda pair: -pair[1]))

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """What each explanation makes of the stall that tells most."""
        from latencykit.views.diagnosis import terms_text

        if self.explained is None:
            return ()
        return tuple(
            Evidence(name, sum(terms.values()), -MODEL.none_decades, terms_text(name, terms))
            for name, terms in self.explained.terms.items()
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """The fact, its consequence, and how sure that is; a sentence each."""
        from latencykit.views.diagnosis import sentences_of

        return sentences_of(self)

    @property
    def summary(self) -> str:
        """The fact about the run."""
        return self.sentences[0]

    @property
    def advice(self) -> str:
        """What would decide an ``unknown``, or what to do about an ``omits``."""
        from latencykit.views.diagnosis import advice_of

        return advice_of(self)

    @cached_property
    def stalls(self) -> pd.DataFrame:
        """The stalls: start, end, duration (s), worst (ns), missing (requests), share."""
        return self.detected_stalls.to_frame()

    @property
    def run(self) -> Run:
        """The source's own description of the measurement."""
        return self.raw.run

    @property
    def table(self) -> pd.DataFrame:
        """One row per percentile, up to the highest supported one: raw and corrected value."""
        import pandas as pd

        frame = pd.DataFrame(self.rows, columns=["percentile", "raw", "corrected"], dtype=float)
        return frame.set_index("percentile")

    @cached_property
    def rows(self) -> list[tuple[float, float, float | None]]:
        """Percentile, raw and corrected value, up to the highest supported percentile."""
        if isinstance(self.raw, Summary):
            return [(p, float(v), None) for p, v in self.raw.reported_percentiles.items()]
        if not self.raw.count + self.raw.censored:
            return []
        limit = self.raw.sample_limit()
        chosen = [p for p in STANDARD_PERCENTILES if p <= limit or p in _ALWAYS]
        before = np.asarray(self.raw.percentile(chosen)).tolist()
        after: list[float | None] = [None] * len(chosen)
        if self.corrected is not None:
            after = np.asarray(self.corrected.percentile(chosen)).tolist()
        return list(zip(chosen, before, after, strict=True))

    @property
    def pause(self) -> float:
        """Seconds of the longest time with nothing recorded; 0 without one."""
        begin, end = self.detected_stalls.pause or (0.0, 0.0)
        return end - begin

    @property
    def most(self) -> dict[float, tuple[float, float]]:
        """Of ``service times``: what users who arrive on their own see, as recorded and at most."""
        if self.verdict != "service times" or self.bound is None or self.corrected_by:
            return {}
        if "lost-to-timeouts" in self.findings or self.pause > self.longest:
            return {}  # what is not recorded may have taken longer
        return {p: (low, high) for p, low, high in self.bound.percentiles}

    def _repr_html_(self) -> str:
        from latencykit.views.diagnosis import html_of

        return html_of(self)

    def __repr__(self) -> str:
        from latencykit.views.diagnosis import text_of

        return text_of(self)
