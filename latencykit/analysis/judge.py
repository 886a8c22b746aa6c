"""`judge`: whether a new run is the same as, better or worse than the history of runs before it."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from latencykit._records import record
from latencykit._typing import Floats
from latencykit.core.probability import normal_quantile, student_quantile
from latencykit.errors import InvalidArgumentError

Verdict = Literal["same", "better", "worse", "confirm", "unknown"]


@record()
class GateSettings:
    """Numbers of the gate, chosen among 39 settings on all 44 CI histories of the benchmark."""

    # They meet all aims in 90 of 100 bootstraps of the histories. That share chose the settings of
    # a part, too, to test them on the rest: alarms per 100 runs, the share that lasts, and the
    # changes by 1.1, 1.25, 1.5 and 2 found are .63, .88, .37, .72, .91, .98 (each file left out in
    # turn) and .81, .86, .38, .73, .95, .98 (halves of the series). The 39 had been picked by
    # figures of all histories, so this is too good by a little. By file, the alarms are .73, 0 and
    # 1.19: ci-3, of two series, is above the aim of 1. In ci-1, × 1.1 is found in .31, close to the
    # aim of .30.

    # Runs whose joint evidence decides. Two let bursts of noise pass, four report a run later.
    deciding_runs: int = 3
    # Runs that describe the noise: more hide a machine that was replaced, fewer miss its modes.
    window_runs: int = 45
    # Runs replayed to learn when the level last changed; bounds the cost of a long history.
    replayed_runs: int = 160
    # Fewer earlier runs show no noise; of five, the rate of false alarms is that of ten.
    min_history_runs: int = 5
    # Runs at a new level before it can change again: guards against two alarms per change.
    min_level_runs: int = 4
    # Kernels are at least as wide as this relative change: guards against tied and rounded values.
    min_kernel_width: float = 0.02
    # Distance to the neighbour that sets a kernel's width, as a share of √runs: keeps modes apart.
    neighbour_share: float = 0.75
    # Degrees of freedom of the kernels: 4 and more take the tail of the noise for changes.
    kernel_dof: int = 3
    # Share of runs that may lie anywhere, and the width of "anywhere" in log units.
    outlier_share: float = 0.02
    outlier_range: float = 3.0
    # Scale of the prior of changes in log units: × 2 either way is ordinary.
    change_scale: float = 0.7
    # Earlier stretches of runs that make a level one of the modes of machines that take turns: with
    # one, a regression that was mended and comes back is missed. Of the worlds, "ten runs each".
    mode_visits: int = 2
    # A smaller relative change of the level is "the same".
    min_change: float = 0.03
    # A small change that lasts: this many runs against as many as three times before them, ranked;
    # standard errors of the rank sum that the difference takes (p < 1e-4), and the relative change.
    lasting_runs: int = 10
    before_runs: int = 30
    least_before: int = 15
    lasting_errors: float = 3.9
    # Log Bayes factors. "better" fails no build and is common where runners are replaced.
    worse_evidence: float = 5.5
    better_evidence: float = 8.0
    # Of one or two runs: above it another run is worth its price (7 of 100 runs of the histories).
    confirm_evidence: float = 2.0


SETTINGS = GateSettings()
BAND = (0.025, 0.975)
"""Quantiles of the noise band: where 95 of 100 unchanged runs lie."""


@record()
class RunVerdict:
    """A new run against its history."""

    verdict: Verdict
    missing: int  # earlier runs that are missing for a verdict; 0 except where it is "unknown"
    level: float  # median of the runs since the last change, before the judged one; NaN without any
    low: float  # the noise band around it, where 95 of 100 unchanged runs lie
    high: float
    changes: tuple[int, ...] = ()  # positions in the history at which the level changed before
    noise: float = math.nan  # relative standard deviation of runs


def judge(history: ArrayLike, new: ArrayLike) -> Verdict:
    """Judge a new run by the runs before it.

    Parameters
    ----------
    history : array of float, shape (runs,)
        One number above 0 per earlier run, oldest first; higher is worse. Turn rates into times.
    new : float or array of float, shape (n,)
        The run that is judged: one value, or those of runs that repeat it.

    Returns
    -------
    {"same", "better", "worse", "confirm", "unknown"}
        ``"worse"`` and ``"better"``: the level changed, by the last three runs together (two that
        deviate far are enough); a change is reported once. ``"confirm"``: one or two runs deviate;
        run it again and append the value to `new`. ``"unknown"``: fewer than five earlier runs.

    Raises
    ------
    InvalidArgumentError
        For a number that is not finite or not above 0, or without a new run.

    Notes
    -----
    The noise of runs is not assumed: it is a mixture of Student kernels on the logarithms of the
    earlier runs, as wide as the distance between neighbours. So two kinds of runner remain two
    modes. The last three runs are evidence of a change if the same mixture, moved by some factor,
    explains them better than the mixture where it is (a Bayes factor over the factors that would
    put the middle run onto an earlier one). After a change the level is that of the runs since; the
    noise of earlier levels is kept until there are forty-five runs.

    Examples
    --------
    >>> steady = [10.0, 10.2, 9.9, 10.1, 9.8] * 4
    >>> judge(steady, 10.1), judge(steady, 15.0), judge(steady, [15.0, 14.8, 15.1])
    ('same', 'confirm', 'worse')
    >>> judge(steady + [15.0, 14.8, 15.1], 15.0)  # the new level is known
    'same'
    """
    return judged(history, new).verdict


def judged(
    history: ArrayLike, new: ArrayLike, *, family: int = 1, error: float = 0.0
) -> RunVerdict:
    """Judge as `judge` does, and return the level, the noise band and the changes, too."""
    # `family` is the number of rows that are judged together: a change of one of them is less
    # likely by as much, so that the false alarms are those of one gate. `error` is the relative
    # standard error of the new run, by which the noise of earlier runs is widened where it is
    # larger.
    try:
        earlier, later = (np.atleast_1d(np.asarray(part, np.float64)) for part in (history, new))
    except (TypeError, ValueError):
        raise InvalidArgumentError(
            "the gate takes numbers, oldest first, such as [run.percentile(99) for run in runs]; "
            "lk.History judges data"
        ) from None
    values = np.concatenate([earlier, later]) if earlier.ndim == later.ndim == 1 else earlier
    if values.ndim != 1 or not later.size:
        raise InvalidArgumentError("the gate takes numbers, oldest first, and at least one new run")
    if not (np.isfinite(values).all() and (values > 0).all()):
        raise InvalidArgumentError(
            "the gate takes finite numbers above 0; leave out runs without one, and turn rates "
            "into times"
        )
    skipped = _skipped(values.size)
    logs = np.log(values[skipped:])
    missing = max(0, SETTINGS.min_history_runs - earlier.size)
    needed = math.log(max(family, 1))
    changes = _changes(logs.tobytes(), needed, error)
    # Small changes that last: positions of the first run of each, and whether upwards.
    lasting: list[tuple[int, bool]] = []
    for end in range(SETTINGS.lasting_runs + SETTINGS.least_before, logs.size + 1):
        last = max([0, *(at for at, _ in (*changes, *lasting) if at < end)])
        if higher := _lasts(logs, end, last):
            lasting.append((end - SETTINGS.lasting_runs, higher > 0))
    changes = tuple(sorted({*changes, *lasting}))
    # A change that the judged runs decide is theirs: they are compared with the level before.
    recent = [
        (at, up)
        for at, up in changes
        if at + (_LASTING if (at, up) in lasting else _LAG) + skipped >= earlier.size
    ]
    if recent:  # the latest change may return to a level that came back before: a machine's turn
        edges = [0, *(at for at, _ in changes), logs.size]
        levels = [float(np.median(logs[a:b])) for a, b in itertools.pairwise(edges)]
        old, visited = (
            sum(abs(level - other) < SETTINGS.min_change for level in levels[:-2])
            for other in levels[-2:]
        )
        recent = [] if old >= 1 and visited >= SETTINGS.mode_visits else recent
    first = min((at for at, _ in recent), default=earlier.size - skipped)
    known = tuple(at for at, _ in changes if at < first)
    compared = min([earlier.size - skipped, *(at for at, _ in recent)])
    level, low, high, noise = _band(logs[: max(compared, 0)], known)
    verdict: Verdict = "same"
    if missing:
        verdict = "unknown"
    elif recent:
        verdict = "worse" if recent[-1][1] else "better"
    elif not changes or logs.size - changes[-1][0] - _LAG > SETTINGS.min_level_runs:
        starts = tuple(at for at, _ in changes)
        evidence = (
            abs(_evidence(logs[:-count], starts, logs[-count:], error))
            for count in range(1, SETTINGS.deciding_runs)
        )
        if max(evidence) > SETTINGS.confirm_evidence + needed:
            verdict = "confirm"
    return RunVerdict(
        verdict,
        missing,
        math.exp(level),
        math.exp(low),
        math.exp(high),
        tuple(at + skipped for at in known),
        noise,
    )


def bands_of(
    values: Floats, family: int = 1, error: float = 0.0
) -> tuple[Floats, Floats, Floats, list[int]]:
    """Return level and noise band before each run, and the positions where the level changed."""
    # Each run is judged by those before it, as it was when it was new; `family` and `error` are as
    # in `judged`. The values are above 0.
    logs, found = np.log(values), list[int]()
    bands = np.full((3, values.size), math.nan)
    for end in range(1, values.size + 1):
        skipped = _skipped(end)
        part = logs[skipped:end]
        changes = _changes(part.tobytes(), math.log(max(family, 1)), error)
        if changes and changes[-1][0] + SETTINGS.deciding_runs == part.size:
            found.append(changes[-1][0] + skipped)
        elif _lasts(logs, end, max(found, default=0)):
            found.append(end - SETTINGS.lasting_runs)
        known = tuple(sorted(at - skipped for at in found if at > skipped))
        bands[:, end - 1] = _band(part[:-1], tuple(at for at in known if at < part.size - 1))[:3]
    return *np.exp(bands), sorted(found)


def _skipped(size: int) -> int:
    """Runs before those replayed: multiples, so that replays share their beginning."""
    return max(0, (size - SETTINGS.replayed_runs) // 40 * 40)


_LAG, _LASTING = SETTINGS.deciding_runs - 1, SETTINGS.lasting_runs - 1


def _lasts(values: Floats, end: int, last: int) -> float:
    """How ten runs up to `end` rank against thirty before, since the `last` change; 0 if alike."""
    begin = end - SETTINGS.lasting_runs
    old = values[max(last, begin - SETTINGS.before_runs) : max(begin, 0)]
    if old.size < SETTINGS.least_before:
        return 0.0
    new = values[begin:end]
    # The rank sum's normal approximation (Mann and Whitney, 1947) is good to its tail.
    higher = float(np.sign(new[:, None] - old).mean())  # 2 U / n m - 1
    error = math.sqrt((new.size + old.size + 1) / (3 * new.size * old.size))
    moved = abs(float(np.median(new) - np.median(old))) >= SETTINGS.min_change
    return higher if moved and abs(higher) > SETTINGS.lasting_errors * error else 0.0


@functools.lru_cache(maxsize=8192)
def _changes(logs: bytes, more: float, error: float) -> tuple[tuple[int, bool], ...]:
    """The positions at which the level changed, and whether upwards, as seen run by run."""
    values = np.frombuffer(logs)
    if values.size < SETTINGS.min_history_runs + 1:
        return ()
    before = _changes(logs[:-8], more, error)
    start = before[-1][0] if before else 0
    position = values.size - SETTINGS.deciding_runs
    if position - start < SETTINGS.min_level_runs:
        return before
    deciding = values[position:]
    starts = tuple(at for at, _ in before)
    evidence = _evidence(values[:position], starts, deciding, error)
    needed = SETTINGS.worse_evidence if evidence > 0 else SETTINGS.better_evidence
    if abs(evidence) > needed + more:
        return (*before, (position, evidence > 0))
    return before


def _levelled(values: Floats, starts: tuple[int, ...]) -> Floats:
    """The latest runs, those of earlier levels moved to the current one."""
    edges = [0, *(at for at in starts if at < values.size), values.size]
    current = values[edges[-2] :][-SETTINGS.window_runs :]
    level, parts, room = np.median(current), [current], SETTINGS.window_runs - current.size
    for k in range(len(edges) - 3, -1, -1):
        part = values[edges[k] : edges[k + 1]][-room:] if room else values[:0]
        if part.size:
            parts.append(part - np.median(part) + level)
            room -= part.size
    return np.concatenate(parts)


def _evidence(values: Floats, starts: tuple[int, ...], deciding: Floats, error: float) -> float:
    """Log Bayes factor of a change before the deciding runs; negative where they are lower."""
    noise = _levelled(values, starts)
    distance = np.sort(np.abs(noise[:, None] - noise), axis=1)
    neighbour = max(1, round(SETTINGS.neighbour_share * math.sqrt(noise.size)))
    spread = 1.4826 * float(np.median(np.abs(noise - np.median(noise))))
    least = max(SETTINGS.min_kernel_width, error)
    width = np.clip(distance[:, min(neighbour, noise.size - 1)], least, max(spread, least))
    dof = SETTINGS.kernel_dof
    peak = math.gamma((dof + 1) / 2) / (math.gamma(dof / 2) * math.sqrt(dof * math.pi))

    def log_density(at: Floats) -> Floats:
        kernels = (1 + ((at[..., None] - noise) / width) ** 2 / dof) ** (-(dof + 1) / 2) / width
        inside = (1 - SETTINGS.outlier_share) * peak * kernels.mean(axis=-1)
        return np.asarray(np.log(inside + SETTINGS.outlier_share / SETTINGS.outlier_range))

    moves = np.unique(np.median(deciding) - noise)
    prior = -np.abs(moves) / SETTINGS.change_scale - math.log(noise.size)
    moved = log_density(deciding[None] - moves[:, None]).sum(axis=1) + prior
    up, down = (
        float(np.logaddexp.reduce(moved[side], initial=-np.inf))
        for side in (moves > SETTINGS.min_change, moves < -SETTINGS.min_change)
    )
    if up == down:
        return 0.0
    factor = float(np.logaddexp(up, down) - log_density(deciding).sum())
    return max(factor, 0.0) if up > down else min(-factor, 0.0)


def _band(values: Floats, starts: tuple[int, ...]) -> tuple[float, float, float, float]:
    """Level and noise band of the next run, and the standard deviation, as logarithms."""
    if not values.size:
        return (math.nan,) * 4
    noise = _levelled(values, starts)
    # Of n runs that are alike, the next one is below the kth lowest with probability k / (n + 1),
    # whatever the noise; a standard deviation is not to hang on the outermost run of many. Of few
    # runs, the quantiles are those of their normal scores (Blom, 1958).
    low, high = np.quantile(noise, BAND, method="weibull")
    scores = [normal_quantile((k + 0.625) / (noise.size + 0.25)) for k in range(noise.size)]
    spread = float(np.ptp(np.quantile(noise, BAND)) / max(np.ptp(np.quantile(scores, BAND)), 1e-9))
    level = float(np.median(values[starts[-1] if starts else 0 :][-SETTINGS.window_runs :]))
    reach = 0.0
    if noise.size * BAND[0] < 1:  # where 95 of 100 lie is beyond the outermost of so few
        degrees = max(noise.size - 1, 1)
        reach = student_quantile(0.95, degrees) * spread * math.sqrt(1 + 1 / noise.size)
    return level, min(float(low), level - reach), max(float(high), level + reach), spread
