"""A history of runs: a folder with one file per run, and the gate that learns from it."""

from __future__ import annotations
