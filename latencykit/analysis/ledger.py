"""One ledger of evidence: what each observation says of the explanations of a run.

That the load generator waited for a server that had stopped is one explanation among several
(`RIVALS`). An observation that is ten times as likely under it as under a rival adds one to the
odds against that rival: odds of independent observations multiply, so their decimal logarithms add
up, over tests and over stalls. The load generator is accused only if no rival remains.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from latencykit._records import record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from latencykit._typing import Floats, Ints

RIVALS = {
    "recorded": "a stall that was recorded in full",
    "isolated": "slow requests that delayed no others",
    "paused": "traffic that paused for a reason of its own",
    "ejected": "a node that was taken out of service",
    "refused": "requests that failed and are not in the file",
    "clock": "a clock that was set forward",
}
"""What else may explain a run in which a load generator seems to have waited."""


@record()
class LedgerRules:
    """When the ledger decides; chosen so that at most 1 % of each honest world is accused."""

    # decimal logarithm of the odds against each rival, from which on none remains
    min_odds: float = 1.8
    # that a single observation may add: none is surer than its model
    max_odds: float = 6.0
    # from which on an observation speaks for an explanation
    mentioned_odds: float = 0.7
    # with fewer missing no load generator is accused
    min_missing_requests: float = 5.0


LEDGER = LedgerRules()


@record()
class Evidence:
    """One observation: one line of a diagnosis."""

    test: str
    statistic: float  # decimal logarithm of the odds against the rival that it excludes least
    threshold: float
    finding: str  # what the test found, in a sentence
    odds: tuple[tuple[str, float], ...] = ()  # by rival; none for a mere property of the run
    missing: float = 0.0  # requests
    honest: bool = False  # what the stalls delayed is recorded
    marks: tuple[str, ...] = ()  # properties of the run that follow from it
    connections: int = 0  # of a closed loop, as it shows them; 0: it does not

    @property
    def speaks_for(self) -> bool:
        """It speaks for a load generator that waited."""
        return max((odds for _, odds in self.odds), default=0.0) >= LEDGER.mentioned_odds

    @property
    def speaks_against(self) -> bool:
        """It speaks for one of the rivals."""
        least = min((odds for _, odds in self.odds), default=0.0)
        return self.honest or least <= -LEDGER.mentioned_odds


def evidence(
    test: str, finding: str, odds: dict[str, float], *, missing: float = 0.0, honest: bool = False,
    marks: Iterable[str] = (), connections: int = 0,
) -> Evidence:  # fmt: skip
    """Return an observation whose odds are bounded."""
    most = LEDGER.max_odds
    bounded = tuple((rival, float(np.clip(value, -most, most))) for rival, value in odds.items())
    statistic = min((value for _, value in bounded), default=0.0)
    return Evidence(
        test, statistic, LEDGER.min_odds, finding, bounded, missing, honest, tuple(marks),
        connections,
    )  # fmt: skip


@record()
class Hypothesis:
    """An explanation other than omission, and what each test says of it.

    Attributes
    ----------
    name, text : str
    odds : float
        Decimal logarithm of the odds of omission against it.
    remains : bool
        It is not excluded.
    speaks_for, speaks_against : tuple of str
        Names of tests.
    """

    name: str
    text: str
    odds: float
    remains: bool
    speaks_for: tuple[str, ...]
    speaks_against: tuple[str, ...]


@record()
class Ledger:
    """All observations of a run, and the rivals that they are to exclude."""

    entries: tuple[Evidence, ...]
    rivals: tuple[str, ...]

    @cached_property
    def odds(self) -> dict[str, float]:
        """Decimal logarithm of the odds of a loop that waited against each rival."""
        total = dict.fromkeys(self.rivals, 0.0)
        for entry in self.entries:
            for rival, value in entry.odds:
                if rival in total:
                    total[rival] += value
        return total

    @property
    def remaining(self) -> tuple[str, ...]:
        """The rivals that are not excluded, the most likely first."""
        left = [rival for rival, odds in self.odds.items() if odds < LEDGER.min_odds]
        return tuple(sorted(left, key=lambda rival: self.odds[rival]))

    @property
    def hypotheses(self) -> tuple[Hypothesis, ...]:
        """All rivals, the most likely first, with what speaks for and against each."""
        least = LEDGER.mentioned_odds
        found = []
        for rival, odds in sorted(self.odds.items(), key=lambda item: item[1]):
            by = [(entry.test, dict(entry.odds).get(rival, 0.0)) for entry in self.entries]
            honest = [entry.test for entry in self.entries if entry.honest and rival == "recorded"]
            found.append(
                Hypothesis(
                    rival, RIVALS[rival], odds, rival in self.remaining,
                    (*(test for test, value in by if value <= -least), *honest),
                    tuple(test for test, value in by if value >= least),
                )
            )  # fmt: skip
        return tuple(found)

    @property
    def missing(self) -> float:
        """Requests that were due and are missing."""
        return max((entry.missing for entry in self.entries), default=0.0)

    @property
    def accuses(self) -> bool:
        """Only a load generator that waited explains the run."""
        return not self.remaining and self.missing >= LEDGER.min_missing_requests

    @property
    def suspects(self) -> bool:
        """Something speaks for a load generator that waited."""
        return any(entry.speaks_for and entry.missing for entry in self.entries)

    @property
    def honest(self) -> bool:
        """Some observation shows that what the stalls delayed is recorded."""
        return any(entry.honest for entry in self.entries)

    @property
    def connections(self) -> int:
        """Connections of a closed loop, by the first observation that shows them, else 0."""
        return next((entry.connections for entry in self.entries if entry.connections), 0)

    def marked(self, mark: str) -> bool:
        """Return whether some observation shows a property of the run."""
        return any(mark in entry.marks for entry in self.entries)


# ------------------------------------------------------------
# Whether the slowest requests belong to the tail of all others.


@record()
class TailRules:
    """How the largest values are compared with the others; chosen on broad services, no freeze."""

    # of all values: above a larger part lies no tail
    max_share: float = 0.1
    # times as many values lie above the one from which the exponent is measured
    span: float = 5.0
    # above a value that is compared with: fewer do not show a tail
    min_values: float = 8.0
    # standard errors by which the exponent of a tail may be overestimated
    deviations: float = 1.5
    # a tail may be as heavy, or is taken for no steeper
    min_exponent: float = 0.5
    max_exponent: float = 6.0
    # times the largest ones: beyond that far from the body a tail may become heavier (Pareto 1.5)
    far: float = 20.0
    far_exponent: float = 1.5
    # next to the largest, whose spread gives the exponent (Hill, 1975)
    hill_values: float = 40.0
    # the largest values count as independent, up to that many
    max_independent: int = 3


TAIL = TailRules()


def tail_odds(least: float, number: int, values: Floats, counts: Floats | Ints) -> float:
    """Return the odds, as a decimal logarithm, against a common tail of the largest and the others.

    Of m values above x in a tail of exponent a, each exceeds y with probability (y / x)^-a, and k
    of them in C(m, k) ways. The exponent is that of the values next below x.

    Parameters
    ----------
    least : float
        The least of the largest values, y.
    number : int
        How many there are from there on, k.
    values, counts : ndarray
        Upper bounds of the others, ascending, and how many each is of.
    """
    above = number + np.concatenate((np.cumsum(counts[::-1])[::-1][1:], [0.0]))
    total = float(counts.sum()) + number
    kept = (above >= max(TAIL.min_values, number)) & (above <= TAIL.max_share * total)
    kept &= (values < least) & (values > 0)
    # from the first value above which span times as many lie, in ascending values
    base = np.searchsorted(-above, -TAIL.span * above, "right") - 1
    kept &= (base >= 0) & (values[base] > 0)
    if not kept.any():
        return 0.0
    reached, x, base = above[kept], values[kept], base[kept]
    distance = np.maximum(np.log(x / values[base]), 1e-9)
    exponent = np.log(above[base] / reached) / distance
    exponent = exponent * np.maximum(1 - TAIL.deviations / np.sqrt(reached), 0.0)
    far = reached > TAIL.far * number
    most = np.where(far, TAIL.far_exponent, TAIL.max_exponent)
    exponent = np.clip(exponent, TAIL.min_exponent, most)
    k = min(number, TAIL.max_independent)
    ways = sum(np.log10((reached - i) / (i + 1)) for i in range(k))
    far_off = float((k * exponent * np.log10(least / x) - ways).max())
    # The same from the largest of the others on, with the exponent of the values next to it.
    near = above < number + min(TAIL.hill_values, TAIL.max_share * total)
    size, start = float(counts[near].sum()), values[near][:1]
    logs = float(counts[near] @ np.log(values[near] / start)) if size >= TAIL.min_values else 0.0
    if not logs > 0 or least <= values[-1]:
        return far_off
    hill = min((size - 1) / logs, TAIL.max_exponent)
    return max(far_off, float(k * hill * np.log10(least / values[-1])))
