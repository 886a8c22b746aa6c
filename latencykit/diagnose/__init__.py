"""What a measurement left out: stalls, coordinated omission, and how to put both right."""

from __future__ import annotations

from latencykit.diagnose.backfill import correct
from latencykit.diagnose.retiming import retime

__all__ = ["correct", "retime"]
