"""One histogram an interval: the rung that knows when, without single requests."""

from __future__ import annotations

from latencykit.log.noun import HistogramLog, IntervalSeries, slot_edges, slot_numbers
from latencykit.log.views import LogPart, SlotPart, merge_logs

__all__ = ["HistogramLog", "IntervalSeries", "LogPart", "SlotPart", "merge_logs", "slot_edges", "slot_numbers"]
