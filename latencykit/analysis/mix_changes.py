"""Changes of the mix: more of what is slow anyway, or slower requests of a kind.

The share of slow requests is Σ qᵥ rᵥ over the values v of an attribute, with qᵥ the share of the
requests that have the value and rᵥ the share of those that are slow. Between two times it changes
by Σ Δqᵥ r̄ᵥ, which comes from the mix, and Σ q̄ᵥ Δrᵥ, which comes from within; q̄ and r̄ are the
means of both times, and the two parts add up to the difference (Kitagawa, 1955, J. Am. Stat. Assoc.
50).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from latencykit._typing import Floats


_BINS = 40  # of time
_DRAWS = 400
_LEVEL = 0.01
_LEAST_MOVE = 0.05  # of the requests that have another value afterwards
_LEAST_RISE = 0.2  # of the share of slow requests
_MOST_VALUES = 50
_COLUMNS = (
    "attribute", "value", "share_before", "share_after", "slow_before", "slow_after", "mix",
    "within",
)  # fmt: skip


def mix_changes(
    attributes: Sequence[Any], when: Floats | None, slow: Any, inside: Any
) -> tuple[pd.DataFrame, list[str]]:
    """Return the decomposition of each attribute whose mix changed, and a sentence on each.

    `inside` marks the requests of the later time; without it, the time at which the mix changed
    most is taken, if it changed more than the order of time bins allows by chance.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    findings: list[str] = []
    if when is not None and when.size and len(attributes):
        span = float(when.max() - when.min()) or 1.0
        place = np.minimum((when - when.min()) / span * _BINS, _BINS - 1).astype(np.int64)
    for attribute in attributes if when is not None else ():
        codes, size = (
            np.minimum(attribute.codes, _MOST_VALUES),
            min(len(attribute.values), _MOST_VALUES + 1),
        )
        at: int | None = None
        if inside is None:
            counts = np.bincount(place * size + codes, minlength=_BINS * size)
            at = _change(counts.reshape(_BINS, size).astype(np.float64), len(attributes))
            if at is None:
                continue
            after = place >= at
        else:
            after = inside
        if after.all() or not after.any():
            continue
        parts = _decomposed(codes, size, slow, after)
        moved = float(np.abs(parts["share_after"] - parts["share_before"]).sum() / 2)
        begin, end = (
            float((parts[f"share_{side}"] * parts[f"slow_{side}"]).sum())
            for side in ("before", "after")
        )
        total = float(parts["mix"].sum())
        if moved < _LEAST_MOVE or abs(total) < _LEAST_RISE * max(begin, end):
            continue
        names = [*attribute.values[:_MOST_VALUES], "others"][:size]
        rows += [
            {"attribute": attribute.name, "value": names[k]}
            | {key: float(column[k]) for key, column in parts.items()}
            for k in range(size)
        ]
        most = int(np.abs(parts["mix"]).argmax())
        moment = (
            f"after {format_duration(1e9 * at * span / _BINS)}" if at is not None
            else "in this window"
        )  # fmt: skip
        findings.append(
            f"the mix of {attribute.name} changes {moment}: {attribute.name}={names[most]} goes "
            f"from {100 * parts['share_before'][most]:.3g} % to "
            f"{100 * parts['share_after'][most]:.3g} % of requests; the share of slow requests "
            f"goes from {100 * begin:.3g} % to {100 * end:.3g} %, {_points(total)} from the mix "
            f"and {_points(end - begin - total)} from within"
        )
    return pd.DataFrame(rows, columns=list(_COLUMNS)), findings


def _points(share: float) -> str:
    return f"{100 * share:+.2g} points"


def _decomposed(codes: Any, size: int, slow: Any, after: Any) -> dict[str, Floats]:
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
    if filled.size < _BINS // 2 or counts.shape[1] < 2:
        return None
    shares = counts[filled] / counts[filled].sum(axis=1, keepdims=True)
    shares = shares - shares.mean(axis=0)
    scale = np.sqrt(np.maximum(shares.var(axis=0), 1e-12))

    def cusum(table: Floats) -> Floats:
        return np.asarray((np.cumsum(table / scale, axis=-2) ** 2).sum(axis=-1)[..., :-1])

    seen = cusum(shares)
    rng = np.random.default_rng(filled.size)
    order = rng.permuted(np.tile(np.arange(filled.size), (_DRAWS, 1)), axis=1)
    drawn = cusum(shares[order]).max(axis=1)
    if (1 + (drawn >= seen.max()).sum()) / (_DRAWS + 1) * min(looks, 4) > _LEVEL:
        return None
    return int(filled[int(seen.argmax()) + 1])
