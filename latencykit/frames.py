"""Columns of a DataFrame as plain arrays: times in nanoseconds whatever their type, words without gaps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.errors import UsageError
from latencykit.units import NANOSECONDS, checked_unit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd
    from numpy.typing import NDArray

__all__ = ["as_nanoseconds", "sample_columns", "word_column"]

_FARTHEST = 9e9  # seconds, 285 years; 64 bits of nanoseconds hold little more
_TIMES = ("duration", "start", "intended")


def sample_columns(frame: pd.DataFrame, columns: Mapping[str, str], unit: str) -> dict[str, NDArray[Any]]:
    """Return what `latencykit.samples.Samples` is made of.

    Parameters
    ----------
    frame : DataFrame
    columns : mapping of str to str
        What a column is (``duration``, ``start``, ``intended``, ``outcome``, ``connection``, ``tag``) → its name.
    unit : str
        Unit of the numbers among the times: ``ns``, ``us``, ``ms``, ``s``, or ``none`` for bare ones.

    Returns
    -------
    dict of str to ndarray
        Times as int64 nanoseconds (bare numbers as they are); connections as int64, words numbered; tags as text.

    Raises
    ------
    UsageError
        For a column that is not there, an empty cell among times, text where times are meant, booleans as outcomes.
    """
    missing = [name for name in columns.values() if name not in frame.columns]
    if missing:
        raise UsageError(f"no column {missing[0]!r}; the columns are {', '.join(map(str, frame.columns))}")
    checked_unit(unit)
    found: dict[str, NDArray[Any]] = {}
    for role, name in columns.items():
        cells = frame[name]
        if role in _TIMES:
            found[role] = _times(cells, unit)
        elif role == "tag":
            found[role] = cells.astype(object).where(cells.notna(), "").to_numpy().astype(np.str_)
        elif role == "connection":
            found[role] = _connections(cells)
        elif cells.dtype.kind == "b":
            raise UsageError(f"column {name!r} holds booleans; write outcomes as words: numpy.where(df[{name!r}], 'ok', 'error')")
        else:
            found[role] = cells.to_numpy() if cells.dtype.kind in "iu" else cells.astype(object).to_numpy().astype(np.str_)
    return found


def as_nanoseconds(cells: pd.Series[Any]) -> NDArray[Any]:
    """Return datetimes (UTC) or timedeltas in nanoseconds; NaT for what 64 bits of them cannot hold, which casts wrap around.

    Parameters
    ----------
    cells : Series of datetimes, of any zone, or of timedeltas

    Returns
    -------
    ndarray of datetime64[ns] or timedelta64[ns], shape (n,)

    Examples
    --------
    >>> import pandas as pd
    >>> when = pd.Series(["1970-01-01T00:00:01+00:00", "0001-01-01T00:00:00+00:00"])
    >>> as_nanoseconds(pd.to_datetime(when, utc=True, format="ISO8601", errors="coerce"))
    array(['1970-01-01T00:00:01.000000000', 'NaT'], dtype='datetime64[ns]')
    """
    if cells.dtype.kind == "m":
        return cells.where(cells.dt.total_seconds().abs() < _FARTHEST).to_numpy("m8[ns]")
    plain = (
        cells
        if cells.dtype.kind == "M" and getattr(cells.dtype, "tz", None) is None
        else cells.dt.tz_convert("UTC").dt.tz_localize(None)
    )
    return plain.where(plain.dt.year.between(1678, 2261)).to_numpy("M8[ns]")


def word_column(words: Sequence[str] | NDArray[Any]) -> pd.Series[Any]:
    r"""Return words as a column; as plain objects where one is not UTF-8, which the strings of pandas cannot hold.

    Examples
    --------
    >>> word_column(["get", "\udce4"]).tolist() == ["get", "\udce4"]
    True
    """
    import pandas as pd

    given = np.asarray(words, np.str_)
    codes = given.view(np.uint32) if given.size and given.dtype.itemsize else np.zeros(0, np.uint32)
    halves = ((codes >= 0xD800) & (codes <= 0xDFFF)).any()
    return pd.Series(given.astype(object), dtype=object) if halves else pd.Series(given)


def _times(cells: pd.Series[Any], unit: str) -> NDArray[np.int64]:
    import pandas as pd

    empty = int(cells.isna().sum())
    if empty:
        raise UsageError(
            f"column {cells.name!r} has {empty} empty cells; leave those rows out: df.dropna(subset=[{cells.name!r}])"
        )
    if cells.dtype.kind in "mM" or isinstance(cells.dtype, pd.DatetimeTZDtype):
        found = as_nanoseconds(cells)
        if np.isnat(found).any():
            raise UsageError(f"column {cells.name!r} lies beyond the years that 64 bits of nanoseconds hold: 1678 to 2261")
        return found.astype(np.int64)
    try:
        numbers = pd.to_numeric(cells)
    except (ValueError, TypeError):
        raise UsageError(f"column {cells.name!r} holds no numbers; pandas.to_timedelta and to_datetime read words") from None
    factor = NANOSECONDS.get(unit, 1.0)
    if numbers.dtype.kind in "iu":
        return numbers.to_numpy(np.int64) * np.int64(factor)
    reals = numbers.to_numpy(np.float64) * factor
    if not (np.abs(reals) < 2.0**63).all():
        raise UsageError(f"column {cells.name!r} holds times that do not fit in 63 bits of nanoseconds")
    return np.rint(reals).astype(np.int64)


def _connections(cells: pd.Series[Any]) -> NDArray[np.int64]:
    import pandas as pd

    if cells.dtype.kind in "iu" and not cells.isna().any():
        return cells.to_numpy(np.int64)
    return np.asarray(pd.factorize(cells)[0], np.int64)
