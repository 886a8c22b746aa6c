"""Measure your own code (`Recorder`, ``%%latency``) and the machine's own hiccups (`hiccup`)."""

from __future__ import annotations
