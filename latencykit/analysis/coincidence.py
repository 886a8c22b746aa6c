"""`coincide`: what happened when requests were slow, from events of other logs and the run itself.

How often events coincide with stalls by chance is measured by moving the clocks against each other:
every shift keeps the rhythm of the events and that of the stalls, and breaks only what connects the
two. Shifts are short, since both may be confined to the same busy hours, and not wrapped around the
end of the run, which would break the rhythm of periodic events; what leaves the run is not counted.
Of periodic events and stalls only the phase is evidence. Irregular ones match one by one, which is
stronger: gaps between such stalls are exchanged as well.
Several statistics of several sources are compared under the same shifts, so that the probability of
the best of them under no connection is known (step-down min-p without the steps: Westfall and
Young, Resampling-Based Multiple Testing, 1993, section 2.3).

From top to bottom: the result and the operation, sources on the clock of the run, their test,
words.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

import numpy as np

from latencykit._arrays import Value
from latencykit._records import record
from latencykit._text import format_items
from latencykit._typing import Flags, Floats
from latencykit.analysis.omission import stalls_of
from latencykit.analysis.period import period_of
from latencykit.analysis.slow_times import Incident, SlowTimes, own_findings, probability_text
from latencykit.analysis.stalls import merge_intervals
from latencykit.core.histogram_log import HistogramLog
from latencykit.core.repr_html import listing_html
from latencykit.core.run import code_of
from latencykit.core.samples import Samples
from latencykit.units import format_duration

if TYPE_CHECKING:
    import pandas as pd

    from latencykit.core.events import Events


@record()
class CoincidenceRules:
    """When events coincide with slow times by more than chance; chosen on `truth_events`."""

    # of runs with any false finding about events
    max_false_share: float = 0.035
    # of events of a file that are looked at apart
    max_kinds: int = 12
    # of a kind, and coincidences behind a finding: fewer coincide by chance
    min_events: int = 3
    # that are compared with events: bounds the time of a comparison
    max_slow_times: int = 400
    # of the clocks against each other
    shifts: int = 2000
    # more shifts where there are many looks: the best of many is rarer
    shifts_per_look: int = 60
    # gaps between events or slow times: so far are clocks moved
    max_shift_gaps: float = 4.0
    # that effects may lag behind events
    max_lag_s: float = 30.0
    # that events without a length may have an effect
    effects_s: tuple[float, ...] = (0.0, 5.0, 60.0, 600.0)
    # events to find a rhythm in
    max_rhythm_events: int = 300
    # of the mean gap: gaps that differ by less are a rhythm
    max_rhythm_spread: float = 0.08
    # of the slow times: less is taken for that much
    min_share: float = 1e-3
    # places by which a gap of a surrogate may move
    max_gap_places: float = 6.0
    # stalls, the longest, in which a common lag is looked for
    max_near_stalls: int = 64


RULES = CoincidenceRules()


@record(eq=False)
class Coincidence(Value):
    """Events and the slow times of a run that they coincide with."""

    # `rows` has one row per source, and per kind of its events that says more: ``source``,
    # ``stalls`` (how many there were), ``coincide`` (with how many of them it coincides),
    # ``expected`` (by chance), ``p`` (adjusted for all looks), ``lag`` (ns, from the start of an
    # event to that of the stall), ``share_above`` (of the slow requests), ``significant``. `stalls`
    # has the columns of `find_stalls`, and ``suspect``: the source that coincides more often than
    # by chance, or "".

    threshold: float  # latency above which requests count as slow, ns
    rows: pd.DataFrame
    stalls: pd.DataFrame
    findings: tuple[str, ...]  # what chance does not explain
    notes: tuple[str, ...]  # what limits the findings
    lanes: tuple[Events, ...] = ()  # the events in seconds from the start of the run
    data: Samples | HistogramLog | None = field(default=None, repr=False)
    incident: Incident | None = None  # the short time into which most of the slow requests fall

    @property
    def table(self) -> pd.DataFrame:
        """One row per source: `rows`."""
        return self.rows

    def _repr_html_(self) -> str:
        columns = (self.stalls[name] for name in ("start", "duration", "worst", "suspect"))
        stalls = [
            (f"{start:.3f} s", format_duration(1e9 * length), format_duration(worst), str(suspect))
            for start, length, worst, suspect in zip(*columns, strict=True)
        ]
        header = ("stall at", "length", "worst request", "suspect")
        lines = [*self.findings, *self.notes]
        return listing_html("Coincidence", header, stalls, lines)

    def __repr__(self) -> str:
        suspects = [str(row.source) for row in self.rows.itertuples() if row.significant]
        names = ", ".join(dict.fromkeys(suspects)) or "no suspects"
        return f"Coincidence({format_items(len(self.stalls), 'stall')}, {names})"


def coincide(
    data: Samples | HistogramLog, events: Iterable[Events] = (), *, above: str | float = "p99"
) -> Coincidence:
    """Find what coincides with the stalls and the slow requests (`above`) of a run.

    Without events only the run's own evidence is examined: a period of its stalls, the time of day,
    the first minutes, idle times, one connection. Findings are wrong in at most 5 % of runs without
    any connection.

    >>> import numpy as np
    >>> from latencykit.core.events import Events
    >>> from latencykit.simulate import Server, Stall, fixed, open_loop
    >>> at = np.array([3.0, 14.0, 22.0, 41.0, 47.0, 55.0])
    >>> server = Server("1ms", stalls=[Stall(t, 0.5) for t in at])
    >>> run = open_loop(server, fixed(rate=200, duration=60), duration=60)
    >>> gc = Events("gc.log", "jvm-gc", at, at + 0.5, ["Pause Full"] * 6)
    >>> found = coincide(run, [gc])
    >>> found.rows[["source", "stalls", "coincide", "significant"]].values.tolist()
    [['gc.log', 6, 6, True]]
    """
    import pandas as pd

    stalls = stalls_of(data)
    run = SlowTimes.of(data, stalls, above)
    findings = own_findings(run, stalls)
    sources, notes = _sources(run, events)
    results = _results(run, sources)
    shown = [result for result in results if result.of_file or result.adds]
    suspects = np.full(len(stalls), "", dtype=object)
    for result in sorted(
        (result for result in shown if result.significant), key=lambda result: -result.surprise
    ):
        suspects[result.hit & (suspects == "")] = result.name
    columns = ("source", "stalls", "coincide", "expected", "p", "lag", "share_above", "significant")
    table = [
        (
            result.name, len(stalls), int(result.hit.sum()), result.expected, result.p,
            result.lag * 1e9, result.share, result.significant,
        )
        for result in shown
    ]  # fmt: skip
    detailed = {result.name.split(": ")[0] for result in shown if result.adds}
    findings += [
        result.text(run.name)
        for result in shown
        if result.significant and result.name not in detailed
    ]
    frame = stalls.to_frame()
    frame["suspect"] = suspects
    if table and len(stalls):
        left = int((suspects == "").sum())
        sentence = f"no suspect explains {left} of {format_items(len(stalls), 'stall')}"
        if left < len(stalls):
            findings += [sentence] if left else []
        else:
            notes.append(sentence)
    rhythm = period_of(stalls.start, run.span)
    for result, source in zip(results, sources, strict=True):
        if rhythm is None or result.significant or not result.hit.mean() > 0.5:
            continue
        own = period_of(source.events.start, run.span)
        if own is not None and abs(own.seconds / rhythm.seconds - 1) < 0.02:
            notes.append(
                f"{result.name} and the stalls have one period "
                f"({format_duration(own.seconds * 1e9)}), so only their phase is evidence: they "
                f"coincide as well by chance with probability {result.p:.2g}; a run in which the "
                "period of one of them is changed would show more"
            )
    notes += [note for note in stalls.notes if code_of(note) != "period"]
    return Coincidence(
        run.threshold,
        pd.DataFrame(table, columns=columns),
        frame,
        tuple(findings),
        tuple(dict.fromkeys(notes)),
        tuple(source.events for source in sources if source.parent is None),
        data,
        run.incident(),
    )


# ------------------------------------------------------------
# Sources: files, and kinds of events within a file, on the clock of the run.


@record()
class _Source:
    events: Events  # seconds from the start of the run
    name: str
    parent: int | None  # position of its file
    placed: bool  # whether its clock is known


def _sources(run: SlowTimes, logs: Iterable[Events]) -> tuple[list[_Source], list[str]]:
    """Files and kinds of their events, and remarks on the clocks of files."""
    sources: list[_Source] = []
    notes: list[str] = []
    names: dict[str, int] = {}
    for events in logs:
        names[events.name] = names.get(events.name, 0) + 1
        again = names[events.name]
        name = events.name if again == 1 else f"{events.name} ({again})"
        placed = True
        if events.clock == "relative":
            placed = run.epoch is None or events.offset is not None
            if run.epoch is None:
                notes.append(f"{name}: taken to have started with the run")
        elif run.epoch is None:
            placed = False
        else:
            events = events.shifted(-run.epoch)
        notes += [f"{name}: {note}" for note in events.notes]
        if not placed:
            notes.append(
                f"{name}: its clock and that of the run have nothing in common; give the offset or "
                f"its process' start: {name}@+10s, {name}@2026-01-31T12:00:00Z"
            )
        elif len(events) and not len(events.between(run.first, run.first + run.span)):
            before = run.first - events.end.max()
            after = events.start[0] - run.first - run.span
            where = "before the run begins" if before > 0 else "after the run ended"
            notes.append(
                f"{name}: none of its events lies within the run (the nearest is "
                f"{format_duration(1e9 * (before if before > 0 else after), 2)} {where}); another "
                f"zone or host? An offset can be given: {name}@+3600s"
            )
        file = len(sources)
        sources.append(_Source(replace(events, name=name), name, None, placed))
        labels, count = np.unique(events.label, return_counts=True)
        if labels.size > 1:
            chosen = np.flatnonzero(count >= RULES.min_events)
            chosen = chosen[np.argsort(-count[chosen], kind="stable")][: RULES.max_kinds]
            for label in labels[chosen].tolist():
                part = sources[file].events.select(events.label == label)
                sources.append(_Source(part, f"{name}: {label}" if label else name, file, placed))
    return sources, notes


# ------------------------------------------------------------
# The test of all sources under common shifts of the clock.


@record()
class _Result:
    name: str
    of_file: bool
    hit: Flags  # the stalls that it coincides with
    adds: bool = False  # says more than its file
    expected: float = 0.0  # by chance
    p: float = math.nan
    lag: float = math.nan  # seconds
    share: float = 0.0  # of the slow requests
    by_chance: float = 0.0  # the same under shifts
    within: float = 0.0  # seconds after the event
    of_stalls: bool = False  # the stalls alone show it, and `p` is theirs
    slow_p: float = 1.0
    significant: bool = False

    @property
    def surprise(self) -> float:
        """How far the coincidences exceed those by chance."""
        return float((self.hit.sum() + 1e-9) / (self.expected + 0.1))

    def text(self, threshold: str) -> str:
        """Return the finding in a sentence."""
        number, parts = int(self.hit.sum()), []
        after = f" (within {format_duration(self.within * 1e9)} after it)" if self.within else ""
        if self.of_stalls:
            chance = f"{self.expected:.1f}" if self.expected < 10 else f"{self.expected:.0f}"
            parts.append(
                f"coincides with {number} of {format_items(self.hit.size, 'stall')}{after} "
                f"(by chance {chance}; {probability_text(self.p)})"
            )
        of_slow = f"{100 * self.share:.0f} % of the requests above {threshold}"
        chance = f"by chance {100 * self.by_chance:.0f} %"
        if not parts:
            parts = [f"coincides with {of_slow}{after} ({chance}; {probability_text(self.p)})"]
        elif self.share > self.by_chance and self.slow_p <= RULES.max_false_share:
            parts.append(f"{of_slow} ({chance})")
        return f"{self.name} {' and with '.join(parts)}"


@record()
class _Look:
    """One statistic of one source: its value and its values under shifts."""

    source: int
    kind: str
    seen: float
    shifted: Floats
    lag: float = 0.0
    within: float = 0.0


def _results(run: SlowTimes, sources: Sequence[_Source]) -> list[_Result]:
    active = [k for k, source in enumerate(sources) if source.placed and len(source.events)]
    number = sum(2 * _effects(sources[k].events, run).size + 2 for k in active)
    shifts = min(max(RULES.shifts, RULES.shifts_per_look * number), 6 * RULES.shifts)
    rng = np.random.default_rng(2026)
    # Evenly to both sides, each at random within its step: as far as several gaps between events or
    # slow times, since both may be confined to the same hours of a run.
    moves = 2 * ((np.arange(shifts) + rng.random(shifts)) / shifts - 0.5)
    apart = [_gap(sources[k].events.start, run.span) for k in active]
    rhythm = _periodic(run.begin, run.span)
    targets = {
        (kind, irregular): _Targets.of(
            *columns,
            moves
            * min(run.span / 2, RULES.max_shift_gaps * max(*apart, _gap(columns[0], run.span))),
            rng if irregular else None,
        )
        for kind, columns in (
            ("stalls", (run.begin, run.end, np.ones(run.begin.size), run.tolerance)),
            ("slow", (run.slow_begin, run.slow_end, run.weight, run.tolerance)),
        )
        for irregular in ((False,) if rhythm else (False, True))
        if columns[0].size and active
    }  # fmt: skip
    looks = []
    for k in active:
        irregular = not rhythm and not _periodic(sources[k].events.start, run.span)
        same = {
            kind: target for (kind, shuffled), target in targets.items() if shuffled == irregular
        }
        looks += _looks_of(run, k, sources[k].events, same, lags=irregular)
    adjusted = _adjusted(looks)
    results = []
    # Of looks that are as good, the one that moves and extends the events least.
    order = {"stalls": 0, "slow": 1, "lag": 2}
    for at, source in enumerate(sources):
        own = [one for one in zip(looks, adjusted.tolist(), strict=True) if one[0].source == at]
        if not own:
            none = np.zeros(run.begin.size, np.bool_)
            results.append(_Result(source.name, source.parent is None, none))
            continue
        p, events = min(p for _, p in own), source.events
        ties = [look for look, each in own if each <= p * 1.0001]
        look = min(ties, key=lambda one: (order[one.kind], one.within))
        begin, end = events.start + look.lag, events.end + look.lag + look.within
        hit = _overlap(
            *merge_intervals(begin - run.tolerance, end + run.tolerance), run.begin, run.end
        )
        by_kind = {
            each.kind: float(each.shifted.mean()) for each, _ in own if each.within == look.within
        }
        expected, by_chance = hit.size * by_kind.get("stalls", 0.0), by_kind.get("slow", 0.0)
        left, right = merge_intervals(begin, end)
        slow_hit = _overlap(left, right, run.slow_begin, run.slow_end)
        share = float(run.weight @ slow_hit) / max(float(run.weight.sum()), 1e-9)
        lag = math.nan
        if hit.any():  # of stalls, from the start of the event that is nearest
            behind = _after(np.unique(events.start), run.begin[hit] - look.lag)
            lag = float(np.median(behind)) + look.lag
        met = np.searchsorted(right, run.slow_begin[slow_hit])
        evidence = max(int(hit.sum()), np.unique(met).size)
        more = hit.sum() > expected or share > by_chance
        stall_p = min((each for one, each in own if one.kind != "slow"), default=1.0)
        of_stalls = bool(hit.sum() > expected and stall_p <= RULES.max_false_share)
        results.append(
            _Result(
                source.name,
                source.parent is None,
                hit,
                expected=expected,
                p=stall_p if of_stalls else p,
                lag=lag,
                share=share,
                by_chance=by_chance,
                within=look.within,
                of_stalls=of_stalls,
                slow_p=min((each for one, each in own if one.kind == "slow"), default=1.0),
                significant=bool(
                    p <= RULES.max_false_share and evidence >= RULES.min_events and more
                ),
            )
        )
    return [
        replace(
            result,
            adds=source.parent is not None
            and result.significant
            and result.surprise > 1.1 * results[source.parent].surprise,
        )
        for result, source in zip(results, sources, strict=True)
    ]


def _adjusted(looks: Sequence[_Look]) -> Floats:
    """The p of each look, given that the best of all of them is taken."""
    if not looks:
        return np.zeros(0)
    table = np.stack([np.append(look.shifted, look.seen) for look in looks])
    # p of each look at every shift: the share of all shifts that do as well.
    p = np.stack(
        [np.searchsorted(np.sort(-row), -row + 1e-12, "right") / row.size for row in table]
    )
    # Of looks that are equally rare, the one that accounts for more of the slow times goes first:
    # sources that meet a few stalls by chance do not hide the one that meets all.
    p /= np.maximum(table, RULES.min_share) ** 2
    best = np.sort(p.min(axis=0))
    return np.asarray(np.searchsorted(best, p[:, -1] + 1e-12, "right") / best.size)


def _gap(at: Floats, span: float) -> float:
    """The usual time between times."""
    gaps = np.diff(np.unique(at))
    return float(np.median(gaps)) if gaps.size else span


def _periodic(at: Floats, span: float) -> bool:
    """Whether times have a rhythm, which of few of them their gaps alone can show."""
    times = np.unique(at)[: RULES.max_rhythm_events]
    if times.size < 3:
        return False
    gaps = np.diff(times)
    if float(gaps.std()) < RULES.max_rhythm_spread * float(gaps.mean()):
        return True
    few = times.size < RULES.max_rhythm_events
    return (
        period_of(
            times - times[0], max(span, float(np.ptp(times))) if few else float(np.ptp(times))
        )
        is not None
    )


@record()
class _Targets:
    """Slow times, apart and in order, and where surrogates of them lie."""

    begin: Floats
    end: Floats
    weight: Floats
    moved: Floats  # (shifts, targets): begin of each

    @classmethod
    def of(
        cls,
        begin: Floats,
        end: Floats,
        weight: Floats,
        tolerance: float,
        moves: Floats,
        rng: np.random.Generator | None,
    ) -> _Targets:
        together = tolerance + float(np.median(end - begin))
        left, right = merge_intervals(begin, end + together)
        owner = np.searchsorted(left, begin, "right") - 1
        weight = np.bincount(owner, weight, left.size).astype(np.float64)
        right = right - together
        if left.size > RULES.max_slow_times:  # the heaviest, of equals those evenly spread
            spread = np.random.default_rng(1).random(left.size)
            chosen = np.sort(np.lexsort((spread, -weight))[: RULES.max_slow_times])
            left, right, weight = left[chosen], right[chosen], weight[chosen]
        length = right - left
        moved: Floats = np.broadcast_to(left, (moves.size, left.size))
        if left.size > 2 and rng is not None:
            # Gaps change places with others nearby: slow phases stay, irregular times are others.
            gap = left[1:] - right[:-1]
            keys = np.arange(gap.size) + rng.random((moves.size, gap.size)) * RULES.max_gap_places
            steps = length[:-1] + gap[np.argsort(keys, axis=1)]
            moved = left[0] + np.concatenate(
                [np.zeros((moves.size, 1)), np.cumsum(steps, axis=1)], axis=1
            )
        return cls(left, right, weight, moved + moves[:, None])

    def shares(
        self, limits: tuple[float, float], left: Floats, right: Floats
    ) -> tuple[float, Floats]:
        """The share that meets windows, and the same of the surrogates within the limits."""
        inside = (self.moved >= limits[0]) & (self.moved <= limits[1])
        number = inside @ self.weight
        length = self.end - self.begin
        total = float(self.weight.sum())
        met = _overlap(left, right, self.moved, self.moved + length)
        counted = (met * inside) @ self.weight
        share = np.where(number >= total / 2, counted / np.maximum(number, 1e-9), np.nan)
        # Of surrogates that leave too little within them, the values of others stand in.
        known = share[np.isfinite(share)]
        share[~np.isfinite(share)] = np.resize(known if known.size else [1.0], share.size)[
            ~np.isfinite(share)
        ]
        return float(_overlap(left, right, self.begin, self.end) @ self.weight) / total, share


def _effects(events: Events, run: SlowTimes) -> Floats:
    """Seconds after events that are looked at: for points, whose effects have a length as well."""
    if not len(events) or float((events.end > events.start).mean()) > 0.5:
        return np.zeros(1)
    gap = float(np.median(np.diff(events.start))) if len(events) > 1 else run.span
    return np.array([w for w in RULES.effects_s if w <= max(gap, 1e-9) / 4])


def _looks_of(
    run: SlowTimes, source: int, events: Events, targets: dict[str, _Targets], *, lags: bool
) -> list[_Look]:
    """Statistics of a source, and what they are for surrogates of the slow times."""
    looks: list[_Look] = []
    first, last = run.first, run.first + run.span
    limits = min(first, float(events.start[0])), max(last, float(events.end.max()))
    for within in _effects(events, run).tolist():
        for kind, target in targets.items():
            reach = run.tolerance if kind == "stalls" else 0.0
            windows = merge_intervals(events.start - reach, events.end + within + reach)
            looks.append(_Look(source, kind, *target.shares(limits, *windows), within=within))
    slow, brief = targets.get("slow"), float(np.median(events.end - events.start))
    if slow is not None and isinstance(run.data, HistogramLog) and 0 < brief < 2 * run.tolerance:
        # What a brief stop delays is answered when it ends, and counted in that interval alone.
        at = np.unique(events.end)
        looks.append(_Look(source, "slow", *slow.shares(limits, at, at)))
    stalls = targets.get("stalls")
    if stalls is None or stalls.begin.size < RULES.min_events or not lags:
        return looks
    starts = np.unique(events.start)
    width = run.tolerance * (2 if isinstance(run.data, HistogramLog) else 4)
    gap = float(np.median(np.diff(starts))) if starts.size > 1 else run.span
    farthest = min(RULES.max_lag_s, gap / 4, run.span / 20)

    if farthest > width:
        # All pairs of stalls are looked at.
        chosen = np.sort(
            np.argsort(stalls.begin - stalls.end, kind="stable")[: RULES.max_near_stalls]
        )
        begins = np.concatenate([stalls.begin[None, chosen], stalls.moved[:, chosen]])
        inside = (begins >= limits[0]) & (begins <= limits[1])
        inside[0] = True
        after = _after(starts, begins)
        after = np.where(inside & (np.abs(after) <= farthest), after, np.nan)
        common = np.zeros(after.shape)  # stalls whose lag is that of each stall, nearly
        for k in range(begins.shape[1]):
            near = np.nan_to_num(1.0 - np.abs(after - after[:, k : k + 1]) / width)
            common[:, k] = np.maximum(near, 0.0).sum(axis=1)
        value = common.max(axis=1) / np.maximum(inside.sum(axis=1), begins.shape[1] / 2)
        lag = after[0, int(np.argmax(common[0]))]
        if value[0] > 0 and np.isfinite(lag):
            lag = float(np.nanmedian(after[0][np.abs(after[0] - lag) <= width]))
            looks.append(_Look(source, "lag", float(value[0]), value[1:], lag=lag))
    return looks


def _after(starts: Floats, begin: Floats) -> Floats:
    """Seconds from the nearest start of an event, negative before it."""
    at = np.searchsorted(starts, begin)
    before = begin - starts[np.maximum(at - 1, 0)]
    following = begin - starts[np.minimum(at, starts.size - 1)]
    return np.where(np.abs(before) <= np.abs(following), before, following)


def _overlap(left: Floats, right: Floats, begin: Floats, end: Floats) -> Flags:
    """Whether each [begin, end] meets one of the windows, which are apart and ascend."""
    first = np.searchsorted(right, begin)
    start = np.append(left, np.inf)[first]
    return np.asarray(start <= end)
