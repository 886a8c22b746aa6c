"""Names of the latency types of one request, as tools for language-model servers spell them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["series_named"]

_SPELLINGS = (
    ("ttft", "time_to_first_token"),
    ("itl", "inter_token_latency"),
    ("tpot", "time_per_output_token"),
    ("e2el", "request_latency", "e2e", "e2e_latency", "end_to_end_latency"),
)


def series_named(wanted: str, names: Iterable[str]) -> list[str]:
    """Return the series that a name means: the one so called, else those of the latency type.

    Parameters
    ----------
    wanted : str
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
    if wanted in known:
        return [wanted]
    spellings = next((row for row in _SPELLINGS if wanted.lower() in row), ())
    last = {name: re.sub(r" \(\d+\)$", "", name).rsplit(" ", 1)[-1] for name in known}
    for spelling in sorted(spellings, key=lambda name: name != wanted.lower()):
        matching = [name for name in known if last[name] == spelling]
        if matching:
            return matching
    return []
