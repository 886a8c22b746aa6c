"""Changes of the mix: more of what is slow anyway, or slower requests of a kind.

The share of slow requests is Σ qᵥ rᵥ over the values v of an attribute, with qᵥ the share of the
requests that have the value and rᵥ the share of those that are slow. Between two times it changes
by Σ Δqᵥ r̄ᵥ, which comes from the mix, and Σ q̄ᵥ Δrᵥ, which comes from within; q̄ and r̄ are the
means of both times, and the two parts add up to the difference (Kitagawa, 1955, J. Am. Stat. Assoc.
50).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latencykit._records import record
from latencykit.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from latencykit._typing import Flags, Floats, Ints
    from latencykit.analysis.attributes import Attribute


@record()
class MixRules:
    """When a mix is said to change; chosen on the worlds of `tests.benchmarks.truth`."""

    # of time: fewer do not say when, more hold too few requests
    bins: int = 40
    # random orders of the bins that a change is compared with
    draws: int = 400
    # probability of a change as clear in a random order
    level: float = 0.01
    # of the requests have another value afterwards: with less, the mix is the same
    min_moved_share: float = 0.05
    # of the share of slow requests comes or goes with the mix: less explains nothing
    min_rise: float = 0.2
    # of an attribute are distinguished; the others are one
    max_values: int = 50


RULES = MixRules()
_COLUMNS = [
    "attribute", "value", "share_before", "share_after", "slow_before", "slow_after", "mix",
    "within",
]  # fmt: skip


def mix_changes(
    attributes: Sequence[Attribute], when: Floats | None, slow: Flags, inside: Flags | None
) -> tuple[pd.DataFrame, list[str]]:
    """Return the decomposition of each attribute whose mix changed, and a sentence on each.

    `inside` marks the requests of the later time; without it, the time at which the mix changed
    most is taken, if it changed more than the order of time bins allows by chance.
    """
    import pandas as pd

    tables, findings, place, width = [], [], np.zeros(0, np.int64), 0.0
    if when is not None and when.size:
        width = (float(when.max() - when.min()) or 1.0) / RULES.bins
        place = np.minimum((when - when.min()) / width, RULES.bins - 1).astype(np.int64)
    for attribute in attributes if when is not None else ():
        codes = np.minimum(attribute.codes, RULES.max_values)
        size = min(len(attribute.values), RULES.max_values + 1)
        after, moment = inside, "in this window"
        if after is None:
            counts = np.bincount(place * size + codes, minlength=RULES.bins * size)
            table = counts.reshape(RULES.bins, size).astype(np.float64)
            at = _change(table, len(attributes))
            if at is None:
                continue
            after, moment = place >= at, f"after {format_duration(1e9 * at * width)}"
        if after.all() or not after.any():
            continue
        parts = _decomposed(codes, size, slow, after)
        moved = float(np.abs(parts["share_after"] - parts["share_before"]).sum() / 2)
        begin, end = (
            float((parts[f"share_{side}"] * parts[f"slow_{side}"]).sum())
            for side in ("before", "after")
        )
        total = float(parts["mix"].sum())
        if moved < RULES.min_moved_share or abs(total) < RULES.min_rise * max(begin, end):
            continue
        names = [*attribute.values[: RULES.max_values], "others"][:size]
        tables.append(pd.DataFrame({"attribute": attribute.name, "value": names, **parts}))
        most = int(np.abs(parts["mix"]).argmax())
        before, afterwards = (parts[f"share_{side}"][most] for side in ("before", "after"))
        findings.append(
            f"the mix of {attribute.name} changes {moment}: {attribute.name}={names[most]} goes "
            f"from {100 * before:.3g} % to {100 * afterwards:.3g} % of requests; the share of slow "
            f"requests goes from {100 * begin:.3g} % to {100 * end:.3g} %, {_points(total)} from "
            f"the mix and {_points(end - begin - total)} from within"
        )
    found = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=_COLUMNS)
    return found, findings


def _points(share: float) -> str:
    return f"{100 * share:+.2g} points"


def _decomposed(codes: Ints, size: int, slow: Flags, after: Flags) -> dict[str, Floats]:
    sides = {}
    for name, rows in (("before", ~after), ("after", after)):
        counts = np.bincount(codes[rows], minlength=size).astype(np.float64)
        late = np.bincount(codes[rows & slow], minlength=size).astype(np.float64)
        sides[name] = counts / counts.sum(), late / np.maximum(counts, 1)
    (share, rate), (share_after, rate_after) = sides["before"], sides["after"]
    # A value that is seen on one side only has the same rate on both.
    rate, rate_after = (
        np.where(share > 0, rate, rate_after), np.where(share_after > 0, rate_after, rate)
    )  # fmt: skip
    return {
        "share_before": share, "share_after": share_after,
        "slow_before": rate, "slow_after": rate_after,
        "mix": (share_after - share) * (rate + rate_after) / 2,
        "within": (share + share_after) / 2 * (rate_after - rate),
    }  # fmt: skip


def _change(counts: Floats, looks: int) -> int | None:
    """The bin from which on the mix is another one, if no random order of bins looks like it."""
    counts = counts[:, counts.sum(axis=0) > 0]
    filled = np.flatnonzero(counts.sum(axis=1) > 0)
    if filled.size < RULES.bins // 2 or counts.shape[1] < 2:
        return None
    shares = counts[filled] / counts[filled].sum(axis=1, keepdims=True)
    shares = shares - shares.mean(axis=0)
    scale = np.sqrt(np.maximum(shares.var(axis=0), 1e-12))

    def cusum(table: Floats) -> Floats:
        return np.asarray((np.cumsum(table / scale, axis=-2) ** 2).sum(axis=-1)[..., :-1])

    seen = cusum(shares)
    rng = np.random.default_rng(filled.size)
    order = rng.permuted(np.tile(np.arange(filled.size), (RULES.draws, 1)), axis=1)
    drawn = cusum(shares[order]).max(axis=1)
    if (1 + (drawn >= seen.max()).sum()) / (RULES.draws + 1) * min(looks, 4) > RULES.level:
        return None
    return int(filled[int(seen.argmax()) + 1])
