"""Series by their names: latency types as tools spell them, and a total before its parts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeVar

from latencykit._limits import in_force
from latencykit._text import option

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

T = TypeVar("T")

TOTAL = "total"
"""Name of the series with all tags, endpoints or other parts of a file."""

_SPELLINGS = (
    ("ttft", "time_to_first_token"),
    ("itl", "inter_token_latency"),
    ("tpot", "time_per_output_token"),
    ("e2el", "request_latency", "e2e", "e2e_latency", "end_to_end_latency"),
)


def series_named(name: str, names: Iterable[str]) -> list[str]:
    """Return the series that a name means: the one so called, else those of the latency type.

    Parameters
    ----------
    name : str
        ``"ttft"`` also means ``time_to_first_token``, and ``"rate 2 ttft"`` where a file has
        several runs.
    names : iterable of str

    Examples
    --------
    >>> series_named("ttft", ["request_latency", "time_to_first_token"])
    ['time_to_first_token']
    >>> series_named("e2e", ["constant@2 request_latency", "constant@4 request_latency"])
    ['constant@2 request_latency', 'constant@4 request_latency']
    >>> series_named("GET", ["GET /cart", "POST"])
    []
    """
    known = list(names)
    if name in known:
        return [name]
    spellings = next((row for row in _SPELLINGS if name.lower() in row), ())
    last = {series: re.sub(r" \(\d+\)$", "", series).rsplit(" ", 1)[-1] for series in known}
    for spelling in sorted(spellings, key=lambda spelling: spelling != name.lower()):
        matching = [series for series in known if last[series] == spelling]
        if matching:
            return matching
    return []


def shown_parts(total: Any, parts: Sequence[T]) -> tuple[Any, Sequence[T]]:
    """Return a total, and as many of its parts as fit into one chart or page beside it.

    Where these are not all, a note of the total says so.
    """
    most = max(in_force().series - 1, 0)
    if len(parts) <= most:
        return total, parts
    text = (
        f"shown are the total and the first {most:,} of {len(parts):,} series; "
        f"{option('series')} or {option('tag')} selects others, "
        "--limit series=N (lk.limits) allows more"
    )
    return total.with_run(notes=(text, *total.run.notes)), parts[:most]
