"""What a measurement left out: stalls, coordinated omission, and how to put both right.

The room is callable: ``latencykit.diagnose(rung)`` gives a `Diagnosis`.
"""

from __future__ import annotations

from latencykit.diagnose.backfill import correct
from latencykit.diagnose.diagnosis import Diagnosis
from latencykit.diagnose.retiming import retime
from latencykit.diagnose.stalls import find_stalls
from latencykit.diagnose.verdict import diagnose
from latencykit.rooms import make_callable

__all__ = ["Diagnosis", "correct", "diagnose", "find_stalls", "retime"]

make_callable(__name__, diagnose)
