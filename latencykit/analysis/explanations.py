"""What may have happened in a stall: a table of explanations, each of which predicts its record.

==============  ========  ==================  ==============  ========  ===========================
explanation     sent      missing afterwards  slow all of it  in part   besides
==============  ========  ==================  ==============  ========  ===========================
recorded        all due   none                a fifth         the rest  evenly spread, or cut off
isolated        all due   none                any             few       or a closed loop, by chance
waits           ≤ 1½ C    all                 C, ≤ half       few
catches up      ≤ 1½ C    none                C, ≤ half       few
paused          ≤ 1½ C    any                 Poisson(L)      few
node taken out  any       any                 any             few       soon in the stall
clock step      ≤ 1½ C    any                 Poisson(L)      few
==============  ========  ==================  ==============  ========  ===========================

C: connections that waited; L: requests usually in flight. A term is the deviance of what the record
shows from what is predicted, in decades: 0 where it is as expected. Terms add up over observations
and stalls, priors say how common each explanation is in that kind of source, and what fits none of
them is none of them.
"""

from __future__ import annotations

import math

import numpy as np

from latencykit._records import record
from latencykit._typing import Floats
from latencykit.analysis.stall_records import NEAR, RECORD, StallRecord, poisson_decades
from latencykit.analysis.stalls import TINY
from latencykit.core.probability import poisson_at_least

EXPLANATIONS = {
    "recorded": "a stall that was recorded in full",
    "isolated": "slow requests that delayed no others",
    "waits": "a load generator that waited for replies",
    "catches up": "a load generator that sent late and timed from then",
    "paused": "traffic that paused for another reason",
    "node taken out": "a node that was taken out of service",
    "clock step": "a clock that was set forward",
    "none of these": "something else",
}
"""Explanations of a stall, and how a sentence names them."""

TITLES = {
    "omits": "requests were omitted",
    "clean": "nothing was omitted",
    "no stall": "no stall that could hide requests",
    "service times": "service times",
    "unknown": "undecided",
}
"""Verdicts as headings have them."""

OMISSION = ("waits", "catches up")
COMPLETE = ("recorded", "isolated")
_SENT, _END = "requests sent", "end of the run"
"""Observations: whether others were sent on while requests were slow, or the run ended."""

PRIORS = {
    # a load generator that is known to wait for replies
    "waiting generator": (0.01, 1, 1, 0.3, 0.003, 0, 0.001, 1),
    # its tool is known, or a rate, an interval or a number of connections is stated
    "generator": (1, 1, 1, 0.3, 0.003, 0.001, 0.001, 1),
    # known to send on a schedule
    "open-loop generator": (1, 1, 0.01, 0.01, 0.003, 0.001, 0.001, 1),
    # and to time each request from it
    "scheduled generator": (1, 1, 1e-4, 1e-4, 0.003, 0.001, 0.001, 1),
    # requests or intervals of unknown origin: a load generator as often as a server
    "unlabelled": (1, 1, 1, 0.3, 0.03, 0.03, 0.001, 1),
    # a server's own record of its users
    "access log": (1, 1, 1, 0.3, 0.3, 0.3, 0.001, 1),
}
"""How common each explanation is, by kind of source; tripled or divided by 3, no textbook case and
no freeze of the benchmark is judged otherwise."""


@record()
class ModelRules:
    """What the explanations predict; chosen with ``tests.benchmarks.omission``, seeds from 0 on."""

    # of those due after its first part: delayed for a part, if all were recorded
    recorded_part: tuple[float, float] = (0.6, 1.5)
    # of those due, and of those slow throughout: slow for a part by chance
    part_of_due: float = 0.02
    part_of_waiting: float = 0.15
    # the same where buckets, not starts, say which were slow for a part
    part_of_waiting_untimed: float = 0.6
    # of those due: at most as many are connections that waited
    max_waiting: float = 0.5
    # of those due in its first part: they waited, so that more connections came to wait later
    first_waiting: float = 0.8
    # of those due: slow requests that delayed no others
    isolated_part: float = 0.25
    # of what was not sent: with less missing in the end, a burst made up for it
    caught_up: float = 0.4
    # decades by which that tells loops that catch up from those that do not
    burst_decades: float = 3.0
    # probability that independent users look scheduled, capped or at full speed
    users_scheduled: float = 0.02
    # and that a load generator does not
    generator_unscheduled: float = 0.3
    # decades: a tail is not spread evenly up to the longest
    even_decades: float = 2.0
    # decades: none of the explanations
    none_decades: float = 2.5
    # decades by which a tail is likelier to have left just that length than it or a longer one
    density_decades: float = 0.6
    # decades that each further stall adds, at most
    further_decades: float = 1.0


MODEL = ModelRules()


@record()
class Explained:
    """The posterior probability of each explanation, and what the decisive stall says of it."""

    probability: dict[str, float]
    terms: dict[str, dict[str, float]]  # decades by explanation and observation, 0 or less
    decisive: int  # of the stalls

    @property
    def omission(self) -> float:
        """Probability that requests were omitted, or sent late and timed from then."""
        return sum(self.probability[name] for name in OMISSION)

    @property
    def chance(self) -> float:
        """Probability that nothing stopped: the longest silence is what slow requests leave."""
        return self.probability["isolated"] if _SENT not in self.terms["isolated"] else 0.0


def explain_stalls(stalls: StallRecord, source: str, connections: int | None) -> Explained:
    """Weigh the explanations: of the stall that tells most, and a little of each further one."""
    terms, chance = _predictions(stalls, source, connections)
    likelihood = {name: np.sum(list(parts.values()), axis=0) for name, parts in terms.items()}
    omission = np.maximum(likelihood["waits"], likelihood["catches up"])
    others = np.maximum(likelihood["recorded"], likelihood["isolated"])
    # Of stalls that tell as much, the longest.
    k = int(np.lexsort((stalls.length, np.round(omission - others, 10)))[-1])
    total = {}
    for name, values in likelihood.items():
        # One stall whose requests are all there shows that the generator does not wait.
        most = RECORD.max_decades if name == "recorded" else MODEL.further_decades
        further = np.clip(np.delete(values - omission, k), -MODEL.further_decades, most)
        if name not in ("recorded", "isolated"):  # no likelier by repetition
            further = np.minimum(further, 0.0)
        total[name] = float(values[k] + further.sum())
    # One tail, whatever the number of stalls.
    name, by_chance = max(chance.items(), key=lambda item: float(item[1][k]))
    total["isolated"] = max(total["isolated"], float(by_chance[k]))
    if by_chance[k] > likelihood["isolated"][k]:
        terms["isolated"] = {name: by_chance}
    total["none of these"] = -MODEL.none_decades + (stalls.stated[4] if stalls.stated else 0.0)
    with np.errstate(divide="ignore"):
        logs = np.log10(PRIORS[source]) + np.array([total[name] for name in EXPLANATIONS])
    weight = 10.0 ** (logs - logs.max())
    share = dict(zip(EXPLANATIONS, (weight / weight.sum()).tolist(), strict=True))
    at_k = {
        name: {test: float(values[k]) for test, values in parts.items()}
        for name, parts in terms.items()
    }
    return Explained(share, at_k, k)


def _predictions(
    s: StallRecord, source: str, connections: int | None
) -> tuple[dict[str, dict[str, Floats]], dict[str, Floats]]:
    """Terms by explanation and observation, and those of a run in which nothing stopped."""
    rules, zero = MODEL, np.zeros(s.length.shape)

    def at_most(counts: Floats, most: Floats | float) -> Floats:
        return -poisson_decades(counts, np.minimum(counts, most))

    alone_sent = 1 + np.minimum(s.in_flight, s.throughout) + 2 * s.noise + s.slack
    # Connections that are due one after the other wait from then on, if all of the first part did.
    there = np.maximum(s.sent, s.due - s.missing)
    turns = s.throughout >= rules.first_waiting * RECORD.throughout * s.due
    turns &= (s.partial <= there) & (there <= rules.max_waiting * s.due) & (s.ended == 0)
    waiting = np.where(turns, s.throughout + s.partial, s.throughout)
    none_sent = at_most(s.sent, RECORD.sent_each * waiting + alone_sent)
    by_chance = rules.part_of_waiting if s.timed else rules.part_of_waiting_untimed
    chance_part = (rules.part_of_due if s.timed else 0.0) * s.due + by_chance * s.throughout + 0.5
    few_partly = at_most(s.partial, chance_part + waiting - s.throughout)
    # Those that waited were in flight, or due in that part of the stall.
    early = RECORD.throughout if s.timed else 1 - NEAR.near_share
    early_ones = np.minimum(s.in_flight + early * s.due, rules.max_waiting * s.due)
    few_partly += at_most(s.throughout, early_ones + 1)
    back = np.abs(s.missing) <= rules.caught_up * np.maximum(s.due - s.sent, 1.0)
    never = np.where(back & s.timed, -rules.burst_decades, 0.0)
    later = np.where(~back & s.timed & ~s.ended, -rules.burst_decades, 0.0)  # or the run was over
    generator = zero + (math.log10(rules.generator_unscheduled) if s.scheduled is False else 0.0)
    users = zero + (math.log10(rules.users_scheduled) if s.scheduled else 0.0)
    usual, least = max(s.in_flight, TINY), 10**-RECORD.max_decades
    flight = poisson_at_least(np.rint(s.throughout), usual) / max(-math.expm1(-usual), TINY)
    in_flight = np.log10(np.maximum(flight, least))
    # The last that were sent happened to be slow, or the run ended as a stall began.
    last = (s.throughout + s.blur) / s.count
    alone, ended = s.throughout < RECORD.one_alone, np.where(s.ended, 0.0, -np.inf)
    cut_off = ended + np.log10(np.clip(np.where(alone, 0.0, last), least, 1.0))
    slow_anyway = np.maximum(s.last, np.where(alone, last, 0.0))
    last_slow = ended + np.log10(np.clip(slow_anyway, least, 1.0))
    low, high = rules.recorded_part
    sent_later = np.maximum(s.due - RECORD.throughout * s.rate * s.length, 0.0)
    partial = np.clip(s.partial, low * sent_later, high * sent_later)
    all_partly = -poisson_decades(np.clip(partial, s.partial, s.partial + s.hidden), partial)
    uneven = np.where(s.is_uniform, 0.0, -rules.even_decades)
    evenly = np.where(s.is_uniform, -rules.even_decades, 0.0)
    soon = np.log10((np.maximum(s.sent, s.throughout) + 1) / np.maximum(s.due, 1))

    isolated_part = at_most(s.partial + s.throughout, rules.isolated_part * s.due)
    went_on = -np.minimum(s.lull, RECORD.max_decades)
    if not s.timed:
        went_on = zero - s.alike
        if not connections:  # nothing tells slow requests from connections that waited
            went_on = np.maximum(went_on + isolated_part, 0.0) - isolated_part
    if not s.sends_known or source == "waiting generator":
        went_on = zero - np.inf
    by_replies = {_SENT: none_sent, "slow in part": few_partly, "schedule": generator}
    recorded = -np.minimum(s.lack, RECORD.max_decades)
    was_cut = cut_off > recorded + all_partly + uneven
    terms = {
        "recorded": {
            "requests missing": np.where(was_cut, 0.0, recorded),
            "slow in part": np.where(was_cut, 0.0, all_partly),
            "evenness": np.where(was_cut, 0.0, uneven),
            _END: np.where(was_cut, cut_off, 0.0),
        },
        "isolated": {
            _SENT: went_on, "slow in part": isolated_part, "evenness": evenly,
        },
        "waits": by_replies | {"requests missing": never},
        "catches up": by_replies | {"requests missing": later},
        "paused": {
            _SENT: none_sent, "slow in part": few_partly, "in flight": in_flight,
            "schedule": users,
        },
        "node taken out": {
            "slow in part": few_partly, "schedule": users, "sent before": np.maximum(soon, -1.0),
        },
        "clock step": {_SENT: none_sent, "slow in part": few_partly, "in flight": in_flight},
    }  # fmt: skip
    chance = evenly - np.maximum(s.tail - rules.density_decades, 0.0)
    if source == "open-loop generator":
        chance = evenly - RECORD.max_decades
    if s.stated:
        for parts, value in zip(terms.values(), s.stated, strict=False):
            parts["requests due"] = zero + value
        fits = dict(zip(EXPLANATIONS, s.stated, strict=False))
        chance = chance + max(fits[name] for name in ("recorded", *OMISSION))
    return terms, {"the longest silence": chance, _END: last_slow}
