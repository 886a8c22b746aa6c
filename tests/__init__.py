"""Tests import the package from the source tree, where no installation has compiled the loops."""

from __future__ import annotations

import os
from pathlib import Path

from hatch_build import KERNEL, compile_all

ROOT = Path(__file__).parents[1]
if not (ROOT / KERNEL).exists():
    compile_all(ROOT, ROOT)
# As the command line says to numpy: threads that wait for others take a quarter of all processors.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
