"""The accessor ``latency`` of pandas Series; ``import latencykit.pandas`` registers it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pandas.api.extensions import register_series_accessor
from pandas.api.types import is_bool_dtype, is_numeric_dtype, is_timedelta64_dtype

if TYPE_CHECKING:
    from latencykit._typing import AnySeries
    from latencykit.core import Data


@register_series_accessor("latency")
class LatencyAccessor:
    """The latencies in a Series: every method of `Samples`, and the data themselves.

    The unit is the name's (``latency_ms``) or that of timedeltas; else state it.

    Raises
    ------
    AttributeError
        If the Series has neither numbers nor timedeltas.

    Examples
    --------
    >>> import pandas as pd
    >>> import latencykit.pandas
    >>> frame = pd.DataFrame({"latency_ms": range(1, 101), "rtt": range(1, 101)})
    >>> round(frame["latency_ms"].latency.percentile(99) / 1e6)
    99
    >>> round(frame["rtt"].latency(unit="us").mean, -2)
    50500.0
    """

    def __init__(self, series: AnySeries) -> None:
        kind = series.dtype
        if is_bool_dtype(kind) or not (is_numeric_dtype(kind) or is_timedelta64_dtype(kind)):
            raise AttributeError(f"can only use .latency with numbers or timedeltas, not {kind}")
        self._series = series

    def __call__(self, unit: str | None = None) -> Data:
        """Return the data, as `latencykit.read` does."""
        from latencykit.io.reading import read

        return read(self._series, unit=unit)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self(), name)
