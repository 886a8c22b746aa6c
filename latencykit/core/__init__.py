"""The four data types, their parts and their arithmetic: arrays in, values out; no files."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:  # for annotations: importing `latencykit.core` loads no data type
    from typing_extensions import TypeIs

    from latencykit.core.histogram import Histogram
    from latencykit.core.histogram_log import HistogramLog
    from latencykit.core.samples import Samples
    from latencykit.core.summary import Summary


Data: TypeAlias = "Samples | HistogramLog | Histogram | Summary"


def is_samples(data: object) -> TypeIs[Samples]:
    """Return whether data are samples; who has none need not load the type."""
    loaded = sys.modules.get("latencykit.core.samples")
    return loaded is not None and isinstance(data, loaded.Samples)


def is_summary(data: object) -> TypeIs[Summary]:
    """Return whether data are a summary; who has none need not load the type."""
    loaded = sys.modules.get("latencykit.core.summary")
    return loaded is not None and isinstance(data, loaded.Summary)
