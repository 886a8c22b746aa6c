"""The questions: one public operation and its mathematics per module."""

from __future__ import annotations
