"""Counts in buckets: the rung that answers every question but those about time and single requests."""

from __future__ import annotations

from latencykit.histogram.adding import merge_histograms, reported
from latencykit.histogram.noun import STANDARD_PERCENTILES, Histogram
from latencykit.histogram.stepping import histogram_of, statistic_of
from latencykit.histogram.trust import PercentileRow

__all__ = [
    "STANDARD_PERCENTILES",
    "Histogram",
    "PercentileRow",
    "histogram_of",
    "merge_histograms",
    "reported",
    "statistic_of",
]
