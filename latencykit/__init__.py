"""latencykit: the whole latency distribution, from what your tools already print."""

from __future__ import annotations

__version__ = "0.1.0"
