"""Array types that annotations name."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd
    from typing_extensions import TypeIs

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
AnyArray = NDArray[Any]
AnySeries: TypeAlias = "pd.Series[Any]"


class ToPandas(Protocol):
    """A frame or a column of Polars, Arrow and others."""

    def to_pandas(self) -> object:
        """Return it as a frame or a Series of pandas."""
        ...


PathOrFrame: TypeAlias = "str | os.PathLike[str] | pd.DataFrame | AnySeries | ToPandas"


def is_path_or_frame(given: object) -> TypeIs[PathOrFrame]:
    """Return whether `lk.read` takes it: a path, or a frame or Series of any library."""
    frame = hasattr(given, "iloc") or hasattr(given, "to_pandas")
    return isinstance(given, str | os.PathLike) or (frame and not hasattr(given, "run"))


JSONObject: TypeAlias = dict[str, Any]
"""An object of a tool's JSON, decoded and not checked yet."""

Percentile = Annotated[float, ("minimum", 0), ("maximum", 100)]
PercentileName = Annotated[str, ("pattern", r"^[0-9]+(\.[0-9]+)?$")]
"""A percentile as a key, such as 99.9. The pairs are keywords of JSON Schema."""
