"""One module per tool, with every output of that tool that can be read."""

from __future__ import annotations
