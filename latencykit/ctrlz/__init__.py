"""The live Ctrl+Z test: freeze a server under a load generator, and judge its report."""

from __future__ import annotations
