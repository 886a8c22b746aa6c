"""Cells into nanoseconds: numbers of a unit, spelled durations, dates."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from latencykit.errors import UsageError
from latencykit.formats.raw.names import unit_in
from latencykit.frames import as_nanoseconds
from latencykit.units import NANOSECONDS, parse_duration

if TYPE_CHECKING:
    from typing import Any

    import pandas as pd
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]

__all__ = ["EMPTY", "Kind", "Times", "coded", "kind_of", "times_of"]

Kind = Literal["number", "span", "moment", "word"]
EMPTY = ("", "-", "NaN", "nan", "NA", "N/A", "n/a", "null", "NULL", "None", "none", "nil", "NaT")
"""Cells that stand for "nothing"."""

_JUDGED = 60
_LONGEST_WORD = 80
_ISO_SPAN = re.compile(r"[-+]?P(?:\d+D)?T?[\dHMS.,]+", re.IGNORECASE)
_CLOCK = re.compile(r"(?:\d+ days? ?)?\d+:\d\d(?::\d\d(?:[.,]\d+)?)?")


class Times(NamedTuple):
    """Cells as nanoseconds.

    Attributes
    ----------
    ns : ndarray of int64 or float64, shape (n,)
        0 where there is none.
    missing : ndarray of bool, shape (n,)
        Empty cells.
    damaged : ndarray of bool, shape (n,)
        Cells that hold something else than a time.
    """

    ns: NDArray[Any]
    missing: Bools
    damaged: Bools


def kind_of(cells: pd.Series[Any]) -> Kind:
    """Return what a column's cells are, judged by the first of them."""
    import pandas as pd

    if cells.dtype.kind in "iufmM":
        return {"m": "span", "M": "moment"}.get(cells.dtype.kind, "number")  # type: ignore[return-value]
    if isinstance(cells.dtype, pd.DatetimeTZDtype):
        return "moment"
    text = cells.dropna().astype(str)
    text = text[~text.isin(EMPTY)].iloc[:_JUDGED]
    if not len(text) or cells.dtype.kind == "b":
        return "word"
    readers: dict[Kind, Any] = {
        "number": lambda: pd.to_numeric(text, errors="coerce"),
        "span": lambda: _spans(text),
        "moment": lambda: _moments(text),
    }
    for kind, read in readers.items():
        if pd.notna(read()).mean() > 0.5:
            return kind
    return "word"


def times_of(cells: pd.Series[Any], kind: Kind, unit: str, *, stamps: bool = False) -> Times:
    """Return cells as nanoseconds; numbers are of `unit` (``none``: they stay as they are).

    With `stamps`, fractional seconds since the epoch are meant to the microsecond, which is all that a float holds.

    Examples
    --------
    >>> import pandas as pd
    >>> times_of(pd.Series(["5.2ms", "PT0.5S", "1m2.3s", "", "?"]), "span", "ns").ns.tolist()
    [5200000.0, 500000000.0, 62300000000.0, 0.0, 0.0]
    """
    import pandas as pd

    if kind == "number":
        times = _numbers(cells, unit)
        return times._replace(ns=_without_noise(times.ns, unit)) if stamps else times
    if cells.dtype.kind in "mM" or isinstance(cells.dtype, pd.DatetimeTZDtype):
        given, missing = as_nanoseconds(cells), cells.isna().to_numpy()
        damaged = np.isnat(given) & ~missing
        return Times(np.where(missing | damaged, 0, given.astype(np.int64)), missing, damaged)
    codes, distinct = coded(cells)
    text = pd.Series([str(one).strip() for one in distinct], dtype=object)
    empty = np.append(text.isin(EMPTY).to_numpy(np.bool_), True)
    found = _spans(text) if kind == "span" else _moments(text)
    held = np.append(found, np.nan if kind == "span" else np.datetime64("NaT", "ns"))
    none = np.isnan(held) if kind == "span" else np.isnat(held)
    ns = np.where(none, 0, held if kind == "span" else held.astype(np.int64))
    return Times(ns[codes], empty[codes], (none & ~empty)[codes])


def coded(cells: pd.Series[Any]) -> tuple[NDArray[Any], list[Any]]:
    """Return numbers for cells, -1 for empty ones, and what each number stands for."""
    import pandas as pd

    if isinstance(cells.dtype, pd.CategoricalDtype):
        return cells.cat.codes.to_numpy(), cells.cat.categories.tolist()
    codes, distinct = pd.factorize(cells, use_na_sentinel=True)
    return codes, list(distinct)


def _numbers(cells: pd.Series[Any], unit: str) -> Times:
    import pandas as pd

    factor = NANOSECONDS.get(unit, 1.0)
    nothing = np.zeros(len(cells), np.bool_)
    if cells.dtype.kind in "iu" and isinstance(cells.dtype, np.dtype):
        whole = cells.to_numpy()
        if not whole.size or max(-float(whole.min()), float(whole.max())) * factor <= _LARGEST:
            ns = whole.astype(np.int64, copy=False)
            return Times(ns if factor == 1 else ns * np.int64(factor), nothing, nothing)
        large = np.abs(whole.astype(np.float64)) * factor > _LARGEST
        return Times(np.where(large, 0, whole).astype(np.int64) * np.int64(factor), nothing, large)
    missing = cells.isna().to_numpy(np.bool_)
    if cells.dtype.kind not in "iuf":
        missing = missing | cells.isin(EMPTY).to_numpy(np.bool_)
        cells = pd.to_numeric(cells.astype(object), errors="coerce")
    reals = cells.to_numpy(np.float64, na_value=np.nan)
    if reals.size and not missing.any() and max(-reals.min(), reals.max()) <= _LARGEST / factor:
        return Times(np.round(reals * factor, 3) if unit != "none" else reals, nothing, nothing)
    size = np.abs(np.where(missing, 0.0, np.nan_to_num(reals, nan=np.inf, posinf=np.inf, neginf=-np.inf)))
    damaged = ~missing & ~(size <= _LARGEST / factor)
    kept = np.where(missing | damaged, 0.0, reals)
    return Times(np.round(kept * factor, 3) if unit != "none" else kept, missing, damaged)


def _without_noise(ns: NDArray[Any], unit: str) -> NDArray[Any]:
    if ns.dtype.kind != "f" or unit not in ("s", "ms") or not ns.size or float(ns.max()) < _EPOCH:
        return ns
    return np.asarray(np.rint(ns / 1e3).astype(np.int64) * 1000)


_EPOCH = 1e17  # ns; 1973
_LARGEST = 2.0**62  # a start and a duration of this size can still be added


def _spans(text: pd.Series[Any]) -> NDArray[np.float64]:
    """Spelled durations in ns; NaN where they are none."""
    import pandas as pd

    text = text.where(text.str.len() <= _LONGEST_WORD, "")  # longer ones are no durations, and slow to refuse
    parts = text.str.extract(r"^([-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)\s*([A-Za-zµμ]+)$")
    factor = parts[1].map({word: NANOSECONDS[unit_in(word) or ""] for word in parts[1].dropna().unique() if unit_in(word)})
    found = np.round(pd.to_numeric(parts[0], errors="coerce").to_numpy(np.float64) * factor.to_numpy(np.float64), 3)
    for at in np.flatnonzero(np.isnan(found)).tolist():
        found[at] = _odd_span(str(text.iloc[at]))
    return np.where(np.abs(found) <= _LARGEST, found, np.nan)


def _odd_span(word: str) -> float:
    """``1m2.3s``, ``PT0.5S`` or ``00:00:01.5`` in ns."""
    import pandas as pd

    try:
        if _ISO_SPAN.fullmatch(word) or _CLOCK.fullmatch(word):
            return float(pd.Timedelta(word.replace(",", ".")).value)
        return parse_duration(word)
    except (ValueError, UsageError, OverflowError):
        return float("nan")


def _moments(text: pd.Series[Any]) -> NDArray[Any]:
    """Dates, UTC unless they say otherwise; NaT where they are none."""
    import pandas as pd

    return as_nanoseconds(pd.to_datetime(text, utc=True, format="ISO8601", errors="coerce"))
