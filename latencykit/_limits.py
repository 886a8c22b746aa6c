"""Limits on the memory and time that untrusted input may take, each checked before allocation.

Real files should not reach them. To raise one: ``--limit NAME=SIZE`` for a command,
``with lk.limits(NAME=SIZE):`` in a program, or ``LATENCYKIT_LIMITS="NAME=SIZE,NAME=SIZE"`` in the
environment, which child processes inherit; a remote worker has its own. Sizes are numbers, of bytes
also with a unit such as MB or MiB; times are seconds, or have a unit such as min.

Three things need no limit: back-filling for coordinated omission counts its fills without listing
them, JSON nests no deeper than Python's parser allows, and files of rows or intervals are streamed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import asdict, fields
from functools import cached_property, lru_cache
from typing import Any

from latencykit._processes import environment
from latencykit._records import record
from latencykit.errors import InputTooLargeError, InvalidArgumentError
from latencykit.units import byte_count, parse_duration

_VARIABLE = "LATENCYKIT_LIMITS"
_DEFLATE_RATIO = 1032  # deflate cannot expand further: 258 bytes from two bits
_ORDINARY_RATIO = 100  # tool outputs compress five to thirty times


@record()
class Limits:
    """Limits on the resources that an untrusted file may take; in bytes if it says no more."""

    line: int = 64 << 20  # of a line, and of the base64 text in it
    inflated: int = 16 << 20  # that one payload may inflate to
    slots: int = (
        8_000_000  # of a payload, by its header; the largest of HdrHistogram has 6.2 million
    )
    block: int = 64 << 20  # of inflated payloads that are decoded at once
    whole: int = 1 << 30  # of a file that must be loaded completely, such as a JSON document
    # that any file may unpack to, whether it is compressed or stores repeated values once; a large
    # one to 100 times its size
    unpacked: int = 32 << 20
    window: int = 128 << 20  # that the decoder of an xz or zstd stream may look back on
    columns: int = 500  # of a table that are looked at: those that name latencies, then the first
    intervals: int = 5_000_000  # of a log
    others: int = 1_000_000  # lines of a log other than intervals: comments, blank lines
    series: int = 1_000  # that one chart or page shows; JSON documents in one file
    answer: float = 10.0  # seconds of a web server to answer, and of a pause within a file
    fetch: float = 60.0  # seconds that a download may take, plus one second per 256 KiB received
    download: int = 1 << 30  # of a download, decompressed where the server compresses it on its way
    private: int = 0  # 1 follows a redirection from a public address to a private or loopback one

    @cached_property
    def harmless(self) -> int:
        """Bytes of base64 text that cannot inflate beyond the limit, whatever they contain."""
        return min(self.line, self.inflated // _DEFLATE_RATIO // 3 * 4)

    def of_packed(self, size: int) -> int:
        """Return the bytes that a file of `size` bytes may unpack to."""
        return max(self.unpacked, _ORDINARY_RATIO * size)


DEFAULT = Limits()
_NAMES = tuple(one.name for one in fields(Limits))
_TIMES = ("answer", "fetch")
_LIKE = ("5000000 or 64MiB", "30s or 2min")


def current_limits() -> Limits:
    """Return the current limits."""
    return _parsed(os.environ.get(_VARIABLE, ""))


@contextlib.contextmanager
def limits(**changes: float | str) -> Iterator[Limits]:
    """Change limits while a block runs, in this process and its children.

    Parameters
    ----------
    **changes : int, float or str
        Names of `Limits`: ``line``, ``inflated``, ``slots``, ``block``, ``whole``, ``unpacked``,
        ``window``, ``columns``, ``intervals``, ``others``; ``series`` of a chart; ``answer``,
        ``fetch``, ``download`` and ``private`` of servers.

    Raises
    ------
    InvalidArgumentError
        For an unknown name or an invalid size.

    Examples
    --------
    >>> with limits(line="1MiB", intervals=1000) as now:
    ...     now.line, now.intervals, now.inflated
    (1048576, 1000, 16777216)
    """
    values = asdict(current_limits()) | changes
    text = ",".join(f"{name}={size}" for name, size in values.items())
    changed = _parsed(text)
    with environment(_VARIABLE, text):
        yield changed


@lru_cache(maxsize=16)
def _parsed(text: str) -> Limits:
    """Limits from text; those that it does not name keep their defaults."""
    values: dict[str, Any] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, _, size = (side.strip() for side in part.partition("="))
        if name not in _NAMES:
            raise InvalidArgumentError(
                f"{name!r} is not a valid limit; the limits are {', '.join(_NAMES)} "
                f"(--limit, {_VARIABLE})"
            )
        try:
            number = parse_duration(size, "s") / 1e9 if name in _TIMES else byte_count(size)
        except InvalidArgumentError:
            number = 0
        if number <= 0 and (name, size) != ("private", "0"):
            raise InvalidArgumentError(
                f"{size!r} is not a valid size of the limit {name}; "
                f"write it as {_LIKE[name in _TIMES]} (--limit, {_VARIABLE})"
            )
        values[name] = number
    return Limits(**values)


def check_series(number: int) -> None:
    """Raise where there are more series than one chart or page shows."""
    limit = current_limits().series
    if number > limit:
        raise InputTooLargeError(
            f"{number:,} series are too many for one chart or page, which shows up to {limit:,}; "
            "choose some with --series or --tag, add them up with latencykit merge, or allow more "
            "with --limit series=N (lk.limits)"
        )
