"""The four data types, their parts and their arithmetic: arrays in, values out; no files, no pictures."""

from __future__ import annotations
