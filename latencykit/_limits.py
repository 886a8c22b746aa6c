"""How much a untrusted input may take: every bound in one place, and each is looked at before the memory is taken.

They are meant to be out of the way of real files. Where one is not, raise it: for one command with ``--limit NAME=SIZE``,
for a program with ``with lk.limits(NAME=SIZE):``, for a shell or a machine with
``LATENCYKIT_LIMITS="NAME=SIZE,NAME=SIZE"``, which reaches other processes, too; a remote worker has its own. Sizes are
whole numbers, bytes also with KiB, MiB or GiB; times are seconds, also with ms, s, min or h.

Three things need no bound of their own: back-filling for coordinated omission counts its fills and never lists them,
JSON nests as deeply as Python's parser goes, some thousand levels, and files of rows or intervals may have any size, for
they are read as streams.
"""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import asdict, dataclass, fields
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from latencykit.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["DEFAULT", "Limits", "in_force", "limits"]

_VARIABLE = "LATENCYKIT_LIMITS"
_DEFLATE_RATIO = 1032  # deflate cannot expand further: 258 bytes from two bits
_SIZE = re.compile(r"([0-9][0-9_]{0,29}) *(KiB|MiB|GiB|)")
_TIME = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) *(ms|s|min|h|)")
_SECONDS = {"": 1.0, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_UNITS = {"": 0, "KiB": 10, "MiB": 20, "GiB": 30}
_ORDINARY_RATIO = 100  # outputs of tools compress five to thirty times


@dataclass(frozen=True)
class Limits:
    """Bounds on what a untrusted file may take.

    Attributes
    ----------
    line : int, default 64 MiB
        Bytes of a line, and of the base64 text in it.
    inflated : int, default 16 MiB
        Bytes that one payload may inflate to.
    slots : int, default 8 million
        Buckets that a payload's header may ask for; the largest that HdrHistogram makes has 6.2 million.
    block : int, default 64 MiB
        Bytes of inflated payloads that are decoded at once.
    whole : int, default 1 GiB
        Bytes of a file that has to be taken whole, such as one JSON document; of a compressed one, 64 MiB or 100 times
        its size where that is less.
    intervals : int, default 5 million
        Intervals of a log.
    others : int, default 1 million
        Lines of a log that are no intervals: comments, blank lines.
    answer : float, default 10
        Seconds that a web server may take to answer, or be silent in the middle of a file.
    fetch : float, default 60
        Seconds that a file may take to come from a server, every try included; of a large one, besides, a second for
        each 256 KiB that came.
    tries : int, default 3
        How often a server is asked that fails (status 5xx) or hangs up.
    """

    line: int = 64 << 20
    inflated: int = 16 << 20
    slots: int = 8_000_000
    block: int = 64 << 20
    whole: int = 1 << 30
    intervals: int = 5_000_000
    others: int = 1_000_000
    answer: float = 10.0
    fetch: float = 60.0
    tries: int = 3

    @cached_property
    def harmless(self) -> int:
        """Bytes of base64 text that cannot inflate beyond the limit, whatever they are."""
        return min(self.line, self.inflated // _DEFLATE_RATIO // 3 * 4)

    def unpacked(self, size: int) -> int:
        """Bytes that a compressed file of so many bytes may unpack to where it has to be taken whole."""
        return min(self.whole, max(64 << 20, _ORDINARY_RATIO * size))


DEFAULT = Limits()
_NAMES = tuple(one.name for one in fields(Limits))
_TIMES = ("answer", "fetch")
_LIKE = ("5000000 or 64MiB", "30s or 2min")


def in_force() -> Limits:
    """Return the limits that hold now."""
    return _parsed(os.environ.get(_VARIABLE, ""))


@contextlib.contextmanager
def limits(**changes: float | str) -> Iterator[Limits]:
    """Change limits while a block runs, in this process and in those that it starts.

    Parameters
    ----------
    **changes : int, float or str
        Names of `Limits`: ``line``, ``inflated``, ``slots``, ``block``, ``whole``, ``intervals``, ``others``; ``answer``,
        ``fetch`` and ``tries`` of servers.

    Raises
    ------
    InvalidArgumentError
        For a name that is none, or a size that is none.

    Examples
    --------
    >>> with limits(line="1MiB", intervals=1000) as held:
    ...     held.line, held.intervals, held.inflated
    (1048576, 1000, 16777216)
    """
    before = os.environ.get(_VARIABLE)
    wanted = asdict(in_force()) | changes
    text = ",".join(f"{name}={size}" for name, size in wanted.items())
    held = _parsed(text)
    os.environ[_VARIABLE] = text
    try:
        yield held
    finally:
        if before is None:
            os.environ.pop(_VARIABLE, None)
        else:
            os.environ[_VARIABLE] = before


@lru_cache(maxsize=16)
def _parsed(text: str) -> Limits:
    """Limits as text names them; those that it does not name are the default ones."""
    found: dict[str, Any] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, _, size = (side.strip() for side in part.partition("="))
        hit = (_TIME if name in _TIMES else _SIZE).fullmatch(size)
        if name not in _NAMES:
            raise InvalidArgumentError(
                f"there is no limit {name!r}; the limits are {', '.join(_NAMES)} (--limit, {_VARIABLE})"
            )
        if hit is None or not float(hit[1].replace("_", "")):
            raise InvalidArgumentError(
                f"{size!r} is no size of the limit {name}; write it as {_LIKE[name in _TIMES]} (--limit, {_VARIABLE})"
            )
        found[name] = (
            float(hit[1]) * _SECONDS[hit[2]] if name in _TIMES else int(hit[1]) << _UNITS[hit[2]]
        )
    return Limits(**found)
