"""Statistics of counted values: arrays in, arrays or small frozen dataclasses out; no state, no drawing."""

from __future__ import annotations
