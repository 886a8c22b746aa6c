"""`explained`: what slow requests have in common, and what happened when they were slow.

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
"""

from __future__ import annotations

import itertools
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit._records import record
from latencykit.analysis.attributes import OTHERS, Attribute, attributes_of, restates_latency
from latencykit.analysis.coincidence import coincide
from latencykit.analysis.mix_changes import mix_changes
from latencykit.core.histogram import Histogram
from latencykit.core.histogram_log import HistogramLog
from latencykit.core.repr_html import listing_html
from latencykit.core.samples import OUTCOMES, Samples
from latencykit.core.value import Value
from latencykit.errors import DataNotAvailableError, InvalidArgumentError
from latencykit.units import (
    format_count,
    format_duration,
    format_items,
    format_percentile,
    format_value,
    in_unit,
    parse_percentile,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from latencykit.core.events import Events
    from latencykit.units import Moment

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]

__all__ = ["Explanation", "condition_text", "explained"]

_LEVEL = 0.05  # probability of any false finding
_PAIRS = 0.2  # part of it that is for combinations of two
_LEAST_BLOCKS = 5  # with slow requests of a value; fewer are too few
_LEAST_EXCESS = 0.01  # of the slow requests, beyond the value's share
_LEAST_LIFT = 1.1
_NEAR = 40  # requests around a moment that say what is usual then
_FEWEST_BLOCKS = 20  # that a run is cut into
_PLATEAU = 0.7  # of the dispersion
_SHOWN = 12  # values per attribute
_SMALL = 0.01  # shares below it are folded into the others
_MOST_CAUSES = 6
_MOST_SETS = 5  # sizes of blocks among which votes are counted
_SAME = 0.98  # of the requests of two values in common: they cannot be distinguished
_MOST_PAIRS = 12
_BETTER = 1.2  # lift of a combination over that of its parts
_PERIODS = 100  # in which requests are compared with the rest of their time
_COLUMNS = (
    "attribute", "value", "share", "share_above", "lift", "low", "high", "significant", "explains",
    "outcome",
)  # fmt: skip


def condition_text(attribute: str, value: str) -> str:
    """Return ``host=a``, or ``host=a & path=/b`` of a combination."""
    pairs = zip(attribute.split(" & "), value.split(" & "), strict=False)
    return " & ".join(f"{name}={own}" for name, own in pairs)


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
        threshold would be lower if these requests were as fast as all others of their time. A
        combination of two attributes is named ``endpoint & host``. An `outcome`, such as a status
        or a flag of late replies, is never significant: slow requests have it because they are
        slow.
    mix : DataFrame
        Where the mix of an attribute changed: `attribute`, `value`, `share_before`, `share_after`,
        `slow_before`, `slow_after` (share of slow requests), and the difference in all slow
        requests that comes from the `mix` and from `within` the value; both columns add up to the
        difference.
    coincidence : Coincidence or None
        What happened at the same time.
    findings, notes : tuple of str
    """

    name: str
    above: str
    threshold: float
    attributes: pd.DataFrame
    mix: pd.DataFrame
    coincidence: Any
    findings: tuple[str, ...]
    notes: tuple[str, ...]
    latency: Histogram | None = field(default=None, repr=False)
    without: Histogram | None = field(default=None, repr=False)

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
            named = condition_text(row["attribute"], row["value"])
            rows.append((named, *shares, "" if np.isnan(row["low"]) else lift, mark))
        above = f"of those above {self.above}"
        header = ("", "of all requests", above, "lift (95 %)", "significant")
        title = f"Requests above {self.above} ({format_value(self.threshold, 'ns')})"
        return listing_html(title, header, rows, [*self.findings, *self.notes])

    def __repr__(self) -> str:
        limit = format_value(self.threshold, "ns")
        named = [
            condition_text(str(row.attribute), str(row.value)) for row in self.suspects.itertuples()
        ]
        return f"Explanation({', '.join(named) or 'no suspects'} above {self.above}, {limit})"


def explained(
    data: Samples | HistogramLog,
    above: str | float = "p99",
    by: str | Sequence[str] | None = None,
    between: tuple[Moment, Moment] | None = None,
    events: Iterable[Events] = (),
) -> Explanation:
    """Return what `latencykit.explain` returns; events have been read."""
    events, (limit, level) = tuple(events), _threshold(above)
    name, listed = data.run.source or "", [by] if isinstance(by, str) else by
    if not isinstance(data, Samples):
        if not isinstance(data, HistogramLog):
            raise DataNotAvailableError(
                "no single requests and no times: neither attributes nor events can be compared"
            )
        log = data if between is None else data.between(*between)
        result = coincide(log, events, above=above)
        lacks = "the log has no single requests: only events can be compared with its stalls"
        return Explanation(
            name, limit, result.threshold, _frame([]), mix_changes([], None, None, None)[0], result,
            result.findings, (lacks, *result.notes),
        )  # fmt: skip
    inside = np.ones(len(data), np.bool_)
    if between is not None:
        first, last = (_offset(moment, data) for moment in between)
        inside = (data.offsets >= first) & (data.offsets < last)
    timeout = OUTCOMES.index("timeout")
    answered = data.good if data.outcome is None else data.good | (data.outcome == timeout)
    kept = answered & inside
    if not kept.any():
        raise DataNotAvailableError("no request was answered: there is nothing to explain")
    values = data.values[kept]
    threshold = _quantile(values, level) if level is not None else float(in_unit(above, "ns"))
    slow = values > threshold
    if data.outcome is not None:
        slow |= data.outcome[kept] == timeout
    if not slow.any() or slow.all():
        raise InvalidArgumentError(
            f"{name}{': ' if name else ''}{'every' if slow.all() else 'no'} request is slower than "
            f"{format_duration(threshold)}; choose another threshold than {limit}"
        )
    notes = [] if answered.all() else [_left_out(int((~answered & inside).sum()))]
    chosen = data.select(kept)
    attributes = attributes_of(chosen, values, listed, notes)
    if not attributes:
        notes.append(_no_columns(data, listed))
    world = _World.of(chosen, values, slow, notes)
    accepted, attributes = _causes(world, attributes)
    coincidence = None
    mix = mix_changes([], None, None, None)
    if data.start is not None:
        coincidence = coincide(
            data if between is None else data.select(inside), events, above=above
        )
        if np.unique(world.block[world.late]).size < 2 * _LEAST_BLOCKS:
            pass  # too little evidence for rates
        elif between is None:
            mix = mix_changes(_named(accepted), chosen.offsets, slow, None)
        else:
            at_all_times = data.select(answered)
            late = at_all_times.values > threshold
            others = attributes_of(at_all_times, at_all_times.values, listed, [])
            causes, _ = _causes(_World.of(at_all_times, at_all_times.values, late, []), others)
            mix = mix_changes(_named(causes), at_all_times.offsets, late, inside[answered])
    elif events:
        raise DataNotAvailableError(
            "these samples do not state when each request was sent, so that events cannot be "
            "compared with stalls; name the column with start="
        )
    percentile = level if level is not None else 100 * (1 - float(slow.mean()))
    rows = _rows(world, attributes, accepted, percentile, threshold)
    frame = _frame(rows)
    top = np.zeros(slow.size, np.bool_)
    for cause in accepted:
        top |= cause.mask(slow.size)
    findings = _findings(frame, accepted, world, attributes, limit, threshold, level)
    return Explanation(
        name, limit, threshold, frame, mix[0], coincidence,
        (*findings, *mix[1], *(() if coincidence is None else coincidence.findings)),
        (*notes, *(() if coincidence is None else coincidence.notes)),
        Histogram.of(values, unit=data.unit),
        Histogram.of(values[~top], unit=data.unit) if top.any() and not top.all() else None,
    )  # fmt: skip


def _threshold(above: str | float) -> tuple[str, float | None]:
    """The threshold in words, and the percentile that it is, if it is one."""
    if isinstance(above, str) or 0 < above <= 100:
        try:
            level = parse_percentile(above)
        except InvalidArgumentError:
            in_unit(above, "ns")
            return str(above), None
        if not 0 < level < 100:
            raise InvalidArgumentError(f"above={above!r}: choose a percentile between 0 and 100")
        return f"p{format_percentile(level)}", level
    return format_duration(above), None


def _quantile(values: Ints, level: float) -> float:
    rank = int(np.ceil(level / 100 * values.size * (1 - 1e-12)))
    return float(np.partition(values, max(rank - 1, 0))[max(rank - 1, 0)])


def _offset(moment: Moment, data: Samples) -> float:
    from latencykit.units import parse_moment

    return parse_moment(moment, data.epoch)


def _left_out(failed: int) -> str:
    if failed == 1:
        return "1 request without a good reply is left out"
    return f"{format_count(failed)} requests without a good reply are left out"


def _no_columns(data: Samples, by: Sequence[str] | None) -> str:
    if by is not None or len(data.columns):
        return "no column has several values: there is nothing to compare"
    return "the source has no further columns, such as endpoint, host or status"


# ------------------------------------------------------------
# Evidence: votes of blocks.


@record(eq=False)
class _World:
    """Requests near slow ones, in order of time, and the blocks that slow ones fall into.

    Attributes
    ----------
    slow : of all requests.
    rows : positions of the requests that share a neighbourhood with a slow one, in order of time.
    near : neighbourhood of each of `rows`.
    late : which of `rows` are slow.
    block : of each of `rows`.
    period : of all requests, for comparisons with the rest of their time.
    """

    values: Ints
    slow: Flags
    rows: Ints
    near: Ints
    late: Flags
    block: Ints
    period: Ints
    seconds: float | None

    @classmethod
    def of(cls, samples: Samples, values: Ints, slow: Flags, notes: list[str]) -> _World:
        n = slow.size
        if samples.start is None:
            notes.append(
                "requests have no times: their order is taken for their order in time, and stalls "
                "cannot be compared with events"
            )
            when: Any = np.arange(n, dtype=np.float64)
            order = None
        else:
            when = samples.offsets
            order = None if (np.diff(when) >= 0).all() else np.argsort(when, kind="stable")
        ordered = slow if order is None else slow[order]
        moments = when if order is None else when[order]
        span = float(moments[-1] - moments[0]) or 1.0
        since = moments - moments[0]
        width = _block_width(since, ordered, span)
        groups = -(-n // _NEAR)
        group = np.arange(n) // _NEAR
        with_slow = np.bincount(group, weights=ordered, minlength=groups) > 0
        rows = np.flatnonzero(with_slow[group])
        near = np.cumsum(with_slow)[group[rows]] - 1
        block = (since[rows] / width).astype(np.int64)
        period = np.minimum((when - moments[0]) / span * _PERIODS, _PERIODS - 1).astype(np.int64)
        places = rows if order is None else order[rows]
        return cls(
            values, slow, places, near, ordered[rows], block, period,
            None if samples.start is None else width,
        )  # fmt: skip


def _block_width(since: Floats, slow: Flags, span: float) -> float:
    """The shortest width at which the dispersion of slow requests' counts has nearly settled."""
    share = float(slow.mean())
    least = min(_NEAR / slow.size, 1 / _FEWEST_BLOCKS)
    number = max(int(1 / least), _FEWEST_BLOCKS)
    place = np.minimum(since / span * number, number - 1).astype(np.int64)
    counts = np.bincount(place, minlength=number).astype(np.float64)
    late = np.bincount(place, weights=slow, minlength=number)
    widths, dispersions, sizes = [], [], []
    merged = 1
    while number // merged >= _FEWEST_BLOCKS:
        cuts = np.arange(0, number, merged)
        load, seen = np.add.reduceat(counts, cuts), np.add.reduceat(late, cuts)
        expected = (share * (1 - share) * load).sum()
        dispersions.append(float(((seen - share * load) ** 2).sum() / max(expected, 1e-9)))
        widths.append(span / number * merged)
        sizes.append(cuts.size)
        merged *= 2
    level = np.asarray(dispersions)
    sure = level * (1 - np.sqrt(2 / np.asarray(sizes)))
    return widths[int(np.argmax(level >= _PLATEAU * sure.max()))]


@record(eq=False)
class _Votes:
    """Votes of blocks for each value: what was cast, and what is expected."""

    cast: Floats  # blocks × values
    due: Floats
    size: Floats  # slow requests per block


def _votes(world: _World, codes: NDArray[Any], values: int, active: Flags | None) -> _Votes:
    """Votes for the values that `codes` (of `world.rows`) stand for, among the active rows."""
    near, late, block = world.near, world.late, world.block
    if active is not None:
        near, late, block, codes = near[active], late[active], block[active], codes[active]
    groups = int(world.near[-1]) + 1 if world.near.size else 0
    usual = np.bincount(near * values + codes, minlength=groups * values).reshape(groups, values)
    total = np.maximum(usual.sum(axis=1), 1)
    at = np.flatnonzero(late)
    if not at.size:
        empty = np.zeros((0, values))
        return _Votes(empty, empty, np.zeros(0))
    place, starts = np.unique(block[at], return_index=True)  # blocks ascend in time
    index = np.repeat(np.arange(place.size), np.diff(np.append(starts, at.size)))
    size = np.bincount(index).astype(np.float64)
    cast = np.bincount(index * values + codes[at], minlength=place.size * values)
    # One step per neighbourhood and block, not per slow request.
    pair = index * groups + near[at]
    distinct, number = np.unique(pair, return_counts=True)
    which, group = np.divmod(distinct, groups)
    due = np.add.reduceat(
        usual[group] * (number / total[group])[:, None],
        np.flatnonzero(np.diff(which, prepend=-1)),
    )
    return _Votes(cast.reshape(place.size, values) / size[:, None], due / size[:, None], size)


def _tested(votes: _Votes) -> tuple[Floats, Floats, Floats]:
    """For each value: the probability of as many votes, the deviance, and blocks that back it.

    The deviance is K · KL(share of votes ‖ expected share), which orders probabilities that are too
    small for a float.
    """
    from scipy import special  # here: reports import this module, and most have no use for it

    blocks, values = votes.cast.shape
    if not blocks:
        return np.ones(values), np.zeros(values), np.zeros(values)
    order = np.argsort(-votes.size, kind="stable")
    open_ = (votes.due[order] > 0) & (votes.due[order] < 1)
    cast = np.where(open_, votes.cast[order], 0.0)
    due = np.where(open_, votes.due[order], 0.0)
    sizes = [blocks]
    while sizes[-1] // 3 >= 2 * _LEAST_BLOCKS and len(sizes) < _MOST_SETS:
        sizes.append(sizes[-1] // 3)
    best, deviance = np.ones(values), np.zeros(values)
    for number in sizes:
        trials = open_[:number].sum(axis=0).astype(np.float64)
        seen, expected = cast[:number].sum(axis=0), due[:number].sum(axis=0)
        chance = np.clip(expected / np.maximum(trials, 1), 1e-12, 1 - 1e-12)
        part = np.clip(seen / np.maximum(trials, 1), 0.0, 1.0)
        more = (seen > expected) & (trials > 0)
        # The regularized incomplete beta function continues the binomial tail between integers.
        tail = special.betainc(np.maximum(seen, 1e-9), trials - seen + 1, chance)
        best = np.where(more, np.minimum(best, tail * len(sizes)), best)
        far = trials * (special.rel_entr(part, chance) + special.rel_entr(1 - part, 1 - chance))
        deviance = np.where(more, np.maximum(deviance, far), deviance)
    return best, deviance, (votes.cast > 0).sum(axis=0)


@record(eq=False)
class _Cause:
    """One value, or a combination of two, that goes with slow requests."""

    parts: tuple[tuple[Attribute, int], ...]
    rows: Flags  # which of `_World.rows` have it
    alias: tuple[tuple[Attribute, int], ...] = ()

    def mask(self, size: int) -> Flags:
        """Return which of all requests have it."""
        mask = np.ones(size, np.bool_)
        for attribute, code in self.parts:
            mask &= attribute.codes == code
        return mask


def _standing(
    world: _World, attribute: Attribute, codes: NDArray[Any], active: Flags, looks: int
) -> tuple[Floats, Flags]:
    """Deviances of the values that surely stand out, else -1; and which values may, with others."""
    size, late = len(attribute.values), world.late & active
    total = max(int(world.late.sum()), 1)
    p, deviance, blocks = _tested(_votes(world, codes, size, None if active.all() else active))
    usual = np.bincount(codes[active], minlength=size) / active.sum()
    slow = np.bincount(codes[late], minlength=size) / total
    lifted = (blocks >= _LEAST_BLOCKS) & (slow >= usual * _LEAST_LIFT)
    lifted &= slow - usual * late.sum() / total >= _LEAST_EXCESS
    if attribute.folded:
        lifted[-1] = False
    sure = lifted & (p * attribute.looks * looks <= _LEVEL * (1 - _PAIRS))
    return np.where(sure, deviance, -1.0), lifted & (p <= 0.05)


def _causes(world: _World, attributes: Sequence[Attribute]) -> tuple[list[_Cause], list[Attribute]]:
    """The values that stand out, one after the other, each among the requests without the last.

    Attributes whose value only restates the latency are returned as outcomes.
    """
    tested = [attribute for attribute in attributes if not attribute.outcome]
    local = [attribute.codes[world.rows] for attribute in tested]
    accepted: list[_Cause] = []
    active = np.ones(world.rows.size, np.bool_)
    while tested and len(accepted) < _MOST_CAUSES and (world.late & active).any():
        best: tuple[float, _Cause] | None = None
        standing: list[Flags] = []
        for attribute, codes in zip(tested, local, strict=True):
            sure, perhaps = _standing(world, attribute, codes, active, len(attributes))
            standing.append(perhaps)
            code = int(np.argmax(sure))
            if sure[code] > (best[0] if best else 0.0):
                best = sure[code], _Cause(((attribute, code),), codes == code)
        both = _combination(world, tested, local, standing, active)
        if both is not None and (best is None or both[0] > best[0]):
            best = both
        if best is None:
            break
        cause = best[1]
        flags = [
            part
            for part, code in cause.parts
            if not part.ranges and restates_latency(world.values, part.codes == code)
        ]
        if flags:
            marked = [
                replace(attribute, outcome=True)
                if any(attribute is flag for flag in flags)
                else attribute
                for attribute in attributes
            ]
            return _causes(world, marked)
        accepted.append(_with_aliases(cause, tested, local, active))
        active &= ~cause.rows
    return accepted, list(attributes)


def _outcomes(world: _World, attributes: Sequence[Attribute]) -> list[tuple[Attribute, int]]:
    """The value of each outcome that stands out most, of those that do."""
    outcomes = []
    for attribute in attributes:
        if attribute.outcome:
            active, codes = np.ones(world.rows.size, np.bool_), attribute.codes[world.rows]
            sure, _ = _standing(world, attribute, codes, active, len(attributes))
            if sure.max() > 0:
                outcomes.append((attribute, int(np.argmax(sure))))
    return outcomes


def _named(causes: Sequence[_Cause]) -> list[Attribute]:
    """Attributes that matter at any one time: of others, a changed mix is only one more change."""
    parts = [part for cause in causes for part, _ in (*cause.parts, *cause.alias)]
    return [part for k, part in enumerate(parts) if part not in parts[:k]]


def _with_aliases(
    cause: _Cause, attributes: Sequence[Attribute], local: Sequence[NDArray[Any]], active: Flags
) -> _Cause:
    """The cause with the values that nearly the same requests have."""
    rows = cause.rows & active
    alias = []
    for attribute, codes in zip(attributes, local, strict=True):
        if any(attribute is part for part, _ in cause.parts):
            continue
        size = len(attribute.values)
        both = np.bincount(codes[rows], minlength=size)
        either = np.bincount(codes[active], minlength=size) + rows.sum() - both
        code = int(both.argmax())
        if both[code] >= _SAME * either[code]:
            alias.append((attribute, code))
    return _Cause(cause.parts, cause.rows, tuple(alias))


def _combination(
    world: _World,
    attributes: Sequence[Attribute],
    local: Sequence[NDArray[Any]],
    standing: Sequence[Flags],
    active: Flags,
) -> tuple[float, _Cause] | None:
    """The combination of two values that says more than either of them, if there is one."""
    looks = sum(
        first.looks * second.looks for first, second in itertools.combinations(attributes, 2)
    )
    candidates: list[tuple[float, int, int, int, int]] = []
    for i, j in itertools.combinations(range(len(attributes)), 2):
        for u in np.flatnonzero(standing[i])[:8].tolist():
            size = len(attributes[j].values)
            weights = _divergence(local[i] == u, local[j], size, world.late & active, active)
            weights[~standing[j]] = 0.0
            candidates += [(weights[v], i, u, j, v) for v in np.flatnonzero(weights).tolist()]
    best: tuple[float, _Cause] | None = None
    for _, i, u, j, v in sorted(candidates, reverse=True)[:_MOST_PAIRS]:
        first, second = local[i] == u, local[j] == v
        both = first & second
        p, deviance, blocks = _tested(
            _votes(world, both.astype(np.int32), 2, None if active.all() else active)
        )
        if blocks[1] < _LEAST_BLOCKS or p[1] * looks > _LEVEL * _PAIRS:
            continue
        inner = [
            _tested(_votes(world, other.astype(np.int32), 2, active & within))[0][1]
            for within, other in ((first, second), (second, first))
        ]
        if max(inner) * max(len(candidates), 1) > _LEVEL:
            continue
        if best is None or deviance[1] > best[0]:
            parts = (attributes[i], u), (attributes[j], v)
            best = float(deviance[1]), _Cause(parts, both)
    return best


def _divergence(first: Flags, codes: NDArray[Any], size: int, late: Flags, active: Flags) -> Floats:
    """Each code's term of the Kullback–Leibler divergence of slow requests from all, with `first`.

    Zero where the lift is not clearly above that of `first` and of the code alone.
    """
    from scipy import special  # here: reports import this module, and most have no use for it

    def shares(rows: Flags, total: Flags) -> Floats:
        return np.asarray(np.bincount(codes[rows], minlength=size) / max(total.sum(), 1))

    slow, usual = shares(late & first, late), shares(active & first, active)
    lift = slow / np.maximum(usual, 1e-12)
    of_first = slow.sum() / max(usual.sum(), 1e-12)
    of_code = shares(late, late) / np.maximum(shares(active, active), 1e-12)
    more = (lift >= _BETTER * of_first) & (lift >= _BETTER * of_code)
    more &= slow - usual >= _LEAST_EXCESS
    terms: Floats = special.rel_entr(slow, usual)
    terms[~more] = 0.0
    return terms


# ------------------------------------------------------------
# Rows: shares, lift and what a value explains.

_GRID = 2.0**50  # shares are multiples of its inverse, so that they add up exactly in any order


def _whole_shares(counts: Floats) -> Floats:
    """Shares that add up to one exactly."""
    scaled = np.floor(counts / counts.sum() * _GRID)
    scaled[int(np.argmax(counts))] += _GRID - scaled.sum()
    return np.asarray(scaled / _GRID)


def _rows(
    world: _World,
    attributes: Sequence[Attribute],
    accepted: Sequence[_Cause],
    level: float,
    threshold: float,
) -> list[dict[str, Any]]:
    slow = world.slow
    counter = _Counterfactual(world.values, world.period, level, threshold)
    rows: list[dict[str, Any]] = []
    for cause in accepted:
        if len(cause.parts) > 1:
            names = " & ".join(attribute.name for attribute, _ in cause.parts)
            value = " & ".join(attribute.values[code] for attribute, code in cause.parts)
            mask = (~cause.mask(slow.size)).astype(np.int32)
            combined = Attribute(names, mask, [value, OTHERS], 1, folded=True)
            rows += _rows_of(combined, {0}, world, counter)
    for attribute in attributes:
        significant = {
            code
            for cause in accepted
            for part, code in ((*cause.parts, *cause.alias) if len(cause.parts) == 1 else ())
            if part is attribute
        }
        rows += _rows_of(attribute, significant, world, counter)
    order: dict[str, float] = {}
    for row in rows:
        explains = 0.0 if row["explains"] is None else row["explains"]
        key = explains + (10.0 if row["significant"] else 0.0)
        order[row["attribute"]] = max(order.get(row["attribute"], -np.inf), key)
    return sorted(rows, key=lambda row: -order[row["attribute"]])


def _rows_of(
    attribute: Attribute, significant: set[int], world: _World, counter: _Counterfactual
) -> list[dict[str, Any]]:
    size = len(attribute.values)
    count = np.bincount(attribute.codes, minlength=size).astype(np.float64)
    late = np.bincount(attribute.codes[world.slow], minlength=size).astype(np.float64)
    share, above = count / count.sum(), late / late.sum()
    shown = [
        code
        for code in np.argsort(-np.maximum(share, above), kind="stable").tolist()
        if (max(share[code], above[code]) >= _SMALL or code in significant)
        and not (attribute.folded and code == size - 1)
    ]
    shown = [code for code in shown if code in significant] + [
        code for code in shown if code not in significant
    ][:_SHOWN]
    table = np.full(size, len(shown), np.int32)
    table[shown] = np.arange(len(shown))
    codes = table[attribute.codes]
    rest = len(shown) < size
    names = [attribute.values[code] for code in shown] + ([OTHERS] if rest else [])
    number = len(names)
    counts = np.bincount(codes, minlength=number).astype(np.float64)
    seen = np.bincount(codes[world.slow], minlength=number).astype(np.float64)
    shares, aboves = _whole_shares(counts), _whole_shares(seen)
    low, high = _share_interval(world, codes, number, seen)
    rows = []
    for k, name in enumerate(names):
        share = shares[k]
        rows.append(
            {
                "attribute": attribute.name, "value": name,
                "share": float(share), "share_above": float(aboves[k]),
                "lift": float(aboves[k] / share) if share else None,
                "low": float(low[k] / share) if share else None,
                "high": float(high[k] / share) if share else None,
                "significant": k < len(shown) and shown[k] in significant,
                "explains": None if attribute.outcome else counter.explains(codes == k),
                "outcome": attribute.outcome,
            }
        )  # fmt: skip
    folded = [row for row in rows if row["value"] == OTHERS]
    rows = [row for row in rows if row["value"] != OTHERS]
    rows.sort(key=lambda row: (not row["significant"], -(row["explains"] or 0.0)))
    return rows + folded


def _share_interval(
    world: _World, codes: NDArray[Any], size: int, seen: Floats
) -> tuple[Floats, Floats]:
    """95 % interval of each value's share of the slow requests, with blocks as clusters.

    Clopper and Pearson's interval at the effective number of slow requests: as many independent
    ones have the variance that the blocks show.
    """
    from scipy import special  # here: reports import this module, and most have no use for it

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
    effective = part * (1 - part) / np.maximum(variance, 1e-300)
    effective = np.where(variance > 0, np.clip(effective, 1.0, total), min(blocks, total))
    hits = part * effective
    low = np.where(
        hits > 0, special.betaincinv(np.maximum(hits, 1e-9), effective - hits + 1, 0.025), 0.0
    )
    high = np.where(
        hits < effective,
        special.betaincinv(hits + 1, np.maximum(effective - hits, 1e-9), 0.975),
        1.0,
    )
    return np.asarray(np.minimum(low, part)), np.asarray(np.maximum(high, part))


class _Counterfactual:
    """What the threshold would be if some requests were as fast as the others of their time."""

    def __init__(self, values: Ints, period: Ints, level: float, threshold: float) -> None:
        self._order = np.argsort(-values, kind="stable")
        self._values, self._period = values, period
        self._above, self._threshold = 1 - level / 100, threshold
        self._load = np.bincount(period, minlength=_PERIODS).astype(np.float64)

    def explains(self, rows: Flags) -> float | None:
        """Return the part of the threshold that these requests explain; None without others."""
        rest = self._load - np.bincount(self._period[rows], minlength=_PERIODS)
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


def _frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    import pandas as pd

    frame = pd.DataFrame(rows, columns=list(_COLUMNS))
    numbers = ("share", "share_above", "lift", "low", "high", "explains")
    kinds: dict[str, Any] = dict.fromkeys(numbers, np.float64)
    return frame.astype(kinds | {"significant": np.bool_, "outcome": np.bool_})


# ------------------------------------------------------------
# Sentences.


def _findings(
    frame: pd.DataFrame,
    accepted: Sequence[_Cause],
    world: _World,
    attributes: Sequence[Attribute],
    above: str,
    threshold: float,
    level: float | None,
) -> list[str]:
    what = f"above {above}" if level is not None else f"above {format_duration(threshold)}"
    ends = []
    for attribute, code in _outcomes(world, attributes):
        rows_with = attribute.codes == code
        ends.append(
            f"{attribute.name}={attribute.values[code]} is an outcome of slow requests, not a "
            f"cause: {_percent(rows_with.mean())} of all requests, "
            f"{_percent(rows_with[world.slow].mean())} of those {what}"
        )
    tested = sum(not attribute.outcome for attribute in attributes)
    if not accepted and tested:
        blocks = np.unique(world.block[world.late]).size
        if blocks < 2 * _LEAST_BLOCKS:
            text = (
                f"too little evidence: the slow requests fall into {format_items(blocks, 'block')} "
                "of time, and it takes about "
                f"{2 * _LEAST_BLOCKS} to find what they have in common"
            )
        else:
            others = "others of their time" if world.seconds is not None else "rows around them"
            text = (
                f"nothing in particular stands out among {format_items(tested, 'attribute')}: slow "
                f"requests have the same mix as the {others}"
            )
        return [text, *ends]
    rows = {(row.attribute, row.value): row for row in frame.itertuples()}
    sentences = []
    for cause in accepted:
        names = " & ".join(attribute.name for attribute, _ in cause.parts)
        value = " & ".join(attribute.values[code] for attribute, code in cause.parts)
        row: Any = rows[names, value]
        label = " with ".join(f"{part.name}={part.values[code]}" for part, code in cause.parts)
        same = "".join(
            f" (the same requests as {part.name}={part.values[code]})" for part, code in cause.alias
        )
        text = (
            f"{label}{same} goes with slow requests: {_percent(row.share)} of all requests, "
            f"{_percent(row.share_above)} of those {what} (lift {row.lift:.3g}, "
            f"{row.low:.3g} to {row.high:.3g})"
        )
        if np.isfinite(row.explains) and row.explains > 0.005:
            name = (
                above
                if level is not None
                else f"p{format_percentile(round(100 * (1 - float(world.slow.mean())), 3))}"
            )
            text += (
                f"; if they were like the rest, {name} would be "
                f"{format_duration(threshold * (1 - row.explains))} instead of "
                f"{format_duration(threshold)}"
            )
        sentences.append(text)
    return [*sentences, *ends]


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %" if share >= 1e-4 else "< 0.01 %"
