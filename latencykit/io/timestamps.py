"""Points in time as text: RFC 3339 and its relatives, many at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latencykit._text import printable
from latencykit.core.samples import as_nanoseconds
from latencykit.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def iso_nanoseconds(texts: Sequence[str]) -> NDArray[np.int64]:
    """Return nanoseconds since the epoch, int64 of the same length; what names no zone is UTC."""
    import pandas as pd

    try:
        when = as_nanoseconds(
            pd.to_datetime(
                pd.Series(list(map(str, texts)), dtype=object), utc=True, format="ISO8601"
            )
        )
    except (ValueError, OverflowError, TypeError) as error:
        raise InvalidArgumentError(
            f"a timestamp is not a date ({printable(str(error), 60)})"
        ) from error
    if np.isnat(when).any():
        raise InvalidArgumentError("a timestamp is missing, or lies beyond the years 1678 to 2261")
    return np.asarray(when.astype(np.int64))


def epoch_seconds(text: object) -> float | None:
    """Return seconds since the epoch, or None if `text` is not a date."""
    try:
        seconds = float(iso_nanoseconds([str(text)])[0]) / 1e9
    except ValueError:
        return None
    return seconds if seconds > 0 else None
