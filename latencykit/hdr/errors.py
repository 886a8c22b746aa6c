"""Corrupt payloads: errors whose text is the reason alone; the reader of the file adds where."""

from __future__ import annotations

from latencykit.errors import LatencyKitError


class PayloadError(LatencyKitError, ValueError):
    """A payload that is corrupt or not a possible histogram."""


class RowError(PayloadError):
    """A corrupt payload among several.

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
