"""Reading and writing: bytes to one of the four data types, and back."""

from __future__ import annotations
