"""The league's script, which lies beside its entries."""

from __future__ import annotations

import importlib.util
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "notebooks" / "league" / "league.py"
_spec = importlib.util.spec_from_file_location("league", SCRIPT)
assert _spec is not None
assert _spec.loader is not None
league = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(league)
