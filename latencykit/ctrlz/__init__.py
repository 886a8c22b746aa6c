"""The live Ctrl+Z test: freeze a server under a load generator, and see whether its report tells."""

from __future__ import annotations
