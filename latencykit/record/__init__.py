"""Measuring: your own code (`Recorder`, ``%%latency``), and the hiccups of the machine itself (`hiccup`)."""

from __future__ import annotations
