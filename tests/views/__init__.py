"""Tests of the room report."""

from __future__ import annotations
