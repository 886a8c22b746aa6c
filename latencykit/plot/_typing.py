"""Types of the parameters that charts share; for annotations only."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pandas as pd

    from latencykit.analysis.slo import SLO
    from latencykit.core import Data
    from latencykit.core.distribution import Distribution

__all__ = ["Dashed", "Drawable", "Limits", "Runs", "StallRows"]

Drawable: TypeAlias = "Data | Distribution | Mapping[str, Data | Distribution]"
Runs: TypeAlias = "Data | Sequence[Data] | Mapping[str, Data]"
Dashed: TypeAlias = "float | tuple[float, str]"
Limits: TypeAlias = "SLO | str | Sequence[tuple[float, float]]"
StallRows: TypeAlias = "pd.DataFrame | Iterable[tuple[float, float, float | None]]"
