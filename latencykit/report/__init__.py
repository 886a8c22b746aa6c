"""What people and programs read: JSON records, tables, and the views that a notebook shows."""

from __future__ import annotations
