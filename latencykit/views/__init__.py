"""Tables, JSON records, notebook views, terminal charts and the interactive page."""

from __future__ import annotations
