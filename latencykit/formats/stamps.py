"""Points in time as text: RFC 3339 and its relatives, many at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latencykit.errors import UsageError
from latencykit.frames import as_nanoseconds
from latencykit.units import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["epoch_seconds", "iso_nanoseconds"]


def iso_nanoseconds(texts: Sequence[str]) -> NDArray[np.int64]:
    """Return nanoseconds since the epoch, int64 of the same length; what names no zone is UTC.

    Raises
    ------
    UsageError
        Where one of them is no date; it is a ValueError.

    Examples
    --------
    >>> iso_nanoseconds(["1970-01-01T00:00:01.5Z", "1970-01-01T02:00:00.000000001+02:00"]).tolist()
    [1500000000, 1]
    """
    import pandas as pd

    try:
        when = as_nanoseconds(pd.to_datetime(pd.Series(list(map(str, texts)), dtype=object), utc=True, format="ISO8601"))
    except (ValueError, OverflowError, TypeError) as error:
        raise UsageError(f"a stamp is no date ({printable(str(error), 60)})") from error
    if np.isnat(when).any():
        raise UsageError("a stamp is missing, or lies beyond the years 1678 to 2261")
    return np.asarray(when.astype(np.int64))


def epoch_seconds(text: object) -> float | None:
    """Return seconds since the epoch, or None where `text` is no date.

    Examples
    --------
    >>> epoch_seconds("1970-01-01T00:01:00Z"), epoch_seconds("0001-01-01T00:00:00Z"), epoch_seconds(None)
    (60.0, None, None)
    """
    try:
        seconds = float(iso_nanoseconds([str(text)])[0]) / 1e9
    except ValueError:
        return None
    return seconds if seconds > 0 else None
