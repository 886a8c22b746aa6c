"""What may go wrong with a payload, and how large one may be."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from latencykit.errors import LatencyKitError

__all__ = ["DEFAULT", "Limits", "PayloadError", "RowError"]

_DEFLATE_RATIO = 1032  # deflate cannot expand further: 258 bytes from two bits


class PayloadError(LatencyKitError, ValueError):
    """A payload that is damaged, or that holds what no histogram can; the text is the reason alone."""


class RowError(PayloadError):
    """A damaged payload among several.

    Parameters
    ----------
    row : int
        Which of the payloads it is, from 0.
    reason : str
        What is wrong with it.
    """

    def __init__(self, row: int, reason: str) -> None:
        super().__init__(reason)
        self.row = row

    def __reduce__(self) -> tuple[type[RowError], tuple[int, str]]:
        return type(self), (self.row, str(self))


@dataclass(frozen=True)
class Limits:
    """Bounds on what a stranger's file may take.

    Attributes
    ----------
    line : int, default 64 MiB
        Bytes of a line, and of the base64 text in it.
    inflated : int, default 16 MiB
        Bytes that one payload may inflate to.
    slots : int, default 8 million
        Buckets that a header may ask for; the largest that HdrHistogram makes has 6.2 million.
    block : int, default 64 MiB
        Bytes of inflated payloads that are decoded at once.
    """

    line: int = 64 << 20
    inflated: int = 16 << 20
    slots: int = 8_000_000
    block: int = 64 << 20

    @cached_property
    def harmless(self) -> int:
        """Bytes of base64 text that cannot inflate beyond the limit, whatever they are."""
        return min(self.line, self.inflated // _DEFLATE_RATIO // 3 * 4)


DEFAULT = Limits()
