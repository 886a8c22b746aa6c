"""Whether the slowest requests, or silences, belong to the tail of all others."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from latencykit._records import record

if TYPE_CHECKING:
    from latencykit._typing import Floats, Ints


@record()
class TailRules:
    """Whether the slowest belong to the tail of the others; chosen on services without a freeze."""

    # of all values: above a larger part lies no tail
    max_share: float = 0.1
    # times as many values lie above the one from which the exponent is measured
    span: float = 5.0
    # above a value that is compared with: fewer do not show a tail
    min_values: float = 8.0
    # standard errors by which the exponent of a tail may be overestimated
    deviations: float = 1.5
    # logarithms between two values: less is rounding
    min_distance: float = 1e-9
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
    # silences or requests that show a tail
    min_silences: int = 20
    min_requests: int = 50
    # of the longest silence: slow requests of that length, more than its connections, are a mode,
    mode_share: float = 1 / 3
    # and more than that many slow ones per silence a tail, unless it is that many times the next
    max_slow: float = 6.0
    clear_ratio: float = 50.0
    # decades that remain then
    mode_decades: float = 0.5
    # longest silences among which the largest ratio is looked for
    silences: int = 8
    # other requests as long as a silence, where there are none
    others: float = 0.5
    # decades: that slow requests of several connections overlap, where time is not known to a reply
    max_overlap: float = 3.0
    # decades from which on the order of the latencies need not be shuffled
    clear_decades: float = 3.0
    # shuffles of each connection's latencies, of at most that many requests around the silence
    shuffles: int = 60
    shuffled_requests: int = 10_000
    # of the shuffles: a silence as long in more of them is chance (Gumbel's law below)
    max_rank: float = 0.02
    min_scale: float = 0.02
    # values below that share of the maximum are the body of a distribution
    body_share: float = 0.25


TAIL = TailRules()


def beyond_tail(least: float, number: int, values: Floats, counts: Floats) -> float:
    """As `tail_decades`; a constant service has no tail, and may have the heaviest from there."""
    beyond = tail_decades(least, number, values, counts)
    if beyond != 0.0:
        return beyond
    if not values[-1]:  # all others are below what the source resolves
        return math.inf
    above = float(counts[values > values[-1] / 2].sum()) + number
    k = min(number, TAIL.max_independent)
    ways = sum(math.log10((above - i) / (i + 1)) for i in range(k))
    return k * TAIL.far_exponent * (math.log10(least) - math.log10(values[-1])) - ways


def tail_decades(least: float, number: int, values: Floats, counts: Floats | Ints) -> float:
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
    distance = np.maximum(np.log(x) - np.log(values[base]), TAIL.min_distance)
    exponent = np.log(above[base] / reached) / distance
    exponent = exponent * np.maximum(1 - TAIL.deviations / np.sqrt(reached), 0.0)
    far = reached > TAIL.far * number
    most = np.where(far, TAIL.far_exponent, TAIL.max_exponent)
    exponent = np.clip(exponent, TAIL.min_exponent, most)
    k = min(number, TAIL.max_independent)
    ways = sum(np.log10((reached - i) / (i + 1)) for i in range(k))
    far_off = float((k * exponent * (np.log10(least) - np.log10(x)) - ways).max())
    # The same from the largest of the others on, with the exponent of the values next to it.
    near = above < number + min(TAIL.hill_values, TAIL.max_share * total)
    size, log = float(counts[near].sum()), np.log(values[near])
    logs = float(counts[near] @ (log - log[:1])) if size >= TAIL.min_values else 0.0
    if not logs > 0 or least <= values[-1]:
        return far_off
    hill = min((size - 1) / logs, TAIL.max_exponent)
    return max(far_off, k * hill * (math.log10(least) - math.log10(values[-1])))
