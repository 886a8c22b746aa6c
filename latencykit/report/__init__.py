"""What people and programs read: JSON records, tables, notebook views, and the interactive page.

``latencykit.report(rungs, "report.html")`` writes that page; the room and its verb share the name.
"""

from __future__ import annotations

from latencykit.report.verb import report
from latencykit.rooms import make_callable

__all__ = ["report"]

make_callable(__name__, report)
