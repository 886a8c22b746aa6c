"""The four data types, their parts and their arithmetic: arrays in, values out; no files."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # for annotations: importing `latencykit.core` loads no data type
    from typing import TypeAlias

    from latencykit.core.histogram import Histogram
    from latencykit.core.histogram_log import HistogramLog
    from latencykit.core.samples import Samples
    from latencykit.core.summary import Summary

    Data: TypeAlias = Samples | HistogramLog | Histogram | Summary
