"""`explain`: what slow requests have in common, and what happened when they were slow.

A stall makes hundreds of requests slow at once, so single requests are not independent evidence:
the unit is the block of time. Blocks are as long as slow requests depend on each other: the
shortest width at which the dispersion of their counts (variance over mean) has nearly reached its
plateau.

Each block with slow requests casts one vote, split among the values of an attribute as its slow
requests are. If the attribute does not matter, the expected vote for a value is its share of all
requests sent around the same moments, so neither drift nor a changing mix makes a value stand out.
At worst all slow requests of a block have one fate; then votes are Bernoulli trials, and the upper
tail of the binomial distribution bounds the probability of as many votes (Hoeffding, 1956, Ann.
Math. Statist. 27: unequal probabilities have the smaller tail). Small blocks may hide large ones,
so the test is repeated among the blocks with the most slow requests, and adjusted for that.

Probabilities are adjusted for all values of all attributes (Bonferroni; each attribute has the same
part of the error rate, so that one with thousands of values spends only its own). The value that
explains most is accepted, its requests are set aside, and what is left is tested again: a value
that goes with slow requests only because it goes with another one does not stand out any more.
Values of exactly the same requests cannot be distinguished: they are one cause. Where none stands
out, most blocks may still have slow requests of a single value, another one each time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from latencykit import units
from latencykit._arrays import Value, as_positions
from latencykit._records import record
from latencykit._text import brief_list, format_items
from latencykit._typing import Flags, Floats, Ints, PathOrFrame
from latencykit.analysis.coincidence import Coincidence, coincide
from latencykit.analysis.given import as_data
from latencykit.analysis.slow_times import threshold_name
from latencykit.core.columns import Words, coded, select
from latencykit.core.events import Events
from latencykit.core.histogram import Histogram
from latencykit.core.histogram_log import HistogramLog
from latencykit.core.probability import share_interval
from latencykit.core.repr_html import listing_html
from latencykit.core.samples import OUTCOMES, Samples
from latencykit.errors import DataNotAvailableError, InvalidArgumentError
from latencykit.io import registry
from latencykit.io.events import read_events
from latencykit.units import Moment

if TYPE_CHECKING:
    import pandas as pd


@record()
class ExplainRules:
    """When a value goes with slow requests; chosen on the worlds of `tests.benchmarks.truth`."""

    # percentiles that are scanned for one: stalls rule the last, a slow host shows at the first
    scanned_percentiles: tuple[str, ...] = ("p99", "p95", "p90")
    # probability of any false finding
    level: float = 0.05
    # blocks with slow requests of a value: fewer are a coincidence
    min_blocks: int = 5
    # of the slow requests, beyond the value's share of all; and their ratio: smaller ones do not
    # matter, however sure they are
    min_excess: float = 0.01
    min_lift: float = 1.1
    # lift that a value may still have, stated of the highest few where nothing was found
    open_lift: float = 2.0
    most_open: int = 3
    # requests around a moment, which show the mix of that moment
    neighbours: int = 40
    # that a run is cut into, at least: this many show how their counts differ
    min_run_blocks: int = 20
    # of the highest dispersion: blocks as long are nearly independent
    plateau_share: float = 0.7
    # sizes of blocks among which votes are counted
    max_sets: int = 5
    # a value that has a stretch of time to itself: of the requests of that time, and of the value;
    # its lift, and parts of twenty of that stretch with slow requests
    own_share: float = 0.95
    own_lift: float = 1.5
    own_parts: int = 5
    own_least: float = 0.02
    # causes that are looked for, one after the other
    max_causes: int = 6
    # of a block's slow requests, and probability by chance: they have one value
    turn_share: float = 0.8
    turn_chance: float = 0.01
    # periods in which requests are compared with the rest of their time
    periods: int = 100
    # values per attribute in the table, and the share below which they are folded into the others
    max_values_shown: int = 12
    min_share_shown: float = 0.01


RULES = ExplainRules()
_COLUMNS = (
    "attribute", "value", "share", "share_above", "lift", "low", "high", "significant", "explains",
    "outcome",
)  # fmt: skip


@record(eq=False)
class Explanation(Value):
    """What slow requests have in common.

    Attributes
    ----------
    name : str
        Of the data.
    above : str
        What counts as slow, as given: ``p99``, ``200ms``.
    threshold : float
        Latency above which requests are slow, ns.
    attributes : DataFrame
        One row per value: `attribute`, `value`, `share` of all requests, `share_above` of the slow
        ones (both add up to one exactly within an attribute), `lift` (their ratio) with its 95 %
        interval `low` to `high`, `significant`, and `explains`: the part (0..1) by which the
        threshold would be lower if these requests were as fast as all others of their time. An
        `outcome`, such as a status or a flag of late replies, is never significant: slow requests
        have it because they are slow.
    coincidence : Coincidence or None
        What happened at the same time.
    findings, notes : tuple of str
    """

    name: str
    above: str
    threshold: float
    attributes: pd.DataFrame
    coincidence: Coincidence | None
    findings: tuple[str, ...]
    notes: tuple[str, ...]
    latency: Histogram | None = field(default=None, repr=False)
    without: Histogram | None = field(default=None, repr=False)

    @property
    def table(self) -> pd.DataFrame:
        """One row per value: `attributes`."""
        return self.attributes

    @property
    def suspects(self) -> pd.DataFrame:
        """The significant rows of `attributes`, those that explain most first."""
        rows = self.attributes[self.attributes["significant"]]
        return rows.sort_values("explains", ascending=False, kind="stable", ignore_index=True)

    def _repr_html_(self) -> str:
        rows = []
        for row in self.attributes.to_dict("records"):
            lift = f"{row['lift']:.3g} ({row['low']:.3g}–{row['high']:.3g})"
            shares = (f"{100 * row[name]:.3g} %" for name in ("share", "share_above"))
            mark = "yes" if row["significant"] else ""
            named = f"{row['attribute']}={row['value']}"
            rows.append((named, *shares, "" if np.isnan(row["low"]) else lift, mark))
        above = f"of those above {self.above}"
        header = ("", "of all requests", above, "lift (95 %)", "significant")
        title = f"Requests above {self.above} ({units.format_value(self.threshold, 'ns')})"
        return listing_html(title, header, rows, [*self.findings, *self.notes])

    def __repr__(self) -> str:
        limit = units.format_value(self.threshold, "ns")
        named = [f"{row.attribute}={row.value}" for row in self.suspects.itertuples()]
        return f"Explanation({', '.join(named) or 'no suspects'} above {self.above}, {limit})"


def explain(
    data: Samples | HistogramLog | PathOrFrame,
    above: str | float | None = None,
    by: str | Sequence[str] | None = None,
    between: tuple[Moment, Moment] | None = None,
    events: Iterable[Events | str | Path] | Events | str | Path = (),
    *,
    unit: str | None = None,
) -> Explanation:
    """Find what slow requests have in common, and what happened when they were slow.

    Every attribute and value is compared by the block of time, since a stall makes many requests
    slow at once, and the probabilities are adjusted for the number of comparisons. A value that is
    `significant` goes with slow requests; such data cannot show that it causes them.

    Parameters
    ----------
    data : Samples or HistogramLog, path or frame
        Requests with columns such as endpoint, host or status. A log has no single requests: only
        events can be compared with it.
    above : str or float, optional
        Requests above it are slow: a percentile, or a latency (``"200ms"``, a number in ns). By
        default p99, p95 and p90 are scanned, and the highest of them is taken at which something
        stands out; p99 where nothing does.
    by : str or list of str, optional
        The columns to look at; all without it.
    between : (start, end), optional
        Explain the requests with start ≤ t < end, as in `Samples.between`, against the others: the
        percentile that makes a request slow is that of the others, unless all of the span exceed
        it, and the mix is compared with theirs.
    events : Events, str, Path, or several, optional
        Events beside the run, such as the log of a garbage collector, or the files that hold them.
    unit : str, optional
        Of a path or frame whose numbers state none, as for `lk.read`.

    Raises
    ------
    DataNotAvailableError
        For data without single requests and without times.
    InvalidArgumentError
        For a column that is not there, and for a threshold that no request or every one exceeds.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> host = rng.choice(["a", "b", "c", "d"], 20_000)
    >>> slow = (host == "c") & (rng.random(20_000) < 0.05)
    >>> took = rng.lognormal(0, 0.3, 20_000) * np.where(slow, 9, 1)
    >>> s = Samples(start=np.arange(20_000) * 10, duration=took, unit="ms", host=host)
    >>> explain(s).suspects[["attribute", "value"]].values.tolist()
    [['host', 'c']]
    """
    data = cast("Samples | HistogramLog", as_data(data, "explain", unit))
    if not isinstance(data, Samples | HistogramLog):
        # The output of the same tool that has single requests, or what has them in any case.
        stem = (data.run.format or "").partition("-")[0]
        hint = "the server's access log has them, or a table with one request per row"
        for entry in registry.all_formats() if stem else ():
            if entry.level == "samples" and entry.name.partition("-")[0] == stem:
                hint = f"{entry.title} has them: {entry.example}"
                break
        raise DataNotAvailableError(
            f"{data.run.source or 'the data'}: without single requests and times there is nothing "
            f"to compare; {hint}"
        )
    several = [events] if isinstance(events, str | Path | Events) else events
    read = tuple(read_events(item) if isinstance(item, str | Path) else item for item in several)
    listed = [by] if isinstance(by, str) else by
    if not isinstance(data, Samples):
        log = data if between is None else data.between(*between)
        above = RULES.scanned_percentiles[0] if above is None else above
        result, none = coincide(log, read, above=above), _frame([])
        lacks = "the log has no single requests: only events can be compared with its stalls"
        incident = () if result.incident is None else (result.incident.text,)
        findings = [*incident, *result.findings, *_not_excluded(none, result), *_drifts(log)]
        return Explanation(
            log.run.source or "", threshold_name(above)[0], result.threshold, none, result,
            tuple(findings or [_nothing(result)]), (lacks, *result.notes),
        )  # fmt: skip
    if data.start is None and read:
        raise DataNotAvailableError(
            "these samples do not state when each request was sent, so that events cannot be "
            "compared with stalls; name the column with start="
        )
    inside = np.ones(len(data), np.bool_)
    if between is not None:
        first, last = (units.parse_moment(moment, data.epoch) for moment in between)
        inside = (data.offsets >= first) & (data.offsets < last)
    timed_out = np.zeros(len(data), np.bool_)
    if data.outcome is not None:
        timed_out = data.outcome == OUTCOMES.index("timeout")
    answered = data.good | timed_out
    kept = answered & inside
    if not kept.any():
        raise DataNotAvailableError("no request was answered: there is nothing to explain")
    notes = []
    if not answered.all():
        left_out = int((~answered & inside).sum())
        verb = "is" if left_out == 1 else "are"
        notes.append(f"{format_items(left_out, 'failed request')} {verb} left out")
    chosen, values = data.select(kept), data.values[kept]
    thresholds = _thresholds(data, above, kept, answered & ~inside)
    attributes = attributes_of(chosen, values, listed, notes)
    if not attributes:
        text = "no column has several values: there is nothing to compare"
        if listed is None and not len(data.columns):
            text = "the source has no further columns, such as endpoint, host or status"
        notes.append(text)
    looks = []
    for threshold in thresholds:
        marked = threshold.slow(values, timed_out[kept])
        world = _World.of(chosen, values, marked, len(thresholds), notes)
        looks.append(_Look(threshold, world, *_causes(world, attributes)))
    chief = next((look for look in looks if look.causes), looks[0])
    slow, limit = chief.world.slow, chief.threshold
    coincidence = None
    if data.start is not None:
        over_time = data if between is None else data.select(inside)
        coincidence = coincide(over_time, read, above=thresholds[0].given)
    frame = _frame(_rows(chief))
    top = np.zeros(slow.size, np.bool_)
    for cause in chief.causes:
        attribute, code = cause.values[0]
        top |= attribute.codes == code
    findings = _findings(frame, chief)
    if data.start is not None and not chief.causes:
        own = _own_times(chosen.offsets, chief, attributes)
        findings = own or findings
    known = {cause.keys[0] for cause in chief.causes}
    for look in looks[looks.index(chief) + 1 :]:
        fresh = [cause for cause in look.causes if cause.keys[0] not in known]
        known.update(cause.keys[0] for cause in fresh)
        if fresh:
            findings += _cause_sentences(_frame(_rows(look)), replace(look, causes=fresh))
    if between is not None:
        findings.insert(0, _span_sentence(values, data.values[answered & ~inside]))
    if coincidence is not None and coincidence.incident is not None:
        findings.insert(0, coincidence.incident.text)
    findings += () if coincidence is None else coincidence.findings
    findings += _not_excluded(frame[:0] if chief.causes else frame, coincidence)
    drifts = _drifts(data)
    findings += drifts
    if not findings:
        findings = [_nothing(coincidence)]
    every = Samples(duration=values, unit=data.unit)
    return Explanation(
        data.run.source or "", limit.name, limit.value, frame, coincidence,
        tuple(findings),
        tuple(dict.fromkeys((*notes, *(() if coincidence is None else coincidence.notes)))),
        every.histogram(),
        every.select(~top).histogram() if top.any() and not top.all() else None,
    )  # fmt: skip


@record()
class _Threshold:
    """A latency above which requests are slow."""

    given: str | float  # a percentile or a latency, as asked
    name: str
    percentile: float | None
    value: float  # ns

    def slow(self, values: Ints, timed_out: Flags) -> Flags:
        """Return which requests are slow; those that timed out are."""
        return (values > self.value) | timed_out


def _thresholds(
    data: Samples, above: str | float | None, kept: Flags, rest: Flags
) -> list[_Threshold]:
    """The threshold that is asked for, or those that are scanned, which some requests exceed."""
    values, name = data.values[kept], data.run.source or ""
    timed_out = ~data.good[kept]
    thresholds: list[_Threshold] = []
    for given in RULES.scanned_percentiles if above is None else (above,):
        text, level = threshold_name(given)
        if level is None:
            limits = [float(units.in_unit(given, "ns"))]
        else:
            limits = [_quantile(values, level)]
            if above is None and rest.any():  # of the others, unless all that are kept exceed it
                limits.insert(0, _quantile(data.values[rest], level))
        possible = [_Threshold(given, text, level, limit) for limit in limits]
        fits = [item for item in possible if 0 < item.slow(values, timed_out).sum() < values.size]
        thresholds += fits[:1]
    if not thresholds:
        every = bool(possible[-1].slow(values, timed_out).all())
        raise InvalidArgumentError(
            f"{name}{': ' if name else ''}{'every' if every else 'no'} request is slower than "
            f"{units.format_duration(limits[-1])}; choose another threshold than {text}"
        )
    return thresholds


@record(eq=False)
class _Look:
    """Slow requests above one threshold, their attributes, and what goes with them."""

    threshold: _Threshold
    world: _World
    causes: list[_Cause]
    attributes: list[Attribute]


def _span_sentence(inside: Ints, others: Ints) -> str:
    """What distinguishes the selected span from the rest of the run."""
    median = units.format_duration(_quantile(inside, 50))
    text = f"the span has {format_items(inside.size, 'request')}, p50 {median}"
    if not others.size:
        return text
    tail = _quantile(others, 99)
    return (
        f"{text}; {_percent(float((inside > tail).mean()))} of them exceed the p99 of the others, "
        f"{units.format_duration(tail)} (their p50 is "
        f"{units.format_duration(_quantile(others, 50))})"
    )


def _quantile(values: Ints, level: float) -> float:
    rank = max(int(np.ceil(level / 100 * values.size * (1 - 1e-12))) - 1, 0)
    return float(np.partition(values, rank)[rank])


# ------------------------------------------------------------
# Evidence: votes of blocks.


@record(eq=False)
class _World:
    """Requests near slow ones, in order of time, and the blocks that slow ones fall into."""

    values: Ints
    slow: Flags  # of all requests
    rows: Ints  # positions of those that share a neighbourhood with a slow one, in order of time
    near: Ints  # neighbourhood of each of `rows`
    late: Flags  # which of `rows` are slow
    block: Ints  # of each of `rows`
    period: Ints  # of all requests, for comparisons with the rest of their time
    seconds: float | None
    scanned: int  # thresholds that share the probability of a false finding

    @classmethod
    def of(
        cls, samples: Samples, values: Ints, slow: Flags, scanned: int, notes: list[str]
    ) -> _World:
        n = slow.size
        if samples.start is None:
            notes.append(
                "requests have no times: their order is taken for their order in time, and stalls "
                "cannot be compared with events"
            )
        when = np.arange(n, dtype=np.float64) if samples.start is None else samples.offsets
        order = np.argsort(when, kind="stable")
        ordered, moments = slow[order], when[order]
        span = float(moments[-1] - moments[0]) or 1.0
        since = moments - moments[0]
        # The shortest width at which the dispersion of slow requests' counts has nearly settled.
        share = float(ordered.mean())
        least = min(RULES.neighbours / n, 1 / RULES.min_run_blocks)
        number = max(int(1 / least), RULES.min_run_blocks)
        place = np.minimum(since / span * number, number - 1).astype(np.int64)
        counts = np.bincount(place, minlength=number).astype(np.float64)
        late = np.bincount(place, weights=ordered, minlength=number)
        widths, dispersions, sizes, merged = [], [], [], 1
        while number // merged >= RULES.min_run_blocks:
            cuts = as_positions(np.arange(0, number, merged))
            load, seen = np.add.reduceat(counts, cuts), np.add.reduceat(late, cuts)
            expected = (share * (1 - share) * load).sum()
            dispersions.append(float(((seen - share * load) ** 2).sum() / max(expected, 1e-9)))
            widths.append(span / number * merged)
            sizes.append(cuts.size)
            merged *= 2
        level = np.asarray(dispersions)
        sure = level * (1 - np.sqrt(2 / np.asarray(sizes)))
        width = widths[int(np.argmax(level >= RULES.plateau_share * sure.max()))]
        groups = -(-n // RULES.neighbours)
        group = np.arange(n) // RULES.neighbours
        with_slow = np.bincount(group, weights=ordered, minlength=groups) > 0
        rows = np.flatnonzero(with_slow[group])
        near = np.cumsum(with_slow)[group[rows]] - 1
        block = (since[rows] / width).astype(np.int64)
        period = np.minimum((when - moments[0]) / span * RULES.periods, RULES.periods - 1).astype(
            np.int64
        )
        return cls(
            values, slow, order[rows], near, ordered[rows], block, period,
            None if samples.start is None else width, scanned,
        )  # fmt: skip


@record(eq=False)
class _Cause:
    """A value that goes with slow requests, and others if exactly the same requests have them."""

    values: list[tuple[Attribute, int]]
    rows: Flags  # which of `_World.rows` have it

    @property
    def keys(self) -> list[tuple[str, str]]:
        """Attributes and values, as rows have them."""
        return [(attribute.name, attribute.values[code]) for attribute, code in self.values]


def _standing(
    world: _World, attribute: Attribute, codes: NDArray[np.int32], active: Flags, looks: int
) -> Floats:
    """Deviances of the values that stand out, else -1."""
    from scipy import special  # here: reports import this module, and most have no use for it

    at, every_late = np.flatnonzero(world.late & active), max(int(world.late.sum()), 1)
    standing = np.full(len(attribute.values), -1.0)
    every = np.bincount(codes[active], minlength=standing.size) / active.sum()
    slow = np.bincount(codes[at], minlength=standing.size) / every_late
    lifted = slow >= every * RULES.min_lift
    lifted &= slow - every * at.size / every_late >= RULES.min_excess
    if attribute.folded:
        lifted[-1] = False
    if not lifted.any():
        return standing
    # The others cannot stand out: they are one value, the last.
    values = int(lifted.sum()) + 1
    codes = np.where(lifted, np.cumsum(lifted) - 1, values - 1)[codes]
    # Blocks × values: votes that were cast and are due, and each block's slow requests.
    groups = int(world.near[-1]) + 1
    place = world.near[active] * values + codes[active]
    usual = np.bincount(place, minlength=groups * values).reshape(groups, values)
    total = np.maximum(usual.sum(axis=1), 1)
    distinct, starts = np.unique(world.block[at], return_index=True)  # blocks ascend in time
    blocks = distinct.size
    index = np.repeat(np.arange(blocks), as_positions(np.diff(np.append(starts, at.size))))
    size = np.bincount(index).astype(np.float64)
    votes = np.bincount(index * values + codes[at], minlength=blocks * values)
    # One step per neighbourhood and block, not per slow request.
    pairs, number = np.unique(index * groups + world.near[at], return_counts=True)
    which, group = np.divmod(pairs, groups)
    due = np.add.reduceat(
        usual[group] * (number / total[group])[:, None], np.flatnonzero(np.diff(which, prepend=-1))
    )
    order = np.argsort(-size, kind="stable")
    cast, due = ((side / size[:, None])[order] for side in (votes.reshape(blocks, values), due))
    backing, open_ = (cast > 0).sum(axis=0), (due > 0) & (due < 1)
    cast, due = (np.where(open_, side, 0.0) for side in (cast, due))
    sizes = [blocks]
    while sizes[-1] // 3 >= 2 * RULES.min_blocks and len(sizes) < RULES.max_sets:
        sizes.append(sizes[-1] // 3)
    p, deviance = np.ones(values), np.zeros(values)
    for some in sizes:
        trials = open_[:some].sum(axis=0).astype(np.float64)
        seen, expected = cast[:some].sum(axis=0), due[:some].sum(axis=0)
        chance = np.clip(expected / np.maximum(trials, 1), 1e-12, 1 - 1e-12)
        part = np.clip(seen / np.maximum(trials, 1), 0.0, 1.0)
        more = (seen > expected) & (trials > 0)
        # The regularized incomplete beta function continues the binomial tail between integers.
        tail = special.betainc(np.maximum(seen, 1e-9), trials - seen + 1, chance)
        p = np.where(more, np.minimum(p, tail * len(sizes)), p)
        # K · KL(share of votes ‖ expected share) orders what is too small for a float.
        far = trials * (special.rel_entr(part, chance) + special.rel_entr(1 - part, 1 - chance))
        deviance = np.where(more, np.maximum(deviance, far), deviance)
    adjusted = p * attribute.looks * looks * world.scanned
    sure = (backing >= RULES.min_blocks) & (adjusted <= RULES.level)
    standing[lifted] = np.where(sure, deviance, -1.0)[:-1]
    return standing


def _causes(world: _World, attributes: Sequence[Attribute]) -> tuple[list[_Cause], list[Attribute]]:
    """The values that stand out, each without the last; what restates the latency is an outcome."""
    tested = [attribute for attribute in attributes if not attribute.outcome]
    local = [attribute.codes[world.rows] for attribute in tested]
    accepted: list[_Cause] = []
    active = np.ones(world.rows.size, np.bool_)
    while tested and len(accepted) < RULES.max_causes and (world.late & active).any():
        highest, best = 0.0, None
        for attribute, codes in zip(tested, local, strict=True):
            deviance = _standing(world, attribute, codes, active, len(attributes))
            code = int(np.argmax(deviance))
            rows = codes == code
            if best is not None and np.array_equal(rows, best.rows):
                best.values.append((attribute, code))
            elif deviance[code] > highest:
                highest, best = deviance[code], _Cause([(attribute, code)], rows)
        if best is None:
            break
        for attribute, code in best.values:
            if not attribute.ranges and restates_latency(world.values, attribute.codes == code):
                outcome = replace(attribute, outcome=True)
                return _causes(world, [outcome if one is attribute else one for one in attributes])
        accepted.append(best)
        active &= ~best.rows
    return accepted, list(attributes)


# ------------------------------------------------------------
# Rows: shares, lift and what a value explains.

_GRID = 2.0**50  # shares are multiples of its inverse, so that they add up exactly in any order


def _whole_shares(counts: Floats) -> Floats:
    """Shares that add up to one exactly."""
    scaled = np.floor(counts / counts.sum() * _GRID)
    scaled[int(np.argmax(counts))] += _GRID - scaled.sum()
    return np.asarray(scaled / _GRID)


def _rows(look: _Look) -> list[dict[str, object]]:
    world, slow, threshold = look.world, look.world.slow, look.threshold
    level = threshold.percentile
    counter = _Counterfactual(
        world.values,
        world.period,
        level if level is not None else 100 * (1 - float(slow.mean())),
        threshold.value,
    )
    groups: list[list[dict[str, Any]]] = []
    for attribute in look.attributes:
        pairs = [pair for cause in look.causes for pair in cause.values]
        significant = {code for one, code in pairs if one is attribute}
        size = len(attribute.values)
        count = np.bincount(attribute.codes, minlength=size).astype(np.float64)
        late = np.bincount(attribute.codes[slow], minlength=size).astype(np.float64)
        most = np.maximum(count / count.sum(), late / late.sum())
        shown = [
            code
            for code in np.argsort(-most, kind="stable").tolist()
            if (most[code] >= RULES.min_share_shown or code in significant)
            and not (attribute.folded and code == size - 1)
        ]
        shown = [code for code in shown if code in significant] + [
            code for code in shown if code not in significant
        ][: RULES.max_values_shown]
        table = np.full(size, len(shown), np.int32)
        table[shown] = np.arange(len(shown))
        codes = table[attribute.codes]
        names = [attribute.values[code] for code in shown] + [OTHERS] * (len(shown) < size)
        counts = np.bincount(codes, minlength=len(names)).astype(np.float64)
        seen = np.bincount(codes[slow], minlength=len(names)).astype(np.float64)
        shares, aboves = _whole_shares(counts), _whole_shares(seen)
        low, high = _share_interval(world, codes, len(names), seen)
        own: list[dict[str, Any]] = []
        for k, (name, share) in enumerate(zip(names, shares.tolist(), strict=True)):
            own.append(
                {
                    "attribute": attribute.name, "value": name,
                    "share": share, "share_above": float(aboves[k]),
                    "lift": float(aboves[k] / share) if share else None,
                    "low": float(low[k] / share) if share else None,
                    "high": float(high[k] / share) if share else None,
                    "significant": k < len(shown) and shown[k] in significant,
                    "explains": None if attribute.outcome else counter.explains(codes == k),
                    "outcome": attribute.outcome,
                }
            )  # fmt: skip
        own.sort(key=lambda row: (not row["significant"], -(row["explains"] or 0.0)))
        groups.append(sorted(own, key=lambda row: bool(row["value"] == OTHERS)))
    groups.sort(
        key=lambda own: -max((row["explains"] or 0.0) + 10.0 * row["significant"] for row in own)
    )
    return [row for own in groups for row in own]


def _share_interval(
    world: _World, codes: NDArray[np.int32], size: int, seen: Floats
) -> tuple[Floats, Floats]:
    """95 % interval of each value's share of the slow requests, with blocks as clusters."""
    late = world.late
    _, index = np.unique(world.block[late], return_inverse=True)
    index = index.reshape(-1)
    blocks = int(index.max()) + 1
    total = seen.sum()
    part = seen / total
    cast = np.bincount(index * size + codes[world.rows[late]], minlength=blocks * size)
    counts = cast.reshape(blocks, size).astype(np.float64)
    residual = counts - counts.sum(axis=1)[:, None] * part
    variance = (residual**2).sum(axis=0) * blocks / max(blocks - 1, 1) / total**2
    # Clopper and Pearson's at as many independent requests as have the variance of the blocks.
    effective = part * (1 - part) / np.maximum(variance, 1e-300)
    effective = np.where(variance > 0, np.clip(effective, 1.0, total), min(blocks, total))
    ends = [share_interval(*pair) for pair in zip(part * effective, effective, strict=True)]
    low, high = np.array(ends).T
    return np.asarray(np.minimum(low, part)), np.asarray(np.maximum(high, part))


class _Counterfactual:
    """What the threshold would be if some requests were as fast as the others of their time."""

    def __init__(self, values: Ints, period: Ints, level: float, threshold: float) -> None:
        self._order = np.argsort(-values, kind="stable")
        self._values, self._period = values, period
        self._above, self._threshold = 1 - level / 100, threshold
        self._load = np.bincount(period, minlength=RULES.periods).astype(np.float64)

    def explains(self, rows: Flags) -> float | None:
        """Return the part of the threshold that these requests explain; None without others."""
        rest = self._load - np.bincount(self._period[rows], minlength=RULES.periods)
        # Each other request stands for those of its time, too.
        weight = np.where(rest > 0, self._load / np.maximum(rest, 1), 0.0)
        due = self._above * float((weight * rest).sum())
        if self._above * rest.sum() < 1:
            return None
        n = self._values.size
        most = min(n, int(4 * self._above * n) + 1000)
        while True:
            some = self._order[:most]
            above = np.cumsum(np.where(rows[some], 0.0, weight[self._period[some]]))
            if above[-1] > due * (1 + 1e-9) or most == n:
                break
            most = min(n, 4 * most)
        at = min(int(np.searchsorted(above, due * (1 + 1e-9), "right")), most - 1)
        return 1 - float(self._values[some[at]]) / self._threshold if self._threshold > 0 else None


def _frame(rows: list[dict[str, object]]) -> pd.DataFrame:
    import pandas as pd

    frame = pd.DataFrame(rows, columns=list(_COLUMNS))
    numbers = ("share", "share_above", "lift", "low", "high", "explains")
    kinds: dict[str, Any] = dict.fromkeys(numbers, np.float64)
    return frame.astype(kinds | {"significant": np.bool_, "outcome": np.bool_})


# ------------------------------------------------------------
# Sentences.


def _findings(frame: pd.DataFrame, look: _Look) -> list[str]:
    world, tested = look.world, sum(not attribute.outcome for attribute in look.attributes)
    what = f"above {look.threshold.name}"
    ends, every = [], np.ones(world.rows.size, np.bool_)
    for attribute in (one for one in look.attributes if one.outcome):
        codes = attribute.codes[world.rows]
        deviance = _standing(world, attribute, codes, every, len(look.attributes))
        code = int(np.argmax(deviance))
        if deviance[code] <= 0:
            continue
        rows_with = attribute.codes == code
        ends.append(
            f"{attribute.name}={attribute.values[code]} is an outcome of slow requests, not a "
            f"cause: {_percent(rows_with.mean())} of all requests, "
            f"{_percent(rows_with[world.slow].mean())} of those {what}"
        )
    if look.causes or not tested:
        return [*_cause_sentences(frame, look), *ends]
    blocks = np.unique(world.block[world.late]).size
    text = _one_at_a_time(look)
    if not text and blocks < 2 * RULES.min_blocks:
        text = (
            f"too little evidence: the slow requests fall into {format_items(blocks, 'block')} "
            "of time, and it takes about "
            f"{2 * RULES.min_blocks} to find what they have in common"
        )
    elif not text:
        others = "others of their time" if world.seconds is not None else "rows around them"
        names = [attribute.name for attribute in look.attributes if not attribute.outcome]
        where = f"value of {names[0]}" if tested == 1 else f"value of {tested} attributes"
        rest = f"none is more common among slow requests than among the {others}"
        text = f"no {where} stands out: {rest}"
    return [text, *ends]


def _one_at_a_time(look: _Look) -> str:
    """A sentence on values that are slow in turn, such as pods that pause: most blocks have one."""
    from scipy import special

    world, found = look.world, (RULES.min_blocks - 1, "")
    _, block = np.unique(world.block, return_inverse=True)
    for attribute in (one for one in look.attributes if not one.outcome and not one.ranges):
        name, values = attribute.name, len(attribute.values)
        place = block.reshape(-1) * values + attribute.codes[world.rows]
        usual, late = (
            np.bincount(place, weights, (block.max() + 1) * values).reshape(-1, values)
            for weights in (None, world.late)
        )
        slow, alike = late.sum(axis=1), late[:, : values - attribute.folded]
        most, value = alike.max(axis=1), alike.argmax(axis=1)
        several = slow > 1
        share = usual[np.arange(slow.size), value] / usual.sum(axis=1)
        chance = values * special.betainc(np.maximum(most, 1), slow - most + 1, share)
        alone = several & (most >= RULES.turn_share * slow) & (chance <= RULES.turn_chance)
        turns, total, different = alone.sum(), several.sum(), np.unique(value[alone]).size
        if turns > found[0] and 2 * turns >= total and different > 1:
            text = (
                f"slow requests mostly come from one {name} at a time: of {total} blocks of time "
                f"with several, {turns} have at least {_percent(RULES.turn_share)} from the same "
                f"{name}, {different} different ones in all, as if each paused by itself"
            )
            found = turns, text
    return found[1]


def _nothing(found: Coincidence | None) -> str:
    """What was compared, and that nothing goes with the slow requests."""
    if found is None:
        return "nothing was compared: the source states neither start times nor further columns"
    stalls, seen = found.stalls["duration"], "no stall, period"
    if len(stalls) == 1:
        seen = f"a stall of {units.format_duration(1e9 * float(stalls.max()))} shows, but no period"
    elif len(stalls):
        longest = units.format_duration(1e9 * float(stalls.max()))
        seen = f"{len(stalls)} stalls of up to {longest} show, but no period"
    return (
        f"{seen} or other pattern over time stands out; not excluded: what further columns would "
        "show, such as host or size"
    )


def _drifts(data: Samples | HistogramLog) -> list[str]:
    """The drift of the run, as `summary` states it."""
    timed = not isinstance(data, Samples) or data.start is not None
    jackknife = data.evidence().jackknife if timed else None
    found = [] if jackknife is None else [one for one in jackknife.drifts if one is not None]
    return [found[-1].text(data.unit)] if found else []


def _own_times(when: Floats, look: _Look, attributes: Sequence[Attribute]) -> list[str]:
    """Values that have a stretch of time to themselves, in which requests are slow: no causes."""
    slow, order = look.world.slow, np.argsort(when, kind="stable")
    texts = []
    for attribute in attributes:
        if attribute.outcome or attribute.ranges:
            continue
        codes, late = attribute.codes[order], slow[order]
        size = np.bincount(codes, minlength=len(attribute.values))
        hits = np.bincount(codes[late], minlength=size.size)
        lift = hits / np.maximum(size, 1) / late.mean()
        wanted = (lift >= RULES.own_lift) & (size >= RULES.own_least * codes.size)
        for code in np.flatnonzero(wanted):
            if attribute.folded and code == size.size - 1:
                continue
            places = np.flatnonzero(codes == code)
            cut = int((1 - RULES.own_share) / 2 * places.size)
            first, last = int(places[cut]), int(places[-1 - cut])
            inside = codes[first : last + 1] == code
            if inside.mean() < RULES.own_share or last - first > RULES.own_share * codes.size:
                continue
            at = np.flatnonzero(late[first : last + 1] & inside)
            if np.unique(at * np.int64(20) // (last - first + 1)).size < RULES.own_parts:
                continue
            share = _percent(float(hits[code] / late.sum()))
            begin = units.format_moment(float(when[order][places[0]] - when[order][0]))
            name = f"{attribute.name}={attribute.values[code]}"
            texts.append(
                f"{share} of the requests above {look.threshold.name} have {name} "
                f"({_percent(float(size[code] / codes.size))} of all), which begins at {begin}: "
                f"{attribute.name} and time cannot be distinguished"
            )
    return texts


def _not_excluded(frame: pd.DataFrame, coincidence: Coincidence | None) -> list[str]:
    """Values and events that were not found to go with slow requests, but still may."""
    known = [
        row
        for row in frame.to_dict("records")
        if not (row["significant"] or row["outcome"] or row["value"] == OTHERS)
        and (row["high"] or 0.0) >= RULES.open_lift
    ]
    texts = [
        f"{row['attribute']}={row['value']} (lift up to {row['high']:.3g})"
        for row in sorted(known, key=lambda row: -row["high"])[: RULES.most_open]
    ]
    for row in [] if coincidence is None else coincidence.rows.to_dict("records"):
        if not row["significant"] and row["coincide"] > row["expected"]:
            hit = f"{row['coincide']} of {format_items(row['stalls'], 'stall')}"
            texts.append(f"{row['source']} (coincides with {hit}, by chance {row['expected']:.1f})")
    return [f"not excluded: {', '.join(texts)}"] if texts else []


def _cause_sentences(frame: pd.DataFrame, look: _Look) -> list[str]:
    """A sentence on each cause: its shares, its lift, and the threshold without it."""
    rows = {(row.attribute, row.value): row for row in frame.itertuples()}
    threshold, what = look.threshold, f"above {look.threshold.name}"
    sentences = []
    for cause in look.causes:
        row: Any = rows[cause.keys[0]]
        name, *others = ("=".join(key) for key in cause.keys)
        same = f" (the same requests as {brief_list(others)})" if others else ""
        text = (
            f"{name}{same} goes with slow requests: {_percent(row.share)} of all "
            f"requests, {_percent(row.share_above)} of those {what} (lift {row.lift:.3g}, "
            f"{row.low:.3g} to {row.high:.3g})"
        )
        if np.isfinite(row.explains) and row.explains > 0.005:
            name = threshold.name
            if threshold.percentile is None:
                share = 1 - float(look.world.slow.mean())
                name = f"p{units.format_percentile(round(100 * share, 3))}"
            text += (
                f"; if they were like the rest, {name} would be "
                f"{units.format_duration(threshold.value * (1 - row.explains))} instead of "
                f"{units.format_duration(threshold.value)}"
            )
        sentences.append(text)
    return sentences


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %" if share >= 1e-4 else "< 0.01 %"


# ------------------------------------------------------------
# Attributes of requests: each column as a few values, one code per request.


@record()
class AttributeRules:
    """How columns become attributes; chosen on `tests.benchmarks.truth_explain`."""

    # numbers: more are cut at quantiles
    max_distinct: int = 20
    # quantiles at which numbers are cut
    cuts: tuple[float, ...] = (0.25, 0.5, 0.75, 0.9, 0.99)
    # values with fewer are folded into one
    min_requests: int = 5
    # that are tested one by one
    max_values: int = 400
    # times a limit, or less: latencies near it
    beside: float = 1.25
    # of them on either side
    min_beside: int = 5
    # times as many just above a limit as just below: a limit cuts through a crowd
    max_crowd: float = 3.0
    # of the latencies near a limit: clocks of client and server differ
    max_misplaced_share: float = 0.02
    # of the requests with a value, on the wrong side of the limit
    max_astray_share: float = 0.1


ATTRIBUTES = AttributeRules()


OTHERS, NONE = "others", "(none)"
_ID = re.compile(
    r"(?<=/)(?<!//)(?:\d+|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    r"|(?=[^/?#\s]*\d)(?:[0-9a-fA-F]{8,}|(?=[^/?#\s]*[A-Za-z])[A-Za-z0-9_-]{16,}))(?=[/?#.:;\s]|$)"
)
_QUERY = re.compile(r"[?#][^\s]*")
_PATH = re.compile(r"(?:[A-Z]{3,8} )?(?:\w+://|/)")


@record(eq=False)
class Attribute:
    """An attribute: a code per request, and the value that each code stands for."""

    name: str
    codes: NDArray[np.int32]
    values: list[str]
    looks: int  # values before rare ones were folded
    folded: bool  # the last value stands for all others
    ranges: bool = False  # values are ranges of numbers
    outcome: bool = False  # how requests ended, not why


# Names of outcomes: a word that can mean nothing else, or one that can and whose values decide;
# either with words that only say whose outcome it is, and of what kind.
_ENDED = re.compile(
    r"outcome|err(or)?s?|exception|success(ful)?|succeeded|fail(ure|ed)?|fault|timed?out|aborted|"
    r"cancell?ed|expired|rejected|dropped|late|slow"
)
_MAY_HAVE_ENDED = re.compile(r"status|code|result|state|ok|response")
_WHOSE = re.compile(
    r"is|has|was|did|timed|out|https?|g?rpc|return|exit|final|req(uest)?|call|reply|resp|upstream|"
    r"origin|downstream|backend|server|client|sc|elb|target|edge|proxy|frontend|list|number|class|"
    r"message|msg|reason|text|type|kind|name|family|flag"
)
_END = re.compile(
    r"[1-5]\d\d\b.*|[1-5]xx|-?\d{1,2}|true|false|yes|no|-|.*(?:\bok\b|succe|error|err\b|fail|time|"
    r"cancel|abort|exce|unavail|denied|refus|reset|reject|invalid|not.?found|unauth|exhaust).*",
    re.IGNORECASE,
)


def restates_latency(values: Ints, marked: Flags) -> bool:
    """Return whether some requests are those above a limit, as a flag of slow ones marks them."""
    # Latencies of a cause overlap with the others; where it has a least latency of its own, there
    # are many above it and few below. A limit cuts through a crowd.
    order = np.argsort(values, kind="stable")
    ordered, flagged = values[order], marked[order]
    # Misplaced requests for a limit below each position: flagged ones before it, others after it.
    before = np.concatenate(([0], np.cumsum(flagged)))
    misplaced = before + (~flagged).sum() - (np.arange(before.size) - before)
    at = int(np.argmin(misplaced))
    if not 0 < at < values.size or misplaced[at] > ATTRIBUTES.max_astray_share * flagged.sum():
        return False
    limit = float(ordered[at])
    first, last = np.searchsorted(ordered, (limit / ATTRIBUTES.beside, limit * ATTRIBUTES.beside))
    below, above = flagged[first:at], flagged[at:last]
    wrong = int(below.sum()) + int((~above).sum())
    crowd = (
        below.size >= ATTRIBUTES.min_beside
        and ATTRIBUTES.min_beside <= above.size <= ATTRIBUTES.max_crowd * below.size
    )
    return crowd and wrong <= ATTRIBUTES.max_misplaced_share * (below.size + above.size)


def attributes_of(
    samples: Samples, values: Ints, by: Sequence[str] | None, notes: list[str]
) -> list[Attribute]:
    """Return the columns of samples, all or those of `by`; what is left out is noted."""
    names = list(samples.columns)
    own = [name for name in ("tag", "connection") if getattr(samples, name) is not None]
    if by is not None:
        # A name may be written in another case, or be the tool's own word.
        columns = (*names, *own)
        alike = {column.lower(): column for column in columns}
        words = [(name, *_SYNONYMS.get(name.lower(), ())) for name in by]
        by = [
            name if name in columns else alike.get(name.lower())
            or next((other for other in others if other in columns), name)
            for name, *others in words
        ]  # fmt: skip
        unknown = [name for name in by if name not in columns]
        if unknown:
            raise InvalidArgumentError(
                f"no column {unknown[0]!r}; the columns are {', '.join([*names, *own]) or 'none'}"
            )
        names = list(dict.fromkeys(by))
    else:
        for name in own:  # unless it is among the further columns, too, under its own name
            first = coded(getattr(samples, name)[:2000])[0].astype(np.int64)
            few = [coded(select(samples.columns.cells(column), slice(2000)))[0]
                   for column in samples.columns]  # fmt: skip
            copies = [
                np.unique(first << 32 | (second + 1)).size
                == np.unique(first).size
                == np.unique(second).size
                for second in few
            ]
            names += [] if any(copies) else [name]
    attributes = []
    parts = _parts(samples, values) if by is None and values.size > 20 else set()
    for name in names:
        if name in parts:
            notes.append(
                f"column {name!r} is a part of the latency and is left out; ask for it by name"
            )
            continue
        cells: Any = getattr(samples, name) if name in own else samples.columns.cells(name)
        if name == "tag":
            cells = Words.of(cells).sorted()
        attribute = text = None
        if isinstance(cells, Words):
            codes, texts = cells.codes, cells.names.tolist()
            paths = sum(_PATH.match(word) is not None for word in texts[:1000])
            if len(texts) > 1 and paths >= 0.5 * min(len(texts), 1000):
                grouped = [_ID.sub("{id}", _QUERY.sub("", word)) for word in texts]
                place = {word: k for k, word in enumerate(dict.fromkeys(grouped))}
                table = np.array([*(place[word] for word in grouped), -1], np.int32)
                codes, texts = np.asarray(table[codes], np.int32), list(place)
            if np.count_nonzero(np.bincount(codes + 1)) > 0.5 * codes.size and codes.size > 20:
                text = f"column {name!r} identifies requests (nearly every value is unique)"
            else:
                attribute = _folded(name, codes, texts)
        elif cells.dtype.kind in "iuf":
            attribute, text = _of_numbers(name, cells, name == "connection")
        else:
            text = f"column {name!r} contains times and is left out"
        if text:
            notes.append(text)
        if attribute is not None and len(attribute.values) > 1:
            attributes.append(attribute)
    return attributes


_SYNONYMS = {
    "endpoint": (
        "path", "uri", "url", "route", "request.uri", "RequestPath", "label", "name", "request",
        "operation",
    ),
    "host": ("hostname", "server", "backend", "upstream", "node", "instance", "Hostname", "client"),
}  # fmt: skip
"""Columns that tools have in place of those that people ask for, the best first."""


def _of_numbers(
    name: str, cells: NDArray[Any], identity: bool
) -> tuple[Attribute | None, str | None]:
    import pandas as pd

    some = slice(None, None, max(1, cells.size // 20_000))
    known = np.isfinite(cells) if cells.dtype.kind == "f" else np.ones(cells.size, np.bool_)
    sample = cells[some][known[some]].astype(np.float64)
    few = np.unique(sample)
    if (
        not identity
        and sample.size > max(20, 0.9 * cells[some].size)
        and few.size > 0.9 * sample.size
        and (np.diff(sample) >= 0).all()
    ):
        return None, f"column {name!r} only counts upwards and is left out"
    if identity or few.size <= ATTRIBUTES.max_distinct:
        codes, distinct = pd.factorize(cells, use_na_sentinel=True)
        if identity or distinct.size <= ATTRIBUTES.max_distinct:
            texts = [_number(number) for number in distinct.tolist()]
            return _folded(name, codes.astype(np.int32), texts), None
    if not sample.size:
        return None, None
    edges = np.unique(np.quantile(sample, ATTRIBUTES.cuts, method="higher"))
    edges = edges[edges > sample.min()]
    if not edges.size:
        return None, None
    cuts: NDArray[np.int32] = np.searchsorted(edges, cells, "right").astype(np.int32)
    shown = [_number(edge) for edge in edges.tolist()]
    texts = [f"< {shown[0]}"]
    texts += [f"{low} – {high}" for low, high in pairwise(shown)]
    texts.append(f"≥ {shown[-1]}")
    if not known.all():
        cuts[~known] = len(texts)
        texts.append(NONE)
    return Attribute(name, cuts, texts, len(texts), folded=False, ranges=True), None


def _parts(samples: Samples, values: Ints) -> set[str]:
    """Columns that are the latency or a part of it: never more, in some unit, and with it."""
    some = slice(None, None, max(1, values.size // 20_000))
    took, found = values[some].astype(np.float64), set[str]()
    numbers, whole = {}, {}
    for name in samples.columns if np.ptp(took) > 0 else ():
        cells: Any = samples.columns.cells(name)
        if not isinstance(cells, Words) and cells.dtype.kind in "iuf":
            whole[name] = cells.dtype.kind != "f"
            cells = cells[some].astype(np.float64)
            if np.isfinite(cells).mean() >= 0.9 and np.nanmin(cells) >= 0:
                numbers[name] = np.nan_to_num(cells, posinf=0.0)
    for unit, step in ((1.0, 2e3), (1e-3, 1.0), (1e-6, 1.0), (1e-9, 0.002)):
        limit, total = took * unit * 1.01 + step, unit * float(took.sum())
        parts = {
            name: cells
            for name, cells in numbers.items()
            if float((cells <= limit).mean()) > 0.99 and np.ptp(cells) > 0
        }
        adding = [name for name in parts if not whole[name]]
        if len(adding) > 1 and 0.8 < sum(float(parts[name].sum()) for name in adding) / total < 1.2:
            found |= set(adding)
        found |= {
            name
            for name, cells in parts.items()
            if float(cells.sum()) > 0.2 * total and np.corrcoef(cells, took)[0, 1] >= 0.8
        }
    return found


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else f"{value:.4g}"


def _folded(name: str, codes: NDArray[np.int32], texts: list[str]) -> Attribute:
    """Values with too few requests to be evidence, or too many values, as others."""
    if (codes < 0).any():
        codes, texts = np.where(codes < 0, np.int32(len(texts)), codes), [*texts, NONE]
    counts = np.bincount(codes, minlength=len(texts))
    frequent = counts >= ATTRIBUTES.min_requests
    looks = int(frequent.sum())
    if looks > ATTRIBUTES.max_values:
        frequent &= counts >= np.sort(counts)[-ATTRIBUTES.max_values]
    used = np.flatnonzero(frequent)
    rest = bool((counts[~frequent] > 0).any())
    table = np.full(len(texts), used.size, np.int32)
    table[used] = np.arange(used.size)
    values = [texts[k] for k in used.tolist()] + ([OTHERS] if rest else [])
    # Does the column report how requests ended, by its name and values?
    words = {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}
    others = {word for word in words if _ENDED.fullmatch(word) is None}
    unsure = {word for word in others if _MAY_HAVE_ENDED.fullmatch(word)}
    known = [text for text in values if text not in (OTHERS, NONE)]
    ends = sum(_END.fullmatch(text) is not None for text in known)
    outcome = len(others) < len(words) or {"timed", "out"} <= words
    outcome = outcome or (bool(unsure) and ends >= max(0.5 * len(known), 1))
    outcome = outcome and all(_WHOSE.fullmatch(word) for word in others - unsure)
    return Attribute(name, table[codes], values, max(looks, 1), folded=rest, outcome=outcome)
