"""Tests import the package from the source tree, where no installation has compiled the loops."""

from __future__ import annotations

from pathlib import Path

from hatch_build import KERNEL, compile_all

ROOT = Path(__file__).parents[1]
if not (ROOT / KERNEL).exists():
    compile_all(ROOT, ROOT)
