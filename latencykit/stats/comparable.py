"""Whether two measurements may be compared at all: what differs between them besides the system."""

from __future__ import annotations

from typing import TYPE_CHECKING

from latencykit.units import format_count, format_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from latencykit.run import Run

__all__ = ["differences", "unit_doubts"]

_A_THOUSANDFOLD = 250.0  # two units, and a change of the system by a factor of up to four
_NEAR = 0.05  # relative; rates and durations are never equal to the last digit


def unit_doubts(runs: Sequence[Run], middles: Sequence[float]) -> tuple[str, ...]:
    """Return what speaks against comparing or adding values some of whose units are only assumed, one sentence each.

    Parameters
    ----------
    runs : sequence of Run
    middles : sequence of float
        A median or mean of each, in one unit; NaN where it is not known.

    Examples
    --------
    >>> from latencykit.run import Run
    >>> unit_doubts([Run(unit_from="assumed")] * 2, [1e6, 1.2e3])
    ('the medians differ by a factor of 833 and a unit is only assumed: state the unit of each file (--unit)',)
    """
    guessed = [run for run in runs if run.unit_note is not None]
    if not guessed:
        return ()
    found = []
    units = sorted({run.unit for run in guessed})
    if len(units) > 1:
        found.append(f"units are only assumed, and not the same ones: {' and '.join(units)}; state them with --unit")
    known = [value for value in middles if value > 0]
    factor = max(known) / min(known) if known else 1.0
    if factor >= _A_THOUSANDFOLD:
        found.append(
            f"the medians differ by a factor of {factor:,.0f} and a unit is only assumed: state the unit of each file (--unit)"
        )
    return tuple(found)


def differences(base: Run, new: Run, base_count: int | None = None, new_count: int | None = None) -> tuple[str, ...]:
    """Return what makes two measurements hard to compare, one sentence each; empty where nothing is known to.

    Parameters
    ----------
    base, new : Run
    base_count, new_count : int, optional
        Requests counted; very different numbers are said, too.

    Examples
    --------
    >>> from latencykit.run import Run
    >>> differences(Run(rate=500.0, measure="service"), Run(rate=1000.0, measure="response"))
    ('one side measures service time, the other response time', 'the rate differs: 500/s and 1,000/s')
    """
    found = []
    for name, words in (
        ("measure", "one side measures {} time, the other {} time"),
        ("corrected", "the correction for coordinated omission differs: {} and {}"),
        ("loop", "one side is a load of the {} kind, the other of the {} kind"),
    ):
        pair = getattr(base, name), getattr(new, name)
        if pair[0] != pair[1] and "unknown" not in pair:
            found.append(words.format(*pair))
    numbers: tuple[tuple[str, float | None, float | None, Callable[[float], str]], ...] = (
        ("rate", base.rate, new.rate, lambda v: f"{v:,.{0 if v >= 100 else 2}f}/s"),
        ("achieved rate", base.achieved, new.achieved, lambda v: f"{v:,.{0 if v >= 100 else 2}f}/s"),
        ("number of connections", base.connections, new.connections, format_count),
        ("duration", base.duration, new.duration, lambda v: format_duration(v * 1e9)),
        ("number of requests", base_count, new_count, format_count),
    )
    for name, one, other, show in numbers:
        if one is None or other is None or (name == "achieved rate" and base.rate != new.rate):
            continue
        near = 0.0 if name == "number of connections" else 0.5 if name == "number of requests" else _NEAR
        if abs(one - other) > near * max(abs(one), abs(other)):
            found.append(f"the {name} differs: {show(one)} and {show(other)}")
    failing = [(run.failed + run.timeouts + run.dropped + run.unfinished) for run in (base, new)]
    if failing[0] != failing[1]:
        found.append(f"{format_count(failing[0])} requests failed on one side, {format_count(failing[1])} on the other")
    return tuple(found)
